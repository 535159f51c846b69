//! Carries opaque frames of bounded size between peers that have proved who they are. It knows nothing of learning.
//!
//! A peer is its Ed25519 key. Connections are TCP, encrypted by Noise, multiplexed by Yamux. A *request* is one frame
//! there and one frame back on a stream of its own. The name of the protocol holds the task's digest, so peers of
//! different tasks cannot talk by accident.
//!
//! [`Transport`] is a handle; the network runs in a task of its own, which ends when the last handle is dropped or
//! [`Transport::stop`] is called. Everything that a peer can make grow is bounded: queues, frames, connections,
//! addresses, and what is remembered about peers. What goes over a bound is refused for a [`Reason`] and counted.
//!
//! Time is read from tokio's monotonic clock only.

mod addresses;
mod behaviour;
mod codec;
mod counters;
mod doorkeeper;
mod driver;
mod events;
mod identity;
mod rate;
mod redial;
mod settings;
mod standing;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use libp2p::{Multiaddr, PeerId};
use tokio::sync::{mpsc, oneshot};

pub use counters::{Counts, Reason};
pub use identity::{Identity, NotAnIdentity, is_signed_by};
pub use settings::{Limits, TransportSettings};

use codec::Frame;
use counters::Counters;

/// Events that wait for the node.
pub const EVENTS_MAX: usize = 512;
/// Of these, places that requests never take, so that the node hears of connections also under load.
const EVENTS_RESERVED: usize = 128;
/// Commands of the node that wait for the network's task.
const COMMANDS_MAX: usize = 256;

/// What the node hears from the network.
#[derive(Debug)]
pub enum TransportEvent {
    /// The peer can be reached at this address.
    Listening(Multiaddr),
    /// A first connection with a peer was established.
    Connected(PeerId),
    /// The last connection with a peer is gone.
    Disconnected(PeerId),
    /// A peer may be found at this address: a hint. It is remembered for [`Transport::dial`] and [`Transport::request`].
    Discovered {
        /// Who.
        peer: PeerId,
        /// Where, perhaps.
        address: Multiaddr,
    },
    /// A peer asks something.
    Request {
        /// Who asks. This is proved.
        from: PeerId,
        /// What it says. Nothing about it has been checked but its length.
        frame: Vec<u8>,
        /// Where the answer goes.
        reply: Reply,
    },
    /// A peer or a connection was turned away. Requests that are refused are counted only.
    Refused {
        /// Who, where this is known.
        peer: Option<PeerId>,
        /// Why.
        reason: Reason,
    },
}

/// The way back for an answer. When it is dropped, the asking peer hears that its request was refused.
#[derive(Debug)]
#[must_use = "a reply that is dropped refuses the request"]
pub struct Reply {
    answer: oneshot::Sender<Frame>,
    frame_bytes_max: usize,
    /// The request's share of the room for incoming frames, given back with the answer.
    _held: Option<tokio::sync::OwnedSemaphorePermit>,
}

impl Reply {
    /// Answers. A peer that has gone meanwhile does not hear it.
    ///
    /// # Errors
    /// When the frame is over the cap.
    pub fn send(self, frame: Vec<u8>) -> Result<(), FrameTooLong> {
        check_length(&frame, self.frame_bytes_max)?;
        // The receiver is gone when the request has timed out or its connection was closed.
        let _ = self.answer.send(Frame { bytes: frame, held: None });
        Ok(())
    }
}

/// A frame of ours is longer than the settings allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a frame of {bytes} bytes is over the cap of {bytes_max}")]
pub struct FrameTooLong {
    /// Its length.
    pub bytes: usize,
    /// The cap.
    pub bytes_max: usize,
}

fn check_length(frame: &[u8], bytes_max: usize) -> Result<(), FrameTooLong> {
    let bytes = frame.len();
    if bytes > bytes_max { Err(FrameTooLong { bytes, bytes_max }) } else { Ok(()) }
}

/// Why the network could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Another program listens there.
    #[error("the port of {address} is in use by another program; free it, or listen at another port (0 takes any)")]
    PortInUse {
        /// Where.
        address: Multiaddr,
    },
    /// The system does not let us listen there.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// Where.
        address: Multiaddr,
        /// What the system says.
        error: String,
    },
    /// An address of the settings is of no use.
    #[error("{address} is not an address that can be used here; expected {expected}")]
    Address {
        /// The address.
        address: Multiaddr,
        /// What would be accepted.
        expected: &'static str,
    },
    /// The protocol's name is not one.
    #[error("{0:?} is not the name of a protocol: it must begin with a slash")]
    Protocol(String),
    /// A setting is out of its range.
    #[error("{name} is {value}; expected {expected}")]
    Setting {
        /// Which.
        name: &'static str,
        /// What it is.
        value: usize,
        /// What would be accepted.
        expected: &'static str,
    },
    /// mDNS does not work here.
    #[error("mDNS cannot be used here: {0}")]
    Mdns(std::io::Error),
    /// libp2p could not be set up.
    #[error("the network stack cannot be set up: {0}")]
    Stack(String),
}

