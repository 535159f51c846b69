//! The book of an odometer, in a folder that survives a power loss.
//!
//! The file is a list of records and seals as a peer's store is (`store.rs`). The first record holds the source's key, under which ids of
//! records are hashed; the others are the limit, the charges, and the stamps of peers that start and end (`seat.rs`). None is ever taken
//! away. A charge is safe before whoever asked for it goes on, so the book is never behind what was sent. A crash between the two leaves
//! an instance that is pending beside the peer's store, and the next start uses its charge.
//!
//! A second file says how many records there are, and the digest of the last. It is written when a record is safe, so a log that is cut,
//! or put back from a copy, is noticed as long as this file is not put back with it.

use crate::disk::{Disk, FileDisk, Glance, STORE_BYTES_MAX};
use crate::store::{Digest, Log, MARK_BYTES, chained, mark, record, seal};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sottovoce_privacy::odometer::{Book, Entry, Instance, RecordId, Refused, TaskRows};
use sottovoce_privacy::{Charge, Event, Filter, Ledger};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};
use thiserror::Error;

/// The form of the records. Another one is refused, not guessed at.
const FORMAT: u32 = 1;

const LOG: &str = "budget.log";
const LOCK: &str = "budget.lock";
const END: &str = "budget.end";

const KEY_BYTES: usize = 32;

/// How long another process may hold the book: a charge takes milliseconds.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// After which whoever waits for it is told.
const MOMENT: Duration = Duration::from_secs(1);

/// The key of a source. Ids are hashed under it, so that a book says nothing about them to whoever does not have it.
pub type BookKey = [u8; KEY_BYTES];

/// Random bytes; zeros where there was no stamp yet.
pub type Nonce = [u8; 16];

/// An instance of a task and one peer of it.
pub type SeatId = [u8; 16];

/// What a peer leaves when it starts and when it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// Fresh each time.
    pub nonce: Nonce,
    /// How many releases its store held.
    pub releases: u64,
}

/// A record as postcard writes it.
#[derive(Serialize, Deserialize)]
enum Written {
    Source { format: u32, key: BookKey },
    Limit { epsilon: f64, delta: f64, order: f64 },
    Charge(WrittenEntry),
    Stamp { seat: SeatId, stamp: Stamp },
}

#[derive(Serialize, Deserialize)]
struct WrittenEntry {
    instance: Instance,
    task: String,
    /// Mechanism, its parameter, how many.
    plan: Vec<(u8, f64, u64)>,
    /// Rows without names.
    unnamed: Option<u64>,
    named: Vec<(RecordId, u64)>,
    void: Vec<RecordId>,
}

/// Why a book cannot be used.
#[derive(Debug, Error)]
pub enum BookError {
    /// The system says no.
    #[error("the budget cannot be {what}: {error}; nothing is released")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why not.
        error: io::Error,
    },
    /// Writing was begun, and failed.
    #[error(
        "the budget cannot be written: {error}; nothing is released, but the task {stays} charged: `privacy budget` tells; accepted: \
         room on the disk, and a new start"
    )]
    Unfinished {
        /// Whether it is in the book.
        stays: &'static str,
        /// Why not.
        error: io::Error,
    },
    /// Another process has it for long.
    #[error(
        "another process has used this budget for {seconds} seconds, so nothing is released; accepted: a new start when it has ended"
    )]
    Busy {
        /// How long it was waited for.
        seconds: u64,
    },
    /// It would be too long to be read.
    #[error(
        "the budget would have more than 1 GiB, which is not read, so nothing is charged or released; accepted: a new folder for data \
         that no task has seen"
    )]
    Full,
    /// A finished record is not what it was.
    #[error(
        "the budget is damaged in record {record}: charges may be lost, so nothing is released; accepted: a backup that is as new"
    )]
    Damaged {
        /// Which.
        record: u64,
    },
    /// Records that were finished are gone.
    #[error(
        "the budget has {found} records where {ended} were finished: it was cut or put back, so nothing is released; accepted: the \
         whole folder as it was"
    )]
    RolledBack {
        /// How many there are.
        found: u64,
        /// How many there were.
        ended: u64,
    },
    /// The log is whole in itself; what says where it ends is not there, or says something else.
    #[error(
        "budget.end {what} the log of {found} records: one of them was deleted, damaged or put back, so charges may be lost and nothing \
         is released; accepted: the whole folder as it was"
    )]
    OtherEnd {
        /// What is the matter.
        what: &'static str,
        /// How many records there are.
        found: u64,
    },
    /// Written by another version.
    #[error("the budget was written by another version of this program; accepted: the version that made it")]
    Format,
    /// A limit is there already.
    #[error(
        "the limit is epsilon = {epsilon} at delta = {delta} and stays: one that moved with what was seen would be none; accepted: the \
         same, or a new folder for data that no task has seen"
    )]
    OtherLimit {
        /// As it is.
        epsilon: f64,
        /// As it is.
        delta: f64,
    },
    /// The task may not start.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// An earlier write failed.
    #[error("an earlier write to the budget failed; nothing is released any more")]
    Failed,
}

