//! Reading the columns of a statistic from a csv file.

use crate::error::{Mistake, quote};
use crate::input::InputFile;
use crate::private_rows::{self, Moved, Rule};
use crate::rows::{At, Names, Place, Rows, number, read_csv};
use crate::task::Statistic;
use csv::ByteRecord;
use sottovoce_algorithms::pairs::exchange::OBSERVATION_MAX;
use std::cell::{Cell, OnceCell};

/// The largest size of a value: sums of a quadrillion rows are still numbers that a peer takes.
pub const VALUE_MAX: f64 = 1e60;

/// Which columns of a file a statistic wants.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'t> {
    /// The columns that are named; `None`: all but `label` and the column of ids.
    pub columns: Option<&'t [String]>,
    /// The column of ids, which there must be, where the task names one.
    pub record: Option<&'t str>,
    /// Whether there must be a column `label`.
    pub has_label: bool,
    /// The largest size of a value.
    pub value_max: f64,
}

impl<'t> Wanted<'t> {
    /// What a task wants that measures this.
    pub fn by(statistic: &'t Statistic, record: Option<&'t str>) -> Self {
        let kind = statistic.kind;
        let value_max = if kind.is_of_pairs() { OBSERVATION_MAX } else { VALUE_MAX };
        Wanted { columns: statistic.columns.as_deref(), record, has_label: kind.has_label(), value_max }
    }
}

