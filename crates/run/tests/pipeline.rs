//! The one way from a task to what came of it: from files or from memory, watched, stopped, with and without a directory.

use sottovoce_core::Rows;
use sottovoce_run::pipeline::{Directory, News, Outcome, Request, Yielded, run};
use sottovoce_run::train::Halt;
use sottovoce_task::input::{Memory, Table, edges_to_csv};
use sottovoce_task::task::Task;
use std::path::Path;

const TASK: &str = "name = \"four\"\nalgorithm = \"coordinate-descent\"\n[data]\ntrain = \"train.csv\"\ntest = \"test.csv\"\nnormalize = \"l2\"\n\
                    [graph]\nedges = \"edges.csv\"\n[run]\nwakes-per-agent = 30\n";
const PRIVACY: &str = "[privacy]\nepsilon = 1\ndelta = 1e-6\n";

fn strings<const N: usize>(words: [&str; N]) -> [String; N] {
    words.map(str::to_owned)
}

/// Training points, test points and edges as csv, from arrays.
fn arrays() -> [(&'static str, Vec<u8>); 3] {
    let (agents, columns) = (strings(["ann", "bob", "cid", "dan", "ann", "c, \"d\""]), strings(["x", "y"]));
    let values: Vec<f64> = (0..12).map(|k| 0.1 * f64::from(k) - 1.0 / 3.0).collect();
    let labels = [1.0, -1.0, 1.0, -1.0, -1.0, 1.0];
    let train = Table { agents: &agents, labels: Some(&labels), columns: &columns, values: &values };
    let test = Table { agents: &agents[..3], labels: Some(&labels[..3]), columns: &columns, values: &values[3..9] };
    let edges = [("ann", "bob", 1.0), ("bob", "cid", 0.25), ("cid", "dan", 2.0), ("ann", "c, \"d\"", 1.0)];
    [("train.csv", train.to_csv()), ("test.csv", test.to_csv()), ("edges.csv", edges_to_csv(edges.into_iter()))]
}

fn in_memory(text: &str) -> Task {
    let memory = arrays().into_iter().fold(Memory::default(), |memory, (name, bytes)| memory.with(name, bytes));
    Task::parse_with(text, Path::new("task.toml"), &memory).expect("a task")
}

fn request<'r>(task: &'r Task, directory: Option<&'r Path>, charge: &'r mut Charge) -> Request<'r> {
    let directory = directory.map(|path| Directory { path, force: false, commands: Vec::new() });
    Request { task, directory, threads: 1, comparisons: true, charge }
}

type Charge =
    dyn FnMut(sottovoce_task::load::Loaded) -> Result<sottovoce_task::load::Loaded, sottovoce_task::error::Mistake>;

fn quietly(task: &Task, directory: Option<&Path>) -> Outcome {
    run(request(task, directory, &mut Ok), &mut |_| Ok(())).expect("a run")
}

fn models(outcome: &Outcome) -> &Rows {
    match &outcome.yielded {
        Yielded::Models { run, .. } => &run.models,
        Yielded::Estimate(run) => &run.estimates,
    }
}

#[test]
fn a_task_in_memory_is_the_task_of_the_same_files_to_the_digest() {
    let place = tempfile::tempdir().expect("a folder");
    for (name, bytes) in arrays() {
        std::fs::write(place.path().join(name), bytes).expect("written");
    }
    for text in [TASK.to_owned(), format!("{TASK}{PRIVACY}").replace("wakes-per-agent = 30\n", "")] {
        std::fs::write(place.path().join("task.toml"), &text).expect("written");
        let from_files = Task::read(&place.path().join("task.toml")).expect("a task");
        let (a, b) = (quietly(&from_files, None), quietly(&in_memory(&text), None));
        assert_eq!(a.summary.digest, b.summary.digest, "{text}");
        assert_eq!((models(&a), &a.loaded.names), (models(&b), &b.loaded.names));
        let accuracy =
            |outcome: &Outcome| outcome.summary.models().and_then(|figures| figures.accuracy).map(|scores| scores.mean);
        assert!(accuracy(&a).is_some() && accuracy(&a) == accuracy(&b));
    }
}

#[test]
fn what_memory_holds_is_refused_in_the_same_words_as_a_file() {
    let memory = Memory::default().with("train.csv", b"agent,label,x\nann,1,2\nbob,1,none\n".to_vec());
    let text = "algorithm = \"local\"\n[data]\ntrain = \"train.csv\"\n[graph]\nkind = \"complete\"\n";
    let task = Task::parse_with(text, Path::new("task.toml"), &memory).expect("a task");
    let said = sottovoce_task::load::load(&task).expect_err("text in a column").to_string();
    assert_eq!(said, "train.csv, line 3: column \"x\" is \"none\"; accepted: a finite number, at most 1e75 in size");
}

#[test]
fn a_directory_is_optional_and_changes_no_figure() {
    let (place, task) = (tempfile::tempdir().expect("a folder"), in_memory(TASK));
    let out = place.path().join("run");
    let (written, kept) = (quietly(&task, Some(&out)), quietly(&task, None));
    assert!(out.join("summary.json").is_file() && out.join("report.html").is_file());
    let figures = |outcome: &Outcome| {
        let mut figures = serde_json::to_value(&outcome.summary).expect("JSON");
        figures["seconds"] = serde_json::Value::Null;
        figures
    };
    assert_eq!(figures(&written), figures(&kept));
    assert!(matches!(kept.yielded, Yielded::Models { compared, .. } if compared.len() == 1), "agents that learn alone");
}

#[test]
fn whoever_watches_hears_of_everything_and_can_end_it_before_anything_is_written() {
    let place = tempfile::tempdir().expect("a folder");
    let task = in_memory(&format!("{TASK}{PRIVACY}").replace("wakes-per-agent = 30\n", ""));
    let mut heard = Vec::new();
    let outcome = run(request(&task, None, &mut Ok), &mut |news| {
        heard.push(match news {
            News::Begins(facts) => format!("begins with {} agents", facts.agents()),
            News::Warning(warning) => format!("warning: {warning}"),
            News::Run(name, _) => format!("run {name}"),
            News::Comparison(name, _) => format!("comparison {name}"),
            News::Budgets(..) => "other budgets".to_owned(),
        });
        Ok(())
    });
    assert!(outcome.is_ok());
    for expected in ["begins with 5 agents", "run coordinate-descent", "other budgets"] {
        assert!(heard.iter().any(|heard| heard == expected), "{expected}: {heard:?}");
    }
    // At the first word of each part.
    for stop_at in (0..heard.len()).filter(|&k| k == 0 || heard[k] != heard[k - 1]) {
        let (out, mut seen) = (place.path().join("run"), 0);
        let stopped = run(request(&task, Some(&out), &mut Ok), &mut |_| {
            seen += 1;
            if seen > stop_at { Err(Halt::Interrupted) } else { Ok(()) }
        });
        assert!(matches!(stopped, Err(Halt::Interrupted)), "at {stop_at}");
        assert!(!out.exists(), "at {stop_at}");
    }
}

#[test]
fn what_a_charge_refuses_does_not_run() {
    let task = in_memory(TASK);
    let mut refuse = |_| Err(sottovoce_task::error::Mistake::new("the source has nothing left"));
    let refused = run(request(&task, None, &mut refuse), &mut |_| panic!("nothing is told"));
    assert!(matches!(refused, Err(Halt::Mistake(mistake)) if mistake.to_string().contains("nothing left")));
}
