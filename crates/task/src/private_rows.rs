//! Reading the rows of a private task. Whatever a record holds, it is read: how many rows an agent has, how long they are and whether a
//! program starts must not follow from one of them.
//!
//! A record is one line of a file: of a csv file the rest of a line behind the agent's name, of a libsvm file a line. What it says beyond the
//! universe of the task is moved into it, by rules that everyone can know ([`Rule`]). What is public is refused as everywhere: a
//! missing file, a wrong header, an agent without a name, a number of lines that is not that of the names.
//!
//! # Privacy
//! Each rule is a function of one record and of public numbers, so that replacing a record in a file is replacing a record of the data set
//! that is learned from, and nothing else. What was moved is for the owner alone, who asks by `sottovoce data check`.

use crate::error::Mistake;
use crate::input::InputFile;
use crate::rows::{self, At, LIBSVM_CELLS_MAX, Names, Place, Rows, SIZE_MAX};
use csv::ByteRecord;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// The most bytes of a line that are read; what is behind them is dropped.
pub const LINE_BYTES_MAX: usize = 1 << 24;

/// How a record is moved into the universe of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// A label of a classification that is none of -1, 0 and 1.
    Class,
    /// A label that is no finite number.
    Label,
    /// A feature that is no finite number.
    Feature,
    /// A number beyond [`SIZE_MAX`].
    Size,
    /// A row with too few fields.
    Short,
    /// A row with too many fields.
    Long,
    /// An entry of a libsvm line that is no `index:value`.
    Entry,
    /// An index of a libsvm line that is 0 or beyond the dimension.
    Index,
    /// An index of a libsvm line that stands there twice.
    Twice,
    /// A line beyond [`LINE_BYTES_MAX`].
    Line,
    /// A point beyond the feature bound.
    Bound,
    /// A value of a statistic beyond its range.
    Range,
}

impl Rule {
    /// All of them, in the order of their numbers.
    pub const ALL: [Rule; 12] = [
        Rule::Class,
        Rule::Label,
        Rule::Feature,
        Rule::Size,
        Rule::Short,
        Rule::Long,
        Rule::Entry,
        Rule::Index,
        Rule::Twice,
        Rule::Line,
        Rule::Bound,
        Rule::Range,
    ];

    /// What was found, and what was made of it.
    pub fn in_words(self) -> &'static str {
        match self {
            Rule::Class => "labels other than -1, 0 and 1: above 0 they count as 1, else as -1",
            Rule::Label => "labels that are no finite number: they count as -1, in a regression as 0",
            Rule::Feature => "features that are no finite number: they count as 0",
            Rule::Size => "numbers beyond 1e75 in size: they count as 1e75, with their sign",
            Rule::Short => "rows with too few fields: the missing ones count as no number",
            Rule::Long => "rows with too many fields: the last ones are dropped",
            Rule::Entry => "entries that are no index:value: they are dropped",
            Rule::Index => "indices of 0 or beyond data.dimension: their entries are dropped",
            Rule::Twice => "indices that stand twice in a line: the last entry counts",
            Rule::Line => "lines of more than 16 MiB: the rest of them is dropped",
            Rule::Bound => "points beyond the feature bound: they are shrunk to it",
            Rule::Range => "values beyond statistic.range: they are moved to it",
        }
    }
}

/// How often a rule was needed, and where first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How often.
    pub times: u64,
    /// The first line, counted from 1; 0 before any.
    pub line: u64,
}

/// Rows by their ids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Ids {
    /// Different ids, the empty one among them.
    pub records: u64,
    /// Rows whose id is empty: they are one record together.
    pub rows_without_id: u64,
    /// The most rows of one record.
    pub rows_max: u64,
}

impl Ids {
    fn of(records: &[Box<[u8]>]) -> Self {
        let mut rows: BTreeMap<&[u8], u64> = BTreeMap::new();
        records.iter().for_each(|id| *rows.entry(id).or_default() += 1);
        Ids {
            records: rows.len() as u64,
            rows_without_id: rows.get(&b""[..]).copied().unwrap_or(0),
            rows_max: rows.into_values().max().unwrap_or(0),
        }
    }
}

