//! Noise once and gossip in rounds, as its owners run it: in the simulator, and between real processes that die.

mod support;

use std::path::Path;
use std::time::Duration;
use support::{Peer, done, json, ports, read, refused, until, until_quiet, write};

const TASK: &str = "name = \"visits\"\nalgorithm = \"muffliato\"\n[data]\ntrain = \"rows.csv\"\n[statistic]\nkind = \"mean\"\ncolumns = [\"x\"]\n";
const RANGE: &str = "range = [0, 1]\n";
const RING: &str = "[graph]\nkind = \"ring\"\n";
const PRIVATE: &str = "[privacy]\nepsilon = 2\ndelta = 1e-6\n";

/// Eight agents, of which one has two rows; one value is beyond the range. The mean of what counts is 0.5, of nine rows.
const ROWS: &str = "agent,city,x\na,Rome,0.25\nb,Oslo,0.5\nc,Bern,1\nd,Riga,0\ne,Rome,0.5\nf,Oslo,7\ng,Bern,0.25\nh,Riga,0.75\nh,Rome,0.25\n";

fn place(rows: &str, task: &str) -> tempfile::TempDir {
    let place = support::folder();
    write(place.path(), "rows.csv", rows);
    write(place.path(), "task.toml", task);
    place
}

/// `u,v,epsilon` as pairs and numbers.
fn pairs(place: &Path, run: &str) -> Vec<(String, String, f64)> {
    let text = read(place, &format!("{run}/pairs.csv"));
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("u,v,epsilon"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        (cells[0].to_owned(), cells[1].to_owned(), cells[2].parse().expect("a number"))
    };
    lines.map(row).collect()
}

#[test]
fn a_gossip_with_noise_says_what_each_learns_of_each() {
    let place = place(ROWS, &format!("{TASK}{RANGE}{RING}"));
    let place = place.path();
    let number =
        |summary: &serde_json::Value, key: &str| summary[key].as_f64().unwrap_or_else(|| panic!("{key}: {summary}"));
    let exact = json(place, "measure task.toml --out exact");
    assert!((number(&exact, "estimate") - 0.5).abs() < 1e-9 && number(&exact, "error_max") < 1e-8, "{exact}");
    assert_eq!((&exact["epsilon"], &exact["observer"]), (&"infinity".into(), &"everyone".into()));
    assert!(!place.join("exact/pairs.csv").exists() && exact.get("epsilon_mean").is_none() && exact["quiet"] == true);
    // Plain rounds are many more, and come to the same.
    write(
        place,
        "plain.toml",
        &format!("{TASK}{RANGE}{RING}[run]\naccelerated = false\n").replace("\"mean\"", "\"sum\""),
    );
    let plain = json(place, "measure plain.toml --out plain");
    assert!(
        (number(&plain, "estimate") - 4.5).abs() < 1e-7
            && number(&plain, "letters_sent") > 2.0 * number(&exact, "letters_sent")
    );

    write(place, "private.toml", &format!("{TASK}{RANGE}{RING}[run]\nrounds = 2\n{PRIVATE}"));
    let private = json(place, "measure private.toml --out private");
    assert_eq!((&private["unit"], &private["observer"]), (&"record".into(), &"each one other member, by pair".into()));
    assert!(number(&private, "epsilon") <= 2.0 && number(&private, "epsilon") > 1.99, "{private}");
    assert!(number(&private, "error") < 5.0 * number(&private, "error_predicted") && number(&private, "error") > 0.0);
    assert!(private.get("epsilon_mean").is_none());
    assert_eq!(private["letters_sent"], 2 * 8 * 2);
    // Two rounds on a ring of eight: neighbours and theirs see all, others nothing.
    let found = pairs(place, "private");
    assert_eq!(found.len(), 8 * 7);
    for (u, v, epsilon) in &found {
        let apart = (i32::from(u.as_bytes()[0]) - i32::from(v.as_bytes()[0])).rem_euclid(8);
        let expected = if apart.min(8 - apart) <= 2 { number(&private, "epsilon") } else { 0.0 };
        assert!((epsilon - expected).abs() < 1e-6, "{u} {v}: {epsilon}");
    }
    let ledger = read(place, "private/ledger.jsonl");
    let header =
        "{\"ledger\":1,\"unit\":\"record\",\"observer\":\"each one other member, by pair\",\"pairs\":{\"rounds\":2}}";
    assert_eq!((ledger.lines().next(), ledger.lines().count()), (Some(header), 9), "{ledger}");
    assert!(
        ledger.lines().skip(1).all(|line| line.contains("\"gaussian\"") && line.contains("\"count\":1")),
        "{ledger}"
    );
    let again = json(place, "privacy epsilon --ledger private/ledger.jsonl --delta 1e-6");
    assert_eq!((&again["epsilon"], &again["observer"]), (&private["epsilon"], &private["observer"]));
    assert!(again.get("epsilon_mean").is_none());
    let report = read(place, "private/report.html");
    assert!(report.contains("by pair") && report.contains("Epsilon by distance"), "{report}");
    assert!(place.join("private/plots/epsilon-by-distance.png").is_file());
    let resolved = json(place, "measure private/task.toml --out resolved");
    assert_eq!(resolved["digest"], private["digest"], "the task as resolved is the same task");
    assert_eq!(read(place, "resolved/task.toml"), read(place, "private/task.toml"));
}

