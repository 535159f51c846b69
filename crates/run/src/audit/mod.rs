//! Tries to prove the claim of a private task wrong.
//!
//! | part | what it does |
//! |---|---|
//! | mechanisms | one release of each mechanism of the plan, many times, on inputs as far apart as the sensitivity allows |
//! | runs | whole runs on two neighbouring data sets, seen by someone who knows all but one record |
//! | replay | one run again on neighbouring data sets, with the outputs of all mechanisms frozen: nothing else may change |
//! | artefacts | the real loader, writers and commands on neighbouring files: what they print, write, refuse and exit with |
//! | frames | real peers without sockets on neighbouring files, with the outputs of all mechanisms frozen: the bytes they exchange |
//!
//! Where nothing is claimed and gradients go to servers, [`exposure`] measures what one of these learns.

mod artefacts;
mod compare;
mod exposure;
mod frames;
mod neighbours;
mod records;
mod replay;
mod ring;
mod runs;
mod stage;
mod token;
mod views;

use crate::private;
use crate::train::Halt;
pub use artefacts::{ArtefactAudit, Start, audit_artefacts};
pub use compare::Ended;
pub use exposure::{COSINE_ROUNDS, Cosines, Exposure, MEMBERSHIP_ROUNDS, OneServer, exposure};
pub use frames::{FrameAudit, Noises, Overheard, Peers, audit_frames};
pub use replay::ReplayAudit;
pub use runs::RunAudit;
use serde::Serialize;
use sottovoce_core::{Coin, PeerId};
use sottovoce_privacy::audit::{MechanismAudit, audit_mechanism};
use sottovoce_privacy::{Event, Track};
use sottovoce_task::error::Mistake;
use sottovoce_task::load::Loaded;
use sottovoce_task::task::Observer;
use std::ops::ControlFlow;

/// With more agents than this, record and replay run on a neighbourhood instead of the whole task.
const REPLAY_AGENTS_MAX: usize = 200;

/// The largest dimension in which releases of vectors are audited, besides dimension one.
const DIMENSION_MAX: usize = 64;

/// How much work to spend.
#[derive(Clone, Copy, Debug)]
pub struct AuditSettings {
    /// Runs in each of two worlds.
    pub runs: u64,
    /// Releases of each mechanism in each of two worlds.
    pub releases: u64,
    /// Runs that are recorded, and each repeated on many neighbouring data sets.
    pub recorded: u64,
    /// Decides the noise and the records; not the task's own seed, which decides who wakes when.
    pub seed: u64,
}

impl AuditSettings {
    /// For so many runs in each world, 250 times as many single releases: both then take about as long.
    pub fn for_trials(trials: u64, seed: u64) -> Self {
        AuditSettings { runs: trials, releases: trials.saturating_mul(250), recorded: 3, seed }
    }
}

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flaw {
    /// A mechanism tells more than it claims.
    Mechanism,
    /// A whole run does.
    WholeRun,
    /// A ledger comes to more than the budget.
    OverBudget,
    /// A release is not in the ledger as it happened.
    Uncharged,
    /// A coordinate leaves without noise.
    NoNoise,
    /// Two releases carry the same noise.
    NoiseReused,
    /// The input of a mechanism moves by more than the declared sensitivity.
    Sensitivity,
    /// What an agent is charged depends on data.
    ChargesMove,
    /// When or how much an agent speaks depends on data.
    ControlFlow,
    /// What an agent says depends on data other than through its releases.
    PostsMove,
    /// The release of another agent depends on data that are not its own.
    OthersMove,
    /// Some data stop the program.
    GivesUp,
    /// A record makes the loader or a command refuse, or exit otherwise.
    Refusal,
    /// Numbers, names or lengths of files, rows or models depend on a record.
    ShapeMoves,
    /// A file that others may see depends on a record other than through releases.
    FilesMove,
    /// What a command prints depends on a record other than through releases.
    OutputMoves,
    /// What real peers exchange depends on a record other than through releases: bytes, lengths or numbers of frames.
    FramesMove,
}

/// One kind of flaw: the first that was found, and how many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What is wrong.
    pub flaw: Flaw,
    /// Where it was first seen.
    pub what: String,
    /// How often it was seen.
    pub count: u64,
}

/// All flaws, one line each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Findings(Vec<Finding>);

