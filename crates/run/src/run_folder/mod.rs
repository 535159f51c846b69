//! The run directory: what a run leaves for people and for other programs.
//!
//! | file | what |
//! |---|---|
//! | `models.csv` | `agent,theta_0,...`: what each agent broadcast last, or would |
//! | `model.csv` | one row below the names of its features, in the place of these where all learn one model |
//! | `estimates.csv` | `agent,estimate` or `agent,estimate_0,...`, in the place of models where a statistic is measured |
//! | `pairs.csv` | `u,v,epsilon`: what is learned of u by v, where a guarantee is by pairs |
//! | `home.csv` | the same shape: what each agent keeps for itself; private runs only |
//! | `metrics.csv` | `wakes,vectors_sent,bytes_sent,objective,score_mean,score_std` over the run |
//! | | `wakes,letters_sent,bytes_sent,error_mean,error_std` where a statistic is measured |
//! | `edges.csv` | `a,b,weight`: the graph, where it was learned |
//! | `ledger.jsonl` | every charge of every agent, one JSON object a line |
//! | `summary.json` | the figures of the run ([`Summary`]) |
//! | `report.html` | the report, self-contained |
//! | `plots/` | its pictures as SVG and PNG |
//! | `task.toml` | the task as resolved |
//!
//! Which of them may be shown to whom is listed in [`crate::artefacts`]. Agents stand in the order of their names. Numbers are written so that reading them gives the same bits.

mod estimates;
mod pages;
mod summary;

pub use estimates::{summary_of_estimates, write_estimates, write_told_estimates};
pub use summary::{
    Accounting, EstimateFigures, GraphFigures, ModelBits, ModelFigures, Observed, OneOrMany, Scores, Summary, Yielded,
};

use crate::facts::{PublicFacts, Told};
use crate::ledger_file::{self, Header};
use crate::one_model::OneModel;
use crate::pairs::{PairFigures, mean_of};
use crate::train::Trained;
use sha2::{Digest, Sha256};
use sottovoce_core::{Graph, PeerId, Rows};
use sottovoce_report::page::Picture;
use sottovoce_report::training::{self, Report, Sample, Sweep};
use sottovoce_task::error::Mistake;
use sottovoce_task::folder::Folder;
use sottovoce_task::input::edges_to_csv;
use sottovoce_task::load::Loaded;
use sottovoce_task::task::{Observer, Pairs, Task, Yields};
use std::fmt::Write as _;

/// Writes the run directory of a simulated run: everything about it, exact data included. `runs` are the runs to compare, the run itself
/// last; `commands` give it again; `sweep` is for the report of a private run.
pub fn write(
    folder: &Folder,
    loaded: &Loaded,
    runs: &[&Trained],
    commands: Vec<String>,
    sweep: Option<Sweep>,
) -> Result<Summary, Mistake> {
    let facts = PublicFacts::of(loaded);
    let told = Told::of(&facts, runs.last().expect("the run itself is among the runs"));
    let exact = Exact { loaded, runs, sweep };
    let summary = exact.summary(&facts, &told, digest_of_run(&facts, &told, &loaded.task)?);
    write_exact(folder, &facts, &told, summary, exact, commands)
}

/// The figures of a simulated run, whose directory is not written.
pub fn summary(loaded: &Loaded, runs: &[&Trained]) -> Result<Summary, Mistake> {
    let facts = PublicFacts::of(loaded);
    let told = Told::of(&facts, runs.last().expect("the run itself is among the runs"));
    let digest = digest_of_run(&facts, &told, &loaded.task)?;
    let summary = Exact { loaded, runs, sweep: None }.summary(&facts, &told, digest);
    Ok(summary.with_pairs(&facts, mean_of(&facts, told.ledgers)))
}

/// Writes the run directory of real peers, from public facts and what they told each other.
///
/// # Privacy
/// Nothing else can be written: neither type holds data, so a score, a loss or a digest of a file does not compile here.
pub fn write_told(
    folder: &Folder,
    facts: &PublicFacts,
    told: &Told<'_>,
    commands: Vec<String>,
) -> Result<Summary, Mistake> {
    let pairs = PairFigures::of(facts, told.ledgers);
    let summary = Summary::of(facts, told, digest_of_told(facts, told));
    let summary = summary.with_pairs(facts, pairs.as_ref().map(|pairs| pairs.both));
    write_released(folder, facts, told, pairs.as_ref())?;
    folder.write("metrics.csv", metrics_csv(told.traffic.iter().map(|&traffic| traffic.into())))?;
    let report = pages::of_told(facts, told, commands, &summary, pairs.as_ref());
    write_figures(folder, &summary, &report)?;
    Ok(summary)
}

