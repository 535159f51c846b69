//! `sottovoce peer ledger`.

use super::folder::{load_peer, look, read_key};
use crate::{Output, screen};
use sottovoce_lab::error::Mistake;
use sottovoce_lab::ledger_file::{Signature, lines};
use sottovoce_lab::peer::{PeerFile, hex};
use std::path::PathBuf;

/// What the peer has released, signed with its key: lines of ledger.jsonl, and the signature as the last
///
/// `privacy epsilon --ledger` verifies it. What a peer signs is what it says: a signature proves who said it, not that it is true.
#[derive(clap::Args)]
pub struct Arguments {
    /// The peer's folder
    folder: PathBuf,

    /// The file to write [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub fn run(arguments: &Arguments, output: Output) -> Result<(), Mistake> {
    let file = PeerFile::read(&arguments.folder)?;
    let one = load_peer(&file)?;
    let identity = read_key(&file.key)?;
    let ledger = look(&file, &one, &identity)?.unwrap_or_default().ledger;
    let lines = lines([(&*file.agent, &ledger)].into_iter());
    let (key, task) = (identity.id().to_string(), hex(&one.task));
    let signed = identity.sign(&Signature::message(&key, &task, lines.as_bytes()));
    let signature = signed.iter().map(|byte| format!("{byte:02x}")).collect();
    let last = serde_json::to_string(&Signature { signature, key, task }).expect("it is JSON");
    match &arguments.out {
        None => screen::say(format!("{lines}{last}")),
        Some(out) => {
            std::fs::write(out, format!("{lines}{last}\n")).map_err(|error| Mistake::io(out, "written", &error))?;
            if output.quiet || output.json {
                return Ok(());
            }
            screen::say(format!("{} releases, signed: {}", ledger.releases(), out.display()))
        }
    }
}
