//! What commands leave behind, held against the list of what it may be made of, and attacked.

mod support;

use serde_json::Value;
use sha2::{Digest, Sha256};
use sottovoce_core::Rows;
use sottovoce_report::plot::number;
use sottovoce_run::artefacts::{self, Command, Kind, Shown};
use sottovoce_run::facts::{PublicFacts, Traffic};
use sottovoce_run::learned::losses;
use sottovoce_run::ledger_file;
use sottovoce_run::peer::{Gathered, Tally};
use sottovoce_task::folder::Folder;
use sottovoce_task::load::load;
use sottovoce_task::task::Task;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
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
    let statistic = "algorithm = \"gossip\"\n[data]\ntrain = \"train.csv\"\n[statistic]\nkind = \"mean\"\ncolumns = [\"x0\"]\n\
                     [graph]\nkind = \"ring\"\n[run]\nwakes-per-agent = 9\n";
    write(place, "task/statistic.toml", statistic);
    done(place, "measure task/statistic.toml --out measured");
    check_listed(&place.join("measured"), Command::Measure);
    done(place, "network task/private.toml --out told --interval 0.05 --time-limit 60");
    done(place, "network task/statistic.toml --out agreed --interval 0.05 --time-limit 60");
    done(place, "network task/learned.toml --out revealed --interval 0.05 --time-limit 60 --reveal");
    let one = "algorithm = \"walk-sgd\"\n[data]\ntrain = \"train.csv\"\n[model]\nstep = 0.1\n[run]\nhops = 20\n";
    write(place, "task/one.toml", one);
    done(place, "train task/one.toml --out one-trained");
    done(place, "network task/one.toml --out one --interval 0.05 --time-limit 60");
    done(place, "network task/one.toml --out one-revealed --interval 0.05 --time-limit 60 --reveal");
    check_listed(&place.join("one-trained"), Command::Train);
    let pairs = "algorithm = \"muffliato\"\n[data]\ntrain = \"train.csv\"\n[statistic]\nkind = \"mean\"\ncolumns = [\"x0\"]\nrange = [-9, 9]\n\
                 [graph]\nkind = \"ring\"\n[privacy]\nepsilon = 1\ndelta = 1e-3\n";
    write(place, "task/pairs.toml", pairs);
    done(place, "measure task/pairs.toml --out pairs-measured");
    done(place, "network task/pairs.toml --out pairs --interval 0.05 --time-limit 60");
    check_listed(&place.join("pairs-measured"), Command::Measure);
    for (run, command) in [
        ("told", Command::Network),
        ("agreed", Command::Network),
        ("one", Command::Network),
        ("pairs", Command::Network),
        ("revealed", Command::NetworkRevealed),
        ("one-revealed", Command::NetworkRevealed),
    ] {
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
        let run = if name == "model.csv" { "one-revealed" } else { "revealed" };
        assert!(place.join(run).join(name).exists(), "{name}");
    }
    for name in artefacts::names(Command::Network) {
        let run = match name {
            "edges.csv" => continue,
            "estimates.csv" => "agreed",
            "model.csv" => "one",
            "pairs.csv" => "pairs",
            _ => "told",
        };
        assert!(place.join(run).join(name).exists(), "{name}");
    }
    for name in artefacts::names(Command::Measure) {
        let run = if name == "pairs.csv" { "pairs-measured" } else { "measured" };
        assert!(place.join(run).join(name).exists(), "{name}");
    }
    assert!(place.join("one-trained/model.csv").exists());
    // A promise names its unit and its observer, and says where its noise came from.
    for (run, simulated) in [("trained", true), ("told", false), ("revealed", false)] {
        let found = summary(place, run);
        let words = [&found["unit"], &found["observer"], &found["simulated"]];
        assert_eq!(words, [&Value::from("record"), &"everyone".into(), &simulated.into()], "{run}");
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Of parts, each behind its length, as run directories have it.
fn sha256(parts: &[&[u8]]) -> String {
    let with_length =
        |hash: Sha256, part: &&[u8]| hash.chain_update((part.len() as u64).to_le_bytes()).chain_update(part);
    hex(&parts.iter().fold(Sha256::new(), with_length).finalize())
}

/// Every record that the secret one may be, for somebody who knows whose it is: a label and two numbers of two digits.
fn candidates(agent: &str) -> impl Iterator<Item = String> {
    let hundredths = |from: i32, count: i32| (from..from + count).map(|k| f64::from(k) / 100.0);
    ["1", "-1"].into_iter().flat_map(move |label| {
        hundredths(-90, 180)
            .flat_map(move |x| hundredths(-112, 225).map(move |y| format!("{agent},{label},{x:.2},{y:.2}")))
    })
}

/// Somebody who sees a run directory and knows all records but one.
struct Attacker<'a> {
    place: &'a Path,
    run: &'a str,
    before: &'a str,
    after: &'a str,
}

