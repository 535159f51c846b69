//! The audit of artefacts with commands that misbehave: each must be found as what it is.

use sottovoce_run::audit::{ArtefactAudit, Ended, Finding, Flaw, audit_artefacts};
use sottovoce_task::load::load;
use sottovoce_task::task::Task;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// What a command can learn of the record that was replaced: the text of its file.
struct Called {
    command: String,
    rows: String,
    out: PathBuf,
}

/// Audits a task with commands of the test's; `behave` fills in what is seen of one.
fn audited(task: &str, behave: impl Fn(&Called, &mut Ended)) -> (ArtefactAudit, Vec<Finding>) {
    let file = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../mutants/tasks")).join(task);
    let loaded = load(&Task::read(&file).expect("a task")).expect("a problem");
    let mut start = |words: &[OsString]| {
        let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let task = Task::read(Path::new(&words[1])).expect("the copy is a task");
        let rows = std::fs::read_to_string(&task.data.train.file).expect("the copy has rows");
        let called = Called { command: words[0].clone(), rows, out: PathBuf::from(&words[3]) };
        std::fs::create_dir(&called.out).expect("a new folder");
        std::fs::write(called.out.join("models.csv"), "agent,theta_0\n0,0.5\n").expect("written");
        std::fs::write(called.out.join("ledger.jsonl"), "{}\n").expect("written");
        let mut ended = Ended { code: Some(0), out: b"{\"agents\": 6, \"objective\": 0.5}".to_vec(), err: Vec::new() };
        behave(&called, &mut ended);
        Ok(ended)
    };
    audit_artefacts(&loaded, 1, &mut start, &mut |_, _| ControlFlow::Continue(())).expect("an audit")
}

#[test]
fn commands_that_tell_nothing_raise_no_alarm() {
    let (audit, findings) = audited("sparse.toml", |_, _| {});
    assert_eq!(findings, []);
    assert!(audit.neighbours >= 16 && audit.trained == audit.neighbours + 1, "{audit:?}");
    assert!(audit.networks > 2 && audit.skipped.is_empty(), "{audit:?}");
}

#[test]
fn what_a_command_exits_with_prints_and_writes_is_compared() {
    let write = |called: &Called, name: &str, text: &str| {
        std::fs::write(called.out.join(name), text).expect("written");
    };
    // Each record makes the command misbehave in another way.
    let (_, findings) = audited("peers.toml", |called, ended| match &called.rows {
        _ if called.command != "train" => {}
        rows if rows.contains("some text") => ended.code = Some(101),
        rows if rows.contains("1e6") => ended.out = b"{\"agents\": 7, \"objective\": 0.5}".to_vec(),
        rows if rows.contains(",7,") => ended.out = b"{\"agents\": 6}".to_vec(),
        rows if rows.contains("inf") => write(called, "ledger.jsonl", "{}\n{}\n"),
        rows if rows.contains("5e-324") => write(called, "models.csv", "agent,theta_0\n"),
        rows if rows.contains(",,") => write(called, "extra.csv", ""),
        // Released values, and what is nobody else's, may differ.
        _ => {
            write(called, "models.csv", "agent,theta_0\n0,-17.25\n");
            ended.out = b"{\"agents\": 6, \"objective\": 0.25}".to_vec();
        }
    });
    let mut found: Vec<(Flaw, u64)> = findings.iter().map(|finding| (finding.flaw, finding.count)).collect();
    found.sort();
    assert_eq!(
        found,
        [(Flaw::Refusal, 1), (Flaw::ShapeMoves, 2), (Flaw::FilesMove, 1), (Flaw::OutputMoves, 2)],
        "{findings:?}"
    );
    let (_, findings) = audited("peers.toml", |called, ended| match &called.rows {
        _ if called.command != "network" => {}
        rows if rows.contains("some text") => ended.code = Some(2),
        // It prints something, and it writes no task.
        rows if rows.contains("1e6") => ended.err = b"a point is too long".to_vec(),
        rows if rows.contains(",7,") => write(called, "task.toml", "another"),
        _ => write(called, "task.toml", "the task"),
    });
    let found: Vec<Flaw> = findings.iter().map(|finding| finding.flaw).collect();
    assert_eq!(found, [Flaw::FilesMove, Flaw::OutputMoves, Flaw::ShapeMoves, Flaw::Refusal], "{findings:?}");
}

/// With many agents an agent and a few neighbours are a task of their own.
#[test]
fn a_large_task_is_cut_to_a_neighbourhood() {
    let place = tempfile::tempdir().expect("a folder");
    let mut rows = "agent,label,x\n".to_owned();
    for k in 0..60 {
        rows += &format!("a{},{},{}\n", k % 20, if k % 3 == 0 { 1 } else { -1 }, f64::from(k) / 60.0);
    }
    let task = "algorithm = \"coordinate-descent\"\n[data]\ntrain = \"train.csv\"\nnormalize = \"l2\"\n[graph]\nkind = \"ring\"\n\
                [privacy]\nepsilon = 1\ndelta = 1e-6\nupdates = 2\n";
    std::fs::write(place.path().join("train.csv"), rows).expect("written");
    std::fs::write(place.path().join("task.toml"), task).expect("written");
    let loaded = load(&Task::read(&place.path().join("task.toml")).expect("a task")).expect("a problem");
    let mut agents = Vec::new();
    let mut start = |words: &[OsString]| {
        let copy = load(&Task::read(Path::new(&words[1])).expect("the copy is a task")).expect("the copy loads");
        agents.push(copy.names.len());
        Ok(Ended { code: Some(0), ..Ended::default() })
    };
    let (audit, findings) =
        audit_artefacts(&loaded, 1, &mut start, &mut |_, _| ControlFlow::Continue(())).expect("an audit");
    assert_eq!(findings, []);
    assert!(audit.neighbours >= 15 && agents.iter().all(|&agents| agents == 3), "{agents:?}");
}
