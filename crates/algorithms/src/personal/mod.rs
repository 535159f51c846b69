//! Personalized models, one algorithm a file.

pub mod admm;
#[cfg(test)]
mod admm_tests;
mod config;
pub mod coordinate_descent;
pub mod frank_wolfe;
pub mod frank_wolfe_letter;
#[cfg(test)]
mod frank_wolfe_tests;
pub mod learner;
pub mod letter;
pub mod local;
pub mod model_propagation;
pub mod sparse;

pub use config::ConfigError;
