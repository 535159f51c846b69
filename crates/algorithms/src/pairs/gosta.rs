//! GoSta: a statistic of pairs without a common clock (Colin, Bellet, Salmon and Clemencon, *Extending Gossip Algorithms to Distributed Estimation of
//! U-statistics*, NIPS 2015; thesis 3.1).
//!
//! Each node u keeps its observation x_u, an observation a_u that wanders, an estimate z_u, and an estimate m_u of the time. When u and v meet,
//!
//! m_k <- m_k + 1 / p_k,   z_u, z_v <- (z_u + z_v) / 2,   z_k <- (1 - 1 / (p_k m_k)) z_k + 1 / (p_k m_k) h(x_k, a_k),   a_u <-> a_v
//!
//! where p_k is the probability that k is one of the two that meet. Then E m_k = t, and E z_k tends to U2 like log t / t on a graph that is connected and
//! not bipartite.
//!
//! Differs from the paper: p_k need not be known. After c_k meetings m_k = c_k / p_k, so 1 / (p_k m_k) = 1 / c_k, which each node counts. Hence graphs may
//! be any, agents may have different numbers of rows, and clocks may tick at different rates. What a meeting is, and that it happens whole or not at all,
//! is in `exchange.rs`.

use super::exchange::{Exchange, Rule};
use super::kernel::PairKernel;
use crate::config::ConfigError;
use crate::saved;
use serde::{Deserialize, Serialize};
use sottovoce_core::{Peers, Time};

/// Without a common clock.
#[derive(Clone, Copy, Debug)]
pub struct OwnClocks;

/// GoSta for a kernel.
pub type Gosta<K> = Exchange<K, OwnClocks>;

impl<K: PairKernel> Gosta<K> {
    /// The statistic is U2 times a factor: 1, or that of [`usual_factor`](super::kernel::usual_factor) or
    /// [`auc_factor`](super::kernel::auc_factor).
    pub fn new(kernel: K, factor: f64) -> Result<Self, ConfigError> {
        Exchange::with_rule(kernel, factor, OwnClocks)
    }
}

/// What a node knows of the statistic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// z_k.
    estimate: f64,
    /// c_k.
    meetings: u64,
}

impl Counted {
    /// z_k.
    pub fn estimate(&self) -> f64 {
        self.estimate
    }

    /// How often it has met another.
    pub fn meetings(&self) -> u64 {
        self.meetings
    }
}

impl Rule for OwnClocks {
    type Estimate = Counted;
    const BOTH_WANDER: bool = false;
    const SHARES: bool = true;

    fn side(&self, _: Time) -> usize {
        1
    }

    fn accrue(&self, _: &mut Counted, _: impl FnOnce() -> f64, _: Time) {}

    fn shared(&self, mine: &Counted) -> f64 {
        mine.estimate
    }

    fn meet(&self, mine: &mut Counted, mean: f64, h: impl FnOnce() -> f64) {
        mine.meetings += 1;
        mine.estimate = mean + (h() - mean) / mine.meetings as f64;
    }

    fn value(&self, mine: &Counted) -> f64 {
        mine.estimate
    }

    fn is_sound(&self, mine: &Counted) -> bool {
        mine.estimate.is_finite() && saved::is_count(mine.meetings)
    }

    fn wake_rate(&self, _: Peers<'_>) -> f64 {
        1.0
    }
}
