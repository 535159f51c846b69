//! How far a release can move when one record is replaced, the rounding of its computation included.
//! Proof: `proofs/clipped-mean.md`.
//!
//! u = 2^-53 is the unit roundoff, and gamma_k = k u / (1 - k u) bounds the relative error of k roundings in a row.

use crate::round::{add_up, div_up, mul_up};

/// A bound on gamma_k.
fn gamma(k: f64) -> f64 {
    let ku = mul_up(k, f64::EPSILON / 2.0);
    if ku < 0.5 { div_up(ku, (1.0 - ku).next_down()) } else { f64::INFINITY }
}

/// The norm in which a mechanism measures sensitivity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Norm {
    /// The sum of absolute values.
    L1,
    /// Euclid's.
    L2,
}

impl Norm {
    /// |x|, in floating point.
    pub fn of(self, x: &[f64]) -> f64 {
        match self {
            Norm::L1 => x.iter().map(|x| x.abs()).sum(),
            Norm::L2 => libm::sqrt(x.iter().map(|x| x * x).sum()),
        }
    }
}

/// A factor that `x` may be multiplied by, it or any smaller one, so that the exact product has norm at most `clip`: the largest
/// one, but for a margin of rounding.
///
/// # Panics
/// When the clip is negative or not a number.
pub fn clip_limit(norm: Norm, clip: f64, x: &[f64]) -> f64 {
    assert!(clip >= 0.0, "a clip of {clip}");
    // The computed norm is at least 1 - gamma_{p+2} of the exact one unless squares underflow, which the floor covers.
    let length = norm.of(x).max(1e-150);
    let margin = (1.0 - 2.0 * gamma(x.len() as f64 + 8.0)).max(0.0);
    // A point so small that no factor matters still gets a finite one.
    let limit = (clip / length).min(f64::MAX) * margin;
    // Among the subnormal numbers errors are no longer small against the result: only zero is surely within.
    if limit < 2.0 * f64::MIN_POSITIVE { 0.0 } else { limit }
}

/// The sensitivity of a mean of `records` vectors of norm at most `clip` each, computed by multiplying and adding them up
/// one by one with one rounding each (fused), then dividing by their number or multiplying by its inverse:
/// 2 clip / m (1 + m gamma_{m+3}).
///
/// # Panics
/// When the clip is negative or not a number.
pub fn of_clipped_mean(clip: f64, records: usize) -> f64 {
    // The floor below would hide either of them.
    assert!(clip >= 0.0, "a clip of {clip}");
    let m = records as f64;
    let exact = div_up(mul_up(2.0, clip), m);
    // The floor is above what underflow adds, in any number of dimensions.
    mul_up(exact, add_up(1.0, mul_up(m, gamma(m + 3.0)))).max(1e-280)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rounding_costs_little_until_there_are_very_many_records() {
        assert!(of_clipped_mean(1.0, 100) > 0.02);
        assert!(of_clipped_mean(1.0, 100) < 0.02 * (1.0 + 1e-11));
        assert!(of_clipped_mean(1.0, 1_000_000) < 2e-6 * (1.0 + 1e-3));
    }

    #[test]
    fn a_factor_is_never_rounded_up_where_numbers_run_out() {
        // 1.6 of the smallest double: its nearest double is 2 of them, and would let 1.25 clips through.
        let smallest = f64::from_bits(1);
        assert_eq!(clip_limit(Norm::L1, 8.0 * smallest, &[5.0]), 0.0);
        assert_eq!(clip_limit(Norm::L2, 1.0, &[f64::MAX, f64::MAX]), 0.0, "a norm that overflows");
        // Squares that underflow: the exact norm is 2e-170, and the factor is as for 1e-150.
        let limit = clip_limit(Norm::L2, 1.0, &[1e-170; 4]);
        assert!(limit.is_finite() && limit * 2e-170 <= 1.0);
        let limit = clip_limit(Norm::L2, 1e300, &[1e-160]);
        assert!(limit.is_finite() && limit * 1e-160 <= 1e300);
        assert_eq!(clip_limit(Norm::L2, 0.0, &[1.0]), 0.0);
    }

    #[test]
    #[should_panic(expected = "a clip of NaN")]
    fn a_sensitivity_is_never_made_of_something_that_is_no_number() {
        of_clipped_mean(f64::NAN, 3);
    }

    #[test]
    #[should_panic(expected = "a clip of -1")]
    fn a_sensitivity_is_never_made_of_a_negative_clip() {
        of_clipped_mean(-1.0, 3);
    }

    #[test]
    fn no_records_have_no_finite_sensitivity() {
        assert_eq!(of_clipped_mean(1.0, 0), f64::INFINITY);
    }

    /// CHECK 02.h, the rounding included.
    #[test]
    fn check_02_h_a_mean_computed_in_floating_point_moves_no_further_than_its_sensitivity() {
        let mean = |points: &[f64]| points.iter().fold(0.0, |sum, x| libm::fma(1.0, *x, sum)) / points.len() as f64;
        for m in [2usize, 3, 10, 1000, 100_000] {
            // All at the clip but the first, which is replaced by its opposite: every sum rounds on its way.
            for clip in [1.0, 0.1, 1.0 / 3.0, 1e-300] {
                let here: Vec<f64> = (0..m).map(|_| clip).collect();
                let mut there = here.clone();
                there[0] = -clip;
                let moved = mean(&here) - mean(&there);
                assert!(moved <= of_clipped_mean(clip, m), "{m} records, clip {clip}: {moved}");
            }
        }
    }

    /// The exact norm in units that lose nothing: sums of whole numbers.
    fn norm_of_integers(norm: Norm, x: &[i64]) -> f64 {
        match norm {
            Norm::L1 => x.iter().map(|x| x.unsigned_abs()).sum::<u64>() as f64,
            Norm::L2 => libm::sqrt(x.iter().map(|x| (x * x) as f64).sum()),
        }
    }

    proptest! {
        #[test]
        fn a_factor_within_the_limit_keeps_the_norm_within_the_clip(
            x in prop::collection::vec(-1000i64..1000, 1..40), clip in 1e-3..1e3f64,
        ) {
            let floats: Vec<f64> = x.iter().map(|&x| x as f64).collect();
            for norm in [Norm::L1, Norm::L2] {
                let limit = clip_limit(norm, clip, &floats);
                let product = limit * norm_of_integers(norm, &x);
                prop_assert!(product <= clip);
                prop_assert!(x.iter().all(|&x| x == 0) || product >= clip * (1.0 - 1e-13));
            }
        }
    }
}
