//! What a hop of a token costs through the contract.
//!
//! | case | |
//! |---|---|
//! | sums | a million hops of a private sum over 100,000 agents, as a ratio against a bare loop that does the same arithmetic on plain arrays |
//! | sgd | 20,000 hops of private descent over 2,000 agents with 8 points each in 8 dimensions; `benches/peers/numba_walk.py` sets it beside numba |
//!
//! `cargo bench -p sottovoce-sim --bench walk` prints both; `-- sgd --json` prints a line for programs.

use sottovoce_algorithms::token::ring::RingUnit;
use sottovoce_algorithms::token::walk::{Beyond, Goal, Movement, Sums, SumsConfig, Walk, WalkConfig};
use sottovoce_algorithms::token::walk_sgd::{Gradient, GradientConfig};
use sottovoce_algorithms::{Bounds, Dataset, Loss, Observations, Points, Shard};
use sottovoce_core::{Coin, Graph, PeerId};
use sottovoce_privacy::{Event, Gate, Idealized, Noise, Plan, Simulated, Sum, Track};
use sottovoce_sim::{Clock, Faults, Settings, Simulation, Status};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const LAW: Event = Event::Gaussian { noise_multiplier: 2.0 };
const CONTRIBUTIONS: u32 = 12;
const ROUNDS: usize = 7;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let json = words.iter().any(|word| word == "--json");
    let wanted = |case: &str| !words.iter().any(|word| ["sums", "sgd"].contains(&&**word) && word != case);
    if wanted("sums") {
        sums(json);
    }
    if wanted("sgd") {
        sgd(json);
    }
}

fn config(members: usize, hops: u64) -> WalkConfig {
    WalkConfig {
        members: members as u32,
        hops,
        tokens: 1,
        contributions: Some(CONTRIBUTIONS),
        law: Some(LAW),
        beyond: Beyond::Noise,
        track: Track::Token,
        timeout: None,
    }
}

fn plan() -> Arc<Plan> {
    let tracks = vec![(Track::Token, vec![LAW; CONTRIBUTIONS as usize])];
    Arc::new(Plan::with_tracks(tracks, f64::INFINITY, 0.5, &Sum).expect("any budget"))
}

fn settings(seed: u64) -> Settings {
    Settings { clock: Clock::Uniform, seed, threads: 1, tolerance: None, faults: Faults::default() }
}

fn gates(plan: &Arc<Plan>, seed: u64) -> impl Fn(PeerId) -> Gate<Simulated> + Sync + use<'_> {
    move |id| Gate::planned(plan.clone(), Simulated::Idealized(Idealized::new(seed, id.0)))
}

fn sums(json: bool) {
    let (members, hops) = (100_000, 1_000_000u64);
    let mut coin = Coin::new(1, 0, 0);
    let values: Vec<f64> = (0..members).map(|_| coin.unit()).collect();
    let range = Some(Bounds { low: 0.0, high: 1.0 });
    let sums = SumsConfig { columns: 1, range, unit: RingUnit::Record, goal: Goal::Sum, private: true };
    let sums = Sums::new(sums, members as u32).expect("sums");
    let walk = Walk::new(config(members, hops), sums).expect("a walk");
    let (graph, plan) = (Graph::Complete { n: members as u32 }, plan());
    let data = |id: PeerId| {
        let value = std::slice::from_ref(&values[id.index()]);
        Observations { points: Points { dimension: 1, features: value, labels: value }, bounds: None }
    };
    let mut ratios = Vec::new();
    for round in 0..ROUNDS as u64 {
        let mut bare = Bare::new(&values, sums.sensitivity(), round);
        let bare_time = seconds(|| bare.advance(hops));
        black_box(bare.tau);
        let mut run =
            Simulation::start_behind(gates(&plan, round), &walk, &graph, data, &settings(round)).expect("starts");
        // The last hop tells everyone: those letters are no hops.
        let time = seconds(|| {
            black_box(run.advance(hops - 100));
        });
        ratios.push((time / bare_time, bare_time, time));
    }
    ratios.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (ratio, bare, time) = ratios[ROUNDS / 2];
    let [bare, ns] = [bare, time].map(|time| 1e9 * time / hops as f64);
    if json {
        println!("{{\"case\": \"sums\", \"bare\": {bare:.1}, \"threads_1\": {ns:.1}, \"ratio\": {ratio:.3}}}");
    } else {
        println!(
            "a hop of a private sum over {members} agents, nanoseconds\n  bare loop            {bare:10.1}\n  simulator, 1 thread  {ns:10.1}   {ratio:.2} x the bare loop"
        );
    }
}

