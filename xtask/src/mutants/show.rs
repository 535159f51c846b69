//! Builds the copy, and sees that each mutant is found by whoever must find it, and that nobody raises an alarm without one.

use super::{Mutant, Shown, VARIABLE, copy::COMMAND};
use crate::programs::{cargo, programs};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// A warm start of a smaller epsilon than this takes more trials than there are here to show that its noise is halved.
const WEAK: f64 = 0.31;

/// One thing to look at: a mutant or none, and who looks.
struct Look<'m> {
    mutant: Option<&'m str>,
    shown: Shown,
}

/// What the copy was built to.
struct Programs {
    command: PathBuf,
    /// By package and target.
    tests: Vec<((String, String), PathBuf)>,
}

pub fn all(copy: &Path, mutants: &[Mutant]) -> Result<(), String> {
    let begun = Instant::now();
    let programs = build(copy, mutants)?;
    eprintln!("built in {:.0} s", begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    let mut looks: Vec<Look<'_>> = Vec::new();
    for mutant in mutants {
        for shown in &mutant.shown {
            // Nobody may raise an alarm about the copy as such; the same look serves all mutants that it shows.
            if !looks.iter().any(|look| look.mutant.is_none() && alike(&look.shown, shown)) {
                looks.push(Look { mutant: None, shown: shown.clone() });
            }
            looks.push(Look { mutant: Some(&mutant.name), shown: shown.clone() });
        }
    }
    let next = AtomicUsize::new(0);
    let workers = std::thread::available_parallelism().map_or(1, |count| count.get());
    let missed: Vec<String> = std::thread::scope(|scope| {
        let work = || {
            let mut missed = Vec::new();
            while let Some(look) = looks.get(next.fetch_add(1, Ordering::Relaxed)) {
                let begun = Instant::now();
                let said = see(copy, &programs, look);
                let name = look.mutant.unwrap_or("no mutant");
                let result = if said.is_ok() { "as it must be" } else { "WRONG" };
                eprintln!("{name}, {}: {result} ({:.1} s)", describe(&look.shown), begun.elapsed().as_secs_f64());
                if let Err(why) = said {
                    missed.push(format!("{name}, {}: {why}", describe(&look.shown)));
                }
            }
            missed
        };
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    eprintln!("{} looks in {:.0} s", looks.len(), begun.elapsed().as_secs_f64());
    if missed.is_empty() { Ok(()) } else { Err(missed.join("\n")) }
}

/// Whether two looks run the same thing.
fn alike(a: &Shown, b: &Shown) -> bool {
    match (a, b) {
        (Shown::Audit { task, flaw, trials, .. }, Shown::Audit { task: other, flaw: and, trials: as_many, .. }) => {
            task == other && trials == as_many && is_of_artefacts(flaw) == is_of_artefacts(and)
        }
        _ => a == b,
    }
}

/// Whether the level of artefacts alone can find a flaw. For the others it is left out: it takes seconds.
fn is_of_artefacts(flaw: &str) -> bool {
    ["refusal", "shape-moves", "files-move", "output-moves", "frames-move"].contains(&flaw)
}

fn describe(shown: &Shown) -> String {
    match shown {
        Shown::Audit { task, flaw, .. } => format!("audit of {task}, {flaw}"),
        Shown::Test { package, target, name } => format!("test {package} {target} {name}"),
    }
}

fn build(copy: &Path, mutants: &[Mutant]) -> Result<Programs, String> {
    let mut wanted: Vec<(String, String)> = Vec::new();
    for shown in mutants.iter().flat_map(|mutant| &mutant.shown) {
        if let Shown::Test { package, target, .. } = shown {
            wanted.push((package.clone(), target.clone()));
        }
    }
    wanted.sort();
    wanted.dedup();
    let target = copy.parent().expect("the copy is below the target folder");
    let built = |words: &[&str]| {
        programs(cargo(words).current_dir(copy).env("CARGO_TARGET_DIR", target))
            .map_err(|why| format!("the copy {why}"))
    };
    let command = built(&["build", "--package", "sottovoce-cli"])?
        .into_iter()
        .find(|program| program.target == COMMAND)
        .ok_or("the copy has no command")?
        .path;
    let mut tests = Vec::new();
    for (package, target) in wanted {
        let kind = if target == "lib" { vec!["--lib"] } else { vec!["--test", &target] };
        let words: Vec<&str> = ["test", "--no-run", "--package", &package].into_iter().chain(kind).collect();
        let library = package.replace('-', "_");
        let found = built(&words)?
            .into_iter()
            .find(|program| program.target == target || target == "lib" && program.target == library);
        let program = found.ok_or_else(|| format!("{package} has no tests {target}"))?;
        tests.push(((package, target), program.path));
    }
    Ok(Programs { command, tests })
}

fn see(copy: &Path, programs: &Programs, look: &Look<'_>) -> Result<(), String> {
    let chosen = |program: &Path| {
        let mut command = Command::new(program);
        command.env_remove(VARIABLE).stdin(Stdio::null());
        if let Some(name) = look.mutant {
            command.env(VARIABLE, name);
        }
        command
    };
    match &look.shown {
        Shown::Audit { task, flaw, trials, laws } => {
            let file = copy.join("mutants/tasks").join(format!("{task}.toml"));
            let mut command = chosen(&programs.command);
            command.arg("audit").arg(file).args(["--json", "--trials", &trials.to_string()]);
            if !is_of_artefacts(flaw) {
                command.arg("--skip-artefacts");
            }
            let output = command.output().map_err(|error| error.to_string())?;
            let audit: Value = serde_json::from_slice(&output.stdout)
                .map_err(|_| format!("no audit: {}", String::from_utf8_lossy(&output.stderr)))?;
            judge(&audit, look.mutant.is_some().then_some(flaw), *laws)
        }
        Shown::Test { package, target, name } => {
            let program = programs.tests.iter().find(|(of, _)| *of == (package.clone(), target.clone()));
            let (_, program) = program.ok_or("it was not built")?;
            // Tests find their files from the folder of their package.
            let folder = copy.join("crates").join(package.trim_start_matches("sottovoce-"));
            let mut command = chosen(program);
            let output = command.arg(name).current_dir(folder).output().map_err(|error| error.to_string())?;
            let said = String::from_utf8_lossy(&output.stdout);
            match (look.mutant, output.status.success()) {
                (_, true) if said.contains(" 0 passed") => Err("there is no such test".to_owned()),
                (Some(_), true) => Err("the test passes".to_owned()),
                (None, false) => Err(format!("the test fails without the mutant:\n{said}")),
                _ => Ok(()),
            }
        }
    }
}

/// Whether an audit found this flaw; or, without one, nothing.
fn judge(audit: &Value, flaw: Option<&String>, laws: bool) -> Result<(), String> {
    let findings = audit["findings"].as_array().ok_or("an audit without findings")?;
    let Some(flaw) = flaw else {
        return if findings.is_empty() { Ok(()) } else { Err(format!("an alarm without a mutant: {findings:?}")) };
    };
    if !findings.iter().any(|finding| finding["flaw"] == flaw.as_str()) {
        return Err(format!("not found as {flaw}, but as {findings:?}"));
    }
    if audit["verdict"] != "REFUTED" {
        return Err(format!("the verdict is {}", audit["verdict"]));
    }
    for law in audit["mechanisms"].as_array().into_iter().flatten().filter(|_| laws) {
        let single = law["dimension"] == 1 && law["mechanism"] != "randomized-response";
        let weak = law["mechanism"] == "gamma-norm" && law["epsilon"].as_f64().is_some_and(|epsilon| epsilon < WEAK);
        if single && !weak && law["refuted"] != true {
            return Err(format!("this law is not refuted: {law}"));
        }
    }
    Ok(())
}
