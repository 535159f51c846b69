//! `sottovoce audit` as its users and other programs meet it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const TASK: &str = "algorithm = \"coordinate-descent\"\n[data]\ntrain = \"train.csv\"\nnormalize = \"l2\"\n[graph]\nkind = \"ring\"\n\
                    [model]\nloss = \"logistic\"\n";
const PRIVACY: &str = "[privacy]\nepsilon = 1\ndelta = 1e-6\nupdates = 2\n";

fn audit(task: &str, words: &[&str]) -> Output {
    let place = tempfile::tempdir().expect("a folder");
    fs::write(place.path().join("task.toml"), task).expect("written");
    let mut rows = "agent,label,a,b\n".to_owned();
    for k in 0..30 {
        let value = f64::from(k * 37 % 19) / 9.5 - 1.0;
        rows += &format!("agent-{},{},{value},{}\n", k % 5, if value > 0.0 { 1 } else { -1 }, 0.5 - value / 3.0);
    }
    fs::write(place.path().join("train.csv"), rows).expect("written");
    let program = Path::new(env!("CARGO_BIN_EXE_sottovoce"));
    Command::new(program).current_dir(place.path()).arg("audit").args(words).output().expect("the program starts")
}

#[test]
fn a_private_task_is_not_refuted_and_the_json_says_what_was_found() {
    let output = audit(&format!("{TASK}{PRIVACY}"), &["task.toml", "--trials", "40", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!((found["epsilon"].as_f64(), found["delta"].as_f64()), (Some(1.0), Some(1e-6)));
    assert_eq!((found["verdict"].as_str(), found["findings"].as_array().map(Vec::len)), (Some("not refuted"), Some(0)));
    let bound = found["lower_bound"].as_f64().expect("a number");
    assert!((0.0..=1.0).contains(&bound), "{bound}");
    let certain = found["lower_bound_certain"].as_f64().expect("a number");
    assert!((0.0..=bound).contains(&certain), "{certain}");
    let confidences = ["lower_bound_confidence", "lower_bound_certain_confidence"].map(|key| found[key].as_f64());
    assert_eq!(confidences, [Some(0.95), Some(0.999_999)]);
    assert_eq!(found["mechanisms"][0]["mechanism"], "gaussian");
    assert!(found["replay"]["neighbours"].as_u64() > Some(100), "{found}");
}

#[test]
fn the_same_seed_prints_the_same_and_says_that_it_is_no_proof() {
    let task = format!("{TASK}{PRIVACY}");
    let print = |seed: &str| {
        let output = audit(&task, &["task.toml", "--trials", "30", "--seed", seed]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let text = print("4");
    assert_eq!(text, print("4"));
    assert!(text.contains("Not refuted") && text.contains("no proof"), "{text}");
}

/// A tight mechanism is at the edge of its claim: a bound that is wrong once in twenty audits crosses the claim by chance.
#[test]
fn what_is_called_at_least_does_not_exceed_a_claim_that_is_not_refuted() {
    let task = format!("{TASK}[privacy]\nepsilon = 1\ndelta = 0\nupdates = 1\nmechanism = \"laplace\"\n");
    let mut crossed = 0;
    for seed in 1..=12 {
        // The bounds do not rest on the level of artefacts.
        let seed_text = seed.to_string();
        let output =
            audit(&task, &["task.toml", "--trials", "200", "--json", "--skip-artefacts", "--seed", &seed_text]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        for part in found["mechanisms"].as_array().expect("mechanisms") {
            let number = |key: &str| part[key].as_f64().expect("a number");
            assert!(number("lower_bound_certain") <= number("epsilon"), "seed {seed}: {part}");
            assert!(number("lower_bound_certain") <= number("lower_bound"), "seed {seed}: {part}");
            crossed += u32::from(number("lower_bound") > number("epsilon"));
        }
    }
    assert!(crossed > 0, "a bound that never crosses would show nothing here");
    let output = audit(&task, &["task.toml", "--trials", "30", "--skip-artefacts"]);
    let text = String::from_utf8(output.stdout).expect("text");
    let head = text.lines().find(|line| line.contains("claimed epsilon")).expect("a table");
    assert!(head.contains("at least") && head.contains("95% bound"), "{head}");
    assert!(text.contains("once in a million audits") && text.contains("once in twenty"), "{text}");
}

#[test]
fn the_help_names_the_four_levels() {
    let output = audit(TASK, &["--help"]);
    let help = String::from_utf8(output.stdout).expect("text");
    for level in ["Mechanisms:", "Whole runs:", "Record and replay:", "Artefacts:"] {
        assert!(help.contains(level), "{level} {help}");
    }
}

#[test]
fn a_task_without_a_claim_is_a_mistake_and_no_refutation() {
    let output = audit(TASK, &["task.toml"]);
    let line = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(line.contains("there is no claim to audit") && line.contains("[privacy]"), "{line}");
    assert_eq!(audit(TASK, &["task.toml", "--trials", "1"]).status.code(), Some(2));
    assert_eq!(audit(TASK, &["nowhere.toml"]).status.code(), Some(2));
}
