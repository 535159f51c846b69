//! Everyone for themselves, with any [`Learner`]: the model with which an agent would enter a network whose graph is yet to be
//! learned. With [`crate::personal::boosting`] it is local boosting, the baseline of the thesis, section 2.5.
//!
//! Differs from [`super::local`]: the learner says what a model learned alone is. Nothing is ever sent.

use crate::Shard;
use crate::personal::graph::Learner;
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Neighbours, NoLetter};
use sottovoce_privacy::Exhausted;

/// A learner without neighbours.
#[derive(Clone, Copy, Debug)]
pub struct Alone<L>(pub L);

impl<L: Learner> Algorithm for Alone<L> {
    type Data<'d> = Shard<'d>;
    type State = L::State;
    type Letter<'a> = NoLetter;

    fn post_len(&self) -> usize {
        0
    }

    fn start(&self, shard: Shard<'_>, _cx: &mut Cx<'_>) -> Result<L::State, Exhausted> {
        Ok(self.0.enter(shard))
    }

    fn on_wake(&self, _me: &mut L::State, _shard: Shard<'_>, _cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        Ok(Activity { moved: 0.0 })
    }

    /// Nothing: it enters again.
    fn save(&self, _me: &L::State, _out: &mut Vec<u8>) {}

    fn resume(
        &self,
        saved: &[u8],
        _neighbours: Neighbours,
        shard: Shard<'_>,
        _cx: &mut Cx<'_>,
    ) -> Result<L::State, CannotResume> {
        if saved.is_empty() { Ok(self.0.enter(shard)) } else { Err(CannotResume::Malformed) }
    }

    fn model<'a>(&self, me: &'a L::State, _posted: &'a [f64]) -> &'a [f64] {
        self.0.model(me)
    }
}
