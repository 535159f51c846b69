//! A peer among liars: what is wrong is refused and counted by its reason, and changes nothing; what is merely extreme panics nobody.

mod support;

use sottovoce_algorithms::joint::{Joint, LogDegree};
use sottovoce_algorithms::personal::{
    admm::{Admm, AdmmConfig, Inner},
    boosting::{self, Entries, FrankWolfe, FrankWolfeConfig, Packed, StepSize},
    descent::{self, CoordinateDescent, CoordinateDescentConfig, DescentByLetters, PrivateCoordinateDescent, Start},
    exchange::{ExchangeKind as Kind, ExchangeLetter},
    graph::{Alternating, GraphLearning, GraphLearningConfig, GraphLetter, Theta, Turns},
    propagation::{ModelPropagation, ModelPropagationConfig},
};
use sottovoce_algorithms::{Loss, Problem, Shard};
use sottovoce_core::wire::{NUMBER_MAX, Numbers};
use sottovoce_core::{Algorithm, Coin, Graph, PeerId, Time, Wire};
use sottovoce_net::frame::{Answer, Card, Evidence, Post, Question, Refusal, Refusals, Seen, Stamp};
use sottovoce_net::node::{Afterwards, Fault, LETTERS_MAX, Node, Rules, Woke};
use sottovoce_net::store::{Store, StoredStep};
use sottovoce_privacy::{Event, Plan, Sum};
use std::sync::Arc;
use support::CrashDisk;
use support::world::{group, name, owner, private_descent, problem, rules, stored};

/// The victim has the neighbours 0 and 2; agent 3 is there and no neighbour.
const VICTIM: usize = 1;
const NEIGHBOURS: [PeerId; 2] = [PeerId(0), PeerId(2)];
const EACH: usize = 1_000;

fn descent(problem: &Problem) -> CoordinateDescent {
    let (dimension, loss, trade_off) = (problem.dimension(), problem.loss, problem.trade_off);
    let config = CoordinateDescentConfig { dimension, loss, trade_off, start: Start::Local };
    CoordinateDescent::new(config).expect("good parameters")
}

fn admm(problem: &Problem) -> Admm {
    let config = AdmmConfig { trade_off: problem.trade_off, penalty: 0.5, inner: Inner::Exact };
    Admm::new(config).expect("good parameters")
}

fn propagation() -> ModelPropagation {
    ModelPropagation::new(ModelPropagationConfig { trade_off: 2.0 }).expect("good parameters")
}

fn private(problem: &Problem) -> (PrivateCoordinateDescent, Arc<Plan>) {
    let algorithm = private_descent(problem, None);
    let plan = Plan::new(vec![Event::Laplace { noise_multiplier: 10.0 }; 50], 10.0, 0.0, &Sum).expect("cheap");
    (algorithm, Arc::new(plan))
}

/// A kind and a stamp without a signature: what stands before a post's numbers or a letter.
const HEAD: usize = 34;

fn post(number: u64, values: &[f64]) -> Vec<u8> {
    Question::Post(Post { stamp: Stamp::numbered(number), values: Numbers::Plain(values) }).encode()
}

fn hello(of: usize, points: u64) -> Vec<u8> {
    Question::Hello(Card { name: &name(of), points, ..Card::default() }).encode()
}

/// A gossip letter in its frame.
fn letter(number: u64, kind: Kind, exchange: u64, vectors: u8, body: &[f64]) -> Vec<u8> {
    let mut bytes = Vec::new();
    ExchangeLetter { kind, vectors, number: exchange, body: Numbers::Plain(body) }.encode(&mut bytes);
    Question::Letter { stamp: Stamp::numbered(number), bytes: &bytes }.encode()
}

/// Any other letter in its frame.
fn frame<'a>(number: u64, letter: impl Wire<'a>) -> Vec<u8> {
    let mut bytes = Vec::new();
    letter.encode(&mut bytes);
    Question::Letter { stamp: Stamp::numbered(number), bytes: &bytes }.encode()
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| value.to_bits()).collect()
}

