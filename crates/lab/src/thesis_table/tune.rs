//! The values of a row, chosen by cross-validation on training points alone.
//!
//! A place in the grid is scored by the share of held-out training points that it gets right, over all folds. The search goes along one axis at a
//! time, from the middle of the grid, until nothing gets better: a choice is the best of its row and column, and not of the whole
//! grid. Of equals the first wins, and axes begin with the simpler model: more ridge, a smaller ball, more agreement, more neighbours.

use super::methods::{Family, Pace, Row, Scope, Values, prepared, score};
use super::split::Parts;
use super::users::Source;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The values that are tried, from the simpler model to the less simple one.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Grid {
    /// lambda of linear models.
    pub ridges: Vec<f64>,
    /// beta of boosted ones.
    pub radii: Vec<f64>,
    /// mu = 1 / lambda_1.
    pub trade_offs: Vec<f64>,
    /// lambda_3.
    pub sparsities: Vec<f64>,
}

/// A place in the grid: one index for each of ridge, radius, trade-off and sparsity.
type Place = [usize; 4];

impl Grid {
    fn at(&self, [ridge, radius, trade_off, sparsity]: Place) -> Values {
        Values {
            ridge: self.ridges[ridge],
            radius: self.radii[radius],
            trade_off: self.trade_offs[trade_off],
            sparsity: self.sparsities[sparsity],
        }
    }

    /// How many values each axis has; one where the row does not read it.
    fn sizes(&self, row: Row) -> Place {
        let (linear, personal) = (row.family == Family::Linear, row.scope == Scope::Personal);
        let size = |values: &[f64], read: bool| if read { values.len() } else { 1 };
        [
            size(&self.ridges, linear),
            size(&self.radii, !linear),
            size(&self.trade_offs, personal),
            size(&self.sparsities, personal),
        ]
    }
}

/// The best values that the search finds, and the share of held-out points that they get right. It is shown folds, and no test set.
pub fn choose(source: Source, row: Row, folds: &[Parts], grid: &Grid, pace: &Pace, seed: u64) -> (Values, f64) {
    let folds: Vec<Parts> = folds.iter().map(|parts| prepared(source, row.family, parts)).collect();
    let count: usize = folds.iter().map(|parts| parts.test.len()).sum();
    let pace = pace.in_folds();
    let share = |place: Place| {
        let values = grid.at(place);
        let right = |parts: &Parts| score(row, parts, &values, &pace, seed) * parts.test.len() as f64;
        folds.iter().map(right).sum::<f64>() / count as f64
    };
    let (best, found) = search(grid.sizes(row), share);
    (grid.at(best), found)
}

/// The place with the highest score on each axis through it, from the middle.
fn search(sizes: Place, mut score: impl FnMut(Place) -> f64) -> (Place, f64) {
    let mut known: BTreeMap<Place, f64> = BTreeMap::new();
    let mut at = sizes.map(|size| size / 2);
    loop {
        let before = at;
        for axis in 0..sizes.len() {
            let mut best = (f64::NEG_INFINITY, at);
            for k in 0..sizes[axis] {
                let mut place = at;
                place[axis] = k;
                let found = *known.entry(place).or_insert_with(|| score(place));
                if found > best.0 {
                    best = (found, place);
                }
            }
            at = best.1;
        }
        if at == before {
            return (at, known[&at]);
        }
    }
}
