//! Figure 2(c) of the 2018 paper (figure 2.1a of the thesis): final accuracy by dimension and budget, after a private warm start.

use super::bench::Bench;
use super::calibration::{Calibration, Warm, honest, instance};
use super::linear::Size;
use super::outcome::{Claim, ExperimentOutcome, Labelled, Plot, Point, Series, Spread, Table};
use super::tuning::{Grid, Tuned, trade_offs, tuned};
use serde::Deserialize;
use sottovoce_run::train::Halt;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Parameters {
    size: Size,
    dimensions: Vec<usize>,
    seeds: Vec<u64>,
    validation_seeds: Vec<u64>,
    tuning_wakes: u64,
    sum_trade_off: f64,
    delta: f64,
    epsilons: Vec<f64>,
    updates: Vec<u64>,
    calibrations: Vec<Calibration>,
    warm_epsilon: f64,
    warm: Warm,
}

/// Agents with the fewest and the most points, for whom honest epsilons are shown.
const POINTS: [usize; 2] = [10, 100];

/// Mean accuracies of local and of non-private models, on points as a calibration scales them: by dimension, by seed.
struct Baselines {
    items: Vec<(Calibration, usize, f64, u64)>,
    found: Vec<(f64, f64)>,
}

impl Baselines {
    fn of(&self, calibration: Calibration, dimension: usize, what: fn(&(f64, f64)) -> f64) -> Spread {
        let fits =
            |item: &&((Calibration, usize, f64, u64), (f64, f64))| (item.0.0, item.0.1) == (calibration, dimension);
        let pairs: Vec<_> = self.items.iter().copied().zip(self.found.iter().copied()).collect();
        Spread::of(&pairs.iter().filter(fits).map(|item| what(&item.1)).collect::<Vec<_>>())
    }

    fn local(&self, calibration: Calibration, dimension: usize) -> Spread {
        self.of(calibration, dimension, |found| found.0)
    }

    fn together(&self, calibration: Calibration, dimension: usize) -> Spread {
        self.of(calibration, dimension, |found| found.1)
    }
}

/// Mean accuracy over agents, by seed.
fn by_seed(accuracies: &[Vec<f64>]) -> Spread {
    Spread::of(&accuracies.iter().map(|a| a.iter().sum::<f64>() / a.len() as f64).collect::<Vec<_>>())
}

/// Runs it.
pub fn run(bench: &mut Bench<'_>) -> Result<ExperimentOutcome, Halt> {
    let parameters: Parameters = bench.parameters();
    let Parameters { size, tuning_wakes, sum_trade_off, delta, warm, warm_epsilon, .. } = parameters;
    let (kinds, dimensions) = (&parameters.calibrations[..], &parameters.dimensions[..]);
    let pairs: Vec<_> = kinds.iter().flat_map(|&kind| dimensions.iter().map(move |&p| (kind, p))).collect();
    let chosen = trade_offs(bench, &pairs, size, &parameters.validation_seeds, (tuning_wakes, sum_trade_off))?;
    let grid = Grid {
        calibrations: kinds,
        dimensions,
        epsilons: &parameters.epsilons,
        warm_epsilon,
        updates: &parameters.updates,
        validation_seeds: &parameters.validation_seeds,
        seeds: &parameters.seeds,
    };
    let runs = tuned(bench, &grid, &chosen, (size, delta, warm))?;
    let items: Vec<(Calibration, usize, f64, u64)> = pairs
        .iter()
        .zip(&chosen)
        .flat_map(|(&(kind, p), &trade_off)| parameters.seeds.iter().map(move |&seed| (kind, p, trade_off, seed)))
        .collect();
    let found = bench.each("local and not private", &items, |&(kind, p, trade_off, seed)| {
        let instance = instance(kind, size, p, seed, trade_off);
        (instance.accuracy(&instance.local()), instance.accuracy(&instance.descend(tuning_wakes)))
    })?;
    let baselines = Baselines { items, found };
    let honest_cases: Vec<(usize, usize)> = runs
        .iter()
        .enumerate()
        .filter(|(_, run)| !run.calibration.is_sound())
        .flat_map(|(k, _)| POINTS.map(|m| (k, m)))
        .collect();
    let honest_found = bench.each("honest epsilons", &honest_cases, |&(k, m)| {
        honest(runs[k].calibration, (runs[k].dimension, m), size, runs[k].spending, delta)
    })?;
    let mut outcome = ExperimentOutcome::default();
    outcome.tables.push(accuracy_table(&runs, &baselines));
    outcome.tables.push(honest_table(&runs, &honest_cases, &honest_found));
    for &kind in kinds {
        outcome.plots.extend(plots(&parameters, kind, &runs, &baselines));
    }
    claims(&mut outcome.claims, &parameters, &runs, &baselines);
    honest_claim(&mut outcome.claims, &runs, &honest_cases, &honest_found);
    Ok(outcome)
}

