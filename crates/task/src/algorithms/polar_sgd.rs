//! POLAR-SGD (Gade and Vaidya 2018): one model for all by several parameter servers. It is not differential privacy.

use super::{Access, Visitor};
use crate::error::{Mistake, quote};
use crate::keys::{ABOVE_0, CHARGES_MAX, COUNT, FROM_0, Key, Kind, Range, key};
use crate::loaded::Loaded;
use crate::task::{Description, Leaves, OwnKeys, Refusal, Sizes, Task, Yields};
use sottovoce_core::PeerId;
use sottovoce_encrypted::polar::{
    BadPolar, CompactSet, Consensus, Polar, PolarConfig, PolarPrivacy, Scope, State, StepSize, Variant, Weights,
};
use sottovoce_privacy::Plan;
use toml::Value;

const COUNT_KEY: &str = "servers.count";
const NAMES: &str = "servers.names";
const EACH: &str = "servers.each";
const COLLUDERS: &str = "servers.colluders";
const VARIANT: &str = "servers.variant";
const SCOPE: &str = "servers.scope";
const WEIGHTS: &str = "servers.weights";
const EVERY: &str = "servers.consensus-every";
const CONSENSUS: &str = "servers.consensus";
const LINKS: &str = "servers.links";
const WEIGHT: &str = "servers.weight";
const WEIGHT_BOUND: &str = "servers.weight-bound";
const NOISE_BOUND: &str = "servers.noise-bound";
const BOX: &str = "servers.box";
const BALL: &str = "servers.ball";
const START: &str = "servers.start";
const BATCH: &str = "servers.batch";
const FIRST: &str = "servers.step.first";
const OFFSET: &str = "servers.step.offset";
const POWER: &str = "servers.step.power";
const TIMEOUT: &str = "servers.timeout";

/// Defaults that are numbers.
const NUMBERS: &[(&str, f64)] = &[
    (WEIGHT, 5.0),
    (WEIGHT_BOUND, 50.0),
    (NOISE_BOUND, 1.0),
    (START, 0.0),
    (OFFSET, 10.0),
    (POWER, 1.0),
    (TIMEOUT, 10.0),
];

/// Rounds when a task does not say.
const ROUNDS_DEFAULT: u32 = 100;
/// Steps in a round when a task does not say.
const EVERY_DEFAULT: i64 = 10;
/// Points in a batch when a task does not say.
const BATCH_DEFAULT: i64 = 10;
/// The box when a task does not say.
const BOX_DEFAULT: f64 = 10.0;

/// What everybody may ask about it.
pub const DESCRIPTION: Description = Description {
    name: "polar-sgd",
    sentence: "nothing: when its servers' models come it uploads weighted gradients with a bounded vector added, with `[privacy]` clipped and noisy ones; servers average",
    yields: Yields::OneModel,
    leaves: Leaves::Obfuscated,
    everyone: true,
    in_rounds: true,
    rounds: Some(ROUNDS_DEFAULT),
    keys: KEYS,
    own_defaults: |own| {
        for (key, default) in [(VARIANT, "minimum-wait"), (SCOPE, "block"), (WEIGHTS, "number"), (CONSENSUS, "secure")]
        {
            own.set(key, own.get(key).cloned().unwrap_or_else(|| default.into()));
        }
        for (key, default) in [(EVERY, EVERY_DEFAULT), (BATCH, BATCH_DEFAULT), (COLLUDERS, 1)] {
            own.set(key, own.get(key).cloned().unwrap_or(default.into()));
        }
        for (key, default) in NUMBERS {
            own.set(key, own.number(key).unwrap_or(*default));
        }
        if own.get(BALL).is_none() {
            own.set(BOX, own.number(BOX).unwrap_or(BOX_DEFAULT));
        }
    },
    check,
    without_data: server_names,
    events_per_round: |own| {
        let (steps, servers) = (whole(own, EVERY, EVERY_DEFAULT) as u64, servers(own) as u64);
        // Models, uploads, rosters and shares, twice: with faults there are questions too.
        4 * (steps + 2) * (servers + 2)
    },
    warning: |task| {
        let is_secure = is(&task.own, CONSENSUS, "secure");
        (is_secure && servers(&task.own) == 2).then_some(
            "two servers: each of them learns the other's model from their mean; a third one would hide them from each other",
        )
    },
    plan: |task, privacy, _| {
        // Without anybody counted yet: how many there are changes nothing.
        let polar = Polar::new(alone(task)).expect("a task is checked when it is read");
        let steps = |noise: f64| vec![privacy.event(noise); polar.gradients() as usize];
        Plan::with_least_noise(steps, privacy.epsilon, privacy.delta, privacy.accountant.accountant())
    },
    ..Description::PLAIN
};

