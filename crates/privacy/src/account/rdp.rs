//! Renyi divergences. Proof: `proofs/rdp.md`.
//!
//! For any order alpha = 1 + s, s > 0, with K(s) = ln E e^{sL} summed over the steps (so K(s) / s is the divergence):
//! ```text
//! eps = (K(s) - ln delta - ln(1 + s)) / s + ln(s / (1 + s))
//! ```
//! This is the conversion of Canonne, Kamath and Steinke (2020, Proposition 12), better than K(s)/s + ln(1/delta)/s. Every
//! order gives a valid epsilon; the least over a fine search is returned. The order infinity is the sum of pure steps.

use super::{Accountant, loss::Losses, settled, within};
use crate::Ledger;
use crate::round::widen;

/// Renyi divergences, with the best order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rdp;

impl Accountant for Rdp {
    fn epsilon(&self, ledger: &Ledger, delta: f64) -> f64 {
        if let Some(epsilon) = settled(ledger) {
            return epsilon;
        }
        let losses = Losses::of(ledger);
        best_order(&losses, within(delta)).map_or(f64::INFINITY, |(_, epsilon)| epsilon).min(losses.largest())
    }
}

/// The s = alpha - 1 with the least epsilon, and that epsilon, rounded up; none if there is no finite one.
pub(super) fn best_order(losses: &Losses, delta: f64) -> Option<(f64, f64)> {
    if delta == 0.0 {
        return None;
    }
    let log_delta = libm::log(delta);
    let at = |exponent: f64| {
        let s = libm::exp(exponent);
        let epsilon = (losses.log_moment(s) - log_delta - libm::log1p(s)) / s - libm::log1p(1.0 / s);
        if epsilon.is_nan() { f64::INFINITY } else { epsilon }
    };
    // From s = 1e-13 to 1e26 in steps of a quarter, then a golden section around the best.
    let grid = (-120..=240).map(|k| 0.25 * f64::from(k));
    let (middle, least) = grid.map(|exponent| (exponent, at(exponent))).min_by(|a, b| a.1.total_cmp(&b.1))?;
    if !least.is_finite() {
        return None;
    }
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    let (mut low, mut high) = (middle - 0.25, middle + 0.25);
    let mut points = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)];
    let mut values = points.map(at);
    for _ in 0..40 {
        if values[0] <= values[1] {
            high = points[1];
            points = [high - GOLDEN * (high - low), points[0]];
            values = [at(points[0]), values[0]];
        } else {
            low = points[0];
            points = [points[1], low + GOLDEN * (high - low)];
            values = [values[1], at(points[1])];
        }
    }
    let found = [(middle, least), (points[0], values[0]), (points[1], values[1])];
    let (exponent, epsilon) = found.into_iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let s = libm::exp(exponent);
    let error =
        (losses.log_moment_error(s) + 4e-16 * (log_delta.abs() + libm::log1p(s))) / s + 4e-16 * libm::log1p(1.0 / s);
    Some((s, (widen(epsilon.max(0.0), 1e-15) + error).max(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Accountant, Charge, Event, Gaussian};

    #[test]
    fn it_is_a_little_above_the_closed_form_of_gaussian_noise() {
        for (noise_multiplier, count) in [(1.0, 1), (100.0, 1000), (20.0, 1000), (0.05, 3)] {
            let ledger =
                Ledger::from_charges([Charge::new(Event::Gaussian { noise_multiplier }, count)]).expect("valid");
            for delta in [1e-12, 1e-6, 1e-3] {
                let (rdp, truth) = (Rdp.epsilon(&ledger, delta), Gaussian.epsilon(&ledger, delta));
                assert!(rdp >= truth && rdp <= 1.2 * truth, "{noise_multiplier} {count} {delta}: {rdp} {truth}");
            }
        }
    }
}
