//! Models and collaboration graph together, by turns (thesis, Algorithm 2.1).
//!
//! J(Theta, w), see [`crate::joint`], is convex in the models for a fixed graph and in the graph for fixed models. For a span of
//! time every wake takes a step on the agent's model ([`Learner`]: coordinate descent, or Frank-Wolfe), then for another every
//! wake takes a step on the weights of a few pairs ([`super::learning`]), and so on:
//!
//! | time | a wake |
//! |---|---|
//! | before `graph_first` | graph: the first graph comes from purely local models, or from released ones |
//! | then, for `models` | model, with the neighbours of the moment |
//! | then, for `graph` | graph |
//! | then | from the second line again |
//!
//! Spans are in mean wake intervals. Agents need not agree on the time to the second, and nobody waits for a turn to end: a step
//! of either kind lowers J by itself, whatever the others do next. So with letters that arrive at once J never rises at any
//! wake, if the steps of the models never raise Q: coordinate descent, and Frank-Wolfe with `Descent`. Frank-Wolfe with
//! a clock makes no such promise.
//!
//! A new neighbour's model is asked for when the edge appears, and dropped with the edge.
//!
//! Differs from the paper: models are not set back to zero after the first graph, as the authors' code does, but go on from
//! the local ones; no threshold is applied to the graph, whose zeros are exact.
//!
//! # Privacy
//! With an exact learner every letter is revealed: epsilon = infinity, and behind a plan the first letter is refused. With
//! [`crate::personal::descent::PrivateDescentByLetters`] the graph part sees nothing of the agent but what it has released, so its letters are
//! post-processing. Proof: `crates/privacy/proofs/private-graph.md`.

use super::learner::{Learner, Turn};
use super::learning::{GraphLearning, Neighbourhood};
use super::letter::{GraphLetter, KIND_MIN};
use super::links::Links;
use crate::Shard;
use crate::config::{ConfigError, positive};
use crate::joint::Regularizer;
use crate::saved;
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Neighbours, PeerId, Reject, Time, Wire};
use sottovoce_privacy::Exhausted;

/// How long each turn is, in mean wake intervals.
///
/// | name | range | default |
/// |---|---|---|
/// | graph-first | 0 and above | 10; the code has 1000 ticks of 100 agents |
/// | models | above 0 | 20; the code has 2000 ticks of 100 agents, the thesis 100 |
/// | graph | above 0 | 10 |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turns {
    /// The graph alone, at the start.
    pub graph_first: f64,
    /// Models.
    pub models: f64,
    /// Graph.
    pub graph: f64,
}

impl Default for Turns {
    fn default() -> Self {
        Turns { graph_first: 10.0, models: 20.0, graph: 10.0 }
    }
}

impl Turns {
    /// Whose turn it is at a time.
    pub fn at(&self, now: Time) -> Turn {
        let since = now.0 - self.graph_first;
        if since < 0.0 {
            return Turn::Graph(0);
        }
        let round = self.models + self.graph;
        // The remainder is exact, so both say the same at the very edge of a turn.
        let rest = since % round;
        let count = libm::round((since - rest) / round) as u64;
        if rest < self.models { Turn::Models(count) } else { Turn::Graph(count + 1) }
    }

    /// How many turns of models, and of the graph after its first, begin before a time.
    pub fn before(&self, end: f64) -> (u64, u64) {
        let (since, round) = (end - self.graph_first, self.models + self.graph);
        let begun = |lead: f64| if since > lead { libm::ceil((since - lead) / round) as u64 } else { 0 };
        (begun(0.0), begun(self.models))
    }
}

/// The hyper-parameters, the same for all agents.
#[derive(Clone, Copy, Debug)]
pub struct Alternating<L, R> {
    learner: L,
    graph: GraphLearning<R>,
    turns: Turns,
}

impl<L: Learner, R: Regularizer> Alternating<L, R> {
    /// Checks the turns; the parts have been checked.
    pub fn new(learner: L, graph: GraphLearning<R>, turns: Turns) -> Result<Self, ConfigError> {
        positive("models", turns.models)?;
        positive("graph", turns.graph)?;
        if !(turns.graph_first >= 0.0 && turns.graph_first.is_finite()) {
            let value = turns.graph_first.to_string();
            return Err(ConfigError { field: "graph-first", value, accepted: "a finite number of at least zero" });
        }
        Ok(Alternating { learner, graph, turns })
    }

