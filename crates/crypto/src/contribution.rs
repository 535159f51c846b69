//! One member's contribution to a verified sum: the proofs of (4.4) to (4.7) together, in the order in which they are published.
//!
//! ```text
//! before the beacon: a promise        Com(x), the noise bits' commitment, Com(Delta_uv) for each neighbour v
//! after it:          a contribution   Com(eta), the published number x + eta + sum_v Delta_uv, and the proofs:
//!                                     all commitments can be opened;  low <= x <= high;  eta follows from bits and beacon;  the published number is the sum
//! ```
//!
//! What remains for (4.5) is one [`antisymmetry`](crate::proofs::antisymmetry) check per edge, between two promises.
//!
//! **Guarantee** (thesis, Theorem 4.2). Under the discrete logarithm assumption and with SHA-512 as a random oracle, a contribution that passes was computed from a value in the range, from
//! noise of the declared law and from the promised masks. The proofs tell nothing beyond the published number, even to those who can compute discrete logarithms. **Not guaranteed**: that the promise was published before the beacon and by
//! its sender (the board's task), that the value is true, that the member finishes at all.
//!
//! A [`Draft`] becomes a contribution once: finishing consumes it, so no value is published twice under one set of masks.

use crate::{
    batch::{Batch, Blame},
    bits::BitsCommitment,
    commitment::{Commitment, Opening},
    encoding::Reader,
    flaw::{Flaw, Unfit},
    generators::Generators,
    proofs::{
        COMMITMENTS_MAX,
        noise::{Beacon, NoiseBits, NoiseLaw, NoiseProof, NoiseShare, NoiseStatement},
        opening::OpeningProof,
        range::RangeBatch,
        sum::SumProof,
        value::{ValueProof, ValueRange},
    },
    transcript::Context,
};
use curve25519_dalek::scalar::Scalar;
use rand_core::CryptoRng;

/// The most masks of one contribution.
pub const MASKS_MAX: usize = COMMITMENTS_MAX - 2;

/// What all members agreed on: bounds of values, law of noise, and the generators for both.
pub struct Rules {
    generators: Generators,
    range: ValueRange,
    law: NoiseLaw,
}

impl Rules {
    /// Values from `low` to `high` and noise of this law, in steps of the same grid.
    pub fn new(low: i64, high: i64, law: NoiseLaw) -> Result<Rules, Unfit> {
        Ok(Rules { generators: Generators::new(1, law.bits()), range: ValueRange::new(low, high, 1)?, law })
    }

    /// The generators of commitments and bits.
    pub fn generators(&self) -> &Generators {
        &self.generators
    }
}

/// What a member publishes before the beacon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promise {
    /// The commitment to the value.
    pub value: Commitment,
    /// The commitment to the bits of the noise share.
    pub bits: BitsCommitment,
    /// The commitments to masks, in the order of the neighbours that the member published.
    pub masks: Vec<Commitment>,
}

impl Promise {
    /// The promise as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = [self.value.to_bytes(), self.bits.to_bytes()].concat();
        bytes.extend((self.masks.len() as u32).to_le_bytes());
        self.masks.iter().for_each(|mask| bytes.extend(mask.to_bytes()));
        bytes
    }

    /// Reads a promise.
    pub fn from_bytes(bytes: &[u8]) -> Result<Promise, Flaw> {
        let mut reader = Reader::new(bytes);
        let value = Commitment::from_bytes(reader.take()?)?;
        let bits = BitsCommitment::from_bytes(reader.take()?)?;
        let count = reader.count(MASKS_MAX)?;
        if count == 0 {
            return Err(Flaw::WrongLength);
        }
        let masks = (0..count).map(|_| Commitment::from_bytes(reader.take()?)).collect::<Result<_, Flaw>>()?;
        reader.finish()?;
        Ok(Promise { value, bits, masks })
    }

    /// The terms of the sum, in the order of the transcript: value, noise, masks.
    fn terms(&self, noise: &Commitment) -> Vec<Commitment> {
        [self.value, *noise].into_iter().chain(self.masks.iter().copied()).collect()
    }
}

