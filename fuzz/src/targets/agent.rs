//! One agent that reads letters, and one that comes back from a damaged state.

use crate::Target;
use sottovoce_core::{Algorithm, Coin, Cx, Neighbours, Outbox, OutgoingLetter, PeerId, Peers, Posts, Role, Time, Wire};
use sottovoce_privacy::{Gate, Idealized, Plan, Secrets, Simulated};
use std::sync::Arc;

/// An agent without a driver.
pub struct Agent<'w, A: Algorithm> {
    algorithm: &'w A,
    data: A::Data<'w>,
    peers: Peers<'w>,
    gate: Gate<Simulated>,
    outbox: Outbox,
    scratch: Vec<f64>,
    events: u64,
    /// Letters that it wrote lately; it reads them as if its neighbours had.
    written: Vec<Vec<u8>>,
}

/// Letters kept.
const WRITTEN_MAX: usize = 24;

impl<'w, A: Algorithm> Agent<'w, A> {
    /// Who it is among its peers: agent 0.
    pub fn new(algorithm: &'w A, data: A::Data<'w>, peers: Peers<'w>) -> Self {
        Self::behind(Gate::unplanned(Simulated::None), algorithm, data, peers)
    }

    /// The same with a plan, which lasts for as many starts as it has steps.
    pub fn private(algorithm: &'w A, data: A::Data<'w>, peers: Peers<'w>, plan: Arc<Plan>) -> Self {
        Self::behind(Gate::planned(plan, Simulated::Idealized(Idealized::new(1, 0))), algorithm, data, peers)
    }

    fn behind(gate: Gate<Simulated>, algorithm: &'w A, data: A::Data<'w>, peers: Peers<'w>) -> Self {
        let outbox = Outbox::default();
        Agent { algorithm, data, peers, gate, outbox, scratch: Vec::new(), events: 0, written: Vec::new() }
    }

    /// With a letter that it would never write itself.
    pub fn with_letter(mut self, bytes: &[u8]) -> Self {
        self.written.push(bytes.to_vec());
        self
    }

    fn event<R>(&mut self, work: impl FnOnce(&A, A::Data<'w>, &mut Cx<'_>) -> R) -> R {
        self.events += 1;
        self.outbox.clear();
        let mut cx = Cx {
            me: PeerId(0),
            role: Role::Member,
            now: Time((self.events % 1000) as f64 / 8.0),
            peers: self.peers,
            reach: self.peers,
            coin: Coin::new(1, 0, self.events),
            secret: Secrets::simulated(1, 0, self.events),
            gate: &mut self.gate,
            posts: Posts::Unheard { zero: &[] },
            scratch: &mut self.scratch,
            outbox: &mut self.outbox,
        };
        let result = work(self.algorithm, self.data, &mut cx);
        for OutgoingLetter { bytes, .. } in self.outbox.letters() {
            if self.written.len() == WRITTEN_MAX {
                self.written.remove(0);
            }
            self.written.push(bytes.to_vec());
        }
        result
    }

    fn start(&mut self) -> A::State {
        self.event(|algorithm, data, cx| algorithm.start(data, cx)).expect("an unlimited budget")
    }

    fn wake(&mut self, state: &mut A::State) {
        self.event(|algorithm, data, cx| algorithm.on_wake(state, data, cx)).expect("an unlimited budget");
        let model = self.algorithm.model(state, &[]);
        assert!(model.iter().all(|value| value.is_finite()), "a model of {model:?}");
    }

    fn read(&mut self, state: &mut A::State, bytes: &[u8]) -> bool {
        let from = self.peers.edge(self.events as usize % self.peers.len()).peer;
        self.event(|algorithm, data, cx| {
            let letter = A::Letter::decode(bytes);
            letter.and_then(|letter| algorithm.on_letter(state, data, from, letter, cx)).is_ok()
        })
    }

    fn save(&self, state: &A::State) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.algorithm.save(state, &mut bytes);
        bytes
    }

    fn resume(&mut self, bytes: &[u8]) -> Option<A::State> {
        self.event(|algorithm, data, cx| algorithm.resume(bytes, Neighbours::Same, data, cx)).ok()
    }
}

/// Letters, to an agent that lives on.
pub struct Letters<'w, A: Algorithm> {
    name: &'static str,
    agent: Agent<'w, A>,
    state: Option<A::State>,
    fed: u64,
}

impl<'w, A: Algorithm> Letters<'w, A> {
    /// Of this agent.
    pub fn new(name: &'static str, agent: Agent<'w, A>) -> Self {
        Letters { name, agent, state: None, fed: 0 }
    }
}

impl<A: Algorithm> Target for Letters<'_, A> {
    fn name(&self) -> &str {
        self.name
    }

    fn share(&self) -> u64 {
        60
    }

    fn valid(&mut self) -> Vec<Vec<u8>> {
        self.agent.written.clone()
    }

    fn feed(&mut self, input: &[u8]) -> bool {
        let mut state = self.state.take().expect("it has begun");
        self.fed += 1;
        let believed = self.agent.read(&mut state, input);
        if self.fed.is_multiple_of(8) {
            self.agent.wake(&mut state);
        }
        if self.fed.is_multiple_of(512) {
            let saved = self.agent.save(&state);
            assert!(self.agent.resume(&saved).is_some(), "it cannot come back from its own state");
        }
        self.state = Some(state);
        believed
    }

    fn restart(&mut self) {
        self.agent.scratch.clear();
        let mut state = self.agent.start();
        (0..4).for_each(|_| self.agent.wake(&mut state));
        self.state = Some(state);
    }
}

/// Saved states, to an agent that comes back.
pub struct Resumed<'w, A: Algorithm> {
    name: &'static str,
    agent: Agent<'w, A>,
    saved: Vec<Vec<u8>>,
}

impl<'w, A: Algorithm> Resumed<'w, A> {
    /// Of this agent.
    pub fn new(name: &'static str, agent: Agent<'w, A>) -> Self {
        Resumed { name, agent, saved: Vec::new() }
    }
}

impl<A: Algorithm> Target for Resumed<'_, A> {
    fn name(&self) -> &str {
        self.name
    }

    fn share(&self) -> u64 {
        12
    }

    fn valid(&mut self) -> Vec<Vec<u8>> {
        self.saved.clone()
    }

    /// A state that was believed must carry the agent through a wake and a letter, and be saved again.
    fn feed(&mut self, input: &[u8]) -> bool {
        let Some(mut state) = self.agent.resume(input) else { return false };
        let _ = self.agent.event(|algorithm, data, cx| algorithm.on_wake(&mut state, data, cx));
        if let Some(letter) = self.agent.written.last().cloned() {
            self.agent.read(&mut state, &letter);
        }
        self.agent.save(&state);
        true
    }

    fn restart(&mut self) {
        let mut state = self.agent.start();
        self.saved = vec![self.agent.save(&state)];
        for _ in 0..20 {
            self.agent.wake(&mut state);
            for letter in self.agent.written.clone() {
                self.agent.read(&mut state, &letter);
            }
            self.saved.push(self.agent.save(&state));
        }
    }
}
