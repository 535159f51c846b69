//! Theorem 1 of the 2018 paper: heterogeneous composition. Proof: `proofs/theorem-1.md`.
//!
//! For pure steps eps_1..eps_T and delta~ in (0, 1), with V = sum eps_k^2 and
//! B0 = sum (e^eps_k - 1) eps_k / (e^eps_k + 1) = sum eps_k tanh(eps_k / 2):
//! ```text
//! A = sum eps_k
//! B = B0 + sqrt(2 V ln(e + sqrt(V) / delta~))
//! C = B0 + sqrt(2 V ln(1 / delta~))          eps = min(A, B, C)
//! ```
//! Differs from the paper: it typesets the square root in B over V / delta~; Kairouz, Oh and Viswanath (2015, Theorem
//! 3.5), whom it quotes, have sqrt(V) / delta~. Steps that are (eps_k, delta_k) themselves make the total delta
//! 1 - (1 - delta~) prod (1 - delta_k) <= delta~ + sum delta_k: each of G Gaussian steps gets delta / (2 G), and
//! delta~ = delta / 2; without any, delta~ = delta.

use super::{Accountant, gaussian_epsilon, gaussian_steps, pure_steps, settled, sum::share, sum::total, within};
use crate::Ledger;
use crate::round::widen;

/// Theorem 1 of the 2018 paper, with the square root corrected.
#[derive(Clone, Copy, Debug, Default)]
pub struct Theorem1;

impl Accountant for Theorem1 {
    fn epsilon(&self, ledger: &Ledger, delta: f64) -> f64 {
        if let Some(epsilon) = settled(ledger) {
            return epsilon;
        }
        let gaussians: u64 = gaussian_steps(ledger).map(|(_, count)| count).sum();
        let (slack, share) = match gaussians {
            0 => (within(delta), 0.0),
            _ => (within(delta) / 2.0, share(within(delta) / 2.0, gaussians)),
        };
        let gaussian = gaussian_steps(ledger).map(|(mu, count)| (gaussian_epsilon(mu, share), count));
        let steps: Vec<_> = pure_steps(ledger).chain(gaussian).collect();
        let [a, b, c] = bounds(&steps, slack);
        a.min(b).min(c)
    }
}

/// The bounds A, B and C for steps given as (epsilon, count).
pub(crate) fn bounds(steps: &[(f64, u64)], slack: f64) -> [f64; 3] {
    let sum = total(steps.iter().copied());
    let weighted = |of: fn(f64) -> f64| steps.iter().map(|&(epsilon, count)| of(epsilon) * count as f64).sum::<f64>();
    let drift = weighted(|epsilon| epsilon * libm::tanh(epsilon / 2.0));
    let variance = weighted(|epsilon| epsilon * epsilon);
    if slack == 0.0 || !variance.is_finite() || variance == 0.0 {
        return [sum, f64::INFINITY, f64::INFINITY];
    }
    let log_inverse = -libm::log(slack);
    // ln(e + sqrt(V) / delta~) with the larger of the two terms taken out: the quotient may overflow.
    let quotient = libm::log(variance) / 2.0 + log_inverse;
    let log_b = quotient.max(1.0) + libm::log1p(libm::exp(-(quotient - 1.0).abs()));
    // A few roundings per step and a few at the end.
    let error = 4e-16 * (steps.len() as f64 + 20.0);
    let bound = |log: f64| widen(drift + (2.0 * variance * log).sqrt(), error);
    [sum, bound(log_b), bound(log_inverse)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(computed: [f64; 3], printed: [f64; 3]) {
        for (computed, printed) in computed.into_iter().zip(printed) {
            assert!((computed - printed).abs() <= 5.1e-7, "{computed} is not {printed}");
        }
    }

    /// Spec 02 section 2.
    #[test]
    fn the_reference_values_come_out_to_the_printed_digits() {
        close(bounds(&[(0.1, 100)], 1e-5), [10.0, 5.298115, 5.298110]);
        let growing: Vec<_> = (1..=20).map(|k| (0.01 * f64::from(k), 1)).collect();
        close(bounds(&growing, 1e-3), [2.1, 2.043121, 2.134444]);
    }

    #[test]
    fn a_tiny_delta_does_not_overflow() {
        let [a, b, c] = bounds(&[(1e150, 1_000_000)], f64::MIN_POSITIVE);
        assert!(a.is_finite() && b > 0.0 && c > 0.0 && !b.is_nan() && !c.is_nan());
    }
}
