//! One agent as the simulator holds it, and the one way in which it is called.

use crate::{Counters, Schedule, alarms::Alarms};
use sottovoce_core::{Activity, Algorithm, Coin, Cx, Graph, Outbox, PeerId, Posts, Reject, Role, Rows, Time, Wire};
use sottovoce_privacy::{Exhausted, Gate, Secrets, Simulated};
use std::hint::black_box;

/// An agent is quiet after this many wakes in a row in which neither it nor a neighbour moved.
pub(crate) const STILL_WAKES: u32 = 10;

/// What all agents share and none can change.
pub(crate) struct World<'w, A, D> {
    pub algorithm: &'w A,
    pub graph: &'w Graph,
    /// Whom agents can write to, if that is not the graph.
    pub reach: Option<&'w Graph>,
    /// By agent; where there are none, all are members.
    pub roles: &'w [Role],
    pub data: D,
    pub seed: u64,
    pub letter_bytes_max: usize,
}

/// A simulation without its messages: all that a way of delivery needs to run agents.
pub(crate) struct Stage<'w, A: Algorithm, D> {
    pub world: World<'w, A, D>,
    pub agents: Vec<Agent<A::State>>,
    pub schedule: Schedule,
    pub alarms: Alarms,
    pub counters: Counters,
    pub desk: Desk,
    /// When the last event was.
    pub now: Time,
    /// With a tolerance: an agent that moves by at most this is still.
    pub still_step: Option<f64>,
}

/// One agent.
pub(crate) struct Agent<S> {
    pub state: S,
    pub gate: Gate<Simulated>,
    /// Keys the agent's coins.
    pub events: u32,
    /// Wakes in a row in which neither it nor a neighbour moved; counted only with a tolerance.
    pub still: u32,
    /// The number of its last wake in the whole run.
    pub last_wake: u64,
}

/// Working memory of one thread, kept from event to event.
#[derive(Default)]
pub(crate) struct Desk {
    pub scratch: Vec<f64>,
    pub outbox: Outbox,
    /// Durable letters of the agent that acts next, by peer, where any wait.
    pub waiting: Vec<(PeerId, usize)>,
}

impl Desk {
    /// For an algorithm whose letters have so many bytes.
    pub fn new(letter_bytes_max: usize) -> Self {
        Desk { outbox: Outbox::new(letter_bytes_max), ..Desk::default() }
    }
}

impl<'w, A: Algorithm, D: Fn(PeerId) -> A::Data<'w> + Sync> World<'w, A, D> {
    pub fn start(
        &self,
        id: PeerId,
        mut gate: Gate<Simulated>,
        zero: &[f64],
        desk: &mut Desk,
    ) -> Result<Agent<A::State>, Exhausted> {
        let mut cx = self.cx(id, Time::default(), 0, &mut gate, Posts::Unheard { zero }, desk);
        let state = self.algorithm.start((self.data)(id), &mut cx)?;
        Ok(Agent { state, gate, events: 0, still: 0, last_wake: 0 })
    }

    #[inline]
    pub fn wake(
        &self,
        id: PeerId,
        now: Time,
        agent: &mut Agent<A::State>,
        posts: Posts<'_>,
        desk: &mut Desk,
    ) -> Result<Activity, Exhausted> {
        agent.events += 1;
        let mut cx = self.cx(id, now, agent.events, &mut agent.gate, posts, desk);
        self.algorithm.on_wake(&mut agent.state, (self.data)(id), &mut cx)
    }

    /// Touches what an agent that wakes soon will need, so that it is on its way from memory while another one is at work. Reads a
    /// word of each and forgets it: with a million agents every first touch is a miss.
    #[inline]
    pub fn anticipate(&self, id: PeerId, agent: &Agent<A::State>, rows: &Rows) {
        let peers = self.graph.peers(id);
        let first_edge = (!peers.is_empty()).then(|| peers.edge(0));
        let own_row = if rows.row_len() > 0 { rows.row(id.index())[0] } else { 0.0 };
        black_box((agent.events, agent.gate.ledger().releases(), first_edge, own_row, (self.data)(id)));
    }

    #[inline]
    fn cx<'a>(
        &'a self,
        me: PeerId,
        now: Time,
        event: u32,
        gate: &'a mut Gate,
        posts: Posts<'a>,
        desk: &'a mut Desk,
    ) -> Cx<'a> {
        desk.outbox.clear();
        if !desk.waiting.is_empty() {
            desk.outbox.set_waiting(desk.waiting.drain(..));
        }
        let peers = self.graph.peers(me);
        Cx {
            me,
            role: self.roles.get(me.index()).copied().unwrap_or_default(),
            now,
            peers,
            reach: self.reach.map_or(peers, |reach| reach.peers(me)),
            coin: Coin::new(self.seed, me.0, u64::from(event)),
            secret: Secrets::simulated(self.seed, me.0, u64::from(event)),
            gate,
            posts,
            scratch: &mut desk.scratch,
            outbox: &mut desk.outbox,
        }
    }
}

impl<'w, A: Algorithm, D: Fn(PeerId) -> A::Data<'w> + Sync> Stage<'w, A, D> {
    /// Touches what the readers of these letters, each from one agent to another, will need, as [`World::anticipate`] does before a
    /// wake: first all agents, then what they hold elsewhere, so that each time all misses are under way at once.
    #[inline]
    pub fn expect_letters(&self, letters: impl Iterator<Item = (PeerId, PeerId)> + Clone) {
        for (_, to) in letters.clone() {
            let agent = &self.agents[to.index()];
            black_box((agent.events, agent.gate.ledger().releases(), (self.world.data)(to)));
        }
        for (from, to) in letters {
            self.world.algorithm.anticipate(&self.agents[to.index()].state, (self.world.data)(to), from);
        }
    }

    /// Sets the alarm that an agent asked for in the event before.
    #[inline]
    pub fn set_alarm(&mut self, id: PeerId, now: Time) {
        if let Some(at) = self.desk.outbox.alarm() {
            self.alarms.set(id, at, now);
        }
    }

    /// Something happens at this time.
    pub fn pass_to(&mut self, now: Time) {
        self.now = Time(self.now.0.max(now.0));
        self.schedule.advance_to(now);
    }

    /// Lets an agent read a letter. What it rejects is counted, and leaves nothing in the outbox.
    #[inline]
    pub fn letter(&mut self, from: PeerId, to: PeerId, now: Time, posts: Posts<'_>, bytes: &[u8]) {
        let Stage { world, agents, desk, counters, .. } = self;
        let agent = &mut agents[to.index()];
        agent.events += 1;
        let mut cx = world.cx(to, now, agent.events, &mut agent.gate, posts, desk);
        let letter =
            if bytes.len() > world.letter_bytes_max { Err(Reject::Malformed) } else { A::Letter::decode(bytes) };
        let read = letter
            .and_then(|letter| world.algorithm.on_letter(&mut agent.state, (world.data)(to), from, letter, &mut cx));
        if let Err(reason) = read {
            *counters.rejected.entry(reason).or_default() += 1;
            desk.outbox.clear();
        }
    }
}
