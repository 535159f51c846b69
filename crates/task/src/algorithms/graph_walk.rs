//! `walk-sgd` with a `[graph]`: a token that walks along edges, and what each member learns of each other (Cyffers, Bellet and Upadhyay 2024).

use super::ring_histogram::REISSUES;
use super::walk;
use crate::keys::{ABOVE_0, Key, Kind, key};
use crate::task::{GraphSource, Observer, Pairs, Privacy, Refusal, Task, Trust};
use sottovoce_algorithms::average::muffliato::mixing::weights;
use sottovoce_core::Graph;
use sottovoce_privacy::calibrate::{Uncalibrated, noise_of_graph_walk};
use sottovoce_privacy::network::{
    BadNetwork, Gossip, GraphPairs, PAIRS_EDGES_MAX, PAIRS_MEMBERS_MAX, WorstAndMean, WorstPair,
};
use sottovoce_privacy::{Plan, Track};
use toml::Value;

/// The key of the noise that keeps the budget on the graph.
const NOISE: &str = "token.noise-multiplier";
/// The key of what the worst pair has of it.
const WORST: &str = "token.worst-pair";

#[rustfmt::skip]
pub(super) const NOISE_KEY: Key = key(NOISE, Kind::Number(ABOVE_0), "from the graph", "walk-sgd with [graph] and [privacy]: sigma over the sensitivity at each hop. Found anew from the graph by every run, whatever a task says.");
#[rustfmt::skip]
pub(super) const WORST_KEY: Key = key(WORST, Kind::Number(ABOVE_0), "from the graph", "walk-sgd with [graph] and [privacy]: the epsilon of the worst pair of members at that noise. Found anew by every run, too.");

/// Whether the token of a task goes along edges. Along all of them, on the complete graph, it is a walk as without a `[graph]`.
pub(super) fn is_on_graph(task: &Task) -> bool {
    !matches!(task.graph.source, GraphSource::Complete)
}

/// Whether pairs of members have guarantees of their own.
pub(super) fn is_by_pairs(task: &Task) -> bool {
    is_on_graph(task) && task.privacy.is_some_and(|privacy| privacy.trust == Trust::Network)
}

/// What each member learns of each other: by source, then by observer, computed by all processors.
pub fn matrix(pairs: &GraphPairs<'_>, members: usize) -> Vec<Vec<f64>> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(members.max(1));
    let of = |first: usize| (first..members).step_by(threads).map(|source| pairs.row(source)).collect::<Vec<_>>();
    let mut parts: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|first| scope.spawn(move || of(first))).collect();
        workers.into_iter().map(|worker| worker.join().expect("rows of a matrix").into_iter()).collect()
    });
    (0..members).filter_map(|source| parts[source % threads].next()).collect()
}

/// Against whom it protects. Without the noise and the worst pair that the graph tells, what there is is local composition.
pub(super) fn observer(task: &Task, agents: usize) -> Observer {
    let (_, contributions) = walk::of_each(task, agents);
    let Ok(local) = WorstPair::local(contributions.into()) else { return Observer::Everyone };
    let known = task.own.number(NOISE).zip(task.own.number(WORST)).zip(task.privacy);
    Observer::GraphWalk(known.map_or(local, |((noise, worst), privacy)| local.with_known(noise, privacy.delta, worst)))
}

/// Fills in the noise, and what the worst pair has at it.
pub(super) fn complete(task: &mut Task, graph: &Graph) {
    let Some(privacy) = task.privacy.filter(|_| is_by_pairs(task)) else { return };
    let Ok(weights) = weights(graph) else { return };
    let (_, contributions) = walk::of_each(task, graph.agents());
    // PRIVACY: whatever the task says, with the whole graph at hand both are found anew.
    if let Ok(Some((noise, worst))) = noise_and_worst(&weights, contributions.into(), &privacy) {
        task.own.set(NOISE, noise);
        task.own.set(WORST, worst);
    }
}

