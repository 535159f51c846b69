//! `peer.toml`: one peer's own settings.

use serde::Deserialize;
use sottovoce_task::error::{Mistake, quote};
use sottovoce_task::keys::{self, ABOVE_0, COUNT, Key, Kind, Range, key};
use sottovoce_task::rows::Format;
use sottovoce_task::task::{
    TASK_BYTES_MAX,
    check::{self, Lines},
};
use std::io::Read;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// The name of the file in a peer's folder.
pub const PEER_FILE: &str = "peer.toml";

/// The folder of an odometer, beside the data, where a peer file names none.
pub const BUDGET_FOLDER: &str = "sottovoce-budget";

/// Sums of products of such numbers stay finite.
const WEIGHTS: std::ops::RangeInclusive<f64> = 1e-75..=1e75;

/// The most seconds between two wakes: a month.
const INTERVAL_MAX: f64 = 2_678_400.0;

/// Every key of a peer file.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    key("task", Kind::File, "required", "The task file that all peers share. The files of its [data] are not read, nor is its [graph], unless it is learned."),
    key("agent", Kind::Text, "required", "This agent's name."),
    key("key", Kind::File, "`\"peer.key\"`", "The secret key, as `peer init` writes it. Nobody else may read it: permissions 0600."),
    key("data", Kind::File, "required", "This agent's own points: a `.csv` or `.csv.gz` with the header `agent,label,<feature>...`, all rows of this agent. The features and their order are part of the task."),
    key("test", Kind::File, "none", "Points to test on, in the same form. They are never trained on, and nothing is sent about them."),
    key("store", Kind::File, "`\"store\"`", "The folder with the ledger and the state. It is the budget's memory: back it up, never roll it back."),
    key("budget", Kind::File, "`sottovoce-budget` beside `data`", "The folder with the [odometer](privacy.md#budgets-over-tasks) of these data, shared by all tasks on them. Never delete it while the data are in use."),
    key("listen", Kind::Texts, "`[\"/ip4/0.0.0.0/tcp/4001\"]`", "Where to listen, as multiaddresses. Port 0 takes any."),
    key("external", Kind::Texts, "none", "Addresses at which others reach this peer though it does not listen there, as behind a forwarded port."),
    key("interval", Kind::Number(Range::above_up_to(0.0, INTERVAL_MAX)), "1", "Mean seconds between two wakes."),
    key("frames-per-second", Kind::Integer(1, 10_000), "50", "The most messages in a second to one neighbour."),
    key("admin", Kind::Text, "`\"127.0.0.1:0\"`", "Where `peer status` and `peer stop` ask: an address on loopback. Port 0 takes any."),
    key("listed-only", Kind::Switch, "`true`", "Whether connections with anyone but neighbours and relays are refused."),
    key("mdns", Kind::Switch, "`false`", "Whether to look for neighbours in the local network, and to be found there."),
    key("relays", Kind::Texts, "none", "Relays through which this peer can be reached, like `/dns/relay.example.org/tcp/4001/p2p/<its id>`."),
    key("serve-relay", Kind::Switch, "`false`", "Whether to be a relay for others, within small limits; needs listed-only = false."),
    key("witnesses", Kind::Integer(1, COUNT), "1; all with [privacy] and a learned graph, a ring or gossip in rounds", "How many neighbours must tell what they saw before anything new is said; all, where there are fewer."),
    key("pull-limit", Kind::Number(ABOVE_0), "none", "How far from this peer's model a neighbour's counts; what is further away is moved to that distance. Only for algorithms that post."),
    key("neighbours", Kind::Tables, "none", "Those to learn with, one `[[neighbours]]` each. Both sides must list each other, with the same weight. Where the graph is learned, and on a ring: all other members."),
    key("neighbours.agent", Kind::Text, "required", "The neighbour's name."),
    key("neighbours.key", Kind::Text, "required", "The neighbour's id, as its `peer init` prints it."),
    key("neighbours.weight", Kind::Number(ABOVE_0), "1", "The weight of the edge. Where the graph is learned, and on a ring, it is 1, and means nothing."),
    key("neighbours.addresses", Kind::Texts, "none", "Where it may be found, like `/ip4/192.0.2.7/tcp/4001`. One side's knowing is enough."),
];

