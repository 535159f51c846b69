//! Sums of committed bits: "this number is a public combination of bits that I committed to before".
//!
//! **Statement.** A commitment B to n bits, a commitment V to one number, public weights c_i and a constant k. **Relation.** The prover knows a in {0, 1}^n and blindings with
//!
//! ```text
//! B = alpha H + <a, L> + <a - 1, R>,     V = v G_0 + gamma H,     v = <a, c> + k
//! ```
//!
//! **Protocol**: the range proof of Bulletproofs (Bunz et al. 2018, section 4.1) with weights c instead of powers of two. B is its first message, so it may be published long before the
//! weights are known: that is what the noise law needs.
//!
//! ```text
//! S = rho H + <s_L, L> + <s_R, R>                                             then challenges y, z
//! l(X) = a - z + s_L X,     r(X) = y^i o (a - 1 + z + s_R X) + z^2 c
//! t(X) = <l, r> = t_0 + t_1 X + t_2 X^2,   t_0 = z^2 (v - k) + delta,   delta = (z - z^2) <1, y^i> - z^3 <1, c>
//! T_1, T_2 commit to t_1, t_2                                                 then challenge x
//! t = t(x),  tau = tau_2 x^2 + tau_1 x + z^2 gamma,  mu = alpha + rho x        then challenge w
//! inner product argument for l(x), r(x) and t w Q
//! accept if  t G_0 + tau H = z^2 (V - k G_0) + delta G_0 + x T_1 + x^2 T_2
//! and        B + x S - z <1, L> + <z + z^2 c_i y^-i, R> - mu H + w t Q  is the argument's P with factors y^-i
//! ```
//!
//! **Why sound.** The argument's extractor and three values of x open B and S to vectors a, b; n values of y and three of z force a o b = 0, b = a - 1 and
//! <a, c> = v - k (theorem 3 of the paper, whose proof uses nothing of the weights). Two openings of B or V are a relation between generators (discrete logarithm); random oracle for the
//! challenges. Since B is fixed before c, the bits are too. **Why zero-knowledge.** l(x), r(x), tau, mu are uniform for every witness, and S, T_1 follow from them (same theorem).
//!
//! A number of bits that is no power of two is padded with zeros of weight zero.
//!
//! **Time.** B, S, T_1, T_2 in constant time (bits by conditional selection); what follows l(x) and r(x), which are public in law, in variable time.
//!
//! **Cost.** 256 + 64 log2(n) bytes for n bits and 32 for B. Verify: 2n generators, shared in a batch, and 2 log2(n) + 5 points.

use super::{dot_product, inner_product::InnerProductProof, powers};
use crate::{
    batch::{Batch, Equation},
    bits::{BitsCommitment, BitsOpening},
    commitment::{Commitment, Opening},
    encoding::{Point, Reader},
    flaw::{Flaw, Unfit},
    generators::{BITS_MAX, Generators, bases},
    transcript::{Context, Transcript},
};
use curve25519_dalek::{ristretto::RistrettoPoint, scalar::Scalar, traits::MultiscalarMul};
use rand_core::CryptoRng;
use std::iter;
use zeroize::Zeroizing;

/// What is proved: a number is `constant` plus the sum of weights of the bits that are one.
#[derive(Clone, Copy, Debug)]
pub struct BitSum<'s> {
    /// The commitment to the bits.
    pub bits: &'s BitsCommitment,
    /// A weight for each bit.
    pub weights: &'s [Scalar],
    /// What is added to the weighted bits.
    pub constant: Scalar,
    /// The commitment to the number.
    pub total: &'s Commitment,
}

impl BitSum<'_> {
    fn transcript(&self, context: &Context) -> Transcript {
        let mut transcript = Transcript::new("bit sum", context);
        transcript.append("bits", &self.bits.to_bytes());
        transcript.append_scalars("weights", self.weights.iter());
        transcript.append("constant", self.constant.as_bytes());
        transcript.append("total", &self.total.to_bytes());
        transcript
    }

    /// The weights, with zeros up to a power of two.
    fn padded(&self) -> Vec<Scalar> {
        let padding = self.weights.len().next_power_of_two() - self.weights.len();
        self.weights.iter().copied().chain(iter::repeat_n(Scalar::ZERO, padding)).collect()
    }
}

