//! The letters of a walk.
//!
//! | letter | bytes |
//! |---|---|
//! | token | 0, which (4), epoch (4, 8, 4), hop (8), contributions (8), weight (8), the numbers (8 each) |
//! | outcome | 1, which (4), epoch (4, 8, 4), hop (8), contributions (8), weight (8), the numbers (8 each) |
//! | taken | 2, which (4), epoch (4, 8, 4), hop (8), zeros (16) |
//! | passed | 3, which (4), epoch (4, 8, 4), hop (8), zeros (16) |

use super::super::epoch::Epoch;
use sottovoce_core::{Reject, Wire, wire::Numbers};

/// What is public about a token, and what it came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Token<'a> {
    /// Which of several.
    pub number: u32,
    /// Which of those that were issued of it.
    pub epoch: Epoch,
    /// The hop of whoever it is sent to; of an outcome the last one.
    pub hop: u64,
    /// How often somebody has contributed.
    pub contributions: u64,
    /// How much these contributions weigh in a mean.
    pub weight: u64,
    /// The numbers.
    pub values: Numbers<'a>,
}

/// A letter of a walk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WalkLetter<'a> {
    /// The token, for its next holder.
    Token(Token<'a>),
    /// The token after its last hop, for everyone.
    Outcome(Token<'a>),
    /// A token was taken.
    Taken(Word),
    /// A token that was taken is safe with another; or it was refused, because there is a newer one.
    Passed(Word),
}

/// Of which token word comes: the one that came to whoever writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// Which of several.
    pub number: u32,
    /// Which of those that were issued of it.
    pub epoch: Epoch,
    /// The hop that it came for.
    pub hop: u64,
}

/// Bytes before the numbers.
pub(in crate::token) const HEAD_BYTES: usize = 45;

/// No token weighs more: sums of numbers of rows below it are exact.
pub(in crate::token) const WEIGHT_MAX: u64 = 1 << 53;

impl<'a> Wire<'a> for WalkLetter<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        let word = |Word { number, epoch, hop }: Word| Token {
            number,
            epoch,
            hop,
            contributions: 0,
            weight: 0,
            values: Numbers::Plain(&[]),
        };
        let (kind, token) = match *self {
            WalkLetter::Token(token) => (0u8, token),
            WalkLetter::Outcome(token) => (1, token),
            WalkLetter::Taken(taken) => (2, word(taken)),
            WalkLetter::Passed(passed) => (3, word(passed)),
        };
        let Token { number, epoch, hop, contributions, weight, values } = token;
        out.push(kind);
        out.extend(number.to_le_bytes());
        out.extend(epoch.count.to_le_bytes());
        out.extend(epoch.hop.to_le_bytes());
        out.extend(epoch.issuer.to_le_bytes());
        [hop, contributions, weight].iter().for_each(|count| out.extend(count.to_le_bytes()));
        values.encode(out);
    }

    fn decode(bytes: &'a [u8]) -> Result<Self, Reject> {
        let (head, values) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or(Reject::Malformed)?;
        let short = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let long = |at: usize| u64::from(short(at)) | u64::from(short(at + 4)) << 32;
        let (number, epoch) = (short(1), Epoch { count: short(5), hop: long(9), issuer: short(17) });
        let (hop, contributions, weight) = (long(21), long(29), long(37));
        if weight > WEIGHT_MAX {
            return Err(Reject::Malformed);
        }
        let token = Token { number, epoch, hop, contributions, weight, values: Numbers::decode(values)? };
        let word = Word { number, epoch, hop };
        match (head[0], contributions, weight, values.len()) {
            (0, ..) => Ok(WalkLetter::Token(token)),
            (1, ..) => Ok(WalkLetter::Outcome(token)),
            (2, 0, 0, 0) => Ok(WalkLetter::Taken(word)),
            (3, 0, 0, 0) => Ok(WalkLetter::Passed(word)),
            _ => Err(Reject::Malformed),
        }
    }

    fn vectors(&self) -> u64 {
        1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn letters_come_back_to_the_bit_and_random_bytes_never_panic(
            number: u32,
            counts: [u64; 4],
            issued: [u32; 2],
            values in prop::collection::vec(-1e9..1e9, 0..5),
            kind in 0u8..4,
            random in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let [hop, contributions, weight, out] = counts;
            let epoch = Epoch { count: issued[0], hop: out, issuer: issued[1] };
            let weight = weight % WEIGHT_MAX;
            let token = Token { number, epoch, hop, contributions, weight, values: Numbers::Plain(&values) };
            let word = Word { number, epoch, hop };
            let mut bytes = Vec::new();
            let (letter, numbers) = match kind {
                0 => (WalkLetter::Token(token), values.len()),
                1 => (WalkLetter::Outcome(token), values.len()),
                2 => (WalkLetter::Taken(word), 0),
                _ => (WalkLetter::Passed(word), 0),
            };
            letter.encode(&mut bytes);
            prop_assert_eq!(bytes.len(), HEAD_BYTES + 8 * numbers);
            let mut again = Vec::new();
            WalkLetter::decode(&bytes).expect("own encoding").encode(&mut again);
            prop_assert_eq!(bytes, again);
            let _ = WalkLetter::decode(&random);
        }
    }
}
