//! One conformance suite for all accountants: what every one of them must do, whatever it computes.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use sottovoce_privacy::{
    Accountant, Charge, Event, Gaussian, Ledger, Optimal, Pld, Rdp, Sum, Theorem1, Tight, gaussian_epsilon,
};

/// Every accountant, and how far rounding may make it waver, relatively.
const ALL: [(&str, &dyn Accountant, f64); 7] = [
    ("sum", &Sum, 1e-11),
    ("theorem-1", &Theorem1, 1e-11),
    ("optimal", &Optimal, 1e-11),
    ("gaussian", &Gaussian, 1e-11),
    ("rdp", &Rdp, 1e-9),
    ("pld", &Pld, 1e-8),
    ("tight", &Tight, 1e-8),
];

fn ledger(charges: &[(Event, u64)]) -> Ledger {
    Ledger::from_charges(charges.iter().map(|&(event, count)| Charge::new(event, count))).expect("valid charges")
}

fn laplace(noise_multiplier: f64) -> Event {
    Event::Laplace { noise_multiplier }
}

fn gaussian(noise_multiplier: f64) -> Event {
    Event::Gaussian { noise_multiplier }
}

fn gamma_norm(noise_multiplier: f64) -> Event {
    Event::GammaNorm { noise_multiplier }
}

fn response(epsilon: f64) -> Event {
    Event::RandomizedResponse { epsilon }
}

/// The kinds of ledger that there are, with the noise multiplied and so many times each step.
fn kinds(noise: f64, times: u64) -> Vec<Vec<(Event, u64)>> {
    vec![
        vec![(laplace(3.0 * noise), times)],
        vec![(gaussian(2.0 * noise), times)],
        vec![(response(0.7 / noise), times)],
        vec![(gamma_norm(3.0 * noise), times), (gaussian(2.0 * noise), 3 * times)],
        vec![(laplace(30.0 * noise), 40 * times), (laplace(10.0 * noise), times)],
        vec![(laplace(20.0 * noise), 20 * times), (gaussian(5.0 * noise), times), (response(0.1 / noise), 5 * times)],
    ]
}

const DELTAS: [f64; 5] = [1e-30, 1e-10, 1e-6, 1e-3, 0.2];

#[test]
fn nothing_costs_nothing_and_an_exact_value_costs_everything() {
    for (name, accountant, _) in ALL {
        for delta in [0.0, 1e-6, 0.5, 1.0] {
            assert_eq!(accountant.epsilon(&Ledger::default(), delta), 0.0, "{name}");
            for mut charges in kinds(1.0, 1) {
                charges.push((Event::Reveal, 1));
                assert_eq!(accountant.epsilon(&ledger(&charges), delta), f64::INFINITY, "{name}");
            }
        }
    }
}

#[test]
fn less_noise_more_steps_or_a_smaller_delta_never_cost_less() {
    for (name, accountant, waver) in ALL {
        let not_less = |more: f64, less: f64, what: &str| {
            assert!(more >= less * (1.0 - waver) - 1e-12, "{name}, {what}: {more} < {less}");
        };
        for kind in 0..kinds(1.0, 1).len() {
            let at =
                |noise: f64, times: u64, delta: f64| accountant.epsilon(&ledger(&kinds(noise, times)[kind]), delta);
            for delta in DELTAS {
                for noise in [0.1, 1.0, 10.0] {
                    let here = at(noise, 2, delta);
                    not_less(here, at(1.01 * noise, 2, delta), "noise");
                    not_less(at(noise, 3, delta), here, "steps");
                    not_less(here, at(noise, 2, 1.01 * delta), "delta");
                }
            }
        }
    }
}

#[test]
fn without_a_delta_pure_steps_add_up_and_gaussian_ones_have_no_guarantee() {
    for (name, accountant, _) in ALL {
        let pure = accountant.epsilon(&ledger(&[(laplace(4.0), 6), (laplace(2.0), 1)]), 0.0);
        let expected = match name {
            "gaussian" => f64::INFINITY,
            _ => 2.0,
        };
        assert_eq!(pure, expected, "{name}");
        assert_eq!(accountant.epsilon(&ledger(&[(gaussian(4.0), 1), (laplace(2.0), 1)]), 0.0), f64::INFINITY, "{name}");
    }
}

