//! `sottovoce reproduce`: the figures and tables of the papers, run again, with what each paper says beside what we find.

use crate::{Output, RunArguments, screen};
use clap::builder::{PossibleValue, PossibleValuesParser};
use sottovoce_papers::reproduce::{EXPERIMENTS, Experiment, Judged, Report, Settings, Verdict, all_in, run_one};
use sottovoce_report::plot::number;
use sottovoce_run::train::Halt;
use sottovoce_task::error::Mistake;
use std::path::PathBuf;
use std::time::Instant;

#[derive(clap::Args)]
pub struct Arguments {
    /// What to run: a figure or a table, `all` of them, or `list` to see them
    #[arg(value_parser = names(), hide_possible_values = true)]
    what: String,

    /// A small version, in seconds instead of minutes: fewer agents, runs and dimensions
    #[arg(long)]
    quick: bool,

    /// The folder to write. What an earlier run with the same settings has finished there is taken over [default: sottovoce-reproduce, or
    /// sottovoce-reproduce-quick]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,

    /// Where data sets are
    #[arg(long, value_name = "DIR", default_value = "../shared/data")]
    data: PathBuf,

    #[command(flatten)]
    run: RunArguments,
}

fn names() -> PossibleValuesParser {
    let fixed = ["list", "all"].map(PossibleValue::new);
    let experiments = EXPERIMENTS.iter().map(|experiment| PossibleValue::new(experiment.name));
    PossibleValuesParser::new(fixed.into_iter().chain(experiments))
}

/// Runs it; says whether every claim came out as expected.
pub fn run(arguments: &Arguments, output: Output) -> Result<bool, Halt> {
    if arguments.what == "list" {
        list(output)?;
        return Ok(true);
    }
    screen::watch_for_stop();
    let folder = if arguments.quick { "sottovoce-reproduce-quick" } else { "sottovoce-reproduce" };
    let out = arguments.out.clone().unwrap_or_else(|| PathBuf::from(folder));
    let settings = Settings { quick: arguments.quick, threads: arguments.run.threads(), data: arguments.data.clone() };
    let mut failed = false;
    for experiment in EXPERIMENTS.iter().filter(|e| arguments.what == "all" || arguments.what == e.name) {
        let missing = experiment.missing(&settings.data);
        if let Some(folder) = missing.filter(|_| arguments.what == "all") {
            eprintln!("SKIPPED {}: its data set is not at {}", experiment.name, folder.display());
            continue;
        }
        let began = Instant::now();
        let bar = screen::Bar::new(output, experiment.name);
        let report = run_one(experiment, &settings, &out, &mut |stage, done, all| bar.show_stage(stage, done, all))?;
        drop(bar);
        failed |= report.has_failed();
        if !output.quiet && !output.json {
            tell(experiment, &report, began.elapsed().as_secs_f64())?;
        }
    }
    if output.json {
        let results = all_in(&out, arguments.quick);
        screen::say(serde_json::to_string_pretty(&results).expect("results are JSON"))?;
    } else if !output.quiet {
        screen::say(format!("Page: {}", out.join("index.html").display()))?;
    }
    Ok(!failed)
}

fn list(output: Output) -> Result<(), Mistake> {
    if output.json {
        let one = |e: &Experiment| serde_json::json!({ "name": e.name, "title": e.title, "paper": e.paper.title, "data": e.data });
        return screen::say(serde_json::Value::from_iter(EXPERIMENTS.iter().map(one)));
    }
    let mut rows = vec![["name", "what", "paper"].map(str::to_owned).to_vec()];
    rows.extend(EXPERIMENTS.iter().map(|e| [e.name, e.title, e.paper.folder].map(str::to_owned).to_vec()));
    for [name, what, paper] in rows.iter().filter_map(|row| <&[String; 3]>::try_from(&row[..]).ok()) {
        screen::say(format!("{name:<14} {what:<66} {paper}"))?;
    }
    Ok(())
}

fn tell(experiment: &Experiment, report: &Report, seconds: f64) -> Result<(), Mistake> {
    screen::say(format!("{}: {}, {}", experiment.name, experiment.title, number::seconds(seconds)))?;
    for Judged { claim, verdict, why } in &report.claims {
        screen::say(format!("  {}: {}", verdict.word(), claim.says))?;
        screen::say(format!("    paper: {}; ours: {}", claim.paper, claim.ours))?;
        if *verdict != Verdict::Holds {
            screen::say(format!("    {why}"))?;
        }
    }
    screen::say("")
}
