//! What peers say to each other, as bytes.
//!
//! A question goes to one peer and has one answer. Little-endian, no padding; a text is its length (2) and its bytes in UTF-8.
//!
//! | question | bytes |
//! |---|---|
//! | hello | 0, the agent's name (text), points (8) |
//! | post | 1, number (8), numbers (8 each) |
//! | letter | 2, number (8), as its algorithm encodes it |
//! | who | 3 |
//!
//! | answer | bytes |
//! |---|---|
//! | welcome | 0, name (text), points (8), the highest numbers of a post (8) and of a letter (8) seen from whoever asks, then nothing or the last post: number (8), numbers (8 each) |
//! | taken | 1 |
//! | refused | 2, why (1) |
//! | these | 3, count (2), then for each: name (text), key (text), address (text) |
//!
//! Decoding borrows, checks every length before it reads, and never panics.

use sottovoce_core::{Reject, wire::Numbers};
use std::collections::BTreeMap;
use thiserror::Error;

/// The longest text.
pub const TEXT_BYTES_MAX: usize = 512;

/// The most peers in one answer.
pub const CONTACTS_MAX: usize = 64;

/// What every frame may need besides numbers.
const FRAME_BYTES_BASE: usize = 1 << 16;

/// The longest frame of a task whose posts have `len` numbers and whose models have `dimension`: an algorithm's letters hold a few
/// vectors of the model's size at most.
pub fn frame_bytes_max(post_len: usize, dimension: usize) -> usize {
    FRAME_BYTES_BASE + 8 * post_len + 64 * dimension
}

/// A question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Question<'a> {
    /// Who asks, and what has it missed.
    Hello(Card<'a>),
    /// Its post is now this.
    Post(Post<'a>),
    /// A letter.
    Letter {
        /// Its sequence number.
        number: u64,
        /// As its algorithm encodes it.
        bytes: &'a [u8],
    },
    /// Who else is there.
    Who,
}

/// What a peer says of itself; both are public.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Card<'a> {
    /// The agent's name.
    pub name: &'a str,
    /// How many points it has.
    pub points: u64,
}

/// A post with its sequence number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Post<'a> {
    /// Its sequence number.
    pub number: u64,
    /// The released vector.
    pub values: Numbers<'a>,
}

/// The highest numbers that one peer has seen of another's messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Of its posts.
    pub post: u64,
    /// Of its letters.
    pub letter: u64,
}

impl Seen {
    /// The highest of all.
    pub fn highest(self) -> u64 {
        self.post.max(self.letter)
    }
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer<'a> {
    /// To hello.
    Welcome {
        /// Who answers.
        card: Card<'a>,
        /// What it has seen from whoever asks.
        seen: Seen,
        /// Its last post.
        post: Option<Post<'a>>,
    },
    /// It arrived.
    Taken,
    /// It was dropped.
    Refused(Refusal),
    /// To who.
    These(Vec<Contact<'a>>),
}

/// How to reach a peer, as another one says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contact<'a> {
    /// The agent's name.
    pub name: &'a str,
    /// Its public key.
    pub key: &'a str,
    /// Where it listens.
    pub address: &'a str,
}

/// Why something was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
#[repr(u8)]
pub enum Refusal {
    /// The bytes are no message.
    #[error("malformed")]
    Malformed = 0,
    /// A number is NaN, infinite, or beyond [`NUMBER_MAX`](sottovoce_core::wire::NUMBER_MAX).
    #[error("not finite")]
    NotFinite = 1,
    /// A vector of another length.
    #[error("wrong dimension")]
    WrongDimension = 2,
    /// The sender is not a neighbour.
    #[error("not a neighbour")]
    NotANeighbour = 3,
    /// An old number, a repetition, or an answer to nothing.
    #[error("out of turn")]
    OutOfTurn = 4,
    /// An answer is not in the budget.
    #[error("exhausted")]
    Exhausted = 5,
    /// The name is not the one that belongs to the sender's key.
    #[error("wrong name")]
    WrongName = 6,
    /// The peer is not ready: it has just come back.
    #[error("not ready")]
    NotReady = 7,
}

impl Refusal {
    /// All of them, by number.
    pub const ALL: [Refusal; 8] = [
        Refusal::Malformed,
        Refusal::NotFinite,
        Refusal::WrongDimension,
        Refusal::NotANeighbour,
        Refusal::OutOfTurn,
        Refusal::Exhausted,
        Refusal::WrongName,
        Refusal::NotReady,
    ];
}

