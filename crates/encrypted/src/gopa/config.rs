//! The hyper-parameters of a sum under pads, and what follows from them.

use super::LocalSteps;
use sottovoce_algorithms::token::ring::RingUnit;
use sottovoce_algorithms::token::walk::Goal;
use sottovoce_algorithms::{Bounds, Observations};
use sottovoce_core::PeerId;
use sottovoce_crypto::fixed_point::{Grid, from_ring};
use sottovoce_privacy::DEVIATION_LOG2;
use thiserror::Error;

/// The least number of members: of two, each would see the other.
pub const MEMBERS_MIN: u32 = 3;

/// Sums have fewer steps than this, noise included.
const STEPS_MAX: f64 = (1u64 << 61) as f64;

/// Steps of a range, where there is no noise to say how fine the grid must be.
const STEPS_WITHOUT_NOISE: f64 = (1u64 << 30) as f64;

/// The same of updates of models, which are far shorter than their bound.
const STEPS_OF_MODELS: f64 = (1u64 << 44) as f64;

/// The hyper-parameters, the same for all agents.
///
/// | name | symbol | range | default |
/// |---|---|---|---|
/// | members | n | 3 and above | everyone |
/// | finishing | present n | 3 to n | n |
/// | others | n_H - 1 | 2 to finishing | the accountant's |
/// | neighbours | k | 1 to n - 1 | the accountant's |
/// | threshold | t | 1 to k | the accountant's |
/// | rounds | R | 1 and above | 1 |
/// | noise | sigma / Delta_2 of the sum | above zero; none without privacy | the plan's |
/// | range | Delta | low < high, finite | the task's |
/// | timeout | | above zero, in wake intervals | a guess: 100 |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GopaConfig {
    /// How many members there are.
    pub members: u32,
    /// With fewer that finish a round is void, and nobody opens anything.
    pub finishing: u32,
    /// How many shares of noise make up that of the sum.
    pub others: u32,
    /// How many others each member picks.
    pub neighbours: u32,
    /// How many of a member's picks together open its own mask.
    pub threshold: u32,
    /// How many sums.
    pub rounds: u32,
    /// Who keeps what members publish; it is a member too.
    pub board: PeerId,
    /// How many columns a row has; one for a histogram.
    pub columns: u32,
    /// Values are moved into this.
    pub range: Bounds,
    /// What a member contributes.
    pub unit: RingUnit,
    /// What is computed of the sum.
    pub goal: Goal,
    /// Where sums learn one model: what a member contributes then, for `columns` features.
    pub learns: Option<LocalSteps>,
    /// The standard deviation of the noise of the sum over its sensitivity; none without privacy.
    pub noise: Option<f64>,
    /// After this time without a word from a member the board goes on without it.
    pub timeout: f64,
}

impl GopaConfig {
    /// How many numbers are summed: columns, or the bins of one.
    pub fn numbers(&self) -> u32 {
        match self.goal {
            Goal::Histogram { bins } => bins,
            Goal::Mean | Goal::Sum => self.columns,
        }
    }

    /// The bounds of one row's part of a number that is summed: a count moves by one.
    fn part(&self) -> Bounds {
        if let Some(LocalSteps { clip, .. }) = self.learns {
            return Bounds { low: -clip, high: clip };
        }
        match self.goal {
            Goal::Histogram { .. } => Bounds { low: 0.0, high: 1.0 },
            Goal::Mean | Goal::Sum => self.range,
        }
    }

    /// How far a contribution can move before it is rounded, in the L2 norm: the range in each column; of a histogram one count falls and another rises.
    fn reach(&self) -> f64 {
        if let Some(steps) = self.learns {
            return steps.reach();
        }
        match self.goal {
            Goal::Histogram { .. } => std::f64::consts::SQRT_2.next_up(),
            Goal::Mean | Goal::Sum => {
                (self.range.high - self.range.low).next_up() * f64::from(self.columns).sqrt().next_up()
            }
        }
    }
}

/// Why there is no such sum.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum BadGopa {
    /// Too few.
    #[error("{0} members; accepted: {MEMBERS_MIN} and more, since of two each would see the other's values")]
    Members(u32),
    /// No round, no column, no neighbour, or a threshold that nobody reaches.
    #[error(
        "{0} out of range; accepted: rounds and columns from 1, one column and bins from 2 for a histogram, neighbours from 1 to all others, a \
         threshold from 1 to neighbours, and a number that finishes up to all members"
    )]
    OutOfRange(&'static str),
    /// Not a range.
    #[error("a range from {0} to {1}; accepted: two finite numbers, the first below the second")]
    Range(f64, f64),
    /// Noise that no grid holds.
    #[error("noise of {0} times the range on the sum; accepted: at most 2^20, that is a larger epsilon")]
    Loud(f64),
    /// Not a time.
    #[error("a time-out of {0}; accepted: a finite number above zero")]
    Timeout(f64),
}