/// A proof of a [`BitSum`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BitSumProof {
    s: Point,
    t1: Point,
    t2: Point,
    t: Scalar,
    tau: Scalar,
    mu: Scalar,
    inner: InnerProductProof,
}

/// Challenges y and z.
fn after_s(transcript: &mut Transcript, s: &Point) -> (Scalar, Scalar) {
    transcript.append("S", &s.bytes);
    (transcript.challenge("y"), transcript.challenge("z"))
}

/// Challenge x.
fn after_t(transcript: &mut Transcript, t1: &Point, t2: &Point) -> Scalar {
    transcript.append("T1", &t1.bytes);
    transcript.append("T2", &t2.bytes);
    transcript.challenge("x")
}

/// Challenge w.
fn after_answers(transcript: &mut Transcript, answers: [&Scalar; 3]) -> Scalar {
    transcript.append_scalars("answers", answers.into_iter());
    transcript.challenge("w")
}

/// The coefficients of l and r, which hold the witness.
struct Polynomials {
    l: [Zeroizing<Vec<Scalar>>; 2],
    r: [Zeroizing<Vec<Scalar>>; 2],
}

impl Polynomials {
    fn new(
        bits: &[u8],
        [s_left, s_right]: [Zeroizing<Vec<Scalar>>; 2],
        weights: &[Scalar],
        y: &[Scalar],
        z: Scalar,
    ) -> Polynomials {
        let square = z * z;
        let l0 = bits.iter().map(|bit| Scalar::from(*bit) - z).collect();
        let r0 = bits.iter().zip(y).zip(weights);
        let r0 = r0.map(|((bit, y), weight)| y * (Scalar::from(*bit) - Scalar::ONE + z) + square * weight).collect();
        let r1 = y.iter().zip(s_right.iter()).map(|(y, s)| y * s).collect();
        Polynomials { l: [Zeroizing::new(l0), s_left], r: [Zeroizing::new(r0), Zeroizing::new(r1)] }
    }

    /// t_1 and t_2 of t(X) = <l(X), r(X)>.
    fn product(&self) -> [Zeroizing<Scalar>; 2] {
        let t1 = dot_product(&self.l[0], &self.r[1]) + dot_product(&self.l[1], &self.r[0]);
        [Zeroizing::new(t1), Zeroizing::new(dot_product(&self.l[1], &self.r[1]))]
    }

    /// l(x) and r(x).
    fn at(&self, x: Scalar) -> [Vec<Scalar>; 2] {
        [&self.l, &self.r].map(|[constant, slope]| constant.iter().zip(slope.iter()).map(|(c, s)| c + x * s).collect())
    }
}

impl BitSumProof {
    /// Proves the statement; the bits are gone afterwards. `total` opens the commitment to the number.
    pub fn prove(
        statement: &BitSum<'_>,
        bits: BitsOpening,
        total: &Opening,
        generators: &Generators,
        context: &Context,
        rng: &mut impl CryptoRng,
    ) -> Result<BitSumProof, Unfit> {
        let n = bits.padded.len();
        if bits.bits().len() != statement.weights.len() || total.dimension() != 1 {
            return Err(Unfit::Lengths);
        }
        if n > generators.bits() {
            return Err(Unfit::TooMany);
        }
        let (left, right) = (&generators.left[..n], &generators.right[..n]);
        let mut transcript = statement.transcript(context);
        let mut nonces = transcript.nonces([&*bits.blinding, total.blinding(), &total.values()[0]].into_iter(), rng);
        let [rho, tau1, tau2] = [(); 3].map(|()| Zeroizing::new(nonces.scalar()));
        let blinders = [(); 2].map(|()| Zeroizing::new((0..n).map(|_| nonces.scalar()).collect::<Vec<_>>()));
        let s = Point::new(RistrettoPoint::multiscalar_mul(
            [&*rho].into_iter().chain(blinders[0].iter()).chain(blinders[1].iter()),
            [&bases().blinding_point].into_iter().chain(left).chain(right),
        ));
        let (y, z) = after_s(&mut transcript, &s);
        let polynomials =
            Polynomials::new(&bits.padded, blinders, &statement.padded(), &powers(y).take(n).collect::<Vec<_>>(), z);
        let [p1, p2] = polynomials.product();
        let (t1, t2) = (Point::new(bases().commit(&p1, &tau1)), Point::new(bases().commit(&p2, &tau2)));
        let x = after_t(&mut transcript, &t1, &t2);
        let [l, r] = polynomials.at(x);
        let t = dot_product(&l, &r);
        let tau = *tau2 * x * x + *tau1 * x + z * z * total.blinding();
        let mu = *bits.blinding + *rho * x;
        let w = after_answers(&mut transcript, [&t, &tau, &mu]);
        let right = (right, powers(y.invert()).take(n).collect());
        let inner = InnerProductProof::prove(&mut transcript, &(bases().product * w), left, right, l, r);
        Ok(BitSumProof { s, t1, t2, t, tau, mu, inner })
    }

