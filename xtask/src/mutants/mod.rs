//! Mistakes that are made on purpose in a copy of the sources, to see that the audits and the tests find them.
//!
//! Each file `mutants/NAME.toml` says what to change and who must notice. All changes are made at once in `target/mutants`, each behind a
//! question that only the copy knows, `sottovoce_privacy::mutant("NAME")`: so there is one build, and a variable of the environment says which
//! mistake a run makes. The sources that are shipped hold none of it. CONTRIBUTING.md says how to add one.

mod copy;
mod show;

pub use copy::COMMAND;

use crate::page;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The environment variable that chooses a mutant in the copy.
const VARIABLE: &str = "SOTTOVOCE_MUTANT";

/// Stands for the question whether the mutant is chosen.
const GUARD: &str = "MUTANT";

/// One mistake.
pub struct Mutant {
    name: String,
    edits: Vec<Edit>,
    shown: Vec<Shown>,
}

/// A change of one place of one file.
struct Edit {
    file: String,
    find: String,
    replace: String,
}

/// Who notices.
#[derive(Clone, Debug, PartialEq)]
enum Shown {
    /// `sottovoce audit mutants/tasks/TASK.toml --trials N` names this flaw, and with `laws` refutes each law of the plan by itself.
    Audit { task: String, flaw: String, trials: i64, laws: bool },
    /// A test fails. Its target is the name of a file in `tests`, or `lib`.
    Test { package: String, target: String, name: String },
}

/// Makes the copy, builds it, and sees that the chosen mutants are found; all of them where none is chosen.
pub fn run(root: &Path, target: &Path, chosen: &[&str]) -> Result<(), String> {
    let mut mutants = read(root)?;
    let copy = copy(root, target)?;
    if let Some(unknown) = chosen.iter().find(|name| mutants.iter().all(|mutant| mutant.name != **name)) {
        return Err(format!("there is no mutants/{unknown}.toml"));
    }
    mutants.retain(|mutant| chosen.is_empty() || chosen.contains(&mutant.name.as_str()));
    show::all(&copy, &mutants)
}

/// Makes the copy: the sources with all mutants, and with what the walk-through of CONTRIBUTING.md adds.
pub fn copy(root: &Path, target: &Path) -> Result<PathBuf, String> {
    let page::Additions { insertions, files } = page::read(root)?;
    let mut mutants = read(root)?;
    mutants.push(additions(insertions));
    copy::make(root, &target.join("mutants"), &mutants, &files)
}

/// What the walk-through adds to files that exist: no mistake, but changes like those of mutants.
fn additions(insertions: Vec<page::Insertion>) -> Mutant {
    let edit = |page::Insertion { file, find, replace }| Edit { file, find, replace };
    Mutant { name: "walk-through".to_owned(), edits: insertions.into_iter().map(edit).collect(), shown: Vec::new() }
}

/// All mutants, in the order of their names.
fn read(root: &Path) -> Result<Vec<Mutant>, String> {
    let folder = root.join("mutants");
    let mut mutants = Vec::new();
    for entry in std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            let named = |error: String| format!("{}: {error}", path.display());
            let text = std::fs::read_to_string(&path).map_err(|error| named(error.to_string()))?;
            let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            mutants.push(parse(name, &text).map_err(named)?);
        }
    }
    mutants.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(mutants)
}

fn parse(name: String, text: &str) -> Result<Mutant, String> {
    let table: Table = text.parse().map_err(|error| format!("{error}"))?;
    known(&table, &["undoes", "edit", "shown"])?;
    word(&table, "undoes")?;
    let edits = tables(&table, "edit")?.map(edit).collect::<Result<Vec<_>, _>>()?;
    let shown = tables(&table, "shown")?.map(shown).collect::<Result<Vec<_>, _>>()?;
    if !edits.iter().any(|edit| edit.replace.contains(GUARD)) {
        return Err(format!("no replacement asks whether the mutant is chosen; accepted: `if {GUARD}` in one of them"));
    }
    Ok(Mutant { name, edits, shown })
}

fn edit(table: &Table) -> Result<Edit, String> {
    known(table, &["file", "find", "replace"])?;
    Ok(Edit { file: word(table, "file")?, find: word(table, "find")?, replace: word(table, "replace")? })
}

