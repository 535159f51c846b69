//! Who may connect: bans, listed peers, and limits on connections, in one behaviour.
//!
//! Differs from the limits that come with libp2p: a refusal names its reason, listed peers are really exempt from the
//! limits on incoming connections (yet not from those per peer), and what is remembered is bounded. The doorkeeper also
//! hands out the addresses of peers to dial, and keeps connections with listed peers and relays alive.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr};
use std::task::{Context, Poll};
use std::time::Duration;

use libp2p::core::transport::PortUse;
use libp2p::core::upgrade::DeniedUpgrade;
use libp2p::core::{ConnectedPoint, Endpoint};
use libp2p::multiaddr::Protocol;
use libp2p::swarm::handler::ConnectionEvent;
use libp2p::swarm::{
    ConnectionDenied, ConnectionHandler, ConnectionHandlerEvent, ConnectionId, FromSwarm, NetworkBehaviour,
    SubstreamProtocol, ToSwarm,
};
use libp2p::{Multiaddr, PeerId};
use tokio::time::Instant;

use super::Limits;
use super::addresses::{Addresses, is_loopback, is_relayed};
use super::counters::Reason;
use super::rate::Bucket;

/// Bans remembered at a time; past that, the one that ends first gives way.
const BANS_MAX: usize = 4096;
/// Origins of connections whose rate is watched at a time.
const ORIGINS_MAX: usize = 4096;

/// A connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("refused: {}", .0.name())]
pub(super) struct Denied(pub(super) Reason);

fn deny<T>(reason: Reason) -> Result<T, ConnectionDenied> {
    Err(ConnectionDenied::new(Denied(reason)))
}

struct Established {
    peer: PeerId,
    exempt: bool,
    incoming: bool,
    loopback: bool,
}

pub(super) struct Doorkeeper {
    limits: Limits,
    listed_only: bool,
    listed: HashSet<PeerId>,
    relays: HashSet<PeerId>,
    banned: HashMap<PeerId, Instant>,
    origins: HashMap<IpAddr, Bucket>,
    pending_incoming: HashSet<ConnectionId>,
    pending_outgoing: HashSet<ConnectionId>,
    established: HashMap<ConnectionId, Established>,
    incoming: usize,
    outgoing: usize,
    per_peer: HashMap<PeerId, usize>,
    pub(super) addresses: Addresses,
}

impl Doorkeeper {
    pub(super) fn new(
        limits: Limits,
        listed_only: bool,
        listed: &[(PeerId, Vec<Multiaddr>)],
        relays: HashSet<PeerId>,
    ) -> Self {
        Self {
            limits,
            listed_only,
            listed: listed.iter().map(|(peer, _)| *peer).collect(),
            relays,
            banned: HashMap::new(),
            origins: HashMap::new(),
            pending_incoming: HashSet::new(),
            pending_outgoing: HashSet::new(),
            established: HashMap::new(),
            incoming: 0,
            outgoing: 0,
            per_peer: HashMap::new(),
            addresses: Addresses::new(listed),
        }
    }

    pub(super) fn is_listed(&self, peer: &PeerId) -> bool {
        self.listed.contains(peer)
    }

    pub(super) fn is_relay(&self, peer: &PeerId) -> bool {
        self.relays.contains(peer)
    }

    /// Whether a connection with this peer is allowed at all.
    pub(super) fn may_enter(&self, peer: &PeerId) -> Result<(), Reason> {
        if self.banned.get(peer).is_some_and(|until| Instant::now() < *until) {
            Err(Reason::Banned)
        } else if self.listed_only && !self.is_listed(peer) && !self.is_relay(peer) {
            Err(Reason::Stranger)
        } else {
            Ok(())
        }
    }

