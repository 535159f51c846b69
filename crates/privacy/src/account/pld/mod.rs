//! The privacy loss distribution, composed by Fourier transforms. Proof: `proofs/pld.md`.
//!
//! Each step is replaced by a pair of laws on a grid of losses j h that dominates it ("connect the dots": the mass of a
//! cell goes to its two ends so that P's and Q's are both kept, see [`discrete`]); all steps together then have as loss a
//! sum of independent grid variables, and
//! ```text
//! delta(e) = sum_{l > e} p(l) (1 - e^{e - l})
//! ```
//! The law p is computed tilted, p_s(l) = p(l) e^{sl} / E e^{sL}, with s near the saddle point of the delta asked for: the
//! losses that matter are then in the bulk, and neither the transform's rounding nor what falls outside its window hurts
//! a small delta. Whatever has tilted mass tau but is left out adds at most
//! tau E e^{sL} e^{-se} max_x (1 - e^{-x}) e^{-sx} to delta(e), and is added.

mod discrete;

use super::{Accountant, gaussian_epsilon, loss::Losses, rdp, settled, within};
use crate::Ledger;
use crate::round::widen;
use discrete::Grid;
use realfft::{RealFftPlanner, num_complex::Complex};

/// The privacy loss distribution of any mixture of Laplace, Gaussian and randomized-response steps.
///
/// At most 1e-3 above the truth up to ten million equal steps, or a thousand different ones of some ten each; beyond, the
/// grid is coarser than that needs and the value a larger upper bound, and beyond 1e9 steps it is that of [`super::Rdp`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Pld;

impl Accountant for Pld {
    fn epsilon(&self, ledger: &Ledger, delta: f64) -> f64 {
        if let Some(epsilon) = settled(ledger) {
            return epsilon;
        }
        let losses = Losses::of(ledger);
        let (delta, largest) = (within(delta), losses.largest());
        if losses.pure.is_empty() {
            return gaussian_epsilon(losses.mu, delta);
        }
        let composed = rdp::best_order(&losses, delta).map(|(s, above)| compose(&losses, delta, s, above).min(above));
        composed.map_or(largest, |epsilon| epsilon.min(largest))
    }
}

/// ln of the tilted mass that may fall outside the window on either side.
const LOG_OUTSIDE: f64 = -46.0;
/// The part that the grid may add to the variance of the loss.
const VARIANCE_ADDED: f64 = 1e-4;
const STEPS_MAX: f64 = 1e9;
const CELLS_MAX: f64 = (1u32 << 22) as f64;
/// Cells of all transforms together.
const WORK_MAX: f64 = (1u32 << 26) as f64;

/// Up to so many steps the window may end at the largest loss, with a cell for each step that the grid may move it.
const CLIPPED_MAX: f64 = 4096.0;

/// A window of losses, and the tilts that prove how little is outside.
struct Window {
    low: f64,
    high: f64,
    tilt_low: f64,
    tilt_high: f64,
    /// Cells to add on either side.
    margin: f64,
}

