//! On which graphs swaps bring every observation to every node.

use crate::config::ConfigError;
use sottovoce_core::{Graph, PeerId};

/// What is known of swaps on a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mixing {
    /// Theorem 3.1 of the thesis holds: the graph of nodes is connected and not bipartite.
    Proven,
    /// The graph of nodes is connected but bipartite, which the theorem excludes. With one swap at a time only two nodes that always swap with each other
    /// are periodic, and these are refused; so estimates converge, at a rate that the theorem does not promise.
    Bipartite,
}

/// Whether the nodes of these agents, who have so many rows each, all come to hold each other's observations.
///
/// # Errors
/// When an agent has no row, when there are fewer than three nodes, and when the graph is not connected: each component would estimate the statistic of
/// its own observations.
pub fn check_graph(graph: &Graph, rows: impl Fn(PeerId) -> usize) -> Result<Mixing, ConfigError> {
    let refuse = |field, value, accepted| Err(ConfigError { field, value, accepted });
    let agents = || (0..graph.agents() as u32).map(PeerId);
    if let Some(agent) = agents().find(|&agent| rows(agent) == 0) {
        return refuse("rows", format!("none at agent {}", agent.0), "at least one row for each agent");
    }
    let nodes: usize = agents().map(&rows).sum();
    if nodes < 3 {
        return refuse("rows", nodes.to_string(), "three or more in all");
    }
    let components = graph.components().into_iter().max().map_or(0, |last| last + 1);
    if components > 1 {
        return refuse("graph", format!("{components} separate parts"), "a connected graph");
    }
    // Nodes of one agent are joined with each other and with those of its neighbours: two of one agent and a third one are a triangle.
    let is_triangle = agents().any(|agent| rows(agent) > 1);
    Ok(if is_triangle || !is_bipartite(graph) { Mixing::Proven } else { Mixing::Bipartite })
}

/// Whether two colours are enough to tell all neighbours apart.
pub fn is_bipartite(graph: &Graph) -> bool {
    let mut colours: Vec<Option<bool>> = vec![None; graph.agents()];
    let mut stack = Vec::new();
    for root in 0..graph.agents() {
        if colours[root].is_some() {
            continue;
        }
        stack.push((PeerId(root as u32), true));
        while let Some((agent, colour)) = stack.pop() {
            match colours[agent.index()] {
                Some(known) if known != colour => return false,
                Some(_) => {}
                None => {
                    colours[agent.index()] = Some(colour);
                    stack.extend(graph.peers(agent).iter().map(|edge| (edge.peer, !colour)));
                }
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::{circulant, torus};

    fn edges(n: usize, edges: &[(u32, u32)]) -> Graph {
        let edges: Vec<_> = edges.iter().map(|&(a, b)| (a, b, 1.0)).collect();
        Graph::from_edges(n, &edges).expect("a graph")
    }

    #[test]
    fn connected_graphs_with_an_odd_cycle_are_proven_and_two_rows_make_one() {
        let one_each = |graph: &Graph| check_graph(graph, |_| 1);
        assert_eq!(one_each(&Graph::complete(3).expect("a graph")), Ok(Mixing::Proven));
        assert_eq!(one_each(&Graph::ring(7).expect("a graph")), Ok(Mixing::Proven));
        assert_eq!(one_each(&torus(5, 6).expect("a graph")), Ok(Mixing::Proven));
        assert_eq!(one_each(&circulant(8, 4).expect("a graph")), Ok(Mixing::Proven));
        for bipartite in [Graph::ring(8).expect("a graph"), torus(4, 6).expect("a graph"), edges(3, &[(0, 1), (1, 2)])]
        {
            assert_eq!(one_each(&bipartite), Ok(Mixing::Bipartite), "{bipartite:?}");
            assert_eq!(check_graph(&bipartite, |agent| 1 + usize::from(agent.0 == 1)), Ok(Mixing::Proven));
        }
    }

    #[test]
    fn what_cannot_be_estimated_is_refused_in_one_line() {
        let refused = |graph: &Graph, rows: &[usize]| {
            check_graph(graph, |agent| rows[agent.index()]).expect_err("refused").to_string()
        };
        let apart = edges(4, &[(0, 1), (2, 3)]);
        assert_eq!(refused(&apart, &[1; 4]), "graph is 2 separate parts; a connected graph would be accepted");
        let pair = edges(2, &[(0, 1)]);
        assert_eq!(refused(&pair, &[1, 1]), "rows is 2; three or more in all would be accepted");
        assert_eq!(
            refused(&pair, &[3, 0]),
            "rows is none at agent 1; at least one row for each agent would be accepted"
        );
        assert_eq!(refused(&edges(1, &[]), &[1]), "rows is 1; three or more in all would be accepted");
        assert_eq!(check_graph(&edges(1, &[]), |_| 3), Ok(Mixing::Proven));
    }
}
