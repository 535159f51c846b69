//! Reading files of rows: csv and libsvm, plain or compressed, into plain arrays.
//!
//! One pass, one buffer per file: no text is allocated per field, and a name once per agent. A million rows of 20
//! numbers with all their digits (400 MB) took 2.1 s on a busy 2-core machine.

use crate::error::{Mistake, quote};
use crate::input::InputFile;
use flate2::read::MultiGzDecoder;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// The largest index of a libsvm file; rows are stored dense.
pub const LIBSVM_INDEX_MAX: u32 = 1 << 20;

/// The most numbers a libsvm file may unfold to (16 GB).
pub const LIBSVM_CELLS_MAX: usize = 1 << 31;

/// The most bytes a compressed file may unpack to. A larger one can be given unpacked: a disk holds what memory may not.
pub const UNPACKED_BYTES_MAX: u64 = 1 << 32;

/// What a file holds, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// libsvm rather than csv.
    pub libsvm: bool,
    /// Compressed with gzip.
    pub gzip: bool,
}

impl Format {
    /// The endings that are understood.
    pub const ACCEPTED: &'static str = ".csv, .csv.gz, .libsvm, .libsvm.gz, .svm or .svm.gz";

    /// By the ending of the name.
    pub fn of(file: &Path) -> Option<Format> {
        let name = file.file_name()?.to_string_lossy().to_lowercase();
        let (stem, gzip) = name.strip_suffix(".gz").map_or((name.as_str(), false), |stem| (stem, true));
        let libsvm = stem.ends_with(".libsvm") || stem.ends_with(".svm");
        (libsvm || stem.ends_with(".csv")).then_some(Format { libsvm, gzip })
    }
}

/// Where in a file something stands.
#[derive(Clone, Copy, Debug)]
pub struct At<'f> {
    /// The file.
    pub file: &'f InputFile,
    /// The row.
    pub place: Place,
}

/// A row by its line, or by its first byte: lines are counted only when a message needs one.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// Counted from 1.
    Line(u64),
    /// Counted from 0, after decompression.
    Byte(u64),
}

impl At<'_> {
    /// The line, counted from 1. Blank lines, quoted line ends and every style of line end count as they should.
    pub fn line(self) -> u64 {
        match self.place {
            Place::Line(line) => line,
            // A file that cannot be read a second time is not worth a second error.
            Place::Byte(byte) => line_at(self.file, byte).unwrap_or(1),
        }
    }

    /// A mistake here.
    pub fn mistake(self, what: impl Into<String>) -> Mistake {
        Mistake::line(self.file, self.line(), what)
    }
}

/// The line of the first row at or after a byte.
fn line_at(file: &InputFile, byte: u64) -> Option<u64> {
    let mut line = 1;
    for (position, next) in BufReader::new(open(file).ok()?).bytes().enumerate() {
        let next = next.ok()?;
        if position as u64 >= byte && next != b'\n' && next != b'\r' {
            break;
        }
        line += u64::from(next == b'\n');
    }
    Some(line)
}

/// The agents named so far, numbered in the order in which they were met.
#[derive(Debug, Default)]
pub struct Names {
    numbers: HashMap<Box<[u8]>, u32>,
    list: Vec<String>,
}

impl Names {
    /// The number of an agent, new or known.
    pub fn number(&mut self, name: &[u8], at: At<'_>) -> Result<u32, Mistake> {
        if let Some(&number) = self.numbers.get(name) {
            return Ok(number);
        }
        if name.is_empty() {
            return Err(at.mistake("an agent without a name; accepted: any text that is not empty"));
        }
        let text = std::str::from_utf8(name).map_err(|_| at.mistake(format!("agent {} is not UTF-8", quote(name))))?;
        let number = u32::try_from(self.list.len()).ok().filter(|&number| number < u32::MAX);
        let number = number.ok_or_else(|| at.mistake(format!("more than {} agents", u32::MAX)))?;
        self.list.push(text.to_owned());
        self.numbers.insert(name.into(), number);
        Ok(number)
    }

