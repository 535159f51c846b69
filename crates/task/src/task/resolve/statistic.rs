//! What `[statistic]` says, and what it has nothing to do with.

use super::super::check::Lines;
use super::super::config::Config;
use super::super::{Bounds, Description, GraphSource, Statistic, StatisticKind, Yields, names_of};
use super::required;
use crate::error::Mistake;

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
    Ok(Some(Statistic { kind, columns, range, agents: statistic.agents }))
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
    let own = own.join(" or ");
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