/// The same arithmetic on plain arrays: whose turn it is, its counter, its value, its noise, the grid.
struct Bare<'v> {
    values: &'v [f64],
    made: Vec<u32>,
    noise: Vec<Idealized>,
    sensitivity: f64,
    coin: Coin,
    tau: f64,
    contributions: u64,
}

impl<'v> Bare<'v> {
    fn new(values: &'v [f64], sensitivity: f64, seed: u64) -> Self {
        let noise = (0..values.len() as u32).map(|id| Idealized::new(seed, id)).collect();
        Bare {
            values,
            made: vec![0; values.len()],
            noise,
            sensitivity,
            coin: Coin::new(seed, 0, 0),
            tau: 0.0,
            contributions: 0,
        }
    }

    fn advance(&mut self, hops: u64) {
        const GRID: f64 = 1.0 / (1u64 << 20) as f64;
        for _ in 0..hops {
            let holder = self.coin.below(self.values.len());
            if self.made[holder] < CONTRIBUTIONS {
                self.made[holder] += 1;
                self.contributions += 1;
                self.tau += libm::rint(self.values[holder].clamp(0.0, 1.0) / GRID) * GRID;
            }
            let mut tau = [self.tau];
            self.noise[holder].perturb(LAW, self.sensitivity, &mut tau);
            self.tau = libm::rint(tau[0] / GRID) * GRID;
        }
    }
}

fn sgd(json: bool) {
    let (members, hops, dimension) = (2000, 20_000u64, 8);
    let mut coin = Coin::new(1, 0, 0);
    let mut data = Dataset::new(dimension);
    for _ in 0..members {
        let mut features: Vec<f64> = (0..8 * dimension).map(|_| coin.unit() - 0.5).collect();
        for x in features.chunks_exact_mut(dimension) {
            let length = x.iter().map(|x| x * x).sum::<f64>().sqrt();
            x.iter_mut().for_each(|x| *x /= length);
        }
        let labels: Vec<f64> = (0..8).map(|_| if coin.unit() < 0.5 { 1.0 } else { -1.0 }).collect();
        data.push_agent(&features, &labels);
    }
    let (loss, radius, regularization) = (Loss::Logistic, None, 0.0);
    let gradient =
        GradientConfig { dimension, loss, step: 0.03, radius, regularization, clip: Some(0.4), bound: Some(1.0) };
    let walk = Walk::new(config(members, hops), Gradient::new(gradient).expect("a step")).expect("a walk");
    let (graph, plan) = (Graph::Complete { n: members as u32 }, plan());
    let shard = |id: PeerId| Shard { points: data.points(id), loss, regularization: 0.0, confidence: 1.0 };
    let mut times = Vec::new();
    for round in 0..5 * ROUNDS as u64 {
        let mut run =
            Simulation::start_behind(gates(&plan, round), &walk, &graph, shard, &settings(round)).expect("starts");
        times.push(seconds(|| {
            assert_eq!(run.advance(2 * hops), Status::Done);
        }));
    }
    let best = times.into_iter().fold(f64::INFINITY, f64::min);
    let ns = 1e9 * best / hops as f64;
    if json {
        println!("{{\"case\": \"sgd\", \"threads_1\": {ns:.1}}}");
    } else {
        println!(
            "a hop of private descent, {members} agents, 8 points, d = {dimension}: {ns:.1} nanoseconds, {best:.4} s in all"
        );
    }
}

fn seconds(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64()
}
