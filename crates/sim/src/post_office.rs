//! Faulty delivery: every message travels on its own over its edge.
//!
//! A post is stored once, as a version that counts how many agents still see it or wait for it. What an agent sees of
//! a neighbour is the version with the highest sequence number that reached it, never the one that arrived last.
//!
//! A durable letter waits in the queue of its pair until it was read. The first of a queue is on its way, and on its way again when it was lost,
//! cut off, or its receiver was away; the next one leaves when it has arrived. So each is read once and in order, whatever the weather, and
//! never where an end is dead.

use crate::{
    Counters, Faults,
    agent::{Agent, STILL_WAKES, Stage},
    faults::Weather,
};
use sottovoce_core::{Algorithm, Delivery, Graph, Outbox, PeerId, Posts, Rows, Time, UNHEARD};
use std::{
    cmp::Ordering,
    collections::{BTreeMap, BinaryHeap, VecDeque},
};

/// More messages than this in flight, per directed edge on average, and further ones are lost.
const IN_FLIGHT_PER_EDGE_MAX: usize = 64;

/// After this time a durable letter that did not arrive is sent again.
const RETRY_AFTER: f64 = 1.0;

pub(crate) struct PostOffice {
    weather: Weather,
    versions: Rows,
    /// By version: how many hold it.
    holders: Vec<u32>,
    unused: Vec<u32>,
    /// By agent: its own last post and the sequence number of it.
    mine: Vec<u32>,
    sequence: Vec<u64>,
    /// Where each agent's edges begin in `seen` and `seen_sequence`, which are empty for algorithms that never post.
    offsets: Vec<usize>,
    seen: Vec<u32>,
    seen_sequence: Vec<u64>,
    in_flight_max: usize,
    /// By agent: the last wake of the whole run before a neighbour's move reached it.
    stirred_at: Vec<u64>,
    /// The last wake of the whole run at which an absence or a partition kept a message from its receiver or an agent
    /// from waking: who was still before may not be after.
    parted_at: u64,
    wakes_run: u64,
    in_flight: BinaryHeap<Parcel>,
    parcels_sent: u64,
    letters: Vec<Vec<u8>>,
    unused_letters: Vec<u32>,
    /// By sender and receiver: durable letters that were not read yet.
    durable: BTreeMap<(PeerId, PeerId), VecDeque<Vec<u8>>>,
    /// A wake that was drawn and has not come.
    upcoming: Option<(PeerId, Time)>,
}

/// A message on its way.
struct Parcel {
    at: Time,
    number: u64,
    to: PeerId,
    content: Content,
}

enum Content {
    Post {
        edge: usize,
        sequence: u64,
        version: u32,
    },
    Letter {
        from: PeerId,
        slot: u32,
    },
    /// The first durable letter of a pair arrives,
    Durable {
        from: PeerId,
    },
    /// or is sent again.
    Again {
        from: PeerId,
    },
}

impl Ord for Parcel {
    /// The earliest is the greatest, as the heap wants it; at one moment, the one sent first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.at.0.total_cmp(&self.at.0).then(other.number.cmp(&self.number))
    }
}

impl PartialOrd for Parcel {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Parcel {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Parcel {}

impl PostOffice {
    pub fn new(graph: &Graph, len: usize, seed: u64, faults: Faults) -> Self {
        let n = graph.agents();
        let mut offsets = vec![0];
        for id in (0..n as u32).map(PeerId) {
            offsets.push(offsets[id.index()] + graph.peers(id).len());
        }
        let in_flight_max = IN_FLIGHT_PER_EDGE_MAX * offsets[n].max(1);
        if len == 0 {
            offsets.fill(0);
        }
        PostOffice {
            weather: Weather::new(n, seed, faults),
            versions: Rows::zeros(1, len),
            holders: vec![1],
            unused: Vec::new(),
            mine: vec![UNHEARD; n],
            sequence: vec![0; n],
            seen: vec![UNHEARD; offsets[n]],
            seen_sequence: vec![0; offsets[n]],
            offsets,
            in_flight_max,
            stirred_at: vec![0; n],
            parted_at: 0,
            wakes_run: 0,
            in_flight: BinaryHeap::new(),
            parcels_sent: 0,
            letters: Vec::new(),
            unused_letters: Vec::new(),
            durable: BTreeMap::new(),
            upcoming: None,
        }
    }

