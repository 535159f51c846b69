//! From a task file as written to a [`Task`]: defaults, absolute paths, and what keys mean together.

mod learned;
mod privacy;
mod statistic;

use super::check::Lines;
use super::config::{self, Config, DataConfig, FaultsConfig, GraphConfig, ModelConfig, PairsConfig, RunConfig};
use super::{
    Clock, Data, Description, Faults, GraphSource, GraphTask, Leaves, Model, Normalize, OwnKeys, Partition, Points,
    Privacy, Run, Start, StatisticKind, Task, Test, Threshold, Turns, WAKES_DEFAULT, WAKES_WITH_TOLERANCE, Wish,
    Yields, names_of,
};
use crate::error::Mistake;
use crate::input::{InputFile, Memory};
use crate::rows::Format;
use sottovoce_algorithms::{Loss, Regularization};
use std::path::Path;

/// The most events of all agents for each hop of a token; a hop without faults is one.
const EVENTS_PER_HOP: u64 = 10;

/// The most events of an agent in a round of a token; a round without faults has three.
const EVENTS_PER_ROUND: u64 = 100;

pub(super) fn resolve(
    mut config: Config,
    file: &Path,
    memory: &Memory,
    lines: &Lines<'_>,
    algorithms: &'static [&'static Description],
) -> Result<Task, Mistake> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let paths = Paths { folder, memory, lines };
    let algorithm = required(config.algorithm.take(), "algorithm", lines)?;
    let algorithm: &'static Description =
        algorithms.iter().find(|one| one.name == algorithm).expect("the table of keys lists these names");
    if matches!(algorithm.leaves, Leaves::NoisyData | Leaves::Answers) && config.privacy.is_none() {
        let what = format!("{} is about privacy; accepted: with a section [privacy]", algorithm.name);
        return Err(lines.mistake("algorithm", what));
    }
    let statistic = statistic::resolve(&mut config, algorithm, lines, algorithms)?;
    let model_config = config.model.unwrap_or_default();
    let (start, trade_off) = (model_config.start, model_config.trade_off);
    let mut model = model(model_config, algorithm, config.privacy.is_some(), lines)?;
    let data = data(required(config.data, "data", lines)?, &paths)?;
    let graph_config = match (algorithm.everyone, config.graph) {
        (true, Some(written)) if algorithm.takes_graph => written,
        (true, Some(_)) => {
            let what = format!("{} says by itself who writes to whom; accepted: no [graph]", algorithm.name);
            return Err(lines.mistake("graph", what));
        }
        (true, None) => GraphConfig { kind: Some("complete".to_owned()), ..GraphConfig::default() },
        (false, written) => required(written, "graph", lines)?,
    };
    let said = [graph_config.strength, graph_config.model_wakes, graph_config.graph_wakes];
    let mut graph = graph(graph_config, algorithm, &paths)?;
    if let (GraphSource::Learned(_), None, Some(defaults)) = (&graph.source, trade_off, algorithm.learned_graph) {
        model.trade_off = defaults.trade_off;
    }
    if statistic.is_some() {
        statistic::check_graph(&graph.source, lines)?;
    }
    let run_config = config.run.unwrap_or_default();
    let (tolerance, private) = (run_config.tolerance.is_some(), config.privacy.is_some());
    let wish = Wish { graph: &graph.source, model: &model, says_start: start.is_some(), private };
    check_algorithm(algorithm, &wish, algorithms, lines)?;
    learned::check(algorithm, &wish, start, tolerance, lines)?;
    let boosting = learned::boosting(config.boosting.unwrap_or_default(), algorithm, &graph.source, &model, lines)?;
    let pairs = match config.privacy.as_ref().and_then(|privacy| privacy.pairs) {
        Some(PairsConfig::Meetings(pairs)) => Some(pairs),
        _ => None,
    };
    let privacy = match config.privacy {
        None => None,
        Some(privacy) if statistic.is_some() => {
            Some(statistic::privacy(privacy, algorithm, &data, statistic.as_ref(), algorithms, lines)?)
        }
        Some(privacy) if matches!(algorithm.leaves, Leaves::Token | Leaves::Gradients | Leaves::MaskedSums) => {
            Some(privacy::of_token(privacy, tolerance, (algorithm, &data, &graph, &model), lines)?)
        }
        Some(privacy) => {
            let task = (algorithm, &data, &graph, &model);
            Some(privacy::resolve(privacy, start, tolerance, task, lines)?)
        }
    };
    let turns = match (&mut graph.source, &privacy) {
        (GraphSource::Learned(learned), Some(privacy)) => {
            let warm = privacy.warm.map_or(0, |warm| u64::from(warm.start.wakes));
            learned::set_private(learned, said, learned::private_model_wakes(privacy.updates, warm));
            Some(learned.turns)
        }
        _ => None,
    };
    let own = own(algorithm, config.own);
    let run = run(run_config, algorithm, &own, privacy.as_ref(), turns, algorithms, lines)?;
    turns.map_or(Ok(()), |turns| learned::check_private_run(turns, run.wakes_per_agent, lines))?;
    let task = Task {
        source: file.to_owned(),
        name: config.name.unwrap_or_else(|| "task".to_owned()),
        algorithm,
        own,
        data,
        statistic,
        graph,
        model,
        boosting,
        pairs,
        faults: faults(config.faults.unwrap_or_default(), &run, lines)?,
        run,
        privacy,
    };
    match (algorithm.check)(&task, None) {
        Some((key, what)) => Err(lines.mistake(key, what)),
        None => Ok(task),
    }
}

