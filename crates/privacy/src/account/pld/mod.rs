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
mod grid;

use super::{Accountant, cheap, gaussian_epsilon, loss::Losses, rdp, settled, within};
use crate::Ledger;
use crate::round::widen;
use discrete::Grid;
pub(super) use grid::quick_length;
use grid::{Window, first_width, power_of_two};
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
        let composed = rdp::best_order(&losses, delta).map(|(s, above)| refined(&losses, delta, s, above).min(above));
        composed.map_or(largest, |epsilon| epsilon.min(largest))
    }

    fn rough(&self, ledger: &Ledger, delta: f64) -> f64 {
        cheap(ledger, delta)
    }
}

const STEPS_MAX: f64 = 1e9;
/// What a round of the walk over the cells rounds, relatively: two sums of positive terms and their factors.
const WALK_ERROR: f64 = 1e-15;
/// The relative error, as estimated, above which a finer grid is tried; and the absolute one below which none is.
const ERROR_MAX: f64 = 3e-4;
const ERROR_MIN: f64 = 1e-7;

/// The epsilon at `delta`, on grids as fine as needed, by the law tilted with s, where `above` is an upper bound on it.
fn refined(losses: &Losses, delta: f64, s: f64, above: f64) -> f64 {
    if losses.steps() > STEPS_MAX {
        return above;
    }
    let window = Window::around(losses, s);
    if !(window.width() > 0.0 && window.width().is_finite()) {
        return f64::INFINITY;
    }
    let mut least = f64::INFINITY;
    let mut wanted = first_width(losses, s);
    let mut before = f64::INFINITY;
    for _ in 0..4 {
        let Some(h) = wanted.map(|h| window.affordable(losses, h)).filter(|&h| h < before) else { break };
        let Some(solution) = compose(losses, delta, &window, Grid { h, s }, above) else { break };
        least = least.min(solution.epsilon);
        let allowed = (ERROR_MAX * solution.epsilon).max(ERROR_MIN);
        if solution.error <= allowed {
            break;
        }
        before = h;
        wanted = Some(power_of_two(h * (allowed / solution.error).sqrt()).min(0.5 * h));
    }
    least
}

/// An epsilon, and roughly how much of it is due to the grid.
struct Solution {
    epsilon: f64,
    error: f64,
}

/// The epsilon at `delta` on one grid; none where the parameters are too extreme for it.
fn compose(losses: &Losses, delta: f64, window: &Window, grid: Grid, above: f64) -> Option<Solution> {
    let size = quick_length(window.cells(grid.h));
    let steps = losses.steps() + 1.0;
    let forward = RealFftPlanner::<f64>::new().plan_fft_forward(size);
    let mut scratch = forward.make_scratch_vec();
    let mut line = forward.make_input_vec();
    // The transform of the law so far, and that of one step.
    let (mut whole, mut part) = (Vec::new(), forward.make_output_vec());
    // ln E e^{sL}; the place of the line's origin; what is left out; the two tail bounds.
    let (mut log_scale, mut origin, mut outside) = (0.0, 0i128, 0.0);
    let (mut tail_high, mut tail_low) = (-window.tilt_high * window.high, window.tilt_low * window.low);
    let pure = losses.pure.iter().map(|step| (grid.pure(step, steps), step.count));
    let gaussian = (losses.mu > 0.0).then(|| (grid.gaussian(losses.mu), 1));
    for (tilted, count) in pure.chain(gaussian) {
        let (tilted, times) = (tilted?, count as f64);
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
        if part.is_empty() {
            part = forward.make_output_vec();
        }
        forward.process_with_scratch(&mut line, &mut part, &mut scratch).ok()?;
        raise(&mut part, count);
        if whole.is_empty() {
            std::mem::swap(&mut whole, &mut part);
        } else {
            whole.iter_mut().zip(&part).for_each(|(whole, part)| *whole *= part);
        }
    }
    drop((forward, part, scratch));
    if let [first, .., last] = &mut whole[..] {
        (first.im, last.im) = (0.0, 0.0);
    }
    RealFftPlanner::<f64>::new().plan_fft_inverse(size).process(&mut whole, &mut line).ok()?;
    for (tilt, tail) in [(window.tilt_high, tail_high), (window.tilt_low, tail_low)] {
        if tilt.is_finite() {
            outside += libm::exp(tail);
        }
    }
    // The transforms' rounding, as mass that could be anywhere.
    outside += 4e-16 * (steps + 64.0 * libm::log2(size as f64));
    let slack = 1e-12 + 4e-15 * steps;
    let target = libm::exp(libm::log(delta) - slack - log_scale + grid.s * above);
    let start = (window.low / grid.h - window.margin).floor() as i128;
    // Parameters so extreme that something overflowed on the way leave no law to read.
    let mass = line.iter().sum::<f64>() / size as f64;
    if !((mass - 1.0).abs() < 1e-6 && outside < 1e-3 && target > 0.0 && target.is_finite()) {
        return None;
    }
    let law = Law { masses: &line, origin, start, scale: 1.0 / size as f64, outside, steps };
    Some(law.solve(grid, above, target))
}

