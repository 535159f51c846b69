//! A store whose bytes were damaged, or whose records were damaged and have digests that fit.

use super::peer::{group, owner, rules, welcome};
use crate::Target;
use sha2::{Digest, Sha256};
use sottovoce_algorithms::{Problem, Shard};
use sottovoce_core::wire::Numbers;
use sottovoce_core::{Algorithm, PeerId, Time};
use sottovoce_net::disk::{Disk, MemoryDisk};
use sottovoce_net::frame::{Post, Question, Stamp};
use sottovoce_net::node::{Node, Rules};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// A disk that others may look at.
#[derive(Clone, Debug, Default)]
struct Shared(Rc<RefCell<MemoryDisk>>);

impl Disk for Shared {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        self.0.borrow_mut().read()
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().append(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.borrow_mut().sync()
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().replace(bytes)
    }
}

/// What a peer finds when it comes back.
pub struct Stores<'w, A: Algorithm> {
    name: &'static str,
    algorithm: &'w A,
    shard: A::Data<'w>,
    problem: &'w Problem,
    rules: Rules,
    saved: Vec<Vec<u8>>,
    fed: u64,
}

impl<'w, A: for<'d> Algorithm<Data<'d> = Shard<'d>>> Stores<'w, A> {
    /// Agent 0 of a problem.
    pub fn new(name: &'static str, algorithm: &'w A, shard: Shard<'w>, problem: &'w Problem, is_private: bool) -> Self {
        Stores { name, algorithm, shard, problem, rules: rules(is_private), saved: Vec::new(), fed: 0 }
    }

    fn open<D: Disk>(&self, disk: D) -> Option<Node<'w, A, D>> {
        let (group, rules) = (group(self.problem), self.rules.clone());
        Node::open(self.algorithm, self.shard, group, rules, &owner(), disk).ok()
    }
}

impl<A: for<'d> Algorithm<Data<'d> = Shard<'d>>> Target for Stores<'_, A> {
    fn name(&self) -> &str {
        self.name
    }

    fn share(&self) -> u64 {
        8
    }

    fn valid(&mut self) -> Vec<Vec<u8>> {
        self.saved.clone()
    }

    /// Every second time the digests are made to fit again, so that what is inside is read.
    fn feed(&mut self, input: &[u8]) -> bool {
        self.fed += 1;
        let bytes = if self.fed.is_multiple_of(2) { mended(input) } else { input.to_vec() };
        let Some(mut node) = self.open(MemoryDisk(bytes)) else { return false };
        let last = node.last_number();
        if node.welcomed(PeerId(1), &welcome(PeerId(1), last)).is_ok() {
            let _ = node.wake(Time(1.0));
        }
        for peer in 1..4 {
            let _ = node.outgoing(PeerId(peer));
        }
        let _ = node.save();
        true
    }

    fn restart(&mut self) {
        let disk = Shared::default();
        let mut node = self.open(disk.clone()).expect("a new store");
        let mut keep = |disk: &Shared| self.saved.push(disk.0.borrow().0.clone());
        keep(&disk);
        node.welcomed(PeerId(1), &welcome(PeerId(1), 0)).expect("a witness");
        for k in 1..6 {
            node.wake(Time(k as f64)).expect("awake");
            let post =
                Question::Post(Post { stamp: Stamp::numbered(k), values: Numbers::Plain(&[0.5, 0.25, k as f64]) });
            node.receive(Some(PeerId(2)), &post.encode()).expect("it lives");
            node.save().expect("room");
            keep(&disk);
        }
        let few = self.saved.len().saturating_sub(12);
        self.saved.drain(..few);
    }
}

/// The records of a log, as far as lengths go, each with the number, the digest and the seal that it should have.
fn mended(bytes: &[u8]) -> Vec<u8> {
    let (mut rest, mut out) = (bytes, Vec::new());
    let (mut before, mut mark) = ([0u8; 32], [0u8; 8]);
    for number in 0u64.. {
        let Some((head, tail)) = rest.split_at_checked(16) else { break };
        let length = u32::from_le_bytes(head[4..8].try_into().expect("four bytes")) as usize;
        // The last record takes what is left.
        let (payload, tail) = tail.split_at(length.min(tail.len()));
        let mut hash = Sha256::new();
        hash.update(before);
        hash.update(number.to_le_bytes());
        hash.update(payload);
        let digest: [u8; 32] = hash.finalize().into();
        if number == 0 {
            mark.copy_from_slice(&digest[..8]);
        }
        out.extend(b"SVO1");
        out.extend((payload.len() as u32).to_le_bytes());
        out.extend(number.to_le_bytes());
        out.extend(payload);
        out.extend(digest);
        out.extend(mark);
        out.extend(number.to_le_bytes());
        out.extend(&digest[..16]);
        before = digest;
        rest = tail.get(64..).unwrap_or_default();
    }
    out
}
