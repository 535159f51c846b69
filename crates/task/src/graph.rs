//! The collaboration graph of a task: from a file, by a rule, or by the data.

use crate::error::{Mistake, quote};
use crate::input::InputFile;
use crate::rows::{self, At, Names, Place};
use crate::task::{GraphSource, Task};
use sottovoce_algorithms::Dataset;
use sottovoce_algorithms::graphs::{self, Directions, ShapeError};
use sottovoce_core::graph::GraphError;
use sottovoce_core::{Graph, PeerId};
use std::path::Path;

/// What a graph needs from its files, agents numbered as they were met.
#[derive(Debug)]
pub enum GraphRows {
    /// The source has no file.
    None,
    /// Edges.
    Edges {
        /// Both ends and the weight.
        list: Vec<(u32, u32, f64)>,
        /// Where each stands.
        places: Vec<Place>,
    },
    /// One vector for each of these agents.
    Vectors {
        /// Whose.
        owners: Vec<u32>,
        /// Row after row.
        rows: Vec<f64>,
        /// Numbers in a row.
        dimension: usize,
    },
}

/// Reads the file of a task's graph, if it has one.
pub fn read(task: &Task, names: &mut Names) -> Result<GraphRows, Mistake> {
    match &task.graph.source {
        GraphSource::Edges(file) => read_edges(file, names),
        GraphSource::Similarity { vectors, .. } => read_vectors(vectors, names),
        _ => Ok(GraphRows::None),
    }
}

/// Reads a file of edges.
pub(crate) fn read_edges(file: &InputFile, names: &mut Names) -> Result<GraphRows, Mistake> {
    let (mut list, mut places) = (Vec::new(), Vec::new());
    rows::read_csv(
        file,
        |header| {
            let fields: Vec<_> = header.iter().map(|name| name.trim_ascii()).collect();
            match fields == [b"a".as_slice(), b"b", b"weight"] {
                true => Ok(()),
                false => {
                    let found = quote(&fields.join(b",".as_slice()));
                    Err(format!("the columns are {found}; accepted: the header a,b,weight"))
                }
            }
        },
        |_, record, at| {
            let (a, b) = (names.number(&record[0], at)?, names.number(&record[1], at)?);
            if a == b {
                let what = format!("{} is joined to itself; accepted: an edge between two agents", quote(&record[0]));
                return Err(at.mistake(what));
            }
            let weight = rows::number(&record[2]).filter(|weight| (1e-75..=1e75).contains(weight));
            let weight = weight.ok_or_else(|| {
                let what =
                    format!("weight is {}; accepted: a finite number above 0, from 1e-75 to 1e75", quote(&record[2]));
                at.mistake(what)
            })?;
            list.push((a, b, weight));
            places.push(at.place);
            Ok(())
        },
    )?;
    Ok(GraphRows::Edges { list, places })
}

fn read_vectors(file: &InputFile, names: &mut Names) -> Result<GraphRows, Mistake> {
    let (mut owners, mut rows, mut dimension) = (Vec::new(), Vec::new(), 0);
    let mut known: std::collections::HashMap<u32, Place> = std::collections::HashMap::new();
    rows::read_csv(
        file,
        |header| {
            dimension = header.len() - 1;
            match header[0].trim_ascii() == b"agent" && header.len() > 1 {
                true => Ok(()),
                false => Err("accepted: the header agent,<coordinate>... with at least one coordinate".to_owned()),
            }
        },
        |header, record, at| {
            let owner = names.number(&record[0], at)?;
            if let Some(first) = known.insert(owner, at.place) {
                let first = At { place: first, ..at }.line();
                let what = format!("agent {} has a vector on line {first} already", quote(&record[0]));
                return Err(at.mistake(format!("{what}; accepted: one for each agent")));
            }
            owners.push(owner);
            for (name, field) in header.iter().zip(record).skip(1) {
                let value = rows::number(field).filter(|value| value.is_finite()).ok_or_else(|| {
                    let what = format!("column {} is {}; accepted: a finite number", quote(name), quote(field));
                    at.mistake(what)
                })?;
                rows.push(value);
            }
            Ok(())
        },
    )?;
    Ok(GraphRows::Vectors { owners, rows, dimension })
}