/// A checked sum under pads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gopa {
    pub(super) config: GopaConfig,
    grid: Grid,
}

impl Gopa {
    /// Checks the hyper-parameters.
    pub fn new(config: GopaConfig) -> Result<Gopa, BadGopa> {
        let GopaConfig { members, finishing, others, neighbours, threshold, rounds, columns, range, .. } = config;
        if members < MEMBERS_MIN {
            return Err(BadGopa::Members(members));
        }
        for (fits, what) in [
            ((MEMBERS_MIN..=members).contains(&finishing), "a number of members that finish"),
            ((1..finishing).contains(&others), "a number of shares of noise"),
            ((1..members).contains(&neighbours), "a number of neighbours"),
            ((1..=neighbours).contains(&threshold), "a threshold"),
            (rounds > 0 && rounds < 1 << 30, "a number of rounds"),
            (columns > 0 && columns < 1 << 20, "a number of columns"),
            (!matches!(config.goal, Goal::Histogram { bins } if bins < 2 || columns != 1), "bins of a histogram"),
            (config.board.0 < members, "a board that is no member"),
            (config.learns.is_none_or(|steps| steps.are_usable()), "local steps, their clip or their regularization"),
        ] {
            if !fits {
                return Err(BadGopa::OutOfRange(what));
            }
        }
        let width = range.high - range.low;
        if !(range.low.is_finite() && range.high.is_finite() && width.is_finite() && width > 0.0) {
            return Err(BadGopa::Range(range.low, range.high));
        }
        if !(config.timeout.is_finite() && config.timeout > 0.0) {
            return Err(BadGopa::Timeout(config.timeout));
        }
        let step = step(&config).ok_or(BadGopa::Loud(config.noise.unwrap_or(0.0)))?;
        let grid = Grid::new(step).map_err(|_| BadGopa::Range(range.low, range.high))?;
        let steps = largest(config.part()) / step;
        // A row's number of steps is exact.
        if steps < (1u64 << 50) as f64 { Ok(Gopa { config, grid }) } else { Err(BadGopa::Range(range.low, range.high)) }
    }

    /// Whether a sum can hold so many rows of every member.
    pub fn holds(&self, rows: u64) -> bool {
        let rows = if self.config.unit == RingUnit::Record { rows } else { 1 };
        let value = largest(self.config.part()) / self.grid.step() + 1.0;
        let noise = 64.0 * f64::from(1u32 << DEVIATION_LOG2);
        f64::from(self.config.members) * (rows as f64 * value + noise) < STEPS_MAX
    }

    /// How far a contribution can move when a record, or all of a member, is replaced by any other, in the L2 norm: what it is summed over, and half a step
    /// of rounding in each number and in both worlds.
    pub fn sensitivity(&self) -> f64 {
        let rounding = self.grid.step() * f64::from(self.config.numbers()).sqrt().next_up();
        (self.config.reach() + rounding.next_up()).next_up().next_up()
    }

    /// The standard deviation of the noise that each member adds to each number.
    pub fn share(&self) -> f64 {
        self.config.noise.map_or(0.0, |_| self.grid.step() * f64::from(1u32 << DEVIATION_LOG2))
    }

    /// What a member contributes, in steps of the grid, and how much it weighs in a mean. Where sums learn a model, it is what is known of it.
    pub fn contribution(&self, observations: Observations<'_>, known: &[f64]) -> (Vec<i64>, u64) {
        if let Some(steps) = self.config.learns {
            let update = steps.update(observations.points, known);
            return (update.into_iter().map(|value| self.grid.nearest(value).unwrap_or(0)).collect(), 1);
        }
        let range = self.config.range;
        let observations = Observations { bounds: Some(range), ..observations };
        let rows = observations.points.len() as u64;
        // Values within their bounds have fewer than 2^50 steps.
        let snap = |value: f64| self.grid.nearest(value).unwrap_or(0);
        let mut whole = vec![0i64; self.config.numbers() as usize];
        let mut parts = vec![0.0; whole.len()];
        match (self.config.goal, self.config.unit) {
            (Goal::Histogram { bins }, RingUnit::Record) => {
                let one = snap(1.0);
                let cells = observations.rows().flatten().map(|value| range.cell(bins, value));
                cells.for_each(|cell| whole[cell] = whole[cell].saturating_add(one));
            }
            // Each row on the grid, so that replacing it moves the sum by no more than it moves.
            (_, RingUnit::Record) => {
                for row in observations.rows() {
                    whole.iter_mut().zip(row).for_each(|(sum, value)| *sum = sum.saturating_add(snap(value)));
                }
            }
            (Goal::Histogram { bins }, RingUnit::Agent) => {
                let share = 1.0 / rows.max(1) as f64;
                observations.rows().flatten().for_each(|value| parts[range.cell(bins, value)] += share);
                whole.iter_mut().zip(parts).for_each(|(whole, part)| *whole = snap(part.min(1.0)));
            }
            (_, RingUnit::Agent) => {
                for row in observations.rows() {
                    parts.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
                }
                let mean = |sum: f64| range.clip(sum / rows.max(1) as f64);
                whole.iter_mut().zip(parts).for_each(|(whole, sum)| *whole = snap(mean(sum)));
            }
        }
        (whole, if self.config.unit == RingUnit::Record { rows } else { 1 })
    }

