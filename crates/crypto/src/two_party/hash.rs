//! The hash of labels: fixed-key AES-128 with a tweak.
//!
//! ```text
//! H(x, i) = pi(pi(x) xor i) xor pi(x),      pi = AES-128 under one public key          [TMMO: Guo, Katz, Wang and Yu 2020]
//! ```
//!
//! **Guarantee.** With pi as a random permutation H is *tweakable circular correlation robust*: for a secret Delta of
//! 127 random bits, the numbers H(x xor Delta, i) xor b Delta look uniform and independent to whoever chooses all x, i
//! and b, as long as no pair (x, i) comes twice with different b. That x may be chosen matters here: the evaluator
//! draws its own labels (`extension`). The advantage of somebody who computes pi p times and sees q hashes is of the
//! order of (p q + q^2) / 2^127.
//!
//! **The key** is fixed for one session and public: a hash of all that the session began with. So what somebody computes to
//! attack one session does not help against another (Guo, Katz, Wang, Weng and Yu 2020, the multi-instance setting).
//!
//! **Time.** AES comes from the processor's instructions where it has them, chosen at run time, and else from constant-time
//! arithmetic (crate `aes`); nothing else here depends on a label.

use aes::{
    Aes128Enc, Block,
    cipher::{BlockCipherEncrypt, KeyInit},
};
use zeroize::Zeroize;

/// The most hashes of one call: four for each lane of a garbled gate.
pub const HASHES_MAX: usize = 4 * super::LANES_MAX;

/// The hash under one fixed key, and room for its work. The room is wiped when dropped.
pub struct LabelHash {
    cipher: Aes128Enc,
    inner: [Block; HASHES_MAX],
    outer: [Block; HASHES_MAX],
}

impl LabelHash {
    /// The hash under this public key.
    pub fn new(key: &[u8; 16]) -> LabelHash {
        let cipher = Aes128Enc::new(key.into());
        LabelHash { cipher, inner: [Block::default(); HASHES_MAX], outer: [Block::default(); HASHES_MAX] }
    }

    /// Sets one of the labels to hash next.
    pub(super) fn set(&mut self, at: usize, label: u128) {
        self.inner[at] = label.to_le_bytes().into();
    }

    /// Hashes rows of labels, one label for each lane in a row. All rows of one of the two halves of a gate have one
    /// tweak in each lane: twice the number of the lane's gate, and one more in the second half.
    pub(super) fn run(&mut self, rows: usize, lanes: usize, first_gate: u64) {
        let (inner, outer) = (&mut self.inner[..rows * lanes], &mut self.outer[..rows * lanes]);
        self.cipher.encrypt_blocks(inner);
        for (row, (outer, inner)) in outer.chunks_exact_mut(lanes).zip(inner.chunks_exact(lanes)).enumerate() {
            let mut tweak = 2 * u128::from(first_gate) + u128::from(2 * row >= rows);
            for (outer, inner) in outer.iter_mut().zip(inner) {
                *outer = (number(inner) ^ tweak).to_le_bytes().into();
                tweak += 2;
            }
        }
        self.cipher.encrypt_blocks(outer);
    }

    /// The hash of the label at this place.
    pub(super) fn get(&self, at: usize) -> u128 {
        number(&self.inner[at]) ^ number(&self.outer[at])
    }

    /// The hash of one label with any tweak.
    pub fn hash(&mut self, label: u128, tweak: u128) -> u128 {
        self.set(0, label);
        self.cipher.encrypt_blocks(&mut self.inner[..1]);
        self.outer[0] = (number(&self.inner[0]) ^ tweak).to_le_bytes().into();
        self.cipher.encrypt_blocks(&mut self.outer[..1]);
        self.get(0)
    }
}

impl Drop for LabelHash {
    fn drop(&mut self) {
        for block in self.inner.iter_mut().chain(&mut self.outer) {
            block.as_mut_slice().zeroize();
        }
    }
}

fn number(block: &Block) -> u128 {
    u128::from_le_bytes((*block).into())
}

/// Room for a stream of pseudorandom labels, wiped when dropped: one for many columns, since wiping takes longer than a
/// short stream.
pub(super) struct Stream {
    /// What the widest vector unit makes in one go.
    blocks: [Block; 64],
}

impl Stream {
    pub(super) fn new() -> Stream {
        Stream { blocks: [Block::default(); 64] }
    }

