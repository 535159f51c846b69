//! The accountant of a member whose values are summed under pads. Proof: `proofs/gopa.md`.

use super::certificate;
use crate::account::{Accountant, Tight};
use crate::round::{add_up, mul_up};
use crate::{Audience, Charge, Ledger};
use thiserror::Error;

/// The least number of members: of two, each would see the other.
const MEMBERS_MIN: u32 = 3;

/// How far the law of summed discrete Gaussians is from the rounded continuous one, per number: in ln of probabilities, within 64 standard
/// deviations. 64^2 / (24 S^2), S^2 = 2 2^48 steps^2 at least.
const APART: f64 = 3.1e-13;

/// A plan may have the graph's failure cost at most this part of delta.
const GRAPH_PART: f64 = 1.0 / 16.0;

/// A round that few finish is void, and that should be rare: how often, at most, by the choice of neighbours alone.
const VOID_MAX: f64 = 0.01;

/// Public facts of a sum under pads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GopaConfig {
    /// n.
    pub members: u32,
    /// How many members may collude, besides any one that is curious by itself: (1 - honest) n.
    pub colluders: u32,
    /// With fewer that finish nobody opens anything: present n.
    pub finishing: u32,
    /// How many others each member picks: k.
    pub neighbours: u32,
    /// How many sums there are, with the same picks.
    pub rounds: u32,
    /// Numbers in each.
    pub numbers: u32,
}

/// The accountant of a member whose values are summed under pads, against everyone, any one member and the colluding ones. A charge stands for one
/// contribution; its law is that of all noise that this observer does not know: of `others` shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gopa {
    config: GopaConfig,
    threshold: u32,
    graph_delta: f64,
}

/// Why there is no guarantee.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum BadGopa {
    /// Too few.
    #[error("{0} members; accepted: {MEMBERS_MIN} and more, since of two each would see the other's values")]
    Members(u32),
    /// Nobody is left.
    #[error(
        "{colluders} colluding members and {} that may be gone leave fewer than two honest ones of {members} beside the one that looks; accepted: a \
         larger privacy.honest or privacy.present", .members - .finishing
    )]
    Few {
        /// How many may collude.
        colluders: u32,
        /// How many finish at least.
        finishing: u32,
        /// Of how many.
        members: u32,
    },
    /// An isolated member, or two parts.
    #[error(
        "with {neighbours} neighbours the {honest} honest members that surely finish may be cut in two with probability {probability:.1e}, and delta has \
         room for {room:.1e}; accepted: more privacy.neighbours, or none, for as many as it takes"
    )]
    Disconnected {
        /// k.
        neighbours: u32,
        /// How many.
        honest: u32,
        /// The bound.
        probability: f64,
        /// What it may be.
        room: f64,
    },
    /// Own masks are not safe.
    #[error(
        "with {neighbours} neighbours, {coalition} members that look together may hold all shares of somebody's own mask, with a probability above \
         {room:.1e}; accepted: more privacy.neighbours, or none, for as many as it takes"
    )]
    Held {
        /// k.
        neighbours: u32,
        /// How many look together.
        coalition: u32,
        /// What the probability may be.
        room: f64,
    },
    /// No round, or no number.
    #[error("a sum of nothing; accepted: one round and one number at least")]
    Nothing,
}

impl Gopa {
    /// Certifies these facts: the least threshold for own masks with which graph and shares fail with at most a sixteenth of this delta.
    pub fn certified(config: GopaConfig, delta: f64) -> Result<Gopa, BadGopa> {
        let room = GRAPH_PART * delta;
        let cut = checked(config)?;
        let GopaConfig { neighbours, rounds, .. } = config;
        let probability = f64::from(rounds) * cut;
        // A delta that is no number allows nothing.
        let is_connected = probability <= 0.5 * room;
        if !is_connected {
            let honest = others(config);
            return Err(BadGopa::Disconnected { neighbours, honest, probability, room: 0.5 * room });
        }
        let fits = |threshold: &u32| probability + shares_failure(config, *threshold) <= room;
        match (1..=neighbours).find(fits) {
            Some(threshold) => Gopa::with_threshold(config, threshold),
            None => Err(BadGopa::Held { neighbours, coalition: config.colluders + 1, room: 0.5 * room }),
        }
    }

    /// The same with a threshold that is known: what a ledger's header says.
    pub fn with_threshold(config: GopaConfig, threshold: u32) -> Result<Gopa, BadGopa> {
        let cut = checked(config)?;
        let graph_delta = add_up(f64::from(config.rounds) * cut, shares_failure(config, threshold));
        Ok(Gopa { config, threshold, graph_delta })
    }

    /// The fewest neighbours that are certified, and with which rounds are rarely void because too few of somebody's picks finish.
    pub fn with_fewest_neighbours(config: GopaConfig, delta: f64) -> Result<Gopa, BadGopa> {
        let with = |neighbours: u32| Gopa::certified(GopaConfig { neighbours, ..config }, delta);
        let serves = |neighbours: u32| with(neighbours).is_ok_and(|gopa| gopa.void() <= VOID_MAX);
        let all = config.members.saturating_sub(1);
        checked(GopaConfig { neighbours: all, ..config })?;
        // More neighbours are better but for steps of the threshold: doubled until they serve, then the first that do from there back.
        let mut high = 2u32;
        while high < all && !serves(high) {
            high = high.saturating_mul(2);
        }
        let high = high.min(all);
        // Everyone always serves: a coalition of c holds c shares, and more than c others finish.
        with((high / 2..=high).find(|&neighbours| serves(neighbours)).unwrap_or(all))
    }

