//! A walk of a token over the complete graph, what is public about it, and whom its guarantees are against.

use super::series::{Circle, Counted};
use super::spacing::Spacing;
use crate::{Audience, Event, Ledger};
use std::fmt;
use std::sync::{Mutex, PoisonError};
use thiserror::Error;

/// Why there is no such network.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum BadNetwork {
    /// A number is out of range.
    #[error("the {what} is {value}: it must be {accepted}")]
    OutOfRange {
        /// Which one.
        what: &'static str,
        /// What it is.
        value: f64,
        /// What it may be.
        accepted: &'static str,
    },
    /// Everyone but the protected member colludes, or is away.
    #[error("{colluders} colluding members of {agents} present leave nobody to hide among: at most {most} may collude")]
    TooManyColluders {
        /// How many collude.
        colluders: u64,
        /// How many members are present, at least.
        agents: u64,
        /// How many may.
        most: u64,
    },
}

/// Whom a guarantee is against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observer {
    /// How many members pool what they see.
    pub colluders: u64,
    /// Whether they know who held the token at every hop.
    pub knows_path: bool,
    /// Whether they are told the outcome.
    pub told_outcome: bool,
}

impl fmt::Display for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.colluders {
            1 => write!(f, "any one other member")?,
            c => write!(f, "any {c} colluding members")?,
        }
        let path = if self.knows_path { "knowing the token's path" } else { "the token's path being hidden from them" };
        write!(f, ", {path}, {}", if self.told_outcome { "told the outcome" } else { "not told the outcome" })
    }
}

/// A walk of a token over the complete graph: at each hop the holder is drawn uniformly among the members present, the one before
/// included. All of it is public.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Walk {
    pub(super) agents: u64,
    pub(super) hops: u64,
    pub(super) contributions: u64,
    pub(super) colluders: u64,
    pub(super) present: f64,
    pub(super) told_outcome: bool,
    pub(super) tokens: u64,
    pub(super) reissued: bool,
}

impl Walk {
    /// A walk of `hops` hops over `agents` members, each of whom contributes at its first `contributions` visits and adds noise
    /// alone at later ones. One curious member, everyone present, the outcome told to all.
    pub fn new(agents: u64, hops: u64, contributions: u64) -> Result<Self, BadNetwork> {
        let at_least = |what, value: u64, least: u64, accepted| match value >= least {
            true => Ok(()),
            false => Err(BadNetwork::OutOfRange { what, value: value as f64, accepted }),
        };
        at_least("number of members", agents, 3, "at least 3: with two the other one sees every contribution")?;
        at_least("number of hops", hops, 1, "at least 1")?;
        at_least("number of contributions", contributions, 1, "at least 1: without a bound there is no guarantee")?;
        Ok(Walk {
            agents,
            hops,
            contributions,
            colluders: 1,
            present: 1.0,
            told_outcome: true,
            tokens: 1,
            reissued: false,
        })
    }

    /// The same against so many members who pool what they see.
    pub fn with_colluders(self, colluders: u64) -> Result<Self, BadNetwork> {
        if colluders == 0 {
            let accepted = "at least 1: a guarantee is against somebody";
            return Err(BadNetwork::OutOfRange { what: "number of colluding members", value: 0.0, accepted });
        }
        Walk { colluders, ..self }.checked()
    }

    /// The same with at least this share of the members present at every hop, the protected one and those who collude among them; how
    /// many are may change on the way.
    pub fn with_present(self, present: f64) -> Result<Self, BadNetwork> {
        if !(present > 0.0 && present <= 1.0) {
            let accepted = "above 0 and at most 1";
            return Err(BadNetwork::OutOfRange { what: "share of members present", value: present, accepted });
        }
        Walk { present, ..self }.checked()
    }

    /// The same with an outcome that only its last holder learns.
    pub fn untold(self) -> Self {
        Walk { told_outcome: false, ..self }
    }

    /// The same with so many tokens at once, each of which makes as many hops by itself, with a bound on contributions of its own: costs of paths
    /// that are drawn independently add up.
    pub fn with_tokens(self, tokens: u64) -> Result<Self, BadNetwork> {
        match tokens {
            0 => Err(BadNetwork::OutOfRange { what: "number of tokens", value: 0.0, accepted: "at least 1" }),
            _ => Ok(Walk { tokens, ..self }),
        }
    }

