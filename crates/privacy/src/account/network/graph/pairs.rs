//! All pairs of a graph on which everyone gossips: the matrix of what each learns of each, its worst pair and its mean.
//!
//! Rows come from [`Gossip::exposure`], one for each observer, and are independent: whoever has several processors computes them side by side. A row whose
//! span would be too large to compute counts everybody within reach as fully exposed, and values keep eleven binary digits: both round up.

use super::Gossip;
use crate::gaussian_epsilon;
use crate::round::{div_up, mul_up, sqrt_up, widen};

/// Members whose matrix is computed at most.
pub const PAIRS_MEMBERS_MAX: usize = 2000;

/// Edges of a graph that a ledger holds at most, for whoever wants to compute a mean over pairs again.
pub const PAIRS_EDGES_MAX: usize = 40_000;

/// Sums and products of a whole matrix at most: half a minute of two processors.
const WORK_MAX: f64 = 1.2e11;

/// Binary digits of a square that are kept besides its first, so that few values are left to be turned into epsilons.
const DIGITS: u32 = 10;

/// The square of mu of each source against each observer, in units of (sensitivity / sigma)^2.
#[derive(Clone, Debug, PartialEq)]
pub struct GossipPairs {
    members: usize,
    /// By observer, then by source.
    squares: Vec<f64>,
    /// Each square that a source has against another member, once, and how many pairs have it.
    counts: Vec<(f64, u64)>,
}

/// What a matrix comes to at one noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorstAndMean {
    /// The epsilon of the worst pair.
    pub worst: f64,
    /// The mean over all ordered pairs of two members.
    pub mean: f64,
}

impl WorstAndMean {
    /// Of a matrix of epsilons, whose entries of a member against itself do not count.
    pub fn of(matrix: &[Vec<f64>]) -> Self {
        let entries = matrix
            .iter()
            .enumerate()
            .flat_map(|(member, row)| row.iter().enumerate().map(move |entry| (member, entry)));
        let others = entries.filter(|(member, (other, _))| member != other).map(|(_, (_, epsilon))| *epsilon);
        let (worst, sum, pairs) = others
            .fold((0.0f64, 0.0, 0u64), |(worst, sum, pairs), epsilon| (worst.max(epsilon), sum + epsilon, pairs + 1));
        WorstAndMean { worst, mean: widen(sum / (pairs as f64).max(1.0), 1e-12) }
    }
}

impl Gossip {
    /// One row of a matrix of pairs, rounded up: what `observer` learns of each source in so many rounds. One row of [`PAIRS_MEMBERS_MAX`] members takes some
    /// milliseconds at most.
    ///
    /// Where everyone is told, besides, a sum of all noisy values, `told` has the weight of each in it ([`Gossip::share_of_each`]); else it is empty.
    pub fn pair_row(&self, observer: usize, rounds: usize, told: &[f64]) -> Vec<f64> {
        let members = self.members();
        let degree = self.neighbours(observer).count();
        let dimension = (1.0 + degree as f64 * rounds as f64).min(members as f64);
        // Each vector is multiplied with all before it, and taken from, twice two operations for each member.
        let work = 4.0 * dimension * dimension * members as f64 * members as f64;
        if work <= WORK_MAX {
            return self.exposure_told(&[observer], rounds, told).into_iter().map(coarse).collect();
        }
        // PRIVACY: nobody is exposed more than by its noisy value itself, and nobody further away than the rounds reach at all, but by what everyone is told.
        let reached = |distance: Option<usize>| distance.is_some_and(|distance| distance <= rounds);
        let reached: Vec<bool> = self.distances(&[observer]).into_iter().map(reached).collect();
        let square = |member: usize| told.get(member).map_or(0.0, |x| x * x);
        let rest: f64 = (0..members).filter(|&member| !reached[member]).map(square).sum();
        let of = |member: usize| match reached[member] {
            true => 1.0,
            false if square(member) > 0.0 => coarse(widen(square(member) / rest, 1e-9)),
            false => 0.0,
        };
        (0..members).map(of).collect()
    }
}

/// The least number with few digits that is not below.
fn coarse(square: f64) -> f64 {
    let rest = (1u64 << (52 - DIGITS)) - 1;
    // Adding may carry into the exponent, which is right.
    f64::from_bits((square.to_bits() + rest) & !rest).min(1.0)
}

