//! `sottovoce measure`: a statistic of everybody's rows, in the simulator and between real processes.

mod support;

use std::path::Path;
use support::{done, json, read, refused, write};

const TASK: &str = "name = \"rooms\"\nalgorithm = \"gossip\"\n[data]\ntrain = \"ratings.csv\"\n[statistic]\nkind = \"mean\"\n\
                    columns = [\"room\", \"price\"]\n[graph]\nkind = \"ring\"\n[run]\ntolerance = 1e-10\n";

/// Five agents; the columns in another order than in the task, and one of text. Means 3.5 and 20, sums 24.5 and 140.
const RATINGS: &str = "agent,price,city,room\nann,10,Rome,4\nann,20,Oslo,3\nbob,30,Rome,5\ncid,5,Bern,2\ndan,40,Bern,4.5\neve,15,Rome,1\neve,20,Riga,5\n";

fn place() -> tempfile::TempDir {
    let place = support::folder();
    write(place.path(), "ratings.csv", RATINGS);
    write(place.path(), "task.toml", TASK);
    place
}

fn sum_task() -> String {
    TASK.replace("\"mean\"", "\"sum\"").replace("columns = [\"room\", \"price\"]", "columns = [\"price\"]")
}

/// The keys that other programs read, in this order.
const KEYS: &[&str] = &[
    "name",
    "algorithm",
    "statistic",
    "columns",
    "estimate",
    "estimates_std",
    "estimates_spread",
    "informed",
    "exact",
    "error",
    "error_max",
    "letters_sent",
    "agents",
    "wakes",
    "bytes_sent",
    "messages_lost",
    "messages_rejected",
    "quiet",
    "seconds",
    "epsilon",
    "delta",
    "unit",
    "observer",
    "seed",
    "digest",
    "version",
];

/// The keys of an object, as they stand in its text.
fn keys(text: &str) -> Vec<&str> {
    let key = |line: &'_ str| line.strip_prefix("  \"").and_then(|rest| rest.split_once('"')).map(|(key, _)| key.len());
    text.lines().filter_map(|line| key(line).map(|len| &line[3..3 + len])).collect()
}

#[test]
fn a_measurement_leaves_what_other_programs_read() {
    let place = place();
    let place = place.path();
    let summary = json(place, "measure task.toml --out run");
    for (k, exact) in [3.5, 20.0].into_iter().enumerate() {
        assert!((summary["estimate"][k].as_f64().expect("a number") - exact).abs() < 1e-9, "{summary}");
        assert_eq!(summary["exact"][k].as_f64(), Some(exact), "{summary}");
    }
    assert!(summary["error"].as_f64().is_some_and(|error| error < 1e-9), "{summary}");
    assert_eq!((&summary["epsilon"], &summary["delta"]), (&"infinity".into(), &0.0.into()));
    assert_eq!((&summary["unit"], &summary["observer"]), (&"record".into(), &"everyone".into()));
    assert_eq!(summary["quiet"], true);
    let text = read(place, "run/summary.json");
    assert_eq!(keys(&text), KEYS);
    let estimates = read(place, "run/estimates.csv");
    let lines: Vec<&str> = estimates.lines().collect();
    assert_eq!((lines[0], lines.len()), ("agent,estimate_0,estimate_1", 6));
    assert!(lines[1].starts_with("ann,3.5") || lines[1].starts_with("ann,3.49"), "{estimates}");
    let metrics = read(place, "run/metrics.csv");
    assert!(metrics.starts_with("wakes,letters_sent,bytes_sent,error_mean,error_std\n0,0,0,"), "{metrics}");
    let last: Vec<f64> =
        metrics.lines().last().expect("a row").split(',').map(|x| x.parse().expect("a number")).collect();
    // An exchange is an invitation of 9 bytes, and two letters of 9 bytes and three numbers.
    assert_eq!((last[1], last[2]), (3.0 * last[0], (9.0 + 2.0 * 33.0) * last[0]));
    assert!(last[3] < 1e-9 && summary["letters_sent"].as_f64() == Some(last[1]), "{metrics}");
    let ledger = read(place, "run/ledger.jsonl");
    assert!(ledger.lines().count() == 5 && ledger.lines().all(|line| line.contains("\"reveal\"")), "{ledger}");
    let epsilon = done(place, "privacy epsilon --ledger run/ledger.jsonl --delta 1e-6");
    assert!(epsilon.contains("infinity"), "{epsilon}");
    for picture in ["error-by-exchanges", "error-by-bytes", "estimates"] {
        assert!(place.join(format!("run/plots/{picture}.svg")).is_file(), "{picture}");
    }
    let report = read(place, "run/report.html");
    assert!(report.contains("The mean of room is 3.5") && report.contains("against everyone"), "{report}");

    // One column: one number; and the same task again is the same run, whatever the threads.
    write(place, "sum.toml", &sum_task());
    let sum = json(place, "measure sum.toml --out sum --threads 1");
    assert!((sum["estimate"].as_f64().expect("a number") - 140.0).abs() < 1e-7, "{sum}");
    assert_eq!(read(place, "sum/estimates.csv").lines().next(), Some("agent,estimate"));
    assert!(refused(place, "measure sum.toml --out sum").contains("--force"));
    let again = json(place, "measure sum/task.toml --out sum --force --threads 2");
    assert_eq!(again["digest"], sum["digest"], "the task as resolved is the same task");
    assert_ne!(json(place, "measure sum.toml --out other --seed 2")["digest"], sum["digest"]);
}

