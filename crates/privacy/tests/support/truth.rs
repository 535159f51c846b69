//! The exact deltas, as functions of epsilon, with their slopes: what is asked is never "what is epsilon?" but "is this epsilon
//! enough?", which one evaluation answers.

use super::real::{PI, Real};
use num_bigint::BigInt;
use std::sync::LazyLock;

/// delta(epsilon), and minus its derivative.
pub struct Delta {
    pub value: Real,
    pub slope: Real,
}

impl Delta {
    /// By which part of `epsilon` it could be smaller with this `delta`; negative where `epsilon` is below the truth. To first order;
    /// 0 for an epsilon of 0 that is enough.
    pub fn excess(&self, epsilon: f64, delta: f64) -> f64 {
        let left = &Real::exactly(delta) - &self.value;
        if epsilon == 0.0 {
            return if self.value > Real::exactly(delta) { -1.0 } else { 0.0 };
        }
        let apart = &left / &(&self.slope * &Real::exactly(epsilon));
        apart.to_f64().clamp(-1.0, 1.0)
    }
}

/// Gaussian steps, given as (noise multiplier, count): mu^2 = sum count / multiplier^2 and
/// delta(e) = Phi(mu/2 - e/mu) - e^e Phi(-mu/2 - e/mu).
pub fn gaussian(steps: &[(f64, u64)], epsilon: f64) -> Delta {
    let square = |&(multiplier, count): &(f64, u64)| {
        let multiplier = Real::exactly(multiplier);
        &Real::whole(count) / &(&multiplier * &multiplier)
    };
    let mu = steps.iter().map(square).fold(Real::whole(0), |sum, part| &sum + &part).sqrt();
    let epsilon = Real::exactly(epsilon);
    let centre = &epsilon / &mu;
    let half = mu.half();
    let far = &epsilon.exp() * &upper_tail(&(&centre + &half));
    Delta { value: &upper_tail(&(&centre - &half)) - &far, slope: far }
}

/// 1 - Phi(x).
pub fn upper_tail(x: &Real) -> Real {
    let root = Real::whole(2).sqrt();
    if *x < Real::whole(0) {
        return &Real::whole(1) - &erfc(&(&-x / &root)).half();
    }
    erfc(&(x / &root)).half()
}

/// n^2 h^2 and its exp(-n^2 h^2), for h = 1/5 and n = 1, 2, ..: what the trapezoidal rule needs.
static NODES: LazyLock<Vec<(Real, Real)>> = LazyLock::new(|| {
    let node = |n: i64| {
        let square = &Real::whole(n * n) / &Real::whole(25);
        let weight = (-&square).exp();
        (square, weight)
    };
    (1..=80).map(node).collect()
});

/// The complementary error function for x >= 0. Below 1/2 by the series of erf, all of whose terms are positive; above by the
/// trapezoidal rule with its pole taken out (Matta and Reichel 1971), whose error is below e^-246, relatively:
/// erfc(x) = (h x e^{-x^2} / pi) (1/x^2 + 2 sum e^{-n^2 h^2} / (n^2 h^2 + x^2)) - 2 / (e^{2 pi x / h} - 1).
fn erfc(x: &Real) -> Real {
    let square = x * x;
    let fall = (-&square).exp();
    if *x < Real::exactly(0.5) {
        // erf(x) = 2 / sqrt(pi) e^{-x^2} sum 2^n x^{2n+1} / (1 3 5 .. (2n+1))
        let (mut sum, mut term) = (x.clone(), x.clone());
        for n in 1..400 {
            term = &(&(&term * &square) * &Real::whole(2)) / &Real::whole(2 * n + 1);
            if term.scale() < sum.scale() - 410 {
                break;
            }
            sum = &sum + &term;
        }
        let erf = &(&(&sum * &fall) * &Real::whole(2)) / &PI.sqrt();
        return &Real::whole(1) - &erf;
    }
    let mut sum = (&Real::whole(1) / &square).half();
    for (node, weight) in NODES.iter() {
        sum = &sum + &(weight / &(node + &square));
    }
    let rule = &(&(&(&sum * &Real::whole(2)) * x) * &fall) / &(&Real::whole(5) * &PI);
    let period = &Real::whole(10) * &PI;
    if *x > period.clone().half() {
        return rule;
    }
    let pole = &Real::whole(2) / &(&(&period * x).exp() - &Real::whole(1));
    &rule - &pole
}

/// One Laplace step: delta(e) = 1 - exp((e - eps) / 2) below eps = 1 / multiplier, and 0 above.
pub fn laplace(multiplier: f64, epsilon: f64) -> Delta {
    let loss = &(&Real::exactly(epsilon) - &(&Real::whole(1) / &Real::exactly(multiplier)));
    if *loss >= Real::whole(0) {
        return Delta { value: Real::whole(0), slope: Real::exactly(0.5) };
    }
    let kept = loss.clone().half().exp();
    Delta { value: &Real::whole(1) - &kept, slope: kept.half() }
}

