//! Pictures and pages from plain data. Nothing of ours is used here, and nothing is read, written or timed.

pub mod plot;
pub mod training;