    pub(super) fn ban(&mut self, peer: PeerId, time: Duration) {
        let now = Instant::now();
        self.banned.retain(|_, until| now < *until);
        if self.banned.len() >= BANS_MAX
            && let Some(first) = self.banned.iter().min_by_key(|(_, until)| **until).map(|(peer, _)| *peer)
        {
            self.banned.remove(&first);
        }
        // A ban that would end after the end of time ends in a year.
        let until = now.checked_add(time).unwrap_or(now + Duration::from_secs(365 * 86_400));
        self.banned.insert(peer, until);
    }

    /// Forgets what no longer matters. Called now and then.
    pub(super) fn tidy(&mut self) {
        let now = Instant::now();
        self.banned.retain(|_, until| now < *until);
        self.origins.retain(|_, bucket| !bucket.is_full(now));
    }

    /// Whether the peer at the other end of a connection is on this machine.
    pub(super) fn is_loopback(&self, connection: ConnectionId) -> bool {
        self.established.get(&connection).is_some_and(|established| established.loopback)
    }

    fn may_shake_hands(&mut self, remote: &Multiaddr) -> Result<(), Reason> {
        let Some(origin) = origin(remote) else { return Ok(()) };
        let now = Instant::now();
        if self.origins.len() >= ORIGINS_MAX && !self.origins.contains_key(&origin) {
            self.origins.retain(|_, bucket| !bucket.is_full(now));
            if self.origins.len() >= ORIGINS_MAX {
                return Err(Reason::HandshakeRate);
            }
        }
        let rate = f64::from(self.limits.handshakes_per_second);
        let depth = f64::from(self.limits.handshakes_at_once);
        let bucket = self.origins.entry(origin).or_insert_with(|| Bucket::full(rate, depth, now));
        if bucket.take(1.0, now) { Ok(()) } else { Err(Reason::HandshakeRate) }
    }

    fn admit(&self, peer: &PeerId, incoming: bool) -> Result<Door, ConnectionDenied> {
        if let Err(reason) = self.may_enter(peer) {
            return deny(reason);
        }
        let listed = self.is_listed(peer) || self.is_relay(peer);
        if !listed && incoming && self.incoming >= self.limits.connections_incoming {
            return deny(Reason::ConnectionsIncoming);
        }
        if !listed && !incoming && self.outgoing >= self.limits.connections_outgoing {
            return deny(Reason::ConnectionsOutgoing);
        }
        if self.per_peer.get(peer).is_some_and(|&count| count >= self.limits.connections_per_peer) {
            return deny(Reason::ConnectionsPerPeer);
        }
        Ok(Door { keep_alive: listed })
    }

    fn on_established(&mut self, connection: ConnectionId, peer: PeerId, endpoint: &ConnectedPoint) {
        let (incoming, remote) = match endpoint {
            ConnectedPoint::Listener { send_back_addr, .. } => (true, send_back_addr),
            ConnectedPoint::Dialer { address, .. } => (false, address),
        };
        let exempt = self.is_listed(&peer) || self.is_relay(&peer);
        let loopback = is_loopback(remote);
        self.established.insert(connection, Established { peer, exempt, incoming, loopback });
        *self.per_peer.entry(peer).or_default() += 1;
        if !exempt {
            *(if incoming { &mut self.incoming } else { &mut self.outgoing }) += 1;
        }
    }

    fn on_closed(&mut self, connection: ConnectionId) {
        let Some(Established { peer, exempt, incoming, .. }) = self.established.remove(&connection) else { return };
        if let Some(count) = self.per_peer.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                self.per_peer.remove(&peer);
            }
        }
        if !exempt {
            *(if incoming { &mut self.incoming } else { &mut self.outgoing }) -= 1;
        }
    }
}

/// Where a connection comes from, as far as its rate is concerned: an IPv4 address or an IPv6 network of 64 bits.
fn origin(remote: &Multiaddr) -> Option<IpAddr> {
    if is_relayed(remote) {
        return None;
    }
    match remote.iter().next()? {
        Protocol::Ip4(ip) => Some(IpAddr::V4(ip)),
        Protocol::Ip6(ip) => {
            let network = u128::from(ip) & !u128::from(u64::MAX);
            Some(IpAddr::V6(Ipv6Addr::from(network)))
        }
        _ => None,
    }
}