/// The model, what is known of each neighbour (number and values), counts, and the saved state.
type Print = (Vec<u64>, Vec<(u64, Option<Vec<u64>>)>, [u64; 4], Vec<u8>);

/// One peer that is awake, and what it must have refused so far.
struct Victim<'w, A: Algorithm> {
    node: Node<'w, A, CrashDisk>,
    disk: CrashDisk,
    expected: Refusals,
    /// Numbers that neighbours have used.
    used: u64,
    points: u64,
    coin: Coin,
}

impl<'w, A: for<'d> Algorithm<Data<'d> = Shard<'d>>> Victim<'w, A> {
    fn awake(algorithm: &'w A, problem: &'w Problem, rules: Rules) -> Self {
        let disk = CrashDisk::default();
        let (shard, group) = (problem.shard(PeerId(VICTIM as u32)), group(problem, VICTIM));
        let node = Node::open(algorithm, shard, group, rules, &owner(VICTIM), disk.clone()).expect("a new store");
        let mut victim = Victim { node, disk, expected: Refusals::new(), used: 0, points: 3, coin: Coin::new(3, 0, 0) };
        for peer in NEIGHBOURS {
            victim.welcomed(peer, Seen::default()).expect("a witness");
        }
        assert_eq!(victim.node.wake(Time(1.0)).expect("awake"), Woke::Acted);
        victim
    }

    fn welcomed(&mut self, peer: PeerId, seen: Seen) -> Result<(), Fault> {
        let card = Card { name: &name(peer.index()), points: 3, ..Card::default() };
        self.node.welcomed(peer, &Answer::Welcome { card, seen, post: None }.encode())
    }

    fn neighbour(&mut self) -> PeerId {
        NEIGHBOURS[self.coin.below(2)]
    }

    fn next_number(&mut self) -> u64 {
        self.used += 1;
        self.used
    }

    fn receive(&mut self, from: PeerId, frame: &[u8]) -> Vec<u8> {
        self.node.receive(Some(from), frame).expect("it lives")
    }

    /// Hands in a frame that must be refused for this reason.
    fn refuses(&mut self, from: Option<PeerId>, frame: &[u8], reason: Refusal) {
        let answer = self.node.receive(from, frame).expect("it lives");
        assert_eq!(Answer::decode(&answer), Ok(Answer::Refused(reason)), "{frame:?}");
        *self.expected.entry(reason).or_default() += 1;
    }

    fn takes(&mut self, from: PeerId, frame: &[u8]) {
        let answer = self.receive(from, frame);
        assert_eq!(Answer::decode(&answer), Ok(Answer::Taken), "{frame:?}");
    }

    /// Everything that may not change, to the bit. A neighbour's points are news, so that the agent's state is saved.
    fn print(&mut self) -> Print {
        self.points += 1;
        let frame = hello(0, self.points);
        self.receive(PeerId(0), &frame);
        self.node.save().expect("room on the disk");
        let step = stored(&self.disk, VICTIM, false).expect("a step");
        let node = &self.node;
        let known = node.neighbours().map(|other| (other.post, other.values.map(bits))).collect();
        let counts = [node.ledger().releases(), node.last_number(), node.post_number(), node.wakes()];
        (bits(node.model().expect("awake")), known, counts, step.state)
    }

    /// Does something hostile a thousand times: the counters are exact afterwards, and nothing has changed.
    fn endures(&mut self, what: &str, mut hostile: impl FnMut(&mut Self)) {
        let before = self.print();
        (0..EACH).for_each(|_| hostile(self));
        assert_eq!(self.node.counters().refusals, self.expected, "{what}");
        assert!(self.print() == before, "{what} changed something");
    }

    /// What every algorithm refuses.
    fn endures_what_is_wrong_for_all(&mut self) {
        self.endures("forged senders", |victim| {
            let nobody = [None, Some(PeerId(3)), Some(PeerId(VICTIM as u32)), Some(PeerId(77))];
            let from = nobody[victim.coin.below(4)];
            let number = victim.used + 1;
            let frame = match victim.coin.below(4) {
                0 => post(number, &[1.0, 2.0]),
                1 => letter(number, Kind::Request, 1, 1, &[1.0, 2.0]),
                2 => hello(0, 3),
                _ => Question::Who.encode(),
            };
            victim.refuses(from, &frame, Refusal::NotANeighbour);
        });
        self.endures("another's name", |victim| {
            let from = victim.neighbour();
            let other = [VICTIM, 3, 2 - from.index(), 99][victim.coin.below(4)];
            victim.refuses(Some(from), &hello(other, 3), Refusal::WrongName);
        });
        self.endures("malformed frames", |victim| {
            let from = victim.neighbour();
            let length = victim.coin.below(60);
            let mut frame: Vec<u8> = (0..length).map(|_| victim.coin.bits() as u8).collect();
            if let Some(first) = frame.first_mut() {
                *first = 5 + *first % 251;
            }
            victim.refuses(Some(from), &frame, Refusal::Malformed);
        });
        self.endures("truncated and lengthened frames", |victim| {
            let (from, number) = (victim.neighbour(), victim.used + 1);
            let whole = if victim.coin.below(2) == 0 { post(number, &[1.0, 2.0]) } else { hello(from.index(), 3) };
            let mut frame = whole.clone();
            match victim.coin.below(3) {
                // Not at a whole number.
                0 if whole[0] == 1 => frame.truncate(HEAD + 1 + 8 * victim.coin.below(2) + victim.coin.below(7)),
                0 | 1 => frame.truncate(victim.coin.below(9)),
                _ => frame.extend((0..1 + victim.coin.below(7)).map(|k| k as u8)),
            }
            victim.refuses(Some(from), &frame, Refusal::Malformed);
        });
        self.endures("questions that are not for an agent", |victim| {
            let from = victim.neighbour();
            victim.refuses(Some(from), &Question::Who.encode(), Refusal::Malformed);
        });
    }
}

