//! What an agent can read of the latest released vectors.

use crate::{Edge, PeerId, Peers};
use serde::{Deserialize, Serialize};

/// Vectors of one length, one after another. Read from bytes, they may have any number of values: see [`Rows::values`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rows {
    len: usize,
    values: Vec<f64>,
}

impl Rows {
    /// `count` zero vectors of length `len`.
    pub fn zeros(count: usize, len: usize) -> Self {
        Rows { len, values: vec![0.0; count * len] }
    }

    /// Numbers per row.
    pub fn row_len(&self) -> usize {
        self.len
    }

    /// How many rows there are. Rows of length zero are not counted.
    pub fn count(&self) -> usize {
        self.values.len().checked_div(self.len).unwrap_or(0)
    }

    /// Row `k`.
    #[inline]
    pub fn row(&self, k: usize) -> &[f64] {
        &self.values[k * self.len..][..self.len]
    }

    /// Row `k`, to be overwritten.
    #[inline]
    pub fn row_mut(&mut self, k: usize) -> &mut [f64] {
        &mut self.values[k * self.len..][..self.len]
    }

    /// Adds a zero row and returns its number.
    pub fn push_zero(&mut self) -> usize {
        let k = self.count();
        self.values.resize(self.values.len() + self.len, 0.0);
        k
    }

    /// All numbers, row after row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// All numbers, to be cut into disjoint pieces and overwritten.
    pub fn values_mut(&mut self) -> &mut [f64] {
        &mut self.values
    }
}

/// The version that stands for a post that never came: zeros.
pub const UNHEARD: u32 = 0;

/// The latest posts an agent knows: its own and, per neighbour, the one with the highest sequence number
/// that reached it. A neighbour that has not been heard yet reads as the zero vector; see [`Posts::heard`].
#[derive(Clone, Copy, Debug)]
pub enum Posts<'a> {
    /// Nothing has been heard from anyone, itself included: how every agent starts.
    Unheard {
        /// The zero vector.
        zero: &'a [f64],
    },
    /// Every post reaches everyone at once, so one row per agent is enough.
    Board {
        /// One row per agent.
        rows: &'a Rows,
        /// The agent that reads.
        me: PeerId,
    },
    /// Posts travel on their own over each edge.
    PerEdge {
        /// Versions that some agent still sees; the first is [`UNHEARD`].
        versions: &'a Rows,
        /// The version that is this agent's own last post.
        mine: u32,
        /// By position of the neighbour: the version it last delivered here.
        seen: &'a [u32],
    },
}

impl<'a> Posts<'a> {
    /// This agent's own last post.
    #[inline]
    pub fn mine(&self) -> &'a [f64] {
        match *self {
            Posts::Unheard { zero } => zero,
            Posts::Board { rows, me } => rows.row(me.index()),
            Posts::PerEdge { versions, mine, .. } => versions.row(mine as usize),
        }
    }

    /// Whether the neighbour at position `k` has been heard at all. With instant delivery nobody misses anything.
    #[inline]
    pub fn heard(&self, k: usize) -> bool {
        match *self {
            Posts::Unheard { .. } => false,
            Posts::Board { .. } => true,
            Posts::PerEdge { seen, .. } => seen[k] != UNHEARD,
        }
    }

    /// The weight of the agent's neighbour at position `k`, and the last post heard from it.
    #[inline]
    pub fn last(&self, peers: Peers<'_>, k: usize) -> (f64, &'a [f64]) {
        let Edge { peer, weight } = peers.edge(k);
        let post = match *self {
            Posts::Unheard { zero } => zero,
            Posts::Board { rows, .. } => rows.row(peer.index()),
            Posts::PerEdge { versions, seen, .. } => versions.row(seen[k] as usize),
        };
        (weight, post)
    }
}
