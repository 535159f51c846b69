//! Collaborative learning by decentralized block coordinate descent (Bellet et al. 2018, sections 2.3 and 3; thesis, chapter 2).
//!
//! One update (`update.rs`), on two axes: where the neighbours' models come from, and whether gradients are exact.
//!
//! | | posts: neighbours are known | letters: neighbours come and go |
//! |---|---|---|
//! | exact | [`CoordinateDescent`] | [`DescentByLetters`] |
//! | private | [`PrivateCoordinateDescent`] | [`PrivateDescentByLetters`] |
//!
//! A column is how models travel and who keeps them: `posts.rs` and `letters.rs`; an update sees `neighbours.rs` of it. A row is what
//! an agent does with its data at a wake, and what of it leaves: [`Descent`], in `exact.rs` and `noise.rs`. Where the graph is learned,
//! too, others also ask for losses: `disclosure.rs`.

mod broadcast;
mod disclosure;
mod exact;
mod letter;
mod letters;
mod neighbours;
mod noise;
mod posts;
mod update;
mod warm_start;

pub use disclosure::PrivateDescentByLettersConfig;
pub use exact::{BlockStep, CoordinateDescentConfig, Start};
pub use letter::ModelLetter;
pub use noise::{PrivateCoordinateDescentConfig, WarmStart};

use crate::Shard;
use crate::personal::graph::Turn;
use disclosure::Disclosed;
use neighbours::NeighbourModels;
use serde::{Serialize, de::DeserializeOwned};
use sottovoce_core::{CannotResume, Neighbours, Peers};
use sottovoce_privacy::{Exhausted, Gate, Released};
use update::{Stepped, View};

/// Coordinate descent over a known graph.
pub type CoordinateDescent = posts::ByPosts<exact::ExactDescent>;
/// Private coordinate descent over a known graph.
pub type PrivateCoordinateDescent = posts::ByPosts<noise::PrivateDescent>;
/// Coordinate descent for neighbours that come and go.
pub type DescentByLetters = letters::ByLetters<exact::ExactDescent>;
/// Private coordinate descent for neighbours that come and go.
pub type PrivateDescentByLetters = letters::ByLetters<noise::PrivateDescent>;

/// What an agent does with its data at a wake, and what of it leaves.
pub trait Descent: Sync {
    /// What an agent's steps need: what follows from its data, and how far it has come.
    type Block: Send;
    /// What of that it must find again.
    type Saved: Serialize + DeserializeOwned + Default;
    /// An agent's model and loss, as others may know them.
    type Disclosed: Disclosed;

    /// The block of an agent that enters.
    fn block(&self, shard: Shard<'_>) -> Self::Block;

    /// The model of an agent that has said nothing, and what others may know of it.
    fn disclosed(&self, shard: Shard<'_>) -> Self::Disclosed;

    /// Whether everyone knows that models start at zero.
    fn starts_at_zero(&self) -> bool;

    /// The model that an agent enters with, if it says one.
    fn first(
        &self,
        block: &mut Self::Block,
        shard: Shard<'_>,
        gate: &mut Gate,
    ) -> Result<Option<Released<Box<[f64]>>>, Exhausted>;

    /// Where a graph is learned, too: whose turn it is.
    fn turn(
        &self,
        _block: &Self::Block,
        _disclosed: &mut Self::Disclosed,
        _shard: Shard<'_>,
        _turn: Turn,
        _gate: &mut Gate,
    ) -> Result<(), Exhausted> {
        Ok(())
    }

    /// One step; none where nothing moves.
    fn step<'m, N: NeighbourModels>(
        &self,
        block: &mut Self::Block,
        shard: Shard<'_>,
        view: View<'_, 'm, N>,
        gate: &mut Gate,
    ) -> Result<Option<Stepped<'m>>, Exhausted>;

    /// What the block cannot be made from without.
    fn save(&self, block: &Self::Block) -> Self::Saved;

    /// Makes the block again.
    fn resume(
        &self,
        saved: Self::Saved,
        shard: Shard<'_>,
        peers: Peers<'_>,
        neighbours: Neighbours,
    ) -> Result<Self::Block, CannotResume>;
}