/// A vector with one number that nobody may say.
fn poisoned(coin: &mut Coin, len: usize) -> Vec<f64> {
    let bad = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, NUMBER_MAX.next_up(), -1e76, f64::MAX, -f64::NAN];
    let mut values: Vec<f64> = (0..len).map(|_| coin.unit()).collect();
    values[coin.below(len)] = bad[coin.below(bad.len())];
    values
}

fn endures_bad_posts<A: for<'d> Algorithm<Data<'d> = Shard<'d>>>(mut victim: Victim<'_, A>) {
    let honest = |victim: &mut Victim<'_, A>| {
        for peer in NEIGHBOURS {
            let (number, value) = (victim.next_number(), victim.coin.unit());
            victim.takes(peer, &post(number, &[value, -value]));
        }
        victim.node.wake(Time(2.0)).expect("awake");
    };
    (0..5).for_each(|_| honest(&mut victim));
    victim.endures_what_is_wrong_for_all();
    victim.endures("replayed and overtaken posts", |victim| {
        let (from, back) = (victim.neighbour(), victim.coin.below(5) as u64);
        // The neighbours' numbers alternate: this is the last one of `from`, or an older one.
        let last = if from == PeerId(0) { victim.used - 1 } else { victim.used };
        victim.refuses(Some(from), &post(last - back.min(last), &[5.0, 5.0]), Refusal::OutOfTurn);
    });
    victim.endures("posts of another dimension", |victim| {
        let (from, number, length) = (victim.neighbour(), victim.used + 1, [0, 1, 3, 4, 1000][victim.coin.below(5)]);
        victim.refuses(Some(from), &post(number, &vec![1.0; length]), Refusal::WrongDimension);
    });
    victim.endures("numbers that are none, or too large", |victim| {
        let (from, number) = (victim.neighbour(), victim.used + 1);
        let values = poisoned(&mut victim.coin, 2);
        victim.refuses(Some(from), &post(number, &values), Refusal::NotFinite);
    });
    victim.endures("letters where there are none", |victim| {
        let (from, number) = (victim.neighbour(), victim.used + 1);
        let frame = letter(number, Kind::Request, 1, 1, &[1.0, 2.0]);
        victim.refuses(Some(from), &frame, Refusal::Malformed);
    });
    honest(&mut victim);
}

