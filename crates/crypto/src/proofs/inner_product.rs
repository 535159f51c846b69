//! The inner product argument of Bulletproofs (Bunz et al. 2018, section 3, protocol 2), on which [`bit_sum`](super::bit_sum) rests.
//!
//! **Statement.** Generators L_i and R_i (i < n, n a power of two), factors f_i, a generator U and a point P. **Relation.** The prover knows vectors a, b with
//!
//! ```text
//! P = <a, L> + <b, f o R> + <a, b> U
//! ```
//!
//! **Protocol.** While n > 1, halve: with a = (a', a'') and so on,
//!
//! ```text
//! A = <a', L''> + <b'', (f o R)'> + <a', b''> U,   B = <a'', L'> + <b', (f o R)''> + <a'', b'> U,    u challenge
//! a <- u a' + u^-1 a'',  b <- u^-1 b' + u b'',  L <- u^-1 L' + u L'',  f o R <- u (f o R)' + u^-1 (f o R)'',  P <- P + u^2 A + u^-2 B
//! ```
//!
//! and send the last a, b. **Why sound.** Four accepting answers with different u^2 in each round give a and b, or a relation between generators (discrete logarithm).
//! **Not zero-knowledge**: it is used on vectors that are blinded already, and that is why the prover may take variable time here.
//!
//! **Speed.** Folding generators is most of a prover's work. For three rounds the prover leaves them as they are and multiplies their coefficients instead; then it folds eight
//! generators into one by one multiscalar multiplication.
//!
//! **Cost.** 64 log2(n) + 64 bytes. The verifier's part is one combination of 2n generators and 2 log2(n) points.

use super::dot_product;
use crate::{
    batch::Equation,
    encoding::{Point, Reader},
    flaw::Flaw,
    transcript::Transcript,
};
use curve25519_dalek::{ristretto::RistrettoPoint, scalar::Scalar, traits::VartimeMultiscalarMul};

/// How many generators are folded into one at a time.
const FOLD: usize = 8;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InnerProductProof {
    /// A and B of each round.
    rounds: Vec<(Point, Point)>,
    a: Scalar,
    b: Scalar,
}

/// Generators with the factors that folding has given them so far. With n elements of a vector left, generator i belongs
/// to element i modulo n.
struct Folded {
    points: Vec<RistrettoPoint>,
    factors: Vec<Scalar>,
}

impl Folded {
    /// The generators and scalars of <values, half of the folded generators>; the upper half, or the lower.
    fn half<'f>(&'f self, values: &'f [Scalar], upper: bool) -> impl Iterator<Item = (Scalar, &'f RistrettoPoint)> {
        let half = values.len();
        let chosen = move |i: &usize| (i / half % 2 == 1) == upper;
        (0..self.points.len()).filter(chosen).map(move |i| (self.factors[i] * values[i % half], &self.points[i]))
    }

    /// Multiplies the factors of the lower halves by one number and those of the upper halves by another.
    fn fold(&mut self, half: usize, lower: Scalar, upper: Scalar) {
        for (i, factor) in self.factors.iter_mut().enumerate() {
            *factor *= if i / half % 2 == 1 { upper } else { lower };
        }
        if self.points.len() >= FOLD * half {
            let folded = |j: usize| {
                let members = || (j..self.points.len()).step_by(half);
                RistrettoPoint::vartime_multiscalar_mul(
                    members().map(|i| self.factors[i]),
                    members().map(|i| self.points[i]),
                )
            };
            self.points = (0..half).map(folded).collect();
            self.factors = vec![Scalar::ONE; half];
        }
    }
}

impl InnerProductProof {
    /// Proves the relation for blinded vectors of one length, a power of two.
    pub(crate) fn prove(
        transcript: &mut Transcript,
        product: &RistrettoPoint,
        left: &[RistrettoPoint],
        right: (&[RistrettoPoint], Vec<Scalar>),
        mut a: Vec<Scalar>,
        mut b: Vec<Scalar>,
    ) -> InnerProductProof {
        let mut left = Folded { points: left.to_vec(), factors: vec![Scalar::ONE; left.len()] };
        let mut right = Folded { points: right.0.to_vec(), factors: right.1 };
        let mut rounds = Vec::new();
        while a.len() > 1 {
            let half = a.len() / 2;
            let ((a_low, a_high), (b_low, b_high)) = (a.split_at(half), b.split_at(half));
            let message = |a: &[Scalar], b: &[Scalar], upper: bool| {
                let terms = left.half(a, upper).chain(right.half(b, !upper));
                let (scalars, points): (Vec<Scalar>, Vec<&RistrettoPoint>) =
                    terms.chain([(dot_product(a, b), product)]).unzip();
                Point::new(RistrettoPoint::vartime_multiscalar_mul(scalars, points))
            };
            let messages = (message(a_low, b_high, true), message(a_high, b_low, false));
            let u = round_challenge(transcript, &messages);
            let inverse = u.invert();
            a = a_low.iter().zip(a_high).map(|(low, high)| u * low + inverse * high).collect();
            b = b_low.iter().zip(b_high).map(|(low, high)| inverse * low + u * high).collect();
            left.fold(half, inverse, u);
            right.fold(half, u, inverse);
            rounds.push(messages);
        }
        InnerProductProof { rounds, a: a[0], b: b[0] }
    }

