//! The hinge loss in its dual: a quadratic over a box.
//!
//! min over theta of sum_k C_k max(0, 1 - y_k x_k.theta) + 1/2 theta^T M theta - b.theta has the dual
//! max over 0 <= alpha_k <= C_k of sum_k alpha_k - 1/2 theta^T M theta with theta = M^-1 (b + sum_k alpha_k y_k x_k).
//! Coordinate ascent finds which points lie on the margin; with them known, what is left is linear and
//! is solved exactly. The duality gap, sum_k C_k max(0, s_k) - alpha_k s_k with s_k = 1 - y_k x_k.theta, has no
//! negative term, so it is small exactly when every point fulfils its optimality condition.

use crate::cholesky;

/// Sweeps of coordinate ascent between two attempts at an exact solution.
const SWEEPS: usize = 10;
/// Attempts.
const ROUNDS_MAX: usize = 2_000;
/// How far a slack may be on the wrong side at the end, relative to the largest one.
const SLACK_ERROR_MAX: f64 = 1e-13;
/// More points on the margin than this are left to coordinate ascent.
const EXACT_MAX: usize = 1_500;

/// A hinge problem whose theta follows alpha.
pub(crate) trait Dual {
    /// C_k.
    fn upper(&self, k: usize) -> f64;
    /// y_k y_l x_k.M^-1.x_l, in whatever blocks x lives.
    fn entry(&self, k: usize, l: usize) -> f64;
    /// 1 - y_k x_k.theta.
    fn slack(&self, k: usize) -> f64;
    /// Follows a change of alpha_k.
    fn shift(&mut self, k: usize, change: f64);
    /// Recomputes theta from alpha, without the rounding errors of many changes.
    fn rebuild(&mut self, alpha: &[f64]);
}

/// Moves `alpha` to the maximum of the dual, and theta with it.
pub(crate) fn ascend(dual: &mut impl Dual, alpha: &mut [f64], scratch: &mut Vec<f64>) {
    for (k, alpha) in alpha.iter_mut().enumerate() {
        *alpha = alpha.clamp(0.0, dual.upper(k));
    }
    dual.rebuild(alpha);
    for _ in 0..ROUNDS_MAX {
        for _ in 0..SWEEPS {
            sweep(dual, alpha);
        }
        step_on_margin(dual, alpha, scratch);
        dual.rebuild(alpha);
        if is_optimal(dual, alpha) {
            return;
        }
    }
}

/// Each alpha_k in turn to its best value, the others fixed.
fn sweep(dual: &mut impl Dual, alpha: &mut [f64]) {
    for (k, alpha) in alpha.iter_mut().enumerate() {
        let (slack, curvature) = (dual.slack(k), dual.entry(k, k));
        // A point without features has constant loss; its alpha moves nothing.
        let best = if curvature > 0.0 { (*alpha + slack / curvature).clamp(0.0, dual.upper(k)) } else { dual.upper(k) };
        if best != *alpha {
            dual.shift(k, best - *alpha);
            *alpha = best;
        }
    }
}

/// Solves for the alphas strictly inside the box and moves there, or as far as the box allows. Along the way the dual
/// never falls, because it is concave and the direction leads to its maximum over these coordinates.
fn step_on_margin<D: Dual>(dual: &mut D, alpha: &mut [f64], scratch: &mut Vec<f64>) {
    let members = |dual: &D, alpha: &[f64], k: usize| alpha[k] > 0.0 && alpha[k] < dual.upper(k);
    let margin = (0..alpha.len()).filter(|&k| members(dual, alpha, k)).count();
    if margin == 0 || margin > EXACT_MAX {
        return;
    }
    scratch.clear();
    scratch.resize(margin * margin + margin, 0.0);
    let (matrix, step) = scratch.split_at_mut(margin * margin);
    let inside = || (0..alpha.len()).filter(|&k| members(dual, alpha, k));
    cholesky::factor_regularized(matrix, margin, |matrix| {
        for (row, k) in inside().enumerate() {
            for (column, l) in inside().enumerate().take(row + 1) {
                matrix[row * margin + column] = dual.entry(k, l);
            }
        }
    });
    for (step, k) in step.iter_mut().zip(inside()) {
        *step = dual.slack(k);
    }
    cholesky::solve(matrix, margin, step);

    let mut scale = 1.0f64;
    for (step, k) in step.iter().zip(inside()) {
        let room = if *step > 0.0 { dual.upper(k) - alpha[k] } else { -alpha[k] };
        if step.abs() > room.abs() {
            scale = scale.min(room / step);
        }
    }
    let mut steps = step.iter();
    for k in 0..alpha.len() {
        if members(dual, alpha, k) {
            let step = steps.next().expect("one step for each point on the margin");
            alpha[k] = (alpha[k] + scale * step).clamp(0.0, dual.upper(k));
        }
    }
}

/// Whether every point fulfils its optimality condition up to rounding.
fn is_optimal(dual: &impl Dual, alpha: &[f64]) -> bool {
    let (mut worst, mut largest) = (0.0f64, 1.0f64);
    for (k, &alpha) in alpha.iter().enumerate() {
        let slack = dual.slack(k);
        let error = if alpha <= 0.0 {
            slack.max(0.0)
        } else if alpha >= dual.upper(k) {
            (-slack).max(0.0)
        } else {
            slack.abs()
        };
        worst = worst.max(error);
        largest = largest.max(slack.abs());
    }
    worst <= SLACK_ERROR_MAX * largest
}
