//! `sottovoce measure`.

use crate::{OutArguments, Output, RunArguments, screen};
use sottovoce_report::plot::number;
use sottovoce_report::statistic::missing_in_words;
use sottovoce_report::training::bound_or_infinity;
use sottovoce_run::facts::{Origin, PublicFacts};
use sottovoce_run::pipeline::{Directory, Outcome, Request};
use sottovoce_run::run_folder::{EstimateFigures, Summary};
use sottovoce_run::simulate::Halt;
use sottovoce_task::algorithms;
use sottovoce_task::load::load;
use sottovoce_task::task::{Task, Yields};
use std::path::PathBuf;

/// Measure a statistic of everybody's data in the simulator, and write a run directory with a report
///
/// No server gathers rows: agents exchange what the algorithm says, until all of them hold an estimate. The task says what is
/// measured, of which columns of a csv file with the header `agent,<column>...`, and who can exchange with whom:
///
///     name = "rooms"
///     algorithm = "gossip"
///     [data]
///     train = "ratings.csv"
///     [statistic]
///     kind = "mean"
///     columns = ["room", "cleanliness"]
///     [graph]
///     kind = "ring"
///     [run]
///     tolerance = 1e-6
///
/// With real processes: `sottovoce network`, and on machines of their own `sottovoce peer`, take the same task.
#[derive(clap::Args)]
#[command(verbatim_doc_comment, after_help = algorithms::help(&[Yields::Estimate]))]
pub struct Arguments {
    /// The task file
    task: PathBuf,

    #[command(flatten)]
    out: OutArguments,

    /// Another seed than the task's
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    #[command(flatten)]
    run: RunArguments,

    /// Check the task and its files, and say what would run; write nothing
    #[arg(long)]
    dry_run: bool,
}

pub fn run(arguments: &Arguments, output: Output) -> Result<(), Halt> {
    screen::watch_for_stop();
    let mut task = Task::read(&arguments.task)?;
    crate::expect(&task, &[Yields::Estimate], "measure")?;
    if let Some(seed) = arguments.seed {
        task.set_seed(seed)?;
    }
    if arguments.dry_run {
        return preview(&task, output);
    }
    let out = &arguments.out.out;
    let command =
        format!("sottovoce measure {} --seed {} --out {}", arguments.task.display(), task.run.seed, out.display());
    let request = Request {
        task: &task,
        directory: Some(Directory { path: out, force: arguments.out.force, commands: vec![command] }),
        threads: arguments.run.threads(),
        comparisons: false,
        charge: &mut Ok,
    };
    let mut shown = screen::Shown::new(output);
    let Outcome { loaded, summary, .. } = sottovoce_run::pipeline::run(request, &mut |news| shown.tell(news))?;
    drop(shown);
    if output.json {
        screen::say(serde_json::to_string(&summary).expect("a summary is JSON"))?;
    } else if !output.quiet {
        let ends = screen::ends(summary.quiet, loaded.task.run.tolerance.is_some());
        let guarantee = PublicFacts::of(&loaded).guarantee();
        screen::say(format!("{}\n{}", estimates(&summary), spent(&summary, &guarantee, ends)))?;
        screen::say(format!("Report: {}", out.join("report.html").display()))?;
    }
    Ok(())
}

/// What would run.
fn preview(task: &Task, output: Output) -> Result<(), Halt> {
    let loaded = load(task)?;
    let facts = PublicFacts::of(&loaded);
    if output.json {
        screen::say(serde_json::json!({
            "name": facts.name,
            "algorithm": facts.algorithm.name,
            "statistic": loaded.task.statistic.as_ref().map(|statistic| statistic.kind.name()),
            "columns": loaded.feature_names,
            "agents": facts.agents(),
            "rows": facts.points.iter().sum::<u64>(),
            "edges": loaded.edge_count(),
        }))?;
    } else if !output.quiet {
        let moved = loaded.values_moved().map_or(String::new(), |moved| format!("\nwarning: {moved}"));
        screen::say(format!("{}{moved}\nNothing was run: --dry-run.", facts.describe(Origin::Simulator)))?;
    }
    Ok(())
}

/// What was measured, in a line.
pub fn estimates(summary: &Summary) -> String {
    let Some(EstimateFigures {
        statistic,
        estimate,
        estimates_spread,
        informed,
        exact,
        error_max,
        error_predicted,
        error_bound,
        passed_over,
        ..
    }) = summary.estimate()
    else {
        return String::new();
    };
    let Some(spread) = estimates_spread else { return format!("The {statistic}: nobody has an estimate.") };
    let list = |values: &[f64]| {
        values.iter().map(|value| number::significant(*value, digits(*value, *spread))).collect::<Vec<_>>().join(", ")
    };
    let mut text = format!("The {statistic}: {}", list(&estimate.0));
    text += &match informed {
        1 => "; one agent knows it".to_owned(),
        _ if *spread == 0.0 => format!("; {} agents agree to the last digit", number::count(*informed)),
        _ => format!("; {} agents agree to within {}", number::count(*informed), number::significant(*spread, 2)),
    };
    if let (Some(exact), Some(error)) = (exact, error_max) {
        let error = number::significant(*error, 2);
        text += &format!("; exact: {}, and the farthest agent is off by {error}", list(&exact.0));
    }
    if let Some(deviation) = error_predicted {
        text += &format!("; standard deviation by the formula {}", number::significant(*deviation, 3));
    }
    if let Some(bound) = error_bound {
        text += &format!("; the theorem bounds the error of expected estimates by {}", number::significant(*bound, 2));
    }
    text += ".";
    if let Some(passed_over) = passed_over {
        text += &format!(" {}", missing_in_words(*passed_over));
    }
    text
}

/// How many digits of a value mean something where agents differ by so much: two beyond the first that differs, and nine at most.
fn digits(value: f64, spread: f64) -> usize {
    let (mut agreed, mut digits) = (value.abs() / spread, 2);
    while agreed >= 1.0 && digits < 9 {
        (agreed, digits) = (agreed / 10.0, digits + 1);
    }
    digits
}

/// What it cost, and against whom, in a line.
pub fn spent(summary: &Summary, guarantee: &str, ends: &str) -> String {
    let letters = summary.estimate().map_or(0, |figures| figures.letters_sent);
    format!(
        "{} wakes, {} letters, {} sent, {}{ends}; epsilon = {}{} at delta = {}, {guarantee}.",
        number::count(summary.wakes),
        number::count(letters),
        number::bytes(summary.bytes_sent),
        number::seconds(summary.seconds),
        bound_or_infinity(summary.epsilon.into()),
        summary.epsilon_mean.map_or(String::new(), |mean| {
            format!(" for the worst pair and {} on the mean over pairs", number::bound(mean))
        }),
        number::bound(summary.delta),
    )
}
