//! POLAR-SGD, as its owners run it: in the simulator, and between real processes that die.

mod support;

use std::path::Path;
use std::time::Duration;
use support::{Peer, done, json, ports, read, refused, until, until_quiet, write};

/// Sixteen rounds of steps of nearly equal size, on whole batches. A busy machine is not taken for a client that is gone.
const TASK: &str = "name = \"one model\"\nalgorithm = \"polar-sgd\"\n[data]\ntrain = \"rows.csv\"\n[model]\nloss = \"squared\"\n[servers]\ncount = 3\n\
                    consensus-every = 2\nweight = 3\nweight-bound = 4\nnoise-bound = 0.02\ntimeout = 2000\nbatch = 100\nstep = { first = 1.2, offset = 100 }\n[run]\nrounds = 16\n";

/// Rows (x, y) = (1, 0), (0, 1), (1, 1) and (1, -1) of each client, whose labels are 2x - y and a remainder that no model explains; as csv, and the
/// same as numbers.
fn rows(clients: usize) -> (String, Vec<[f64; 3]>) {
    let (mut text, mut all) = ("agent,label,x,y\n".to_owned(), Vec::new());
    for client in 0..clients {
        for (k, [x, y]) in [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]].into_iter().enumerate() {
            let label = 2.0 * x - y + 0.1 * ((3 * client + 5 * k) % 7) as f64 - 0.3;
            text += &format!("c{client:02},{label:?},{x:?},{y:?}\n");
            all.push([label, x, y]);
        }
    }
    (text, all)
}

/// (f(model) - f*) / f* for least squares in two dimensions.
fn gap(rows: &[[f64; 3]], model: [f64; 2]) -> f64 {
    let sum = |f: &dyn Fn(&[f64; 3]) -> f64| rows.iter().map(f).sum::<f64>();
    let (a, b, c) = (sum(&|r| r[1] * r[1]), sum(&|r| r[1] * r[2]), sum(&|r| r[2] * r[2]));
    let (p, q) = (sum(&|r| r[1] * r[0]), sum(&|r| r[2] * r[0]));
    let det = a * c - b * b;
    let best = [(c * p - b * q) / det, (a * q - b * p) / det];
    let value = |m: [f64; 2]| sum(&|r| (m[0] * r[1] + m[1] * r[2] - r[0]) * (m[0] * r[1] + m[1] * r[2] - r[0]));
    value(model) / value(best) - 1.0
}

/// The step that fits so many clients: the curvature of the sum is 6 for each.
fn task(clients: usize) -> String {
    TASK.replace("first = 1.2", &format!("first = {}", 8.0 / clients as f64))
}

fn place(clients: usize) -> (tempfile::TempDir, Vec<[f64; 3]>) {
    let (text, all) = rows(clients);
    let place = support::folder();
    write(place.path(), "rows.csv", &text);
    write(place.path(), "task.toml", &task(clients));
    (place, all)
}

fn model(place: &Path, file: &str) -> [f64; 2] {
    let text = read(place, file);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], lines.len()), ("x,y", 2), "{text}");
    let numbers: Vec<f64> = lines[1].split(',').map(|number| number.parse().expect("a number")).collect();
    [numbers[0], numbers[1]]
}

#[test]
fn a_run_finds_the_minimum_and_says_that_it_is_not_differential_privacy() {
    let (place, rows) = place(6);
    let place = place.path();
    let summary = json(place, "train task.toml --out run");
    let off = gap(&rows, model(place, "run/model.csv"));
    assert!(off < 1e-3, "{off:e}");
    assert_eq!(
        (&summary["epsilon"], &summary["agents"], &summary["holders"]),
        (&"infinity".into(), &9.into(), &9.into())
    );
    assert_eq!(summary["models_spread"], 0.0, "all servers and clients end with the same bits");
    let ledger = read(place, "run/ledger.jsonl");
    let charged: Vec<&str> = ledger.lines().filter(|line| line.contains("\"reveal\"")).collect();
    assert_eq!(charged.len(), 6, "clients, and no server: {ledger}");
    assert!(charged.iter().all(|line| line.contains("\"servers\"") && line.contains("\"count\":96")), "{ledger}");
    assert!(read(place, "run/report.html").contains("NOT differential privacy"));
    assert!(done(place, "train task.toml --out run --force").contains("objective"));
    let resolved = json(place, "train run/task.toml --out resolved");
    assert_eq!(resolved["digest"], summary["digest"], "the task as resolved is the same task");
    // Servers by name, the other variants and ways to average.
    let whole = format!("first = {}", 8.0 / 6.0);
    for (to, first) in [
        ("names = [\"ada\", \"zoe\", \"c001\"]\nvariant = \"client-averaged\"", &*whole),
        ("count = 4\nvariant = \"basic\"\nweights = \"coordinate\"\neach = 3\ncolluders = 2", &*whole),
        ("count = 3\nconsensus = \"cycle\"\nball = 9", &*whole),
        ("count = 3\nscope = \"iteration\"\nbox = 5", "first = 0.6"),
        ("count = 3\nconsensus = \"links\"\nlinks = [\"server-3 -- server-1\", \"server-2 -- server-1\"]", &*whole),
    ] {
        write(place, "other.toml", &task(6).replace("count = 3", to).replace(&whole, first));
        json(place, "train other.toml --out other --force");
        let off = gap(&rows, model(place, "other/model.csv"));
        assert!(off < 1e-2, "{off:e} with {to}");
    }
}

