//! `sottovoce peer start`.

use super::admin::{Admin, AdminFile};
use super::folder::{self, read_key};
use super::init::{parse_address, warnings};
use crate::owner::owner;
use crate::{Output, budget};
use sottovoce_core::{Algorithm, Wire};
use sottovoce_net::admin::{Account, AdminServer, Ask};
use sottovoce_net::disk::FileDisk;
use sottovoce_net::frame::frame_bytes_max;
use sottovoce_net::group::Group;
use sottovoce_net::node::{Node, Rules};
use sottovoce_net::peer::{Peer, PeerSettings};
use sottovoce_net::seat::Seat;
use sottovoce_net::transport::{self, Identity};
use sottovoce_net::{Key, Multiaddr};
use sottovoce_privacy::Ledger;
use sottovoce_run::peer::{PeerFile, PeerTask, hex, lists_everyone, load};
use sottovoce_task::algorithms::{Access, Visitor, with_algorithm};
use sottovoce_task::error::Mistake;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// What a private peer keeps for its owner, written when it ends.
pub const HOME_FILE: &str = "home.csv";

#[derive(clap::Args)]
pub struct Arguments {
    /// The peer's folder
    folder: PathBuf,

    /// How to log to standard error
    #[arg(long, value_enum, default_value_t = Log::Text)]
    log: Log,

    /// Log more: each connection, each refusal
    #[arg(long)]
    verbose: bool,

    /// End when standard input is closed, as when the program that started this one has gone
    #[arg(long, hide = true)]
    with_parent: bool,

    /// The instance under which the program that started this one has charged this peer's rows
    #[arg(long, hide = true, value_parser = parse_instance)]
    charged: Option<[u8; 16]>,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Log {
    /// Lines for people
    Text,
    /// One JSON object a line, for programs
    Json,
}

pub fn run(arguments: &Arguments, output: Output) -> Result<(), Mistake> {
    let file = PeerFile::read(&arguments.folder)?;
    let one = load(&file)?;
    let identity = read_key(&file.key)?;
    if file.neighbours.is_empty() {
        let what =
            "there is nobody to learn with; accepted: at least one [[neighbours]], as `sottovoce peer add` writes it";
        return Err(Mistake::file(&file.source, what));
    }
    one.loaded.check_sizes()?;
    log(arguments, output);
    let visitor = Run { arguments, file: &file, one: &one, identity };
    with_algorithm(&one.loaded, one.loaded.task.algorithm, visitor)?
}

/// 32 hexadecimal digits.
fn parse_instance(text: &str) -> Result<[u8; 16], String> {
    let number = u128::from_str_radix(text, 16).map_err(|error| error.to_string())?;
    Ok(number.to_be_bytes())
}

fn log(arguments: &Arguments, output: Output) {
    let own = match (output.quiet, arguments.verbose) {
        (true, _) => LevelFilter::WARN,
        (_, true) => LevelFilter::DEBUG,
        _ => LevelFilter::INFO,
    };
    let targets = Targets::new().with_default(LevelFilter::ERROR).with_target("sottovoce", own);
    let targets = targets.with_target("sottovoce_net", own);
    let registry = tracing_subscriber::registry().with(targets);
    let fmt = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    // A process has one log; a second one would be a test's.
    let _ = match arguments.log {
        Log::Json => registry.with(fmt.json().flatten_event(true)).try_init(),
        Log::Text => registry.with(fmt.with_target(false)).try_init(),
    };
}

/// Runs the peer with its algorithm, whichever it is.
struct Run<'a> {
    arguments: &'a Arguments,
    file: &'a PeerFile,
    one: &'a PeerTask,
    identity: Identity,
}

