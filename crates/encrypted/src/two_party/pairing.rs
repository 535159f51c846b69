//! Who meets whom: P permutations of the members, from a public beacon.

use rand_chacha::{
    ChaCha20Rng,
    rand_core::{Rng, SeedableRng},
};
use std::collections::BTreeMap;

/// A uniform number below `bound`.
fn below(rng: &mut ChaCha20Rng, bound: u32) -> u32 {
    // Draws beyond the last whole multiple are made again.
    let most = u32::MAX - u32::MAX % bound;
    loop {
        let drawn = rng.next_u32();
        if drawn < most {
            return drawn % bound;
        }
    }
}

/// Puts the members into a uniform order, and hands out the first with the second, the third with the fourth. Of an odd number the last stays alone.
pub fn matching(members: &mut [u32], rng: &mut ChaCha20Rng, mut pair: impl FnMut(u32, u32)) {
    for last in (1..members.len()).rev() {
        members.swap(last, below(rng, last as u32 + 1) as usize);
    }
    members.as_chunks::<2>().0.iter().for_each(|&[a, b]| pair(a.min(b), a.max(b)));
}

/// The pairs of so many permutations, the smaller member first, and how often each occurs: nobody is in more than one pair of a permutation.
pub fn pairs(beacon: [u8; 32], members: &[u32], permutations: u32) -> BTreeMap<(u32, u32), u32> {
    let (mut rng, mut order) = (ChaCha20Rng::from_seed(beacon), members.to_vec());
    let mut pairs = BTreeMap::new();
    for _ in 0..permutations {
        matching(&mut order, &mut rng, |a, b| *pairs.entry((a, b)).or_insert(0) += 1);
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_meets_more_than_once_in_a_permutation_and_all_pairs_are_equally_likely() {
        let members = [1, 4, 5, 8, 9];
        let mut counts: BTreeMap<(u32, u32), f64> = BTreeMap::new();
        for seed in 0..400_u16 {
            let mut beacon = [0; 32];
            beacon[..2].copy_from_slice(&seed.to_le_bytes());
            let pairs = pairs(beacon, &members, 10);
            assert_eq!(pairs.values().sum::<u32>(), 20, "two pairs of five in each");
            for member in members {
                let meets = pairs.iter().filter(|((a, b), _)| [*a, *b].contains(&member));
                assert!(meets.map(|(_, count)| count).sum::<u32>() <= 10);
            }
            pairs.into_iter().for_each(|(pair, count)| *counts.entry(pair).or_default() += f64::from(count));
        }
        assert!(counts.len() == 10 && counts.keys().all(|(a, b)| a < b));
        let chi2: f64 = counts.values().map(|count| (count - 800.0) * (count - 800.0) / 800.0).sum();
        assert!(chi2 < 27.9, "{chi2}, of 9 degrees of freedom");
        assert_eq!(pairs([1; 32], &members, 3), pairs([1; 32], &members, 3));
        assert_ne!(pairs([1; 32], &members, 3), pairs([2; 32], &members, 3));
        assert_eq!((pairs([1; 32], &[7], 3).len(), pairs([1; 32], &[], 3).len()), (0, 0));
    }
}
