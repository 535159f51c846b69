//! Private tasks as their users and other programs meet them.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn sottovoce(folder: &Path, words: &str) -> Output {
    let words = words.split_whitespace();
    Command::new(env!("CARGO_BIN_EXE_sottovoce")).current_dir(folder).args(words).output().expect("the program starts")
}

fn done(folder: &Path, words: &str) -> String {
    let output = sottovoce(folder, words);
    assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

fn json(folder: &Path, words: &str) -> Value {
    serde_json::from_str(&done(folder, &format!("{words} --json"))).expect("JSON")
}

/// The one line with which the program refuses.
fn refused(folder: &Path, words: &str) -> String {
    let output = sottovoce(folder, words);
    let line = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{words}: {line}");
    assert_eq!(line.lines().count(), 1, "one line: {line}");
    line
}

fn read(folder: &Path, file: &str) -> String {
    fs::read_to_string(folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// A folder with a generated private task, `task/private.toml`.
fn place(size: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a folder");
    done(place.path(), &format!("data generate linear {size} --private --out task"));
    place
}

/// The generated private task with one line of its text changed, as `task/{name}.toml`.
fn variant(folder: &Path, name: &str, changes: &[(&str, &str)]) {
    let mut text = read(folder, "task/private.toml");
    for (from, to) in changes {
        let line = text.lines().find(|line| line.starts_with(from)).unwrap_or_else(|| panic!("{from} in {text}"));
        text = text.replace(line, to);
    }
    fs::write(folder.join(format!("task/{name}.toml")), text).expect("written");
}

const SMALL: &str = "--agents 20 --dimension 4";

#[test]
fn a_private_run_says_its_budget_what_was_spent_and_who_gains() {
    let place = place(SMALL);
    let text = done(place.path(), "train task/private.toml --out run");
    for words in [
        "SIMULATION: the noise comes from the seed",
        "nothing here is protected",
        "(1.05, 0.006738)-differentially private, for one record replaced by another, against everyone",
        "Each agent releases 1 update with Gaussian noise",
        "as broadcast",
        "agents gain with their home model",
        "Spent: epsilon = 1.05 of 1.05 at delta = 0.006738, by tight",
        "by theorem-1",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let page = read(place.path(), "run/report.html");
    let parts = [
        "In this simulation, private collaboration with home models",
        "This was a simulation",
        "broadcast models",
        "home models",
        "<h2>Privacy</h2>",
        "theorem-1",
        "no ledger is charged",
        "id=\"score-by-epsilon\"",
        "id=\"score-by-updates\"",
    ];
    for part in parts {
        assert!(page.contains(part), "{part}");
    }
    for plot in ["score-by-epsilon", "score-by-updates", "score-by-size"] {
        assert!(read(place.path(), &format!("run/plots/{plot}.svg")).starts_with("<svg "));
        let png = fs::read(place.path().join(format!("run/plots/{plot}.png"))).expect("a picture");
        assert!(png.starts_with(b"\x89PNG"));
    }
    assert_eq!(read(place.path(), "run/home.csv").lines().count(), 21);
    assert!(!page.contains("Proposition 1"), "the bound is for exact gradients");
}

#[test]
fn a_private_run_and_its_sweep_do_not_depend_on_threads() {
    let place = place(SMALL);
    let run = |threads: u32| {
        let out = format!("run-{threads}");
        let words = format!("train task/private.toml --out {out} --threads {threads}");
        let digest = json(place.path(), &words)["digest"].clone();
        let plots =
            ["score-by-epsilon", "score-by-updates"].map(|plot| read(place.path(), &format!("{out}/plots/{plot}.svg")));
        (digest, plots, read(place.path(), &format!("{out}/home.csv")))
    };
    assert_eq!(run(1), run(2));
}

#[test]
fn a_sweep_can_be_left_out_and_the_report_says_so() {
    let place = place(SMALL);
    done(place.path(), "train task/private.toml --out run --no-sweep");
    assert!(read(place.path(), "run/report.html").contains("It was turned off."));
    assert!(!place.path().join("run/plots/score-by-epsilon.svg").exists());
}

#[test]
fn a_sweep_that_would_take_too_long_is_left_out_and_the_report_says_so() {
    let place = place("--agents 150 --dimension 100");
    done(place.path(), "train task/private.toml --out run");
    assert!(read(place.path(), "run/report.html").contains("multiplications, and the report stops at"));
}

#[test]
fn a_dry_run_of_a_private_task_shows_its_plan_and_writes_nothing() {
    let place = place(SMALL);
    let text = done(place.path(), "train task/private.toml --out run --dry-run");
    assert!(text.contains("Each agent releases 1 update with Gaussian noise of 1.93 times the sensitivity"), "{text}");
    let plan = &json(place.path(), "train task/private.toml --out run --dry-run")["privacy"];
    assert_eq!(plan["releases"][0]["mechanism"], "gaussian");
    assert!(!place.path().join("run").exists());
}

#[test]
fn deltas_near_one_over_m_and_epsilons_above_twenty_get_a_loud_word_and_no_refusal() {
    let place = place(SMALL);
    // The example that the program itself generates has such a delta.
    variant(place.path(), "near", &[]);
    variant(place.path(), "wide", &[("epsilon", "epsilon = 21.0"), ("delta", "delta = 1e-6")]);
    variant(place.path(), "good", &[("epsilon", "epsilon = 20.0"), ("delta", "delta = 1e-6")]);
    for (task, says) in [("near", Some("delta = 0.0067")), ("wide", Some("epsilon = 21 is above 20")), ("good", None)] {
        let output = sottovoce(place.path(), &format!("train task/{task}.toml --out {task} --no-sweep"));
        assert!(output.status.success(), "{task}");
        let warned = String::from_utf8(output.stderr).expect("text");
        let summary: Value = serde_json::from_str(&read(place.path(), &format!("{task}/summary.json"))).expect("JSON");
        let noted = summary["accounting"]["warnings"].to_string();
        let page = read(place.path(), &format!("{task}/report.html"));
        match says {
            Some(says) => {
                assert!(warned.starts_with(&format!("warning: {says}")) && noted.contains(says), "{warned} {noted}");
                assert!(page.contains(&format!("Warning: {says}")), "{task}");
            }
            None => assert!(warned.is_empty() && noted == "[]", "{warned} {noted}"),
        }
        // Owners of real data hear it when they make their peer; it is about their own points.
        let train = read(place.path(), "task/train.csv");
        let rows = |name: &str| -> String {
            train.split_inclusive('\n').filter(|line| line.split(',').next() == Some(name)).collect()
        };
        let most = (0..20).map(|k| format!("agent-{k:03}")).max_by_key(|name| rows(name).len()).expect("an agent");
        let own: String = ["agent", &most].map(rows).concat();
        fs::write(place.path().join("own.csv"), own).expect("written");
        let task = read(place.path(), &format!("task/{task}.toml")).replace("[model]", "[model]\npoints-max = 1000");
        fs::write(place.path().join("peer.toml"), task).expect("written");
        let words = format!("peer init made --task peer.toml --agent {most} --data own.csv");
        let output = sottovoce(place.path(), &words);
        let warned = String::from_utf8(output.stderr).expect("text");
        assert!(output.status.success(), "{warned}");
        match says {
            Some(says) => assert!(warned.contains(&format!("warning: {says}")), "{warned}"),
            None => assert!(warned.is_empty(), "{warned}"),
        }
        fs::remove_dir_all(place.path().join("made")).expect("it was made");
    }
}

#[test]
fn a_delta_that_is_too_large_is_warned_about_on_the_screen_and_in_the_report() {
    let place = place(SMALL);
    variant(place.path(), "loose", &[("delta", "delta = 0.2")]);
    let output = sottovoce(place.path(), "train task/loose.toml --out run --no-sweep");
    assert!(output.status.success(), "a loud word, not a refusal");
    let error = String::from_utf8(output.stderr).expect("text");
    assert!(error.starts_with("warning: delta = 0.2 exceeds 1/m") && error.contains("exceeds 1/n"), "{error}");
    assert!(read(place.path(), "run/report.html").contains("Warning: delta = 0.2 exceeds 1/m"));
    let summary: Value = serde_json::from_str(&read(place.path(), "run/summary.json")).expect("JSON");
    assert_eq!(summary["accounting"]["warnings"].as_array().map(Vec::len), Some(3));
}

/// CHECK 02.i: what is reported is what the ledger comes to.
#[test]
fn a_ledger_comes_to_what_the_summary_reports_by_each_accountant() {
    let place = place(SMALL);
    let many = ("updates", "updates = 7\nschedule = \"corrected\"");
    variant(place.path(), "gaussian", &[many]);
    variant(place.path(), "laplace", &[many, ("mechanism", "mechanism = \"laplace\""), ("epsilon", "epsilon = 3.0")]);
    for task in ["private", "gaussian", "laplace"] {
        let summary = json(place.path(), &format!("train task/{task}.toml --out {task} --no-sweep"));
        let delta = summary["delta"].as_f64().expect("a number");
        for accountant in ["tight", "theorem-1", "sum"] {
            let words =
                format!("privacy epsilon --ledger {task}/ledger.jsonl --delta {delta} --accountant {accountant}");
            let answer = json(place.path(), &words);
            assert_eq!(answer["epsilon"], summary["accounting"]["epsilon"][accountant], "{task} by {accountant}");
            assert_eq!(answer["agents"].as_object().map(serde_json::Map::len), Some(20));
            assert_eq!(answer["agents"]["agent-003"], answer["epsilon"]);
        }
        assert_eq!(summary["epsilon"], summary["accounting"]["epsilon"]["tight"]);
        assert!(summary["epsilon"].as_f64() <= summary["accounting"]["budget"].as_f64());
    }
    let text = done(place.path(), "privacy epsilon --ledger gaussian/ledger.jsonl --delta 1e-3");
    assert!(text.contains("20 agents made 140 releases") && text.contains("rdp"), "{text}");
}

#[test]
fn a_ledger_of_exact_values_comes_to_infinity_and_a_bad_one_is_refused() {
    let place = place(SMALL);
    done(place.path(), "train task/task.toml --out run");
    let answer = json(place.path(), "privacy epsilon --ledger run/ledger.jsonl --delta 1e-3");
    assert_eq!((&answer["epsilon"], &answer["agents"]["agent-000"]), (&"infinity".into(), &"infinity".into()));
    assert!(
        refused(place.path(), "privacy epsilon --ledger run/models.csv --delta 1e-3").contains("models.csv, line 1")
    );
    assert!(refused(place.path(), "privacy epsilon --ledger absent --delta 1e-3").contains("absent"));
    assert!(refused(place.path(), "privacy epsilon --ledger run/ledger.jsonl --delta 2").contains("--delta"));
}

/// Whether a value is what a schema asks for, in the few words that ours uses.
fn fits(value: &Value, schema: &Value) -> bool {
    let is = |kind: &str| match kind {
        "object" => value.is_object(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        other => panic!("unknown type {other}"),
    };
    schema.as_object().expect("a schema is an object").iter().all(|(word, asked)| match word.as_str() {
        "$schema" | "$id" | "title" | "description" => true,
        "oneOf" => asked.as_array().expect("a list").iter().filter(|schema| fits(value, schema)).count() == 1,
        "type" => is(asked.as_str().expect("a word")),
        "const" => value == asked,
        "enum" => asked.as_array().expect("a list").contains(value),
        "minimum" => value.as_f64() >= asked.as_f64(),
        "exclusiveMinimum" => value.as_f64() > asked.as_f64(),
        "required" => {
            asked.as_array().expect("a list").iter().all(|key| value.get(key.as_str().expect("a key")).is_some())
        }
        "additionalProperties" => {
            value.as_object().is_some_and(|fields| fields.keys().all(|key| schema["properties"].get(key).is_some()))
        }
        "properties" => {
            let known = asked.as_object().expect("an object").iter();
            known.into_iter().all(|(key, schema)| value.get(key).is_none_or(|field| fits(field, schema)))
        }
        other => panic!("unknown word {other}"),
    })
}

#[test]
fn every_line_of_a_ledger_fits_its_published_schema() {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ledger.schema.json");
    let schema: Value =
        serde_json::from_str(&fs::read_to_string(schema).expect("docs/ledger.schema.json")).expect("JSON");
    let place = place(SMALL);
    let folder = place.path();
    variant(folder, "laplace", &[("mechanism", "mechanism = \"laplace\"")]);
    variant(
        folder,
        "warm",
        &[("loss", "loss = \"logistic\"\nstart = \"warm\""), ("updates", "updates = 2\nwarm = { epsilon = 0.5 }")],
    );
    variant(folder, "copies", &[("algorithm", "algorithm = \"input-perturbation\"")]);
    let mut mechanisms = std::collections::BTreeSet::new();
    for task in ["task", "private", "laplace", "warm", "copies"] {
        done(folder, &format!("train task/{task}.toml --out run-{task} --no-sweep"));
        for line in read(folder, &format!("run-{task}/ledger.jsonl")).lines() {
            let line: Value = serde_json::from_str(line).expect("JSON");
            assert!(fits(&line, &schema), "{line}");
            mechanisms.insert(line["mechanism"].as_str().expect("text").to_owned());
            let mut other = line.clone();
            other["count"] = 0.into();
            assert!(!fits(&other, &schema), "{other}");
            other["count"] = 1.into();
            other["why"] = "no".into();
            assert!(!fits(&other, &schema), "{other}");
        }
    }
    let all = ["gamma-norm", "gaussian", "laplace", "randomized-response", "reveal"];
    assert_eq!(mechanisms.into_iter().collect::<Vec<_>>(), all);
}

#[test]
fn the_plan_of_a_task_names_its_noise_its_cost_and_its_prospects() {
    let place = place("--agents 60 --dimension 20");
    let text = done(place.path(), "privacy plan task/private.toml --plot plan.svg");
    for words in
        ["training points", "noise on each coordinate", "theorem-1", "clearness", "Suggested: ", "rule of thumb"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(read(place.path(), "plan.svg").starts_with("<svg "));
    done(place.path(), "privacy plan task/private.toml --plot plan.png --quiet");
    let plan = json(place.path(), "privacy plan task/private.toml");
    assert_eq!(plan["releases"][0]["count"], 1);
    assert!(plan["planned"]["tight"].as_f64() <= Some(1.05));
    let groups = plan["groups"].as_array().expect("groups");
    assert!(groups.iter().map(|group| group["agents"].as_u64().expect("a count")).sum::<u64>() == 60);
    assert!(groups.iter().all(|group| group["noise_min"].as_f64() <= group["noise_max"].as_f64()));
    variant(place.path(), "poor", &[("epsilon", "epsilon = 0.02")]);
    let text = done(place.path(), "privacy plan task/poor.toml");
    assert!(text.contains("Not worth collaborating at this budget"), "{text}");
    variant(place.path(), "laplace", &[("mechanism", "mechanism = \"laplace\""), ("epsilon", "epsilon = 50.0")]);
    assert!(done(place.path(), "privacy plan task/laplace.toml").contains("No verdict"));
    assert!(refused(place.path(), "privacy plan task/task.toml").contains("[privacy]"));
    assert!(refused(place.path(), "privacy plan task/private.toml --plot plan.pdf").contains(".svg or .png"));
    assert!(refused(place.path(), "privacy plan task/private.toml --plot plan.svg").contains("exists already"));
}

#[test]
fn a_plan_does_not_look_at_anyones_data() {
    let place = place(SMALL);
    let before = done(place.path(), "privacy plan task/private.toml");
    // Everyone's labels and features change, and nobody's number of points.
    let other = |line: &str| {
        let mut fields = line.split(',');
        let (agent, label) = (fields.next().expect("an agent"), fields.next().expect("a label"));
        let label = if label == "1" { "-1" } else { "1" };
        let features: Vec<&str> = fields.collect();
        let turned: Vec<&str> = features.iter().rev().copied().collect();
        format!("{agent},{label},{}\n", turned.join(","))
    };
    let data = read(place.path(), "task/train.csv");
    let (header, rows) = data.split_once('\n').expect("a header");
    let changed: String = rows.lines().map(other).collect();
    fs::write(place.path().join("task/train.csv"), format!("{header}\n{changed}")).expect("written");
    assert_eq!(done(place.path(), "privacy plan task/private.toml"), before);
}

/// On a seed that the rule was not made with.
#[test]
fn the_rule_of_thumb_tells_a_hopeless_budget_from_a_good_one() {
    let place = place("--agents 100 --dimension 20 --seed 7");
    for (name, epsilon, worth_it) in [("poor", "epsilon = 0.1", false), ("rich", "epsilon = 3.0", true)] {
        variant(place.path(), name, &[("epsilon", epsilon)]);
        let plan = json(place.path(), &format!("privacy plan task/{name}.toml"));
        assert_eq!(plan["worth_it"], worth_it, "{plan}");
        let scores = &json(place.path(), &format!("train task/{name}.toml --out {name} --no-sweep"))["accuracy"];
        let [home, local] = ["home_mean", "local_mean"].map(|key| scores[key].as_f64().expect("a score"));
        assert_eq!(home > local + 0.01, worth_it, "{scores}");
    }
}

#[test]
fn a_private_task_is_generated_only_when_it_is_asked_for() {
    let place = place(SMALL);
    assert!(read(place.path(), "task/private.toml").contains("[privacy]"));
    done(place.path(), "data generate linear --agents 5 --dimension 3 --out plain");
    assert!(!place.path().join("plain/private.toml").exists());
    done(place.path(), "data generate linear --agents 5 --dimension 3 --out task --force");
    assert!(!place.path().join("task/private.toml").exists(), "an earlier one is replaced as a whole");
}
