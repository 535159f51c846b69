//! From the files of a task to what each of its agents would have, for a network on one machine.

use sottovoce_task::data;
use sottovoce_task::error::Mistake;
use sottovoce_task::load::Loaded;
use sottovoce_task::rows::{Names, Rows};
use sottovoce_task::task::{Task, Test};
use std::io::Write;

/// What one agent would have on its own machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// Its training points, as csv.
    pub data: Vec<u8>,
    /// Its test points, as csv, if the task has any for it.
    pub test: Option<Vec<u8>>,
}

/// Each agent's share of a task's data, agents in the order of `loaded`: rows as they stand in the files, split as the task says.
pub fn shares(task: &Task, loaded: &Loaded) -> Result<Vec<Share>, Mistake> {
    let mut numbers = Names::default();
    let raw = data::read(task, &mut numbers)?;
    let (found, place) = numbers.sorted();
    let train = data::Grouped::new(&raw.train, &place, found.len());
    let test = raw.test.as_ref().map(|rows| (rows, data::Grouped::new(rows, &place, found.len())));
    let share = |name: &String| {
        let Ok(k) = found.binary_search(name) else {
            return Share { data: csv(&raw.train, task, name, &[]), test: None };
        };
        let rows = train.of(k);
        let with_rows = |table: &Rows, rows: &[usize]| (!rows.is_empty()).then(|| csv(table, task, name, rows));
        if let Test::Split { share, seed } = task.data.test {
            let (kept, aside) = data::split(rows, share, seed, name);
            return Share { data: csv(&raw.train, task, name, &kept), test: with_rows(&raw.train, &aside) };
        }
        let test = test.as_ref().and_then(|(table, grouped)| with_rows(table, grouped.of(k)));
        Share { data: csv(&raw.train, task, name, rows), test }
    };
    Ok(loaded.names.iter().map(share).collect())
}

/// Rows of one agent. Numbers read back as the same bits, and ids as the same bytes, whatever these are: an id that changed on the way
/// would be another record's.
fn csv(table: &Rows, task: &Task, name: &str, rows: &[usize]) -> Vec<u8> {
    let (p, name) = (table.columns.len(), quoted(name.as_bytes()));
    // The columns of a statistic have no ids beside them, and labels only where it is about them.
    let statistic = task.statistic.as_ref();
    let labelled = statistic.is_none_or(|statistic| statistic.kind.has_label());
    let record = task.data.record.as_deref().filter(|_| statistic.is_none());
    let mut text = b"agent".to_vec();
    record.iter().for_each(|record| text.extend([b",".to_vec(), quoted(record.as_bytes())].concat()));
    if labelled {
        text.extend(b",label");
    }
    table.columns.iter().for_each(|column| text.extend([b",".to_vec(), quoted(column.as_bytes())].concat()));
    text.push(b'\n');
    for &row in rows {
        text.extend(&name);
        let id = table.records.as_ref().map(|ids| quoted(&ids[row]));
        id.iter().for_each(|id| text.extend([b",", &id[..]].concat()));
        if labelled {
            write!(text, ",{}", table.labels[row]).expect("memory can be written");
        }
        for x in &table.features[row * p..(row + 1) * p] {
            write!(text, ",{x:?}").expect("memory can be written");
        }
        text.push(b'\n');
    }
    text
}

/// A field as csv has it.
fn quoted(field: &[u8]) -> Vec<u8> {
    let is_plain = !field.iter().any(|byte| b"\",\n\r".contains(byte)) && field.trim_ascii() == field;
    if is_plain {
        return field.to_vec();
    }
    let doubled = field.iter().flat_map(|&byte| if byte == b'"' { vec![b'"', b'"'] } else { vec![byte] });
    [b'"'].into_iter().chain(doubled).chain([b'"']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sottovoce_task::load::load;
    use std::fs;

    /// A record that another file would know under another id would have a budget of its own there.
    #[test]
    fn ids_keep_their_bytes_on_the_way_to_a_peer() {
        let folder = tempfile::tempdir().expect("a folder");
        let rows: &[u8] = b"agent,id,label,x\na,m\xfcller,1,0.5\na,\xff \"q\",-1,0.25\nb,plain,1,0\n";
        let task = "algorithm = \"coordinate-descent\"\n[data]\ntrain = \"t.csv\"\nrecord = \"id\"\nnormalize = \"l2\"\n\
                    [graph]\nkind = \"ring\"\nallow-isolated = true\n[privacy]\nepsilon = 1\ndelta = 1e-6\n";
        fs::write(folder.path().join("t.csv"), rows).expect("written");
        fs::write(folder.path().join("task.toml"), task).expect("written");
        let task = Task::read(&folder.path().join("task.toml")).expect("a task");
        let loaded = load(&task).expect("good");
        let ids = loaded.records.clone().expect("ids");
        for (k, share) in shares(&task, &loaded).expect("shares").iter().enumerate() {
            fs::write(folder.path().join("t.csv"), &share.data).expect("written");
            let again = load(&task).expect("good").records.expect("ids");
            assert_eq!(again[0], ids[k], "agent {k}");
        }
    }
}
