//! The AUC from one bit of each row (thesis 3.3.3): counts of a binary tree over scores, by a Hadamard response.
//!
//! Scores of public bounds fall into d = 2^alpha leaves. A row is asked for one bit: of a level l from 1 to alpha and a column j of the Hadamard matrix of 2^l places,
//! both from public numbers, the bit H[j, p] = (-1)^popcount(j & p) of the node p that its score is in; it is told by randomized response. From the answers at
//! level l, each 1 or -1, the count of node p is estimated without bias as
//!
//! (n / n_l) c_epsilon sum_u answer_u H[j_u, p],   c_epsilon = (e^epsilon + 1) / (e^epsilon - 1),
//!
//! for all nodes of a level at once by a fast Walsh-Hadamard transform. Classes are public, and have a tree each. The AUC is summed up from the root: at a node
//! the left half of the negatives is below the right half of the positives, and both halves go on by themselves, until a node holds so little that noise is all that is left of it:
//! then half of its pairs count.
//!
//! Differs from the thesis, where a switch says so:
//! - **Consistency**: a node is its children's sum, and the root is known. The estimates are replaced by the nearest that fit, weighted by their variances (Hay, Rastogi, Miklau and Suciu 2010).
//! - **Ties at half credit**: pairs within a leaf count one half, and not zero: the leaf is all that is known of their order.
//!
//! V = C n alpha is printed as C n^alpha.

use super::{Question, RowId};
use crate::Bounds;
use crate::config::ConfigError;
use crate::pairs::kernel::Ties;

/// The most levels.
pub const LEVELS_MAX: u32 = 20;

/// a of the thesis: how many standard deviations a node must stand out.
const CLEAR: f64 = 4.0;

/// One bit of each row, and the AUC of all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hierarchy {
    bounds: Bounds,
    levels: u32,
    /// c_epsilon.
    scale: f64,
    ties: Ties,
    is_consistent: bool,
}

impl Hierarchy {
    /// Scores within bounds, in so many leaves, at this epsilon.
    pub fn new(
        bounds: Bounds,
        leaves: u32,
        epsilon: f64,
        ties: Ties,
        is_consistent: bool,
    ) -> Result<Self, ConfigError> {
        let refuse = |field, value: String, accepted| Err(ConfigError { field, value, accepted });
        let width = bounds.high - bounds.low;
        if !(width.is_finite() && width > 0.0) {
            return refuse("range", format!("[{}, {}]", bounds.low, bounds.high), "two numbers, the larger one last,");
        }
        if !leaves.is_power_of_two() || !(2..=1 << LEVELS_MAX).contains(&leaves) {
            return refuse("bins", leaves.to_string(), "a power of two from 2 to 1048576");
        }
        let half = libm::tanh(epsilon / 2.0);
        if half.is_nan() || half <= 1e-12 {
            return refuse("epsilon", epsilon.to_string(), "more than 1e-11");
        }
        Ok(Hierarchy { bounds, levels: leaves.trailing_zeros(), scale: 1.0 / half, ties, is_consistent })
    }

    /// Without noise: every node has its count.
    fn leaf(&self, score: f64) -> u32 {
        let leaves = 1u32 << self.levels;
        let share = (self.bounds.clip(score) - self.bounds.low) / (self.bounds.high - self.bounds.low);
        ((share * f64::from(leaves)) as u32).min(leaves - 1)
    }

    /// Which bit a row is asked for: its level, from 1, and its column.
    fn asked(&self, row: RowId) -> (u32, u32) {
        let draw = mix(mix(u64::from(row.agent.0)) ^ u64::from(row.row));
        let level = 1 + ((u128::from(draw) * u128::from(self.levels)) >> 64) as u32;
        (level, mix(draw) as u32 & ((1 << level) - 1))
    }

    /// Nodes of the levels 1 to alpha of one class.
    fn nodes(&self) -> usize {
        (2 << self.levels) - 2
    }

    /// The estimated counts of one class, by level from the root; and V.
    fn counts(&self, answers: &[f64], asked: &[f64]) -> (Tree, f64) {
        let n: f64 = asked.iter().sum();
        let mut tree = vec![vec![n]];
        let mut variances = vec![0.0];
        for level in 1..=self.levels {
            let at = place(level);
            let mut counts = answers[at..at + (1 << level)].to_vec();
            walsh_hadamard(&mut counts);
            let asked = asked[level as usize - 1];
            let scale = if asked > 0.0 { self.scale * n / asked } else { 0.0 };
            counts.iter_mut().for_each(|count| *count *= scale);
            tree.push(counts);
            variances.push(if asked > 0.0 { scale * scale * asked } else { f64::INFINITY });
        }
        if self.is_consistent {
            make_consistent(&mut tree, &variances);
        }
        (tree, self.scale * self.scale * n * f64::from(self.levels))
    }