#[test]
fn a_budget_for_the_mean_over_pairs_is_kept_and_the_worst_pair_is_said_beside_it() {
    let rows: String = (0..30).map(|k| format!("a{k:02},{}\n", f64::from(k % 5) / 4.0)).collect();
    let graph = "[graph]\nkind = \"watts-strogatz\"\nneighbours = 4\nrewire = 0.3\n";
    let task = format!(
        "{TASK}{RANGE}{graph}[run]\nrounds = 2\n[privacy]\nepsilon = 1\ndelta = 1e-6\nunit = \"agent\"\npairs = \"mean\"\n"
    );
    let place = place(&format!("agent,x\n{rows}"), &task);
    let place = place.path();
    let summary = json(place, "measure task.toml --out run");
    let number = |key: &str| summary[key].as_f64().unwrap_or_else(|| panic!("{key}: {summary}"));
    assert!(number("epsilon_mean") <= 1.0 && number("epsilon_mean") > 0.99 && number("epsilon") > 1.3, "{summary}");
    let found = pairs(place, "run");
    let mean = found.iter().map(|(.., epsilon)| epsilon).sum::<f64>() / found.len() as f64;
    let worst = found.iter().map(|(.., epsilon)| *epsilon).fold(0.0, f64::max);
    assert!((mean - number("epsilon_mean")).abs() < 1e-6 && (worst - number("epsilon")).abs() < 1e-6, "{mean} {worst}");
    let again = json(place, "privacy epsilon --ledger run/ledger.jsonl --delta 1e-6");
    assert_eq!((&again["epsilon"], &again["epsilon_mean"]), (&summary["epsilon"], &summary["epsilon_mean"]));
    let said = done(place, "measure task.toml --out run --force");
    assert!(said.contains("on the mean over pairs") && said.contains("for the worst pair"), "{said}");
    assert!(
        done(place, "privacy epsilon --ledger run/ledger.jsonl --delta 1e-6").contains("On the mean over all pairs")
    );
    assert_eq!(json(place, "measure run/task.toml --out resolved")["digest"], summary["digest"]);
    // More noise than a written number says, where the graph is known.
    let text = read(place, "run/task.toml");
    let line = text.lines().find(|line| line.starts_with("noise-multiplier")).expect("written by the run");
    write(place, "bent.toml", &text.replace(line, "noise-multiplier = 0.01"));
    assert_eq!(json(place, "measure bent.toml --out bent")["epsilon_mean"], summary["epsilon_mean"]);
}