/// A checked peer file: defaults filled in, paths absolute. What is text here is checked by whoever understands it.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerFile {
    /// The file it was read from, for messages.
    pub source: PathBuf,
    /// The shared task.
    pub task: PathBuf,
    /// Its name.
    pub agent: String,
    /// The file with the secret key.
    pub key: PathBuf,
    /// Its points.
    pub data: PathBuf,
    /// Its test points.
    pub test: Option<PathBuf>,
    /// The folder of its store.
    pub store: PathBuf,
    /// The folder of its data's odometer.
    pub budget: PathBuf,
    /// Multiaddresses.
    pub listen: Vec<String>,
    /// Multiaddresses.
    pub external: Vec<String>,
    /// Mean seconds between two wakes.
    pub interval: f64,
    /// Messages to one neighbour.
    pub frames_per_second: u32,
    /// Where its owner asks.
    pub admin: SocketAddr,
    /// Whether strangers are refused.
    pub listed_only: bool,
    /// Whether to look around in the local network.
    pub mdns: bool,
    /// Multiaddresses with ids.
    pub relays: Vec<String>,
    /// Whether to be one.
    pub serve_relay: bool,
    /// How many neighbours must have told what they saw; `None`: as many as the task needs.
    pub witnesses: Option<usize>,
    /// How far away a neighbour's post counts.
    pub pull_limit: Option<f64>,
    /// In the order of their names.
    pub neighbours: Vec<Neighbour>,
}

