//! The files that a task names: on disk, or in memory, where a program has its data already.
//!
//! Whatever is said about files of a task holds for both: they are read by the same code, so the same rows are refused, or moved to their
//! bounds, in the same words, and the digest of a task depends on what a file holds and not on where it lies.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Cursor, Read};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputFile {
    path: PathBuf,
    bytes: Option<Arc<[u8]>>,
}

impl InputFile {
    /// Its bytes, as they are stored.
    pub fn open(&self) -> std::io::Result<Box<dyn Read>> {
        match &self.bytes {
            None => Ok(Box::new(File::open(&self.path)?)),
            Some(bytes) => Ok(Box::new(Cursor::new(bytes.clone()))),
        }
    }
}

impl Deref for InputFile {
    type Target = Path;

    /// Where it lies, or what it is called.
    fn deref(&self) -> &Path {
        &self.path
    }
}

impl AsRef<Path> for InputFile {
    fn as_ref(&self) -> &Path {
        self
    }
}

impl From<PathBuf> for InputFile {
    fn from(path: PathBuf) -> Self {
        InputFile { path, bytes: None }
    }
}

impl From<&Path> for InputFile {
    fn from(path: &Path) -> Self {
        path.to_owned().into()
    }
}

/// Files in memory, by the names that a task gives them.
#[derive(Clone, Debug, Default)]
pub struct Memory(BTreeMap<String, Arc<[u8]>>);

impl Memory {
    /// The same files and one more.
    pub fn with(mut self, name: impl Into<String>, bytes: Vec<u8>) -> Self {
        self.0.insert(name.into(), bytes.into());
        self
    }

    /// The file of this name, if it is here.
    pub(crate) fn find(&self, name: &str) -> Option<InputFile> {
        let bytes = self.0.get(name)?;
        Some(InputFile { path: name.into(), bytes: Some(bytes.clone()) })
    }
}

/// Rows of numbers in memory, to be a file of [`Memory`].
#[derive(Clone, Copy, Debug)]
pub struct Table<'t> {
    /// Whose each row is.
    pub agents: &'t [String],
    /// The label of each row; none for a statistic that needs none.
    pub labels: Option<&'t [f64]>,
    /// The names of the other columns.
    pub columns: &'t [String],
    /// Their values, row after row.
    pub values: &'t [f64],
}

impl Table<'_> {
    /// As a csv file. Numbers read back as the same bits.
    ///
    /// # Panics
    /// When there are not as many labels as agents, or values as agents times columns.
    pub fn to_csv(&self) -> Vec<u8> {
        assert!(self.labels.is_none_or(|labels| labels.len() == self.agents.len()), "one label for each row");
        assert_eq!(self.values.len(), self.agents.len() * self.columns.len(), "whole rows");
        let mut csv = csv::WriterBuilder::new().from_writer(Vec::new());
        let written = (|| {
            let label = self.labels.map(|_| "label");
            csv.write_record(["agent"].into_iter().chain(label).chain(self.columns.iter().map(String::as_str)))?;
            for (row, agent) in self.agents.iter().enumerate() {
                csv.write_field(agent)?;
                let label = self.labels.map(|labels| labels[row]);
                let values = &self.values[row * self.columns.len()..][..self.columns.len()];
                csv.write_record(label.iter().chain(values).map(f64::to_string))?;
            }
            csv.flush()?;
            Ok::<_, csv::Error>(())
        })();
        written.expect("memory can be written");
        csv.into_inner().expect("memory can be written")
    }
}

/// Edges as a csv file, which a task can read: both ends and the weight.
pub fn edges_to_csv<'e>(edges: impl Iterator<Item = (&'e str, &'e str, f64)>) -> Vec<u8> {
    let mut csv = csv::WriterBuilder::new().from_writer(Vec::new());
    let written = (|| {
        csv.write_record(["a", "b", "weight"])?;
        for (a, b, weight) in edges {
            csv.write_record([a, b, &weight.to_string()])?;
        }
        csv.flush()?;
        Ok::<_, csv::Error>(())
    })();
    written.expect("memory can be written");
    csv.into_inner().expect("memory can be written")
}
