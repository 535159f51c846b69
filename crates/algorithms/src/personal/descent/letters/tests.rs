//! Private descent by letters as one agent runs it: its losses, its turns, and what leaves it.

use super::super::disclosure::mean_centred_loss;
use super::super::{
    DescentByLetters, ModelLetter, PrivateCoordinateDescent, PrivateCoordinateDescentConfig, PrivateDescentByLetters,
    PrivateDescentByLettersConfig, WarmStart,
};
use crate::joint::{Joint, LogDegree};
use crate::personal::graph::{Alternating, GraphLearning, GraphLearningConfig, GraphLetter, Learner, Turn, Turns};
use crate::testing::{SMOOTH, excess, neighbours, normals, random_problem};
use crate::vector::largest_difference;
use crate::{Loss, Points, Shard};
use proptest::prelude::*;
use sottovoce_core::{Algorithm, Coin, Cx, Outbox, PeerId, Peers, Posts, Role, Rows, Time, Wire, wire::Numbers};
use sottovoce_privacy::sensitivity::Norm;
use sottovoce_privacy::{Event, Gate, Idealized, Plan, Secrets, Sum, Tight, calibrate};
use std::sync::Arc;

type State = <PrivateDescentByLetters as Learner>::State;

const BOUND: f64 = 1.4;
const TURNS: Turns = Turns { graph_first: 3.0, models: 2.0, graph: 2.0 };

fn descent(p: usize, loss: Loss, warm: Option<WarmStart>) -> PrivateCoordinateDescent {
    let config = PrivateCoordinateDescentConfig {
        dimension: p,
        loss,
        trade_off: 1.0,
        clip: 0.7,
        norm: Norm::L2,
        feature_bound: 10.0,
        l1_features: false,
        warm,
    };
    PrivateCoordinateDescent::new(config).expect("good parameters")
}

fn learner(p: usize, loss: Loss, updates: u64, model_turns: u64) -> PrivateDescentByLetters {
    let config = PrivateDescentByLettersConfig { loss_bound: Some(BOUND), updates, model_turns };
    PrivateDescentByLetters::new(descent(p, loss, None), config).expect("good parameters")
}

fn gaussian(noise_multiplier: f64) -> Event {
    Event::Gaussian { noise_multiplier }
}

fn gate(steps: usize, asides: Vec<Event>, seed: u64) -> Gate<Idealized> {
    let plan = Plan::with_asides(vec![gaussian(5.0); steps], asides, f64::INFINITY, 0.5, &Sum).expect("any budget");
    Gate::planned(Arc::new(plan), Idealized::new(seed, 0))
}

/// One event of agent 0 of four; returns what came of it and the letters.
fn event<R>(now: f64, gate: &mut Gate, work: impl FnOnce(&mut Cx<'_>) -> R) -> (R, Vec<(PeerId, Vec<u8>)>) {
    let (mut outbox, mut scratch) = (Outbox::default(), Vec::new());
    let (me, peers, now) = (PeerId(0), Peers::Complete { me: 0, n: 4 }, Time(now));
    let (coin, posts) = (Coin::new(1, 0, 0), Posts::Unheard { zero: &[] });
    let (role, reach, secret) = (Role::Member, peers, Secrets::simulated(0, me.0, 0));
    let (scratch, mail) = (&mut scratch, &mut outbox);
    let result = work(&mut Cx { me, role, now, peers, reach, coin, secret, gate, posts, scratch, outbox: mail });
    (result, outbox.letters().map(|letter| (letter.to, letter.bytes.to_vec())).collect())
}

fn shard<'d>(points: &'d (Vec<f64>, Vec<f64>), p: usize, loss: Loss) -> Shard<'d> {
    let points = Points { dimension: p, features: &points.0, labels: &points.1 };
    Shard { points, loss, regularization: 0.1, confidence: 0.5 }
}

