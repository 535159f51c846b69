//! From the files of a task to what each of its agents would have, for a network on one machine.

use crate::data;
use crate::error::Mistake;
use crate::load::Loaded;
use crate::rows::{Names, Rows};
use crate::task::{Task, Test};
use std::fmt::Write;

/// What one agent would have on its own machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Its training points, as csv.
    pub data: String,
    /// Its test points, as csv, if the task has any for it.
    pub test: Option<String>,
}

/// Each agent's share of a task's data, agents in the order of `loaded`: rows as they stand in the files, split as the task says.
pub fn shares(task: &Task, loaded: &Loaded) -> Result<Vec<Share>, Mistake> {
    let record = task.data.record.as_deref();
    let mut numbers = Names::default();
    let raw = data::read(task, &mut numbers)?;
    let (found, place) = numbers.sorted();
    let train = data::Grouped::new(&raw.train, &place, found.len());
    let test = raw.test.as_ref().map(|rows| (rows, data::Grouped::new(rows, &place, found.len())));
    let share = |name: &String| {
        let Ok(k) = found.binary_search(name) else {
            return Share { data: csv(&raw.train, record, name, &[]), test: None };
        };
        let rows = train.of(k);
        let with_rows = |table: &Rows, rows: &[usize]| (!rows.is_empty()).then(|| csv(table, record, name, rows));
        if let Test::Split { share, seed } = task.data.test {
            let (kept, aside) = data::split(rows, share, seed, name);
            return Share { data: csv(&raw.train, record, name, &kept), test: with_rows(&raw.train, &aside) };
        }
        let test = test.as_ref().and_then(|(table, grouped)| with_rows(table, grouped.of(k)));
        Share { data: csv(&raw.train, record, name, rows), test }
    };
    Ok(loaded.names.iter().map(share).collect())
}

/// Rows of one agent. Numbers read back as the same bits.
fn csv(table: &Rows, record: Option<&str>, name: &str, rows: &[usize]) -> String {
    let quoted = |text: &str| match text.contains(['"', ',', '\n', '\r']) || text.trim() != text {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    };
    let (p, name) = (table.columns.len(), quoted(name));
    let id = |row: usize| table.records.as_ref().map(|ids| format!("{},", quoted(&String::from_utf8_lossy(&ids[row]))));
    let mut text = record.map_or("agent,label".to_owned(), |record| format!("agent,{},label", quoted(record)));
    table.columns.iter().for_each(|column| text += &format!(",{}", quoted(column)));
    text.push('\n');
    for &row in rows {
        let _ = write!(text, "{name},{}{}", id(row).unwrap_or_default(), table.labels[row]);
        table.features[row * p..(row + 1) * p].iter().for_each(|x| text += &format!(",{x:?}"));
        text.push('\n');
    }
    text
}
