//! Sums and means by a token that goes round a ring (Cyffers and Bellet 2022): exact, or private against any one other member.

use super::ring_histogram::{REISSUES, RELEASE};
use super::{Access, Visitor, ring_histogram};
use crate::error::Mistake;
use crate::keys::{ABOVE_0, Key, Kind, key};
use crate::loaded::Loaded;
use crate::task::{Description, Leaves, Observer, OwnKeys, Refusal, Sizes, StatisticKind, Task, Unit, Yields};
use sottovoce_algorithms::Problem;
use sottovoce_algorithms::token::ring::{
    BadRing, MEMBERS_MIN, Reveal, Ring, RingConfig, RingGoal, RingNoise, RingUnit, State,
};
use sottovoce_core::PeerId;
use sottovoce_privacy::{self as privacy, Plan, Shares, Track, reissue_law};
use toml::Value;

/// The key of who makes noise.
const NOISE: &str = "token.noise";
/// The key of how long a holder waits for its successor.
pub(super) const TIMEOUT: &str = "token.timeout";

/// Contributions of full range that a token surely holds beside its noise.
const TOKEN_RANGES_MAX: u64 = 1 << 30;

/// Reissues when a task does not say.
const REISSUES_DEFAULT: u32 = 1;
/// Seconds before a member is passed over when a task does not say: a guess.
pub(super) const TIMEOUT_DEFAULT: f64 = 10.0;

/// What everybody may ask about it.
pub const DESCRIPTION: Description = Description {
    name: "ring",
    sentence: "nothing: when the token comes it adds its part, with `[privacy]` sometimes noise, and passes it on",
    yields: Yields::Estimate,
    statistics: &[StatisticKind::Mean, StatisticKind::Sum, StatisticKind::Histogram],
    leaves: Leaves::Token,
    everyone: true,
    in_rounds: true,
    keys: KEYS,
    own_defaults: |own| {
        for (key, default) in [(RELEASE, "broadcast"), (NOISE, "one")] {
            own.set(key, own.get(key).cloned().unwrap_or_else(|| default.into()));
        }
        own.set(TIMEOUT, own.number(TIMEOUT).unwrap_or(TIMEOUT_DEFAULT));
    },
    check,
    // PRIVACY: members after the last noise stand bare in what the last holder knows, before those ahead of them: proofs/ring.md.
    is_for_all: |task| task.privacy.is_none() || !is(&task.own, RELEASE, "last"),
    observer,
    deviation: |task, plan, problem| {
        if ring_histogram::is_wanted(task) {
            return ring_histogram::deviation(task, plan, problem);
        }
        let ring = Ring::new(config(task, plan, problem.agents())).ok()?;
        let rows = (0..problem.agents() as u32).map(|id| problem.data.size(PeerId(id)) as u64).sum();
        let weight = if unit(task) == RingUnit::Record { rows } else { problem.agents() as u64 };
        task.privacy.map(|_| ring.deviation(weight))
    },
    plan: |task, privacy, problem: &Problem| {
        if ring_histogram::is_wanted(task) {
            return ring_histogram::plan(task, privacy, problem);
        }
        let rounds = task.run.rounds.unwrap_or(1) as usize;
        // What may be seen once more, because a token was issued again, is planned for each contribution: proofs/ring.md.
        let again = if reissues(task) == 0 { 0 } else { rounds * shares(&task.own).seen_again() };
        let tracks = |noise| {
            let law = privacy.event(noise);
            vec![(Track::Token, vec![law; rounds]), (Track::Reissues, vec![reissue_law(law); again])]
        };
        let accountant = observer(task, problem.agents()).accountant(privacy.accountant);
        Plan::with_least_noise_on(tracks, privacy.epsilon, privacy.delta, &*accountant)
    },
    ..Description::PLAIN
};

