//! A peer on a real network: a [`Node`] with sockets, a clock and an owner.
//!
//! One loop owns the node, so nothing about it is shared. It waits for whatever comes first: a frame, the answer to one of its own,
//! the agent's clock, the owner. A neighbour has at most one frame of ours under way; what it has not taken waits in the node, where a
//! newer post replaces an older one, so a slow or silent neighbour costs nobody else anything.

use crate::admin::Ask;
use crate::directory::Directory;
use crate::disk::Disk;
use crate::frame::{Answer, Question, Refusal};
use crate::group::Group;
use crate::node::{Afterwards, Fault, Node, Woke};
use crate::status::{self, NeighbourStatus, PeerStatus, Phase};
use crate::transport::{self, Identity, RequestError, StartError, Transport, TransportEvent};
use futures::future::BoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use libp2p::PeerId as Key;
use sottovoce_core::{Algorithm, Coin, PeerId, Time};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::{debug, info, warn};

/// How often what was heard is made safe when the agent itself has nothing to say.
const SAVE_EVERY: Duration = Duration::from_secs(5);

/// How often members without a known address are asked for.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// How long a neighbour that did not answer is left alone.
const RETRY_AFTER: Duration = Duration::from_millis(250);

/// Refusals of what one peer says before it is turned away for a while. One is forgiven in each second.
pub const REFUSALS_MAX: u32 = 256;

/// How long it is turned away.
const TURNED_AWAY: Duration = Duration::from_secs(60);

/// An alarm that is later than this rings for one that was asleep.
const ALARM_LATE_MAX: Duration = Duration::from_secs(1);

/// The longest span of an alarm, in wake intervals or seconds.
const ALARM_SPAN_MAX: f64 = 1e6;

/// Questions of the owner that wait.
const ASKS_MAX: usize = 8;

/// How a peer takes part.
pub struct PeerSettings {
    /// Who it is.
    pub identity: Identity,
    /// How it reaches others. Members are added to those it knows.
    pub transport: transport::TransportSettings,
    /// The members' keys, in the order of their names.
    pub keys: Vec<Key>,
    /// The mean time between two wakes.
    pub interval: Duration,
    /// The most frames in a second to one neighbour.
    pub frames_per_second: u32,
    /// Keys the times of its wakes; they need not be secret.
    pub seed: u64,
}

