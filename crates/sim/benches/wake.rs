//! What a wake costs through the contract, as a ratio against a bare loop that does the same arithmetic on plain arrays, in
//! the same process and run.
//!
//! `cargo bench -p sottovoce-sim --bench wake` prints all cases; `-- small`, `-- private` or `-- million` picks one, and
//! `-- --json` prints a line for programs.

use sottovoce_algorithms::{
    Dataset, Loss, Problem, Regularization,
    personal::descent::{
        CoordinateDescent, CoordinateDescentConfig, PrivateCoordinateDescent, PrivateCoordinateDescentConfig, Start,
    },
};
use sottovoce_core::{Coin, Graph, PeerId};
use sottovoce_privacy::{Event, Gate, Idealized, Plan, Simulated, Tight, sensitivity::Norm};
use sottovoce_sim::{Clock, Faults, Schedule, Settings, Simulation};
use std::sync::Arc;
use std::time::Instant;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let json = words.iter().any(|word| word == "--json");
    let wants = |name: &str| words.iter().all(|word| word == "--json") || words.iter().any(|word| word == name);
    if wants("small") {
        // n = 100, p = 100, 10 to 100 points, 38 neighbours: everything stays in the caches.
        report("small", &case(100, 100, 38, |coin| 10 + coin.below(91)), 500, 31, &[1], json);
    }
    if wants("private") {
        report_private(&case(100, 100, 38, |coin| 10 + coin.below(91)), 500, 31, json);
    }
    if wants("million") {
        // 1,000,000 agents, p = 20, 10 points, 10 neighbours: every wake comes from memory.
        report("million", &case(1_000_000, 20, 10, |_| 10), 1, 9, &[1, 2], json);
    }
}

/// A circulant graph with unit weights and random data.
fn case(agents: usize, dimension: usize, neighbours: usize, points: impl Fn(&mut Coin) -> usize) -> Problem {
    let mut data = Dataset::new(dimension);
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    for agent in 0..agents as u32 {
        let mut coin = Coin::new(1, agent, 0);
        let m = points(&mut coin);
        features.clear();
        features.extend((0..m * dimension).map(|_| 2.0 * coin.unit() - 1.0));
        labels.clear();
        labels.extend((0..m).map(|_| if coin.unit() < 0.5 { -1.0 } else { 1.0 }));
        data.push_agent(&features, &labels);
    }
    let list: Vec<_> = (0..agents as u32)
        .flat_map(|a| (1..=neighbours as u32 / 2).map(move |k| (a, (a + k) % agents as u32, 1.0)))
        .collect();
    let graph = Graph::from_edges(agents, &list).expect("a circulant graph");
    let points_max = data.largest() as f64;
    Problem {
        data,
        graph,
        loss: Loss::Logistic,
        regularization: Regularization::OneOverPoints,
        trade_off: 1.0,
        points_max,
    }
}