/// P_s(L > high) <= exp(K(s+t) - K(s) - t high) for every t > 0, and likewise below.
fn window(losses: &Losses, s: f64) -> Window {
    let here = losses.log_moment(s);
    let largest = losses.largest();
    let (low, high) = (-f64::INFINITY, f64::INFINITY);
    let mut window = Window { low, high, tilt_low: 0.0, tilt_high: 0.0, margin: 4.0 };
    for k in -80..=80 {
        let t = libm::exp(0.4 * f64::from(k));
        let high = (losses.log_moment(s + t) - here - LOG_OUTSIDE) / t;
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

/// The number of cells: enough that K steps, each adding about h^2/6 to the variance, add little, and that no atom of few
/// steps is moved far.
fn cells(losses: &Losses, s: f64, width: f64) -> usize {
    let steps = losses.steps() + 1.0;
    let step = 0.5 / width;
    let bend = losses.log_moment(s + step) - 2.0 * losses.log_moment(s) + losses.log_moment(s - step);
    let deviation = bend.max(0.0).sqrt() / step;
    // A window is some 20 deviations wide, unless nearly all the mass is in one place.
    let wanted = (width / deviation).min(100.0) * (steps / (6.0 * VARIANCE_ADDED)).sqrt();
    let different = losses.pure.len() as f64 + 1.0;
    let least: f64 = if different <= 16.0 { 131_072.0 } else { 32_768.0 };
    let most = (WORK_MAX / different).clamp(16_384.0, CELLS_MAX);
    (wanted.max(least).min(most) as usize).next_power_of_two()
}

/// The epsilon at `delta`, by the law tilted with s, where `above` is an upper bound on it.
fn compose(losses: &Losses, delta: f64, s: f64, above: f64) -> f64 {
    if losses.steps() > STEPS_MAX {
        return above;
    }
    let window = window(losses, s);
    let width = window.high - window.low;
    if !(width > 0.0 && width.is_finite()) {
        return f64::INFINITY;
    }
    let size = cells(losses, s, width);
    let grid = Grid { h: width / (size as f64 - 2.0 * window.margin), s };
    let steps = losses.steps() + 1.0;

    let mut planner = RealFftPlanner::<f64>::new();
    let (forward, inverse) = (planner.plan_fft_forward(size), planner.plan_fft_inverse(size));
    let mut line = forward.make_input_vec();
    let mut part = forward.make_output_vec();
    let mut whole = vec![Complex::new(1.0, 0.0); part.len()];
    // ln E e^{sL}; the place of the line's origin; what is left out; the two tail bounds.
    let (mut log_scale, mut origin, mut outside) = (0.0, 0i128, 0.0);
    let (mut tail_high, mut tail_low) = (-window.tilt_high * window.high, window.tilt_low * window.low);
    let pure = losses.pure.iter().map(|step| (grid.pure(step, steps), step.count));
    let gaussian = (losses.mu > 0.0).then(|| (grid.gaussian(losses.mu), 1));
    for (tilted, count) in pure.chain(gaussian) {
        let times = count as f64;
        let Some(tilted) = tilted else { return f64::INFINITY };
        let centre = tilted.place(&mut line);
        log_scale += times * tilted.log_scale;
        outside += times * tilted.outside;
        origin += i128::from(centre) * i128::from(count);
        if window.tilt_high.is_finite() {
            tail_high += times * tilted.log_moment(grid.h, window.tilt_high);
        }
        if window.tilt_low.is_finite() {
            tail_low += times * tilted.log_moment(grid.h, -window.tilt_low);
        }
        if forward.process(&mut line, &mut part).is_err() {
            return f64::INFINITY;
        }
        multiply_power(&mut whole, &part, times);
    }
    if let [first, .., last] = &mut whole[..] {
        (first.im, last.im) = (0.0, 0.0);
    }
    if inverse.process(&mut whole, &mut line).is_err() {
        return f64::INFINITY;
    }
    for (tilt, tail) in [(window.tilt_high, tail_high), (window.tilt_low, tail_low)] {
        if tilt.is_finite() {
            outside += libm::exp(tail);
        }
    }
    // The transforms' rounding, as mass that could be anywhere.
    outside += 4e-16 * (steps + 64.0 * libm::log2(size as f64));
    let slack = 1e-12 + 4e-15 * steps;
    let target = libm::exp(libm::log(delta) - slack - log_scale + s * above);
    let start = (window.low / grid.h - window.margin).ceil() as i128;
    // Parameters so extreme that something overflowed on the way leave no law to read.
    let mass = line.iter().sum::<f64>() / size as f64;
    if !((mass - 1.0).abs() < 1e-6 && outside < 1e-3 && target > 0.0 && target.is_finite()) {
        return f64::INFINITY;
    }
    let law = Law { masses: &line, origin, start, scale: 1.0 / size as f64, outside };
    law.epsilon(grid, above, target)
}

/// whole <- whole part^count, element by element.
fn multiply_power(whole: &mut [Complex<f64>], part: &[Complex<f64>], count: f64) {
    // Below e^-80 nothing is left of a coefficient.
    let least = libm::exp(-160.0 / count);
    for (whole, &part) in whole.iter_mut().zip(part) {
        if count == 1.0 {
            *whole *= part;
        } else if part.norm_sqr() < least {
            *whole = Complex::new(0.0, 0.0);
        } else if *whole != Complex::new(0.0, 0.0) {
            let angle = count * libm::atan2(part.im, part.re);
            let size = libm::exp(0.5 * count * libm::log(part.norm_sqr()));
            *whole *= Complex::new(size * libm::cos(angle), size * libm::sin(angle));
        }
    }
}

/// The composed and tilted law, on a circle of cells.
struct Law<'a> {
    masses: &'a [f64],
    /// The loss index of the first mass, up to multiples of the circle.
    origin: i128,
    /// The loss index where the window begins.
    start: i128,
    scale: f64,
    outside: f64,
}

impl Law<'_> {
    /// The e with delta(e) = target, all in units of E e^{sL} e^{-s above}; walks down from the top of the window. With
    /// D_j = delta(l_j) and W_j = sum_{i > j} w_i e^{l_j - l_i}, w_i = p_s(l_i) e^{-s (l_i - above)}:
    /// D_{j-1} = D_j + (1 - e^{-h}) (W_j + w_j),  W_{j-1} = e^{-h} (W_j + w_j).
    fn epsilon(&self, grid: Grid, above: f64, target: f64) -> f64 {
        let Grid { h, s } = grid;
        let size = self.masses.len() as i128;
        let (decay, rise) = (libm::exp(-h), -libm::expm1(-h));
        // max_x (1 - e^{-x}) e^{-sx} = (s / (1+s))^s / (1+s)
        let log_peak = -s * libm::log1p(1.0 / s) - libm::log1p(s);
        let outside = self.outside * libm::exp(log_peak);
        let (mut below, mut weighted) = (0.0, 0.0);
        for j in (self.start..self.start + size).rev() {
            let loss = j as f64 * h;
            if loss < 0.0 {
                return 0.0;
            }
            let mass = self.masses[(j - self.origin).rem_euclid(size) as usize] * self.scale;
            let here = weighted + mass.max(0.0) * libm::exp(-s * (loss - above));
            let next = below + rise * here;
            let rest = outside * libm::exp(-s * (loss - h - above));
            if next + rest > target {
                let x = -libm::log1p(-((target - rest - below).max(0.0) / here).min(1.0));
                let epsilon = if here > 0.0 { loss - x.min(h) } else { loss };
                return widen(epsilon.max(0.0), 1e-11);
            }
            (below, weighted) = (next, decay * here);
        }
        widen(((self.start - 1) as f64 * h).max(0.0), 1e-11)
    }
}

#[cfg(test)]
mod tests;