    pub fn posts(&self, me: PeerId) -> Posts<'_> {
        Posts::PerEdge {
            versions: &self.versions,
            mine: self.mine[me.index()],
            seen: &self.seen[self.offsets[me.index()]..self.offsets[me.index() + 1]],
        }
    }

    pub fn is_dead(&self, agent: PeerId, now: Time) -> bool {
        self.weather.is_dead(agent, now)
    }

    /// Takes in what an agent said and sends it on its way.
    pub fn take(&mut self, graph: &Graph, from: PeerId, now: Time, outbox: &Outbox, counters: &mut Counters) {
        if let Some(post) = outbox.posted() {
            let version = self.new_version(post);
            let old = std::mem::replace(&mut self.mine[from.index()], version);
            self.let_go(old);
            self.sequence[from.index()] += 1;
            let sequence = self.sequence[from.index()];
            let peers = graph.peers(from);
            counters.count_post(peers.len(), post.len());
            for to in peers.iter().map(|edge| edge.peer) {
                let back = graph.peers(to).position(from).expect("edges are symmetric");
                let edge = self.offsets[to.index()] + back;
                for at in self.fates(from, to, now, counters).into_iter().flatten() {
                    self.holders[version as usize] += 1;
                    self.dispatch(at, to, Content::Post { edge, sequence, version });
                }
            }
        }
        for letter in outbox.letters() {
            let (to, bytes) = (letter.to, letter.bytes);
            counters.count_letter(letter.vectors, bytes);
            if letter.delivery == Delivery::Durable {
                let queue = self.durable.entry((from, to)).or_default();
                queue.push_back(bytes.to_vec());
                if queue.len() == 1 {
                    self.send_first(from, to, now);
                }
                continue;
            }
            for at in self.fates(from, to, now, counters).into_iter().flatten() {
                let slot = self.unused_letters.pop().unwrap_or_else(|| {
                    self.letters.push(Vec::new());
                    (self.letters.len() - 1) as u32
                });
                self.letters[slot as usize].clear();
                self.letters[slot as usize].extend_from_slice(bytes);
                self.dispatch(at, to, Content::Letter { from, slot });
            }
        }
    }

    /// Sends the first durable letter of a pair; once more, if it was sent before.
    fn send_first(&mut self, from: PeerId, to: PeerId, now: Time) {
        if self.weather.is_away(from, now) {
            // It is on its sender's disk, and leaves when that is back, if ever.
            if let Some(back) = self.weather.back_at(from, now) {
                self.dispatch(back, to, Content::Again { from });
            }
            return;
        }
        let arrives = self.weather.fates(from, to, now)[0];
        match arrives {
            Some(at) => self.dispatch(at, to, Content::Durable { from }),
            None => self.dispatch(now.after(Time(RETRY_AFTER)), to, Content::Again { from }),
        }
        if self.weather.is_cut(from, to, now) {
            self.parted_at = self.wakes_run;
        }
    }

    /// Tells the desk what waits for whom before an agent acts.
    fn lay_out<'w, A: Algorithm, D>(&self, id: PeerId, stage: &mut Stage<'w, A, D>) {
        if !self.durable.is_empty() {
            let own = self.durable.range((id, PeerId(0))..=(id, PeerId(u32::MAX)));
            stage.desk.waiting.clear();
            stage.desk.waiting.extend(own.map(|((_, to), queue)| (*to, queue.len())));
        }
    }

    /// Whether nothing is on its way.
    pub fn is_still(&self) -> bool {
        self.in_flight.is_empty()
    }

    /// Whether no durable letter waits that can ever be read.
    pub fn is_empty(&self, now: Time) -> bool {
        self.durable.keys().all(|(from, to)| self.weather.is_dead(*from, now) || self.weather.is_dead(*to, now))
    }

    fn fates(&mut self, from: PeerId, to: PeerId, now: Time, counters: &mut Counters) -> [Option<Time>; 2] {
        let room = self.in_flight.len() < self.in_flight_max;
        let fates = if room { self.weather.fates(from, to, now) } else { [None; 2] };
        counters.lost += u64::from(fates == [None; 2]);
        if self.weather.is_cut(from, to, now) {
            self.parted_at = self.wakes_run;
        }
        fates
    }

    fn dispatch(&mut self, at: Time, to: PeerId, content: Content) {
        self.parcels_sent += 1;
        self.in_flight.push(Parcel { at, number: self.parcels_sent, to, content });
    }

