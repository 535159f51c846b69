//! Table 4.1 of the thesis: neighbours and masks of GOPA by its theorem, by simulated graphs, and by the exact curve; and the error of a private mean by the number of
//! members, between a trusted curator and local differential privacy.

use super::super::bench::Bench;
use super::super::outcome::{Claim, ExperimentOutcome, Labelled, Plot, Point, Series, Spread, Table};
use serde::Deserialize;
use sottovoce_core::Coin;
use sottovoce_privacy::gaussian_epsilon;
use sottovoce_privacy::gopa::theorem::{self, Corollary, Reading};
use sottovoce_privacy::gopa::{HonestGraph, SpanningTree, certificate};
use sottovoce_run::measure::measure;
use sottovoce_run::train::Halt;
use sottovoce_task::error::Mistake;
use sottovoce_task::input::Memory;
use sottovoce_task::load::{Loaded, load};
use sottovoce_task::task::Task;
use std::ops::ControlFlow;
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Parameters {
    members: u32,
    epsilon: f64,
    seed: u64,
    /// Graphs of each simulated row, roots of the lowest degree in each, and of how many runs the thesis takes the worst.
    graphs: u64,
    roots: usize,
    runs: f64,
    simulated: Vec<Row>,
    exact: Vec<Row>,
    curve: Curve,
}

/// A row with Gaussian masks on graphs that were drawn.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Row {
    honest: f64,
    neighbours: u32,
    /// sigma_Delta.
    printed: f64,
}

/// The error of a mean by the number of members.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Curve {
    members: Vec<u32>,
    honest: Vec<f64>,
    epsilon: f64,
    delta: f64,
    seeds: Vec<u64>,
    measured_up_to: u32,
}

/// delta' of the table, for n members: 1 / n^2.
fn inner(members: u32) -> f64 {
    1.0 / (f64::from(members) * f64::from(members))
}

impl Parameters {
    fn honest_members(&self, row: &Row) -> usize {
        (row.honest * f64::from(self.members)) as usize
    }

    /// The table's noise: c^2 / (n epsilon^2), also where fewer are honest.
    fn noise_std(&self) -> f64 {
        libm::sqrt(theorem::noise_square(inner(self.members)) / f64::from(self.members)) / self.epsilon
    }
}

/// The honest part of a random k-out graph, whose first members are the honest ones.
fn k_out(members: usize, honest: usize, neighbours: usize, coin: &mut Coin) -> HonestGraph {
    let mut edges = Vec::with_capacity(honest * neighbours);
    for member in 0..honest {
        let mut picks: Vec<usize> = Vec::with_capacity(neighbours);
        while picks.len() < neighbours {
            let pick = coin.below(members);
            if pick != member && !picks.contains(&pick) {
                picks.push(pick);
            }
        }
        edges.extend(picks.into_iter().filter(|pick| *pick < honest).map(|pick| (member as u32, pick as u32)));
    }
    HonestGraph::new(honest, edges)
}

/// Runs it.
pub fn run(bench: &mut Bench<'_>) -> Result<ExperimentOutcome, Halt> {
    let parameters: Parameters = bench.parameters();
    let mut outcome = ExperimentOutcome::default();
    let mut rows = add_theorem(&parameters, &mut outcome);
    rows.extend(add_simulated(bench, &parameters, &mut outcome)?);
    rows.extend(add_exact(bench, &parameters, &mut outcome)?);
    outcome.tables.push(Table {
        name: "masks".to_owned(),
        caption: format!(
            "Table 4.1: n = {}, epsilon = {}, delta = 10 / n^2 unless said. Where masks are pads sigma_Delta has no meaning, and k is what keeps the graph connected.",
            parameters.members, parameters.epsilon
        ),
        columns: ["rho", "by", "k", "sigma_eta", "sigma_Delta", "printed"].map(str::to_owned).to_vec(),
        rows,
    });
    add_curve(bench, &parameters.curve, &mut outcome)?;
    Ok(outcome)
}

fn cells(honest: f64, by: &str, neighbours: u32, noise_std: f64, masks: String, printed: &str) -> Vec<String> {
    vec![
        honest.to_string(),
        by.to_owned(),
        neighbours.to_string(),
        format!("{noise_std:.2}"),
        masks,
        printed.to_owned(),
    ]
}