#[test]
fn what_cannot_be_run_is_refused_in_one_line() {
    let (place, _) = place(4);
    let place = place.path();
    let task = task(4);
    for (from, to, says) in [
        ("count = 3\n", "", "[servers] says neither count nor names"),
        ("count = 3", "count = 3\nnames = [\"a\"]", "accepted: one of them"),
        ("count = 3", "count = 1", "servers.count"),
        ("count = 3", "names = [\"a\"]", "a single server would see every gradient"),
        ("count = 3", "names = [\"a\", \"a\"]", "accepted: different names"),
        ("count = 3", "names = [\"a\", \"c01\"]", "agent \"c01\" has rows"),
        ("count = 3", "count = 3\neach = 4", "a client with 4 of 3 servers; accepted: 2 to 3"),
        ("count = 3", "count = 3\neach = 1", "servers.each"),
        ("count = 3", "count = 3\nconsensus = \"turns\"", "links between servers that do not join all"),
        ("count = 3", "count = 3\nlinks = [\"server-1 -- server-2\"]", "links between servers that nobody uses"),
        ("count = 3", "count = 3\nlinks = [\"server-1 -- ada\"]", "accepted: two of the servers' names"),
        ("count = 3", "count = 3\ncolluders = 3", "accepted: 1 to 2"),
        ("weight = 3", "weight = 0", "servers.weight"),
        ("weight-bound = 4", "weight-bound = 2", "accepted: a finite number from 3"),
        ("noise-bound = 0.02", "noise-bound = -1", "servers.noise-bound"),
        ("count = 3", "count = 3\nbox = 2\nstart = 3", "which is not in the compact set of size 2"),
        ("count = 3", "count = 3\nbox = 1e9", "would overflow 64 bits"),
        ("count = 3", "count = 3\nbox = 1\nball = 1", "servers.box and servers.ball are both given"),
        (
            "count = 3",
            "count = 3\nvariant = \"basic\"\nscope = \"iteration\"",
            "scope \"iteration\" with the variant \"basic\"",
        ),
        ("first = ", "offset = 9 } # ", "servers.step.first is missing"),
        ("[run]", "[graph]\nkind = \"ring\"\n[run]", "accepted: no [graph]"),
        ("[run]", "[privacy]\nepsilon = 1\ndelta = 1e-6\n[run]", "needs a public bound on the features"),
        ("[model]", "feature-bound = 2\n[privacy]\nepsilon = 1\ndelta = 1e-6\n[model]", "privacy.clip is missing"),
        (
            "[model]",
            "feature-bound = 2\n[privacy]\nepsilon = 1\ndelta = 1e-6\nclip = 2\nupdates = 3\n[model]",
            "accepted with polar-sgd: no privacy.updates",
        ),
        (
            "[model]",
            "feature-bound = 2\n[privacy]\nepsilon = 1\ndelta = 1e-6\nclip = 2\nunit = \"agent\"\n[model]",
            "accepted: no privacy.unit",
        ),
        ("[model]", "feature-bound = 2\n[privacy]\nepsilon = 1\ndelta = 1e-6\nclip = 1e40\n[model]", "a clip of"),
    ] {
        assert!(task.contains(from), "{from}");
        write(place, "bad.toml", &task.replacen(from, to, 1));
        let said = refused(place, "train bad.toml --out run");
        assert!(said.contains(says), "{says}: {said}");
    }
    write(place, "two.toml", &task.replace("count = 3", "count = 2"));
    let output = support::sottovoce(place, "train two.toml --out two");
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("each of them learns the other's model"), "{said}");
}

