//! The ways to calibrate the noise of private coordinate descent, side by side: the paper's, which is not DP, and sound ones.

use super::linear::{Instance, Reading, Size};
use super::not_dp::{self, Claimed};
use super::sound;
use serde::{Deserialize, Serialize};
use sottovoce_algorithms::Loss;
use sottovoce_algorithms::personal::descent::WarmStart;
use sottovoce_privacy::{Accountant, Plan, Theorem1, Tight};
use sottovoce_task::task::{Mechanism, Normalize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// A calibration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Calibration {
    /// The paper's noise on sums of losses. Not DP.
    SumNotDp,
    /// The paper's noise on means of losses, as it prints them. Not DP.
    MeanNotDp,
    /// The paper's algorithm made sound: Laplace noise for the true L1 sensitivity, Theorem 1.
    #[serde(rename = "laplace-theorem-1")]
    LaplaceTheorem1,
    /// The same with the tight accountant: less noise for the same guarantee.
    LaplaceTight,
    /// What this project does by default: Gaussian noise, the tight accountant, no warm start.
    Gaussian,
}

impl Calibration {
    /// In legends and tables.
    pub fn label(self) -> &'static str {
        match self {
            Calibration::SumNotDp => "paper's noise on sums (not DP)",
            Calibration::MeanNotDp => "paper's noise on means (not DP)",
            Calibration::LaplaceTheorem1 => "sound Laplace, Theorem 1",
            Calibration::LaplaceTight => "sound Laplace, tight",
            Calibration::Gaussian => "sound Gaussian, tight",
        }
    }

    /// In names of claims.
    pub fn slug(self) -> &'static str {
        match self {
            Calibration::SumNotDp => "sums-not-dp",
            Calibration::MeanNotDp => "means-not-dp",
            Calibration::LaplaceTheorem1 => "laplace-theorem-1",
            Calibration::LaplaceTight => "laplace-tight",
            Calibration::Gaussian => "gaussian",
        }
    }

    /// Whether it keeps the budget that it claims.
    pub fn is_sound(self) -> bool {
        !matches!(self, Calibration::SumNotDp | Calibration::MeanNotDp)
    }

    /// What L_i is.
    pub fn reading(self) -> Reading {
        if self == Calibration::SumNotDp { Reading::Sum } else { Reading::Mean }
    }

    /// How points are scaled: the mechanism's sensitivity is that of points in the unit ball of its norm.
    pub fn normalize(self) -> Normalize {
        match self {
            Calibration::SumNotDp | Calibration::MeanNotDp => Normalize::None,
            Calibration::LaplaceTheorem1 | Calibration::LaplaceTight => Normalize::L1,
            Calibration::Gaussian => Normalize::L2,
        }
    }
}

/// The budget and how it is spent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spending {
    /// For the updates.
    pub epsilon: f64,
    /// For the warm start, in addition. [`Calibration::Gaussian`] has no warm start, and spends it on updates.
    pub warm_epsilon: Option<f64>,
    /// T_i.
    pub updates: u64,
}

impl Spending {
    /// Epsilon in all.
    pub fn total(&self) -> f64 {
        self.epsilon + self.warm_epsilon.unwrap_or(0.0)
    }
}

/// How the warm start is made.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Warm {
    /// lambda_w.
    pub regularization: f64,
    /// Noisy models are brought back to this length.
    pub radius: f64,
    /// mu_w.
    pub trade_off: f64,
    /// Wakes of propagation.
    pub wakes: u32,
}

/// What came of one private run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scored {
    /// Q of what agents broadcast last.
    pub objective: f64,
    /// Each agent's accuracy with what it broadcast last: the paper's model.
    pub broadcast: Vec<f64>,
    /// Each agent's accuracy at home; only sound calibrations have home models.
    pub home: Option<Vec<f64>>,
}

