//! A sum by a token on a ring, as its owners run it: in the simulator, and between real processes that die.

mod support;

use std::path::Path;
use std::time::Duration;
use support::{Peer, done, json, ports, read, refused, until, until_quiet, write};

const TASK: &str = "name = \"visits\"\nalgorithm = \"ring\"\n[data]\ntrain = \"rows.csv\"\n[statistic]\nkind = \"sum\"\ncolumns = [\"x\"]\n";
const RANGE: &str = "range = [0, 1]\n";
const PRIVATE: &str = "[run]\nrounds = 2\n[privacy]\nepsilon = 1\ndelta = 1e-6\n";

/// Eight agents, of which one has two rows; one value is beyond the range. The sum of what counts is 4.5, of nine rows.
const ROWS: &str = "agent,city,x\na,Rome,0.25\nb,Oslo,0.5\nc,Bern,1\nd,Riga,0\ne,Rome,0.5\nf,Oslo,7\ng,Bern,0.25\nh,Riga,0.75\nh,Rome,0.25\n";

fn place(rows: &str, task: &str) -> tempfile::TempDir {
    let place = support::folder();
    write(place.path(), "rows.csv", rows);
    write(place.path(), "task.toml", task);
    place
}

#[test]
fn a_ring_measures_sums_and_means_and_says_against_whom_it_protects() {
    let place = place(ROWS, &format!("{TASK}{RANGE}"));
    let place = place.path();
    let exact = json(place, "measure task.toml --out exact");
    assert_eq!((&exact["estimate"], &exact["exact"], &exact["error"]), (&4.5.into(), &4.5.into(), &0.0.into()));
    assert_eq!((&exact["epsilon"], &exact["observer"]), (&"infinity".into(), &"everyone".into()));
    assert!(exact.get("error_predicted").is_none() && exact["quiet"] == true, "{exact}");

    write(place, "private.toml", &format!("{TASK}{RANGE}{PRIVATE}"));
    let private = json(place, "measure private.toml --out private");
    let number = |key: &str| private[key].as_f64().unwrap_or_else(|| panic!("{key}: {private}"));
    assert_eq!((&private["unit"], &private["observer"]), (&"record".into(), &"any one other member".into()));
    assert!(number("epsilon") <= 1.0 && number("epsilon") > 0.5 && private["delta"] == 1e-6, "{private}");
    assert!(number("error") < 5.0 * number("error_predicted") && number("error") > 0.0, "{private}");
    let ledger = read(place, "private/ledger.jsonl");
    let lines: Vec<&str> = ledger.lines().collect();
    let header = "{\"ledger\":1,\"unit\":\"record\",\"observer\":\"any one other member\",\"ring\":{\"members\":8,\"colluders\":1,\"noise\":\"one\"}}";
    assert_eq!((lines[0], lines.len()), (header, 17), "{ledger}");
    assert!(lines[1..].iter().all(|line| line.contains("\"one-member\"")), "{ledger}");
    // Each contribution, and what may be seen again of it.
    let count = |track: &str, count: u64| {
        let is = |line: &&&str| line.contains(track) && line.contains(&format!("\"count\":{count}"));
        lines.iter().filter(is).count()
    };
    assert_eq!((count("\"token\"", 2), count("\"reissues\"", 4)), (8, 8), "{ledger}");
    let again = json(place, "privacy epsilon --ledger private/ledger.jsonl --delta 1e-6");
    assert_eq!((&again["epsilon"], &again["observer"]), (&private["epsilon"], &private["observer"]));
    let report = read(place, "private/report.html");
    assert!(report.contains("against any one other member") && !report.contains("against everyone"), "{report}");
    assert!(report.contains("a standard deviation of ") && !report.contains("missing"), "{report}");
    // Without reissues the same budget buys half of the variance.
    write(place, "patient.toml", &format!("{TASK}{RANGE}{PRIVATE}[token]\nreissues = 0\n"));
    let patient = json(place, "measure patient.toml --out patient");
    let ratio = number("error_predicted") / patient["error_predicted"].as_f64().expect("a figure");
    assert!((ratio - 2f64.sqrt()).abs() < 0.01, "{ratio}");
    // A range far from zero costs what its width does.
    write(place, "far.toml", &format!("{TASK}range = [1000000, 1000001]\n{PRIVATE}"));
    let far = json(place, "measure far.toml --out far");
    assert_eq!((&far["error_predicted"], &far["exact"]), (&private["error_predicted"], &9e6.into()));
    assert!(far["error"].as_f64().is_some_and(|error| error < 5.0 * number("error_predicted")), "{far}");
    let said = done(place, "measure private.toml --out private --force");
    assert!(said.contains("any one other member") && said.contains("standard deviation by the formula"), "{said}");
    let resolved = json(place, "measure private/task.toml --out resolved");
    assert_eq!(resolved["digest"], private["digest"], "the task as resolved is the same task");

    // The last holder alone knows a mean over agents.
    let last = format!(
        "{TASK}{RANGE}[privacy]\nepsilon = 1\nmechanism = \"laplace\"\nunit = \"agent\"\n[token]\nrelease = \"last\"\n"
    );
    write(place, "last.toml", &last.replace("\"sum\"", "\"mean\""));
    let last = json(place, "measure last.toml --out last");
    assert_eq!((&last["unit"], &last["exact"], &last["estimates_std"]), (&"agent".into(), &0.5.into(), &0.0.into()));
    assert!(last["epsilon"].as_f64().is_some_and(|epsilon| epsilon <= 1.0), "{last}");
    let estimates = read(place, "last/estimates.csv");
    assert!(estimates.lines().count() == 2 && estimates.contains("\nh,"), "{estimates}");
    write(place, "all.toml", &format!("{TASK}{RANGE}{PRIVATE}colluders = 2\n[token]\nnoise = \"all\"\n"));
    assert_eq!(json(place, "measure all.toml --out all")["observer"], "at most 2 colluding members");
}

