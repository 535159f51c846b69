//! Gaussian masks: the paper's pairwise noise Delta_uv ~ N(0, sigma_Delta^2), expanded from a pair's secret.
//!
//! They are here for the paper's figures, and for runs that would rather tolerate the noise of an edge whose other end left
//! than roll it back. [Pads](crate::pad) are strictly better for privacy on the same graph (spec 04, section 6).
//!
//! **What they are.** Normal numbers by Box and Muller (1958) from 53-bit uniform numbers of the pair's stream, in floating point with
//! `libm` (so both ends get the same bits on every machine), times sigma, rounded to the grid. So they are **not** an exact sample
//! of a Gaussian: magnitudes end at 8.6 sigma, and each is off by a few units in the last place before it is rounded. The accountants' figures
//! for Gaussian masks are those of the ideal law; no bound on the difference is proved here. Noise that must be exact, the share eta
//! that the guarantee rests on, is not made here.
//!
//! **Time.** Logarithm, sine and rounding run on secret numbers and are not constant time: who can measure a member's own
//! processor may learn something of its masks. Where that matters, use pads.

use crate::{
    fixed_point::{Grid, INTEGER_BOUND},
    flaw::{Flaw, Unfit},
    pad::{PAD_NUMBERS_MAX, PadStream, RevealedPad, Sign, SpentPad},
    stream::{KeyStream, nonce},
};
use curve25519_dalek::scalar::Scalar;
use std::fmt;
use zeroize::Zeroizing;

/// A received mask beyond so many standard deviations is refused (spec 04, section 5.1): 2^20.
pub const DEVIATIONS_MAX: f64 = 1_048_576.0;

const UNIT: f64 = f64::from_bits((1023 - 53) << 52);

/// Masks of one pair and round, and the blinding of a commitment to them. Wiped when dropped; both ends have the opposite of each.
pub struct GaussianMasks {
    /// The signed masks, in steps of the grid.
    pub masks: Zeroizing<Vec<i64>>,
    /// The signed blinding of the commitment to all masks: uniform, and not Gaussian.
    pub blinding: Zeroizing<Scalar>,
}

impl fmt::Debug for GaussianMasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GaussianMasks")
    }
}

impl PadStream {
    /// `count` masks of this standard deviation, as integers on the grid, with the sign that the keys decide.
    pub fn gaussian(self, deviation: f64, grid: Grid, count: usize) -> Result<(GaussianMasks, SpentPad), Unfit> {
        let masks = expand(self.key_and_sign(), deviation, grid, count)?;
        Ok((masks, self.spent()))
    }
}

impl RevealedPad {
    /// The opener's masks, to be taken out of a sum.
    pub fn gaussian(&self, deviation: f64, grid: Grid, count: usize) -> Result<GaussianMasks, Unfit> {
        expand(self.key_and_sign(), deviation, grid, count)
    }
}

fn expand((key, sign): (&[u8; 32], Sign), deviation: f64, grid: Grid, count: usize) -> Result<GaussianMasks, Unfit> {
    check(deviation, grid)?;
    if count > PAD_NUMBERS_MAX {
        return Err(Unfit::TooMany);
    }
    let blinding = KeyStream::new(key, &nonce(b"blnd", 0)).scalar();
    let blinding = Zeroizing::new(if sign == Sign::Adds { blinding } else { -blinding });
    let mut stream = KeyStream::new(key, &nonce(b"norm", 0));
    // Numbers come in pairs, so there may be one too many; with room for it the list is never moved and left behind.
    let mut masks = Zeroizing::new(Vec::with_capacity(count + 1));
    while masks.len() < count {
        for normal in box_muller(&mut stream) {
            let mask = grid.nearest(deviation * normal)?;
            masks.push(if sign == Sign::Adds { mask } else { -mask });
        }
    }
    masks.truncate(count);
    Ok(GaussianMasks { masks, blinding })
}

/// Refuses a mask that no honest draw could be, before it can make a sum overflow.
pub fn check_mask(mask: i64, deviation: f64, grid: Grid) -> Result<(), Flaw> {
    if mask.unsigned_abs() as f64 <= DEVIATIONS_MAX * deviation / grid.step() {
        Ok(())
    } else {
        Err(Flaw::MaskTooLarge)
    }
}

/// A deviation is usable if even the largest mask that would be accepted fits the grid.
fn check(deviation: f64, grid: Grid) -> Result<(), Unfit> {
    let usable = deviation > 0.0 && DEVIATIONS_MAX * deviation / grid.step() < INTEGER_BOUND as f64;
    if usable { Ok(()) } else { Err(Unfit::Deviation) }
}

