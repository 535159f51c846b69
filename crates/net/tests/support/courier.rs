//! An algorithm whose letters are durable, and which remembers each of them.

use serde::{Deserialize, Serialize};
use sottovoce_algorithms::Shard;
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Full, Neighbours, PeerId, Reject, Wire};
use sottovoce_privacy::Exhausted;
use std::collections::BTreeMap;

/// Writes so many letters to each neighbour, one at a wake; every third is answered. All of it is durable, but for a lossy letter at each wake
/// that nobody needs.
pub struct Courier {
    pub letters: u64,
}

/// What an agent has sent and read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Journal {
    /// By neighbour: how many letters it was sent.
    pub sent: BTreeMap<u32, u64>,
    /// How often a letter was refused because too many wait.
    pub refused: u64,
    /// By neighbour: the numbers of its letters, as they were read.
    pub read: BTreeMap<u32, Vec<u64>>,
    /// By neighbour: the numbers of its answers, as they were read.
    pub answers: BTreeMap<u32, Vec<u64>>,
}

/// A number, and what it is for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Note {
    pub kind: u8,
    pub number: u64,
}

pub const LETTER: u8 = 0;
pub const ANSWER: u8 = 1;
pub const LOSSY: u8 = 2;

impl Wire<'_> for Note {
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.kind);
        out.extend(self.number.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Result<Self, Reject> {
        let (kind, number) = bytes.split_first().ok_or(Reject::Malformed)?;
        let number = number.try_into().map_err(|_| Reject::Malformed)?;
        if *kind > LOSSY {
            Err(Reject::Malformed)
        } else {
            Ok(Note { kind: *kind, number: u64::from_le_bytes(number) })
        }
    }

    fn vectors(&self) -> u64 {
        1
    }
}

impl Algorithm for Courier {
    type Data<'d> = Shard<'d>;
    type State = Journal;
    type Letter<'a> = Note;

    fn post_len(&self) -> usize {
        0
    }

    fn letter_bytes_max(&self, _: Shard<'_>) -> usize {
        9
    }

    fn start(&self, _: Shard<'_>, _: &mut Cx<'_>) -> Result<Journal, Exhausted> {
        Ok(Journal::default())
    }

    fn on_wake(&self, me: &mut Journal, _: Shard<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        for peer in cx.peers.iter().map(|edge| edge.peer) {
            let sent = me.sent.entry(peer.0).or_default();
            if *sent < self.letters {
                let letter = cx.gate.reveal(Note { kind: LETTER, number: *sent + 1 })?;
                match cx.outbox.send_durable(peer, letter) {
                    Ok(()) => *sent += 1,
                    Err(Full) => me.refused += 1,
                }
            }
            let lossy = cx.gate.reveal(Note { kind: LOSSY, number: 0 })?;
            cx.outbox.send(peer, lossy);
        }
        Ok(Activity { moved: 1.0 })
    }

    fn on_letter(
        &self,
        me: &mut Journal,
        _: Shard<'_>,
        from: PeerId,
        letter: Note,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        let Note { kind, number } = letter;
        match kind {
            LETTER => {
                if number.is_multiple_of(3) {
                    let answer = cx.gate.reveal(Note { kind: ANSWER, number })?;
                    cx.outbox.send_durable(from, answer)?;
                }
                me.read.entry(from.0).or_default().push(number);
            }
            ANSWER => me.answers.entry(from.0).or_default().push(number),
            _ => {}
        }
        Ok(())
    }

    fn save(&self, me: &Journal, out: &mut Vec<u8>) {
        out.extend(serde_json::to_vec(me).expect("a journal is JSON"));
    }

    fn resume(&self, saved: &[u8], _: Neighbours, _: Shard<'_>, _: &mut Cx<'_>) -> Result<Journal, CannotResume> {
        serde_json::from_slice(saved).map_err(|_| CannotResume::Malformed)
    }

    fn model<'a>(&self, _: &'a Journal, _: &'a [f64]) -> &'a [f64] {
        &[]
    }
}
