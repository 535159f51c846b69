//! The update of coordinate descent (Bellet et al. 2018, section 2.3, equation 4; thesis, (2.3)).
//!
//! An agent that wakes takes one gradient step on its own block of Q with step 1 / L_i, L_i = D_ii (1 + mu c_i L_i^loc):
//!
//! Theta_i <- (1 - alpha_i) Theta_i + alpha_i ( sum_j W_ij / D_ii Theta_j - mu c_i grad L_i(Theta_i) ),
//! alpha_i = 1 / (1 + mu c_i L_i^loc)
//!
//! Each step lowers Q by at least |[grad Q]_i|^2 / (2 L_i). Whatever the factors, it is
//!
//! Theta_i <- keep Theta_i + follow sum_j W_ij Theta_j - descend g
//!
//! with g the agent's own, exact ([`descend`]), or released before it comes here ([`combine`]).
//!
//! Differs from the paper: equation (4) closes its parenthesis before the gradient, so that alpha would not multiply it; the
//! lines above are what the derivation and the paper's equation (6) say.
//!
//! # Privacy
//! [`combine`] is a plain function of public terms and a released g, so that what comes out is released, too.

use super::neighbours::{NeighbourModels, Pull};
use crate::Shard;
use crate::kernel::{self, Arithmetic, Simd};
use sottovoce_privacy::Released;

/// What an agent sees when it takes a step, and the memory for it.
pub struct View<'t, 'm, N> {
    /// Theta_i.
    pub theta: &'t [f64],
    /// W_ij and Theta_j.
    pub neighbours: N,
    /// Zeros, to become the new model.
    pub model: &'m mut [f64],
    /// Zeros, for a gradient.
    pub gradient: &'m mut [f64],
    /// Whether the agent's turn has an update left.
    pub may_update: bool,
}

impl<'t, 'm, N> View<'t, 'm, N> {
    /// With memory of the driver's.
    pub fn new(theta: &'t [f64], neighbours: N, scratch: &'m mut Vec<f64>) -> Self {
        scratch.clear();
        scratch.resize(2 * theta.len(), 0.0);
        let (model, gradient) = scratch.split_at_mut(theta.len());
        View { theta, neighbours, model, gradient, may_update: true }
    }
}

/// What came of a step.
pub struct Stepped<'m> {
    /// The new model.
    pub model: Released<&'m [f64]>,
    /// The largest change of a coordinate.
    pub moved: f64,
    /// Whether the agent's data took part.
    pub is_update: bool,
}

/// alpha_i, from a bound on the smoothness L_i^loc.
pub fn alpha(weight: f64, smoothness: f64) -> f64 {
    1.0 / (1.0 + weight * smoothness)
}

/// What equation (4) multiplies Theta_i, sum_j W_ij Theta_j and g by.
///
/// | name | symbol |
/// |---|---|
/// | alpha | alpha_i |
/// | weight | mu c_i |
/// | regularization | lambda_i |
/// | pull | alpha_i times the mean of the neighbours' models |
/// | points | of how many points g is the sum: one where it is a mean |
#[inline(always)]
pub fn equation_4(alpha: f64, weight: f64, regularization: f64, pull: Pull, points: usize) -> [f64; 3] {
    // theta_i <- (1 - alpha) theta_i + alpha (sum_j W_ij/D_ii theta_j - mu c_i (g/m + 2 lambda theta_i))   [2018, eq. 4]
    let keep = 1.0 - alpha + pull.own - 2.0 * alpha * weight * regularization;
    let descend = if points == 0 { 0.0 } else { alpha * weight / points as f64 };
    [keep, pull.each, descend]
}

/// What an update is made of, but for g.
pub struct Terms<'t, 'm, N> {
    /// Theta_i.
    pub theta: &'t [f64],
    /// W_ij and Theta_j.
    pub neighbours: N,
    /// keep, follow and descend.
    pub factors: [f64; 3],
    /// Starts at zero and ends as the new model.
    pub model: &'m mut [f64],
}

/// The new model, from a gradient that is given.
pub fn combine<'m, N: NeighbourModels>(terms: Terms<'_, 'm, N>, gradient: &'m mut [f64]) -> &'m [f64] {
    kernel::vectorized(Combine(terms, gradient))
}

struct Combine<'t, 'm, N>(Terms<'t, 'm, N>, &'m [f64]);

impl<'m, N: NeighbourModels> Arithmetic for Combine<'_, 'm, N> {
    type Output = &'m [f64];

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> &'m [f64] {
        let Terms { theta, neighbours, factors, model } = self.0;
        kernel::add_weighted_rows(simd, neighbours.count(), |k| neighbours.row(k, theta), model);
        kernel::step(simd, factors, theta, self.1, model);
        model
    }
}

/// Makes the new model with the exact sum of the agent's gradients, from zeroed memory for it. Returns the largest change of a
/// coordinate.
#[inline(always)]
pub fn descend<N: NeighbourModels>(terms: Terms<'_, '_, N>, shard: Shard<'_>, gradient: &mut [f64]) -> f64 {
    kernel::vectorized(Descend(terms, shard, gradient))
}

struct Descend<'a, 't, 'm, N>(Terms<'t, 'm, N>, Shard<'a>, &'a mut [f64]);

impl<N: NeighbourModels> Arithmetic for Descend<'_, '_, '_, N> {
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f64 {
        let Descend(Terms { theta, neighbours, factors, model }, shard, gradient) = self;
        kernel::add_weighted_rows(simd, neighbours.count(), |k| neighbours.row(k, theta), model);
        kernel::add_gradient_inline(simd, shard.loss, shard.points, theta, gradient);
        kernel::step(simd, factors, theta, gradient, model)
    }
}