/// The same with what the peers' owners have revealed, computed from exact data. **Not private.**
pub fn write_revealed(
    folder: &Folder,
    facts: &PublicFacts,
    told: &Told<'_>,
    loaded: &Loaded,
    runs: &[&Trained],
    commands: Vec<String>,
) -> Result<Summary, Mistake> {
    let exact = Exact { loaded, runs, sweep: None };
    let summary = exact.summary(facts, told, digest_of_told(facts, told));
    write_exact(folder, facts, told, summary, exact, commands)
}

/// What only whoever may see all data may see.
struct Exact<'r> {
    loaded: &'r Loaded,
    runs: &'r [&'r Trained],
    sweep: Option<Sweep>,
}

impl Exact<'_> {
    fn summary(&self, facts: &PublicFacts, told: &Told<'_>, digest: String) -> Summary {
        let (run, others) = self.runs.split_last().expect("the run itself is among the runs");
        Summary::of(facts, told, digest).with_exact(facts, run, others.first().copied(), self.loaded)
    }
}

fn write_exact(
    folder: &Folder,
    facts: &PublicFacts,
    told: &Told<'_>,
    summary: Summary,
    exact: Exact<'_>,
    commands: Vec<String>,
) -> Result<Summary, Mistake> {
    let Exact { loaded, runs, sweep } = exact;
    let run = runs.last().expect("the run itself is among the runs");
    let pairs = PairFigures::of(facts, told.ledgers);
    let summary = summary.with_pairs(facts, pairs.as_ref().map(|pairs| pairs.both));
    write_released(folder, facts, told, pairs.as_ref())?;
    if let Some(home) = &run.home {
        folder.write("home.csv", models_csv(facts, &home.models, &vec![true; facts.agents()]))?;
    }
    let scored = |sample: &Sample| if loaded.learns_nothing() { sample.without_scores() } else { *sample };
    folder.write("metrics.csv", metrics_csv(run.samples.iter().map(scored)))?;
    let told = pages::of_told(facts, told, commands, &summary, pairs.as_ref());
    let report = pages::with_exact(told, loaded, runs, sweep);
    write_figures(folder, &summary, &report)?;
    Ok(summary)
}

/// The files that hold what was told, or follow from it: models, the learned graph, the ledger, what pairs learn of each other, the task.
fn write_released(
    folder: &Folder,
    facts: &PublicFacts,
    told: &Told<'_>,
    pairs: Option<&PairFigures>,
) -> Result<(), Mistake> {
    match facts.algorithm.yields {
        Yields::OneModel => folder.write("model.csv", model_csv(facts, told.one.as_ref()))?,
        _ => folder.write("models.csv", models_csv(facts, told.models, &told.is_told))?,
    }
    if let Some(graph) = told.graph {
        folder.write("edges.csv", edges_csv(&facts.names, graph))?;
    }
    folder.write("ledger.jsonl", ledger_of(facts, told))?;
    if let Some(pairs) = pairs {
        folder.write("pairs.csv", pairs.csv(&facts.names))?;
    }
    folder.write("task.toml", &facts.task)
}

fn write_figures(folder: &Folder, summary: &Summary, report: &Report) -> Result<(), Mistake> {
    folder.write("summary.json", serde_json::to_string_pretty(summary).expect("a summary is JSON") + "\n")?;
    let pictures = training::plots(report);
    write_pictures(folder, &pictures)?;
    folder.write("report.html", training::html(report, &pictures))
}

fn write_pictures(folder: &Folder, pictures: &[Picture]) -> Result<(), Mistake> {
    folder.folder("plots")?;
    for picture in pictures {
        folder.write(&format!("plots/{}.svg", picture.file_stem), &picture.svg)?;
        folder.write(&format!("plots/{}.png", picture.file_stem), &picture.png)?;
    }
    Ok(())
}

