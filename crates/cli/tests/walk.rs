//! Statistics by a token that walks, as their owners run them: in the simulator, and between real processes.

mod support;

use sottovoce_privacy::Track;
use std::path::Path;
use std::time::Duration;
use support::{Peer, done, json, ports, read, refused, until, until_quiet, write};

const TASK: &str = "name = \"visits\"\nalgorithm = \"walk\"\n[data]\ntrain = \"rows.csv\"\n[statistic]\nkind = \"mean\"\ncolumns = [\"x\"]\n";
const RANGE: &str = "range = [0, 1]\n";
const RUN: &str = "[run]\nhops = 400\n";
const PRIVATE: &str = "[privacy]\nepsilon = 1\ndelta = 1e-6\nunit = \"agent\"\n";

/// Forty agents with one value each, from 0 to 0.975.
fn rows() -> String {
    (0..40).fold("agent,x\n".to_owned(), |text, k| text + &format!("a{k:02},{}\n", f64::from(k) / 40.0))
}

fn place(task: &str) -> tempfile::TempDir {
    let place = support::folder();
    write(place.path(), "rows.csv", &rows());
    write(place.path(), "task.toml", task);
    place
}

#[test]
fn a_walk_measures_means_sums_and_histograms_and_says_against_whom_it_protects() {
    let place = place(&format!("{TASK}{RUN}"));
    let place = place.path();
    let exact = json(place, "measure task.toml --out exact");
    let number =
        |summary: &serde_json::Value, key: &str| summary[key].as_f64().unwrap_or_else(|| panic!("{key}: {summary}"));
    // 400 visits of values with a deviation of 0.29.
    assert!(number(&exact, "error") < 0.07 && number(&exact, "exact") == 0.4875, "{exact}");
    assert_eq!(
        (&exact["epsilon"], &exact["observer"], &exact["quiet"]),
        (&"infinity".into(), &"everyone".into(), &true.into())
    );

    write(place, "private.toml", &format!("{TASK}{RANGE}{RUN}{PRIVATE}[token]\nreissues = 0\n"));
    let private = json(place, "measure private.toml --out private");
    assert_eq!((&private["unit"], &private["observer"]), (&"agent".into(), &"any one other member".into()));
    assert!(number(&private, "epsilon") <= 1.0 && number(&private, "epsilon") > 0.99, "{private}");
    assert!(number(&private, "error") < 5.0 * number(&private, "error_predicted"), "{private}");
    let ledger = read(place, "private/ledger.jsonl");
    let header = "{\"ledger\":1,\"unit\":\"agent\",\"observer\":\"any one other member\",\"walk\":{\"members\":40,\"hops\":400,\"contributions\":12,\"colluders\":1,\"present\":1.0,\"tokens\":1,\"steps\":\"sums\"}}";
    assert_eq!(ledger.lines().next(), Some(header));
    let counts = ledger.lines().skip(1).map(|line| {
        assert!(line.contains("\"one-member\"") && line.contains("\"gaussian\""), "{line}");
        serde_json::from_str::<serde_json::Value>(line).expect("JSON")["count"].as_u64().expect("a count")
    });
    assert!(counts.clone().all(|count| count <= 12) && counts.clone().any(|count| count == 12), "{ledger}");
    let again = json(place, "privacy epsilon --ledger private/ledger.jsonl --delta 1e-6");
    assert_eq!((&again["epsilon"], &again["observer"]), (&private["epsilon"], &private["observer"]));
    let report = read(place, "private/report.html");
    assert!(
        report.contains("against any one other member, who follow the protocol, know the path of the token"),
        "{report}"
    );
    let said = done(place, "measure private.toml --out private --force");
    assert!(said.contains("any one other member") && said.contains("standard deviation by the formula"), "{said}");
    let resolved = json(place, "measure private/task.toml --out resolved");
    assert_eq!(resolved["digest"], private["digest"], "the task as resolved is the same task");
    assert!(read(place, "private/task.toml").contains("contributions = 12"), "the default is written down");

    // Noise grows with colluders and with members who may be away; several tokens cost about as much as one.
    let noise = |name: &str, more: &str| {
        write(
            place,
            &format!("{name}.toml"),
            &format!("{TASK}{RANGE}{RUN}{PRIVATE}{more}").replace("\"mean\"", "\"sum\""),
        );
        json(place, &format!("measure {name}.toml --out {name}"))
    };
    let sum = noise("sum", "");
    let (colluding, away) = (noise("colluding", "colluders = 5\n"), noise("away", "present = 0.5\n"));
    assert_eq!(colluding["observer"], "at most 5 colluding members");
    assert!(number(&colluding, "error_predicted") > 1.2 * number(&sum, "error_predicted"), "{colluding}");
    assert!(number(&away, "error_predicted") > 1.05 * number(&sum, "error_predicted"), "{away}");
    let three = noise("three", "[token]\ncount = 3\n");
    let ratio = number(&three, "error_predicted") / number(&sum, "error_predicted");
    assert!((0.9..1.2).contains(&ratio) && number(&three, "epsilon") <= 1.0, "{three}");
    let counted = "bins = 4\nrange";
    write(
        place,
        "bins.toml",
        &format!("{TASK}{RANGE}{RUN}").replace("\"mean\"", "\"histogram\"").replace("range", counted),
    );
    let bins = json(place, "measure bins.toml --out bins");
    let counts: Vec<f64> =
        bins["estimate"].as_array().expect("a list").iter().map(|x| x.as_f64().expect("a number")).collect();
    assert!(
        (counts.iter().sum::<f64>() - 40.0).abs() < 1e-9
            && bins["exact"] == serde_json::json!([10.0, 10.0, 10.0, 10.0]),
        "{bins}"
    );
    assert!(read(place, "bins/estimates.csv").starts_with("agent,estimate_0,estimate_1,estimate_2,estimate_3\n"));
    let hidden = format!("{TASK}{RANGE}{RUN}{PRIVATE}").replace("\"mean\"", "\"histogram\"").replace("range", counted);
    write(place, "hidden.toml", &hidden);
    let hidden = json(place, "measure hidden.toml --out hidden");
    assert!(
        number(&hidden, "error") < 4.0 * number(&hidden, "error_predicted") && number(&hidden, "epsilon") <= 1.0,
        "{hidden}"
    );
}

