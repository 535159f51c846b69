//! What a gradient step of POLAR-SGD costs through the contract, as a ratio against a bare loop that does the same arithmetic on plain arrays, in the same
//! process and run.
//!
//! | case | |
//! |---|---|
//! | figure | the size of the paper's figure: 100 clients with 1,000 points, 5 servers, 10 coordinates, batches of 10, Delta = 10 |
//! | wide | the same with 1,000 coordinates, and 20 points for each client |
//! | crowd | 10,000 clients with 20 points |
//!
//! The bare loop draws the same weights, vectors and batches by the same functions, takes the same gradients, and sums, projects and averages. It writes no letters, keeps no
//! ledger, remembers no client's part of a round and has no pads. `cargo bench -p sottovoce-sim --bench polar` prints all; `-- wide` picks one, `-- --json`
//! prints a line for programs.

use sottovoce_algorithms::{Dataset, Loss, Shard, vector::add_scaled};
use sottovoce_core::{Coin, Graph, PeerId};
use sottovoce_encrypted::polar::client::gradient;
use sottovoce_encrypted::polar::perturbation::Choices;
use sottovoce_encrypted::polar::{CompactSet, Consensus, Polar, PolarConfig, Scope, StepSize, Variant, Weights};
use sottovoce_privacy::{Gate, Simulated};
use sottovoce_sim::{Clock, Faults, Settings, Simulation, Status};
use std::hint::black_box;
use std::time::Instant;

const SERVERS: u32 = 5;
const EVERY: u32 = 10;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let json = words.iter().any(|word| word == "--json");
    let wants = |name: &str| words.iter().all(|word| word == "--json") || words.iter().any(|word| word == name);
    for (name, clients, points, dimension, rounds, repeats) in
        [("figure", 100, 1000, 10, 40, 15), ("wide", 100, 20, 1000, 2, 9), ("crowd", 10_000, 20, 10, 2, 5)]
    {
        if wants(name) {
            report(name, &Case::new(clients, points, dimension, rounds), repeats, json);
        }
    }
}

struct Case {
    data: Dataset,
    polar: Polar,
}

impl Case {
    fn new(clients: u32, points: usize, dimension: usize, rounds: u32) -> Case {
        let mut data = Dataset::new(dimension);
        for client in 0..clients {
            let mut coin = Coin::new(1, client, 0);
            let features: Vec<f64> = (0..points * dimension).map(|_| 2.0 * coin.unit() - 1.0).collect();
            let labels: Vec<f64> = (0..points).map(|_| coin.unit()).collect();
            data.push_agent(&features, &labels);
        }
        (0..SERVERS).for_each(|_| data.push_agent(&[], &[]));
        let polar = Polar::new(PolarConfig {
            agents: clients + SERVERS,
            servers: (clients..clients + SERVERS).map(PeerId).collect(),
            servers_each: SERVERS as usize,
            colluders: 1,
            dimension,
            variant: Variant::MinimumWait,
            scope: Scope::Block,
            weights: Weights::PerNumber,
            consensus_every: EVERY,
            rounds,
            weight: 5.0,
            weight_bound: 50.0,
            noise_bound: 10.0,
            set: CompactSet::Box(10.0),
            start: 0.0,
            batch: 10,
            step: StepSize { first: 1e-6, offset: 10.0, power: 1.0 },
            consensus: Consensus::Secure,
            links: Vec::new(),
            timeout: 1e9,
            private: None,
        });
        Case { data, polar: polar.expect("good parameters") }
    }

