//! Sums under masks that cancel, as their owners run them: in the simulator, and between real processes that die.

mod support;

use sottovoce_algorithms::saved;
use sottovoce_core::Coin;
use sottovoce_encrypted::gopa::{Phase, State};
use std::path::Path;
use std::time::Duration;
use support::{Peer, done, json, ports, read, refused, until, write};

const TASK: &str = "name = \"visits\"\nalgorithm = \"gopa\"\n[data]\ntrain = \"rows.csv\"\n[statistic]\nkind = \"sum\"\ncolumns = [\"x\", \"y\"]\nrange = [0, 1]\n";
const PRIVATE: &str = "[privacy]\nepsilon = 1\ndelta = 1e-6\n";

/// Forty agents with one row each, but for one with two.
fn rows() -> String {
    let each = |k: u32| format!("a{k:02},{},{}\n", f64::from(k % 4) / 4.0, f64::from(k % 2));
    "agent,x,y\n".to_owned() + &(0..40).map(each).collect::<String>() + "a07,0.5,7\n"
}

fn place(task: &str) -> tempfile::TempDir {
    let place = support::folder();
    write(place.path(), "rows.csv", &rows());
    write(place.path(), "task.toml", task);
    place
}

#[test]
fn sums_and_means_under_masks_are_exact_or_private_against_everyone_and_a_coalition() {
    let place = place(TASK);
    let place = place.path();
    let exact = json(place, "measure task.toml --out exact");
    assert_eq!(exact["exact"], serde_json::json!([15.5, 21.0]), "{exact}");
    assert!(exact["error"].as_f64().is_some_and(|error| error < 1e-6) && exact["quiet"] == true, "{exact}");
    assert_eq!((&exact["epsilon"], &exact["observer"]), (&"infinity".into(), &"everyone".into()));

    write(
        place,
        "private.toml",
        &format!("{TASK}{PRIVATE}honest = 0.8\npresent = 0.9\n").replace("\"sum\"", "\"mean\""),
    );
    let private = json(place, "measure private.toml --out private");
    let number = |key: &str| private[key].as_f64().unwrap_or_else(|| panic!("{key}: {private}"));
    assert_eq!(private["observer"], "everyone and up to 8 colluding members");
    assert!(number("epsilon") <= 1.0 && number("epsilon") > 0.9, "{private}");
    assert!(number("error") > 0.0 && number("error") < 6.0 * number("error_predicted"), "{private}");
    let ledger = read(place, "private/ledger.jsonl");
    let lines: Vec<&str> = ledger.lines().collect();
    assert!(lines[0].contains("\"gopa\":{\"members\":40,\"colluders\":8,\"finishing\":36,"), "{ledger}");
    assert_eq!(lines.len(), 41);
    assert!(lines[1..].iter().all(|line| line.contains("\"coalition\"") && line.contains("\"count\":1")), "{ledger}");
    let again = json(place, "privacy epsilon --ledger private/ledger.jsonl --delta 1e-6");
    assert_eq!((&again["epsilon"], &again["observer"]), (&private["epsilon"], &private["observer"]));
    let resolved = json(place, "measure private/task.toml --out resolved");
    assert_eq!(resolved["digest"], private["digest"], "the task as resolved is the same task");
    assert!(
        done(place, "measure private.toml --out private --force").contains("everyone and up to 8 colluding members")
    );

    let plan = json(place, "privacy plan private.toml");
    assert_eq!((&plan["mask_std"], &plan["epsilon"], &plan["delta"]), (&"pads".into(), &1.0.into(), &1e-6.into()));
    assert!(plan["neighbours"].as_u64().is_some_and(|k| (5..40).contains(&k)), "{plan}");
    assert_eq!(plan["error_predicted"], private["error_predicted"]);
    assert!(plan["noise_std"].as_f64().is_some_and(|noise| noise > 0.0), "{plan}");
    let by = &plan["accountants"];
    assert!(by["exact"]["epsilon"].as_f64().is_some_and(|epsilon| epsilon <= 1.0 && epsilon > 0.99), "{plan}");
    assert!(by["rdp"]["epsilon"].as_f64() > by["exact"]["epsilon"].as_f64(), "{plan}");
    assert!(by.get("theorem").is_none(), "fewer than 81 honest members: {plan}");
    let said = done(place, "privacy plan private.toml");
    assert!(said.contains("1 contribution to a sum under masks") && said.contains("neighbours"), "{said}");
}

