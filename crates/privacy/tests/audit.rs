//! The audit of single mechanisms: it comes close to what is true, and does not go beyond it.

use sottovoce_privacy::audit::{MechanismAudit, audit_mechanism, audit_response};
use sottovoce_privacy::calibrate::{self, noise_multiplier};
use sottovoce_privacy::{Event, Exact, Idealized, Noise, Tight};

const TRIALS: usize = 1_000_000;
const DELTA: f64 = 1e-5;

/// The mechanisms of one release with this epsilon.
fn mechanisms(epsilon: f64) -> [(Event, usize); 4] {
    let sigma = noise_multiplier(calibrate::NoiseKind::Gaussian, epsilon, DELTA, 1, &Tight).expect("in reach");
    [
        (Event::Laplace { noise_multiplier: 1.0 / epsilon }, 1),
        (Event::GammaNorm { noise_multiplier: 1.0 / epsilon }, 1),
        (Event::RandomizedResponse { epsilon }, 1),
        (Event::Gaussian { noise_multiplier: sigma }, 1),
    ]
}

/// A bound with 95% confidence stays below the truth for 19 seeds of 20; here the seeds are fixed.
fn comes_close<N: Noise>(kind: &str, epsilon: f64, least: f64, noise: impl Fn(u32) -> N) {
    for (event, dimension) in mechanisms(epsilon) {
        let audit = audit_mechanism(&noise, event, dimension, TRIALS, DELTA);
        let ratio = audit.epsilon.likely / audit.claim;
        println!("{kind} {event:?}: {} of {}, ratio {ratio:.4}", audit.epsilon.likely, audit.claim);
        assert!((audit.claim / epsilon - 1.0).abs() < 1e-6, "{audit:?}");
        assert!(ratio >= least && ratio <= 1.0, "{kind} {event:?}: {ratio}");
        assert!(!audit.is_refuted(), "{audit:?}");
        if let Some((claim, bound)) = audit.mu {
            println!("  mu: {} of {claim}, ratio {:.4}", bound.likely, bound.likely / claim);
            assert!(bound.likely / claim >= least && bound.likely <= claim, "{audit:?}");
        }
    }
}

#[test]
fn the_lower_bound_comes_close_to_the_claim_and_stays_below() {
    comes_close("idealized", 1.0, 0.95, |world| Idealized::new(5, world));
    comes_close("idealized", 0.1, 0.75, |world| Idealized::new(5, world));
}

#[test]
fn the_lower_bound_of_exact_noise_comes_close_to_the_claim_and_stays_below() {
    comes_close("exact", 1.0, 0.95, |world| Exact::seeded(1, world));
    comes_close("exact", 0.1, 0.75, |world| Exact::seeded(1, world));
}

/// An answer of many categories, and of two, as one bit of a Hadamard row is.
#[test]
fn the_lower_bound_of_randomized_response_comes_close_to_the_claim_and_stays_below() {
    for categories in [2, 16] {
        for (kind, audit) in [
            ("idealized", audit_response(|world| Idealized::new(5, world), 1.0, categories, TRIALS)),
            ("exact", audit_response(|world| Exact::seeded(1, world), 1.0, categories, TRIALS)),
        ] {
            let ratio = audit.epsilon.likely / audit.claim;
            println!("{kind}, {categories} categories: ratio {ratio:.4}");
            assert!((0.95..=1.0).contains(&ratio) && !audit.is_refuted(), "{kind}, {categories}: {audit:?}");
        }
    }
}

/// The truth e^epsilon / (e^epsilon + k - 1) of the time, and all others alike.
#[test]
fn answers_have_their_law() {
    fn counts<N: Noise>(mut noise: N) -> [f64; 5] {
        let mut answers = vec![3.0; 200_000];
        noise.respond(1.5, 5, &mut answers);
        let mut counts = [0.0; 5];
        answers.iter().for_each(|answer| counts[*answer as usize] += 1.0);
        counts
    }
    for (kind, counts) in [("idealized", counts(Idealized::new(2, 0))), ("exact", counts(Exact::seeded(2, 0)))] {
        let total = 1.5f64.exp() + 4.0;
        let chi2: f64 = counts.iter().enumerate().fold(0.0, |sum, (answer, count)| {
            let expected = 200_000.0 * if answer == 3 { 1.5f64.exp() } else { 1.0 } / total;
            sum + (count - expected) * (count - expected) / expected
        });
        // 4 degrees of freedom, beyond which one in a thousand lies.
        assert!(chi2 < 18.5, "{kind}: {counts:?}, chi-square {chi2}");
    }
}

/// Noise with a Gamma norm in more dimensions: its own law tells less in one direction, and nothing in any tells more.
#[test]
fn in_more_dimensions_the_lower_bound_stays_below_too() {
    for dimension in [2, 5] {
        let event = Event::GammaNorm { noise_multiplier: 1.0 };
        let audit = audit_mechanism(|world| Idealized::new(3, world), event, dimension, TRIALS / 5, DELTA);
        println!("gamma-norm, dimension {dimension}: {} of 1", audit.epsilon.likely);
        assert!(audit.epsilon.likely > 0.5 && audit.epsilon.likely <= 1.0, "{audit:?}");
    }
}

#[test]
fn half_the_noise_is_found_out() {
    for (event, dimension) in mechanisms(1.0) {
        // The noise of twice the epsilon, under the claim of the first.
        let (claimed, halved) = match event {
            Event::Laplace { noise_multiplier } => (event, Event::Laplace { noise_multiplier: noise_multiplier / 2.0 }),
            Event::Gaussian { noise_multiplier } => {
                (event, Event::Gaussian { noise_multiplier: noise_multiplier / 2.0 })
            }
            Event::GammaNorm { noise_multiplier } => {
                (event, Event::GammaNorm { noise_multiplier: noise_multiplier / 2.0 })
            }
            Event::RandomizedResponse { epsilon } => (event, Event::RandomizedResponse { epsilon: 2.0 * epsilon }),
            Event::Reveal => unreachable!(),
        };
        let found = audit_mechanism(|world| Idealized::new(7, world), halved, dimension, 100_000, DELTA);
        let told =
            MechanismAudit { claim: self::audit_claim(claimed), mu: found.mu.map(|(mu, b)| (mu / 2.0, b)), ..found };
        assert!(told.is_refuted(), "{claimed:?}: {told:?}");
    }
}

fn audit_claim(event: Event) -> f64 {
    sottovoce_privacy::audit::claim_of(event, DELTA).0
}
