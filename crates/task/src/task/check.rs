//! The first pass over a task file: every key known, every value of its type and in its range.

use crate::error::{Mistake, quote};
use crate::keys::{self, Key, Kind};
use std::collections::HashMap;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// On which line each key of a task file stands.
pub struct Lines<'f> {
    file: &'f Path,
    keys: &'static [Key],
    lines: HashMap<String, u64>,
}

impl Lines<'_> {
    /// What a key that is missing would accept, as the end of a message.
    pub fn accepted(&self, path: &str) -> String {
        keys::find_in(self.keys, path).map_or(String::new(), |key| format!("; accepted: {}", key.kind))
    }

    /// A mistake at a key, or of the file when the key is absent.
    pub fn mistake(&self, path: &str, what: impl Into<String>) -> Mistake {
        match self.lines.get(path) {
            Some(&line) => Mistake::line(self.file, line, what),
            None => Mistake::file(self.file, what),
        }
    }
}

/// Checks a file against the table of its keys. Of several mistakes the one that stands first is named.
pub fn check<'f>(text: &str, file: &'f Path, keys: &'static [Key]) -> Result<Lines<'f>, Mistake> {
    let table = DeTable::parse(text).map_err(|error| syntax(text, file, &error))?;
    let mut walk = Walk { text, file, keys, lines: HashMap::new(), first: None };
    walk.table(table.get_ref(), "");
    match walk.first {
        Some((_, mistake)) => Err(mistake),
        None => Ok(Lines { file, keys, lines: walk.lines }),
    }
}

/// What the TOML reader could not read.
pub fn syntax(text: &str, file: &Path, error: &toml::de::Error) -> Mistake {
    let what = format!("not valid TOML: {}", error.message());
    match error.span() {
        Some(span) => Mistake::line(file, line_of(text, span.start), what),
        None => Mistake::file(file, what),
    }
}

fn line_of(text: &str, position: usize) -> u64 {
    let before = &text.as_bytes()[..position.min(text.len())];
    1 + before.iter().filter(|&&byte| byte == b'\n').count() as u64
}

struct Walk<'t> {
    text: &'t str,
    file: &'t Path,
    keys: &'static [Key],
    lines: HashMap<String, u64>,
    first: Option<(usize, Mistake)>,
}

impl Walk<'_> {
    fn refuse(&mut self, position: usize, what: String) {
        if self.first.as_ref().is_none_or(|(first, _)| position < *first) {
            self.first = Some((position, Mistake::line(self.file, line_of(self.text, position), what)));
        }
    }

    fn table(&mut self, table: &DeTable<'_>, prefix: &str) {
        for (name, value) in table {
            let position = name.span().start;
            let path =
                if prefix.is_empty() { name.get_ref().to_string() } else { format!("{prefix}.{}", name.get_ref()) };
            match keys::find_in(self.keys, &path) {
                Some(key) => {
                    self.lines.insert(path, line_of(self.text, position));
                    self.value(key, value, position);
                }
                None => {
                    let near = keys::nearest_in(self.keys, &path).path;
                    self.refuse(
                        position,
                        format!("unknown key {}; the nearest known key is {near}", quote(path.as_bytes())),
                    );
                }
            }
        }
    }

    fn value(&mut self, key: &keys::Key, value: &Spanned<DeValue<'_>>, position: usize) {
        let value = value.get_ref();
        let fits = match (key.kind, value) {
            (Kind::Table | Kind::TableOrFalse, DeValue::Table(table)) => {
                self.table(table, key.path);
                true
            }
            (Kind::TableOrFalse, DeValue::Boolean(false)) => true,
            (Kind::Tables, DeValue::Array(items)) => {
                let mut all = true;
                for item in items.iter() {
                    match item.get_ref() {
                        DeValue::Table(table) => self.table(table, key.path),
                        _ => all = false,
                    }
                }
                all
            }
            // A task comes from somebody else, and its words reach terminals and logs.
            (Kind::Text, DeValue::String(text)) => !text.is_empty() && !text.chars().any(char::is_control),
            (Kind::File, DeValue::String(text)) => !text.is_empty(),
            (Kind::Texts, DeValue::Array(items)) => {
                items.iter().all(|item| matches!(item.get_ref(), DeValue::String(text) if !text.is_empty()))
            }
            (Kind::Choice(words), DeValue::String(text)) => words.contains(&text.as_ref()),
            (Kind::Switch, DeValue::Boolean(_)) => true,
            (Kind::NumberOr(_, word), DeValue::String(text)) => text == word,
            (Kind::IntegerOr(_, _, words), DeValue::String(text)) => words.contains(&text.as_ref()),
            (Kind::Integer(low, high) | Kind::IntegerOr(low, high, _), value) => {
                integer(value).is_some_and(|x| (low..=high).contains(&x))
            }
            (Kind::Interval, DeValue::Array(items)) => {
                let ends: Option<Vec<f64>> = items.iter().map(|item| number(item.get_ref())).collect();
                matches!(ends.as_deref(), Some(&[low, high]) if low <= high && (high - low).is_finite())
            }
            (Kind::Points, DeValue::Array(items)) => {
                let lengths: Option<Vec<usize>> = items.iter().map(|item| point_length(item.get_ref())).collect();
                lengths.is_some_and(|all| all.first().is_some_and(|first| *first > 0 && all.iter().all(|n| n == first)))
            }
            (Kind::Number(range) | Kind::NumberOr(range, _), value) => number(value).is_some_and(|x| range.contains(x)),
            _ => false,
        };
        if !fits {
            let found = match value {
                DeValue::Integer(x) => quote(x.as_str().as_bytes()).trim_matches('"').to_owned(),
                DeValue::Float(x) => quote(x.as_str().as_bytes()).trim_matches('"').to_owned(),
                DeValue::String(text) => quote(text.as_bytes()),
                DeValue::Boolean(x) => x.to_string(),
                DeValue::Array(_) => "an array".to_owned(),
                other => format!("a {}", other.type_str()),
            };
            let is_raw =
                matches!(value, DeValue::String(text) if key.kind == Kind::Text && text.chars().any(char::is_control));
            let without = if is_raw { " without control characters" } else { "" };
            self.refuse(position, format!("{} is {found}; accepted: {}{without}", key.path, key.kind));
        }
    }
}

/// How many finite numbers an array holds, if it holds nothing else.
fn point_length(value: &DeValue<'_>) -> Option<usize> {
    let DeValue::Array(items) = value else { return None };
    let is_finite = |item: &Spanned<DeValue<'_>>| number(item.get_ref()).is_some_and(f64::is_finite);
    items.iter().all(is_finite).then_some(items.len())
}

fn integer(value: &DeValue<'_>) -> Option<i64> {
    let DeValue::Integer(integer) = value else { return None };
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(float) => float.as_str().parse().ok(),
        value => integer(value).map(|x| x as f64),
    }
}
