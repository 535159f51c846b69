//! The collaboration graph, drawn: who learns with whom, and who gains.

use super::{Picture, Report, TALL, WIDTH};
use crate::plot::number::{change, count};
use crate::plot::{Anchor, GAIN_STEPS, Ink, Mark, Scene, layout, neighbourhood, text_width};

/// More agents than this are not drawn.
const NODES_MAX: usize = 500;
/// More edges than this are not drawn; the heaviest stay.
const EDGES_MAX: usize = 4000;
/// Agents have their names beside them up to this many.
const NAMES_MAX: usize = 30;
/// How many shades of opacity the edges have.
const SHADES: usize = 4;

const TITLE: &str = "The collaboration graph";
const TOP: f64 = 44.0;
const LEGEND: f64 = 58.0;
const SIDE: f64 = 26.0;
const LABEL: f64 = 13.0;

/// The picture, if there are at least two agents. A learned graph has pictures of its own.
pub(super) fn picture(report: &Report) -> Option<Picture> {
    if report.agents.len() < 2 || report.learned.is_some() {
        return None;
    }
    let (chosen, edges) = part(report);
    let agents = Vec::from_iter(chosen.iter().map(|&k| &report.agents[k as usize]));
    let gains = Vec::from_iter(agents.iter().map(|a| a.gain(report.higher_is_better)));
    let most_gain = gains.iter().flatten().fold(0.0, |m: f64, g| m.max(g.abs()));
    let tip = |k: usize| {
        let gain = gains[k].map_or("no score".to_string(), |g| format!("gain {}", change(g)));
        format!("{}: {} points, {gain}", agents[k].name, count(agents[k].points))
    };
    let coloured = gains.iter().any(Option::is_some);
    let most_points = agents.iter().map(|a| a.points).max().unwrap_or(0).max(1);
    let mut legend = vec![most_points, most_points.div_ceil(4), 1];
    legend.dedup();
    let drawing = Drawing {
        title: TITLE,
        names: &Vec::from_iter(agents.iter().map(|a| a.name.as_str())),
        edges: &edges,
        sizes: &Vec::from_iter(agents.iter().map(|a| a.points as f64)),
        fill: &|k| gains[k].map_or((Ink::Paper, Ink::Axis), |gain| (shade(gain, most_gain), Ink::Paper)),
        tip: &tip,
        colours: coloured.then(|| ("gain over the local model", change(-most_gain), change(most_gain))),
        size_name: "training points",
        size_legend: legend.into_iter().map(|points| (points as f64, count(points))).collect(),
    };
    let (scene, drawn) = drawing.scene();
    let caption = caption(report, agents.len(), edges.len(), drawn, coloured);
    Some(Picture::new("graph", caption, &scene))
}

/// Agents as discs, and lines between them.
pub(super) struct Drawing<'a> {
    pub title: &'a str,
    /// By agent.
    pub names: &'a [&'a str],
    pub edges: &'a [(u32, u32, f64)],
    /// By agent: what makes its disc large.
    pub sizes: &'a [f64],
    /// The colour of an agent's disc and of its ring.
    pub fill: &'a dyn Fn(usize) -> (Ink, Ink),
    pub tip: &'a dyn Fn(usize) -> String,
    /// What colours mean, from the first to the last of the scale.
    pub colours: Option<(&'a str, String, String)>,
    pub size_name: &'a str,
    /// Sizes to show, with their labels.
    pub size_legend: Vec<(f64, String)>,
}