    /// The facts.
    pub fn config(&self) -> GopaConfig {
        self.config
    }

    /// So many of a member's picks together open its own mask.
    pub fn threshold(&self) -> u32 {
        self.threshold
    }

    /// How many honest members' shares of noise hide a contribution at least, its own among them: n_H - 1.
    pub fn others(&self) -> u32 {
        others(self.config)
    }

    /// The part of delta that the graph's failure costs.
    pub fn graph_delta(&self) -> f64 {
        self.graph_delta
    }

    /// A bound on the probability that somebody's own mask cannot be opened although enough members finish: the round is void then.
    pub fn void(&self) -> f64 {
        let GopaConfig { members, finishing, neighbours, .. } = self.config;
        f64::from(finishing) * certificate::fewer_finish(members, finishing, neighbours, self.threshold)
    }

    /// Against whom the guarantee holds.
    pub fn observer(&self) -> String {
        match self.config.colluders {
            0 => "everyone and any one member".to_owned(),
            1 => "everyone and up to 1 colluding member".to_owned(),
            colluders => format!("everyone and up to {colluders} colluding members"),
        }
    }

    /// The same observer, by another way of counting.
    pub fn by(self, accountant: &'static dyn Accountant) -> GopaBy {
        GopaBy { gopa: self, accountant }
    }

    /// What this observer has seen, as charges of its own, what is left of delta, and what is added to epsilon.
    fn seen(&self, ledger: &Ledger, delta: f64) -> (Ledger, f64, f64) {
        let charges = ledger.charges().map(|charge| match charge.audience {
            // PRIVACY: to this observer the law of the charge is that of a noise that it does not know, as a release's is to everyone.
            Audience::Coalition => Charge { audience: Audience::Everyone, ..*charge },
            _ => *charge,
        });
        let seen = Ledger::from_charges(charges).expect("charges of a ledger");
        let apart = mul_up(mul_up(APART, f64::from(self.config.numbers)), ledger.releases() as f64).next_up();
        let left = ((delta - self.graph_delta) * (1.0 - 2.0 * apart)).next_down();
        (seen, left, mul_up(2.0, apart))
    }

    fn account(&self, ledger: &Ledger, delta: f64, by: impl Fn(&Ledger, f64) -> f64) -> f64 {
        if ledger.releases() == 0 {
            return 0.0;
        }
        let (seen, left, more) = self.seen(ledger, delta);
        if left > 0.0 { add_up(by(&seen, left), more) } else { f64::INFINITY }
    }
}

impl Accountant for Gopa {
    fn epsilon(&self, ledger: &Ledger, delta: f64) -> f64 {
        self.account(ledger, delta, |seen, left| Tight.epsilon(seen, left))
    }

    fn rough(&self, ledger: &Ledger, delta: f64) -> f64 {
        self.account(ledger, delta, |seen, left| Tight.rough(seen, left))
    }
}

/// The accountant of a sum under pads that counts by another accountant than [`Tight`].
#[derive(Clone, Copy)]
pub struct GopaBy {
    gopa: Gopa,
    accountant: &'static dyn Accountant,
}

impl Accountant for GopaBy {
    fn epsilon(&self, ledger: &Ledger, delta: f64) -> f64 {
        self.gopa.account(ledger, delta, |seen, left| self.accountant.epsilon(seen, left))
    }

    fn rough(&self, ledger: &Ledger, delta: f64) -> f64 {
        self.gopa.account(ledger, delta, |seen, left| self.accountant.rough(seen, left))
    }
}

/// Honest members that surely finish, without one that looks: present n - (1 - honest) n - 1.
fn others(config: GopaConfig) -> u32 {
    config.finishing.saturating_sub(config.colluders).saturating_sub(1)
}

/// Refuses facts that make no sum; else the bound on a cut of one round.
fn checked(config: GopaConfig) -> Result<f64, BadGopa> {
    let GopaConfig { members, colluders, finishing, neighbours, rounds, numbers } = config;
    if members < MEMBERS_MIN {
        return Err(BadGopa::Members(members));
    }
    if rounds == 0 || numbers == 0 {
        return Err(BadGopa::Nothing);
    }
    if finishing > members || others(config) < 2 {
        return Err(BadGopa::Few { colluders, finishing: finishing.min(members), members });
    }
    Ok(certificate::disconnected(members, others(config), neighbours.min(members - 1)))
}

/// That somebody's own mask is in the coalition's hands: for every member, whatever the round.
fn shares_failure(config: GopaConfig, threshold: u32) -> f64 {
    let GopaConfig { members, colluders, neighbours, .. } = config;
    f64::from(members) * certificate::held(members, colluders + 1, neighbours.min(members - 1), threshold)
}
