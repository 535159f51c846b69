//! What the network's task does when the swarm reports something. All of it may be a hostile peer's doing.

use std::collections::HashMap;
use std::io;

use futures::FutureExt;
use libp2p::core::transport::ListenerId;
use libp2p::multiaddr::Protocol;
use libp2p::request_response::{
    self as frames, InboundRequestId, Message, OutboundFailure, OutboundRequestId, ResponseChannel,
};
use libp2p::swarm::{ConnectionDenied, ConnectionId, DialError, ListenError, SwarmEvent};
use libp2p::{Multiaddr, PeerId, identify, mdns, memory_connection_limits, ping};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::addresses::{Source, is_loopback};
use super::behaviour::BehaviourEvent;
use super::codec::{Fault, Frame, Request};
use super::counters::{Reason, add};
use super::doorkeeper::Denied;
use super::driver::Driver;
use super::{Reply, RequestError, StartError, TransportEvent};

/// Addresses taken from one announcement of a peer.
const ADDRESSES_PER_NEWS_MAX: usize = 8;
/// Addresses taken from one round of mDNS.
const ADDRESSES_PER_MDNS_MAX: usize = 64;

impl Driver {
    /// During the start: notes which listeners are open, and fails with those that closed.
    pub(super) fn on_listener_event(
        &mut self,
        event: &SwarmEvent<BehaviourEvent>,
        opening: &mut HashMap<ListenerId, Multiaddr>,
    ) -> Result<(), StartError> {
        match event {
            SwarmEvent::NewListenAddr { listener_id, .. } => {
                opening.remove(listener_id);
            }
            SwarmEvent::ListenerClosed { listener_id, reason, .. } => {
                if let Some(address) = opening.remove(listener_id) {
                    let error = reason.as_ref().err().map_or_else(|| "closed".to_owned(), io::Error::to_string);
                    return Err(StartError::Listen { address, error });
                }
            }
            _ => {}
        }
        Ok(())
    }

    pub(super) fn on_swarm_event(&mut self, event: SwarmEvent<BehaviourEvent>) {
        match event {
            SwarmEvent::Behaviour(event) => self.on_behaviour_event(event),
            SwarmEvent::ConnectionEstablished { peer_id, .. } => {
                add(&self.shared.counters.connections, 1);
                if self.connected.insert(peer_id) {
                    self.untold.insert(peer_id);
                }
                self.redial.succeeded(&peer_id, Instant::now());
            }
            SwarmEvent::ConnectionClosed { peer_id, num_established: 0, .. } => {
                self.connected.remove(&peer_id);
                self.of_other_task.remove(&peer_id);
                self.untold.insert(peer_id);
                self.redial.failed(&peer_id, Instant::now());
            }
            SwarmEvent::IncomingConnectionError { error, peer_id, .. } => {
                let reason = match &error {
                    ListenError::Denied { cause } => denied(cause),
                    ListenError::WrongPeerId { .. } | ListenError::LocalPeerId { .. } => Reason::WrongPeer,
                    ListenError::Transport(_) | ListenError::Aborted => Reason::Handshake,
                };
                self.refuse(peer_id, reason);
            }
            SwarmEvent::OutgoingConnectionError { error, peer_id, .. } => {
                self.count_dial_error(peer_id, &error);
                if let Some(peer) = peer_id
                    && !self.connected.contains(&peer)
                    && !matches!(error, DialError::DialPeerConditionFalse(_))
                {
                    self.redial.failed(&peer, Instant::now());
                }
            }
            SwarmEvent::NewListenAddr { listener_id, address } => self.on_listening(listener_id, address),
            SwarmEvent::ExpiredListenAddr { address, .. } => self.shared.listening().retain(|known| *known != address),
            SwarmEvent::ListenerClosed { listener_id, addresses, reason } => {
                self.shared.listening().retain(|known| !addresses.contains(known));
                if let Some(relay) = self.relay_listeners.remove(&listener_id) {
                    self.reservations.failed(&relay, Instant::now());
                }
                if let Err(error) = reason {
                    tracing::warn!(%error, ?addresses, "no longer listening");
                }
            }
            _ => {}
        }
    }

