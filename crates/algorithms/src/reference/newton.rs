//! Newton's method for convex functions, damped by a line search, with exact or conjugate-gradient directions.
//!
//! Stops when the Newton step, which estimates the distance to the minimum, is at the rounding error of the
//! model, or when rounding errors in the gradient no longer let it shrink. For a loss whose slope has kinks this
//! is the semismooth Newton method: any generalized Hessian gives a descent direction, and the line search makes it
//! converge.

use crate::vector::{dot, largest, norm};

/// More steps than any problem here needs: to the minimum.
pub(crate) const STEPS_MAX: usize = 200;
/// A step this small, relative to the model, is the last one.
const STEP_MIN: f64 = 1e-13;
/// The fraction of the decrease promised by the slope that a step must bring.
const DECREASE_MIN: f64 = 1e-4;
/// Halvings of a step before giving up.
const HALVINGS_MAX: usize = 60;
/// Slices of a problem's length that [`minimize`] needs.
pub(crate) const WORK: usize = 4;

/// A convex function to be minimized.
pub(crate) trait Smooth {
    /// The value at `at`; the gradient into `gradient`.
    fn value_and_gradient(&mut self, at: &[f64], gradient: &mut [f64]) -> f64;

    /// Solves H(at) d = -gradient into `out`, to a residual of `accuracy` relative to the gradient, or better.
    fn direction(&mut self, at: &[f64], gradient: &[f64], accuracy: f64, out: &mut [f64]);
}

/// Moves `theta` towards the minimum of `f` by so many steps, of which none raises `f`, or to it; uses [`WORK`] slices of its length.
pub(crate) fn minimize(f: &mut impl Smooth, theta: &mut [f64], steps: usize, work: &mut [f64]) {
    let n = theta.len();
    let (mut gradient, rest) = work.split_at_mut(n);
    let (direction, rest) = rest.split_at_mut(n);
    let (next, rest) = rest.split_at_mut(n);
    let mut next_gradient = &mut rest[..n];

    let mut value = f.value_and_gradient(theta, gradient);
    let first = norm(gradient);
    let mut idle = 0;
    for _ in 0..steps {
        let size = norm(gradient);
        if size == 0.0 {
            return;
        }
        // Directions become exact as fast as the gradient shrinks, which keeps convergence quadratic.
        let accuracy = (size / first).clamp(1e-10, 0.1);
        f.direction(theta, gradient, accuracy, direction);
        let slope = dot(gradient, direction);
        if slope.is_nan() || slope >= 0.0 {
            return;
        }
        let mut scale = 1.0;
        let mut accepted = None;
        for _ in 0..HALVINGS_MAX {
            for ((next, theta), direction) in next.iter_mut().zip(&*theta).zip(&*direction) {
                *next = theta + scale * direction;
            }
            let next_value = f.value_and_gradient(next, next_gradient);
            let next_slope = dot(next_gradient, direction);
            // Near the minimum the value cannot tell points apart; then the slope at the new point decides.
            let indistinct = next_value <= value + 1e-13 * value.abs() && next_slope.abs() <= 0.9 * slope.abs();
            if next_value <= value + DECREASE_MIN * scale * slope || indistinct {
                accepted = Some(next_value);
                break;
            }
            scale *= 0.5;
        }
        let Some(next_value) = accepted else { return };
        let step = scale * largest(direction);
        theta.copy_from_slice(next);
        std::mem::swap(&mut gradient, &mut next_gradient);
        if step <= STEP_MIN * (1.0 + largest(theta)) && accuracy <= 1e-2 {
            return;
        }
        let gained = value - next_value > 1e-14 * value.abs() || norm(gradient) < 0.5 * size;
        idle = if gained { 0 } else { idle + 1 };
        if idle >= 3 {
            return;
        }
        value = next_value;
    }
}

/// Slices of a problem's length that [`conjugate_gradients`] needs.
pub(crate) const CG_WORK: usize = 4;

/// Solves A x = b for a symmetric positive definite `apply`, from x = 0, until the residual is `accuracy` times b in
/// the norm of the preconditioner.
pub(crate) fn conjugate_gradients(
    mut apply: impl FnMut(&[f64], &mut [f64]),
    mut precondition: impl FnMut(&[f64], &mut [f64]),
    b: &[f64],
    accuracy: f64,
    steps_max: usize,
    x: &mut [f64],
    work: &mut [f64],
) {
    let n = b.len();
    let (residual, rest) = work.split_at_mut(n);
    let (preconditioned, rest) = rest.split_at_mut(n);
    let (search, rest) = rest.split_at_mut(n);
    let image = &mut rest[..n];

    x.fill(0.0);
    residual.copy_from_slice(b);
    precondition(residual, preconditioned);
    search.copy_from_slice(preconditioned);
    let mut size = dot(residual, preconditioned);
    let enough = accuracy * accuracy * size;
    for _ in 0..steps_max {
        // Zero, or below zero by rounding: nothing is left to gain.
        if size <= enough || size <= 0.0 {
            return;
        }
        apply(search, image);
        let curvature = dot(search, image);
        if curvature.is_nan() || curvature <= 0.0 {
            return;
        }
        let step = size / curvature;
        for k in 0..n {
            x[k] += step * search[k];
            residual[k] -= step * image[k];
        }
        precondition(residual, preconditioned);
        let next = dot(residual, preconditioned);
        let keep = next / size;
        for k in 0..n {
            search[k] = preconditioned[k] + keep * search[k];
        }
        size = next;
    }
}
