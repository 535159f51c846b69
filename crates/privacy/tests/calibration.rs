//! Calibration and the split of a budget, by the numbers of the specification.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use sottovoce_privacy::calibrate::{NoiseKind, Split, Uncalibrated, epsilon_per_step, epsilons, noise_multiplier};
use sottovoce_privacy::{Accountant, Charge, Event, Gaussian, Ledger, Optimal, Pld, Rdp, Sum, Theorem1, Tight};

const TABLE: [(f64, [f64; 7]); 5] = [
    (0.05, [0.05, 0.011469, 0.008110, 0.005735, 0.003627, 0.002565, 0.001147]),
    (0.1, [0.1, 0.020791, 0.014702, 0.010396, 0.006575, 0.004649, 0.002079]),
    (0.15, [0.15, 0.030000, 0.020806, 0.014712, 0.009305, 0.006579, 0.002942]),
    (0.5, [0.5, 0.100000, 0.058500, 0.041365, 0.026162, 0.018499, 0.008273]),
    (1.0, [1.0, 0.200000, 0.106046, 0.074984, 0.047424, 0.033533, 0.014997]),
];
const STEPS: [u64; 7] = [1, 5, 10, 20, 50, 100, 500];

fn responses(epsilon: f64, count: u64) -> Ledger {
    Ledger::from_charges([Charge::new(Event::RandomizedResponse { epsilon }, count)]).expect("valid")
}

#[test]
fn check_02_a_the_table_of_budgets_per_step() {
    let delta = libm::exp(-5.0);
    for (budget, row) in TABLE {
        for (steps, printed) in STEPS.into_iter().zip(row) {
            let each = epsilon_per_step(budget, delta, steps, &Theorem1).expect("a budget");
            assert!((each - printed).abs() <= 5.1e-7, "{budget} over {steps}: {each} is not {printed}");
        }
    }
}

#[test]
fn check_02_a_calibration_inverts_composition_and_is_monotone() {
    let delta = libm::exp(-5.0);
    let accountants: [&dyn Accountant; 3] = [&Sum, &Theorem1, &Optimal];
    for accountant in accountants {
        for steps in STEPS {
            let mut before = 0.0;
            for budget in [0.05, 0.1, 1.0, 10.0] {
                let each = epsilon_per_step(budget, delta, steps, accountant).expect("a budget");
                let spent = accountant.epsilon(&responses(each, steps), delta);
                assert!(spent <= budget && spent >= budget * (1.0 - 1e-8), "{budget} over {steps}: {spent}");
                assert!(each > before, "more budget, more per step");
                assert!(steps == 1 || each < epsilon_per_step(budget, delta, 1, accountant).expect("a budget"));
                before = each;
            }
        }
    }
}

/// Spec 02 section 2.1: what Theorem 1 and the exact optimum allow per step.
#[test]
fn the_reference_values_per_step_come_out_to_the_printed_digits() {
    let delta = libm::exp(-5.0);
    let rows = [
        (10, [(1.0, 0.106046, 0.167513), (0.5, 0.058500, 0.092839), (0.1, 0.014702, 0.028771)]),
        (100, [(1.0, 0.033533, 0.050156), (0.5, 0.018499, 0.029315), (0.1, 0.004649, 0.009158)]),
        (1000, [(1.0, 0.010604, 0.015780), (0.5, 0.005850, 0.009275), (0.1, 0.001470, 0.002900)]),
    ];
    for (steps, row) in rows {
        for (budget, theorem_1, optimal) in row {
            let ours = epsilon_per_step(budget, delta, steps, &Theorem1).expect("a budget");
            assert!((ours - theorem_1).abs() <= 5.1e-7, "{steps} {budget}: {ours} is not {theorem_1}");
            let ours = epsilon_per_step(budget, delta, steps, &Optimal).expect("a budget");
            assert!((ours - optimal).abs() <= 5.1e-7, "{steps} {budget}: {ours} is not {optimal}");
        }
    }
}

