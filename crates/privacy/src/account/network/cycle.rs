//! A token that every holder adds a value and Gaussian noise to, on the complete graph: sums and means (thesis Algorithm 4.4). Proof:
//! `proofs/network-cycle.md`.
//!
//! In a cycle of m hops by others than the observers, k of them contributions of the protected member, observers see one number more:
//! the sum of what was added, with noise of variance m sigma^2. Given the path the view is mu-Gaussian with
//! mu^2 = X (sensitivity / sigma)^2, X the sum over cycles of k^2 / m. The paths are known to the observers, so that
//! ```text
//! E exp(lambda X) = [z^T] of a series made of  A(y, z) = sum_m z^m sum_k y^k C(m, k) p^k (1-p-r)^{m-k} exp(lambda k^2 / m)
//! ```
//! as `series` says. Where its table would be too large, all visits of the member count, in each cycle at most K.

use super::convert::{self, Conversion, Moments};
use super::gaps::Gaps;
use super::iteration::{CONTRIBUTIONS_MAX, Iteration, endless_paths};
use super::series::{Circle, Counted, Point, after_last};
use super::walk::{KnownEpsilon, Observer, Walk};
use crate::Ledger;
use crate::account::{Accountant, optimal::log_binomial, within};

/// Numbers in each table of a walk in which contributions are counted.
const TABLE_MAX: u64 = 1 << 20;
/// Hops of a walk in which they are not.
const HOPS_MAX: u64 = 1 << 20;
/// Visits of observers that are expected in a cycle so long that it may be counted at its highest cost.
const NEGLIGIBLE: f64 = 60.0;

/// Privacy of one member's contributions to a sum by a token on the complete graph, against observers who know its path.
///
/// # Privacy
/// Unit: all of one member's data. See `proofs/network-cycle.md`. Holds for steps tau <- tau + x + noise where x does not depend on
/// tau, with noise of sigma on each coordinate at every hop, also where nothing is contributed.
pub struct Cycle {
    walk: Walk,
    gaps: Option<Gaps>,
    sums: Option<Sums>,
    /// Where there is no table of sums. A sum is a token moved by contractions too: what holds for those holds here.
    iteration: Option<Iteration>,
    known: KnownEpsilon,
}

impl Cycle {
    /// The accountant of a walk.
    pub fn new(walk: Walk) -> Self {
        let (p, r) = walk.visits();
        let gaps = (walk.contributions <= CONTRIBUTIONS_MAX).then(|| Gaps::new(p + r, walk.contributions + 1));
        let sums = if walk.is_steady() { Sums::new(&walk) } else { None };
        let iteration = sums.is_none().then(|| Iteration::new(walk));
        Cycle { walk, gaps, sums, iteration, known: KnownEpsilon::default() }
    }

    /// Whom its guarantee is against.
    pub fn observer(&self) -> Observer {
        self.walk.observer()
    }

    /// The epsilon at `delta` of contributions with this noise multiplier, sigma / sensitivity; rounds up.
    pub fn epsilon_at(&self, noise_multiplier: f64, delta: f64) -> f64 {
        convert::epsilon(self, noise_multiplier, within(delta), Conversion::Gaussian)
    }

    /// The same from Renyi divergences alone.
    pub fn epsilon_by_renyi(&self, noise_multiplier: f64, delta: f64) -> f64 {
        convert::epsilon(self, noise_multiplier, within(delta), Conversion::Renyi)
    }

    /// The least noise multiplier, to a relative 1e-6, with which [`Cycle::epsilon_at`] is at most `epsilon`; none outside of
    /// epsilon > 0 and 0 < delta < 1.
    pub fn noise_multiplier(&self, epsilon: f64, delta: f64) -> Option<f64> {
        convert::noise_multiplier(self, epsilon, delta, Conversion::Gaussian)
    }
}