/// Runs all contestants in turn, `rounds` times, and compares the best round of each: other programs can only slow one down.
fn report(name: &str, problem: &Problem, wakes_per_agent: u64, rounds: usize, threads: &[usize], json: bool) {
    let wakes = wakes_per_agent * problem.agents() as u64;
    let algorithm = CoordinateDescent::new(CoordinateDescentConfig {
        dimension: problem.dimension(),
        loss: problem.loss,
        trade_off: problem.trade_off,
        start: Start::Zero,
    })
    .expect("good parameters");
    let settings =
        |threads| Settings { clock: Clock::Uniform, seed: 1, threads, tolerance: None, faults: Faults::default() };
    let before = resident_bytes();
    let mut simulations: Vec<_> = threads
        .iter()
        .map(|&threads| {
            Simulation::start(&algorithm, &problem.graph, |id| problem.shard(id), &settings(threads))
                .expect("no budget is set")
        })
        .collect();
    let grown = resident_bytes().saturating_sub(before) as f64 / simulations.len() as f64;
    let mut bare = bare::Loop::new(problem);
    let mut bare_times = Vec::new();
    let mut times = vec![Vec::new(); simulations.len()];
    for _ in 0..rounds {
        bare_times.push(seconds(|| bare.advance(wakes)));
        for (simulation, times) in simulations.iter_mut().zip(&mut times) {
            times.push(seconds(|| {
                simulation.advance(wakes);
            }));
        }
    }
    for simulation in &simulations {
        let worst = (0..problem.agents() as u32)
            .flat_map(|id| simulation.model(PeerId(id)).iter().zip(bare.model(id as usize)))
            .map(|(a, b)| (a - b).abs())
            .fold(0.0, f64::max);
        assert!(worst < 1e-9, "the bare loop must do the same arithmetic; models differ by {worst:e}");
    }
    let nanoseconds = |times: &Vec<f64>| 1e9 * best(times) / wakes as f64;
    let bare_ns = nanoseconds(&bare_times);
    let ns: Vec<f64> = times.iter().map(nanoseconds).collect();
    if json {
        let threads: Vec<_> = threads.iter().zip(&ns).map(|(t, ns)| format!("\"threads_{t}\": {ns:.1}")).collect();
        println!("{{\"case\": \"{name}\", \"bare\": {bare_ns:.1}, {}}}", threads.join(", "));
        return;
    }
    println!("{name}: nanoseconds per wake, best of {rounds} rounds of {wakes} wakes");
    println!("  bare loop            {bare_ns:10.1}");
    for (t, t_ns) in threads.iter().zip(&ns) {
        println!(
            "  simulator, {t} thread(s) {t_ns:8.1}   {:.2} x the bare loop; speed {:.2} x one thread",
            t_ns / bare_ns,
            ns[0] / t_ns
        );
    }
    println!("  beside the data and the graph: {:.0} MB", grown / 1e6);
}

/// Private coordinate descent, with idealized Gaussian noise at every wake, against coordinate descent.
fn report_private(problem: &Problem, wakes_per_agent: u64, rounds: usize, json: bool) {
    let wakes = wakes_per_agent * problem.agents() as u64;
    let settings = Settings { clock: Clock::Uniform, seed: 1, threads: 1, tolerance: None, faults: Faults::default() };
    let (dimension, loss, trade_off) = (problem.dimension(), problem.loss, problem.trade_off);
    let config = CoordinateDescentConfig { dimension, loss, trade_off, start: Start::Zero };
    let plain = CoordinateDescent::new(config).expect("good parameters");
    let private = PrivateCoordinateDescent::new(PrivateCoordinateDescentConfig {
        dimension,
        loss,
        trade_off,
        clip: 1.0,
        norm: Norm::L2,
        feature_bound: (dimension as f64).sqrt(),
        l1_features: false,
        warm: None,
    })
    .expect("good parameters");
    // More updates than any agent will make.
    let steps = vec![Event::Gaussian { noise_multiplier: 100.0 }; 2 * rounds * wakes_per_agent as usize];
    let plan = Arc::new(Plan::new(steps, 1e6, 1e-3, &Tight).expect("a large budget"));
    let gate = |id: PeerId| Gate::planned(plan.clone(), Simulated::Idealized(Idealized::new(1, id.0)));
    let shard = |id| problem.shard(id);
    let mut plain = Simulation::start(&plain, &problem.graph, shard, &settings).expect("no budget is set");
    let mut private = Simulation::start_behind(gate, &private, &problem.graph, shard, &settings).expect("planned");
    let (mut plain_times, mut private_times) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        plain_times.push(seconds(|| {
            plain.advance(wakes);
        }));
        private_times.push(seconds(|| {
            private.advance(wakes);
        }));
    }
    let released: u64 = (0..problem.agents() as u32).map(|id| private.ledger(PeerId(id)).releases()).sum();
    assert_eq!(released, rounds as u64 * wakes, "every wake is an update");
    let [plain_ns, private_ns] = [&plain_times, &private_times].map(|times| 1e9 * best(times) / wakes as f64);
    if json {
        println!("{{\"case\": \"private\", \"plain\": {plain_ns:.1}, \"private\": {private_ns:.1}}}");
        return;
    }
    println!("private: nanoseconds per wake, best of {rounds} rounds of {wakes} wakes");
    println!("  coordinate descent   {plain_ns:10.1}");
    println!("  with noise           {private_ns:10.1}   {:.2} x without", private_ns / plain_ns);
}

fn seconds(work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64()
}

fn best(times: &[f64]) -> f64 {
    times.iter().copied().fold(f64::INFINITY, f64::min)
}

