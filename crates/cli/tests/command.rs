//! The program as its users and other programs meet it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn sottovoce(folder: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_sottovoce")).current_dir(folder).args(words).output().expect("the program starts")
}

fn done(folder: &Path, words: &[&str]) -> String {
    let output = sottovoce(folder, words);
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The one line with which the program refuses.
fn refused(folder: &Path, words: &[&str]) -> String {
    let output = sottovoce(folder, words);
    let line = String::from_utf8(output.stderr).expect("text");
    assert_eq!(output.status.code(), Some(2), "{words:?}: {line}");
    assert_eq!(line.lines().count(), 1, "one line: {line}");
    line
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect("JSON")
}

/// A copy of the golden task in a folder of its own.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().expect("a folder");
    for name in ["task.toml", "train.csv", "test.csv", "edges.csv"] {
        fs::copy(golden().join(name), place.path().join(name)).expect("copied");
    }
    place
}

fn entries(folder: &Path) -> Vec<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name().into_string().expect("text");
    let mut names: Vec<_> = fs::read_dir(folder).expect("a folder").map(name).collect();
    names.sort();
    names
}

/// The run directory is read by other programs: it changes on purpose or not at all. To renew it, run the task and copy.
#[test]
fn the_golden_run_comes_out_the_same_to_the_byte() {
    let place = place();
    done(place.path(), &["train", "task.toml", "--out", "run"]);
    let run = place.path().join("run");
    for name in ["models.csv", "metrics.csv", "ledger.jsonl"] {
        let ours = fs::read_to_string(run.join(name)).expect("written");
        assert_eq!(ours, fs::read_to_string(golden().join("run").join(name)).expect("golden"), "{name}");
    }
    let summary = |folder: &Path| {
        let mut summary = json(&fs::read_to_string(folder.join("summary.json")).expect("a summary"));
        let fields = summary.as_object_mut().expect("an object");
        assert!(fields.remove("seconds").is_some_and(|seconds| seconds.as_f64() >= Some(0.0)));
        assert!(fields.remove("version").is_some());
        summary
    };
    assert_eq!(summary(&run), summary(&golden().join("run")));
    let files = ["ledger.jsonl", "metrics.csv", "models.csv", "plots", "report.html", "summary.json", "task.toml"];
    assert_eq!(entries(&run), files);
}

#[test]
fn the_digest_is_the_same_for_any_number_of_threads_and_on_a_second_run() {
    let place = tempfile::tempdir().expect("a folder");
    done(place.path(), &["data", "generate", "linear", "--agents", "50", "--dimension", "5", "--out", "task"]);
    // Enough agents for the parallel path.
    let mut rows = String::from("agent,label,a,b,c\n");
    for k in 0..6000u32 {
        let value = |j: u32| f64::from((k * 37 + j * 101) % 199) / 99.5 - 1.0;
        let label = if value(1) + value(2) > 0.0 { 1 } else { -1 };
        rows += &format!("{k:05},{label},{},{},{}\n", value(1), value(2), value(3));
    }
    fs::write(place.path().join("many.csv"), rows).expect("written");
    let task = "algorithm = \"coordinate-descent\"\n[data]\ntrain = \"many.csv\"\n[graph]\nkind = \"watts-strogatz\"\n\
                neighbours = 6\n[run]\nwakes-per-agent = 30\n";
    fs::write(place.path().join("many.toml"), task).expect("written");
    for task in ["task/task.toml", "many.toml"] {
        let digest = |extra: &[&str], out: &str| {
            let words = [&["train", task, "--out", out, "--force", "--json"], extra].concat();
            json(&done(place.path(), &words))["digest"].as_str().expect("a digest").to_owned()
        };
        let first = digest(&["--threads", "1"], "run");
        for (threads, out) in [("2", "run"), ("4", "elsewhere"), ("1", "run")] {
            assert_eq!(digest(&["--threads", threads], out), first, "{task} with {threads} threads");
        }
        assert_ne!(digest(&["--seed", "9"], "run"), first, "another seed is another run");
    }
}

