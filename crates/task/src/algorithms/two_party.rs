//! Statistics of pairs that compute under encryption, for an aggregator (thesis 3.3.4).

use super::{Access, Visitor, answers, pairs, refused};
use crate::error::Mistake;
use crate::loaded::Loaded;
use crate::task::{Description, Leaves, Observer, Privacy, Refusal, Sizes, Statistic, StatisticKind, Task, Yields};
use sottovoce_algorithms::{ConfigError, Problem};
use sottovoce_core::PeerId;
use sottovoce_encrypted::two_party::{
    Circuits, Engine, Ideal, Mechanism, PairStatistic, State, TwoParty, TwoPartyConfig, best_pairs,
    mechanism::answers as answers_of,
};
use sottovoce_privacy::calibrate::Uncalibrated;
use sottovoce_privacy::{Event, Plan};

/// Pairs that a simulation computes by real circuits; beyond, by an ideal functionality of the same law.
const CIRCUITS_MAX: u64 = 64;
/// Mean intervals between two wakes before something is done again, or without somebody: two seconds of a network on one machine.
const TIMEOUT: f64 = 20.0;

/// What everybody may ask about it.
pub const DESCRIPTION: Description = Description {
    name: "two-party",
    sentence: "nothing: members meet by permutations from a common beacon, and each pair computes a kernel that only the aggregator reads",
    yields: Yields::Estimate,
    statistics: &[StatisticKind::Variance, StatisticKind::Gini, StatisticKind::Kendall, StatisticKind::Auc],
    leaves: Leaves::Halves,
    everyone: true,
    in_rounds: true,
    keys: answers::KEYS,
    check,
    check_everyone,
    observer: |_, _| Observer::Aggregator,
    deviation,
    on_peers: Some(pairs::on_peers),
    plan,
    ..Description::PLAIN
};

fn kind(statistic: &Statistic) -> PairStatistic {
    match statistic.kind {
        StatisticKind::Auc => PairStatistic::Auc,
        StatisticKind::Kendall => PairStatistic::Kendall,
        StatisticKind::Gini => PairStatistic::Gini,
        StatisticKind::Variance => PairStatistic::Variance,
        other => unreachable!("reading the task has refused {}", other.name()),
    }
}

/// P: as the task says, or by the formula.
fn permutations(task: &Task, statistic: &Statistic, members: usize) -> Result<u32, ConfigError> {
    let range = statistic.range.expect("reading the task has checked it");
    match (task.pairs, task.privacy) {
        (Some(pairs), _) => Ok(pairs),
        (None, None) => Ok(1),
        (None, Some(Privacy { epsilon, .. })) => {
            best_pairs(kind(statistic), statistic.bits, range, epsilon, members as u32)
        }
    }
}

/// What each pair computes, and P.
fn mechanism(task: &Task, members: usize) -> Result<(Mechanism, u32), ConfigError> {
    let statistic = task.statistic.as_ref().expect("reading the task has checked it");
    let range = statistic.range.expect("reading the task has checked it");
    let pairs = permutations(task, statistic, members)?;
    let epsilon = task.privacy.map(|privacy| privacy.epsilon / f64::from(pairs));
    Ok((Mechanism::new(kind(statistic), statistic.bits, range, epsilon)?, pairs))
}

fn check(task: &Task, sizes: Option<Sizes>) -> Option<Refusal> {
    let statistic = task.statistic.as_ref()?;
    if statistic.range.is_none() {
        let what = "statistic.range is missing, and circuits compute on a grid between public bounds; accepted: statistic.range = [low, high]";
        return Some(("statistic", what.to_owned()));
    }
    if statistic.ties != crate::task::Ties::Zero {
        let what = "statistic.ties: circuits count equal scores as nothing; accepted with two-party: ties = \"zero\"";
        return Some(("statistic.ties", what.to_owned()));
    }
    if task.privacy.is_some_and(|privacy| privacy.delta > 0.0) {
        let what = "privacy.delta: answers of pairs have a pure epsilon; accepted with two-party: no delta, or 0";
        return Some(("privacy.delta", what.to_owned()));
    }
    let members = sizes.map_or(2, |sizes| sizes.agents);
    if let Err(error) = mechanism(task, members) {
        return Some((if task.privacy.is_some() { "privacy.epsilon" } else { "statistic" }, error.to_string()));
    }
    answers::check(task, sizes)
}

