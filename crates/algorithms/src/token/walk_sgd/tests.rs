//! One step: its arithmetic, its length, and that it is a contraction.

use super::*;
use crate::testing::{SMOOTH, normals};
use sottovoce_core::Coin;

const CONFIG: GradientConfig = GradientConfig {
    dimension: 3,
    loss: Loss::Logistic,
    step: 0.5,
    radius: None,
    regularization: 0.0,
    clip: Some(0.4),
    bound: Some(1.0),
};

/// Points of norm at most one.
fn points(coin: &mut Coin, count: usize, dimension: usize) -> (Vec<f64>, Vec<f64>) {
    let mut features = normals(coin, count * dimension);
    for x in features.chunks_exact_mut(dimension) {
        let length = norm(x).max(1.0);
        x.iter_mut().for_each(|x| *x /= length);
    }
    (features, (0..count).map(|_| if coin.unit() < 0.5 { 1.0 } else { -1.0 }).collect())
}

#[test]
fn without_a_clip_it_is_the_mean_gradient_and_with_one_each_example_is_at_most_so_long() {
    let mut coin = Coin::new(3, 0, 0);
    let (features, labels) = points(&mut coin, 6, 4);
    let all = Points { dimension: 4, features: &features, labels: &labels };
    let theta = normals(&mut coin, 4);
    for loss in SMOOTH {
        let mut truth = vec![0.0; 4];
        crate::kernel::add_gradient(loss, all, &theta, &mut truth);
        let mut found = vec![f64::NAN; 4];
        mean_gradient(loss, None, all, &theta, &mut found);
        for (found, truth) in found.iter().zip(&truth) {
            assert!((found - truth / 6.0).abs() < 1e-12, "{loss:?}: {found} {truth}");
        }
        let (mut one, mut sum) = (vec![0.0; 4], vec![0.0; 4]);
        for k in 0..6 {
            let point = Points { dimension: 4, features: &features[4 * k..4 * k + 4], labels: &labels[k..=k] };
            mean_gradient(loss, Some(0.2), point, &theta, &mut one);
            assert!(norm(&one) <= 0.2 * (1.0 + 1e-12), "{loss:?}: {one:?}");
            sum.iter_mut().zip(&one).for_each(|(sum, one)| *sum += one / 6.0);
        }
        mean_gradient(loss, Some(0.2), all, &theta, &mut found);
        assert!(found.iter().zip(&sum).all(|(found, sum)| (found - sum).abs() < 1e-12));
    }
    let mut nothing = vec![1.0; 4];
    mean_gradient(Loss::Logistic, None, Points { dimension: 4, features: &[], labels: &[] }, &theta, &mut nothing);
    assert_eq!(nothing, [0.0; 4]);
}

/// Spec 05 section 5: clipping a member's mean expanded by 1.019; clipping each example does not.
#[test]
fn a_step_with_clipped_examples_is_a_contraction_up_to_the_largest_step() {
    let mut coin = Coin::new(5, 0, 0);
    let mut closest = 0.0f64;
    for round in 0..3000 {
        let loss = SMOOTH[round % 3];
        let most = 2.0 / loss.smoothness().expect("smooth");
        let (features, labels) = points(&mut coin, 1 + round % 5, 3);
        let all = Points { dimension: 3, features: &features, labels: &labels };
        let spread = [0.1, 1.0, 5.0][round % 3];
        let [a, b] = [(); 2].map(|()| normals(&mut coin, 3).iter().map(|x| spread * x).collect::<Vec<f64>>());
        let moved = |theta: &[f64]| {
            let mut out = vec![0.0; 3];
            mean_gradient(loss, Some(0.4), all, theta, &mut out);
            Step { from: theta, step: most, shrink: 1.0, radius: 2.0 }.apply(&mut out).to_vec()
        };
        let distance = |a: &[f64], b: &[f64]| norm(&a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<f64>>());
        let ratio = distance(&moved(&a), &moved(&b)) / distance(&a, &b);
        closest = closest.max(ratio);
        assert!(ratio <= 1.0 + 1e-9, "{loss:?}: {ratio}");
    }
    assert!(closest > 0.9, "and not far from one: {closest}");
}

#[test]
fn what_would_not_be_a_contraction_is_refused() {
    assert!(Gradient::new(CONFIG).is_ok());
    // s = 1/4 for points of norm one: 2/s = 8.
    let bad = |config: GradientConfig| Gradient::new(config).expect_err("refused").to_string();
    assert!(bad(GradientConfig { step: 8.1, ..CONFIG }).contains("at most 8"));
    assert!(Gradient::new(GradientConfig { step: 8.0, ..CONFIG }).is_ok());
    assert!(bad(GradientConfig { step: 7.0, regularization: 0.1, ..CONFIG }).contains("no contraction"));
    assert!(Gradient::new(GradientConfig { step: 100.0, clip: None, ..CONFIG }).is_ok(), "nothing is promised");
    assert!(bad(GradientConfig { step: f64::NAN, ..CONFIG }).contains("above 0"));
    assert!(bad(GradientConfig { bound: None, ..CONFIG }).contains("a bound"));
    assert!(bad(GradientConfig { clip: Some(0.0), ..CONFIG }).contains("clip of 0"));
    assert!(bad(GradientConfig { radius: Some(f64::INFINITY), ..CONFIG }).contains("radius"));
    assert!(bad(GradientConfig { loss: Loss::Hinge, ..CONFIG }).contains("hinge"));
    let sensitivity = Gradient::new(CONFIG).expect("fine").sensitivity();
    assert!(sensitivity > 0.8 && sensitivity < 0.8 * (1.0 + 1e-8), "twice the clip, and rounding: {sensitivity}");
}
