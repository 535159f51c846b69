//! The algorithm that CONTRIBUTING.md adds in an hour, taken from the text of the page and run.
//!
//! Each block of Rust in the section is a new file, or lines that go below a line of a file that exists: the text before the block names the file
//! in backticks and says `below` which line. All of it goes into the copy of the sources that the mutants use, so there is one build for both.

use crate::mutants::{self, Edit};
use crate::programs::{cargo, programs};
use std::path::Path;
use std::process::Command;

/// The page, and the section of it.
const PAGE: &str = "CONTRIBUTING.md";
const SECTION: &str = "## Add an algorithm in an hour\n";

/// What the page calls its algorithm.
const ALGORITHM: &str = "posted-propagation";

/// What the page adds.
pub struct Additions {
    /// Lines below lines of files that exist.
    pub edits: Vec<Edit>,
    /// Whole files by their paths.
    pub files: Vec<(String, String)>,
}

/// Reads the page.
pub fn read(root: &Path) -> Result<Additions, String> {
    let page = std::fs::read_to_string(root.join(PAGE)).map_err(|error| format!("{PAGE}: {error}"))?;
    parse(&page, &|file| root.join(file).is_file())
}

fn parse(page: &str, exists: &dyn Fn(&str) -> bool) -> Result<Additions, String> {
    let section = page.split_once(SECTION).ok_or_else(|| format!("{PAGE} has no section {SECTION:?}"))?.1;
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut additions = Additions { edits: Vec::new(), files: Vec::new() };
    // Text and blocks take turns.
    let pieces: Vec<&str> = section.split("```").collect();
    for pair in pieces.chunks_exact(2) {
        let (text, Some(block)) = (pair[0], pair[1].strip_prefix("rust\n")) else { continue };
        let quoted: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
        let is_file = |word: &&&str| word.starts_with("crates/") && word.ends_with(".rs");
        let file = quoted.iter().rfind(is_file).ok_or_else(|| format!("{PAGE} says no file for:\n{block}"))?;
        let below = text.rsplit_once("below `").and_then(|(_, rest)| rest.split('`').next());
        match (exists(file), below) {
            (true, Some(line)) => {
                let find = format!("\n{line}\n");
                let replace = format!("{find}{block}");
                additions.edits.push(Edit { file: (*file).to_owned(), find, replace });
            }
            (false, None) => additions.files.push(((*file).to_owned(), block.to_owned())),
            (true, None) => return Err(format!("{PAGE} does not say below which line of {file} this goes:\n{block}")),
            (false, Some(_)) => return Err(format!("{PAGE} adds lines to {file}, which does not exist")),
        }
    }
    if additions.files.is_empty() { Err(format!("{PAGE} adds no file")) } else { Ok(additions) }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_says_where_each_block_goes() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is inside the workspace");
        let additions = read(root).expect("a page that can be followed");
        let files: Vec<&str> = additions.files.iter().map(|(file, _)| file.as_str()).collect();
        let expected = [
            "crates/algorithms/src/personal/posted_propagation.rs",
            "crates/task/src/algorithms/posted_propagation.rs",
            "crates/sim/tests/posted_propagation.rs",
        ];
        assert_eq!((files, additions.edits.len()), (expected.to_vec(), 3));
    }

    #[test]
    fn a_block_without_a_place_is_refused() {
        let page = |text: &str| format!("# A\n{SECTION}{text}\n```rust\nfn f() {{}}\n```\n## B\n```rust\nno\n```\n");
        let parsed = |text: &str| parse(&page(text), &|file| file == "crates/a/old.rs");
        let added = parsed("In `crates/a/new.rs`:").expect("a new file");
        assert_eq!(added.files, [("crates/a/new.rs".to_owned(), "fn f() {}\n".to_owned())]);
        assert!(parsed("In `crates/a/old.rs`, below `mod a;`:").is_err_and(|why| why.contains("adds no file")));
        for text in ["Somewhere:", "In `crates/a/old.rs`:", "In `crates/a/new.rs`, below `mod a;`:"] {
            assert!(parsed(text).is_err(), "{text}");
        }
    }
}
