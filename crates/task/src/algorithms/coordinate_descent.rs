//! Collaborative learning by coordinate descent (Bellet et al. 2018): exact or private, over a graph that is known or learned.

use super::learned_graph::alternating;
use super::{Access, Visitor, refused};
use crate::error::Mistake;
use crate::loaded::Loaded;
use crate::plan;
use crate::task::{Description, GraphSource, Learned, LearnedDefaults, Leaves, Mechanism, Normalize, Privacy};
use sottovoce_algorithms::personal::descent::{
    CoordinateDescent, CoordinateDescentConfig, DescentByLetters, PrivateCoordinateDescent,
    PrivateCoordinateDescentConfig, PrivateDescentByLetters, PrivateDescentByLettersConfig,
};
use sottovoce_algorithms::personal::graph::AlternatingState;
use sottovoce_algorithms::{Loss, objective};

/// What everybody may ask about it.
pub const DESCRIPTION: Description = Description {
    name: "coordinate-descent",
    sentence: "one gradient step on its own part of the joint objective, then tells all neighbours; with `[privacy]` the gradient is \
               clipped and noisy",
    leaves: Leaves::Updates,
    // Losses are means and not logs of sums: tuned on synthetic linear tasks of 10 and 50 features. With a trade-off of 1 losses weigh so
    // little that everyone agrees with everyone.
    learned_graph: Some(LearnedDefaults { trade_off: 5.0, sparsity: 0.1 }),
    rate: Some(objective::proposition_1_rate),
    refuses: |wish| {
        let what = "model.loss = \"hinge\" is not smooth, so coordinate-descent cannot use it; accepted: model.loss = \
                    \"smoothed-hinge\", or algorithm = \"admm\"";
        (wish.model.loss == Loss::Hinge).then(|| ("model.loss", what.to_owned()))
    },
    plan: plan::of_updates,
    ..Description::PLAIN
};

pub(super) fn build<V: Visitor>(loaded: &Loaded, visitor: V) -> Result<V::Output, Mistake> {
    let (problem, task) = (&loaded.problem, &loaded.task);
    match (&task.graph.source, &task.privacy) {
        (GraphSource::Learned(learned), Some(privacy)) => build_private_learned(loaded, learned, privacy, visitor),
        (_, Some(privacy)) => Ok(visitor.visit(&private_descent(loaded, privacy)?, Access::to_points())),
        (GraphSource::Learned(learned), None) => {
            let learner = DescentByLetters::new(problem.loss, problem.trade_off).map_err(refused(loaded))?;
            let learner = learner.with_step(learned.model_step.into());
            let access = Access { links: Some(AlternatingState::links), ..Access::to_points() };
            Ok(visitor.visit(&alternating(learner, loaded, learned)?, access))
        }
        (_, None) => {
            let config = CoordinateDescentConfig {
                dimension: problem.dimension(),
                loss: problem.loss,
                trade_off: problem.trade_off,
                start: task.model.start,
            };
            Ok(visitor.visit(&CoordinateDescent::new(config).map_err(refused(loaded))?, Access::to_points()))
        }
    }
}

fn build_private_learned<V: Visitor>(
    loaded: &Loaded,
    learned: &Learned,
    privacy: &Privacy,
    visitor: V,
) -> Result<V::Output, Mistake> {
    let (model_turns, _) = plan::turns(&loaded.task).expect("a learned graph has turns");
    let loss_bound = privacy.losses.map(|losses| losses.bound);
    let config = PrivateDescentByLettersConfig { loss_bound, updates: privacy.updates, model_turns };
    let learner = PrivateDescentByLetters::new(private_descent(loaded, privacy)?, config).map_err(refused(loaded))?;
    let access = Access {
        links: Some(AlternatingState::links),
        heard: Some(|me: &AlternatingState<PrivateDescentByLetters>| me.learner().neighbours().collect()),
        ..Access::to_points()
    };
    Ok(visitor.visit(&alternating(learner, loaded, learned)?, access))
}

/// Private coordinate descent, as a private task sets it.
pub fn private_descent(loaded: &Loaded, privacy: &Privacy) -> Result<PrivateCoordinateDescent, Mistake> {
    let (problem, task) = (&loaded.problem, &loaded.task);
    let config = PrivateCoordinateDescentConfig {
        dimension: problem.dimension(),
        loss: problem.loss,
        trade_off: problem.trade_off,
        clip: privacy.clip,
        norm: privacy.mechanism.norm(),
        feature_bound: privacy.feature_bound(task),
        l1_features: match task.data.normalize {
            Normalize::L1 => true,
            Normalize::L2 => false,
            Normalize::None => privacy.mechanism == Mechanism::Laplace,
        },
        warm: privacy.warm.map(|warm| warm.start),
    };
    PrivateCoordinateDescent::new(config).map_err(refused(loaded))
}
