//! The data of a statistic: everyone's rows of a few columns, and the public bounds of their values.

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
}

/// Everyone's rows, in one piece: agent after agent, row after row; and who can exchange with whom.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Who exchanges with whom.
    pub graph: Graph,
    /// Bounds of all values, where the task says them.
    pub bounds: Option<Bounds>,
    columns: usize,
    offsets: Vec<usize>,
    values: Vec<f64>,
}

impl Survey {
    /// Nobody's rows yet.
    ///
    /// # Panics
    /// When there is no column.
    pub fn new(graph: Graph, bounds: Option<Bounds>, columns: usize) -> Self {
        assert!(columns > 0, "a statistic is of one column at least");
        Survey { graph, bounds, columns, offsets: vec![0], values: Vec::new() }
    }

    /// Appends the rows of the next agent, row after row.
    ///
    /// # Panics
    /// When the last row is not whole.
    pub fn push_agent(&mut self, rows: &[f64]) {
        assert!(rows.len().is_multiple_of(self.columns), "whole rows");
        self.values.extend_from_slice(rows);
        self.offsets.push(self.values.len() / self.columns);
    }

    /// n.
    pub fn agents(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Numbers in a row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Rows in all.
    pub fn rows(&self) -> usize {
        self.values.len() / self.columns
    }

    /// What one agent alone knows.
    pub fn observations(&self, agent: PeerId) -> Observations<'_> {
        let (from, to) = (self.offsets[agent.index()], self.offsets[agent.index() + 1]);
        Observations {
            columns: self.columns,
            values: &self.values[from * self.columns..to * self.columns],
            bounds: self.bounds,
        }
    }
}

/// What one agent holds: its private rows, and the public bounds.
#[derive(Clone, Copy, Debug)]
pub struct Observations<'d> {
    /// Numbers in a row.
    pub columns: usize,
    /// Row after row, as they came.
    pub values: &'d [f64],
    /// Bounds of all values, where the task says them.
    pub bounds: Option<Bounds>,
}

impl Observations<'_> {
    /// m_i.
    pub fn rows(&self) -> usize {
        self.values.len() / self.columns
    }

    /// The sum of each column, every value within the bounds, into `sums`.
    pub fn add_to(&self, sums: &mut [f64]) {
        for row in self.values.chunks_exact(self.columns) {
            for (sum, &value) in sums.iter_mut().zip(row) {
                *sum += self.bounds.map_or(value, |bounds| bounds.clip(value));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_hold_their_own_rows_and_values_stay_within_the_bounds() {
        let bounds = Some(Bounds { low: 0.0, high: 5.0 });
        let mut survey = Survey::new(Graph::Complete { n: 3 }, bounds, 2);
        survey.push_agent(&[1.0, 2.0, -3.0, 9.0]);
        survey.push_agent(&[]);
        survey.push_agent(&[4.0, 5.0]);
        let sums = |agent| {
            let mut sums = [0.0; 2];
            survey.observations(PeerId(agent)).add_to(&mut sums);
            sums
        };
        assert_eq!((survey.agents(), survey.rows(), survey.columns()), (3, 3, 2));
        assert_eq!([0, 1, 2].map(|agent| survey.observations(PeerId(agent)).rows()), [2, 0, 1]);
        assert_eq!([sums(0), sums(1), sums(2)], [[1.0, 7.0], [0.0, 0.0], [4.0, 5.0]]);
    }
}
