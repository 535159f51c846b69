//! Any statistic of pairs from randomized response (thesis 3.3.2, Algorithm 3.3).
//!
//! A row is one of k categories q, and tells r = q with probability 1 - beta + beta / k, else another one; beta = k / (k + e^epsilon - 1). With A the kernel of
//! the middles of categories, b = beta / k in each place and e_r a one in place r,
//!
//! U = 1 / (n (n - 1)) sum_{u != v} (1 - beta)^-2 (e_{r_u} - b)^T A (e_{r_v} - b)
//!
//! has the mean of h over pairs of middles as its expectation. With the histogram N of all answers and S = N - n b the sum is S^T A S without its
//! diagonal: time k^2, however many rows there are. For the AUC, whose classes are public, it is S+^T A S- / (n+ n-).
//!
//! Differs from the thesis: (3.8) prints 1 - beta for the probability of the truth.

use super::bins::Bins;
use super::{Question, RowId};
use crate::config::ConfigError;
use crate::pairs::kernel::PairKernel;

/// Less than this is left of the truth: nothing could be found again in floating point.
const TRUTH_MIN: f64 = 1e-12;

/// Which category a row is in, and what all answers say of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    bins: Bins,
    /// 1 - beta.
    truth: f64,
    has_classes: bool,
    /// A, row after row.
    kernel: Box<[f64]>,
}

impl Response {
    /// A kernel of rows in these bins, at this epsilon.
    pub fn new(kernel: &impl PairKernel, bins: Bins, epsilon: f64) -> Result<Self, ConfigError> {
        let k = bins.categories();
        let truth = libm::expm1(epsilon) / (f64::from(k) + libm::expm1(epsilon));
        // An epsilon that is infinite tells the truth.
        let truth = if epsilon > 700.0 { 1.0 } else { truth };
        let tells = epsilon > 0.0 && truth >= TRUTH_MIN;
        if !tells {
            let value = format!("{epsilon} for {k} categories");
            return Err(ConfigError { field: "epsilon", value, accepted: "more, or fewer bins" });
        }
        let middle = |category: u32, label: f64| {
            let mut middle = bins.middle(category);
            middle.extend(kernel.has_label().then_some(label));
            middle
        };
        let (ones, others): (Vec<_>, Vec<_>) =
            (0..k).map(|category| (middle(category, 1.0), middle(category, -1.0))).unzip();
        let pairs = ones.iter().flat_map(|one| others.iter().map(|other| kernel.value(one, other)));
        Ok(Response { bins, truth, has_classes: kernel.has_label(), kernel: pairs.collect() })
    }

    /// 1 - beta.
    pub fn truth(&self) -> f64 {
        self.truth
    }

    /// How many categories there are.
    pub fn categories(&self) -> u32 {
        self.bins.categories()
    }

    /// The category of a row.
    pub fn category(&self, values: impl Iterator<Item = f64>) -> u32 {
        self.bins.category(values)
    }

    /// (1 - beta)^-2 (e_i - b)^T A (e_j - b) for all i and j.
    pub fn debiased(&self) -> Box<[f64]> {
        let k = self.k();
        let (blind, share) = ((1.0 - self.truth) / k as f64, self.truth * self.truth);
        let across: Vec<f64> = self.kernel.chunks_exact(k).map(|row| blind * row.iter().sum::<f64>()).collect();
        let down: Vec<f64> = (0..k).map(|j| blind * self.kernel.iter().skip(j).step_by(k).sum::<f64>()).collect();
        let both = blind * across.iter().sum::<f64>();
        let value = |(at, a): (usize, &f64)| (a - across[at / k] - down[at % k] + both) / share;
        self.kernel.iter().enumerate().map(value).collect()
    }

    fn k(&self) -> usize {
        self.bins.categories() as usize
    }

    /// The histogram without what blind answers add to it.
    fn centred(&self, histogram: &[f64]) -> (f64, Vec<f64>) {
        let n: f64 = histogram.iter().sum();
        let blind = n * (1.0 - self.truth) / self.k() as f64;
        (n, histogram.iter().map(|count| count - blind).collect())
    }

    /// x^T A y.
    fn product(&self, x: &[f64], y: &[f64]) -> f64 {
        let rows = self.kernel.chunks_exact(self.k());
        x.iter().zip(rows).map(|(x, row)| x * row.iter().zip(y).map(|(a, y)| a * y).sum::<f64>()).sum()
    }

