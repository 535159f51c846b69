//! Figure 1 of the 2018 paper: coordinate descent and ADMM from local models, by wakes and by vectors sent.
//!
//! Differs from the paper: vectors of an exchange of ADMM are counted in two ways, because paired multipliers need not be sent: 4, as this
//! implementation sends them, and 8, as the literal protocol would. The exchange at the start is left out, as in the paper.

use super::bench::Bench;
use super::calibration::{Calibration, instance};
use super::linear::{Instance, Size};
use super::outcome::{Claim, ExperimentOutcome, Labelled, Plot, Point, Series, Spread, Table};
use super::tuning::{best, trade_offs};
use serde::{Deserialize, Serialize};
use sottovoce_algorithms::personal::admm::{Admm, AdmmConfig, Inner};
use sottovoce_core::Algorithm;
use sottovoce_run::train::Halt;
use sottovoce_sim::Simulation;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Parameters {
    size: Size,
    dimension: usize,
    seeds: Vec<u64>,
    validation_seeds: Vec<u64>,
    wakes_per_agent: u64,
    tuning_wakes: u64,
    inner_steps: usize,
    /// Penalties to try, as multiples of the mean weight of an edge.
    penalties: Vec<f64>,
}

/// A look at a run.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Look {
    wakes: f64,
    vectors: f64,
    objective: f64,
    /// How far the objective is above its minimum, relative to it.
    gap: f64,
    accuracy: f64,
}

/// What is read off a look.
type Read = fn(&Look) -> f64;

/// Coordinate descent for this many times as long as the runs that are shown stands for the minimum.
const MUCH_LONGER: u64 = 5;

/// The calibration whose instances have points as they were drawn, and means of losses.
const PLAIN: Calibration = Calibration::MeanNotDp;

/// Runs it.
pub fn run(bench: &mut Bench<'_>) -> Result<ExperimentOutcome, Halt> {
    let Parameters { size, dimension, seeds, validation_seeds, wakes_per_agent, tuning_wakes, inner_steps, penalties } =
        bench.parameters();
    let trade_off = trade_offs(bench, &[(PLAIN, dimension)], size, &validation_seeds, (tuning_wakes, 0.0))?[0];
    let with_penalty = |instance: &Instance, factor: f64| {
        let weights: Vec<f64> = instance.problem.graph.edges().map(|(_, _, weight)| weight).collect();
        let penalty = factor * weights.iter().sum::<f64>() / weights.len() as f64;
        let config = AdmmConfig { trade_off, penalty, inner: Inner::Gradient { steps: inner_steps } };
        watched(instance, &Admm::new(config).expect("the TOML files are tested"), wakes_per_agent)
    };
    let tried: Vec<(f64, u64)> =
        penalties.iter().flat_map(|&f| validation_seeds.iter().map(move |&s| (f, s))).collect();
    let ends = bench.each("ADMM's penalty", &tried, |&(factor, seed)| {
        let looks = with_penalty(&instance(PLAIN, size, dimension, seed, trade_off), factor);
        looks[looks.len() - 1].objective
    })?;
    // The lowest objective at the end.
    let of =
        |factor: f64| tried.iter().zip(&ends).filter(|(tried, _)| tried.0 == factor).map(|(_, end)| -end).collect();
    let factor = best(&penalties, of).0;
    let items: Vec<(bool, u64)> =
        [false, true].into_iter().flat_map(|admm| seeds.iter().map(move |&s| (admm, s))).collect();
    let runs = bench.each("coordinate descent and ADMM", &items, |&(admm, seed)| {
        let instance = instance(PLAIN, size, dimension, seed, trade_off);
        let mut looks = if admm {
            with_penalty(&instance, factor)
        } else {
            watched(&instance, &instance.descent(), wakes_per_agent)
        };
        let least = instance.objective(&instance.descend(MUCH_LONGER * wakes_per_agent));
        looks.iter_mut().for_each(|look| look.gap = (look.objective - least) / least);
        looks
    })?;
    let (descent, admm) = runs.split_at(seeds.len());
    Ok(outcome(descent, admm, (dimension, trade_off, factor)))
}