#[test]
fn wrong_posts_are_refused_by_reason_and_change_nothing() {
    let problem = problem(Loss::Logistic);
    let algorithm = descent(&problem);
    endures_bad_posts(Victim::awake(&algorithm, &problem, rules(None)));
    let (algorithm, plan) = private(&problem);
    endures_bad_posts(Victim::awake(&algorithm, &problem, rules(Some(plan))));
}

/// What model propagation and ADMM refuse alike.
fn endures_bad_letters<A: for<'d> Algorithm<Data<'d> = Shard<'d>>>(victim: &mut Victim<'_, A>) {
    victim.endures_what_is_wrong_for_all();
    victim.endures("posts where there are none", |victim| {
        let (from, number, length) = (victim.neighbour(), victim.used + 1, victim.coin.below(3));
        victim.refuses(Some(from), &post(number, &vec![1.0; length]), Refusal::WrongDimension);
    });
    victim.endures("letters again", |victim| {
        let from = victim.neighbour();
        let last = if from == PeerId(0) { victim.used - 1 } else { victim.used };
        let old = last - (victim.coin.below(4) as u64).min(last);
        victim.refuses(Some(from), &letter(old, Kind::Request, 1, 1, &[5.0, 5.0]), Refusal::OutOfTurn);
    });
    victim.endures("letters of another dimension", |victim| {
        let (from, number) = (victim.neighbour(), victim.next_number());
        let (vectors, length) = [(1, 1), (1, 3), (2, 2), (2, 6), (4, 4), (1, 0)][victim.coin.below(6)];
        let body = vec![1.0; length];
        victim.refuses(Some(from), &letter(number, Kind::Request, 9, vectors, &body), Refusal::WrongDimension);
    });
    victim.endures("letters with numbers that are none", |victim| {
        let (from, number, vectors) = (victim.neighbour(), victim.next_number(), 1 + victim.coin.below(2));
        let values = poisoned(&mut victim.coin, 2 * vectors);
        let frame = letter(number, Kind::Request, vectors as u64 - 1, vectors as u8, &values);
        victim.refuses(Some(from), &frame, Refusal::NotFinite);
    });
    victim.endures("letters that are none", |victim| {
        let (from, number) = (victim.neighbour(), victim.next_number());
        let mut frame = letter(number, Kind::Request, 1, 1, &[1.0, 2.0]);
        match victim.coin.below(3) {
            0 => frame.truncate(HEAD + victim.coin.below(10)),
            1 => frame[HEAD] = 3 + victim.coin.below(250) as u8,
            _ => frame[HEAD + 1] = 0,
        }
        victim.refuses(Some(from), &frame, Refusal::Malformed);
    });
}

#[test]
fn wrong_letters_of_model_propagation_are_refused_by_reason_and_change_nothing() {
    let problem = problem(Loss::Logistic);
    let algorithm = propagation();
    let mut victim = Victim::awake(&algorithm, &problem, rules(None));
    let honest = |victim: &mut Victim<'_, _>, version: u64| {
        for peer in NEIGHBOURS {
            let (number, value) = (victim.next_number(), victim.coin.unit());
            victim.takes(peer, &letter(number, Kind::Reply, version, 1, &[value, -value]));
        }
    };
    (0..7).for_each(|version| honest(&mut victim, version));
    endures_bad_letters(&mut victim);
    victim.endures("old versions under new numbers", |victim| {
        let (from, number, version) = (victim.neighbour(), victim.next_number(), victim.coin.below(6) as u64);
        victim.refuses(Some(from), &letter(number, Kind::Request, version, 1, &[5.0, 5.0]), Refusal::OutOfTurn);
    });
    honest(&mut victim, 7);
}