/// Refuses what the algorithm cannot be combined with, and says which can.
fn check_algorithm(
    algorithm: &Description,
    wish: &Wish<'_>,
    algorithms: &[&Description],
    lines: &Lines<'_>,
) -> Result<(), Mistake> {
    if let Some((key, what)) = (algorithm.refuses)(wish) {
        return Err(lines.mistake(key, what));
    }
    if wish.private && !algorithm.leaves.can_be_private() {
        let alike = |one: &Description| one.yields == algorithm.yields && one.leaves.can_be_private();
        let (name, measures) = (algorithm.name, algorithm.yields == Yields::Estimate);
        let others = match names_of(algorithms, alike) {
            names if names.is_empty() => "accepted: no [privacy]".to_owned(),
            names => format!("accepted with [privacy]: {names}"),
        };
        let of_pairs = |kind: &StatisticKind| kind.is_of_pairs();
        let sent = match measures {
            true if algorithm.statistics.iter().any(of_pairs) => "rows",
            true => "sums",
            false => "models",
        };
        let what = format!("{name} sends exact {sent}, so it cannot be private; {others}");
        return Err(lines.mistake("algorithm", what));
    }
    if matches!(wish.graph, GraphSource::Learned(_)) && algorithm.learned_graph.is_none() {
        let others = names_of(algorithms, |one| one.learned_graph.is_some());
        let name = algorithm.name;
        let what =
            format!("{name} needs a graph that is known; accepted with kind = \"learned\": algorithm = {others}");
        return Err(lines.mistake("graph.kind", what));
    }
    Ok(())
}

/// The values of an algorithm's own keys, with its defaults; what other algorithms would read is left out.
fn own(algorithm: &Description, written: OwnKeys) -> OwnKeys {
    let mut own = OwnKeys::of(algorithm.keys, written);
    (algorithm.own_defaults)(&mut own);
    own
}

struct Paths<'l> {
    folder: &'l Path,
    memory: &'l Memory,
    lines: &'l Lines<'l>,
}

impl Paths<'_> {
    fn absolute(&self, written: String, key: &str) -> Result<InputFile, Mistake> {
        if let Some(file) = self.memory.find(&written) {
            return Ok(file);
        }
        let path = std::path::absolute(self.folder.join(&written))
            .map_err(|error| self.lines.mistake(key, format!("{key}: {error}")))?;
        // The resolved task is written as TOML, which is UTF-8.
        match path.to_str() {
            Some(_) => Ok(path.into()),
            None => Err(self.lines.mistake(key, format!("{key} lies in a folder whose name is not UTF-8"))),
        }
    }
}

