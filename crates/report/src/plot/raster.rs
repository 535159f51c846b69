//! The same scene as pixels: tiny-skia fills the shapes, ttf-parser gives the outlines of the bundled Noto Sans.

use std::sync::OnceLock;

use tiny_skia::{Color, FillRule, LineCap, LineJoin, Paint, PathBuilder, Pixmap, Stroke, StrokeDash, Transform};
use ttf_parser::{Face, GlyphId, OutlineBuilder};

use super::scene::{Anchor, Ink, Mark, Scene};

/// Pixels of the PNG per unit of the scene: a picture of 480 units prints 12 cm wide at 300 dots per inch.
const SCALE: f32 = 3.0;

impl Scene {
    /// The picture as the bytes of a PNG file, in light colours.
    pub fn png(&self) -> Vec<u8> {
        let side = |length: f64| (length.clamp(1.0, 4000.0) * f64::from(SCALE)) as u32;
        let mut pixels = Pixmap::new(side(self.width), side(self.height)).expect("both sides are at least one pixel");
        let [r, g, b] = Ink::Paper.light();
        pixels.fill(Color::from_rgba8(r, g, b, 255));
        for mark in &self.marks {
            draw(&mut pixels, mark);
        }
        pixels.encode_png().expect("an image in memory can be encoded")
    }
}

fn draw(pixels: &mut Pixmap, mark: &Mark) {
    match mark {
        Mark::Line { points, ink, width, dash } => {
            let mut builder = PathBuilder::new();
            trace(&mut builder, points);
            let dash = dash.and_then(|(on, off)| StrokeDash::new(vec![on as f32, off as f32], 0.0));
            stroke(pixels, builder, *ink, 1.0, *width, dash);
        }
        Mark::Segments { ends, ink, width, opacity } => {
            let mut builder = PathBuilder::new();
            ends.iter().for_each(|pair| trace(&mut builder, pair));
            stroke(pixels, builder, *ink, *opacity, *width, None);
        }
        Mark::Area { points, ink, opacity } => {
            let mut builder = PathBuilder::new();
            trace(&mut builder, points);
            builder.close();
            fill(pixels, builder, *ink, *opacity);
        }
        Mark::Disc { at: (x, y), radius, fill: inside, ring, opacity, .. } => {
            let circle = || {
                let mut builder = PathBuilder::new();
                builder.push_circle(*x as f32, *y as f32, *radius as f32);
                builder
            };
            fill(pixels, circle(), *inside, *opacity);
            stroke(pixels, circle(), *ring, 1.0, 1.0, None);
        }
        Mark::Text { at: (x, y), text, size, anchor, bold, ink } => {
            let shift = match anchor {
                Anchor::Start => 0.0,
                Anchor::Middle => 0.5,
                Anchor::End => 1.0,
            };
            let left = x - shift * text_width(text, *size, *bold);
            fill(pixels, outline(text, *size, *bold, left, *y), *ink, 1.0);
        }
    }
}

fn trace(builder: &mut PathBuilder, points: &[(f64, f64)]) {
    for (i, (x, y)) in points.iter().enumerate() {
        if i == 0 { builder.move_to(*x as f32, *y as f32) } else { builder.line_to(*x as f32, *y as f32) }
    }
}

fn paint(ink: Ink, opacity: f64) -> Paint<'static> {
    let [r, g, b] = ink.light();
    let mut paint = Paint { anti_alias: true, ..Paint::default() };
    paint.set_color_rgba8(r, g, b, (255.0 * opacity.clamp(0.0, 1.0)).round() as u8);
    paint
}

fn fill(pixels: &mut Pixmap, builder: PathBuilder, ink: Ink, opacity: f64) {
    // A path without extent, such as a blank text, has nothing to fill.
    if let Some(path) = builder.finish() {
        let scale = Transform::from_scale(SCALE, SCALE);
        pixels.fill_path(&path, &paint(ink, opacity), FillRule::Winding, scale, None);
    }
}