#[test]
fn what_gossip_with_noise_cannot_do_is_refused_in_one_line() {
    let private = format!("{TASK}{RANGE}{RING}{PRIVATE}");
    let place = place(ROWS, "");
    let place = place.path();
    write(place, "parts.csv", "a,b,weight\na,b,1\nb,c,1\nd,e,1\nf,g,1\ng,h,1\ne,f,1\n");
    let parts = "[graph]\nedges = \"parts.csv\"\n";
    for (task, says) in [
        (format!("{TASK}{parts}"), "graph is not connected"),
        (private.replace(RING, parts), "accepted: a connected graph"),
        (format!("{private}mechanism = \"laplace\"\n"), "accepted: \"gaussian\""),
        (format!("{private}colluders = 2\n"), "accepted: no privacy.colluders"),
        (format!("{private}pairs = \"median\"\n"), "\"worst\" or \"mean\""),
        (private.replace(RANGE, ""), "statistic.range is missing"),
        (private.replace("delta = 1e-6", "delta = 0"), "Gaussian noise has no guarantee without a delta"),
        (format!("{TASK}{RING}[run]\nrounds = 0\n"), "run.rounds"),
        (format!("{TASK}{RING}[run]\ntolerance = 1e-6\n"), "accepted: no run.tolerance"),
        (format!("{TASK}{RING}[muffliato]\ngamma = 2\n"), "muffliato.gamma"),
        (TASK.to_owned(), "graph is missing"),
        (TASK.replace("\"mean\"", "\"gini\"") + RING, "kind = \"mean\" or \"sum\""),
        (
            format!("{TASK}{RING}").replace("muffliato", "gossip") + "[run]\naccelerated = true\n",
            "accepted with run.accelerated",
        ),
        (
            private.replace("muffliato", "ring").replace(RING, "") + "pairs = \"mean\"\n",
            "privacy.pairs does not fit ring",
        ),
    ] {
        write(place, "task.toml", &task);
        let said = refused(place, "measure task.toml --out run");
        assert!(said.contains(says), "{says}: {said}");
    }
    write(place, "task.toml", &private);
    assert!(refused(place, "audit task.toml").contains("accepted: a task that protects from everyone"));
    write(place, "rows.csv", "agent,x\na,1\n");
    write(place, "task.toml", &private.replace(RING, &format!("{RING}allow-isolated = true\n")));
    let said = refused(place, "measure task.toml --out run");
    assert!(said.contains("muffliato of 1 agent; accepted: 2 and more"), "{said}");
    // No odd cycle: Metropolis keeps something at home, so it needs none.
    write(place, "rows.csv", "agent,x\na,1\nb,0\nc,1\nd,0\n");
    write(place, "task.toml", &format!("{TASK}{RING}"));
    assert!(json(place, "measure task.toml --out run")["error_max"].as_f64().is_some_and(|error| error < 1e-8));
    for (task, says) in [
        (format!("{TASK}{RING}"), "run.rounds is missing"),
        (format!("{TASK}{RING}[run]\nrounds = 3\n"), "muffliato.gamma is missing"),
        (
            format!("{TASK}{RANGE}{RING}[run]\nrounds = 3\naccelerated = false\n{PRIVATE}pairs = \"mean\"\n"),
            "noise-multiplier is missing",
        ),
        (
            format!("{TASK}{RING}[run]\nrounds = 3\naccelerated = false\n").replace("\"mean\"", "\"sum\""),
            "statistic.agents is missing",
        ),
    ] {
        write(place, "task.toml", &task);
        write(place, "a.csv", "agent,x\na,1\n");
        let said = refused(place, "peer init a --task task.toml --agent a --data a.csv");
        assert!(said.contains(says), "{says}: {said}");
    }
}

