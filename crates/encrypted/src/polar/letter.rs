//! The letters of clients and servers.
//!
//! | kind | from, to | body |
//! |---|---|---|
//! | 0 model | server, client | step (4), numbers (8 each) |
//! | 1 upload | client, server | step (4), numbers (8 each) |
//! | 2 roster | server, server | round (4), how many were left out (4), their numbers (4 each), those of who is back (4 each) |
//! | 3 masked | server, server | round (4), elements of Z_2^64 (8 each) |
//! | 4 plain | server, server | round (4), numbers (8 each), or none |
//! | 5 key | server, server | a public key (32) |
//! | 6 ask, 7 begun | server, server | step (4) |
//! | 8 left out, 9 here | server, client; client, server | round (4) |

use sottovoce_core::{Reject, Wire, wire::Numbers};

/// Bytes before the numbers of a letter.
pub(super) const HEAD_BYTES: usize = 41;

/// A letter of POLAR-SGD.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PolarLetter<'a> {
    /// x^J at the beginning of a step; after the last step, the outcome.
    Model {
        /// Which.
        step: u32,
        /// x^J.
        values: Numbers<'a>,
    },
    /// W g + d.
    Upload {
        /// Of which step.
        step: u32,
        /// The numbers.
        values: Numbers<'a>,
    },
    /// Who was left out of a round, and who is back.
    Roster {
        /// Which.
        round: u32,
        /// Left out: their places among the clients.
        left: Words<'a, u32>,
        /// Back: the same.
        back: Words<'a, u32>,
    },
    /// A server's model under pads.
    Masked {
        /// Of which round.
        round: u32,
        /// The elements of Z_2^64.
        words: Words<'a, u64>,
    },
    /// A server's model in the clear, for neighbours; nothing for others.
    Plain {
        /// Of which round.
        round: u32,
        /// The model.
        values: Numbers<'a>,
    },
    /// A server's public key, from which pads are made.
    Key([u8; 32]),
    /// Has the server begun this step?
    Ask(u32),
    /// It has.
    Begun(u32),
    /// The client was left out of this round.
    LeftOut(u32),
    /// A client that was left out of this round is there.
    Here(u32),
}

/// Words inside a message, where they need not be aligned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Words<'a, W> {
    /// As the sender holds them.
    Own(&'a [W]),
    /// As they arrived: whole words.
    Encoded(&'a [u8]),
}

macro_rules! words {
    ($word:ty, $bytes:literal) => {
        impl<'a> Words<'a, $word> {
            /// The words.
            pub fn iter(&self) -> impl Iterator<Item = $word> + use<'a> {
                let (own, encoded): (&[$word], &[u8]) = match *self {
                    Words::Own(words) => (words, &[]),
                    Words::Encoded(bytes) => (&[], bytes),
                };
                let encoded = encoded.as_chunks::<$bytes>().0.iter().map(|&bytes| <$word>::from_le_bytes(bytes));
                own.iter().copied().chain(encoded)
            }

            /// How many there are.
            pub fn len(&self) -> usize {
                match *self {
                    Words::Own(words) => words.len(),
                    Words::Encoded(bytes) => bytes.len() / $bytes,
                }
            }

            /// Whether there are none.
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            fn encode(&self, out: &mut Vec<u8>) {
                out.extend(self.iter().flat_map(<$word>::to_le_bytes));
            }

            fn decode(bytes: &'a [u8]) -> Result<Self, Reject> {
                if bytes.len().is_multiple_of($bytes) { Ok(Words::Encoded(bytes)) } else { Err(Reject::Malformed) }
            }
        }
    };
}
words!(u32, 4);
words!(u64, 8);

impl<'a> Wire<'a> for PolarLetter<'a> {
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        let mut head = |kind: u8, number: u32| {
            let [a, b, c, d] = number.to_le_bytes();
            out.extend_from_slice(&[kind, a, b, c, d]);
        };
        match *self {
            PolarLetter::Model { step, .. } => head(0, step),
            PolarLetter::Upload { step, .. } => head(1, step),
            PolarLetter::Roster { round, .. } => head(2, round),
            PolarLetter::Masked { round, .. } => head(3, round),
            PolarLetter::Plain { round, .. } => head(4, round),
            PolarLetter::Key(_) => head(5, 0),
            PolarLetter::Ask(step) => head(6, step),
            PolarLetter::Begun(step) => head(7, step),
            PolarLetter::LeftOut(round) => head(8, round),
            PolarLetter::Here(round) => head(9, round),
        }
        match *self {
            PolarLetter::Model { values, .. }
            | PolarLetter::Upload { values, .. }
            | PolarLetter::Plain { values, .. } => values.encode(out),
            PolarLetter::Masked { words, .. } => words.encode(out),
            PolarLetter::Roster { left, back, .. } => {
                out.extend((left.len() as u32).to_le_bytes());
                left.encode(out);
                back.encode(out);
            }
            PolarLetter::Key(key) => out.extend(key),
            PolarLetter::Ask(_) | PolarLetter::Begun(_) | PolarLetter::LeftOut(_) | PolarLetter::Here(_) => {}
        }
    }

    #[inline]
    fn decode(bytes: &'a [u8]) -> Result<Self, Reject> {
        let ([kind], rest) = bytes.split_first_chunk().ok_or(Reject::Malformed)?;
        let (number, body) = rest.split_first_chunk().ok_or(Reject::Malformed)?;
        let number = u32::from_le_bytes(*number);
        Ok(match (kind, number, body) {
            (0, step, body) => PolarLetter::Model { step, values: Numbers::decode(body)? },
            (1, step, body) => PolarLetter::Upload { step, values: Numbers::decode(body)? },
            (2, round, body) => {
                let (count, ids) = body.split_first_chunk().ok_or(Reject::Malformed)?;
                let split = (u32::from_le_bytes(*count) as usize).checked_mul(4).ok_or(Reject::Malformed)?;
                let (left, back) = ids.split_at_checked(split).ok_or(Reject::Malformed)?;
                PolarLetter::Roster { round, left: Words::Encoded(left), back: Words::<u32>::decode(back)? }
            }
            (3, round, body) => PolarLetter::Masked { round, words: Words::<u64>::decode(body)? },
            (4, round, body) => PolarLetter::Plain { round, values: Numbers::decode(body)? },
            (5, 0, body) => PolarLetter::Key(body.try_into().map_err(|_| Reject::Malformed)?),
            (6, step, []) => PolarLetter::Ask(step),
            (7, step, []) => PolarLetter::Begun(step),
            (8, round, []) => PolarLetter::LeftOut(round),
            (9, round, []) => PolarLetter::Here(round),
            _ => return Err(Reject::Malformed),
        })
    }

    #[inline]
    fn vectors(&self) -> u64 {
        match self {
            PolarLetter::Model { .. } | PolarLetter::Upload { .. } | PolarLetter::Masked { .. } => 1,
            PolarLetter::Plain { values, .. } => u64::from(!values.is_empty()),
            _ => 0,
        }
    }
}