/// Spec 02 section 2.1: the four accountants on 1000 steps of epsilon 0.01.
#[test]
fn the_reference_values_of_a_thousand_steps_come_out_to_the_printed_digits() {
    let ledger = Ledger::from_charges([Charge::new(Event::Laplace { noise_multiplier: 100.0 }, 1000)]).expect("valid");
    let delta = libm::exp(-5.0);
    let printed: [(&dyn Accountant, f64, f64); 5] = [
        (&Sum, 10.0, 1e-9),
        (&Theorem1, 0.933743, 5.1e-7),
        (&Optimal, 0.552231, 5.1e-7),
        (&Pld, 0.550925, 3e-5),
        (&Tight, 0.550925, 3e-5),
    ];
    for (accountant, printed, tolerance) in printed {
        let ours = accountant.epsilon(&ledger, delta);
        assert!((ours - printed).abs() <= tolerance, "{ours} is not {printed}");
    }
}

#[test]
fn the_noise_is_the_least_that_keeps_the_budget() {
    for (noise, accountants) in [
        (NoiseKind::Gaussian, [&Gaussian as &dyn Accountant, &Rdp, &Theorem1, &Tight]),
        (NoiseKind::Laplace, [&Sum, &Optimal, &Rdp, &Tight]),
    ] {
        for accountant in accountants {
            for (epsilon, delta, steps) in [(1.0, 1e-6, 1), (0.1, 1e-5, 100), (20.0, 1e-9, 1000)] {
                let multiplier = noise_multiplier(noise, epsilon, delta, steps, accountant).expect("reachable");
                let spent = |multiplier| {
                    let charge = Charge::new(noise.event(multiplier), steps);
                    accountant.epsilon(&Ledger::from_charges([charge]).expect("valid"), delta)
                };
                assert!(spent(multiplier) <= epsilon);
                assert!(
                    spent(multiplier * (1.0 - 1e-6)) > epsilon * (1.0 - 1e-9),
                    "{noise:?} {epsilon} {delta} {steps}"
                );
            }
        }
    }
}

/// Counts what it is asked.
struct Counting(std::cell::Cell<u32>);

impl Accountant for Counting {
    fn epsilon(&self, ledger: &Ledger, delta: f64) -> f64 {
        self.0.set(self.0.get() + 1);
        Tight.epsilon(ledger, delta)
    }

    fn rough(&self, ledger: &Ledger, delta: f64) -> f64 {
        Tight.rough(ledger, delta)
    }
}

#[test]
fn a_search_for_the_noise_asks_the_costly_accountant_a_few_times_only() {
    let mut total = 0;
    for epsilon in [1e-3, 0.1, 1.0, 10.0, 1e3] {
        for (delta, steps) in [(1e-6, 1), (0.05, 2), (1e-12, 10), (1e-5, 100), (1e-2, 1000), (1e-9, 100_000)] {
            let counting = Counting(std::cell::Cell::new(0));
            let multiplier = noise_multiplier(NoiseKind::Laplace, epsilon, delta, steps, &counting).expect("reachable");
            let charge = Charge::new(NoiseKind::Laplace.event(multiplier), steps);
            let spent = Tight.epsilon(&Ledger::from_charges([charge]).expect("valid"), delta);
            assert!(spent <= epsilon, "{epsilon} {delta} {steps}: {spent}");
            // More than a few only where the grid changes, and the value jumps, just at the budget.
            assert!(counting.0.get() <= 30, "{epsilon} {delta} {steps}: asked {} times", counting.0.get());
            total += counting.0.get();
        }
    }
    assert!(total <= 30 * 6, "asked {total} times in 30 searches");
}

