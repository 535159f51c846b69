//! Real peers without sockets, for the audit of frames: their folders, their loader, their nodes, their frames.
//!
//! What is missing of a peer is the transport, the clock and secret noise. A node that has other noise cannot be given a transport, by
//! its type.

use crate::network;
use crate::owner::owner;
use crate::peer::{group, read_key, rules};
use sottovoce_core::{Algorithm, PeerId, Time};
use sottovoce_net::disk::MemoryDisk;
use sottovoce_net::node::{Fault, LETTERS_MAX, Node, Outgoing};
use sottovoce_net::transport::Identity;
use sottovoce_privacy::Simulated;
use sottovoce_run::audit::{Noises, Overheard, Peers};
use sottovoce_run::peer::{PeerFile, PeerTask, load, shares};
use sottovoce_task::algorithms::{Access, Visitor, with_algorithm};
use sottovoce_task::error::Mistake;
use sottovoce_task::load::Loaded;
use std::path::{Path, PathBuf};

/// After so many wakes of each, peers are not waited for.
const WAKES_MAX: u64 = 2000;

/// The peers of an audit.
pub struct InMemory;

impl Peers for InMemory {
    fn lay_out(&mut self, place: &Path, loaded: &Loaded) -> Result<Vec<PathBuf>, Mistake> {
        // Nobody listens: the ports are words in a file.
        let ports: Vec<u16> = (1..=u16::MAX).take(loaded.names.len()).collect();
        network::lay_out(place, loaded, &shares(&loaded.task, loaded)?, &ports, 1.0, None)
    }

    fn run(&mut self, folders: &[PathBuf], noises: Noises<'_>) -> Result<Vec<Overheard>, Mistake> {
        let read = |folder: &PathBuf| {
            let file = PeerFile::read(folder)?;
            let (one, identity) = (load(&file)?, read_key(&file.key)?);
            Ok(Founder { file, one, identity })
        };
        let founders: Vec<Founder> = folders.iter().map(read).collect::<Result<_, Mistake>>()?;
        let noises: Vec<Simulated> = (0..founders.len()).map(noises).collect();
        open_next(&founders, noises.into_iter(), Vec::new())
    }
}

/// What a peer is made of.
struct Founder {
    file: PeerFile,
    one: PeerTask,
    identity: Identity,
}

/// Opens the next peer, or, when all are open, lets them talk. Each has an algorithm of its own, as in its own process, that lives as long as
/// the peer is borrowed from it: so one peer is opened inside of another.
fn open_next<'n>(
    founders: &'n [Founder],
    noises: std::vec::IntoIter<Simulated>,
    open: Vec<Box<dyn Talks + 'n>>,
) -> Result<Vec<Overheard>, Mistake> {
    match founders.get(open.len()) {
        None => Network::new(open).run(),
        Some(next) => {
            let loaded = &next.one.loaded;
            with_algorithm(loaded, loaded.task.algorithm, OpenNext { founders, noises, open })?
        }
    }
}

struct OpenNext<'n> {
    founders: &'n [Founder],
    noises: std::vec::IntoIter<Simulated>,
    open: Vec<Box<dyn Talks + 'n>>,
}

impl Visitor for OpenNext<'_> {
    type Output = Result<Vec<Overheard>, Mistake>;

    fn visit<A: Algorithm>(self, algorithm: &A, access: Access<A>) -> Self::Output {
        let OpenNext { founders, mut noises, open } = self;
        let k = open.len();
        let Founder { file, one, identity } = &founders[k];
        let (group, _) = group(file, one, identity)?;
        let noise = noises.next().expect("each peer has noise");
        // Keys are new in each audit; what is audited is not.
        let (rules, owner) = (rules(file, one, k as u64), owner(one, identity));
        let node = Node::open_with(
            noise,
            algorithm,
            (access.data)(&one.loaded, one.me),
            group,
            rules,
            &owner,
            MemoryDisk::default(),
        )
        .map_err(|fault| gives_up(file, &fault))?;
        let mut open: Vec<Box<dyn Talks + '_>> = open;
        open.push(Box::new(node));
        open_next(founders, noises, open)
    }
}

fn gives_up(file: &PeerFile, fault: &Fault) -> Mistake {
    Mistake::file(&file.source, fault.to_string())
}

