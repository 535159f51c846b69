//! The public part of a private update, which is everything after the noise:
//!
//! Theta_i <- keep Theta_i + follow sum_j W_ij Theta_j - descend g
//!
//! # Privacy
//! [`combine`] is a plain function of public terms and a released g, so that what comes out is released, too.

use super::copies::Copies;
use crate::kernel::{self, Arithmetic, Simd};
use sottovoce_core::{Peers, Posts};

/// The models that pull at an agent's, and the weights of the edges to them.
pub(super) trait Pulls {
    /// How many there are.
    fn count(&self) -> usize;

    /// A weight and a model; `own` may stand in for it.
    fn row<'a>(&'a self, k: usize, own: &'a [f64]) -> (f64, &'a [f64]);
}

impl Pulls for (Posts<'_>, Peers<'_>) {
    fn count(&self) -> usize {
        self.1.len()
    }

    #[inline(always)]
    fn row<'a>(&'a self, k: usize, _own: &'a [f64]) -> (f64, &'a [f64]) {
        self.0.last(self.1, k)
    }
}

impl Pulls for &Copies {
    fn count(&self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn row<'a>(&'a self, k: usize, own: &'a [f64]) -> (f64, &'a [f64]) {
        Copies::row(self, k, own)
    }
}

/// What an update is made of, but for g.
pub(super) struct Terms<'a, P> {
    /// Theta_i.
    pub theta: &'a [f64],
    /// W_ij and Theta_j.
    pub pulls: P,
    /// keep, follow and descend.
    pub factors: [f64; 3],
    /// Starts at zero and ends as the new model.
    pub model: &'a mut [f64],
}

/// The new model.
pub(super) fn combine<'a, P: Pulls>(terms: Terms<'a, P>, gradient: &'a mut [f64]) -> &'a [f64] {
    kernel::vectorized(Combine(terms, gradient))
}

struct Combine<'a, P>(Terms<'a, P>, &'a [f64]);

impl<'a, P: Pulls> Arithmetic for Combine<'a, P> {
    type Output = &'a [f64];

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> &'a [f64] {
        let Terms { theta, pulls, factors, model } = self.0;
        kernel::add_weighted_rows(simd, pulls.count(), |k| pulls.row(k, theta), model);
        kernel::step(simd, factors, theta, self.1, model);
        model
    }
}
