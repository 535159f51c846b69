//! A few peers without sockets, the weather between them, and somebody who sees everything that arrives.

use super::{CrashDisk, Tail};
use sottovoce_algorithms::personal::descent::{PrivateCoordinateDescent, PrivateCoordinateDescentConfig, WarmStart};
use sottovoce_algorithms::{Dataset, Loss, Problem, Regularization, Shard};
use sottovoce_core::{Algorithm, Coin, Graph, PeerId, Rows, Time};
use sottovoce_net::frame::{Answer, Question};
use sottovoce_net::group::Group;
use sottovoce_net::node::{Fault, Node, Rules};
use sottovoce_net::store::{Owner, Store, StoredStep};
use sottovoce_privacy::{Plan, sensitivity::Norm};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Four agents on a cycle with a chord, three points each; models come to rest after some ten wakes.
pub fn problem(loss: Loss) -> Problem {
    let mut coin = Coin::new(7, 0, 0);
    let mut data = Dataset::new(2);
    for agent in 0..4 {
        let mut jitter = || 0.2 * (coin.unit() - 0.5);
        let features = [1.0 + jitter(), jitter(), jitter(), 1.0 + jitter(), -0.7 + jitter(), 0.7 + jitter()];
        let labels = match loss {
            Loss::Squared => [1.0, f64::from(agent) - 1.0, 0.5],
            _ if agent % 2 == 0 => [1.0, -1.0, 1.0],
            _ => [1.0, 1.0, -1.0],
        };
        data.push_agent(&features, &labels);
    }
    let edges = [(0, 1, 1.0), (1, 2, 0.5), (2, 3, 1.0), (0, 3, 0.7), (0, 2, 0.4)];
    let graph = Graph::from_edges(4, &edges).expect("a graph");
    let regularization = Regularization::Constant(0.05);
    Problem { points_max: 3.0, data, graph, loss, regularization, trade_off: 2.0 }
}

/// Private updates of that problem's agents, for Laplace noise.
pub fn private_descent(problem: &Problem, warm: Option<WarmStart>) -> PrivateCoordinateDescent {
    let config = PrivateCoordinateDescentConfig {
        dimension: problem.dimension(),
        loss: problem.loss,
        trade_off: problem.trade_off,
        clip: 1.0,
        norm: Norm::L1,
        feature_bound: 2.0,
        l1_features: false,
        warm,
    };
    PrivateCoordinateDescent::new(config).expect("good parameters")
}

/// Who is there, as one of them sees it.
pub fn group(problem: &Problem, me: usize) -> Group {
    let me = PeerId(me as u32);
    let names = (0..problem.agents()).map(name).collect();
    let keys = (0..problem.agents()).map(|k| format!("key-{k}")).collect();
    // Where everyone can reach everyone, who is a neighbour is yet to be learned.
    let listed = !matches!(problem.graph, Graph::Complete { .. });
    let neighbours = listed.then(|| problem.graph.peers(me).iter().collect());
    Group { names, keys, roles: Vec::new(), me, neighbours, reach: None }
}

/// An agent's name.
pub fn name(k: usize) -> String {
    format!("agent-{k}")
}

/// To whom a peer's store belongs.
pub fn owner(me: usize) -> Owner {
    Owner { key: format!("key-{me}"), task: [1; 32], data: [me as u8; 32], algorithm: "test".into() }
}

/// The rules of these tests: two witnesses, no end.
pub fn rules(plan: Option<Arc<Plan>>) -> Rules {
    Rules { seed: 5, plan, points: 3, witnesses: 2, wakes_max: None, tolerance: None, pull_limit: None }
}

/// What a disk holds now, or would hold after a power loss that leaves only what is safe.
pub fn stored(disk: &CrashDisk, me: usize, only_safe: bool) -> Option<StoredStep> {
    Store::open(disk.image(only_safe), &owner(me)).expect("a crash damages nothing").1
}

/// When a peer dies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Moment {
    /// At a boundary of its disk.
    Disk(u64),
    /// When a frame is about to be handed out.
    HandOut(u64),
    /// When a frame of it has arrived and the answer has not.
    Unanswered(u64),
    /// When it has taken a frame, and its answer has not left.
    Taken(u64),
}

