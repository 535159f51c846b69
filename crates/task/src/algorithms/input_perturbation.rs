//! The local-DP baseline: each agent alone, on a noisy copy of its data.

use super::{Access, Visitor, refused};
use crate::error::Mistake;
use crate::loaded::Loaded;
use crate::task::{Description, Leaves};
use sottovoce_algorithms::personal::baseline::{InputPerturbation, InputPerturbationConfig};
use sottovoce_privacy::{Event, Plan};

/// What everybody may ask about it.
pub const DESCRIPTION: Description = Description {
    name: "input-perturbation",
    sentence: "nothing: it has released a noisy copy of its points, once, and learned from that",
    leaves: Leaves::NoisyData,
    acts: false,
    plan: |_, privacy, _| {
        // PRIVACY: half for the labels; the features get what that leaves.
        let labels = Event::RandomizedResponse { epsilon: privacy.epsilon / 2.0 };
        let steps = |noise| vec![privacy.event(noise), labels];
        Plan::with_least_noise(steps, privacy.epsilon, privacy.delta, privacy.accountant.accountant())
    },
    ..Description::PLAIN
};

pub(super) fn build<V: Visitor>(loaded: &Loaded, visitor: V) -> Result<V::Output, Mistake> {
    let config = InputPerturbationConfig {
        dimension: loaded.problem.dimension(),
        loss: loaded.problem.loss,
        feature_bound: loaded.task.privacy.expect("reading the task has checked it").clip,
    };
    Ok(visitor.visit(&InputPerturbation::new(config).map_err(refused(loaded))?, Access::to_points()))
}
