//! Sums, means and histograms under masks that cancel (GOPA: Sabater, Bellet and Ramon): exact, or private against everyone and members that collude.

use super::{Access, Visitor};
use crate::error::Mistake;
use crate::keys::{ABOVE_0, Key, Kind, key};
use crate::loaded::Loaded;
use crate::task::{
    Description, Detail, Details, Leaves, Observer, Privacy, Refusal, Sizes, StatisticKind, Task, Unit, Yields,
};
use sottovoce_algorithms::token::ring::RingUnit;
use sottovoce_algorithms::token::walk::Goal;
use sottovoce_algorithms::{Bounds, Problem};
use sottovoce_core::PeerId;
use sottovoce_encrypted::gopa::{BadGopa, Gopa, GopaConfig, MEMBERS_MIN, State};
use sottovoce_privacy::gopa::{self, theorem};
use sottovoce_privacy::{Accountant, Event, Gaussian, Plan, Rdp, Track};

/// The key of how long the board waits for members.
const TIMEOUT: &str = "gopa.timeout";
/// The key of who keeps what members publish.
const BOARD: &str = "roles.board";
/// Seconds before the board goes on without a member when a task does not say: a guess.
const TIMEOUT_DEFAULT: f64 = 30.0;
/// The most numbers of a model that is summed; the accountant takes it for all.
pub(super) const OF_MODELS_MAX: u32 = 1 << 16;
/// Others that each member picks where there is nothing to prove.
const NEIGHBOURS_WITHOUT_PRIVACY: u32 = 10;

/// What everybody may ask about it.
pub const DESCRIPTION: Description = Description {
    name: "gopa",
    sentence: "nothing: it publishes its part under masks that cancel in the sum, with `[privacy]` and a share of noise, and opens what the board asks for",
    yields: Yields::Estimate,
    statistics: &[StatisticKind::Mean, StatisticKind::Sum, StatisticKind::Histogram],
    leaves: Leaves::MaskedSums,
    everyone: true,
    in_rounds: true,
    keys: KEYS,
    own_defaults: |own| own.set(TIMEOUT, own.number(TIMEOUT).unwrap_or(TIMEOUT_DEFAULT)),
    check,
    on_peers: Some(|task| {
        let columns = task.statistic.as_ref().and_then(|statistic| statistic.columns.as_ref());
        columns.is_none().then_some(
            "statistic.columns is missing, and each peer has a file of its own; accepted for peers: statistic.columns = the names of columns",
        )
    }),
    observer: |task, agents| match task.privacy {
        // A peer that lists too few members yet may be looked at; it cannot start.
        Some(privacy) => account(task, &privacy, agents).map_or(Observer::Everyone, Observer::Gopa),
        None => Observer::Everyone,
    },
    deviation: |task, plan, problem| {
        let sum = Gopa::new(config(task, plan, problem.agents(), problem.dimension())?).ok()?;
        task.privacy.map(|_| sum.deviation(weight(task, problem)))
    },
    outlook,
    plan: |task, privacy, problem: &Problem| {
        let rounds = task.run.rounds.unwrap_or(1) as usize;
        let tracks = |noise| vec![(Track::Sums, vec![privacy.event(noise); rounds])];
        match account(task, privacy, problem.agents()) {
            Ok(gopa) => {
                let accountant = Observer::Gopa(gopa).accountant(privacy.accountant);
                Plan::with_least_noise_on(tracks, privacy.epsilon, privacy.delta, &*accountant)
            }
            // Refused with its reason when sizes are checked; until then nothing may leave.
            Err(_) => Ok(Plan::nothing()),
        }
    },
    ..Description::PLAIN
};

#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    key("gopa", Kind::Table, "all defaults", "Read when algorithm = \"gopa\" or \"federated-averaging\"."),
    key(TIMEOUT, Kind::Number(ABOVE_0), "30", "After so many seconds (in the simulator: mean intervals between two wakes) without a word from a member the board goes on without it."),
    key("roles", Kind::Table, "all defaults", "Who does what others do not."),
    key(BOARD, Kind::Text, "the first agent", "gopa, federated-averaging: who keeps what members publish and adds it up. It is a member too, and everyone waits for it."),
];

/// floor((1 - honest) n) members that collude, and ceil(present n) that finish; what numbers round is in favour of whoever is protected.
fn facts(privacy: &Privacy, agents: usize) -> (u32, u32) {
    let n = agents as f64;
    let colluders = libm::floor((1.0 - privacy.honest) * n + 1e-9) as u32;
    let finishing = libm::ceil(privacy.present * n - 1e-9) as u32;
    (colluders, finishing.min(agents as u32))
}

/// How many numbers are summed, of rows with so many columns.
fn numbers(task: &Task) -> u32 {
    let Some(statistic) = &task.statistic else { return OF_MODELS_MAX };
    match statistic.kind {
        StatisticKind::Histogram => statistic.bins.unwrap_or(1),
        _ => statistic.columns.as_ref().map_or(1, Vec::len) as u32,
    }
}