/// Real processes: what the simulator finds, and its charges; with the mean over pairs too.
#[test]
fn eight_processes_find_what_the_simulator_finds() {
    let place = place(ROWS, &format!("{TASK}{RANGE}{RING}"));
    let place = place.path();
    let exact = json(place, "network task.toml --out exact --interval 0.05 --time-limit 80");
    let simulated = json(place, "measure task.toml --out simulated");
    assert!((exact["estimate"].as_f64().expect("a number") - 0.5).abs() < 1e-9 && exact["quiet"] == true, "{exact}");
    assert_eq!(exact["letters_sent"], simulated["letters_sent"]);
    assert_eq!(
        read(place, "exact/estimates.csv"),
        read(place, "simulated/estimates.csv"),
        "the same rounds, to the bit"
    );
    write(place, "private.toml", &format!("{TASK}{RANGE}{RING}[run]\nrounds = 2\n{PRIVATE}pairs = \"mean\"\n"));
    let private = json(place, "network private.toml --out private --interval 0.05 --time-limit 80");
    let simulated = json(place, "measure private.toml --out noisy");
    for key in ["epsilon", "epsilon_mean", "delta", "unit", "observer", "error_predicted"] {
        assert_eq!(private[key], simulated[key], "{key}");
    }
    assert!(
        private["epsilon_mean"].is_number() && private.get("exact").is_none() && private["quiet"] == true,
        "{private}"
    );
    let number = |key: &str| private[key].as_f64().unwrap_or_else(|| panic!("{key}: {private}"));
    let error = (number("estimate") - 0.5).abs();
    assert!(error > 0.0 && error < 5.0 * number("error_predicted"), "{private}");
    let again = json(place, "network private.toml --out private --force --interval 0.05 --time-limit 80");
    assert_eq!(again["epsilon_mean"], private["epsilon_mean"], "a run of a statistic can be replaced");
    for file in ["ledger.jsonl", "pairs.csv"] {
        assert_eq!(read(place, &format!("private/{file}")), read(place, &format!("noisy/{file}")), "{file}");
    }
}

const MEMBERS: usize = 5;

/// Five peers on a path.
fn peers(place: &Path, task: &str) -> Vec<Peer> {
    write(place, "task.toml", task);
    let mut peers = Vec::new();
    for (k, port) in (0..MEMBERS).zip(ports(MEMBERS)) {
        let name = format!("m{k}");
        write(place, &format!("{name}.csv"), &format!("agent,x\n{name},0.{k}\n"));
        peers.push(Peer::init(place, "task.toml", &name, &format!("{name}.csv"), port, 0.05));
    }
    for k in 1..MEMBERS {
        peers[k].meet(&peers[k - 1], 1.0);
        let (left, right) = peers.split_at_mut(k);
        left[k - 1].meet(&right[0], 1.0);
    }
    peers
}

fn estimate(peer: &mut Peer) -> f64 {
    peer.status()["estimate"].as_f64().unwrap_or_else(|| panic!("{} knows nothing: {}", peer.name, peer.log()))
}

/// Nobody goes on without a neighbour that is gone: when it is back all rounds end, and each contribution was charged once.
#[test]
fn members_wait_for_one_that_is_gone_and_whoever_is_killed_is_charged_once() {
    let place = support::folder();
    let rounds = 150;
    let task = format!(
        "{TASK}{RANGE}{RING}[run]\nrounds = {rounds}\naccelerated = false\n[privacy]\nepsilon = 500\ndelta = 1e-6\n"
    );
    let mut peers = peers(place.path(), &task);
    let gone = 2;
    (0..MEMBERS).filter(|k| *k != gone).for_each(|k| peers[k].start());
    until("they wait", || (0..MEMBERS).filter(|k| *k != gone).all(|k| peers[k].log().contains("started")));
    std::thread::sleep(Duration::from_millis(500));
    for k in (0..MEMBERS).filter(|k| *k != gone) {
        let status = peers[k].status();
        assert!(status["estimate"].is_null() && status["phase"] != "quiet", "{k} waits: {status}");
    }
    peers[gone].start();
    until("all have begun", || peers.iter().all(|peer| peer.step().is_some()));
    for kill in 0..6 {
        std::thread::sleep(Duration::from_millis(20 + 37 * kill % 90));
        let victim = (2 * kill as usize + 1) % MEMBERS;
        peers[victim].kill();
        peers[victim].start();
    }
    until_quiet(&mut peers.iter_mut().collect::<Vec<_>>());
    // The values are 0, 0.1, 0.2, 0.3 and 0.4, under noise of 0.05 or so.
    let known: Vec<f64> = peers.iter_mut().map(estimate).collect();
    assert!(known.iter().all(|value| (value - known[0]).abs() < 1e-6 && (value - 0.2).abs() < 0.3), "{known:?}");
    for peer in &mut peers {
        let status = peer.status();
        assert_eq!(
            (&status["unit"], &status["observer"]),
            (&"record".into(), &"each one other member, by pair".into())
        );
        peer.stop();
        let ledger = peer.step().expect("a step").ledger;
        assert_eq!(ledger.releases(), 1, "{}: {ledger:?}", peer.name);
    }
}

