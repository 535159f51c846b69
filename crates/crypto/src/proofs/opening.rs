//! Knowledge of openings: "I can open every one of these commitments".
//!
//! **Statement.** Commitments C_1 ... C_m of dimension d. **Relation.** The prover knows v_j, r_j with C_j = Com(v_j; r_j) for all j.
//!
//! **Protocol** (Schnorr 1991, Okamoto 1992, for one random combination of all commitments):
//!
//! ```text
//! y            challenge from context and statement;     C = sum_j y^(j-1) C_j, and v, r its opening
//! T            = Com(t; s), t and s fresh
//! e            challenge
//! z = t + e v,  w = s + e r;    accept if  Com(z; w) = T + e C
//! ```
//!
//! **Why sound.** Two answers to one T with different e open C (special soundness). That for m different y, with the same C_j, gives m linear equations
//! whose Vandermonde matrix is invertible, and so an opening of every C_j. Fiat-Shamir in the random oracle model;
//! the extractor needs no assumption, the *uniqueness* of what it extracts is the binding of commitments (discrete logarithm).
//! **Why zero-knowledge.** z, w are uniform for every witness, and T follows from them: a simulator draws e, z, w first.
//!
//! **What it does not say**: anything about the numbers; and that two commitments hold different or equal ones.
//!
//! **Cost.** 32 (d + 2) bytes whatever m is: 96 for single numbers. Prove: one commitment. Verify: m + d + 2 points.

use super::{COMMITMENTS_MAX, append_commitments, powers};
use crate::{
    batch::{Batch, Equation},
    commitment::{Commitment, Opening},
    encoding::{Point, Reader},
    flaw::{Flaw, Unfit},
    generators::{DIMENSION_MAX, Generators},
    transcript::{Context, Transcript},
};
use curve25519_dalek::scalar::Scalar;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// A proof that the prover can open a list of commitments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpeningProof {
    message: Point,
    values: Vec<Scalar>,
    blinding: Scalar,
}

/// The transcript up to the statement, and the weight of the first commitments' combination.
fn start(commitments: &[Commitment], dimension: usize, context: &Context) -> (Transcript, Scalar) {
    let mut transcript = Transcript::new("opening", context);
    transcript.append_number("dimension", dimension as u64);
    append_commitments(&mut transcript, "commitment", commitments);
    let weight = transcript.challenge("y");
    (transcript, weight)
}

impl OpeningProof {
    /// Proves knowledge of the openings of these commitments, in this order; all have one dimension.
    pub fn prove(
        commitments: &[Commitment],
        openings: &[&Opening],
        generators: &Generators,
        context: &Context,
        rng: &mut impl CryptoRng,
    ) -> Result<OpeningProof, Unfit> {
        if commitments.len() != openings.len() || commitments.len() > COMMITMENTS_MAX {
            return Err(Unfit::Lengths);
        }
        let dimension = openings.first().ok_or(Unfit::Lengths)?.dimension();
        let (mut transcript, weight) = start(commitments, dimension, context);
        let witness = Opening::combine(openings.iter().copied(), powers(weight))?;
        let mut nonces = transcript.nonces(witness.values().iter().chain([witness.blinding()]), rng);
        let mask = Opening::new(
            Zeroizing::new((0..dimension).map(|_| nonces.scalar()).collect()),
            Zeroizing::new(nonces.scalar()),
        );
        let message = mask.commit(generators)?.0;
        transcript.append("message", &message.bytes);
        let e = transcript.challenge("e");
        let values = mask.values().iter().zip(witness.values()).map(|(mask, value)| mask + e * value).collect();
        Ok(OpeningProof { message, values, blinding: mask.blinding() + e * witness.blinding() })
    }

    /// Verifies the proof by itself.
    pub fn verify(&self, commitments: &[Commitment], generators: &Generators, context: &Context) -> Result<(), Flaw> {
        let mut batch = Batch::new(generators);
        self.verify_in(commitments, context, &mut batch)?;
        batch.finish_one()
    }

    /// Enters the proof's equation into a batch, which must then be finished.
    pub fn verify_in(&self, commitments: &[Commitment], context: &Context, batch: &mut Batch<'_>) -> Result<(), Flaw> {
        if commitments.is_empty()
            || commitments.len() > COMMITMENTS_MAX
            || self.values.len() > batch.generators.dimension()
        {
            return Err(Flaw::WrongLength);
        }
        let (mut transcript, weight) = start(commitments, self.values.len(), context);
        transcript.append("message", &self.message.bytes);
        let e = transcript.challenge("e");
        transcript.append_scalars("answer", self.values.iter());
        transcript.append("blinding", self.blinding.as_bytes());
        let mut equation = Equation::new(Flaw::OpeningProof);
        equation.add_vector(self.values.iter().copied());
        equation.blinding = self.blinding;
        equation.add(-Scalar::ONE, &self.message.point);
        for (commitment, power) in commitments.iter().zip(powers(weight)) {
            equation.add(-e * power, &commitment.0.point);
        }
        batch.push(&transcript, equation);
        Ok(())
    }

