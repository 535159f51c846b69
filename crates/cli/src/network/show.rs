//! What a person sees of a network: a table on a terminal, a line now and then elsewhere.

use super::children::Round;
use crate::Output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use sottovoce_net::status::{PeerStatus, Phase};
use sottovoce_report::plot::number;
use sottovoce_run::facts::PublicFacts;

/// More peers than this are not shown one by one.
const ROWS_MAX: usize = 24;

/// Seconds between two lines.
const LINE_EVERY: f64 = 3.0;

pub struct Show {
    bar: ProgressBar,
    lines: bool,
    said: f64,
    planned: Option<u64>,
}

impl Show {
    pub fn new(output: Output, facts: &PublicFacts) -> Self {
        let target = if output.quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr_with_hz(5) };
        let bar = ProgressBar::with_draw_target(None, target);
        let style = ProgressStyle::with_template("{msg}").unwrap_or_else(|_| ProgressStyle::default_spinner());
        let lines = !output.quiet && !output.json && bar.is_hidden();
        Show { bar: bar.with_style(style), lines, said: 0.0, planned: facts.releases }
    }

    pub fn show(&mut self, round: &Round, seconds: f64) {
        let line = || {
            let quiet = round.0.iter().flat_map(|(_, status)| status).filter(|status| status.phase == Phase::Quiet);
            let sample = round.traffic();
            format!(
                "{}: {} of {} peers answer, {} quiet; {} wakes, {} vectors, {} sent",
                number::seconds(seconds),
                round.0.iter().filter(|(_, status)| status.is_some()).count(),
                round.0.len(),
                quiet.count(),
                number::count(sample.wakes),
                number::count(sample.vectors_sent),
                number::bytes(sample.bytes_sent)
            )
        };
        if self.lines && seconds > self.said + LINE_EVERY {
            self.said = seconds;
            eprintln!("{}", line());
        }
        if !self.bar.is_hidden() {
            let rows = round.0.iter().take(ROWS_MAX).map(|(name, status)| self.row(name, status.as_ref()));
            let head =
                format!("{:<20} {:>9} {:>9} {:>9} {:>10} {:>11}", "peer", "", "wakes", "post", "released", "heard");
            let more = round.0.len().saturating_sub(ROWS_MAX);
            let more = (more > 0).then(|| format!("... and {more} more"));
            let all: Vec<String> = [line(), head].into_iter().chain(rows).chain(more).collect();
            self.bar.set_message(all.join("\n"));
            self.bar.tick();
        }
    }

    fn row(&self, name: &str, status: Option<&PeerStatus>) -> String {
        let name: String = name.chars().take(20).collect();
        let Some(status) = status else { return format!("{name:<20} {:>9}", "starting") };
        let phase = match status.phase {
            Phase::Asking => "asking",
            Phase::Learning => "learning",
            Phase::Quiet => "quiet",
        };
        let released: u64 = status.charges.iter().map(|charge| charge.count).sum();
        let released = self.planned.map_or(number::count(released), |planned| format!("{released}/{planned}"));
        let heard = status.neighbours.iter().filter(|neighbour| neighbour.post > 0).count();
        let heard = format!("{heard}/{}", status.neighbours.len());
        format!("{name:<20} {phase:>9} {:>9} {:>9} {released:>10} {heard:>11}", status.wakes, status.post)
    }
}

impl Drop for Show {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