    fn new_version(&mut self, post: &[f64]) -> u32 {
        let version = self.unused.pop().unwrap_or_else(|| {
            self.holders.push(0);
            self.versions.push_zero() as u32
        });
        self.holders[version as usize] = 1;
        self.versions.row_mut(version as usize).copy_from_slice(post);
        version
    }

    fn let_go(&mut self, version: u32) {
        if version != UNHEARD {
            self.holders[version as usize] -= 1;
            if self.holders[version as usize] == 0 {
                self.unused.push(version);
            }
        }
    }

    /// Delivers everything that is due, up to the first durable letter: that is an event of its own.
    pub fn deliver<'w, A: Algorithm, D: Fn(PeerId) -> A::Data<'w> + Sync>(
        &mut self,
        now: Time,
        stage: &mut Stage<'w, A, D>,
    ) {
        let is_due = |parcel: &Parcel| parcel.at <= now && !matches!(parcel.content, Content::Durable { .. });
        while self.in_flight.peek().is_some_and(is_due) && self.next_parcel(now, stage).is_some() {}
    }

    /// One message that arrives by `until`, or one alarm; whether it is an event of its own. None when there is none.
    fn next_event<'w, A: Algorithm, D: Fn(PeerId) -> A::Data<'w> + Sync>(
        &mut self,
        until: Time,
        stage: &mut Stage<'w, A, D>,
    ) -> Option<bool> {
        let parcel_at = self.in_flight.peek().map(|parcel| parcel.at).filter(|at| *at <= until);
        let alarm_at = stage.alarms.next().filter(|at| *at <= until);
        if let Some(at) = alarm_at.filter(|at| parcel_at.is_none_or(|parcel| *at < parcel)) {
            let (id, _) = stage.alarms.take(at)?;
            return Some(self.ring(id, at, stage));
        }
        self.next_parcel(until, stage)
    }

    fn next_parcel<'w, A: Algorithm, D: Fn(PeerId) -> A::Data<'w> + Sync>(
        &mut self,
        until: Time,
        stage: &mut Stage<'w, A, D>,
    ) -> Option<bool> {
        if self.in_flight.peek().is_none_or(|parcel| parcel.at > until) {
            return None;
        }
        let Parcel { at, to, content, .. } = self.in_flight.pop()?;
        stage.pass_to(at);
        let away = self.weather.is_away(to, at);
        if away && !self.weather.is_dead(to, at) {
            self.parted_at = self.wakes_run;
        }
        Some(match content {
            Content::Post { edge, sequence, version } => {
                stage.counters.lost += u64::from(away);
                if !away && sequence > self.seen_sequence[edge] {
                    self.seen_sequence[edge] = sequence;
                    let old = std::mem::replace(&mut self.seen[edge], version);
                    if stage.still_step.is_some_and(|step| self.differ(old, version, step)) {
                        self.stirred_at[to.index()] = self.wakes_run;
                    }
                    self.let_go(old);
                } else {
                    self.let_go(version);
                }
                false
            }
            Content::Letter { from, slot } => {
                stage.counters.lost += u64::from(away);
                if !away {
                    let bytes = std::mem::take(&mut self.letters[slot as usize]);
                    self.read(from, to, at, &bytes, stage);
                    self.letters[slot as usize] = bytes;
                }
                self.unused_letters.push(slot);
                false
            }
            Content::Again { from } => {
                self.send_first(from, to, at);
                false
            }
            Content::Durable { from } if away => {
                // Dead for good: it stays where it is, and nothing is on its way any more.
                if let Some(back) = self.weather.back_at(to, at) {
                    self.dispatch(back, to, Content::Again { from });
                }
                false
            }
            Content::Durable { from } => {
                let queue = self.durable.get_mut(&(from, to)).expect("it waits until it is read");
                let bytes = queue.pop_front().expect("the first of its queue is on its way");
                if queue.is_empty() {
                    self.durable.remove(&(from, to));
                } else {
                    self.send_first(from, to, at);
                }
                stage.counters.durable_read += 1;
                self.read(from, to, at, &bytes, stage);
                true
            }
        })
    }

    fn read<'w, A: Algorithm, D: Fn(PeerId) -> A::Data<'w> + Sync>(
        &mut self,
        from: PeerId,
        to: PeerId,
        at: Time,
        bytes: &[u8],
        stage: &mut Stage<'w, A, D>,
    ) {
        self.lay_out(to, stage);
        stage.letter(from, to, at, self.posts(to), bytes);
        stage.set_alarm(to, at);
        self.take(stage.world.graph, to, at, &stage.desk.outbox, &mut stage.counters);
    }

