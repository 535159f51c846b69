//! What the ledgers of a walk over a graph cost, by the worst pair of its matrix. Proof: `proofs/graph-walk.md`, ledgers.

use super::super::walk::BadNetwork;
use crate::account::within;
use crate::round::{div_up, mul_up, sqrt_up};
use crate::{Accountant, Audience, Event, Ledger};

/// One entry of a matrix that was computed before, the largest: against each one other member, at this noise and delta, for all contributions that a
/// member may make.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorstPair {
    contributions: u64,
    noise_multiplier: f64,
    delta: f64,
    epsilon: f64,
}

impl WorstPair {
    /// Of so many contributions, of which no matrix was computed: local composition.
    pub fn local(contributions: u64) -> Result<Self, BadNetwork> {
        if contributions == 0 {
            let accepted = "at least 1: without a bound there is no guarantee";
            return Err(BadNetwork::OutOfRange { what: "number of contributions", value: 0.0, accepted });
        }
        Ok(WorstPair { contributions, noise_multiplier: f64::INFINITY, delta: 1.0, epsilon: f64::INFINITY })
    }

    /// With what [`super::GraphPairs`] of the same contributions, this noise multiplier and this delta says of its worst pair.
    pub fn with_known(self, noise_multiplier: f64, delta: f64, epsilon: f64) -> Self {
        WorstPair { noise_multiplier, delta, epsilon, ..self }
    }

    /// At how many visits a member contributes.
    pub fn contributions(&self) -> u64 {
        self.contributions
    }

    /// The least noise multiplier of the contributions in some ledgers; none where anything else is in one, or more than a member may make, and where there is none.
    pub fn noise_of<'l>(&self, ledgers: impl IntoIterator<Item = &'l Ledger>) -> Option<f64> {
        let mut least = f64::INFINITY;
        for ledger in ledgers {
            if ledger.releases() > self.contributions {
                return None;
            }
            for charge in ledger.charges() {
                match charge.event {
                    Event::Gaussian { noise_multiplier } if charge.audience == Audience::OneMember => {
                        least = least.min(noise_multiplier);
                    }
                    _ => return None,
                }
            }
        }
        least.is_finite().then_some(least)
    }
}

impl Accountant for WorstPair {
    /// A member that made fewer contributions than it may is charged for all of them: how many it made is for the path to say.
    fn epsilon(&self, ledger: &Ledger, delta: f64) -> f64 {
        if ledger.releases() == 0 {
            return 0.0;
        }
        let Some(least) = self.noise_of([ledger]) else { return f64::INFINITY };
        // PRIVACY: whatever the path, the view is made of K Gaussian releases.
        let local =
            crate::gaussian_epsilon(mul_up(sqrt_up(self.contributions as f64), div_up(1.0, least)), within(delta));
        // PRIVACY: more noise and a larger delta need no larger epsilon.
        let is_known = least >= self.noise_multiplier && delta >= self.delta;
        if is_known { local.min(self.epsilon) } else { local }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Charge, Track};

    fn ledger(noise_multiplier: f64, count: u64, audience: Audience) -> Ledger {
        let event = Event::Gaussian { noise_multiplier };
        let charge = Charge { track: Track::Token, event, sensitivity: None, audience, count };
        Ledger::from_charges((count > 0).then_some(charge)).expect("charges")
    }

    #[test]
    fn what_is_known_of_a_matrix_counts_for_no_less_noise_and_no_smaller_delta() {
        let worst = WorstPair::local(4).expect("valid").with_known(3.0, 1e-6, 0.5);
        let epsilon = |noise, count, delta| worst.epsilon(&ledger(noise, count, Audience::OneMember), delta);
        let local = |noise: f64, delta| crate::gaussian_epsilon(2.0 / noise, delta);
        assert_eq!((epsilon(3.0, 4, 1e-6), epsilon(3.5, 1, 1e-5), epsilon(3.0, 0, 1e-6)), (0.5, 0.5, 0.0));
        let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-9;
        assert!(near(epsilon(2.99, 4, 1e-6), local(2.99, 1e-6)), "less noise");
        assert!(near(epsilon(3.0, 1, 1e-7), local(3.0, 1e-7)), "a smaller delta, and all four contributions");
        assert_eq!(epsilon(3.0, 5, 1e-6), f64::INFINITY, "more than it may");
        assert_eq!(worst.epsilon(&ledger(3.0, 1, Audience::Everyone), 1e-6), f64::INFINITY, "seen by others");
        // Local composition is a bound whatever the matrix says.
        let loose = WorstPair::local(1).expect("valid").with_known(3.0, 1e-6, 50.0);
        assert!(loose.epsilon(&ledger(3.0, 1, Audience::OneMember), 1e-6) < 2.0);
        assert!(WorstPair::local(0).is_err());
    }
}
