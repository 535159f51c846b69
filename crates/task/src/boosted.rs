//! The same task with what base predictors say in place of the points, and back.

use crate::algorithms::{coordinate_descent, frank_wolfe};
use crate::loaded::{Loaded, Plain};
use crate::task::{Boosting, Description, GraphSource, Predictors, Task};
use sottovoce_algorithms::Problem;
use sottovoce_algorithms::stumps::{Stumps, range_of};
use std::sync::Arc;

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
    if !task.algorithm.boosts {
        set_algorithm(&mut task, &frank_wolfe::DESCRIPTION);
    }
    let problem = Problem { data, trade_off: task.model.trade_off, ..linear.problem };
    Loaded { task, problem, test, feature_names, plain: Some(Arc::new(plain)), ..linear }
}

/// The same task with linear models over the points themselves.
pub fn linear(loaded: &Loaded) -> Loaded {
    let Some(plain) = &loaded.plain else { return loaded.clone() };
    let Plain { train, test, feature_names } = (**plain).clone();
    let mut task = loaded.task.clone();
    // Its tolerance is about gaps.
    task.run.tolerance = None;
    set_algorithm(&mut task, &coordinate_descent::DESCRIPTION);
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
        reach: None,
        plan: None,
        records: None,
        void: loaded.void,
        known: loaded.known.clone(),
        plain: None,
    }
}

/// Models of the other kind have losses on another scale: where the graph is learned, they take the defaults of their kind.
fn set_algorithm(task: &mut Task, algorithm: &'static Description) {
    task.algorithm = algorithm;
    if let (GraphSource::Learned(learned), Some(defaults)) = (&mut task.graph.source, algorithm.learned_graph) {
        learned.sparsity = defaults.sparsity;
        task.model.trade_off = defaults.trade_off;
    }
}