/// What was moved in a file. It is made of exact data, for the owner's eyes only.
#[derive(Clone, Debug)]
pub struct Moved {
    /// The file.
    pub file: PathBuf,
    /// The line of each row, counted from 1.
    pub lines: Vec<u64>,
    /// What the ids of rows come to, where the task names a column of ids.
    pub ids: Option<Ids>,
    counts: [Count; Rule::ALL.len()],
}

impl Moved {
    pub(crate) fn new(file: &Path) -> Self {
        Moved { file: file.to_owned(), lines: Vec::new(), ids: None, counts: Default::default() }
    }

    /// Notes that a rule was needed in a line.
    pub fn note(&mut self, rule: Rule, line: u64) {
        let count = &mut self.counts[rule as usize];
        if count.times == 0 {
            count.line = line;
        }
        count.times += 1;
    }

    /// The rules that were needed.
    pub fn counts(&self) -> impl Iterator<Item = (Rule, Count)> {
        Rule::ALL.into_iter().zip(self.counts).filter(|(_, count)| count.times > 0)
    }

    pub(crate) fn feature(&mut self, field: &[u8], line: u64) -> f64 {
        match rows::number(field).filter(|value| value.is_finite()) {
            Some(value) => self.moderate(value, line),
            None => {
                self.note(Rule::Feature, line);
                0.0
            }
        }
    }

    fn label(&mut self, field: &[u8], classification: bool, line: u64) -> f64 {
        let Some(label) = rows::number(field).filter(|label| label.is_finite()) else {
            self.note(Rule::Label, line);
            return if classification { -1.0 } else { 0.0 };
        };
        if !classification {
            return self.moderate(label, line);
        }
        if label != 0.0 && label.abs() != 1.0 {
            self.note(Rule::Class, line);
        }
        if label > 0.0 { 1.0 } else { -1.0 }
    }

    fn moderate(&mut self, value: f64, line: u64) -> f64 {
        if value.abs() > SIZE_MAX {
            self.note(Rule::Size, line);
        }
        value.clamp(-SIZE_MAX, SIZE_MAX)
    }
}

/// Reads a csv file with the header `agent,label,<feature>...`, which may hold no row. A column of ids, if the task names one, stands
/// before the label, so that nothing a record says can change whose it is.
pub fn read_csv(
    file: &InputFile,
    names: &mut Names,
    id_column: Option<&str>,
    classification: bool,
) -> Result<(Rows, Moved), Mistake> {
    let (mut table, mut moved) = (Rows::default(), Moved::new(file));
    table.records = id_column.map(|_| Vec::new());
    let mut record = ByteRecord::new();
    for_each_line(file, |text, line, is_cut| {
        if text.trim_ascii().is_empty() {
            return Ok(());
        }
        let at = At { file, place: Place::Line(line) };
        split(text, &mut record);
        if table.columns.is_empty() {
            if text.contains(&b'\r') {
                return Err(at.mistake("lines end in carriage returns alone; accepted: in line feeds, or in both"));
            }
            if let Some(name) = id_column {
                record = rows::header_without_id(&record, name).map_err(|what| at.mistake(what))?;
            }
            table.columns = rows::feature_columns(&record).map_err(|what| at.mistake(what))?;
            return Ok(());
        }
        table.owners.push(names.number(&record[0], at)?);
        if let Some(records) = &mut table.records {
            let (rest, id) = rows::without_id(&record);
            records.push(id);
            record = rest;
        }
        moved.lines.push(line);
        let width = 2 + table.columns.len();
        let rules = [(Rule::Short, record.len() < width), (Rule::Long, record.len() > width), (Rule::Line, is_cut)];
        rules.iter().filter(|(_, needed)| *needed).for_each(|(rule, _)| moved.note(*rule, line));
        table.labels.push(match record.get(1) {
            Some(field) => moved.label(field, classification, line),
            None if classification => -1.0,
            None => 0.0,
        });
        for k in 2..width {
            table.features.push(record.get(k).map_or(0.0, |field| moved.feature(field, line)));
        }
        Ok(())
    })?;
    if table.columns.is_empty() {
        return Err(Mistake::file(file, "the file is empty; accepted: a header and at least one row"));
    }
    moved.ids = table.records.as_deref().map(Ids::of);
    Ok((table, moved))
}

