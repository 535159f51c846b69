//! Range: "each of these commitments holds a number of at most so many bits".
//!
//! **Statement.** Commitments C_1 ... C_m to single numbers and a width b of 8, 16, 32 or 64. **Relation.** The prover knows v_j, r_j with C_j = Com(v_j; r_j) and 0 <= v_j < 2^b.
//!
//! **Protocol.** Bulletproofs+ (Chung, Han, Ju, Kim, Seo 2020), all m numbers in one proof, as `tari_bulletproofs_plus` 0.5 implements it with our generators G_0 and H. Its own transcript
//! begins with the digest of ours, which holds context, width and commitments; m is padded to a power of two by repeating the last commitment.
//!
//! **Why sound.** The paper's theorem: computational special soundness under the discrete logarithm assumption, random oracle. Its vector generators are hashed from other labels
//! than ours. **Why zero-knowledge.** The paper's theorem, honest-verifier made non-interactive; nonces come from the generator that is passed in, hedged by witness and transcript.
//!
//! **What it does not say**: anything modulo the group's order; 2^64 is far below it, so no number wraps.
//!
//! **Cost.** 32 (6 + 2 log2(b m)) + 1 bytes: 577 for two numbers of 32 bits. Verification is batched by the library, in groups of 256 proofs.

use super::append_commitments;
use crate::{
    commitment::{Commitment, Opening},
    flaw::{Flaw, Unfit},
    generators::bases,
    transcript::{Context, Transcript},
};
use curve25519_dalek::{ristretto::RistrettoPoint, scalar::Scalar};
use rand_core::CryptoRng;
use tari_bulletproofs_plus::{
    commitment_opening::CommitmentOpening,
    generators::pedersen_gens::{ExtensionDegree, PedersenGens},
    range_parameters::RangeParameters,
    range_proof::VerifyAction,
    range_statement::RangeStatement,
    range_witness::RangeWitness,
    ristretto::RistrettoRangeProof,
};

/// The most numbers in one proof.
pub const NUMBERS_MAX: usize = 64;

/// The width of a range and the generators for it. Costs milliseconds to make; make it once.
#[derive(Clone)]
pub struct RangeRules {
    width: usize,
    parameters: RangeParameters<RistrettoPoint>,
}

impl RangeRules {
    /// Rules for up to `numbers` numbers of a width of 8, 16, 32 or 64 bits.
    pub fn new(width: usize, numbers: usize) -> Result<RangeRules, Unfit> {
        if ![8, 16, 32, 64].contains(&width) || numbers == 0 || numbers > NUMBERS_MAX {
            return Err(Unfit::Range);
        }
        let bases = bases();
        let generators = PedersenGens {
            h_base: bases.value_point,
            h_base_compressed: bases.value_point.compress(),
            g_base_vec: vec![bases.blinding_point],
            g_base_compressed_vec: vec![bases.blinding_point.compress()],
            extension_degree: ExtensionDegree::DefaultPedersen,
        };
        let parameters =
            RangeParameters::init(width, numbers.next_power_of_two(), generators).map_err(|_| Unfit::Range)?;
        Ok(RangeRules { width, parameters })
    }

    /// The width in bits.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The most numbers in one proof.
    pub fn numbers(&self) -> usize {
        self.parameters.max_aggregation_factor()
    }

    fn transcript(&self, commitments: &[Commitment], context: &Context) -> tari_merlin::Transcript {
        let mut transcript = Transcript::new("range", context);
        transcript.append_number("width", self.width as u64);
        append_commitments(&mut transcript, "commitment", commitments);
        let mut merlin = tari_merlin::Transcript::new(b"sottovoce/range/v1");
        merlin.append_message(b"statement", &transcript.digest());
        merlin
    }

    fn statement(&self, commitments: &[Commitment]) -> Option<RangeStatement<RistrettoPoint>> {
        let points = padded(commitments.iter().map(|commitment| commitment.0.point).collect());
        let promises = vec![None; points.len()];
        RangeStatement::init(self.parameters.clone(), points, promises, None).ok()
    }
}

