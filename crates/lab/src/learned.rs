//! Boosting, and graphs that are learned: what the files of a task say of them, and what comes out of a run.

use crate::error::{Mistake, quote};
use crate::graph::{self, GraphRows};
use crate::load::Loaded;
use crate::registry::Heard;
use crate::rows::{self, Names};
use crate::task::{Algorithm, BOOSTING_DEFAULTS, Boosting, GraphSource, LINEAR_DEFAULTS, Learned, Predictors, Task};
use sottovoce_algorithms::joint::{Joint, LogDegree};
use sottovoce_algorithms::personal::{
    graph::Links,
    home::{Broadcast, Home},
};
use sottovoce_algorithms::stumps::{Stumps, range_of};
use sottovoce_algorithms::{Dataset, Problem, Shard, boosting, objective};
use sottovoce_core::{Edge, Graph, PeerId, Peers, Posts, Rows, UNHEARD};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// A weight below this is not written: no file of edges may hold it.
const WEIGHT_MIN: f64 = 1e-75;

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
    let oracle = oracle.as_deref().map(|file| graph::read_edges(file, names)).transpose()?;
    let groups = groups.as_deref().map(|file| read_groups(file, names)).transpose()?;
    Ok(KnownRows { oracle, groups })
}

fn read_groups(file: &Path, names: &mut Names) -> Result<Vec<(u32, String)>, Mistake> {
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

/// The points themselves, where a problem holds what base predictors say of them.
#[derive(Clone, Debug)]
pub struct Plain {
    /// Training points.
    pub train: Dataset,
    /// Test points.
    pub test: Option<Dataset>,
    /// One name for each feature.
    pub feature_names: Vec<String>,
}

/// The stumps of a task over so many features; none where each column is what a base predictor says.
///
/// # Panics
/// When the range has not been filled in.
pub fn stumps(boosting: &Boosting, dimension: usize) -> Option<Stumps> {
    let Predictors::Stumps(count) = boosting.predictors else { return None };
    let [low, high] = boosting.range.expect("a range that was given or filled in");
    Some(Stumps::grid(dimension, count as usize, low, high))
}

/// The same task with what base predictors say in place of the features, to be boosted.
pub fn boosted(linear: Loaded) -> Loaded {
    let mut task = linear.task;
    let boosting = task.boosting.as_mut().expect("a task that boosts says how");
    if let Predictors::Stumps(_) = boosting.predictors {
        boosting.range.get_or_insert_with(|| range_of(&linear.problem.data));
    }
    let plain = Plain { train: linear.problem.data, test: linear.test, feature_names: linear.feature_names };
    let (data, test, feature_names) = match stumps(boosting, plain.train.dimension()) {
        None => (plain.train.clone(), plain.test.clone(), plain.feature_names.clone()),
        Some(stumps) => {
            let test = plain.test.as_ref().map(|test| stumps.apply(test));
            let name = |feature: &String| {
                let named = |threshold: &f64| format!("{feature} <= {threshold}");
                stumps.thresholds().iter().map(named).collect::<Vec<_>>()
            };
            (stumps.apply(&plain.train), test, plain.feature_names.iter().flat_map(name).collect())
        }
    };
    if task.algorithm != Algorithm::FrankWolfe {
        task.algorithm = Algorithm::FrankWolfe;
        set_defaults(&mut task, BOOSTING_DEFAULTS);
    }
    let problem = Problem { data, trade_off: task.model.trade_off, ..linear.problem };
    Loaded { task, problem, test, feature_names, plain: Some(Arc::new(plain)), ..linear }
}

/// The same task with linear models over the points themselves.
pub fn linear(loaded: &Loaded) -> Loaded {
    let Some(plain) = &loaded.plain else { return loaded.clone() };
    let Plain { train, test, feature_names } = (**plain).clone();
    let mut task = loaded.task.clone();
    task.algorithm = Algorithm::CoordinateDescent;
    // Its tolerance is about gaps.
    task.run.tolerance = None;
    set_defaults(&mut task, LINEAR_DEFAULTS);
    let trade_off = task.model.trade_off;
    Loaded {
        task,
        names: loaded.names.clone(),
        problem: Problem {
            data: train,
            graph: loaded.problem.graph.clone(),
            loss: loaded.problem.loss,
            regularization: loaded.problem.regularization,
            trade_off,
            points_max: loaded.problem.points_max,
        },
        test,
        feature_names,
        plan: None,
        records: None,
        void: loaded.void,
        known: loaded.known.clone(),
        plain: None,
    }
}

/// Models of the other kind have losses on another scale: where the graph is learned, they take the defaults of their kind.
fn set_defaults(task: &mut Task, (trade_off, sparsity): (f64, f64)) {
    if let GraphSource::Learned(learned) = &mut task.graph.source {
        learned.sparsity = sparsity;
        task.model.trade_off = trade_off;
    }
}

/// mu, nu and g of a task whose graph is learned.
pub fn joint(learned: &Learned, trade_off: f64) -> Joint<LogDegree> {
    let regularizer = LogDegree { sparsity: learned.sparsity, offset: LogDegree::OFFSET };
    Joint { trade_off, strength: learned.strength, regularizer }
}

/// The weights that the agents hold, of each pair what its keeper holds.
pub fn graph_of<'a>(agents: usize, links: impl Fn(PeerId) -> &'a Links) -> Graph {
    let mut edges = Vec::new();
    for me in (0..agents as u32).map(PeerId) {
        let mine = links(me);
        let kept = mine.iter().filter(|&(peer, weight)| mine.keeps(peer) && weight >= WEIGHT_MIN);
        edges.extend(kept.map(|(peer, weight)| (me.0.min(peer.0), me.0.max(peer.0), weight)));
    }
    edges.sort_unstable_by_key(|&(a, b, _)| (a, b));
    Graph::from_edges(agents, &edges).expect("each pair has one keeper, and weights are finite")
}

