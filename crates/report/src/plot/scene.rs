//! A scene: marks with coordinates in pixels and colours by role, and its SVG.

use std::fmt::Write;

/// How many colours the series have before they repeat.
pub const SERIES: usize = 8;

/// How many colours lie between losing most and gaining most; the middle one is neutral.
pub const GAIN_STEPS: usize = 9;

/// What a colour means; the light and the dark scheme each have their own shade of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ink {
    /// The background.
    Paper,
    /// Titles and labels that matter.
    Text,
    /// Tick labels, names of axes.
    Muted,
    /// The line of an axis, the bound of a theory.
    Axis,
    /// Thin lines behind the data.
    Grid,
    /// The k-th series, from a palette whose first six colour-blind people can tell apart (Okabe and Ito, 2008).
    Series(usize),
    /// From losing most (0) over neutral to gaining most ([`GAIN_STEPS`] - 1).
    Gain(usize),
}

impl Ink {
    /// The name that classes of the SVG end in.
    pub fn class(self) -> String {
        match self {
            Ink::Paper => "paper".to_string(),
            Ink::Text => "text".to_string(),
            Ink::Muted => "muted".to_string(),
            Ink::Axis => "axis".to_string(),
            Ink::Grid => "grid".to_string(),
            Ink::Series(k) => format!("s{}", k % SERIES),
            Ink::Gain(k) => format!("g{}", k.min(GAIN_STEPS - 1)),
        }
    }

    /// Red, green, blue on white paper.
    pub fn light(self) -> [u8; 3] {
        const PALETTE: [[u8; 3]; SERIES] = [
            [0, 114, 178],
            [213, 94, 0],
            [0, 148, 108],
            [190, 95, 150],
            [176, 128, 0],
            [64, 156, 208],
            [120, 72, 40],
            [96, 80, 176],
        ];
        match self {
            Ink::Paper => [255, 255, 255],
            Ink::Text => [28, 34, 43],
            Ink::Muted => [91, 102, 117],
            Ink::Axis => [112, 122, 136],
            Ink::Grid => [230, 233, 238],
            Ink::Series(k) => PALETTE[k % SERIES],
            Ink::Gain(k) => diverging(k, [196, 76, 0], [196, 199, 204], [0, 96, 168]),
        }
    }

    /// Red, green, blue on dark paper.
    pub fn dark(self) -> [u8; 3] {
        const PALETTE: [[u8; 3]; SERIES] = [
            [86, 180, 233],
            [255, 146, 76],
            [62, 201, 158],
            [224, 146, 192],
            [230, 184, 60],
            [130, 150, 235],
            [196, 150, 120],
            [176, 160, 240],
        ];
        match self {
            Ink::Paper => [25, 30, 38],
            Ink::Text => [232, 236, 242],
            Ink::Muted => [160, 170, 184],
            Ink::Axis => [138, 148, 163],
            Ink::Grid => [46, 53, 64],
            Ink::Series(k) => PALETTE[k % SERIES],
            Ink::Gain(k) => diverging(k, [255, 140, 66], [112, 118, 128], [92, 184, 245]),
        }
    }
}

/// The k-th of [`GAIN_STEPS`] colours from `low` over `middle` to `high`.
fn diverging(k: usize, low: [u8; 3], middle: [u8; 3], high: [u8; 3]) -> [u8; 3] {
    let half = (GAIN_STEPS - 1) as i32 / 2;
    let k = k.min(GAIN_STEPS - 1) as i32 - half;
    let end = if k < 0 { low } else { high };
    std::array::from_fn(|c| {
        let (from, to) = (i32::from(middle[c]), i32::from(end[c]));
        (from + (to - from) * k.abs() / half).clamp(0, 255) as u8
    })
}

/// Where a text's x coordinate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// At its left end.
    Start,
    /// In its middle.
    Middle,
    /// At its right end.
    End,
}

