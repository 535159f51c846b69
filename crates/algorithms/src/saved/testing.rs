//! A small world in which any agent may be interrupted.

use crate::testing::Mail;
use sottovoce_core::{
    Algorithm, CannotResume, Coin, Cx, Graph, Neighbours, Outbox, OutgoingLetter, PeerId, Posts, Reject, Role, Rows,
    Time, Wire,
};
use sottovoce_privacy::{Event, Gate, Idealized, Plan, Secrets, Sum};
use std::sync::Arc;

/// Agents in every world: six linked ones, one of them without data, and two isolated ones.
pub const AGENTS: usize = 8;

/// More letters than this are not left lying about.
const MAIL_MAX: usize = 40;

/// A few agents, whose posts and letters arrive late, doubled, in any order or not at all; and all they say.
pub struct World<'p, A: Algorithm, D> {
    pub(crate) algorithm: &'p A,
    pub(crate) graph: &'p Graph,
    pub(crate) data: D,
    pub(crate) seed: u64,
    pub(crate) events: u64,
    pub(crate) states: Vec<Option<A::State>>,
    pub(crate) gates: Vec<Gate<Idealized>>,
    pub(crate) versions: Rows,
    /// By agent: the version that is its post.
    pub(crate) mine: Vec<u32>,
    /// By agent and position of the neighbour: the version it has seen.
    pub(crate) seen: Vec<Vec<u32>>,
    /// Letters on their way.
    pub mail: Vec<Mail>,
    /// By event: what came of it, to the bit.
    pub(crate) said: Vec<Vec<u8>>,
}

/// All of them.
pub fn agents() -> impl Iterator<Item = PeerId> {
    (0..AGENTS as u32).map(PeerId)
}

impl<'p, A: Algorithm + 'p, D: Fn(PeerId) -> A::Data<'p>> World<'p, A, D> {
    /// All agents enter, each with a plan of these steps.
    pub fn start(algorithm: &'p A, graph: &'p Graph, data: D, steps: &[Event], seed: u64) -> Self {
        // Those that release something besides steps take as much of it.
        let asides = steps.to_vec();
        let plan = || Plan::with_asides(steps.to_vec(), asides, f64::INFINITY, 0.5, &Sum).expect("an infinite budget");
        let plan = (!steps.is_empty()).then(|| Arc::new(plan()));
        let gate = |id: PeerId| match &plan {
            Some(plan) => Gate::planned(plan.clone(), Idealized::new(seed, id.0)),
            None => Gate::unplanned(Idealized::new(seed, id.0)),
        };
        let mut this = World {
            algorithm,
            graph,
            data,
            seed,
            events: 0,
            states: agents().map(|_| None).collect(),
            gates: agents().map(gate).collect(),
            versions: Rows::zeros(1, algorithm.post_len()),
            mine: vec![0; AGENTS],
            seen: agents().map(|id| vec![0; graph.peers(id).len()]).collect(),
            mail: Vec::new(),
            said: Vec::new(),
        };
        for id in agents() {
            let data = (this.data)(id);
            let state = this.event(id, |cx| algorithm.start(data, cx)).expect("planned");
            this.states[id.index()] = Some(state);
        }
        this
    }

