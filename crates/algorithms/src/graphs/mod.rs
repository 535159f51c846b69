//! Generators of graphs: from no data at all (`topology.rs`), or from one vector per agent (`similarity.rs`).

mod similarity;
mod topology;

pub use similarity::{Directions, Threshold, nearest_neighbours, similar};
pub use topology::{ShapeError, circulant, erdos_renyi, torus, watts_strogatz};