#[test]
fn what_a_walk_cannot_do_is_refused_in_one_line() {
    let private = format!("{TASK}{RANGE}{RUN}{PRIVATE}");
    let place = place("");
    let place = place.path();
    for (task, says) in [
        (TASK.to_owned() + RANGE, "run.hops is missing"),
        (format!("{private}contributions = 0\n"), "privacy.contributions is 0; accepted: a whole number from 1"),
        (format!("{private}colluders = 39\n"), "at most 38 may collude"),
        (format!("{private}present = 0\n"), "privacy.present is 0"),
        (format!("{private}present = 0.05\n"), "leave nobody to hide among"),
        (format!("{private}mechanism = \"laplace\"\n"), "accepted: gaussian"),
        (format!("{private}trust = \"nobody\"\n"), "privacy.trust is for tasks that learn models"),
        (format!("{private}clip = 1\n"), "privacy.clip is for tasks that learn models"),
        (private.replace(RANGE, ""), "statistic.range is missing"),
        (private.replace("delta = 1e-6\n", ""), "privacy.delta is missing"),
        (private.replace("hops = 400", "hops = 400\nrounds = 3"), "accepted with run.rounds: algorithm ="),
        (private.replace("hops = 400", "hops = 400\nwakes-per-agent = 3"), "ends by itself after run.hops"),
        (private.replace("hops = 400", "hops = 4000000000"), "accepted:"),
        (
            private.replace("\"walk\"", "\"ring\"").replace("hops = 400", "rounds = 1") + "present = 0.5\n",
            "for tokens that walk",
        ),
        (private.replace("\"mean\"", "\"histogram\""), "statistic.bins is missing"),
        (private.replace("\"mean\"", "\"histogram\"").replace("range", "bins = 1\nrange"), "statistic.bins is 1"),
        (private.replace("range", "bins = 4\nrange"), "accepted with \"mean\": no statistic.bins"),
        (private.replace("\"mean\"", "\"gini\""), "\"gini\""),
        (format!("{TASK}{RUN}[graph]\nkind = \"ring\"\n"), "accepted: no [graph]"),
        (format!("{private}[token]\ncount = 65\n"), "token.count is 65; accepted: a whole number from 1 to 64"),
        (format!("{private}[token]\nreissues = 2\n"), "token.reissues is 2; accepted for a walk: 1"),
        (format!("{private}[token]\ntimeout = 0\n"), "token.timeout is 0; accepted: a finite number above 0"),
        (private.replace("hops = 400", "hops = 1") + "[token]\nreissues = 1\n", "2 and more, or no reissues"),
    ] {
        write(place, "task.toml", &task);
        let said = refused(place, "measure task.toml --out run");
        assert!(said.contains(says), "{said} should say {says}");
    }
    write(place, "rows.csv", "agent,x\na,0.5\nb,0.25\n");
    write(place, "task.toml", &private);
    assert!(refused(place, "measure task.toml --out run").contains("a walk over 2 members; accepted: 3 and more"));
}

