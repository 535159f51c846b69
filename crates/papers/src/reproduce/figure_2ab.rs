//! Figures 2(a) and 2(b) of the 2018 paper: private coordinate descent by number of updates, from a constant and from a private warm start.

use super::bench::Bench;
use super::calibration::{Calibration, Plans, Scored, Spending, Warm, instance};
use super::linear::Size;
use super::outcome::{Claim, ExperimentOutcome, Labelled, Plot, Point, Series, Spread, Table};
use super::tuning::{Case, private_runs, trade_offs};
use serde::Deserialize;
use sottovoce_run::train::Halt;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Parameters {
    size: Size,
    dimension: usize,
    seeds: Vec<u64>,
    validation_seeds: Vec<u64>,
    tuning_wakes: u64,
    sum_trade_off: f64,
    delta: f64,
    /// For the updates.
    epsilons: Vec<f64>,
    updates: Vec<u64>,
    calibrations: Vec<Calibration>,
    warm_epsilon: f64,
    warm: Warm,
}

/// The runs of one curve: by update, by seed.
struct Curve {
    calibration: Calibration,
    spending: Spending,
    runs: Vec<Vec<Scored>>,
}

/// Runs everything for both figures; `warm` says with which starts.
fn curves(
    bench: &mut Bench<'_>,
    parameters: &Parameters,
    starts: &[Option<f64>],
) -> Result<(Vec<Curve>, Levels), Halt> {
    let Parameters { size, dimension, delta, warm, .. } = *parameters;
    let kinds: Vec<(Calibration, usize)> = parameters.calibrations.iter().map(|&kind| (kind, dimension)).collect();
    let tuning = (parameters.tuning_wakes, parameters.sum_trade_off);
    let chosen = trade_offs(bench, &kinds, size, &parameters.validation_seeds, tuning)?;
    let mut heads = Vec::new();
    let mut cases = Vec::new();
    for (&(calibration, _), &trade_off) in kinds.iter().zip(&chosen) {
        for &warm_epsilon in starts {
            for &epsilon in &parameters.epsilons {
                heads.push((calibration, Spending { epsilon, warm_epsilon, updates: 0 }));
                for &updates in &parameters.updates {
                    let spending = Spending { epsilon, warm_epsilon, updates };
                    let case = |&seed: &u64| Case { calibration, dimension, trade_off, spending, seed };
                    cases.extend(parameters.seeds.iter().map(case));
                }
            }
        }
    }
    let plans = Plans::default();
    let mut scored = private_runs(bench, "private runs", &cases, (size, delta, warm), &plans)?.into_iter();
    let mut take = |count: usize| -> Vec<Scored> { scored.by_ref().take(count).collect() };
    let curves = heads
        .into_iter()
        .map(|(calibration, spending)| {
            let runs = parameters.updates.iter().map(|_| take(parameters.seeds.len())).collect();
            Curve { calibration, spending, runs }
        })
        .collect();
    let items: Vec<(Calibration, f64, u64)> = kinds
        .iter()
        .zip(&chosen)
        .flat_map(|(&(kind, _), &trade_off)| parameters.seeds.iter().map(move |&seed| (kind, trade_off, seed)))
        .collect();
    let wakes = parameters.tuning_wakes;
    let levels = bench.each("local and not private", &items, |&(kind, trade_off, seed)| {
        let instance = instance(kind, size, dimension, seed, trade_off);
        let together = instance.descend(wakes);
        (instance.accuracy(&instance.local()), instance.accuracy(&together), instance.objective(&together))
    })?;
    Ok((curves, Levels { items, levels }))
}

/// Local and non-private models: accuracy alone, accuracy together, objective together.
struct Levels {
    items: Vec<(Calibration, f64, u64)>,
    levels: Vec<(f64, f64, f64)>,
}

impl Levels {
    fn of(&self, calibration: Calibration, what: fn(&(f64, f64, f64)) -> f64) -> Spread {
        let of_it = self.items.iter().zip(&self.levels).filter(|(item, _)| item.0 == calibration);
        Spread::of(&of_it.map(|(_, level)| what(level)).collect::<Vec<_>>())
    }
}

