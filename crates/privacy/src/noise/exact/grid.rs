//! The grid that releases lie on, and arithmetic between doubles and its whole numbers that rounds where it says so.
//! Proof: `proofs/exact-sampling.md`.
//!
//! Everything here is in units of the grid's spacing g, a power of two that only the (public) sensitivity decides.

use super::{
    digits::{Bits, WIDE},
    laws::Deviate,
};
use crate::sensitivity::Norm;
use num_bigint::BigUint;
use rand_chacha::rand_core::CryptoRng;

/// g is between 2^-41 and 2^-40 of the sensitivity.
const SPACINGS_LOG2: i32 = 40;

/// Values are clamped to this many spacings before noise is added, and their noisy sums again.
const LIMIT: i128 = 1 << 125;

/// What noise of twice the limit or more is taken as: added to any clamped value, it is clamped all the same.
const BEYOND: i128 = 1 << 126;

/// Where a release lies, and how much noise it gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Grid {
    /// g = 2^spacing_log2.
    spacing_log2: i32,
    /// The scale of the noise is `mantissa` 2^`exponent` spacings, `mantissa` being at most 2^53.
    mantissa: u64,
    exponent: i32,
}

impl Grid {
    /// The grid of a release of `dimension` numbers.
    pub fn new(noise_multiplier: f64, sensitivity: f64, norm: Norm, dimension: usize) -> Self {
        let (multiplier, multiplier_log2) = decoded(noise_multiplier);
        let (delta, delta_log2) = decoded(sensitivity);
        let spacing_log2 = delta_log2 + 52 - SPACINGS_LOG2;
        // PRIVACY: rounding to the grid moves each value by g/2 at most, so the difference of neighbours grows by at most g
        // in each coordinate: p g in the L1 norm, sqrt(p) g in the L2 norm. The scale is the multiplier times the sum.
        let slack = match norm {
            Norm::L1 => dimension,
            Norm::L2 => dimension.isqrt() + usize::from(dimension.isqrt().pow(2) < dimension),
        };
        let fraction_bits = 52 - SPACINGS_LOG2;
        let total = u128::from(delta) + ((slack as u128) << fraction_bits);
        let product = u128::from(multiplier) * total;
        // Rounded up to 53 bits.
        let excess = (128 - product.leading_zeros()).saturating_sub(53);
        let mantissa = (product >> excess) + u128::from(product & ((1 << excess) - 1) != 0);
        Grid { spacing_log2, mantissa: mantissa as u64, exponent: multiplier_log2 - fraction_bits + excess as i32 }
    }

    /// The whole number of spacings nearest to a finite value, clamped.
    pub fn nearest(&self, value: f64) -> i128 {
        if value == 0.0 {
            return 0;
        }
        let (mantissa, exponent) = decoded(value.abs());
        let size = match exponent - self.spacing_log2 {
            shift @ 0..=72 => i128::from(mantissa) << shift,
            73.. => LIMIT,
            shift @ -60..0 => (i128::from(mantissa) + (1 << (-shift - 1))) >> -shift,
            _ => 0,
        };
        if value < 0.0 { -size } else { size }
    }

    /// The noise: the whole number nearest to scale / g times the deviate, drawing digits until there is no doubt. Numbers too large
    /// for any sum are [`BEYOND`].
    pub fn noise<R: CryptoRng, const WIDTH: u32>(&self, deviate: &mut Deviate, bits: &mut Bits<R, WIDTH>) -> i128 {
        let quick = if WIDTH == WIDE { self.size_by_first_digit(deviate) } else { None };
        let size = quick.unwrap_or_else(|| self.size_by_all_digits(deviate, bits));
        if deviate.is_negative { -size } else { size }
    }

    /// What the first digit, of 64 bits, already decides.
    #[inline]
    fn size_by_first_digit(&self, deviate: &Deviate) -> Option<i128> {
        let fraction_bits = 64 - self.exponent;
        if deviate.whole >= 1 << 10 || !(1..=126).contains(&fraction_bits) {
            return None;
        }
        // At most 2^53 2^74 = 2^127, and half a spacing is at most 2^125.
        let least =
            u128::from(self.mantissa) * (u128::from(deviate.whole) << 64 | u128::from(deviate.fraction.first()));
        let half = 1 << (fraction_bits - 1);
        let size = (least + half) >> fraction_bits;
        let is_certain = size == (least + u128::from(self.mantissa) + half) >> fraction_bits;
        is_certain.then(|| BEYOND.min(size as i128))
    }

    #[cold]
    fn size_by_all_digits<R: CryptoRng, const WIDTH: u32>(
        &self,
        deviate: &mut Deviate,
        bits: &mut Bits<R, WIDTH>,
    ) -> i128 {
        let mut count = 1;
        loop {
            let drawn = count * WIDTH as usize;
            let number = deviate.fraction.leading(deviate.whole, count, bits);
            let least = number * self.mantissa;
            let most = &least + self.mantissa;
            if let Some(size) = nearest_between(least, most, i64::from(self.exponent) - drawn as i64) {
                return size;
            }
            count += 1;
        }
    }

    /// The factor of [`Grid::noise`], for whoever multiplies by more than a deviate: `.0` times 2 to the `.1`.
    pub fn factor(&self) -> (u64, i32) {
        (self.mantissa, self.exponent)
    }

    /// The double for a value with its noise.
    pub fn sum(&self, value: i128, noise: i128) -> f64 {
        // PRIVACY: the clamp and the conversion see the noisy sum alone: post-processing.
        let sum = (value + noise).clamp(-LIMIT, LIMIT);
        libm::scalbn(sum as f64, self.spacing_log2).clamp(f64::MIN, f64::MAX)
    }
}

/// The whole number nearest to every number between least 2^exponent and most 2^exponent, if there is one such; [`BEYOND`] if
/// they all are at least that.
pub(super) fn nearest_between(least: BigUint, most: BigUint, exponent: i64) -> Option<i128> {
    if least.bits() > 0 && least.bits() as i64 + exponent > 126 {
        return Some(BEYOND);
    }
    let Ok(fraction_bits) = u64::try_from(-exponent) else { return None };
    if most.bits() < fraction_bits {
        return Some(0);
    }
    if fraction_bits == 0 {
        return None;
    }
    let half = BigUint::from(1u32) << (fraction_bits - 1);
    let size = (least + &half) >> fraction_bits;
    if size == (most + half) >> fraction_bits { i128::try_from(size).ok() } else { None }
}

/// A positive finite double as mantissa 2^exponent, with a mantissa of 53 bits exactly.
fn decoded(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let (fraction, exponent) = (bits & ((1 << 52) - 1), (bits >> 52) as i32);
    if exponent == 0 {
        let shift = fraction.leading_zeros() as i32 - 11;
        (fraction << shift, -1074 - shift)
    } else {
        (fraction | 1 << 52, exponent - 1075)
    }
}
