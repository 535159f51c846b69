//! Boosting, and graphs that are learned: what comes out of a run.

use sottovoce_algorithms::personal::{
    graph::Links,
    home::{Broadcast, Home},
};
use sottovoce_algorithms::{Problem, Shard, boosting, objective};
use sottovoce_core::{Edge, Graph, PeerId, Peers, Posts, Rows, UNHEARD};
use sottovoce_task::algorithms::HeardModels;
use sottovoce_task::load::Loaded;
use std::collections::HashMap;

/// A weight below this is not written: no file of edges may hold it.
const WEIGHT_MIN: f64 = 1e-75;

/// The weights that the agents hold, of each pair what its keeper holds.
pub fn graph_of<'a>(agents: usize, links: impl Fn(PeerId) -> &'a Links) -> Graph {
    let mut edges = Vec::new();
    for me in (0..agents as u32).map(PeerId) {
        let mine = links(me);
        let kept = mine.iter().filter(|&(peer, weight)| mine.keeps(peer) && weight >= WEIGHT_MIN);
        edges.extend(kept.map(|(peer, weight)| (me.0.min(peer.0), me.0.max(peer.0), weight)));
    }
    edges.sort_unstable_by_key(|&(a, b, _)| (a, b));
    Graph::from_edges(agents, &edges).expect("each pair has one keeper, and weights are finite")
}

/// Q of a problem over its graph: of boosting where its data are boosted.
pub fn objective(loaded: &Loaded, problem: &Problem, models: &Rows) -> f64 {
    if loaded.plain.is_some() { boosting::value(problem, models) } else { objective::value(problem, models) }
}

/// F_u or L_u at each agent's model.
pub fn losses(loaded: &Loaded, models: &Rows) -> Vec<f64> {
    let loss = |id: PeerId| {
        let (shard, model) = (loaded.problem.shard(id), models.row(id.index()));
        if loaded.plain.is_some() {
            boosting::local_value(shard.points, model)
        } else {
            objective::local_value(&shard, model)
        }
    };
    (0..loaded.problem.agents() as u32).map(|id| loss(PeerId(id))).collect()
}

/// The home model of an agent that has learned whom to work with, from what it has heard of them.
pub fn home_model(
    home: Home,
    shard: &Shard<'_>,
    heard: &HeardModels<'_>,
    known: impl Fn(PeerId) -> Broadcast,
) -> Vec<f64> {
    let edges: Vec<Edge> = heard.iter().map(|&(peer, weight, _)| Edge { peer, weight }).collect();
    // Row 0 stands for those who have not been heard.
    let mut versions = Rows::zeros(1, shard.points.dimension);
    let mut version = |model: &Option<&[f64]>| {
        model.map_or(UNHEARD, |model| {
            let k = versions.push_zero();
            versions.row_mut(k).copy_from_slice(model);
            k as u32
        })
    };
    let seen: Vec<u32> = heard.iter().map(|(_, _, model)| version(model)).collect();
    let posts = Posts::PerEdge { versions: &versions, mine: UNHEARD, seen: &seen };
    home.model(shard, Peers::Listed(&edges), posts, known)
}

/// The mean weight of a pair within a group, and of one between two; none where there is no such pair.
pub fn within_and_between(graph: &Graph, groups: &[u32]) -> Option<(f64, f64)> {
    let n = groups.len() as f64;
    let mut sizes: HashMap<u32, f64> = HashMap::new();
    groups.iter().for_each(|group| *sizes.entry(*group).or_default() += 1.0);
    // Whole numbers, so the order of a map does not matter.
    let within_pairs: f64 = sizes.values().map(|size| size * (size - 1.0) / 2.0).sum();
    let between_pairs = n * (n - 1.0) / 2.0 - within_pairs;
    let (mut within, mut between) = (0.0, 0.0);
    for (a, b, weight) in graph.edges() {
        *if groups[a.index()] == groups[b.index()] { &mut within } else { &mut between } += weight;
    }
    (within_pairs > 0.0 && between_pairs > 0.0).then(|| (within / within_pairs, between / between_pairs))
}
