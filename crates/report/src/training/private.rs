//! What a private run adds to a report: the budget and what was spent, and scores against epsilon and against updates.

use super::sweep::{Point, Sweep};
use super::{HEIGHT, Origin, Picture, Report, WIDTH, finite};
use crate::pairs::ByDistance;
use crate::plot::number::{self, NONE};
use crate::plot::{Axis, Chart, Dot, Ink, Stroke, escape};
use std::fmt::Write;

/// What the table and the curves call the models that agents send.
pub const BROADCAST: &str = "broadcast models";
/// What the table calls the models that agents keep.
pub const HOME: &str = "home models";

/// The colours of the three kinds of models, in all pictures of a private run.
pub(super) const LOCAL_INK: Ink = Ink::Series(1);
pub(super) const BROADCAST_INK: Ink = Ink::Series(0);
pub(super) const HOME_INK: Ink = Ink::Series(2);

/// Everything a report says about a private run beyond what it says about any.
#[derive(Clone, Debug)]
pub struct PrivateRun {
    /// Whether the noise was simulated, and whether exact data are in the report.
    pub origin: Origin,
    /// The budget of each agent.
    pub epsilon: f64,
    /// At this delta.
    pub delta: f64,
    /// The accountant that the plan keeps its budget by.
    pub accountant: String,
    /// The epsilon of the agent that spent most, by each accountant.
    pub spent: Vec<(String, f64)>,
    /// For whose replacement and against whom it holds, in a sentence.
    pub guarantee: String,
    /// Where there is a guarantee for each pair of members: how it falls with their distance.
    pub pairs: Option<ByDistance>,
    /// The plan, in a sentence.
    pub plan: String,
    /// What a careful reader should know.
    pub warnings: Vec<String>,
    /// Whether there are home models: [`super::AgentScore::model`] is then of these.
    pub home: bool,
    /// The mean score of local models on the same data.
    pub local: Option<f64>,
    /// The task with other budgets and other numbers of updates.
    pub sweep: Sweep,
}

/// What is along the x axis of a sweep.
#[derive(Clone, Copy, PartialEq)]
enum Along {
    Epsilon,
    Updates,
}

pub(super) fn pictures(report: &Report) -> Vec<Picture> {
    let Some(private) = &report.private else { return Vec::new() };
    let sweeps = [(Along::Epsilon, &private.sweep.epsilons), (Along::Updates, &private.sweep.updates)];
    sweeps.into_iter().filter_map(|(along, points)| picture(report, private, along, points)).collect()
}

fn picture(report: &Report, private: &PrivateRun, along: Along, points: &[Point]) -> Option<Picture> {
    let values = || points.iter().flat_map(|p| [finite(p.broadcast), finite(p.home)]).flatten();
    if points.len() < 2 || values().next().is_none() {
        return None;
    }
    let local = finite(private.local);
    let y = Axis::around(values().chain(local));
    let (title, x, x_label, stem) = match along {
        Along::Epsilon => {
            let x = Axis::log(points.iter().map(|p| p.at));
            (format!("{} against the budget", capital(&report.score_name)), x, "epsilon", "score-by-epsilon")
        }
        Along::Updates => {
            let counts: Vec<u64> = points.iter().map(|p| p.at as u64).collect();
            let label = "updates per agent, the budget being the same";
            (
                format!("{} against updates", capital(&report.score_name)),
                Axis::log_counts(&counts),
                label,
                "score-by-updates",
            )
        }
    };
    let y_label = format!("{}, mean over agents", report.score_name);
    let mut chart = Chart::new(&title, (x, x_label), (y, &y_label));
    if let Some(local) = local {
        chart.level("local", LOCAL_INK, Stroke::Dashed, local);
    }
    let line =
        |pick: fn(&Point) -> Option<f64>| Vec::from_iter(points.iter().map(|p| (p.at, pick(p).unwrap_or(f64::NAN))));
    chart.line(Some("broadcast"), BROADCAST_INK, Stroke::Thin, &line(|p| p.broadcast));
    if private.home {
        chart.line(Some("home"), HOME_INK, Stroke::Strong, &line(|p| p.home));
    }
    let dot = |p: &Point, score: Option<f64>| {
        let name = if along == Along::Epsilon { "epsilon" } else { "updates" };
        let y = finite(score)?;
        Some(Dot { x: p.at, y, tip: Some(format!("{name} {}: {}", number::bound(p.at), number::score(y))) })
    };
    let (low, high) = chart.y().ends();
    for own in points.iter().filter(|p| p.own) {
        chart.line(Some("this task"), Ink::Axis, Stroke::Dotted, &[(own.at, low), (own.at, high)]);
    }
    for (own, hollow) in [(false, true), (true, false)] {
        let of = |pick: fn(&Point) -> Option<f64>| {
            points.iter().filter(|p| p.own == own).filter_map(|p| dot(p, pick(p))).collect()
        };
        chart.plain_dots(BROADCAST_INK, hollow, of(|p| p.broadcast));
        chart.plain_dots(HOME_INK, hollow, of(|p| p.home));
    }
    let direction = if report.higher_is_better { "higher is better" } else { "lower is better" };
    let mut caption = match along {
        Along::Epsilon => format!(
            "The same task with a tenth to ten times its budget ({direction}). Where {} are {} the dashed line, agents do \
             better alone.",
            if private.home { HOME } else { BROADCAST },
            if report.higher_is_better { "below" } else { "above" }
        ),
        Along::Updates => format!(
            "The same budget divided over more or fewer updates ({direction}): each one more reaches further, and makes \
             all of them noisier."
        ),
    };
    caption += " The dotted line is the task's own setting; every other dot is one more run from the same seed.";
    Some(Picture::new(stem, caption, &chart.scene(WIDTH, HEIGHT)))
}

