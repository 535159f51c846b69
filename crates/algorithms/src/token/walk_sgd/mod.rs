//! Stochastic gradient descent by a token (thesis 4.2, Algorithm 4.5; Cyffers and Bellet 2022): one model for all.
//!
//! ```text
//! tau <- Pi( tau - gamma [ (1/m_u) sum_k clip_L( grad l(tau; x_k, y_k) ) + 2 lambda tau + N(0, sigma^2 I) ] )
//! ```
//!
//! The way of the token is that of a [walk](super::walk); the outcome is the last iterate, and of several tokens their mean.
//!
//! Differs from the paper:
//! - **The gradient of each example is clipped**, to L, and not their mean. Of a generalized linear model a clipped gradient is the gradient of another convex
//!   function that is as smooth, so that a step is a contraction; a clipped mean is not, and amplification by iteration needs that.
//! - **The step gamma is constant**, and at most 2/s for gradients whose slope is at most s. With steps that fall the printed guarantee does not hold.
//! - The sensitivity is that of all of a member's data, 2 L, on the gradient before its noise: the noise multiplier is sigma / 2 L.
//!
//! # Privacy
//! As of a walk, by the accountant `Iteration`: `crates/privacy/proofs/network-iteration.md`.

use super::walk::{Ended, Movement, Moving, Walk, is_number};
use crate::kernel;
use crate::vector::norm;
use crate::{Loss, Points, Shard};
use sottovoce_privacy::{Event, Gate, Public, Receipt, Released};
use thiserror::Error;

/// Stochastic gradient descent by a token.
pub type WalkSgd = Walk<Gradient>;

/// The hyper-parameters of a step.
///
/// | name | symbol | range | default |
/// |---|---|---|---|
/// | dimension | p | 1 and above | the data's |
/// | loss | l | logistic, squared, smoothed hinge | logistic |
/// | step | gamma | above 0, and at most 2/s with a clip | the task's |
/// | radius | Pi | above 0; none: no projection | none |
/// | regularization | lambda | 0 and above | 0 |
/// | clip | L | above 0; none without privacy | the task's |
/// | bound | max &#124;x&#124; | above 0; needed with a clip | the task's |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GradientConfig {
    /// Coordinates of the model.
    pub dimension: usize,
    /// The loss.
    pub loss: Loss,
    /// The constant step.
    pub step: f64,
    /// Models are brought back to this norm.
    pub radius: Option<f64>,
    /// Its square is added to the objective so often.
    pub regularization: f64,
    /// The largest norm of one example's gradient.
    pub clip: Option<f64>,
    /// A bound on the norms of all examples.
    pub bound: Option<f64>,
}

/// Why there is no such step.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum BadGradient {
    /// A loss without a gradient.
    #[error("the hinge has no gradient at its kink; accepted: logistic, squared, smoothed-hinge")]
    Hinge,
    /// No size, or so large that noisy steps would not forget.
    #[error(
        "a step of {step}; accepted: a number above 0 and at most {most}, beyond which a step is no contraction and the guarantee is none"
    )]
    Step {
        /// What it is.
        step: f64,
        /// What it may be.
        most: f64,
    },
    /// Not a radius, a clip, a bound or a regularization.
    #[error("a {0} of {1}; accepted: a finite number above 0")]
    Number(&'static str, f64),
    /// Clipping needs to know how long examples are.
    #[error("a clip without a bound on the examples; accepted: a bound, from which the largest step follows")]
    Boundless,
}

/// Checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gradient {
    config: GradientConfig,
}

impl Gradient {
    /// Checks the hyper-parameters.
    pub fn new(config: GradientConfig) -> Result<Gradient, BadGradient> {
        let GradientConfig { loss, step, radius, regularization, clip, bound, .. } = config;
        let Some(smoothness) = loss.smoothness() else { return Err(BadGradient::Hinge) };
        for (name, value) in [("radius", radius), ("clip", clip), ("bound", bound)] {
            if let Some(value) = value.filter(|value| !(value.is_finite() && *value > 0.0)) {
                return Err(BadGradient::Number(name, value));
            }
        }
        if !(regularization.is_finite() && regularization >= 0.0) {
            return Err(BadGradient::Number("regularization", regularization));
        }
        // PRIVACY: gamma <= 2/s keeps every step a contraction, which the accountant relies on.
        let most = match (clip, bound) {
            (None, _) => f64::MAX,
            (Some(_), None) => return Err(BadGradient::Boundless),
            (Some(_), Some(bound)) => 2.0 / (smoothness * bound * bound + 2.0 * regularization),
        };
        match step > 0.0 && step <= most {
            true => Ok(Gradient { config }),
            false => Err(BadGradient::Step { step, most }),
        }
    }

    /// Coordinates of a model.
    pub fn dimension(&self) -> usize {
        self.config.dimension
    }

