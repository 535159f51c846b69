//! Noise in a simulator: any kind, chosen when a run starts.

use super::{Exact, Idealized, NoNoise, Noise, sealed::Sealed};
use crate::Event;
use crate::audit::{Recording, Replaying};
use rand_chacha::ChaCha20Rng;

/// The noise of a simulated agent. A real peer does not take it.
#[derive(Clone, Debug, PartialEq)]
pub enum Simulated {
    /// The run is not private.
    None,
    /// Fast, in floating point.
    Idealized(Idealized),
    /// Any, and every release is remembered: for audits.
    Recording(Box<Recording>),
    /// None: what comes out is what was recorded. For audits.
    Replaying(Box<Replaying>),
    /// What real peers use, but repeatable: for audits.
    Exact(Box<Exact<ChaCha20Rng>>),
}

impl Sealed for Simulated {}

impl Noise for Simulated {
    fn perturb(&mut self, event: Event, sensitivity: f64, values: &mut [f64]) {
        match self {
            Simulated::None => NoNoise.perturb(event, sensitivity, values),
            Simulated::Idealized(noise) => noise.perturb(event, sensitivity, values),
            Simulated::Exact(noise) => noise.perturb(event, sensitivity, values),
            Simulated::Recording(noise) => noise.perturb(event, sensitivity, values),
            Simulated::Replaying(noise) => noise.perturb(event, sensitivity, values),
        }
    }
}