fn curve(runs: &[Tuned], kind: Calibration, epsilon: f64, home: bool) -> Vec<(usize, Spread)> {
    let fits = |run: &&Tuned| run.calibration == kind && run.spending.epsilon == epsilon;
    let of = |run: &Tuned| {
        let spread = if home { by_seed(&run.home.as_ref()?.1) } else { by_seed(&run.broadcast) };
        Some((run.dimension, spread))
    };
    runs.iter().filter(fits).filter_map(of).collect()
}

fn points(curve: &[(usize, Spread)]) -> Vec<Point> {
    curve.iter().map(|(p, spread)| spread.at(*p as f64)).collect()
}

fn plots(parameters: &Parameters, kind: Calibration, runs: &[Tuned], baselines: &Baselines) -> Vec<Plot> {
    let level =
        |of: &dyn Fn(usize) -> Spread| points(&parameters.dimensions.iter().map(|&p| (p, of(p))).collect::<Vec<_>>());
    let plot = |home: bool| {
        let mut series = vec![Series {
            name: "not private".to_owned(),
            ink: 5,
            dashed: true,
            points: level(&|p| baselines.together(kind, p)),
        }];
        for (k, &epsilon) in parameters.epsilons.iter().enumerate().rev() {
            let name = format!("ε = {:.2}", epsilon + parameters.warm_epsilon);
            let points = points(&curve(runs, kind, epsilon, home));
            series.push(Series { name, ink: k, dashed: !kind.is_sound(), points });
        }
        let local = level(&|p| baselines.local(kind, p));
        series.push(Series { name: "local".to_owned(), ink: 4, dashed: true, points: local });
        let what = if home { "home models" } else { "broadcast models" };
        Plot {
            name: format!("accuracy-{}{}", kind.slug(), if home { "-home" } else { "" }),
            title: format!("Figure 2(c): {what}, {}", kind.label()),
            caption: format!(
                "Test accuracy of {what} by dimension; the number of updates is tuned on other instances. Mean and standard deviation \
                 of {} runs.",
                parameters.seeds.len()
            ),
            x: Labelled::linear("dimension p"),
            y: Labelled::linear("test accuracy"),
            series,
        }
    };
    if kind.is_sound() { vec![plot(false), plot(true)] } else { vec![plot(false)] }
}

/// The smallest difference of two curves over the dimensions, and where.
fn least(above: &[(usize, Spread)], below: &dyn Fn(usize) -> Spread) -> (f64, usize) {
    let differences = above.iter().map(|(p, spread)| (spread.mean - below(*p).mean, *p));
    differences.min_by(|a, b| a.0.total_cmp(&b.0)).expect("there are dimensions")
}