#[test]
fn what_a_ring_cannot_do_is_refused_in_one_line() {
    let private = format!("{TASK}{RANGE}{PRIVATE}");
    let place = place(ROWS, "");
    let place = place.path();
    for (task, says) in [
        (format!("{private}colluders = 2\n"), "accepted: colluders = 1, or token.noise = \"all\""),
        (format!("{private}[token]\nreissues = 2\n"), "accepted with noise: 0 or 1"),
        (
            format!("{private}colluders = 2\n[token]\nnoise = \"all\"\nreissues = 1\n"),
            "accepted: token.reissues = 0, and the token waits for whoever has it, or colluders = 1",
        ),
        (private.replace("[0, 1]", "[0, 1e-305]"), "by 1e-300 to 1e65"),
        (format!("{private}mechanism = \"laplace\"\n[token]\nnoise = \"all\"\n"), "accepted: gaussian"),
        (private.replace(RANGE, ""), "statistic.range is missing"),
        (private.replace("delta = 1e-6\n", ""), "privacy.delta is missing"),
        (format!("{private}clip = 1\n"), "privacy.clip is for tasks that learn models"),
        (format!("{private}colluders = 7\n[token]\nnoise = \"all\"\n"), "accepted: 1 to 6"),
        (private.replace("[statistic]", "record = \"city\"\n[statistic]"), "no data.record"),
        (format!("{TASK}[graph]\nkind = \"ring\"\n"), "accepted: no [graph]"),
        (format!("{TASK}[run]\ntolerance = 1e-6\n"), "accepted: no run.tolerance"),
        (TASK.replace("columns = [\"x\"]", "columns = [\"x\", \"x2\"]"), "no column \"x2\""),
        (TASK.replace("\"sum\"", "\"gini\""), "kind = \"mean\", \"sum\" or \"histogram\""),
    ] {
        write(place, "task.toml", &task);
        let said = refused(place, "measure task.toml --out run");
        assert!(said.contains(says), "{says}: {said}");
    }
    let rows: String = (0..1_100).map(|k| format!("m{},1\n", k % 3)).collect();
    write(place, "rows.csv", &format!("agent,x\n{rows}"));
    write(place, "task.toml", &private.replace("rounds = 2", "rounds = 1000000"));
    let said = refused(place, "measure task.toml --out run");
    assert!(said.contains("the most rows of one up to 1073741824"), "{said}");
    write(place, "task.toml", &private);
    write(place, "rows.csv", "agent,x\na,1\nb,2\n");
    assert!(refused(place, "measure task.toml --out run").contains("a ring of 2 members; accepted: 3 and more"));
    assert!(refused(place, "audit task.toml").contains("a ring of 2 members"));
    write(place, "rows.csv", ROWS);
    for (noise, seen_by) in
        [("", 1), ("mechanism = \"laplace\"\n", 1), ("colluders = 2\n[token]\nnoise = \"all\"\n", 2)]
    {
        write(place, "audited.toml", &format!("{private}{noise}"));
        let found = json(place, "audit audited.toml --trials 200");
        assert_eq!((&found["verdict"], &found["findings"]), (&"not refuted".into(), &serde_json::json!([])), "{noise}");
        assert_eq!(found["runs"]["seen_by"].as_array().map(Vec::len), Some(seen_by), "{found}");
        let number = |part: &str, key: &str| found[part][key].as_f64().unwrap_or_else(|| panic!("{key}: {found}"));
        assert!(number("replay", "views") > 100.0, "{found}");
        assert!(number("replay", "largest_move") > 0.3 && number("replay", "largest_move") <= 1.0, "{found}");
        assert!(found["lower_bound"].as_f64() <= found["epsilon"].as_f64(), "{found}");
    }
    // Whatever a row of a private task holds, it is read.
    write(place, "rows.csv", &ROWS.replace("b,Oslo,0.5", "b").replace("c,Bern,1", "c,Bern,many,more"));
    assert_eq!(json(place, "measure task.toml --out run")["exact"], 3.0);
    write(
        place,
        "gossip.toml",
        &TASK
            .replace("\"ring\"", "\"gossip\"")
            .replace("[statistic]", "[run]\nrounds = 2\n[graph]\nkind = \"ring\"\n[statistic]"),
    );
    assert!(refused(place, "measure gossip.toml --out run").contains("accepted with run.rounds: algorithm = \"ring\""));
}