    /// sum_u (e_{r_u} - b)^T A (e_{r_u} - b), of a symmetric A.
    fn diagonal(&self, n: f64, histogram: &[f64]) -> f64 {
        let k = self.k();
        let b = vec![(1.0 - self.truth) / k as f64; k];
        let rows = self.kernel.chunks_exact(k);
        let each = rows.zip(histogram).enumerate().map(|(r, (row, count))| {
            let across: f64 = row.iter().zip(&b).map(|(a, b)| a * b).sum();
            count * (row[r] - 2.0 * across)
        });
        each.sum::<f64>() + n * self.product(&b, &b)
    }

    /// An upper bound on the standard deviation over answers and independent rows, for a kernel of this range (thesis, Theorem 3.3; not for two classes).
    pub fn deviation_max(&self, rows: u64, range: f64) -> Option<f64> {
        let (n, truth) = (rows as f64, self.truth);
        let beta = 1.0 - truth;
        let variance = 1.0 / (n * truth * truth)
            + (1.0 + beta) * (1.0 + beta) / (2.0 * n * (n - 1.0) * truth * truth * truth * truth);
        (!self.has_classes && rows > 1).then(|| range * libm::sqrt(variance))
    }
}

impl Question for Response {
    fn categories(&self) -> u32 {
        self.bins.categories()
    }

    fn answer(&self, _: RowId, values: impl Iterator<Item = f64>) -> u32 {
        self.category(values)
    }

    fn tally_len(&self) -> usize {
        if self.has_classes { 2 * self.k() } else { self.k() }
    }

    fn add(&self, tally: &mut [f64], _: RowId, is_positive: bool, answer: u32) {
        let class = if self.has_classes && !is_positive { self.k() } else { 0 };
        tally[class + answer as usize] += 1.0;
    }