/// What all tokens share: the section, and what happens to who is gone.
#[rustfmt::skip]
pub(super) const SHARED: [Key; 3] = [
    key("token", Kind::Table, "all defaults", "Read when algorithm = \"ring\", \"walk\" or \"walk-sgd\"."),
    key(REISSUES, Kind::Integer(0, 100), "1; 0 with colluders above 1 on a ring", "How many members in a row a holder may pass over when they are gone. On a ring with [privacy] 1 or 0, and 1 costs twice the budget, planned beforehand; without it any number, or with 0 none. Of a walk 1 or 0, whether anybody is; with [privacy] it is planned beforehand too, and contributions are kept some hops apart. At 0, or beyond it, the token waits for whoever has it."),
    key(TIMEOUT, Kind::Number(ABOVE_0), "10", "After so many seconds (in the simulator: mean intervals between two wakes) without a word from its successor a holder passes it over, and after three times as many without word that the one after it has the token."),
];

#[rustfmt::skip]
const KEYS: &[Key] = &[
    SHARED[0],
    key(RELEASE, Kind::Choice(&["broadcast", "last"]), "`\"broadcast\"`", "Who learns the sum: everyone, for which the last holder adds noise unless its hop had some; or the last holder alone, who must not show it: `network` does not."),
    key(NOISE, Kind::Choice(&["one", "all"]), "`\"one\"`", "Who makes noise: one hop of every n - 1, or every hop a share of it; Gaussian noise only."),
    SHARED[1],
    SHARED[2],
];

fn observer(task: &Task, agents: usize) -> Observer {
    if ring_histogram::is_wanted(task) {
        return ring_histogram::observer(task, agents);
    }
    let colluders = task.privacy.map_or(1, |privacy| privacy.colluders);
    // A peer that lists too few members yet may be looked at; it cannot start.
    let members = (agents as u32).max(colluders.saturating_add(2)).max(MEMBERS_MIN);
    let ring = privacy::Ring::new(members, colluders, shares(&task.own));
    ring.map_or(Observer::Everyone, Observer::Ring)
}

fn is(own: &OwnKeys, key: &str, word: &str) -> bool {
    own.get(key).and_then(Value::as_str) == Some(word)
}

fn shares(own: &OwnKeys) -> Shares {
    if is(own, NOISE, "all") { Shares::All } else { Shares::One }
}

fn reissues(task: &Task) -> u32 {
    let is_open = task.privacy.is_some_and(|privacy| privacy.colluders > 1);
    let asked = task.own.get(REISSUES).and_then(Value::as_integer);
    asked.map_or(if is_open { 0 } else { REISSUES_DEFAULT }, |asked| asked as u32)
}

fn unit(task: &Task) -> RingUnit {
    match task.privacy.map(|privacy| privacy.unit) {
        Some(Unit::Agent) => RingUnit::Agent,
        _ => RingUnit::Record,
    }
}

/// The ring of a task whose plan is known.
fn config(task: &Task, plan: Option<&Plan>, members: usize) -> RingConfig {
    let own = &task.own;
    let statistic = task.statistic.as_ref();
    RingConfig {
        members: members as u32,
        rounds: task.run.rounds.unwrap_or(1),
        range: statistic.and_then(|statistic| statistic.range),
        unit: unit(task),
        goal: match statistic.map(|statistic| statistic.kind) {
            Some(StatisticKind::Mean) => RingGoal::Mean,
            _ => RingGoal::Sum,
        },
        law: plan.and_then(|plan| plan.track(Track::Token).first().copied()),
        noise: if shares(own) == Shares::All { RingNoise::All } else { RingNoise::One },
        reveal: if is(own, RELEASE, "last") { Reveal::Last } else { Reveal::Broadcast },
        reissues: reissues(task),
        timeout: own.number(TIMEOUT).unwrap_or(TIMEOUT_DEFAULT),
    }
}

