//! `sottovoce reproduce`, from the outside.

use std::process::{Command, Output};

fn sottovoce(words: &[&str], folder: &std::path::Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sottovoce")).args(words).current_dir(folder).output().expect("the program starts")
}

#[test]
fn the_list_names_every_experiment_and_an_unknown_name_is_a_mistake() {
    let place = tempfile::tempdir().expect("a folder");
    let list = sottovoce(&["reproduce", "list"], place.path());
    assert!(list.status.success());
    let text = String::from_utf8(list.stdout).expect("UTF-8");
    for name in ["figure-1", "figure-2a", "figure-2b", "figure-2c", "figure-3", "figure-4", "slides-hinge"] {
        assert!(text.lines().any(|line| line.starts_with(name)), "{text}");
    }
    let json = sottovoce(&["reproduce", "list", "--json"], place.path());
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(json.as_array().map(Vec::len), Some(text.lines().count() - 1));
    let unknown = sottovoce(&["reproduce", "figure-9"], place.path());
    assert_eq!(unknown.status.code(), Some(2));
}

#[test]
fn a_quick_figure_prints_claims_and_leaves_a_page() {
    let place = tempfile::tempdir().expect("a folder");
    let run = sottovoce(&["reproduce", "figure-4", "--quick", "--out", "out"], place.path());
    let text = String::from_utf8(run.stdout).expect("UTF-8");
    assert!(run.status.success(), "{text}");
    assert!(
        text.contains("holds: Models learned from noisy copies are near chance") && text.contains("paper:"),
        "{text}"
    );
    assert!(
        place.path().join("out/index.html").exists() && place.path().join("out/figure-4/accuracy-sound.png").exists()
    );
    let again = sottovoce(&["reproduce", "figure-4", "--quick", "--out", "out", "--json"], place.path());
    let json: serde_json::Value = serde_json::from_slice(&again.stdout).expect("JSON");
    assert_eq!(json["experiments"][0]["claims"][0]["verdict"], "holds");
    let quiet = sottovoce(&["reproduce", "figure-4", "--quick", "--out", "out", "--quiet"], place.path());
    assert!(quiet.stdout.is_empty() && quiet.stderr.is_empty());
}