/// The section of the page, as HTML.
pub(super) fn section(private: &PrivateRun) -> String {
    let PrivateRun { epsilon, delta, accountant, .. } = private;
    let mut out = String::from("<h2>Privacy</h2>\n<div class=\"card words\">\n");
    let is_mean = private.pairs.as_ref().is_some_and(|pairs| pairs.worst > epsilon * (1.0 + 1e-6));
    let on_the_mean = if is_mean { " on the mean over pairs of members" } else { "" };
    let spent = private.spent.iter().find(|(name, _)| name == accountant).map_or(f64::NAN, |(_, spent)| *spent);
    let _ = writeln!(
        out,
        "<p>Each agent has a budget of <b>epsilon = {}</b>{on_the_mean} at delta = {}, {}. The one that spent most spent \
         <b>{}</b>, by the accountant that the task names ({}). {}</p>",
        number::bound(*epsilon),
        number::bound(*delta),
        escape(&private.guarantee),
        bound_or_infinity(spent),
        escape(accountant),
        escape(&private.plan)
    );
    out.push_str("<table class=\"narrow\">\n<thead><tr><th>the same releases, counted by</th><th scope=\"col\">epsilon</th></tr></thead>\n<tbody>\n");
    for (name, spent) in &private.spent {
        let class = if name == accountant { " class=\"main\"" } else { "" };
        let _ = writeln!(
            out,
            "<tr{class}><th scope=\"row\">{}</th><td>{}</td></tr>",
            escape(name),
            bound_or_infinity(*spent)
        );
    }
    out.push_str("</tbody>\n</table>\n");
    if let Some(pairs) = &private.pairs {
        let _ = writeln!(out, "<p>{}</p>", pairs.in_words());
    }
    let of = if private.pairs.is_some() { " of the worst pair" } else { "" };
    let bounds = format!("{of} bounds what can be learned, {}", escape(&private.guarantee));
    let _ = match private.origin {
        Origin::Simulator => writeln!(
            out,
            "<p><b>This was a simulation.</b> Its noise comes from the seed, which stands below: whoever knows it can take the noise \
             off, so these models protect nobody. The figures say what real peers would spend. A real release needs real peers \
             (<code>sottovoce peer</code>): each on its own machine, with its own data, and with exact noise from its system’s \
             entropy that nobody can make again.</p>\n\
             <p>Epsilon{bounds}. It covers \
             what agents send. It does not cover this report: objective, scores, losses and home models are made of exact data. Do not \
             show it to anyone who must not see the data.</p>"
        ),
        Origin::Peers => writeln!(
            out,
            "<p>Epsilon{bounds}. The noise came \
             from the peers’ systems’ entropy. This report is made of what peers told and of public facts (names, numbers of points, the \
             graph, counters); no score, loss or home model is in it.</p>"
        ),
        Origin::Revealed => writeln!(
            out,
            "<p>Epsilon{bounds}. It covers \
             what agents send. It does not cover this report: objective, scores, losses and home models are made of exact data, and \
             were revealed. Do not show it to anyone who must not see the data.</p>"
        ),
    };
    if private.home {
        let _ = writeln!(
            out,
            "<p><b>{}</b> are what agents send, noise and all. <b>{}</b> are what agents use: each is made at home, from the \
             agent's exact data and what its neighbours sent, and never leaves.</p>",
            capital(BROADCAST),
            capital(HOME)
        );
    }
    match &private.sweep.skipped {
        Some(why) => {
            let _ = writeln!(out, "<p>Scores against epsilon and against updates are not shown. {}</p>", escape(why));
        }
        None => out.push_str(
            "<p>The pictures of scores against epsilon and against updates run the task again with other settings. That looks \
             at the private data each time, and no ledger is charged: it is for whoever runs the simulator and may see all data, and \
             not for choosing the settings of a real run on the same data.</p>\n",
        ),
    }
    out.push_str("</div>\n");
    out
}

/// An epsilon, or what there is instead of one.
pub fn bound_or_infinity(epsilon: f64) -> String {
    if epsilon == f64::INFINITY {
        "infinity".to_owned()
    } else if epsilon.is_nan() {
        NONE.to_owned()
    } else {
        number::bound(epsilon)
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