/// The thesis's accountant asks for Gaussian masks, five times as many neighbours and more noise; its table's reading keeps no promise.
#[test]
fn a_plan_says_what_each_accountant_asks_for() {
    let place = place("");
    let place = place.path();
    let rows: String = (0..1_000).map(|k| format!("m{k:04},{}\n", f64::from(k % 7) / 7.0)).collect();
    write(place, "rows.csv", &format!("agent,x\n{rows}"));
    let task =
        format!("{TASK}[privacy]\nepsilon = 0.5\ndelta = 1e-6\n").replace(", \"y\"", "").replace("\"sum\"", "\"mean\"");
    write(place, "task.toml", &task);
    let plan = json(place, "privacy plan task.toml");
    let number =
        |by: &str, key: &str| plan["accountants"][by][key].as_f64().unwrap_or_else(|| panic!("{by} {key}: {plan}"));
    assert_eq!(plan["accountants"]["exact"]["mask_std"], "pads");
    // A curator whom all trust would add sigma once, and divide by as many.
    let keeps = |sigma: f64| sottovoce_privacy::gaussian_epsilon(1.0 / sigma, 1e-6) <= 0.5;
    let sigma = (1..).map(|k| 0.01 * f64::from(k)).find(|&sigma| keeps(sigma)).expect("in reach");
    let over = number("exact", "error_predicted") / (sigma / 1_000.0);
    assert!((1.0..1.1).contains(&over), "{over} times the error of a trusted curator");
    assert!(
        number("theorem", "mask_std") > 1.0 && number("theorem", "neighbours") > 2.0 * number("exact", "neighbours")
    );
    assert!(number("theorem", "error_predicted") > number("exact", "error_predicted"), "{plan}");
    assert!(number("theorem", "epsilon") <= 0.5 && number("exact", "epsilon") <= 0.5, "{plan}");
    write(place, "half.toml", &format!("{task}honest = 0.5\n"));
    let half = json(place, "privacy plan half.toml");
    let epsilon = |by: &str| half["accountants"][by]["epsilon"].as_f64().unwrap_or_else(|| panic!("{by}: {half}"));
    assert!(epsilon("theorem") <= 0.5 && epsilon("table") > 0.6, "{half}");
}

#[test]
fn a_histogram_under_masks_counts_rows_or_shares_of_agents() {
    let task = TASK.replace("\"sum\"", "\"histogram\"").replace("[\"x\", \"y\"]", "[\"x\"]\nbins = 4");
    let place = place(&task);
    let place = place.path();
    let exact = json(place, "measure task.toml --out exact");
    assert_eq!(
        (&exact["estimate"], &exact["exact"]),
        (&serde_json::json!([10.0, 10.0, 11.0, 10.0]), &exact["estimate"])
    );
    write(place, "private.toml", &format!("{task}{PRIVATE}"));
    let private = json(place, "measure private.toml --out private");
    let number = |key: &str| private[key].as_f64().unwrap_or_else(|| panic!("{key}: {private}"));
    assert!(number("epsilon") <= 1.0 && number("epsilon") > 0.9, "{private}");
    assert!(number("error") > 0.0 && number("error") < 4.0 * number("error_predicted"), "{private}");
    // Replacing a row moves two counts; the noise of four numbers, in the Euclidean norm.
    let plan = json(place, "privacy plan private.toml");
    let noise = plan["noise_std"].as_f64().expect("a number") * (40.0f64 * 4.0).sqrt();
    assert!((number("error_predicted") / noise - 1.0).abs() < 1e-9, "{plan}");
    write(place, "agents.toml", &format!("{task}{PRIVATE}unit = \"agent\"\n"));
    let agents = json(place, "measure agents.toml --out agents");
    assert_eq!((&agents["unit"], &agents["exact"]), (&"agent".into(), &serde_json::json!([10.0, 10.0, 10.5, 9.5])));
    assert!(agents["error"].as_f64().is_some_and(|error| error < 4.0 * number("error_predicted")), "{agents}");
}

