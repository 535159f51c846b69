//! The full-path mixture, over paths that are drawn: an estimate, and by its type never a guarantee.
//!
//! delta(eps) = E delta_mu(eps) over the paths of a walk, mu as in [`super::Iteration`], which bounds it from above by moments. Here the
//! mean is taken over a sample. It says how much of a proven bound is slack.

use super::staircase::staircase;
use super::walk::Walk;
use crate::account::{gaussian_delta, within};
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use std::fmt;

/// What a sample suggests and nothing proves.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Estimate(f64);

impl Estimate {
    /// The number, for pictures and comparisons. It bounds nothing.
    pub fn about(self) -> f64 {
        self.0
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "about {}", self.0)
    }
}

/// Costs X of drawn paths, gathered: nearly equal ones together.
pub struct PathMixture {
    /// X, and the share of paths with about that X.
    costs: Vec<(f64, f64)>,
    most: f64,
}

/// Costs within this part of each other are one.
const NEAR: f64 = 0.005;

impl PathMixture {
    /// So many paths of a walk.
    pub fn drawn(walk: Walk, paths: u32, seed: u64) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut costs: Vec<f64> = (0..paths).map(|_| cost(&walk, &mut random)).collect();
        costs.sort_unstable_by(f64::total_cmp);
        // By the first of each chunk: chunks of near neighbours could be long.
        let mut first = f64::NEG_INFINITY;
        let together = costs.chunk_by(|&a, &b| {
            first = if a > first * (1.0 + NEAR) || first < 0.0 { a } else { first };
            b <= first * (1.0 + NEAR)
        });
        let share = |chunk: &[f64]| chunk.len() as f64 / f64::from(paths);
        let costs = together.map(|chunk| (chunk.iter().sum::<f64>() / chunk.len() as f64, share(chunk))).collect();
        PathMixture { costs, most: walk.contributions as f64 }
    }

    /// The delta at `epsilon` of contributions with this noise multiplier.
    pub fn delta_at(&self, noise_multiplier: f64, epsilon: f64) -> Estimate {
        let seen = self.costs.iter().filter(|(x, _)| *x > 0.0);
        Estimate(seen.map(|&(x, share)| share * gaussian_delta(x.sqrt() / noise_multiplier, epsilon)).sum())
    }

    /// The epsilon at `delta`.
    pub fn epsilon_at(&self, noise_multiplier: f64, delta: f64) -> Estimate {
        let delta = within(delta);
        let local = crate::gaussian_epsilon(self.most.sqrt() / noise_multiplier, delta);
        Estimate(crossing(0.0, local, |epsilon| self.delta_at(noise_multiplier, epsilon).0 <= delta))
    }

    /// The noise multiplier for (`epsilon`, `delta`), between a thousandth and a million.
    pub fn noise_multiplier(&self, epsilon: f64, delta: f64) -> Estimate {
        let holds = |log: f64| self.delta_at(libm::exp(log), epsilon).0 <= within(delta);
        Estimate(libm::exp(crossing(-7.0, 14.0, holds)))
    }
}

/// Where `holds` begins to, to 30 halvings.
pub(super) fn crossing(mut low: f64, mut high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..30 {
        let middle = 0.5 * (low + high);
        if holds(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    high
}

/// The X of one path. Hops of others, and visits that change nothing, are jumped over.
fn cost(walk: &Walk, random: &mut ChaCha8Rng) -> f64 {
    let (p, r) = walk.visits();
    let mut unit = || (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let (mut cost, mut made, mut hop, mut start) = (0.0, 0, 0, 0);
    let mut cycle = Vec::new();
    loop {
        // Without a contribution to hide no observer matters, and after the last one no visit of the member does.
        let (own, seen) = if cycle.is_empty() { (p, 0.0) } else { (p, r) };
        let own = if made == walk.contributions { 0.0 } else { own };
        // The hop of the next visit that matters; where every hop is one, ln 0 makes the gap 1.
        let gap = (libm::log(1.0 - unit()) / libm::log1p(-(own + seen))).floor() + 1.0;
        hop = if gap <= walk.hops as f64 { hop + gap as u64 } else { walk.hops + 1 };
        if hop > walk.hops {
            return if walk.told_outcome { cost + staircase(&cycle, walk.hops - start) } else { cost };
        }
        if unit() * (own + seen) < own {
            start = if cycle.is_empty() { hop - 1 } else { start };
            cycle.push(hop - start);
            made += 1;
        } else {
            cost += staircase(&cycle, hop - 1 - start);
            cycle.clear();
            if made == walk.contributions {
                return cost;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::network::Iteration;

    /// Spec 05 section 5, over 3 million paths: 2.49 and 0.375; with 5, 20 and 100 colluders 3.01, 3.84 and 5.50, and 0.45, 0.56 and 0.77.
    #[test]
    fn the_estimates_of_the_thesis_example_come_out_within_two_per_cent() {
        let walk = Walk::new(2000, 20_000, 12).expect("valid");
        for (colluders, at_one, at_ten) in [(1, 2.49, 0.375), (5, 3.01, 0.45), (20, 3.84, 0.56), (100, 5.50, 0.77)] {
            let walk = walk.with_colluders(colluders).expect("valid");
            let drawn = PathMixture::drawn(walk, 60_000, 7);
            for (epsilon, printed) in [(1.0, at_one), (10.0, at_ten)] {
                let sigma = 0.8 * drawn.noise_multiplier(epsilon, 1e-6).about();
                // Half of the last printed digit besides.
                let slack = 0.02 * printed + 0.005;
                assert!((sigma - printed).abs() < slack, "{colluders} colluders, epsilon {epsilon}: {sigma}");
            }
        }
        let proven = 0.8 * Iteration::new(walk).noise_multiplier(1.0, 1e-6).expect("found");
        let about = 0.8 * PathMixture::drawn(walk, 60_000, 8).noise_multiplier(1.0, 1e-6).about();
        assert!(about < proven && proven < 1.15 * about, "{about} {proven}");
        assert!(Estimate(2.5).to_string().starts_with("about"));
    }

    /// One member of four, two who collude, three hops: from all 27 kinds of paths.
    #[test]
    fn the_mean_over_drawn_paths_is_that_over_all_of_them() {
        let walk = Walk::new(4, 3, 2).and_then(|walk| walk.with_colluders(2)).expect("valid");
        let (multiplier, epsilon) = (1.3, 0.4);
        let mut truth = 0.0;
        for code in 0..27u32 {
            let hops = [code % 3, code / 3 % 3, code / 9];
            let probability: f64 = hops.map(|holder| [0.25, 0.5, 0.25][holder as usize]).iter().product();
            let (mut cost, mut cycle, mut length, mut made) = (0.0, Vec::new(), 0, 0);
            for holder in hops {
                if holder == 1 {
                    cost += staircase(&cycle, length);
                    (cycle, length) = (Vec::new(), 0);
                    continue;
                }
                length += 1;
                if holder == 0 && made < 2 {
                    cycle.push(length);
                    made += 1;
                }
            }
            cost += staircase(&cycle, length);
            truth += if cost > 0.0 { probability * gaussian_delta(cost.sqrt() / multiplier, epsilon) } else { 0.0 };
        }
        let drawn = PathMixture::drawn(walk, 400_000, 3).delta_at(multiplier, epsilon).about();
        assert!((drawn / truth - 1.0).abs() < 0.01, "{drawn} {truth}");
    }
}
