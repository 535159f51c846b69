//! Each agent alone: the baseline of all others.

use super::{Access, Visitor, frank_wolfe};
use crate::error::Mistake;
use crate::loaded::Loaded;
use crate::task::{Description, Leaves};
use sottovoce_algorithms::personal::baseline::{Alone, Local};

/// What everybody may ask about it.
pub const DESCRIPTION: Description = Description {
    name: "local",
    sentence: "nothing: it has learned alone, once",
    leaves: Leaves::Nothing,
    acts: false,
    ..Description::PLAIN
};

/// The solitary model of linear features, or boosting alone where base predictors stand in their place.
pub(super) fn build<V: Visitor>(loaded: &Loaded, visitor: V) -> Result<V::Output, Mistake> {
    if loaded.plain.is_some() {
        return Ok(visitor.visit(&Alone(frank_wolfe::boosting(loaded, 0.0)?), Access::to_points()));
    }
    Ok(visitor.visit(&Local, Access::to_points()))
}
