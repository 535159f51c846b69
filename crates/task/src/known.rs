//! What the files of a task say of a graph that its agents learn: a graph to compare with, and who belongs together.

use crate::error::{Mistake, quote};
use crate::graph::{self, GraphRows};
use crate::input::InputFile;
use crate::rows::{self, Names};
use crate::task::{GraphSource, Learned, Task};
use sottovoce_core::Graph;
use std::collections::HashMap;
use std::path::Path;

/// What a task knows of a graph that it lets its agents learn.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// A graph to compare with.
    pub oracle: Option<Graph>,
    /// Who belongs together.
    pub groups: Option<Groups>,
}

/// Who belongs together.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    /// Their names, in the order of their first agents.
    pub names: Vec<String>,
    /// By agent: its group.
    pub of: Vec<u32>,
}

/// The files of [`Known`], agents numbered as they were met.
#[derive(Debug, Default)]
pub struct KnownRows {
    oracle: Option<GraphRows>,
    groups: Option<Vec<(u32, String)>>,
}

/// Reads what a task knows of its learned graph; nothing for other graphs.
pub fn read(task: &Task, names: &mut Names) -> Result<KnownRows, Mistake> {
    let GraphSource::Learned(Learned { oracle, groups, .. }) = &task.graph.source else {
        return Ok(KnownRows::default());
    };
    let oracle = oracle.as_ref().map(|file| graph::read_edges(file, names)).transpose()?;
    let groups = groups.as_ref().map(|file| read_groups(file, names)).transpose()?;
    Ok(KnownRows { oracle, groups })
}

fn read_groups(file: &InputFile, names: &mut Names) -> Result<Vec<(u32, String)>, Mistake> {
    let mut list = Vec::new();
    let mut known = HashMap::new();
    rows::read_csv(
        file,
        |header| {
            let fields: Vec<_> = header.iter().map(|name| name.trim_ascii()).collect();
            match fields == [b"agent".as_slice(), b"group"] {
                true => Ok(()),
                false => Err("accepted: the header agent,group".to_owned()),
            }
        },
        |_, record, at| {
            let agent = names.number(&record[0], at)?;
            if let Some(first) = known.insert(agent, at.line()) {
                let what = format!("agent {} has a group on line {first} already", quote(&record[0]));
                return Err(at.mistake(format!("{what}; accepted: one for each agent")));
            }
            let group = std::str::from_utf8(&record[1]).map_err(|_| at.mistake("a group's name is UTF-8"))?;
            list.push((agent, group.to_owned()));
            Ok(())
        },
    )?;
    Ok(list)
}

/// Brings what was read into the order of the agents' names.
pub fn known(task: &Task, read: KnownRows, names: &[String], place: &[u32]) -> Result<Known, Mistake> {
    let GraphSource::Learned(Learned { oracle, groups, .. }) = &task.graph.source else { return Ok(Known::default()) };
    let oracle = match (oracle, read.oracle) {
        (Some(file), Some(GraphRows::Edges { list, places })) => {
            Some(graph::from_edges(file, list, &places, names, place)?)
        }
        _ => None,
    };
    let groups = match (groups, read.groups) {
        (Some(file), Some(rows)) => Some(in_place(file, &rows, names, place)?),
        _ => None,
    };
    Ok(Known { oracle, groups })
}

fn in_place(file: &Path, rows: &[(u32, String)], names: &[String], place: &[u32]) -> Result<Groups, Mistake> {
    let mut named: Vec<Option<&str>> = vec![None; names.len()];
    rows.iter().for_each(|(agent, group)| named[place[*agent as usize] as usize] = Some(group));
    let mut groups = Groups { names: Vec::new(), of: Vec::with_capacity(names.len()) };
    for (agent, group) in names.iter().zip(named) {
        let Some(group) = group else {
            let what = format!("agent {} has no group; accepted: one row for each agent", quote(agent.as_bytes()));
            return Err(Mistake::file(file, what));
        };
        let at = groups.names.iter().position(|known| known == group).unwrap_or_else(|| {
            groups.names.push(group.to_owned());
            groups.names.len() - 1
        });
        groups.of.push(at as u32);
    }
    Ok(groups)
}
