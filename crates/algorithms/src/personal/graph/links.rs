//! The weights of one agent's pairs, and how both ends of a pair come to hold the same.
//!
//! Each pair has a *keeper*, one of its two ends. The keeper's weight is the truth and the other end has a copy. The keeper of
//! a pair changes it and says so (settle); the other end proposes a change, and the keeper takes it only if the weight it was computed
//! from still stands. So two changes at the same time never add up, and a letter that comes twice does nothing twice.
//!
//! An agent stores the pairs whose weight is not zero, and no more. To know what "still stands" without a memory of all pairs it
//! has a clock that counts its changes: each stored pair remembers the clock at its last change, and one number the clock at
//! the last time a pair was dropped. A proposal quotes the clock of the answer that it rests on; what has changed since
//! then, or may have been dropped since then, refuses it.
//!
//! A copy takes what its keeper says unless it is as of an earlier clock. A lost letter leaves a copy wrong for a while: at every wake an
//! agent puts right one of its pairs, one after another. Of a pair that it keeps it repeats the weight; of one that it does
//! not keep it asks whether it is right, and the keeper answers if not. An old letter that brings a dropped copy back is
//! found out in the same way.
//!
//! The degree is the sum of what is stored. No end ever tells the other its degree to overwrite. It is carried along with each
//! change, and summed up anew often enough that rounding stays far below what a step could notice.

use super::letter::GraphLetter;
use super::sorted_links::{Link, Position, SortedLinks};
use crate::saved;
use serde::{Deserialize, Serialize};
use sottovoce_core::{CannotResume, Cx, PeerId, Peers, Reject};
use sottovoce_privacy::{Exhausted, Public, Released};

/// Changes of weights before the degree is summed up anew.
const SUMMED_EVERY: u32 = 64;

/// What the weights of an agent come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// Its exact model and loss: each letter is revealed.
    #[default]
    Exact,
    /// Nothing but what it has released: letters are post-processing.
    Released,
}

/// One agent's pairs of positive weight.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Links {
    me: PeerId,
    /// Never read from bytes, which could be damaged: whoever resumes an agent says it again.
    #[serde(skip)]
    origin: Origin,
    links: SortedLinks,
    /// d_u, carried along.
    degree: f64,
    /// The largest degree since it was last summed up, and how many changes ago that was.
    peak: f64,
    changes: u32,
    /// Changes of pairs that this agent keeps.
    clock: u64,
    /// The clock when a pair that this agent keeps was last dropped.
    dropped: u64,
    /// Peers whose weight has changed since [`Links::changed`] was last emptied.
    changed: Vec<PeerId>,
    /// The largest change of a weight since the last wake.
    moved: f64,
    /// Whose pair was put right last.
    turn: PeerId,
}

/// The end that keeps a pair; each of an agent's pairs is kept by either end about equally often.
fn keeper(a: PeerId, b: PeerId) -> PeerId {
    if (a.0 ^ b.0) & 1 == 0 { a.min(b) } else { a.max(b) }
}

impl Links {
    /// No pairs yet, of an agent that tells its exact model and loss.
    pub fn new(me: PeerId) -> Self {
        Links {
            me,
            origin: Origin::Exact,
            links: SortedLinks::default(),
            degree: 0.0,
            peak: 0.0,
            changes: 0,
            clock: 0,
            dropped: 0,
            changed: Vec::new(),
            moved: 0.0,
            turn: me,
        }
    }

    /// Refuses what these pairs of this agent cannot be.
    pub(super) fn check(&self, me: PeerId, peers: Peers<'_>) -> Result<(), CannotResume> {
        saved::check(self.me == me && saved::is_count(self.clock) && self.dropped <= self.clock)?;
        saved::check(saved::are_neighbours(peers, self.links.iter().map(|link| link.peer)))?;
        let possible =
            |link: Link| saved::is_weight(link.weight) && (!self.keeps(link.peer) || link.as_of <= self.clock);
        saved::check(self.links.iter().all(possible))?;
        let known = self.changed.iter().all(|peer| peers.position(*peer).is_some());
        saved::check(known && self.moved >= 0.0 && self.moved.is_finite())
    }

    /// The same pairs, from another origin on.
    pub(super) fn of(self, origin: Origin) -> Self {
        Links { origin, ..self }
    }

    /// What the weights come from.
    pub(super) fn origin(&self) -> Origin {
        self.origin
    }

    /// w_uv.
    pub fn weight(&self, peer: PeerId) -> f64 {
        self.links.find(peer).map_or(0.0, |at| self.links.at(at).weight)
    }

    /// d_u.
    pub fn degree(&self) -> f64 {
        self.degree
    }