    /// Subtracts <a, L> + <b, f o R> + <a, b> w Q from an equation that holds P, and adds the rounds' points to it.
    pub(crate) fn enter(
        &self,
        transcript: &mut Transcript,
        length: usize,
        factors: &[Scalar],
        product_factor: Scalar,
        equation: &mut Equation,
    ) -> Result<(), Flaw> {
        if !length.is_power_of_two() || self.rounds.len() != length.ilog2() as usize {
            return Err(Flaw::WrongLength);
        }
        let challenges: Vec<Scalar> = self.rounds.iter().map(|round| round_challenge(transcript, round)).collect();
        let mut inverses = challenges.clone();
        let mut shares = vec![Scalar::invert_batch_alloc(&mut inverses)];
        let squares: Vec<Scalar> = challenges.iter().map(|u| u * u).collect();
        for (((a, b), square), inverse) in self.rounds.iter().zip(&squares).zip(&inverses) {
            equation.add(*square, &a.point);
            equation.add(inverse * inverse, &b.point);
        }
        // shares_i is the product of u_j over rounds in which i is in the upper half, and of u_j^-1 over the others.
        for i in 1..length {
            let bit = i.ilog2() as usize;
            shares.push(shares[i - (1 << bit)] * squares[squares.len() - 1 - bit]);
        }
        for (i, (left, right)) in equation.left.iter_mut().zip(&mut equation.right).enumerate() {
            *left -= self.a * shares[i];
            *right -= self.b * shares[length - 1 - i] * factors[i];
        }
        equation.product -= self.a * self.b * product_factor;
        transcript.append_scalars("last", [self.a, self.b].iter());
        Ok(())
    }

    pub(crate) fn write(&self, bytes: &mut Vec<u8>) {
        for (a, b) in &self.rounds {
            bytes.extend(a.bytes);
            bytes.extend(b.bytes);
        }
        bytes.extend(self.a.as_bytes());
        bytes.extend(self.b.as_bytes());
    }

    pub(crate) fn read(reader: &mut Reader<'_>, rounds: usize) -> Result<InnerProductProof, Flaw> {
        let rounds = (0..rounds).map(|_| Ok((reader.point()?, reader.point()?))).collect::<Result<_, Flaw>>()?;
        Ok(InnerProductProof { rounds, a: reader.scalar()?, b: reader.scalar()? })
    }
}

fn round_challenge(transcript: &mut Transcript, (a, b): &(Point, Point)) -> Scalar {
    transcript.append("A", &a.bytes);
    transcript.append("B", &b.bytes);
    transcript.challenge("u")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        batch::Batch,
        generators::{Generators, bases},
        testing::{context, rng},
    };

    /// Verifies a proof for vectors of a given length, with `error` added to their inner product.
    fn run(length: usize, error: Scalar) -> Result<(), Flaw> {
        let (generators, mut rng) = (Generators::new(1, 64), rng(length as u64));
        let mut draw = || (0..length).map(|_| Scalar::random(&mut rng)).collect::<Vec<_>>();
        let (a, b, factors) = (draw(), draw(), draw());
        let mut equation = Equation::new(Flaw::NoiseProof);
        equation.left = a.clone();
        equation.right = b.iter().zip(&factors).map(|(b, f)| b * f).collect();
        equation.product = dot_product(&a, &b) + error;
        let right = (&generators.right[..length], factors.clone());
        let proof = InnerProductProof::prove(
            &mut Transcript::new("test", &context(1)),
            &bases().product,
            &generators.left[..length],
            right,
            a,
            b,
        );
        let mut bytes = Vec::new();
        proof.write(&mut bytes);
        let mut reader = Reader::new(&bytes);
        let proof = InnerProductProof::read(&mut reader, length.ilog2() as usize)?;
        reader.finish()?;
        let mut transcript = Transcript::new("test", &context(1));
        proof.enter(&mut transcript, length, &factors, Scalar::ONE, &mut equation)?;
        let mut batch = Batch::new(&generators);
        batch.push(&transcript, equation);
        batch.finish_one()
    }

    #[test]
    fn the_inner_product_is_proved_for_every_length_and_no_other_one_is() {
        for length in [1, 2, 4, 8, 16, 32, 64] {
            assert_eq!(run(length, Scalar::ZERO), Ok(()), "{length}");
            assert_eq!(run(length, Scalar::ONE), Err(Flaw::NoiseProof), "{length}");
        }
    }

    #[test]
    fn both_messages_of_a_round_change_its_challenge() {
        let [a, b] = [bases().value_point, bases().blinding_point].map(Point::new);
        let of = |messages| round_challenge(&mut Transcript::new("test", &context(1)), &messages);
        let challenges = [of((a, a)), of((a, b)), of((b, a)), of((b, b))];
        for (i, challenge) in challenges.iter().enumerate() {
            assert!(!challenges[..i].contains(challenge), "challenge {i}");
        }
    }
}