impl Findings {
    pub fn add(&mut self, flaw: Flaw, what: String) {
        match self.0.iter_mut().find(|known| known.flaw == flaw) {
            Some(known) => known.count += 1,
            None => self.0.push(Finding { flaw, what, count: 1 }),
        }
    }

    /// How often a flaw was seen.
    pub fn count(&self, flaw: Flaw) -> u64 {
        self.0.iter().find(|known| known.flaw == flaw).map_or(0, |known| known.count)
    }
}

/// What an audit came to.
#[derive(Clone, Debug)]
pub struct Audit {
    /// The claim: epsilon.
    pub epsilon: f64,
    /// The claim: delta.
    pub delta: f64,
    /// The claim: against whom.
    pub observer: String,
    /// Each kind of mechanism, with the least noise that the plan has for it.
    pub mechanisms: Vec<MechanismAudit>,
    /// Whole runs; nothing where no agent releases anything.
    pub run: Option<RunAudit>,
    /// Record and replay.
    pub replay: ReplayAudit,
    /// Artefacts, where they were looked at.
    pub artefacts: Option<ArtefactAudit>,
    /// Frames of real peers, where they were looked at.
    pub frames: Option<FrameAudit>,
    /// What is wrong. Empty: the claim is not refuted.
    pub findings: Vec<Finding>,
}

impl Audit {
    /// Whether the claim is proved wrong.
    pub fn is_refuted(&self) -> bool {
        !self.findings.is_empty()
    }

    /// With what the artefacts came to.
    pub fn add_artefacts(&mut self, (artefacts, findings): (ArtefactAudit, Vec<Finding>)) {
        self.artefacts = Some(artefacts);
        self.add(findings);
    }

    /// With what the frames of real peers came to.
    pub fn add_frames(&mut self, (frames, findings): (FrameAudit, Vec<Finding>)) {
        self.frames = Some(frames);
        self.add(findings);
    }

    fn add(&mut self, findings: Vec<Finding>) {
        for finding in findings {
            match self.findings.iter_mut().find(|known| known.flaw == finding.flaw) {
                Some(known) => known.count += finding.count,
                None => self.findings.push(finding),
            }
        }
    }

    /// "not refuted" or "REFUTED".
    pub fn verdict(&self) -> &'static str {
        if self.is_refuted() { "REFUTED" } else { "not refuted" }
    }
}