/// Runs an algorithm and looks at it now and then.
fn watched<A>(instance: &Instance, algorithm: &A, wakes_per_agent: u64) -> Vec<Look>
where
    A: for<'d> Algorithm<Data<'d> = sottovoce_algorithms::Shard<'d>>,
{
    let agents = instance.problem.agents() as u64;
    let shard = |id| instance.shard(id);
    let mut run = Simulation::start(algorithm, &instance.problem.graph, shard, &instance.settings())
        .expect("an unlimited budget");
    let start = run.counters().vectors_sent;
    let mut looks = Vec::new();
    let mut done = 0;
    loop {
        let models = run.models();
        looks.push(Look {
            wakes: done as f64,
            vectors: (run.counters().vectors_sent - start) as f64,
            objective: instance.objective(&models),
            gap: 0.0,
            accuracy: instance.accuracy(&models),
        });
        if done >= wakes_per_agent * agents {
            return looks;
        }
        let next = (done + done / 5).max(done + agents / 2).min(wakes_per_agent * agents);
        run.advance(next - done);
        done = next;
    }
}

/// Mean and spread over runs of something at each look.
fn curve(runs: &[Vec<Look>], x: Read, y: Read, factor: f64) -> Vec<Point> {
    (1..runs[0].len())
        .map(|k| {
            let xs: Vec<f64> = runs.iter().map(|run| factor * x(&run[k])).collect();
            let ys: Vec<f64> = runs.iter().map(|run| y(&run[k])).collect();
            Spread::of(&ys).at(Spread::of(&xs).mean)
        })
        .collect()
}

/// Of the second curve's points that the first one reaches, the share at which the first one is lower.
fn share_below(first: &[Point], second: &[Point]) -> f64 {
    let (mut below, mut all) = (0.0, 0.0);
    for point in second {
        let Some(k) = first.windows(2).position(|pair| pair[0].x <= point.x && point.x <= pair[1].x) else { continue };
        let (a, b) = (first[k], first[k + 1]);
        let part = if b.x > a.x { (point.x - a.x) / (b.x - a.x) } else { 0.0 };
        below += f64::from(a.mean + part * (b.mean - a.mean) < point.mean);
        all += 1.0;
    }
    if all > 0.0 { below / all } else { 0.0 }
}

