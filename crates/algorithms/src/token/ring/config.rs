//! The hyper-parameters of a ring, and what follows from them.

use crate::{Bounds, Observations};
use sottovoce_core::PeerId;
use sottovoce_core::wire::NUMBER_MAX;
use sottovoce_privacy::{Event, Shares, reissue_law};
use thiserror::Error;

/// The grid is so much finer than the range of a contribution,
pub(super) const GRID_BITS: i32 = 20;

/// and a token is at most so many ranges; beyond it begins at the other end, so that none is ever refused for its size. Sums on the grid are exact.
pub(super) const RANGES_MAX: f64 = (1u64 << 31) as f64;

/// Noise of more ranges than this would carry a token beyond its bound.
const NOISE_MAX: f64 = 1e6;

/// The least number of members: of two, each would see the other.
pub const MEMBERS_MIN: u32 = 3;

/// Who makes noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingNoise {
    /// One hop of every n - 1.
    One,
    /// Every hop, a share; Gaussian only.
    All,
}

/// Who learns the sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reveal {
    /// Everyone.
    Broadcast,
    /// The last holder.
    Last,
}

/// What a sum is made of: which of a member's values may be replaced for one guarantee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingUnit {
    /// One row: a member contributes the sum of its rows.
    Record,
    /// All rows of a member: it contributes their mean.
    Agent,
}

/// What the members want to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingGoal {
    /// The sum of what members contribute in a round, over rounds on average.
    Sum,
    /// That sum over the number of what was contributed: of rows, or of members.
    Mean,
}

/// The hyper-parameters, the same for all agents.
///
/// | name | symbol | range | default |
/// |---|---|---|---|
/// | members | n | 3 and above | everyone |
/// | rounds | K | 1 and above | 1 |
/// | range | Delta | low < high, finite; none without privacy | the task's |
/// | unit | | record, agent | record |
/// | goal | | sum, mean | the task's statistic |
/// | law | sigma_loc | Laplace or Gaussian; none without privacy | the plan's |
/// | noise | | one, all | one |
/// | reveal | | broadcast, last | broadcast |
/// | reissues | | members in a row that may be passed over; with a law 0 or 1 | 1 |
/// | timeout | | above zero, in wake intervals | a guess: 100 |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RingConfig {
    /// How many members there are, numbered in the ring's order.
    pub members: u32,
    /// How often the token goes round.
    pub rounds: u32,
    /// Values are moved into this.
    pub range: Option<Bounds>,
    /// What a member contributes.
    pub unit: RingUnit,
    /// What is computed of the sum.
    pub goal: RingGoal,
    /// How one contribution is protected; none without privacy.
    pub law: Option<Event>,
    /// Who makes noise.
    pub noise: RingNoise,
    /// Who learns the sum.
    pub reveal: Reveal,
    /// How many members in a row a holder may pass over: with a law one or none; else any number, or none.
    pub reissues: u32,
    /// After this time without a word from its successor a holder passes it over.
    pub timeout: f64,
}

/// Why there is no such ring.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum BadRing {
    /// Too few.
    #[error("a ring of {0} members; accepted: {MEMBERS_MIN} and more, since of two each would see the other's values")]
    Members(u32),
    /// No round.
    #[error("a ring of no rounds; accepted: 1 and more")]
    Rounds,
    /// Not a range.
    #[error("a range from {0} to {1}; accepted: two finite numbers, the second above the first by 1e-300 to 1e65")]
    Range(f64, f64),
    /// Noise that does not add up.
    #[error(
        "noise by all with a law that is not Gaussian; accepted: gaussian, since shares of Laplace noise do not add up to Laplace noise"
    )]
    Shares,
    /// Noise for values without a bound.
    #[error("noise for values without bounds; accepted: a range")]
    Boundless,
    /// More noise than a token can carry.
    #[error("noise of {0} ranges; accepted: at most {NOISE_MAX}, that is a larger epsilon")]
    Loud(f64),
    /// A law that hides no size.
    #[error("noise of a law that a sum cannot have; accepted: laplace, gaussian")]
    Law,
    /// More reissues than anything is proved of.
    #[error(
        "tokens issued past {0} members in a row; accepted with noise: 0 or 1, since each may show contributions once more"
    )]
    Reissues(u32),
    /// Not a time.
    #[error("a time-out of {0}; accepted: a finite number above zero")]
    Timeout(f64),
}