/// How far an audit is: the part, what is done of it, and what there is to do.
pub type Watch<'a> = &'a mut dyn FnMut(&'static str, u64, u64) -> ControlFlow<()>;

/// Audits a private task.
pub fn audit(loaded: &Loaded, settings: AuditSettings, watch: Watch<'_>) -> Result<Audit, Halt> {
    let Some(privacy) = loaded.task.privacy else {
        let what = "there is no claim to audit: the task has no section [privacy], so epsilon is infinity; accepted: a task \
                    with [privacy]";
        return Err(Mistake::file(&loaded.task.source, what).into());
    };
    let is_token = matches!(loaded.observer(), Observer::Walk(..) | Observer::Ring(_));
    if loaded.observer() != Observer::Everyone && !is_token {
        let what = format!(
            "the audit sees what everyone sees, or members whom a token passes, and {} protects from {}; accepted: a task that protects from \
             everyone, or sums and models by a token",
            loaded.task.algorithm.name,
            loaded.observer().name()
        );
        return Err(Mistake::file(&loaded.task.source, what).into());
    }
    if loaded.task.statistic.is_some() && !is_token {
        let what = format!(
            "the audit of a task replaces points and labels, and {} tells answers of rows, whose law the library's own tests audit; accepted: \
             a task that learns models",
            loaded.task.algorithm.name
        );
        return Err(Mistake::file(&loaded.task.source, what).into());
    }
    let mut findings = Findings::default();
    match work(loaded, settings, &mut findings, watch) {
        ControlFlow::Break(()) => Err(Halt::Interrupted),
        ControlFlow::Continue((mechanisms, run, replay)) => {
            let Findings(findings) = findings;
            Ok(Audit {
                epsilon: privacy.epsilon,
                delta: privacy.delta,
                observer: loaded.observer().name(),
                mechanisms,
                run,
                replay,
                artefacts: None,
                frames: None,
                findings,
            })
        }
    }
}

type Parts = (Vec<MechanismAudit>, Option<RunAudit>, ReplayAudit);

fn work(loaded: &Loaded, settings: AuditSettings, findings: &mut Findings, watch: Watch<'_>) -> ControlFlow<(), Parts> {
    let AuditSettings { runs, recorded, seed, .. } = settings;
    let mechanisms = mechanisms(loaded, settings, findings, watch)?;
    if let Some(circle) = ring::Circle::of(loaded) {
        let replay =
            circle.replays(recorded, seed, findings, &mut |done, all| watch("record and replay", done, all))?;
        let run = circle.runs(runs, seed, findings, &mut |done, all| watch("whole runs", done, all))?;
        return ControlFlow::Continue((mechanisms, run, replay));
    }
    let part;
    let stage = match (0..loaded.problem.agents() as u32).map(PeerId).find(|&id| loaded.problem.data.size(id) > 0) {
        Some(target) if loaded.problem.agents() > REPLAY_AGENTS_MAX => {
            part = stage::neighbourhood(loaded, target, REPLAY_AGENTS_MAX);
            &part.0
        }
        _ => loaded,
    };
    let replay =
        replay::audit(stage, recorded, seed, findings, &mut |done, all| watch("record and replay", done, all))?;
    let of_runs = if matches!(loaded.observer(), Observer::Walk(..)) { token::runs } else { runs::audit };
    let run = of_runs(loaded, runs, seed, findings, &mut |done, all| watch("whole runs", done, all))?;
    ControlFlow::Continue((mechanisms, run, replay))
}

/// Each kind of mechanism in the plan, with its least noise.
fn mechanisms(
    loaded: &Loaded,
    settings: AuditSettings,
    findings: &mut Findings,
    watch: Watch<'_>,
) -> ControlFlow<(), Vec<MechanismAudit>> {
    let privacy = loaded.task.privacy.expect("only private tasks are audited");
    let plan = loaded.plan.as_ref().expect("a private task has a plan");
    let dimension = loaded.problem.dimension().min(DIMENSION_MAX);
    let mut cases: Vec<(Event, usize, u64)> = Vec::new();
    for event in least_noise(plan.steps()).into_iter().chain(least_noise(plan.track(Track::Token))) {
        cases.push((event, 1, settings.releases));
        if !matches!(event, Event::RandomizedResponse { .. }) && dimension > 1 {
            cases.push((event, dimension, settings.releases / dimension as u64));
        }
    }
    // An aside is one number.
    cases.extend(least_noise(plan.asides()).into_iter().map(|event| (event, 1, settings.releases)));
    let mut audits = Vec::new();
    for (k, &(event, dimension, trials)) in cases.iter().enumerate() {
        let trials = usize::try_from(trials.max(8)).unwrap_or(usize::MAX);
        // A seed of its own for each world: agents of one seed would hide noise that all agents share.
        let noise = |world: u32| private::noise(&privacy, Coin::new(settings.seed, world, k as u64).bits(), PeerId(0));
        let audit = audit_mechanism(noise, event, dimension, trials, privacy.delta);
        if audit.is_refuted() {
            let what = format!(
                "one release by {event:?} needs epsilon >= {}, and claims {}",
                audit.epsilon.certain, audit.claim
            );
            findings.add(Flaw::Mechanism, what);
        }
        audits.push(audit);
        watch("mechanisms", k as u64 + 1, cases.len() as u64)?;
    }
    ControlFlow::Continue(audits)
}

/// Each kind of mechanism once, with the least noise that it has.
fn least_noise(steps: &[Event]) -> Vec<Event> {
    let mut events: Vec<Event> = Vec::new();
    for &step in steps {
        let alike = |event: &&mut Event| std::mem::discriminant(*event) == std::mem::discriminant(&step);
        match events.iter_mut().find(alike) {
            None => events.push(step),
            Some(known) if noise_of(step) < noise_of(*known) => *known = step,
            Some(_) => {}
        }
    }
    events
}

/// More is more private.
fn noise_of(event: Event) -> f64 {
    match event {
        Event::Reveal => 0.0,
        Event::Laplace { noise_multiplier }
        | Event::Gaussian { noise_multiplier }
        | Event::GammaNorm { noise_multiplier } => noise_multiplier,
        Event::RandomizedResponse { epsilon } => 1.0 / epsilon,
    }
}
