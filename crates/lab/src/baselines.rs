//! What a run of boosting or with a learned graph is compared with (thesis, Table 2.1): linear and boosted models, learned alone,
//! from all points as if they were one agent's, and together.
//!
//! All of it is for the report: nobody but whoever holds all the data could run most of it.

use crate::learned::{boosted, linear};
use crate::load::Loaded;
use crate::report::Sample;
use crate::score::{mean_and_deviation, scores};
use crate::task::{Algorithm, GraphSource};
use crate::train::{Halt, Progress, Trained, train};
use sottovoce_algorithms::{Dataset, Problem};
use sottovoce_core::{Graph, PeerId, Rows};
use std::ops::ControlFlow;

/// Comparisons that take more multiplications than this, about a minute, are left out. It is counted from sizes alone, so that
/// the same task has the same report on every machine.
pub const PRODUCTS_MAX: f64 = 1e11;

/// What a run is compared with.
#[derive(Clone, Debug, Default)]
pub struct Baselines {
    /// The runs, first the one of agents that learn alone in the same way; none for a task that is itself local.
    pub runs: Vec<Trained>,
    /// What was left out, and why.
    pub skipped: Option<String>,
}

/// A kind of models.
struct Family {
    name: &'static str,
    loaded: Loaded,
}

/// Runs what a task is compared with. Everyone alone, always; with boosting or a learned graph the whole of the thesis' table, if
/// `all` are wanted.
pub fn baselines(
    loaded: &Loaded,
    threads: usize,
    all: bool,
    watch: &mut dyn FnMut(&str, Progress) -> ControlFlow<()>,
) -> Result<Baselines, Halt> {
    let learned = matches!(loaded.task.graph.source, GraphSource::Learned(_));
    let mut baselines = Baselines::default();
    if !learned && loaded.task.algorithm != Algorithm::FrankWolfe {
        if loaded.task.algorithm != Algorithm::Local {
            baselines.runs.push(train(loaded, Algorithm::Local, threads, &mut |progress| watch("local", progress))?);
        }
        return Ok(baselines);
    }
    let (own, other) = families(loaded);
    let products = products(loaded, &own, other.as_ref());
    let mut run = |name: String, family: &Family, algorithm: Algorithm| {
        let run = train(&family.loaded, algorithm, threads, &mut |progress| watch(&name, progress))?;
        Ok::<_, Halt>(Trained { name, ..run })
    };
    baselines.runs.push(run(format!("local {}", own.name), &own, Algorithm::Local)?);
    if !all || products > PRODUCTS_MAX {
        let why = if all { "take too long beside a run of this size" } else { "were not wanted" };
        baselines.skipped = Some(format!("Comparisons with other models {why}."));
        return Ok(baselines);
    }
    baselines.runs.push(run_as_one(&own, threads)?);
    if let Some(other) = &other {
        baselines.runs.push(run(format!("local {}", other.name), other, Algorithm::Local)?);
        baselines.runs.push(run_as_one(other, threads)?);
    }
    if let Some(oracle) = &loaded.known.oracle {
        let mut informed = Family { name: own.name, loaded: loaded.clone() };
        informed.loaded.problem.graph = oracle.clone();
        // The graph is what the problem has, and not a file that would have to be named.
        informed.loaded.task.graph.source = GraphSource::Complete;
        let trained = run(format!("{}, oracle graph", own.name), &informed, loaded.task.algorithm)?;
        baselines.runs.push(trained);
    }
    if let Some(other) = &other {
        let graph = if learned { "learned" } else { "same" };
        let trained = run(format!("{}, {graph} graph", other.name), other, other.loaded.task.algorithm)?;
        baselines.runs.push(trained);
    }
    // Objectives of other models, other graphs or without g are not on one scale.
    let own_scale = |run: &Trained| !learned && run.name == format!("local {}", own.name);
    for run in baselines.runs.iter_mut().filter(|run| !own_scale(run)) {
        run.samples.iter_mut().for_each(|sample| sample.objective = None);
    }
    Ok(baselines)
}

/// The task's own family of models, and the other one; none for regression, which is not boosted.
fn families(loaded: &Loaded) -> (Family, Option<Family>) {
    const LINEAR: &str = "linear";
    const BOOSTING: &str = "boosting";
    if loaded.plain.is_some() {
        let other = Family { name: LINEAR, loaded: linear(loaded) };
        return (Family { name: BOOSTING, loaded: loaded.clone() }, Some(other));
    }
    let other = loaded.task.boosting.map(|_| Family { name: BOOSTING, loaded: boosted(loaded.clone()) });
    (Family { name: LINEAR, loaded: loaded.clone() }, other)
}

/// One model for everyone, from all points as if they were one agent's.
fn run_as_one(family: &Family, threads: usize) -> Result<Trained, Halt> {
    let Loaded { problem, test, .. } = &family.loaded;
    let agents = problem.agents();
    let mut data = Dataset::new(problem.dimension());
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    for points in (0..agents as u32).map(|id| problem.data.points(PeerId(id))) {
        features.extend_from_slice(points.features);
        labels.extend_from_slice(points.labels);
    }
    data.push_agent(&features, &labels);
    let pooled = Loaded {
        names: vec!["everyone".to_owned()],
        problem: Problem {
            points_max: data.len() as f64,
            data,
            graph: Graph::Complete { n: 1 },
            loss: problem.loss,
            regularization: problem.regularization,
            trade_off: problem.trade_off,
        },
        test: None,
        ..family.loaded.clone()
    };
    let one = train(&pooled, Algorithm::Local, threads, &mut |_| ControlFlow::Continue(()))?;
    let mut models = Rows::zeros(agents, problem.dimension());
    (0..agents).for_each(|k| models.row_mut(k).copy_from_slice(one.models.row(0)));
    let scores = test.as_ref().map_or(vec![None; agents], |test| scores(problem.loss, test, &models));
    let score = mean_and_deviation(&scores);
    let (score_mean, score_std) = (score.map(|(mean, _)| mean), score.map(|(_, std)| std));
    let samples = vec![Sample { score_mean, score_std, ..Sample::default() }];
    let ledgers = vec![one.ledgers[0].clone(); agents];
    Ok(Trained { name: format!("global {}", family.name), models, scores, samples, ledgers, ..one })
}

/// About how many multiplications the comparisons take: rounds alone and as one, and a run like the task's own with each kind of
/// models.
fn products(loaded: &Loaded, own: &Family, other: Option<&Family>) -> f64 {
    let of = |family: &Family| {
        let problem = &family.loaded.problem;
        let numbers = (problem.data.len() * problem.dimension()) as f64;
        let rounds = loaded.task.boosting.map_or(0.0, |boosting| f64::from(boosting.local_rounds));
        2.0 * numbers * rounds + 4.0 * numbers * loaded.task.run.wakes_per_agent as f64
    };
    of(own) + other.map_or(0.0, of)
}