/// A checked ring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ring {
    pub(super) config: RingConfig,
    /// The distance of the grid's points: a power of two; none without noise.
    pub(super) grid: Option<f64>,
}

impl Ring {
    /// Checks the hyper-parameters.
    pub fn new(config: RingConfig) -> Result<Ring, BadRing> {
        let RingConfig { members, rounds, range, law, noise, reissues, timeout, .. } = config;
        if members < MEMBERS_MIN {
            return Err(BadRing::Members(members));
        }
        if rounds == 0 {
            return Err(BadRing::Rounds);
        }
        match (law, noise) {
            (Some(_), _) if range.is_none() => return Err(BadRing::Boundless),
            (Some(Event::Laplace { .. }), RingNoise::All) => return Err(BadRing::Shares),
            (Some(Event::Gaussian { noise_multiplier } | Event::Laplace { noise_multiplier }), _)
                if noise_multiplier > NOISE_MAX =>
            {
                return Err(BadRing::Loud(noise_multiplier));
            }
            (Some(Event::Gaussian { .. } | Event::Laplace { .. }) | None, _) => {}
            _ => return Err(BadRing::Law),
        }
        if law.is_some() && reissues > 1 {
            return Err(BadRing::Reissues(reissues));
        }
        if !(timeout.is_finite() && timeout > 0.0) {
            return Err(BadRing::Timeout(timeout));
        }
        let grid = range.map(grid).transpose()?;
        // What nobody hides need not be rounded.
        Ok(Ring { config, grid: grid.filter(|_| law.is_some()) })
    }

    /// How far a contribution can move when a record, or all of a member, is replaced by any other: the range, and what rounding to the grid
    /// adds. Values without bounds are never protected.
    pub fn sensitivity(&self) -> f64 {
        self.config.range.zip(self.grid).map_or(1.0, |(range, grid)| range.high - range.low + grid)
    }

    /// How many hops there are.
    pub fn hops(&self) -> u64 {
        u64::from(self.config.members) * u64::from(self.config.rounds)
    }

    /// Hops with noise of sigma_loc, when nobody is passed over: ceil(Kn / (n - 1)).
    pub fn noisy_hops(&self) -> u64 {
        noisy_hops(self.config.members, self.config.rounds)
    }

    /// Hops from this one to the next that makes noise of sigma_loc: the counter a that travels with a token. It follows from the hop alone, so that nobody can put noise
    /// off, and every token of a hop has it.
    pub(super) fn silent(&self, hop: u64) -> u32 {
        let others = u64::from(self.config.members) - 1;
        match self.config.noise {
            RingNoise::One => ((others - (hop - 1) % others) % others) as u32,
            RingNoise::All if hop == 1 => 0,
            RingNoise::All => others as u32 - 1,
        }
    }

    /// Whether the last hop makes no noise of sigma_loc, so that a sum that is told to everyone has some added.
    pub(super) fn is_topped_up(&self) -> bool {
        self.config.reveal == Reveal::Broadcast && self.silent(self.hops()) > 0
    }

    /// The law of the noise of whoever issues a token again, and of whoever is next.
    pub(super) fn reissue_law(&self) -> Option<Event> {
        self.config.law.map(reissue_law)
    }

    /// How often each contribution may be seen once more because tokens were issued again; charged together with it.
    pub(super) fn seen_again(&self) -> usize {
        match (self.config.law, self.config.reissues, self.config.noise) {
            (None, _, _) | (_, 0, _) => 0,
            (_, _, RingNoise::One) => Shares::One.seen_again(),
            (_, _, RingNoise::All) => Shares::All.seen_again(),
        }
    }

    /// The variance of the sum over that of one noise of sigma_loc, when nobody is passed over.
    pub fn variance(&self) -> f64 {
        let (hops, others) = (self.hops() as f64, f64::from(self.config.members) - 1.0);
        let along = match self.config.noise {
            RingNoise::One => self.noisy_hops() as f64,
            RingNoise::All => hops / others + 1.0,
        };
        along + f64::from(u8::from(self.is_topped_up()))
    }

