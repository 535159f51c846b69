//! What lies in a peer's folder: the secret key, and the store as its owner reads it.

use crate::owner::owner;
use sottovoce_net::disk::{Glance, private};
use sottovoce_net::store::{Store, StoredStep};
use sottovoce_net::transport::Identity;
use sottovoce_privacy::Ledger;
use sottovoce_run::peer::{HeardNeighbour, PeerFile, PeerTask, Recalled, Saved, load, load_without};
use sottovoce_task::error::Mistake;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

pub const KEY_FILE: &str = "peer.key";

/// A key file is much shorter.
const KEY_BYTES_MAX: u64 = 4096;

/// Makes a key and writes it where nobody else can read it.
pub fn write_key(file: &Path) -> Result<Identity, Mistake> {
    let identity = Identity::generate();
    let hex: String = identity.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let written = private().write(true).create_new(true).open(file).and_then(|mut opened| {
        opened.write_all(format!("{hex}\n").as_bytes())?;
        opened.sync_all()
    });
    written.map_err(|error| Mistake::io(file, "written", &error))?;
    Ok(identity)
}

/// Puts a text in place of a file, for the owner alone. A file with other permissions is not reused.
pub fn replace(file: &Path, text: &str) -> Result<(), Mistake> {
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    let new = PathBuf::from(name);
    let _ = std::fs::remove_file(&new);
    let written = private()
        .write(true)
        .create_new(true)
        .open(&new)
        .and_then(|mut opened| opened.write_all(text.as_bytes()))
        .and_then(|()| std::fs::rename(&new, file));
    written.map_err(|error| Mistake::io(file, "written", &error))
}

/// Reads a key, unless others could read it too.
pub fn read_key(file: &Path) -> Result<Identity, Mistake> {
    let unreadable = |error: std::io::Error| Mistake::io(file, "read", &error);
    let opened = std::fs::File::open(file).map_err(unreadable)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = opened.metadata().map_err(unreadable)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            let what = format!("is a secret key that others can read (permissions {mode:04o}); accepted: chmod 600");
            return Err(Mistake::file(file, what));
        }
    }
    let mut text = String::new();
    let no_key = || Mistake::file(file, "is no key of a peer; accepted: a file that `sottovoce peer init` wrote");
    opened.take(KEY_BYTES_MAX).read_to_string(&mut text).map_err(|_| no_key())?;
    let digits = text.trim().as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(|pair| byte(pair).filter(|_| pair.len() == 2)).collect();
    Identity::from_bytes(&bytes.ok_or_else(no_key)?).map_err(|_| no_key())
}

/// A peer's task and its own data, as its running instance has them: records that were over their limit when it was charged are void.
pub fn load_peer(file: &PeerFile) -> Result<PeerTask, Mistake> {
    let one = load(file)?;
    match crate::budget::recorded(file, &one)?.filter(|charged| charged.has_ids()) {
        None => Ok(one),
        Some(charged) => load_without(file, &|id| charged.is_void(id)),
    }
}

/// The last step in a peer's store, running or not; none before its first. It must be this peer's, with this task and these data.
pub fn look(file: &PeerFile, one: &PeerTask, identity: &Identity) -> Result<Option<StoredStep>, Mistake> {
    if !file.store.exists() {
        return Ok(None);
    }
    let refused = |error: &dyn std::fmt::Display| Mistake::file(&file.store, error.to_string());
    let looked = Store::look(&mut Glance::at(&file.store)).map_err(|error| refused(&error))?;
    let Some((found, step)) = looked else { return Ok(None) };
    Store::<Glance>::check(&owner(one, identity), &found).map_err(|error| refused(&error))?;
    Ok(step)
}

/// A step as the models are made from it.
pub fn saved(step: &StoredStep) -> Saved<'_> {
    Saved {
        state: &step.state,
        neighbours: &step.neighbours,
        ledger: &step.ledger,
        post: step.post.as_ref().map(|post| &post.values[..]),
    }
}

/// What a step holds of each neighbour of a peer file. Whoever has a new key is somebody else.
pub fn heard<'s>(step: &'s StoredStep, file: &PeerFile) -> Vec<HeardNeighbour<'s>> {
    let heard = |neighbour: &sottovoce_run::peer::Neighbour| {
        let known = step.heard.get(&neighbour.agent).filter(|known| known.key == neighbour.key);
        known.map_or(HeardNeighbour::default(), |known| HeardNeighbour {
            post: known.post.as_ref().map(|(_, values)| &values[..]),
            points: known.points,
        })
    };
    file.neighbours.iter().map(heard).collect()
}

/// What a peer has for its owner.
pub struct Kept {
    /// What it told others last.
    pub told: Option<Vec<f64>>,
    /// Its own model, and the weights that it has learned.
    pub recalled: Recalled,
    /// The model it keeps at home, where the task has one and it was asked for.
    pub home: Option<Vec<f64>>,
    /// What it has released.
    pub ledger: Ledger,
}

/// Reads what a peer has for its owner from its store; none before its first step. Its home model is made of exact data, so it is made only
/// for whoever asks.
pub fn kept(file: &PeerFile, with_home: bool) -> Result<Option<Kept>, Mistake> {
    let one = load_peer(file)?;
    let Some(step) = look(file, &one, &read_key(&file.key)?)? else { return Ok(None) };
    let heard = heard(&step, file);
    let recalled = one.recall(saved(&step), &heard)?;
    let told = one.told_model(saved(&step), &heard)?;
    let home = if with_home { one.home_model(saved(&step), &heard)? } else { None };
    Ok(Some(Kept { told, recalled, home, ledger: step.ledger }))
}
