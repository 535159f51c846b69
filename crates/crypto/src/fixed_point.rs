//! Fixed point: real numbers as integers on a declared grid (spec 04, section 5.1).
//!
//! A [`Grid`] has a step; the number v stands for the integer nearest to v / step. All sums after that are exact, in one
//! of two rings:
//!
//! - **Z_2^64**, where pads live: the integer in two's complement; sums wrap, and are right as long as the true sum lies
//!   in [-2^63, 2^63);
//! - **the scalar field** of Ristretto255 (order about 2^252), where commitments live: a negative integer is the order
//!   minus its magnitude.
//!
//! **Range.** An integer has magnitude below 2^62; what lies beyond, NaN and infinities are refused, never clipped in silence.
//! [`sum_fits`] says before a run whether so many terms of such a magnitude can be added in Z_2^64.
//!
//! **Rounding.** [`Grid::nearest`] rounds v / step, itself a correctly rounded division, to the nearest integer, ties to even.
//! [`Grid::stochastic`] rounds up with probability equal to the fractional part (to 2^-53), so that its mean is v; that is
//! the rounding for noise that lives on a lattice (spec 04, section 6), where the grid's step *is* the noise's step.
//!
//! **Time.** The conversion of a double is a division and a rounding and takes the processor's time for that; everything
//! from the integer on (sign, ring, scalar) is constant time.

use crate::flaw::{Flaw, Unfit};
use curve25519_dalek::scalar::Scalar;
use rand_core::CryptoRng;
use subtle::{Choice, ConditionallySelectable};

/// Integers on a grid have a magnitude below this bound: 2^62.
pub const INTEGER_BOUND: i64 = 1 << 62;

/// The same bound, as a double.
const BOUND: f64 = INTEGER_BOUND as f64;
/// 2^-200 and 2^200: within them no quotient of the bounds above overflows or is subnormal.
const STEP_MIN: f64 = f64::from_bits((1023 - 200) << 52);
const STEP_MAX: f64 = f64::from_bits((1023 + 200) << 52);
/// 2^-53: one draw of a uniform number in [0, 1).
const UNIT: f64 = f64::from_bits((1023 - 53) << 52);

/// A declared grid of numbers: the multiples of its step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    step: f64,
}

impl Grid {
    /// The grid of all multiples of `step`.
    pub fn new(step: f64) -> Result<Grid, Unfit> {
        if (STEP_MIN..=STEP_MAX).contains(&step) { Ok(Grid { step }) } else { Err(Unfit::Step) }
    }

    /// The grid of step 2^-bits: binary fixed point, without any error of the division.
    pub fn binary(bits: u32) -> Result<Grid, Unfit> {
        if bits > 62 {
            return Err(Unfit::Step);
        }
        Grid::new(f64::from_bits((1023 - u64::from(bits)) << 52))
    }

    /// The distance of two neighbouring numbers.
    pub fn step(&self) -> f64 {
        self.step
    }

    /// The integer nearest to `value / step`, ties to even.
    pub fn nearest(&self, value: f64) -> Result<i64, Unfit> {
        let steps = self.steps(value)?;
        bounded(steps.round_ties_even())
    }

    /// One of the two integers around `value / step`, the upper one with probability equal to the fractional part.
    pub fn stochastic(&self, value: f64, rng: &mut impl CryptoRng) -> Result<i64, Unfit> {
        let steps = self.steps(value)?;
        let below = steps.floor();
        let uniform = (rng.next_u64() >> 11) as f64 * UNIT;
        let up = if uniform < steps - below { 1.0 } else { 0.0 };
        bounded(below + up)
    }

    /// The integers between which every number from `low` to `high` falls, however it is rounded: the bounds to declare and to
    /// prove, and their difference is how far one number can move a sum.
    pub fn range(&self, low: f64, high: f64) -> Result<(i64, i64), Unfit> {
        let (low, high) = (bounded(self.steps(low)?.floor())?, bounded(self.steps(high)?.ceil())?);
        if low < high { Ok((low, high)) } else { Err(Unfit::Range) }
    }

    /// The number that an integer stands for, rounded to the nearest double.
    pub fn value(&self, integer: i64) -> f64 {
        integer as f64 * self.step
    }

    fn steps(&self, value: f64) -> Result<f64, Unfit> {
        let steps = value / self.step;
        if steps.abs() < BOUND { Ok(steps) } else { Err(Unfit::NumberOutOfRange) }
    }
}

/// A double that is an integer, as one.
fn bounded(integer: f64) -> Result<i64, Unfit> {
    if integer.abs() < BOUND { Ok(integer as i64) } else { Err(Unfit::NumberOutOfRange) }
}

/// Whether every sum of `terms` integers of magnitude at most `magnitude` can be read back from Z_2^64.
pub fn sum_fits(terms: u64, magnitude: u64) -> Result<(), Unfit> {
    match terms.checked_mul(magnitude) {
        Some(largest) if largest <= i64::MAX as u64 => Ok(()),
        _ => Err(Unfit::SumCouldOverflow),
    }
}

/// An integer as an element of Z_2^64.
pub fn to_ring(integer: i64) -> u64 {
    integer as u64
}

/// The integer in [-2^63, 2^63) that an element of Z_2^64 stands for.
pub fn from_ring(element: u64) -> i64 {
    element as i64
}

/// An integer as a scalar, in constant time.
pub fn to_scalar(integer: i64) -> Scalar {
    let magnitude = Scalar::from(integer.unsigned_abs());
    let negative = Choice::from((integer as u64 >> 63) as u8);
    Scalar::conditional_select(&magnitude, &-magnitude, negative)
}

