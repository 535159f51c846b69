//! What holds for the saved states of all algorithms, whoever is interrupted when, and whatever happens to the bytes.

use super::testing::{AGENTS, World, agents, survives_interruptions};
use crate::average::gossip::{Goal, Gossip, GossipConfig};
use crate::average::muffliato::{ContributionUnit, Muffliato, MuffliatoConfig};
use crate::average::muffliato_sgd::{MuffliatoSgd, MuffliatoSgdConfig};
use crate::joint::{Joint, LogDegree};
use crate::objective::local_value;
use crate::pairs::{gosta::Gosta, gosta_sync::GostaSync, kernel::Scatter, u2_gossip::U2Gossip};
use crate::personal::admm::{Admm, AdmmConfig, Inner};
use crate::personal::baseline::{InputPerturbation, InputPerturbationConfig, Local};
use crate::personal::boosting::{FrankWolfe, FrankWolfeConfig, StepSize};
use crate::personal::descent::{
    BlockStep, CoordinateDescent, CoordinateDescentConfig, DescentByLetters, PrivateCoordinateDescent,
    PrivateCoordinateDescentConfig, PrivateDescentByLetters, PrivateDescentByLettersConfig, Start, WarmStart,
};
use crate::personal::graph::{Alternating, GraphLearning, GraphLearningConfig, Placed, Turns};
use crate::personal::propagation::{ModelPropagation, ModelPropagationConfig};
use crate::reference::local::solitary_models;
use crate::testing::{boosting_problem, exact_ring, exact_walk, random_problem};
use crate::token::walk_sgd::{Gradient, GradientConfig};
use crate::{Bounds, Loss, Problem, Survey};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, TestRunner};
use sottovoce_core::{Algorithm, CannotResume, Graph, Neighbours, PeerId};
use sottovoce_privacy::{Event, sensitivity::Norm};
use std::collections::BTreeMap;

/// Something to look at for every algorithm.
trait Check {
    fn check<'p, A: Algorithm + 'p, D: Fn(PeerId) -> A::Data<'p> + Copy>(
        &mut self,
        name: &'static str,
        start: impl Fn() -> World<'p, A, D>,
    );
}

