//! Points and scalars as bytes: one encoding for each, and every other one refused by name.

use crate::flaw::Flaw;
use curve25519_dalek::{
    ristretto::{CompressedRistretto, RistrettoPoint},
    scalar::Scalar,
    traits::Identity,
};

/// A point with its encoding, so that it is compressed once however often it is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Point {
    pub(crate) point: RistrettoPoint,
    pub(crate) bytes: [u8; 32],
}

impl Point {
    pub(crate) fn new(point: RistrettoPoint) -> Point {
        Point { point, bytes: point.compress().to_bytes() }
    }

    /// Reads a point that is not the identity: a prover's message is the identity with probability 2^-252 only.
    pub(crate) fn from_bytes(bytes: [u8; 32]) -> Result<Point, Flaw> {
        let point = CompressedRistretto(bytes).decompress().ok_or(Flaw::PointNotCanonical)?;
        if point == RistrettoPoint::identity() { Err(Flaw::IdentityPoint) } else { Ok(Point { point, bytes }) }
    }
}

/// Reads a scalar that is reduced modulo the order of the group.
pub(crate) fn scalar(bytes: [u8; 32]) -> Result<Scalar, Flaw> {
    Option::from(Scalar::from_canonical_bytes(bytes)).ok_or(Flaw::ScalarNotReduced)
}

/// Takes points and scalars off the front of bytes that a peer sent.
pub(crate) struct Reader<'b> {
    bytes: &'b [u8],
}

impl<'b> Reader<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Reader<'b> {
        Reader { bytes }
    }

    pub(crate) fn take<const N: usize>(&mut self) -> Result<[u8; N], Flaw> {
        let (taken, rest) = self.bytes.split_first_chunk().ok_or(Flaw::TooShort)?;
        self.bytes = rest;
        Ok(*taken)
    }

    /// The next so many bytes.
    pub(crate) fn slice(&mut self, length: usize) -> Result<&'b [u8], Flaw> {
        let (taken, rest) = self.bytes.split_at_checked(length).ok_or(Flaw::TooShort)?;
        self.bytes = rest;
        Ok(taken)
    }

    pub(crate) fn point(&mut self) -> Result<Point, Flaw> {
        Point::from_bytes(self.take()?)
    }

    pub(crate) fn scalar(&mut self) -> Result<Scalar, Flaw> {
        scalar(self.take()?)
    }

    /// A count, refused beyond a bound before anything is reserved for it.
    pub(crate) fn count(&mut self, most: usize) -> Result<usize, Flaw> {
        let count = u32::from_le_bytes(self.take()?) as usize;
        if count <= most { Ok(count) } else { Err(Flaw::WrongLength) }
    }

    pub(crate) fn finish(self) -> Result<(), Flaw> {
        if self.bytes.is_empty() { Ok(()) } else { Err(Flaw::TrailingBytes) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_points_and_reduced_scalars_are_read() {
        assert_eq!(Point::from_bytes([0; 32]).expect_err("the identity"), Flaw::IdentityPoint);
        // RFC 9496, appendix A.3: not canonical, negative, not a square.
        let mut minus_one = [0xff; 32];
        (minus_one[0], minus_one[31]) = (0xec, 0x7f);
        let mut one = [0; 32];
        one[0] = 1;
        for bytes in [[0xff; 32], minus_one, one] {
            assert_eq!(Point::from_bytes(bytes).expect_err("no point"), Flaw::PointNotCanonical);
        }
        let order_minus_one = (-Scalar::ONE).to_bytes();
        assert_eq!(scalar(order_minus_one), Ok(-Scalar::ONE));
        let mut order = order_minus_one;
        order[0] += 1;
        assert_eq!(scalar(order), Err(Flaw::ScalarNotReduced));
        assert_eq!(scalar([0xff; 32]), Err(Flaw::ScalarNotReduced));
    }

    #[test]
    fn a_reader_names_what_is_missing_and_what_is_left_over() {
        assert_eq!(Reader::new(&[0; 31]).scalar(), Err(Flaw::TooShort));
        let mut reader = Reader::new(&[0; 33]);
        assert_eq!(reader.scalar(), Ok(Scalar::ZERO));
        assert_eq!(reader.finish(), Err(Flaw::TrailingBytes));
        assert_eq!(Reader::new(&5_u32.to_le_bytes()).count(4), Err(Flaw::WrongLength));
    }
}