/// Twenty processes: what they find is an estimate of the same spread, and the ledger of each is that of the simulator for as many contributions.
#[test]
fn twenty_processes_are_charged_as_the_simulator_charges() {
    let rows = (0..20).fold("agent,x\n".to_owned(), |text, k| text + &format!("a{k:02},{}\n", f64::from(k) / 20.0));
    let place = place(&format!("{TASK}{RANGE}[run]\nhops = 100\n{PRIVATE}[token]\ncount = 2\n"));
    let place = place.path();
    write(place, "rows.csv", &rows);
    let real = json(place, "network task.toml --out real --interval 0.05 --time-limit 80");
    let simulated = json(place, "measure task.toml --out simulated");
    for key in ["epsilon", "delta", "unit", "observer", "error_predicted"] {
        assert_eq!(real[key], simulated[key], "{key}");
    }
    assert_eq!((&real["quiet"], real.get("exact")), (&true.into(), None), "{real}");
    let number = |key: &str| real[key].as_f64().unwrap_or_else(|| panic!("{key}: {real}"));
    let error = (number("estimate") - 0.475).abs();
    assert!(error > 0.0 && error < 5.0 * number("error_predicted") && number("estimates_spread") == 0.0, "{real}");
    let lines = |name: &str| {
        let ledger = read(place, &format!("{name}/ledger.jsonl"));
        let mut lines: Vec<serde_json::Value> =
            ledger.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let header = lines.remove(0);
        (header, lines)
    };
    let ((header, real), (expected, simulated)) = (lines("real"), lines("simulated"));
    assert_eq!(header, expected);
    let charge = |line: &serde_json::Value| {
        let mut line = line.clone();
        let object = line.as_object_mut().expect("an object");
        (object.remove("agent"), object.remove("count").and_then(|count| count.as_u64()), line)
    };
    let laws: Vec<serde_json::Value> = simulated.iter().map(|line| charge(line).2).collect();
    for line in &real {
        let (_, count, law) = charge(line);
        assert!(count.is_some_and(|count| count <= 6), "{line}");
        assert!(laws.contains(&law), "the same law, sensitivity and observer: {line}");
    }
    // For each contribution, what may be seen of it whatever the path.
    for lines in [&real, &simulated] {
        let counts = |track: &str| -> Vec<u64> {
            let on = lines.iter().filter(|line| line["track"] == track);
            on.map(|line| line["count"].as_u64().expect("a count")).collect()
        };
        assert_eq!((counts("token"), counts("token").is_empty()), (counts("reissues"), false));
    }
    let spent = |name: &str| {
        json(place, &format!("privacy epsilon --ledger {name}/ledger.jsonl --delta 1e-6"))["epsilon"].clone()
    };
    assert_eq!(spent("real"), spent("simulated"));
}

const MEMBERS: usize = 5;

