//! `sottovoce peer init`.

use super::folder::{KEY_FILE, write_key};
use crate::{Output, screen};
use sottovoce_net::Multiaddr;
use sottovoce_net::disk::{make_private_folder, private};
use sottovoce_run::peer::{BUDGET_FOLDER, PEER_FILE, PeerFile, PeerTask, hex, lists_everyone, load};
use sottovoce_task::error::Mistake;
use std::io::Write;
use std::path::{Path, PathBuf};

/// What others add to learn with this peer.
const CARD_FILE: &str = "card.toml";

#[derive(clap::Args)]
pub struct Arguments {
    /// The folder to make
    folder: PathBuf,

    /// The task file that all peers share
    #[arg(long, value_name = "FILE")]
    task: PathBuf,

    /// This agent's name
    #[arg(long, value_name = "NAME")]
    agent: String,

    /// This agent's own points: a csv file whose header is agent,label and the names of features; agent, the id and label where data.record
    /// of the task names a column of ids
    #[arg(long, value_name = "FILE")]
    data: PathBuf,

    /// Points to test on, in the same form
    #[arg(long, value_name = "FILE")]
    test: Option<PathBuf>,

    /// Where to listen, as a multiaddress; can be given more than once
    #[arg(long, value_name = "ADDRESS", default_value = "/ip4/0.0.0.0/tcp/4001")]
    listen: Vec<String>,

    /// An address at which others reach this peer, for the lines that they paste; can be given more than once
    #[arg(long, value_name = "ADDRESS")]
    external: Vec<String>,

    /// Mean seconds between two wakes
    #[arg(long, value_name = "SECONDS", default_value_t = 1.0)]
    interval: f64,
}

pub fn run(arguments: &Arguments, output: Output) -> Result<(), Mistake> {
    let Arguments { folder, task, agent, data, test, listen, external, interval } = arguments;
    let unusable = |error: &std::io::Error| Mistake::io(folder, "created", error);
    if folder.join(PEER_FILE).exists() || folder.join(KEY_FILE).exists() {
        return Err(Mistake::file(folder, "holds a peer already; accepted: a new folder"));
    }
    for address in listen.iter().chain(external) {
        parse_address(address, "--listen and --external", None)?;
    }
    let place = std::path::absolute(folder).map_err(|error| unusable(&error))?;
    let text = peer_text(&PeerText {
        task: &relative(task, &place)?,
        agent,
        data: &relative(data, &place)?,
        test: test.as_deref().map(|test| relative(test, &place)).transpose()?.as_deref(),
        listen,
        external,
        interval: *interval,
    });
    let is_new = !folder.exists();
    make_private_folder(folder).map_err(|error| unusable(&error))?;
    // Everything that start would refuse is refused now, and nothing is left.
    let loaded = PeerFile::parse(&text, &place.join(PEER_FILE)).and_then(|file| load(&file));
    let one = loaded.inspect_err(|_| {
        if is_new {
            // It is empty; if it cannot be removed, it stays, and that is no second mistake.
            let _ = std::fs::remove_dir(folder);
        }
    })?;
    let identity = write_key(&folder.join(KEY_FILE))?;
    let file = folder.join(PEER_FILE);
    let written =
        private().write(true).create_new(true).open(&file).and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| Mistake::io(&file, "written", &error))?;
    let card = folder.join(CARD_FILE);
    let id = identity.id().to_string();
    let snippet = neighbour_snippet(agent, &id, 1.0, &shared_addresses(listen, external));
    std::fs::write(&card, &snippet).map_err(|error| Mistake::io(&card, "written", &error))?;
    screen::warn(output, &warnings(&one));
    if output.json {
        let task = hex(&one.task);
        screen::say(
            serde_json::json!({ "folder": folder, "agent": agent, "id": id, "task": task, "neighbour": snippet }),
        )?;
    } else if !output.quiet {
        // Where the graph is learned, all must list the same members.
        let whose = if lists_everyone(&one.loaded.task) { "each other member" } else { "each neighbour" };
        screen::say(format!(
            "Made {0}: peer.toml, peer.key (keep it secret), card.toml (give it to those you learn with).\n\
             Task digest {1}: the same for all, or peers cannot talk.\n\n\
             The card: agree on the weight, and see that the address is one at which others reach this machine.\n\n{snippet}\n\
             Next: sottovoce peer add {0} CARD, with the card of {whose}; then sottovoce peer start {0}",
            folder.display(),
            hex(&one.task),
        ))?;
    }
    Ok(())
}

