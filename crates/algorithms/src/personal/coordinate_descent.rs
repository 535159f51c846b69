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
//! line above is what the derivation and the paper's equation (6) say. A neighbour that has not been heard yet counts
//! as the zero vector.
//!
//! The model of an agent is its own last post, kept by the driver: the state is two numbers.

use super::config::{ConfigError, positive};
use crate::{
    Loss, Shard,
    kernel::{self, Arithmetic, Simd},
    objective,
    reference::local::solitary_model,
};
use sottovoce_core::{Activity, Algorithm, Cx, NoLetter, PeerId, Peers, Posts, Reject};
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
        let smoothness = objective::local_smoothness(&shard).expect("a smooth loss, which `new` has checked");
        let alpha = 1.0 / (1.0 + self.trade_off * shard.confidence * smoothness);
        Ok(State::Joined(Step { alpha, inverse_degree: 1.0 / cx.peers.weighted_degree() }))
    }

    fn on_wake(&self, me: &mut State, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        let State::Joined(step) = *me else { return Ok(Activity { moved: 0.0 }) };
        let p = self.dimension;
        cx.scratch.clear();
        cx.scratch.resize(2 * p, 0.0);
        let (model, gradient) = cx.scratch.split_at_mut(p);
        let weight = self.trade_off * shard.confidence;
        let moved =
            kernel::vectorized(Update { step, weight, shard, posts: cx.posts, peers: cx.peers, model, gradient });
        // PRIVACY: the exact model, to everyone: epsilon = infinity.
        let post = cx.gate.reveal(&*model)?;
        cx.outbox.post(post);
        Ok(Activity { moved })
    }

    fn on_letter(
        &self,
        _me: &mut State,
        _shard: Shard<'_>,
        _from: PeerId,
        letter: NoLetter,
        _cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        match letter {}
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
    /// Ends as the new model.
    model: &'a mut [f64],
    gradient: &'a mut [f64],
}

impl Arithmetic for Update<'_> {
    /// The largest change of a coordinate.
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f64 {
        let Update { step, weight, shard, posts, peers, model, gradient } = self;
        let theta = posts.mine();
        kernel::add_weighted_rows(simd, peers.len(), |k| posts.last(peers, k), model);
        kernel::add_gradient_inline(simd, shard.loss, shard.points, theta, gradient);
        // theta_i <- (1 - alpha) theta_i + alpha (sum_j W_ij/D_ii theta_j - mu c_i (g/m + 2 lambda theta_i))   [2018, eq. 4]
        let alpha = step.alpha;
        let keep = 1.0 - alpha - 2.0 * alpha * weight * shard.regularization;
        let follow = alpha * step.inverse_degree;
        let descend = if shard.points.is_empty() { 0.0 } else { alpha * weight / shard.points.len() as f64 };
        kernel::step(simd, [keep, follow, descend], theta, gradient, model)
    }
}