#[rustfmt::skip]
const KEYS: &[Key] = &[
    key("servers", Kind::Table, "required for it", "Read when algorithm = \"polar-sgd\"."),
    key(COUNT_KEY, Kind::Integer(2, 1024), "this or names", "How many servers there are: agents without rows of their own, named server-1, server-2, .."),
    key(NAMES, Kind::Texts, "this or count", "The servers' names: agents without rows."),
    key(VARIANT, Kind::Choice(&["minimum-wait", "client-averaged", "basic"]), "`\"minimum-wait\"`", "Where a client takes its gradient: at the model of a server that is drawn for each step, at the mean of its servers' models, or at each of them."),
    key(SCOPE, Kind::Choice(&["block", "iteration"]), "`\"block\"`", "Weights add up over all steps and servers of a round, or over all servers at each step; the hinge needs \"iteration\"."),
    key(WEIGHTS, Kind::Choice(&["number", "coordinate"]), "`\"number\"`", "A weight for each upload, or for each of its coordinates."),
    key(EVERY, Kind::Integer(1, COUNT), "10", "Delta: steps between two times that servers average their models."),
    key(CONSENSUS, Kind::Choice(&["secure", "cycle", "pairs", "links", "turns"]), "`\"secure\"`", "How they average: all with all under pads, so that each sees the mean alone; or in the clear with two neighbours on a cycle, with one that changes from round to round, over all `links`, or over one of them in each round, in turn."),
    key(LINKS, Kind::Texts, "required for \"links\" and \"turns\"", "Which servers hear each other: pairs of names, as \"ada -- bea\", by which each reaches all others."),
    key(EACH, Kind::Integer(2, 1024), "all", "How many servers a client uploads to."),
    key(COLLUDERS, Kind::Integer(1, 1023), "1", "So many servers together see no client's whole upload: fewer than it has."),
    key(WEIGHT, Kind::Number(ABOVE_0), "5", "M: what weights add up to. In a round the mean of the servers moves by a0/(k0 + k)^q M / servers times the gradient; with scope = \"iteration\" at each step."),
    key(WEIGHT_BOUND, Kind::Number(ABOVE_0), "50", "Mbar: what their sizes add up to at most; from M."),
    key(NOISE_BOUND, Kind::Number(FROM_0), "1", "Y: no vector that is added to an upload is longer."),
    key(BOX, Kind::Number(ABOVE_0), "10", "B: models stay within B of zero in every coordinate."),
    key(BALL, Kind::Number(ABOVE_0), "none", "In the place of box: models stay within this distance of zero."),
    key(START, Kind::Number(Range::ANY), "0", "Every coordinate of the first model."),
    key(BATCH, Kind::Integer(1, COUNT), "10", "Points of a client that one gradient is made of; it counts for all of them."),
    key("servers.step", Kind::Table, "required", "Steps first / (offset + k)^power in round k = 1, 2, .."),
    key(FIRST, Kind::Number(ABOVE_0), "required", "a0."),
    key(OFFSET, Kind::Number(FROM_0), "10", "k0."),
    key(POWER, Kind::Number(Range::above_up_to(0.5, 1.0)), "1", "q."),
    key(TIMEOUT, Kind::Number(ABOVE_0), "10", "After so many seconds (in the simulator: mean intervals between two wakes), twice, without an upload a client is left out of the round, with all that it has uploaded in it."),
];

fn is(own: &OwnKeys, key: &str, word: &str) -> bool {
    own.get(key).and_then(Value::as_str) == Some(word)
}

