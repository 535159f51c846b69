//! Statistics of pairs by gossip, as their owners run them: in the simulator, and between real processes.

mod support;

use std::path::Path;
use support::{done, json, read, refused, write};

/// Whose row it is, two columns with ties, and a class.
type Row = (String, f64, f64, bool);

/// One row for each agent, or one to three.
fn rows(agents: usize, several: bool) -> Vec<Row> {
    let mut rows = Vec::new();
    for agent in 0..agents {
        for row in 0..if several { 1 + agent % 3 } else { 1 } {
            let k = 7 * agent + 5 * row;
            let x = (k * k % 17) as f64 / 4.0;
            let y = x + (k % 11) as f64 / 3.0;
            rows.push((format!("a{agent:02}"), x, y, (k % 5) as f64 + x > 3.0));
        }
    }
    rows
}

fn csv(rows: &[Row]) -> String {
    let line = |(agent, x, y, class): &Row| format!("{agent},{},{x},note,{y}\n", i32::from(*class));
    "agent,label,x,city,y\n".to_owned() + &rows.iter().map(line).collect::<String>()
}

/// By the definitions, over all pairs of two different rows.
fn by_definition(kind: &str, rows: &[Row]) -> f64 {
    let (mut sum, mut pairs) = (0.0, 0.0);
    for (at, a) in rows.iter().enumerate() {
        for b in &rows[at + 1..] {
            let (dx, dy) = (a.1 - b.1, a.2 - b.2);
            let sign = |x: f64| if x == 0.0 { 0.0 } else { x.signum() };
            let same_cell = |limit: f64| (a.1 < limit) == (b.1 < limit);
            let (weight, h) = match kind {
                "variance" => (1.0, dx * dx / 2.0),
                "gini" => (1.0, dx.abs()),
                "kendall" => (1.0, sign(dx) * sign(dy)),
                "scatter" => (1.0, if same_cell(2.0) { dx * dx } else { 0.0 }),
                _ if a.3 == b.3 => (0.0, 0.0),
                _ if dx == 0.0 => (1.0, if kind == "half" { 0.5 } else { 0.0 }),
                _ => (1.0, f64::from(u8::from(a.3 == (dx > 0.0)))),
            };
            sum += h;
            pairs += weight;
        }
    }
    sum / pairs
}

const STATISTICS: [(&str, &str); 6] = [
    ("variance", "kind = \"variance\"\ncolumns = [\"x\"]\n"),
    ("gini", "kind = \"gini\"\ncolumns = [\"x\"]\n"),
    ("kendall", "kind = \"kendall\"\ncolumns = [\"x\", \"y\"]\n"),
    ("auc", "kind = \"auc\"\ncolumns = [\"x\"]\n"),
    ("half", "kind = \"auc\"\nties = \"half\"\ncolumns = [\"x\"]\n"),
    // Two cells that meet at 2.
    ("scatter", "kind = \"scatter\"\ncolumns = [\"x\"]\ncentres = [[3], [1]]\n"),
];

fn task(algorithm: &str, statistic: &str, graph: &str, wakes: u64) -> String {
    format!(
        "algorithm = \"{algorithm}\"\n[data]\ntrain = \"rows.csv\"\n[statistic]\n{statistic}[graph]\n{graph}\n[run]\n\
         wakes-per-agent = {wakes}\n"
    )
}

fn measured(place: &Path, task: &str) -> serde_json::Value {
    write(place, "task.toml", task);
    json(place, "measure task.toml --out run --force")
}

const COMPLETE: &str = "kind = \"complete\"";

#[test]
fn each_statistic_of_pairs_is_measured_by_each_algorithm() {
    let place = support::folder();
    let place = place.path();
    for several in [false, true] {
        let rows = rows(24, several);
        write(place, "rows.csv", &csv(&rows));
        for (kind, statistic) in STATISTICS {
            let exact = by_definition(kind, &rows);
            for (algorithm, wakes, agree) in
                [("gosta", 4_000, true), ("gosta-sync", 4_000, true), ("u2-gossip", 8_000, false)]
            {
                let summary = measured(place, &task(algorithm, statistic, COMPLETE, wakes));
                let number = |key: &str| summary[key].as_f64().unwrap_or_else(|| panic!("{key}: {summary}"));
                assert!((number("exact") - exact).abs() < 1e-12 * (1.0 + exact.abs()), "{kind}: {exact} {summary}");
                assert!(number("error") < 0.02 * exact.abs(), "{algorithm}, {kind}: {summary}");
                assert!(!agree || number("error_max") < 0.02 * exact.abs(), "{algorithm}, {kind}: {summary}");
                // An exchange is one wake of its initiator, and two letters.
                let (wakes, letters) = (24 * wakes, 2 * 24 * wakes);
                assert_eq!(summary["wakes"], wakes, "{algorithm}: {summary}");
                assert!(summary["letters_sent"].as_u64().is_some_and(|sent| sent.abs_diff(letters) < 3), "{summary}");
                assert_eq!((&summary["epsilon"], &summary["observer"]), (&"infinity".into(), &"everyone".into()));
                // The theorem is about one row for each agent, and about what is expected: of one run it says nothing.
                assert_eq!(summary["error_bound"].is_f64(), agree && !several, "{algorithm}: {summary}");
            }
        }
    }
    let estimates = read(place, "run/estimates.csv");
    assert_eq!((estimates.lines().next(), estimates.lines().count()), (Some("agent,estimate"), 25));
}

