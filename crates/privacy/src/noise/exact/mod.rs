//! Noise sampled exactly, on a grid: what is accounted is what is sampled.
//!
//! 1. A grid is chosen, a power of two of about 2^-40 of the sensitivity, and the values are rounded to it. How far that can
//!    take neighbours apart is added to the sensitivity before the noise is scaled.
//! 2. Noise of the continuous law is drawn exactly (von Neumann 1951, Karney 2016): a whole part, and a fraction whose binary
//!    digits are drawn only as far as they are looked at. Nothing is approximated, so there is no error to account for.
//! 3. The noise is rounded to the grid, with as many digits as it takes to be certain, and added in whole numbers.
//!
//! What leaves is the continuous mechanism's output rounded to the grid, which is post-processing: the accounting of the
//! continuous law holds as it stands. No floating-point number is rounded on the way, so there are none of the holes that
//! tell what is below the noise (Mironov 2012). The noise is drawn without looking at the values. Proof:
//! `proofs/exact-sampling.md`.

use super::{DEVIATION_LOG2, Noise, sealed::Sealed};
use crate::Event;
use digits::Bits;
use grid::Grid;
use laws::Deviate;
use rand_chacha::{
    ChaCha20Rng,
    rand_core::{CryptoRng, SeedableRng},
};
use std::fmt;

mod digits;
mod gamma;
mod grid;
mod laws;
mod os;
#[cfg(test)]
mod tests;

pub use os::{NoEntropy, OsRandom};

/// Exact noise from the operating system's entropy: what a real peer takes.
///
/// A function that asks for it gets no other kind.
///
/// ```
/// # use sottovoce_privacy::{Event, Gate, Plan, Secret, Tight};
/// # use std::sync::Arc;
/// # let step = Event::Gaussian { noise_multiplier: 10.0 };
/// # let plan = || Arc::new(Plan::new(vec![step], 5.0, 1e-3, &Tight).unwrap());
/// fn send(gate: &mut Gate<Secret>) { /* .. */ }
///
/// send(&mut Gate::planned(plan(), Secret::from_os()?));
/// # Ok::<(), sottovoce_privacy::NoEntropy>(())
/// ```
///
/// Neither noise for simulations:
///
/// ```compile_fail,E0308
/// # use sottovoce_privacy::{Event, Gate, Idealized, Plan, Secret, Tight};
/// # use std::sync::Arc;
/// # let step = Event::Gaussian { noise_multiplier: 10.0 };
/// # let plan = || Arc::new(Plan::new(vec![step], 5.0, 1e-3, &Tight).unwrap());
/// fn send(gate: &mut Gate<Secret>) { /* .. */ }
///
/// let mut gate = Gate::planned(plan(), Idealized::new(1, 0));
/// send(&mut gate);
/// ```
///
/// ```compile_fail,E0308
/// # use sottovoce_privacy::{Event, Gate, Idealized, Plan, Secret, Simulated, Tight};
/// # use std::sync::Arc;
/// # let step = Event::Gaussian { noise_multiplier: 10.0 };
/// # let plan = || Arc::new(Plan::new(vec![step], 5.0, 1e-3, &Tight).unwrap());
/// fn send(gate: &mut Gate<Secret>) { /* .. */ }
///
/// let mut gate = Gate::planned(plan(), Simulated::Idealized(Idealized::new(1, 0)));
/// send(&mut gate);
/// ```
///
/// nor exact noise that a seed repeats:
///
/// ```compile_fail,E0308
/// # use sottovoce_privacy::{Event, Exact, Gate, Plan, Secret, Tight};
/// # use std::sync::Arc;
/// # let step = Event::Gaussian { noise_multiplier: 10.0 };
/// # let plan = || Arc::new(Plan::new(vec![step], 5.0, 1e-3, &Tight).unwrap());
/// fn send(gate: &mut Gate<Secret>) { /* .. */ }
///
/// let mut gate = Gate::planned(plan(), Exact::seeded(1, 0));
/// send(&mut gate);
/// ```
///
/// And it cannot be copied, so no two releases share their noise:
///
/// ```compile_fail,E0599
/// # use sottovoce_privacy::Secret;
/// let noise = Secret::from_os().unwrap();
/// let copy = noise.clone();
/// ```
pub type Secret = Exact<OsRandom>;

