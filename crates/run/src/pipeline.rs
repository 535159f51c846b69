//! A task from its files, or from memory, to what came of it: the one way that commands and other programs take.
//!
//! ```text
//! load -> charge -> tell the facts -> run -> run what it is compared with -> write the run directory
//! ```

use crate::artefacts::{Command, names};
use crate::baselines::baselines;
use crate::facts::PublicFacts;
use crate::measure::{Measured, measure};
use crate::run_folder::{self, Summary};
use crate::simulate::{Halt, Progress};
use crate::sweep::sweep;
use crate::train::{Trained, train};
use sottovoce_report::training::Sweep;
use sottovoce_task::error::Mistake;
use sottovoce_task::folder::Folder;
use sottovoce_task::load::{Loaded, load};
use sottovoce_task::task::{Statistic, Task, Yields};
use std::ops::ControlFlow;
use std::path::Path;

/// A run that somebody wants.
pub struct Request<'r> {
    /// The task, from a file or from memory.
    pub task: &'r Task,
    /// The run directory; `None`: nothing is written.
    pub directory: Option<Directory<'r>>,
    /// Worker threads. They change the speed, never the result.
    pub threads: usize,
    /// Whether to run also what the run is compared with: other models, and other budgets of a private task.
    pub comparisons: bool,
    /// Charges the loaded task to a source of data before anything of it runs, and leaves out what is over its limit.
    pub charge: &'r mut dyn FnMut(Loaded) -> Result<Loaded, Mistake>,
}

/// Where a run directory goes.
#[derive(Clone, Debug)]
pub struct Directory<'r> {
    /// The folder to make; it appears whole or not at all.
    pub path: &'r Path,
    /// Whether it may replace one that holds nothing else than a run.
    pub force: bool,
    /// The commands that give the run again, for its report.
    pub commands: Vec<String>,
}

/// What whoever waits for a run may want to show.
pub enum News<'n> {
    /// Everything is loaded and charged, and is about to run.
    Begins(&'n PublicFacts),
    /// What the user should know, in a line.
    Warning(&'n str),
    /// How far the run is.
    Run(&'n str, Progress),
    /// How far something is that it is compared with.
    Comparison(&'n str, Progress),
    /// How many of the runs with other budgets are done, and of how many.
    Budgets(u64, u64),
}

/// What came of a run.
pub struct Outcome {
    /// The task as it ran, with its data and every default filled in.
    pub loaded: Loaded,
    /// The figures.
    pub summary: Summary,
    /// What the algorithm yielded.
    pub yielded: Yielded,
}

/// What an algorithm yielded: what its description says.
pub enum Yielded {
    /// A model for each agent, or one for all.
    Models {
        /// The run itself.
        run: Box<Trained>,
        /// What it is compared with: first agents that learn alone in the same way.
        compared: Vec<Trained>,
    },
    /// A statistic of everybody's data.
    Estimate(Box<Measured>),
}

type Watch<'w> = dyn FnMut(News<'_>) -> Result<(), Halt> + 'w;

/// Runs a task in the simulator. `watch` is told the news, a few times a second; its error ends the run, and nothing is written.
pub fn run(request: Request<'_>, watch: &mut Watch<'_>) -> Result<Outcome, Halt> {
    let Request { task, directory, threads, comparisons, charge } = request;
    let command = if task.statistic.is_some() { Command::Measure } else { Command::Train };
    let folder = match directory {
        None => None,
        Some(Directory { path, force, commands }) => Some((Folder::begin(path, force, &names(command))?, commands)),
    };
    let loaded = charge(load(task)?)?;
    let facts = PublicFacts::of(&loaded);
    facts.warnings.iter().try_for_each(|warning| watch(News::Warning(warning)))?;
    loaded.values_moved().iter().try_for_each(|moved| watch(News::Warning(moved)))?;
    watch(News::Begins(&facts))?;
    let (summary, yielded) = match &loaded.task.statistic {
        Some(statistic) => estimate(&loaded, statistic, threads, folder, watch)?,
        None => models(&loaded, threads, comparisons, folder, watch)?,
    };
    Ok(Outcome { loaded, summary, yielded })
}

/// Runs a task that learns models, and what it is compared with.
fn models(
    loaded: &Loaded,
    threads: usize,
    comparisons: bool,
    folder: Option<(Folder, Vec<String>)>,
    watch: &mut Watch<'_>,
) -> Result<(Summary, Yielded), Halt> {
    let algorithm = loaded.task.algorithm;
    let run = watched(watch, |watch| {
        train(loaded, algorithm, threads, &mut |progress| watch(News::Run(algorithm.name, progress)))
    })?;
    let beside = watched(watch, |watch| {
        baselines(loaded, threads, comparisons, &mut |name, progress| watch(News::Comparison(name, progress)))
    })?;
    if let Some(skipped) = beside.skipped.as_deref().filter(|_| comparisons) {
        watch(News::Warning(skipped))?;
    }
    let swept = if comparisons { other_budgets(loaded, &run, threads, watch)? } else { None };
    let runs: Vec<_> = beside.runs.iter().chain([&run]).collect();
    let summary = match folder {
        None => run_folder::summary(loaded, &runs)?,
        Some((folder, commands)) => {
            let summary = run_folder::write(&folder, loaded, &runs, commands, swept)?;
            folder.finish()?;
            summary
        }
    };
    Ok((summary, Yielded::Models { run: Box::new(run), compared: beside.runs }))
}

/// Runs a task that measures a statistic.
fn estimate(
    loaded: &Loaded,
    statistic: &Statistic,
    threads: usize,
    folder: Option<(Folder, Vec<String>)>,
    watch: &mut Watch<'_>,
) -> Result<(Summary, Yielded), Halt> {
    let name = loaded.task.algorithm.name;
    let run =
        watched(watch, |watch| measure(loaded, statistic, threads, &mut |progress| watch(News::Run(name, progress))))?;
    let summary = match folder {
        None => run_folder::summary_of_estimates(loaded, statistic, &run)?,
        Some((folder, commands)) => {
            let summary = run_folder::write_estimates(&folder, loaded, statistic, &run, commands)?;
            folder.finish()?;
            summary
        }
    };
    Ok((summary, Yielded::Estimate(Box::new(run))))
}

/// The pictures of a private run that need more runs; none for others.
fn other_budgets(loaded: &Loaded, run: &Trained, threads: usize, watch: &mut Watch<'_>) -> Result<Option<Sweep>, Halt> {
    if loaded.task.privacy.is_none() || loaded.task.algorithm.yields == Yields::OneModel {
        return Ok(None);
    }
    let swept = |watch: &mut dyn FnMut(News<'_>) -> ControlFlow<()>| {
        sweep(loaded, run, threads, &mut |done, total| watch(News::Budgets(done, total)))
    };
    watched(watch, swept).map(Some)
}

/// Does a part of the work that can be stopped, and returns why it was.
fn watched<T>(
    watch: &mut Watch<'_>,
    work: impl FnOnce(&mut dyn FnMut(News<'_>) -> ControlFlow<()>) -> Result<T, Halt>,
) -> Result<T, Halt> {
    let mut halt = None;
    let done = work(&mut |news| match watch(news) {
        Ok(()) => ControlFlow::Continue(()),
        Err(why) => {
            halt = Some(why);
            ControlFlow::Break(())
        }
    });
    match halt {
        Some(why) => Err(why),
        None => done,
    }
}