impl GossipPairs {
    /// Of the rows of [`Gossip::pair_row`], in the order of observers.
    ///
    /// # Panics
    /// When the matrix is not square.
    pub fn from_rows(rows: impl IntoIterator<Item = Vec<f64>>) -> Self {
        let (mut members, mut squares) = (0, Vec::new());
        for row in rows {
            members += 1;
            squares.extend(row);
        }
        assert_eq!(squares.len(), members * members, "a square matrix");
        let others = squares.iter().enumerate().filter(|(place, _)| place / members != place % members);
        let mut sorted: Vec<f64> = others.map(|(_, square)| *square).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let counts = sorted.chunk_by(|a, b| a == b).map(|alike| (alike[0], alike.len() as u64)).collect();
        GossipPairs { members, squares, counts }
    }

    /// How many members there are.
    pub fn members(&self) -> usize {
        self.members
    }

    /// The square of what `observer` learns of `source`.
    pub fn square(&self, source: usize, observer: usize) -> f64 {
        self.squares[observer * self.members + source]
    }

    /// What the matrix comes to for noise of `noise_multiplier` times the sensitivity; rounds up.
    pub fn epsilons(&self, noise_multiplier: f64, delta: f64) -> WorstAndMean {
        let (mut worst, mut sum, mut pairs) = (0.0f64, 0.0, 0);
        for &(square, count) in &self.counts {
            let epsilon = pair_epsilon(square, noise_multiplier, delta);
            worst = worst.max(epsilon);
            sum += epsilon * count as f64;
            pairs += count;
        }
        WorstAndMean { worst, mean: widen(sum / (pairs as f64).max(1.0), 1e-12) }
    }

    /// The epsilon of each pair: by source, then by observer; 0 against itself.
    pub fn matrix(&self, noise_multiplier: f64, delta: f64) -> Vec<Vec<f64>> {
        let known: Vec<f64> =
            self.counts.iter().map(|&(square, _)| pair_epsilon(square, noise_multiplier, delta)).collect();
        let epsilon = |source: usize, observer: usize| {
            let square = self.square(source, observer);
            let place = self.counts.binary_search_by(|(other, _)| other.total_cmp(&square));
            if source == observer { 0.0 } else { place.map_or(f64::INFINITY, |place| known[place]) }
        };
        let row = |source: usize| (0..self.members).map(|observer| epsilon(source, observer)).collect();
        (0..self.members).map(row).collect()
    }

