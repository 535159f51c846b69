//! What a peer must not forget, in one file that survives a power loss.
//!
//! The file is a list of records. A record holds everything that one step of the agent changed: its charges, its state, and the bytes
//! that will be sent. It is written and synced as a whole before any of these bytes leaves, so a crash finds either the step
//! before, of which nothing was sent, or the step itself, which is sent again to the bit. Noise is never drawn twice.
//!
//! ```text
//! record   "SVO1"  length (4)  number (8)  payload  SHA-256 of the digest before, the number, and the payload (32)
//! seal     first quarter of the first record's digest (8)  number (8)  first half of the record's digest (16)
//! ```
//!
//! A record is followed by its seal, which is written after the sync and not synced itself. The seal tells a record that was
//! never finished, as a crash leaves it, from one that was finished and has been damaged since: the first may be dropped,
//! because nothing of it was sent; the second must not be, because its charges would be forgotten. The first record says to whom the
//! store belongs. It holds a digest of private data, so nobody else can know how a seal begins and put one into a post.
//!
//! What is told of others, and durable letters, would make every record long. A record holds what has changed of them since the one before;
//! whoever reads the log puts the changes together ([`Mail::merge`]), and a log that is written anew begins with all of it.

use crate::disk::Disk;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use sottovoce_privacy::{Charge, Ledger};
use std::collections::BTreeMap;
use std::io;
use thiserror::Error;

mod step;

use step::merge_all;
pub use step::{DurableLetter, HeardPeer, Mail, Posted, SavedLetter, Stamped, StoredStep};

/// The form of the payloads. Another one is refused, not guessed at.
pub const FORMAT: u32 = 2;

const RECORD: [u8; 4] = *b"SVO1";
pub(crate) const MARK_BYTES: usize = 8;
const HEAD_BYTES: usize = 16;
pub(crate) const DIGEST_BYTES: usize = 32;
const SEAL_BYTES: usize = 32;

/// A log is written anew when it is this many times as long as it would then be,
const LONG_RATIO: usize = 16;

/// and longer than this.
const LONG_BYTES: usize = 1 << 20;

/// A SHA-256.
pub type Digest = [u8; DIGEST_BYTES];

/// To whom a store belongs. The budget belongs to the data, so they are part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The peer's public key, as text.
    pub key: String,
    /// What all peers agreed to learn.
    pub task: Digest,
    /// The agent's own data.
    pub data: Digest,
    /// The algorithm's name.
    pub algorithm: String,
}

/// A step as postcard writes it. Charges are JSON, the form that they have in every ledger.
#[derive(Serialize, Deserialize)]
struct Written {
    wakes: u64,
    events: u64,
    time: f64,
    alarm: Option<f64>,
    epoch: u64,
    last_number: u64,
    charges: String,
    post: Option<Posted>,
    letters: Vec<SavedLetter>,
    mail: BTreeMap<String, Mail>,
    state: Vec<u8>,
    neighbours: Vec<(String, f64)>,
    heard: BTreeMap<String, HeardPeer>,
}

impl Written {
    /// Of a step, with these parts in place of what has changed of them.
    fn new(step: &StoredStep, mail: BTreeMap<String, Mail>, heard: BTreeMap<String, HeardPeer>) -> Self {
        let StoredStep { wakes, events, time, alarm, epoch, last_number, ref ledger, .. } = *step;
        let charges: Vec<&Charge> = ledger.charges().collect();
        let charges = serde_json::to_string(&charges).expect("charges are JSON");
        let (post, letters, state) = (step.post.clone(), step.letters.clone(), step.state.clone());
        let neighbours = step.neighbours.clone();
        Written {
            wakes,
            events,
            time,
            alarm,
            epoch,
            last_number,
            charges,
            post,
            letters,
            mail,
            state,
            neighbours,
            heard,
        }
    }

