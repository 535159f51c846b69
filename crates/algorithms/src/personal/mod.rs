//! Personalized models over a known graph, one algorithm a file.

pub mod admm;
#[cfg(test)]
mod admm_tests;
mod config;
pub mod coordinate_descent;
pub mod home;
pub mod input_perturbation;
pub mod letter;
pub mod local;
pub mod model_propagation;
pub mod private_coordinate_descent;
#[cfg(test)]
mod private_coordinate_descent_tests;

pub use config::ConfigError;
