//! The values of the keys that only one algorithm reads.

use crate::keys::{Key, Kind};
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Serialize, SerializeMap, Serializer};
use toml::Value;

/// The values of an algorithm's own keys by their paths, such as `admm.penalty`, in the order of its description; none where
/// nothing is known yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnKeys(Vec<(String, Option<Value>)>);

impl OwnKeys {
    /// The values of these keys among those that were written.
    pub(super) fn of(keys: &[Key], written: OwnKeys) -> Self {
        let values = keys.iter().filter(|key| key.kind != Kind::Table);
        OwnKeys(values.map(|key| (key.path.to_owned(), written.get(key.path).cloned())).collect())
    }

    /// Adds the values of a section, those of sections inside it too.
    fn take(&mut self, section: &str, values: toml::Table) {
        for (key, value) in values {
            let path = format!("{section}.{key}");
            match value {
                Value::Table(inner) => self.take(&path, inner),
                value => self.0.push((path, Some(value))),
            }
        }
    }

    /// The value at a path.
    pub fn get(&self, path: &str) -> Option<&Value> {
        self.0.iter().find(|(other, _)| other == path).and_then(|(_, value)| value.as_ref())
    }

    /// The number at a path, whole or not.
    pub fn number(&self, path: &str) -> Option<f64> {
        match self.get(path)? {
            Value::Integer(whole) => Some(*whole as f64),
            Value::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// Replaces the value at a path, or puts it behind the others.
    pub fn set(&mut self, path: &str, value: impl Into<Value>) {
        let value = Some(value.into());
        match self.0.iter_mut().find(|(other, _)| other == path) {
            Some((_, old)) => *old = value,
            None => self.0.push((path.to_owned(), value)),
        }
    }
}

impl<'de> Deserialize<'de> for OwnKeys {
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let sections = toml::Table::deserialize(reader)?;
        let mut own = OwnKeys::default();
        for (section, values) in sections {
            if let Value::Table(values) = values {
                own.take(&section, values);
            }
        }
        Ok(own)
    }
}

/// A section of a task file, in the order of its keys: paths inside of it, and their values.
struct Section<'o>(Vec<(&'o str, &'o Value)>);

impl Serialize for Section<'_> {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        let mut sections: Vec<(&str, Section<'_>)> = Vec::new();
        let mut map = writer.serialize_map(None)?;
        for &(path, value) in &self.0 {
            match path.split_once('.') {
                // A section's own values stand before the sections inside of it.
                None => map.serialize_entry(path, value)?,
                Some((section, key)) => match sections.last_mut().filter(|(last, _)| *last == section) {
                    Some((_, Section(values))) => values.push((key, value)),
                    None => sections.push((section, Section(vec![(key, value)]))),
                },
            }
        }
        for (section, values) in &sections {
            map.serialize_entry(section, values)?;
        }
        map.end()
    }
}

impl Serialize for OwnKeys {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        let known = self.0.iter().filter_map(|(path, value)| Some((&**path, value.as_ref()?)));
        Section(known.collect()).serialize(writer)
    }
}
