//! Private coordinate descent for neighbours that come and go: the model part of learning models and graph together, privately
//! (thesis, section 2.4.3).
//!
//! A step is that of [`super::private_coordinate_descent`], and models travel in letters as in [`super::descent_by_letters`]. What is
//! new is the loss, which the graph part needs: at its first event in a turn of the graph, an agent releases
//!
//! F~_i = (1/m_i) sum_k min(l(Theta_i; x_k, y_k), B) + eta
//!
//! at the model that everyone knows, once. It stands until the turn is over, whoever asks, and in between c_i (F~_i + lambda_i |Theta_i|^2)
//! is the agent's cost. The first graph of all is learned before any loss is known; costs are zero then.
//!
//! | turn | releases of an agent with data |
//! |---|---|
//! | start | its first model, with a warm start; else it is zero |
//! | models | at each wake an update, up to the share of T_i updates that the turns so far have |
//! | graph, but for the first | its loss, once |
//!
//! # Privacy
//! One record replaced by another, against anyone who sees every message. Updates are the steps of the agent's plan, losses its
//! asides. A cut loss lies in [0, B], so replacing a record moves their mean by at most B / m_i. Models, costs, weights and degrees in letters are functions of what was
//! released, of public values and of others' letters; and neither whom an agent asks, nor when it speaks, reads a record.
//! Proof: `crates/privacy/proofs/private-graph.md`.
//!
//! Differs from the paper: losses are cut at B, because those of linear models have no bound; a noisy one is brought back to [0, B]. The
//! thesis starts from a graph of purely local models, which is not private; here the first graph is one of models that are all
//! zero, or that were released. An agent without data follows its neighbours at every wake of the models' turns.

use super::copies::Copies;
use super::descent_by_letters::Letter;
use super::private_coordinate_descent::{Own, PrivateCoordinateDescent};
use super::private_step::{Terms, combine};
use crate::config::{ConfigError, moderate};
use crate::kernel;
use crate::personal::graph::{Learner, Origin, Placed, Standing, Turn};
use crate::reference::propagation::neighbours_share;
use crate::vector::{dot, largest_difference, norm};
use crate::{Shard, saved};
use sottovoce_core::{Activity, CannotResume, Cx, PeerId, Peers, Reject, wire::Numbers};
use sottovoce_privacy::{Exhausted, Public, Released, sensitivity};

/// The hyper-parameters besides those of [`PrivateCoordinateDescent`], before they are checked. All of them are public.
///
/// | name | symbol | range | default |
/// |---|---|---|---|
/// | loss-bound | B | above 0, at most 1e100 | twice the loss of a model of zeros |
/// | updates | T_i | | 1 |
/// | model-turns | | 1 and above | those that begin during the run |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrivateDescentByLettersConfig {
    /// B; without one no loss is ever released, and costs are zero.
    pub loss_bound: Option<f64>,
    /// T_i, over the whole run. The plan has as many, too.
    pub updates: u64,
    /// Turns of the models that share the updates.
    pub model_turns: u64,
}

/// The hyper-parameters, the same for all agents.
#[derive(Clone, Copy, Debug)]
pub struct PrivateDescentByLetters {
    descent: PrivateCoordinateDescent,
    config: PrivateDescentByLettersConfig,
}

impl PrivateDescentByLetters {
    /// Checks the hyper-parameters; those of the descent have been checked.
    pub fn new(descent: PrivateCoordinateDescent, config: PrivateDescentByLettersConfig) -> Result<Self, ConfigError> {
        config.loss_bound.map_or(Ok(1.0), |bound| moderate("loss-bound", bound))?;
        if config.model_turns == 0 {
            let value = "0".to_owned();
            return Err(ConfigError { field: "model-turns", value, accepted: "at least one turn of the models" });
        }
        Ok(PrivateDescentByLetters { descent, config })
    }

