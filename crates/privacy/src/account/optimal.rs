//! The exact optimal composition of equal pure steps. Proof: `proofs/optimal.md`.
//!
//! k steps of eps each are no worse than k answers of randomized response, whose privacy loss is (2 J - k) eps with J
//! binomial(k, q), q = e^eps / (1 + e^eps) (Kairouz, Oh and Viswanath 2015, Theorem 3.3):
//! ```text
//! delta(e) = sum_{j : l_j > e} b_j (1 - exp(e - l_j)),   l_j = (2j - k) eps,  b_j = C(k, j) q^j (1-q)^{k-j}
//! ```
//! At e = l_j this is their delta_i; between those points it is exact too. One walk from the top down finds the e with
//! delta(e) = delta, by sums of positive terms: with D_j = delta(l_j) and W_j = sum_{i > j} b_i exp(l_j - l_i),
//! ```text
//! D_{j-1} = D_j + (1 - e^{-2 eps}) (W_j + b_j),   W_{j-1} = e^{-2 eps} (W_j + b_j)
//! delta(l_j - x) = D_j + (1 - e^{-x}) (W_j + b_j),   0 <= x <= 2 eps
//! ```

use super::{Accountant, pure_steps, settled, sum::total, theorem_1, within};
use crate::Ledger;
use crate::round::{mul_up, widen};
use std::f64::consts::PI;

/// The exact optimum for equal pure steps. Unequal ones are counted as so many of the largest; Gaussian steps are not
/// covered (infinity).
#[derive(Clone, Copy, Debug, Default)]
pub struct Optimal;

/// Above this many steps the walk is too long, and Theorem 1 stands in.
const STEPS_MAX: u64 = 1 << 40;

impl Accountant for Optimal {
    fn epsilon(&self, ledger: &Ledger, delta: f64) -> f64 {
        if let Some(epsilon) = settled(ledger) {
            return epsilon;
        }
        let releases = ledger.releases();
        if pure_steps(ledger).map(|(_, count)| count).sum::<u64>() < releases {
            return f64::INFINITY;
        }
        let largest = pure_steps(ledger).map(|(epsilon, _)| epsilon).fold(0.0, f64::max);
        total(pure_steps(ledger)).min(equal_steps(largest, releases, within(delta)))
    }
}

/// The epsilon of `steps` pure steps of `each` at `delta` in [0, 1); rounds up.
pub(crate) fn equal_steps(each: f64, steps: u64, delta: f64) -> f64 {
    let [sum, b, c] = theorem_1::bounds(&[(each, steps)], delta);
    if delta == 0.0 || !sum.is_finite() {
        return sum;
    }
    if steps > STEPS_MAX {
        return sum.min(b).min(c);
    }
    let k = steps as f64;
    let log_delta = libm::log(delta);
    let (start, log_start) = start(each, k, log_delta - 60.0);
    // Everything is in units of delta. Above the start the masses fall: their sum is at most this.
    let mut mass = libm::exp(log_start - log_delta);
    let mut below = if start < k { (k - start) * mass } else { 0.0 };
    let mut weighted = below;
    let (decay, rise) = (libm::exp(-2.0 * each), -libm::expm1(-2.0 * each));
    let odds = libm::exp(-each);
    // Each round of the walk rounds a few times; the masses are a product over the rounds, from one whose logarithm is the less
    // exact the further it is from the mean.
    let mut target = 1.0 - 1e-12 - 8e-15 * (start - k / (1.0 + odds)).abs();
    let mut j = start;
    // Nothing below a loss of 0 is of interest: the top of the last cell is at most eps above.
    while 2.0 * j - k >= -1.0 && j >= 0.0 {
        let here = weighted + mass;
        let above = (target - below).max(0.0);
        let next = below + rise * here;
        if next > target {
            let x = -libm::log1p(-above / here);
            let loss = widen(mul_up(2.0 * j - k, each), 4e-16) - x;
            return (loss + 4e-16 * each.max(x)).clamp(0.0, sum);
        }
        below = next;
        weighted = decay * here;
        mass *= j / (k - j + 1.0) * odds;
        target -= 2e-15;
        j -= 1.0;
    }
    0.0
}

/// A place above which the masses matter no more, at most at `log_mass`, and ln b there.
fn start(each: f64, k: f64, log_mass: f64) -> (f64, f64) {
    let log_top = -k * libm::log1p(libm::exp(-each));
    if log_top >= log_mass {
        return (k, log_top);
    }
    let (q, p) = answers(each);
    let mode = (k * q).floor();
    let (mut low, mut high) = (mode.min(k), k);
    while high - low > 1.0 {
        let middle = (0.5 * (low + high)).floor();
        if log_binomial(middle, k, q, p) > log_mass {
            low = middle;
        } else {
            high = middle;
        }
    }
    (high, if high == k { log_top } else { log_binomial(high, k, q, p) })
}

