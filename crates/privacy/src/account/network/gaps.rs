//! How long a walk takes from one visit to the next, and to the b-th.
//!
//! Where each hop ends a gap with probability h, the hops until the b-th end are G_b, with
//! ```text
//! P(G_b = g) = C(g-1, b-1) h^b (1-h)^{g-b},   P(G_b > g) = P(Bin(g, h) < b)
//! ```

use crate::account::optimal::log_binomial;

/// Relative error that is allowed to P(G_b > g): a sum of positive terms from one whose logarithm is exact to 1e-13.
const SURVIVAL_ERROR: f64 = 2e-12;

/// ln P(G_b = g) for g >= b >= 1.
pub(super) fn log_mass(b: u64, g: u64, hazard: f64) -> f64 {
    let (b_real, g_real) = (b as f64, g as f64);
    if g == b {
        return b_real * libm::log(hazard);
    }
    if hazard >= 1.0 {
        return -f64::INFINITY;
    }
    // (b / g) C(g, b) h^b (1-h)^{g-b}
    libm::log(b_real / g_real) + log_binomial(b_real, g_real, hazard, 1.0 - hazard)
}

/// The laws of G_1 .. G_most in bins: of each bin its lower end, and an upper bound on ln of its mass.
pub(super) struct Gaps {
    /// By b, from 1 on: (g, ln mass).
    bins: Vec<Vec<(f64, f64)>>,
}

impl Gaps {
    /// The laws with this probability that a hop ends a gap, up to the sum of `most` gaps.
    pub fn new(hazard: f64, most: u64) -> Self {
        Gaps::binned(hazard, most, (500_000 / most).clamp(100, 1000))
    }

    /// The same in bins so narrow that four digits of a noise are right.
    pub fn finer(hazard: f64, most: u64) -> Self {
        Gaps::binned(hazard, most, 10_000)
    }

    /// Above `fine` hops a bin is as wide as its start over this number.
    fn binned(hazard: f64, most: u64, fine: u64) -> Self {
        let last = ((60.0 + 3.0 * most as f64) / hazard).min(1e15) as u64;
        let mut edges: Vec<u64> = vec![1];
        let mut edge = 1;
        while edge < last {
            edge += (edge / fine).max(1);
            edges.push(edge);
        }
        let mut bins: Vec<Vec<(f64, f64)>> = vec![Vec::new(); most as usize];
        let (mut before, mut after) = (vec![0.0; most as usize + 1], vec![0.0; most as usize + 1]);
        // P(G_b > 0) = 1 for b >= 1.
        before[1..].fill(1.0);
        for (&low, high) in edges.iter().zip(edges.iter().skip(1).copied().map(Some).chain([None])) {
            match high {
                Some(high) => survival(high - 1, hazard, &mut after),
                None => after.fill(0.0),
            }
            for b in 1..=most {
                let from = low.max(b);
                if high.is_some_and(|high| from >= high) {
                    continue;
                }
                let index = b as usize;
                let single = high == Some(from + 1);
                let log_mass = if single {
                    log_mass(b, from, hazard)
                } else {
                    // All of the bin at once, and, where that is a small difference, its length times its highest mass.
                    let all = before[index] - after[index] + SURVIVAL_ERROR * before[index];
                    let mode = ((b as f64 - 1.0) / hazard) as u64 + 1;
                    let highest = high.map_or(0.0, |high| {
                        let mode = mode.clamp(from, high - 1);
                        log_mass(b, mode, hazard) + libm::log((high - from) as f64)
                    });
                    libm::log(all.max(f64::MIN_POSITIVE)).min(highest)
                };
                if log_mass > -f64::INFINITY {
                    bins[index - 1].push((from as f64, log_mass));
                }
            }
            std::mem::swap(&mut before, &mut after);
        }
        Gaps { bins }
    }

    /// E exp(cost(b, G_b)) times exp(b log_scale), for all b from 1 on, and a cost that falls with G_b; rounds up.
    pub fn moments(&self, log_scale: f64, cost: impl Fn(f64, f64) -> f64) -> Vec<f64> {
        let of = |(index, bins): (usize, &Vec<(f64, f64)>)| {
            let b = index as f64 + 1.0;
            bins.iter().map(|&(g, log_mass)| libm::exp(log_mass + cost(b, g) + b * log_scale)).sum::<f64>()
        };
        self.bins.iter().enumerate().map(of).collect()
    }
}