impl Visitor for Run<'_> {
    type Output = Result<(), Mistake>;

    fn visit<A: Algorithm>(self, algorithm: &A, access: Access<A>) -> Self::Output {
        let Run { arguments, file, one, identity } = self;
        if file.pull_limit.is_some() && <A::Letter<'_> as Wire>::EXISTS {
            let name = one.loaded.task.algorithm.name;
            let what =
                format!("pull-limit is for algorithms that post, and {name} writes letters; accepted: no pull-limit");
            return Err(Mistake::file(&file.source, what));
        }
        let (group, keys) = group(file, one, &identity)?;
        let letter_bytes_max = algorithm.letter_bytes_max((access.data)(&one.loaded, one.me));
        let settings = transport_settings(file, one, algorithm.post_len(), letter_bytes_max)?;
        let mut disk = FileDisk::open(&file.store).map_err(|error| Mistake::io(&file.store, "used", &error))?;
        // PRIVACY: everything that this instance of the task may ever release is charged to the source of the data, and safe, before the node
        // exists that could release it.
        let charged = budget::charge_peer(file, one, &identity, &mut disk, arguments.charged)?;
        let news = charged.as_ref().map_or(Vec::new(), |peer| source_news(file, &peer.charged));
        let (without, seat) = charged.map(|peer| (peer.without, peer.seat)).unzip();
        let without = without.flatten();
        let one = without.as_ref().unwrap_or(one);
        // Who has which coins need not be secret, but must not be the same for all.
        let id = identity.id().to_bytes();
        let seed = u64::from_le_bytes(id[id.len() - 8..].try_into().expect("a key has more than eight bytes"));
        let rules = rules(file, one, seed);
        let node =
            Node::open(algorithm, (access.data)(&one.loaded, one.me), group, rules, &owner(one, &identity), disk)
                .map_err(|fault| Mistake::file(&file.store, fault.to_string()))?;
        // PRIVACY: the store has its first record, and nothing was released yet.
        seat.iter().try_for_each(|seat| budget::stamp_peer(file, seat))?;
        let settings = PeerSettings {
            identity,
            transport: settings,
            keys,
            interval: Duration::from_secs_f64(file.interval),
            frames_per_second: file.frames_per_second,
            seed,
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| Mistake::new(format!("threads cannot be started: {error}")))?;
        runtime.block_on(serve(arguments, (file, one, seat), news, node, settings))
    }
}

/// What a peer does, for whom, and how far it may go; its coins follow from the seed.
pub fn rules(file: &PeerFile, one: &PeerTask, seed: u64) -> Rules {
    Rules {
        seed,
        plan: one.plan(),
        points: one.points(),
        witnesses: one.witnesses(file),
        wakes_max: one.wakes_max(),
        tolerance: one.loaded.task.run.tolerance,
        pull_limit: file.pull_limit,
    }
}

/// What a log says of the source that a peer was charged to.
fn source_news(file: &PeerFile, charged: &budget::Charged) -> Vec<String> {
    // What the record with the most rows has spent is the owner's to know, by `peer status`: a log may be shown.
    let spent = (!charged.has_ids()).then(|| format!("source: {}", charged.said));
    let place = format!("the odometer is {}", file.budget.display());
    [place].into_iter().chain(charged.news.clone()).chain(spent).collect()
}

async fn serve<'d, A: Algorithm>(
    arguments: &Arguments,
    (file, one, seat): (&PeerFile, &PeerTask, Option<Seat>),
    news: Vec<String>,
    node: Node<'d, A, FileDisk>,
    settings: PeerSettings,
) -> Result<(), Mistake> {
    let refused = |error: &dyn std::fmt::Display| Mistake::file(&file.source, error.to_string());
    let token = Admin::token()?;
    let account: Option<Account> = one.loaded.task.privacy.map(|privacy| {
        let observer = one.loaded.observer();
        let account = move |ledger: &Ledger| observer.accountant(privacy.accountant).epsilon(ledger, privacy.delta);
        Arc::new(account) as Account
    });
    let admin = AdminServer::bind(file.admin, token.clone(), account).await.map_err(|error| refused(&error))?;
    let peer = Peer::start(node, settings).await.map_err(|error| refused(&error))?;
    let address = admin.address().map_err(|error| refused(&error))?;
    let _admin_file = AdminFile::write(&arguments.folder, &Admin { address, token, process: std::process::id() })?;
    let owner = peer.owner();
    tokio::spawn(admin.serve(owner.clone()));
    stop_on_signal(owner.clone());
    if arguments.with_parent {
        stop_with_parent(owner);
    }
    // Said when the peer has started, so that a refusal is one line.
    news.iter().for_each(|line| tracing::info!("{line}"));
    warnings(one).iter().for_each(|line| tracing::warn!("{line}"));
    let task = hex(&one.common);
    tracing::info!(agent = file.agent, neighbours = file.neighbours.len(), task, "started");
    let ended = peer.run().await.map_err(|error| refused(&error));
    if ended.is_ok() {
        seat.iter().try_for_each(|seat| budget::stamp_peer(file, seat))?;
        keep_home(&arguments.folder, file, one)?;
    }
    // Before the owner's door is closed, so that whoever saw it close can start the peer again.
    drop(seat);
    ended
}