/// Two groups that one line separates; two agents have no rows of one kind, and one has a single row.
fn points() -> String {
    let mut rows = String::from("agent,label,u,v\n");
    for k in 0..90 {
        let (sign, spread) = (if k % 2 == 0 { 1.0 } else { -1.0 }, f64::from(k % 7) / 7.0 - 0.5);
        rows += &format!("m{:02},{sign},{},{}\n", k * 7 % 12, sign * (0.7 + 0.2 * spread), spread);
    }
    rows + "m12,1,0.8,0.1\n"
}

const DESCENT: &str = "name = \"halves\"\nalgorithm = \"muffliato-sgd\"\n[data]\ntrain = \"points.csv\"\nnormalize = \"l2\"\n[graph]\nkind = \"ring\"\n[model]\nstep = 2\n[muffliato]\nsteps = 6\n";

#[test]
fn descent_by_gossip_gives_one_model_and_says_what_each_learns_of_each() {
    let place = support::folder();
    let place = place.path();
    write(place, "points.csv", &points());
    write(place, "task.toml", DESCENT);
    let exact = json(place, "train task.toml --out exact");
    assert_eq!((exact["holders"].as_u64(), exact["models_spread"].as_f64()), (Some(13), Some(0.0)), "{exact}");
    let objective = |summary: &serde_json::Value| summary["objective"].as_f64().unwrap_or_else(|| panic!("{summary}"));
    assert!(objective(&exact) < 0.6 * std::f64::consts::LN_2, "{exact}");
    let private = "[privacy]\nepsilon = 4\ndelta = 1e-5\n";
    write(place, "private.toml", &format!("{DESCENT}[run]\nrounds = 2\n{private}"));
    let worst = json(place, "train private.toml --out worst");
    assert_eq!((&worst["unit"], &worst["observer"]), (&"agent".into(), &"each one other member, by pair".into()));
    assert!(worst["epsilon"].as_f64().is_some_and(|epsilon| epsilon <= 4.0 && epsilon > 3.99), "{worst}");
    let ledger = read(place, "worst/ledger.jsonl");
    assert!(
        ledger.lines().skip(1).all(|line| line.contains("\"count\":6")) && ledger.lines().count() == 14,
        "{ledger}"
    );
    let header = ledger.lines().next().expect("a header");
    assert!(header.contains("\"pairs\":{\"rounds\":2,\"told\":{\"gamma\":"), "{header}");
    // Neighbours and theirs are known; of what the speaker holds in the end the model tells something, and mostly not all.
    let found = pairs(place, "worst");
    assert_eq!(found.len(), 13 * 12);
    let epsilon = worst["epsilon"].as_f64().expect("a number");
    let number = |name: &str| name[1..].parse::<i32>().expect("m and a number");
    for (u, v, found) in &found {
        let apart = |a: i32, b: i32| (a - b).rem_euclid(13).min((b - a).rem_euclid(13));
        match (apart(number(u), number(v)) <= 2, apart(number(u), 0) <= 2) {
            (true, _) => assert!((found - epsilon).abs() < 1e-6, "{u} {v}: {found}"),
            // The first member's letters hold five values, and the model is made of these.
            (false, true) => assert!(*found > 0.0 && *found < epsilon + 1e-6, "{u} {v}: {found}"),
            (false, false) => assert_eq!(*found, 0.0, "{u} {v}"),
        }
    }
    assert!(found.iter().any(|(.., found)| *found > 0.0 && *found < 0.9 * epsilon), "the model is accounted for");
    let report = read(place, "worst/report.html");
    assert!(report.contains("on the mean over all pairs") && report.contains("Epsilon by distance"), "{report}");
    assert!(report.contains("for all records of one agent replaced by others, against each one other member"));
    assert!(!report.contains("about one record"), "a guarantee for agents is not one for records");
    // The mean over pairs keeps the budget with less noise, and the ledger alone gives both again.
    write(place, "mean.toml", &format!("{DESCENT}[run]\nrounds = 2\n{private}pairs = \"mean\"\n"));
    let mean = json(place, "train mean.toml --out mean");
    assert!(mean["epsilon_mean"].as_f64().is_some_and(|mean| mean <= 4.0 && mean > 3.99), "{mean}");
    assert!(mean["epsilon"].as_f64().is_some_and(|worst| worst > 5.0), "{mean}");
    let again = json(place, "privacy epsilon --ledger mean/ledger.jsonl --delta 1e-5");
    assert_eq!((&again["epsilon"], &again["epsilon_mean"]), (&mean["epsilon"], &mean["epsilon_mean"]));
    assert_eq!(json(place, "train mean/task.toml --out resolved")["digest"], mean["digest"]);
}

