//! `sottovoce train`.

use crate::{OutArguments, Output, RunArguments, screen};
use sottovoce_lab::folder::Folder;
use sottovoce_lab::load::{Loaded, load};
use sottovoce_lab::plot::number;
use sottovoce_lab::run_folder::{self, Summary};
use sottovoce_lab::task::{Algorithm, Task};
use sottovoce_lab::train::{Halt, train};
use std::path::PathBuf;

#[derive(clap::Args)]
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

    /// Check the task and its files, say what would run, write nothing
    #[arg(long)]
    dry_run: bool,
}

pub fn run(arguments: &Arguments, output: Output) -> Result<(), Halt> {
    screen::watch_for_stop();
    let mut task = Task::read(&arguments.task)?;
    if let Some(seed) = arguments.seed {
        task.set_seed(seed)?;
    }
    if arguments.dry_run {
        let loaded = load(&task)?;
        if output.json {
            screen::say(sizes(&loaded))?;
        } else if !output.quiet {
            screen::say(format!("{}\nNothing was run: --dry-run.", describe(&loaded)))?;
        }
        return Ok(());
    }
    let folder = Folder::begin(&arguments.out.out, arguments.out.force, run_folder::FILES)?;
    let loaded = load(&task)?;
    if !output.quiet && !output.json {
        screen::say(describe(&loaded))?;
    }
    let threads = arguments.run.threads();
    let bar = screen::Bar::new(output, loaded.task.algorithm.name());
    let trained = train(&loaded, loaded.task.algorithm, threads, &mut |progress| bar.show(progress))?;
    drop(bar);
    let alone = match loaded.task.algorithm {
        Algorithm::Local => None,
        _ => Some(train(&loaded, Algorithm::Local, threads, &mut |_| std::ops::ControlFlow::Continue(()))?),
    };
    let runs: Vec<_> = alone.iter().chain([&trained]).collect();
    let command = format!(
        "sottovoce train {} --seed {} --out {}",
        arguments.task.display(),
        loaded.task.run.seed,
        arguments.out.out.display()
    );
    let summary = run_folder::write(&folder, &loaded, &runs, vec![command])?;
    folder.finish()?;
    if output.json {
        screen::say(serde_json::to_string(&summary).expect("a summary is JSON"))?;
    } else if !output.quiet {
        screen::say(tell(&summary, loaded.task.run.tolerance.is_some()))?;
        screen::say(format!("Report: {}", arguments.out.out.join("report.html").display()))?;
    }
    Ok(())
}

/// What would run, for programs.
fn sizes(loaded: &Loaded) -> serde_json::Value {
    let problem = &loaded.problem;
    serde_json::json!({
        "name": loaded.task.name,
        "algorithm": loaded.task.algorithm.name(),
        "agents": problem.agents(),
        "dimension": problem.dimension(),
        "points": problem.data.len(),
        "edges": problem.graph.edge_count(),
    })
}

/// What is about to run, in a line or two.
pub fn describe(loaded: &Loaded) -> String {
    let problem = &loaded.problem;
    format!(
        "{}: {} agents, {} features, {} training points, {} edges; {}\n{}",
        loaded.task.name,
        number::count(problem.agents() as u64),
        number::count(problem.dimension() as u64),
        number::count(problem.data.len() as u64),
        number::count(problem.graph.edge_count() as u64),
        loaded.task.algorithm.name(),
        run_folder::privacy_line(&loaded.task)
    ) + &loaded.warning().map_or(String::new(), |warning| {
        format!(
            "
warning: {warning}"
        )
    })
}

fn tell(summary: &Summary, tolerance: bool) -> String {
    let mut text = match (summary.accuracy, summary.rmse) {
        (Some(scores), _) | (None, Some(scores)) => format!(
            "{}: {} alone, {} together; {} agents gain, {} lose.",
            if summary.accuracy.is_some() { "Mean test accuracy" } else { "Mean test RMSE" },
            scores.local_mean.map_or("-".to_owned(), number::score),
            number::score(scores.mean),
            number::count(scores.agents_gain),
            number::count(scores.agents_lose)
        ),
        (None, None) => "No test points, so no scores.".to_owned(),
    };
    text += &format!(
        "\n{} wakes, {} vectors, {} sent, {}{}; objective {}.",
        number::count(summary.wakes),
        number::count(summary.vectors_sent),
        number::bytes(summary.bytes_sent),
        number::seconds(summary.seconds),
        match (summary.quiet, tolerance) {
            (true, _) => ", all quiet",
            (false, true) => ", NOT quiet: more wakes-per-agent are needed",
            (false, false) => "",
        },
        summary.objective.map_or("-".to_owned(), |objective| number::significant(objective, 6))
    );
    text
}
