//! Random problems for tests.

use crate::token::ring::{Reveal, Ring, RingConfig, RingGoal, RingNoise, RingUnit};
use crate::token::walk::{Beyond, Goal, Sums, SumsConfig, Walk, WalkConfig};
use crate::{Dataset, Loss, Problem, Regularization, Shard};
use sottovoce_core::{
    Algorithm, Coin, Cx, Graph, Outbox, OutgoingLetter, PeerId, Posts, Reject, Role, Rows, Time, Wire,
};
use sottovoce_privacy::{Gate, NoNoise, Secrets, Track};

/// All losses that have a gradient everywhere.
pub const SMOOTH: [Loss; 3] = [Loss::Logistic, Loss::Squared, Loss::SmoothedHinge];
/// All losses.
pub const ALL: [Loss; 4] = [Loss::Logistic, Loss::Squared, Loss::SmoothedHinge, Loss::Hinge];

/// A standard normal number.
pub fn normal(coin: &mut Coin) -> f64 {
    let (radius, angle) = (1.0 - coin.unit(), coin.unit());
    (-2.0 * libm::log(radius)).sqrt() * libm::cos(2.0 * std::f64::consts::PI * angle)
}

/// Normal vectors, one after another.
pub fn normals(coin: &mut Coin, count: usize) -> Vec<f64> {
    (0..count).map(|_| normal(coin)).collect()
}

/// The part of each unit vector that lies in the span of these.
pub fn projections(vectors: &[Vec<f64>]) -> Vec<f64> {
    let mut basis: Vec<Vec<f64>> = Vec::new();
    for vector in vectors {
        let mut rest = vector.clone();
        for _ in 0..3 {
            for unit in &basis {
                let part: f64 = rest.iter().zip(unit).map(|(a, b)| a * b).sum();
                rest.iter_mut().zip(unit).for_each(|(x, unit)| *x -= part * unit);
            }
        }
        let size = rest.iter().map(|x| x * x).sum::<f64>().sqrt();
        if size > 1e-9 {
            basis.push(rest.into_iter().map(|x| x / size).collect());
        }
    }
    (0..vectors[0].len()).map(|k| basis.iter().map(|unit| unit[k] * unit[k]).sum()).collect()
}

/// A task in which neighbours' true models are alike. Agent 1 has no data; the last two agents are isolated, one of them
/// without data; the rest is a ring with random chords.
pub fn random_problem(seed: u64, n: usize, p: usize, loss: Loss) -> Problem {
    let mut coin = Coin::new(seed, 0, 0);
    let common = normals(&mut coin, p);
    let mut data = Dataset::new(p);
    let mut largest = 1;
    for agent in 0..n {
        let own: Vec<f64> = common.iter().map(|value| value + 0.3 * normal(&mut coin)).collect();
        let points = if agent == 1 || agent == n - 1 { 0 } else { 1 + coin.below(20) };
        largest = largest.max(points);
        let features = normals(&mut coin, points * p);
        let labels: Vec<f64> = features
            .chunks_exact(p)
            .map(|x| {
                let dot: f64 = x.iter().zip(&own).map(|(x, own)| x * own).sum::<f64>() + 0.3 * normal(&mut coin);
                if loss.is_classification() { if dot >= 0.0 { 1.0 } else { -1.0 } } else { dot }
            })
            .collect();
        data.push_agent(&features, &labels);
    }
    let ring = n as u32 - 2;
    let mut edges: Vec<(u32, u32, f64)> = (0..ring).map(|a| (a, (a + 1) % ring, 0.2 + coin.unit())).collect();
    for a in 0..ring {
        for b in a + 2..ring {
            if (a, b) != (0, ring - 1) && coin.unit() < 0.2 {
                edges.push((a, b, 0.2 + coin.unit()));
            }
        }
    }
    Problem {
        data,
        graph: Graph::from_edges(n, &edges).expect("a graph"),
        loss,
        regularization: Regularization::Constant(0.01),
        trade_off: 1.0,
        points_max: largest as f64,
    }
}

/// Every agent.
pub fn everyone(problem: &Problem) -> impl Iterator<Item = PeerId> {
    (0..problem.agents() as u32).map(PeerId)
}