    fn shard(&self, id: PeerId) -> Shard<'_> {
        Shard { points: self.data.points(id), loss: Loss::Squared, regularization: 0.0, confidence: 1.0 }
    }

    /// Through the contract.
    fn simulated(&self, seed: u64) -> f64 {
        let graph = Graph::Complete { n: self.polar.config().agents };
        let settings = Settings { clock: Clock::Poisson, seed, threads: 1, tolerance: None, faults: Faults::default() };
        let gates = |_: PeerId| Gate::unplanned(Simulated::None);
        let mut run =
            Simulation::start_behind(gates, &self.polar, &graph, |id| self.shard(id), &settings).expect("starts");
        let time = seconds(|| assert_eq!(run.advance(u64::MAX), Status::Done));
        assert!(run.counters().rejected.is_empty());
        black_box(run.model(PeerId(0)));
        time
    }

    /// The same on plain arrays.
    fn bare(&self, seed: u64) -> f64 {
        let config = self.polar.config();
        let (servers, dimension) = (config.servers.len(), config.dimension);
        let clients = self.polar.clients();
        let slots = EVERY as usize * servers;
        let mut x = vec![0.0; servers * dimension];
        let (mut totals, mut uploads) = (x.clone(), x.clone());
        let (mut weights, mut drawn) = (vec![0.0; clients * slots], vec![0; clients * EVERY as usize]);
        let (mut slope, mut batch) = (vec![0.0; dimension], Vec::new());
        let mut seeds = vec![[0u8; 32]; clients];
        let time = seconds(|| {
            for round in 0..config.rounds {
                for client in 0..clients {
                    let mut coin = Coin::new(seed, client as u32, u64::from(round));
                    seeds[client].as_chunks_mut::<8>().0.iter_mut().for_each(|word| *word = coin.bits().to_le_bytes());
                    let mut choices = Choices::new(&seeds[client], 0);
                    choices.weights(&mut weights[client * slots..][..slots], 1, config.weight, config.weight_bound);
                    drawn[client * EVERY as usize..][..EVERY as usize].fill_with(|| choices.below(servers));
                }
                for step in 0..EVERY as usize {
                    totals.fill(0.0);
                    for client in 0..clients {
                        let shard = self.shard(PeerId(client as u32));
                        let mut choices = Choices::new(&seeds[client], 1 + step as u64);
                        choices.sample(config.batch, shard.points.len(), &mut batch);
                        choices.vectors(&mut uploads, dimension, config.noise_bound);
                        let at = drawn[client * EVERY as usize + step];
                        gradient(&shard, Some(&batch), &x[at * dimension..][..dimension], &mut slope);
                        for place in 0..servers {
                            let upload = &mut uploads[place * dimension..][..dimension];
                            add_scaled(upload, weights[client * slots + step * servers + place], &slope);
                            add_scaled(&mut totals[(client + place) % servers * dimension..][..dimension], 1.0, upload);
                        }
                    }
                    add_scaled(&mut x, -self.polar.step_size(round), &totals);
                    self.polar.project(&mut x);
                }
                for k in 0..dimension {
                    let whole = |place: usize| libm::rint(x[place * dimension + k] * 4294967296.0) as i64;
                    let mean = (0..servers).map(whole).sum::<i64>() as f64 / 4294967296.0 / servers as f64;
                    (0..servers).for_each(|place| x[place * dimension + k] = mean);
                }
            }
        });
        black_box(&x);
        time
    }
}

/// How long the processor worked on it; where the system does not tell, how long it took.
fn seconds(work: impl FnOnce()) -> f64 {
    let (start, on_processor) = (Instant::now(), processor_seconds());
    work();
    match (on_processor, processor_seconds()) {
        (Some(before), Some(after)) => after - before,
        _ => start.elapsed().as_secs_f64(),
    }
}

/// Time on the processor so far, of the one thread there is; on Linux.
fn processor_seconds() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    text.split_whitespace().next()?.parse::<f64>().ok().map(|nanoseconds| 1e-9 * nanoseconds)
}

/// The best of all repeats of each, which take turns.
fn report(name: &str, case: &Case, repeats: u64, json: bool) {
    let mut best = [f64::INFINITY; 2];
    for repeat in 0..repeats {
        best[0] = best[0].min(case.bare(repeat));
        best[1] = best[1].min(case.simulated(repeat));
    }
    let steps = f64::from(case.polar.steps()) * case.polar.clients() as f64;
    let [bare, through] = best.map(|time| 1e9 * time / steps);
    let ratio = through / bare;
    if json {
        println!("{{\"case\": \"{name}\", \"bare\": {bare:.1}, \"threads_1\": {through:.1}, \"ratio\": {ratio:.3}}}");
    } else {
        let (clients, dimension) = (case.polar.clients(), case.polar.config().dimension);
        println!(
            "{name}: a client's gradient step, {clients} clients, {SERVERS} servers, {dimension} coordinates, nanoseconds\n  bare loop            {bare:10.1}\n  simulator, 1 thread  {through:10.1}   {ratio:.2} x the bare loop"
        );
    }
}
