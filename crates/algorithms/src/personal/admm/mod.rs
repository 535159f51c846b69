//! Collaborative learning by gossip ADMM (Vanhaesebrouck et al. 2017, section 4; Wei and Ozdaglar 2013).
//!
//! Minimizes the same Q as coordinate descent, also for losses that are not smooth. Agent i keeps its model Th_i^i and a
//! copy Th_i^l of each neighbour's; on an edge e = (i, l) the two copies of each model agree through an auxiliary Z and
//! multipliers Y, with penalty rho. With a_l = W_il / 2, b_l = a_l rho / (a_l + rho), u_l = Z_e^i - Y_e^i / rho and
//! v_l = Z_e^l - Y_e^l / rho, an exchange over e = (i, j) is
//!
//! 1. at i, and likewise at j:
//!    Th_i^i <- argmin mu D_ii c_i L_i(th) + sum_l ( b_l/2 |th - v_l|^2 + rho/2 |th - u_l|^2 ),
//!    Th_i^j <- (a_j Th_i^i + rho v_j) / (a_j + rho)
//! 2. each sends (Th_i^i, Th_i^j); for both models m in {i, j}, Z_e^m <- 1/2 (Th_i^m + Th_j^m)
//! 3. Y_ei^m <- Y_ei^m + rho (Th_i^m - Z_e^m) = Y_ei^m + rho/2 (Th_i^m - Th_j^m), and at j the same with i and j exchanged
//!
//! The paper also sends the multipliers, because Z averages them too. They cancel: Y_ei^m + Y_ej^m = 0 at all times (below). So an
//! exchange is two vectors each way.
//!
//! **Why multipliers stay paired over lossy links.** They start at zero. Step 3 adds opposite numbers to the
//! two, to the bit, provided that both sides take it with the same two pairs of vectors: what i sent and what j sent. So
//! it must be taken equally often on both sides, each time with the same letters:
//!
//! - Exchanges on an edge are numbered 1, 2, 3, ... and each side takes them in order: `done` is the number of the last
//!   one it took. An initiator keeps a copy of its request until the reply comes and takes step 3 with that copy,
//!   whatever has happened on its other edges meanwhile. It never has two requests pending on one edge; when it picks the edge
//!   again it repeats the same letter. A responder takes step 3 before it replies, and keeps its reply.
//! - *Lost.* If the request is lost, no side has moved. If the reply is lost, the responder is one ahead; the
//!   repeated request carries its `done`, and is answered by the kept reply. The responder may meanwhile ask for the next
//!   exchange, which the initiator rejects until it has caught up.
//! - *Doubled or overtaken.* A request is taken only if its number is done + 1, a reply only if it answers the pending
//!   request; everything else moves nothing.
//! - *Crossing.* Both may ask for the same number k at once. The agent with the lower number insists: while its own request
//!   for k is pending it takes no other, and it never drops its own. The higher agent drops its own and answers. That is
//!   safe: a request for k by the lower agent proves that the lower agent has not answered one for k, and never will.
//!   So each number has one initiator, one request that is taken, and one reply.
//!
//! Hence the two sides of an edge differ at most while a reply is on its way, and then by exactly that one step.
//! An agent with a silent neighbour goes on with its others: nothing waits.
//!
//! **Exchange 0** opens an edge: each tells the other its solitary model, once, at the start. Whoever has not heard a
//! neighbour asks for it when it picks that edge, and is answered at any time. Until then it takes the neighbour's model to
//! be like its own solitary one.
//!
//! Differs from the paper: the primal steps of an exchange happen when a request leaves and when it arrives rather than in one
//! instant; with G gradient steps in place of the argmin, as in Bellet et al. (2018), Figure 1, if so configured.

use super::exchange::{ExchangeKind, ExchangeLetter};
use crate::Shard;
use crate::config::{ConfigError, at_least_one, positive};
use crate::objective::{local_gradient, local_smoothness};
use crate::reference::local::{Proximal, solitary_model};
use crate::saved;
use crate::vector::largest_difference;
use serde::{Deserialize, Serialize};
use sottovoce_core::{
    Activity, Algorithm, CannotResume, Cx, Graph, Neighbours, PeerId, Peers, Reject, Rows, wire::Numbers,
};
use sottovoce_privacy::Exhausted;