/// Eight real processes: exactly the sum, and with `[privacy]` the simulator's law and its charges.
#[test]
fn eight_processes_find_what_the_simulator_finds() {
    let place = place(ROWS, &format!("{TASK}{RANGE}"));
    let place = place.path();
    write(place, "private.toml", &format!("{TASK}{RANGE}{PRIVATE}"));
    let exact = json(place, "network task.toml --out exact --interval 0.05 --time-limit 80");
    assert_eq!(
        (&exact["estimate"], &exact["estimates_std"], &exact["quiet"]),
        (&4.5.into(), &0.0.into(), &true.into())
    );
    assert_eq!(read(place, "exact/estimates.csv").lines().count(), 9, "everyone is told");
    let private = json(place, "network private.toml --out private --interval 0.05 --time-limit 80");
    let simulated = json(place, "measure private.toml --out simulated");
    for key in ["epsilon", "delta", "unit", "observer", "error_predicted"] {
        assert_eq!(private[key], simulated[key], "{key}");
    }
    assert!(private.get("exact").is_none() && private["quiet"] == true, "{private}");
    let number = |key: &str| private[key].as_f64().unwrap_or_else(|| panic!("{key}: {private}"));
    let error = (number("estimate") - 4.5).abs();
    assert!(error > 0.0 && error < 5.0 * number("error_predicted"), "{private}");
    assert_eq!(read(place, "private/ledger.jsonl"), read(place, "simulated/ledger.jsonl"));
}

/// What the last holder knows may hold contributions bare, for whoever knows the token before them.
#[test]
fn what_only_the_last_holder_may_know_is_in_no_file_of_a_network() {
    let last = format!("{TASK}{RANGE}{PRIVATE}[token]\nrelease = \"last\"\n");
    let place = place(ROWS, &last);
    let place = place.path();
    let told = json(place, "network task.toml --out told --interval 0.05 --time-limit 80");
    assert_eq!(
        (&told["quiet"], &told["informed"], &told["estimate"]),
        (&true.into(), &0.into(), &serde_json::json!([]))
    );
    assert_eq!(read(place, "told/estimates.csv"), "agent,estimate\n");
}

const MEMBERS: usize = 5;

/// A value for each of five members, whose sum tells how often each contributed.
fn digits(k: usize) -> u64 {
    256u64.pow(k as u32)
}

/// How often each member is in a sum over all rounds, from the estimate, which is over one.
fn counts(estimate: f64, rounds: u64) -> Vec<u64> {
    let sum = (estimate * rounds as f64).round() as u64;
    (0..MEMBERS).map(|k| sum / digits(k) % 256).collect()
}