pub(super) fn required<T>(value: Option<T>, key: &str, lines: &Lines<'_>) -> Result<T, Mistake> {
    value.ok_or_else(|| {
        let section = key.rsplit_once('.').map_or("", |(section, _)| section);
        lines.mistake(section, format!("{key} is missing{}", lines.accepted(key)))
    })
}

fn model(config: ModelConfig, algorithm: &Description, private: bool, lines: &Lines<'_>) -> Result<Model, Mistake> {
    let personal = algorithm.yields != Yields::OneModel;
    let given = [
        (config.trade_off.is_some(), "model.trade-off"),
        (config.points_max.is_some(), "model.points-max"),
        (config.start.is_some(), "model.start"),
    ];
    if let Some((_, key)) = given.into_iter().find(|(given, _)| *given && !personal) {
        let what = format!("{key} is about models of agents' own, and {} learns one for all", algorithm.name);
        return Err(lines.mistake(key, format!("{what}; accepted: no {key}")));
    }
    let of_steps = [(config.step.is_some(), "model.step"), (config.radius.is_some(), "model.radius")];
    if let Some((_, key)) = of_steps.into_iter().find(|(given, _)| *given && !algorithm.takes_steps) {
        let what = format!("{key} is about gradient steps of a constant size, which {} does not take", algorithm.name);
        return Err(lines.mistake(key, format!("{what}; accepted: no {key}")));
    }
    let sums = algorithm.takes_steps && algorithm.leaves == Leaves::MaskedSums;
    if config.local_steps.is_some() && !sums {
        let what = format!("model.local-steps is about updates that are summed, which {} does not do", algorithm.name);
        return Err(lines.mistake("model.local-steps", format!("{what}; accepted: no model.local-steps")));
    }
    let step = if algorithm.takes_steps { Some(required(config.step, "model.step", lines)?) } else { None };
    let regularization = match config.regularization {
        Some(written) => written.number().map_or(Regularization::OneOverPoints, Regularization::Constant),
        None if personal => Regularization::OneOverPoints,
        None => Regularization::Constant(0.0),
    };
    let start = match config.start {
        // A private run starts at zero, or at its warm start; `privacy::resolve` refuses local models.
        _ if private => Start::Zero,
        None if !personal => Start::Zero,
        None | Some(config::Start::Local) => Start::Local,
        Some(config::Start::Zero) => Start::Zero,
        Some(config::Start::Warm) => {
            let what = "model.start = \"warm\" needs [privacy]; accepted without it: \"local\" or \"zero\"";
            return Err(lines.mistake("model.start", what));
        }
    };
    let intercept = config.intercept.unwrap_or(false);
    if config.constant.is_some() && !intercept {
        return Err(lines.mistake("model.constant", "model.constant is for model.intercept = true only"));
    }
    Ok(Model {
        loss: config.loss.unwrap_or(Loss::Logistic),
        regularization,
        trade_off: config.trade_off.unwrap_or(1.0),
        intercept: intercept.then(|| config.constant.unwrap_or(1.0)),
        points_max: config.points_max,
        start,
        step,
        radius: config.radius,
        local_steps: sums.then(|| config.local_steps.unwrap_or(1)),
    })
}

