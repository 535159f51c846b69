//! The data of a statistic: everyone's rows of a few columns, and the public bounds of their values.

use crate::{Dataset, Points};
use sottovoce_core::{Graph, PeerId};

/// Public bounds of all values. A value outside is moved to the bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    /// The smallest value.
    pub low: f64,
    /// The largest value.
    pub high: f64,
}

impl Bounds {
    /// The value, or the bound that it lies beyond.
    pub fn clip(self, value: f64) -> f64 {
        value.clamp(self.low, self.high)
    }

    /// In which of `bins` equal parts a value lies; the last one holds its end, and values outside lie where the bound does.
    pub fn cell(self, bins: u32, value: f64) -> usize {
        let part = (self.clip(value) - self.low) / (self.high - self.low);
        ((part * f64::from(bins)) as usize).min(bins as usize - 1)
    }
}

/// Everyone's rows, and who can exchange with whom.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The columns of a row stand in the place of features; labels are zero where the statistic has none.
    pub data: Dataset,
    /// Who exchanges with whom.
    pub graph: Graph,
    /// Bounds of all values, where the task says them.
    pub bounds: Option<Bounds>,
}

impl Survey {
    /// What one agent alone knows.
    pub fn observations(&self, agent: PeerId) -> Observations<'_> {
        Observations { points: self.data.points(agent), bounds: self.bounds }
    }

    /// What each agent knows.
    pub fn everyone(&self) -> impl Iterator<Item = Observations<'_>> + Clone {
        (0..self.data.agents() as u32).map(|agent| self.observations(PeerId(agent)))
    }
}

/// What one agent holds: its private rows, and the public bounds.
#[derive(Clone, Copy, Debug)]
pub struct Observations<'d> {
    /// The rows, as they came.
    pub points: Points<'d>,
    /// Bounds of all values, where the task says them.
    pub bounds: Option<Bounds>,
}

impl<'d> Observations<'d> {
    /// The values of each row, within the bounds.
    pub fn rows(&self) -> impl Iterator<Item = impl Iterator<Item = f64> + use<'d>> + use<'d> {
        let Observations { points, bounds } = *self;
        let within = move |&value: &f64| bounds.map_or(value, |bounds| bounds.clip(value));
        points.features.chunks_exact(points.dimension).map(move |row| row.iter().map(within))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_hold_their_own_rows_and_values_stay_within_the_bounds() {
        let mut data = Dataset::new(2);
        [&[1.0, 2.0, -3.0, 9.0][..], &[], &[4.0, 5.0]].iter().for_each(|rows| data.push_rows(rows));
        let bounds = Some(Bounds { low: 0.0, high: 5.0 });
        let survey = Survey { data, graph: Graph::Complete { n: 3 }, bounds };
        let rows = |agent| survey.observations(PeerId(agent)).rows().flatten().collect::<Vec<f64>>();
        assert_eq!([rows(0), rows(1), rows(2)], [vec![1.0, 2.0, 0.0, 5.0], vec![], vec![4.0, 5.0]]);
        assert_eq!((survey.data.agents(), survey.data.len()), (3, 3));
    }
}
