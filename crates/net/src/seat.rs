//! A peer's seat in the book of its data: what tells the folder that ran last from its copies.
//!
//! A charge is for one peer, but a folder can be copied, with its store and its instance: two sets of releases under one charge. So
//! while a peer runs it holds a lock beside the book, and whenever it starts or ends it leaves a *stamp* in the book and beside its
//! store: a fresh nonce, and how much it had released by then. A folder whose nonce is not the book's last, or whose store holds fewer
//! releases than the last stamp says, was copied or put back, and is not started.
//!
//! The order is store, then book. What stands beside the store names both nonces, the book's last one and the new one, so a crash
//! between the two leaves a folder that still fits; and a copy that was made before the two are safe fits no longer when they are.
//!
//! What this cannot see: a book that was copied with the folder; a copy that was made while the peer ran, and is started after that
//! process was killed before it could leave the stamp of its end. Those are rollbacks that only neighbours can witness.

use crate::book::{BookError, BookFile, Nonce, SeatId, Stamp};
use crate::disk::{Disk, FileDisk, Glance, locked};
use sha2::{Digest as _, Sha256};
use sottovoce_privacy::odometer::Instance;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Beside a peer's store.
const INSTANCE: &str = "instance";

/// What follows a pending instance in its file.
const PENDING: &[u8] = b"pending";

/// The instance of a task beside a peer's store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beside {
    /// Nothing was ever released under it: the store has not begun, or has only just.
    Pending(Instance),
    /// The store has begun under it, and may have released anything since.
    Bound(Bound),
}

impl Beside {
    /// Which.
    pub fn instance(&self) -> Instance {
        match self {
            Beside::Pending(instance) | Beside::Bound(Bound { instance, .. }) => *instance,
        }
    }
}

/// An instance, and the stamps that a store knows of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Under which the store was charged.
    pub instance: Instance,
    /// The last stamp of the book.
    pub before: Nonce,
    /// The one that was about to follow it.
    pub now: Nonce,
}

impl Bound {
    /// Whether this store is the last one that the book has heard of.
    pub fn fits(&self, last: &Stamp) -> bool {
        last.nonce == self.now || last.nonce == self.before
    }
}

/// Why a folder is not started.
#[derive(Debug, Error)]
pub enum SeatError {
    /// The original, or a copy.
    #[error(
        "another process runs this peer, or a copy of its folder, under the same charge, so nothing is released; accepted: one of them at a \
         time"
    )]
    Taken,
    /// The book has seen a later one.
    #[error(
        "this folder is a copy, or was put back: its like has been started since, under the same charge, so nothing is released; \
         accepted: the folder that ran last, or a new peer (`peer init`), whose charge ADDS to all that this one may have spent"
    )]
    Copied,
    /// The book knows of more releases than the store.
    #[error(
        "the store was put back: it holds {found} releases, and had {known} when the peer last started or ended, so nothing is released; \
         accepted: the store as it was, or a new peer (`peer init`), whose charge ADDS to all that this one may have spent"
    )]
    RolledBack {
        /// In the store.
        found: u64,
        /// In the book.
        known: u64,
    },
    /// The system says no.
    #[error("the seat of this peer in its budget cannot be {what}: {error}; nothing is released")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why not.
        error: io::Error,
    },
    /// The book says no.
    #[error(transparent)]
    Book(#[from] BookError),
}

/// The seat of a running peer. Nobody else has it while this value lives.
#[derive(Debug)]
pub struct Seat {
    id: SeatId,
    instance: Instance,
    store: PathBuf,
    _lock: (File, PathBuf),
}

/// The seat of a peer, by its public key as text: the first half of a SHA-256 over both.
pub fn seat_id(instance: &Instance, key: &str) -> SeatId {
    let digest = Sha256::new().chain_update(instance).chain_update(key).finalize();
    digest[..16].try_into().expect("half of a digest")
}

