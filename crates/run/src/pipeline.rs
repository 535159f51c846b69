//! A task from its files, or from memory, to what came of it: the one way that commands and other programs take.
//!
//! ```text
//! load -> charge -> tell the facts -> run -> run what it is compared with -> write the run directory
//! ```

use crate::artefacts::{Command, names};
use crate::baselines::baselines;
use crate::facts::PublicFacts;
use crate::run_folder::{self, Summary};
use crate::sweep::sweep;
use crate::train::{Halt, Progress, Trained, train};
use sottovoce_report::training::Sweep;
use sottovoce_task::error::Mistake;
use sottovoce_task::folder::Folder;
use sottovoce_task::load::{Loaded, load};
use sottovoce_task::task::Task;
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
    /// The run itself.
    pub run: Trained,
    /// What it is compared with: first agents that learn alone in the same way.
    pub compared: Vec<Trained>,
}

/// Runs a task in the simulator. `watch` is told the news, a few times a second; its error ends the run, and nothing is written.
pub fn run(request: Request<'_>, watch: &mut dyn FnMut(News<'_>) -> Result<(), Halt>) -> Result<Outcome, Halt> {
    let Request { task, directory, threads, comparisons, charge } = request;
    let folder = match &directory {
        None => None,
        Some(directory) => Some(Folder::begin(directory.path, directory.force, &names(Command::Train))?),
    };
    let loaded = charge(load(task)?)?;
    let facts = PublicFacts::of(&loaded);
    facts.warnings.iter().try_for_each(|warning| watch(News::Warning(warning)))?;
    watch(News::Begins(&facts))?;
    let name = loaded.task.algorithm.name;
    let run = watched(watch, |watch| {
        train(&loaded, loaded.task.algorithm, threads, &mut |progress| watch(News::Run(name, progress)))
    })?;
    let beside = watched(watch, |watch| {
        baselines(&loaded, threads, comparisons, &mut |name, progress| watch(News::Comparison(name, progress)))
    })?;
    if let Some(skipped) = beside.skipped.as_deref().filter(|_| comparisons) {
        watch(News::Warning(skipped))?;
    }
    let swept = if comparisons { other_budgets(&loaded, &run, threads, watch)? } else { None };
    let runs: Vec<_> = beside.runs.iter().chain([&run]).collect();
    let summary = match (folder, directory) {
        (Some(folder), Some(directory)) => {
            let summary = run_folder::write(&folder, &loaded, &runs, directory.commands, swept)?;
            folder.finish()?;
            summary
        }
        _ => run_folder::summary(&loaded, &runs)?,
    };
    Ok(Outcome { loaded, summary, run, compared: beside.runs })
}

/// The pictures of a private run that need more runs; none for others.
fn other_budgets(
    loaded: &Loaded,
    run: &Trained,
    threads: usize,
    watch: &mut dyn FnMut(News<'_>) -> Result<(), Halt>,
) -> Result<Option<Sweep>, Halt> {
    if loaded.task.privacy.is_none() {
        return Ok(None);
    }
    let swept = |watch: &mut dyn FnMut(News<'_>) -> ControlFlow<()>| {
        sweep(loaded, run, threads, &mut |done, total| watch(News::Budgets(done, total)))
    };
    watched(watch, swept).map(Some)
}

/// Does a part of the work that can be stopped, and returns why it was.
fn watched<T>(
    watch: &mut dyn FnMut(News<'_>) -> Result<(), Halt>,
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
