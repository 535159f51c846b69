//! The token, and the letters of a ring.

use crate::token::epoch::Epoch;
use serde::{Deserialize, Serialize};
use sottovoce_core::wire::NUMBER_MAX;
use sottovoce_core::{Reject, Wire};

/// The token.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Token {
    /// Which one.
    pub epoch: Epoch,
    /// The hop of whoever it is sent to.
    pub hop: u64,
    /// Hops until the next noise: a. At zero after a member was passed over.
    pub silent: u32,
    /// How much the contributions so far weigh in a mean: numbers of rows, or of members.
    pub weight: u64,
    /// The sum so far.
    pub tau: f64,
}

/// No token weighs more: sums of numbers of rows below it are exact.
pub(super) const WEIGHT_MAX: u64 = 1 << 53;

/// A letter of the ring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RingLetter {
    /// The token.
    Token(Token),
    /// The token of this hop was taken.
    Taken {
        /// Its epoch.
        epoch: Epoch,
        /// Which hop.
        hop: u64,
    },
    /// The token of this hop was passed on and taken, or was refused because there is one of this higher epoch.
    Passed {
        /// The highest epoch seen.
        epoch: Epoch,
        /// Which hop.
        hop: u64,
    },
    /// The sum.
    Sum {
        /// Of which token.
        epoch: Epoch,
        /// How much it weighs in a mean.
        weight: u64,
        /// The sum.
        sum: f64,
    },
}

pub(super) const LETTER_BYTES: usize = 45;

impl Wire<'_> for RingLetter {
    fn encode(&self, out: &mut Vec<u8>) {
        let (kind, epoch, hop, silent, weight, tau) = match *self {
            RingLetter::Token(Token { epoch, hop, silent, weight, tau }) => (0u8, epoch, hop, silent, weight, tau),
            RingLetter::Passed { epoch, hop } => (1, epoch, hop, 0, 0, 0.0),
            RingLetter::Sum { epoch, weight, sum } => (2, epoch, 0, 0, weight, sum),
            RingLetter::Taken { epoch, hop } => (3, epoch, hop, 0, 0, 0.0),
        };
        out.push(kind);
        out.extend(epoch.count.to_le_bytes());
        out.extend(epoch.hop.to_le_bytes());
        out.extend(epoch.issuer.to_le_bytes());
        out.extend(hop.to_le_bytes());
        out.extend(silent.to_le_bytes());
        out.extend(weight.to_le_bytes());
        out.extend(tau.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Result<Self, Reject> {
        let bytes: &[u8; LETTER_BYTES] = bytes.try_into().map_err(|_| Reject::Malformed)?;
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
        let (epoch, hop, silent) = (Epoch { count: word(1), hop: long(5), issuer: word(13) }, long(17), word(25));
        let (weight, tau) = (long(29), f64::from_bits(long(37)));
        if tau.is_nan() || tau.abs() > NUMBER_MAX {
            return Err(Reject::NotFinite);
        }
        if weight > WEIGHT_MAX {
            return Err(Reject::Malformed);
        }
        match (bytes[0], hop, silent, weight, tau.to_bits()) {
            (0, ..) => Ok(RingLetter::Token(Token { epoch, hop, silent, weight, tau })),
            (1, _, 0, 0, 0) => Ok(RingLetter::Passed { epoch, hop }),
            (2, 0, 0, _, _) => Ok(RingLetter::Sum { epoch, weight, sum: tau }),
            (3, _, 0, 0, 0) => Ok(RingLetter::Taken { epoch, hop }),
            _ => Err(Reject::Malformed),
        }
    }

    fn vectors(&self) -> u64 {
        1
    }
}