/// So many peers that run this task.
fn peers(place: &Path, task: &str, members: usize) -> Vec<Peer> {
    write(place, "task.toml", task);
    let mut peers = Vec::new();
    for (k, port) in (0..members).zip(ports(members)) {
        let name = format!("m{k}");
        write(place, &format!("{name}.csv"), &format!("agent,x\n{name},0.{k:02}\n"));
        peers.push(Peer::init(place, "task.toml", &name, &format!("{name}.csv"), port, 0.05));
    }
    for k in 0..members {
        (0..members).filter(|j| *j != k).for_each(|j| peers[k].meet(&peers[j], 1.0));
    }
    peers
}

/// Contributions that stand on a peer's disk, each with what may be seen of it whatever the path.
fn contributions(peer: &Peer) -> u64 {
    let ledger = peer.step().map(|step| step.ledger).unwrap_or_default();
    let count = |track| ledger.charges().filter(|one| one.track == track).map(|one| one.count).sum::<u64>();
    assert_eq!(count(Track::Token), count(Track::Reissues), "{}", peer.name);
    count(Track::Token)
}

/// Holders are killed while the token walks: it ends, and nobody contributes beyond its bound, or is charged twice. In the long version twenty members are
/// killed 200 times, with a time-out so short that many are passed over, and whoever has just held the token is killed.
#[test]
fn a_token_survives_holders_that_are_killed_and_come_back() {
    let is_long = std::env::var_os("SOTTOVOCE_SOAK").is_some();
    let (members, kills, hops, most, timeout) =
        if is_long { (20, 200, 20_000, 3_000, 0.3) } else { (MEMBERS, 6, 60, 9, 10.0) };
    let place = support::folder();
    let budget =
        format!("[privacy]\nepsilon = 5\ndelta = 1e-6\ncontributions = {most}\n[token]\ntimeout = {timeout}\n");
    let mut peers = peers(place.path(), &format!("{TASK}{RANGE}[run]\nhops = {hops}\n{budget}"), members);
    peers.iter_mut().for_each(Peer::start);
    until("the token is on its way", || peers.iter().all(|peer| peer.step().is_some()));
    let events =
        |peers: &[Peer]| -> Vec<u64> { peers.iter().map(|peer| peer.step().map_or(0, |step| step.events)).collect() };
    let (mut killed, mut active) = (0, 0);
    for kill in 0..kills {
        let before = events(&peers);
        std::thread::sleep(Duration::from_millis(20 + 37 * kill as u64 % 90));
        // Whoever has moved most has the token, or had it last.
        let moved =
            events(&peers).iter().zip(&before).map(|(now, then)| now - then).enumerate().max_by_key(|one| one.1);
        let (holder, moves) = moved.expect("some");
        let victim = if is_long && moves > 0 { holder } else { (2 * kill + 1) % members };
        peers[victim].kill();
        peers[victim].start();
        (killed, active) = (killed + 1, active + u32::from(moves > 0));
    }
    until_quiet(&mut peers.iter_mut().collect::<Vec<_>>());
    let known = peers[0].status();
    assert!(known["estimate"].is_number(), "{known}");
    let mut all = 0;
    for peer in &mut peers {
        let status = peer.status();
        assert_eq!((&status["estimate"], &status["observer"]), (&known["estimate"], &"any one other member".into()));
        peer.stop();
        let made = contributions(peer);
        assert!(made <= most, "{}: {made}", peer.name);
        all += made;
    }
    println!(
        "{killed} kills, {active} of them while the token moved; {all} contributions, {} reissues",
        known["passed_over"]
    );
    assert!(is_long || (25..=45).contains(&all), "60 hops, of which some were beyond the bound or too near: {all}");
    assert!(!is_long || active * 2 > kills as u32, "the token was still on its way: {active}");
}