/// part <- part^count, element by element.
fn raise(part: &mut [Complex<f64>], count: u64) {
    if count == 1 {
        return;
    }
    // Below e^-80 nothing is left of a coefficient.
    let least = libm::exp(-160.0 / count as f64);
    for part in part {
        let (mut square, mut rest) = (*part, count);
        *part = Complex::new(0.0, 0.0);
        if square.norm_sqr() < least {
            continue;
        }
        let mut power = Complex::new(1.0, 0.0);
        while rest > 1 {
            if rest & 1 == 1 {
                power *= square;
            }
            square *= square;
            rest >>= 1;
        }
        *part = power * square;
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
    steps: f64,
}

impl Law<'_> {
    /// The e with delta(e) = target, all in units of E e^{sL} e^{-s above}; walks down from the top of the window. With
    /// D_j = delta(l_j) and W_j = sum_{i > j} w_i e^{l_j - l_i}, w_i = p_s(l_i) e^{-s (l_i - above)}:
    /// D_{j-1} = D_j + (1 - e^{-h}) (W_j + w_j),  W_{j-1} = e^{-h} (W_j + w_j).
    fn solve(&self, grid: Grid, above: f64, mut target: f64) -> Solution {
        let Grid { h, s } = grid;
        let size = self.masses.len();
        let (decay, rise) = (libm::exp(-h), -libm::expm1(-h));
        // max_x (1 - e^{-x}) e^{-sx} = (s / (1+s))^s / (1+s)
        let log_peak = -s * libm::log1p(1.0 / s) - libm::log1p(s);
        let outside = self.outside * libm::exp(log_peak);
        let (mut below, mut weighted) = (0.0, 0.0);
        // Above the window nothing is known but the bound on what is left out. Where that is too large already, the solution is up
        // there, as it can be if the tilt is far from the saddle point.
        let top = (self.start + size as i128 - 1) as f64 * h;
        if outside * libm::exp(-s * (top - above)) > target * (1.0 - WALK_ERROR) {
            return Solution { epsilon: f64::INFINITY, error: f64::INFINITY };
        }
        let mut place = (self.start - self.origin).rem_euclid(size as i128) as usize;
        for j in (self.start..self.start + size as i128).rev() {
            // From the last cell of the window downwards, around the circle.
            place = place.checked_sub(1).unwrap_or(size - 1);
            let loss = j as f64 * h;
            if loss < 0.0 {
                return Solution { epsilon: 0.0, error: 0.0 };
            }
            let mass = (self.masses[place] * self.scale).max(0.0) * libm::exp(-s * (loss - above));
            let here = weighted + mass;
            let next = below + rise * here;
            let rest = outside * libm::exp(-s * (loss - h - above));
            // Each round so far has rounded both sums a few times.
            target *= 1.0 - WALK_ERROR;
            if next + rest > target {
                let x = -libm::log1p(-((target - rest - below).max(0.0) / here).min(1.0));
                let epsilon = if here > 0.0 { loss - x.min(h) } else { loss };
                // The grid adds v = steps h^2/6 to the variance, so v p(e)/2 to delta(e), whose slope is -W(e); but
                // atoms move by no more than the cells that they are spread over.
                let error = (self.steps * h * mass / (12.0 * here)).min(self.steps.sqrt() * h);
                return Solution { epsilon: widen(epsilon.max(0.0), 1e-11), error };
            }
            (below, weighted) = (next, decay * here);
        }
        Solution { epsilon: widen(((self.start - 1) as f64 * h).max(0.0), 1e-11), error: 0.0 }
    }
}

#[cfg(test)]
mod tests;