/// CHECK 02.h, for losses: replacing a record moves the mean of cut losses by at most the declared B / m, adversarial records
/// included.
#[test]
fn check_02_h_replacing_a_record_moves_the_loss_by_at_most_its_sensitivity() {
    let mut coin = Coin::new(23, 0, 0);
    let mut most = 0.0f64;
    for trial in 0..6000 {
        let (records, p) = (1 + coin.below(12), 1 + coin.below(6));
        let loss = SMOOTH[coin.below(3)];
        let pair = neighbours(&mut coin, records, p, trial % 2 == 0);
        let theta = normals(&mut coin, p);
        let [a, b] = pair.each_ref().map(|points| mean_centred_loss(shard(points, p, loss), BOUND, &theta));
        let sensitivity = sottovoce_privacy::sensitivity::of_clipped_mean(0.5 * BOUND, records);
        assert!((a - b).abs() <= sensitivity, "{loss:?} m={records}: {a} {b} apart by more than {sensitivity}");
        assert!(sensitivity <= BOUND / records as f64 * (1.0 + 1e-12), "B / m, not 2 B / m");
        most = most.max((a - b).abs() / sensitivity);
    }
    assert!(most > 0.999, "some pair comes close: {most}");
}

/// A loss that is no number, infinite or beyond B counts as B.
#[test]
fn a_loss_beyond_its_bound_counts_as_the_bound() {
    for (x, y) in [(1e300, -1.0), (-5.0, 1.0), (f64::MAX, -1.0), (1.0, f64::NAN)] {
        let points = (vec![x], vec![y]);
        for loss in SMOOTH {
            assert_eq!(mean_centred_loss(shard(&points, 1, loss), BOUND, &[2.0]), 0.5 * BOUND, "{loss:?} {x} {y}");
        }
    }
}

/// Costs of an agent with one released loss after another, one for each turn of the graph.
fn costs(points: &(Vec<f64>, Vec<f64>), step: Event, runs: usize, seed: u64) -> (Vec<f64>, Gate<Idealized>) {
    let (p, loss) = (2, Loss::Logistic);
    let learner = learner(p, loss, 1, 1);
    let shard = shard(points, p, loss);
    let mut gate = gate(0, vec![step; runs], seed);
    let mut me = learner.enter(shard);
    let mut cost = |turn: u64| {
        event(0.0, &mut gate, |cx| learner.turn(&mut me, shard, Turn::Graph(turn), cx)).0.expect("planned");
        learner.cost(&mut me, shard)
    };
    ((1..=runs as u64).map(&mut cost).collect(), gate)
}

/// The noise of a released loss is that of the plan: its variance is (multiplier x B / m)^2, twice that for Laplace noise.
#[test]
fn the_noise_of_a_loss_is_as_planned() {
    let points = (normals(&mut Coin::new(1, 0, 0), 80), vec![1.0; 40]);
    let runs = 40_000;
    for (step, factor) in [(gaussian(3.0), 1.0), (Event::Laplace { noise_multiplier: 3.0 }, 2.0)] {
        let (costs, gate) = costs(&points, step, runs, 7);
        // A cost is 0.5 (F~ + penalty), at a model of zeros, and stays far from where it is cut.
        let losses: Vec<f64> = costs.iter().map(|cost| cost / 0.5).collect();
        let mean = losses.iter().sum::<f64>() / runs as f64;
        let variance = losses.iter().map(|loss| (loss - mean) * (loss - mean)).sum::<f64>() / runs as f64;
        let planned = factor * (3.0 * BOUND / 40.0) * (3.0 * BOUND / 40.0);
        assert!((variance / planned - 1.0).abs() < 0.03, "{step:?}: {variance} {planned}");
        assert!((mean - core::f64::consts::LN_2).abs() < 0.005, "{step:?}: {mean}");
        let charge = gate.ledger().charges().next().expect("charges");
        assert_eq!((charge.event, charge.count), (step, runs as u64));
    }
}

