//! Guarantees of pairs of members: how they fall with the distance.

use crate::page::{HEIGHT, Picture, WIDTH};
use crate::plot::number::{count, significant};
use crate::plot::{Axis, Chart, Dot, Ink, Stroke};

/// Epsilons of pairs of members.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ByDistance {
    /// That of the worst pair.
    pub worst: f64,
    /// The mean over all of them.
    pub mean: f64,
    /// By distance in the graph, from 1 on.
    pub distances: Vec<AtDistance>,
}

/// Epsilons of the pairs at one distance.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AtDistance {
    /// Edges between the two.
    pub distance: u64,
    /// How many ordered pairs.
    pub pairs: u64,
    /// Their mean.
    pub mean: f64,
    /// The least of them.
    pub least: f64,
    /// The largest of them.
    pub most: f64,
}

impl ByDistance {
    /// What an epsilon says of pairs, in a sentence.
    pub(crate) fn in_words(&self) -> String {
        let mean = significant(self.mean, 3);
        format!("It is that of the worst pair of members; on the mean over all pairs it is {mean}.")
    }
}

/// What is learned of a member by another, by how far they are apart.
pub(crate) fn picture(pairs: &ByDistance) -> Option<Picture> {
    // Beyond the last that learn anything there is one more, to show that.
    let last = pairs.distances.iter().rfind(|at| at.most > 0.0)?.distance;
    let shown = || pairs.distances.iter().filter(move |at| at.pairs > 0 && at.distance <= last + 1);
    let farthest = shown().map(|at| at.distance).max()? as f64;
    let (x, y) = (Axis::linear(0.0, farthest + 1.0), Axis::from_zero(pairs.worst));
    let mut chart = Chart::new(
        "Epsilon by distance",
        (x, "edges between the two members of a pair"),
        (y, "epsilon of what one learns of the other"),
    );
    let ink = Ink::Series(0);
    chart.band(ink, &shown().map(|at| (at.distance as f64, at.least, at.most)).collect::<Vec<_>>());
    chart.line(None, ink, Stroke::Strong, &shown().map(|at| (at.distance as f64, at.mean)).collect::<Vec<_>>());
    let dot = |at: &AtDistance| Dot {
        x: at.distance as f64,
        y: at.mean,
        tip: Some(format!(
            "distance {}: {} on average, from {} to {}, {} pairs",
            at.distance,
            significant(at.mean, 3),
            significant(at.least, 3),
            significant(at.most, 3),
            count(at.pairs)
        )),
    };
    chart.dots("mean of all pairs at this distance", ink, false, shown().map(dot).collect());
    chart.level("mean of all pairs", Ink::Series(1), Stroke::Dotted, pairs.mean);
    let caption = "What a member learns of another, by how many edges lie between them: a dot is the mean of all ordered pairs at that distance, \
                   and the band reaches from the least to the largest of them. Neighbours are sent the noisy value itself; further apart than \
                   the rounds reach nobody learns anything.";
    Some(Picture::new("epsilon-by-distance", caption.to_owned(), &chart.scene(WIDTH, HEIGHT)))
}