    /// The number of pairs of the two classes whose positive one is higher.
    fn pairs_in_order(&self, positives: &Tree, negatives: &Tree, variances: [f64; 2]) -> f64 {
        let [v_positive, v_negative] = variances;
        // tau = a sqrt(V+ V-), and counts are taken as sqrt(a V) / 2 at least.
        let threshold = CLEAR * libm::sqrt(v_positive * v_negative);
        let floors = [v_positive, v_negative].map(|variance| libm::sqrt(CLEAR * variance) / 2.0);
        let (mut sum, mut stack) = (0.0, vec![(0, 0)]);
        while let Some((level, node)) = stack.pop() {
            let [here_positive, here_negative] = [positives, negatives].map(|tree| tree[level][node]);
            if level == self.levels as usize {
                sum += if self.ties == Ties::Half { here_positive * here_negative / 2.0 } else { 0.0 };
                continue;
            }
            let [(p0, p1), (n0, n1)] =
                [positives, negatives].map(|tree| (tree[level + 1][2 * node], tree[level + 1][2 * node + 1]));
            if here_positive.max(floors[0]) * here_negative.max(floors[1]) < threshold {
                sum += (p0 + p1) * (n0 + n1) / 2.0;
                continue;
            }
            sum += p1 * n0;
            stack.extend([(level + 1, 2 * node), (level + 1, 2 * node + 1)]);
        }
        sum
    }
}

/// Counts by level, from the root.
type Tree = Vec<Vec<f64>>;

/// Where a level's nodes begin.
fn place(level: u32) -> usize {
    (1 << level) - 2
}

/// The estimates nearest to these that add up, and to the root, which is known: from the leaves up the best of a node and its children, from the root down
/// what is missing in equal parts.
fn make_consistent(tree: &mut Tree, variances: &[f64]) {
    let leaves = tree.len() - 1;
    let mut below = variances[leaves];
    for level in (1..leaves).rev() {
        let (upper, lower) = tree.split_at_mut(level + 1);
        let (own, children) = (1.0 / variances[level], 1.0 / (2.0 * below));
        let total = own + children;
        if total > 0.0 {
            for (node, pair) in upper[level].iter_mut().zip(lower[0].as_chunks::<2>().0) {
                *node = (own * *node + children * (pair[0] + pair[1])) / total;
            }
        }
        below = if total > 0.0 { 1.0 / total } else { f64::INFINITY };
    }
    for level in 0..leaves {
        let (upper, lower) = tree.split_at_mut(level + 1);
        for (node, pair) in upper[level].iter().zip(lower[0].as_chunks_mut::<2>().0) {
            let missing = (node - pair[0] - pair[1]) / 2.0;
            pair.iter_mut().for_each(|child| *child += missing);
        }
    }
}

/// sum_j x_j (-1)^popcount(j & p) for all p, in place.
fn walsh_hadamard(x: &mut [f64]) {
    let mut half = 1;
    while half < x.len() {
        for both in x.chunks_exact_mut(2 * half) {
            let (low, high) = both.split_at_mut(half);
            low.iter_mut().zip(high).for_each(|(low, high)| (*low, *high) = (*low + *high, *low - *high));
        }
        half *= 2;
    }
}

fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Question for Hierarchy {
    fn categories(&self) -> u32 {
        2
    }

    fn answer(&self, row: RowId, mut values: impl Iterator<Item = f64>) -> u32 {
        let (level, column) = self.asked(row);
        let node = self.leaf(values.next().unwrap_or(0.0)) >> (self.levels - level);
        (column & node).count_ones() & 1
    }

    /// By class: answers by level and column, and how many were asked at each level.
    fn tally_len(&self) -> usize {
        2 * (self.nodes() + self.levels as usize)
    }

    fn add(&self, tally: &mut [f64], row: RowId, is_positive: bool, answer: u32) {
        let (level, column) = self.asked(row);
        let (positives, negatives) = tally.split_at_mut(self.nodes() + self.levels as usize);
        let tally = if is_positive { positives } else { negatives };
        tally[place(level) + column as usize] += 1.0 - 2.0 * f64::from(answer & 1);
        tally[self.nodes() + level as usize - 1] += 1.0;
    }

    fn conclude(&self, tally: &[f64]) -> Option<f64> {
        let (positives, negatives) = tally.split_at(self.nodes() + self.levels as usize);
        let counts = |tally: &[f64]| {
            let (answers, asked) = tally.split_at(self.nodes());
            (asked.iter().sum::<f64>(), self.counts(answers, asked))
        };
        let ((n_positive, (positives, v_positive)), (n_negative, (negatives, v_negative))) =
            (counts(positives), counts(negatives));
        let pairs = n_positive * n_negative;
        (pairs > 0.0).then(|| self.pairs_in_order(&positives, &negatives, [v_positive, v_negative]) / pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pairs::kernel::{Auc, PairKernel, auc_factor};
    use sottovoce_core::{Coin, PeerId};
    use sottovoce_privacy::{Idealized, Noise};

    const UNIT: Bounds = Bounds { low: 0.0, high: 1.0 };

    /// Scores, higher for positives, and labels.
    fn scores(seed: u64, positives: usize, negatives: usize) -> Vec<f64> {
        let mut coin = Coin::new(seed, 0, 0);
        let one = |coin: &mut Coin, positive: bool| {
            let score = (coin.unit() + coin.unit() + if positive { coin.unit() } else { 0.0 }) / 3.0;
            [score, if positive { 1.0 } else { -1.0 }]
        };
        (0..positives + negatives).flat_map(|k| one(&mut coin, k < positives)).collect()
    }

    fn exact(rows: &[f64], ties: Ties) -> f64 {
        let positives = rows.as_chunks::<2>().0.iter().filter(|row| row[1] > 0.0).count();
        let n = (rows.len() / 2) as f64;
        let u2 = 2.0 * Auc { ties }.sum_over_pairs(rows) / (n * n);
        auc_factor(positives, rows.len() / 2 - positives).expect("two classes") * u2
    }

    fn tally(hierarchy: &Hierarchy, rows: &[f64], noise: Option<(f64, u64)>) -> Vec<f64> {
        let row = |k: usize| RowId { agent: PeerId(k as u32), row: 0 };
        let rows = rows.as_chunks::<2>().0;
        let mut answers: Vec<f64> =
            (0..).zip(rows).map(|(k, [score, _])| f64::from(hierarchy.answer(row(k), [*score].into_iter()))).collect();
        if let Some((epsilon, seed)) = noise {
            Idealized::new(seed, 0).respond(epsilon, 2, &mut answers);
        }
        let mut tally = vec![0.0; hierarchy.tally_len()];
        for (k, ([_, label], answer)) in rows.iter().zip(answers).enumerate() {
            hierarchy.add(&mut tally, row(k), *label > 0.0, answer as u32);
        }
        tally
    }

    /// The tree of exact counts.
    fn tree(hierarchy: &Hierarchy, rows: &[f64], positive: bool) -> Tree {
        let mut tree: Tree = (0..=hierarchy.levels).map(|level| vec![0.0; 1 << level]).collect();
        for [score, _] in rows.as_chunks::<2>().0.iter().filter(|row| (row[1] > 0.0) == positive) {
            let leaf = hierarchy.leaf(*score) as usize;
            (0..=hierarchy.levels as usize)
                .for_each(|level| tree[level][leaf >> (hierarchy.levels as usize - level)] += 1.0);
        }
        tree
    }

    #[test]
    fn check_03_l_the_recursion_over_exact_counts_is_the_auc() {
        for seed in 0..20 {
            let mut rows = scores(seed, 40, 70);
            // On the leaves, so that scores in one leaf are ties.
            rows.chunks_exact_mut(2).for_each(|row| row[0] = libm::floor(row[0] * 64.0) / 64.0);
            for ties in [Ties::Zero, Ties::Half] {
                let hierarchy = Hierarchy::new(UNIT, 64, 1.0, ties, true).expect("good parameters");
                let trees = [true, false].map(|positive| tree(&hierarchy, &rows, positive));
                // No node is too small.
                let pairs = hierarchy.pairs_in_order(&trees[0], &trees[1], [0.0, 0.0]);
                let found = pairs / (40.0 * 70.0);
                assert!((found - exact(&rows, ties)).abs() < 1e-12, "{found} {}", exact(&rows, ties));
            }
        }
    }

    #[test]
    fn check_03_m_counts_are_unbiased_and_their_variance_is_below_v() {
        let (epsilon, runs, n) = (1.0, 2_000, 600);
        let hierarchy = Hierarchy::new(UNIT, 16, epsilon, Ties::Zero, false).expect("good parameters");
        let rows = scores(3, n, 1);
        let expected = tree(&hierarchy, &rows, true);
        let (mut sum, mut squares) = (vec![0.0; 30], vec![0.0; 30]);
        let mut bound = 0.0;
        for seed in 0..runs {
            // Other names ask other bits.
            let shifted = |k: usize| RowId { agent: PeerId((k + 1000 * seed as usize) as u32), row: 7 };
            let mut tally = vec![0.0; hierarchy.tally_len()];
            let mut noise = Idealized::new(seed, 1);
            for (k, [score, label]) in rows.as_chunks::<2>().0.iter().enumerate() {
                let mut answer = [f64::from(hierarchy.answer(shifted(k), [*score].into_iter()))];
                noise.respond(epsilon, 2, &mut answer);
                hierarchy.add(&mut tally, shifted(k), *label > 0.0, answer[0] as u32);
            }
            let (answers, asked) = tally[..hierarchy.nodes() + 4].split_at(hierarchy.nodes());
            let (found, v) = hierarchy.counts(answers, asked);
            bound = v;
            for (at, count) in found[1..].iter().flatten().enumerate() {
                sum[at] += count;
                squares[at] += count * count;
            }
        }
        for (at, expected) in expected[1..].iter().flatten().enumerate() {
            let mean = sum[at] / runs as f64;
            let variance = squares[at] / runs as f64 - mean * mean;
            assert!((mean - expected).abs() < 5.0 * (variance / runs as f64).sqrt(), "node {at}: {mean} {expected}");
            assert!(variance < 1.1 * bound, "node {at}: {variance} {bound}");
        }
    }

    #[test]
    fn check_03_n_the_error_is_below_the_theorems() {
        let (epsilon, levels, runs) = (1.0, 6, 200);
        let (n_positive, n_negative) = (2_000, 2_000);
        let rows = scores(5, n_positive, n_negative);
        let exact = exact(&rows, Ties::Half);
        let error = |is_consistent: bool, ties| {
            let hierarchy = Hierarchy::new(UNIT, 1 << levels, epsilon, ties, is_consistent).expect("good parameters");
            let square = |seed| {
                let found = hierarchy.conclude(&tally(&hierarchy, &rows, Some((epsilon, seed)))).expect("two classes");
                (found - exact) * (found - exact)
            };
            (0..runs).map(square).sum::<f64>() / runs as f64
        };
        let (positive, negative) = (n_positive as f64, n_negative as f64);
        let (n, alpha, c) = (positive + negative, f64::from(levels), (1.0 / libm::tanh(0.5)).powi(2));
        let bracket = 2.0 * n
            + (4.0 * CLEAR + 1.0) * positive.min(negative)
            + 21.0 * libm::sqrt(2.0 * n * c * alpha) / (CLEAR.sqrt() - 1.0);
        let bound = c * positive * negative * alpha * alpha * bracket / (positive * negative).powi(2);
        let [plain, better] = [error(false, Ties::Zero), error(true, Ties::Half)];
        assert!(plain < bound && better < plain, "{plain} {better} {bound}");
    }

    #[test]
    fn consistent_counts_add_up_to_the_known_root_and_are_nearer() {
        let rows = scores(9, 20_000, 2);
        let [free, fitted] =
            [false, true].map(|fit| Hierarchy::new(UNIT, 32, 2.0, Ties::Half, fit).expect("good parameters"));
        let expected = tree(&free, &rows, true);
        let tally = tally(&free, &rows, Some((2.0, 1)));
        let [free, fitted] = [free, fitted].map(|hierarchy| {
            let (answers, asked) = tally[..hierarchy.nodes() + 5].split_at(hierarchy.nodes());
            hierarchy.counts(answers, asked).0
        });
        for level in 0..5 {
            for (node, pair) in fitted[level].iter().zip(fitted[level + 1].as_chunks::<2>().0) {
                assert!((node - pair[0] - pair[1]).abs() < 1e-6);
            }
        }
        let error = |tree: &Tree| {
            tree.iter().flatten().zip(expected.iter().flatten()).map(|(a, b)| (a - b) * (a - b)).sum::<f64>()
        };
        assert!(error(&fitted) < 0.7 * error(&free), "{} {}", error(&fitted), error(&free));
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        let refused = |bounds, leaves, epsilon| {
            Hierarchy::new(bounds, leaves, epsilon, Ties::Half, true).expect_err("refused").to_string()
        };
        assert_eq!(refused(UNIT, 24, 1.0), "bins is 24; a power of two from 2 to 1048576 would be accepted");
        assert!(refused(UNIT, 1, 1.0).starts_with("bins is 1;") && refused(UNIT, 16, 0.0).starts_with("epsilon is 0;"));
        assert!(refused(Bounds { low: 1.0, high: 1.0 }, 16, 1.0).starts_with("range is [1, 1]"));
    }
}
