//! The losses l(theta; x, y), as functions of the dot product theta.x.
//!
//! | loss | value, z = y theta.x | labels | smooth |
//! |---|---|---|---|
//! | logistic | log(1 + exp(-z)) | -1, 1 | 1/4 |
//! | squared | (theta.x - y)^2 | any number | 2 |
//! | smoothed hinge, width h | 0 for z >= 1; (1-z)^2 / 2h; 1 - z - h/2 for z <= 1-h | -1, 1 | 1/h |
//! | hinge | max(0, 1-z) | -1, 1 | no |
//!
//! "Smooth" is the bound on the second derivative in theta.x; multiplied by |x|^2 it bounds the smoothness in theta.

use serde::{Deserialize, Serialize};

/// The width of the smoothed hinge.
pub const SMOOTHED_HINGE_WIDTH: f64 = 0.5;

/// What one example costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// log(1 + exp(-y theta.x)), labels -1 and 1.
    Logistic,
    /// (theta.x - y)^2, any label.
    Squared,
    /// The hinge with a quadratic piece of width 1/2 at the kink, labels -1 and 1.
    SmoothedHinge,
    /// max(0, 1 - y theta.x), labels -1 and 1. Not smooth, so coordinate descent cannot use it.
    Hinge,
}

impl Loss {
    /// Whether labels are the classes -1 and 1.
    pub fn is_classification(self) -> bool {
        self != Loss::Squared
    }

    /// The bound on the second derivative in theta.x, if there is one.
    pub fn smoothness(self) -> Option<f64> {
        match self {
            Loss::Logistic => Some(0.25),
            Loss::Squared => Some(2.0),
            Loss::SmoothedHinge => Some(1.0 / SMOOTHED_HINGE_WIDTH),
            Loss::Hinge => None,
        }
    }

    /// The bound on the slope |l'| in theta.x, if there is one; multiplied by |x| it bounds the gradient in theta.
    pub fn slope_bound(self) -> Option<f64> {
        self.is_classification().then_some(1.0)
    }

    /// l at `dot` = theta.x.
    pub fn value(self, dot: f64, label: f64) -> f64 {
        let z = label * dot;
        match self {
            // log(1 + e^-z) = max(0, -z) + log(1 + e^-|z|), which overflows nowhere.
            Loss::Logistic => (-z).max(0.0) + libm::log1p(libm::exp(-z.abs())),
            Loss::Squared => (dot - label) * (dot - label),
            Loss::SmoothedHinge => match 1.0 - z {
                gap if gap <= 0.0 => 0.0,
                gap if gap < SMOOTHED_HINGE_WIDTH => gap * gap / (2.0 * SMOOTHED_HINGE_WIDTH),
                gap => gap - SMOOTHED_HINGE_WIDTH / 2.0,
            },
            Loss::Hinge => (1.0 - z).max(0.0),
        }
    }

    /// The derivative of l in theta.x; the gradient in theta is this times x. Zero at the kink of the hinge.
    pub fn slope(self, dot: f64, label: f64) -> f64 {
        let z = label * dot;
        match self {
            Loss::Logistic => -label * sigmoid(-z),
            Loss::Squared => 2.0 * (dot - label),
            Loss::SmoothedHinge => -label * ((1.0 - z) / SMOOTHED_HINGE_WIDTH).clamp(0.0, 1.0),
            Loss::Hinge => {
                if z < 1.0 {
                    -label
                } else {
                    0.0
                }
            }
        }
    }

    /// The second derivative of l in theta.x, where it exists (the smoothed hinge has two kinks in its slope).
    pub fn curvature(self, dot: f64, label: f64) -> f64 {
        match self {
            Loss::Logistic => {
                let s = sigmoid(label * dot);
                s * (1.0 - s)
            }
            Loss::Squared => 2.0,
            Loss::SmoothedHinge => {
                let gap = 1.0 - label * dot;
                if gap > 0.0 && gap < SMOOTHED_HINGE_WIDTH { 1.0 / SMOOTHED_HINGE_WIDTH } else { 0.0 }
            }
            Loss::Hinge => 0.0,
        }
    }
}

/// 1 / (1 + e^-a), without overflow.
fn sigmoid(a: f64) -> f64 {
    let e = libm::exp(-a.abs());
    if a >= 0.0 { 1.0 / (1.0 + e) } else { e / (1.0 + e) }
}
