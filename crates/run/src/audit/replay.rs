//! Record and replay: what depends on data other than through the mechanisms.
//!
//! A run is recorded. Then one record of one agent is replaced, and the run is repeated with the outputs of all mechanisms frozen.
//! Whatever an eavesdropper sees must be the same, byte for byte; what goes into the mechanisms may move, by the declared
//! sensitivity at most.

use super::records::{Record, extremes, replacements, with};
use super::stage::{Altered, Utterance, Witnessed, record, replay};
use super::{Findings, Flaw, views};
use sottovoce_core::{Coin, PeerId};
use sottovoce_privacy::audit::{Release, distance, noiseless, reused};
use sottovoce_privacy::{Event, Track};
use sottovoce_task::load::Loaded;
use sottovoce_task::task::Leaves;
use std::ops::ControlFlow;

/// An allowance for the rounding of a distance, relative.
const ROUNDING: f64 = 1e-12;

/// Agents whose records are replaced in each recorded run.
const TARGETS: usize = 6;

/// A program that gives up this often need not be asked again; it may take long over it.
const GIVES_UP_ENOUGH: u64 = 3;

/// What record and replay came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct ReplayAudit {
    /// Runs that were recorded.
    pub runs: u64,
    /// Neighbouring data sets on which one was repeated.
    pub neighbours: u64,
    /// Releases whose inputs were compared.
    pub releases: u64,
    /// The largest movement of an input over its declared sensitivity.
    pub largest_move: f64,
    /// Views of members and of coalitions that were compared, where a task protects from those.
    pub views: u64,
}

/// Records `runs` runs and repeats each on many neighbouring data sets.
pub(super) fn audit(
    loaded: &Loaded,
    runs: u64,
    seed: u64,
    findings: &mut Findings,
    watch: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> ControlFlow<(), ReplayAudit> {
    let mut audit = ReplayAudit::default();
    for run in 0..runs {
        let mut coin = Coin::new(seed, u32::MAX, run);
        let recorded = match record(loaded, coin.bits(), None) {
            Ok(recorded) => recorded,
            Err(why) => {
                findings.add(Flaw::GivesUp, format!("a run on the task's own data did not come to its end: {why}"));
                return ControlFlow::Continue(audit);
            }
        };
        audit.runs += 1;
        check_books(loaded, &recorded, findings);
        let coalitions = views::coalitions(loaded, &mut coin);
        check_noise(loaded, &recorded, findings);
        for target in targets(loaded, &mut coin) {
            let points = loaded.problem.data.points(target);
            let k = coin.below(points.len());
            let own = points.iter().nth(k).expect("a record of its own");
            let with = |record: &Record| with(loaded, target, k, record);
            if findings.count(Flaw::GivesUp) >= GIVES_UP_ENOUGH {
                return ControlFlow::Continue(audit);
            }
            let mut case =
                Case { loaded, target, coalitions: &coalitions, findings: &mut *findings, audit: &mut audit };
            for new in replacements(loaded, own, &mut coin) {
                case.compare(&recorded, &with(&new), new.what);
            }
            // From one extreme to the other: no record of the agent's own is as far from either.
            for [one, other] in extremes(loaded) {
                match record(loaded, coin.bits(), Some(&with(&one))) {
                    Ok(recorded) => case.compare(&recorded, &with(&other), other.what),
                    Err(why) => case.gives_up(one.what, &why),
                }
            }
        }
        watch(run + 1, runs)?;
    }
    ControlFlow::Continue(audit)
}

/// Agents with data, at random.
fn targets(loaded: &Loaded, coin: &mut Coin) -> Vec<PeerId> {
    let mut all: Vec<PeerId> =
        (0..loaded.problem.agents() as u32).map(PeerId).filter(|&id| loaded.problem.data.size(id) > 0).collect();
    for k in 0..all.len().min(TARGETS) {
        let other = k + coin.below(all.len() - k);
        all.swap(k, other);
    }
    all.truncate(TARGETS);
    all
}

/// Every use of a mechanism is charged, and the charges keep the budget, for each agent.
pub(super) fn check_books(loaded: &Loaded, recorded: &[Witnessed], findings: &mut Findings) {
    let privacy = loaded.task.privacy.expect("only private tasks are audited");
    let accountant = loaded.observer().accountant(privacy.accountant);
    let mut known: Vec<(Vec<(Event, u64)>, f64)> = Vec::new();
    for (name, agent) in loaded.names.iter().zip(recorded) {
        let charged: u64 = agent.ledger.releases();
        let covered = agent.ledger.charges().all(|charge| {
            let alike = |release: &&Release| {
                release.event == charge.event && Some(release.sensitivity) == charge.sensitivity.map(f64::from)
            };
            agent.releases.iter().filter(alike).count() as u64 == charge.count
        });
        // Who holds a token makes noise for others too; what moves with its data is charged: see `judge`.
        let is_token = loaded.task.algorithm.leaves == Leaves::Token;
        if !is_token && (charged != agent.releases.len() as u64 || !covered) {
            let what =
                format!("agent {name:?} used mechanisms {} times and was charged for {charged}", agent.releases.len());
            findings.add(Flaw::Uncharged, what);
        }
        // Agents with the same charges cost the same.
        let key: Vec<_> = agent.ledger.charges().map(|charge| (charge.event, charge.count)).collect();
        let epsilon = match known.iter().find(|(other, _)| *other == key) {
            Some((_, epsilon)) => *epsilon,
            None => {
                let epsilon = accountant.epsilon(&agent.ledger, privacy.delta);
                known.push((key, epsilon));
                epsilon
            }
        };
        if epsilon > privacy.epsilon {
            let what = format!(
                "the ledger of agent {name:?} comes to epsilon = {epsilon} at delta = {}, above the {} that is promised",
                privacy.delta, privacy.epsilon
            );
            findings.add(Flaw::OverBudget, what);
        }
    }
}

/// Every coordinate has noise, and no two releases the same.
fn check_noise(loaded: &Loaded, recorded: &[Witnessed], findings: &mut Findings) {
    for (name, agent) in loaded.names.iter().zip(recorded) {
        for release in &*agent.releases {
            if let Some(k) = noiseless(release) {
                findings.add(Flaw::NoNoise, format!("coordinate {k} of a release of agent {name:?} has no noise"));
            }
        }
    }
    if let Some([(one, _), (other, _)]) = reused(recorded.iter().map(|agent| &agent.releases[..])) {
        let (one, other) = (&loaded.names[one], &loaded.names[other]);
        findings.add(Flaw::NoiseReused, format!("agents {one:?} and {other:?} have releases with the same noise"));
    }
}

/// Neighbouring data sets: one agent's record is replaced.
pub(super) struct Case<'a> {
    pub loaded: &'a Loaded,
    pub target: PeerId,
    /// Who puts together what they see; nobody where a task protects from everyone.
    pub coalitions: &'a [Vec<u32>],
    pub findings: &'a mut Findings,
    pub audit: &'a mut ReplayAudit,
}