/// What a careful owner should know about the budget of a private task.
pub fn warnings(one: &PeerTask) -> Vec<String> {
    let loaded = &one.loaded;
    loaded.task.privacy.map_or(Vec::new(), |privacy| sottovoce_run::private::warnings(&privacy, &loaded.problem))
}

/// A path as a peer file in `folder` writes it.
fn relative(path: &Path, folder: &Path) -> Result<String, Mistake> {
    let cannot = |error: std::io::Error| Mistake::io(path, "used", &error);
    let path = std::path::absolute(path).map_err(cannot)?;
    let short = match (path.strip_prefix(folder), folder.parent().map(|parent| path.strip_prefix(parent))) {
        (Ok(inside), _) => inside.to_owned(),
        (_, Some(Ok(beside))) => Path::new("..").join(beside),
        _ => path.clone(),
    };
    short.to_str().map(str::to_owned).ok_or_else(|| Mistake::file(&path, "lies in a folder whose name is not UTF-8"))
}

/// A multiaddress of a peer file, or a line that says what would be one.
pub fn parse_address(text: &str, key: &str, file: Option<&Path>) -> Result<Multiaddr, Mistake> {
    text.parse().map_err(|_| {
        let what = format!("{key}: {text:?} is no multiaddress; accepted: one like /ip4/192.0.2.7/tcp/4001");
        file.map_or_else(|| Mistake::new(what.clone()), |file| Mistake::file(file, what.clone()))
    })
}

/// Addresses that mean something to others.
fn shared_addresses(listen: &[String], external: &[String]) -> Vec<String> {
    if !external.is_empty() {
        return external.to_vec();
    }
    listen
        .iter()
        .map(|address| address.replace("/0.0.0.0/", "/ADDRESS/").replace("/ip6/::/", "/ip6/ADDRESS/"))
        .collect()
}

/// What others paste to learn with a peer.
pub fn neighbour_snippet(agent: &str, id: &str, weight: f64, addresses: &[String]) -> String {
    format!(
        "[[neighbours]]\nagent = {}\nkey = {}\nweight = {weight:?}\naddresses = {}\n",
        text(agent),
        text(id),
        list(addresses)
    )
}

/// What a new peer file says.
pub struct PeerText<'t> {
    pub task: &'t str,
    pub agent: &'t str,
    pub data: &'t str,
    pub test: Option<&'t str>,
    pub listen: &'t [String],
    pub external: &'t [String],
    pub interval: f64,
}

/// A new peer file, with comments.
pub fn peer_text(peer: &PeerText<'_>) -> String {
    let PeerText { task, agent, data, test, listen, external, interval } = *peer;
    let optional = |key: &str, value: Option<String>, example: &str| match value {
        Some(value) => format!("{key} = {value}\n"),
        None => format!("# {key} = {example}\n"),
    };
    format!(
        "# One peer of a network that learns together. docs/peer.md explains every key.\n\
         task = {}   # the same file for all\n\
         agent = {}\n\
         data = {}   # this agent's own points; they never leave this machine\n\
         {}\
         # budget = \"{BUDGET_FOLDER}\"   # the odometer of these data; where this says nothing, {BUDGET_FOLDER} beside data\n\
         \n\
         listen = {}\n\
         {}\
         interval = {interval:?}   # mean seconds between two wakes\n\
         \n\
         # One table for each peer to learn with, as its `peer init` prints it. Both sides list each other, with the same weight.\n",
        text(task),
        text(agent),
        text(data),
        optional("test", test.map(text), "\"test.csv\""),
        list(listen),
        optional("external", (!external.is_empty()).then(|| list(external)), "[\"/dns/peer.example.org/tcp/4001\"]"),
    )
}

/// Text as TOML writes it. JSON's escapes are a part of TOML's.
fn text(text: &str) -> String {
    serde_json::to_string(text).expect("text is JSON")
}

fn list(texts: &[String]) -> String {
    format!("[{}]", texts.iter().map(|one| text(one)).collect::<Vec<_>>().join(", "))
}
