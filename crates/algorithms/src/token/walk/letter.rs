//! The letters of a walk.
//!
//! | letter | bytes |
//! |---|---|
//! | token | 0, which (4), hop (8), contributions (8), weight (8), the numbers (8 each) |
//! | outcome | 1, which (4), hop (8), contributions (8), weight (8), the numbers (8 each) |

use sottovoce_core::{Reject, Wire, wire::Numbers};

/// What is public about a token, and what it came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Token<'a> {
    /// Which of several.
    pub number: u32,
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
}

/// Bytes before the numbers.
pub(in crate::token) const HEAD_BYTES: usize = 29;

/// No token weighs more: sums of numbers of rows below it are exact.
pub(in crate::token) const WEIGHT_MAX: u64 = 1 << 53;

impl<'a> Wire<'a> for WalkLetter<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        let (kind, Token { number, hop, contributions, weight, values }) = match self {
            WalkLetter::Token(token) => (0u8, token),
            WalkLetter::Outcome(token) => (1, token),
        };
        out.push(kind);
        out.extend(number.to_le_bytes());
        [hop, contributions, weight].iter().for_each(|count| out.extend(count.to_le_bytes()));
        values.encode(out);
    }

    fn decode(bytes: &'a [u8]) -> Result<Self, Reject> {
        let (head, values) = bytes.split_first_chunk::<HEAD_BYTES>().ok_or(Reject::Malformed)?;
        let number = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
        let long = |at: usize| head[at..at + 8].iter().rev().fold(0u64, |sum, &byte| sum << 8 | u64::from(byte));
        let (hop, contributions, weight) = (long(5), long(13), long(21));
        if weight > WEIGHT_MAX {
            return Err(Reject::Malformed);
        }
        let token = Token { number, hop, contributions, weight, values: Numbers::decode(values)? };
        match head[0] {
            0 => Ok(WalkLetter::Token(token)),
            1 => Ok(WalkLetter::Outcome(token)),
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
            counts: [u64; 3],
            values in prop::collection::vec(-1e9..1e9, 0..5),
            is_token: bool,
            random in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let [hop, contributions, weight] = counts;
            let weight = weight % WEIGHT_MAX;
            let token = Token { number, hop, contributions, weight, values: Numbers::Plain(&values) };
            let mut bytes = Vec::new();
            let letter = if is_token { WalkLetter::Token(token) } else { WalkLetter::Outcome(token) };
            letter.encode(&mut bytes);
            prop_assert_eq!(bytes.len(), HEAD_BYTES + 8 * values.len());
            let mut again = Vec::new();
            WalkLetter::decode(&bytes).expect("own encoding").encode(&mut again);
            prop_assert_eq!(bytes, again);
            let _ = WalkLetter::decode(&random);
        }
    }
}
