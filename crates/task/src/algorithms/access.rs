//! How a run reaches the agents of an algorithm, whichever it is.

use crate::loaded::Loaded;
use sottovoce_algorithms::personal::boosting::Bits;
use sottovoce_algorithms::personal::graph::Links;
use sottovoce_algorithms::{Observations, Shard};
use sottovoce_core::{Algorithm, PeerId, Time};

/// Something to do with an algorithm, whichever it is.
pub trait Visitor {
    /// What comes out.
    type Output;

    /// Does it.
    fn visit<A: Algorithm>(self, algorithm: &A, access: Access<A>) -> Self::Output;
}

/// The data of an algorithm's agents, and what can be read from the states of some algorithms besides their models.
pub struct Access<A: Algorithm> {
    /// What an agent of a loaded task is lent at every call.
    pub data: for<'d> fn(&'d Loaded, PeerId) -> A::Data<'d>,
    /// The weights that an agent has learned.
    pub links: Option<fn(&A::State) -> &Links>,
    /// Whom it works with now, the weights of the edges to them, and their models as far as it has heard them.
    pub heard: Option<for<'s> fn(&'s A::State) -> HeardModels<'s>>,
    /// The bits that it has sent, where papers count bits.
    pub bits: Option<fn(&A::State) -> Bits>,
    /// Whether an agent knows what its model says; where there is none, everyone does.
    pub knows: Option<fn(&A::State) -> bool>,
    /// How many steps its model has been through, where all learn one; where there is none, as many as everyone's.
    pub steps: Option<fn(&A::State) -> u64>,
    /// What an agent would say at a time, where that is more than its model says, which is from its last event.
    pub at: Option<SaysAt<A>>,
    /// How many contributions are missing in what an agent knows, because their members were passed over; where there is none, none.
    pub passed_over: Option<fn(&A::State) -> u32>,
}

/// What an agent would say at a time.
pub type SaysAt<A> = fn(&A, &<A as Algorithm>::State, Time) -> Vec<f64>;

/// Neighbours, their weights and their models.
pub type HeardModels<'s> = Vec<(PeerId, f64, Option<&'s [f64]>)>;

impl<A: for<'d> Algorithm<Data<'d> = Observations<'d>>> Access<A> {
    /// Of an algorithm that measures a statistic of rows, and of whose states nothing is read.
    pub fn to_rows() -> Self {
        let (links, heard, bits, knows, steps, at, passed_over) = (None, None, None, None, None, None, None);
        Access { data: Loaded::observations, links, heard, bits, knows, steps, at, passed_over }
    }
}

impl<A: for<'d> Algorithm<Data<'d> = Shard<'d>>> Access<A> {
    /// Of an algorithm whose agents have points, and of whose states nothing is read.
    pub fn to_points() -> Self {
        let (links, heard, bits, knows, steps, at, passed_over) = (None, None, None, None, None, None, None);
        Access { data: |loaded, agent| loaded.problem.shard(agent), links, heard, bits, knows, steps, at, passed_over }
    }
}

impl<A: Algorithm> Access<A> {
    /// How many steps an agent's model has been through; none if it does not know what its model says.
    pub fn steps_of(&self, state: &A::State) -> Option<u64> {
        let knows = self.knows.is_none_or(|knows| knows(state));
        knows.then(|| self.steps.map_or(0, |steps| steps(state)))
    }
}
