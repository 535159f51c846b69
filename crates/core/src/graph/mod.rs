//! The collaboration graph: undirected, weighted, no self-loops.

use crate::{Edge, PeerId, Peers};
use thiserror::Error;

/// Who works with whom, and how closely: a symmetric weight matrix W >= 0 with a zero diagonal.
#[derive(Clone, Debug, PartialEq)]
pub enum Graph {
    /// Stored edges.
    Listed(Listed),
    /// A cycle of n >= 3 agents with unit weights, not stored.
    Ring {
        /// Agents.
        n: u32,
    },
    /// All pairs of n >= 1 agents with unit weights, not stored.
    Complete {
        /// Agents.
        n: u32,
    },
}

/// Compressed rows: agent i's edges, sorted by peer, are `edges[offsets[i]..offsets[i + 1]]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    offsets: Vec<usize>,
    edges: Vec<Edge>,
}

/// Why a list of edges is no graph. Agents are given by number; callers with names translate.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum GraphError {
    /// More agents than can be numbered.
    #[error("more than {} agents", u32::MAX)]
    TooManyAgents,
    /// An end that does not exist.
    #[error("edge {index} names agent {agent}, but there are {agents} agents")]
    NoSuchAgent {
        /// Position of the edge in the list.
        index: usize,
        /// The missing agent.
        agent: u32,
        /// How many there are.
        agents: usize,
    },
    /// a = b.
    #[error("edge {index} is a self-loop")]
    SelfLoop {
        /// Position of the edge in the list.
        index: usize,
    },
    /// Negative, zero, NaN or infinite.
    #[error("edge {index} has weight {weight}; a weight is a finite number above zero")]
    BadWeight {
        /// Position of the edge in the list.
        index: usize,
        /// The weight.
        weight: f64,
    },
    /// The same pair twice, in either order.
    #[error("edges {first} and {second} join the same pair")]
    Repeated {
        /// Position of the one that came first.
        first: usize,
        /// Position of the other.
        second: usize,
    },
}

/// A number of agents that no graph has. The message says what would be accepted.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum SizeError {
    /// More agents than can be numbered.
    #[error("{agents} agents are too many; at most {}", u32::MAX)]
    TooMany {
        /// Asked for.
        agents: usize,
    },
    /// Nobody.
    #[error("a graph has at least one agent")]
    Nobody,
}

impl SizeError {
    /// The number of agents as agents are counted, unless no graph has it.
    pub fn check(agents: usize) -> Result<u32, SizeError> {
        match u32::try_from(agents) {
            Ok(0) => Err(SizeError::Nobody),
            Ok(agents) => Ok(agents),
            Err(_) => Err(SizeError::TooMany { agents }),
        }
    }
}

impl Graph {
    /// A cycle with unit weights. Two agents share one edge; one has none.
    pub fn ring(n: usize) -> Result<Graph, SizeError> {
        let listed =
            |edges: &[(u32, u32, f64)]| Graph::from_edges(n, edges).expect("at most one edge between two agents");
        Ok(match SizeError::check(n)? {
            1 => listed(&[]),
            2 => listed(&[(0, 1, 1.0)]),
            n => Graph::Ring { n },
        })
    }

    /// All pairs, with unit weights.
    pub fn complete(n: usize) -> Result<Graph, SizeError> {
        Ok(Graph::Complete { n: SizeError::check(n)? })
    }

    /// A graph of `n` agents from undirected edges (a, b, weight), each pair once.
    pub fn from_edges(n: usize, list: &[(u32, u32, f64)]) -> Result<Graph, GraphError> {
        if u32::try_from(n).is_err() {
            return Err(GraphError::TooManyAgents);
        }
        let mut offsets = vec![0usize; n + 1];
        for (index, &(a, b, weight)) in list.iter().enumerate() {
            if let Some(agent) = [a, b].into_iter().find(|&end| end as usize >= n) {
                return Err(GraphError::NoSuchAgent { index, agent, agents: n });
            }
            if a == b {
                return Err(GraphError::SelfLoop { index });
            }
            if !(weight > 0.0 && weight.is_finite()) {
                return Err(GraphError::BadWeight { index, weight });
            }
            offsets[a as usize + 1] += 1;
            offsets[b as usize + 1] += 1;
        }
        for i in 0..n {
            offsets[i + 1] += offsets[i];
        }
        // Each slot remembers which edge of the list it came from, to name repeated pairs.
        let mut next = offsets.clone();
        let mut slots = vec![(0u32, 0usize); list.len() * 2];
        for (index, &(a, b, _)) in list.iter().enumerate() {
            for (from, to) in [(a, b), (b, a)] {
                slots[next[from as usize]] = (to, index);
                next[from as usize] += 1;
            }
        }
        for i in 0..n {
            let row = &mut slots[offsets[i]..offsets[i + 1]];
            row.sort_unstable();
            if let Some(pair) = row.windows(2).find(|pair| pair[0].0 == pair[1].0) {
                return Err(GraphError::Repeated { first: pair[0].1, second: pair[1].1 });
            }
        }
        let edges = slots.iter().map(|&(peer, index)| Edge { peer: PeerId(peer), weight: list[index].2 }).collect();
        Ok(Graph::Listed(Listed { offsets, edges }))
    }

