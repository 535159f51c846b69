//! Algorithms that rest on cryptography, each as one agent runs it: what members send each other is under pads or inside circuits, and who can
//! open it decides what they learn.
//!
//! | module | what | sealed by |
//! |---|---|---|
//! | [`gopa`] | sums under pads that cancel, with a second mask of each member's own and shares of noise | `crypto::pad`, `crypto::own_mask` |
//! | [`polar`] | POLAR-SGD: clients and several servers, which average under pads | `crypto::masked` |
//! | [`two_party`] | statistics of pairs that compute a noisy kernel, which an aggregator alone reads | `crypto::two_party` |

pub mod gopa;
pub mod polar;
pub mod two_party;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