impl Seat {
    /// Takes the seat beside the book in `budget` for the store in `store`.
    pub fn take(budget: &Path, store: &Path, instance: Instance, key: &str) -> Result<Self, SeatError> {
        let id = seat_id(&instance, key);
        let name: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let lock = locked(budget.join(format!("peer-{name}.lock"))).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => SeatError::Taken,
            _ => SeatError::Io { what: "taken", error },
        })?;
        Ok(Seat { id, instance, store: store.to_owned(), _lock: lock })
    }

    /// Refuses a folder that is not the one that ran last. `releases` is how many its store holds.
    pub fn check(&self, bound: &Bound, last: &Stamp, releases: u64) -> Result<(), SeatError> {
        if !bound.fits(last) {
            return Err(SeatError::Copied);
        }
        if releases < last.releases {
            return Err(SeatError::RolledBack { found: releases, known: last.releases });
        }
        Ok(())
    }

    /// Leaves a stamp beside the store and in the book. Returns when both are safe: only then may anything be released.
    pub fn stamp<D: Disk>(&self, book: &mut BookFile<D>, stamp: Stamp) -> Result<(), SeatError> {
        let bound = Bound { instance: self.instance, before: book.stamp(&self.id).nonce, now: stamp.nonce };
        // PRIVACY: the store first. Were it the book, a crash in between would leave a store that fits no longer.
        write_instance(&self.store, Beside::Bound(bound)).map_err(|error| SeatError::Io { what: "stamped", error })?;
        book.write_stamp(self.id, stamp)?;
        Ok(())
    }
}

/// The instance beside a peer's store; none where there is none, or it is not whole.
pub fn instance(store: &Path) -> io::Result<Option<Beside>> {
    let bytes = Glance::named(store, INSTANCE).read()?;
    let Some((instance, rest)) = bytes.split_first_chunk() else { return Ok(None) };
    if rest == PENDING {
        return Ok(Some(Beside::Pending(*instance)));
    }
    let nonces = rest.split_first_chunk().and_then(|(before, now)| Some((*before, now.try_into().ok()?)));
    Ok(nonces.map(|(before, now)| Beside::Bound(Bound { instance: *instance, before, now })))
}

