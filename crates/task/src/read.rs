//! Reading a task file: by the tables of all keys and of all algorithms.

use crate::algorithms::{NAMES, TABLE};
use crate::error::Mistake;
use crate::input::Memory;
use crate::keys::{Key, markdown, shared};
use crate::task::{TASK_BYTES_MAX, Task, from_text};
use std::io::Read;
use std::path::Path;
use std::sync::LazyLock;

/// Every key of a task file, in the order of the documentation: those of all tasks, then those of single algorithms.
pub static KEYS: LazyLock<Vec<Key>> = LazyLock::new(|| {
    let mut keys = shared(NAMES);
    for key in TABLE.iter().flat_map(|algorithm| algorithm.keys) {
        // Algorithms that read the same keys share them.
        if keys.iter().all(|known| known.path != key.path) {
            keys.push(*key);
        }
    }
    keys
});

impl Task {
    /// Reads and resolves a task file.
    pub fn read(file: &Path) -> Result<Task, Mistake> {
        let opened = std::fs::File::open(file).map_err(|error| Mistake::io(file, "read", &error))?;
        let mut bytes = Vec::new();
        opened.take(TASK_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| Mistake::io(file, "read", &error))?;
        if bytes.len() as u64 > TASK_BYTES_MAX {
            return Err(Mistake::file(file, format!("a task file has at most {TASK_BYTES_MAX} bytes")));
        }
        let text = String::from_utf8(bytes).map_err(|_| Mistake::file(file, "a task file is TOML in UTF-8"))?;
        Task::parse(&text, file)
    }

    /// Resolves the text of a task file; relative paths start from the folder of `file`.
    pub fn parse(text: &str, file: &Path) -> Result<Task, Mistake> {
        Task::parse_with(text, file, &Memory::default())
    }

    /// The same where some of the files that the task names are in memory, under the very names that it gives them.
    pub fn parse_with(text: &str, file: &Path, memory: &Memory) -> Result<Task, Mistake> {
        from_text(text, file, memory, &KEYS, TABLE)
    }
}

/// The table of keys as the documentation shows it.
pub fn reference_markdown() -> String {
    markdown(&KEYS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{Kind, find_in, nearest_in};

    #[test]
    fn every_key_stands_in_a_known_table_once() {
        for (k, key) in KEYS.iter().enumerate() {
            assert!(KEYS[..k].iter().all(|other| other.path != key.path), "{} twice", key.path);
            let section = key.path.rsplit_once('.').map_or("", |(section, _)| section);
            let holds_keys = |key: &Key| matches!(key.kind, Kind::Table | Kind::TableOrFalse | Kind::Tables);
            assert!(section.is_empty() || find_in(&KEYS, section).is_some_and(holds_keys), "{}", key.path);
        }
    }

    #[test]
    fn the_nearest_key_is_the_one_meant() {
        for (written, meant) in [
            ("model.tradeoff", "model.trade-off"),
            ("trade-off", "model.trade-off"),
            ("graph.neighbors", "graph.neighbours"),
            ("grahp", "graph"),
            ("run.wakes_per_agent", "run.wakes-per-agent"),
            ("faults.delay.maximum", "faults.delay.max"),
            ("data.seed", "graph.seed"),
        ] {
            assert_eq!(nearest_in(&KEYS, written).path, meant, "{written}");
        }
    }

    #[test]
    fn the_documentation_holds_this_very_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/task.md");
        let page = std::fs::read_to_string(path).expect("docs/task.md exists");
        let start = page.find("| key |").expect("docs/task.md holds a table of keys");
        let table: String = page[start..].split_inclusive('\n').take_while(|line| line.starts_with('|')).collect();
        let expected = reference_markdown();
        assert!(table == expected, "docs/task.md is behind the code; its table should be:\n{expected}");
    }
}
