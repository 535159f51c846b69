//! What a client does to its gradients before servers see them: weights that add up, and vectors that cancel.
//!
//! ```text
//! weights:  u_s ~ U(-1, 1), v = u - mean u, r = zeta (Mbar - M) / sum |v|, zeta ~ U(1/2, 1);  W_s = M / N + r v_s
//!           sum_s W_s = M,   sum_s |W_s| <= M + r sum |v| <= Mbar
//! vectors:  z_J ~ N(0, I), d_J = (z_J - mean z) Y zeta' / max_J |z_J - mean z|;   sum_J d_J = 0,   |d_J| <= Y
//! ```
//!
//! The last of each is what is missing to the sum, so that sums hold to the last digits. Both are asserted wherever they are drawn.
//!
//! # Privacy
//! This is no noise of differential privacy: what it hides comes out in the mean of many rounds (docs/polar.md has the figures), and a ledger
//! says epsilon = infinity.

use rand_chacha::{
    ChaCha12Rng,
    rand_core::{Rng, SeedableRng},
};
use sottovoce_algorithms::vector::norm;

/// How far sums may be off, in parts of their bound.
const ROUNDING: f64 = 1e-12;

/// The secret choices of one client in one round: a seed, and for every use a stream of its own.
pub struct Choices(ChaCha12Rng);

impl Choices {
    /// Those of this use.
    pub fn new(seed: &[u8; 32], stream: u64) -> Self {
        let mut rng = ChaCha12Rng::from_seed(*seed);
        rng.set_stream(stream);
        Choices(rng)
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
    }

    /// Uniform in `0..n`.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.0.next_u64()) * n as u128) >> 64) as usize
    }

    /// Two independent standard normal numbers (Marsaglia's polar method).
    fn normals(&mut self) -> (f64, f64) {
        loop {
            let (a, b) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = a * a + b * b;
            if square > 0.0 && square < 1.0 {
                let factor = libm::sqrt(-2.0 * libm::log(square) / square);
                return (a * factor, b * factor);
            }
        }
    }

    /// Some of `0..n` without repetition, every set equally likely (Floyd).
    pub fn sample(&mut self, count: usize, n: usize, out: &mut Vec<u32>) {
        out.clear();
        for last in n.saturating_sub(count)..n {
            let drawn = self.below(last + 1) as u32;
            out.push(if out.contains(&drawn) { last as u32 } else { drawn });
        }
    }

    /// Weights of one number over these slots, `stride` apart from the first: they add up to `total`, and their sizes to `bound` at most.
    ///
    /// # Panics
    /// When they do not: an assertion at the edge of each round.
    pub fn weights(&mut self, out: &mut [f64], stride: usize, total: f64, bound: f64) {
        let slots = out.len().div_ceil(stride) as f64;
        let mut mean = 0.0;
        for slot in out.iter_mut().step_by(stride) {
            *slot = 2.0 * self.unit() - 1.0;
            mean += *slot / slots;
        }
        let sizes: f64 = out.iter().step_by(stride).map(|u| (u - mean).abs()).sum();
        let zeta = 0.5 + 0.5 * self.unit();
        let r = if sizes > 0.0 { zeta * (bound - total) / sizes } else { 0.0 };
        let mut others = 0.0;
        let mut last = 0;
        for (k, slot) in out.iter_mut().enumerate().step_by(stride) {
            *slot = total / slots + r * (*slot - mean);
            others += *slot;
            last = k;
        }
        // What is missing to the sum.
        out[last] = total - (others - out[last]);
        let weights = || out.iter().step_by(stride).copied();
        assert!(weights_hold(weights(), total, bound), "weights that do not add up to {total} within {bound}");
    }

    /// A vector for each row of `out`: they cancel, and none is longer than `bound`.
    ///
    /// # Panics
    /// When they do not: an assertion at the edge of each step.
    pub fn vectors(&mut self, out: &mut [f64], dimension: usize, bound: f64) {
        if bound == 0.0 {
            out.fill(0.0);
            return;
        }
        for pair in out.chunks_mut(2) {
            let (first, second) = self.normals();
            pair[0] = first;
            if let Some(last) = pair.get_mut(1) {
                *last = second;
            }
        }
        let rows = out.len() / dimension;
        for coordinate in 0..dimension {
            let column = || (0..rows).map(|row| row * dimension + coordinate);
            let mean = column().map(|k| out[k]).sum::<f64>() / rows as f64;
            column().for_each(|k| out[k] -= mean);
        }
        let longest = out.chunks_exact(dimension).map(norm).fold(0.0, f64::max);
        let zeta = 0.5 + 0.5 * self.unit();
        let factor = if longest > 0.0 { bound * zeta / longest } else { 0.0 };
        out.iter_mut().for_each(|value| *value *= factor);
        let (others, last) = out.split_at_mut((rows - 1) * dimension);
        for (coordinate, last) in last.iter_mut().enumerate() {
            *last = -others.iter().skip(coordinate).step_by(dimension).sum::<f64>();
        }
        assert!(vectors_hold(out, dimension, bound), "vectors that do not cancel within {bound}");
    }
}

/// Whether weights add up to `total`, and their sizes to `bound` at most.
pub fn weights_hold(weights: impl Iterator<Item = f64>, total: f64, bound: f64) -> bool {
    let (sum, sizes) = weights.fold((0.0, 0.0), |(sum, sizes), weight| (sum + weight, sizes + weight.abs()));
    (sum - total).abs() <= ROUNDING * bound && sizes <= bound * (1.0 + ROUNDING)
}

/// Whether the rows of this length cancel, and none is longer than `bound`.
pub fn vectors_hold(rows: &[f64], dimension: usize, bound: f64) -> bool {
    let cancel = |coordinate| {
        let sum: f64 = rows.iter().skip(coordinate).step_by(dimension).sum();
        sum.abs() <= ROUNDING * bound
    };
    (0..dimension).all(cancel) && rows.chunks_exact(dimension).all(|row| norm(row) <= bound * (1.0 + ROUNDING))
}
