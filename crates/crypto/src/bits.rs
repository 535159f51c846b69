//! Commitments to many bits at once, in one point.
//!
//! ```text
//! B = alpha H + <a, L> + <a - 1, R>,      a in {0, 1}^n
//! ```
//!
//! Hiding and binding as [Pedersen commitments](crate::commitment), with generators of their own. The second part, a - 1, is what
//! [`bit_sum`](crate::proofs::bit_sum) needs to prove that a holds bits and nothing else; it is in the commitment from the start, so that
//! the commitment can be published long before anything is proved. A number of bits that is no power of two is padded with zeros.

use crate::{
    encoding::Point,
    flaw::{Flaw, Unfit},
    generators::{BITS_MAX, Generators, bases},
};
use curve25519_dalek::{ristretto::RistrettoPoint, scalar::Scalar};
use rand_core::CryptoRng;
use std::{fmt, iter};
use subtle::{Choice, ConditionallySelectable};
use zeroize::Zeroizing;

/// A commitment to a list of bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitsCommitment(pub(crate) Point);

impl BitsCommitment {
    /// Reads a commitment; the identity is refused.
    pub fn from_bytes(bytes: [u8; 32]) -> Result<BitsCommitment, Flaw> {
        Point::from_bytes(bytes).map(BitsCommitment)
    }

    /// The canonical encoding.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.bytes
    }
}

/// Committed bits with their blinding. Wiped when dropped; neither cloned nor shown; a proof consumes them.
pub struct BitsOpening {
    /// Each 0 or 1, padded to a power of two.
    pub(crate) padded: Zeroizing<Vec<u8>>,
    count: usize,
    pub(crate) blinding: Zeroizing<Scalar>,
}

impl BitsOpening {
    /// Fair bits, drawn from the generator.
    pub fn draw(count: usize, rng: &mut impl CryptoRng) -> Result<BitsOpening, Unfit> {
        let mut bytes = Zeroizing::new(vec![0; count]);
        rng.fill_bytes(&mut bytes);
        bytes.iter_mut().for_each(|byte| *byte &= 1);
        BitsOpening::new(&bytes, rng)
    }

    /// Given bits, each 0 or 1; only the lowest bit of each byte counts.
    pub fn new(bits: &[u8], rng: &mut impl CryptoRng) -> Result<BitsOpening, Unfit> {
        if bits.is_empty() || bits.len() > BITS_MAX {
            return Err(Unfit::Bits);
        }
        let padding = bits.len().next_power_of_two() - bits.len();
        let padded = bits.iter().map(|bit| bit & 1).chain(iter::repeat_n(0, padding)).collect();
        let blinding = Zeroizing::new(Scalar::random(rng));
        Ok(BitsOpening { padded: Zeroizing::new(padded), count: bits.len(), blinding })
    }

    /// The bits, without padding.
    pub fn bits(&self) -> &[u8] {
        &self.padded[..self.count]
    }

    /// The commitment, in constant time.
    pub fn commit(&self, generators: &Generators) -> Result<BitsCommitment, Unfit> {
        if self.padded.len() > generators.bits() {
            return Err(Unfit::TooMany);
        }
        let mut sum = &*self.blinding * &bases().blinding;
        for ((bit, left), right) in self.padded.iter().zip(&generators.left).zip(&generators.right) {
            // A bit of one adds L_i; a bit of zero adds -R_i.
            sum += RistrettoPoint::conditional_select(&-right, left, Choice::from(*bit));
        }
        Ok(BitsCommitment(Point::new(sum)))
    }
}

impl fmt::Debug for BitsOpening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BitsOpening of {} bits", self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rng;

    #[test]
    fn the_commitment_is_that_of_the_formula_and_padding_counts_as_zeros() {
        let (generators, mut rng) = (Generators::new(1, 8), rng(1));
        let opening = BitsOpening::new(&[1, 0, 1, 1, 0], &mut rng).expect("few");
        let mut sum = bases().blinding_point * *opening.blinding;
        for (i, bit) in [1_u64, 0, 1, 1, 0, 0, 0, 0].into_iter().enumerate() {
            sum += generators.left[i] * Scalar::from(bit) + generators.right[i] * (Scalar::from(bit) - Scalar::ONE);
        }
        assert_eq!(opening.commit(&generators).expect("few").to_bytes(), sum.compress().to_bytes());
        assert_eq!(opening.bits(), [1, 0, 1, 1, 0]);
    }

    #[test]
    fn drawn_bits_are_fair_and_nothing_of_them_is_shown() {
        let mut rng = rng(2);
        let ones: usize = (0..100)
            .map(|_| {
                BitsOpening::draw(100, &mut rng).expect("few").bits().iter().map(|bit| usize::from(*bit)).sum::<usize>()
            })
            .sum();
        // Five deviations of 10,000 fair bits.
        assert!(ones.abs_diff(5000) < 250, "{ones}");
        let bits = BitsOpening::draw(9, &mut rng).expect("few");
        assert_eq!(format!("{bits:?}"), "BitsOpening of 9 bits");
        assert_eq!(bits.commit(&Generators::new(1, 8)).expect_err("nine"), Unfit::TooMany);
        assert_eq!(BitsOpening::draw(0, &mut rng).expect_err("none"), Unfit::Bits);
        assert_eq!(BitsOpening::draw(BITS_MAX + 1, &mut rng).expect_err("many"), Unfit::Bits);
        assert_eq!(BitsCommitment::from_bytes([0; 32]), Err(Flaw::IdentityPoint));
    }
}
