//! The run directory of a statistic: estimates in the place of models.

use super::summary::Summary;
use super::{digest_of_run, digest_of_told, ledger_of, pages, rows_csv, write_pictures};
use crate::facts::{PublicFacts, Told};
use crate::measure::Measured;
use crate::pairs::{PairFigures, mean_of};
use sottovoce_report::statistic::{self, AgentEstimate, Report, Sample};
use sottovoce_report::training::bound_or_infinity;
use sottovoce_task::error::Mistake;
use sottovoce_task::folder::Folder;
use sottovoce_task::load::Loaded;
use sottovoce_task::task::Statistic;
use std::fmt::Write as _;

/// Writes the run directory of a simulated measurement, the exact value included; `commands` give it again.
pub fn write_estimates(
    folder: &Folder,
    loaded: &Loaded,
    statistic: &Statistic,
    run: &Measured,
    commands: Vec<String>,
) -> Result<Summary, Mistake> {
    let facts = PublicFacts::of(loaded);
    let told = Told::of_measured(&facts, run);
    let pairs = PairFigures::of(&facts, told.ledgers);
    let digest = digest_of_run(&facts, &told, &loaded.task)?;
    let summary = Summary::of_estimates(&facts, &told, statistic, Some(&run.exact), digest);
    let summary = summary.with_pairs(&facts, pairs.as_ref().map(|pairs| pairs.both));
    let summary = summary.with_bound(run.bound.last().copied());
    let seen = Seen { exact: Some(&run.exact), samples: &run.samples, bound: &run.bound, pairs: pairs.as_ref() };
    write(folder, &facts, &told, seen, &summary, commands)?;
    Ok(summary)
}

/// The figures of a simulated measurement, whose directory is not written.
pub fn summary_of_estimates(loaded: &Loaded, statistic: &Statistic, run: &Measured) -> Result<Summary, Mistake> {
    let facts = PublicFacts::of(loaded);
    let told = Told::of_measured(&facts, run);
    let digest = digest_of_run(&facts, &told, &loaded.task)?;
    let summary = Summary::of_estimates(&facts, &told, statistic, Some(&run.exact), digest);
    Ok(summary.with_pairs(&facts, mean_of(&facts, told.ledgers)).with_bound(run.bound.last().copied()))
}

/// Writes the run directory of real peers that measured a statistic, from public facts and what they told each other.
pub fn write_told_estimates(
    folder: &Folder,
    facts: &PublicFacts,
    statistic: &Statistic,
    told: &Told<'_>,
    commands: Vec<String>,
) -> Result<Summary, Mistake> {
    let pairs = PairFigures::of(facts, told.ledgers);
    let summary = Summary::of_estimates(facts, told, statistic, None, digest_of_told(facts, told));
    let summary = summary.with_pairs(facts, pairs.as_ref().map(|pairs| pairs.both));
    let sample = |traffic: &crate::facts::Traffic| Sample {
        wakes: traffic.wakes,
        letters_sent: traffic.letters_sent,
        bytes_sent: traffic.bytes_sent,
        ..Sample::default()
    };
    let samples: Vec<Sample> = told.traffic.iter().map(sample).collect();
    let seen = Seen { exact: None, samples: &samples, bound: &[], pairs: pairs.as_ref() };
    write(folder, facts, told, seen, &summary, commands)?;
    Ok(summary)
}

/// What was seen of a run, and what only a simulation knows.
#[derive(Clone, Copy)]
struct Seen<'s> {
    exact: Option<&'s Vec<f64>>,
    samples: &'s [Sample],
    /// By sample, where a theorem says something.
    bound: &'s [f64],
    /// What each pair is protected by, where guarantees are by pairs.
    pairs: Option<&'s PairFigures>,
}

fn write(
    folder: &Folder,
    facts: &PublicFacts,
    told: &Told<'_>,
    seen: Seen<'_>,
    summary: &Summary,
    commands: Vec<String>,
) -> Result<(), Mistake> {
    let names = (0..facts.dimension).map(|k| match facts.dimension {
        1 => "estimate".to_owned(),
        _ => format!("estimate_{k}"),
    });
    folder.write("estimates.csv", rows_csv(facts, names, told.models, &told.is_told))?;
    folder.write("metrics.csv", metrics_csv(seen.samples))?;
    folder.write("ledger.jsonl", ledger_of(facts, told))?;
    if let Some(pairs) = seen.pairs {
        folder.write("pairs.csv", pairs.csv(&facts.names))?;
    }
    folder.write("task.toml", &facts.task)?;
    folder.write("summary.json", serde_json::to_string_pretty(summary).expect("a summary is JSON") + "\n")?;
    let report =
        Report { pairs: seen.pairs.map(PairFigures::by_distance), ..page(facts, told, seen, summary, commands) };
    let pictures = statistic::plots(&report);
    write_pictures(folder, &pictures)?;
    folder.write("report.html", statistic::html(&report, &pictures))
}

fn metrics_csv(samples: &[Sample]) -> String {
    let mut text = String::from("wakes,letters_sent,bytes_sent,error_mean,error_std\n");
    let or_empty = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for sample in samples {
        let (mean, deviation) = (or_empty(sample.error_mean), or_empty(sample.error_std));
        let _ = writeln!(text, "{},{},{},{mean},{deviation}", sample.wakes, sample.letters_sent, sample.bytes_sent);
    }
    text
}

fn page(facts: &PublicFacts, told: &Told<'_>, seen: Seen<'_>, summary: &Summary, commands: Vec<String>) -> Report {
    let figures = summary.estimate().expect("a statistic was measured");
    let agent = |k: usize| AgentEstimate {
        name: facts.names[k].clone(),
        rows: facts.points[k],
        estimate: told.models.row(k).to_vec(),
    };
    Report {
        title: facts.name.clone(),
        subtitle: pages::subtitle(facts, told),
        privacy: facts.privacy_line(told.origin),
        statistic: figures.statistic.to_owned(),
        columns: facts
            .statistic
            .as_ref()
            .map_or(Vec::new(), |statistic| statistic.numbers(statistic.columns.as_deref().unwrap_or_default())),
        estimate: figures.estimate.0.clone(),
        exact: seen.exact.cloned(),
        error_predicted: figures.error_predicted,
        passed_over: figures.passed_over.unwrap_or(0),
        agents: (0..facts.agents()).filter(|&k| told.is_told[k]).map(agent).collect(),
        samples: seen.samples.to_vec(),
        bound: seen.bound.to_vec(),
        agents_in_all: facts.agents() as u64,
        seconds: told.seconds,
        epsilon: bound_or_infinity(summary.epsilon.into()),
        delta: summary.delta,
        guarantee: facts.guarantee(),
        pairs: None,
        origins: pages::origins(facts, told.origin, commands, summary.digest.clone()),
    }
}
