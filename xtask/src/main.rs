//! The project's own chores: `cargo xtask test`, `cargo xtask quick`, `cargo xtask mutants`, `cargo xtask walk-through`, `cargo xtask soak`, `cargo xtask bench`.

mod mutants;
mod page;
mod programs;
mod suite;
mod walk_through;

use programs::cargo;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const HELP: &str = "\
Usage: cargo xtask CHORE

  test    formatting, lints, documentation and every test; what CI runs (a few minutes)
  quick   formatting, and the tests that take a few seconds each; for while you work (three minutes)
  mutants the last parts of it: mistakes made in a copy of the sources, each of which must be found; names choose some
  walk-through the algorithm that CONTRIBUTING.md adds, added to that copy and run
  soak    the long versions of the tests: 200 seeds of faults, larger problems, peers killed at every boundary, floods of a minute,
          ten million damaged inputs (an hour or two)
  bench   the cost of a wake against a bare loop, and of two-party computation against bare AES; close other programs first (two minutes)
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["test"] => test(),
        ["quick"] => formatting() & suite::run(suite::Part::Quick),
        ["soak"] => {
            let tests =
                ["test", "--release", "--workspace", "--no-fail-fast", "--", "--include-ignored", "--nocapture"];
            let inputs = ["run", "--release", "--package", "sottovoce-fuzz", "--", "--inputs", "10000000"];
            let ok = run("soak", cargo(&tests).env("SOTTOVOCE_SOAK", "1"));
            run("ten million damaged inputs", &mut cargo(&inputs)) && ok
        }
        ["mutants", ref chosen @ ..] => in_a_copy("mutants", |root, target| mutants::run(root, target, chosen)),
        ["walk-through"] => in_a_copy("walk-through", walk_through::run),
        ["bench"] => {
            let wakes =
                ["bench", "--package", "sottovoce-sim", "--bench", "wake", "--bench", "graph", "--bench", "polar"];
            let pairs = ["bench", "--package", "sottovoce-crypto", "--bench", "two_party"];
            run("bench of wakes", &mut cargo(&wakes)) & run("bench of two-party computation", &mut cargo(&pairs))
        }
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn test() -> bool {
    let lints = ["clippy", "--release", "--workspace", "--all-targets", "--", "--deny", "warnings"];
    let mut ok = formatting() & tool("clippy", &lints);
    let mut document = cargo(&["doc", "--release", "--workspace", "--no-deps", "--quiet"]);
    ok &= run("documentation", document.env("RUSTDOCFLAGS", "--deny warnings"));
    ok &= suite::run(suite::Part::All);
    ok &= run("examples in the documentation", &mut cargo(&["test", "--release", "--workspace", "--doc"]));
    ok &= oracle();
    ok &= in_a_copy("mutants", |root, target| mutants::run(root, target, &[]));
    in_a_copy("walk-through", walk_through::run) && ok
}

fn formatting() -> bool {
    tool("rustfmt", &["fmt", "--all", "--check"])
}

/// Runs a tool that comes with rustup's default profile; a machine without it can still run the tests.
fn tool(name: &str, words: &[&str]) -> bool {
    let present = cargo(&[words[0], "--version"]).output().is_ok_and(|output| output.status.success());
    if present {
        return run(name, &mut cargo(words));
    }
    eprintln!("SKIPPED {name}: not installed (rustup component add {name})");
    true
}

/// A chore in a copy of the sources below the target folder.
fn in_a_copy(name: &str, chore: impl Fn(&Path, &Path) -> Result<(), String>) -> bool {
    eprintln!("== {name}");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is inside the workspace");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    // The copy's builds share the target folder, wherever they run from.
    let target = std::path::absolute(&target).unwrap_or(target);
    match chore(root, &target) {
        Ok(()) => true,
        Err(missed) => {
            eprintln!("{missed}\nFAILED {name}");
            false
        }
    }
}

/// The accountants beside implementations that are not ours. They need python3 and a package each; without them the stored values
/// and the tests' own exact arithmetic must do.
fn oracle() -> bool {
    const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/privacy/oracles");
    /// What a script exits with where its package cannot be had.
    const UNAVAILABLE: i32 = 77;
    let python = || Command::new("python3");
    let present = python().arg("--version").output().is_ok_and(|output| output.status.success());
    let mut ok = true;
    for (package, script, word) in
        [("dp-accounting", "accounting.py", Some("check")), ("mpmath", "sixty_digits.py", None)]
    {
        let name = format!("comparison of the accountants with {package}");
        if !present {
            eprintln!("SKIPPED {name}: there is no python3; only the stored values were compared");
            continue;
        }
        eprintln!("== {name}");
        let program = cargo(&["run", "--quiet", "--release", "--package", "sottovoce-privacy", "--example", "epsilon"]);
        let mut asked = python();
        asked.arg(Path::new(FOLDER).join(script)).args(word);
        match asked.arg(program.get_program()).args(program.get_args()).status().map(|status| status.code()) {
            Ok(Some(0)) => {}
            Ok(Some(UNAVAILABLE)) => {
                eprintln!(
                    "SKIPPED {name}: its package is not available (see above); only the stored values were compared"
                );
            }
            _ => {
                eprintln!("FAILED {name}");
                ok = false;
            }
        }
    }
    ok
}

fn run(name: &str, command: &mut Command) -> bool {
    eprintln!("== {name}");
    let ok = command.status().is_ok_and(|status| status.success());
    if !ok {
        eprintln!("FAILED {name}");
    }
    ok
}