/// CHECK 02.k, for losses: worst-case neighbours, 100,000 releases from one public state each; no log-ratio of 20 bins is above
/// epsilon by more than 4 standard errors. With half the noise, one is.
#[test]
fn check_02_k_losses_of_neighbouring_data_cannot_be_told_apart_by_more_than_epsilon() {
    let (runs, epsilon, delta) = (100_000, 1.0, 1e-5);
    let sigma =
        calibrate::noise_multiplier(calibrate::NoiseKind::Gaussian, epsilon, delta, 1, &Tight).expect("in reach");
    let laplace = |noise_multiplier| Event::Laplace { noise_multiplier };
    // The label of a long record turns, so that its loss is nothing or B, in the middle of many others whose costs are not cut.
    let world = |label: f64| {
        let features: Vec<f64> = [vec![100.0, 0.0], vec![0.0; 38]].concat();
        (features, [vec![label], vec![1.0; 19]].concat())
    };
    let sample = |label: f64, step: Event, seed: u64| {
        let (p, loss) = (2, Loss::Logistic);
        let learner = learner(p, loss, 1, 1);
        let points = world(label);
        let shard = shard(&points, p, loss);
        let mut gate = gate(0, vec![step; runs], seed);
        let mut me = learner.enter(shard);
        // A public model on which the record's loss is one extreme or the other.
        let saved = {
            let mut bytes = Vec::new();
            learner.save(&me, &mut bytes);
            let zeros = [0u8; 16];
            let at = bytes.windows(16).position(|window| window == zeros).expect("a model of zeros");
            bytes[at..at + 8].copy_from_slice(&1.0f64.to_le_bytes());
            bytes
        };
        me = learner.resume(&saved, shard, Peers::Complete { me: 0, n: 4 }).unwrap_or(me);
        assert_eq!(learner.model(&me), [1.0, 0.0]);
        let mut cost = |turn: u64| {
            event(0.0, &mut gate, |cx| learner.turn(&mut me, shard, Turn::Graph(turn), cx)).0.expect("planned");
            learner.cost(&mut me, shard)
        };
        (1..=runs as u64).map(&mut cost).collect::<Vec<f64>>()
    };
    for (step, halved, delta) in
        [(laplace(1.0 / epsilon), Some(laplace(0.5 / epsilon)), 0.0), (gaussian(sigma), None, delta)]
    {
        let found = excess([&sample(1.0, step, 1), &sample(-1.0, step, 2)], epsilon, delta);
        assert!(found <= 4.0, "{step:?}: {found} standard errors above epsilon");
        if let Some(step) = halved {
            let found = excess([&sample(1.0, step, 3), &sample(-1.0, step, 4)], epsilon, delta);
            assert!(found > 4.0, "half the noise is not seen: {found}");
        }
    }
}

#[test]
fn a_loss_is_released_once_in_a_turn_and_never_in_the_first_graph_or_in_turns_of_the_models() {
    let points = (normals(&mut Coin::new(2, 0, 0), 20), vec![1.0; 10]);
    let (p, loss) = (2, Loss::Logistic);
    let (learner, shard) = (learner(p, loss, 2, 2), shard(&points, p, loss));
    let mut gate = gate(2, vec![gaussian(2.0); 2], 1);
    let mut me = learner.enter(shard);
    let mut releases = |turn: Turn| {
        event(0.0, &mut gate, |cx| learner.turn(&mut me, shard, turn, cx)).0.expect("planned, or nothing is asked for");
        (gate.ledger().releases(), learner.cost(&mut me, shard))
    };
    assert_eq!(releases(Turn::Graph(0)), (0, 0.0));
    assert_eq!(releases(Turn::Models(0)), (0, 0.0));
    let (first, cost) = releases(Turn::Graph(1));
    assert!(first == 1 && cost > 0.0);
    for turn in [Turn::Graph(1), Turn::Models(1), Turn::Graph(1)] {
        assert_eq!(releases(turn), (1, cost), "{turn:?}");
    }
    let (second, other) = releases(Turn::Graph(2));
    assert!(second == 2 && other != cost);
    // CHECK 02.i: past the plan nothing is released, and the last loss stands.
    assert_eq!(releases(Turn::Graph(3)), (2, other));
}

