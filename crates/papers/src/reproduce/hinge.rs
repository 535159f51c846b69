//! The slides' comparison of model propagation (MP) and collaborative learning (CL) with the hinge loss, without privacy.
//!
//! Differs from the slides: the hinge is smoothed over a width of 0.5, so that coordinate descent applies; and model propagation is
//! its limit, by the closed form that the gossip algorithm converges to.

use super::bench::Bench;
use super::linear::{Instance, Size};
use super::outcome::{Claim, ExperimentOutcome, Labelled, Plot, Point, Series, Spread, Table};
use super::tuning::{best, half_decades};
use serde::Deserialize;
use sottovoce_algorithms::Loss;
use sottovoce_algorithms::reference::propagation::closed_form;
use sottovoce_core::PeerId;
use sottovoce_run::train::Halt;
use sottovoce_task::task::Normalize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Parameters {
    size: Size,
    dimensions: Vec<usize>,
    seeds: Vec<u64>,
    validation_seeds: Vec<u64>,
    wakes_per_agent: u64,
    bin_width: usize,
}

const NAMES: [&str; 3] = ["local", "model propagation", "collaborative learning"];

fn drawn(size: Size, dimension: usize, seed: u64, trade_off: f64) -> Instance {
    Instance::new(size, dimension, seed, Normalize::None, Loss::SmoothedHinge).with_trade_off(trade_off)
}

/// The dimension, and the trade-offs of propagation and of collaborative learning that validation chose for it.
type Chosen = (usize, f64, f64);

/// Chooses trade-offs on instances of their own.
fn tuned(bench: &mut Bench<'_>, parameters: &Parameters) -> Result<Vec<Chosen>, Halt> {
    let Parameters { size, dimensions, validation_seeds, wakes_per_agent, .. } = parameters;
    let grid = half_decades();
    let mut items = Vec::new();
    for &dimension in dimensions {
        for &trade_off in &grid {
            items.extend(validation_seeds.iter().map(|&seed| (dimension, trade_off, seed)));
        }
    }
    let tried = bench.each("trade-off", &items, |&(dimension, trade_off, seed)| {
        let instance = drawn(*size, dimension, seed, trade_off);
        let propagated = closed_form(&instance.problem, &instance.local());
        (instance.accuracy(&propagated), instance.accuracy(&instance.descend(*wakes_per_agent)))
    })?;
    let chosen = |dimension: usize, what: fn(&(f64, f64)) -> f64| {
        let of = |trade_off: f64| {
            let fits = items.iter().zip(&tried).filter(|(item, _)| (item.0, item.1) == (dimension, trade_off));
            fits.map(|(_, found)| what(found)).collect()
        };
        best(&grid, of).0
    };
    Ok(dimensions.iter().map(|&p| (p, chosen(p, |found| found.0), chosen(p, |found| found.1))).collect())
}

/// One curve for each of the three kinds of models.
fn series(points: impl Fn(usize) -> Vec<Point>) -> Vec<Series> {
    let one = |k: usize| Series { name: NAMES[k].to_owned(), ink: [4, 1, 0][k], dashed: k == 0, points: points(k) };
    (0..3).map(one).collect()
}

/// Who is above whom, where it is closest.
fn claims(by_dimension: &[Series], by_size: &[Series]) -> Vec<Claim> {
    let mut claims = Vec::new();
    let mut order = |id: &str, says: &str, above: &Series, below: &Series, at: &str| {
        let differences = above.points.iter().zip(&below.points).map(|(a, b)| (a.mean - b.mean, a.x));
        let (value, place) = differences.min_by(|a, b| a.0.total_cmp(&b.0)).expect("there are points");
        let (end, other) = (above.points[above.points.len() - 1], below.points[below.points.len() - 1]);
        let ours = format!(
            "{value:+.3} at the worst ({at} {place}); {:.3} ± {:.3} against {:.3} ± {:.3} at the last",
            end.mean, end.spread, other.mean, other.spread
        );
        claims.push(Claim::new(id, says, "by a significant margin", ours, value, value > 0.0));
    };
    order("mp-above-local", "MP beats local models at every dimension", &by_dimension[1], &by_dimension[0], "p =");
    order("cl-above-mp", "CL beats MP at every dimension", &by_dimension[2], &by_dimension[1], "p =");
    order("cl-above-local-by-size", "CL beats local models at every size", &by_size[2], &by_size[0], "around");
    order("cl-above-mp-by-size", "CL beats MP at every size", &by_size[2], &by_size[1], "around");
    claims
}