/// A promise with all that is secret in it. Finishing consumes it.
#[derive(Debug)]
pub struct Draft {
    value: Opening,
    bits: NoiseBits,
    masks: Vec<Opening>,
    promise: Promise,
}

impl Draft {
    /// Commits to a value in the range, to fresh bits and to the masks shared with neighbours.
    pub fn new(rules: &Rules, value: i64, masks: Vec<Opening>, rng: &mut impl CryptoRng) -> Result<Draft, Unfit> {
        if masks.is_empty() {
            return Err(Unfit::Isolated);
        }
        if masks.len() > MASKS_MAX {
            return Err(Unfit::TooMany);
        }
        if masks.iter().any(|mask| mask.dimension() != 1) {
            return Err(Unfit::Lengths);
        }
        if value < rules.range.low() || value > rules.range.high() {
            return Err(Unfit::Untrue);
        }
        let value = Opening::of_integer(value, rng);
        let bits = NoiseBits::draw(rules.law, rng)?;
        let promise = Promise {
            value: value.commit(&rules.generators)?,
            bits: bits.commit(&rules.generators)?,
            masks: masks.iter().map(|mask| mask.commit(&rules.generators)).collect::<Result<_, _>>()?,
        };
        Ok(Draft { value, bits, masks, promise })
    }

    /// What to publish before the beacon.
    pub fn promise(&self) -> &Promise {
        &self.promise
    }

    /// The contribution that follows from the beacon.
    // PRIVACY: the published number is the value behind the member's noise share and its masks. What it tells is what the accountant of the protocol charges for the
    // sum over all honest members; the proofs beside it tell nothing more.
    pub fn finish(
        self,
        rules: &Rules,
        beacon: &Beacon,
        context: &Context,
        rng: &mut impl CryptoRng,
    ) -> Result<Contribution, Unfit> {
        let Draft { value, bits, masks, promise } = self;
        let NoiseShare { opening: noise, commitment, proof: noise_proof } =
            bits.finish(&promise.bits, beacon, &rules.generators, context, rng)?;
        let terms = promise.terms(&commitment);
        let openings: Vec<&Opening> = [&value, &noise].into_iter().chain(&masks).collect();
        let sum = Opening::sum(openings.iter().copied())?;
        Ok(Contribution {
            noise: commitment,
            published: sum.values()[0],
            opening_proof: OpeningProof::prove(&terms, &openings, &rules.generators, context, rng)?,
            sum_proof: SumProof::prove(&terms, sum.values(), sum.blinding(), context, rng)?,
            noise_proof,
            value_proof: ValueProof::prove(&rules.range, &[promise.value], &[&value], context, rng)?,
        })
    }
}

/// What a member publishes after the beacon.
#[derive(Clone, Debug, PartialEq)]
pub struct Contribution {
    /// The commitment to the noise share.
    pub noise: Commitment,
    /// The masked number: value, noise share and masks added in the scalar field.
    pub published: Scalar,
    opening_proof: OpeningProof,
    sum_proof: SumProof,
    noise_proof: NoiseProof,
    value_proof: ValueProof,
}

impl Contribution {
    /// Verifies one contribution by itself, without randomness.
    pub fn verify(&self, rules: &Rules, promise: &Promise, beacon: &Beacon, context: &Context) -> Result<(), Flaw> {
        let mut batch = ContributionBatch::new(rules);
        self.verify_in(promise, beacon, context, &mut batch)?;
        batch.ranges.finish().and(batch.equations.finish_each()).map_err(|blames| blames[0].1)
    }

