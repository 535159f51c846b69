//! From a budget to the noise: calibration and the split of a budget over updates. Proof: `proofs/calibrate.md`.
//!
//! Everything here asks an accountant, which rounds up, and returns a value that the accountant was seen to accept.

use crate::network::{BadNetwork, Gossip, GraphPairs, WorstAndMean};
use crate::{Accountant, Charge, Event, Gaussian, Ledger};
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
    /// No parameter between 1e-20 and 1e20 meets the budget by this accountant.
    #[error("no noise multiplier from 1e-20 to 1e20 is accepted by this accountant for this budget")]
    OutOfReach,
}

/// The mechanism to calibrate: an event for each noise multiplier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoiseKind {
    /// Noise multiplier: scale / Delta_1.
    Laplace,
    /// Noise multiplier: sigma / Delta_2.
    Gaussian,
}

impl NoiseKind {
    /// One release with this much noise.
    pub fn event(self, noise_multiplier: f64) -> Event {
        match self {
            NoiseKind::Laplace => Event::Laplace { noise_multiplier },
            NoiseKind::Gaussian => Event::Gaussian { noise_multiplier },
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
    noise: NoiseKind,
    epsilon: f64,
    delta: f64,
    steps: u64,
    accountant: &dyn Accountant,
) -> Result<f64, Uncalibrated> {
    checked(epsilon, delta, steps)?;
    if noise == NoiseKind::Gaussian && delta == 0.0 {
        let accepted = "above 0 for Gaussian noise, which has no guarantee without a delta";
        return Err(Uncalibrated::OutOfRange { what: "delta", value: delta, accepted });
    }
    let charges = |multiplier: f64| [Charge::new(noise.event(multiplier), steps)];
    // More noise is less epsilon: search for the largest inverse.
    let found = largest(|inverse| charges(1.0 / inverse), epsilon, delta, accountant);
    found.map(|inverse| 1.0 / inverse).ok_or(Uncalibrated::OutOfReach)
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
    let charges = |each: f64| [Charge::new(Event::RandomizedResponse { epsilon: each }, steps)];
    largest(charges, epsilon, delta, accountant).ok_or(Uncalibrated::OutOfReach)
}

const FLOOR: f64 = 1e-20;
const CEILING: f64 = 1e20;
/// How close to the budget a search ends, relatively.
const CLOSE: f64 = 1e-9;

/// The largest x in [1e-20, 1e20], to a relative 1e-9, with which `charges` of x keep the budget, for charges that cost more
/// with a larger x. The accountant has accepted the value returned.
pub(crate) fn largest<C: IntoIterator<Item = Charge>>(
    charges: impl Fn(f64) -> C,
    budget: f64,
    delta: f64,
    accountant: &dyn Accountant,
) -> Option<f64> {
    let ledger = |x: f64| Ledger::from_charges(charges(x)).ok();
    let spent = |x: f64| ledger(x).map_or(f64::INFINITY, |ledger| accountant.epsilon(&ledger, delta));
    let rough = |x: f64| ledger(x).map_or(f64::INFINITY, |ledger| accountant.rough(&ledger, delta));
    // First with the rough values, which cost nothing, to where they say; from there with their slope.
    let near = search(rough, budget, budget, 1.5, 1e-4).unwrap_or(FLOOR);
    let slope = libm::log(rough(1.001 * near) / rough(near)) / libm::log(1.001);
    search(spent, budget, near, slope, CLOSE)
}

/// The secant method, from a guess and the slope of ln spent against ln x there, with halvings when it is slow. The x returned
/// was seen to keep the budget, and either it uses it up but for the relative part `close`, or an x larger by that part does
/// not keep it.
fn search(spent: impl Fn(f64) -> f64, budget: f64, guess: f64, slope: f64, close: f64) -> Option<f64> {
    // In the middle of what is close enough.
    let target = budget * (1.0 - 0.4 * close);
    let slope = if slope.is_finite() { slope.clamp(0.5, 20.0) } else { 1.5 };
    // The largest x known to keep the budget and the smallest known not to; and the last x that told something.
    let (mut low, mut high) = (None::<f64>, None::<f64>);
    let mut before: Option<(f64, f64)> = None;
    let mut x = guess.clamp(FLOOR, CEILING);
    for round in 1..=300u32 {
        let value = spent(x);
        if value <= budget {
            if x >= CEILING || value >= budget * (1.0 - close) {
                return Some(x);
            }
            low = Some(x);
        } else {
            if x <= FLOOR {
                return None;
            }
            high = Some(x);
        }
        let aim = match before {
            // Nothing is spent below some x, and that is all that is known there.
            _ if value == 0.0 => 2.0 * x,
            _ if !value.is_finite() => 0.25 * x,
            Some((other, its)) => x + (target - value) * (other - x) / (its - value),
            None => x * libm::exp(libm::log(target / value) / slope),
        };
        if value > 0.0 && value.is_finite() {
            before = Some((x, value));
        }
        let aim = if aim.is_finite() { aim.clamp(0.01 * x, 100.0 * x).clamp(FLOOR, CEILING) } else { x };
        x = match (low, high) {
            (Some(low), Some(high)) if high <= low * (1.0 + close) => return Some(low),
            // The secant is good for the first rounds; where the values jump, halve every other time.
            (Some(low), Some(high)) if !(aim > low && aim < high) || (round > 12 && round % 2 == 0) => {
                let middle = low * (high / low).sqrt();
                if !(middle > low && middle < high) {
                    return Some(low);
                }
                middle
            }
            // Nothing gained on one side: go on by what is close enough.
            (None, _) if aim >= x => (x * (1.0 - close)).max(FLOOR),
            (_, None) if aim <= x => (x * (1.0 + close)).min(CEILING),
            _ => aim,
        };
    }
    low
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
    let charges = |total: f64| steps(total).map(|epsilon| Charge::new(Event::RandomizedResponse { epsilon }, 1));
    let total = largest(charges, epsilon, delta, accountant).ok_or(Uncalibrated::OutOfReach)?;
    Ok(steps(total).collect())
}

/// How close calibrated noise is to the least.
pub const GRAPH_NOISE_WITHIN: f64 = 1e-2;

/// Matrices that are computed for it at most.
const EVALUATIONS_MAX: usize = 12;

/// The least noise multiplier, to a relative [`GRAPH_NOISE_WITHIN`], at which what `of` takes of the matrix, the worst pair or the mean, is at most
/// `epsilon`; none outside of epsilon > 0 and 0 < delta < 1. `matrix` computes all rows, by as many processors as the caller has; it is asked
/// some six times.
pub fn noise_of_graph_walk<'g>(
    graph: &'g Gossip,
    contributions: u64,
    (epsilon, delta): (f64, f64),
    of: impl Fn(WorstAndMean) -> f64,
    matrix: impl Fn(&GraphPairs<'g>) -> Vec<Vec<f64>>,
) -> Result<Option<f64>, BadNetwork> {
    // PRIVACY: whatever the path, local composition keeps the budget.
    let local = noise_multiplier(NoiseKind::Gaussian, epsilon, delta, contributions, &Gaussian);
    let Ok(mut enough) = local else { return Ok(None) };
    let at = |noise: f64| Ok(of(WorstAndMean::of(&matrix(&GraphPairs::new(graph, contributions, noise, delta)?))));
    let (mut too_little, mut kept) = (0.0, at(enough)?);
    for _ in 0..EVALUATIONS_MAX {
        // Epsilons are about inverse to noise: a little above where this one would be spent, and never below what is too little.
        let guess = (enough * kept / epsilon * (1.0 + 0.3 * GRAPH_NOISE_WITHIN))
            .max(too_little * (1.0 + 0.3 * GRAPH_NOISE_WITHIN));
        let guess = if guess < enough { guess } else { 0.5 * (too_little + enough) };
        if enough <= too_little * (1.0 + GRAPH_NOISE_WITHIN) || enough - guess < 0.1 * GRAPH_NOISE_WITHIN * enough {
            break;
        }
        match at(guess)? {
            found if found <= epsilon => (enough, kept) = (guess, found),
            _ => too_little = guess,
        }
    }
    Ok(Some(enough))
}
