//! The local model of a private warm start: a number of gradient steps that the task alone decides.
//!
//! F(theta) = (1/m) sum_k l(theta; x_k, y_k) + lambda |theta|^2,   |x_k|_2 <= R
//!
//! With z_k = x_k / R and phi = R theta the same function is one of points within the unit ball, whose curvature lies between sigma = 2
//! lambda / R^2 and sigma + beta. From phi = 0, k times:
//!
//! phi <- phi - eta ( (1/m) sum_k l'(phi.z_k, y_k) z_k + sigma phi ),   eta = 2 / (beta + 2 sigma)
//!
//! k is chosen from sigma eta, so that all but [`LEFT`] of the way to the minimum is gone, and is at most [`STEPS_MAX`].
//!
//! # Privacy
//! Each step is a contraction by 1 - eta sigma, and one record moves it by at most 2 eta / m. So k steps move by at most 2 eta / m times
//! min(k, 1 / (eta sigma)), however far from the minimum they end, which is never more than the minimum itself moves. There is
//! nothing to wait for and nothing that can fail: how many steps there are, and whether there are any, reads no record. Proof:
//! `crates/privacy/proofs/private-coordinate-descent.md`.

use crate::config::ConfigError;
use crate::vector::{add_scaled, dot};
use crate::{Loss, Points};
use sottovoce_privacy::sensitivity::{Norm, clip_limit};

/// The part of the way from zero to the minimum that may be left. Noise is far larger.
const LEFT: f64 = 1e-6;

/// No warm start takes more steps. Where the bound on features is so large, or lambda so small, that the minimum is further away, the
/// steps end before it.
const STEPS_MAX: f64 = 10_000.0;

/// Sizes of 2 lambda / R^2 and of R with which all of this is far from the ends of floating point.
const STRENGTH: std::ops::RangeInclusive<f64> = 1e-30..=1e30;
const BOUND: std::ops::RangeInclusive<f64> = 1e-60..=1e60;

/// A relative margin for the rounding of eta, of the factors of points and of the sensitivity itself.
const MARGIN: f64 = 1e-9;

/// 2^-53, the unit roundoff.
const UNIT: f64 = f64::EPSILON / 2.0;

/// How the local model of a warm start is computed: from public numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LocalSteps {
    loss: Loss,
    /// beta.
    curvature: f64,
    /// R.
    bound: f64,
    /// sigma.
    strength: f64,
    /// eta.
    length: f64,
    /// k.
    count: u32,
}

impl LocalSteps {
    /// For a loss with slopes of at most one, which is smooth; all numbers are above zero.
    pub fn new(loss: Loss, feature_bound: f64, regularization: f64) -> Result<Self, ConfigError> {
        let refuse = |field, value: f64, accepted| Err(ConfigError { field, value: value.to_string(), accepted });
        let (Some(curvature), Some(_)) = (loss.smoothness(), loss.slope_bound()) else {
            return Err(ConfigError {
                field: "warm",
                value: "given with the squared loss".to_owned(),
                accepted: "a loss with bounded slopes (logistic or smoothed-hinge), or start = \"zero\"",
            });
        };
        let strength = 2.0 * (regularization / feature_bound) / feature_bound;
        if !BOUND.contains(&feature_bound) {
            return refuse("feature-bound", feature_bound, "a number from 1e-60 to 1e60, with a warm start,");
        }
        if !STRENGTH.contains(&strength) {
            let accepted = "a number such that 2 x regularization / feature-bound^2 is from 1e-30 to 1e30";
            return refuse("warm.regularization", regularization, accepted);
        }
        let length = 2.0 / (curvature * (1.0 + MARGIN) + 2.0 * strength) * (1.0 - MARGIN);
        // (1 - eta sigma)^k = LEFT
        let count = (libm::log(LEFT) / libm::log1p(-length * strength)).ceil().clamp(1.0, STEPS_MAX) as u32;
        Ok(LocalSteps { loss, curvature, bound: feature_bound, strength, length, count })
    }

    /// How far the model of an agent with so many records can move in L2 when one of them is replaced, all that rounds included.
    pub fn sensitivity(&self, records: usize, dimension: usize) -> f64 {
        let LocalSteps { curvature, bound, strength, length, .. } = *self;
        let (m, p) = (records as f64, dimension as f64);
        let steps = f64::from(self.count).min(1.0 / (length * strength));
        // |phi| is at most this, rounding included: a step from zero is eta long at most, and steps contract.
        let reach = 2.0 * length * steps;
        // What one step rounds: dot products of p terms, slopes, a sum of m gradients, the regularizer and the step itself.
        let rounded = 4.0 * UNIT * (length * (curvature * (p + 8.0) * reach + m + 48.0) + 4.0 * reach) + 1e-290;
        let moved = (2.0 * length / m + 2.0 * rounded) * steps + 4.0 * UNIT * reach;
        moved / bound * (1.0 + MARGIN)
    }

    /// theta after k steps on these points, which are all finite.
    pub fn model(&self, points: Points<'_>) -> Vec<f64> {
        let LocalSteps { loss, bound, strength, length, .. } = *self;
        let p = points.dimension;
        let features = self.scaled(points);
        // Classes whatever they are told to be: slopes of another label could be as long as it is.
        let labels: Vec<f64> = points.labels.iter().map(|&label| if label > 0.0 { 1.0 } else { -1.0 }).collect();
        let share = 1.0 / points.len() as f64;
        let mut phi = vec![0.0; p];
        let mut gradient = vec![0.0; p];
        for _ in 0..self.count {
            gradient.fill(0.0);
            for (z, &label) in features.chunks_exact(p).zip(&labels) {
                add_scaled(&mut gradient, share * loss.slope(dot(&phi, z), label), z);
            }
            add_scaled(&mut gradient, strength, &phi);
            add_scaled(&mut phi, -length, &gradient);
        }
        phi.iter_mut().for_each(|value| *value /= bound);
        phi
    }

