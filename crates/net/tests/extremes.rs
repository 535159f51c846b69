//! Numbers that are allowed and absurd, from all neighbours at once, over many wakes: no algorithm panics, every model stays finite,
//! and the peer can come back from its store.

mod support;

use sottovoce_algorithms::joint::{DegreeTarget, Joint, LogDegree, Regularizer};
use sottovoce_algorithms::personal::{
    admm::{Admm, AdmmConfig, Inner},
    boosting::{self, Entries, FrankWolfe, FrankWolfeConfig, Packed, SparseStep, StepSize},
    descent::{
        self, CoordinateDescent, CoordinateDescentConfig, DescentByLetters, PrivateCoordinateDescent,
        PrivateCoordinateDescentConfig, Start,
    },
    exchange::{ExchangeKind as Kind, ExchangeLetter},
    graph::{Alternating, GraphLearning, GraphLearningConfig, GraphLetter, Placed, Theta, Turns},
    propagation::{ModelPropagation, ModelPropagationConfig},
};
use sottovoce_algorithms::{Loss, Problem};
use sottovoce_core::wire::{NUMBER_MAX, Numbers};
use sottovoce_core::{Algorithm, Coin, PeerId, Time, Wire};
use sottovoce_net::frame::{Answer, Card, Post, Question, Seen, Stamp};
use sottovoce_net::group::Group;
use sottovoce_net::node::{Node, Rules};
use sottovoce_privacy::sensitivity::Norm;
use sottovoce_privacy::{Event, Plan, Sum};
use std::sync::Arc;
use support::CrashDisk;
use support::world::{group, name, owner, problem, rules};

const ME: usize = 0;
const WAKES: u64 = 400;
const RADIUS: f64 = 2.0;

fn extreme(coin: &mut Coin) -> f64 {
    let sizes = [NUMBER_MAX, 1e74, 1e38, 1.0, 1e-9, 1e-300, 5e-324, 0.0];
    let size = sizes[coin.below(sizes.len())];
    if coin.below(2) == 0 { size } else { -size }
}

fn vector(coin: &mut Coin, len: usize) -> Vec<f64> {
    // Often all the same, so that sums grow in one direction.
    let one = extreme(coin);
    let mixed = coin.below(2) == 0;
    (0..len).map(|_| if mixed { extreme(coin) } else { one }).collect()
}

fn bytes_of<'l>(letter: impl Wire<'l>) -> Vec<u8> {
    let mut bytes = Vec::new();
    letter.encode(&mut bytes);
    bytes
}

/// What a hostile neighbour says next, given the last letter that it got.
type Liar = fn(&mut Coin, Option<&[u8]>) -> Vec<u8>;

/// For algorithms without letters.
fn silent(_: &mut Coin, _: Option<&[u8]>) -> Vec<u8> {
    Vec::new()
}

/// Model propagation and ADMM: answers in turn, or asks in turn, or says anything.
fn gossip(coin: &mut Coin, got: Option<&[u8]>) -> Vec<u8> {
    let heard = got.and_then(|bytes| ExchangeLetter::decode(bytes).ok());
    let (kind, number, vectors) = match heard {
        Some(ExchangeLetter { kind: Kind::Request, number, vectors, .. }) if coin.below(4) > 0 => {
            (Kind::Reply, number, vectors)
        }
        Some(ExchangeLetter { number, .. }) if coin.below(3) > 0 => (Kind::Request, number + 1, 2),
        _ => {
            let kind = [Kind::Hello, Kind::Request, Kind::Reply][coin.below(3)];
            (kind, coin.below(4) as u64, 1 + coin.below(2) as u8)
        }
    };
    bytes_of(ExchangeLetter { kind, vectors, number, body: Numbers::Plain(&vector(coin, 2 * usize::from(vectors))) })
}

/// A model that grows into the ball, then steps that fill it.
fn boosting(coin: &mut Coin, got: Option<&[u8]>) -> Vec<u8> {
    use boosting::BoostingLetter;
    let version = [0, 1, 2, 3, u32::MAX, u32::MAX - 1, coin.bits() as u32][coin.below(7)];
    let asked = got.is_some_and(|bytes| matches!(BoostingLetter::decode(bytes), Ok(BoostingLetter::Ask { .. })));
    match coin.below(3) {
        0 => bytes_of(BoostingLetter::Ask { heard: version }),
        1 if !asked => {
            let size = [1.0, 0.5, f32::MIN_POSITIVE, 1e-38, 1e-17, f32::from_bits(1)][coin.below(6)];
            let step = SparseStep { index: coin.below(2) as u32, positive: coin.below(2) == 0, size };
            bytes_of(BoostingLetter::Step { version, step: Packed::new(step, 2) })
        }
        _ => {
            let values = [[RADIUS, 0.0], [-RADIUS, 5e-324], [1e75, 1.0], [0.0, 0.0], [1e-300, -1.0]][coin.below(5)];
            bytes_of(BoostingLetter::Model { version, entries: Entries::Dense(&values) })
        }
    }
}

