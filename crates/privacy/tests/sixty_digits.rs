//! The accountants against arithmetic of more than 60 digits, over random settings: an epsilon is never below the truth.
//!
//! Each setting takes one exact evaluation: delta(epsilon) <= delta says that epsilon is enough. With `SOTTOVOCE_SOAK` set there are
//! ten times as many settings.

mod support;

use sottovoce_privacy::calibrate::{NoiseKind, noise_multiplier};
use sottovoce_privacy::{
    Accountant, Charge, Event, Gaussian, Ledger, Optimal, Pld, Rdp, Sum, Theorem1, Tight, gaussian_delta,
};
use support::real::Real;
use support::truth::{self, Delta};

/// SplitMix64.
struct Draws(u64);

impl Draws {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn uniform(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// 10^u, u uniform.
    fn power(&mut self, from: f64, to: f64) -> f64 {
        libm::exp10(self.uniform(from, to))
    }

    fn count(&mut self) -> u64 {
        if self.bits().is_multiple_of(3) { 1 } else { self.power(0.0, 6.0) as u64 }
    }

    /// From 1e-300 to 0.9; half of them so that they matter for a total of this size.
    fn delta(&mut self, size: f64) -> f64 {
        let delta = match self.bits() % 4 {
            0 => self.power(-300.0, -0.046),
            1 => size * self.power(-1.5, -0.2),
            2 => size * self.power(-30.0, 0.0),
            _ => self.power(-15.0, -0.046),
        };
        delta.clamp(1e-300, 0.9)
    }
}

fn settings(quick: usize) -> usize {
    if std::env::var_os("SOTTOVOCE_SOAK").is_some() { 10 * quick } else { quick }
}

/// Those whose value is some way above the truth.
const OTHERS: [(&str, &dyn Accountant); 5] =
    [("tight", &Tight), ("pld", &Pld), ("rdp", &Rdp), ("sum", &Sum), ("theorem-1", &Theorem1)];

fn ledger(charges: impl IntoIterator<Item = (Event, u64)>) -> Ledger {
    Ledger::from_charges(charges.into_iter().map(|(event, count)| Charge::new(event, count))).expect("valid charges")
}

/// What was found over many settings: how many had an epsilon above 0, and the largest excess over the truth.
#[derive(Default)]
struct Found {
    positive: usize,
    excess: f64,
    at: String,
}

impl Found {
    fn add(&mut self, delta_there: &Delta, epsilon: f64, delta: f64, what: impl Fn() -> String) {
        assert!(epsilon >= 0.0 && epsilon.is_finite(), "{}: {epsilon}", what());
        let excess = delta_there.excess(epsilon, delta);
        let kept = delta_there.value <= Real::exactly(delta);
        assert!(kept, "{}: epsilon {epsilon:e} is below the truth, by {:e} of it", what(), -excess);
        self.positive += usize::from(epsilon > 0.0);
        if excess > self.excess {
            (self.excess, self.at) = (excess, what());
        }
    }
}

fn gaussian_events(steps: &[(f64, u64)]) -> Ledger {
    ledger(steps.iter().map(|&(noise_multiplier, count)| (Event::Gaussian { noise_multiplier }, count)))
}

#[test]
fn gaussian_epsilons_are_never_below_the_truth() {
    let mut draws = Draws(1);
    let (mut close, mut wide) = (Found::default(), Found::default());
    for index in 0..settings(5000) {
        let entries = if index % 8 == 0 { 1 + draws.bits() % 5 } else { 1 };
        let base = draws.uniform(-3.0, 18.0);
        let step = |draws: &mut Draws| {
            let exponent = (base + draws.uniform(-0.5, 0.5)).clamp(-3.0, 18.0);
            (libm::exp10(exponent), draws.count())
        };
        let steps: Vec<(f64, u64)> = (0..entries).map(|_| step(&mut draws)).collect();
        let mu = steps.iter().map(|&(multiplier, count)| count as f64 / (multiplier * multiplier)).sum::<f64>().sqrt();
        let delta = draws.delta(mu.min(1.0));
        let ledger = gaussian_events(&steps);
        let what = || format!("{steps:?}, delta {delta:e}");
        let epsilon = Gaussian.epsilon(&ledger, delta);
        let there = truth::gaussian(&steps, epsilon);
        // Epsilon is mu (a + mu/2), and a is known to some 1e-14 in all: what is left of epsilon where a + mu/2 is small is less.
        let small = epsilon / mu < 0.05;
        let found = if small { &mut wide } else { &mut close };
        found.add(&there, epsilon, delta, what);
        assert!(gaussian_delta(mu * (1.0 + 1e-15), epsilon) >= there.value.to_f64(), "{}", what());
        for (name, accountant) in OTHERS {
            let other = accountant.epsilon(&ledger, delta);
            if other < epsilon {
                assert!(truth::gaussian(&steps, other).value <= Real::exactly(delta), "{name}, {}: {other:e}", what());
            }
        }
    }
    println!("{} with a positive epsilon; at most {:.2e} above: {}", close.positive, close.excess, close.at);
    println!("{} with one below 0.05 mu; at most {:.2e} above: {}", wide.positive, wide.excess, wide.at);
    assert!(close.positive > settings(1500) && wide.positive > settings(10));
    assert!(close.excess < 1e-12, "{}", close.at);
}

/// One Laplace step at any delta, and any number of them at a delta of 0.
#[test]
fn laplace_epsilons_are_never_below_the_truth() {
    let mut draws = Draws(2);
    let mut found = Found::default();
    for index in 0..settings(2500) {
        let noise_multiplier = draws.power(-3.0, 18.0);
        let delta = draws.delta((1.0 / noise_multiplier).min(1.0));
        let what = || format!("multiplier {noise_multiplier:e}, delta {delta:e}");
        let one = ledger([(Event::Laplace { noise_multiplier }, 1)]);
        for (name, accountant) in OTHERS.into_iter().chain([("optimal", &Optimal as &dyn Accountant)]) {
            // The transforms of these two take their time.
            if matches!(name, "pld" | "tight") && index % 100 > 0 {
                continue;
            }
            let epsilon = accountant.epsilon(&one, delta);
            found.add(&truth::laplace(noise_multiplier, epsilon), epsilon, delta, || format!("{name}, {}", what()));
        }
        let count = draws.count();
        let sum = Sum.epsilon(&ledger([(Event::Laplace { noise_multiplier }, count)]), 0.0);
        let exact = &Real::whole(count) / &Real::exactly(noise_multiplier);
        assert!(Real::exactly(sum) >= exact, "{}, {count} times", what());
        assert!(sum <= exact.to_f64() * (1.0 + 1e-15), "{}, {count} times", what());
    }
    assert!(found.positive > settings(1000));
}

#[test]
fn epsilons_of_optimal_composition_are_never_below_the_truth() {
    let mut draws = Draws(3);
    let mut found = Found::default();
    for index in 0..settings(2500) {
        let count = draws.count();
        // Half of them with a total of some 1e-6 to 1e3.
        let each =
            if index % 2 == 0 { draws.power(-6.0, 2.0) / (count as f64).sqrt() } else { draws.power(-18.0, 3.0) };
        let size = (each * (count as f64).sqrt()).min(1.0);
        let delta = draws.delta(size);
        let what = || format!("{count} of {each:e}, delta {delta:e}");
        let ledger = ledger([(Event::RandomizedResponse { epsilon: each }, count)]);
        let real = Real::exactly(each);
        let epsilon = Optimal.epsilon(&ledger, delta);
        let there = truth::answers(&real, count, epsilon);
        // As for Gaussian noise, what is small beside the deviation of the loss is not known to all digits.
        if epsilon > 0.05 * size || epsilon == 0.0 {
            found.add(&there, epsilon, delta, what);
        } else {
            assert!(there.value <= Real::exactly(delta), "{}: {epsilon:e}", what());
        }
        for (name, accountant) in OTHERS {
            if name == "pld" && index % 50 > 1 {
                continue;
            }
            let other = accountant.epsilon(&ledger, delta);
            if other < epsilon {
                assert!(
                    truth::answers(&real, count, other).value <= Real::exactly(delta),
                    "{name}, {}: {other:e}",
                    what()
                );
            }
        }
    }
    println!("{} with a positive epsilon; at most {:.2e} above: {}", found.positive, found.excess, found.at);
    assert!(found.positive > settings(1000));
    assert!(found.excess < 1e-9, "{}", found.at);
}

/// The noise that a budget needs: never too little, and not more than a relative 1e-9 above the least.
#[test]
fn calibrated_gaussian_noise_keeps_its_budget_and_is_next_to_the_least() {
    let mut draws = Draws(4);
    let mut most = 0.0f64;
    for _ in 0..settings(1000) {
        let (epsilon, steps) = (draws.power(-9.0, 4.0), draws.count());
        let delta = draws.delta(epsilon.min(1.0));
        let what = format!("epsilon {epsilon:e}, delta {delta:e}, {steps} steps");
        let noise = noise_multiplier(NoiseKind::Gaussian, epsilon, delta, steps, &Gaussian).expect(&what);
        assert!(truth::gaussian(&[(noise, steps)], epsilon).value <= Real::exactly(delta), "{what}: {noise:e}");
        let less = noise * (1.0 - 1e-9);
        assert!(
            truth::gaussian(&[(less, steps)], epsilon).value > Real::exactly(delta),
            "{what}: {noise:e} is too much"
        );
        most = most.max(noise);
    }
    println!("noise multipliers up to {most:.1e}");
}

/// The yardstick itself, against values that mpmath gave to 80 digits.
#[test]
fn the_exact_values_are_those_of_another_library() {
    let close = |found: &Real, [high, low]: [f64; 2]| {
        // 32 digits as the sum of two doubles.
        let apart = &(found - &Real::exactly(high)) - &Real::exactly(low);
        assert!(apart.scale() < found.scale() - 102, "{} is not {high}", found.to_f64());
    };
    close(&truth::gaussian(&[(1e16, 1)], 3e-17).value, [2.667_612_421_172_099e-17, -7.260_002_613_970_381e-34]);
    close(&truth::gaussian(&[(0.3, 7)], 90.0).value, [2.024_122_373_532_679_4e-9, -1.502_585_585_668_088e-25]);
    close(
        &truth::answers(&Real::exactly(0.01), 5000, 2.0).value,
        [0.001_257_671_166_417_15, -3.642_830_294_796_503e-20],
    );
    close(&truth::laplace(3.0, 0.1).value, [0.110_118_229_011_976_18, 1.088_036_677_824_983_6e-19]);
}
