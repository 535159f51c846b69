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

use super::Descent;
use super::exact::{self, ExactDescent};
use super::letter::ModelLetter;
use super::noise::{self, PrivateDescent};
use crate::config::{ConfigError, moderate};
use crate::objective::local_value;
use crate::personal::graph::{Origin, Placed, Standing, Turn};
use crate::reference::local::solitary_model;
use crate::vector::dot;
use crate::{Shard, kernel, saved};
use serde::{Serialize, de::DeserializeOwned};
use sottovoce_core::CannotResume;
use sottovoce_privacy::{Exhausted, Gate, Public, Released, sensitivity};

/// A descent whose agents talk by letters, and what of them others may know.
pub trait Disclosure: Sync {
    /// What an agent's steps need.
    type Block: Send;
    /// How models move.
    type Descent: Descent<Block = Self::Block>;
    /// An agent's model and cost, as others may know them.
    type Disclosed: Disclosed;
    /// What an agent must find again besides its model and what the descent saves.
    type Saved: Serialize + DeserializeOwned;

    /// How models move.
    fn descent(&self) -> &Self::Descent;

    /// The agent enters, without neighbours and with a model from its own data alone.
    fn enter(&self, shard: Shard<'_>) -> (Self::Block, Self::Disclosed);

    /// Whose turn it is.
    fn turn(
        &self,
        block: &mut Self::Block,
        disclosed: &mut Self::Disclosed,
        shard: Shard<'_>,
        turn: Turn,
        gate: &mut Gate,
    ) -> Result<(), Exhausted>;

    /// What must be found again.
    fn save(&self, block: &Self::Block, disclosed: &Self::Disclosed) -> Self::Saved;

    /// Makes it again.
    fn resume(
        &self,
        saved: Self::Saved,
        model: Box<[f64]>,
        block: &mut Self::Block,
    ) -> Result<Self::Disclosed, CannotResume>;
}

/// An agent's model and cost, as others may know them.
pub trait Disclosed: Send {
    /// What the agent's part in the graph comes from.
    const ORIGIN: Origin;

    /// The model.
    fn model(&self) -> &[f64];

    /// Another model from now on.
    fn become_model(&mut self, model: Released<&[f64]>);

    /// The model, for others.
    fn tell(&self, gate: &mut Gate) -> Result<Released<&[f64]>, Exhausted>;

    /// A question for a neighbour's model.
    fn ask(gate: &mut Gate) -> Result<Released<ModelLetter<'static>>, Exhausted>;

    /// What the graph part may know.
    fn standing(&mut self, shard: Shard<'_>) -> Standing<'_>;
}

/// Exact values, revealed whenever they are told.
#[derive(Clone, Debug)]
pub struct Plain {
    model: Box<[f64]>,
    /// c_i L_i at the model, once it is known.
    cost: Option<f64>,
}

impl Disclosure for ExactDescent {
    type Block = exact::Block;
    type Descent = ExactDescent;
    type Disclosed = Plain;
    type Saved = ();

    fn descent(&self) -> &ExactDescent {
        self
    }

    fn enter(&self, shard: Shard<'_>) -> (exact::Block, Plain) {
        (self.block(shard), Plain { model: solitary_model(&shard).into(), cost: None })
    }

    fn turn(
        &self,
        _block: &mut exact::Block,
        _disclosed: &mut Plain,
        _shard: Shard<'_>,
        _turn: Turn,
        _gate: &mut Gate,
    ) -> Result<(), Exhausted> {
        Ok(())
    }

    fn save(&self, _block: &exact::Block, _disclosed: &Plain) {}

    fn resume(&self, (): (), model: Box<[f64]>, _block: &mut exact::Block) -> Result<Plain, CannotResume> {
        Ok(Plain { model, cost: None })
    }
}

impl Disclosed for Plain {
    const ORIGIN: Origin = Origin::Exact;

    fn model(&self) -> &[f64] {
        &self.model
    }