    /// Lets an agent act, and carries out what it wants said.
    pub(crate) fn event<R>(&mut self, me: PeerId, work: impl FnOnce(&mut Cx<'_>) -> R) -> R {
        let mut outbox = Outbox::default();
        let result = work(&mut Cx {
            me,
            role: Role::Member,
            now: Time(self.events as f64 / AGENTS as f64),
            peers: self.graph.peers(me),
            reach: self.graph.peers(me),
            coin: Coin::new(self.seed, me.0, self.events),
            secret: Secrets::simulated(self.seed, me.0, self.events),
            gate: &mut self.gates[me.index()],
            posts: Posts::PerEdge {
                versions: &self.versions,
                mine: self.mine[me.index()],
                seen: &self.seen[me.index()],
            },
            scratch: &mut vec![f64::NAN; 50],
            outbox: &mut outbox,
        });
        let mut said = Vec::new();
        if let Some(post) = outbox.posted() {
            let version = self.mine.iter().max().map_or(0, |most| *most as usize) + 1;
            while self.versions.values().len() < (version + 1) * post.len() {
                self.versions.push_zero();
            }
            self.versions.row_mut(version).copy_from_slice(post);
            self.mine[me.index()] = version as u32;
            said.extend(post.iter().flat_map(|value| value.to_le_bytes()));
        }
        for OutgoingLetter { to, vectors, bytes, .. } in outbox.letters() {
            said.extend(to.0.to_le_bytes());
            said.extend_from_slice(bytes);
            self.mail.push(Mail { from: me, to, vectors, bytes: bytes.to_vec() });
        }
        self.said.push(said);
        result
    }

    /// One agent wakes, reads a letter, or hears of its neighbours' posts.
    pub fn step(&mut self) {
        self.events += 1;
        let mut fate = Coin::new(self.seed, u32::MAX, self.events);
        let (me, kind) = (PeerId(fate.below(AGENTS) as u32), fate.unit());
        if kind < 0.15 {
            for (seen, edge) in self.seen[me.index()].iter_mut().zip(self.graph.peers(me).iter()) {
                *seen = if fate.unit() < 0.5 { self.mine[edge.peer.index()] } else { *seen };
            }
        } else if self.mail.is_empty() || kind < 0.5 && self.mail.len() < MAIL_MAX {
            let (algorithm, data) = (self.algorithm, (self.data)(me));
            let mut state = self.states[me.index()].take().expect("a state");
            let moved = self.event(me, |cx| algorithm.on_wake(&mut state, data, cx)).map(|activity| activity.moved);
            self.states[me.index()] = Some(state);
            self.note(&moved.map_or(vec![1], |moved| moved.to_le_bytes().to_vec()));
        } else {
            let mail = self.mail.swap_remove(fate.below(self.mail.len()));
            if fate.unit() < 0.1 {
                self.mail.push(mail.clone());
            }
            if fate.unit() < 0.9 {
                let read = self.hand_over(&mail);
                self.note(format!("{read:?}").as_bytes());
            }
        }
    }

    pub(crate) fn hand_over(&mut self, mail: &Mail) -> Result<(), Reject> {
        let (algorithm, data) = (self.algorithm, (self.data)(mail.to));
        let mut state = self.states[mail.to.index()].take().expect("a state");
        let read = self.event(mail.to, |cx| {
            let letter = A::Letter::decode(&mail.bytes)?;
            algorithm.on_letter(&mut state, data, mail.from, letter, cx)
        });
        self.states[mail.to.index()] = Some(state);
        read
    }

    pub(crate) fn note(&mut self, bytes: &[u8]) {
        self.said.last_mut().expect("an event").extend_from_slice(bytes);
    }

    /// What an agent would find again.
    pub fn saved(&self, me: PeerId) -> Vec<u8> {
        let mut bytes = vec![7, 7];
        self.algorithm.save(self.states[me.index()].as_ref().expect("a state"), &mut bytes);
        assert_eq!(bytes[..2], [7, 7], "a state is appended");
        bytes.split_off(2)
    }

    /// Resumes, and makes sure that nothing is said or charged meanwhile.
    pub fn resume(&mut self, me: PeerId, bytes: &[u8], neighbours: Neighbours) -> Result<(), CannotResume> {
        let (algorithm, data) = (self.algorithm, (self.data)(me));
        let (gate, mail) = (self.gates[me.index()].clone(), self.mail.len());
        let state = self.event(me, |cx| algorithm.resume(bytes, neighbours, data, cx));
        assert_eq!((self.said.pop(), self.mail.len()), (Some(Vec::new()), mail), "it sends nothing");
        assert_eq!(self.gates[me.index()], gate, "it releases nothing");
        state.map(|state| self.states[me.index()] = Some(state))
    }

    /// All models, as bits.
    pub(crate) fn models(&self) -> Vec<Vec<u64>> {
        let bits = |id: PeerId| {
            let posted = self.versions.row(self.mine[id.index()] as usize);
            let state = self.states[id.index()].as_ref().expect("a state");
            self.algorithm.model(state, posted).iter().map(|value| value.to_bits()).collect()
        };
        agents().map(bits).collect()
    }
}

/// Interrupts agents of one of two worlds that are alike, and sees that both say the same to the bit.
///
/// # Panics
/// If they do not.
pub fn survives_interruptions<'p, A: Algorithm + 'p, D: Fn(PeerId) -> A::Data<'p> + Copy>(
    name: &str,
    seed: u64,
    start: impl Fn() -> World<'p, A, D>,
) {
    let (mut straight, mut interrupted) = (start(), start());
    for event in 0..500 {
        let mut fate = Coin::new(seed, u32::MAX - 1, event);
        let all = fate.unit() < 0.05;
        let one = PeerId(fate.below(2 * AGENTS) as u32);
        for id in agents().filter(|id| all || *id == one) {
            let bytes = interrupted.saved(id);
            interrupted.resume(id, &bytes, Neighbours::Same).unwrap_or_else(|why| panic!("{name}: {why}"));
            assert_eq!(interrupted.saved(id), bytes, "{name}: the same is saved again");
        }
        straight.step();
        interrupted.step();
        assert_eq!(straight.said.last(), interrupted.said.last(), "{name}, seed {}: event {event}", seed);
        assert_eq!(straight.models(), interrupted.models(), "{name}, seed {}: event {event}", seed);
    }
    assert_eq!(straight.said, interrupted.said);
}