/// Reads a csv file with the header `agent,<column>...` and at least one row. Labels, where they are wanted, are checked by `label`, and zero where
/// they are not.
pub fn read(
    file: &InputFile,
    names: &mut Names,
    wanted: Wanted<'_>,
    mut label: impl FnMut(f64, At<'_>) -> Result<f64, Mistake>,
) -> Result<Rows, Mistake> {
    let mut rows = Rows::default();
    let (places, label_place) = (OnceCell::new(), Cell::new(None));
    let Rows { owners, labels, features, columns: found, .. } = &mut rows;
    read_csv(
        file,
        |header| {
            let chosen = choose(header, wanted)?;
            *found = chosen.iter().map(|&place| name(header, place)).collect();
            label_place.set(wanted.has_label.then(|| find(header, "label")).flatten());
            let _ = places.set(chosen);
            Ok(())
        },
        |header, row, at| {
            owners.push(names.number(&row[0], at)?);
            labels.push(match label_place.get() {
                None => 0.0,
                Some(place) => match number(&row[place]) {
                    Some(value) => label(value, at)?,
                    None => {
                        let what = format!("label is {}; accepted: -1 and 1, or 0 and 1", quote(&row[place]));
                        return Err(at.mistake(what));
                    }
                },
            });
            for &place in places.get().into_iter().flatten() {
                let value = number(&row[place]).filter(|value| value.abs() <= wanted.value_max);
                features.push(value.ok_or_else(|| {
                    let (column, found) = (quote(&header[place]), quote(&row[place]));
                    let accepted = format!("a finite number, at most {:e} in size", wanted.value_max);
                    at.mistake(format!("column {column} is {found}; accepted: {accepted}"))
                })?);
            }
            Ok(())
        },
    )?;
    if rows.labels.is_empty() {
        return Err(Mistake::file(file, "no rows; accepted: at least one row after the header"));
    }
    Ok(rows)
}

/// The same for a private task: but for labels, which are public, whatever a row holds, it is read, by the rules of [`private_rows`]. What is no finite number counts as 0.
pub fn read_private(
    file: &InputFile,
    names: &mut Names,
    wanted: Wanted<'_>,
    mut label: impl FnMut(f64, At<'_>) -> Result<f64, Mistake>,
) -> Result<(Rows, Moved), Mistake> {
    let (mut table, mut moved) = (Rows::default(), Moved::new(file));
    let (mut places, mut width, mut label_place) = (Vec::new(), 0, None);
    let mut row = ByteRecord::new();
    private_rows::for_each_line(file, |text, line, is_cut| {
        if text.trim_ascii().is_empty() {
            return Ok(());
        }
        let at = At { file, place: Place::Line(line) };
        private_rows::split(text, &mut row);
        if places.is_empty() {
            label_place = wanted.has_label.then(|| find(&row, "label")).flatten();
            places = choose(&row, wanted).map_err(|what| at.mistake(what))?;
            table.columns = places.iter().map(|&place| name(&row, place)).collect();
            width = row.len();
            return Ok(());
        }
        table.owners.push(names.number(&row[0], at)?);
        table.labels.push(match label_place {
            None => 0.0,
            // PRIVACY: labels are public, so a wrong one is refused as what is public is.
            Some(place) => {
                let found = row.get(place).unwrap_or(b"");
                let refuse = || at.mistake(format!("label is {}; accepted: -1 and 1, or 0 and 1", quote(found)));
                label(number(found).ok_or_else(refuse)?, at)?
            }
        });
        moved.lines.push(line);
        let rules = [(Rule::Short, row.len() < width), (Rule::Long, row.len() > width), (Rule::Line, is_cut)];
        rules.iter().filter(|(_, needed)| *needed).for_each(|(rule, _)| moved.note(*rule, line));
        for &place in &places {
            table.features.push(row.get(place).map_or(0.0, |field| moved.feature(field, line)));
        }
        Ok(())
    })?;
    if table.labels.is_empty() {
        return Err(Mistake::file(file, "no rows; accepted: a header and at least one row"));
    }
    Ok((table, moved))
}

fn name(header: &ByteRecord, place: usize) -> String {
    String::from_utf8_lossy(header[place].trim_ascii()).into_owned()
}

/// Where a column stands in a header, the first one of this name.
fn find(header: &ByteRecord, column: &str) -> Option<usize> {
    (1..header.len()).find(|&place| name(header, place) == column)
}

/// Where the columns stand in a header.
fn choose(header: &ByteRecord, wanted: Wanted<'_>) -> Result<Vec<usize>, String> {
    let Wanted { columns, record, has_label, .. } = wanted;
    let first = header.get(0).unwrap_or(b"");
    if first.trim_ascii() != b"agent" {
        let hint = match first.iter().find(|byte| b";\t|".contains(byte)) {
            Some(b'\t') => " between commas; this file has tabs",
            Some(b';') => " between commas; this file has semicolons",
            Some(_) => " between commas; this file has bars",
            None => "",
        };
        let accepted = format!("the header agent,<column>...{hint}");
        return Err(format!("column 1 is {}, not \"agent\"; accepted: {accepted}", quote(first)));
    }
    let others: Vec<String> = (1..header.len()).map(|place| name(header, place)).collect();
    if has_label && find(header, "label").is_none() {
        return Err("no column \"label\"; accepted: a column label of -1 and 1, or of 0 and 1".to_owned());
    }
    if let Some(record) = record.filter(|record| find(header, record).is_none()) {
        return Err(format!("no column {}; accepted in data.record: {}", quote(record.as_bytes()), others.join(", ")));
    }
    let Some(columns) = columns else {
        let is_value = |place: &usize| {
            let name = others[place - 1].as_str();
            name != "label" && Some(name) != record
        };
        let all: Vec<usize> = (1..header.len()).filter(is_value).collect();
        let accepted = "accepted: the header agent,<column>...";
        let name = |place: &usize| &others[place - 1];
        if let Some(place) = all.iter().find(|place| name(place).is_empty()) {
            return Err(format!("column {} has no name; {accepted}", place + 1));
        }
        if let Some(place) = all.iter().find(|place| all.iter().filter(|other| name(other) == name(place)).count() > 1)
        {
            return Err(format!("two columns {}; accepted: each name once", quote(name(place).as_bytes())));
        }
        return if all.is_empty() { Err(format!("no column of values; {accepted}")) } else { Ok(all) };
    };
    let place = |column: &String| {
        let mut found = (1..header.len()).filter(|place| others[place - 1] == *column);
        let accepted = || format!("accepted in statistic.columns: {}", others.join(", "));
        match (found.next(), found.next()) {
            (Some(place), None) => Ok(place),
            (None, _) => Err(format!("no column {}; {}", quote(column.as_bytes()), accepted())),
            (Some(_), Some(_)) => Err(format!("two columns {}; accepted: each name once", quote(column.as_bytes()))),
        }
    };
    columns.iter().map(place).collect()
}