    /// How many agents.
    pub fn agents(&self) -> usize {
        match self {
            Graph::Listed(listed) => listed.offsets.len() - 1,
            Graph::Ring { n } | Graph::Complete { n } => *n as usize,
        }
    }

    /// The neighbours of one agent.
    #[inline]
    pub fn peers(&self, agent: PeerId) -> Peers<'_> {
        match self {
            Graph::Listed(Listed { offsets, edges }) => {
                Peers::Listed(&edges[offsets[agent.index()]..offsets[agent.index() + 1]])
            }
            Graph::Ring { n } => Peers::Ring { me: agent.0, n: *n },
            Graph::Complete { n } => Peers::Complete { me: agent.0, n: *n },
        }
    }

    /// Every undirected edge once, as (a, b, weight) with a < b.
    pub fn edges(&self) -> impl Iterator<Item = (PeerId, PeerId, f64)> + '_ {
        (0..self.agents() as u32).map(PeerId).flat_map(move |a| {
            self.peers(a).iter().filter(move |edge| a < edge.peer).map(move |edge| (a, edge.peer, edge.weight))
        })
    }

    /// The number of undirected edges.
    pub fn edge_count(&self) -> usize {
        match self {
            Graph::Listed(listed) => listed.edges.len() / 2,
            Graph::Ring { n } => *n as usize,
            Graph::Complete { n } => *n as usize * (*n as usize - 1) / 2,
        }
    }

    /// Which connected component each agent is in, numbered by their smallest agent's order.
    pub fn components(&self) -> Vec<u32> {
        let n = self.agents();
        if !matches!(self, Graph::Listed(_)) {
            return vec![0; n];
        }
        let mut component = vec![u32::MAX; n];
        let mut stack = Vec::new();
        let mut found = 0;
        for root in 0..n {
            if component[root] != u32::MAX {
                continue;
            }
            component[root] = found;
            stack.push(PeerId(root as u32));
            while let Some(agent) = stack.pop() {
                for edge in self.peers(agent).iter() {
                    if component[edge.peer.index()] == u32::MAX {
                        component[edge.peer.index()] = found;
                        stack.push(edge.peer);
                    }
                }
            }
            found += 1;
        }
        component
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_see_the_same_weight() {
        let graph = Graph::from_edges(4, &[(2, 0, 0.5), (0, 1, 2.0)]).expect("a graph");
        let seen: Vec<_> = graph.peers(PeerId(0)).iter().map(|edge| (edge.peer.0, edge.weight)).collect();
        assert_eq!(seen, [(1, 2.0), (2, 0.5)]);
        assert_eq!(graph.peers(PeerId(2)).edge(0), Edge { peer: PeerId(0), weight: 0.5 });
        assert!(graph.peers(PeerId(3)).is_empty());
        assert_eq!(graph.components(), [0, 0, 0, 1]);
        assert_eq!(graph.edge_count(), graph.edges().count());
    }

    #[test]
    fn what_is_no_graph_is_refused_by_position() {
        let refused = |list: &[(u32, u32, f64)]| Graph::from_edges(3, list).expect_err("no graph");
        assert_eq!(refused(&[(0, 1, 1.0), (1, 1, 1.0)]), GraphError::SelfLoop { index: 1 });
        assert_eq!(refused(&[(0, 1, 1.0), (1, 0, 2.0)]), GraphError::Repeated { first: 0, second: 1 });
        assert_eq!(refused(&[(0, 3, 1.0)]), GraphError::NoSuchAgent { index: 0, agent: 3, agents: 3 });
        assert_eq!(refused(&[(0, 1, -1.0)]), GraphError::BadWeight { index: 0, weight: -1.0 });
        assert!(matches!(refused(&[(0, 1, f64::NAN)]), GraphError::BadWeight { .. }));
    }

    #[test]
    fn implicit_graphs_equal_their_stored_twins() {
        for n in 3..7u32 {
            for graph in [Graph::Ring { n }, Graph::Complete { n }] {
                let list: Vec<_> = graph.edges().map(|(a, b, w)| (a.0, b.0, w)).collect();
                let stored = Graph::from_edges(n as usize, &list).expect("a graph");
                for agent in (0..n).map(PeerId) {
                    assert!(graph.peers(agent).iter().eq(stored.peers(agent).iter()));
                }
                assert_eq!(graph.edge_count(), list.len());
            }
        }
    }

    #[test]
    fn small_rings_have_no_double_edges() {
        let degrees =
            |graph: Graph| -> Vec<usize> { (0..graph.agents() as u32).map(|i| graph.peers(PeerId(i)).len()).collect() };
        assert_eq!(degrees(Graph::ring(1).expect("ring")), [0]);
        assert_eq!(degrees(Graph::ring(2).expect("ring")), [1, 1]);
        assert_eq!(Graph::ring(5), Ok(Graph::Ring { n: 5 }));
        assert_eq!(Graph::complete(4), Ok(Graph::Complete { n: 4 }));
        assert_eq!(Graph::ring(0), Err(SizeError::Nobody));
    }
}
