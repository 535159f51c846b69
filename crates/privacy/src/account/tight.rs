//! The least epsilon that any accountant proves. Proof: `proofs/tight.md`.

use super::{Accountant, Gaussian, Optimal, Pld, Rdp, Sum, Theorem1, cheap, settled};
use crate::{Event, Ledger};

/// The best valid accountant for this ledger: the exact one where there is one, else the least of all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tight;

impl Accountant for Tight {
    fn epsilon(&self, ledger: &Ledger, delta: f64) -> f64 {
        if let Some(epsilon) = settled(ledger) {
            return epsilon;
        }
        if let Some(exact) = exact(ledger) {
            return exact.epsilon(ledger, delta);
        }
        let all: [&dyn Accountant; 5] = [&Sum, &Theorem1, &Optimal, &Rdp, &Pld];
        all.into_iter().map(|accountant| accountant.epsilon(ledger, delta)).fold(f64::INFINITY, f64::min)
    }

    fn rough(&self, ledger: &Ledger, delta: f64) -> f64 {
        exact(ledger).map_or_else(|| cheap(ledger, delta), |exact| exact.epsilon(ledger, delta))
    }
}

/// The accountant that is exact for this ledger, if there is one.
fn exact(ledger: &Ledger) -> Option<&'static dyn Accountant> {
    let mut events = ledger.charges().map(|charge| charge.event);
    match events.next()? {
        Event::Gaussian { .. } if events.all(|event| matches!(event, Event::Gaussian { .. })) => Some(&Gaussian),
        Event::RandomizedResponse { .. } | Event::GammaNorm { .. } if events.next().is_none() => Some(&Optimal),
        _ => None,
    }
}