impl Drawing<'_> {
    /// The picture without its caption, and how many edges it has.
    pub fn scene(&self) -> (Scene, usize) {
        let n = self.names.len();
        let room = (WIDTH - 2.0 * SIDE, TALL - TOP - LEGEND - 22.0);
        let place = |p: (f64, f64)| (SIDE + p.0 * room.0, TOP + 10.0 + p.1 * room.1);
        let at = Vec::from_iter(layout(n, self.edges).into_iter().map(place));

        let mut scene = Scene::new(WIDTH, TALL, self.title);
        scene.text((14.0, 26.0), self.title, 15.0, Anchor::Start, true, Ink::Text);
        let drawn = draw_edges(&mut scene, &at, self.edges);
        let most = self.sizes.iter().copied().fold(0.0, f64::max);
        let most = if most > 0.0 { most } else { 1.0 };
        let radius_max = (60.0 / f64::sqrt(n as f64)).clamp(3.6, 11.0);
        let radius = |size: f64| 0.35 * radius_max + 0.65 * radius_max * f64::sqrt(size / most);
        // Large ones first, so that small ones are not hidden.
        let mut order = Vec::from_iter(0..n);
        order.sort_by(|&a, &b| self.sizes[b].total_cmp(&self.sizes[a]).then(a.cmp(&b)));
        for k in order {
            let (fill, ring) = (self.fill)(k);
            let (radius, tip) = (radius(self.sizes[k]), Some((self.tip)(k)));
            scene.marks.push(Mark::Disc { at: at[k], radius, fill, ring, opacity: 1.0, tip });
        }
        if n <= NAMES_MAX {
            draw_names(&mut scene, &at, self.names, |k| radius(self.sizes[k]));
        }
        self.draw_legend(&mut scene, radius);
        (scene, drawn)
    }

    fn draw_legend(&self, scene: &mut Scene, radius: impl Fn(f64) -> f64) {
        let (top, base) = (TALL - LEGEND + 20.0, TALL - 14.0);
        if let Some((name, first, last)) = &self.colours {
            scene.text((14.0, top), name, LABEL, Anchor::Start, false, Ink::Muted);
            scene.text((14.0, base), first, LABEL, Anchor::Start, false, Ink::Muted);
            let left = 14.0 + 1.1 * text_width(first, LABEL, false) + 12.0;
            for step in 0..GAIN_STEPS {
                let fill = Ink::Gain(step);
                let at = (left + 13.0 * step as f64, base - 4.5);
                scene.marks.push(Mark::Disc { at, radius: 5.5, fill, ring: Ink::Paper, opacity: 1.0, tip: None });
            }
            let right = left + 13.0 * (GAIN_STEPS - 1) as f64 + 11.0;
            scene.text((right, base), last, LABEL, Anchor::Start, false, Ink::Muted);
        }
        let right = WIDTH - 14.0;
        scene.text((right, top), self.size_name, LABEL, Anchor::End, false, Ink::Muted);
        let mut x = right;
        for (size, label) in &self.size_legend {
            scene.text((x, base), label, LABEL, Anchor::End, false, Ink::Muted);
            let r = radius(*size);
            x -= 1.1 * text_width(label, LABEL, false) + r + 5.0;
            let fill = Ink::Gain(GAIN_STEPS / 2);
            let at = (x, base - 4.5);
            scene.marks.push(Mark::Disc { at, radius: r, fill, ring: Ink::Paper, opacity: 1.0, tip: None });
            x -= r + 12.0;
        }
    }
}

/// All agents and edges, or a neighbourhood of [`NODES_MAX`] agents with the edges among them. Ends are positions in the list of
/// agents, which are those of the report.
pub(super) fn part(report: &Report) -> (Vec<u32>, Vec<(u32, u32, f64)>) {
    let total = report.agents.len();
    let valid = |&&(a, b, w): &&(u32, u32, f64)| {
        a != b && (a as usize) < total && (b as usize) < total && w > 0.0 && w.is_finite()
    };
    if total <= NODES_MAX {
        return ((0..total as u32).collect(), report.edges.iter().filter(valid).copied().collect());
    }
    let chosen = neighbourhood(total, &report.edges, NODES_MAX, total as u64);
    let index = |old: u32| chosen.binary_search(&old).ok().map(|i| i as u32);
    let edges = report.edges.iter().filter(valid).filter_map(|&(a, b, w)| Some((index(a)?, index(b)?, w))).collect();
    (chosen, edges)
}

