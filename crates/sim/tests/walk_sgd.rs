//! Stochastic gradient descent by a token, run by the simulator and in one place: where it goes, what beyond the bound does, and CHECK 05.k.

use sottovoce_algorithms::objective::common_value;
use sottovoce_algorithms::token::walk::{Beyond, Movement, Moving, Walk, WalkConfig};
use sottovoce_algorithms::token::walk_sgd::{Gradient, GradientConfig, WalkSgd};
use sottovoce_algorithms::{Dataset, Loss, Points, Problem, Regularization, Shard};
use sottovoce_core::{Coin, Graph, PeerId};
use sottovoce_privacy::{Event, Gate, Idealized, Plan, Simulated, Sum, Track};
use sottovoce_sim::{Clock, Faults, Settings, Simulation, Status};
use std::sync::Arc;

const MEMBERS: usize = 20;

/// Points in a ball, labels by a line through zero with some noise.
fn problem(loss: Loss) -> Problem {
    let mut coin = Coin::new(3, 0, 0);
    let mut data = Dataset::new(2);
    for _ in 0..MEMBERS {
        let features: Vec<f64> = (0..10).map(|_| 1.4 * (coin.unit() - 0.5)).collect();
        let label = |x: &[f64]| {
            let value = 0.8 * x[0] - 0.5 * x[1] + 0.2 * (coin.unit() - 0.5);
            if loss.is_classification() { if value > 0.0 { 1.0 } else { -1.0 } } else { value }
        };
        let labels: Vec<f64> = features.chunks_exact(2).map(label).collect();
        data.push_agent(&features, &labels);
    }
    let (regularization, trade_off) = (Regularization::Constant(0.0), 1.0);
    let graph = Graph::complete(MEMBERS).expect("a graph");
    Problem { data, graph, loss, regularization, trade_off, points_max: 1.0 }
}

fn gradient(loss: Loss, step: f64, clip: Option<f64>) -> Gradient {
    let (radius, regularization, bound) = (Some(5.0), 0.0, Some(1.0));
    Gradient::new(GradientConfig { dimension: 2, loss, step, radius, regularization, clip, bound }).expect("fine")
}

fn config(hops: u64, law: Option<Event>) -> WalkConfig {
    WalkConfig {
        members: MEMBERS as u32,
        hops,
        tokens: 1,
        contributions: law.map(|_| 12),
        law,
        beyond: Beyond::Noise,
        track: Track::Token,
        timeout: None,
    }
}

fn train(walk: &WalkSgd, problem: &Problem, seed: u64, gates: impl Fn(PeerId) -> Gate<Simulated> + Sync) -> Vec<f64> {
    let settings = Settings { clock: Clock::Uniform, seed, threads: 1, tolerance: None, faults: Faults::default() };
    let shard = |id: PeerId| problem.shard(id);
    let mut run = Simulation::start_behind(gates, walk, &problem.graph, shard, &settings).expect("it starts");
    assert_eq!(run.advance(1_000_000), Status::Done);
    let model = run.model(PeerId(0)).to_vec();
    assert!((0..MEMBERS as u32).all(|id| run.model(PeerId(id)) == model), "one model for all");
    model
}

fn planned(law: Event, releases: usize, seed: u64) -> impl Fn(PeerId) -> Gate<Simulated> + Sync {
    let plan = Plan::with_tracks(vec![(Track::Token, vec![law; releases])], f64::INFINITY, 0.5, &Sum);
    let plan = Arc::new(plan.expect("any budget"));
    move |id| Gate::planned(plan.clone(), Simulated::Idealized(Idealized::new(seed, id.0)))
}

#[test]
fn without_noise_it_comes_near_the_minimum_for_each_loss() {
    for loss in [Loss::Logistic, Loss::Squared, Loss::SmoothedHinge] {
        let problem = problem(loss);
        let walk = Walk::new(config(40_000, None), gradient(loss, 0.01, None)).expect("a walk");
        let model = train(&walk, &problem, 1, |_| Gate::unplanned(Simulated::None));
        let found = common_value(&problem, &model);
        // The least value on a fine grid.
        let grid = || (-50..=50).map(|k| 0.1 * f64::from(k));
        let within = |a: &f64, b: &f64| a * a + b * b <= 25.0;
        let least = grid()
            .flat_map(|a| grid().map(move |b| (a, b)))
            .filter(|(a, b)| within(a, b))
            .map(|(a, b)| common_value(&problem, &[a, b]))
            .fold(f64::INFINITY, f64::min);
        assert!(found < least + 0.02, "{loss:?}: {found} {least}");
    }
}

/// Beyond its bound a member adds noise where others rely on it, and nothing where nobody does.
#[test]
fn beyond_the_bound_only_noise_leaves_or_nothing() {
    let law = Event::Gaussian { noise_multiplier: 1.0 };
    let problem = problem(Loss::Logistic);
    let one = |beyond, seed| {
        let config = WalkConfig { contributions: Some(1), beyond, ..config(400, Some(law)) };
        let walk: WalkSgd = Walk::new(config, gradient(Loss::Logistic, 0.5, Some(0.4))).expect("a walk");
        let mut gates: Vec<Gate<Simulated>> = (0..MEMBERS as u32).map(|id| planned(law, 1, seed)(PeerId(id))).collect();
        let (mut coin, mut moves, mut last) = (Coin::new(seed, 0, 0), 0, vec![0.0; 2]);
        let ended = walk.in_one_place(
            |id| problem.shard(id),
            &mut gates,
            || PeerId(coin.below(MEMBERS) as u32),
            |_, model| {
                moves += u32::from(model != last);
                last = model.to_vec();
            },
        );
        assert!(gates.iter().all(|gate| gate.ledger().releases() <= 1));
        (moves, ended.contributions)
    };
    let (noisy, contributions) = one(Beyond::Noise, 1);
    assert_eq!((noisy, contributions), (400, 20), "every hop moves the token, twenty with a gradient");
    assert_eq!(one(Beyond::Untouched, 1), (20, 20));
}