/// A list whose last element is repeated until its length is a power of two.
fn padded<T: Clone>(mut list: Vec<T>) -> Vec<T> {
    if let Some(last) = list.last().cloned() {
        list.resize(list.len().next_power_of_two(), last);
    }
    list
}

/// A proof that commitments hold numbers of a width.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeProof(RistrettoRangeProof);

impl RangeProof {
    /// Proves that each opening holds `numbers[j]` and that it has the width. Commitments and openings are of single numbers.
    pub fn prove(
        rules: &RangeRules,
        commitments: &[Commitment],
        numbers: &[u64],
        openings: &[&Opening],
        context: &Context,
        rng: &mut impl CryptoRng,
    ) -> Result<RangeProof, Unfit> {
        if commitments.len() != openings.len() || numbers.len() != openings.len() || openings.is_empty() {
            return Err(Unfit::Lengths);
        }
        if openings.len() > rules.numbers() {
            return Err(Unfit::TooMany);
        }
        if openings.iter().any(|opening| opening.dimension() != 1) {
            return Err(Unfit::Lengths);
        }
        let witness = numbers.iter().zip(openings);
        let witness = witness.map(|(number, opening)| CommitmentOpening::new(*number, vec![*opening.blinding()]));
        let witness = RangeWitness::init(padded(witness.collect())).map_err(|_| Unfit::Lengths)?;
        let statement = rules.statement(commitments).ok_or(Unfit::Lengths)?;
        let mut transcript = rules.transcript(commitments, context);
        // The library compares the witness with statement and width before it proves anything.
        RistrettoRangeProof::prove_with_rng(&mut transcript, &statement, &witness, rng)
            .map(RangeProof)
            .map_err(|_| Unfit::Untrue)
    }

    /// Verifies the proof by itself.
    pub fn verify(&self, rules: &RangeRules, commitments: &[Commitment], context: &Context) -> Result<(), Flaw> {
        let mut batch = RangeBatch::new(rules);
        self.verify_in(commitments, context, &mut batch)?;
        batch.finish().map_err(|blames| blames[0].1)
    }

    /// Enters the proof into a batch, which must then be finished.
    pub fn verify_in(
        &self,
        commitments: &[Commitment],
        context: &Context,
        batch: &mut RangeBatch<'_>,
    ) -> Result<(), Flaw> {
        if commitments.is_empty() || commitments.len() > batch.rules.numbers() {
            return Err(Flaw::WrongLength);
        }
        // Commitments that were computed from others, and not read, may be the identity: then they hide nothing.
        if commitments.iter().any(|commitment| commitment.to_bytes() == [0; 32]) {
            return Err(Flaw::IdentityPoint);
        }
        let statement = batch.rules.statement(commitments).ok_or(Flaw::WrongLength)?;
        batch.members.push(batch.member);
        batch.transcripts.push(batch.rules.transcript(commitments, context));
        batch.statements.push(statement);
        batch.proofs.push(self.0.clone());
        Ok(())
    }

    /// Bytes of a proof about so many numbers.
    pub fn bytes(rules: &RangeRules, numbers: usize) -> usize {
        1 + 32 * (6 + 2 * (rules.width * numbers.next_power_of_two()).ilog2() as usize)
    }

