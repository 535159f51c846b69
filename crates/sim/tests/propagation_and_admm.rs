//! Model propagation and gossip ADMM, run by the simulator, against the central solvers.

mod support;

use sottovoce_algorithms::{
    Dataset, Loss, Problem, Regularization,
    personal::{
        admm::{Admm, AdmmConfig, Inner, default_penalty},
        baseline::Local,
        descent::{CoordinateDescent, CoordinateDescentConfig, Start},
        propagation::{ModelPropagation, ModelPropagationConfig},
    },
    reference::{central, local::solitary_models, propagation},
};
use sottovoce_core::{Algorithm, Coin, Graph, PeerId, Rows};
use sottovoce_sim::{Clock, Faults, Settings, Simulation, Status};

const SMOOTH: [Loss; 3] = [Loss::Logistic, Loss::Squared, Loss::SmoothedHinge];

fn normal(coin: &mut Coin) -> f64 {
    (0..12).map(|_| coin.unit()).sum::<f64>() - 6.0
}

/// Two components, one of them small; agent 1 has no data; the last two agents are isolated, the very last without data.
fn random_problem(seed: u64, n: usize, p: usize, loss: Loss) -> Problem {
    let mut coin = Coin::new(seed, 0, 0);
    let mut data = Dataset::new(p);
    let common: Vec<f64> = (0..p).map(|_| normal(&mut coin)).collect();
    for agent in 0..n {
        let own: Vec<f64> = common.iter().map(|value| value + 0.3 * normal(&mut coin)).collect();
        let m = if agent == 1 || agent == n - 1 { 0 } else { 2 + coin.below(15) };
        let features: Vec<f64> = (0..m * p).map(|_| normal(&mut coin)).collect();
        let labels: Vec<f64> = features
            .chunks_exact(p)
            .map(|x| {
                let dot = x.iter().zip(&own).map(|(x, own)| x * own).sum::<f64>() + 0.3 * normal(&mut coin);
                if loss.is_classification() { dot.signum() } else { dot }
            })
            .collect();
        data.push_agent(&features, &labels);
    }
    let split = n as u32 - 5;
    let mut edges: Vec<(u32, u32, f64)> = (0..split).map(|a| (a, (a + 1) % split, 0.2 + coin.unit())).collect();
    edges.extend([(split, split + 1, 0.7), (split + 1, split + 2, 1.3)]);
    for a in 0..split {
        for b in a + 2..split {
            if (a, b) != (0, split - 1) && coin.unit() < 0.2 {
                edges.push((a, b, 0.2 + coin.unit()));
            }
        }
    }
    Problem {
        points_max: data.largest() as f64,
        data,
        graph: Graph::from_edges(n, &edges).expect("a graph"),
        loss,
        regularization: Regularization::Constant(0.02),
        trade_off: 1.0,
    }
}

/// L_i(theta) = |theta - value_i|^2 / 2: p points x = s e_k, y = s value_k with s^2 = p/2, each `copies` times.
fn mean_estimation(seed: u64, n: usize, p: usize) -> (Problem, Rows) {
    let mut coin = Coin::new(seed, 0, 0);
    let mut data = Dataset::new(p);
    let mut values = Rows::zeros(n, p);
    let s = (p as f64 / 2.0).sqrt();
    for agent in 0..n {
        values.row_mut(agent).iter_mut().for_each(|value| *value = normal(&mut coin));
        let copies = 1 + coin.below(4);
        let mut features = vec![0.0; copies * p * p];
        (0..copies * p).for_each(|row| features[row * p + row % p] = s);
        let labels: Vec<f64> = (0..copies * p).map(|row| s * values.row(agent)[row % p]).collect();
        data.push_agent(&features, &labels);
    }
    let problem = random_problem(seed, n, p, Loss::Squared);
    let regularization = Regularization::Constant(0.0);
    (Problem { points_max: data.largest() as f64, data, regularization, ..problem }, values)
}

