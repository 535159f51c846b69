//! The letters of a sum under pads. Everything in them is masked, random, or public.

use serde::{Deserialize, Serialize};
use sottovoce_core::{Reject, Wire};

/// A key, a sealed share or an opened one, and whose it is.
pub type Keyed = (u32, [u8; 32]);

/// A letter, from a member to the board or back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GopaLetter {
    /// To the board: a member's public key for this task, and whom it picked, in the order of their numbers.
    Enrol {
        /// The key.
        key: [u8; 32],
        /// The picks.
        picks: Vec<u32>,
    },
    /// From the board: with whom a member shares pads, and their keys.
    Roster {
        /// Its neighbours, in the order of their numbers.
        neighbours: Vec<Keyed>,
    },
    /// To the board: a masked contribution, and the shares of its own mask, sealed for those of its picks that take part.
    Publish {
        /// Of which sum.
        round: u32,
        /// How much it weighs in a mean: a number of rows.
        weight: u64,
        /// The numbers, under all masks.
        masked: Vec<[u8; 8]>,
        /// The shares.
        shares: Vec<Keyed>,
    },
    /// From the board: these neighbours did not finish.
    Gone {
        /// Of which sum.
        round: u32,
        /// Who.
        gone: Vec<u32>,
    },
    /// To the board: the pads with them.
    Pads {
        /// Of which sum.
        round: u32,
        /// By neighbour: the key of the pad, and whether the opener subtracts it.
        pads: Vec<(u32, [u8; 32], bool)>,
    },
    /// From the board: so many finished, and these are shares of some of them, as they were sealed.
    Reveal {
        /// Of which sum.
        round: u32,
        /// How many.
        finished: u32,
        /// By dealer.
        shares: Vec<Keyed>,
    },
    /// To the board: the same, opened.
    Shares {
        /// Of which sum.
        round: u32,
        /// By dealer.
        shares: Vec<Keyed>,
    },
    /// From the board: the sum of all who finished.
    Sum {
        /// Which sum.
        round: u32,
        /// How many finished.
        finished: u32,
        /// How much they weigh in a mean.
        weight: u64,
        /// The sum.
        sum: Vec<[u8; 8]>,
    },
    /// From the board: there is no such sum.
    Void {
        /// Which.
        round: u32,
    },
}

/// The most bytes of a letter among so many members, with so many numbers.
pub(super) fn bytes_max(members: u32, columns: u32) -> usize {
    64 + 8 * columns as usize + 40 * members as usize
}

impl Wire<'_> for GopaLetter {
    fn encode(&self, out: &mut Vec<u8>) {
        let bytes = std::mem::take(out);
        *out =
            postcard::to_extend(self, bytes).expect("numbers and lists that know their lengths have a form as bytes");
    }

    fn decode(bytes: &[u8]) -> Result<Self, Reject> {
        match postcard::take_from_bytes(bytes) {
            Ok((letter, [])) => Ok(letter),
            _ => Err(Reject::Malformed),
        }
    }

    fn vectors(&self) -> u64 {
        u64::from(matches!(self, GopaLetter::Publish { .. } | GopaLetter::Sum { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_come_back_and_are_no_longer_than_their_bound() {
        let many: Vec<u32> = (0..100).map(|k| u32::MAX - k).collect();
        let keyed: Vec<Keyed> = many.iter().map(|&k| (k, [7; 32])).collect();
        let round = u32::MAX;
        for letter in [
            GopaLetter::Enrol { key: [1; 32], picks: many.clone() },
            GopaLetter::Roster { neighbours: keyed.clone() },
            GopaLetter::Publish { round, weight: u64::MAX, masked: vec![[255; 8]; 3], shares: keyed.clone() },
            GopaLetter::Gone { round, gone: many.clone() },
            GopaLetter::Pads { round, pads: many.iter().map(|&k| (k, [9; 32], true)).collect() },
            GopaLetter::Reveal { round, finished: u32::MAX, shares: keyed.clone() },
            GopaLetter::Shares { round, shares: keyed },
            GopaLetter::Sum { round, finished: u32::MAX, weight: u64::MAX, sum: vec![[255; 8]; 3] },
            GopaLetter::Void { round },
        ] {
            let mut bytes = Vec::new();
            letter.encode(&mut bytes);
            assert!(bytes.len() <= bytes_max(100, 3), "{letter:?}: {} bytes", bytes.len());
            assert_eq!(GopaLetter::decode(&bytes).as_ref(), Ok(&letter));
            bytes.push(0);
            assert_eq!(GopaLetter::decode(&bytes), Err(Reject::Malformed));
            assert_eq!(GopaLetter::decode(&bytes[..bytes.len() - 2]), Err(Reject::Malformed));
        }
    }
}
