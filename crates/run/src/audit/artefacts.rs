//! Artefacts: what an observer can see besides messages, on neighbouring files.
//!
//! The other levels replace records after they are loaded, and look at messages. Here one record of one agent is replaced in a copy of
//! the task's own file, by such as nobody expects, and everything that follows is compared: whether the real loader takes it, what it
//! tells of the task, what is said when the outputs of all mechanisms are frozen, the run directory of a network to which the same was
//! told, and what the real commands print, write and exit with.
//!
//! Whoever calls [`audit_artefacts`] starts the commands; this module compares.

use super::compare::{Ended, Files, difference, files, of_peers, only_in_one, outline};
use super::neighbours::{Hostile, Table};
use super::replay::Case;
use super::stage::{Witnessed, record, replay};
use super::{Finding, Findings, Flaw, ReplayAudit};
use crate::artefacts::{self, Command, MadeOf, Shown};
use crate::facts::{PublicFacts, Traffic};
use crate::peer;
use crate::peer::{Gathered, Tally};
use crate::train::{Halt, train};
use sottovoce_core::PeerId;
use sottovoce_task::error::Mistake;
use sottovoce_task::folder::Folder;
use sottovoce_task::load::{Loaded, load};
use sottovoce_task::task::{GraphSource, NoiseKind, Points, Task, Test};
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

/// With more agents than this, an agent and some of its neighbours are looked at as a task of their own.
const AGENTS_MAX: usize = 8;

/// How many of its neighbours.
const NEIGHBOURS_MAX: usize = 4;

/// The values of a summary that follow from the task, the graph, numbers of points and, in a simulator, the clock of a seed.
const SIMULATED: &[&str] = &[
    "name",
    "algorithm",
    "agents",
    "dimension",
    "wakes",
    "vectors_sent",
    "bytes_sent",
    "start_vectors",
    "start_bytes",
    "messages_lost",
    "messages_rejected",
    "quiet",
    "epsilon",
    "delta",
    "accounting",
    "seed",
    "version",
];

/// The same between real peers, where real clocks decide how many wakes there are.
const REAL: &[&str] =
    &["name", "algorithm", "agents", "dimension", "quiet", "epsilon", "delta", "accounting", "seed", "version"];

/// What the artefacts came to.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct ArtefactAudit {
    /// Neighbouring files that were tried.
    pub neighbours: u64,
    /// Files and folders of the real loader and writer, and outputs of commands, that were compared.
    pub compared: u64,
    /// Runs of `train`.
    pub trained: u64,
    /// Runs of `network`.
    pub networks: u64,
    /// What was left out, and why.
    pub skipped: Vec<String>,
}

/// Starts the program with these words, and waits for it.
pub type Start<'a> = &'a mut dyn FnMut(&[OsString]) -> Result<Ended, Mistake>;

