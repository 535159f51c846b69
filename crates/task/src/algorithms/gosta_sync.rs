//! Statistics of pairs by gossip with a common clock (thesis, Algorithm 3.1). Only a simulation has one.

use super::{Access, Visitor, pairs, refused};
use crate::error::Mistake;
use crate::loaded::Loaded;
use crate::task::{Description, Leaves, Yields};
use sottovoce_algorithms::pairs::gosta_sync::GostaSync;

/// What everybody may ask about it.
pub const DESCRIPTION: Description = Description {
    name: "gosta-sync",
    sentence: "as gosta, on a common clock: at each wake of anybody all agents learn from the observations that they hold",
    yields: Yields::Estimate,
    statistics: pairs::STATISTICS,
    leaves: Leaves::Rows,
    plan: pairs::plan,
    deviation: pairs::deviation,
    check: pairs::check,
    check_everyone: pairs::check_everyone,
    advice: pairs::advice,
    bound: pairs::bound,
    on_peers: None,
    ..Description::PLAIN
};

pub(super) fn build<V: Visitor>(loaded: &Loaded, visitor: V) -> Result<V::Output, Mistake> {
    let statistic = loaded.task.statistic.as_ref().expect("reading the task has checked it");
    let kernel = pairs::rows_or_answers(loaded, statistic).map_err(refused(loaded))?;
    let factor = pairs::factor(statistic).map_err(refused(loaded))?;
    let gosta = GostaSync::new(kernel, factor, loaded.problem.graph.edge_count()).map_err(refused(loaded))?;
    Ok(visitor.visit(
        &gosta,
        Access { at: Some(|algorithm, state, now| vec![algorithm.estimate_at(state, now)]), ..Access::to_rows() },
    ))
}