/// One thing drawn. Coordinates are pixels from the top left corner.
#[derive(Clone, Debug)]
pub enum Mark {
    /// An open line through points.
    Line {
        /// Its corners.
        points: Vec<(f64, f64)>,
        /// Its colour.
        ink: Ink,
        /// Its width.
        width: f64,
        /// Lengths of dash and gap.
        dash: Option<(f64, f64)>,
    },
    /// Many separate lines of one look.
    Segments {
        /// Their ends.
        ends: Vec<[(f64, f64); 2]>,
        /// Their colour.
        ink: Ink,
        /// Their width.
        width: f64,
        /// 0 to 1.
        opacity: f64,
    },
    /// A filled polygon.
    Area {
        /// Its corners.
        points: Vec<(f64, f64)>,
        /// Its colour.
        ink: Ink,
        /// 0 to 1.
        opacity: f64,
    },
    /// A disc, with a ring around it.
    Disc {
        /// Its centre.
        at: (f64, f64),
        /// Its radius, to the middle of the ring.
        radius: f64,
        /// The colour inside.
        fill: Ink,
        /// The colour of the ring.
        ring: Ink,
        /// 0 to 1, of the inside.
        opacity: f64,
        /// What a pointer that rests on it shows.
        tip: Option<String>,
    },
    /// One line of text.
    Text {
        /// Its anchor, on the base line.
        at: (f64, f64),
        /// What it says.
        text: String,
        /// Its size in pixels.
        size: f64,
        /// Which part of it is at `at`.
        anchor: Anchor,
        /// Whether it is bold.
        bold: bool,
        /// Its colour.
        ink: Ink,
    },
}

/// A picture before it is written as SVG or PNG.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Width in pixels.
    pub width: f64,
    /// Height in pixels.
    pub height: f64,
    /// What the picture is, for readers who cannot see it.
    pub title: String,
    /// What is drawn, from back to front.
    pub marks: Vec<Mark>,
}

impl Scene {
    /// An empty scene.
    pub fn new(width: f64, height: f64, title: &str) -> Scene {
        Scene { width, height, title: title.to_string(), marks: Vec::new() }
    }

    /// Adds one line of text.
    pub fn text(&mut self, at: (f64, f64), text: &str, size: f64, anchor: Anchor, bold: bool, ink: Ink) {
        self.marks.push(Mark::Text { at, text: text.to_string(), size, anchor, bold, ink });
    }

    /// Adds a straight line.
    pub fn stroke(&mut self, from: (f64, f64), to: (f64, f64), ink: Ink, width: f64) {
        self.marks.push(Mark::Line { points: vec![from, to], ink, width, dash: None });
    }

    /// The picture as a complete SVG document, without declarations, so that it can also stand inside a page.
    pub fn svg(&self) -> String {
        let mut out = String::with_capacity(4096);
        let (w, h) = (coordinate(self.width), coordinate(self.height));
        // Writing to a String cannot fail; the results of `write!` are dropped throughout.
        let _ = writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" role=\"img\" \
             font-family=\"'Noto Sans','Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif\">\
             <title>{}</title><rect width=\"{w}\" height=\"{h}\" {}/>",
            escape(&self.title),
            look(Some(Ink::Paper), None)
        );
        for mark in &self.marks {
            write_mark(&mut out, mark);
            out.push('\n');
        }
        out.push_str("</svg>\n");
        out
    }
}

fn write_mark(out: &mut String, mark: &Mark) {
    let _ = match mark {
        Mark::Line { points, ink, width, dash } => {
            let dash = match dash {
                Some((on, off)) => format!(" stroke-dasharray=\"{} {}\"", coordinate(*on), coordinate(*off)),
                None => String::new(),
            };
            let width = coordinate(*width);
            write!(
                out,
                "<path d=\"{}\" {} stroke-width=\"{width}\"{dash} stroke-linejoin=\"round\"/>",
                path(points),
                look(None, Some(*ink))
            )
        }
        Mark::Segments { ends, ink, width, opacity } => {
            let d: String = ends.iter().map(|e| path(e)).collect();
            let (width, opacity) = (coordinate(*width), coordinate(*opacity));
            write!(
                out,
                "<path d=\"{d}\" {} stroke-width=\"{width}\" stroke-opacity=\"{opacity}\"/>",
                look(None, Some(*ink))
            )
        }
        Mark::Area { points, ink, opacity } => {
            write!(
                out,
                "<path d=\"{}Z\" {} fill-opacity=\"{}\"/>",
                path(points),
                look(Some(*ink), None),
                coordinate(*opacity)
            )
        }
        Mark::Disc { at: (x, y), radius, fill: inside, ring, opacity, tip } => {
            let tip = tip.as_ref().map(|t| format!("<title>{}</title>", escape(t))).unwrap_or_default();
            write!(
                out,
                "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" {} fill-opacity=\"{}\">{tip}</circle>",
                coordinate(*x),
                coordinate(*y),
                coordinate(*radius),
                look(Some(*inside), Some(*ring)),
                coordinate(*opacity)
            )
        }
        Mark::Text { at: (x, y), text, size, anchor, bold, ink } => {
            let anchor = match anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            };
            let weight = if *bold { " font-weight=\"600\"" } else { "" };
            let (x, y, size) = (coordinate(*x), coordinate(*y), coordinate(*size));
            let (ink, text) = (look(Some(*ink), None), escape(text));
            write!(out, "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\"{anchor}{weight} {ink}>{text}</text>")
        }
    };
}

