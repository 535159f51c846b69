//! `sottovoce network`: every agent of a task as a real peer on this machine.

mod children;
mod show;

use crate::budget::{charge, check_outside, new_instance};
use crate::measure::{estimates, spent};
use crate::peer::{KEY_FILE, PeerText, neighbour_snippet, peer_text, write_key};
use crate::{OutArguments, Output, screen};
use children::{Children, Settled};
use sottovoce_net::disk::make_private_folder;
use sottovoce_report::plot::number;
use sottovoce_report::training::bound_or_infinity;
use sottovoce_run::artefacts::{Command, names};
use sottovoce_run::facts::{Origin, PublicFacts, Traffic};
use sottovoce_run::peer::{BUDGET_FOLDER, Gathered, PEER_FILE, PeerFile, Share, Tally, check_task, shares};
use sottovoce_run::run_folder::{ModelFigures, Summary, Yielded};
use sottovoce_run::train::Halt;
use sottovoce_task::error::Mistake;
use sottovoce_task::folder::Folder;
use sottovoce_task::load::{Loaded, load, load_without};
use sottovoce_task::task::Task;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Run every agent of a task as a real peer, in a process of its own, on this machine
///
/// A rehearsal of a real network: real processes, sockets and stores, on loopback. Each agent's folder, with its key, its rows of the
/// data and its store, is made under DIR/peers, and can be looked at with `peer status` and `peer predict` afterwards.
///
/// The run directory is made of public facts and of what peers told each other: what others may see. No score, loss or digest of data is
/// in it, and home models stay in the peers' folders, unless you say --reveal. The folder DIR/peers is never for others: everyone's data,
/// keys and home models are there.
#[derive(clap::Args)]
pub struct Arguments {
    /// The task file
    task: PathBuf,

    #[command(flatten)]
    out: OutArguments,

    /// Mean seconds between two wakes of a peer
    #[arg(long, value_name = "SECONDS", default_value_t = 0.1)]
    interval: f64,

    /// End after this time, quiet or not
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0)]
    time_limit: f64,

    /// Charge every row of the task to the odometer in this folder before anything runs, as one task; see `privacy budget`.
    /// Without it, sottovoce-budget beside the training data, if there is one
    #[arg(long, value_name = "DIR")]
    budget: Option<PathBuf>,

    /// Put home models, scores, losses and the objective into the run directory: they are made of exact data, so it is not private
    #[arg(long)]
    reveal: bool,
}

/// The ports from which peers' are taken: below those that systems give to outgoing connections.
const PORTS: std::ops::Range<u16> = 10_000..30_000;

/// Peers ask this often at most.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Measurements follow each other at this ratio of time, at most.
const MEASURE_RATIO: f64 = 1.1;

pub fn run(arguments: &Arguments, output: Output) -> Result<(), Halt> {
    for (name, value) in [("--interval", arguments.interval), ("--time-limit", arguments.time_limit)] {
        if !(value > 0.0 && value <= 1e9) {
            return Err(Mistake::new(format!("{name} is {value}; accepted: a number of seconds above 0")).into());
        }
    }
    let stop = Arc::new(AtomicBool::new(false));
    let seen = stop.clone();
    // Without a handler Ctrl-C ends this process, and its children follow when they notice.
    drop(ctrlc::set_handler(move || seen.store(true, Ordering::SeqCst)));
    let task = Task::read(&arguments.task)?;
    if arguments.reveal && task.statistic.is_some() {
        let what =
            "--reveal is for models: what peers know of a statistic is in the run directory; accepted: no --reveal";
        return Err(Mistake::new(what).into());
    }
    let budget = budget_folder(&task, arguments)?;
    // Of either kind of run: one is replaced by the other.
    let folder = Folder::begin(
        &arguments.out.out,
        arguments.out.force,
        &[names(Command::Network), names(Command::NetworkRevealed)].concat(),
    )?;
    let mut loaded = load(&task)?;
    check_task(&loaded.task)?;
    if let Some(k) = (0..loaded.names.len()).find(|&k| loaded.problem.graph.peers(peer_id(k)).is_empty()) {
        let what =
            format!("agent {:?} has no neighbour, so there is no network for it; accepted: an edge", loaded.names[k]);
        return Err(Mistake::file(&arguments.task, what).into());
    }
    if arguments.reveal {
        let line = "--reveal: home models, scores and losses are made of exact data; this run directory is NOT private";
        screen::warn(output, &[line.to_owned()]);
    }
    // PRIVACY: from here on, whatever is printed or written is made of this and of what peers told; data only with --reveal.
    let facts = PublicFacts::of(&loaded);
    screen::warn(output, &facts.warnings);
    if !output.quiet && !output.json {
        screen::say(facts.describe(if arguments.reveal { Origin::Revealed } else { Origin::Peers }))?;
    }
    if let Some(line) = whose_budget(arguments, budget.as_deref()).filter(|_| !output.quiet && !output.json) {
        screen::say(line)?;
    }
    let (peers, ports) = (folder.path().join("peers"), free_ports(loaded.names.len())?);
    let shares = shares(&task, &loaded)?;
    let folders = lay_out(&peers, &loaded, &shares, &ports, arguments.interval, budget.as_deref())?;
    let instance = budget.as_ref().map(|_| new_instance()).transpose()?;
    if let (Some(budget), Some(instance)) = (&budget, instance) {
        // PRIVACY: one charge for all agents, because each row is with one of them; peers find it by its instance.
        let charged = charge(budget, instance, &loaded, output, |charged| {
            let reveals = charged.has_ids() && arguments.reveal;
            reveals.then(|| load_without(&task, &|id| charged.is_void(id))).transpose()
        })?;
        if let Some((charged, without)) = charged {
            // What the record with the most rows has spent is the owner's to know: this output may be shown.
            if loaded.records.is_none() && !output.quiet && !output.json {
                screen::say(format!("Source: {}.", charged.said))?;
            }
            loaded = without.unwrap_or(loaded);
        }
    }
    let mut children = Children::start(&loaded.names, &folders, instance)?;
    let watched = watch(&mut children, &facts, arguments, output, &stop)?;
    children.stop()?;
    let gathered = gather(&folders, arguments.reveal)?;
    let command = format!("sottovoce network {} --out {}", arguments.task.display(), arguments.out.out.display());
    let revealed = arguments.reveal.then_some(&loaded);
    let summary = sottovoce_run::peer::write(&folder, &facts, &gathered, &watched, revealed, command)?;
    folder.finish()?;
    if output.json {
        screen::say(serde_json::to_string(&summary).expect("a summary is JSON"))?;
    } else if !output.quiet {
        screen::say(tell(&summary, &facts, arguments))?;
    }
    Ok(())
}

