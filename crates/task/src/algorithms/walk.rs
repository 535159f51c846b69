//! Sums, means and histograms by a token that walks over the complete graph (Cyffers and Bellet 2022): exact parts of a random sample of members, or private
//! against other members.

use super::ring::{SHARED, TIMEOUT, TIMEOUT_DEFAULT};
use super::ring_histogram::REISSUES;
use super::{Access, Visitor};
use crate::error::Mistake;
use crate::keys::{CHARGES_MAX, Key, Kind, key};
use crate::loaded::Loaded;
use crate::task::{
    Description, Leaves, Observer, OwnKeys, Privacy, Refusal, Sizes, StatisticKind, Steps, Task, Trust, Unit, Yields,
};
use sottovoce_algorithms::Problem;
use sottovoce_algorithms::token::ring::RingUnit;
use sottovoce_algorithms::token::walk::{
    BadSums, BadWalk, Beyond, Goal, MEMBERS_MIN, State, Sums, SumsConfig, TOKENS_MAX, Walk, WalkConfig,
};
use sottovoce_core::PeerId;
use sottovoce_privacy::calibrate::Uncalibrated;
use sottovoce_privacy::network::{self, BadNetwork, Cycle, Iteration, Reissued, Spacing};
use sottovoce_privacy::{Plan, Track};
use toml::Value;

/// The key of how many tokens walk at once.
pub(super) const COUNT: &str = "token.count";

/// Contributions of full range that a token surely holds beside its noise.
const TOKEN_RANGES_MAX: u64 = 1 << 30;

/// What everybody may ask about it.
pub const DESCRIPTION: Description = Description {
    name: "walk",
    sentence: "nothing: when a token comes it adds its part, with `[privacy]` noise too, and passes it on to anyone",
    yields: Yields::Estimate,
    statistics: &[StatisticKind::Mean, StatisticKind::Sum, StatisticKind::Histogram],
    leaves: Leaves::Token,
    everyone: true,
    in_hops: true,
    keys: KEYS,
    own_defaults,
    check,
    observer: |task, agents| observer(task, agents, Steps::Sums),
    complete: |task, graph, _| complete(task, graph.agents()),
    deviation: |task, plan, problem| {
        let sizes = (0..problem.agents() as u32).map(|id| problem.data.size(PeerId(id)) as f64);
        let least = sizes.clone().fold(f64::INFINITY, f64::min);
        let mean = sizes.sum::<f64>() / problem.agents() as f64;
        let rows = [least, mean, problem.data.largest() as f64];
        let walk = config(task, plan, problem.agents());
        sums(task, problem.dimension(), problem.agents()).ok()?.deviation(&walk, rows)
    },
    plan: |task, privacy, problem| plan(task, privacy, problem, Steps::Sums),
    ..Description::PLAIN
};

#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    SHARED[0],
    SHARED[1],
    SHARED[2],
    key(COUNT, Kind::Integer(1, TOKENS_MAX as i64), "1", "walk, walk-sgd: how many tokens walk at once, each of them an equal part of run.hops, with an equal part of privacy.contributions, rounded up."),
];

pub(super) fn own_defaults(own: &mut OwnKeys) {
    own.set(COUNT, own.get(COUNT).cloned().unwrap_or_else(|| 1.into()));
    own.set(TIMEOUT, own.number(TIMEOUT).unwrap_or(TIMEOUT_DEFAULT));
}

/// Whether who is gone is passed over: where a task does not say, wherever there is anything to pass.
fn reissues(task: &Task, agents: usize) -> bool {
    let (hops, _) = of_each(task, agents);
    let asked = task.own.get(REISSUES).and_then(Value::as_integer);
    let is_in_one_place = task.privacy.is_some_and(|privacy| privacy.trust == Trust::Curator);
    if !task.has_everyone() {
        return false;
    }
    asked.map_or(!is_in_one_place && Spacing::of(agents as u64, hops).is_some(), |asked| asked > 0)
}

/// How many tokens there are.
pub(super) fn tokens(task: &Task) -> u32 {
    task.own.get(COUNT).and_then(Value::as_integer).unwrap_or(1) as u32
}

/// Hops of each token, and at how many of its visits a member contributes to each.
pub(super) fn of_each(task: &Task, agents: usize) -> (u64, u32) {
    let (tokens, hops) = (tokens(task), task.run.hops.unwrap_or(1));
    let said = task.privacy.and_then(|privacy| privacy.contributions);
    let contributions = said.unwrap_or_else(|| default_contributions(hops, agents));
    (hops.div_ceil(tokens.into()), contributions.div_ceil(tokens))
}

