//! What `[statistic]` says, and what it has nothing to do with.

use super::super::check::Lines;
use super::super::config::{Config, PairsConfig, PrivacyConfig};
use super::super::{
    AccountantName, Bounds, Data, Description, GraphSource, Leaves, Masks, Mechanism, NoiseKind, Pairs, Privacy,
    Schedule, Statistic, StatisticKind, Ties, Trust, Unit, Yields, names_of,
};
use super::required;
use crate::error::Mistake;

/// Bits of a value on the grid of a circuit when a task does not say.
const BITS_DEFAULT: u32 = 32;

/// Who reads bins.
const BINNED: &str = "a histogram, and for rows that are told in bins, with [privacy]";

/// The most bins of a histogram.
const HISTOGRAM_BINS_MAX: u32 = 1 << 16;

/// The statistic of a task that measures one. Such a task has nothing to do with models, and a task that learns models measures nothing.
pub(super) fn resolve(
    config: &mut Config,
    algorithm: &Description,
    lines: &Lines<'_>,
    algorithms: &[&Description],
) -> Result<Option<Statistic>, Mistake> {
    let (name, measures) = (algorithm.name, algorithm.yields == Yields::Estimate);
    let Some(statistic) = config.statistic.take() else {
        let what = format!("{name} measures a statistic; accepted: with a section [statistic]");
        return if measures { Err(lines.mistake("algorithm", what)) } else { Ok(None) };
    };
    if !measures {
        let others = names_of(algorithms, |one| one.yields == Yields::Estimate);
        let what = format!("{name} learns models; accepted with [statistic]: algorithm = {others}");
        return Err(lines.mistake("statistic", what));
    }
    for (given, key) in about_models(config) {
        if given {
            let what = format!("{key} is for tasks that learn models; accepted with [statistic]: no {key}");
            return Err(lines.mistake(key, what));
        }
    }
    let kind = required(statistic.kind, "statistic.kind", lines)?;
    if !algorithm.statistics.contains(&kind) {
        return Err(lines.mistake("statistic.kind", wrong_pair(algorithm, kind, algorithms)));
    }
    let columns = statistic.columns.map(|columns| check_columns(columns, lines)).transpose()?;
    let range = statistic.range.map(|[low, high]| Bounds { low, high });
    let answers = algorithm.leaves.tells_answers() && config.privacy.is_some();
    let only_for = [
        (statistic.rows.is_some() && !kind.is_of_pairs(), "statistic.rows", "a statistic of pairs"),
        (statistic.positives.is_some() && kind != StatisticKind::Auc, "statistic.positives", "kind = \"auc\""),
        (statistic.ties.is_some() && kind != StatisticKind::Auc, "statistic.ties", "kind = \"auc\""),
        (statistic.bins.is_some() && !answers && kind != StatisticKind::Histogram, "statistic.bins", BINNED),
        (statistic.consistent.is_some() && algorithm.leaves != Leaves::Answers, "statistic.consistent", BINNED),
        (
            statistic.bits.is_some() && algorithm.leaves != Leaves::Halves,
            "statistic.bits",
            "pairs that compute under encryption",
        ),
        (statistic.centres.is_some() && kind != StatisticKind::Scatter, "statistic.centres", "kind = \"scatter\""),
    ];
    if let Some((_, key, whose)) = only_for.into_iter().find(|(refused, ..)| *refused) {
        return Err(lines.mistake(key, format!("{key} is for {whose}; accepted with \"{}\": no {key}", kind.name())));
    }
    let bins = match kind {
        StatisticKind::Histogram => Some(required(statistic.bins, "statistic.bins", lines)?),
        _ => statistic.bins,
    };
    if let Some(bins) = bins.filter(|&bins| kind == StatisticKind::Histogram && bins > HISTOGRAM_BINS_MAX) {
        let what = format!("statistic.bins is {bins}; accepted for a histogram: from 2 to {HISTOGRAM_BINS_MAX}");
        return Err(lines.mistake("statistic.bins", what));
    }
    if bins.is_some() && range.is_none() {
        let what =
            "statistic.range is missing, and bins are equal parts of it; accepted: statistic.range = [low, high]";
        return Err(lines.mistake("statistic", what));
    }
    Ok(Some(Statistic {
        kind,
        columns,
        range,
        bins,
        agents: statistic.agents,
        rows: statistic.rows,
        positives: statistic.positives,
        // Scores in one bin cannot be told apart.
        ties: statistic.ties.unwrap_or(if answers { Ties::Half } else { Ties::Zero }),
        is_consistent: statistic.consistent.unwrap_or(true),
        bits: statistic.bits.unwrap_or(BITS_DEFAULT),
        centres: statistic.centres.unwrap_or_default(),
    }))
}