    /// The blocks AES(key, first), AES(key, first + 1), ... as numbers.
    pub(super) fn fill(&mut self, cipher: &Aes128Enc, first: u128, out: &mut [u128]) {
        let mut counter = first;
        for out in out.chunks_mut(self.blocks.len()) {
            let blocks = &mut self.blocks[..out.len()];
            for block in &mut *blocks {
                *block = counter.to_le_bytes().into();
                counter += 1;
            }
            cipher.encrypt_blocks(blocks);
            for (out, block) in out.iter_mut().zip(blocks) {
                *out = number(block);
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.blocks.iter_mut().for_each(|block| block.as_mut_slice().zeroize());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AES-128 as FIPS 197 describes it, byte by byte, from nothing but its definition.
    mod plain {
        fn times(mut a: u8, mut b: u8) -> u8 {
            let mut product = 0;
            while b != 0 {
                product ^= if b & 1 == 1 { a } else { 0 };
                a = a << 1 ^ if a & 0x80 != 0 { 0x1b } else { 0 };
                b >>= 1;
            }
            product
        }

        fn substitute(byte: u8) -> u8 {
            let inverse = (0..=255).find(|other| times(byte, *other) == 1).unwrap_or(0);
            (0..5).fold(0x63, |sum, i| sum ^ inverse.rotate_left(i))
        }

        fn expand(key: [u8; 16]) -> [[u8; 16]; 11] {
            let (mut keys, mut round_constant) = ([key; 11], 1);
            for round in 1..11 {
                for i in 0..16 {
                    let before = keys[round - 1][i];
                    keys[round][i] = before
                        ^ match i {
                            0 => substitute(keys[round - 1][13]) ^ round_constant,
                            1..=2 => substitute(keys[round - 1][13 + i]),
                            3 => substitute(keys[round - 1][12]),
                            _ => keys[round][i - 4],
                        };
                }
                round_constant = times(round_constant, 2);
            }
            keys
        }

        pub fn encrypt(key: [u8; 16], block: [u8; 16]) -> [u8; 16] {
            let keys = expand(key);
            let mut state: [u8; 16] = std::array::from_fn(|i| block[i] ^ keys[0][i]);
            for (round, key) in keys.iter().enumerate().skip(1) {
                // The byte in row i % 4 comes from i % 4 columns further on.
                let shifted: [u8; 16] = std::array::from_fn(|i| substitute(state[(i + 4 * (i % 4)) % 16]));
                state = std::array::from_fn(|i| {
                    let column = |row: usize| shifted[i / 4 * 4 + (i + row) % 4];
                    let mixed = times(column(0), 2) ^ times(column(1), 3) ^ column(2) ^ column(3);
                    (if round == 10 { shifted[i] } else { mixed }) ^ key[i]
                });
            }
            state
        }
    }

    fn bytes(hex: &str) -> [u8; 16] {
        std::array::from_fn(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("digits"))
    }

    /// FIPS 197, appendices B and C.1.
    #[test]
    fn the_cipher_and_the_plain_one_are_that_of_the_standard() {
        for (key, block, result) in [
            (
                "2b7e151628aed2a6abf7158809cf4f3c",
                "3243f6a8885a308d313198a2e0370734",
                "3925841d02dc09fbdc118597196a0b32",
            ),
            (
                "000102030405060708090a0b0c0d0e0f",
                "00112233445566778899aabbccddeeff",
                "69c4e0d86a7b0430d8cdb78070b4c55a",
            ),
        ] {
            assert_eq!(plain::encrypt(bytes(key), bytes(block)), bytes(result));
            let mut stream = [0];
            let cipher = Aes128Enc::new(&bytes(key).into());
            Stream::new().fill(&cipher, u128::from_le_bytes(bytes(block)), &mut stream);
            assert_eq!(stream[0].to_le_bytes(), bytes(result));
        }
    }

    #[test]
    fn the_hash_is_that_of_its_formula_with_the_plain_cipher() {
        let key = bytes("8899aabbccddeeff0011223344556677");
        let mut hash = LabelHash::new(&key);
        let pi = |x: u128| u128::from_le_bytes(plain::encrypt(key, x.to_le_bytes()));
        for (label, tweak) in [(0, 0), (1, 0), (0, 1), (u128::MAX, u128::MAX), (12345 << 64 | 678, 1 << 32)] {
            assert_eq!(hash.hash(label, tweak), pi(pi(label) ^ tweak) ^ pi(label), "{label} {tweak}");
        }
    }

    /// One label after another gives what all of them give at once, in any number of lanes, with the tweaks of their gates.
    #[test]
    fn rows_of_labels_are_hashed_with_the_tweaks_of_their_gates() {
        for lanes in [1, 2, 15, 16, 17, 32] {
            for rows in [2, 4] {
                let mut hash = LabelHash::new(&[7; 16]);
                let label = |at: usize| (at as u128 + 1) * 0x1234_5678_9abc_def1;
                (0..rows * lanes).for_each(|at| hash.set(at, label(at)));
                hash.run(rows, lanes, 1000);
                let together: Vec<u128> = (0..rows * lanes).map(|at| hash.get(at)).collect();
                for (at, result) in together.into_iter().enumerate() {
                    let gate = 1000 + (at % lanes) as u128;
                    let second = u128::from(at >= rows * lanes / 2);
                    assert_eq!(result, hash.hash(label(at), 2 * gate + second), "{rows} rows, {lanes} lanes, {at}");
                }
            }
        }
    }

    #[test]
    fn the_stream_goes_on_where_it_stopped() {
        let cipher = Aes128Enc::new(&[3; 16].into());
        let mut whole = [0; 200];
        Stream::new().fill(&cipher, 10, &mut whole);
        for split in [1, 63, 64, 65, 199] {
            let mut parts = [0; 200];
            let (first, second) = parts.split_at_mut(split);
            let mut stream = Stream::new();
            stream.fill(&cipher, 10, first);
            stream.fill(&cipher, 10 + split as u128, second);
            assert_eq!(parts, whole);
        }
    }
}
