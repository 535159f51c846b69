//! A disk that loses power when told to, and what it may leave behind.
#![allow(dead_code, reason = "each test uses its part")]

pub mod backups;
pub mod courier;
pub mod labels;
pub mod world;

use sottovoce_core::Coin;
use sottovoce_net::disk::Disk;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// What a power loss does to bytes that were written and not synced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tail {
    /// Nothing of them is left.
    Lost,
    /// They are all there.
    Kept,
    /// Some of the first are.
    Torn,
    /// The file has its length, and what is in it is anything.
    Garbled,
    /// The process was killed and the machine was not: they are all there, and not safer than before.
    Cached,
}

impl Tail {
    pub const ALL: [Tail; 5] = [Tail::Lost, Tail::Kept, Tail::Torn, Tail::Garbled, Tail::Cached];
}

/// The part of a disk that outlives a process.
#[derive(Debug, Default)]
pub struct Platter {
    /// As a reader sees it.
    pub bytes: Vec<u8>,
    /// How much of it a power loss leaves.
    pub safe: usize,
    /// Boundaries passed so far: before and after each write, sync and replacement.
    pub boundaries: u64,
    /// The boundary at which the power goes.
    pub fails_at: Option<u64>,
    /// The most bytes it holds.
    pub room: Option<usize>,
    /// What it held at each boundary, if somebody makes backups.
    pub backups: Option<Vec<Vec<u8>>>,
}

/// A disk in memory.
#[derive(Clone, Debug, Default)]
pub struct CrashDisk(pub Rc<RefCell<Platter>>);

impl CrashDisk {
    /// Passes a boundary, or loses power there.
    fn boundary(&self) -> io::Result<()> {
        let mut platter = self.0.borrow_mut();
        platter.boundaries += 1;
        let bytes = platter.backups.is_some().then(|| platter.bytes.clone());
        platter.backups.iter_mut().zip(bytes).for_each(|(backups, bytes)| backups.push(bytes));
        if platter.fails_at == Some(platter.boundaries) {
            return Err(io::Error::other("power loss"));
        }
        Ok(())
    }

    /// The power is back, or the process.
    pub fn reboot(&self, tail: Tail, coin: &mut Coin) {
        let mut platter = self.0.borrow_mut();
        let (safe, length) = (platter.safe, platter.bytes.len());
        match tail {
            Tail::Lost => platter.bytes.truncate(safe),
            Tail::Kept | Tail::Cached => {}
            Tail::Torn => platter.bytes.truncate(safe + coin.below(length - safe + 1)),
            Tail::Garbled => platter.bytes[safe..].iter_mut().for_each(|byte| *byte ^= coin.bits() as u8),
        }
        if tail != Tail::Cached {
            platter.safe = platter.bytes.len();
        }
        platter.fails_at = None;
    }

    /// Another disk with the same bytes, as a backup would make it; `safe` ones only, or all.
    pub fn image(&self, only_safe: bool) -> CrashDisk {
        let platter = self.0.borrow();
        let end = if only_safe { platter.safe } else { platter.bytes.len() };
        CrashDisk::holding(&platter.bytes[..end])
    }

    /// A disk with these bytes.
    pub fn holding(bytes: &[u8]) -> CrashDisk {
        let (bytes, safe) = (bytes.to_vec(), bytes.len());
        CrashDisk(Rc::new(RefCell::new(Platter { bytes, safe, ..Platter::default() })))
    }
}

impl Disk for CrashDisk {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        Ok(self.0.borrow().bytes.clone())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.boundary()?;
        let room = self.0.borrow().room.map_or(usize::MAX, |room| room - self.0.borrow().bytes.len());
        self.0.borrow_mut().bytes.extend(&bytes[..bytes.len().min(room)]);
        if room < bytes.len() {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device"));
        }
        self.boundary()
    }

    fn sync(&mut self) -> io::Result<()> {
        self.boundary()?;
        let mut platter = self.0.borrow_mut();
        platter.safe = platter.bytes.len();
        drop(platter);
        self.boundary()
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.boundary()?;
        let mut platter = self.0.borrow_mut();
        if platter.room.is_some_and(|room| room < bytes.len()) {
            return Err(io::Error::new(io::ErrorKind::StorageFull, "no space left on device"));
        }
        platter.bytes = bytes.to_vec();
        platter.safe = bytes.len();
        drop(platter);
        self.boundary()
    }
}
