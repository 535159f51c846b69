//! Histograms by a token that goes round a ring (Cyffers and Bellet 2022, Algorithm 4.3): `algorithm = "ring"` with the statistic of that name.

use super::{Access, Visitor};
use crate::error::Mistake;
use crate::loaded::Loaded;
use crate::task::{Observer, Privacy, Refusal, Sizes, StatisticKind, Task, Unit};
use sottovoce_algorithms::token::histogram::{BadHistogram, HistogramConfig, RingHistogram, State};
use sottovoce_algorithms::token::ring::MEMBERS_MIN;
use sottovoce_algorithms::{Bounds, Problem};
use sottovoce_core::PeerId;
use sottovoce_privacy::calibrate::Uncalibrated;
use sottovoce_privacy::network::Clones;
use sottovoce_privacy::{Event, Plan, Track};
use toml::Value;

/// The key of who learns the sum.
pub(super) const RELEASE: &str = "token.release";
/// The key of how many members in a row may be passed over.
pub(super) const REISSUES: &str = "token.reissues";

/// Whether a task of a ring wants one.
pub(super) fn is_wanted(task: &Task) -> bool {
    task.statistic.as_ref().is_some_and(|statistic| statistic.kind == StatisticKind::Histogram)
}

fn bins(task: &Task) -> u32 {
    task.statistic.as_ref().and_then(|statistic| statistic.bins).unwrap_or(0)
}

fn clones(task: &Task, agents: usize) -> Option<Clones> {
    // A peer that lists too few members yet may be looked at; it cannot start.
    let members = (agents as u64).max(MEMBERS_MIN.into());
    Clones::new(members, task.run.rounds.unwrap_or(1).into(), bins(task).into()).ok()
}

/// Against whom it protects.
pub(super) fn observer(task: &Task, agents: usize) -> Observer {
    clones(task, agents).map_or(Observer::Everyone, Observer::Answers)
}

/// One answer in each round, as clear as the budget allows.
pub(super) fn plan(task: &Task, privacy: &Privacy, problem: &Problem) -> Result<Plan, Uncalibrated> {
    let clones = clones(task, problem.agents()).ok_or(Uncalibrated::OutOfReach)?;
    let (epsilon, delta) = (privacy.epsilon, privacy.delta);
    let answer = Event::RandomizedResponse { epsilon: clones.local_epsilon(epsilon, delta) };
    let rounds = task.run.rounds.unwrap_or(1) as usize;
    let plan = Plan::with_tracks(vec![(Track::Token, vec![answer; rounds])], epsilon, delta, &clones);
    plan.map_err(|_| Uncalibrated::OutOfReach)
}

fn histogram(task: &Task, plan: Option<&Plan>, members: usize) -> Result<RingHistogram, BadHistogram> {
    let range = task.statistic.as_ref().and_then(|statistic| statistic.range);
    RingHistogram::new(HistogramConfig {
        members: members as u32,
        rounds: task.run.rounds.unwrap_or(1),
        range: range.unwrap_or(Bounds { low: f64::NAN, high: f64::NAN }),
        bins: bins(task),
        local_epsilon: plan.and_then(|plan| match plan.track(Track::Token).first() {
            Some(Event::RandomizedResponse { epsilon }) => Some(*epsilon),
            _ => None,
        }),
    })
}

/// The standard deviation of the whole estimate.
pub(super) fn deviation(task: &Task, plan: Option<&Plan>, problem: &Problem) -> Option<f64> {
    let rows = (0..problem.agents() as u32).map(|id| problem.data.size(PeerId(id)) as u64).sum();
    let histogram = histogram(task, plan, problem.agents()).ok()?;
    task.privacy.map(|_| histogram.deviation(rows))
}

pub(super) fn check(task: &Task, sizes: Option<Sizes>) -> Option<Refusal> {
    let agents = sizes.map_or(1 << 16, |sizes| sizes.agents);
    if let Some(columns) = sizes.map(|sizes| sizes.columns).filter(|columns| *columns != 1) {
        let what =
            format!("a histogram is of one column, and there are {columns}; accepted: statistic.columns = one name");
        return Some(("statistic.columns", what));
    }
    if task.privacy.is_some_and(|privacy| privacy.colluders > 1) {
        let what = "privacy.colluders: two members can stand on both sides of another and see its answers; accepted for a histogram on a ring: \
                    colluders = 1, or algorithm = \"walk\"";
        return Some(("privacy.colluders", what.to_owned()));
    }
    for (key, is_else) in [
        (RELEASE, task.own.get(RELEASE).and_then(Value::as_str) == Some("last")),
        (REISSUES, task.own.get(REISSUES).and_then(Value::as_integer).is_some_and(|reissues| reissues > 0)),
    ] {
        if is_else {
            let what = format!("{key}: a histogram is told to everyone, and passes nobody over; accepted: no {key}");
            return Some((key, what));
        }
    }
    let key = |error: &BadHistogram| match error {
        BadHistogram::Rounds => "run.rounds",
        BadHistogram::Range(..) => "statistic.range",
        BadHistogram::Bins(_) => "statistic.bins",
        BadHistogram::Members(_) | BadHistogram::Answers(_) => "algorithm",
    };
    histogram(task, None, agents).err().map(|error| (key(&error), error.to_string()))
}

pub(super) fn build<V: Visitor>(loaded: &Loaded, visitor: V) -> Result<V::Output, Mistake> {
    let task = &loaded.task;
    let refused = |what: String| Mistake::file(&task.source, what);
    if task.privacy.is_some_and(|privacy| privacy.unit == Unit::Agent) && loaded.problem.data.largest() > 1 {
        let what = "privacy.unit is \"agent\", and an agent with several rows answers for each of them; accepted for a histogram on a ring: unit = \
                    \"record\", one row for each agent, or algorithm = \"walk\"";
        return Err(refused(what.to_owned()));
    }
    let histogram = histogram(task, loaded.plan.as_deref(), loaded.names.len());
    let histogram = histogram.map_err(|error| refused(error.to_string()))?;
    Ok(visitor.visit(&histogram, Access { knows: Some(State::knows), ..Access::to_rows() }))
}
