//! The noise law (4.6): "my noise share was not chosen by me".
//!
//! **Statement.** A commitment B to N bits, published before the beacon; the beacon; a commitment V to the share. **Relation.** V holds
//!
//! ```text
//! eta = sum_i (a_i xor r_i) - N / 2,     a_i the bits of B,  r_i the beacon's bits for this task, round, sender and board
//! ```
//!
//! a_i xor r_i = r_i + (1 - 2 r_i) a_i is affine in a_i, so this is a [`BitSum`] with weights 1 - 2 r_i and constant sum_i r_i - N/2 (spec 04, section 5.4, back-end B1).
//!
//! **The law.** If the beacon's bits are uniform and independent of B, eta + N/2 is binomial, Bin(N, 1/2), however the member chose a; if the member's bits are fair, it is so whatever the beacon
//! is. Mean 0, variance N/4, in steps of the grid. It is **not Gaussian**, and the accountants must use the binomial law.
//!
//! **The lattice.** eta is an integer in steps of the grid and nothing else is possible: there is no scale. The noise's lattice is the data's lattice, so the sum modulo
//! the step tells nothing of anyone (spec 04, section 6: with noise on a coarser lattice than the data the residue shows the data). Choose the grid so that its step is the wanted deviation
//! divided by sqrt(N)/2, and round data to it stochastically.
//!
//! **Why sound.** The proof of [`bit_sum`](super::bit_sum): discrete logarithm, random oracle. **What it does not say.** A member knows its own share. It may refuse to finish once it
//! knows the beacon, and so choose between its share and absence: a protocol must exclude it, and not let it try again. Who controls the beacon, and knows a member's bits, knows its share. A beacon is made by
//! commit and reveal of all; never a hash of the board, which its last writer can grind.
//!
//! **Cost.** That of a bit sum of N bits: 256 + 64 log2(N) bytes, 768 for N = 256, and 32 for B.

use super::bit_sum::{BitSum, BitSumProof};
use crate::{
    batch::Batch,
    bits::{BitsCommitment, BitsOpening},
    commitment::{Commitment, Opening},
    fixed_point::to_scalar,
    flaw::{Flaw, Unfit},
    generators::{BITS_MAX, Generators},
    stream::{KeyStream, nonce},
    transcript::{Context, Transcript},
};
use curve25519_dalek::scalar::Scalar;
use rand_core::CryptoRng;
use std::fmt;
use zeroize::Zeroizing;

/// How many bits a noise share is the sum of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoiseLaw {
    bits: usize,
}

impl NoiseLaw {
    /// The law of so many bits, an even number.
    pub fn new(bits: usize) -> Result<NoiseLaw, Unfit> {
        if bits.is_multiple_of(2) && (2..=BITS_MAX).contains(&bits) { Ok(NoiseLaw { bits }) } else { Err(Unfit::Bits) }
    }

    /// The number of bits.
    pub fn bits(&self) -> usize {
        self.bits
    }

    /// The variance of a share, in squared steps of the grid.
    pub fn variance(&self) -> f64 {
        self.bits as f64 / 4.0
    }
}

/// Public randomness that was fixed after all members had committed to their bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Beacon(pub [u8; 32]);

impl Beacon {
    /// The weights and the constant of a member's bits, from the beacon's bits for it.
    fn combination(&self, law: NoiseLaw, context: &Context) -> (Vec<Scalar>, Scalar) {
        let mut transcript = Transcript::new("beacon", context);
        transcript.append("beacon", &self.0);
        transcript.append_number("bits", law.bits as u64);
        let digest = transcript.digest();
        let (keys, _) = digest.as_chunks::<32>();
        let mut bytes = vec![0; law.bits.div_ceil(8)];
        KeyStream::new(&keys[0], &nonce(b"beac", 0)).fill(&mut bytes);
        let bits: Vec<u8> = (0..law.bits).map(|i| bytes[i / 8] >> (i % 8) & 1).collect();
        let ones = bits.iter().map(|bit| i64::from(*bit)).sum::<i64>();
        let weights = bits.iter().map(|bit| to_scalar(1 - 2 * i64::from(*bit))).collect();
        (weights, to_scalar(ones - law.bits as i64 / 2))
    }
}

/// A member's bits, drawn and not yet combined with a beacon. One beacon consumes them.
pub struct NoiseBits {
    law: NoiseLaw,
    bits: BitsOpening,
}