#[test]
fn members_that_die_are_left_out_and_too_few_are_no_sum() {
    let place = place("");
    let place = place.path();
    let (mut sums, mut voids) = (0, 0);
    for (seed, die) in (1..).zip([0.1, 0.1, 0.1, 0.7, 0.7]) {
        let task = format!(
            "{TASK}[faults]\ndie = {die}\nuntil = 1\ndelay = {{ mean = 0.3 }}\n[gopa]\ntimeout = 20\n[roles]\nboard = \"a03\"\n[run]\nseed = {seed}\n"
        );
        write(place, "task.toml", &task);
        let run = json(place, &format!("measure task.toml --out run-{seed}"));
        // The board may be among those that die: then nobody learns anything, and the run ends all the same.
        assert!(run["quiet"] == true, "{run}");
        let Some(missing) = run["passed_over"].as_u64() else {
            voids += u32::from(run["estimate"] == serde_json::json!([]));
            continue;
        };
        sums += 1;
        assert!(missing < 20, "fewer than half: {run}");
        let report = read(place, &format!("run-{seed}/report.html"));
        assert!(report.contains(&format!("{missing} contributions are missing")) || missing == 1, "{report}");
    }
    assert!(sums > 0 && voids > 0, "{sums} sums, {voids} void");
}

#[test]
fn what_masks_cannot_do_is_refused_in_one_line() {
    let place = place(TASK);
    let place = place.path();
    let private = format!("{TASK}{PRIVATE}");
    for (task, says) in [
        (TASK.replace("range = [0, 1]\n", ""), "statistic.range is missing"),
        (format!("{private}verify = true\n"), "accepted: false"),
        (format!("{private}masks = \"gaussian\"\n"), "accepted: \"pads\""),
        (format!("{private}mechanism = \"laplace\"\n"), "accepted: \"gaussian\""),
        (format!("{private}colluders = 2\n"), "accepted: no privacy.colluders"),
        (format!("{private}neighbours = 1\n"), "accepted: more privacy.neighbours"),
        (format!("{private}honest = 0.5\nneighbours = 12\n"), "accepted: more privacy.neighbours"),
        (format!("{private}honest = 0.02\n"), "accepted: a larger privacy.honest or privacy.present"),
        (format!("{private}honest = 1.5\n"), "a number above 0 to 1"),
        (format!("{private}[roles]\nboard = \"nobody\"\n"), "accepted: the name of an agent"),
        (format!("{TASK}[graph]\nkind = \"ring\"\n"), "accepted: no [graph]"),
        (format!("{private}present = 0.02\n"), "accepted: a larger privacy.honest or privacy.present"),
        (private.replace("[0, 1]", "[-1e300, 1e300]"), "accepted"),
        (TASK.replace("\"sum\"", "\"histogram\"\nbins = 4"), "a histogram is of one column"),
        (TASK.replace("\"sum\"", "\"gini\""), "kind = \"mean\", \"sum\" or \"histogram\""),
    ] {
        write(place, "task.toml", &task);
        let said = refused(place, "measure task.toml --out run");
        assert!(said.contains(says), "{says}: {said}");
    }
    write(
        place,
        "ring.toml",
        &format!("{private}honest = 0.5\n").replace("\"gopa\"", "\"ring\"").replace(", \"y\"", ""),
    );
    assert!(refused(place, "measure ring.toml --out run").contains("accepted with ring: no privacy.honest"));
    write(place, "task.toml", &private);
    assert!(refused(place, "audit task.toml").contains("accepted: a task that protects from everyone"));
    write(place, "rows.csv", "agent,x,y\na,1,1\nb,2,2\n");
    assert!(refused(place, "measure task.toml --out run").contains("2 members; accepted: 3 and more"));
}

/// Eight real processes: exactly the sum, and with `[privacy]` the simulator's law and its charges.
#[test]
fn eight_processes_find_what_the_simulator_finds() {
    let place = support::folder();
    let place = place.path();
    let rows: String = (0..8).map(|k| format!("a{k},{}\n", f64::from(k) / 8.0)).collect();
    write(place, "rows.csv", &format!("agent,x\n{rows}"));
    let task = TASK.replace(", \"y\"", "");
    write(place, "task.toml", &task);
    write(place, "private.toml", &format!("{task}{PRIVATE}"));
    let exact = json(place, "network task.toml --out exact --interval 0.05 --time-limit 80");
    assert_eq!(
        (&exact["estimate"], &exact["estimates_std"], &exact["quiet"]),
        (&3.5.into(), &0.0.into(), &true.into())
    );
    assert_eq!(read(place, "exact/estimates.csv").lines().count(), 9, "everyone is told");
    let private = json(place, "network private.toml --out private --interval 0.05 --time-limit 80");
    let simulated = json(place, "measure private.toml --out simulated");
    for key in ["epsilon", "delta", "unit", "observer", "error_predicted"] {
        assert_eq!(private[key], simulated[key], "{key}");
    }
    assert!(private.get("exact").is_none() && private["quiet"] == true, "{private}");
    let number = |key: &str| private[key].as_f64().unwrap_or_else(|| panic!("{key}: {private}"));
    let error = (number("estimate") - 3.5).abs();
    assert!(error > 0.0 && error < 5.0 * number("error_predicted"), "{private}");
    assert_eq!(read(place, "private/ledger.jsonl"), read(place, "simulated/ledger.jsonl"));
}

