//! One conformance suite for all accountants, and an independent oracle for mixtures.

use serde_json::Value;
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
    // The grid changes with the ledger.
    ("pld", &Pld, 3e-4),
    ("tight", &Tight, 3e-4),
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

fn response(epsilon: f64) -> Event {
    Event::RandomizedResponse { epsilon }
}

/// The kinds of ledger that there are, with the noise multiplied and so many times each step.
fn kinds(noise: f64, times: u64) -> Vec<Vec<(Event, u64)>> {
    vec![
        vec![(laplace(3.0 * noise), times)],
        vec![(gaussian(2.0 * noise), times)],
        vec![(response(0.7 / noise), times)],
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

#[test]
fn a_million_equal_steps_and_a_thousand_different_ones_are_accounted_closely() {
    // Equal answers of randomized response, where the optimum is exact, and Laplace noise so weak that it is one.
    let million = ledger(&[(response(1e-3), 1_000_000)]);
    let (pld, truth) = (Pld.epsilon(&million, 1e-6), Optimal.epsilon(&million, 1e-6));
    assert!(pld >= truth * (1.0 - 1e-9) && pld <= truth * (1.0 + 1e-3), "{pld} {truth}");
    // A thousand different answers that are nearly equal: between a thousand of the least and of the largest.
    let all = |f: fn(f64) -> Event| {
        ledger(&(0..1000).map(|k| (f(0.01 * (1.0 + 1e-7 * f64::from(k))), 1)).collect::<Vec<_>>())
    };
    let pld = Pld.epsilon(&all(response), 1e-6);
    let least = Optimal.epsilon(&ledger(&[(response(0.01), 1000)]), 1e-6);
    assert!(pld >= least && pld <= least * (1.0 + 1e-3), "{pld} {least}");
}

/// The binomial losses of so many answers of randomized response, with their probabilities.
fn answers(epsilon: f64, count: u32) -> Vec<(f64, f64)> {
    let q = 1.0 / (1.0 + libm::exp(-epsilon));
    let mut mass = libm::pow(1.0 - q, f64::from(count));
    let mut law = Vec::new();
    for j in 0..=count {
        law.push(((2.0 * f64::from(j) - f64::from(count)) * epsilon, mass));
        mass *= f64::from(count - j) / f64::from(j + 1) * libm::exp(epsilon);
    }
    law
}

/// Two kinds of answers and a Gaussian have an exact delta: a finite sum over the answers of the Gaussian's closed form.
#[test]
fn a_mixture_with_an_exact_delta_is_accounted_within_a_thousandth() {
    for (first, second, mu, delta) in [
        ((0.02, 26), (0.1, 35), 0.42, 8e-6),
        ((1.3, 2), (0.4, 3), 1.0, 1e-6),
        ((2.0, 1), (0.01, 200), 0.05, 1e-9),
        ((0.3, 40), (3.0, 1), 2.0, 1e-4),
        ((0.001, 5), (5.0, 2), 0.01, 1e-7),
    ] {
        let exact = |epsilon: f64| {
            let mut sum = 0.0;
            for (a, p) in answers(first.0, first.1) {
                for (b, q) in answers(second.0, second.1) {
                    let rest = epsilon - a - b;
                    let phi = |x: f64| 0.5 * libm::erfc(-x / std::f64::consts::SQRT_2);
                    sum += p * q * (phi(mu / 2.0 - rest / mu) - libm::exp(rest) * phi(-mu / 2.0 - rest / mu));
                }
            }
            sum
        };
        let (mut low, mut high) = (0.0, 100.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if exact(middle) > delta { low = middle } else { high = middle }
        }
        let charges =
            [(response(first.0), first.1.into()), (response(second.0), second.1.into()), (gaussian(1.0 / mu), 1)];
        let ledger = ledger(&charges);
        for (name, accountant, _) in ALL {
            let epsilon = accountant.epsilon(&ledger, delta);
            assert!(epsilon >= high * (1.0 - 1e-9), "{name} {charges:?}: {epsilon} < {high}");
            if name == "pld" || name == "tight" {
                assert!(epsilon <= high * (1.0 + 1e-3), "{name} {charges:?}: {epsilon} > {high}");
            }
        }
    }
}

/// 60 random mixtures by Google's dp-accounting: `oracles/accounting.py` writes them.
#[test]
fn random_mixtures_agree_with_dp_accounting() {
    let golden: Value = serde_json::from_str(include_str!("../oracles/accounting.json")).expect("JSON");
    let settings = golden["settings"].as_array().expect("settings");
    assert!(settings.len() >= 60);
    for setting in settings {
        let charges: Vec<Charge> = serde_json::from_value(setting["charges"].clone()).expect("charges");
        let ledger = Ledger::from_charges(charges).expect("valid charges");
        let number = |key: &str| setting[key].as_f64().expect("a number");
        let (delta, low, high) = (number("delta"), number("low"), number("high"));
        for (name, accountant, _) in ALL {
            let epsilon = accountant.epsilon(&ledger, delta);
            // The oracle's own truncation and rounding are of this order: seen on settings with Gaussian noise alone.
            assert!(epsilon >= low * (1.0 - 1e-6), "{name} {setting}: {epsilon}");
            if name == "pld" || name == "tight" {
                assert!(epsilon <= high * (1.0 + 1e-3), "{name} {setting}: {epsilon}");
            }
        }
    }
}