    /// How many updates an agent has made at most when this turn of the models is over: ceil(T (turn + 1) / turns).
    fn quota(&self, turn: u64) -> u64 {
        let PrivateDescentByLettersConfig { updates, model_turns, .. } = self.config;
        let share = u128::from(updates) * u128::from(turn.saturating_add(1).min(model_turns));
        share.div_ceil(u128::from(model_turns)) as u64
    }
}

/// What an agent remembers.
#[derive(Clone, Debug)]
pub struct State {
    own: Own,
    /// What everyone knows, or would if it were asked.
    model: Released<Vec<f64>>,
    /// Memory for the next one.
    spare: Vec<f64>,
    version: u64,
    neighbours: Copies,
    /// theta~_i and the wakes of propagation that are left.
    warm: Option<(Released<Box<[f64]>>, u32)>,
    updates: u64,
    /// The updates that the turns so far have. Told before every step.
    quota: u64,
    /// c_i (F~_i + lambda_i |Theta_i|^2), and the turn of the graph that it was released in; zero before any.
    cost: Released<f64>,
    told: u64,
}

impl State {
    /// The neighbours, the weights of the edges to them, and their models where they have been heard.
    pub fn neighbours(&self) -> impl Iterator<Item = (PeerId, f64, Option<&[f64]>)> {
        self.neighbours.iter().map(|neighbour| (neighbour.peer, neighbour.weight, neighbour.model()))
    }

    fn letter(&self) -> Released<Letter<'_>> {
        // PRIVACY: how many steps it has taken follows from the clock.
        self.model.as_ref().with_public(Public::declare(self.version), |version, model| Letter::Model {
            version,
            model: Numbers::Plain(model),
        })
    }
}

impl Learner for PrivateDescentByLetters {
    type State = State;
    type Letter<'a> = Letter<'a>;
    const ORIGIN: Origin = Origin::Released;

    /// With a model of zeros, which is nobody's secret.
    fn enter(&self, shard: Shard<'_>) -> State {
        State {
            own: self.descent.own(shard),
            model: Released::from(Public::declare(vec![0.0; shard.points.dimension])),
            spare: Vec::new(),
            version: 0,
            neighbours: Copies::default(),
            warm: None,
            updates: 0,
            quota: 0,
            cost: Released::from(Public::declare(0.0)),
            told: 0,
        }
    }

