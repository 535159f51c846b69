//! The network driver: one agent per process, real sockets, real disk.
//!
//! From the inside out:
//!
//! | module | what | knows |
//! |---|---|---|
//! | [`disk`] | where bytes lie, and when they are safe | files |
//! | [`store`] | charges, state and what is to be sent, in one record | one peer's step |
//! | [`book`] | what all tasks on one data source were charged | files, an odometer |
//! | [`seat`] | which folder of a peer ran last, and that one alone runs | files, the book |
//! | [`frame`] | what peers say to each other, as bytes | limits |
//! | [`group`] | who takes part | names, keys, weights |
//! | [`node`] | one peer: its agent, its store, what came and what goes; no socket, no clock | an [`Algorithm`](sottovoce_core::Algorithm) |
//! | [`transport`] | carries frames between peers that have proved who they are | sockets, nothing of learning |
//! | [`directory`] | where members may be found | addresses |
//! | [`peer`] | the loop: a node with sockets and a clock | all of the above |
//! | [`admin`], [`status`] | what the owner can ask | counters |

pub mod admin;
pub mod book;
pub mod directory;
pub mod disk;
pub mod frame;
pub mod group;
pub mod node;
pub mod peer;
pub mod seat;
pub mod status;
pub mod store;
pub mod transport;

/// Where a peer may be found.
pub use libp2p::Multiaddr;
/// A peer's public key, as others write it down.
pub use libp2p::PeerId as Key;
