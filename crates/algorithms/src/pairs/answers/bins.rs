//! Rows as one of a few categories: equal bins over public bounds, in each column.

use crate::Bounds;
use crate::config::ConfigError;

/// The most categories: the statistic of all pairs of them is computed pair by pair.
pub const CATEGORIES_MAX: u32 = 4096;

/// Equal bins in each of some columns. A category is one bin of each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bins {
    bounds: Bounds,
    bins: u32,
    columns: u32,
    categories: u32,
}

impl Bins {
    /// So many bins in each of so many columns, over public bounds.
    pub fn new(bounds: Bounds, bins: u32, columns: usize) -> Result<Self, ConfigError> {
        let refuse = |field, value: String, accepted| Err(ConfigError { field, value, accepted });
        let width = bounds.high - bounds.low;
        if !(width.is_finite() && width > 0.0) {
            return refuse("range", format!("[{}, {}]", bounds.low, bounds.high), "two numbers, the larger one last,");
        }
        let columns = columns.max(1) as u32;
        match bins.checked_pow(columns) {
            _ if bins < 2 => refuse("bins", bins.to_string(), "two or more"),
            Some(categories) if categories <= CATEGORIES_MAX => Ok(Bins { bounds, bins, columns, categories }),
            _ => refuse("bins", format!("{bins} in each of {columns} columns"), "at most 4096 together"),
        }
    }

    /// As many bins as balance the noise of randomized response with the width of a bin: round(n^(1/4) sqrt(epsilon)) for a statistic that moves
    /// by one range with a row, two at least (thesis, after Theorem 3.4). n, the number of rows, is public.
    pub fn by_rule(bounds: Bounds, rows: u64, epsilon: f64, columns: usize) -> Result<Self, ConfigError> {
        let categories = libm::sqrt(libm::sqrt(rows as f64) * epsilon).clamp(2.0, f64::from(CATEGORIES_MAX));
        // The root, so that there are no more categories than that, but two bins in each column.
        let bins = libm::rint(libm::pow(categories, 1.0 / columns.max(1) as f64)).max(2.0);
        Bins::new(bounds, bins as u32, columns)
    }

    /// How many bins a column has.
    pub fn bins(&self) -> u32 {
        self.bins
    }

    /// How many categories there are.
    pub fn categories(&self) -> u32 {
        self.categories
    }

    /// The category of a row.
    pub fn category(&self, row: impl Iterator<Item = f64>) -> u32 {
        row.take(self.columns as usize).fold(0, |category, value| category * self.bins + self.bin(value))
    }

    fn bin(&self, value: f64) -> u32 {
        let Bounds { low, high } = self.bounds;
        let share = (self.bounds.clip(value) - low) / (high - low);
        // What lies on the upper bound is in the last bin.
        ((share * f64::from(self.bins)) as u32).min(self.bins - 1)
    }

    /// The middle of a category, one number for each column.
    pub fn middle(&self, category: u32) -> Vec<f64> {
        let width = (self.bounds.high - self.bounds.low) / f64::from(self.bins);
        let place = |column: u32| category / self.bins.pow(self.columns - 1 - column) % self.bins;
        (0..self.columns).map(|column| self.bounds.low + (f64::from(place(column)) + 0.5) * width).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds = Bounds { low: 1.0, high: 5.0 };

    #[test]
    fn the_middle_of_a_category_is_in_it_and_bounds_are_in_the_outer_bins() {
        let bins = Bins::new(BOUNDS, 4, 3).expect("bins");
        assert_eq!(bins.categories(), 64);
        for category in 0..64 {
            assert_eq!(bins.category(bins.middle(category).into_iter()), category);
        }
        assert_eq!(bins.category([1.0, 5.0, -7.0].into_iter()), 3 * 4);
        assert_eq!(bins.category([99.0, 2.0, 2.999].into_iter()), 3 * 16 + 4 + 1);
    }

    #[test]
    fn bins_by_the_public_rule_grow_with_the_fourth_root() {
        let by_rule = |rows, epsilon| Bins::by_rule(BOUNDS, rows, epsilon, 1).expect("bins").bins();
        assert_eq!((by_rule(10, 1.0), by_rule(10_000, 1.0), by_rule(1_000_000, 1.0)), (2, 10, 32));
        assert_eq!((by_rule(10_000, 4.0), by_rule(10_000, 1e-9)), (20, 2));
        assert_eq!(Bins::by_rule(BOUNDS, 1_000_000, 1.0, 2).expect("bins").bins(), 6);
    }

    #[test]
    fn what_is_no_choice_is_refused() {
        let refused = |bounds, bins, columns| Bins::new(bounds, bins, columns).expect_err("refused").to_string();
        assert_eq!(refused(BOUNDS, 1, 1), "bins is 1; two or more would be accepted");
        assert!(refused(BOUNDS, 100, 2).contains("at most 4096 together"));
        assert!(refused(BOUNDS, u32::MAX, 9).contains("at most 4096 together"));
        assert!(refused(Bounds { low: 2.0, high: 2.0 }, 4, 1).starts_with("range is [2, 2]"));
    }
}