/// One is killed for good: its hops go on without it after the time-out, and nothing is lost but its contributions.
#[test]
fn one_that_is_gone_for_good_is_passed_over_and_holds_nobody_up() {
    for (law, gone) in [("", 2), ("[privacy]\nepsilon = 5\ndelta = 1e-6\n", 3)] {
        let place = support::folder();
        let task = format!("{TASK}{RANGE}[run]\nhops = 30\n{law}[token]\ntimeout = 1\n");
        let mut peers = peers(place.path(), &task, MEMBERS);
        let others = || (0..MEMBERS).filter(|k| *k != gone);
        for k in others() {
            // With all as witnesses nobody would say anything while one is away.
            let file = format!("m{k}/peer.toml");
            write(place.path(), &file, &format!("witnesses = 3\n{}", read(place.path(), &file)));
            peers[k].start();
        }
        until("the others know", || others().all(|k| peers[k].status()["estimate"].is_number()));
        let known = peers[0].status();
        for k in others() {
            let status = peers[k].status();
            assert_eq!(status["estimate"], known["estimate"], "{}", peers[k].name);
            peers[k].stop();
        }
        // Of 30 draws among five some fell on it.
        assert!(known["passed_over"].as_u64().is_some_and(|passed| passed > 0), "{known}");
    }
}

const SGD: &str = "name = \"halves\"\nalgorithm = \"walk-sgd\"\n[data]\ntrain = \"points.csv\"\nsplit = 0.25\nnormalize = \"l2\"\n[model]\nintercept = true\nstep = 0.2\n[run]\nhops = 2000\n";
const BUDGET: &str = "[privacy]\nepsilon = 10\ndelta = 1e-6\nclip = 0.5\n";

/// Fifty agents with four points each, on two sides of a line.
fn points() -> String {
    let row = |k: usize| {
        let (x, y) = ((k * 37 % 101) as f64 / 101.0 - 0.5, (k * 53 % 97) as f64 / 97.0 - 0.5);
        format!("p{:02},{},{x:.4},{y:.4}\n", k / 4, if x - 0.5 * y > 0.05 { 1 } else { -1 })
    };
    (0..200).fold("agent,label,x,y\n".to_owned(), |text, k| text + &row(k))
}

#[test]
fn one_model_is_learned_by_a_token_and_by_those_it_is_compared_with() {
    let place = place("");
    let place = place.path();
    write(place, "points.csv", &points());
    let run = |name: &str, task: &str| {
        write(place, &format!("{name}.toml"), task);
        json(place, &format!("train {name}.toml --out {name}"))
    };
    let number =
        |summary: &serde_json::Value, key: &str| summary[key].as_f64().unwrap_or_else(|| panic!("{key}: {summary}"));
    let exact = run("exact", SGD);
    assert!(exact["accuracy"]["mean"].as_f64().is_some_and(|right| right > 0.9), "{exact}");
    assert!(number(&exact, "objective") < 0.4 && exact["holders"] == 50, "{exact}");
    assert_eq!(read(place, "exact/model.csv").lines().next(), Some("x,y,intercept"));
    let network = run("network", &format!("{SGD}{BUDGET}"));
    assert_eq!((&network["observer"], &network["unit"]), (&"any one other member".into(), &"agent".into()));
    let local = run("local", &format!("{SGD}{BUDGET}trust = \"nobody\"\n"));
    let central = run("central", &format!("{SGD}{BUDGET}trust = \"curator\"\n"));
    assert_eq!(
        (&local["observer"], &central["observer"]),
        (&"everyone".into(), &"everyone but a trusted curator".into())
    );
    for summary in [&network, &local, &central] {
        assert!(number(summary, "epsilon") <= 10.0 && number(summary, "epsilon") > 9.9, "{summary}");
    }
    for (name, summary) in [("network", &network), ("local", &local), ("central", &central)] {
        let again = json(place, &format!("privacy epsilon --ledger {name}/ledger.jsonl --delta 1e-6"));
        assert_eq!((&again["epsilon"], &again["observer"]), (&summary["epsilon"], &summary["observer"]), "{name}");
        let resolved = json(place, &format!("train {name}/task.toml --out {name}-again"));
        assert_eq!(resolved["digest"], summary["digest"], "{name}: the task as resolved is the same task");
    }
    // sigma / sensitivity: the curator needs least, and nobody's trust most.
    let noise = |name: &str| {
        let ledger = read(place, &format!("{name}/ledger.jsonl"));
        let line: serde_json::Value = serde_json::from_str(ledger.lines().last().expect("a charge")).expect("JSON");
        line["noise_multiplier"].as_f64().expect("a number")
    };
    assert!(noise("central") < noise("network") && noise("network") < noise("local"));
}