/// Draws the heaviest edges, the light ones first and fainter. Returns how many.
fn draw_edges(scene: &mut Scene, at: &[(f64, f64)], edges: &[(u32, u32, f64)]) -> usize {
    let mut heaviest = Vec::from_iter(0..edges.len());
    heaviest.sort_by(|&i, &j| edges[j].2.total_cmp(&edges[i].2).then(i.cmp(&j)));
    heaviest.truncate(EDGES_MAX);
    let most = heaviest.first().map_or(1.0, |&i| edges[i].2);
    let crowd = (300.0 / heaviest.len().max(1) as f64).sqrt().clamp(0.22, 1.0);
    let shade = |weight: f64| ((weight / most * SHADES as f64).ceil() as usize).clamp(1, SHADES);
    for level in 1..=SHADES {
        let of_level = heaviest.iter().map(|&i| edges[i]).filter(|e| shade(e.2) == level);
        let ends = Vec::from_iter(of_level.map(|(a, b, _)| [at[a as usize], at[b as usize]]));
        if !ends.is_empty() {
            let opacity = 0.75 * crowd * level as f64 / SHADES as f64;
            scene.marks.push(Mark::Segments { ends, ink: Ink::Axis, width: 0.9, opacity });
        }
    }
    heaviest.len()
}

/// The colour of a gain, when `most` is the largest one in size.
fn shade(gain: f64, most: f64) -> Ink {
    let half = (GAIN_STEPS / 2) as f64;
    let step = if most > 0.0 { (gain / most * half).round() } else { 0.0 };
    // A gain however small is not drawn as none.
    let step = if step == 0.0 && gain != 0.0 { gain.signum() } else { step };
    Ink::Gain((half + step).clamp(0.0, 2.0 * half) as usize)
}

/// Names beside the nodes, where one fits that does not cover a node or another name.
fn draw_names(scene: &mut Scene, at: &[(f64, f64)], names: &[&str], radius: impl Fn(usize) -> f64) {
    let size = 11.0;
    let mut taken = Vec::from_iter(at.iter().enumerate().map(|(k, &(x, y))| {
        let r = radius(k);
        (x - r, y - r, x + r, y + r)
    }));
    for (k, (&(x, y), name)) in at.iter().zip(names).enumerate() {
        let name = crate::plot::shortened(name, size, 90.0);
        let (width, r) = (1.1 * text_width(&name, size, false), radius(k) + 3.0);
        let places = [
            (x + r, y + 4.0, Anchor::Start, x + r),
            (x - r, y + 4.0, Anchor::End, x - r - width),
            (x, y + r + 9.0, Anchor::Middle, x - 0.5 * width),
            (x, y - r - 1.0, Anchor::Middle, x - 0.5 * width),
        ];
        let free = places.into_iter().find_map(|(x, y, anchor, left)| {
            let b = (left, y - 9.0, left + width, y + 2.0);
            let inside = b.0 > 2.0 && b.2 < WIDTH - 2.0 && b.3 < TALL - LEGEND && b.1 > TOP - 10.0;
            let clear = taken.iter().all(|t| b.2 < t.0 || t.2 < b.0 || b.3 < t.1 || t.3 < b.1);
            (inside && clear).then_some((x, y, anchor, b))
        });
        if let Some((x, y, anchor, taken_by_it)) = free {
            taken.push(taken_by_it);
            scene.text((x, y), &name, size, anchor, false, Ink::Muted);
        }
    }
}

fn caption(report: &Report, shown: usize, edges: usize, drawn: usize, coloured: bool) -> String {
    let total = report.agents.len();
    let mut text = String::from("Each disc is an agent, larger with more training points; ");
    text += if report.everyone {
        "who writes to whom follows from the task, so that no lines are drawn. "
    } else if edges == 0 {
        "no two of them are joined. "
    } else {
        "lines join those who learn together, darker with more weight. "
    };
    if coloured {
        text += "Blue agents do better than alone, orange ones worse, grey ones the same. ";
    }
    if shown < total {
        text += &format!(
            "Of {} agents, {} are drawn: a neighbourhood of one chosen at random. ",
            count(total as u64),
            count(shown as u64)
        );
    }
    if drawn < edges {
        text +=
            &format!("Of {} edges among them, the {} heaviest are drawn. ", count(edges as u64), count(drawn as u64));
    }
    if edges > 0 {
        text += "Where a disc lies has no meaning beyond who is near to whom.";
    }
    text.trim_end().to_string()
}
