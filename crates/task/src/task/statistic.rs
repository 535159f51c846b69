//! The `[statistic]` section: what is measured of everybody's data.

use crate::keys::STATISTICS;
use serde::{Deserialize, Serialize};
pub use sottovoce_algorithms::Bounds;
use sottovoce_algorithms::pairs::kernel;

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
    /// The variance of a column.
    Variance,
    /// The mean difference of two rows.
    Gini,
    /// How often two rows are in the same order by both of two columns.
    Kendall,
    /// How often a row of one class has a higher score than one of the other.
    Auc,
    /// The mean squared distance of two rows, where rows of two cells count zero.
    Scatter,
}

impl StatisticKind {
    /// As it is written in a task file.
    pub fn name(self) -> &'static str {
        STATISTICS[self as usize]
    }

    /// Whether it is the mean of a function of two rows, over all pairs: one number, however many columns a row has.
    pub fn is_of_pairs(self) -> bool {
        use StatisticKind::{Auc, Gini, Kendall, Scatter, Variance};
        matches!(self, Variance | Gini | Kendall | Auc | Scatter)
    }

    /// Whether rows have a label.
    pub fn has_label(self) -> bool {
        self == StatisticKind::Auc
    }
}

/// What two equal scores of two classes count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ties {
    /// Nothing.
    #[default]
    Zero,
    /// One half.
    Half,
}

impl From<Ties> for kernel::Ties {
    fn from(ties: Ties) -> Self {
        match ties {
            Ties::Zero => kernel::Ties::Zero,
            Ties::Half => kernel::Ties::Half,
        }
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
    /// How many agents there are; `None`: as many as have rows, filled in by [`crate::load::load`].
    pub agents: Option<u64>,
    /// Of pairs: how many rows there are in all; `None`: as many as there are, filled in by [`crate::load::load`].
    pub rows: Option<u64>,
    /// auc: how many of them are of the positive class; `None`: as many as are, filled in by [`crate::load::load`].
    pub positives: Option<u64>,
    /// auc: what equal scores count.
    pub ties: Ties,
    /// Into how many equal bins `range` is cut, for a histogram and where rows are told in bins; `None` there: by the public rule, filled in by
    /// [`crate::load::load`].
    pub bins: Option<u32>,
    /// hierarchical-auc: whether counts are made to add up.
    pub is_consistent: bool,
    /// two-party: bits of a value on the grid.
    pub bits: u32,
    /// scatter: the centres of its cells; none: one cell.
    pub centres: Vec<Vec<f64>>,
}

impl Statistic {
    /// The names of the numbers of an estimate, where rows have these columns: the columns, the bins of one, or one for pairs of rows.
    pub fn numbers(&self, columns: &[String]) -> Vec<String> {
        if self.kind.is_of_pairs() {
            return vec![columns.join(" and ")];
        }
        let (Some(bins), Some(Bounds { low, high })) = (self.bins, self.range) else { return columns.to_vec() };
        let start = |bin: u32| low + (high - low) * f64::from(bin) / f64::from(bins);
        (0..bins).map(|bin| format!("{} from {} to {}", columns.join(", "), start(bin), start(bin + 1))).collect()
    }
}