#[test]
fn budgets_that_cannot_be_kept_are_refused() {
    let refused = |noise, epsilon, delta, steps| {
        let answer = noise_multiplier(noise, epsilon, delta, steps, &Tight);
        assert!(matches!(answer, Err(Uncalibrated::OutOfRange { .. })), "{epsilon} {delta} {steps}: {answer:?}");
    };
    for epsilon in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        refused(NoiseKind::Laplace, epsilon, 1e-6, 1);
    }
    for delta in [-1e-9, 1.0, f64::NAN] {
        refused(NoiseKind::Laplace, 1.0, delta, 1);
    }
    refused(NoiseKind::Gaussian, 1.0, 0.0, 1);
    refused(NoiseKind::Laplace, 1.0, 0.0, 0);
    assert!(matches!(noise_multiplier(NoiseKind::Laplace, 1.0, 1e-6, 1, &Gaussian), Err(Uncalibrated::OutOfReach)));
    assert!(Split::Uniform.parts(&[], 1).is_err());
    assert!(Split::Corrected { contraction: 1.5 }.parts(&[0], 1).is_err());
    assert!(Split::Corrected { contraction: 0.5 }.parts(&[3], 3).is_err());
}

/// sum w_t / eps_t^2, what the split minimises.
fn objective(weights: &[f64], epsilons: &[f64]) -> f64 {
    weights.iter().zip(epsilons).map(|(weight, epsilon)| weight / (epsilon * epsilon)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]
    #[test]
    fn check_02_c_the_closed_form_beats_any_other_split(
        contraction in 0.5..1.0f64,
        other in proptest::collection::vec(0.01..1.0f64, 12),
    ) {
        let times: Vec<u64> = (0..12).map(|k| 3 * k + 1).collect();
        let horizon = 40;
        let budget = 0.7;
        let sum: f64 = other.iter().sum();
        let other: Vec<f64> = other.iter().map(|part| budget * part / sum).collect();
        let cases = [
            (Split::PaperProposition2 { contraction }, times.iter().map(|&t| libm::pow(contraction, t as f64)).collect::<Vec<_>>()),
            (Split::Corrected { contraction }, times.iter().map(|&t| libm::pow(contraction, (horizon - 1 - t) as f64)).collect()),
            (Split::Uniform, vec![1.0; 12]),
        ];
        for (split, weights) in cases {
            let ours: Vec<f64> = split.parts(&times, horizon).expect("parts").iter().map(|part| budget * part).collect();
            prop_assert!((ours.iter().sum::<f64>() - budget).abs() <= 1e-12);
            prop_assert!(objective(&weights, &ours) <= objective(&weights, &other) * (1.0 + 1e-12));
            // Far allocations are beaten by any decent split; those nearby only by the best.
            let near: Vec<f64> = ours.iter().zip(&other).map(|(ours, other)| ours * libm::exp(0.2 * other)).collect();
            let sum: f64 = near.iter().sum();
            let near: Vec<f64> = near.iter().map(|part| budget * part / sum).collect();
            prop_assert!(objective(&weights, &ours) <= objective(&weights, &near) * (1.0 + 1e-12));
        }
    }
}

#[test]
fn the_printed_split_falls_with_time_and_the_corrected_ones_rise() {
    let contraction = 0.99;
    let times: Vec<u64> = (0..10).map(|k| 5 * k).collect();
    let parts = |split: Split| split.parts(&times, 50).expect("parts");
    assert!(parts(Split::PaperProposition2 { contraction }).windows(2).all(|pair| pair[1] < pair[0]));
    assert!(parts(Split::Corrected { contraction }).windows(2).all(|pair| pair[1] > pair[0]));
    // Wakes at multiples of n: the clock-free split is the corrected one.
    let (ours, exact) = (parts(Split::ClockFree { contraction, agents: 5 }), parts(Split::Corrected { contraction }));
    assert!(ours.iter().zip(&exact).all(|(a, b)| (a - b).abs() < 1e-12));
}

#[test]
fn a_split_keeps_its_proportions_and_the_budget_by_any_accountant() {
    let times: Vec<u64> = (0..10).collect();
    let parts = Split::Corrected { contraction: 0.9 }.parts(&times, 10).expect("parts");
    for accountant in [&Sum as &dyn Accountant, &Theorem1, &Tight] {
        let epsilons = epsilons(&parts, 0.5, 1e-3, accountant).expect("a budget");
        let charges = epsilons.iter().map(|&epsilon| Charge::new(Event::RandomizedResponse { epsilon }, 1));
        let spent = accountant.epsilon(&Ledger::from_charges(charges).expect("valid"), 1e-3);
        assert!((0.5 * (1.0 - 1e-6)..=0.5).contains(&spent), "{spent}");
        let ratio = epsilons[0] / parts[0];
        assert!(epsilons.iter().zip(&parts).all(|(epsilon, part)| (epsilon / part / ratio - 1.0).abs() < 1e-12));
    }
}