/// The hyper-parameters, before they are checked.
///
/// | name | symbol | range | default |
/// |---|---|---|---|
/// | trade-off | mu | above 0 | 1, as everywhere |
/// | penalty | rho | above 0 | [`default_penalty`] |
/// | inner | | exact, or G gradient steps | G = 10, as in Bellet et al. (2018), Figure 1 |
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct AdmmConfig {
    /// mu.
    pub trade_off: f64,
    /// rho.
    pub penalty: f64,
    /// How the argmin is found.
    pub inner: Inner,
}

/// How an agent solves its part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Inner {
    /// To rounding errors.
    Exact,
    /// By gradient steps of length 1 / (mu D_ii c_i L_i^loc + sum_l (b_l + rho)) from the current model; for the hinge, by
    /// subgradient steps of length 1 / (k times the strong convexity), k = 1, 2, ...
    Gradient {
        /// G.
        steps: usize,
    },
}

impl Default for Inner {
    fn default() -> Self {
        Inner::Gradient { steps: 10 }
    }
}

/// 0.1 times the mean weight of an edge, and less in proportion below a trade-off of one.
///
/// A guess, checked with 50 agents, 20 dimensions, regularization 1e-3 and trade-offs from 0.1 to 10: exact inner steps come
/// within 1e-6 of the optimum in at most 10,000 wakes per agent. Ten times as much or as little can need ten times as many.
pub fn default_penalty(graph: &Graph, trade_off: f64) -> f64 {
    let count = graph.edge_count().max(1) as f64;
    let mean = graph.edges().map(|(_, _, weight)| weight).sum::<f64>() / count;
    let weight = if mean > 0.0 { mean } else { 1.0 };
    0.1 * weight * trade_off.min(1.0)
}

/// The hyper-parameters, the same for all agents.
#[derive(Clone, Copy, Debug)]
pub struct Admm {
    config: AdmmConfig,
}

impl Admm {
    /// Checks the hyper-parameters.
    pub fn new(config: AdmmConfig) -> Result<Self, ConfigError> {
        positive("trade-off", config.trade_off)?;
        positive("penalty", config.penalty)?;
        if let Inner::Gradient { steps } = config.inner {
            at_least_one("inner steps", steps)?;
        }
        Ok(Admm { config })
    }
}

/// What an agent remembers.
#[derive(Clone, Debug)]
pub struct State {
    /// Th_i^i.
    model: Vec<f64>,
    solitary: Box<[f64]>,
    /// By position of the neighbour.
    edges: Vec<EdgeState>,
    /// By position of the neighbour, [`ROWS`] vectors each.
    vectors: Rows,
    /// mu D_ii c_i.
    weight: f64,
    /// sum_l (b_l + rho).
    pull: f64,
    solver: Solver,
    centre: Vec<f64>,
    /// The model at the last wake.
    before: Vec<f64>,
}

/// The turn of an edge, as one side sees it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct EdgeState {
    /// The number of the last exchange this side took.
    done: u64,
    /// Whether the neighbour's solitary model has come.
    open: bool,
    /// Whether a request for done + 1 waits for its reply.
    asked: bool,
    /// Whether this side was the responder of exchange `done`.
    answered: bool,
}

// The vectors of an edge; "mine" and "theirs" say whose model a vector is about.
const Z_MINE: usize = 0;
const Z_THEIRS: usize = 1;
const Y_MINE: usize = 2;
const Y_THEIRS: usize = 3;
/// Th_i^i and Th_i^l as the pending request carries them.
const ASKED: usize = 4;
/// Th_i^i and Th_i^l as the last reply carried them.
const ANSWERED: usize = 6;
const ROWS: usize = 8;

#[derive(Clone, Debug)]
enum Solver {
    Exact(Proximal),
    Gradient { steps: usize, step: f64 },
    Subgradient { steps: usize, strong_convexity: f64 },
}

