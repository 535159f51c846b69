//! Many equations checked as one: batch verification.
//!
//! Every proof of this crate ends in equations of the form "this combination of points is the identity". A [`Batch`] collects them,
//! from one proof or from thousands, multiplies each by a weight and checks the sum by one multiscalar multiplication, in
//! which all proofs share the cost of the generators.
//!
//! **Soundness.** If some equation does not hold, the weighted sum is the identity with probability 1/q (q the group's order, about
//! 2^252), because weights are drawn when all equations are fixed: from a hash of every transcript and every proof *and* 32 fresh bytes of the
//! verifier. Either alone suffices: a prover cannot aim at bytes drawn later, and if the verifier's generator is broken the weights are still a
//! random oracle's answer to everything that would have to be aimed. ([`Batch::finish_each`] needs no weights.)
//!
//! **Blame.** If the sum is not the identity, each equation is checked by itself, so that exactly the members whose proofs fail are
//! named.
//!
//! **Memory.** An equation about N bits holds 2N scalars until the batch is finished: with 256 bits 16 KiB. Batches of a few hundred members
//! have all the gain.

use crate::{
    flaw::Flaw,
    generators::{Generators, bases},
    stream::{KeyStream, nonce},
    transcript::Transcript,
};
use curve25519_dalek::{
    ristretto::RistrettoPoint,
    scalar::Scalar,
    traits::{Identity, VartimeMultiscalarMul},
};
use rand_core::CryptoRng;
use sha2::{Digest, Sha512};

/// A combination of points that must be the identity. All of it is public.
pub(crate) struct Equation {
    /// The reason to give if it is not.
    flaw: Flaw,
    points: Vec<(Scalar, RistrettoPoint)>,
    vector: Vec<Scalar>,
    pub(crate) left: Vec<Scalar>,
    pub(crate) right: Vec<Scalar>,
    pub(crate) blinding: Scalar,
    pub(crate) product: Scalar,
}

impl Equation {
    pub(crate) fn new(flaw: Flaw) -> Equation {
        Equation {
            flaw,
            points: Vec::new(),
            vector: Vec::new(),
            left: Vec::new(),
            right: Vec::new(),
            blinding: Scalar::ZERO,
            product: Scalar::ZERO,
        }
    }

    pub(crate) fn add(&mut self, coefficient: Scalar, point: &RistrettoPoint) {
        self.points.push((coefficient, *point));
    }

    /// Adds a multiple of the generator of one number.
    pub(crate) fn add_value(&mut self, coefficient: Scalar) {
        self.add_vector([coefficient]);
    }

    /// Adds multiples of the first generators of numbers.
    pub(crate) fn add_vector(&mut self, coefficients: impl IntoIterator<Item = Scalar>) {
        add_lists(&mut self.vector, coefficients);
    }

    fn add_scaled(&mut self, weight: Scalar, other: &Equation) {
        self.points.extend(other.points.iter().map(|(coefficient, point)| (weight * coefficient, *point)));
        add_lists(&mut self.vector, other.vector.iter().map(|coefficient| weight * coefficient));
        add_lists(&mut self.left, other.left.iter().map(|coefficient| weight * coefficient));
        add_lists(&mut self.right, other.right.iter().map(|coefficient| weight * coefficient));
        self.blinding += weight * other.blinding;
        self.product += weight * other.product;
    }

    fn holds(&self, generators: &Generators) -> bool {
        let scalars = self.points.iter().map(|(coefficient, _)| coefficient);
        let scalars = scalars.chain(&self.vector).chain(&self.left).chain(&self.right);
        let points = self.points.iter().map(|(_, point)| point).chain(&generators.vector[..self.vector.len()]);
        let points = points.chain(&generators.left[..self.left.len()]).chain(&generators.right[..self.right.len()]);
        let bases = bases();
        let sum = RistrettoPoint::vartime_multiscalar_mul(
            scalars.chain([&self.blinding, &self.product]),
            points.chain([&bases.blinding_point, &bases.product]),
        );
        sum == RistrettoPoint::identity()
    }
}

/// Adds a list to another, which grows if it is shorter.
fn add_lists(sums: &mut Vec<Scalar>, others: impl IntoIterator<Item = Scalar>) {
    for (i, other) in others.into_iter().enumerate() {
        match sums.get_mut(i) {
            Some(sum) => *sum += other,
            None => sums.push(other),
        }
    }
}

/// Equations to be checked together.
#[must_use = "a batch that is not finished has verified nothing"]
pub struct Batch<'g> {
    pub(crate) generators: &'g Generators,
    equations: Vec<(usize, Equation)>,
    member: usize,
    transcripts: Sha512,
}

/// Who failed, and why: the number that was given to [`Batch::member`].
pub type Blame = (usize, Flaw);

