//! The local-DP baseline (Bellet et al. 2018, supplement): every agent releases a noisy copy of its data, once, and learns from that
//! alone.
//!
//! x~ = x + noise with sensitivity 2 R, y~ = y or -y by randomized response; theta_i = argmin L_i on the copy.
//!
//! Anyone could do anything with the copies. They are near useless for learning, which is what the baseline shows.
//!
//! # Privacy
//! One record replaced by another moves one row of features, by at most 2 R in the mechanism's norm, and at most one label. So
//! the whole copy is two steps of the plan, however many records there are: features, then labels. Proof:
//! `crates/privacy/proofs/input-perturbation.md`.
//!
//! Differs from the paper: it does not say how it splits epsilon; here the plan does (half and half by default).

use crate::config::{ConfigError, moderate};
use crate::{Loss, Points, Shard, reference::local::solitary_model, saved};
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Neighbours, NoLetter};
use sottovoce_privacy::{Exhausted, Public, sensitivity::clip_limit};

/// The hyper-parameters, before they are checked.
///
/// | name | symbol | range | default |
/// |---|---|---|---|
/// | dimension | p | 1 and above | the data's |
/// | loss | l | for classes | logistic |
/// | feature-bound | R, in the norm of the plan's first step | above 0, at most 1e100 | 1 with `normalize` |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct InputPerturbationConfig {
    /// p.
    pub dimension: usize,
    /// l.
    pub loss: Loss,
    /// R.
    pub feature_bound: f64,
}

/// Everyone releases a noisy copy of its data.
#[derive(Clone, Copy, Debug)]
pub struct InputPerturbation {
    config: InputPerturbationConfig,
}

impl InputPerturbation {
    /// Checks the hyper-parameters.
    pub fn new(config: InputPerturbationConfig) -> Result<Self, ConfigError> {
        moderate("feature-bound", config.feature_bound)?;
        if !config.loss.is_classification() {
            return Err(ConfigError {
                field: "loss",
                value: "squared".to_owned(),
                accepted: "a loss for classes: the labels are told by randomized response",
            });
        }
        Ok(InputPerturbation { config })
    }
}

/// Nothing but the post.
#[derive(Clone, Copy, Debug)]
pub struct State;

impl Algorithm for InputPerturbation {
    type Data<'d> = Shard<'d>;
    type State = State;
    type Letter<'a> = NoLetter;

    fn post_len(&self) -> usize {
        self.config.dimension
    }

    fn start(&self, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<State, Exhausted> {
        if cx.peers.is_empty() || shard.points.is_empty() {
            return Ok(State);
        }
        let InputPerturbationConfig { dimension, feature_bound, .. } = self.config;
        let features = shard.points.mended().unwrap_or_else(|| shard.points.features.into());
        // An answer is one of two: whatever else a label is told to be, it counts as the class that is not 1.
        let class = |label: &f64| if *label > 0.0 { 1.0 } else { -1.0 };
        let (mut features, mut labels): (_, Vec<f64>) = (features, shard.points.labels.iter().map(class).collect());
        if let Some(step) = cx.gate.next() {
            for row in features.chunks_exact_mut(dimension) {
                let factor = clip_limit(step.norm(), feature_bound, row).min(1.0);
                row.iter_mut().for_each(|value| *value *= factor);
            }
        }
        // PRIVACY: one record is one row, of norm at most R: replacing it moves the table by at most 2 R. The factor above is
        // exact to a relative 2^-52 in each coordinate, which the margin covers.
        let features = cx.gate.release(&mut features, 2.0 * feature_bound * (1.0 + 1e-12))?;
        // PRIVACY: one record is one label.
        let labels = cx.gate.release(&mut labels, 1.0)?;
        let copy = features.and(labels);
        let Shard { loss, regularization, confidence, .. } = shard;
        let public = Public::declare((dimension, loss, regularization, confidence));
        let model = copy.with_public(public, |(dimension, loss, regularization, confidence), (features, labels)| {
            let points = Points { dimension, features, labels };
            let model = solitary_model(&Shard { points, loss, regularization, confidence });
            // Numbers run out only where the noise is beyond all use.
            if model.iter().all(|value| value.is_finite()) { model } else { vec![0.0; dimension] }
        });
        cx.outbox.post(model.as_ref().map(|model| &**model));
        Ok(State)
    }

    fn on_wake(&self, _me: &mut State, _shard: Shard<'_>, _cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        Ok(Activity { moved: 0.0 })
    }

    fn save(&self, _me: &State, out: &mut Vec<u8>) {
        saved::write(&(), out);
    }

    fn resume(
        &self,
        saved: &[u8],
        _neighbours: Neighbours,
        _shard: Shard<'_>,
        _cx: &mut Cx<'_>,
    ) -> Result<State, CannotResume> {
        let () = saved::read(saved)?;
        Ok(State)
    }

    fn model<'a>(&self, _me: &'a State, posted: &'a [f64]) -> &'a [f64] {
        posted
    }
}