/// What is drawn of a run.
#[derive(Clone, Copy, PartialEq)]
enum What {
    Objective,
    Broadcast,
    Home,
}

impl What {
    fn of(self, scored: &Scored) -> Option<f64> {
        let mean = |accuracy: &Vec<f64>| accuracy.iter().sum::<f64>() / accuracy.len() as f64;
        match self {
            What::Objective => Some(scored.objective),
            What::Broadcast => Some(mean(&scored.broadcast)),
            What::Home => scored.home.as_ref().map(mean),
        }
    }
}

impl Curve {
    /// Mean and spread by number of updates.
    fn points(&self, updates: &[u64], what: What) -> Option<Vec<Point>> {
        let point = |(&updates, runs): (&u64, &Vec<Scored>)| {
            let values: Option<Vec<f64>> = runs.iter().map(|scored| what.of(scored)).collect();
            Some(Spread::of(&values?).at(updates as f64))
        };
        updates.iter().zip(&self.runs).map(point).collect()
    }
}

/// Whether the best of a curve lies clearly inside: by this much of its distance to zero from both ends.
const INSIDE: f64 = 0.005;

/// The number of updates with the lowest mean; and whether both ends are clearly higher.
fn lowest(points: &[Point]) -> (f64, f64, bool) {
    let least = points.iter().min_by(|a, b| a.mean.total_cmp(&b.mean)).expect("a curve has points");
    let above = |end: &Point| end.mean - least.mean > INSIDE * least.mean.abs();
    (least.x, least.mean, above(&points[0]) && above(&points[points.len() - 1]))
}

/// The same for what should be large.
fn highest(points: &[Point]) -> (f64, f64, bool) {
    let flipped: Vec<Point> = points.iter().map(|point| Point { mean: -point.mean, ..*point }).collect();
    let (at, least, inside) = lowest(&flipped);
    (at, -least, inside)
}

/// Figure 2(a).
pub fn constant_start(bench: &mut Bench<'_>) -> Result<ExperimentOutcome, Halt> {
    let parameters: Parameters = bench.parameters();
    let (curves, levels) = curves(bench, &parameters, &[None])?;
    let mut outcome = ExperimentOutcome { tables: vec![table(&parameters, &curves)], ..ExperimentOutcome::default() };
    for &calibration in &parameters.calibrations {
        let of_it: Vec<&Curve> = curves.iter().filter(|curve| curve.calibration == calibration).collect();
        outcome.plots.extend(plots("Figure 2(a)", &parameters, &of_it, &levels, calibration));
        let budgets = of_it.len();
        let found = |what: What, best: fn(&[Point]) -> (f64, f64, bool)| -> Vec<(f64, f64, bool)> {
            of_it.iter().map(|curve| best(&curve.points(&parameters.updates, what).expect("a value"))).collect()
        };
        let (slug, label) = (calibration.slug(), calibration.label());
        let describe = |found: &[(f64, f64, bool)]| {
            let each = of_it.iter().zip(found).map(|(curve, (at, value, _))| {
                format!("epsilon {}: best {value:.3} at T = {at}", curve.spending.epsilon)
            });
            each.collect::<Vec<_>>().join("; ")
        };
        let objective = found(What::Objective, lowest);
        let inside = objective.iter().filter(|found| found.2).count();
        outcome.claims.push(Claim::new(
            &format!("u-shape-{slug}"),
            &format!("The objective is U-shaped in the number of updates: {label}"),
            "U for every budget",
            describe(&objective),
            inside as f64,
            inside == budgets,
        ));
        let ratio = objective[budgets - 1].0 / objective[0].0;
        outcome.claims.push(Claim::new(
            &format!("optimum-moves-right-{slug}"),
            &format!("A larger budget wants more updates: {label}"),
            "the optimum moves right",
            format!("from T = {} to T = {}", objective[0].0, objective[budgets - 1].0),
            ratio,
            ratio > 1.0,
        ));
        let accuracy = found(What::Broadcast, highest);
        let inside = accuracy.iter().filter(|found| found.2).count();
        outcome.claims.push(Claim::new(
            &format!("inverted-u-{slug}"),
            &format!("Accuracy is an inverted U: {label}"),
            "an inverted U for every budget",
            describe(&accuracy),
            inside as f64,
            inside == budgets,
        ));
    }
    Ok(outcome)
}

