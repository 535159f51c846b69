//! The pictures: error against exchanges and against what was sent, and the agents' estimates side by side.

use super::Report;
use crate::page::{HEIGHT, Picture, WIDTH};
use crate::pairs;
use crate::plot::number::significant;
use crate::plot::{Axis, Chart, Dot, Ink, Stroke};

/// More agents than this are not drawn one by one.
const DOTS_MAX: usize = 400;

/// How far above the largest error a bound is drawn.
const BOUND_DRAWN_MAX: f64 = 100.0;

/// Estimates of more columns than this are not told apart.
const COLUMNS_MAX: usize = 5;

/// All pictures that the report has the numbers for, in reading order.
pub fn plots(report: &Report) -> Vec<Picture> {
    let pictures = [
        error(report, Along::Wakes),
        error(report, Along::Bytes),
        estimates(report),
        report.pairs.as_ref().and_then(pairs::picture),
    ];
    pictures.into_iter().flatten().collect()
}

/// What is counted along the x axis.
#[derive(Clone, Copy, PartialEq)]
enum Along {
    Wakes,
    Bytes,
}

fn error(report: &Report, along: Along) -> Option<Picture> {
    let agents = report.agents_in_all.max(1) as f64;
    let points: Vec<(f64, f64, f64)> = report
        .samples
        .iter()
        .filter_map(|sample| {
            let x = match along {
                Along::Wakes => sample.wakes as f64 / agents,
                Along::Bytes => sample.bytes_sent as f64,
            };
            Some((x, sample.error_mean?, sample.error_std.unwrap_or(0.0)))
        })
        .collect();
    // One point, where agents know nothing before the end, shows nothing.
    let reach = points.last().filter(|_| points.len() > 1).map(|point| point.0).filter(|reach| *reach > 0.0)?;
    let positive = || points.iter().map(|point| point.1).filter(|error| *error > 0.0 && error.is_finite());
    positive().next()?;
    let (title, label) = match along {
        Along::Wakes => ("Error against exchanges", "exchanges begun per agent (wakes)"),
        Along::Bytes => ("Error against bytes sent", "bytes sent, all agents"),
    };
    let y_label = "|estimate − exact|, mean over agents";
    // A bound that is far above all errors would leave no room for them.
    let most = BOUND_DRAWN_MAX * positive().fold(0.0, f64::max);
    let bound: Vec<(f64, f64)> = match along {
        Along::Wakes => {
            let at = report.samples.iter().map(|sample| sample.wakes as f64 / agents);
            at.zip(report.bound.iter().copied()).filter(|(_, bound)| *bound <= most).collect()
        }
        Along::Bytes => Vec::new(),
    };
    let values = positive().chain(bound.iter().map(|point| point.1));
    let mut chart = Chart::new(title, (Axis::from_zero(reach), label), (Axis::log(values), y_label));
    let is_log = chart.y().is_log();
    // On a logarithmic axis a band that reaches zero has no lower edge: it ends at the mean's tenth.
    let band = |&(x, mean, deviation): &(f64, f64, f64)| (x, (mean - deviation).max(mean / 10.0), mean + deviation);
    let band: Vec<_> = points.iter().filter(|point| point.1 > 0.0).map(band).collect();
    chart.band(Ink::Series(0), &band);
    let line: Vec<(f64, f64)> = points.iter().map(|point| (point.0, point.1)).collect();
    chart.line(None, Ink::Series(0), Stroke::Strong, &line);
    if !bound.is_empty() {
        chart.line(Some("bound of the theorem"), Ink::Series(1), Stroke::Dotted, &bound);
    }
    let mut caption = String::from(match along {
        Along::Wakes => {
            "How far the agents' estimates are from the exact value, after each began that many exchanges on average."
        }
        Along::Bytes => "The same, against what it cost: bytes of all letters together.",
    });
    if is_log && along == Along::Wakes {
        caption += " On this logarithmic scale a straight line means that each exchange removes the same share of what is left.";
    }
    caption += " The band is one standard deviation over agents.";
    if !bound.is_empty() {
        caption += " Dotted: what the theorem says that the root mean square over agents is at most, of estimates' expectations; one run adds \
                    the noise of its swaps.";
    }
    let stem = if along == Along::Wakes { "error-by-exchanges" } else { "error-by-bytes" };
    Some(Picture::new(stem, caption, &chart.scene(WIDTH, HEIGHT)))
}

fn estimates(report: &Report) -> Option<Picture> {
    let columns = report.columns.len().min(COLUMNS_MAX);
    let every = report.agents.len().div_ceil(DOTS_MAX).max(1);
    let drawn: Vec<_> = report.agents.iter().enumerate().step_by(every).collect();
    if columns == 0 || report.agents.len() < 2 {
        return None;
    }
    // One column as it is; several, whose sizes may have nothing to do with each other, as distances from the middle.
    let middle = |k: usize| if columns == 1 { 0.0 } else { report.estimate[k] };
    let all = || drawn.iter().flat_map(|(_, agent)| (0..columns).map(|k| agent.estimate[k] - middle(k)));
    let exact = |k: usize| report.exact.as_ref().map(|exact| exact[k] - middle(k));
    let y = Axis::around(all().chain((0..columns).filter_map(exact)));
    let x = Axis::linear(0.0, report.agents.len() as f64 + 1.0);
    let y_label = if columns == 1 { "estimate" } else { "estimate − mean of all agents" };
    let mut chart = Chart::new("The agents' estimates", (x, "agents, in the order of their names"), (y, y_label));
    for k in 0..columns {
        let ink = Ink::Series(k);
        let dot = |&(at, agent): &(usize, &super::AgentEstimate)| Dot {
            x: at as f64 + 1.0,
            y: agent.estimate[k] - middle(k),
            tip: Some(format!(
                "{}: {} ({} {})",
                agent.name,
                significant(agent.estimate[k], 7),
                agent.rows,
                if agent.rows == 1 { "row" } else { "rows" }
            )),
        };
        if let Some(exact) = exact(k) {
            chart.level(&format!("exact {} of {}", report.statistic, report.columns[k]), ink, Stroke::Dotted, exact);
        }
        chart.dots(&report.columns[k], ink, false, drawn.iter().map(dot).collect());
    }
    let mut caption = String::from("What each agent holds at the end: a dot is an agent.");
    if report.exact.is_some() {
        caption += " Dotted: what somebody who had all rows would compute.";
    }
    if report.columns.len() > columns {
        caption += &format!(" The first {columns} of {} columns.", report.columns.len());
    }
    Some(Picture::new("estimates", caption, &chart.scene(WIDTH, HEIGHT)))
}
