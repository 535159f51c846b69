//! The records that an audit puts in the place of an agent's own.

use super::stage::Altered;
use sottovoce_algorithms::Loss;
use sottovoce_core::{Coin, PeerId};
use sottovoce_privacy::sensitivity::Norm;
use sottovoce_task::load::Loaded;
use sottovoce_task::task::{Leaves, Unit};

/// A record, and what is special about it.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub what: &'static str,
    pub x: Vec<f64>,
    pub y: f64,
}

/// The data of an agent with a record in the place of one of its own, or of all of them where all are the unit.
pub(super) fn with(loaded: &Loaded, agent: PeerId, k: usize, record: &Record) -> Altered {
    let is_whole = loaded.task.privacy.is_some_and(|privacy| privacy.unit == Unit::Agent);
    let (problem, new) = (&loaded.problem, (&record.x[..], record.y));
    if is_whole { Altered::whole(problem, agent, new) } else { Altered::new(problem, agent, k, new) }
}

/// Rows to put in the place of one of a statistic: its bounds, the middle, and what is moved to the bounds.
fn rows(loaded: &Loaded, (x, y): (&[f64], f64)) -> Vec<Record> {
    let Some(range) = loaded.task.statistic.as_ref().and_then(|statistic| statistic.range) else { return Vec::new() };
    let row = |what, value: f64| Record { what, x: vec![value; x.len()], y };
    vec![
        row("a row of the lowest values", range.low),
        row("a row of the highest values", range.high),
        row("a row in the middle", 0.5 * (range.low + range.high)),
        row("a row below the range", range.low - 1e9),
        row("a row above the range", range.high + 1e9),
    ]
}

/// Records to put in the place of (`x`, `y`): ordinary ones, extreme ones, and such as no loader lets through.
pub(super) fn replacements(loaded: &Loaded, (x, y): (&[f64], f64), coin: &mut Coin) -> Vec<Record> {
    if loaded.task.statistic.is_some() {
        return rows(loaded, (x, y));
    }
    let (p, bound) = (x.len(), bound(loaded));
    let regression = !loaded.problem.loss.is_classification();
    let other = if regression { y + 1.0 } else { -y };
    let axis = |k: usize, length: f64| (0..p).map(|j| if j == k { length } else { 0.0 }).collect::<Vec<f64>>();
    let mut random: Vec<f64> = (0..p).map(|_| 2.0 * coin.unit() - 1.0).collect();
    let length = Norm::L1.of(&random).max(1e-9);
    random.iter_mut().for_each(|value| *value *= bound / length);
    let opposite: Vec<f64> = x.iter().map(|value| -value).collect();
    let overflowing: Vec<f64> = (0..p).map(|j| if j % 2 == 0 { f64::MAX } else { -f64::MAX }).collect();
    let mut records = vec![
        Record { what: "a random record", x: random, y: if coin.below(2) == 0 { y } else { other } },
        Record { what: "the opposite label", x: x.to_vec(), y: other },
        Record { what: "the opposite features", x: opposite, y },
        Record { what: "a record of maximal norm", x: axis(0, bound), y },
        Record { what: "a record of maximal norm and the opposite label", x: axis(p - 1, -bound), y: other },
        Record { what: "a record of zeros", x: vec![0.0; p], y },
        Record { what: "a record beyond the bound", x: vec![1e3 * bound; p], y },
        Record { what: "a record beyond the bound and the opposite label", x: vec![1e3 * bound; p], y: other },
        Record { what: "a record that overflows", x: overflowing.clone(), y },
        Record { what: "a record that overflows and the opposite label", x: overflowing, y: other },
        Record { what: "a record of tiny features", x: vec![1e-310; p], y: other },
        Record { what: "a record with a feature that is no number", x: axis(0, f64::NAN), y },
        Record { what: "a record with an infinite feature", x: axis(p - 1, f64::INFINITY), y: other },
    ];
    if regression {
        for label in [1e6, -1e6, 1e300, f64::INFINITY, f64::NAN] {
            records.push(Record { what: "a record with an extreme label", x: axis(0, bound), y: label });
        }
    }
    if loaded.task.algorithm.leaves == Leaves::Token {
        // What no loader lets through never comes to a token.
        records.retain(|record| record.x.iter().chain([&record.y]).all(|value| value.abs() <= 1e6));
    }
    records
}

/// Pairs of records that lie as far apart as can be, for what the task releases: the audit tries which is worst.
pub(super) fn extremes(loaded: &Loaded) -> Vec<[Record; 2]> {
    if let Some(range) = loaded.task.statistic.as_ref().and_then(|statistic| statistic.range) {
        let what = "one end of the range, and the other";
        let row = |value: f64| Record { what, x: vec![value; loaded.problem.dimension()], y: 0.0 };
        return vec![[row(range.low), row(range.high)]];
    }
    let (p, bound) = (loaded.problem.dimension(), bound(loaded));
    let axis = |length: f64| (0..p).map(|j| if j == 0 { length } else { 0.0 }).collect::<Vec<f64>>();
    let record = |what, length, y| Record { what, x: axis(length), y };
    let steep = if loaded.problem.loss == Loss::Squared { 1e6 } else { 1.0 };
    let turned = "both features and label turned";
    if loaded.task.algorithm.leaves == Leaves::NoisyData {
        return vec![[record(turned, bound, 1.0), record(turned, -bound, -1.0)]];
    }
    let (within, beyond) = ("the label turned, on the bound", "the label turned, beyond the bound");
    // Slopes of a loss are less than one near the start, so only a long record has a gradient that is clipped; too long, and the
    // slope of one of the two vanishes where models are noisy.
    [(within, 1.0), (beyond, 3.0), (beyond, 8.0)]
        .map(|(what, length)| [record(what, length * bound, steep), record(what, length * bound, -steep)])
        .to_vec()
}

/// The largest |x| that the task declares; on an axis it is the same in every norm.
fn bound(loaded: &Loaded) -> f64 {
    let privacy = loaded.task.privacy.expect("only private tasks are audited");
    match loaded.task.algorithm.leaves {
        Leaves::NoisyData => privacy.clip,
        _ => privacy.feature_bound(&loaded.task),
    }
}
