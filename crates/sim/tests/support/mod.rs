//! What the simulator's tests share: random problems, settings, short names.

#![allow(dead_code, reason = "each test binary uses its own share of these")]

use sottovoce_algorithms::{
    Dataset, Loss, Problem, Regularization, Shard,
    objective::{block_smoothness, gradient_block},
    personal::{
        admm::{Admm, AdmmConfig, Inner, default_penalty},
        descent::{CoordinateDescent, CoordinateDescentConfig, Start},
        propagation::{ModelPropagation, ModelPropagationConfig},
    },
};
use sottovoce_core::{Algorithm, Coin, Graph, PeerId, Rows};
use sottovoce_sim::{Clock, Faults, Partition, Schedule, Settings, Simulation};

/// All losses that have a gradient everywhere.
pub const SMOOTH: [Loss; 3] = [Loss::Logistic, Loss::Squared, Loss::SmoothedHinge];

/// `quick` of something, or `thorough` in a soak.
pub fn how_many(quick: u64, thorough: u64) -> u64 {
    if std::env::var_os("SOTTOVOCE_SOAK").is_some() { thorough } else { quick }
}

/// Roughly a standard normal number.
pub fn normal(coin: &mut Coin) -> f64 {
    (0..12).map(|_| coin.unit()).sum::<f64>() - 6.0
}

/// Points of agents whose true models are alike, `sizes` of them.
pub fn alike(coin: &mut Coin, sizes: &[usize], p: usize, loss: Loss) -> Dataset {
    let common: Vec<f64> = (0..p).map(|_| normal(coin)).collect();
    let mut data = Dataset::new(p);
    for &m in sizes {
        let own: Vec<f64> = common.iter().map(|value| value + 0.3 * normal(coin)).collect();
        let features: Vec<f64> = (0..m * p).map(|_| normal(coin)).collect();
        let labels: Vec<f64> = features
            .chunks_exact(p)
            .map(|x| {
                let dot = x.iter().zip(&own).map(|(x, own)| x * own).sum::<f64>() + 0.3 * normal(coin);
                if !loss.is_classification() {
                    dot
                } else if dot >= 0.0 {
                    1.0
                } else {
                    -1.0
                }
            })
            .collect();
        data.push_agent(&features, &labels);
    }
    data
}

/// A problem with trade-off 1 and lambda = 0.02.
pub fn problem(data: Dataset, graph: Graph, loss: Loss) -> Problem {
    let regularization = Regularization::Constant(0.02);
    Problem { points_max: data.largest() as f64, data, graph, loss, regularization, trade_off: 1.0 }
}

/// A ring with random chords and random weights; everyone has 2 to 16 points.
pub fn connected_problem(seed: u64, n: usize, p: usize, loss: Loss) -> Problem {
    let mut coin = Coin::new(seed, 1, 0);
    let sizes: Vec<usize> = (0..n).map(|_| 2 + coin.below(15)).collect();
    let data = alike(&mut coin, &sizes, p, loss);
    let mut edges: Vec<(u32, u32, f64)> = Vec::new();
    for a in 0..n as u32 {
        for b in a + 1..n as u32 {
            let on_ring = b == a + 1 || (a, b) == (0, n as u32 - 1);
            if on_ring || coin.unit() < 0.2 {
                edges.push((a, b, 0.2 + coin.unit()));
            }
        }
    }
    problem(data, Graph::from_edges(n, &edges).expect("a graph"), loss)
}

/// The component 0..n-5 is like [`connected_problem`], but agent 1 has no data; then a path of three; then two isolated
/// agents, the very last without data.
pub fn mixed_problem(seed: u64, n: usize, p: usize, loss: Loss) -> Problem {
    let whole = connected_problem(seed, n - 5, p, loss);
    let mut coin = Coin::new(seed, 2, 0);
    let sizes: Vec<usize> = (0..n).map(|k| if k == 1 || k == n - 1 { 0 } else { 2 + coin.below(15) }).collect();
    let split = n as u32 - 5;
    let mut edges: Vec<_> = whole.graph.edges().map(|(a, b, weight)| (a.0, b.0, weight)).collect();
    edges.extend([(split, split + 1, 0.7), (split + 1, split + 2, 1.3)]);
    let data = alike(&mut coin, &sizes, p, loss);
    Problem { trade_off: whole.trade_off, ..problem(data, Graph::from_edges(n, &edges).expect("a graph"), loss) }
}

