//! U2-gossip (Pelckmans and Suykens 2009), which GoSta is compared with. It has a common clock: only a simulation has one.

use super::{Access, Visitor, pairs, refused};
use crate::error::Mistake;
use crate::loaded::Loaded;
use crate::task::{Description, Leaves, Yields};
use sottovoce_algorithms::pairs::u2_gossip::U2Gossip;

/// What everybody may ask about it.
pub const DESCRIPTION: Description = Description {
    name: "u2-gossip",
    sentence: "swaps one of its two wandering observations with a random neighbour, on a common clock; nobody averages",
    yields: Yields::Estimate,
    statistics: pairs::STATISTICS,
    leaves: Leaves::Rows,
    plan: pairs::plan,
    deviation: pairs::deviation,
    check: pairs::check,
    check_everyone: pairs::check_everyone,
    advice: pairs::advice,
    on_peers: None,
    ..Description::PLAIN
};

pub(super) fn build<V: Visitor>(loaded: &Loaded, visitor: V) -> Result<V::Output, Mistake> {
    let statistic = loaded.task.statistic.as_ref().expect("reading the task has checked it");
    let kernel = pairs::rows_or_answers(loaded, statistic).map_err(refused(loaded))?;
    let factor = pairs::factor(statistic).map_err(refused(loaded))?;
    let gossip = U2Gossip::new(kernel, factor, loaded.problem.graph.edge_count()).map_err(refused(loaded))?;
    Ok(visitor.visit(
        &gossip,
        Access { at: Some(|algorithm, state, now| vec![algorithm.estimate_at(state, now)]), ..Access::to_rows() },
    ))
}
