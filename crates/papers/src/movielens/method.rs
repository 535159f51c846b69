//! The names of the table's rows.

use serde::{Deserialize, Serialize};
use sottovoce_privacy::calibrate::NoiseKind;

/// How models are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Each user alone, lambda_i = 1 / m_i and features as long as they come: the paper's recipe.
    LocalOneOverM,
    /// Each user alone, features as long as it suits local models best.
    Local,
    /// Coordinate descent without privacy.
    Descent,
    /// Private coordinate descent with the paper's noise: not differentially private, see [`super::methods::paper_plan`]. What is broadcast.
    PaperNoise,
    /// The paper's mechanism made sound: Laplace noise, gradients clipped in L1. What is broadcast.
    Laplace,
    /// Gaussian noise, gradients clipped in L2. What is broadcast.
    Gaussian,
    /// Gaussian noise, gradients clipped in L2. What users make of it at home.
    GaussianHome,
}

impl Method {
    /// As in the names of cells.
    pub fn name(self) -> &'static str {
        match self {
            Method::LocalOneOverM => "local-one-over-m",
            Method::Local => "local",
            Method::Descent => "descent",
            Method::PaperNoise => "paper-noise",
            Method::Laplace => "laplace",
            Method::Gaussian => "gaussian",
            Method::GaussianHome => "gaussian-home",
        }
    }

    /// In plain words.
    pub fn label(self) -> &'static str {
        match self {
            Method::LocalOneOverM => "purely local, lambda = 1/m",
            Method::Local => "purely local, ridge tuned",
            Method::Descent => "coordinate descent, not private",
            Method::PaperNoise => "broadcast, the paper's noise (not DP)",
            Method::Laplace => "broadcast, Laplace noise, L1 clip",
            Method::Gaussian => "broadcast, Gaussian noise, L2 clip",
            Method::GaussianHome => "home, Gaussian noise, L2 clip",
        }
    }

    /// Whether it has a budget.
    pub fn is_private(self) -> bool {
        matches!(self, Method::PaperNoise | Method::Laplace | Method::Gaussian | Method::GaussianHome)
    }

    /// The noise of a private method.
    pub fn noise(self) -> NoiseKind {
        match self {
            Method::PaperNoise | Method::Laplace => NoiseKind::Laplace,
            _ => NoiseKind::Gaussian,
        }
    }
}
