//! The report of a run: plain data in, pictures and one self-contained `report.html` out.
//!
//! Pure functions: nothing is read, written, timed or drawn by chance, so that the same run gives the same bytes.
//! Missing parts are left out: without a test set there are no scores, without wakes there are no curves.

mod curves;
mod graph;
mod learned;
mod page;
mod private;
mod sizes;
mod sweep;
mod words;

#[cfg(test)]
mod tests;

pub use learned::LearnedGraph;
pub use page::html;
pub use private::{BROADCAST, HOME, PrivateRun, bound_or_infinity};
pub use sweep::{Point, Sweep};
pub use words::headline;

use crate::page::{HEIGHT, Origins, Picture, TALL, WIDTH};
use crate::pairs;

/// Where the noise and the numbers of a run come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The simulator. Noise comes from the seed: it shows what privacy costs, and protects nothing.
    Simulator,
    /// Real peers, and only what they told each other.
    Peers,
    /// Real peers, and besides what their owners have revealed.
    Revealed,
}

/// Everything a report shows.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The name of the task.
    pub title: String,
    /// What ran, in a few words: `100 agents, 50 features, coordinate descent`.
    pub subtitle: String,
    /// One line on privacy, shown loudly.
    pub privacy: String,
    /// The budget, what was spent, and what else there would have been; private runs only.
    pub private: Option<PrivateRun>,
    /// What the score is: `test accuracy`, `test RMSE`.
    pub score_name: String,
    /// Whether a higher score is better.
    pub higher_is_better: bool,
    /// What is over the limit of the source, and says nothing.
    pub void: Option<VoidRecords>,
    /// One curve per algorithm. The last one is the run itself; the others are what it is compared with.
    pub runs: Vec<Curve>,
    /// The bound of Proposition 1 on the expected objective (gap plus optimum), as (wakes of all agents, objective).
    pub bound: Option<Vec<(f64, f64)>>,
    /// The minimum of the objective, where it is known.
    pub optimum: Option<f64>,
    /// All agents.
    pub agents: Vec<AgentScore>,
    /// The collaboration graph: two positions in `agents` and a weight, each pair once.
    pub edges: Vec<(u32, u32, f64)>,
    /// What is known of the agents, where the graph was learned.
    pub learned: Option<LearnedGraph>,
    /// Whether the task says by itself who writes to whom, so that there is no graph to draw.
    pub everyone: bool,
    /// Whether messages differ so much in size that bits are worth a picture.
    pub in_bits: bool,
    /// One row per algorithm, in the order of the table.
    pub table: Vec<Row>,
    /// How to get it again.
    pub origins: Origins,
}

/// What is over the limit of the source of its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoidRecords {
    /// Such as "3 of 12 records (7 rows) are over their limit and say nothing".
    pub words: String,
    /// Whether no row is left that says something.
    pub is_all: bool,
}

/// What one algorithm did over time.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// The algorithm.
    pub name: String,
    /// In order of wakes. A single sample is drawn as a level.
    pub points: Vec<Sample>,
}

/// One moment of a run; counts are totals over all agents since the start.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Wakes so far.
    pub wakes: u64,
    /// Vectors sent so far.
    pub vectors_sent: u64,
    /// Bytes sent so far.
    pub bytes_sent: u64,
    /// The objective.
    pub objective: Option<f64>,
    /// The mean score over agents.
    pub score_mean: Option<f64>,
    /// The standard deviation of the score over agents.
    pub score_std: Option<f64>,
}

impl Sample {
    /// The same moment, of models whose scores mean nothing.
    pub fn without_scores(&self) -> Sample {
        Sample { score_mean: None, score_std: None, ..*self }
    }
}

/// One agent at the end.
#[derive(Clone, Debug, Default)]
pub struct AgentScore {
    /// Its name.
    pub name: String,
    /// How many training points it has.
    pub points: u64,
    /// The score of its purely local model.
    pub local: Option<f64>,
    /// The score of the model the run gave it: in a private run its home model, if there are any.
    pub model: Option<f64>,
}

/// One row of the table.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// The algorithm, as in [`Curve::name`].
    pub name: String,
    /// The mean score over agents.
    pub score_mean: Option<f64>,
    /// The standard deviation of the score over agents.
    pub score_std: Option<f64>,
    /// By how much the mean score is better than that of purely local models: positive is better, also for errors.
    pub gain: Option<f64>,
    /// How many agents have a better score than alone.
    pub agents_gain: Option<u64>,
    /// How many agents have a worse score than alone.
    pub agents_lose: Option<u64>,
    /// Wakes of all agents.
    pub wakes: u64,
    /// Vectors sent by all agents.
    pub vectors_sent: u64,
    /// Bytes sent by all agents.
    pub bytes_sent: u64,
    /// How long the run took.
    pub seconds: Option<f64>,
    /// The objective at the end.
    pub objective: Option<f64>,
}

/// All pictures that the report has the numbers for, in reading order.
pub fn plots(report: &Report) -> Vec<Picture> {
    let curves = curves::pictures(report).into_iter();
    let pairs = report.private.iter().filter_map(|private| pairs::picture(private.pairs.as_ref()?));
    let private = private::pictures(report).into_iter().chain(pairs);
    let graph = graph::picture(report).into_iter().chain(learned::pictures(report));
    private.chain(curves).chain(sizes::picture(report)).chain(graph).collect()
}

impl AgentScore {
    /// By how much the run's model is better than the agent's own, if both have a finite score.
    pub fn gain(&self, higher_is_better: bool) -> Option<f64> {
        let gain = finite(self.model)? - finite(self.local)?;
        Some(if higher_is_better { gain } else { -gain })
    }
}

fn finite(x: Option<f64>) -> Option<f64> {
    x.filter(|x| x.is_finite())
}
