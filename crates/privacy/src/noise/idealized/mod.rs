//! Noise for simulations: the right laws in plain floating point.
//!
//! Fast and replayable from a seed, and not fit for real data: the holes that rounding leaves in floating-point noise can
//! tell what was below it (Mironov 2012), and whoever knows the seed knows the noise. That is why it is a type of its own,
//! which no real peer accepts.

use super::{DEVIATION_LOG2, Noise, sealed::Sealed};
use crate::Event;
use ziggurat::{Ziggurat, unit};

mod ziggurat;

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

    #[inline]
    fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GOLDEN);
        mix(self.state)
    }

    /// An exponential, and an independent fair sign.
    #[inline]
    fn exponential(&mut self, ziggurat: &Ziggurat) -> (f64, bool) {
        // Beyond any point, the law begins anew.
        ziggurat.sample(self, Self::bits, |noise, start| start - libm::log(unit(noise.bits())))
    }

    #[inline]
    fn laplace(&mut self, ziggurat: &Ziggurat) -> f64 {
        let (size, is_negative) = self.exponential(ziggurat);
        if is_negative { -size } else { size }
    }

    #[inline]
    fn normal(&mut self, ziggurat: &Ziggurat) -> f64 {
        let (size, is_negative) = ziggurat.sample(self, Self::bits, Self::normal_beyond);
        if is_negative { -size } else { size }
    }

    /// A normal, given that it is above `start` (Marsaglia 1964).
    fn normal_beyond(&mut self, start: f64) -> f64 {
        loop {
            let x = -libm::log(unit(self.bits())) / start;
            let y = -libm::log(unit(self.bits()));
            if 2.0 * y > x * x {
                return start + x;
            }
        }
    }
}

impl Sealed for Idealized {}

impl Noise for Idealized {
    fn respond(&mut self, epsilon: f64, categories: u32, answers: &mut [f64]) {
        // With this probability the answer is any category, the truth among them.
        let others = f64::from(categories - 1);
        let blind = f64::from(categories) / (others + libm::exp(epsilon));
        for answer in answers {
            if unit(self.bits()) < blind {
                *answer = ((u128::from(self.bits()) * u128::from(categories)) >> 64) as f64;
            }
        }
    }

    fn perturb_integers(&mut self, values: &mut [i64]) {
        let (deviation, ziggurat) = (f64::from(1u32 << DEVIATION_LOG2), Ziggurat::normal());
        for value in values {
            *value = value.wrapping_add(libm::rint(deviation * self.normal(ziggurat)) as i64);
        }
    }

    fn perturb(&mut self, event: Event, sensitivity: f64, values: &mut [f64]) {
        match event {
            Event::Reveal => panic!("an exact value has no noise"),
            Event::Laplace { noise_multiplier } => {
                let (scale, ziggurat) = (noise_multiplier * sensitivity, Ziggurat::exponential());
                values.iter_mut().for_each(|value| *value += scale * self.laplace(ziggurat));
            }
            Event::Gaussian { noise_multiplier } => {
                let (sigma, ziggurat) = (noise_multiplier * sensitivity, Ziggurat::normal());
                values.iter_mut().for_each(|value| *value += sigma * self.normal(ziggurat));
            }
            Event::GammaNorm { noise_multiplier } => {
                // A norm that follows Gamma(p), the sum of p exponentials, in the direction of a normal vector.
                let (exponential, normal) = (Ziggurat::exponential(), Ziggurat::normal());
                let norm: f64 = values.iter().map(|_| self.exponential(exponential).0).sum();
                // The vector is drawn twice from the same state, once for its length: no memory is needed.
                let mut replay = *self;
                let square = |x: f64| x * x;
                let length = libm::sqrt(values.iter().map(|_| square(replay.normal(normal))).sum());
                let scale = noise_multiplier * sensitivity * norm / length;
                values.iter_mut().for_each(|value| *value += scale * self.normal(normal));
            }
            Event::RandomizedResponse { epsilon } => {
                let lie = 1.0 / (1.0 + libm::exp(epsilon));
                for value in values {
                    if unit(self.bits()) < lie {
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
