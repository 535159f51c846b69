//! A curator whom all trust holds everybody's data, and makes the steps of a walk in one place: one member drawn at each step, with Gaussian noise. Proof:
//! `proofs/sampled.md`.
//!
//! Against everyone who sees all models. At a step the two worlds differ with probability q = 1/n, and by at most the sensitivity: with
//! r(z) = 1 - q + q exp((2z - 1) / 2s^2), s the noise multiplier and phi_s the density of N(0, s^2),
//! ```text
//! exp((alpha-1) D_alpha) <= 1 + int_{z > 1/2} phi_s [ r^alpha - 1 - alpha (r - 1) ] + phi_s r [ r^-alpha - 1 - alpha (1/r - 1) ] dz
//! ```

use super::convert::renyi;
use super::walk::BadNetwork;
use crate::account::{Accountant, within};
use crate::{Event, Ledger};

/// Privacy of one member among those a trusted curator draws from.
///
/// # Privacy
/// Unit: all of one member's data. See `proofs/sampled.md`. Holds against everyone but the curator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampled {
    agents: u64,
    hops: u64,
}

/// Pairs of points of the integral, at least, and for each deviation of the noise.
const POINTS: f64 = 600.0;
const FINE: f64 = 6.0;
/// The least noise multiplier that is looked at.
const LEAST: f64 = 0.05;
/// How far above its upper end the integrand matters, in deviations.
const TAIL: f64 = 12.0;
/// What is added to the integral, relatively: several times its error in the tests.
const ROUNDING: f64 = 1e-6;

impl Sampled {
    /// So many steps, at each of which one of so many members is drawn.
    pub fn new(agents: u64, hops: u64) -> Result<Self, BadNetwork> {
        match (agents, hops) {
            (0..2, _) => {
                let accepted = "at least 2: of one nobody is drawn";
                Err(BadNetwork::OutOfRange { what: "number of members", value: agents as f64, accepted })
            }
            (_, 0) => Err(BadNetwork::OutOfRange { what: "number of hops", value: 0.0, accepted: "at least 1" }),
            _ => Ok(Sampled { agents, hops }),
        }
    }

    /// How many members there are.
    pub fn agents(&self) -> u64 {
        self.agents
    }

    /// How many steps.
    pub fn hops(&self) -> u64 {
        self.hops
    }

    /// The epsilon at `delta` with this noise multiplier, sigma / sensitivity; rounds up.
    pub fn epsilon_at(&self, noise_multiplier: f64, delta: f64) -> f64 {
        let log_delta = libm::log(within(delta));
        // Every order gives a valid value.
        let at = |k: i32| {
            let order = 1.0 + libm::exp(0.1 * f64::from(k));
            renyi(self.log_moment(noise_multiplier, order), log_delta, order)
        };
        let coarse = (-10..=12).map(|k| (5 * k, at(5 * k))).min_by(|a, b| a.1.total_cmp(&b.1));
        let Some((best, _)) = coarse else { return f64::INFINITY };
        (best - 5..=best + 5).map(at).fold(f64::INFINITY, f64::min).max(0.0)
    }

    /// The least noise multiplier, to a relative 1e-5, with which [`Sampled::epsilon_at`] is at most `epsilon`; none outside of
    /// epsilon > 0 and 0 < delta < 1.
    pub fn noise_multiplier(&self, epsilon: f64, delta: f64) -> Option<f64> {
        if !(epsilon.is_finite() && epsilon > 0.0 && delta > 0.0 && delta < 1.0) {
            return None;
        }
        let (mut low, mut high) = (LEAST, LEAST);
        while self.epsilon_at(high, delta) > epsilon {
            (low, high) = (high, 2.0 * high);
            if high > 1e9 {
                return None;
            }
        }
        while high > low * (1.0 + 1e-5) {
            let middle = (low * high).sqrt();
            if self.epsilon_at(middle, delta) <= epsilon {
                high = middle;
            } else {
                low = middle;
            }
        }
        Some(high)
    }

    /// (alpha - 1) times the Renyi divergence of all steps, rounded up.
    fn log_moment(&self, s: f64, order: f64) -> f64 {
        let (q, steps) = (1.0 / self.agents as f64, self.hops as f64);
        // PRIVACY: below this no integral is computed, and nothing is promised.
        if s.is_nan() || s < LEAST {
            return f64::INFINITY;
        }
        // phi_s r^alpha peaks at most alpha to the right of zero.
        let (from, to) = (0.5, 0.5 + order + TAIL * s);
        let points = 2 * ((to - from) * FINE / s).max(POINTS).ceil() as u32;
        let width = (to - from) / f64::from(points);
        let part = |z: f64| {
            let log_density = -0.5 * (z / s) * (z / s) - libm::log(s * (2.0 * std::f64::consts::PI).sqrt());
            let exponent = (2.0 * z - 1.0) / (2.0 * s * s);
            let log_r = match exponent {
                small if small < 40.0 => libm::log1p(q * libm::expm1(small)),
                large => libm::log(q) + large + libm::log1p(libm::exp(-large) * (1.0 / q - 1.0)),
            };
            let grown = libm::expm1(log_r);
            let up = match order * log_r {
                small if small < 1.0 => libm::exp(log_density) * (libm::expm1(small) - order * grown),
                large => {
                    let (one, all) = (libm::exp(log_density), libm::exp(log_density + large));
                    all - one - order * (libm::exp(log_density + log_r) - one)
                }
            };
            let down = libm::expm1(-order * log_r) - order * libm::expm1(-log_r);
            up + libm::exp(log_density + log_r) * down
        };
        // Simpson's rule.
        let inner: f64 = (1..points).map(|k| f64::from(2 + 2 * (k % 2)) * part(from + f64::from(k) * width)).sum();
        let sum = (part(from) + inner + part(to)) * width / 3.0;
        // What is no number bounds nothing.
        if sum.is_nan() {
            return f64::INFINITY;
        }
        steps * libm::log1p(sum.max(0.0) * (1.0 + ROUNDING))
    }
}