#[test]
fn what_descent_by_a_token_cannot_do_is_refused_in_one_line() {
    let place = place("");
    let place = place.path();
    write(place, "points.csv", &points());
    let private = format!("{SGD}{BUDGET}");
    for (task, says) in [
        (SGD.replace("step = 0.2\n", ""), "model.step is missing"),
        (private.replace("step = 0.2", "step = 4.5"), "beyond which a step is no contraction"),
        (private.replace("step = 0.2", "step = { first = 1.0 }"), "model.step is"),
        (private.replace("intercept = true", "intercept = true\nloss = \"hinge\""), "has no gradient at its kink"),
        (
            private.replace("intercept = true", "loss = \"squared\"").replace("clip = 0.5\n", ""),
            "privacy.clip is missing",
        ),
        (private.replace("clip = 0.5", "clip = 0"), "privacy.clip is 0"),
        (private.replace("normalize = \"l2\"\n", ""), "needs a public bound on the features"),
        (format!("{private}unit = \"record\"\n"), "accepted: unit = \"agent\""),
        (format!("{private}updates = 3\n"), "accepted with walk-sgd: no privacy.updates"),
        (format!("{private}mechanism = \"laplace\"\n"), "accepted: mechanism = \"gaussian\""),
        (format!("{private}colluders = 49\n"), "at most 48 may collude"),
        (format!("{private}colluders = 2\ntrust = \"nobody\"\n"), "accepted with privacy.trust: neither"),
        (private.replace("intercept = true", "trade-off = 2"), "learns one for all"),
        (private.replace("intercept = true", "regularization = \"1/m\""), "accepted: a number"),
        (private.replace("[model]", "[graph]\nkind = \"knn\"\n[model]"), "computes the graph from private data"),
        (
            private.replace("walk-sgd", "coordinate-descent").replace("hops = 2000", "seed = 1"),
            "model.step is about gradient steps",
        ),
    ] {
        write(place, "task.toml", &task);
        let said = refused(place, "train task.toml --out run");
        assert!(said.contains(says), "{said} should say {says}");
    }
}

/// Record and replay from the views of members and of coalitions, and a bound from one member's view, or that of as many as the claim names.
#[test]
fn an_audit_sees_a_token_as_members_do_and_finds_no_more_than_is_claimed() {
    let place = place("");
    let place = place.path();
    let rows = (0..10).fold("agent,x\n".to_owned(), |text, k| text + &format!("a{k},{}\n", f64::from(k) / 10.0));
    write(place, "rows.csv", &rows);
    write(place, "points.csv", &points());
    let sums = format!("{TASK}{RANGE}[run]\nhops = 60\n[privacy]\nepsilon = 8\ndelta = 1e-3\nunit = \"agent\"\n");
    let descent = format!("{SGD}{BUDGET}").replace("hops = 2000", "hops = 300").replace("delta = 1e-6", "delta = 1e-3");
    let several = format!("{sums}colluders = 2\n[token]\ncount = 2\nreissues = 0\n");
    for (name, task, seen_by) in [("sums", &sums, 1), ("several", &several, 2), ("descent", &descent, 1)] {
        write(place, &format!("{name}.toml"), task);
        let found = json(place, &format!("audit {name}.toml --trials 400"));
        assert_eq!((&found["verdict"], &found["findings"]), (&"not refuted".into(), &serde_json::json!([])), "{name}");
        let number = |key: &str| found[key].as_f64().unwrap_or_else(|| panic!("{key}: {found}"));
        assert!(number("lower_bound") > 0.2 && number("lower_bound") <= number("epsilon"), "{name}: {found}");
        assert!(found["observer"].as_str().is_some_and(|observer| observer.contains("member")), "{found}");
        assert_eq!(found["runs"]["seen_by"].as_array().map(Vec::len), Some(seen_by), "{found}");
        let moved = found["replay"]["largest_move"].as_f64().expect("a number");
        assert!(moved > 0.3 && moved <= 1.0, "{name}: {found}");
        // Thirteen neighbours and more, each member and twenty coalitions of each.
        assert!(found["replay"]["views"].as_u64().is_some_and(|views| views > 2_000), "{name}: {found}");
        let said = done(place, &format!("audit {name}.toml --trials 20"));
        assert!(said.contains("coalitions of two and of five") && said.contains("seen by"), "{said}");
    }
    // A ring that counts answers has no sum to look at.
    let bins =
        sums.replace("\"walk\"", "\"ring\"").replace("hops = 60", "rounds = 1").replace("unit = \"agent\"\n", "");
    write(place, "bins.toml", &bins.replace("\"mean\"", "\"histogram\"").replace("range", "bins = 4\nrange"));
    let said = refused(place, "audit bins.toml");
    assert!(said.contains("accepted: a task that protects from everyone, or sums and models by a token"), "{said}");
}

