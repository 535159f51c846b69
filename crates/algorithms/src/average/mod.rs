//! What all agents' data say together: one estimate, the same for everyone in the end.

pub mod gossip;
pub mod muffliato;
pub mod muffliato_sgd;
