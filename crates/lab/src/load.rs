//! From a task to a problem that is ready to run.

use crate::error::Mistake;
use crate::learned::{Known, Plain};
use crate::plot::number;
use crate::rows::Names;
use crate::task::{Algorithm, GraphSource, Task};
use crate::{data, graph, learned, private};
use sottovoce_algorithms::{Dataset, Loss, Problem, Regularization, personal::admm::default_penalty};
use sottovoce_privacy::Plan;
use std::sync::Arc;

/// Everything a run needs, agents in the order of their names (by bytes).
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The task, with the defaults that only the data can tell: points-max, knn's neighbours, ADMM's penalty and the range of stumps.
    pub task: Task,
    /// The agents: all names of the training and test data and of the graph.
    pub names: Vec<String>,
    /// Training data, graph and objective.
    pub problem: Problem,
    /// Test points of the same agents.
    pub test: Option<Dataset>,
    /// One name for each coordinate of a model.
    pub feature_names: Vec<String>,
    /// What the task knows of a graph that is learned.
    pub known: Known,
    /// The points themselves, where `problem` holds what base predictors say of them.
    pub plain: Option<Arc<Plain>>,
    /// What each agent with data and a neighbour will release, when the task is private.
    pub plan: Option<Arc<Plan>>,
}

impl Loaded {
    /// How many coordinates a model has, in words.
    pub fn dimension_in_words(&self) -> String {
        let what = if self.plain.is_some() { "base predictors" } else { "features" };
        format!("{} {what}", number::count(self.problem.dimension() as u64))
    }

    /// How many edges there are, in words.
    pub fn edges_in_words(&self) -> String {
        match self.edge_count() {
            Some(edges) => format!("{} edges", number::count(edges as u64)),
            None => "a graph to be learned".to_owned(),
        }
    }

    /// How many edges there are; none where they are yet to be learned.
    pub fn edge_count(&self) -> Option<usize> {
        (!matches!(self.task.graph.source, GraphSource::Learned(_))).then(|| self.problem.graph.edge_count())
    }

    /// What is allowed, but seldom meant.
    pub fn warning(&self) -> Option<&'static str> {
        let Problem { loss, regularization, .. } = self.problem;
        let linear = self.plain.is_none();
        (linear && loss == Loss::Logistic && regularization == Regularization::Constant(0.0)).then_some(
            "model.regularization = 0 with the logistic loss: where classes can be separated, models grow without bound",
        )
    }
}

/// Reads the files of a task and builds its problem.
pub fn load(task: &Task) -> Result<Loaded, Mistake> {
    let mut numbers = Names::default();
    let raw = data::read(task, &mut numbers)?;
    let with_rows = numbers.len();
    let graph_rows = graph::read(task, &mut numbers)?;
    let known_rows = learned::read(task, &mut numbers)?;
    let (names, place) = numbers.sorted();
    let mut has_rows = vec![false; names.len()];
    place[..with_rows].iter().for_each(|&k| has_rows[k as usize] = true);
    let prepared = data::prepare(raw, task, &names, &place);
    let graph = graph::build(task, graph_rows, &names, &place, &prepared.train, &has_rows)?;

    let known = learned::known(task, known_rows, &names, &place)?;

    let mut task = task.clone();
    let points_max = task.model.points_max.unwrap_or(prepared.train.largest() as u64);
    task.model.points_max = Some(points_max);
    if let GraphSource::Knn { neighbours } = &mut task.graph.source {
        neighbours.get_or_insert(graph::default_neighbours(names.len()));
    }
    if let Algorithm::Admm(admm) = &mut task.algorithm {
        admm.penalty = Some(admm.penalty.unwrap_or_else(|| default_penalty(&graph, task.model.trade_off)));
    }
    let problem = Problem {
        data: prepared.train,
        graph,
        loss: task.model.loss,
        regularization: task.model.regularization,
        trade_off: task.model.trade_off,
        points_max: points_max as f64,
    };
    let plan = match &task.privacy {
        None => None,
        Some(privacy) => {
            private::check_bound(&task, privacy, &problem, &names)?;
            Some(Arc::new(private::plan(&task, privacy, &problem)?))
        }
    };
    let feature_names = prepared.feature_names;
    let loaded = Loaded { task, names, problem, test: prepared.test, feature_names, known, plain: None, plan };
    Ok(if loaded.task.algorithm == Algorithm::FrankWolfe { learned::boosted(loaded) } else { loaded })
}
