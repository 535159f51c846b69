//! What one step of an agent changes, and what a store keeps of it.

use crate::frame::{Evidence, SALT_BYTES, Stamp};
use serde::{Deserialize, Serialize};
use sottovoce_privacy::Ledger;
use std::collections::BTreeMap;

/// Everything that one step changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredStep {
    /// Wakes so far.
    pub wakes: u64,
    /// Events so far: they key the agent's coins.
    pub events: u64,
    /// The agent's time, in mean wake intervals.
    pub time: f64,
    /// When the agent wants to be woken, besides its clock.
    pub alarm: Option<f64>,
    /// The epoch of its numbers.
    pub epoch: u64,
    /// The highest number given to a message.
    pub last_number: u64,
    /// All charges so far.
    pub ledger: Ledger,
    /// Its post.
    pub post: Option<Posted>,
    /// Letters of this step that may be lost.
    pub letters: Vec<SavedLetter>,
    /// By name: durable letters to others, and what they acknowledged, since the step before.
    pub mail: BTreeMap<String, Mail>,
    /// The agent's state, as its algorithm saves it.
    pub state: Vec<u8>,
    /// Its neighbours when the state was saved: name and weight.
    pub neighbours: Vec<(String, f64)>,
    /// By name: what was heard from others since the step before.
    pub heard: BTreeMap<String, HeardPeer>,
}

/// A stamp that is kept, so that a message is sent again to the bit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamped {
    /// The epoch.
    pub epoch: u64,
    /// The sequence number.
    pub number: u64,
    /// The salt of the content's hash.
    pub salt: [u8; SALT_BYTES],
    /// Empty, or a signature.
    pub signature: Vec<u8>,
}

impl Stamped {
    /// As it is sent.
    pub fn stamp(&self) -> Stamp<'_> {
        let Stamped { epoch, number, salt, ref signature } = *self;
        Stamp { epoch, number, salt, signature }
    }
}

/// A post and its stamp.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Posted {
    /// Which message it is.
    pub stamped: Stamped,
    /// The released vector.
    pub values: Vec<f64>,
}

/// A letter that may not have been delivered yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedLetter {
    /// To whom.
    pub to: String,
    /// Which message it is.
    pub stamped: Stamped,
    /// As it is sent.
    pub bytes: Vec<u8>,
}

/// Durable letters to one peer; or what has changed of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mail {
    /// The public key of the peer, as text. Letters to another key are letters to somebody else.
    pub key: String,
    /// The turn of the last letter.
    pub last: u64,
    /// Letters up to this turn were acknowledged.
    pub acknowledged: u64,
    /// Letters that were not, in their order.
    pub waiting: Vec<DurableLetter>,
}

/// A durable letter that was not acknowledged yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurableLetter {
    /// Its place among the letters to the same peer, from one.
    pub turn: u64,
    /// Which message it is.
    pub stamped: Stamped,
    /// How many model-sized vectors it carries.
    pub vectors: u64,
    /// As it is sent.
    pub bytes: Vec<u8>,
}

impl Mail {
    /// Adds what has changed since.
    pub fn merge(&mut self, change: &Mail) {
        if self.key != change.key {
            *self = Mail { key: change.key.clone(), ..Mail::default() };
        }
        self.last = self.last.max(change.last);
        self.acknowledged = self.acknowledged.max(change.acknowledged);
        self.waiting.extend(change.waiting.iter().cloned());
        self.waiting.retain(|letter| letter.turn > self.acknowledged);
    }
}

/// Adds what has changed since, for each peer.
pub(super) fn merge_all(mail: &mut BTreeMap<String, Mail>, changes: &BTreeMap<String, Mail>) {
    for (name, change) in changes {
        mail.entry(name.clone()).or_default().merge(change);
    }
}

/// What is known of another peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeardPeer {
    /// Its public key, as text.
    pub key: String,
    /// Its last post, and that it was seen.
    pub post: Option<(Evidence, Vec<f64>)>,
    /// The last of its letters.
    pub letter: Evidence,
    /// How many of its durable letters were taken,
    pub turn: u64,
    /// and the last of them.
    pub durable: Evidence,
    /// How many points it says it has.
    pub points: Option<u64>,
}