    /// The pairs of positive weight, by increasing peer.
    pub fn iter(&self) -> impl Iterator<Item = (PeerId, f64)> + '_ {
        self.links.iter().map(|link| (link.peer, link.weight))
    }

    /// How many pairs have a positive weight.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Whether no pair has a positive weight.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Whether this agent keeps the pair.
    pub fn keeps(&self, peer: PeerId) -> bool {
        keeper(self.me, peer) == self.me
    }

    /// What an answer says about this agent's changes so far.
    pub fn clock(&self) -> u64 {
        self.clock
    }

    /// Peers whose weight has changed; to be emptied by whoever acts on them. A peer may be there twice.
    pub fn changed(&mut self) -> &mut Vec<PeerId> {
        &mut self.changed
    }

    /// The largest change of a weight since the last call.
    pub fn take_moved(&mut self) -> f64 {
        std::mem::take(&mut self.moved)
    }

    /// Reads a word of what a letter from this peer will need.
    pub(super) fn anticipate(&self, peer: PeerId) {
        self.links.anticipate(peer);
    }

    /// Changes a pair to `weight`, in an update that rests on what its keeper said `as_of`: at once, or by a proposal.
    pub fn change(&mut self, peer: PeerId, weight: f64, as_of: u64, cx: &mut Cx<'_>) -> Result<(), Exhausted> {
        if self.keeps(peer) {
            self.settle(peer, self.links.find(peer), weight, cx)
        } else {
            send(peer, GraphLetter::Propose { as_of, weight }, self.origin, cx)
        }
    }

    /// Another agent's proposal.
    pub fn proposed(&mut self, peer: PeerId, weight: f64, as_of: u64, cx: &mut Cx<'_>) -> Result<(), Reject> {
        if !self.keeps(peer) {
            return Err(Reject::Malformed);
        }
        let position = self.links.find(peer);
        let last = position.map_or(self.dropped, |at| self.links.at(at).as_of);
        if as_of > self.clock || as_of < last {
            return Err(Reject::OutOfTurn);
        }
        Ok(self.settle(peer, position, weight, cx)?)
    }

    /// What the keeper of a pair says.
    pub fn settled(&mut self, peer: PeerId, weight: f64, as_of: u64) -> Result<(), Reject> {
        if self.keeps(peer) {
            return Err(Reject::Malformed);
        }
        let position = self.links.find(peer);
        if position.is_ok_and(|at| as_of < self.links.at(at).as_of) {
            return Err(Reject::OutOfTurn);
        }
        self.store(peer, position, weight, as_of);
        Ok(())
    }

    /// Another agent wants to know whether its copy is right. Only a wrong one is answered.
    pub fn checked(&mut self, peer: PeerId, weight: f64, cx: &mut Cx<'_>) -> Result<(), Reject> {
        if !self.keeps(peer) {
            return Err(Reject::Malformed);
        }
        let truth = self.weight(peer);
        if truth.to_bits() != weight.to_bits() {
            send(peer, GraphLetter::Settle { as_of: self.clock, weight: truth }, self.origin, cx)?;
        }
        Ok(())
    }

    /// Puts right the next pair: all of them in as many wakes as there are.
    pub fn put_right(&mut self, cx: &mut Cx<'_>) -> Result<(), Exhausted> {
        if self.links.is_empty() {
            return Ok(());
        }
        let next = self.links.find(self.turn).map_or_else(|at| at, |at| at + 1) % self.links.len();
        let Link { peer, weight, .. } = self.links.at(next);
        self.turn = peer;
        if self.keeps(peer) {
            send(peer, GraphLetter::Settle { as_of: self.clock, weight }, self.origin, cx)
        } else {
            send(peer, GraphLetter::Check { weight }, self.origin, cx)
        }
    }

    fn settle(&mut self, peer: PeerId, position: Position, weight: f64, cx: &mut Cx<'_>) -> Result<(), Exhausted> {
        let as_of = self.clock + 1;
        send(peer, GraphLetter::Settle { as_of, weight }, self.origin, cx)?;
        self.clock = as_of;
        if weight == 0.0 {
            self.dropped = as_of;
        }
        self.store(peer, position, weight, as_of);
        Ok(())
    }

    fn store(&mut self, peer: PeerId, position: Position, weight: f64, as_of: u64) {
        let old = position.map_or(0.0, |at| self.links.at(at).weight);
        self.links.store(position, Link { peer, weight, as_of });
        if weight != old {
            self.moved = self.moved.max((weight - old).abs());
            self.changed.push(peer);
            self.carry_degree(weight - old);
        }
    }

    /// Each change rounds by at most half a unit in the last place of the peak, so the degree is right to a relative
    /// SUMMED_EVERY 2^-52.
    fn carry_degree(&mut self, change: f64) {
        self.degree += change;
        self.peak = self.peak.max(self.degree);
        self.changes += 1;
        if self.changes >= SUMMED_EVERY || self.degree < 0.5 * self.peak {
            self.degree = self.links.iter().map(|link| link.weight).sum();
            (self.peak, self.changes) = (self.degree, 0);
        }
    }
}

/// Sends a letter about the graph.
#[inline]
pub(super) fn send(to: PeerId, letter: GraphLetter<'_>, origin: Origin, cx: &mut Cx<'_>) -> Result<(), Exhausted> {
    let letter = match origin {
        // PRIVACY: weights follow from the exact models and losses of both ends, and answers hold them: epsilon = infinity.
        Origin::Exact => cx.gate.reveal(letter)?,
        // PRIVACY: weights, degrees and clocks follow from letters and from what this agent has released, and answers hold
        // that: `GraphLearning::hear` takes nothing else of such an agent. Proof: `crates/privacy/proofs/private-graph.md`.
        Origin::Released => Released::from(Public::declare(letter)),
    };
    cx.outbox.send(to, letter);
    Ok(())
}
