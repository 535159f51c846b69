//! A graph that was learned, twice: as a matrix of weights, agents that belong together side by side, and as discs and lines with
//! confidence and loss (thesis, Figure 2.2).

use super::graph::{Drawing, part};
use super::{Picture, Report, WIDTH};
use crate::plot::number::{count, significant};
use crate::plot::{Anchor, Ink, Mark, Scene, seriation, text_width};

/// What is known of the agents of a learned graph, by agent.
#[derive(Clone, Debug, Default)]
pub struct LearnedGraph {
    /// c_u.
    pub confidence: Vec<f64>,
    /// The agent's loss at its model, computed from exact data; none where nobody may see it.
    pub loss: Option<Vec<f64>>,
    /// Which group it belongs to, if the data say so, and what the groups are called.
    pub groups: Option<(Vec<u32>, Vec<String>)>,
    /// The mean weight of a pair within a group, and of one between two.
    pub within_and_between: Option<(f64, f64)>,
}

/// How many shades of opacity the cells have.
const SHADES: usize = 8;
const TOP: f64 = 44.0;
const SIDE: f64 = 14.0;
const LEGEND: f64 = 44.0;
const LABEL: f64 = 13.0;

/// Both pictures, if the graph was learned.
pub(super) fn pictures(report: &Report) -> Vec<Picture> {
    let Some(learned) = &report.learned else { return Vec::new() };
    if report.agents.len() < 2 {
        return Vec::new();
    }
    vec![matrix(report, learned), discs(report, learned)]
}

fn matrix(report: &Report, learned: &LearnedGraph) -> Picture {
    const TITLE: &str = "Learned weights";
    let (chosen, edges) = part(report);
    let n = chosen.len();
    let group = |k: usize| learned.groups.as_ref().map_or(0, |(of, _)| of[chosen[k] as usize]);
    let mut order = seriation(n, &edges);
    // Stable: within a group the agents keep their order.
    order.sort_by_key(|&k| group(k));
    let mut place = vec![0; n];
    order.iter().enumerate().for_each(|(at, &k)| place[k] = at);

    let names = learned.groups.as_ref().map_or(0.0, |(_, names)| {
        names.iter().map(|name| 1.1 * text_width(&short(name), LABEL, false)).fold(0.0, f64::max) + 10.0
    });
    let side = WIDTH - 2.0 * SIDE - names;
    let (left, cell) = (SIDE + names, side / n as f64);
    let mut scene = Scene::new(WIDTH, TOP + side + LEGEND, TITLE);
    scene.text((SIDE, 26.0), TITLE, 15.0, Anchor::Start, true, Ink::Text);
    let most = edges.iter().map(|edge| edge.2).fold(0.0, f64::max);
    let shade = |weight: f64| ((weight / most * SHADES as f64).ceil() as usize).clamp(1, SHADES);
    for level in 1..=SHADES {
        let of_level = edges.iter().filter(|edge| shade(edge.2) == level);
        let cells = of_level.flat_map(|&(a, b, _)| {
            let (a, b) = (place[a as usize] as f64, place[b as usize] as f64);
            [(a, b), (b, a)].map(|(row, column)| {
                let y = TOP + (row + 0.5) * cell;
                [(left + column * cell, y), (left + (column + 1.0) * cell, y)]
            })
        });
        let ends = Vec::from_iter(cells);
        if !ends.is_empty() {
            scene.marks.push(Mark::Segments { ends, ink: Ink::Series(0), width: cell, opacity: opacity(level) });
        }
    }
    let corner = |x: f64, y: f64| (left + x * side, TOP + y * side);
    let frame = vec![corner(0.0, 0.0), corner(1.0, 0.0), corner(1.0, 1.0), corner(0.0, 1.0), corner(0.0, 0.0)];
    scene.marks.push(Mark::Line { points: frame, ink: Ink::Axis, width: 1.0, dash: None });
    if let Some((_, names)) = &learned.groups {
        let mut from = 0;
        while from < n {
            let of = group(order[from]);
            let to = from + order[from..].iter().take_while(|&&k| group(k) == of).count();
            let middle = TOP + 0.5 * (from + to) as f64 * cell;
            scene.text((left - 8.0, middle + 4.5), &short(&names[of as usize]), LABEL, Anchor::End, false, Ink::Muted);
            if to < n {
                let at = to as f64 / n as f64;
                scene.stroke(corner(0.0, at), corner(1.0, at), Ink::Axis, 0.7);
                scene.stroke(corner(at, 0.0), corner(at, 1.0), Ink::Axis, 0.7);
            }
            from = to;
        }
    }
    let base = TOP + side + LEGEND - 14.0;
    scene.text((SIDE, base), "weight", LABEL, Anchor::Start, false, Ink::Muted);
    let from = SIDE + 1.1 * text_width("weight", LABEL, false) + 8.0;
    let zero = 1.1 * text_width("0", LABEL, false) + 6.0;
    scene.text((from, base), "0", LABEL, Anchor::Start, false, Ink::Muted);
    for level in 1..=SHADES {
        let x = from + zero + 16.0 * (level - 1) as f64;
        let ends = vec![[(x, base - 4.5), (x + 16.0, base - 4.5)]];
        scene.marks.push(Mark::Segments { ends, ink: Ink::Series(0), width: 12.0, opacity: opacity(level) });
    }
    let end = (from + zero + 16.0 * SHADES as f64 + 6.0, base);
    scene.text(end, &significant(most, 2), LABEL, Anchor::Start, false, Ink::Muted);

    let mut caption = String::from("How much weight each agent (a row) gives each other one (a column). ");
    caption += match &learned.groups {
        Some(_) => "Agents stand by groups, which nobody was told while learning",
        None => "Agents with heavy edges between them stand near each other",
    };
    caption += &match learned.within_and_between {
        Some((within, between)) if between > 0.0 => {
            let ratio = significant(within / between, 3);
            format!(": the mean weight within a group is {ratio} times that between two.")
        }
        Some(_) => ": no weight lies between two groups.".to_owned(),
        None => ".".to_owned(),
    };
    if n < report.agents.len() {
        caption += &format!(" Of {} agents, {} are drawn.", count(report.agents.len() as u64), count(n as u64));
    }
    Picture::new("learned-weights", caption, &scene)
}