/// A node, whatever its algorithm is.
trait Talks {
    fn name(&self) -> &str;
    /// Its neighbours, in its own numbers.
    fn neighbours(&self) -> Vec<PeerId>;
    fn name_of(&self, id: PeerId) -> &str;
    fn id_of(&self, name: &str) -> Option<PeerId>;
    fn hello(&self) -> Vec<u8>;
    fn welcomed(&mut self, from: PeerId, answer: &[u8]) -> Result<(), Fault>;
    fn wake(&mut self) -> Result<(), Fault>;
    fn outgoing(&self, to: PeerId) -> Option<Outgoing>;
    fn receive(&mut self, from: Option<PeerId>, frame: &[u8]) -> Result<Vec<u8>, Fault>;
    fn answered(&mut self, from: PeerId, number: u64, answer: &[u8]);
    fn is_settled(&self) -> bool;
    /// What came of it, besides its frames.
    fn end(&self) -> Overheard;
}

impl<A: Algorithm> Talks for Node<'_, A, MemoryDisk, Simulated> {
    fn name(&self) -> &str {
        self.name_of(self.group().me)
    }

    fn neighbours(&self) -> Vec<PeerId> {
        Node::neighbours(self).filter_map(|neighbour| self.id_of(neighbour.name)).collect()
    }

    fn name_of(&self, id: PeerId) -> &str {
        &self.group().names[id.index()]
    }

    fn id_of(&self, name: &str) -> Option<PeerId> {
        self.group().names.iter().position(|known| known == name).map(|k| PeerId(k as u32))
    }

    fn hello(&self) -> Vec<u8> {
        Node::hello(self)
    }

    fn welcomed(&mut self, from: PeerId, answer: &[u8]) -> Result<(), Fault> {
        Node::welcomed(self, from, answer)
    }

    fn wake(&mut self) -> Result<(), Fault> {
        let now = Time(self.wakes() as f64);
        Node::wake(self, now).map(|_| ())
    }

    fn outgoing(&self, to: PeerId) -> Option<Outgoing> {
        Node::outgoing(self, to)
    }

    fn receive(&mut self, from: Option<PeerId>, frame: &[u8]) -> Result<Vec<u8>, Fault> {
        Node::receive(self, from, frame)
    }

    fn answered(&mut self, from: PeerId, number: u64, answer: &[u8]) {
        Node::answered(self, from, number, answer);
    }

    fn is_settled(&self) -> bool {
        self.is_quiet() && self.is_delivered()
    }

    fn end(&self) -> Overheard {
        let releases = match self.noise() {
            Simulated::Recording(noise) => noise.releases().to_vec(),
            Simulated::Replaying(noise) => noise.releases().to_vec(),
            _ => Vec::new(),
        };
        let heard: Vec<_> = Node::neighbours(self).map(|neighbour| (neighbour.post, neighbour.points)).collect();
        let numbers = (self.wakes(), self.last_number(), self.post_number(), self.planned());
        let counted = format!("{numbers:?} {heard:?} {:?}", self.counters());
        let (ledger, settled) = (self.ledger().clone(), self.is_settled());
        Overheard { frames: Vec::new(), ledger, releases, settled, counted }
    }
}

/// Peers that hear each other at once, and take turns in the order of their agents.
struct Network<'n> {
    nodes: Vec<Box<dyn Talks + 'n>>,
    /// By peer: to whom it sent what.
    frames: Vec<Vec<(String, Vec<u8>)>>,
}

impl<'n> Network<'n> {
    fn new(nodes: Vec<Box<dyn Talks + 'n>>) -> Self {
        let frames = vec![Vec::new(); nodes.len()];
        Network { nodes, frames }
    }

    fn run(mut self) -> Result<Vec<Overheard>, Mistake> {
        self.talk_until_settled().map_err(|fault| Mistake::new(fault.to_string()))?;
        let ends = self.nodes.iter().zip(self.frames);
        Ok(ends.map(|(node, frames)| Overheard { frames, ..node.end() }).collect())
    }

    fn talk_until_settled(&mut self) -> Result<(), Fault> {
        for me in 0..self.nodes.len() {
            for to in self.nodes[me].neighbours() {
                let hello = self.nodes[me].hello();
                if let Some(answer) = self.ask(me, to, hello)? {
                    self.nodes[me].welcomed(to, &answer)?;
                }
            }
        }
        for _ in 0..WAKES_MAX {
            if self.nodes.iter().all(|node| node.is_settled()) {
                break;
            }
            for me in 0..self.nodes.len() {
                self.nodes[me].wake()?;
                for to in self.nodes[me].neighbours() {
                    self.deliver(me, to)?;
                }
            }
        }
        Ok(())
    }

    /// Sends all that one peer has for another.
    fn deliver(&mut self, me: usize, to: PeerId) -> Result<(), Fault> {
        for _ in 0..=LETTERS_MAX {
            let Some(Outgoing { number, frame }) = self.nodes[me].outgoing(to) else { break };
            let Some(answer) = self.ask(me, to, frame)? else { break };
            self.nodes[me].answered(to, number, &answer);
        }
        Ok(())
    }