/// Audits what a task's commands leave behind. `watch` hears how far it is.
pub fn audit_artefacts(
    loaded: &Loaded,
    seed: u64,
    start: Start<'_>,
    watch: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<(ArtefactAudit, Vec<Finding>), Halt> {
    let mut audit = ArtefactAudit::default();
    let mut findings = Findings::default();
    let Some(stage) = Stage::new(loaded, &mut audit)? else { return Ok((audit, Vec::new())) };
    let base = load(&stage.task)?;
    let recorded = match record(&base, seed, None) {
        Ok(recorded) => recorded,
        Err(why) => {
            findings.add(Flaw::GivesUp, format!("a run on the task's own files did not come to its end: {why}"));
            let Findings(findings) = findings;
            return Ok((audit, findings));
        }
    };
    let frozen = Frozen::new(&base, recorded)?;
    let own = stage.leave(start, &base, None, &mut audit)?;
    let records = stage.table.hostile_records(stage.row);
    for (k, hostile) in records.iter().enumerate() {
        audit.neighbours += 1;
        stage.table.with(stage.row, hostile).write(&stage.task.data.train)?;
        let mut case = Neighbour { stage: &stage, what: hostile, findings: &mut findings, audit: &mut audit };
        if let Some(neighbour) = case.load(&base) {
            case.replay(&base, &neighbour, &frozen);
            case.network_folder(&neighbour, &frozen)?;
        }
        let left = stage.leave(start, &base, Some(hostile), case.audit)?;
        case.compare(&own, &left);
        if watch(k as u64 + 1, records.len() as u64).is_break() {
            return Err(Halt::Interrupted);
        }
    }
    let Findings(findings) = findings;
    Ok((audit, findings))
}

/// A folder with a copy of the task, its data and its graph. Every run uses the same paths, so that whatever names one is the same.
pub(super) struct Stage {
    pub place: tempfile::TempDir,
    pub task: Task,
    table: Table,
    /// Whose record is replaced, and which.
    pub target: String,
    row: usize,
}

/// What the commands left behind.
#[derive(Default)]
struct Left {
    train: Option<(Ended, Files)>,
    network: Option<(Ended, Files)>,
}

impl Stage {
    pub fn new(loaded: &Loaded, audit: &mut ArtefactAudit) -> Result<Option<Self>, Mistake> {
        let problem = &loaded.problem;
        let has_both = |id: &PeerId| problem.data.size(*id) > 1 && !problem.graph.peers(*id).is_empty();
        let Some(target) = (0..problem.agents() as u32).map(PeerId).find(has_both) else {
            audit.skipped.push("artefacts: no agent has two records and a neighbour".to_owned());
            return Ok(None);
        };
        let place = tempfile::tempdir().map_err(|error| Mistake::new(format!("no folder for copies: {error}")))?;
        let mut task = loaded.task.clone();
        let mut table = Table::read(&task.data.train)?;
        let name = if task.data.train.agents.is_some() { "train.svm" } else { "train.csv" };
        let agents = task.data.train.agents.as_ref().map(|_| place.path().join("agents.txt").into());
        task.data.train = Points { file: place.path().join(name).into(), agents };
        if let Some(privacy) = &mut task.privacy {
            // What real peers draw, from the task's seed: two runs differ by the record alone.
            privacy.noise = NoiseKind::Exact;
        }
        if problem.agents() > AGENTS_MAX {
            if loaded.edge_count().is_none() {
                let why = format!("artefacts: the graph is learned by more than {AGENTS_MAX} agents");
                audit.skipped.push(why);
                return Ok(None);
            }
            reduce(loaded, target, &mut task, &mut table, place.path())?;
        }
        let target = loaded.names[target.index()].clone();
        let row = table.row_of(&target).expect("the target has records");
        table.write(&task.data.train)?;
        let file = place.path().join("task.toml");
        std::fs::write(&file, task.to_toml()).map_err(|error| Mistake::io(&file, "written", &error))?;
        let task = Task::read(&file)?;
        Ok(Some(Stage { place, task, table, target, row }))
    }

    /// Runs the commands on the files as they are now. Real peers take seconds, so only some records are tried on them.
    fn leave(
        &self,
        start: Start<'_>,
        base: &Loaded,
        hostile: Option<&Hostile>,
        audit: &mut ArtefactAudit,
    ) -> Result<Left, Mistake> {
        let words = |command: &str, more: &[&str]| -> (PathBuf, Vec<OsString>) {
            let out = self.place.path().join(format!("{command}-run"));
            let mut words: Vec<OsString> = vec![command.into(), self.task.source.clone().into()];
            words.extend(["--out".into(), out.clone().into(), "--json".into()]);
            words.extend(more.iter().map(OsString::from));
            (out, words)
        };
        let mut run = |command: &str, more: &[&str]| -> Result<(Ended, Files), Mistake> {
            let (out, words) = words(command, more);
            let ended = start(&words)?;
            let left = if out.is_dir() { files(&out) } else { Ok(Files::new()) };
            let left = of_peers(left.map_err(|error| Mistake::io(&out, "read", &error))?);
            if out.is_dir() {
                std::fs::remove_dir_all(&out).map_err(|error| Mistake::io(&out, "removed", &error))?;
            }
            Ok((ended, left))
        };
        let train = run("train", &["--no-sweep", "--threads", "1"])?;
        audit.trained += 1;
        let is_network = peer::check_task(&base.task).is_ok()
            && (0..base.problem.agents() as u32).all(|id| !base.problem.graph.peers(PeerId(id)).is_empty());
        if hostile.is_none() && !is_network {
            audit.skipped.push("real peers: this task does not run between them".to_owned());
        }
        let mut network = None;
        if is_network && hostile.is_none_or(|hostile| hostile.real) {
            network = Some(run("network", &["--interval", "0.02", "--time-limit", "120"])?);
            audit.networks += 1;
        }
        Ok(Left { train: Some(train), network })
    }
}

/// An agent and some neighbours, as a task of their own.
fn reduce(loaded: &Loaded, target: PeerId, task: &mut Task, table: &mut Table, place: &Path) -> Result<(), Mistake> {
    let graph = &loaded.problem.graph;
    let mut kept: Vec<PeerId> = graph.peers(target).iter().map(|edge| edge.peer).take(NEIGHBOURS_MAX).collect();
    kept.push(target);
    let name = |id: PeerId| loaded.names[id.index()].clone();
    table.keep(&kept.iter().map(|&id| name(id)).collect::<Vec<_>>());
    let mut writer = csv::Writer::from_writer(Vec::new());
    let mut line = |fields: [&str; 3]| writer.write_record(fields).expect("memory takes every record");
    line(["a", "b", "weight"]);
    for &id in &kept {
        let later = graph.peers(id).iter().filter(|edge| edge.peer > id && kept.contains(&edge.peer));
        later.for_each(|edge| line([&name(id), &name(edge.peer), &format!("{:?}", edge.weight)]));
    }
    let file = place.join("edges.csv");
    let edges = writer.into_inner().expect("memory takes every record");
    std::fs::write(&file, edges).map_err(|error| Mistake::io(&file, "written", &error))?;
    task.graph.source = GraphSource::Edges(file.into());
    task.graph.allow_isolated = true;
    // Rows of other agents would name them.
    task.data.test = Test::Absent;
    Ok(())
}

/// What the mechanisms gave out on the task's own data, and what a network wrote of it.
struct Frozen {
    recorded: Vec<Witnessed>,
    gathered: Vec<Gathered>,
    folder: Files,
}

impl Frozen {
    fn new(base: &Loaded, recorded: Vec<Witnessed>) -> Result<Self, Halt> {
        let trained = train(base, base.task.algorithm, 1, &mut |_| ControlFlow::Continue(()))?;
        let one = |id: u32| Gathered {
            model: Some(trained.models.row(id as usize).to_vec()),
            ledger: trained.ledgers[id as usize].clone(),
            ..Gathered::default()
        };
        let gathered: Vec<Gathered> = (0..base.problem.agents() as u32).map(one).collect();
        let folder = network_folder(base, &gathered)?;
        Ok(Frozen { recorded, gathered, folder })
    }
}

/// The run directory of a network whose peers told this, as the command writes it.
fn network_folder(loaded: &Loaded, gathered: &[Gathered]) -> Result<Files, Mistake> {
    let place = tempfile::tempdir().map_err(|error| Mistake::new(format!("no folder for copies: {error}")))?;
    let out = place.path().join("run");
    let folder = Folder::begin(&out, false, &artefacts::names(Command::Network))?;
    let counted = Traffic { wakes: 40, vectors_sent: 80, bytes_sent: 640, ..Traffic::default() };
    let tally = Tally { traffic: vec![Traffic::default(), counted], seconds: 1.0, quiet: true, ..Tally::default() };
    let facts = PublicFacts::of(loaded);
    peer::write(&folder, &facts, gathered, &tally, None, "sottovoce network".to_owned())?;
    folder.finish()?;
    files(&out).map_err(|error| Mistake::io(&out, "read", &error))
}

/// One neighbouring file, and what is found with it.
struct Neighbour<'a> {
    stage: &'a Stage,
    what: &'a Hostile,
    findings: &'a mut Findings,
    audit: &'a mut ArtefactAudit,
}

