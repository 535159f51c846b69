//! What everyone can know of a private agent's models without looking at one: for home models ([`crate::personal::home`]).

use super::noise::{PrivateCoordinateDescentConfig, PrivateDescent};
use super::update::alpha;
use crate::personal::home::Broadcast;
use sottovoce_privacy::sensitivity::{self, Norm};
use sottovoce_privacy::{Event, Plan};

impl PrivateDescent {
    /// What everyone can know of the broadcast of an agent with this many points that followed `plan`, its data unseen.
    ///
    /// Taken to be gradient steps of length a = alpha mu c on a quadratic with the curvature h of features that point everywhere
    /// alike: T of them go 1 - (1 - a h)^T of the way, and of the noise of step t the factor (1 - a h)^(T-1-t) is left. That
    /// neighbours average away some of each other's noise is not counted.
    pub fn broadcast(&self, points: usize, regularization: f64, confidence: f64, plan: &Plan) -> Broadcast {
        if points == 0 {
            return Broadcast { points, scale: 1.0, variance: f64::INFINITY, length_squared: 1.0 };
        }
        let PrivateCoordinateDescentConfig { dimension, clip, norm, feature_bound, l1_features, .. } = self.config;
        let p = dimension as f64;
        // Points that point everywhere alike: |x|_1 = sqrt(2 p / pi) |x|_2. A bound on |x|_1 makes them that much shorter.
        let l1 = libm::sqrt(2.0 * p / core::f64::consts::PI);
        let length = if l1_features { feature_bound / l1.max(1.0) } else { feature_bound };
        // At theta = 0 slopes are 1/2, and what is longer than the clip is cut.
        let gradient = 0.5 * length * if norm == Norm::L1 { l1 } else { 1.0 };
        let cut = (clip / gradient).min(1.0);
        let sensitivity = sensitivity::of_clipped_mean(clip, points);
        let weight = self.config.trade_off * confidence;
        let step = alpha(weight, self.smoothness + 2.0 * regularization) * self.config.trade_off * confidence;
        let loss_curvature = self.config.loss.smoothness().unwrap_or(0.0);
        let curvature = loss_curvature * length * length / p + 2.0 * regularization;
        let (mut left, mut variance) = (1.0, 0.0);
        for event in plan.steps() {
            let noise = match *event {
                Event::Gaussian { noise_multiplier } => noise_multiplier * sensitivity,
                Event::Laplace { noise_multiplier } => core::f64::consts::SQRT_2 * noise_multiplier * sensitivity,
                Event::GammaNorm { noise_multiplier } => {
                    // A warm start: |b|^2 is p (p + 1) scale^2 on average, and models are brought back to the radius.
                    if let (Some(warm), Some(local)) = (self.config.warm, &self.local) {
                        let scale = noise_multiplier * local.sensitivity(points, dimension);
                        variance = ((p + 1.0) * scale * scale).min(warm.radius * warm.radius / p);
                    }
                    continue;
                }
                _ => continue,
            };
            let keep = 1.0 - step * curvature;
            left *= keep;
            variance = keep * keep * variance + step * step * noise * noise;
        }
        let scale = 1.0 / ((1.0 - left) * cut).max(1e-12);
        Broadcast { points, scale, variance: scale * scale * variance, length_squared: length * length }
    }
}
