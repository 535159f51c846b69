//! One release, many times, through a gate: what its noise is worth.

use super::bound::{Bound, Worlds, epsilon_bound, mu_bound};
use super::likelihood::log_likelihood_ratio;
use crate::{Audience, Event, Gate, Noise, Plan, Sum, Track, gaussian_epsilon};
use std::sync::Arc;

/// What the releases of one mechanism say about its claim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MechanismAudit {
    /// The mechanism.
    pub event: Event,
    /// Numbers in each release.
    pub dimension: usize,
    /// Releases in each of the two worlds.
    pub trials: usize,
    /// The epsilon that it claims, at the delta below.
    pub claim: f64,
    /// Zero for pure mechanisms.
    pub delta: f64,
    /// Lower bounds on epsilon.
    pub epsilon: Bound,
    /// For Gaussian noise: the claimed mu and its lower bounds, which those on epsilon come from.
    pub mu: Option<(f64, Bound)>,
}

impl MechanismAudit {
    /// Whether the claim is proved wrong.
    pub fn is_refuted(&self) -> bool {
        match self.mu {
            Some((claim, bound)) => bound.certain > claim,
            None => self.epsilon.certain > self.claim,
        }
    }
}

/// The epsilon of one use of a mechanism, and at which delta: its own pure one, or what `delta` gives.
pub fn claim_of(event: Event, delta: f64) -> (f64, f64) {
    match event {
        Event::Gaussian { noise_multiplier } => (gaussian_epsilon(1.0 / noise_multiplier, delta), delta),
        _ => (event.pure_epsilon(), 0.0),
    }
}

/// The sensitivity of the releases. Any would do; this one is no power of two, so that nothing is exact by chance.
const SENSITIVITY: f64 = 0.3;

/// Answers two questions of some categories, `trials` times each, by randomized response, and bounds what tells them apart. `noise` makes the
/// noise of each of the two worlds.
pub fn audit_response<N: Noise>(
    mut noise: impl FnMut(u32) -> N,
    epsilon: f64,
    categories: u32,
    trials: usize,
) -> MechanismAudit {
    let event = Event::RandomizedResponse { epsilon };
    let plan = Plan::new(vec![event; trials], f64::INFINITY, 0.5, &Sum).expect("an infinite budget");
    let plan = Arc::new(plan);
    let mut sample = |world: u32| -> Vec<f64> {
        let mut gate = Gate::planned(plan.clone(), noise(world));
        let mut statistic = || {
            let mut answer = [f64::from(world)];
            gate.respond(Track::Models, categories, &mut answer, Audience::Everyone)
                .expect("the plan holds every trial");
            log_likelihood_ratio(event, 1.0, &answer, &[0.0], &[1.0])
        };
        (0..trials).map(|_| statistic()).collect()
    };
    let worlds = Worlds { first: sample(0), second: sample(1) };
    let bound = epsilon_bound(&worlds, 0.0);
    MechanismAudit { event, dimension: 1, trials, claim: epsilon, delta: 0.0, epsilon: bound, mu: None }
}

/// Releases two inputs as far apart as the sensitivity allows, `trials` times each, and bounds what tells them apart.
///
/// They differ in their last coordinate alone. For Laplace noise no other difference of this size tells more; for the other
/// mechanisms the direction does not matter. For randomized response one sign of `dimension` differs. `noise` makes the noise of each of
/// the two worlds.
pub fn audit_mechanism<N: Noise>(
    mut noise: impl FnMut(u32) -> N,
    event: Event,
    dimension: usize,
    trials: usize,
    delta: f64,
) -> MechanismAudit {
    assert!(dimension > 0 && trials > 0, "{trials} releases of {dimension} numbers");
    let response = matches!(event, Event::RandomizedResponse { .. });
    let sensitivity = if response { 1.0 } else { SENSITIVITY };
    let common = if response { 1.0 } else { 0.0 };
    let (one, mut other) = (vec![common; dimension], vec![common; dimension]);
    other[dimension - 1] = if response { -1.0 } else { SENSITIVITY };
    let plan = Plan::new(vec![event; trials], f64::INFINITY, 0.5, &Sum).expect("an infinite budget");
    let plan = Arc::new(plan);
    let mut sample = |world: u32, input: &[f64]| -> Vec<f64> {
        let mut gate = Gate::planned(plan.clone(), noise(world));
        let mut values = vec![0.0; dimension];
        let mut statistic = || {
            values.copy_from_slice(input);
            gate.release(&mut values, sensitivity).expect("the plan holds every trial");
            log_likelihood_ratio(event, sensitivity, &values, &one, &other)
        };
        (0..trials).map(|_| statistic()).collect()
    };
    let worlds = Worlds { first: sample(0, &one), second: sample(1, &other) };
    let (claim, delta) = claim_of(event, delta);
    let (epsilon, mu) = match event {
        Event::Gaussian { noise_multiplier } => {
            let mu = mu_bound(&worlds);
            (mu.map(|mu| gaussian_epsilon(mu, delta)), Some((1.0 / noise_multiplier, mu)))
        }
        _ => (epsilon_bound(&worlds, 0.0), None),
    };
    MechanismAudit { event, dimension, trials, claim, delta, epsilon, mu }
}