/// All algorithms, and those of their parameters that change what is saved.
fn for_all(seed: u64, p: usize, check: &mut impl Check) {
    let gaussian = Event::Gaussian { noise_multiplier: 3.0 };
    let alike = |loss| random_problem(seed, AGENTS, p, loss);
    let everyone_reached = |problem: Problem| Problem { graph: Graph::Complete { n: AGENTS as u32 }, ..problem };
    let (logistic, hinge, squared) = (alike(Loss::Logistic), alike(Loss::Hinge), alike(Loss::Squared));
    let (boosted, open) = (boosting_problem(seed, AGENTS, p), everyone_reached(alike(Loss::Logistic)));
    let open_boosted = everyone_reached(boosting_problem(seed, AGENTS, p));
    macro_rules! check {
        ($name:expr, $algorithm:expr, $problem:expr, $steps:expr) => {{
            let (algorithm, problem, steps): (_, &Problem, &[Event]) = (&$algorithm, &$problem, &$steps);
            let data = |id: PeerId| problem.shard(id);
            check.check($name, || World::start(algorithm, &problem.graph, data, steps, seed));
        }};
    }
    check!("local", Local, logistic, []);
    for (name, start) in [("coordinate descent", Start::Local), ("coordinate descent from zero", Start::Zero)] {
        let config = CoordinateDescentConfig { dimension: p, loss: Loss::Logistic, trade_off: 1.0, start };
        check!(name, CoordinateDescent::new(config).expect("good parameters"), logistic, []);
    }
    let private = PrivateCoordinateDescentConfig {
        dimension: p,
        loss: Loss::Logistic,
        trade_off: 1.0,
        clip: 1.0,
        norm: Norm::L2,
        feature_bound: 3.0,
        l1_features: false,
        warm: None,
    };
    let private = |warm| PrivateCoordinateDescentConfig { warm, ..private };
    let new = |config| PrivateCoordinateDescent::new(config).expect("good parameters");
    check!("private coordinate descent", new(private(None)), logistic, [gaussian; 10]);
    let warm = WarmStart { regularization: 1.0, radius: 5.0, trade_off: 1.0, wakes: 7 };
    let steps = [vec![Event::GammaNorm { noise_multiplier: 2.0 }], vec![gaussian; 10]].concat();
    check!("warm private coordinate descent", new(private(Some(warm))), logistic, steps);
    let config = InputPerturbationConfig { dimension: p, loss: Loss::Logistic, feature_bound: 3.0 };
    let told = [gaussian, Event::RandomizedResponse { epsilon: 1.0 }];
    check!("input perturbation", InputPerturbation::new(config).expect("good parameters"), logistic, told);
    let config = ModelPropagationConfig { trade_off: 1.0 };
    check!("model propagation", ModelPropagation::new(config).expect("good parameters"), logistic, []);
    let few = Inner::Gradient { steps: 3 };
    for (name, inner, problem) in [
        ("ADMM, squared", Inner::Exact, &squared),
        ("ADMM, logistic", Inner::Exact, &logistic),
        ("ADMM, hinge", Inner::Exact, &hinge),
        ("ADMM, gradients", few, &logistic),
        ("ADMM, subgradients", few, &hinge),
    ] {
        let config = AdmmConfig { trade_off: 1.0, penalty: 0.3, inner };
        check!(name, Admm::new(config).expect("good parameters"), *problem, []);
    }
    let boosting = |step_size, local_rounds| {
        let gap_min = if step_size == StepSize::LocalClock { 0.5 } else { 0.0 };
        let config = FrankWolfeConfig { predictors: p, trade_off: 1.0, radius: 10.0, step_size, gap_min, local_rounds };
        FrankWolfe::new(config).expect("good parameters")
    };
    check!("Frank-Wolfe", boosting(StepSize::GlobalClock, 0), boosted, []);
    check!("Frank-Wolfe, local clock", boosting(StepSize::LocalClock, 0), boosted, []);
    check!("Frank-Wolfe, descent", boosting(StepSize::Descent, 0), boosted, []);
    let regularizer = LogDegree { sparsity: 0.5, offset: LogDegree::OFFSET };
    let joint = Joint { trade_off: 1.0, strength: 0.5, regularizer };
    let graph = GraphLearning::new(GraphLearningConfig { joint, sample: 3 }).expect("good parameters");
    let models = solitary_models(&open);
    let place = |id: PeerId| {
        let (model, shard) = (models.row(id.index()), open.shard(id));
        Placed { model, cost: shard.confidence * local_value(&shard, model) }
    };
    check.check("graph learning", || World::start(&graph, &open.graph, place, &[], seed));
    let turns = Turns { graph_first: 8.0, models: 4.0, graph: 4.0 };
    let descent = DescentByLetters::new(Loss::Logistic, 1.0).expect("good parameters");
    check!("alternating, descent", Alternating::new(descent, graph, turns).expect("good turns"), open, []);
    let newton = descent.with_step(BlockStep::Newton);
    check!("alternating, newton", Alternating::new(newton, graph, turns).expect("good turns"), open, []);
    for (name, warm) in [("alternating, private", None), ("alternating, warm private", Some(warm))] {
        let config = PrivateDescentByLettersConfig { loss_bound: Some(1.5), updates: 10, model_turns: 5 };
        let learner = PrivateDescentByLetters::new(new(private(warm)), config).expect("good parameters");
        let steps = if warm.is_some() { &steps[..] } else { &steps[1..] };
        check!(name, Alternating::new(learner, graph, turns).expect("good turns"), open, steps);
    }
    let survey = Survey { data: logistic.data.clone(), graph: logistic.graph.clone(), bounds: None };
    let observations = |id: PeerId| survey.observations(id);
    let gossip = |goal| Gossip::new(GossipConfig { columns: p, goal }).expect("good parameters");
    let [mean, sum] = [Goal::Mean, Goal::Sum { agents: AGENTS }].map(gossip);
    for (name, gossip) in [("gossip, mean", &mean), ("gossip, sum", &sum)] {
        check.check(name, || World::start(gossip, &survey.graph, observations, &[], seed));
    }
    let unit = ContributionUnit::Rows;
    let rounds = MuffliatoConfig { columns: p, goal: Goal::Mean, unit, range: None, law: None, rounds: 40, gamma: 1.2 };
    let exact = Muffliato::new(rounds).expect("good parameters");
    check.check("muffliato", || World::start(&exact, &survey.graph, observations, &[], seed));
    let hidden = MuffliatoConfig { range: Some(Bounds { low: -1.0, high: 1.0 }), law: Some(gaussian), ..rounds };
    let hidden = Muffliato::new(hidden).expect("good parameters");
    check.check("muffliato, private", || World::start(&hidden, &survey.graph, observations, &[gaussian], seed));
    let sgd = |law, clip, steps| {
        let (loss, step, radius, regularization, bound) = (Loss::Logistic, 0.5, None, 0.0, Some(1.0));
        let gradient = GradientConfig { dimension: p, loss, step, radius, regularization, clip, bound };
        let gradient = Gradient::new(gradient).expect("a step");
        let (rounds, acceleration, speaker) = (4, 1.2, Some(PeerId(2)));
        MuffliatoSgd::new(MuffliatoSgdConfig { gradient, law, steps, rounds, acceleration, speaker })
            .expect("good parameters")
    };
    check!("muffliato-sgd", sgd(None, None, 10), open, []);
    check!("muffliato-sgd, private", sgd(Some(gaussian), Some(0.4), 10), open, &[gaussian; 10][..]);
    let (ring, walk) = (exact_ring(AGENTS as u32), exact_walk(AGENTS as u32, p as u32));
    check.check("ring", || World::start(&ring, &open.graph, observations, &[], seed));
    check.check("walk", || World::start(&walk, &open.graph, observations, &[], seed));
    let (scatter, edges) = (|| Scatter::new(p, &vec![0.0; p]).expect("a centre"), survey.graph.edge_count());
    let gosta = Gosta::new(scatter(), 1.0).expect("good parameters");
    check.check("gossip of pairs, gosta", || World::start(&gosta, &survey.graph, observations, &[], seed));
    let sync = GostaSync::new(scatter(), 1.0, edges).expect("good parameters");
    check.check("gossip of pairs, gosta-sync", || World::start(&sync, &survey.graph, observations, &[], seed));
    let u2 = U2Gossip::new(scatter(), 1.0, edges).expect("good parameters");
    check.check("gossip of pairs, u2-gossip", || World::start(&u2, &survey.graph, observations, &[], seed));
    let boosting = boosting(StepSize::Descent, 3);
    check!("alternating, boosting", Alternating::new(boosting, graph, turns).expect("good turns"), open_boosted, []);
}

