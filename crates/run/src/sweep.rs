//! What the same private task would give with another budget, and with other numbers of updates.
//!
//! Each point is one more run in the simulator, from the same seed. A sweep looks at the private data again and again, and
//! nobody is charged for that: it is for whoever may see all of the data anyway, and never for choosing the settings of a real
//! run on the same data.

use crate::score::mean_and_deviation;
use crate::train::{Halt, Trained, train};
use sottovoce_algorithms::reference::local::DENSE_DIMENSION_MAX;
use sottovoce_privacy::Event;
use sottovoce_report::training::{Point, Sweep};
use sottovoce_task::load::Loaded;
use sottovoce_task::plan;
use sottovoce_task::task::{Leaves, Privacy, Warm};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Budgets, relative to the task's own. A warm start keeps its share.
pub const EPSILON_FACTORS: [f64; 7] = [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];

/// Numbers of updates are 1, 2, 5, 10, .., up to this or twice the task's own.
const UPDATES_MAX: u64 = 50;

/// A sweep that takes more multiplications than this, about ten seconds, is left out. It is counted from sizes alone, so that
/// the same task has the same report on every machine.
pub const PRODUCTS_MAX: f64 = 1e10;

/// Newton steps that a home model takes, about.
const NEWTON_STEPS: f64 = 8.0;

