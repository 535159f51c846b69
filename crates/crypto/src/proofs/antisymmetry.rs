//! Antisymmetry (4.5): "the masks of a pair cancel".
//!
//! **Statement.** Commitments C_uv and C_vu, published by u and v. **Relation.** Delta_uv = -Delta_vu, coordinate by coordinate.
//!
//! **Protocol.** None: u and v expand masks *and* blindings from their shared secret with opposite signs ([`pad`](crate::pad)), so the
//! commitments of honest members are opposite points, and everybody checks C_uv + C_vu = 0.
//!
//! **Why sound.** If u can open C_uv and v can open C_vu ([`opening`](super::opening) proves both, in each one's own name), and the sum is the identity Com(0; 0), binding
//! (discrete logarithm) makes the sum of their masks zero. Without the proofs of opening v could publish -C_uv as a copy, without knowing the mask; then v cannot prove its
//! sum either. **Zero-knowledge**: nothing is said that u's commitment does not say.
//!
//! **Blame.** The check says that a pair is at odds, not who is wrong: that takes the signed messages of the pair. The check is
//! bound to round and board by the entries in which the two commitments stand.
//!
//! **Cost.** No bytes; one addition per pair.

use crate::{commitment::Commitment, flaw::Flaw};
use curve25519_dalek::{ristretto::RistrettoPoint, traits::Identity};

/// Whether the masks that two neighbours committed to cancel.
pub fn verify(of_one: &Commitment, of_other: &Commitment) -> Result<(), Flaw> {
    if of_one.0.point + of_other.0.point == RistrettoPoint::identity() { Ok(()) } else { Err(Flaw::NotAntisymmetric) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        commitment::Opening,
        generators::Generators,
        pad::{Direction, PairSecret, Sign},
    };
    use curve25519_dalek::scalar::Scalar;
    use zeroize::Zeroizing;

    fn mask(sign: Sign, round: u64, dimension: usize) -> Opening {
        let mut secret = PairSecret::from_bytes(&[5; 32], sign, 0);
        secret.stream(round, Direction::FromSmaller).expect("unused").scalars(dimension).expect("few").0.into()
    }

    #[test]
    fn commitments_of_both_ends_to_one_pad_cancel() {
        for dimension in [1, 4] {
            let generators = Generators::new(dimension, 0);
            let of = |sign| mask(sign, 3, dimension).commit(&generators).expect("few");
            assert_eq!(verify(&of(Sign::Adds), &of(Sign::Subtracts)), Ok(()));
            assert_eq!(verify(&of(Sign::Adds), &of(Sign::Adds)), Err(Flaw::NotAntisymmetric));
        }
    }

    #[test]
    fn another_round_another_mask_or_another_blinding_do_not_cancel() {
        let generators = Generators::new(1, 0);
        let right = mask(Sign::Adds, 3, 1).commit(&generators).expect("few");
        let opening = mask(Sign::Subtracts, 3, 1);
        let changed = |value: u64, blinding: u64| {
            Opening::new(
                Zeroizing::new(vec![opening.values()[0] + Scalar::from(value)]),
                Zeroizing::new(opening.blinding() + Scalar::from(blinding)),
            )
        };
        for wrong in [mask(Sign::Subtracts, 4, 1), changed(1, 0), changed(0, 1)] {
            assert_eq!(verify(&right, &wrong.commit(&generators).expect("few")), Err(Flaw::NotAntisymmetric));
        }
    }
}
