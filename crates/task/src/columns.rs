//! Reading the columns of a statistic from a csv file.

use crate::error::{Mistake, quote};
use crate::input::InputFile;
use crate::private_rows::{self, Moved, Rule};
use crate::rows::{At, Names, Place, Rows, number, read_csv};
use csv::ByteRecord;
use std::cell::OnceCell;

/// The largest size of a value: sums of a quadrillion rows are still numbers that a peer takes.
pub const VALUE_MAX: f64 = 1e60;

/// Reads a csv file with the header `agent,<column>...` and at least one row: the columns that are named, or all but `label` and the column
/// of ids. Labels are zero.
pub fn read(
    file: &InputFile,
    names: &mut Names,
    columns: Option<&[String]>,
    record: Option<&str>,
) -> Result<Rows, Mistake> {
    let mut rows = Rows::default();
    let places = OnceCell::new();
    let Rows { owners, labels, features, columns: found, .. } = &mut rows;
    read_csv(
        file,
        |header| {
            let chosen = choose(header, columns, record)?;
            *found = chosen.iter().map(|&place| name(header, place)).collect();
            let _ = places.set(chosen);
            Ok(())
        },
        |header, row, at| {
            owners.push(names.number(&row[0], at)?);
            labels.push(0.0);
            for &place in places.get().into_iter().flatten() {
                let value = number(&row[place]).filter(|value| value.abs() <= VALUE_MAX);
                features.push(value.ok_or_else(|| {
                    let (column, found) = (quote(&header[place]), quote(&row[place]));
                    let accepted = format!("a finite number, at most {VALUE_MAX:e} in size");
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

/// The same for a private task: whatever a row holds, it is read, by the rules of [`private_rows`]. What is no finite number counts as 0.
pub fn read_private(file: &InputFile, names: &mut Names, columns: Option<&[String]>) -> Result<(Rows, Moved), Mistake> {
    let (mut table, mut moved) = (Rows::default(), Moved::new(file));
    let (mut places, mut width) = (Vec::new(), 0);
    let mut row = ByteRecord::new();
    private_rows::for_each_line(file, |text, line, is_cut| {
        if text.trim_ascii().is_empty() {
            return Ok(());
        }
        let at = At { file, place: Place::Line(line) };
        private_rows::split(text, &mut row);
        if places.is_empty() {
            places = choose(&row, columns, None).map_err(|what| at.mistake(what))?;
            table.columns = places.iter().map(|&place| name(&row, place)).collect();
            width = row.len();
            return Ok(());
        }
        table.owners.push(names.number(&row[0], at)?);
        table.labels.push(0.0);
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

/// Where the columns stand in a header.
fn choose(header: &ByteRecord, columns: Option<&[String]>, record: Option<&str>) -> Result<Vec<usize>, String> {
    let first = header.get(0).unwrap_or(b"");
    if first.trim_ascii() != b"agent" {
        return Err(format!("column 1 is {}, not \"agent\"; accepted: the header agent,<column>...", quote(first)));
    }
    let others: Vec<String> = (1..header.len()).map(|place| name(header, place)).collect();
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