/// Figure 2(b).
pub fn warm_start(bench: &mut Bench<'_>) -> Result<ExperimentOutcome, Halt> {
    let parameters: Parameters = bench.parameters();
    let (curves, levels) = curves(bench, &parameters, &[None, Some(parameters.warm_epsilon)])?;
    let mut outcome = ExperimentOutcome { tables: vec![table(&parameters, &curves)], ..ExperimentOutcome::default() };
    for &calibration in &parameters.calibrations {
        let of_it = |warm: bool| -> Vec<&Curve> {
            let fits = |c: &&Curve| c.calibration == calibration && c.spending.warm_epsilon.is_some() == warm;
            curves.iter().filter(fits).collect()
        };
        let (cold, warm) = (of_it(false), of_it(true));
        outcome.plots.extend(plots(
            "Figure 2(b)",
            &parameters,
            &[&cold[..1], &warm[..]].concat(),
            &levels,
            calibration,
        ));
        let (slug, label) = (calibration.slug(), calibration.label());
        let points = |curve: &Curve, what| curve.points(&parameters.updates, what).expect("a value");
        let pairs = || cold.iter().zip(&warm);
        let worst =
            |gain: &dyn Fn(&Curve, &Curve) -> f64| pairs().map(|(c, w)| gain(c, w)).fold(f64::INFINITY, f64::min);
        let first = worst(&|c, w| {
            let (c, w) = (points(c, What::Objective)[0].mean, points(w, What::Objective)[0].mean);
            (c - w) / c
        });
        outcome.claims.push(Claim::new(
            &format!("lower-objective-{slug}"),
            &format!("With the fewest updates, a warm start has the lower objective: {label}"),
            "lower, for every budget",
            format!("lower by {:.1}% or more at T = {}", 100.0 * first, parameters.updates[0]),
            first,
            first > 0.0,
        ));
        let ((at_cold, q_cold, _), (at_warm, q_warm, _)) =
            (lowest(&points(cold[0], What::Objective)), lowest(&points(warm[0], What::Objective)));
        let gain = (q_cold - q_warm) / q_cold;
        outcome.claims.push(Claim::new(
            &format!("fewer-updates-{slug}"),
            &format!("At the smallest budget its best objective is lower and comes with no more updates: {label}"),
            "lower, with fewer iterations",
            format!("{q_warm:.1} at T = {at_warm} against {q_cold:.1} at T = {at_cold}"),
            gain,
            gain > 0.0 && at_warm <= at_cold,
        ));
        let first = worst(&|c, w| points(w, What::Broadcast)[0].mean - points(c, What::Broadcast)[0].mean);
        outcome.claims.push(Claim::new(
            &format!("accuracy-gain-{slug}"),
            &format!("With the fewest updates, it has the higher accuracy: {label}"),
            "a significant gain",
            format!("{first:+.3} or more at T = {}", parameters.updates[0]),
            first,
            first > 0.01,
        ));
        let best = highest(&points(warm[0], What::Broadcast)).1 - highest(&points(cold[0], What::Broadcast)).1;
        outcome.claims.push(Claim::new(
            &format!("best-accuracy-gain-{slug}"),
            &format!("At the smallest budget and the best number of updates, accuracy is higher too: {label}"),
            "not said",
            format!("{best:+.3}"),
            best,
            best > 0.0,
        ));
    }
    Ok(outcome)
}

