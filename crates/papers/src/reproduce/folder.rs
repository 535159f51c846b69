//! The output folder: one folder for each experiment, a page with all of them, and their results as JSON.

use super::bench::{Bench, PARTS, Settings, Watch, seal};
use super::outcome::{ExperimentOutcome, Table};
use super::results::{Report, Results, claims_table};
use super::verdict::judge;
use super::{EXPERIMENTS, Experiment, find, page, picture};
use sottovoce_run::train::Halt;
use sottovoce_task::error::{Mistake, quote};
use std::fs;
use std::path::Path;

/// The page with all results.
pub const PAGE: &str = "index.html";
/// All claims with their verdicts, for programs.
pub const RESULTS: &str = "results.json";
/// The result of one experiment.
const OUTCOME: &str = "outcome.json";

/// Runs an experiment, or takes what an earlier run with the same settings left in `out`, and writes its folder and the page of all.
pub fn run_one<'a>(
    experiment: &Experiment,
    settings: &'a Settings,
    out: &Path,
    watch: &'a mut Watch<'a>,
) -> Result<Report, Halt> {
    only_ours(out)?;
    if let Some(folder) = experiment.missing(&settings.data) {
        let what =
            format!("is not there, and {} needs it; accepted: --data with the folder of data sets", experiment.name);
        return Err(Mistake::file(&folder, what).into());
    }
    let folder = out.join(experiment.name);
    fs::create_dir_all(&folder).map_err(|error| Mistake::io(&folder, "created", &error))?;
    let seal = seal(experiment.name, experiment.toml, settings.quick);
    let outcome = match kept(&folder, &seal) {
        Some(outcome) => outcome,
        None => {
            let mut bench = Bench::new(experiment.name, experiment.toml, settings, Some(&folder), watch)?;
            let outcome = (experiment.run)(&mut bench)?;
            write(&folder, OUTCOME, serde_json::to_string_pretty(&(&seal, &outcome)).expect("an outcome is JSON"))?;
            // What a whole result is made of is not needed any more.
            let _ = fs::remove_file(folder.join(PARTS));
            outcome
        }
    };
    let report = judged(experiment, outcome, settings.quick, seal);
    write(&folder, "parameters.toml", experiment.toml)?;
    for table in report.outcome.tables.iter().chain([&claims_table(&report.claims)]) {
        write(&folder, &format!("{}.csv", table.name), csv(table))?;
    }
    for plot in &report.outcome.plots {
        let scene = picture::scene(plot);
        write(&folder, &format!("{}.svg", plot.name), scene.svg())?;
        write(&folder, &format!("{}.png", plot.name), scene.png())?;
    }
    let results = all_in(out, settings.quick);
    write(out, RESULTS, serde_json::to_string_pretty(&results).expect("results are JSON") + "\n")?;
    write(out, PAGE, page::html(&results))?;
    Ok(report)
}

/// All results of this program in a folder, quick or full ones.
pub fn all_in(out: &Path, quick: bool) -> Results {
    let report = |experiment: &Experiment| {
        let seal = seal(experiment.name, experiment.toml, quick);
        let outcome = kept(&out.join(experiment.name), &seal)?;
        Some(judged(experiment, outcome, quick, seal))
    };
    Results { experiments: EXPERIMENTS.iter().filter_map(report).collect(), version: env!("CARGO_PKG_VERSION") }
}

fn judged(experiment: &Experiment, outcome: ExperimentOutcome, quick: bool, seal: String) -> Report {
    let claims = judge(experiment, &outcome, quick);
    Report { name: experiment.name.to_owned(), quick, claims, outcome, seal }
}

fn kept(folder: &Path, seal: &str) -> Option<ExperimentOutcome> {
    let text = fs::read_to_string(folder.join(OUTCOME)).ok()?;
    let (found, outcome) = serde_json::from_str::<(String, ExperimentOutcome)>(&text).ok()?;
    (found == seal).then_some(outcome)
}

fn csv(table: &Table) -> Vec<u8> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    for row in std::iter::once(&table.columns).chain(&table.rows) {
        writer.write_record(row).expect("rows of one length, into memory");
    }
    writer.into_inner().expect("into memory")
}

/// A file appears whole or not at all.
fn write(folder: &Path, name: &str, bytes: impl AsRef<[u8]>) -> Result<(), Mistake> {
    let (file, partial) = (folder.join(name), folder.join(format!(".{name}.partial")));
    let written = fs::write(&partial, bytes).and_then(|()| fs::rename(&partial, &file));
    written.map_err(|error| Mistake::io(&file, "written", &error))
}

/// Refuses a folder that holds anything that is not ours.
fn only_ours(out: &Path) -> Result<(), Mistake> {
    let Ok(entries) = fs::read_dir(out) else { return Ok(()) };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if find(&name).is_none() && ![PAGE, RESULTS].contains(&&*name) && !name.ends_with(".partial") {
            let found = quote(name.as_bytes());
            let what = format!(
                "holds {found}, which is not of this command; accepted: a new folder, or one of an earlier run"
            );
            return Err(Mistake::file(out, what));
        }
    }
    Ok(())
}
