//! Nothing that can be seen of a private task follows from a record: neighbouring files with hostile records go through real commands,
//! and everything that an observer can compare is compared.

mod support;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use support::{Peer, done, folder, json, ports, read, refused, sottovoce, until, until_quiet, write};

/// What one record of ann's is replaced by: the rest of a csv line behind its name.
const RECORDS: [&str; 14] = [
    ",1,0.25,0.5",
    "",
    ",",
    ",7,1,2,3,4,5",
    ",text,text,text",
    ",nan,inf,-inf",
    ",-1,1e308,-1e308",
    ",1e308,1e300,1",
    ",0,5e-324,-2e-310",
    ",1,1e6,1e6",
    ",1,\"0.5,1",
    ",1,,",
    // The record that stands beside it.
    ",-1,0.5,0.25",
    ",-1,0.1,0.2 #;:\t",
];

fn train(record: &str) -> String {
    let mut text = "agent,label,x,y\n".to_owned();
    for (k, name) in ["ann", "bob", "cid"].into_iter().enumerate() {
        for row in 0..4 {
            match (k, row) {
                (0, 2) => text += &format!("ann{record}\n"),
                _ => text += &format!("{name},{},0.{row}{k},0.{k}5\n", if (row + k) % 2 == 0 { 1 } else { -1 }),
            }
        }
    }
    text + "ann,-1,0.5,0.25\n"
}

/// A private task over three agents on a ring, with these lines in its sections.
fn task(data: &str, model: &str, privacy: &str) -> String {
    format!(
        "name = \"t\"\nalgorithm = \"coordinate-descent\"\n[data]\ntrain = \"train.csv\"\n{data}\n[graph]\nkind = \"ring\"\n\
         [model]\npoints-max = 5\n{model}\n[privacy]\nepsilon = 1\ndelta = 1e-3\n{privacy}\n"
    )
}

/// What a run says, but for what only the owner of the simulator may see: scores, objectives, how long it took.
fn public_part(said: &str) -> String {
    let lines = said.lines().filter(|line| !line.starts_with("Mean test ") && !line.starts_with("Learned "));
    lines.map(|line| line.split(" sent, ").next().unwrap_or(line)).collect::<Vec<_>>().join("\n")
}

/// What can be seen of a run in the simulator: code, output, files, and what was counted.
#[derive(Debug, PartialEq)]
struct Seen {
    code: Option<i32>,
    said: String,
    warned: String,
    files: Vec<String>,
    counted: Vec<Value>,
    ledger: Option<String>,
}

fn look(place: &Path, words: &str) -> Seen {
    let output = sottovoce(place, &format!("{words} --out run --force --no-sweep --threads 1"));
    let mut files: Vec<String> = fs::read_dir(place.join("run"))
        .map(|entries| {
            entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
        })
        .unwrap_or_default();
    files.sort();
    let summary: Value = fs::read_to_string(place.join("run/summary.json"))
        .map_or(Value::Null, |text| serde_json::from_str(&text).expect("JSON"));
    let keys = ["wakes", "vectors_sent", "bytes_sent", "epsilon", "delta"];
    Seen {
        code: output.status.code(),
        said: public_part(&String::from_utf8_lossy(&output.stdout)),
        warned: String::from_utf8_lossy(&output.stderr).into_owned(),
        files,
        counted: keys.iter().map(|key| summary[key].clone()).collect(),
        ledger: fs::read_to_string(place.join("run/ledger.jsonl")).ok(),
    }
}