    /// z_k = x_k / R, or shorter where |x_k|_2 is beyond R: the sensitivity is that of points within the unit ball.
    fn scaled(&self, points: Points<'_>) -> Vec<f64> {
        let mut features = points.features.to_vec();
        for row in features.chunks_exact_mut(points.dimension) {
            let factor = (1.0 / self.bound).min(clip_limit(Norm::L2, 1.0, row));
            row.iter_mut().for_each(|value| *value *= factor);
        }
        features
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::local_gradient;
    use crate::testing::normals;
    use crate::{Shard, vector::norm};
    use sottovoce_core::Coin;

    const LOSSES: [Loss; 2] = [Loss::Logistic, Loss::SmoothedHinge];

    #[test]
    fn where_there_are_steps_enough_the_model_is_the_minimum() {
        let mut coin = Coin::new(31, 0, 0);
        for loss in LOSSES {
            for (bound, regularization) in [(1.0, 1.0), (1.0, 0.05), (30.0, 40.0), (1e-3, 1e-7)] {
                let steps = LocalSteps::new(loss, bound, regularization).expect("good parameters");
                assert!(f64::from(steps.count) < STEPS_MAX);
                let (mut features, p) = (normals(&mut coin, 40), 4);
                for row in features.chunks_exact_mut(p) {
                    let length = norm(row);
                    row.iter_mut().for_each(|x| *x *= bound / length);
                }
                let labels: Vec<f64> = (0..10).map(|k| if k % 3 == 0 { 1.0 } else { -1.0 }).collect();
                let points = Points { dimension: p, features: &features, labels: &labels };
                let (mut gradient, theta) = (vec![0.0; p], steps.model(points));
                local_gradient(&Shard { points, loss, regularization, confidence: 1.0 }, &theta, &mut gradient);
                // The gradient at zero is at most R long.
                assert!(norm(&gradient) <= 2.0 * LEFT * bound, "{loss:?} {bound} {regularization}: {gradient:?}");
            }
        }
    }

    #[test]
    fn the_number_of_steps_and_the_sensitivity_follow_from_public_numbers_and_are_always_good() {
        for loss in LOSSES {
            for bound in [1e-60, 1e-6, 1.0, 1e6, 1e60] {
                for strength in [1e-30, 1e-12, 1.0, 1e12, 1e30] {
                    let regularization = 0.5 * strength * 1.000001 * bound * bound;
                    let Ok(steps) = LocalSteps::new(loss, bound, regularization) else { continue };
                    for (m, p) in [(1, 1), (100, 50), (1 << 32, 1 << 20)] {
                        let sensitivity = steps.sensitivity(m, p);
                        assert!(sensitivity.is_finite() && sensitivity > 0.0, "{steps:?} {m} {p}");
                        // That of the minimum, R / (m lambda), is never below but for rounding.
                        let minimum = bound / (m as f64 * regularization);
                        assert!(m > 100 || sensitivity <= minimum * (1.0 + 1e-5), "{sensitivity} {minimum} {steps:?}");
                    }
                }
            }
        }
        for (bound, regularization) in [(1e61, 1e100), (1e-61, 1e-100), (1.0, 1e-31), (1e20, 1.0), (1e-20, 1.0)] {
            assert!(LocalSteps::new(Loss::Logistic, bound, regularization).is_err(), "{bound} {regularization}");
        }
        assert_eq!(LocalSteps::new(Loss::Squared, 1.0, 1.0).expect_err("no bound on slopes").field, "warm");
    }

    /// Neighbours that are as far apart as they can be, with bounds and lambda that no solver could finish with.
    #[test]
    fn a_record_moves_the_model_by_at_most_the_sensitivity_however_far_it_is_from_the_minimum() {
        let mut coin = Coin::new(32, 0, 0);
        let mut most = 0.0f64;
        for trial in 0..300 {
            let loss = LOSSES[trial % 2];
            let (m, p) = (1 + coin.below(6), 1 + coin.below(4));
            let bound = [1e-3, 1.0, 1e3, 1e6][coin.below(4)];
            let strength = [1e-12, 1e-4, 0.1, 10.0][coin.below(4)];
            let steps = LocalSteps::new(loss, bound, 0.5 * strength * bound * bound).expect("good parameters");
            let mut features: Vec<f64> = normals(&mut coin, m * p).iter().map(|x| x * bound).collect();
            let mut labels: Vec<f64> = (0..m).map(|_| if coin.below(2) == 0 { 1.0 } else { -1.0 }).collect();
            let model = |features: &[f64], labels: &[f64]| steps.model(Points { dimension: p, features, labels });
            let here = model(&features, &labels);
            let hostile = [0.0, 1e75, -1e75, 1e308, -bound, f64::MIN_POSITIVE / 8.0][coin.below(6)];
            features[0] = hostile;
            labels[0] = [-labels[0], 1e300, -0.5, 0.0][coin.below(4)];
            let there = model(&features, &labels);
            assert!(there.iter().all(|value| value.is_finite()), "{there:?}");
            let moved = norm(&here.iter().zip(&there).map(|(a, b)| a - b).collect::<Vec<_>>());
            let sensitivity = steps.sensitivity(m, p);
            assert!(moved <= sensitivity, "{steps:?} m={m} p={p}: {moved} above {sensitivity}");
            most = most.max(moved / sensitivity);
        }
        assert!(most > 0.5, "some pair comes close: {most}");
    }
}
