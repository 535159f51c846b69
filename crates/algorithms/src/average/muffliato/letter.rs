//! The letters of gossip in rounds.

use sottovoce_core::wire::Numbers;
use sottovoce_core::{Reject, Wire};

/// What a member holds in one round.
///
/// | bytes | what |
/// |---|---|
/// | 4 | the round, from 0 on, little-endian |
/// | 4 | how many neighbours the sender has, little-endian |
/// | 8 each | the sum of each column, and the weight, little-endian |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MuffliatoLetter<'a> {
    /// t.
    pub round: u32,
    /// The sender's degree: weights of edges follow from degrees.
    pub degree: u32,
    /// x(t).
    pub mass: Numbers<'a>,
}

/// Bytes before the numbers.
const HEAD_BYTES: usize = 8;

impl MuffliatoLetter<'_> {
    /// The size of a letter of so many columns and a weight.
    pub(crate) fn bytes(columns: usize) -> usize {
        HEAD_BYTES + 8 * (columns + 1)
    }
}

impl<'a> Wire<'a> for MuffliatoLetter<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.round.to_le_bytes());
        out.extend(self.degree.to_le_bytes());
        self.mass.encode(out);
    }

    fn decode(bytes: &'a [u8]) -> Result<Self, Reject> {
        let (round, rest) = bytes.split_first_chunk().ok_or(Reject::Malformed)?;
        let (degree, mass) = rest.split_first_chunk().ok_or(Reject::Malformed)?;
        let (round, degree) = (u32::from_le_bytes(*round), u32::from_le_bytes(*degree));
        // Whoever writes to a neighbour has one.
        if degree == 0 {
            return Err(Reject::Malformed);
        }
        Ok(MuffliatoLetter { round, degree, mass: Numbers::decode(mass)? })
    }

    fn vectors(&self) -> u64 {
        1
    }
}