/// The exact expected error of coordinate descent with noise on a diagonal quadratic, and the bounds on it. Spec 02 section 4.
///
/// Q(x) = sum_i sum_c a_ic x_ic^2 / 2. At each step one of n agents, drawn uniformly, does
/// x_ic <- x_ic - (a_ic x_ic + g_ic) / L_i, E g_ic^2 = 2 (weight s)^2 for Laplace noise of scale s: so
/// E x_ic^2 <- (1 - 1/n) E x_ic^2 + ((1 - a_ic / L_i)^2 E x_ic^2 + E g_ic^2 / L_i^2) / n.
struct Quadratic {
    /// a_ic, by agent.
    curvatures: Vec<Vec<f64>>,
    /// L_i, at least every a_ic.
    smoothness: Vec<f64>,
    /// E x_ic^2 at the start.
    start: f64,
    /// E g^2 = `moment` (weight s)^2: 2 for Laplace noise, 1 for Gaussian.
    moment: f64,
}

impl Quadratic {
    fn contraction(&self) -> f64 {
        let sigma = self.curvatures.iter().flatten().copied().fold(f64::INFINITY, f64::min);
        1.0 - sigma / (self.smoothness.len() as f64 * self.smoothness.iter().copied().fold(0.0, f64::max))
    }

    fn value(&self, squares: &[Vec<f64>]) -> f64 {
        self.curvatures.iter().flatten().zip(squares.iter().flatten()).map(|(a, square)| 0.5 * a * square).sum()
    }

    /// E Q(T) with noise (weight s)_i(t) = `noise[t][i]`.
    fn error(&self, noise: &[Vec<f64>]) -> f64 {
        let n = self.smoothness.len() as f64;
        let mut squares: Vec<Vec<f64>> = self.curvatures.iter().map(|row| vec![self.start; row.len()]).collect();
        for now in noise {
            for (i, row) in squares.iter_mut().enumerate() {
                for (square, a) in row.iter_mut().zip(&self.curvatures[i]) {
                    let kept = (1.0 - a / self.smoothness[i]) * (1.0 - a / self.smoothness[i]);
                    let added = self.moment * now[i] * now[i] / (self.smoothness[i] * self.smoothness[i]);
                    *square += (kept * *square + added - *square) / n;
                }
            }
        }
        self.value(&squares)
    }

    /// C^T Q(0) + sum_t C^{weight(t)} (1/n) sum_i (dimension moment / 2) / L_i (weight s)_i(t)^2: the corrected bound has
    /// weight(t) = T - 1 - t and the dimension p.
    fn bound(&self, noise: &[Vec<f64>], dimension: f64, weight: impl Fn(usize) -> usize) -> f64 {
        let (n, contraction) = (self.smoothness.len() as f64, self.contraction());
        let power = |t: usize| libm::pow(contraction, t as f64);
        let start: Vec<Vec<f64>> = self.curvatures.iter().map(|row| vec![self.start; row.len()]).collect();
        let at = |(t, now): (usize, &Vec<f64>)| {
            let of = |(noise, smoothness): (&f64, &f64)| 0.5 * dimension * self.moment / smoothness * noise * noise;
            power(weight(t)) / n * now.iter().zip(&self.smoothness).map(of).sum::<f64>()
        };
        power(noise.len()) * self.value(&start) + noise.iter().enumerate().map(at).sum::<f64>()
    }

    fn corrected(&self, noise: &[Vec<f64>]) -> f64 {
        let dimension = self.curvatures.iter().map(Vec::len).max().unwrap_or(0) as f64;
        self.bound(noise, dimension, |t| noise.len() - 1 - t)
    }
}

