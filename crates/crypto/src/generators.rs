//! Generators of Ristretto255 whose relations nobody knows: each is hashed to the group.
//!
//! ```text
//! generator(family, index) = map(SHA-512("sottovoce/generators/v1" | length of family | family | index))
//! ```
//!
//! with the one-way map of RFC 9496, section 4.3.4. SHA-512 as a random oracle makes the generators independent uniform elements; to
//! know a relation between them is to solve a discrete logarithm. The basepoint of the group is not among them.
//!
//! | family | symbol | for |
//! |---|---|---|
//! | `value` | G_0, G_1, ... | the numbers of a commitment; one number takes G_0 |
//! | `blinding` | H | what hides them |
//! | `left`, `right` | L_i, R_i | the bits of a noise share, and the bits less one |
//! | `product` | Q | the inner product in the argument about them |

use curve25519_dalek::{
    ristretto::{RistrettoBasepointTable, RistrettoPoint},
    scalar::Scalar,
};
use sha2::{Digest, Sha512};
use std::sync::OnceLock;

const DOMAIN: &[u8] = b"sottovoce/generators/v1";

/// The most numbers in one commitment, and the most bits in one noise share.
pub const DIMENSION_MAX: usize = 1 << 20;
/// The most committed bits of one proof.
pub const BITS_MAX: usize = 4096;

/// The generators that a run needs. They follow from two lengths and cost about 10 microseconds each; make them once.
#[derive(Clone, Debug)]
pub struct Generators {
    pub(crate) vector: Vec<RistrettoPoint>,
    pub(crate) left: Vec<RistrettoPoint>,
    pub(crate) right: Vec<RistrettoPoint>,
}

/// The generators that every commitment needs, with tables for fast multiplication in constant time.
pub(crate) struct Bases {
    pub(crate) value: RistrettoBasepointTable,
    pub(crate) blinding: RistrettoBasepointTable,
    pub(crate) value_point: RistrettoPoint,
    pub(crate) blinding_point: RistrettoPoint,
    pub(crate) product: RistrettoPoint,
}

impl Bases {
    /// value * G_0 + blinding * H, in constant time.
    pub(crate) fn commit(&self, value: &Scalar, blinding: &Scalar) -> RistrettoPoint {
        value * &self.value + blinding * &self.blinding
    }
}

/// The bases, made at the first use.
pub(crate) fn bases() -> &'static Bases {
    static BASES: OnceLock<Bases> = OnceLock::new();
    BASES.get_or_init(|| {
        let (value_point, blinding_point) = (generator("value", 0), generator("blinding", 0));
        Bases {
            value: RistrettoBasepointTable::create(&value_point),
            blinding: RistrettoBasepointTable::create(&blinding_point),
            value_point,
            blinding_point,
            product: generator("product", 0),
        }
    })
}

impl Generators {
    /// Generators for commitments to `dimension` numbers and for noise of up to `bits` bits.
    ///
    /// # Panics
    ///
    /// If there is no number, or more than [`DIMENSION_MAX`] numbers or [`BITS_MAX`] bits: both come from a task that was checked.
    pub fn new(dimension: usize, bits: usize) -> Generators {
        assert!((1..=DIMENSION_MAX).contains(&dimension), "a commitment to {dimension} numbers");
        assert!(bits <= BITS_MAX, "noise of {bits} bits");
        let family = |name, count: usize| (0..count as u64).map(|index| generator(name, index)).collect();
        // The argument about bits halves its vectors until one is left.
        let bits = if bits == 0 { 0 } else { bits.next_power_of_two() };
        Generators { vector: family("value", dimension), left: family("left", bits), right: family("right", bits) }
    }

    /// The most numbers in a commitment.
    pub fn dimension(&self) -> usize {
        self.vector.len()
    }

    /// The most bits of a noise share.
    pub fn bits(&self) -> usize {
        self.left.len()
    }
}

/// One generator by its name. Public, so that other programs can compare theirs.
pub fn generator(family: &str, index: u64) -> RistrettoPoint {
    let wide = Sha512::new()
        .chain_update(DOMAIN)
        .chain_update((family.len() as u64).to_le_bytes())
        .chain_update(family.as_bytes())
        .chain_update(index.to_le_bytes())
        .finalize();
    RistrettoPoint::from_uniform_bytes(&wide.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use curve25519_dalek::{constants::RISTRETTO_BASEPOINT_POINT, traits::Identity};

    #[test]
    fn all_generators_differ_and_none_is_the_identity_or_the_basepoint() {
        let generators = Generators::new(20, 60);
        assert_eq!((generators.dimension(), generators.bits()), (20, 64));
        let all: Vec<_> = [&generators.vector, &generators.left, &generators.right]
            .into_iter()
            .flatten()
            .chain([&bases().blinding_point, &bases().product])
            .collect();
        for (i, a) in all.iter().enumerate() {
            assert!(**a != RistrettoPoint::identity() && **a != RISTRETTO_BASEPOINT_POINT);
            assert!(all[..i].iter().all(|b| a != b && **a != -**b), "generator {i}");
        }
        assert_eq!(generators.vector[0], bases().value_point);
    }

    #[test]
    fn a_longer_list_begins_with_the_shorter_one() {
        let (short, long) = (Generators::new(1, 8), Generators::new(9, 32));
        assert_eq!(short.vector, long.vector[..1]);
        assert_eq!(short.right, long.right[..8]);
    }
}
