//! From samples of two worlds to a lower bound on epsilon, or on mu.
//!
//! A statistic was computed many times in a first world and in a second one; more of it speaks for the first. Any event E that is
//! fixed before looking satisfies P_1(E) <= e^eps P_2(E) + delta, so bounds on the two probabilities bound epsilon. Which E is
//! best is found on a part of the samples that is not used again.
//!
//! For Gaussian noise at a small delta, no event that can be seen comes near epsilon: what it promises is in tails of probability
//! delta. There the claim is mu = Delta_2 / sigma, and of all tests between the worlds none has fewer errors of both kinds together
//! than 2 Phi(-mu/2). The number of right guesses bounds mu.

use super::binomial::{lower, upper};
use crate::normal::tail;

/// The error of the bound that shows what the samples say: it holds with 95% confidence. One audit in twenty of a tight mechanism puts
/// it above the claim, so it is never shown alone, and no verdict rests on it.
pub const CONFIDENCE: f64 = 0.05;

/// The error with which an alarm is raised. One in a million, because a tight mechanism is at the edge of its claim, and an audit that
/// cries wolf every twentieth time would be turned off.
pub const ALARM: f64 = 1e-6;

/// A statistic in two worlds; more of it speaks for the first.
#[derive(Clone, Debug, Default)]
pub struct Worlds {
    /// In the first.
    pub first: Vec<f64>,
    /// In the second.
    pub second: Vec<f64>,
}

/// A lower bound on epsilon or mu, at two levels of confidence.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bound {
    /// With 95% confidence: to be shown beside the other, as what it is.
    pub likely: f64,
    /// With an error of one in a million: what is "at least", and above the claim an alarm.
    pub certain: f64,
}

impl Bound {
    /// The same after an increasing change of units.
    pub fn map(self, f: impl Fn(f64) -> f64) -> Bound {
        Bound { likely: f(self.likely), certain: f(self.certain) }
    }
}

/// One sample in four serves to choose the event; of many samples one in sixteen is enough, but not less than this.
const CHOOSING_MIN: usize = 20_000;

/// Thresholds that are tried.
const THRESHOLDS: usize = 400;

/// The statistic of a bounded loss has an atom at its ends, which rounding blurs by this much.
const BLUR: f64 = 1e-9;

/// "The statistic is at least this", or "at most": an event, and which world it speaks for.
#[derive(Clone, Copy, Debug)]
struct Guess {
    threshold: f64,
    first: bool,
}

impl Guess {
    fn holds(self, statistic: f64) -> bool {
        if self.first { statistic >= self.threshold } else { statistic <= self.threshold }
    }

    /// How often it held in the world it speaks for, and in the other.
    fn counts(self, worlds: [&[f64]; 2]) -> [u64; 2] {
        let counts = worlds.map(|world| world.iter().filter(|&&statistic| self.holds(statistic)).count() as u64);
        if self.first { counts } else { [counts[1], counts[0]] }
    }

    /// The same, of sorted samples.
    fn counts_sorted(self, worlds: &[Vec<f64>; 2]) -> [u64; 2] {
        let [a, b] = worlds.each_ref().map(|world| {
            let before = if self.first { below(world, self.threshold) } else { up_to(world, self.threshold) };
            (if self.first { world.len() - before } else { before }) as u64
        });
        if self.first { [a, b] } else { [b, a] }
    }
}

/// The samples to choose with, and those to count in.
fn split(worlds: &Worlds) -> [[&[f64]; 2]; 2] {
    let choosing = |samples: usize| (samples / 4).min((samples / 16).max(CHOOSING_MIN));
    let (a, rest_a) = worlds.first.split_at(choosing(worlds.first.len()));
    let (b, rest_b) = worlds.second.split_at(choosing(worlds.second.len()));
    [[a, b], [rest_a, rest_b]]
}

