//! The privacy losses of a ledger's steps, and the logarithm of their moments.
//!
//! L = ln(P / Q) under P, for the pair (P, Q) that dominates the step. With c = s + 1/2,
//! ```text
//! Gaussian, mu          ln E e^{sL} = mu^2 s (s + 1) / 2
//! Laplace, eps          ln E e^{sL} = -eps/2 + ln(cosh(c eps) + sinh(c eps) / (2 c))
//! randomized response   ln E e^{sL} = ln cosh(c eps) - ln cosh(eps/2)
//! ```
//! Divided by s these are the Renyi divergences of order s + 1. For vectors under Laplace noise the pair is the
//! one-dimensional one: `proofs/laplace-vector.md`.

use super::{gaussian, sum::total};
use crate::{Event, Ledger};

/// The two pure mechanisms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Laplace,
    RandomizedResponse,
}

/// Equal pure steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pure {
    pub kind: Kind,
    pub epsilon: f64,
    pub count: u64,
}

/// All the steps of a ledger that holds no exact value.
#[derive(Clone, Debug)]
pub(super) struct Losses {
    /// All Gaussian steps together are one with this mu; 0 if there are none.
    pub mu: f64,
    pub pure: Vec<Pure>,
}

impl Losses {
    pub fn of(ledger: &Ledger) -> Self {
        let pure = ledger.charges().filter_map(|charge| {
            let kind = match charge.event {
                Event::Laplace { .. } => Kind::Laplace,
                // Of Gamma-norm noise only its pure epsilon is used, and randomized response dominates every pure mechanism.
                Event::RandomizedResponse { .. } | Event::GammaNorm { .. } => Kind::RandomizedResponse,
                Event::Reveal | Event::Gaussian { .. } => return None,
            };
            Some(Pure { kind, epsilon: charge.event.pure_epsilon(), count: charge.count })
        });
        Losses { mu: gaussian::composed(ledger), pure: pure.collect() }
    }

    /// The largest loss, rounded up: the epsilon at delta = 0.
    pub fn largest(&self) -> f64 {
        if self.mu > 0.0 {
            return f64::INFINITY;
        }
        total(self.pure.iter().map(|step| (step.epsilon, step.count)))
    }

    /// How many pure steps there are.
    pub fn steps(&self) -> f64 {
        self.pure.iter().map(|step| step.count as f64).sum()
    }

    /// ln E e^{sL} of all steps together.
    pub fn log_moment(&self, s: f64) -> f64 {
        let pure = self.pure.iter().map(|step| step.count as f64 * step.log_moment(s));
        pure.sum::<f64>() + 0.5 * self.mu * self.mu * s * (s + 1.0)
    }

    /// A bound on the rounding error of [`Losses::log_moment`].
    pub fn log_moment_error(&self, s: f64) -> f64 {
        let of = |step: &Pure| step.count as f64 * (1.0 + (s.abs() + 1.0) * step.epsilon);
        let terms = self.pure.len() as f64 + 8.0;
        1e-15 * self.pure.iter().map(of).sum::<f64>() + terms * 2e-16 * self.log_moment(s).abs()
    }
}

impl Pure {
    fn log_moment(&self, s: f64) -> f64 {
        let epsilon = self.epsilon;
        let x = (s + 0.5).abs() * epsilon;
        let half = match self.kind {
            Kind::RandomizedResponse => {
                return x - epsilon / 2.0 + libm::log1p(libm::exp(-2.0 * x)) - libm::log1p(libm::exp(-epsilon));
            }
            // sinh(c eps) / (2 c) = eps e^x (1 - e^{-2x}) / (4 x)
            Kind::Laplace if x > 1e-300 => -libm::expm1(-2.0 * x) / (4.0 * x),
            Kind::Laplace => 0.5,
        };
        x - epsilon / 2.0 + libm::log(0.5 * (1.0 + libm::exp(-2.0 * x)) + epsilon * half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_moments_are_those_of_the_densities() {
        for epsilon in [1e-6, 0.1, 1.0, 5.0] {
            for s in [-3.0, -0.5, 0.0, 0.3, 1.0, 7.5] {
                // Laplace: half at eps, half e^{-eps} at -eps, density e^{(l - eps)/2} / 4 between.
                let cells = 2000;
                let width = 2.0 * epsilon / f64::from(cells);
                let inner = |k| {
                    let l = -epsilon + width * f64::from(k);
                    crate::normal::integrate(l, l + width, |l| 0.25 * libm::exp((l - epsilon) / 2.0 + s * l))
                };
                let ends = 0.5 * libm::exp(s * epsilon) + 0.5 * libm::exp(-epsilon - s * epsilon);
                let truth = libm::log(ends + (0..cells).map(inner).sum::<f64>());
                let ours = Pure { kind: Kind::Laplace, epsilon, count: 1 }.log_moment(s);
                assert!((ours - truth).abs() < 1e-12 * (1.0 + truth.abs()), "{epsilon} {s}: {ours} {truth}");
                let q = 1.0 / (1.0 + libm::exp(-epsilon));
                let truth = libm::log(q * libm::exp(s * epsilon) + (1.0 - q) * libm::exp(-s * epsilon));
                let ours = Pure { kind: Kind::RandomizedResponse, epsilon, count: 1 }.log_moment(s);
                assert!((ours - truth).abs() < 1e-12 * (1.0 + truth.abs()), "{epsilon} {s}: {ours} {truth}");
            }
        }
    }
}
