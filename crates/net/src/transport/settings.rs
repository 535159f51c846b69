//! What a transport is told at its start.

use std::time::Duration;

use libp2p::{Multiaddr, PeerId};

use super::StartError;
use super::addresses::first_peer;

/// How a peer takes part in the network.
#[derive(Clone, Debug)]
pub struct TransportSettings {
    /// The name of the protocol, `/sottovoce/2/<task digest>`. Peers with other names cannot talk with this one.
    pub protocol: String,
    /// Longer frames are refused, in both directions, before anything is allocated.
    pub frame_bytes_max: usize,
    /// Where to listen, like `/ip4/0.0.0.0/tcp/4001`. Port 0 takes any free port.
    pub listen: Vec<Multiaddr>,
    /// Addresses at which others can reach this peer though it does not listen there, as behind a forwarded port.
    pub external: Vec<Multiaddr>,
    /// Listed neighbours. They are dialled, dialled again when they are gone, and exempt from limits on the number
    /// of incoming connections. One without an address waits for mDNS or [`learn_address`](super::Transport::learn_address).
    pub known: Vec<(PeerId, Vec<Multiaddr>)>,
    /// Whether connections with anyone else are refused.
    pub listed_only: bool,
    /// Whether to look for peers in the local network, and to be found there.
    pub mdns: bool,
    /// Relays, like `/dns/relay.example.org/tcp/4001/p2p/<its id>`: this peer asks each for a slot and can then be
    /// reached through it. Peers that met through a relay try to connect directly (DCUtR).
    pub relays: Vec<Multiaddr>,
    /// Whether to be a relay for others, within small limits.
    pub serve_relay: bool,
    /// Bounds.
    pub limits: Limits,
}

impl TransportSettings {
    /// Settings of a peer that listens nowhere and knows nobody.
    #[must_use]
    pub fn new(protocol: impl Into<String>, frame_bytes_max: usize) -> Self {
        Self {
            protocol: protocol.into(),
            frame_bytes_max,
            listen: Vec::new(),
            external: Vec::new(),
            known: Vec::new(),
            listed_only: false,
            mdns: false,
            relays: Vec::new(),
            serve_relay: false,
            limits: Limits::default(),
        }
    }

    /// Checks what can be checked before anything is opened.
    pub(super) fn check(&self) -> Result<(), StartError> {
        let at_least_one = [
            ("frame_bytes_max", self.frame_bytes_max),
            ("limits.connections_per_peer", self.limits.connections_per_peer),
            ("limits.connections_pending", self.limits.connections_pending),
            ("limits.requests_under_way_per_peer", self.limits.requests_under_way_per_peer),
            ("limits.requests_unanswered_per_peer", self.limits.requests_unanswered_per_peer),
            ("limits.requests_per_second", self.limits.requests_per_second as usize),
        ];
        for (name, value) in at_least_one {
            if value == 0 {
                return Err(StartError::Setting { name, value, expected: "at least 1" });
            }
        }
        if u32::try_from(self.frame_bytes_max).is_err() {
            let (name, value) = ("frame_bytes_max", self.frame_bytes_max);
            return Err(StartError::Setting { name, value, expected: "less than 4 GiB" });
        }
        if self.limits.frames_bytes < self.frame_bytes_max {
            let (name, value) = ("limits.frames_bytes", self.limits.frames_bytes);
            return Err(StartError::Setting { name, value, expected: "at least frame_bytes_max" });
        }
        for address in &self.relays {
            if first_peer(address).is_none() {
                let expected = "the address of a relay, which ends in /p2p/ and its id";
                return Err(StartError::Address { address: address.clone(), expected });
            }
        }
        Ok(())
    }
}

/// Bounds on what others can make this peer do. The defaults suit a peer with up to some hundred neighbours.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Established connections that others began. Listed peers come on top.
    pub connections_incoming: usize,
    /// Established connections that this peer began. Listed peers come on top.
    pub connections_outgoing: usize,
    /// Established connections with one peer, listed or not. Two are common: both dialled at the same time.
    pub connections_per_peer: usize,
    /// Connections whose handshake is under way, in each direction.
    pub connections_pending: usize,
    /// New connections per second from one address (in IPv6, from one network of 64 bits).
    pub handshakes_per_second: u32,
    /// How many of these may come at once.
    pub handshakes_at_once: u32,
    /// While the process uses more memory than this, no new connections are made or accepted.
    pub memory_bytes: usize,
    /// Bytes of incoming frames that are being read, wait for the node, or wait for its answer: of all peers together.
    pub frames_bytes: usize,
    /// Requests per second of one peer. Twice as many may come at once.
    pub requests_per_second: u32,
    /// Requests of one peer that wait for an answer of the node, or whose answer it has not read yet.
    pub requests_unanswered_per_peer: usize,
    /// Requests of this peer to one other that wait for an answer.
    pub requests_under_way_per_peer: usize,
    /// Refusals after which a peer is banned. One is forgiven per second. A malformed frame counts as eight.
    pub refusals_until_ban: u32,
    /// How long a peer that was refused too often is banned.
    pub ban_time: Duration,
    /// How long a request may take, from the first byte of the question to the last one of the answer.
    pub request_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_incoming: 128,
            connections_outgoing: 128,
            connections_per_peer: 4,
            connections_pending: 64,
            handshakes_per_second: 32,
            handshakes_at_once: 256,
            memory_bytes: 2 << 30,
            frames_bytes: 64 << 20,
            requests_per_second: 64,
            requests_unanswered_per_peer: 32,
            requests_under_way_per_peer: 16,
            refusals_until_ban: 256,
            ban_time: Duration::from_secs(60),
            request_timeout: Duration::from_secs(10),
        }
    }
}
