//! The AUC from one randomized bit of each row (thesis 3.3.3).

use super::{Access, Visitor, answers, pairs, refused};
use crate::error::Mistake;
use crate::loaded::Loaded;
use crate::task::{Description, Leaves, StatisticKind, Yields};
use sottovoce_algorithms::pairs::answers::hierarchy::Hierarchy;
use sottovoce_algorithms::pairs::answers::{Answers, State};

/// Leaves of the tree when a task does not say.
const LEAVES_DEFAULT: u32 = 1024;

/// What everybody may ask about it.
pub const DESCRIPTION: Description = Description {
    name: "hierarchical-auc",
    sentence: "nothing: as it starts it tells one member one randomized bit for each of its rows",
    yields: Yields::Estimate,
    statistics: &[StatisticKind::Auc],
    leaves: Leaves::Answers,
    everyone: true,
    in_rounds: true,
    keys: answers::KEYS,
    check: answers::check,
    check_everyone: answers::check_everyone,
    on_peers: Some(pairs::on_peers),
    plan: pairs::plan,
    ..Description::PLAIN
};

pub(super) fn build<V: Visitor>(loaded: &Loaded, visitor: V) -> Result<V::Output, Mistake> {
    let statistic = loaded.task.statistic.as_ref().expect("reading the task has checked it");
    let range = statistic.range.expect("reading the task has checked it");
    let (leaves, epsilon) = (statistic.bins.unwrap_or(LEAVES_DEFAULT), pairs::epsilon(loaded.plan.as_deref()));
    let hierarchy = Hierarchy::new(range, leaves, epsilon, statistic.ties.into(), statistic.is_consistent);
    let hierarchy = hierarchy.map_err(refused(loaded))?;
    let answers = Answers::new(hierarchy, loaded.names.len() as u32, answers::aggregator(loaded)?);
    Ok(visitor.visit(&answers, Access { knows: Some(State::knows), ..Access::to_rows() }))
}
