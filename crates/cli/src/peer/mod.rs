//! `sottovoce peer`: one agent of a task, as a process on a real network.

mod admin;
mod folder;
mod init;
mod ledger;
mod members;
mod predict;
mod start;
mod status;

pub use admin::{Admin, Asked};
pub use folder::{KEY_FILE, kept, read_key, write_key};
pub use init::{PeerText, neighbour_snippet, peer_text};
pub use start::{group, rules};

use crate::Output;
use clap::Subcommand;
use sottovoce_run::train::Halt;
use std::path::PathBuf;

/// Take part in a real network: one agent, on this machine, with its own data
///
/// A peer is a folder: peer.toml says what it is and with whom it learns, peer.key is its secret key, card.toml is for others, and
/// store/ remembers what it has released. `init` makes the folder; exchange cards with those you want to learn with, and `add`
/// theirs; then `start`.
///
/// Data never leave the folder. What does leave is charged to the ledger in store/ first, and a task with `[privacy]` stops at its
/// budget, also after a crash, a reboot or a restore.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    command: PeerCommand,
}

const EXAMPLES: &str = "\
Examples:
  sottovoce peer init north --task task.toml --agent north --data north.csv
  sottovoce peer add north card-of-south.toml
  sottovoce peer start north
  sottovoce peer status north
  sottovoce peer predict north new-patients.csv
  sottovoce peer stop north";

#[derive(Subcommand)]
enum PeerCommand {
    /// Make a peer's folder: its key, its peer.toml
    Init(init::Arguments),
    /// Learn with another peer: add its card to peer.toml
    Add(members::AddArguments),
    /// Learn without a neighbour: take it out of peer.toml
    Remove(members::RemoveArguments),
    /// Run the peer until Ctrl-C, SIGTERM or `peer stop`
    Start(start::Arguments),
    /// How a peer is doing, what it has spent, whom it hears; also when it does not run
    Status(status::Arguments),
    Predict(predict::Arguments),
    Ledger(ledger::Arguments),
    /// End a running peer: it saves, and says so when it has ended
    Stop(StopArguments),
}

#[derive(clap::Args)]
struct StopArguments {
    /// The peer's folder
    folder: PathBuf,
}

pub fn run(arguments: &Arguments, output: Output) -> Result<(), Halt> {
    match &arguments.command {
        PeerCommand::Init(arguments) => init::run(arguments, output)?,
        PeerCommand::Add(arguments) => members::add(arguments, output)?,
        PeerCommand::Remove(arguments) => members::remove(arguments, output)?,
        PeerCommand::Start(arguments) => start::run(arguments, output)?,
        PeerCommand::Status(arguments) => status::run(arguments, output)?,
        PeerCommand::Predict(arguments) => predict::run(arguments, output)?,
        PeerCommand::Ledger(arguments) => ledger::run(arguments, output)?,
        PeerCommand::Stop(arguments) => {
            admin::stop(&arguments.folder)?;
            if !output.quiet {
                crate::screen::say(if output.json { "{\"stopped\":true}" } else { "Stopped." })?;
            }
        }
    }
    Ok(())
}
