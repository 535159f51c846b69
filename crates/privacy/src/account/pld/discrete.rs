//! One step's privacy loss on a grid, tilted.
//!
//! The mass P_c, Q_c of a cell (l_j, l_j + h] goes to its ends: a to l_j, b to l_j + h, so that a + b = P_c and
//! a e^{-l_j} + b e^{-l_j - h} = Q_c. A loss of l_j + u is thus split as b = (1 - e^{-u}) / (1 - e^{-h}), a = 1 - b.
//! Every mass is then multiplied by e^{sl} and scaled to sum to 1. What is too small to matter is left out and counted.

use crate::account::loss::{Kind, Pure};
use crate::normal::{density, integrate, tail};

/// Tilted mass that may be left out of one step, times the number of steps.
const LEFT_OUT: f64 = 1e-24;
/// Standard deviations of a Gaussian loss that are kept on either side.
const DEVIATIONS: f64 = 11.0;

/// Cells of one step.
const CELLS_MAX: usize = 1 << 23;

/// The width of a cell and the tilt.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    pub h: f64,
    pub s: f64,
}

/// A tilted law on the grid: masses from the index `first` on, and a few further down.
pub(super) struct Tilted {
    first: i64,
    masses: Vec<f64>,
    /// Atoms of the lower end, where it is apart.
    apart: Vec<(i64, f64)>,
    /// ln E e^{sL}.
    pub log_scale: f64,
    /// Tilted mass left out.
    pub outside: f64,
}

impl Grid {
    /// The share of a loss u above its cell's lower end that goes to the upper end, and to the lower one.
    fn split(self, u: f64) -> (f64, f64) {
        let whole = -libm::expm1(-self.h);
        let up = -libm::expm1(-u) / whole;
        let down = libm::exp(-u) * -libm::expm1(u - self.h) / whole;
        (up.clamp(0.0, 1.0), down.clamp(0.0, 1.0))
    }

    /// The cell of a loss, and how far above its lower end the loss is; none if the grid is too fine for exact indices.
    fn cell(self, loss: f64) -> Option<(i64, f64)> {
        let index = (loss / self.h).floor();
        (index.abs() < 4e15).then(|| (index as i64, (loss - index * self.h).clamp(0.0, self.h)))
    }

    /// Room for the cells from one index to another; none if they are too many.
    fn room(first: i64, last: i64) -> Option<Vec<f64>> {
        let cells = usize::try_from(last - first).ok()?;
        (cells <= CELLS_MAX).then(|| vec![0.0; cells + 2])
    }

    /// Randomized response or Laplace noise; everything is relative to e^{s eps}, the tilt of the largest loss.
    pub fn pure(self, step: &Pure, steps: f64) -> Option<Tilted> {
        let Grid { h, s } = self;
        let epsilon = step.epsilon;
        let (top, u_top) = self.cell(epsilon)?;
        let (bottom, u_bottom) = self.cell(-epsilon)?;
        let least = LEFT_OUT / steps;
        let mut outside = 0.0;
        let (mass_top, mass_bottom) = match step.kind {
            Kind::Laplace => (0.5, 0.5 * libm::exp(-epsilon)),
            Kind::RandomizedResponse => {
                let true_answer = 1.0 / (1.0 + libm::exp(-epsilon));
                (true_answer, libm::exp(-epsilon) * true_answer)
            }
        };
        let mut first = top;
        let mut masses = vec![0.0; 2];
        if step.kind == Kind::Laplace {
            // The density e^{(l - eps)/2} / 4 becomes e^{-(s + 1/2)(eps - l)} / 4: nothing is left of it this deep.
            let depth = -libm::log(least) / (s + 0.5);
            let from = (epsilon - depth).max(-epsilon);
            if from > -epsilon {
                outside += least / (s + 0.5);
            }
            let (lowest, u_lowest) = self.cell(from)?;
            first = lowest;
            masses = Self::room(lowest, top)?;
            let whole = -libm::expm1(-h);
            let rise = libm::exp(s * h);
            for index in lowest..=top {
                let u = if index == lowest { u_lowest } else { 0.0 };
                let v = if index == top { u_top } else { h };
                let above = index as f64 * h - epsilon;
                let total = 0.5 * libm::exp(u / 2.0) * libm::expm1((v - u) / 2.0);
                let up = 2.0 * libm::sinh((u + v) / 4.0) * libm::sinh((v - u) / 4.0) / whole;
                let tilt = libm::exp((s + 0.5) * above);
                let place = (index - lowest) as usize;
                masses[place] += tilt * (total - up).max(0.0);
                masses[place + 1] += tilt * rise * up.max(0.0);
            }
        }
        let (up, down) = self.split(u_top);
        let place = (top - first) as usize;
        masses[place] += mass_top * down * libm::exp(-s * u_top);
        masses[place + 1] += mass_top * up * libm::exp(s * (h - u_top));
        let mass_bottom = mass_bottom * libm::exp(-2.0 * s * epsilon);
        let mut apart = Vec::new();
        if mass_bottom > least {
            let (up, down) = self.split(u_bottom);
            apart.push((bottom, mass_bottom * down * libm::exp(-s * u_bottom)));
            apart.push((bottom + 1, mass_bottom * up * libm::exp(s * (h - u_bottom))));
        } else {
            outside += mass_bottom * libm::exp(s * h);
        }
        Some(Tilted { first, masses, apart, log_scale: s * epsilon, outside }.normalized())
    }

