//! A chart: two axes, lines, a band, dots, and a legend above the data, never over it.

use super::axis::{Axis, Tick};
use super::raster::text_width;
use super::scene::{Anchor, Ink, Mark, Scene};

/// Size of the title, of the legend and of the labels, in pixels.
pub(crate) const TITLE_SIZE: f64 = 15.0;
pub(crate) const LABEL_SIZE: f64 = 13.0;
/// Other fonts than the bundled one may be wider by this factor.
const WIDER: f64 = 1.1;
/// Space around the picture.
pub(crate) const MARGIN: f64 = 14.0;
/// Length of a line in the legend.
const SWATCH: f64 = 22.0;

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stroke {
    /// The one to look at.
    Strong,
    /// The ones beside it.
    Thin,
    /// A theory or a level.
    Dashed,
    /// A level with short dashes, so that it can be told from a dashed one.
    Dotted,
}

impl Stroke {
    fn mark(self, points: Vec<(f64, f64)>, ink: Ink) -> Mark {
        let (width, dash) = match self {
            Stroke::Strong => (2.6, None),
            Stroke::Thin => (1.7, None),
            Stroke::Dashed => (1.5, Some((7.0, 4.0))),
            Stroke::Dotted => (1.7, Some((2.5, 3.0))),
        };
        Mark::Line { points, ink, width, dash }
    }
}

/// One dot of a scatter, in the units of the axes.
#[derive(Clone, Debug)]
pub struct Dot {
    /// Along the x axis.
    pub x: f64,
    /// Along the y axis.
    pub y: f64,
    /// What a pointer that rests on it shows.
    pub tip: Option<String>,
}

enum Layer {
    Line { points: Vec<(f64, f64)>, ink: Ink, stroke: Stroke },
    Band { points: Vec<(f64, f64, f64)>, ink: Ink },
    Dots { dots: Vec<Dot>, ink: Ink, hollow: bool },
    Joins { ends: Vec<[(f64, f64); 2]>, ink: Ink },
}

enum Swatch {
    Line(Stroke),
    Disc { hollow: bool },
}

/// A chart under construction. What is added first lies behind; values that are not finite are left out.
pub struct Chart {
    title: String,
    x: Axis,
    x_label: String,
    y: Axis,
    y_label: String,
    layers: Vec<Layer>,
    legend: Vec<(String, Ink, Swatch)>,
}

impl Chart {
    /// An empty chart.
    pub fn new(title: &str, (x, x_label): (Axis, &str), (y, y_label): (Axis, &str)) -> Chart {
        let (x_label, y_label) = (x_label.to_string(), y_label.to_string());
        Chart { title: title.to_string(), x, x_label, y, y_label, layers: Vec::new(), legend: Vec::new() }
    }

    /// Its x axis.
    pub fn x(&self) -> &Axis {
        &self.x
    }

    /// Its y axis.
    pub fn y(&self) -> &Axis {
        &self.y
    }

    /// A line through points, in the legend if it has a name. It breaks where a value is missing.
    pub fn line(&mut self, name: Option<&str>, ink: Ink, stroke: Stroke, points: &[(f64, f64)]) {
        for run in points.split(|p| !drawable(&self.x, p.0) || !drawable(&self.y, p.1)) {
            if run.len() > 1 {
                self.layers.push(Layer::Line { points: run.to_vec(), ink, stroke });
            } else if let [(x, y)] = *run {
                self.layers.push(Layer::Dots { dots: vec![Dot { x, y, tip: None }], ink, hollow: false });
            }
        }
        if let Some(name) = name {
            self.legend.push((name.to_string(), ink, Swatch::Line(stroke)));
        }
    }

    /// A level over the whole width.
    pub fn level(&mut self, name: &str, ink: Ink, stroke: Stroke, y: f64) {
        let (low, high) = self.x.ends();
        self.line(Some(name), ink, stroke, &[(low, y), (high, y)]);
    }

    /// A band between two curves, as `(x, low, high)`.
    pub fn band(&mut self, ink: Ink, points: &[(f64, f64, f64)]) {
        let finite = |p: &&(f64, f64, f64)| drawable(&self.x, p.0) && p.1.is_finite() && p.2.is_finite();
        self.layers.push(Layer::Band { points: points.iter().filter(finite).copied().collect(), ink });
    }

    /// Dots, in the legend by a name.
    pub fn dots(&mut self, name: &str, ink: Ink, hollow: bool, dots: Vec<Dot>) {
        self.plain_dots(ink, hollow, dots);
        self.legend.push((name.to_string(), ink, Swatch::Disc { hollow }));
    }