/// Memory of this process that is in use, on Linux; zero elsewhere.
fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm")
        .ok()
        .and_then(|text| text.split_whitespace().nth(1).and_then(|pages| pages.parse::<usize>().ok()));
    pages.unwrap_or(0) * 4096
}

/// The same algorithm as a reader of the paper would write it for speed: plain arrays, one loop, the same blocked and vectorised
/// inner loops, no agents, no gate, no messages.
mod bare {
    use super::*;
    use sottovoce_algorithms::{Points, kernel, kernel::Simd, objective};

    pub struct Loop<'p> {
        problem: &'p Problem,
        schedule: Schedule,
        theta: Vec<f64>,
        alpha: Vec<f64>,
        inverse_degree: Vec<f64>,
        offsets: Vec<usize>,
        peers: Vec<u32>,
        weights: Vec<f64>,
        average: Vec<f64>,
        gradient: Vec<f64>,
    }

    impl<'p> Loop<'p> {
        pub fn new(problem: &'p Problem) -> Self {
            let (n, p) = (problem.agents(), problem.dimension());
            let mut this = Loop {
                problem,
                schedule: Schedule::new(1, Clock::Uniform, n),
                theta: vec![0.0; n * p],
                alpha: Vec::new(),
                inverse_degree: Vec::new(),
                offsets: vec![0],
                peers: Vec::new(),
                weights: Vec::new(),
                average: vec![0.0; p],
                gradient: vec![0.0; p],
            };
            for id in (0..n as u32).map(PeerId) {
                let shard = problem.shard(id);
                let smoothness = objective::local_smoothness(&shard).expect("a smooth loss");
                this.alpha.push(1.0 / (1.0 + problem.trade_off * shard.confidence * smoothness));
                this.inverse_degree.push(1.0 / problem.graph.peers(id).weighted_degree());
                for edge in problem.graph.peers(id).iter() {
                    this.peers.push(edge.peer.0);
                    this.weights.push(edge.weight);
                }
                this.offsets.push(this.peers.len());
            }
            this
        }

        pub fn model(&self, agent: usize) -> &[f64] {
            let p = self.average.len();
            &self.theta[agent * p..(agent + 1) * p]
        }

        pub fn advance(&mut self, wakes: u64) {
            for _ in 0..wakes {
                let (id, _) = self.schedule.next_wake();
                self.step(id.index());
            }
        }

        fn step(&mut self, i: usize) {
            let points = self.problem.data.points(PeerId(i as u32));
            let weight = self.problem.trade_off * (points.len() as f64 / self.problem.points_max);
            let (from, to) = (self.offsets[i], self.offsets[i + 1]);
            kernel::vectorized(Step {
                i,
                points,
                weight,
                alpha: self.alpha[i],
                inverse_degree: self.inverse_degree[i],
                peers: &self.peers[from..to],
                weights: &self.weights[from..to],
                theta: &mut self.theta,
                average: &mut self.average,
                gradient: &mut self.gradient,
            });
        }
    }

    struct Step<'a> {
        i: usize,
        points: Points<'a>,
        weight: f64,
        alpha: f64,
        inverse_degree: f64,
        peers: &'a [u32],
        weights: &'a [f64],
        theta: &'a mut [f64],
        average: &'a mut [f64],
        gradient: &'a mut [f64],
    }

    impl kernel::Arithmetic for Step<'_> {
        type Output = ();

        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            let Step { i, points, weight, alpha, inverse_degree, peers, weights, theta, average, gradient } = self;
            let (p, m) = (points.dimension, points.len() as f64);
            average.fill(0.0);
            gradient.fill(0.0);
            let row = |k: usize| (weights[k], &theta[peers[k] as usize * p..][..p]);
            kernel::add_weighted_rows(simd, peers.len(), row, average);
            kernel::add_gradient_inline(simd, Loss::Logistic, points, &theta[i * p..(i + 1) * p], gradient);
            let keep = 1.0 - alpha - 2.0 * alpha * weight / m;
            for ((old, average), g) in theta[i * p..(i + 1) * p].iter_mut().zip(&*average).zip(&*gradient) {
                *old = keep * *old + alpha * inverse_degree * average - alpha * weight / m * g;
            }
        }
    }
}
