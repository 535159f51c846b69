//! How the house is built, as tests: which crate may use which, and what must never appear where.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is inside the workspace").to_path_buf()
}

/// Every arrow that exists; ARCHITECTURE.md says why. Arrows of tests are checked apart.
const ARROWS: &[(&str, &[&str])] = &[
    ("privacy", &[]),
    ("crypto", &["privacy"]),
    ("core", &["privacy"]),
    ("algorithms", &["core", "privacy"]),
    ("encrypted", &["core", "privacy", "crypto", "algorithms"]),
    ("sim", &["core", "privacy"]),
    ("net", &["core", "privacy"]),
    ("task", &["core", "privacy", "algorithms", "encrypted", "sim"]),
    ("report", &[]),
    ("run", &["task", "report", "core", "privacy", "algorithms", "encrypted", "sim"]),
    ("papers", &["run", "task", "report", "core", "privacy", "algorithms", "encrypted", "sim"]),
    ("cli", &["papers", "run", "task", "report", "net", "core", "privacy"]),
    ("fuzz", &["core", "privacy", "crypto", "algorithms", "encrypted", "net"]),
];

#[test]
fn arrows_between_crates_never_turn_back() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root())
        .output()
        .expect("cargo metadata runs");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let name = |value: &serde_json::Value| value["name"].as_str().expect("a name").to_owned();
    let short = |name: &str| name.strip_prefix("sottovoce-").map(str::to_owned);
    let mut seen = 0;
    for package in metadata["packages"].as_array().expect("packages") {
        let Some(from) = short(&name(package)) else { continue };
        let allowed = ARROWS.iter().find(|(crate_name, _)| *crate_name == from);
        let (_, allowed) = allowed.unwrap_or_else(|| panic!("crate {from} is not in the list of arrows"));
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let Some(to) = short(&name(dependency)) else { continue };
            let only_in_tests = dependency["kind"] == "dev";
            assert!(
                allowed.contains(&&*to)
                    || only_in_tests
                        && ["sim", "net", "cli"].contains(&&*from)
                        && ["algorithms", "encrypted"].contains(&&*to),
                "forbidden arrow: {from} -> {to}"
            );
        }
        seen += 1;
    }
    assert_eq!(seen, ARROWS.len(), "every crate has its arrows");
}

/// All files of one kind below a folder.
fn files(folder: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with(".git") {
            files(&path, ending, found);
        } else if path.extension().is_some_and(|extension| extension == ending) {
            found.push(path);
        }
    }
}

fn sources(folders: &[&str]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for folder in folders {
        files(&root().join(folder), "rs", &mut found);
    }
    found
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a source file");
            (path, text)
        })
        .collect()
}

#[test]
fn the_contract_and_the_algorithms_touch_nothing_outside() {
    for (path, text) in sources(&[
        "crates/core/src",
        "crates/algorithms/src",
        "crates/encrypted/src",
        "crates/encrypted/src",
        "crates/privacy/src",
        "crates/crypto/src",
    ]) {
        for word in ["std::fs", "std::net", "std::time", "std::env", "std::thread", "println!", "SystemTime", "Instant"]
        {
            assert!(!text.contains(word), "{} uses {word}", path.display());
        }
    }
}

/// Randomness is an argument of `crypto`: whoever calls it decides between entropy and a recorded seed.
#[test]
fn cryptography_draws_nothing_by_itself() {
    for (path, text) in sources(&["crates/crypto/src"]) {
        for word in ["getrandom", "OsRng", "SysRng", "thread_rng", "rand::rng", "::random()", "HashMap", "HashSet"] {
            assert!(!text.contains(word), "{} uses {word}", path.display());
        }
    }
}

/// The operating system's mathematics differs from machine to machine; `libm` and our own kernels do not.
#[test]
fn results_do_not_depend_on_the_machines_mathematics() {
    let calls =
        [".exp()", ".ln()", ".exp_m1()", ".ln_1p()", ".powf(", ".powi(", ".sin()", ".cos()", ".tanh()", ".log10()"];
    for (path, text) in sources(&[
        "crates/core/src",
        "crates/algorithms/src",
        "crates/encrypted/src",
        "crates/privacy/src",
        "crates/crypto/src",
        "crates/sim/src",
        "crates/task/src",
        "crates/run/src",
        "crates/report/src",
        "crates/papers/src",
    ]) {
        let program = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for call in calls {
            assert!(!program.contains(call), "{} calls {call}: use libm", path.display());
        }
    }
}

#[test]
fn drivers_and_everything_below_the_command_are_not_async() {
    for (path, text) in sources(&[
        "crates/core",
        "crates/algorithms",
        "crates/encrypted",
        "crates/privacy",
        "crates/crypto",
        "crates/sim",
        "crates/task",
        "crates/run",
        "crates/report",
        "crates/papers",
    ]) {
        for word in ["async fn", "async move", "async {", ".await"] {
            assert!(!text.contains(word), "{} is async", path.display());
        }
    }
}

#[test]
fn every_file_holds_one_idea() {
    for (path, text) in sources(&["crates", "fuzz", "xtask"]) {
        let lines = text.lines().count();
        assert!(lines <= 600, "{} has {lines} lines: is there a second idea inside?", path.display());
    }
}

/// No type can tell one crate from another, so the sources say who seals.
#[test]
fn only_cryptography_seals() {
    for (path, text) in sources(&["crates"]) {
        let may = ["crates/crypto", "crates/privacy"].iter().any(|part| path.to_string_lossy().contains(part));
        assert!(may || !text.contains("Sealed::by_cryptography"), "{} seals", path.display());
    }
}

#[test]
fn what_is_declared_public_is_listed_in_the_threat_model() {
    let threats = std::fs::read_to_string(root().join("THREATS.md")).expect("THREATS.md");
    for (path, text) in sources(&["crates"]) {
        // The gate itself is where charges are made.
        let outside = !path.ends_with("crates/privacy/src/gate.rs");
        let found = text.contains("Released::found_again(");
        if text.contains("Public::declare(")
            || found
            || outside && (text.contains("gate.charge(") || text.contains("gate.contribute("))
        {
            // A file and its folder; of a folder's own file, the folder above it too.
            let parts: Vec<_> = path.iter().map(|part| part.to_string_lossy()).collect();
            let name = parts[parts.len() - if path.ends_with("mod.rs") { 3 } else { 2 }..].join("/");
            let row = format!("| `{name}` |");
            assert!(threats.contains(&row), "{name} lets something out by its word that THREATS.md does not list");
        }
    }
}
