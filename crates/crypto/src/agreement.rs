//! One agreement per pair and task: X25519, then HKDF-SHA256.
//!
//! Each member draws one key for a task and publishes the public half. Every pair then shares a [`PairSecret`]:
//!
//! ```text
//! shared = X25519(own secret, other's public key)                      [RFC 7748; results of small order are refused]
//! secret = HKDF-SHA256(salt = "sottovoce/pair/v1", shared, info = task | smaller key | larger key), 32 bytes [RFC 5869]
//! ```
//!
//! The two public keys and the task's digest are in `info`, so that a secret is that of one pair in one task whatever an
//! adversary makes of the keys. The order of the keys as bytes also decides who adds pads and who subtracts them.
//!
//! **Guarantee.** Who sees all public keys cannot tell the secret of two honest members from random bytes: computational
//! Diffie-Hellman on Curve25519, HMAC-SHA256 as a random oracle. **Not guaranteed**: that a public key belongs to whom it
//! seems to. Keys must come over an authenticated board; whoever can replace a key in transit learns that pair's pads.

use crate::{flaw::Flaw, pad::PairSecret, stream::Key};
use hkdf::Hkdf;
use rand_core::CryptoRng;
use sha2::Sha256;
use std::fmt;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

const SALT: &[u8] = b"sottovoce/pair/v1";

/// The public half of a member's key for one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskPublicKey([u8; 32]);

impl TaskPublicKey {
    /// Reads a key that another member published. Only canonical encodings are accepted: the order of the bytes decides
    /// who adds, so one key must not have two encodings.
    pub fn from_bytes(bytes: [u8; 32]) -> Result<TaskPublicKey, Flaw> {
        // The prime is 2^255 - 19: not canonical are the numbers from it to 2^255 - 1, and all with the highest bit.
        let at_least_prime = bytes[31] == 0x7f && bytes[1..31].iter().all(|byte| *byte == 0xff) && bytes[0] >= 0xed;
        if bytes[31] > 0x7f || at_least_prime {
            return Err(Flaw::PublicKeyNotCanonical);
        }
        Ok(TaskPublicKey(bytes))
    }

    /// The key as it is published.
    pub fn to_bytes(self) -> [u8; 32] {
        self.0
    }
}

/// A member's secret key for one task. The secret is wiped when dropped.
pub struct TaskKey {
    task: [u8; 32],
    secret: StaticSecret,
    public: TaskPublicKey,
}

impl TaskKey {
    /// Draws a key for the task with this digest.
    pub fn generate(task: [u8; 32], rng: &mut impl CryptoRng) -> TaskKey {
        let mut bytes = Zeroizing::new([0; 32]);
        rng.fill_bytes(&mut *bytes);
        TaskKey::from_secret(task, &bytes)
    }

    /// The key whose secret bytes were kept by [`TaskKey::secret_bytes`].
    pub fn from_secret(task: [u8; 32], bytes: &[u8; 32]) -> TaskKey {
        let secret = StaticSecret::from(*bytes);
        let public = TaskPublicKey(PublicKey::from(&secret).to_bytes());
        TaskKey { task, secret, public }
    }

    /// The secret, for the member's own disk and nothing else. Wiped when dropped.
    pub fn secret_bytes(&self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.secret.to_bytes())
    }

    /// The half to publish.
    pub fn public(&self) -> TaskPublicKey {
        self.public
    }

    /// The secret shared with the member who published `theirs`.
    ///
    /// `first_round` is the first round whose pad was never used with this pair: zero in a new task, and after a restart one
    /// more than the last round on the member's own disk.
    pub fn agree(&self, theirs: TaskPublicKey, first_round: u64) -> Result<PairSecret, Flaw> {
        if theirs == self.public {
            return Err(Flaw::OwnPublicKey);
        }
        let shared = self.secret.diffie_hellman(&PublicKey::from(theirs.0));
        if !shared.was_contributory() {
            return Err(Flaw::SmallOrder);
        }
        let (smaller, larger) = if self.public < theirs { (self.public, theirs) } else { (theirs, self.public) };
        let mut key = Key::default();
        Hkdf::<Sha256>::new(Some(SALT), shared.as_bytes())
            .expand_multi_info(&[&self.task, &smaller.0, &larger.0], &mut *key)
            .expect("HKDF-SHA256 gives up to 8160 bytes");
        Ok(PairSecret::new(key, self.public == smaller, first_round))
    }
}

