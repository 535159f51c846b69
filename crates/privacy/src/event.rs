//! What was done to the data when a value left, as data.

use crate::{round::div_up, sensitivity::Norm};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// How a released value was made. Accountants read events, and from whom they protect.
///
/// | event | parameter | pure epsilon |
/// |---|---|---|
/// | `reveal` | none | infinity |
/// | `laplace` | `noise_multiplier` = scale / Delta_1, finite and positive | 1 / `noise_multiplier` |
/// | `gaussian` | `noise_multiplier` = sigma / Delta_2, finite and positive | infinity (it needs a delta) |
/// | `gamma-norm` | `noise_multiplier` = scale / Delta_2, finite and positive | 1 / `noise_multiplier` |
/// | `randomized-response` | `epsilon`, finite and positive | `epsilon` |
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mechanism", rename_all = "kebab-case")]
pub enum Event {
    /// The exact value left, without noise: epsilon = infinity.
    Reveal,
    /// Independent Laplace noise on each coordinate of a vector with L1 sensitivity Delta_1.
    Laplace {
        /// Scale / Delta_1.
        noise_multiplier: f64,
    },
    /// Independent noise of the continuous Gaussian law on each coordinate of a vector with L2 sensitivity Delta_2.
    Gaussian {
        /// Sigma / Delta_2.
        noise_multiplier: f64,
    },
    /// Noise with density proportional to exp(-|b|_2 / scale) on a vector with L2 sensitivity Delta_2: a norm that
    /// follows the Gamma law, in a uniform direction.
    GammaNorm {
        /// Scale / Delta_2.
        noise_multiplier: f64,
    },
    /// Bits, each told truly with probability e^epsilon / (1 + e^epsilon).
    RandomizedResponse {
        /// Epsilon.
        epsilon: f64,
    },
}

/// A charge that no mechanism makes.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum BadCharge {
    /// A parameter is not a finite positive number.
    #[error("a charge's {parameter} is {value}: it must be a finite number above 0")]
    Parameter {
        /// Which one.
        parameter: &'static str,
        /// What it is.
        value: f64,
    },
    /// A charge has a key that its mechanism does not have, or lacks one that it has.
    #[error("a charge's {key} is {problem} with the mechanism {mechanism}")]
    Key {
        /// Which one.
        key: &'static str,
        /// "unknown" or "missing".
        problem: &'static str,
        /// Of which mechanism.
        mechanism: &'static str,
    },
    /// A count is zero, or the counts do not fit a 64-bit number.
    #[error("a charge's count is {count}: it must be at least 1, and all of a ledger's below 2^64 together")]
    Count {
        /// What it is.
        count: u64,
    },
}

impl Event {
    /// Refuses parameters that no mechanism has.
    pub fn check(self) -> Result<Self, BadCharge> {
        let (parameter, value) = match self {
            Event::Reveal => return Ok(self),
            Event::Laplace { noise_multiplier }
            | Event::Gaussian { noise_multiplier }
            | Event::GammaNorm { noise_multiplier } => ("noise_multiplier", noise_multiplier),
            Event::RandomizedResponse { epsilon } => ("epsilon", epsilon),
        };
        if value.is_finite() && value > 0.0 { Ok(self) } else { Err(BadCharge::Parameter { parameter, value }) }
    }

    /// The norm that its sensitivity is measured in. (One bit that moves is 1 in either.)
    pub fn norm(self) -> Norm {
        match self {
            Event::Reveal | Event::Laplace { .. } | Event::RandomizedResponse { .. } => Norm::L1,
            Event::Gaussian { .. } | Event::GammaNorm { .. } => Norm::L2,
        }
    }

    /// The epsilon of the guarantee with delta = 0, rounded up; infinity where there is none.
    pub fn pure_epsilon(self) -> f64 {
        match self {
            Event::Reveal | Event::Gaussian { .. } => f64::INFINITY,
            Event::Laplace { noise_multiplier } | Event::GammaNorm { noise_multiplier } => {
                div_up(1.0, noise_multiplier)
            }
            Event::RandomizedResponse { epsilon } => epsilon,
        }
    }
}

/// Who sees a release. The default adversary sees every message (local differential privacy).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Audience {
    /// Everyone, the eavesdropper on every link included.
    #[default]
    Everyone,
    /// Any one other member, who sees what it is sent and nothing else. The guarantee is the accountant's that names this observer.
    OneMember,
    /// Everyone, and as many members that put together what they know as the accountant names. The guarantee is that accountant's alone.
    Coalition,
    /// The aggregator alone.
    Aggregator,
    /// The servers.
    Servers,
    /// The board, and so everyone who reads it.
    Board,
}

impl Audience {
    /// Whether a charge is worth nothing but to the accountant that names this observer.
    pub fn is_named_by_its_accountant(self) -> bool {
        matches!(self, Audience::OneMember | Audience::Coalition)
    }
}

/// Which list of a plan a release belongs to. Each has an order of its own; which is next is for a public clock to say, never for data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Track {
    /// Models, and whatever else is an algorithm's main matter.
    #[default]
    Models,
    /// Losses, where a graph is learned.
    Losses,
    /// Contributions to a token.
    Token,
    /// Contributions to a token that are seen once more, because a token was issued again.
    Reissues,
    /// Contributions to a sum under masks that cancel.
    Sums,
}

impl Track {
    /// All of them.
    pub const ALL: [Track; 5] = [Track::Models, Track::Losses, Track::Token, Track::Reissues, Track::Sums];

    /// From whom its releases are protected, at the least: a plan with a token or a sum on it can be made by an accountant that names this observer, and by
    /// no other.
    pub fn audience(self) -> Audience {
        match self {
            Track::Models | Track::Losses => Audience::Everyone,
            Track::Token | Track::Reissues => Audience::OneMember,
            Track::Sums => Audience::Coalition,
        }
    }

    /// Whether it is the track of a plan that has one only, which a ledger need not name.
    pub(crate) fn is_models(&self) -> bool {
        *self == Track::Models
    }
}
