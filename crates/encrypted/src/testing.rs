//! What tests of this crate share.

use crate::polar::{CompactSet, Consensus, Polar, PolarConfig, Scope, StepSize, Variant, Weights};
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