    /// The name of a number.
    pub fn name(&self, number: u32) -> &str {
        &self.list[number as usize]
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether nobody was named.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The names sorted by their bytes, and for each number its place among them.
    pub fn sorted(self) -> (Vec<String>, Vec<u32>) {
        let mut order: Vec<u32> = (0..self.list.len() as u32).collect();
        order.sort_unstable_by(|&a, &b| self.list[a as usize].cmp(&self.list[b as usize]));
        let mut place = vec![0; order.len()];
        for (k, &number) in order.iter().enumerate() {
            place[number as usize] = k as u32;
        }
        let mut list = self.list;
        (order.iter().map(|&number| std::mem::take(&mut list[number as usize])).collect(), place)
    }
}

/// Rows of numbers, each of one agent.
#[derive(Debug, Default)]
pub struct Rows {
    /// Whose each row is, by number of [`Names`].
    pub owners: Vec<u32>,
    /// The label of each row.
    pub labels: Vec<f64>,
    /// The features, row after row.
    pub features: Vec<f64>,
    /// The features' names.
    pub columns: Vec<String>,
    /// The id of each row's record, where the task names a column of ids.
    pub records: Option<Vec<Box<[u8]>>>,
    /// Which rows are void: their record is over its limit. None is where this is empty.
    pub void: Vec<bool>,
}

impl Rows {
    /// Marks the rows of some records.
    pub fn make_void(&mut self, is_void: impl Fn(&[u8]) -> bool) {
        if let Some(records) = &self.records {
            self.void = records.iter().map(|id| is_void(id)).collect();
        }
    }

    /// Whether the record of a row is over its limit.
    pub fn is_void(&self, row: usize) -> bool {
        self.void.get(row).is_some_and(|void| *void)
    }
}

/// A row of a csv file without its second field, which is the id of its record; and the id.
pub(crate) fn without_id(row: &csv::ByteRecord) -> (csv::ByteRecord, Box<[u8]>) {
    let rest = row.iter().enumerate().filter(|(k, _)| *k != 1).map(|(_, field)| field).collect();
    (rest, row.get(1).unwrap_or(b"").trim_ascii().into())
}

/// The same for the header, whose second field must be the name of this column.
pub(crate) fn header_without_id(header: &csv::ByteRecord, record: &str) -> Result<csv::ByteRecord, String> {
    let (rest, found) = without_id(header);
    if *found == *record.as_bytes() {
        return Ok(rest);
    }
    let found = quote(&found);
    Err(format!(
        "column 2 is {found}, not {record:?} as data.record says; accepted: the header agent,{record},label,<feature>..."
    ))
}

/// What to do with a feature that is empty, `NA`, or not finite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// It is a mistake.
    Refuse,
    /// It becomes NaN, to be counted.
    Count,
}

/// Opens a file, through gzip when its name says so.
pub fn open(file: &InputFile) -> Result<Box<dyn Read>, Mistake> {
    let opened = file.open().map_err(|error| Mistake::io(file, "read", &error))?;
    if Format::of(file).is_some_and(|format| format.gzip) || file.extension().is_some_and(|ending| ending == "gz") {
        let unpacked = MultiGzDecoder::new(BufReader::with_capacity(1 << 16, opened));
        return Ok(Box::new(AtMost { reader: unpacked, bytes: UNPACKED_BYTES_MAX, left: UNPACKED_BYTES_MAX }));
    }
    Ok(opened)
}

/// A reader that fails after so many bytes, where `Read::take` would end as if nothing were left.
struct AtMost<R> {
    reader: R,
    bytes: u64,
    left: u64,
}

impl<R: Read> Read for AtMost<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.reader.read(buffer)?;
        self.left = self.left.checked_sub(count as u64).ok_or_else(|| {
            std::io::Error::other(format!("it unpacks to more than {} bytes; accepted: the file unpacked", self.bytes))
        })?;
        Ok(count)
    }
}

/// What is accepted as a feature or a label. Sums of products of such numbers stay finite.
const MODERATE: &str = "a finite number, at most 1e75 in size";

/// The largest size of such a number.
pub const SIZE_MAX: f64 = 1e75;