#[test]
fn wrong_letters_of_admm_are_refused_by_reason_and_change_nothing() {
    let problem = problem(Loss::Squared);
    let algorithm = admm(&problem);
    let mut victim = Victim::awake(&algorithm, &problem, rules(None));
    for peer in NEIGHBOURS {
        let number = victim.next_number();
        victim.takes(peer, &letter(number, Kind::Hello, 0, 1, &[0.5, 0.5]));
    }
    for exchange in 1..4 {
        for peer in NEIGHBOURS {
            let number = victim.next_number();
            victim.takes(peer, &letter(number, Kind::Request, exchange, 2, &[0.5, 0.5, 0.1, 0.1]));
        }
    }
    endures_bad_letters(&mut victim);
    victim.endures("letters out of turn", |victim| {
        let (from, number) = (victim.neighbour(), victim.next_number());
        let two = [5.0; 4];
        let frame = match victim.coin.below(5) {
            0 => letter(number, Kind::Request, 5 + victim.coin.bits() % 1000, 2, &two),
            1 => letter(number, Kind::Request, 1 + victim.coin.below(2) as u64, 2, &two),
            2 => letter(number, Kind::Reply, victim.coin.below(9) as u64 + 1, 2, &two),
            3 => letter(number, Kind::Hello, victim.coin.below(2) as u64, 1, &two[..2]),
            _ => letter(number, Kind::Request, u64::MAX, 2, &two),
        };
        // A greeting with a number is no greeting, and has the wrong length for anything else.
        let reason = match Question::decode(&frame) {
            Ok(Question::Letter { bytes: [0, _, 1, ..], .. }) => Refusal::WrongDimension,
            _ => Refusal::OutOfTurn,
        };
        victim.refuses(Some(from), &frame, reason);
    });
    for peer in NEIGHBOURS {
        let number = victim.next_number();
        victim.takes(peer, &letter(number, Kind::Request, 4, 2, &[0.5, 0.5, 0.1, 0.1]));
    }
}

/// A limit: whoever claims to have seen more stops a peer. It fails closed, because the claim may be true.
#[test]
fn a_witness_that_lies_about_what_it_saw_stops_a_peer_and_no_more() {
    let problem = problem(Loss::Logistic);
    let (algorithm, plan) = private(&problem);
    for awake in [false, true] {
        let mut victim = Victim::awake(&algorithm, &problem, rules(Some(plan.clone())));
        let charges = victim.node.ledger().releases();
        if !awake {
            let (shard, group) = (problem.shard(PeerId(1)), group(&problem, VICTIM));
            let (rules, disk) = (rules(Some(plan.clone())), victim.disk.clone());
            victim.node = Node::open(&algorithm, shard, group, rules, &owner(VICTIM), disk).expect("it is back");
        }
        let told = victim.welcomed(
            PeerId(2),
            Seen { post: Evidence { number: u64::MAX, ..Evidence::default() }, ..Seen::default() },
        );
        assert!(matches!(told, Err(Fault::RolledBack { seen: u64::MAX, .. })));
        assert!(matches!(victim.node.wake(Time(9.0)), Err(Fault::Failed)));
        assert!(matches!(victim.node.receive(Some(PeerId(0)), &post(9, &[1.0, 1.0])), Err(Fault::Failed)));
        assert_eq!(victim.node.ledger().releases(), charges, "nothing more is charged");
    }
}

