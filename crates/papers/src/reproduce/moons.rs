//! Figure 2.2 of the thesis: boosting on turned moons, who works with whom being learned.

use super::bench::Bench;
use super::outcome::{Claim, ExperimentOutcome, Labelled, Plot, Point, Series, Spread, Table};
use serde::{Deserialize, Serialize};
use sottovoce_run::baselines::baselines;
use sottovoce_run::learned::within_and_between;
use sottovoce_run::score::mean_and_deviation;
use sottovoce_run::train::{Halt, Trained, train};
use sottovoce_task::error::Mistake;
use sottovoce_task::generate::moons::{MoonsOptions, write};
use sottovoce_task::load::load;
use sottovoce_task::task::Task;
use std::ops::ControlFlow;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Parameters {
    seeds: Vec<u64>,
}

/// The models that are compared, as the table of a run names them.
const METHODS: [&str; 4] = ["local boosting", "global boosting", "boosting, learned graph", "boosting, oracle graph"];

/// One seed.
#[derive(Serialize, Deserialize)]
struct Found {
    /// As in [`METHODS`].
    accuracies: [f64; 4],
    /// Mean learned weight within groups over that between them.
    contrast: f64,
}

/// Runs it.
pub fn run(bench: &mut Bench<'_>) -> Result<ExperimentOutcome, Halt> {
    let Parameters { seeds } = bench.parameters();
    let found = bench.each("seeds", &seeds, |&seed| one(seed).map_err(|halt| halt.to_string()))?;
    let found =
        found.into_iter().collect::<Result<Vec<Found>, String>>().map_err(|what| Halt::from(Mistake::new(what)))?;
    let of = |k: usize| Spread::of(&found.iter().map(|one| one.accuracies[k]).collect::<Vec<_>>());
    let contrasts: Vec<f64> = found.iter().map(|one| one.contrast).collect();
    let least = contrasts.iter().copied().fold(f64::INFINITY, f64::min);
    let [local, global, learned, oracle] = [0, 1, 2, 3].map(of);
    let mut outcome = ExperimentOutcome::default();
    let gain = learned.mean - local.mean.max(global.mean);
    outcome.claims.push(Claim::new(
        "learned-above-local-and-global",
        "With a learned graph, boosting beats local and global boosting",
        "better",
        format!("{learned}, against local {local} and global {global}"),
        gain,
        gain > 0.0,
    ));
    let short = oracle.mean - learned.mean;
    outcome.claims.push(Claim::new(
        "oracle-at-least-learned",
        "A known graph is at least as good as a learned one",
        "at least as good",
        format!("{oracle}, against {learned}"),
        short,
        short >= 0.0,
    ));
    outcome.claims.push(Claim::new(
        "weights-within-groups",
        "Learned weights lie within groups: more than five times those between, for each seed",
        "block-diagonal",
        format!("{} times, {least:.1} at least", Spread::of(&contrasts)),
        least,
        least > 5.0,
    ));
    let points = |k: usize| {
        found.iter().zip(1..).map(move |(one, x)| Point { x: f64::from(x), mean: one.accuracies[k], spread: 0.0 })
    };
    outcome.plots.push(Plot {
        name: "accuracy".to_owned(),
        title: "Figure 2.2: boosting on moons".to_owned(),
        caption: "Test accuracy by seed; 0.95 is the most there can be, because 5 of 100 test labels are wrong."
            .to_owned(),
        x: Labelled::linear("seed"),
        y: Labelled::linear("test accuracy"),
        series: (0..METHODS.len())
            .map(|k| Series { name: METHODS[k].to_owned(), ink: k, dashed: k != 2, points: points(k).collect() })
            .collect(),
    });
    let row = |(seed, one): (&u64, &Found)| {
        let accuracies = one.accuracies.iter().map(|accuracy| format!("{accuracy:.3}"));
        [seed.to_string()].into_iter().chain(accuracies).chain([format!("{:.1}", one.contrast)]).collect()
    };
    let columns = ["seed"].into_iter().chain(METHODS).chain(["weights within / between"]).map(str::to_owned).collect();
    let rows = seeds.iter().zip(&found).map(row).collect();
    let caption = "Accuracy and learned weights by seed".to_owned();
    outcome.tables.push(Table { name: "accuracy".to_owned(), caption, columns, rows });
    Ok(outcome)
}

/// A generated task, from its files to its scores.
fn one(seed: u64) -> Result<Found, Halt> {
    let nowhere = |error: std::io::Error| Halt::from(Mistake::new(format!("no temporary folder: {error}")));
    let place = tempfile::tempdir().map_err(nowhere)?;
    let folder = place.path().join("moons");
    write(&MoonsOptions { seed, ..MoonsOptions::default() }, &folder, false)?;
    let loaded = load(&Task::read(&folder.join("task.toml"))?)?;
    let run = train(&loaded, loaded.task.algorithm, 1, &mut |_| ControlFlow::Continue(()))?;
    let beside = baselines(&loaded, 1, true, &mut |_, _| ControlFlow::Continue(()))?;
    let accuracy = |run: &Trained| mean_and_deviation(&run.scores).map_or(0.0, |(mean, _)| mean);
    let of = |name: &str| beside.runs.iter().find(|run| run.name == name).map_or(0.0, accuracy);
    let known = run.graph.as_ref().zip(loaded.known.groups.as_ref());
    let (within, between) =
        known.and_then(|(graph, groups)| within_and_between(graph, &groups.of)).unwrap_or((0.0, 1.0));
    let [local, global, _, oracle] = METHODS;
    Ok(Found { accuracies: [of(local), of(global), accuracy(&run), of(oracle)], contrast: within / between })
}
