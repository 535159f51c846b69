//! Statistics of pairs from one randomized answer of each row, as their owners run them: in the simulator, and between real processes.

mod support;

use std::path::Path;
use support::{done, json, read, refused, write};

/// Many agents with one row each: a score and its class, and two ratings of four values that go together.
fn rows(agents: usize) -> String {
    let mut state = 1u64;
    let mut unit = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let rating = |x: f64| (4.0 * x).floor() / 4.0 + 0.125;
    let mut text = String::from("agent,label,x,p,q\n");
    for agent in 0..agents {
        let (x, y) = (unit(), unit());
        let class = u8::from(unit() < 0.2 + 0.6 * x);
        text += &format!("a{agent:05},{class},{x},{},{}\n", rating(x), rating((x + y) / 2.0));
    }
    text
}

fn task(algorithm: &str, statistic: &str, more: &str) -> String {
    format!(
        "algorithm = \"{algorithm}\"\n[data]\ntrain = \"rows.csv\"\n[statistic]\n{statistic}range = [0, 1]\n[privacy]\nepsilon = 2\n{more}"
    )
}

fn measured(place: &Path, task: &str) -> serde_json::Value {
    write(place, "task.toml", task);
    json(place, "measure task.toml --out run --force")
}

const GINI: &str = "kind = \"gini\"\ncolumns = [\"x\"]\n";
const AUC: &str = "kind = \"auc\"\ncolumns = [\"x\"]\n";

#[test]
fn one_answer_of_each_row_gives_the_statistic_and_costs_what_the_task_says() {
    let place = support::folder();
    let place = place.path();
    write(place, "rows.csv", &rows(20_000));
    for (algorithm, statistic, off) in [
        ("randomized-response", GINI, 0.03),
        ("randomized-response", "kind = \"kendall\"\ncolumns = [\"p\", \"q\"]\nbins = 4\n", 0.1),
        ("randomized-response", "kind = \"auc\"\ncolumns = [\"x\"]\nbins = 8\n", 0.05),
        ("hierarchical-auc", "kind = \"auc\"\ncolumns = [\"x\"]\nbins = 256\n", 0.05),
        ("hierarchical-auc", "kind = \"auc\"\ncolumns = [\"x\"]\nbins = 16\nconsistent = false\n", 0.12),
    ] {
        let summary = measured(place, &task(algorithm, statistic, ""));
        let number = |key: &str| summary[key].as_f64().unwrap_or_else(|| panic!("{key}: {summary}"));
        assert!(number("error") < off, "{algorithm}, {statistic}: {summary}");
        assert!(number("epsilon") <= 2.0 && number("epsilon") > 1.999 && summary["delta"] == 0.0, "{summary}");
        assert_eq!((&summary["unit"], &summary["observer"]), (&"record".into(), &"everyone".into()));
        assert_eq!((&summary["informed"], &summary["letters_sent"]), (&1.into(), &19_999.into()), "{summary}");
        // Two bytes for each row.
        assert_eq!(summary["bytes_sent"], 2 * 19_999, "{summary}");
        let estimates = read(place, "run/estimates.csv");
        assert!(estimates.lines().count() == 2 && estimates.contains("\na00000,"), "{estimates}");
    }
    let gini = measured(place, &task("randomized-response", GINI, "[roles]\naggregator = \"a00007\"\n"));
    assert!(gini["error_predicted"].as_f64().is_some_and(|deviation| deviation < 0.1), "{gini}");
    assert!(read(place, "run/estimates.csv").contains("\na00007,"));
    let ledger = read(place, "run/ledger.jsonl");
    assert_eq!(ledger.lines().count(), 20_000);
    assert!(ledger.lines().all(|line| line.contains("\"randomized-response\"") && line.contains("\"count\":1")));
    assert_eq!(json(place, "measure run/task.toml --out again")["digest"], gini["digest"]);
    assert_ne!(json(place, "measure task.toml --out other --seed 2")["estimate"], gini["estimate"]);
    let said = done(place, "measure task.toml --out said --dry-run");
    assert!(said.contains("an answer for each of its rows, once, by randomized response with epsilon = 2"), "{said}");
    assert!(
        said.contains("(2, 0)-differentially private, for one record replaced by another, against everyone"),
        "{said}"
    );
}

