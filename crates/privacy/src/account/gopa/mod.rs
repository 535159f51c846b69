//! Sums under masks that cancel (GOPA: Sabater, Bellet and Ramon; thesis 4.1): what a coalition learns of a member whose value is hidden by
//! the others' masks and by everybody's shares of noise.
//!
//! | what | covers | value |
//! |---|---|---|
//! | [`Gopa`] | pads on a random graph: a member's ledger, before the run | proven |
//! | [`HonestGraph`] | Gaussian masks or pads on a realised honest graph | exact for the ideal laws |
//! | [`theorem`] | the thesis's Theorem 4.1 and Corollary 4.1, and how its Table 4.1 was computed | as printed, and what is wrong with it |
//! | [`certificate`] | that the honest graph of a random choice is connected, that no coalition holds a member's own mask, how low an honest degree falls | proven |
//! | [`SpanningTree`] | the flow that the thesis's bound sends through a tree | a bound on [`HonestGraph`]'s |
//!
//! Proof: `proofs/gopa.md`.

pub mod certificate;
mod exact;
mod member;
pub mod theorem;
mod tree;

pub use exact::HonestGraph;
pub use member::{BadGopa, Gopa, GopaBy, GopaConfig};
pub use tree::SpanningTree;
