//! Noise for simulations: the right laws in plain floating point.
//!
//! Fast and replayable from a seed, and not fit for real data: the holes that rounding leaves in floating-point noise can
//! tell what was below it (Mironov 2012), and whoever knows the seed knows the noise. That is why it is a type of its own,
//! which no real peer accepts.

use super::{Noise, sealed::Sealed};
use crate::Event;

/// Noise in plain floating point, replayable from (seed, agent): for simulations only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idealized {
    state: u64,
}

impl Idealized {
    /// The noise of one agent of a simulation.
    pub fn new(seed: u64, agent: u32) -> Self {
        let key = mix(seed ^ 0x1dea_112e_d015_e000).wrapping_add(mix(u64::from(agent) + 1));
        Idealized { state: mix(key) }
    }

    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// Uniform in (0, 1).
    fn unit(&mut self) -> f64 {
        ((self.bits() >> 12) as f64 + 0.5) * (1.0 / (1u64 << 52) as f64)
    }

    fn exponential(&mut self) -> f64 {
        -libm::log(self.unit())
    }

    fn laplace(&mut self) -> f64 {
        let size = self.exponential();
        if self.bits() >> 63 == 0 { size } else { -size }
    }

    /// Two independent standard normals, by Marsaglia's polar method.
    fn normals(&mut self) -> [f64; 2] {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square < 1.0 && square > 0.0 {
                let factor = libm::sqrt(-2.0 * libm::log(square) / square);
                return [x * factor, y * factor];
            }
        }
    }
}

impl Sealed for Idealized {}

impl Noise for Idealized {
    fn perturb(&mut self, event: Event, sensitivity: f64, values: &mut [f64]) {
        match event {
            Event::Reveal => panic!("an exact value has no noise"),
            Event::Laplace { noise_multiplier } => {
                let scale = noise_multiplier * sensitivity;
                values.iter_mut().for_each(|value| *value += scale * self.laplace());
            }
            Event::Gaussian { noise_multiplier } => {
                let sigma = noise_multiplier * sensitivity;
                for pair in values.chunks_mut(2) {
                    let normals = self.normals();
                    pair.iter_mut().zip(normals).for_each(|(value, normal)| *value += sigma * normal);
                }
            }
            Event::GammaNorm { noise_multiplier } => {
                // A norm that follows Gamma(p), the sum of p exponentials, in the direction of a normal vector.
                let norm: f64 = (0..values.len()).map(|_| self.exponential()).sum();
                let mut direction: Vec<f64> = Vec::with_capacity(values.len() + 1);
                while direction.len() < values.len() {
                    direction.extend(self.normals());
                }
                direction.truncate(values.len());
                let length = libm::sqrt(direction.iter().map(|x| x * x).sum());
                let scale = noise_multiplier * sensitivity * norm / length;
                values.iter_mut().zip(direction).for_each(|(value, x)| *value += scale * x);
            }
            Event::RandomizedResponse { epsilon } => {
                let lie = 1.0 / (1.0 + libm::exp(epsilon));
                for value in values {
                    if self.unit() < lie {
                        *value = -*value;
                    }
                }
            }
        }
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The SplitMix64 finalizer.
fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(GOLDEN);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
