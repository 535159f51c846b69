//! Clopper and Pearson's exact confidence bounds for a binomial proportion.
//!
//! P(Bin(n, p) >= s) = I_p(s, n - s + 1), the regularized incomplete beta function, here by its continued fraction.

/// The p below which `successes` of `trials` or more would come up with probability less than `error`: a lower bound that holds
/// with confidence 1 - `error`.
pub fn lower(successes: u64, trials: u64, error: f64) -> f64 {
    assert!(successes <= trials && trials > 0, "{successes} successes of {trials}");
    if successes == 0 {
        return 0.0;
    }
    let (s, n) = (successes as f64, trials as f64);
    // Increasing in p.
    let below = crossing(|p| beta(p, s, n - s + 1.0) < error);
    below * (1.0 - ROUNDING)
}

/// The same from above.
pub fn upper(successes: u64, trials: u64, error: f64) -> f64 {
    1.0 - lower(trials - successes, trials, error)
}

/// An allowance for rounding, far below what any number of trials can tell.
const ROUNDING: f64 = 1e-9;

/// The number of [0, 1] below which `is_below` holds, or a little less.
fn crossing(is_below: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if is_below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// I_x(a, b) for a, b > 0.
fn beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    // The fraction converges fast on the left of the mean; on the right, by symmetry.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - beta_left(1.0 - x, b, a);
    }
    beta_left(x, a, b)
}

/// x^a (1-x)^b / (a B(a, b)) over Lentz's evaluation of the continued fraction (Abramowitz and Stegun, 26.5.8).
fn beta_left(x: f64, a: f64, b: f64) -> f64 {
    let log_front =
        libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * libm::log(x) + b * libm::log1p(-x) - libm::log(a);
    let guarded = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let (mut c, mut d) = (1.0, 1.0 / guarded(1.0 - (a + b) * x / (a + 1.0)));
    let mut fraction = d;
    // About sqrt(a + b) terms are needed.
    for k in 1..1_000_000 {
        let m = f64::from(k);
        for term in [
            m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0)),
        ] {
            d = 1.0 / guarded(1.0 + term * d);
            c = guarded(1.0 + term / c);
            fraction *= c * d;
        }
        if (c * d - 1.0).abs() < 1e-15 {
            break;
        }
    }
    (libm::exp(log_front) * fraction).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// P(Bin(n, p) >= s), term by term.
    fn tail(s: u64, n: u64, p: f64) -> f64 {
        (s..=n)
            .map(|k| {
                let choose: f64 = (0..k).map(|j| libm::log((n - j) as f64 / (k - j) as f64)).sum();
                libm::exp(choose + k as f64 * libm::log(p) + (n - k) as f64 * libm::log1p(-p))
            })
            .sum()
    }

    #[test]
    fn the_bound_is_where_the_tail_of_the_binomial_law_is_the_error() {
        for (s, n) in [(1, 1), (1, 10), (5, 10), (9, 10), (10, 10), (3, 200), (120, 200), (200, 200)] {
            for error in [0.05, 1e-3, 1e-6] {
                let p = lower(s, n, error);
                assert!((tail(s, n, p) / error - 1.0).abs() < 1e-6, "{s} of {n} at {error}: {p}");
            }
        }
    }

    #[test]
    fn the_reference_values_come_out() {
        // R: binom.test(0, 20)$conf.int, binom.test(7, 20)$conf.int, both two-sided at 95%.
        assert!((upper(0, 20, 0.025) - 0.168_433_5).abs() < 1e-6);
        assert!((lower(7, 20, 0.025) - 0.153_909_2).abs() < 1e-6);
        assert!((upper(7, 20, 0.025) - 0.592_188_5).abs() < 1e-6);
        assert_eq!((lower(0, 20, 0.025), upper(20, 20, 0.025)), (0.0, 1.0));
    }

    #[test]
    fn with_a_million_trials_it_is_the_normal_approximation() {
        let (n, p) = (1_000_000u64, 0.184);
        let half_width = 1.959_964 * (p * (1.0 - p) / n as f64).sqrt();
        let (low, high) = (lower(184_000, n, 0.025), upper(184_000, n, 0.025));
        assert!((p - low - half_width).abs() < 2e-6 && (high - p - half_width).abs() < 2e-6, "{low} {high}");
    }
}