/// ln E exp(lambda X) where every visit counts, in each cycle at most K of them, and the end of the walk is seen, told or not.
fn all_visits(walk: &Walk, lambda: f64) -> f64 {
    let (p, r) = walk.visits();
    let weights: Vec<f64> = (0..=walk.hops).map(|hops| cycle(walk, lambda, hops as f64)).collect();
    // The series grows as the inverse of its pole does: r z A(z) = 1 at some z up to 1, which is where lambda = 0 has it.
    let at = |log_z: f64| {
        let value: f64 = (1..).zip(&weights).map(|(hops, weight)| libm::exp(weight + f64::from(hops) * log_z)).sum();
        r * value
    };
    let (mut low, mut high) = (-1.0, 0.0);
    while at(low) > 1.0 {
        low *= 2.0;
    }
    while high - low > 0.5 / walk.hops as f64 {
        let middle = 0.5 * (low + high);
        if at(middle) > 1.0 {
            high = middle;
        } else {
            low = middle;
        }
    }
    let circle = Circle::new(walk.hops as usize).inside(low);
    let counted = Counted { circle, told_outcome: true, visits: (p, r) };
    let transform = counted.circle.transform(|hops| weights[hops]);
    counted.log_moment(1, |index, _, whole, _| whole[0] = transform[index])
}

/// ln of the sum over k of the probability that m hops are none of an observer's and k of them the member's, times
/// exp(lambda min(k, K)^2 / m); rounds up.
fn cycle(walk: &Walk, lambda: f64, m: f64) -> f64 {
    let (p, r) = walk.visits();
    if m == 0.0 {
        return 0.0;
    }
    let top = m.min(walk.contributions as f64);
    let (share, steepest) = (p / (1.0 - r), lambda * top * top / m);
    if m * r > NEGLIGIBLE {
        // So long a cycle comes so seldom that its highest cost may stand for it.
        return steepest + m * libm::log1p(-r) + 1e-12;
    }
    // ln of the masses of the binomial law, what they leave, and their sum with the exponents.
    let (mut log_mass, mut left, mut sum) = (m * libm::log1p(-share), 1.0, 0.0);
    let mut k = 0.0;
    loop {
        // The quotient of the next mass and this one, which falls from mass to mass.
        let quotient = (m - k) / (k + 1.0) * share / (1.0 - share);
        if k == top || (quotient < 0.5 && log_mass + steepest < -32.0) {
            let all = libm::log(left + 1e-12);
            let log_rest = if quotient < 0.5 { all.min(log_mass - libm::log1p(-quotient)) } else { all };
            sum += libm::exp(log_rest + steepest);
            break;
        }
        sum += libm::exp(log_mass + lambda * k * k / m);
        left = (left - libm::exp(log_mass)).max(0.0);
        log_mass += libm::log(quotient);
        k += 1.0;
    }
    libm::log(sum) + m * libm::log1p(-r) + 1e-12
}

impl Moments for Cycle {
    fn most(&self) -> f64 {
        (self.walk.contributions * self.walk.tokens) as f64
    }

    /// As if the member made all its contributions in a walk without end; a cycle with k of them is k + 1 gaps long.
    fn rough(&self, lambda: f64) -> f64 {
        let Some(gaps) = &self.gaps else { return f64::INFINITY };
        let (p, r) = self.walk.visits();
        let again = p / (p + r);
        let cost = |b: f64, g: f64| if b > 1.0 { lambda * (b - 1.0) * (b - 1.0) / (g - 1.0) } else { 0.0 };
        let mut cycles = gaps.moments(0.0, cost);
        let mut scale = 1.0;
        for cycle in &mut cycles {
            *cycle *= scale;
            scale *= again;
        }
        let moment = self.walk.tokens as f64 * libm::log(endless_paths(&cycles, again, r / (p + r)));
        if moment.is_nan() { f64::INFINITY } else { moment.max(0.0) }
    }

    fn log_moment(&self, lambda: f64) -> f64 {
        let sums = self.sums.as_ref().map_or(f64::INFINITY, |sums| sums.log_moment(lambda));
        let iteration = self.iteration.as_ref().map_or(f64::INFINITY, |iteration| iteration.log_moment(lambda));
        let counts_all = self.sums.is_none() && self.walk.is_steady() && self.walk.hops <= HOPS_MAX;
        let all = if counts_all { all_visits(&self.walk, lambda) } else { f64::INFINITY };
        let one = sums.min(all);
        // The other accountant counts all tokens already.
        iteration.min(self.walk.tokens as f64 * one)
    }
}

