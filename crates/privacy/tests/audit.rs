//! The audit of single mechanisms: it comes close to what is true, and does not go beyond it.

use sottovoce_privacy::audit::{MechanismAudit, audit_mechanism};
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
