//! What a peer did wrong.

use sottovoce_privacy::Exhausted;
use thiserror::Error;

/// Why something that a peer sent was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub enum Reject {
    /// The bytes are no message of this algorithm.
    #[error("not a message of this algorithm")]
    Malformed,
    /// A number is NaN, infinite, or beyond [`NUMBER_MAX`](crate::wire::NUMBER_MAX).
    #[error("a number is not finite, or beyond all bounds")]
    NotFinite,
    /// A vector has another length than the task's models.
    #[error("a vector of the wrong length")]
    WrongDimension,
    /// The sender is not a neighbour.
    #[error("the sender is not a neighbour")]
    NotANeighbour,
    /// An old message again, or one that answers nothing that was asked.
    #[error("out of turn")]
    OutOfTurn,
    /// Answering would exceed the privacy budget.
    #[error("answering would exceed the privacy budget")]
    Exhausted,
    /// Too many durable letters wait for whoever the answer would go to.
    #[error("too many durable letters wait for the receiver of the answer")]
    Full,
}

impl From<Exhausted> for Reject {
    fn from(_: Exhausted) -> Self {
        Reject::Exhausted
    }
}