/// Ctrl-C and SIGTERM end the peer as its owner would.
fn stop_on_signal(owner: mpsc::Sender<Ask>) {
    let installed = ctrlc::set_handler(move || ask_to_stop(&owner));
    // Without a handler the process ends all the same, and its store is whole.
    drop(installed);
}

fn stop_with_parent(owner: mpsc::Sender<Ask>) {
    std::thread::spawn(move || {
        let mut rest = [0; 64];
        while std::io::stdin().read(&mut rest).is_ok_and(|count| count > 0) {}
        ask_to_stop(&owner);
    });
}

fn ask_to_stop(owner: &mpsc::Sender<Ask>) {
    let (reply, stopped) = oneshot::channel();
    // An error means that it is ending already.
    if owner.blocking_send(Ask::Stop(reply)).is_ok() {
        let _ = stopped.blocking_recv();
    }
}

/// Who is there: this peer and its neighbours, in the order of their names, and their keys. Where all members are listed, everyone is a
/// neighbour.
pub fn group(file: &PeerFile, one: &PeerTask, identity: &Identity) -> Result<(Group, Vec<Key>), Mistake> {
    let mut keys = Vec::new();
    for name in &one.loaded.names {
        keys.push(match file.neighbours.iter().find(|neighbour| neighbour.agent == *name) {
            None => identity.id(),
            Some(neighbour) => neighbour.key.parse().map_err(|_| {
                let what = format!(
                    "neighbours.key of {name:?} is {:?}; accepted: the id that its `peer init` prints",
                    neighbour.key
                );
                Mistake::file(&file.source, what)
            })?,
        });
    }
    if let Some(neighbour) = file.neighbours.iter().find(|neighbour| neighbour.key == identity.id().to_string()) {
        let what = format!("neighbours.key of {:?} is this peer's own; accepted: the neighbour's id", neighbour.agent);
        return Err(Mistake::file(&file.source, what));
    }
    let edges = || one.loaded.problem.graph.peers(one.me).iter().collect();
    let neighbours = (!lists_everyone(&one.loaded.task)).then(edges);
    let group = Group {
        names: one.loaded.names.clone(),
        keys: keys.iter().map(Key::to_string).collect(),
        roles: Vec::new(),
        me: one.me,
        neighbours,
        reach: None,
    };
    Ok((group, keys))
}

fn transport_settings(
    file: &PeerFile,
    one: &PeerTask,
    post_len: usize,
    letter_bytes_max: usize,
) -> Result<transport::TransportSettings, Mistake> {
    let addresses = |texts: &[String], key: &str| -> Result<Vec<Multiaddr>, Mistake> {
        texts.iter().map(|text| parse_address(text, key, Some(&file.source))).collect()
    };
    // The number is that of the form of frames.
    let protocol = format!("/sottovoce/2/{}", hex(&one.common));
    let mut settings = transport::TransportSettings::new(protocol, frame_bytes_max(post_len, letter_bytes_max));
    settings.listen = addresses(&file.listen, "listen")?;
    settings.external = addresses(&file.external, "external")?;
    settings.relays = addresses(&file.relays, "relays")?;
    (settings.listed_only, settings.mdns, settings.serve_relay) = (file.listed_only, file.mdns, file.serve_relay);
    for neighbour in &file.neighbours {
        let known = addresses(&neighbour.addresses, "neighbours.addresses")?;
        // `group` has read these keys before.
        if let Ok(key) = neighbour.key.parse() {
            settings.known.push((key, known));
        }
    }
    Ok(settings)
}

/// Writes what a private peer keeps for its owner: its home model, from its store.
fn keep_home(folder: &Path, file: &PeerFile, one: &PeerTask) -> Result<(), Mistake> {
    let Some(step) = folder::look(file, one, &read_key(&file.key)?)? else { return Ok(()) };
    let Some(home) = one.home_model(folder::saved(&step), &folder::heard(&step, file))? else { return Ok(()) };
    let header: Vec<String> = (0..home.len()).map(|k| format!("theta_{k}")).collect();
    let row: Vec<String> = home.iter().map(f64::to_string).collect();
    let text = format!("{}\n{}\n", header.join(","), row.join(","));
    folder::replace(&folder.join(HOME_FILE), &text)
}
