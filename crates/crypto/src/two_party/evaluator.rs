//! The evaluator: knows one label of every wire, and not what it means.
//!
//! ```text
//! EvaluatorOpening::new -> (EvaluatorOpening, opening);       EvaluatorOpening::receive(choices) -> Evaluator
//! Evaluator::request(inputs) -> (Evaluator, Evaluation, request);       Evaluation::receive(tables) -> Evaluation again, or the evaluator's Share
//! ```
//!
//! Each step consumes the state before it. Several requests may be under way at once: each has an [`Evaluation`] of its
//! own. A message that is refused ends its evaluation, whose labels are gone with it; they are never used again.
//!
//! ```compile_fail,E0382
//! # use sottovoce_crypto::two_party::evaluator::Evaluation;
//! # fn twice(evaluation: Evaluation, tables: [&[u8]; 2]) {
//! let one = evaluation.receive(tables[0]);
//! let other = evaluation.receive(tables[1]);
//! # }
//! ```

use super::{
    Session,
    base_transfer::TransferSender,
    batch::{Layout, Place, blocks},
    extension::{BLOCK, BLOCK_BYTES, COLUMNS, ExtensionReceiver, Labels},
    garbler::random_bits,
    half_gates::evaluate_and,
    hash::{LabelHash, Stream},
    inputs::{Inputs, Role},
    message::{Choices, Opening, Request, Sender, Tables},
    session::Opened,
    share::{Share, ShareDraft},
};
use crate::flaw::{Flaw, Unfit};
use aes::{Aes128Enc, cipher::KeyInit};
use rand_core::CryptoRng;

/// An evaluator that has opened a session and waits for the garbler's choices.
pub struct EvaluatorOpening {
    session: Session,
    transfers: TransferSender,
}

impl EvaluatorOpening {
    /// Begins a session; the message is for the garbler.
    pub fn new(session: &Session, rng: &mut impl CryptoRng) -> (EvaluatorOpening, Vec<u8>) {
        let transfers = TransferSender::new(session.digest(), rng);
        let opening = Opening { session: session.digest(), point: transfers.opening() };
        (EvaluatorOpening { session: session.clone(), transfers }, opening.encode())
    }

    /// Takes the garbler's choices.
    pub fn receive(self, choices: &[u8]) -> Result<Evaluator, Flaw> {
        let choices = Choices::decode(choices)?;
        if choices.session != self.session.digest() {
            return Err(Flaw::WrongSession);
        }
        let opening = self.transfers.opening();
        let keys = self.transfers.receive(choices.points, COLUMNS)?;
        let transfers = ExtensionReceiver::new(&keys);
        Ok(Evaluator { opened: self.session.opened(opening, &choices), transfers })
    }
}

/// An evaluator with an opened session, ready for the next batch.
pub struct Evaluator {
    opened: Opened,
    transfers: ExtensionReceiver,
}

impl Evaluator {
    /// Asks for a batch of instances with these bits of its own; the message is for the garbler.
    pub fn request(
        mut self,
        inputs: Inputs,
        rng: &mut impl CryptoRng,
    ) -> Result<(Evaluator, Evaluation, Vec<u8>), Unfit> {
        let session = self.opened.session.clone();
        inputs.assert_for(Role::Evaluator, &session);
        assert!(inputs.is_complete(), "all bits of all instances");
        let (circuit, instances) = (session.circuit(), inputs.instances());
        if !self.opened.has_room(instances) {
            return Err(Unfit::SessionSpent);
        }
        let (batch, first_gate) = self.opened.advance(instances);
        let layout = Layout::new(circuit, instances);
        let blocks = blocks(circuit, instances);
        // Random bits everywhere: they stay where bits are joint, and in what is left of the last block.
        let mut choices = random_bits(blocks * BLOCK, rng);
        set_inputs(&mut choices, &inputs, circuit.inputs().evaluator, circuit.inputs().transferred(), &layout);
        let mut message = Request::begin(&self.opened.name, batch, instances, blocks * BLOCK_BYTES);
        let labels = self.transfers.extend(&choices, &mut message);
        let mut share = ShareDraft::new(Sender::Evaluator, &session, batch, instances);
        share.hear(&message);
        let evaluation = Evaluation {
            name: self.opened.name,
            hash: Box::new(LabelHash::new(&self.opened.key)),
            labels,
            own: None,
            batch,
            first_gate,
            messages: 0,
            place: Place::new(circuit, &layout),
            layout,
            share,
            session,
        };
        Ok((self, evaluation, message))
    }
}