    fn on_listening(&mut self, listener: ListenerId, address: Multiaddr) {
        if let Some(relay) = self.relay_listeners.get(&listener) {
            self.reservations.succeeded(relay, Instant::now());
        }
        if self.settings.serve_relay {
            // A relay tells its clients where it is. It is meant to be reachable where it listens.
            self.swarm.add_external_address(address.clone());
        }
        let mut listening = self.shared.listening();
        if !listening.contains(&address) {
            listening.push(address.clone());
        }
        drop(listening);
        let _ = self.events.try_send(TransportEvent::Listening(address));
    }

    pub(super) fn count_dial_error(&mut self, peer: Option<PeerId>, error: &DialError) {
        match error {
            DialError::Denied { cause } => self.refuse(peer, denied(cause)),
            DialError::WrongPeerId { address, .. } | DialError::LocalPeerId { address } => {
                if let Some(peer) = peer {
                    self.swarm.behaviour_mut().doorkeeper.addresses.forget(&peer, address);
                }
                self.refuse(peer, Reason::WrongPeer);
            }
            _ => {}
        }
    }

    fn on_behaviour_event(&mut self, event: BehaviourEvent) {
        match event {
            BehaviourEvent::Frames(event) => self.on_frames_event(event),
            // A peer without ping may be there. One that does not answer is not, and will not say so.
            BehaviourEvent::Ping(ping::Event { result: Err(ping::Failure::Unsupported), .. }) => {}
            BehaviourEvent::Ping(ping::Event { connection, result: Err(_), .. }) => {
                self.swarm.close_connection(connection);
            }
            BehaviourEvent::Identify(identify::Event::Received { connection_id, peer_id, info }) => {
                self.on_identified(connection_id, peer_id, info);
            }
            BehaviourEvent::Mdns(mdns::Event::Discovered(found)) => {
                for (peer, address) in found.into_iter().take(ADDRESSES_PER_MDNS_MAX) {
                    if self.swarm.behaviour().doorkeeper.may_enter(&peer).is_ok() {
                        self.note_address(peer, address, Source::Heard);
                    }
                }
            }
            BehaviourEvent::Dcutr(event) => tracing::debug!(?event, "hole punching"),
            BehaviourEvent::RelayClient(event) => tracing::debug!(?event, "relay"),
            BehaviourEvent::RelayServer(event) => tracing::debug!(?event, "relaying"),
            _ => {}
        }
    }

    fn on_identified(&mut self, connection: ConnectionId, peer: PeerId, info: identify::Info) {
        if self.standings.on_news(peer, Instant::now()) {
            self.ban(peer, self.settings.limits.ban_time);
            return;
        }
        if info.protocol_version != self.settings.protocol {
            self.on_wrong_task(peer);
            return;
        }
        let near = self.swarm.behaviour().doorkeeper.is_loopback(connection);
        for mut address in info.listen_addrs.into_iter().take(ADDRESSES_PER_NEWS_MAX) {
            if is_loopback(&address) && !near {
                // Where a far peer reaches itself is not where we reach it.
                self.shared.counters.refuse(Reason::Address);
                continue;
            }
            if address.iter().last() == Some(Protocol::P2p(peer)) {
                address.pop();
            }
            self.note_address(peer, address, Source::Heard);
        }
    }

    /// A peer of another task is of no use, except as a relay, or to a relay.
    fn on_wrong_task(&mut self, peer: PeerId) {
        if self.settings.serve_relay || self.swarm.behaviour().doorkeeper.is_relay(&peer) {
            return;
        }
        // It is not disconnected at once: the other side is to find out too, and tell its operator.
        if self.connected.contains(&peer) && self.of_other_task.insert(peer) {
            self.refuse(Some(peer), Reason::WrongTask);
        }
    }

    fn on_frames_event(&mut self, event: frames::Event<Request, Frame>) {
        match event {
            frames::Event::Message { peer, message: Message::Request { request_id, request, channel }, .. } => {
                self.on_request(peer, request_id, request, channel);
            }
            frames::Event::Message { message: Message::Response { request_id, response }, .. } => {
                self.finish(request_id, Ok(response.bytes));
            }
            frames::Event::OutboundFailure { peer, request_id, error, .. } => {
                let error = self.request_error(peer, error);
                self.finish(request_id, Err(error));
            }
            // Only now is a request done with: an answer that its peer does not read still takes memory.
            frames::Event::InboundFailure { peer, request_id, .. }
            | frames::Event::ResponseSent { peer, request_id, .. } => {
                if self.answering.remove(&request_id) {
                    self.standings.answered(&peer);
                }
            }
        }
    }