/// Resolves `[privacy]` of a task that measures a statistic, and refuses what would not be private.
pub(super) fn privacy(
    config: PrivacyConfig,
    algorithm: &Description,
    data: &Data,
    statistic: Option<&Statistic>,
    algorithms: &[&Description],
    lines: &Lines<'_>,
) -> Result<Privacy, Mistake> {
    let about_models = [
        (config.clip.is_some(), "privacy.clip"),
        (config.updates.is_some(), "privacy.updates"),
        (config.schedule.is_some(), "privacy.schedule"),
        (config.warm.is_some(), "privacy.warm"),
        (config.losses.is_some(), "privacy.losses"),
        (config.home.is_some(), "privacy.home"),
        (config.trust.is_some(), "privacy.trust"),
    ];
    if let Some((_, key)) = about_models.into_iter().find(|(given, _)| *given) {
        let what = format!("{key} is for tasks that learn models; accepted with [statistic]: no {key}");
        return Err(lines.mistake(key, what));
    }
    let halves = algorithm.leaves == Leaves::Halves;
    let (pairs, fits) = match config.pairs {
        None => (Pairs::Worst, true),
        Some(PairsConfig::Which(pairs)) => (pairs, algorithm.by_pairs),
        Some(PairsConfig::Meetings(_)) => (Pairs::Worst, halves),
    };
    if !fits {
        let by_pairs = names_of(algorithms, |one| one.by_pairs);
        let meeting = names_of(algorithms, |one| one.leaves == Leaves::Halves);
        let what = format!(
            "privacy.pairs does not fit {}; accepted: \"worst\" or \"mean\" with algorithm = {by_pairs}, a whole number with {meeting}",
            algorithm.name
        );
        return Err(lines.mistake("privacy.pairs", what));
    }
    let masked = algorithm.leaves == Leaves::MaskedSums;
    let about_others = [
        (config.contributions.is_some() && !algorithm.in_hops, "privacy.contributions", "tokens that walk"),
        (
            config.present.is_some() && !algorithm.in_hops && !masked,
            "privacy.present",
            "tokens that walk and sums under masks",
        ),
        (config.honest.is_some() && !masked, "privacy.honest", "sums under masks"),
        (config.neighbours.is_some() && !masked, "privacy.neighbours", "sums under masks"),
        (config.masks.is_some() && !masked, "privacy.masks", "sums under masks"),
        (config.verify.is_some() && !masked, "privacy.verify", "sums under masks"),
    ];
    if let Some((_, key, whose)) = about_others.into_iter().find(|(given, ..)| *given) {
        let what = format!("{key} is for {whose}; accepted with {}: no {key}", algorithm.name);
        return Err(lines.mistake(key, what));
    }
    if masked {
        check_masks(&config, lines)?;
    }
    if statistic.is_none_or(|statistic| statistic.range.is_none()) {
        let what = "statistic.range is missing, and without public bounds no noise hides a value; accepted: statistic.range = [low, high], \
                    chosen without the private data";
        return Err(lines.mistake("statistic", what));
    }
    if data.record.is_some() {
        let what = format!(
            "data.record: {} protects rows, or agents, and knows no records of several rows; accepted: no data.record",
            algorithm.name
        );
        return Err(lines.mistake("data.record", what));
    }
    let epsilon = required(config.epsilon, "privacy.epsilon", lines)?;
    if halves {
        let fixed = [
            (config.mechanism.is_some(), "privacy.mechanism", "the kernel decides which noise its circuit makes"),
            (config.unit.is_some_and(|unit| unit != Unit::Record), "privacy.unit", "an agent has one row"),
            (config.colluders.is_some(), "privacy.colluders", "the aggregator may have any other members on its side"),
        ];
        if let Some((_, key, why)) = fixed.into_iter().find(|(given, ..)| *given) {
            return Err(lines.mistake(key, format!("{key}: {why}; accepted with {}: no {key}", algorithm.name)));
        }
    }
    let answers = algorithm.leaves.tells_answers();
    if answers {
        let fixed = [
            (config.mechanism.is_some(), "privacy.mechanism", "randomized response is all the noise that there is"),
            (config.unit.is_some_and(|unit| unit != Unit::Record), "privacy.unit", "each answer is that of one row"),
            (config.colluders.is_some(), "privacy.colluders", "answers are protected against everyone"),
        ];
        if let Some((_, key, why)) = fixed.into_iter().find(|(given, ..)| *given) {
            return Err(lines.mistake(key, format!("{key}: {why}; accepted with {}: no {key}", algorithm.name)));
        }
    }
    let pure = if answers || halves { Mechanism::Laplace } else { Mechanism::Gaussian };
    let mechanism = config.mechanism.unwrap_or(pure);
    let delta = match (config.delta, mechanism) {
        (None, Mechanism::Laplace) => 0.0,
        (written, _) => required(written, "privacy.delta", lines)?,
    };
    if delta == 0.0 && mechanism == Mechanism::Gaussian {
        let what = "privacy.delta is 0, and Gaussian noise has no guarantee without a delta; accepted: a delta above 0 and well below 1 / \
                    agents, or mechanism = \"laplace\"";
        return Err(lines.mistake("privacy.delta", what));
    }
    Ok(Privacy {
        epsilon,
        delta,
        mechanism,
        unit: config.unit.unwrap_or(Unit::Record),
        colluders: config.colluders.unwrap_or(1),
        pairs,
        contributions: config.contributions,
        present: config.present.unwrap_or(1.0),
        honest: config.honest.unwrap_or(1.0),
        neighbours: config.neighbours,
        trust: Trust::Network,
        clip: 1.0,
        updates: 1,
        schedule: Schedule::Uniform,
        warm: None,
        losses: None,
        home: None,
        accountant: config.accountant.unwrap_or(AccountantName::Tight),
        noise: config.noise.unwrap_or(NoiseKind::Idealized),
    })
}

