//! Continuous Gaussian noise: the closed form. Proof: `proofs/gaussian.md`.
//!
//! Gaussian steps compose exactly to one with mu = sqrt(sum (Delta_2 / sigma_k)^2), and for one, with eps = mu (a + mu/2),
//! ```text
//! delta(eps) = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)
//!            = phi(a) (M(a) - M(a + mu)),   M(t) = (1 - Phi(t)) / phi(t)
//!            = phi(a) integral over y > 0 of exp(-a y - y^2/2) (1 - exp(-mu y))
//! ```
//! The last form is an integral of a positive function: nothing cancels, however small mu is. Every step rounds so that epsilon
//! is never below the truth. The discrete Gaussian is not covered.

use super::{Accountant, gaussian_steps, settled, within};
use crate::normal::{ERROR, mills, mills_apart};
use crate::round::{add_up, count_up, div_up, mul_up, sqrt_up};
use crate::{Event, Ledger};

/// Steps of continuous Gaussian noise, exactly; infinity when the ledger holds anything else.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gaussian;

impl Accountant for Gaussian {
    fn epsilon(&self, ledger: &Ledger, delta: f64) -> f64 {
        if let Some(epsilon) = settled(ledger) {
            return epsilon;
        }
        if ledger.charges().any(|charge| !matches!(charge.event, Event::Gaussian { .. })) {
            return f64::INFINITY;
        }
        gaussian_epsilon(composed(ledger), delta)
    }
}

/// mu = sqrt(sum (Delta_2 / sigma_k)^2) of a ledger's Gaussian steps, rounded up.
pub(super) fn composed(ledger: &Ledger) -> f64 {
    let largest = gaussian_steps(ledger).map(|(mu, _)| mu).fold(0.0, f64::max);
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    // In units of the largest, whose square would overflow or underflow.
    let square = |(mu, count)| {
        let part = div_up(mu, largest);
        mul_up(mul_up(part, part), count_up(count))
    };
    mul_up(sqrt_up(gaussian_steps(ledger).map(square).fold(0.0, add_up)), largest)
}

/// Below this mu the integrand's products would lose digits to underflow: a smaller mu counts as this one.
const MU_MIN: f64 = 1e-300;
/// ln sqrt(2 pi).
const LOG_ROOT: f64 = 0.918_938_533_204_672_7;
/// A delta near the smallest numbers is compared multiplied by 2^200, so that no quotient overflows.
const LIFT: f64 = 1.606_938_044_258_990_3e60;
const LOG_LIFT: f64 = 138.629_436_111_989_06;

/// A delta, or its complement, as the equation for a needs it.
#[derive(Clone, Copy)]
struct Goal {
    mu: f64,
    delta: f64,
    /// Solve for 1 - delta, by a sum of two positive terms: where mu is above 1 and a below 0.
    complement: bool,
}

impl Goal {
    /// For the delta at this a, rounded up: ln of it over the goal's, and minus the slope of that in a. At most 0 means: at this
    /// a the goal's delta is kept. It falls as a rises.
    fn surplus(self, a: f64) -> (f64, f64) {
        let Goal { mu, delta, complement } = self;
        let square = 0.5 * a * a;
        // What the logarithm, the square and their difference round.
        let slack = 1e-15 * (1.0 + square);
        if complement {
            // 1 - delta(a) = phi(a) (M(-a) + M(a + mu))
            let (own, far) = (mills(-a), mills(a + mu));
            let least = (own + far) * (1.0 - 2.0 * ERROR);
            let kept = libm::log((1.0 - delta).next_up() / least) + square + LOG_ROOT;
            return (kept + slack, mu * far / (own + far));
        }
        let (apart, far) = if mu <= 1.0 {
            let (apart, far) = mills_apart(a, mu);
            (apart * (1.0 + 2.0 * ERROR), far)
        } else {
            let (own, far) = (mills(a), mills(a + mu));
            (own - far + 2.0 * ERROR * (own + far), far)
        };
        if delta < 1e-280 {
            let log = libm::log(apart / (delta * LIFT)) + LOG_LIFT;
            return (log - square - LOG_ROOT + slack + 4e-14, mu * far / apart);
        }
        let log = libm::log(apart / delta);
        (log - square - LOG_ROOT + slack, mu * far / apart)
    }