fn data(config: DataConfig, paths: &Paths<'_>) -> Result<Data, Mistake> {
    let lines = paths.lines;
    let train = required(config.train, "data.train", lines)?;
    let train = points(train, config.agents, ["data.train", "data.agents"], paths)?;
    if config.test.is_some() && config.split.is_some() {
        let what = "data.test and data.split are both given; accepted: one of them";
        return Err(lines.mistake("data.split", what));
    }
    if config.split.is_none() && config.split_seed.is_some() {
        return Err(lines.mistake("data.split-seed", "data.split-seed has no meaning without data.split"));
    }
    if config.test.is_none() && config.test_agents.is_some() {
        return Err(lines.mistake("data.test-agents", "data.test-agents has no meaning without data.test"));
    }
    let test = match (config.test, config.split) {
        (Some(test), _) => Test::File(points(test, config.test_agents, ["data.test", "data.test-agents"], paths)?),
        (None, Some(share)) => Test::Split { share, seed: config.split_seed.unwrap_or(1) },
        (None, None) => Test::Absent,
    };
    if let Test::File(test) = &test
        && Format::of(&test.file).map(|format| format.libsvm) != Format::of(&train.file).map(|format| format.libsvm)
    {
        let what = "data.train and data.test have two formats; accepted: both csv, or both libsvm";
        return Err(lines.mistake("data.test", what));
    }
    let normalize = config.normalize.unwrap_or(Normalize::None);
    let implied = if normalize == Normalize::None { None } else { Some(1.0) };
    let dimension = config.dimension.map(|dimension| dimension as usize);
    if dimension.is_some() && train.agents.is_none() {
        let what = "data.dimension is for libsvm files: the header of a csv file says how many features there are";
        return Err(lines.mistake("data.dimension", what));
    }
    if let Some(record) = config.record.as_deref() {
        let what = match record.trim() {
            _ if train.agents.is_some() => "data.record is for csv files, whose second column it names",
            "" | "agent" | "label" => "data.record; accepted: the name of the second column, neither agent nor label",
            _ => "",
        };
        if !what.is_empty() {
            return Err(lines.mistake("data.record", what));
        }
    }
    let record = config.record.map(|record| record.trim().to_owned());
    Ok(Data { train, test, dimension, record, normalize, feature_bound: config.feature_bound.or(implied) })
}

fn points(file: String, agents: Option<String>, keys: [&str; 2], paths: &Paths<'_>) -> Result<Points, Mistake> {
    let [key, agents_key] = keys;
    let file = paths.absolute(file, key)?;
    let format = Format::of(&file).ok_or_else(|| {
        let found = crate::error::quote(file.to_string_lossy().as_bytes());
        paths.lines.mistake(key, format!("{key} is {found}; accepted: a file named {}", Format::ACCEPTED))
    })?;
    let agents = match (format.libsvm, agents) {
        (true, Some(agents)) => Some(paths.absolute(agents, agents_key)?),
        (true, None) => {
            let what = format!(
                "{key} is libsvm, which names no agents; accepted: {agents_key} = a file with one name per line"
            );
            return Err(paths.lines.mistake(key, what));
        }
        (false, None) => None,
        (false, Some(_)) => {
            let what = format!("{agents_key} has no meaning for a csv file, whose first column names the agents");
            return Err(paths.lines.mistake(agents_key, what));
        }
    };
    Ok(Points { file, agents })
}

/// Which kinds of graph read which key.
const GRAPH_PARAMETERS: &[(&str, &[&str])] = &[
    ("rows", &["torus"]),
    ("columns", &["torus"]),
    ("neighbours", &["knn", "watts-strogatz"]),
    ("rewire", &["watts-strogatz"]),
    ("probability", &["erdos-renyi"]),
    ("vectors", &["similarity"]),
    ("width", &["similarity"]),
    ("threshold", &["similarity"]),
    ("seed", &["watts-strogatz", "erdos-renyi"]),
    ("sample", &["learned"]),
    ("sparsity", &["learned"]),
    ("strength", &["learned"]),
    ("first-wakes", &["learned"]),
    ("model-wakes", &["learned"]),
    ("graph-wakes", &["learned"]),
    ("model-step", &["learned"]),
    ("oracle", &["learned"]),
    ("groups", &["learned"]),
];

/// Refuses a key that another kind of graph would read.
fn check_parameters(kind: &str, config: &GraphConfig, lines: &Lines<'_>) -> Result<(), Mistake> {
    let given = [
        config.rows.is_some(),
        config.columns.is_some(),
        config.neighbours.is_some(),
        config.rewire.is_some(),
        config.probability.is_some(),
        config.vectors.is_some(),
        config.width.is_some(),
        config.threshold.is_some(),
        config.seed.is_some(),
        config.sample.is_some(),
        config.sparsity.is_some(),
        config.strength.is_some(),
        config.first_wakes.is_some(),
        config.model_wakes.is_some(),
        config.graph_wakes.is_some(),
        config.model_step.is_some(),
        config.oracle.is_some(),
        config.groups.is_some(),
    ];
    for ((name, kinds), given) in GRAPH_PARAMETERS.iter().zip(given) {
        if given && !kinds.contains(&kind) {
            let key = format!("graph.{name}");
            return Err(lines.mistake(&key, format!("{key} is for kind = \"{}\" only", kinds.join("\" or \""))));
        }
    }
    Ok(())
}

