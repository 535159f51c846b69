//! Graphs that depend on no data: torus, circulant, Watts-Strogatz, Erdos-Renyi. Unit weights. (A ring and a complete graph are
//! [`Graph::ring`] and [`Graph::complete`].)
//!
//! The random ones draw from a [`Coin`], so a seed gives the same graph on every machine.

use sottovoce_core::{Coin, Graph, graph::SizeError};
use thiserror::Error;

/// Why no graph has the shape asked for. The message says what would be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum ShapeError {
    /// A number of agents that no graph has.
    #[error(transparent)]
    Size(#[from] SizeError),
    /// Too many neighbours for so few agents.
    #[error("{neighbours} neighbours among {agents} agents; at most {}", agents - 1)]
    TooManyNeighbours {
        /// Asked for.
        neighbours: usize,
        /// How many agents there are.
        agents: usize,
    },
    /// A circulant graph with an odd number of neighbours.
    #[error("{neighbours} neighbours; an even number, half of them on each side")]
    OddNeighbours {
        /// Asked for.
        neighbours: usize,
    },
    /// Not in [0, 1].
    #[error("probability {probability}; a number from 0 to 1")]
    NoProbability {
        /// Asked for.
        probability: f64,
    },
}

/// A grid whose rows and columns are cycles; agents are numbered row after row.
pub fn torus(rows: usize, columns: usize) -> Result<Graph, ShapeError> {
    let n = rows.saturating_mul(columns);
    SizeError::check(n)?;
    // A cycle of two has one edge, not two; a cycle of one has none.
    let steps = |length: usize| if length > 2 { length } else { length - 1 };
    let at = |row: usize, column: usize| ((row % rows) * columns + column % columns) as u32;
    let mut edges = Vec::with_capacity(2 * n);
    for row in 0..rows {
        for column in 0..columns {
            if column < steps(columns) {
                edges.push((at(row, column), at(row, column + 1)));
            }
            if row < steps(rows) {
                edges.push((at(row, column), at(row + 1, column)));
            }
        }
    }
    Ok(listed(n, &edges))
}

/// Each agent joined to the `neighbours / 2` next and the `neighbours / 2` previous ones.
pub fn circulant(n: usize, neighbours: usize) -> Result<Graph, ShapeError> {
    SizeError::check(n)?;
    if neighbours % 2 == 1 {
        return Err(ShapeError::OddNeighbours { neighbours });
    }
    if neighbours >= n {
        return Err(ShapeError::TooManyNeighbours { neighbours, agents: n });
    }
    Ok(listed(n, &lattice(n, neighbours / 2)))
}

/// Watts and Strogatz (1998): a ring lattice with `neighbours / 2` (rounded down) agents on each side, each
/// edge of which moves its far end to a random agent with probability `rewire`. As in networkx, an agent
/// that already knows everybody keeps its edges, and `neighbours = n` gives the complete graph.
pub fn watts_strogatz(n: usize, neighbours: usize, rewire: f64, seed: u64) -> Result<Graph, ShapeError> {
    SizeError::check(n)?;
    probability(rewire)?;
    if neighbours > n {
        return Err(ShapeError::TooManyNeighbours { neighbours, agents: n });
    }
    if neighbours == n {
        return Ok(Graph::complete(n)?);
    }
    let mut known: Vec<Vec<u32>> = vec![Vec::with_capacity(neighbours + 2); n];
    let edges = lattice(n, neighbours / 2);
    for &(u, v) in &edges {
        known[u as usize].push(v);
        known[v as usize].push(u);
    }
    for step in 0..neighbours / 2 {
        for u in 0..n {
            let v = ((u + step + 1) % n) as u32;
            let mut coin = Coin::new(seed, u as u32, step as u64);
            if coin.unit() >= rewire || known[u].len() >= n - 1 {
                continue;
            }
            let w = loop {
                let w = coin.below(n) as u32;
                if w as usize != u && !known[u].contains(&w) {
                    break w;
                }
            };
            known[u].retain(|&other| other != v);
            known[v as usize].retain(|&other| other != u as u32);
            known[u].push(w);
            known[w as usize].push(u as u32);
        }
    }
    let pairs: Vec<_> =
        (0..n as u32).flat_map(|u| known[u as usize].iter().filter(move |&&v| u < v).map(move |&v| (u, v))).collect();
    Ok(listed(n, &pairs))
}

/// Erdos and Renyi, G(n, p): each pair is joined with the given probability, independently. Takes time
/// proportional to the agents and edges, not to the pairs: the gap to the next edge is geometric
/// (Batagelj and Brandes, 2005).
pub fn erdos_renyi(n: usize, edge_probability: f64, seed: u64) -> Result<Graph, ShapeError> {
    SizeError::check(n)?;
    probability(edge_probability)?;
    if edge_probability == 1.0 {
        return Ok(Graph::complete(n)?);
    }
    let mut pairs = Vec::new();
    if edge_probability > 0.0 {
        let mut coin = Coin::new(seed, 0, 0);
        let log_miss = libm::log1p(-edge_probability);
        // Pairs (v, w) with w < v, in order; `w` runs past the end of a row into the next ones.
        let (mut v, mut w) = (1u64, -1i64);
        while v < n as u64 {
            let gap = libm::log1p(-coin.unit()) / log_miss;
            // No pair is further than n^2 / 2 away; the bound keeps the sum within i64.
            w += 1 + gap.min(1e18) as i64;
            while v < n as u64 && w >= v as i64 {
                w -= v as i64;
                v += 1;
            }
            if v < n as u64 {
                pairs.push((w as u32, v as u32));
            }
        }
    }
    Ok(listed(n, &pairs))
}

