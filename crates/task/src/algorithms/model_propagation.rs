//! Model propagation (Vanhaesebrouck et al. 2017), by gossip.

use super::{Access, Visitor, refused};
use crate::error::Mistake;
use crate::loaded::Loaded;
use crate::task::Description;
use sottovoce_algorithms::personal::propagation::{ModelPropagation, ModelPropagationConfig};

/// What everybody may ask about it.
pub const DESCRIPTION: Description = Description {
    name: "model-propagation",
    sentence: "swaps models with one random neighbour; both move between their local model and what they know of their neighbours",
    ..Description::PLAIN
};

pub(super) fn build<V: Visitor>(loaded: &Loaded, visitor: V) -> Result<V::Output, Mistake> {
    let config = ModelPropagationConfig { trade_off: loaded.problem.trade_off };
    Ok(visitor.visit(&ModelPropagation::new(config).map_err(refused(loaded))?, Access::to_points()))
}