    /// An a at which the surplus was seen to be at most 0, next to the least one, from a start at or above it.
    ///
    /// ln delta is concave in a, so that Newton's steps go by few; and a step that leaves what is known is a halving.
    fn solve(self, start: f64) -> f64 {
        let (mut low, mut high) = (-0.5 * self.mu, start);
        let mut a = start;
        for _ in 0..100 {
            let (surplus, slope) = self.surplus(a);
            if surplus <= 0.0 {
                high = a;
            } else {
                low = a;
            }
            let newton = a + surplus / slope;
            let next = if newton >= low && newton <= high { newton } else { 0.5 * (low + high) };
            let done = (next - a).abs() <= 2e-16 * (1.0 + a.abs());
            a = next;
            if done {
                break;
            }
        }
        // Up until it is seen to hold.
        let mut step = 1e-16 * (1.0 + a.abs());
        while self.surplus(a).0 > 0.0 {
            a += step;
            step *= 2.0;
        }
        a
    }
}

/// The delta of one Gaussian step with mu = Delta_2 / sigma > 0 at `epsilon` >= 0, rounded up: the analytic Gaussian mechanism.
pub fn gaussian_delta(mu: f64, epsilon: f64) -> f64 {
    let mu = mu.max(MU_MIN);
    let a = ((epsilon / mu).next_down() - 0.5 * mu).next_down().max(-0.5 * mu);
    let goal = Goal { mu, delta: 0.5, complement: mu > 1.0 && a < 0.0 };
    let (surplus, _) = goal.surplus(a);
    let rounded = 1e-15 * (1.0 + surplus.abs());
    let delta = if goal.complement {
        // The surplus is ln(1/2) less ln of a lower bound on 1 - delta.
        1.0 - 0.5 * libm::exp(-surplus - rounded)
    } else {
        0.5 * libm::exp(surplus + rounded)
    };
    delta.next_up().min(1.0)
}

