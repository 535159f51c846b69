//! Statistics of pairs that compute under encryption, as their owners run them.

mod support;

use std::path::Path;
use support::{json, read, refused, write};

/// One row for each agent: two columns that agree, and a class.
fn csv(agents: usize) -> String {
    let line = |k: usize| {
        let (x, y) = (k * 7 % 23, k * 7 % 23 + k * k % 5);
        format!("a{k:03},{},{x},{y}\n", k % 2)
    };
    "agent,label,x,y\n".to_owned() + &(0..agents).map(line).collect::<String>()
}

fn task(statistic: &str, rest: &str) -> String {
    format!(
        "name = \"met\"\nalgorithm = \"two-party\"\n[data]\ntrain = \"rows.csv\"\n[statistic]\n{statistic}range = [0.0, 30.0]\n{rest}"
    )
}

const KENDALL: &str = "kind = \"kendall\"\ncolumns = [\"x\", \"y\"]\nbits = 6\n";
const STATISTICS: [&str; 4] = [
    KENDALL,
    "kind = \"auc\"\ncolumns = [\"x\"]\nbits = 6\n",
    "kind = \"gini\"\ncolumns = [\"x\"]\nbits = 6\n",
    "kind = \"variance\"\ncolumns = [\"x\"]\nbits = 6\n",
];

fn measure(place: &Path, text: &str) -> serde_json::Value {
    write(place, "task.toml", text);
    json(place, "measure task.toml --out out --force");
    serde_json::from_str(&read(place, "out/summary.json")).expect("JSON")
}

#[test]
fn the_aggregator_alone_has_an_estimate_and_every_ledger_the_plans_epsilon() {
    let place = tempfile::tempdir().expect("a folder");
    let place = place.path();
    // Real circuits, and beyond them the ideal functionality.
    for (agents, statistics) in [(12, &STATISTICS[..]), (300, &STATISTICS[..])] {
        write(place, "rows.csv", &csv(agents));
        for statistic in statistics {
            let text = task(statistic, "[privacy]\nepsilon = 4.0\npairs = 2\n[roles]\naggregator = \"a003\"\n");
            let summary = measure(place, &text);
            let number = |key: &str| summary[key].as_f64().unwrap_or_else(|| panic!("{key} in {summary}"));
            assert_eq!(summary["observer"], "the aggregator");
            assert!(number("epsilon") <= 4.0 && number("epsilon") > 3.9, "{summary}");
            assert_eq!(number("delta"), 0.0);
            assert!(number("error") < 5.0 * number("error_predicted"), "{agents}: {statistic}: {summary}");
            let estimates = read(place, "out/estimates.csv");
            assert!(estimates.lines().count() == 2 && estimates.contains("\na003,"), "{estimates}");
            let ledger = read(place, "out/ledger.jsonl");
            let header = "{\"ledger\":1,\"unit\":\"record\",\"observer\":\"the aggregator\"}";
            assert_eq!(ledger.lines().next(), Some(header));
            assert!(ledger.lines().skip(1).all(|line| line.contains("\"audience\":\"aggregator\"")), "{ledger}");
            assert!(!ledger.contains("reveal"));
            assert!(read(place, "out/report.html").contains("the aggregator"));
        }
    }
}

#[test]
fn without_privacy_the_answers_are_exact_and_the_same_run_gives_the_same_bits() {
    let place = tempfile::tempdir().expect("a folder");
    let place = place.path();
    // Two agents have one pair, whose kernel is the statistic.
    write(place, "rows.csv", &csv(2));
    for statistic in [STATISTICS[0], STATISTICS[2]] {
        let summary = measure(place, &task(statistic, ""));
        let error = summary["error"].as_f64().expect("simulated");
        assert!(error < 0.25, "the grid has steps of a half: {summary}");
        assert_eq!(summary["digest"], measure(place, &task(statistic, ""))["digest"]);
    }
}

#[test]
fn a_wrong_task_is_refused_in_one_line_that_says_what_would_be_accepted() {
    let place = tempfile::tempdir().expect("a folder");
    let place = place.path();
    write(place, "rows.csv", &csv(6));
    let private = "[privacy]\nepsilon = 1.0\n";
    let no_range = task(KENDALL, private).replace("range = [0.0, 30.0]\n", "");
    for (text, accepted) in [
        (task("kind = \"mean\"\n", private), "accepted: algorithm = "),
        (task("kind = \"scatter\"\ncolumns = [\"x\"]\n", private), "accepted: algorithm = "),
        (no_range, "accepted: statistic.range = [low, high]"),
        (task(KENDALL, &format!("{private}delta = 1e-6\n")), "accepted with two-party: no delta, or 0"),
        (
            task(KENDALL, &format!("{private}mechanism = \"laplace\"\n")),
            "accepted with two-party: no privacy.mechanism",
        ),
        (task(KENDALL, &format!("{private}unit = \"agent\"\n")), "accepted with two-party: no privacy.unit"),
        (task(KENDALL, &format!("{private}colluders = 2\n")), "accepted with two-party: no privacy.colluders"),
        (task(KENDALL, &format!("{private}pairs = 33\n")), "a whole number from 1 to 32"),
        (task(KENDALL, "[privacy]\nepsilon = 1e-9\n"), "2^-20 to 20"),
        (task(&KENDALL.replace("bits = 6", "bits = 33"), private), "a whole number from 1 to 32"),
        (task(KENDALL, &format!("{private}[roles]\naggregator = \"nobody\"\n")), "accepted: the name of an agent"),
        (task(KENDALL, &format!("{private}[graph]\nkind = \"ring\"\n")), "accepted: no [graph]"),
        (task(KENDALL, &format!("{private}[run]\nrounds = 2\n")), "accepted: no run.rounds"),
        (
            task(&STATISTICS[1].replace("kind = ", "ties = \"half\"\nkind = "), private),
            "accepted with two-party: ties = \"zero\"",
        ),
    ] {
        write(place, "task.toml", &text);
        let said = refused(place, "measure task.toml --out out");
        assert!(said.contains(accepted) && said.trim_end().lines().count() == 1, "{accepted}: {said}");
    }
    write(place, "rows.csv", &(csv(6) + "a001,1,3,4\n"));
    write(place, "task.toml", &task(KENDALL, private));
    let said = refused(place, "measure task.toml --out out");
    assert!(said.contains("accepted with two-party: one row for each agent"), "{said}");
}
