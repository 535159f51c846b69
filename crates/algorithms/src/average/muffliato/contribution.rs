//! What a member contributes to a sum, on a grid, so that adding up its rows rounds nothing.

use crate::config::{ConfigError, at_least_one};
use crate::{Bounds, Observations};
use sottovoce_core::wire::NUMBER_MAX;

/// The grid is so much finer than the range of a contribution.
const GRID_BITS: i32 = 20;

/// Which of a member's values may be replaced for one guarantee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContributionUnit {
    /// One row: a member contributes the sum of its rows.
    Rows,
    /// All rows of a member: it contributes their mean.
    Means,
}

/// How rows become numbers that noise can hide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Contribution {
    columns: usize,
    unit: ContributionUnit,
    range: Option<Bounds>,
    /// The distance of the grid's points: a power of two; none where nothing is hidden.
    grid: Option<f64>,
}

impl Contribution {
    /// Checks the range, which what is hidden must have.
    pub fn new(
        columns: usize,
        unit: ContributionUnit,
        range: Option<Bounds>,
        is_hidden: bool,
    ) -> Result<Self, ConfigError> {
        at_least_one("columns", columns)?;
        let fits = |Bounds { low, high }: Bounds| low < high && low.abs().max(high.abs()) < NUMBER_MAX;
        if range.map_or(is_hidden, |range| !fits(range)) {
            let value = range.map_or("missing".to_owned(), |range| format!("from {} to {}", range.low, range.high));
            return Err(ConfigError {
                field: "range",
                value,
                accepted: "two finite numbers, the first below the second,",
            });
        }
        let of = |Bounds { low, high }: Bounds| {
            libm::ldexp(1.0, libm::ilogb((high - low).max(low.abs()).max(high.abs())) - GRID_BITS)
        };
        Ok(Contribution { columns, unit, range, grid: range.filter(|_| is_hidden).map(of) })
    }

    /// Numbers in a row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// What may be replaced.
    pub fn unit(&self) -> ContributionUnit {
        self.unit
    }

    /// The distance of the grid's points; 1 where there is none.
    pub fn grid(&self) -> f64 {
        self.grid.unwrap_or(1.0)
    }

    /// How far a contribution can move in L2 when a row, or all of a member, is replaced by any other: in each column the range, and what
    /// rounding to the grid adds. What is not hidden has none.
    pub fn sensitivity(&self) -> f64 {
        let each = self.range.zip(self.grid).map_or(1.0, |(range, grid)| (range.high - range.low).next_up() + grid);
        (each * libm::sqrt(self.columns as f64).next_up()).next_up()
    }

    /// What a member contributes in each column, and how many rows it has.
    pub fn of(&self, observations: Observations<'_>) -> (Vec<f64>, u64) {
        assert_eq!(observations.points.dimension, self.columns, "as many columns as in the task");
        let observations = Observations { bounds: self.range, ..observations };
        let rows = observations.points.len() as u64;
        let mut sums = vec![0.0; self.columns];
        for row in observations.rows() {
            // Each row on the grid, so that replacing it moves the sum by no more than it moves.
            let on_grid = |value| if self.unit == ContributionUnit::Rows { self.snap(value) } else { value };
            sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += on_grid(value));
        }
        if self.unit == ContributionUnit::Means {
            for sum in &mut sums {
                let mean = *sum / rows.max(1) as f64;
                *sum = self.snap(self.range.map_or(mean, |range| range.clip(mean)));
            }
        }
        (sums, rows)
    }

    fn snap(&self, value: f64) -> f64 {
        self.grid.map_or(value, |grid| libm::rint(value / grid) * grid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Points;

    fn rows(dimension: usize, values: &[f64]) -> Observations<'_> {
        Observations {
            points: Points { dimension, features: values, labels: &values[..values.len() / dimension] },
            bounds: None,
        }
    }

    #[test]
    fn replacing_one_row_moves_a_contribution_by_at_most_the_sensitivity() {
        let range = Some(Bounds { low: -1.0, high: 3.0 });
        for unit in [ContributionUnit::Rows, ContributionUnit::Means] {
            let hidden = Contribution::new(2, unit, range, true).expect("a range");
            let (low, high) = ([-7.0, -1.0, 0.3, 0.1], [3.0, 900.0, 0.3, 0.1]);
            let apart = hidden
                .of(rows(2, &low))
                .0
                .iter()
                .zip(hidden.of(rows(2, &high)).0)
                .map(|(a, b)| (b - a) * (b - a))
                .sum::<f64>()
                .sqrt();
            let widest = 32f64.sqrt();
            assert!(apart <= hidden.sensitivity() && hidden.sensitivity() < widest * 1.001, "{unit:?}: {apart}");
            assert!(unit == ContributionUnit::Means || apart > 0.999 * widest, "{apart}");
        }
        let means = Contribution::new(1, ContributionUnit::Means, range, true).expect("a range");
        assert!(means.of(rows(1, &[9.0; 5])).0[0] - means.of(rows(1, &[-9.0])).0[0] > 3.999, "all rows of a member");
        assert_eq!(means.of(rows(1, &[])), (vec![0.0], 0));
    }

    #[test]
    fn what_is_not_hidden_is_not_rounded_and_what_is_hidden_has_a_range() {
        let exact = Contribution::new(1, ContributionUnit::Rows, None, false).expect("anything");
        assert_eq!(exact.of(rows(1, &[0.1, 0.2])), (vec![0.1 + 0.2], 2));
        assert!(Contribution::new(1, ContributionUnit::Rows, None, true).is_err());
        for (low, high) in [(1.0, 1.0), (2.0, 1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY)] {
            assert!(
                Contribution::new(1, ContributionUnit::Rows, Some(Bounds { low, high }), true).is_err(),
                "{low} {high}"
            );
        }
        assert!(Contribution::new(0, ContributionUnit::Rows, None, false).is_err());
    }
}
