//! Figure 4 of the 2018 paper's supplement: local differential privacy. Every agent perturbs its points once, and learns alone from the copy.

use super::bench::Bench;
use super::linear::{Instance, Size};
use super::outcome::{Claim, ExperimentOutcome, Labelled, Plot, Series, Spread, Table};
use serde::Deserialize;
use sottovoce_algorithms::Loss;
use sottovoce_algorithms::personal::baseline::{InputPerturbation, InputPerturbationConfig};
use sottovoce_core::PeerId;
use sottovoce_privacy::{Event, Idealized, Plan, Simulated, Sum};
use sottovoce_run::private::gate_with;
use sottovoce_run::train::Halt;
use sottovoce_sim::Simulation;
use sottovoce_task::task::Normalize;
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Parameters {
    size: Size,
    dimensions: Vec<usize>,
    seeds: Vec<u64>,
    epsilons: Vec<f64>,
}

/// Accuracy that counts as near chance.
const NEAR_CHANCE: f64 = 0.6;

/// Runs it.
pub fn run(bench: &mut Bench<'_>) -> Result<ExperimentOutcome, Halt> {
    let Parameters { size, dimensions, seeds, epsilons } = bench.parameters();
    let mut items = Vec::new();
    for sound in [false, true] {
        for &dimension in &dimensions {
            for &epsilon in &epsilons {
                items.extend(seeds.iter().map(|&seed| (sound, dimension, epsilon, seed)));
            }
        }
    }
    let found = bench.each("noisy copies", &items, |&(sound, dimension, epsilon, seed)| {
        perturbed(size, dimension, seed, epsilon, sound)
    })?;
    let baselines: Vec<(usize, u64)> = dimensions.iter().flat_map(|&p| seeds.iter().map(move |&s| (p, s))).collect();
    let local = bench.each("local", &baselines, |&(dimension, seed)| {
        let instance = Instance::new(size, dimension, seed, Normalize::None, Loss::Logistic);
        instance.accuracy(&instance.local())
    })?;
    let spread = |sound: bool, dimension: usize, epsilon: f64| {
        let fits = |item: &(bool, usize, f64, u64)| (item.0, item.1, item.2) == (sound, dimension, epsilon);
        Spread::of(&items.iter().zip(&found).filter(|(item, _)| fits(item)).map(|(_, x)| *x).collect::<Vec<_>>())
    };
    let local = |dimension: usize| {
        let of_it = baselines.iter().zip(&local).filter(|(item, _)| item.0 == dimension);
        Spread::of(&of_it.map(|(_, x)| *x).collect::<Vec<_>>())
    };
    let mut outcome = ExperimentOutcome::default();
    for sound in [false, true] {
        let label = if sound { "sound" } else { "noise for one coordinate (not DP)" };
        let mut series: Vec<Series> = Vec::new();
        for (ink, &epsilon) in epsilons.iter().enumerate() {
            let points = dimensions.iter().map(|&p| spread(sound, p, epsilon).at(p as f64)).collect();
            series.push(Series { name: format!("ε = {epsilon}"), ink, dashed: !sound, points });
        }
        let points = dimensions.iter().map(|&p| local(p).at(p as f64)).collect();
        series.push(Series { name: "local, exact points".to_owned(), ink: 4, dashed: true, points });
        let slug = if sound { "sound" } else { "not-dp" };
        outcome.plots.push(Plot {
            name: format!("accuracy-{slug}"),
            title: format!("Figure 4: local DP, {label}"),
            caption: format!(
                "Test accuracy of models learned from noisy copies of the points. Mean and standard deviation of {} runs.",
                seeds.len()
            ),
            x: Labelled::linear("dimension p"),
            y: Labelled::linear("test accuracy"),
            series,
        });
        let all = dimensions.iter().flat_map(|&p| epsilons.iter().map(move |&e| (p, e)));
        let best = all.map(|(p, e)| (spread(sound, p, e), p, e)).max_by(|a, b| a.0.mean.total_cmp(&b.0.mean));
        let (best, p, e) = best.expect("there are dimensions and budgets");
        outcome.claims.push(Claim::new(
            &format!("near-chance-{slug}"),
            &format!("Models learned from noisy copies are near chance: {label}"),
            "very inaccurate",
            format!("{best} at the best (p = {p}, epsilon = {e}); local {}", local(p)),
            best.mean,
            best.mean < NEAR_CHANCE,
        ));
    }
    let columns = ["p", "calibration", "epsilon", "accuracy", "local"].map(str::to_owned).to_vec();
    let mut rows = Vec::new();
    for sound in [false, true] {
        for &p in &dimensions {
            for &epsilon in &epsilons {
                let label = if sound { "sound" } else { "noise for one coordinate (not DP)" };
                let (value, local) = (spread(sound, p, epsilon).to_string(), local(p).to_string());
                rows.push(vec![p.to_string(), label.to_owned(), epsilon.to_string(), value, local]);
            }
        }
    }
    let caption = "Accuracy of models learned from noisy copies".to_owned();
    outcome.tables.push(Table { name: "accuracy".to_owned(), caption, columns, rows });
    Ok(outcome)
}

/// The accuracy of models learned from copies with Laplace noise on features and randomized labels, half of epsilon each.
///
/// Sound: points scaled to |x|_1 <= 1, so that a record moves by at most 2. Not DP: points as drawn, of L1 norm up to s p, with noise as
/// if they moved by at most 2 s: the noise that one coordinate needs. The plan says what that honestly costs.
fn perturbed(size: Size, dimension: usize, seed: u64, epsilon: f64, sound: bool) -> f64 {
    let (normalize, bound, slip) = match sound {
        true => (Normalize::L1, 1.0, 1.0),
        false => (Normalize::None, size.half_width * dimension as f64, dimension as f64),
    };
    let instance = Instance::new(size, dimension, seed, normalize, Loss::Logistic);
    let steps = vec![
        Event::Laplace { noise_multiplier: 2.0 / (epsilon * slip) },
        Event::RandomizedResponse { epsilon: epsilon / 2.0 },
    ];
    let plan = Arc::new(Plan::new(steps, f64::MAX, 0.0, &Sum).expect("any finite cost is within this budget"));
    let config = InputPerturbationConfig { dimension, loss: Loss::Logistic, feature_bound: bound };
    let algorithm = InputPerturbation::new(config).expect("a loss for classes");
    let problem = &instance.problem;
    let gates = |id: PeerId| gate_with(problem, &plan, id, Simulated::Idealized(Idealized::new(seed, id.0)));
    let shard = |id| problem.shard(id);
    let run = Simulation::start_behind(gates, &algorithm, &problem.graph, shard, &instance.settings())
        .expect("the plan holds what agents release as they enter");
    instance.accuracy(&run.models())
}