fn about_the_graph(coin: &mut Coin, got: Option<&[u8]>) -> Vec<u8> {
    let heard = got.and_then(|bytes| GraphLetter::decode(bytes).ok());
    let weight = extreme(coin).abs();
    let as_of = [0, 1, coin.below(40) as u64, coin.bits(), u64::MAX][coin.below(5)];
    match heard {
        Some(GraphLetter::Ask { round }) if coin.below(5) > 0 => {
            let (cost, degree, model) = (extreme(coin), extreme(coin).abs(), vector(coin, 2));
            bytes_of(GraphLetter::Answer {
                round,
                as_of,
                cost,
                degree,
                weight,
                model: Theta::Dense(Numbers::Plain(&model)),
            })
        }
        Some(GraphLetter::Settle { as_of, .. }) if coin.below(2) > 0 => {
            bytes_of(GraphLetter::Propose { as_of, weight })
        }
        _ => match coin.below(4) {
            0 => bytes_of(GraphLetter::Propose { as_of, weight }),
            1 => bytes_of(GraphLetter::Settle { as_of, weight }),
            2 => bytes_of(GraphLetter::Check { weight }),
            _ => bytes_of(GraphLetter::Ask { round: as_of }),
        },
    }
}

fn descent_and_graph(coin: &mut Coin, got: Option<&[u8]>) -> Vec<u8> {
    use descent::ModelLetter;
    match coin.below(3) {
        0 => {
            let (version, model) = (coin.below(1000) as u64, vector(coin, 2));
            bytes_of(ModelLetter::Model { version, model: Numbers::Plain(&model) })
        }
        _ => about_the_graph(coin, got),
    }
}

fn boosting_and_graph(coin: &mut Coin, got: Option<&[u8]>) -> Vec<u8> {
    if coin.below(2) == 0 { boosting(coin, got) } else { about_the_graph(coin, got) }
}

/// One peer, and neighbours that say nothing but extremes. Returns how many frames were taken.
fn survives<'w, A: Algorithm>(
    (what, seed): (&str, u64),
    algorithm: &'w A,
    data: A::Data<'w>,
    (group, rules): (Group, Rules),
    liar: Liar,
) -> u64 {
    let disk = CrashDisk::default();
    let neighbours: Vec<PeerId> = (0..4).map(PeerId).filter(|peer| peer.index() != ME).collect();
    let open = |what: &str| {
        let mut node = Node::open(algorithm, data, group.clone(), rules.clone(), &owner(ME), disk.clone())
            .unwrap_or_else(|fault| panic!("{what}: {fault}"));
        for &peer in &neighbours {
            let card = Card { name: &name(peer.index()), points: u64::MAX, ..Card::default() };
            let welcome = Answer::Welcome { card, seen: Seen::default(), post: None };
            node.welcomed(peer, &welcome.encode()).expect("a witness");
        }
        node
    };
    let (mut node, mut coin) = (open(what), Coin::new(seed, 0, 0));
    let (mut taken, mut number) = (0, 0);
    for wake in 1..=WAKES {
        node.wake(Time(wake as f64)).unwrap_or_else(|fault| panic!("{what}, wake {wake}: {fault}"));
        let model = node.model().expect("awake");
        assert!(model.iter().all(|value| value.is_finite()), "{what}, wake {wake}: {model:?}");
        for &peer in &neighbours {
            for _ in 0..3 {
                let mut got = None;
                while let Some(out) = node.outgoing(peer) {
                    node.answered(peer, out.number, &Answer::Taken.encode());
                    if let Ok(Question::Letter { bytes, .. }) = Question::decode(&out.frame) {
                        got = Some(bytes.to_vec());
                    }
                }
                number += 1;
                let said = liar(&mut coin, got.as_deref());
                let frame = if algorithm.post_len() > 0 {
                    let values = vector(&mut coin, algorithm.post_len());
                    Question::Post(Post { stamp: Stamp::numbered(number), values: Numbers::Plain(&values) }).encode()
                } else {
                    Question::Letter { stamp: Stamp::numbered(number), bytes: &said }.encode()
                };
                let answer = node.receive(Some(peer), &frame).unwrap_or_else(|fault| panic!("{what}: {fault}"));
                taken += u64::from(Answer::decode(&answer) == Ok(Answer::Taken));
            }
        }
        if wake % 50 == 0 {
            // Dies, and comes back from what it saved.
            node.save().expect("room on the disk");
            drop(node);
            node = open(what);
        }
    }
    assert!(taken > 100, "{what}: only {taken} frames were taken");
    taken
}

/// Agent 0 of the usual problem has all others as neighbours.
fn listed(problem: &Problem) -> (Group, Rules) {
    (group(problem, ME), rules(None))
}

fn complete(problem: &Problem) -> (Group, Rules) {
    (Group { neighbours: None, ..group(problem, ME) }, rules(None))
}

