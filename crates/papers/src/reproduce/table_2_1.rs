//! Table 2.1 of the thesis: six ways to learn on four real data sets, and what is sent to get there.

use super::bench::Bench;
use super::outcome::{Claim, ExperimentOutcome, Labelled, Plot, Point, Series, Spread, Table};
use crate::thesis_table::methods::{
    Family, Pace, Row, Scope, Values, accuracy, prepared, score, together, with_constant,
};
use crate::thesis_table::split::{Rule, Split};
use crate::thesis_table::tune::{Grid, choose};
use crate::thesis_table::users::{Source, Users};
use serde::{Deserialize, Serialize};
use sottovoce_core::PeerId;
use sottovoce_run::train::Halt;
use sottovoce_task::error::Mistake;
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Parameters {
    seeds: Vec<u64>,
    sources: Vec<Source>,
    curve: Source,
    har_share: f64,
    vehicle_share: f64,
    vehicle_half_share: f64,
    computers: [usize; 2],
    grid: Grid,
    pace: BTreeMap<Source, Pace>,
}

impl Parameters {
    /// A run's split; schools take a published split each time, the first in the first run.
    fn split(&self, users: &Users, source: Source, run: usize) -> Split {
        let rule = match source {
            Source::Har => Rule::Share(self.har_share),
            Source::Vehicle => Rule::Share(self.vehicle_share),
            Source::VehicleHalf => Rule::Share(self.vehicle_half_share),
            Source::Computer => Rule::SameOrder { least: self.computers[0], most: self.computers[1] },
            Source::School => Rule::Published(run + 1),
        };
        Split::new(users, rule, self.seeds[run])
    }
}

/// The paper's numbers, in percent, by data set and row.
fn paper(source: Source) -> [f64; 6] {
    match source {
        Source::Har => [93.64, 92.69, 96.87, 94.34, 93.16, 95.57],
        Source::Vehicle | Source::VehicleHalf => [87.11, 90.38, 91.45, 88.02, 90.59, 91.04],
        Source::Computer => [62.18, 60.68, 69.10, 69.16, 66.61, 73.55],
        Source::School => [57.06, 70.43, 71.78, 69.96, 70.69, 72.47],
    }
}

/// How far below the paper's number ours may be, in points, where the data are the paper's.
const POINTS_BELOW: f64 = 3.0;

/// One cell of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    source: Source,
    run: usize,
    row: Row,
}

/// What came of it.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Cell {
    /// Of all test points, in percent.
    accuracy: f64,
    /// Of all held-out training points, in percent, with the values that were chosen.
    held_out: f64,
    values: Values,
}

/// Runs it.
pub fn run(bench: &mut Bench<'_>) -> Result<ExperimentOutcome, Halt> {
    let parameters: Parameters = bench.parameters();
    let data = bench.data().to_owned();
    let read = |source: &Source| Users::read(&data, *source).map(|users| (*source, users));
    let users = parameters.sources.iter().map(read).collect::<Result<BTreeMap<Source, Users>, Mistake>>()?;
    let mut parts = Vec::new();
    // The personalized rows take longest, and go first.
    for scope in [Scope::Personal, Scope::Global, Scope::Local] {
        for &source in &parameters.sources {
            for run in 0..parameters.seeds.len() {
                let rows = Row::ALL.into_iter().filter(|row| row.scope == scope);
                parts.extend(rows.map(|row| Part { source, run, row }));
            }
        }
    }
    let cells = bench.each("cells of the table", &parts, |&Part { source, run, row }| {
        let (split, pace, seed) =
            (parameters.split(&users[&source], source, run), &parameters.pace[&source], parameters.seeds[run]);
        let (values, held_out) = choose(source, row, &split.folds, &parameters.grid, pace, seed);
        let right = score(row, &prepared(source, row.family, &split.parts), &values, pace, seed);
        Cell { accuracy: 100.0 * right, held_out: 100.0 * held_out, values }
    })?;
    let of = |wanted: Part| {
        let at = parts.iter().position(|part| *part == wanted);
        &cells[at.expect("all cells were made")]
    };
    let runs = 0..parameters.seeds.len();
    let spread = |source: Source, row: Row| {
        Spread::of(&runs.clone().map(|run| of(Part { source, run, row }).accuracy).collect::<Vec<_>>())
    };
    let mut outcome = ExperimentOutcome::default();
    for &source in &parameters.sources {
        outcome.claims.extend(claims(source, &Row::ALL.map(|row| spread(source, row))));
    }
    outcome.tables.push(accuracy_table(&parameters, &spread));
    outcome.tables.push(runs_table(&parameters, of));

    let curve = parameters.curve;
    let split = parameters.split(&users[&curve], curve, 0);
    let curves = bench.each("accuracy by bits", &[Family::Linear, Family::Boost], |&family| {
        let values = of(Part { source: curve, run: 0, row: Row { family, scope: Scope::Personal } }).values;
        let parts = prepared(curve, family, &split.parts);
        let parts = if family == Family::Linear { with_constant(&parts, values.constant) } else { parts };
        let mut points: Vec<(u64, u64, f64)> = Vec::new();
        together(family, &parts.train, &values, &parameters.pace[&curve], parameters.seeds[0], &mut |moment| {
            let grown = points.last().is_none_or(|(_, sent, _)| moment.sent_bits as f64 > CURVE_RATIO * *sent as f64);
            if grown {
                let right = 100.0 * accuracy(&parts.test, PeerId::index, &(moment.models)());
                points.push((moment.update_bits, moment.sent_bits, right));
            }
        });
        points
    })?;
    add_curves(&mut outcome, curve, &curves);
    Ok(outcome)
}

