//! The task that drives the network: it alone touches the swarm.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use libp2p::core::transport::ListenerId;
use libp2p::multiaddr::Protocol;
use libp2p::request_response::{InboundRequestId, OutboundRequestId, ResponseChannel};
use libp2p::swarm::dial_opts::DialOpts;
use libp2p::swarm::{DialError, Swarm};
use libp2p::{Multiaddr, PeerId};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, MissedTickBehavior};

use super::addresses::{Noted, Source, first_peer, is_relayed};
use super::behaviour::{self, Behaviour};
use super::codec::{Frame, Request};
use super::counters::{Reason, add};
use super::redial::Redial;
use super::standing::Standings;
use super::{Command, EVENTS_MAX, Identity, RequestError, Shared, StartError, TransportEvent, TransportSettings};

/// Requests of ours that wait for an answer, to all peers together.
const REQUESTS_UNDER_WAY_MAX: usize = 1024;
/// Requests of others whose answer is not written yet, of all peers together.
const ANSWERING_MAX: usize = 1024;
/// While the queue of events has fewer free places than this, news that may be lost is.
const EVENTS_FREE_FOR_HINTS: usize = EVENTS_MAX / 2;
/// How often what no longer matters is forgotten.
const TIDY_INTERVAL: Duration = Duration::from_secs(1);
/// How long the end of the transport waits for connections to close.
const FAREWELL_TIME: Duration = Duration::from_millis(500);
/// How long the start waits for listeners.
const LISTEN_TIME: Duration = Duration::from_secs(5);

/// An answer of the node, if it gave one, and the way it goes.
pub(super) type Answered = (ResponseChannel<Frame>, Option<Frame>);

/// One of our requests.
pub(super) struct UnderWay {
    pub(super) to: PeerId,
    pub(super) answer: oneshot::Sender<Result<Vec<u8>, RequestError>>,
}

// Fields are dropped in this order: `stop` waits for the end of `commands`, when sockets are closed already.
pub(super) struct Driver {
    pub(super) swarm: Swarm<Behaviour>,
    pub(super) settings: TransportSettings,
    pub(super) shared: Arc<Shared>,
    pub(super) under_way: HashMap<OutboundRequestId, UnderWay>,
    pub(super) under_way_per_peer: HashMap<PeerId, usize>,
    pub(super) replies: FuturesUnordered<BoxFuture<'static, Answered>>,
    pub(super) answering: HashSet<InboundRequestId>,
    pub(super) standings: Standings,
    pub(super) redial: Redial,
    pub(super) reservations: Redial,
    pub(super) relay_listeners: HashMap<ListenerId, PeerId>,
    pub(super) connected: HashSet<PeerId>,
    /// Peers that the node believes connected, and those about whom it may believe something wrong.
    pub(super) told: HashSet<PeerId>,
    pub(super) untold: HashSet<PeerId>,
    /// Peers that turned out to learn another task, until they are disconnected.
    pub(super) of_other_task: HashSet<PeerId>,
    pub(super) events: mpsc::Sender<TransportEvent>,
    pub(super) commands: mpsc::Receiver<Command>,
}

impl Driver {
    /// Opens the listeners and waits until they are open.
    pub(super) async fn start(
        identity: &Identity,
        settings: TransportSettings,
        shared: Arc<Shared>,
        commands: mpsc::Receiver<Command>,
        events: mpsc::Sender<TransportEvent>,
    ) -> Result<Self, StartError> {
        let mut swarm = behaviour::build(identity, &settings, &shared.counters)?;
        let mut listeners = HashMap::new();
        for address in &settings.listen {
            listeners.insert(behaviour::listen(&mut swarm, address)?, address.clone());
        }
        for address in &settings.external {
            swarm.add_external_address(address.clone());
        }
        let now = Instant::now();
        let me = identity.id();
        let known = settings.known.iter().map(|(peer, _)| *peer).filter(|peer| *peer != me);
        let mut driver = Self {
            redial: Redial::new(known, now),
            reservations: Redial::new(settings.relays.iter().filter_map(first_peer), now),
            standings: Standings::new(settings.limits.clone()),
            swarm,
            settings,
            shared,
            under_way: HashMap::new(),
            under_way_per_peer: HashMap::new(),
            replies: FuturesUnordered::new(),
            answering: HashSet::new(),
            relay_listeners: HashMap::new(),
            connected: HashSet::new(),
            told: HashSet::new(),
            untold: HashSet::new(),
            of_other_task: HashSet::new(),
            events,
            commands,
        };
        let deadline = now + LISTEN_TIME;
        while let Some(address) = listeners.values().next().cloned() {
            let event = tokio::time::timeout_at(deadline, driver.swarm.select_next_some()).await;
            let event = event.map_err(|_| StartError::Listen { address, error: "no answer".to_owned() })?;
            driver.on_listener_event(&event, &mut listeners)?;
            driver.on_swarm_event(event);
        }
        Ok(driver)
    }

