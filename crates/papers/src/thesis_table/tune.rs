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
    /// The constant feature of linear models.
    pub constants: Vec<f64>,
    /// beta of boosted ones.
    pub radii: Vec<f64>,
    /// mu = 1 / lambda_1.
    pub trade_offs: Vec<f64>,
    /// lambda_3.
    pub sparsities: Vec<f64>,
}

/// A place in the grid: one index for each of ridge, constant, radius, trade-off and sparsity.
type Place = [usize; 5];

impl Grid {
    fn at(&self, [ridge, constant, radius, trade_off, sparsity]: Place) -> Values {
        Values {
            ridge: self.ridges[ridge],
            constant: self.constants[constant],
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
            size(&self.constants, linear),
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

#[cfg(test)]
mod tests {
    use super::super::split::{Rule, Split};
    use super::super::testing::{neighbourly, quick_pace};
    use super::super::users::Users;
    use super::*;
    use sottovoce_algorithms::Dataset;
    use sottovoce_core::PeerId;

    fn grid() -> Grid {
        Grid {
            ridges: vec![1.0, 0.01],
            constants: vec![1.0, 2.0],
            radii: vec![1.0, 10.0],
            trade_offs: vec![0.1, 1.0, 10.0],
            sparsities: vec![10.0, 0.1],
        }
    }

    /// The labels of all points that a split sets aside for the test, turned round.
    fn with_other_test_labels(users: &Users, split: &Split) -> Users {
        let mut points = Dataset::new(users.points.dimension());
        for id in (0..users.points.agents() as u32).map(PeerId) {
            let (own, test) = (users.points.points(id), split.parts.test.points(id));
            let is_test = |x: &[f64]| test.iter().any(|(other, _)| other == x);
            let labels: Vec<f64> = own.iter().map(|(x, y)| if is_test(x) { -y } else { y }).collect();
            points.push_agent(own.features, &labels);
        }
        Users { points, published: None }
    }

    #[test]
    fn other_test_labels_change_no_choice() {
        let users = neighbourly(5, 8, 30);
        let split = |users: &Users| Split::new(users, Rule::Share(0.5), 2);
        let honest = split(&users);
        let turned = split(&with_other_test_labels(&users, &honest));
        assert_ne!(honest.parts.test, turned.parts.test);
        for row in Row::ALL {
            let choice = |split: &Split| choose(Source::Vehicle, row, &split.folds, &grid(), &quick_pace(), 1);
            assert_eq!(choice(&honest), choice(&turned), "{row:?}");
        }
    }

    #[test]
    fn a_search_climbs_along_each_axis_and_of_equals_the_simpler_wins() {
        let top: Place = [1, 0, 0, 4, 2];
        let peak = |at: Place| 0.0 - at.iter().zip(&top).map(|(a, b)| a.abs_diff(*b)).sum::<usize>() as f64;
        assert_eq!(search([3, 1, 1, 5, 3], peak), (top, 0.0));
        let mut asked = 0;
        let flat = |_: Place| {
            asked += 1;
            1.0
        };
        assert_eq!(search([3, 1, 1, 5, 3], flat), ([0; 5], 1.0));
        assert!(asked < 3 * 5 * 3, "not the whole grid: {asked}");
    }

    #[test]
    fn a_row_searches_what_it_reads_and_nothing_else() {
        let sizes = Row::ALL.map(|row| grid().sizes(row));
        let alone = [[2, 2, 1, 1, 1], [1, 1, 2, 1, 1]];
        assert_eq!(sizes, [alone[0], alone[0], [2, 2, 1, 3, 2], alone[1], alone[1], [1, 1, 2, 3, 2]]);
    }
}