    fn on_request(&mut self, peer: PeerId, id: InboundRequestId, request: Request, channel: ResponseChannel<Frame>) {
        let now = Instant::now();
        if let Err(reason) = self.swarm.behaviour().doorkeeper.may_enter(&peer) {
            // Its connections are being closed.
            self.shared.counters.refuse(reason);
            return;
        }
        let frame = match request {
            Request::Frame(frame) => frame,
            Request::Fault(reason) => return self.on_fault(peer, reason),
        };
        if let Err(turned) = self.standings.on_request(peer, now) {
            self.shared.counters.refuse(turned.reason);
            if turned.too_often {
                self.ban(peer, self.settings.limits.ban_time);
            }
            return;
        }
        // The node is to hear of a peer before it hears from it.
        self.tell_connections();
        if !self.has_place_for_request() || !self.told.contains(&peer) {
            self.standings.answered(&peer);
            self.shared.counters.refuse(Reason::QueueFull);
            return;
        }
        let (answer, answered) = oneshot::channel();
        let reply = Reply { answer, frame_bytes_max: self.settings.frame_bytes_max, _held: frame.held };
        let event = TransportEvent::Request { from: peer, frame: frame.bytes, reply };
        if self.events.try_send(event).is_err() {
            self.standings.answered(&peer);
            self.shared.counters.refuse(Reason::QueueFull);
            return;
        }
        add(&self.shared.counters.requests_received, 1);
        self.answering.insert(id);
        let time = self.settings.limits.request_timeout;
        let reply = async move {
            let answer = tokio::time::timeout(time, answered).await;
            (channel, answer.ok().and_then(Result::ok))
        };
        self.replies.push(reply.boxed());
    }

    /// A peer sent something that is not one frame within its bounds. It is not blamed when only the room was full.
    fn on_fault(&mut self, peer: PeerId, reason: Reason) {
        self.shared.counters.refuse(reason);
        if reason != Reason::FrameNoRoom && self.standings.on_fault(peer, Instant::now()) {
            self.ban(peer, self.settings.limits.ban_time);
        }
    }

    fn request_error(&mut self, peer: PeerId, error: OutboundFailure) -> RequestError {
        match error {
            OutboundFailure::DialFailure => RequestError::NotConnected,
            OutboundFailure::Timeout => RequestError::Timeout,
            OutboundFailure::ConnectionClosed => RequestError::Refused,
            OutboundFailure::UnsupportedProtocols => {
                self.on_wrong_task(peer);
                RequestError::WrongTask
            }
            OutboundFailure::Io(error) => match error.get_ref().and_then(|inner| inner.downcast_ref::<Fault>()) {
                Some(Fault::Refused(reason)) => {
                    self.on_fault(peer, *reason);
                    RequestError::Answer(*reason)
                }
                _ => RequestError::Refused,
            },
        }
    }

    fn finish(&mut self, request: OutboundRequestId, result: Result<Vec<u8>, RequestError>) {
        let Some(under_way) = self.under_way.remove(&request) else { return };
        if let Some(count) = self.under_way_per_peer.get_mut(&under_way.to) {
            *count -= 1;
            if *count == 0 {
                self.under_way_per_peer.remove(&under_way.to);
            }
        }
        if result.is_err() {
            add(&self.shared.counters.requests_failed, 1);
        }
        // An error means that nobody waits for the answer any more.
        let _ = under_way.answer.send(result);
    }
}

/// Why a behaviour denied a connection.
fn denied(cause: &ConnectionDenied) -> Reason {
    if let Some(Denied(reason)) = cause.downcast_ref() {
        *reason
    } else if cause.downcast_ref::<memory_connection_limits::MemoryUsageLimitExceeded>().is_some() {
        Reason::Memory
    } else {
        Reason::Handshake
    }
}
