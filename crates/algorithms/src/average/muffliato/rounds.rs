//! Rounds of gossip: what everyone holds becomes a mean of what its neighbours hold, some rounds for each average, one average after the other.

use super::{MuffliatoLetter, known};
use crate::saved;
use serde::{Deserialize, Serialize};
use sottovoce_core::wire::{NUMBER_MAX, Numbers};
use sottovoce_core::{CannotResume, Cx, Outbox, PeerId, Peers, Reject};
use sottovoce_privacy::{Public, Released};

/// What a member remembers of its rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Exchange {
    /// How many rounds it has mixed, of all averages together.
    round: u32,
    /// x(t); empty before it has begun.
    mass: Vec<f64>,
    /// x(t-1); empty before the first round of an average.
    before: Vec<f64>,
    /// By neighbour.
    links: Vec<Link>,
}

/// What it remembers of one neighbour.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Link {
    peer: PeerId,
    /// How many neighbours that one has; zero before its first letter.
    degree: u32,
    /// Its x(t), and x(t+1) if it is ahead.
    heard: Vec<Vec<f64>>,
}

/// So many rounds of a neighbour are kept: it cannot be further ahead.
const AHEAD_MAX: usize = 2;

impl Exchange {
    /// Of a member with these neighbours, before it has begun.
    pub fn new(peers: Peers<'_>) -> Self {
        let link = |peer| Link { peer, degree: 0, heard: Vec::new() };
        let links = peers.iter().map(|edge| link(edge.peer)).collect();
        Exchange { round: 0, mass: Vec::new(), before: Vec::new(), links }
    }

    /// How many rounds it has mixed, of all averages together.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// x(t).
    pub fn mass(&self) -> &[f64] {
        &self.mass
    }

    /// Whether it has no neighbours.
    pub fn is_alone(&self) -> bool {
        self.links.is_empty()
    }

    /// Begins an average: x(0), of which its neighbours are to be told.
    pub fn begin(&mut self, first: Released<Vec<f64>>) {
        self.mass = first.into_inner();
        self.before.clear();
    }

    /// Sends x(t) to all neighbours, by `send`, in a letter of the algorithm.
    pub fn tell(&self, cx: &mut Cx<'_>, send: impl Fn(&mut Outbox, PeerId, Released<MuffliatoLetter<'_>>)) {
        // PRIVACY: what this member released, or computed from that and from what its neighbours sent: post-processing.
        let mass = known(self.mass.clone());
        let degree = cx.peers.len() as u32;
        for to in cx.peers.iter().map(|edge| edge.peer) {
            let letter = mass.as_ref().with_public(Public::declare((self.round, degree)), |(round, degree), mass| {
                MuffliatoLetter { round, degree, mass: Numbers::Plain(mass) }
            });
            send(cx.outbox, to, letter);
        }
    }

    /// Takes in what a neighbour holds, of so many rounds in all.
    pub fn hear(
        &mut self,
        from: PeerId,
        letter: MuffliatoLetter<'_>,
        len: usize,
        rounds_in_all: u32,
    ) -> Result<(), Reject> {
        let link = self.links.iter_mut().find(|link| link.peer == from).ok_or(Reject::NotANeighbour)?;
        if letter.mass.len() != len {
            return Err(Reject::WrongDimension);
        }
        let expected = self.round + link.heard.len() as u32;
        if letter.round != expected || expected >= rounds_in_all || link.heard.len() >= AHEAD_MAX {
            return Err(Reject::OutOfTurn);
        }
        // A degree is a fact of the graph, and never changes.
        if link.degree != 0 && link.degree != letter.degree {
            return Err(Reject::Malformed);
        }
        link.degree = letter.degree;
        link.heard.push(letter.mass.iter().collect());
        Ok(())
    }

    /// Mixes one round if there is one left of this average, of so many rounds, and all neighbours have been heard of: x(t+1), from x(t) of this member
    /// and its neighbours, and x(t-1). Returns whether it did.
    pub fn mixes(&mut self, rounds: u32, gamma: f64) -> bool {
        let is_over = self.round.is_multiple_of(rounds) && !self.before.is_empty();
        if is_over || self.mass.is_empty() || self.links.iter().any(|link| link.heard.is_empty()) {
            return false;
        }
        let degree = self.links.len() as f64;
        let mut home = 1.0;
        let mut next = vec![0.0; self.mass.len()];
        for link in &mut self.links {
            let weight = 1.0 / (1.0 + degree.max(f64::from(link.degree)));
            home -= weight;
            next.iter_mut().zip(link.heard.remove(0)).for_each(|(next, theirs)| *next += weight * theirs);
        }
        next.iter_mut().zip(&self.mass).for_each(|(next, mine)| *next += home * mine);
        if !self.before.is_empty() {
            let last = next.iter_mut().zip(&self.before);
            last.for_each(|(next, before)| *next = gamma * *next + (1.0 - gamma) * before);
        }
        self.before = std::mem::replace(&mut self.mass, next);
        self.round += 1;
        true
    }

    /// Refuses what no run could have saved.
    pub fn check(&self, peers: Peers<'_>, len: usize, rounds: u32, rounds_in_all: u32) -> Result<(), CannotResume> {
        let is_mass = |values: &[f64]| saved::is_vector(values, len) && values.iter().all(|x| x.abs() <= NUMBER_MAX);
        let has_begun = !self.mass.is_empty();
        saved::check(has_begun != self.links.is_empty() && (!has_begun || is_mass(&self.mass)))?;
        let may_be_first = self.round.is_multiple_of(rounds);
        let may_be_later = self.round > 0;
        saved::check(if self.before.is_empty() { may_be_first } else { may_be_later && is_mass(&self.before) })?;
        saved::check(self.round <= rounds_in_all && self.links.len() == peers.len())?;
        saved::check(saved::are_neighbours(peers, self.links.iter().map(|link| link.peer)))?;
        let is_sound = |link: &Link| {
            let heard = self.round as usize + link.heard.len();
            link.heard.len() <= AHEAD_MAX
                && heard <= rounds_in_all as usize
                && (link.degree > 0) == (heard > 0)
                && link.heard.iter().all(|mass| is_mass(mass))
        };
        saved::check(self.links.iter().all(is_sound))
    }
}