#[test]
fn updates_are_shared_by_the_turns_of_the_models_and_the_gate_lets_no_more_happen() {
    let points = (normals(&mut Coin::new(3, 0, 0), 20), vec![1.0; 10]);
    for (updates, turns, expected) in [(5u64, 2u64, [3, 5, 5]), (1, 3, [1, 1, 1]), (4, 4, [1, 2, 3]), (2, 1, [2, 2, 2])]
    {
        let (p, loss) = (2, Loss::Logistic);
        let (learner, shard) = (learner(p, loss, updates, turns), shard(&points, p, loss));
        let mut gate = gate(updates as usize, Vec::new(), 1);
        let mut me = learner.enter(shard);
        for (turn, expected) in expected.into_iter().enumerate() {
            for _ in 0..10 {
                event(0.0, &mut gate, |cx| {
                    learner.turn(&mut me, shard, Turn::Models(turn as u64), cx)?;
                    learner.learn(&mut me, shard, cx)
                })
                .0
                .expect("an agent whose share is done only listens");
            }
            assert_eq!(gate.ledger().releases(), expected, "{updates} updates in {turns} turns, turn {turn}");
        }
    }
}

/// With the same neighbours, the same noise and the same models a step is that of private coordinate descent.
#[test]
fn a_step_is_the_step_of_private_coordinate_descent() {
    let problem = random_problem(4, 9, 3, Loss::Logistic);
    let me = PeerId(0);
    let shard = problem.shard(me);
    let plain = descent(3, Loss::Logistic, None);
    let mut rows = Rows::zeros(9, 3);
    let words = normals(&mut Coin::new(5, 0, 0), 24);
    rows.values_mut()[3..].copy_from_slice(&words);
    let graph = sottovoce_core::Graph::from_edges(9, &[(0, 1, 0.5), (0, 3, 2.0)]).expect("edges");
    let known = crate::Problem { graph, ..problem.clone() };
    let mut expected_gate = gate(1, Vec::new(), 9);
    let (state, _) = crate::testing::event(&known, &rows, me, &mut expected_gate, |cx| plain.start(shard, cx));
    let mut state = state.expect("nothing leaves");
    let (_, expected) =
        crate::testing::event(&known, &rows, me, &mut expected_gate, |cx| plain.on_wake(&mut state, shard, cx));
    let expected = expected.expect("a step");

    let learner = learner(3, Loss::Logistic, 1, 1);
    let mut own_gate = gate(1, Vec::new(), 9);
    let mut state = learner.enter(shard);
    let ((), letters) = event(0.0, &mut own_gate, |cx| {
        for (peer, weight) in [(3, 2.0), (1, 0.5)] {
            learner.relink(&mut state, PeerId(peer), weight, cx).expect("post-processing");
            let model = Numbers::Plain(rows.row(peer as usize));
            let letter = ModelLetter::Model { version: 0, model };
            learner.hear(&mut state, PeerId(peer), letter, cx).expect("a neighbour");
        }
        learner.turn(&mut state, shard, Turn::Models(0), cx).expect("nothing leaves");
        learner.learn(&mut state, shard, cx).expect("planned");
    });
    assert!(largest_difference(learner.model(&state), &expected) < 1e-15, "{:?} {expected:?}", learner.model(&state));
    // Two questions, and the new model to both.
    let told = letters.iter().filter(|(_, bytes)| bytes[0] == 0).map(|(to, _)| to.0).collect::<Vec<_>>();
    assert_eq!((letters.len(), told), (4, vec![1, 3]));
    assert_eq!(own_gate.ledger(), expected_gate.ledger());
}