    fn read(self) -> Option<StoredStep> {
        let Written { wakes, events, time, alarm, epoch, last_number, charges, post, letters, mail, .. } = self;
        let (state, neighbours, heard) = (self.state, self.neighbours, self.heard);
        let charges: Vec<Charge> = serde_json::from_str(&charges).ok()?;
        let ledger = Ledger::from_charges(charges).ok()?;
        Some(StoredStep {
            wakes,
            events,
            time,
            alarm,
            epoch,
            last_number,
            ledger,
            post,
            letters,
            mail,
            state,
            neighbours,
            heard,
        })
    }
}

/// Why a store cannot be used.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The system says no.
    #[error("the store cannot be {what}: {error}; nothing was sent")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why not.
        error: io::Error,
    },
    /// A finished record is not what it was.
    #[error(
        "the store is damaged in record {record}: charges may be lost, so nothing will be sent; accepted: a backup that is as new, or a \
         new task, whose budget ADDS to all that this one may have spent on the same records"
    )]
    Damaged {
        /// Which.
        record: u64,
    },
    /// Another version of this program wrote it.
    #[error(
        "the store has format {found}, of another version of this program, and this one writes {FORMAT}; accepted: the program that wrote it, \
         or a new task, whose budget ADDS to what this one has spent"
    )]
    Version {
        /// The form of its payloads.
        found: u32,
    },
    /// It is somebody else's.
    #[error(
        "the store belongs to another {what}; accepted: the store that was made for this {what}, or an empty folder, whose budget ADDS to \
         what this one has spent on the same records"
    )]
    Foreign {
        /// What differs.
        what: &'static str,
    },
    /// The data are not those whose budget it holds.
    #[error(
        "the data have changed since the store was made, and its budget belongs to the old ones; accepted: the old data, or a new task, \
         whose budget ADDS to what this one has spent on every record that is in both"
    )]
    OtherData,
    /// An earlier write failed.
    #[error("an earlier write to the store failed; nothing is sent any more")]
    Failed,
}

/// An open store.
#[derive(Debug)]
pub struct Store<D> {
    disk: D,
    owner: Owner,
    /// How seals begin.
    mark: [u8; MARK_BYTES],
    /// Of the last record.
    digest: Digest,
    /// Records so far.
    records: u64,
    bytes: usize,
    /// What it would have if it were written anew.
    bytes_short: usize,
    /// Everything ever heard.
    heard: BTreeMap<String, HeardPeer>,
    /// All durable letters that wait.
    mail: BTreeMap<String, Mail>,
    failed: bool,
}

impl<D: Disk> Store<D> {
    /// Opens a store, or begins one. The last step, with everything that was heard until then, if there is one.
    pub fn open(mut disk: D, owner: &Owner) -> Result<(Self, Option<StoredStep>), StoreError> {
        let bytes = disk.read().map_err(|error| StoreError::Io { what: "read", error })?;
        let log = Log::parse(&bytes)?;
        let mut store = Store {
            disk,
            owner: owner.clone(),
            mark: log.mark,
            digest: log.digest,
            records: log.payloads.len() as u64,
            bytes: log.end,
            bytes_short: 0,
            heard: BTreeMap::new(),
            mail: BTreeMap::new(),
            failed: false,
        };
        let Some((first, rest)) = log.payloads.split_first() else {
            store.renew(None)?;
            return Ok((store, None));
        };
        Self::check(owner, &self::owner(first)?)?;
        let last = last_step(rest)?;
        if let Some(step) = &last {
            store.heard.clone_from(&step.heard);
            store.mail.clone_from(&step.mail);
        }
        if log.is_clean {
            store.bytes_short = bytes.len();
        } else {
            // Makes safe what was found, and takes away what was not finished.
            store.renew(last.as_ref())?;
        }
        Ok((store, last))
    }

    /// What a store holds, for its owner to look at while a peer may be using it: whose it is, and the last step.
    pub fn look(disk: &mut D) -> Result<Option<(Owner, Option<StoredStep>)>, StoreError> {
        let bytes = disk.read().map_err(|error| StoreError::Io { what: "read", error })?;
        let log = Log::parse(&bytes)?;
        let Some((first, rest)) = log.payloads.split_first() else { return Ok(None) };
        let owner = owner(first)?;
        Ok(Some((owner, last_step(rest)?)))
    }

