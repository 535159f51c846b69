//! What can be read of a peer, by its owner and by its driver.

use super::{KnownNeighbour, Node, NodeCounters, Phase, STILL_WAKES};
use crate::disk::Disk;
use crate::group::Group;
use sottovoce_core::{Algorithm, Time, UNHEARD};
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

    /// Those in reach, by position.
    pub fn neighbours(&self) -> impl Iterator<Item = KnownNeighbour<'_>> {
        let heard = |at: usize| (self.seen[at] != UNHEARD).then(|| self.versions.row(self.seen[at] as usize));
        self.others.iter().enumerate().map(move |(k, other)| {
            let at = self.group.neighbour(k);
            KnownNeighbour {
                name: self.group.name(k),
                waiting: other.mail.waiting.len(),
                weight: at.map_or(0.0, |at| self.group.peers().edge(at).weight),
                post: other.seen.post.number,
                points: other.points,
                values: at.and_then(heard),
            }
        })
    }

    /// What happened.
    pub fn counters(&self) -> &NodeCounters {
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
        self.post_stamp.number
    }

    /// When the agent wants to be woken, and how often it has said so in this process: the span is from its time at the last of these.
    pub fn alarm(&self) -> (Option<Time>, u64) {
        (self.alarm, self.alarms_set)
    }

    /// The agent's time.
    pub fn time(&self) -> Time {
        self.time
    }

    /// How often its clock ticks in a unit of time.
    pub fn wake_rate(&self) -> f64 {
        self.wake_rate
    }

    /// Whether the agent has done all it is there for.
    pub fn is_done(&self) -> bool {
        matches!(&self.phase, Phase::Awake(state) if self.algorithm.is_done(state))
    }

    /// The agent's state, for tests of its algorithm; none before it has entered.
    pub fn state(&self) -> Option<&A::State> {
        match &self.phase {
            Phase::Awake(state) => Some(state),
            _ => None,
        }
    }

    /// The highest number of a message.
    pub fn last_number(&self) -> u64 {
        self.last_number
    }

    /// Whether it still asks what others have seen.
    pub fn is_asking(&self) -> bool {
        matches!(self.phase, Phase::Asking(_))
    }

    /// Whether it has nothing to do: it is done, or it and its neighbours have not moved for a while, or it has had all its wakes, or, where these
    /// are not counted, its plan is done. One whose clock never ticks acts when letters come, and has something to do until it is done.
    pub fn is_quiet(&self) -> bool {
        let acts = self.wake_rate > 0.0;
        let planned =
            || acts && self.rules.plan.as_ref().is_some_and(|plan| self.gate.ledger().releases() == plan.releases());
        let still = self.rules.tolerance.is_some() && self.still >= STILL_WAKES;
        !self.is_asking()
            && (self.is_done() || still || self.rules.wakes_max.map_or_else(planned, |most| self.wakes >= most))
    }

    /// Whether every neighbour has got everything.
    pub fn is_delivered(&self) -> bool {
        self.others.iter().all(|other| other.letters.is_empty() && other.mail.waiting.is_empty() && !other.wants_post)
    }
}

impl<A: Algorithm, D> Node<'_, A, D, Simulated> {
    /// The noise of an audited node, which remembers inputs of mechanisms: exact values, that only an audit may see.
    pub fn noise(&self) -> &Simulated {
        self.gate.noise()
    }
}