#[test]
fn what_descent_by_gossip_cannot_do_is_refused_in_one_line() {
    let place = support::folder();
    let place = place.path();
    write(place, "points.csv", &points());
    write(place, "parts.csv", "a,b,weight\nm00,m01,1\nm02,m03,1\n");
    let private = format!("{DESCENT}[privacy]\nepsilon = 4\ndelta = 1e-5\n");
    let parts = DESCENT.replace("kind = \"ring\"", "edges = \"parts.csv\"\nallow-isolated = true");
    for (task, says) in [
        (parts, "graph is not connected"),
        (DESCENT.replace("step = 2\n", ""), "model.step is missing"),
        (DESCENT.replace("step = 2\n", "step = 2\nloss = \"hinge\"\n"), "accepted: logistic"),
        (DESCENT.replace("steps = 6", "steps = 0"), "muffliato.steps"),
        (format!("{private}unit = \"record\"\n"), "accepted: unit = \"agent\""),
        (format!("{private}trust = \"curator\"\n"), "accepted with muffliato-sgd: none of them"),
        (format!("{private}colluders = 2\n"), "accepted: no privacy.colluders"),
        (format!("{private}pairs = 3\n"), "accepted: \"worst\", \"mean\""),
        (private.replace("step = 2", "step = 9"), "at most 8"),
        (format!("{DESCENT}[run]\nrounds = 200000\n"), "at most 100000"),
    ] {
        write(place, "task.toml", &task);
        let said = refused(place, "train task.toml --out run");
        assert!(said.contains(says), "{says}: {said}");
    }
    write(place, "task.toml", &format!("{DESCENT}[run]\nrounds = 2\naccelerated = false\n"));
    write(place, "a.csv", "agent,label,u,v\na,1,1,0\n");
    let said = refused(place, "peer init a --task task.toml --agent a --data a.csv");
    assert!(said.contains("muffliato.speaker is missing"), "{said}");
}

/// Real processes: the same model to the bit without noise, and the simulator's charges with it.
#[test]
fn thirteen_processes_learn_the_model_that_the_simulator_learns() {
    let place = support::folder();
    let place = place.path();
    write(place, "points.csv", &points());
    write(place, "task.toml", &format!("{DESCENT}[run]\nrounds = 2\n"));
    let exact = json(place, "network task.toml --out exact --interval 0.05 --time-limit 80");
    let simulated = json(place, "train task.toml --out simulated");
    assert_eq!((&exact["quiet"], &exact["holders"]), (&true.into(), &simulated["holders"]), "{exact}");
    assert_eq!(read(place, "exact/model.csv"), read(place, "simulated/model.csv"), "to the bit");
    let private = format!("{DESCENT}[run]\nrounds = 2\n[privacy]\nepsilon = 4\ndelta = 1e-5\npairs = \"mean\"\n");
    write(place, "private.toml", &private);
    let private = json(place, "network private.toml --out private --interval 0.05 --time-limit 80");
    let simulated = json(place, "train private.toml --out noisy");
    for key in ["epsilon", "epsilon_mean", "delta", "unit", "observer", "holders"] {
        assert_eq!(private[key], simulated[key], "{key}");
    }
    assert!(private["epsilon_mean"].is_number() && private["quiet"] == true, "{private}");
    for file in ["ledger.jsonl", "pairs.csv"] {
        assert_eq!(read(place, &format!("private/{file}")), read(place, &format!("noisy/{file}")), "{file}");
    }
}