/// A group's name where there is little room.
fn short(name: &str) -> String {
    crate::plot::shortened(name, LABEL, 90.0)
}

fn opacity(level: usize) -> f64 {
    0.08 + 0.92 * level as f64 / SHADES as f64
}

fn discs(report: &Report, learned: &LearnedGraph) -> Picture {
    let (chosen, edges) = part(report);
    let of = |values: &[f64]| Vec::from_iter(chosen.iter().map(|&k| values[k as usize]));
    let confidence = of(&learned.confidence);
    let known = learned.loss.is_some();
    let loss = learned.loss.as_ref().map_or_else(|| vec![f64::NAN; chosen.len()], |loss| of(loss));
    let finite = || loss.iter().copied().filter(|loss| loss.is_finite());
    let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    // From the lowest loss, blue, to the highest, orange.
    let colour = |loss: f64| {
        let share = if high > low { (high - loss) / (high - low) } else { 0.5 };
        Ink::Gain((share * (crate::plot::GAIN_STEPS - 1) as f64).round() as usize)
    };
    let names = Vec::from_iter(chosen.iter().map(|&k| report.agents[k as usize].name.as_str()));
    let tip = |k: usize| {
        let loss = if known { format!(", loss {}", significant(loss[k], 3)) } else { String::new() };
        format!("{}: confidence {}{loss}", names[k], significant(confidence[k], 2))
    };
    let most = confidence.iter().copied().fold(0.0, f64::max);
    let drawing = Drawing {
        title: "The learned graph",
        names: &names,
        edges: &edges,
        sizes: &confidence,
        fill: &|k| if loss[k].is_finite() { (colour(loss[k]), Ink::Paper) } else { (Ink::Paper, Ink::Axis) },
        tip: &tip,
        colours: (low <= high).then(|| ("loss", significant(high, 2), significant(low, 2))),
        size_name: "confidence",
        size_legend: vec![most, most / 4.0].into_iter().map(|size| (size, significant(size, 2))).collect(),
    };
    let (scene, drawn) = drawing.scene();
    let mut caption = String::from("Each disc is an agent, larger with more confidence (more points)");
    if known {
        caption += ", from blue where its loss is low to orange where it is high";
    }
    caption += "; lines are learned weights, darker with more. ";
    if chosen.len() < report.agents.len() {
        let (total, shown) = (count(report.agents.len() as u64), count(chosen.len() as u64));
        caption += &format!("Of {total} agents, {shown} are drawn: a neighbourhood of one chosen at random. ");
    }
    if drawn < edges.len() {
        let (total, drawn) = (count(edges.len() as u64), count(drawn as u64));
        caption += &format!("Of {total} edges among them, the {drawn} heaviest are drawn. ");
    }
    if known {
        caption += "Who is confident and has a high loss is of little help to others, and has few of them.";
    }
    Picture::new("learned-graph", caption.trim_end().to_owned(), &scene)
}
