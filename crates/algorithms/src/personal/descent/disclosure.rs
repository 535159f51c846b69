//! What others may know of an agent that talks by letters: its model, and, where the graph is learned, its loss (thesis, section 2.4.3).
//!
//! Exact values are revealed whenever they are told. Released ones have been paid for: an agent's model is what its updates released, and
//! of its loss it releases, at its first event in a turn of the graph,
//!
//! F~_i = (1/m_i) sum_k min(l(Theta_i; x_k, y_k), B) + eta
//!
//! at the model that everyone knows, once. It stands until the turn is over, whoever asks, and in between c_i (F~_i + lambda_i |Theta_i|^2)
//! is the agent's cost. The first graph of all is learned before any loss is known; costs are zero then.
//!
//! | turn | releases of a private agent with data |
//! |---|---|
//! | start | its first model, with a warm start; else it is zero |
//! | models | at each wake an update, up to the share of T_i updates that the turns so far have |
//! | graph, but for the first | its loss, once |
//!
//! # Privacy
//! One record replaced by another, against anyone who sees every message. Updates are the steps of the agent's plan, losses its
//! asides. A cut loss lies in [0, B], so replacing a record moves their mean by at most B / m_i. Models, costs, weights and degrees
//! in letters are functions of what was released, of public values and of others' letters; and neither whom an agent asks, nor when it
//! speaks, reads a record. Proof: `crates/privacy/proofs/private-graph.md`.
//!
//! Differs from the paper: losses are cut at B, because those of linear models have no bound; a noisy one is brought back to [0, B]. The
//! thesis starts from a graph of purely local models, which is not private; here the first graph is one of models that are all
//! zero, or that were released. An agent without data follows its neighbours at every wake of the models' turns.

use super::letter::ModelLetter;
use crate::config::{ConfigError, moderate};
use crate::objective::local_value;
use crate::personal::graph::{Origin, Placed, Standing, Turn};
use crate::vector::dot;
use crate::{Shard, kernel, saved};
use serde::{Serialize, de::DeserializeOwned};
use sottovoce_core::CannotResume;
use sottovoce_privacy::{Exhausted, Gate, Public, Released, sensitivity};

/// An agent's model and loss, as others may know them.
pub trait Disclosed: Sized + Send {
    /// What the agent's part in a graph comes from.
    const ORIGIN: Origin;
    /// What must be found again besides the model.
    type Saved: Serialize + DeserializeOwned;

    /// The model.
    fn model(&self) -> &[f64];

    /// Another model from now on.
    fn become_model(&mut self, model: Released<&[f64]>, is_update: bool);

    /// Whether the turn has an update left.
    fn may_update(&self) -> bool {
        true
    }

    /// The model, for others.
    fn tell(&self, gate: &mut Gate) -> Result<Released<&[f64]>, Exhausted>;

    /// A question for a neighbour's model.
    fn ask(gate: &mut Gate) -> Result<Released<ModelLetter<'static>>, Exhausted>;

    /// What the graph part may know.
    fn standing(&mut self, shard: Shard<'_>) -> Standing<'_>;

    /// What must be found again.
    fn save(&self) -> Self::Saved;

    /// Makes it again.
    fn resume(saved: Self::Saved, model: Box<[f64]>) -> Result<Self, CannotResume>;
}

/// Exact values, revealed whenever they are told.
#[derive(Clone, Debug)]
pub struct Plain {
    model: Box<[f64]>,
    /// c_i L_i at the model, once it is known.
    cost: Option<f64>,
}

impl Plain {
    /// With this model.
    pub fn new(model: Box<[f64]>) -> Self {
        Plain { model, cost: None }
    }
}

impl Disclosed for Plain {
    const ORIGIN: Origin = Origin::Exact;
    type Saved = ();

    fn model(&self) -> &[f64] {
        &self.model
    }

    fn become_model(&mut self, model: Released<&[f64]>, _is_update: bool) {
        self.model.copy_from_slice(model.into_inner());
        self.cost = None;
    }

    fn tell(&self, gate: &mut Gate) -> Result<Released<&[f64]>, Exhausted> {
        // PRIVACY: the exact model, to a neighbour and whoever listens: epsilon = infinity.
        gate.reveal(&*self.model)
    }

    fn ask(gate: &mut Gate) -> Result<Released<ModelLetter<'static>>, Exhausted> {
        // PRIVACY: a question without content; charged like everything that leaves.
        gate.reveal(ModelLetter::Ask)
    }