/// Twenty clients and five servers, each a process.
#[test]
fn processes_find_the_minimum() {
    let (place, rows) = place(20);
    let place = place.path();
    write(place, "task.toml", &with_five_servers(&task(20)));
    let summary = json(place, "network task.toml --out run --interval 0.05 --time-limit 90");
    assert_eq!(
        (&summary["quiet"], &summary["epsilon"], &summary["holders"]),
        (&true.into(), &"infinity".into(), &25.into())
    );
    let off = gap(&rows, model(place, "run/model.csv"));
    assert!(off < 1e-3, "{off:e}");
    assert!(read(place, "run/report.html").contains("NOT differential privacy"));
}

/// The same task for five servers in the place of three.
fn with_five_servers(task: &str) -> String {
    let task = task.replace("count = 3", "count = 5").replace("weight = 3", "weight = 5");
    task.replace("weight-bound = 4", "weight-bound = 6")
}

/// Noise that is charged, by record and against everyone, for each gradient of the plan and no other.
#[test]
fn with_a_budget_gradients_have_noise_and_ledgers_are_the_plan() {
    let (place, _) = place(4);
    let place = place.path();
    let private =
        task(4).replace("[model]", "feature-bound = 2\n[privacy]\nepsilon = 2\ndelta = 1e-6\nclip = 2\n[model]");
    write(place, "task.toml", &private);
    let plan = json(place, "privacy plan task.toml");
    assert_eq!(plan["releases"][0]["count"], 32, "one gradient for each step: {plan}");
    for (command, out) in
        [("train task.toml --out run", "run"), ("network task.toml --out net --interval 0.05 --time-limit 90", "net")]
    {
        let summary = json(place, command);
        let epsilon = summary["epsilon"].as_f64().expect("a guarantee");
        assert!(epsilon <= 2.0 && epsilon > 1.99, "{epsilon}");
        let ledger = read(place, &format!("{out}/ledger.jsonl"));
        let charged: Vec<&str> = ledger.lines().filter(|line| line.contains("\"gaussian\"")).collect();
        assert_eq!(charged.len(), 4, "clients, and no server: {ledger}");
        assert!(charged.iter().all(|line| line.contains("\"servers\"") && line.contains("\"count\":32")), "{ledger}");
        let page = read(place, &format!("{out}/report.html"));
        assert!(
            page.contains("one record replaced by another, against everyone")
                && !page.contains("NOT differential privacy")
        );
    }
    let resolved = json(place, "train run/task.toml --out resolved");
    assert_eq!(resolved["epsilon"], json(place, "train task.toml --out run --force")["epsilon"]);
    // Gradients at each server's model are as many releases.
    write(place, "basic.toml", &private.replace("count = 3", "count = 3\nvariant = \"basic\""));
    assert_eq!(json(place, "privacy plan basic.toml")["releases"][0]["count"], 96);
    // The promise is audited as any other's.
    write(place, "short.toml", &private.replace("rounds = 16", "rounds = 2"));
    let audit = json(place, "audit short.toml --trials 60 --skip-artefacts");
    assert_eq!(audit["verdict"], "not refuted", "{audit}");
    assert_eq!(audit["runs"]["releases"], 4, "{audit}");
}

/// What one server learns of a client where nothing is promised: where its gradient points, the better the more rounds it has seen.
#[test]
fn an_audit_measures_what_one_server_learns() {
    let (place, _) = place(4);
    let place = place.path();
    let loud =
        task(4).replace("noise-bound = 0.02", "noise-bound = 100").replace("weight-bound = 4", "weight-bound = 30");
    write(place, "task.toml", &loud);
    let found = json(place, "audit task.toml");
    let number =
        |found: &serde_json::Value, key: String| found[&*key].as_f64().unwrap_or_else(|| panic!("{key}: {found}"));
    let cosines = [1, 10, 100, 1000].map(|rounds| number(&found, format!("cosine_{rounds}")));
    assert!(cosines[0] < 0.9 && cosines[3] > 0.95 && cosines[3] > cosines[1], "{cosines:?}");
    let areas = [1, 10, 100].map(|rounds| number(&found, format!("membership_auc_{rounds}")));
    assert!(areas[0] < 0.6 && areas.iter().all(|area| *area < 0.7), "blurred: {areas:?}");
    assert_eq!((&found["epsilon"], &found["audience"]), (&"infinity".into(), &"servers".into()));
    let said = done(place, "audit task.toml");
    assert!(said.contains("NOT differential privacy") && said.contains("audience: the servers"), "{said}");
    // Nothing is hidden by weights that are all the same and vectors of length zero.
    write(
        place,
        "bare.toml",
        &loud.replace("noise-bound = 100", "noise-bound = 0").replace("weight-bound = 30", "weight-bound = 3"),
    );
    let bare = json(place, "audit bare.toml");
    for key in ["cosine_upload", "cosine_1", "cosine_1000", "membership_auc_1", "membership_auc_100"] {
        assert!(number(&bare, key.to_owned()) > 1.0 - 1e-9, "{key}: {bare}");
    }
}