    /// Verifies the proof by itself.
    pub fn verify(&self, statement: &BitSum<'_>, generators: &Generators, context: &Context) -> Result<(), Flaw> {
        let mut batch = Batch::new(generators);
        self.verify_in(statement, context, &mut batch)?;
        batch.finish_one()
    }

    /// Enters the proof's equations into a batch, which must then be finished.
    pub fn verify_in(&self, statement: &BitSum<'_>, context: &Context, batch: &mut Batch<'_>) -> Result<(), Flaw> {
        let weights = statement.padded();
        let n = weights.len();
        if statement.weights.is_empty() || n > batch.generators.bits() {
            return Err(Flaw::WrongLength);
        }
        let mut transcript = statement.transcript(context);
        let (y, z) = after_s(&mut transcript, &self.s);
        let x = after_t(&mut transcript, &self.t1, &self.t2);
        let w = after_answers(&mut transcript, [&self.t, &self.tau, &self.mu]);
        let square = z * z;
        let factors: Vec<Scalar> = powers(y.invert()).take(n).collect();

        // B + x S - z <1, L> + <z + z^2 c_i y^-i, R> - mu H + w t Q, less what the inner product argument opens.
        let mut opened = Equation::new(Flaw::NoiseProof);
        opened.add(Scalar::ONE, &statement.bits.0.point);
        opened.add(x, &self.s.point);
        opened.left = vec![-z; n];
        opened.right = weights.iter().zip(&factors).map(|(weight, factor)| z + square * weight * factor).collect();
        opened.blinding = -self.mu;
        opened.product = w * self.t;
        self.inner.enter(&mut transcript, n, &factors, w, &mut opened)?;

        // t G_0 + tau H - z^2 (V - k G_0) - delta G_0 - x T_1 - x^2 T_2
        let delta = (z - square) * powers(y).take(n).sum::<Scalar>() - square * z * weights.iter().sum::<Scalar>();
        let mut total = Equation::new(Flaw::NoiseProof);
        total.add_value(self.t + square * statement.constant - delta);
        total.blinding = self.tau;
        total.add(-square, &statement.total.0.point);
        total.add(-x, &self.t1.point);
        total.add(-x * x, &self.t2.point);
        batch.push(&transcript, opened);
        batch.push(&transcript, total);
        Ok(())
    }

    /// Bytes of a proof about so many bits.
    pub fn bytes(count: usize) -> usize {
        32 * (8 + 2 * count.next_power_of_two().ilog2() as usize)
    }