fn outcome(descent: &[Vec<Look>], admm: &[Vec<Look>], setting: (usize, f64, f64)) -> ExperimentOutcome {
    let (dimension, trade_off, factor) = setting;
    let (gap, accuracy): (Read, Read) = (|look| look.gap, |look| look.accuracy);
    let (wakes, vectors): (Read, Read) = (|look| look.wakes, |look| look.vectors);
    let series = |name: &str, ink, points| Series { name: name.to_owned(), ink, dashed: ink == 2, points };
    let plot = |name: &str, title: &str, x: Labelled, y: Labelled, series: Vec<Series>| Plot {
        name: name.to_owned(),
        title: title.to_owned(),
        caption: format!(
            "p = {dimension}, trade-off {trade_off:.3}, ADMM with its best penalty ({factor} times the mean weight) and 10 inner steps. \
             Mean and standard deviation of {} runs.",
            descent.len()
        ),
        x,
        y,
        series,
    };
    let mut plots = Vec::new();
    for (name, label, y, log) in
        [("objective", "objective, (Q - Q*) / Q*", gap, true), ("accuracy", "test accuracy", accuracy, false)]
    {
        let axis = |label: &str| if log { Labelled::log(label) } else { Labelled::linear(label) };
        let by_wakes = vec![
            series("coordinate descent", 0, curve(descent, wakes, y, 1.0)),
            series("ADMM", 1, curve(admm, wakes, y, 1.0)),
        ];
        plots.push(plot(
            &format!("{name}-by-wakes"),
            &format!("Figure 1: {label} by wakes"),
            Labelled::log("wakes of all agents (iterations)"),
            axis(label),
            by_wakes,
        ));
        let by_vectors = vec![
            series("coordinate descent", 0, curve(descent, vectors, y, 1.0)),
            series("ADMM, 4 vectors an exchange, as sent", 1, curve(admm, vectors, y, 1.0)),
            series("ADMM, 8 vectors, the literal protocol", 2, curve(admm, vectors, y, 2.0)),
        ];
        plots.push(plot(
            &format!("{name}-by-vectors"),
            &format!("Figure 1: {label} by vectors sent"),
            Labelled::log("vectors sent along edges"),
            axis(label),
            by_vectors,
        ));
    }
    let by = |x, y, factor| (curve(descent, x, y, 1.0), curve(admm, x, y, factor));
    let mut claims = Vec::new();
    let mut share = |id: &str, says: &str, x, factor| {
        let (ours, theirs) = by(x, gap, factor);
        let value = share_below(&ours, &theirs);
        let words = format!("below at {:.0}% of {} looks", 100.0 * value, theirs.len());
        claims.push(Claim::new(id, says, "below throughout", words, value, value == 1.0));
    };
    share("objective-by-wakes", "Per wake, coordinate descent has the lower objective", wakes, 1.0);
    share("objective-by-vectors-8", "Per vector sent, too (ADMM by its literal protocol, 8 vectors)", vectors, 2.0);
    share("objective-by-vectors-4", "Per vector sent, too (ADMM as sent here, 4 vectors)", vectors, 1.0);
    let (ours, theirs) = by(wakes, accuracy, 1.0);
    let last = ours[ours.len() - 1].mean;
    let target = descent[0][0].accuracy + 0.95 * (last - descent[0][0].accuracy);
    let reach = |curve: &[Point]| curve.iter().find(|p| p.mean >= target).map_or(curve[curve.len() - 1].x, |p| p.x);
    let ratio = reach(&theirs) / reach(&ours);
    let words = format!("{ratio:.1} times the wakes to 95% of the gain ({last:.3} at the end)");
    claims.push(Claim::new(
        "accuracy-by-wakes",
        "ADMM needs more wakes for the same accuracy",
        "significantly more",
        words,
        ratio,
        ratio > 1.0,
    ));
    ExperimentOutcome { tables: vec![table(descent, admm)], plots, claims }
}

fn table(descent: &[Vec<Look>], admm: &[Vec<Look>]) -> Table {
    let columns =
        ["wakes", "CD objective", "CD accuracy", "CD vectors", "ADMM objective", "ADMM accuracy", "ADMM vectors"];
    let digits = |runs: &[Vec<Look>], k: usize, of: Read, decimals: usize| {
        let spread = Spread::of(&runs.iter().map(|run| of(&run[k])).collect::<Vec<_>>());
        format!("{:.decimals$} ± {:.decimals$}", spread.mean, spread.deviation)
    };
    let row = |k: usize| {
        let mut row = vec![format!("{}", descent[0][k].wakes)];
        for runs in [descent, admm] {
            row.push(digits(runs, k, |look| look.objective, 3));
            row.push(digits(runs, k, |look| look.accuracy, 4));
            row.push(digits(runs, k, |look| look.vectors, 0));
        }
        row
    };
    let rows = (0..descent[0].len()).map(row).collect();
    let caption = "Objective, accuracy and vectors by wakes".to_owned();
    Table { name: "curves".to_owned(), caption, columns: columns.map(str::to_owned).to_vec(), rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_below_reads_between_the_looks() {
        let point = |x: f64, mean: f64| Point { x, mean, spread: 0.0 };
        let first = [point(0.0, 10.0), point(10.0, 0.0)];
        assert_eq!(share_below(&first, &[point(5.0, 5.1), point(5.0, 4.9), point(11.0, 0.0)]), 0.5);
        assert_eq!(share_below(&first, &[point(20.0, 5.1)]), 0.0);
    }
}
