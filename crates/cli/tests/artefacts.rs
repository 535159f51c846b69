//! What commands leave behind, held against the list of what it may be made of, and attacked.

mod support;

use serde_json::Value;
use sha2::{Digest, Sha256};
use sottovoce_core::Rows;
use sottovoce_report::plot::number;
use sottovoce_run::artefacts::{self, Command, Kind, Shown};
use sottovoce_run::learned::losses;
use sottovoce_task::load::load;
use sottovoce_task::task::Task;
use std::fs;
use std::path::Path;
use support::{done, json, read, sottovoce, write};

/// Three agents with a private task, `task/private.toml`; the noise is low, so that nothing hides behind it.
fn place() -> tempfile::TempDir {
    let place = support::folder();
    done(place.path(), "data generate linear --agents 3 --dimension 2 --seed 3 --private --out task");
    let task = read(place.path(), "task/private.toml").replace("epsilon = 1.05", "epsilon = 15.0");
    write(place.path(), "task/private.toml", &task);
    place
}

/// The same task with a graph that is learned.
fn learned(place: &Path) {
    let turns = "kind = \"learned\"\nfirst-wakes = 4\nmodel-wakes = 4\ngraph-wakes = 4 #";
    let task = read(place, "task/private.toml").replace("edges = \"edges.csv\"", turns);
    write(place, "task/learned.toml", &task.replace("seed = 3\n", "seed = 3\nwakes-per-agent = 16\n"));
}

fn summary(place: &Path, run: &str) -> Value {
    serde_json::from_str(&read(place, &format!("{run}/summary.json"))).expect("JSON")
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries.map(|entry| entry.file_name().into_string().expect("a name in UTF-8")).collect()
}

/// Every entry of a folder is in the list of its command.
fn check_listed(folder: &Path, command: Command) {
    for name in entries(folder) {
        let listed = artefacts::find(command, &name).unwrap_or_else(|| panic!("{command:?} writes {name}: not listed"));
        let is_folder = folder.join(&name).is_dir();
        assert_eq!(listed.kind, if is_folder { Kind::Folder } else { Kind::File }, "{name}");
    }
}

#[test]
fn every_file_that_a_command_writes_is_listed_with_what_it_is_made_of() {
    let place = place();
    let place = place.path();
    learned(place);
    done(place, "train task/learned.toml --out trained --no-sweep");
    check_listed(&place.join("trained"), Command::Train);
    done(place, "network task/private.toml --out told --interval 0.05 --time-limit 60");
    done(place, "network task/learned.toml --out revealed --interval 0.05 --time-limit 60 --reveal");
    for (run, command) in [("told", Command::Network), ("revealed", Command::NetworkRevealed)] {
        check_listed(&place.join(run), command);
        let peers = place.join(run).join("peers");
        for peer in entries(&peers).iter().filter(|name| *name != "task.toml") {
            check_listed(&peers.join(peer), Command::Peer);
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(&peers).expect("peers").permissions().mode();
            assert_eq!(mode & 0o077, 0, "data and keys are for their user alone");
        }
    }
    // What must be there is there: the list is not longer than the truth, apart from what depends on the moment or on the task.
    for name in artefacts::names(Command::NetworkRevealed) {
        assert!(place.join("revealed").join(name).exists(), "{name}");
    }
    for name in artefacts::names(Command::Network).iter().filter(|name| **name != "edges.csv") {
        assert!(place.join("told").join(name).exists(), "{name}");
    }
    // A promise names its unit and its observer, and says where its noise came from.
    for (run, simulated) in [("trained", true), ("told", false), ("revealed", false)] {
        let found = summary(place, run);
        let words = [&found["unit"], &found["observer"], &found["simulated"]];
        assert_eq!(words, [&Value::from("record"), &"everyone".into(), &simulated.into()], "{run}");
    }
}

fn sha256(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The models of a run directory, agents in their order; zeros of those without a row.
fn models(place: &Path, run: &str, names: &[String], dimension: usize) -> Rows {
    let mut models = Rows::zeros(names.len(), dimension);
    for line in read(place, &format!("{run}/models.csv")).lines().skip(1) {
        let (name, numbers) = line.split_once(',').expect("a name and numbers");
        let k = names.iter().position(|known| known == name).expect("an agent");
        numbers.split(',').zip(models.row_mut(k)).for_each(|(text, x)| *x = text.parse().expect("a number"));
    }
    models
}

/// Somebody who sees a run directory and knows all records but one.
struct Attacker<'a> {
    place: &'a Path,
    run: &'a str,
    before: &'a str,
    after: &'a str,
}

