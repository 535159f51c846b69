//! The garbler: knows both labels of every wire, and nothing of the evaluator's bits.
//!
//! ```text
//! Garbler::open(opening) -> (Garbler, choices)
//! Garbler::garble(request, inputs) -> (Garbler, Garbling);       Garbling::next -> tables, and Garbling again or the garbler's Share
//! ```
//!
//! Each step consumes the state before it. A message that is refused ends the session: the state is gone, and a new
//! session has a new Delta and new labels. Nothing here can be cloned, shown or used twice.
//!
//! ```compile_fail,E0382
//! # use sottovoce_crypto::two_party::{garbler::Garbler, inputs::Inputs};
//! # fn twice(garbler: Garbler, request: &[u8], inputs: [Inputs; 2], rng: &mut rand_chacha::ChaCha20Rng) {
//! let [one, other] = inputs;
//! let first = garbler.garble(request, one, rng);
//! let second = garbler.garble(request, other, rng);
//! # }
//! ```
//!
//! **Its own bits** cost nothing on the wire: the labels that the evaluator gets for them are a public stream, W_j, and
//! the label for zero is W_j xor b_j Delta. **Joint bits**: the evaluator's bit r came by transfer, so its label for
//! zero is q; with the garbler's own random bit b it becomes q xor b Delta, and the wire is r xor b. To the evaluator,
//! W_j and its own labels look the same whatever b is.

use super::{
    Session,
    base_transfer::choose,
    batch::{Layout, Place},
    extension::{COLUMNS, Delta, ExtensionSender, Labels},
    half_gates::{garble_and, mask},
    hash::{LabelHash, Stream},
    inputs::{Inputs, Role},
    message::{Choices, Opening, Request, Sender, Tables},
    session::Opened,
    share::{Share, ShareDraft},
};
use crate::flaw::Flaw;
use aes::{Aes128Enc, cipher::KeyInit};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// A garbler with an opened session, ready for the next batch.
pub struct Garbler {
    opened: Opened,
    transfers: ExtensionSender,
}

impl Garbler {
    /// Answers the evaluator's opening: draws Delta, and hides its bits in the choices of the base transfer.
    pub fn open(session: &Session, opening: &[u8], rng: &mut impl CryptoRng) -> Result<(Garbler, Vec<u8>), Flaw> {
        let opening = Opening::decode(opening)?;
        if opening.session != session.digest() {
            return Err(Flaw::WrongSession);
        }
        let mut bytes = Zeroizing::new([0; 16]);
        rng.fill_bytes(&mut *bytes);
        // The lowest bit of Delta is one, so that the lowest bits of the two labels of a wire differ.
        let delta = Zeroizing::new(u128::from_le_bytes(*bytes) | 1);
        let bits: Zeroizing<[u8; COLUMNS]> = Zeroizing::new(std::array::from_fn(|i| (*delta >> i & 1) as u8));
        let (points, keys) = choose(session.digest(), opening.point, &*bits, rng)?;
        let choices = Choices { session: session.digest(), points: &points };
        let transfers = ExtensionSender::new(&keys, *delta);
        Ok((Garbler { opened: session.opened(opening.point, &choices), transfers }, choices.encode()))
    }

    /// Begins the batch that the evaluator asks for, with the garbler's own bits.
    pub fn garble(
        mut self,
        request: &[u8],
        inputs: Inputs,
        rng: &mut impl CryptoRng,
    ) -> Result<(Garbler, Garbling), Flaw> {
        let session = self.opened.session.clone();
        inputs.assert_for(Role::Garbler, &session);
        assert!(inputs.is_complete(), "all bits of all instances");
        let asked = Request::decode(request, session.circuit())?;
        if asked.name != self.opened.name {
            return Err(Flaw::WrongSession);
        }
        if asked.batch != self.opened.batches || !self.opened.has_room(asked.instances) {
            return Err(Flaw::OutOfOrder);
        }
        if asked.instances != inputs.instances() {
            return Err(Flaw::WrongLength);
        }
        let labels = self.transfers.extend(asked.columns);
        let (batch, first_gate) = self.opened.advance(asked.instances);
        let mut seed = [0; 16];
        rng.fill_bytes(&mut seed);
        let flips = random_bits(asked.instances * session.circuit().inputs().joint, rng);
        let mut share = ShareDraft::new(Sender::Garbler, &session, batch, asked.instances);
        share.hear(request);
        let layout = Layout::new(session.circuit(), asked.instances);
        let garbling = Garbling {
            name: self.opened.name,
            hash: Box::new(LabelHash::new(&self.opened.key)),
            secrets: Secrets { delta: self.transfers.delta(), labels, inputs, flips },
            seed,
            batch,
            first_gate,
            messages: 0,
            place: Place::new(session.circuit(), &layout),
            layout,
            share,
            session,
        };
        Ok((self, garbling))
    }
}