    /// What a member contributes, above the lower end of the range and on the grid where it is protected, and how much it weighs in a mean.
    pub fn contribution(&self, observations: Observations<'_>) -> (f64, u64) {
        let observations = Observations { bounds: self.config.range, ..observations };
        let rows = observations.points.len() as u64;
        let values = || observations.rows().flatten();
        match self.config.unit {
            // Each row on the grid, so that replacing it moves the sum by no more than it moves.
            RingUnit::Record => (values().map(|value| self.snap(value - self.origin())).sum(), rows),
            RingUnit::Agent => {
                let mean = values().sum::<f64>() / rows.max(1) as f64;
                (self.snap(self.config.range.map_or(mean, |range| range.clip(mean)) - self.origin()), 1)
            }
        }
    }

    /// Where contributions begin: what is protected is how far they are above the lower end of the range.
    fn origin(&self) -> f64 {
        self.config.range.zip(self.grid).map_or(0.0, |(range, _)| range.low)
    }

    /// What a sum over all rounds, with its weight, says of the statistic.
    pub fn estimate(&self, sum: f64, weight: u64) -> f64 {
        self.scaled(sum + self.origin() * weight as f64, weight)
    }

    fn scaled(&self, sum: f64, weight: u64) -> f64 {
        match self.config.goal {
            RingGoal::Sum => sum / f64::from(self.config.rounds),
            RingGoal::Mean => sum / weight.max(1) as f64,
        }
    }

    /// The standard deviation of the estimate, when nobody is passed over and all members together weigh this in a round; zero without noise.
    pub fn deviation(&self, weight: u64) -> f64 {
        let local = match self.config.law {
            Some(Event::Gaussian { noise_multiplier }) => noise_multiplier,
            Some(Event::Laplace { noise_multiplier }) => std::f64::consts::SQRT_2 * noise_multiplier,
            _ => 0.0,
        };
        let deviation = libm::sqrt(self.variance()) * local * self.sensitivity();
        self.scaled(deviation, weight * u64::from(self.config.rounds))
    }

    /// The nearest point of the grid.
    pub(super) fn snap(&self, value: f64) -> f64 {
        self.grid.map_or(value, |grid| libm::rint(value / grid) * grid)
    }

    /// The largest size of a token.
    pub(super) fn most(&self) -> f64 {
        self.grid.map_or(NUMBER_MAX, |grid| RANGES_MAX * libm::ldexp(grid, GRID_BITS))
    }

    /// The same number round a circle, on which a token never grows beyond its bound. Where nothing is protected there is no circle.
    pub(super) fn wrap(&self, value: f64) -> f64 {
        let around = 2.0 * self.most();
        self.grid.map_or(value, |_| value - around * libm::rint(value / around))
    }

    pub(super) fn position(&self, hop: u64) -> PeerId {
        PeerId(((hop - 1) % u64::from(self.config.members)) as u32)
    }

    pub(super) fn round(&self, hop: u64) -> u32 {
        ((hop - 1) / u64::from(self.config.members)) as u32 + 1
    }

    /// The law of a share of noise by all.
    pub(super) fn share(&self) -> Option<Event> {
        let others = f64::from(self.config.members) - 1.0;
        match (self.config.noise, self.config.law) {
            (RingNoise::All, Some(Event::Gaussian { noise_multiplier })) => {
                Some(Event::Gaussian { noise_multiplier: noise_multiplier / others.sqrt() })
            }
            _ => None,
        }
    }
}

/// ceil(Kn / (n - 1)) = floor((Kn - 1) / (n - 1)) + 1.
pub fn noisy_hops(members: u32, rounds: u32) -> u64 {
    (u64::from(members) * u64::from(rounds)).div_ceil(u64::from(members) - 1)
}

/// The grid of a range: a power of two, of which the smallest and the largest token are numbers.
fn grid(range: Bounds) -> Result<f64, BadRing> {
    let Bounds { low, high } = range;
    let width = high - low;
    let is_range = low.is_finite() && high.is_finite() && width > 0.0 && low.abs().max(high.abs()) < NUMBER_MAX;
    let grid = if is_range { libm::ldexp(1.0, libm::ilogb(width) - GRID_BITS) } else { 0.0 };
    if grid >= f64::MIN_POSITIVE && 2.0 * RANGES_MAX * width <= NUMBER_MAX {
        Ok(grid)
    } else {
        Err(BadRing::Range(low, high))
    }
}