    /// What the sums of some rounds, of this weight together, say of the statistic.
    pub(super) fn estimate(&self, sums: &[f64], weight: u64, rounds: u32) -> Vec<f64> {
        if self.config.learns.is_some() {
            return sums.to_vec();
        }
        let over = match self.config.goal {
            Goal::Sum | Goal::Histogram { .. } => f64::from(rounds.max(1)),
            Goal::Mean => weight.max(1) as f64,
        };
        sums.iter().map(|sum| sum / over).collect()
    }

    /// The hyper-parameters.
    pub fn config(&self) -> GopaConfig {
        self.config
    }

    /// A sum in Z_2^64, as a number.
    pub fn value(&self, sum: u64) -> f64 {
        self.grid.value(from_ring(sum))
    }

    /// The standard deviation of the estimate when everyone finishes and all together weigh this in a round, Euclidean over all its numbers; zero
    /// without noise.
    pub fn deviation(&self, weight: u64) -> f64 {
        let (members, rounds) = (f64::from(self.config.members), self.config.rounds);
        let all = self.share() * libm::sqrt(members * f64::from(rounds) * f64::from(self.config.numbers()));
        self.estimate(&[all], weight * u64::from(rounds), rounds)[0]
    }
}

fn largest(range: Bounds) -> f64 {
    range.low.abs().max(range.high.abs())
}

/// The distance of the grid's points: so that shares of 2^24 steps, `others` of them, make up the noise of the sum. None where noise is too
/// large for its own grid.
fn step(config: &GopaConfig) -> Option<f64> {
    let part = config.part();
    let Some(noise) = config.noise else {
        let steps = if config.learns.is_some() { STEPS_OF_MODELS } else { STEPS_WITHOUT_NOISE };
        return Some((part.high - part.low) / steps);
    };
    // step 2^24 sqrt(h) = noise (reach + step sqrt(d)), up.
    let steps = f64::from(1u32 << DEVIATION_LOG2) * f64::from(config.others).sqrt();
    let rounding = noise * f64::from(config.numbers()).sqrt();
    let is_usable = noise > 0.0 && rounding < steps / 16.0;
    is_usable.then(|| noise * config.reach() / (steps - rounding) * (1.0 + 1e-12))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_that_make_no_sum_are_refused() {
        let good = GopaConfig {
            members: 8,
            finishing: 8,
            others: 7,
            neighbours: 4,
            threshold: 2,
            rounds: 1,
            board: PeerId(0),
            columns: 2,
            range: Bounds { low: -1.0, high: 3.0 },
            unit: RingUnit::Record,
            goal: Goal::Sum,
            learns: None,
            noise: Some(3.0),
            timeout: 5.0,
        };
        assert!(Gopa::new(good).is_ok());
        let nan = f64::NAN;
        for bad in [
            GopaConfig { members: 2, ..good },
            GopaConfig { finishing: 9, ..good },
            GopaConfig { others: 8, ..good },
            GopaConfig { neighbours: 8, ..good },
            GopaConfig { neighbours: 0, ..good },
            GopaConfig { threshold: 5, ..good },
            GopaConfig { threshold: 0, ..good },
            GopaConfig { rounds: 0, ..good },
            GopaConfig { columns: 0, ..good },
            GopaConfig { board: PeerId(8), ..good },
            GopaConfig { goal: Goal::Histogram { bins: 4 }, ..good },
            GopaConfig { goal: Goal::Histogram { bins: 1 }, columns: 1, ..good },
            GopaConfig { range: Bounds { low: 1.0, high: 1.0 }, ..good },
            GopaConfig { range: Bounds { low: nan, high: 1.0 }, ..good },
            GopaConfig { noise: Some(0.0), ..good },
            GopaConfig { noise: Some(1e9), ..good },
            GopaConfig { noise: Some(nan), ..good },
            GopaConfig { timeout: 0.0, ..good },
        ] {
            assert!(Gopa::new(bad).is_err(), "{bad:?}");
        }
        let gopa = Gopa::new(good).expect("good parameters");
        assert!(gopa.holds(1_000_000) && !gopa.holds(u64::MAX / 2));
    }
}
