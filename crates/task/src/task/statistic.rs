//! The `[statistic]` section: what is measured of everybody's data.

use crate::keys::STATISTICS;
use serde::{Deserialize, Serialize};
pub use sottovoce_algorithms::Bounds;

/// What is measured, in the order of [`STATISTICS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StatisticKind {
    /// The mean of each column over all rows.
    Mean,
    /// The sum of each column over all rows.
    Sum,
    /// How many values lie in each of some equal bins.
    Histogram,
    /// The variance of each column.
    Variance,
    /// The mean difference of two rows, over twice the mean.
    Gini,
    /// How often two rows are in the same order by both of two columns.
    Kendall,
    /// How often a row of one class has a higher score than one of the other.
    Auc,
    /// The mean distance of two rows within a group.
    Scatter,
}

impl StatisticKind {
    /// As it is written in a task file.
    pub fn name(self) -> &'static str {
        STATISTICS[self as usize]
    }
}

/// What is measured, and of which values.
#[derive(Clone, Debug, PartialEq)]
pub struct Statistic {
    /// What.
    pub kind: StatisticKind,
    /// Of which columns; `None`: of all, filled in by [`crate::load::load`].
    pub columns: Option<Vec<String>>,
    /// Public bounds of all values.
    pub range: Option<Bounds>,
    /// Into how many equal bins `range` is cut, for a histogram.
    pub bins: Option<u32>,
    /// How many agents there are; `None`: as many as have rows, filled in by [`crate::load::load`].
    pub agents: Option<u64>,
}

impl Statistic {
    /// A name for each number of an estimate: the columns, or the bins of one.
    pub fn numbers(&self) -> Vec<String> {
        let columns = self.columns.clone().unwrap_or_default();
        let (Some(bins), Some(Bounds { low, high })) = (self.bins, self.range) else { return columns };
        let start = |bin: u32| low + (high - low) * f64::from(bin) / f64::from(bins);
        (0..bins).map(|bin| format!("{} from {} to {}", columns.join(", "), start(bin), start(bin + 1))).collect()
    }
}
