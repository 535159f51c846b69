//! Basic composition: the epsilons of all releases, added up. Proof: `proofs/sum.md`.
//!
//! eps = sum_k eps_k, with the pure epsilon of Laplace noise and randomized response, and, where there are G Gaussian
//! releases, the exact epsilon of each of them at delta / G.

use super::{Accountant, gaussian_epsilon, gaussian_steps, pure_steps, settled, within};
use crate::Ledger;
use crate::round::{add_up, count_up, mul_up};

/// Basic composition: the epsilons of all releases, added up.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum;

impl Accountant for Sum {
    fn epsilon(&self, ledger: &Ledger, delta: f64) -> f64 {
        if let Some(epsilon) = settled(ledger) {
            return epsilon;
        }
        let gaussians: u64 = gaussian_steps(ledger).map(|(_, count)| count).sum();
        let share = share(within(delta), gaussians);
        let gaussian = gaussian_steps(ledger).map(|(mu, count)| (gaussian_epsilon(mu, share), count));
        total(pure_steps(ledger).chain(gaussian))
    }
}

/// What each of `parts` steps may use of a delta, rounded down: together they use no more.
pub(super) fn share(delta: f64, parts: u64) -> f64 {
    if parts <= 1 { delta } else { (delta / count_up(parts)).next_down().max(0.0) }
}

/// sum of count times epsilon, rounded up.
pub(super) fn total(steps: impl Iterator<Item = (f64, u64)>) -> f64 {
    steps.fold(0.0, |sum, (epsilon, count)| add_up(sum, mul_up(epsilon, count_up(count))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Charge, Event, Gate};

    #[test]
    fn nothing_released_costs_nothing_and_one_exact_value_costs_everything() {
        let mut gate = Gate::without_privacy();
        assert_eq!(Sum.epsilon(gate.ledger(), 1e-6), 0.0);
        let _ = gate.reveal(1.0).expect("an unlimited budget is never exhausted");
        assert_eq!(Sum.epsilon(gate.ledger(), 1e-6), f64::INFINITY);
    }

    #[test]
    fn epsilons_add_up_without_rounding_where_they_can() {
        let charges = [
            Charge::new(Event::Laplace { noise_multiplier: 4.0 }, 6),
            Charge::new(Event::RandomizedResponse { epsilon: 0.5 }, 3),
        ];
        assert_eq!(Sum.epsilon(&Ledger::from_charges(charges).expect("valid"), 0.0), 3.0);
    }
}