/// Objective and accuracy by updates, for one calibration.
fn plots(
    figure: &str,
    parameters: &Parameters,
    curves: &[&Curve],
    levels: &Levels,
    calibration: Calibration,
) -> Vec<Plot> {
    let updates = &parameters.updates;
    let name = |curve: &Curve, home: bool| {
        let start = if curve.spending.warm_epsilon.is_some() { ", warm" } else { "" };
        let home = if home { ", at home" } else { "" };
        format!("ε = {}{start}{home}", (1000.0 * curve.spending.total()).round() / 1000.0)
    };
    let line = |curve: &Curve, ink: usize, what: What| {
        let points = curve.points(updates, what)?;
        Some(Series { name: name(curve, what == What::Home), ink, dashed: !calibration.is_sound(), points })
    };
    let of = |what: What, from: usize| -> Vec<Series> {
        curves.iter().enumerate().filter_map(|(k, curve)| line(curve, from + k, what)).collect()
    };
    let level = |name: &str, ink: usize, spread: Spread| Series {
        name: name.to_owned(),
        ink,
        dashed: true,
        points: updates.iter().map(|&x| Spread { deviation: 0.0, ..spread }.at(x as f64)).collect(),
    };
    let caption = |what: &str| {
        format!(
            "{what}, p = {}, {}. Mean and standard deviation of {} runs.",
            parameters.dimension,
            calibration.label(),
            parameters.seeds.len()
        )
    };
    let slug = calibration.slug();
    let (label, x) = (calibration.label(), || Labelled::log("updates of each agent, T_i"));
    let mut objective = of(What::Objective, 0);
    objective.push(level("not private", 5, levels.of(calibration, |level| level.2)));
    let objective = Plot {
        name: format!("objective-{slug}"),
        title: format!("{figure}: objective, {label}"),
        caption: caption("Objective of what agents broadcast last"),
        x: x(),
        y: Labelled::log("objective Q"),
        series: objective,
    };
    let mut accuracy = of(What::Broadcast, 0);
    accuracy.extend(of(What::Home, 3).into_iter().map(|series| Series { ink: 3, ..series }).next_back());
    accuracy.push(level("local", 4, levels.of(calibration, |level| level.0)));
    accuracy.push(level("not private", 5, levels.of(calibration, |level| level.1)));
    let accuracy = Plot {
        name: format!("accuracy-{slug}"),
        title: format!("{figure}: accuracy, {label}"),
        caption: caption("Test accuracy of what agents broadcast last, and of home models where there are any"),
        x: x(),
        y: Labelled::linear("test accuracy"),
        series: accuracy,
    };
    vec![objective, accuracy]
}

fn table(parameters: &Parameters, curves: &[Curve]) -> Table {
    let columns = [
        "calibration",
        "epsilon, total",
        "of it warm start",
        "updates",
        "objective",
        "accuracy, broadcast",
        "accuracy, home",
    ];
    let mut rows = Vec::new();
    for curve in curves {
        for (&updates, runs) in parameters.updates.iter().zip(&curve.runs) {
            let spread = |what: What| {
                let values: Option<Vec<f64>> = runs.iter().map(|scored| what.of(scored)).collect();
                values.map_or(String::new(), |values| Spread::of(&values).to_string())
            };
            rows.push(vec![
                curve.calibration.label().to_owned(),
                format!("{:.2}", curve.spending.total()),
                curve.spending.warm_epsilon.map_or(String::new(), |epsilon| epsilon.to_string()),
                updates.to_string(),
                spread(What::Objective),
                spread(What::Broadcast),
                spread(What::Home),
            ]);
        }
    }
    let caption = "Objective and accuracy by calibration, budget and number of updates".to_owned();
    Table { name: "runs".to_owned(), caption, columns: columns.map(str::to_owned).to_vec(), rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_best_value_inside_is_told_from_one_at_an_end() {
        let points = |means: [f64; 3]| {
            [1.0, 5.0, 9.0].into_iter().zip(means).map(|(x, mean)| Point { x, mean, spread: 0.0 }).collect::<Vec<_>>()
        };
        assert_eq!(lowest(&points([3.0, 2.0, 4.0])), (5.0, 2.0, true));
        assert_eq!(lowest(&points([2.001, 2.0, 4.0])), (5.0, 2.0, false));
        assert_eq!(lowest(&points([1.0, 2.0, 4.0])), (1.0, 1.0, false));
        assert_eq!(highest(&points([0.5, 0.7, 0.6])), (5.0, 0.7, true));
    }
}