/// Points of a curve are this factor of bits apart.
const CURVE_RATIO: f64 = 1.1;

/// Each number where the data are the paper's, and the order of each family.
fn claims(source: Source, ours: &[Spread; 6]) -> Vec<Claim> {
    let mut claims = Vec::new();
    let percent = |spread: Spread| format!("{:.2} ± {:.2}", spread.mean, spread.deviation);
    if source.is_the_papers() {
        for ((row, ours), paper) in Row::ALL.iter().zip(ours).zip(paper(source)) {
            let id = format!("{}-{}", source.name(), row.name().to_lowercase());
            let says =
                format!("{}, {}: within {POINTS_BELOW} points of the paper, or better", source.label(), row.name());
            let holds = ours.mean >= paper - POINTS_BELOW;
            claims.push(Claim::new(&id, &says, &format!("{paper:.2}"), percent(*ours), ours.mean, holds));
        }
    }
    for (family, name) in [(Family::Linear, "linear"), (Family::Boost, "boosted")] {
        let at = |scope| Row::ALL.iter().position(|row| *row == Row { family, scope }).expect("a row");
        let [global, local, personal] = [Scope::Global, Scope::Local, Scope::Personal].map(at);
        let numbers = paper(source);
        let gain = ours[personal].mean - ours[global].mean.max(ours[local].mean);
        claims.push(Claim::new(
            &format!("{}-{name}-order", source.name()),
            &format!("{}: personalized {name} models beat global and local ones", source.label()),
            &format!("{:.2}, against {:.2} and {:.2}", numbers[personal], numbers[global], numbers[local]),
            format!("{}, against {} and {}", percent(ours[personal]), percent(ours[global]), percent(ours[local])),
            gain,
            gain > 0.0,
        ));
    }
    claims
}

fn accuracy_table(parameters: &Parameters, spread: &dyn Fn(Source, Row) -> Spread) -> Table {
    let mut columns = vec!["method".to_owned()];
    for source in &parameters.sources {
        columns.extend(["paper", "ours", "spread"].map(|what| format!("{} {what}", source.name())));
    }
    let row = |(k, row): (usize, Row)| {
        let mut cells = vec![row.name().to_owned()];
        for &source in &parameters.sources {
            let Spread { mean, deviation } = spread(source, row);
            cells.extend([paper(source)[k], mean, deviation].map(|number| format!("{number:.2}")));
        }
        cells
    };
    Table {
        name: "accuracy".to_owned(),
        caption: format!(
            "Test accuracy in percent of all test points, mean and spread over {} runs",
            parameters.seeds.len()
        ),
        columns,
        rows: Row::ALL.into_iter().enumerate().map(row).collect(),
    }
}