/// Runs a task with each record in its place; all runs must look alike, and end well.
fn all_alike(task: &str, records: &[&str], file: impl Fn(&str) -> Vec<(&'static str, String)>) {
    let place = folder();
    write(place.path(), "task.toml", task);
    let mut first: Option<Seen> = None;
    let mut planned: Option<[String; 2]> = None;
    for record in records {
        file(record).iter().for_each(|(name, text)| write(place.path(), name, text));
        // What says what would run is made of public facts, to the last byte.
        let says =
            ["privacy plan task.toml", "train task.toml --out run --dry-run"].map(|words| done(place.path(), words));
        assert_eq!(planned.get_or_insert_with(|| says.clone()), &says, "{record:?} in\n{task}");
        let seen = look(place.path(), "train task.toml");
        assert_eq!(seen.code, Some(0), "{record:?}: {}", seen.warned);
        match &first {
            None => first = Some(seen),
            Some(first) => assert_eq!(&seen, first, "{record:?} in\n{task}"),
        }
    }
    assert!(first.is_some_and(|seen| seen.counted.iter().all(|value| !value.is_null()) && seen.ledger.is_some()));
}

#[test]
fn a_private_run_looks_the_same_whatever_a_record_holds() {
    let csv = |record: &str| vec![("train.csv", train(record))];
    let laplace = "mechanism = \"laplace\"\nnoise = \"exact\"";
    // The records that other settings could take amiss.
    let some = [RECORDS[0], RECORDS[1], RECORDS[4], RECORDS[6], RECORDS[7], RECORDS[9]];
    all_alike(&task("normalize = \"l2\"\nsplit = 0.25", "", "updates = 3"), &RECORDS, csv);
    for (data, model, privacy) in [
        ("feature-bound = 2", "loss = \"smoothed-hinge\"\nintercept = true", laplace),
        ("feature-bound = 3", "loss = \"squared\"", "clip = 1"),
        ("feature-bound = 1e90", "loss = \"squared\"", "clip = 1"),
        ("normalize = \"l1\"", "", "home = false\naccountant = \"sum\""),
    ] {
        all_alike(&task(data, model, privacy), &some, csv);
    }
    let learned = task("normalize = \"l2\"", "", "").replace("kind = \"ring\"", "kind = \"learned\"");
    all_alike(&learned, &some, csv);
    for (algorithm, loss) in [("input-perturbation", "logistic"), ("local", "hinge")] {
        let task = task("normalize = \"l2\"", &format!("loss = {loss:?}"), "").replace("coordinate-descent", algorithm);
        all_alike(&task, &some, csv);
    }
}

/// Where a solver that was run to a tolerance panicked for one of two neighbours, or took a million steps.
#[test]
fn a_warm_start_with_an_absurd_bound_ends_alike_for_all_neighbours() {
    let csv = |record: &str| vec![("train.csv", train(record))];
    let warm = |bound: &str, regularization: &str| {
        let data = format!("feature-bound = {bound}");
        let warm = format!("accountant = \"sum\"\nwarm = {{ epsilon = 0.5, regularization = {regularization} }}");
        task(&data, "loss = \"smoothed-hinge\"\nstart = \"warm\"", &warm)
    };
    for (bound, regularization) in [("1e6", "1"), ("1e6", "1e-6"), ("1e-6", "1e6"), ("1", "1")] {
        all_alike(&warm(bound, regularization), &[",1,0.25,0.5", ",-1,1e6,-1e6", ",1,1e308,1e308", ",1,nan,"], csv);
    }
    // What nobody's record decides is refused, for all alike.
    let place = folder();
    for (absurd, says) in [
        (warm("1e40", "1"), "warm.regularization is 1; "),
        (task("feature-bound = 1e308", "", ""), "feature-bound is "),
        (task("feature-bound = 1", "", "clip = 1e308"), "clip is "),
    ] {
        write(place.path(), "task.toml", &absurd);
        let line = |record: &&str| {
            write(place.path(), "train.csv", &train(record));
            refused(place.path(), "train task.toml --out run")
        };
        let lines: Vec<String> = RECORDS[..3].iter().map(line).collect();
        assert!(lines[0].contains(says) && lines.iter().all(|line| *line == lines[0]), "{lines:?}");
    }
}

#[test]
fn the_largest_index_of_a_libsvm_file_tells_nothing() {
    let libsvm = |record: &str| {
        let text = format!("1 1:0.5 3:1\n-1 2:0.25\n{record}\n1 1:0.1\n-1 3:0.5 2:7\n");
        vec![("train.svm", text.clone()), ("test.svm", text), ("names", "ann\nbob\nann\ncid\ncid\n".to_owned())]
    };
    let good = task("normalize = \"l2\"", "", "").replace(
        "train = \"train.csv\"",
        "train = \"train.svm\"\nagents = \"names\"\ntest = \"test.svm\"\ntest-agents = \"names\"\ndimension = 3",
    );
    let records =
        ["1 1:1", "", "# a note", "1 1048576:1", "1 999999999999999:1", "x 1:y", "-7 2:nan 2:1e308", "1 2:1 1:1 1:1"];
    all_alike(&good, &records, libsvm);
    let place = folder();
    libsvm("1 1:1").iter().for_each(|(name, text)| write(place.path(), name, text));
    write(place.path(), "task.toml", &good.replace("\ndimension = 3", ""));
    assert!(refused(place.path(), "train task.toml --out run").contains("needs data.dimension"));
}

#[test]
fn the_owner_can_see_what_was_moved_and_what_is_public_is_still_refused() {
    let place = folder();
    write(place.path(), "task.toml", &task("feature-bound = 2", "", ""));
    write(place.path(), "train.csv", &train(",7,1e80,text"));
    let said = done(place.path(), "data check task.toml");
    for line in [
        "For the owner of the data only",
        "train.csv: 13 training rows",
        "1 labels other than -1, 0 and 1: above 0 they count as 1, else as -1 (first in line 4)",
        "1 features that are no finite number: they count as 0 (first in line 4)",
        "1 numbers beyond 1e75 in size: they count as 1e75, with their sign (first in line 4)",
        "1 points beyond the feature bound: they are shrunk to it (first in line 4)",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let moved = json(place.path(), "data check task.toml");
    assert_eq!(moved["files"][0]["moved"][3], serde_json::json!({ "rule": "bound", "times": 1, "first_line": 4 }));
    for (file, says) in [
        ("label,agent,x\nann,1,1\n", "column 1 is \"label\""),
        ("agent,label,x\n", "no rows"),
        ("agent,label,x\n,1,1\n", "an agent without a name"),
    ] {
        write(place.path(), "train.csv", file);
        assert!(refused(place.path(), "train task.toml --out run").contains(says), "{file}");
    }
    write(place.path(), "task.toml", task("", "", "").split("[privacy]").next().expect("a head"));
    assert!(refused(place.path(), "data check task.toml").contains("a task without [privacy] moves nothing"));
    write(place.path(), "train.csv", &train(",7,1e80,text"));
    assert!(refused(place.path(), "train task.toml --out run").contains("train.csv, line 4: label is 7; accepted"));
}

/// What `GET /metrics` tells everyone on the machine: which numbers there are, and those that follow no clock.
fn metrics(peer: &Peer) -> Vec<String> {
    let admin: Value = serde_json::from_str(&read(&peer.folder(), "admin.json")).expect("JSON");
    let mut stream = TcpStream::connect(admin["address"].as_str().expect("an address")).expect("it listens");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n").expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let (_, body) = text.split_once("\r\n\r\n").expect("a body");
    let fixed =
        ["releases_total", "releases_planned", "epsilon_spent", "neighbours", "neighbours_heard", "exhausted_total"];
    let line = |line: &str| match line.rsplit_once(' ') {
        Some((name, _)) if !line.starts_with('#') && !fixed.iter().any(|kept| name == format!("sottovoce_{kept}")) => {
            name.to_owned()
        }
        _ => line.to_owned(),
    };
    body.lines().map(line).collect()
}

/// Of files and folders that others could open, and what is in them. The peer's folder itself is for its owner alone.
fn open_to_others(folder: &Path) -> Vec<String> {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o077;
    assert_eq!(mode(folder), 0, "{}", folder.display());
    let inside = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    let secret = ["peer.key", "store", "home.csv", "admin.json"];
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    inside.filter(|path| mode(path) != 0 && secret.contains(&&*name(path))).map(|path| name(&path)).collect()
}

/// What can be seen of ann, as a real peer whose neighbour is bob.
fn seen_of_a_peer(record: &str) -> BTreeMap<String, Value> {
    let place = folder();
    let warm = "accountant = \"sum\"\nwarm = { epsilon = 0.5, wakes = 2 }\nupdates = 2";
    write(place.path(), "task.toml", &task("feature-bound = 1", "loss = \"smoothed-hinge\"\nstart = \"warm\"", warm));
    let all = train(record);
    for name in ["ann", "bob"] {
        let rows = all
            .lines()
            .skip(1)
            .filter(|line| line.starts_with(name))
            .fold(String::new(), |rows, row| rows + row + "\n");
        write(place.path(), &format!("{name}.csv"), &format!("agent,label,x,y\n{rows}"));
    }
    let ports = ports(2);
    let mut ann = Peer::init(place.path(), "task.toml", "ann", "ann.csv", ports[0], 0.02);
    let mut bob = Peer::init(place.path(), "task.toml", "bob", "bob.csv", ports[1], 0.02);
    ann.meet(&bob, 1.0);
    bob.meet(&ann, 1.0);
    ann.start();
    bob.start();
    until("both have begun", || [&ann, &bob].iter().all(|peer| peer.folder().join("admin.json").exists()));
    until_quiet(&mut [&mut ann, &mut bob]);
    let status = ann.status();
    let step = ann.step().expect("a step");
    let metrics = metrics(&ann);
    let without_key = |text: String| text.replace(&ann.id, "KEY").replace(&ann.address, "ADDRESS");
    let card = without_key(read(&ann.folder(), "card.toml"));
    let ledger = done(place.path(), "peer ledger ann");
    let (charges, _) = ledger.trim_end().rsplit_once('\n').expect("charges and a signature");
    assert_eq!(open_to_others(&ann.folder()), Vec::<String>::new());
    done(place.path(), "data check ann");
    // `stop` fails if the peer does not end well.
    ann.stop();
    bob.stop();
    let mut files: Vec<String> = fs::read_dir(ann.folder())
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    files.sort();
    let home = read(&ann.folder(), "home.csv");
    let post = step.post.expect("a post");
    BTreeMap::from([
        ("metrics".to_owned(), Value::from(metrics)),
        ("card".to_owned(), Value::from(card)),
        ("signed".to_owned(), Value::from(charges.to_owned())),
        ("files".to_owned(), Value::from(files)),
        ("points".to_owned(), status["points"].clone()),
        ("post".to_owned(), Value::from(vec![post.values.len() as u64, post.stamped.number])),
        ("ledger".to_owned(), Value::from(format!("{:?}", step.ledger))),
        ("home".to_owned(), Value::from(home.lines().map(|line| line.split(',').count() as u64).collect::<Vec<_>>())),
        ("warnings".to_owned(), Value::from(ann.log().matches(" WARN ").count() as u64)),
    ])
}

#[test]
fn a_private_peer_starts_speaks_and_ends_alike_whatever_a_record_holds() {
    let records = [",1,0.25,0.5", ",1,1e6,-1e308", "", ",text,nan,inf,7"];
    let seen: Vec<_> = std::thread::scope(|scope| {
        let started: Vec<_> = records.iter().map(|record| scope.spawn(|| seen_of_a_peer(record))).collect();
        started.into_iter().map(|peer| peer.join().expect("a peer that ends well")).collect()
    });
    for (seen_now, record) in seen.iter().zip(records) {
        assert_eq!(seen_now, &seen[0], "{record:?}");
    }
}