    /// Enters the contribution into a batch, which must then be finished.
    pub fn verify_in(
        &self,
        promise: &Promise,
        beacon: &Beacon,
        context: &Context,
        batch: &mut ContributionBatch<'_>,
    ) -> Result<(), Flaw> {
        if promise.masks.is_empty() || promise.masks.len() > MASKS_MAX {
            return Err(Flaw::WrongLength);
        }
        let (terms, rules, equations) = (promise.terms(&self.noise), batch.rules, &mut batch.equations);
        let noise = NoiseStatement { law: rules.law, bits: &promise.bits, beacon, share: &self.noise };
        self.opening_proof.verify_in(&terms, context, equations)?;
        self.sum_proof.verify_in(&terms, &[self.published], context, equations)?;
        self.noise_proof.verify_in(&noise, context, equations)?;
        self.value_proof.verify_in(&rules.range, &[promise.value], context, &mut batch.ranges)
    }

    /// Bytes of a contribution under these rules.
    pub fn bytes(rules: &Rules) -> usize {
        64 + 96 + SumProof::BYTES + NoiseProof::bytes(rules.law) + ValueProof::bytes(&rules.range, 1)
    }

    /// The contribution as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = [self.noise.to_bytes(), self.published.to_bytes()].concat();
        bytes.extend(self.opening_proof.to_bytes());
        bytes.extend(self.sum_proof.to_bytes());
        bytes.extend(self.noise_proof.to_bytes());
        bytes.extend(self.value_proof.to_bytes());
        bytes
    }

    /// Reads a contribution.
    pub fn from_bytes(bytes: &[u8], rules: &Rules) -> Result<Contribution, Flaw> {
        let mut reader = Reader::new(bytes);
        let contribution = Contribution {
            noise: Commitment::from_bytes(reader.take()?)?,
            published: reader.scalar()?,
            opening_proof: OpeningProof::from_bytes(reader.slice(96)?, 1)?,
            sum_proof: SumProof::from_bytes(reader.slice(SumProof::BYTES)?)?,
            noise_proof: NoiseProof::from_bytes(reader.slice(NoiseProof::bytes(rules.law))?, rules.law)?,
            value_proof: ValueProof::from_bytes(reader.slice(ValueProof::bytes(&rules.range, 1))?, &rules.range, 1)?,
        };
        reader.finish()?;
        Ok(contribution)
    }
}

/// Contributions of many members, verified together.
#[must_use = "a batch that is not finished has verified nothing"]
pub struct ContributionBatch<'r> {
    rules: &'r Rules,
    equations: Batch<'r>,
    ranges: RangeBatch<'r>,
}

