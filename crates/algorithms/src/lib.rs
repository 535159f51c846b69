//! Personalized peer-to-peer learning, and statistics of everybody's data, one file per algorithm, each as one agent runs it.
//!
//! [`average`] and [`pairs`] hold statistics; what they are made of is a [`Survey`]. All algorithms of [`personal`] minimize, in their own
//! way, the objective of Bellet et al. (2018), equation (2):
//!
//! Q(Theta) = 1/2 sum_{i<j} W_ij |Theta_i - Theta_j|^2 + mu sum_i D_ii c_i L_i(Theta_i)
//!
//! with L_i(theta) = (1/m_i) sum_k l(theta; x_k, y_k) + lambda_i |theta|^2. See [`Problem`].

pub mod average;
pub mod boosting;
pub mod cholesky;
pub mod config;
pub mod graphs;
pub mod joint;
pub mod kernel;
pub mod loss;
pub mod objective;
pub mod pairs;
pub mod personal;
mod problem;
pub mod reference;
pub mod saved;
pub mod stumps;
mod survey;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod token;
pub mod vector;

pub use config::ConfigError;
pub use loss::Loss;
pub use problem::{Dataset, Points, Problem, Regularization, Shard};
pub use survey::{Bounds, Observations, Survey};
