//! What an observer can tell of two runs: pure comparisons of what commands left behind.

use crate::artefacts::{self, Command, MadeOf};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// What somebody sees of a command that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code; nothing where it was killed.
    pub code: Option<i32>,
    /// Its standard output.
    pub out: Vec<u8>,
    /// Its standard error.
    pub err: Vec<u8>,
}

/// The files below a folder, by name.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

/// Reads all of them. Names have `/` between their parts.
pub(super) fn files(folder: &Path) -> std::io::Result<Files> {
    fn below(folder: &Path, prefix: &str, found: &mut Files) -> std::io::Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                below(&entry.path(), &format!("{name}/"), found)?;
            } else {
                found.insert(name, std::fs::read(entry.path())?);
            }
        }
        Ok(())
    }
    let mut found = Files::new();
    below(folder, "", &mut found)?;
    Ok(found)
}

/// What can be compared of the files below `peers` in two runs of a network: which there are, and of those that are made of public facts
/// every byte but keys and ports, which are new in each run. What the others hold is their owners', and nobody else can open the folder.
pub(super) fn of_peers(files: Files) -> Files {
    let part = |(name, bytes): (String, Vec<u8>)| {
        let Some(inside) = name.strip_prefix("peers/") else { return Some((name, bytes)) };
        // The task that all read, or a file of one of them.
        let own = inside.split_once('/').map_or(inside, |(_, own)| own);
        let artefact = artefacts::find(Command::Peer, own.split('/').next().unwrap_or(own));
        let is_public = own == inside || artefact.is_some_and(|artefact| artefact.made_of == MadeOf::PublicFacts);
        // Seats have random names.
        let is_lock = own.ends_with(".lock");
        (!is_lock).then(|| (name, if is_public { without_keys_and_ports(&bytes) } else { Vec::new() }))
    };
    files.into_iter().filter_map(part).collect()
}

/// A text without the keys of peers and the ports that they listen at.
fn without_keys_and_ports(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let word = |word: &str| match word {
        // An Ed25519 key, as libp2p writes it.
        key if key.starts_with("12D3KooW") => "KEY".to_owned(),
        other => other.to_owned(),
    };
    let mut words: Vec<String> = Vec::new();
    for part in text.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let end =
            part.len() - part.chars().next_back().filter(|c| !c.is_ascii_alphanumeric()).map_or(0, char::len_utf8);
        let (plain, rest) = part.split_at(end);
        let is_port = words.last().is_some_and(|before| before == "tcp/");
        words.push(if is_port { "PORT".to_owned() } else { word(plain) } + rest);
    }
    words.concat().into_bytes()
}

/// Which file is in one folder and not in the other, if any is.
pub(super) fn only_in_one<'f>(one: &'f Files, other: &'f Files) -> Option<&'f String> {
    let missing = |a: &'f Files, b: &'f Files| a.keys().find(|name| !b.contains_key(*name));
    missing(one, other).or_else(|| missing(other, one))
}

/// A csv file without its numbers: lines, the names in their first column where that is one of agents, and how many fields each has.
pub(super) fn outline(csv: &[u8]) -> Vec<(String, usize)> {
    let text = String::from_utf8_lossy(csv);
    let has_names = text.starts_with("agent,");
    let one = |(k, line): (usize, &str)| {
        let fields = line.split(',').count();
        let first = match k {
            0 => line,
            _ if has_names => line.split(',').next().unwrap_or_default(),
            _ => "",
        };
        (first.to_owned(), fields)
    };
    text.lines().enumerate().map(one).collect()
}

/// Where two JSON values differ: in keys and kinds of values everywhere, in values where the key of the first level is one of these.
pub(super) fn difference(one: &Value, other: &Value, exact: &[&str]) -> Option<String> {
    let (Some(a), Some(b)) = (one.as_object(), other.as_object()) else { return shape(one, other) };
    if !a.keys().eq(b.keys()) {
        let odd = a.keys().find(|key| !b.contains_key(*key)).or_else(|| b.keys().find(|key| !a.contains_key(*key)));
        return odd.map(|key| format!("the key {key}"));
    }
    let differs = |(key, value): (&String, &Value)| match exact.contains(&key.as_str()) {
        true => (*value != b[key]).then(|| format!("{key}: {value} or {}", b[key])),
        false => shape(value, &b[key]).map(|what| format!("{key}: {what}")),
    };
    a.iter().find_map(differs)
}

