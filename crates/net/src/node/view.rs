//! What can be read of a peer, by its owner and by its driver.

use super::{Counters, Neighbour, Node, Phase, STILL_WAKES};
use crate::disk::Disk;
use crate::group::Group;
use sottovoce_core::{Algorithm, UNHEARD};
use sottovoce_privacy::{Ledger, Noise, Simulated};

impl<A: Algorithm, D: Disk, N: Noise + 'static> Node<'_, A, D, N> {
    /// The agent's model, for its owner; none before it has entered.
    pub fn model(&self) -> Option<&[f64]> {
        let own: &[f64] = if self.versions.row_len() == 0 { &[] } else { self.versions.row(self.mine as usize) };
        match &self.phase {
            Phase::Awake(state) => Some(self.algorithm.model(state, own)),
            _ => None,
        }
    }

    /// What has been released so far.
    pub fn ledger(&self) -> &Ledger {
        self.gate.ledger()
    }

    /// Whom it learns with.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Its neighbours, by position.
    pub fn neighbours(&self) -> impl Iterator<Item = Neighbour<'_>> {
        let heard = |k: usize| (self.seen[k] != UNHEARD).then(|| self.versions.row(self.seen[k] as usize));
        self.others.iter().enumerate().map(move |(k, other)| Neighbour {
            name: self.group.name(k),
            weight: self.group.peers().edge(k).weight,
            post: other.seen.post,
            points: other.points,
            values: heard(k),
        })
    }

    /// What happened.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Wakes so far, in all processes.
    pub fn wakes(&self) -> u64 {
        self.wakes
    }

    /// The largest change of a coordinate at the last wake, if there was one in this process.
    pub fn moved(&self) -> Option<f64> {
        self.moved.is_finite().then_some(self.moved)
    }

    /// How many releases its plan has; none without privacy.
    pub fn planned(&self) -> Option<u64> {
        self.rules.plan.as_ref().map(|plan| plan.releases())
    }

    /// Events so far, in all processes.
    pub fn events_so_far(&self) -> u64 {
        self.events
    }

    /// The number of its last post; zero before the first.
    pub fn post_number(&self) -> u64 {
        self.post_number
    }

    /// The highest number of a message.
    pub fn last_number(&self) -> u64 {
        self.last_number
    }

    /// Whether it still asks what others have seen.
    pub fn is_asking(&self) -> bool {
        matches!(self.phase, Phase::Asking(_))
    }

    /// Whether it has nothing to do: it and its neighbours have not moved for a while, or it has had all its wakes, or, where these
    /// are not counted, its plan is done.
    pub fn is_quiet(&self) -> bool {
        let planned = || self.rules.plan.as_ref().is_some_and(|plan| self.gate.ledger().releases() == plan.releases());
        let still = self.rules.tolerance.is_some() && self.still >= STILL_WAKES;
        !self.is_asking() && (still || self.rules.wakes_max.map_or_else(planned, |most| self.wakes >= most))
    }

    /// Whether every neighbour has got everything.
    pub fn is_delivered(&self) -> bool {
        self.others.iter().all(|other| other.letters.is_empty() && !other.wants_post)
    }
}

impl<A: Algorithm, D> Node<'_, A, D, Simulated> {
    /// The noise of an audited node, which remembers inputs of mechanisms: exact values, that only an audit may see.
    pub fn noise(&self) -> &Simulated {
        self.gate.noise()
    }
}