/// Algorithms that save nothing as long as the models.
const WITHOUT_VECTORS: &[&str] = &[
    "local",
    "coordinate descent",
    "coordinate descent from zero",
    "private coordinate descent",
    "input perturbation",
    "graph learning",
    "ring",
];

/// Algorithms that remember nothing of each neighbour.
const WITHOUT_NEIGHBOURS: &[&str] = &[
    "local",
    "coordinate descent",
    "coordinate descent from zero",
    "private coordinate descent",
    "warm private coordinate descent",
    "input perturbation",
];

#[test]
fn an_interruption_does_not_change_a_bit() {
    struct Interrupted {
        seed: u64,
    }
    impl Check for Interrupted {
        fn check<'p, A: Algorithm + 'p, D: Fn(PeerId) -> A::Data<'p> + Copy>(
            &mut self,
            name: &'static str,
            start: impl Fn() -> World<'p, A, D>,
        ) {
            survives_interruptions(name, self.seed, start);
        }
    }
    for seed in 0..6 {
        for_all(seed, 1 + seed as usize, &mut Interrupted { seed });
    }
}

/// What may happen to saved bytes.
#[derive(Clone, Debug)]
enum Damage {
    Noise(Vec<u8>),
    Cut(Index),
    More(Vec<u8>),
    Flips(Vec<(Index, u8)>),
    Number(Index, f64),
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Damage::Noise(noise) => bytes.splice(1.., noise.iter().copied()).for_each(drop),
            Damage::Cut(at) => bytes.truncate(at.index(bytes.len())),
            Damage::More(more) => bytes.extend(more),
            Damage::Flips(flips) => flips.iter().for_each(|(at, bit)| {
                let at = at.index(bytes.len());
                bytes[at] ^= 1 << bit;
            }),
            Damage::Number(at, number) if bytes.len() > 8 => {
                let at = at.index(bytes.len() - 7);
                bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
            }
            Damage::Number(..) => {}
        }
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    let numbers = [f64::NAN, f64::INFINITY, -f64::INFINITY, f64::MAX, -1e300, 1e200, -1.0, 0.0, 5e-324];
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..100).prop_map(Damage::Noise),
        any::<Index>().prop_map(Damage::Cut),
        prop::collection::vec(any::<u8>(), 1..9).prop_map(Damage::More),
        prop::collection::vec((any::<Index>(), 0u8..8), 1..4).prop_map(Damage::Flips),
        (any::<Index>(), prop::sample::select(numbers.to_vec())).prop_map(|(at, number)| Damage::Number(at, number)),
    ]
}

