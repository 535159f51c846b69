//! How good models are on test points.

use sottovoce_algorithms::{Dataset, Loss, kernel::dot};
use sottovoce_core::{PeerId, Rows};

/// Each agent's score on its own test points; none for an agent without any. For classification the share of right answers (a
/// margin of zero counts as class 1), for the squared loss the root of the mean squared error.
pub fn scores(loss: Loss, test: &Dataset, models: &Rows) -> Vec<Option<f64>> {
    (0..test.agents() as u32)
        .map(PeerId)
        .map(|agent| {
            let (points, model) = (test.points(agent), models.row(agent.index()));
            let cost = |(x, y): (&[f64], f64)| {
                let along = dot(x, model);
                if loss.is_classification() {
                    f64::from((along >= 0.0) == (y > 0.0))
                } else {
                    (along - y) * (along - y)
                }
            };
            let mean = points.iter().map(cost).sum::<f64>() / points.len() as f64;
            (!points.is_empty()).then(|| if loss.is_classification() { mean } else { mean.sqrt() })
        })
        .collect()
}

/// Mean and standard deviation over the agents that have a score.
pub fn mean_and_deviation(scores: &[Option<f64>]) -> Option<(f64, f64)> {
    let count = scores.iter().flatten().count() as f64;
    let mean = scores.iter().flatten().sum::<f64>() / count;
    let variance = scores.iter().flatten().map(|score| (score - mean) * (score - mean)).sum::<f64>() / count;
    (count > 0.0).then(|| (mean, variance.sqrt()))
}

/// How many agents have a better score than before, and how many a worse one.
pub fn gains_and_losses(before: &[Option<f64>], after: &[Option<f64>], higher_is_better: bool) -> (u64, u64) {
    let (mut gain, mut lose) = (0, 0);
    for (before, after) in before.iter().zip(after) {
        if let (Some(before), Some(after)) = (before, after) {
            let (worse, better) = if higher_is_better { (before, after) } else { (after, before) };
            gain += u64::from(better > worse);
            lose += u64::from(better < worse);
        }
    }
    (gain, lose)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_points() -> Dataset {
        let mut test = Dataset::new(1);
        test.push_agent(&[1.0, -1.0, 2.0, 0.0], &[1.0, 1.0, 1.0, 1.0]);
        test.push_agent(&[], &[]);
        test.push_agent(&[1.0, 3.0], &[-1.0, 1.0]);
        test
    }

    #[test]
    fn accuracy_counts_right_answers_and_a_zero_margin_is_class_one() {
        let mut models = Rows::zeros(3, 1);
        models.row_mut(0)[0] = 1.0;
        assert_eq!(scores(Loss::Logistic, &test_points(), &models), [Some(0.75), None, Some(0.5)]);
    }

    #[test]
    fn the_error_of_a_regression_is_the_root_of_its_mean_square() {
        let mut models = Rows::zeros(3, 1);
        models.row_mut(2)[0] = 2.0;
        let errors = scores(Loss::Squared, &test_points(), &models);
        assert_eq!(errors, [Some(1.0), None, Some(17.0f64.sqrt())]);
    }

    #[test]
    fn agents_without_a_score_count_nowhere() {
        assert_eq!(mean_and_deviation(&[Some(1.0), None, Some(3.0)]), Some((2.0, 1.0)));
        assert_eq!(mean_and_deviation(&[None]), None);
        let (before, after) = ([Some(1.0), None, Some(3.0), Some(5.0)], [Some(2.0), Some(9.0), Some(2.0), Some(5.0)]);
        assert_eq!(gains_and_losses(&before, &after, true), (1, 1));
        assert_eq!(gains_and_losses(&before[..1], &after[..1], false), (0, 1));
    }
}