/// |theta_i' - theta_i''| = alpha W_ij / D_ii |theta_j - theta_i|, and the last factor is at most the limit.
#[test]
fn a_pull_limit_bounds_how_far_one_post_moves_a_model() {
    let problem = problem(Loss::Logistic);
    let algorithm = descent(&problem);
    let share = 1.0 / problem.graph.peers(PeerId(1)).weighted_degree();
    for limit in [1e-3, 0.5, 10.0] {
        let after = |values: Option<&[f64]>, limit: Option<f64>| {
            let mut victim = Victim::awake(&algorithm, &problem, Rules { pull_limit: limit, ..rules(None) });
            let own = victim.node.model().expect("a model").to_vec();
            victim.takes(PeerId(0), &post(1, values.unwrap_or(&own)));
            victim.node.wake(Time(2.0)).expect("awake");
            victim.node.model().expect("a model").to_vec()
        };
        let calm = after(None, Some(limit));
        let moved = |model: &[f64]| {
            let squares = model.iter().zip(&calm).map(|(a, b)| (a - b) * (a - b));
            squares.sum::<f64>().sqrt()
        };
        for hostile in [[1e74, 0.0], [-1e74, 1e74], [0.0, -NUMBER_MAX]] {
            let far = moved(&after(Some(&hostile), Some(limit)));
            assert!(far <= limit * share * (1.0 + 1e-9) && far > 0.1 * limit * share, "{far} with a limit of {limit}");
            assert!(moved(&after(Some(&hostile), None)) > 1e72, "without a limit it has its way");
        }
    }
}

/// The last version of a model has no successor: a step to it is refused before it moves anything.
#[test]
fn a_step_beyond_the_last_version_moves_nothing() {
    let problem = problem(Loss::Logistic);
    let config = FrankWolfeConfig {
        predictors: 2,
        trade_off: 1.0,
        radius: 2.0,
        step_size: StepSize::Descent,
        gap_min: 0.0,
        local_rounds: 0,
    };
    let algorithm = FrankWolfe::new(config).expect("good parameters");
    let mut victim = Victim::awake(&algorithm, &problem, rules(None));
    for peer in NEIGHBOURS {
        let entries = Entries::Dense(&[1.0, 0.5]);
        let (number, version) = (victim.next_number(), u32::MAX - 1);
        victim.takes(peer, &frame(number, boosting::BoostingLetter::Model { version, entries }));
    }
    victim.endures("steps beyond the last version", |victim| {
        let (from, number) = (victim.neighbour(), victim.next_number());
        let step = Packed::new(boosting::SparseStep { index: 1, positive: true, size: 0.5 }, 2);
        let letter = boosting::BoostingLetter::Step { version: u32::MAX, step };
        victim.refuses(Some(from), &frame(number, letter), Refusal::Malformed);
    });
}

/// The usual four, none of whom is anybody's neighbour yet, and the turn of the graph for ever.
fn strangers() -> (Problem, Alternating<DescentByLetters, LogDegree>) {
    let problem = Problem { graph: Graph::complete(4).expect("four"), ..problem(Loss::Logistic) };
    let regularizer = LogDegree { sparsity: 0.1, offset: LogDegree::OFFSET };
    let joint = Joint { trade_off: problem.trade_off, strength: 1.0, regularizer };
    let graph = GraphLearning::new(GraphLearningConfig { joint, sample: 2 }).expect("good parameters");
    let learner = DescentByLetters::new(problem.loss, problem.trade_off).expect("good parameters");
    let turns = Turns { graph_first: 1e9, models: 1.0, graph: 1.0 };
    (problem, Alternating::new(learner, graph, turns).expect("good turns"))
}

fn answer(round: u64, cost: f64, weight: f64, model: &[f64]) -> GraphLetter<'_> {
    GraphLetter::Answer { round, as_of: 0, cost, degree: 1.0, weight, model: Theta::Dense(Numbers::Plain(model)) }
}

