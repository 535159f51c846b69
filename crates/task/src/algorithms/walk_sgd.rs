//! Stochastic gradient descent by a token that walks over the complete graph (Cyffers and Bellet 2022), or along the edges of another: one model for all, private against other members, and the
//! same with a trusted curator, or with nobody to trust, to compare with.

use super::walk::{self, check_path};
use super::{Access, Visitor, graph_walk};
use crate::error::Mistake;
use crate::keys::Key;
use crate::loaded::Loaded;
use crate::task::{Description, Leaves, Observer, Privacy, Refusal, Sizes, Steps, Task, Trust, Yields};
use sottovoce_algorithms::token::walk::{Beyond, State, Walk, WalkConfig};
use sottovoce_algorithms::token::walk_sgd::{BadGradient, Gradient, GradientConfig, WalkSgd};
use sottovoce_algorithms::{Problem, Regularization};
use sottovoce_privacy::calibrate::Uncalibrated;
use sottovoce_privacy::network::Sampled;
use sottovoce_privacy::{Plan, Track};

/// What everybody may ask about it.
pub const DESCRIPTION: Description = Description {
    name: "walk-sgd",
    sentence: "nothing: when a token comes it takes a gradient step, with `[privacy]` and noise, and passes it on to anyone",
    yields: Yields::OneModel,
    leaves: Leaves::Token,
    everyone: true,
    takes_graph: true,
    by_pairs: true,
    in_hops: true,
    takes_steps: true,
    keys: KEYS,
    own_defaults: walk::own_defaults,
    on_peers: Some(|task| match trust(task) {
        _ if graph_walk::is_on_graph(task) => Some(
            "walk-sgd with [graph] takes the degrees of neighbours and the noise of all pairs, which no peer knows; accepted for peers: no [graph]",
        ),
        Trust::Curator => Some(
            "privacy.trust = \"curator\" puts everybody's data in one place, which no peer is; accepted for peers: \"network\", \"nobody\"",
        ),
        _ => None,
    }),
    check,
    observer,
    refuses_graph: graph_walk::refuses_graph,
    complete: |task, graph, _| {
        walk::complete(task, graph.agents());
        graph_walk::complete(task, graph);
    },
    plan,
    ..Description::PLAIN
};

const KEYS: &[Key] =
    &[walk::KEYS[0], walk::KEYS[1], walk::KEYS[2], walk::KEYS[3], graph_walk::NOISE_KEY, graph_walk::WORST_KEY];

fn trust(task: &Task) -> Trust {
    task.privacy.map_or(Trust::Network, |privacy| privacy.trust)
}

fn observer(task: &Task, agents: usize) -> Observer {
    match trust(task) {
        Trust::Network if graph_walk::is_on_graph(task) => graph_walk::observer(task, agents),
        Trust::Network => walk::observer(task, agents, Steps::Contractions),
        Trust::Nobody => Observer::Everyone,
        Trust::Curator => {
            let (hops, _) = walk::of_each(task, agents);
            let hops = hops.saturating_mul(walk::tokens(task).into());
            Sampled::new(agents as u64, hops).map_or(Observer::Everyone, Observer::Curator)
        }
    }
}

/// Contributions with the least noise that keeps the budget.
fn plan(task: &Task, privacy: &Privacy, problem: &Problem) -> Result<Plan, Uncalibrated> {
    let observer = observer(task, problem.agents());
    let (epsilon, delta, accountant) = (privacy.epsilon, privacy.delta, observer.accountant(privacy.accountant));
    let (_, contributions) = walk::of_each(task, problem.agents());
    let all = contributions as usize * walk::tokens(task) as usize;
    match observer {
        Observer::GraphWalk(_) => graph_walk::plan(task, privacy, problem.agents()),
        Observer::Curator(sampled) => {
            let noise = sampled.noise_multiplier(epsilon, delta).ok_or(Uncalibrated::OutOfReach)?;
            let steps = vec![privacy.event(noise); sampled.hops() as usize];
            Plan::new(steps, epsilon, delta, &*accountant).map_err(|_| Uncalibrated::OutOfReach)
        }
        Observer::Everyone => {
            Plan::with_least_noise(|noise| vec![privacy.event(noise); all], epsilon, delta, &*accountant)
        }
        _ => walk::plan(task, privacy, problem, Steps::Contractions),
    }
}