/// Reads the features of rows to ask a model about, by the same rules: `places` finds the columns of the features in the header, `each` is
/// called with the features of a row.
pub fn read_questions(
    file: &InputFile,
    places: impl Fn(&ByteRecord) -> Result<Vec<usize>, String>,
    mut each: impl FnMut(&[f64]),
) -> Result<Moved, Mistake> {
    let mut moved = Moved::new(file);
    let mut columns: Option<(Vec<usize>, usize)> = None;
    let (mut record, mut features) = (ByteRecord::new(), Vec::new());
    for_each_line(file, |text, line, is_cut| {
        if text.trim_ascii().is_empty() {
            return Ok(());
        }
        split(text, &mut record);
        let Some((places, width)) = &columns else {
            let found = places(&record).map_err(|what| Mistake::line(file, line, what))?;
            columns = Some((found, record.len()));
            return Ok(());
        };
        moved.lines.push(line);
        let rules = [(Rule::Short, record.len() < *width), (Rule::Long, record.len() > *width), (Rule::Line, is_cut)];
        rules.iter().filter(|(_, needed)| *needed).for_each(|(rule, _)| moved.note(*rule, line));
        features.clear();
        features.extend(places.iter().map(|&k| record.get(k).map_or(0.0, |field| moved.feature(field, line))));
        each(&features);
        Ok(())
    })?;
    match columns {
        None => Err(Mistake::file(file, "the file is empty; accepted: a header and at least one row")),
        Some(_) => Ok(moved),
    }
}

/// Reads a libsvm file of so many features, and its file of agents. The k-th line is the k-th name's, blank or not.
pub fn read_libsvm(
    file: &InputFile,
    agents: &InputFile,
    names: &mut Names,
    dimension: usize,
    classification: bool,
) -> Result<(Rows, Moved), Mistake> {
    let (mut table, mut moved) = (Rows::default(), Moved::new(file));
    table.columns = (1..=dimension).map(|index| index.to_string()).collect();
    rows::for_each_line(agents, |name, at| {
        table.owners.push(names.number(name, at)?);
        Ok(())
    })?;
    let count = table.owners.len();
    if count == 0 {
        return Err(Mistake::file(agents, "no names; accepted: one name for each row"));
    }
    if count.saturating_mul(dimension) > LIBSVM_CELLS_MAX {
        let what = format!("{count} rows of {dimension} features; accepted: at most {LIBSVM_CELLS_MAX} numbers in all");
        return Err(Mistake::file(file, what));
    }
    table.features = vec![0.0; count * dimension];
    let mut is_given = vec![0; dimension];
    for_each_line(file, |text, line, is_cut| {
        let row = table.labels.len();
        if row == count {
            // Behind the last record there is nobody's line: it may be blank, like the one behind the last line feed.
            let what =
                format!("more rows than the {count} names of {}; accepted: one name for each row", agents.display());
            return if text.trim_ascii().is_empty() { Ok(()) } else { Err(Mistake::line(file, line, what)) };
        }
        moved.lines.push(line);
        if is_cut {
            moved.note(Rule::Line, line);
        }
        let text = text.split(|&byte| byte == b'#').next().unwrap_or(b"");
        let mut tokens = text.split(|byte| byte.is_ascii_whitespace()).filter(|token| !token.is_empty());
        table.labels.push(moved.label(tokens.next().unwrap_or(b""), classification, line));
        for token in tokens {
            let mut parts = token.splitn(2, |&byte| byte == b':');
            let index = parts.next().and_then(|index| std::str::from_utf8(index).ok()?.parse::<u64>().ok());
            let (Some(index), Some(value)) = (index, parts.next()) else {
                moved.note(Rule::Entry, line);
                continue;
            };
            let Some(k) = usize::try_from(index).ok().and_then(|index| index.checked_sub(1)).filter(|&k| k < dimension)
            else {
                moved.note(Rule::Index, line);
                continue;
            };
            if is_given[k] == row + 1 {
                moved.note(Rule::Twice, line);
            }
            is_given[k] = row + 1;
            table.features[row * dimension + k] = moved.feature(value, line);
        }
        Ok(())
    })?;
    if table.labels.len() < count {
        let what = format!(
            "{} rows for the {count} names of {}; accepted: one name for each row",
            table.labels.len(),
            agents.display()
        );
        return Err(Mistake::file(file, what));
    }
    Ok((table, moved))
}