/// ceil(1.2 T / n), as the authors' code has it.
fn default_contributions(hops: u64, agents: usize) -> u32 {
    let most = hops.saturating_mul(6).div_ceil(5 * agents.max(1) as u64);
    u32::try_from(most).unwrap_or(u32::MAX)
}

/// Fills in the bound on contributions.
pub(super) fn complete(task: &mut Task, agents: usize) {
    let hops = task.run.hops.unwrap_or(1);
    if let Some(privacy) = &mut task.privacy {
        privacy.contributions.get_or_insert_with(|| default_contributions(hops, agents));
    }
}

/// The walk as an accountant knows it.
fn network(task: &Task, agents: usize, present: f64) -> Result<network::Walk, BadNetwork> {
    let (hops, contributions) = of_each(task, agents);
    let colluders = task.privacy.map_or(1, |privacy| privacy.colluders);
    let walk = network::Walk::new(agents as u64, hops, contributions.into())?
        .with_present(present)?
        .with_colluders(colluders.into())?
        .with_tokens(tokens(task).into())?;
    if reissues(task, agents) { walk.with_reissues() } else { Ok(walk) }
}

/// Against whom a walk protects.
pub(super) fn observer(task: &Task, agents: usize, steps: Steps) -> Observer {
    // A task with too few members, or a peer that lists too few yet, may be looked at; it cannot start.
    let (colluders, present) = task.privacy.map_or((1, 1.0), |privacy| (privacy.colluders, privacy.present));
    let members = agents.max(colluders as usize + 2).max(MEMBERS_MIN as usize);
    let walk = network(task, members, present).or_else(|_| network(task, members, 1.0));
    walk.map_or(Observer::Everyone, |walk| Observer::Walk(walk, steps))
}

/// Contributions with the least noise that keeps the budget.
pub(super) fn plan(task: &Task, privacy: &Privacy, problem: &Problem, steps: Steps) -> Result<Plan, Uncalibrated> {
    let observer = observer(task, problem.agents(), steps);
    let Observer::Walk(walk, _) = observer else { return Err(Uncalibrated::OutOfReach) };
    let (epsilon, delta) = (privacy.epsilon, privacy.delta);
    let noise = match (Reissued::new(walk), steps) {
        (Some(reissued), _) => reissued.noise_multiplier(epsilon, delta),
        (None, Steps::Sums) => Cycle::new(walk).noise_multiplier(epsilon, delta),
        (None, Steps::Contractions) => Iteration::new(walk).noise_multiplier(epsilon, delta),
    };
    let event = privacy.event(noise.ok_or(Uncalibrated::OutOfReach)?);
    let most = (walk.contributions() * walk.tokens()) as usize;
    let mut tracks = vec![(Track::Token, vec![event; most])];
    // What may be seen whatever the path, because a token was issued again, is planned for each contribution: proofs/network-reissued.md.
    tracks.extend(walk.spacing().map(|spacing| (Track::Reissues, vec![spacing.again(event); most])));
    let plan = Plan::with_tracks(tracks, epsilon, delta, &*observer.accountant(privacy.accountant));
    plan.map_err(|_| Uncalibrated::OutOfReach)
}

/// The way of the token of a task whose plan is known.
pub(super) fn config(task: &Task, plan: Option<&Plan>, members: usize) -> WalkConfig {
    let (hops, contributions) = of_each(task, members);
    WalkConfig {
        members: members as u32,
        hops,
        tokens: tokens(task),
        contributions: task.privacy.map(|_| contributions),
        law: plan.and_then(|plan| plan.track(Track::Token).first().copied()),
        beyond: Beyond::Noise,
        track: Track::Token,
        timeout: reissues(task, members).then(|| task.own.number(TIMEOUT).unwrap_or(TIMEOUT_DEFAULT)),
    }
}

fn sums(task: &Task, columns: usize, members: usize) -> Result<Sums, BadSums> {
    let statistic = task.statistic.as_ref();
    let goal = match statistic.map(|statistic| statistic.kind) {
        Some(StatisticKind::Mean) => Goal::Mean,
        Some(StatisticKind::Histogram) => Goal::Histogram { bins: statistic.and_then(|one| one.bins).unwrap_or(0) },
        _ => Goal::Sum,
    };
    let unit = match task.privacy.map(|privacy| privacy.unit) {
        Some(Unit::Agent) => RingUnit::Agent,
        _ => RingUnit::Record,
    };
    let range = statistic.and_then(|statistic| statistic.range);
    let config = SumsConfig { columns: columns as u32, range, unit, goal, private: task.privacy.is_some() };
    Sums::new(config, members as u32)
}

