//! Collaborative learning by decentralized block coordinate descent (Bellet et al. 2018, section 2.3; thesis, (2.3)).
//!
//! An agent that wakes takes one gradient step on its own block of Q with step 1 / L_i, L_i = D_ii (1 + mu c_i L_i^loc):
//!
//! Theta_i <- (1 - alpha_i) Theta_i + alpha_i ( sum_j W_ij / D_ii Theta_j - mu c_i grad L_i(Theta_i) ),
//! alpha_i = 1 / (1 + mu c_i L_i^loc)
//!
//! and posts the result to all neighbours. Each step lowers Q by at least |[grad Q]_i|^2 / (2 L_i).
//!
//! Differs from the paper: equation (4) closes its parenthesis before the gradient, so that alpha would not multiply it; the
//! line above is what the derivation and the paper's equation (6) say. A neighbour that has not been heard yet
//! is at zero when everyone starts there; otherwise its model is unknown, and the agent's own stands in: it does not pull.
//!
//! The model of an agent is its own last post, kept by the driver: the state is two numbers.

use crate::config::{ConfigError, positive};
use crate::{
    Loss, Shard,
    kernel::{self, Arithmetic, Simd},
    objective,
    reference::local::solitary_model,
    saved,
};
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Neighbours, NoLetter, Peers, Posts};
use sottovoce_privacy::Exhausted;

/// The hyper-parameters, before they are checked.
///
/// | name | symbol | range | default |
/// |---|---|---|---|
/// | dimension | p | 1 and above | the data's |
/// | loss | l | a smooth one | logistic |
/// | trade-off | mu | above 0 | 1, as everywhere |
/// | start | Theta(0) | local or zero | local, as in the paper's experiments |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CoordinateDescentConfig {
    /// p.
    pub dimension: usize,
    /// l.
    pub loss: Loss,
    /// mu.
    pub trade_off: f64,
    /// Theta(0).
    pub start: Start,
}

/// The hyper-parameters, the same for all agents.
#[derive(Clone, Copy, Debug)]
pub struct CoordinateDescent {
    dimension: usize,
    trade_off: f64,
    start: Start,
}

impl CoordinateDescent {
    /// Checks the hyper-parameters.
    pub fn new(config: CoordinateDescentConfig) -> Result<Self, ConfigError> {
        if config.loss.smoothness().is_none() {
            return Err(ConfigError {
                field: "loss",
                value: "hinge".to_owned(),
                accepted: "a smooth loss (logistic, squared or smoothed-hinge); ADMM takes the hinge",
            });
        }
        let trade_off = positive("trade-off", config.trade_off)?;
        Ok(CoordinateDescent { dimension: config.dimension, trade_off, start: config.start })
    }
}

/// Where models begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the agents' purely local models, which each agent posts when it enters.
    Local,
    /// At zero, which everyone knows: nothing is sent.
    Zero,
}

/// What an agent remembers besides its post.
#[derive(Clone, Debug)]
pub enum State {
    /// It has neighbours.
    Joined(Step),
    /// It has none: it keeps its local model, never moves and never sends.
    Alone(Box<[f64]>),
}

/// The constants of an agent's update.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// alpha_i in (0, 1].
    alpha: f64,
    /// 1 / D_ii.
    inverse_degree: f64,
}

impl CoordinateDescent {
    fn step(&self, shard: &Shard<'_>, peers: Peers<'_>) -> Step {
        let smoothness = objective::local_smoothness(shard).expect("a smooth loss, which `new` has checked");
        let alpha = 1.0 / (1.0 + self.trade_off * shard.confidence * smoothness);
        Step { alpha, inverse_degree: 1.0 / peers.weighted_degree() }
    }
}

impl Algorithm for CoordinateDescent {
    type Data<'d> = Shard<'d>;
    type State = State;
    type Letter<'a> = NoLetter;

    fn post_len(&self) -> usize {
        self.dimension
    }

