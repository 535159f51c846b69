//! Federated averaging (McMahan et al. 2017) without a server: one model for all, by updates that are summed under masks that cancel.

use super::gopa::{self, OF_MODELS_MAX};
use super::{Access, Visitor};
use crate::error::Mistake;
use crate::loaded::Loaded;
use crate::task::{Description, Leaves, Refusal, Sizes, Task, Yields};
use sottovoce_algorithms::token::ring::RingUnit;
use sottovoce_algorithms::token::walk::Goal;
use sottovoce_algorithms::{Bounds, Loss, Regularization};
use sottovoce_encrypted::gopa::{Gopa, GopaConfig, LocalSteps, State};
use sottovoce_privacy::Plan;

/// The largest norm of an update where nothing is promised: sums in fixed point need some bound.
const CLIP_WITHOUT_PRIVACY: f64 = 1024.0;

/// What everybody may ask about it.
pub const DESCRIPTION: Description = Description {
    name: "federated-averaging",
    sentence: "nothing: in each round it takes some steps on its own points, and publishes how far they took the model, under masks that cancel in the sum",
    yields: Yields::OneModel,
    leaves: Leaves::MaskedSums,
    everyone: true,
    in_rounds: true,
    rounds: Some(10),
    takes_steps: true,
    keys: gopa::KEYS,
    own_defaults: gopa::DESCRIPTION.own_defaults,
    check,
    observer: gopa::DESCRIPTION.observer,
    plan: gopa::DESCRIPTION.plan,
    ..Description::PLAIN
};

fn config(task: &Task, plan: Option<&Plan>, members: usize, dimension: usize) -> Option<GopaConfig> {
    let clip = task.privacy.map_or(CLIP_WITHOUT_PRIVACY, |privacy| privacy.clip);
    let learns = LocalSteps {
        loss: task.model.loss,
        step: task.model.step?,
        count: task.model.local_steps.unwrap_or(1),
        regularization: match task.model.regularization {
            Regularization::Constant(lambda) => lambda,
            Regularization::OneOverPoints => return None,
        },
        clip,
    };
    let protocol = gopa::protocol(task, plan, members)?;
    Some(GopaConfig {
        columns: dimension as u32,
        range: Bounds { low: -clip, high: clip },
        unit: RingUnit::Agent,
        goal: Goal::Sum,
        learns: Some(learns),
        ..protocol
    })
}

fn check(task: &Task, sizes: Option<Sizes>) -> Option<Refusal> {
    let Some(Sizes { agents, columns }) = sizes else {
        let wrong = [
            (
                task.model.regularization == Regularization::OneOverPoints,
                "model.regularization",
                "model.regularization is \"1/m\", and one model for all has no m; accepted: a number",
            ),
            (
                task.model.loss == Loss::Hinge,
                "model.loss",
                "model.loss: the hinge has no gradient at its kink; accepted: logistic, squared, smoothed-hinge",
            ),
            (
                task.model.radius.is_some(),
                "model.radius",
                "model.radius: updates are summed, and nobody brings back a sum; accepted: no model.radius",
            ),
        ];
        return wrong.into_iter().find(|(is_wrong, ..)| *is_wrong).map(|(_, key, what)| (key, what.to_owned()));
    };
    if columns > OF_MODELS_MAX as usize {
        let what = format!("{columns} features; accepted: at most {OF_MODELS_MAX}");
        return Some(("data.train", what));
    }
    if let Some(refusal) = gopa::check_members(task, agents) {
        return Some(refusal);
    }
    let error = Gopa::new(config(task, None, agents, columns)?).err()?;
    Some(("model", error.to_string()))
}

pub(super) fn build<V: Visitor>(loaded: &Loaded, visitor: V) -> Result<V::Output, Mistake> {
    let config = config(&loaded.task, loaded.plan.as_deref(), loaded.names.len(), loaded.problem.dimension());
    let gopa = gopa::built(loaded, config)?;
    let (knows, steps) = (Some(State::knows as fn(&State) -> bool), Some(State::rounds as fn(&State) -> u64));
    Ok(visitor.visit(&gopa, Access { knows, steps, ..Access::to_rows() }))
}