/// What a peer that asks is told: the released model and the released loss, the same ones in the whole of a turn, however often it asks; and
/// asking costs nothing.
#[test]
fn whoever_asks_again_in_a_turn_is_told_the_same() {
    let problem = random_problem(2, 9, 2, Loss::Logistic);
    let regularizer = LogDegree { sparsity: 0.5, offset: LogDegree::OFFSET };
    let joint = Joint { trade_off: 1.0, strength: 0.5, regularizer };
    let graph = GraphLearning::new(GraphLearningConfig { joint, sample: 2 }).expect("good parameters");
    let algorithm = Alternating::new(learner(2, Loss::Logistic, 2, 2), graph, TURNS).expect("good turns");
    let (shard, mut gate) = (problem.shard(PeerId(0)), gate(2, vec![gaussian(2.0); 2], 1));
    let mut state = event(0.0, &mut gate, |cx| algorithm.start(shard, cx)).0.expect("nothing leaves");
    let mut round = 0u8;
    let mut ask = |now: f64| {
        round += 1;
        let question = [&[16u8, round][..], &[0; 7]].concat();
        let (heard, letters) = event(now, &mut gate, |cx| {
            let letter = Wire::decode(&question).expect("a question");
            algorithm.on_letter(&mut state, shard, PeerId(1), letter, cx)
        });
        assert_eq!((heard, letters.len()), (Ok(()), 1));
        let letter = GraphLetter::decode(&letters[0].1).expect("an answer");
        let GraphLetter::Answer { cost, model, .. } = letter else { panic!("{letter:?}") };
        let distance = model.distance_squared(algorithm.model(&state, &[])).expect("a model");
        assert_eq!(distance, 0.0, "the model that everyone may know");
        (cost, gate.ledger().releases())
    };
    // Turns of the graph: before 3, from 5 to 7, from 9 to 11.
    assert_eq!([ask(0.0), ask(2.9), ask(3.5)], [(0.0, 0); 3]);
    let first = ask(5.1);
    assert!(first.0 > 0.0 && first.1 == 1);
    assert_eq!([ask(5.2), ask(6.9), ask(7.5), ask(8.9)], [first; 4]);
    let second = ask(9.5);
    assert!(second.0 != first.0 && second.1 == 2);
    assert_eq!([ask(10.9), ask(11.5), ask(14.0)], [second; 3], "the plan has no third");
}

