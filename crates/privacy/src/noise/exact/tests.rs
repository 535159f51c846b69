//! The parts of the sampler, with digits so narrow that ties, which 64 bits never show, happen all the time.

use super::{
    digits::{Bits, Uniform},
    gamma,
    grid::{Grid, nearest_between},
    laws::{Deviate, exp_minus_any, exp_minus_double},
    *,
};
use crate::sensitivity::Norm;
use num_bigint::BigUint;
use proptest::prelude::*;

type Narrow<const WIDTH: u32> = Bits<ChaCha20Rng, WIDTH>;

fn bits<const WIDTH: u32>(seed: u8) -> Narrow<WIDTH> {
    Bits::new(ChaCha20Rng::from_seed([seed; 32]))
}

/// The first 60 binary digits or more, rounded to a double.
fn double<const WIDTH: u32>(deviate: &mut Deviate, bits: &mut Narrow<WIDTH>) -> f64 {
    let count = 60usize.div_ceil(WIDTH as usize);
    let digits = u128::try_from(deviate.fraction.leading(0, count, bits)).expect("at most 124 bits");
    let size = deviate.whole as f64 + libm::scalbn(digits as f64, -((count as u32 * WIDTH) as i32));
    if deviate.is_negative { -size } else { size }
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

fn normal_below(x: f64) -> f64 {
    0.5 * libm::erfc(-x * std::f64::consts::FRAC_1_SQRT_2)
}

fn both_laws_at_width<const WIDTH: u32>(count: usize) {
    let mut bits = bits::<WIDTH>(1);
    let sizes = (0..count).map(|_| double(&mut Deviate::exponential(&mut bits), &mut bits)).collect();
    let found = distance(sizes, |x| 1.0 - libm::exp(-x));
    assert!(found < 1.95, "exponential, {WIDTH} bits: {found}");
    let normals = (0..count).map(|_| double(&mut Deviate::normal(&mut bits), &mut bits)).collect();
    let found = distance(normals, normal_below);
    assert!(found < 1.95, "normal, {WIDTH} bits: {found}");
}

#[test]
fn the_laws_are_the_same_however_many_digits_are_drawn_at_a_time() {
    both_laws_at_width::<1>(200_000);
    both_laws_at_width::<2>(200_000);
    both_laws_at_width::<7>(200_000);
    both_laws_at_width::<64>(200_000);
}

fn frequency(count: u32, mut event: impl FnMut() -> bool) -> f64 {
    f64::from((0..count).map(|_| u32::from(event())).sum::<u32>()) / f64::from(count)
}

#[track_caller]
fn assert_close(found: f64, probability: f64, count: u32, what: &str) {
    let error = libm::sqrt(probability * (1.0 - probability) / f64::from(count));
    assert!((found - probability).abs() <= 4.0 * error, "{what}: {found} is not {probability}");
}

#[test]
fn a_coin_of_any_bias_exp_minus_x_is_as_biased_as_it_says() {
    let count = 300_000;
    let (mut narrow, mut wide) = (bits::<1>(2), bits::<64>(2));
    for x in [0.0, 1e-300, 0.001, 0.3, 0.5, 1.0] {
        let found = frequency(count, || exp_minus_double(x, &mut narrow));
        assert_close(found, libm::exp(-x), count, "narrow");
    }
    for x in [0.0, 1e-300, 0.25, 1.0, 1.7, 3.0, 7.5, 1e300] {
        let found = frequency(count, || exp_minus_any(x, &mut wide));
        assert_close(found, libm::exp(-x), count, "any");
    }
}

#[test]
fn a_uniform_is_below_a_double_as_often_as_the_double_says() {
    let (mut narrow, mut wide) = (bits::<3>(3), bits::<64>(3));
    for bound in [0.0, 0.125, 0.3, 0.999, 1.0] {
        let found = frequency(200_000, || Uniform::new(&mut narrow).is_below_double(bound, &mut narrow));
        assert_close(found, bound, 200_000, "narrow");
        let found = frequency(200_000, || Uniform::new(&mut wide).is_below_double(bound, &mut wide));
        assert_close(found, bound, 200_000, "wide");
    }
}

#[test]
fn whole_numbers_below_a_bound_are_equally_likely() {
    let mut bits = bits::<64>(4);
    for bound in [2, 3, 4, 6, 10, 100] {
        let mut counts = vec![0u32; bound];
        (0..100_000).for_each(|_| counts[bits.below(bound as u64) as usize] += 1);
        counts.iter().for_each(|&n| assert_close(f64::from(n) / 1e5, 1.0 / bound as f64, 100_000, "below"));
    }
}

#[test]
fn lies_are_told_with_probability_one_in_one_plus_e_to_the_epsilon() {
    let (count, mut narrow, mut wide) = (400_000, bits::<1>(5), bits::<64>(5));
    for epsilon in [1e-9, 0.05, 0.5, 1.0, 2.5, 6.0] {
        let probability = 1.0 / (1.0 + libm::exp(epsilon));
        assert_close(frequency(count, || lies(epsilon, &mut narrow)), probability, count, "narrow");
        assert_close(frequency(count, || lies(epsilon, &mut wide)), probability, count, "wide");
    }
    assert_eq!(frequency(count, || lies(1e300, &mut wide)), 0.0);
}

/// The number that a double is, times 2^2200: a whole number.
fn exactly(value: f64) -> BigUint {
    let exponent = (value.to_bits() >> 52) as i32;
    let fraction = value.to_bits() & ((1 << 52) - 1);
    let mantissa = if exponent == 0 { fraction } else { fraction | 1 << 52 };
    BigUint::from(mantissa) << (2200 - 1074 + (exponent.max(1) - 1)) as u32
}

proptest! {
    /// PRIVACY: the scale covers what rounding to the grid adds, for any parameters, and is not much larger.
    #[test]
    fn the_scale_is_the_multiplier_times_sensitivity_and_slack_rounded_up(
        multiplier in -1000.0..1000.0f64, sensitivity in -1000.0..1000.0f64, dimension in 1usize..1_000_000,
    ) {
        let (multiplier, sensitivity) = (libm::exp2(multiplier), libm::exp2(sensitivity));
        for norm in [Norm::L1, Norm::L2] {
            let grid = Grid::new(multiplier, sensitivity, norm, dimension);
            let spacing = libm::scalbn(1.0, libm::ilogb(sensitivity) - 40);
            prop_assert_eq!(grid.sum(1, 0), spacing);
            let slack = match norm {
                Norm::L1 => dimension as f64,
                Norm::L2 => libm::ceil(libm::sqrt(dimension as f64)),
            };
            // scale / g (mantissa 2^exponent) >= multiplier (sensitivity + slack g) / g
            let needed = exactly(multiplier) * (exactly(sensitivity) + exactly(spacing) * slack as u64);
            let (mantissa, exponent) = grid.factor();
            let found = (BigUint::from(mantissa) << (2200 + exponent) as u32) * exactly(spacing);
            prop_assert!(found >= needed);
            prop_assert!(found - &needed <= needed >> 51);
        }
    }

    #[test]
    fn values_go_to_the_nearest_spacing(value in -1e6..1e6f64, sensitivity in -20.0..20.0f64) {
        let sensitivity = libm::exp2(sensitivity);
        let grid = Grid::new(1.0, sensitivity, Norm::L2, 1);
        let spacing = grid.sum(1, 0);
        let nearest = grid.nearest(value);
        // Exact: both have few digits.
        prop_assert!((grid.sum(nearest, 0) - value).abs() <= spacing / 2.0);
        prop_assert_eq!(grid.nearest(-value), -nearest);
    }
}

#[test]
fn values_and_sums_beyond_the_grid_stop_at_its_ends() {
    let grid = Grid::new(1.0, 1e-300, Norm::L1, 1);
    let end = 1i128 << 125;
    assert_eq!((grid.nearest(f64::MAX), grid.nearest(-1.0), grid.nearest(0.0), grid.nearest(-0.0)), (end, -end, 0, 0));
    assert_eq!(grid.nearest(f64::from_bits(1)), 0);
    // Noise beyond any sum decides alone.
    assert_eq!(grid.sum(-end, 1 << 126), grid.sum(end, 1 << 126));
    assert_eq!(grid.sum(end, -(1 << 126)), grid.sum(-end, 0));
    let coarse = Grid::new(1.0, f64::MAX, Norm::L1, 1);
    assert_eq!((coarse.sum(end, end), coarse.sum(-end, 0)), (f64::MAX, f64::MIN));
    // The largest shift that is not yet clamped, and the smallest that is.
    let unit = Grid::new(1.0, libm::exp2(40.0), Norm::L1, 1);
    assert_eq!(unit.nearest(libm::exp2(125.0).next_down()), end - (1 << 72));
    assert_eq!((unit.nearest(libm::exp2(125.0)), unit.nearest(libm::exp2(126.0))), (end, end));
    assert_eq!(
        (unit.nearest(0.5), unit.nearest(0.5f64.next_down()), unit.nearest(2.5), unit.nearest(-2.4)),
        (1, 0, 3, -2)
    );
}

#[test]
fn a_number_is_rounded_only_when_both_ends_agree() {
    let between = |least: u32, most: u32, exponent| nearest_between(least.into(), most.into(), exponent);
    assert_eq!(between(20, 23, -3), Some(3), "2.5 to 2.9");
    assert_eq!(between(19, 21, -3), None, "2.4 to 2.6");
    assert_eq!(between(19, 20, -3), None, "2.4 to 2.5: the end itself is doubtful");
    assert_eq!(between(21, 27, -3), Some(3));
    assert_eq!(between(1, 3, -3), Some(0));
    assert_eq!(between(1, 4, -3), None);
    assert_eq!(between(7, 8, 0), None);
    assert_eq!(between(7, 8, 4), None);
    assert_eq!(between(1, 2, 125), None);
    assert_eq!(between(1, 2, 126), Some(1 << 126));
    assert_eq!(between(0, 1, 2000), None, "it may be zero");
    assert_eq!(between(1, 2, -100_000), Some(0));
}

/// One digit of 64 bits and many of few bits must agree on the same number, which only exact arithmetic does.
#[test]
fn noise_is_the_deviate_times_the_scale_to_the_nearest_whole_number() {
    let mut wide = bits::<64>(6);
    let mut undecided = 0;
    for multiplier in [1e-14, 1e-9, 1e-3, 0.3, 1.0, 77.7, 1e6, 1e15, 1e24] {
        let grid = Grid::new(multiplier, 0.7, Norm::L1, 10);
        let (mantissa, exponent) = grid.factor();
        for draw in [Deviate::laplace, Deviate::normal] {
            for _ in 0..2000 {
                let mut deviate = draw(&mut wide);
                let noise = grid.noise(&mut deviate, &mut wide);
                // Twice the noise, plus and minus one, with 192 digits of the deviate.
                let number = deviate.fraction.leading(deviate.whole, 3, &mut wide);
                let doubled = (number * mantissa) << (exponent + 201) as u32;
                let size = BigUint::from(noise.unsigned_abs()) << 393u32;
                let one = BigUint::from(1u32) << 392u32;
                assert!(doubled <= &size + &one && doubled + &one >= size, "{multiplier}: {noise}");
                assert!(noise == 0 || (noise < 0) == deviate.is_negative);
                undecided += u32::from(libm::scalbn(mantissa as f64, exponent) > 1e15);
            }
        }
    }
    assert!(undecided > 1000, "some numbers need a second digit");
}

#[test]
fn more_digits_never_change_gamma_noise_that_was_certain() {
    for dimension in [2, 3, 17] {
        let mut bits = bits::<8>(dimension as u8);
        let grid = Grid::new(3.0, 1.0, Norm::L2, dimension);
        let mut decided_at = [0; 40];
        for _ in 0..200 {
            let mut exponentials: Vec<_> = (0..dimension).map(|_| Deviate::exponential(&mut bits)).collect();
            let mut normals: Vec<_> = (0..dimension).map(|_| Deviate::normal(&mut bits)).collect();
            let truth = gamma::rounded(&grid, &mut exponentials, &mut normals, 40, &mut bits).expect("320 digits");
            for (count, decided) in decided_at.iter_mut().enumerate().skip(1) {
                if let Some(noise) = gamma::rounded(&grid, &mut exponentials, &mut normals, count, &mut bits) {
                    assert_eq!(noise, truth, "{count} bytes");
                    *decided += 1;
                }
            }
            // And it is what the formula says, to what doubles can say.
            let (mantissa, exponent) = grid.factor();
            let scale = libm::scalbn(mantissa as f64, exponent);
            let total: f64 = exponentials.iter_mut().map(|x| double(x, &mut bits)).sum();
            let normals: Vec<f64> = normals.iter_mut().map(|x| double(x, &mut bits)).collect();
            let factor = scale * total / libm::sqrt(normals.iter().map(|x| x * x).sum());
            for (noise, x) in truth.iter().zip(normals) {
                let error = (*noise as f64 - factor * x).abs();
                assert!(error <= 0.5 + 1e-12 * factor * x.abs(), "{noise} {}", factor * x);
            }
        }
        assert_eq!((decided_at[4], decided_at[16]), (0, 200), "few digits decide nothing, 128 bits all");
    }
}

#[test]
fn gamma_noise_in_one_dimension_is_laplace_noise() {
    let grid = Grid::new(2.0, 1.0, Norm::L2, 1);
    let (mut one, mut other) = (bits::<64>(8), bits::<64>(8));
    for _ in 0..100 {
        assert_eq!(gamma::noise(&grid, 1, &mut one), [grid.noise(&mut Deviate::laplace(&mut other), &mut other)]);
    }
    assert!(gamma::noise(&grid, 0, &mut one).is_empty());
}

#[test]
fn what_is_printed_tells_nothing_about_the_noise() {
    let secret = Secret::from_os().expect("entropy");
    assert_eq!(format!("{secret:?}"), "Exact { .. }");
    assert_eq!(format!("{:?}", OsRandom::new().expect("entropy")), "OsRandom { .. }");
    assert_eq!(format!("{:?}", Exact::seeded(1, 2)), "Exact { .. }");
}

/// Against the law itself, by a chi-square test, at deviations of 1, 2 and 8, with narrow digits too.
#[test]
fn the_discrete_gaussian_has_its_law() {
    fn check<const WIDTH: u32>(log2: u32, seed: u8) {
        let mut bits = bits::<WIDTH>(seed);
        let deviation = f64::from(1u32 << log2);
        let reach = 4 * (1i64 << log2);
        let weight = |y: i64| libm::exp(-(y as f64) * (y as f64) / (2.0 * deviation * deviation));
        let total: f64 = (-20 * reach..=20 * reach).map(weight).sum();
        let draws = 60_000;
        let mut counts = vec![0u32; 2 * reach as usize + 1];
        let mut beyond = 0u32;
        for _ in 0..draws {
            let y = laws::discrete_normal(log2, &mut bits);
            if y.abs() <= reach { counts[(y + reach) as usize] += 1 } else { beyond += 1 }
        }
        let mut square = 0.0;
        let mut inside = 0.0;
        for (y, &count) in (-reach..=reach).zip(&counts) {
            let expected = f64::from(draws) * weight(y) / total;
            inside += expected;
            square += (f64::from(count) - expected) * (f64::from(count) - expected) / expected;
        }
        let cells = counts.len() as f64;
        assert!(square < cells + 6.0 * (2.0 * cells).sqrt(), "deviation {deviation}: {square} of {cells} cells");
        assert!((f64::from(beyond) - (f64::from(draws) - inside)).abs() < 6.0 * 10.0, "{beyond} beyond");
    }
    check::<64>(0, 1);
    check::<64>(1, 2);
    check::<3>(1, 3);
    check::<64>(3, 4);
}

#[test]
fn shares_on_the_integers_have_the_declared_deviation_and_every_residue() {
    let mut exact = Exact::seeded(9, 0);
    let mut idealized = crate::Idealized::new(9, 0);
    for noise in [&mut exact as &mut dyn Noise, &mut idealized] {
        let mut values = vec![0i64; 40_000];
        noise.perturb_integers(&mut values);
        let deviation = f64::from(1u32 << DEVIATION_LOG2);
        let scaled: Vec<f64> = values.iter().map(|&value| value as f64 / deviation).collect();
        let count = scaled.len() as f64;
        let (mean, square) = (scaled.iter().sum::<f64>() / count, scaled.iter().map(|x| x * x).sum::<f64>() / count);
        // Five standard errors.
        assert!(
            mean.abs() < 5.0 / count.sqrt() && (square - 1.0).abs() < 5.0 * (2.0 / count).sqrt(),
            "{mean} {square}"
        );
        let odd = values.iter().filter(|value| *value & 1 == 1).count() as f64;
        assert!((odd - count / 2.0).abs() < 5.0 * (count / 4.0).sqrt(), "{odd}");
    }
}
