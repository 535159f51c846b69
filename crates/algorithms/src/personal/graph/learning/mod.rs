//! Learning the collaboration graph for fixed models by block updates with peer sampling (thesis, section 2.3, Algorithm 2.4).
//!
//! J is that of [`crate::joint`], with the models fixed: G(w). An agent that wakes draws a few peers at random (all those it can
//! reach are equally likely), asks each for its model, its loss and its degree, and takes one projected gradient step on the weights
//! of these pairs together:
//!
//! w_uV <- max(0, w_uV - (1/L) [grad G]_uV)
//!
//! [grad G]_uv = mu (c_u F_u + c_v F_v) + |Theta_u - Theta_v|^2 / 2 + nu ( g_w'(w_uv) + g_d'(d_u) + g_d'(d_v) )
//!
//! L begins at half of what was last good enough and doubles until the step surely lowers G: the block is convex, so that
//! <change of the slopes over the step, step> <= L/2 |step|^2 suffices. It needs what the answers hold and no more. A wake costs
//! one pass over as many models as it draws.
//!
//! How both ends of a pair come to hold the same weight, whatever is lost, doubled or overtaken: [`super::links`]. An agent stores
//! its positive weights, and of its sample five numbers for each peer. Nothing waits: answers that have come by
//! the next wake are used then, the others are not missed.
//!
//! Differs from the paper: line 8 of Algorithm 2.4 freezes only the pairs outside V and u; here every pair other than
//! (u, v), v in V, is unchanged, as the proof has it. L_uV is found by backtracking, because the constant of the theory is
//! (rho + 1) / offset^2. A change at the other end of a pair is refused where the pair has changed meanwhile. The thesis
//! lets each user hold n - 1 weights; here only those that are not zero.

use super::letter::{GraphLetter, Theta};
use super::links::{Links, Origin, send};
use crate::config::{ConfigError, at_least_one, positive};
use crate::joint::{Joint, Regularizer};
use crate::saved;
use serde::{Deserialize, Serialize};
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Neighbours, PeerId, Peers, Reject, wire::Numbers};
use sottovoce_privacy::{Exhausted, Released};
use std::hint::black_box;

/// Doublings of L before a block is left alone: what remains is rounding.
const DOUBLINGS_MAX: usize = 200;

/// The hyper-parameters, before they are checked.
///
/// | name | symbol | range | default |
/// |---|---|---|---|
/// | trade-off | mu = 1 / lambda_1 | above 0 | 1, as everywhere |
/// | strength | nu = lambda_2 / lambda_1 | above 0 | 1, as in the thesis |
/// | regularizer | g | | [`crate::joint::LogDegree`] |
/// | sample | kappa, rho | 1 and above | 5, as in the thesis |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GraphLearningConfig<R> {
    /// mu, nu and g.
    pub joint: Joint<R>,
    /// kappa.
    pub sample: usize,
}

/// The hyper-parameters, the same for all agents.
#[derive(Clone, Copy, Debug)]
pub struct GraphLearning<R> {
    joint: Joint<R>,
    sample: usize,
}

impl<R: Regularizer> GraphLearning<R> {
    /// Checks the hyper-parameters.
    pub fn new(config: GraphLearningConfig<R>) -> Result<Self, ConfigError> {
        positive("trade-off", config.joint.trade_off)?;
        positive("strength", config.joint.strength)?;
        Ok(GraphLearning { joint: config.joint, sample: at_least_one("sample", config.sample)? })
    }
}

/// The graph part of an agent: its weights, and the sample it is working on.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Neighbourhood {
    links: Links,
    round: u64,
    sample: Vec<Candidate>,
    /// Working memory of a wake.
    #[serde(skip)]
    drawn: Vec<PeerId>,
    /// L, as it was last good enough.
    smoothness: f64,
}

/// A peer in the sample.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Candidate {
    peer: PeerId,
    answer: Option<Answer>,
}

/// What it answered.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Answer {
    price: f64,
    degree: f64,
    weight: f64,
    as_of: u64,
}

/// What the graph part of an agent must know of its model.
#[derive(Clone, Copy, Debug)]
pub struct Placed<'d> {
    /// theta_u.
    pub model: &'d [f64],
    /// c_u F_u(theta_u).
    pub cost: f64,
}

/// A place, and how much of it may be told.
#[derive(Clone, Copy, Debug)]
pub enum Standing<'d> {
    /// The exact model and loss: whatever follows from them is revealed.
    Exact(Placed<'d>),
    /// A model and a loss that have been released: what follows from them is post-processing.
    Released(Released<Placed<'d>>),
}

impl<'d> Standing<'d> {
    fn origin(&self) -> Origin {
        match self {
            Standing::Exact(_) => Origin::Exact,
            Standing::Released(_) => Origin::Released,
        }
    }

    fn placed(self) -> Placed<'d> {
        match self {
            Standing::Exact(placed) => placed,
            Standing::Released(placed) => placed.into_inner(),
        }
    }
}

