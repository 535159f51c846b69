//! One transcript for all proofs: what was said so far, hashed, and the challenges that follow from it.
//!
//! A proof of this crate is made non-interactive by Fiat and Shamir's rule: the verifier's challenge is a hash of everything
//! before it. What is not in the hash can be exchanged afterwards, so the transcript begins with the [`Context`] (task,
//! round, sender, board), then takes the whole statement, then every message of the prover, each with a label and its length:
//!
//! ```text
//! frame(kind, label, data) = kind (1 byte) | length of label (4 bytes) | label | length of data (8 bytes) | data
//! state     = SHA-512 over the frames since the last challenge, begun with the state before
//! challenge = SHA-512("challenge" | state) modulo the group's order;    next state = SHA-512("next" | state)
//! ```
//!
//! Frames are self-delimiting, so two different sequences of calls never hash the same bytes. A challenge is a hash of the state
//! and not the state itself, so no challenge helps to extend a transcript. SHA-512 is taken as a random oracle.
//!
//! **Nonces.** A prover's secret randomness is a stream keyed by a hash of the transcript, the witness and 32 fresh bytes.
//! If the generator is good, so are the nonces; if it repeats itself, nonces still differ for different statements, and the
//! witness stays hidden as long as it is hard to guess.

use crate::stream::{KeyStream, nonce};
use curve25519_dalek::scalar::Scalar;
use rand_core::CryptoRng;
use sha2::{Digest, Sha512};
use zeroize::Zeroizing;

/// Where a proof counts: it is worth nothing in another task, round, name or board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Context {
    /// The digest of the task that all members agreed on.
    pub task: [u8; 32],
    /// The round of the task.
    pub round: u64,
    /// The key under which the sender is registered.
    pub sender: [u8; 32],
    /// The board: the hash that names it, or its head when the round began.
    pub board: [u8; 32],
}

/// What was said so far.
#[derive(Clone)]
pub struct Transcript {
    hash: Sha512,
}

/// The first frame of every transcript: names this crate's proofs and the version of their format and generators.
const FORMAT: &str = "sottovoce/proofs/v1";

impl Transcript {
    /// The transcript of one proof: what it proves, and where it counts.
    pub fn new(protocol: &str, context: &Context) -> Transcript {
        let mut transcript = Transcript { hash: Sha512::new() };
        transcript.append("format", FORMAT.as_bytes());
        transcript.append("protocol", protocol.as_bytes());
        transcript.append("task", &context.task);
        transcript.append("round", &context.round.to_le_bytes());
        transcript.append("sender", &context.sender);
        transcript.append("board", &context.board);
        transcript
    }

    /// Appends something both sides know.
    pub fn append(&mut self, label: &str, data: &[u8]) {
        self.frame(b'a', label, data);
    }

    /// Appends a number: a length, an index, a bound.
    pub fn append_number(&mut self, label: &str, number: u64) {
        self.frame(b'n', label, &number.to_le_bytes());
    }