/// The victim keeps its pairs with 0 and 3; its pair with 2 is kept by 2.
#[test]
fn wrong_letters_about_a_learned_graph_are_refused_by_reason_and_change_nothing() {
    let (problem, algorithm) = strangers();
    let mut victim = Victim::awake(&algorithm, &problem, rules(None));
    let number = victim.next_number();
    victim.takes(PeerId(0), &frame(number, GraphLetter::Propose { as_of: 0, weight: 0.5 }));
    let number = victim.next_number();
    victim.takes(PeerId(2), &frame(number, GraphLetter::Settle { as_of: 5, weight: 0.25 }));
    victim.endures("letters that are none", |victim| {
        let (from, number) = (victim.neighbour(), victim.next_number());
        let mut bytes = frame(number, answer(1, 0.5, 0.5, &[0.5, 0.5]));
        match victim.coin.below(3) {
            0 => bytes.truncate(HEAD + 1 + victim.coin.below(40)),
            1 => bytes[HEAD] = 22 + victim.coin.below(200) as u8,
            _ => bytes.push(0),
        }
        victim.refuses(Some(from), &bytes, Refusal::Malformed);
    });
    victim.endures("letters of the wrong end of a pair, and weights below zero", |victim| {
        let (number, weight) = (victim.next_number(), victim.coin.unit());
        let (from, letter) = match victim.coin.below(4) {
            0 => (PeerId(2), GraphLetter::Propose { as_of: 0, weight }),
            1 => (PeerId(2), GraphLetter::Check { weight }),
            2 => (PeerId(0), GraphLetter::Settle { as_of: 9, weight }),
            _ => (PeerId(0), GraphLetter::Propose { as_of: 1, weight: -weight - 1e-9 }),
        };
        victim.refuses(Some(from), &frame(number, letter), Refusal::Malformed);
    });
    victim.endures("answers of another dimension", |victim| {
        let (from, number) = (victim.neighbour(), victim.next_number());
        let model = vec![1.0; [0, 1, 3, 1000][victim.coin.below(4)]];
        // A letter that is longer than any of this task is not read.
        let reason = if model.len() > 3 { Refusal::Malformed } else { Refusal::WrongDimension };
        victim.refuses(Some(from), &frame(number, answer(1, 0.5, 0.5, &model)), reason);
    });
    victim.endures("numbers that are none, too large, or next to nothing", |victim| {
        let (from, number) = (victim.neighbour(), victim.next_number());
        let poison = poisoned(&mut victim.coin, 1)[0];
        let (fine, bad) = ([0.5, 0.5], [0.5, poison]);
        let letter = match victim.coin.below(4) {
            0 => answer(1, poison, 0.5, &fine),
            1 => answer(1, 0.5, poison.abs(), &fine),
            2 => answer(1, 0.5, 0.5, &bad),
            _ => answer(1, 0.5, f64::MIN_POSITIVE, &fine),
        };
        victim.refuses(Some(from), &frame(number, letter), Refusal::NotFinite);
    });
    victim.endures("letters out of turn", |victim| {
        let number = victim.next_number();
        let ahead = 2 + victim.coin.bits() % 1000;
        let (from, letter) = match victim.coin.below(4) {
            0 => (victim.neighbour(), answer(ahead, 0.5, 0.5, &[0.5, 0.5])),
            1 => (PeerId(0), GraphLetter::Propose { as_of: ahead, weight: 0.9 }),
            2 => (PeerId(0), GraphLetter::Propose { as_of: 0, weight: 0.9 }),
            _ => (PeerId(2), GraphLetter::Settle { as_of: victim.coin.below(5) as u64, weight: 0.9 }),
        };
        victim.refuses(Some(from), &frame(number, letter), Refusal::OutOfTurn);
    });
    victim.endures("models of a member that is no neighbour", |victim| {
        let number = victim.next_number();
        let letter = descent::ModelLetter::Model { version: 1, model: Numbers::Plain(&[1.0, 1.0]) };
        victim.refuses(Some(PeerId(3)), &frame(number, letter), Refusal::NotANeighbour);
    });
}

