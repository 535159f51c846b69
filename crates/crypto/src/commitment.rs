//! Pedersen commitments over Ristretto255, to one number or to a vector.
//!
//! ```text
//! Com(v; r) = v_0 G_0 + ... + v_{d-1} G_{d-1} + r H                                [Pedersen 1991; spec 04, section 5.2]
//! Com(v; r) + Com(w; s) = Com(v + w; r + s)
//! ```
//!
//! **Hiding, against everybody for ever**: for a uniform blinding r the commitment is a uniform element, whatever v is.
//! **Binding, against whoever cannot compute discrete logarithms**: two openings of one commitment give a relation between
//! generators that were hashed to the group. A commitment to one number is a commitment to a vector of length one, and a shorter
//! vector is one with zeros behind it.

use crate::{
    encoding::Point,
    fixed_point::to_scalar,
    flaw::{Flaw, Unfit},
    gaussian_mask::GaussianMasks,
    generators::{Generators, bases},
    pad::ScalarPad,
};
use curve25519_dalek::{
    ristretto::RistrettoPoint,
    scalar::Scalar,
    traits::{MultiscalarMul, VartimeMultiscalarMul},
};
use rand_core::CryptoRng;
use std::{fmt, iter};
use zeroize::Zeroizing;

/// A commitment, as it stands on the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commitment(pub(crate) Point);

impl Commitment {
    /// Bytes of a commitment.
    pub const BYTES: usize = 32;

    /// Reads a commitment; the identity is refused, since only Com(0; 0), which hides nothing, is the identity.
    pub fn from_bytes(bytes: [u8; 32]) -> Result<Commitment, Flaw> {
        Point::from_bytes(bytes).map(Commitment)
    }

    /// The canonical encoding.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.bytes
    }

    pub(crate) fn new(point: RistrettoPoint) -> Commitment {
        Commitment(Point::new(point))
    }

    /// The commitment to the sum: anybody can compute it. The empty sum is the identity.
    pub fn sum<'c>(commitments: impl IntoIterator<Item = &'c Commitment>) -> Commitment {
        Commitment::new(commitments.into_iter().map(|commitment| commitment.0.point).sum())
    }

    /// Whether these numbers and this blinding, now public, open the commitment.
    pub fn opens_to(&self, values: &[Scalar], blinding: &Scalar, generators: &Generators) -> Result<(), Flaw> {
        if values.len() > generators.dimension() {
            return Err(Flaw::WrongLength);
        }
        let point = RistrettoPoint::vartime_multiscalar_mul(
            values.iter().chain([blinding]),
            generators.vector[..values.len()].iter().chain([&bases().blinding_point]),
        );
        if point == self.0.point { Ok(()) } else { Err(Flaw::OpeningMismatch) }
    }
}

/// What a commitment holds: the numbers and the blinding. Wiped when dropped; neither cloned nor shown.
pub struct Opening {
    pub(crate) values: Zeroizing<Vec<Scalar>>,
    pub(crate) blinding: Zeroizing<Scalar>,
}

impl Opening {
    /// One integer, with a fresh blinding.
    pub fn of_integer(integer: i64, rng: &mut impl CryptoRng) -> Opening {
        Opening::of_integers(&[integer], rng)
    }

    /// A vector of integers, with a fresh blinding.
    pub fn of_integers(integers: &[i64], rng: &mut impl CryptoRng) -> Opening {
        let values = Zeroizing::new(integers.iter().map(|integer| to_scalar(*integer)).collect());
        Opening { values, blinding: Zeroizing::new(Scalar::random(rng)) }
    }

    /// Given numbers and a given blinding.
    pub fn new(values: Zeroizing<Vec<Scalar>>, blinding: Zeroizing<Scalar>) -> Opening {
        Opening { values, blinding }
    }

    /// How many numbers there are.
    pub fn dimension(&self) -> usize {
        self.values.len()
    }

    /// The numbers, for the member's own arithmetic.
    pub fn values(&self) -> &[Scalar] {
        &self.values
    }

    /// The blinding, which opens the commitment together with the numbers.
    pub fn blinding(&self) -> &Scalar {
        &self.blinding
    }

    /// The commitment, in constant time.
    pub fn commit(&self, generators: &Generators) -> Result<Commitment, Unfit> {
        match self.dimension() {
            0 => Err(Unfit::Lengths),
            1 => Ok(Commitment::new(bases().commit(&self.values[0], &self.blinding))),
            dimension if dimension > generators.dimension() => Err(Unfit::TooMany),
            dimension => Ok(Commitment::new(RistrettoPoint::multiscalar_mul(
                self.values.iter().chain([&*self.blinding]),
                generators.vector[..dimension].iter().chain([&bases().blinding_point]),
            ))),
        }
    }

