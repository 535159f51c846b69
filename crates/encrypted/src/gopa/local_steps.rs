//! What a member contributes where sums learn one model for all (federated averaging: McMahan et al. 2017).
//!
//! ```text
//! theta_u <- theta;   so many times: theta_u <- theta_u - gamma [ (1/m_u) sum over its points of grad l(theta_u; x, y) + 2 lambda theta_u ]
//! contribution: theta_u - theta, brought back to the norm C;   theta <- theta + sum / number of those who finished
//! ```
//!
//! Differs from the paper: steps are on all of a member's points, every member counts alike, and all members take part in every round.
//!
//! # Privacy
//! All of a member's points may be replaced: that moves its contribution by at most 2 C, whatever they are.

use sottovoce_algorithms::token::walk_sgd::mean_gradient;
use sottovoce_algorithms::vector::{add_scaled, norm};
use sottovoce_algorithms::{Loss, Points};

/// More than what rounding adds to a norm of a million numbers, relatively.
const ROUNDING: f64 = 1e-9;

/// The hyper-parameters.
///
/// | name | symbol | range | default |
/// |---|---|---|---|
/// | loss | l | logistic, squared, smoothed hinge | the task's |
/// | step | gamma | above 0 | the task's |
/// | count | | 1 and above | 1 |
/// | regularization | lambda | 0 and above | 0 |
/// | clip | C | above 0 | the task's |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LocalSteps {
    /// The loss.
    pub loss: Loss,
    /// The constant size of a step.
    pub step: f64,
    /// How many.
    pub count: u32,
    /// The square of the model is added to the objective so often.
    pub regularization: f64,
    /// The largest norm of a contribution.
    pub clip: f64,
}

impl LocalSteps {
    /// Whether these are steps.
    pub fn are_usable(&self) -> bool {
        let above_zero = |value: f64| value.is_finite() && value > 0.0;
        let lambda = self.regularization;
        above_zero(self.step) && above_zero(self.clip) && self.count > 0 && lambda.is_finite() && lambda >= 0.0
    }

    /// How far contributions of two worlds can be apart, in the L2 norm.
    pub(super) fn reach(&self) -> f64 {
        2.0 * self.clip * (1.0 + ROUNDING)
    }

    /// How far the steps take a model, within the clip.
    pub fn update(&self, points: Points<'_>, theta: &[f64]) -> Vec<f64> {
        let (mut own, mut gradient) = (theta.to_vec(), vec![0.0; theta.len()]);
        for _ in 0..self.count {
            mean_gradient(self.loss, None, points, &own, &mut gradient);
            let shrink = 1.0 - 2.0 * self.regularization * self.step;
            own.iter_mut().for_each(|own| *own *= shrink);
            add_scaled(&mut own, -self.step, &gradient);
        }
        let mut moved: Vec<f64> = own.iter().zip(theta).map(|(own, theta)| own - theta).collect();
        let length = norm(&moved);
        // What has gone beyond all numbers says nothing.
        let scale = if length.is_finite() { (self.clip / length).min(1.0) } else { 0.0 };
        moved.iter_mut().for_each(|moved| *moved = if scale > 0.0 { *moved * scale } else { 0.0 });
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_is_what_steps_do_and_never_longer_than_the_clip() {
        let (features, labels) = ([1.0, 0.0, 0.0, 2.0], [1.0, 3.0]);
        let points = Points { dimension: 2, features: &features, labels: &labels };
        let steps = LocalSteps { loss: Loss::Squared, step: 0.1, count: 1, regularization: 0.0, clip: 100.0 };
        let mut gradient = [0.0; 2];
        mean_gradient(Loss::Squared, None, points, &[0.5, 0.0], &mut gradient);
        let update = steps.update(points, &[0.5, 0.0]);
        assert!(update.iter().zip(gradient).all(|(update, gradient)| (update + 0.1 * gradient).abs() < 1e-15));
        let twice = LocalSteps { count: 2, ..steps }.update(points, &[0.5, 0.0]);
        let second = steps.update(points, &[0.5 + update[0], update[1]]);
        assert!((0..2).all(|k| (twice[k] - update[k] - second[k]).abs() < 1e-12));
        let short = LocalSteps { clip: 0.01, ..steps };
        assert!((norm(&short.update(points, &[0.5, 0.0])) - 0.01).abs() < 1e-12);
        // Steps that are far too long leave all numbers, and say nothing then.
        let wild = LocalSteps { step: 1e200, count: 9, ..steps };
        assert_eq!(wild.update(points, &[0.5, 0.0]), [0.0, 0.0]);
        let shrunk = LocalSteps { regularization: 0.5, step: 0.1, ..steps };
        let plain = steps.update(points, &[0.5, 0.0]);
        assert!((shrunk.update(points, &[0.5, 0.0])[0] - plain[0] + 0.05).abs() < 1e-12);
        assert!(steps.are_usable() && !LocalSteps { step: 0.0, ..steps }.are_usable());
        assert!(!LocalSteps { clip: f64::NAN, ..steps }.are_usable());
    }
}