    fn become_model(&mut self, model: Released<&[f64]>) {
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

/// Private descent whose updates and losses follow the turns of models and graph.
#[derive(Clone, Copy, Debug)]
pub struct InTurns {
    descent: PrivateDescent,
    config: PrivateDescentByLettersConfig,
}

impl InTurns {
    /// Checks the hyper-parameters; those of the descent have been checked.
    pub fn new(descent: PrivateDescent, config: PrivateDescentByLettersConfig) -> Result<Self, ConfigError> {
        config.loss_bound.map_or(Ok(1.0), |bound| moderate("loss-bound", bound))?;
        if config.model_turns == 0 {
            let value = "0".to_owned();
            return Err(ConfigError { field: "model-turns", value, accepted: "at least one turn of the models" });
        }
        Ok(InTurns { descent, config })
    }

    /// How many updates an agent has made at most when this turn of the models is over: ceil(T (turn + 1) / turns).
    fn quota(&self, turn: u64) -> u64 {
        let PrivateDescentByLettersConfig { updates, model_turns, .. } = self.config;
        let share = u128::from(updates) * u128::from(turn.saturating_add(1).min(model_turns));
        share.div_ceil(u128::from(model_turns)) as u64
    }
}

/// What everyone knows, or would if it were asked.
#[derive(Clone, Debug)]
pub struct Paid {
    model: Released<Box<[f64]>>,
    /// Memory for the next one.
    spare: Box<[f64]>,
    /// c_i (F~_i + lambda_i |Theta_i|^2), and the turn of the graph that it was released in; zero before any.
    cost: Released<f64>,
    told: u64,
}

impl Disclosure for InTurns {
    type Block = noise::Block;
    type Descent = PrivateDescent;
    type Disclosed = Paid;
    /// Updates made, the cost, and the turn of the graph that it was released in.
    type Saved = (u64, f64, u64);

    fn descent(&self) -> &PrivateDescent {
        &self.descent
    }

    /// With a model of zeros, which is nobody's secret. Updates wait for a turn of the models.
    fn enter(&self, shard: Shard<'_>) -> (noise::Block, Paid) {
        let zeros: Box<[f64]> = vec![0.0; shard.points.dimension].into();
        let model = Released::from(Public::declare(zeros.clone()));
        let cost = Released::from(Public::declare(0.0));
        let mut block = self.descent.block(shard);
        block.quota = 0;
        (block, Paid { model, spare: zeros, cost, told: 0 })
    }

    fn turn(
        &self,
        block: &mut noise::Block,
        me: &mut Paid,
        shard: Shard<'_>,
        turn: Turn,
        gate: &mut Gate,
    ) -> Result<(), Exhausted> {
        match turn {
            Turn::Models(turn) => block.quota = self.quota(turn),
            Turn::Graph(turn) if turn > me.told => {
                let bound = self.config.loss_bound.filter(|_| !shard.points.is_empty());
                if let (Some(bound), Some(_)) = (bound, gate.next_aside()) {
                    me.cost = release_loss(block, me, shard, bound, gate)?;
                }
                me.told = turn;
            }
            Turn::Graph(_) => {}
        }
        Ok(())
    }

    fn save(&self, block: &noise::Block, me: &Paid) -> Self::Saved {
        (block.updates, me.cost.into_inner(), me.told)
    }

    fn resume(
        &self,
        (updates, cost, told): Self::Saved,
        model: Box<[f64]>,
        block: &mut noise::Block,
    ) -> Result<Paid, CannotResume> {
        saved::check([updates, told].into_iter().all(saved::is_count) && cost >= 0.0 && cost.is_finite())?;
        (block.updates, block.quota) = (updates, 0);
        let spare = model.clone();
        // PRIVACY: model and cost were released before they were saved; nothing of them has been computed since.
        let (model, cost) = (Released::from(Public::declare(model)), Released::from(Public::declare(cost)));
        Ok(Paid { model, spare, cost, told })
    }
}

impl Disclosed for Paid {
    const ORIGIN: Origin = Origin::Released;

    fn model(&self) -> &[f64] {
        self.model.as_ref().into_inner()
    }

    fn become_model(&mut self, model: Released<&[f64]>) {
        let spare = Public::declare(std::mem::take(&mut self.spare));
        let new = model.with_public(spare, |mut spare, model| {
            spare.copy_from_slice(model);
            spare
        });
        self.spare = std::mem::replace(&mut self.model, new).into_inner();
    }

    fn tell(&self, _gate: &mut Gate) -> Result<Released<&[f64]>, Exhausted> {
        Ok(self.model.as_ref().map(|model| &**model))
    }

    fn ask(_gate: &mut Gate) -> Result<Released<ModelLetter<'static>>, Exhausted> {
        // PRIVACY: a question without content. Whom it goes to follows from letters.
        Ok(Released::from(Public::declare(ModelLetter::Ask)))
    }

    fn standing(&mut self, _shard: Shard<'_>) -> Standing<'_> {
        Standing::Released(self.model.as_ref().and(self.cost).map(|(model, cost)| Placed { model, cost }))
    }
}

/// c_i (F~_i + lambda_i |Theta_i|^2), by the plan's next aside.
fn release_loss(
    block: &noise::Block,
    me: &Paid,
    shard: Shard<'_>,
    bound: f64,
    gate: &mut Gate,
) -> Result<Released<f64>, Exhausted> {
    let theta = me.model();
    let mended = block.mend(shard);
    let mut centred = [mean_centred_loss(mended, bound, theta)];
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