    /// Dots on a line that has its name already.
    pub fn plain_dots(&mut self, ink: Ink, hollow: bool, dots: Vec<Dot>) {
        let dots = dots.into_iter().filter(|d| drawable(&self.x, d.x) && drawable(&self.y, d.y)).collect();
        self.layers.push(Layer::Dots { dots, ink, hollow });
    }

    /// Thin lines between pairs of points.
    pub fn joins(&mut self, ink: Ink, ends: Vec<[(f64, f64); 2]>) {
        let both = |e: &[(f64, f64); 2]| e.iter().all(|p| drawable(&self.x, p.0) && drawable(&self.y, p.1));
        self.layers.push(Layer::Joins { ends: ends.into_iter().filter(both).collect(), ink });
    }

    /// The chart as a scene of this size.
    pub fn scene(&self, width: f64, height: f64) -> Scene {
        let mut scene = Scene::new(width, height, &self.title);
        scene.text((MARGIN, MARGIN + 12.0), &self.title, TITLE_SIZE, Anchor::Start, true, Ink::Text);
        let below_legend = self.draw_legend(&mut scene, MARGIN + 34.0);

        let widest = labels(self.y.ticks()).map(|(_, l)| text_width(l, LABEL_SIZE, false)).fold(0.0, f64::max);
        let left = MARGIN + widest * WIDER + 7.0;
        let frame = Frame { left, right: width - MARGIN - 8.0, top: below_legend + 14.0, bottom: height - 52.0 };
        scene.text((MARGIN, below_legend), &self.y_label, LABEL_SIZE, Anchor::Start, false, Ink::Muted);

        self.draw_axes(&mut scene, &frame);
        for layer in &self.layers {
            self.draw_layer(&mut scene, &frame, layer);
        }
        scene
    }

    /// Draws the legend from this base line on, in as many rows as it needs; returns the next base line.
    fn draw_legend(&self, scene: &mut Scene, mut y: f64) -> f64 {
        let right = scene.width - MARGIN;
        let mut x = MARGIN;
        for (name, ink, swatch) in &self.legend {
            let name = shortened(name, LABEL_SIZE, 0.7 * scene.width);
            let width = SWATCH + 6.0 + WIDER * text_width(&name, LABEL_SIZE, false);
            if x > MARGIN && x + width > right {
                (x, y) = (MARGIN, y + 18.0);
            }
            let middle = y - 4.0;
            match swatch {
                Swatch::Line(stroke) => {
                    scene.marks.push(stroke.mark(vec![(x, middle), (x + SWATCH, middle)], *ink));
                }
                Swatch::Disc { hollow } => scene.marks.push(disc((x + SWATCH - 7.0, middle), 4.0, *ink, *hollow, None)),
            }
            scene.text((x + SWATCH + 6.0, y), &name, LABEL_SIZE, Anchor::Start, false, Ink::Text);
            x += width + 16.0;
        }
        if self.legend.is_empty() { y } else { y + 23.0 }
    }

    fn draw_axes(&self, scene: &mut Scene, frame: &Frame) {
        let (left, right, top, bottom) = (frame.left, frame.right, frame.top, frame.bottom);
        for tick in self.y.ticks() {
            let y = frame.y(&self.y, tick.at);
            match &tick.label {
                Some(label) => {
                    scene.stroke((left, y), (right, y), Ink::Grid, 1.0);
                    scene.text((left - 7.0, y + 4.5), label, LABEL_SIZE, Anchor::End, false, Ink::Muted);
                }
                None => scene.stroke((left - 3.0, y), (left, y), Ink::Grid, 1.0),
            }
        }
        let mut free_from = f64::NEG_INFINITY;
        for tick in self.x.ticks() {
            let x = frame.x(&self.x, tick.at);
            scene.stroke((x, top), (x, bottom), Ink::Grid, if tick.label.is_some() { 1.0 } else { 0.5 });
            let Some(label) = &tick.label else { continue };
            let half = 0.5 * WIDER * text_width(label, LABEL_SIZE, false);
            let middle = x.min(scene.width - 3.0 - half);
            if middle - half > free_from {
                scene.stroke((x, bottom), (x, bottom + 4.0), Ink::Axis, 1.0);
                scene.text((middle, bottom + 18.0), label, LABEL_SIZE, Anchor::Middle, false, Ink::Muted);
                free_from = middle + half + 6.0;
            }
        }
        scene.stroke((left, bottom), (right, bottom), Ink::Axis, 1.0);
        let middle = (0.5 * (left + right), scene.height - MARGIN);
        scene.text(middle, &self.x_label, LABEL_SIZE, Anchor::Middle, false, Ink::Muted);
    }

