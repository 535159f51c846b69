//! What algorithms share that learn their graph together with the models.

use super::refused;
use crate::error::Mistake;
use crate::loaded::Loaded;
use crate::task::Learned;
use sottovoce_algorithms::joint::{Joint, LogDegree};
use sottovoce_algorithms::personal::graph::{Alternating, GraphLearning, GraphLearningConfig, Learner};

/// mu, nu and g of a task whose graph is learned.
pub fn joint(learned: &Learned, trade_off: f64) -> Joint<LogDegree> {
    let regularizer = LogDegree { sparsity: learned.sparsity, offset: LogDegree::OFFSET };
    Joint { trade_off, strength: learned.strength, regularizer }
}

/// A learner by turns with the graph.
pub(super) fn alternating<L: Learner>(
    learner: L,
    loaded: &Loaded,
    learned: &Learned,
) -> Result<Alternating<L, LogDegree>, Mistake> {
    let refused = refused(loaded);
    let joint = joint(learned, loaded.problem.trade_off);
    let config = GraphLearningConfig { joint, sample: learned.sample as usize };
    let graph = GraphLearning::new(config).map_err(&refused)?;
    Alternating::new(learner, graph, learned.turns).map_err(refused)
}