impl Accountant for Cycle {
    fn epsilon(&self, ledger: &Ledger, delta: f64) -> f64 {
        self.walk.epsilon(ledger, |multiplier| self.known.or(multiplier, delta, || self.epsilon_at(multiplier, delta)))
    }
}

/// Walks of T hops, counted path by path.
struct Sums {
    walk: Counted,
    /// ln of the probability of cycles by k, from 0 on, and length.
    whole: Vec<Vec<f64>>,
    /// The same by k, from 1 on, for cycles with the last of all contributions.
    last: Vec<Vec<f64>>,
}

impl Sums {
    fn new(walk: &Walk) -> Option<Self> {
        let counted = walk.counted(TABLE_MAX / walk.contributions)?;
        let (p, r) = counted.visits;
        let (share, rest) = (p / (1.0 - r), (1.0 - p - r) / (1.0 - r));
        let weight = |k: u64, m: u64| {
            let (k_real, m_real) = (k as f64, m as f64);
            match k {
                _ if k > m => f64::NEG_INFINITY,
                _ if k == m => m_real * libm::log(p),
                0 => m_real * libm::log(1.0 - p - r),
                _ => log_binomial(k_real, m_real, share, rest) + m_real * libm::log1p(-r),
            }
        };
        let row = |k: u64| (0..=walk.hops).map(|m| weight(k, m)).collect();
        let whole: Vec<Vec<f64>> = (0..=walk.contributions).map(row).collect();
        let fewer = &whole[..walk.contributions as usize];
        let last = fewer.iter().map(|fewer| after_last(fewer, counted.visits)).collect();
        Some(Sums { walk: counted, whole, last })
    }

