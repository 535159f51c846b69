//! Audits of tasks that keep their promise raise no alarm, and audits are repeatable. That mistakes are found is for `cargo xtask mutants`
//! to see: it makes them in a copy of the sources, and audits the same tasks.

#[path = "../../task/tests/support/mod.rs"]
mod support;

use sottovoce_run::audit::{Audit, AuditSettings, audit};
use sottovoce_task::load::{Loaded, load};
use sottovoce_task::task::Task;
use std::ops::ControlFlow;
use std::path::Path;

/// The private tasks that are audited here, by their files in `mutants/tasks`: rings of six agents with a few points each, one of the agents
/// without neighbours, and one without data.
const TASKS: [&str; 11] = [
    "gaussian",
    "laplace",
    "squared",
    "warm",
    "warm-laplace",
    "inputs",
    "faults",
    "exact",
    "learned",
    "learned-laplace",
    "learned-warm",
];

fn tasks() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../mutants/tasks"))
}

/// A task of the folder, with a seed of its own.
fn prepare(name: &str, seed: u64) -> Loaded {
    let mut task = Task::read(&tasks().join(name).with_extension("toml")).expect("a task");
    task.run.seed = seed;
    load(&task).unwrap_or_else(|mistake| panic!("{name}: {mistake}"))
}

fn run(name: &str, seed: u64) -> Audit {
    let settings = AuditSettings { runs: 40, releases: 40_000, recorded: 2, seed };
    audit(&prepare(name, seed), settings, &mut |_, _, _| ControlFlow::Continue(())).expect("a private task")
}

/// CHECK 02.j among others: recorded runs are replayed on neighbouring data with what the mechanisms gave out frozen, and every value
/// that is sent stays the same to the bit. So it is a function of public values and noisy releases.
#[test]
fn clean_runs_raise_no_alarm() {
    let runs: u64 = if std::env::var_os("SOTTOVOCE_SOAK").is_some() { 200 } else { 24 };
    for seed in 0..runs {
        let name = TASKS[seed as usize % TASKS.len()];
        let audit = run(name, seed);
        assert!(!audit.is_refuted(), "{name}, seed {seed}: {:?}", audit.findings);
        let run = audit.run.expect("somebody releases something");
        assert!(run.releases > 0 && run.trials == 40, "{run:?}");
        assert!(audit.replay.neighbours >= 100 && audit.replay.releases > 0, "{:?}", audit.replay);
        // The records that are tried are bad enough: from models of zero, they move an input by all that its sensitivity allows.
        let least = if name.contains("warm") { 0.5 } else { 0.999 };
        assert!(audit.replay.largest_move > least, "{name}: {:?}", audit.replay);
        assert!(audit.replay.largest_move <= 1.0 + 1e-12, "{name}: {:?}", audit.replay);
    }
}

/// Who wakes when is public and the same in all runs of an audit; with another seed of the audit, noise is other noise.
#[test]
fn an_audit_is_the_same_for_the_same_seed_and_another_for_another() {
    let loaded = prepare("laplace", 3);
    let bounds = |seed: u64| {
        let settings = AuditSettings { runs: 60, releases: 20_000, recorded: 1, seed };
        let audit = audit(&loaded, settings, &mut |_, _, _| ControlFlow::Continue(())).expect("a private task");
        (
            audit.mechanisms.iter().map(|mechanism| mechanism.epsilon).collect::<Vec<_>>(),
            audit.run.map(|run| run.epsilon),
        )
    };
    assert_eq!(bounds(1), bounds(1));
    assert_ne!(bounds(1), bounds(2));
}

/// Whole runs come near the claim where one update spends all of it, and the worst record moves the gradient as far as it goes.
#[test]
fn whole_runs_of_one_update_come_near_the_claim() {
    let file = |name: &str| std::fs::read(tasks().join(name)).expect("a file of the tasks");
    let task = "algorithm = \"coordinate-descent\"\n[data]\ntrain = \"train.csv\"\nnormalize = \"l1\"\n[graph]\nedges = \"edges.csv\"\nallow-isolated = true\n\
                [model]\nloss = \"logistic\"\n[run]\nwakes-per-agent = 12\n[privacy]\nepsilon = 2\ndelta = 0\nmechanism = \"laplace\"\n\
                updates = 1\n";
    let loaded = support::loaded(&[
        ("task.toml", task.as_bytes()),
        ("train.csv", &file("train.csv")),
        ("edges.csv", &file("edges.csv")),
    ])
    .expect("a private task");
    let settings = AuditSettings { runs: 3000, releases: 8, recorded: 1, seed: 5 };
    let audit = audit(&loaded, settings, &mut |_, _, _| ControlFlow::Continue(())).expect("a private task");
    let run = audit.run.expect("releases");
    println!("{run:?}");
    assert!(run.epsilon.likely > 0.85 * 2.0 && run.epsilon.likely <= 2.0, "{run:?}");
    assert!(audit.findings.is_empty(), "{:?}", audit.findings);
}

#[test]
fn a_task_without_a_claim_is_told_so() {
    let loaded = support::loaded(&[]).expect("a good task");
    let refused = audit(&loaded, AuditSettings::for_trials(20, 1), &mut |_, _, _| ControlFlow::Continue(()));
    assert!(refused.expect_err("no claim").to_string().contains("there is no claim to audit"));
}
