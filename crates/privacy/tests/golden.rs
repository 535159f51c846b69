//! Values by other means than this crate's: exact formulas to 40 digits, and Google's dp-accounting.

use serde_json::Value;
use sottovoce_privacy::{Accountant, Charge, Event, Ledger, Optimal, Pld, Rdp, Sum, Theorem1, Tight};

fn ledger(charges: &[(Event, u64)]) -> Ledger {
    Ledger::from_charges(charges.iter().map(|&(event, count)| Charge::new(event, count))).expect("valid charges")
}

fn response(epsilon: f64) -> Event {
    Event::RandomizedResponse { epsilon }
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

/// `oracles/accounting.py` writes the settings and says how. Each holds either the `truth`, by a formula evaluated to 40
/// digits, or a bracket of it, `low` and `high`, by dp-accounting on a refined grid.
///
/// Compared is: no accountant is below the truth, or below `low`, by more than 1e-9 relatively; and `tight` and `pld` are at
/// most 1e-3 relatively above the truth, or above `high`. The brackets are at most 3e-4 wide.
#[test]
fn random_settings_agree_with_formulas_and_with_dp_accounting() {
    let golden: Value = serde_json::from_str(include_str!("../oracles/accounting.json")).expect("JSON");
    let settings = golden["settings"].as_array().expect("settings");
    let exact = settings.iter().filter(|setting| setting.get("truth").is_some()).count();
    assert!(settings.len() >= 200 && exact >= 60 && settings.len() - exact >= 100);
    let mut most = 0.0f64;
    for (index, setting) in settings.iter().enumerate() {
        let charges: Vec<Charge> = serde_json::from_value(setting["charges"].clone()).expect("charges");
        let ledger = Ledger::from_charges(charges).expect("valid charges");
        let number = |key: &str| setting.get(key).map(|value| value.as_f64().expect("a number"));
        let delta = number("delta").expect("a delta");
        let (low, high) = match number("truth") {
            Some(truth) => (truth, truth),
            None => (number("low").expect("a lower end"), number("high").expect("an upper end")),
        };
        assert!(0.0 < low && low <= high && high <= low * (1.0 + 3e-4), "setting {index}");
        let all: [&dyn Accountant; 6] = [&Tight, &Pld, &Rdp, &Optimal, &Theorem1, &Sum];
        for (place, accountant) in all.into_iter().enumerate() {
            let epsilon = accountant.epsilon(&ledger, delta);
            assert!(epsilon >= low * (1.0 - 1e-9), "setting {index}, accountant {place}: {epsilon} < {low}");
            if place < 2 {
                assert!(epsilon <= high * (1.0 + 1e-3), "setting {index}, accountant {place}: {epsilon} > {high}");
                most = most.max(epsilon / high - 1.0);
            }
        }
    }
    println!("{} settings, {exact} of them exact; at most {most:.2e} above", settings.len());
}
