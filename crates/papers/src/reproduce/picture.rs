//! A plot as a picture: means as lines, one standard deviation to each side as bands.

use super::outcome::{Labelled, Plot};
use sottovoce_report::plot::{Axis, Chart, Dot, Ink, Scene, Stroke};

/// The size of a picture.
const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 420.0;

/// Curves with more points than this are drawn without dots.
const DOTS_MAX: usize = 12;

/// The plot as a scene.
pub fn scene(plot: &Plot) -> Scene {
    let points = || plot.series.iter().flat_map(|series| &series.points);
    let x = axis(&plot.x, points().map(|point| point.x).collect());
    let ends = points().flat_map(|point| [point.mean - point.spread, point.mean + point.spread, point.mean]);
    let ends: Vec<f64> = ends.filter(|&value| !plot.y.log || value > 0.0).collect();
    let y = if plot.y.log { Axis::log(ends.into_iter()) } else { Axis::around(ends.into_iter()) };
    let mut chart = Chart::new(&plot.title, (x, &plot.x.label), (y, &plot.y.label));
    for series in &plot.series {
        let floor = chart.y().ends().0;
        let band = series.points.iter().map(|point| {
            let low = point.mean - point.spread;
            (point.x, if plot.y.log { low.max(floor) } else { low }, point.mean + point.spread)
        });
        chart.band(Ink::Series(series.ink), &band.collect::<Vec<_>>());
    }
    for series in &plot.series {
        let ink = Ink::Series(series.ink);
        let stroke = if series.dashed { Stroke::Dashed } else { Stroke::Thin };
        let line: Vec<(f64, f64)> = series.points.iter().map(|point| (point.x, point.mean)).collect();
        chart.line(Some(&series.name), ink, stroke, &line);
        // A level needs no dots.
        let is_level = line.iter().all(|point| point.1 == line[0].1);
        if line.len() <= DOTS_MAX && !is_level {
            let tip = |x: f64, y: f64| format!("{}: {y:.4} at {x}", series.name);
            let dots = line.iter().map(|&(x, y)| Dot { x, y, tip: Some(tip(x, y)) }).collect();
            chart.plain_dots(ink, series.dashed, dots);
        }
    }
    chart.scene(WIDTH, HEIGHT)
}

/// A logarithmic axis of few whole numbers has a tick at each of them.
fn axis(labelled: &Labelled, mut values: Vec<f64>) -> Axis {
    values.sort_by(f64::total_cmp);
    values.dedup();
    let whole = values.len() <= DOTS_MAX && values.iter().all(|&x| (1.0..1e6).contains(&x) && x == x.round());
    match (labelled.log, whole) {
        (true, true) => Axis::log_counts(&values.iter().map(|&x| x as u64).collect::<Vec<_>>()),
        (true, false) => Axis::log(values.into_iter()),
        (false, _) => Axis::around(values.into_iter()),
    }
}