/// The odometer that the rows are charged to: the one that was named, or the one beside the data if there is one.
fn budget_folder(task: &Task, arguments: &Arguments) -> Result<Option<PathBuf>, Mistake> {
    let beside = || {
        let folder = task.data.train.file.parent()?.join(BUDGET_FOLDER);
        // PRIVACY: rows whose owner keeps count of them are not released uncounted.
        folder.is_dir().then_some(folder)
    };
    let Some(folder) = arguments.budget.clone().or_else(beside) else { return Ok(None) };
    check_outside(&folder, &arguments.out.out)?;
    let folder = std::path::absolute(&folder).map_err(|error| Mistake::io(&folder, "used", &error))?;
    Ok(Some(folder))
}

/// Where --budget was not said: what is charged instead.
fn whose_budget(arguments: &Arguments, budget: Option<&Path>) -> Option<String> {
    match (&arguments.budget, budget) {
        (Some(_), _) => None,
        (None, Some(folder)) => Some(format!("Source: the budget folder beside the data, {}.", folder.display())),
        (None, None) => Some(format!(
            "Source: not charged; these peers keep budgets of their own below {}, and --budget names one for all.",
            arguments.out.out.join("peers").display()
        )),
    }
}

fn peer_id(k: usize) -> sottovoce_core::PeerId {
    sottovoce_core::PeerId(k as u32)
}

/// Makes the folder of each peer below `peers`. Returns where they are.
pub fn lay_out(
    peers: &Path,
    loaded: &Loaded,
    shares: &[Share],
    ports: &[u16],
    interval: f64,
    budget: Option<&Path>,
) -> Result<Vec<PathBuf>, Mistake> {
    let cannot = |path: &Path| {
        let path = path.to_owned();
        move |error: std::io::Error| Mistake::io(&path, "written", &error)
    };
    make_private_folder(peers).map_err(cannot(peers))?;
    let write = |file: PathBuf, bytes: &[u8]| std::fs::write(&file, bytes).map_err(cannot(&file));
    write(peers.join("task.toml"), loaded.task.to_toml().as_bytes())?;
    let (mut folders, mut ids) = (Vec::new(), Vec::new());
    for (k, name) in loaded.names.iter().enumerate() {
        let place = peers.join(folder_name(name, k));
        make_private_folder(&place).map_err(cannot(&place))?;
        ids.push(write_key(&place.join(KEY_FILE))?.id().to_string());
        folders.push(place);
    }
    let address = |k: usize| format!("/ip4/127.0.0.1/tcp/{}", ports[k]);
    for (k, place) in folders.iter().enumerate() {
        let test = shares[k].test.as_ref().map(|_| "test.csv");
        let mut text = peer_text(&PeerText {
            task: "../task.toml",
            agent: &loaded.names[k],
            data: "data.csv",
            test,
            listen: &[address(k)],
            external: &[],
            interval,
        });
        text += &format!("\nframes-per-second = {}\n", ((5.0 / interval) as u32).clamp(50, 1000));
        if let Some(budget) = budget {
            text += &format!("budget = {}\n", serde_json::json!(budget));
        }
        for edge in loaded.problem.graph.peers(peer_id(k)).iter() {
            let j = edge.peer.index();
            text += "\n";
            text += &neighbour_snippet(&loaded.names[j], &ids[j], edge.weight, &[address(j)]);
        }
        write(place.join("data.csv"), &shares[k].data)?;
        if let Some(test) = &shares[k].test {
            write(place.join("test.csv"), test)?;
        }
        write(place.join(PEER_FILE), text.as_bytes())?;
    }
    Ok(folders)
}