/// A share of noise with its proof.
#[derive(Debug)]
pub struct NoiseShare {
    /// What the member adds to its value, and the blinding of its commitment.
    pub opening: Opening,
    /// The commitment to the share.
    pub commitment: Commitment,
    /// The proof that the share is what bits and beacon make it.
    pub proof: NoiseProof,
}

impl NoiseBits {
    /// Draws fair bits.
    pub fn draw(law: NoiseLaw, rng: &mut impl CryptoRng) -> Result<NoiseBits, Unfit> {
        Ok(NoiseBits { law, bits: BitsOpening::draw(law.bits, rng)? })
    }

    /// What to publish before the beacon.
    pub fn commit(&self, generators: &Generators) -> Result<BitsCommitment, Unfit> {
        self.bits.commit(generators)
    }

    /// The share that follows from the beacon, and its proof. `commitment` is what was published.
    pub fn finish(
        self,
        commitment: &BitsCommitment,
        beacon: &Beacon,
        generators: &Generators,
        context: &Context,
        rng: &mut impl CryptoRng,
    ) -> Result<NoiseShare, Unfit> {
        let (weights, constant) = beacon.combination(self.law, context);
        let mut share = Zeroizing::new(vec![constant]);
        for (weight, bit) in weights.iter().zip(self.bits.bits()) {
            share[0] += weight * Scalar::from(*bit);
        }
        let opening = Opening::new(share, Zeroizing::new(Scalar::random(rng)));
        let total = opening.commit(generators)?;
        let statement = BitSum { bits: commitment, weights: &weights, constant, total: &total };
        let proof = BitSumProof::prove(&statement, self.bits, &opening, generators, context, rng)?;
        Ok(NoiseShare { opening, commitment: total, proof: NoiseProof(proof) })
    }
}

impl fmt::Debug for NoiseBits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NoiseBits of {} bits", self.law.bits)
    }
}

/// A proof that a share of noise follows from bits committed to before the beacon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoiseProof(BitSumProof);

/// What everybody knows of a share.
#[derive(Clone, Copy, Debug)]
pub struct NoiseStatement<'s> {
    /// The declared law.
    pub law: NoiseLaw,
    /// The commitment to bits, published before the beacon. That it was is the board's to show.
    pub bits: &'s BitsCommitment,
    /// The beacon.
    pub beacon: &'s Beacon,
    /// The commitment to the share.
    pub share: &'s Commitment,
}

impl NoiseProof {
    /// Verifies the proof by itself.
    pub fn verify(
        &self,
        statement: &NoiseStatement<'_>,
        generators: &Generators,
        context: &Context,
    ) -> Result<(), Flaw> {
        let mut batch = Batch::new(generators);
        self.verify_in(statement, context, &mut batch)?;
        batch.finish_one()
    }

    /// Enters the proof's equations into a batch, which must then be finished.
    pub fn verify_in(
        &self,
        statement: &NoiseStatement<'_>,
        context: &Context,
        batch: &mut Batch<'_>,
    ) -> Result<(), Flaw> {
        let (weights, constant) = statement.beacon.combination(statement.law, context);
        let sum = BitSum { bits: statement.bits, weights: &weights, constant, total: statement.share };
        self.0.verify_in(&sum, context, batch)
    }

    /// Bytes of a proof of this law.
    pub fn bytes(law: NoiseLaw) -> usize {
        BitSumProof::bytes(law.bits)
    }