/// Every run, with the values that it chose; a value that a row does not read is not shown.
fn runs_table<'c>(parameters: &Parameters, cell: impl Fn(Part) -> &'c Cell) -> Table {
    let columns = [
        "data set",
        "method",
        "run",
        "accuracy",
        "held-out accuracy",
        "ridge",
        "constant",
        "radius",
        "trade-off",
        "sparsity",
    ];
    let mut rows = Vec::new();
    for &source in &parameters.sources {
        for row in Row::ALL {
            for run in 0..parameters.seeds.len() {
                let Cell { accuracy, held_out, values } = cell(Part { source, run, row });
                let (linear, personal) = (row.family == Family::Linear, row.scope == Scope::Personal);
                let shown = |value: f64, read: bool| if read { value.to_string() } else { "-".to_owned() };
                rows.push(vec![
                    source.name().to_owned(),
                    row.name().to_owned(),
                    (run + 1).to_string(),
                    format!("{accuracy:.2}"),
                    format!("{held_out:.2}"),
                    shown(values.ridge, linear),
                    shown(values.constant, linear),
                    shown(values.radius, !linear),
                    shown(values.trade_off, personal),
                    shown(values.sparsity, personal),
                ]);
            }
        }
    }
    let caption =
        "Every run: accuracy on test points, on held-out training points, and the values chosen by the latter"
            .to_owned();
    Table { name: "runs".to_owned(), caption, columns: columns.map(str::to_owned).to_vec(), rows }
}

/// Accuracy against bits, as the papers count them and as they are sent, and how many times fewer boosting needs.
fn add_curves(outcome: &mut ExperimentOutcome, source: Source, curves: &[Vec<(u64, u64, f64)>]) {
    const NAMES: [&str; 2] = ["linear, coordinate descent", "boosted, Frank-Wolfe"];
    type Counted = fn(&(u64, u64, f64)) -> u64;
    let counts: [(&str, &str, &str, Counted); 2] = [
        (
            "accuracy-by-update-bits",
            "bits of model updates",
            "Model updates alone, as the thesis counts them: 32 bits for each number.",
            |p| p.0,
        ),
        (
            "accuracy-by-all-bits",
            "bits of all messages",
            "All messages as they are sent, those about the graph included.",
            |p| p.1,
        ),
    ];
    for (name, axis, caption, bits) in counts {
        let series = curves.iter().zip(NAMES).enumerate().map(|(ink, (curve, name))| {
            let point = |p: &(u64, u64, f64)| Point { x: bits(p) as f64, mean: p.2, spread: 0.0 };
            let points = curve.iter().filter(|p| bits(p) > 0).map(point).collect();
            Series { name: name.to_owned(), ink, dashed: false, points }
        });
        outcome.plots.push(Plot {
            name: name.to_owned(),
            title: format!("{}: accuracy by what is sent", source.label()),
            caption: format!("Test accuracy in the first run. {caption}"),
            x: Labelled::log(axis),
            y: Labelled::linear("test accuracy, percent"),
            series: series.collect(),
        });
    }
    let sent = |curve: &Vec<(u64, u64, f64)>| curve.last().map_or(1.0, |point| point.0.max(1) as f64);
    let ratio = sent(&curves[0]) / sent(&curves[1]);
    outcome.claims.push(Claim::new(
        "boosting-sends-less",
        "In the same number of wakes, updates of boosted models take fewer bits than those of linear ones",
        "logarithmic in the number of base predictors, instead of linear in that of features",
        format!("{ratio:.0} times fewer on {}", source.label()),
        ratio,
        ratio > 1.0,
    ));
    let columns = ["models", "bits of model updates", "bits of all messages", "test accuracy"];
    let rows = curves.iter().zip(NAMES).flat_map(|(curve, name)| {
        curve.iter().map(move |(update, all, right)| {
            vec![name.to_owned(), update.to_string(), all.to_string(), format!("{right:.2}")]
        })
    });
    let rows = rows.collect();
    let caption = "Accuracy against bits in the first run".to_owned();
    let columns = columns.map(str::to_owned).to_vec();
    outcome.tables.push(Table { name: "bits".to_owned(), caption, columns, rows });
}
