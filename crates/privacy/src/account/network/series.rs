//! Sums over all paths of a walk of T hops, by a generating function and one coefficient of it.
//!
//! A path is a sequence of cycles, each ended by a visit of an observer or by the end of the walk. Let z mark hops and y the
//! contributions of the protected member, A(y, z) be the sum over cycles of probability times exp(lambda cost), r the probability
//! that an observer is next, Q = 1 / (1 - r z A), and D_k(z) the sum over cycles in which the member makes the last k of its K
//! contributions, to the cycle's end. Then
//! ```text
//! E exp(lambda X) = [z^T] { sum_{k < K} [y^k] Q A  +  sum_k [y^{K-k}] Q  D_k (1 + r z / (1 - z)) }
//! ```
//! The coefficient is read off a circle of radius rho < 1: what wraps around is positive, and only adds.

use crate::account::pld::quick_length;
use realfft::{RealFftPlanner, num_complex::Complex};

/// A complex number.
pub(super) type Point = Complex<f64>;

/// ln of what is left of a term that wraps around the circle once.
const DECAY: f64 = 18.0;
/// What transforms and sums round, relatively: `proofs/network-iteration.md`.
const ROUNDING: f64 = 1e-8;

/// Points on a circle, to read off the coefficient of z^T.
pub(super) struct Circle {
    size: usize,
    hops: usize,
    log_radius: f64,
}

impl Circle {
    /// A circle for a walk of so many hops.
    pub fn new(hops: usize) -> Self {
        let size = quick_length(2.0 * (hops as f64 + 1.0));
        Circle { size, hops, log_radius: -DECAY / size as f64 }
    }

    /// The same for a series whose coefficients grow like exp(-g log_pole): inside of its pole.
    pub fn inside(self, log_pole: f64) -> Self {
        Circle { log_radius: log_pole - DECAY / self.size as f64, ..self }
    }

    /// How many of its points are looked at: the others are their mirror images.
    pub fn points(&self) -> usize {
        self.size / 2 + 1
    }

    /// The points z themselves.
    pub fn point(&self, index: usize) -> Point {
        let angle = -2.0 * std::f64::consts::PI * index as f64 / self.size as f64;
        let radius = libm::exp(self.log_radius);
        Point::new(radius * libm::cos(angle), radius * libm::sin(angle))
    }

    /// The values at the points of a power series, whose coefficient of z^g, up to g = T, is `exp(log_weight(g))`.
    pub fn transform(&self, log_weight: impl Fn(usize) -> f64) -> Vec<Point> {
        let forward = RealFftPlanner::<f64>::new().plan_fft_forward(self.size);
        let (mut line, mut out) = (forward.make_input_vec(), forward.make_output_vec());
        for (hop, line) in line.iter_mut().enumerate().take(self.hops + 1) {
            *line = libm::exp(log_weight(hop) + hop as f64 * self.log_radius);
        }
        match forward.process(&mut line, &mut out) {
            Ok(()) => out,
            Err(error) => unreachable!("the lengths are the plan's: {error}"),
        }
    }

    /// The coefficient of z^T of a series with coefficients of at least 0, from its values at the points; rounds up, for coefficients
    /// that do not fall much before T.
    pub fn coefficient(&self, mut value: impl FnMut(usize) -> Point) -> f64 {
        let mut sum = 0.0;
        for index in 0..self.points() {
            // z^-T, but for its radius.
            let turn = (index * self.hops % self.size) as f64 / self.size as f64;
            let angle = 2.0 * std::f64::consts::PI * turn;
            let real = (value(index) * Point::new(libm::cos(angle), libm::sin(angle))).re;
            let is_own_mirror = index == 0 || 2 * index == self.size;
            sum += if is_own_mirror { real } else { 2.0 * real };
        }
        sum / self.size as f64 * libm::exp(-self.log_radius * self.hops as f64) * (1.0 + ROUNDING)
    }
}

/// A walk whose hops are counted.
pub(super) struct Counted {
    pub circle: Circle,
    /// Whether the end of the walk is seen.
    pub told_outcome: bool,
    /// The probabilities that the protected member is next, and that an observer is.
    pub visits: (f64, f64),
}

