//! `sottovoce privacy` as its users and other programs meet it.

use std::process::{Command, Output};

fn sottovoce(words: &str) -> Output {
    let words = words.split_whitespace();
    Command::new(env!("CARGO_BIN_EXE_sottovoce")).arg("privacy").args(words).output().expect("the program starts")
}

fn done(words: &str) -> String {
    let output = sottovoce(words);
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn json(words: &str) -> serde_json::Value {
    serde_json::from_str(&done(&format!("{words} --json"))).expect("JSON")
}

fn number(value: &serde_json::Value, key: &str) -> f64 {
    value[key].as_f64().unwrap_or_else(|| panic!("{key} is a number in {value}"))
}

/// delta = e^-5, as in the specification.
const DELTA: &str = "0.006737946999085467";

#[test]
fn epsilon_by_each_accountant_is_the_reference_value() {
    for (accountant, printed) in
        [("tight", 0.550925), ("pld", 0.550925), ("optimal", 0.552231), ("theorem-1", 0.933743)]
    {
        let words = format!("epsilon --mechanism laplace --noise-multiplier 100 --steps 1000 --delta {DELTA}");
        let answer = json(&format!("{words} --accountant {accountant}"));
        assert!((number(&answer, "epsilon") - printed).abs() < 3e-5, "{answer}");
        assert_eq!(number(&answer, "delta").to_string(), DELTA);
        assert_eq!(answer["accountant"], accountant);
    }
    for (noise, printed) in [("100", 0.552250), ("50", 1.360217), ("20", 4.562728)] {
        let answer =
            json(&format!("epsilon --mechanism gaussian --noise-multiplier {noise} --steps 1000 --delta {DELTA}"));
        assert!((number(&answer, "epsilon") - printed).abs() < 1e-6, "{answer}");
        assert_eq!(answer["accountant"], "tight");
    }
}

#[test]
fn the_noise_for_a_budget_keeps_that_budget() {
    for mechanism in ["gaussian", "laplace"] {
        for accountant in ["tight", "theorem-1", "sum", "rdp", "pld"] {
            let rest = format!("--mechanism {mechanism} --steps 100 --delta 1e-6 --accountant {accountant}");
            let noise = number(&json(&format!("noise --epsilon 1.5 {rest}")), "noise_multiplier");
            let epsilon = number(&json(&format!("epsilon --noise-multiplier {noise} {rest}")), "epsilon");
            assert!(epsilon <= 1.5 && epsilon > 1.4999, "{mechanism} {accountant}: {epsilon}");
        }
    }
    let pure = json("noise --mechanism laplace --epsilon 2 --steps 4 --delta 0");
    assert!((number(&pure, "noise_multiplier") - 2.0).abs() < 1e-8, "{pure}");
}

#[test]
fn people_get_a_sentence_and_a_table() {
    let text = done("epsilon --mechanism laplace --noise-multiplier 100 --steps 1000 --delta 1e-6");
    assert!(text.contains("releases with Laplace noise of 100 times the L1 sensitivity"), "{text}");
    for accountant in ["tight", "theorem-1", "sum", "optimal", "gaussian", "rdp", "pld"] {
        assert!(text.lines().any(|line| line.starts_with(accountant)), "{text}");
    }
    assert!(done("noise --mechanism gaussian --epsilon 1 --steps 10 --delta 1e-6").contains("noise multiplier"));
    assert_eq!(done("noise --mechanism gaussian --epsilon 1 --steps 10 --delta 1e-6 --quiet"), "");
}

/// One line about what is wrong, and nothing else.
fn refused(words: &str, about: &str) {
    let output = sottovoce(words);
    let line = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{words}: {line}");
    assert_eq!(line.lines().count(), 1, "one line: {line}");
    assert!(line.contains(about), "{words}: {line}");
    assert!(output.stdout.is_empty());
}

#[test]
fn a_mistake_is_refused_in_one_line() {
    let epsilon = "epsilon --mechanism";
    let noise = "noise --mechanism";
    for (words, about) in [
        (format!("{epsilon} gaussian --noise-multiplier 1 --steps 1 --delta 0"), "delta"),
        (format!("{epsilon} gaussian --noise-multiplier 1 --steps 1 --delta 1"), "delta"),
        (format!("{epsilon} laplace --noise-multiplier 1 --steps 1 --delta -1e-3"), "delta"),
        (format!("{epsilon} laplace --noise-multiplier 1 --steps 1 --delta nan"), "delta"),
        (format!("{epsilon} laplace --noise-multiplier 0 --steps 1 --delta 1e-3"), "noise-multiplier"),
        (format!("{epsilon} laplace --noise-multiplier -2 --steps 1 --delta 1e-3"), "noise-multiplier"),
        (format!("{epsilon} laplace --noise-multiplier inf --steps 1 --delta 1e-3"), "noise-multiplier"),
        (format!("{epsilon} laplace --noise-multiplier 1 --steps 0 --delta 1e-3"), "steps"),
        (format!("{epsilon} laplace --noise-multiplier 1 --steps -4 --delta 1e-3"), "steps"),
        (format!("{epsilon} laplace --noise-multiplier 1 --steps 1 --delta 1e-3 --accountant gaussian"), "accountant"),
        (format!("{epsilon} gaussian --noise-multiplier 1 --steps 1 --delta 1e-3 --accountant optimal"), "accountant"),
        (format!("{noise} gaussian --epsilon 1 --steps 1 --delta 0"), "delta"),
        (format!("{noise} laplace --epsilon 0 --steps 1 --delta 0"), "epsilon"),
        (format!("{noise} laplace --epsilon -1 --steps 1 --delta 0"), "epsilon"),
        (format!("{noise} laplace --epsilon nan --steps 1 --delta 0"), "epsilon"),
        (format!("{noise} laplace --epsilon 1 --steps 0 --delta 0"), "steps"),
    ] {
        refused(&words, about);
    }
}

const WALK: &str = "--network complete --agents 100 --hops 500 --contributions 6 --delta 1e-5";

#[test]
fn a_token_on_a_network_is_accounted_and_names_its_observer() {
    let noise = json(&format!("noise --epsilon 1 {WALK}"));
    assert_eq!(noise["observer"], "any one other member, knowing the token's path, told the outcome");
    assert_eq!((number(&noise, "epsilon"), &noise["accountant"]), (1.0, &"tight".into()));
    let keys = |answer: &serde_json::Value| {
        answer.as_object().expect("an object").keys().cloned().collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(
        keys(&noise),
        ["accountant", "delta", "epsilon", "noise_multiplier", "observer"].map(String::from).into()
    );
    let multiplier = number(&noise, "noise_multiplier");
    let bare = json(&format!("epsilon --noise-multiplier {multiplier} {WALK}"));
    assert_eq!(keys(&bare), ["accountant", "delta", "epsilon", "observer"].map(String::from).into());
    let epsilon = |rest: &str| number(&json(&format!("epsilon --noise-multiplier {multiplier} {rest}")), "epsilon");
    let here = epsilon(WALK);
    assert!(here <= 1.0 && here > 0.999, "{here}");
    for (rest, more) in [("--colluders 5", true), ("--present 0.6", true), ("--accountant cycle", false)] {
        let there = epsilon(&format!("{WALK} {rest}"));
        assert_eq!(there > here, more, "{rest}: {there} and {here}");
    }
    let local = json(&format!("epsilon --noise-multiplier {multiplier} {WALK} --accountant gaussian"));
    assert_eq!(local["observer"], "whoever sees every hop of the token");
    for accountant in ["estimate", "paper", "paper-lifted"] {
        let answer = json(&format!("epsilon --noise-multiplier {multiplier} {WALK} --accountant {accountant}"));
        assert_eq!(answer["guarantee"], false, "{answer}");
        let text = done(&format!("epsilon --noise-multiplier {multiplier} {WALK} --accountant {accountant}"));
        assert!(text.contains("no guarantee"), "{text}");
    }
    // On a ring contributions compose as releases do.
    let ring = json("epsilon --network ring --agents 50 --contributions 3 --noise-multiplier 4 --delta 1e-6");
    let plain = json("epsilon --mechanism gaussian --steps 3 --noise-multiplier 4 --delta 1e-6");
    assert!((number(&ring, "epsilon") / number(&plain, "epsilon") - 1.0).abs() < 1e-6, "{ring} {plain}");
    assert!(noise.get("guarantee").is_none() && ring["observer"].is_string());
}

#[test]
fn a_table_says_for_what_each_accountant_of_a_network_holds() {
    let text = done(&format!("noise --epsilon 2 {WALK}"));
    assert!(
        text.contains("A token that 100 members pass from anyone to anyone, 6 contributions each at most"),
        "{text}"
    );
    assert!(text.contains("For all data of one member, against any one other member"), "{text}");
    for (accountant, holds) in
        [("tight", "contractions"), ("cycle", "sums alone"), ("estimate", "nothing"), ("paper", "nothing")]
    {
        assert!(text.lines().any(|line| line.starts_with(accountant) && line.contains(holds)), "{accountant}: {text}");
    }
}

#[test]
fn a_mistake_about_a_network_is_refused_in_one_line() {
    let complete = "epsilon --network complete --noise-multiplier 2 --delta 1e-6";
    let ring = "epsilon --network ring --noise-multiplier 2 --delta 1e-6";
    for (words, about) in [
        (format!("{complete} --agents 100 --hops 500"), "--contributions"),
        (format!("{complete} --agents 100 --hops 500 --contributions 0"), "--contributions"),
        (format!("{complete} --agents 100 --contributions 6"), "--hops"),
        (format!("{complete} --agents 2 --hops 500 --contributions 6"), "--agents"),
        (format!("{complete} --agents 100 --hops 500 --contributions 6 --colluders 99"), "at most 98"),
        (format!("{complete} --agents 100 --hops 500 --contributions 6 --colluders 50 --present 0.5"), "at most 48"),
        (format!("{complete} --agents 100 --hops 500 --contributions 6 --colluders 0"), "--colluders"),
        (format!("{complete} --agents 100 --hops 500 --contributions 6 --present 0"), "present"),
        (format!("{complete} --agents 100 --hops 500 --contributions 6 --accountant pld"), "accountant"),
        (format!("{ring} --agents 2 --contributions 1"), "--agents"),
        (format!("{ring} --agents 20"), "--contributions"),
        (format!("{ring} --agents 20 --contributions 1 --colluders 2"), "--colluders 1"),
        (format!("{ring} --agents 20 --contributions 1 --hops 21"), "--hops"),
        (format!("{ring} --agents 20 --contributions 1 --accountant cycle"), "accountant"),
        ("epsilon --network ring --agents 20 --contributions 1 --noise-multiplier 2 --delta 0".to_owned(), "delta"),
        ("epsilon --network ring --agents 20 --contributions 1 --noise-multiplier 0 --delta 0.1".to_owned(), "noise"),
        ("noise --network ring --agents 20 --contributions 1 --epsilon -1 --delta 0.1".to_owned(), "epsilon"),
        (
            "epsilon --mechanism gaussian --steps 2 --noise-multiplier 2 --delta 0.1 --accountant cycle".to_owned(),
            "network",
        ),
    ] {
        refused(&words, about);
    }
}
