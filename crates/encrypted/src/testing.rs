//! What tests of this crate share.

use crate::gopa::{Gopa, GopaConfig};
use crate::polar::{CompactSet, Consensus, Polar, PolarConfig, Scope, StepSize, Variant, Weights};
use sottovoce_algorithms::Bounds;
use sottovoce_algorithms::token::{ring::RingUnit, walk::Goal};
use sottovoce_core::PeerId;

/// A run of POLAR-SGD with three servers, the last three agents.
pub fn small_polar(agents: u32, dimension: usize) -> Polar {
    let config = PolarConfig {
        agents,
        servers: (agents.saturating_sub(3)..agents).map(PeerId).collect(),
        servers_each: 3,
        colluders: 1,
        dimension,
        variant: Variant::ClientAveraged,
        scope: Scope::Block,
        weights: Weights::PerNumber,
        consensus_every: 3,
        rounds: 5,
        weight: 2.0,
        weight_bound: 20.0,
        noise_bound: 0.5,
        set: CompactSet::Box(10.0),
        start: 0.0,
        batch: 4,
        step: StepSize { first: 0.01, offset: 1.0, power: 1.0 },
        consensus: Consensus::Secure,
        links: Vec::new(),
        timeout: 5.0,
        private: None,
    };
    Polar::new(config).expect("good parameters")
}

/// Sums under pads, of all agents.
pub fn small_gopa(agents: u32, columns: u32) -> Gopa {
    let config = GopaConfig {
        members: agents,
        finishing: 3,
        others: 2,
        neighbours: 4,
        threshold: 2,
        rounds: 3,
        board: PeerId(0),
        columns,
        range: Bounds { low: -1.0, high: 1.0 },
        unit: RingUnit::Record,
        goal: Goal::Mean,
        learns: None,
        noise: None,
        timeout: 5.0,
    };
    Gopa::new(config).expect("good parameters")
}