fn stroke(pixels: &mut Pixmap, builder: PathBuilder, ink: Ink, opacity: f64, width: f64, dash: Option<StrokeDash>) {
    if let Some(path) = builder.finish() {
        let stroke = Stroke {
            width: width as f32,
            line_cap: LineCap::Butt,
            line_join: LineJoin::Round,
            dash,
            ..Stroke::default()
        };
        pixels.stroke_path(&path, &paint(ink, opacity), &stroke, Transform::from_scale(SCALE, SCALE), None);
    }
}

/// The bundled font, parsed once.
fn face(bold: bool) -> &'static Face<'static> {
    static REGULAR: OnceLock<Face<'static>> = OnceLock::new();
    static BOLD: OnceLock<Face<'static>> = OnceLock::new();
    let (cell, data) = if bold { (&BOLD, notosans::BOLD_TTF) } else { (&REGULAR, notosans::REGULAR_TTF) };
    cell.get_or_init(|| Face::parse(data, 0).expect("the bundled font is a valid font"))
}

/// One glyph of a text: which, how much smaller than the text, how far raised (in units of the text's size).
struct Glyph {
    id: GlyphId,
    scale: f64,
    raise: f64,
}

/// The glyph of a character. Superscripts are made from the plain digit: the font has not all of them.
fn glyph(face: &Face<'_>, c: char) -> Glyph {
    let plain = match c {
        '⁻' => Some('−'),
        '¹' => Some('1'),
        '²' => Some('2'),
        '³' => Some('3'),
        '⁰' | '⁴'..='⁹' => char::from_digit(c as u32 - '⁰' as u32, 10),
        _ => None,
    };
    let id = face.glyph_index(plain.unwrap_or(c)).unwrap_or_default();
    if plain.is_some() { Glyph { id, scale: 0.68, raise: 0.36 } } else { Glyph { id, scale: 1.0, raise: 0.0 } }
}

fn advance(face: &Face<'_>, glyph: &Glyph, size: f64) -> f64 {
    let units = f64::from(face.glyph_hor_advance(glyph.id).unwrap_or(0));
    units * glyph.scale * size / f64::from(face.units_per_em())
}

/// How wide a text is in the bundled font, in the unit of `size`.
pub fn text_width(text: &str, size: f64, bold: bool) -> f64 {
    let face = face(bold);
    text.chars().map(|c| advance(face, &glyph(face, c), size)).sum()
}

fn outline(text: &str, size: f64, bold: bool, mut x: f64, y: f64) -> PathBuilder {
    let face = face(bold);
    let mut pen = Pen { path: PathBuilder::new(), x, y, scale: 0.0 };
    for c in text.chars() {
        let glyph = glyph(face, c);
        pen.scale = glyph.scale * size / f64::from(face.units_per_em());
        (pen.x, pen.y) = (x, y - glyph.raise * size);
        face.outline_glyph(glyph.id, &mut pen);
        x += advance(face, &glyph, size);
    }
    pen.path
}

/// Moves the outline of a glyph, in font units with y upwards, to its place in the scene.
struct Pen {
    path: PathBuilder,
    x: f64,
    y: f64,
    scale: f64,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        ((self.x + f64::from(x) * self.scale) as f32, (self.y - f64::from(y) * self.scale) as f32)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_character_the_pictures_use_has_a_glyph() {
        for c in "abcXYZ 0123456789.,:;()%+−±×–·→∞εμλ⁻⁰¹²³⁴⁵⁶⁷⁸⁹".chars() {
            for bold in [false, true] {
                assert_ne!(glyph(face(bold), c).id, GlyphId(0), "{c:?} in bold: {bold}");
            }
        }
    }

    #[test]
    fn an_unknown_character_is_drawn_as_a_box_and_not_an_error() {
        let mut scene = Scene::new(40.0, 20.0, "");
        scene.text((2.0, 15.0), "\u{e000}", 12.0, Anchor::Start, false, Ink::Text);
        scene.text((2.0, 15.0), "", 12.0, Anchor::End, true, Ink::Text);
        assert!(scene.png().starts_with(b"\x89PNG"));
    }
}