/// Members that link, unlink and ask without end: the state holds one weight and one copy for each, the queue its bound.
#[test]
fn members_cannot_make_a_peer_store_more_than_a_weight_and_a_model_for_each() {
    let (problem, algorithm) = strangers();
    let mut victim = Victim::awake(&algorithm, &problem, rules(None));
    let (mut full, mut letters) = (0, 0);
    for round in 0..3 * EACH as u64 {
        let from = [PeerId(0), PeerId(2), PeerId(3)][victim.coin.below(3)];
        let weight = if round % 7 == 6 { 0.0 } else { victim.coin.unit() + 0.1 };
        let letter = match from {
            PeerId(2) => GraphLetter::Settle { as_of: round, weight },
            _ => GraphLetter::Propose { as_of: letters, weight },
        };
        let number = victim.next_number();
        let taken = victim.receive(from, &frame(number, letter));
        letters += u64::from(from != PeerId(2) && Answer::decode(&taken) == Ok(Answer::Taken));
        let number = victim.next_number();
        victim.takes(from, &frame(number, GraphLetter::Ask { round }));
        if round == 100 {
            full = victim.print().3.len();
        }
    }
    let state = victim.print().3.len();
    // Counts grow by some digits.
    assert!(letters > EACH as u64 && state <= full + 64, "{full} -> {state} bytes after {letters} changes");
    for peer in [PeerId(0), PeerId(2), PeerId(3)] {
        let mut waiting = 0;
        while let Some(out) = victim.node.outgoing(peer) {
            victim.node.answered(peer, out.number, &Answer::Taken.encode());
            waiting += 1;
        }
        assert_eq!(waiting, LETTERS_MAX, "{peer:?} has asked for more than wait");
    }
}

/// Answers that come late are refused all the time. Whoever paused after each would be late with its next, and learn nothing in the end.
#[test]
fn a_refused_letter_that_may_be_lost_holds_nothing_up() {
    let (problem, algorithm) = strangers();
    let mut victim = Victim::awake(&algorithm, &problem, rules(None));
    let number = victim.next_number();
    victim.takes(PeerId(0), &frame(number, GraphLetter::Ask { round: 1 }));
    let number = victim.next_number();
    victim.takes(PeerId(0), &frame(number, GraphLetter::Ask { round: 2 }));
    for _ in 0..2 {
        let out = victim.node.outgoing(PeerId(0)).expect("an answer");
        let refused = Answer::Refused(Refusal::OutOfTurn).encode();
        assert_eq!(victim.node.answered(PeerId(0), out.number, &refused), Afterwards::Next);
        assert_ne!(victim.node.outgoing(PeerId(0)).map(|next| next.number), Some(out.number), "it is gone");
    }
    assert_eq!(victim.node.counters().letters_lost, 2);
}

/// A damaged file with fitting digests: numbers beyond what any peer can have said would make a model that is not finite.
#[test]
fn numbers_that_nobody_can_have_said_are_not_believed_from_a_store_either() {
    let problem = problem(Loss::Squared);
    let algorithm = descent(&problem);
    let reopened = |change: &dyn Fn(&mut StoredStep)| {
        let mut victim = Victim::awake(&algorithm, &problem, rules(None));
        victim.takes(PeerId(0), &post(1, &[0.5, 0.5]));
        victim.node.save().expect("room on the disk");
        let mut step = stored(&victim.disk, VICTIM, false).expect("a step");
        change(&mut step);
        let disk = CrashDisk::default();
        let (mut store, _) = Store::open(disk.clone(), &owner(VICTIM)).expect("a new store");
        store.commit(&step).expect("room on the disk");
        let (shard, group) = (problem.shard(PeerId(VICTIM as u32)), group(&problem, VICTIM));
        Node::open(&algorithm, shard, group, rules(None), &owner(VICTIM), disk)
    };
    let own = reopened(&|step| step.post.iter_mut().for_each(|post| post.values[0] = 1e300));
    assert!(matches!(own, Err(Fault::State(_))));
    let heard = reopened(&|step| {
        step.heard.values_mut().filter_map(|heard| heard.post.as_mut()).for_each(|(_, values)| values[0] = 1e300);
    });
    let node = heard.expect("its own post is fine");
    assert!(node.neighbours().all(|neighbour| neighbour.values.is_none()), "it was not heard");
}