    /// The same with tokens that may be issued again, past members that are gone, where contributions are spaced for that:
    /// [`Reissued`](super::Reissued).
    pub fn with_reissues(self) -> Result<Self, BadNetwork> {
        match Spacing::of(self.agents, self.hops) {
            Some(_) => Ok(Walk { reissued: true, ..self }),
            None => {
                let (what, accepted) = ("number of hops", "at least 2 where tokens may be issued again");
                Err(BadNetwork::OutOfRange { what, value: self.hops as f64, accepted })
            }
        }
    }

    /// How contributions are spaced where tokens may be issued again.
    pub fn spacing(&self) -> Option<Spacing> {
        Spacing::of(self.agents, self.hops).filter(|_| self.reissued)
    }

    fn checked(self) -> Result<Self, BadNetwork> {
        let (agents, colluders) = (self.members_present(), self.colluders);
        match colluders.saturating_add(2) <= agents {
            true => Ok(self),
            false => Err(BadNetwork::TooManyColluders { colluders, agents, most: agents.saturating_sub(2) }),
        }
    }

    /// How many members there are.
    pub fn agents(&self) -> u64 {
        self.agents
    }

    /// How many hops.
    pub fn hops(&self) -> u64 {
        self.hops
    }

    /// At how many visits of one token a member contributes, at most.
    pub fn contributions(&self) -> u64 {
        self.contributions
    }

    /// How many tokens there are.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The least share of the members that is present.
    pub fn present(&self) -> f64 {
        self.present
    }

    /// Whom its guarantees are against.
    pub fn observer(&self) -> Observer {
        Observer { colluders: self.colluders, knows_path: true, told_outcome: self.told_outcome }
    }

    /// How many members are present at least, rounded down: fewer see more.
    fn members_present(&self) -> u64 {
        (self.present * self.agents as f64) as u64
    }

    /// The probability that a given member is next: p; and that one who colludes is: r.
    pub(super) fn visits(&self) -> (f64, f64) {
        let members = self.members_present() as f64;
        (1.0 / members, self.colluders as f64 / members)
    }

    /// Whether as many members are present at every hop.
    pub(super) fn is_steady(&self) -> bool {
        self.present == 1.0
    }

    /// The walk to count hop by hop; none if it has more than so many.
    pub(super) fn counted(&self, hops_max: u64) -> Option<Counted> {
        let circle = (self.hops <= hops_max).then(|| Circle::new(self.hops as usize))?;
        Some(Counted { circle, told_outcome: self.told_outcome, visits: self.visits() })
    }

    /// What a ledger of contributions to the token costs, from what they cost with this noise multiplier. Charges that this walk does not cover
    /// have no guarantee.
    ///
    /// # Privacy
    /// With unequal noise the least counts. A member that made fewer contributions than it may is charged for all of them: how many it made is for
    /// the path to say.
    pub(super) fn epsilon(&self, ledger: &Ledger, at: impl FnOnce(f64) -> f64) -> f64 {
        if ledger.releases() == 0 {
            return 0.0;
        }
        let least = ledger.charges().try_fold(f64::INFINITY, |least, charge| match charge.event {
            Event::Gaussian { noise_multiplier } if charge.audience == Audience::OneMember => {
                Some(least.min(noise_multiplier))
            }
            _ => None,
        });
        let covered = ledger.releases() <= self.contributions.saturating_mul(self.tokens);
        least.filter(|_| covered).map_or(f64::INFINITY, at)
    }
}

/// The last answer, for the ledgers of many members, who differ only in how often they were visited.
#[derive(Debug, Default)]
pub(super) struct KnownEpsilon(Mutex<Option<[f64; 3]>>);

impl KnownEpsilon {
    /// The epsilon of a noise multiplier and a delta.
    pub fn or(&self, multiplier: f64, delta: f64, find: impl FnOnce() -> f64) -> f64 {
        // A thread that panicked while it held the lock has left a whole answer, or none.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match *known {
            Some([a, b, epsilon]) if a == multiplier && b == delta => epsilon,
            _ => {
                let epsilon = find();
                *known = Some([multiplier, delta, epsilon]);
                epsilon
            }
        }
    }
}
