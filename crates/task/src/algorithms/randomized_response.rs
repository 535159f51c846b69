//! Statistics of pairs from one randomized answer of each row (thesis, Algorithm 3.3).

use super::{Access, Visitor, answers, pairs, refused};
use crate::error::Mistake;
use crate::loaded::Loaded;
use crate::task::{Description, Leaves, Yields};
use sottovoce_algorithms::pairs::answers::{Answers, State};

/// What everybody may ask about it.
pub const DESCRIPTION: Description = Description {
    name: "randomized-response",
    sentence: "nothing: as it starts it tells one member a randomized bin for each of its rows",
    yields: Yields::Estimate,
    statistics: pairs::STATISTICS,
    leaves: Leaves::Answers,
    everyone: true,
    in_rounds: true,
    keys: answers::KEYS,
    check: answers::check,
    check_everyone: answers::check_everyone,
    on_peers: Some(pairs::on_peers),
    plan: pairs::plan,
    deviation: pairs::deviation,
    ..Description::PLAIN
};

pub(super) fn build<V: Visitor>(loaded: &Loaded, visitor: V) -> Result<V::Output, Mistake> {
    let statistic = loaded.task.statistic.as_ref().expect("reading the task has checked it");
    let epsilon = pairs::epsilon(loaded.plan.as_deref());
    let response = pairs::response(statistic, loaded.problem.dimension(), epsilon).map_err(refused(loaded))?;
    let answers = Answers::new(response, loaded.names.len() as u32, answers::aggregator(loaded)?);
    Ok(visitor.visit(&answers, Access { knows: Some(State::knows), ..Access::to_rows() }))
}