/// An open book. One process at a time has it.
#[derive(Debug)]
pub struct BookFile<D> {
    log: D,
    end: D,
    payloads: Vec<Vec<u8>>,
    digest: Digest,
    mark: [u8; MARK_BYTES],
    key: BookKey,
    book: Book,
    /// The last of each seat.
    stamps: BTreeMap<SeatId, Stamp>,
    /// Of the log.
    bytes: u64,
    is_new: bool,
    failed: bool,
}

impl BookFile<FileDisk> {
    /// Opens or makes the book of a folder, and waits for others that use it. `fresh` is the key of a new one: random.
    pub fn open(folder: &Path, fresh: BookKey) -> Result<Self, BookError> {
        BookFile::open_waiting(folder, fresh, PATIENCE, || ())
    }

    /// The same with other patience; `waits` is called once if it takes more than a moment.
    pub fn open_waiting(
        folder: &Path,
        fresh: BookKey,
        patience: Duration,
        waits: impl FnOnce(),
    ) -> Result<Self, BookError> {
        let (began, mut waits) = (Instant::now(), Some(waits));
        let unusable = |error| BookError::Io { what: "used", error };
        let log = loop {
            match FileDisk::open_named(folder, LOG, Some(LOCK)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if began.elapsed() >= patience {
                        return Err(BookError::Busy { seconds: patience.as_secs() });
                    }
                    if let Some(waits) = waits.take_if(|_| began.elapsed() >= MOMENT) {
                        waits();
                    }
                    std::thread::sleep(Duration::from_millis(10));
                }
                opened => break opened.map_err(unusable)?,
            }
        };
        let end = FileDisk::open_named(folder, END, None).map_err(unusable)?;
        BookFile::open_on(log, end, fresh)
    }
}

/// What the book of a folder holds, to be looked at while others may use it, and its key; none where there is none.
pub fn look(folder: &Path) -> Result<Option<(Book, BookKey)>, BookError> {
    // The end first: what is finished while this is read makes the log longer, never shorter.
    let (mut end, mut log) = (Glance::named(folder, END), Glance::named(folder, LOG));
    let (end, bytes) = (read(&mut end)?, read(&mut log)?);
    let read = parse(&bytes, &end)?;
    Ok(read.map(|read| (read.book, read.key)))
}

/// What a log says.
struct Read {
    payloads: Vec<Vec<u8>>,
    digest: Digest,
    mark: [u8; MARK_BYTES],
    key: BookKey,
    book: Book,
    stamps: BTreeMap<SeatId, Stamp>,
    /// Whether log and end are as a charge leaves them.
    is_clean: bool,
}

fn read<D: Disk>(disk: &mut D) -> Result<Vec<u8>, BookError> {
    disk.read().map_err(|error| BookError::Io { what: "read", error })
}

