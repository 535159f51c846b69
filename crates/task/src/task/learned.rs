//! What a task says of boosting and of a graph that is learned (thesis, chapter 2).

use crate::input::InputFile;
use serde::{Deserialize, Serialize};
pub use sottovoce_algorithms::personal::graph::Turns;
use sottovoce_algorithms::personal::{boosting::StepSize, descent};

/// Boosting: which base predictors, and how their combination is found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Boosting {
    /// The base predictors.
    pub predictors: Predictors,
    /// Where the thresholds of stumps lie; `None`: over the training points, filled in by [`crate::load::load`].
    pub range: Option<[f64; 2]>,
    /// beta.
    pub radius: f64,
    /// gamma.
    pub step: Step,
    /// Rounds of boosting alone: of the models from which the first graph is learned, and of what a run is compared with.
    pub local_rounds: u32,
}

/// Where base predictors come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Predictors {
    /// At least this many decision stumps.
    Stumps(u32),
    /// Each column of the data holds what one of them says.
    Columns,
}

/// How far a step of Frank-Wolfe goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Step {
    /// 2 / (time + 2).
    GlobalClock,
    /// 2 / (own wakes + 2).
    LocalClock,
    /// As far as the objective surely falls.
    Descent,
}

impl From<Step> for StepSize {
    fn from(step: Step) -> Self {
        match step {
            Step::GlobalClock => StepSize::GlobalClock,
            Step::LocalClock => StepSize::LocalClock,
            Step::Descent => StepSize::Descent,
        }
    }
}

/// What an agent does at a wake on its linear model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelStep {
    /// A gradient step.
    Gradient,
    /// A Newton step.
    Newton,
}

impl From<ModelStep> for descent::BlockStep {
    fn from(step: ModelStep) -> Self {
        match step {
            ModelStep::Gradient => descent::BlockStep::Gradient,
            ModelStep::Newton => descent::BlockStep::Newton,
        }
    }
}

/// A graph that is learned together with the models.
#[derive(Clone, Debug, PartialEq)]
pub struct Learned {
    /// kappa: how many peers an agent asks at a time.
    pub sample: u32,
    /// lambda_3.
    pub sparsity: f64,
    /// nu.
    pub strength: f64,
    /// How long the turns of models and graph are, in wakes per agent.
    pub turns: Turns,
    /// Of coordinate descent.
    pub model_step: ModelStep,
    /// A graph to compare with: `a,b,weight`.
    pub oracle: Option<InputFile>,
    /// Who belongs together, for pictures only: `agent,group`.
    pub groups: Option<InputFile>,
}