    /// The proof as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.to_bytes()
    }

    /// Reads a proof about so many numbers.
    pub fn from_bytes(bytes: &[u8], rules: &RangeRules, numbers: usize) -> Result<RangeProof, Flaw> {
        if numbers == 0 || numbers > rules.numbers() {
            return Err(Flaw::WrongLength);
        }
        match bytes.len().cmp(&RangeProof::bytes(rules, numbers)) {
            std::cmp::Ordering::Less => return Err(Flaw::TooShort),
            std::cmp::Ordering::Greater => return Err(Flaw::TrailingBytes),
            std::cmp::Ordering::Equal => {}
        }
        if bytes[0] != 1 {
            // The library's byte for the number of blindings of a commitment: always one here.
            return Err(Flaw::UnknownTag);
        }
        // The first scalar is d1, then three points, then r1 and s1, then points: named before the library reads them.
        let (parts, _) = bytes[1..].as_chunks::<32>();
        for (i, part) in parts.iter().enumerate() {
            if [0, 4, 5].contains(&i) {
                crate::encoding::scalar(*part)?;
            } else {
                crate::encoding::Point::from_bytes(*part)?;
            }
        }
        RistrettoRangeProof::from_bytes(bytes).map(RangeProof).map_err(|_| Flaw::RangeProof)
    }
}

/// Range proofs to be verified together.
#[must_use = "a batch that is not finished has verified nothing"]
pub struct RangeBatch<'r> {
    rules: &'r RangeRules,
    member: usize,
    members: Vec<usize>,
    transcripts: Vec<tari_merlin::Transcript>,
    statements: Vec<RangeStatement<RistrettoPoint>>,
    proofs: Vec<RistrettoRangeProof>,
}

