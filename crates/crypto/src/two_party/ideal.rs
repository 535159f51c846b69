//! The ideal functionality: what a pair would get from somebody whom all trust. **For simulations alone.**
//!
//! Messages have the lengths of the real ones, and the results the same law: the circuit itself is computed, in the clear, with fair joint bits. There is no
//! secrecy at all: the evaluator's numbers stand in its request. So nothing can be made of it without a [`Simulation`], which
//! only simulated secrets give ([`Secrets::simulation`]): a real peer has none.

use super::{
    Session,
    message::Sender,
    pair::{ANSWER_BYTES, Brought, Engine, OPENING_BYTES, request_bytes, tables_bytes},
    share::{Share, ShareDraft},
};
use crate::{encoding::Reader, flaw::Flaw};
use sottovoce_privacy::{Sealed, Secrets, Simulation};

/// Somebody whom all trust.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ideal;

/// A message of this length that begins with what is told.
fn padded(_: Simulation, told: &[u8], length: usize) -> Sealed<Vec<u8>> {
    let mut message = told.to_vec();
    assert!(told.len() <= length, "{} bytes to tell in {length}", told.len());
    message.resize(length, 0);
    // PRIVACY: nothing is sealed. It stays within a simulation, whose members are one process.
    Sealed::by_cryptography(message)
}

/// Nothing, where there is no simulation.
fn here(secret: &Secrets<'_>) -> Result<Simulation, Flaw> {
    secret.simulation().ok_or(Flaw::NotSimulated)
}

impl Engine for Ideal {
    type Opened = Session;
    type Requested = (Session, usize);
    type Answered = Session;
    const IS_IDEAL: bool = true;

    fn open(session: &Session, secret: &mut Secrets<'_>) -> Result<(Session, Sealed<Vec<u8>>), Flaw> {
        Ok((session.clone(), padded(here(secret)?, &session.digest(), OPENING_BYTES)))
    }

    fn answer(session: &Session, opening: &[u8], secret: &mut Secrets<'_>) -> Result<(Session, Sealed<Vec<u8>>), Flaw> {
        is_about(session, opening)?;
        Ok((session.clone(), padded(here(secret)?, &session.digest(), ANSWER_BYTES)))
    }

    fn request(
        session: Session,
        choices: &[u8],
        own: Brought<'_>,
        secret: &mut Secrets<'_>,
    ) -> Result<((Session, usize), Sealed<Vec<u8>>), Flaw> {
        is_about(&session, choices)?;
        let told = own.numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
        let request = padded(here(secret)?, &told, request_bytes(&session, own.instances));
        Ok(((session, own.instances), request))
    }

    fn garble(
        session: Session,
        request: &[u8],
        own: Brought<'_>,
        secret: &mut Secrets<'_>,
    ) -> Result<(Sealed<Vec<u8>>, Share), Flaw> {
        let mut reader = Reader::new(request);
        let mut theirs = Vec::with_capacity(own.numbers.len());
        for _ in 0..own.numbers.len() {
            theirs.push(u64::from_le_bytes(reader.take()?));
        }
        if request.len() != request_bytes(&session, own.instances) {
            return Err(Flaw::WrongLength);
        }
        let circuit = session.circuit();
        // One instance in each bit of a word; all instances have the same numbers, and joint bits of their own.
        let spread = |numbers: &[u64]| -> Vec<u64> {
            numbers
                .iter()
                .flat_map(|number| (0..own.width).map(move |bit| (number >> bit & 1).wrapping_neg()))
                .collect()
        };
        let (mine, theirs) = (spread(own.numbers), spread(&theirs));
        let mut words = |count: usize| -> Vec<u64> {
            let mut bytes = vec![0; 8 * count];
            secret.fill(&mut bytes);
            bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect()
        };
        let mut share = ShareDraft::new(Sender::Garbler, &session, 0, own.instances);
        let mut told = vec![0; (own.instances * circuit.outputs().len()).div_ceil(8)];
        for first in (0..own.instances).step_by(64) {
            let outputs = circuit.evaluate(&mine, &theirs, &words(circuit.inputs().joint));
            let pads = words(outputs.len());
            for (output, (word, pad)) in outputs.iter().zip(pads).enumerate() {
                for lane in 0..(own.instances - first).min(64) {
                    let bits = [pad >> lane & 1, (word ^ pad) >> lane & 1].map(|bit| bit as u8);
                    share.set(first + lane, output, bits[0]);
                    let at = (first + lane) * outputs.len() + output;
                    told[at / 8] |= bits[1] << (at % 8);
                }
            }
        }
        let tables = padded(here(secret)?, &told, tables_bytes(&session, own.instances).max(told.len()));
        Ok((tables, share.finish()))
    }

    fn evaluate((session, instances): (Session, usize), tables: &[u8]) -> Result<Share, Flaw> {
        let width = session.circuit().outputs().len();
        let told = Reader::new(tables).slice((instances * width).div_ceil(8))?;
        let mut share = ShareDraft::new(Sender::Evaluator, &session, 0, instances);
        for at in 0..instances * width {
            share.set(at / width, at % width, told[at / 8] >> (at % 8) & 1);
        }
        Ok(share.finish())
    }
}

fn is_about(session: &Session, message: &[u8]) -> Result<(), Flaw> {
    if message.starts_with(&session.digest()) { Ok(()) } else { Err(Flaw::WrongSession) }
}
