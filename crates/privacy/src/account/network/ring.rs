//! A sum by a token that goes round a ring. Proof: `proofs/ring.md`.

use crate::account::{Accountant, Tight};
use crate::{Audience, Charge, Event, Ledger, Track};
use thiserror::Error;

/// Who makes noise on a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shares {
    /// One hop of every n - 1 makes noise of the charged law.
    One,
    /// Every hop makes the share N(0, sigma^2 / (n - 1)) of it.
    All,
}

impl Shares {
    /// How often a contribution may be seen once more, each time under noise of [`reissue_law`], because tokens were issued again.
    pub fn seen_again(self) -> usize {
        match self {
            // When the token is issued past the member itself, and past the one that made the noise.
            Shares::One => 2,
            Shares::All => 1,
        }
    }
}

/// The law of the noise that a token gets when it is issued again, of the law of one noise of sigma_loc: half as much is seen through it.
pub fn reissue_law(law: Event) -> Event {
    match law {
        Event::Gaussian { noise_multiplier } => {
            Event::Gaussian { noise_multiplier: noise_multiplier * std::f64::consts::SQRT_2 }
        }
        Event::Laplace { noise_multiplier } => Event::Laplace { noise_multiplier: noise_multiplier * 2.0 },
        other => other,
    }
}

/// The accountant of a member of a ring, against members that see what they are sent. A charge of the track of tokens stands for one contribution, and its law is that of
/// one noise of sigma_loc; one of the track of reissues for a contribution that may be seen once more, by the law of [`reissue_law`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    members: u32,
    colluders: u32,
    shares: Shares,
}

/// Why there is no guarantee.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadRing {
    /// Two can stand on both sides of a third.
    #[error(
        "{colluders} colluding members on a ring where one hop of every {} makes noise can stand on both sides of another and see its values; accepted: \
         colluders = 1, or noise = \"all\"", .members - 1
    )]
    Colluders {
        /// How many there may be.
        colluders: u32,
        /// How many members there are.
        members: u32,
    },
    /// Nobody is left to protect, or nobody to protect from.
    #[error("{colluders} colluding members of {members}; accepted: 1 to {}", .members.saturating_sub(2))]
    Few {
        /// How many there may be.
        colluders: u32,
        /// How many members there are.
        members: u32,
    },
}

impl Ring {
    /// Against this many members who put together what they see.
    pub fn new(members: u32, colluders: u32, shares: Shares) -> Result<Ring, BadRing> {
        if colluders == 0 || u64::from(colluders) + 2 > u64::from(members) {
            return Err(BadRing::Few { colluders, members });
        }
        if colluders > 1 && shares == Shares::One {
            return Err(BadRing::Colluders { colluders, members });
        }
        Ok(Ring { members, colluders, shares })
    }

    /// Against whom the guarantee holds.
    pub fn observer(&self) -> String {
        match self.colluders {
            1 => "any one other member".to_owned(),
            colluders => format!("at most {colluders} colluding members"),
        }
    }

    /// How many members there are, how many of them stand together, and who makes noise: what anyone needs to account for a ledger again.
    pub fn context(&self) -> (u32, u32, Shares) {
        (self.members, self.colluders, self.shares)
    }

    /// The same observer, by another way of counting.
    pub fn by(self, accountant: &'static dyn Accountant) -> RingBy {
        RingBy { ring: self, accountant }
    }

    /// Whether nothing is proved of such a ledger: several observers, and a token that may be issued again.
    fn is_open(&self, ledger: &Ledger) -> bool {
        self.colluders > 1 && ledger.charges().any(|charge| charge.track == Track::Reissues)
    }

    /// What this observer has seen, as charges of its own.
    fn seen(&self, ledger: &Ledger) -> Ledger {
        // Of one observer every window holds n - 1 shares, or one whole noise. Of several, the least window is one hop: that of the member itself.
        let least = if self.colluders == 1 { 1.0 } else { 1.0 / (f64::from(self.members) - 1.0) };
        let charges = ledger.charges().map(|charge| {
            let event = match charge.event {
                Event::Gaussian { noise_multiplier } if least < 1.0 => {
                    Event::Gaussian { noise_multiplier: (noise_multiplier * least.sqrt()).next_down() }
                }
                event => event,
            };
            // PRIVACY: to this observer the law of the charge is that of a noise it does not know, as a release's is to everyone.
            Charge { event, audience: Audience::Everyone, ..*charge }
        });
        Ledger::from_charges(charges).expect("charges of a ledger, with less noise")
    }
}

impl Accountant for Ring {
    fn epsilon(&self, ledger: &Ledger, delta: f64) -> f64 {
        self.by(&Tight).epsilon(ledger, delta)
    }

    fn rough(&self, ledger: &Ledger, delta: f64) -> f64 {
        self.by(&Tight).rough(ledger, delta)
    }
}