fn settings(seed: u64) -> Settings {
    Settings { clock: Clock::Uniform, seed, threads: 1, tolerance: None, faults: Faults::default() }
}

fn stormy(seed: u64) -> Settings {
    Settings { clock: Clock::Poisson, faults: support::storm(), ..settings(seed) }
}

fn largest_difference(a: &Rows, b: &Rows) -> f64 {
    a.values().iter().zip(b.values()).fold(0.0, |most, (a, b)| most.max((a - b).abs()))
}

fn start<'w, A>(
    algorithm: &'w A,
    problem: &'w Problem,
    settings: &Settings,
) -> Simulation<'w, A, impl Fn(PeerId) -> A::Data<'w> + Sync + use<'w, A>>
where
    A: for<'d> Algorithm<Data<'d> = sottovoce_algorithms::Shard<'d>>,
{
    Simulation::start(algorithm, &problem.graph, |agent| problem.shard(agent), settings).expect("an unlimited budget")
}

fn propagation(problem: &Problem) -> ModelPropagation {
    ModelPropagation::new(ModelPropagationConfig { trade_off: problem.trade_off }).expect("a fine trade-off")
}

fn admm(problem: &Problem, inner: Inner) -> Admm {
    let config =
        AdmmConfig { trade_off: problem.trade_off, penalty: default_penalty(&problem.graph, problem.trade_off), inner };
    Admm::new(config).expect("fine parameters")
}

#[test]
fn check_01_b_closed_form_synchronous_and_gossip_limits_are_one() {
    for (seed, trade_off) in [(1, 0.1), (2, 1.0), (3, 10.0)] {
        let problem = Problem { trade_off, ..random_problem(seed, 14, 4, Loss::Logistic) };
        let solitary = solitary_models(&problem);
        let exact = propagation::closed_form(&problem, &solitary);
        let synchronous = propagation::synchronous(&problem, &solitary, 1e-13, 1_000_000);
        assert!(largest_difference(&exact, &synchronous) < 1e-8);
        let algorithm = propagation(&problem);
        for settings in [settings(seed), stormy(seed)] {
            let mut run = start(&algorithm, &problem, &settings);
            run.advance(14 * 30_000);
            let error = largest_difference(&exact, &run.models());
            assert!(error < 1e-8, "trade-off {trade_off}, faults {}: {error}", !settings.faults.is_none());
            assert_eq!(run.models().row(12), solitary.row(12), "an isolated agent keeps its solitary model");
        }
    }
}

#[test]
fn check_01_d_mean_estimation_is_model_propagation() {
    let (n, p) = (12, 3);
    for seed in 0..3 {
        let (problem, values) = mean_estimation(seed, n, p);
        let solitary = solitary_models(&problem);
        assert!(largest_difference(&solitary, &values) < 1e-12, "the mean of one value is the value");
        let exact = propagation::closed_form(&problem, &solitary);
        assert!(largest_difference(&exact, &central::minimum(&problem)) < 1e-10, "the same minimum");
        let descent = CoordinateDescent::new(CoordinateDescentConfig {
            dimension: p,
            loss: problem.loss,
            trade_off: problem.trade_off,
            start: Start::Zero,
        })
        .expect("good parameters");
        let mut run = start(&descent, &problem, &settings(seed));
        run.advance(n as u64 * 20_000);
        for agent in 0..n - 2 {
            let near = run.models().row(agent).iter().zip(exact.row(agent)).all(|(a, b)| (a - b).abs() < 1e-8);
            assert!(near, "seed {seed} agent {agent}");
        }
    }
}

