//! What a hostile member can send: flipped bytes, random bytes, entries of others. Never a panic, never accepted.

use proptest::prelude::*;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use sottovoce_crypto::{
    Context, Flaw, Scalar,
    agreement::TaskPublicKey,
    commitment::{Commitment, Opening},
    contribution::{Contribution, ContributionBatch, Draft, Promise, Rules},
    generators::Generators,
    proofs::{
        bit::BitProof,
        bit_sum::BitSumProof,
        link::LinkProof,
        noise::{Beacon, NoiseLaw},
        opening::OpeningProof,
        range::{RangeProof, RangeRules},
        sum::SumProof,
        value::{ValueProof, ValueRange},
    },
};
use std::sync::OnceLock;

const BEACON: Beacon = Beacon([4; 32]);

fn context(sender: u8) -> Context {
    Context { task: [1; 32], round: 3, sender: [sender; 32], board: [2; 32] }
}

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

fn rules() -> &'static Rules {
    static RULES: OnceLock<Rules> = OnceLock::new();
    RULES.get_or_init(|| Rules::new(0, 255, NoiseLaw::new(8).expect("even")).expect("a range"))
}

fn member(sender: u8, seed: u64) -> (Promise, Contribution) {
    let mut rng = rng(seed);
    let masks = (0..3).map(|i| Opening::of_integer(1000 - i, &mut rng)).collect();
    let draft = Draft::new(rules(), 99, masks, &mut rng).expect("fine");
    let promise = draft.promise().clone();
    (promise, draft.finish(rules(), &BEACON, &context(sender), &mut rng).expect("fine"))
}

/// Whether changed bytes of a contribution are accepted.
fn accepted(promise: &[u8], contribution: &[u8]) -> Result<(), Flaw> {
    let promise = Promise::from_bytes(promise)?;
    Contribution::from_bytes(contribution, rules())?.verify(rules(), &promise, &BEACON, &context(1))
}

/// CHECK 04.h: every byte of everything a member publishes, changed by each of the given masks.
fn flip_all(masks: &[u8]) {
    let (promise, contribution) = member(1, 1);
    let (promise, contribution) = (promise.to_bytes(), contribution.to_bytes());
    assert_eq!(accepted(&promise, &contribution), Ok(()));
    for mask in masks {
        for i in 0..promise.len() {
            let mut changed = promise.clone();
            changed[i] ^= mask;
            assert!(accepted(&changed, &contribution).is_err(), "byte {i} of the promise, {mask:#x}");
        }
        for i in 0..contribution.len() {
            let mut changed = contribution.clone();
            changed[i] ^= mask;
            assert!(accepted(&promise, &changed).is_err(), "byte {i} of the contribution, {mask:#x}");
        }
    }
}

#[test]
fn a_flipped_bit_in_any_byte_of_a_promise_or_a_contribution_is_refused() {
    flip_all(&[0x01, 0x80]);
}

#[test]
#[ignore = "every value of every byte: cargo xtask soak"]
fn every_other_value_of_any_byte_of_a_promise_or_a_contribution_is_refused() {
    flip_all(&(1..=255).collect::<Vec<u8>>());
}

#[test]
fn entries_cut_short_or_grown_are_refused_at_every_length() {
    let (promise, contribution) = member(1, 1);
    let (promise, contribution) = (promise.to_bytes(), contribution.to_bytes());
    for length in 0..contribution.len() {
        assert!(accepted(&promise, &contribution[..length]).is_err());
    }
    for length in 0..promise.len() {
        assert!(accepted(&promise[..length], &contribution).is_err());
    }
    for extra in [0, 1, 0xff] {
        assert_eq!(accepted(&promise, &[&contribution[..], &[extra]].concat()), Err(Flaw::TrailingBytes));
        assert_eq!(accepted(&[&promise[..], &[extra]].concat(), &contribution), Err(Flaw::TrailingBytes));
    }
}

/// A member copies all that another published, or mixes parts of two honest contributions of its own.
#[test]
fn entries_of_others_and_mixtures_of_honest_entries_are_refused() {
    let (promise, contribution) = member(1, 1);
    assert!(contribution.verify(rules(), &promise, &BEACON, &context(2)).is_err(), "copied by another sender");
    let (other_promise, other) = member(1, 2);
    let (a, b) = (contribution.to_bytes(), other.to_bytes());
    let parts = [0, 32, 64, 160, 224, 224 + BitSumProof::bytes(8), a.len()];
    for window in parts.windows(2) {
        let mut mixed = a.clone();
        mixed[window[0]..window[1]].copy_from_slice(&b[window[0]..window[1]]);
        assert!(accepted(&promise.to_bytes(), &mixed).is_err(), "bytes {window:?} of another contribution");
    }
    for mixed in [
        Promise { value: other_promise.value, ..promise.clone() },
        Promise { bits: other_promise.bits, ..promise.clone() },
        Promise { masks: other_promise.masks.clone(), ..promise.clone() },
        Promise { masks: promise.masks.iter().rev().copied().collect(), ..promise.clone() },
    ] {
        assert!(accepted(&mixed.to_bytes(), &a).is_err());
    }
}

