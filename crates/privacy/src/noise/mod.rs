//! Where noise comes from.
//!
//! | type | law | for |
//! |---|---|---|
//! | [`Exact`] over [`OsRandom`] ([`Secret`]) | sampled exactly, on a grid, from the system's entropy | real peers: the only one they take |
//! | [`Exact`] over a seeded generator | the same sampler, replayable | tests and audits |
//! | [`Idealized`] | the same laws in plain floating point, fast | large simulations |
//! | [`Simulated`] | any of these | what a simulator takes |
//! | [`NoNoise`] | none: for gates without a plan, which never ask | runs without privacy |
//!
//! The trait is closed: noise is made in this crate, or not at all.

use crate::Event;

mod exact;
mod idealized;
mod simulated;

pub use exact::{Exact, NoEntropy, OsRandom, Secret};
pub use idealized::Idealized;
pub use simulated::{Recording, Release, Replaying, Simulated};

/// ln2 of the deviation of noise on integers.
pub const DEVIATION_LOG2: u32 = 24;

/// A source of noise for one agent's gate.
///
/// The kinds of this crate are all there are. They can be used anywhere:
///
/// ```
/// # use sottovoce_privacy::{Event, Idealized, Noise};
/// fn perturb(noise: &mut impl Noise, values: &mut [f64]) {
///     noise.perturb(Event::Laplace { noise_multiplier: 1.0 }, 1.0, values);
/// }
///
/// perturb(&mut Idealized::new(1, 0), &mut [0.5]);
/// ```
///
/// but no other crate can add one:
///
/// ```compile_fail,E0277
/// # use sottovoce_privacy::{Event, Idealized, Noise};
/// struct Silence;
///
/// impl Noise for Silence {
///     fn perturb(&mut self, event: Event, sensitivity: f64, values: &mut [f64]) {}
///
///     fn respond(&mut self, epsilon: f64, categories: u32, answers: &mut [f64]) {}
///
///     fn perturb_integers(&mut self, values: &mut [i64]) {}
/// }
/// ```
pub trait Noise: sealed::Sealed + Send {
    /// Adds noise of the event's mechanism, scaled to the sensitivity, to each value; for randomized response, flips signs.
    fn perturb(&mut self, event: Event, sensitivity: f64, values: &mut [f64]);

    /// Randomized response with several categories, counted from 0: each answer stays with probability e^epsilon / (e^epsilon + categories - 1),
    /// and becomes each of the others with probability 1 / (e^epsilon + categories - 1).
    fn respond(&mut self, epsilon: f64, categories: u32, answers: &mut [f64]);

    /// Adds to each integer a discrete Gaussian with a deviation of 2^[`DEVIATION_LOG2`]: a share of noise that several parties make together,
    /// on a grid that was chosen for it.
    fn perturb_integers(&mut self, values: &mut [i64]);

    /// Overwrites a key with secret bits, where this noise has any: noise that a seed repeats leaves the key as it is.
    fn draw_key(&mut self, key: &mut [u8; 32]) {
        let _ = key;
    }
}

pub(crate) mod sealed {
    /// Implemented in this crate only.
    pub trait Sealed {}
}

/// The noise of a gate without a plan: there is none, and it is never asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoNoise;

impl sealed::Sealed for NoNoise {}

impl Noise for NoNoise {
    fn perturb(&mut self, event: Event, _sensitivity: f64, _values: &mut [f64]) {
        panic!("a gate without a plan releases nothing by {event:?}");
    }

    fn respond(&mut self, epsilon: f64, _categories: u32, _answers: &mut [f64]) {
        panic!("a gate without a plan releases no answer at {epsilon}");
    }

    fn perturb_integers(&mut self, _values: &mut [i64]) {
        panic!("a gate without a plan adds no share of noise");
    }
}
