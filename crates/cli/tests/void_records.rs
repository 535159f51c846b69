//! What the owner of data is told: which records are over their limit, and what ids come to; and what is not overwritten.

mod support;

use std::fmt::Write;
use std::path::Path;
use support::{Peer, done, json, ports, read, refused, sottovoce, write};

const AGENTS: [&str; 3] = ["a", "b", "c"];

/// Six rows of each agent, two of a record; others from `first` on.
fn table(agents: &[&str], first: usize) -> String {
    let mut text = "agent,patient,label,x,y\n".to_owned();
    for agent in agents {
        for k in first..first + 6 {
            let (label, x) = if k % 3 == 0 { (1, 0.9) } else { (-1, -0.8) };
            let _ = writeln!(text, "{agent},{agent}-{},{label},{x},{:.2}", k / 2, k as f64 / 9.0);
        }
    }
    text
}

fn task(train: &str) -> String {
    format!(
        "name = \"t\"\nalgorithm = \"coordinate-descent\"\n[data]\ntrain = \"{train}\"\ntest = \"test.csv\"\nrecord = \"patient\"\n\
         normalize = \"l2\"\n[graph]\nkind = \"complete\"\n[model]\npoints-max = 6\nintercept = true\n\
         [privacy]\nepsilon = 1\ndelta = 1e-6\nupdates = 3\nnoise = \"exact\"\n"
    )
}

/// A folder with the limit of about one run over pairs of rows, which one run has used.
fn used_up(place: &Path) {
    write(place, "old.csv", &table(&AGENTS, 0));
    write(place, "mixed.csv", &table(&AGENTS, 2));
    write(place, "test.csv", &table(&AGENTS, 30));
    write(place, "old.toml", &task("old.csv"));
    write(place, "mixed.toml", &task("mixed.csv"));
    done(place, "privacy budget limited --limit-epsilon 2.6 --limit-delta 1e-5");
    let fresh = done(place, "privacy budget limited");
    assert!(fresh.contains("No task has been charged.") && !fresh.contains("No ids"), "{fresh}");
}

#[test]
fn where_every_record_is_over_its_limit_nobody_is_said_to_gain() {
    let place = support::folder();
    let place = place.path();
    used_up(place);
    let first = done(place, "train old.toml --out first --no-sweep --budget limited");
    assert!(first.contains("1 task in all; the record charged most: epsilon = "), "{first}");
    assert!(!first.contains("limit and say") && !read(place, "first/summary.json").contains("void"), "{first}");
    // Two of three records of each agent are used up.
    let output = sottovoce(place, "train mixed.toml --out mixed --no-sweep --budget limited");
    let [said, warned] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("text"));
    let some = "6 of 9 records (12 rows) are over their limit and say nothing";
    assert!(said.contains(some) && warned.contains(&format!("warning: {some}")), "{said} {warned}");
    assert!(said.contains("alone") && read(place, "mixed/report.html").contains(some), "{said}");
    let summary: serde_json::Value = serde_json::from_str(&read(place, "mixed/summary.json")).expect("JSON");
    let figures = serde_json::json!({ "records": 6, "records_of": 9, "rows": 12, "rows_of": 18 });
    assert_eq!(summary["void"], figures);
    assert!(summary["accuracy"]["mean"].is_f64(), "{summary}");
    // Now all of them.
    let all = "9 of 9 records (18 rows) are over their limit and say nothing";
    let said = done(place, "train old.toml --out over --no-sweep --budget limited");
    assert!(said.contains(all) && said.contains("Nobody learned from any row") && !said.contains(" gain"), "{said}");
    let report = read(place, "over/report.html");
    assert!(report.contains(&format!("Nobody learned from any row: {all}.")), "{said}");
    assert!(!["raises", "lowers", "improves", "worsens"].iter().any(|verb| report.contains(&format!(" {verb} mean "))));
    // Nor does the table, a picture or a file show how models that nobody trained do.
    let column = "<th scope=\"col\">test accuracy</th>";
    assert!(read(place, "mixed/report.html").contains(column) && !report.contains(column), "{report}");
    let mut pictures: Vec<_> = std::fs::read_dir(place.join("over/plots")).expect("plots").flatten().collect();
    pictures.retain(|file| file.path().extension().is_some_and(|end| end == "svg"));
    for picture in &pictures {
        let text = std::fs::read_to_string(picture.path()).expect("a picture");
        assert!(!text.contains("accuracy"), "{:?}", picture.path());
    }
    let metrics = read(place, "over/metrics.csv");
    assert!(metrics.lines().skip(1).all(|line| line.ends_with(",,")) && metrics.lines().count() > 1, "{metrics}");
    let answer = json(place, "train old.toml --out again --no-sweep --budget limited");
    assert!(answer["accuracy"].is_null() && answer["void"]["records"] == 9, "{answer}");
    assert_eq!(answer["source"]["tasks"], 4, "{answer}");
    let shown = done(place, "privacy budget limited");
    assert!(shown.contains("void records"), "{shown}");
}

#[test]
fn a_peer_tells_its_owner_what_is_over_its_limit_and_what_ids_come_to() {
    let place = support::folder();
    let place = place.path();
    used_up(place);
    write(place, "a.csv", &table(&["a"], 0));
    write(place, "b.csv", &(table(&["b"], 0) + "b,,1,0.5,0.5\n").replace("b,b-2,", "b,,"));
    write(place, "peers.toml", &task("old.csv").replace("points-max = 6", "points-max = 7"));
    let ports = ports(2);
    let mut peers = [("a", ports[0]), ("b", ports[1])]
        .map(|(name, port)| Peer::init(place, "peers.toml", name, &format!("{name}.csv"), port, 0.05));
    assert!(read(place, "a/peer.toml").contains("# budget = "), "{}", read(place, "a/peer.toml"));
    let checked = done(place, "data check b");
    assert!(checked.contains("3 records by their ids, of at most 3 rows"), "{checked}");
    assert!(checked.contains("3 rows without an id are one record") && !checked.contains("limit"), "{checked}");
    assert_eq!(json(place, "data check b")["files"][0]["ids"]["rows_without_id"], 3);
    // Another task has used up what a limit allows.
    let budget = "sottovoce-budget";
    done(place, &format!("privacy budget {budget} --limit-epsilon 2.6 --limit-delta 1e-5"));
    done(place, &format!("train old.toml --out run --no-sweep --budget {budget}"));
    peers[0].meet(&peers[1], 1.0);
    peers[1].meet(&peers[0], 1.0);
    peers[0].start();
    support::until("it says where it is charged", || peers[0].log().contains("the odometer is "));
    peers[0].kill();
    assert_eq!(json(place, &format!("privacy budget {budget}"))["tasks"], 2);
    let log = peers[0].log();
    assert!(log.contains(budget), "{log}");
    let all = "3 of 3 records (6 rows) are over their limit and say nothing";
    let status = done(place, "peer status a");
    assert!(status.contains(&format!("void        {all}")) && status.contains("odometer    "), "{status}");
    let status = json(place, "peer status a");
    assert_eq!((&status["void"]["rows"], &status["void"]["records"]), (&6.into(), &3.into()), "{status}");
    assert!(done(place, "data check a").contains(all));
    // A signed ledger is a new file.
    let key = read(place, "a/peer.key");
    assert!(refused(place, "peer ledger a --out a/peer.key").contains("accepted: the name of a new file"));
    assert_eq!(read(place, "a/peer.key"), key);
    assert!(done(place, "peer ledger a --out ledger.jsonl").contains(", signed: ledger.jsonl"));
    refused(place, "peer ledger a --out ledger.jsonl");
}