    /// The mean of clipped gradients at a model.
    pub fn of(&self, points: Points<'_>, theta: &[f64], out: &mut [f64]) {
        mean_gradient(self.config.loss, self.config.clip, points, theta, out);
    }

    /// How far that can move when all of a member's examples are replaced: two means of gradients of at most the clip, and what computing them
    /// rounds. Without a clip nothing is protected.
    pub fn length(&self) -> f64 {
        self.config.clip.map_or(1.0, |clip| 2.0 * clip * (1.0 + ROUNDING))
    }

    /// Where a gradient leads from a model: the model in its place.
    pub fn lead(&self, theta: &[f64], gradient: &mut [f64]) {
        self.step_from(theta).apply(gradient);
    }

    fn step_from<'t>(&self, from: &'t [f64]) -> Step<'t> {
        let GradientConfig { step, radius, regularization, .. } = self.config;
        let (shrink, radius) = (1.0 - 2.0 * step * regularization, radius.unwrap_or(f64::INFINITY));
        Step { from, step, shrink, radius }
    }
}

/// More than a mean of a million gradients, or of a million coordinates, is off by rounding, relatively.
const ROUNDING: f64 = 1e-9;

/// Points whose limits need no memory of their own.
const FEW: usize = 64;

/// The mean over points of their gradients, each clipped to `clip` where there is one; zero where there is no point.
pub fn mean_gradient(loss: Loss, clip: Option<f64>, points: Points<'_>, theta: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    match clip {
        None => kernel::add_gradient(loss, points, theta, out),
        Some(clip) => {
            let (mut few, mut many) = ([0.0; FEW], Vec::new());
            let limits = match few.get_mut(..points.len()) {
                Some(limits) => limits,
                None => {
                    many.resize(points.len(), 0.0);
                    &mut many[..]
                }
            };
            kernel::vectorized(Clipped { loss, clip, points, theta, limits, out });
        }
    }
    let share = 1.0 / points.len().max(1) as f64;
    out.iter_mut().for_each(|out| *out *= share);
}

/// The sum of clipped gradients: slopes are cut where they times |x| are the clip.
struct Clipped<'a> {
    loss: Loss,
    clip: f64,
    points: Points<'a>,
    theta: &'a [f64],
    limits: &'a mut [f64],
    out: &'a mut [f64],
}

impl kernel::Arithmetic for Clipped<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: kernel::Simd>(self, simd: S) {
        let rows = self.points.features.chunks_exact(self.points.dimension);
        for (limit, x) in self.limits.iter_mut().zip(rows) {
            *limit = self.clip / x.iter().map(|x| x * x).sum::<f64>().sqrt();
        }
        kernel::add_clipped_gradient_inline(simd, self.loss, self.limits, self.points, self.theta, self.out);
    }
}

/// What a noisy gradient does to the token: tau - gamma g, back into the ball.
struct Step<'t> {
    from: &'t [f64],
    step: f64,
    shrink: f64,
    radius: f64,
}

impl Step<'_> {
    fn apply(self, moved: &mut [f64]) -> &mut [f64] {
        for (moved, from) in moved.iter_mut().zip(self.from) {
            *moved = self.shrink * from - self.step * *moved;
        }
        let length = norm(moved);
        if length > self.radius {
            let factor = self.radius / length;
            moved.iter_mut().for_each(|moved| *moved *= factor);
        }
        moved
    }
}

impl Movement for Gradient {
    type Data<'d> = Shard<'d>;

    fn numbers(&self) -> usize {
        self.config.dimension
    }

    fn outcome_len(&self) -> usize {
        self.config.dimension
    }

    fn sensitivity(&self) -> f64 {
        self.length()
    }

    fn step<'m>(
        &self,
        receipt: Option<Receipt>,
        shard: Shard<'_>,
        law: Option<Event>,
        gate: &mut Gate,
        token: Moving<'_, 'm>,
    ) -> (Released<&'m mut [f64]>, u64) {
        let Moving { received, moved } = token;
        let gradient: Released<&'m mut [f64]> = match receipt {
            Some(receipt) => {
                self.of(shard.points, received, moved);
                // PRIVACY: charged by the walk, for two means of clipped gradients; the noise below is this hop's part of what hides it.
                receipt.release(moved)
            }
            None => Released::zeroed(moved),
        };
        let gradient = match law {
            Some(law) => gate.blur_all(law, self.sensitivity(), None, gradient),
            None => gradient,
        };
        // PRIVACY: the token as it was received is known to whoever sent it; the rest is the task's.
        let how = Public::declare(self.step_from(received));
        (gradient.with_public(how, |how, moved| how.apply(moved)), 1)
    }

    fn holds(&self, value: f64) -> bool {
        is_number(value)
    }

    fn outcome(&self, tokens: &[Ended], out: &mut [f64]) {
        out.fill(0.0);
        for token in tokens {
            out.iter_mut().zip(&token.values).for_each(|(out, value)| *out += value / tokens.len() as f64);
        }
    }
}

#[cfg(test)]
mod tests;