impl<'r> RangeBatch<'r> {
    /// An empty batch of proofs under one set of rules.
    pub fn new(rules: &'r RangeRules) -> RangeBatch<'r> {
        RangeBatch {
            rules,
            member: 0,
            members: Vec::new(),
            transcripts: Vec::new(),
            statements: Vec::new(),
            proofs: Vec::new(),
        }
    }

    /// Whose proofs follow.
    pub fn member(&mut self, member: usize) {
        self.member = member;
    }

    /// Verifies all proofs as one; if that fails, says which members' do not hold. The library draws its weights from the
    /// transcripts of all proofs with all their answers.
    pub fn finish(self) -> Result<(), Vec<(usize, Flaw)>> {
        let verify = |range: std::ops::Range<usize>| {
            // The library changes the transcripts, and they are needed again to find who is wrong.
            let mut transcripts = self.transcripts[range.clone()].to_vec();
            let (statements, proofs) = (&self.statements[range.clone()], &self.proofs[range]);
            RistrettoRangeProof::verify_batch(&mut transcripts, statements, proofs, VerifyAction::VerifyOnly).is_ok()
        };
        if self.proofs.is_empty() || verify(0..self.proofs.len()) {
            return Ok(());
        }
        let failed = (0..self.proofs.len()).filter(|i| !verify(*i..i + 1));
        let blames: Vec<_> = failed.map(|i| (self.members[i], Flaw::RangeProof)).collect();
        if blames.is_empty() { Ok(()) } else { Err(blames) }
    }
}

/// A number of the field as 64 bits, if it is one. For a prover's own numbers: its time depends on whether it is.
pub(crate) fn small(number: &Scalar) -> Option<u64> {
    let (low, high) = number.as_bytes().split_at(8);
    high.iter().all(|byte| *byte == 0).then(|| u64::from_le_bytes(low.try_into().expect("eight bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        generators::Generators,
        testing::{context, other_contexts, rng},
    };
    use zeroize::Zeroizing;

    fn openings(numbers: &[u64]) -> (Vec<Opening>, Vec<Commitment>) {
        let (generators, mut rng) = (Generators::new(1, 0), rng(1));
        let opening = |number: &u64| {
            Opening::new(Zeroizing::new(vec![Scalar::from(*number)]), Zeroizing::new(Scalar::random(&mut rng)))
        };
        let openings: Vec<Opening> = numbers.iter().map(opening).collect();
        let commitments = openings.iter().map(|opening| opening.commit(&generators).expect("one")).collect();
        (openings, commitments)
    }

    fn prove(rules: &RangeRules, numbers: &[u64]) -> (Vec<Commitment>, Result<RangeProof, Unfit>) {
        let (openings, commitments) = openings(numbers);
        let lent: Vec<&Opening> = openings.iter().collect();
        let proof = RangeProof::prove(rules, &commitments, numbers, &lent, &context(1), &mut rng(2));
        (commitments, proof)
    }

    #[test]
    fn numbers_of_every_width_are_proved_up_to_their_last_one() {
        for width in [8, 16, 32, 64] {
            let rules = RangeRules::new(width, 4).expect("fine");
            let last = if width == 64 { u64::MAX } else { (1 << width) - 1 };
            for numbers in [&[0][..], &[last], &[0, last], &[last, 1, 7]] {
                let (commitments, proof) = prove(&rules, numbers);
                let proof = proof.expect("true");
                assert_eq!(proof.verify(&rules, &commitments, &context(1)), Ok(()));
                let bytes = proof.to_bytes();
                assert_eq!(RangeProof::from_bytes(&bytes, &rules, numbers.len()), Ok(proof));
            }
            if width < 64 {
                assert_eq!(prove(&rules, &[last + 1]).1, Err(Unfit::Untrue));
            }
        }
    }

    #[test]
    fn a_proof_counts_in_its_context_for_its_commitments_and_width_alone() {
        let rules = RangeRules::new(16, 4).expect("fine");
        let (commitments, proof) = prove(&rules, &[3, 4, 5]);
        let proof = proof.expect("true");
        for other in other_contexts(&context(1)) {
            assert_eq!(proof.verify(&rules, &commitments, &other), Err(Flaw::RangeProof));
        }
        let mut swapped = commitments.clone();
        swapped.swap(0, 1);
        // The padding repeats the last commitment, so four with the last one twice are padded to the same points.
        let mut repeated = commitments.clone();
        repeated.push(commitments[2]);
        for other in [&swapped, &repeated] {
            assert_eq!(proof.verify(&rules, other, &context(1)), Err(Flaw::RangeProof));
        }
        for width in [8, 32] {
            let other = RangeRules::new(width, 4).expect("fine");
            assert_eq!(proof.verify(&other, &commitments, &context(1)), Err(Flaw::RangeProof));
        }
        assert_eq!(proof.verify(&rules, &[], &context(1)), Err(Flaw::WrongLength));
        assert_eq!(proof.verify(&rules, &[commitments[0]; 5], &context(1)), Err(Flaw::WrongLength));
    }

    #[test]
    fn a_batch_blames_the_wrong_proofs_alone() {
        let rules = RangeRules::new(8, 2).expect("fine");
        let (commitments, proof) = prove(&rules, &[3, 4]);
        let proof = proof.expect("true");
        let mut batch = RangeBatch::new(&rules);
        for member in 0..6 {
            batch.member(member);
            let round = if member == 4 { 9 } else { 1 };
            proof.verify_in(&commitments, &Context { round, ..context(1) }, &mut batch).expect("lengths");
        }
        assert_eq!(batch.finish(), Err(vec![(4, Flaw::RangeProof)]));
        assert_eq!(RangeBatch::new(&rules).finish(), Ok(()));
    }

    #[test]
    fn rules_and_lists_that_do_not_fit_are_refused() {
        for (width, numbers) in [(0, 1), (7, 1), (128, 1), (8, 0), (8, NUMBERS_MAX + 1)] {
            assert_eq!(RangeRules::new(width, numbers).err(), Some(Unfit::Range));
        }
        let rules = RangeRules::new(8, 2).expect("fine");
        assert_eq!(prove(&rules, &[]).1, Err(Unfit::Lengths));
        assert_eq!(prove(&rules, &[1; 3]).1, Err(Unfit::TooMany));
        // A number that is not the opening's.
        let (openings, commitments) = openings(&[5]);
        let lied = RangeProof::prove(&rules, &commitments, &[6], &[&openings[0]], &context(1), &mut rng(1));
        assert_eq!(lied, Err(Unfit::Untrue));
    }
}