impl fmt::Debug for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskKey").field("public", &self.public).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{pad::Direction, testing::rng};

    /// What a pair's first pad adds to eight zeros.
    fn pad(key: &TaskKey, theirs: TaskPublicKey) -> Vec<u64> {
        let mut values = vec![0; 8];
        let stream = key.agree(theirs, 0).expect("a fine key").stream(0, Direction::FromSmaller).expect("unused");
        let _ = stream.mask(&mut values).expect("few numbers");
        values
    }

    #[test]
    fn both_ends_agree_and_their_pads_cancel() {
        let mut rng = rng(1);
        for _ in 0..50 {
            let (a, b) = (TaskKey::generate([1; 32], &mut rng), TaskKey::generate([1; 32], &mut rng));
            let (of_a, of_b) = (pad(&a, b.public()), pad(&b, a.public()));
            assert!(of_a.iter().zip(&of_b).all(|(a, b)| a.wrapping_add(*b) == 0));
            assert!(of_a.iter().any(|value| *value != 0));
        }
    }

    #[test]
    fn another_task_or_another_member_gives_another_secret() {
        let mut rng = rng(2);
        let secrets: [[u8; 32]; 3] = std::array::from_fn(|_| {
            let mut bytes = [0; 32];
            rand_core::Rng::fill_bytes(&mut rng, &mut bytes);
            bytes
        });
        let key = |task: u8, who: usize| TaskKey::from_secret([task; 32], &secrets[who]);
        let pads = [
            pad(&key(1, 0), key(1, 1).public()),
            pad(&key(2, 0), key(2, 1).public()),
            pad(&key(1, 0), key(1, 2).public()),
        ];
        assert_ne!(pads[0], pads[1]);
        assert_ne!(pads[0], pads[2]);
    }

    /// The u coordinates of points of small order on the curve and its twist, canonical ones.
    #[test]
    fn keys_of_small_order_are_refused() {
        let key = TaskKey::generate([1; 32], &mut rng(3));
        let mut one = [0; 32];
        one[0] = 1;
        let mut minus_one = [0xff; 32];
        (minus_one[0], minus_one[31]) = (0xec, 0x7f);
        let eight_a = [
            0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4, 0x6a, 0xda, 0x09,
            0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49, 0xb8, 0x00,
        ];
        let eight_b = [
            0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1, 0x55, 0x9c, 0x83, 0xef, 0x5b, 0x04, 0x44,
            0x5c, 0xc4, 0x58, 0x1c, 0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f, 0x11, 0x57,
        ];
        for bytes in [[0; 32], one, minus_one, eight_a, eight_b] {
            let theirs = TaskPublicKey::from_bytes(bytes).expect("canonical");
            assert_eq!(key.agree(theirs, 0).expect_err("small order"), Flaw::SmallOrder);
        }
    }

    #[test]
    fn keys_with_a_second_encoding_and_ones_own_key_are_refused() {
        let key = TaskKey::generate([1; 32], &mut rng(4));
        assert_eq!(key.agree(key.public(), 0).expect_err("own"), Flaw::OwnPublicKey);
        let mut high = key.public().to_bytes();
        high[31] |= 0x80;
        assert_eq!(TaskPublicKey::from_bytes(high), Err(Flaw::PublicKeyNotCanonical));
        for low in 0xed..=0xff {
            let mut bytes = [0xff; 32];
            (bytes[0], bytes[31]) = (low, 0x7f);
            assert_eq!(TaskPublicKey::from_bytes(bytes), Err(Flaw::PublicKeyNotCanonical));
        }
    }

    #[test]
    fn a_key_shows_nothing_of_its_secret() {
        let key = TaskKey::generate([1; 32], &mut rng(5));
        let shown = format!("{key:?}");
        assert!(shown.contains("public") && !shown.contains("secret:"), "{shown}");
        assert_eq!(format!("{:?}", key.agree(TaskKey::generate([1; 32], &mut rng(6)).public(), 0)), "Ok(PairSecret)");
    }
}
