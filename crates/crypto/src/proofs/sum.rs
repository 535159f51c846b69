//! The sum relation (4.4): "what I publish is the sum of what I committed to".
//!
//! **Statement.** Commitments C_1 ... C_m (value, noise, one mask per neighbour) and the published vector x. **Relation.** The prover
//! knows r with sum_j C_j - Com(x; 0) = r H.
//!
//! **Protocol** (Schnorr 1991):
//!
//! ```text
//! T = t H, t fresh;     e challenge from context, all C_j, x and T;     z = t + e r;     accept if z H = T + e (sum_j C_j - Com(x; 0))
//! ```
//!
//! **Why sound.** Two answers to one T give r, so (x, r) opens the sum. With openings of every C_j known to the prover
//! ([`opening`](super::opening)) the openings' sum opens it too, and binding (discrete logarithm) makes x their sum in the scalar field.
//! **Why zero-knowledge.** As every Schnorr proof. The paper publishes r itself: that hides as well, since for everyone who could compute logarithms r follows from x and
//! the C_j. A proof of knowledge costs the same and, unlike r, cannot be shown again under another name.
//!
//! **What it does not say**: that the committed numbers are what they should be. The sum is one in the scalar field; range and noise
//! proofs keep it from wrapping.
//!
//! **Cost.** 64 bytes. Prove: one multiplication. Verify: m + d + 2 points.

use super::{COMMITMENTS_MAX, append_commitments};
use crate::{
    batch::{Batch, Equation},
    commitment::Commitment,
    encoding::{Point, Reader},
    flaw::{Flaw, Unfit},
    generators::{Generators, bases},
    transcript::{Context, Transcript},
};
use curve25519_dalek::scalar::Scalar;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// A proof that a published vector is the sum of committed ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SumProof {
    message: Point,
    answer: Scalar,
}

fn start(commitments: &[Commitment], published: &[Scalar], context: &Context) -> Transcript {
    let mut transcript = Transcript::new("sum", context);
    append_commitments(&mut transcript, "commitment", commitments);
    transcript.append_scalars("published", published.iter());
    transcript
}

impl SumProof {
    /// Bytes of a proof.
    pub const BYTES: usize = 64;

    /// Proves that `published` is the sum; `blinding` is the sum of the commitments' blindings.
    pub fn prove(
        commitments: &[Commitment],
        published: &[Scalar],
        blinding: &Scalar,
        context: &Context,
        rng: &mut impl CryptoRng,
    ) -> Result<SumProof, Unfit> {
        if commitments.is_empty() || commitments.len() > COMMITMENTS_MAX || published.is_empty() {
            return Err(Unfit::Lengths);
        }
        let mut transcript = start(commitments, published, context);
        let nonce = Zeroizing::new(transcript.nonces([blinding].into_iter(), rng).scalar());
        let message = Point::new(&*nonce * &bases().blinding);
        transcript.append("message", &message.bytes);
        let e = transcript.challenge("e");
        Ok(SumProof { message, answer: *nonce + e * blinding })
    }

    /// Verifies the proof by itself.
    pub fn verify(
        &self,
        commitments: &[Commitment],
        published: &[Scalar],
        generators: &Generators,
        context: &Context,
    ) -> Result<(), Flaw> {
        let mut batch = Batch::new(generators);
        self.verify_in(commitments, published, context, &mut batch)?;
        batch.finish_one()
    }

    /// Enters the proof's equation into a batch, which must then be finished.
    pub fn verify_in(
        &self,
        commitments: &[Commitment],
        published: &[Scalar],
        context: &Context,
        batch: &mut Batch<'_>,
    ) -> Result<(), Flaw> {
        if commitments.is_empty()
            || commitments.len() > COMMITMENTS_MAX
            || published.is_empty()
            || published.len() > batch.generators.dimension()
        {
            return Err(Flaw::WrongLength);
        }
        let mut transcript = start(commitments, published, context);
        transcript.append("message", &self.message.bytes);
        let e = transcript.challenge("e");
        transcript.append("answer", self.answer.as_bytes());
        let mut equation = Equation::new(Flaw::SumProof);
        equation.blinding = self.answer;
        equation.add(-Scalar::ONE, &self.message.point);
        equation.add(-e, &commitments.iter().map(|commitment| commitment.0.point).sum());
        equation.add_vector(published.iter().map(|number| e * number));
        batch.push(&transcript, equation);
        Ok(())
    }

