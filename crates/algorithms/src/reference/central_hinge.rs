//! The minimum of Q for the hinge, by coordinate ascent on the dual of the whole problem; for small ones.

use crate::cholesky;
use crate::reference::dual::{self, Dual};
use crate::reference::system::System;
use crate::vector::{add_scaled, dot};

/// All unknowns, one member after another. The quadratic part of Q is M (x) I with M = D - W + diag(2 mu D_ii c_i lambda_i), whose inverse is formed.
pub(super) fn solve(system: &System<'_>) -> Vec<f64> {
    let (n, p) = (system.members.len(), system.dimension);
    let mut factor = vec![0.0; n * n];
    cholesky::factor_regularized(&mut factor, n, |matrix| {
        matrix.fill(0.0);
        for (at, member) in system.members.iter().enumerate() {
            matrix[at * n + at] = member.diagonal();
        }
        for &(a, b, weight) in &system.edges {
            matrix[a.max(b) * n + a.min(b)] = -weight;
        }
    });
    // The inverse is symmetric, so its rows are its columns.
    let mut inverse = vec![0.0; n * n];
    for (at, row) in inverse.chunks_exact_mut(n).enumerate() {
        row[at] = 1.0;
        cholesky::solve(&factor, n, row);
    }
    let mut pull = vec![0.0; n * p];
    for &(at, weight, model) in &system.fixed {
        add_scaled(&mut pull[system.block(at)][..model.len()], weight, model);
    }
    let mut rest = vec![0.0; n * p];
    for (row, out) in inverse.chunks_exact(n).zip(rest.chunks_exact_mut(p)) {
        for (entry, pull) in row.iter().zip(pull.chunks_exact(p)) {
            add_scaled(out, *entry, pull);
        }
    }
    let points: Vec<_> = system
        .members
        .iter()
        .enumerate()
        .flat_map(|(at, member)| {
            let upper = member.weight / member.shard.points.len().max(1) as f64;
            member.shard.points.iter().map(move |(x, y)| HingePoint { at, x, y, upper })
        })
        .collect();
    let mut alpha = vec![0.0; points.len()];
    let mut whole = WholeHinge { p, n, points, inverse, rest: rest.clone(), theta: rest };
    dual::ascend(&mut whole, &mut alpha, &mut Vec::new());
    whole.theta
}

/// One point of the whole hinge problem.
struct HingePoint<'a> {
    /// The position of the member that owns it.
    at: usize,
    x: &'a [f64],
    y: f64,
    /// mu D_ii c_i / m_i.
    upper: f64,
}

struct WholeHinge<'a> {
    p: usize,
    n: usize,
    points: Vec<HingePoint<'a>>,
    /// M^-1.
    inverse: Vec<f64>,
    /// M^-1 b: where the models are with alpha = 0.
    rest: Vec<f64>,
    theta: Vec<f64>,
}

impl Dual for WholeHinge<'_> {
    fn upper(&self, k: usize) -> f64 {
        self.points[k].upper
    }

    fn entry(&self, k: usize, l: usize) -> f64 {
        let (one, other) = (&self.points[k], &self.points[l]);
        one.y * other.y * self.inverse[one.at * self.n + other.at] * dot(one.x, other.x)
    }

    fn slack(&self, k: usize) -> f64 {
        let point = &self.points[k];
        1.0 - point.y * dot(point.x, &self.theta[point.at * self.p..][..self.p])
    }

    fn shift(&mut self, k: usize, change: f64) {
        let HingePoint { at, x, y, .. } = self.points[k];
        let row = &self.inverse[at * self.n..][..self.n];
        for (theta, entry) in self.theta.chunks_exact_mut(self.p).zip(row) {
            add_scaled(theta, change * y * entry, x);
        }
    }

    fn rebuild(&mut self, alpha: &[f64]) {
        self.theta.copy_from_slice(&self.rest);
        for (k, &alpha) in alpha.iter().enumerate() {
            if alpha != 0.0 {
                self.shift(k, alpha);
            }
        }
    }
}
