//! A task: what all agents agreed to learn. Typed, checked, resolved.
//!
//! A task file goes through three steps: every key and value is checked against the table of keys, then read into
//! plain types, then resolved into a [`Task`] with every default filled in and every path absolute. After that
//! nothing is checked again, except what only the data can tell.

pub mod check;
mod config;
mod description;
mod learned;
mod own;
mod privacy;
mod resolve;
mod statistic;
mod write;

use crate::error::Mistake;
use crate::input::{InputFile, Memory};
use crate::keys::Key;
pub use description::{Description, Detail, Details, LearnedDefaults, Leaves, Refusal, Sizes, Wish, Yields, names_of};
pub use learned::{Boosting, Learned, ModelStep, Predictors, Step, Turns};
pub use own::OwnKeys;
pub use privacy::{
    AccountantName, Home, Losses, Masks, Mechanism, NoiseKind, Observer, Pairs, Privacy, Schedule, Steps, Told, Trust,
    Unit, Warm,
};
use serde::{Deserialize, Serialize};
pub use sottovoce_algorithms::graphs::Threshold;
pub use sottovoce_algorithms::personal::descent::Start;
use sottovoce_algorithms::{Loss, Regularization};
pub use sottovoce_sim::{Clock, Faults, Partition};
pub use statistic::{Bounds, Statistic, StatisticKind, Ties};
use std::path::{Path, PathBuf};

/// The longest task file that is read, in bytes.
pub const TASK_BYTES_MAX: u64 = 1 << 20;

/// The most wakes per agent of a run with a tolerance alone. Of a thousand random problems eight need more than 20,000, none more
/// than 100,000: components that hang together by strong edges and on few data by weak ones.
pub const WAKES_WITH_TOLERANCE: u64 = 200_000;

/// The wakes per agent of a run that says nothing.
pub const WAKES_DEFAULT: u64 = 200;

/// A checked and resolved task.
#[derive(Clone, Debug, PartialEq)]
pub struct Task {
    /// The file it was read from, for messages.
    pub source: PathBuf,
    /// What the report calls it.
    pub name: String,
    /// What the agents run.
    pub algorithm: &'static Description,
    /// Whose points.
    pub data: Data,
    /// What is measured; `None` where models are learned.
    pub statistic: Option<Statistic>,
    /// Who works with whom.
    pub graph: GraphTask,
    /// The objective.
    pub model: Model,
    /// The values of the algorithm's own keys.
    pub own: OwnKeys,
    /// How to boost; `None` where nothing is boosted.
    pub boosting: Option<Boosting>,
    /// two-party: how often each agent meets another; `None`: by the formula.
    pub pairs: Option<u32>,
    /// How long.
    pub run: Run,
    /// What goes wrong on purpose.
    pub faults: Faults,
    /// What each agent may give away; `None`: everything.
    pub privacy: Option<Privacy>,
}

/// Whose points, and how they are prepared.
#[derive(Clone, Debug, PartialEq)]
pub struct Data {
    /// The training points.
    pub train: Points,
    /// Where test points come from.
    pub test: Test,
    /// How many features libsvm files have, if the task says so.
    pub dimension: Option<usize>,
    /// The column with the ids of records, if rows have any.
    pub record: Option<String>,
    /// How x is scaled.
    pub normalize: Normalize,
    /// A public bound on |x|, if the task declares one.
    pub feature_bound: Option<f64>,
}

/// A file of points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Points {
    /// The file.
    pub file: InputFile,
    /// For libsvm: the file of agents, one per line.
    pub agents: Option<InputFile>,
}

/// Where test points come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Test {
    /// There are none.
    Absent,
    /// Their own file.
    File(Points),
    /// A share of each agent's points.
    Split {
        /// In [0, 1).
        share: f64,
        /// With the agent's name it decides which.
        seed: u64,
    },
}

/// The norm whose unit ball all x are brought into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Normalize {
    /// x stays as it is.
    None,
    /// x / max(1, |x|_1).
    L1,
    /// x / max(1, |x|_2).
    L2,
}