#[test]
fn check_01_j_exact_inner_steps_reach_the_central_optimum() {
    for loss in [Loss::Logistic, Loss::Squared, Loss::SmoothedHinge, Loss::Hinge] {
        for (seed, trade_off) in [(4, 0.3), (5, 1.0), (6, 3.0)] {
            let problem = Problem { trade_off, ..random_problem(seed, 13, 3, loss) };
            let expected = central::minimum(&problem);
            let algorithm = admm(&problem, Inner::Exact);
            let mut run = start(&algorithm, &problem, &settings(seed));
            run.advance(13 * 4_000);
            let error = largest_difference(&expected, &run.models());
            assert!(error < 1e-6, "{loss:?} {trade_off}: {error}");
        }
    }
}

#[test]
fn check_01_j_ten_gradient_steps_come_close() {
    for loss in SMOOTH {
        let problem = random_problem(7, 13, 3, loss);
        let expected = central::minimum(&problem);
        let algorithm = admm(&problem, Inner::Gradient { steps: 10 });
        let mut run = start(&algorithm, &problem, &settings(7));
        run.advance(13 * 4_000);
        let error = largest_difference(&expected, &run.models());
        assert!(error < 1e-4, "{loss:?}: {error}");
    }
}

/// The largest |Y_ei + Y_ej| over all edges whose two ends took equally many exchanges, and how many did not.
fn unpaired<'w, D: Fn(PeerId) -> <Admm as Algorithm>::Data<'w> + Sync>(
    problem: &Problem,
    run: &Simulation<'w, Admm, D>,
) -> (f64, usize) {
    let (mut worst, mut ahead) = (0.0f64, 0);
    for (a, b, _) in problem.graph.edges() {
        let position = |me, peer| problem.graph.peers(me).position(peer).expect("an edge");
        let (k, l) = (position(a, b), position(b, a));
        let (one, other) = (run.state(a), run.state(b));
        assert!(one.exchanges(k).abs_diff(other.exchanges(l)) <= 1, "one side is more than one exchange ahead");
        if one.exchanges(k) != other.exchanges(l) {
            ahead += 1;
            continue;
        }
        let ((mine, theirs), (other_mine, other_theirs)) = (one.multipliers(k), other.multipliers(l));
        for (x, y) in mine.iter().zip(other_theirs).chain(theirs.iter().zip(other_mine)) {
            worst = worst.max((x + y).abs());
        }
    }
    (worst, ahead)
}

#[test]
fn check_01_k_multipliers_are_paired_throughout() {
    for inner in [Inner::Exact, Inner::default()] {
        let problem = random_problem(8, 13, 3, Loss::Logistic);
        let algorithm = admm(&problem, inner);
        let mut run = start(&algorithm, &problem, &settings(8));
        for _ in 0..13 * 200 {
            run.advance(1);
            let (worst, ahead) = unpaired(&problem, &run);
            assert!(worst < 1e-10 && ahead == 0, "{worst} {ahead}");
        }
        assert!(run.counters().rejected.is_empty(), "{:?}", run.counters());
    }
}

#[test]
fn check_01_k_multipliers_are_paired_under_loss_duplication_and_reordering() {
    let mut caught_ahead = 0;
    for seed in 0..5 {
        let problem = random_problem(seed, 13, 3, [Loss::Logistic, Loss::Squared, Loss::Hinge][seed as usize % 3]);
        let algorithm = admm(&problem, Inner::Exact);
        let mut run = start(&algorithm, &problem, &stormy(seed));
        for _ in 0..13 * 150 {
            run.advance(1);
            let (worst, ahead) = unpaired(&problem, &run);
            assert!(worst < 1e-10, "{worst}");
            caught_ahead += ahead;
        }
        // After the storm every edge catches up, and the optimum is reached as if nothing had happened.
        run.advance(13 * 4_000);
        assert_eq!(unpaired(&problem, &run), (0.0, 0));
        let error = largest_difference(&central::minimum(&problem), &run.models());
        assert!(error < 1e-6, "seed {seed}: {error}");
    }
    assert!(caught_ahead > 0, "the storm never separated two ends: it tests nothing");
}

