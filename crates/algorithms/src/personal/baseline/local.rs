//! Purely local models (Bellet et al. 2018, equation 1): theta_i^loc = argmin L_i.
//!
//! The baseline: perfectly private, no communication. An agent without data has the zero model.
//!
//! Differs from the paper: nothing.

use crate::{Shard, reference::local::solitary_model, saved};
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Neighbours, NoLetter};
use sottovoce_privacy::Exhausted;

/// Everyone for themselves: the model is computed at the start and nothing is ever sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Local;

/// The agent's model.
#[derive(Clone, Debug)]
pub struct State {
    model: Box<[f64]>,
}

impl Algorithm for Local {
    type Data<'d> = Shard<'d>;
    type State = State;
    type Letter<'a> = NoLetter;

    fn post_len(&self) -> usize {
        0
    }

    fn start(&self, shard: Shard<'_>, _cx: &mut Cx<'_>) -> Result<State, Exhausted> {
        Ok(State { model: solitary_model(&shard).into() })
    }

    fn on_wake(&self, _me: &mut State, _shard: Shard<'_>, _cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        Ok(Activity { moved: 0.0 })
    }

    fn save(&self, _me: &State, out: &mut Vec<u8>) {
        saved::write(&(), out);
    }

    fn resume(
        &self,
        saved: &[u8],
        _neighbours: Neighbours,
        shard: Shard<'_>,
        _cx: &mut Cx<'_>,
    ) -> Result<State, CannotResume> {
        let () = saved::read(saved)?;
        Ok(State { model: solitary_model(&shard).into() })
    }

    fn model<'a>(&self, me: &'a State, _posted: &'a [f64]) -> &'a [f64] {
        &me.model
    }
}