/// Q of a problem over its graph: of boosting where its data are boosted.
pub fn objective(loaded: &Loaded, problem: &Problem, models: &Rows) -> f64 {
    if loaded.plain.is_some() { boosting::value(problem, models) } else { objective::value(problem, models) }
}

/// F_u or L_u at each agent's model.
pub fn losses(loaded: &Loaded, models: &Rows) -> Vec<f64> {
    let loss = |id: PeerId| {
        let (shard, model) = (loaded.problem.shard(id), models.row(id.index()));
        if loaded.plain.is_some() {
            boosting::local_value(shard.points, model)
        } else {
            objective::local_value(&shard, model)
        }
    };
    (0..loaded.problem.agents() as u32).map(|id| loss(PeerId(id))).collect()
}

/// The home model of an agent that has learned whom to work with, from what it has heard of them.
pub fn home_model(home: Home, shard: &Shard<'_>, heard: &Heard<'_>, known: impl Fn(PeerId) -> Broadcast) -> Vec<f64> {
    let edges: Vec<Edge> = heard.iter().map(|&(peer, weight, _)| Edge { peer, weight }).collect();
    // Row 0 stands for those who have not been heard.
    let mut versions = Rows::zeros(1, shard.points.dimension);
    let mut version = |model: &Option<&[f64]>| {
        model.map_or(UNHEARD, |model| {
            let k = versions.push_zero();
            versions.row_mut(k).copy_from_slice(model);
            k as u32
        })
    };
    let seen: Vec<u32> = heard.iter().map(|(_, _, model)| version(model)).collect();
    let posts = Posts::PerEdge { versions: &versions, mine: UNHEARD, seen: &seen };
    home.model(shard, Peers::Listed(&edges), posts, known)
}

/// The mean weight of a pair within a group, and of one between two; none where there is no such pair.
pub fn within_and_between(graph: &Graph, groups: &[u32]) -> Option<(f64, f64)> {
    let n = groups.len() as f64;
    let mut sizes: HashMap<u32, f64> = HashMap::new();
    groups.iter().for_each(|group| *sizes.entry(*group).or_default() += 1.0);
    // Whole numbers, so the order of a map does not matter.
    let within_pairs: f64 = sizes.values().map(|size| size * (size - 1.0) / 2.0).sum();
    let between_pairs = n * (n - 1.0) / 2.0 - within_pairs;
    let (mut within, mut between) = (0.0, 0.0);
    for (a, b, weight) in graph.edges() {
        *if groups[a.index()] == groups[b.index()] { &mut within } else { &mut between } += weight;
    }
    (within_pairs > 0.0 && between_pairs > 0.0).then(|| (within / within_pairs, between / between_pairs))
}