    fn begin(&self, me: &mut State, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<(), Exhausted> {
        let Some(warm) = self.descent.config().warm.filter(|_| !cx.peers.is_empty()) else { return Ok(()) };
        let first = self.descent.first_model(warm, &me.own, shard, cx)?;
        me.model = first.as_ref().map(|first| first.to_vec());
        me.warm = Some((first, warm.wakes));
        Ok(())
    }

    fn turn(&self, me: &mut State, shard: Shard<'_>, turn: Turn, cx: &mut Cx<'_>) -> Result<(), Exhausted> {
        match turn {
            Turn::Models(turn) => me.quota = self.quota(turn),
            Turn::Graph(turn) if turn > me.told => {
                let bound = self.config.loss_bound.filter(|_| !shard.points.is_empty());
                if let (Some(bound), Some(_)) = (bound, cx.gate.next_aside()) {
                    me.cost = release_loss(me, shard, bound, cx)?;
                }
                me.told = turn;
            }
            Turn::Graph(_) => {}
        }
        Ok(())
    }

    fn learn(&self, me: &mut State, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        for neighbour in me.neighbours.iter().filter(|neighbour| neighbour.model().is_none()) {
            send(neighbour.peer, cx);
        }
        let p = shard.points.dimension;
        cx.scratch.clear();
        cx.scratch.resize(2 * p, 0.0);
        let (model, gradient) = cx.scratch.split_at_mut(p);
        let theta = me.model.as_ref().into_inner().as_slice();
        let degree = me.neighbours.degree();
        // Without a neighbour its own model stands in for theirs.
        let (keep, follow) = if degree > 0.0 { (0.0, 1.0 / degree) } else { (1.0, 0.0) };
        // PRIVACY: the models, own and others', have been released; weights and degrees follow from letters about the graph, and mu,
        // c_i, lambda_i and alpha_i from the task and m_i.
        let terms = Terms { theta, pulls: &me.neighbours, factors: [0.0; 3], model };
        let new = if let Some((warm, left)) = me.warm.as_mut().filter(|(_, left)| *left > 0) {
            // Theta_i <- share sum_j W_ij/D_ii Theta_j + (1 - share) theta~_i
            let trade_off = self.descent.config().warm.map_or(1.0, |warm| warm.trade_off);
            let share = neighbours_share(trade_off, shard.confidence);
            *left -= 1;
            let factors = [share * keep, share * follow, share - 1.0];
            warm.as_ref().with_public(
                Public::declare((Terms { factors, ..terms }, gradient)),
                |(terms, buffer), warm| {
                    buffer.copy_from_slice(warm);
                    combine(terms, buffer)
                },
            )
        } else if shard.points.is_empty() {
            // Theta_i <- sum_j W_ij/D_ii Theta_j: nothing private in it.
            let factors = [keep, follow, 0.0];
            Released::from(Public::declare(combine(Terms { factors, ..terms }, gradient)))
        } else if me.updates < me.quota && cx.gate.next().is_some() {
            let noisy = self.descent.release_gradient(&me.own, shard, theta, gradient, cx.gate)?;
            me.updates += 1;
            let (alpha, weight) = (me.own.alpha, self.descent.config().trade_off * shard.confidence);
            // theta_i <- (1 - alpha) theta_i + alpha (sum_j W_ij/D_ii theta_j - mu c_i (g + 2 lambda theta_i))  [2018, eq. 6]
            let keep = 1.0 - alpha + alpha * keep - 2.0 * alpha * weight * shard.regularization;
            let factors = [keep, alpha * follow, alpha * weight];
            noisy.with_public(Public::declare(Terms { factors, ..terms }), combine)
        } else {
            return Ok(Activity { moved: 0.0 });
        };
        let moved = largest_difference(new.as_ref().into_inner(), theta);
        let new = new.with_public(Public::declare(std::mem::take(&mut me.spare)), |mut spare, model| {
            spare.clear();
            spare.extend_from_slice(model);
            spare
        });
        me.spare = std::mem::replace(&mut me.model, new).into_inner();
        me.version += 1;
        let letter = me.letter();
        me.neighbours.iter().for_each(|neighbour| cx.outbox.send(neighbour.peer, letter));
        Ok(Activity { moved })
    }

    fn hear(&self, me: &mut State, from: PeerId, letter: Letter<'_>, cx: &mut Cx<'_>) -> Result<(), Reject> {
        me.neighbours.expect(from)?;
        match letter {
            Letter::Ask => {
                cx.outbox.send(from, me.letter());
                Ok(())
            }
            Letter::Model { version, model } => me.neighbours.keep(from, version, model),
        }
    }

    fn relink(&self, me: &mut State, peer: PeerId, weight: f64, cx: &mut Cx<'_>) -> Result<(), Exhausted> {
        if me.neighbours.relink(peer, weight, self.descent.config().dimension) {
            send(peer, cx);
        }
        Ok(())
    }

    fn cost(&self, me: &mut State, _shard: Shard<'_>) -> f64 {
        me.cost.into_inner()
    }

    fn standing<'a>(&self, me: &'a mut State, _shard: Shard<'_>) -> Standing<'a> {
        let placed = me.model.as_ref().and(me.cost).map(|(model, cost)| Placed { model, cost });
        Standing::Released(placed)
    }

    fn save(&self, me: &State, out: &mut Vec<u8>) {
        let warm = me.warm.as_ref().map(|(warm, left)| (warm.as_ref().into_inner(), *left));
        let (model, cost) = (me.model.as_ref().into_inner(), me.cost.into_inner());
        saved::write(&(model, me.version, &me.neighbours, warm, me.updates, cost, me.told), out);
    }

    fn resume(&self, saved: &[u8], shard: Shard<'_>, peers: Peers<'_>) -> Result<State, CannotResume> {
        type Warm = Option<(Box<[f64]>, u32)>;
        type Saved = (Vec<f64>, u64, Copies, Warm, u64, f64, u64);
        let (model, version, neighbours, warm, updates, cost, told): Saved = saved::read(saved)?;
        let config = self.descent.config();
        saved::check(saved::is_vector(&model, config.dimension))?;
        saved::check([version, updates, told].into_iter().all(saved::is_count) && cost >= 0.0 && cost.is_finite())?;
        neighbours.check(config.dimension, peers)?;
        let expected = config.warm.filter(|_| !peers.is_empty());
        saved::check(expected.is_some() == warm.is_some())?;
        if let (Some((model, left)), Some(config)) = (&warm, expected) {
            let inside = saved::is_vector(model, shard.points.dimension) && norm(model) <= config.radius * (1.0 + 1e-9);
            saved::check(inside && *left <= config.wakes)?;
        }
        // PRIVACY: model, cost and warm start were released before they were saved; nothing of them has been computed since.
        let (model, cost, warm) = (
            Released::from(Public::declare(model)),
            Released::from(Public::declare(cost)),
            warm.map(|(model, left)| (Released::from(Public::declare(model)), left)),
        );
        let (own, spare) = (self.descent.own(shard), Vec::new());
        Ok(State { own, model, spare, version, neighbours, warm, updates, quota: 0, cost, told })
    }

    fn model<'a>(&self, me: &'a State) -> &'a [f64] {
        me.model.as_ref().into_inner()
    }
}