/// An exact learner behind a plan is refused; an exact standing among released ones is our own fault, and stops the program.
#[test]
fn exact_values_never_leave_as_post_processing() {
    let problem = random_problem(1, 9, 2, Loss::Logistic);
    let regularizer = LogDegree { sparsity: 0.5, offset: LogDegree::OFFSET };
    let joint = Joint { trade_off: 1.0, strength: 0.5, regularizer };
    let graph = GraphLearning::new(GraphLearningConfig { joint, sample: 2 }).expect("good parameters");
    struct Careless(PrivateDescentByLetters);
    impl Learner for Careless {
        type State = State;
        type Letter<'a> = ModelLetter<'a>;
        const ORIGIN: crate::personal::graph::Origin = crate::personal::graph::Origin::Released;
        fn enter(&self, shard: Shard<'_>) -> State {
            self.0.enter(shard)
        }
        fn learn(
            &self,
            me: &mut State,
            shard: Shard<'_>,
            cx: &mut Cx<'_>,
        ) -> Result<sottovoce_core::Activity, sottovoce_privacy::Exhausted> {
            self.0.learn(me, shard, cx)
        }
        fn hear(
            &self,
            me: &mut State,
            from: PeerId,
            letter: Self::Letter<'_>,
            cx: &mut Cx<'_>,
        ) -> Result<(), sottovoce_core::Reject> {
            self.0.hear(me, from, letter, cx)
        }
        fn relink(
            &self,
            me: &mut State,
            peer: PeerId,
            weight: f64,
            cx: &mut Cx<'_>,
        ) -> Result<(), sottovoce_privacy::Exhausted> {
            self.0.relink(me, peer, weight, cx)
        }
        fn cost(&self, _me: &mut State, shard: Shard<'_>) -> f64 {
            crate::objective::local_value(&shard, &[0.0, 0.0])
        }
        fn save(&self, me: &State, out: &mut Vec<u8>) {
            self.0.save(me, out);
        }
        fn resume(
            &self,
            saved: &[u8],
            shard: Shard<'_>,
            peers: Peers<'_>,
        ) -> Result<State, sottovoce_core::CannotResume> {
            self.0.resume(saved, shard, peers)
        }
        fn model<'a>(&self, me: &'a State) -> &'a [f64] {
            self.0.model(me)
        }
    }
    let shard = problem.shard(PeerId(0));
    let careless = Alternating::new(Careless(learner(2, Loss::Logistic, 1, 1)), graph, TURNS).expect("good turns");
    let mut gate = gate(1, vec![gaussian(2.0)], 1);
    let (state, _) = event(0.0, &mut gate, |cx| careless.start(shard, cx));
    let mut state = state.expect("nothing leaves");
    let question = [16u8, 1, 0, 0, 0, 0, 0, 0, 0];
    let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        event(0.5, &mut gate, |cx| {
            let letter = Wire::decode(&question).expect("a question");
            careless.on_letter(&mut state, shard, PeerId(1), letter, cx)
        })
    }));
    let why = asked.map(drop).expect_err("it must stop");
    assert!(why.downcast_ref::<String>().is_some_and(|why| why.contains("one agent, one origin")));
}

proptest! {
    /// Turns are counted alike from within and from outside, also at their very edges.
    #[test]
    fn turns_follow_each_other_and_are_counted_before_a_run(
        first in 0.0..30.0f64, models in 0.1..30.0f64, graph in 0.1..30.0f64, count in 0u64..1000, end in 0.0..500.0f64,
    ) {
        let turns = Turns { graph_first: first, models, graph };
        let edge = first + count as f64 * (models + graph);
        let middle = |from: f64, length: f64| turns.at(Time(from + 0.5 * length));
        prop_assert_eq!(middle(edge, models), Turn::Models(count));
        prop_assert_eq!(middle(edge + models, graph), Turn::Graph(count + 1));
        // At an edge rounding decides, for one side or the other, and never for a turn further on.
        prop_assert!([Turn::Models(count), Turn::Graph(count)].contains(&turns.at(Time(edge))), "{:?}", turns.at(Time(edge)));
        let (models_begun, graphs_begun) = turns.before(end);
        let last = turns.at(Time(end.next_down()));
        let expected = match last {
            Turn::Models(turn) => (turn + 1, turn),
            Turn::Graph(turn) => (turn, turn),
        };
        let near_an_edge = (0..=models_begun + 1).any(|k| {
            let edge = first + k as f64 * (models + graph);
            (edge - end).abs() < 1e-9 || (edge + models - end).abs() < 1e-9
        });
        prop_assert!(near_an_edge || (models_begun, graphs_begun) == expected, "{:?} {:?}", (models_begun, graphs_begun), last);
    }
}

#[test]
fn what_it_cannot_run_with_is_refused_by_name() {
    let refused = |loss_bound, model_turns| {
        let config = PrivateDescentByLettersConfig { loss_bound, updates: 1, model_turns };
        PrivateDescentByLetters::new(descent(2, Loss::Logistic, None), config).expect_err("bad parameters").field
    };
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(refused(Some(bad), 1), "loss-bound");
    }
    assert_eq!(refused(None, 0), "model-turns");
}

#[test]
fn an_exact_descent_needs_a_smooth_loss() {
    assert_eq!(DescentByLetters::new(Loss::Hinge, 1.0).expect_err("not smooth").field, "loss");
}