    /// An agent's alarm rings; later, if it is away.
    fn ring<'w, A: Algorithm, D: Fn(PeerId) -> A::Data<'w> + Sync>(
        &mut self,
        id: PeerId,
        at: Time,
        stage: &mut Stage<'w, A, D>,
    ) -> bool {
        stage.pass_to(at);
        if self.weather.is_away(id, at) {
            if let Some(back) = self.weather.back_at(id, at) {
                stage.alarms.set(id, back, at);
            }
            return false;
        }
        self.wake(id, at, stage);
        true
    }

    fn wake<'w, A: Algorithm, D: Fn(PeerId) -> A::Data<'w> + Sync>(
        &mut self,
        id: PeerId,
        now: Time,
        stage: &mut Stage<'w, A, D>,
    ) {
        self.lay_out(id, stage);
        let Stage { world, agents, counters, desk, still_step, .. } = stage;
        counters.wakes += 1;
        let agent = &mut agents[id.index()];
        if world.algorithm.is_done(&agent.state) {
            return;
        }
        match world.wake(id, now, agent, self.posts(id), desk) {
            Ok(activity) => {
                let moved = still_step.is_some_and(|step| activity.moved > step);
                let stirred = self.stirred_at[id.index()].max(self.parted_at) >= agent.last_wake;
                agent.note_wake(self.wakes_run, moved, stirred);
                self.take(world.graph, id, now, &desk.outbox, counters);
                stage.set_alarm(id, now);
            }
            Err(_) => counters.refused += 1,
        }
    }

    pub fn run<'w, A: Algorithm, D: Fn(PeerId) -> A::Data<'w> + Sync>(
        &mut self,
        wakes: u64,
        stage: &mut Stage<'w, A, D>,
    ) {
        let mut left = wakes;
        while left > 0 {
            if self.upcoming.is_none() && stage.schedule.ticks() {
                self.upcoming = Some(stage.schedule.next_wake());
            }
            let until = self.upcoming.map_or(Time(f64::INFINITY), |(_, at)| at);
            if let Some(counted) = self.next_event(until, stage) {
                left -= u64::from(counted);
                continue;
            }
            let Some((id, now)) = self.upcoming.take() else { break };
            left -= 1;
            self.wakes_run += 1;
            stage.now = now;
            if self.weather.is_away(id, now) {
                if !self.weather.is_dead(id, now) {
                    self.parted_at = self.wakes_run;
                }
                continue;
            }
            self.wake(id, now, stage);
            self.deliver(now, stage);
        }
    }

    /// Whether nothing is in flight and every agent that lives has been still long enough since it last heard of a move,
    /// since all could last reach each other, and knows what its living neighbours said last.
    pub fn is_quiet<S>(&self, step: f64, graph: &Graph, now: Time, agents: &[Agent<S>]) -> bool {
        let living = || (0u32..).map(PeerId).zip(agents).filter(|(id, _)| !self.weather.is_dead(*id, now));
        self.in_flight.is_empty()
            && living().all(|(id, agent)| {
                !self.weather.is_away(id, now)
                    && agent.still >= STILL_WAKES
                    && self.stirred_at[id.index()].max(self.parted_at) < agent.last_wake
            })
            && living().all(|(id, _)| self.is_informed(step, graph, id, now))
    }

    /// Whether what an agent sees of each living neighbour is what that neighbour posted last, or near it.
    fn is_informed(&self, step: f64, graph: &Graph, id: PeerId, now: Time) -> bool {
        let seen = &self.seen[self.offsets[id.index()]..self.offsets[id.index() + 1]];
        graph.peers(id).iter().zip(seen).all(|(edge, &seen)| {
            let last = self.mine[edge.peer.index()];
            self.weather.is_dead(edge.peer, now) || !self.differ(seen, last, step)
        })
    }

    /// Whether two versions differ by more than `step` in some coordinate.
    fn differ(&self, a: u32, b: u32, step: f64) -> bool {
        let (a_row, b_row) = (self.versions.row(a as usize), self.versions.row(b as usize));
        a != b && a_row.iter().zip(b_row).any(|(a, b)| (a - b).abs() > step)
    }
}
