//! Table 1 of the 2018 paper: MovieLens-100K, in the paper's setting and in a sound one, which are never mixed.

use super::bench::Bench;
use super::outcome::{Claim, ExperimentOutcome, Table};
use crate::movielens::{Options, Setting, table_1};
use sottovoce_run::train::Halt;

/// Runs it.
pub fn run(bench: &mut Bench<'_>) -> Result<ExperimentOutcome, Halt> {
    let threads = bench.threads();
    let options = if bench.is_quick() { Options::quick(threads) } else { Options::full(threads) };
    let folder = bench.data().join("movielens_100k");
    let table = table_1(&folder, &options, &mut |done, total| bench.tell("worlds and cells", done, total))?;
    let mut outcome = ExperimentOutcome::default();
    let number = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.4}"));
    for setting in Setting::ALL {
        let columns = ["calibration", "epsilon", "true epsilon", "paper", "ours", "spread"].map(str::to_owned).to_vec();
        let rows = table.cells.iter().filter(|cell| cell.setting == setting).map(|cell| {
            let kind = if cell.method.name() == "paper-noise" { "not DP" } else { "sound" };
            let epsilon = cell.epsilon.map_or("-".to_owned(), |epsilon| epsilon.to_string());
            vec![
                format!("{} ({kind} given what the setting takes to be public)", cell.method.label()),
                epsilon,
                number(cell.spent),
                number(cell.paper),
                number(Some(cell.mean())),
                number(cell.spread()),
            ]
        });
        let rows = rows.collect();
        let caption = format!("Test error (RMSE), mean over users and {} runs: {}", table.runs, setting.label());
        outcome.tables.push(Table { name: setting.name().to_owned(), caption, columns, rows });
    }
    for (k, verdict) in table.verdicts().into_iter().enumerate() {
        let paper = match k {
            0 => "0.9502",
            1 => "0.9527 with its own noise",
            _ => "below local models",
        };
        let id: String = verdict.what.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let ours = format!("{:.4}, held against {:.4}", verdict.measured, verdict.bound);
        let id = id.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-").to_lowercase();
        outcome.claims.push(Claim::new(&id, &verdict.what, paper, ours, verdict.measured, verdict.holds));
    }
    Ok(outcome)
}