fn noise_and_worst(weights: &Gossip, contributions: u64, privacy: &Privacy) -> Result<Option<(f64, f64)>, BadNetwork> {
    let of = |both: WorstAndMean| if privacy.pairs == Pairs::Mean { both.mean } else { both.worst };
    let budget = (privacy.epsilon, privacy.delta);
    let all = |pairs: &GraphPairs<'_>| matrix(pairs, weights.members());
    let Some(noise) = noise_of_graph_walk(weights, contributions, budget, of, all)? else { return Ok(None) };
    let pairs = GraphPairs::new(weights, contributions, noise, privacy.delta)?;
    Ok(Some((noise, WorstAndMean::of(&matrix(&pairs, weights.members())).worst)))
}

/// Contributions with the noise that keeps the budget, on the worst pair or on the mean.
pub(super) fn plan(task: &Task, privacy: &Privacy, agents: usize) -> Result<Plan, Uncalibrated> {
    let (_, contributions) = walk::of_each(task, agents);
    let (noise, worst) = task.own.number(NOISE).zip(task.own.number(WORST)).ok_or(Uncalibrated::OutOfReach)?;
    let tracks = vec![(Track::Token, vec![privacy.event(noise); contributions as usize])];
    // The plan's own budget is that of the worst pair, which is more than the mean.
    let epsilon = if privacy.pairs == Pairs::Mean { worst } else { privacy.epsilon };
    let accountant = observer(task, agents).accountant(privacy.accountant);
    Plan::with_tracks(tracks, epsilon, privacy.delta, &*accountant).map_err(|_| Uncalibrated::OutOfReach)
}

/// Refuses what no walk along edges has a guarantee for.
pub(super) fn check(task: &Task) -> Option<Refusal> {
    let refuse = |key: &'static str, what: &str| Some((key, format!("{key}: {what}")));
    if !is_on_graph(task) {
        let by_mean = task.privacy.is_some_and(|privacy| privacy.pairs == Pairs::Mean);
        return if by_mean {
            refuse(
                "privacy.pairs",
                "without edges all pairs are alike; accepted: \"worst\", or a [graph] that is not complete",
            )
        } else {
            None
        };
    }
    if walk::tokens(task) != 1 {
        return refuse(walk::COUNT, "several tokens along edges are not accounted for; accepted with [graph]: 1");
    }
    if task.own.get(REISSUES).and_then(Value::as_integer).is_some_and(|reissues| reissues > 0) {
        return refuse(
            REISSUES,
            "a token that is issued again follows another law than that of the edges; accepted with [graph]: 0, the token waits for whoever has it",
        );
    }
    let privacy = task.privacy?;
    if privacy.trust == Trust::Curator {
        return refuse(
            "privacy.trust",
            "a curator draws among all members; accepted with [graph]: \"network\", \"nobody\"",
        );
    }
    if privacy.colluders != 1 || privacy.present != 1.0 {
        let what = "privacy.colluders and privacy.present: pairs are of one observer each, who is there all along; accepted with [graph]: neither";
        return Some(("privacy", what.to_owned()));
    }
    None
}

/// Refuses a graph on which no walk comes to everyone, or with too many pairs.
pub(super) fn refuses_graph(task: &Task, graph: &Graph) -> Option<String> {
    if !is_on_graph(task) {
        return None;
    }
    if graph.components().iter().any(|&part| part > 0) {
        let what = "graph is not connected, so no token comes to everyone; accepted: a connected graph, with odd cycles or without";
        return Some(what.to_owned());
    }
    let (agents, edges) = (graph.agents(), graph.edge_count());
    (is_by_pairs(task) && (agents > PAIRS_MEMBERS_MAX || edges > PAIRS_EDGES_MAX)).then(|| {
        format!(
            "pairs of {agents} agents on {edges} edges take a matrix that is too large; accepted with [graph] and [privacy]: at most \
             {PAIRS_MEMBERS_MAX} agents and {PAIRS_EDGES_MAX} edges, or privacy.trust = \"nobody\""
        )
    })
}