/// The numbers of updates to try, in order.
pub fn updates_to_try(own: u64) -> Vec<u64> {
    let most = UPDATES_MAX.max(own.saturating_mul(2));
    let decades = std::iter::successors(Some(1u64), |unit| unit.checked_mul(10));
    let mut counts: Vec<u64> = decades
        .flat_map(|unit| [1, 2, 5].map(|digit| unit.saturating_mul(digit)))
        .take_while(|&count| count <= most && count <= u64::from(u32::MAX))
        .chain([own])
        .collect();
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// The settings to try: each with its place on its axis.
fn settings(loaded: &Loaded, privacy: &Privacy) -> [Vec<(f64, Privacy)>; 2] {
    let with_epsilon = |factor: f64| {
        let warm = privacy.warm.map(|warm| Warm { epsilon: factor * warm.epsilon, ..warm });
        let epsilon = factor * privacy.epsilon;
        (epsilon, Privacy { epsilon, warm, ..*privacy })
    };
    let with_updates = |updates: u64| (updates as f64, Privacy { updates, ..*privacy });
    // Where the graph is learned, turns have as many wakes as the task's own number of updates needs.
    let has_updates = loaded.task.algorithm.leaves == Leaves::Updates && plan::turns(&loaded.task).is_none();
    let updates = if has_updates { updates_to_try(privacy.updates) } else { Vec::new() };
    // Where no closed form accounts for a plan, making one takes about a second: every other setting will do.
    let exact = loaded
        .plan
        .iter()
        .flat_map(|plan| plan.steps().iter().chain(plan.asides()))
        .all(|step| matches!(step, Event::Gaussian { .. }));
    let every = if exact { 1 } else { 2 };
    let thinned = |settings: Vec<(f64, Privacy)>| {
        let kept = settings.into_iter().enumerate().filter(|(k, (_, other))| k % every == 0 || other == privacy);
        kept.map(|(_, setting)| setting).collect::<Vec<_>>()
    };
    [EPSILON_FACTORS.map(with_epsilon).to_vec(), updates.into_iter().map(with_updates).collect()].map(thinned)
}

/// How many multiplications a run with these settings takes, about: gradients, measurements, and Newton's method for each home
/// model.
fn products(loaded: &Loaded, privacy: &Privacy) -> f64 {
    let (agents, dimension) = (loaded.problem.agents() as f64, loaded.problem.dimension() as f64);
    let numbers = loaded.problem.data.len() as f64 * dimension;
    let dense = dimension.min(DENSE_DIMENSION_MAX as f64);
    let edges = loaded.problem.graph.edge_count() as f64;
    let passes = numbers * (2.0 * privacy.updates as f64 + 20.0);
    let listening = 2.0 * edges * dimension * privacy.updates as f64;
    let home = if privacy.home.is_some() { NEWTON_STEPS * dense * (numbers + agents * dense * dense) } else { 0.0 };
    passes + listening + home
}

/// Runs a private task again with other budgets and other numbers of updates. `own` is what came of it with its own; `watch` is
/// told how many runs are done and how many there will be, and stops by breaking.
pub fn sweep(
    loaded: &Loaded,
    own: &Trained,
    threads: usize,
    watch: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Sweep, Halt> {
    let Some(privacy) = loaded.task.privacy else { return Ok(Sweep::skipped("The task is not private.")) };
    if loaded.task.algorithm.leaves == Leaves::Nothing {
        return Ok(Sweep::skipped("Nothing leaves any agent, so there is nothing to vary."));
    }
    if loaded.test.is_none() {
        return Ok(Sweep::skipped("There are no test points, so there is no score to show."));
    }
    let settings = settings(loaded, &privacy);
    let work: f64 = settings.iter().flatten().map(|(_, privacy)| products(loaded, privacy)).sum();
    if work > PRODUCTS_MAX {
        return Ok(Sweep::skipped(format!(
            "It would take about {work:.0e} multiplications, and the report stops at {PRODUCTS_MAX:.0e}."
        )));
    }
    let total = settings.iter().flatten().count() as u64;
    let mut other = loaded.clone();
    let mut done = 0;
    let mut found = [Vec::new(), Vec::new()];
    for (points, settings) in found.iter_mut().zip(settings) {
        for (at, setting) in settings {
            let is_own = setting == privacy;
            let other = if is_own { None } else { run_with(&mut other, loaded, setting, threads)? };
            if let Some(run) = if is_own { Some(own) } else { other.as_ref() } {
                let mean = |scores: &[Option<f64>]| mean_and_deviation(scores).map(|(mean, _)| mean);
                let home = run.home.as_ref().and_then(|home| mean(&home.scores));
                points.push(Point { at, own: is_own, broadcast: mean(&run.scores), home });
            }
            done += 1;
            if watch(done, total).is_break() {
                return Err(Halt::Interrupted);
            }
        }
    }
    let [epsilons, updates] = found;
    Ok(Sweep { epsilons, updates, skipped: None })
}

/// One run with another setting; none where no noise keeps its budget.
fn run_with(other: &mut Loaded, loaded: &Loaded, setting: Privacy, threads: usize) -> Result<Option<Trained>, Halt> {
    // As many wakes as the task's own, and at least as many as such a task has by default. Where the graph is learned, these are
    // the turns of the plan.
    let wakes = 20 + 2 * setting.updates + setting.warm.map_or(0, |warm| u64::from(warm.start.wakes));
    let own = loaded.task.run.wakes_per_agent;
    other.task.run.wakes_per_agent = if plan::turns(&loaded.task).is_some() { own } else { own.max(wakes) };
    other.task.privacy = Some(setting);
    let Ok(plan) = plan::plan(&other.task, &setting, &other.problem) else { return Ok(None) };
    other.plan = Some(Arc::new(plan));
    train(other, loaded.task.algorithm, threads, &mut |_| ControlFlow::Continue(())).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_updates_surround_the_tasks_own() {
        assert_eq!(updates_to_try(1), [1, 2, 5, 10, 20, 50]);
        assert_eq!(updates_to_try(7), [1, 2, 5, 7, 10, 20, 50]);
        assert_eq!(updates_to_try(60), [1, 2, 5, 10, 20, 50, 60, 100]);
        let most = u64::from(u32::MAX);
        assert!(updates_to_try(most).contains(&most));
    }

    #[test]
    fn the_tasks_own_budget_is_among_those_that_are_tried() {
        assert!(EPSILON_FACTORS.contains(&1.0) && EPSILON_FACTORS.is_sorted());
    }
}
