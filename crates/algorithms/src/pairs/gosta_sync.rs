//! GoSta with a common clock (thesis 3.1, Algorithm 3.1; Colin, Bellet, Salmon and Clemencon 2015). For simulations: only there is one.
//!
//! Each node u keeps its observation x_u, an observation a_u that wanders, and an estimate z_u. At t = 1, 2, ...
//!
//! 1. for all u: z_u <- ((t - 1) / t) z_u + (1 / t) h(x_u, a_u)
//! 2. for one edge {u, v}, at random: z_u, z_v <- (z_u + z_v) / 2; a_u <-> a_v
//!
//! Step 1 takes no time: with S_u = t z_u it is S_u <- S_u + h(x_u, a_u), and a_u stays until u meets someone. So a node adds (t - s) h(x_u, a_u) when it
//! meets, where s is the time of its last meeting. Agents wake as often as they have neighbours, so that all edges are equally likely, and with the
//! simulator's uniform clock the wakes are t = 1, 2, ...
//!
//! On a graph that is connected and not bipartite (Theorem 3.1; `reference/pairs.rs` computes it)
//!
//! |E z(t) - U2 1| <= 1 / (c t) |hbar - U2 1| + (2 / (c t) + e^(-c t)) |H - hbar 1^T|
//!
//! Differs from the thesis: as printed, step 2 is within the loop over u; its text and proof have one edge for each t, and c is half of what is printed (see
//! [`Bound`](crate::reference::pairs::Bound)). Rows of one agent meet besides, at each of its wakes.

use super::exchange::{Exchange, Rule};
use super::kernel::PairKernel;
use crate::config::{ConfigError, at_least_one};
use serde::{Deserialize, Serialize};
use sottovoce_core::{Peers, Time};

/// With a common clock: t is the number of wakes, and in a unit of time there are two for each edge.
#[derive(Clone, Copy, Debug)]
pub struct CommonClock {
    wakes_per_unit: f64,
}

impl CommonClock {
    pub(super) fn new(edges: usize) -> Result<Self, ConfigError> {
        Ok(CommonClock { wakes_per_unit: 2.0 * at_least_one("edges", edges)? as f64 })
    }

    /// How many wakes there have been.
    pub(super) fn wakes(&self, now: Time) -> f64 {
        libm::rint(now.0 * self.wakes_per_unit)
    }
}

/// GoSta with a common clock, for a kernel.
pub type GostaSync<K> = Exchange<K, CommonClock>;

impl<K: PairKernel> GostaSync<K> {
    /// The statistic is U2 times a factor, as for [`Gosta`](super::gosta::Gosta); the graph has so many edges.
    pub fn new(kernel: K, factor: f64, edges: usize) -> Result<Self, ConfigError> {
        Exchange::with_rule(kernel, factor, CommonClock::new(edges)?)
    }
}

/// What a node knows of the statistic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Accrued {
    /// S = t z.
    sum: f64,
    /// t.
    until: f64,
}

impl Accrued {
    /// Adds what every step until now adds, each the same.
    pub(super) fn accrue(&mut self, h: impl FnOnce() -> f64, now: f64) {
        if now > self.until {
            self.sum += (now - self.until) * h();
            self.until = now;
        }
    }

    /// z.
    pub(super) fn estimate(&self) -> f64 {
        if self.until > 0.0 { self.sum / self.until } else { 0.0 }
    }

    pub(super) fn is_sound(&self) -> bool {
        self.sum.is_finite() && self.until.is_finite() && self.until >= 0.0 && self.estimate().is_finite()
    }
}

impl Rule for CommonClock {
    type Estimate = Accrued;
    const BOTH_WANDER: bool = false;
    const SHARES: bool = true;

    fn side(&self, _: Time) -> usize {
        1
    }

    fn accrue(&self, mine: &mut Accrued, h: impl FnOnce() -> f64, now: Time) {
        mine.accrue(h, self.wakes(now));
    }

    fn shared(&self, mine: &Accrued) -> f64 {
        mine.sum
    }

    fn meet(&self, mine: &mut Accrued, mean: f64, _: impl FnOnce() -> f64) {
        mine.sum = mean;
    }

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