impl State {
    /// Y_e^i and Y_e^l of the edge at position `k`: about the agent's own model, and about the neighbour's. For tests that
    /// they are paired.
    pub fn multipliers(&self, k: usize) -> (&[f64], &[f64]) {
        (self.vectors.row(k * ROWS + Y_MINE), self.vectors.row(k * ROWS + Y_THEIRS))
    }

    /// The number of the last exchange taken on the edge at position `k`.
    pub fn exchanges(&self, k: usize) -> u64 {
        self.edges[k].done
    }

    /// Two vectors that lie side by side.
    fn pair(&self, k: usize, first: usize) -> &[f64] {
        let p = self.model.len();
        &self.vectors.values()[(k * ROWS + first) * p..][..2 * p]
    }

    /// Takes the neighbour's solitary model as its first.
    fn open(&mut self, k: usize, theirs: Numbers<'_>) -> Result<(), Reject> {
        theirs.copy_to(self.vectors.row_mut(k * ROWS + Z_THEIRS))?;
        self.edges[k].open = true;
        Ok(())
    }

    /// Steps 2 and 3 on the edge at `k`, with what was sent, kept in the two rows from `sent`, and what came.
    fn settle(&mut self, k: usize, sent: usize, received: Numbers<'_>, penalty: f64) {
        let p = self.model.len();
        let (auxiliary, rest) = self.vectors.values_mut()[k * ROWS * p..][..ROWS * p].split_at_mut(2 * p);
        let (multipliers, kept) = rest.split_at_mut(2 * p);
        let sent = &kept[(sent - ASKED) * p..][..2 * p];
        // The neighbour's vectors come in its order: its own model first, then its copy of mine.
        for (at, other) in received.iter().enumerate() {
            let k = (at + p) % (2 * p);
            // Z^m <- (Th_i^m + Th_j^m) / 2,  Y_i^m <- Y_i^m + rho/2 (Th_i^m - Th_j^m)
            auxiliary[k] = 0.5 * (sent[k] + other);
            multipliers[k] += 0.5 * penalty * (sent[k] - other);
        }
    }
}

impl Admm {
    /// The state before the first letter.
    fn at_start(&self, shard: &Shard<'_>, peers: Peers<'_>) -> State {
        let model = solitary_model(shard);
        let (degree, rho) = (peers.weighted_degree(), self.config.penalty);
        let weight = self.config.trade_off * degree * shard.confidence;
        let pull = peers.iter().map(|edge| inner_weight(edge.weight, rho) + rho).sum();
        let solver = match (self.config.inner, local_smoothness(shard)) {
            (Inner::Exact, _) => Solver::Exact(Proximal::new(shard, weight, pull)),
            (Inner::Gradient { steps }, Some(smoothness)) => {
                Solver::Gradient { steps, step: 1.0 / (weight * smoothness + pull) }
            }
            (Inner::Gradient { steps }, None) => {
                Solver::Subgradient { steps, strong_convexity: pull + 2.0 * weight * shard.regularization }
            }
        };
        let mut vectors = Rows::zeros(peers.len() * ROWS, model.len());
        for k in 0..peers.len() {
            vectors.row_mut(k * ROWS + Z_MINE).copy_from_slice(&model);
            vectors.row_mut(k * ROWS + Z_THEIRS).copy_from_slice(&model);
        }
        State {
            solitary: model.clone().into(),
            edges: vec![EdgeState::default(); peers.len()],
            vectors,
            weight,
            pull,
            solver,
            centre: vec![0.0; model.len()],
            before: model.clone(),
            model,
        }
    }

    fn send(kind: ExchangeKind, number: u64, body: &[f64], to: PeerId, cx: &mut Cx<'_>) -> Result<(), Exhausted> {
        let vectors = if number == 0 { 1 } else { 2 };
        // PRIVACY: exact models leave, visible to everyone on the way: epsilon = infinity. A repeated letter is charged
        // again.
        let letter = cx.gate.reveal(ExchangeLetter { kind, vectors, number, body: Numbers::Plain(body) })?;
        cx.outbox.send(to, letter);
        Ok(())
    }