/// One death.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kill {
    pub peer: usize,
    pub moment: Moment,
    pub tail: Tail,
}

/// What happens between peers, and to them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// The share of frames, and of answers, that are lost.
    pub loss: f64,
    /// How often an old frame comes again.
    pub replay: f64,
    /// How often, per round, a peer is told to die soon.
    pub death: f64,
}

/// What a frame tells, each as some bytes.
pub type Facts = fn(&[u8]) -> Vec<Vec<u8>>;

/// One peer, up or down.
pub struct Peer<'w, A: Algorithm> {
    pub disk: CrashDisk,
    pub node: Option<Node<'w, A, CrashDisk>>,
    /// By neighbour: whether it has said hello since both are up.
    pub linked: BTreeMap<usize, bool>,
    /// Rounds until it is back.
    pub down: u32,
    /// The alarm that was set last, and for how many rounds it has been.
    alarm: (u64, f64),
    /// Charges that are certainly safe.
    pub durable: u64,
    /// Frames that it handed out, that arrived, that it took.
    pub counts: [u64; 3],
    pub deaths: u64,
}

/// The network.
pub struct World<'w, A: Algorithm> {
    pub algorithm: &'w A,
    pub problem: &'w Problem,
    pub plan: Option<Arc<Plan>>,
    pub peers: Vec<Peer<'w, A>>,
    pub weather: Weather,
    pub kills: Vec<Kill>,
    /// By sender and number: the frame. Everything that reached anyone.
    pub seen: BTreeMap<(usize, u64), Vec<u8>>,
    /// Frames that went from one to another, to be replayed.
    bag: Vec<(usize, usize, Vec<u8>)>,
    /// What a frame tells that must have been charged for; `None`: each message tells one such thing.
    pub facts: Option<Facts>,
    /// By sender: what it told anyone.
    told: BTreeSet<(usize, Vec<u8>)>,
    /// Holds for what is safe on the disk of a peer, at any time.
    pub holds: Option<fn(&StoredStep)>,
    /// After this many wakes a peer only listens.
    pub wakes_max: Option<u64>,
    /// Posts that need no charge, by each peer.
    pub free: u64,
    /// In how many messages one charge may be told, each to another reader.
    pub readers: u64,
    /// Whoever dies by plan dies again at this boundary of its next life, once.
    pub again: Option<u64>,
    /// Look at the sender's disk at every so many arrivals.
    pub look_every: u64,
    arrivals: u64,
    coin: Coin,
}