impl Attacker<'_> {
    /// The file that a guess would have made.
    fn file(&self, guess: &str) -> String {
        format!("{}{guess}\n{}", self.before, self.after)
    }

    /// The task of the directory, with the guessed file in place of the secret one.
    fn task(&self, guess: &str) -> Task {
        let Attacker { place, run, .. } = self;
        write(place, "guess/train.csv", &self.file(guess));
        let task = read(place, &format!("{run}/task.toml"));
        let [folder, there] = ["task", "guess"].map(|name| fs::canonicalize(place.join(name)).expect("a folder"));
        let task = task.replace(&*folder.to_string_lossy(), &there.to_string_lossy());
        Task::parse(&task, &place.join("guess/task.toml")).expect("a task")
    }

    /// Every hash that stands in a file that may be shown: words of 64 hexadecimal digits.
    fn hashes(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for (_, bytes) in shown(&self.place.join(self.run)) {
            let text = String::from_utf8_lossy(&bytes);
            let words = text.split(|c: char| !c.is_ascii_hexdigit()).filter(|word| word.len() == 64);
            found.extend(words.map(str::to_lowercase));
        }
        found
    }

    /// The guesses that the directory confirms: a hash that stands in it is one over the file that the guess would have made, alone or with
    /// whatever else the attacker sees.
    fn confirmed(&self, guesses: impl Iterator<Item = String>, anyone: &str) -> Vec<String> {
        let Attacker { place, run, .. } = self;
        let task = self.task(anyone);
        let loaded = load(&task).expect("a problem");
        let numbers = models(place, run, &loaded.names, loaded.problem.dimension());
        let numbers: Vec<u8> = numbers.values().iter().flat_map(|value| value.to_le_bytes()).collect();
        let csv = fs::read(place.join(run).join("models.csv")).expect("models");
        let ledger = read(place, &format!("{run}/ledger.jsonl"));
        let (by_content, name) = (loaded.task.fingerprint().expect("files"), task.algorithm.name);
        let plain = |text: &str| hex(&Sha256::digest(text));
        let known = plain(&self.file(anyone));
        assert!(by_content.contains(&known), "the file is in the fingerprint");
        let there = self.hashes();
        let is_confirmed = |guess: &String| {
            let file = plain(&self.file(guess));
            let task = by_content.replace(&known, &file);
            let with = |head: &[&[u8]], models: &[u8]| {
                sha256(&[head, &[task.as_bytes(), name.as_bytes(), models, ledger.as_bytes()]].concat())
            };
            [plain(&task), file, with(&[], &numbers), with(&[b"what was told"], &csv)]
                .iter()
                .any(|hash| there.contains(hash))
        };
        guesses.filter(is_confirmed).collect()
    }

    /// What is public of the task, if the guess were right.
    fn facts(&self, guess: &str) -> PublicFacts {
        let mut facts = PublicFacts::of(&load(&self.task(guess)).expect("a problem"));
        let [folder, there] = ["task", "guess"].map(|name| fs::canonicalize(self.place.join(name)).expect("a folder"));
        facts.task = facts.task.replace(&*there.to_string_lossy(), &folder.to_string_lossy());
        facts
    }

    /// The whole directory of a network, written again from what stands in it and from what is public of a guess.
    fn written_again(&self, facts: &PublicFacts) -> Vec<(String, Vec<u8>)> {
        let Attacker { place, run, .. } = self;
        let ledgers = ledger_file::read(&place.join(run).join("ledger.jsonl")).expect("a ledger");
        let models = models(place, run, &facts.names, facts.dimension);
        let one = |(k, name): (usize, &String)| Gathered {
            model: Some(models.row(k).to_vec()),
            ledger: ledgers.iter().find(|(agent, _)| agent == name).expect("it told something").1.clone(),
            ..Gathered::default()
        };
        let gathered: Vec<Gathered> = facts.names.iter().enumerate().map(one).collect();
        let metrics = read(place, &format!("{run}/metrics.csv"));
        let traffic = |line: &str| {
            let numbers: Vec<u64> = line.split(',').take(3).map(|text| text.parse().expect("a count")).collect();
            Traffic { wakes: numbers[0], vectors_sent: numbers[1], bytes_sent: numbers[2], ..Traffic::default() }
        };
        let figures = summary(place, run);
        let count = |key: &str| figures[key].as_u64().expect("a count");
        let tally = Tally {
            traffic: metrics.lines().skip(1).map(traffic).collect(),
            lost: count("messages_lost"),
            refused: [("malformed".to_owned(), count("messages_rejected"))].into(),
            seconds: figures["seconds"].as_f64().expect("seconds"),
            quiet: figures["quiet"] == true,
        };
        let folder = Folder::begin(&place.join("again"), true, &artefacts::names(Command::Network)).expect("a folder");
        let command = format!("sottovoce network task/private.toml --out {run}");
        sottovoce_run::peer::write(&folder, facts, &gathered, &tally, None, command).expect("written");
        folder.finish().expect("written");
        shown(&place.join("again"))
    }
}

