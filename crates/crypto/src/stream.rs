//! A stream of pseudorandom bytes from a key: ChaCha20, as RFC 8439 has it, with a nonce that names the use.
//!
//! The output is indistinguishable from uniform bytes to whoever lacks the key (the pseudorandom function assumption on
//! ChaCha20). Two streams are independent if their keys or their nonces differ. The block counter has 32 bits, so a stream
//! ends after 256 GiB; users of this module bound what they take far below that.

use chacha20::{
    ChaCha20,
    cipher::{KeyIvInit, StreamCipher},
};
use curve25519_dalek::scalar::Scalar;
use zeroize::Zeroizing;

/// The key of one stream; wiped when dropped.
pub(crate) type Key = Zeroizing<[u8; 32]>;

/// What a stream is for, and of which round: twelve bytes, the nonce.
pub(crate) fn nonce(purpose: &[u8; 4], number: u64) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[..4].copy_from_slice(purpose);
    nonce[4..].copy_from_slice(&number.to_le_bytes());
    nonce
}

/// Bytes of a stream that are made at a time: what the widest vector unit makes in one go, and little to wipe afterwards.
const CHUNK: usize = 1024;

/// Pseudorandom bytes, in order. The cipher wipes its state when dropped.
pub(crate) struct KeyStream {
    cipher: ChaCha20,
}

impl KeyStream {
    pub(crate) fn new(key: &[u8; 32], nonce: &[u8; 12]) -> KeyStream {
        KeyStream { cipher: ChaCha20::new(key.into(), nonce.into()) }
    }

    /// The next bytes.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        self.cipher.write_keystream(bytes);
    }

    /// The next 32 bytes, as a key.
    pub(crate) fn key(&mut self) -> Key {
        let mut key = Key::default();
        self.fill(&mut *key);
        key
    }

    /// The next 64 bytes modulo the order of the group: within 2^-260 of uniform.
    pub(crate) fn scalar(&mut self) -> Scalar {
        let mut wide = Zeroizing::new([0; 64]);
        self.fill(&mut *wide);
        Scalar::from_bytes_mod_order_wide(&wide)
    }

    /// Adds the next elements of Z_2^64 to the values, or subtracts them.
    pub(crate) fn add_to(&mut self, values: &mut [u64], subtract: bool) {
        // One number is the common case of a simulation; it does not pay for clearing a large buffer.
        if let [value] = values {
            let mut bytes = Zeroizing::new([0; 8]);
            self.fill(&mut *bytes);
            apply(value, u64::from_le_bytes(*bytes), subtract);
            return;
        }
        let mut buffer = Zeroizing::new([0_u8; CHUNK]);
        for values in values.chunks_mut(CHUNK / 8) {
            let bytes = &mut buffer[..values.len() * 8];
            self.fill(bytes);
            let (words, _) = bytes.as_chunks::<8>();
            // The branch is outside of the loop, so that both loops become vector instructions.
            if subtract {
                for (value, word) in values.iter_mut().zip(words) {
                    *value = value.wrapping_sub(u64::from_le_bytes(*word));
                }
            } else {
                for (value, word) in values.iter_mut().zip(words) {
                    *value = value.wrapping_add(u64::from_le_bytes(*word));
                }
            }
        }
    }
}

fn apply(value: &mut u64, pad: u64, subtract: bool) {
    *value = if subtract { value.wrapping_sub(pad) } else { value.wrapping_add(pad) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8439, section 2.3.2: the block of counter 1. The stream begins at counter 0, so it is the second block.
    #[test]
    fn the_stream_is_that_of_the_standard() {
        let key: [u8; 32] = std::array::from_fn(|i| i as u8);
        let nonce = [0, 0, 0, 9, 0, 0, 0, 0x4a, 0, 0, 0, 0];
        let mut bytes = [0; 128];
        KeyStream::new(&key, &nonce).fill(&mut bytes);
        assert_eq!(bytes[64..72], [0x10, 0xf1, 0xe7, 0xe4, 0xd1, 0x3b, 0x59, 0x15]);
        assert_eq!(bytes[120..], [0xcb, 0xd0, 0x83, 0xe8, 0xa2, 0x50, 0x3c, 0x4e]);
    }

    #[test]
    fn values_get_the_bytes_of_the_stream_in_order_whatever_their_number() {
        for count in [0, 1, 2, 511, 512, 513, 2000] {
            let key = [7; 32];
            let mut bytes = vec![0; count * 8];
            KeyStream::new(&key, &[0; 12]).fill(&mut bytes);
            let words: Vec<u64> =
                bytes.chunks(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect();
            let mut values = vec![0; count];
            KeyStream::new(&key, &[0; 12]).add_to(&mut values, false);
            assert_eq!(values, words);
            KeyStream::new(&key, &[0; 12]).add_to(&mut values, true);
            assert!(values.iter().all(|value| *value == 0));
        }
    }
}