/// An agent's name, where that can be the name of a folder.
fn folder_name(name: &str, k: usize) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let usable = name.len() <= 100 && name.chars().all(plain) && !name.starts_with('.') && name != "task.toml";
    if usable { name.to_owned() } else { format!("agent-{k}") }
}

/// Ports that nobody uses now.
fn free_ports(count: usize) -> Result<Vec<u16>, Mistake> {
    let mut start = [0; 2];
    getrandom::fill(&mut start).map_err(|error| Mistake::new(format!("the system has no entropy: {error}")))?;
    let width = PORTS.end - PORTS.start;
    let start = u16::from_le_bytes(start) % width;
    let (mut held, mut ports) = (Vec::new(), Vec::new());
    for port in (0..width).map(|k| PORTS.start + (start + k) % width) {
        if ports.len() == count {
            break;
        }
        if let Ok(listener) = TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            held.push(listener);
            ports.push(port);
        }
    }
    match ports.len() == count {
        true => Ok(ports),
        false => {
            Err(Mistake::new(format!("{count} peers need {count} free ports on loopback; there are {}", ports.len())))
        }
    }
}

/// Looks at the peers until all are quiet and everything is delivered.
fn watch(
    children: &mut Children,
    facts: &PublicFacts,
    arguments: &Arguments,
    output: Output,
    stop: &AtomicBool,
) -> Result<Tally, Halt> {
    let began = Instant::now();
    let mut show = show::Show::new(output, facts);
    let mut tally = Tally { traffic: vec![Traffic::default()], ..Tally::default() };
    let mut measured = 0.0;
    let mut settled = Settled(vec![false; facts.agents()]);
    loop {
        if stop.load(Ordering::SeqCst) {
            return Err(Halt::Interrupted);
        }
        let round = children.look()?;
        tally.seconds = began.elapsed().as_secs_f64();
        show.show(&round, tally.seconds);
        tally.quiet = settled.look(&round);
        let over = tally.quiet || tally.seconds > arguments.time_limit;
        if over || tally.seconds > measured * MEASURE_RATIO {
            measured = tally.seconds;
            tally.traffic.push(round.traffic());
        }
        if over {
            (tally.lost, tally.refused) = (round.sum("letters_lost"), round.refused());
            return Ok(tally);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Reads what peers have told, from their stores; what they keep, only if that shall be revealed.
fn gather(folders: &[PathBuf], reveal: bool) -> Result<Vec<Gathered>, Mistake> {
    let one = |folder: &PathBuf| {
        let file = PeerFile::read(folder)?;
        let kept = crate::peer::kept(&file, reveal)?;
        Ok(match kept {
            None => Gathered::default(),
            Some(kept) => Gathered {
                model: kept.told,
                passed_over: kept.recalled.passed_over,
                steps: kept.recalled.steps,
                links: kept.recalled.links,
                bits: kept.recalled.bits,
                ledger: kept.ledger,
                home: kept.home,
            },
        })
    };
    folders.iter().map(one).collect()
}

fn tell(summary: &Summary, facts: &PublicFacts, arguments: &Arguments) -> String {
    let mut text = match summary.quiet {
        true => "All peers are quiet, and everything is delivered.".to_owned(),
        false => {
            format!("NOT quiet: the time limit of {} s was reached. This is what there was.", arguments.time_limit)
        }
    };
    match &summary.yielded {
        Yielded::Models(figures) => text += &tell_models(summary, figures, &facts.guarantee()),
        Yielded::Estimate(_) => {
            text += &format!("\n{}\n{}", estimates(summary), spent(summary, &facts.guarantee(), ""));
        }
    }
    text + &format!(
        "\nRun directory: {}; each peer's own folder, with its data and its key, is below peers and for nobody else.",
        arguments.out.out.display()
    )
}

fn tell_models(summary: &Summary, figures: &ModelFigures, guarantee: &str) -> String {
    let mut text = format!(
        "\n{} wakes, {} vectors, {} sent, {}; epsilon = {} at delta = {}{}.",
        number::count(summary.wakes),
        number::count(figures.vectors_sent),
        number::bytes(summary.bytes_sent),
        number::seconds(summary.seconds),
        bound_or_infinity(summary.epsilon.into()),
        number::bound(summary.delta),
        summary.unit.map_or(String::new(), |_| format!(", {guarantee}")),
    );
    if let Some(scores) = figures.accuracy.or(figures.rmse) {
        let what = if figures.accuracy.is_some() { "accuracy" } else { "RMSE" };
        let home = scores.home_mean.map_or(String::new(), |home| format!(", {} at home", number::score(home)));
        let alone = scores.local_mean.map_or(String::new(), |alone| format!(" {} alone,", number::score(alone)));
        text +=
            &format!("\nRevealed, NOT private: mean test {what}{alone} {} as told{home}.", number::score(scores.mean));
    }
    text
}
