//! U2-gossip (Pelckmans and Suykens, *Gossip Algorithms for Computing U-Statistics*, 2009), which GoSta is compared with. For simulations: it has a common clock.
//!
//! Each node u keeps two observations a_u and b_u that wander, both x_u at first, and an estimate z_u. At t = 1, 2, ...
//!
//! 1. for one edge at random: a_u <-> a_v; for another, drawn by itself: b_u <-> b_v
//! 2. for all u: z_u <- ((t - 1) / t) z_u + (1 / t) h(a_u, b_u)
//!
//! Nothing is averaged, and two observations change places in each step. Here a step is two wakes, the first for a, the second for b; step 2 takes no
//! time, as in `gosta_sync.rs`.

use super::exchange::{Exchange, Rule};
use super::gosta_sync::{Accrued, CommonClock};
use super::kernel::PairKernel;
use crate::config::ConfigError;
use sottovoce_core::{Peers, Time};

/// Two wandering observations, with a common clock.
#[derive(Clone, Copy, Debug)]
pub struct TwoWander {
    clock: CommonClock,
}

/// U2-gossip for a kernel.
pub type U2Gossip<K> = Exchange<K, TwoWander>;

impl<K: PairKernel> U2Gossip<K> {
    /// The statistic is U2 times a factor, as for [`Gosta`](super::gosta::Gosta); the graph has so many edges.
    pub fn new(kernel: K, factor: f64, edges: usize) -> Result<Self, ConfigError> {
        Exchange::with_rule(kernel, factor, TwoWander { clock: CommonClock::new(edges)? })
    }
}

impl Rule for TwoWander {
    type Estimate = Accrued;
    const BOTH_WANDER: bool = true;
    const SHARES: bool = false;

    fn side(&self, now: Time) -> usize {
        usize::from(self.clock.wakes(now) % 2.0 == 0.0)
    }

    /// All steps that are over, and not the one whose swaps are under way.
    fn accrue(&self, mine: &mut Accrued, h: impl FnOnce() -> f64, now: Time) {
        mine.accrue(h, ((self.clock.wakes(now) - 1.0) / 2.0).floor());
    }

    fn shared(&self, _: &Accrued) -> f64 {
        0.0
    }

    fn meet(&self, _: &mut Accrued, _: f64, _: impl FnOnce() -> f64) {}

    fn value(&self, mine: &Accrued) -> f64 {
        mine.estimate()
    }

    fn is_sound(&self, mine: &Accrued) -> bool {
        mine.is_sound()
    }

    fn wake_rate(&self, peers: Peers<'_>) -> f64 {
        peers.len() as f64
    }
}
