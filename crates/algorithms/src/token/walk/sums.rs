//! What holders add to a token that sums (thesis Algorithm 4.4): means, sums and histograms.
//!
//! ```text
//! tau <- tau + x_u + noise        mean = tau / weight of the contributions,   sum = n tau / contributions
//! ```
//!
//! The weight of a contribution is the number of its rows, or 1 where agents count. A histogram is a sum of unit vectors, one for each row: what a
//! replaced row moves has length sqrt 2.

use super::super::grid::Grid;
use super::super::ring::RingUnit;
use super::{Ended, Movement, Moving, WalkConfig, is_number};
use crate::{Bounds, Observations};
use sottovoce_privacy::{Event, Gate, Receipt, Released};
use thiserror::Error;

/// What the members want to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// The mean of each column.
    Mean,
    /// The sum of each column.
    Sum,
    /// How many values of one column lie in each of some equal bins.
    Histogram {
        /// How many bins.
        bins: u32,
    },
}

/// The hyper-parameters of what is added.
///
/// | name | symbol | range | default |
/// |---|---|---|---|
/// | columns | | 1 and above; 1 for a histogram | the task's |
/// | range | Delta | low < high, finite; none for exact sums | the task's |
/// | unit | | record, agent | record |
/// | goal | | mean, sum, histogram | the task's statistic |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SumsConfig {
    /// How many columns a row has.
    pub columns: u32,
    /// Values are moved into this.
    pub range: Option<Bounds>,
    /// Which of a member's values may be replaced for one guarantee: of a row, a member contributes the sum of its rows; of all, their mean.
    pub unit: RingUnit,
    /// What is computed of the sums.
    pub goal: Goal,
    /// Whether sums are hidden by noise.
    pub private: bool,
}

/// Why there are no such sums.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum BadSums {
    /// Not a range.
    #[error("a range from {0} to {1}; accepted: two finite numbers, the first below the second")]
    Range(f64, f64),
    /// Noise, or bins, for values without a bound.
    #[error("values without bounds; accepted: a range")]
    Boundless,
    /// No column, or too many.
    #[error("{0} columns; accepted: 1 and more, and 1 for a histogram")]
    Columns(u32),
    /// No bin.
    #[error("{0} bins; accepted: 2 and more")]
    Bins(u32),
}

/// Checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sums {
    config: SumsConfig,
    members: u32,
    /// Where sums are hidden.
    grid: Option<Grid>,
}

impl Sums {
    /// Checks the hyper-parameters, for so many members.
    pub fn new(config: SumsConfig, members: u32) -> Result<Sums, BadSums> {
        let SumsConfig { columns, range, goal, private, .. } = config;
        let is_histogram = matches!(goal, Goal::Histogram { .. });
        if columns == 0 || (is_histogram && columns != 1) {
            return Err(BadSums::Columns(columns));
        }
        if let Goal::Histogram { bins: bins @ 0..2 } = goal {
            return Err(BadSums::Bins(bins));
        }
        if range.is_none() && (private || is_histogram) {
            return Err(BadSums::Boundless);
        }
        let of_range = |range: Bounds| Grid::of(range).ok_or(BadSums::Range(range.low, range.high));
        let grid = range.map(of_range).transpose()?;
        // A count moves by one.
        let grid = if is_histogram { Grid::of(Bounds { low: 0.0, high: 1.0 }) } else { grid };
        // What nobody hides need not be rounded.
        Ok(Sums { config, members, grid: grid.filter(|_| private) })
    }

    /// Adds what a member contributes, on the grid; returns how much it weighs in a mean.
    fn contribute(&self, observations: Observations<'_>, out: &mut [f64]) -> u64 {
        let observations = Observations { bounds: self.config.range, ..observations };
        let rows = observations.points.len() as u64;
        let (share, weight) = match self.config.unit {
            RingUnit::Record => (1.0, rows),
            RingUnit::Agent => (1.0 / rows.max(1) as f64, 1),
        };
        let snap = |value: f64| self.grid.map_or(value, |grid| grid.snap(value));
        match (self.config.goal, self.config.range, self.config.unit) {
            (Goal::Histogram { bins }, Some(range), _) => {
                let mut counts = vec![0.0; out.len()];
                observations.rows().flatten().for_each(|value| counts[range.cell(bins, value)] += share);
                out.iter_mut().zip(counts).for_each(|(out, count)| *out += snap(count));
            }
            // Each row on the grid, so that replacing it moves the sum by no more than it moves.
            (_, _, RingUnit::Record) => {
                for row in observations.rows() {
                    out.iter_mut().zip(row).for_each(|(out, value)| *out += snap(value));
                }
            }
            (_, range, RingUnit::Agent) => {
                let mut means = vec![0.0; out.len()];
                for row in observations.rows() {
                    means.iter_mut().zip(row).for_each(|(mean, value)| *mean += share * value);
                }
                let within = |mean: f64| range.map_or(mean, |range| range.clip(mean));
                out.iter_mut().zip(means).for_each(|(out, mean)| *out += snap(within(mean)));
            }
        }
        weight
    }