fn graph(config: GraphConfig, algorithm: &Description, paths: &Paths<'_>) -> Result<GraphTask, Mistake> {
    let lines = paths.lines;
    if config.edges.is_some() && config.kind.is_some() {
        return Err(lines.mistake("graph.kind", "graph.edges and graph.kind are both given; accepted: one of them"));
    }
    let kind = config.kind.as_deref().unwrap_or("edges");
    check_parameters(kind, &config, lines)?;
    let required_path = |written: Option<String>, key: &str| paths.absolute(required(written, key, lines)?, key);
    let source = match kind {
        "edges" if config.edges.is_none() => {
            let what = "[graph] says neither edges nor kind; accepted: edges = a csv file, or kind = \"ring\", \"complete\", ..";
            return Err(lines.mistake("graph", what));
        }
        "edges" => {
            let edges = required_path(config.edges, "graph.edges")?;
            if Format::of(&edges).is_none_or(|format| format.libsvm) {
                return Err(lines.mistake("graph.edges", "graph.edges; accepted: a file named .csv or .csv.gz"));
            }
            GraphSource::Edges(edges)
        }
        "ring" => GraphSource::Ring,
        "complete" => GraphSource::Complete,
        "torus" => GraphSource::Torus {
            rows: required(config.rows, "graph.rows", lines)?,
            columns: required(config.columns, "graph.columns", lines)?,
        },
        "watts-strogatz" => GraphSource::WattsStrogatz {
            neighbours: config.neighbours.unwrap_or(10),
            rewire: config.rewire.unwrap_or(0.1),
            seed: config.seed.unwrap_or(1),
        },
        "erdos-renyi" => GraphSource::ErdosRenyi {
            probability: required(config.probability, "graph.probability", lines)?,
            seed: config.seed.unwrap_or(1),
        },
        "knn" => GraphSource::Knn { neighbours: config.neighbours },
        "similarity" => {
            let vectors = required_path(config.vectors, "graph.vectors")?;
            if Format::of(&vectors).is_none_or(|format| format.libsvm) {
                return Err(lines.mistake("graph.vectors", "graph.vectors; accepted: a file named .csv or .csv.gz"));
            }
            let threshold = match config.threshold.and_then(|written| written.number()) {
                Some(least) => Threshold::Above(least),
                None => Threshold::Connected,
            };
            GraphSource::Similarity { vectors, width: config.width.unwrap_or(0.1), threshold }
        }
        _ => GraphSource::Learned(learned::graph(&config, algorithm, |written, key| {
            let file = paths.absolute(written.to_owned(), key)?;
            match Format::of(&file).is_none_or(|format| format.libsvm) {
                true => Err(lines.mistake(key, format!("{key}; accepted: a file named .csv or .csv.gz"))),
                false => Ok(file),
            }
        })?),
    };
    Ok(GraphTask { source, allow_isolated: config.allow_isolated.unwrap_or(false) })
}