    /// Tells the learner of changed weights.
    fn relink(&self, me: &mut AlternatingState<L>, cx: &mut Cx<'_>) -> Result<(), Exhausted> {
        while let Some(peer) = me.neighbourhood.links_mut().changed().pop() {
            let weight = me.neighbourhood.links().weight(peer);
            self.learner.relink(&mut me.learner, peer, weight, cx)?;
        }
        Ok(())
    }
}

/// What an agent remembers.
pub struct AlternatingState<L: Learner> {
    learner: L::State,
    neighbourhood: Neighbourhood,
}

impl<L: Learner> AlternatingState<L> {
    /// The weights.
    pub fn links(&self) -> &Links {
        self.neighbourhood.links()
    }

    /// The model part.
    pub fn learner(&self) -> &L::State {
        &self.learner
    }
}

/// A letter of either part.
pub enum AlternatingLetter<'a, L: Learner + 'a> {
    /// About a model.
    Model(L::Letter<'a>),
    /// About the graph.
    Graph(GraphLetter<'a>),
}

impl<'a, L: Learner> Wire<'a> for AlternatingLetter<'a, L> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            AlternatingLetter::Model(letter) => letter.encode(out),
            AlternatingLetter::Graph(letter) => letter.encode(out),
        }
    }

    fn decode(bytes: &'a [u8]) -> Result<Self, Reject> {
        if bytes.first().is_some_and(|kind| *kind >= KIND_MIN) {
            GraphLetter::decode(bytes).map(AlternatingLetter::Graph)
        } else {
            L::Letter::decode(bytes).map(AlternatingLetter::Model)
        }
    }

    fn vectors(&self) -> u64 {
        match self {
            AlternatingLetter::Model(letter) => letter.vectors(),
            AlternatingLetter::Graph(letter) => letter.vectors(),
        }
    }
}

impl<L: Learner + 'static, R: Regularizer> Algorithm for Alternating<L, R> {
    type Data<'d> = Shard<'d>;
    type State = AlternatingState<L>;
    type Letter<'a> = AlternatingLetter<'a, L>;

    fn post_len(&self) -> usize {
        0
    }

    fn letter_bytes_max(&self, shard: Shard<'_>) -> usize {
        shard.letter_bytes_max()
    }

    fn start(&self, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<AlternatingState<L>, Exhausted> {
        let mut learner = self.learner.enter(shard);
        self.learner.begin(&mut learner, shard, cx)?;
        Ok(AlternatingState { learner, neighbourhood: Neighbourhood::new(cx.me).of(L::ORIGIN) })
    }

    fn on_wake(&self, me: &mut AlternatingState<L>, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        let turn = self.turns.at(cx.now);
        self.learner.turn(&mut me.learner, shard, turn, cx)?;
        match turn {
            Turn::Models(_) => self.learner.learn(&mut me.learner, shard, cx),
            Turn::Graph(_) => {
                let moved = self.graph.wake(&mut me.neighbourhood, cx)?;
                self.relink(me, cx)?;
                Ok(Activity { moved })
            }
        }
    }

    fn on_letter(
        &self,
        me: &mut AlternatingState<L>,
        shard: Shard<'_>,
        from: PeerId,
        letter: AlternatingLetter<'_, L>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        match letter {
            AlternatingLetter::Model(letter) => self.learner.hear(&mut me.learner, from, letter, cx),
            AlternatingLetter::Graph(letter) => {
                self.learner.turn(&mut me.learner, shard, self.turns.at(cx.now), cx)?;
                let standing = self.learner.standing(&mut me.learner, shard);
                self.graph.hear(&mut me.neighbourhood, standing, from, letter, cx)?;
                Ok(self.relink(me, cx)?)
            }
        }
    }

    fn save(&self, me: &AlternatingState<L>, out: &mut Vec<u8>) {
        saved::write(&me.neighbourhood, out);
        self.learner.save(&me.learner, out);
    }

    fn resume(
        &self,
        saved: &[u8],
        neighbours: Neighbours,
        shard: Shard<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<AlternatingState<L>, CannotResume> {
        saved::expect_same(neighbours)?;
        let (neighbourhood, learner): (Neighbourhood, _) = saved::read_first(saved)?;
        neighbourhood.check(cx.me, cx.peers)?;
        let learner = self.learner.resume(learner, shard, cx.peers)?;
        Ok(AlternatingState { learner, neighbourhood: neighbourhood.of(L::ORIGIN) })
    }

    fn model<'a>(&self, me: &'a AlternatingState<L>, _posted: &'a [f64]) -> &'a [f64] {
        self.learner.model(&me.learner)
    }
}
