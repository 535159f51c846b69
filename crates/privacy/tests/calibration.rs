//! Calibration and the split of a budget, by the numbers of the specification.

use proptest::prelude::*;
use sottovoce_privacy::calibrate::{Noise, Split, Uncalibrated, epsilon_per_step, epsilons, noise_multiplier};
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
        (Noise::Gaussian, [&Gaussian as &dyn Accountant, &Rdp, &Theorem1, &Tight]),
        (Noise::Laplace, [&Sum, &Optimal, &Rdp, &Tight]),
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

#[test]
fn budgets_that_cannot_be_kept_are_refused() {
    let refused = |noise, epsilon, delta, steps| {
        let answer = noise_multiplier(noise, epsilon, delta, steps, &Tight);
        assert!(matches!(answer, Err(Uncalibrated::OutOfRange { .. })), "{epsilon} {delta} {steps}: {answer:?}");
    };
    for epsilon in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        refused(Noise::Laplace, epsilon, 1e-6, 1);
    }
    for delta in [-1e-9, 1.0, f64::NAN] {
        refused(Noise::Laplace, 1.0, delta, 1);
    }
    refused(Noise::Gaussian, 1.0, 0.0, 1);
    refused(Noise::Laplace, 1.0, 0.0, 0);
    assert!(matches!(noise_multiplier(Noise::Laplace, 1.0, 1e-6, 1, &Gaussian), Err(Uncalibrated::OutOfReach)));
    assert!(Split::Uniform.parts(&[], 1).is_err());
    assert!(Split::Corrected { contraction: 1.5 }.parts(&[0], 1).is_err());
    assert!(Split::Corrected { contraction: 0.5 }.parts(&[3], 3).is_err());
}

/// sum w_t / eps_t^2, what the split minimises.
fn objective(weights: &[f64], epsilons: &[f64]) -> f64 {
    weights.iter().zip(epsilons).map(|(weight, epsilon)| weight / (epsilon * epsilon)).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
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