fn probability(probability: f64) -> Result<(), ShapeError> {
    if (0.0..=1.0).contains(&probability) { Ok(()) } else { Err(ShapeError::NoProbability { probability }) }
}

/// Each of `n` agents and the next `reach`, for 2 reach < n.
fn lattice(n: usize, reach: usize) -> Vec<(u32, u32)> {
    (1..=reach).flat_map(|step| (0..n).map(move |u| (u as u32, ((u + step) % n) as u32))).collect()
}

fn listed(n: usize, pairs: &[(u32, u32)]) -> Graph {
    let edges: Vec<_> = pairs.iter().map(|&(a, b)| (a, b, 1.0)).collect();
    Graph::from_edges(n, &edges).expect("the constructor makes distinct pairs of existing agents")
}

#[cfg(test)]
mod tests {
    use super::*;
    use sottovoce_core::PeerId;

    fn degrees(graph: &Graph) -> Vec<usize> {
        (0..graph.agents() as u32).map(|i| graph.peers(PeerId(i)).len()).collect()
    }

    #[test]
    fn every_agent_of_a_torus_has_four_neighbours() {
        let grid = torus(35, 36).expect("torus");
        assert!(degrees(&grid).iter().all(|&d| d == 4));
        assert!(grid.components().iter().all(|&c| c == 0));
        let near: Vec<_> = torus(3, 4).expect("torus").peers(PeerId(0)).iter().map(|e| e.peer.0).collect();
        assert_eq!(near, [1, 3, 4, 8]);
        // Degenerate grids: cycles of two and of one.
        assert_eq!(degrees(&torus(2, 3).expect("torus")), [3; 6]);
        assert_eq!(degrees(&torus(2, 2).expect("torus")), [2; 4]);
        assert_eq!(degrees(&torus(1, 5).expect("torus")), [2; 5]);
        assert_eq!(degrees(&torus(1, 1).expect("torus")), [0]);
        assert_eq!(torus(0, 5), Err(SizeError::Nobody.into()));
        assert!(matches!(torus(usize::MAX, 2), Err(ShapeError::Size(SizeError::TooMany { .. }))));
    }

    #[test]
    fn circulant_neighbours_stand_on_both_sides() {
        let graph = circulant(100, 38).expect("circulant");
        assert!(degrees(&graph).iter().all(|&d| d == 38));
        assert_eq!(graph.peers(PeerId(50)).edge(0).peer, PeerId(31));
        assert_eq!(circulant(10, 3), Err(ShapeError::OddNeighbours { neighbours: 3 }));
        assert!(matches!(circulant(10, 10), Err(ShapeError::TooManyNeighbours { .. })));
    }

    #[test]
    fn rewiring_keeps_the_number_of_edges_and_zero_keeps_the_lattice() {
        // k = 5 is a lattice of 4 neighbours, as in networkx.
        let lattice = watts_strogatz(50, 5, 0.0, 1).expect("graph");
        assert_eq!(lattice, circulant(50, 4).expect("graph"));
        let mut moved = 0;
        for seed in 0..20 {
            let graph = watts_strogatz(50, 5, 0.3, seed).expect("graph");
            assert_eq!(graph.edge_count(), 100);
            assert_eq!(graph, watts_strogatz(50, 5, 0.3, seed).expect("graph"));
            moved += graph.edges().filter(|&(a, b, _)| lattice.peers(a).position(b).is_none()).count();
        }
        // 2000 edges, each moved with probability 0.3 (a moved one rarely lands on a lattice place again).
        assert!((500..=640).contains(&moved), "{moved}");
        assert_eq!(watts_strogatz(5, 4, 1.0, 3).expect("graph").edge_count(), 10);
        assert_eq!(watts_strogatz(4, 4, 0.5, 3), Ok(Graph::Complete { n: 4 }));
        assert!(matches!(watts_strogatz(4, 5, 0.5, 3), Err(ShapeError::TooManyNeighbours { .. })));
        assert!(matches!(watts_strogatz(9, 2, f64::NAN, 3), Err(ShapeError::NoProbability { .. })));
    }

    #[test]
    fn each_pair_is_joined_with_the_given_probability() {
        let (n, p, runs) = (12usize, 0.3, 2000);
        let mut seen = vec![0u32; n * n];
        for seed in 0..runs {
            for (a, b, _) in erdos_renyi(n, p, seed).expect("graph").edges() {
                seen[a.index() * n + b.index()] += 1;
            }
        }
        let spread = (runs as f64 * p * (1.0 - p)).sqrt();
        for a in 0..n {
            for b in a + 1..n {
                let off = (f64::from(seen[a * n + b]) - runs as f64 * p) / spread;
                assert!(off.abs() < 4.5, "pair {a}, {b} is {off} standard deviations off");
            }
        }
        assert_eq!(erdos_renyi(7, 0.0, 1).expect("graph").edge_count(), 0);
        assert_eq!(erdos_renyi(7, 1.0, 1).expect("graph").edge_count(), 21);
        assert_eq!(erdos_renyi(7, 1e-300, 1).expect("graph").edge_count(), 0);
        // A million agents of mean degree 4 take time by edges: this line would not return otherwise.
        let sparse = erdos_renyi(1_000_000, 4e-6, 1).expect("graph").edge_count();
        assert!(sparse.abs_diff(2_000_000) < 7_000, "{sparse}");
    }
}