    /// Step 1: moves the model, and leaves it and the copy of the neighbour at `k` in the two rows from `out`.
    fn primal(
        &self,
        me: &mut State,
        k: usize,
        out: usize,
        shard: &Shard<'_>,
        peers: Peers<'_>,
        scratch: &mut Vec<f64>,
    ) {
        let rho = self.config.penalty;
        let p = me.model.len();
        // The pulls of all edges are one pull towards their weighted mean: (sum_l b_l v_l + rho u_l) / sum_l (b_l + rho).
        me.centre.fill(0.0);
        for (edge, vectors) in peers.iter().zip(me.vectors.values().chunks_exact(ROWS * p)) {
            let b = inner_weight(edge.weight, rho);
            let (z, y) = (&vectors[..2 * p], &vectors[2 * p..4 * p]);
            for (at, centre) in me.centre.iter_mut().enumerate() {
                *centre += (rho * z[at] - y[at]) + (b * z[p + at] - b / rho * y[p + at]);
            }
        }
        me.centre.iter_mut().for_each(|centre| *centre /= me.pull);
        solve(&mut me.solver, me.weight, me.pull, shard, &me.centre, &mut me.model, scratch);

        // Th_i^j <- (a_j Th_i^i + rho v_j) / (a_j + rho)
        let a = 0.5 * peers.edge(k).weight;
        let vectors = &mut me.vectors.values_mut()[k * ROWS * p..][..ROWS * p];
        for at in 0..p {
            let v = vectors[Z_THEIRS * p + at] - vectors[Y_THEIRS * p + at] / rho;
            vectors[out * p + at] = me.model[at];
            vectors[(out + 1) * p + at] = (a * me.model[at] + rho * v) / (a + rho);
        }
    }

    fn on_request(
        &self,
        me: &mut State,
        shard: &Shard<'_>,
        (k, from): (usize, PeerId),
        letter: ExchangeLetter<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        let edge = me.edges[k];
        if edge.open && edge.answered && letter.number == edge.done {
            Self::send(ExchangeKind::Reply, edge.done, me.pair(k, ANSWERED), from, cx)?;
            return Ok(());
        }
        let insists = edge.asked && cx.me < from;
        if !edge.open || letter.number != edge.done + 1 || insists {
            return Err(Reject::OutOfTurn);
        }
        self.primal(me, k, ANSWERED, shard, cx.peers, cx.scratch);
        me.settle(k, ANSWERED, letter.body, self.config.penalty);
        me.edges[k] = EdgeState { done: letter.number, open: true, asked: false, answered: true };
        Self::send(ExchangeKind::Reply, letter.number, me.pair(k, ANSWERED), from, cx)?;
        Ok(())
    }
}

impl Algorithm for Admm {
    type Data<'d> = Shard<'d>;
    type State = State;
    type Letter<'a> = ExchangeLetter<'a>;

    fn post_len(&self) -> usize {
        0
    }

    fn letter_bytes_max(&self, shard: Shard<'_>) -> usize {
        shard.letter_bytes_max()
    }