/// Calls `each` with every line, blank ones and what is behind the last line feed among them, its number from 1 and whether it was cut.
pub(crate) fn for_each_line(
    file: &InputFile,
    mut each: impl FnMut(&[u8], u64, bool) -> Result<(), Mistake>,
) -> Result<(), Mistake> {
    let mut reader = BufReader::with_capacity(1 << 17, rows::open(file)?);
    let mut buffer = Vec::new();
    for line in 1.. {
        buffer.clear();
        let mut is_cut = false;
        let is_last = loop {
            let read = reader.fill_buf().map_err(|error| Mistake::file(file, format!("cannot be read: {error}")))?;
            let end = read.iter().position(|&byte| byte == b'\n');
            let part = &read[..end.unwrap_or(read.len())];
            let room = LINE_BYTES_MAX - buffer.len();
            buffer.extend_from_slice(&part[..part.len().min(room)]);
            is_cut |= part.len() > room;
            let (used, is_end) = (part.len() + usize::from(end.is_some()), read.is_empty());
            reader.consume(used);
            if end.is_some() || is_end {
                break is_end;
            }
        };
        let text = if line == 1 { buffer.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&buffer) } else { &buffer };
        each(text.strip_suffix(b"\r").unwrap_or(text), line, is_cut)?;
        if is_last {
            break;
        }
    }
    Ok(())
}