/// The least epsilon at which one Gaussian step with mu = Delta_2 / sigma keeps `delta`; rounds up.
pub fn gaussian_epsilon(mu: f64, delta: f64) -> f64 {
    let delta = within(delta);
    if mu == 0.0 {
        return 0.0;
    }
    if delta == 0.0 || !(mu * mu).is_finite() {
        return f64::INFINITY;
    }
    let mu = mu.max(MU_MIN);
    let mut goal = Goal { mu, delta, complement: false };
    // Whether a is above 0; for mu up to 1 one form does for both.
    goal.complement = mu > 1.0 && goal.surplus(0.0).0 <= 0.0;
    if goal.surplus(-0.5 * mu).0 <= 0.0 {
        return 0.0;
    }
    // delta <= min(1, 0.4 mu) exp(-a^2 / 2) for a >= 0.
    let bound = libm::log((0.4 * mu).min(1.0)) - libm::log(delta);
    let start = if goal.complement { 0.0 } else { (2.0 * bound.max(0.0)).sqrt() };
    let a = goal.solve(start);
    mul_up(mu, (a + 0.5 * mu).next_up()).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Charge;
    use crate::normal::{density, integrate};

    /// Spec 02 section 2.1.
    #[test]
    fn the_reference_values_come_out_to_the_printed_digits() {
        let delta = libm::exp(-5.0);
        for (noise_multiplier, printed) in [(100.0, 0.552250), (50.0, 1.360217), (20.0, 4.562728)] {
            let charge = Charge::new(Event::Gaussian { noise_multiplier }, 1000);
            let epsilon = Gaussian.epsilon(&Ledger::from_charges([charge]).expect("valid"), delta);
            assert!((epsilon - printed).abs() <= 5.1e-7, "{epsilon} is not {printed}");
        }
    }

    /// Delta as an integral of the hockey-stick divergence, by a rule on many small cells.
    fn integrated(mu: f64, epsilon: f64) -> f64 {
        // P - e^eps Q at x, for P = N(mu, 1) and Q = N(0, 1); positive above epsilon/mu + mu/2.
        let from = epsilon / mu + mu / 2.0;
        let excess = |x: f64| density(x - mu) * -libm::expm1(epsilon - mu * x + mu * mu / 2.0);
        (0..280).map(|k| from + 0.05 * f64::from(k)).map(|x| integrate(x, x + 0.05, excess)).sum()
    }

    #[test]
    fn check_00_e_delta_is_the_integral_and_the_classical_sigma_is_larger() {
        for mu in [0.01, 0.3, 0.49, 0.51, 1.0, 3.0] {
            for epsilon in [0.0, 0.01, 0.1, 0.5, 1.0, 3.0] {
                let (ours, truth) = (gaussian_delta(mu, epsilon), integrated(mu, epsilon));
                assert!((ours - truth).abs() <= 1e-9, "mu {mu}, epsilon {epsilon}: {ours} is not {truth}");
            }
        }
        for epsilon in [1e-3, 0.01, 0.1, 0.3, 0.7, 1.0] {
            for delta in [1e-12, 1e-6, 1e-3, 0.1] {
                let classical = (2.0 * libm::log(1.25 / delta)).sqrt() / epsilon;
                assert!(gaussian_epsilon(1.0 / classical, delta) <= epsilon, "epsilon {epsilon}, delta {delta}");
            }
        }
    }

    #[test]
    fn epsilon_and_delta_are_inverse_to_each_other() {
        for exponent in -120..=20 {
            let mu = libm::exp2(0.5 * f64::from(exponent));
            for delta in [1e-323, 1e-300, 1e-30, 1e-9, 1e-5, 0.1, 0.5, 0.9, 1.0 - 1e-12, 1.0f64.next_down()] {
                let epsilon = gaussian_epsilon(mu, delta);
                assert!(epsilon >= 0.0);
                if epsilon == 0.0 {
                    assert!(gaussian_delta(mu, 0.0) <= delta * (1.0 + 1e-12), "mu {mu}, delta {delta}");
                    continue;
                }
                // What the last bits of epsilon / mu, a few tens at most, change in ln delta, or in ln (1 - delta).
                let again = gaussian_delta(mu, epsilon);
                let error = if delta > 0.5 { (1.0 - again) / (1.0 - delta) } else { again / delta };
                let allowed = 1e-13 + 1e-15 * (epsilon / mu + mu) * (1.0 + (epsilon / mu - 0.5 * mu).abs());
                // And what a double can tell of a delta near 1 or near the smallest numbers.
                let allowed = if delta > 0.5 { allowed + 4e-16 / (1.0 - delta) } else { allowed + 1e-323 / delta };
                assert!((error - 1.0).abs() <= allowed, "mu {mu}, delta {delta}: {error}");
            }
        }
    }

    #[test]
    fn tiny_and_huge_steps_compose_without_underflow_or_overflow() {
        let mu = |charges: &[(f64, u64)]| {
            let charges = charges
                .iter()
                .map(|&(noise_multiplier, count)| Charge::new(Event::Gaussian { noise_multiplier }, count));
            composed(&Ledger::from_charges(charges).expect("valid"))
        };
        assert_eq!(mu(&[(1.0, 4)]), 2.0);
        assert_eq!(mu(&[(0.25, 9), (1.0 / 16.0, 1)]), 20.0);
        let close = |found: f64, truth: f64| found >= truth && found <= truth * (1.0 + 1e-15);
        assert!(close(mu(&[(1e160, 10_000)]), 1e-158), "{}", mu(&[(1e160, 10_000)]));
        assert!(close(mu(&[(1e-160, 10_000), (1.0, 1)]), 1e162), "{}", mu(&[(1e-160, 10_000)]));
        assert!(mu(&[(f64::MAX, 1), (f64::MIN_POSITIVE, 1)]) >= 1.0 / f64::MIN_POSITIVE);
        assert_eq!(mu(&[(1e-320, 1)]), f64::INFINITY);
        assert!(mu(&[(f64::MAX, u64::MAX)]) > 2e-299 && mu(&[(f64::MAX, u64::MAX)]) < 3e-299);
    }
}
