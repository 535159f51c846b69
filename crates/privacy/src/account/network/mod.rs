//! Network differential privacy: what a member, or some that collude, can learn from the token that passes them.
//!
//! | accountant | covers | value |
//! |---|---|---|
//! | [`Iteration`] | a token on the complete graph that every holder moves by a contraction and noise: private SGD, and sums too | proven |
//! | [`Cycle`] | a token that holders only add to: sums | proven, and below [`Iteration`] |
//! | [`GraphWalk`] | as [`Iteration`], on any graph: one value for each pair | proven |
//! | [`GraphPairs`] | the same for all pairs at once, by Renyi divergences | proven, and above [`GraphWalk`] for most pairs |
//! | [`WorstPair`] | the ledgers of such a walk, by the worst of these pairs | proven |
//! | [`Reissued`] | as [`Iteration`], where the token may be issued again past a member that is gone | proven |
//! | [`Ring`] | a sum that goes round a ring | proven |
//! | [`Clones`] | the histogram of a ring, by amplification by shuffling | proven |
//! | [`Gossip`] | noise once, then averaging over any graph: one value for each pair | exact |
//! | [`GossipPairs`] | the same for all pairs: the worst, the mean, and the noise for a mean | exact, but for digits that are rounded up |
//! | [`Sampled`] | the steps of a walk made by a trusted curator, against everyone else | proven |
//! | [`PathMixture`] | as [`Iteration`], over drawn paths | an [`Estimate`], never a guarantee |
//! | [`paper`] | the closed forms of the papers | not certified: as checks, and to compare with |
//!
//! Each value owns the public facts that it needs and names its [`Observer`]. Proofs: `proofs/network-iteration.md`,
//! `proofs/network-cycle.md`, `proofs/network-reissued.md`, `proofs/graph-walk.md`, `proofs/clones.md`, `proofs/gossip.md`, `proofs/sampled.md`, `proofs/network-paper.md`.

mod clones;
mod convert;
mod cycle;
mod estimate;
mod gaps;
mod graph;
mod graph_walk;
mod iteration;
pub mod paper;
mod reissued;
mod ring;
mod sampled;
mod series;
mod spacing;
mod staircase;
#[cfg(test)]
mod testing;
mod walk;

pub use clones::Clones;
pub use cycle::Cycle;
pub use estimate::{Estimate, PathMixture};
pub use graph::{Gossip, GossipPairs, PAIRS_EDGES_MAX, PAIRS_MEMBERS_MAX, PaperGossip, WorstAndMean};
pub use graph_walk::{GraphPairs, GraphWalk, WorstPair};
pub use iteration::Iteration;
pub use reissued::Reissued;
pub use ring::{BadRing, Ring, RingBy, Shares, reissue_law};
pub use sampled::Sampled;
pub use spacing::Spacing;
pub use staircase::staircase;
pub use walk::{BadNetwork, Observer, Walk};
