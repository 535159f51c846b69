//! The libp2p stack: TCP, Noise and Yamux below, and the protocols on top.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::{AsyncRead, AsyncWrite};
use libp2p::core::muxing::StreamMuxerBox;
use libp2p::core::transport::{Boxed, OrTransport};
use libp2p::core::upgrade::Version;
use libp2p::core::{Transport, transport::TransportError};
use libp2p::request_response::{self, ProtocolSupport};
use libp2p::swarm::behaviour::toggle::Toggle;
use libp2p::swarm::{self, NetworkBehaviour, Swarm};
use libp2p::{
    Multiaddr, PeerId, StreamProtocol, dcutr, dns, identify, mdns, memory_connection_limits, noise, ping, relay, tcp,
    yamux,
};
use tokio::sync::Semaphore;

use super::addresses::{first_peer, is_relayed};
use super::codec::Codec;
use super::counters::Counters;
use super::doorkeeper::Doorkeeper;
use super::{Identity, StartError, TransportSettings};

/// A connection must be encrypted and multiplexed within this time.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Streams of one connection, in both directions and of all protocols.
const STREAMS_PER_CONNECTION_MAX: usize = 128;
/// Streams of one connection whose protocol is being agreed on.
const STREAMS_NEGOTIATING_MAX: usize = 32;
/// A connection with a peer that is neither listed nor spoken with is closed after this time.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// A peer is asked this often whether it is still there, and has as long to answer.
const PING_INTERVAL: Duration = Duration::from_secs(15);

/// What a relay carries for others. Small: a relay helps peers to find each other, and DCUtR takes over from there.
mod relaying {
    use std::time::Duration;

    pub(super) const RESERVATIONS_MAX: usize = 32;
    pub(super) const RESERVATIONS_PER_PEER_MAX: usize = 2;
    pub(super) const CIRCUITS_MAX: usize = 32;
    pub(super) const CIRCUITS_PER_PEER_MAX: usize = 4;
    pub(super) const CIRCUIT_DURATION_MAX: Duration = Duration::from_secs(600);
    /// Bytes of one circuit: this many of the largest frames.
    pub(super) const CIRCUIT_FRAMES_MAX: u64 = 64;
    pub(super) const CIRCUIT_BYTES_MIN: u64 = 1 << 20;
}

/// All protocols of a peer. The doorkeeper is asked first, and frames come last: what has been refused must leave no
/// trace in the others.
#[derive(NetworkBehaviour)]
pub(super) struct Behaviour {
    pub(super) doorkeeper: Doorkeeper,
    pub(super) memory: memory_connection_limits::Behaviour,
    pub(super) ping: ping::Behaviour,
    pub(super) identify: identify::Behaviour,
    pub(super) mdns: Toggle<mdns::tokio::Behaviour>,
    pub(super) relay_client: Toggle<relay::client::Behaviour>,
    pub(super) relay_server: Toggle<relay::Behaviour>,
    pub(super) dcutr: Toggle<dcutr::Behaviour>,
    pub(super) frames: request_response::Behaviour<Codec>,
}

type Stack = Boxed<(PeerId, StreamMuxerBox)>;

/// Encrypts and multiplexes whatever carries bytes.
fn upgraded<T>(carrier: T, noise: noise::Config) -> Stack
where
    T: Transport + Send + Unpin + 'static,
    T::Output: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T::Dial: Send + 'static,
    T::ListenerUpgrade: Send + 'static,
    T::Error: Send + Sync + 'static,
{
    let mut yamux = yamux::Config::default();
    yamux.set_max_num_streams(STREAMS_PER_CONNECTION_MAX);
    carrier.upgrade(Version::V1Lazy).authenticate(noise).multiplex(yamux).timeout(HANDSHAKE_TIMEOUT).boxed()
}

fn stack(identity: &Identity) -> Result<Stack, StartError> {
    let noise = noise::Config::new(identity.keypair()).map_err(|error| StartError::Stack(error.to_string()))?;
    let tcp = || tcp::tokio::Transport::new(tcp::Config::default().nodelay(true));
    Ok(match dns::tokio::Transport::system(tcp()) {
        Ok(named) => upgraded(named, noise),
        Err(error) => {
            // Names cannot be looked up here; plain addresses still work.
            tracing::warn!(%error, "no name resolution");
            upgraded(tcp(), noise)
        }
    })
}

/// The relays that the settings name, for our own use or on the way to a listed peer.
fn relays_named(settings: &TransportSettings) -> HashSet<PeerId> {
    let on_the_way = settings.known.iter().flat_map(|(_, addresses)| addresses).filter(|address| is_relayed(address));
    settings.relays.iter().chain(on_the_way).filter_map(first_peer).collect()
}

