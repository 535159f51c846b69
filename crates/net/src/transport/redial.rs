//! When to try again: a schedule of attempts, with pauses that grow while they fail.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use libp2p::PeerId;
use tokio::time::Instant;

use super::rate::pause;

/// A success that lasted this long is forgotten failures. A shorter one counts as one more failure.
const STEADY: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
struct Attempts {
    failures: u32,
    due: Option<Instant>,
    succeeded: Option<Instant>,
}

/// The schedule, for a fixed set of peers.
#[derive(Debug, Default)]
pub(super) struct Redial {
    peers: HashMap<PeerId, Attempts>,
    queue: BTreeSet<(Instant, PeerId)>,
}

impl Redial {
    /// All are due at once.
    pub(super) fn new(peers: impl IntoIterator<Item = PeerId>, now: Instant) -> Self {
        let mut schedule = Self::default();
        for peer in peers {
            schedule.peers.insert(peer, Attempts::default());
            schedule.at(&peer, Some(now));
        }
        schedule
    }

    fn at(&mut self, peer: &PeerId, due: Option<Instant>) {
        let Some(attempts) = self.peers.get_mut(peer) else { return };
        if let Some(before) = attempts.due.take() {
            self.queue.remove(&(before, *peer));
        }
        attempts.due = due;
        if let Some(due) = due {
            self.queue.insert((due, *peer));
        }
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.queue.first().map(|(due, _)| *due)
    }

    /// The next peer that is due, which then is not, until something is said about it.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<PeerId> {
        let (_, peer) = *self.queue.first().filter(|(due, _)| *due <= now)?;
        self.at(&peer, None);
        Some(peer)
    }

    pub(super) fn succeeded(&mut self, peer: &PeerId, now: Instant) {
        self.at(peer, None);
        if let Some(attempts) = self.peers.get_mut(peer) {
            attempts.succeeded.get_or_insert(now);
        }
    }

    /// An attempt failed, or what it had brought about is lost.
    pub(super) fn failed(&mut self, peer: &PeerId, now: Instant) {
        let Some(attempts) = self.peers.get_mut(peer) else { return };
        let steady = attempts.succeeded.take().is_some_and(|since| now.saturating_duration_since(since) >= STEADY);
        let pause = pause(if steady { 0 } else { attempts.failures });
        attempts.failures = if steady { 0 } else { attempts.failures.saturating_add(1) };
        self.at(peer, Some(now + pause));
    }

    /// There is news about a peer that is waited for: an attempt is worth while soon.
    pub(super) fn hurry(&mut self, peer: &PeerId, now: Instant) {
        let Some(attempts) = self.peers.get(peer) else { return };
        let soon = now + pause(0);
        if attempts.due.is_some_and(|due| due > soon) {
            self.at(peer, Some(soon));
        }
    }

    /// Whether an attempt failed and the next one is not due yet.
    pub(super) fn is_pausing(&self, peer: &PeerId, now: Instant) -> bool {
        self.peers.get(peer).is_some_and(|attempts| attempts.due.is_some_and(|due| due > now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_and_a_steady_success_forgets_them() {
        let peer = PeerId::random();
        let mut now = Instant::now();
        let mut schedule = Redial::new([peer], now);
        let mut pauses = Vec::new();
        for _ in 0..14 {
            assert_eq!(schedule.pop_due(now), Some(peer));
            assert_eq!(schedule.pop_due(now), None);
            schedule.failed(&peer, now);
            let due = schedule.next_due().expect("scheduled");
            pauses.push(due - now);
            assert!(schedule.is_pausing(&peer, now));
            assert_eq!(schedule.pop_due(now), None);
            now = due;
        }
        assert!(pauses[0] <= Duration::from_millis(50) && pauses[13] >= Duration::from_secs(15), "{pauses:?}");
        assert!(pauses.iter().all(|pause| *pause <= Duration::from_secs(30)));

        // A success that breaks at once does not reset the pauses; one that lasts does.
        assert_eq!(schedule.pop_due(now), Some(peer));
        schedule.succeeded(&peer, now);
        assert_eq!(schedule.next_due(), None);
        schedule.failed(&peer, now);
        assert!(schedule.next_due().expect("scheduled") - now >= Duration::from_secs(15));
        schedule.succeeded(&peer, now);
        now += STEADY;
        schedule.failed(&peer, now);
        assert!(schedule.next_due().expect("scheduled") - now <= Duration::from_millis(50));
    }

    #[test]
    fn news_shortens_a_pause_and_does_nothing_for_others() {
        let (peer, other) = (PeerId::random(), PeerId::random());
        let now = Instant::now();
        let mut schedule = Redial::new([peer], now);
        schedule.hurry(&other, now);
        schedule.failed(&other, now);
        for _ in 0..10 {
            schedule.failed(&peer, now);
        }
        schedule.hurry(&peer, now);
        assert!(schedule.next_due().expect("scheduled") - now <= Duration::from_millis(50));
        schedule.succeeded(&peer, now);
        schedule.hurry(&peer, now);
        assert_eq!(schedule.next_due(), None);
    }
}