impl From<Reject> for Refusal {
    fn from(reject: Reject) -> Self {
        match reject {
            Reject::Malformed => Refusal::Malformed,
            Reject::NotFinite => Refusal::NotFinite,
            Reject::WrongDimension => Refusal::WrongDimension,
            Reject::NotANeighbour => Refusal::NotANeighbour,
            Reject::OutOfTurn => Refusal::OutOfTurn,
            Reject::Exhausted => Refusal::Exhausted,
        }
    }
}

/// How often each thing was refused.
pub type Refusals = BTreeMap<Refusal, u64>;

impl<'a> Question<'a> {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Question::Hello(card) => {
                out.push(0);
                card.encode(&mut out);
            }
            Question::Post(post) => {
                out.push(1);
                post.encode(&mut out);
            }
            Question::Letter { number, bytes } => {
                out.push(2);
                out.extend(number.to_le_bytes());
                out.extend_from_slice(bytes);
            }
            Question::Who => out.push(3),
        }
        out
    }

    /// Reads a question that fills `bytes` exactly.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Refusal> {
        let mut reader = Reader { bytes };
        let question = match reader.byte()? {
            0 => Question::Hello(Card::decode(&mut reader)?),
            1 => Question::Post(Post::decode(&mut reader)?),
            2 => Question::Letter { number: reader.number()?, bytes: reader.rest() },
            3 => Question::Who,
            _ => return Err(Refusal::Malformed),
        };
        reader.end()?;
        Ok(question)
    }
}

impl<'a> Answer<'a> {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Answer::Welcome { card, seen, post } => {
                out.push(0);
                card.encode(&mut out);
                out.extend(seen.post.to_le_bytes());
                out.extend(seen.letter.to_le_bytes());
                if let Some(post) = post {
                    post.encode(&mut out);
                }
            }
            Answer::Taken => out.push(1),
            Answer::Refused(refusal) => out.extend([2, *refusal as u8]),
            Answer::These(contacts) => {
                out.push(3);
                let count = contacts.len().min(CONTACTS_MAX);
                out.extend((count as u16).to_le_bytes());
                for contact in &contacts[..count] {
                    for part in [contact.name, contact.key, contact.address] {
                        encode_text(part, &mut out);
                    }
                }
            }
        }
        out
    }

    /// Reads an answer that fills `bytes` exactly.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Refusal> {
        let mut reader = Reader { bytes };
        let answer = match reader.byte()? {
            0 => {
                let card = Card::decode(&mut reader)?;
                let seen = Seen { post: reader.number()?, letter: reader.number()? };
                let post = if reader.bytes.is_empty() { None } else { Some(Post::decode(&mut reader)?) };
                Answer::Welcome { card, seen, post }
            }
            1 => Answer::Taken,
            2 => {
                let why = usize::from(reader.byte()?);
                Answer::Refused(*Refusal::ALL.get(why).ok_or(Refusal::Malformed)?)
            }
            3 => {
                let count = usize::from(u16::from_le_bytes(reader.take()?));
                if count > CONTACTS_MAX {
                    return Err(Refusal::Malformed);
                }
                let mut contacts = Vec::with_capacity(count);
                for _ in 0..count {
                    contacts.push(Contact { name: reader.text()?, key: reader.text()?, address: reader.text()? });
                }
                Answer::These(contacts)
            }
            _ => return Err(Refusal::Malformed),
        };
        reader.end()?;
        Ok(answer)
    }
}

impl<'a> Card<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        encode_text(self.name, out);
        out.extend(self.points.to_le_bytes());
    }

    fn decode(reader: &mut Reader<'a>) -> Result<Self, Refusal> {
        Ok(Card { name: reader.text()?, points: reader.number()? })
    }
}

impl<'a> Post<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.number.to_le_bytes());
        self.values.encode(out);
    }

    fn decode(reader: &mut Reader<'a>) -> Result<Self, Refusal> {
        Ok(Post { number: reader.number()?, values: Numbers::decode(reader.rest())? })
    }
}