fn relay_limits(settings: &TransportSettings) -> relay::Config {
    relay::Config {
        max_reservations: relaying::RESERVATIONS_MAX,
        max_reservations_per_peer: relaying::RESERVATIONS_PER_PEER_MAX,
        max_circuits: relaying::CIRCUITS_MAX,
        max_circuits_per_peer: relaying::CIRCUITS_PER_PEER_MAX,
        max_circuit_duration: relaying::CIRCUIT_DURATION_MAX,
        max_circuit_bytes: (settings.frame_bytes_max as u64)
            .saturating_mul(relaying::CIRCUIT_FRAMES_MAX)
            .max(relaying::CIRCUIT_BYTES_MIN),
        ..relay::Config::default()
    }
}

/// Builds the swarm. It does not listen or dial yet.
pub(super) fn build(
    identity: &Identity,
    settings: &TransportSettings,
    counters: &Arc<Counters>,
) -> Result<Swarm<Behaviour>, StartError> {
    let protocol = StreamProtocol::try_from_owned(settings.protocol.clone())
        .map_err(|_| StartError::Protocol(settings.protocol.clone()))?;
    let me = identity.id();
    let limits = &settings.limits;
    let relays = relays_named(settings);

    let mut carrier = stack(identity)?;
    let mut relay_client = None;
    if !relays.is_empty() {
        let noise = noise::Config::new(identity.keypair()).map_err(|error| StartError::Stack(error.to_string()))?;
        let (circuits, client) = relay::client::new(me);
        let both = OrTransport::new(upgraded(circuits, noise), carrier);
        carrier = both.map(|either, _| either.into_inner()).boxed();
        relay_client = Some(client);
    }

    let mdns = if settings.mdns {
        let behaviour = mdns::tokio::Behaviour::new(mdns::Config::default(), me).map_err(StartError::Mdns)?;
        Some(behaviour)
    } else {
        None
    };
    let codec = Codec {
        frame_bytes_max: settings.frame_bytes_max,
        read_timeout: limits.request_timeout / 2,
        room: Arc::new(Semaphore::new(limits.frames_bytes.min(Semaphore::MAX_PERMITS))),
        counters: Arc::clone(counters),
    };
    // The codec is to see every stream, so that all are counted: the number of streams is bounded by Yamux.
    let frames = request_response::Config::default()
        .with_request_timeout(limits.request_timeout)
        .with_max_concurrent_streams(STREAMS_PER_CONNECTION_MAX);
    let identify = identify::Config::new(settings.protocol.clone(), identity.keypair().public())
        .with_agent_version(concat!("sottovoce/", env!("CARGO_PKG_VERSION")).to_owned())
        .with_push_listen_addr_updates(true)
        // Addresses are kept by the doorkeeper, which bounds them.
        .with_cache_size(0);
    let behaviour = Behaviour {
        doorkeeper: Doorkeeper::new(limits.clone(), settings.listed_only, &settings.known, relays.clone()),
        memory: memory_connection_limits::Behaviour::with_max_bytes(limits.memory_bytes),
        ping: ping::Behaviour::new(ping::Config::new().with_interval(PING_INTERVAL).with_timeout(PING_INTERVAL)),
        identify: identify::Behaviour::new(identify),
        mdns: mdns.into(),
        relay_client: relay_client.into(),
        relay_server: settings.serve_relay.then(|| relay::Behaviour::new(me, relay_limits(settings))).into(),
        dcutr: (!relays.is_empty()).then(|| dcutr::Behaviour::new(me)).into(),
        frames: request_response::Behaviour::with_codec(codec, [(protocol, ProtocolSupport::Full)], frames),
    };
    let config = swarm::Config::with_tokio_executor()
        .with_idle_connection_timeout(IDLE_TIMEOUT)
        .with_max_negotiating_inbound_streams(STREAMS_NEGOTIATING_MAX);
    Ok(Swarm::new(carrier, behaviour, me, config))
}

/// Begins to listen at an address.
///
/// libp2p shares ports between sockets, so that a second process would silently take half of the first one's
/// connections. A plain socket is therefore bound first, to see that the port is free.
pub(super) fn listen(
    swarm: &mut Swarm<Behaviour>,
    address: &Multiaddr,
) -> Result<libp2p::core::transport::ListenerId, StartError> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::AddrInUse => StartError::PortInUse { address: address.clone() },
        _ => StartError::Listen { address: address.clone(), error: error.to_string() },
    };
    if let Some(socket) = socket_address(address) {
        drop(std::net::TcpListener::bind(socket).map_err(failed)?);
    }
    swarm.listen_on(address.clone()).map_err(|error| match error {
        TransportError::MultiaddrNotSupported(address) => {
            StartError::Address { address, expected: "an address like /ip4/0.0.0.0/tcp/0" }
        }
        TransportError::Other(error) => failed(error),
    })
}

fn socket_address(address: &Multiaddr) -> Option<std::net::SocketAddr> {
    use libp2p::multiaddr::Protocol;
    let mut parts = address.iter();
    let ip: std::net::IpAddr = match parts.next()? {
        Protocol::Ip4(ip) => ip.into(),
        Protocol::Ip6(ip) => ip.into(),
        _ => return None,
    };
    match parts.next()? {
        Protocol::Tcp(port) => Some((ip, port).into()),
        _ => None,
    }
}