#[test]
fn values_outside_the_range_are_moved_to_the_bound_and_nothing_is_written_by_a_dry_run() {
    let place = place();
    let place = place.path();
    write(place, "task.toml", &sum_task().replace("[graph]", "range = [10, 30]\n[graph]"));
    let sizes = json(place, "measure task.toml --out run --dry-run");
    assert_eq!((&sizes["rows"], &sizes["agents"]), (&7.into(), &5.into()));
    assert_eq!(sizes["columns"][0], "price");
    assert!(!place.join("run").exists());
    let said = done(place, "measure task.toml --out run --dry-run");
    assert!(said.contains("5 agents, sum of price, 7 rows, 5 edges; gossip") && said.contains("infinity"), "{said}");
    // 10, 20, 30, 10 for 5, 30 for 40, 15, 20.
    assert_eq!(json(place, "measure task.toml --out run")["exact"], 135.0);
}

/// The mean of agents that exchange masses is right from the first moment, where each of them may be wrong.
#[test]
fn estimates_that_have_not_met_are_never_called_exact() {
    let place = support::folder();
    let place = place.path();
    let rows: String = (0..40).map(|k| format!("a{k:02},{}\n", if k < 20 { 0 } else { 100 })).collect();
    write(place, "ratings.csv", &format!("agent,room\n{rows}"));
    let task = "algorithm = \"gossip\"\n[data]\ntrain = \"ratings.csv\"\n[statistic]\nkind = \"mean\"\n[graph]\nkind = \"ring\"\n\
                [run]\nwakes-per-agent = 3\n";
    write(place, "task.toml", task);
    let summary = json(place, "measure task.toml --out run");
    assert!(summary["error"].as_f64().is_some_and(|error| error < 1e-9), "of their mean: {summary}");
    for key in ["error_max", "estimates_spread"] {
        assert!(summary[key].as_f64().is_some_and(|far| far > 40.0), "{key}: {summary}");
    }
    assert_eq!((&summary["columns"][0], &summary["informed"]), (&"room".into(), &40.into()));
    let said = done(place, "measure task.toml --out run --force");
    assert!(said.contains("40 agents agree to within") && said.contains("the farthest agent is off by"), "{said}");
    let report = read(place, "run/report.html");
    assert!(report.contains("and the farthest is") && !report.contains("it is the exact value"), "{report}");
    // Two parts that never meet.
    let edges: String = [(0, 20), (20, 40)]
        .into_iter()
        .flat_map(|(from, to)| (from..to - 1).map(|k: u32| format!("a{k:02},a{:02},1\n", k + 1)))
        .collect();
    write(place, "edges.csv", &format!("a,b,weight\n{edges}"));
    let parts = task.replace("kind = \"ring\"", "edges = \"edges.csv\"");
    write(place, "parts.toml", &parts);
    let said = done(place, "measure parts.toml --out parts");
    assert!(said.contains("warning: the graph is not connected"), "{said}");
    write(place, "sum.toml", &parts.replace("\"mean\"", "\"sum\""));
    assert!(
        refused(place, "measure sum.toml --out sum").contains("graph is not connected, so nobody can know the sum")
    );
}