#[test]
fn the_bound_stands_beside_the_error_and_a_run_can_be_had_again() {
    let place = support::folder();
    let place = place.path();
    write(place, "rows.csv", &csv(&rows(25, false)));
    let text = task("gosta-sync", STATISTICS[2].1, "kind = \"torus\"\nrows = 5\ncolumns = 5", 400);
    let summary = measured(place, &text);
    assert_eq!(summary["columns"], serde_json::json!(["x", "y"]));
    let said = done(place, "measure task.toml --out said");
    assert!(said.contains("The kendall: ") && said.contains("the theorem bounds the error"), "{said}");
    let report = read(place, "run/report.html");
    assert!(report.contains("The kendall of x and y is") && report.contains("bound of the theorem"), "{report}");
    let resolved = read(place, "run/task.toml");
    assert!(resolved.contains("rows = 25") && !resolved.contains("positives"), "{resolved}");
    assert_eq!(json(place, "measure run/task.toml --out again")["digest"], summary["digest"]);
    // What converges without a promise is said.
    let even = task("gosta", STATISTICS[0].1, "edges = \"edges.csv\"", 50);
    let edges: String = (0..24).map(|k| format!("a{k:02},a{:02},1\n", k + 1)).collect();
    write(place, "edges.csv", &format!("a,b,weight\n{edges}"));
    write(place, "task.toml", &even);
    let said = done(place, "measure task.toml --out path");
    assert!(said.contains("warning: the graph is bipartite"), "{said}");
    assert!(json(place, "measure task.toml --out path --force")["error_bound"].is_null());
    // Values that are moved are counted.
    let cut = task("gosta", "kind = \"gini\"\ncolumns = [\"x\"]\nrange = [1, 3]\n", COMPLETE, 50);
    write(place, "task.toml", &cut);
    let beyond = rows(25, false).iter().filter(|row| !(1.0..=3.0).contains(&row.1)).count();
    let warning = format!("{beyond} of 25 values lie outside statistic.range");
    assert!(done(place, "measure task.toml --out cut --dry-run").contains(&warning));
    let output = support::sottovoce(place, "measure task.toml --out cut");
    let said = [output.stdout, output.stderr].concat();
    assert!(String::from_utf8_lossy(&said).contains(&warning), "{}", String::from_utf8_lossy(&said));
}

