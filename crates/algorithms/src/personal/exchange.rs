//! The letter of a gossip exchange: one or two model-sized vectors and a number.
//!
//! | bytes | what |
//! |---|---|
//! | 1 | kind: 0 hello, 1 request, 2 reply |
//! | 1 | vectors in the body, at least one |
//! | 8 | number, little-endian: a version (model propagation) or the count of an exchange (ADMM) |
//! | 8 each | the numbers of the body, little-endian, one vector after another |

use sottovoce_core::{Reject, Wire, wire::Numbers};

/// What a letter wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeKind {
    /// A first word; it wants no answer.
    Hello,
    /// Wants a reply.
    Request,
    /// Answers a request.
    Reply,
}

/// A letter of a gossip algorithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExchangeLetter<'a> {
    /// What it wants.
    pub kind: ExchangeKind,
    /// How many vectors of one length the body holds.
    pub vectors: u8,
    /// Version or exchange number.
    pub number: u64,
    /// The vectors.
    pub body: Numbers<'a>,
}

impl ExchangeLetter<'_> {
    /// Refuses a body that is not `vectors` vectors of `dimension` numbers.
    pub(crate) fn expect_vectors(&self, vectors: u8, dimension: usize) -> Result<(), Reject> {
        if self.vectors == vectors && self.body.len() == usize::from(vectors) * dimension {
            Ok(())
        } else {
            Err(Reject::WrongDimension)
        }
    }
}

impl<'a> Wire<'a> for ExchangeLetter<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        let kind = match self.kind {
            ExchangeKind::Hello => 0,
            ExchangeKind::Request => 1,
            ExchangeKind::Reply => 2,
        };
        out.extend_from_slice(&[kind, self.vectors]);
        out.extend_from_slice(&self.number.to_le_bytes());
        self.body.encode(out);
    }

    fn decode(bytes: &'a [u8]) -> Result<Self, Reject> {
        let ([kind, vectors], rest) = bytes.split_first_chunk().ok_or(Reject::Malformed)?;
        let (number, body) = rest.split_first_chunk().ok_or(Reject::Malformed)?;
        let kind = match kind {
            0 => ExchangeKind::Hello,
            1 => ExchangeKind::Request,
            2 => ExchangeKind::Reply,
            _ => return Err(Reject::Malformed),
        };
        let body = Numbers::decode(body)?;
        if *vectors == 0 || !body.len().is_multiple_of(usize::from(*vectors)) {
            return Err(Reject::Malformed);
        }
        Ok(ExchangeLetter { kind, vectors: *vectors, number: u64::from_le_bytes(*number), body })
    }

    fn vectors(&self) -> u64 {
        u64::from(self.vectors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn letters_come_back_to_the_bit(
            kind in prop_oneof![Just(ExchangeKind::Hello), Just(ExchangeKind::Request), Just(ExchangeKind::Reply)],
            number: u64,
            vectors in 1u8..4,
            vector in prop::collection::vec(-1e75f64..1e75, 0..20),
        ) {
            let values = vector.repeat(usize::from(vectors));
            let letter = ExchangeLetter { kind, vectors, number, body: Numbers::Plain(&values) };
            let mut bytes = Vec::new();
            letter.encode(&mut bytes);
            let back = ExchangeLetter::decode(&bytes).expect("own encoding");
            prop_assert_eq!((back.kind, back.vectors, back.number), (kind, vectors, number));
            prop_assert!(back.body.iter().map(f64::to_bits).eq(values.iter().map(|value| value.to_bits())));
            let mut again = Vec::new();
            back.encode(&mut again);
            prop_assert_eq!(again, bytes);
        }

        #[test]
        fn random_bytes_never_panic(
            mut bytes in prop::collection::vec(any::<u8>(), 0..200),
            kind in 0u8..4,
            vectors in 0u8..4,
            plausible: bool,
        ) {
            if plausible && bytes.len() > 2 {
                bytes[..2].copy_from_slice(&[kind, vectors]);
                bytes.truncate(10 + (bytes.len().saturating_sub(10)) / 8 * 8);
            }
            if let Ok(letter) = ExchangeLetter::decode(&bytes) {
                prop_assert!(letter.body.iter().all(f64::is_finite));
                let mut again = Vec::new();
                letter.encode(&mut again);
                prop_assert_eq!(again, bytes);
            }
        }
    }

    #[test]
    fn what_is_no_letter_is_refused() {
        let mut bytes = Vec::new();
        ExchangeLetter { kind: ExchangeKind::Reply, vectors: 2, number: 7, body: Numbers::Plain(&[1.0, 2.0]) }
            .encode(&mut bytes);
        assert_eq!(bytes.len(), 2 + 8 + 16);
        let changed = |at: usize, to: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = to;
            ExchangeLetter::decode(&bytes).map(|_| ()).expect_err("no letter")
        };
        assert_eq!(changed(0, 3), Reject::Malformed);
        assert_eq!(changed(1, 0), Reject::Malformed);
        assert_eq!(changed(1, 3), Reject::Malformed);
        assert_eq!(ExchangeLetter::decode(&bytes[..9]), Err(Reject::Malformed));
        assert_eq!(ExchangeLetter::decode(&bytes[..bytes.len() - 1]), Err(Reject::Malformed));
        let mut infinite = bytes.clone();
        infinite.truncate(10);
        infinite.extend(f64::INFINITY.to_le_bytes());
        infinite.extend(0.0f64.to_le_bytes());
        assert_eq!(ExchangeLetter::decode(&infinite), Err(Reject::NotFinite));
        let letter = ExchangeLetter::decode(&bytes).expect("a letter");
        assert_eq!(letter.expect_vectors(2, 1), Ok(()));
        assert_eq!(letter.expect_vectors(1, 2), Err(Reject::WrongDimension));
        assert_eq!(letter.expect_vectors(2, 2), Err(Reject::WrongDimension));
    }
}
