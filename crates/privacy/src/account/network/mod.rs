//! Accountants that name their observer: who sees what on a network.

mod ring;

pub use ring::{BadRing, Ring, RingBy, Shares};