#[test]
#[rustfmt::skip]
fn what_has_no_pairs_or_no_way_between_them_is_refused_in_one_line() {
    let place = support::folder();
    let place = place.path();
    let plain = csv(&rows(6, false));
    let gini = STATISTICS[1].1;
    write(place, "edges.csv", "a,b,weight\na00,a01,1\na01,a02,1\na02,a00,1\na03,a04,1\na04,a05,1\na05,a03,1\n");
    let auc = STATISTICS[3].1;
    let one_class = plain.replace(",1,", ",0,");
    let kendall = STATISTICS[2].1;
    for (data, algorithm, statistic, graph, says) in [
        (&*plain, "gosta", "kind = \"kendall\"\ncolumns = [\"x\"]\n", COMPLETE, "kendall is of 2 columns, and there is 1; accepted: statistic.columns = two names"),
        (&plain, "gosta", "kind = \"gini\"\ncolumns = [\"x\", \"y\"]\n", COMPLETE, "gini is of 1 column, and there are 2; accepted: statistic.columns = one name"),
        ("agent,x,y\na,1,2\nb,2,2\nc,1,1\n", "gosta", "kind = \"variance\"\n", COMPLETE, "variance is of 1 column, and there are 2"),
        (&one_class, "gosta", auc, COMPLETE, "labels is 0 positive and 6 negative; at least one of each class would be accepted"),
        ("agent,x\na,1\nb,2\nc,3\n", "gosta", auc, COMPLETE, "no column \"label\"; accepted: a column label of -1 and 1, or of 0 and 1"),
        ("agent,label,x\na,1,1\nb,2,2\nc,1,3\n", "gosta", auc, COMPLETE, "line 3: label is 2; accepted by this loss: -1 and 1, or 0 and 1"),
        ("agent,label,x\na,1,1\nb,no,2\nc,1,3\n", "gosta", auc, COMPLETE, "line 3: label is \"no\"; accepted: -1 and 1, or 0 and 1"),
        (&plain, "gosta-sync", gini, "edges = \"edges.csv\"", "graph is 2 separate parts; a connected graph would be accepted"),
        ("agent,x\na,1\nb,2\n", "u2-gossip", gini, COMPLETE, "rows is 2; three or more in all would be accepted"),
        ("agent,x\na,1\n", "gosta", gini, "kind = \"complete\"\nallow-isolated = true", "observations is 1; two or more, so that there is a pair, would be accepted"),
        ("agent;x;y\na;1;2\n", "gosta", kendall, COMPLETE, "the header agent,<column>... between commas; this file has semicolons"),
        ("agent\tx\ty\na\t1\t2\n", "gosta", kendall, COMPLETE, "between commas; this file has tabs"),
        ("agent,x\na,1\nb,2e30\nc,3\n", "gosta", gini, COMPLETE, "line 3: column \"x\" is \"2e30\"; accepted: a finite number, at most 1e30 in size"),
        (&plain, "gosta", "kind = \"scatter\"\ncolumns = [\"x\"]\ncentres = [[1, 2]]\n", COMPLETE, "statistic.centres have 2 numbers each, and rows 1 columns"),
        (&plain, "gosta", "kind = \"scatter\"\ncolumns = [\"x\"]\ncentres = [[1], [1, 2]]\n", COMPLETE, "statistic.centres is an array; accepted: arrays of finite numbers, as many in each"),
        (&plain, "gosta", "kind = \"gini\"\ncolumns = [\"x\"]\nties = \"half\"\n", COMPLETE, "statistic.ties is for kind = \"auc\"; accepted with \"gini\": no statistic.ties"),
        (&plain, "gosta", "kind = \"gini\"\ncolumns = [\"x\"]\nrows = 7\n", COMPLETE, "statistic.rows is 7, and 6 rows there are; accepted: 6"),
        (&plain, "gosta", "kind = \"mean\"\n", COMPLETE, "gosta does not measure \"mean\"; accepted: algorithm = \"gossip\", \"ring\", \"walk\", \"muffliato\" or \"gopa\", or kind = \"variance\", \"gini\", \"kendall\", \"auc\" or \"scatter\""),
    ] {
        write(place, "rows.csv", data);
        write(place, "task.toml", &task(algorithm, statistic, graph, 10));
        let line = refused(place, "measure task.toml --out run");
        assert!(line.contains(says), "expected {says}\nfound    {line}");
    }
    write(place, "rows.csv", &plain);
    write(place, "task.toml", &task("gosta", gini, COMPLETE, 10).replace("[statistic]", "record = \"id\"\n[statistic]"));
    let line = refused(place, "measure task.toml --out run");
    assert!(line.contains("no column \"id\"; accepted in data.record: label, x, city, y"), "{line}");
    write(place, "task.toml", &task("gosta-sync", gini, COMPLETE, 10));
    let line = refused(place, "network task.toml --out run");
    assert!(line.contains("gosta-sync runs in the simulator alone"), "{line}");
}

/// Six real processes, one of which has three rows: within two percent of the exact value.
#[test]
fn real_processes_find_what_the_simulator_finds() {
    let place = support::folder();
    let place = place.path();
    let rows = rows(6, true);
    write(place, "rows.csv", &csv(&rows));
    let (kind, statistic) = STATISTICS[4];
    write(place, "task.toml", &task("gosta", statistic, COMPLETE, 2_500));
    let summary = json(place, "network task.toml --out run --interval 0.004 --time-limit 90");
    let (exact, positives) = (by_definition(kind, &rows), rows.iter().filter(|row| row.3).count());
    assert!((summary["estimate"].as_f64().expect("a number") / exact - 1.0).abs() < 0.02, "{exact} {summary}");
    assert!(summary["exact"].is_null() && summary["messages_rejected"] == 0, "{summary}");
    let told = read(place, "run/peers/task.toml");
    assert!(
        told.contains(&format!("rows = {}", rows.len())) && told.contains(&format!("positives = {positives}")),
        "{told}"
    );
    assert!(read(place, "run/peers/a01/data.csv").starts_with("agent,label,x\n"));
    assert!(done(place, "peer status run/peers/a01").contains("auc of x 0."));
    for line in ["rows", "positives"] {
        let without: String =
            told.lines().filter(|text| !text.starts_with(line)).map(|text| format!("{text}\n")).collect();
        write(place, "run/peers/task.toml", &without);
        assert!(refused(place, "peer status run/peers/a01").contains(&format!("statistic.{line} is missing")));
    }
}
