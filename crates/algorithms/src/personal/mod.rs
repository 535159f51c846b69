//! Personalized models: one algorithm a file, one family a folder.

pub mod admm;
#[cfg(test)]
mod admm_tests;
pub mod baseline;
pub mod boosting;
pub mod descent;
pub mod exchange;
pub mod graph;
pub mod home;
pub mod propagation;