    fn start(&self, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<State, Exhausted> {
        if cx.peers.is_empty() {
            return Ok(State::Alone(solitary_model(&shard).into()));
        }
        if self.start == Start::Local {
            let model = solitary_model(&shard);
            // PRIVACY: the exact local model, to everyone: epsilon = infinity.
            let post = cx.gate.reveal(&*model)?;
            cx.outbox.post(post);
        }
        Ok(State::Joined(self.step(&shard, cx.peers)))
    }

    fn on_wake(&self, me: &mut State, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        let State::Joined(step) = *me else { return Ok(Activity { moved: 0.0 }) };
        let p = self.dimension;
        cx.scratch.clear();
        cx.scratch.resize(2 * p, 0.0);
        let (model, gradient) = cx.scratch.split_at_mut(p);
        let weight = self.trade_off * shard.confidence;
        let moved = kernel::vectorized(Update {
            step,
            weight,
            shard,
            posts: cx.posts,
            peers: cx.peers,
            unheard_at_zero: self.start == Start::Zero,
            model,
            gradient,
        });
        // PRIVACY: the exact model, to everyone: epsilon = infinity.
        let post = cx.gate.reveal(&*model)?;
        cx.outbox.post(post);
        Ok(Activity { moved })
    }

    fn save(&self, _me: &State, out: &mut Vec<u8>) {
        saved::write(&(), out);
    }

    /// Everything is computed again, for the neighbours of the moment. An agent that was alone and is not any more goes on from
    /// zero, because it has posted nothing.
    fn resume(
        &self,
        saved: &[u8],
        _neighbours: Neighbours,
        shard: Shard<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<State, CannotResume> {
        let () = saved::read(saved)?;
        Ok(match cx.peers.is_empty() {
            true => State::Alone(solitary_model(&shard).into()),
            false => State::Joined(self.step(&shard, cx.peers)),
        })
    }

    fn model<'a>(&self, me: &'a State, posted: &'a [f64]) -> &'a [f64] {
        match me {
            State::Joined(_) => posted,
            State::Alone(model) => model,
        }
    }
}

/// One step of equation (4), from zeroed buffers.
struct Update<'a> {
    step: Step,
    /// mu c_i.
    weight: f64,
    shard: Shard<'a>,
    posts: Posts<'a>,
    peers: Peers<'a>,
    /// Whether a neighbour that has not been heard is known to be at zero.
    unheard_at_zero: bool,
    /// Ends as the new model.
    model: &'a mut [f64],
    gradient: &'a mut [f64],
}

impl Arithmetic for Update<'_> {
    /// The largest change of a coordinate.
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f64 {
        let Update { step, weight, shard, posts, peers, unheard_at_zero, model, gradient } = self;
        let theta = posts.mine();
        let neighbour = |k| {
            let (weight, post) = posts.last(peers, k);
            (weight, if unheard_at_zero || posts.heard(k) { post } else { theta })
        };
        kernel::add_weighted_rows(simd, peers.len(), neighbour, model);
        kernel::add_gradient_inline(simd, shard.loss, shard.points, theta, gradient);
        // theta_i <- (1 - alpha) theta_i + alpha (sum_j W_ij/D_ii theta_j - mu c_i (g/m + 2 lambda theta_i))   [2018, eq. 4]
        let alpha = step.alpha;
        let keep = 1.0 - alpha - 2.0 * alpha * weight * shard.regularization;
        let follow = alpha * step.inverse_degree;
        let descend = if shard.points.is_empty() { 0.0 } else { alpha * weight / shard.points.len() as f64 };
        kernel::step(simd, [keep, follow, descend], theta, gradient, model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Problem;
    use crate::testing::{SMOOTH, event, everyone, means_on_a_path, normals, random_problem};
    use sottovoce_core::{Coin, PeerId, Rows};
    use sottovoce_privacy::{Gate, NoNoise, Plan};

    fn config(problem: &Problem) -> CoordinateDescentConfig {
        let (dimension, loss, trade_off) = (problem.dimension(), problem.loss, problem.trade_off);
        CoordinateDescentConfig { dimension, loss, trade_off, start: Start::Zero }
    }

    /// Enters, then wakes once.
    fn wake(problem: &Problem, rows: &Rows, me: PeerId) -> (f64, Option<Vec<f64>>) {
        let algorithm = CoordinateDescent::new(config(problem)).expect("good parameters");
        let (shard, mut gate) = (problem.shard(me), Gate::without_privacy());
        let (state, posted) = event(problem, rows, me, &mut gate, |cx| algorithm.start(shard, cx));
        assert_eq!(posted, None, "everyone knows that models start at zero");
        let mut state = state.expect("an unlimited budget");
        let (activity, post) = event(problem, rows, me, &mut gate, |cx| algorithm.on_wake(&mut state, shard, cx));
        assert_eq!(gate.ledger().releases(), u64::from(post.is_some()));
        (activity.expect("an unlimited budget").moved, post)
    }

    #[test]
    fn one_step_on_a_path_by_hand() {
        // L_1 = (theta - 4)^2 / 2, so L^loc = 1 and alpha = 1 / (1 + mu). With neighbours 1 (weight 1) and 3 (weight 3):
        // 2 <- (1 - alpha) 2 + alpha (10 / 4 - mu (2 - 4)).
        for trade_off in [0.5, 1.0, 3.0] {
            let problem = means_on_a_path([0.0, 4.0, 8.0], trade_off);
            let mut rows = Rows::zeros(3, 1);
            rows.values_mut().copy_from_slice(&[1.0, 2.0, 3.0]);
            let alpha = 1.0 / (1.0 + trade_off);
            let expected = (1.0 - alpha) * 2.0 + alpha * (2.5 + trade_off * 2.0);
            let (moved, post) = wake(&problem, &rows, PeerId(1));
            let post = post.expect("a step");
            assert!((post[0] - expected).abs() < 1e-14, "{post:?} {expected}");
            assert!((moved - (expected - 2.0).abs()).abs() < 1e-14, "{moved}");
        }
    }

    #[test]
    fn a_wake_is_a_gradient_step_of_length_one_over_the_block_smoothness() {
        for loss in SMOOTH {
            for (seed, p) in [(1, 1), (2, 3), (3, 17)] {
                let problem = random_problem(seed, 9, p, loss);
                let mut rows = Rows::zeros(9, p);
                rows.values_mut().copy_from_slice(&normals(&mut Coin::new(seed, 7, 0), 9 * p));
                let mut gradient = vec![0.0; p];
                for agent in everyone(&problem) {
                    let (moved, post) = wake(&problem, &rows, agent);
                    if problem.graph.peers(agent).is_empty() {
                        assert_eq!((moved, post), (0.0, None), "an isolated agent neither moves nor speaks");
                        continue;
                    }
                    objective::gradient_block(&problem, agent, &rows, &mut gradient);
                    let step = 1.0 / objective::block_smoothness(&problem, agent).expect("a smooth loss");
                    for ((new, old), g) in post.expect("a step").iter().zip(rows.row(agent.index())).zip(&gradient) {
                        assert!((new - (old - step * g)).abs() < 1e-12, "{loss:?} {agent:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn local_models_are_posted_on_entering_if_so_configured() {
        let problem = random_problem(4, 9, 3, Loss::Logistic);
        let config = CoordinateDescentConfig { start: Start::Local, ..config(&problem) };
        let algorithm = CoordinateDescent::new(config).expect("good parameters");
        let rows = Rows::zeros(9, 3);
        for agent in everyone(&problem) {
            let (shard, mut gate) = (problem.shard(agent), Gate::without_privacy());
            let (_, posted) = event(&problem, &rows, agent, &mut gate, |cx| algorithm.start(shard, cx));
            let expected = (!problem.graph.peers(agent).is_empty()).then(|| solitary_model(&shard));
            assert_eq!(posted, expected);
            assert_eq!(gate.ledger().releases(), u64::from(expected.is_some()));
        }
    }

    #[test]
    fn a_budget_stops_it_before_anything_leaves() {
        let problem = random_problem(5, 9, 3, Loss::Squared);
        let algorithm = CoordinateDescent::new(config(&problem)).expect("good parameters");
        let (rows, shard, me) = (Rows::zeros(9, 3), problem.shard(PeerId(0)), PeerId(0));
        let mut gate = Gate::planned(Plan::nothing().into(), NoNoise);
        let (state, _) = event(&problem, &rows, me, &mut gate, |cx| algorithm.start(shard, cx));
        let mut state = state.expect("nothing leaves at the start");
        let (activity, post) = event(&problem, &rows, me, &mut gate, |cx| algorithm.on_wake(&mut state, shard, cx));
        assert_eq!((activity, post, gate.ledger().releases()), (Err(Exhausted), None, 0));
    }

    #[test]
    fn what_it_cannot_run_with_is_refused_by_name() {
        let good = config(&random_problem(6, 9, 3, Loss::Logistic));
        let refused = |config| CoordinateDescent::new(config).expect_err("bad parameters").field;
        assert_eq!(refused(CoordinateDescentConfig { loss: Loss::Hinge, ..good }), "loss");
        for trade_off in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(refused(CoordinateDescentConfig { trade_off, ..good }), "trade-off");
        }
    }
}
