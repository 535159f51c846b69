//! Value in range (4.7): "each of my values lies between the public bounds".
//!
//! **Statement.** Commitments C_1 ... C_m to single numbers, and integers low < high. **Relation.** The prover knows v_j, r_j with C_j = Com(v_j; r_j) and low <= v_j <= high.
//!
//! **Protocol.** Anybody computes commitments to v_j - low and to high - v_j; one [`range`](super::range) proof shows that both have few bits. If high - low + 1 is a power of two that is a width, v_j - low alone
//! is enough. So both bounds are met exactly, whatever they are; nothing is lost at the upper end.
//!
//! **Why sound.** v - low in [0, 2^b) and high - v in [0, 2^b) as scalars add up to high - low < 2^63, far below the group's order; so both are the integers they seem to be, and neither
//! is negative. **Zero-knowledge** as the range proof.
//!
//! **What it does not say**: that the value is the member's true one. Lying inside the range cannot be found out.
//!
//! **Cost.** For one value with bounds 0 and 2^32: two numbers of 64 bits, 641 bytes. With bounds that span less than 2^16, as on a noise lattice: 513.

use super::range::{NUMBERS_MAX, RangeBatch, RangeProof, RangeRules, small};
use crate::{
    commitment::{Commitment, Opening},
    fixed_point::{INTEGER_BOUND, to_scalar},
    flaw::{Flaw, Unfit},
    generators::bases,
    transcript::Context,
};
use curve25519_dalek::scalar::Scalar;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// Public bounds of a value, in steps of the grid, and the rules of the range proof that shows them.
#[derive(Clone)]
pub struct ValueRange {
    low: i64,
    high: i64,
    two_sided: bool,
    rules: RangeRules,
}

impl ValueRange {
    /// The range from `low` to `high`, both included, for proofs about up to `values` values.
    pub fn new(low: i64, high: i64, values: usize) -> Result<ValueRange, Unfit> {
        let bounded = -INTEGER_BOUND < low && low < high && high < INTEGER_BOUND;
        if !bounded || values == 0 || values > NUMBERS_MAX / 2 {
            return Err(Unfit::Range);
        }
        let span = high.abs_diff(low);
        let width = [8, 16, 32, 64].into_iter().find(|width| *width == 64 || span >> width == 0).ok_or(Unfit::Range)?;
        let two_sided = width == 64 || span != (1 << width) - 1;
        let rules = RangeRules::new(width, if two_sided { 2 * values } else { values })?;
        Ok(ValueRange { low, high, two_sided, rules })
    }

    /// The lower bound.
    pub fn low(&self) -> i64 {
        self.low
    }

    /// The upper bound.
    pub fn high(&self) -> i64 {
        self.high
    }

    /// The rules of the range proofs, for a [`RangeBatch`].
    pub fn rules(&self) -> &RangeRules {
        &self.rules
    }

    /// How many numbers the range proof is about.
    fn numbers(&self, values: usize) -> usize {
        if self.two_sided { 2 * values } else { values }
    }

    /// Commitments to v - low and, if needed, to high - v.
    fn shifted(&self, commitments: &[Commitment]) -> Vec<Commitment> {
        let (low, high) = (bases().value_point * to_scalar(self.low), bases().value_point * to_scalar(self.high));
        let mut shifted: Vec<_> = commitments.iter().map(|c| Commitment::new(c.0.point - low)).collect();
        if self.two_sided {
            shifted.extend(commitments.iter().map(|c| Commitment::new(high - c.0.point)));
        }
        shifted
    }
}

/// A proof that values lie between public bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueProof(RangeProof);

impl ValueProof {
    /// Proves that every opened value lies in the range.
    pub fn prove(
        range: &ValueRange,
        commitments: &[Commitment],
        openings: &[&Opening],
        context: &Context,
        rng: &mut impl CryptoRng,
    ) -> Result<ValueProof, Unfit> {
        if openings.iter().any(|opening| opening.dimension() != 1) {
            return Err(Unfit::Lengths);
        }
        let (low, high) = (to_scalar(range.low), to_scalar(range.high));
        let opening =
            |value: Scalar, blinding: Scalar| Opening::new(Zeroizing::new(vec![value]), Zeroizing::new(blinding));
        let mut shifted: Vec<Opening> = openings.iter().map(|o| opening(o.values()[0] - low, *o.blinding())).collect();
        if range.two_sided {
            shifted.extend(openings.iter().map(|o| opening(high - o.values()[0], -o.blinding())));
        }
        let numbers = shifted.iter().map(|opening| small(&opening.values()[0]).ok_or(Unfit::Untrue));
        let numbers = Zeroizing::new(numbers.collect::<Result<Vec<u64>, Unfit>>()?);
        let lent: Vec<&Opening> = shifted.iter().collect();
        RangeProof::prove(&range.rules, &range.shifted(commitments), &numbers, &lent, context, rng).map(ValueProof)
    }

    /// Verifies the proof by itself.
    pub fn verify(&self, range: &ValueRange, commitments: &[Commitment], context: &Context) -> Result<(), Flaw> {
        self.0.verify(&range.rules, &range.shifted(commitments), context)
    }

