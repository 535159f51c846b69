//! The pictures over time: objective and score, against wakes and against what was sent, in vectors and in bits.

use super::{Curve, HEIGHT, Picture, Report, Sample, WIDTH, finite};
use crate::plot::{Axis, Chart, Ink, Stroke};

/// Runs whose lengths differ by more than this factor share a logarithmic axis.
const LENGTHS_FACTOR: f64 = 30.0;
/// A gap below this part of the optimum is rounding, not progress.
const ROUNDING: f64 = 1e-14;

const LOG_IN_WORDS: &str =
    " The runs differ so much in length that this axis is logarithmic; their start at zero is not on it.";

/// What is counted along the x axis.
#[derive(Clone, Copy, PartialEq)]
enum Along {
    Wakes,
    Vectors,
    Bits,
}

/// One run as it is drawn: its colour, and (x, y, spread) per sample.
struct Track<'a> {
    name: &'a str,
    ink: Ink,
    main: bool,
    points: Vec<(f64, f64, f64)>,
}

impl Track<'_> {
    /// A run that has only one place on the x axis is a level.
    fn level(&self) -> Option<f64> {
        let first = self.points.first()?.0;
        self.points.iter().all(|p| p.0 == first).then(|| self.points.last().map(|p| p.1)).flatten()
    }
}

/// The pictures that the report has numbers for.
pub(super) fn pictures(report: &Report) -> Vec<Picture> {
    let both = [Along::Wakes, Along::Vectors];
    let objectives = both.into_iter().filter_map(|along| objective(report, along));
    let bits = report.in_bits.then_some(Along::Bits);
    objectives.chain(both.into_iter().chain(bits).filter_map(|along| score(report, along))).collect()
}

/// The colour of a run: the run itself has the first one.
pub(super) fn ink(report: &Report, index: usize) -> Ink {
    Ink::Series((index + 1) % report.runs.len().max(1))
}

fn objective(report: &Report, along: Along) -> Option<Picture> {
    let optimum = finite(report.optimum);
    let gap = |objective: f64| match optimum {
        Some(optimum) if objective - optimum <= ROUNDING * optimum.abs() => f64::NAN,
        Some(optimum) => objective - optimum,
        None => objective,
    };
    let tracks = tracks(report, along, |s| Some((gap(finite(s.objective)?), 0.0)));
    let reach = reach(&tracks)?;
    let bound = match (&report.bound, along) {
        (Some(bound), Along::Wakes) => {
            let agents = report.agents.len().max(1) as f64;
            Vec::from_iter(bound.iter().map(|&(wakes, y)| (wakes / agents, gap(y))).filter(|p| p.0 <= reach))
        }
        _ => Vec::new(),
    };
    let values = || tracks.iter().flat_map(|t| t.points.iter().map(|p| p.1)).chain(bound.iter().map(|p| p.1));
    let mut finite_values = values().filter(|v| v.is_finite());
    let first = finite_values.next()?;
    let (low, high) = finite_values.fold((first, first), |(low, high), v| (v.min(low), v.max(high)));
    let log = optimum.is_some() || (low > 0.0 && high > 100.0 * low);
    let y = if log { Axis::log(values()) } else { Axis::around(values()) };

    let title = match along {
        Along::Wakes => "Objective against wakes",
        Along::Vectors | Along::Bits => "Objective against vectors sent",
    };
    let y_label = if optimum.is_some() { "objective − optimum" } else { "objective" };
    let is_log = y.is_log();
    let mut chart = Chart::new(title, x_axis(report, &tracks, reach, along), (y, y_label));
    if bound.len() > 1 {
        chart.line(Some("bound (Proposition 1)"), Ink::Axis, Stroke::Dashed, &bound);
    }
    let x_is_log = draw(&mut chart, &tracks);

    let mut caption = String::from(match (along, optimum.is_some()) {
        (Along::Wakes, true) => {
            "How far the objective is from its minimum, after each agent woke that often on average."
        }
        (Along::Wakes, false) => {
            "The objective that all agents minimize together, after each woke that often on average."
        }
        (Along::Vectors | Along::Bits, true) => {
            "The same distance from the optimum, against what it cost: vectors sent by all agents."
        }
        (Along::Vectors | Along::Bits, false) => {
            "The same objective, against what it cost: vectors sent by all agents."
        }
    });
    if report.private.is_some() {
        caption += " It is that of what agents broadcast; noise keeps it away from the minimum.";
    } else if is_log && along == Along::Wakes {
        caption +=
            " On this logarithmic scale a straight line means that each wake removes the same share of what is left.";
    }
    if bound.len() > 1 {
        caption += " Dashed: the bound of Proposition 1, which holds in expectation.";
    }
    caption += &levels_in_words(&tracks);
    caption += if x_is_log { LOG_IN_WORDS } else { "" };
    let stem = if along == Along::Wakes { "objective-by-wakes" } else { "objective-by-vectors" };
    Some(Picture::new(stem, caption, &chart.scene(WIDTH, HEIGHT)))
}

