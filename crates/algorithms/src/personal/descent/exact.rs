//! Exact descent: gradients as they are (Bellet et al. 2018, equation 4), so that every model that leaves costs epsilon = infinity.
//!
//! alpha_i = 1 / (1 + mu c_i L_i^loc), with L_i^loc measured on the agent's own data.
//!
//! Differs from the paper: [`BlockStep::Newton`] is not in it: where many features go together a gradient step hardly moves, and a
//! letter costs more than solving a system. Both have the same minimum, and neither raises the objective.

use super::Descent;
use super::disclosure::Plain;
use super::neighbours::NeighbourModels;
use super::update::{Stepped, Terms, View, alpha, descend, equation_4};
use crate::config::{ConfigError, positive};
use crate::objective::local_smoothness;
use crate::reference::local::{Proximal, solitary_model};
use crate::vector::{add_scaled, largest_difference};
use crate::{Loss, Shard};
use sottovoce_core::{CannotResume, Neighbours, Peers};
use sottovoce_privacy::{Exhausted, Gate, Released};

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

/// Where models begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// At the agents' purely local models, which each agent posts when it enters.
    Local,
    /// At zero, which everyone knows: nothing is sent.
    Zero,
}

/// What an agent does at a wake to its block of the objective, 1/2 |theta_i - sum_j W_ij/D_ii theta_j|^2 + mu c_i L_i(theta_i).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockStep {
    /// A gradient step with the block's own step size alpha_i [2018, eq. 4].
    Gradient,
    /// A Newton step, shorter where that is needed to descend. Costs a system of equations in p unknowns.
    Newton,
}

/// Gradients as they are.
#[derive(Clone, Copy, Debug)]
pub struct ExactDescent {
    trade_off: f64,
    start: Start,
    step: BlockStep,
}

impl ExactDescent {
    /// Checks the hyper-parameters. `instead` names what takes a loss that is not smooth.
    pub fn new(loss: Loss, trade_off: f64, start: Start, instead: &'static str) -> Result<Self, ConfigError> {
        if loss.smoothness().is_none() {
            return Err(ConfigError { field: "loss", value: "hinge".to_owned(), accepted: instead });
        }
        Ok(ExactDescent { trade_off: positive("trade-off", trade_off)?, start, step: BlockStep::Gradient })
    }

    /// The same with another kind of step.
    pub fn with_step(self, step: BlockStep) -> Self {
        ExactDescent { step, ..self }
    }
}

/// What a step needs, from the agent's own data.
#[derive(Clone, Debug)]
pub enum Block {
    /// alpha_i in (0, 1].
    Gradient(f64),
    /// The agent's block for any place of its neighbours.
    Newton(Box<Proximal>),
}

impl Descent for ExactDescent {
    type Block = Block;
    type Saved = ();
    type Disclosed = Plain;

    fn block(&self, shard: Shard<'_>) -> Block {
        let weight = self.trade_off * shard.confidence;
        match self.step {
            BlockStep::Gradient => {
                let smoothness = local_smoothness(&shard).expect("a smooth loss, which `new` has checked");
                Block::Gradient(alpha(weight, smoothness))
            }
            BlockStep::Newton => Block::Newton(Box::new(Proximal::new(&shard, weight, 1.0))),
        }
    }

    fn disclosed(&self, shard: Shard<'_>) -> Plain {
        Plain::new(solitary_model(&shard).into())
    }

    fn starts_at_zero(&self) -> bool {
        self.start == Start::Zero
    }

    fn first(
        &self,
        _block: &mut Block,
        shard: Shard<'_>,
        gate: &mut Gate,
    ) -> Result<Option<Released<Box<[f64]>>>, Exhausted> {
        match self.start {
            // PRIVACY: the exact local model, to everyone: epsilon = infinity.
            Start::Local => gate.reveal(solitary_model(&shard).into()).map(Some),
            Start::Zero => Ok(None),
        }
    }

    #[inline]
    fn step<'m, N: NeighbourModels>(
        &self,
        block: &mut Block,
        shard: Shard<'_>,
        view: View<'_, 'm, N>,
        gate: &mut Gate,
    ) -> Result<Option<Stepped<'m>>, Exhausted> {
        let View { theta, neighbours, model, gradient, .. } = view;
        if neighbours.count() == 0 {
            return Ok(None);
        }
        let moved = match block {
            Block::Gradient(alpha) => {
                let (alpha, weight) = (*alpha, self.trade_off * shard.confidence);
                let pull = neighbours.mean(alpha);
                let factors = equation_4(alpha, weight, shard.regularization, pull, shard.points.len());
                descend(Terms { theta, neighbours, factors, model: &mut *model }, shard, gradient)
            }
            Block::Newton(block) => {
                let mean = gradient;
                for (weight, row) in (0..neighbours.count()).map(|k| neighbours.row(k, theta)) {
                    add_scaled(mean, neighbours.mean(weight).each, row);
                }
                model.copy_from_slice(theta);
                // A system of equations dwarfs the memory that it is written into.
                block.step(&shard, mean, model, &mut Vec::new());
                largest_difference(model, theta)
            }
        };
        // PRIVACY: the exact model, to everyone: epsilon = infinity.
        Ok(Some(Stepped { model: gate.reveal(&*model)?, moved, is_update: true }))
    }

    fn save(&self, _block: &Block) {}

    fn resume(&self, (): (), shard: Shard<'_>, _peers: Peers<'_>, _: Neighbours) -> Result<Block, CannotResume> {
        Ok(self.block(shard))
    }
}
