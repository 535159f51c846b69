//! Central solvers: the yardstick for tests and reports, and the source of each agent's solitary model.
//!
//! [`local`] needs one agent's data alone and is what an agent itself runs. [`central`] and [`propagation`] see
//! everybody's data: no agent could run them.

pub mod boosting;
pub mod central;
mod central_hinge;
mod dual;
pub mod graph;
pub mod local;
mod newton;
pub mod pairs;
pub mod propagation;
pub mod statistic;
mod system;