    /// Enters the proof into a batch of [`ValueRange::rules`], which must then be finished.
    pub fn verify_in(
        &self,
        range: &ValueRange,
        commitments: &[Commitment],
        context: &Context,
        batch: &mut RangeBatch<'_>,
    ) -> Result<(), Flaw> {
        self.0.verify_in(&range.shifted(commitments), context, batch)
    }

    /// Bytes of a proof about so many values.
    pub fn bytes(range: &ValueRange, values: usize) -> usize {
        RangeProof::bytes(&range.rules, range.numbers(values))
    }

    /// The proof as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.to_bytes()
    }

    /// Reads a proof about so many values.
    pub fn from_bytes(bytes: &[u8], range: &ValueRange, values: usize) -> Result<ValueProof, Flaw> {
        RangeProof::from_bytes(bytes, &range.rules, range.numbers(values)).map(ValueProof)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        generators::Generators,
        testing::{context, other_contexts, rng},
    };

    fn prove(range: &ValueRange, values: &[i64]) -> (Vec<Commitment>, Result<ValueProof, Unfit>) {
        let (generators, mut rng) = (Generators::new(1, 0), rng(1));
        let openings: Vec<Opening> = values.iter().map(|value| Opening::of_integer(*value, &mut rng)).collect();
        let commitments: Vec<Commitment> =
            openings.iter().map(|opening| opening.commit(&generators).expect("one")).collect();
        let lent: Vec<&Opening> = openings.iter().collect();
        let proof = ValueProof::prove(range, &commitments, &lent, &context(1), &mut rng);
        (commitments, proof)
    }

    #[test]
    fn both_bounds_are_met_exactly() {
        for (low, high) in
            [(0, 1), (0, 255), (0, 256), (-5, 1000), (0, 1 << 32), (0, (1 << 32) - 1), (-(1 << 61), 1 << 61)]
        {
            let range = ValueRange::new(low, high, 2).expect("a range");
            for value in [low, high, low + (high - low) / 2] {
                let (commitments, proof) = prove(&range, &[value]);
                let proof = proof.expect("in range");
                assert_eq!(proof.verify(&range, &commitments, &context(1)), Ok(()), "{value} of {low} to {high}");
                assert_eq!(proof.to_bytes().len(), ValueProof::bytes(&range, 1));
                assert_eq!(ValueProof::from_bytes(&proof.to_bytes(), &range, 1), Ok(proof));
            }
            for value in [low - 1, high + 1] {
                assert_eq!(prove(&range, &[value]).1, Err(Unfit::Untrue), "{value} of {low} to {high}");
            }
        }
    }

    /// The prover uses a wider range than the task's; its proof is that of another statement.
    #[test]
    fn a_proof_for_a_wider_range_is_refused() {
        let (wide, narrow) =
            (ValueRange::new(0, 200, 1).expect("a range"), ValueRange::new(0, 100, 1).expect("a range"));
        let (commitments, proof) = prove(&wide, &[150]);
        let proof = proof.expect("in the wider range");
        assert_eq!(proof.verify(&wide, &commitments, &context(1)), Ok(()));
        assert_eq!(proof.verify(&narrow, &commitments, &context(1)), Err(Flaw::RangeProof));
        for other in other_contexts(&context(1)) {
            assert_eq!(proof.verify(&wide, &commitments, &other), Err(Flaw::RangeProof));
        }
    }

    #[test]
    fn several_values_share_a_proof_and_one_outside_spoils_it() {
        let range = ValueRange::new(-10, 10, 5).expect("a range");
        let (commitments, proof) = prove(&range, &[-10, 0, 10, 3, 7]);
        assert_eq!(proof.expect("in range").verify(&range, &commitments, &context(1)), Ok(()));
        assert_eq!(prove(&range, &[0, 0, 11, 0, 0]).1, Err(Unfit::Untrue));
    }

    #[test]
    fn ranges_that_are_none_are_refused() {
        for (low, high, values) in
            [(1, 1, 1), (2, 1, 1), (0, INTEGER_BOUND, 1), (i64::MIN, 0, 1), (0, 1, 0), (0, 1, NUMBERS_MAX)]
        {
            assert_eq!(ValueRange::new(low, high, values).err(), Some(Unfit::Range));
        }
    }

    /// Com(low; 0), which hides nothing, is moved to the identity by the shift: refused, and no panic.
    #[test]
    fn a_commitment_that_the_shift_turns_into_the_identity_is_refused() {
        let range = ValueRange::new(5, 100, 1).expect("a range");
        for bound in [5_u64, 100] {
            let bare = Commitment::new(bases().value_point * Scalar::from(bound));
            let opening = Opening::new(Zeroizing::new(vec![Scalar::from(bound)]), Zeroizing::new(Scalar::ZERO));
            let proof = ValueProof::prove(&range, &[bare], &[&opening], &context(1), &mut rng(1)).expect("in range");
            assert_eq!(proof.verify(&range, &[bare], &context(1)), Err(Flaw::IdentityPoint));
        }
    }
}