const SMOOTH: [Loss; 3] = [Loss::Logistic, Loss::Squared, Loss::SmoothedHinge];

#[test]
fn coordinate_descent_survives_extremes() {
    for loss in SMOOTH {
        let problem = problem(loss);
        let shard = problem.shard(PeerId(ME as u32));
        for start in [Start::Zero, Start::Local] {
            let config = CoordinateDescentConfig { dimension: 2, loss, trade_off: problem.trade_off, start };
            let algorithm = CoordinateDescent::new(config).expect("good parameters");
            let (group, rules) = listed(&problem);
            for pull_limit in [None, Some(1.0), Some(1e-300)] {
                let rules = Rules { pull_limit, ..rules.clone() };
                survives((&format!("{loss:?} {start:?}"), 1), &algorithm, shard, (group.clone(), rules), silent);
            }
        }
        let algorithm = PrivateCoordinateDescent::new(PrivateCoordinateDescentConfig {
            dimension: 2,
            loss,
            trade_off: problem.trade_off,
            clip: 1.0,
            norm: Norm::L1,
            feature_bound: 2.0,
            l1_features: false,
            warm: None,
        });
        let algorithm = algorithm.expect("good parameters");
        let steps = vec![Event::Laplace { noise_multiplier: 100.0 }; 300];
        let plan = Arc::new(Plan::new(steps, 10.0, 0.0, &Sum).expect("cheap"));
        for seed in 0..3 {
            let set = (group(&problem, ME), rules(Some(plan.clone())));
            survives((&format!("private, {loss:?}"), seed), &algorithm, shard, set, silent);
        }
    }
}

#[test]
fn gossip_survives_extremes() {
    for loss in [Loss::Logistic, Loss::Squared, Loss::SmoothedHinge, Loss::Hinge] {
        let problem = problem(loss);
        let shard = problem.shard(PeerId(ME as u32));
        for inner in [Inner::Exact, Inner::Gradient { steps: 3 }] {
            let config = AdmmConfig { trade_off: problem.trade_off, penalty: 0.5, inner };
            let algorithm = Admm::new(config).expect("good parameters");
            survives((&format!("ADMM, {loss:?}, {inner:?}"), 2), &algorithm, shard, listed(&problem), gossip);
        }
        let algorithm = ModelPropagation::new(ModelPropagationConfig { trade_off: 2.0 }).expect("good parameters");
        survives((&format!("propagation, {loss:?}"), 3), &algorithm, shard, listed(&problem), gossip);
    }
}

fn booster(problem: &Problem, step_size: StepSize) -> FrankWolfe {
    let trade_off = problem.trade_off;
    let config =
        FrankWolfeConfig { predictors: 2, trade_off, radius: RADIUS, step_size, gap_min: 0.0, local_rounds: 5 };
    FrankWolfe::new(config).expect("good parameters")
}

const STEP_SIZES: [StepSize; 3] = [StepSize::GlobalClock, StepSize::LocalClock, StepSize::Descent];

#[test]
fn boosting_survives_extremes() {
    let problem = problem(Loss::Logistic);
    let shard = problem.shard(PeerId(ME as u32));
    for (seed, step_size) in (0..).zip(STEP_SIZES) {
        let algorithm = booster(&problem, step_size);
        survives((&format!("boosting, {step_size:?}"), seed), &algorithm, shard, listed(&problem), boosting);
    }
}

fn learned<R: Regularizer>(what: &str, regularizer: impl Fn() -> R) {
    let turns = Turns { graph_first: 5.0, models: 3.0, graph: 3.0 };
    let graph = || {
        let joint = Joint { trade_off: 2.0, strength: 1.0, regularizer: regularizer() };
        GraphLearning::new(GraphLearningConfig { joint, sample: 2 }).expect("good parameters")
    };
    for (seed, loss) in (0..).zip(SMOOTH) {
        let problem = problem(loss);
        let shard = problem.shard(PeerId(ME as u32));
        let learner = DescentByLetters::new(loss, problem.trade_off).expect("good parameters");
        let algorithm = Alternating::new(learner, graph(), turns).expect("good turns");
        let name = format!("{what}, descent, {loss:?}");
        survives((&name, seed), &algorithm, shard, complete(&problem), descent_and_graph);
        for step_size in STEP_SIZES {
            let algorithm = Alternating::new(booster(&problem, step_size), graph(), turns).expect("good turns");
            let name = format!("{what}, boosting, {step_size:?}");
            survives((&name, seed), &algorithm, shard, complete(&problem), boosting_and_graph);
        }
        let (algorithm, placed) = (graph(), Placed { model: &[0.5, -0.5], cost: -1.0 });
        survives((what, seed), &algorithm, placed, complete(&problem), about_the_graph);
    }
}

#[test]
fn a_learned_graph_survives_extremes() {
    learned("log degree", || LogDegree { sparsity: 0.1, offset: LogDegree::OFFSET });
    learned("degree target", || DegreeTarget { sparsity: 0.1, target: 2.0 });
}