fn check(task: &Task, sizes: Option<Sizes>) -> Option<Refusal> {
    if ring_histogram::is_wanted(task) {
        return ring_histogram::check(task, sizes);
    }
    let Some(Sizes { agents, columns }) = sizes else {
        let colluders = task.privacy.map_or(1, |privacy| privacy.colluders);
        // As many members as any number of colluders could need.
        let ring = privacy::Ring::new(u32::MAX, colluders, shares(&task.own));
        if let Err(privacy::BadRing::Colluders { .. }) = ring {
            let what = format!(
                "privacy.colluders is {colluders}, and where one hop of every n - 1 makes noise two members can stand on both sides of another \
                 and see its values; accepted: colluders = 1, or token.noise = \"all\""
            );
            return Some(("privacy.colluders", what));
        }
        // PRIVACY: what several observers see together of two tokens is not bounded: proofs/ring.md.
        if colluders > 1 && reissues(task) > 0 {
            let what = format!(
                "token.reissues is {}, and what {colluders} colluding members see together of a token that is issued again is not bounded; \
                 accepted: token.reissues = 0, and the token waits for whoever has it, or colluders = 1",
                reissues(task)
            );
            return Some((REISSUES, what));
        }
        // What can be said before anybody is counted.
        let config = RingConfig { law: task.privacy.map(|privacy| privacy.event(1.0)), ..config(task, None, 1 << 16) };
        return Ring::new(config).err().map(|error| (key_of(&error), error.to_string()));
    };
    if columns != 1 {
        let what = format!("ring sums one column, and there are {columns}; accepted: statistic.columns = one name");
        return Some(("statistic.columns", what));
    }
    if agents < MEMBERS_MIN as usize {
        return Some(("algorithm", BadRing::Members(agents as u32).to_string()));
    }
    let colluders = task.privacy.map_or(1, |privacy| privacy.colluders);
    let ring = privacy::Ring::new(agents as u32, colluders, shares(&task.own));
    ring.err().map(|error| ("privacy.colluders", format!("privacy.colluders: {error}")))
}

fn key_of(error: &BadRing) -> &'static str {
    match error {
        BadRing::Range(..) | BadRing::Boundless => "statistic.range",
        BadRing::Shares => NOISE,
        BadRing::Rounds => "run.rounds",
        BadRing::Timeout(_) => TIMEOUT,
        BadRing::Reissues(_) => REISSUES,
        BadRing::Members(_) | BadRing::Law | BadRing::Loud(_) => "algorithm",
    }
}

pub(super) fn build<V: Visitor>(loaded: &Loaded, visitor: V) -> Result<V::Output, Mistake> {
    if ring_histogram::is_wanted(&loaded.task) {
        return ring_histogram::build(loaded, visitor);
    }
    let config = config(&loaded.task, loaded.plan.as_deref(), loaded.names.len());
    // A token that grows beyond its bound begins at the other end. A peer knows its own rows only, and takes the others to have as many.
    let rows = (0..loaded.problem.agents() as u32).map(|id| loaded.problem.data.size(PeerId(id)) as u64);
    let rows = rows.clone().sum::<u64>().max(rows.max().unwrap_or(0).saturating_mul(u64::from(config.members)));
    let most = TOKEN_RANGES_MAX / u64::from(config.rounds.max(1));
    if config.law.is_some() && config.unit == RingUnit::Record && rows > most {
        let what = format!(
            "run.rounds is {}, and a token holds no sum of {rows} rows so often; accepted: rounds times members times the most rows of one up to {TOKEN_RANGES_MAX}",
            config.rounds
        );
        return Err(Mistake::file(&loaded.task.source, what));
    }
    let ring = Ring::new(config);
    let ring = ring.map_err(|error| Mistake::file(&loaded.task.source, error.to_string()))?;
    let (knows, passed_over) =
        (Some(State::knows as fn(&State) -> bool), Some(State::passed_over as fn(&State) -> u32));
    Ok(visitor.visit(&ring, Access { knows, passed_over, ..Access::to_rows() }))
}