/// Where keys or kinds differ, numbers aside.
fn shape(one: &Value, other: &Value) -> Option<String> {
    match (one, other) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            a.iter().find_map(|(key, value)| shape(value, &b[key]).map(|what| format!("{key}: {what}")))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).find_map(|(one, other)| shape(one, other))
        }
        (Value::Number(_), Value::Number(_)) | (Value::String(_), Value::String(_)) => None,
        _ if one == other => None,
        _ => Some(format!("{one} or {other}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_kinds_and_chosen_values_are_compared() {
        let one = json!({"agents": 3, "score": {"mean": 0.5}, "digest": "ab", "rows": [1, 2]});
        let with = |key: &str, value: Value| {
            let mut other = one.clone();
            other[key] = value;
            difference(&one, &other, &["agents"])
        };
        assert_eq!(with("score", json!({"mean": 0.7})), None);
        assert_eq!(with("digest", json!("cd")), None);
        assert_eq!(with("agents", json!(4)), Some("agents: 3 or 4".to_owned()));
        assert!(with("score", Value::Null).is_some() && with("rows", json!([1])).is_some());
        assert_eq!(with("new", json!(1)), Some("the key new".to_owned()));
    }

    #[test]
    fn of_peers_public_files_are_kept_and_others_are_names() {
        let part = |files: &[(&str, &str)]| {
            of_peers(files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect())
        };
        let key = "12D3KooWQYhTNQdmr3ArTeUHRYzFg94BKyTkoWBDWez9kSCVe2Xo";
        let public = format!("key = \"{key}\"\naddresses = [\"/ip4/127.0.0.1/tcp/4001\"]\nagent = \"ü\"\n");
        let kept = "key = \"KEY\"\naddresses = [\"/ip4/127.0.0.1/tcp/PORT\"]\nagent = \"ü\"\n";
        assert_eq!(
            part(&[
                ("models.csv", key),
                ("peers/task.toml", "name = \"t\"\n"),
                ("peers/ann/peer.toml", &public),
                ("peers/ann/data.csv", "secret"),
                ("peers/ann/store/store.log", "secret"),
                ("peers/ann/sottovoce-budget/peer-00ff.lock", ""),
                ("peers/ann/unheard.of", "secret"),
            ]),
            part(&[
                ("models.csv", key),
                ("peers/task.toml", "name = \"t\"\n"),
                ("peers/ann/peer.toml", kept),
                ("peers/ann/data.csv", ""),
                ("peers/ann/store/store.log", ""),
                ("peers/ann/unheard.of", ""),
            ])
        );
        assert_ne!(part(&[("peers/ann/peer.toml", kept)]), part(&[("peers/ann/peer.toml", &format!("{kept}#"))]));
    }

    #[test]
    fn an_outline_keeps_names_rows_and_columns() {
        assert_eq!(outline(b"agent,x\nann,0.5\n"), outline(b"agent,x\nann,-17\n"));
        assert_ne!(outline(b"agent,x\nann,0.5\n"), outline(b"agent,x\nann,0.5,1\n"));
        assert_ne!(outline(b"agent,x\nann,0.5\n"), outline(b"agent,x\n"));
        assert_ne!(outline(b"agent,x\n"), outline(b"agent,y\n"));
        assert_ne!(outline(b"agent,x\nann,1\n"), outline(b"agent,x\nbob,1\n"));
        assert_eq!(outline(b"x,y\n0.5,1\n"), outline(b"x,y\n-3,2\n"), "the one model of all has no name");
        assert_ne!(outline(b"x,y\n0.5,1\n"), outline(b"x,y\n"));
    }
}