    /// The proof as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for part in
            [&self.s.bytes, &self.t1.bytes, &self.t2.bytes, self.t.as_bytes(), self.tau.as_bytes(), self.mu.as_bytes()]
        {
            bytes.extend(part);
        }
        self.inner.write(&mut bytes);
        bytes
    }

    /// Reads a proof about so many bits.
    pub fn from_bytes(bytes: &[u8], count: usize) -> Result<BitSumProof, Flaw> {
        if count == 0 || count > BITS_MAX {
            return Err(Flaw::WrongLength);
        }
        let mut reader = Reader::new(bytes);
        let proof = BitSumProof {
            s: reader.point()?,
            t1: reader.point()?,
            t2: reader.point()?,
            t: reader.scalar()?,
            tau: reader.scalar()?,
            mu: reader.scalar()?,
            inner: InnerProductProof::read(&mut reader, count.next_power_of_two().ilog2() as usize)?,
        };
        reader.finish()?;
        Ok(proof)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fixed_point::to_scalar,
        testing::{context, other_contexts, rng},
    };

    struct Case {
        generators: Generators,
        bits: BitsCommitment,
        weights: Vec<Scalar>,
        total: Commitment,
        proof: BitSumProof,
    }

    /// A proof for drawn bits with weights 3 i - 5 and constant 11; the number is off by `error`.
    fn case(count: usize, error: i64) -> Case {
        let (generators, mut rng) = (Generators::new(1, 64), rng(count as u64));
        let bits = BitsOpening::draw(count, &mut rng).expect("few");
        let weights: Vec<i64> = (0..count as i64).map(|i| 3 * i - 5).collect();
        let total = weights.iter().zip(bits.bits()).map(|(weight, bit)| weight * i64::from(*bit)).sum::<i64>() + 11;
        let opening = Opening::of_integer(total + error, &mut rng);
        let total = opening.commit(&generators).expect("one number");
        let weights: Vec<Scalar> = weights.into_iter().map(to_scalar).collect();
        let commitment = bits.commit(&generators).expect("few");
        let statement = BitSum { bits: &commitment, weights: &weights, constant: to_scalar(11), total: &total };
        let proof =
            BitSumProof::prove(&statement, bits, &opening, &generators, &context(1), &mut rng).expect("lengths");
        Case { generators, bits: commitment, weights, total, proof }
    }

    impl Case {
        fn statement(&self) -> BitSum<'_> {
            BitSum { bits: &self.bits, weights: &self.weights, constant: to_scalar(11), total: &self.total }
        }

        fn verify(&self, statement: &BitSum<'_>, context: &Context) -> Result<(), Flaw> {
            self.proof.verify(statement, &self.generators, context)
        }
    }

    #[test]
    fn true_sums_hold_for_every_number_of_bits_and_no_other_number_does() {
        for count in [1, 2, 3, 8, 31, 64] {
            let honest = case(count, 0);
            assert_eq!(honest.verify(&honest.statement(), &context(1)), Ok(()), "{count}");
            let bytes = honest.proof.to_bytes();
            assert_eq!(bytes.len(), BitSumProof::bytes(count));
            assert_eq!(BitSumProof::from_bytes(&bytes, count), Ok(honest.proof.clone()));
            for error in [1, -1, 1 << 40] {
                let wrong = case(count, error);
                assert_eq!(wrong.verify(&wrong.statement(), &context(1)), Err(Flaw::NoiseProof), "{count}");
            }
        }
    }

    #[test]
    fn a_proof_counts_in_its_context_and_for_its_statement_alone() {
        let case = case(20, 0);
        for other in other_contexts(&context(1)) {
            assert_eq!(case.verify(&case.statement(), &other), Err(Flaw::NoiseProof));
        }
        let other_bits = BitsOpening::draw(20, &mut rng(5)).expect("few").commit(&case.generators).expect("few");
        let other_total = Opening::of_integer(3, &mut rng(5)).commit(&case.generators).expect("one");
        let mut other_weights = case.weights.clone();
        other_weights.swap(0, 1);
        let mut longer = case.weights.clone();
        longer.push(Scalar::ZERO);
        for statement in [
            BitSum { bits: &other_bits, ..case.statement() },
            BitSum { total: &other_total, ..case.statement() },
            BitSum { weights: &other_weights, ..case.statement() },
            BitSum { weights: &longer, ..case.statement() },
            BitSum { weights: &case.weights[..19], ..case.statement() },
            BitSum { constant: Scalar::ZERO, ..case.statement() },
        ] {
            assert_eq!(case.verify(&statement, &context(1)), Err(Flaw::NoiseProof));
        }
        for count in [1, 16, 33, 65] {
            let weights = vec![Scalar::ONE; count];
            let statement = BitSum { weights: &weights, ..case.statement() };
            assert_eq!(case.verify(&statement, &context(1)), Err(Flaw::WrongLength), "{count}");
        }
    }

    /// A prover that follows the protocol with a number in place of a bit: the sum is right, the bit is not.
    #[test]
    fn what_is_no_bit_is_refused_even_when_the_sum_is_right() {
        let (generators, mut rng) = (Generators::new(1, 8), rng(4));
        for number in [2_u8, 3, 255] {
            let mut bits = BitsOpening::new(&[0, 1, 1, 0, 1], &mut rng).expect("few");
            bits.padded[3] = number;
            let total = Opening::of_integer(3 + i64::from(number), &mut rng);
            // What the prover must commit to for the vectors to be those of its protocol.
            let mut sum = bases().blinding_point * *bits.blinding;
            for (i, bit) in bits.padded.iter().enumerate() {
                sum +=
                    generators.left[i] * Scalar::from(*bit) + generators.right[i] * (Scalar::from(*bit) - Scalar::ONE);
            }
            let (commitment, weights) = (BitsCommitment(Point::new(sum)), [Scalar::ONE; 5]);
            let total_commitment = total.commit(&generators).expect("one");
            let statement =
                BitSum { bits: &commitment, weights: &weights, constant: Scalar::ZERO, total: &total_commitment };
            let proof =
                BitSumProof::prove(&statement, bits, &total, &generators, &context(1), &mut rng).expect("lengths");
            assert_eq!(proof.verify(&statement, &generators, &context(1)), Err(Flaw::NoiseProof));
        }
    }

    #[test]
    fn left_and_right_generators_cannot_be_exchanged() {
        let case = case(8, 0);
        let exchanged = Generators {
            left: case.generators.right.clone(),
            right: case.generators.left.clone(),
            ..case.generators.clone()
        };
        assert_eq!(case.proof.verify(&case.statement(), &exchanged, &context(1)), Err(Flaw::NoiseProof));
    }

    #[test]
    fn lengths_that_do_not_fit_are_refused() {
        let mut rng = rng(6);
        let bits = BitsOpening::draw(9, &mut rng).expect("few");
        let case = case(8, 0);
        let total = Opening::of_integer(1, &mut rng);
        let refused = BitSumProof::prove(&case.statement(), bits, &total, &case.generators, &context(1), &mut rng);
        assert_eq!(refused, Err(Unfit::Lengths));
    }

    /// What a challenge does not depend on can be chosen after it.
    #[test]
    fn every_part_of_the_statement_and_every_message_changes_the_challenges() {
        let case = case(4, 0);
        let here = case.statement();
        let (other_bits, other_total) = (BitsCommitment(Point::new(case.total.0.point)), Commitment(case.bits.0));
        let weights = [case.weights[1], case.weights[0], case.weights[2], case.weights[3]];
        let padded = [&case.weights[..], &[Scalar::ZERO]].concat();
        let statements = [
            here,
            BitSum { bits: &other_bits, ..here },
            BitSum { total: &other_total, ..here },
            BitSum { weights: &weights, ..here },
            BitSum { weights: &padded, ..here },
            BitSum { constant: Scalar::ONE, ..here },
        ];
        let mut challenges: Vec<Scalar> =
            statements.iter().map(|statement| statement.transcript(&context(1)).challenge("y")).collect();
        let [a, b] = [case.total.0, case.bits.0];
        for s in [a, b] {
            let mut transcript = here.transcript(&context(1));
            let (y, z) = after_s(&mut transcript, &s);
            challenges.extend([y, z]);
            for (t1, t2) in [(a, a), (a, b), (b, a)] {
                let mut transcript = transcript.clone();
                challenges.push(after_t(&mut transcript, &t1, &t2));
                for answers in [[0_u64, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]] {
                    let [t, tau, mu] = answers.map(Scalar::from);
                    challenges.push(after_answers(&mut transcript.clone(), [&t, &tau, &mu]));
                }
            }
        }
        for (i, challenge) in challenges.iter().enumerate() {
            assert!(!challenges[..i].contains(challenge), "challenge {i}");
        }
    }

    /// A prover who moves the claimed product of the vectors to where its false number needs it: only the argument about the vectors notices.
    #[test]
    fn a_product_that_the_vectors_do_not_have_is_refused() {
        let mut lie = case(8, 1);
        let (_, z) = after_s(&mut lie.statement().transcript(&context(1)), &lie.proof.s);
        lie.proof.t += z * z;
        assert_eq!(lie.verify(&lie.statement(), &context(1)), Err(Flaw::NoiseProof));
    }
}
