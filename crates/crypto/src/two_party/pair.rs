//! One pair's session from its opening to its two shares, as what may leave a member.
//!
//! ```text
//! evaluator   open    -> opening  ->   garbler   answer
//!             request <- choices  <-
//!                     -> request  ->             garble, which ends with the garbler's share
//!             evaluate <- tables  <-
//!             the evaluator's share
//! ```
//!
//! Each state is consumed by the next step and cannot be cloned or written down: a session that breaks is gone with its labels, and the next
//! attempt has others. [`Engine`] is how it is done: [`Circuits`] is the real thing; [`Ideal`](super::ideal::Ideal) is for simulations.

use super::{
    Session,
    batch::{Layout, blocks},
    evaluator::{Evaluated, Evaluation, Evaluator, EvaluatorOpening},
    extension::BLOCK_BYTES,
    garbler::{Garbled, Garbler},
    half_gates::TABLE_BYTES,
    inputs::Inputs,
    message::CHOICES_BYTES,
    share::Share,
};
use crate::{encoding::Reader, flaw::Flaw};
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
use sottovoce_privacy::{Sealed, Secrets};

/// What a member brings: its numbers, all of one width, the same in each instance.
#[derive(Clone, Copy)]
pub struct Brought<'n> {
    /// The numbers of one instance, in the order of the circuit.
    pub numbers: &'n [u64],
    /// Bits of each.
    pub width: usize,
    /// How many instances.
    pub instances: usize,
}

/// How a pair computes.
pub trait Engine: Send + Sync + 'static {
    /// An evaluator that waits for the garbler's choices.
    type Opened: Send;
    /// An evaluator that waits for tables.
    type Requested: Send;
    /// A garbler that waits for a request.
    type Answered: Send;
    /// Whether members must trust whoever runs it.
    const IS_IDEAL: bool;

    /// The evaluator begins.
    fn open(session: &Session, secret: &mut Secrets<'_>) -> Result<(Self::Opened, Sealed<Vec<u8>>), Flaw>;

    /// The garbler answers the opening.
    fn answer(
        session: &Session,
        opening: &[u8],
        secret: &mut Secrets<'_>,
    ) -> Result<(Self::Answered, Sealed<Vec<u8>>), Flaw>;

    /// The evaluator asks for its instances.
    ///
    /// # Panics
    /// When what it brings does not fit the circuit, or one batch.
    fn request(
        opened: Self::Opened,
        choices: &[u8],
        own: Brought<'_>,
        secret: &mut Secrets<'_>,
    ) -> Result<(Self::Requested, Sealed<Vec<u8>>), Flaw>;

    /// The garbler does its part: the tables, and its share.
    ///
    /// # Panics
    /// When what it brings does not fit the circuit, or one batch.
    fn garble(
        answered: Self::Answered,
        request: &[u8],
        own: Brought<'_>,
        secret: &mut Secrets<'_>,
    ) -> Result<(Sealed<Vec<u8>>, Share), Flaw>;

    /// The evaluator does its part: its share.
    fn evaluate(requested: Self::Requested, tables: &[u8]) -> Result<Share, Flaw>;
}

/// Bytes of an opening.
pub const OPENING_BYTES: usize = 65;
/// Bytes of the garbler's choices.
pub const ANSWER_BYTES: usize = 33 + CHOICES_BYTES;

/// Bytes of a request for so many instances.
pub fn request_bytes(session: &Session, instances: usize) -> usize {
    45 + blocks(session.circuit(), instances) * BLOCK_BYTES
}

/// Bytes of all tables of so many instances: those of the gates, and 49 before those of each message but 16 more before the first.
pub fn tables_bytes(session: &Session, instances: usize) -> usize {
    let (circuit, layout) = (session.circuit(), Layout::new(session.circuit(), instances));
    let messages = layout.groups() * circuit.ands().div_ceil(super::TABLE_GATES_MAX).max(1);
    16 + messages * 49 + circuit.ands() * instances * TABLE_BYTES
}