/// The accountant of a member of a ring that counts by another accountant than [`Tight`].
#[derive(Clone, Copy)]
pub struct RingBy {
    ring: Ring,
    accountant: &'static dyn Accountant,
}

impl Accountant for RingBy {
    fn epsilon(&self, ledger: &Ledger, delta: f64) -> f64 {
        if self.ring.is_open(ledger) {
            return f64::INFINITY;
        }
        self.accountant.epsilon(&self.ring.seen(ledger), delta)
    }

    fn rough(&self, ledger: &Ledger, delta: f64) -> f64 {
        if self.ring.is_open(ledger) {
            return f64::INFINITY;
        }
        self.accountant.rough(&self.ring.seen(ledger), delta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Gaussian, Rdp};

    fn ledger(noise_multiplier: f64, count: u64) -> Ledger {
        let charge = Charge::new(Event::Gaussian { noise_multiplier }, count);
        Ledger::from_charges([Charge { track: Track::Token, audience: Audience::OneMember, ..charge }]).expect("valid")
    }

    #[test]
    fn one_observer_sees_each_contribution_under_one_noise() {
        let ring = Ring::new(10, 1, Shares::One).expect("one observer");
        assert_eq!(ring.observer(), "any one other member");
        let plain = Ledger::from_charges([Charge::new(Event::Gaussian { noise_multiplier: 5.0 }, 4)]).expect("valid");
        assert_eq!(ring.epsilon(&ledger(5.0, 4), 1e-6), Gaussian.epsilon(&plain, 1e-6));
        assert!(Gaussian.epsilon(&ledger(5.0, 4), 1e-6).is_infinite(), "everyone sees it bare");
        assert_eq!(ring.by(&Rdp).epsilon(&ledger(5.0, 4), 1e-6), Rdp.epsilon(&plain, 1e-6));
        assert!(Tight.epsilon(&ledger(5.0, 4), 1e-6).is_infinite() && Rdp.epsilon(&ledger(5.0, 4), 1e-6).is_infinite());
        assert_eq!(
            Ring::new(10, 1, Shares::All).expect("one observer").epsilon(&ledger(5.0, 4), 1e-6),
            ring.epsilon(&ledger(5.0, 4), 1e-6)
        );
    }

    #[test]
    fn two_observers_are_refused_where_one_hop_makes_noise_and_cost_more_where_all_do() {
        let refused = Ring::new(10, 2, Shares::One).expect_err("on both sides").to_string();
        assert!(refused.contains("colluders = 1") && refused.contains("noise = \"all\""), "{refused}");
        let ring = Ring::new(10, 2, Shares::All).expect("shares");
        assert_eq!(ring.observer(), "at most 2 colluding members");
        // One hop of nine.
        let plain = Charge::new(Event::Gaussian { noise_multiplier: 5.0 / 3.0 }, 4);
        let expected = Gaussian.epsilon(&Ledger::from_charges([plain]).expect("valid"), 1e-6);
        let found = ring.epsilon(&ledger(5.0, 4), 1e-6);
        assert!(found >= expected && found < expected * (1.0 + 1e-9), "{found} {expected}");
        for (members, colluders) in [(10, 0), (10, 9), (10, 10), (2, 1), (0, 1)] {
            assert!(matches!(Ring::new(members, colluders, Shares::All), Err(BadRing::Few { .. })));
        }
    }

    /// Gaussian: two views under twice the variance are one; Laplace: two of half the epsilon.
    #[test]
    fn a_contribution_that_may_be_seen_again_costs_as_much_as_two() {
        let ring = Ring::new(10, 1, Shares::One).expect("one observer");
        for law in [Event::Gaussian { noise_multiplier: 5.0 }, Event::Laplace { noise_multiplier: 5.0 }] {
            let charge = |track, event, count| Charge {
                track,
                audience: Audience::OneMember,
                ..Charge::new(event, count as u64)
            };
            let again = charge(Track::Reissues, reissue_law(law), 3 * Shares::One.seen_again());
            let charged = Ledger::from_charges([charge(Track::Token, law, 3), again]).expect("valid");
            let (delta, plain) = match law {
                Event::Gaussian { .. } => (1e-6, ledger(5.0, 6)),
                _ => (0.0, Ledger::from_charges([charge(Track::Token, law, 6)]).expect("valid")),
            };
            let (found, expected) = (ring.epsilon(&charged, delta), ring.epsilon(&plain, delta));
            assert!((found / expected - 1.0).abs() < 1e-9, "{law:?}: {found} {expected}");
            let two = Ring::new(10, 2, Shares::All).expect("shares");
            assert!(two.epsilon(&charged, 1e-6).is_infinite() && two.rough(&charged, 1e-6).is_infinite());
        }
    }
}