/// Runs it.
pub fn run(bench: &mut Bench<'_>) -> Result<ExperimentOutcome, Halt> {
    let parameters: Parameters = bench.parameters();
    let trade_offs = tuned(bench, &parameters)?;
    let Parameters { size, dimensions, seeds, wakes_per_agent, bin_width, .. } = parameters;
    let items: Vec<(Chosen, u64)> =
        trade_offs.iter().flat_map(|&pair| seeds.iter().map(move |&seed| (pair, seed))).collect();
    let found = bench.each("fresh instances", &items, |&((dimension, propagation, descent), seed)| {
        let instance = drawn(size, dimension, seed, propagation);
        let local = instance.local();
        let propagated = instance.accuracies(&closed_form(&instance.problem, &local));
        let learned = instance.accuracies(&instance.with_trade_off(descent).descend(wakes_per_agent));
        let sizes: Vec<usize> = (0..size.agents as u32).map(|id| instance.problem.data.size(PeerId(id))).collect();
        (sizes, [instance.accuracies(&local), propagated, learned])
    })?;
    let of = |p: usize| {
        let runs = items.iter().zip(&found).filter(move |(item, _)| item.0.0 == p);
        runs.map(|(_, found)| found)
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let spread = |p: usize, k: usize| Spread::of(&of(p).map(|(_, models)| mean(&models[k])).collect::<Vec<_>>());
    let by_dimension = series(|k| dimensions.iter().map(|&p| spread(p, k).at(p as f64)).collect());
    let last = dimensions[dimensions.len() - 1];
    let bins: Vec<usize> = (10..100).step_by(bin_width).collect();
    let in_bin = |low: usize, k: usize| {
        let of_run = |(sizes, models): &(Vec<usize>, [Vec<f64>; 3])| {
            let inside = models[k].iter().zip(sizes).filter(|(_, m)| (low..low + bin_width).contains(*m));
            let inside: Vec<f64> = inside.map(|(value, _)| *value).collect();
            (!inside.is_empty()).then(|| mean(&inside))
        };
        let means: Vec<f64> = of(last).filter_map(of_run).collect();
        (!means.is_empty()).then(|| Spread::of(&means))
    };
    let middle = |low: usize| low as f64 + bin_width as f64 / 2.0;
    let by_size = series(|k| bins.iter().filter_map(|&low| Some(in_bin(low, k)?.at(middle(low)))).collect());
    let caption = format!("Smoothed hinge, no privacy. Mean and standard deviation of {} runs.", seeds.len());
    let plot = |name: &str, title: String, x: &str, series: &[Series]| Plot {
        name: name.to_owned(),
        title,
        caption: caption.clone(),
        x: Labelled::linear(x),
        y: Labelled::linear("test accuracy"),
        series: series.to_vec(),
    };
    let plots = vec![
        plot("accuracy-by-dimension", "Slides: accuracy by dimension, hinge".to_owned(), "dimension p", &by_dimension),
        plot(
            "accuracy-by-size",
            format!("Slides: accuracy by size, p = {last}"),
            "training points of the agent, m_i",
            &by_size,
        ),
    ];
    let columns = ["p", "local", "model propagation", "trade-off", "collaborative learning", "trade-off"];
    let row = |&(p, propagation, descent): &(usize, f64, f64)| {
        let cells = [0, 1, 2].map(|k| spread(p, k).to_string());
        let [local, mp, cl] = cells;
        vec![p.to_string(), local, mp, format!("{propagation:.4}"), cl, format!("{descent:.4}")]
    };
    let table = Table {
        name: "accuracy".to_owned(),
        caption: "Accuracy by dimension, with the trade-offs that validation chose".to_owned(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: trade_offs.iter().map(row).collect(),
    };
    Ok(ExperimentOutcome { tables: vec![table], plots, claims: claims(&by_dimension, &by_size) })
}
