//! Shares of a result, and the aggregator, who puts them together.
//!
//! A result bit is the XOR of the lowest bit of the label that the evaluator ended with and that of the label for zero,
//! which the garbler knows. Each of the two bits by itself is a fair coin to everybody who lacks the other side's
//! labels; the two together are the result and nothing else.

use super::{
    Session,
    circuit::Circuit,
    message::{Sender, ShareMessage},
};
use crate::flaw::Flaw;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// One member's share of a batch of results. It is for the aggregator; whoever holds both shares holds the results.
pub struct Share {
    sender: Sender,
    session: [u8; 32],
    transcript: [u8; 32],
    batch: u64,
    instances: usize,
    bits: Zeroizing<Vec<u8>>,
}

impl Share {
    /// The message to the aggregator.
    // PRIVACY: half of the result, a fair coin in each bit. The aggregator learns the results once it has both halves:
    // what they cost is the circuit's noise, charged by whoever runs the protocol.
    pub fn to_bytes(&self) -> Vec<u8> {
        let &Share { sender, session, transcript, batch, instances, .. } = self;
        ShareMessage { sender, session, transcript, batch, instances, bits: &self.bits }.encode()
    }
}

/// A share that is being made, while tables go back and forth.
pub(super) struct ShareDraft {
    sender: Sender,
    session: [u8; 32],
    batch: u64,
    instances: usize,
    width: usize,
    transcript: Sha256,
    bits: Zeroizing<Vec<u8>>,
}

impl ShareDraft {
    pub(super) fn new(sender: Sender, session: &Session, batch: u64, instances: usize) -> ShareDraft {
        let width = session.circuit().outputs().len();
        let bits = Zeroizing::new(vec![0; (instances * width).div_ceil(8)]);
        ShareDraft { sender, session: session.digest(), batch, instances, width, transcript: Sha256::new(), bits }
    }

    /// A message of the batch, whoever sent it.
    pub(super) fn hear(&mut self, message: &[u8]) {
        self.transcript.update((message.len() as u64).to_le_bytes());
        self.transcript.update(message);
    }

    /// One bit of the share: 0 or 1.
    pub(super) fn set(&mut self, instance: usize, output: usize, bit: u8) {
        let at = instance * self.width + output;
        self.bits[at / 8] |= bit << (at % 8);
    }

    pub(super) fn finish(self) -> Share {
        let ShareDraft { sender, session, batch, instances, transcript, bits, .. } = self;
        Share { sender, session, transcript: transcript.finalize().into(), batch, instances, bits }
    }
}

/// The results of a batch: what the aggregator learns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outputs {
    /// Which batch.
    pub batch: u64,
    instances: usize,
    width: usize,
    bits: Vec<u8>,
}

impl Outputs {
    /// How many instances there are.
    pub fn instances(&self) -> usize {
        self.instances
    }

    /// One bit of a result.
    pub fn bit(&self, instance: usize, output: usize) -> bool {
        assert!(instance < self.instances && output < self.width, "an instance and a bit of the batch");
        let at = instance * self.width + output;
        self.bits[at / 8] >> (at % 8) & 1 == 1
    }

    /// A result as a number: its first 64 bits, the lowest first.
    pub fn number(&self, instance: usize) -> u64 {
        (0..self.width.min(64)).rev().fold(0, |number, i| number << 1 | u64::from(self.bit(instance, i)))
    }
}

/// The aggregator's part: puts the two shares of a batch together.
///
/// Refused are shares of another session, of two batches, or of two members who did not see the same messages: a
/// garbled table has no redundancy of its own, so a flipped bit in it would else become a wrong number that looks like
/// any other.
pub fn combine(session: &Session, garbler: &[u8], evaluator: &[u8]) -> Result<Outputs, Flaw> {
    let circuit: &Circuit = session.circuit();
    let [mine, theirs] = [garbler, evaluator].map(|bytes| ShareMessage::decode(bytes, circuit));
    let (mine, theirs) = (mine?, theirs?);
    if mine.sender != Sender::Garbler || theirs.sender != Sender::Evaluator {
        return Err(Flaw::UnknownTag);
    }
    if [mine.session, theirs.session] != [session.digest(); 2] {
        return Err(Flaw::WrongSession);
    }
    if mine.batch != theirs.batch {
        return Err(Flaw::OutOfOrder);
    }
    if mine.instances != theirs.instances {
        return Err(Flaw::WrongLength);
    }
    if mine.transcript != theirs.transcript {
        return Err(Flaw::TranscriptsDiffer);
    }
    let bits = mine.bits.iter().zip(theirs.bits).map(|(a, b)| a ^ b).collect();
    Ok(Outputs { batch: mine.batch, instances: mine.instances, width: circuit.outputs().len(), bits })
}
