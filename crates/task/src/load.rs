//! From a task to a problem that is ready to run.

use crate::boosted::boosted;
use crate::error::Mistake;
pub use crate::loaded::Loaded;
use crate::rows::Names;
use crate::task::{GraphSource, Task};
use crate::{data, graph, known};

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
    let prepared = data::prepare(raw, task, &names, &place);
    let graph = graph::build(task, graph_rows, &names, &place, &prepared.train, &has_rows)?;

    let known = known::known(task, known_rows, &names, &place)?;

    let mut task = task.clone();
    task.model.points_max.get_or_insert(prepared.train.largest() as u64);
    if let GraphSource::Knn { neighbours } = &mut task.graph.source {
        neighbours.get_or_insert(graph::default_neighbours(names.len()));
    }
    (task.algorithm.complete)(&mut task, &graph);
    Ok(in_its_own_features(Loaded::assemble(task, names, prepared, graph, known)?))
}

/// With what base predictors say in place of the points, where the task boosts.
pub fn in_its_own_features(loaded: Loaded) -> Loaded {
    if loaded.task.algorithm.boosts { boosted(loaded) } else { loaded }
}