    /// Appends scalars, and how many there are.
    pub fn append_scalars<'s>(&mut self, label: &str, scalars: impl ExactSizeIterator<Item = &'s Scalar>) {
        self.append_number(label, scalars.len() as u64);
        for scalar in scalars {
            self.append(label, scalar.as_bytes());
        }
    }

    /// A challenge that depends on everything before; never zero.
    pub fn challenge(&mut self, label: &str) -> Scalar {
        loop {
            self.frame(b'c', label, &[]);
            let state = self.state();
            self.hash = Sha512::new().chain_update(b"next").chain_update(state);
            let wide = Sha512::new().chain_update(b"challenge").chain_update(state).finalize();
            let challenge = Scalar::from_bytes_mod_order_wide(&wide.into());
            if challenge != Scalar::ZERO {
                return challenge;
            }
        }
    }

    /// A hash of everything before, to tie another transcript to this one.
    pub fn digest(&self) -> [u8; 64] {
        Sha512::new().chain_update(b"digest").chain_update(self.state()).finalize().into()
    }

    /// The prover's secret randomness from here on.
    pub(crate) fn nonces<'w>(&self, witness: impl Iterator<Item = &'w Scalar>, rng: &mut impl CryptoRng) -> KeyStream {
        let mut fresh = Zeroizing::new([0; 32]);
        rng.fill_bytes(&mut *fresh);
        let mut hash = Sha512::new().chain_update(b"nonces").chain_update(self.state()).chain_update(fresh.as_slice());
        for scalar in witness {
            hash.update(scalar.as_bytes());
        }
        let seed: Zeroizing<[u8; 64]> = Zeroizing::new(hash.finalize().into());
        let (keys, _) = seed.as_chunks::<32>();
        KeyStream::new(&keys[0], &nonce(b"nonc", 0))
    }

    fn state(&self) -> [u8; 64] {
        self.hash.clone().finalize().into()
    }

    fn frame(&mut self, kind: u8, label: &str, data: &[u8]) {
        let label_length = u32::try_from(label.len()).expect("labels are short");
        self.hash.update([kind]);
        self.hash.update(label_length.to_le_bytes());
        self.hash.update(label.as_bytes());
        self.hash.update((data.len() as u64).to_le_bytes());
        self.hash.update(data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{context, other_contexts, rng};

    #[test]
    fn every_field_of_the_context_and_the_protocol_change_the_challenge() {
        let of = |protocol, context: &Context| Transcript::new(protocol, context).challenge("e");
        let here = of("a", &context(1));
        assert_eq!(here, of("a", &context(1)));
        assert_ne!(here, of("b", &context(1)));
        for other in other_contexts(&context(1)) {
            assert_ne!(here, of("a", &other));
        }
    }

    /// After each of these calls the challenge is another one.
    fn all_differ(calls: &[&dyn Fn(&mut Transcript)]) {
        let challenge = |call: &&dyn Fn(&mut Transcript)| {
            let mut transcript = Transcript::new("a", &context(1));
            call(&mut transcript);
            transcript.challenge("e")
        };
        let challenges: Vec<_> = calls.iter().map(challenge).collect();
        for (i, a) in challenges.iter().enumerate() {
            assert!(!challenges[..i].contains(a), "calls {i}");
        }
    }

    /// Moving a byte between label and data, between two appends, or from an append to a number changes the challenge.
    #[test]
    fn labels_lengths_and_kinds_are_bound() {
        let calls: [&dyn Fn(&mut Transcript); 8] = [
            &|t: &mut Transcript| t.append("ab", b"c"),
            &|t: &mut Transcript| t.append("a", b"bc"),
            &|t: &mut Transcript| t.append("abc", b""),
            &|t: &mut Transcript| (t.append("a", b"b"), t.append("c", b"")).0,
            &|t: &mut Transcript| t.append("a", &1_u64.to_le_bytes()),
            &|t: &mut Transcript| t.append_number("a", 1),
            &|t: &mut Transcript| t.append_scalars("a", [].iter()),
            &|t: &mut Transcript| t.append_scalars("a", [Scalar::ONE].iter()),
        ];
        all_differ(&calls);
    }

    /// Data that looks like the end of its frame and a second frame, as it would be written without the length of data or of a label.
    #[test]
    fn data_cannot_pass_for_a_frame_of_its_own() {
        let two = |t: &mut Transcript| (t.append("a", b"x"), t.append("b", b"y")).0;
        let without_data_length = |t: &mut Transcript| t.append("a", b"xa\x01\0\0\0by");
        let without_label_length = |t: &mut Transcript| {
            t.append("a", b"xab\x01\0\0\0\0\0\0\0y");
        };
        let longer_label = |t: &mut Transcript| t.append("ax", b"y");
        let longer_data = |t: &mut Transcript| t.append("a", b"xy");
        let calls: [&dyn Fn(&mut Transcript); 5] =
            [&two, &without_data_length, &without_label_length, &longer_label, &longer_data];
        all_differ(&calls);
    }

    #[test]
    fn challenges_differ_and_depend_on_the_ones_before() {
        let mut transcript = Transcript::new("a", &context(1));
        let (first, second) = (transcript.challenge("e"), transcript.challenge("e"));
        assert_ne!(first, second);
        let mut other = Transcript::new("a", &context(1));
        let _ = other.challenge("f");
        assert_ne!(other.challenge("e"), second);
    }

    #[test]
    fn nonces_differ_with_the_generator_the_witness_and_the_transcript() {
        let transcript = Transcript::new("a", &context(1));
        let draw = |transcript: &Transcript, witness: u64, seed| {
            transcript.nonces([Scalar::from(witness)].iter(), &mut rng(seed)).scalar()
        };
        let here = draw(&transcript, 1, 1);
        assert_eq!(here, draw(&transcript, 1, 1));
        assert_ne!(here, draw(&transcript, 1, 2));
        assert_ne!(here, draw(&transcript, 2, 1));
        assert_ne!(here, draw(&Transcript::new("a", &context(2)), 1, 1));
    }
}
