//! Pictures and pages from plain data. Nothing of ours is used here, and nothing is read, written or timed.

pub mod page;
pub mod pairs;
pub mod plot;
pub mod statistic;
pub mod training;