fn score(report: &Report, along: Along) -> Option<Picture> {
    let tracks = tracks(report, along, |s| Some((finite(s.score_mean)?, finite(s.score_std).unwrap_or(0.0).abs())));
    let reach = reach(&tracks)?;
    // A band cannot leave the range that the score itself cannot leave.
    let mean_of = |low: f64, high: f64| tracks.iter().flat_map(|t| &t.points).all(|p| (low..=high).contains(&p.1));
    let limits = match (report.higher_is_better, mean_of(0.0, 1.0), mean_of(0.0, f64::INFINITY)) {
        (true, true, _) => (0.0, 1.0),
        (false, _, true) => (0.0, f64::INFINITY),
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    };
    let main = tracks.iter().find(|t| t.main && t.level().is_none());
    let band = Vec::from_iter(
        main.iter().flat_map(|t| &t.points).map(|&(x, y, std)| (x, (y - std).max(limits.0), (y + std).min(limits.1))),
    );
    let spread = band.iter().any(|b| b.1 < b.2);
    let values = tracks.iter().flat_map(|t| t.points.iter().map(|p| p.1));
    let y = Axis::around(values.chain(band.iter().flat_map(|b| [b.1, b.2])));

    let title = match along {
        Along::Wakes => format!("{} against wakes", capital(&report.score_name)),
        Along::Vectors => format!("{} against vectors sent", capital(&report.score_name)),
        Along::Bits => format!("{} against bits sent", capital(&report.score_name)),
    };
    let y_label = format!("{}, mean over agents", report.score_name);
    let mut chart = Chart::new(&title, x_axis(report, &tracks, reach, along), (y, &y_label));
    if let (Some(main), true) = (main, spread) {
        chart.band(main.ink, &band);
    }
    let x_is_log = draw(&mut chart, &tracks);

    let direction = if report.higher_is_better { "higher is better" } else { "lower is better" };
    let mut caption = match along {
        Along::Wakes => format!("How good the models are while the agents learn ({direction})."),
        Along::Vectors => format!("The same, against what it cost: vectors sent by all agents ({direction})."),
        Along::Bits => format!(
            "The same, against all bits on the wire, those about the graph included: a step of boosting is a few bytes, a linear \
             model is a vector ({direction})."
        ),
    };
    if report.private.is_some() {
        caption += " They are the models that agents broadcast, noise and all.";
    }
    if spread {
        caption += " The band is one standard deviation over agents.";
    }
    caption += &levels_in_words(&tracks);
    caption += if x_is_log { LOG_IN_WORDS } else { "" };
    let stem = match along {
        Along::Wakes => "score-by-wakes",
        Along::Vectors => "score-by-vectors",
        Along::Bits => "score-by-bits",
    };
    Some(Picture::new(stem, caption, &chart.scene(WIDTH, HEIGHT)))
}

/// The runs that have a value, with x and y ready to draw.
fn tracks(report: &Report, along: Along, value: impl Fn(&Sample) -> Option<(f64, f64)>) -> Vec<Track<'_>> {
    let agents = report.agents.len().max(1) as f64;
    let x = |s: &Sample| match along {
        Along::Wakes => s.wakes as f64 / agents,
        Along::Vectors => s.vectors_sent as f64,
        Along::Bits => 8.0 * s.bytes_sent as f64,
    };
    let track = |(i, run): (usize, &'_ Curve)| {
        let points = run.points.iter().filter_map(|s| value(s).map(|(y, spread)| (x(s), y, spread))).collect();
        (i, points)
    };
    report
        .runs
        .iter()
        .enumerate()
        .map(track)
        .map(|(i, points): (usize, Vec<_>)| Track {
            name: &report.runs[i].name,
            ink: ink(report, i),
            main: i + 1 == report.runs.len(),
            points,
        })
        .filter(|t| !t.points.is_empty())
        .collect()
}

/// How far the longest run goes; `None` if there is nothing but levels, which a table shows better.
fn reach(tracks: &[Track<'_>]) -> Option<f64> {
    tracks
        .iter()
        .filter(|t| t.level().is_none())
        .flat_map(|t| t.points.iter().map(|p| p.0))
        .fold(None, |far: Option<f64>, x| Some(far.map_or(x, |f| f.max(x))))
}

fn x_axis(report: &Report, tracks: &[Track<'_>], reach: f64, along: Along) -> (Axis, &'static str) {
    let label = match along {
        Along::Wakes if report.agents.is_empty() => "wakes",
        Along::Wakes => "wakes per agent",
        Along::Vectors => "vectors sent, all agents",
        Along::Bits => "bits sent, all agents",
    };
    let moving = || tracks.iter().filter(|t| t.level().is_none());
    let shortest = moving().filter_map(|t| t.points.last()).map(|p| p.0).fold(reach, f64::min);
    if reach > LENGTHS_FACTOR * shortest {
        let positive = moving().flat_map(|t| t.points.iter().map(|p| p.0)).filter(|x| *x > 0.0);
        return (Axis::log(positive), label);
    }
    (Axis::from_zero(reach), label)
}

/// Draws the runs; says whether the x axis is logarithmic.
fn draw(chart: &mut Chart, tracks: &[Track<'_>]) -> bool {
    for track in tracks {
        match track.level() {
            Some(y) => chart.level(track.name, track.ink, Stroke::Dotted, y),
            None => {
                let stroke = if track.main { Stroke::Strong } else { Stroke::Thin };
                let points = Vec::from_iter(track.points.iter().map(|p| (p.0, p.1)));
                chart.line(Some(track.name), track.ink, stroke, &points);
            }
        }
    }
    chart.x().is_log()
}

fn levels_in_words(tracks: &[Track<'_>]) -> String {
    let names = Vec::from_iter(tracks.iter().filter(|t| t.level().is_some()).map(|t| t.name));
    match names[..] {
        [] => String::new(),
        [one] => format!(" Dotted: {one}, which does not change along this axis."),
        _ => format!(" Dotted: {}, which do not change along this axis.", names.join(" and ")),
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