fn parse(bytes: &[u8], end: &[u8]) -> Result<Option<Read>, BookError> {
    let damaged = |record: u64| BookError::Damaged { record };
    let log = Log::parse(bytes).map_err(|error| match error {
        crate::store::StoreError::Damaged { record } => damaged(record),
        _ => damaged(0),
    })?;
    let found = log.payloads.len() as u64;
    let ended = match end {
        [] if found <= 1 => None,
        [] => return Err(BookError::OtherEnd { what: "is missing beside", found }),
        _ => {
            let parts = end.split_at_checked(8).filter(|(_, rest)| rest.len() == 32);
            let (count, digest) = parts.ok_or(BookError::OtherEnd { what: "is damaged beside", found })?;
            Some((u64::from_le_bytes(count.try_into().expect("eight bytes")), digest))
        }
    };
    let (mut digest, mut mark) = ([0; 32], [0; MARK_BYTES]);
    let mut agrees = ended.is_none();
    let (mut key, mut book, mut stamps) = (None, Book::default(), BTreeMap::new());
    for (payload, number) in log.payloads.iter().zip(0..) {
        digest = chained(number, &digest, payload);
        if number == 0 {
            mark = self::mark(&digest);
        }
        agrees |= ended.is_some_and(|(count, last)| count == number + 1 && *last == digest);
        let written = postcard::from_bytes(payload).map_err(|_| damaged(number))?;
        match (written, key) {
            (Written::Source { format: FORMAT, key: new }, None) => key = Some(new),
            (Written::Source { .. }, None) => return Err(BookError::Format),
            (Written::Limit { epsilon, delta, order }, Some(_)) if book.filter().is_none() => {
                book.limit(Filter::with_order(epsilon, delta, order).map_err(|_| damaged(number))?);
            }
            (Written::Charge(entry), Some(_)) => book.push(entry.read().ok_or(damaged(number))?),
            (Written::Stamp { seat, stamp }, Some(_)) => drop(stamps.insert(seat, stamp)),
            _ => return Err(damaged(number)),
        }
    }
    if let Some((ended, last)) = ended.filter(|_| !agrees) {
        let is_cut = ended > found && *last != digest;
        let other = BookError::OtherEnd { what: "does not fit", found };
        return Err(if is_cut { BookError::RolledBack { found, ended } } else { other });
    }
    let is_clean = log.is_clean && ended.is_some_and(|(count, _)| count == found);
    let payloads = log.payloads.iter().map(|payload| payload.to_vec()).collect();
    Ok(key.map(|key| Read { payloads, digest, mark, key, book, stamps, is_clean }))
}

impl<D: Disk> BookFile<D> {
    /// The same on any disks.
    pub fn open_on(mut log: D, mut end: D, fresh: BookKey) -> Result<Self, BookError> {
        let (last, bytes) = (read(&mut end)?, read(&mut log)?);
        let found = parse(&bytes, &last)?;
        let is_new = found.is_none();
        let is_clean = found.as_ref().is_some_and(|found| found.is_clean);
        let found = found.unwrap_or_else(|| Read {
            payloads: vec![encode(&Written::Source { format: FORMAT, key: fresh })],
            digest: [0; 32],
            mark: [0; MARK_BYTES],
            key: fresh,
            book: Book::default(),
            stamps: BTreeMap::new(),
            is_clean,
        });
        let Read { payloads, digest, mark, key, book, stamps, .. } = found;
        let bytes = bytes.len() as u64;
        let mut file = BookFile { log, end, payloads, digest, mark, key, book, stamps, bytes, is_new, failed: false };
        if !is_clean {
            // Makes safe what was found, and takes away what was not finished.
            file.renew()?;
        }
        Ok(file)
    }

    /// What was charged so far.
    pub fn book(&self) -> &Book {
        &self.book
    }

    /// Whether there was none before.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The key of the source.
    pub fn key(&self) -> &BookKey {
        &self.key
    }