#[test]
#[rustfmt::skip]
fn what_answers_cannot_be_is_refused_in_one_line() {
    let place = support::folder();
    let place = place.path();
    write(place, "rows.csv", &rows(50));
    let response = |statistic: &str, more: &str| task("randomized-response", statistic, more);
    for (text, says) in [
        (response(GINI, "").replace("range = [0, 1]\n", ""), "statistic.range is missing"),
        (response(GINI, "").replace("[privacy]\nepsilon = 2\n", ""), "randomized-response is about privacy; accepted: with a section [privacy]"),
        (response(&format!("{GINI}bins = 1\n"), ""), "statistic.bins is 1; accepted: a whole number from 2"),
        (response("kind = \"kendall\"\ncolumns = [\"p\", \"q\"]\nbins = 100\n", ""), "bins is 100 in each of 2 columns; at most 4096 together"),
        (task("hierarchical-auc", &format!("{AUC}bins = 24\n"), ""), "bins is 24; a power of two from 2 to 1048576"),
        (task("hierarchical-auc", GINI, ""), "hierarchical-auc does not measure \"gini\""),
        (response("kind = \"kendall\"\ncolumns = [\"x\"]\n", ""), "kendall is of 2 columns, and there is 1"),
        (response(GINI, "").replace("epsilon = 2", "epsilon = 1e-15"), "would be accepted"),
        (response(GINI, "mechanism = \"laplace\"\n"), "accepted with randomized-response: no privacy.mechanism"),
        (response(GINI, "unit = \"agent\"\n"), "accepted with randomized-response: no privacy.unit"),
        (response(GINI, "[roles]\naggregator = \"nobody\"\n"), "roles.aggregator is \"nobody\"; accepted: the name of an agent"),
        (response(GINI, "[run]\nrounds = 2\n"), "accepted: no run.rounds"),
        (response(GINI, "[graph]\nkind = \"ring\"\n"), "accepted: no [graph]"),
        (task("gosta", GINI, "[graph]\nkind = \"complete\"\n").replace("[privacy]\nepsilon = 2\n", "").replace("range", "bins = 4\nrange"), "statistic.bins is for a histogram, and for rows that are told in bins, with [privacy]"),
    ] {
        write(place, "task.toml", &text);
        let line = refused(place, "measure task.toml --out run");
        assert!(line.contains(says), "expected {says}\nfound    {line}");
    }
    for (data, says) in [
        ("agent,label,x\na,1,0.5\nb,1,0.25\n", "labels is 2 positive and 0 negative"),
        ("agent,label,x\na,1,0.5\nb,7,0.25\n", "line 3: label is 7"),
        ("agent,x\na,0.5\nb,0.25\n", "no column \"label\""),
        ("agent,label,x\na,1,0.5\na,0,0.25\n", "one agent has nobody to answer to; accepted: two agents or more"),
    ] {
        write(place, "rows.csv", data);
        write(place, "task.toml", &response(AUC, ""));
        let line = refused(place, "measure task.toml --out run");
        assert!(line.contains(says), "expected {says}\nfound    {line}");
    }
    // Whatever a value is, it is answered for.
    write(place, "rows.csv", "agent,label,x\na,1,many\nb,0,NaN\nc,1,1e300\n");
    measured(place, &response(AUC, ""));
}

/// The same answers as for an aggregator, but everyone comes to know what they say.
#[test]
fn gossip_about_answers_is_as_private_and_nobody_is_the_aggregator() {
    let place = support::folder();
    let place = place.path();
    write(place, "rows.csv", &rows(400));
    let graph = "[graph]\nkind = \"watts-strogatz\"\nneighbours = 10\n[run]\nwakes-per-agent = 3000\n";
    let statistic = format!("{GINI}bins = 4\n");
    for algorithm in ["gosta", "gosta-sync", "u2-gossip"] {
        let summary = measured(place, &task(algorithm, &statistic, graph).replace("epsilon = 2", "epsilon = 4"));
        let number = |key: &str| summary[key].as_f64().unwrap_or_else(|| panic!("{key}: {summary}"));
        assert!(number("error") < 3.0 * number("error_predicted") && number("error") < 0.1, "{algorithm}: {summary}");
        assert!(number("epsilon") <= 4.0 && number("epsilon") > 3.999 && summary["informed"] == 400, "{summary}");
        assert_eq!((&summary["observer"], summary.get("error_bound")), (&"everyone".into(), None));
        let ledger = read(place, "run/ledger.jsonl");
        assert_eq!(ledger.lines().count(), 400);
        assert!(ledger.lines().all(|line| line.contains("\"randomized-response\"") && line.contains("\"count\":1")));
    }
}

/// Five real processes: with much epsilon their answers are nearly the truth.
#[test]
fn real_processes_answer_the_aggregator() {
    let place = support::folder();
    let place = place.path();
    let data = "agent,label,x\nann,1,0.9\nbob,0,0.3\ncid,1,0.6\ndan,0,0.7\neve,0,0.1\neve,1,0.2\n";
    write(place, "rows.csv", data);
    let text = task(
        "randomized-response",
        "kind = \"auc\"\ncolumns = [\"x\"]\nbins = 10\n",
        "[roles]\naggregator = \"cid\"\n",
    );
    write(place, "task.toml", &text.replace("epsilon = 2", "epsilon = 40"));
    let summary = json(place, "network task.toml --out run --interval 0.05 --time-limit 80");
    // Of nine pairs of the two classes the positive one is higher in six.
    assert!((summary["estimate"].as_f64().expect("a number") - 6.0 / 9.0).abs() < 1e-9, "{summary}");
    let estimates = read(place, "run/estimates.csv");
    assert!(estimates.lines().count() == 2 && estimates.contains("\ncid,"), "{estimates}");
    assert_eq!((&summary["observer"], &summary["quiet"]), (&"everyone".into(), &true.into()), "{summary}");
}
