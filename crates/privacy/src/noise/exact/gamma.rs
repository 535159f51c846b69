//! Noise with density proportional to exp(-|b|_2 / scale) in p dimensions: b = scale G n/|n|, where G follows the Gamma law with
//! shape p (the sum of p exponentials) and n is normal in p dimensions. Proof: `proofs/gamma-norm.md`.
//!
//! Each exponential and normal is an exact sample of which digits are drawn as needed. With as many digits as are drawn, every
//! coordinate of b is between two known numbers; digits are drawn until all coordinates round to the same whole number at
//! both ends.

use super::{
    digits::Bits,
    grid::{Grid, nearest_between},
    laws::Deviate,
};
use num_bigint::BigUint;
use rand_chacha::rand_core::CryptoRng;

/// Fraction bits to begin with: with these the first try decides, at any dimension that fits a computer.
const FRACTION_BITS: usize = 128;

/// The noise of each of `dimension` coordinates, in whole spacings.
pub(super) fn noise<R: CryptoRng, const WIDTH: u32>(
    grid: &Grid,
    dimension: usize,
    bits: &mut Bits<R, WIDTH>,
) -> Vec<i128> {
    match dimension {
        0 => return Vec::new(),
        // A direction on the line is a sign: this is the Laplace law.
        1 => return vec![grid.noise(&mut Deviate::laplace(bits), bits)],
        _ => {}
    }
    let mut exponentials: Vec<_> = (0..dimension).map(|_| Deviate::exponential(bits)).collect();
    let mut normals: Vec<_> = (0..dimension).map(|_| Deviate::normal(bits)).collect();
    let mut count = FRACTION_BITS.div_ceil(WIDTH as usize);
    loop {
        if let Some(noise) = rounded(grid, &mut exponentials, &mut normals, count, bits) {
            return noise;
        }
        count *= 2;
    }
}

/// The whole numbers, if `count` digits of everything decide them.
pub(super) fn rounded<R: CryptoRng, const WIDTH: u32>(
    grid: &Grid,
    exponentials: &mut [Deviate],
    normals: &mut [Deviate],
    count: usize,
    bits: &mut Bits<R, WIDTH>,
) -> Option<Vec<i128>> {
    // In units of 2^-drawn, each deviate lies between `at_least` and that plus 1.
    let drawn = count * WIDTH as usize;
    let mut at_least = |deviate: &mut Deviate| deviate.fraction.leading(deviate.whole, count, bits);

    let mut sum_least = BigUint::from(0u32);
    for deviate in exponentials.iter_mut() {
        sum_least += at_least(deviate);
    }
    let sum_most = &sum_least + exponentials.len();

    let sizes: Vec<BigUint> = normals.iter_mut().map(at_least).collect();
    let (mut squares, mut sum) = (BigUint::from(0u32), BigUint::from(0u32));
    for size in &sizes {
        squares += size * size;
        sum += size;
    }
    let length_least = squares.sqrt();
    if length_least == BigUint::from(0u32) {
        return None;
    }
    // The sum of (size + 1)^2 is larger than that of size^2 by d = 2 sum + p, and sqrt(x + d) <= sqrt(x) + d / (2 sqrt(x)); sqrt(x) is
    // below length_least + 1, and the quotient is rounded down.
    let length_most = ((sum << 1) + normals.len()) / (&length_least << 1) + &length_least + 2u32;

    // scale / g times G/|n|, in units of 2^(exponent - drawn).
    let (mantissa, exponent) = grid.factor();
    let ratio_least = (sum_least << drawn) / length_most * mantissa;
    let ratio_most = ((sum_most << drawn) / length_least + 1u32) * mantissa;
    let exponent = i64::from(exponent) - 2 * drawn as i64;
    // Between ratio_least x size and ratio_most x (size + 1) there is at most this, whichever the size.
    let largest = sizes.iter().max()? + 1u32;
    let spread = (&ratio_most - &ratio_least) * largest + &ratio_most;
    let coordinate = |(deviate, size): (&Deviate, BigUint)| {
        let least = &ratio_least * size;
        let most = &least + &spread;
        let size = nearest_between(least, most, exponent)?;
        Some(if deviate.is_negative { -size } else { size })
    };
    normals.iter().zip(sizes).map(coordinate).collect()
}