/// The probabilities of a true and of a false answer.
fn answers(each: f64) -> (f64, f64) {
    let q = 1.0 / (1.0 + libm::exp(-each));
    (q, libm::exp(-each) * q)
}

/// ln of C(k, j) q^j p^{k-j}, p = 1 - q, for 0 < j < k by Stirling's formula with its remainder, so that no large numbers cancel:
/// S(k) - S(j) - S(k-j) - j ln(j / k q) - (k-j) ln((k-j) / k p) + ln(k / (2 pi j (k-j))) / 2.
pub(super) fn log_binomial(j: f64, k: f64, q: f64, p: f64) -> f64 {
    stirling(k) - stirling(j) - stirling(k - j) - deviance(j, k * q) - deviance(k - j, k * p)
        + 0.5 * libm::log(k / (2.0 * PI * j * (k - j)))
}

/// x ln(x / m) + m - x, without cancellation near x = m. The two linear parts add up to zero in the sum above.
fn deviance(x: f64, m: f64) -> f64 {
    let v = (x - m) / (x + m);
    if v.abs() >= 0.1 {
        return x * libm::log(x / m) + m - x;
    }
    // x ln((1+v)/(1-v)) + m - x, with x = (x+m)(1+v)/2: the series of 2 artanh v.
    let mut sum = (x - m) * v;
    let mut term = 2.0 * x * v;
    for n in 1..40 {
        term *= v * v;
        let next = sum + term / f64::from(2 * n + 1);
        if next == sum {
            break;
        }
        sum = next;
    }
    sum
}

/// ln n! - (n + 1/2) ln n + n - ln(2 pi) / 2, for n >= 1.
fn stirling(n: f64) -> f64 {
    if n < 16.0 {
        return libm::lgamma(n + 1.0) - (n + 0.5) * libm::log(n) + n - 0.5 * libm::log(2.0 * PI);
    }
    let r = 1.0 / (n * n);
    (1.0 / 12.0 - r * (1.0 / 360.0 - r * (1.0 / 1260.0 - r * (1.0 / 1680.0 - r / 1188.0)))) / n
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Charge, Event};

    /// Theorem 3.3 as printed, for small k: delta_i at (k - 2i) eps.
    fn printed(k: u32, eps: f64, i: u32) -> f64 {
        let mut binomial = 1.0;
        let mut sum = 0.0;
        for l in 0..i {
            let (k, l, i) = (f64::from(k), f64::from(l), f64::from(i));
            sum += binomial * (libm::exp((k - l) * eps) - libm::exp((k - 2.0 * i + l) * eps));
            binomial *= (k - l) / (l + 1.0);
        }
        sum / libm::pow(1.0 + libm::exp(eps), f64::from(k))
    }

    #[test]
    fn the_points_of_theorem_3_3_lie_on_the_curve() {
        for (k, eps) in [(1, 0.5), (2, 0.3), (7, 0.2), (30, 0.05), (30, 1.0), (60, 0.4)] {
            for i in 1..=k / 2 {
                let epsilon = f64::from(k - 2 * i) * eps;
                let ours = equal_steps(eps, u64::from(k), printed(k, eps, i));
                assert!((ours - epsilon).abs() <= 1e-9 * (1.0 + epsilon), "k {k}, eps {eps}, i {i}: {ours}");
            }
        }
    }

    /// Spec 02 section 2.1.
    #[test]
    fn the_reference_value_comes_out_to_the_printed_digits() {
        let charge = Charge::new(Event::Laplace { noise_multiplier: 100.0 }, 1000);
        let epsilon = Optimal.epsilon(&Ledger::from_charges([charge]).expect("valid"), libm::exp(-5.0));
        assert!((epsilon - 0.552231).abs() <= 5.1e-7, "{epsilon}");
    }

    #[test]
    fn the_binomial_masses_add_up_to_one() {
        for (k, each) in [(50.0, 0.7), (1000.0, 0.01), (200_000.0, 3.0)] {
            let (q, p) = answers(each);
            let inner: f64 = (1..k as u32).map(|j| libm::exp(log_binomial(f64::from(j), k, q, p))).sum();
            let ends = libm::exp(-k * libm::log1p(libm::exp(-each))) + libm::exp(-k * libm::log1p(libm::exp(each)));
            assert!((inner + ends - 1.0).abs() < 1e-11, "{k} {each} {inner}");
        }
    }

    #[test]
    fn one_step_with_delta_has_the_closed_form() {
        // delta(e) = q (1 - e^{e - eps}) for one answer.
        for (each, delta) in [(1.0, 0.1), (0.01, 1e-3), (20.0, 1e-9)] {
            let q = 1.0 / (1.0 + libm::exp(-each));
            let truth = each + libm::log1p(-delta / q);
            let ours = equal_steps(each, 1, delta);
            assert!(ours >= truth && ours <= truth + 1e-11, "{ours} {truth}");
        }
    }
}
