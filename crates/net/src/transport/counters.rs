//! What happened, in numbers. Everything that is refused is refused for a [`Reason`], and counted under it.

use std::sync::atomic::{AtomicU64, Ordering};

/// Declares the reasons once: the enum, the list of all of them, and their names in metrics.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Why something was refused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            /// All reasons, in a fixed order.
            pub const ALL: &'static [Reason] = &[$(Reason::$name,)*];

            /// The reason's name in metrics and logs.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Reason::$name => $text,)* }
            }
        }
    };
}

reasons! {
    /// A connection with a peer that is not listed, where only listed ones may connect.
    Stranger = "stranger",
    /// A connection with a banned peer, or a request of it that was still on its way.
    Banned = "banned",
    /// A connection over the limit of established incoming ones.
    ConnectionsIncoming = "connections_incoming",
    /// A connection over the limit of established outgoing ones.
    ConnectionsOutgoing = "connections_outgoing",
    /// A connection over the limit per peer.
    ConnectionsPerPeer = "connections_per_peer",
    /// A connection over the limit of those whose handshake is under way.
    ConnectionsPending = "connections_pending",
    /// A connection while the process uses more memory than it may.
    Memory = "memory",
    /// A connection from an address that connects too often.
    HandshakeRate = "handshake_rate",
    /// An incoming connection whose handshake failed: junk, silence, another protocol.
    Handshake = "handshake",
    /// A peer that learns another task.
    WrongTask = "wrong_task",
    /// An address that another peer answered than the one we dialled.
    WrongPeer = "wrong_peer",
    /// A frame whose announced length is over the cap.
    FrameTooLong = "frame_too_long",
    /// A frame that ended early, or was followed by more bytes.
    FrameMalformed = "frame_malformed",
    /// A frame that took too long to arrive.
    FrameSlow = "frame_slow",
    /// A frame that came while the room for incoming frames was full.
    FrameNoRoom = "frame_no_room",
    /// A request over the peer's rate.
    RequestRate = "request_rate",
    /// A request of a peer that already has its share of unanswered ones.
    RequestsUnanswered = "requests_unanswered",
    /// A request while the queue of events was full.
    QueueFull = "queue_full",
    /// An address that was not kept: too long, of another peer, or loopback told from afar.
    Address = "address",
}

/// The running counters, shared by the handle, the codec and the task that drives the network.
#[derive(Debug)]
pub(super) struct Counters {
    refused: Vec<AtomicU64>,
    pub(super) connections: AtomicU64,
    pub(super) requests_sent: AtomicU64,
    pub(super) requests_failed: AtomicU64,
    pub(super) requests_received: AtomicU64,
    pub(super) bytes_sent: AtomicU64,
    pub(super) bytes_received: AtomicU64,
    pub(super) bans: AtomicU64,
    pub(super) dials: AtomicU64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            refused: Reason::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            connections: AtomicU64::new(0),
            requests_sent: AtomicU64::new(0),
            requests_failed: AtomicU64::new(0),
            requests_received: AtomicU64::new(0),
            bytes_sent: AtomicU64::new(0),
            bytes_received: AtomicU64::new(0),
            bans: AtomicU64::new(0),
            dials: AtomicU64::new(0),
        }
    }
}

/// Adds to one counter.
pub(super) fn add(counter: &AtomicU64, count: u64) {
    counter.fetch_add(count, Ordering::Relaxed);
}

impl Counters {
    pub(super) fn refuse(&self, reason: Reason) {
        add(&self.refused[reason as usize], 1);
    }

    pub(super) fn read(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            refused: self.refused.iter().map(read).collect(),
            connections: read(&self.connections),
            requests_sent: read(&self.requests_sent),
            requests_failed: read(&self.requests_failed),
            requests_received: read(&self.requests_received),
            bytes_sent: read(&self.bytes_sent),
            bytes_received: read(&self.bytes_received),
            bans: read(&self.bans),
            dials: read(&self.dials),
        }
    }
}

/// The counters as they were at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counts {
    refused: Vec<u64>,
    /// Connections established so far, in both directions.
    pub connections: u64,
    /// Requests handed to the network.
    pub requests_sent: u64,
    /// Of these, those that got no answer.
    pub requests_failed: u64,
    /// Requests of peers handed to the node.
    pub requests_received: u64,
    /// Bytes of frames sent, with their lengths of four bytes, without encryption and multiplexing.
    pub bytes_sent: u64,
    /// Bytes of frames received whole, counted in the same way.
    pub bytes_received: u64,
    /// Bans imposed, by the transport itself or by the node.
    pub bans: u64,
    /// Dials begun.
    pub dials: u64,
}

impl Counts {
    /// How often something was refused for this reason.
    #[must_use]
    pub fn refused(&self, reason: Reason) -> u64 {
        self.refused[reason as usize]
    }

    /// How often something was refused, for any reason.
    #[must_use]
    pub fn refused_total(&self) -> u64 {
        self.refused.iter().sum()
    }

    /// All reasons with their counts.
    pub fn refusals(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        Reason::ALL.iter().map(|&reason| (reason, self.refused(reason)))
    }
}