    fn standing(&mut self, shard: Shard<'_>) -> Standing<'_> {
        let model = &self.model;
        let cost = *self.cost.get_or_insert_with(|| shard.confidence * local_value(&shard, model));
        Standing::Exact(Placed { model, cost })
    }

    fn save(&self) {}

    fn resume((): (), model: Box<[f64]>) -> Result<Self, CannotResume> {
        Ok(Plain::new(model))
    }
}

/// What everyone knows, or would if it were asked.
#[derive(Clone, Debug)]
pub struct Paid {
    model: Released<Box<[f64]>>,
    updates: u64,
    /// The updates that the turns so far have. Told before every step.
    quota: u64,
    /// c_i (F~_i + lambda_i |Theta_i|^2), and the turn of the graph that it was released in; zero before any.
    cost: Released<f64>,
    told: u64,
}

impl Paid {
    /// A model of zeros, which is nobody's secret.
    pub fn zero(dimension: usize) -> Self {
        Paid { model: Released::zeros(dimension), updates: 0, quota: 0, cost: Released::constant(|| 0.0), told: 0 }
    }
}

impl Disclosed for Paid {
    const ORIGIN: Origin = Origin::Released;
    /// Updates made, the cost, and the turn of the graph that it was released in.
    type Saved = (u64, f64, u64);

    fn model(&self) -> &[f64] {
        self.model.as_ref().into_inner()
    }

    fn become_model(&mut self, model: Released<&[f64]>, is_update: bool) {
        self.model.overwrite(model);
        self.updates += u64::from(is_update);
    }

    fn may_update(&self) -> bool {
        self.updates < self.quota
    }

    fn tell(&self, _gate: &mut Gate) -> Result<Released<&[f64]>, Exhausted> {
        Ok(self.model.as_ref().map(|model| &**model))
    }

    fn ask(_gate: &mut Gate) -> Result<Released<ModelLetter<'static>>, Exhausted> {
        // PRIVACY: a question without content. Whom it goes to follows from letters.
        Ok(Released::constant(|| ModelLetter::Ask))
    }

    fn standing(&mut self, _shard: Shard<'_>) -> Standing<'_> {
        Standing::Released(self.model.as_ref().and(self.cost).map(|(model, cost)| Placed { model, cost }))
    }

    fn save(&self) -> Self::Saved {
        (self.updates, self.cost.into_inner(), self.told)
    }

    fn resume((updates, cost, told): Self::Saved, model: Box<[f64]>) -> Result<Self, CannotResume> {
        saved::check([updates, told].into_iter().all(saved::is_count) && cost >= 0.0 && cost.is_finite())?;
        // PRIVACY: model and cost were released before they were saved, and nothing of them has been computed since.
        let (model, cost) = (Released::found_again(model), Released::found_again(cost));
        Ok(Paid { model, updates, quota: 0, cost, told })
    }
}

/// The hyper-parameters besides those of [`super::PrivateCoordinateDescent`], before they are checked. All of them are public.
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

/// How updates and losses follow the turns of models and graph.
#[derive(Clone, Copy, Debug)]
pub struct InTurns {
    config: PrivateDescentByLettersConfig,
}

impl InTurns {
    /// Checks the hyper-parameters.
    pub fn new(config: PrivateDescentByLettersConfig) -> Result<Self, ConfigError> {
        config.loss_bound.map_or(Ok(1.0), |bound| moderate("loss-bound", bound))?;
        if config.model_turns == 0 {
            let value = "0".to_owned();
            return Err(ConfigError { field: "model-turns", value, accepted: "at least one turn of the models" });
        }
        Ok(InTurns { config })
    }

    /// How many updates an agent has made at most when this turn of the models is over: ceil(T (turn + 1) / turns).
    fn quota(&self, turn: u64) -> u64 {
        let PrivateDescentByLettersConfig { updates, model_turns, .. } = self.config;
        let share = u128::from(updates) * u128::from(turn.saturating_add(1).min(model_turns));
        share.div_ceil(u128::from(model_turns)) as u64
    }

    /// Whose turn it is. All features of the shard are finite.
    pub fn turn(&self, me: &mut Paid, shard: Shard<'_>, turn: Turn, gate: &mut Gate) -> Result<(), Exhausted> {
        match turn {
            Turn::Models(turn) => me.quota = self.quota(turn),
            Turn::Graph(turn) if turn > me.told => {
                let bound = self.config.loss_bound.filter(|_| !shard.points.is_empty());
                if let (Some(bound), Some(_)) = (bound, gate.next_aside()) {
                    me.cost = release_loss(me, shard, bound, gate)?;
                }
                me.told = turn;
            }
            Turn::Graph(_) => {}
        }
        Ok(())
    }
}

/// c_i (F~_i + lambda_i |Theta_i|^2), by the plan's next aside.
fn release_loss(me: &Paid, shard: Shard<'_>, bound: f64, gate: &mut Gate) -> Result<Released<f64>, Exhausted> {
    let theta = me.model();
    let mut centred = [mean_centred_loss(shard, bound, theta)];
    // PRIVACY: a mean of m_i numbers in [-B/2, B/2], at a model that was released. Replacing one record moves it by at most
    // B / m_i, with what rounding adds: `sensitivity::of_clipped_mean`. Charged, then noised, by the plan's next aside.
    let noisy = gate.release_aside(&mut centred, sensitivity::of_clipped_mean(0.5 * bound, shard.points.len()))?;
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