/// The way of the token of a task whose plan is known.
fn config(task: &Task, plan: Option<&Plan>, members: usize) -> WalkConfig {
    let network = walk::config(task, plan, members);
    let law = |track| plan.and_then(|plan| plan.track(track).first().copied());
    match trust(task) {
        Trust::Network => network,
        Trust::Nobody => {
            WalkConfig { track: Track::Models, law: law(Track::Models), beyond: Beyond::Untouched, ..network }
        }
        // Whoever is drawn contributes, however often.
        Trust::Curator => {
            let (track, law) = (Track::Models, law(Track::Models));
            WalkConfig { track, law, contributions: None, timeout: None, ..network }
        }
    }
}

pub(super) fn gradient(task: &Task, dimension: usize) -> Result<Gradient, BadGradient> {
    Gradient::new(GradientConfig {
        dimension,
        loss: task.model.loss,
        step: task.model.step.unwrap_or(f64::NAN),
        radius: task.model.radius,
        regularization: match task.model.regularization {
            Regularization::Constant(lambda) => lambda,
            Regularization::OneOverPoints => 0.0,
        },
        clip: task.privacy.map(|privacy| privacy.clip),
        bound: task.privacy.map(|privacy| privacy.feature_bound(task)),
    })
}

/// Refuses what has no gradient steps.
pub(super) fn check_steps(task: &Task) -> Option<Refusal> {
    if task.model.regularization == Regularization::OneOverPoints {
        let what = "model.regularization is \"1/m\", and one model for all has no m; accepted: a number";
        return Some(("model.regularization", what.to_owned()));
    }
    if let Err(error) = gradient(task, 1) {
        let key = match error {
            BadGradient::Hinge => "model.loss",
            BadGradient::Step { .. } => "model.step",
            _ => "model",
        };
        return Some((key, format!("{key}: {error}")));
    }
    None
}

fn check(task: &Task, sizes: Option<Sizes>) -> Option<Refusal> {
    if let Some(refusal) = check_steps(task) {
        return Some(refusal);
    }
    let colluding = task.privacy.filter(|privacy| privacy.trust != Trust::Network);
    if colluding.is_some_and(|privacy| privacy.colluders != 1 || privacy.present != 1.0) {
        let what = "privacy.colluders and privacy.present are about members who see the token; accepted with privacy.trust: neither";
        return Some(("privacy.trust", what.to_owned()));
    }
    graph_walk::check(task).or_else(|| check_path(task, sizes))
}

/// The walk of a task whose plan is known.
pub(super) fn walk(loaded: &Loaded) -> Result<WalkSgd, Mistake> {
    let (task, members) = (&loaded.task, loaded.names.len());
    let refused = |what: String| Mistake::file(&task.source, what);
    let config = config(task, loaded.plan.as_deref(), members);
    let gradient = gradient(task, loaded.problem.dimension()).map_err(|error| refused(error.to_string()))?;
    let walk = Walk::new(config, gradient).map_err(|error| refused(error.to_string()))?;
    match graph_walk::is_on_graph(task) {
        true => walk.along(&loaded.problem.graph).map_err(|error| refused(error.to_string())),
        false => Ok(walk),
    }
}

pub(super) fn build<V: Visitor>(loaded: &Loaded, visitor: V) -> Result<V::Output, Mistake> {
    let walk = walk(loaded)?;
    Ok(visitor.visit(&walk, Access { knows: Some(State::knows), ..Access::to_points() }))
}
