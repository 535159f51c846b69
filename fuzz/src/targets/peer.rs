//! A whole peer with a store in memory: frames, answers and greetings, from neighbours and from others.

use crate::Target;
use sottovoce_algorithms::{Problem, Shard};
use sottovoce_core::wire::Numbers;
use sottovoce_core::{Algorithm, PeerId, Time};
use sottovoce_net::disk::MemoryDisk;
use sottovoce_net::frame::{Answer, Card, Evidence, Post, Question, Refusal, Seen, Stamp};
use sottovoce_net::group::Group;
use sottovoce_net::node::{Fault, Node, Rules};
use sottovoce_net::store::Owner;
use sottovoce_privacy::{Event, Plan, Sum};
use std::sync::Arc;

/// Whose store it is.
pub fn owner() -> Owner {
    Owner { key: "key-0".into(), task: [1; 32], data: [2; 32], algorithm: "fuzz".into() }
}

/// Agent 0 among all.
pub fn group(problem: &Problem) -> Group {
    let names = (0..4).map(name).collect();
    let keys = (0..4).map(|k| format!("key-{k}")).collect();
    let neighbours = Some(problem.graph.peers(PeerId(0)).iter().collect());
    Group { names, keys, roles: Vec::new(), me: PeerId(0), neighbours, reach: None }
}

fn name(k: u32) -> String {
    format!("agent-{k}")
}

/// One witness, and a plan where there is privacy.
pub fn rules(is_private: bool) -> Rules {
    let steps = vec![Event::Laplace { noise_multiplier: 100.0 }; 40];
    let plan = is_private.then(|| Arc::new(Plan::new(steps, 1.0, 0.0, &Sum).expect("cheap")));
    Rules { seed: 1, plan, points: 3, witnesses: 1, wakes_max: None, tolerance: None, pull_limit: Some(1e3) }
}

/// What a neighbour says to hello.
pub fn welcome(from: PeerId, seen: u64) -> Vec<u8> {
    let card = Card { name: &name(from.0), points: 3, ..Card::default() };
    Answer::Welcome {
        card,
        seen: Seen { post: Evidence { number: seen, ..Evidence::default() }, ..Seen::default() },
        post: None,
    }
    .encode()
}

/// Frames to a peer that lives on.
pub struct Peer<'w, A: Algorithm> {
    name: &'static str,
    algorithm: &'w A,
    shard: A::Data<'w>,
    problem: &'w Problem,
    rules: Rules,
    node: Option<Node<'w, A, MemoryDisk>>,
    /// Numbers used by neighbours.
    used: u64,
    /// By agent: durable letters that were taken from it.
    turns: [u64; 5],
    fed: u64,
    /// Letters that it wrote lately.
    written: Vec<Vec<u8>>,
}

impl<'w, A: for<'d> Algorithm<Data<'d> = Shard<'d>>> Peer<'w, A> {
    /// Agent 0 of a problem.
    pub fn new(name: &'static str, algorithm: &'w A, shard: Shard<'w>, problem: &'w Problem, is_private: bool) -> Self {
        let rules = rules(is_private);
        Peer { name, algorithm, shard, problem, rules, node: None, used: 0, turns: [0; 5], fed: 0, written: Vec::new() }
    }
}

impl<A: for<'d> Algorithm<Data<'d> = Shard<'d>>> Target for Peer<'_, A> {
    fn name(&self) -> &str {
        self.name
    }

    fn share(&self) -> u64 {
        10
    }

    fn valid(&mut self) -> Vec<Vec<u8>> {
        let number = self.used + 1;
        let mut all = vec![
            Question::Hello(Card { name: "agent-1", points: 3, ..Card::default() }).encode(),
            Question::Post(Post { stamp: Stamp::numbered(number), values: Numbers::Plain(&[0.5, -0.5, 1e75]) })
                .encode(),
            welcome(PeerId(1), 1),
            Answer::Taken.encode(),
            Answer::Refused(Refusal::OutOfTurn).encode(),
        ];
        let stamp = Stamp::numbered(number);
        all.extend(self.written.iter().map(|bytes| Question::Letter { stamp, bytes }.encode()));
        all.extend(self.written.iter().map(|bytes| Question::Durable { stamp, turn: 1, bytes }.encode()));
        all
    }

    fn feed(&mut self, input: &[u8]) -> bool {
        let node = self.node.as_mut().expect("it has begun");
        self.fed += 1;
        // Half of all posts and letters are the next in turn, or few would ever be read.
        let mut renumbered = input.to_vec();
        if self.fed.is_multiple_of(2) && matches!(input.first(), Some(1 | 2)) && input.len() >= 17 {
            // A stamp is an epoch and a number.
            renumbered[9..17].copy_from_slice(&(self.used + 1).to_le_bytes());
        }
        let from = PeerId(1 + (self.fed % 4) as u32);
        if self.fed.is_multiple_of(2) && input.first() == Some(&4) && input.len() >= 42 && input[33] == 0 {
            renumbered[34..42].copy_from_slice(&(self.turns[from.index()] + 1).to_le_bytes());
        }
        let input = &renumbered[..];
        let refused: u64 = node.counters().refusals.values().sum();
        let heard = match self.fed % 8 {
            0 => node.welcomed(from, input),
            1 => {
                if let Some(out) = node.outgoing(from) {
                    node.answered(from, out.number, input);
                    if let Ok(Question::Letter { bytes, .. }) = Question::decode(&out.frame) {
                        self.written.truncate(15);
                        self.written.insert(0, bytes.to_vec());
                    }
                }
                Ok(())
            }
            // Nobody of the group is agent 4.
            _ => node.receive(Some(from).filter(|from| from.0 < 4), input).map(|_| ()),
        };
        let believed = refused == node.counters().refusals.values().sum::<u64>();
        if let Ok(Question::Post(Post { stamp, .. }) | Question::Letter { stamp, .. }) = Question::decode(input) {
            self.used = self.used.max(stamp.number.min(self.used + 1));
        }
        if let Ok(Question::Durable { turn, .. }) = Question::decode(input)
            && self.fed % 8 > 1
            && from.0 < 4
            && turn == self.turns[from.index()] + 1
        {
            self.turns[from.index()] = turn;
        }
        let woke = if self.fed.is_multiple_of(16) { node.wake(Time(self.fed as f64)).map(|_| ()) } else { Ok(()) };
        match heard.and(woke) {
            Ok(()) => {}
            // A neighbour that saw more than there is: the peer stops, as it should.
            Err(Fault::RolledBack { .. } | Fault::Forked { .. }) => self.restart(),
            Err(fault) => panic!("{fault}"),
        }
        believed
    }

    fn restart(&mut self) {
        let (rules, group) = (self.rules.clone(), group(self.problem));
        let opened = Node::open(self.algorithm, self.shard, group, rules, &owner(), MemoryDisk::default());
        let mut node = opened.expect("a new store");
        node.welcomed(PeerId(1), &welcome(PeerId(1), 0)).expect("a witness");
        node.wake(Time(1.0)).expect("awake");
        (self.node, self.used, self.turns) = (Some(node), 0, [0; 5]);
    }
}
