//! The simulator: virtual time, a million agents, faults from a seed.
//!
//! It runs any [`Algorithm`](sottovoce_core::Algorithm) unchanged and knows none. Without faults a message arrives at once:
//! posts live on one shared board, letters are delivered before the next wake. With faults every message travels on
//! its own over its edge, and may be lost, doubled, delayed and overtaken. A durable letter is delayed at most, and reading it is an event
//! of its own: [`Simulation::advance`] counts it as it counts a wake.
//!
//! Same algorithm, data, graph and seed: same result to the bit, whatever the number of threads. Algorithms that only
//! post are run in parallel; those with letters, and all runs with faults, on one thread.

mod agent;
mod alarms;
mod counters;
mod faults;
mod instant;
mod levels;
mod post_office;
mod schedule;
mod simulation;

pub use counters::Counters;
pub use faults::{Faults, Partition};
pub use schedule::{Clock, Schedule};
pub use simulation::{Settings, Simulation, Society, Status};