/// Two independent normal numbers from two uniform ones, the first in (0, 1].
fn box_muller(stream: &mut KeyStream) -> [f64; 2] {
    let mut bytes = Zeroizing::new([0; 16]);
    stream.fill(&mut *bytes);
    let (words, _) = bytes.as_chunks::<8>();
    let [first, second] = [0, 1].map(|i| u64::from_le_bytes(words[i]) >> 11);
    let radius = libm::sqrt(-2.0 * libm::log((first + 1) as f64 * UNIT));
    let angle = 2.0 * std::f64::consts::PI * (second as f64 * UNIT);
    [radius * libm::cos(angle), radius * libm::sin(angle)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        commitment::Opening,
        generators::Generators,
        pad::{Direction, PairSecret},
        proofs::antisymmetry,
    };

    fn masks(sign: Sign, count: usize, deviation: f64) -> Result<Vec<i64>, Unfit> {
        let stream = PairSecret::from_bytes(&[9; 32], sign, 0).stream(0, Direction::FromSmaller).expect("unused");
        Ok(stream.gaussian(deviation, Grid::binary(32)?, count)?.0.masks.to_vec())
    }

    #[test]
    fn masks_of_both_ends_cancel_and_their_variance_is_the_declared_one() {
        let count = 200_001;
        let (a, b) = (masks(Sign::Adds, count, 3.5).expect("fine"), masks(Sign::Subtracts, count, 3.5).expect("fine"));
        assert_eq!(a.len(), count);
        assert!(a.iter().zip(&b).all(|(a, b)| a + b == 0));
        let grid = Grid::binary(32).expect("a grid");
        let mean = a.iter().map(|mask| grid.value(*mask)).sum::<f64>() / count as f64;
        let variance = a.iter().map(|mask| grid.value(*mask) * grid.value(*mask)).sum::<f64>() / count as f64;
        let fourth = a.iter().map(|mask| (grid.value(*mask) / 3.5).powi(4)).sum::<f64>() / count as f64;
        // Five standard errors of mean, variance (2 sigma^4 / n) and fourth moment (96 / n).
        let root = (count as f64).sqrt();
        assert!(mean.abs() < 5.0 * 3.5 / root, "{mean}");
        assert!((variance / 12.25 - 1.0).abs() < 5.0 * 2_f64.sqrt() / root, "{variance}");
        assert!((fourth - 3.0).abs() < 5.0 * 96_f64.sqrt() / root, "{fourth}");
        assert!(a.iter().all(|mask| check_mask(*mask, 3.5, grid).is_ok()));
    }

    #[test]
    fn an_opened_pad_gives_the_masks_and_commitments_to_them_cancel() {
        let (grid, generators) = (Grid::binary(32).expect("a grid"), Generators::new(3, 0));
        let stream = |sign| PairSecret::from_bytes(&[9; 32], sign, 0).stream(4, Direction::FromLarger).expect("unused");
        let [(one, spent), (other, _)] =
            [Sign::Adds, Sign::Subtracts].map(|sign| stream(sign).gaussian(2.0, grid, 3).expect("fine"));
        let opened = spent.reveal().gaussian(2.0, grid, 3).expect("fine");
        assert_eq!((&*opened.masks, &*opened.blinding), (&*one.masks, &*one.blinding));
        assert_eq!(format!("{one:?}"), "GaussianMasks");
        let [one, other] = [one, other].map(|masks| Opening::from(masks).commit(&generators).expect("three"));
        assert_eq!(antisymmetry::verify(&one, &other), Ok(()));
    }

    #[test]
    fn deviations_that_could_overflow_and_masks_beyond_the_bound_are_refused() {
        for deviation in [0.0, -1.0, f64::NAN, f64::INFINITY, 1024.0] {
            assert_eq!(masks(Sign::Adds, 1, deviation), Err(Unfit::Deviation), "{deviation}");
        }
        assert!(masks(Sign::Adds, 1, 1000.0).is_ok());
        let grid = Grid::binary(20).expect("a grid");
        let largest = (1_i64 << 20) * 3 * (1 << 20);
        for sign in [1, -1] {
            assert_eq!(check_mask(sign * largest, 3.0, grid), Ok(()));
            assert_eq!(check_mask(sign * (largest + (1 << 10)), 3.0, grid), Err(Flaw::MaskTooLarge));
        }
        assert_eq!(check_mask(i64::MIN, 3.0, grid), Err(Flaw::MaskTooLarge));
    }
}
