//! Coordinate descent (see [`super::coordinate_descent`]) for neighbours that come and go: models travel in letters, to those
//! who are neighbours at the time.
//!
//! | letter | bytes | when |
//! |---|---|---|
//! | model | 0, version (8), the numbers (8 each) | after a step, to all neighbours; or asked for |
//! | ask | 1 | when an edge appears, and at each wake until a model has come |
//!
//! The highest version is kept, so a letter that is lost, doubled or overtaken costs no more than itself.
//!
//! Differs from [`super::coordinate_descent`]: the model is held by the agent and not by the driver, and each neighbour holds a copy. The
//! arithmetic is the same for [`Step::Gradient`]. [`Step::Newton`] is not in the papers: where many features go together a gradient step hardly
//! moves, and a letter costs more than solving a system. Both have the same minimum, and neither raises the objective.

use super::copies::Copies;
use crate::config::{ConfigError, positive};
use crate::kernel::{self, Arithmetic, Simd};
use crate::objective::{local_smoothness, local_value};
use crate::personal::graph::Learner;
use crate::reference::local::{Proximal, solitary_model};
use crate::vector::{add_scaled, largest_difference};
use crate::{Loss, Shard, saved};
use sottovoce_core::{Activity, CannotResume, Cx, PeerId, Peers, Reject, Wire, wire::Numbers};
use sottovoce_privacy::Exhausted;

/// The hyper-parameters, the same for all agents.
#[derive(Clone, Copy, Debug)]
pub struct DescentByLetters {
    trade_off: f64,
    step: Step,
}

/// What an agent does at a wake to its block of the objective, 1/2 |theta_i - sum_j W_ij/D_ii theta_j|^2 + mu c_i L_i(theta_i).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A gradient step with the block's own step size alpha_i [2018, eq. 4].
    Gradient,
    /// A Newton step, shorter where that is needed to descend. Costs a system of equations in p unknowns.
    Newton,
}

impl DescentByLetters {
    /// Checks the hyper-parameters: a smooth loss, and mu.
    pub fn new(loss: Loss, trade_off: f64) -> Result<Self, ConfigError> {
        if loss.smoothness().is_none() {
            let accepted = "a smooth loss (logistic, squared or smoothed-hinge)";
            return Err(ConfigError { field: "loss", value: "hinge".to_owned(), accepted });
        }
        Ok(DescentByLetters { trade_off: positive("trade-off", trade_off)?, step: Step::Gradient })
    }

    /// The same with another kind of step.
    pub fn with_step(self, step: Step) -> Self {
        DescentByLetters { step, ..self }
    }
}

/// What an agent remembers.
#[derive(Clone, Debug)]
pub struct State {
    model: Vec<f64>,
    version: u64,
    means: Means,
    neighbours: Copies,
    /// c_i L_i at the model.
    cost: Option<f64>,
}

/// What a step needs, from the agent's own data.
#[derive(Clone, Debug)]
enum Means {
    /// alpha_i.
    Gradient(f64),
    /// The agent's block for any place of its neighbours.
    Newton(Proximal),
}

/// A letter about a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Letter<'a> {
    /// The sender's model.
    Model {
        /// Steps taken.
        version: u64,
        /// The numbers.
        model: Numbers<'a>,
    },
    /// Wants the sender's model.
    Ask,
}

impl<'a> Wire<'a> for Letter<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Letter::Model { version, model } => {
                out.push(0);
                out.extend_from_slice(&version.to_le_bytes());
                model.encode(out);
            }
            Letter::Ask => out.push(1),
        }
    }

    fn decode(bytes: &'a [u8]) -> Result<Self, Reject> {
        match bytes {
            [0, rest @ ..] => {
                let (version, model) = rest.split_first_chunk().ok_or(Reject::Malformed)?;
                Ok(Letter::Model { version: u64::from_le_bytes(*version), model: Numbers::decode(model)? })
            }
            [1] => Ok(Letter::Ask),
            _ => Err(Reject::Malformed),
        }
    }

    fn vectors(&self) -> u64 {
        u64::from(matches!(self, Letter::Model { .. }))
    }
}

impl DescentByLetters {
    fn means(&self, shard: &Shard<'_>) -> Means {
        let weight = self.trade_off * shard.confidence;
        match self.step {
            Step::Gradient => {
                let smoothness = local_smoothness(shard).expect("a smooth loss, which `new` has checked");
                Means::Gradient(1.0 / (1.0 + weight * smoothness))
            }
            Step::Newton => Means::Newton(Proximal::new(shard, weight, 1.0)),
        }
    }
}

impl Learner for DescentByLetters {
    type State = State;
    type Letter<'a> = Letter<'a>;

    fn enter(&self, shard: Shard<'_>) -> State {
        let means = self.means(&shard);
        State { model: solitary_model(&shard), version: 0, means, neighbours: Copies::default(), cost: None }
    }