/// Writes the evaluator's bits over the random ones, in the order of `batch`.
fn set_inputs(choices: &mut Labels, inputs: &Inputs, own: usize, transferred: usize, layout: &Layout) {
    for group in 0..layout.groups() {
        let (first, lanes) = (layout.first(group), layout.lanes(group));
        for number in 0..own {
            for lane in 0..lanes {
                let at = first * transferred + number * lanes + lane;
                let (word, place) = (&mut choices[at / 128], at % 128);
                *word = *word & !(1 << place) | inputs.bit(first + lane, number) << place;
            }
        }
    }
}

/// A batch that is being evaluated, message by message.
pub struct Evaluation {
    session: Session,
    name: [u8; 32],
    hash: Box<LabelHash>,
    /// The labels of the transferred bits.
    labels: Labels,
    /// The stream of labels of the garbler's bits, once its seed is there.
    own: Option<Aes128Enc>,
    batch: u64,
    first_gate: u64,
    messages: u32,
    layout: Layout,
    place: Place,
    share: ShareDraft,
}

/// What comes after a message of tables.
#[expect(clippy::large_enum_variant, reason = "taken apart as soon as it is returned; secrets are behind pointers")]
pub enum Evaluated {
    /// There is more to come.
    More(Evaluation),
    /// This was the batch's last message; this is the evaluator's share of its results.
    Done(Share),
}

impl Evaluation {
    /// Takes the garbler's next message.
    pub fn receive(mut self, message: &[u8]) -> Result<Evaluated, Flaw> {
        let session = self.session.clone();
        let circuit = session.circuit();
        let tables = Tables::decode(message, self.place.table_bytes(circuit))?;
        if tables.name != self.name {
            return Err(Flaw::WrongSession);
        }
        if (tables.batch, tables.number) != (self.batch, self.messages) {
            return Err(Flaw::OutOfOrder);
        }
        self.messages += 1;
        self.share.hear(message);
        if let Some(seed) = &tables.seed {
            self.own = Some(Aes128Enc::new(seed.into()));
        }
        if self.place.is_fresh() {
            self.set_labels();
        }
        let hash = &mut self.hash;
        let first_gate = self.first_gate + (self.layout.first(self.place.group) * circuit.ands()) as u64;
        let done = self.place.walk(circuit, |gate| {
            let operands = [&*gate.left, &*gate.right];
            evaluate_and(hash, first_gate + gate.number, operands, gate.out, &tables.tables[gate.tables]);
        });
        if !done {
            return Ok(Evaluated::More(self));
        }
        let first = self.layout.first(self.place.group);
        for (output, labels, _) in self.place.outputs(circuit) {
            for lane in 0..self.place.lanes {
                self.share.set(first + lane, output, labels.map_or(0, |labels| labels[lane] as u8 & 1));
            }
        }
        if self.place.next_group(&self.layout) {
            Ok(Evaluated::More(self))
        } else {
            Ok(Evaluated::Done(self.share.finish()))
        }
    }

    /// The labels of all inputs of the group.
    fn set_labels(&mut self) {
        let inputs = self.session.circuit().inputs();
        let (first, lanes) = (self.layout.first(self.place.group), self.place.lanes);
        let (own, transferred) = self.place.labels[..inputs.total() * lanes].split_at_mut(inputs.garbler * lanes);
        let cipher = self.own.as_ref().expect("the batch's first message has the seed");
        Stream::new().fill(cipher, (first * inputs.garbler) as u128, own);
        let from = first * inputs.transferred();
        transferred.copy_from_slice(&self.labels[from..from + transferred.len()]);
    }
}
