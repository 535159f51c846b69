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

/// The largest factor that `x` may be multiplied by so that the exact product has norm at most `clip`.
pub fn clip_limit(norm: Norm, clip: f64, x: &[f64]) -> f64 {
    // The computed norm is within gamma_{p+2} of the exact one unless squares underflow, which the floor covers.
    let length = norm.of(x).max(1e-150);
    let limit = clip / length * (1.0 - 2.0 * gamma(x.len() as f64 + 8.0));
    // A point so small that no factor matters still gets a finite one.
    limit.clamp(0.0, f64::MAX)
}

/// The sensitivity of a mean of `records` vectors of norm at most `clip` each, computed by multiplying and adding them up
/// one by one with one rounding each (fused), then dividing: 2 clip / m (1 + m gamma_{m+3}).
pub fn of_clipped_mean(clip: f64, records: usize) -> f64 {
    let m = records as f64;
    let exact = div_up(mul_up(2.0, clip), m);
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