fn run(
    config: RunConfig,
    algorithm: &Description,
    own: &OwnKeys,
    privacy: Option<&Privacy>,
    turns: Option<Turns>,
    algorithms: &[&Description],
    lines: &Lines<'_>,
) -> Result<Run, Mistake> {
    if algorithm.ends_by_itself() {
        let after = if algorithm.in_hops { "run.hops" } else { "run.rounds" };
        for (given, key) in
            [(config.wakes_per_agent.is_some(), "run.wakes-per-agent"), (config.tolerance.is_some(), "run.tolerance")]
        {
            if given {
                let what = format!("{} ends by itself after {after}; accepted: no {key}", algorithm.name);
                return Err(lines.mistake(key, what));
            }
        }
    }
    if config.accelerated.is_some() && !algorithm.accelerates {
        let others = names_of(algorithms, |one| one.accelerates);
        let what =
            format!("{} mixes nothing in rounds; accepted with run.accelerated: algorithm = {others}", algorithm.name);
        return Err(lines.mistake("run.accelerated", what));
    }
    let goes_by = if algorithm.in_rounds {
        "rounds"
    } else if algorithm.in_hops {
        "hops"
    } else {
        "wakes"
    };
    for (given, key, fits) in [
        (config.rounds.is_some(), "run.rounds", (|one| one.in_rounds) as fn(&Description) -> bool),
        (config.hops.is_some(), "run.hops", |one| one.in_hops),
    ] {
        if given && !fits(algorithm) {
            let others = names_of(algorithms, fits);
            let what = format!("{} goes by {goes_by}; accepted with {key}: algorithm = {others}", algorithm.name);
            return Err(lines.mistake(key, what));
        }
    }
    let hops = if algorithm.in_hops { Some(required(config.hops, "run.hops", lines)?) } else { None };
    let rounds = config.rounds.or(algorithm.rounds).filter(|_| algorithm.in_rounds);
    let default = match (privacy, turns) {
        _ if algorithm.in_rounds => {
            (algorithm.events_per_round)(own).saturating_mul(1 + u64::from(rounds.unwrap_or(0)))
        }
        _ if hops.is_some() => EVENTS_PER_ROUND + EVENTS_PER_HOP * hops.unwrap_or(0),
        // The first graph, models, the graph that they lead to, and models over it.
        (_, Some(turns)) => libm::ceil(turns.graph_first + 2.0 * turns.models + turns.graph) as u64,
        // Enough for every agent to finish its plan, but for one in a billion.
        (Some(privacy), _) if algorithm.leaves != Leaves::Rows => {
            2 * privacy.updates + privacy.warm.map_or(0, |warm| u64::from(warm.start.wakes)) + 20
        }
        _ if config.tolerance.is_some() => WAKES_WITH_TOLERANCE,
        _ => WAKES_DEFAULT,
    };
    Ok(Run {
        wakes_per_agent: config.wakes_per_agent.unwrap_or(default),
        tolerance: config.tolerance,
        rounds,
        accelerated: config.accelerated.or(algorithm.accelerates.then_some(true)),
        hops,
        clock: config.clock.unwrap_or(Clock::Uniform),
        seed: config.seed.unwrap_or(1),
    })
}

fn faults(config: FaultsConfig, run: &Run, lines: &Lines<'_>) -> Result<Faults, Mistake> {
    let delay = config.delay.unwrap_or_default();
    let delay_mean = delay.mean.unwrap_or(0.0);
    let delay_max = delay.max.unwrap_or(10.0 * delay_mean);
    if delay_max < delay_mean || !delay_max.is_finite() {
        let what =
            format!("faults.delay.max is {delay_max}; accepted: a finite number from faults.delay.mean = {delay_mean}");
        return Err(lines.mistake("faults.delay.max", what));
    }
    let (leave, die) = (config.leave.unwrap_or(0.0), config.die.unwrap_or(0.0));
    if leave + die > 1.0 {
        let what = format!("faults.leave + faults.die is {}; accepted: at most 1", leave + die);
        return Err(lines.mistake("faults.leave", what));
    }
    let mut partitions = Vec::new();
    for partition in config.partitions.unwrap_or_default() {
        let from = required(partition.from, "faults.partitions.from", lines)?;
        let to = required(partition.to, "faults.partitions.to", lines)?;
        if to <= from {
            let what = format!("faults.partitions: from {from} to {to}; accepted: to after from");
            return Err(lines.mistake("faults.partitions", what));
        }
        if config.until.is_some_and(|until| to > until) {
            let what =
                format!("faults.partitions: to {to} is after faults.until; accepted: partitions that heal before");
            return Err(lines.mistake("faults.partitions", what));
        }
        partitions.push(Partition { from, to, share: partition.share.unwrap_or(0.5) });
    }
    Ok(Faults {
        loss: config.loss.unwrap_or(0.0),
        duplicate: config.duplicate.unwrap_or(0.0),
        delay_mean,
        delay_max,
        leave,
        die,
        partitions,
        until: config.until.unwrap_or(run.wakes_per_agent as f64),
    })
}