/// A value of a member, a whole number.
fn value(k: usize) -> u64 {
    (37 * k as u64 * k as u64 + 11 * k as u64 + 3) % 1_000
}

/// Peers that list each other, the first of whom keeps the board.
fn peers(place: &Path, members: usize) -> Vec<Peer> {
    let task = TASK.replace(", \"y\"", "").replace("[0, 1]", "[0, 1024]") + "[gopa]\ntimeout = 4\n";
    write(place, "task.toml", &task);
    let mut peers = Vec::new();
    for (k, port) in (0..members).zip(ports(members)) {
        let name = format!("m{k:02}");
        write(place, &format!("{name}.csv"), &format!("agent,x\n{name},{}\n", value(k)));
        peers.push(Peer::init(place, "task.toml", &name, &format!("{name}.csv"), port, 0.05));
    }
    for k in 0..members {
        (0..members).filter(|j| *j != k).for_each(|j| peers[k].meet(&peers[j], 1.0));
    }
    peers
}

/// What the board's store says: whether it is over, and who finished.
fn board(peers: &[Peer]) -> Option<Vec<u32>> {
    let step = peers[0].step()?;
    let (phase, list) = saved::read::<State>(&step.state).expect("its own state").list().expect("the board");
    (phase == Phase::Over).then_some(list)
}

/// Some are killed at random moments, and some of them come back when all is over: every run ends with exactly the sum of those who finished.
fn killed_at_random(members: usize, killed: usize, seed: u64) {
    let place = support::folder();
    let mut peers = peers(place.path(), members);
    let mut coin = Coin::new(seed, 0, 0);
    peers.iter_mut().for_each(Peer::start);
    until("somebody enrols", || peers[0].step().is_some());
    let mut victims: Vec<usize> = Vec::new();
    while victims.len() < killed {
        std::thread::sleep(Duration::from_millis(coin.below(120) as u64));
        let victim = 1 + coin.below(members - 1);
        if !victims.contains(&victim) {
            peers[victim].kill();
            victims.push(victim);
        }
    }
    let mut finished = Vec::new();
    until("the board is over", || {
        board(&peers).is_some_and(|list| {
            finished = list;
            true
        })
    });
    assert!(finished.len() >= members - killed - 1, "{finished:?}");
    let sum: u64 = finished.iter().map(|id| value(*id as usize)).sum();
    let missing = members - finished.len();
    println!("gopa: {members} processes, {killed} killed, {missing} missing");
    for k in (0..members).filter(|k| !victims.contains(k)) {
        let mut status = peers[k].status();
        until("it is told", || {
            status = peers[k].status();
            status["estimate"].is_number()
        });
        assert_eq!(status["estimate"].as_f64(), Some(sum as f64), "{}: {finished:?}", peers[k].name);
        assert_eq!(status["passed_over"], missing, "{}", peers[k].name);
    }
    // Whoever was killed comes back, with what it had to say: it is too late, and the sum stays what it was.
    for victim in victims {
        peers[victim].start();
        until("it has ended", || peers[victim].status()["phase"] == "quiet");
        let known = peers[victim].status()["estimate"].clone();
        assert!(known.is_null() || known.as_f64() == Some(sum as f64), "{known}");
    }
    assert_eq!(board(&peers), Some(finished));
}

/// With `SOTTOVOCE_SOAK` set, fifty processes, ten of them killed, twenty times.
#[test]
fn whoever_is_killed_the_sum_is_exactly_that_of_those_who_finished() {
    let (members, killed, runs) = if std::env::var_os("SOTTOVOCE_SOAK").is_some() { (50, 10, 20) } else { (8, 2, 3) };
    (0..runs).for_each(|seed| killed_at_random(members, killed, seed));
}

const LEARN: &str = "name = \"together\"\nalgorithm = \"federated-averaging\"\n[data]\ntrain = \"points.csv\"\nnormalize = \"l2\"\n[model]\nstep = 2.0\n[run]\nrounds = 12\n";

/// Members with ten points each of two features, of unit length, labelled by a line that is the same for all.
fn points(members: u32) -> Vec<Vec<([f64; 2], f64)>> {
    let mut coin = Coin::new(3, 3, 3);
    let mut point = || {
        let angle: f64 = 6.2 * coin.unit();
        let x = [angle.cos(), angle.sin()];
        (x, if x[0] + 0.5 * x[1] > 0.0 { 1.0 } else { -1.0 })
    };
    (0..members).map(|_| (0..10).map(|_| point()).collect()).collect()
}

