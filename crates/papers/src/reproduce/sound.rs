//! Private runs on the synthetic task with a calibration that gives what it claims.

use super::linear::Instance;
use sottovoce_algorithms::personal::descent::{PrivateCoordinateDescent, PrivateCoordinateDescentConfig, WarmStart};
use sottovoce_algorithms::personal::home::Home;
use sottovoce_core::{PeerId, Rows};
use sottovoce_privacy::calibrate::Uncalibrated;
use sottovoce_privacy::{Accountant, Event, Idealized, Plan, Simulated};
use sottovoce_run::private::gate_with;
use sottovoce_sim::Simulation;
use sottovoce_task::task::Mechanism;
use std::sync::Arc;

/// Wakes per agent beyond twice the updates: enough that everyone uses its plan up.
const WAKES_BEYOND: u64 = 20;

/// The models of a private run.
#[derive(Clone, Debug)]
pub struct PrivateModels {
    /// What agents broadcast last: the model of the paper.
    pub broadcast: Rows,
    /// What agents keep for themselves.
    pub home: Rows,
}

/// How many wakes per agent a run with so many updates has.
pub fn wakes_per_agent(updates: u64, warm_wakes: u32) -> u64 {
    2 * updates + WAKES_BEYOND + 2 * u64::from(warm_wakes)
}

/// A plan of equal updates, after a warm start of this epsilon where there is one, that keeps (`epsilon`, `delta`) in all.
pub fn plan(
    mechanism: Mechanism,
    updates: usize,
    warm_epsilon: Option<f64>,
    epsilon: f64,
    delta: f64,
    accountant: &dyn Accountant,
) -> Result<Plan, Uncalibrated> {
    // pure epsilon = 1 / noise_multiplier, rounded up: a multiplier a little above keeps it within its part.
    let warm = warm_epsilon.map(|epsilon| Event::GammaNorm { noise_multiplier: (1.0 / epsilon).next_up() });
    let update = |noise_multiplier: f64| match mechanism {
        Mechanism::Gaussian => Event::Gaussian { noise_multiplier },
        Mechanism::Laplace => Event::Laplace { noise_multiplier },
    };
    let steps = |noise: f64| warm.into_iter().chain(std::iter::repeat_n(update(noise), updates)).collect();
    Plan::with_least_noise(steps, epsilon, delta, accountant)
}

/// Private coordinate descent. The instance's points must lie in the unit ball of the mechanism's norm.
pub fn run(instance: &Instance, mechanism: Mechanism, plan: &Arc<Plan>, warm: Option<WarmStart>) -> PrivateModels {
    let problem = &instance.problem;
    let descent = PrivateCoordinateDescent::new(PrivateCoordinateDescentConfig {
        dimension: problem.dimension(),
        loss: problem.loss,
        trade_off: problem.trade_off,
        clip: 1.0,
        norm: mechanism.norm(),
        feature_bound: 1.0,
        l1_features: mechanism == Mechanism::Laplace,
        warm,
    })
    .expect("the TOML files of the figures are tested");
    let noise = |id: PeerId| Simulated::Idealized(Idealized::new(instance.seed, id.0));
    let gates = |id| gate_with(problem, plan, id, noise(id));
    let shard = |id| problem.shard(id);
    let mut simulation = Simulation::start_behind(gates, &descent, &problem.graph, shard, &instance.settings())
        .expect("the plan holds what agents release as they enter");
    let updates = plan.steps().len() as u64;
    let agents = problem.agents();
    simulation.advance(wakes_per_agent(updates, warm.map_or(0, |warm| warm.wakes)) * agents as u64);
    let known: Vec<_> = (0..agents as u32)
        .map(|id| problem.shard(PeerId(id)))
        .map(|shard| descent.broadcast(shard.points.len(), shard.regularization, shard.confidence, plan))
        .collect();
    let mut home = Rows::zeros(agents, problem.dimension());
    for id in (0..agents as u32).map(PeerId) {
        let (shard, peers) = (problem.shard(id), problem.graph.peers(id));
        let model = Home::Automatic.model(&shard, peers, simulation.posts(id), |id| known[id.index()]);
        home.row_mut(id.index()).copy_from_slice(&model);
    }
    PrivateModels { broadcast: simulation.models(), home }
}