fn claims(claims: &mut Vec<Claim>, parameters: &Parameters, runs: &[Tuned], baselines: &Baselines) {
    let dimensions = &parameters.dimensions;
    let plain = Calibration::MeanNotDp;
    let together: Vec<_> = dimensions.iter().map(|&p| (p, baselines.together(plain, p))).collect();
    let (value, at) = least(&together, &|p| baselines.local(plain, p));
    let last = dimensions[dimensions.len() - 1];
    claims.push(Claim::new(
        "together-above-local",
        "Without privacy, learning together is better than alone at every dimension",
        "far above at all p",
        format!(
            "{value:+.3} or more (at p = {at}); at p = {last} {} against {}",
            baselines.together(plain, last),
            baselines.local(plain, last)
        ),
        value,
        value > 0.0,
    ));
    let (smallest, largest) = (parameters.epsilons[0], parameters.epsilons[parameters.epsilons.len() - 1]);
    let total = |epsilon: f64| format!("{:.2}", epsilon + parameters.warm_epsilon);
    for &kind in &parameters.calibrations {
        let (slug, label) = (kind.slug(), kind.label());
        let (value, at) = least(&curve(runs, kind, smallest, false), &|p| baselines.local(kind, p));
        claims.push(Claim::new(
            &format!("smallest-budget-above-local-{slug}"),
            &format!("At epsilon = {} models beat local ones at every dimension: {label}", total(smallest)),
            "significantly above at all p",
            format!("{value:+.3} at the worst, p = {at}"),
            value,
            value > 0.0,
        ));
        let pair = |pair: &[f64]| {
            let lower = curve(runs, kind, pair[0], false);
            let of = |p: usize| lower.iter().find(|(q, _)| *q == p).expect("the same dimensions").1;
            least(&curve(runs, kind, pair[1], false), &of)
        };
        let order = parameters.epsilons.windows(2).map(pair).min_by(|a, b| a.0.total_cmp(&b.0));
        let (value, at) = order.expect("two budgets at least");
        claims.push(Claim::new(
            &format!("larger-budgets-above-{slug}"),
            &format!("A larger budget is better at every dimension: {label}"),
            "in this order at all p",
            format!("{value:+.3} at the worst, p = {at}"),
            value,
            value > 0.0,
        ));
        let of = |p: usize| {
            let found = curve(runs, kind, largest, false);
            found.iter().find(|(q, _)| *q == p).expect("the same dimensions").1
        };
        let together: Vec<_> = dimensions.iter().map(|&p| (p, baselines.together(kind, p))).collect();
        let (value, at) = least(&together, &of);
        claims.push(Claim::new(
            &format!("not-private-above-{slug}"),
            &format!("Without privacy it is better than at epsilon = {} at every dimension: {label}", total(largest)),
            "above at all p",
            format!("{value:+.3} at the worst, p = {at}"),
            value,
            value > 0.0,
        ));
        if kind.is_sound() {
            for (epsilon, which) in [(smallest, "smallest"), (largest, "largest")] {
                let (value, at) = least(&curve(runs, kind, epsilon, true), &|p| baselines.local(kind, p));
                let bar = if which == "smallest" { -0.005 } else { 0.0 };
                claims.push(Claim::new(
                    &format!("{which}-budget-home-{slug}"),
                    &format!("At epsilon = {} home models do not lose against local ones: {label}", total(epsilon)),
                    "no such model",
                    format!("{value:+.3} at the worst, p = {at}"),
                    value,
                    value >= bar,
                ));
            }
        }
    }
}

fn honest_claim(claims: &mut Vec<Claim>, runs: &[Tuned], cases: &[(usize, usize)], found: &[f64]) {
    let over = |(&(k, _), epsilon): (&(usize, usize), &f64)| epsilon / runs[k].spending.total();
    let least = cases.iter().zip(found).map(over).fold(f64::INFINITY, f64::min);
    let most = cases.iter().zip(found).map(over).fold(0.0, f64::max);
    claims.push(Claim::new(
        "claimed-epsilon-is-spent",
        "What the paper's noise spends is what it claims",
        "exactly",
        format!("{least:.1} to {most:.0} times the claim"),
        least,
        most <= 1.0 + 1e-6,
    ));
}

fn accuracy_table(runs: &[Tuned], baselines: &Baselines) -> Table {
    let columns = [
        "p",
        "calibration",
        "epsilon",
        "updates",
        "broadcast",
        "updates, home",
        "home",
        "local, same points",
        "not private, same points",
    ];
    let row = |run: &Tuned| {
        let home = run.home.as_ref();
        vec![
            run.dimension.to_string(),
            run.calibration.label().to_owned(),
            format!("{:.2}", run.spending.total()),
            run.spending.updates.to_string(),
            by_seed(&run.broadcast).to_string(),
            home.map_or(String::new(), |(updates, _)| updates.to_string()),
            home.map_or(String::new(), |(_, accuracies)| by_seed(accuracies).to_string()),
            baselines.local(run.calibration, run.dimension).to_string(),
            baselines.together(run.calibration, run.dimension).to_string(),
        ]
    };
    let caption = "Accuracy by dimension, calibration and budget".to_owned();
    let columns = columns.map(str::to_owned).to_vec();
    Table { name: "accuracy".to_owned(), caption, columns, rows: runs.iter().map(row).collect() }
}

fn honest_table(runs: &[Tuned], cases: &[(usize, usize)], found: &[f64]) -> Table {
    let columns = ["p", "calibration", "claimed epsilon", "updates", "points of the agent", "epsilon really spent"];
    let row = |(&(k, m), epsilon): (&(usize, usize), &f64)| {
        let run = &runs[k];
        vec![
            run.dimension.to_string(),
            run.calibration.label().to_owned(),
            format!("{:.2}", run.spending.total()),
            run.spending.updates.to_string(),
            m.to_string(),
            format!("{epsilon:.2}"),
        ]
    };
    let caption =
        "What the paper's noise claims to spend, and what it spends (tight accountant, same delta)".to_owned();
    let columns = columns.map(str::to_owned).to_vec();
    Table { name: "honest-epsilon".to_owned(), caption, columns, rows: cases.iter().zip(found).map(row).collect() }
}
