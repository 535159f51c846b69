//! From a task to a problem that is ready to run.

use crate::boosted::boosted;
use crate::data::Prepared;
use crate::error::{Mistake, quote};
pub use crate::loaded::Loaded;
use crate::rows::{At, Names, Place};
use crate::task::{GraphSource, Statistic, Task, Yields};
use crate::{data, graph, known};
use sottovoce_core::PeerId;
use std::path::Path;

/// Reads the files of a task and builds its problem.
pub fn load(task: &Task) -> Result<Loaded, Mistake> {
    load_without(task, &|_| false)
}

/// The same without what the rows of some records say: their ids are told to be void.
pub fn load_without(task: &Task, is_void: &dyn Fn(&[u8]) -> bool) -> Result<Loaded, Mistake> {
    let mut numbers = Names::default();
    let mut raw = data::read(task, &mut numbers)?;
    raw.make_void(is_void);
    let with_rows = numbers.len();
    add_without_data(task, &mut numbers)?;
    let graph_rows = graph::read(task, &mut numbers)?;
    let known_rows = known::read(task, &mut numbers)?;
    let (names, place) = numbers.sorted();
    let mut has_rows = vec![false; names.len()];
    place[..with_rows].iter().for_each(|&k| has_rows[k as usize] = true);
    if task.statistic.is_some()
        && let Some(k) = has_rows.iter().position(|has_rows| !has_rows)
    {
        let what = format!("agent {} has no row; accepted: at least one row of each agent", quote(names[k].as_bytes()));
        return Err(Mistake::file(&task.data.train.file, what));
    }
    let prepared = data::prepare(raw, task, &names, &place);
    let graph = graph::build(task, graph_rows, &names, &place, &prepared.train, &has_rows)?;

    let known = known::known(task, known_rows, &names, &place)?;

    let mut task = task.clone();
    match &mut task.statistic {
        Some(statistic) => complete(statistic, &prepared, names.len(), &task.source)?,
        None if task.algorithm.yields == Yields::ModelPerAgent => {
            task.model.points_max.get_or_insert(prepared.train.largest() as u64);
        }
        None => (),
    }
    if let GraphSource::Knn { neighbours } = &mut task.graph.source {
        neighbours.get_or_insert(graph::default_neighbours(names.len()));
    }
    if let Some(what) = (task.algorithm.refuses_graph)(&task, &graph) {
        return Err(Mistake::file(&task.source, what));
    }
    (task.algorithm.complete)(&mut task, &graph, &names);
    let loaded = Loaded::assemble(task, names, prepared, graph, known)?;
    loaded.check_sizes()?;
    if let Some((_, what)) = (loaded.task.algorithm.check_everyone)(&loaded.task, &loaded.problem) {
        return Err(Mistake::file(&loaded.task.source, what));
    }
    Ok(in_its_own_features(loaded))
}

/// Numbers the agents that the task itself names. None of them has a row.
fn add_without_data(task: &Task, numbers: &mut Names) -> Result<(), Mistake> {
    let source = task.source.clone().into();
    let with_rows = numbers.len();
    for name in (task.algorithm.without_data)(&task.own) {
        let number = numbers.number(name.as_bytes(), At { file: &source, place: Place::Line(1) })?;
        if (number as usize) < with_rows {
            let what =
                format!("agent {} has rows, and {} has no rows for it", quote(name.as_bytes()), task.algorithm.name);
            return Err(Mistake::file(&task.data.train.file, format!("{what}; accepted: servers under other names")));
        }
    }
    Ok(())
}

/// Fills in what a task does not say of its statistic.
fn complete(statistic: &mut Statistic, data: &Prepared, agents: usize, task: &Path) -> Result<(), Mistake> {
    statistic.columns.get_or_insert_with(|| data.feature_names.clone());
    let (agents, rows) = (agents as u64, data.train.len() as u64);
    let labels = |agent| data.train.points(PeerId(agent)).labels.iter();
    let positives = (0..agents as u32).flat_map(labels).filter(|label| **label > 0.0).count() as u64;
    // What a statistic has no use for is not filled in: where all of an agent may be replaced, its rows are nobody's business.
    let (of_pairs, has_label) = (statistic.kind.is_of_pairs(), statistic.kind.has_label());
    for (is_used, key, said, found, what) in [
        (true, "agents", &mut statistic.agents, agents, "agents have rows"),
        (of_pairs, "rows", &mut statistic.rows, rows, "rows there are"),
        (has_label, "positives", &mut statistic.positives, positives, "rows have the label 1"),
    ] {
        if !is_used {
            continue;
        }
        let said = *said.get_or_insert(found);
        if said != found {
            let what = format!("statistic.{key} is {said}, and {found} {what}; accepted: {found}");
            return Err(Mistake::file(task, what));
        }
    }
    Ok(())
}

/// With what base predictors say in place of the points, where the task boosts.
pub fn in_its_own_features(loaded: Loaded) -> Loaded {
    if loaded.task.algorithm.boosts { boosted(loaded) } else { loaded }
}
