//! Peers on the loopback interface, for tests.

use std::time::Duration;

use libp2p::{Multiaddr, PeerId};
use sottovoce_net::transport::{Identity, Limits, Transport, TransportEvent, TransportSettings};
use tokio::sync::mpsc;

/// Whatever is waited for comes much earlier, or never.
pub const PATIENCE: Duration = Duration::from_secs(20);
pub const PROTOCOL: &str = "/sottovoce/2/test";
pub const FRAME_BYTES_MAX: usize = 64 * 1024;

pub fn settings() -> TransportSettings {
    let mut settings = TransportSettings::new(PROTOCOL, FRAME_BYTES_MAX);
    settings.listen = vec![any_port()];
    settings.limits = Limits { requests_per_second: 1_000_000, ..Limits::default() };
    settings
}

pub fn any_port() -> Multiaddr {
    "/ip4/127.0.0.1/tcp/0".parse().expect("an address")
}

pub struct Peer {
    pub transport: Transport,
    pub events: mpsc::Receiver<TransportEvent>,
}

impl Peer {
    pub async fn start(settings: TransportSettings) -> Peer {
        Peer::start_as(&Identity::generate(), settings).await
    }

    pub async fn start_as(identity: &Identity, settings: TransportSettings) -> Peer {
        let (transport, events) = Transport::start(identity, settings).await.expect("a transport");
        Peer { transport, events }
    }

    pub fn id(&self) -> PeerId {
        self.transport.id()
    }

    pub fn address(&self) -> Multiaddr {
        self.transport.listening().first().expect("a listening address").clone()
    }

    pub fn contact(&self) -> (PeerId, Vec<Multiaddr>) {
        (self.id(), vec![self.address()])
    }

    /// The next event for which this says yes; others are dropped.
    pub async fn wait_for(&mut self, mut wanted: impl FnMut(&TransportEvent) -> bool) -> TransportEvent {
        let next = async {
            loop {
                let event = self.events.recv().await.expect("the transport runs");
                if wanted(&event) {
                    return event;
                }
            }
        };
        tokio::time::timeout(PATIENCE, next).await.expect("the event comes in time")
    }

    pub async fn wait_connected(&mut self, peer: PeerId) {
        self.wait_for(|event| matches!(event, TransportEvent::Connected(who) if *who == peer)).await;
    }

    /// Answers every request with its own frame from now on.
    pub fn echo(self) -> Transport {
        let Peer { transport, mut events } = self;
        tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                if let TransportEvent::Request { frame, reply, .. } = event {
                    reply.send(frame).expect("a frame that came is under the cap");
                }
            }
        });
        transport
    }
}

/// Waits until something holds.
pub async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| panic!("in vain: {what}"));
}