/// The accountant of a private task.
fn account(task: &Task, privacy: &Privacy, agents: usize) -> Result<gopa::Gopa, gopa::BadGopa> {
    let (colluders, finishing) = facts(privacy, agents);
    let members = agents as u32;
    let config = gopa::GopaConfig {
        members,
        colluders,
        finishing,
        neighbours: privacy.neighbours.unwrap_or(0).min(members.saturating_sub(1)),
        rounds: task.run.rounds.unwrap_or(1),
        numbers: numbers(task),
    };
    match privacy.neighbours {
        Some(_) => gopa::Gopa::certified(config, privacy.delta),
        None => gopa::Gopa::with_fewest_neighbours(config, privacy.delta),
    }
}

fn unit(task: &Task) -> RingUnit {
    match task.privacy.map(|privacy| privacy.unit) {
        Some(Unit::Agent) => RingUnit::Agent,
        _ => RingUnit::Record,
    }
}

/// How much all members together weigh in a mean.
fn weight(task: &Task, problem: &Problem) -> u64 {
    let rows = || (0..problem.agents() as u32).map(|id| problem.data.size(PeerId(id)) as u64).sum();
    if unit(task) == RingUnit::Record { rows() } else { problem.agents() as u64 }
}

/// Who takes part, and in which way, in a task whose plan is known; none where there is no guarantee. What is summed is for the caller to say.
pub(super) fn protocol(task: &Task, plan: Option<&Plan>, members: usize) -> Option<GopaConfig> {
    let members = u32::try_from(members).ok()?;
    let (finishing, others, neighbours, threshold) = match task.privacy {
        Some(privacy) => {
            let gopa = account(task, &privacy, members as usize).ok()?;
            let gopa::GopaConfig { finishing, neighbours, .. } = gopa.config();
            (finishing, gopa.others(), neighbours, gopa.threshold())
        }
        None => {
            let neighbours = NEIGHBOURS_WITHOUT_PRIVACY.min(members.saturating_sub(1));
            (MEMBERS_MIN.max(members / 2), 1, neighbours, neighbours.div_ceil(3))
        }
    };
    Some(GopaConfig {
        members,
        finishing,
        others,
        neighbours,
        threshold,
        rounds: task.run.rounds.unwrap_or(1),
        board: PeerId(0),
        columns: 1,
        range: Bounds { low: 0.0, high: 1.0 },
        unit: unit(task),
        goal: Goal::Sum,
        learns: None,
        noise: match plan.and_then(|plan| plan.track(Track::Sums).first()) {
            Some(Event::Gaussian { noise_multiplier }) => Some(*noise_multiplier),
            _ => None,
        },
        timeout: task.own.number(TIMEOUT).unwrap_or(TIMEOUT_DEFAULT),
    })
}

/// The sum of a task whose plan is known; none where it has no bounds or no guarantee.
fn config(task: &Task, plan: Option<&Plan>, members: usize, columns: usize) -> Option<GopaConfig> {
    let statistic = task.statistic.as_ref()?;
    Some(GopaConfig {
        columns: columns as u32,
        range: statistic.range?,
        goal: match statistic.kind {
            StatisticKind::Mean => Goal::Mean,
            StatisticKind::Histogram => Goal::Histogram { bins: statistic.bins.unwrap_or(0) },
            _ => Goal::Sum,
        },
        ..protocol(task, plan, members)?
    })
}

/// Refuses too few members, and what cannot be promised to so many.
pub(super) fn check_members(task: &Task, agents: usize) -> Option<Refusal> {
    if agents < MEMBERS_MIN as usize {
        return Some(("algorithm", BadGopa::Members(agents as u32).to_string()));
    }
    let refused = task.privacy.and_then(|privacy| account(task, &privacy, agents).err());
    refused.map(|error| ("privacy", format!("privacy: {error}")))
}

fn check(task: &Task, sizes: Option<Sizes>) -> Option<Refusal> {
    let statistic = task.statistic.as_ref()?;
    let Some(Sizes { agents, columns }) = sizes else {
        return statistic.range.is_none().then(|| {
            let what = "statistic.range is missing, and sums in fixed point need bounds of all values; accepted: statistic.range = [low, high]";
            ("statistic", what.to_owned())
        });
    };
    if statistic.kind == StatisticKind::Histogram && columns != 1 {
        let what =
            format!("a histogram is of one column, and there are {columns}; accepted: statistic.columns = one name");
        return Some(("statistic.columns", what));
    }
    if let Some(refusal) = check_members(task, agents) {
        return Some(refusal);
    }
    // Noise is the plan's, and looked at when the sum is built.
    let error = Gopa::new(config(task, None, agents, columns)?).err()?;
    Some(("statistic.range", error.to_string()))
}