impl Case<'_> {
    fn given(&self, what: &str) -> String {
        format!("with {what} in the place of one of agent {:?}", self.loaded.names[self.target.index()])
    }

    fn gives_up(&mut self, what: &str, why: &str) {
        let what = format!("{}, the program gives up: {why}", self.given(what));
        self.findings.add(Flaw::GivesUp, what);
    }

    /// Repeats a run on other data, and compares all that can be seen.
    fn compare(&mut self, recorded: &[Witnessed], altered: &Altered, what: &str) {
        self.audit.neighbours += 1;
        let replayed = match replay(self.loaded, recorded, Some(altered)) {
            Ok(replayed) => replayed,
            Err(why) => return self.gives_up(what, &why),
        };
        let given = self.given(what);
        self.judge(recorded, &replayed, &given);
    }

    /// Compares a run with its repetition on neighbouring data, `given` in words.
    pub fn judge(&mut self, recorded: &[Witnessed], replayed: &[Witnessed], given: &str) {
        for coalition in self.coalitions {
            self.audit.views += 1;
            if views::view(recorded, coalition) != views::view(replayed, coalition) {
                let members: Vec<&str> = coalition.iter().map(|&k| &*self.loaded.names[k as usize]).collect();
                let what =
                    format!("{given}, {members:?} together see something else although all releases are the same");
                self.findings.add(Flaw::PostsMove, what);
            }
        }
        let mut moves = 0;
        for (k, (before, after)) in recorded.iter().zip(replayed).enumerate() {
            let name = &self.loaded.names[k];
            if before.ledger != after.ledger {
                self.findings.add(Flaw::ChargesMove, format!("{given}, agent {name:?} is charged otherwise"));
            }
            let outlines = |agent: &Witnessed| agent.said.iter().map(Utterance::outline).collect::<Vec<_>>();
            if outlines(before) != outlines(after) {
                let what = format!("{given}, agent {name:?} speaks at other times, or more, or less");
                self.findings.add(Flaw::ControlFlow, what);
            } else if before.said != after.said {
                let what =
                    format!("{given}, agent {name:?} says something else although all its releases are the same");
                self.findings.add(Flaw::PostsMove, what);
            }
            if !same_steps(before, after) {
                let what = format!("{given}, agent {name:?} uses its mechanisms otherwise");
                self.findings.add(Flaw::ControlFlow, what);
                continue;
            }
            for (number, (a, b)) in before.releases.iter().zip(&*after.releases).enumerate() {
                self.audit.releases += 1;
                let moved = distance(a.event, &a.input, &b.input);
                if k != self.target.index() {
                    if moved != 0.0 {
                        let what = format!("{given}, what agent {name:?} releases moves by {moved}");
                        self.findings.add(Flaw::OthersMove, what);
                    }
                    continue;
                }
                self.audit.largest_move = self.audit.largest_move.max(moved / a.sensitivity);
                moves += u64::from(moved != 0.0);
                let within = moved <= a.sensitivity * (1.0 + ROUNDING);
                // What is no number is no bounded movement either.
                if !within {
                    let (number, sensitivity) = (number + 1, a.sensitivity);
                    let what = format!(
                        "{given}, its release {number} moves by {moved}, and its declared sensitivity is {sensitivity}"
                    );
                    self.findings.add(Flaw::Sensitivity, what);
                }
            }
        }
        let charges = recorded[self.target.index()].ledger.charges();
        let charged: u64 = charges.filter(|one| one.track != Track::Reissues).map(|one| one.count).sum();
        if moves > charged {
            let what = format!("{given}, {moves} of its releases move, and it is charged for {charged}");
            self.findings.add(Flaw::Uncharged, what);
        }
    }
}

/// Whether the same mechanisms were used, in the same order and size, for the same sensitivity.
pub(super) fn same_steps(one: &Witnessed, other: &Witnessed) -> bool {
    let step = |release: &Release| (release.event, release.sensitivity, release.input.len());
    one.releases.iter().map(step).eq(other.releases.iter().map(step))
}
