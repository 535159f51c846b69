//! The work bench of an experiment: its settings, its workers, and the parts that are done already.

use crate::workers::as_they_come;
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};
use sottovoce_run::train::Halt;
use sottovoce_task::error::Mistake;
use std::collections::HashMap;
use std::fs;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// How to run experiments.
#[derive(Clone, Debug)]
pub struct Settings {
    /// A small version, for a first look and for tests.
    pub quick: bool,
    /// Workers; they change the speed, never the result.
    pub threads: usize,
    /// Where data sets are.
    pub data: PathBuf,
}

/// Told what is being done, how many parts of it are done, and how many there are. It stops the work by breaking.
pub type Watch<'a> = dyn FnMut(&str, u64, u64) -> ControlFlow<()> + 'a;

/// The work bench of one experiment.
pub struct Bench<'a> {
    settings: &'a Settings,
    toml: &'static str,
    watch: &'a mut Watch<'a>,
    store: Store,
}

impl<'a> Bench<'a> {
    /// A bench whose finished parts are kept in `folder`, or nowhere.
    pub fn new(
        name: &str,
        toml: &'static str,
        settings: &'a Settings,
        folder: Option<&Path>,
        watch: &'a mut Watch<'a>,
    ) -> Result<Self, Mistake> {
        let seal = seal(name, toml, settings.quick);
        let store = match folder {
            None => Store { seal, known: HashMap::new(), file: None },
            Some(folder) => Store::open(&folder.join(PARTS), seal)?,
        };
        Ok(Bench { settings, toml, watch, store })
    }

    /// The parameters, from the experiment's TOML; those of its table `quick` replace others in the quick version.
    pub fn parameters<T: DeserializeOwned>(&self) -> T {
        parameters(self.toml, self.settings.quick).expect("the TOML files of the experiments are tested")
    }

    /// Whether this is the quick version.
    pub fn is_quick(&self) -> bool {
        self.settings.quick
    }

    /// How many workers there may be.
    pub fn threads(&self) -> usize {
        self.settings.threads
    }

    /// Says how far a stage is, for work that has workers of its own.
    pub fn tell(&mut self, stage: &str, done: u64, total: u64) -> ControlFlow<()> {
        (self.watch)(stage, done, total)
    }

    /// Where data sets are.
    pub fn data(&self) -> &Path {
        &self.settings.data
    }

    /// Does `work` for each item, side by side, in any order; returns the results in the order of the items. What an earlier run with
    /// the same settings has done is not done again.
    pub fn each<I, T>(&mut self, stage: &str, items: &[I], work: impl Fn(&I) -> T + Sync) -> Result<Vec<T>, Halt>
    where
        I: Sync + std::fmt::Debug,
        T: Serialize + DeserializeOwned + Send,
    {
        let keys: Vec<String> = items.iter().map(|item| format!("{stage} {item:?}")).collect();
        let mut done: Vec<Option<T>> = keys.iter().map(|key| self.store.find(key)).collect();
        let missing: Vec<usize> = (0..items.len()).filter(|&k| done[k].is_none()).collect();
        let mut count = items.len() - missing.len();
        let (watch, store) = (&mut self.watch, &mut self.store);
        let mut tell = |count: usize| watch(stage, count as u64, items.len() as u64);
        if tell(count).is_break() {
            return Err(Halt::Interrupted);
        }
        let one = |k: usize| work(&items[missing[k]]);
        let ended = as_they_come(missing.len(), self.settings.threads, one, |k, value| {
            let k = missing[k];
            if let Err(mistake) = store.keep(&keys[k], &value) {
                return ControlFlow::Break(Halt::from(mistake));
            }
            done[k] = Some(value);
            count += 1;
            tell(count).map_break(|()| Halt::Interrupted)
        });
        if let ControlFlow::Break(halt) = ended {
            return Err(halt);
        }
        Ok(done.into_iter().map(|value| value.expect("every worker has sent what it did")).collect())
    }
}

/// The file of finished parts.
pub const PARTS: &str = "parts.jsonl";

