//! `sottovoce peer ledger`.

use super::folder::{load_peer, look, read_key};
use crate::{Output, screen};
use sottovoce_run::ledger_file::{Header, Signature, lines};
use sottovoce_run::peer::{PeerFile, hex};
use sottovoce_task::error::Mistake;
use sottovoce_task::task::Unit;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// What the peer has released, signed with its key: lines of ledger.jsonl, and the signature as the last
///
/// `privacy epsilon --ledger` verifies it. What a peer signs is what it says: a signature proves who said it, not that it is true.
#[derive(clap::Args)]
pub struct Arguments {
    /// The peer's folder
    folder: PathBuf,

    /// The file to write, which must be new [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub fn run(arguments: &Arguments, output: Output) -> Result<(), Mistake> {
    let file = PeerFile::read(&arguments.folder)?;
    let one = load_peer(&file)?;
    let identity = read_key(&file.key)?;
    let ledger = look(&file, &one, &identity)?.unwrap_or_default().ledger;
    let unit = one.loaded.task.privacy.map_or(Unit::Record, |privacy| privacy.unit);
    let header = Header::of(unit, &one.loaded.observer());
    let lines = lines(header.as_ref(), [(&*file.agent, &ledger)].into_iter());
    let (key, task) = (identity.id().to_string(), hex(&one.task));
    let signed = identity.sign(&Signature::message(&key, &task, lines.as_bytes()));
    let signature = signed.iter().map(|byte| format!("{byte:02x}")).collect();
    let last = serde_json::to_string(&Signature { signature, key, task }).expect("it is JSON");
    match &arguments.out {
        None => screen::say(format!("{lines}{last}")),
        Some(out) => {
            write_new(out, &format!("{lines}{last}\n"))?;
            if output.quiet || output.json {
                return Ok(());
            }
            let s = if ledger.releases() == 1 { "" } else { "s" };
            screen::say(format!("{} release{s}, signed: {}", ledger.releases(), out.display()))
        }
    }
}

/// Writes a file that was not there: a wrong name must not cost a key, a store or an older ledger.
fn write_new(file: &Path, text: &str) -> Result<(), Mistake> {
    let opened = OpenOptions::new().write(true).create_new(true).open(file);
    opened.and_then(|mut opened| opened.write_all(text.as_bytes())).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Mistake::file(file, "exists already; accepted: the name of a new file"),
        _ => Mistake::io(file, "written", &error),
    })
}
