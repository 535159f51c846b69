//! Accountants: pure readers of a ledger.
//!
//! | accountant | covers | value |
//! |---|---|---|
//! | [`Sum`] | everything | the epsilons added up |
//! | [`Theorem1`] | everything | Kairouz, Oh and Viswanath's bound, as the papers use it |
//! | [`Optimal`] | pure steps | the exact optimum for equal ones |
//! | [`Gaussian`] | Gaussian steps | exact |
//! | [`Rdp`] | everything | Renyi divergences, a few per cent above the truth |
//! | [`Pld`] | everything | the privacy loss distribution, within 1e-3 of the truth |
//! | [`Tight`] | everything | the least of these |
//!
//! [`Filter`] is no accountant: it keeps a limit over tasks that are chosen along the way.
//!
//! All return an upper bound on the truth, never NaN and never negative; 0 for an empty ledger; infinity when an exact
//! value has left, and for what they do not cover. A delta outside [0, 1) counts as the nearest value inside, NaN as 0.

mod filter;
mod gaussian;
pub mod gopa;
mod loss;
pub mod network;
mod optimal;
mod pld;
mod rdp;
mod sum;
mod theorem_1;
mod tight;

pub use filter::{BadLimit, Filter, least_limit};
pub use gaussian::{Gaussian, gaussian_delta, gaussian_epsilon};
pub use optimal::Optimal;
pub use pld::Pld;
pub use rdp::Rdp;
pub use sum::Sum;
pub use theorem_1::Theorem1;
pub use tight::Tight;

use crate::round::div_up;
use crate::{Charge, Event, Ledger};

/// Turns a ledger into the epsilon of an (epsilon, delta) guarantee. It reads the ledger and nothing else,
/// so that anyone can recompute the figure that a run reports.
pub trait Accountant {
    /// The smallest epsilon this accountant can prove for everything in `ledger` at this `delta`; rounds up.
    fn epsilon(&self, ledger: &Ledger, delta: f64) -> f64;

    /// A bound too, near [`Accountant::epsilon`] and next to free: where a search for a noise begins.
    fn rough(&self, ledger: &Ledger, delta: f64) -> f64 {
        self.epsilon(ledger, delta)
    }
}

impl<A: Accountant + ?Sized> Accountant for &A {
    fn epsilon(&self, ledger: &Ledger, delta: f64) -> f64 {
        (**self).epsilon(ledger, delta)
    }

    fn rough(&self, ledger: &Ledger, delta: f64) -> f64 {
        (**self).rough(ledger, delta)
    }
}

/// The least of the bounds that cost next to nothing, some per cent above the truth.
fn cheap(ledger: &Ledger, delta: f64) -> f64 {
    Rdp.epsilon(ledger, delta).min(Optimal.epsilon(ledger, delta))
}

/// The delta to account with: in [0, 1).
fn within(delta: f64) -> f64 {
    if delta > 0.0 { delta.min(1.0f64.next_down()) } else { 0.0 }
}

/// The value that every accountant must give, where there is one: 0 for nothing, infinity for an exact value, and for a charge whose noise protects
/// from one observer alone. The accountant that names that observer says what such a charge is worth to it.
fn settled(ledger: &Ledger) -> Option<f64> {
    let is_bare = |charge: &Charge| charge.event == Event::Reveal || charge.audience.is_named_by_its_accountant();
    if ledger.charges().any(is_bare) {
        return Some(f64::INFINITY);
    }
    (ledger.releases() == 0).then_some(0.0)
}

/// The pure steps: epsilon of one, and how many.
fn pure_steps(ledger: &Ledger) -> impl Iterator<Item = (f64, u64)> {
    let charges = ledger.charges().filter(|charge| !matches!(charge.event, Event::Reveal | Event::Gaussian { .. }));
    charges.map(|charge| (charge.event.pure_epsilon(), charge.count))
}

/// The Gaussian steps: mu = Delta_2 / sigma of one, rounded up, and how many.
fn gaussian_steps(ledger: &Ledger) -> impl Iterator<Item = (f64, u64)> {
    ledger.charges().filter_map(|charge| match charge.event {
        Event::Gaussian { noise_multiplier } => Some((div_up(1.0, noise_multiplier), charge.count)),
        _ => None,
    })
}
