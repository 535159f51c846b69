//! What a pair and its aggregator agree on before anything is sent.

use super::{circuit::Circuit, message::Choices};
use crate::{
    flaw::Unfit,
    transcript::{Context, Transcript},
};
use std::sync::Arc;

/// The most AND gates that one session garbles, over all batches: the hash's security goes down with their number (`hash`).
pub const SESSION_GATES_MAX: u64 = 1 << 32;

/// Who computes what, where: public, the same for garbler, evaluator and aggregator. Everything that is said is bound to it.
#[derive(Clone)]
pub struct Session(Arc<Agreed>);

struct Agreed {
    circuit: Circuit,
    transcript: Transcript,
    digest: [u8; 32],
}

impl Session {
    /// A session of the garbler, who is the sender of the context, and this evaluator; results are for this aggregator.
    pub fn new(
        context: &Context,
        evaluator: [u8; 32],
        aggregator: [u8; 32],
        circuit: Circuit,
    ) -> Result<Session, Unfit> {
        if context.sender == evaluator {
            return Err(Unfit::SameMember);
        }
        let mut transcript = Transcript::new("two-party", context);
        transcript.append("evaluator", &evaluator);
        transcript.append("aggregator", &aggregator);
        transcript.append("circuit", &circuit.digest());
        let digest = first(&transcript.digest());
        Ok(Session(Arc::new(Agreed { circuit, transcript, digest })))
    }

    /// What is computed.
    pub fn circuit(&self) -> &Circuit {
        &self.0.circuit
    }

    /// A hash of all that was agreed on.
    pub fn digest(&self) -> [u8; 32] {
        self.0.digest
    }

    /// What the two share in public after the base transfer: a name that no other run has, and the key of the hash.
    pub(super) fn opened(&self, opening: [u8; 32], choices: &Choices<'_>) -> Opened {
        let mut transcript = self.0.transcript.clone();
        transcript.append("opening", &opening);
        transcript.append("choices", choices.points);
        let digest = transcript.digest();
        let mut key = [0; 16];
        key.copy_from_slice(&digest[32..48]);
        Opened { session: self.clone(), name: first(&digest), key, batches: 0, gates: 0 }
    }
}

/// What both sides of an opened session keep in step: which batch comes next, and which gates were used.
pub(super) struct Opened {
    pub(super) session: Session,
    pub(super) name: [u8; 32],
    pub(super) key: [u8; 16],
    pub(super) batches: u64,
    pub(super) gates: u64,
}

impl Opened {
    /// Whether a batch of so many instances may follow.
    pub(super) fn has_room(&self, instances: usize) -> bool {
        self.gates + (instances * self.session.circuit().ands()) as u64 <= SESSION_GATES_MAX
    }

    /// Moves on to the next batch; its number, and its first gate.
    pub(super) fn advance(&mut self, instances: usize) -> (u64, u64) {
        let now = (self.batches, self.gates);
        self.batches += 1;
        self.gates += (instances * self.session.circuit().ands()) as u64;
        now
    }
}

fn first(digest: &[u8; 64]) -> [u8; 32] {
    let (halves, _) = digest.as_chunks::<32>();
    halves[0]
}
