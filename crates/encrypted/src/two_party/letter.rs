//! The letters of the protocol: a kind, a number, a member, and bytes whose length the reader checks.

use sottovoce_core::{Reject, Wire};
use std::borrow::Cow;

/// What a letter is for. In brackets: who sends it to whom, and whether it may be lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A new round of the beacon (aggregator, member; durable).
    Begin,
    /// A commitment and the public label, or nothing where there is no row (member, aggregator; durable).
    Commitment,
    /// Who takes part, and all commitments (aggregator, member; durable).
    Commitments,
    /// What was committed to (member, aggregator; durable).
    Reveal,
    /// Who takes part, their labels, the beacon, and all secrets (aggregator, member; durable).
    Beacon,
    /// A session begins (evaluator, garbler; may be lost).
    Opening,
    /// Its second message (garbler, evaluator; may be lost).
    Choices,
    /// Its third (evaluator, garbler; may be lost).
    Request,
    /// Its last (garbler, evaluator; may be lost).
    Tables,
    /// The evaluator has its share and will begin no other attempt (evaluator, garbler; durable).
    Finished,
    /// Half of a result (either, aggregator; durable).
    Share,
    /// It is over (aggregator, member; durable).
    End,
}

const KINDS: [Kind; 12] = [
    Kind::Begin,
    Kind::Commitment,
    Kind::Commitments,
    Kind::Reveal,
    Kind::Beacon,
    Kind::Opening,
    Kind::Choices,
    Kind::Request,
    Kind::Tables,
    Kind::Finished,
    Kind::Share,
    Kind::End,
];

/// One letter.
#[derive(Clone, Debug, PartialEq)]
pub struct PairLetter<'a> {
    /// What it is for.
    pub kind: Kind,
    /// The round of the beacon, or the attempt at a session.
    pub number: u32,
    /// Of a share: the other one of the pair.
    pub other: u32,
    /// The rest.
    pub body: Cow<'a, [u8]>,
}

/// Bytes before the rest.
pub(super) const HEAD_BYTES: usize = 9;

impl<'a> Wire<'a> for PairLetter<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.kind as u8);
        out.extend(self.number.to_le_bytes());
        out.extend(self.other.to_le_bytes());
        out.extend_from_slice(&self.body);
    }

    fn decode(bytes: &'a [u8]) -> Result<Self, Reject> {
        let (head, body) = bytes.split_at_checked(HEAD_BYTES).ok_or(Reject::Malformed)?;
        let kind = *KINDS.get(usize::from(head[0])).ok_or(Reject::Malformed)?;
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        Ok(PairLetter { kind, number: word(1), other: word(5), body: Cow::Borrowed(body) })
    }

    fn vectors(&self) -> u64 {
        1
    }
}
