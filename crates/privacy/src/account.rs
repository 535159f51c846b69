//! Accountants: pure readers of a ledger.

use crate::{Event, Ledger};

/// Turns a ledger into the epsilon of an (epsilon, delta) guarantee. It reads the ledger and nothing else,
/// so that anyone can recompute the figure that a run reports.
pub trait Accountant {
    /// The smallest epsilon this accountant can prove for everything in `ledger` at this `delta`; rounds up.
    fn epsilon(&self, ledger: &Ledger, delta: f64) -> f64;
}

/// Basic composition: the epsilons of all releases, added up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum;

impl Accountant for Sum {
    fn epsilon(&self, ledger: &Ledger, _delta: f64) -> f64 {
        ledger
            .charges()
            .map(|charge| match charge.event {
                Event::Reveal => f64::INFINITY,
            })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Budget, Gate};

    #[test]
    fn nothing_released_costs_nothing_and_one_exact_value_costs_everything() {
        let mut gate = Gate::new(Budget::Unlimited);
        assert_eq!(Sum.epsilon(gate.ledger(), 1e-6), 0.0);
        let _ = gate.reveal(1.0).expect("an unlimited budget is never exhausted");
        assert_eq!(Sum.epsilon(gate.ledger(), 1e-6), f64::INFINITY);
    }
}