fn check_everyone(task: &Task, problem: &Problem) -> Option<Refusal> {
    if let Err(error) = pairs::factor(task.statistic.as_ref()?) {
        return Some(("statistic.kind", error.to_string()));
    }
    let most = problem.data.largest();
    (most > 1).then(|| {
        let what =
            format!("an agent has {most} rows, and meets with one; accepted with two-party: one row for each agent");
        ("data.train", what)
    })
}

/// As many answers as permutations, each with its circuit's proven epsilon.
fn plan(task: &Task, privacy: &Privacy, problem: &Problem) -> Result<Plan, Uncalibrated> {
    let (mechanism, pairs) = mechanism(task, problem.agents()).map_err(|_| Uncalibrated::OutOfReach)?;
    let epsilon = mechanism.epsilon().ok_or(Uncalibrated::OutOfReach)?;
    let steps = vec![Event::RandomizedResponse { epsilon }; pairs as usize];
    Plan::new(steps, privacy.epsilon, privacy.delta, privacy.accountant.accountant())
        .map_err(|_| Uncalibrated::OutOfReach)
}

/// By the formula, around the members' values, as if these were uniform on the range: nobody may look at them.
fn deviation(task: &Task, _: Option<&Plan>, problem: &Problem) -> Option<f64> {
    let (mechanism, pairs) = mechanism(task, problem.agents()).ok()?;
    let (members, noise, statistic) = (problem.agents() as u32, mechanism.noise_variance(), task.statistic.as_ref()?);
    let variance = match (statistic.kind, statistic.positives, statistic.rows) {
        (StatisticKind::Auc, Some(positives), Some(rows)) if rows > 1 && positives < rows => {
            let (positives, rows) = (positives as f64, rows as f64);
            let met = answers_of(members, pairs) * 2.0 * positives * (rows - positives) / (rows * (rows - 1.0));
            (mechanism.guess().pairs + noise) / met
        }
        (StatisticKind::Auc, ..) => return None,
        _ => mechanism.guess().around_the_values(members, pairs, noise),
    };
    Some(libm::sqrt(variance))
}

pub(super) fn build<V: Visitor>(loaded: &Loaded, visitor: V) -> Result<V::Output, Mistake> {
    let members = loaded.names.len();
    let statistic = loaded.task.statistic.as_ref().expect("reading the task has checked it");
    let own = (0..members as u32).map(|id| loaded.problem.data.size(PeerId(id)));
    if own.clone().any(|rows| rows > 1) {
        let what = "an agent has several rows, and meets with one; accepted with two-party: one row for each agent";
        return Err(Mistake::file(&loaded.task.source, what));
    }
    let config = TwoPartyConfig {
        members: members as u32,
        aggregator: answers::aggregator(loaded)?.0,
        statistic: kind(statistic),
        range: statistic.range.expect("reading the task has checked it"),
        bits: statistic.bits,
        epsilon: loaded.task.privacy.map(|privacy| privacy.epsilon),
        pairs: permutations(&loaded.task, statistic, members).map_err(refused(loaded))?,
        timeout: TIMEOUT,
    };
    // A peer knows its own row only. What it runs is real, whatever the size; of the other kind it could send nothing.
    let is_peer = own.filter(|rows| *rows > 0).count() <= 1;
    if is_peer || answers_of(config.members, config.pairs) as u64 <= CIRCUITS_MAX {
        run::<Circuits, V>(loaded, config, visitor)
    } else {
        run::<Ideal, V>(loaded, config, visitor)
    }
}

fn run<E: Engine, V: Visitor>(loaded: &Loaded, config: TwoPartyConfig, visitor: V) -> Result<V::Output, Mistake> {
    let protocol = TwoParty::<E>::new(config).map_err(refused(loaded))?;
    Ok(visitor.visit(&protocol, Access { knows: Some(State::knows), ..Access::to_rows() }))
}
