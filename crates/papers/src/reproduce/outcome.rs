//! What came of an experiment: tables, plots, and claims of a paper beside what we found.

use serde::{Deserialize, Serialize};

/// What came of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExperimentOutcome {
    /// The numbers.
    pub tables: Vec<Table>,
    /// The pictures.
    pub plots: Vec<Plot>,
    /// What the paper says, and what we found.
    pub claims: Vec<Claim>,
}

/// A table of texts, written as CSV and shown on the page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The stem of its file.
    pub name: String,
    /// What it shows.
    pub caption: String,
    /// The headings.
    pub columns: Vec<String>,
    /// The cells.
    pub rows: Vec<Vec<String>>,
}

/// A chart with a mean and a spread at every point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Plot {
    /// The stem of its files.
    pub name: String,
    /// Above it.
    pub title: String,
    /// Below it.
    pub caption: String,
    /// The horizontal axis.
    pub x: Labelled,
    /// The vertical axis.
    pub y: Labelled,
    /// The curves.
    pub series: Vec<Series>,
}

/// The name of an axis, and whether equal distances are equal factors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Labelled {
    /// What it measures.
    pub label: String,
    /// Logarithmic or not.
    pub log: bool,
}

impl Labelled {
    /// Equal distances are equal differences.
    pub fn linear(label: &str) -> Self {
        Labelled { label: label.to_owned(), log: false }
    }

    /// Equal distances are equal factors.
    pub fn log(label: &str) -> Self {
        Labelled { label: label.to_owned(), log: true }
    }
}

/// One curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// In the legend.
    pub name: String,
    /// Which colour.
    pub ink: usize,
    /// Dashed: a baseline, or not differentially private at the epsilon that it claims.
    pub dashed: bool,
    /// From left to right.
    pub points: Vec<Point>,
}

/// A place on a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Where.
    pub x: f64,
    /// The mean over the runs.
    pub mean: f64,
    /// Their standard deviation.
    pub spread: f64,
}

/// Something that a paper says, as a number that can be checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// Its name in `expected.toml`.
    pub id: String,
    /// In words.
    pub says: String,
    /// The paper's number or shape.
    pub paper: String,
    /// Ours, in words, with its spread over the runs.
    pub ours: String,
    /// The number that `expected.toml` has a range for.
    pub value: f64,
    /// Whether it holds here.
    pub holds: bool,
}

impl Claim {
    /// A claim; `paper` is what it says, `ours` what we found.
    pub fn new(id: &str, says: &str, paper: &str, ours: String, value: f64, holds: bool) -> Self {
        assert!(value.is_finite(), "{id} has the value {value}");
        let (id, says, paper) = (id.to_owned(), says.to_owned(), paper.to_owned());
        Claim { id, says, paper, ours, value, holds }
    }
}

/// The mean and the standard deviation of some runs; the deviation of one run is zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The standard deviation, with n - 1 below.
    pub deviation: f64,
}

impl Spread {
    /// Of these values, one at least.
    pub fn of(values: &[f64]) -> Self {
        assert!(!values.is_empty(), "a spread needs a run");
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
        Spread { mean, deviation: libm::sqrt(squares / (count - 1.0).max(1.0)) }
    }

    /// As a point of a curve.
    pub fn at(self, x: f64) -> Point {
        Point { x, mean: self.mean, spread: self.deviation }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3} ± {:.3}", self.mean, self.deviation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_mean_and_the_deviation_of_a_sample() {
        let spread = Spread::of(&[1.0, 2.0, 3.0, 6.0]);
        assert_eq!(spread.mean, 3.0);
        assert!((spread.deviation * spread.deviation - 14.0 / 3.0).abs() < 1e-12);
        assert_eq!(Spread::of(&[0.5]), Spread { mean: 0.5, deviation: 0.0 });
        assert_eq!(spread.to_string(), "3.000 ± 2.160");
    }

    #[test]
    #[should_panic(expected = "has the value NaN")]
    fn a_claim_without_a_number_is_our_fault() {
        Claim::new("a", "b", "c", String::new(), f64::NAN, true);
    }
}
