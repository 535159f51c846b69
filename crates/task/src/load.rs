//! From a task to a problem that is ready to run.

use crate::boosted::boosted;
use crate::error::{Mistake, quote};
pub use crate::loaded::Loaded;
use crate::rows::Names;
use crate::task::{GraphSource, Statistic, Task, Yields};
use crate::{data, graph, known};
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
        Some(statistic) => complete(statistic, &prepared.feature_names, names.len(), &task.source)?,
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
    (task.algorithm.complete)(&mut task, &graph);
    let loaded = Loaded::assemble(task, names, prepared, graph, known)?;
    loaded.check_sizes()?;
    Ok(in_its_own_features(loaded))
}

/// Fills in what a task does not say of its statistic.
fn complete(statistic: &mut Statistic, columns: &[String], agents: usize, task: &Path) -> Result<(), Mistake> {
    statistic.columns.get_or_insert_with(|| columns.to_vec());
    match *statistic.agents.get_or_insert(agents as u64) {
        said if said == agents as u64 => Ok(()),
        said => {
            let what = format!("statistic.agents is {said}, and {agents} agents have rows; accepted: {agents}");
            Err(Mistake::file(task, what))
        }
    }
}

/// With what base predictors say in place of the points, where the task boosts.
pub fn in_its_own_features(loaded: Loaded) -> Loaded {
    if loaded.task.algorithm.boosts { boosted(loaded) } else { loaded }
}
