//! A task with its data: a problem that is ready to run.

use crate::data::{Prepared, RecordNames};
use crate::error::Mistake;
use crate::known::Known;
use crate::plan;
use crate::task::{GraphSource, Model, Observer, Sizes, Task, Yields};
use serde::Serialize;
use sottovoce_algorithms::{Dataset, Loss, Observations, Problem, Regularization};
use sottovoce_core::{Graph, PeerId};
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
    /// To whom agents can write, where that is not their neighbours alone.
    pub reach: Option<Graph>,
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
    /// Whether every row is over its limit, so that scores would be of models that nobody has trained.
    pub fn learns_nothing(&self) -> bool {
        self.void.is_some_and(|void| void.is_all())
    }

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
        // Only personal models have confidences.
        let personal = task.algorithm.yields == Yields::ModelPerAgent;
        let points_max = if personal { points_max } else { Some(1) };
        let points_max = points_max.expect("whoever assembles a task has filled it in") as f64;
        let problem = Problem { data, graph, loss, regularization, trade_off, points_max };
        let plan = match &task.privacy {
            None => None,
            Some(privacy) => Some(Arc::new(plan::plan(&task, privacy, &problem)?)),
        };
        let records = records.map(Arc::new);
        // Who goes along edges writes to others too: at the start, and of the outcome.
        let beyond = task.algorithm.everyone && !task.has_everyone();
        let reach = if beyond { Graph::complete(problem.agents()).ok() } else { None };
        Ok(Loaded { task, names, problem, reach, test, feature_names, known, plain: None, plan, records, void: None })
    }

    /// What one agent has, where a statistic is measured.
    pub fn observations(&self, agent: PeerId) -> Observations<'_> {
        let bounds = self.task.statistic.as_ref().and_then(|statistic| statistic.range);
        Observations { points: self.problem.data.points(agent), bounds }
    }

    /// The names of the numbers of a model, or of an estimate.
    pub fn number_names(&self) -> Vec<String> {
        let names = &self.feature_names;
        self.task.statistic.as_ref().map_or_else(|| names.clone(), |statistic| statistic.numbers(names))
    }

    /// How many values of a task without `[privacy]` lie outside the range of its statistic, in a line; none where none does. With `[privacy]` only
    /// the owner may know.
    pub fn values_moved(&self) -> Option<String> {
        let range = self.task.statistic.as_ref()?.range.filter(|_| self.task.privacy.is_none())?;
        let (mut count, mut all) = (0u64, 0u64);
        for agent in (0..self.problem.agents() as u32).map(PeerId) {
            let values = self.problem.data.points(agent).features;
            count += values.iter().filter(|value| range.clip(**value) != **value).count() as u64;
            all += values.len() as u64;
        }
        let (are, bounds) = (if count == 1 { "lies" } else { "lie" }, "and are moved to the nearer bound");
        (count > 0).then(|| format!("{count} of {all} values {are} outside statistic.range {bounds}"))
    }

    /// Refuses what the algorithm cannot do with so many agents and columns. A peer is asked when it starts: before, it may not list everyone yet.
    pub fn check_sizes(&self) -> Result<(), Mistake> {
        let sizes = Sizes { agents: self.names.len(), columns: self.problem.dimension() };
        match (self.task.algorithm.check)(&self.task, Some(sizes)) {
            Some((_, what)) => Err(Mistake::file(&self.task.source, what)),
            None => Ok(()),
        }
    }

    /// Against whom the guarantee of the task holds.
    pub fn observer(&self) -> Observer {
        match self.task.privacy {
            None => Observer::Everyone,
            Some(_) => (self.task.algorithm.observer)(&self.task, self.names.len()),
        }
    }

    /// The standard deviation of an estimate by the formula, where there is one.
    pub fn deviation(&self) -> Option<f64> {
        (self.task.algorithm.deviation)(&self.task, self.plan.as_deref(), &self.problem)
    }

    /// How many edges there are; none where they are yet to be learned.
    pub fn edge_count(&self) -> Option<usize> {
        (!matches!(self.task.graph.source, GraphSource::Learned(_))).then(|| self.problem.graph.edge_count())
    }

    /// What is allowed, but seldom meant.
    pub fn warning(&self) -> Option<&'static str> {
        if let Some(warning) = (self.task.algorithm.warning)(&self.task) {
            return Some(warning);
        }
        if self.task.algorithm.needs_connected && self.problem.graph.components().iter().any(|&part| part > 0) {
            return Some(
                "the graph is not connected: each of its parts finds an estimate of its own, and none of them is that of everybody",
            );
        }
        if let Some(advice) = (self.task.algorithm.advice)(&self.task, &self.problem) {
            return Some(advice);
        }
        let Problem { loss, regularization, .. } = self.problem;
        let linear = self.plain.is_none() && self.task.algorithm.yields == Yields::ModelPerAgent;
        (linear && loss == Loss::Logistic && regularization == Regularization::Constant(0.0)).then_some(
            "model.regularization = 0 with the logistic loss: where classes can be separated, models grow without bound",
        )
    }
}

/// The points themselves, where a problem holds what base predictors say of them.
#[derive(Clone, Debug)]
pub struct Plain {
    /// Training points.
    pub train: Dataset,
    /// Test points.
    pub test: Option<Dataset>,
    /// One name for each feature.
    pub feature_names: Vec<String>,
}

/// The records of a run that are over the limit of their source, and their rows. It follows from ids: for the owner's eyes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Void {
    /// Records that are over their limit.
    pub records: u64,
    /// Of so many.
    pub records_of: u64,
    /// The rows of these records.
    pub rows: u64,
    /// Of so many.
    pub rows_of: u64,
}

impl Void {
    /// Whether no row is left that says something.
    pub fn is_all(&self) -> bool {
        self.records == self.records_of
    }
}
