//! The window of losses that is computed, and the width of its cells.

use super::super::{
    loss::{Losses, Pure},
    rdp,
};

/// ln of the tilted mass that may fall outside the window on either side.
const LOG_OUTSIDE: f64 = -46.0;
/// Up to so many steps the window may end at the largest loss, with a cell for each step that the grid may move it.
const CLIPPED_MAX: f64 = 4096.0;

/// The part that the first grid may add to the variance of the loss.
const ERROR: f64 = 1e-4;
/// A delta below most that are asked for, to have an epsilon that depends on the ledger alone.
const SMALL_DELTA: f64 = 1e-12;
const CELLS_MAX: f64 = (1u32 << 22) as f64;
/// Cells of all transforms together.
const WORK_MAX: f64 = (1u32 << 26) as f64;

/// A window of losses, and the tilts that prove how little is outside.
pub(super) struct Window {
    pub low: f64,
    pub high: f64,
    pub tilt_low: f64,
    pub tilt_high: f64,
    /// Cells to add on either side.
    pub margin: f64,
}

impl Window {
    /// The window of the law tilted with s: P_s(L > high) <= exp(K(s+t) - K(s) - t high) for every t > 0, and likewise below.
    pub fn around(losses: &Losses, s: f64) -> Self {
        let here = losses.log_moment(s);
        let largest = losses.largest();
        let (low, high) = (-f64::INFINITY, f64::INFINITY);
        let mut window = Window { low, high, tilt_low: 0.0, tilt_high: 0.0, margin: 4.0 };
        for k in -80..=150 {
            let t = libm::exp(0.4 * f64::from(k));
            let there = losses.log_moment(s + t);
            // Beyond e^32 only for losses so small that t times them is; else it would be lost in rounding.
            if k > 80 && there > 1e3 {
                break;
            }
            let high = (there - here - LOG_OUTSIDE) / t;
            if high < window.high {
                (window.high, window.tilt_high) = (high, t);
            }
            let low = (here - losses.log_moment(s - t) + LOG_OUTSIDE) / t;
            if low > window.low {
                (window.low, window.tilt_low) = (low, t);
            }
        }
        if losses.steps() <= CLIPPED_MAX {
            window.margin += losses.steps();
            if window.high >= largest {
                (window.high, window.tilt_high) = (largest, f64::INFINITY);
            }
            if window.low <= -largest {
                (window.low, window.tilt_low) = (-largest, f64::INFINITY);
            }
        }
        window
    }

    pub fn width(&self) -> f64 {
        self.high - self.low
    }

    /// How many cells of width h the window takes.
    pub fn cells(&self, h: f64) -> f64 {
        self.width() / h + 2.0 * self.margin + 2.0
    }

    /// The narrowest width of at least h, a power of two times it, with which there are not too many cells.
    pub fn affordable(&self, losses: &Losses, mut h: f64) -> f64 {
        let different = losses.pure.len() as f64 + 1.0;
        let most = (WORK_MAX / different).clamp(16_384.0, CELLS_MAX) + 2.0 * self.margin;
        while self.cells(h) > most {
            h *= 2.0;
        }
        h
    }
}

/// The largest power of two up to x.
pub(super) fn power_of_two(x: f64) -> f64 {
    libm::ldexp(1.0, libm::frexp(x).1 - 1)
}

/// The width of a cell to begin with, for the law tilted with s; none if there is none.
///
/// It is a power of two and depends on the ledger alone, unless the tilt is so steep that epsilon is at the largest loss. On
/// a given grid the accountant is exactly monotone, because a pair that dominates another still does on the grid; and a
/// coarser grid is never better. With equal steps the width never falls when there are more of them or less noise.
pub(super) fn first_width(losses: &Losses, s: f64) -> Option<f64> {
    // A step adds about h^2/6 to the variance of the loss, whose own variance is near eps^2 up to some 4.
    let of = |step: &Pure| step.count as f64 * step.epsilon.min(2.0) * step.epsilon.min(2.0);
    let variance = losses.pure.iter().map(of).sum::<f64>() + losses.mu * losses.mu;
    let smooth = (6.0 * ERROR * variance / (losses.steps() + 1.0)).sqrt();
    // Few steps have atoms, which must not be moved far.
    let (_, above) = rdp::best_order(losses, SMALL_DELTA)?;
    let part = if losses.pure.len() <= 16 { 3e-5 } else { 1.2e-4 };
    let atoms = part * above.min(losses.largest());
    // The cells of a steep tilt must not differ by more than a factor of e^4.
    let width = smooth.min(atoms).min(4.0 / s);
    (width > 1e-290 && width.is_finite()).then(|| power_of_two(width))
}

/// The smallest length that a transform takes quickly, of at least so many cells.
pub(in crate::account) fn quick_length(cells: f64) -> usize {
    let cells = cells.ceil() as usize;
    let times = |odd: usize| odd * cells.div_ceil(odd).next_power_of_two().max(2);
    [1, 3, 5].into_iter().map(times).min().unwrap_or(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_and_lengths_are_the_nearest_ones() {
        for (x, power) in [(1.0, 1.0), (1.9, 1.0), (2.0, 2.0), (0.3, 0.25), (1e-200, libm::exp2(-665.0))] {
            assert_eq!(power_of_two(x), power);
        }
        for (cells, length) in [(1.0, 2), (1000.0, 1024), (1025.0, 1280), (1300.0, 1536), (1537.0, 2048)] {
            assert_eq!(quick_length(cells), length, "{cells}");
        }
    }
}