/// c_i (F~_i + lambda_i |Theta_i|^2), by the plan's next aside.
fn release_loss(me: &State, shard: Shard<'_>, bound: f64, cx: &mut Cx<'_>) -> Result<Released<f64>, Exhausted> {
    let theta = me.model.as_ref().into_inner();
    let mended = me.own.mend(shard);
    let mut centred = [mean_centred_loss(mended, bound, theta)];
    // PRIVACY: a mean of m_i numbers in [-B/2, B/2], at a model that was released. Replacing one record moves it by at most
    // B / m_i, with what rounding adds: `sensitivity::of_clipped_mean`. Charged, then noised, by the plan's next aside.
    let noisy = cx.gate.release_aside(&mut centred, sensitivity::of_clipped_mean(0.5 * bound, shard.points.len()))?;
    // PRIVACY: bound, confidence and regularization follow from the task and m_i; the model was released.
    let public = Public::declare((bound, shard.confidence, shard.regularization * dot(theta, theta)));
    Ok(noisy.with_public(public, |(bound, confidence, penalty), noisy| {
        let loss = (noisy[0] + 0.5 * bound).clamp(0.0, bound);
        confidence * (loss + penalty)
    }))
}

/// (1/m) sum_k min(l(theta.x_k, y_k), B) - B/2. A loss that is no number counts as B.
pub(super) fn mean_centred_loss(shard: Shard<'_>, bound: f64, theta: &[f64]) -> f64 {
    let half = 0.5 * bound;
    let one = |(x, y): (&[f64], f64)| {
        let loss = shard.loss.value(kernel::dot(theta, x), y);
        let cut = if loss <= bound { loss } else { bound };
        cut - half
    };
    shard.points.iter().map(one).sum::<f64>() / shard.points.len() as f64
}

/// Asks for a neighbour's model.
fn send(to: PeerId, cx: &mut Cx<'_>) {
    // PRIVACY: a question without content. Whom it goes to follows from letters.
    cx.outbox.send(to, Released::from(Public::declare(Letter::Ask)));
}