impl<'g> Batch<'g> {
    /// An empty batch.
    pub fn new(generators: &'g Generators) -> Batch<'g> {
        let transcripts = Sha512::new().chain_update(b"sottovoce/batch/v1");
        Batch { generators, equations: Vec::new(), member: 0, transcripts }
    }

    /// Whose proofs follow.
    pub fn member(&mut self, member: usize) {
        self.member = member;
    }

    /// Takes an equation. The transcript holds the statement and the whole proof.
    pub(crate) fn push(&mut self, transcript: &Transcript, equation: Equation) {
        assert!(
            equation.vector.len() <= self.generators.dimension() && equation.left.len() <= self.generators.bits(),
            "verifiers compare lengths with the generators before they make an equation"
        );
        self.transcripts.update(transcript.digest());
        self.equations.push((self.member, equation));
    }

    /// Checks all equations as one; if that fails, says which members' do not hold.
    pub fn finish(self, rng: &mut impl CryptoRng) -> Result<(), Vec<Blame>> {
        let mut weights = self.weights(rng);
        // The reason of the sum is never given: blame is found equation by equation.
        let mut sum = Equation::new(Flaw::OpeningProof);
        for (_, equation) in &self.equations {
            sum.add_scaled(weights.scalar(), equation);
        }
        if sum.holds(self.generators) { Ok(()) } else { blame(&self.equations, self.generators) }
    }

    fn weights(&self, rng: &mut impl CryptoRng) -> KeyStream {
        let mut fresh = [0; 32];
        rng.fill_bytes(&mut fresh);
        let seed: [u8; 64] = self.transcripts.clone().chain_update(fresh).finalize().into();
        let (keys, _) = seed.as_chunks::<32>();
        KeyStream::new(&keys[0], &nonce(b"wght", 0))
    }

    /// Checks each equation by itself, without weights: slower, and needs no randomness.
    pub fn finish_each(self) -> Result<(), Vec<Blame>> {
        blame(&self.equations, self.generators)
    }

    /// For one proof: the first reason, if there is one.
    pub(crate) fn finish_one(self) -> Result<(), Flaw> {
        self.finish_each().map_err(|blames| blames[0].1)
    }
}

fn blame(equations: &[(usize, Equation)], generators: &Generators) -> Result<(), Vec<Blame>> {
    let failed = equations.iter().filter(|(_, equation)| !equation.holds(generators));
    let blames: Vec<Blame> = failed.map(|(member, equation)| (*member, equation.flaw)).collect();
    if blames.is_empty() { Ok(()) } else { Err(blames) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, rng};
    use rand_core::Rng;

    /// x G_0 - (x + error) G_0, by a point: holds if the error is zero.
    fn equation(rng: &mut impl CryptoRng, error: Scalar) -> Equation {
        let x = Scalar::random(rng);
        let mut equation = Equation::new(Flaw::SumProof);
        equation.add(Scalar::ONE, &(bases().value_point * x));
        equation.add_value(-(x + error));
        equation
    }

    fn transcript(number: u64) -> Transcript {
        let mut transcript = Transcript::new("test", &context(1));
        transcript.append_number("number", number);
        transcript
    }

    #[test]
    fn a_batch_blames_exactly_those_whose_equations_fail() {
        let (generators, mut rng) = (Generators::new(1, 0), rng(1));
        for guilty in [vec![], vec![0], vec![3, 7], (0..9).collect()] {
            let mut batches = [Batch::new(&generators), Batch::new(&generators)];
            for member in 0..9 {
                let error = if guilty.contains(&member) { Scalar::ONE } else { Scalar::ZERO };
                for batch in &mut batches {
                    batch.member(member);
                    batch.push(&transcript(member as u64), equation(&mut rng, error));
                }
            }
            let expected: Vec<Blame> = guilty.iter().map(|member| (*member, Flaw::SumProof)).collect();
            let [together, each] = batches;
            assert_eq!(together.finish(&mut rng).err().unwrap_or_default(), expected);
            assert_eq!(each.finish_each().err().unwrap_or_default(), expected);
        }
    }

    /// Without weights the two errors below cancel; with weights that a prover knows in advance, errors could be chosen so.
    #[test]
    fn errors_that_cancel_are_found() {
        let (generators, mut rng) = (Generators::new(1, 0), rng(2));
        let error = Scalar::random(&mut rng);
        let mut batch = Batch::new(&generators);
        for (member, error) in [error, -error].into_iter().enumerate() {
            batch.member(member);
            batch.push(&transcript(0), equation(&mut rng, error));
        }
        assert_eq!(batch.finish(&mut rng), Err(vec![(0, Flaw::SumProof), (1, Flaw::SumProof)]));
    }

    /// A generator that always gives the same bytes, as a broken one would.
    struct Stuck;
    impl rand_core::TryRng for Stuck {
        type Error = std::convert::Infallible;
        fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
            Ok(0)
        }
        fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
            Ok(0)
        }
        fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Self::Error> {
            bytes.fill(0);
            Ok(())
        }
    }
    impl rand_core::TryCryptoRng for Stuck {}

    /// The weights of a batch with a given generator, by the two coefficients that its sum would have.
    fn first_weight(last_transcript: u64, rng: &mut impl CryptoRng) -> Scalar {
        let generators = Generators::new(1, 0);
        let mut batch = Batch::new(&generators);
        batch.push(&transcript(0), Equation::new(Flaw::SumProof));
        batch.push(&transcript(last_transcript), Equation::new(Flaw::SumProof));
        batch.weights(rng).scalar()
    }

    #[test]
    fn every_weight_depends_on_every_transcript_and_on_fresh_randomness() {
        assert_eq!(first_weight(1, &mut Stuck), first_weight(1, &mut Stuck));
        assert_ne!(first_weight(1, &mut Stuck), first_weight(2, &mut Stuck));
        let mut rng = rng(3);
        assert_ne!(first_weight(1, &mut rng), first_weight(1, &mut rng));
        assert!(rng.next_u64() > 0);
    }

    #[test]
    fn an_empty_batch_holds() {
        let generators = Generators::new(1, 0);
        assert_eq!(Batch::new(&generators).finish(&mut rng(4)), Ok(()));
    }
}
