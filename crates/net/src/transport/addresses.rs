//! Where peers may be found. Addresses are hints: whoever answers must still prove to be the peer.

use std::collections::{HashMap, VecDeque};

use libp2p::multiaddr::Protocol;
use libp2p::{Multiaddr, PeerId};

/// Addresses kept per peer and source; the oldest gives way.
const ADDRESSES_PER_PEER_MAX: usize = 8;
/// Peers whose addresses are kept besides the listed ones; the oldest gives way.
const PEERS_MAX: usize = 1024;
/// A longer address is not kept.
const ADDRESS_BYTES_MAX: usize = 256;

/// Where an address comes from. What the network says cannot push out what the node says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The node told us.
    Told,
    /// The peer itself said so, or mDNS did.
    Heard,
}

#[derive(Debug, Default)]
struct Hints {
    told: VecDeque<Multiaddr>,
    heard: VecDeque<Multiaddr>,
}

/// What happened to an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noted {
    New,
    Known,
    Refused,
}

/// The book of addresses.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    /// From the settings: never forgotten.
    listed: HashMap<PeerId, Vec<Multiaddr>>,
    hints: HashMap<PeerId, Hints>,
    /// The peers of `hints` that are not listed, oldest first.
    order: VecDeque<PeerId>,
}

impl Addresses {
    pub(super) fn new(listed: &[(PeerId, Vec<Multiaddr>)]) -> Self {
        let mut book = Self::default();
        for (peer, addresses) in listed {
            book.listed.entry(*peer).or_default().extend(addresses.iter().cloned());
        }
        book
    }

    pub(super) fn note(&mut self, peer: PeerId, address: Multiaddr, source: Source) -> Noted {
        if address.len() > ADDRESS_BYTES_MAX || address.is_empty() || !may_lead_to(&address, peer) {
            return Noted::Refused;
        }
        let listed = self.listed.get(&peer);
        if listed.is_some_and(|listed| listed.contains(&address)) {
            return Noted::Known;
        }
        if listed.is_none() && !self.hints.contains_key(&peer) {
            self.order.push_back(peer);
            if self.order.len() > PEERS_MAX
                && let Some(oldest) = self.order.pop_front()
            {
                self.hints.remove(&oldest);
            }
        }
        let hints = self.hints.entry(peer).or_default();
        let hints = match source {
            Source::Told => &mut hints.told,
            Source::Heard => &mut hints.heard,
        };
        if let Some(place) = hints.iter().position(|known| *known == address) {
            // Newest first.
            hints.swap(0, place);
            return Noted::Known;
        }
        hints.push_front(address);
        hints.truncate(ADDRESSES_PER_PEER_MAX);
        Noted::New
    }

    /// Forgets an address that another peer answered, unless the settings list it.
    pub(super) fn forget(&mut self, peer: &PeerId, address: &Multiaddr) {
        if let Some(hints) = self.hints.get_mut(peer) {
            let mut bare = address.clone();
            if matches!(bare.iter().last(), Some(Protocol::P2p(_))) {
                bare.pop();
            }
            for list in [&mut hints.told, &mut hints.heard] {
                list.retain(|known| known != address && *known != bare);
            }
        }
    }

    /// All addresses of a peer: listed ones, then what the node told, then what was heard.
    pub(super) fn of(&self, peer: &PeerId) -> Vec<Multiaddr> {
        let mut all = self.listed.get(peer).cloned().unwrap_or_default();
        if let Some(hints) = self.hints.get(peer) {
            for address in hints.told.iter().chain(&hints.heard) {
                if !all.contains(address) {
                    all.push(address.clone());
                }
            }
        }
        all
    }

    pub(super) fn knows(&self, peer: &PeerId) -> bool {
        self.listed.get(peer).is_some_and(|listed| !listed.is_empty())
            || self.hints.get(peer).is_some_and(|hints| !hints.told.is_empty() || !hints.heard.is_empty())
    }
}

/// Whether an address names no other peer as its end.
fn may_lead_to(address: &Multiaddr, peer: PeerId) -> bool {
    match address.iter().last() {
        Some(Protocol::P2p(end)) => end == peer,
        _ => true,
    }
}

/// Whether an address is on this machine.
pub(super) fn is_loopback(address: &Multiaddr) -> bool {
    match address.iter().next() {
        Some(Protocol::Ip4(ip)) => ip.is_loopback() || ip.is_unspecified(),
        Some(Protocol::Ip6(ip)) => ip.is_loopback() || ip.is_unspecified(),
        _ => false,
    }
}

/// Whether an address leads through a relay.
pub(super) fn is_relayed(address: &Multiaddr) -> bool {
    address.iter().any(|part| part == Protocol::P2pCircuit)
}

/// The peer that an address names first: for an address through a relay, the relay.
pub(super) fn first_peer(address: &Multiaddr) -> Option<PeerId> {
    address.iter().find_map(|part| match part {
        Protocol::P2p(peer) => Some(peer),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> Multiaddr {
        format!("/ip4/192.0.2.1/tcp/{port}").parse().expect("an address")
    }

    #[test]
    fn what_is_heard_is_bounded_and_does_not_push_out_what_is_told() {
        let peer = PeerId::random();
        let mut book = Addresses::new(&[(peer, vec![address(1)])]);
        assert_eq!(book.note(peer, address(1), Source::Heard), Noted::Known);
        assert_eq!(book.note(peer, address(2), Source::Told), Noted::New);
        for port in 1000..2000 {
            assert_eq!(book.note(peer, address(port), Source::Heard), Noted::New);
        }
        let all = book.of(&peer);
        assert_eq!(all.len(), 2 + ADDRESSES_PER_PEER_MAX);
        assert_eq!(all[..3], [address(1), address(2), address(1999)]);
        book.forget(&peer, &address(1));
        book.forget(&peer, &address(2).with(Protocol::P2p(peer)));
        assert_eq!(book.of(&peer)[..2], [address(1), address(1999)]);
    }

    #[test]
    fn the_number_of_peers_is_bounded_and_listed_ones_stay() {
        let listed = PeerId::random();
        let mut book = Addresses::new(&[(listed, vec![])]);
        assert!(!book.knows(&listed));
        book.note(listed, address(1), Source::Heard);
        let first = PeerId::random();
        book.note(first, address(1), Source::Heard);
        for _ in 0..PEERS_MAX {
            book.note(PeerId::random(), address(1), Source::Heard);
        }
        assert_eq!(book.hints.len(), PEERS_MAX + 1);
        assert_eq!(book.order.len(), PEERS_MAX);
        assert!(book.knows(&listed) && !book.knows(&first));
    }

    #[test]
    fn an_address_of_another_peer_or_of_absurd_length_is_refused() {
        let peer = PeerId::random();
        let mut book = Addresses::default();
        let other = address(1).with(Protocol::P2p(PeerId::random()));
        assert_eq!(book.note(peer, other, Source::Heard), Noted::Refused);
        assert_eq!(book.note(peer, Multiaddr::empty(), Source::Heard), Noted::Refused);
        let long = (0..100).fold(address(1), |long, port| long.with(Protocol::Tcp(port)));
        assert_eq!(book.note(peer, long, Source::Heard), Noted::Refused);
        assert_eq!(book.note(peer, address(1).with(Protocol::P2p(peer)), Source::Heard), Noted::New);
    }
}
