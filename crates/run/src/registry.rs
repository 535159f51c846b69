//! The algorithms, one line each.
//!
//! An [`Algorithm`] is no trait object, so a caller brings a [`Visitor`] that is generic over it.

use crate::learned::{Heard, joint};
pub use sottovoce_algorithms::Shard;
use sottovoce_algorithms::joint::LogDegree;
use sottovoce_algorithms::{
    ConfigError,
    personal::{
        admm::{Admm, AdmmConfig, Inner, default_penalty},
        baseline::{Alone, InputPerturbation, InputPerturbationConfig, Local},
        boosting::{Bits, FrankWolfe, FrankWolfeConfig},
        descent::{
            CoordinateDescent, CoordinateDescentConfig, DescentByLetters, PrivateCoordinateDescent,
            PrivateCoordinateDescentConfig, PrivateDescentByLetters, PrivateDescentByLettersConfig,
        },
        graph::{Alternating, GraphLearning, GraphLearningConfig, Learner, Links, State},
        propagation::{ModelPropagation, ModelPropagationConfig},
    },
};
use sottovoce_core::Algorithm;
use sottovoce_task::error::Mistake;
use sottovoce_task::load::Loaded;
use sottovoce_task::plan::turns;
use sottovoce_task::task;

/// Something to do with an algorithm, whichever it is.
pub trait Visitor {
    /// What comes out.
    type Output;

    /// Does it.
    fn visit<A: for<'d> Algorithm<Data<'d> = Shard<'d>>>(self, algorithm: &A, probe: Probe<A::State>) -> Self::Output;
}

/// What can be read from the states of some algorithms, besides their models.
pub struct Probe<S> {
    /// The weights that an agent has learned.
    pub links: Option<fn(&S) -> &Links>,
    /// Whom it works with now, the weights of the edges to them, and their models as far as it has heard them.
    pub heard: Option<for<'s> fn(&'s S) -> Heard<'s>>,
    /// The bits that it has sent, where papers count bits.
    pub bits: Option<fn(&S) -> Bits>,
}

impl<S> Default for Probe<S> {
    fn default() -> Self {
        Probe { links: None, heard: None, bits: None }
    }
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
        (task::Algorithm::CoordinateDescent, Some(privacy)) => {
            if let (task::GraphSource::Learned(learned), Some((model_turns, _))) = (&task.graph.source, turns(task)) {
                let loss_bound = privacy.losses.map(|losses| losses.bound);
                let config = PrivateDescentByLettersConfig { loss_bound, updates: privacy.updates, model_turns };
                let learner = PrivateDescentByLetters::new(private_descent(loaded, &privacy)?, config);
                let probe = Probe {
                    links: Some(State::links),
                    heard: Some(|me: &State<PrivateDescentByLetters>| me.learner().neighbours().collect()),
                    bits: None,
                };
                return Ok(visitor.visit(&alternating(learner.map_err(refused)?, loaded, learned)?, probe));
            }
            visitor.visit(&private_descent(loaded, &privacy)?, Probe::default())
        }
        (task::Algorithm::InputPerturbation, privacy) => {
            let feature_bound = privacy.expect("reading the task has checked it").clip;
            let config = InputPerturbationConfig { dimension, loss, feature_bound };
            visitor.visit(&InputPerturbation::new(config).map_err(refused)?, Probe::default())
        }
        (task::Algorithm::Local, _) if loaded.plain.is_some() => {
            visitor.visit(&Alone(frank_wolfe(loaded, 0.0)?), Probe::default())
        }
        (task::Algorithm::Local, _) => visitor.visit(&Local, Probe::default()),
        (task::Algorithm::FrankWolfe, _) => match &task.graph.source {
            task::GraphSource::Learned(learned) => {
                let algorithm = alternating(frank_wolfe(loaded, 0.0)?, loaded, learned)?;
                visitor.visit(
                    &algorithm,
                    Probe { links: Some(State::links), heard: None, bits: Some(|me| me.learner().bits()) },
                )
            }
            _ => {
                // Where every part of the gap is at most an n-th of the tolerance, their sum is at most the tolerance.
                let gap_min = task.run.tolerance.map_or(0.0, |tolerance| tolerance / problem.agents() as f64);
                visitor.visit(
                    &frank_wolfe(loaded, gap_min)?,
                    Probe { links: None, heard: None, bits: Some(<FrankWolfe as Algorithm>::State::bits) },
                )
            }
        },
        (task::Algorithm::ModelPropagation, _) => {
            let config = ModelPropagationConfig { trade_off };
            visitor.visit(&ModelPropagation::new(config).map_err(refused)?, Probe::default())
        }
        (task::Algorithm::CoordinateDescent, None) => {
            if let task::GraphSource::Learned(learned) = &task.graph.source {
                let learner = DescentByLetters::new(loss, trade_off).map_err(refused)?;
                let learner = learner.with_step(learned.model_step.into());
                let probe = Probe { links: Some(State::links), heard: None, bits: None };
                return Ok(visitor.visit(&alternating(learner, loaded, learned)?, probe));
            }
            let config = CoordinateDescentConfig { dimension, loss, trade_off, start: task.model.start };
            visitor.visit(&CoordinateDescent::new(config).map_err(refused)?, Probe::default())
        }
        (task::Algorithm::Admm(admm), _) => {
            let penalty = admm.penalty.unwrap_or_else(|| default_penalty(&problem.graph, trade_off));
            let inner = match admm.inner {
                task::Inner::Exact => Inner::Exact,
                task::Inner::Steps(steps) => Inner::Gradient { steps: steps as usize },
            };
            let config = AdmmConfig { trade_off, penalty, inner };
            visitor.visit(&Admm::new(config).map_err(refused)?, Probe::default())
        }
    })
}

/// Frank-Wolfe, as a task sets it.
fn frank_wolfe(loaded: &Loaded, gap_min: f64) -> Result<FrankWolfe, Mistake> {
    let task = &loaded.task;
    let boosting = task.boosting.expect("reading the task has filled it in");
    let config = FrankWolfeConfig {
        predictors: loaded.problem.dimension(),
        trade_off: loaded.problem.trade_off,
        radius: boosting.radius,
        step_size: boosting.step.into(),
        gap_min,
        local_rounds: boosting.local_rounds as usize,
    };
    FrankWolfe::new(config).map_err(|error| Mistake::file(&task.source, error.to_string()))
}

/// A learner by turns with the graph.
fn alternating<L: Learner>(
    learner: L,
    loaded: &Loaded,
    learned: &task::Learned,
) -> Result<Alternating<L, LogDegree>, Mistake> {
    let refused = |error: ConfigError| Mistake::file(&loaded.task.source, error.to_string());
    let joint = joint(learned, loaded.problem.trade_off);
    let graph = GraphLearning::new(GraphLearningConfig { joint, sample: learned.sample as usize }).map_err(refused)?;
    Alternating::new(learner, graph, learned.turns).map_err(refused)
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
