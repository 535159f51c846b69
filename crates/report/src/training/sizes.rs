//! Who gains: the score of each agent alone and together, by the number of its points.

use super::{Picture, Report, TALL, WIDTH, finite, private};
use crate::plot::number::{count, score};
use crate::plot::{Axis, Chart, Dot, Ink, Stroke};

/// More agents than this are not drawn one by one; the means are over all.
const DOTS_MAX: usize = 400;
/// Means are over agents whose number of points lies in one bin of this width, or wider so that bins are at most 20.
const BIN_WIDTH: f64 = 10.0;
const BINS_MAX: f64 = 20.0;
/// Bins per factor of ten on a logarithmic axis.
const BINS_PER_DECADE: f64 = 2.0;

struct SizedAgent<'a> {
    name: &'a str,
    points: f64,
    local: f64,
    model: f64,
}

/// The picture, if any agent has both scores.
pub(super) fn picture(report: &Report) -> Option<Picture> {
    let agents = Vec::from_iter(report.agents.iter().filter_map(|a| {
        let (local, model) = (finite(a.local)?, finite(a.model)?);
        Some(SizedAgent { name: &a.name, points: a.points as f64, local, model })
    }));
    if agents.is_empty() {
        return None;
    }
    let most = agents.iter().map(|a| a.points).fold(1.0, f64::max);
    let least = agents.iter().map(|a| a.points).fold(f64::INFINITY, f64::min);
    // Sizes of 5 and of 50,000 in one picture need a logarithmic axis; agents without points stand at its left end.
    let x = if least.max(1.0) * 100.0 < most {
        Axis::log(agents.iter().map(|a| a.points.max(1.0)))
    } else {
        Axis::linear((least - 0.03 * most).max(-1.0).min(least), most * 1.03)
    };
    let binning = Binning::new(&x, least, most);

    // Every k-th agent in the order given, when they are too many to be drawn.
    let every = agents.len().div_ceil(DOTS_MAX);
    let drawn = Vec::from_iter(agents.iter().step_by(every));
    let means = binning.means(&agents);
    let scores = drawn.iter().flat_map(|a| [a.local, a.model]).chain(means.iter().flat_map(|m| [m.1, m.2]));
    let y = Axis::around(scores);

    let mut chart =
        Chart::new("Who gains, by dataset size", (x, "training points of the agent"), (y, &report.score_name));
    let better = |a: &SizedAgent<'_>| if report.higher_is_better { a.model > a.local } else { a.model < a.local };
    let at = |a: &SizedAgent<'_>| if binning.log { a.points.max(1.0) } else { a.points };
    let (winners, losers): (Vec<&SizedAgent<'_>>, Vec<&SizedAgent<'_>>) = drawn.iter().partition(|a| better(a));
    for (ink, group) in [(Ink::Gain(6), &winners), (Ink::Gain(1), &losers)] {
        chart.joins(ink, group.iter().map(|a| [(at(a), a.local), (at(a), a.model)]).collect());
    }
    let at_home = report.private.as_ref().is_some_and(|private| private.home);
    let (together, ink) = if at_home { ("at home", private::HOME_INK) } else { ("together", Ink::Series(0)) };
    let dot = |a: &SizedAgent<'_>, y: f64| {
        let tip = format!(
            "{}: {} points, alone {}, {together} {}",
            a.name,
            count(a.points as u64),
            score(a.local),
            score(a.model)
        );
        Dot { x: at(a), y, tip: Some(tip) }
    };
    chart.dots("alone", Ink::Series(1), true, drawn.iter().map(|a| dot(a, a.local)).collect());
    chart.dots(together, ink, false, drawn.iter().map(|a| dot(a, a.model)).collect());
    if means.len() > 1 {
        let line = |pick: fn(&(f64, f64, f64)) -> f64| Vec::from_iter(means.iter().map(|m| (m.0, pick(m))));
        chart.line(Some("mean alone"), Ink::Series(1), Stroke::Thin, &line(|m| m.1));
        chart.line(Some(&format!("mean {together}")), ink, Stroke::Strong, &line(|m| m.2));
    }

    let filled = if at_home { "its home model" } else { "the one it learned together" };
    let mut caption = format!(
        "Each agent twice: with the model it learned alone (hollow) and with {filled} (filled), joined by a line that is \
         blue where the agent gains and orange where it loses. "
    );
    if means.len() > 1 {
        caption += &binning.words();
    }
    if every > 1 {
        caption += &format!(
            " {} of {} agents are drawn; the means are over all.",
            count(drawn.len() as u64),
            count(agents.len() as u64)
        );
    }
    Some(Picture::new("score-by-size", caption.trim_end().to_string(), &chart.scene(WIDTH, TALL)))
}

/// How numbers of points are put together.
struct Binning {
    log: bool,
    width: f64,
    /// Where the first bin begins.
    least: f64,
    /// The number of the last bin.
    last: i64,
}

impl Binning {
    fn new(x: &Axis, least: f64, most: f64) -> Binning {
        if x.is_log() {
            return Binning { log: true, width: 1.0 / BINS_PER_DECADE, least: 0.0, last: i64::MAX };
        }
        let mut width = BIN_WIDTH;
        let mut factors = [2.0, 2.5, 2.0].into_iter().cycle();
        while (most - least) / width > BINS_MAX {
            width *= factors.next().unwrap_or(2.0);
        }
        // The largest agents on the edge of a bin belong to the bin below, not to one of their own.
        Binning { log: false, width, least, last: ((most - least) / width).ceil() as i64 - 1 }
    }

    /// (mean number of points, mean score alone, mean score together) per bin that has agents, in order.
    fn means(&self, agents: &[SizedAgent<'_>]) -> Vec<(f64, f64, f64)> {
        let mut bins = std::collections::BTreeMap::<i64, (f64, f64, f64, f64)>::new();
        for a in agents {
            let points = if self.log { a.points.max(1.0) } else { a.points };
            let x = if self.log { libm::log10(points) } else { points };
            let number = ((x - self.least) / self.width).floor() as i64;
            let bin = bins.entry(number.min(self.last.max(0))).or_default();
            *bin = (bin.0 + 1.0, bin.1 + points, bin.2 + a.local, bin.3 + a.model);
        }
        bins.into_values().map(|(n, x, local, model)| (x / n, local / n, model / n)).collect()
    }

    fn words(&self) -> String {
        if self.log {
            "The lines are means over agents of similar size.".to_string()
        } else {
            format!("The lines are means over agents, in bins of {} points.", count(self.width as u64))
        }
    }
}