/// What makes two runs the same: program, experiment, parameters.
pub fn seal(name: &str, toml: &str, quick: bool) -> String {
    let mut hash = Sha256::new();
    let parameters = resolved(toml, quick).map_or(toml.to_owned(), |table| table.to_string());
    for piece in [env!("CARGO_PKG_VERSION"), name, &parameters, if quick { "quick" } else { "full" }] {
        hash.update((piece.len() as u64).to_le_bytes());
        hash.update(piece.as_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads parameters; those of the table `quick` replace others in the quick version.
pub fn parameters<T: DeserializeOwned>(toml: &str, quick: bool) -> Result<T, toml::de::Error> {
    resolved(toml, quick)?.try_into()
}

/// All parameters of one version.
fn resolved(toml: &str, quick: bool) -> Result<toml::Table, toml::de::Error> {
    let mut table: toml::Table = toml::from_str(toml)?;
    if let Some(toml::Value::Table(other)) = table.remove("quick")
        && quick
    {
        table.extend(other);
    }
    Ok(table)
}

/// Finished parts: one line each, after a line with the seal. A line that a killed process left unfinished is no part.
struct Store {
    seal: String,
    known: HashMap<String, serde_json::Value>,
    file: Option<(PathBuf, fs::File)>,
}

impl Store {
    fn open(path: &Path, seal: String) -> Result<Self, Mistake> {
        let mut known = HashMap::new();
        let text = fs::read_to_string(path).unwrap_or_default();
        let mut lines = text.lines();
        if lines.next() == Some(&seal) {
            for line in lines {
                if let Ok((key, value)) = serde_json::from_str::<(String, serde_json::Value)>(line) {
                    known.insert(key, value);
                }
            }
        }
        let unwritable = |error: std::io::Error| Mistake::io(path, "written", &error);
        let mut store = Store { seal, known: HashMap::new(), file: None };
        let mut file = fs::File::create(path).map_err(unwritable)?;
        writeln!(file, "{}", store.seal).map_err(unwritable)?;
        store.file = Some((path.to_owned(), file));
        let mut keys: Vec<&String> = known.keys().collect();
        keys.sort_unstable();
        for key in keys {
            store.keep(key, &known[key])?;
        }
        store.known = known;
        Ok(store)
    }

    fn find<T: DeserializeOwned>(&self, key: &str) -> Option<T> {
        serde_json::from_value(self.known.get(key)?.clone()).ok()
    }

    fn keep<T: Serialize>(&mut self, key: &str, value: &T) -> Result<(), Mistake> {
        let Some((path, file)) = &mut self.file else { return Ok(()) };
        let line = serde_json::to_string(&(key, value)).expect("numbers and texts are JSON");
        writeln!(file, "{line}").map_err(|error| Mistake::io(path, "written", &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const TOML: &str = "seeds = [1, 2]\nsize = 10\n[quick]\nsize = 3\n";

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Parameters {
        seeds: Vec<u64>,
        size: u64,
    }

    fn settings(threads: usize) -> Settings {
        Settings { quick: false, threads, data: PathBuf::new() }
    }

    #[test]
    fn the_quick_version_replaces_what_it_names() {
        assert_eq!(parameters::<Parameters>(TOML, true), Ok(Parameters { seeds: vec![1, 2], size: 3 }));
        assert_eq!(parameters::<Parameters>(TOML, false), Ok(Parameters { seeds: vec![1, 2], size: 10 }));
        assert!(parameters::<Parameters>("seeds = []\nsize = 1\n[quick]\nsise = 3", true).is_err());
    }

    #[test]
    fn parts_that_are_done_are_not_done_again_unless_the_settings_changed() {
        let place = tempfile::tempdir().expect("a folder");
        let run = |toml: &'static str, stop_after: u64| {
            let settings = settings(1);
            let mut watch = |_: &str, done: u64, _: u64| match done {
                done if done >= stop_after => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            };
            let worked = AtomicUsize::new(0);
            let mut bench = Bench::new("x", toml, &settings, Some(place.path()), &mut watch).expect("a bench");
            let values = bench.each("square", &[1.5f64, 2.0, 3.0], |x| {
                worked.fetch_add(1, Ordering::Relaxed);
                x * x
            });
            (values.ok(), worked.into_inner())
        };
        let (stopped, _) = run(TOML, 1);
        assert!(stopped.is_none(), "one part is kept, then it stops");
        // Half a line, as a killed process leaves it.
        let file = place.path().join(PARTS);
        let text = fs::read_to_string(&file).expect("parts");
        fs::write(&file, text + "[\"square 3.0\",1").expect("written");
        let (values, more) = run(TOML, 9);
        assert_eq!(values, Some(vec![2.25, 4.0, 9.0]));
        assert_eq!(more, 2, "the part that was kept is not done again");
        assert_eq!(run(TOML, 9).1, 0);
        let other_quick: &str = "seeds = [1, 2]\nsize = 10\n[quick]\nsize = 4\n";
        assert_eq!(run(other_quick, 9).1, 0, "the full version is the same");
        assert_eq!(run("seeds = [3]\n", 9).1, 3, "other settings, other results");
    }

    #[test]
    fn results_come_in_the_order_of_the_items_for_any_number_of_workers() {
        let items: Vec<u64> = (0..50).collect();
        for threads in [1, 2, 7] {
            let settings = settings(threads);
            let mut watch = |_: &str, _: u64, _: u64| ControlFlow::Continue(());
            let mut bench = Bench::new("x", TOML, &settings, None, &mut watch).expect("a bench");
            let values = bench.each("double", &items, |x| 2 * x).expect("not stopped");
            assert_eq!(values, items.iter().map(|x| 2 * x).collect::<Vec<_>>());
        }
    }
}
