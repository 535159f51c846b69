//! From a budget to the noise: calibration and the split of a budget over updates. Proof: `proofs/calibrate.md`.
//!
//! Everything here asks an accountant, which rounds up, and returns a value that the accountant was seen to accept.

use crate::{Accountant, Charge, Event, Ledger};
use thiserror::Error;

/// Why there is no calibration.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum Uncalibrated {
    /// The budget, the number of steps or a weight is out of range.
    #[error("the {what} is {value}: it must be {accepted}")]
    OutOfRange {
        /// Which one.
        what: &'static str,
        /// What it is.
        value: f64,
        /// What it may be.
        accepted: &'static str,
    },
    /// No parameter between 1e-12 and 1e12 meets the budget by this accountant.
    #[error("no noise multiplier from 1e-12 to 1e12 is accepted by this accountant for this budget")]
    OutOfReach,
}

/// The mechanism to calibrate: an event for each noise multiplier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noise {
    /// Noise multiplier: scale / Delta_1.
    Laplace,
    /// Noise multiplier: sigma / Delta_2.
    Gaussian,
}

impl Noise {
    /// One release with this much noise.
    pub fn event(self, noise_multiplier: f64) -> Event {
        match self {
            Noise::Laplace => Event::Laplace { noise_multiplier },
            Noise::Gaussian => Event::Gaussian { noise_multiplier },
        }
    }
}

pub(crate) fn checked(epsilon: f64, delta: f64, steps: u64) -> Result<(), Uncalibrated> {
    let bad = |what, value, accepted| Err(Uncalibrated::OutOfRange { what, value, accepted });
    if !(epsilon.is_finite() && epsilon > 0.0) {
        return bad("epsilon", epsilon, "a finite number above 0");
    }
    if !(0.0..1.0).contains(&delta) {
        return bad("delta", delta, "at least 0 and below 1");
    }
    if steps == 0 { bad("number of steps", 0.0, "at least 1") } else { Ok(()) }
}

/// The least noise multiplier, to a relative 1e-9, with which `steps` releases keep (`epsilon`, `delta`).
pub fn noise_multiplier(
    noise: Noise,
    epsilon: f64,
    delta: f64,
    steps: u64,
    accountant: &dyn Accountant,
) -> Result<f64, Uncalibrated> {
    checked(epsilon, delta, steps)?;
    if noise == Noise::Gaussian && delta == 0.0 {
        let accepted = "above 0 for Gaussian noise, which has no guarantee without a delta";
        return Err(Uncalibrated::OutOfRange { what: "delta", value: delta, accepted });
    }
    let spent = |multiplier: f64| {
        let charge = Charge::new(noise.event(multiplier), steps);
        Ledger::from_charges([charge]).map_or(f64::INFINITY, |ledger| accountant.epsilon(&ledger, delta))
    };
    // More noise is less epsilon: search for the largest inverse.
    largest(|inverse| spent(1.0 / inverse), epsilon).map(|inverse| 1.0 / inverse).ok_or(Uncalibrated::OutOfReach)
}

/// The largest epsilon per step, to a relative 1e-9, with which `steps` pure steps keep (`epsilon`, `delta`).
///
/// The steps are taken as randomized response, the worst pure mechanism; for Laplace noise [`noise_multiplier`] allows more.
pub fn epsilon_per_step(
    epsilon: f64,
    delta: f64,
    steps: u64,
    accountant: &dyn Accountant,
) -> Result<f64, Uncalibrated> {
    checked(epsilon, delta, steps)?;
    let spent = |each: f64| {
        let charge = Charge::new(Event::RandomizedResponse { epsilon: each }, steps);
        Ledger::from_charges([charge]).map_or(f64::INFINITY, |ledger| accountant.epsilon(&ledger, delta))
    };
    largest(spent, epsilon).ok_or(Uncalibrated::OutOfReach)
}

/// The largest x in [1e-12, 1e12], to a relative 1e-9, with spent(x) <= budget, for an increasing `spent`.
///
/// Regula falsi in the logarithms with a halved end (the Illinois rule), and a plain halving whenever that is slow.
pub(crate) fn largest(mut spent: impl FnMut(f64) -> f64, budget: f64) -> Option<f64> {
    let (floor, ceiling) = (1e-12, 1e12);
    // A bracket around the guess that one step has the whole budget.
    let mut low = budget.clamp(floor, ceiling);
    let mut value = spent(low);
    let mut high = low;
    let mut high_value = value;
    if value <= budget {
        while high_value <= budget {
            if high >= ceiling {
                return Some(high);
            }
            (low, value) = (high, high_value);
            high = (high * 4.0).min(ceiling);
            high_value = spent(high);
        }
    } else {
        while value > budget {
            if low <= floor {
                return None;
            }
            (high, high_value) = (low, value);
            low = (low / 4.0).max(floor);
            value = spent(low);
        }
    }
    let off = |value: f64| libm::log(value.max(1e-300) / budget).clamp(-50.0, 50.0);
    let (mut off_low, mut off_high) = (off(value), off(high_value));
    let mut halve = false;
    while high > low * (1.0 + 1e-9) {
        let (a, b) = (libm::log(low), libm::log(high));
        let guess = a + (b - a) * (off_low / (off_low - off_high)).clamp(0.0, 1.0);
        // Aim a little to either side of the guess, so that both ends close in.
        let edge = (0.3e-9f64).min(0.1 * (b - a));
        let point = if halve || !guess.is_finite() { 0.5 * (a + b) } else { guess.clamp(a + edge, b - edge) };
        let x = libm::exp(point);
        if !(x > low && x < high) {
            break;
        }
        let value = spent(x);
        let before = b - a;
        if value <= budget {
            (low, off_low) = (x, off(value));
            off_high *= 0.5;
        } else {
            (high, off_high) = (x, off(value));
            off_low *= 0.5;
        }
        halve = libm::log(high / low) > 0.5 * before && !halve;
    }
    Some(low)
}

