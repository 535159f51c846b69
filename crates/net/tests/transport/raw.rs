//! A peer that speaks libp2p but says what it likes on its streams.

use std::io;

use futures::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, StreamExt};
use libp2p::request_response::{self, Event, Message, ProtocolSupport};
use libp2p::swarm::dial_opts::DialOpts;
use libp2p::swarm::{Swarm, SwarmEvent};
use libp2p::{Multiaddr, PeerId, StreamProtocol, SwarmBuilder, noise, tcp, yamux};

use crate::common::{PATIENCE, any_port};

/// What to write to begin a frame and never finish it.
pub const SILENCE: &[u8] = &[0, 0, 0, 9, 1];

/// Writes bytes as they are, and reads whatever comes.
#[derive(Clone, Default)]
pub struct Bytes;

async fn read_all<T: AsyncRead + Unpin + Send>(io: &mut T) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io.take(1 << 20).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

impl request_response::Codec for Bytes {
    type Protocol = StreamProtocol;
    type Request = Vec<u8>;
    type Response = Vec<u8>;

    async fn read_request<T: AsyncRead + Unpin + Send>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
    ) -> io::Result<Vec<u8>> {
        read_all(io).await
    }

    async fn read_response<T: AsyncRead + Unpin + Send>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
    ) -> io::Result<Vec<u8>> {
        read_all(io).await
    }

    async fn write_request<T: AsyncWrite + Unpin + Send>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        bytes: Vec<u8>,
    ) -> io::Result<()> {
        io.write_all(&bytes).await?;
        io.flush().await?;
        if bytes == SILENCE { std::future::pending().await } else { Ok(()) }
    }

    async fn write_response<T: AsyncWrite + Unpin + Send>(
        &mut self,
        _: &StreamProtocol,
        io: &mut T,
        bytes: Vec<u8>,
    ) -> io::Result<()> {
        io.write_all(&bytes).await
    }
}

pub struct Raw {
    pub swarm: Swarm<request_response::Behaviour<Bytes>>,
}

impl Raw {
    pub fn new(protocol: &'static str) -> Raw {
        let swarm = SwarmBuilder::with_new_identity()
            .with_tokio()
            .with_tcp(tcp::Config::default(), noise::Config::new, yamux::Config::default)
            .expect("a stack")
            .with_behaviour(|_| {
                let protocols = [(StreamProtocol::new(protocol), ProtocolSupport::Full)];
                request_response::Behaviour::with_codec(Bytes, protocols, request_response::Config::default())
            })
            .expect("a behaviour")
            .build();
        Raw { swarm }
    }

    pub fn id(&self) -> PeerId {
        *self.swarm.local_peer_id()
    }

    pub async fn listen(&mut self) -> Multiaddr {
        self.swarm.listen_on(any_port()).expect("a port");
        loop {
            if let SwarmEvent::NewListenAddr { address, .. } = self.swarm.select_next_some().await {
                return address;
            }
        }
    }

    /// Answers every request with these bytes.
    pub async fn answer(mut self, bytes: Vec<u8>) {
        loop {
            let event = self.swarm.select_next_some().await;
            if let SwarmEvent::Behaviour(Event::Message { message: Message::Request { channel, .. }, .. }) = event {
                let _ = self.swarm.behaviour_mut().send_response(channel, bytes.clone());
            }
        }
    }

    /// Does what the stack does by itself.
    pub async fn idle(&mut self) {
        loop {
            self.swarm.select_next_some().await;
        }
    }

    pub async fn connect(&mut self, to: PeerId, at: Multiaddr) {
        self.swarm.dial(DialOpts::peer_id(to).addresses(vec![at]).build()).expect("a dial begins");
        let connect =
            async { while !matches!(self.swarm.select_next_some().await, SwarmEvent::ConnectionEstablished { .. }) {} };
        tokio::time::timeout(PATIENCE, connect).await.expect("a connection");
    }

    /// Sends bytes as one request. Says what came back: nothing when the connection was closed.
    pub async fn say(&mut self, to: PeerId, bytes: Vec<u8>) -> Option<Vec<u8>> {
        if !self.swarm.is_connected(&to) {
            return None;
        }
        self.swarm.behaviour_mut().send_request(&to, bytes);
        let answer = async {
            loop {
                match self.swarm.select_next_some().await {
                    SwarmEvent::Behaviour(Event::Message { message: Message::Response { response, .. }, .. }) => {
                        return Some(response);
                    }
                    SwarmEvent::Behaviour(Event::OutboundFailure { .. }) | SwarmEvent::ConnectionClosed { .. } => {
                        return None;
                    }
                    _ => {}
                }
            }
        };
        tokio::time::timeout(PATIENCE, answer).await.expect("an answer or its absence")
    }
}