fn ledger_of(facts: &PublicFacts, told: &Told<'_>) -> String {
    let header = Header::of(facts.unit, &facts.observer);
    let by_mean = facts.privacy.is_some_and(|privacy| privacy.pairs == Pairs::Mean);
    let by_mean = by_mean || matches!(facts.observer, Observer::GraphWalk(_));
    let header = header.map(|header| if by_mean { header.with_graph(&facts.graph) } else { header });
    ledger_file::lines(header.as_ref(), facts.names.iter().map(String::as_str).zip(told.ledgers))
}

/// What identifies a simulated run.
fn digest_of_run(facts: &PublicFacts, told: &Told<'_>, task: &Task) -> Result<String, Mistake> {
    Ok(match facts.privacy {
        Some(_) => digest_of_told(facts, told),
        // PRIVACY: the contents of files are hashed only where the task promises nothing.
        None => digest(&[
            task.fingerprint()?.as_bytes(),
            told.algorithm.as_bytes(),
            &told.models.values().iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>(),
            ledger_of(facts, told).as_bytes(),
            &told.graph.map_or(Vec::new(), |graph| edges_csv(&facts.names, graph)),
        ]),
    })
}

/// What identifies a run of which no data may be in it: the task without its files, and what everyone can see anyway.
fn digest_of_told(facts: &PublicFacts, told: &Told<'_>) -> String {
    digest(&[
        b"what was told",
        facts.task_without_files.as_bytes(),
        told.algorithm.as_bytes(),
        &models_csv(facts, told.models, &told.is_told),
        ledger_of(facts, told).as_bytes(),
        &told.graph.map_or(Vec::new(), |graph| edges_csv(&facts.names, graph)),
    ])
}

/// The SHA-256 of parts, each behind its length. A last part that is empty is as good as absent.
fn digest(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    let absent = usize::from(parts.last().is_some_and(|last| last.is_empty()));
    for part in &parts[..parts.len() - absent] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Models of the agents that are shown, as csv.
fn models_csv(facts: &PublicFacts, models: &Rows, shown: &[bool]) -> Vec<u8> {
    rows_csv(facts, (0..facts.dimension).map(|k| format!("theta_{k}")), models, shown)
}

/// One model below the names of its features, as csv; the names alone where nobody has it.
fn model_csv(facts: &PublicFacts, one: Option<&OneModel>) -> Vec<u8> {
    let mut csv = csv::WriterBuilder::new().from_writer(Vec::new());
    let written = (|| {
        csv.write_record(&facts.feature_names)?;
        if let Some(one) = one {
            csv.write_record(one.model.iter().map(f64::to_string))?;
        }
        csv.flush()?;
        Ok::<_, csv::Error>(())
    })();
    written.expect("memory can be written");
    csv.into_inner().expect("memory can be written")
}

/// One row for each of the agents that are shown, as csv.
fn rows_csv(facts: &PublicFacts, header: impl Iterator<Item = String>, models: &Rows, shown: &[bool]) -> Vec<u8> {
    let mut csv = csv::WriterBuilder::new().from_writer(Vec::new());
    let written = (|| {
        csv.write_field("agent")?;
        csv.write_record(header)?;
        for (k, name) in facts.names.iter().enumerate().filter(|(k, _)| shown[*k]) {
            csv.write_field(name)?;
            csv.write_record(models.row(k).iter().map(f64::to_string))?;
        }
        csv.flush()?;
        Ok::<_, csv::Error>(())
    })();
    written.expect("memory can be written");
    csv.into_inner().expect("memory can be written")
}

/// A graph as a file of edges, which a task can read.
fn edges_csv(names: &[String], graph: &Graph) -> Vec<u8> {
    let named = |(a, b, weight): (PeerId, PeerId, f64)| (&*names[a.index()], &*names[b.index()], weight);
    edges_to_csv(graph.edges().map(named))
}

fn metrics_csv(samples: impl Iterator<Item = Sample>) -> String {
    let mut text = String::from("wakes,vectors_sent,bytes_sent,objective,score_mean,score_std\n");
    let or_empty = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for sample in samples {
        let _ = writeln!(
            text,
            "{},{},{},{},{},{}",
            sample.wakes,
            sample.vectors_sent,
            sample.bytes_sent,
            or_empty(sample.objective),
            or_empty(sample.score_mean),
            or_empty(sample.score_std)
        );
    }
    text
}
