//! What peers say to each other, as bytes.
//!
//! A question goes to one peer and has one answer. Little-endian, no padding; a text is its length (2) and its bytes in UTF-8.
//!
//! | question | bytes |
//! |---|---|
//! | hello | 0, card |
//! | post | 1, stamp, numbers (8 each) |
//! | letter | 2, stamp, as its algorithm encodes it |
//! | who | 3 |
//! | durable letter | 4, stamp, turn (8), as its algorithm encodes it |
//!
//! | answer | bytes |
//! |---|---|
//! | welcome | 0, card, evidence of the last post and of the last letter seen from whoever asks, turn (8) and evidence of its last durable letter, then nothing or the last post: stamp, numbers (8 each) |
//! | taken | 1 |
//! | refused | 2, why (1) |
//! | these | 3, count (2), then for each: name (text), key (text), address (text) |
//!
//! | part | bytes |
//! |---|---|
//! | card | instance (16), the agent's name (text), points (8) |
//! | stamp | epoch (8), number (8), salt (16), signature |
//! | evidence | epoch (8), number (8), SHA-256 of the salt and the content (32), signature |
//! | signature | its length (1): 0 or 64, and its bytes |
//!
//! Evidence shows that a message was seen, and nothing of what it said: the salt stays with whoever has the message. Signatures have their
//! place and are not made yet: theirs is the length 0. An instance is a number that a process draws when it starts.
//!
//! Decoding borrows, checks every length before it reads, and never panics.

use sottovoce_core::{Reject, wire::Numbers};
use std::collections::BTreeMap;
use thiserror::Error;

mod evidence;
mod reader;

pub use evidence::{Evidence, SALT_BYTES, Seen, Stamp};
pub use reader::TEXT_BYTES_MAX;
use reader::{Reader, encode_text};

/// The most peers in one answer.
pub const CONTACTS_MAX: usize = 64;

/// What every frame may need besides numbers.
const FRAME_BYTES_BASE: usize = 1 << 16;

/// The longest frame of a task whose posts have `post_len` numbers and whose letters have so many bytes.
pub fn frame_bytes_max(post_len: usize, letter_bytes_max: usize) -> usize {
    FRAME_BYTES_BASE + 8 * post_len + letter_bytes_max
}

/// A number that a process draws when it starts.
pub type ProcessNumber = [u8; 16];

/// A question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Question<'a> {
    /// Who asks, and what has it missed.
    Hello(Card<'a>),
    /// Its post is now this.
    Post(Post<'a>),
    /// A letter that may be lost.
    Letter {
        /// Which message it is.
        stamp: Stamp<'a>,
        /// As its algorithm encodes it.
        bytes: &'a [u8],
    },
    /// Who else is there.
    Who,
    /// A letter that is kept until it was taken.
    Durable {
        /// Which message it is.
        stamp: Stamp<'a>,
        /// Its place among the durable letters from its sender to its receiver, from one.
        turn: u64,
        /// As its algorithm encodes it.
        bytes: &'a [u8],
    },
}

/// What a peer says of itself; all of it is public.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Card<'a> {
    /// Which process it is.
    pub instance: ProcessNumber,
    /// The agent's name.
    pub name: &'a str,
    /// How many points it has.
    pub points: u64,
}

/// A post with its stamp.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Post<'a> {
    /// Which message it is.
    pub stamp: Stamp<'a>,
    /// The released vector.
    pub values: Numbers<'a>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "an answer is made, sent and gone: there is one at a time")]
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
    /// The answer to a letter cannot be kept: too much waits for whoever it would go to.
    #[error("full")]
    Full = 8,
    /// Two contents under one number.
    #[error("two contents under one number")]
    Forked = 9,
}