/// Anything goes: 2 to 50 agents in several components, each with data somewhere; some without data, some isolated; a
/// trade-off in [0.1, 10], lambda in [0.001, 0.1] or 1/m_i.
pub fn any_problem(seed: u64) -> Problem {
    let mut coin = Coin::new(seed, 3, 0);
    let (n, p) = (2 + coin.below(49), 1 + coin.below(8));
    let loss = SMOOTH[coin.below(3)];
    let log_uniform = |coin: &mut Coin, low: f64, high: f64| low * (high / low).powf(coin.unit());
    let trade_off = log_uniform(&mut coin, 0.1, 10.0);
    let lambda = log_uniform(&mut coin, 1e-3, 0.1);
    let mut sizes = Vec::new();
    let mut edges = std::collections::BTreeMap::new();
    let mut from = 0;
    while from < n {
        let count = (1 + coin.below(30)).min(n - from);
        for agent in from..from + count {
            let empty = agent > from && coin.unit() < 0.2;
            sizes.push(if empty { 0 } else { 1 + coin.below(20) });
            if agent > from {
                // A tree first, then some more.
                edges.insert((from + coin.below(agent - from), agent), 0.1 + coin.unit());
                for _ in 0..coin.below(4) {
                    edges.insert((from + coin.below(agent - from), agent), 0.1 + coin.unit());
                }
            }
        }
        from += count;
    }
    let list: Vec<_> = edges.iter().map(|(&(a, b), &weight)| (a as u32, b as u32, weight)).collect();
    let data = alike(&mut coin, &sizes, p, loss);
    let regularization =
        if coin.unit() < 0.3 { Regularization::OneOverPoints } else { Regularization::Constant(lambda) };
    let graph = Graph::from_edges(n, &list).expect("a graph");
    Problem { trade_off, regularization, ..problem(data, graph, loss) }
}

/// One thread, a uniform clock, no tolerance, no faults.
pub fn settings(seed: u64) -> Settings {
    Settings { clock: Clock::Uniform, seed, threads: 1, tolerance: None, faults: Faults::default() }
}

/// Everything that can go wrong for a while, and then all is well.
pub fn storm() -> Faults {
    Faults {
        loss: 0.3,
        duplicate: 0.1,
        delay_mean: 2.0,
        delay_max: 10.0,
        leave: 0.2,
        partitions: vec![Partition { from: 20.0, to: 60.0, share: 0.5 }],
        until: 150.0,
        ..Faults::default()
    }
}

/// Coordinate descent for this problem.
pub fn descent(problem: &Problem, start: Start) -> CoordinateDescent {
    let config = CoordinateDescentConfig {
        dimension: problem.dimension(),
        loss: problem.loss,
        trade_off: problem.trade_off,
        start,
    };
    CoordinateDescent::new(config).expect("good parameters")
}

/// Model propagation for this problem.
pub fn propagation(problem: &Problem) -> ModelPropagation {
    ModelPropagation::new(ModelPropagationConfig { trade_off: problem.trade_off }).expect("a fine trade-off")
}

/// ADMM for this problem.
pub fn admm(problem: &Problem, inner: Inner) -> Admm {
    let penalty = default_penalty(&problem.graph, problem.trade_off);
    Admm::new(AdmmConfig { trade_off: problem.trade_off, penalty, inner }).expect("fine parameters")
}

/// Starts a run.
pub fn start<'w, A>(
    algorithm: &'w A,
    problem: &'w Problem,
    settings: &Settings,
) -> Simulation<'w, A, impl Fn(PeerId) -> A::Data<'w> + Sync + use<'w, A>>
where
    A: for<'d> Algorithm<Data<'d> = Shard<'d>>,
{
    Simulation::start(algorithm, &problem.graph, |agent| problem.shard(agent), settings).expect("an unlimited budget")
}

/// Every agent.
pub fn everyone(problem: &Problem) -> impl Iterator<Item = PeerId> + use<> {
    (0..problem.agents() as u32).map(PeerId)
}

/// The largest difference of a number.
pub fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).fold(0.0, |most, (a, b)| most.max((a - b).abs()))
}

/// The largest difference of a coordinate of any model.
pub fn distance(a: &Rows, b: &Rows) -> f64 {
    largest_difference(a.values(), b.values())
}

/// The wakes, out of `schedule`, that coordinate descent needs from `theta` until every coordinate is within `error` of the
/// optimum: a plain loop of Theta_i <- Theta_i - [grad Q]_i / L_i in which every post arrives at once.
pub fn wakes_needed(problem: &Problem, mut schedule: Schedule, theta: &Rows, optimum: &Rows, error: f64) -> u64 {
    let smoothness: Vec<f64> =
        everyone(problem).map(|agent| block_smoothness(problem, agent).expect("a smooth loss")).collect();
    let (mut theta, mut block) = (theta.clone(), vec![0.0; problem.dimension()]);
    let mut wakes = 0;
    while distance(&theta, optimum) > error {
        let (agent, _) = schedule.next_wake();
        wakes += 1;
        assert!(wakes < problem.agents() as u64 * 20_000, "it does not converge");
        if problem.graph.peers(agent).is_empty() {
            continue;
        }
        gradient_block(problem, agent, &theta, &mut block);
        let step = 1.0 / smoothness[agent.index()];
        theta.row_mut(agent.index()).iter_mut().zip(&block).for_each(|(theta, g)| *theta -= step * g);
    }
    wakes
}