/// Why a peer ended.
#[derive(Debug, Error)]
pub enum PeerError {
    /// It could not begin.
    #[error(transparent)]
    Start(#[from] StartError),
    /// It could not go on.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// A peer, ready to run.
pub struct Peer<'d, A: Algorithm, D> {
    node: Node<'d, A, D>,
    transport: Transport,
    events: mpsc::Receiver<TransportEvent>,
    asks: mpsc::Receiver<Ask>,
    owner: mpsc::Sender<Ask>,
    directory: Directory,
    contacts: Vec<Contact>,
    /// By key: positions among the members.
    members: HashMap<Key, PeerId>,
    /// By key: refusals, and when they were last counted.
    refusals: HashMap<Key, (u32, Instant)>,
    interval: Duration,
    pace: Duration,
    coin: Coin,
    /// When the agent's alarm rings, and how often it had been set when that was computed.
    alarm: (Option<Instant>, Option<u64>),
    began: Instant,
    model_changed: Option<Instant>,
}

/// What the loop knows of a member.
#[derive(Clone, Debug, Default)]
struct Contact {
    connected: bool,
    greeted: bool,
    /// A frame is under way.
    busy: bool,
    /// Nothing is sent before.
    not_before: Option<Instant>,
    heard: Option<Instant>,
}

/// What became of a frame of ours.
struct Returned {
    to: PeerId,
    what: Sent,
    answer: Result<Vec<u8>, RequestError>,
}

#[derive(Clone, Copy)]
enum Sent {
    Hello,
    Message(u64),
    Who,
}

type UnderWay = FuturesUnordered<BoxFuture<'static, Returned>>;

impl<'d, A: Algorithm, D: Disk> Peer<'d, A, D> {
    /// Begins to listen, and to look for others. The node's noise is secret, by its type.
    pub async fn start(node: Node<'d, A, D>, settings: PeerSettings) -> Result<Self, PeerError> {
        let PeerSettings { identity, mut transport, keys, interval, frames_per_second, seed } = settings;
        let group: &Group = node.group();
        let members: HashMap<Key, PeerId> = keys.iter().zip(0..).map(|(&key, k)| (key, PeerId(k))).collect();
        // On a graph that is learned everyone is a neighbour; they are dialled when there is something to say.
        let listed = group.neighbours.iter().chain(&group.reach).flatten().map(|edge| edge.peer);
        for key in listed.map(|peer| keys[peer.index()]) {
            if !transport.known.iter().any(|(known, _)| *known == key) {
                transport.known.push((key, Vec::new()));
            }
        }
        // Twice what an honest member sends, and its questions.
        transport.limits.requests_per_second = transport.limits.requests_per_second.max(2 * frames_per_second + 8);
        let directory = Directory::new(group, &keys, &transport.known);
        let contacts = vec![Contact::default(); keys.len()];
        let (transport, events) = Transport::start(&identity, transport).await?;
        let (owner, asks) = mpsc::channel(ASKS_MAX);
        Ok(Peer {
            transport,
            events,
            asks,
            owner,
            directory,
            contacts,
            members,
            refusals: HashMap::new(),
            interval,
            pace: Duration::from_secs(1) / frames_per_second.max(1),
            coin: Coin::new(seed ^ node.events_so_far(), group.me.0, 1 << 40),
            alarm: (None, None),
            began: Instant::now(),
            model_changed: None,
            node,
        })
    }

    /// A way to ask it, and to stop it.
    pub fn owner(&self) -> mpsc::Sender<Ask> {
        self.owner.clone()
    }

    /// Where it listens.
    pub fn addresses(&self) -> Vec<libp2p::Multiaddr> {
        self.transport.listening()
    }

    /// Tells where a member may be found.
    pub fn learn_address(&mut self, key: Key, address: libp2p::Multiaddr) {
        self.directory.learn(key, address.clone());
        // A command that is not taken now is given again when addresses are looked for.
        let _ = self.transport.learn_address(key, address);
    }

    /// Runs until the owner stops it or it cannot go on.
    pub async fn run(mut self) -> Result<(), PeerError> {
        let outcome = self.live().await;
        self.transport.stop().await;
        match outcome {
            Ok(stopped) => {
                info!(wakes = self.node.wakes(), "stopped");
                // Gives the owner's answer time to leave.
                let told = stopped.send(()).is_ok();
                if told {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Ok(())
            }
            Err(fault) => {
                warn!(%fault, "the peer cannot go on");
                Err(fault.into())
            }
        }
    }

    async fn live(&mut self) -> Result<tokio::sync::oneshot::Sender<()>, Fault> {
        let mut under_way = UnderWay::new();
        let began = Instant::now();
        let mut next_wake = began + self.pause();
        let mut next_save = began + SAVE_EVERY;
        let mut next_look = began;
        loop {
            self.send_what_waits(&mut under_way);
            let (next_send, next_alarm) = (self.next_send(), self.next_alarm());
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(event) => self.on_event(event, &mut under_way)?,
                    None => return Err(Fault::Failed),
                },
                Some(returned) = under_way.next(), if !under_way.is_empty() => self.on_returned(returned)?,
                ask = self.asks.recv() => match ask {
                    // Whoever asked may have gone.
                    Some(Ask::Status(reply)) => drop(reply.send(self.status())),
                    Some(Ask::Stop(reply)) => {
                        self.node.save()?;
                        return Ok(reply);
                    }
                    None => {}
                },
                () = tokio::time::sleep_until(next_wake) => {
                    self.wake()?;
                    // A clock that was stopped for an hour owes one wake, not an hour of them.
                    next_wake = Instant::now() + self.pause();
                }
                () = sleep_until(next_alarm) => {
                    self.on_alarm()?;
                }
                () = tokio::time::sleep_until(next_save) => {
                    self.node.save()?;
                    next_save = Instant::now() + SAVE_EVERY;
                }
                () = tokio::time::sleep_until(next_look) => {
                    self.look_for_members(&mut under_way);
                    next_look = Instant::now() + LOOK_EVERY;
                }
                () = sleep_until(next_send) => {}
            }
        }
    }

