//! What `[privacy]` means for a problem: the plan of releases.

use crate::error::Mistake;
use crate::task::{GraphSource, Losses, Mechanism, Privacy, Schedule, Task};
use sottovoce_algorithms::Problem;
use sottovoce_core::PeerId;
use sottovoce_privacy::calibrate::{Split, Uncalibrated};
use sottovoce_privacy::{Event, Plan};

/// Noise multipliers that are relatively closer than this could become the same by rounding.
const ALIKE: f64 = 1e-9;

impl Privacy {
    /// A bound on |x|_2, intercept included, from what the task declares.
    pub fn feature_bound(&self, task: &Task) -> f64 {
        let bound = task.data.feature_bound.expect("a private task has a bound, which its reading has checked");
        libm::hypot(bound, task.model.intercept.unwrap_or(0.0))
    }

    /// One release with noise of the task's mechanism.
    pub fn event(&self, noise_multiplier: f64) -> Event {
        match self.mechanism {
            Mechanism::Gaussian => Event::Gaussian { noise_multiplier },
            Mechanism::Laplace => Event::Laplace { noise_multiplier },
        }
    }
}

/// The releases of each agent that has data and a neighbour, with the least noise that keeps the budget: as its algorithm plans them.
pub fn plan(task: &Task, privacy: &Privacy, problem: &Problem) -> Result<Plan, Mistake> {
    (task.algorithm.plan)(task, privacy, problem).map_err(|error| unplannable(task, privacy, &error))
}

/// The releases of an agent that updates its model, and of its losses where the graph is learned.
pub fn of_updates(task: &Task, privacy: &Privacy, problem: &Problem) -> Result<Plan, Uncalibrated> {
    let updates = usize::try_from(privacy.updates).expect("at most 2^32 updates");
    let weights = weights(task, privacy, problem, updates)?;
    // pure epsilon = 1 / noise_multiplier, rounded up: a multiplier a little above keeps it within its part.
    let warm = privacy.warm.map(|warm| Event::GammaNorm { noise_multiplier: (1.0 / warm.epsilon).next_up() });
    let parts = Parts::of(task, privacy);
    let steps = |noise: f64| {
        let update = |weight: &f64| privacy.event(noise * parts.update / weight);
        let loss = privacy.event(noise * parts.loss);
        (warm.into_iter().chain(weights.iter().map(update)).collect(), vec![loss; parts.losses])
    };
    Plan::with_least_noise_and_asides(steps, privacy.epsilon, privacy.delta, privacy.accountant.accountant())
}

/// How the noise of updates and of losses compares, so that the losses have their share.
struct Parts {
    /// How many losses an agent releases.
    losses: usize,
    update: f64,
    loss: f64,
}

impl Parts {
    /// A: with T updates, the share s of sum 1 / sigma^2 for Gaussian noise, and of sum 1 / scale for Laplace noise, is the losses'.
    fn of(task: &Task, privacy: &Privacy) -> Self {
        let (Some(Losses { share, .. }), Some((_, graphs))) = (privacy.losses, turns(task)) else {
            return Parts { losses: 0, update: 1.0, loss: 1.0 };
        };
        let noise = |part: f64| match privacy.mechanism {
            Mechanism::Gaussian => 1.0 / libm::sqrt(part),
            Mechanism::Laplace => 1.0 / part,
        };
        let each = share * privacy.updates as f64 / graphs as f64;
        let (update, loss) = (noise(1.0 - share), noise(each));
        // A hair more noise where both have the same: a peer that comes back tells its losses from its updates by their noise.
        let alike = (loss / update - 1.0).abs() < ALIKE;
        Parts { losses: graphs as usize, update, loss: if alike { update * (1.0 + ALIKE) } else { loss } }
    }
}

/// How many turns a run has, of the models and of the graph after its first, where the graph is learned.
pub fn turns(task: &Task) -> Option<(u64, u64)> {
    match &task.graph.source {
        GraphSource::Learned(learned) => Some(learned.turns.before(task.run.wakes_per_agent as f64)),
        _ => None,
    }
}

fn unplannable(task: &Task, privacy: &Privacy, error: &Uncalibrated) -> Mistake {
    let Privacy { epsilon, updates, .. } = privacy;
    let what = match task.algorithm.in_rounds {
        true => format!(
            "privacy.epsilon = {epsilon} cannot be kept over all rounds: {error}; accepted: a larger epsilon, or fewer rounds"
        ),
        false => format!(
            "privacy.epsilon = {epsilon} cannot be kept over {updates} updates: {error}; accepted: a larger epsilon, fewer \
             updates or another schedule"
        ),
    };
    Mistake::file(&task.source, what)
}

/// How much of the budget each update has, relative to the mean.
fn weights(task: &Task, privacy: &Privacy, problem: &Problem, updates: usize) -> Result<Vec<f64>, Uncalibrated> {
    let agents = problem.agents() as u64;
    let contraction = contraction(privacy.feature_bound(task), problem);
    let split = match privacy.schedule {
        Schedule::Uniform => Split::Uniform,
        Schedule::Proposition2 => Split::PaperProposition2 { contraction },
        Schedule::Corrected => Split::Corrected { contraction },
        Schedule::ClockFree => Split::ClockFree { contraction, agents },
    };
    // Nobody knows when it will wake; one wake in n is its own.
    let times: Vec<u64> = (0..updates as u64).map(|k| k * agents).collect();
    let parts = split.parts(&times, updates as u64 * agents)?;
    Ok(parts.iter().map(|part| part * updates as f64).collect())
}

/// C = 1 - sigma / (n L_max), from public bounds alone: sigma >= mu min_i D_ii c_i 2 lambda_i.
fn contraction(feature_bound: f64, problem: &Problem) -> f64 {
    let curvature = problem.loss.smoothness().unwrap_or(0.0) * feature_bound * feature_bound;
    let (mut sigma, mut largest) = (f64::INFINITY, 0.0f64);
    for id in (0..problem.agents() as u32).map(PeerId) {
        let (shard, degree) = (problem.shard(id), problem.graph.peers(id).weighted_degree());
        if degree > 0.0 {
            let weight = problem.trade_off * shard.confidence * degree;
            sigma = sigma.min(2.0 * weight * shard.regularization);
            largest = largest.max(degree + weight * (curvature + 2.0 * shard.regularization));
        }
    }
    if largest > 0.0 && sigma.is_finite() { 1.0 - sigma / (problem.agents() as f64 * largest) } else { 1.0 }
}
