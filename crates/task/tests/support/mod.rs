//! A folder of files for one test.

use sottovoce_task::error::Mistake;
use sottovoce_task::load::{Loaded, load};
use sottovoce_task::task::Task;
use std::path::Path;

/// A small good task: two agents, two features, one edge.
pub const TASK: &str = "algorithm = \"local\"\n[data]\ntrain = \"train.csv\"\n[graph]\nedges = \"edges.csv\"\n";
pub const TRAIN: &str = "agent,label,x,y\nbob,1,0.5,2\nann,-1,1e-3,-4\nbob,-1,3,0\n";
pub const EDGES: &str = "a,b,weight\nann,bob,0.5\n";

/// Files over the good ones, by name; an empty content removes the file.
pub fn loaded(files: &[(&str, &[u8])]) -> Result<Loaded, Mistake> {
    let place = tempfile::tempdir().expect("a folder");
    for (name, content) in [("task.toml", TASK), ("train.csv", TRAIN), ("edges.csv", EDGES)] {
        std::fs::write(place.path().join(name), content).expect("written");
    }
    for (name, content) in files {
        std::fs::write(place.path().join(name), content).expect("written");
    }
    read(place.path())
}

pub fn read(folder: &Path) -> Result<Loaded, Mistake> {
    load(&Task::read(&folder.join("task.toml"))?)
}

/// The good task with a section changed: `from` must be there.
#[allow(dead_code)]
pub fn task(from: &str, to: &str) -> String {
    assert!(TASK.contains(from));
    TASK.replace(from, to)
}

#[allow(dead_code)]
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}