impl Neighbour<'_> {
    fn given(&self) -> String {
        format!("with {} in the file in the place of one of agent {:?}", self.what.what, self.stage.target)
    }

    fn find(&mut self, flaw: Flaw, what: &str) {
        let what = format!("{}, {what}", self.given());
        self.findings.add(flaw, what);
    }

    /// The real loader must take it, and tell the same of the task.
    fn load(&mut self, base: &Loaded) -> Option<Loaded> {
        self.audit.compared += 1;
        let task = &self.stage.task;
        let loaded = match catch_unwind(AssertUnwindSafe(|| load(task))) {
            Ok(Ok(loaded)) => loaded,
            Ok(Err(mistake)) => {
                self.find(Flaw::Refusal, &format!("the loader refuses: {mistake}"));
                return None;
            }
            Err(_) => {
                self.find(Flaw::Refusal, "the loader gives up");
                return None;
            }
        };
        let (own, facts) = (PublicFacts::of(base), PublicFacts::of(&loaded));
        let counts = |facts: &PublicFacts| (facts.names.clone(), facts.points.clone(), facts.dimension);
        if counts(&own) != counts(&facts) {
            let numbers = facts.dimension;
            let what = format!("names, numbers of records or the dimension are others ({numbers} numbers in a model)");
            self.find(Flaw::ShapeMoves, &what);
            return None;
        }
        if base.plan != loaded.plan {
            self.find(Flaw::ChargesMove, "the plan is another");
        }
        if own != facts {
            self.find(Flaw::FilesMove, "what is public of the task is another");
        }
        Some(loaded)
    }

    /// With the outputs of all mechanisms frozen, everything that is said must be the same to the bit.
    fn replay(&mut self, base: &Loaded, neighbour: &Loaded, frozen: &Frozen) {
        self.audit.compared += 1;
        match replay(neighbour, &frozen.recorded, None) {
            Err(why) => self.find(Flaw::GivesUp, &format!("the program gives up: {why}")),
            Ok(replayed) => {
                let given = self.given();
                let target = base.names.iter().position(|name| *name == self.stage.target);
                let target = PeerId(target.expect("the target is an agent") as u32);
                let audit = &mut ReplayAudit::default();
                let coalitions = &[];
                let mut case = Case { loaded: base, target, coalitions, findings: &mut *self.findings, audit };
                case.judge(&frozen.recorded, &replayed, &given);
            }
        }
    }

    /// The run directory of a network, to which peers told the same: every byte must be the same.
    fn network_folder(&mut self, neighbour: &Loaded, frozen: &Frozen) -> Result<(), Mistake> {
        let written = network_folder(neighbour, &frozen.gathered)?;
        self.audit.compared += written.len() as u64;
        if let Some(name) = only_in_one(&frozen.folder, &written) {
            self.find(Flaw::ShapeMoves, &format!("a network writes {name}, or does not"));
        }
        for (name, bytes) in &frozen.folder {
            if written.get(name).is_some_and(|other| other != bytes) {
                let what = format!("a network writes another {name}, although its peers told the same");
                self.find(Flaw::FilesMove, &what);
            }
        }
        Ok(())
    }

    /// What the commands left behind.
    fn compare(&mut self, own: &Left, left: &Left) {
        for (command, one, other) in
            [(Command::Train, &own.train, &left.train), (Command::Network, &own.network, &left.network)]
        {
            if let (Some(one), Some(other)) = (one, other) {
                self.compare_command(command, one, other);
            }
        }
    }

    fn compare_command(&mut self, command: Command, (one, files): &(Ended, Files), (other, others): &(Ended, Files)) {
        let (name, exact) = match command {
            Command::Train => ("train", SIMULATED),
            _ => ("network", REAL),
        };
        self.audit.compared += 3 + files.len() as u64;
        if one.code != other.code {
            let code = |code: Option<i32>| code.map_or("no code".to_owned(), |code| code.to_string());
            let said = String::from_utf8_lossy(&other.err).lines().last().unwrap_or_default().to_owned();
            let what = format!("{name} exits with {} and not with {}: {said}", code(other.code), code(one.code));
            return self.find(Flaw::Refusal, &what);
        }
        if is_shown(command, "standard error") && one.err != other.err {
            self.find(Flaw::OutputMoves, &format!("{name} prints another standard error"));
        }
        // Scores and the objective, where they are printed, are nobody else's; how much is printed, and all that follows from public
        // facts, is the same.
        let json = |bytes: &[u8]| serde_json::from_slice(bytes).unwrap_or(serde_json::Value::Null);
        if let Some(what) = difference(&json(&one.out), &json(&other.out), exact) {
            self.find(Flaw::OutputMoves, &format!("{name} prints another {what}"));
        }
        if let Some(file) = only_in_one(files, others) {
            self.find(Flaw::ShapeMoves, &format!("{name} writes {file}, or does not"));
        }
        for (file, bytes) in files.iter().filter(|(file, _)| is_shown(command, file) || file.starts_with("peers/")) {
            let Some(other) = others.get(file) else { continue };
            if file.starts_with("peers/") && bytes != other {
                self.find(Flaw::FilesMove, &format!("a peer of {name} has another {file}"));
            }
            let made_of = artefacts::find(command, file).map(|artefact| artefact.made_of);
            if made_of == Some(MadeOf::PublicFacts) && bytes != other {
                self.find(Flaw::FilesMove, &format!("{name} writes another {file}"));
            }
            // Numbers are releases; whose they are, and how many, is not.
            if matches!(file.as_str(), "models.csv" | "model.csv") && outline(bytes) != outline(other) {
                self.find(Flaw::ShapeMoves, &format!("{name} writes other rows in {file}"));
            }
        }
    }
}

/// Whether somebody may see it who must not see the data.
fn is_shown(command: Command, name: &str) -> bool {
    artefacts::find(command, name).is_some_and(|artefact| artefact.shown != Shown::No)
}
