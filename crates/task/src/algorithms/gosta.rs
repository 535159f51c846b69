//! Statistics of pairs by gossip, without a common clock (Colin et al. 2015).

use super::{Access, Visitor, pairs, refused};
use crate::error::Mistake;
use crate::loaded::Loaded;
use crate::task::{Description, Leaves, Yields};
use sottovoce_algorithms::pairs::gosta::Gosta;

/// What everybody may ask about it.
pub const DESCRIPTION: Description = Description {
    name: "gosta",
    sentence: "swaps an observation with one random neighbour, and both go on from the mean of their estimates",
    yields: Yields::Estimate,
    statistics: pairs::STATISTICS,
    leaves: Leaves::Rows,
    plan: pairs::plan,
    deviation: pairs::deviation,
    check: pairs::check,
    check_everyone: pairs::check_everyone,
    advice: pairs::advice,
    bound: pairs::bound,
    on_peers: Some(pairs::on_peers),
    ..Description::PLAIN
};

pub(super) fn build<V: Visitor>(loaded: &Loaded, visitor: V) -> Result<V::Output, Mistake> {
    let statistic = loaded.task.statistic.as_ref().expect("reading the task has checked it");
    let kernel = pairs::rows_or_answers(loaded, statistic).map_err(refused(loaded))?;
    let factor = pairs::factor(statistic).map_err(refused(loaded))?;
    let gosta = Gosta::new(kernel, factor).map_err(refused(loaded))?;
    Ok(visitor.visit(&gosta, Access::to_rows()))
}