impl Neighbourhood {
    /// No weights yet.
    pub fn new(me: PeerId) -> Self {
        let (sample, drawn) = (Vec::new(), Vec::new());
        Neighbourhood { links: Links::new(me), round: 0, sample, drawn, smoothness: 1.0 }
    }

    /// The same, for an agent whose letters come from another origin.
    pub(super) fn of(self, origin: Origin) -> Self {
        Neighbourhood { links: self.links.of(origin), ..self }
    }

    /// Refuses what this agent's neighbourhood cannot be.
    pub(super) fn check(&self, me: PeerId, peers: Peers<'_>) -> Result<(), CannotResume> {
        self.links.check(me, peers)?;
        saved::check(saved::is_count(self.round) && saved::is_weight(self.smoothness))?;
        let size = |value: f64| value >= 0.0 && value.is_finite();
        let possible = |candidate: &Candidate| {
            let answer = |a: Answer| a.price.is_finite() && size(a.degree) && size(a.weight);
            peers.position(candidate.peer).is_some() && candidate.answer.is_none_or(answer)
        };
        saved::check(self.sample.iter().all(possible))
    }

    /// The weights.
    pub fn links(&self) -> &Links {
        &self.links
    }

    /// The weights, for whoever acts on their changes.
    pub(super) fn links_mut(&mut self) -> &mut Links {
        &mut self.links
    }
}

impl<R: Regularizer> GraphLearning<R> {
    /// A wake: uses what has been answered of the last sample, draws the next and asks it. Returns the largest change of a
    /// weight since the last wake.
    pub(super) fn wake(&self, me: &mut Neighbourhood, cx: &mut Cx<'_>) -> Result<f64, Exhausted> {
        self.update(me, cx)?;
        me.round += 1;
        cx.peers.sample(self.sample, &mut cx.coin, &mut me.drawn);
        me.sample.clear();
        for &peer in &me.drawn {
            send(peer, GraphLetter::Ask { round: me.round }, me.links.origin(), cx)?;
            me.sample.push(Candidate { peer, answer: None });
        }
        me.links.put_right(cx)?;
        Ok(me.links.take_moved())
    }

    /// A letter about the graph.
    ///
    /// # Panics
    /// When the standing has another origin than the neighbourhood: exact values must never leave as post-processing.
    pub(super) fn hear(
        &self,
        me: &mut Neighbourhood,
        standing: Standing<'_>,
        from: PeerId,
        letter: GraphLetter<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        assert_eq!(standing.origin(), me.links.origin(), "one agent, one origin");
        let placed = standing.placed();
        cx.peers.position(from).ok_or(Reject::NotANeighbour)?;
        match letter {
            GraphLetter::Ask { round } => {
                let (as_of, degree, weight) = (me.links.clock(), me.links.degree(), me.links.weight(from));
                let (cost, model) = (placed.cost, Theta::Dense(Numbers::Plain(placed.model)));
                let answer = GraphLetter::Answer { round, as_of, cost, degree, weight, model };
                Ok(send(from, answer, me.links.origin(), cx)?)
            }
            GraphLetter::Answer { round, as_of, cost, degree, weight, model } => {
                let distance = model.distance_squared(placed.model)?;
                let open = |candidate: &&mut Candidate| candidate.peer == from && candidate.answer.is_none();
                let candidate =
                    me.sample.iter_mut().find(open).filter(|_| round == me.round).ok_or(Reject::OutOfTurn)?;
                let price = self.joint.price(placed.cost + cost, distance);
                if !price.is_finite() {
                    return Err(Reject::NotFinite);
                }
                candidate.answer = Some(Answer { price, degree, weight, as_of });
                if !me.links.keeps(from) && me.links.weight(from).to_bits() != weight.to_bits() {
                    // The copy is wrong, or the answer was overtaken by news; the clock tells which.
                    let _ = me.links.settled(from, weight, as_of);
                }
                if me.sample.iter().all(|candidate| candidate.answer.is_some()) {
                    self.update(me, cx)?;
                }
                Ok(())
            }
            GraphLetter::Propose { as_of, weight } => me.links.proposed(from, weight, as_of, cx),
            GraphLetter::Settle { as_of, weight } => me.links.settled(from, weight, as_of),
            GraphLetter::Check { weight } => me.links.checked(from, weight, cx),
        }
    }