#[test]
fn the_digest_depends_on_what_files_hold_and_not_on_where_they_are() {
    let digest = |place: &Path| {
        let summary = json(&done(place, &["train", "task.toml", "--out", "run", "--json"]));
        summary["digest"].as_str().expect("a digest").to_owned()
    };
    let (here, there, other) = (place(), place(), place());
    let edges = other.path().join("edges.csv");
    let changed = fs::read_to_string(&edges).expect("edges").replace("elena,2", "elena,3");
    fs::write(&edges, changed).expect("written");
    let first = digest(here.path());
    assert_eq!(digest(there.path()), first);
    assert_ne!(digest(other.path()), first);
}

#[test]
fn the_resolved_task_of_a_run_gives_the_run_again() {
    let place = place();
    done(place.path(), &["train", "task.toml", "--out", "run"]);
    done(place.path(), &["train", "run/task.toml", "--out", "again"]);
    for name in ["models.csv", "ledger.jsonl"] {
        let read = |run: &str| fs::read(place.path().join(run).join(name)).expect("written");
        assert_eq!(read("run"), read("again"), "{name}");
    }
}

#[test]
fn mistakes_get_one_line_exit_code_two_and_leave_nothing() {
    let place = place();
    let good = fs::read_to_string(golden().join("task.toml")).expect("golden");
    for (from, to, says) in [
        ("trade-off", "trade-of", "trade-off"),
        ("train.csv", "absent.csv", "absent.csv"),
        ("trade-off = 1.0", "trade-off = 0", "trade-off"),
        ("\"logistic\"", "\"logistik\"", "logistic"),
        ("\"logistic\"", "\"hinge\"", "smoothed-hinge"),
        ("seed = 1", "seed = 1\n[privacy]\nepsilon = 1.0", "privacy"),
    ] {
        assert!(good.contains(from), "{from}");
        fs::write(place.path().join("bad.toml"), good.replace(from, to)).expect("written");
        let line = refused(place.path(), &["train", "bad.toml", "--out", "run"]);
        assert!(line.contains(says), "{line}");
        assert_eq!(entries(place.path()), ["bad.toml", "edges.csv", "task.toml", "test.csv", "train.csv"], "{line}");
    }
    assert!(refused(place.path(), &["train", "absent.toml", "--out", "run"]).contains("absent.toml"));
}

#[test]
fn a_folder_with_other_things_in_it_is_never_replaced() {
    let place = place();
    fs::create_dir(place.path().join("mine")).expect("made");
    fs::write(place.path().join("mine/thesis.tex"), "years of work").expect("written");
    assert!(refused(place.path(), &["train", "task.toml", "--out", "mine"]).contains("--force"));
    assert!(refused(place.path(), &["train", "task.toml", "--out", "mine", "--force"]).contains("thesis.tex"));
    assert_eq!(fs::read_to_string(place.path().join("mine/thesis.tex")).expect("kept"), "years of work");
}

#[test]
fn an_existing_run_is_replaced_only_with_force() {
    let place = place();
    done(place.path(), &["train", "task.toml", "--out", "run"]);
    assert!(refused(place.path(), &["train", "task.toml", "--out", "run"]).contains("--force"));
    done(place.path(), &["train", "task.toml", "--out", "run", "--force", "--quiet"]);
}

#[test]
fn a_dry_run_checks_everything_and_writes_nothing() {
    let place = place();
    let before = entries(place.path());
    let text = done(place.path(), &["train", "task.toml", "--out", "run", "--dry-run"]);
    assert!(text.contains("5 agents") && text.contains("epsilon = infinity"), "{text}");
    assert_eq!(entries(place.path()), before);
}