/// The fields of one line. A quote that is left open ends with it, so that no record can reach into the next one.
pub(crate) fn split(line: &[u8], record: &mut ByteRecord) {
    record.clear();
    let mut field = Vec::new();
    let mut rest = line.iter().copied().peekable();
    loop {
        field.clear();
        if rest.next_if_eq(&b'"').is_some() {
            while let Some(byte) = rest.next() {
                // Two quotes are one; one of them ends the quoted part.
                if byte == b'"' && rest.next_if_eq(&b'"').is_none() {
                    break;
                }
                field.push(byte);
            }
        }
        while let Some(byte) = rest.next_if(|&byte| byte != b',') {
            field.push(byte);
        }
        record.push_field(&field);
        if rest.next().is_none() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &[u8], classification: bool) -> Result<(Rows, Moved), Mistake> {
        let place = tempfile::tempdir().expect("a folder");
        let file = place.path().join("train.csv");
        std::fs::write(&file, text).expect("written");
        read_csv(&file.into(), &mut Names::default(), None, classification)
    }

    fn read_svm(text: &[u8], agents: &str, dimension: usize) -> Result<(Rows, Moved), Mistake> {
        let place = tempfile::tempdir().expect("a folder");
        let (file, names) = (place.path().join("train.svm"), place.path().join("names"));
        std::fs::write(&file, text).expect("written");
        std::fs::write(&names, agents).expect("written");
        read_libsvm(&file.into(), &names.into(), &mut Names::default(), dimension, true)
    }

    /// Records behind an agent's name, of which a strict reader takes the first one only.
    const HOSTILE: [&[u8]; 16] = [
        b",1,0.5,2",
        b"",
        b",",
        b",1",
        b",1,1,1,1,1",
        b",text,text,text",
        b",1,\"0.5,2",
        b",\"1\n",
        b",nan,inf,-inf",
        b",2,1e308,-1e308",
        b",-7,1e400,5e-324",
        b",0,\xff\xfe,\x00",
        b",1,\r,\r\r",
        b",1;0.5;2",
        b",\"\"\"\",\"\"\",0",
        b",\xef\xbb\xbf1,0x10,1_000",
    ];

    #[test]
    fn whatever_a_record_is_there_are_as_many_rows_of_as_many_numbers() {
        for record in HOSTILE {
            let mut text = b"agent,label,x,y\nbob,1,1,1\nann".to_vec();
            text.extend(record.iter().filter(|&&byte| byte != b'\n'));
            text.extend(b"\nbob,0,3,4\n");
            for classification in [true, false] {
                let (rows, moved) = read(&text, classification).unwrap_or_else(|mistake| panic!("{mistake}"));
                assert_eq!((&rows.owners, rows.features.len()), (&vec![0, 1, 0], 6), "{record:?}");
                assert_eq!((rows.features[0], rows.features[4], moved.lines), (1.0, 3.0, vec![2, 3, 4]), "{record:?}");
                let numbers = rows.features.iter().chain(&rows.labels);
                assert!(numbers.clone().all(|value| value.abs() <= SIZE_MAX), "{record:?}: {rows:?}");
                assert!(!classification || rows.labels.iter().all(|label| label.abs() == 1.0), "{record:?}");
            }
        }
    }

    #[test]
    fn rules_are_counted_with_the_first_line_that_needed_them() {
        let text = b"agent,label,x,y\nann,1,1,1\n\nann,7,1,one\nann,x,1e80\nann,-1,1,,5,6\n";
        let (rows, moved) = read(text, true).expect("rows");
        assert_eq!(rows.labels, [1.0, 1.0, -1.0, -1.0]);
        assert_eq!(rows.features, [1.0, 1.0, 1.0, 0.0, 1e75, 0.0, 1.0, 0.0]);
        let counts: Vec<_> = moved.counts().map(|(rule, count)| (rule, count.times, count.line)).collect();
        let expected = [
            (Rule::Class, 1, 4),
            (Rule::Label, 1, 5),
            (Rule::Feature, 2, 4),
            (Rule::Size, 1, 5),
            (Rule::Short, 1, 5),
            (Rule::Long, 1, 6),
        ];
        assert_eq!(counts, expected);
        assert_eq!(read(b"agent,label,x\nann,oops,1\nann,-3,1\n", false).expect("rows").0.labels, [0.0, -3.0]);
    }

    #[test]
    fn what_is_public_is_refused_in_one_line() {
        for (text, says) in [
            (&b""[..], "the file is empty"),
            (b"label,agent,x\nann,1,1\n", "column 1 is \"label\""),
            (b"agent,label\nann,1\n", "no feature column"),
            (b"agent,label,x\n,1,1\n", "line 2: an agent without a name"),
            (b"agent,label,x\rann,1,1\r", "line 1: lines end in carriage returns alone"),
        ] {
            let said = read(text, true).expect_err(says).to_string();
            assert!(said.contains(says), "{said}");
        }
        for (text, agents) in [(&b"1 1:1\n"[..], "ann\nbob\nann\n"), (b"1 1:1\n1 1:1\n1 2:1\n", "ann\nbob\n")] {
            let said = read_svm(text, agents, 2).expect_err("a wrong number of lines").to_string();
            assert!(said.contains("accepted: one name for each row"), "{said}");
        }
    }

    #[test]
    fn a_libsvm_line_of_any_kind_is_one_row_of_the_declared_dimension() {
        for record in [
            &b"1 1:0.5 2:2"[..],
            b"",
            b"   ",
            b"# a note",
            b"text",
            b"1 0:1 7:1 99999999999999999999:1",
            b"1 2:1 1:1 2:3",
            b"nan 1:nan 2:1e400",
            b"-4 1:-1e308 :: 1: :1 a:b 1:1:1",
            b"\xff 1:\xff",
        ] {
            // In the middle, at the end with a line feed and at the end without one.
            for (before, after) in
                [(&b"1 1:1\n"[..], &b"\n1 2:4\n"[..]), (b"1 1:1\n1 2:4\n", b"\n"), (b"1 1:1\n1 2:4\n", b"")]
            {
                let text = [before, record, after].concat();
                let (rows, _) = read_svm(&text, "ann\nbob\nann\n", 2).unwrap_or_else(|mistake| panic!("{mistake}"));
                assert_eq!((rows.labels.len(), rows.features.len(), rows.columns.len()), (3, 6, 2), "{record:?}");
                assert_eq!(rows.features[0], 1.0);
                assert!(rows.features.iter().all(|value| value.abs() <= SIZE_MAX), "{record:?}");
            }
        }
        let (rows, moved) = read_svm(b"1 2:1 3:1 2:5 x\n", "ann\n", 2).expect("rows");
        assert_eq!(rows.features, [0.0, 5.0]);
        let rules: Vec<Rule> = moved.counts().map(|(rule, _)| rule).collect();
        assert_eq!(rules, [Rule::Entry, Rule::Index, Rule::Twice]);
    }

    #[test]
    fn a_line_without_end_is_cut() {
        let mut text = b"agent,label,x\nann,1,0.5,".to_vec();
        text.resize(LINE_BYTES_MAX + (1 << 18), b'7');
        text.extend(b"\nann,-1,2\n");
        let (rows, moved) = read(&text, true).expect("rows");
        assert_eq!((&rows.features, &moved.lines), (&vec![0.5, 2.0], &vec![2, 3]));
        assert!(moved.counts().any(|(rule, count)| rule == Rule::Line && count == Count { times: 1, line: 2 }));
    }

    proptest! {
        #[test]
        fn good_files_are_read_as_everywhere(
            name in "[a-z ,\"]{1,6}", numbers in prop::collection::vec((prop::bool::ANY, -1e9..1e9f64, -1.0..1.0f64), 1..8),
            end in prop::sample::select(vec!["\n", "\r\n", "\n\n"]), trailing in prop::bool::ANY,
        ) {
            let name = format!("\"n{}\"", name.replace('"', "\"\""));
            let mut lines = vec!["agent,\"label\",x,y".to_owned()];
            lines.extend(numbers.iter().map(|(y, a, b)| format!("{name},{},{a:?}, {b:?}", i32::from(*y))));
            let text = lines.join(end) + if trailing { end } else { "" };
            let place = tempfile::tempdir().expect("a folder");
            let file = place.path().join("train.csv");
            std::fs::write(&file, &text).expect("written");
            let (mut strict_names, mut names) = (Names::default(), Names::default());
            let label = |y: f64, _: At<'_>| Ok(if y == 1.0 { 1.0 } else { -1.0 });
            let strict = rows::read_points(&file.as_path().into(), &mut strict_names, rows::Missing::Refuse, None, label).expect("good");
            let (rows, moved) = read_csv(&file.into(), &mut names, None, true).expect("good");
            prop_assert_eq!(moved.counts().count(), 0);
            prop_assert_eq!(names.name(0), strict_names.name(0));
            prop_assert_eq!((rows.owners, rows.labels, rows.columns), (strict.owners, strict.labels, strict.columns));
            prop_assert!(rows.features.iter().map(|x| x.to_bits()).eq(strict.features.iter().map(|x| x.to_bits())));
        }

        #[test]
        fn a_line_is_split_as_a_csv_reader_splits_it(line in "[a\",; ]{1,12}") {
            let mut ours = ByteRecord::new();
            split(line.as_bytes(), &mut ours);
            let mut theirs = ByteRecord::new();
            let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(line.as_bytes());
            reader.read_byte_record(&mut theirs).expect("read");
            prop_assert_eq!(ours.iter().collect::<Vec<_>>(), theirs.iter().collect::<Vec<_>>());
        }
    }
}