    /// A frame goes to a peer, and its answer comes back; none from whoever is not there.
    fn ask(&mut self, me: usize, to: PeerId, frame: Vec<u8>) -> Result<Option<Vec<u8>>, Fault> {
        let (from, to) = (self.nodes[me].name().to_owned(), self.nodes[me].name_of(to).to_owned());
        let Some(other) = self.nodes.iter().position(|node| node.name() == to) else { return Ok(None) };
        let from_there = self.nodes[other].id_of(&from);
        let answer = self.nodes[other].receive(from_there, &frame)?;
        self.frames[me].push((to, frame));
        self.frames[other].push((from, answer.clone()));
        Ok(Some(answer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sottovoce_run::audit::{Finding, Flaw, FrameAudit, audit_frames};
    use sottovoce_task::task::Task;
    use std::ops::ControlFlow;

    fn audited(task: &str, peers: &mut dyn Peers) -> (FrameAudit, Vec<Finding>) {
        let file = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../mutants/tasks")).join(task);
        let loaded = sottovoce_task::load::load(&Task::read(&file).expect("a task")).expect("a problem");
        let audited = audit_frames(&loaded, 1, peers, &mut |_, _| ControlFlow::Continue(()));
        audited.expect("an audit").expect("a task of peers")
    }

    /// Peers, and somebody who changes what they are heard to do, knowing the first row of the first one's file.
    struct Changed<F>(F);

    impl<F: Fn(&str, &mut Vec<Overheard>)> Peers for Changed<F> {
        fn lay_out(&mut self, place: &Path, loaded: &Loaded) -> Result<Vec<PathBuf>, Mistake> {
            InMemory.lay_out(place, loaded)
        }

        fn run(&mut self, folders: &[PathBuf], noises: Noises<'_>) -> Result<Vec<Overheard>, Mistake> {
            let mut heard = InMemory.run(folders, noises)?;
            let rows = std::fs::read_to_string(PeerFile::read(&folders[0])?.data).expect("rows");
            self.0(rows.lines().nth(1).expect("a row"), &mut heard);
            Ok(heard)
        }
    }

    #[test]
    fn frames_of_real_peers_are_the_same_on_neighbouring_files() {
        for task in ["peers.toml", "warm-laplace.toml", "sparse.toml", "learned-laplace.toml"] {
            let settled = |_: &str, heard: &mut Vec<Overheard>| {
                assert!(heard.iter().all(|peer| peer.settled), "{task}: they come to their end");
                assert!(heard.iter().filter(|peer| peer.ledger.releases() > 0).count() >= 5, "{task}: they learn");
                assert!(heard.iter().all(|peer| peer.releases.len() as u64 == peer.ledger.releases()), "{task}");
            };
            let (audit, findings) = audited(task, &mut Changed(settled));
            assert_eq!(findings, [], "{task}");
            assert!(audit.neighbours >= 15 && audit.frames > 20 * audit.neighbours, "{task}: {audit:?}");
        }
    }

    #[test]
    fn a_frame_that_follows_from_a_record_is_found() {
        let flaws = |change: fn(&str, &mut Vec<Overheard>)| -> Vec<(Flaw, u64)> {
            let (_, findings) = audited("peers.toml", &mut Changed(change));
            findings.iter().map(|finding| (finding.flaw, finding.count)).collect()
        };
        assert_eq!(
            flaws(|row, heard| if row.contains("some text") {
                *heard[2].frames[5].1.last_mut().expect("a byte") ^= 1;
            }),
            [(Flaw::FramesMove, 1)]
        );
        assert_eq!(
            flaws(|row, heard| if row.contains("some text") {
                heard[1].frames[0].1.push(0);
            }),
            [(Flaw::FramesMove, 1)]
        );
        assert_eq!(
            flaws(|row, heard| if row.contains("some text") {
                heard[0].frames.pop();
            }),
            [(Flaw::FramesMove, 1)]
        );
        assert_eq!(flaws(|row, heard| heard[0].settled = !row.contains("some text")), [(Flaw::FramesMove, 1)]);
        assert_eq!(
            flaws(|row, heard| if row.contains("some text") {
                heard[1].counted += "1";
            }),
            [(Flaw::FramesMove, 1)]
        );
        assert_eq!(
            flaws(|row, heard| if row.contains("some text") {
                heard[3].ledger = sottovoce_privacy::Ledger::default();
            }),
            [(Flaw::ChargesMove, 1)]
        );
    }
}