    /// The proof as bytes.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..32].copy_from_slice(&self.message.bytes);
        bytes[32..].copy_from_slice(self.answer.as_bytes());
        bytes
    }

    /// Reads a proof.
    pub fn from_bytes(bytes: &[u8]) -> Result<SumProof, Flaw> {
        let mut reader = Reader::new(bytes);
        let proof = SumProof { message: reader.point()?, answer: reader.scalar()? };
        reader.finish()?;
        Ok(proof)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        commitment::Opening,
        testing::{context, other_contexts, rng},
    };
    use curve25519_dalek::ristretto::RistrettoPoint;

    struct Case {
        generators: Generators,
        commitments: Vec<Commitment>,
        sum: Opening,
        proof: SumProof,
    }

    fn honest(dimension: usize, count: usize) -> Case {
        let (generators, mut rng) = (Generators::new(dimension, 0), rng(11));
        let openings: Vec<Opening> =
            (0..count).map(|i| Opening::of_integers(&vec![10 - 7 * i as i64; dimension], &mut rng)).collect();
        let commitments: Vec<Commitment> =
            openings.iter().map(|opening| opening.commit(&generators).expect("few")).collect();
        let sum = Opening::sum(&openings).expect("one dimension");
        let proof =
            SumProof::prove(&commitments, sum.values(), sum.blinding(), &context(1), &mut rng).expect("lengths");
        Case { generators, commitments, sum, proof }
    }

    #[test]
    fn the_true_sum_is_accepted_for_numbers_and_vectors() {
        for (dimension, count) in [(1, 1), (1, 22), (6, 5)] {
            let Case { generators, commitments, sum, proof } = honest(dimension, count);
            assert_eq!(proof.verify(&commitments, sum.values(), &generators, &context(1)), Ok(()));
            assert_eq!(SumProof::from_bytes(&proof.to_bytes()), Ok(proof));
        }
    }

    #[test]
    fn another_sum_is_refused_also_when_proved_by_whoever_knows_everything() {
        let Case { generators, commitments, sum, .. } = honest(2, 4);
        for i in 0..2 {
            let mut wrong = sum.values().to_vec();
            wrong[i] += Scalar::ONE;
            let forged =
                SumProof::prove(&commitments, &wrong, sum.blinding(), &context(1), &mut rng(1)).expect("lengths");
            assert_eq!(forged.verify(&commitments, &wrong, &generators, &context(1)), Err(Flaw::SumProof));
        }
    }

    #[test]
    fn a_proof_counts_in_its_context_and_for_its_statement_alone() {
        let Case { generators, commitments, sum, proof } = honest(1, 4);
        for other in other_contexts(&context(1)) {
            assert_eq!(proof.verify(&commitments, sum.values(), &generators, &other), Err(Flaw::SumProof));
        }
        // The same sum from commitments in another order, or from a sum of two of them, is another statement.
        let mut swapped = commitments.clone();
        swapped.swap(1, 2);
        let merged = vec![Commitment::sum(&commitments[..2]), commitments[2], commitments[3]];
        for other in [&swapped[..], &merged, &commitments[1..]] {
            assert_eq!(proof.verify(other, sum.values(), &generators, &context(1)), Err(Flaw::SumProof));
        }
        assert_eq!(proof.verify(&[], sum.values(), &generators, &context(1)), Err(Flaw::WrongLength));
        let long = vec![Scalar::ONE; 2];
        assert_eq!(proof.verify(&commitments, &long, &generators, &context(1)), Err(Flaw::WrongLength));
    }

    /// With G_0 in place of H a prover could move any number into the sum.
    #[test]
    fn a_proof_over_another_generator_is_refused() {
        let Case { generators, commitments, sum, .. } = honest(1, 2);
        let error = Scalar::from(1000_u64);
        let published = [sum.values()[0] - error];
        let mut transcript = start(&commitments, &published, &context(1));
        let nonce = Scalar::from(5_u64);
        let message = Point::new(bases().value_point * nonce);
        transcript.append("message", &message.bytes);
        let e = transcript.challenge("e");
        let forged = SumProof { message, answer: nonce + e * error };
        assert_eq!(forged.verify(&commitments, &published, &generators, &context(1)), Err(Flaw::SumProof));
    }

    /// If the challenge did not depend on the published number, a prover could choose the number last: T = t H + f G_0
    /// moves it by f / e.
    #[test]
    fn a_number_chosen_after_the_challenge_is_refused() {
        let Case { generators, commitments, sum, .. } = honest(1, 2);
        let (nonce, forged_part) = (Scalar::from(5_u64), Scalar::from(6_u64));
        let message = Point::new(bases().commit(&forged_part, &nonce));
        let mut transcript = start(&commitments, sum.values(), &context(1));
        transcript.append("message", &message.bytes);
        let e = transcript.challenge("e");
        let published = [sum.values()[0] + forged_part * e.invert()];
        let forged = SumProof { message, answer: nonce + e * sum.blinding() };
        // With the challenge that it was made for, the equation holds for the number chosen last.
        let right = message.point
            + (commitments.iter().map(|c| c.0.point).sum::<RistrettoPoint>() - bases().value_point * published[0]) * e;
        assert_eq!(bases().blinding_point * forged.answer, right);
        assert_eq!(forged.verify(&commitments, &published, &generators, &context(1)), Err(Flaw::SumProof));
    }
}
