//! The copy of the sources with all mutants in it.

use super::{GUARD, Mutant, VARIABLE};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What the command is called in the copy. A name of its own, because both builds share a target folder, and nobody must run a mutant
/// where the command is meant.
pub const COMMAND: &str = "sottovoce-mutants";

/// The function that chooses; it exists in the copy alone.
const CHOICE: &str = r#"
extern crate self as sottovoce_privacy;

/// Whether a run makes this mistake.
pub fn mutant(name: &str) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    CHOSEN.get_or_init(|| std::env::var("VARIABLE").ok()).as_deref() == Some(name)
}
"#;

/// Copies the sources to a folder, with the mutants in them, and new files beside them. A file that is there already and is the same is left alone, so that
/// cargo builds only what has changed.
pub fn make(root: &Path, copy: &Path, mutants: &[Mutant], new: &[(String, String)]) -> Result<PathBuf, String> {
    let mut patched = patched(root, mutants)?;
    patched.extend_from_slice(new);
    let mut kept = BTreeSet::new();
    for name in files(root, Path::new(""))?.into_iter().chain(new.iter().map(|(file, _)| PathBuf::from(file))) {
        let original = root.join(&name);
        let content = match patched.iter().find(|(file, _)| Path::new(file) == name) {
            Some((_, text)) => text.clone().into_bytes(),
            None => std::fs::read(&original).map_err(|error| format!("{}: {error}", original.display()))?,
        };
        let content = renamed(&name, content)?;
        let to = copy.join(&name);
        if std::fs::read(&to).is_ok_and(|old| old == content) {
            kept.insert(name);
            continue;
        }
        let written = to.parent().map_or(Ok(()), std::fs::create_dir_all).and_then(|()| std::fs::write(&to, content));
        written.map_err(|error| format!("{}: {error}", to.display()))?;
        kept.insert(name);
    }
    // cargo writes the lock file of the copy itself.
    for old in files(copy, Path::new(""))?.into_iter().filter(|old| !kept.contains(old)) {
        std::fs::remove_file(copy.join(&old)).map_err(|error| format!("{}: {error}", old.display()))?;
    }
    Ok(copy.to_owned())
}

/// The version of all crates of the copy, and the name of its command. Both builds share a target folder, so that dependencies are
/// compiled once; by their version cargo keeps their crates apart.
fn renamed(name: &Path, content: Vec<u8>) -> Result<Vec<u8>, String> {
    let manifest = |from: &str, to: &str| {
        let text = String::from_utf8_lossy(&content);
        match text.matches(from).count() {
            1 => Ok(text.replace(from, to).into_bytes()),
            count => Err(format!("{} holds {from:?} {count} times, and must hold it once", name.display())),
        }
    };
    if name == Path::new("Cargo.toml") {
        return manifest("[workspace.package]\nversion = \"", "[workspace.package]\nversion = \"0.0.0-mutants.");
    }
    if name == Path::new("crates/cli/Cargo.toml") {
        return manifest("[[bin]]\nname = \"sottovoce\"", &format!("[[bin]]\nname = \"{COMMAND}\""));
    }
    if name.starts_with("crates/cli/tests") && name.extension().is_some_and(|ending| ending == "rs") {
        let text = String::from_utf8_lossy(&content);
        return Ok(text.replace("CARGO_BIN_EXE_sottovoce\"", &format!("CARGO_BIN_EXE_{COMMAND}\"")).into_bytes());
    }
    Ok(content)
}

/// The files that differ from the originals.
pub fn patched(root: &Path, mutants: &[Mutant]) -> Result<Vec<(String, String)>, String> {
    let read = |file: &str| std::fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"));
    let names: BTreeSet<&str> =
        mutants.iter().flat_map(|mutant| &mutant.edits).map(|edit| edit.file.as_str()).collect();
    let mut patched = Vec::new();
    for file in names {
        patched.push((file.to_owned(), patch(file, &read(file)?, mutants)?));
    }
    let mut change = |file: &str, change: &dyn Fn(&str) -> String| -> Result<(), String> {
        match patched.iter_mut().find(|(name, _)| name == file) {
            Some((_, text)) => *text = change(text),
            None => patched.push((file.to_owned(), change(&read(file)?))),
        }
        Ok(())
    };
    change("crates/privacy/src/lib.rs", &|text| format!("{text}{}", CHOICE.replace("VARIABLE", VARIABLE)))?;
    Ok(patched)
}

/// One file with the edits of all mutants. Places are those of the original, so that mutants do not depend on one another.
pub fn patch(file: &str, text: &str, mutants: &[Mutant]) -> Result<String, String> {
    let mut edits: Vec<(usize, usize, &str, String)> = Vec::new();
    for mutant in mutants {
        for edit in mutant.edits.iter().filter(|edit| edit.file == file) {
            let mut places = text.match_indices(edit.find.as_str()).map(|(at, _)| at);
            let (Some(at), None) = (places.next(), places.next()) else {
                let count = text.matches(edit.find.as_str()).count();
                return Err(format!(
                    "mutant {}: {file} holds this {count} times, and must hold it once:\n{}",
                    mutant.name, edit.find
                ));
            };
            let question = format!("sottovoce_privacy::mutant({:?})", mutant.name);
            edits.push((at, at + edit.find.len(), &mutant.name, edit.replace.replace(GUARD, &question)));
        }
    }
    edits.sort();
    let (mut patched, mut done, mut before) = (String::new(), 0, "");
    for (from, to, name, replace) in &edits {
        if *from < done {
            return Err(format!("{file}: mutants {before} and {name} change the same place"));
        }
        patched += &text[done..*from];
        patched += replace;
        (done, before) = (*to, name);
    }
    Ok(patched + &text[done..])
}

/// All files below a folder that are no build results and not hidden, relative to it.
fn files(root: &Path, below: &Path) -> Result<Vec<PathBuf>, String> {
    let folder = root.join(below);
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(&folder) else { return Ok(found) };
    for entry in entries {
        let entry = entry.map_err(|error| format!("{}: {error}", folder.display()))?;
        let name = entry.file_name();
        if name == "target" || name.to_string_lossy().starts_with('.') {
            continue;
        }
        let path = below.join(&name);
        if entry.path().is_dir() {
            found.extend(files(root, &path)?);
        } else {
            found.push(path);
        }
    }
    Ok(found)
}
