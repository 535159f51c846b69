//! What tests of this crate share.

use crate::transcript::Context;
use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};

/// A generator from a seed.
pub(crate) fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

/// A context that differs in every field from others with another number.
pub(crate) fn context(number: u8) -> Context {
    Context { task: [number; 32], round: u64::from(number), sender: [number; 32], board: [number; 32] }
}

/// All contexts that differ from the given one in exactly one field.
pub(crate) fn other_contexts(of: &Context) -> [Context; 4] {
    [
        Context { task: [0xee; 32], ..*of },
        Context { round: of.round + 1, ..*of },
        Context { sender: [0xee; 32], ..*of },
        Context { board: [0xee; 32], ..*of },
    ]
}