    /// Runs until the last handle is dropped or one of them says stop.
    pub(super) async fn run(mut self) {
        let mut tidy = tokio::time::interval(TIDY_INTERVAL);
        tidy.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            self.tell_connections();
            let due = [self.redial.next_due(), self.reservations.next_due()].into_iter().flatten().min();
            let wake = due.unwrap_or_else(|| Instant::now() + TIDY_INTERVAL);
            tokio::select! {
                command = self.commands.recv() => match command {
                    None | Some(Command::Stop) => break,
                    Some(command) => self.on_command(command),
                },
                event = self.swarm.select_next_some() => self.on_swarm_event(event),
                Some((channel, answer)) = self.replies.next() => if let Some(frame) = answer {
                    // An error means that the request has timed out or its connection is closed.
                    let _ = self.swarm.behaviour_mut().frames.send_response(channel, frame);
                },
                () = tokio::time::sleep_until(wake), if due.is_some() => self.try_again(),
                _ = tidy.tick() => self.tidy(),
                // A place for a connection that the node has not heard of, unless the node no longer listens.
                free = self.events.reserve().map(|place| place.is_ok()), if !self.untold.is_empty() => if !free {
                    self.untold.clear();
                },
            }
        }
        self.say_farewell().await;
    }

    fn tidy(&mut self) {
        self.swarm.behaviour_mut().doorkeeper.tidy();
        self.standings.tidy(Instant::now());
        for peer in &self.of_other_task {
            let _ = self.swarm.disconnect_peer_id(*peer);
        }
    }

    async fn say_farewell(&mut self) {
        for peer in self.connected.iter().copied().collect::<Vec<_>>() {
            let _ = self.swarm.disconnect_peer_id(peer);
        }
        let deadline = Instant::now() + FAREWELL_TIME;
        while !self.connected.is_empty() {
            match tokio::time::timeout_at(deadline, self.swarm.select_next_some()).await {
                Ok(event) => self.on_swarm_event(event),
                Err(_) => break,
            }
        }
    }

    fn on_command(&mut self, command: Command) {
        match command {
            Command::Request { to, frame, answer } => {
                if let Err((answer, error)) = self.send_request(to, frame, answer) {
                    let _ = answer.send(Err(error));
                }
            }
            Command::Learn { peer, address } => self.note_address(peer, address, Source::Told),
            Command::Dial(peer) => {
                let _ = self.dial(peer);
            }
            Command::Disconnect(peer) => {
                let _ = self.swarm.disconnect_peer_id(peer);
            }
            Command::Ban(peer, time) => self.ban(peer, time),
            Command::Stop => {}
        }
    }

    #[allow(clippy::type_complexity)]
    fn send_request(
        &mut self,
        to: PeerId,
        frame: Vec<u8>,
        answer: oneshot::Sender<Result<Vec<u8>, RequestError>>,
    ) -> Result<(), (oneshot::Sender<Result<Vec<u8>, RequestError>>, RequestError)> {
        let to_this_peer = self.under_way_per_peer.get(&to).copied().unwrap_or(0);
        if to_this_peer >= self.settings.limits.requests_under_way_per_peer
            || self.under_way.len() >= REQUESTS_UNDER_WAY_MAX
        {
            return Err((answer, RequestError::Busy));
        }
        if !self.connected.contains(&to) && !self.is_on_its_way(to) {
            return Err((answer, RequestError::NotConnected));
        }
        let request = Request::Frame(Frame { bytes: frame, held: None });
        let id = self.swarm.behaviour_mut().frames.send_request(&to, request);
        self.under_way.insert(id, UnderWay { to, answer });
        *self.under_way_per_peer.entry(to).or_default() += 1;
        add(&self.shared.counters.requests_sent, 1);
        Ok(())
    }

    /// Whether a peer that is not connected may be soon.
    fn is_on_its_way(&mut self, peer: PeerId) -> bool {
        !self.redial.is_pausing(&peer, Instant::now())
            && matches!(self.dial(peer), Ok(()) | Err(DialError::DialPeerConditionFalse(_)))
    }

    /// Dials a peer at all its known addresses, from a port of its own: with the listening port as the origin, two peers
    /// that dial each other at the same moment would meet in one connection that both believe to have begun.
    fn dial(&mut self, peer: PeerId) -> Result<(), DialError> {
        let options = DialOpts::peer_id(peer).allocate_new_port().build();
        let result = self.swarm.dial(options);
        match &result {
            Ok(()) => add(&self.shared.counters.dials, 1),
            Err(error) => self.count_dial_error(Some(peer), error),
        }
        result
    }

    /// Attempts that are due: dials of listed peers, and reservations at relays.
    fn try_again(&mut self) {
        let now = Instant::now();
        while let Some(peer) = self.redial.pop_due(now) {
            let doorkeeper = &self.swarm.behaviour().doorkeeper;
            // Without an address there is nothing to do but wait; with a ban, nothing to do yet.
            let dialled = doorkeeper.may_enter(&peer).is_ok()
                && doorkeeper.addresses.knows(&peer)
                && matches!(self.dial(peer), Ok(()) | Err(DialError::DialPeerConditionFalse(_)));
            if !dialled && !self.connected.contains(&peer) {
                self.redial.failed(&peer, now);
            }
        }
        while let Some(relay) = self.reservations.pop_due(now) {
            let named = self.settings.relays.iter().find(|address| first_peer(address) == Some(relay));
            let Some(address) = named.cloned() else { continue };
            let address = if is_relayed(&address) { address } else { address.with(Protocol::P2pCircuit) };
            match self.swarm.listen_on(address) {
                Ok(listener) => {
                    self.relay_listeners.insert(listener, relay);
                }
                Err(error) => {
                    tracing::warn!(%relay, %error, "no slot at the relay");
                    self.reservations.failed(&relay, now);
                }
            }
        }
    }

    /// Tells the node who came and who went. When its queue is full this waits, and what has been undone meanwhile is
    /// never told: the node hears of each peer in turn that it is connected and that it is not.
    pub(super) fn tell_connections(&mut self) {
        while let Some(peer) = self.untold.iter().next().copied() {
            let event = match (self.connected.contains(&peer), self.told.contains(&peer)) {
                (true, false) => TransportEvent::Connected(peer),
                (false, true) => TransportEvent::Disconnected(peer),
                _ => {
                    self.untold.remove(&peer);
                    continue;
                }
            };
            let connected = matches!(event, TransportEvent::Connected(_));
            if self.events.try_send(event).is_err() {
                return;
            }
            self.untold.remove(&peer);
            if connected {
                self.told.insert(peer);
            } else {
                self.told.remove(&peer);
            }
        }
    }

    /// Tells the node something that it can do without.
    pub(super) fn hint(&self, event: TransportEvent) {
        if self.events.capacity() >= EVENTS_FREE_FOR_HINTS {
            let _ = self.events.try_send(event);
        }
    }

    pub(super) fn refuse(&self, peer: Option<PeerId>, reason: Reason) {
        self.shared.counters.refuse(reason);
        self.hint(TransportEvent::Refused { peer, reason });
    }

    pub(super) fn ban(&mut self, peer: PeerId, time: Duration) {
        tracing::info!(%peer, seconds = time.as_secs(), "banned");
        add(&self.shared.counters.bans, 1);
        self.swarm.behaviour_mut().doorkeeper.ban(peer, time);
        let _ = self.swarm.disconnect_peer_id(peer);
    }

    /// Remembers an address, tells the node if it is new and not from itself, and hurries if the peer is waited for.
    pub(super) fn note_address(&mut self, peer: PeerId, address: Multiaddr, source: Source) {
        if peer == *self.swarm.local_peer_id() {
            return;
        }
        match self.swarm.behaviour_mut().doorkeeper.addresses.note(peer, address.clone(), source) {
            Noted::New => {
                self.redial.hurry(&peer, Instant::now());
                if source == Source::Heard {
                    self.hint(TransportEvent::Discovered { peer, address });
                }
            }
            Noted::Known => {}
            Noted::Refused => self.shared.counters.refuse(Reason::Address),
        }
    }

    /// Whether the limits on unanswered requests of all peers leave a place, and the node's queue too.
    pub(super) fn has_place_for_request(&self) -> bool {
        self.answering.len() < ANSWERING_MAX && self.events.capacity() > super::EVENTS_RESERVED
    }
}
