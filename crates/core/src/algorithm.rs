//! One algorithm, as one agent runs it.

use crate::{Cx, PeerId, Peers, Reject, Wire};
use sottovoce_privacy::Exhausted;
use thiserror::Error;

/// One algorithm, as one agent runs it. `self` holds hyper-parameters only: one value serves all agents.
///
/// An implementation sees one agent: its state, its data, and what its neighbours released. It can neither
/// name another agent's state nor send anything that is neither [`Released`](sottovoce_privacy::Released) nor
/// [`Sealed`](sottovoce_privacy::Sealed).
pub trait Algorithm: Sized + Sync {
    /// The agent's private data (and the public facts about them), lent by the driver at every call.
    type Data<'d>: Copy;
    /// Everything else that the agent remembers. Its own last post is kept by the driver.
    type State: Send;
    /// What it sends to one peer at a time.
    type Letter<'a>: Wire<'a>;

    /// Numbers in a post; zero for algorithms that never post.
    fn post_len(&self) -> usize;

    /// The most bytes of a letter. It follows from hyper-parameters and from public facts about the data, such as the dimension, and is
    /// the same for all agents: no driver takes a longer one, from its own agent or from another's.
    fn letter_bytes_max(&self, data: Self::Data<'_>) -> usize {
        let _ = data;
        0
    }

    /// How often the agent's clock ticks: this often in a unit of time, on average. At zero it never does, and the agent lives by letters and
    /// by what it asks for itself ([`Outbox::wake_at`](crate::Outbox::wake_at)).
    fn wake_rate(&self, data: Self::Data<'_>, peers: Peers<'_>) -> f64 {
        let _ = (data, peers);
        1.0
    }

    /// The agent enters: computes its first state and may post or send.
    fn start(&self, data: Self::Data<'_>, cx: &mut Cx<'_>) -> Result<Self::State, Exhausted>;

    /// The agent's clock ticked, or the time has come that it had asked for.
    fn on_wake(&self, me: &mut Self::State, data: Self::Data<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted>;

    /// A letter arrived. The driver drops and counts what is rejected, also where it is durable: rejecting is what it came to. Algorithms
    /// without letters reject all.
    fn on_letter(
        &self,
        me: &mut Self::State,
        data: Self::Data<'_>,
        from: PeerId,
        letter: Self::Letter<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        let _ = (me, data, from, letter, cx);
        Err(Reject::Malformed)
    }

    /// Whether the agent has done all it is there for: its clock stops, and it still reads letters. It is a fact about the state and not an
    /// answer that is given once, so that a driver finds it again after a crash.
    fn is_done(&self, me: &Self::State) -> bool {
        let _ = me;
        false
    }

    /// Reads a word of each piece of memory that a letter from this peer will need, and forgets it. A driver of many agents calls it
    /// some letters ahead, so that the pieces are on their way together and not one after another. What happens is the
    /// same without it.
    fn anticipate(&self, me: &Self::State, data: Self::Data<'_>, from: PeerId) {
        let _ = (me, data, from);
    }

    /// What the agent must find again after a crash, besides its own last post, its ledger and the posts it heard, which the
    /// driver keeps. Read by [`Algorithm::resume`] of the same version and by nobody else.
    fn save(&self, me: &Self::State, out: &mut Vec<u8>);

    /// The agent is back: makes its state again from what was saved. It sends nothing and releases nothing.
    ///
    /// # Errors
    /// When the bytes are no state of this algorithm, or belong to neighbours that the agent has no longer.
    fn resume(
        &self,
        saved: &[u8],
        neighbours: Neighbours,
        data: Self::Data<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<Self::State, CannotResume>;

    /// The agent's model now: what it posted last, or what it would tell. For the agent's owner only.
    fn model<'a>(&self, me: &'a Self::State, posted: &'a [f64]) -> &'a [f64];
}

/// Whether an agent that comes back finds its neighbours as it left them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Neighbours {
    /// The same, with the same weights and the same numbers ([`PeerId`]).
    Same,
    /// Some came, went, or have another weight.
    Changed,
}

/// Why a saved state is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CannotResume {
    /// The bytes are no state of this algorithm and version.
    #[error("the saved state is not one of this algorithm")]
    Malformed,
    /// The algorithm remembers something for each edge.
    #[error("this algorithm remembers something for each neighbour, so its neighbours cannot change during a task")]
    NeighboursChanged,
}

/// What a wake did to the agent's model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Activity {
    /// The largest change of a coordinate.
    pub moved: f64,
}