impl<'w, A: for<'d> Algorithm<Data<'d> = Shard<'d>>> World<'w, A> {
    pub fn new(algorithm: &'w A, problem: &'w Problem, plan: Option<Arc<Plan>>, kills: &[Kill], seed: u64) -> Self {
        let peer = |k: usize| Peer {
            disk: CrashDisk::default(),
            node: None,
            linked: problem.graph.peers(PeerId(k as u32)).iter().map(|edge| (edge.peer.index(), false)).collect(),
            down: 0,
            alarm: (0, 0.0),
            durable: 0,
            counts: [0; 3],
            deaths: 0,
        };
        let peers: Vec<_> = (0..problem.agents()).map(peer).collect();
        for kill in kills {
            if let Moment::Disk(boundary) = kill.moment {
                peers[kill.peer].disk.0.borrow_mut().fails_at = Some(boundary);
            }
        }
        let (kills, coin) = (kills.to_vec(), Coin::new(seed, 0, 0));
        let look_every = if plan.is_some() { 1 } else { 29 };
        let (weather, seen, bag) = (Weather::default(), BTreeMap::new(), Vec::new());
        let (free, readers, again, arrivals) = (0, 1, None, 0);
        World {
            algorithm,
            problem,
            plan,
            peers,
            weather,
            kills,
            seen,
            bag,
            facts: None,
            told: BTreeSet::new(),
            holds: None,
            wakes_max: None,
            free,
            readers,
            again,
            look_every,
            arrivals,
            coin,
        }
    }

    /// Everyone once, in random order: comes back, says hello, wakes, talks.
    pub fn round(&mut self) {
        let n = self.peers.len();
        let first = self.coin.below(n);
        let step = if self.coin.unit() < 0.5 { 1 } else { n - 1 };
        for k in 0..n {
            let me = (first + k * step) % n;
            if self.coin.unit() < self.weather.death {
                let mut platter = self.peers[me].disk.0.borrow_mut();
                platter.fails_at = Some(platter.boundaries + 1 + self.coin.below(14) as u64);
            }
            self.come_back(me);
            self.greet(me);
            self.wake(me);
            self.talk(me);
            if self.coin.unit() < 0.2 {
                self.save(me);
            }
        }
    }

    fn come_back(&mut self, me: usize) {
        let peer = &mut self.peers[me];
        if peer.node.is_some() {
            return;
        }
        peer.down = peer.down.saturating_sub(1);
        if peer.down > 0 {
            return;
        }
        let (shard, group) = (self.problem.shard(PeerId(me as u32)), group(self.problem, me));
        let rules = Rules { wakes_max: self.wakes_max, ..rules(self.plan.clone()) };
        let opened = Node::open(self.algorithm, shard, group, rules, &owner(me), peer.disk.clone());
        match opened {
            Ok(node) => {
                let found = node.ledger().releases();
                assert!(found >= peer.durable, "peer {me}: a charge was lost: {found} of {}", peer.durable);
                peer.node = Some(node);
                peer.alarm = (u64::MAX, 0.0);
            }
            Err(fault) => self.died(me, &fault),
        }
    }

    /// A disk failed under a peer.
    fn died(&mut self, me: usize, fault: &Fault) {
        assert!(matches!(fault, Fault::Store(_)), "peer {me}: {fault}");
        // Whoever goes on asking it gets nothing that is not safe.
        if let Some(node) = &self.peers[me].node {
            let safe = stored(&self.peers[me].disk, me, true).map_or(0, |step| step.last_number);
            for to in self.peers[me].linked.keys() {
                let number = node.outgoing(PeerId(*to as u32)).map_or(0, |out| out.number);
                assert!(number <= safe, "peer {me} would send message {number} after a failure, and {safe} is safe");
            }
        }
        let planned = self.kills.iter().find(|kill| kill.peer == me && matches!(kill.moment, Moment::Disk(_)));
        let tail = planned.map_or(Tail::ALL[self.coin.below(Tail::ALL.len())], |kill| kill.tail);
        self.kill(me, tail);
    }

    /// The process ends. What is safe on its disk must hold every charge that was told to be safe, and all that arrived anywhere.
    pub fn kill(&mut self, me: usize, tail: Tail) {
        let sent = self.sent(me);
        let peer = &mut self.peers[me];
        peer.node = None;
        peer.deaths += 1;
        let mut coin = self.coin;
        peer.disk.reboot(tail, &mut coin);
        peer.down = self.coin.below(3) as u32;
        let step = stored(&peer.disk, me, true);
        step.iter().zip(self.holds).for_each(|(step, holds)| holds(step));
        let charges = step.map_or(0, |step| step.ledger.releases());
        assert!(charges >= peer.durable, "peer {me}: {charges} charges of {} survived {tail:?}", peer.durable);
        let paid = charges * self.readers + self.free;
        assert!(paid >= sent, "peer {me}: {sent} messages arrived, {charges} charges survived {tail:?}");
        if let Some(again) = self.again.take() {
            let mut platter = peer.disk.0.borrow_mut();
            platter.fails_at = Some(platter.boundaries + again);
        }
        peer.linked.values_mut().for_each(|linked| *linked = false);
        for other in &mut self.peers {
            if let Some(linked) = other.linked.get_mut(&me) {
                *linked = false;
            }
        }
    }

    /// Distinct messages of a peer that arrived anywhere, or distinct facts in them.
    pub fn sent(&self, me: usize) -> u64 {
        match self.facts {
            None => self.seen.range((me, 0)..(me + 1, 0)).count() as u64,
            Some(_) => self.told.range((me, Vec::new())..(me + 1, Vec::new())).count() as u64,
        }
    }

    /// Whether a planned death is due; it happens then.
    fn meets(&mut self, me: usize, moment: Moment) -> bool {
        let Some(kill) = self.kills.iter().find(|kill| kill.peer == me && kill.moment == moment).copied() else {
            return false;
        };
        self.kill(me, kill.tail);
        true
    }

    /// Something of `from` reached somebody.
    fn observe(&mut self, from: usize, number: u64, frame: &[u8]) {
        let known = self.seen.entry((from, number)).or_insert_with(|| frame.to_vec());
        assert!(known == frame, "peer {from} said two things with number {number}");
        self.told.extend(self.facts.iter().flat_map(|facts| facts(frame)).map(|fact| (from, fact)));
        self.arrivals += 1;
        if self.arrivals.is_multiple_of(self.look_every) {
            let (sent, step) = (self.sent(from), stored(&self.peers[from].disk, from, true));
            let step = step.expect("something was sent, so something is safe");
            self.holds.iter().for_each(|holds| holds(&step));
            let charges = step.ledger.releases();
            let paid = charges * self.readers + self.free;
            assert!(paid >= sent, "peer {from}: {sent} messages arrived, {charges} charges are safe");
            assert!(step.last_number >= number, "peer {from}: message {number} arrived before it was safe");
            self.peers[from].durable = self.peers[from].durable.max(charges);
        }
    }

    /// Deaths of some peers, thinned out: at boundaries of their disks and at frames. What a death leaves on the disk goes round.
    pub fn deaths(&self, peers: std::ops::Range<usize>, every: usize) -> Vec<Kill> {
        let mut all = Vec::new();
        for peer in peers {
            let boundaries = self.peers[peer].disk.0.borrow().boundaries;
            let at_disk = (1..=boundaries).step_by(every).map(Moment::Disk);
            let kinds: [fn(u64) -> Moment; 3] = [Moment::HandOut, Moment::Unanswered, Moment::Taken];
            let at_frames = self.peers[peer].counts.into_iter().zip(kinds);
            let at_frames = at_frames.flat_map(|(count, moment)| (1..=count).step_by(every).map(moment));
            let kill = |(moment, tail)| Kill { peer, moment, tail };
            all.extend(at_disk.chain(at_frames).zip(Tail::ALL.into_iter().cycle()).map(kill));
        }
        all
    }

    fn is_lost(&mut self) -> bool {
        self.coin.unit() < self.weather.loss
    }

    /// Says hello to those who have not answered one since both are up.
    fn greet(&mut self, me: usize) {
        let unlinked: Vec<usize> = self.peers[me].linked.iter().filter(|(_, on)| !**on).map(|(k, _)| *k).collect();
        for other in unlinked {
            let Some(node) = &self.peers[me].node else { return };
            let hello = node.hello();
            if self.peers[other].node.is_none() || self.is_lost() {
                continue;
            }
            let Some(answer) = self.received(me, other, &hello) else { continue };
            if self.is_lost() {
                continue;
            }
            if let Ok(Answer::Welcome { post: Some(post), .. }) = Answer::decode(&answer) {
                self.observe(other, post.stamp.number, &Question::Post(post).encode());
            }
            let node = self.peers[me].node.as_mut().expect("it is up");
            node.welcomed(PeerId(other as u32), &answer).expect("nobody saw more than the store holds");
            self.peers[me].linked.insert(other, true);
        }
    }

    /// A frame reaches a peer; its answer, if it lives.
    fn received(&mut self, from: usize, to: usize, frame: &[u8]) -> Option<Vec<u8>> {
        let answer = self.peers[to].node.as_mut()?.receive(Some(PeerId(from as u32)), frame);
        match answer {
            Ok(answer) => {
                self.peers[to].counts[2] += 1;
                let taken = Moment::Taken(self.peers[to].counts[2]);
                (!self.meets(to, taken)).then_some(answer)
            }
            Err(fault) => {
                self.died(to, &fault);
                None
            }
        }
    }

    /// The time of a peer is its own wakes.
    fn wake(&mut self, me: usize) {
        let peer = &mut self.peers[me];
        let Some(node) = &mut peer.node else { return };
        let mut woke = node.wake(Time(node.wakes() as f64));
        // An alarm rings after as many rounds as it was set for; whoever comes back waits for all of them again.
        let (at, set) = node.alarm();
        peer.alarm = if peer.alarm.0 == set { (set, peer.alarm.1 + 1.0) } else { (set, 0.0) };
        if woke.is_ok() && at.is_some_and(|at| at.0 - node.time().0 <= peer.alarm.1) {
            woke = node.alarm_rings();
        }
        let charges = node.ledger().releases();
        match woke {
            // Behind a plan, every charge is safe when the wake is over.
            Ok(_) if self.plan.is_some() => self.peers[me].durable = charges,
            Ok(_) => {}
            Err(fault) => self.died(me, &fault),
        }
    }

    fn save(&mut self, me: usize) {
        let Some(node) = &mut self.peers[me].node else { return };
        if let Err(fault) = node.save() {
            self.died(me, &fault);
        }
    }

    /// Hands out what waits, to each neighbour.
    fn talk(&mut self, me: usize) {
        let linked: Vec<usize> = self.peers[me].linked.iter().filter(|(_, on)| **on).map(|(k, _)| *k).collect();
        for to in linked {
            for _ in 0..8 {
                let Some(node) = &self.peers[me].node else { return };
                let Some(out) = node.outgoing(PeerId(to as u32)).filter(|_| self.peers[to].node.is_some()) else {
                    break;
                };
                self.peers[me].counts[0] += 1;
                if self.meets(me, Moment::HandOut(self.peers[me].counts[0])) {
                    return;
                }
                if self.is_lost() {
                    break;
                }
                self.observe(me, out.number, &out.frame);
                let answer = self.received(me, to, &out.frame);
                self.bag.push((me, to, out.frame));
                self.peers[me].counts[1] += 1;
                if self.meets(me, Moment::Unanswered(self.peers[me].counts[1])) {
                    return;
                }
                let Some(answer) = answer.filter(|_| !self.is_lost()) else { break };
                let node = self.peers[me].node.as_mut().expect("it is up");
                node.answered(PeerId(to as u32), out.number, &answer);
            }
        }
        if self.coin.unit() < self.weather.replay && !self.bag.is_empty() {
            let (from, to, frame) = self.bag[self.coin.below(self.bag.len())].clone();
            let _ = self.received(from, to, &frame);
        }
    }

    /// Whether everyone is up, has done its plan, and has delivered what it has to say.
    pub fn is_done(&self) -> bool {
        self.peers.iter().all(|peer| {
            let settled = |node: &Node<'_, A, _>| node.is_quiet() && node.is_delivered();
            peer.node.as_ref().is_some_and(settled) && peer.linked.values().all(|linked| *linked)
        })
    }

    /// The largest distance of a coordinate from where it belongs; infinite while someone is away.
    pub fn distance(&self, expected: &Rows) -> f64 {
        let mut most = 0.0f64;
        for (k, peer) in self.peers.iter().enumerate() {
            let Some(model) = peer.node.as_ref().and_then(Node::model) else { return f64::INFINITY };
            most = model.iter().zip(expected.row(k)).fold(most, |most, (a, b)| most.max((a - b).abs()));
        }
        most
    }

    /// Rounds until `done`, in this weather for some, then in none.
    pub fn run(&mut self, stormy: u64, rounds_max: u64, done: impl Fn(&Self) -> bool) {
        (0..stormy).for_each(|_| self.round());
        self.weather = Weather::default();
        for peer in &self.peers {
            if self.kills.is_empty() {
                peer.disk.0.borrow_mut().fails_at = None;
            }
        }
        let mut rounds = 0;
        while !done(self) {
            self.round();
            rounds += 1;
            assert!(rounds < rounds_max, "not done after {rounds} rounds; kills {:?}", self.kills);
        }
    }
}