/// Who works with whom.
#[derive(Clone, Debug, PartialEq)]
pub struct GraphTask {
    /// Where the edges come from.
    pub source: GraphSource,
    /// Whether an agent with data may have no edge.
    pub allow_isolated: bool,
}

/// Where edges come from.
#[derive(Clone, Debug, PartialEq)]
pub enum GraphSource {
    /// A file.
    Edges(InputFile),
    /// A cycle.
    Ring,
    /// All pairs.
    Complete,
    /// A grid that wraps around.
    Torus {
        /// Rows.
        rows: u32,
        /// Columns.
        columns: u32,
    },
    /// A small world.
    WattsStrogatz {
        /// Neighbours in the lattice.
        neighbours: u32,
        /// The probability of rewiring.
        rewire: f64,
        /// The seed.
        seed: u64,
    },
    /// Independent edges.
    ErdosRenyi {
        /// Of each edge.
        probability: f64,
        /// The seed.
        seed: u64,
    },
    /// Nearest neighbours by the training data.
    Knn {
        /// How many each agent chooses; ten, or all others, when nothing is said.
        neighbours: Option<u32>,
    },
    /// Weights by the angle between given vectors.
    Similarity {
        /// The file of vectors.
        vectors: InputFile,
        /// The width of the exponential.
        width: f64,
        /// What is too weak to keep.
        threshold: Threshold,
    },
    /// Learned together with the models.
    Learned(Learned),
}

/// The objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// l.
    pub loss: Loss,
    /// lambda_i.
    pub regularization: Regularization,
    /// mu.
    pub trade_off: f64,
    /// The constant feature that is appended, where one is.
    pub intercept: Option<f64>,
    /// The m_i of full confidence; `None`: the largest, filled in by [`crate::load::load`].
    pub points_max: Option<u64>,
    /// The first models.
    pub start: Start,
    /// gamma, where agents take gradient steps of a constant size.
    pub step: Option<f64>,
    /// The norm that such a model is brought back to.
    pub radius: Option<f64>,
    /// How many steps a member takes in a round, where updates are summed.
    pub local_steps: Option<u32>,
}

/// How long, and with which clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Run {
    /// Mean wakes per agent; the most there can be when there is a tolerance.
    pub wakes_per_agent: u64,
    /// When an agent is quiet.
    pub tolerance: Option<f64>,
    /// How many rounds there are, where the algorithm goes in rounds.
    pub rounds: Option<u32>,
    /// Whether rounds are accelerated, where they can be.
    pub accelerated: Option<bool>,
    /// How many hops all tokens make together, where a token walks.
    pub hops: Option<u64>,
    /// How wakes follow each other.
    pub clock: Clock,
    /// The seed; at most `i64::MAX`, as TOML can write it.
    pub seed: u64,
}

/// Resolves the text of a task file, whose keys and algorithms are those of the tables. Files that it names are in memory, under the very
/// names that it gives them, or on disk; relative paths start from the folder of `file`.
pub fn from_text(
    text: &str,
    file: &Path,
    memory: &Memory,
    keys: &'static [Key],
    algorithms: &'static [&'static Description],
) -> Result<Task, Mistake> {
    let lines = check::check(text, file, keys)?;
    let config: config::Config = toml::from_str(text).map_err(|error| check::syntax(text, file, &error))?;
    resolve::resolve(config, file, memory, &lines, algorithms)
}

impl Task {
    /// Whether everybody's neighbours are all others, which the algorithm says by itself.
    pub fn has_everyone(&self) -> bool {
        self.algorithm.everyone && matches!(self.graph.source, GraphSource::Complete)
    }

    /// Replaces the seed of the run.
    pub fn set_seed(&mut self, seed: u64) -> Result<(), Mistake> {
        if i64::try_from(seed).is_err() {
            return Err(Mistake::new(format!("seed {seed}; accepted: a whole number from 0 to {}", i64::MAX)));
        }
        self.run.seed = seed;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