/// Why a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The frame is over the cap.
    #[error(transparent)]
    FrameTooLong(#[from] FrameTooLong),
    /// There is no connection with the peer, and none could be made now.
    #[error("the peer is not connected")]
    NotConnected,
    /// The peer learns another task.
    #[error("the peer does not speak this task's protocol")]
    WrongTask,
    /// The peer did not answer in time. It may have got the request.
    #[error("the peer did not answer in time")]
    Timeout,
    /// The peer closed the stream or the connection without an answer. It may have got the request.
    #[error("the peer gave no answer")]
    Refused,
    /// The answer was refused here.
    #[error("the peer's answer was refused: {}", .0.name())]
    Answer(Reason),
    /// Too many requests to this peer, or to all together, are under way.
    #[error("too many requests are under way")]
    Busy,
    /// The transport has ended.
    #[error("the transport has ended")]
    Stopped,
}

/// A command was not taken: too many wait, or the transport has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the transport takes no command now")]
pub struct NotTaken;

/// What the handle asks of the network's task.
enum Command {
    Request { to: PeerId, frame: Vec<u8>, answer: oneshot::Sender<Result<Vec<u8>, RequestError>> },
    Learn { peer: PeerId, address: Multiaddr },
    Dial(PeerId),
    Disconnect(PeerId),
    Ban(PeerId, Duration),
    Stop,
}

/// What the handle and the network's task share.
#[derive(Debug, Default)]
struct Shared {
    counters: Arc<Counters>,
    listening: Mutex<Vec<Multiaddr>>,
}

impl Shared {
    fn listening(&self) -> std::sync::MutexGuard<'_, Vec<Multiaddr>> {
        self.listening.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handle on the network. Clones are cheap and mean the same network.
#[derive(Clone, Debug)]
pub struct Transport {
    id: PeerId,
    frame_bytes_max: usize,
    request_time_max: Duration,
    commands: mpsc::Sender<Command>,
    shared: Arc<Shared>,
}

impl Transport {
    /// Starts the network in a task of its own, on the current tokio runtime. When it returns, the peer listens.
    ///
    /// # Errors
    /// When a setting is of no use, or a port is taken: one error that says which.
    pub async fn start(
        identity: &Identity,
        settings: TransportSettings,
    ) -> Result<(Transport, mpsc::Receiver<TransportEvent>), StartError> {
        settings.check()?;
        let shared = Arc::new(Shared::default());
        let (commands, commands_in) = mpsc::channel(COMMANDS_MAX);
        let (events_out, events) = mpsc::channel(EVENTS_MAX);
        let transport = Transport {
            id: identity.id(),
            frame_bytes_max: settings.frame_bytes_max,
            request_time_max: settings.limits.request_timeout + behaviour::HANDSHAKE_TIMEOUT,
            commands,
            shared: Arc::clone(&shared),
        };
        let driver = driver::Driver::start(identity, settings, shared, commands_in, events_out).await?;
        tokio::spawn(driver.run());
        Ok((transport, events))
    }

    /// This peer's own name.
    #[must_use]
    pub fn id(&self) -> PeerId {
        self.id
    }

    /// The addresses at which this peer listens now, also those through relays.
    #[must_use]
    pub fn listening(&self) -> Vec<Multiaddr> {
        self.shared.listening().clone()
    }

    /// Sends one frame to a peer and waits for its answer.
    ///
    /// A peer that is not connected is dialled if an address is known. A listed peer that could not be reached just now
    /// is not dialled again for this: it has its own schedule, and the request fails at once.
    ///
    /// # Errors
    /// When there is no answer. See [`RequestError`] for whether the peer may have got the request.
    pub async fn request(&self, to: PeerId, frame: Vec<u8>) -> Result<Vec<u8>, RequestError> {
        check_length(&frame, self.frame_bytes_max)?;
        let (answer, answered) = oneshot::channel();
        let exchange = async {
            let command = Command::Request { to, frame, answer };
            self.commands.send(command).await.map_err(|_| RequestError::Stopped)?;
            answered.await.unwrap_or(Err(RequestError::Stopped))
        };
        tokio::time::timeout(self.request_time_max, exchange).await.unwrap_or(Err(RequestError::Timeout))
    }

    /// Tells an address at which a peer may be found. A listed peer that is not connected is dialled there.
    ///
    /// # Errors
    /// When the command was not taken.
    pub fn learn_address(&self, peer: PeerId, address: Multiaddr) -> Result<(), NotTaken> {
        self.tell(Command::Learn { peer, address })
    }

    /// Dials a peer whose address is known.
    ///
    /// # Errors
    /// When the command was not taken.
    pub fn dial(&self, peer: PeerId) -> Result<(), NotTaken> {
        self.tell(Command::Dial(peer))
    }

    /// Closes all connections with a peer. A listed peer will be dialled again.
    ///
    /// # Errors
    /// When the command was not taken.
    pub fn disconnect(&self, peer: PeerId) -> Result<(), NotTaken> {
        self.tell(Command::Disconnect(peer))
    }

    /// Closes all connections with a peer and refuses new ones for a while.
    ///
    /// # Errors
    /// When the command was not taken.
    pub fn ban(&self, peer: PeerId, time: Duration) -> Result<(), NotTaken> {
        self.tell(Command::Ban(peer, time))
    }

    /// The counters as they are now.
    #[must_use]
    pub fn counters(&self) -> Counts {
        self.shared.counters.read()
    }

    /// Closes all connections and ends the network's task, also when other handles exist. Returns when it has ended.
    pub async fn stop(&self) {
        // An error means that it has ended already.
        let _ = self.commands.send(Command::Stop).await;
        self.commands.closed().await;
    }

    fn tell(&self, command: Command) -> Result<(), NotTaken> {
        self.commands.try_send(command).map_err(|_| NotTaken)
    }
}
