//! The model part of an agent whose neighbours may change.

use super::learning::{Placed, Standing};
use super::links::Origin;
use crate::Shard;
use sottovoce_core::{Activity, CannotResume, Cx, PeerId, Peers, Reject, Wire};
use sottovoce_privacy::Exhausted;

/// Whose turn it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Models move. Turns of models count from zero.
    Models(u64),
    /// Weights move. The first graph is zero, and the turn behind turn k of the models is k + 1.
    Graph(u64),
}

/// An algorithm that learns an agent's model from its data and from neighbours that it is told of, and told anew when the graph
/// changes. It talks by letters, and by their first byte others can tell them from letters about the graph:
/// theirs are below [`super::letter::KIND_MIN`].
pub trait Learner: Sync {
    /// What the agent remembers.
    type State: Send;
    /// What it sends.
    type Letter<'a>: Wire<'a>;
    /// What its part in the graph comes from; [`Learner::standing`] is of this kind.
    const ORIGIN: Origin = Origin::Exact;

    /// The agent enters, without neighbours and with a model from its own data alone.
    fn enter(&self, shard: Shard<'_>) -> Self::State;

    /// The agent has entered a network: what it releases before its first wake.
    fn begin(&self, _me: &mut Self::State, _shard: Shard<'_>, _cx: &mut Cx<'_>) -> Result<(), Exhausted> {
        Ok(())
    }

    /// Whose turn it is, told at each wake and with each letter about the graph.
    fn turn(&self, _me: &mut Self::State, _shard: Shard<'_>, _turn: Turn, _cx: &mut Cx<'_>) -> Result<(), Exhausted> {
        Ok(())
    }

    /// One step, and the news of it to all neighbours. Without neighbours nothing is sent.
    fn learn(&self, me: &mut Self::State, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted>;

    /// A letter from a neighbour.
    fn hear(&self, me: &mut Self::State, from: PeerId, letter: Self::Letter<'_>, cx: &mut Cx<'_>)
    -> Result<(), Reject>;

    /// The weight of an edge is another now: zero where it is gone. The model of a new neighbour is asked for.
    fn relink(&self, me: &mut Self::State, peer: PeerId, weight: f64, cx: &mut Cx<'_>) -> Result<(), Exhausted>;

    /// c_u F_u at the model. Computed once for each model.
    fn cost(&self, me: &mut Self::State, shard: Shard<'_>) -> f64;

    /// What the graph part may know of the agent.
    fn standing<'a>(&self, me: &'a mut Self::State, shard: Shard<'_>) -> Standing<'a> {
        let cost = self.cost(me, shard);
        Standing::Exact(Placed { model: self.model(me), cost })
    }

    /// Appends what the agent must find again when it comes back.
    fn save(&self, me: &Self::State, out: &mut Vec<u8>);

    /// Makes the state again from what was saved, for an agent that can reach the same peers as before.
    fn resume(&self, saved: &[u8], shard: Shard<'_>, peers: Peers<'_>) -> Result<Self::State, CannotResume>;

    /// The model.
    fn model<'a>(&self, me: &'a Self::State) -> &'a [f64];
}