impl Accountant for Sampled {
    fn epsilon(&self, ledger: &Ledger, delta: f64) -> f64 {
        if ledger.releases() == 0 {
            return 0.0;
        }
        let least = ledger.charges().try_fold(f64::INFINITY, |least, charge| match charge.event {
            Event::Gaussian { noise_multiplier } => Some(least.min(noise_multiplier)),
            _ => None,
        });
        // PRIVACY: how often a member was drawn is for the curator's coins to say; all steps count, for everyone.
        let covered = ledger.releases() <= self.hops;
        least.filter(|_| covered).map_or(f64::INFINITY, |least| self.epsilon_at(least, delta))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Charge, gaussian_epsilon};

    /// Spec 05 section 5: central 0.750 and 0.361 for a sensitivity of 0.8, for a member that is there or not, by few orders. Here it is replaced, which
    /// shows in both directions at once, and orders are many.
    #[test]
    fn the_example_of_the_thesis_comes_out_near_the_printed_values() {
        let central = Sampled::new(2000, 20_000).expect("valid");
        for (epsilon, printed) in [(1.0, 0.750), (10.0, 0.361)] {
            let sigma = 0.8 * central.noise_multiplier(epsilon, 1e-6).expect("found");
            assert!(sigma > 0.98 * printed && sigma < 1.05 * printed, "epsilon {epsilon}: {sigma}");
            assert!(central.epsilon_at(sigma / 0.8, 1e-6) <= epsilon);
        }
    }

    /// By another rule, of a thousand times as many points, in plain terms.
    #[test]
    fn the_integral_is_above_a_finer_one_and_close() {
        for (agents, s, order) in [(2000u64, 0.9, 3.0), (10, 2.0, 8.0), (50, 0.5, 1.5), (3, 5.0, 40.0)] {
            let q = 1.0 / agents as f64;
            let found = libm::expm1(Sampled::new(agents, 1).expect("valid").log_moment(s, order));
            let (from, to, count) = (0.5, 0.5 + order + 14.0 * s, 400_000);
            let width = (to - from) / f64::from(count);
            let truth: f64 = (0..count)
                .map(|k| {
                    let z = from + (f64::from(k) + 0.5) * width;
                    let density = libm::exp(-0.5 * z * z / (s * s)) / (s * (2.0 * std::f64::consts::PI).sqrt());
                    let r = 1.0 - q + q * libm::exp((2.0 * z - 1.0) / (2.0 * s * s));
                    let up = density * (libm::pow(r, order) - 1.0 - order * (r - 1.0));
                    up + density * r * (libm::pow(r, -order) - 1.0 - order * (1.0 / r - 1.0))
                })
                .sum::<f64>()
                * width;
            assert!(found >= truth && found < truth * (1.0 + 1e-5), "{agents} {s} {order}: {found} {truth}");
        }
    }

    #[test]
    fn it_is_below_composition_without_a_draw_and_grows_with_steps() {
        let at = |agents, hops, s| Sampled::new(agents, hops).expect("valid").epsilon_at(s, 1e-6);
        assert!(at(1000, 1000, 2.0) < gaussian_epsilon(1000f64.sqrt() / 2.0, 1e-6));
        assert!(at(1000, 2000, 2.0) > at(1000, 1000, 2.0) && at(1000, 1000, 3.0) < at(1000, 1000, 2.0));
        assert!(at(2000, 1000, 2.0) < at(1000, 1000, 2.0));
        assert!(at(2000, 20_000, 0.001).is_infinite() && at(2000, 20_000, 0.06) > 50.0, "little noise is no guarantee");
        let ledger = |count| Ledger::from_charges([Charge::new(Event::Gaussian { noise_multiplier: 2.0 }, count)]);
        let central = Sampled::new(1000, 50).expect("valid");
        assert_eq!(central.epsilon(&ledger(3).expect("valid"), 1e-6), central.epsilon_at(2.0, 1e-6));
        assert_eq!(central.epsilon(&ledger(51).expect("valid"), 1e-6), f64::INFINITY);
        assert!(Sampled::new(1, 3).is_err() && Sampled::new(3, 0).is_err());
    }
}
