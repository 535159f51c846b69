//! The algorithms, one line each.
//!
//! An [`Algorithm`] is no trait object, so a caller brings a [`Visitor`] that is generic over it.

use crate::error::Mistake;
use crate::load::Loaded;
use crate::task;
pub use sottovoce_algorithms::Shard;
use sottovoce_algorithms::personal::{
    ConfigError,
    admm::{Admm, AdmmConfig, Inner, default_penalty},
    coordinate_descent::{CoordinateDescent, CoordinateDescentConfig},
    input_perturbation::{InputPerturbation, InputPerturbationConfig},
    local::Local,
    model_propagation::{ModelPropagation, ModelPropagationConfig},
    private_coordinate_descent::{PrivateCoordinateDescent, PrivateCoordinateDescentConfig},
};
use sottovoce_core::Algorithm;

/// Something to do with an algorithm, whichever it is.
pub trait Visitor {
    /// What comes out.
    type Output;

    /// Does it.
    fn visit<A: for<'d> Algorithm<Data<'d> = Shard<'d>>>(self, algorithm: &A) -> Self::Output;
}

/// Builds an algorithm for a task and shows it to the visitor.
pub fn with_algorithm<V: Visitor>(
    loaded: &Loaded,
    algorithm: task::Algorithm,
    visitor: V,
) -> Result<V::Output, Mistake> {
    let (problem, task) = (&loaded.problem, &loaded.task);
    let (dimension, loss, trade_off) = (problem.dimension(), problem.loss, problem.trade_off);
    let refused = |error: ConfigError| Mistake::file(&task.source, error.to_string());
    Ok(match (algorithm, task.privacy) {
        (task::Algorithm::CoordinateDescent, Some(privacy)) => visitor.visit(&private_descent(loaded, &privacy)?),
        (task::Algorithm::InputPerturbation, privacy) => {
            let feature_bound = privacy.expect("reading the task has checked it").clip;
            let config = InputPerturbationConfig { dimension, loss, feature_bound };
            visitor.visit(&InputPerturbation::new(config).map_err(refused)?)
        }
        (task::Algorithm::Local, _) => visitor.visit(&Local),
        (task::Algorithm::ModelPropagation, _) => {
            visitor.visit(&ModelPropagation::new(ModelPropagationConfig { trade_off }).map_err(refused)?)
        }
        (task::Algorithm::CoordinateDescent, None) => {
            let config = CoordinateDescentConfig { dimension, loss, trade_off, start: task.model.start };
            visitor.visit(&CoordinateDescent::new(config).map_err(refused)?)
        }
        (task::Algorithm::Admm(admm), _) => {
            let penalty = admm.penalty.unwrap_or_else(|| default_penalty(&problem.graph, trade_off));
            let inner = match admm.inner {
                task::Inner::Exact => Inner::Exact,
                task::Inner::Steps(steps) => Inner::Gradient { steps: steps as usize },
            };
            visitor.visit(&Admm::new(AdmmConfig { trade_off, penalty, inner }).map_err(refused)?)
        }
    })
}

/// Private coordinate descent, as a private task sets it.
pub fn private_descent(loaded: &Loaded, privacy: &task::Privacy) -> Result<PrivateCoordinateDescent, Mistake> {
    let (problem, task) = (&loaded.problem, &loaded.task);
    let config = PrivateCoordinateDescentConfig {
        dimension: problem.dimension(),
        loss: problem.loss,
        trade_off: problem.trade_off,
        clip: privacy.clip,
        norm: privacy.mechanism.norm(),
        feature_bound: privacy.feature_bound(task),
        l1_features: match task.data.normalize {
            task::Normalize::L1 => true,
            task::Normalize::L2 => false,
            task::Normalize::None => privacy.mechanism == task::Mechanism::Laplace,
        },
        warm: privacy.warm.map(|warm| warm.start),
    };
    PrivateCoordinateDescent::new(config).map_err(|error| Mistake::file(&task.source, error.to_string()))
}