/// `M x y L x y ...` in as few characters as that takes.
fn path(points: &[(f64, f64)]) -> String {
    let mut d = String::new();
    for (i, (x, y)) in points.iter().enumerate() {
        let _ = write!(d, "{}{} {}", if i == 0 { 'M' } else { 'L' }, coordinate(*x), coordinate(*y));
    }
    d
}

/// The classes and the light colours of a mark.
fn look(fill: Option<Ink>, stroke: Option<Ink>) -> String {
    let fill_class = fill.map(|ink| format!("f-{}", ink.class()));
    let stroke_class = stroke.map(|ink| format!("s-{}", ink.class()));
    let class = Vec::from_iter(fill_class.into_iter().chain(stroke_class)).join(" ");
    let fill = fill.map_or("none".to_string(), |ink| hex(ink.light()));
    let stroke = stroke.map(|ink| format!(" stroke=\"{}\"", hex(ink.light()))).unwrap_or_default();
    format!("class=\"{class}\" fill=\"{fill}\"{stroke}")
}

fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Two decimals at most, no trailing zeros, never anything but a finite number.
fn coordinate(x: f64) -> String {
    assert!(x.is_finite(), "a picture has finite coordinates, not {x}");
    let text = format!("{x:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_string() } else { text.to_string() }
}

/// Text made safe inside elements and attributes of XML and HTML. Characters that XML forbids are replaced.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\t' | '\n' | '\r' => safe.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push('\u{fffd}'),
            c => safe.push(c),
        }
    }
    safe
}

/// Rules that show every picture of a page in the dark scheme where the reader prefers it, on screens only.
pub fn dark_style() -> String {
    let fixed = [Ink::Paper, Ink::Text, Ink::Muted, Ink::Axis, Ink::Grid];
    let inks = fixed.into_iter().chain((0..SERIES).map(Ink::Series)).chain((0..GAIN_STEPS).map(Ink::Gain));
    let mut css = String::from("@media screen and (prefers-color-scheme: dark) {\n");
    for ink in inks {
        let (class, colour) = (ink.class(), hex(ink.dark()));
        let _ = writeln!(css, "  .f-{class} {{ fill: {colour} }} .s-{class} {{ stroke: {colour} }}");
    }
    css.push_str("}\n");
    css
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_element() {
        assert_eq!(escape("<a href='x'>\"&\u{1b}"), "&lt;a href=&#39;x&#39;&gt;&quot;&amp;\u{fffd}");
    }

    #[test]
    fn the_middle_of_the_gain_colours_is_neutral() {
        let [r, g, b] = Ink::Gain(GAIN_STEPS / 2).light();
        assert!(r.abs_diff(g) < 10 && g.abs_diff(b) < 10);
        assert_eq!(Ink::Gain(0).light(), [196, 76, 0]);
        assert_eq!(Ink::Gain(GAIN_STEPS - 1).light(), [0, 96, 168]);
    }

    #[test]
    #[should_panic(expected = "finite coordinates")]
    fn a_coordinate_that_is_not_finite_is_our_fault() {
        coordinate(f64::NAN);
    }
}
