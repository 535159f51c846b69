//! The algorithm that CONTRIBUTING.md adds in an hour, compiled and run.
//!
//! All of it goes into the copy of the sources that the mutants use, so there is one build for both.

use crate::mutants;
use crate::page::PAGE;
use crate::programs::{cargo, programs};
use std::path::Path;
use std::process::Command;

/// What the page calls its algorithm.
const ALGORITHM: &str = "posted-propagation";

/// Makes the copy, builds what the page adds, and runs it: its test in the simulator, and a task that names it.
pub fn run(root: &Path, target: &Path) -> Result<(), String> {
    let copy = mutants::copy(root, target)?;
    let built = |words: &[&str], name: &str| {
        let mut build = cargo(words);
        let found = programs(build.current_dir(&copy).env("CARGO_TARGET_DIR", target))
            .map_err(|why| format!("{PAGE}: the copy {why}"))?;
        let program = found.into_iter().find(|program| program.target == name);
        program.map(|program| program.path).ok_or_else(|| format!("{PAGE}: no program {name}"))
    };
    let test = ALGORITHM.replace('-', "_");
    let program = built(&["test", "--no-run", "--package", "sottovoce-sim", "--test", &test], &test)?;
    succeeds(&mut Command::new(program))?;
    let command = built(&["build", "--package", "sottovoce-cli"], mutants::COMMAND)?;
    let place = target.join("walk-through");
    let (task, run) = (place.join("task/task.toml"), place.join("run"));
    let generate = ["data", "generate", "linear", "--agents", "20", "--dimension", "5", "--force", "--out"];
    succeeds(Command::new(&command).args(generate).arg(place.join("task")))?;
    let text = std::fs::read_to_string(&task).map_err(|error| format!("{}: {error}", task.display()))?;
    let named = text.replace("\"coordinate-descent\"", &format!("{ALGORITHM:?}"));
    std::fs::write(&task, named).map_err(|error| format!("{}: {error}", task.display()))?;
    succeeds(Command::new(&command).args(["train", "--force", "--out"]).arg(&run).arg(&task))?;
    let summary = std::fs::read_to_string(run.join("summary.json")).map_err(|error| error.to_string())?;
    match summary.contains(&format!("\"algorithm\": {ALGORITHM:?}")) {
        true => Ok(()),
        false => Err(format!("{PAGE}: the run was of another algorithm:\n{summary}")),
    }
}

fn succeeds(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| error.to_string())?;
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{PAGE}: {command:?} fails:\n{}", said.concat())),
    }
}