fn whole(own: &OwnKeys, key: &str, default: i64) -> i64 {
    own.get(key).and_then(Value::as_integer).unwrap_or(default)
}

/// The names of the servers, as the task says them.
fn server_names(own: &OwnKeys) -> Vec<String> {
    match own.get(NAMES).and_then(Value::as_array) {
        Some(names) => names.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
        None => (1..=whole(own, COUNT_KEY, 0)).map(|k| format!("server-{k}")).collect(),
    }
}

fn servers(own: &OwnKeys) -> usize {
    server_names(own).len()
}

fn config(task: &Task, servers: Vec<PeerId>, agents: usize, dimension: usize) -> PolarConfig {
    let own = &task.own;
    let number = |key: &str| {
        let default = NUMBERS.iter().find(|(other, _)| *other == key).map_or(f64::NAN, |(_, default)| *default);
        own.number(key).unwrap_or(default)
    };
    PolarConfig {
        agents: agents as u32,
        servers_each: whole(own, EACH, servers.len() as i64) as usize,
        servers,
        colluders: whole(own, COLLUDERS, 1) as usize,
        dimension,
        variant: match own.get(VARIANT).and_then(Value::as_str) {
            Some("basic") => Variant::Basic,
            Some("client-averaged") => Variant::ClientAveraged,
            _ => Variant::MinimumWait,
        },
        scope: if is(own, SCOPE, "iteration") { Scope::Iteration } else { Scope::Block },
        weights: if is(own, WEIGHTS, "coordinate") { Weights::PerCoordinate } else { Weights::PerNumber },
        consensus_every: whole(own, EVERY, EVERY_DEFAULT) as u32,
        rounds: task.run.rounds.unwrap_or(ROUNDS_DEFAULT),
        weight: number(WEIGHT),
        weight_bound: number(WEIGHT_BOUND),
        noise_bound: number(NOISE_BOUND),
        set: match own.number(BALL) {
            Some(radius) => CompactSet::Ball(radius),
            None => CompactSet::Box(own.number(BOX).unwrap_or(BOX_DEFAULT)),
        },
        start: number(START),
        batch: whole(own, BATCH, BATCH_DEFAULT) as usize,
        step: StepSize { first: number(FIRST), offset: number(OFFSET), power: number(POWER) },
        consensus: match own.get(CONSENSUS).and_then(Value::as_str) {
            Some("cycle") => Consensus::Cycle,
            Some("pairs") => Consensus::Pairs,
            Some("links") => Consensus::Links,
            Some("turns") => Consensus::Turns,
            _ => Consensus::Secure,
        },
        // `check` has refused what is no link.
        links: links(own).unwrap_or_default(),
        timeout: number(TIMEOUT),
        private: task.privacy.map(|privacy| PolarPrivacy { clip: privacy.clip, norm: privacy.mechanism.norm() }),
    }
}

/// The links of the servers, by their places in the order of their names; or the text that is none.
fn links(own: &OwnKeys) -> Result<Vec<(usize, usize)>, String> {
    let mut names = server_names(own);
    names.sort_unstable();
    let place = |name: &str| names.iter().position(|other| other == name.trim());
    let texts = own.get(LINKS).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let link = |text: &str| {
        let (one, other) = text.split_once(" -- ")?;
        Some((place(one)?, place(other)?))
    };
    texts.map(|text| link(text).ok_or_else(|| text.to_owned())).collect()
}

/// What can be said before anybody is counted: with one client and one coordinate.
fn alone(task: &Task) -> PolarConfig {
    let servers = servers(&task.own);
    config(task, (0..servers as u32).map(PeerId).collect(), servers + 1, 1)
}