    /// One step on the block of all pairs that have been answered. The sample is empty after it.
    fn update(&self, me: &mut Neighbourhood, cx: &mut Cx<'_>) -> Result<(), Exhausted> {
        let Neighbourhood { links, sample, smoothness, .. } = me;
        sample.retain(|candidate| candidate.answer.is_some());
        let degree = links.degree();
        cx.scratch.clear();
        let block = || sample.iter().filter_map(|candidate| candidate.answer.map(|answer| (candidate.peer, answer)));
        for (peer, answer) in block() {
            let weight = if links.keeps(peer) { links.weight(peer) } else { answer.weight };
            let slope = self.joint.slope(answer.price, weight, [degree, answer.degree]);
            cx.scratch.extend([weight, slope, weight]);
        }
        let (rows, _) = cx.scratch.as_chunks_mut::<3>();
        let degrees = || block().map(|(_, answer)| answer);
        if let Some(found) = self.descend(*smoothness / 2.0, degree, degrees, rows) {
            *smoothness = found;
            for (k, (peer, answer)) in block().enumerate() {
                let (old, new) = (cx.scratch[3 * k], cx.scratch[3 * k + 2]);
                if new != old {
                    links.change(peer, new, answer.as_of, cx)?;
                }
            }
        }
        sample.clear();
        Ok(())
    }

    /// Fills in the new weights of a block, rows of (old weight, slope, new weight). Returns L; nothing if no weight
    /// moves, or no L is good enough.
    fn descend<B: Iterator<Item = Answer>>(
        &self,
        mut smoothness: f64,
        degree: f64,
        block: impl Fn() -> B,
        rows: &mut [[f64; 3]],
    ) -> Option<f64> {
        for _ in 0..DOUBLINGS_MAX {
            let mut own = degree;
            for [old, slope, new] in &mut *rows {
                *new = (*old - *slope / smoothness).max(0.0);
                own += *new - *old;
            }
            let (mut bent, mut length) = (0.0, 0.0);
            for ([old, slope, new], answer) in rows.iter().zip(block()) {
                let step = new - old;
                // A degree that was told long ago may be smaller than the weight that is now taken from it.
                let degrees = [own, answer.degree + step].map(|degree| degree.max(0.0));
                bent += (self.joint.slope(answer.price, *new, degrees) - slope) * step;
                length += step * step;
            }
            if length == 0.0 {
                return None;
            }
            if length.is_finite() && bent <= 0.5 * smoothness * length {
                return Some(smoothness);
            }
            smoothness *= 2.0;
        }
        None
    }
}

/// What an agent remembers: a copy of its model and its neighbourhood.
#[derive(Clone, Debug)]
pub struct State {
    model: Box<[f64]>,
    neighbourhood: Neighbourhood,
}

impl State {
    /// The weights.
    pub fn links(&self) -> &Links {
        &self.neighbourhood.links
    }
}

impl<R: Regularizer> Algorithm for GraphLearning<R> {
    type Data<'d> = Placed<'d>;
    type State = State;
    type Letter<'a> = GraphLetter<'a>;

    fn post_len(&self) -> usize {
        0
    }

    fn letter_bytes_max(&self, placed: Placed<'_>) -> usize {
        crate::problem::letter_bytes_max(placed.model.len())
    }

    fn start(&self, placed: Placed<'_>, cx: &mut Cx<'_>) -> Result<State, Exhausted> {
        Ok(State { model: placed.model.into(), neighbourhood: Neighbourhood::new(cx.me) })
    }

    fn on_wake(&self, me: &mut State, _placed: Placed<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        me.neighbourhood.links.changed().clear();
        Ok(Activity { moved: self.wake(&mut me.neighbourhood, cx)? })
    }

    fn on_letter(
        &self,
        me: &mut State,
        placed: Placed<'_>,
        from: PeerId,
        letter: GraphLetter<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        // Nobody acts on changed weights here, and a peer can change one with every letter.
        me.neighbourhood.links.changed().clear();
        self.hear(&mut me.neighbourhood, Standing::Exact(placed), from, letter, cx)
    }

    fn anticipate(&self, me: &State, placed: Placed<'_>, from: PeerId) {
        // Eight numbers are a line of the cache; behind the first few lines the processor sees where this goes.
        for number in placed.model.iter().step_by(8).take(4) {
            black_box(*number);
        }
        me.neighbourhood.links.anticipate(from);
    }

    fn save(&self, me: &State, out: &mut Vec<u8>) {
        saved::write(&me.neighbourhood, out);
    }

    fn resume(
        &self,
        saved: &[u8],
        neighbours: Neighbours,
        placed: Placed<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<State, CannotResume> {
        saved::expect_same(neighbours)?;
        let neighbourhood: Neighbourhood = saved::read(saved)?;
        neighbourhood.check(cx.me, cx.peers)?;
        Ok(State { model: placed.model.into(), neighbourhood })
    }

    fn model<'a>(&self, me: &'a State, _posted: &'a [f64]) -> &'a [f64] {
        &me.model
    }
}

#[cfg(test)]
mod tests;
