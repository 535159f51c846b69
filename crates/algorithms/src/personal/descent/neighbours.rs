//! Where the mean of the neighbours' models comes from, sum_j W_ij / D_ii Theta_j.
//!
//! | | neighbours | models | one that has not been heard |
//! |---|---|---|---|
//! | [`Posted`] | the graph's | their posts, which the driver keeps | is at zero, where all models start there; else unknown |
//! | [`Copied`] | come and go | the agent's own copies | is unknown |
//!
//! A model that is unknown does not pull: the agent's own stands in for it.

use crate::saved;
use serde::{Deserialize, Serialize};
use sottovoce_core::{CannotResume, PeerId, Peers, Posts, Reject, wire::Numbers};

/// The models that pull at an agent's, and the weights of the edges to them.
pub trait NeighbourModels {
    /// How many there are.
    fn count(&self) -> usize;

    /// A weight and a model; `own` may stand in for it.
    fn row<'a>(&'a self, k: usize, own: &'a [f64]) -> (f64, &'a [f64]);

    /// `share` times the mean of the models.
    fn mean(&self, share: f64) -> Pull;
}

/// A share of the mean of the neighbours' models, as own Theta_i + each sum_j W_ij Theta_j.
#[derive(Clone, Copy, Debug)]
pub struct Pull {
    /// The whole share where there is no neighbour, and the agent's own model stands in; else zero.
    pub own: f64,
    /// share / D_ii.
    pub each: f64,
}

/// NeighbourModels in a graph that is known, and their posts.
#[derive(Clone, Copy)]
pub struct Posted<'a> {
    /// The graph's.
    pub peers: Peers<'a>,
    /// The latest ones.
    pub posts: Posts<'a>,
    /// 1 / D_ii.
    pub inverse_degree: f64,
    /// Whether one that has not been heard is known to be at zero.
    pub unheard_at_zero: bool,
}

impl NeighbourModels for Posted<'_> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.peers.len()
    }

    #[inline(always)]
    fn row<'a>(&'a self, k: usize, own: &'a [f64]) -> (f64, &'a [f64]) {
        let (weight, post) = self.posts.last(self.peers, k);
        (weight, if self.unheard_at_zero || self.posts.heard(k) { post } else { own })
    }

    #[inline(always)]
    fn mean(&self, share: f64) -> Pull {
        Pull { own: 0.0, each: share * self.inverse_degree }
    }
}

/// NeighbourModels of the moment, and copies of their models.
#[derive(Clone, Copy)]
pub struct Copied<'a> {
    copies: &'a Copies,
    /// D_ii.
    degree: f64,
}

impl<'a> Copied<'a> {
    /// What an agent knows of them.
    pub fn new(copies: &'a Copies) -> Self {
        Copied { copies, degree: copies.0.iter().map(|neighbour| neighbour.weight).sum() }
    }
}

impl NeighbourModels for Copied<'_> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.copies.0.len()
    }

    #[inline(always)]
    fn row<'a>(&'a self, k: usize, own: &'a [f64]) -> (f64, &'a [f64]) {
        let neighbour = &self.copies.0[k];
        (neighbour.weight, neighbour.model().unwrap_or(own))
    }

    #[inline(always)]
    fn mean(&self, share: f64) -> Pull {
        if self.degree > 0.0 { Pull { own: 0.0, each: share / self.degree } } else { Pull { own: share, each: 0.0 } }
    }
}

/// What an agent knows of neighbours that come and go: the weights of their edges, and copies of their models. Sorted by peer.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Copies(Vec<Neighbour>);

/// One neighbour.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Neighbour {
    /// Who it is.
    pub peer: PeerId,
    /// W_ij.
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