/// Somebody to learn with.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    /// Its name.
    pub agent: String,
    /// Its id, as text.
    pub key: String,
    /// Of the edge.
    pub weight: f64,
    /// Multiaddresses.
    pub addresses: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Config {
    task: Option<String>,
    agent: Option<String>,
    key: Option<String>,
    data: Option<String>,
    test: Option<String>,
    store: Option<String>,
    budget: Option<String>,
    listen: Option<Vec<String>>,
    external: Option<Vec<String>>,
    interval: Option<f64>,
    frames_per_second: Option<u32>,
    admin: Option<String>,
    listed_only: Option<bool>,
    mdns: Option<bool>,
    relays: Option<Vec<String>>,
    serve_relay: Option<bool>,
    witnesses: Option<usize>,
    pull_limit: Option<f64>,
    neighbours: Option<Vec<NeighbourConfig>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct NeighbourConfig {
    agent: Option<String>,
    key: Option<String>,
    weight: Option<f64>,
    addresses: Option<Vec<String>>,
}

/// The neighbours in the order of their names; each once, with a key of its own.
fn neighbours(
    written: Vec<NeighbourConfig>,
    agent: &str,
    missing: impl Fn(&str) -> Mistake,
    lines: &Lines<'_>,
) -> Result<Vec<Neighbour>, Mistake> {
    let mut neighbours = Vec::new();
    for neighbour in written {
        let agent = neighbour.agent.ok_or_else(|| missing("neighbours.agent"))?;
        let key = neighbour.key.ok_or_else(|| missing("neighbours.key"))?;
        let (weight, addresses) = (neighbour.weight.unwrap_or(1.0), neighbour.addresses.unwrap_or_default());
        if !WEIGHTS.contains(&weight) {
            let what = format!("neighbours.weight is {weight}; accepted: a number from 1e-75 to 1e75");
            return Err(lines.mistake("neighbours", what));
        }
        neighbours.push(Neighbour { agent, key, weight, addresses });
    }
    neighbours.sort_by(|a: &Neighbour, b: &Neighbour| a.agent.cmp(&b.agent));
    let refuse = |what: String| Err(lines.mistake("neighbours", what));
    for (k, neighbour) in neighbours.iter().enumerate() {
        let name = quote(neighbour.agent.as_bytes());
        if neighbour.agent == agent {
            return refuse(format!("neighbours: {name} is this agent itself; accepted: other agents"));
        }
        if neighbours[..k].iter().any(|other| other.agent == neighbour.agent) {
            return refuse(format!("neighbours: {name} is listed twice; accepted: each neighbour once"));
        }
        if neighbours[..k].iter().any(|other| other.key == neighbour.key) {
            return refuse(format!("neighbours: the key of {name} is listed twice; accepted: a key for each"));
        }
    }
    Ok(neighbours)
}

impl PeerFile {
    /// Reads the `peer.toml` of a peer's folder.
    pub fn read(folder: &Path) -> Result<Self, Mistake> {
        let file = folder.join(PEER_FILE);
        let unreadable = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Mistake::file(folder, "holds no peer.toml; accepted: a folder that `sottovoce peer init` made")
            }
            _ => Mistake::io(&file, "read", &error),
        };
        let mut text = String::new();
        let opened = std::fs::File::open(&file).map_err(unreadable)?;
        opened.take(TASK_BYTES_MAX + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > TASK_BYTES_MAX {
            return Err(Mistake::file(&file, format!("a peer file has at most {TASK_BYTES_MAX} bytes")));
        }
        PeerFile::parse(&text, &file)
    }

    /// Resolves the text of a peer file; relative paths start from the folder of `file`.
    pub fn parse(text: &str, file: &Path) -> Result<Self, Mistake> {
        let lines = check::check(text, file, KEYS)?;
        let config: Config = toml::from_str(text).map_err(|error| check::syntax(text, file, &error))?;
        let missing = |key: &str| {
            let accepts = keys::find_in(KEYS, key).map_or(String::new(), |key| format!("; accepted: {}", key.kind));
            Mistake::file(file, format!("{key} is missing{accepts}"))
        };
        let folder = file.parent().unwrap_or(Path::new(""));
        let path = |written: String, key: &str| {
            std::path::absolute(folder.join(written)).map_err(|error| lines.mistake(key, format!("{key}: {error}")))
        };
        let points = |written: String, key: &str| {
            let file = path(written, key)?;
            match Format::of(&file) {
                Some(Format { libsvm: false, .. }) => Ok(file),
                _ => Err(lines.mistake(key, format!("{key}; accepted: a file named .csv or .csv.gz"))),
            }
        };
        let agent = config.agent.ok_or_else(|| missing("agent"))?;
        let admin = config.admin.unwrap_or_else(|| "127.0.0.1:0".to_owned());
        let admin: SocketAddr = admin.parse().map_err(|_| {
            let what = format!("admin is {}; accepted: an address like 127.0.0.1:0", quote(admin.as_bytes()));
            lines.mistake("admin", what)
        })?;
        let neighbours = neighbours(config.neighbours.unwrap_or_default(), &agent, missing, &lines)?;
        let listed_only = config.listed_only.unwrap_or(true);
        let serve_relay = config.serve_relay.unwrap_or(false);
        if serve_relay && listed_only && config.listed_only.is_some() {
            let what =
                "serve-relay = true is of no use to others with listed-only = true; accepted: listed-only = false";
            return Err(lines.mistake("serve-relay", what));
        }
        let data = points(config.data.ok_or_else(|| missing("data"))?, "data")?;
        // A link to the data is no other data.
        let place = std::fs::canonicalize(&data).unwrap_or_else(|_| data.clone());
        let beside = place.parent().unwrap_or(Path::new("")).join(BUDGET_FOLDER);
        let or_default = |written: Option<String>, default: &str| written.unwrap_or_else(|| default.to_owned());
        Ok(PeerFile {
            source: file.to_owned(),
            task: path(config.task.ok_or_else(|| missing("task"))?, "task")?,
            key: path(or_default(config.key, "peer.key"), "key")?,
            data,
            test: config.test.map(|test| points(test, "test")).transpose()?,
            store: path(or_default(config.store, "store"), "store")?,
            budget: config.budget.map_or(Ok(beside), |budget| path(budget, "budget"))?,
            listen: config.listen.unwrap_or_else(|| vec!["/ip4/0.0.0.0/tcp/4001".to_owned()]),
            external: config.external.unwrap_or_default(),
            interval: config.interval.unwrap_or(1.0),
            frames_per_second: config.frames_per_second.unwrap_or(50),
            admin,
            // Whoever serves as a relay meets strangers.
            listed_only: listed_only && !serve_relay,
            mdns: config.mdns.unwrap_or(false),
            relays: config.relays.unwrap_or_default(),
            serve_relay,
            witnesses: config.witnesses,
            pull_limit: config.pull_limit,
            neighbours,
            agent,
        })
    }
}

