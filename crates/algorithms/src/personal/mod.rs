//! Personalized models: one algorithm a file, one family a folder.

pub mod admm;
pub mod baseline;
pub mod boosting;
pub mod descent;
pub mod exchange;
pub mod graph;
pub mod home;
pub mod propagation;