/// One event of one agent that reads `rows`; returns its result and what it posted.
pub fn event<R>(
    problem: &Problem,
    rows: &Rows,
    me: PeerId,
    gate: &mut Gate,
    work: impl FnOnce(&mut Cx<'_>) -> R,
) -> (R, Option<Vec<f64>>) {
    let (mut outbox, mut scratch) = (Outbox::default(), vec![f64::NAN; 100]);
    let (now, coin) = (Time::default(), Coin::new(0, me.0, 0));
    let (peers, posts) = (problem.graph.peers(me), Posts::Board { rows, me });
    let (role, reach, secret) = (Role::Member, peers, Secrets::simulated(0, me.0, 0));
    let (scratch, mail) = (&mut scratch, &mut outbox);
    let result = work(&mut Cx { me, role, now, peers, reach, coin, secret, gate, posts, scratch, outbox: mail });
    assert_eq!(outbox.letters().count(), 0);
    (result, outbox.posted().map(<[f64]>::to_vec))
}

/// A letter on its way.
#[derive(Clone, Debug)]
pub struct Mail {
    /// Who wrote it.
    pub from: PeerId,
    /// To whom.
    pub to: PeerId,
    /// Vectors in it.
    pub vectors: u64,
    /// As it travels.
    pub bytes: Vec<u8>,
}

/// A few agents, and letters that wait until the test delivers them.
pub struct Network<'p, A: Algorithm> {
    algorithm: &'p A,
    graph: &'p Graph,
    data: Box<dyn Fn(PeerId) -> A::Data<'p> + 'p>,
    /// By agent.
    pub states: Vec<A::State>,
    gates: Vec<Gate<NoNoise>>,
    /// Letters on their way.
    pub mail: Vec<Mail>,
    outbox: Outbox,
    scratch: Vec<f64>,
    events: u64,
}

impl<'p, A: for<'d> Algorithm<Data<'d> = Shard<'d>>> Network<'p, A> {
    /// Everyone has started; nothing is delivered yet.
    pub fn start(algorithm: &'p A, problem: &'p Problem) -> Self {
        Network::start_with(algorithm, &problem.graph, |agent| problem.shard(agent))
    }
}

impl<'p, A: Algorithm> Network<'p, A> {
    /// The same with data of any kind.
    pub fn start_with(algorithm: &'p A, graph: &'p Graph, data: impl Fn(PeerId) -> A::Data<'p> + 'p) -> Self {
        let mut this = Network {
            algorithm,
            graph,
            data: Box::new(data),
            states: Vec::new(),
            gates: vec![Gate::without_privacy(); graph.agents()],
            mail: Vec::new(),
            outbox: Outbox::default(),
            scratch: Vec::new(),
            events: 0,
        };
        for agent in (0..graph.agents() as u32).map(PeerId) {
            let data = (this.data)(agent);
            let state = this.event(agent, |cx| algorithm.start(data, cx)).expect("an unlimited budget");
            this.states.push(state);
        }
        this
    }

    /// One wake; the letters it sends wait in the mail.
    pub fn wake(&mut self, agent: PeerId) -> f64 {
        let (algorithm, data) = (self.algorithm, (self.data)(agent));
        let mut states = std::mem::take(&mut self.states);
        let activity = self.event(agent, |cx| algorithm.on_wake(&mut states[agent.index()], data, cx));
        self.states = states;
        activity.expect("an unlimited budget").moved
    }

    /// Wakes an agent until it writes to `to`, dropping what it writes to others.
    pub fn wake_towards(&mut self, agent: PeerId, to: PeerId) {
        let before = self.mail.len();
        loop {
            self.wake(agent);
            if self.mail[before..].iter().any(|mail| mail.to == to) {
                return;
            }
            self.mail.truncate(before);
        }
    }

    /// Hands over a letter; what it answers waits in the mail.
    pub fn hand_over(&mut self, mail: &Mail) -> Result<(), Reject> {
        let (algorithm, data) = (self.algorithm, (self.data)(mail.to));
        let mut states = std::mem::take(&mut self.states);
        let result = self.event(mail.to, |cx| {
            A::Letter::decode(&mail.bytes)
                .and_then(|letter| algorithm.on_letter(&mut states[mail.to.index()], data, mail.from, letter, cx))
        });
        self.states = states;
        result
    }

    /// Delivers all mail in random order, but for letters of one pair, which are durable; returns all that was sent.
    pub fn deliver_in_any_order(&mut self, coin: &mut Coin) -> Vec<Mail> {
        let mut sent = Vec::new();
        while !self.mail.is_empty() {
            let at = coin.below(self.mail.len());
            let pair = |mail: &Mail| (mail.from, mail.to);
            let first = self.mail.iter().position(|mail| pair(mail) == pair(&self.mail[at])).expect("itself");
            let mail = self.mail.remove(first);
            self.hand_over(&mail).expect("in turn");
            sent.push(mail);
        }
        sent
    }

    /// Delivers all mail, and what comes of it, in order.
    pub fn deliver_all(&mut self) {
        while !self.mail.is_empty() {
            let mail = self.mail.remove(0);
            self.hand_over(&mail).expect("a letter in turn");
        }
    }

    /// An agent's model.
    pub fn model(&self, agent: u32) -> &[f64] {
        self.algorithm.model(&self.states[agent as usize], &[])
    }