    /// Sets the limit, once. Returns when it is safe.
    pub fn limit(&mut self, filter: Filter) -> Result<(), BookError> {
        let (epsilon, delta, order) = (filter.epsilon(), filter.delta(), filter.order());
        match self.book.filter() {
            Some(known) if (known.epsilon(), known.delta()) == (epsilon, delta) => Ok(()),
            Some(known) => Err(BookError::OtherLimit { epsilon: known.epsilon(), delta: known.delta() }),
            None => {
                self.append(&Written::Limit { epsilon, delta, order }).map_err(uncharged)?;
                self.book.limit(filter);
                Ok(())
            }
        }
    }

    /// Charges an instance of a task with its whole plan, unless it was charged before. Returns its entry when that is safe: only then
    /// may anything be released.
    pub fn charge(
        &mut self,
        instance: Instance,
        task: &str,
        plan: Ledger,
        rows: TaskRows,
    ) -> Result<&Entry, BookError> {
        if self.book.entry(&instance).is_none() {
            let entry = self.book.admit(instance, task, plan, rows)?;
            self.write(entry)?;
        }
        Ok(self.book.entry(&instance).expect("it was charged before, or has just been"))
    }

    /// Writes an entry that the book has just admitted. Returns when it is safe.
    pub fn write(&mut self, entry: Entry) -> Result<(), BookError> {
        // PRIVACY: the charge is safe on the disk before the task begins, so a crash at any moment leaves a book that is not below what
        // was sent.
        self.append(&Written::Charge(WrittenEntry::new(&entry)))?;
        self.book.push(entry);
        Ok(())
    }

    /// The last stamp of a seat; zeros where there is none.
    pub fn stamp(&self, seat: &SeatId) -> Stamp {
        self.stamps.get(seat).copied().unwrap_or_default()
    }

    /// Writes a stamp. Returns when it is safe.
    pub fn write_stamp(&mut self, seat: SeatId, stamp: Stamp) -> Result<(), BookError> {
        self.append(&Written::Stamp { seat, stamp }).map_err(uncharged)?;
        self.stamps.insert(seat, stamp);
        Ok(())
    }

    fn append(&mut self, written: &Written) -> Result<(), BookError> {
        if self.failed {
            return Err(BookError::Failed);
        }
        let (payload, number) = (encode(written), self.payloads.len() as u64);
        let (record, digest) = record(number, &self.digest, &payload);
        let seal = seal(&self.mark, number, &digest);
        let bytes = self.bytes + (record.len() + seal.len()) as u64;
        if bytes > STORE_BYTES_MAX {
            return Err(BookError::Full);
        }
        // Until it has succeeded.
        self.failed = true;
        let cannot = |stays| move |error| BookError::Unfinished { stays, error };
        self.log.append(&record).map_err(cannot("may stay"))?;
        self.log.sync().map_err(cannot("may stay"))?;
        self.log.append(&seal).map_err(cannot("stays"))?;
        self.payloads.push(payload);
        (self.digest, self.bytes) = (digest, bytes);
        self.finish().map_err(cannot("stays"))?;
        self.failed = false;
        Ok(())
    }

    /// Writes the log anew.
    fn renew(&mut self) -> Result<(), BookError> {
        let (mut bytes, mut digest) = (Vec::new(), [0; 32]);
        for (payload, number) in self.payloads.iter().zip(0..) {
            let (record, new) = record(number, &digest, payload);
            if number == 0 {
                self.mark = mark(&new);
            }
            bytes.extend(record);
            bytes.extend(seal(&self.mark, number, &new));
            digest = new;
        }
        self.digest = digest;
        let cannot = |error| BookError::Io { what: "written", error };
        self.log.replace(&bytes).map_err(cannot)?;
        self.bytes = bytes.len() as u64;
        self.finish().map_err(cannot)
    }

    /// Says how many records there are.
    fn finish(&mut self) -> io::Result<()> {
        let mut end = (self.payloads.len() as u64).to_le_bytes().to_vec();
        end.extend(self.digest);
        self.end.replace(&end)
    }
}

/// What failed to be written was no charge.
fn uncharged(error: BookError) -> BookError {
    match error {
        BookError::Unfinished { error, .. } => BookError::Io { what: "written", error },
        other => other,
    }
}