/// Neighbours, masks, noise and error; and the same with what each accountant asks for.
fn outlook(task: &Task, plan: Option<&Plan>, problem: &Problem) -> Details {
    let (Some(privacy), Some(plan)) = (task.privacy, plan) else { return Vec::new() };
    let Ok(gopa) = account(task, &privacy, problem.agents()) else { return Vec::new() };
    let sum = config(task, Some(plan), problem.agents(), problem.dimension()).and_then(|config| Gopa::new(config).ok());
    let Some(sum) = sum else { return Vec::new() };
    let (ledger, delta) = (plan.ledger(), privacy.delta);
    let gopa::GopaConfig { members, neighbours, finishing, .. } = gopa.config();
    let own = |epsilon: f64| {
        vec![
            ("neighbours", Detail::Count(neighbours.into())),
            ("mask_std", Detail::Word("pads")),
            ("noise_std", Detail::Number(sum.share())),
            ("error_predicted", Detail::Number(sum.deviation(weight(task, problem)))),
            ("epsilon", Detail::Epsilon(epsilon)),
            ("delta", Detail::Number(delta)),
        ]
    };
    let by = |accountant: &'static dyn Accountant| gopa.by(accountant).epsilon(&ledger, delta);
    let mut accountants = vec![("exact", Detail::Group(own(by(&Gaussian)))), ("rdp", Detail::Group(own(by(&Rdp))))];
    // The thesis's own way: Gaussian masks, and more noise. It is about one sum.
    let honest = f64::from(gopa.others()) / f64::from(members);
    for (name, reading) in [("theorem", theorem::Reading::Literal), ("table", theorem::Reading::Table)] {
        let asked = theorem::corollary_at(members, honest, privacy.epsilon, delta, reading);
        let Some(asked) = asked.filter(|_| gopa.config().rounds == 1) else { continue };
        let (noise, masks) = (asked.noise_std * sum.sensitivity(), asked.mask_std * sum.sensitivity());
        let error = sum.deviation(weight(task, problem)) * noise / sum.share();
        // PRIVACY: the table's reading keeps no promise for rho < 1; what (4.2) and (4.3) allow is said instead.
        let epsilon = theorem::epsilon(asked.theta, delta / 3.0);
        let figures = vec![
            ("neighbours", Detail::Count(asked.neighbours.into())),
            ("mask_std", Detail::Number(masks)),
            ("noise_std", Detail::Number(noise)),
            ("error_predicted", Detail::Number(error)),
            ("epsilon", Detail::Epsilon(epsilon)),
            ("delta", Detail::Number(delta)),
        ];
        accountants.push((name, Detail::Group(figures)));
    }
    vec![
        ("neighbours", Detail::Count(neighbours.into())),
        ("threshold", Detail::Count(gopa.threshold().into())),
        ("finishing", Detail::Count(finishing.into())),
        ("mask_std", Detail::Word("pads")),
        ("noise_std", Detail::Number(sum.share())),
        ("error_predicted", Detail::Number(sum.deviation(weight(task, problem)))),
        ("graph_delta", Detail::Number(gopa.graph_delta())),
        ("accountants", Detail::Group(accountants)),
    ]
}

/// Who keeps what members publish.
fn board(loaded: &Loaded) -> Result<PeerId, Mistake> {
    let Some(name) = loaded.task.own.get(BOARD).and_then(toml::Value::as_str) else { return Ok(PeerId(0)) };
    match loaded.names.iter().position(|one| one == name) {
        Some(place) => Ok(PeerId(place as u32)),
        None => {
            let what = format!("roles.board is {name:?}, and no agent has that name; accepted: the name of an agent");
            Err(Mistake::file(&loaded.task.source, what))
        }
    }
}

/// The protocol of a loaded task, with its board; refused where a sum could overflow.
pub(super) fn built(loaded: &Loaded, config: Option<GopaConfig>) -> Result<Gopa, Mistake> {
    let mistake = |what: String| Mistake::file(&loaded.task.source, what);
    let config = config.ok_or_else(|| mistake(BadGopa::Members(loaded.names.len() as u32).to_string()))?;
    let gopa = Gopa::new(GopaConfig { board: board(loaded)?, ..config }).map_err(|error| mistake(error.to_string()))?;
    let rows = loaded.problem.data.largest() as u64;
    if !gopa.holds(rows) {
        let what = format!(
            "a sum of {rows} rows of each member could overflow on so fine a grid; accepted: fewer rows, a smaller range, or a smaller epsilon"
        );
        return Err(mistake(what));
    }
    Ok(gopa)
}

pub(super) fn build<V: Visitor>(loaded: &Loaded, visitor: V) -> Result<V::Output, Mistake> {
    let config = config(&loaded.task, loaded.plan.as_deref(), loaded.names.len(), loaded.problem.dimension());
    let gopa = built(loaded, config)?;
    let (knows, passed_over) = (Some(State::knows as fn(&State) -> bool), Some(State::missing as fn(&State) -> u32));
    Ok(visitor.visit(&gopa, Access { knows, passed_over, ..Access::to_rows() }))
}