impl NetworkBehaviour for Doorkeeper {
    type ConnectionHandler = Door;
    type ToSwarm = Infallible;

    fn handle_pending_inbound_connection(
        &mut self,
        connection: ConnectionId,
        _: &Multiaddr,
        remote: &Multiaddr,
    ) -> Result<(), ConnectionDenied> {
        if self.pending_incoming.len() >= self.limits.connections_pending {
            return deny(Reason::ConnectionsPending);
        }
        if let Err(reason) = self.may_shake_hands(remote) {
            return deny(reason);
        }
        self.pending_incoming.insert(connection);
        Ok(())
    }

    fn handle_established_inbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        _: &Multiaddr,
    ) -> Result<Door, ConnectionDenied> {
        self.pending_incoming.remove(&connection);
        self.admit(&peer, true)
    }

    fn handle_pending_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: Option<PeerId>,
        _: &[Multiaddr],
        _: Endpoint,
    ) -> Result<Vec<Multiaddr>, ConnectionDenied> {
        let exempt = peer.is_some_and(|peer| self.is_listed(&peer) || self.is_relay(&peer));
        if let Some(Err(reason)) = peer.map(|peer| self.may_enter(&peer)) {
            return deny(reason);
        }
        if !exempt && self.pending_outgoing.len() >= self.limits.connections_pending {
            return deny(Reason::ConnectionsPending);
        }
        self.pending_outgoing.insert(connection);
        Ok(peer.map(|peer| self.addresses.of(&peer)).unwrap_or_default())
    }

    fn handle_established_outbound_connection(
        &mut self,
        connection: ConnectionId,
        peer: PeerId,
        _: &Multiaddr,
        _: Endpoint,
        _: PortUse,
    ) -> Result<Door, ConnectionDenied> {
        self.pending_outgoing.remove(&connection);
        self.admit(&peer, false)
    }

    fn on_swarm_event(&mut self, event: FromSwarm) {
        match event {
            FromSwarm::ConnectionEstablished(event) => {
                self.on_established(event.connection_id, event.peer_id, event.endpoint);
            }
            FromSwarm::ConnectionClosed(event) => self.on_closed(event.connection_id),
            FromSwarm::DialFailure(event) => {
                self.pending_outgoing.remove(&event.connection_id);
            }
            FromSwarm::ListenFailure(event) => {
                self.pending_incoming.remove(&event.connection_id);
            }
            _ => {}
        }
    }

    fn on_connection_handler_event(&mut self, _: PeerId, _: ConnectionId, event: Infallible) {
        match event {}
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ToSwarm<Infallible, Infallible>> {
        Poll::Pending
    }
}

/// The doorkeeper's end of a connection. It says nothing; it only keeps the connection open, or not.
pub(super) struct Door {
    keep_alive: bool,
}

impl ConnectionHandler for Door {
    type FromBehaviour = Infallible;
    type ToBehaviour = Infallible;
    type InboundProtocol = DeniedUpgrade;
    type OutboundProtocol = DeniedUpgrade;
    type InboundOpenInfo = ();
    type OutboundOpenInfo = ();

    fn listen_protocol(&self) -> SubstreamProtocol<DeniedUpgrade> {
        SubstreamProtocol::new(DeniedUpgrade, ())
    }

    fn connection_keep_alive(&self) -> bool {
        self.keep_alive
    }

    fn poll(&mut self, _: &mut Context<'_>) -> Poll<ConnectionHandlerEvent<DeniedUpgrade, (), Infallible>> {
        Poll::Pending
    }

    fn on_behaviour_event(&mut self, event: Infallible) {
        match event {}
    }

    fn on_connection_event(&mut self, _: ConnectionEvent<DeniedUpgrade, DeniedUpgrade>) {}
}