/// All files of a network's run directory that may be shown, in their order.
fn shown(run: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for artefact in artefacts::ALL.iter().filter(|one| one.command == Command::Network && one.shown == Shown::Yes) {
        let path = run.join(artefact.name);
        let files = match artefact.kind {
            Kind::Console => Vec::new(),
            Kind::File => Vec::from_iter(path.exists().then_some(path)),
            Kind::Folder => entries(&path).iter().map(|file| path.join(file)).collect(),
        };
        let read = |file: PathBuf| (file.strip_prefix(run).expect("inside").display().to_string(), fs::read(&file));
        found.extend(files.into_iter().map(read).map(|(name, bytes)| (name, bytes.expect("a file"))));
    }
    found.sort();
    found
}

/// 81,000 candidates: an earlier version's digest gave the right one away in less than a second.
#[test]
fn a_record_cannot_be_found_among_all_candidates_by_anything_that_a_network_or_a_private_run_writes() {
    let place = place();
    let place = place.path();
    // The secret is one record; everything else is known to the attacker.
    let train = read(place, "task/train.csv");
    let old = train.lines().nth(5).expect("a record").to_owned();
    let agent = old.split(',').next().expect("an agent");
    let secret = format!("{agent},1,0.37,-0.92");
    let train = train.replace(&old, &secret);
    write(place, "task/train.csv", &train);
    let (before, after) = train.split_once(&format!("{secret}\n")).expect("it is there");
    fs::create_dir(place.join("guess")).expect("a folder");
    for file in ["test.csv", "edges.csv"] {
        fs::copy(place.join("task").join(file), place.join("guess").join(file)).expect("copied");
    }
    let anyone = candidates(agent).next().expect("a candidate");
    assert_eq!(candidates(agent).count(), 81_000);
    assert_eq!(candidates(agent).filter(|guess| *guess == secret).count(), 1);
    done(place, "network task/private.toml --out told --interval 0.05 --time-limit 60");
    done(place, "train task/private.toml --out trained --no-sweep");
    done(place, "train task/task.toml --out plain");
    let attacker = |run: &'static str| Attacker { place, run, before, after };
    // The attack works where nothing is promised: without [privacy] a run is known by the contents of its files.
    assert_eq!(attacker("plain").confirmed(candidates(agent), &anyone), [&*secret], "the attack itself is sound");
    for run in ["told", "trained"] {
        assert_eq!(attacker(run).confirmed(candidates(agent), &anyone), Vec::<String>::new(), "{run}");
    }
    // Whatever else a network writes follows from what is public, and that is the same for all candidates: no file tells one from another.
    let told = attacker("told");
    let facts = told.facts(&secret);
    let soak = std::env::var_os("SOTTOVOCE_SOAK").is_some();
    for guess in candidates(agent).step_by(if soak { 1 } else { 27 }) {
        assert_eq!(told.facts(&guess), facts, "{guess}");
    }
    // So much does follow from it: the attacker can write the directory again, to the byte.
    let written = shown(&place.join("told"));
    assert!(written.len() >= 8, "tables, figures, pages and pictures: {}", written.len());
    for guess in [&secret, &anyone] {
        for ((name, bytes), (again, others)) in written.iter().zip(told.written_again(&told.facts(guess))) {
            assert_eq!(*name, again);
            assert!(*bytes == others, "{name} is made of something else");
        }
    }
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
            // A post that crosses an answer with the same post in it is rejected as a second one: who is faster decides.
            for clock in ["wakes", "vectors_sent", "bytes_sent", "messages_rejected", "seconds", "digest"] {
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
        .filter(|one| one.command == Command::Network && one.kind != Kind::Console && one.shown == Shown::Yes)
        .filter(|one| !["estimates.csv", "model.csv", "pairs.csv"].contains(&one.name));
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
    let help = done(place, "peer predict --help").split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["THIS IS NO PROTECTION", "Predictions of a home model must stay with its owner"] {
        assert!(help.contains(words), "{help}");
    }
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
