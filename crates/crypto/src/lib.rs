//! Cryptography without a network: fixed point, pads that cancel, commitments, proofs about what is committed, and two-party computation.
//!
//! This crate holds what private averaging (GOPA, thesis 4.1) and computing by pairs (thesis 3.3.4) need from cryptography, and nothing of who meets whom. It reads no
//! entropy, clock, file or environment: randomness is an argument. What each construction guarantees, against whom, and what
//! it does not, is said in one place: `proofs/README.md` of this crate, and in the comment of each module.
//!
//! | module | holds |
//! |---|---|
//! | [`fixed_point`] | numbers as integers on a declared grid, in Z_2^64 and in the scalar field |
//! | [`agreement`], [`pad`] | one agreement per pair and task; pads that cancel, each used once |
//! | [`masked`] | values under the pads of several pairs, ready to be sent |
//! | [`own_mask`] | a member's own mask, whose key is dealt in shares |
//! | [`gaussian_mask`] | the paper's Gaussian masks, as an option |
//! | [`generators`], [`commitment`], [`bits`] | Pedersen commitments to numbers, vectors and bits |
//! | [`transcript`] | binds every proof to task, round, sender and board |
//! | [`proofs`], [`batch`] | what can be proved about commitments, one proof or thousands at a time |
//! | [`contribution`] | all proofs of one member's contribution to a sum: (4.4) to (4.7) together |
//! | [`beacon`] | randomness that all members make together |
//! | [`two_party`] | oblivious transfer, garbled circuits, noise inside them, sessions of a pair; honest-but-curious members only |
//!
//! Two members publish numbers that are masked, and whose sum is not:
//!
//! ```
//! use sottovoce_crypto::{agreement::TaskKey, fixed_point::{Grid, from_ring, to_ring}, pad::Direction};
//! # use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
//! # let mut rng = ChaCha20Rng::seed_from_u64(1);
//!
//! let (task, grid) = ([7; 32], Grid::binary(32)?);
//! let keys = [TaskKey::generate(task, &mut rng), TaskKey::generate(task, &mut rng)];
//! let mut sum = 0_u64;
//! for (me, value) in [(0, 0.25), (1, 0.5)] {
//!     let mut secret = keys[me].agree(keys[1 - me].public(), 0)?;
//!     let mut published = [to_ring(grid.nearest(value)?)];
//!     let _opened_only_if_the_other_leaves = secret.stream(0, Direction::FromSmaller)?.mask(&mut published)?;
//!     sum = sum.wrapping_add(published[0]);
//! }
//! assert_eq!(grid.value(from_ring(sum)), 0.75);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod agreement;
pub mod batch;
pub mod beacon;
pub mod bits;
pub mod commitment;
pub mod contribution;
mod encoding;
pub mod fixed_point;
pub mod flaw;
pub mod gaussian_mask;
pub mod generators;
pub mod masked;
pub mod own_mask;
pub mod pad;
pub mod proofs;
mod stream;
#[cfg(test)]
mod testing;
pub mod transcript;
pub mod two_party;

pub use curve25519_dalek::scalar::Scalar;
pub use flaw::{Flaw, Unfit};
pub use transcript::Context;