    /// Gaussian noise: the loss is N(mu^2/2, mu^2), tilted N(mu^2/2 + s mu^2, mu^2).
    pub fn gaussian(self, mu: f64) -> Option<Tilted> {
        let Grid { h, s } = self;
        let centre = mu * mu * (s + 0.5);
        let (from, to) = (centre - DEVIATIONS * mu, centre + DEVIATIONS * mu);
        let (first, u_first) = self.cell(from)?;
        let (last, u_last) = self.cell(to)?;
        let mut masses = Self::room(first, last)?;
        for index in first..=last {
            let u = if index == first { u_first } else { 0.0 };
            let v = if index == last { u_last } else { h };
            let pieces = (16.0 * (v - u) / mu).ceil().clamp(1.0, 1000.0);
            let width = (v - u) / pieces;
            let base = index as f64 * h - centre;
            let (mut down, mut up) = (0.0, 0.0);
            for piece in 0..pieces as u32 {
                let start = u + width * f64::from(piece);
                let mass = |x: f64| density((base + x) / mu) / mu;
                up += integrate(start, start + width, |x| mass(x) * self.split(x).0 * libm::exp(s * (h - x)));
                down += integrate(start, start + width, |x| mass(x) * self.split(x).1 * libm::exp(-s * x));
            }
            let place = (index - first) as usize;
            masses[place] += down;
            masses[place + 1] += up;
        }
        let outside = 2.0 * tail(DEVIATIONS) * libm::exp(s * h);
        let log_scale = 0.5 * mu * mu * s * (s + 1.0);
        Some(Tilted { first, masses, apart: Vec::new(), log_scale, outside }.normalized())
    }
}

impl Tilted {
    fn each(&self) -> impl Iterator<Item = (i64, f64)> {
        let row = self.masses.iter().zip(self.first..).map(|(&mass, index)| (index, mass));
        row.chain(self.apart.iter().copied())
    }

    fn normalized(mut self) -> Self {
        // Kahan's sum: an error here would be taken to the power of the number of steps.
        let (mut sum, mut lost) = (0.0, 0.0);
        for (_, mass) in self.each() {
            let part = mass - lost;
            let next: f64 = sum + part;
            lost = (next - sum) - part;
            sum = next;
        }
        for mass in self.masses.iter_mut().chain(self.apart.iter_mut().map(|(_, mass)| mass)) {
            *mass /= sum;
        }
        self.log_scale += libm::log(sum);
        self.outside /= sum;
        self
    }

    /// ln of the sum of masses times e^{tl}.
    pub fn log_moment(&self, h: f64, t: f64) -> f64 {
        let exponent = |(index, mass): (i64, f64)| {
            if mass > 0.0 { t * index as f64 * h + libm::log(mass) } else { -f64::INFINITY }
        };
        let most = self.each().map(exponent).fold(-f64::INFINITY, f64::max);
        most + libm::log(self.each().map(|term| libm::exp(exponent(term) - most)).sum())
    }

    /// Writes the masses on a circle of cells, with the index nearest to the mean at the origin, and returns that index.
    pub fn place(&self, line: &mut [f64]) -> i64 {
        let mean: f64 = self.each().map(|(index, mass)| (index - self.first) as f64 * mass).sum();
        let centre = self.first + mean.round() as i64;
        line.fill(0.0);
        for (index, mass) in self.each() {
            line[(index - centre).rem_euclid(line.len() as i64) as usize] += mass;
        }
        centre
    }
}