/// The rows of the theorem, by each reading.
fn add_theorem(parameters: &Parameters, outcome: &mut ExperimentOutcome) -> Vec<Vec<String>> {
    let Parameters { members, epsilon, .. } = *parameters;
    let row = |honest, reading| -> Corollary {
        theorem::corollary(members, honest, epsilon, reading).expect("more than 81 honest members")
    };
    let mut rows = Vec::new();
    for (id, honest, reading, by, printed) in [
        ("theorem", 1.0, Reading::Literal, "Corollary 4.1", Some((105, 44.7))),
        ("table-mode", 0.5, Reading::Table, "table mode: delta' = 1 / n^2, sigma_eta with n", Some((203, 34.4))),
        (
            "without-honesty",
            0.5,
            Reading::TableWithoutHonesty,
            "the same, rho and n_H dropped from tau",
            Some((203, 34.4)),
        ),
        ("literal", 0.5, Reading::Literal, "Corollary 4.1 as stated: delta' = 1 / n_H^2", None),
        ("careful", 0.5, Reading::Careful, "delta' = 1 / n^2, sigma_eta with n_H", None),
    ] {
        let found = row(honest, reading);
        let said = printed.map_or("-".to_owned(), |(k, masks): (u32, f64)| format!("k = {k}, {masks}"));
        let holds = printed.is_none_or(|(k, masks)| k == found.neighbours && (found.mask_std - masks).abs() <= 0.05);
        outcome.claims.push(Claim::new(
            &format!("masks-{id}"),
            &format!("rho = {honest}, {by}"),
            &said,
            format!("k = {}, {:.2}", found.neighbours, found.mask_std),
            found.mask_std,
            holds,
        ));
        rows.push(cells(honest, by, found.neighbours, found.noise_std, format!("{:.2}", found.mask_std), &said));
    }
    let table = row(0.5, Reading::Table);
    let kept = theorem::epsilon(table.theta, table.delta / 3.0);
    outcome.claims.push(Claim::new(
        "table-keeps-its-promise",
        "The column rho = 0.5 keeps (4.2) and (4.3)",
        &format!("epsilon = {epsilon}"),
        format!("epsilon = {kept:.3}"),
        kept,
        kept <= epsilon,
    ));
    rows
}

/// The rows with spanning trees of simulated graphs. The thesis takes the worst tau of many runs, each with a graph and a root; here tau is looked at where the degree of
/// the root is lowest, where it is a / degree, and the lowest degree of as many runs follows from its law.
fn add_simulated(
    bench: &mut Bench<'_>,
    parameters: &Parameters,
    outcome: &mut ExperimentOutcome,
) -> Result<Vec<Vec<String>>, Halt> {
    let items: Vec<(usize, u64)> =
        (0..parameters.simulated.len()).flat_map(|k| (0..parameters.graphs).map(move |graph| (k, graph))).collect();
    let found = bench.each("trees", &items, |&(k, number)| {
        let row = &parameters.simulated[k];
        let mut coin = Coin::new(parameters.seed, k as u32, number);
        let honest = parameters.honest_members(row);
        let graph = k_out(parameters.members as usize, honest, row.neighbours as usize, &mut coin);
        let roots = graph.lowest_degrees(parameters.roots).into_iter();
        let of_root = |root: usize| {
            let tau = SpanningTree::balanced(&graph, root).map(|tree| tree.tau());
            tau.map(|tau| tau * graph.neighbours(root).len() as f64)
        };
        roots.filter_map(of_root).collect::<Vec<f64>>()
    })?;
    let mut rows = Vec::new();
    for (k, row) in parameters.simulated.iter().enumerate() {
        let products: Vec<f64> =
            items.iter().zip(&found).filter(|(item, _)| item.0 == k).flat_map(|(_, found)| found.clone()).collect();
        let per_degree = Spread::of(&products);
        let honest = parameters.honest_members(row) as u32;
        // The expectation of the worst: P(the lowest of all runs is d) = (1 - P(D < d))^runs - (1 - P(D <= d))^runs.
        let none_below = |degree: u32| {
            let below = certificate::degree_below(parameters.members, honest, row.neighbours, degree);
            libm::exp(parameters.runs * libm::log1p(-below.min(1.0 - 1e-15)))
        };
        let worst: f64 = (1..2 * row.neighbours)
            .map(|degree| (none_below(degree) - none_below(degree + 1)) * per_degree.mean / f64::from(degree))
            .sum();
        let delta_inner = inner(parameters.members);
        let noise = parameters.noise_std();
        let kappa = theorem::kappa(10.0 * delta_inner, delta_inner, true);
        let masks = noise * libm::sqrt(kappa * f64::from(honest) * worst);
        outcome.claims.push(Claim::new(
            &format!("simulated-rho-{}", row.honest),
            &format!(
                "rho = {}, k = {}: masks by the worst tree of {} runs",
                row.honest, row.neighbours, parameters.runs
            ),
            &row.printed.to_string(),
            format!("{masks:.1}; tau = {per_degree} / degree, worst {worst:.4}"),
            masks,
            (masks / row.printed - 1.0).abs() <= 0.05,
        ));
        let by = "trees of simulated graphs, the worst of 1e5 runs (table mode)";
        rows.push(cells(row.honest, by, row.neighbours, noise, format!("{masks:.1}"), &row.printed.to_string()));
    }
    Ok(rows)
}