/// Five peers that list each other.
fn peers(place: &Path, task: &str, value: impl Fn(usize) -> String) -> Vec<Peer> {
    write(place, "task.toml", task);
    let mut peers = Vec::new();
    for (k, port) in (0..MEMBERS).zip(ports(MEMBERS)) {
        let name = format!("m{k}");
        write(place, &format!("{name}.csv"), &format!("agent,x\n{name},{}\n", value(k)));
        peers.push(Peer::init(place, "task.toml", &name, &format!("{name}.csv"), port, 0.05));
    }
    for k in 0..MEMBERS {
        (0..MEMBERS).filter(|j| *j != k).for_each(|j| peers[k].meet(&peers[j], 1.0));
    }
    peers
}

/// Kills one after another while the token goes round, and starts it again.
fn storm(peers: &mut [Peer], kills: usize, away: Duration) {
    peers.iter_mut().for_each(Peer::start);
    until("the token is on its way", || peers.iter().all(|peer| peer.step().is_some()));
    for kill in 0..kills {
        std::thread::sleep(Duration::from_millis(20 + 37 * kill as u64 % 90));
        let victim = (2 * kill + 1) % MEMBERS;
        peers[victim].kill();
        std::thread::sleep(away);
        peers[victim].start();
    }
    until_quiet(&mut peers.iter_mut().collect::<Vec<_>>());
}

fn estimate(peer: &mut Peer) -> f64 {
    peer.status()["estimate"].as_f64().unwrap_or_else(|| panic!("{} knows nothing: {}", peer.name, peer.log()))
}

/// Nobody is given up: a token that was with whoever was killed goes on when it is back.
#[test]
fn a_member_that_is_killed_and_comes_back_counts_once_in_each_round() {
    let place = support::folder();
    let rounds = 60;
    let task = format!("{TASK}[run]\nrounds = {rounds}\n[token]\ntimeout = 1e6\n");
    let mut peers = peers(place.path(), &task, |k| digits(k).to_string());
    storm(&mut peers, 12, Duration::from_millis(10));
    for peer in &mut peers {
        assert_eq!(counts(estimate(peer), rounds), vec![rounds; MEMBERS], "{}", peer.name);
        peer.stop();
    }
}

/// The same with privacy: each contribution is charged once, however often anybody is killed.
#[test]
fn a_private_member_that_is_killed_is_charged_once_for_each_round() {
    let place = support::folder();
    let rounds = 12;
    let task = format!(
        "{TASK}{RANGE}[run]\nrounds = {rounds}\n[privacy]\nepsilon = 5\ndelta = 1e-6\n[token]\ntimeout = 1e6\n"
    );
    let mut peers = peers(place.path(), &task, |k| format!("0.{k}"));
    storm(&mut peers, 6, Duration::from_millis(10));
    let known = estimate(&mut peers[0]);
    for peer in &mut peers {
        assert_eq!(estimate(peer), known, "all learn the same");
        let status = peer.status();
        assert_eq!((&status["unit"], &status["observer"]), (&"record".into(), &"any one other member".into()));
        assert!(status["epsilon_spent"].as_f64().is_some_and(|spent| spent > 0.0 && spent <= 5.0), "{status}");
        peer.stop();
        let ledger = peer.step().expect("a step").ledger;
        assert_eq!(ledger.releases(), 3 * rounds, "{}: {ledger:?}", peer.name);
    }
}

/// A time-out that is far too short for who is away: members are passed over, tokens are issued again, and nobody counts twice in a round.
#[test]
fn a_member_that_is_away_for_longer_than_the_time_out_never_counts_twice() {
    let place = support::folder();
    let rounds = 25;
    let task = format!("{TASK}[run]\nrounds = {rounds}\n[token]\ntimeout = 0.2\n");
    let mut peers = peers(place.path(), &task, |k| digits(k).to_string());
    storm(&mut peers, 4, Duration::from_millis(700));
    for peer in &mut peers {
        let counts = counts(estimate(peer), rounds);
        assert!(counts.iter().all(|count| *count <= rounds) && counts.iter().any(|count| *count > 0), "{counts:?}");
        peer.stop();
    }
}

