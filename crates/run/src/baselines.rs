//! What a run of boosting or with a learned graph is compared with (thesis, Table 2.1): linear and boosted models, learned alone,
//! from all points as if they were one agent's, and together.
//!
//! All of it is for the report: nobody but whoever holds all the data could run most of it.

use crate::score::{mean_and_deviation, scores};
use crate::train::{Halt, HomeModels, Progress, Trained, train};
use sottovoce_algorithms::{Dataset, Problem};
use sottovoce_core::{Graph, PeerId, Rows};
use sottovoce_report::training::Sample;
use sottovoce_task::algorithms::local;
use sottovoce_task::boosted::{boosted, linear};
use sottovoce_task::load::Loaded;
use sottovoce_task::plan;
use sottovoce_task::task::{Boosting, Description, GraphSource, Predictors, Yields};
use std::ops::ControlFlow;
use std::sync::Arc;

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

const LINEAR: &str = "linear";
const BOOSTING: &str = "boosting";

/// Runs what a task is compared with. Nothing where all learn one model, and otherwise everyone alone, always; with boosting or a learned graph the whole of the thesis' table, if
/// `all` are wanted. Of a private task, what others would send is private too.
pub fn baselines(
    loaded: &Loaded,
    threads: usize,
    all: bool,
    watch: &mut dyn FnMut(&str, Progress) -> ControlFlow<()>,
) -> Result<Baselines, Halt> {
    let learned = loaded.edge_count().is_none();
    let mut baselines = Baselines::default();
    if loaded.task.algorithm.yields == Yields::OneModel {
        return Ok(baselines);
    }
    if !learned && !loaded.task.algorithm.boosts {
        if *loaded.task.algorithm != local::DESCRIPTION {
            baselines.runs.push(train(loaded, &local::DESCRIPTION, threads, &mut |progress| watch("local", progress))?);
        }
        return Ok(baselines);
    }
    let (own, others) = if loaded.plain.is_some() { (BOOSTING, LINEAR) } else { (LINEAR, BOOSTING) };
    let mut run = |name: String, loaded: &Loaded, algorithm: &'static Description| {
        let run = train(loaded, algorithm, threads, &mut |progress| watch(&name, progress))?;
        Ok::<_, Halt>(Trained { name, ..run })
    };
    baselines.runs.push(run(format!("local {own}"), loaded, &local::DESCRIPTION)?);
    if !all || products(loaded) > PRODUCTS_MAX {
        let why = if all { "take too long beside a run of this size" } else { "were not wanted" };
        baselines.skipped = Some(format!("Comparisons with other models {why}."));
        return Ok(baselines);
    }
    baselines.runs.push(run_as_one(own, loaded, threads)?);
    // Regression is not boosted, and boosting is not private.
    let other = match loaded.plain.is_some() {
        _ if loaded.task.privacy.is_some() => None,
        true => Some(linear(loaded)),
        false => loaded.task.boosting.map(|_| boosted(loaded.clone())),
    };
    if let Some(other) = &other {
        baselines.runs.push(run(format!("local {others}"), other, &local::DESCRIPTION)?);
        baselines.runs.push(run_as_one(others, other, threads)?);
    }
    if let Some(oracle) = &loaded.known.oracle {
        let mut informed = loaded.clone();
        informed.problem.graph = oracle.clone();
        // The graph is what the problem has, and not a file that would have to be named.
        informed.task.graph.source = GraphSource::Complete;
        if let Some(privacy) = &informed.task.privacy {
            // The same budget, and no losses to spend it on.
            informed.plan = Some(Arc::new(plan::plan(&informed.task, privacy, &informed.problem)?));
        }
        let run = run(format!("{own}, oracle graph"), &informed, loaded.task.algorithm)?;
        baselines.runs.push(at_home(run));
    }
    if let Some(other) = &other {
        let graph = if learned { "learned" } else { "same" };
        baselines.runs.push(run(format!("{others}, {graph} graph"), other, other.task.algorithm)?);
    }
    // Objectives of other models, other graphs or without g are not on one scale.
    let own_scale = |run: &Trained| !learned && run.name == format!("local {own}");
    for run in baselines.runs.iter_mut().filter(|run| !own_scale(run)) {
        run.samples.iter_mut().for_each(|sample| sample.objective = None);
    }
    Ok(baselines)
}

/// Of a private run what its agents use: their home models, in the place of what they broadcast.
fn at_home(mut run: Trained) -> Trained {
    let Some(HomeModels { models, scores }) = run.home.take() else { return run };
    let score = mean_and_deviation(&scores);
    let (score_mean, score_std) = (score.map(|(mean, _)| mean), score.map(|(_, std)| std));
    let samples = run.samples.last().map(|last| Sample { objective: None, score_mean, score_std, ..*last });
    let name = format!("home models, {}", run.name);
    Trained { models, scores, samples: samples.into_iter().collect(), name, home: None, ..run }
}

/// One model for everyone, from all points as if they were one agent's.
fn run_as_one(kind: &str, loaded: &Loaded, threads: usize) -> Result<Trained, Halt> {
    let Loaded { problem, test, .. } = loaded;
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
        reach: None,
        problem: Problem {
            points_max: data.len() as f64,
            data,
            graph: Graph::Complete { n: 1 },
            loss: problem.loss,
            regularization: problem.regularization,
            trade_off: problem.trade_off,
        },
        test: None,
        known: loaded.known.clone(),
        task: loaded.task.clone(),
        feature_names: loaded.feature_names.clone(),
        plain: loaded.plain.clone(),
        plan: None,
        records: None,
        void: loaded.void,
    };
    let one = train(&pooled, &local::DESCRIPTION, threads, &mut |_| ControlFlow::Continue(()))?;
    let mut models = Rows::zeros(agents, problem.dimension());
    (0..agents).for_each(|k| models.row_mut(k).copy_from_slice(one.models.row(0)));
    let scores = test.as_ref().map_or(vec![None; agents], |test| scores(problem.loss, test, &models));
    let score = mean_and_deviation(&scores);
    let (score_mean, score_std) = (score.map(|(mean, _)| mean), score.map(|(_, std)| std));
    let samples = vec![Sample { score_mean, score_std, ..Sample::default() }];
    let ledgers = vec![one.ledgers[0].clone(); agents];
    Ok(Trained { name: format!("global {kind}"), models, scores, samples, ledgers, ..one })
}

/// About how many multiplications the comparisons take: rounds alone and as one, and a run like the task's own with each kind of
/// models.
fn products(loaded: &Loaded) -> f64 {
    let features = loaded.plain.as_ref().map_or(loaded.problem.dimension(), |plain| plain.train.dimension());
    let (rounds, predictors) = match loaded.task.boosting {
        None => (0, 0),
        Some(Boosting { predictors: Predictors::Columns, local_rounds, .. }) => (local_rounds, features),
        Some(Boosting { predictors: Predictors::Stumps(count), local_rounds, .. }) => {
            (local_rounds, features.max(count as usize))
        }
    };
    let wakes = loaded.task.run.wakes_per_agent as f64;
    let points = loaded.problem.data.len() as f64;
    points * (predictors as f64 * (2.0 * f64::from(rounds) + 4.0 * wakes) + features as f64 * 4.0 * wakes)
}