/// Texts are bounded where they are made; a longer one is cut at a character.
fn encode_text(text: &str, out: &mut Vec<u8>) {
    let end = (0..=TEXT_BYTES_MAX.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    let text = &text[..end];
    out.extend((text.len() as u16).to_le_bytes());
    out.extend(text.as_bytes());
}

/// Bytes that are not read yet.
struct Reader<'a> {
    bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Refusal> {
        let (&taken, rest) = self.bytes.split_first_chunk::<N>().ok_or(Refusal::Malformed)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Refusal> {
        self.take::<1>().map(|[byte]| byte)
    }

    fn number(&mut self) -> Result<u64, Refusal> {
        self.take().map(u64::from_le_bytes)
    }

    fn text(&mut self) -> Result<&'a str, Refusal> {
        let length = usize::from(u16::from_le_bytes(self.take()?));
        if length > TEXT_BYTES_MAX {
            return Err(Refusal::Malformed);
        }
        let (text, rest) = self.bytes.split_at_checked(length).ok_or(Refusal::Malformed)?;
        self.bytes = rest;
        std::str::from_utf8(text).map_err(|_| Refusal::Malformed)
    }

    fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    fn end(self) -> Result<(), Refusal> {
        if self.bytes.is_empty() { Ok(()) } else { Err(Refusal::Malformed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CARD: Card<'_> = Card { name: "clinic, \"south\" ü", points: 17 };

    const SEEN: Seen = Seen { post: 4, letter: 7 };

    fn questions() -> Vec<Question<'static>> {
        const VALUES: &[f64] = &[1.5, -0.0, 1e70];
        vec![
            Question::Hello(CARD),
            Question::Post(Post { number: 3, values: Numbers::Plain(VALUES) }),
            Question::Letter { number: u64::MAX, bytes: b"\x00\xff" },
            Question::Letter { number: 0, bytes: b"" },
            Question::Who,
        ]
    }

    fn answers() -> Vec<Answer<'static>> {
        let post = Post { number: 9, values: Numbers::Plain(&[0.5]) };
        let contact = Contact { name: "b", key: "12D3", address: "/ip4/127.0.0.1/tcp/1" };
        let mut all = vec![
            Answer::Welcome { card: CARD, seen: SEEN, post: None },
            Answer::Welcome { card: CARD, seen: SEEN, post: Some(post) },
            Answer::Taken,
            Answer::These(vec![]),
            Answer::These(vec![contact; CONTACTS_MAX]),
        ];
        all.extend(Refusal::ALL.map(Answer::Refused));
        all
    }

    #[test]
    fn what_is_said_is_what_is_heard() {
        for question in questions() {
            let bytes = question.encode();
            assert_eq!(Question::decode(&bytes).expect("own words").encode(), bytes);
        }
        for answer in answers() {
            let bytes = answer.encode();
            assert_eq!(Answer::decode(&bytes).expect("own words").encode(), bytes);
        }
    }

    #[test]
    fn a_word_too_few_or_too_many_is_refused() {
        for bytes in questions().iter().map(Question::encode) {
            // Letters may have any length, and a post of fewer numbers is a post.
            if bytes[0] != 2 {
                let longer: Vec<u8> = bytes.iter().copied().chain([7]).collect();
                assert_eq!(Question::decode(&longer), Err(Refusal::Malformed), "{bytes:?}");
            }
            if bytes[0] == 0 {
                (0..bytes.len()).for_each(|end| assert!(Question::decode(&bytes[..end]).is_err()));
            }
        }
        let not_finite = Post { number: 1, values: Numbers::Plain(&[f64::NAN]) };
        assert_eq!(Question::decode(&Question::Post(not_finite).encode()), Err(Refusal::NotFinite));
        assert_eq!(Answer::decode(&[3, 0xff, 0xff]), Err(Refusal::Malformed), "more contacts than allowed");
        assert_eq!(Answer::decode(&[2, 200]), Err(Refusal::Malformed), "an unknown reason");
        assert_eq!(Question::decode(&[0, 0xff, 0xff]), Err(Refusal::Malformed), "a text beyond its bound");
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(4), ..ProptestConfig::with_cases(20_000) })]

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), kind in 0u8..5) {
            let mut bytes = bytes;
            if let Some(first) = bytes.first_mut() {
                *first = kind;
            }
            if let Ok(question) = Question::decode(&bytes) {
                prop_assert_eq!(question.encode(), bytes.clone());
            }
            if let Ok(answer) = Answer::decode(&bytes) {
                prop_assert_eq!(answer.encode(), bytes);
            }
        }
    }
}
