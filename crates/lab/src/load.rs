//! From a task to a problem that is ready to run.

use crate::budget::Void;
use crate::data::{Prepared, RecordNames};
use crate::error::Mistake;
use crate::learned::{Known, Plain};
use crate::plot::number;
use crate::rows::Names;
use crate::task::{Algorithm, GraphSource, Model, Task};
use crate::{data, graph, learned, private};
use sottovoce_algorithms::{Dataset, Loss, Problem, Regularization, personal::admm::default_penalty};
use sottovoce_core::Graph;
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
    /// The ids of each agent's training rows, where the task names a column of ids. They never leave.
    pub records: Option<Arc<RecordNames>>,
    /// What is over the limit of the source, where the run was charged to one and something is. For the owner's eyes.
    pub void: Option<Void>,
}

impl Loaded {
    /// Problem and plan of a task that knows its points-max.
    pub fn assemble(
        task: Task,
        names: Vec<String>,
        prepared: Prepared,
        graph: Graph,
        known: Known,
    ) -> Result<Self, Mistake> {
        let Prepared { train: data, test, feature_names, records } = prepared;
        let Model { loss, regularization, trade_off, points_max, .. } = task.model;
        let points_max = points_max.expect("whoever assembles a task has filled it in") as f64;
        let problem = Problem { data, graph, loss, regularization, trade_off, points_max };
        let plan = match &task.privacy {
            None => None,
            Some(privacy) => Some(Arc::new(private::plan(&task, privacy, &problem)?)),
        };
        let records = records.map(Arc::new);
        Ok(Loaded { task, names, problem, test, feature_names, known, plain: None, plan, records, void: None })
    }

    /// With what base predictors say in place of the points, where the task boosts.
    pub fn boosted(self) -> Self {
        if self.task.algorithm == Algorithm::FrankWolfe { learned::boosted(self) } else { self }
    }

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
    load_without(task, &|_| false)
}

/// The same without what the rows of some records say: their ids are told to be void.
pub fn load_without(task: &Task, is_void: &dyn Fn(&[u8]) -> bool) -> Result<Loaded, Mistake> {
    let mut numbers = Names::default();
    let mut raw = data::read(task, &mut numbers)?;
    raw.make_void(is_void);
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
    task.model.points_max.get_or_insert(prepared.train.largest() as u64);
    if let GraphSource::Knn { neighbours } = &mut task.graph.source {
        neighbours.get_or_insert(graph::default_neighbours(names.len()));
    }
    if let Algorithm::Admm(admm) = &mut task.algorithm {
        admm.penalty = Some(admm.penalty.unwrap_or_else(|| default_penalty(&graph, task.model.trade_off)));
    }
    Ok(Loaded::assemble(task, names, prepared, graph, known)?.boosted())
}
