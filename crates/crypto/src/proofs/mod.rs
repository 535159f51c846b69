//! Proofs about what is committed, one file each: the statement, the protocol, why it is sound and what it costs.
//!
//! All of them are sigma protocols or inner product arguments made non-interactive by the one
//! [`Transcript`], so each is bound to a task, a round, a sender and a board. All are zero-knowledge in the
//! random oracle model and sound under the discrete logarithm assumption. Each has `prove`, `to_bytes`, `from_bytes`, `verify`
//! (by itself) and `verify_in` (its equations join a [`Batch`](crate::batch::Batch), which must then be finished).

pub mod antisymmetry;
pub mod bit;
pub mod bit_sum;
mod inner_product;
pub mod link;
pub mod noise;
pub mod opening;
pub mod range;
pub mod sum;
pub mod value;

use crate::{commitment::Commitment, transcript::Transcript};
use curve25519_dalek::scalar::Scalar;
use std::iter;

/// The most commitments in one statement: bounds what a verifier does for one message.
pub const COMMITMENTS_MAX: usize = 1 << 16;

/// Appends a list of commitments and its length.
fn append_commitments(transcript: &mut Transcript, label: &str, commitments: &[Commitment]) {
    transcript.append_number(label, commitments.len() as u64);
    for commitment in commitments {
        transcript.append(label, &commitment.to_bytes());
    }
}

/// 1, y, y^2, and so on.
fn powers(y: Scalar) -> impl Iterator<Item = Scalar> {
    iter::successors(Some(Scalar::ONE), move |power| Some(power * y))
}

/// The inner product of two lists of one length.
fn dot_product(a: &[Scalar], b: &[Scalar]) -> Scalar {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
