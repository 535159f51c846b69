//! Cargo, and the programs that it builds.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A program that cargo has built.
pub struct Program {
    /// The package's name.
    pub package: String,
    /// The package's folder, where its tests expect to be started.
    pub folder: PathBuf,
    /// What the target is called: the file of an integration test, the library for its unit tests.
    pub target: String,
    /// Where the program is.
    pub path: PathBuf,
    /// Whether it runs tests; commands and examples do not.
    pub tests: bool,
}

/// A call of cargo.
pub fn cargo(words: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words);
    command
}

/// Lets a call of cargo build in the release profile, and lists the programs that come of it.
pub fn programs(build: &mut Command) -> Result<Vec<Program>, String> {
    build.args(["--release", "--quiet", "--message-format", "json-render-diagnostics"]);
    let output = build.stderr(Stdio::inherit()).output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err("does not compile".to_owned());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(|line| program(&serde_json::from_str(line).ok()?)).collect())
}

/// The program that a message of cargo tells of.
fn program(message: &Value) -> Option<Program> {
    let path = PathBuf::from(message["executable"].as_str()?);
    let folder = PathBuf::from(message["manifest_path"].as_str()?).parent()?.to_owned();
    // `path+file:///a/folder#name@1.0.0`, and `...folder#1.0.0` where the folder has the package's name.
    let (place, named) = message["package_id"].as_str()?.rsplit_once('#')?;
    let package = match named.split_once('@') {
        Some((name, _)) => name.to_owned(),
        None => place.rsplit('/').next()?.to_owned(),
    };
    let target = message["target"]["name"].as_str()?.to_owned();
    Some(Program { package, folder, target, path, tests: message["profile"]["test"] == true })
}
