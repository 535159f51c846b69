//! A grid that the sums of a token lie on, so that they are exact: what they hide does not show in their last digits.

use crate::Bounds;
use sottovoce_core::wire::NUMBER_MAX;

/// The grid is so much finer than the range of a contribution,
const BITS: i32 = 20;

/// and a token is at most so many ranges: sums on the grid are exact.
const RANGES_MAX: f64 = (1u64 << 31) as f64;

/// The distance of a grid's points: a power of two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Grid(f64);

impl Grid {
    /// Of contributions in a range; none where it is no range.
    pub fn of(range: Bounds) -> Option<Grid> {
        let Bounds { low, high } = range;
        let (width, largest) = (high - low, low.abs().max(high.abs()));
        let is_range = low.is_finite() && high.is_finite() && width > 0.0 && largest < NUMBER_MAX;
        is_range.then(|| Grid(libm::ldexp(1.0, libm::ilogb(width.max(largest)) - BITS)))
    }

    /// The distance of its points.
    pub fn step(self) -> f64 {
        self.0
    }

    /// The nearest point.
    pub fn snap(self, value: f64) -> f64 {
        libm::rint(value / self.0) * self.0
    }

    /// Whether a token can hold this number.
    pub fn holds(self, value: f64) -> bool {
        value.abs() <= RANGES_MAX * libm::ldexp(self.0, BITS) && self.snap(value) == value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_on_the_grid_are_exact_up_to_the_largest_token() {
        let grid = Grid::of(Bounds { low: -3.0, high: 0.1 }).expect("a range");
        let value = grid.snap(-2.345678);
        assert!((value + 2.345678).abs() <= 0.5 * grid.step() && grid.holds(value) && !grid.holds(value + 1e-9));
        let most = RANGES_MAX * libm::ldexp(grid.step(), BITS);
        assert!(grid.holds(most) && (most + grid.step()) - most == grid.step(), "the last digit is not lost");
        assert!(!grid.holds(2.0 * most) && !grid.holds(f64::NAN) && !grid.holds(f64::INFINITY));
        for (low, high) in [(1.0, 1.0), (0.0, f64::INFINITY), (2.0, 1.0), (0.0, 1e80)] {
            assert_eq!(Grid::of(Bounds { low, high }), None);
        }
    }
}