    /// The proof as bytes: message, blinding, answers.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.message.bytes.to_vec();
        bytes.extend(self.blinding.as_bytes());
        self.values.iter().for_each(|value| bytes.extend(value.as_bytes()));
        bytes
    }

    /// Reads a proof about commitments of this dimension.
    pub fn from_bytes(bytes: &[u8], dimension: usize) -> Result<OpeningProof, Flaw> {
        if dimension == 0 || dimension > DIMENSION_MAX {
            return Err(Flaw::WrongLength);
        }
        let mut reader = Reader::new(bytes);
        let (message, blinding) = (reader.point()?, reader.scalar()?);
        // Collecting grows with what is read, so a short message cannot make it reserve much.
        let values = (0..dimension).map(|_| reader.scalar()).collect::<Result<_, _>>()?;
        reader.finish()?;
        Ok(OpeningProof { message, values, blinding })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        generators::{bases, generator},
        testing::{context, other_contexts, rng},
    };

    fn honest(dimension: usize, count: usize) -> (Generators, Vec<Opening>, Vec<Commitment>, OpeningProof) {
        let (generators, mut rng) = (Generators::new(dimension, 0), rng(7));
        let openings: Vec<Opening> =
            (0..count).map(|i| Opening::of_integers(&vec![i as i64 - 3; dimension], &mut rng)).collect();
        let commitments: Vec<Commitment> =
            openings.iter().map(|opening| opening.commit(&generators).expect("few")).collect();
        let lent: Vec<&Opening> = openings.iter().collect();
        let proof = OpeningProof::prove(&commitments, &lent, &generators, &context(1), &mut rng).expect("true");
        (generators, openings, commitments, proof)
    }

    #[test]
    fn honest_proofs_hold_for_numbers_and_vectors() {
        for (dimension, count) in [(1, 1), (1, 22), (5, 1), (5, 4)] {
            let (generators, _, commitments, proof) = honest(dimension, count);
            assert_eq!(proof.verify(&commitments, &generators, &context(1)), Ok(()));
            assert_eq!(proof.to_bytes().len(), 32 * (dimension + 2));
            assert_eq!(OpeningProof::from_bytes(&proof.to_bytes(), dimension), Ok(proof));
        }
    }

    #[test]
    fn a_proof_counts_in_its_context_and_for_its_commitments_in_their_order_alone() {
        let (generators, openings, commitments, proof) = honest(1, 3);
        for other in other_contexts(&context(1)) {
            assert_eq!(proof.verify(&commitments, &generators, &other), Err(Flaw::OpeningProof));
        }
        let mut swapped = commitments.clone();
        swapped.swap(0, 1);
        let mut replaced = commitments.clone();
        replaced[2] = Opening::of_integer(5, &mut rng(8)).commit(&generators).expect("few");
        for other in [&swapped[..], &replaced, &commitments[..2]] {
            assert_eq!(proof.verify(other, &generators, &context(1)), Err(Flaw::OpeningProof));
        }
        assert_eq!(proof.verify(&[], &generators, &context(1)), Err(Flaw::WrongLength));
        // One unknown opening spoils the proof of all.
        let wrong = Opening::of_integer(0, &mut rng(9));
        let lent = [&openings[0], &openings[1], &wrong];
        let forged = OpeningProof::prove(&commitments, &lent, &generators, &context(1), &mut rng(1)).expect("lengths");
        assert_eq!(forged.verify(&commitments, &generators, &context(1)), Err(Flaw::OpeningProof));
    }

    #[test]
    fn generators_cannot_be_swapped() {
        // An opening of v H + r G_0, with the roles of the generators exchanged, is the opening of another number.
        let (generators, mut rng) = (Generators::new(2, 0), rng(3));
        let opening = Opening::of_integers(&[4, 9], &mut rng);
        let commitment = opening.commit(&generators).expect("few");
        let exchanged = Opening::new(
            Zeroizing::new(vec![opening.values()[1], opening.values()[0]]),
            Zeroizing::new(*opening.blinding()),
        );
        let proof =
            OpeningProof::prove(&[commitment], &[&exchanged], &generators, &context(1), &mut rng).expect("lengths");
        assert_eq!(proof.verify(&[commitment], &generators, &context(1)), Err(Flaw::OpeningProof));
    }

    /// The errors of two commitments cancel in their sum; the combination with powers of y finds them.
    #[test]
    fn openings_of_a_sum_are_not_openings_of_its_terms() {
        let (generators, openings, mut commitments, _) = honest(1, 2);
        let unknown = generator("unknown", 0);
        commitments[0] = Commitment::new(commitments[0].0.point + unknown);
        commitments[1] = Commitment::new(commitments[1].0.point - unknown);
        let lent: Vec<&Opening> = openings.iter().collect();
        let forged = OpeningProof::prove(&commitments, &lent, &generators, &context(1), &mut rng(1)).expect("lengths");
        assert_eq!(forged.verify(&commitments, &generators, &context(1)), Err(Flaw::OpeningProof));
    }

    /// If the challenge did not depend on the commitment, a prover could choose the commitment last, without an opening.
    #[test]
    fn a_commitment_chosen_after_the_challenge_is_refused() {
        let generators = Generators::new(1, 0);
        let placeholder = Commitment::new(generator("unknown", 0));
        let message = Point::new(generator("unknown", 1));
        let (mut transcript, _) = start(&[placeholder], 1, &context(1));
        transcript.append("message", &message.bytes);
        let e = transcript.challenge("e");
        let (value, blinding) = (Scalar::from(3_u64), Scalar::from(4_u64));
        let chosen = Commitment::new((bases().commit(&value, &blinding) - message.point) * e.invert());
        let forged = OpeningProof { message, values: vec![value], blinding };
        assert_eq!(forged.verify(&[chosen], &generators, &context(1)), Err(Flaw::OpeningProof));
    }
}
