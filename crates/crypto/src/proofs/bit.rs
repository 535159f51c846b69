//! A committed bit: "this commitment holds 0 or 1".
//!
//! **Statement.** A commitment C to one number. **Relation.** The prover knows r and b in {0, 1} with C = b G_0 + r H.
//!
//! **Protocol** (Cramer, Damgard, Schoenmakers 1994): a Schnorr proof that C is a multiple of H *or* that C - G_0 is. The prover answers the true one
//! and simulates the other with a challenge of its choice; the two challenges must add up to the verifier's.
//!
//! ```text
//! false branch f: e_f, z_f drawn,  T_f = z_f H - e_f (C - f G_0);       true branch b: T_b = t H
//! e challenge from context, C, T_0, T_1;     e_b = e - e_f,  z_b = t + e_b r
//! accept if  z_0 H = T_0 + e_0 C   and   z_1 H = T_1 + e_1 (C - G_0)   with e_1 = e - e_0
//! ```
//!
//! **Why sound.** Two accepting answers to one (T_0, T_1) with different e differ in e_0 or in e_1, which gives r for that branch; a prover who knows r for
//! one branch and another bit would know the logarithm of G_0 to the base H. **Why zero-knowledge.** Both branches can be simulated, and
//! (e_0, e_1) is uniform among those of the right sum, whichever is true: perfect witness indistinguishability. The prover selects branches in constant time.
//!
//! **Cost.** 160 bytes a bit. Prove: 4 multiplications by tables. Verify: 2 equations, 4 points. For hundreds of bits use
//! [`bit_sum`](super::bit_sum), whose size is logarithmic.

use crate::{
    batch::{Batch, Equation},
    commitment::Commitment,
    encoding::{Point, Reader},
    flaw::Flaw,
    generators::{Generators, bases},
    transcript::{Context, Transcript},
};
use curve25519_dalek::{ristretto::RistrettoPoint, scalar::Scalar};
use rand_core::CryptoRng;
use subtle::{Choice, ConditionallySelectable};
use zeroize::Zeroizing;

/// A proof that a commitment holds 0 or 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitProof {
    messages: [Point; 2],
    first_challenge: Scalar,
    answers: [Scalar; 2],
}

fn start(commitment: &Commitment, context: &Context) -> Transcript {
    let mut transcript = Transcript::new("bit", context);
    transcript.append("commitment", &commitment.to_bytes());
    transcript
}

fn challenge(transcript: &mut Transcript, messages: &[Point; 2]) -> Scalar {
    transcript.append("message 0", &messages[0].bytes);
    transcript.append("message 1", &messages[1].bytes);
    transcript.challenge("e")
}

impl BitProof {
    /// Bytes of a proof.
    pub const BYTES: usize = 160;

    /// Commits to a bit with this blinding and proves that it is one.
    pub fn prove(
        bit: Choice,
        blinding: &Scalar,
        context: &Context,
        rng: &mut impl CryptoRng,
    ) -> (Commitment, BitProof) {
        let bases = bases();
        let value = Zeroizing::new(Scalar::conditional_select(&Scalar::ZERO, &Scalar::ONE, bit));
        let commitment = Commitment::new(bases.commit(&value, blinding));
        let mut transcript = start(&commitment, context);
        let mut nonces = transcript.nonces([&*value, blinding].into_iter(), rng);
        let [nonce, other_challenge, other_answer] = [(); 3].map(|()| Zeroizing::new(nonces.scalar()));
        // The statement of the false branch: C - G_0 if the bit is 0, C if it is 1.
        let c = commitment.0.point;
        let statement = RistrettoPoint::conditional_select(&(c - bases.value_point), &c, bit);
        let simulated = &*other_answer * &bases.blinding - *other_challenge * statement;
        let honest = &*nonce * &bases.blinding;
        let messages = [
            Point::new(RistrettoPoint::conditional_select(&honest, &simulated, bit)),
            Point::new(RistrettoPoint::conditional_select(&simulated, &honest, bit)),
        ];
        let e = challenge(&mut transcript, &messages);
        let own_challenge = e - *other_challenge;
        let own_answer = *nonce + own_challenge * blinding;
        let proof = BitProof {
            messages,
            first_challenge: Scalar::conditional_select(&own_challenge, &other_challenge, bit),
            answers: [
                Scalar::conditional_select(&own_answer, &other_answer, bit),
                Scalar::conditional_select(&other_answer, &own_answer, bit),
            ],
        };
        (commitment, proof)
    }

    /// Verifies the proof by itself.
    pub fn verify(&self, commitment: &Commitment, generators: &Generators, context: &Context) -> Result<(), Flaw> {
        let mut batch = Batch::new(generators);
        self.verify_in(commitment, context, &mut batch);
        batch.finish_one()
    }

