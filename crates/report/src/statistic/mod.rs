//! The report of a statistic: plain data in, pictures and one self-contained `report.html` out.
//!
//! Pure functions, as for models. Missing parts are left out: of real peers nobody knows the exact value, so there is no error.

mod page;
mod pictures;

#[cfg(test)]
mod tests;

pub use page::{answer, html, missing_in_words};
pub use pictures::plots;

use crate::page::Origins;
use crate::pairs::ByDistance;

/// Everything a report of a statistic shows.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The name of the task.
    pub title: String,
    /// What ran, in a few words: `20 agents, mean of room, 60 rows, 40 edges, gossip`.
    pub subtitle: String,
    /// One line on privacy, shown loudly.
    pub privacy: String,
    /// What was measured: `mean`, `sum`.
    pub statistic: String,
    /// The names of the estimate's numbers.
    pub columns: Vec<String>,
    /// The mean of the agents' estimates, one number for each column.
    pub estimate: Vec<f64>,
    /// What somebody who had all rows would compute; in the simulator only.
    pub exact: Option<Vec<f64>>,
    /// The standard deviation of an estimate by the formula, where there is one.
    pub error_predicted: Option<f64>,
    /// How many contributions are missing, because their members were passed over.
    pub passed_over: u32,
    /// Each agent that has an estimate: its name, how many rows it holds, and the estimate.
    pub agents: Vec<AgentEstimate>,
    /// Over time.
    pub samples: Vec<Sample>,
    /// By sample: what a theorem says that the error is at most; none where it says nothing.
    pub bound: Vec<f64>,
    /// How many agents there are.
    pub agents_in_all: u64,
    /// How long the run took.
    pub seconds: f64,
    /// What the agent that spent most has spent: `infinity`, or a number.
    pub epsilon: String,
    /// The delta of it.
    pub delta: f64,
    /// For what unit, and against whom: `for one record replaced by another, against everyone`.
    pub guarantee: String,
    /// Where there is a guarantee for each pair of members: how it falls with their distance.
    pub pairs: Option<ByDistance>,
    /// How to get it again.
    pub origins: Origins,
}

/// One agent at the end.
#[derive(Clone, Debug, Default)]
pub struct AgentEstimate {
    /// Its name.
    pub name: String,
    /// How many rows it has.
    pub rows: u64,
    /// One number for each column.
    pub estimate: Vec<f64>,
}

/// One moment of a run; counts are totals over all agents since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Wakes so far.
    pub wakes: u64,
    /// Letters sent so far.
    pub letters_sent: u64,
    /// Bytes sent so far.
    pub bytes_sent: u64,
    /// The mean over agents of |estimate - exact|; in the simulator only.
    pub error_mean: Option<f64>,
    /// Its standard deviation over agents.
    pub error_std: Option<f64>,
}

impl Report {
    /// The least and the largest estimate of a column.
    fn range(&self, column: usize) -> Option<(f64, f64)> {
        let values = self.agents.iter().filter_map(|agent| agent.estimate.get(column).copied());
        values.filter(|value| value.is_finite()).fold(None, |range, value| {
            let (low, high) = range.unwrap_or((value, value));
            Some((value.min(low), value.max(high)))
        })
    }

    /// The largest |estimate - exact| of an agent in a column.
    fn farthest(&self, column: usize) -> Option<f64> {
        let (exact, (low, high)) = (self.exact.as_ref()?.get(column)?, self.range(column)?);
        Some((exact - low).abs().max((high - exact).abs()))
    }

    /// How far two agents are apart at most, in any column.
    fn spread(&self) -> Option<f64> {
        (0..self.columns.len())
            .filter_map(|column| self.range(column))
            .map(|(low, high)| high - low)
            .fold(None, |most: Option<f64>, spread| Some(most.map_or(spread, |most| most.max(spread))))
    }
}