    fn conclude(&self, tally: &[f64]) -> Option<f64> {
        let share = self.truth * self.truth;
        if self.has_classes {
            let (positives, negatives) = tally.split_at(self.k());
            let ((n_positive, s_positive), (n_negative, s_negative)) =
                (self.centred(positives), self.centred(negatives));
            let pairs = n_positive * n_negative;
            return (pairs > 0.0).then(|| self.product(&s_positive, &s_negative) / (share * pairs));
        }
        let (n, s) = self.centred(tally);
        (n > 1.0).then(|| (self.product(&s, &s) - self.diagonal(n, tally)) / (share * n * (n - 1.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bounds;
    use crate::pairs::kernel::{Auc, Gini, Kendall, Kernel, Ties, Variance, auc_factor, usual_factor};
    use sottovoce_core::{Coin, PeerId};
    use sottovoce_privacy::{Idealized, Noise};

    const BOUNDS: Bounds = Bounds { low: 0.0, high: 1.0 };
    const ANYBODY: RowId = RowId { agent: PeerId(0), row: 0 };

    /// Rows on the middles of bins, so that bins lose nothing; with labels where the kernel has them.
    fn rows(kernel: &Kernel, bins: &Bins, n: usize, seed: u64) -> Vec<f64> {
        let mut coin = Coin::new(seed, 0, 0);
        let row = |coin: &mut Coin| {
            let category = coin.below(bins.categories() as usize).min(coin.below(bins.categories() as usize));
            let mut row = bins.middle(category as u32);
            row.extend(kernel.has_label().then(|| if coin.unit() < 0.2 + 0.5 * row[0] { 1.0 } else { -1.0 }));
            row
        };
        (0..n).flat_map(|_| row(&mut coin)).collect()
    }

    fn exact(kernel: &Kernel, rows: &[f64]) -> f64 {
        let width = kernel.width();
        let n = rows.len() / width;
        let factor = match kernel {
            Kernel::Auc(_) => {
                let positives = rows.chunks_exact(width).filter(|row| row[1] > 0.0).count();
                auc_factor(positives, n - positives)
            }
            _ => usual_factor(n),
        };
        factor.expect("pairs") * 2.0 * kernel.sum_over_pairs(rows) / (n * n) as f64
    }

    fn answers(
        response: &Response,
        kernel: &Kernel,
        rows: &[f64],
        epsilon: f64,
        noise: &mut Idealized,
    ) -> Vec<(bool, u32)> {
        let width = kernel.width();
        let truth = |row: &[f64]| f64::from(response.answer(ANYBODY, row[..kernel.columns()].iter().copied()));
        let mut answers: Vec<f64> = rows.chunks_exact(width).map(truth).collect();
        noise.respond(epsilon, response.categories(), &mut answers);
        let labels = rows.chunks_exact(width).map(|row| row[width - 1] > 0.0);
        labels.zip(answers).map(|(label, answer)| (label, answer as u32)).collect()
    }

    fn tally(response: &Response, answers: &[(bool, u32)]) -> Vec<f64> {
        let mut tally = vec![0.0; response.tally_len()];
        answers.iter().for_each(|(label, answer)| response.add(&mut tally, ANYBODY, *label, *answer));
        tally
    }

    fn cases() -> [(&'static str, Kernel, Bins); 4] {
        let bins = |bins, columns| Bins::new(BOUNDS, bins, columns).expect("bins");
        [
            ("gini", Kernel::Gini(Gini), bins(5, 1)),
            ("variance", Kernel::Variance(Variance), bins(8, 1)),
            ("kendall", Kernel::Kendall(Kendall), bins(3, 2)),
            ("auc", Kernel::Auc(Auc { ties: Ties::Half }), bins(6, 1)),
        ]
    }

    #[test]
    fn check_03_j_estimates_are_unbiased_and_vary_less_than_the_bound() {
        let (epsilon, n, runs) = (1.0, 60, 10_000);
        for (name, kernel, bins) in cases() {
            let response = Response::new(&kernel, bins, epsilon).expect("good parameters");
            let rows = rows(&kernel, &bins, n, 1);
            let exact = exact(&kernel, &rows);
            let mut noise = Idealized::new(7, 0);
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..runs {
                let found =
                    response.conclude(&tally(&response, &answers(&response, &kernel, &rows, epsilon, &mut noise)));
                let error = found.expect("pairs") - exact;
                sum += error;
                squares += error * error;
            }
            let (mean, variance) = (sum / f64::from(runs), squares / f64::from(runs));
            assert!(mean.abs() < 4.0 * (variance / f64::from(runs)).sqrt(), "{name}: {mean} {variance}");
            let range = kernel.range(Some(BOUNDS)).map(|range| range.high - range.low).expect("bounds");
            if let Some(most) = response.deviation_max(n as u64, range) {
                assert!(variance.sqrt() < most, "{name}: {variance} {most}");
            }
        }
    }

    #[test]
    fn check_03_j_the_histogram_gives_what_all_pairs_give() {
        let epsilon = 0.7;
        for (name, kernel, bins) in cases() {
            let response = Response::new(&kernel, bins, epsilon).expect("good parameters");
            let rows = rows(&kernel, &bins, 40, 2);
            let answers = answers(&response, &kernel, &rows, epsilon, &mut Idealized::new(3, 0));
            let k = response.k();
            let term = |one: u32, other: u32| {
                let shifted = |answer: u32| -> Vec<f64> {
                    let blind = (1.0 - response.truth) / k as f64;
                    (0..k).map(|place| f64::from(u8::from(place == answer as usize)) - blind).collect()
                };
                response.product(&shifted(one), &shifted(other)) / (response.truth * response.truth)
            };
            let table = response.debiased();
            for (at, value) in table.iter().enumerate() {
                assert!((value - term((at / k) as u32, (at % k) as u32)).abs() < 1e-9, "{name}");
            }
            let (mut sum, mut pairs) = (0.0, 0.0);
            for (u, one) in answers.iter().enumerate() {
                for (v, other) in answers.iter().enumerate() {
                    let is_counted = if kernel.has_label() { one.0 && !other.0 } else { u != v };
                    if is_counted {
                        sum += term(one.1, other.1);
                        pairs += 1.0;
                    }
                }
            }
            let (slow, fast) = (sum / pairs, response.conclude(&tally(&response, &answers)).expect("pairs"));
            assert!((slow - fast).abs() < 1e-9, "{name}: {slow} {fast}");
        }
    }

    #[test]
    fn without_noise_it_is_the_statistic_of_the_middles() {
        for (name, kernel, bins) in cases() {
            let response = Response::new(&kernel, bins, 1e4).expect("good parameters");
            assert_eq!(response.truth(), 1.0);
            let rows = rows(&kernel, &bins, 50, 3);
            let answers = answers(&response, &kernel, &rows, 1e4, &mut Idealized::new(1, 0));
            let found = response.conclude(&tally(&response, &answers)).expect("pairs");
            assert!((found - exact(&kernel, &rows)).abs() < 1e-12, "{name}");
        }
    }

    #[test]
    fn what_no_answer_could_tell_is_refused() {
        let bins = Bins::new(BOUNDS, 4, 1).expect("bins");
        for epsilon in [0.0, 1e-13, -1.0, f64::NAN] {
            let refused = Response::new(&Gini, bins, epsilon).expect_err("refused").to_string();
            assert!(refused.contains("for 4 categories; more, or fewer bins would be accepted"), "{refused}");
        }
        let response = Response::new(&Gini, bins, 1.0).expect("good parameters");
        assert_eq!(response.conclude(&[1.0, 0.0, 0.0, 0.0]), None, "one row has no pair");
    }
}
