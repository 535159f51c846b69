use super::*;
use crate::account::{Gaussian, Optimal};
use crate::{Charge, Event};

fn ledger(charges: &[(Event, u64)]) -> Ledger {
    Ledger::from_charges(charges.iter().map(|&(event, count)| Charge::new(event, count))).expect("valid charges")
}

fn laplace(epsilon: f64) -> Event {
    Event::Laplace { noise_multiplier: 1.0 / epsilon }
}

/// Within 1e-9 below and 1e-3 above, relatively.
fn close(ours: f64, truth: f64, what: &str) {
    assert!(ours >= truth * (1.0 - 1e-9) && ours <= truth * (1.0 + 1e-3), "{what}: {ours} is not {truth}");
}

/// Spec 02 section 2.1.
#[test]
fn the_reference_value_comes_out_to_the_printed_digits() {
    let epsilon = Pld.epsilon(&ledger(&[(laplace(0.01), 1000)]), libm::exp(-5.0));
    assert!((epsilon - 0.550925).abs() <= 3e-4 * 0.550925, "{epsilon}");
}

#[test]
fn one_laplace_step_has_the_closed_form() {
    // delta(e) = 1 - exp((e - eps)/2) for 0 <= e <= eps.
    for epsilon in [1e-3, 0.1, 1.0, 10.0, 100.0, 1000.0] {
        for delta in [1e-15, 1e-10, 1e-6, 1e-4, 0.01, 0.1] {
            let truth: f64 = epsilon + 2.0 * libm::log1p(-delta);
            if truth > 1e-3 * epsilon {
                close(Pld.epsilon(&ledger(&[(laplace(epsilon), 1)]), delta), truth, &format!("{epsilon} {delta}"));
            }
        }
    }
}

#[test]
fn randomized_response_agrees_with_the_exact_optimum() {
    for epsilon in [1e-6, 1e-3, 0.03, 1.0, 7.0, 30.0] {
        for count in [1, 2, 3, 10, 100, 10_000, 1_000_000] {
            for delta in [1e-100, 1e-15, 1e-6, 1e-3] {
                let ledger = ledger(&[(Event::RandomizedResponse { epsilon }, count)]);
                let truth = Optimal.epsilon(&ledger, delta);
                if (1e-3..=1e3).contains(&truth) {
                    close(Pld.epsilon(&ledger, delta), truth, &format!("{epsilon} x {count}, {delta}"));
                }
            }
        }
    }
}

#[test]
fn a_gaussian_with_hardly_any_laplace_is_that_gaussian() {
    for noise_multiplier in [0.05, 0.5, 1.0, 10.0, 100.0] {
        for delta in [1e-12, 1e-6, 1e-3] {
            let gaussian = (Event::Gaussian { noise_multiplier }, 1);
            let truth = Gaussian.epsilon(&ledger(&[gaussian]), delta);
            if truth > 1e-3 {
                let mixed = ledger(&[gaussian, (laplace(1e-9), 1)]);
                close(Pld.epsilon(&mixed, delta), truth, &format!("{noise_multiplier} {delta}"));
            }
        }
    }
}
