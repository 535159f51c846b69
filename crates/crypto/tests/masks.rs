//! Pads in use: a published sum is the sum of those who finished, to the last bit, whoever leaves and whatever is opened.

use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};
use sottovoce_crypto::{
    agreement::TaskKey,
    fixed_point::{Grid, from_ring, sum_fits, to_ring},
    pad::{Direction, PairSecret, RevealedPad, SpentPad},
};

const ROUNDS: u64 = 3;

/// Members with their keys, and of each pair both ends of the secret.
struct Members {
    secrets: Vec<Vec<Option<PairSecret>>>,
}

impl Members {
    /// A random graph in which each member picks some others.
    fn new(n: usize, picks: usize, rng: &mut ChaCha20Rng) -> Members {
        let keys: Vec<TaskKey> = (0..n).map(|_| TaskKey::generate([6; 32], rng)).collect();
        let mut secrets: Vec<Vec<Option<PairSecret>>> = (0..n).map(|_| (0..n).map(|_| None).collect()).collect();
        for u in 0..n {
            for _ in 0..picks {
                let v = rng.next_u64() as usize % n;
                if u != v && secrets[u][v].is_none() {
                    secrets[u][v] = Some(keys[u].agree(keys[v].public(), 0).expect("fine keys"));
                    secrets[v][u] = Some(keys[v].agree(keys[u].public(), 0).expect("fine keys"));
                }
            }
        }
        Members { secrets }
    }

    /// What member u publishes, and its pads, by neighbour.
    fn publish(&mut self, u: usize, round: u64, values: &[i64]) -> (Vec<u64>, Vec<(usize, SpentPad)>) {
        let mut masked: Vec<u64> = values.iter().map(|value| to_ring(*value)).collect();
        let mut pads = Vec::new();
        for (v, secret) in self.secrets[u].iter_mut().enumerate() {
            if let Some(secret) = secret {
                let stream = secret.stream(round, Direction::FromSmaller).expect("a new round");
                pads.push((v, stream.mask(&mut masked).expect("few numbers")));
            }
        }
        (masked, pads)
    }
}

/// CHECK 04.e and 04.f, of the arithmetic alone: sums are exact, without and with members who leave after agreeing.
#[test]
fn the_sum_of_those_who_finished_is_exact_after_every_kind_of_dropout() {
    let grid = Grid::binary(32).expect("a grid");
    for seed in 0..60 {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let n = 3 + rng.next_u64() as usize % 12;
        let mut members = Members::new(n, 2, &mut rng);
        for round in 0..ROUNDS {
            let dimension = 1 + rng.next_u64() as usize % 40;
            let mut draw = || grid.nearest((rng.next_u64() >> 40) as f64 / 1e4 - 800.0).expect("in range");
            let values: Vec<Vec<i64>> = (0..n).map(|_| (0..dimension).map(|_| draw()).collect()).collect();
            sum_fits(n as u64, 1 << 43).expect("small numbers");
            let finished: Vec<bool> = (0..n).map(|_| !rng.next_u64().is_multiple_of(4)).collect();
            let mut sums = vec![0_u64; dimension];
            let mut expected = vec![0_i64; dimension];
            for u in (0..n).filter(|u| finished[*u]) {
                let (masked, pads) = members.publish(u, round, &values[u]);
                for (sum, masked) in sums.iter_mut().zip(masked) {
                    *sum = sum.wrapping_add(masked);
                }
                for (expected, value) in expected.iter_mut().zip(&values[u]) {
                    *expected += value;
                }
                // Each pad shared with someone who left is opened, sent as bytes, and taken out of the sum by anybody.
                for (_, pad) in pads.into_iter().filter(|(v, _)| !finished[*v]) {
                    let opened = RevealedPad::from_bytes(&pad.reveal().to_bytes()).expect("own bytes");
                    opened.remove(&mut sums).expect("few numbers");
                }
            }
            let sums: Vec<i64> = sums.into_iter().map(from_ring).collect();
            assert_eq!(sums, expected, "seed {seed}, round {round}");
        }
    }
}

/// The bytes of what a member publishes, for data that could not be more regular, look like fair bits to a simple test.
#[test]
fn masked_values_have_no_visible_law() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let mut members = Members::new(2, 8, &mut rng);
    let (masked, _) = members.publish(0, 0, &[0; 40_000]);
    let ones: u32 = masked.iter().map(|value| value.count_ones()).sum();
    let bits = 64.0 * 40_000.0_f64;
    assert!((f64::from(ones) - bits / 2.0).abs() < 5.0 * (bits / 4.0).sqrt(), "{ones} of {bits}");
    let mut counts = [0_u32; 256];
    masked.iter().flat_map(|value| value.to_le_bytes()).for_each(|byte| counts[usize::from(byte)] += 1);
    let expected = 40_000.0 * 8.0 / 256.0;
    let chi_square: f64 = counts.iter().map(|count| (f64::from(*count) - expected).powi(2) / expected).sum();
    // 255 degrees of freedom: mean 255, deviation 22.6; six deviations.
    assert!((120.0..390.0).contains(&chi_square), "{chi_square}");
}