/// Refused, or at least survived: a flipped bit of a number leaves a number.
#[test]
fn damaged_states_never_panic_then_or_later() {
    struct Damaged;
    impl Check for Damaged {
        fn check<'p, A: Algorithm + 'p, D: Fn(PeerId) -> A::Data<'p> + Copy>(
            &mut self,
            name: &'static str,
            start: impl Fn() -> World<'p, A, D>,
        ) {
            let mut world = start();
            (0..300).for_each(|_| world.step());
            let saved: Vec<_> = agents().map(|id| world.saved(id)).collect();
            let (world, refused) = (std::cell::RefCell::new(world), std::cell::Cell::new(0));
            let mut runner = TestRunner::new(Config { cases: 300, failure_persistence: None, ..Config::default() });
            let result = runner.run(&(0..AGENTS as u32, damage()), |(agent, damage)| {
                let (mut world, id) = (world.borrow_mut(), PeerId(agent));
                let mut bytes = saved[id.index()].clone();
                damage.apply(&mut bytes);
                match world.resume(id, &bytes, Neighbours::Same) {
                    Err(why) => {
                        prop_assert_eq!(why, CannotResume::Malformed);
                        refused.set(refused.get() + 1);
                    }
                    Ok(()) => {
                        prop_assert!(!matches!(damage, Damage::Cut(_) | Damage::More(_)), "{:?}", damage);
                        (0..60).for_each(|_| world.step());
                        world.mail.clear();
                        agents().for_each(|id| {
                            world.resume(id, &saved[id.index()], Neighbours::Same).expect("a good state");
                        });
                    }
                }
                Ok(())
            });
            result.unwrap_or_else(|why| panic!("{name}: {why}"));
            assert!(refused.get() > 100, "{name}: {} refused", refused.get());
        }
    }
    for_all(1, 3, &mut Damaged);
}

/// Wherever there may be a length, the list behind it loses its first member: a counter, the turn of an edge, or a number.
#[test]
fn lists_that_are_too_short_never_panic_then_or_later() {
    struct Shortened;
    impl Check for Shortened {
        fn check<'p, A: Algorithm + 'p, D: Fn(PeerId) -> A::Data<'p> + Copy>(
            &mut self,
            _name: &'static str,
            start: impl Fn() -> World<'p, A, D>,
        ) {
            let mut world = start();
            (0..300).for_each(|_| world.step());
            let id = PeerId(0);
            let bytes = world.saved(id);
            for (at, width) in (1..bytes.len()).flat_map(|at| [1, 4, 8].map(|width| (at, width))) {
                let mut bytes = bytes.clone();
                if bytes[at] == 0 || at + width >= bytes.len() {
                    continue;
                }
                bytes[at] -= 1;
                bytes.drain(at + 1..=at + width);
                if world.resume(id, &bytes, Neighbours::Same).is_ok() {
                    (0..200).for_each(|_| world.step());
                }
            }
        }
    }
    for_all(5, 2, &mut Shortened);
}

/// An agent that was alone has neighbours now, and one that had some is alone.
#[test]
fn algorithms_without_a_memory_of_neighbours_go_on_with_others() {
    struct Changed(u32);
    impl Check for Changed {
        fn check<'p, A: Algorithm + 'p, D: Fn(PeerId) -> A::Data<'p> + Copy>(
            &mut self,
            name: &'static str,
            start: impl Fn() -> World<'p, A, D>,
        ) {
            if !WITHOUT_NEIGHBOURS.contains(&name) {
                return;
            }
            let mut world = start();
            (0..200).for_each(|_| world.step());
            let (linked, isolated) = (PeerId(0), PeerId(AGENTS as u32 - 1));
            let [was_linked, was_alone] = [linked, isolated].map(|id| world.saved(id));
            assert_eq!(world.resume(isolated, &was_linked, Neighbours::Changed), Ok(()), "{name}");
            let joins = world.resume(linked, &was_alone, Neighbours::Changed);
            if name.starts_with("warm") {
                assert_eq!(joins, Err(CannotResume::NeighboursChanged), "its first release has not happened");
            } else {
                assert_eq!(joins, Ok(()), "{name}");
            }
            (0..200).for_each(|_| world.step());
            self.0 += 1;
        }
    }
    let mut changed = Changed(0);
    for_all(3, 4, &mut changed);
    assert_eq!(changed.0 as usize, WITHOUT_NEIGHBOURS.len());
}

