//! What a person sees while a run goes on, and how they stop it.

use crate::Output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sottovoce_lab::plot::number;
use sottovoce_lab::train::Progress;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

/// Lets Ctrl-C end the run in order. A second one ends the program at once.
pub fn watch_for_stop() {
    let installed = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
    });
    // Without a handler Ctrl-C ends the program at once, which leaves no broken output either.
    drop(installed);
}

/// Whether the user asked to stop.
pub fn stopped() -> bool {
    STOP.load(Ordering::SeqCst)
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

    /// Shows how far the run is, and says whether to go on.
    pub fn show(&self, progress: Progress) -> ControlFlow<()> {
        self.0.set_length(progress.planned);
        self.0.set_position(progress.wakes);
        let wakes = format!("{} wakes", number::count(progress.wakes));
        self.0.set_message(match (progress.sample.score_mean, progress.sample.objective) {
            (Some(score), _) => format!("{wakes}, score {}", number::score(score)),
            (None, Some(objective)) => format!("{wakes}, objective {}", number::significant(objective, 5)),
            (None, None) => wakes,
        });
        if stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Prints a table: the first column to the left, the others to the right.
pub fn table(rows: &[Vec<String>]) {
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
        println!("{}", line.trim_end());
    }
}
