//! What a simulation counts.

use sottovoce_core::{Reject, wire};
use std::collections::BTreeMap;

/// What has happened so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Wakes of agents that were there, by their clocks and by their alarms.
    pub wakes: u64,
    /// Durable letters that were read: events of their own, as wakes are.
    pub durable_read: u64,
    /// Model-sized vectors sent over edges; a post counts once per neighbour.
    pub vectors_sent: u64,
    /// Letters sent, whatever they hold.
    pub letters_sent: u64,
    /// Bytes of the encoded messages.
    pub bytes_sent: u64,
    /// Messages that never arrived: lost, sent to an agent that was away, or across a partition.
    pub lost: u64,
    /// Messages that arrived and were dropped, by reason.
    pub rejected: BTreeMap<Reject, u64>,
    /// Wakes that ended without a release because the agent's budget did not allow one.
    pub refused: u64,
}

impl Counters {
    #[inline]
    pub(crate) fn count_post(&mut self, neighbours: usize, len: usize) {
        self.vectors_sent += neighbours as u64;
        self.bytes_sent += neighbours as u64 * wire::post_bytes(len);
    }

    #[inline]
    pub(crate) fn count_letter(&mut self, vectors: u64, bytes: &[u8]) {
        self.vectors_sent += vectors;
        self.letters_sent += 1;
        self.bytes_sent += bytes.len() as u64;
    }
}