/// How a budget is split over T updates, as weights w_t: the split that minimises sum w_t / eps_t^2 (the noise's part of
/// the final error) with sum eps_t fixed is eps_t proportional to w_t^{1/3}. Spec 02 section 4.1.
///
/// `contraction` is C = 1 - sigma / (n L_max), in (0, 1]: what one update leaves of an error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Split {
    /// Equal parts: what the papers' experiments use.
    Uniform,
    /// Proposition 2 as the 2018 paper prints it, w_t = C^t: noise grows with time. Not optimal: the recursion that it
    /// rests on weights time t by C^{T-1-t}. For reproducing the paper only.
    PaperProposition2 {
        /// C.
        contraction: f64,
    },
    /// Proposition 2 corrected, w_t = C^{T-1-t}: noise falls with time.
    Corrected {
        /// C.
        contraction: f64,
    },
    /// Corrected without a global clock: of `agents`, the k-th wake of one is expected at time `agents` k, so its share is
    /// C^{-agents k / 3}.
    ClockFree {
        /// C.
        contraction: f64,
        /// n.
        agents: u64,
    },
}

impl Split {
    /// The parts of an agent's updates, which sum to 1. `times` are the global times t = 0, 1, .. of its updates, and
    /// `horizon` is T; [`Split::Uniform`] and [`Split::ClockFree`] use only how many there are.
    pub fn parts(self, times: &[u64], horizon: u64) -> Result<Vec<f64>, Uncalibrated> {
        let bad = |what, value, accepted| Err(Uncalibrated::OutOfRange { what, value, accepted });
        if times.is_empty() {
            return bad("number of updates", 0.0, "at least 1");
        }
        if let Some(&late) = times.iter().find(|&&time| time >= horizon) {
            return bad("time of an update", late as f64, "below the number of all updates");
        }
        let contraction = match self {
            Split::Uniform => 1.0,
            Split::PaperProposition2 { contraction }
            | Split::Corrected { contraction }
            | Split::ClockFree { contraction, .. } => contraction,
        };
        if !(contraction > 0.0 && contraction <= 1.0) {
            return bad("contraction", contraction, "above 0 and at most 1");
        }
        // ln w_t^{1/3}
        let third = libm::log(contraction) / 3.0;
        let log_part = |(k, &time): (usize, &u64)| match self {
            Split::Uniform => 0.0,
            Split::PaperProposition2 { .. } => third * time as f64,
            Split::Corrected { .. } => third * (horizon - 1 - time) as f64,
            Split::ClockFree { agents, .. } => -third * agents as f64 * (k + 1) as f64,
        };
        let logs: Vec<f64> = times.iter().enumerate().map(log_part).collect();
        let most = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let shares: Vec<f64> = logs.iter().map(|log| libm::exp(log - most)).collect();
        let sum: f64 = shares.iter().sum();
        let parts: Vec<f64> = shares.iter().map(|share| share / sum).collect();
        // A part that underflows would be an update with no budget at all.
        match parts.iter().copied().find(|&part| part < 1e-12) {
            Some(part) => bad("smallest part of the budget", part, "at least 1e-12: use a less steep split"),
            None => Ok(parts),
        }
    }
}

/// The epsilons of an agent's updates: `parts` of a common total, the largest with which they keep (`epsilon`, `delta`) by
/// `accountant` as pure steps. By the sum this total is `epsilon` itself.
pub fn epsilons(
    parts: &[f64],
    epsilon: f64,
    delta: f64,
    accountant: &dyn Accountant,
) -> Result<Vec<f64>, Uncalibrated> {
    checked(epsilon, delta, parts.len() as u64)?;
    if let Some(&value) = parts.iter().find(|part| !(part.is_finite() && **part > 0.0)) {
        return Err(Uncalibrated::OutOfRange { what: "part of the budget", value, accepted: "finite and above 0" });
    }
    let steps = |total: f64| parts.iter().map(move |part| part * total);
    let spent = |total: f64| {
        let charges = steps(total).map(|epsilon| Charge::new(Event::RandomizedResponse { epsilon }, 1));
        Ledger::from_charges(charges).map_or(f64::INFINITY, |ledger| accountant.epsilon(&ledger, delta))
    };
    let total = largest(spent, epsilon).ok_or(Uncalibrated::OutOfReach)?;
    Ok(steps(total).collect())
}