/// Clients and servers as peers that list each other.
fn peers(place: &Path, clients: usize, servers: usize) -> Vec<Peer> {
    let text = read(place, "rows.csv");
    let names = (0..clients).map(|k| format!("c{k:02}")).chain((1..=servers).map(|k| format!("server-{k}")));
    let mut peers = Vec::new();
    for (name, port) in names.zip(ports(clients + servers)) {
        let own: Vec<&str> = text.lines().filter(|line| line.starts_with(&format!("{name},"))).collect();
        write(place, &format!("{name}.csv"), &format!("agent,label,x,y\n{}\n", own.join("\n")));
        peers.push(Peer::init(place, "task.toml", &name, &format!("{name}.csv"), port, 0.05));
    }
    for k in 0..peers.len() {
        (0..peers.len()).filter(|j| *j != k).for_each(|j| peers[k].meet(&peers[j], 1.0));
    }
    peers
}

/// How far the models are from the minimum that those who run have come to; what they predict for (1, 0) and (0, 1) are their coordinates.
fn outcome(place: &Path, peers: &mut [Peer], rows: &[[f64; 3]]) -> Vec<f64> {
    write(place, "probe.csv", "x,y\n1,0\n0,1\n");
    let mut gaps = Vec::new();
    for peer in peers.iter_mut().filter(|peer| peer.is_running()) {
        peer.stop();
        let said = json(place, &format!("peer predict {} probe.csv", peer.name));
        let coordinate = |k: usize| said[k]["prediction"].as_f64().unwrap_or_else(|| panic!("{said}"));
        gaps.push(gap(rows, [coordinate(0), coordinate(1)]));
    }
    gaps
}

/// One after another is killed, clients and servers, and comes back: the rounds go on, and nobody is left out. The long version, with `SOTTOVOCE_SOAK` set, has
/// twenty clients, five servers and fifty deaths.
#[test]
fn whoever_is_killed_comes_back_and_the_rounds_go_on() {
    let soak = std::env::var_os("SOTTOVOCE_SOAK").is_some();
    let (clients, servers, kills) = if soak { (20, 5, 50) } else { (3, 3, 8) };
    let (place, rows) = place(clients);
    if soak {
        let long = with_five_servers(&task(clients)).replace("rounds = 16", "rounds = 60");
        write(place.path(), "task.toml", &long);
    }
    let mut peers = peers(place.path(), clients, servers);
    peers.iter_mut().for_each(Peer::start);
    until("they have begun", || peers.iter().all(|peer| peer.step().is_some()));
    for kill in 0..kills {
        std::thread::sleep(Duration::from_millis(30 + 41 * kill as u64 % 90));
        let victim = (5 * kill + 3 + kill / peers.len()) % peers.len();
        peers[victim].kill();
        peers[victim].start();
    }
    until_quiet(&mut peers.iter_mut().collect::<Vec<_>>());
    let gaps = outcome(place.path(), &mut peers, &rows);
    assert!(gaps.len() == clients + servers && gaps.iter().all(|off| *off < 1e-3), "{gaps:?}");
}

/// A client is killed for good: after the time-out it is left out, and the others come to their own minimum.
#[test]
fn a_client_that_is_gone_for_good_is_left_out() {
    let (place, rows) = place(3);
    let text = read(place.path(), "task.toml").replace("timeout = 2000", "timeout = 5");
    write(place.path(), "task.toml", &text.replace("rounds = 16", "rounds = 30"));
    let mut peers = peers(place.path(), 3, 3);
    peers.iter_mut().for_each(Peer::start);
    until("it has uploaded", || peers[1].step().is_some_and(|step| step.ledger.releases() > 0));
    peers[1].kill();
    // What is for the one that is gone is never delivered.
    until("the others have ended", || {
        (0..peers.len()).filter(|k| *k != 1).all(|k| peers[k].status()["phase"] == "quiet")
    });
    let others: Vec<[f64; 3]> = rows[..4].iter().chain(&rows[8..]).copied().collect();
    let gaps = outcome(place.path(), &mut peers, &others);
    assert!(gaps.len() == 5 && gaps.iter().all(|off| *off < 1e-3), "{gaps:?}");
}
