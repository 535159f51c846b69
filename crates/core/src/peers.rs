//! Who an agent's neighbours are.

use crate::Coin;
use serde::{Deserialize, Serialize};

/// One participant, as its driver numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PeerId(pub u32);

impl PeerId {
    /// As an index into a driver's tables.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A neighbour and the weight of the edge to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Edge {
    /// The neighbour.
    pub peer: PeerId,
    /// W_ij > 0.
    pub weight: f64,
}

/// An agent's neighbours. Implicit graphs store no edges; all their weights are one.
#[derive(Clone, Copy, Debug)]
pub enum Peers<'a> {
    /// A stored list, sorted by peer.
    Listed(&'a [Edge]),
    /// The two neighbours on a cycle of n >= 3 agents.
    Ring {
        /// This agent.
        me: u32,
        /// Agents in all.
        n: u32,
    },
    /// Everyone else.
    Complete {
        /// This agent.
        me: u32,
        /// Agents in all.
        n: u32,
    },
}

impl<'a> Peers<'a> {
    /// |N_i|.
    #[inline]
    pub fn len(&self) -> usize {
        match *self {
            Peers::Listed(edges) => edges.len(),
            Peers::Ring { .. } => 2,
            Peers::Complete { n, .. } => n as usize - 1,
        }
    }

    /// Whether this agent is isolated.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The neighbour at position `k < len()`, in increasing order of peers.
    #[inline]
    pub fn edge(&self, k: usize) -> Edge {
        match *self {
            Peers::Listed(edges) => edges[k],
            Peers::Ring { me, n } => {
                let (left, right) = ((me + n - 1) % n, (me + 1) % n);
                Edge { peer: PeerId(if k == 0 { left.min(right) } else { left.max(right) }), weight: 1.0 }
            }
            Peers::Complete { me, .. } => Edge { peer: PeerId(k as u32 + u32::from(k as u32 >= me)), weight: 1.0 },
        }
    }

    /// All neighbours.
    pub fn iter(&self) -> impl Iterator<Item = Edge> + use<'a> {
        let this = *self;
        (0..this.len()).map(move |k| this.edge(k))
    }

    /// The position of `peer`, if it is a neighbour.
    #[inline]
    pub fn position(&self, peer: PeerId) -> Option<usize> {
        match *self {
            Peers::Listed(edges) => edges.binary_search_by_key(&peer, |edge| edge.peer).ok(),
            Peers::Ring { .. } => (0..2).find(|&k| self.edge(k).peer == peer),
            Peers::Complete { me, n } if peer.0 < n && peer.0 != me => Some(peer.index() - usize::from(peer.0 > me)),
            Peers::Complete { .. } => None,
        }
    }

    /// Peer sampling: `count` distinct neighbours, or all where there are no more, into `out`. Every set of that size is
    /// equally likely; the order within it is not random. Of everyone else, on a complete graph.
    pub fn sample(&self, count: usize, coin: &mut Coin, out: &mut Vec<PeerId>) {
        out.clear();
        let all = self.len();
        // Floyd's algorithm: as many draws as peers wanted, and no list of those there are.
        for last in all.saturating_sub(count)..all {
            let drawn = self.edge(coin.below(last + 1)).peer;
            out.push(if out.contains(&drawn) { self.edge(last).peer } else { drawn });
        }
    }

    /// D_ii, the sum of the weights.
    pub fn weighted_degree(&self) -> f64 {
        match *self {
            Peers::Listed(edges) => edges.iter().map(|edge| edge.weight).sum(),
            _ => self.len() as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implicit_neighbours_are_sorted_distinct_and_found_again() {
        for n in 3..8 {
            for me in 0..n {
                for peers in [Peers::Ring { me, n }, Peers::Complete { me, n }] {
                    let ids: Vec<_> = peers.iter().map(|edge| edge.peer).collect();
                    assert!(ids.windows(2).all(|pair| pair[0] < pair[1]), "{peers:?}: {ids:?}");
                    assert!(!ids.contains(&PeerId(me)));
                    for (k, &id) in ids.iter().enumerate() {
                        assert_eq!(peers.position(id), Some(k));
                    }
                    assert_eq!(peers.position(PeerId(me)), None);
                    assert_eq!(peers.position(PeerId(n)), None);
                    assert_eq!(peers.weighted_degree(), ids.len() as f64);
                }
            }
        }
    }
    /// All ten pairs of five neighbours come up equally often: chi-square with 9 degrees of freedom, bound at 1e-3.
    #[test]
    fn every_sample_is_equally_likely_and_without_repetition() {
        let peers = Peers::Complete { me: 2, n: 6 };
        let mut counts = std::collections::BTreeMap::new();
        let mut sample = Vec::new();
        for event in 0..20_000 {
            peers.sample(2, &mut Coin::new(3, 2, event), &mut sample);
            sample.sort_unstable();
            *counts.entry(sample.clone()).or_insert(0.0) += 1.0;
        }
        assert_eq!(counts.len(), 10);
        assert!(counts.keys().all(|pair| pair[0] < pair[1] && !pair.contains(&PeerId(2))));
        let chi2: f64 = counts.values().map(|count: &f64| (count - 2000.0) * (count - 2000.0) / 2000.0).sum();
        assert!(chi2 < 27.9, "{chi2}");
        peers.sample(9, &mut Coin::new(3, 2, 0), &mut sample);
        sample.sort_unstable();
        assert_eq!(sample, [0, 1, 3, 4, 5].map(PeerId));
        Peers::Listed(&[]).sample(2, &mut Coin::new(3, 2, 0), &mut sample);
        assert_eq!(sample, []);
    }
}