    /// The proof as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.to_bytes()
    }

    /// Reads a proof of this law.
    pub fn from_bytes(bytes: &[u8], law: NoiseLaw) -> Result<NoiseProof, Flaw> {
        BitSumProof::from_bytes(bytes, law.bits).map(NoiseProof)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fixed_point::from_scalar,
        testing::{context, other_contexts, rng},
    };

    const BEACON: Beacon = Beacon([7; 32]);

    fn share(bits: usize, beacon: &Beacon, seed: u64, generators: &Generators) -> (BitsCommitment, NoiseShare) {
        let mut rng = rng(seed);
        let bits = NoiseBits::draw(NoiseLaw::new(bits).expect("even"), &mut rng).expect("few");
        let commitment = bits.commit(generators).expect("few");
        let share = bits.finish(&commitment, beacon, generators, &context(1), &mut rng).expect("few");
        (commitment, share)
    }

    #[test]
    fn a_share_holds_with_its_beacon_law_and_context_alone() {
        let generators = Generators::new(1, 64);
        let (bits, share) = share(50, &BEACON, 1, &generators);
        let law = NoiseLaw::new(50).expect("even");
        let statement = NoiseStatement { law, bits: &bits, beacon: &BEACON, share: &share.commitment };
        let verify =
            |statement: &NoiseStatement<'_>, context: &Context| share.proof.verify(statement, &generators, context);
        assert_eq!(verify(&statement, &context(1)), Ok(()));
        assert_eq!(NoiseProof::from_bytes(&share.proof.to_bytes(), law), Ok(share.proof.clone()));
        for other in other_contexts(&context(1)) {
            assert_eq!(verify(&statement, &other), Err(Flaw::NoiseProof));
        }
        let other_beacon = NoiseStatement { beacon: &Beacon([8; 32]), ..statement };
        let other_law = NoiseStatement { law: NoiseLaw::new(52).expect("even"), ..statement };
        for other in [other_beacon, other_law] {
            assert_eq!(verify(&other, &context(1)), Err(Flaw::NoiseProof));
        }
    }

    /// With fair bits, whatever the beacon; and with bits that a member chose, over beacons.
    #[test]
    fn shares_have_the_binomial_law_if_either_bits_or_beacon_are_fair() {
        let law = NoiseLaw::new(16).expect("even");
        let draws = 4000;
        let mut rng = rng(2);
        for chosen in [false, true] {
            let mut counts = [0_u32; 17];
            for draw in 0..draws {
                let bits = if chosen { BitsOpening::new(&[1; 16], &mut rng) } else { BitsOpening::draw(16, &mut rng) };
                let mut beacon = [0; 32];
                beacon[..4].copy_from_slice(&if chosen { draw } else { 0_u32 }.to_le_bytes());
                let (weights, constant) = Beacon(beacon).combination(law, &context(1));
                let share: Scalar = weights
                    .iter()
                    .zip(bits.expect("few").bits())
                    .map(|(weight, bit)| weight * Scalar::from(*bit))
                    .sum();
                counts[(from_scalar(&(share + constant)).expect("small") + 8) as usize] += 1;
            }
            let mut choose = 1.0;
            let mut chi_square = 0.0;
            for (i, count) in counts.iter().enumerate() {
                let expected = f64::from(draws) * choose / 65536.0;
                chi_square += (f64::from(*count) - expected).powi(2) / expected;
                choose = choose * (16 - i) as f64 / (i + 1) as f64;
            }
            // 16 degrees of freedom; the outermost cells expect 0.06 each, so the bound is generous: 1e-4 is 45.
            assert!(chi_square < 60.0, "{chi_square}");
        }
    }

    /// The beacon's bits of two members, rounds, tasks or boards have nothing to do with each other.
    #[test]
    fn every_member_and_round_has_bits_of_its_own_from_one_beacon() {
        let law = NoiseLaw::new(256).expect("even");
        let here = BEACON.combination(law, &context(1)).0;
        for other in other_contexts(&context(1)) {
            let there = BEACON.combination(law, &other).0;
            let equal = here.iter().zip(&there).filter(|(a, b)| a == b).count();
            assert!((88..=168).contains(&equal), "{equal} of 256 are equal");
        }
    }

    /// The attack of spec 04, section 6, on this law: the residue of the released sum modulo any lattice coarser than the data's would have to be constant over runs.
    #[test]
    fn the_released_sum_has_no_residue_that_shows_the_data() {
        let law = NoiseLaw::new(64).expect("even");
        let data = 12_345_i64;
        for modulus in [2_i64, 3, 4, 8] {
            let mut seen = vec![0; modulus as usize];
            for seed in 0..400_u32 {
                let mut beacon = [3; 32];
                beacon[..4].copy_from_slice(&seed.to_le_bytes());
                let (weights, constant) = Beacon(beacon).combination(law, &context(1));
                let noise = from_scalar(&(weights[..32].iter().sum::<Scalar>() + constant)).expect("small");
                seen[(data + noise).rem_euclid(modulus) as usize] += 1;
            }
            let expected = 400.0 / modulus as f64;
            for count in seen {
                // Five deviations of a binomial count.
                assert!((f64::from(count) - expected).abs() < 5.0 * expected.sqrt(), "modulus {modulus}: {count}");
            }
        }
    }

    #[test]
    fn odd_empty_and_huge_laws_are_refused() {
        for bits in [0, 1, 3, BITS_MAX + 2] {
            assert_eq!(NoiseLaw::new(bits), Err(Unfit::Bits));
        }
        assert_eq!(NoiseLaw::new(256).expect("even").variance(), 64.0);
    }
}
