//! Whole runs, many times, on two neighbouring data sets: what someone who knows everything but one record can tell from all that its
//! agent released.
//!
//! The statistic is the log-likelihood ratio of the target's outputs. The inputs under the data set that was used are recorded; those under
//! the other come from repeating the run on it with all outputs as they were.

use super::records::{Record, extremes};
use super::stage::{Altered, Witnessed, neighbourhood, record, replay};
use super::{Findings, Flaw, replay::same_steps};
use sottovoce_core::{Coin, PeerId};
use sottovoce_privacy::audit::{Bound, Release, Worlds, distance, epsilon_bound, log_likelihood_ratio, mu_bound};
use sottovoce_privacy::{Event, gaussian_epsilon};
use sottovoce_task::load::Loaded;
use std::ops::ControlFlow;

/// With more agents than this, the target and some of its neighbours run alone.
const AGENTS_MAX: usize = 32;

/// What whole runs came to.
#[derive(Clone, Debug, PartialEq)]
pub struct RunAudit {
    /// The agent whose record was replaced.
    pub target: String,
    /// How the two records differ.
    pub records: &'static str,
    /// Agents in each run.
    pub agents: usize,
    /// Releases of the target in each run.
    pub releases: usize,
    /// Runs in each of the two worlds.
    pub trials: u64,
    /// Lower bounds on the epsilon of a run, at the task's delta.
    pub epsilon: Bound,
    /// Whether they were found by taking all noise as Gaussian.
    pub through_mu: bool,
    /// Who has seen it, where a task protects from members; nobody in particular where it protects from everyone.
    pub seen_by: Vec<String>,
}

/// Runs the task `trials` times in each of two worlds. Nothing where nobody releases anything.
pub(super) fn audit(
    loaded: &Loaded,
    trials: u64,
    seed: u64,
    findings: &mut Findings,
    watch: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> ControlFlow<(), Option<RunAudit>> {
    let nothing = ControlFlow::Continue(None);
    let part;
    let (stage, target) = match busiest(loaded, seed) {
        None => return nothing,
        Some(target) if loaded.problem.agents() > AGENTS_MAX => {
            part = neighbourhood(loaded, target, AGENTS_MAX);
            (&part.0, part.1)
        }
        Some(target) => (loaded, target),
    };
    let Some((pair, what)) = worst_pair(stage, target, seed) else { return nothing };
    let mut worlds = Worlds::default();
    let mut releases = 0;
    for trial in 0..trials {
        for world in 0..2 {
            let noise = Coin::new(seed, world, trial).bits();
            let [here, there] = if world == 0 { [&pair[0], &pair[1]] } else { [&pair[1], &pair[0]] };
            let statistic = record(stage, noise, Some(here)).and_then(|recorded| {
                let replayed = replay(stage, &recorded, Some(there))?;
                let (own, other) = (&recorded[target.index()], &replayed[target.index()]);
                releases = own.releases.len();
                favour(own, other).ok_or_else(|| "the target's releases depend on its data".to_owned())
            });
            match statistic {
                Ok(favour) if world == 0 => worlds.first.push(favour),
                Ok(favour) => worlds.second.push(-favour),
                Err(why) => {
                    findings.add(Flaw::GivesUp, format!("two runs on neighbouring data cannot be compared: {why}"));
                    return nothing;
                }
            }
        }
        watch(trial + 1, trials)?;
    }
    let privacy = loaded.task.privacy.expect("only private tasks are audited");
    let plan = loaded.plan.as_ref().expect("a private task has a plan");
    let through_mu = plan.steps().iter().chain(plan.asides()).all(|step| matches!(step, Event::Gaussian { .. }));
    let epsilon = if through_mu {
        mu_bound(&worlds).map(|mu| gaussian_epsilon(mu, privacy.delta))
    } else {
        epsilon_bound(&worlds, privacy.delta)
    };
    if epsilon.certain > privacy.epsilon {
        let what = format!(
            "whole runs need epsilon >= {} at delta = {}, and {} is promised",
            epsilon.certain, privacy.delta, privacy.epsilon
        );
        findings.add(Flaw::WholeRun, what);
    }
    let (agents, target) = (stage.problem.agents(), stage.names[target.index()].clone());
    let seen_by = Vec::new();
    ControlFlow::Continue(Some(RunAudit {
        target,
        records: what,
        agents,
        releases,
        trials,
        epsilon,
        through_mu,
        seen_by,
    }))
}

/// How much the outputs of a run speak for the inputs that it had, against others.
fn favour(own: &Witnessed, other: &Witnessed) -> Option<f64> {
    let ratio =
        |(a, b): (&Release, &Release)| log_likelihood_ratio(a.event, a.sensitivity, &a.output, &a.input, &b.input);
    same_steps(own, other).then(|| own.releases.iter().zip(&*other.releases).map(ratio).sum())
}

/// The agent with the most releases in a run, the first of several.
fn busiest(loaded: &Loaded, seed: u64) -> Option<PeerId> {
    let recorded = record(loaded, Coin::new(seed, 2, 0).bits(), None).ok()?;
    let releases = |id: &PeerId| recorded[id.index()].releases.len();
    (0..recorded.len() as u32).rev().map(PeerId).filter(|id| releases(id) > 0).max_by_key(releases)
}

/// The two data sets of the pair of records whose releases lie farthest apart, in units of their noise.
fn worst_pair(stage: &Loaded, target: PeerId, seed: u64) -> Option<([Altered; 2], &'static str)> {
    let with = |record: &Record| Altered::new(&stage.problem, target, 0, (&record.x, record.y));
    let mut worst: Option<(f64, [Altered; 2], &'static str)> = None;
    for [one, other] in extremes(stage) {
        let pair = [with(&one), with(&other)];
        let Ok(recorded) = record(stage, Coin::new(seed, 3, 0).bits(), Some(&pair[0])) else { continue };
        let Ok(replayed) = replay(stage, &recorded, Some(&pair[1])) else { continue };
        let (own, theirs) = (&recorded[target.index()].releases, &replayed[target.index()].releases);
        let apart = own.iter().zip(&**theirs).map(|(a, b)| distance(a.event, &a.input, &b.input) / a.sensitivity);
        let apart: f64 = apart.map(|x| x * x).sum();
        if worst.as_ref().is_none_or(|(most, ..)| apart > *most) {
            worst = Some((apart, pair, one.what));
        }
    }
    worst.map(|(_, pair, what)| (pair, what))
}
