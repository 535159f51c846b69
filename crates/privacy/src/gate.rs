//! The only door through which numbers leave an agent.

use crate::{Accountant, Audience, Event, Ledger, Released, Sum};
use thiserror::Error;

/// How much an agent may spend.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Budget {
    /// Epsilon = infinity: this agent has chosen not to be private.
    #[default]
    Unlimited,
    /// An (epsilon, delta) bound on everything the agent ever releases.
    Limited {
        /// Epsilon.
        epsilon: f64,
        /// Delta.
        delta: f64,
    },
}

/// A release was refused, because it would exceed the budget. Nothing has left.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("this release would exceed the agent's privacy budget; nothing was released")]
pub struct Exhausted;

/// Charges the ledger, then lets a value out; or refuses, and lets nothing out.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gate {
    budget: Budget,
    ledger: Ledger,
}

impl Gate {
    /// A gate with an empty ledger.
    pub fn new(budget: Budget) -> Self {
        Gate { budget, ledger: Ledger::default() }
    }

    /// Releases the exact value. It costs epsilon = infinity, so only an unlimited budget allows it.
    pub fn reveal<T>(&mut self, value: T) -> Result<Released<T>, Exhausted> {
        // PRIVACY: no protection at all, against anyone; the ledger says so before the value leaves.
        self.charge(Event::Reveal, Audience::Everyone)?;
        Ok(Released::after_charge(value))
    }

    /// What has been released so far.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// What may be released in all.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    fn charge(&mut self, event: Event, audience: Audience) -> Result<(), Exhausted> {
        if let Budget::Limited { epsilon, delta } = self.budget {
            let mut after = self.ledger.clone();
            after.record(event, audience);
            if Sum.epsilon(&after, delta) > epsilon {
                return Err(Exhausted);
            }
        }
        self.ledger.record(event, audience);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limited_budget_refuses_an_exact_value_and_charges_nothing() {
        let mut gate = Gate::new(Budget::Limited { epsilon: 1e9, delta: 0.1 });
        assert_eq!(gate.reveal([1.0, 2.0]), Err(Exhausted));
        assert_eq!(gate.ledger().releases(), 0);
    }

    #[test]
    fn every_release_is_in_the_ledger() {
        let mut gate = Gate::default();
        for k in 0..7 {
            assert_eq!(gate.reveal(k).map(Released::into_inner), Ok(k));
        }
        assert_eq!(gate.ledger().releases(), 7);
    }
}
