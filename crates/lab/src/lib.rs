//! Placeholder.

pub mod plot;
pub mod report;
