//! An epsilon as JSON has it.

use serde::Serialize;

/// JSON has no infinity: a number, or the text "infinity".
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub enum Epsilon {
    /// A guarantee.
    Finite(f64),
    /// None.
    Infinite(&'static str),
}

impl From<Epsilon> for f64 {
    fn from(epsilon: Epsilon) -> Self {
        match epsilon {
            Epsilon::Finite(epsilon) => epsilon,
            Epsilon::Infinite(_) => f64::INFINITY,
        }
    }
}

impl From<f64> for Epsilon {
    fn from(epsilon: f64) -> Self {
        if epsilon.is_finite() { Epsilon::Finite(epsilon) } else { Epsilon::Infinite("infinity") }
    }
}
