//! Coordinate descent for neighbours that come and go: models travel in letters, to those who are neighbours at the time: after
//! a step to all of them, and to whoever asks. An agent asks when an edge appears, and at each wake until a model has come.
//!
//! The highest version is kept, so a letter that is lost, doubled or overtaken costs no more than itself.
//!
//! Differs from posts: the model is held by the agent and not by the driver, and each neighbour holds a copy. The update is the same.

use super::Descent;
use super::PrivateCoordinateDescent;
use super::disclosure::{Disclosed, InTurns, PrivateDescentByLettersConfig};
use super::exact::{BlockStep, ExactDescent, Start};
use super::letter::ModelLetter;
use super::neighbours::{Copied, Copies};
use super::noise::PrivateDescent;
use super::update::{Stepped, View};
use crate::config::ConfigError;
use crate::personal::graph::{Learner, Origin, Standing, Turn};
use crate::{Loss, Shard, saved};
use sottovoce_core::{Activity, CannotResume, Cx, Neighbours, PeerId, Peers, Reject};
use sottovoce_privacy::Exhausted;

/// The hyper-parameters, the same for all agents.
#[derive(Clone, Copy, Debug)]
pub struct ByLetters<D>(D);

impl ByLetters<ExactDescent> {
    /// Checks the hyper-parameters: a smooth loss, and mu.
    pub fn new(loss: Loss, trade_off: f64) -> Result<Self, ConfigError> {
        let instead = "a smooth loss (logistic, squared or smoothed-hinge)";
        ExactDescent::new(loss, trade_off, Start::Zero, instead).map(ByLetters)
    }

    /// The same with another kind of step.
    pub fn with_step(self, step: BlockStep) -> Self {
        ByLetters(self.0.with_step(step))
    }
}

impl ByLetters<PrivateDescent> {
    /// Checks the hyper-parameters; those of the descent have been checked.
    pub fn new(descent: PrivateCoordinateDescent, config: PrivateDescentByLettersConfig) -> Result<Self, ConfigError> {
        Ok(ByLetters(descent.into_descent().in_turns(InTurns::new(config)?)))
    }
}

/// What an agent remembers.
#[derive(Clone, Debug)]
pub struct State<B, M> {
    /// What its steps need.
    block: B,
    /// Its model, and what others may know of it.
    disclosed: M,
    version: u64,
    neighbours: Copies,
}

/// The state of an agent of this descent.
type StateOf<D> = State<<D as Descent>::Block, <D as Descent>::Disclosed>;

impl<B, M> State<B, M> {
    /// The neighbours, the weights of the edges to them, and their models where they have been heard.
    pub fn neighbours(&self) -> impl Iterator<Item = (PeerId, f64, Option<&[f64]>)> {
        self.neighbours.iter().map(|neighbour| (neighbour.peer, neighbour.weight, neighbour.model()))
    }
}

impl<D: Descent> Learner for ByLetters<D> {
    type State = StateOf<D>;
    type Letter<'a> = ModelLetter<'a>;
    const ORIGIN: Origin = D::Disclosed::ORIGIN;

    fn enter(&self, shard: Shard<'_>) -> StateOf<D> {
        let (block, disclosed) = (self.0.block(shard), self.0.disclosed(shard));
        State { block, disclosed, version: 0, neighbours: Copies::default() }
    }

    fn begin(&self, me: &mut StateOf<D>, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<(), Exhausted> {
        if cx.peers.is_empty() {
            return Ok(());
        }
        if let Some(first) = self.0.first(&mut me.block, shard, cx.gate)? {
            me.disclosed.become_model(first.as_ref().map(|first| &**first), false);
        }
        Ok(())
    }

    fn turn(&self, me: &mut StateOf<D>, shard: Shard<'_>, turn: Turn, cx: &mut Cx<'_>) -> Result<(), Exhausted> {
        self.0.turn(&me.block, &mut me.disclosed, shard, turn, cx.gate)
    }

    fn learn(&self, me: &mut StateOf<D>, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        for neighbour in me.neighbours.iter().filter(|neighbour| neighbour.model().is_none()) {
            cx.outbox.send(neighbour.peer, D::Disclosed::ask(cx.gate)?);
        }
        let view = View::new(me.disclosed.model(), Copied::new(&me.neighbours), cx.scratch);
        let view = View { may_update: me.disclosed.may_update(), ..view };
        let Some(Stepped { model, moved, is_update }) = self.0.step(&mut me.block, shard, view, cx.gate)? else {
            return Ok(Activity { moved: 0.0 });
        };
        me.version += 1;
        let letter = ModelLetter::of(model, me.version);
        me.neighbours.iter().for_each(|neighbour| cx.outbox.send(neighbour.peer, letter));
        me.disclosed.become_model(model, is_update);
        Ok(Activity { moved })
    }

    fn hear(&self, me: &mut StateOf<D>, from: PeerId, letter: ModelLetter<'_>, cx: &mut Cx<'_>) -> Result<(), Reject> {
        me.neighbours.expect(from)?;
        match letter {
            ModelLetter::Ask => {
                cx.outbox.send(from, ModelLetter::of(me.disclosed.tell(cx.gate)?, me.version));
                Ok(())
            }
            ModelLetter::Model { version, model } => me.neighbours.keep(from, version, model),
        }
    }

    fn relink(&self, me: &mut StateOf<D>, peer: PeerId, weight: f64, cx: &mut Cx<'_>) -> Result<(), Exhausted> {
        if me.neighbours.relink(peer, weight, me.disclosed.model().len()) {
            cx.outbox.send(peer, D::Disclosed::ask(cx.gate)?);
        }
        Ok(())
    }

    fn cost(&self, me: &mut StateOf<D>, shard: Shard<'_>) -> f64 {
        match me.disclosed.standing(shard) {
            Standing::Exact(placed) => placed.cost,
            Standing::Released(placed) => placed.into_inner().cost,
        }
    }

    fn standing<'a>(&self, me: &'a mut StateOf<D>, shard: Shard<'_>) -> Standing<'a> {
        me.disclosed.standing(shard)
    }

    fn save(&self, me: &StateOf<D>, out: &mut Vec<u8>) {
        let (block, disclosed) = (self.0.save(&me.block), me.disclosed.save());
        saved::write(&(me.disclosed.model(), me.version, &me.neighbours, block, disclosed), out);
    }

    fn resume(&self, saved: &[u8], shard: Shard<'_>, peers: Peers<'_>) -> Result<StateOf<D>, CannotResume> {
        type Saved<D> =
            (Box<[f64]>, u64, Copies, <D as Descent>::Saved, <<D as Descent>::Disclosed as Disclosed>::Saved);
        let (model, version, neighbours, block, disclosed): Saved<D> = saved::read(saved)?;
        let p = shard.points.dimension;
        saved::check(saved::is_vector(&model, p) && saved::is_count(version))?;
        neighbours.check(p, peers)?;
        let block = self.0.resume(block, shard, peers, Neighbours::Same)?;
        Ok(State { block, disclosed: Disclosed::resume(disclosed, model)?, version, neighbours })
    }

    fn model<'a>(&self, me: &'a StateOf<D>) -> &'a [f64] {
        me.disclosed.model()
    }
}

#[cfg(test)]
mod tests;