impl WrittenEntry {
    fn new(entry: &Entry) -> Self {
        let event = |event: Event| match event {
            Event::Reveal => (0, 0.0),
            Event::Laplace { noise_multiplier } => (1, noise_multiplier),
            Event::Gaussian { noise_multiplier } => (2, noise_multiplier),
            Event::GammaNorm { noise_multiplier } => (3, noise_multiplier),
            Event::RandomizedResponse { epsilon } => (4, epsilon),
        };
        let plan = entry.plan.charges().map(|charge| {
            // The observer of an odometer is everyone, to whom noise against one member is none.
            let is_bare = charge.audience.is_named_by_its_accountant();
            let (kind, parameter) = event(if is_bare { Event::Reveal } else { charge.event });
            (kind, parameter, charge.count)
        });
        let (unnamed, named) = match &entry.charged {
            TaskRows::Unnamed(rows) => (Some(*rows), Vec::new()),
            TaskRows::Named(records) => (None, records.iter().map(|(record, rows)| (*record, *rows)).collect()),
        };
        let (instance, task, void) = (entry.instance, entry.task.clone(), entry.void.iter().copied().collect());
        WrittenEntry { instance, task, plan: plan.collect(), unnamed, named, void }
    }

    fn read(self) -> Option<Entry> {
        let charge = |(kind, parameter, count): (u8, f64, u64)| {
            let event = match kind {
                0 => Event::Reveal,
                1 => Event::Laplace { noise_multiplier: parameter },
                2 => Event::Gaussian { noise_multiplier: parameter },
                3 => Event::GammaNorm { noise_multiplier: parameter },
                4 => Event::RandomizedResponse { epsilon: parameter },
                _ => return None,
            };
            Some(Charge::new(event, count))
        };
        let plan: Option<Vec<Charge>> = self.plan.into_iter().map(charge).collect();
        let charged = match self.unnamed {
            Some(rows) => TaskRows::Unnamed(rows),
            None => TaskRows::Named(self.named.into_iter().collect()),
        };
        let (instance, task, void) = (self.instance, self.task, self.void.into_iter().collect());
        Some(Entry { instance, task, plan: Ledger::from_charges(plan?).ok()?, charged, void })
    }
}

fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_stdvec(value).expect("memory can be written")
}

/// The name of a record in a book: the first half of HMAC-SHA256 of its id (RFC 2104).
pub fn record_id(key: &BookKey, id: &[u8]) -> RecordId {
    hmac(key, id)[..16].try_into().expect("half of a digest")
}

fn hmac(key: &[u8], message: &[u8]) -> Digest {
    const BLOCK: usize = 64;
    assert!(key.len() <= BLOCK, "longer keys would have to be hashed first");
    let padded = |mask: u8| {
        let mut block = [mask; BLOCK];
        block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        block
    };
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_book_that_could_not_be_read_again_is_not_written() {
        let place = tempfile::tempdir().expect("a folder");
        let plan = || Ledger::from_charges([Charge::new(Event::Reveal, 1)]).expect("valid");
        let mut file = BookFile::open(place.path(), [1; 32]).expect("new");
        file.charge([1; 16], "t", plan(), TaskRows::Unnamed(1)).expect("there is room");
        let length = || std::fs::metadata(place.path().join(LOG)).expect("a log").len();
        assert_eq!(file.bytes, length());
        let before = length();
        file.bytes = STORE_BYTES_MAX - 100;
        let said = file.charge([2; 16], "t", plan(), TaskRows::Unnamed(1)).expect_err("full").to_string();
        assert!(said.contains("1 GiB") && said.contains("accepted"), "{said}");
        assert_eq!((length(), file.book().entries().len()), (before, 1));
    }

    /// RFC 4231, test cases 1 and 2.
    #[test]
    fn ids_are_hashed_as_the_standard_says() {
        let hex = |digest: Digest| digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(
            hex(hmac(&[0x0b; 20], b"Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"
        );
        assert_eq!(
            hex(hmac(b"Jefe", b"what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }
}