impl Attacker<'_> {
    /// Whether the directory agrees with a guess of the missing record, by a digest over the file that it would have made.
    fn is_confirmed(&self, guess: &str) -> bool {
        let Attacker { place, run, before, after } = self;
        write(place, "guess/train.csv", &format!("{before}{guess}\n{after}"));
        // What the directory says of the task, with the guessed file in place of the secret one.
        let task = read(place, &format!("{run}/task.toml"));
        let folder = fs::canonicalize(place.join("task")).expect("a folder");
        let there = fs::canonicalize(place.join("guess")).expect("a folder");
        let task = task.replace(&*folder.to_string_lossy(), &there.to_string_lossy());
        let task = Task::parse(&task, &place.join("guess/task.toml")).expect("a task");
        let loaded = load(&task).expect("a problem");
        let numbers = models(place, run, &loaded.names, loaded.problem.dimension());
        let numbers: Vec<u8> = numbers.values().iter().flat_map(|value| value.to_le_bytes()).collect();
        let csv = fs::read(place.join(run).join("models.csv")).expect("models");
        let ledger = read(place, &format!("{run}/ledger.jsonl"));
        let (by_content, name) = (loaded.task.fingerprint().expect("files"), loaded.task.algorithm.name);
        let found = &summary(place, run)["digest"];
        let candidates = [
            sha256(&[by_content.as_bytes(), name.as_bytes(), &numbers, ledger.as_bytes()]),
            sha256(&[b"what was told", by_content.as_bytes(), name.as_bytes(), &csv, ledger.as_bytes()]),
        ];
        candidates.iter().any(|candidate| found == candidate)
    }
}

#[test]
fn a_record_cannot_be_found_among_candidates_by_anything_that_a_network_or_a_private_run_writes() {
    let place = place();
    let place = place.path();
    done(place, "network task/private.toml --out told --interval 0.05 --time-limit 60");
    done(place, "train task/private.toml --out trained --no-sweep");
    // The secret is one record; everything else is known to the attacker.
    let train = read(place, "task/train.csv");
    let secret = train.lines().nth(5).expect("a record").to_owned();
    let (before, after) = train.split_once(&format!("{secret}\n")).expect("it is there");
    fs::create_dir(place.join("guess")).expect("a folder");
    for file in ["test.csv", "edges.csv"] {
        fs::copy(place.join("task").join(file), place.join("guess").join(file)).expect("copied");
    }
    let fields: Vec<&str> = secret.split(',').collect();
    let other = if fields[1] == "1" { "-1" } else { "1" };
    let guesses = [secret.clone(), [&[fields[0], other], &fields[2..]].concat().join(",")];
    for run in ["told", "trained"] {
        let attacker = Attacker { place, run, before, after };
        for guess in &guesses {
            assert!(!attacker.is_confirmed(guess), "{run} confirms {guess}");
        }
        // More than that: the digest is made of files that may be shown, so it tells nothing that they do not.
        let task = Task::parse(&read(place, &format!("{run}/task.toml")), &place.join("task.toml")).expect("a task");
        let parts = ["models.csv", "ledger.jsonl"].map(|file| fs::read(place.join(run).join(file)).expect("a file"));
        let name = task.algorithm.name;
        let words = task.without_files();
        let again = sha256(&[b"what was told", words.as_bytes(), name.as_bytes(), &parts[0], &parts[1]]);
        assert_eq!(summary(place, run)["digest"], again, "{run}");
    }
    // The attack works where nothing is promised: without [privacy] a run is known by the contents of its files.
    done(place, "train task/task.toml --out plain");
    let attacker = Attacker { place, run: "plain", before, after };
    assert!(attacker.is_confirmed(&guesses[0]) && !attacker.is_confirmed(&guesses[1]), "the attack itself is sound");
}

#[test]
fn networks_with_neighbouring_data_write_the_same_apart_from_released_values_and_clocks() {
    let place = place();
    let place = place.path();
    let train = read(place, "task/train.csv");
    let secret = train.lines().nth(5).expect("a record").to_owned();
    let fields: Vec<&str> = secret.split(',').collect();
    let other = if fields[1] == "1" { "-1" } else { "1" };
    let written: Vec<_> = [secret.clone(), format!("{},{other},0.125,-4", fields[0])]
        .into_iter()
        .map(|record| {
            write(place, "task/train.csv", &train.replace(&secret, &record));
            let said = done(place, "network task/private.toml --out run --force --interval 0.05 --time-limit 60");
            let mut figures = summary(place, "run");
            // Clocks are real, and the digest is one of released values.
            for clock in ["wakes", "vectors_sent", "bytes_sent", "seconds", "digest"] {
                figures[clock] = Value::Null;
            }
            let metrics = read(place, "run/metrics.csv");
            let exact = metrics.lines().skip(1).map(|line| line.split(',').skip(3).collect::<String>());
            let mut plots = entries(&place.join("run/plots"));
            plots.sort();
            let said: Vec<String> = said.lines().filter(|line| !line.contains("wakes")).map(str::to_owned).collect();
            let ledger = read(place, "run/ledger.jsonl");
            let graph = read(place, "run/plots/graph.svg");
            (figures, exact.collect::<String>(), plots, said, ledger, read(place, "run/task.toml"), graph)
        })
        .collect();
    assert_eq!(written[0], written[1]);
    assert_eq!(written[0].1, "", "no objective and no score");
    let figures = &written[0].0;
    assert!(figures["objective"].is_null() && figures.get("accuracy").is_none() && figures.get("rmse").is_none());
}

