//! When agents asked to be woken.

use sottovoce_core::{PeerId, Time};
use std::collections::{BTreeMap, HashMap};

/// One alarm of each agent at most, by time; at one moment, the one that was set first.
#[derive(Default)]
pub(crate) struct Alarms {
    by_time: BTreeMap<(u64, u64), PeerId>,
    by_agent: HashMap<PeerId, (u64, u64)>,
    set: u64,
}

impl Alarms {
    /// Sets an agent's alarm, in place of the one it had. A time that has passed is now.
    pub fn set(&mut self, agent: PeerId, at: Time, now: Time) {
        self.set += 1;
        // Numbers from zero are in the order of their bits.
        let key = (at.0.max(now.0).max(0.0).to_bits(), self.set);
        if let Some(old) = self.by_agent.insert(agent, key) {
            self.by_time.remove(&old);
        }
        self.by_time.insert(key, agent);
    }

    /// When the next one rings.
    pub fn next(&self) -> Option<Time> {
        self.by_time.keys().next().map(|(bits, _)| Time(f64::from_bits(*bits)))
    }

    /// Takes the next one that rings at `until` or before.
    pub fn take(&mut self, until: Time) -> Option<(PeerId, Time)> {
        let at = self.next().filter(|at| *at <= until)?;
        let (_, agent) = self.by_time.pop_first()?;
        self.by_agent.remove(&agent);
        Some((agent, at))
    }

    pub fn is_empty(&self) -> bool {
        self.by_time.is_empty()
    }
}