/// A value outside of the range, committed to and proved by a member whose own program has a wider one.
#[test]
fn values_out_of_range_proved_under_other_rules_are_blamed() {
    let wide = Rules::new(0, 65_535, NoiseLaw::new(8).expect("even")).expect("a range");
    let mut rng = rng(5);
    let draft = Draft::new(&wide, 60_000, vec![Opening::of_integer(5, &mut rng)], &mut rng).expect("in the wide range");
    let promise = draft.promise().clone();
    let bytes = draft.finish(&wide, &BEACON, &context(1), &mut rng).expect("fine").to_bytes();
    assert_eq!(
        Contribution::from_bytes(&bytes, &wide).expect("own bytes").verify(&wide, &promise, &BEACON, &context(1)),
        Ok(())
    );
    assert!(accepted(&promise.to_bytes(), &bytes).is_err());
}

#[test]
fn honest_members_are_never_blamed_and_one_liar_among_them_always_is() {
    let members: Vec<_> = (0..20).map(|u| member(u, 100 + u64::from(u))).collect();
    for liar in [None, Some(0), Some(13)] {
        let mut batch = ContributionBatch::new(rules());
        for (u, (promise, contribution)) in members.iter().enumerate() {
            let mut contribution = contribution.clone();
            if liar == Some(u) {
                contribution.published += Scalar::ONE;
            }
            batch.member(u);
            contribution.verify_in(promise, &BEACON, &context(u as u8), &mut batch).expect("lengths");
        }
        let blamed = batch.finish(&mut rng(9)).err().unwrap_or_default();
        assert_eq!(blamed.first().map(|(member, _)| *member), liar);
        assert!(blamed.iter().all(|(_, flaw)| *flaw == Flaw::SumProof));
    }
}

/// Reads bytes as everything that a peer can send, and verifies what can be read.
fn read_everything(bytes: &[u8]) {
    let here = context(1);
    let generators = Generators::new(2, 8);
    let base = Opening::of_integer(3, &mut rng(1)).commit(&generators).expect("one");
    if let Ok(proof) = OpeningProof::from_bytes(bytes, 1) {
        assert!(proof.verify(&[base], &generators, &here).is_err());
    }
    if let Ok(proof) = SumProof::from_bytes(bytes) {
        assert!(proof.verify(&[base], &[Scalar::ONE], &generators, &here).is_err());
    }
    if let Ok(proof) = BitProof::from_bytes(bytes) {
        assert!(proof.verify(&base, &generators, &here).is_err());
    }
    if let Ok(proof) = LinkProof::from_bytes(bytes, 2) {
        assert!(proof.verify(&base, &[base, base], &generators, &here).is_err());
    }
    for count in [0, 1, 8, 5000] {
        let _ = BitSumProof::from_bytes(bytes, count);
        let _ = OpeningProof::from_bytes(bytes, count);
        let _ = LinkProof::from_bytes(bytes, count);
    }
    let range_rules = RangeRules::new(8, 2).expect("fine");
    for numbers in [0, 1, 2, 3] {
        if let Ok(proof) = RangeProof::from_bytes(bytes, &range_rules, numbers) {
            assert!(proof.verify(&range_rules, &vec![base; numbers], &here).is_err());
        }
    }
    let range = ValueRange::new(0, 255, 1).expect("a range");
    let _ = ValueProof::from_bytes(bytes, &range, 1);
    let _ = Promise::from_bytes(bytes);
    let _ = Contribution::from_bytes(bytes, rules());
    if let Ok(array) = bytes.try_into() {
        let _ = Commitment::from_bytes(array);
        let _ = TaskPublicKey::from_bytes(array);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..700)) {
        read_everything(&bytes);
    }

    /// Lengths that fit a format, made of valid points and reduced scalars, so that reading gets past the first part.
    #[test]
    fn well_formed_nonsense_never_panics_and_is_refused(parts in prop::collection::vec((any::<bool>(), any::<u64>()), 1..22), prefix: bool) {
        let mut bytes = if prefix { vec![1] } else { Vec::new() };
        for (point, number) in parts {
            let scalar = Scalar::from(number) * Scalar::from(number);
            if point {
                bytes.extend(Opening::new(vec![scalar].into(), Scalar::ONE.into()).commit(&Generators::new(1, 0)).expect("one").to_bytes());
            } else {
                bytes.extend(scalar.as_bytes());
            }
        }
        read_everything(&bytes);
    }

    /// Several bytes changed at once, anywhere.
    #[test]
    fn entries_with_many_changed_bytes_are_refused(changes in prop::collection::vec((any::<prop::sample::Index>(), 1..=255_u8), 1..5)) {
        static HONEST: OnceLock<(Vec<u8>, Vec<u8>)> = OnceLock::new();
        let (promise, contribution) = HONEST.get_or_init(|| {
            let (promise, contribution) = member(1, 1);
            (promise.to_bytes(), contribution.to_bytes())
        });
        let mut changed = contribution.clone();
        for (index, mask) in changes {
            let at = index.index(changed.len());
            changed[at] ^= mask;
        }
        if changed != *contribution {
            prop_assert!(accepted(promise, &changed).is_err());
        }
    }
}
