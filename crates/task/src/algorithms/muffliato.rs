//! Means and sums by noise once and gossip in rounds (Muffliato; Cyffers, Even, Bellet and Massoulie 2022), on any connected graph.

use super::{Access, Visitor, refused};
use crate::error::Mistake;
use crate::keys::{ABOVE_0, Key, Kind, key};
use crate::loaded::Loaded;
use crate::task::{
    Description, Leaves, Mechanism, Observer, Pairs, Privacy, Refusal, Sizes, StatisticKind, Task, Unit, Yields,
};
use sottovoce_algorithms::Problem;
use sottovoce_algorithms::average::muffliato::mixing::{Mixing, ROUNDS_MAX, weights};
use sottovoce_algorithms::average::muffliato::{ContributionUnit, Goal, Muffliato, MuffliatoConfig, State};
use sottovoce_core::{Graph, PeerId};
use sottovoce_privacy::calibrate::Uncalibrated;
use sottovoce_privacy::network::{GossipPairs, PAIRS_EDGES_MAX, PAIRS_MEMBERS_MAX};
use sottovoce_privacy::{Event, Plan};

/// The key of how fast rounds are accelerated.
pub(super) const GAMMA: &str = "muffliato.gamma";
/// The key of the noise that keeps the budget on the mean over pairs.
const NOISE: &str = "muffliato.noise-multiplier";

/// Letters of one round that a member may read, in the simulator's count of events.
const EVENTS_BESIDE: u64 = 10;

/// What everybody may ask about it.
pub const DESCRIPTION: Description = Description {
    name: "muffliato",
    sentence: "nothing: it adds noise once, and in each round sends its neighbours a mean of what they sent it",
    yields: Yields::Estimate,
    statistics: &[StatisticKind::Mean, StatisticKind::Sum],
    leaves: Leaves::NoisyOnce,
    in_rounds: true,
    rounds: None,
    accelerates: true,
    by_pairs: true,
    keys: KEYS,
    refuses_graph,
    check,
    observer: |task, _| Observer::Pairs { rounds: task.run.rounds.unwrap_or(ROUNDS_MAX), told: None },
    deviation: |task, plan, problem| {
        let protocol = Muffliato::new(config(task, plan, problem)).ok()?;
        let rows = (0..problem.agents() as u32).map(|id| problem.data.size(PeerId(id)) as u64).sum();
        let weight = if unit(task) == ContributionUnit::Rows { rows } else { problem.agents() as u64 };
        task.privacy.map(|_| protocol.deviation(problem.agents(), weight))
    },
    complete: |task, graph, _| complete(task, graph),
    plan,
    on_peers: Some(on_peers),
    ..Description::PLAIN
};

#[rustfmt::skip]
pub(super) const GAMMA_KEY: Key = key(GAMMA, Kind::Number(crate::keys::FROM_1_BELOW_2), "from the graph's second eigenvalue; 1 with run.accelerated = false", "How far a round goes beyond the mean of neighbours: gamma W x - (gamma - 1) x of the round before. Real peers must agree on it, for none of them knows the graph.");
#[rustfmt::skip]
pub(super) const NOISE_KEY: Key = key(NOISE, Kind::Number(ABOVE_0), "from the graph; read by real peers alone", "With privacy.pairs = \"mean\": sigma over the sensitivity, at which the mean over pairs is privacy.epsilon.");

#[rustfmt::skip]
const KEYS: &[Key] = &[
    key("muffliato", Kind::Table, "all defaults", "Read when algorithm = \"muffliato\" or \"muffliato-sgd\"."),
    GAMMA_KEY,
    NOISE_KEY,
];

fn unit(task: &Task) -> ContributionUnit {
    match task.privacy.map(|privacy| privacy.unit) {
        Some(Unit::Agent) => ContributionUnit::Means,
        _ => ContributionUnit::Rows,
    }
}

fn is_accelerated(task: &Task) -> bool {
    task.run.accelerated.unwrap_or(true)
}

