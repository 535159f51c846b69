//! Coordinate descent over a known graph: each model is a post, to all neighbours.
//!
//! The model of an agent is its own last post, kept by the driver. The state of exact descent is two numbers.

use super::Descent;
use super::disclosure::Disclosed;
use super::exact::{CoordinateDescentConfig, ExactDescent};
use super::neighbours::Posted;
use super::noise::{PrivateCoordinateDescentConfig, PrivateDescent};
use super::update::{Stepped, View};
use crate::config::ConfigError;
use crate::personal::home::Broadcast;
use crate::{Shard, saved};
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Neighbours, NoLetter, Peers};
use sottovoce_privacy::{Exhausted, Plan};

/// The hyper-parameters, the same for all agents.
#[derive(Clone, Copy, Debug)]
pub struct ByPosts<D> {
    dimension: usize,
    descent: D,
}

impl ByPosts<ExactDescent> {
    /// Checks the hyper-parameters.
    pub fn new(config: CoordinateDescentConfig) -> Result<Self, ConfigError> {
        let CoordinateDescentConfig { dimension, loss, trade_off, start } = config;
        let instead = "a smooth loss (logistic, squared or smoothed-hinge); ADMM takes the hinge";
        Ok(ByPosts { dimension, descent: ExactDescent::new(loss, trade_off, start, instead)? })
    }
}

impl ByPosts<PrivateDescent> {
    /// Checks the hyper-parameters.
    pub fn new(config: PrivateCoordinateDescentConfig) -> Result<Self, ConfigError> {
        Ok(ByPosts { dimension: config.dimension, descent: PrivateDescent::new(config)? })
    }

    /// What everyone can know of the broadcast of an agent with this many points that followed `plan`, its data unseen.
    pub fn broadcast(&self, points: usize, regularization: f64, confidence: f64, plan: &Plan) -> Broadcast {
        self.descent.broadcast(points, regularization, confidence, plan)
    }

    /// The same for models that travel otherwise.
    pub(super) fn into_descent(self) -> PrivateDescent {
        self.descent
    }
}

/// What an agent remembers besides its post.
#[derive(Clone, Debug)]
pub enum State<B, M> {
    /// It has neighbours.
    Joined {
        /// What its steps need.
        block: B,
        /// 1 / D_ii.
        inverse_degree: f64,
    },
    /// It has none: it keeps its model, never moves and never sends.
    Alone(Box<M>),
}

impl<D: Descent> ByPosts<D> {
    fn joined(block: D::Block, peers: Peers<'_>) -> State<D::Block, D::Disclosed> {
        State::Joined { block, inverse_degree: 1.0 / peers.weighted_degree() }
    }
}

impl<D: Descent> Algorithm for ByPosts<D> {
    type Data<'d> = Shard<'d>;
    type State = State<D::Block, D::Disclosed>;
    type Letter<'a> = NoLetter;

    fn post_len(&self) -> usize {
        self.dimension
    }

    fn start(&self, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<Self::State, Exhausted> {
        if cx.peers.is_empty() {
            return Ok(State::Alone(Box::new(self.descent.disclosed(shard))));
        }
        let mut block = self.descent.block(shard);
        if let Some(first) = self.descent.first(&mut block, shard, cx.gate)? {
            cx.outbox.post(first.as_ref().map(|model| &**model));
        }
        Ok(Self::joined(block, cx.peers))
    }

    fn on_wake(&self, me: &mut Self::State, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        let State::Joined { block, inverse_degree } = me else { return Ok(Activity { moved: 0.0 }) };
        let (inverse_degree, unheard_at_zero) = (*inverse_degree, self.descent.starts_at_zero());
        let neighbours = Posted { peers: cx.peers, posts: cx.posts, inverse_degree, unheard_at_zero };
        let view = View::new(cx.posts.mine(), neighbours, cx.scratch);
        let Some(Stepped { model, moved, .. }) = self.descent.step(block, shard, view, cx.gate)? else {
            return Ok(Activity { moved: 0.0 });
        };
        cx.outbox.post(model);
        Ok(Activity { moved })
    }

    fn save(&self, me: &Self::State, out: &mut Vec<u8>) {
        let saved = match me {
            State::Joined { block, .. } => self.descent.save(block),
            State::Alone(_) => D::Saved::default(),
        };
        saved::write(&saved, out);
    }

    /// What follows from the data is computed again, for the neighbours of the moment. An agent that was alone and is not any more goes
    /// on from zero, because it has posted nothing.
    fn resume(
        &self,
        saved: &[u8],
        neighbours: Neighbours,
        shard: Shard<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<Self::State, CannotResume> {
        let block = self.descent.resume(saved::read(saved)?, shard, cx.peers, neighbours)?;
        Ok(match cx.peers.is_empty() {
            true => State::Alone(Box::new(self.descent.disclosed(shard))),
            false => Self::joined(block, cx.peers),
        })
    }

    fn model<'a>(&self, me: &'a Self::State, posted: &'a [f64]) -> &'a [f64] {
        match me {
            State::Alone(disclosed) => disclosed.model(),
            State::Joined { .. } => posted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::personal::descent::{CoordinateDescent, Start};
    use crate::reference::local::solitary_model;
    use crate::testing::{SMOOTH, event, everyone, means_on_a_path, normals, random_problem};
    use crate::{Loss, Problem, objective};
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