    /// The least noise multiplier, to a relative 1e-6, at which the mean over pairs is at most `epsilon`; none outside of epsilon > 0 and
    /// 0 < delta < 1, and where nobody learns anything.
    pub fn noise_for_mean(&self, epsilon: f64, delta: f64) -> Option<f64> {
        let is_kept = |log: f64| self.epsilons(libm::exp(log), delta).mean <= epsilon;
        if !(epsilon > 0.0 && delta > 0.0 && delta < 1.0) || self.counts.iter().all(|(square, _)| *square == 0.0) {
            return None;
        }
        let (mut low, mut high) = (-7.0, 1.0);
        while !is_kept(high) {
            (low, high) = (high, high + 2.0);
            if high > 30.0 {
                return None;
            }
        }
        while high - low > 1e-6 {
            let middle = 0.5 * (low + high);
            if is_kept(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        Some(libm::exp(high).next_up())
    }
}

/// The epsilon of a pair whose square of mu is this at noise of one.
fn pair_epsilon(square: f64, noise_multiplier: f64, delta: f64) -> f64 {
    gaussian_epsilon(mul_up(sqrt_up(square), div_up(1.0, noise_multiplier)), delta)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::random_graph;
    use super::*;

    fn pairs(gossip: &Gossip, rounds: usize) -> GossipPairs {
        GossipPairs::from_rows((0..gossip.members()).map(|observer| gossip.pair_row(observer, rounds, &[])))
    }

    #[test]
    fn worst_and_mean_are_those_of_the_matrix_and_never_below_the_exact_ones() {
        let gossip = random_graph(40, 3);
        let (all, delta) = (pairs(&gossip, 2), 1e-6);
        let matrix = all.matrix(3.0, delta);
        let (mut sum, mut exact, mut worst) = (0.0, 0.0, 0.0f64);
        for (observer, own) in matrix.iter().enumerate() {
            let alone = gossip.epsilons(&[observer], 2, 3.0, delta);
            for source in (0..40).filter(|&source| source != observer) {
                let (rounded, truth) = (matrix[source][observer], alone[source]);
                assert!(rounded >= truth && rounded <= truth * 1.002 + 1e-9, "{rounded} {truth}");
                (sum, exact, worst) = (sum + rounded, exact + truth, worst.max(rounded));
            }
            assert_eq!(own[observer], 0.0);
        }
        let both = all.epsilons(3.0, delta);
        assert_eq!(both.worst, worst);
        assert!((both.mean * 1560.0 - sum).abs() < 1e-6 && both.mean >= exact / 1560.0, "{both:?} {sum}");
        // A neighbour's first letter is its noisy value: the worst pair has what everyone has.
        assert_eq!(both.worst, gaussian_epsilon(div_up(1.0, 3.0), delta));
        assert!(both.mean < 0.6 * both.worst, "{both:?}");
    }

    #[test]
    fn the_noise_for_a_mean_keeps_it_and_no_less_does() {
        let all = pairs(&random_graph(40, 5), 2);
        for epsilon in [0.1, 1.0, 8.0] {
            let noise = all.noise_for_mean(epsilon, 1e-6).expect("in reach");
            assert!(all.epsilons(noise, 1e-6).mean <= epsilon, "{epsilon}");
            assert!(all.epsilons(noise * (1.0 - 1e-5), 1e-6).mean > epsilon, "{epsilon}");
            // Fewer see much of each other than for the worst pair.
            assert!(all.epsilons(noise, 1e-6).worst > epsilon);
        }
        for (epsilon, delta) in [(0.0, 1e-6), (-1.0, 1e-6), (f64::NAN, 1e-6), (1.0, 0.0), (1.0, 1.0)] {
            assert_eq!(all.noise_for_mean(epsilon, delta), None, "{epsilon} {delta}");
        }
    }

    #[test]
    fn what_would_take_too_long_counts_as_seen() {
        let edges: Vec<(usize, usize)> = (0..1500).flat_map(|k| [(k, (k + 1) % 1500), (k, (k + 40) % 1500)]).collect();
        let gossip = Gossip::metropolis(1500, &edges).expect("a graph");
        let (far, distances) = (gossip.pair_row(7, 30, &[]), gossip.distances(&[7]));
        for (square, distance) in far.iter().zip(distances) {
            assert_eq!(*square, if distance.is_some_and(|distance| distance <= 30) { 1.0 } else { 0.0 });
        }
        // Few rounds are computed.
        assert!(gossip.pair_row(7, 6, &[]).iter().any(|square| *square > 0.0 && *square < 1.0));
    }

    /// What is told adds what it adds to the span, whether that is computed or bounded.
    #[test]
    fn what_everyone_is_told_is_seen_by_everyone() {
        let gossip = random_graph(40, 3);
        let told = gossip.share_of_each(5, 6, 1.3);
        assert!((told.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{told:?}");
        for observer in [0, 7, 23] {
            let (alone, with) = (gossip.pair_row(observer, 1, &[]), gossip.pair_row(observer, 1, &told));
            // One round: an observer knows itself and its neighbours, so that of the sum the others' part is left.
            let unknown: f64 = alone.iter().zip(&told).filter(|(square, _)| **square < 0.5).map(|(_, x)| x * x).sum();
            for (source, (alone, with)) in alone.iter().zip(&with).enumerate() {
                let truth = if *alone > 0.5 { 1.0 } else { told[source] * told[source] / unknown };
                assert!(*with >= truth && *with <= truth * 1.002 + 1e-9, "{source}: {with} {truth}");
            }
        }
        let edges: Vec<(usize, usize)> = (0..1500).flat_map(|k| [(k, (k + 1) % 1500), (k, (k + 20) % 1500)]).collect();
        let large = Gossip::metropolis(1500, &edges).expect("a graph");
        let told = vec![1.0 / 1500.0; 1500];
        let (alone, with) = (large.pair_row(7, 30, &[]), large.pair_row(7, 30, &told));
        let hidden = alone.iter().filter(|square| **square == 0.0).count() as f64;
        assert!(hidden > 10.0 && alone.iter().all(|square| *square == 0.0 || *square == 1.0), "{hidden}");
        for (alone, with) in alone.iter().zip(with) {
            let truth = if *alone == 1.0 { 1.0 } else { 1.0 / hidden };
            assert!(with >= truth && with <= truth * 1.002, "{with} {truth}");
        }
    }

    #[test]
    fn few_digits_are_never_fewer_than_the_number() {
        for square in [1e-11, 3.3e-7, 0.1, 0.25, 0.999_999, 1.0, 0.0] {
            let rounded = coarse(square);
            assert!(rounded >= square && rounded <= square * 1.001, "{square} {rounded}");
            assert_eq!(coarse(rounded), rounded);
        }
    }
}