/// What the exact curve asks for on a graph, with the table's noise.
fn add_exact(
    bench: &mut Bench<'_>,
    parameters: &Parameters,
    outcome: &mut ExperimentOutcome,
) -> Result<Vec<Vec<String>>, Halt> {
    let items: Vec<usize> = (0..parameters.exact.len()).collect();
    let delta = 10.0 * inner(parameters.members);
    let room = largest_theta(parameters.epsilon, delta);
    // That of the corollary, for those who are honest.
    let noise_of = |row: &Row| parameters.noise_std() / libm::sqrt(row.honest);
    let found = bench.each("exact", &items, |&k| {
        let row = &parameters.exact[k];
        let mut coin = Coin::new(parameters.seed, 100 + k as u32, 0);
        let honest = parameters.honest_members(row);
        let graph = k_out(parameters.members as usize, honest, row.neighbours as usize, &mut coin);
        graph.mask_std_for(&graph.lowest_degrees(6), noise_of(row), room)
    })?;
    let mut rows = Vec::new();
    for (row, masks) in parameters.exact.iter().zip(found) {
        let masks = masks.unwrap_or(0.0);
        let id = format!("exact-rho-{}-k-{}", row.honest, row.neighbours);
        let says = format!("rho = {}, k = {}: masks by the exact curve, on one graph", row.honest, row.neighbours);
        let holds = (masks / row.printed - 1.0).abs() <= 0.1;
        let before = format!("{} on another graph", row.printed);
        outcome.claims.push(Claim::new(&id, &says, &before, format!("{masks:.2}"), masks, holds));
        rows.push(cells(
            row.honest,
            "the exact curve on one graph",
            row.neighbours,
            noise_of(row),
            format!("{masks:.2}"),
            "-",
        ));
    }
    for honest in [1.0, 0.5] {
        let members = parameters.members;
        let (honest_members, at) = ((honest * f64::from(members)) as u32, delta / 16.0);
        let k = (2..members).find(|&k| certificate::disconnected(members, honest_members, k) <= at);
        let noise = libm::sqrt(1.0 / (room * f64::from(honest_members)));
        rows.push(cells(honest, "pads, certified before the run", k.unwrap_or(0), noise, "pads".to_owned(), "-"));
    }
    Ok(rows)
}

/// mu^2 of the Gaussian that is just (epsilon, delta)-private.
fn largest_theta(epsilon: f64, delta: f64) -> f64 {
    let (mut low, mut high) = (-20.0, 5.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if gaussian_epsilon(libm::exp(middle), delta) <= epsilon {
            low = middle;
        } else {
            high = middle;
        }
    }
    libm::exp(2.0 * low)
}

/// A mean of values in [0, 1], one of each member, under masks.
fn task(curve: &Curve, members: u32, honest: f64, seed: u64) -> Result<Loaded, Mistake> {
    let text = format!(
        "algorithm = \"gopa\"\n[data]\ntrain = \"rows.csv\"\n[statistic]\nkind = \"mean\"\ncolumns = [\"x\"]\nrange = [0, 1]\n[run]\nseed = {seed}\n\
         [privacy]\nepsilon = {}\ndelta = {}\nhonest = {honest}\n",
        curve.epsilon, curve.delta
    );
    let mut coin = Coin::new(seed, 7, 7);
    let rows: String = (0..members).map(|k| format!("m{k:05},{}\n", coin.unit())).collect();
    let memory = Memory::default().with("rows.csv", format!("agent,x\n{rows}").into_bytes());
    load(&Task::parse_with(&text, Path::new("table-4.1.toml"), &memory)?)
}