    /// Exponential, so that wakes are a Poisson process. A clock that does not tick is looked at all the same: the agent enters by it.
    fn pause(&mut self) -> Duration {
        let unit = self.coin.unit();
        let rate = self.node.wake_rate();
        let interval = if rate > 0.0 { self.interval.div_f64(rate) } else { self.interval };
        interval.mul_f64(-libm::log1p(-unit))
    }

    /// When the agent's alarm rings. The span from when it was set is what counts: in wake intervals of this peer, or in seconds, where the agent's clock never ticks;
    /// whoever was away waits for all of it again, since nobody knows for how long it was.
    fn next_alarm(&mut self) -> Option<Instant> {
        let (at, set) = self.node.alarm();
        if self.alarm.1 != Some(set) {
            let span = at.map(|at| (at.0 - self.node.time().0).clamp(0.0, ALARM_SPAN_MAX));
            let unit = if self.node.wake_rate() > 0.0 { self.interval } else { Duration::from_secs(1) };
            self.alarm = (span.map(|span| Instant::now() + unit.mul_f64(span)), Some(set));
        }
        self.alarm.0.filter(|_| at.is_some())
    }

    /// An alarm is due. Whoever finds it overdue has been asleep, as all that was sent to it has: it reads that first, and waits for the whole span again.
    fn on_alarm(&mut self) -> Result<(), Fault> {
        let (due, _) = std::mem::take(&mut self.alarm);
        if due.is_some_and(|due| due.elapsed() < ALARM_LATE_MAX) {
            self.node.alarm_rings()?;
        }
        Ok(())
    }

    /// Nobody shares a clock: the agent's time is its own wakes, which is what a simulator's time is on average. Whoever is slow, or was
    /// away, is behind with all that it does by turns, and misses none of it.
    fn wake(&mut self) -> Result<(), Fault> {
        let now = Time(self.node.wakes() as f64);
        let before = self.node.post_number();
        let was_asking = self.node.is_asking();
        match self.node.wake(now)? {
            Woke::Acted if was_asking => info!("neighbours have told what they saw; learning begins"),
            Woke::Acted => {}
            Woke::Asking => debug!("waiting for neighbours to tell what they saw"),
            Woke::Done => debug!("all wakes are done"),
            Woke::Idle => {}
        }
        if self.node.post_number() != before {
            self.model_changed = Some(Instant::now());
        }
        Ok(())
    }

    fn on_event(&mut self, event: TransportEvent, under_way: &mut UnderWay) -> Result<(), Fault> {
        match event {
            TransportEvent::Listening(address) => info!(%address, "listening"),
            TransportEvent::Connected(key) => {
                if let Some(&member) = self.members.get(&key) {
                    debug!(%key, "connected");
                    let contact = &mut self.contacts[member.index()];
                    (contact.connected, contact.greeted, contact.not_before) = (true, false, None);
                    self.ask(member, Sent::Who, Question::Who.encode(), under_way);
                }
            }
            TransportEvent::Disconnected(key) => {
                if let Some(member) = self.members.get(&key) {
                    debug!(%key, "disconnected");
                    self.contacts[member.index()].connected = false;
                }
                self.refusals.remove(&key);
            }
            TransportEvent::Discovered { peer, address } => self.directory.learn(peer, address),
            TransportEvent::Refused { peer, reason } => debug!(?peer, reason = reason.name(), "refused"),
            TransportEvent::Request { from, frame, reply } => {
                let answer = if frame == Question::Who.encode() {
                    let asks = self.members.contains_key(&from);
                    let these = if asks { self.directory.some(&mut self.coin) } else { Vec::new() };
                    Answer::These(these).encode()
                } else {
                    self.node.receive(self.members.get(&from).copied(), &frame)?
                };
                match Answer::decode(&answer) {
                    Ok(Answer::Refused(refusal)) => self.count_refusal(from, refusal),
                    _ => self.note_heard(from),
                }
                if let Err(error) = reply.send(answer) {
                    warn!(%error, "an answer was too long");
                }
            }
        }
        Ok(())
    }

