//! The tests of the workspace, built once and then run several programs at a time.
//!
//! `cargo test` runs one program after another, and many of them wait: for sockets, for a peer's clock, for their last thread. Run side by side
//! they fill the waits of one another. Each program's output is printed whole when it ends.

use crate::programs::{Program, cargo, programs};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::time::Instant;

/// Programs that take more than some seconds, by package and target, the longest first. They are started first, and left out of the quick part.
const SLOW: &[(&str, &str)] = &[
    ("sottovoce-cli", "audit"),
    ("sottovoce-papers", "reproduce"),
    ("sottovoce-cli", "weather"),
    ("sottovoce-cli", "documents"),
    ("sottovoce-cli", "network"),
    ("sottovoce-privacy", "accountants"),
    ("sottovoce-run", "synthetic"),
    ("sottovoce-run", "private_accuracy"),
    ("sottovoce-cli", "hostile_records"),
    ("sottovoce-net", "crowd"),
    ("sottovoce-privacy", "golden"),
    ("sottovoce-cli", "killed"),
    ("sottovoce-privacy", "network"),
    ("sottovoce-papers", "movielens"),
    ("sottovoce-run", "learned"),
    ("sottovoce-cli", "private"),
];

/// Programs whose peers keep time by the clock: they run after the others, one by one, so that nobody else's work makes their peers late.
const ALONE: &[(&str, &str)] = &[
    ("sottovoce-cli", "weather"),
    ("sottovoce-cli", "network"),
    ("sottovoce-cli", "killed"),
    ("sottovoce-cli", "peer"),
    ("sottovoce-cli", "limits"),
    ("sottovoce-net", "crowd"),
    ("sottovoce-net", "peers"),
];

/// Which tests to run.
#[derive(Clone, Copy, PartialEq)]
pub enum Part {
    /// Every program.
    All,
    /// Those that are not slow.
    Quick,
}

/// Builds and runs the tests; says whether all passed.
pub fn run(part: Part) -> bool {
    eprintln!("== tests");
    let built = match programs(&mut cargo(&["test", "--workspace", "--no-run"])) {
        Ok(built) => built,
        Err(why) => {
            eprintln!("the workspace {why}\nFAILED tests");
            return false;
        }
    };
    let tests = built.into_iter().filter(|program| program.tests);
    let mut chosen: Vec<(usize, Program)> = tests.map(|program| (place(&program), program)).collect();
    if part == Part::Quick {
        chosen.retain(|(place, _)| *place == SLOW.len());
    }
    chosen.sort_by_key(|(place, _)| std::cmp::Reverse(*place));
    let (count, begun) = (chosen.len(), Instant::now());
    let (alone, together) = chosen.into_iter().partition(|(_, program)| is_in(ALONE, program).is_some());
    let workers = std::thread::available_parallelism().map_or(1, |count| count.get());
    let mut failed = share_out(together, workers);
    failed.extend(share_out(alone, 1));
    eprintln!("{count} programs of tests in {:.0} s", begun.elapsed().as_secs_f64());
    for name in &failed {
        eprintln!("FAILED tests: {name}");
    }
    failed.is_empty()
}

/// A program's place in a list.
fn is_in(list: &[(&str, &str)], program: &Program) -> Option<usize> {
    list.iter().position(|(package, target)| *package == program.package && *target == program.target)
}

/// A program's place among the slow ones; behind them if it is none.
fn place(program: &Program) -> usize {
    is_in(SLOW, program).unwrap_or(SLOW.len())
}

/// Runs programs, as many at a time as there are workers. Returns those that failed.
fn share_out(programs: Vec<(usize, Program)>, workers: usize) -> Vec<String> {
    let waiting = Mutex::new(programs);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(|| work(&waiting))).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker does not panic")).collect()
    })
}

/// Runs one waiting program after another, the last of the list first. Returns those that failed.
fn work(waiting: &Mutex<Vec<(usize, Program)>>) -> Vec<String> {
    let mut failed = Vec::new();
    loop {
        let next = waiting.lock().expect("no worker panics").pop();
        let Some((_, program)) = next else { return failed };
        let begun = Instant::now();
        let said = start(&program).output();
        let name = format!("{} {}", program.package, program.target);
        let ok = said.as_ref().is_ok_and(|said| said.status.success());
        let text = said.map_or_else(|error| error.to_string(), |said| told(&said));
        println!("-- {name}, {:.1} s\n{text}", begun.elapsed().as_secs_f64());
        if !ok {
            failed.push(name);
        }
    }
}

/// A program of tests as cargo would start it.
fn start(program: &Program) -> Command {
    let mut command = Command::new(&program.path);
    command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder).stdin(Stdio::null());
    command
}

fn told(said: &Output) -> String {
    [&said.stdout, &said.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_of_the_lists_exists() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is inside the workspace");
        for (package, target) in SLOW.iter().chain(ALONE) {
            let folder = root.join("crates").join(package.trim_start_matches("sottovoce-")).join("tests");
            assert!(
                folder.join(format!("{target}.rs")).exists() || folder.join(target).join("main.rs").exists(),
                "{package} has no tests {target}"
            );
        }
    }
}