/// `sottovoce train ... | head -1`: the run is whole all the same.
#[test]
fn a_reader_who_has_seen_enough_is_no_error() {
    let place = place();
    let mut child = Command::new(env!("CARGO_BIN_EXE_sottovoce"))
        .current_dir(place.path())
        .args(["train", "task.toml", "--out", "run"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    assert!(child.wait().expect("it ends").success());
    assert!(place.path().join("run/report.html").exists());
}

#[cfg(unix)]
#[test]
fn a_run_stopped_by_a_signal_leaves_no_output() {
    use std::io::Read;
    let place = place();
    let task = fs::read_to_string(golden().join("task.toml")).expect("golden");
    let long = task.replace("wakes-per-agent = 40", "wakes-per-agent = 1000000000");
    fs::write(place.path().join("task.toml"), long).expect("written");
    let before = entries(place.path());
    let mut child = Command::new(env!("CARGO_BIN_EXE_sottovoce"))
        .current_dir(place.path())
        .args(["train", "task.toml", "--out", "run"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    // It speaks when the data are loaded and the run is about to begin.
    let mut first = [0u8; 1];
    child.stdout.as_mut().expect("piped").read_exact(&mut first).expect("a first word");
    assert_ne!(entries(place.path()), before, "the run is under way");
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(kill.success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(entries(place.path()), before);
}

#[test]
fn every_algorithm_trains_and_says_that_it_is_not_private() {
    let place = place();
    let good = fs::read_to_string(golden().join("task.toml")).expect("golden");
    for algorithm in ["local", "model-propagation", "coordinate-descent", "admm"] {
        fs::write(place.path().join("other.toml"), good.replace("coordinate-descent", algorithm)).expect("written");
        let summary = json(&done(place.path(), &["train", "other.toml", "--out", algorithm, "--json"]));
        assert_eq!(summary["algorithm"], algorithm);
        let released = fs::read_to_string(place.path().join(algorithm).join("ledger.jsonl")).expect("written");
        if algorithm == "local" {
            assert_eq!((summary["epsilon"].as_f64(), released.as_str()), (Some(0.0), ""));
            assert_eq!(summary["vectors_sent"], 0);
        } else {
            assert_eq!(summary["epsilon"], "infinity");
            assert_eq!(released.lines().count(), 5, "{released}");
        }
    }
}

#[test]
fn data_sets_are_described_for_people_and_programs() {
    let place = place();
    assert!(done(place.path(), &["data", "train.csv"]).contains("agents"));
    assert!(json(&done(place.path(), &["data", "train.csv", "--json"])).is_object());
    assert!(refused(place.path(), &["data", "absent.csv"]).contains("absent.csv"));
}

#[test]
fn what_is_seldom_meant_is_said_in_a_line_and_done() {
    let place = place();
    let text = fs::read_to_string(golden().join("task.toml")).expect("golden").replace("\"1/m\"", "0.0");
    fs::write(place.path().join("bare.toml"), text).expect("written");
    let said = done(place.path(), &["train", "bare.toml", "--out", "run"]);
    assert_eq!(said.lines().filter(|line| line.starts_with("warning: ")).count(), 1, "{said}");
    assert!(!done(place.path(), &["train", "task.toml", "--out", "other"]).contains("warning"));

    fs::write(place.path().join("gaps.csv"), "agent,label,x,y\nann,1,1,\nbob,1,NaN,2\n").expect("written");
    let said = done(place.path(), &["data", "gaps.csv"]);
    assert!(said.contains("train would refuse this file: values are missing in \"x\" (1), \"y\" (1)"), "{said}");
    assert!(said.contains("one class only, all positive"), "{said}");
}

#[test]
fn the_demo_needs_nothing_and_can_be_run_again() {
    let place = tempfile::tempdir().expect("a folder");
    for _ in 0..2 {
        let text = done(place.path(), &["demo", "--agents", "30", "--dimension", "10"]);
        for word in [
            "local",
            "model propagation",
            "coordinate descent",
            "together",
            "Privately",
            "home, kept",
            "Spent:",
            "report.html",
        ] {
            assert!(text.contains(word), "{word}: {text}");
        }
    }
    assert!(place.path().join("sottovoce-demo/run/report.html").exists());
    assert!(place.path().join("sottovoce-demo/private-run/home.csv").exists());
}

#[test]
fn completions_exist_for_common_shells() {
    let place = tempfile::tempdir().expect("a folder");
    for shell in ["bash", "zsh", "fish"] {
        assert!(done(place.path(), &["completions", shell]).contains("sottovoce"));
    }
}
