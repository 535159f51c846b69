//! The normal law, accurate to a few units in the last place in both tails.

use std::f64::consts::{PI, SQRT_2};

/// The density phi(x) = exp(-x^2 / 2) / sqrt(2 pi).
pub(crate) fn density(x: f64) -> f64 {
    libm::exp(-0.5 * x * x) / (2.0 * PI).sqrt()
}

/// The upper tail Q(x) = 1 - Phi(x).
pub(crate) fn tail(x: f64) -> f64 {
    0.5 * libm::erfc(x / SQRT_2)
}

/// Mills' ratio M(x) = Q(x) / phi(x), for x >= -8.
///
/// Beyond 7 it is Laplace's continued fraction M(x) = 1 / (x + 1 / (x + 2 / (x + 3 / ...))), which converges there to
/// the last bit within 60 terms.
pub(crate) fn mills(x: f64) -> f64 {
    if x < 7.0 {
        return tail(x) / density(x);
    }
    let rest = (1..=60).rev().fold(x, |rest, term| x + f64::from(term) / rest);
    1.0 / rest
}

/// Gauss and Legendre's rule of 5 points on [from, to].
pub(crate) fn integrate(from: f64, to: f64, mut f: impl FnMut(f64) -> f64) -> f64 {
    const POINTS: [(f64, f64); 2] =
        [(0.538_469_310_105_683_1, 0.478_628_670_499_366_5), (0.906_179_845_938_664, 0.236_926_885_056_189_08)];
    let (middle, half) = (0.5 * (from + to), 0.5 * (to - from));
    let mut sum = 0.568_888_888_888_888_9 * f(middle);
    for (point, weight) in POINTS {
        sum += weight * (f(middle - half * point) + f(middle + half * point));
    }
    half * sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_accurate_on_both_sides() {
        // Computed to 50 digits.
        for (x, q) in [(0.0, 0.5), (1.0, 0.158_655_253_931_457_05), (10.0, 7.619_853_024_160_527e-24)] {
            assert!((tail(x) / q - 1.0).abs() < 4e-16 * (1.0 + x * x), "{x}");
        }
    }

    #[test]
    fn the_two_forms_of_mills_ratio_meet() {
        for k in 0..20 {
            let x = 7.0 + 0.5 * f64::from(k);
            assert!((mills(x) * density(x) / tail(x) - 1.0).abs() < 1e-13, "{x}");
        }
    }
}