/// Builds the graph over the agents in the order of their names. `has_rows` says who appears in the data.
pub fn build(
    task: &Task,
    read: GraphRows,
    names: &[String],
    place: &[u32],
    train: &Dataset,
    has_rows: &[bool],
) -> Result<Graph, Mistake> {
    let n = names.len();
    let shape = |error: ShapeError| Mistake::file(&task.source, format!("[graph]: {error}"));
    let graph = match (&task.graph.source, read) {
        (GraphSource::Edges(file), GraphRows::Edges { list, places }) => from_edges(file, list, &places, names, place)?,
        (GraphSource::Similarity { vectors, width, threshold }, GraphRows::Vectors { owners, rows, dimension }) => {
            let of = vectors_in_place(vectors, &owners, &rows, dimension, names, place)?;
            graphs::similar(&of, *width, *threshold).map_err(shape)?.ok_or_else(|| {
                let what = "no threshold connects the agents: some weights vanish";
                Mistake::file(
                    &task.source,
                    format!("[graph]: {what}; accepted: a larger width, or threshold = a number"),
                )
            })?
        }
        (GraphSource::Ring, _) => Graph::ring(n).map_err(|error| shape(error.into()))?,
        // Everyone can be asked.
        (GraphSource::Complete | GraphSource::Learned(_), _) => {
            Graph::complete(n).map_err(|error| shape(error.into()))?
        }
        (GraphSource::Torus { rows, columns }, _) => {
            if u64::from(*rows) * u64::from(*columns) != n as u64 {
                let what = format!("[graph]: a torus of {rows} x {columns} has no place for exactly {n} agents");
                return Err(Mistake::file(&task.source, format!("{what}; accepted: rows x columns = {n}")));
            }
            graphs::torus(*rows as usize, *columns as usize).map_err(shape)?
        }
        (GraphSource::WattsStrogatz { neighbours, rewire, seed }, _) => {
            graphs::watts_strogatz(n, *neighbours as usize, *rewire, *seed).map_err(shape)?
        }
        (GraphSource::ErdosRenyi { probability, seed }, _) => {
            graphs::erdos_renyi(n, *probability, *seed).map_err(shape)?
        }
        (GraphSource::Knn { neighbours }, _) => {
            let of = profiles(task, train);
            let neighbours = neighbours.unwrap_or_else(|| default_neighbours(n));
            graphs::nearest_neighbours(&of, neighbours as usize).map_err(shape)?
        }
        (GraphSource::Edges(_) | GraphSource::Similarity { .. }, _) => {
            unreachable!("`read` reads the file of a graph that has one")
        }
    };
    if !task.graph.allow_isolated && !task.has_everyone() {
        let alone = (0..n).find(|&k| has_rows[k] && graph.peers(PeerId(k as u32)).is_empty());
        if let Some(k) = alone {
            let file: &Path = match &task.graph.source {
                GraphSource::Edges(file) => file,
                _ => &task.source,
            };
            let what = format!("agent {} is in the data, but no edge names it", quote(names[k].as_bytes()));
            return Err(Mistake::file(file, format!("{what}; accepted: an edge, or graph.allow-isolated = true")));
        }
    }
    Ok(graph)
}

/// How many nearest agents each of `n` chooses when a task does not say.
pub(crate) fn default_neighbours(n: usize) -> u32 {
    n.saturating_sub(1).clamp(1, 10) as u32
}

/// A graph from a file of edges.
pub(crate) fn from_edges(
    file: &InputFile,
    mut list: Vec<(u32, u32, f64)>,
    places: &[Place],
    names: &[String],
    place: &[u32],
) -> Result<Graph, Mistake> {
    for (a, b, _) in &mut list {
        (*a, *b) = (place[*a as usize], place[*b as usize]);
    }
    Graph::from_edges(names.len(), &list).map_err(|error| match error {
        GraphError::Repeated { first, second } => {
            let (a, b, weight) = list[second];
            let ends = format!("{} and {}", quote(names[a as usize].as_bytes()), quote(names[b as usize].as_bytes()));
            let at = |index: usize| At { file, place: places[index] };
            let before = format!("line {} with weight {}", at(first).line(), list[first].2);
            let what = format!("{ends} are joined with weight {weight}, and on {before}; accepted: each pair once");
            at(second).mistake(what)
        }
        error => Mistake::file(file, error.to_string()),
    })
}

fn vectors_in_place(
    file: &Path,
    owners: &[u32],
    rows: &[f64],
    dimension: usize,
    names: &[String],
    place: &[u32],
) -> Result<Directions, Mistake> {
    let mut sorted = vec![0.0; names.len() * dimension];
    let mut given = vec![false; names.len()];
    for (&owner, row) in owners.iter().zip(rows.chunks_exact(dimension)) {
        let k = place[owner as usize] as usize;
        sorted[k * dimension..(k + 1) * dimension].copy_from_slice(row);
        given[k] = true;
    }
    match given.iter().position(|given| !given) {
        Some(k) => {
            let what = format!("agent {} has no vector; accepted: one row for each agent", quote(names[k].as_bytes()));
            Err(Mistake::file(file, what))
        }
        None => Ok(Directions::new(dimension, sorted)),
    }
}

/// Each agent's profile: the mean over its training points of label times x, without the intercept.
///
/// For a classification this is the direction in which the classes differ, half the distance of their means when
/// both are equally frequent; for the squared loss, the covariance of features and label when they are centred.
fn profiles(task: &Task, train: &Dataset) -> Directions {
    let dimension = train.dimension() - usize::from(task.model.intercept.is_some());
    let mut rows = vec![0.0; train.agents() * dimension];
    for (agent, profile) in rows.chunks_exact_mut(dimension).enumerate() {
        let points = train.points(PeerId(agent as u32));
        let m = points.len() as f64;
        for (x, y) in points.iter() {
            profile.iter_mut().zip(x).for_each(|(sum, x)| *sum += y * x / m);
        }
    }
    Directions::new(dimension, rows)
}
