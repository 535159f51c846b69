//! Oblivious transfer extension: Ishai, Kilian, Nissim and Petrank 2003, in the form of Asharov, Lindell, Schneider and
//! Zohner 2013.
//!
//! From 128 base transfers, as many as one likes, for two AES blocks and 16 bytes each. What comes out is *correlated*:
//! the sender has q_j and one secret Delta, the receiver, who chose r_j, has t_j:
//!
//! ```text
//! base        the extension's receiver is the sender of 128 base transfers with keys k_i^0, k_i^1; its sender chose bit i of Delta in the i-th
//! receiver    column i:  T^i = G(k_i^0),   u^i = G(k_i^0) xor G(k_i^1) xor r                                   ->  u^0 .. u^127
//! sender      column i:  Q^i = G(k_i^(Delta_i)) xor Delta_i u^i  =  T^i xor Delta_i r
//! rows        q_j = t_j xor r_j Delta
//! ```
//!
//! G is AES-128 in counter mode; its counter only goes forward, so no part of a stream is used twice. With Delta as the
//! secret of free XOR, q_j *is* the label for zero of the receiver's j-th input bit and t_j the label that it gets:
//! nothing else has to be sent. This takes a hash that stays safe when the evaluator knows how its labels were drawn
//! (`hash`).
//!
//! **Guarantee**, against honest-but-curious members: the sender learns nothing of r (each u^i hides it behind a stream
//! of which the sender lacks the key); the receiver nothing of Delta. AES-128 is a pseudorandom function. **Not
//! guaranteed**: anything against a receiver that uses different r in different columns; it would learn bits of Delta.

use super::{base_transfer::TransferKey, half_gates::mask, hash::Stream, transpose::transpose};
use aes::{Aes128Enc, cipher::KeyInit};
use zeroize::{Zeroize, Zeroizing};

/// Base transfers of an extension: the bits of Delta.
pub const COLUMNS: usize = 128;
/// Transfers are made in blocks of so many.
pub const BLOCK: usize = 128;
/// Bytes that the receiver sends for a block of transfers.
pub const BLOCK_BYTES: usize = COLUMNS * BLOCK / 8;

/// Labels of many transfers; wiped when dropped.
pub type Labels = Zeroizing<Vec<u128>>;

/// The receiver: knows both keys of each column.
pub struct ExtensionReceiver {
    columns: Vec<[Aes128Enc; 2]>,
    /// Blocks that were taken from every column.
    used: u64,
}

impl ExtensionReceiver {
    /// From the keys of 128 base transfers in which this member was the sender.
    pub fn new(keys: &[[TransferKey; 2]]) -> ExtensionReceiver {
        assert_eq!(keys.len(), COLUMNS, "a base transfer for each bit of Delta");
        let columns = keys.iter().map(|pair| [0, 1].map(|which| Aes128Enc::new((&*pair[which]).into()))).collect();
        ExtensionReceiver { columns, used: 0 }
    }

    /// The labels t_j for these choices, 128 to a number from the lowest bit; what the sender needs is appended to the
    /// message.
    pub fn extend(&mut self, choices: &[u128], message: &mut Vec<u8>) -> Labels {
        let blocks = choices.len();
        let mut matrix = Labels::new(vec![0; COLUMNS * blocks]);
        let mut other = Labels::new(vec![0; blocks]);
        let mut stream = Stream::new();
        for (column, keys) in matrix.chunks_exact_mut(blocks.max(1)).zip(&self.columns) {
            stream.fill(&keys[0], self.used.into(), column);
            stream.fill(&keys[1], self.used.into(), &mut other);
            for ((t, other), choices) in column.iter().zip(&*other).zip(choices) {
                message.extend_from_slice(&(t ^ other ^ choices).to_le_bytes());
            }
        }
        self.used += blocks as u64;
        rows(&matrix, blocks)
    }
}

/// The secret that the two labels of every wire differ by. In a box, so that no copy is left behind when its owner
/// moves; wiped when dropped.
pub(super) struct Delta(Box<u128>);

impl Delta {
    pub(super) fn new(delta: u128) -> Delta {
        Delta(Box::new(delta))
    }

    pub(super) fn value(&self) -> u128 {
        *self.0
    }
}