    /// Refuses a store that is somebody else's, or about something else.
    pub fn check(expected: &Owner, found: &Owner) -> Result<(), StoreError> {
        let Owner { key, task, data, algorithm } = found;
        let foreign = |what| Err(StoreError::Foreign { what });
        match expected {
            owner if owner.key != *key => foreign("key"),
            owner if owner.task != *task => foreign("task"),
            owner if owner.algorithm != *algorithm => foreign("algorithm"),
            owner if owner.data != *data => Err(StoreError::OtherData),
            _ => Ok(()),
        }
    }

    /// Returns when the step is safe. After an error nothing of it may be sent, nor anything else.
    pub fn commit(&mut self, step: &StoredStep) -> Result<(), StoreError> {
        if self.failed {
            return Err(StoreError::Failed);
        }
        // Until it has succeeded.
        self.failed = true;
        for (name, heard) in &step.heard {
            self.heard.insert(name.clone(), heard.clone());
        }
        merge_all(&mut self.mail, &step.mail);
        if self.bytes > LONG_BYTES && self.bytes > LONG_RATIO * self.bytes_short {
            self.renew(Some(step))?;
        } else {
            let payload = encode(&Written::new(step, step.mail.clone(), step.heard.clone()));
            let (record, digest) = record(self.records, &self.digest, &payload);
            self.disk.append(&record).map_err(|error| StoreError::Io { what: "written", error })?;
            self.disk.sync().map_err(|error| StoreError::Io { what: "written", error })?;
            // A seal that is lost changes nothing, but one that cannot be written means that the next record cannot be either.
            let seal = seal(&self.mark, self.records, &digest);
            self.disk.append(&seal).map_err(|error| StoreError::Io { what: "written", error })?;
            self.bytes += record.len() + seal.len();
            self.records += 1;
            self.digest = digest;
        }
        self.failed = false;
        Ok(())
    }

    /// Writes the log anew: whose it is, and the last step with all letters that wait and everything heard.
    fn renew(&mut self, step: Option<&StoredStep>) -> Result<(), StoreError> {
        let owner = encode(&(FORMAT, &self.owner));
        let step = step.map(|step| encode(&Written::new(step, self.mail.clone(), self.heard.clone())));
        let (mut bytes, mut digest, mut records) = (Vec::new(), [0; DIGEST_BYTES], 0);
        for payload in [owner].into_iter().chain(step) {
            let (record, new) = record(records, &digest, &payload);
            if records == 0 {
                self.mark = mark(&new);
            }
            bytes.extend(record);
            bytes.extend(seal(&self.mark, records, &new));
            digest = new;
            records += 1;
        }
        self.disk.replace(&bytes).map_err(|error| StoreError::Io { what: "written", error })?;
        (self.digest, self.records, self.bytes, self.bytes_short) = (digest, records, bytes.len(), bytes.len());
        Ok(())
    }
}

/// To whom a store belongs, by its first record. Its form comes first, so that any version can tell that it is not its own.
fn owner(first: &[u8]) -> Result<Owner, StoreError> {
    let damaged = |_| StoreError::Damaged { record: 0 };
    let (found, owner): (u32, _) = postcard::take_from_bytes(first).map_err(damaged)?;
    if found != FORMAT {
        return Err(StoreError::Version { found });
    }
    postcard::from_bytes(owner).map_err(damaged)
}

/// The last step, with all letters that wait and everything that was heard until then.
fn last_step(payloads: &[&[u8]]) -> Result<Option<StoredStep>, StoreError> {
    let (mut mail, mut heard) = (BTreeMap::new(), BTreeMap::new());
    let mut last = None;
    for (payload, record) in payloads.iter().zip(1..) {
        let damaged = || StoreError::Damaged { record };
        let written: Written = postcard::from_bytes(payload).map_err(|_| damaged())?;
        let mut step = written.read().ok_or_else(damaged)?;
        heard.append(&mut step.heard);
        merge_all(&mut mail, &step.mail);
        last = Some(step);
    }
    Ok(last.map(|step| StoredStep { mail, heard, ..step }))
}

fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_stdvec(value).expect("memory can be written")
}

/// What a log holds.
pub(crate) struct Log<'b> {
    pub payloads: Vec<&'b [u8]>,
    mark: [u8; MARK_BYTES],
    /// Of the last record.
    digest: Digest,
    /// Where the last record and its seal end.
    end: usize,
    /// Whether it ends with a sealed record.
    pub is_clean: bool,
}

impl<'b> Log<'b> {
    pub fn parse(bytes: &'b [u8]) -> Result<Self, StoreError> {
        let (payloads, mark, digest) = (Vec::new(), [0; MARK_BYTES], [0; DIGEST_BYTES]);
        let mut log = Log { payloads, mark, digest, end: 0, is_clean: true };
        // A record without a seal is the last one.
        while log.is_clean && log.end < bytes.len() {
            let number = log.payloads.len() as u64;
            let Some((payload, length)) = next(&bytes[log.end..], number, &mut log.digest) else { break };
            if number == 0 {
                log.mark = self::mark(&log.digest);
            }
            let sealed = bytes[log.end + length..].starts_with(&seal(&log.mark, number, &log.digest));
            log.end += length + if sealed { SEAL_BYTES } else { 0 };
            log.is_clean = sealed;
            log.payloads.push(payload);
        }
        // What follows was never finished, unless a seal says that it was. The first record is never unfinished: it came by a renaming.
        let rest = &bytes[log.end..];
        let has_seal = rest.len() >= SEAL_BYTES && rest.windows(MARK_BYTES).any(|window| window == log.mark);
        if has_seal || log.payloads.is_empty() && !bytes.is_empty() {
            return Err(StoreError::Damaged { record: log.payloads.len() as u64 });
        }
        log.is_clean &= rest.is_empty();
        Ok(log)
    }
}

/// How the seals of a store begin.
pub(crate) fn mark(first: &Digest) -> [u8; MARK_BYTES] {
    first[..MARK_BYTES].try_into().expect("a part of a digest")
}

/// The first record of some bytes, if it is whole: its payload, and its length. The digest moves on.
fn next<'b>(bytes: &'b [u8], number: u64, digest: &mut Digest) -> Option<(&'b [u8], usize)> {
    let (head, rest) = bytes.split_at_checked(HEAD_BYTES)?;
    let length = u32::from_le_bytes(head[4..8].try_into().expect("four bytes")) as usize;
    let (payload, rest) = rest.split_at_checked(length)?;
    let expected = chained(number, digest, payload);
    let whole = head[..4] == RECORD && head[8..] == number.to_le_bytes() && rest.starts_with(&expected);
    whole.then(|| {
        *digest = expected;
        (payload, HEAD_BYTES + length + DIGEST_BYTES)
    })
}

pub(crate) fn record(number: u64, before: &Digest, payload: &[u8]) -> (Vec<u8>, Digest) {
    let digest = chained(number, before, payload);
    let length = u32::try_from(payload.len()).expect("a step has less than 4 GiB");
    let mut bytes = Vec::with_capacity(HEAD_BYTES + payload.len() + DIGEST_BYTES + SEAL_BYTES);
    bytes.extend(RECORD);
    bytes.extend(length.to_le_bytes());
    bytes.extend(number.to_le_bytes());
    bytes.extend(payload);
    bytes.extend(digest);
    (bytes, digest)
}

pub(crate) fn seal(mark: &[u8; MARK_BYTES], number: u64, digest: &Digest) -> [u8; SEAL_BYTES] {
    let mut bytes = [0; SEAL_BYTES];
    bytes[..8].copy_from_slice(mark);
    bytes[8..16].copy_from_slice(&number.to_le_bytes());
    bytes[16..].copy_from_slice(&digest[..16]);
    bytes
}

pub(crate) fn chained(number: u64, before: &Digest, payload: &[u8]) -> Digest {
    let mut hash = Sha256::new();
    hash.update(before);
    hash.update(number.to_le_bytes());
    hash.update(payload);
    hash.finalize().into()
}