/// P(G_b > g) = P(Bin(g, h) < b) for all b, from b = 0 on.
fn survival(g: u64, hazard: f64, out: &mut [f64]) {
    out.fill(0.0);
    if hazard >= 1.0 {
        // The b-th end comes at hop b.
        out.iter_mut().enumerate().for_each(|(b, out)| *out = if b as u64 > g { 1.0 } else { 0.0 });
        return;
    }
    let (rest, trials) = (1.0 - hazard, g as f64);
    let last = (out.len() as u64 - 2).min(g);
    let mode = ((trials + 1.0) * hazard) as u64;
    let mode = mode.min(last);
    let at_mode = match mode {
        0 => trials * libm::log1p(-hazard),
        _ if mode == g => trials * libm::log(hazard),
        _ => log_binomial(mode as f64, trials, hazard, rest),
    };
    // The masses of the binomial law, by their quotients from the highest on, at their index plus one.
    let mut mass = libm::exp(at_mode);
    out[mode as usize + 1] = mass;
    for j in (0..mode).rev() {
        mass *= (j as f64 + 1.0) / (trials - j as f64) * rest / hazard;
        out[j as usize + 1] = mass;
    }
    mass = out[mode as usize + 1];
    for j in mode + 1..=last {
        mass *= (trials - j as f64 + 1.0) / j as f64 * hazard / rest;
        out[j as usize + 1] = mass;
    }
    let mut sum = 0.0;
    for out in out.iter_mut() {
        sum += *out;
        *out = sum.min(1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_law_of_a_sum_of_gaps_is_that_of_all_ways_to_make_it() {
        // Two gaps of together 4 with h = 0.3: three ways.
        let truth = 3.0 * 0.09 * 0.49;
        assert!((libm::exp(log_mass(2, 4, 0.3)) - truth).abs() < 1e-14);
        for (hazard, b) in [(0.3, 1u64), (0.01, 3), (0.5, 40), (1.0, 5)] {
            let total: f64 = (b..5000).map(|g| libm::exp(log_mass(b, g, hazard))).sum();
            assert!((total - 1.0).abs() < 1e-11, "{hazard} {b}: {total}");
            let mut above = vec![0.0; b as usize + 1];
            for g in [0, b - 1, b, b + 3, 2 * b + 7, 150] {
                survival(g, hazard, &mut above);
                let direct = 1.0 - (b..=g).map(|g| libm::exp(log_mass(b, g, hazard))).sum::<f64>();
                assert!((above[b as usize] - direct).abs() < 1e-11, "{hazard} {b} {g}: {above:?} {direct}");
            }
        }
    }

    #[test]
    fn moments_in_bins_are_above_the_sums_and_close() {
        for (hazard, most) in [(0.4, 6u64), (1e-3, 12), (1e-4, 2)] {
            let gaps = Gaps::new(hazard, most);
            for lambda in [0.0, 0.1, 5.0] {
                let moments = gaps.moments(0.0, |b, g| lambda * b * b / g);
                for b in 1..=most {
                    let square = (b * b) as f64;
                    let end = (50.0 + 2.0 * b as f64) / hazard;
                    let term = |g: u64| libm::exp(log_mass(b, g, hazard) + lambda * square / g as f64);
                    let truth: f64 = (b..end as u64).map(term).sum();
                    let found = moments[b as usize - 1];
                    assert!(found > truth * (1.0 - 1e-12), "{hazard} {lambda} {b}: {found} {truth}");
                    assert!(found < truth * (1.0 + 1e-4), "{hazard} {lambda} {b}: {found} {truth}");
                }
            }
        }
    }

    #[test]
    fn at_a_visit_after_every_hop_each_gap_is_one() {
        let moments = Gaps::new(1.0, 4).moments(0.0, |b, g| 0.7 * b * b / g);
        for (b, moment) in (1..).zip(moments) {
            assert!((moment / libm::exp(0.7 * f64::from(b)) - 1.0).abs() < 1e-12, "{b}: {moment}");
        }
    }
}
