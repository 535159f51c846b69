//! Personalized models, one algorithm a file.

pub mod admm;
#[cfg(test)]
mod admm_tests;
pub mod alone;
pub mod alternating;
mod config;
pub mod coordinate_descent;
mod copies;
pub mod descent_by_letters;
pub mod frank_wolfe;
pub mod frank_wolfe_letter;
#[cfg(test)]
mod frank_wolfe_tests;
pub mod graph_learning;
#[cfg(test)]
mod graph_learning_tests;
pub mod graph_letter;
pub mod home;
pub mod input_perturbation;
pub mod learner;
pub mod letter;
pub mod links;
pub mod local;
pub mod model_propagation;
pub mod private_coordinate_descent;
#[cfg(test)]
mod private_coordinate_descent_tests;
pub mod private_descent_by_letters;
#[cfg(test)]
mod private_descent_by_letters_tests;
mod private_step;
mod sorted_links;
pub mod sparse;
mod warm_start;

pub use config::ConfigError;