#[test]
fn bad_input_is_one_line() {
    let place = place();
    let place = place.path();
    let said = |task: &str, ratings: &str, says: &str| {
        write(place, "bad.toml", task);
        write(place, "ratings.csv", ratings);
        let line = refused(place, "measure bad.toml --out run");
        assert!(line.contains(says), "expected {says}\nfound    {line}");
        assert!(!place.join("run").exists());
    };
    let swap = |from: &str, to: &str| {
        assert!(TASK.contains(from), "{from}");
        TASK.replace(from, to)
    };
    for (ratings, says) in [
        ("", "ratings.csv: the file is empty; accepted: a header and at least one row"),
        ("agent,room,price\n", "ratings.csv: no rows; accepted: at least one row after the header"),
        (
            "who,room,price\nann,1,1\n",
            "line 1: column 1 is \"who\", not \"agent\"; accepted: the header agent,<column>",
        ),
        ("agent,room\nann,1\n", "line 1: no column \"price\"; accepted in statistic.columns: room"),
        ("agent,room,price,room\nann,1,1,1\n", "line 1: two columns \"room\"; accepted: each name once"),
        ("agent,room,price\nann,1,2\nbob,many,2\n", "line 3: column \"room\" is \"many\"; accepted: a finite number"),
        ("agent,room,price\nann,1,NaN\n", "line 2: column \"price\" is \"NaN\"; accepted: a finite number"),
        (
            "agent,room,price\nann,1,1e61\n",
            "line 2: column \"price\" is \"1e61\"; accepted: a finite number, at most 1e60",
        ),
        ("agent,room,price\nann,1,2\nbob,1\n", "line 3: 2 fields; accepted: 3, as in the header"),
    ] {
        said(TASK, ratings, says);
    }
    for (from, to, says) in [
        (
            "\"mean\"",
            "\"kendall\"",
            "gossip does not measure \"kendall\"; accepted: algorithm = \"gosta\", \"gosta-sync\", \"u2-gossip\", \"randomized-response\" or \"two-party\", or kind = \"mean\" or \"sum\"",
        ),
        ("\"mean\"", "\"meen\"", "statistic.kind is \"meen\"; accepted: \"mean\", \"sum\""),
        ("kind = \"mean\"\n", "", "statistic.kind is missing; accepted: \"mean\", \"sum\""),
        (
            "[statistic]\nkind = \"mean\"\ncolumns = [\"room\", \"price\"]\n",
            "",
            "gossip measures a statistic; accepted: with a section [statistic]",
        ),
        ("\"gossip\"", "\"admm\"", "admm learns models; accepted with [statistic]: algorithm = \"gossip\""),
        ("[\"room\", \"price\"]", "[\"room\", \"room\"]", "statistic.columns; accepted: names of columns, each once"),
        ("[\"room\", \"price\"]", "[]", "statistic.columns; accepted: names of columns"),
        (
            "[graph]",
            "[model]\ntrade-off = 1\n[graph]",
            "model is for tasks that learn models; accepted with [statistic]: no model",
        ),
        ("train = ", "test = \"t.csv\"\ntrain = ", "data.test is for tasks that learn models"),
        ("\"ring\"", "\"knn\"", "graph.kind = \"knn\" joins agents by their labels"),
        ("\"ring\"", "\"learned\"", "gossip needs a graph that is known"),
        (
            "[run]",
            "[privacy]\nepsilon = 1\ndelta = 1e-6\n[run]",
            "gossip sends exact sums, so it cannot be private; accepted with [privacy]: \"ring\"",
        ),
        ("[graph]", "range = [5, 1]\n[graph]", "statistic.range"),
        ("[graph]", "agents = 6\n[graph]", "statistic.agents is 6, and 5 agents have rows; accepted: 5"),
    ] {
        said(&swap(from, to), RATINGS, says);
    }
    let all = swap("columns = [\"room\", \"price\"]\n", "");
    said(&all, "agent,room,\nann,1,1\n", "line 1: column 3 has no name; accepted: the header agent,<column>");
    said(&all, "agent,room,room\nann,1,1\n", "line 1: two columns \"room\"; accepted: each name once");
    write(place, "edges.csv", "a,b,weight\nann,bob,1\nbob,cid,1\ncid,dan,1\ndan,eve,1\neve,fay,1\n");
    said(
        &swap("kind = \"ring\"", "edges = \"edges.csv\""),
        RATINGS,
        "ratings.csv: agent \"fay\" has no row; accepted: at least one row",
    );
    said(
        "algorithm = \"local\"\n[data]\ntrain = \"ratings.csv\"\n[graph]\nkind = \"ring\"\n",
        RATINGS,
        "local learns models, by `sottovoce train`; accepted by `sottovoce measure`: algorithm = \"gossip\"",
    );
    let line = refused(place, "train task.toml --out run");
    assert!(
        line.contains("gossip measures a statistic, by `sottovoce measure`; accepted by `sottovoce train`"),
        "{line}"
    );
    assert!(refused(place, "network task.toml --out run --reveal").contains("--reveal is for models"));
}

