//! Damages valid messages, with their structure in mind.

use sottovoce_core::Coin;

/// Makes inputs.
pub struct Mutator {
    coin: Coin,
    valid: Vec<Vec<u8>>,
}

/// The longest input.
const LENGTH_MAX: usize = 1 << 14;

/// Numbers at which arithmetic, or a check, may go wrong.
const NUMBERS: [f64; 14] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    1e75,
    -1e75,
    1.000_000_000_000_1e75,
    f64::MAX,
    f64::INFINITY,
    f64::NEG_INFINITY,
    f64::NAN,
    f64::MIN_POSITIVE,
    5e-324,
    1e-300,
];

impl Mutator {
    /// The same seed and the same valid messages make the same inputs.
    pub fn new(seed: u64) -> Self {
        Mutator { coin: Coin::new(seed, 0, 0), valid: Vec::new() }
    }

    /// From now on damages these.
    pub fn learn(&mut self, valid: Vec<Vec<u8>>) {
        self.valid = valid;
    }

    /// The next input.
    pub fn next(&mut self, out: &mut Vec<u8>) {
        out.clear();
        let coin = &mut self.coin;
        if self.valid.is_empty() || coin.below(16) == 0 {
            // Noise, with a first byte that often means something.
            let length = coin.below(80);
            out.extend((0..length).map(|_| coin.bits() as u8));
            if coin.below(2) == 0 {
                out.iter_mut().take(1).for_each(|kind| *kind %= 24);
            }
            return;
        }
        out.extend_from_slice(&self.valid[coin.below(self.valid.len())]);
        // Once in a while it stays as it is, so that the target goes on.
        let damages = [0, 1, 1, 1, 2, 4][coin.below(6)];
        for _ in 0..damages {
            self.damage(out);
        }
        out.truncate(LENGTH_MAX);
    }

    fn damage(&mut self, out: &mut Vec<u8>) {
        let coin = &mut self.coin;
        let length = out.len();
        if length == 0 {
            out.push(coin.bits() as u8);
            return;
        }
        let at = coin.below(length);
        match coin.below(12) {
            0 => out[at] ^= 1 << coin.below(8),
            1 => out[at] = coin.bits() as u8,
            // The kind.
            2 => out[0] = out[0].wrapping_add(coin.below(5) as u8).wrapping_sub(2),
            3 => out.truncate(at),
            4 => out.extend((0..1 + coin.below(24)).map(|_| 0)),
            // A number, wherever one may lie.
            5 | 6 if length >= 8 => {
                let from =
                    if coin.below(2) == 0 { length - 8 * (1 + coin.below(length / 8)) } else { at.min(length - 8) };
                out[from..from + 8].copy_from_slice(&NUMBERS[coin.below(NUMBERS.len())].to_le_bytes());
            }
            // A count or a length, of eight bytes or of two.
            7 if length >= 8 => {
                let from = at.min(length - 8);
                let old = u64::from_le_bytes(out[from..from + 8].try_into().expect("eight bytes"));
                let new = [old.wrapping_add(1), old.wrapping_sub(1), 0, 1, u64::MAX, u64::MAX - 1, 1 << 62, 1 << 32];
                out[from..from + 8].copy_from_slice(&new[coin.below(new.len())].to_le_bytes());
            }
            8 if length >= 2 => {
                let from = at.min(length - 2);
                let new = [0, 1, 64, 65, 512, 513, 0xff, 0xffff][coin.below(8)];
                out[from..from + 2].copy_from_slice(&u16::to_le_bytes(new));
            }
            // A piece of another message, in place of what was there.
            9 => {
                let other = &self.valid[coin.below(self.valid.len())];
                if !other.is_empty() {
                    let from = coin.below(other.len());
                    out.truncate(at);
                    out.extend_from_slice(&other[from..]);
                }
            }
            // Twice, or without a piece.
            10 => {
                let piece: Vec<u8> = out[at..length.min(at + 64)].to_vec();
                let place = coin.below(length);
                out.splice(place..place, piece);
            }
            _ => drop(out.drain(at..length.min(at + 1 + coin.below(16)))),
        }
    }
}