#[test]
fn the_dead_stall_nobody() {
    let (n, p) = (13, 3);
    let faults = Faults { loss: 0.2, delay_mean: 1.0, delay_max: 5.0, die: 0.25, until: 40.0, ..Faults::default() };
    for seed in 0..3 {
        let problem = random_problem(seed, n, p, Loss::Logistic);
        let settings = Settings { faults: faults.clone(), tolerance: Some(1e-9), ..settings(seed) };
        let gossip = propagation(&problem);
        let mut run = start(&gossip, &problem, &settings);
        assert_eq!(run.advance(n as u64 * 20_000), Status::Quiet, "model propagation, seed {seed}");
        let exchange = admm(&problem, Inner::Exact);
        let mut run = start(&exchange, &problem, &settings);
        assert_eq!(run.advance(n as u64 * 20_000), Status::Quiet, "ADMM, seed {seed}");
        // Edges between survivors are all in use.
        for (a, b, _) in problem.graph.edges().filter(|(a, b, _)| !run.is_dead(*a) && !run.is_dead(*b)) {
            let k = problem.graph.peers(a).position(b).expect("an edge");
            assert!(run.state(a).exchanges(k) > 20, "{a:?} {b:?}: {}", run.state(a).exchanges(k));
        }
        assert!(run.models().values().iter().all(|value| value.is_finite()));
    }
}

#[test]
fn agents_without_data_neighbours_or_company_end_where_they_should() {
    for loss in SMOOTH {
        let problem = random_problem(9, 13, 3, loss);
        let solitary = solitary_models(&problem);
        let (local, gossip, exchange) = (Local, propagation(&problem), admm(&problem, Inner::Exact));
        let mut alone = start(&local, &problem, &settings(9));
        alone.advance(13 * 10);
        assert_eq!(alone.models(), solitary);
        assert_eq!((alone.counters().vectors_sent, alone.ledger(PeerId(0)).releases()), (0, 0), "it sends nothing");
        let mut gossip = start(&gossip, &problem, &settings(9));
        let mut exchange = start(&exchange, &problem, &settings(9));
        gossip.advance(13 * 4_000);
        exchange.advance(13 * 4_000);
        for models in [gossip.models(), exchange.models()] {
            assert_eq!(models.row(11), solitary.row(11), "isolated, with data");
            assert_eq!(models.row(12), [0.0; 3], "isolated, without data");
            assert!(models.row(1).iter().any(|value| *value != 0.0), "without data, but in company");
        }
        assert_eq!(exchange.ledger(PeerId(11)).releases(), 0, "an isolated agent releases nothing");
        assert!(exchange.ledger(PeerId(0)).releases() > 0, "everything sent is in the ledger");
    }
}

#[test]
fn vectors_and_bytes_are_those_of_the_letters() {
    let (n, p, wakes) = (13, 3, 500);
    let problem = random_problem(10, n, p, Loss::Squared);
    let directed = 2 * problem.graph.edge_count() as u64;
    let (gossip, exchange) = (propagation(&problem), admm(&problem, Inner::Exact));
    let mut gossip = start(&gossip, &problem, &settings(10));
    let mut exchange = start(&exchange, &problem, &settings(10));
    // Isolated agents wake, but have nobody to call.
    let isolated = |agent: &PeerId| problem.graph.peers(*agent).is_empty();
    let mut schedule = sottovoce_sim::Schedule::new(10, Clock::Uniform, n);
    let calls = (0..wakes).filter(|_| !isolated(&schedule.next_wake().0)).count() as u64;
    gossip.advance(wakes);
    exchange.advance(wakes);
    let head = 2 + 8;
    let vector = 8 * p as u64;
    assert_eq!(gossip.counters().vectors_sent, directed + 2 * calls);
    assert_eq!(gossip.counters().bytes_sent, (directed + 2 * calls) * (head + vector));
    assert_eq!(exchange.counters().vectors_sent, directed + 4 * calls);
    assert_eq!(exchange.counters().bytes_sent, directed * (head + vector) + 2 * calls * (head + 2 * vector));
}