    fn event<R>(&mut self, me: PeerId, work: impl FnOnce(&mut Cx<'_>) -> R) -> R {
        self.events += 1;
        self.outbox.clear();
        let mut cx = Cx {
            me,
            role: Role::Member,
            now: Time::default(),
            peers: self.graph.peers(me),
            reach: self.graph.peers(me),
            coin: Coin::new(1, me.0, self.events),
            secret: Secrets::simulated(1, me.0, self.events),
            gate: &mut self.gates[me.index()],
            posts: Posts::Unheard { zero: &[] },
            scratch: &mut self.scratch,
            outbox: &mut self.outbox,
        };
        let result = work(&mut cx);
        let sent = self.outbox.letters();
        self.mail.extend(sent.map(|letter| {
            let OutgoingLetter { to, vectors, bytes, .. } = letter;
            Mail { from: me, to, vectors, bytes: bytes.to_vec() }
        }));
        assert!(self.outbox.posted().is_none(), "these algorithms never post");
        result
    }
}

/// The path 0 - 1 - 2 with weights 1 and 3, where L_i(theta) = |theta - value_i|^2 / 2 in one dimension and c_i = 1.
///
/// Squared loss with x = 1/sqrt(2) and y = value / sqrt(2): (theta - value)^2 / 2.
pub fn means_on_a_path(values: [f64; 3], trade_off: f64) -> Problem {
    let mut data = Dataset::new(1);
    let x = std::f64::consts::FRAC_1_SQRT_2;
    values.iter().for_each(|value| data.push_agent(&[x], &[x * value]));
    Problem {
        data,
        graph: Graph::from_edges(3, &[(0, 1, 1.0), (1, 2, 3.0)]).expect("a graph"),
        loss: Loss::Squared,
        regularization: Regularization::Constant(0.0),
        trade_off,
        points_max: 1.0,
    }
}

/// A task for boosting: what `k` predictors say, mostly -1 and 1, on the graph of [`random_problem`].
pub fn boosting_problem(seed: u64, n: usize, k: usize) -> Problem {
    let problem = random_problem(seed, n, k, Loss::Logistic);
    let mut data = Dataset::new(k);
    for agent in everyone(&problem) {
        let points = problem.data.points(agent);
        let answers: Vec<f64> = points.features.iter().map(|x| if x.abs() < 0.1 { *x } else { x.signum() }).collect();
        data.push_agent(&answers, points.labels);
    }
    Problem { data, ..problem }
}

/// One agent's points, and the same with the record `k` replaced.
pub fn neighbours(coin: &mut Coin, records: usize, p: usize, extreme: bool) -> [(Vec<f64>, Vec<f64>); 2] {
    let draw = |coin: &mut Coin| {
        let size = if extreme { [1e-200, 1e-3, 1.0, 1e6, 1e70][coin.below(5)] } else { 1.0 };
        normals(coin, p).into_iter().map(|x| x * size).collect::<Vec<f64>>()
    };
    let label = |coin: &mut Coin| if coin.below(2) == 0 { 1.0 } else { -1.0 };
    let features: Vec<f64> = (0..records).flat_map(|_| draw(coin)).collect();
    let labels: Vec<f64> = (0..records).map(|_| label(coin)).collect();
    let k = coin.below(records);
    let (mut other_features, mut other_labels) = (features.clone(), labels.clone());
    let row = if coin.below(3) == 0 { features[k * p..][..p].iter().map(|x| -x).collect() } else { draw(coin) };
    other_features[k * p..][..p].copy_from_slice(&row);
    other_labels[k] = label(coin);
    [(features, labels), (other_features, other_labels)]
}

/// By how much the log-ratio of some bin exceeds epsilon, in standard errors, either way round.
pub fn excess(worlds: [&[f64]; 2], epsilon: f64, delta: f64) -> f64 {
    let mut all: Vec<f64> = worlds.concat();
    all.sort_by(f64::total_cmp);
    let edges: Vec<f64> = (1..20).map(|k| all[k * all.len() / 20]).collect();
    let counts = worlds.map(|world| {
        let mut counts = [0.0f64; 20];
        world.iter().for_each(|value| counts[edges.partition_point(|edge| edge <= value)] += 1.0);
        counts
    });
    let allowed = delta * worlds[0].len() as f64;
    let excess = |own: f64, other: f64| {
        let ratio = libm::log((own - allowed).max(1e-9) / other.max(0.5));
        (ratio - epsilon) / (1.0 / own.max(1.0) + 1.0 / other.max(0.5)).sqrt()
    };
    (0..20).flat_map(|k| [[0, 1], [1, 0]].map(|[a, b]| excess(counts[a][k], counts[b][k]))).fold(f64::MIN, f64::max)
}

/// A ring of three rounds without noise.
pub fn exact_ring(members: u32) -> Ring {
    let config = RingConfig {
        members,
        rounds: 3,
        range: None,
        unit: RingUnit::Record,
        goal: RingGoal::Mean,
        law: None,
        noise: RingNoise::One,
        reveal: Reveal::Broadcast,
        reissues: 1,
        timeout: 5.0,
    };
    Ring::new(config).expect("good parameters")
}

/// A walk of two tokens whose sums are exact.
pub fn exact_walk(members: u32, columns: u32) -> Walk<Sums> {
    let sums = SumsConfig { columns, range: None, unit: RingUnit::Record, goal: Goal::Mean, private: false };
    let (contributions, law, beyond, track, timeout) = (None, None, Beyond::Noise, Track::Token, Some(5.0));
    let config = WalkConfig { members, hops: 20, tokens: 2, contributions, law, beyond, track, timeout };
    Walk::new(config, Sums::new(sums, members).expect("good parameters")).expect("good parameters")
}