    fn learn(&self, me: &mut State, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        if me.neighbours.is_empty() {
            return Ok(Activity { moved: 0.0 });
        }
        for neighbour in me.neighbours.iter().filter(|neighbour| neighbour.model().is_none()) {
            send(neighbour.peer, Letter::Ask, cx)?;
        }
        let p = me.model.len();
        cx.scratch.clear();
        cx.scratch.resize(2 * p, 0.0);
        let (model, rest) = cx.scratch.split_at_mut(p);
        let moved = match &mut me.means {
            Means::Gradient(alpha) => {
                let (alpha, weight) = (*alpha, self.trade_off * shard.confidence);
                kernel::vectorized(Update { me, alpha, weight, shard, model, gradient: rest })
            }
            Means::Newton(block) => {
                let degree = me.neighbours.degree();
                for (weight, row) in (0..me.neighbours.len()).map(|k| me.neighbours.row(k, &me.model)) {
                    add_scaled(rest, weight / degree, row);
                }
                model.copy_from_slice(&me.model);
                // A system of equations dwarfs the memory that it is written into.
                block.step(&shard, rest, model, &mut Vec::new());
                largest_difference(model, &me.model)
            }
        };
        // PRIVACY: the exact model, to all neighbours: epsilon = infinity.
        let letter = cx.gate.reveal(Letter::Model { version: me.version + 1, model: Numbers::Plain(model) })?;
        me.neighbours.iter().for_each(|neighbour| cx.outbox.send(neighbour.peer, letter));
        me.model.copy_from_slice(model);
        me.version += 1;
        me.cost = None;
        Ok(Activity { moved })
    }

    fn hear(&self, me: &mut State, from: PeerId, letter: Letter<'_>, cx: &mut Cx<'_>) -> Result<(), Reject> {
        me.neighbours.expect(from)?;
        match letter {
            Letter::Ask => {
                // PRIVACY: the exact model, to a neighbour and whoever listens: epsilon = infinity.
                let letter = cx.gate.reveal(Letter::Model { version: me.version, model: Numbers::Plain(&me.model) })?;
                cx.outbox.send(from, letter);
                Ok(())
            }
            Letter::Model { version, model } => me.neighbours.keep(from, version, model),
        }
    }

    fn relink(&self, me: &mut State, peer: PeerId, weight: f64, cx: &mut Cx<'_>) -> Result<(), Exhausted> {
        if me.neighbours.relink(peer, weight, me.model.len()) { send(peer, Letter::Ask, cx) } else { Ok(()) }
    }

    fn cost(&self, me: &mut State, shard: Shard<'_>) -> f64 {
        *me.cost.get_or_insert_with(|| shard.confidence * local_value(&shard, &me.model))
    }

    fn save(&self, me: &State, out: &mut Vec<u8>) {
        saved::write(&(&me.model, me.version, &me.neighbours), out);
    }

    fn resume(&self, saved: &[u8], shard: Shard<'_>, peers: Peers<'_>) -> Result<State, CannotResume> {
        let (model, version, neighbours): (Vec<f64>, u64, Copies) = saved::read(saved)?;
        let p = shard.points.dimension;
        saved::check(saved::is_vector(&model, p) && saved::is_count(version))?;
        neighbours.check(p, peers)?;
        Ok(State { model, version, means: self.means(&shard), neighbours, cost: None })
    }

    fn model<'a>(&self, me: &'a State) -> &'a [f64] {
        &me.model
    }
}

/// One step of equation (4), from zeroed buffers.
struct Update<'a> {
    me: &'a State,
    alpha: f64,
    /// mu c_i.
    weight: f64,
    shard: Shard<'a>,
    /// Ends as the new model.
    model: &'a mut [f64],
    gradient: &'a mut [f64],
}

impl Arithmetic for Update<'_> {
    /// The largest change of a coordinate.
    type Output = f64;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f64 {
        let Update { me, alpha, weight, shard, model, gradient } = self;
        let theta = &me.model[..];
        kernel::add_weighted_rows(simd, me.neighbours.len(), |k| me.neighbours.row(k, theta), model);
        kernel::add_gradient_inline(simd, shard.loss, shard.points, theta, gradient);
        let degree = me.neighbours.degree();
        // theta_i <- (1 - alpha) theta_i + alpha (sum_j W_ij/D_ii theta_j - mu c_i (g/m + 2 lambda theta_i))   [2018, eq. 4]
        let keep = 1.0 - alpha - 2.0 * alpha * weight * shard.regularization;
        let descend = if shard.points.is_empty() { 0.0 } else { alpha * weight / shard.points.len() as f64 };
        kernel::step(simd, [keep, alpha / degree, descend], theta, gradient, model)
    }
}

fn send(to: PeerId, letter: Letter<'_>, cx: &mut Cx<'_>) -> Result<(), Exhausted> {
    // PRIVACY: a question without content; charged like everything that leaves.
    let letter = cx.gate.reveal(letter)?;
    cx.outbox.send(to, letter);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn letters_come_back_to_the_bit_and_random_bytes_never_panic(
            version: u64,
            values in prop::collection::vec(-1e75f64..1e75, 0..20),
            mut noise in prop::collection::vec(any::<u8>(), 0..60),
            kind in 0u8..3,
        ) {
            let mut bytes = Vec::new();
            Letter::Model { version, model: Numbers::Plain(&values) }.encode(&mut bytes);
            let mut again = Vec::new();
            Letter::decode(&bytes).expect("own encoding").encode(&mut again);
            prop_assert_eq!(again, bytes);
            if !noise.is_empty() {
                noise[0] = kind;
            }
            let _ = Letter::decode(&noise);
        }
    }

    #[test]
    fn a_question_is_one_byte_and_bad_numbers_are_refused() {
        let mut bytes = Vec::new();
        Letter::Ask.encode(&mut bytes);
        assert_eq!((bytes.len(), Letter::decode(&bytes)), (1, Ok(Letter::Ask)));
        let mut bytes = vec![0; 9];
        bytes.extend(f64::NAN.to_le_bytes());
        assert_eq!(Letter::decode(&bytes), Err(Reject::NotFinite));
        assert_eq!(Letter::decode(&[1, 0]), Err(Reject::Malformed));
        assert_eq!(Letter::decode(&[]), Err(Reject::Malformed));
        assert_eq!(DescentByLetters::new(Loss::Hinge, 1.0).expect_err("not smooth").field, "loss");
    }
}