impl Drop for Delta {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// The sender: knows Delta, and the key of each column that Delta chose.
pub struct ExtensionSender {
    columns: Vec<Aes128Enc>,
    delta: Delta,
    used: u64,
}

impl ExtensionSender {
    /// From the keys of 128 base transfers in which this member chose the bits of Delta.
    pub fn new(keys: &[TransferKey], delta: u128) -> ExtensionSender {
        assert_eq!(keys.len(), COLUMNS, "a base transfer for each bit of Delta");
        let columns = keys.iter().map(|key| Aes128Enc::new((&**key).into())).collect();
        ExtensionSender { columns, delta: Delta::new(delta), used: 0 }
    }

    /// The labels q_j, from what the receiver sent for whole blocks of transfers.
    pub fn extend(&mut self, message: &[u8]) -> Labels {
        let blocks = message.len() / BLOCK_BYTES;
        assert_eq!(message.len(), blocks * BLOCK_BYTES, "whole blocks, as the decoder found them");
        let mut matrix = Labels::new(vec![0; COLUMNS * blocks]);
        let (sent, _) = message.as_chunks::<16>();
        let mut stream = Stream::new();
        for (i, (column, key)) in matrix.chunks_exact_mut(blocks.max(1)).zip(&self.columns).enumerate() {
            stream.fill(key, self.used.into(), column);
            let chosen = mask(self.delta.value() >> i);
            for (q, u) in column.iter_mut().zip(&sent[i * blocks..]) {
                *q ^= chosen & u128::from_le_bytes(*u);
            }
        }
        self.used += blocks as u64;
        rows(&matrix, blocks)
    }

    /// The secret that all pairs of labels differ by.
    pub(super) fn delta(&self) -> Delta {
        Delta::new(self.delta.value())
    }
}

/// The rows of a matrix that is given by its columns, block by block.
fn rows(columns: &[u128], blocks: usize) -> Labels {
    let mut rows = Labels::new(vec![0; BLOCK * blocks]);
    let mut square = Zeroizing::new([0; 128]);
    for (block, rows) in rows.chunks_exact_mut(BLOCK).enumerate() {
        for (i, column) in square.iter_mut().enumerate() {
            *column = columns[i * blocks + block];
        }
        transpose(&mut square);
        rows.copy_from_slice(&*square);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rng;
    use rand_core::Rng;

    fn ends(seed: u64) -> (ExtensionReceiver, ExtensionSender, u128) {
        let mut rng = rng(seed);
        let mut key = || {
            let mut key = TransferKey::default();
            rng.fill_bytes(&mut *key);
            key
        };
        let pairs: Vec<[TransferKey; 2]> = (0..COLUMNS).map(|_| [key(), key()]).collect();
        let delta = u128::from_le_bytes(*key()) | 1;
        let chosen: Vec<TransferKey> = (0..COLUMNS).map(|i| pairs[i][(delta >> i & 1) as usize].clone()).collect();
        (ExtensionReceiver::new(&pairs), ExtensionSender::new(&chosen, delta), delta)
    }

    #[test]
    fn labels_differ_by_delta_exactly_where_a_one_was_chosen() {
        let (mut receiver, mut sender, delta) = ends(1);
        let mut rng = rng(2);
        let mut all = Vec::new();
        for blocks in [1, 2, 0, 65, 3] {
            let choices: Vec<u128> =
                (0..blocks).map(|_| u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64())).collect();
            let mut message = Vec::new();
            let got = receiver.extend(&choices, &mut message);
            assert_eq!(message.len(), blocks * BLOCK_BYTES);
            let zero = sender.extend(&message);
            assert_eq!((got.len(), zero.len()), (blocks * BLOCK, blocks * BLOCK));
            for (j, (t, q)) in got.iter().zip(&*zero).enumerate() {
                assert_eq!(t ^ q, mask(choices[j / 128] >> (j % 128)) & delta, "transfer {j}");
            }
            all.extend_from_slice(&got);
        }
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count, "no label comes twice, in no batch");
    }

    /// The sender's view of two choices that could not be more different: the same lengths, and bytes that look alike.
    #[test]
    fn what_the_sender_sees_does_not_show_the_choices() {
        for choices in [[0; 64], [u128::MAX; 64]] {
            let (mut receiver, _, _) = ends(3);
            let mut message = Vec::new();
            receiver.extend(&choices, &mut message);
            let ones: u32 = message.iter().map(|byte| byte.count_ones()).sum();
            let bits = 8.0 * message.len() as f64;
            assert!((f64::from(ones) - bits / 2.0).abs() < 5.0 * (bits / 4.0).sqrt(), "{ones} of {bits}");
        }
    }
}