fn sorted(world: &[f64]) -> Vec<f64> {
    let mut sorted = world.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

/// How many of sorted samples are below a threshold.
fn below(sorted: &[f64], threshold: f64) -> usize {
    sorted.partition_point(|&statistic| statistic < threshold)
}

/// How many are at most at it.
fn up_to(sorted: &[f64], threshold: f64) -> usize {
    sorted.partition_point(|&statistic| statistic <= threshold)
}

/// Quantiles of what is there to choose with, all samples of a small set.
fn candidates([a, b]: &[Vec<f64>; 2]) -> Vec<f64> {
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    let all = sorted(&all);
    let step = (all.len() as f64 / THRESHOLDS as f64).max(1.0);
    (0..).map(|k| (k as f64 * step) as usize).take_while(|&k| k < all.len()).map(|k| all[k]).collect()
}

/// A lower bound on the epsilon of any (epsilon, delta) guarantee under which such samples can come up.
pub fn epsilon_bound(worlds: &Worlds, delta: f64) -> Bound {
    let [choose, count] = split(worlds);
    if choose.iter().chain(&count).any(|world| world.is_empty()) {
        return Bound::default();
    }
    let choose = choose.map(sorted);
    let sizes = count.map(|world| world.len() as f64);
    // What two standard errors leave of ln((P - delta) / P').
    let promise = |guess: Guess| {
        let counts = guess.counts_sorted(&choose);
        let [own, other] = if guess.first { [0, 1] } else { [1, 0] };
        let share = |count: u64, world: usize| (count as f64 + 0.5) / (choose[world].len() as f64 + 1.0);
        let (p, q) = (share(counts[0], own), share(counts[1], other));
        let error = |p: f64, size: f64| 2.0 * (p * (1.0 - p) / size).sqrt();
        let least = p - error(p, sizes[own]) - delta;
        let most = q + error(q, sizes[other]) + 1.0 / sizes[other];
        if least > 0.0 { libm::log(least / most) } else { f64::NEG_INFINITY }
    };
    let guesses = candidates(&choose).into_iter().flat_map(|t| {
        let blur = BLUR * (1.0 + t.abs());
        [Guess { threshold: t - blur, first: true }, Guess { threshold: t + blur, first: false }]
    });
    let best = guesses.map(|guess| (promise(guess), guess)).max_by(|(a, _), (b, _)| a.total_cmp(b));
    let Some((_, guess)) = best else { return Bound::default() };
    let counts = guess.counts(count);
    let [own, other] = if guess.first { [0, 1] } else { [1, 0] };
    let bound = |error: f64| {
        // Half of the error for each probability.
        let least = lower(counts[0], count[own].len() as u64, error / 2.0) - delta;
        let most = upper(counts[1], count[other].len() as u64, error / 2.0);
        if least > 0.0 { libm::log(least / most).max(0.0) } else { 0.0 }
    };
    Bound { likely: bound(CONFIDENCE), certain: bound(ALARM) }
}

/// A lower bound on the mu of any mu-Gaussian guarantee under which such samples can come up.
pub fn mu_bound(worlds: &Worlds) -> Bound {
    let [choose, count] = split(worlds);
    if choose.iter().chain(&count).any(|world| world.is_empty()) {
        return Bound::default();
    }
    // With as many samples of each world, guesses are right with probability 1 - (both error rates) / 2.
    let size = count[0].len().min(count[1].len());
    let count = count.map(|world| &world[..size]);
    // Between the medians: for two normal laws that is where the fewest errors are, and it is found with little noise itself.
    let [one, other] = choose.map(|world| sorted(world)[world.len() / 2]);
    let threshold = 0.5 * (one + other);
    let of_first = count[0].iter().filter(|&&statistic| statistic > threshold).count() as u64;
    let of_second = count[1].iter().filter(|&&statistic| statistic <= threshold).count() as u64;
    // Right guesses are 2 x `size` independent coins of two kinds. Their sum is no less concentrated than that of coins of the mean kind
    // (Hoeffding 1956), so the bound for those holds.
    let bound = |error: f64| {
        let probability = lower(of_first + of_second, 2 * size as u64, error);
        // 1 - (2 Phi(-mu/2)) / 2 >= probability
        2.0 * quantile(probability).max(0.0)
    };
    Bound { likely: bound(CONFIDENCE), certain: bound(ALARM) }
}

/// Phi^-1(p), rounded down; capped where no count of samples comes.
fn quantile(p: f64) -> f64 {
    let (mut low, mut high) = (-38.0, 38.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if 1.0 - tail(middle) <= p {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A statistic that is `high` with probability one half in the first world and one fifth in the second.
    fn coins(n: usize) -> Worlds {
        let every = |k: usize| (0..n).map(|j| if j % k == 0 { 1.0 } else { 0.0 }).collect();
        Worlds { first: every(2), second: every(5) }
    }

    #[test]
    fn with_many_samples_the_bound_is_the_log_of_the_ratio() {
        let bound = epsilon_bound(&coins(1_000_000), 0.0);
        let truth = libm::log(2.5);
        assert!(bound.likely < truth && bound.likely > truth - 0.01, "{bound:?}");
        assert!(bound.certain < bound.likely, "{bound:?}");
        let allowed = epsilon_bound(&coins(1_000_000), 0.1);
        assert!((allowed.likely - libm::log(2.0)).abs() < 0.01, "a delta takes its part: {allowed:?}");
    }

    #[test]
    fn few_samples_prove_little_and_none_nothing() {
        assert_eq!(epsilon_bound(&Worlds::default(), 0.0), Bound::default());
        assert_eq!(mu_bound(&Worlds { first: vec![1.0; 3], second: vec![0.0; 3] }), Bound::default());
        let certain = Worlds { first: vec![1.0; 400], second: vec![0.0; 400] };
        // 300 of 300 against 0 of 300.
        let bound = epsilon_bound(&certain, 0.0).likely;
        assert!((bound - libm::log(lower(300, 300, 0.025) / upper(0, 300, 0.025))).abs() < 1e-12, "{bound}");
        assert!(bound > 4.0 && bound < 5.0, "{bound}");
    }

    #[test]
    fn worlds_that_are_the_same_have_a_bound_of_nothing() {
        let same: Vec<f64> = (0..10_000).map(|k| f64::from(k % 97)).collect();
        let worlds = Worlds { first: same.clone(), second: same };
        assert_eq!((epsilon_bound(&worlds, 0.0).certain, mu_bound(&worlds).certain), (0.0, 0.0));
    }

    /// Two normal laws a distance mu apart, by quantiles instead of draws.
    #[test]
    fn mu_comes_out_of_the_errors_of_both_kinds() {
        let n = 100_000;
        for mu in [0.3, 1.0, 2.0] {
            let law =
                |shift: f64| (0..n).map(|k| quantile((f64::from(k * 7919 % n) + 0.5) / f64::from(n)) + shift).collect();
            let bound = mu_bound(&Worlds { first: law(mu), second: law(0.0) });
            assert!(bound.likely < mu && bound.likely > mu - 0.02, "{mu}: {bound:?}");
        }
    }
}