    fn note_heard(&mut self, from: Key) {
        if let Some(member) = self.members.get(&from) {
            self.contacts[member.index()].heard = Some(Instant::now());
        }
    }

    /// Counts a refusal; whoever has too many is turned away.
    fn count_refusal(&mut self, from: Key, refusal: Refusal) {
        if refusal == Refusal::NotReady {
            return;
        }
        let now = Instant::now();
        let (count, since) = self.refusals.entry(from).or_insert((0, now));
        let forgiven = now.duration_since(*since).as_secs();
        if forgiven > 0 {
            *count = count.saturating_sub(u32::try_from(forgiven).unwrap_or(u32::MAX));
            *since = now;
        }
        *count += 1;
        if *count > REFUSALS_MAX {
            warn!(key = %from, reason = %refusal, "turned away: too many refusals");
            self.refusals.remove(&from);
            // A command that is not taken is given at the next refusal.
            let _ = self.transport.ban(from, TURNED_AWAY);
        }
    }

    fn on_returned(&mut self, returned: Returned) -> Result<(), Fault> {
        let Returned { to, what, answer } = returned;
        let contact = &mut self.contacts[to.index()];
        if !matches!(what, Sent::Who) {
            contact.busy = false;
        }
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                debug!(to = to.0, %error, "no answer");
                contact.not_before = Some(Instant::now() + RETRY_AFTER);
                return Ok(());
            }
        };
        contact.heard = Some(Instant::now());
        match what {
            Sent::Hello => {
                contact.greeted = true;
                self.node.welcomed(to, &answer)?;
            }
            Sent::Message(number) => {
                if self.node.answered(to, number, &answer) == Afterwards::Again {
                    contact.not_before = Some(Instant::now() + RETRY_AFTER);
                }
            }
            Sent::Who => {
                if let Ok(Answer::These(contacts)) = Answer::decode(&answer) {
                    for (key, address) in self.directory.take(&contacts) {
                        let _ = self.transport.learn_address(key, address);
                    }
                }
            }
        }
        Ok(())
    }

    /// Members that have not been found: asks someone, or tells the transport again.
    fn look_for_members(&mut self, under_way: &mut UnderWay) {
        let me = self.node.group().me;
        let connected: Vec<PeerId> =
            (0..self.contacts.len() as u32).map(PeerId).filter(|k| self.contacts[k.index()].connected).collect();
        if connected.len() + 1 < self.contacts.len() && !connected.is_empty() {
            let to = connected[self.coin.below(connected.len())];
            if to != me {
                self.ask(to, Sent::Who, Question::Who.encode(), under_way);
            }
        }
    }

    /// For each neighbour that can take something: the next thing that it should have.
    fn send_what_waits(&mut self, under_way: &mut UnderWay) {
        let now = Instant::now();
        for k in 0..self.node.group().reach().len() {
            let to = self.node.group().reach().edge(k).peer;
            let contact = &self.contacts[to.index()];
            let waits = contact.not_before.is_some_and(|at| at > now);
            if contact.busy || waits {
                continue;
            }
            if !contact.connected {
                // On a graph that is learned, neighbours are everyone, and are dialled when there is something to say.
                let on_demand = self.node.group().neighbours.is_none() && self.directory.knows(to);
                if !on_demand || !self.node.has_outgoing(to) {
                    continue;
                }
            }
            if !contact.greeted {
                let hello = self.node.hello();
                self.contacts[to.index()].busy = true;
                self.ask(to, Sent::Hello, hello, under_way);
            } else if let Some(outgoing) = self.node.outgoing(to) {
                let contact = &mut self.contacts[to.index()];
                contact.busy = true;
                contact.not_before = Some(now + self.pace);
                self.ask(to, Sent::Message(outgoing.number), outgoing.frame, under_way);
            }
        }
    }

    /// When something that waits may be sent.
    fn next_send(&self) -> Option<Instant> {
        let peers = self.node.group().reach();
        let waiting = peers.iter().filter_map(|edge| {
            let contact = &self.contacts[edge.peer.index()];
            let at = contact.not_before?;
            let wants = contact.connected && !contact.busy;
            (wants && (!contact.greeted || self.node.has_outgoing(edge.peer))).then_some(at)
        });
        waiting.min()
    }

    fn ask(&mut self, to: PeerId, what: Sent, frame: Vec<u8>, under_way: &mut UnderWay) {
        let Some(key) = self.directory.key(to) else { return };
        let transport = self.transport.clone();
        under_way.push(Box::pin(async move { Returned { to, what, answer: transport.request(key, frame).await } }));
    }

    fn status(&self) -> PeerStatus {
        let node = &self.node;
        let group = node.group();
        let since = |at: Option<Instant>| at.map(|at| at.elapsed().as_secs_f64());
        let neighbours = group.reach().iter().zip(node.neighbours()).map(|(edge, neighbour)| {
            let contact = &self.contacts[edge.peer.index()];
            NeighbourStatus {
                name: neighbour.name.to_owned(),
                connected: contact.connected,
                post: neighbour.post,
                heard: since(contact.heard),
                points: neighbour.points,
            }
        });
        let (counters, transport) = (node.counters(), self.transport.counters());
        let named = [
            ("vectors_sent", counters.vectors_sent),
            ("letters_sent", counters.letters_sent),
            ("bytes_sent", counters.bytes_sent),
            ("letters_lost", counters.letters_lost),
            ("durable_delivered", counters.durable_delivered),
            ("durable_repeated", counters.durable_repeated),
            ("durable_waiting", node.neighbours().map(|neighbour| neighbour.waiting as u64).sum()),
            ("refused_by_others", counters.refused_by_others),
            ("exhausted", counters.exhausted),
            ("connections", transport.connections),
            ("requests_sent", transport.requests_sent),
            ("requests_failed", transport.requests_failed),
            ("requests_received", transport.requests_received),
            ("frame_bytes_sent", transport.bytes_sent),
            ("frame_bytes_received", transport.bytes_received),
            ("bans", transport.bans),
            ("dials", transport.dials),
        ];
        PeerStatus {
            name: group.names[group.me.index()].clone(),
            key: self.transport.id().to_string(),
            phase: match (node.is_asking(), node.is_quiet()) {
                (true, _) => Phase::Asking,
                (false, true) => Phase::Quiet,
                (false, false) => Phase::Learning,
            },
            addresses: self.transport.listening().iter().map(ToString::to_string).collect(),
            wakes: node.wakes(),
            messages: node.last_number(),
            post: node.post_number(),
            model_age: since(self.model_changed),
            moved: node.moved(),
            delivered: node.is_delivered(),
            charges: node.ledger().charges().copied().collect(),
            planned: node.planned(),
            neighbours: neighbours.collect(),
            counters: named.into_iter().map(|(name, count)| (name.to_owned(), count)).collect::<BTreeMap<_, _>>(),
            refused: status::refusals(
                &counters.refusals,
                transport.refusals().map(|(reason, count)| (reason.name(), count)),
            ),
            uptime: self.began.elapsed().as_secs_f64(),
        }
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