/// The counter-examples of spec 02 section 4: p = 10, n = 1, nine curvatures of 1/2 and one of 1, L = 1.
#[test]
fn check_02_b_the_printed_bound_fails_where_the_corrected_one_holds() {
    let mut curvatures = vec![0.5; 10];
    curvatures[9] = 1.0;
    let quadratic = Quadratic { curvatures: vec![curvatures], smoothness: vec![1.0], start: 0.0, moment: 2.0 };
    let noise = |from: usize, to: usize| -> Vec<Vec<f64>> {
        (0..200).map(|t| vec![if (from..to).contains(&t) { 0.045f64.sqrt() } else { 0.0 }]).collect()
    };
    let close =
        |ours: f64, printed: f64, digits: f64| assert!((ours / printed - 1.0).abs() < digits, "{ours} {printed}");
    let always = noise(0, 200);
    close(quadratic.error(&always), 0.315, 1e-9);
    close(quadratic.bound(&always, 1.0, |t| 199 - t), 0.09, 1e-9);
    close(quadratic.corrected(&always), 0.90, 1e-9);
    // Noise in the first half is forgotten; noise in the second is not. The printed index has it the other way round.
    let (first, second) = (noise(0, 100), noise(100, 200));
    close(quadratic.error(&first), 2e-61, 0.2);
    close(quadratic.bound(&first, 10.0, |t| t), 0.9, 1e-9);
    close(quadratic.error(&second), 0.315, 1e-9);
    close(quadratic.bound(&second, 10.0, |t| t), 7e-31, 0.02);
    for schedule in [&always, &first, &second] {
        assert!(quadratic.error(schedule) <= quadratic.corrected(schedule));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]
    #[test]
    fn check_02_b_the_corrected_bound_holds_for_any_schedule(
        curvatures in proptest::collection::vec(proptest::collection::vec(0.01..1.0f64, 5), 1..5),
        slack in 1.0..3.0f64,
        start in 0.0..4.0f64,
        laplace in any::<bool>(),
        noise in proptest::collection::vec(proptest::collection::vec(0.0..2.0f64, 5), 1..80),
        silent in proptest::collection::vec(any::<bool>(), 80),
    ) {
        let n = curvatures.len();
        let smoothness = curvatures.iter().map(|row| slack * row.iter().copied().fold(0.0, f64::max)).collect();
        let moment = if laplace { 2.0 } else { 1.0 };
        let quadratic = Quadratic { curvatures, smoothness, start, moment };
        let of = |(now, &silent): (&Vec<f64>, &bool)| if silent { vec![0.0; n] } else { now[..n].to_vec() };
        let noise: Vec<Vec<f64>> = noise.iter().zip(&silent).map(of).collect();
        prop_assert!(quadratic.error(&noise) <= quadratic.corrected(&noise) * (1.0 + 1e-12));
    }
}

/// A scalar quadratic, n = 1, C = 0.9, 50 updates, the budget split three ways: the exact expected error at the end.
#[test]
fn check_02_d_the_corrected_split_beats_the_uniform_one_and_that_the_printed_one() {
    let (contraction, updates) = (0.9, 50u64);
    let times: Vec<u64> = (0..updates).collect();
    for start in [0.0, 1.0] {
        let quadratic = Quadratic { curvatures: vec![vec![0.1]], smoothness: vec![1.0], start, moment: 2.0 };
        assert!((quadratic.contraction() - contraction).abs() < 1e-15);
        for budget in [0.1, 1.0, 10.0] {
            let error = |split: Split| {
                let parts = split.parts(&times, updates).expect("parts");
                let steps = epsilons(&parts, budget, 0.0, &Sum).expect("a budget");
                quadratic.error(&steps.iter().map(|epsilon| vec![1.0 / epsilon]).collect::<Vec<_>>())
            };
            let corrected = error(Split::Corrected { contraction });
            let uniform = error(Split::Uniform);
            let printed = error(Split::PaperProposition2 { contraction });
            assert!(corrected < uniform && uniform < printed, "{corrected} {uniform} {printed}");
        }
    }
}
