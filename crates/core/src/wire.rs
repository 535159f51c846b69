//! Messages as bytes.
//!
//! The bytes counted in a figure are these bytes. Little-endian, no padding:
//!
//! | message | bytes |
//! |---|---|
//! | post | sequence number (8), numbers (8 each) |
//! | letter | as its algorithm encodes it, [`LETTER_BYTES_MAX`] at most |

use crate::Reject;

/// The longest letter that is encoded or decoded.
pub const LETTER_BYTES_MAX: usize = 1 << 24;

/// Numbers beyond this are taken from no peer: products of two of them, and sums of many, are still finite.
pub const NUMBER_MAX: f64 = 1e75;

/// The size of an encoded post of `len` numbers.
pub fn post_bytes(len: usize) -> u64 {
    8 + 8 * len as u64
}

/// A message that has a form as bytes. Decoding borrows from the bytes and never panics on any input.
pub trait Wire<'a>: Sized {
    /// False for algorithms that send no letters at all: drivers may then run agents in parallel.
    const EXISTS: bool = true;

    /// Appends the encoded message.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads a message that fills `bytes` exactly.
    fn decode(bytes: &'a [u8]) -> Result<Self, Reject>;

    /// How many model-sized vectors the message carries, as the papers count communication.
    fn vectors(&self) -> u64;
}

/// The letter of an algorithm that sends none.
#[derive(Clone, Copy, Debug)]
pub enum NoLetter {}

impl Wire<'_> for NoLetter {
    const EXISTS: bool = false;

    fn encode(&self, _out: &mut Vec<u8>) {
        match *self {}
    }

    fn decode(_bytes: &[u8]) -> Result<Self, Reject> {
        Err(Reject::Malformed)
    }

    fn vectors(&self) -> u64 {
        match *self {}
    }
}

/// Numbers inside a message, where they need not be aligned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Numbers<'a> {
    /// As the sender holds them.
    Plain(&'a [f64]),
    /// As they arrived: a multiple of eight bytes, every number finite and at most [`NUMBER_MAX`].
    Encoded(&'a [u8]),
}

impl<'a> Numbers<'a> {
    /// Takes bytes from a peer: whole numbers of at most [`NUMBER_MAX`], or nothing.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Reject> {
        if bytes.len() > LETTER_BYTES_MAX || !bytes.len().is_multiple_of(8) {
            return Err(Reject::Malformed);
        }
        // No early end: bad numbers are rare, and so all are looked at side by side.
        let fits = |&number: &[u8; 8]| f64::from_le_bytes(number).abs() <= NUMBER_MAX;
        match bytes.as_chunks().0.iter().fold(true, |all, number| all & fits(number)) {
            true => Ok(Numbers::Encoded(bytes)),
            false => Err(Reject::NotFinite),
        }
    }

    /// Appends the bytes.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Numbers::Plain(values) => {
                let start = out.len();
                out.resize(start + 8 * values.len(), 0);
                let places = out[start..].as_chunks_mut().0;
                places.iter_mut().zip(values).for_each(|(place, value)| *place = value.to_le_bytes());
            }
            Numbers::Encoded(bytes) => out.extend_from_slice(bytes),
        }
    }

    /// How many numbers.
    #[inline]
    pub fn len(&self) -> usize {
        match *self {
            Numbers::Plain(values) => values.len(),
            Numbers::Encoded(bytes) => bytes.len() / 8,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = f64> + use<'a> {
        let (plain, encoded): (&[f64], &[u8]) = match *self {
            Numbers::Plain(values) => (values, &[]),
            Numbers::Encoded(bytes) => (&[], bytes),
        };
        let decoded = encoded.as_chunks::<8>().0.iter().map(|&bytes| f64::from_le_bytes(bytes));
        plain.iter().copied().chain(decoded)
    }

    /// Copies the numbers out; refuses any other length than `out` has.
    #[inline]
    pub fn copy_to(&self, out: &mut [f64]) -> Result<(), Reject> {
        if self.len() != out.len() {
            return Err(Reject::WrongDimension);
        }
        match *self {
            Numbers::Plain(values) => out.copy_from_slice(values),
            Numbers::Encoded(bytes) => {
                let numbers = bytes.as_chunks().0.iter();
                out.iter_mut().zip(numbers).for_each(|(to, from)| *to = f64::from_le_bytes(*from));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_to_the_bit_and_bad_ones_never() {
        let values = [1.5, -0.0, f64::MIN_POSITIVE, -NUMBER_MAX];
        let mut bytes = Vec::new();
        Numbers::Plain(&values).encode(&mut bytes);
        let mut back = [0.0; 4];
        Numbers::decode(&bytes).and_then(|numbers| numbers.copy_to(&mut back)).expect("own encoding");
        assert_eq!(values.map(f64::to_bits), back.map(f64::to_bits));
        assert_eq!(Numbers::decode(&bytes[1..]), Err(Reject::Malformed));
        assert_eq!(Numbers::decode(&f64::NAN.to_le_bytes()), Err(Reject::NotFinite));
        assert_eq!(Numbers::decode(&f64::INFINITY.to_le_bytes()), Err(Reject::NotFinite));
        assert_eq!(Numbers::decode(&NUMBER_MAX.next_up().to_le_bytes()), Err(Reject::NotFinite));
        assert_eq!(Numbers::Plain(&values).copy_to(&mut [0.0; 3]), Err(Reject::WrongDimension));
    }
}
