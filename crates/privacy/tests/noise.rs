//! The laws of noise as a release shows them: exact ones against their formulas, idealized ones against both.

use rand_chacha::ChaCha20Rng;
use sottovoce_privacy::{Event, Exact, Gate, Idealized, Noise, Plan, Secret, Simulated, Tight};
use std::sync::Arc;

const LAPLACE: Event = Event::Laplace { noise_multiplier: 1.0 };
const GAUSSIAN: Event = Event::Gaussian { noise_multiplier: 1.0 };
const GAMMA: Event = Event::GammaNorm { noise_multiplier: 1.0 };

fn exact(seed: u64) -> Exact<ChaCha20Rng> {
    Exact::seeded(seed, 0)
}

/// Noise on zeros, with sensitivity 1.
fn sample(noise: &mut dyn Noise, event: Event, count: usize) -> Vec<f64> {
    let mut values = vec![0.0; count];
    noise.perturb(event, 1.0, &mut values);
    values
}

/// As many releases of vectors of dimension p.
fn vectors(noise: &mut dyn Noise, event: Event, dimension: usize, count: usize) -> Vec<Vec<f64>> {
    (0..count).map(|_| sample(noise, event, dimension)).collect()
}

fn length(x: &[f64]) -> f64 {
    libm::sqrt(x.iter().map(|x| x * x).sum())
}

fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len() as f64
}

fn laplace_below(x: f64) -> f64 {
    if x < 0.0 { 0.5 * libm::exp(x) } else { 1.0 - 0.5 * libm::exp(-x) }
}