    fn draw_layer(&self, scene: &mut Scene, frame: &Frame, layer: &Layer) {
        let place = |x: f64, y: f64| (frame.x(&self.x, x), frame.y(&self.y, y));
        match layer {
            Layer::Line { points, ink, stroke } => {
                let points = thinned(points.iter().map(|p| place(p.0, p.1)));
                scene.marks.push(stroke.mark(points, *ink));
            }
            Layer::Band { points, ink } => {
                let mut corners = thinned(points.iter().map(|p| place(p.0, p.2)));
                corners.extend(thinned(points.iter().rev().map(|p| place(p.0, p.1))));
                if corners.len() > 2 {
                    scene.marks.push(Mark::Area { points: corners, ink: *ink, opacity: 0.13 });
                }
            }
            Layer::Dots { dots, ink, hollow } => {
                let radius = if dots.len() > 300 { 2.2 } else { 3.2 };
                for dot in dots {
                    scene.marks.push(disc(place(dot.x, dot.y), radius, *ink, *hollow, dot.tip.clone()));
                }
            }
            Layer::Joins { ends, ink } => {
                let ends = Vec::from_iter(ends.iter().map(|e| e.map(|p| place(p.0, p.1))));
                if !ends.is_empty() {
                    scene.marks.push(Mark::Segments { ends, ink: *ink, width: 1.2, opacity: 0.45 });
                }
            }
        }
    }
}

/// The rectangle of the data.
struct Frame {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Frame {
    fn x(&self, axis: &Axis, value: f64) -> f64 {
        self.left + (self.right - self.left) * axis.place(value)
    }

    fn y(&self, axis: &Axis, value: f64) -> f64 {
        self.bottom - (self.bottom - self.top) * axis.place(value)
    }
}

fn labels(ticks: &[Tick]) -> impl Iterator<Item = (f64, &str)> {
    ticks.iter().filter_map(|t| t.label.as_deref().map(|l| (t.at, l)))
}

fn drawable(axis: &Axis, value: f64) -> bool {
    value.is_finite() && (!axis.is_log() || value > 0.0)
}

fn disc(at: (f64, f64), radius: f64, ink: Ink, hollow: bool, tip: Option<String>) -> Mark {
    let (fill, opacity) = if hollow { (Ink::Paper, 1.0) } else { (ink, 0.75) };
    Mark::Disc { at, radius, fill, ring: ink, opacity, tip }
}

/// Leaves out points that lie on the one before, keeping the ends.
fn thinned(points: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    let mut left_out = None;
    for p in points {
        match kept.last() {
            Some(k) if (k.0 - p.0).abs() < 0.3 && (k.1 - p.1).abs() < 0.3 => left_out = Some(p),
            _ => {
                kept.push(p);
                left_out = None;
            }
        }
    }
    kept.extend(left_out);
    kept
}

/// The text, cut with an ellipsis where it would be wider than that.
pub(crate) fn shortened(text: &str, size: f64, width_max: f64) -> String {
    let text: String = text.chars().map(|c| if c.is_whitespace() || c.is_control() { ' ' } else { c }).collect();
    if text_width(&text, size, false) <= width_max {
        return text;
    }
    let mut short = String::new();
    for c in text.chars() {
        if text_width(&short, size, false) > width_max - 1.5 * size {
            break;
        }
        short.push(c);
    }
    short.trim_end().to_string() + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(y: Axis) -> Chart {
        Chart::new("t", (Axis::from_zero(10.0), "x"), (y, "y"))
    }

    #[test]
    fn a_line_breaks_where_a_value_is_missing() {
        let mut c = chart(Axis::linear(0.0, 1.0));
        c.line(None, Ink::Text, Stroke::Thin, &[(0.0, 0.1), (1.0, 0.2), (2.0, f64::NAN), (3.0, 0.3), (4.0, 0.4)]);
        assert_eq!(c.layers.len(), 2);
        let mut c = chart(Axis::log([1e-6, 1.0].into_iter()));
        c.line(None, Ink::Text, Stroke::Thin, &[(0.0, 1.0), (1.0, 0.1), (2.0, 0.0), (3.0, -1e-9)]);
        assert_eq!(c.layers.len(), 1);
    }

    #[test]
    fn long_names_wrap_and_are_cut() {
        let mut c = chart(Axis::linear(0.0, 1.0));
        for _ in 0..5 {
            c.level(&"name ".repeat(40), Ink::Series(1), Stroke::Dotted, 0.5);
        }
        let svg = c.scene(480.0, 340.0).svg();
        assert_eq!(svg.matches('…').count(), 5);
    }

    #[test]
    fn a_dense_curve_is_thinned_to_what_can_be_seen() {
        let points = (0..100_000).map(|i| (f64::from(i) * 0.005, 1.0));
        let kept = thinned(points);
        assert!(kept.len() < 2000);
        assert_eq!(kept.last(), Some(&(499.995, 1.0)));
    }
}
