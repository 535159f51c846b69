//! What a person sees, and how they stop a run.

use crate::Output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sottovoce_report::plot::number;
use sottovoce_run::facts::Origin;
use sottovoce_run::pipeline::News;
use sottovoce_run::simulate::{Figure, Halt, Progress};
use sottovoce_task::error::Mistake;
use sottovoce_task::folder;
use std::io::{ErrorKind, Write};
use std::ops::ControlFlow;

/// Lets Ctrl-C end the program at once, whatever it is doing, without leaving half a folder.
pub fn watch_for_stop() {
    let installed = ctrlc::set_handler(|| {
        folder::abandon_all();
        eprintln!("stopped");
        std::process::exit(130);
    });
    // Without a handler Ctrl-C ends the program all the same; a hidden folder may then be left.
    drop(installed);
}

/// Prints to standard output. Whoever closed it wants no more; a disk that is full is a mistake to tell.
pub fn say(text: impl std::fmt::Display) -> Result<(), Mistake> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Mistake::new(format!("standard output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Says on standard error what the user should know, in one line each.
pub fn warn(output: Output, warnings: &[String]) {
    if !output.quiet {
        warnings.iter().for_each(|warning| eprintln!("warning: {warning}"));
    }
}

/// A progress bar on a terminal; nothing elsewhere, or when it shall be quiet.
pub struct Bar(ProgressBar);

impl Bar {
    pub fn new(output: Output, name: &str) -> Self {
        let target = if output.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(8) };
        let style = ProgressStyle::with_template("{prefix:<20} {bar:30} {percent:>3}%  {msg}")
            .unwrap_or_else(|_| ProgressStyle::default_bar());
        Bar(ProgressBar::with_draw_target(None, target).with_style(style).with_prefix(name.to_owned()))
    }

    /// Shows how many of some equal pieces of work are done.
    pub fn count(&self, done: u64, total: u64) -> ControlFlow<()> {
        self.0.set_length(total);
        self.0.set_position(done);
        self.0.set_message(format!("{} of {} runs", number::count(done), number::count(total)));
        ControlFlow::Continue(())
    }

    /// Shows how far the run is.
    pub fn show(&self, progress: Progress) -> ControlFlow<()> {
        self.0.set_length(progress.planned);
        self.0.set_position(progress.wakes);
        let wakes = format!("{} wakes", number::count(progress.wakes));
        self.0.set_message(match progress.figure {
            Some(Figure::Score(score)) => format!("{wakes}, score {}", number::score(score)),
            Some(Figure::Objective(objective)) => format!("{wakes}, objective {}", number::significant(objective, 5)),
            Some(Figure::Error(error)) => format!("{wakes}, error {}", number::significant(error, 2)),
            None => wakes,
        });
        ControlFlow::Continue(())
    }

    /// Shows how many parts of a stage are done.
    pub fn show_stage(&self, stage: &str, done: u64, all: u64) -> ControlFlow<()> {
        self.0.set_length(all);
        self.0.set_position(done);
        self.0.set_message(format!("{stage}, {} of {}", number::count(done), number::count(all)));
        ControlFlow::Continue(())
    }

    /// Shows how far a part of the work is.
    pub fn show_part(&self, part: &'static str, done: u64, all: u64) {
        self.0.set_length(all);
        self.0.set_position(done);
        self.0.set_message(part);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// How a run ended, in words behind a comma.
pub fn ends(quiet: bool, tolerance: bool) -> &'static str {
    match (quiet, tolerance) {
        (true, _) => ", all quiet",
        (false, true) => ", NOT quiet: more wakes-per-agent are needed",
        (false, false) => "",
    }
}

/// Shows the news of a run: a bar for each of its parts, warnings, and what is about to run.
pub struct Shown {
    output: Output,
    /// The bar of the part that runs now, and the part's name.
    bar: Option<(String, Bar)>,
}

impl Shown {
    pub fn new(output: Output) -> Self {
        Shown { output, bar: None }
    }

    /// Shows what is new. Nobody is asked to stop: Ctrl-C ends the program.
    pub fn tell(&mut self, news: News<'_>) -> Result<(), Halt> {
        match news {
            News::Begins(facts) => {
                if !self.output.quiet && !self.output.json {
                    say(facts.describe(Origin::Simulator))?;
                }
            }
            News::Warning(warning) => {
                self.bar = None;
                warn(self.output, &[warning.to_owned()]);
            }
            News::Run(name, progress) => drop(self.bar(name).show(progress)),
            News::Comparison(_, progress) => drop(self.bar("comparisons").show(progress)),
            News::Budgets(done, total) => drop(self.bar("other budgets").count(done, total)),
        }
        Ok(())
    }

    fn bar(&mut self, name: &str) -> &Bar {
        if self.bar.as_ref().is_none_or(|(shown, _)| shown != name) {
            self.bar = None;
        }
        let output = self.output;
        &self.bar.get_or_insert_with(|| (name.to_owned(), Bar::new(output, name))).1
    }
}

/// Prints a table: the first column to the left, the others to the right.
pub fn table(rows: &[Vec<String>]) -> Result<(), Mistake> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |k: usize| rows.iter().filter_map(|row| row.get(k)).map(|cell| cell.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        let mut line = String::new();
        for (k, (cell, &width)) in row.iter().zip(&widths).enumerate() {
            if k == 0 {
                line += &format!("{cell:<width$}");
            } else {
                line += &format!("   {cell:>width$}");
            }
        }
        say(line.trim_end())?;
    }
    Ok(())
}