fn is_moderate(value: f64) -> bool {
    value.abs() <= SIZE_MAX
}

/// A number as a file writes it. Not necessarily finite.
pub fn number(field: &[u8]) -> Option<f64> {
    std::str::from_utf8(field).ok()?.trim().parse().ok()
}

/// Reads a csv file: calls `header` with the first line's fields, then `row` with them, each record and its place.
pub fn read_csv(
    file: &InputFile,
    header: impl FnOnce(&csv::ByteRecord) -> Result<(), String>,
    mut row: impl FnMut(&csv::ByteRecord, &csv::ByteRecord, At<'_>) -> Result<(), Mistake>,
) -> Result<(), Mistake> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).buffer_capacity(1 << 17).from_reader(open(file)?);
    let mut record = csv::ByteRecord::new();
    let mut next = |record: &mut csv::ByteRecord| {
        reader.read_byte_record(record).map_err(|error| Mistake::file(file, format!("cannot be read: {error}")))
    };
    if !next(&mut record)? {
        return Err(Mistake::file(file, "the file is empty; accepted: a header and at least one row"));
    }
    let at = |record: &csv::ByteRecord| {
        let byte = record.position().map_or(0, |position| position.byte());
        At { file, place: Place::Byte(byte) }
    };
    header(&record).map_err(|what| clearer(at(&record), at(&record).mistake(what)))?;
    let first = record.clone();
    while next(&mut record)? {
        let at = at(&record);
        if record.len() != first.len() {
            let what = format!("{} fields; accepted: {}, as in the header", record.len(), first.len());
            return Err(clearer(at, at.mistake(what)));
        }
        row(&first, &record, at).map_err(|mistake| clearer(at, mistake))?;
    }
    Ok(())
}

/// What is wrong with a record: that it swallowed the rest of the file, if it did, and not what came of it.
fn clearer(at: At<'_>, mistake: Mistake) -> Mistake {
    match at.place {
        Place::Byte(byte) if is_left_open(at.file, byte) == Some(true) => {
            at.mistake("a quote is opened and never closed; accepted: quotes in pairs")
        }
        _ => mistake,
    }
}

/// Whether the record that begins at or after a byte ends inside quotes.
fn is_left_open(file: &InputFile, byte: u64) -> Option<bool> {
    let mut quoted = false;
    // A quote counts at the start of a field and right after another one; elsewhere outside quotes it is text.
    let mut counts = true;
    let bytes = BufReader::new(open(file).ok()?).bytes().skip(usize::try_from(byte).ok()?);
    let mut begun = false;
    for next in bytes {
        match next.ok()? {
            b'"' if quoted || counts => (quoted, counts) = (!quoted, true),
            b'\n' | b'\r' if !quoted && begun => return Some(false),
            b'\n' | b'\r' | b'\xef' | b'\xbb' | b'\xbf' if !begun => continue,
            other => counts = other == b',',
        }
        begun = true;
    }
    Some(quoted)
}

