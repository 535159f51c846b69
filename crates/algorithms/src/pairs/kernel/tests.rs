//! Each kernel's exact sum against its definition, on random data with ties.

use super::*;
use sottovoce_core::Coin;

/// The definition, whatever the kernel knows better.
struct Slow<'a, K>(&'a K);

impl<K: PairKernel> PairKernel for Slow<'_, K> {
    fn columns(&self) -> usize {
        self.0.width()
    }

    fn value(&self, one: &[f64], other: &[f64]) -> f64 {
        self.0.value(one, other)
    }

    fn range(&self, bounds: Option<Bounds>) -> Option<Bounds> {
        self.0.range(bounds)
    }
}

/// Numbers of [-1, 1] with many ties, both zeros among them.
fn observations(coin: &mut Coin, n: usize, width: usize, values: usize) -> Vec<f64> {
    let value = |coin: &mut Coin| {
        let value = coin.below(2 * values + 1) as f64 / values as f64 - 1.0;
        if value == 0.0 && coin.below(2) == 0 { -0.0 } else { value }
    };
    (0..n * width).map(|_| value(coin)).collect()
}

fn check(name: &str, kernel: &impl PairKernel) {
    let bounds = Bounds { low: -1.0, high: 1.0 };
    let range = kernel.range(Some(bounds)).expect("bounds are given");
    let (mut low, mut high) = (f64::MAX, f64::MIN);
    for seed in 0..200 {
        let mut coin = Coin::new(seed, 0, 0);
        let (n, values) = (coin.below(40), [1, 2, 5, 1000][coin.below(4)]);
        let rows = observations(&mut coin, n, kernel.width(), values);
        let (exact, by_definition) = (kernel.sum_over_pairs(&rows), Slow(kernel).sum_over_pairs(&rows));
        let error = (exact - by_definition).abs();
        assert!(error <= 1e-11 * (1.0 + by_definition.abs()), "{name}, n = {n}: {exact} {by_definition}");
        for one in rows.chunks_exact(kernel.width()) {
            assert_eq!(kernel.value(one, one), 0.0, "{name}");
            for other in rows.chunks_exact(kernel.width()) {
                let value = kernel.value(one, other);
                assert_eq!(value, kernel.value(other, one), "{name}");
                assert!(value >= range.low && value <= range.high, "{name}: {value}");
                (low, high) = (low.min(value), high.max(value));
            }
        }
    }
    assert_eq!((low, high), (range.low, range.high), "{name}: the range is as narrow as can be");
}

#[test]
fn exact_sums_equal_their_definition_with_ties_and_values_fill_the_range() {
    check("Gini", &Gini);
    check("variance", &Variance);
    check("Kendall", &Kendall);
    check("AUC", &Auc::default());
    check("AUC, ties at half", &Auc { ties: Ties::Half });
    let scatter = Scatter::new(2, &[0.0, 0.0]).expect("a centre");
    check("scatter, one cell", &scatter);
    let half = Auc { ties: Ties::Half };
    for kernel in [
        Kernel::Gini(Gini),
        Kernel::Variance(Variance),
        Kernel::Kendall(Kendall),
        Kernel::Auc(half),
        Kernel::Scatter(scatter),
    ] {
        check(&format!("{kernel:?}"), &kernel);
    }
}

#[test]
fn scatter_counts_pairs_of_one_cell_only() {
    let scatter = Scatter::new(2, &[-1.0, 0.0, 1.0, 0.0, 0.0, 9.0]).expect("three centres");
    let rows = [-1.0, 0.0, -0.5, 0.0, 1.0, 1.0, 1.0, -1.0, 0.0, 0.0];
    // 0 - 1 and with the last one, which is as near to both and belongs to the first; 2 - 3.
    assert_eq!(scatter.sum_over_pairs(&rows), 0.25 + 1.0 + 0.25 + 4.0);
    for seed in 0..100 {
        let mut coin = Coin::new(seed, 0, 0);
        let n = coin.below(40);
        let rows = observations(&mut coin, n, 2, 3);
        let (exact, by_definition) = (scatter.sum_over_pairs(&rows), Slow(&scatter).sum_over_pairs(&rows));
        assert!((exact - by_definition).abs() <= 1e-11 * (1.0 + by_definition), "{exact} {by_definition}");
    }
    assert!(Scatter::new(0, &[1.0]).is_err() && Scatter::new(2, &[]).is_err());
    assert!(Scatter::new(2, &[1.0]).is_err() && Scatter::new(1, &[f64::NAN]).is_err());
}

#[test]
fn without_bounds_only_signs_and_ranks_have_a_range() {
    assert_eq!(Gini.range(None), None);
    assert_eq!(Variance.range(None), None);
    assert_eq!(Scatter::new(1, &[0.0]).expect("a centre").range(None), None);
    assert_eq!(Kendall.range(None), within(-1.0, 1.0));
    assert_eq!(Auc::default().range(None), within(0.0, 1.0));
}

/// Far from zero the exact sums lose no more than the values themselves have.
#[test]
fn exact_sums_do_not_cancel_far_from_zero() {
    let rows: Vec<f64> = (0..1001).map(|k| 1e9 + f64::from(k)).collect();
    let pairs = |h: fn(f64) -> f64| (1..=1000).map(|gap| f64::from(1001 - gap) * h(f64::from(gap))).sum::<f64>();
    assert_eq!(Gini.sum_over_pairs(&rows), pairs(|gap| gap));
    assert!((Variance.sum_over_pairs(&rows) / pairs(|gap| gap * gap / 2.0) - 1.0).abs() < 1e-9);
}

#[test]
fn factors_give_the_usual_statistic_and_the_auc_and_refuse_what_has_none() {
    // Scores 1, 2, 3, 4 and labels -, +, -, +: three of four pairs are in order.
    let rows = [1.0, -1.0, 2.0, 1.0, 3.0, -1.0, 4.0, 1.0];
    let u2 = 2.0 * Auc::default().sum_over_pairs(&rows) / 16.0;
    assert_eq!(auc_factor(2, 2).expect("two classes") * u2, 0.75);
    assert_eq!(usual_factor(4), Ok(4.0 / 3.0));
    let refused = auc_factor(3, 0).expect_err("one class").to_string();
    assert_eq!(refused, "labels is 3 positive and 0 negative; at least one of each class would be accepted");
    assert!(auc_factor(0, 3).is_err() && usual_factor(1).is_err());
}

/// A hundred thousand observations take a fraction of a second: in time n^2 this would not return.
#[test]
fn exact_sums_of_many_observations_are_fast() {
    let mut coin = Coin::new(1, 0, 0);
    let rows = observations(&mut coin, 100_000, 2, 1 << 40);
    let pairs = pairs_of(100_000) as f64;
    // Of independent columns: 0, 1/2 of pairs of two classes, which are half of all.
    assert!(Kendall.sum_over_pairs(&rows).abs() / pairs < 0.01);
    assert!((Auc::default().sum_over_pairs(&rows) / pairs - 0.25).abs() < 0.01);
    assert!((Gini.sum_over_pairs(&rows) / pairs_of(200_000) as f64 - 2.0 / 3.0).abs() < 0.01);
}