#[test]
fn a_network_that_learns_its_graph_tells_nobodys_loss() {
    let place = place();
    let place = place.path();
    learned(place);
    done(place, "network task/learned.toml --out told --interval 0.05 --time-limit 60");
    let loaded = load(&Task::read(&place.join("task/learned.toml")).expect("a task")).expect("a problem");
    let exact = losses(&loaded, &models(place, "told", &loaded.names, 2));
    let shown = artefacts::ALL
        .iter()
        .filter(|one| one.command == Command::Network && one.kind != Kind::Said && one.shown == Shown::Yes);
    for artefact in shown {
        let path = place.join("told").join(artefact.name);
        let files =
            if path.is_dir() { entries(&path).iter().map(|file| path.join(file)).collect() } else { vec![path] };
        for file in files {
            let bytes = fs::read(&file).expect("a file");
            let text = String::from_utf8_lossy(&bytes);
            for loss in &exact {
                for digits in [3, 6] {
                    // Three digits of a ledger or of a path of a picture mean nothing: there the words around would.
                    let said = format!("loss {}", number::significant(*loss, digits));
                    assert!(!text.contains(&said), "{} tells {said}", file.display());
                }
            }
            let is_picture = file.extension().is_some_and(|end| end == "svg");
            assert!(!is_picture || !text.contains("loss"), "{}", file.display());
        }
    }
    assert!(read(place, "told/plots/learned-graph.svg").contains("confidence"), "the picture is there");
    assert!(!read(place, "told/report.html").contains("its loss is low"));
}

#[test]
fn predictions_of_a_home_model_do_not_hand_it_over_and_those_of_the_broadcast_are_exact() {
    let place = place();
    let place = place.path();
    done(place, "network task/private.toml --out run --interval 0.05 --time-limit 60");
    let names: Vec<String> = entries(&place.join("run/peers")).into_iter().filter(|name| name != "task.toml").collect();
    let header = read(place, "task/train.csv").lines().next().expect("a header").replacen("agent,label,", "", 1);
    write(place, "unit.csv", &format!("{header}\n1,0\n0,1\n"));
    write(place, "far.csv", &format!("{header}\n1e9,0\n0,1e9\n"));
    for name in names {
        let home = read(place, &format!("run/peers/{name}/home.csv"));
        let home: Vec<f64> =
            home.lines().nth(1).expect("a row").split(',').map(|x| x.parse().expect("a number")).collect();
        let asked = |file: &str| sottovoce(place, &format!("peer predict run/peers/{name} {file}"));
        let answer = asked("unit.csv");
        let (said, warned) = (String::from_utf8_lossy(&answer.stdout), String::from_utf8_lossy(&answer.stderr));
        assert!(warned.contains("NO protection") && warned.lines().count() == 1, "{warned}");
        assert_eq!(said.lines().next(), Some("prediction,probability"));
        for (line, theta) in said.lines().skip(1).zip(&home) {
            let (label, probability) = line.split_once(',').expect("two columns");
            assert_eq!(label, if *theta >= 0.0 { "1" } else { "-1" });
            assert!(probability.len() <= 4, "two decimals: {line}");
            // The attack: a unit vector's margin is the coordinate, and the probability would give it back.
            let probability: f64 = probability.parse().expect("a number");
            let recovered = (probability / (1.0 - probability)).ln();
            assert!((probability - 1.0 / (1.0 + (-theta).exp())).abs() <= 0.005 + 1e-12, "still of use");
            assert_ne!(recovered.to_string(), theta.to_string(), "a coordinate of home.csv, to the bit");
        }
        // Longer questions do not get finer answers.
        assert_eq!(asked("far.csv").stdout, answer.stdout);
        // What was sent may be known.
        let told = json(place, &format!("peer predict run/peers/{name} unit.csv --broadcast"));
        let models = read(place, "run/models.csv");
        let row = models.lines().find_map(|line| line.strip_prefix(&format!("{name},"))).expect("it told something");
        for (k, theta) in row.split(',').enumerate() {
            assert_eq!(told[k]["margin"].as_f64(), theta.parse().ok(), "{told}");
        }
    }
}