/// Writes it, and returns when that is safe. Whoever does it holds the store's lock, or the seat.
pub fn write_instance(store: &Path, beside: Beside) -> io::Result<()> {
    let bytes = match beside {
        Beside::Pending(instance) => [&instance, PENDING].concat(),
        Beside::Bound(Bound { instance, before, now }) => [instance, before, now].concat(),
    };
    FileDisk::open_named(store, INSTANCE, None)?.replace(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder: what stands beside its store, and the starts that it has in its history.
    #[derive(Clone, Debug)]
    struct Folder {
        bound: Bound,
        history: Vec<Nonce>,
    }

    /// The book's last stamp, and all starts of any folder after which something may have been released.
    #[derive(Clone, Debug, Default)]
    struct World {
        last: Stamp,
        released: Vec<Nonce>,
        folders: Vec<Folder>,
        fresh: u8,
    }

    impl World {
        /// As `Seat::check` and `Seat::stamp`, up to the crash. Whether it came to the end.
        fn start(&mut self, folder: usize, writes: usize) -> bool {
            if !self.folders[folder].bound.fits(&self.last) {
                return false;
            }
            self.fresh += 1;
            let (nonce, before) = ([self.fresh; 16], self.last.nonce);
            if writes > 0 {
                self.folders[folder].bound = Bound { before, now: nonce, ..self.folders[folder].bound };
            }
            if writes > 1 {
                self.last.nonce = nonce;
                // PRIVACY: whoever releases has in its history all that was ever released under this charge.
                assert_eq!(self.folders[folder].history, self.released, "{self:?}");
                self.released.push(nonce);
                self.folders[folder].history.push(nonce);
            }
            writes > 1
        }

        /// Every order of starts, crashes in the middle of one, and copies, up to a depth.
        fn explore(&self, depth: usize, seen: &mut u64) {
            *seen += 1;
            if depth == 0 {
                return;
            }
            for folder in 0..self.folders.len() {
                for writes in 0..3 {
                    let mut next = self.clone();
                    next.start(folder, writes);
                    next.explore(depth - 1, seen);
                }
                if self.folders.len() < 3 {
                    let mut next = self.clone();
                    next.folders.push(self.folders[folder].clone());
                    next.explore(depth - 1, seen);
                }
            }
            // The one that ran last can always go on: a crash locks nobody out.
            assert!((0..self.folders.len()).any(|folder| self.clone().start(folder, 2)), "{self:?}");
        }
    }

    #[test]
    fn of_a_folder_and_its_copies_one_alone_goes_on_whatever_crashes() {
        let first = Folder { bound: Bound { instance: [1; 16], before: [0; 16], now: [200; 16] }, history: Vec::new() };
        let mut seen = 0;
        World { folders: vec![first], ..World::default() }.explore(6, &mut seen);
        assert!(seen > 70_000, "{seen}");
    }

    #[test]
    fn an_instance_is_pending_until_it_is_bound() {
        let place = tempfile::tempdir().expect("a folder");
        assert_eq!(instance(place.path()).expect("nothing is there"), None);
        let bound = Bound { instance: [2; 16], before: [3; 16], now: [4; 16] };
        for beside in [Beside::Pending([1; 16]), Beside::Pending([2; 16]), Beside::Bound(bound)] {
            write_instance(place.path(), beside).expect("written");
            assert_eq!(instance(place.path()).expect("readable"), Some(beside));
        }
        for broken in [&[2; 15][..], &[2; 16], &[2; 17], &[0; 23], &[0; 32], &[0; 47], &[0; 49], b""] {
            std::fs::write(place.path().join("instance"), broken).expect("written");
            assert_eq!(instance(place.path()).expect("readable"), None, "it is not whole");
        }
    }

    #[test]
    fn one_seat_is_for_one_process_and_one_peer() {
        let place = tempfile::tempdir().expect("a folder");
        let (budget, store) = (place.path(), place.path().join("store"));
        let take = |instance: u8, key: &str| Seat::take(budget, &store, [instance; 16], key);
        let held = take(1, "a").expect("free");
        assert!(matches!(take(1, "a"), Err(SeatError::Taken)));
        let _others = [take(1, "b").expect("another peer"), take(2, "a").expect("another instance")];
        drop(held);
        take(1, "a").expect("free again");
    }

    #[test]
    fn a_store_that_holds_less_than_its_last_stamp_says_is_refused() {
        let place = tempfile::tempdir().expect("a folder");
        let store = place.path().join("store");
        let mut book = BookFile::open(&place.path().join("budget"), [1; 32]).expect("new");
        let seat = Seat::take(&place.path().join("budget"), &store, [7; 16], "key").expect("free");
        seat.stamp(&mut book, Stamp { nonce: [1; 16], releases: 0 }).expect("written");
        let Ok(Some(Beside::Bound(copied))) = instance(&store) else { panic!("it was bound") };
        seat.stamp(&mut book, Stamp { nonce: [2; 16], releases: 5 }).expect("written");
        let Ok(Some(Beside::Bound(bound))) = instance(&store) else { panic!("it was bound") };
        drop(book);
        let book = BookFile::open(&place.path().join("budget"), [1; 32]).expect("there");
        let last = book.stamp(&seat_id(&[7; 16], "key"));
        assert_eq!(last, Stamp { nonce: [2; 16], releases: 5 }, "found again");
        seat.check(&bound, &last, 5).expect("as it was");
        seat.check(&bound, &last, 6).expect("a store may be ahead");
        assert!(matches!(seat.check(&bound, &last, 4), Err(SeatError::RolledBack { found: 4, known: 5 })));
        assert!(matches!(seat.check(&copied, &last, 5), Err(SeatError::Copied)));
        assert_eq!(book.stamp(&seat_id(&[7; 16], "another")), Stamp::default());
    }
}