    fn log_moment(&self, lambda: f64) -> f64 {
        let most = self.last.len();
        let transform = |(k, weights): (usize, &Vec<f64>)| {
            let k = k as f64;
            self.walk.circle.transform(|m| weights[m] + lambda * k * k / (m as f64).max(k).max(1.0))
        };
        let whole: Vec<Vec<Point>> = self.whole.iter().enumerate().map(transform).collect();
        let last: Vec<Vec<Point>> = (1..).zip(&self.last).map(transform).collect();
        self.walk.log_moment(most, |index, _, out_whole, out_last| {
            out_whole.iter_mut().zip(&whole).for_each(|(out, whole)| *out = whole[index]);
            out_last.iter_mut().skip(1).zip(&last).for_each(|(out, last)| *out = last[index]);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::estimate::crossing;
    use super::*;

    const LAMBDAS: [f64; 3] = [0.1, 1.0, 2.5];

    /// E exp(lambda X) over every path: each hop is the member's, an observer's or another's.
    fn every_path(walk: &Walk) -> [f64; 3] {
        let (p, r) = walk.visits();
        let mut sums = [0.0; 3];
        for code in 0..3u64.pow(walk.hops as u32) {
            let (mut rest, mut probability, mut made) = (code, 1.0, 0);
            let (mut k, mut m, mut cost) = (0.0, 0.0, 0.0);
            for hop in 1..=walk.hops {
                match rest % 3 {
                    1 => probability *= r,
                    0 => {
                        probability *= p;
                        (k, m) = (if made < walk.contributions { k + 1.0 } else { k }, m + 1.0);
                        made += 1;
                    }
                    _ => {
                        probability *= 1.0 - p - r;
                        m += 1.0;
                    }
                }
                let is_seen = rest % 3 == 1 || (hop == walk.hops && walk.told_outcome);
                if is_seen {
                    cost += if m > 0.0 { k * k / m } else { 0.0 };
                    (k, m) = (0.0, 0.0);
                }
                rest /= 3;
            }
            for (sum, lambda) in sums.iter_mut().zip(LAMBDAS) {
                *sum += probability * libm::exp(lambda * cost);
            }
        }
        sums
    }

    #[test]
    fn the_sum_over_paths_is_that_of_every_path() {
        for (agents, colluders, hops) in [(3, 1, 8), (5, 1, 9), (4, 2, 8), (7, 1, 8)] {
            for contributions in [1, 2, 3, 5, hops] {
                for told_outcome in [true, false] {
                    let walk = Walk {
                        agents,
                        hops,
                        contributions,
                        colluders,
                        present: 1.0,
                        told_outcome,
                        tokens: 1,
                        reissued: false,
                    };
                    let accountant = Cycle::new(walk);
                    for (lambda, truth) in LAMBDAS.into_iter().zip(every_path(&walk).map(libm::log)) {
                        let found = accountant.log_moment(lambda);
                        // More where each further hop multiplies the sum, by what wraps around.
                        let wrapped = if lambda > 2.0 { 1e-3 } else { 1e-6 };
                        assert!(found >= truth - 1e-12, "{walk:?} {lambda}: {found} below {truth}");
                        assert!(found <= truth + wrapped, "{walk:?} {lambda}: {found} above {truth}");
                        let all = all_visits(&walk, lambda);
                        assert!(all >= truth - 1e-12, "{walk:?} {lambda}: {all} below {truth}");
                        let above = Iteration::new(walk).log_moment(lambda);
                        assert!(above >= truth - 1e-12, "{walk:?} {lambda}: {above} below {truth}");
                    }
                }
            }
        }
    }
    /// Thesis' example of section 3: T = 100 n, at most N = 170 contributions.
    fn example(agents: u64) -> Cycle {
        Cycle::new(Walk::new(agents, 100 * agents, 170).expect("valid"))
    }

    /// Spec 05 section 5: between the full-path mixture, 0.68 and 0.34, and the mixture over cycles that are composed one by one, 1.16 and
    /// 0.67, at a noise multiplier of 10; the local value is 8.24.
    #[test]
    fn sums_of_the_example_cost_between_the_estimate_and_composed_cycles() {
        for (agents, mixture, cycles) in [(100, 0.68, 1.16), (400, 0.34, 0.67)] {
            let accountant = example(agents);
            let (epsilon, renyi) = (accountant.epsilon_at(10.0, 2e-7), accountant.epsilon_by_renyi(10.0, 2e-7));
            assert!(epsilon > mixture && epsilon < renyi && renyi < cycles, "{agents}: {epsilon} {renyi}");
        }
    }

    /// CHECK 05.f: below local composition, and the gain grows about as the root of n.
    #[test]
    fn check_05_f_sums_over_many_cost_less_than_locally() {
        for local_epsilon in [0.1, 0.4] {
            let noise_multiplier =
                libm::exp(crossing(-5.0, 8.0, |log| crate::gaussian_epsilon(libm::exp(-log), 1e-7) <= local_epsilon));
            let local = crate::gaussian_epsilon(170f64.sqrt() / noise_multiplier, 2e-7);
            let gain = |agents: u64| local / example(agents).epsilon_at(noise_multiplier, 2e-7);
            let (few, many) = (gain(100), gain(400));
            assert!(few > 4.0 && many > 1.5 * few && many < 2.5 * few, "{local_epsilon}: {few} {many}");
        }
    }

    /// CHECK 05.g: the more members, the larger the gain, which begins with some.
    #[test]
    fn check_05_g_the_gain_begins_with_few_members_and_grows() {
        let gain = |agents: u64| {
            let accountant = Cycle::new(Walk::new(agents, 20 * agents, 24).expect("valid"));
            crate::gaussian_epsilon(24f64.sqrt() / 10.0, 1e-6) / accountant.epsilon_at(10.0, 1e-6)
        };
        let gains = [5, 10, 30, 100, 400].map(gain);
        assert!(gains[0] >= 1.0 && gains[2] > 1.5 && gains[4] > 5.0, "{gains:?}");
        assert!(gains.windows(2).all(|pair| pair[1] > pair[0]), "{gains:?}");
    }

    #[test]
    fn tables_of_sums_and_all_visits_agree_where_no_visit_is_one_too_many() {
        // 40 contributions of a mean of 10 in 500 hops.
        let walk = Walk::new(50, 500, 40).expect("valid");
        let accountant = Cycle::new(walk);
        for lambda in [0.01, 0.3, 2.0] {
            let (table, all) = (accountant.log_moment(lambda), all_visits(&walk, lambda));
            // Either is above the truth by less than 1e-7: rounding and what wraps around.
            assert!(all >= table - 1e-7 && all < table * (1.0 + 1e-5) + 1e-7, "{lambda}: {all} {table}");
        }
    }
}