    /// The standard deviation of the estimate: of its noise, and, at most, of whom the token visits; Euclidean, over all numbers of the estimate. `rows`
    /// are the least, the mean and the largest number of rows of a member.
    pub fn deviation(&self, walk: &WalkConfig, rows: [f64; 3]) -> Option<f64> {
        let Some(Event::Gaussian { noise_multiplier }) = walk.law else { return None };
        let range = self.config.range?;
        let (hops, numbers) = (walk.hops as f64 * f64::from(walk.tokens), self.numbers() as f64);
        let made = walk.contributions_expected();
        let [least, mean, most] = if self.config.unit == RingUnit::Agent { [1.0; 3] } else { rows };
        let noise = hops * (noise_multiplier * self.sensitivity()) * (noise_multiplier * self.sensitivity()) * numbers;
        // What one visit adds, around its mean: Bhatia and Davis' bound.
        let (visit, scale) = match self.config.goal {
            Goal::Mean => {
                let width = range.high - range.low;
                (numbers * most * mean * width * width / 4.0, 1.0 / (made * mean))
            }
            Goal::Sum => {
                let high = (most * range.high).max(least * range.high);
                let low = (most * range.low).min(least * range.low);
                (numbers * (high - low) * (high - low) / 4.0, f64::from(self.members) / made)
            }
            // A visit's counts are rows of one member: at most so long.
            Goal::Histogram { .. } => (most * most, f64::from(self.members) / made),
        };
        Some((noise + made * visit).sqrt() * scale)
    }

    fn counts(&self) -> bool {
        matches!(self.config.goal, Goal::Histogram { .. })
    }
}

impl Movement for Sums {
    type Data<'d> = Observations<'d>;

    fn numbers(&self) -> usize {
        match self.config.goal {
            Goal::Histogram { bins } => bins as usize,
            _ => self.config.columns as usize,
        }
    }

    fn outcome_len(&self) -> usize {
        self.numbers()
    }

    /// A row, or all of a member, is replaced by any other: the range in each column, and what rounding to the grid adds. Of a histogram one count
    /// falls and another rises. Values without bounds are never protected.
    fn sensitivity(&self) -> f64 {
        let Some((range, grid)) = self.config.range.zip(self.grid) else { return 1.0 };
        match self.counts() {
            // Each of the two counts is rounded by half a step at most, in both worlds.
            true => std::f64::consts::SQRT_2 + grid.step() * (self.numbers() as f64).sqrt(),
            false => (range.high - range.low + grid.step()) * f64::from(self.config.columns).sqrt(),
        }
    }

    fn step<'m>(
        &self,
        receipt: Option<Receipt>,
        observations: Observations<'_>,
        law: Option<Event>,
        gate: &mut Gate,
        token: Moving<'_, 'm>,
    ) -> (Released<&'m mut [f64]>, u64) {
        let (tau, weight) = match receipt {
            Some(receipt) => {
                token.moved.copy_from_slice(token.received);
                let weight = self.contribute(observations, token.moved);
                // PRIVACY: charged by the walk; the noise below is this hop's part of what hides it.
                (receipt.release(token.moved), weight)
            }
            None => (token.untouched(), 0),
        };
        let tau = match law {
            Some(law) => gate.blur_all(law, self.sensitivity(), self.grid.map(Grid::step), tau),
            None => tau,
        };
        (tau, weight)
    }

    fn holds(&self, value: f64) -> bool {
        self.grid.map_or(is_number(value), |grid| grid.holds(value))
    }

    fn outcome(&self, tokens: &[Ended], out: &mut [f64]) {
        let contributions: u64 = tokens.iter().map(|token| token.contributions).sum();
        let weight: u64 = tokens.iter().map(|token| token.weight).sum();
        let scale = match self.config.goal {
            Goal::Mean => 1.0 / weight.max(1) as f64,
            Goal::Sum | Goal::Histogram { .. } => f64::from(self.members) / contributions.max(1) as f64,
        };
        out.fill(0.0);
        for token in tokens {
            out.iter_mut().zip(&token.values).for_each(|(out, value)| *out += value);
        }
        out.iter_mut().for_each(|out| *out *= scale);
    }
}
