//! Personalized models over a known graph, one algorithm a file.

pub mod admm;
#[cfg(test)]
mod admm_tests;
mod config;
pub mod coordinate_descent;
pub mod letter;
pub mod local;
pub mod model_propagation;

pub use config::ConfigError;