/// One is killed for good after it has contributed, so that it may have passed the token on unheard. The others end, and their results say what is missing.
#[test]
fn one_that_is_gone_for_good_is_passed_over_and_holds_nobody_up() {
    let place = support::folder();
    let (rounds, gone) = (3, 2);
    // So long that a busy machine is not taken for a member that has gone.
    let task = format!("{TASK}[run]\nrounds = {rounds}\n[token]\ntimeout = 5\n");
    let mut peers = peers(place.path(), &task, |k| digits(k).to_string());
    peers.iter_mut().for_each(Peer::start);
    until("it has contributed", || peers[gone].step().is_some_and(|step| step.ledger.releases() > 0));
    peers[gone].kill();
    let others = || (0..MEMBERS).filter(|k| *k != gone);
    until("the others know", || others().all(|k| peers[k].status()["estimate"].is_number()));
    for k in others() {
        let counts = counts(estimate(&mut peers[k]), rounds);
        assert!(others().all(|k| counts[k] == rounds) && counts[gone] <= rounds, "{counts:?}");
        assert_eq!(peers[k].status()["passed_over"], rounds - counts[gone], "{counts:?}");
        peers[k].stop();
    }
}

/// The same with privacy. One comes only after it was passed over, with what was sent to it: it pays for what it adds to the old token, and all learn the new one's sum.
#[test]
fn a_private_member_that_is_gone_is_passed_over_and_comes_back_with_an_old_token() {
    let place = support::folder();
    let (rounds, gone) = (2, 3);
    let task =
        format!("{TASK}{RANGE}[run]\nrounds = {rounds}\n[privacy]\nepsilon = 5\ndelta = 1e-6\n[token]\ntimeout = 2\n");
    let mut peers = peers(place.path(), &task, |k| format!("0.{k}"));
    let others = || (0..MEMBERS).filter(|k| *k != gone);
    for k in others() {
        // With all as witnesses nobody would say anything while one is away.
        let file = format!("m{k}/peer.toml");
        write(place.path(), &file, &format!("witnesses = 3\n{}", read(place.path(), &file)));
        peers[k].start();
    }
    until("the others know", || others().all(|k| peers[k].status()["estimate"].is_number()));
    peers[gone].start();
    until_quiet(&mut peers.iter_mut().collect::<Vec<_>>());
    let known = estimate(&mut peers[0]);
    for peer in &mut peers {
        let status = peer.status();
        assert_eq!(status["estimate"], known, "{}: all learn the same", peer.name);
        assert_eq!(status["passed_over"], rounds, "{}: {status}", peer.name);
        assert!(status["epsilon_spent"].as_f64().is_some_and(|spent| spent > 0.0 && spent <= 5.0), "{status}");
        peer.stop();
        // A contribution, and twice what may be seen again of it.
        let releases = peer.step().expect("a step").ledger.releases();
        assert!(releases.is_multiple_of(3) && releases <= 3 * rounds, "{}: {releases}", peer.name);
    }
}

/// Without reissues the token waits for whoever has it.
#[test]
fn a_token_without_reissues_waits_for_a_member_that_is_gone_and_passes_nobody_over() {
    let place = support::folder();
    let task = format!(
        "{TASK}{RANGE}[run]\nrounds = 2\n[privacy]\nepsilon = 5\ndelta = 1e-6\n[token]\ntimeout = 0.05\nreissues = 0\n"
    );
    let (rounds, gone) = (2, 3);
    let mut peers = peers(place.path(), &task, |k| format!("0.{k}"));
    let others = || (0..MEMBERS).filter(|k| *k != gone);
    others().for_each(|k| peers[k].start());
    until("they wait", || others().all(|k| peers[k].log().contains("started")));
    // Twenty time-outs later nobody knows anything.
    std::thread::sleep(Duration::from_secs(1));
    assert!(others().all(|k| peers[k].step().is_none_or(|step| step.ledger.releases() < rounds)));
    peers[gone].start();
    until_quiet(&mut peers.iter_mut().collect::<Vec<_>>());
    for peer in &mut peers {
        assert!(peer.status()["estimate"].is_number(), "{}", peer.name);
        peer.stop();
        let ledger = peer.step().expect("a step").ledger;
        assert_eq!(ledger.releases(), rounds, "{}: {ledger:?}", peer.name);
    }
}