fn normal_below(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

/// The Gamma law with a whole shape.
fn gamma_below(shape: usize, x: f64) -> f64 {
    let terms = (0..shape).scan(libm::exp(-x), |term, i| {
        let now = *term;
        *term *= x / (i + 1) as f64;
        Some(now)
    });
    1.0 - terms.sum::<f64>()
}

/// Kolmogorov and Smirnov's statistic, times the root of the number of samples: above 1.95 once in a thousand.
fn distance(mut samples: Vec<f64>, distribution: impl Fn(f64) -> f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    let count = samples.len() as f64;
    let gap = |(i, x): (usize, &f64)| {
        let (i, p) = (i as f64, distribution(*x));
        (p - i / count).max((i + 1.0) / count - p)
    };
    samples.iter().enumerate().map(gap).fold(0.0, f64::max) * libm::sqrt(count)
}

/// The same between two samples of equal size.
fn distance_between(mut one: Vec<f64>, mut other: Vec<f64>) -> f64 {
    one.sort_by(f64::total_cmp);
    other.sort_by(f64::total_cmp);
    let count = one.len() as f64;
    let (mut j, mut gap) = (0usize, 0.0f64);
    for (i, x) in one.iter().enumerate() {
        while j < other.len() && other[j] <= *x {
            j += 1;
        }
        gap = gap.max((j as f64 - i as f64).abs()).max((j as f64 - (i + 1) as f64).abs());
    }
    gap / count * libm::sqrt(count / 2.0)
}

#[test]
fn a_million_samples_follow_each_law() {
    let count = 1_000_000;
    for (name, noise) in [("exact", &mut exact(1) as &mut dyn Noise), ("idealized", &mut Idealized::new(1, 0))] {
        let found = distance(sample(noise, LAPLACE, count), laplace_below);
        assert!(found < 1.95, "{name} Laplace: {found}");
        let found = distance(sample(noise, GAUSSIAN, count), normal_below);
        assert!(found < 1.95, "{name} Gaussian: {found}");
        let found = distance(vectors(noise, GAMMA, 1, count / 4).concat(), laplace_below);
        assert!(found < 1.95, "{name} Gamma-norm in dimension 1: {found}");
    }
}

#[test]
fn moments_up_to_the_fourth_are_those_of_the_law() {
    let count = 1_000_000;
    for (name, noise) in [("exact", &mut exact(2) as &mut dyn Noise), ("idealized", &mut Idealized::new(2, 0))] {
        // E x^2, E x^4, E x^8 (for the error of the one before).
        for (event, moments) in [(LAPLACE, [2.0, 24.0, 40320.0]), (GAUSSIAN, [1.0, 3.0, 105.0])] {
            let samples = sample(noise, event, count);
            let error = |variance: f64| 4.0 * libm::sqrt(variance / count as f64);
            let power = |k: u32| samples.iter().map(|x| (0..k).fold(1.0, |p, _| p * x)).sum::<f64>() / count as f64;
            assert!(power(1).abs() < error(moments[0]), "{name} {event:?}");
            assert!((power(2) - moments[0]).abs() < error(moments[1] - moments[0] * moments[0]), "{name} {event:?}");
            assert!((power(4) - moments[1]).abs() < error(moments[2] - moments[1] * moments[1]), "{name} {event:?}");
        }
    }
}

#[test]
fn the_tail_of_the_idealized_normal_is_the_normal_tail() {
    let samples = sample(&mut Idealized::new(3, 0), GAUSSIAN, 20_000_000);
    // The ziggurat's tail begins at 3.654: 5160 samples are expected beyond it on both sides.
    let tail: Vec<f64> = samples.iter().map(|x| x.abs()).filter(|x| *x > 3.654_152_885_361_009).collect();
    let beyond = |x: f64| libm::erfc(x * std::f64::consts::FRAC_1_SQRT_2);
    let all = beyond(3.654_152_885_361_009);
    let expected = all * samples.len() as f64;
    assert!((tail.len() as f64 - expected).abs() < 4.0 * libm::sqrt(expected), "{} {expected}", tail.len());
    let found = distance(tail, |x| 1.0 - beyond(x) / all);
    assert!(found < 1.95, "{found}");
}

/// CHECK 02.f: E|b| = p Delta_2 / epsilon.
#[test]
fn check_02_f_the_gamma_norm_is_on_average_the_dimension_over_epsilon() {
    let (sensitivity, epsilon) = (0.3, 0.05);
    let event = Event::GammaNorm { noise_multiplier: 1.0 / epsilon };
    for (dimension, count) in [(1, 200_000), (2, 100_000), (20, 10_000), (100, 2000), (2000, 100)] {
        for (name, noise) in [("exact", &mut exact(4) as &mut dyn Noise), ("idealized", &mut Idealized::new(4, 0))] {
            let release = |_| {
                let mut values = vec![0.0; dimension];
                noise.perturb(event, sensitivity, &mut values);
                length(&values)
            };
            let lengths: Vec<f64> = (0..count).map(release).collect();
            let ratio = mean(&lengths) / (dimension as f64 * sensitivity / epsilon);
            // One standard error is 1 / sqrt(p count), below 0.25% in all of them.
            assert!((ratio - 1.0).abs() < 0.01, "{name}, p = {dimension}: {ratio}");
        }
    }
}

#[test]
fn gamma_noise_has_a_gamma_norm_and_a_uniform_direction() {
    for (name, noise) in [("exact", &mut exact(5) as &mut dyn Noise), ("idealized", &mut Idealized::new(5, 0))] {
        for dimension in [2, 3, 8] {
            let vectors = vectors(noise, GAMMA, dimension, 60_000);
            let lengths: Vec<f64> = vectors.iter().map(|x| length(x)).collect();
            let found = distance(lengths.clone(), |x| gamma_below(dimension, x));
            assert!(found < 1.95, "{name}, p = {dimension}, norm: {found}");
            for axis in [0, dimension - 1] {
                // A coordinate of a direction is uniform in dimension 3 (Archimedes), and the cosine of a uniform angle in 2.
                let cosines: Vec<f64> = vectors.iter().zip(&lengths).map(|(x, length)| x[axis] / length).collect();
                let found = match dimension {
                    2 => distance(cosines, |x| 1.0 - libm::acos(x) / std::f64::consts::PI),
                    3 => distance(cosines, |x| 0.5 * (1.0 + x)),
                    _ => {
                        let squares: Vec<f64> = cosines.iter().map(|x| x * x).collect();
                        (mean(&squares) * dimension as f64 - 1.0).abs() * 100.0
                    }
                };
                assert!(found < 1.95, "{name}, p = {dimension}, direction {axis}: {found}");
            }
            // The norm says nothing about the direction.
            let signs: Vec<f64> =
                vectors.iter().zip(&lengths).map(|(x, n)| (n - dimension as f64) * x[0].abs() / n).collect();
            let spread = libm::sqrt(mean(&signs.iter().map(|x| x * x).collect::<Vec<_>>()) / signs.len() as f64);
            assert!(mean(&signs).abs() < 4.0 * spread, "{name}, p = {dimension}");
        }
    }
}

/// The statistic of a table of eighths against eighths. Both laws are known, so there are 63 degrees of freedom: above 103.4 once in
/// a thousand.
fn dependence(pairs: &[(f64, f64)], below: fn(f64) -> f64) -> f64 {
    let mut table = [[0u32; 8]; 8];
    let cell = |x: f64| ((8.0 * below(x)) as usize).min(7);
    pairs.iter().for_each(|(x, y)| table[cell(*x)][cell(*y)] += 1);
    let expected = pairs.len() as f64 / 64.0;
    table.iter().flatten().map(|&n| (f64::from(n) - expected) * (f64::from(n) - expected) / expected).sum()
}

#[test]
fn coordinates_releases_and_agents_are_independent() {
    type Law = (Event, fn(f64) -> f64);
    let laws: [Law; 2] = [(LAPLACE, laplace_below), (GAUSSIAN, normal_below)];
    let agents: [[Box<dyn Noise>; 2]; 2] = [
        [Box::new(Exact::seeded(6, 0)), Box::new(Exact::seeded(6, 1))],
        [Box::new(Idealized::new(6, 0)), Box::new(Idealized::new(6, 1))],
    ];
    for [mut one, mut other] in agents {
        for (event, below) in laws {
            let (first, second) = (sample(&mut *one, event, 400_000), sample(&mut *one, event, 400_000));
            let elsewhere = sample(&mut *other, event, 400_000);
            let neighbours: Vec<_> = first.iter().copied().zip(first[1..].iter().copied()).collect();
            let releases: Vec<_> = first.iter().copied().zip(second.iter().copied()).collect();
            let agents: Vec<_> = first.iter().copied().zip(elsewhere.iter().copied()).collect();
            for (what, pairs) in [("coordinates", neighbours), ("releases", releases), ("agents", agents)] {
                let found = dependence(&pairs, below);
                assert!(found < 103.4, "{what} of {event:?}: {found}");
            }
        }
    }
}

#[test]
fn idealized_noise_is_like_exact_noise() {
    let count = 500_000;
    let (mut one, mut other) = (exact(7), Idealized::new(7, 0));
    for event in [LAPLACE, GAUSSIAN] {
        let found = distance_between(sample(&mut one, event, count), sample(&mut other, event, count));
        assert!(found < 1.95, "{event:?}: {found}");
    }
    let first = |vectors: Vec<Vec<f64>>| vectors.iter().map(|x| x[0]).collect::<Vec<_>>();
    for dimension in [2, 5] {
        let (one, other) = (vectors(&mut one, GAMMA, dimension, 50_000), vectors(&mut other, GAMMA, dimension, 50_000));
        let found = distance_between(first(one), first(other));
        assert!(found < 1.95, "Gamma-norm, p = {dimension}: {found}");
    }
}

#[test]
fn answers_are_flipped_as_often_as_epsilon_says() {
    for epsilon in [0.1, 1.0, 3.0] {
        let event = Event::RandomizedResponse { epsilon };
        for (name, noise) in [("exact", &mut exact(8) as &mut dyn Noise), ("idealized", &mut Idealized::new(8, 0))] {
            let mut answers: Vec<f64> = (0..500_000).map(|i| if i % 3 == 0 { 1.0 } else { -1.0 }).collect();
            noise.perturb(event, 1.0, &mut answers);
            for truth in [1.0, -1.0] {
                let told: Vec<f64> = (0..answers.len())
                    .filter(|i| (i % 3 == 0) == (truth == 1.0))
                    .map(|i| if answers[i] == truth { 0.0 } else { 1.0 })
                    .collect();
                let lie = 1.0 / (1.0 + libm::exp(epsilon));
                let error = libm::sqrt(lie * (1.0 - lie) / told.len() as f64);
                assert!((mean(&told) - lie).abs() < 4.0 * error, "{name}, {epsilon}: {}", mean(&told));
            }
        }
    }
}

/// The grid that the sensitivity decides.
fn spacing(sensitivity: f64) -> f64 {
    libm::scalbn(1.0, libm::ilogb(sensitivity) - 40)
}

#[test]
fn exact_noise_of_every_size_is_on_the_grid_and_as_large_as_it_should_be() {
    let mut noise = exact(9);
    let mut releases = 0;
    for sensitivity in [1e-12, 3e-7, 0.02, 1.0, 77.0, 1e6] {
        for noise_multiplier in [1e-3, 0.4, 1.0, 30.0, 1e6] {
            for dimension in [1, 2, 100, 2000] {
                let events = [
                    Event::Laplace { noise_multiplier },
                    Event::Gaussian { noise_multiplier },
                    Event::GammaNorm { noise_multiplier },
                ];
                for event in events {
                    let truth: Vec<f64> = (0..dimension).map(|i| (i as f64 - 3.3) * 0.77 * sensitivity).collect();
                    let mut values = truth.clone();
                    noise.perturb(event, sensitivity, &mut values);
                    for value in &values {
                        let steps = value / spacing(sensitivity);
                        assert_eq!(steps, libm::round(steps), "{event:?} {sensitivity}: {value}");
                    }
                    let sizes: Vec<f64> = values.iter().zip(&truth).map(|(v, t)| (v - t).abs()).collect();
                    let ratio = length(&sizes) / (noise_multiplier * sensitivity);
                    let p = dimension as f64;
                    // The root of the mean of |b|^2 is sqrt(2p), sqrt(p) or sqrt(p(p+1)).
                    let expected = match event {
                        Event::Laplace { .. } => libm::sqrt(2.0 * p),
                        Event::Gaussian { .. } => libm::sqrt(p),
                        _ => libm::sqrt(p * (p + 1.0)),
                    };
                    let allowed = if dimension >= 100 { 0.7..1.4 } else { 0.0..12.0 };
                    assert!(allowed.contains(&(ratio / expected)), "{event:?} {sensitivity} {dimension}: {ratio}");
                    releases += 1;
                }
            }
        }
    }
    assert_eq!(releases, 360);
}

#[test]
fn noise_is_drawn_without_looking_at_the_values() {
    for event in [LAPLACE, GAUSSIAN, GAMMA] {
        let (mut here, mut there) = (vec![0.0; 50], vec![1024.0; 50]);
        exact(10).perturb(event, 1.0, &mut here);
        exact(10).perturb(event, 1.0, &mut there);
        for (here, there) in here.iter().zip(&there) {
            assert_eq!(here + 1024.0, *there, "{event:?}");
        }
    }
}

#[test]
fn nothing_is_too_large_or_too_small_to_be_released() {
    let mut noise = exact(11);
    let extremes = [f64::from_bits(1), 1e-300, 1e-12, 1.0, 1e12, 1e300, f64::MAX];
    for sensitivity in extremes {
        for noise_multiplier in extremes {
            for event in [
                Event::Laplace { noise_multiplier },
                Event::Gaussian { noise_multiplier },
                Event::GammaNorm { noise_multiplier },
            ] {
                let mut values = [f64::MAX, f64::MIN, 0.0, -0.0, f64::from_bits(1), 1.0, -1e-300];
                noise.perturb(event, sensitivity, &mut values);
                assert!(values.iter().all(|value| value.is_finite()), "{event:?} {sensitivity}: {values:?}");
            }
        }
    }
    // Where there is room, the values are kept.
    let mut values = [1e300, -1e300];
    noise.perturb(LAPLACE, 1e290, &mut values);
    assert!((values[0] / 1e300 - 1.0).abs() < 1e-8 && (values[1] / 1e300 + 1.0).abs() < 1e-8, "{values:?}");
}

/// CHECK 02.k, for one release of each mechanism with pure epsilon: neighbours as far apart as the sensitivity.
#[test]
fn check_02_k_no_outcome_is_much_likelier_for_one_neighbour() {
    let count = 100_000;
    for epsilon in [0.3, 1.0] {
        let events = [
            (Event::Laplace { noise_multiplier: 1.0 / epsilon }, 1),
            (Event::GammaNorm { noise_multiplier: 1.0 / epsilon }, 3),
            (Event::RandomizedResponse { epsilon }, 1),
        ];
        for (event, dimension) in events {
            let mut noise = exact(12);
            let is_bit = matches!(event, Event::RandomizedResponse { .. });
            let sensitivity = if is_bit { 1.0 } else { 0.5 };
            let ends = if is_bit { [-1.0, 1.0] } else { [0.0, sensitivity] };
            let mut outcomes = ends.map(|end| {
                let release = |_| {
                    let mut values = vec![0.0; dimension];
                    values[0] = end;
                    if is_bit {
                        values.fill(end);
                    }
                    noise.perturb(event, sensitivity, &mut values);
                    values[0]
                };
                (0..count).map(release).collect::<Vec<f64>>()
            });
            let mut all: Vec<f64> = outcomes.concat();
            all.sort_by(f64::total_cmp);
            let mut edges: Vec<f64> = (1..20).map(|k| all[k * all.len() / 20]).collect();
            edges.dedup();
            let bin = |x: f64| edges.partition_point(|edge| *edge <= x);
            let counts = outcomes.each_mut().map(|outcomes| {
                let mut counts = [0u32; 20];
                outcomes.iter().for_each(|x| counts[bin(*x)] += 1);
                counts
            });
            let mut worst = 0.0f64;
            for (&a, &b) in counts[0].iter().zip(&counts[1]).filter(|(a, b)| **a > 100 && **b > 100) {
                let (a, b) = (f64::from(a), f64::from(b));
                let ratio = libm::log(a / b).abs();
                assert!(ratio <= epsilon + 4.0 * libm::sqrt(1.0 / a + 1.0 / b), "{event:?}: {a} against {b}");
                worst = worst.max(ratio);
            }
            assert!(worst > 0.5 * epsilon, "{event:?}: the test sees the difference: {worst}");
        }
    }
}

#[test]
fn no_two_agents_or_releases_share_noise() {
    let mut seen = std::collections::HashSet::new();
    let mut total = 0;
    let mut see = |values: &[f64]| {
        total += values.len();
        seen.extend(values.iter().map(|value| value.to_bits()));
    };
    let step = Event::Gaussian { noise_multiplier: 1e9 };
    let plan = Arc::new(Plan::new(vec![step; 4], 1.0, 1e-3, &Tight).expect("cheap"));
    for agent in 0..10 {
        let secret = Secret::from_os().expect("entropy");
        let simulated =
            [Simulated::Idealized(Idealized::new(1, agent)), Simulated::Exact(Box::new(Exact::seeded(1, agent)))];
        let mut secret = Gate::planned(plan.clone(), secret);
        let mut simulated = simulated.map(|noise| Gate::planned(plan.clone(), noise));
        for _ in 0..4 {
            let mut gates: Vec<&mut Gate> = vec![&mut secret];
            gates.extend(simulated.iter_mut().map(|gate| gate as &mut Gate));
            for gate in gates {
                let mut values = [0.0; 8];
                gate.release(&mut values, 1.0).expect("planned");
                see(&values);
            }
        }
    }
    assert_eq!(seen.len(), total, "{total} numbers, all different");
    // And the seeded ones can be repeated.
    assert_eq!(sample(&mut Exact::seeded(1, 3), LAPLACE, 9), sample(&mut Exact::seeded(1, 3), LAPLACE, 9));
    assert_ne!(sample(&mut Exact::seeded(1, 3), LAPLACE, 9), sample(&mut Exact::seeded(2, 3), LAPLACE, 9));
}