impl<'r> ContributionBatch<'r> {
    /// An empty batch.
    pub fn new(rules: &'r Rules) -> ContributionBatch<'r> {
        let (equations, ranges) = (Batch::new(&rules.generators), RangeBatch::new(rules.range.rules()));
        ContributionBatch { rules, equations, ranges }
    }

    /// Whose contribution follows.
    pub fn member(&mut self, member: usize) {
        self.equations.member(member);
        self.ranges.member(member);
    }

    /// Verifies all contributions; names every member and every proof that fails.
    pub fn finish(self, rng: &mut impl CryptoRng) -> Result<(), Vec<Blame>> {
        let blames = [self.ranges.finish(), self.equations.finish(rng)];
        let mut blames: Vec<Blame> = blames.into_iter().filter_map(Result::err).flatten().collect();
        blames.sort_unstable();
        blames.dedup();
        if blames.is_empty() { Ok(()) } else { Err(blames) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        fixed_point::from_scalar,
        generators::generator,
        pad::{Direction, PairSecret, Sign},
        proofs::antisymmetry,
        testing::{context, other_contexts, rng},
    };

    const BEACON: Beacon = Beacon([9; 32]);

    fn rules() -> Rules {
        Rules::new(0, 1000, NoiseLaw::new(32).expect("even")).expect("a range")
    }

    /// The masks of member u of a complete graph of n.
    fn masks(u: u8, n: u8, round: u64) -> Vec<Opening> {
        let mask = |v: u8| {
            let sign = if u < v { Sign::Adds } else { Sign::Subtracts };
            let mut secret = PairSecret::from_bytes(&[u.min(v) * 16 + u.max(v); 32], sign, 0);
            secret.stream(round, Direction::FromSmaller).expect("unused").scalars(1).expect("one").0.into()
        };
        (0..n).filter(|v| *v != u).map(mask).collect()
    }

    fn sender(u: u8) -> Context {
        Context { sender: [u; 32], ..context(1) }
    }

    fn member(rules: &Rules, u: u8, value: i64) -> (Promise, Contribution) {
        let mut rng = rng(u64::from(u));
        let draft = Draft::new(rules, value, masks(u, 5, 1), &mut rng).expect("fine");
        let promise = draft.promise().clone();
        (promise, draft.finish(rules, &BEACON, &sender(u), &mut rng).expect("fine"))
    }

    #[test]
    fn a_round_of_members_verifies_and_its_sum_is_values_plus_noise_exactly() {
        let rules = rules();
        let members: Vec<_> = (0..5).map(|u| member(&rules, u, 100 * i64::from(u) + 7)).collect();
        let mut batch = ContributionBatch::new(&rules);
        for (u, (promise, contribution)) in members.iter().enumerate() {
            assert_eq!(Promise::from_bytes(&promise.to_bytes()).as_ref(), Ok(promise));
            let bytes = contribution.to_bytes();
            assert_eq!(bytes.len(), Contribution::bytes(&rules));
            assert_eq!(Contribution::from_bytes(&bytes, &rules).as_ref(), Ok(contribution));
            assert_eq!(contribution.verify(&rules, promise, &BEACON, &sender(u as u8)), Ok(()));
            batch.member(u);
            contribution.verify_in(promise, &BEACON, &sender(u as u8), &mut batch).expect("lengths");
            for (v, (of_other, _)) in members.iter().enumerate().take(u) {
                assert_eq!(antisymmetry::verify(&promise.masks[v], &of_other.masks[u - 1]), Ok(()));
            }
        }
        assert_eq!(batch.finish(&mut rng(1)), Ok(()));
        let sum = members.iter().map(|(_, contribution)| contribution.published).sum();
        let noise = from_scalar(&sum).expect("pads cancel") - (1000 + 35);
        assert!(noise.abs() <= 5 * 16, "five shares of at most 16: {noise}");
    }

    #[test]
    fn every_kind_of_lie_is_blamed_on_its_author_alone() {
        let rules = rules();
        let (promise, honest) = member(&rules, 0, 500);
        let (other_promise, other) = member(&rules, 0, 501);
        let mut wrong_sum = honest.clone();
        wrong_sum.published += Scalar::ONE;
        let mut wrong_noise = honest.clone();
        wrong_noise.noise = other_promise.value;
        let swapped_value = Promise { value: other_promise.masks[0], ..promise.clone() };
        let fewer_masks = Promise { masks: promise.masks[1..].to_vec(), ..promise.clone() };
        let lies = [
            (&promise, &wrong_sum),
            (&promise, &wrong_noise),
            (&promise, &other),
            (&swapped_value, &honest),
            (&fewer_masks, &honest),
        ];
        for (promise_of_liar, lie) in lies {
            assert!(lie.verify(&rules, promise_of_liar, &BEACON, &sender(0)).is_err());
            let mut batch = ContributionBatch::new(&rules);
            for u in 0..3 {
                batch.member(u);
                let (promise, contribution) = if u == 1 { (promise_of_liar, lie) } else { (&promise, &honest) };
                contribution.verify_in(promise, &BEACON, &sender(0), &mut batch).expect("lengths");
            }
            let blames = batch.finish(&mut rng(2)).expect_err("a lie");
            assert!(blames.iter().all(|(member, _)| *member == 1), "{blames:?}");
        }
    }

    #[test]
    fn contributions_cannot_be_shown_again_in_another_context_or_with_another_beacon() {
        let rules = rules();
        let (promise, contribution) = member(&rules, 0, 500);
        for other in other_contexts(&sender(0)) {
            assert!(contribution.verify(&rules, &promise, &BEACON, &other).is_err());
        }
        let other_beacon = contribution.verify(&rules, &promise, &Beacon([1; 32]), &sender(0));
        assert_eq!(other_beacon, Err(Flaw::NoiseProof));
    }

    #[test]
    fn members_alone_and_values_out_of_range_get_nothing_published() {
        let (rules, mut rng) = (rules(), rng(1));
        assert_eq!(Draft::new(&rules, 5, Vec::new(), &mut rng).expect_err("alone"), Unfit::Isolated);
        for value in [-1, 1001] {
            assert_eq!(Draft::new(&rules, value, masks(0, 3, 1), &mut rng).expect_err("outside"), Unfit::Untrue);
        }
    }

    /// A value beyond the bound, everything else honest: the range proof is the one that fails.
    #[test]
    fn a_value_beyond_the_bound_is_found_by_its_range_proof_alone() {
        let (rules, mut rng) = (rules(), rng(3));
        let wide = Rules::new(0, 2000, NoiseLaw::new(32).expect("even")).expect("a range");
        let draft = Draft::new(&wide, 1001, masks(0, 5, 1), &mut rng).expect("in the wide range");
        let promise = draft.promise().clone();
        let contribution = draft.finish(&wide, &BEACON, &sender(0), &mut rng).expect("fine");
        assert_eq!(contribution.verify(&wide, &promise, &BEACON, &sender(0)), Ok(()));
        let mut batch = ContributionBatch::new(&rules);
        contribution.verify_in(&promise, &BEACON, &sender(0), &mut batch).expect("lengths");
        assert_eq!(batch.finish(&mut rng), Err(vec![(0, Flaw::RangeProof)]));
    }

    /// Two masks that the member cannot open, as copies of a neighbour's would be, with the right sum: the proof of openings is the one that fails.
    #[test]
    fn masks_that_cannot_be_opened_are_found_even_when_their_sum_is_right() {
        let (rules, mut rng) = (rules(), rng(4));
        let mut draft = Draft::new(&rules, 500, masks(0, 5, 1), &mut rng).expect("fine");
        let unknown = generator("unknown", 0);
        let moved = [draft.promise.masks[0].0.point + unknown, draft.promise.masks[1].0.point - unknown];
        draft.promise.masks[..2].copy_from_slice(&moved.map(Commitment::new));
        let promise = draft.promise().clone();
        let contribution = draft.finish(&rules, &BEACON, &sender(0), &mut rng).expect("fine");
        let mut batch = ContributionBatch::new(&rules);
        contribution.verify_in(&promise, &BEACON, &sender(0), &mut batch).expect("lengths");
        assert_eq!(batch.finish(&mut rng), Err(vec![(0, Flaw::OpeningProof)]));
    }

    /// A share that does not follow from the beacon, everything else honest: the noise proof is the one that fails.
    #[test]
    fn noise_that_was_chosen_is_found_by_its_proof_alone() {
        let (rules, mut rng) = (rules(), rng(5));
        let draft = Draft::new(&rules, 500, masks(0, 5, 1), &mut rng).expect("fine");
        let promise = draft.promise().clone();
        let contribution = draft.finish(&rules, &Beacon([1; 32]), &sender(0), &mut rng).expect("fine");
        let mut batch = ContributionBatch::new(&rules);
        contribution.verify_in(&promise, &BEACON, &sender(0), &mut batch).expect("lengths");
        assert_eq!(batch.finish(&mut rng), Err(vec![(0, Flaw::NoiseProof)]));
    }
}
