//! The append-only list of an agent's charges.

use crate::{Audience, Event};
use serde::{Deserialize, Serialize};

/// Equal releases, and how many of them there were.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Charge {
    /// How each value was made.
    #[serde(flatten)]
    pub event: Event,
    /// Who saw them.
    pub audience: Audience,
    /// How many equal releases this entry stands for.
    pub count: u64,
}

/// Every charge of one agent. It only grows; equal charges share an entry that carries their count, so a
/// plan of 200 equal steps is one entry. The first entry is stored in place: a million agents with one
/// kind of release each own no heap memory here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    first: Option<Charge>,
    rest: Vec<Charge>,
}

impl Ledger {
    /// Adds one release. Only the gate may do so.
    pub(crate) fn record(&mut self, event: Event, audience: Audience) {
        for charge in self.first.iter_mut().chain(&mut self.rest) {
            if charge.event == event && charge.audience == audience {
                charge.count += 1;
                return;
            }
        }
        let charge = Charge { event, audience, count: 1 };
        match self.first {
            None => self.first = Some(charge),
            Some(_) => self.rest.push(charge),
        }
    }

    /// The entries, in the order of their first release.
    pub fn charges(&self) -> impl Iterator<Item = &Charge> {
        self.first.iter().chain(&self.rest)
    }

    /// How many values were released in all.
    pub fn releases(&self) -> u64 {
        self.charges().map(|charge| charge.count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_charges_share_an_entry_and_none_is_lost() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.releases(), 0);
        for _ in 0..200 {
            ledger.record(Event::Reveal, Audience::Everyone);
        }
        assert_eq!(ledger.charges().count(), 1);
        assert_eq!(ledger.releases(), 200);
    }
}
