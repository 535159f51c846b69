//! What one output says about two inputs, by the law that the mechanism claims to have.

use crate::{Event, sensitivity::Norm};

/// ln p(`output` | `one`) - ln p(`output` | `other`) of a mechanism with this sensitivity.
///
/// # Panics
/// For an exact release, which has no density, and when the lengths differ.
pub fn log_likelihood_ratio(event: Event, sensitivity: f64, output: &[f64], one: &[f64], other: &[f64]) -> f64 {
    assert!(output.len() == one.len() && one.len() == other.len(), "two inputs for one output");
    let triples = || output.iter().zip(one).zip(other).map(|((&o, &a), &b)| (o, a, b));
    match event {
        Event::Reveal => panic!("an exact value has no density"),
        Event::Laplace { noise_multiplier } => {
            triples().map(|(o, a, b)| (o - b).abs() - (o - a).abs()).sum::<f64>() / (noise_multiplier * sensitivity)
        }
        Event::Gaussian { noise_multiplier } => {
            let sigma = noise_multiplier * sensitivity;
            // (o - b)^2 - (o - a)^2, without the difference of squares.
            triples().map(|(o, a, b)| (a - b) * (2.0 * o - a - b)).sum::<f64>() / (2.0 * sigma * sigma)
        }
        Event::GammaNorm { noise_multiplier } => {
            let length = |input: &[f64]| {
                let difference: Vec<f64> = output.iter().zip(input).map(|(o, x)| o - x).collect();
                Norm::L2.of(&difference)
            };
            (length(other) - length(one)) / (noise_multiplier * sensitivity)
        }
        Event::RandomizedResponse { epsilon } => {
            // Of two signs, or of many categories: the truth is e^epsilon times as likely as anything else.
            let told = |x: f64, o: f64| if x == o { epsilon } else { 0.0 };
            triples().map(|(o, a, b)| told(a, o) - told(b, o)).sum()
        }
    }
}

/// How far two inputs are apart, as the mechanism's sensitivity counts: in its norm, or for randomized response the number of signs
/// that differ.
pub fn distance(event: Event, one: &[f64], other: &[f64]) -> f64 {
    let difference: Vec<f64> = one.iter().zip(other).map(|(a, b)| a - b).collect();
    match event {
        Event::RandomizedResponse { .. } => difference.iter().filter(|&&difference| difference != 0.0).count() as f64,
        _ => event.norm().of(&difference),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The log of each law's density, but for a constant, as its definition has it.
    fn log_density(event: Event, sensitivity: f64, output: &[f64], input: &[f64]) -> f64 {
        let noise: Vec<f64> = output.iter().zip(input).map(|(o, x)| o - x).collect();
        match event {
            Event::Laplace { noise_multiplier } => -Norm::L1.of(&noise) / (noise_multiplier * sensitivity),
            Event::Gaussian { noise_multiplier } => {
                -0.5 * (Norm::L2.of(&noise) / (noise_multiplier * sensitivity)).powi(2)
            }
            Event::GammaNorm { noise_multiplier } => -Norm::L2.of(&noise) / (noise_multiplier * sensitivity),
            Event::RandomizedResponse { epsilon } => noise.iter().map(|x| if *x == 0.0 { epsilon } else { 0.0 }).sum(),
            Event::Reveal => unreachable!(),
        }
    }

    #[test]
    fn the_ratio_is_that_of_the_densities() {
        let (output, one, other) = ([0.3, -1.2, 0.1], [0.1, 0.2, -0.5], [0.4, -0.2, 0.0]);
        let signs = ([1.0, -1.0, 1.0], [1.0, 1.0, -1.0], [-1.0, -1.0, -1.0]);
        let events = [
            Event::Laplace { noise_multiplier: 2.0 },
            Event::Gaussian { noise_multiplier: 0.7 },
            Event::GammaNorm { noise_multiplier: 3.0 },
        ];
        let cases = events.map(|event| (event, (output, one, other)));
        for (event, (o, a, b)) in cases.into_iter().chain([(Event::RandomizedResponse { epsilon: 1.5 }, signs)]) {
            let ratio = log_likelihood_ratio(event, 0.5, &o, &a, &b);
            let expected = log_density(event, 0.5, &o, &a) - log_density(event, 0.5, &o, &b);
            assert!((ratio - expected).abs() < 1e-12, "{event:?}: {ratio} is not {expected}");
        }
    }

    #[test]
    fn one_label_that_turns_is_a_distance_of_one() {
        let response = Event::RandomizedResponse { epsilon: 1.0 };
        assert_eq!(distance(response, &[1.0, -1.0], &[1.0, 1.0]), 1.0);
        assert_eq!(distance(Event::Laplace { noise_multiplier: 1.0 }, &[1.0, -1.0], &[0.0, 1.0]), 3.0);
        assert_eq!(distance(Event::Gaussian { noise_multiplier: 1.0 }, &[3.0, 0.0], &[0.0, 4.0]), 5.0);
    }
}