impl Refusal {
    /// All of them, by number.
    pub const ALL: [Refusal; 10] = [
        Refusal::Malformed,
        Refusal::NotFinite,
        Refusal::WrongDimension,
        Refusal::NotANeighbour,
        Refusal::OutOfTurn,
        Refusal::Exhausted,
        Refusal::WrongName,
        Refusal::NotReady,
        Refusal::Full,
        Refusal::Forked,
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
            Reject::Full => Refusal::Full,
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
            Question::Letter { stamp, bytes } => {
                out.push(2);
                stamp.encode(&mut out);
                out.extend_from_slice(bytes);
            }
            Question::Who => out.push(3),
            Question::Durable { stamp, turn, bytes } => {
                out.push(4);
                stamp.encode(&mut out);
                out.extend(turn.to_le_bytes());
                out.extend_from_slice(bytes);
            }
        }
        out
    }

    /// Reads a question that fills `bytes` exactly.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Refusal> {
        let mut reader = Reader { bytes };
        let question = match reader.byte()? {
            0 => Question::Hello(Card::decode(&mut reader)?),
            1 => Question::Post(Post::decode(&mut reader)?),
            2 => Question::Letter { stamp: Stamp::decode(&mut reader)?, bytes: reader.rest() },
            3 => Question::Who,
            4 => {
                let (stamp, turn) = (Stamp::decode(&mut reader)?, reader.number()?);
                Question::Durable { stamp, turn, bytes: reader.rest() }
            }
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
                seen.encode(&mut out);
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
                let seen = Seen::decode(&mut reader)?;
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
        out.extend(self.instance);
        encode_text(self.name, out);
        out.extend(self.points.to_le_bytes());
    }

    fn decode(reader: &mut Reader<'a>) -> Result<Self, Refusal> {
        Ok(Card { instance: reader.take()?, name: reader.text()?, points: reader.number()? })
    }
}

impl<'a> Post<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.stamp.encode(out);
        self.values.encode(out);
    }

    fn decode(reader: &mut Reader<'a>) -> Result<Self, Refusal> {
        Ok(Post { stamp: Stamp::decode(reader)?, values: Numbers::decode(reader.rest())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CARD: Card<'_> = Card { instance: [3; 16], name: "clinic, \"south\" ü", points: 17 };

    fn seen() -> Seen {
        let evidence = |number| Evidence { epoch: 2, number, hash: [number as u8; 32], signature: Vec::new() };
        let signed = Evidence { signature: vec![5; 64], ..evidence(9) };
        Seen { post: evidence(4), letter: evidence(7), turn: 3, durable: signed }
    }

    fn questions() -> Vec<Question<'static>> {
        const VALUES: &[f64] = &[1.5, -0.0, 1e70];
        let stamp = |number| Stamp { epoch: 1, number, salt: [9; 16], signature: &[] };
        vec![
            Question::Hello(CARD),
            Question::Post(Post { stamp: stamp(3), values: Numbers::Plain(VALUES) }),
            Question::Letter { stamp: Stamp { signature: &[7; 64], ..stamp(u64::MAX) }, bytes: b"\x00\xff" },
            Question::Letter { stamp: stamp(0), bytes: b"" },
            Question::Who,
            Question::Durable { stamp: stamp(8), turn: 2, bytes: b"token" },
        ]
    }

    fn answers() -> Vec<Answer<'static>> {
        let post = Post { stamp: Stamp::numbered(9), values: Numbers::Plain(&[0.5]) };
        let contact = Contact { name: "b", key: "12D3", address: "/ip4/127.0.0.1/tcp/1" };
        let mut all = vec![
            Answer::Welcome { card: CARD, seen: Seen::default(), post: None },
            Answer::Welcome { card: CARD, seen: seen(), post: Some(post) },
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
            if bytes[0] != 2 && bytes[0] != 4 {
                let longer: Vec<u8> = bytes.iter().copied().chain([7]).collect();
                assert_eq!(Question::decode(&longer), Err(Refusal::Malformed), "{bytes:?}");
            }
            if bytes[0] == 0 {
                (0..bytes.len()).for_each(|end| assert!(Question::decode(&bytes[..end]).is_err()));
            }
        }
        let not_finite = Post { stamp: Stamp::numbered(1), values: Numbers::Plain(&[f64::NAN]) };
        assert_eq!(Question::decode(&Question::Post(not_finite).encode()), Err(Refusal::NotFinite));
        assert_eq!(Answer::decode(&[3, 0xff, 0xff]), Err(Refusal::Malformed), "more contacts than allowed");
        assert_eq!(Answer::decode(&[2, 200]), Err(Refusal::Malformed), "an unknown reason");
        let long_name = [&[0; 17][..], &[0xff, 0xff]].concat();
        assert_eq!(Question::decode(&long_name), Err(Refusal::Malformed), "a text beyond its bound");
        let mut signed = Question::Letter { stamp: Stamp::numbered(1), bytes: &[0; 80] }.encode();
        signed[33] = 63;
        assert_eq!(Question::decode(&signed), Err(Refusal::Malformed), "a signature of a length that none has");
    }

    proptest! {
        #![proptest_config(ProptestConfig { rng_seed: proptest::test_runner::RngSeed::Fixed(4), ..ProptestConfig::with_cases(20_000) })]

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300), kind in 0u8..6) {
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