    fn start(&self, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<State, Exhausted> {
        let me = self.at_start(&shard, cx.peers);
        for edge in cx.peers.iter() {
            Self::send(ExchangeKind::Hello, 0, &me.solitary, edge.peer, cx)?;
        }
        Ok(me)
    }

    fn on_wake(&self, me: &mut State, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        if cx.peers.is_empty() {
            return Ok(Activity { moved: 0.0 });
        }
        let k = cx.coin.below(cx.peers.len());
        let edge = me.edges[k];
        if edge.open && !edge.asked {
            self.primal(me, k, ASKED, &shard, cx.peers, cx.scratch);
            me.edges[k].asked = true;
        }
        let moved = largest_difference(&me.model, &me.before);
        me.before.copy_from_slice(&me.model);
        let to = cx.peers.edge(k).peer;
        if edge.open {
            Self::send(ExchangeKind::Request, edge.done + 1, me.pair(k, ASKED), to, cx)?;
        } else {
            Self::send(ExchangeKind::Request, 0, &me.solitary, to, cx)?;
        }
        Ok(Activity { moved })
    }

    fn on_letter(
        &self,
        me: &mut State,
        shard: Shard<'_>,
        from: PeerId,
        letter: ExchangeLetter<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        let k = cx.peers.position(from).ok_or(Reject::NotANeighbour)?;
        letter.expect_vectors(if letter.number == 0 { 1 } else { 2 }, me.model.len())?;
        let edge = me.edges[k];
        match (letter.kind, letter.number) {
            (ExchangeKind::Request, 0) => {
                if !edge.open {
                    me.open(k, letter.body)?;
                }
                Self::send(ExchangeKind::Reply, 0, &me.solitary, from, cx)?;
                Ok(())
            }
            (ExchangeKind::Hello | ExchangeKind::Reply, 0) if !edge.open => me.open(k, letter.body),
            (ExchangeKind::Request, _) => self.on_request(me, &shard, (k, from), letter, cx),
            (ExchangeKind::Reply, number) if edge.asked && number == edge.done + 1 => {
                // With the copy that was sent: the model may have moved since, through other edges.
                me.settle(k, ASKED, letter.body, self.config.penalty);
                me.edges[k] = EdgeState { done: number, open: true, asked: false, answered: false };
                Ok(())
            }
            _ => Err(Reject::OutOfTurn),
        }
    }

    fn save(&self, me: &State, out: &mut Vec<u8>) {
        let dual = if let Solver::Exact(proximal) = &me.solver { proximal.dual() } else { &[] };
        saved::write(&(&me.model, &me.edges, &me.vectors, &me.before, dual), out);
    }

    fn resume(
        &self,
        saved: &[u8],
        neighbours: Neighbours,
        shard: Shard<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<State, CannotResume> {
        saved::expect_same(neighbours)?;
        type Saved = (Vec<f64>, Vec<EdgeState>, Rows, Vec<f64>, Vec<f64>);
        let (model, edges, vectors, before, dual): Saved = saved::read(saved)?;
        let (p, degree) = (shard.points.dimension, cx.peers.len());
        saved::check(saved::is_vector(&model, p) && saved::is_vector(&before, p))?;
        saved::check(saved::are_vectors(&vectors, degree * ROWS, p) && edges.len() == degree)?;
        // An exchange needs an open edge, and an answer an exchange.
        let possible = |edge: &EdgeState| {
            saved::is_count(edge.done)
                && (edge.open || edge.done == 0 && !edge.asked)
                && (edge.done > 0 || !edge.answered)
        };
        saved::check(edges.iter().all(possible))?;
        let mut me = State { model, edges, vectors, before, ..self.at_start(&shard, cx.peers) };
        let fits = if let Solver::Exact(proximal) = &mut me.solver { proximal.set_dual(dual) } else { dual.is_empty() };
        saved::check(fits)?;
        Ok(me)
    }

    fn model<'a>(&self, me: &'a State, _posted: &'a [f64]) -> &'a [f64] {
        &me.model
    }
}

/// b_l = a_l rho / (a_l + rho) with a_l = W_il / 2.
fn inner_weight(weight: f64, rho: f64) -> f64 {
    let a = 0.5 * weight;
    a * rho / (a + rho)
}

/// Moves `model` towards argmin weight L_i(th) + pull/2 |th - centre|^2, as far as the solver goes.
fn solve(
    solver: &mut Solver,
    weight: f64,
    pull: f64,
    shard: &Shard<'_>,
    centre: &[f64],
    model: &mut [f64],
    scratch: &mut Vec<f64>,
) {
    let (steps, length): (usize, &dyn Fn(usize) -> f64) = match *solver {
        Solver::Exact(ref mut proximal) => return proximal.solve(shard, centre, model, scratch),
        Solver::Gradient { steps, step } => (steps, &move |_| step),
        Solver::Subgradient { steps, strong_convexity } => (steps, &move |k| 1.0 / (strong_convexity * k as f64)),
    };
    scratch.clear();
    scratch.resize(model.len(), 0.0);
    for k in 1..=steps {
        local_gradient(shard, model, scratch);
        let length = length(k);
        for ((model, gradient), centre) in model.iter_mut().zip(&*scratch).zip(centre) {
            *model -= length * (weight * gradient + pull * (*model - centre));
        }
    }
}

#[cfg(test)]
mod tests;