    /// Enters the proof's equations into a batch, which must then be finished.
    pub fn verify_in(&self, commitment: &Commitment, context: &Context, batch: &mut Batch<'_>) {
        let mut transcript = start(commitment, context);
        let e = challenge(&mut transcript, &self.messages);
        transcript.append_scalars(
            "answers",
            [&self.first_challenge].into_iter().chain(&self.answers).collect::<Vec<_>>().into_iter(),
        );
        for (branch, challenge) in [self.first_challenge, e - self.first_challenge].into_iter().enumerate() {
            let mut equation = Equation::new(Flaw::BitProof);
            equation.blinding = self.answers[branch];
            equation.add(-Scalar::ONE, &self.messages[branch].point);
            equation.add(-challenge, &commitment.0.point);
            if branch == 1 {
                equation.add_value(challenge);
            }
            batch.push(&transcript, equation);
        }
    }

    /// The proof as bytes.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let parts = [
            &self.messages[0].bytes,
            &self.messages[1].bytes,
            self.first_challenge.as_bytes(),
            self.answers[0].as_bytes(),
            self.answers[1].as_bytes(),
        ];
        let mut bytes = [0; Self::BYTES];
        for (chunk, part) in bytes.chunks_mut(32).zip(parts) {
            chunk.copy_from_slice(part);
        }
        bytes
    }

    /// Reads a proof.
    pub fn from_bytes(bytes: &[u8]) -> Result<BitProof, Flaw> {
        let mut reader = Reader::new(bytes);
        let proof = BitProof {
            messages: [reader.point()?, reader.point()?],
            first_challenge: reader.scalar()?,
            answers: [reader.scalar()?, reader.scalar()?],
        };
        reader.finish()?;
        Ok(proof)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, other_contexts, rng};

    #[test]
    fn both_bits_are_proved_and_bound_to_context_and_commitment() {
        let (generators, mut rng) = (Generators::new(1, 0), rng(1));
        for bit in [0, 1] {
            let blinding = Scalar::random(&mut rng);
            let (commitment, proof) = BitProof::prove(Choice::from(bit), &blinding, &context(1), &mut rng);
            assert_eq!(commitment.opens_to(&[Scalar::from(bit)], &blinding, &generators), Ok(()));
            assert_eq!(proof.verify(&commitment, &generators, &context(1)), Ok(()));
            assert_eq!(BitProof::from_bytes(&proof.to_bytes()), Ok(proof.clone()));
            for other in other_contexts(&context(1)) {
                assert_eq!(proof.verify(&commitment, &generators, &other), Err(Flaw::BitProof));
            }
            let another = BitProof::prove(Choice::from(bit), &Scalar::ONE, &context(1), &mut rng).0;
            assert_eq!(proof.verify(&another, &generators, &context(1)), Err(Flaw::BitProof));
        }
    }

    /// A prover who follows the protocol with a number that is no bit, for each of the branches it may claim.
    #[test]
    fn no_other_number_passes_as_a_bit() {
        let (generators, mut rng) = (Generators::new(1, 0), rng(2));
        for number in [2_u64, 3, u64::MAX] {
            for claimed in [0, 1] {
                let blinding = Scalar::random(&mut rng);
                let commitment = Commitment::new(bases().commit(&Scalar::from(number), &blinding));
                let (_, mut proof) = BitProof::prove(Choice::from(claimed), &blinding, &context(1), &mut rng);
                // The challenge of this commitment, split as an honest prover of the claimed branch would.
                let e = challenge(&mut start(&commitment, &context(1)), &proof.messages);
                if claimed == 1 {
                    proof.answers[1] += e;
                } else {
                    proof.first_challenge = e;
                }
                assert_eq!(proof.verify(&commitment, &generators, &context(1)), Err(Flaw::BitProof));
            }
        }
    }

    #[test]
    fn many_bits_are_verified_as_one_and_the_wrong_ones_are_named() {
        let (generators, mut rng) = (Generators::new(1, 0), rng(3));
        let mut batch = Batch::new(&generators);
        for member in 0..60 {
            let (commitment, mut proof) =
                BitProof::prove(Choice::from(member as u8 & 1), &Scalar::random(&mut rng), &context(1), &mut rng);
            if member == 17 {
                proof.answers[0] += Scalar::ONE;
            }
            batch.member(member);
            proof.verify_in(&commitment, &context(1), &mut batch);
        }
        assert_eq!(batch.finish(&mut rng), Err(vec![(17, Flaw::BitProof)]));
    }

    #[test]
    fn the_commitment_and_both_messages_change_the_challenge() {
        let [a, b] = [bases().value_point, bases().blinding_point].map(Point::new);
        let of = |commitment, messages| challenge(&mut start(&Commitment(commitment), &context(1)), &messages);
        let challenges = [of(a, [a, a]), of(b, [a, a]), of(a, [b, a]), of(a, [a, b])];
        for (i, challenge) in challenges.iter().enumerate() {
            assert!(!challenges[..i].contains(challenge), "challenge {i}");
        }
    }
}
