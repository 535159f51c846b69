//! The network driver: one agent per process, real sockets, real disk.
//!
//! From the inside out:
//!
//! | module | what | knows |
//! |---|---|---|
//! | [`disk`] | where bytes lie, and when they are safe | files |
//! | [`store`] | charges, state and what is to be sent, in one record | one peer's step |
//! | [`frame`] | what peers say to each other, as bytes | limits |
//! | [`node`] | one peer: its agent, its store, what came and what goes; no socket, no clock | an [`Algorithm`](sottovoce_core::Algorithm) |

pub mod disk;
pub mod frame;
pub mod group;
pub mod node;
pub mod store;