/// By name of the algorithm: what its agents saved.
#[derive(Default)]
struct Saved(BTreeMap<&'static str, Vec<Vec<u8>>>);

impl Check for Saved {
    fn check<'p, A: Algorithm + 'p, D: Fn(PeerId) -> A::Data<'p> + Copy>(
        &mut self,
        name: &'static str,
        start: impl Fn() -> World<'p, A, D>,
    ) {
        let mut world = start();
        (0..300).for_each(|_| world.step());
        self.0.insert(name, agents().map(|id| world.saved(id)).collect());
    }
}

#[test]
fn another_dimension_other_neighbours_and_another_version_are_refused() {
    struct Resumed<'a>(&'a Saved, usize);
    impl Check for Resumed<'_> {
        fn check<'p, A: Algorithm + 'p, D: Fn(PeerId) -> A::Data<'p> + Copy>(
            &mut self,
            name: &'static str,
            start: impl Fn() -> World<'p, A, D>,
        ) {
            let Resumed(Saved(saved), p) = *self;
            let mut world = start();
            for (id, bytes) in agents().zip(&saved[name]) {
                let alone = world.graph.peers(id).is_empty();
                let has_vectors = !(WITHOUT_VECTORS.contains(&name) || alone && name.starts_with("warm"));
                let expected = if p != 3 && has_vectors { Err(CannotResume::Malformed) } else { Ok(()) };
                assert_eq!(world.resume(id, bytes, Neighbours::Same), expected, "{name}, {id:?}, p = {p}");
                let changed =
                    if WITHOUT_NEIGHBOURS.contains(&name) { expected } else { Err(CannotResume::NeighboursChanged) };
                assert_eq!(world.resume(id, bytes, Neighbours::Changed), changed, "{name}, {id:?}");
                let next = [&[bytes[0] + 1], &bytes[1..]].concat();
                assert_eq!(world.resume(id, &next, Neighbours::Same), Err(CannotResume::Malformed), "{name}, {id:?}");
                for other in agents().filter(|other| *other != id && !WITHOUT_NEIGHBOURS.contains(&name)) {
                    let elsewhere = world.resume(other, bytes, Neighbours::Same);
                    // Without names of all neighbours in a state, only their number can tell.
                    let places = ["model propagation", "ADMM", "gossip", "ring", "walk", "POLAR"];
                    let nameless = alone || places.iter().any(|start| name.starts_with(start));
                    let alike = nameless && world.graph.peers(id).len() == world.graph.peers(other).len();
                    let learned = name == "graph learning" || name.starts_with("alternating");
                    let refused = elsewhere == Err(CannotResume::Malformed);
                    assert!(refused || alike && !learned, "{name}, {id:?} at {other:?}");
                }
            }
        }
    }
    let mut saved = Saved::default();
    for_all(2, 3, &mut saved);
    for p in [3, 2, 4] {
        for_all(2, p, &mut Resumed(&saved, p));
    }
}

#[test]
fn numbers_that_are_not_finite_are_refused() {
    struct NotFinite(u32);
    impl Check for NotFinite {
        fn check<'p, A: Algorithm + 'p, D: Fn(PeerId) -> A::Data<'p> + Copy>(
            &mut self,
            name: &'static str,
            start: impl Fn() -> World<'p, A, D>,
        ) {
            let mut world = start();
            (0..300).for_each(|_| world.step());
            for (id, model) in agents().zip(world.models()) {
                let bytes = world.saved(id);
                // Wherever a number of the model is saved.
                for number in model.iter().filter(|bits| f64::from_bits(**bits) != 0.0) {
                    let places = bytes.windows(8).enumerate().filter(|(_, window)| *window == number.to_le_bytes());
                    for (at, _) in places {
                        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
                            let mut bytes = bytes.clone();
                            bytes[at..at + 8].copy_from_slice(&bad.to_le_bytes());
                            let resumed = world.resume(id, &bytes, Neighbours::Same);
                            assert_eq!(resumed, Err(CannotResume::Malformed), "{name}, {id:?}: {bad}");
                            self.0 += 1;
                        }
                    }
                }
            }
        }
    }
    let mut tried = NotFinite(0);
    for_all(4, 3, &mut tried);
    assert!(tried.0 > 500, "{} tried", tried.0);
}