/// The error of a mean, by the number of members.
fn add_curve(bench: &mut Bench<'_>, curve: &Curve, outcome: &mut ExperimentOutcome) -> Result<(), Halt> {
    let all: Vec<(usize, u32)> =
        (0..curve.honest.len()).flat_map(|h| curve.members.iter().map(move |&members| (h, members))).collect();
    // Ten members of whom half collude are too few: none.
    let predicted = bench.each("errors by the formula", &all, |&(h, members)| {
        task(curve, members, curve.honest[h], 1).ok().and_then(|loaded| loaded.deviation())
    })?;
    let runs: Vec<(u32, u64)> = (curve.members.iter().filter(|members| **members <= curve.measured_up_to))
        .flat_map(|&members| curve.seeds.iter().map(move |&seed| (members, seed)))
        .collect();
    let measured = bench.each("runs", &runs, |&(members, seed)| {
        let loaded = task(curve, members, 1.0, seed).ok()?;
        let statistic = loaded.task.statistic.clone()?;
        let measured = measure(&loaded, &statistic, 1, &mut |_| ControlFlow::Continue(())).ok()?;
        Some((measured.estimates.row(0)[0] - measured.exact[0]) * f64::from(members))
    })?;
    let sigma = 1.0 / libm::sqrt(largest_theta(curve.epsilon, curve.delta));
    let curator = |members: u32| sigma / f64::from(members);
    let local = |members: u32| sigma / libm::sqrt(f64::from(members));
    let line = |name: &str, ink: usize, dashed: bool, points: Vec<(u32, f64)>| Series {
        name: name.to_owned(),
        ink,
        dashed,
        points: points.into_iter().map(|(x, mean)| Point { x: x.into(), mean, spread: 0.0 }).collect(),
    };
    let of = |h: usize| -> Vec<(u32, f64)> {
        let mine = all.iter().zip(&predicted).filter(|((one, _), _)| *one == h);
        mine.filter_map(|((_, members), error)| Some((*members, (*error)?))).collect()
    };
    let mut series = vec![
        line("local differential privacy", 2, false, curve.members.iter().map(|&n| (n, local(n))).collect()),
        line("trusted curator", 0, true, curve.members.iter().map(|&n| (n, curator(n))).collect()),
    ];
    series.extend(
        (curve.honest.iter().enumerate())
            .map(|(h, honest)| line(&format!("GOPA, rho = {honest}"), [1, 3][h % 2], false, of(h))),
    );
    let errors = |members: u32| -> Vec<f64> {
        let mine = runs.iter().zip(&measured).filter(|(run, _)| run.0 == members);
        mine.filter_map(|(_, error)| *error).collect()
    };
    let root = |errors: &[f64]| libm::sqrt(errors.iter().map(|error| error * error).sum::<f64>() / errors.len() as f64);
    let shown = curve.members.iter().filter(|members| **members <= curve.measured_up_to);
    series.push(line("GOPA, rho = 1, run", 4, true, shown.map(|&n| (n, root(&errors(n)) / f64::from(n))).collect()));
    outcome.plots.push(Plot {
        name: "error-by-members".to_owned(),
        title: "A private mean: error by the number of members".to_owned(),
        caption: format!(
            "Standard deviation of the mean of values in [0, 1] at epsilon = {}, delta = {}; dashed: a curator, and the root mean square over {} runs of the protocol.",
            curve.epsilon,
            curve.delta,
            curve.seeds.len()
        ),
        x: Labelled::log("members"),
        y: Labelled::log("error of the mean"),
        series,
    });
    let at =
        |h: usize, members: u32| of(h).into_iter().find(|(n, _)| *n == members).map_or(f64::MAX, |(_, error)| error);
    let (near, half) = (at(0, 1000) / curator(1000), at(1, 1000) / curator(1000));
    outcome.claims.push(Claim::new(
        "error-near-the-curators",
        "At n = 1,000 and rho = 1 the error is at most 1.1 times a trusted curator's",
        "the same order",
        format!("{near:.4} times; local {:.1} times", local(1000) / curator(1000)),
        near,
        near <= 1.1,
    ));
    outcome.claims.push(Claim::new(
        "error-half-honest",
        "With rho = 0.5 it is about sqrt 2 times as large",
        "sqrt(1 / rho)",
        format!("{half:.4} times the curator's"),
        half,
        (half - libm::sqrt(2.0)).abs() < 0.05,
    ));
    let scaled: Vec<f64> = curve
        .members
        .iter()
        .filter(|n| **n <= curve.measured_up_to)
        .flat_map(|&n| {
            let by = at(0, n) * f64::from(n);
            errors(n).into_iter().map(move |error| error / by).collect::<Vec<_>>()
        })
        .collect();
    let ratio = root(&scaled);
    outcome.claims.push(Claim::new(
        "error-measured",
        "Runs of the protocol have the error of the formula",
        "1",
        format!("{ratio:.3} times, over {} runs", scaled.len()),
        ratio,
        (ratio - 1.0).abs() < 0.15,
    ));
    Ok(())
}