fn write_points(place: &Path, points: &[Vec<([f64; 2], f64)>]) {
    let row = |k: usize, (x, y): &([f64; 2], f64)| format!("m{k:02},{y},{},{}\n", x[0], x[1]);
    let rows: String =
        points.iter().enumerate().flat_map(|(k, own)| own.iter().map(move |point| row(k, point))).collect();
    write(place, "points.csv", &format!("agent,label,a,b\n{rows}"));
}

fn model(place: &Path, run: &str) -> Vec<f64> {
    let text = read(place, &format!("{run}/model.csv"));
    let line = text.lines().nth(1).expect("a model");
    line.split(',').map(|number| number.parse().expect("a number")).collect()
}

/// With one local step it is gradient descent on the mean of everybody's losses; between processes too.
#[test]
fn federated_averaging_descends_on_the_mean_loss_and_is_private_by_agent() {
    let place = support::folder();
    let place = place.path();
    let points = points(40);
    write_points(place, &points);
    write(place, "task.toml", LEARN);
    let exact = json(place, "train task.toml --out exact");
    assert!(exact["accuracy"].is_null() || exact["epsilon"] == "infinity", "{exact}");
    let descend = |points: &[Vec<([f64; 2], f64)>]| {
        let mut theta = [0.0f64; 2];
        for _ in 0..12 {
            let mut gradient = [0.0; 2];
            for (x, y) in points.iter().flatten() {
                let slope = -y / (1.0 + (y * (x[0] * theta[0] + x[1] * theta[1])).exp());
                (0..2).for_each(|k| gradient[k] += slope * x[k] / (10.0 * points.len() as f64));
            }
            (0..2).for_each(|k| theta[k] -= 2.0 * gradient[k]);
        }
        theta
    };
    assert!(support::distance(&model(place, "exact"), &descend(&points)) < 1e-7, "{:?}", model(place, "exact"));
    write(place, "private.toml", &format!("{LEARN}[privacy]\nepsilon = 4\ndelta = 1e-5\nclip = 0.5\nhonest = 0.9\n"));
    let private = json(place, "train private.toml --out private");
    let number = |key: &str| private[key].as_f64().unwrap_or_else(|| panic!("{key}: {private}"));
    assert!(number("epsilon") <= 4.0 && number("epsilon") > 3.9, "{private}");
    assert_eq!(
        (&private["unit"], &private["observer"]),
        (&"agent".into(), &"everyone and up to 4 colluding members".into())
    );
    let ledger = read(place, "private/ledger.jsonl");
    assert!(
        ledger.lines().skip(1).all(|line| line.contains("\"coalition\"") && line.contains("\"count\":12")),
        "{ledger}"
    );
    let found = model(place, "private");
    assert!(found[0] > 0.0 && support::distance(&found, &descend(&points)) > 1e-3, "{found:?}");
    let resolved = json(place, "train private/task.toml --out resolved");
    assert_eq!(resolved["digest"], private["digest"], "the task as resolved is the same task");

    for (task, says) in [
        (LEARN.replace("step = 2.0", "step = 2.0\nradius = 1"), "accepted: no model.radius"),
        (LEARN.replace("step = 2.0", "step = 2.0\nloss = \"hinge\""), "accepted: logistic"),
        (LEARN.replace("step = 2.0\n", ""), "model.step is missing"),
        (format!("{LEARN}[privacy]\nepsilon = 4\ndelta = 1e-5\nunit = \"record\"\n"), "accepted: unit = \"agent\""),
        (format!("{LEARN}[privacy]\nepsilon = 4\ndelta = 1e-5\ntrust = \"curator\"\n"), "no privacy.trust"),
        (format!("{LEARN}[privacy]\nepsilon = 4\ndelta = 1e-5\nneighbours = 1\n"), "accepted: more privacy.neighbours"),
    ] {
        write(place, "wrong.toml", &task);
        let said = refused(place, "train wrong.toml --out wrong");
        assert!(said.contains(says), "{says}: {said}");
    }
    let few = &points[..5];
    write_points(place, few);
    let _ = json(place, "network task.toml --out told --interval 0.05 --time-limit 80");
    assert!(support::distance(&model(place, "told"), &descend(few)) < 1e-7, "{:?}", model(place, "told"));
}