impl Counted {
    /// ln E exp(lambda X) over all paths of the walk, rounded up, with at most `most` contributions. `cycles` gets the index of a point and
    /// z, and writes [y^k] A for k = 0 .. K and D_k for k = 1 .. K.
    pub fn log_moment(&self, most: usize, mut cycles: impl FnMut(usize, Point, &mut [Point], &mut [Point])) -> f64 {
        let one = Point::new(1.0, 0.0);
        let blank = || vec![Point::new(0.0, 0.0); most + 1];
        let (mut whole, mut last, mut end_whole, mut end_last) = (blank(), blank(), blank(), blank());
        let mut between = blank();
        let (p, r) = self.visits;
        let moment = self.circle.coefficient(|index| {
            let z = self.circle.point(index);
            cycles(index, z, &mut whole, &mut last);
            if self.told_outcome {
                end_whole.copy_from_slice(&whole);
                end_last.copy_from_slice(&last);
            } else {
                // A cycle that nobody sees the end of costs nothing.
                let (idle, on) = (one / (one - z * (1.0 - p - r)), one / (one - z * (1.0 - r)));
                let mut power = one;
                for k in 0..=most {
                    (end_whole[k], end_last[k]) = (power * idle, power * on);
                    power *= z * p * idle;
                }
            }
            // Q (1 - r z A) = 1
            let seen = z * r;
            between[0] = one / (one - seen * whole[0]);
            for k in 1..=most {
                let sum: Point = (1..=k).map(|j| whole[j] * between[k - j]).sum();
                between[k] = sum * seen * between[0];
            }
            let fewer: Point = (0..most).map(|k| (0..=k).map(|j| end_whole[j] * between[k - j]).sum::<Point>()).sum();
            let on = seen / (one - z);
            let all: Point = (1..=most).map(|k| between[most - k] * (end_last[k] + last[k] * on)).sum();
            fewer + all
        });
        let moment = libm::log(moment);
        if moment.is_nan() { f64::INFINITY } else { moment.max(0.0) }
    }
}

/// ln of the weights of stretches that hold one contribution more, the last one, and go on whatever the member's later visits do, from
/// those of stretches that end with a visit of the member: W(g) = (1-r) W(g-1) + p w(g-1).
pub(super) fn after_last(fewer: &[f64], (p, r): (f64, f64)) -> Vec<f64> {
    let (log_visit, log_stay) = (libm::log(p), libm::log1p(-r));
    let mut log_mass = f64::NEG_INFINITY;
    let before = std::iter::once(&f64::NEG_INFINITY).chain(fewer).take(fewer.len());
    before
        .map(|&fewer| {
            let (stays, comes) = (log_mass + log_stay, fewer + log_visit);
            let larger = stays.max(comes);
            if larger > f64::NEG_INFINITY {
                log_mass = larger + libm::log1p(libm::exp(stays.min(comes) - larger));
            }
            log_mass
        })
        .collect()
}

/// The coefficients of exp(sum_b y^b h_b / b) up to y^K, from h_1 .. h_K: k e_k = sum_b h_b e_{k-b}.
pub(super) fn exponential<T>(h: &[T], out: &mut Vec<T>, one: T)
where
    T: Copy + std::ops::Mul<Output = T> + std::iter::Sum + std::ops::Div<f64, Output = T>,
{
    out.clear();
    out.push(one);
    for k in 1..=h.len() {
        let sum: T = (1..=k).map(|b| h[b - 1] * out[k - b]).sum();
        out.push(sum / k as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coefficient_is_read_off_its_circle() {
        // 1 / (1 - z)^2 has the coefficients g + 1.
        for hops in [1usize, 2, 7, 30, 5000] {
            let circle = Circle::new(hops);
            let found = circle.coefficient(|index| {
                let one = Point::new(1.0, 0.0);
                let factor = one / (one - circle.point(index));
                factor * factor
            });
            let truth = hops as f64 + 1.0;
            // What wraps around is at most some e^-18 of it.
            assert!(found >= truth && found < truth * (1.0 + 1e-7), "{hops}: {found} {truth}");
            let weights = circle.transform(|g| 0.01 * g as f64);
            let same = circle.coefficient(|index| weights[index]) / libm::exp(0.01 * hops as f64);
            assert!((1.0..1.0 + 1e-7).contains(&same), "{hops}: {same}");
        }
    }

    #[test]
    fn the_exponential_of_a_series_counts_permutations_by_their_cycles() {
        let mut coefficients = Vec::new();
        // All h equal to x: C(x + k - 1, k); with x = 2, k + 1.
        exponential(&[2.0; 6], &mut coefficients, 1.0);
        for (k, coefficient) in coefficients.iter().enumerate() {
            assert!((coefficient - (k as f64 + 1.0)).abs() < 1e-12, "{k}: {coefficient}");
        }
    }
}