/// The protocol of a task whose plan is known.
fn config(task: &Task, plan: Option<&Plan>, problem: &Problem) -> MuffliatoConfig {
    let statistic = task.statistic.as_ref();
    let agents = statistic.and_then(|statistic| statistic.agents).unwrap_or(problem.agents() as u64) as usize;
    MuffliatoConfig {
        columns: problem.dimension(),
        goal: match statistic.map(|statistic| statistic.kind) {
            Some(StatisticKind::Mean) => Goal::Mean,
            _ => Goal::Sum { agents },
        },
        unit: unit(task),
        range: statistic.and_then(|statistic| statistic.range),
        law: plan.and_then(|plan| plan.steps().first().copied()),
        rounds: task.run.rounds.unwrap_or(ROUNDS_MAX),
        gamma: task.own.number(GAMMA).unwrap_or(1.0),
    }
}

/// The one release of each agent, with the least noise that keeps the budget against everyone: the worst pair is that of two neighbours, and
/// what a neighbour is sent first is the noisy value itself.
fn against_everyone(privacy: &Privacy) -> Result<Plan, Uncalibrated> {
    let steps = |noise| vec![privacy.event(noise)];
    Plan::with_least_noise(steps, privacy.epsilon, privacy.delta, privacy.accountant.accountant())
}

fn plan(task: &Task, privacy: &Privacy, _: &Problem) -> Result<Plan, Uncalibrated> {
    with_noise_of_task(task, privacy, 1).unwrap_or_else(|| against_everyone(privacy))
}

/// So many releases with the noise that the task has for the mean over pairs; none where the budget is that of the worst pair.
pub(super) fn with_noise_of_task(task: &Task, privacy: &Privacy, releases: u32) -> Option<Result<Plan, Uncalibrated>> {
    (privacy.pairs == Pairs::Mean).then(|| {
        let noise = task.own.number(NOISE).ok_or(Uncalibrated::OutOfReach)?;
        // The plan's own budget is that of the worst pair, which is more than the mean.
        let accountant = privacy.accountant.accountant();
        let steps = || vec![privacy.event(noise); releases as usize];
        let with = |epsilon| Plan::new(steps(), epsilon, privacy.delta, accountant);
        let free = with(f64::INFINITY).map_err(|_| Uncalibrated::OutOfReach)?;
        with(accountant.epsilon(&free.ledger(), privacy.delta)).map_err(|_| Uncalibrated::OutOfReach)
    })
}

/// sigma over the sensitivity of a plan's first release.
pub(super) fn multiplier(plan: &Plan) -> Option<f64> {
    match plan.steps().first()? {
        Event::Gaussian { noise_multiplier } => Some(*noise_multiplier),
        _ => None,
    }
}

fn complete(task: &mut Task, graph: &Graph) {
    let range = task.statistic.as_ref().and_then(|statistic| statistic.range);
    let size = range.map_or(1.0, |range| range.low.abs().max(range.high.abs()));
    let local = task.privacy.and_then(|privacy| against_everyone(&privacy).ok());
    let noise = local
        .and_then(|plan| multiplier(&plan))
        .map(|multiplier| multiplier * range.map_or(1.0, |range| range.high - range.low));
    complete_rounds(task, graph, (size, noise), 1);
}

/// Rounds, acceleration and, where the budget is a mean over pairs, the noise, for so many averages: all from the graph, which is public, from the size of values, and
/// from the deviation of one's noise.
pub(super) fn complete_rounds(task: &mut Task, graph: &Graph, (size, noise): (f64, Option<f64>), averages: u32) {
    let Ok(weights) = weights(graph) else { return };
    let mixing = Mixing::of(&weights);
    if task.own.number(GAMMA).is_none() {
        task.own.set(GAMMA, if is_accelerated(task) { mixing.gamma() } else { 1.0 });
    }
    let gamma = task.own.number(GAMMA).unwrap_or(1.0);
    let rounds = *task.run.rounds.get_or_insert_with(|| mixing.rounds(gamma, noise, size));
    let degree = (0..graph.agents() as u32).map(|id| graph.peers(PeerId(id)).len() as u64).max().unwrap_or(0);
    task.run.wakes_per_agent = (degree + EVENTS_BESIDE) * (u64::from(rounds) + 2) * u64::from(averages);
    if let Some(privacy) = task.privacy.filter(|privacy| privacy.pairs == Pairs::Mean) {
        let told = match (task.algorithm.observer)(task, graph.agents()) {
            Observer::Pairs { told: Some(told), .. } => told.row(&weights, rounds),
            _ => Vec::new(),
        };
        let rows = (0..weights.members()).map(|observer| weights.pair_row(observer, rounds as usize, &told));
        // PRIVACY: whatever the task says, with the whole graph at hand the noise is found anew. Each average has fresh noise, and squares of mu add up.
        let noise = GossipPairs::from_rows(rows).noise_for_mean(privacy.epsilon, privacy.delta);
        let noise = noise.map(|noise| (noise * libm::sqrt(f64::from(averages)).next_up()).next_up());
        noise.into_iter().for_each(|noise| task.own.set(NOISE, noise));
    }
}