fn estimates(place: &Path, file: &str) -> Vec<(String, Vec<f64>)> {
    let row = |line: &str| {
        let (name, values) = line.split_once(',').expect("a name and an estimate");
        (name.to_owned(), values.split(',').map(|value| value.parse().expect("a number")).collect())
    };
    read(place, file).lines().skip(1).map(row).collect()
}

#[test]
fn five_real_processes_agree_on_the_exact_mean_and_on_the_sum() {
    let place = place();
    let place = place.path();
    write(place, "network.toml", &TASK.replace("tolerance = 1e-10", "tolerance = 1e-8"));
    let summary = json(place, "network network.toml --out run --interval 0.02 --time-limit 90");
    assert_eq!(summary["quiet"], true, "{summary}");
    assert!(summary["exact"].is_null() && summary["error"].is_null(), "nobody knows it: {summary}");
    assert_eq!((&summary["epsilon"], &summary["observer"]), (&"infinity".into(), &"everyone".into()));
    let found = estimates(place, "run/estimates.csv");
    assert_eq!(found.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["ann", "bob", "cid", "dan", "eve"]);
    for (name, estimate) in &found {
        let near = (estimate[0] - 3.5).abs() < 1e-6 && (estimate[1] - 20.0).abs() < 1e-6;
        assert!(near, "{name}: {estimate:?}");
    }
    assert!(!place.join("run/models.csv").exists());
    let report = read(place, "run/report.html");
    assert!(report.contains("The mean of room is 3.5") && !report.contains("exact value"), "{report}");
    assert!(!read(place, "run/peers/ann/data.csv").contains("label"));
    let status = json(place, "peer status run/peers/ann");
    assert!((status["estimate"][0].as_f64().expect("a number") - 3.5).abs() < 1e-6, "{status}");
    assert!(done(place, "peer status run/peers/ann").contains("mean of room 3.5"));
    assert!(refused(place, "peer predict run/peers/ann ratings.csv").contains("no model"));

    // A sum needs to know how many they are; the network tells its peers.
    write(place, "sum.toml", &sum_task().replace("tolerance = 1e-10", "wakes-per-agent = 150"));
    let summary = json(place, "network sum.toml --out sum --interval 0.02 --time-limit 90");
    assert!(read(place, "sum/peers/task.toml").contains("agents = 5"));
    assert!((summary["estimate"].as_f64().expect("a number") - 140.0).abs() < 1e-4, "{summary}");
    assert_eq!(summary["wakes"], 5 * 150);
    let task = read(place, "sum/peers/task.toml").replace("agents = 5\n", "");
    write(place, "sum/peers/task.toml", &task);
    assert!(refused(place, "peer status sum/peers/ann").contains("statistic.agents is missing"));
}
