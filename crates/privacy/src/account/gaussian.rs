//! Continuous Gaussian noise: the closed form. Proof: `proofs/gaussian.md`.
//!
//! Gaussian steps compose exactly to one with mu = sqrt(sum (Delta_2 / sigma_k)^2), and for one
//! ```text
//! delta(eps) = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu)
//!            = phi(a) (M(a) - M(a + mu)),   eps = mu (a + mu/2),   M(t) = (1 - Phi(t)) / phi(t)
//! ```
//! The second form, in a, neither underflows nor cancels. The discrete Gaussian is not covered.

use super::{Accountant, gaussian_steps, settled, within};
use crate::normal::{density, integrate, mills, tail};
use crate::round::widen;
use crate::{Event, Ledger};
use std::f64::consts::PI;

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
    let mut squares = 0.0;
    let mut entries = 0u32;
    for (mu, count) in gaussian_steps(ledger) {
        squares += mu * mu * count as f64;
        entries += 1;
    }
    if squares == 0.0 && entries > 0 {
        // The squares underflow: far below anything that can be told from 0.
        return 1e-150;
    }
    widen(squares.sqrt(), 4e-16 * (f64::from(entries) + 4.0))
}

/// The delta of one Gaussian step with mu = Delta_2 / sigma at `epsilon` >= 0: the analytic Gaussian mechanism.
pub fn gaussian_delta(mu: f64, epsilon: f64) -> f64 {
    libm::exp(log_delta(mu, epsilon / mu - mu / 2.0))
}

/// ln delta at eps = mu (a + mu/2), for a >= -mu/2.
fn log_delta(mu: f64, a: f64) -> f64 {
    let log_density = -0.5 * a * a - 0.5 * libm::log(2.0 * PI);
    if mu < 0.5 {
        // M(a) - M(a + mu) is the integral of -M' = 1 - t M(t): no difference of nearly equal numbers.
        log_density + libm::log(integrate(a, a + mu, |t| 1.0 - t * mills(t)))
    } else if a > 0.0 {
        log_density + libm::log(mills(a) - mills(a + mu))
    } else {
        libm::log(tail(a) - density(a) * mills(a + mu))
    }
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
    // log_delta is accurate to better than this.
    let target = libm::log(delta) - 2e-13;
    let mut low = -mu / 2.0;
    if log_delta(mu, low) <= target {
        return 0.0;
    }
    // delta <= 1 - Phi(a) <= exp(-a^2 / 2) for a >= 0.
    let mut high = (-2.0 * target).sqrt();
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if log_delta(mu, middle) <= target {
            high = middle;
        } else {
            low = middle;
        }
    }
    (widen(mu * (high + mu / 2.0), 4e-16) + 2e-16 * mu * mu).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Charge;

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
        for exponent in -60..=6 {
            let mu = libm::exp2(0.5 * f64::from(exponent));
            for delta in [1e-300, 1e-30, 1e-9, 1e-5, 0.1] {
                let epsilon = gaussian_epsilon(mu, delta);
                assert!(epsilon >= 0.0);
                if epsilon > 0.0 {
                    let a = epsilon / mu - mu / 2.0;
                    let error = log_delta(mu, a) - libm::log(delta);
                    // What a relative 1e-10 of epsilon changes in ln delta, and the rounding of a.
                    let allowed = 1e-12 + 1e-10 * epsilon / mu * a.abs().max(1.0) + 1e-11;
                    assert!(error.abs() <= allowed, "mu {mu}, delta {delta}: {error}");
                }
            }
        }
    }
}