/// The integer of magnitude below 2^62 that a published scalar stands for.
///
/// For sums that everybody sees; the time it takes depends on the scalar.
pub fn from_scalar(scalar: &Scalar) -> Result<i64, Flaw> {
    let small = |scalar: &Scalar| {
        let bytes = scalar.as_bytes();
        let (low, high) = bytes.split_at(8);
        let low = i64::from_le_bytes(low.try_into().expect("eight bytes"));
        (high.iter().all(|byte| *byte == 0) && (0..INTEGER_BOUND).contains(&low)).then_some(low)
    };
    match (small(scalar), small(&-scalar)) {
        (Some(integer), _) => Ok(integer),
        (None, Some(magnitude)) => Ok(-magnitude),
        (None, None) => Err(Flaw::SumOutOfRange),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rng;

    #[test]
    fn numbers_round_to_the_nearest_integer_and_ties_to_even() {
        let grid = Grid::binary(1).expect("a grid");
        for (value, integer) in [(0.25, 0), (0.75, 2), (1.25, 2), (-0.25, 0), (-0.75, -2), (0.3, 1), (-1.0, -2)] {
            assert_eq!(grid.nearest(value), Ok(integer), "{value}");
        }
        assert_eq!(Grid::new(0.3).expect("a grid").nearest(0.9), Ok(3));
    }

    #[test]
    fn numbers_that_do_not_fit_are_refused_and_never_clipped() {
        let grid = Grid::binary(32).expect("a grid");
        let edge = 1_073_741_824.0;
        for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, edge, -edge, 1e300] {
            assert_eq!(grid.nearest(value), Err(Unfit::NumberOutOfRange), "{value}");
            assert_eq!(grid.stochastic(value, &mut rng(1)), Err(Unfit::NumberOutOfRange), "{value}");
        }
        assert!(grid.nearest(edge - 1e-3).is_ok());
        for step in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300, 1e300] {
            assert_eq!(Grid::new(step), Err(Unfit::Step), "{step}");
        }
        assert_eq!(Grid::binary(63), Err(Unfit::Step));
    }

    #[test]
    fn stochastic_rounding_has_the_value_as_its_mean() {
        let grid = Grid::new(0.1).expect("a grid");
        let mut rng = rng(2);
        for value in [0.537, -0.537, 0.02, -7.7777] {
            let draws = 40_000;
            let mut sum = 0.0;
            for _ in 0..draws {
                let integer = grid.stochastic(value, &mut rng).expect("in range");
                assert!((grid.value(integer) - value).abs() <= 0.1 + 1e-12);
                sum += grid.value(integer);
            }
            // The deviation of one draw is at most half a step; five deviations of the mean.
            assert!((sum / f64::from(draws) - value).abs() < 5.0 * 0.05 / f64::from(draws).sqrt(), "{value}");
        }
    }

    #[test]
    fn every_rounding_of_a_number_in_a_range_stays_in_its_integers() {
        let mut rng = rng(3);
        for (step, low, high) in [(0.3, 0.0, 1.0), (0.25, -1.0, 1.0), (0.7, -3.3, -1.1)] {
            let grid = Grid::new(step).expect("a grid");
            let (first, last) = grid.range(low, high).expect("a range");
            assert!(grid.value(first) <= low && grid.value(last) >= high, "{step}");
            for value in [low, high, 0.5 * (low + high)] {
                for _ in 0..50 {
                    assert!((first..=last).contains(&grid.stochastic(value, &mut rng).expect("in range")));
                }
                assert!((first..=last).contains(&grid.nearest(value).expect("in range")));
            }
            assert_eq!(grid.range(high, low), Err(Unfit::Range));
        }
        assert_eq!(Grid::new(0.3).expect("a grid").range(0.0, 1.0), Ok((0, 4)));
    }

    #[test]
    fn integers_come_back_from_both_rings_and_sums_are_exact() {
        let integers = [0, 1, -1, 12345, -98765, INTEGER_BOUND - 1, 1 - INTEGER_BOUND];
        for a in integers {
            assert_eq!(from_ring(to_ring(a)), a);
            assert_eq!(from_scalar(&to_scalar(a)), Ok(a));
            for b in integers {
                let ring = to_ring(a).wrapping_add(to_ring(b));
                assert_eq!(i128::from(from_ring(ring)), i128::from(a) + i128::from(b));
                if a.checked_add(b).is_some_and(|sum| sum.abs() < INTEGER_BOUND) {
                    assert_eq!(from_scalar(&(to_scalar(a) + to_scalar(b))), Ok(a + b));
                }
            }
        }
        assert_eq!(from_scalar(&Scalar::from(1_u64 << 62)), Err(Flaw::SumOutOfRange));
        assert_eq!(from_scalar(&-Scalar::from(1_u64 << 62)), Err(Flaw::SumOutOfRange));
        assert_eq!(from_scalar(&Scalar::from(1_u128 << 100)), Err(Flaw::SumOutOfRange));
    }

    #[test]
    fn a_sum_that_could_overflow_is_refused_beforehand() {
        assert_eq!(sum_fits(2, 1 << 61), Ok(()));
        assert_eq!(sum_fits(2, 1 << 62), Err(Unfit::SumCouldOverflow));
        assert_eq!(sum_fits(1, i64::MAX as u64), Ok(()));
        assert_eq!(sum_fits(u64::MAX, 2), Err(Unfit::SumCouldOverflow));
        assert_eq!(sum_fits(0, u64::MAX), Ok(()));
    }
}