#[test]
fn a_ring_counts_rows_in_bins_and_hides_each_among_all_others() {
    let place = place("");
    let place = place.path();
    let rows =
        (0..300).fold("agent,x\n".to_owned(), |text, k| text + &format!("a{k:03},{}\n", f64::from(k % 10) / 10.0));
    write(place, "rows.csv", &rows);
    let task = "name = \"ages\"\nalgorithm = \"ring\"\n[data]\ntrain = \"rows.csv\"\n[statistic]\nkind = \"histogram\"\ncolumns = [\"x\"]\nrange = [0, 1]\nbins = 5\n[run]\nrounds = 2\n";
    let private = format!("{task}[privacy]\nepsilon = 1\ndelta = 1e-6\n");
    write(place, "exact.toml", task);
    let exact = json(place, "measure exact.toml --out exact");
    assert_eq!(
        (&exact["estimate"], &exact["error"]),
        (&serde_json::json!([60.0, 60.0, 60.0, 60.0, 60.0]), &0.0.into())
    );
    write(place, "private.toml", &private);
    let found = json(place, "measure private.toml --out private");
    let number = |key: &str| found[key].as_f64().unwrap_or_else(|| panic!("{key}: {found}"));
    assert!(
        number("epsilon") <= 1.0 && number("epsilon") > 0.99 && found["observer"] == "any one other member",
        "{found}"
    );
    assert!(number("error") < 3.0 * number("error_predicted") && number("error_predicted") < 150.0, "{found}");
    let ledger = read(place, "private/ledger.jsonl");
    let header = "{\"ledger\":1,\"unit\":\"record\",\"observer\":\"any one other member\",\"answers\":{\"members\":300,\"rounds\":2,\"cells\":5}}";
    assert_eq!(ledger.lines().next(), Some(header));
    let line: serde_json::Value = serde_json::from_str(ledger.lines().nth(1).expect("a charge")).expect("JSON");
    assert_eq!((&line["mechanism"], &line["count"]), (&"randomized-response".into(), &2.into()));
    assert!(
        line["epsilon"].as_f64().is_some_and(|local| local > 1.0),
        "each answer alone is clearer than the whole budget: {line}"
    );
    let again = json(place, "privacy epsilon --ledger private/ledger.jsonl --delta 1e-6");
    assert_eq!((&again["epsilon"], &again["observer"]), (&found["epsilon"], &found["observer"]));
    for (task, says) in [
        (format!("{private}colluders = 2\n"), "two members can stand on both sides"),
        (format!("{private}[token]\nreissues = 1\n"), "passes nobody over"),
        (format!("{private}[token]\nrelease = \"last\"\n"), "told to everyone"),
        (private.replace("bins = 5\n", ""), "statistic.bins is missing"),
    ] {
        write(place, "task.toml", &task);
        let said = refused(place, "measure task.toml --out run");
        assert!(said.contains(says), "{said} should say {says}");
    }
    write(place, "task.toml", &format!("{private}unit = \"agent\"\n"));
    write(place, "rows.csv", &(rows + "a000,0.5\n"));
    assert!(refused(place, "measure task.toml --out run").contains("answers for each of them"));
}

