//! Statistics of everyone's rows, as somebody who had them all would compute them.

use crate::{Bounds, Observations};

/// The sum of each column over everyone's rows.
pub fn sum<'d>(everyone: impl Iterator<Item = Observations<'d>>) -> Vec<f64> {
    // Neumaier's sum: what each addition rounds off is added up beside it, so a reference is not less exact than what it judges.
    let mut sums: Vec<(f64, f64)> = Vec::new();
    for one in everyone {
        sums.resize(one.points.dimension, (0.0, 0.0));
        for row in one.rows() {
            for ((sum, rest), value) in sums.iter_mut().zip(row) {
                let next = *sum + value;
                *rest += if sum.abs() >= value.abs() { (*sum - next) + value } else { (value - next) + *sum };
                *sum = next;
            }
        }
    }
    sums.into_iter().map(|(sum, rest)| sum + rest).collect()
}

/// The mean of each column over all rows; zero where nobody has a row.
pub fn mean<'d>(everyone: impl Iterator<Item = Observations<'d>> + Clone) -> Vec<f64> {
    let rows: usize = everyone.clone().map(|one| one.points.len()).sum();
    sum(everyone).into_iter().map(|sum| sum / rows.max(1) as f64).collect()
}

/// How many values lie in each of `bins` equal parts of the range, where each agent counts as much as it has rows, or all alike.
pub fn histogram<'d>(
    everyone: impl Iterator<Item = Observations<'d>>,
    range: Bounds,
    bins: u32,
    agents_alike: bool,
) -> Vec<f64> {
    let mut counts = vec![0.0; bins as usize];
    for one in everyone {
        let share = if agents_alike { 1.0 / one.points.len().max(1) as f64 } else { 1.0 };
        one.rows().flatten().for_each(|value| counts[range.cell(bins, value)] += share);
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Dataset, Survey};
    use sottovoce_core::Graph;

    #[test]
    fn sums_are_exact_where_plain_sums_are_not() {
        let mut data = Dataset::new(2);
        data.push_rows(&[1e16, 1.0, 1.0, 2.0]);
        data.push_rows(&[-1e16, 3.0, 1.0, 10.0]);
        let mut survey = Survey { data, graph: Graph::Complete { n: 2 }, bounds: None };
        assert_eq!(sum(survey.everyone()), [2.0, 16.0]);
        assert_eq!(mean(survey.everyone()), [0.5, 4.0]);
        survey.bounds = Some(Bounds { low: 0.0, high: 4.0 });
        assert_eq!(sum(survey.everyone()), [6.0, 10.0]);
    }

    #[test]
    fn bins_are_equal_parts_and_the_last_holds_its_end() {
        let mut data = Dataset::new(1);
        data.push_rows(&[0.0, 0.24, 1.0, 7.0]);
        data.push_rows(&[0.25, -3.0]);
        let range = Bounds { low: 0.0, high: 1.0 };
        let survey = Survey { data, graph: Graph::Complete { n: 2 }, bounds: Some(range) };
        assert_eq!(histogram(survey.everyone(), range, 4, false), [3.0, 1.0, 0.0, 2.0]);
        assert_eq!(histogram(survey.everyone(), range, 4, true), [1.0, 0.5, 0.0, 0.5]);
    }

    #[test]
    fn nobodys_mean_is_zero() {
        let mut data = Dataset::new(1);
        data.push_rows(&[]);
        let survey = Survey { data, graph: Graph::Complete { n: 1 }, bounds: None };
        assert_eq!(mean(survey.everyone()), [0.0]);
    }
}