fn shown(table: &Table) -> Result<Shown, String> {
    known(table, &["audit", "flaw", "trials", "laws", "package", "target", "test"])?;
    if table.contains_key("audit") {
        let trials = table.get("trials").map_or(Some(160), Value::as_integer).ok_or("trials: a number")?;
        let laws = table.get("laws").map_or(Some(false), Value::as_bool).ok_or("laws: true or false")?;
        return Ok(Shown::Audit { task: word(table, "audit")?, flaw: word(table, "flaw")?, trials, laws });
    }
    Ok(Shown::Test { package: word(table, "package")?, target: word(table, "target")?, name: word(table, "test")? })
}

fn known(table: &Table, keys: &[&str]) -> Result<(), String> {
    match table.keys().find(|key| !keys.contains(&key.as_str())) {
        Some(key) => Err(format!("unknown key {key:?}; accepted: {}", keys.join(", "))),
        None => Ok(()),
    }
}

fn word(table: &Table, key: &str) -> Result<String, String> {
    match table.get(key).and_then(Value::as_str) {
        Some(text) if !text.trim().is_empty() => Ok(text.to_owned()),
        _ => Err(format!("{key} is missing")),
    }
}

fn tables<'t>(table: &'t Table, key: &str) -> Result<impl Iterator<Item = &'t Table>, String> {
    match table.get(key).and_then(Value::as_array) {
        Some(values) if values.iter().all(Value::is_table) && !values.is_empty() => {
            Ok(values.iter().filter_map(Value::as_table))
        }
        _ => Err(format!("[[{key}]] is missing")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> &'static Path {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask is inside the workspace")
    }

    /// Sources move on; a mutant whose place is gone would be a mistake that nobody looks for any more.
    #[test]
    fn every_mutant_applies_exactly_once() {
        let mut mutants = read(root()).expect("readable mutants");
        assert!(mutants.len() >= 20, "{} mutants", mutants.len());
        mutants.push(additions(page::read(root()).expect("a page").insertions));
        copy::patched(root(), &mutants).unwrap_or_else(|error| panic!("{error}"));
        for mutant in &mutants {
            for shown in &mutant.shown {
                match shown {
                    Shown::Audit { task, .. } => {
                        let file = root().join("mutants/tasks").join(format!("{task}.toml"));
                        assert!(file.is_file(), "{}: no {}", mutant.name, file.display());
                    }
                    Shown::Test { package, target, name } => {
                        let folder = package.strip_prefix("sottovoce-").expect("a package of ours");
                        let file = root().join("crates").join(folder).join("tests").join(format!("{target}.rs"));
                        assert!(target == "lib" || file.is_file(), "{}: no {}", mutant.name, file.display());
                        assert!(!name.is_empty());
                    }
                }
            }
        }
    }

    #[test]
    fn a_place_that_is_gone_or_there_twice_or_shared_is_refused() {
        let mutant = |name: &str, find: &str| {
            let text = format!(
                "undoes = \"a line\"\n[[edit]]\nfile = \"f\"\nfind = \"{find}\"\nreplace = \"MUTANT\"\n[[shown]]\naudit = \"t\"\nflaw = \"f\"\n"
            );
            parse(name.to_owned(), &text).expect("a mutant")
        };
        let patch = |mutants: &[Mutant]| copy::patch("f", "one two two three", mutants);
        assert_eq!(
            patch(&[mutant("a", "one"), mutant("b", "three")]),
            Ok("sottovoce_privacy::mutant(\"a\") two two sottovoce_privacy::mutant(\"b\")".to_owned())
        );
        assert!(patch(&[mutant("a", "four")]).expect_err("gone").contains("0 times"));
        assert!(patch(&[mutant("a", "two")]).expect_err("twice").contains("2 times"));
        assert!(patch(&[mutant("a", "one two"), mutant("b", "one")]).expect_err("shared").contains("the same place"));
        assert!(parse("a".to_owned(), "undoes = \"x\"").is_err());
        let unguarded = "undoes = \"x\"\n[[edit]]\nfile = \"f\"\nfind = \"a\"\nreplace = \"b\"\n[[shown]]\naudit = \"t\"\nflaw = \"f\"\n";
        assert!(parse("a".to_owned(), unguarded).is_err_and(|error| error.contains("chosen")));
    }
}