/// Refuses what sums under masks do not promise.
pub(super) fn check_masks(config: &PrivacyConfig, lines: &Lines<'_>) -> Result<(), Mistake> {
    let wrong = [
        (
            config.colluders.is_some(),
            "privacy.colluders",
            "members declare privacy.honest; accepted: no privacy.colluders",
        ),
        (
            config.mechanism == Some(Mechanism::Laplace),
            "privacy.mechanism",
            "shares of Laplace noise do not add up to Laplace noise; accepted: \"gaussian\"",
        ),
        (
            config.masks == Some(Masks::Gaussian),
            "privacy.masks",
            "what Gaussian masks hide depends on the graph, which nobody knows before the run; accepted: \"pads\", which hide more",
        ),
        (
            config.verify == Some(true),
            "privacy.verify",
            "this version proves nothing of what members publish; accepted: false, where all follow the protocol",
        ),
    ];
    match wrong.into_iter().find(|(is_wrong, ..)| *is_wrong) {
        Some((_, key, why)) => Err(lines.mistake(key, format!("{key}: {why}"))),
        None => Ok(()),
    }
}

/// Sections and keys that say something of models, and whether the task has them.
fn about_models(config: &Config) -> Vec<(bool, &'static str)> {
    let mut keys = vec![(config.model.is_some(), "model"), (config.boosting.is_some(), "boosting")];
    if let Some(data) = &config.data {
        keys.extend([
            (data.test.is_some(), "data.test"),
            (data.split.is_some(), "data.split"),
            (data.split_seed.is_some(), "data.split-seed"),
            (data.agents.is_some(), "data.agents"),
            (data.test_agents.is_some(), "data.test-agents"),
            (data.dimension.is_some(), "data.dimension"),
            (data.normalize.is_some(), "data.normalize"),
            (data.feature_bound.is_some(), "data.feature-bound"),
        ]);
    }
    keys
}

fn wrong_pair(algorithm: &Description, kind: StatisticKind, algorithms: &[&Description]) -> String {
    let (name, wanted) = (algorithm.name, kind.name());
    let own: Vec<String> = algorithm.statistics.iter().map(|kind| format!("\"{}\"", kind.name())).collect();
    let own = match own.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => own.concat(),
    };
    match names_of(algorithms, |one| one.statistics.contains(&kind)) {
        others if others.is_empty() => {
            format!("no algorithm of this version measures \"{wanted}\"; accepted with {name}: kind = {own}")
        }
        others => format!("{name} does not measure \"{wanted}\"; accepted: algorithm = {others}, or kind = {own}"),
    }
}

fn check_columns(columns: Vec<String>, lines: &Lines<'_>) -> Result<Vec<String>, Mistake> {
    let columns: Vec<String> = columns.iter().map(|column| column.trim().to_owned()).collect();
    let twice = |k: usize| columns[..k].contains(&columns[k]);
    if columns.is_empty() || (0..columns.len()).any(|k| twice(k) || ["", "agent"].contains(&&*columns[k])) {
        let what = "statistic.columns; accepted: names of columns, each once, and not \"agent\"";
        return Err(lines.mistake("statistic.columns", what));
    }
    Ok(columns)
}

/// Refuses a graph that needs labelled points.
pub(super) fn check_graph(source: &GraphSource, lines: &Lines<'_>) -> Result<(), Mistake> {
    match source {
        GraphSource::Knn { .. } => {
            let what = "graph.kind = \"knn\" joins agents by their labels, and a statistic has none; accepted with [statistic]: \
                        another kind, or edges";
            Err(lines.mistake("graph.kind", what))
        }
        _ => Ok(()),
    }
}
