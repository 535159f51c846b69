//! Placeholder.

pub mod plot;