#[test]
fn no_accountant_is_below_the_truth_or_below_tight() {
    for charges in kinds(1.0, 3).into_iter().chain(kinds(10.0, 30)) {
        let ledger = ledger(&charges);
        for delta in DELTAS {
            let tight = Tight.epsilon(&ledger, delta);
            for (name, accountant, _) in ALL {
                let epsilon = accountant.epsilon(&ledger, delta);
                assert!(epsilon >= tight, "{name} {charges:?} {delta}: {epsilon} < {tight}");
            }
            if let [(Event::Gaussian { noise_multiplier }, count)] = charges[..] {
                let truth = gaussian_epsilon((count as f64).sqrt() / noise_multiplier, delta);
                assert!((tight / truth - 1.0).abs() < 1e-9 || tight == truth);
            }
        }
    }
}

#[test]
fn extreme_values_give_a_number_that_is_not_negative() {
    let sizes = [5e-324, 1e-300, 1e-10, 1e-3, 1.0, 1e20, f64::MAX];
    let counts = [1, 1000, u64::MAX / 8];
    let deltas = [f64::NAN, -1.0, 5e-324, 1e-16, 0.5, f64::INFINITY];
    for size in sizes {
        for count in counts {
            let events = [laplace(size), gaussian(size), response(size)];
            let mut ledgers: Vec<_> = events.iter().map(|&event| ledger(&[(event, count)])).collect();
            ledgers.push(ledger(&[(events[0], count), (events[1], 1), (events[2], 3), (laplace(1.0), 2)]));
            for delta in deltas {
                for ledger in &ledgers {
                    for (name, accountant, _) in ALL {
                        let epsilon = accountant.epsilon(ledger, delta);
                        assert!(epsilon >= 0.0, "{name} {ledger:?} {delta}: {epsilon}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_ledger_read_back_in_any_order_and_in_pieces_gives_the_same_epsilon() {
    for charges in kinds(1.0, 6) {
        let whole = ledger(&charges);
        let line = |charge: &Charge| serde_json::to_string(charge).expect("JSON");
        let lines: Vec<_> = whole.charges().map(line).collect();
        let read = lines.iter().map(|line| serde_json::from_str::<Charge>(line).expect("a charge"));
        let again = Ledger::from_charges(read).expect("valid charges");
        // Half of every count first, then the rest, so that the entries keep their order.
        let halves = charges.iter().map(|&(event, count)| (event, count / 2));
        let rest = charges.iter().map(|&(event, count)| (event, count - count / 2));
        let pieces = ledger(&halves.chain(rest).filter(|&(_, count)| count > 0).collect::<Vec<_>>());
        assert_eq!(whole, again);
        let reversed = ledger(&charges.iter().rev().copied().collect::<Vec<_>>());
        for (name, accountant, waver) in ALL {
            let epsilon = accountant.epsilon(&whole, 1e-6);
            assert_eq!(epsilon, accountant.epsilon(&again, 1e-6), "{name}");
            assert_eq!(epsilon, accountant.epsilon(&pieces, 1e-6), "{name}");
            let other = accountant.epsilon(&reversed, 1e-6);
            assert!(epsilon == other || (epsilon / other - 1.0).abs() <= waver, "{name}: {epsilon} {other}");
        }
    }
}

/// The binomial losses of so many answers of randomized response, with their probabilities, the largest first.
fn answers(epsilon: f64, count: u32) -> Vec<(f64, f64)> {
    let mut mass = libm::pow(1.0 / (1.0 + libm::exp(-epsilon)), f64::from(count));
    let mut law = Vec::new();
    for j in (0..=count).rev() {
        law.push(((2.0 * f64::from(j) - f64::from(count)) * epsilon, mass));
        mass *= f64::from(j) / f64::from(count - j + 1) * libm::exp(-epsilon);
    }
    law
}

type Charges = Vec<(Event, u64)>;

/// The truth where a formula gives it: the charges, a delta, and the epsilon.
fn truths() -> Vec<(Charges, f64, f64)> {
    let mut truths = Vec::new();
    for delta in [1e-12, 1e-6, 1e-2, 0.1] {
        for epsilon in [1e-3, 0.3, 5.0, 700.0, 1000.0] {
            // One Laplace step: delta(e) = 1 - exp((e - eps) / 2). One answer: delta(e) = q (1 - exp(e - eps)).
            truths.push((vec![(laplace(1.0 / epsilon), 1)], delta, epsilon + 2.0 * libm::log1p(-delta)));
            let q = 1.0 / (1.0 + libm::exp(-epsilon));
            if delta < q {
                truths.push((vec![(response(epsilon), 1)], delta, epsilon + libm::log1p(-delta / q)));
            }
            truths.push((vec![(gaussian(1.0 / epsilon), 2), (gaussian(3.0 / epsilon), 9)], delta, {
                gaussian_epsilon(3.0f64.sqrt() * epsilon, delta)
            }));
        }
    }
    for (first, second, mu, delta) in [
        ((0.02, 26), (0.1, 35), 0.42, 8e-6),
        ((1.3, 2), (0.4, 3), 1.0, 1e-6),
        ((2.0, 1), (0.01, 200), 0.05, 1e-9),
        ((0.3, 40), (3.0, 1), 2.0, 1e-4),
        ((0.001, 5), (5.0, 2), 0.01, 1e-7),
        ((20.0, 20), (2.0, 30), 15.0, 1e-5),
        ((90.0, 10), (0.5, 30), 1.0, 1e-3),
    ] {
        let charges =
            vec![(response(first.0), first.1.into()), (response(second.0), second.1.into()), (gaussian(1.0 / mu), 1)];
        truths.push((charges, delta, two_answers_and_a_gaussian(first, second, mu, delta)));
    }
    truths
}

/// Two kinds of answers and a Gaussian have an exact delta: a finite sum over the answers of the Gaussian's closed form.
fn two_answers_and_a_gaussian(first: (f64, u32), second: (f64, u32), mu: f64, delta: f64) -> f64 {
    let phi = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
    let exact = |epsilon: f64| {
        let mut sum = 0.0;
        for (a, p) in answers(first.0, first.1) {
            for (b, q) in answers(second.0, second.1) {
                let rest = epsilon - a - b;
                let tail = phi(-mu / 2.0 - rest / mu);
                let below = if tail > 0.0 { libm::exp(rest + libm::log(tail)) } else { 0.0 };
                sum += p * q * (phi(mu / 2.0 - rest / mu) - below);
            }
        }
        sum
    };
    let (mut low, mut high) = (0.0, 4000.0);
    for _ in 0..70 {
        let middle = 0.5 * (low + high);
        if exact(middle) > delta { low = middle } else { high = middle }
    }
    high
}

#[test]
fn no_accountant_is_below_the_truth_and_the_tight_ones_are_within_a_thousandth() {
    for (charges, delta, truth) in truths() {
        let ledger = ledger(&charges);
        for (name, accountant, _) in ALL {
            let epsilon = accountant.epsilon(&ledger, delta);
            assert!(epsilon >= truth * (1.0 - 1e-9), "{name} {charges:?} {delta}: {epsilon} < {truth}");
            if (name == "pld" || name == "tight") && (1e-3..=1e3).contains(&truth) {
                assert!(epsilon <= truth * (1.0 + 1e-3), "{name} {charges:?} {delta}: {epsilon} > {truth}");
            }
        }
    }
}

#[test]
fn up_to_a_thousand_the_tight_accountants_stay_close_and_monotone() {
    let mut before = [0.0; 2];
    for k in 0..40 {
        let scale = 1.0 + 0.02 * f64::from(k);
        let (first, second, mu) = ((25.0 * scale, 12), (1.5 * scale, 60), 14.0 * scale);
        let truth = two_answers_and_a_gaussian(first, second, mu, 1e-6);
        let charges = [(response(first.0), 12), (response(second.0), 60), (gaussian(1.0 / mu), 1)];
        for (before, accountant) in before.iter_mut().zip([&Pld as &dyn Accountant, &Tight]) {
            let epsilon = accountant.epsilon(&ledger(&charges), 1e-6);
            assert!(epsilon >= truth * (1.0 - 1e-9) && epsilon <= truth * (1.0 + 1e-3), "{scale}: {epsilon} {truth}");
            assert!(epsilon > *before, "{scale}: {epsilon} {before}");
            *before = epsilon;
        }
    }
    assert!(before[1] > 1e3, "{before:?}");
}

#[test]
fn the_order_of_charges_changes_no_digit() {
    let charges = [(gamma_norm(0.09461661187630444), 21), (gamma_norm(372.2007990570269), 58), (gamma_norm(5.0), 25)];
    let turned: Vec<_> = charges.iter().rev().copied().collect();
    for (name, accountant, _) in ALL {
        let [here, there] = [&charges[..], &turned].map(|charges| accountant.epsilon(&ledger(charges), 1.01e-4));
        assert!(here == there || (here / there - 1.0).abs() <= 1e-9, "{name}: {here} {there}");
    }
}

/// A random ledger, with an epsilon from well below 1e-3 to above 1e3, and so few steps that one more is a change.
fn random_charges() -> impl Strategy<Value = Vec<(Event, u64)>> {
    let one = (0..4, -2.0..2.0f64, 1u64..400).prop_map(|(kind, size, count)| {
        let size = libm::exp10(size) / (count as f64).sqrt();
        let event = match kind {
            0 => laplace(1.0 / size),
            1 => gaussian(1.0 / size),
            2 => gamma_norm(1.0 / size),
            _ => response(size),
        };
        (event, count)
    });
    proptest::collection::vec(one, 1..5)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]
    #[test]
    fn random_ledgers_keep_every_property(charges in random_charges(), delta in -12.0..-1.0f64, which in 0usize..4) {
        let delta = libm::exp10(delta);
        let which = which % charges.len();
        let changed = |change: &dyn Fn(&mut (Event, u64))| {
            let mut charges = charges.clone();
            change(&mut charges[which]);
            ledger(&charges)
        };
        let noisier = changed(&|(event, _)| *event = match *event {
            Event::Laplace { noise_multiplier } => laplace(1.001 * noise_multiplier),
            Event::Gaussian { noise_multiplier } => gaussian(1.001 * noise_multiplier),
            Event::GammaNorm { noise_multiplier } => gamma_norm(1.001 * noise_multiplier),
            Event::RandomizedResponse { epsilon } => response(epsilon / 1.001),
            Event::Reveal => Event::Reveal,
        });
        let longer = changed(&|(_, count)| *count += 1);
        let here = ledger(&charges);
        let reversed = ledger(&charges.iter().rev().copied().collect::<Vec<_>>());
        let split = charges.iter().flat_map(|&(event, count)| [(event, count / 2), (event, count - count / 2)]);
        let split = ledger(&split.filter(|&(_, count)| count > 0).collect::<Vec<_>>());
        for (name, accountant, waver) in ALL {
            let epsilon = accountant.epsilon(&here, delta);
            let not_less = |more: f64, less: f64| more >= less * (1.0 - waver) - 1e-12;
            prop_assert!(epsilon >= 0.0, "{name}: {epsilon}");
            prop_assert!(not_less(epsilon, accountant.epsilon(&noisier, delta)), "{name}, noise {epsilon}");
            prop_assert!(not_less(accountant.epsilon(&longer, delta), epsilon), "{name}, steps {epsilon}");
            prop_assert!(not_less(epsilon, accountant.epsilon(&here, 1.01 * delta)), "{name}, delta {epsilon}");
            prop_assert_eq!(epsilon, accountant.epsilon(&split, delta), "{}, split", name);
            let other = accountant.epsilon(&reversed, delta);
            prop_assert!(epsilon == other || (epsilon / other - 1.0).abs() <= 1e-9, "{name}: {epsilon} {other}");
            prop_assert!(accountant.rough(&here, delta) >= Tight.epsilon(&here, delta), "{name}: the rough value is no bound");
        }
    }
}
