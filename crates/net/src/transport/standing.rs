//! What peers have asked lately, and whether it was too much.

use std::collections::HashMap;

use libp2p::PeerId;
use tokio::time::Instant;

use super::Limits;
use super::counters::Reason;
use super::rate::Bucket;

/// Peers remembered at a time. Past that, one that is not being answered gives way.
const STANDINGS_MAX: usize = 8192;
/// What a malformed frame costs in patience, where a request over the rate costs one.
const FAULT_COST: f64 = 8.0;
/// Patience that comes back per second.
const PATIENCE_PER_SECOND: f64 = 1.0;
/// How many seconds of requests may come at once.
const SECONDS_AT_ONCE: f64 = 2.0;

struct Standing {
    requests: Bucket,
    patience: Bucket,
    unanswered: usize,
}

/// The standing of each peer. It outlives a connection, so that a new connection is no new chance.
pub(super) struct Standings {
    limits: Limits,
    peers: HashMap<PeerId, Standing>,
}

/// A request that is not let through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turned {
    pub(super) reason: Reason,
    /// Whether the peer has now been refused too often.
    pub(super) too_often: bool,
}

impl Standings {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, peers: HashMap::new() }
    }

    fn of(&mut self, peer: PeerId, now: Instant) -> &mut Standing {
        if self.peers.len() >= STANDINGS_MAX && !self.peers.contains_key(&peer) {
            self.tidy(now);
            let unimportant = self.peers.iter().find(|(_, standing)| standing.unanswered == 0).map(|(peer, _)| *peer);
            if let Some(peer) = unimportant.filter(|_| self.peers.len() >= STANDINGS_MAX) {
                self.peers.remove(&peer);
            }
        }
        let rate = f64::from(self.limits.requests_per_second);
        let patience = f64::from(self.limits.refusals_until_ban);
        self.peers.entry(peer).or_insert_with(|| Standing {
            requests: Bucket::full(rate, rate * SECONDS_AT_ONCE, now),
            patience: Bucket::full(PATIENCE_PER_SECOND, patience, now),
            unanswered: 0,
        })
    }

    /// A request came. Lets it through, in which case [`Standings::answered`] must follow, or turns it away.
    pub(super) fn on_request(&mut self, peer: PeerId, now: Instant) -> Result<(), Turned> {
        let unanswered_max = self.limits.requests_unanswered_per_peer;
        let standing = self.of(peer, now);
        let reason = if !standing.requests.take(1.0, now) {
            Reason::RequestRate
        } else if standing.unanswered >= unanswered_max {
            Reason::RequestsUnanswered
        } else {
            standing.unanswered += 1;
            return Ok(());
        };
        Err(Turned { reason, too_often: !standing.patience.take(1.0, now) })
    }

    /// A request that was let through is done with: its answer is written, or will not be.
    pub(super) fn answered(&mut self, peer: &PeerId) {
        if let Some(standing) = self.peers.get_mut(peer) {
            standing.unanswered = standing.unanswered.saturating_sub(1);
        }
    }

    /// A peer announced something that needs no answer. Says whether it does so too often.
    pub(super) fn on_news(&mut self, peer: PeerId, now: Instant) -> bool {
        let standing = self.of(peer, now);
        !standing.requests.take(1.0, now) && !standing.patience.take(1.0, now)
    }

    /// A peer sent something malformed. Says whether it has done so too often.
    pub(super) fn on_fault(&mut self, peer: PeerId, now: Instant) -> bool {
        !self.of(peer, now).patience.take(FAULT_COST, now)
    }

    /// Forgets peers about whom there is nothing to remember.
    pub(super) fn tidy(&mut self, now: Instant) {
        self.peers.retain(|_, standing| {
            standing.unanswered > 0 || !standing.requests.is_full(now) || !standing.patience.is_full(now)
        });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn standings() -> Standings {
        let limits = Limits { requests_per_second: 10, refusals_until_ban: 30, ..Limits::default() };
        Standings::new(Limits { requests_unanswered_per_peer: 15, ..limits })
    }

    #[test]
    fn a_flood_is_refused_and_then_too_much_while_others_are_not_touched() {
        let (mut standings, now) = (standings(), Instant::now());
        let (flooder, honest) = (PeerId::random(), PeerId::random());
        let mut refused = 0;
        for _ in 0..1000 {
            match standings.on_request(flooder, now) {
                Ok(()) => standings.answered(&flooder),
                Err(Turned { reason, too_often }) => {
                    assert_eq!(reason, Reason::RequestRate);
                    refused += 1;
                    if too_often {
                        break;
                    }
                }
            }
        }
        assert_eq!(refused, 31);
        assert_eq!(standings.on_request(honest, now), Ok(()));
    }

    #[test]
    fn unanswered_requests_are_bounded() {
        let (mut standings, now) = (standings(), Instant::now());
        let peer = PeerId::random();
        for _ in 0..15 {
            assert_eq!(standings.on_request(peer, now), Ok(()));
        }
        let turned = Turned { reason: Reason::RequestsUnanswered, too_often: false };
        assert_eq!(standings.on_request(peer, now), Err(turned));
        standings.answered(&peer);
        assert_eq!(standings.on_request(peer, now), Ok(()));
    }

    #[test]
    fn faults_use_up_patience_and_time_gives_it_back() {
        let (mut standings, now) = (standings(), Instant::now());
        let peer = PeerId::random();
        assert_eq!((0..4).map(|_| standings.on_fault(peer, now)).collect::<Vec<_>>(), [false, false, false, true]);
        standings.tidy(now + Duration::from_secs(20));
        assert!(!standings.on_fault(peer, now + Duration::from_secs(20)));
        standings.tidy(now + Duration::from_secs(100));
        assert!(standings.peers.is_empty());
    }

    #[test]
    fn the_number_of_peers_remembered_is_bounded() {
        let (mut standings, now) = (standings(), Instant::now());
        for _ in 0..STANDINGS_MAX + 100 {
            let peer = PeerId::random();
            standings.on_fault(peer, now);
        }
        assert_eq!(standings.peers.len(), STANDINGS_MAX);
    }
}