/// The table of keys as the documentation shows it.
pub fn reference_markdown() -> String {
    keys::markdown(KEYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "task = \"../task.toml\"\nagent = \"ann\"\ndata = \"data.csv\"\n\
                        [[neighbours]]\nagent = \"bob\"\nkey = \"12D3b\"\nweight = 2\naddresses = [\"/ip4/10.0.0.2/tcp/4001\"]\n\
                        [[neighbours]]\nagent = \"abe\"\nkey = \"12D3a\"\n";

    fn parse(text: &str) -> Result<PeerFile, Mistake> {
        PeerFile::parse(text, Path::new("/peers/ann/peer.toml"))
    }

    #[test]
    fn a_short_file_is_enough() {
        let file = parse(GOOD).expect("good");
        assert_eq!((file.agent.as_str(), file.interval, file.witnesses, file.listed_only), ("ann", 1.0, None, true));
        assert_eq!(file.store, Path::new("/peers/ann/store"));
        assert_eq!(file.budget, Path::new("/peers/ann/sottovoce-budget"));
        let neighbours: Vec<_> = file.neighbours.iter().map(|n| (n.agent.as_str(), n.weight)).collect();
        assert_eq!(neighbours, [("abe", 1.0), ("bob", 2.0)], "in the order of names");
    }

    #[test]
    fn mistakes_are_one_line_that_names_the_key() {
        for (from, to, says) in [
            ("agent = \"ann\"", "agnet = \"ann\"", "nearest known key is agent"),
            ("weight = 2", "wieght = 2", "nearest known key is neighbours.weight"),
            ("weight = 2", "weight = 0", "neighbours.weight is 0"),
            ("data = \"data.csv\"", "data = \"data.svm\"", "data; accepted: a file named .csv"),
            ("data = \"data.csv\"\n", "", "data is missing"),
            ("agent = \"bob\"", "agent = \"abe\"", "listed twice"),
            ("agent = \"bob\"", "agent = \"ann\"", "itself"),
            ("12D3b", "12D3a", "key of"),
            ("agent = \"ann\"", "agent = \"ann\"\nadmin = \"here\"", "admin is \"here\""),
            ("agent = \"ann\"", "agent = \"ann\"\nlisten = [1]", "listen is an array"),
            ("agent = \"ann\"", "agent = \"ann\"\ninterval = 0", "interval is 0"),
            ("agent = \"ann\"", "agent = \"ann\"\nlisted-only = true\nserve-relay = true", "listed-only = false"),
        ] {
            assert!(GOOD.contains(from), "{from}");
            let said = parse(&GOOD.replacen(from, to, 1)).expect_err(to).to_string();
            assert!(said.contains(says) && said.lines().count() == 1, "{to}: {said}");
        }
    }

    #[test]
    fn the_documentation_holds_this_very_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/peer.md");
        let page = std::fs::read_to_string(path).expect("docs/peer.md exists");
        let start = page.find("| key |").expect("docs/peer.md holds a table of keys");
        let table: String = page[start..].split_inclusive('\n').take_while(|line| line.starts_with('|')).collect();
        let expected = reference_markdown();
        assert!(table == expected, "docs/peer.md is behind the code; its table should be:\n{expected}");
    }
}