/// What must not be seen; each part is wiped when dropped.
struct Secrets {
    delta: Delta,
    /// Labels for zero of the transferred bits, before the garbler's flips.
    labels: Labels,
    inputs: Inputs,
    /// The garbler's part of the joint bits, in the order of `batch`.
    flips: Labels,
}

/// A batch that is being garbled, message by message.
pub struct Garbling {
    session: Session,
    name: [u8; 32],
    hash: Box<LabelHash>,
    secrets: Secrets,
    seed: [u8; 16],
    batch: u64,
    first_gate: u64,
    messages: u32,
    layout: Layout,
    place: Place,
    share: ShareDraft,
}

/// What comes after a message of tables.
#[expect(clippy::large_enum_variant, reason = "taken apart as soon as it is returned; secrets are behind pointers")]
pub enum Garbled {
    /// There is more to garble.
    More(Garbling),
    /// This was the batch's last message; this is the garbler's share of its results.
    Done(Share),
}

impl Garbling {
    /// The next message for the evaluator.
    pub fn next(mut self) -> (Garbled, Vec<u8>) {
        let session = self.session.clone();
        let circuit = session.circuit();
        if self.place.is_fresh() {
            self.set_inputs();
        }
        let seed = if self.messages == 0 { Some(&self.seed) } else { None };
        let bytes = self.place.table_bytes(circuit);
        let (mut message, at) = Tables::begin(&self.name, self.batch, self.messages, seed, bytes);
        let (hash, delta) = (&mut self.hash, self.secrets.delta.value());
        let first_gate = self.first_gate + (self.layout.first(self.place.group) * circuit.ands()) as u64;
        let done = self.place.walk(circuit, |gate| {
            let [left, right] = gate.literals.map(|literal| literal.negated);
            let operands = [(&*gate.left, left), (&*gate.right, right)];
            garble_and(hash, delta, first_gate + gate.number, operands, gate.out, &mut message[at..][gate.tables]);
        });
        self.messages += 1;
        self.share.hear(&message);
        if !done {
            return (Garbled::More(self), message);
        }
        let first = self.layout.first(self.place.group);
        for (output, labels, flip) in self.place.outputs(circuit) {
            for lane in 0..self.place.lanes {
                let bit = labels.map_or(0, |labels| labels[lane] as u8 & 1) ^ u8::from(flip);
                self.share.set(first + lane, output, bit);
            }
        }
        if self.place.next_group(&self.layout) {
            (Garbled::More(self), message)
        } else {
            (Garbled::Done(self.share.finish()), message)
        }
    }

    /// The labels for zero of all inputs of the group.
    fn set_inputs(&mut self) {
        let inputs = self.session.circuit().inputs();
        let (first, lanes) = (self.layout.first(self.place.group), self.place.lanes);
        let delta = self.secrets.delta.value();
        let (own, transferred) = self.place.labels[..inputs.total() * lanes].split_at_mut(inputs.garbler * lanes);
        Stream::new().fill(&Aes128Enc::new((&self.seed).into()), (first * inputs.garbler) as u128, own);
        for (number, row) in own.chunks_exact_mut(lanes).enumerate() {
            for (lane, label) in row.iter_mut().enumerate() {
                *label ^= mask(self.secrets.inputs.bit(first + lane, number)) & delta;
            }
        }
        let from = first * inputs.transferred();
        transferred.copy_from_slice(&self.secrets.labels[from..from + transferred.len()]);
        let joint = &mut transferred[inputs.evaluator * lanes..];
        for (at, label) in joint.iter_mut().enumerate() {
            *label ^= mask(bit(&self.secrets.flips, first * inputs.joint + at)) & delta;
        }
    }
}

/// So many random bits, 128 to a number.
pub(super) fn random_bits(count: usize, rng: &mut impl CryptoRng) -> Labels {
    let mut bytes = Zeroizing::new(vec![0; 16 * count.div_ceil(128)]);
    rng.fill_bytes(&mut bytes);
    let (words, _) = bytes.as_chunks::<16>();
    Labels::new(words.iter().map(|word| u128::from_le_bytes(*word)).collect())
}

fn bit(words: &[u128], at: usize) -> u128 {
    words[at / 128] >> (at % 128)
}
