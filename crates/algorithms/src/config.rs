//! Why hyper-parameters are refused.

use thiserror::Error;

/// A hyper-parameter outside its range.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field} is {value}; {accepted} would be accepted")]
pub struct ConfigError {
    /// Its name, as in the task file.
    pub field: &'static str,
    /// What was given.
    pub value: String,
    /// What would be accepted.
    pub accepted: &'static str,
}

/// Passes a finite number above zero.
pub fn positive(field: &'static str, value: f64) -> Result<f64, ConfigError> {
    if value > 0.0 && value.is_finite() {
        Ok(value)
    } else {
        Err(ConfigError { field, value: value.to_string(), accepted: "a finite number above zero" })
    }
}

/// Passes a number above zero that noise for it, and the squares of both, cannot make infinite.
pub fn moderate(field: &'static str, value: f64) -> Result<f64, ConfigError> {
    if value > 0.0 && value <= 1e100 {
        Ok(value)
    } else {
        Err(ConfigError { field, value: value.to_string(), accepted: "a number above zero, and at most 1e100," })
    }
}

/// Passes a whole number above zero.
pub fn at_least_one(field: &'static str, value: usize) -> Result<usize, ConfigError> {
    if value > 0 {
        Ok(value)
    } else {
        Err(ConfigError { field, value: value.to_string(), accepted: "a whole number of at least one" })
    }
}