/// Along the edges of a ring with chords: each pair has its own epsilon, which falls with the distance; the worst keeps the budget, or the mean.
#[test]
fn a_model_learned_along_edges_says_what_each_learns_of_each() {
    let task = format!("{}[graph]\nkind = \"torus\"\nrows = 4\ncolumns = 5\n", SGD.replace("2000", "200"));
    let private = format!("{task}[privacy]\nepsilon = 2\ndelta = 1e-6\nclip = 0.4\ncontributions = 4\n");
    let place = place(&private);
    let place = place.path();
    let rows = (0..80).fold("agent,label,x1,x2\n".to_owned(), |text, k| {
        let (x, y) = (f64::from(k * 7 % 40) / 40.0 - 0.5, f64::from(k * 13 % 40) / 40.0 - 0.5);
        text + &format!("a{:02},{},{x},{y}\n", k % 20, if x > y { 1 } else { -1 })
    });
    write(place, "points.csv", &rows);
    let summary = json(place, "train task.toml --out run");
    let number = |summary: &serde_json::Value, key: &str| summary[key].as_f64().unwrap_or_else(|| panic!("{summary}"));
    assert_eq!((&summary["unit"], &summary["observer"]), (&"agent".into(), &"each one other member, by pair".into()));
    let epsilons = |run: &str| -> Vec<f64> {
        let text = read(place, &format!("{run}/pairs.csv"));
        text.lines()
            .skip(1)
            .map(|line| line.rsplit(',').next().and_then(|e| e.parse().ok()).expect("a number"))
            .collect()
    };
    let found = epsilons("run");
    let (worst, least) = found.iter().fold((0.0f64, f64::INFINITY), |(a, b), e| (a.max(*e), b.min(*e)));
    assert_eq!(found.len(), 20 * 19);
    assert!(worst <= 2.0 && worst > 1.9 && least < 0.95 * worst, "{worst} {least}");
    assert!((number(&summary, "epsilon") - worst).abs() < 1e-6, "{summary}");
    let again = json(place, "privacy epsilon --ledger run/ledger.jsonl --delta 1e-6");
    assert!((number(&again, "epsilon") - worst).abs() < 1e-6 && again["observer"] == summary["observer"], "{again}");
    assert_eq!(json(place, "train run/task.toml --out resolved")["digest"], summary["digest"]);
    // Whatever a task says of the noise, it is found anew.
    let text = read(place, "run/task.toml");
    let line = text.lines().find(|line| line.starts_with("noise-multiplier")).expect("written by the run");
    write(place, "bent.toml", &text.replace(line, "noise-multiplier = 0.01"));
    assert_eq!(json(place, "train bent.toml --out bent")["epsilon"], summary["epsilon"]);
    write(place, "mean.toml", &format!("{private}pairs = \"mean\"\n"));
    let mean = json(place, "train mean.toml --out mean");
    assert!(number(&mean, "epsilon_mean") <= 2.0 && number(&mean, "epsilon_mean") > 1.9, "{mean}");
    assert!(number(&mean, "epsilon") > number(&mean, "epsilon_mean"), "{mean}");
    let open = json(place, &{
        write(place, "open.toml", &task);
        "train open.toml --out open".to_owned()
    });
    assert!(open["epsilon"] == "infinity" && !place.join("open/pairs.csv").exists(), "{open}");
    write(place, "edges.csv", "a,b,weight\na00,a01,1\na02,a03,1\n");
    for (task, says) in [
        (
            private.replace("kind = \"torus\"\nrows = 4\ncolumns = 5", "edges = \"edges.csv\"\nallow-isolated = true"),
            "not connected",
        ),
        (format!("{private}colluders = 2\n"), "accepted with [graph]: neither"),
        (format!("{private}trust = \"curator\"\n"), "accepted with [graph]: \"network\", \"nobody\""),
        (format!("{private}[token]\ncount = 2\n"), "accepted with [graph]: 1"),
        (format!("{private}[token]\nreissues = 1\n"), "the token waits for whoever has it"),
        (
            private.replace("[graph]\nkind = \"torus\"\nrows = 4\ncolumns = 5\n", "") + "pairs = \"mean\"\n",
            "a [graph] that is not complete",
        ),
    ] {
        write(place, "bad.toml", &task);
        let said = refused(place, "train bad.toml --out bad");
        assert!(said.contains(says), "{said}");
    }
}
