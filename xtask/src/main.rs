//! The project's own chores: `cargo xtask test`, `cargo xtask soak`, `cargo xtask bench`.

use std::process::{Command, ExitCode};

const HELP: &str = "\
Usage: cargo xtask CHORE

  test    formatting, lints, documentation and every test; what CI runs (a few minutes)
  soak    the long versions of the tests: 200 seeds of faults, larger problems (about half an hour)
  bench   the cost of a wake against a bare loop; close other programs first (two minutes)
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let done = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["test"] => test(),
        ["soak"] => run("soak", cargo(&["test", "--release", "--workspace"]).env("SOTTOVOCE_SOAK", "1")),
        ["bench"] => run("bench", &mut cargo(&["bench", "--package", "sottovoce-sim", "--bench", "wake"])),
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    if done { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn test() -> bool {
    // The two tools come with rustup's default profile; a machine without them can still run the tests.
    let mut ok = true;
    for (tool, words) in [
        ("rustfmt", &["fmt", "--all", "--check"][..]),
        ("clippy", &["clippy", "--release", "--workspace", "--all-targets", "--", "--deny", "warnings"][..]),
    ] {
        let present = cargo(&[words[0], "--version"]).output().is_ok_and(|output| output.status.success());
        if present {
            ok &= run(tool, &mut cargo(words));
        } else {
            eprintln!("SKIPPED {tool}: not installed (rustup component add {tool})");
        }
    }
    let mut document = cargo(&["doc", "--release", "--workspace", "--no-deps", "--quiet"]);
    ok &= run("documentation", document.env("RUSTDOCFLAGS", "--deny warnings"));
    run("tests", &mut cargo(&["test", "--release", "--workspace"])) && ok
}

fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words);
    command
}

fn run(name: &str, command: &mut Command) -> bool {
    eprintln!("== {name}");
    let ok = command.status().is_ok_and(|status| status.success());
    if !ok {
        eprintln!("FAILED {name}");
    }
    ok
}