    /// The opening of a combination of commitments: sum_j weights_j opening_j. All have the same dimension.
    pub(crate) fn combine<'o>(
        openings: impl IntoIterator<Item = &'o Opening>,
        weights: impl IntoIterator<Item = Scalar>,
    ) -> Result<Opening, Unfit> {
        let mut openings = openings.into_iter().zip(weights).peekable();
        let dimension = openings.peek().ok_or(Unfit::Lengths)?.0.dimension();
        let mut values = Zeroizing::new(vec![Scalar::ZERO; dimension]);
        let mut blinding = Zeroizing::new(Scalar::ZERO);
        for (opening, weight) in openings {
            if opening.dimension() != dimension {
                return Err(Unfit::Lengths);
            }
            for (sum, value) in values.iter_mut().zip(opening.values.iter()) {
                *sum += weight * value;
            }
            *blinding += weight * *opening.blinding;
        }
        Ok(Opening { values, blinding })
    }

    /// The opening of a sum of commitments.
    pub fn sum<'o>(openings: impl IntoIterator<Item = &'o Opening>) -> Result<Opening, Unfit> {
        Opening::combine(openings, iter::repeat(Scalar::ONE))
    }
}

impl From<ScalarPad> for Opening {
    fn from(pad: ScalarPad) -> Opening {
        Opening { values: pad.masks, blinding: pad.blinding }
    }
}

impl From<GaussianMasks> for Opening {
    fn from(masks: GaussianMasks) -> Opening {
        let values = Zeroizing::new(masks.masks.iter().map(|mask| to_scalar(*mask)).collect());
        Opening { values, blinding: masks.blinding }
    }
}

impl fmt::Debug for Opening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opening of {} numbers", self.dimension())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rng;

    #[test]
    fn sums_of_commitments_are_commitments_to_sums() {
        let (generators, mut rng) = (Generators::new(5, 0), rng(1));
        for dimension in [1, 5] {
            let openings: Vec<Opening> =
                (0..4).map(|i| Opening::of_integers(&vec![i * 7 - 9; dimension], &mut rng)).collect();
            let commitments: Vec<Commitment> =
                openings.iter().map(|opening| opening.commit(&generators).expect("few")).collect();
            let sum = Opening::sum(&openings).expect("one dimension");
            assert_eq!(Commitment::sum(&commitments), sum.commit(&generators).expect("few"));
            assert_eq!(sum.values[0], to_scalar(42 - 36));
        }
    }

    #[test]
    fn only_the_opening_opens_a_commitment() {
        let (generators, mut rng) = (Generators::new(3, 0), rng(2));
        let opening = Opening::of_integers(&[1, -2, 3], &mut rng);
        let commitment = opening.commit(&generators).expect("few");
        assert_eq!(commitment.opens_to(&opening.values, &opening.blinding, &generators), Ok(()));
        let mut swapped = opening.values.to_vec();
        swapped.swap(0, 2);
        let other = *opening.blinding + Scalar::ONE;
        for (values, blinding) in
            [(&swapped[..], *opening.blinding), (&opening.values[..], other), (&opening.values[..2], *opening.blinding)]
        {
            assert_eq!(commitment.opens_to(values, &blinding, &generators), Err(Flaw::OpeningMismatch));
        }
        assert_eq!(commitment.opens_to(&[Scalar::ONE; 4], &other, &generators), Err(Flaw::WrongLength));
    }

    #[test]
    fn equal_numbers_have_different_commitments_and_openings_show_nothing() {
        let (generators, mut rng) = (Generators::new(1, 0), rng(3));
        let [a, b] = [(); 2].map(|()| Opening::of_integer(123_456_789, &mut rng));
        assert_ne!(a.commit(&generators).expect("few"), b.commit(&generators).expect("few"));
        assert_eq!(format!("{a:?}"), "Opening of 1 numbers");
    }

    #[test]
    fn openings_of_different_or_no_length_are_refused() {
        let (generators, mut rng) = (Generators::new(2, 0), rng(4));
        let openings = [Opening::of_integers(&[1], &mut rng), Opening::of_integers(&[1, 2], &mut rng)];
        assert_eq!(Opening::sum(&openings).expect_err("lengths"), Unfit::Lengths);
        assert_eq!(Opening::sum(&[]).expect_err("empty"), Unfit::Lengths);
        assert_eq!(Opening::of_integers(&[], &mut rng).commit(&generators).expect_err("empty"), Unfit::Lengths);
        assert_eq!(Opening::of_integers(&[1; 3], &mut rng).commit(&generators).expect_err("long"), Unfit::TooMany);
    }
}