/// Draws the instance that a calibration works on.
pub fn instance(calibration: Calibration, size: Size, dimension: usize, seed: u64, trade_off: f64) -> Instance {
    let mut instance = Instance::new(size, dimension, seed, calibration.normalize(), Loss::Logistic);
    instance.reading = calibration.reading();
    instance.problem.trade_off = trade_off;
    instance
}

/// Plans that were made already: making one with the tight accountant takes about a second.
#[derive(Debug, Default)]
pub struct Plans(Mutex<HashMap<PlanKey, Arc<Plan>>>);

/// Calibration, updates, and the bits of both budgets.
type PlanKey = (Calibration, u64, [u64; 2]);

impl Plans {
    fn find(&self, calibration: Calibration, spending: &Spending, delta: f64) -> Arc<Plan> {
        let total = spending.total();
        let warm = spending.warm_epsilon.filter(|_| calibration != Calibration::Gaussian);
        let key = (calibration, spending.updates, [total.to_bits(), warm.unwrap_or(0.0).to_bits()]);
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = known().get(&key) {
            return plan.clone();
        }
        let mechanism = mechanism(calibration);
        let accountant: &dyn Accountant = if calibration == Calibration::LaplaceTheorem1 { &Theorem1 } else { &Tight };
        let plan = sound::plan(mechanism, spending.updates as usize, warm, total, delta, accountant);
        let plan = Arc::new(plan.expect("the budgets of the TOML files can be kept"));
        known().insert(key, plan.clone());
        plan
    }
}

fn mechanism(calibration: Calibration) -> Mechanism {
    if calibration == Calibration::Gaussian { Mechanism::Gaussian } else { Mechanism::Laplace }
}

/// Runs private coordinate descent on an instance made for the calibration.
pub fn run(
    calibration: Calibration,
    instance: &Instance,
    size: Size,
    spending: Spending,
    (delta, warm): (f64, Warm),
    plans: &Plans,
) -> Scored {
    let has_warm = spending.warm_epsilon.is_some() && calibration != Calibration::Gaussian;
    let start = has_warm.then_some(WarmStart {
        regularization: warm.regularization,
        radius: warm.radius,
        trade_off: warm.trade_off,
        wakes: warm.wakes,
    });
    if calibration.is_sound() {
        let plan = plans.find(calibration, &spending, delta);
        let models = sound::run(instance, mechanism(calibration), &plan, start);
        Scored {
            objective: instance.objective(&models.broadcast),
            broadcast: instance.accuracies(&models.broadcast),
            home: Some(instance.accuracies(&models.home)),
        }
    } else {
        let claimed = claimed(calibration, instance.problem.dimension(), size, spending, delta);
        let models = not_dp::run(instance, &claimed, start);
        Scored { objective: instance.objective(&models), broadcast: instance.accuracies(&models), home: None }
    }
}

fn claimed(calibration: Calibration, dimension: usize, size: Size, spending: Spending, delta: f64) -> Claimed {
    let Spending { epsilon, warm_epsilon, updates } = spending;
    let data = (dimension, size.half_width, calibration.reading());
    Claimed::new(updates, epsilon, warm_epsilon, delta, data).expect("the budgets of the TOML files can be kept")
}

/// What an agent with m points honestly spends: the claim, with a sound calibration.
pub fn honest(
    calibration: Calibration,
    (dimension, points): (usize, usize),
    size: Size,
    spending: Spending,
    delta: f64,
) -> f64 {
    match calibration.is_sound() {
        true => spending.total(),
        false => claimed(calibration, dimension, size, spending, delta).honest(points),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_dp_says_so_wherever_it_is_named() {
        for calibration in [Calibration::SumNotDp, Calibration::MeanNotDp] {
            assert!(!calibration.is_sound());
            assert!(calibration.label().contains("not DP") && calibration.slug().contains("not-dp"));
        }
        for calibration in [Calibration::LaplaceTheorem1, Calibration::LaplaceTight, Calibration::Gaussian] {
            assert!(calibration.is_sound() && calibration.label().starts_with("sound"));
        }
    }
}