fn check(task: &Task, sizes: Option<Sizes>) -> Option<Refusal> {
    let own = &task.own;
    let refuse = |key, what: &str| Some((key, what.to_owned()));
    if sizes.is_some() {
        // With all agents at hand: `build`.
        return None;
    }
    match (own.get(COUNT_KEY), own.get(NAMES)) {
        (None, None) => {
            let what = "[servers] says neither count nor names; accepted: count = how many servers, or names = a list of theirs";
            return refuse("servers", what);
        }
        (Some(_), Some(_)) => {
            return refuse(NAMES, "servers.count and servers.names are both given; accepted: one of them");
        }
        _ => {}
    }
    let names = server_names(own);
    let is_bad = |k: &usize| names[*k].is_empty() || names[..*k].contains(&names[*k]);
    if let Some(k) = (0..names.len()).find(is_bad) {
        let what = format!("servers.names holds {}, empty or twice", quote(names[k].as_bytes()));
        return Some((NAMES, format!("{what}; accepted: different names")));
    }
    if own.number(FIRST).is_none() {
        let what = "servers.step.first is missing: how large steps may be depends on the data; accepted: step = { first = a finite number above 0 }";
        return refuse("servers", what);
    }
    if own.get(BALL).is_some() && own.get(BOX).is_some() {
        return refuse(BALL, "servers.box and servers.ball are both given; accepted: one of them");
    }
    if let Err(text) = links(own) {
        let what = format!("servers.links holds {}", quote(text.as_bytes()));
        return Some((LINKS, format!("{what}; accepted: two of the servers' names, as \"server-1 -- server-2\"")));
    }
    let error = match Polar::new(alone(task)) {
        Ok(polar) if task.privacy.is_some() && polar.gradients() > CHARGES_MAX as u64 => {
            let what = format!(
                "a plan of {} gradients for each client; accepted with [privacy]: at most {CHARGES_MAX}, run.rounds times servers.consensus-every, and \
                 times servers.each with the variant \"basic\"",
                polar.gradients()
            );
            return Some(("run.rounds", what));
        }
        Ok(_) => return None,
        Err(error) => error,
    };
    Some((key_of(&error), format!("polar-sgd: {error}")))
}

fn key_of(error: &BadPolar) -> &'static str {
    match error {
        BadPolar::Servers(_) => NAMES,
        BadPolar::Clients(_) => "data.train",
        BadPolar::ServersEach { .. } => EACH,
        BadPolar::Colluders { .. } => COLLUDERS,
        BadPolar::Steps(..) => "run.rounds",
        BadPolar::Batch => BATCH,
        BadPolar::Weight(_) => WEIGHT,
        BadPolar::WeightBound { .. } => WEIGHT_BOUND,
        BadPolar::NoiseBound(_) => NOISE_BOUND,
        BadPolar::Set(_) | BadPolar::Overflow { .. } => "servers",
        BadPolar::Start { .. } => START,
        BadPolar::Step(_) => "servers.step",
        BadPolar::Basic => SCOPE,
        BadPolar::Timeout(_) => TIMEOUT,
        BadPolar::Clip(_) => "privacy.clip",
        BadPolar::Links(_) => CONSENSUS,
    }
}

/// The algorithm of a loaded task.
pub fn polar(loaded: &Loaded) -> Result<Polar, Mistake> {
    let task = &loaded.task;
    let refuse = |what: String| Mistake::file(&task.source, what);
    let mut servers = Vec::new();
    for name in server_names(&task.own) {
        let place = loaded.names.binary_search(&name).map_err(|_| {
            let what = format!("server {} is not among the agents", quote(name.as_bytes()));
            refuse(format!("{what}; accepted: a peer that lists all clients and servers"))
        })?;
        let id = PeerId(place as u32);
        if loaded.problem.data.size(id) > 0 {
            let what = format!("server {} has rows", quote(name.as_bytes()));
            return Err(refuse(format!("{what}; accepted: servers without rows, beside clients that have them")));
        }
        servers.push(id);
    }
    servers.sort_unstable();
    let config = config(task, servers, loaded.names.len(), loaded.problem.dimension());
    Polar::new(config).map_err(|error| refuse(format!("polar-sgd: {error}")))
}

pub(super) fn build<V: Visitor>(loaded: &Loaded, visitor: V) -> Result<V::Output, Mistake> {
    Ok(visitor.visit(&polar(loaded)?, Access { steps: Some(State::steps), ..Access::to_points() }))
}