/// The simulator with letters, and one place, make the same steps.
#[test]
fn the_spread_of_private_models_is_that_of_one_place() {
    let law = Event::Gaussian { noise_multiplier: 0.5 };
    let problem = problem(Loss::Logistic);
    let walk: WalkSgd = Walk::new(config(200, Some(law)), gradient(Loss::Logistic, 0.2, Some(0.4))).expect("a walk");
    let spread = |models: Vec<Vec<f64>>| {
        let mean = models.iter().map(|model| model[0]).sum::<f64>() / models.len() as f64;
        let square = models.iter().map(|model| (model[0] - mean).powi(2)).sum::<f64>() / models.len() as f64;
        (mean, square.sqrt())
    };
    let letters = spread((0..300).map(|seed| train(&walk, &problem, seed, planned(law, 12, seed))).collect());
    let place = |seed| {
        let mut gates: Vec<_> = (0..MEMBERS as u32).map(|id| planned(law, 12, seed)(PeerId(id))).collect();
        let mut coin = Coin::new(seed, 0, 0);
        walk.in_one_place(|id| problem.shard(id), &mut gates, || PeerId(coin.below(MEMBERS) as u32), |_, _| ()).values
    };
    let place = spread((1000..1300).map(place).collect());
    assert!((letters.0 - place.0).abs() < 4.0 * place.1 / 150f64.sqrt(), "{letters:?} {place:?}");
    assert!((letters.1 / place.1 - 1.0).abs() < 0.25, "{letters:?} {place:?}");
}

/// Proposition 4.1: gamma(t) = D / (G sqrt t), G^2 = L^2 + p sigma^2: the last iterate is within 2 D G (2 + ln T) / sqrt T of the minimum, on
/// average. 200 runs on a bounded quadratic.
#[test]
fn check_05_k_the_bound_of_proposition_4_1_holds() {
    let problem = problem(Loss::Squared);
    let (hops, epsilon, delta, runs) = (4000u64, 5.0, 1e-3, 200);
    // |theta| <= 1, |x| <= 1, |y| <= 1: a gradient is at most 2 (1 + 1) long.
    let (length, diameter) = (4.0f64, 2.0);
    let sigma = length * (8.0 * libm::log(1.25 / delta)).sqrt() / epsilon;
    let g = (length * length + 2.0 * sigma * sigma).sqrt();
    let law = Event::Gaussian { noise_multiplier: sigma / (2.0 * length) };
    let least = {
        let grid = || (-100..=100).map(|k| 0.01 * f64::from(k));
        let values = grid().flat_map(|a| grid().map(move |b| [a, b])).map(|model| common_value(&problem, &model));
        values.fold(f64::INFINITY, f64::min)
    };
    let run = |seed: u64| {
        let plan = Plan::with_tracks(vec![(Track::Token, vec![law; 1])], f64::INFINITY, 0.5, &Sum).expect("any");
        let mut noise = Gate::planned(Arc::new(plan), Simulated::Idealized(Idealized::new(seed, 0)));
        let (mut coin, mut theta, mut moved) = (Coin::new(seed, 1, 0), vec![0.0; 2], vec![0.0; 2]);
        for t in 1..=hops {
            let step = diameter / (g * (t as f64).sqrt());
            let (radius, regularization) = (Some(0.5 * diameter), 0.0);
            let config = GradientConfig {
                dimension: 2,
                loss: Loss::Squared,
                step,
                radius,
                regularization,
                clip: None,
                bound: None,
            };
            // Unclipped, so that the sensitivity of the movement is one: the noise is scaled for the true one.
            let movement = Gradient::new(config).expect("a step");
            let scaled = Event::Gaussian { noise_multiplier: sigma };
            let shard: Shard<'_> = problem.shard(PeerId(coin.below(MEMBERS) as u32));
            let receipt = Gate::without_privacy().charge(Track::Token, 1.0, Track::Token.audience()).expect("exact");
            let token = Moving { received: &theta, moved: &mut moved };
            movement.step(Some(receipt), shard, Some(scaled), &mut noise, token);
            std::mem::swap(&mut theta, &mut moved);
        }
        common_value(&problem, &theta) - least
    };
    let mean = (0..runs).map(run).sum::<f64>() / f64::from(runs as u32);
    let bound = 2.0 * diameter * g * (2.0 + libm::log(hops as f64)) / (hops as f64).sqrt();
    assert!(mean <= bound, "{mean} {bound}");
    assert!(mean > 1e-3, "the noise shows: {mean}");
}

#[test]
fn a_member_without_points_makes_noise_alone() {
    let law = Event::Gaussian { noise_multiplier: 1.0 };
    let movement = gradient(Loss::Logistic, 0.5, Some(0.4));
    let plan = Plan::with_tracks(vec![(Track::Token, vec![law; 1])], f64::INFINITY, 0.5, &Sum).expect("any");
    let mut gate = Gate::planned(Arc::new(plan), Simulated::Idealized(Idealized::new(1, 0)));
    let points = Points { dimension: 2, features: &[], labels: &[] };
    let shard = Shard { points, loss: Loss::Logistic, regularization: 0.0, confidence: 0.0 };
    let mut moved = [f64::NAN; 2];
    let token = Moving { received: &[0.1, 0.2], moved: &mut moved };
    let (model, _) = movement.step(None, shard, Some(law), &mut gate, token);
    let model = model.into_inner();
    assert!(model.iter().all(|value| value.is_finite()) && model[0] != 0.1 && gate.ledger().releases() == 0);
}
