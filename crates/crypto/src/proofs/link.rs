//! A vector and its coordinates: "this one commitment to a vector holds the same numbers as these commitments to single numbers".
//!
//! A vector of thousands of numbers is masked and summed under one commitment of 32 bytes; ranges and noise laws are proved of single numbers. This proof joins the two.
//!
//! **Statement.** A commitment W of dimension d and commitments C_1 ... C_d of dimension one. **Relation.** The prover knows v, r, r_j with W = Com(v; r) and C_j = Com(v_j; r_j).
//!
//! **Protocol** (equality of openings by a common answer, as Chaum and Pedersen 1993, for one random combination of the C_j):
//!
//! ```text
//! y challenge;   C = sum_j y^(j-1) C_j = Com(<y, v>; s)
//! T = Com(t; p),   U = Com(<y, t>; q);    e challenge;    z = t + e v,  w = p + e r,  u = q + e s
//! accept if  Com(z; w) = T + e W   and   Com(<y, z>; u) = U + e C
//! ```
//!
//! **Why sound.** Two answers to one (T, U) give v, r with W = Com(v; r), and s with C = Com(<y, v>; s). By binding v is the same for all y (discrete logarithm); d different y then
//! give, by an invertible Vandermonde matrix, r_j with C_j = Com(v_j; r_j). **Why zero-knowledge.** z, w, u are uniform for every witness, and T, U follow from them.
//!
//! **Cost.** 32 (d + 4) bytes. Prove: one commitment of dimension d. Verify: 2 d + 6 points.

use super::{append_commitments, dot_product, powers};
use crate::{
    batch::{Batch, Equation},
    commitment::{Commitment, Opening},
    encoding::{Point, Reader},
    flaw::{Flaw, Unfit},
    generators::{DIMENSION_MAX, Generators, bases},
    transcript::{Context, Transcript},
};
use curve25519_dalek::scalar::Scalar;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// A proof that a vector and its coordinates are committed alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkProof {
    messages: [Point; 2],
    values: Vec<Scalar>,
    blindings: [Scalar; 2],
}

fn start(vector: &Commitment, coordinates: &[Commitment], context: &Context) -> (Transcript, Vec<Scalar>) {
    let mut transcript = Transcript::new("link", context);
    transcript.append("vector", &vector.to_bytes());
    append_commitments(&mut transcript, "coordinate", coordinates);
    let y = transcript.challenge("y");
    (transcript, powers(y).take(coordinates.len()).collect())
}

fn challenge(transcript: &mut Transcript, messages: &[Point; 2]) -> Scalar {
    transcript.append("T", &messages[0].bytes);
    transcript.append("U", &messages[1].bytes);
    transcript.challenge("e")
}

impl LinkProof {
    /// Proves that the vector's numbers are the coordinates'.
    pub fn prove(
        vector: (&Commitment, &Opening),
        coordinates: (&[Commitment], &[&Opening]),
        generators: &Generators,
        context: &Context,
        rng: &mut impl CryptoRng,
    ) -> Result<LinkProof, Unfit> {
        let ((vector, opening), (commitments, openings)) = (vector, coordinates);
        let dimension = opening.dimension();
        if commitments.len() != dimension || openings.len() != dimension || dimension == 0 {
            return Err(Unfit::Lengths);
        }
        if openings.iter().any(|opening| opening.dimension() != 1) {
            return Err(Unfit::Lengths);
        }
        let (mut transcript, y) = start(vector, commitments, context);
        let combined = openings.iter().zip(&y).map(|(opening, y)| y * opening.blinding()).sum::<Scalar>();
        let combined = Zeroizing::new(combined);
        let witness = opening.values().iter().chain([opening.blinding(), &*combined]);
        let mut nonces = transcript.nonces(witness, rng);
        let masks = Zeroizing::new((0..dimension).map(|_| nonces.scalar()).collect::<Vec<_>>());
        let [p, q] = [(); 2].map(|()| Zeroizing::new(nonces.scalar()));
        let inner = Zeroizing::new(dot_product(&y, &masks));
        let mask = Opening::new(masks, p);
        let messages = [mask.commit(generators)?.0, Point::new(bases().commit(&inner, &q))];
        let e = challenge(&mut transcript, &messages);
        let values = mask.values().iter().zip(opening.values()).map(|(mask, value)| mask + e * value).collect();
        let blindings = [mask.blinding() + e * opening.blinding(), *q + e * *combined];
        Ok(LinkProof { messages, values, blindings })
    }

    /// Verifies the proof by itself.
    pub fn verify(
        &self,
        vector: &Commitment,
        coordinates: &[Commitment],
        generators: &Generators,
        context: &Context,
    ) -> Result<(), Flaw> {
        let mut batch = Batch::new(generators);
        self.verify_in(vector, coordinates, context, &mut batch)?;
        batch.finish_one()
    }

