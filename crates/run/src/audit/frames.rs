//! Frames: the bytes that real peers exchange, on neighbouring files.
//!
//! The folders of a task's peers are laid out as `network` does it. The peers learn, without sockets, with noise that is recorded. Then one
//! record in one peer's own file is replaced, the peers begin anew from the same folders, and the outputs of all mechanisms are as they
//! were: every byte of every frame must be, too, and how many frames there are, and all that is charged.
//!
//! Whoever calls [`audit_frames`] has the peers; this module compares.

use super::artefacts::{ArtefactAudit, Stage};
use super::neighbours::Table;
use super::{Finding, Findings, Flaw};
use crate::peer::{PeerFile, check_task};
use crate::private;
use crate::train::Halt;
use sottovoce_core::PeerId;
use sottovoce_privacy::audit::{Recording, Release, Replaying};
use sottovoce_privacy::{Ledger, Simulated};
use sottovoce_task::error::Mistake;
use sottovoce_task::load::{Loaded, load};
use sottovoce_task::task::Points;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// All that one peer sent, and what it was charged.
#[derive(Clone, Debug, Default)]
pub struct Overheard {
    /// To whom, by name, and the bytes: questions and answers, hellos and refusals included, in their order.
    pub frames: Vec<(String, Vec<u8>)>,
    /// What it has released.
    pub ledger: Ledger,
    /// The same, with what went in and came out.
    pub releases: Vec<Release>,
    /// Whether it came to its end, and everything was delivered.
    pub settled: bool,
    /// What it has counted, as its metrics tell every user of its machine.
    pub counted: String,
}

/// The noise of each peer, by its place among the agents.
pub type Noises<'a> = &'a mut dyn FnMut(usize) -> Simulated;

/// Real peers without sockets.
pub trait Peers {
    /// Makes a folder for each agent's peer, with its own rows and nobody else's, below `place`. Agents in the order of `loaded`.
    fn lay_out(&mut self, place: &Path, loaded: &Loaded) -> Result<Vec<PathBuf>, Mistake>;

    /// Reads the folders as peers do, and lets the peers learn in an order that does not depend on data, each with a new store.
    fn run(&mut self, folders: &[PathBuf], noises: Noises<'_>) -> Result<Vec<Overheard>, Mistake>;
}

/// What the frames came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct FrameAudit {
    /// Real peers.
    pub peers: u64,
    /// Neighbouring files on which they began anew.
    pub neighbours: u64,
    /// Frames that were compared.
    pub frames: u64,
    /// Bytes in them.
    pub bytes: u64,
}

/// Audits what real peers of a task say. Nothing where the task does not run between peers. `watch` hears how far it is.
pub fn audit_frames(
    loaded: &Loaded,
    seed: u64,
    peers: &mut dyn Peers,
    watch: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Option<(FrameAudit, Vec<Finding>)>, Halt> {
    let Some(stage) = Stage::new(loaded, &mut ArtefactAudit::default())? else { return Ok(None) };
    let base = load(&stage.task)?;
    if check_task(&base.task).is_err() {
        return Ok(None);
    }
    let privacy = base.task.privacy.expect("only private tasks are audited");
    let folders = peers.lay_out(&stage.place.path().join("frames"), &base)?;
    // Without a neighbour there is no network for an agent, and nothing that it says.
    let has_neighbour = |(_, id): &(_, u32)| !base.problem.graph.peers(PeerId(*id)).is_empty();
    let taking_part = base.names.iter().zip(folders).zip(0..).filter(has_neighbour);
    let (names, folders): (Vec<&String>, Vec<PathBuf>) = taking_part.map(|(both, _)| both).unzip();
    let record = |k: usize| {
        let noise = private::noise(&privacy, seed, PeerId(k as u32));
        Simulated::Recording(Box::new(Recording::new(noise)))
    };
    let own = peers.run(&folders, &mut { record })?;
    let recorded: Vec<Arc<Vec<Release>>> = own.iter().map(|peer| Arc::new(peer.releases.clone())).collect();
    let mut audit = FrameAudit { peers: names.len() as u64, ..FrameAudit::default() };
    let mut findings = Findings::default();
    let target = names.iter().position(|name| **name == stage.target).expect("the target has a neighbour");
    let points = Points { file: PeerFile::read(&folders[target])?.data.into(), agents: None };
    let table = Table::read(&points)?;
    let row = table.row_of(&stage.target).expect("the target has records");
    let records = table.hostile_records(row);
    for (done, hostile) in records.iter().enumerate() {
        audit.neighbours += 1;
        table.with(row, hostile).write(&points)?;
        let given = format!("with {} in its own file, of the peer of agent {:?}", hostile.what, stage.target);
        let replay = |k: usize| Simulated::Replaying(Box::new(Replaying::new(recorded[k].clone())));
        match catch_unwind(AssertUnwindSafe(|| peers.run(&folders, &mut { replay }))) {
            Err(_) => findings.add(Flaw::GivesUp, format!("{given}: a peer gives up")),
            Ok(Err(mistake)) => findings.add(Flaw::Refusal, format!("{given}: a peer refuses: {mistake}")),
            Ok(Ok(others)) => {
                for ((name, one), other) in names.iter().zip(&own).zip(&others) {
                    audit.frames += one.frames.len() as u64;
                    audit.bytes += one.frames.iter().map(|(_, frame)| frame.len() as u64).sum::<u64>();
                    compare(&format!("{given}: the peer of agent {name:?}"), one, other, &mut findings);
                }
            }
        }
        if watch(done as u64 + 1, records.len() as u64).is_break() {
            return Err(Halt::Interrupted);
        }
    }
    let Findings(findings) = findings;
    Ok(Some((audit, findings)))
}

/// What two runs of one peer have in common: everything, if nothing but releases depends on data.
fn compare(given: &str, one: &Overheard, other: &Overheard, findings: &mut Findings) {
    if one.ledger != other.ledger {
        findings.add(Flaw::ChargesMove, format!("{given} is charged otherwise"));
    }
    let outline = |peer: &Overheard| -> Vec<(String, usize)> {
        peer.frames.iter().map(|(to, frame)| (to.clone(), frame.len())).collect()
    };
    let count = |peer: &Overheard| peer.frames.len();
    if one.counted != other.counted {
        findings.add(Flaw::FramesMove, format!("{given} counts otherwise, and its metrics tell"));
    }
    if one.settled != other.settled {
        findings.add(Flaw::FramesMove, format!("{given} comes to its end, or does not"));
    } else if count(one) != count(other) {
        let what = format!("{given} sends {} frames and not {}", count(other), count(one));
        findings.add(Flaw::FramesMove, what);
    } else if outline(one) != outline(other) {
        findings.add(Flaw::FramesMove, format!("{given} sends frames of another length, or to others"));
    } else if let Some(k) = one.frames.iter().zip(&other.frames).position(|(one, other)| one != other) {
        let what = format!("{given} sends another frame {}, although all releases are the same", k + 1);
        findings.add(Flaw::FramesMove, what);
    }
}