/// Half-gates over oblivious transfer, for honest-but-curious members.
#[derive(Clone, Copy, Debug, Default)]
pub struct Circuits;

impl Engine for Circuits {
    type Opened = (Session, EvaluatorOpening);
    type Requested = Evaluation;
    type Answered = (Session, Garbler);
    const IS_IDEAL: bool = false;

    fn open(session: &Session, secret: &mut Secrets<'_>) -> Result<(Self::Opened, Sealed<Vec<u8>>), Flaw> {
        let (opening, message) = EvaluatorOpening::new(session, &mut drawn(secret));
        // PRIVACY: a random point.
        Ok(((session.clone(), opening), Sealed::by_cryptography(message)))
    }

    fn answer(
        session: &Session,
        opening: &[u8],
        secret: &mut Secrets<'_>,
    ) -> Result<(Self::Answered, Sealed<Vec<u8>>), Flaw> {
        let (garbler, message) = Garbler::open(session, opening, &mut drawn(secret))?;
        // PRIVACY: uniform points, whatever Delta is (proofs/two-party.md, section 1).
        Ok(((session.clone(), garbler), Sealed::by_cryptography(message)))
    }

    fn request(
        (session, opening): Self::Opened,
        choices: &[u8],
        own: Brought<'_>,
        secret: &mut Secrets<'_>,
    ) -> Result<(Evaluation, Sealed<Vec<u8>>), Flaw> {
        let evaluator: Evaluator = opening.receive(choices)?;
        let mut inputs = Inputs::for_evaluator(&session, own.instances).expect("instances of one batch");
        fill(&mut inputs, own);
        let asked = evaluator.request(inputs, &mut drawn(secret));
        let (_, evaluation, message) = asked.expect("the first batch of a session");
        // PRIVACY: columns under streams of which the garbler lacks one each (section 3).
        Ok((evaluation, Sealed::by_cryptography(message)))
    }

    fn garble(
        (session, garbler): Self::Answered,
        request: &[u8],
        own: Brought<'_>,
        secret: &mut Secrets<'_>,
    ) -> Result<(Sealed<Vec<u8>>, Share), Flaw> {
        let mut inputs = Inputs::for_garbler(&session, own.instances).expect("instances of one batch");
        fill(&mut inputs, own);
        let (_, mut garbling) = garbler.garble(request, inputs, &mut drawn(secret))?;
        let mut all = Vec::with_capacity(tables_bytes(&session, own.instances));
        loop {
            let (garbled, tables) = garbling.next();
            all.extend((tables.len() as u32).to_le_bytes());
            all.extend(tables);
            match garbled {
                Garbled::More(more) => garbling = more,
                // PRIVACY: tables that are as good as uniform (section 2).
                Garbled::Done(share) => return Ok((Sealed::by_cryptography(all), share)),
            }
        }
    }

    fn evaluate(mut evaluation: Evaluation, tables: &[u8]) -> Result<Share, Flaw> {
        let mut reader = Reader::new(tables);
        loop {
            let length = u32::from_le_bytes(reader.take()?) as usize;
            match evaluation.receive(reader.slice(length)?)? {
                Evaluated::More(more) => evaluation = more,
                Evaluated::Done(share) => {
                    reader.finish()?;
                    return Ok(share);
                }
            }
        }
    }
}

fn drawn(secret: &mut Secrets<'_>) -> ChaCha20Rng {
    ChaCha20Rng::from_seed(secret.bytes())
}

fn fill(inputs: &mut Inputs, own: Brought<'_>) {
    for _ in 0..own.instances {
        for number in own.numbers {
            inputs.push(*number, own.width).expect("numbers of the circuit");
        }
    }
}

impl Share {
    /// The message to the aggregator, ready to be sent.
    // PRIVACY: half of the result. Both halves are charged before the session's first message, by whoever runs the protocol.
    pub fn seal(&self) -> Sealed<Vec<u8>> {
        Sealed::by_cryptography(self.to_bytes())
    }
}
