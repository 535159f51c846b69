//! Randomness that nobody outside the machine knows.

use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Infallible, SeedableRng, TryCryptoRng, TryRng},
};
use std::fmt;
use thiserror::Error;

/// The operating system gave no entropy. Without it there is no secret noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the operating system gave no entropy: {0}")]
pub struct NoEntropy(getrandom::Error);

/// ChaCha20 with a key of 256 bits from the operating system, drawn once.
///
/// There is no other way to make one, it cannot be copied, and it does not show its state: whoever knows the state knows the
/// noise. A process that forks after making one would use the same noise twice; no part of this project forks.
pub struct OsRandom(ChaCha20Rng);

impl OsRandom {
    /// A generator with a fresh key.
    pub fn new() -> Result<Self, NoEntropy> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(NoEntropy)?;
        Ok(OsRandom(ChaCha20Rng::from_seed(key)))
    }
}

impl fmt::Debug for OsRandom {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("OsRandom").finish_non_exhaustive()
    }
}

impl TryRng for OsRandom {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.0.try_next_u32()
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0.try_next_u64()
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.0.try_fill_bytes(bytes)
    }
}

impl TryCryptoRng for OsRandom {}
