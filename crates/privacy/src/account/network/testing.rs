//! Graphs to test with, and their dense matrices.

use super::graph::Gossip;
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};

/// A connected random graph with random weights.
pub fn random_graph(members: usize, seed: u64) -> Gossip {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut unit = || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let mut weights = Vec::new();
    for a in 1..members {
        let parent = (unit() * a as f64) as usize;
        for b in 0..a {
            if b == parent || unit() < 0.15 {
                weights.push((a, b, (0.3 + 0.7 * unit()) / members as f64));
            }
        }
    }
    Gossip::new(members, &weights).expect("small weights")
}

/// W, weight by weight.
pub fn dense(graph: &Gossip) -> Vec<Vec<f64>> {
    let column = |member: usize| {
        let mut unit = vec![0.0; graph.members()];
        unit[member] = 1.0;
        graph.moved(&unit)
    };
    // W is symmetric: columns are rows.
    (0..graph.members()).map(column).collect()
}
