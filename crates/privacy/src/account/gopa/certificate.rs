//! What is certain of a random graph before it is drawn. Proof: `proofs/gopa.md`.
//!
//! Each of n members picks k of the others, uniformly and by itself; there is an edge where one picked the other. Who colludes and who is gone does not depend
//! on the picks. All bounds are sums of positive terms by logarithms, and `SLACK` covers what these round.

/// What logarithms and exponentials round, generously.
const SLACK: f64 = 1.0 + 1e-6;

/// Where k (h - 1) is at least this many times n - 1, the bound for h members is one for all larger numbers too.
const MONOTONE: f64 = 2.78;

/// A bound on the probability that some honest members that finished have no edge to the others, where at least `honest` of `members` are
/// honest and finish; 1 where the bound is not proven for more than so many.
pub fn disconnected(members: u32, honest: u32, neighbours: u32) -> f64 {
    let (n, h) = (f64::from(members), f64::from(honest));
    if honest < 2 || neighbours >= members - 1 {
        // Alone, or complete.
        return if honest < 2 { 1.0 } else { 0.0 };
    }
    if f64::from(neighbours) * (h - 1.0) < MONOTONE * (n - 1.0) {
        return 1.0;
    }
    let mut sum = 0.0;
    for size in 1..=honest / 2 {
        let rest = honest - size;
        let log = log_choose(honest, size)
            + f64::from(size) * log_avoids(members, rest, neighbours)
            + f64::from(rest) * log_avoids(members, size, neighbours);
        sum += libm::exp(log);
    }
    (sum * SLACK).min(1.0)
}

/// A bound on the probability that `coalition` of a member's `members - 1` others hold `threshold` or more of the shares that it deals to its picks.
pub fn held(members: u32, coalition: u32, neighbours: u32, threshold: u32) -> f64 {
    let sum: f64 = (threshold..=neighbours.min(coalition))
        .map(|count| hypergeometric(members - 1, coalition, neighbours, count))
        .sum();
    (sum * SLACK).min(1.0)
}

/// A bound on the probability that fewer than `threshold` of a member's picks finish, where `finishing` of all do.
pub fn fewer_finish(members: u32, finishing: u32, neighbours: u32, threshold: u32) -> f64 {
    let others = finishing.saturating_sub(1);
    let sum: f64 =
        (0..threshold.min(neighbours + 1)).map(|count| hypergeometric(members - 1, others, neighbours, count)).sum();
    (sum * SLACK).min(1.0)
}

/// The honest degree that a member is below with at most this probability: the largest d with P(degree < d) <= p. What Gaussian masks are certified by.
pub fn degree_quantile(members: u32, honest: u32, neighbours: u32, probability: f64) -> u32 {
    let below = |degree: u32| degree_below(members, honest, neighbours, degree);
    (1..=honest).take_while(|&degree| below(degree) <= probability).last().unwrap_or(0)
}

/// A bound on the probability that an honest member has fewer honest neighbours than this, hardly above it.
pub fn degree_below(members: u32, honest: u32, neighbours: u32, degree: u32) -> f64 {
    let (others, rate) = (honest.saturating_sub(1), f64::from(neighbours) / f64::from(members - 1));
    // Own picks, and those of the honest ones that were not picked.
    let own = |count: u32| hypergeometric(members - 1, others, neighbours, count);
    let picked = |count: u32| (0..degree - count).map(|more| binomial(others - count, rate, more)).sum::<f64>();
    let sum: f64 = (0..degree.min(neighbours + 1).min(others + 1)).map(|count| own(count) * picked(count)).sum();
    (sum * SLACK).min(1.0)
}

/// ln of the probability that k picks of n - 1 others avoid these many: C(n - 1 - many, k) / C(n - 1, k).
fn log_avoids(members: u32, many: u32, neighbours: u32) -> f64 {
    let others = members - 1;
    if others - many < neighbours {
        return f64::NEG_INFINITY;
    }
    (0..neighbours).map(|pick| libm::log1p(-f64::from(many) / f64::from(others - pick))).sum()
}

/// ln C(n, k).
fn log_choose(n: u32, k: u32) -> f64 {
    let log_factorial = |n: u32| libm::lgamma(f64::from(n) + 1.0);
    if k > n { f64::NEG_INFINITY } else { log_factorial(n) - log_factorial(k) - log_factorial(n - k) }
}

/// The probability that `count` of `draws` without replacement are among the `marked` of `all`.
fn hypergeometric(all: u32, marked: u32, draws: u32, count: u32) -> f64 {
    if count > draws || marked > all {
        return 0.0;
    }
    libm::exp(log_choose(marked, count) + log_choose(all - marked, draws - count) - log_choose(all, draws))
}

/// The probability of so many successes.
fn binomial(trials: u32, rate: f64, count: u32) -> f64 {
    if count > trials || rate >= 1.0 {
        return if rate >= 1.0 && count == trials { 1.0 } else { 0.0 };
    }
    let (hits, misses) = (f64::from(count) * libm::log(rate), f64::from(trials - count) * libm::log1p(-rate));
    libm::exp(log_choose(trials, count) + hits + misses)
}