/// Reads a csv file with the header `agent,label,<feature>...` and at least one row; `label` turns a label into what is stored.
pub fn read_points(
    file: &InputFile,
    names: &mut Names,
    missing: Missing,
    record: Option<&str>,
    label: impl FnMut(f64, At<'_>) -> Result<f64, Mistake>,
) -> Result<Rows, Mistake> {
    let rows = read_any_points(file, names, missing, record, label)?;
    if rows.labels.is_empty() {
        return Err(Mistake::file(file, "no rows; accepted: at least one row after the header"));
    }
    Ok(rows)
}

/// The same, and there may be no row.
pub fn read_any_points(
    file: &InputFile,
    names: &mut Names,
    missing: Missing,
    record: Option<&str>,
    mut label: impl FnMut(f64, At<'_>) -> Result<f64, Mistake>,
) -> Result<Rows, Mistake> {
    let mut rows = Rows { records: record.map(|_| Vec::new()), ..Rows::default() };
    let Rows { owners, labels, features, columns, records, .. } = &mut rows;
    let mut last: (Vec<u8>, u32) = (Vec::new(), 0);
    read_csv(
        file,
        |header| {
            let rest = record.map(|record| header_without_id(header, record)).transpose()?;
            *columns = feature_columns(rest.as_ref().unwrap_or(header))?;
            Ok(())
        },
        |header, row, at| {
            let taken = records.as_mut().map(|records| {
                let (rest, id) = without_id(row);
                records.push(id);
                (without_id(header).0, rest)
            });
            let (header, record) = taken.as_ref().map_or((header, row), |(header, rest)| (header, rest));
            // Rows of one agent often stand together: the last name is tried first.
            if record[0] != *last.0 || last.0.is_empty() {
                last.1 = names.number(&record[0], at)?;
                last.0.clear();
                last.0.extend_from_slice(&record[0]);
            }
            owners.push(last.1);
            let y = number(&record[1])
                .filter(|y| is_moderate(*y))
                .ok_or_else(|| at.mistake(format!("label is {}; accepted: {MODERATE}", quote(&record[1]))))?;
            labels.push(label(y, at)?);
            for field in record.iter().skip(2) {
                match number(field) {
                    Some(x) if is_moderate(x) => features.push(x),
                    _ if missing == Missing::Count && is_missing(field) => features.push(f64::NAN),
                    _ => {
                        let column = &header[2 + features.len() % (header.len() - 2)];
                        let what = format!("column {} is {}", quote(column), quote(field));
                        return Err(at.mistake(format!("{what}; accepted: {MODERATE}")));
                    }
                }
            }
            Ok(())
        },
    )?;
    Ok(rows)
}

/// The names of the features, from the header of a csv file of points.
pub(crate) fn feature_columns(header: &csv::ByteRecord) -> Result<Vec<String>, String> {
    let accepted = "accepted: the header agent,label,<feature>...";
    for (k, expected) in ["agent", "label"].into_iter().enumerate() {
        let found = header.get(k).unwrap_or(b"");
        if found.trim_ascii() != expected.as_bytes() {
            let ids = if k == 1 { ", or agent,<id>,label,... where data.record or --record names the ids" } else { "" };
            return Err(format!("column {} is {}, not \"{expected}\"; {accepted}{ids}", k + 1, quote(found)));
        }
    }
    if header.len() == 2 {
        return Err(format!("no feature column; {accepted}"));
    }
    Ok(header.iter().skip(2).map(|name| String::from_utf8_lossy(name.trim_ascii()).into_owned()).collect())
}

fn is_missing(field: &[u8]) -> bool {
    let field = field.trim_ascii();
    field.is_empty() || field == b"?" || field.eq_ignore_ascii_case(b"na") || number(field).is_some()
}

/// A libsvm file, before the dimension is known.
#[derive(Debug, Default)]
pub struct Sparse {
    owners: Vec<u32>,
    labels: Vec<f64>,
    ends: Vec<usize>,
    entries: Vec<(u32, f64)>,
    largest: u32,
}

/// Reads a libsvm file, `label index:value ...` with indices that grow from 1 to the dimension, if it is declared, and its file of agents.
pub fn read_libsvm(
    file: &InputFile,
    agents: &InputFile,
    names: &mut Names,
    dimension: Option<usize>,
    mut label: impl FnMut(f64, At<'_>) -> Result<f64, Mistake>,
) -> Result<Sparse, Mistake> {
    let mut sparse = Sparse::default();
    for_each_line(agents, |name, at| {
        sparse.owners.push(names.number(name, at)?);
        Ok(())
    })?;
    for_each_line(file, |text, at| {
        let text = text.split(|&byte| byte == b'#').next().unwrap_or(b"").trim_ascii();
        let mut tokens = text.split(|byte| byte.is_ascii_whitespace()).filter(|token| !token.is_empty());
        let Some(first) = tokens.next() else { return Ok(()) };
        let y = number(first)
            .filter(|y| is_moderate(*y))
            .ok_or_else(|| at.mistake(format!("label is {}; accepted: {MODERATE}", quote(first))))?;
        sparse.labels.push(label(y, at)?);
        let mut before = 0;
        for token in tokens {
            let (index, value) = entry(token).ok_or_else(|| {
                let accepted = format!("index:value, the index from 1 to {LIBSVM_INDEX_MAX}, the value {MODERATE}");
                at.mistake(format!("{} is no entry; accepted: {accepted}", quote(token)))
            })?;
            if index <= before {
                let what = format!("index {index} after {before}; accepted: growing indices");
                return Err(at.mistake(what));
            }
            if let Some(dimension) = dimension.filter(|&dimension| index as usize > dimension) {
                return Err(at.mistake(format!("index {index}; accepted: 1 to {dimension}, as data.dimension says")));
            }
            before = index;
            sparse.entries.push((index, value));
        }
        sparse.largest = dimension.map_or(sparse.largest.max(before), |dimension| dimension as u32);
        sparse.ends.push(sparse.entries.len());
        Ok(())
    })?;
    if sparse.labels.is_empty() {
        return Err(Mistake::file(file, "no rows; accepted: at least one line label index:value ..."));
    }
    if sparse.labels.len() != sparse.owners.len() {
        let (rows, owners) = (sparse.labels.len(), sparse.owners.len());
        let what =
            format!("{owners} agents for the {rows} rows of {}; accepted: one name for each row", file.display());
        return Err(Mistake::file(agents, what));
    }
    Ok(sparse)
}

fn entry(token: &[u8]) -> Option<(u32, f64)> {
    let colon = token.iter().position(|&byte| byte == b':')?;
    let index: u32 = std::str::from_utf8(&token[..colon]).ok()?.parse().ok()?;
    let value = number(&token[colon + 1..]).filter(|value| is_moderate(*value))?;
    (1..=LIBSVM_INDEX_MAX).contains(&index).then_some((index, value))
}

impl Sparse {
    /// The declared dimension, or else the largest index.
    pub fn dimension(&self) -> usize {
        self.largest as usize
    }

    /// With all zeros written out. `file` is named when there would be too many.
    pub fn dense(self, dimension: usize, file: &Path) -> Result<Rows, Mistake> {
        let cells = self.labels.len().saturating_mul(dimension);
        if cells > LIBSVM_CELLS_MAX {
            let what = format!("{} rows of {dimension} features", self.labels.len());
            return Err(Mistake::file(file, format!("{what}; accepted: at most {LIBSVM_CELLS_MAX} numbers in all")));
        }
        let mut features = vec![0.0; cells];
        let mut from = 0;
        for (row, &end) in self.ends.iter().enumerate() {
            for &(index, value) in &self.entries[from..end] {
                features[row * dimension + index as usize - 1] = value;
            }
            from = end;
        }
        let columns = (1..=dimension).map(|index| index.to_string()).collect();
        Ok(Rows { owners: self.owners, labels: self.labels, features, columns, ..Rows::default() })
    }
}

/// Calls `each` with every line that is not blank, without its end, and its place.
pub(crate) fn for_each_line(
    file: &InputFile,
    mut each: impl FnMut(&[u8], At<'_>) -> Result<(), Mistake>,
) -> Result<(), Mistake> {
    let mut reader = BufReader::with_capacity(1 << 17, open(file)?);
    let mut buffer = Vec::new();
    for line in 1.. {
        buffer.clear();
        let length = reader
            .read_until(b'\n', &mut buffer)
            .map_err(|error| Mistake::line(file, line, format!("cannot be read: {error}")))?;
        if length == 0 {
            break;
        }
        let text = buffer.strip_suffix(b"\n").unwrap_or(&buffer);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if !text.trim_ascii().is_empty() {
            each(text, At { file, place: Place::Line(line) })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_unpacks_to_too_much_is_an_error_and_not_an_end() {
        let read = |bytes: u64| {
            let mut text = String::new();
            AtMost { reader: &b"0123456789"[..], bytes, left: bytes }.read_to_string(&mut text).map(|_| text)
        };
        assert_eq!(read(10).expect("not more"), "0123456789");
        let error = read(9).expect_err("more").to_string();
        assert!(error.contains("more than 9 bytes; accepted: the file unpacked"), "{error}");
    }
}
