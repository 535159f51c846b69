//! Neighbouring files: a task's own file of points with one record of one agent replaced.
//!
//! Records that are replaced in memory have been through a loader that may have refused, cut or counted them. Here they are text,
//! before anybody has looked at them.

use csv::ByteRecord;
use sottovoce_task::error::Mistake;
use sottovoce_task::input::InputFile;
use sottovoce_task::rows;
use sottovoce_task::task::Points;
use std::io::Read;
use std::path::Path;

/// The points of a task as they stand in their file, record by record.
#[derive(Clone, Debug)]
pub(super) enum Table {
    /// Fields; the label is the one of that number, and features follow it.
    Csv { header: ByteRecord, rows: Vec<ByteRecord>, label: usize },
    /// Lines `label index:value ...`, and whose each is.
    Libsvm { rows: Vec<String>, agents: Vec<String> },
}

/// A record that somebody may have.
#[derive(Clone, Debug)]
pub(super) struct Hostile {
    /// In words.
    pub what: &'static str,
    /// Whether real peers get it too, which takes seconds.
    pub real: bool,
    /// The label; nothing for the record's own.
    label: Option<&'static str>,
    features: Features,
}

#[derive(Clone, Copy, Debug)]
enum Features {
    /// The record's own.
    Own,
    /// All of them the same text.
    All(&'static str),
    /// Of a libsvm line: these entries.
    Entries(&'static str),
    /// The whole record is that of another row.
    OfAnother,
    /// Of a csv row: there are none of them.
    Absent,
    /// Of a csv row: as many again behind its own.
    Twice,
}

fn hostile(what: &'static str, real: bool, label: Option<&'static str>, features: Features) -> Hostile {
    Hostile { what, real, label, features }
}

impl Table {
    /// Reads what a task is trained on.
    pub fn read(points: &Points) -> Result<Self, Mistake> {
        let text = |file: &InputFile| {
            let mut bytes = Vec::new();
            rows::open(file)?.read_to_end(&mut bytes).map_err(|error| Mistake::io(file, "read", &error))?;
            Ok::<_, Mistake>(bytes)
        };
        let bytes = text(&points.file)?;
        if let Some(agents) = &points.agents {
            let lines = |bytes: Vec<u8>| -> Vec<String> {
                let text = String::from_utf8_lossy(&bytes);
                text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
            };
            let is_record = |line: &String| !line.trim_start().starts_with('#');
            let rows = lines(bytes).into_iter().filter(is_record).collect();
            return Ok(Table::Libsvm { rows, agents: lines(text(agents)?) });
        }
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(&bytes[..]);
        let mut rows = reader
            .byte_records()
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| Mistake::file(&points.file, format!("cannot be read: {error}")))?;
        if rows.is_empty() {
            return Err(Mistake::file(&points.file, "the file is empty; accepted: a header and at least one row"));
        }
        let header = rows.remove(0);
        // Before the label stand the agent and, if the task has one, the record's id: neither is part of what is replaced.
        let label = header.iter().position(|name| name.trim_ascii() == b"label").unwrap_or(1);
        Ok(Table::Csv { header, rows, label })
    }

    /// Writes it where a task will look for it.
    pub fn write(&self, points: &Points) -> Result<(), Mistake> {
        let write = |file: &Path, bytes: &[u8]| {
            std::fs::write(file, bytes).map_err(|error| Mistake::io(file, "written", &error))
        };
        match self {
            Table::Csv { header, rows, .. } => {
                let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
                for row in std::iter::once(header).chain(rows) {
                    writer.write_byte_record(row).expect("memory takes every record");
                }
                write(&points.file, &writer.into_inner().expect("memory takes every record"))
            }
            Table::Libsvm { rows, agents } => {
                write(&points.file, (rows.join("\n") + "\n").as_bytes())?;
                points.agents.as_ref().map_or(Ok(()), |file| write(file, (agents.join("\n") + "\n").as_bytes()))
            }
        }
    }

    /// The agent of each row.
    fn owners(&self) -> Vec<String> {
        match self {
            Table::Csv { rows, .. } => {
                rows.iter().map(|row| String::from_utf8_lossy(row.get(0).unwrap_or(b"")).into_owned()).collect()
            }
            Table::Libsvm { agents, .. } => agents.clone(),
        }
    }

    /// The rows of these agents alone.
    pub fn keep(&mut self, names: &[String]) {
        let kept: Vec<bool> = self.owners().iter().map(|owner| names.contains(owner)).collect();
        let mut kept_rows = kept.iter();
        let mut kept_agents = kept.iter();
        match self {
            Table::Csv { rows, .. } => rows.retain(|_| kept_rows.next() == Some(&true)),
            Table::Libsvm { rows, agents } => {
                rows.retain(|_| kept_rows.next() == Some(&true));
                agents.retain(|_| kept_agents.next() == Some(&true));
            }
        }
    }

    /// The first row of an agent.
    pub fn row_of(&self, name: &str) -> Option<usize> {
        self.owners().iter().position(|owner| owner == name)
    }

    /// Whatever a record can be that somebody brings, ordinary ones first.
    pub fn hostile_records(&self, row: usize) -> Vec<Hostile> {
        let is_one = |label: &[u8]| rows::number(label) == Some(1.0);
        let labels: Vec<Vec<u8>> = (0..self.owners().len()).map(|row| self.label(row)).collect();
        let zero_is_low = labels.iter().any(|label| rows::number(label) == Some(0.0));
        let (low, strange) = if zero_is_low { ("0", "-1") } else { ("-1", "0") };
        let other = if is_one(&self.label(row)) { low } else { "1" };
        let mut records = vec![
            hostile("the other label", false, Some(other), Features::Own),
            hostile("a copy of another row", false, None, Features::OfAnother),
            hostile("a label of another notation", false, Some(strange), Features::Own),
            hostile("a label that is no class", true, Some("7"), Features::Own),
            hostile("a label that is no number", false, Some("nan"), Features::Own),
            hostile("an endless label", false, Some("-1e308"), Features::Own),
        ];
        let features = match self {
            Table::Csv { .. } => vec![
                hostile("a record beyond every bound", true, None, Features::All("1e6")),
                hostile("a record of the largest numbers", false, None, Features::All("-1e308")),
                hostile("a record of the smallest numbers", false, None, Features::All("5e-324")),
                hostile("a record of empty fields", false, Some(""), Features::All("")),
                hostile("a record of text", true, Some("text"), Features::All("some text")),
                hostile("a record of what is no number", false, None, Features::All("nan")),
                hostile("a record without end", false, None, Features::All("inf")),
                hostile("a record of too few fields", false, None, Features::Absent),
                hostile("a record of too many fields", false, None, Features::Twice),
            ],
            Table::Libsvm { .. } => vec![
                hostile("a record of the largest index", true, None, Features::Entries("1048576:1")),
                hostile("a record of an index beyond all", false, None, Features::Entries("4000000000:1")),
                hostile("a record of another index than all others", false, None, Features::Entries("1:0.5 3001:1")),
                hostile("a record beyond every bound", true, None, Features::Entries("1:1e6")),
                hostile("a record of the largest numbers", false, None, Features::Entries("1:-1e308")),
                hostile("a record of the smallest numbers", false, None, Features::Entries("1:5e-324")),
                hostile("a record of no entries", false, None, Features::Entries("")),
                hostile("a record of text", true, Some("text"), Features::Entries("some text")),
                hostile("a record of what is no number", false, None, Features::Entries("1:nan")),
                hostile("a record of entries in another order", false, None, Features::Entries("2:1 1:1")),
            ],
        };
        records.extend(features);
        records
    }

    fn label(&self, row: usize) -> Vec<u8> {
        match self {
            Table::Csv { rows, label, .. } => rows[row].get(*label).unwrap_or(b"").to_vec(),
            Table::Libsvm { rows, .. } => rows[row].split_whitespace().next().unwrap_or_default().as_bytes().to_vec(),
        }
    }

    /// The same file with one record replaced.
    pub fn with(&self, row: usize, hostile: &Hostile) -> Table {
        let mut neighbour = self.clone();
        let another = (row + 1) % self.owners().len();
        match &mut neighbour {
            Table::Csv { rows, label, .. } => {
                let at = *label;
                let source = if matches!(hostile.features, Features::OfAnother) { another } else { row };
                let field = |k: usize, own: &[u8]| -> Vec<u8> {
                    let text = match hostile.features {
                        _ if k < at => return own.to_vec(),
                        _ if k == at => hostile.label,
                        Features::All(text) => Some(text),
                        _ => None,
                    };
                    text.map_or_else(|| rows[source].get(k).unwrap_or(b"").to_vec(), |text| text.as_bytes().to_vec())
                };
                let mut new: ByteRecord = rows[row].iter().enumerate().map(|(k, own)| field(k, own)).collect();
                match hostile.features {
                    Features::Absent => new.truncate(at + 1),
                    Features::Twice => rows[row].iter().skip(at + 1).for_each(|own| new.push_field(own)),
                    _ => {}
                }
                rows[row] = new;
            }
            Table::Libsvm { rows, .. } => {
                let (label, entries) = rows[row].trim().split_once(' ').unwrap_or((rows[row].trim(), ""));
                let entries = match hostile.features {
                    Features::Entries(text) | Features::All(text) => text.to_owned(),
                    Features::Own | Features::Absent | Features::Twice => entries.to_owned(),
                    Features::OfAnother => {
                        rows[row] = rows[another].clone();
                        return neighbour;
                    }
                };
                rows[row] = format!("{} {entries}", hostile.label.unwrap_or(label));
            }
        }
        neighbour
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_differs_in_one_record_and_not_in_whose_it_is() {
        let place = tempfile::tempdir().expect("a folder");
        let points = |file: &str, agents: Option<&str>| Points {
            file: place.path().join(file).into(),
            agents: agents.map(|agents| place.path().join(agents).into()),
        };
        let csv = points("train.csv", None);
        std::fs::write(&csv.file, "agent,id,label,x,y\nann,7,1,0.5,2\nbob,8,0,1,-4\nann,9,1,3,0\n").expect("written");
        let svm = points("train.svm", Some("agents.txt"));
        std::fs::write(&svm.file, "1 1:0.5 2:2\n-1 2:1\n\n1 1:3\n").expect("written");
        std::fs::write(svm.agents.as_ref().expect("agents"), "ann\nbob\nann\n").expect("written");
        for points in [csv, svm] {
            let read = || std::fs::read_to_string(&points.file).expect("a file");
            let table = Table::read(&points).expect("a table");
            table.write(&points).expect("written");
            let before: Vec<String> = read().lines().map(str::to_owned).collect();
            assert_eq!(table.row_of("bob"), Some(1));
            let row = before.iter().position(|line| line.contains("-4") || line.contains("-1 2:1")).expect("bob's");
            for hostile in table.hostile_records(1) {
                table.with(1, &hostile).write(&points).expect("written");
                let after: Vec<String> = read().lines().map(str::to_owned).collect();
                assert_eq!(after.len(), before.len(), "{hostile:?}");
                for (k, (a, b)) in before.iter().zip(&after).enumerate() {
                    assert_eq!(a != b, k == row, "{hostile:?}: {a} {b}");
                }
                assert!(before[row].starts_with("bob,8,") == after[row].starts_with("bob,8,"), "{}", after[row]);
            }
        }
    }
}
