//! What an agent knows of neighbours that come and go: the weights of their edges, and copies of their models.

use crate::saved;
use serde::{Deserialize, Serialize};
use sottovoce_core::{CannotResume, PeerId, Peers, Reject, wire::Numbers};

/// The neighbours, sorted by peer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Copies(Vec<Neighbour>);

/// One neighbour.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Neighbour {
    pub peer: PeerId,
    pub weight: f64,
    copy: Vec<f64>,
    /// One more than the version of the copy; zero while nothing is known.
    heard: u64,
}

impl Neighbour {
    /// Its model, once it has been heard.
    pub fn model(&self) -> Option<&[f64]> {
        (self.heard > 0).then_some(&self.copy[..])
    }
}

impl Copies {
    /// Refuses what the neighbours of an agent cannot be.
    pub fn check(&self, dimension: usize, peers: Peers<'_>) -> Result<(), CannotResume> {
        let known =
            |neighbour: &Neighbour| saved::is_weight(neighbour.weight) && saved::is_vector(&neighbour.copy, dimension);
        saved::check(self.0.iter().all(known))?;
        saved::check(saved::are_neighbours(peers, self.0.iter().map(|neighbour| neighbour.peer)))
    }

    /// All of them, by increasing peer.
    pub fn iter(&self) -> impl Iterator<Item = &Neighbour> {
        self.0.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The sum of the weights.
    pub fn degree(&self) -> f64 {
        self.0.iter().map(|neighbour| neighbour.weight).sum()
    }

    /// The weight of a neighbour and its model. Of one that has not been heard nothing is known: it does not pull, and `own` stands in.
    #[inline]
    pub fn row<'a>(&'a self, k: usize, own: &'a [f64]) -> (f64, &'a [f64]) {
        let neighbour = &self.0[k];
        (neighbour.weight, neighbour.model().unwrap_or(own))
    }

    /// Refuses who is no neighbour.
    pub fn expect(&self, peer: PeerId) -> Result<(), Reject> {
        self.position(peer).map(drop).map_err(|_| Reject::NotANeighbour)
    }

    /// Keeps a neighbour's model, unless a later one is known.
    pub fn keep(&mut self, from: PeerId, version: u64, model: Numbers<'_>) -> Result<(), Reject> {
        let at = self.position(from).map_err(|_| Reject::NotANeighbour)?;
        let heard = version.checked_add(1).ok_or(Reject::Malformed)?;
        let neighbour = &mut self.0[at];
        if heard < neighbour.heard {
            return Err(Reject::OutOfTurn);
        }
        model.copy_to(&mut neighbour.copy)?;
        neighbour.heard = heard;
        Ok(())
    }

    /// The weight of an edge is another now: zero where it is gone. Returns whether the neighbour is new.
    pub fn relink(&mut self, peer: PeerId, weight: f64, dimension: usize) -> bool {
        match self.position(peer) {
            Ok(at) if weight > 0.0 => self.0[at].weight = weight,
            Ok(at) => drop(self.0.remove(at)),
            Err(at) if weight > 0.0 => {
                self.0.insert(at, Neighbour { peer, weight, copy: vec![0.0; dimension], heard: 0 });
                return true;
            }
            Err(_) => {}
        }
        false
    }

    fn position(&self, peer: PeerId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&peer, |neighbour| neighbour.peer)
    }
}
