//! Decision stumps: base predictors that look at one feature each (thesis, section 2.5).
//!
//! h(x) = 1 if x_j <= threshold, -1 if it is above. Each feature gets the same number of equally spaced thresholds,
//! low + i (high - low) / each, i = 1 .. each. The last is `high` itself: a stump that says 1 to everything in range, so a
//! combination can have an intercept.
//!
//! What depends on data: nothing in [`Stumps::grid`], where the range is the task's, public as the thresholds are. In
//! [`range_of`] looks at all agents' features, as the authors' code does: the largest and the smallest number in anybody's data are then
//! known to all, and no gate has charged for them. A private task must say its range.

use crate::{Dataset, Points};
use sottovoce_core::PeerId;

/// Stumps over all features, with the same thresholds for each.
#[derive(Clone, Debug, PartialEq)]
pub struct Stumps {
    dimension: usize,
    thresholds: Vec<f64>,
}

impl Stumps {
    /// At least `count` stumps, and as many for each of `dimension` features, with thresholds in a range that is public.
    ///
    /// # Panics
    /// When there are no features or no stumps, or the range is not one.
    pub fn grid(dimension: usize, count: usize, low: f64, high: f64) -> Self {
        assert!(dimension > 0 && count > 0, "{count} stumps over {dimension} features");
        assert!(low <= high && low.is_finite() && high.is_finite(), "a range from {low} to {high}");
        let each = count.div_ceil(dimension);
        let step = (high - low) / each as f64;
        // The last threshold must be `high` to the bit, or the largest number would be above it.
        let threshold = |i: usize| if i == each { high } else { low + i as f64 * step };
        Stumps { dimension, thresholds: (1..=each).map(threshold).collect() }
    }

    /// K, how many there are.
    pub fn count(&self) -> usize {
        self.dimension * self.thresholds.len()
    }

    /// The thresholds of each feature.
    pub fn thresholds(&self) -> &[f64] {
        &self.thresholds
    }

    /// What every stump says about x, into `out`: feature after feature, threshold after threshold.
    pub fn answers(&self, x: &[f64], out: &mut Vec<f64>) {
        for x in x {
            out.extend(self.thresholds.iter().map(|threshold| if x > threshold { -1.0 } else { 1.0 }));
        }
    }

    /// The data with each x replaced by what the stumps say about it.
    ///
    /// # Panics
    /// When the data have another dimension.
    pub fn apply(&self, data: &Dataset) -> Dataset {
        assert_eq!(data.dimension(), self.dimension, "stumps for these features");
        let mut answered = Dataset::new(self.count());
        let mut rows = Vec::new();
        for agent in (0..data.agents() as u32).map(PeerId) {
            let points: Points<'_> = data.points(agent);
            rows.clear();
            points.iter().for_each(|(x, _)| self.answers(x, &mut rows));
            answered.push_agent(&rows, points.labels);
        }
        answered
    }
}

/// The smallest and the largest number among all agents' features; zeros without any. Data-dependent: see the module's comment.
pub fn range_of(data: &Dataset) -> [f64; 2] {
    let all = (0..data.agents() as u32).flat_map(|agent| data.points(PeerId(agent)).features);
    let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &x| (low.min(x), high.max(x)));
    if low <= high { [low, high] } else { [0.0, 0.0] }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spanning(data: &Dataset, count: usize) -> Stumps {
        let [low, high] = range_of(data);
        Stumps::grid(data.dimension(), count, low, high)
    }

    #[test]
    fn thresholds_are_equally_spaced_and_the_last_stump_says_one() {
        let stumps = Stumps::grid(2, 7, -1.0, 1.0);
        assert_eq!(stumps.thresholds, [-0.5, 0.0, 0.5, 1.0]);
        assert_eq!(stumps.count(), 8);
        let mut said = Vec::new();
        stumps.answers(&[0.0, 0.7], &mut said);
        assert_eq!(said, [-1.0, 1.0, 1.0, 1.0, -1.0, -1.0, -1.0, 1.0]);
    }

    #[test]
    fn data_keep_their_agents_and_labels() {
        let mut data = Dataset::new(2);
        data.push_agent(&[0.0, 3.0, -1.0, 2.0], &[1.0, -1.0]);
        data.push_agent(&[], &[]);
        data.push_agent(&[0.3, 0.1], &[1.0]);
        // 0.1 + 10 (3.1 / 10) and the like miss the largest number by a rounding error; the last stump must not.
        let stumps = spanning(&data, 20);
        assert_eq!((stumps.thresholds.len(), stumps.thresholds[9]), (10, 3.0));
        let answered = stumps.apply(&data);
        assert_eq!((answered.dimension(), answered.agents(), answered.len()), (20, 3, 3));
        assert_eq!(answered.points(PeerId(0)).labels, [1.0, -1.0]);
        for (row, _) in (0..3).flat_map(|agent| answered.points(PeerId(agent)).iter()) {
            assert!(row.iter().all(|said| said.abs() == 1.0));
            assert_eq!((row[9], row[19]), (1.0, 1.0));
        }
        assert_eq!(spanning(&Dataset::new(3), 5).count(), 6);
    }
}
