//! The contract between one agent's algorithm and whatever runs it.
//!
//! An [`Algorithm`] is written once, as what one agent does, with no input or output of its own: no clock,
//! file, socket, environment or global random generator. A driver (the simulator, or the network) owns the
//! agents, lends each its data and its view of the world ([`Cx`]) at every call, and carries out what the
//! agent left in its [`Outbox`].
//!
//! An agent can speak in two ways. A *post* is its latest released vector: it overwrites the last one and is
//! read by every neighbour. A *letter* goes to one peer; it is lossy, or durable ([`Delivery`]).

mod algorithm;
mod coin;
mod context;
pub mod graph;
mod peers;
mod posts;
mod reject;
mod role;
mod time;
pub mod wire;

pub use algorithm::{Activity, Algorithm, CannotResume, Neighbours};
pub use coin::Coin;
pub use context::{Cx, DURABLE_WAITING_MAX, Delivery, Full, Outbox, OutgoingLetter};
pub use graph::Graph;
pub use peers::{Edge, PeerId, Peers};
pub use posts::{Posts, Rows, UNHEARD};
pub use reject::Reject;
pub use role::Role;
pub use time::Time;
pub use wire::{NoLetter, Wire};