/// Noise sampled exactly from a cryptographic generator.
///
/// # Privacy
/// The laws of [`Event`], with the scale rounded up and the sensitivity raised by what rounding to the grid adds: below 2^-40
/// of it per coordinate (L1), or per square root of their number (L2). There is no noise of scale 0: a [`crate::Gate`]
/// refuses a sensitivity of zero, and what does not depend on data needs no release.
///
/// Proof: `proofs/exact-sampling.md`, and a page for each mechanism.
#[derive(Clone, PartialEq)]
pub struct Exact<R> {
    bits: Bits<R>,
}

impl Secret {
    /// Noise that nobody can repeat.
    pub fn from_os() -> Result<Self, NoEntropy> {
        Ok(Exact::new(OsRandom::new()?))
    }
}

impl Exact<ChaCha20Rng> {
    /// Noise that (seed, agent) repeats, for tests and audits. Different agents' noise is independent.
    pub fn seeded(seed: u64, agent: u32) -> Self {
        let mut key = [0; 32];
        key[..20].copy_from_slice(b"sottovoce exact laws");
        key[20..28].copy_from_slice(&seed.to_le_bytes());
        key[28..].copy_from_slice(&agent.to_le_bytes());
        Exact::new(ChaCha20Rng::from_seed(key))
    }
}

impl<R: CryptoRng> Exact<R> {
    /// Noise from a generator, whose output must be fair bits that nobody can guess.
    pub fn new(generator: R) -> Self {
        Exact { bits: Bits::new(generator) }
    }

    /// Adds to each value, in whole spacings, the noise that `draw` gives.
    fn add(&mut self, grid: &Grid, values: &mut [f64], draw: impl Fn(&mut Bits<R>) -> Deviate) {
        for value in values {
            let noise = grid.noise(&mut draw(&mut self.bits), &mut self.bits);
            *value = grid.sum(grid.nearest(*value), noise);
        }
    }
}

/// The state is the future noise: it is not shown.
impl<R> fmt::Debug for Exact<R> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Exact").finish_non_exhaustive()
    }
}

impl<R> Sealed for Exact<R> {}

impl<R: CryptoRng + Send> Noise for Exact<R> {
    fn draw_key(&mut self, key: &mut [u8; 32]) {
        self.bits.fill(key);
    }

    fn respond(&mut self, epsilon: f64, categories: u32, answers: &mut [f64]) {
        for truth in answers {
            *truth = answer(epsilon, categories, *truth as u64, &mut self.bits) as f64;
        }
    }

    fn perturb_integers(&mut self, values: &mut [i64]) {
        // PRIVACY: the gate charged for the sum; this is one share of its noise, drawn exactly.
        for value in values {
            *value = value.wrapping_add(laws::discrete_normal(DEVIATION_LOG2, &mut self.bits));
        }
    }

    fn perturb(&mut self, event: Event, sensitivity: f64, values: &mut [f64]) {
        let grid = |noise_multiplier| Grid::new(noise_multiplier, sensitivity, event.norm(), values.len());
        // PRIVACY: the event was charged by the gate; each arm samples exactly the law that its accountants read.
        match event {
            Event::Reveal => panic!("an exact value has no noise"),
            Event::Laplace { noise_multiplier } => self.add(&grid(noise_multiplier), values, Deviate::laplace),
            Event::Gaussian { noise_multiplier } => self.add(&grid(noise_multiplier), values, Deviate::normal),
            Event::GammaNorm { noise_multiplier } => {
                let grid = grid(noise_multiplier);
                let noise = gamma::noise(&grid, values.len(), &mut self.bits);
                values.iter_mut().zip(noise).for_each(|(value, noise)| *value = grid.sum(grid.nearest(*value), noise));
            }
            Event::RandomizedResponse { epsilon } => {
                for value in values {
                    if lies(epsilon, &mut self.bits) {
                        *value = -*value;
                    }
                }
            }
        }
    }
}

/// An answer of randomized response: a category is proposed, all alike; the truth is told, another one with probability e^-epsilon, or the
/// proposal is made again.
fn answer<R: CryptoRng, const WIDTH: u32>(epsilon: f64, categories: u32, truth: u64, bits: &mut Bits<R, WIDTH>) -> u64 {
    loop {
        let proposed = bits.below(u64::from(categories));
        if proposed == truth || laws::exp_minus_any(epsilon, bits) {
            return proposed;
        }
    }
}

/// True with probability 1 / (1 + e^epsilon): a fair coin proposes the truth or a lie, and a lie is accepted with
/// probability e^-epsilon, or the coin is thrown again.
fn lies<R: CryptoRng, const WIDTH: u32>(epsilon: f64, bits: &mut Bits<R, WIDTH>) -> bool {
    loop {
        if bits.coin() {
            return false;
        }
        if laws::exp_minus_any(epsilon, bits) {
            return true;
        }
    }
}