/// What holds for every walk, whatever its holders do.
pub(super) fn check_path(task: &Task, sizes: Option<Sizes>) -> Option<Refusal> {
    let asked = task.own.get(REISSUES).and_then(Value::as_integer).unwrap_or(0);
    if asked > 1 {
        let what = format!("token.reissues is {asked}; accepted for a walk: 1, whoever is gone is passed over, or 0");
        return Some((REISSUES, what));
    }
    let law = task.privacy.map(|privacy| privacy.event(1.0));
    let agents = sizes.map_or(1 << 20, |sizes| sizes.agents);
    if let Err(error) = (WalkConfig { law, ..config(task, None, agents) }).check() {
        return Some((key_of(&error), error.to_string()));
    }
    if sizes.is_none() || task.privacy.is_none() {
        return None;
    }
    let (_, contributions) = of_each(task, agents);
    if i64::from(contributions) * i64::from(tokens(task)) > CHARGES_MAX {
        let what =
            format!("privacy.contributions is {contributions} for each token; accepted: at most {CHARGES_MAX} in all");
        return Some(("privacy.contributions", what));
    }
    let present = task.privacy.map_or(1.0, |privacy| privacy.present);
    network(task, agents, present).err().map(|error| match error {
        BadNetwork::TooManyColluders { .. } => ("privacy.colluders", format!("privacy.colluders: {error}")),
        BadNetwork::OutOfRange { .. } => ("privacy.present", format!("privacy: {error}")),
    })
}

fn check(task: &Task, sizes: Option<Sizes>) -> Option<Refusal> {
    if let Some(refusal) = check_path(task, sizes) {
        return Some(refusal);
    }
    let columns = sizes.map_or(1, |sizes| sizes.columns);
    sums(task, columns, MEMBERS_MIN as usize).err().map(|error| {
        let key = match error {
            BadSums::Range(..) | BadSums::Boundless => "statistic.range",
            BadSums::Columns(_) => "statistic.columns",
            BadSums::Bins(_) => "statistic.bins",
        };
        (key, format!("{key}: {error}"))
    })
}

fn key_of(error: &BadWalk) -> &'static str {
    match error {
        BadWalk::Hops => "run.hops",
        BadWalk::Tokens(_) => COUNT,
        BadWalk::Contributions => "privacy.contributions",
        BadWalk::Law => "privacy.mechanism",
        BadWalk::Timeout(_) => TIMEOUT,
        BadWalk::Short(_) => REISSUES,
        BadWalk::Passed => REISSUES,
        BadWalk::Cut => "graph",
        BadWalk::Members(_) | BadWalk::Loud(_) => "algorithm",
    }
}

/// The walk of a task whose plan is known.
pub(super) fn walk(loaded: &Loaded) -> Result<Walk<Sums>, Mistake> {
    let (task, members) = (&loaded.task, loaded.names.len());
    let refused = |what: String| Mistake::file(&task.source, what);
    let config = config(task, loaded.plan.as_deref(), members);
    // What is larger than a token holds would be refused on its way. A peer knows its own rows only.
    let rows = loaded.problem.data.largest() as u64;
    if config.law.is_some() && config.hops.saturating_mul(rows) > TOKEN_RANGES_MAX {
        let hops = task.run.hops.unwrap_or(1);
        let what = format!(
            "run.hops is {hops}, and a token holds no sum of {rows} rows so often; accepted: hops times rows up to {TOKEN_RANGES_MAX}"
        );
        return Err(refused(what));
    }
    let sums = sums(task, loaded.problem.dimension(), members).map_err(|error| refused(error.to_string()))?;
    Walk::new(config, sums).map_err(|error| refused(error.to_string()))
}

pub(super) fn build<V: Visitor>(loaded: &Loaded, visitor: V) -> Result<V::Output, Mistake> {
    let walk = walk(loaded)?;
    let (knows, passed_over) =
        (Some(State::knows as fn(&State) -> bool), Some(State::passed_over as fn(&State) -> u32));
    Ok(visitor.visit(&walk, Access { knows, passed_over, ..Access::to_rows() }))
}