    /// Enters the proof's equations into a batch, which must then be finished.
    pub fn verify_in(
        &self,
        vector: &Commitment,
        coordinates: &[Commitment],
        context: &Context,
        batch: &mut Batch<'_>,
    ) -> Result<(), Flaw> {
        let dimension = self.values.len();
        if coordinates.len() != dimension || dimension == 0 || dimension > batch.generators.dimension() {
            return Err(Flaw::WrongLength);
        }
        let (mut transcript, y) = start(vector, coordinates, context);
        let e = challenge(&mut transcript, &self.messages);
        transcript.append_scalars("answers", self.values.iter());
        transcript.append_scalars("blindings", self.blindings.iter());
        let mut whole = Equation::new(Flaw::LinkProof);
        whole.add_vector(self.values.iter().copied());
        whole.blinding = self.blindings[0];
        whole.add(-Scalar::ONE, &self.messages[0].point);
        whole.add(-e, &vector.0.point);
        batch.push(&transcript, whole);
        let mut combined = Equation::new(Flaw::LinkProof);
        combined.add_value(dot_product(&y, &self.values));
        combined.blinding = self.blindings[1];
        combined.add(-Scalar::ONE, &self.messages[1].point);
        for (commitment, y) in coordinates.iter().zip(&y) {
            combined.add(-e * y, &commitment.0.point);
        }
        batch.push(&transcript, combined);
        Ok(())
    }

    /// The proof as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = [self.messages[0].bytes, self.messages[1].bytes].concat();
        self.blindings.iter().chain(&self.values).for_each(|scalar| bytes.extend(scalar.as_bytes()));
        bytes
    }

    /// Reads a proof about a vector of this dimension.
    pub fn from_bytes(bytes: &[u8], dimension: usize) -> Result<LinkProof, Flaw> {
        if dimension == 0 || dimension > DIMENSION_MAX {
            return Err(Flaw::WrongLength);
        }
        let mut reader = Reader::new(bytes);
        let messages = [reader.point()?, reader.point()?];
        let blindings = [reader.scalar()?, reader.scalar()?];
        let values = (0..dimension).map(|_| reader.scalar()).collect::<Result<_, _>>()?;
        reader.finish()?;
        Ok(LinkProof { messages, values, blindings })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, other_contexts, rng};

    /// A vector and coordinates that need not agree, and the proof of a prover who follows the protocol.
    fn case(vector: &[i64], coordinates: &[i64]) -> (Generators, Commitment, Vec<Commitment>, LinkProof) {
        let (generators, mut rng) = (Generators::new(vector.len(), 0), rng(1));
        let opening = Opening::of_integers(vector, &mut rng);
        let openings: Vec<Opening> = coordinates.iter().map(|value| Opening::of_integer(*value, &mut rng)).collect();
        let commit = |opening: &Opening| opening.commit(&generators).expect("few");
        let (commitment, commitments) = (commit(&opening), openings.iter().map(commit).collect::<Vec<_>>());
        let lent: Vec<&Opening> = openings.iter().collect();
        let proof =
            LinkProof::prove((&commitment, &opening), (&commitments, &lent), &generators, &context(1), &mut rng);
        (generators, commitment, commitments, proof.expect("lengths"))
    }

    #[test]
    fn equal_numbers_are_linked_and_a_single_different_one_is_not() {
        for vector in [&[5][..], &[1, -2, 3], &[0; 17]] {
            let (generators, commitment, commitments, proof) = case(vector, vector);
            assert_eq!(proof.verify(&commitment, &commitments, &generators, &context(1)), Ok(()));
            assert_eq!(proof.to_bytes().len(), 32 * (vector.len() + 4));
            assert_eq!(LinkProof::from_bytes(&proof.to_bytes(), vector.len()), Ok(proof.clone()));
            for other in other_contexts(&context(1)) {
                assert_eq!(proof.verify(&commitment, &commitments, &generators, &other), Err(Flaw::LinkProof));
            }
            for i in 0..vector.len() {
                let mut wrong = vector.to_vec();
                wrong[i] += 1;
                let (generators, commitment, commitments, proof) = case(vector, &wrong);
                assert_eq!(proof.verify(&commitment, &commitments, &generators, &context(1)), Err(Flaw::LinkProof));
            }
        }
    }

    #[test]
    fn coordinates_cannot_change_places() {
        let (generators, commitment, commitments, proof) = case(&[1, 2, 3], &[3, 2, 1]);
        assert_eq!(proof.verify(&commitment, &commitments, &generators, &context(1)), Err(Flaw::LinkProof));
        assert_eq!(proof.verify(&commitment, &commitments[..2], &generators, &context(1)), Err(Flaw::WrongLength));
    }

    #[test]
    fn the_whole_statement_and_both_messages_change_the_challenges() {
        let [a, b] = [bases().value_point, bases().blinding_point].map(|point| Commitment(Point::new(point)));
        let y = |vector, coordinates: &[Commitment]| start(vector, coordinates, &context(1)).1[1];
        let mut challenges = vec![y(&a, &[a, a]), y(&b, &[a, a]), y(&a, &[a, b]), y(&a, &[b, a]), y(&a, &[a, a, a])];
        for messages in [[a.0, a.0], [a.0, b.0], [b.0, a.0]] {
            challenges.push(challenge(&mut start(&a, &[a, a], &context(1)).0, &messages));
        }
        for (i, challenge) in challenges.iter().enumerate() {
            assert!(!challenges[..i].contains(challenge), "challenge {i}");
        }
    }
}