pub(super) fn refuses_graph(task: &Task, graph: &Graph) -> Option<String> {
    let agents = graph.agents();
    if agents < 2 {
        return Some(format!(
            "muffliato of {agents} agent; accepted: 2 and more, since one alone has nobody to gossip with"
        ));
    }
    if graph.components().iter().any(|&part| part > 0) {
        let what =
            "graph is not connected, so no rounds bring one part's values to another; accepted: a connected graph";
        return Some(what.to_owned());
    }
    let by_mean = task.privacy.is_some_and(|privacy| privacy.pairs == Pairs::Mean);
    let (edges, is_large) = (graph.edge_count(), agents > PAIRS_MEMBERS_MAX || graph.edge_count() > PAIRS_EDGES_MAX);
    (by_mean && is_large).then(|| {
        format!(
            "privacy.pairs = \"mean\" of {agents} agents and {edges} edges takes a matrix that is too large; accepted: at most \
             {PAIRS_MEMBERS_MAX} agents and {PAIRS_EDGES_MAX} edges, or pairs = \"worst\""
        )
    })
}

pub(super) fn check(task: &Task, sizes: Option<Sizes>) -> Option<Refusal> {
    if sizes.is_some() {
        return None;
    }
    let privacy = task.privacy?;
    if privacy.mechanism != Mechanism::Gaussian {
        let what = "privacy.mechanism: what several members' noise hides together is known for Gaussian noise alone; accepted: \"gaussian\"";
        return Some(("privacy.mechanism", what.to_owned()));
    }
    (privacy.colluders != 1).then(|| {
        let what = "privacy.colluders: the worst pair's epsilon holds against everyone together, and means over pairs are of one observer each; \
                    accepted: no privacy.colluders";
        ("privacy.colluders", what.to_owned())
    })
}

fn on_peers(task: &Task) -> Option<&'static str> {
    let statistic = task.statistic.as_ref()?;
    if statistic.columns.is_none() {
        return Some(
            "statistic.columns is missing, and each peer has a file of its own; accepted for peers: statistic.columns = the names of columns",
        );
    }
    if statistic.kind == StatisticKind::Sum && statistic.agents.is_none() {
        return Some(
            "statistic.agents is missing, and no peer knows how many there are; accepted for peers: statistic.agents = a number that all agree on",
        );
    }
    missing_on_peers(task)
}

/// What follows from the graph, which no peer knows.
pub(super) fn missing_on_peers(task: &Task) -> Option<&'static str> {
    if task.run.rounds.is_none() {
        return Some(
            "run.rounds is missing, and no peer knows the graph; accepted for peers: run.rounds = a number that all agree on, such as that in \
             task.toml of a simulated run",
        );
    }
    if is_accelerated(task) && task.own.number(GAMMA).is_none() {
        return Some(
            "muffliato.gamma is missing, and no peer knows the graph; accepted for peers: muffliato.gamma = a number that all agree on, such as \
             that in task.toml of a simulated run, or run.accelerated = false",
        );
    }
    let by_mean = task.privacy.is_some_and(|privacy| privacy.pairs == Pairs::Mean);
    (by_mean && task.own.number(NOISE).is_none()).then_some(
        "muffliato.noise-multiplier is missing, and no peer knows the graph; accepted for peers with privacy.pairs = \"mean\": the number in \
         task.toml of a simulated run",
    )
}

pub(super) fn build<V: Visitor>(loaded: &Loaded, visitor: V) -> Result<V::Output, Mistake> {
    let config = config(&loaded.task, loaded.plan.as_deref(), &loaded.problem);
    let protocol = Muffliato::new(config).map_err(refused(loaded))?;
    Ok(visitor.visit(&protocol, Access { knows: Some(State::knows), ..Access::to_rows() }))
}