/// `count` answers of randomized response with `each`: sum over l_j = (2j - k) eps > e of b_j (1 - e^{e - l_j}), j binomial.
pub fn answers(each: &Real, count: u64, epsilon: f64) -> Delta {
    let k = count as i64;
    let epsilon = Real::exactly(epsilon);
    let loss = |j: i64| &Real::whole(2 * j - k) * each;
    let odds = each.exp();
    let inverse = &Real::whole(1) / &odds;
    // k ln(1 + e^{-eps}), minus ln b_k.
    let log_all = &Real::whole(k) * &(&Real::whole(1) + &inverse).ln();
    // The first j with a larger loss.
    let guess = 0.5 * ((&epsilon / each).to_f64() + count as f64);
    let mut first = (guess as i64 - 2).clamp(0, k);
    while first <= k && loss(first) <= epsilon {
        first += 1;
    }
    if first > k {
        return Delta { value: Real::whole(0), slope: (-&log_all).exp() };
    }
    // ln b_j = ln C(k, j) - (k - j) eps - k ln(1 + e^{-eps})
    let outside = &log_factorial(count) - &(&log_factorial(first as u64) + &log_factorial((k - first) as u64));
    let log_mass = &(&outside - &(&Real::whole(k - first) * each)) - &log_all;
    // Both sums in units of b_first, from where the masses may first rise and then fall.
    let (mut mass, mut weighted) = (Real::whole(1), (&epsilon - &loss(first)).exp());
    let (mut above, mut far) = (mass.clone(), weighted.clone());
    for j in first..k {
        let ratio = |term: &Real, odds: &Real| &(&(term * odds) * &Real::whole(k - j)) / &Real::whole(j + 1);
        let rises = mass.scale();
        (mass, weighted) = (ratio(&mass, &odds), ratio(&weighted, &inverse));
        (above, far) = (&above + &mass, &far + &weighted);
        // The masses fall ever faster: once they are below 2^-300 of the sum the rest is below 2^-280.
        if mass.scale() <= rises && mass.scale() < above.scale() - 300 {
            break;
        }
    }
    let unit = log_mass.exp();
    Delta { value: &unit * &(&above - &far), slope: &unit * &far }
}

/// ln n!: a product for small n, Stirling's series with 24 terms for large ones, which errs by less than 1e-110 from 1000 on.
fn log_factorial(n: u64) -> Real {
    static SMALL: LazyLock<Vec<Real>> = LazyLock::new(|| {
        let mut product = BigInt::from(1);
        let next = |n: u64| {
            product *= n.max(1);
            Real::whole(product.clone()).ln()
        };
        (0..1000).map(next).collect()
    });
    /// B_2m / (2m (2m - 1)).
    static TERMS: LazyLock<Vec<Real>> = LazyLock::new(|| {
        let tangents = tangent_numbers(24);
        let term = |(index, tangent): (usize, &BigInt)| {
            let m = index as u64 + 1;
            let power = BigInt::from(1) << (2 * m);
            // B_2m = (-1)^{m-1} 2m T_m / (4^m (4^m - 1))
            let bernoulli = &Real::whole(tangent * 2 * m) / &Real::whole(&power * (&power - 1));
            let term = &bernoulli / &Real::whole(2 * m * (2 * m - 1));
            if m.is_multiple_of(2) { -&term } else { term }
        };
        tangents.iter().enumerate().map(term).collect()
    });
    if let Some(known) = SMALL.get(n as usize) {
        return known.clone();
    }
    let x = Real::whole(n);
    let log = x.ln();
    // (n + 1/2) ln n - n + ln(2 pi) / 2 + sum
    let mut sum = &(&(&x + &Real::exactly(0.5)) * &log) - &x;
    sum = &sum + &(&Real::whole(2) * &PI).ln().half();
    let mut power = x.clone();
    for term in TERMS.iter() {
        sum = &sum + &(term / &power);
        power = &(&power * &x) * &x;
    }
    sum
}

/// T_1, T_2, ..: 1, 2, 16, 272, .. (Brent and Harvey 2011).
fn tangent_numbers(count: usize) -> Vec<BigInt> {
    let mut tangents = vec![BigInt::from(1)];
    for k in 1..count {
        let next = &tangents[k - 1] * k;
        tangents.push(next);
    }
    for k in 1..count {
        for j in k..count {
            tangents[j] = &tangents[j - 1] * (j - k) + &tangents[j] * (j - k + 2);
        }
    }
    tangents
}
