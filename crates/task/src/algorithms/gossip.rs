//! Means and sums by pairwise averaging (Boyd et al. 2006).

use super::{Access, Visitor, refused};
use crate::error::Mistake;
use crate::loaded::Loaded;
use crate::task::{Description, StatisticKind, Yields};
use sottovoce_algorithms::average::gossip::{Goal, Gossip, GossipConfig};

/// What everybody may ask about it.
pub const DESCRIPTION: Description = Description {
    name: "gossip",
    sentence: "meets one random neighbour, and both go on with the mean of what they held",
    yields: Yields::Estimate,
    statistics: &[StatisticKind::Mean, StatisticKind::Sum],
    needs_connected: true,
    on_peers: Some(|task| {
        let statistic = task.statistic.as_ref()?;
        if statistic.columns.is_none() {
            return Some(
                "statistic.columns is missing, and each peer has a file of its own; accepted for peers: statistic.columns = the names of columns",
            );
        }
        (statistic.kind == StatisticKind::Sum && statistic.agents.is_none()).then_some(
            "statistic.agents is missing, and no peer knows how many there are; accepted for peers: statistic.agents = a number that \
             all agree on",
        )
    }),
    ..Description::PLAIN
};

pub(super) fn build<V: Visitor>(loaded: &Loaded, visitor: V) -> Result<V::Output, Mistake> {
    let statistic = loaded.task.statistic.as_ref().expect("reading the task has checked it");
    let agents = statistic.agents.map_or(loaded.problem.agents(), |agents| agents as usize);
    let is_connected = loaded.problem.graph.components().iter().all(|&part| part == 0);
    let goal = match statistic.kind {
        StatisticKind::Sum if !is_connected => {
            let what = "graph is not connected, so nobody can know the sum of everybody; accepted: a connected graph, or kind = \"mean\"";
            return Err(Mistake::file(&loaded.task.source, what));
        }
        StatisticKind::Sum => Goal::Sum { agents },
        StatisticKind::Mean => Goal::Mean,
        other => unreachable!("{} is not among the statistics of the description", other.name()),
    };
    let config = GossipConfig { columns: loaded.problem.dimension(), goal };
    Ok(visitor.visit(&Gossip::new(config).map_err(refused(loaded))?, Access::to_rows()))
}
