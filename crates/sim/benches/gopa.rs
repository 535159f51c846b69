//! What sums under masks cost through the contract, without proofs; secrets of pairs come from the seed.
//!
//! | case | |
//! |---|---|
//! | sum | 10,000 members with 20 picks each and one number, from the first key to the sum; `benches/peers/numpy_gopa.py` sets it beside numpy |
//! | vectors | 1,000 members with 20 picks each and 1,000 numbers |
//!
//! `cargo bench -p sottovoce-sim --bench gopa` prints both; `-- sum --json` prints a line for programs. What keys and pads cost by themselves is in
//! `cargo run --release -p sottovoce-crypto --example costs`.

use sottovoce_algorithms::token::ring::RingUnit;
use sottovoce_algorithms::token::walk::Goal;
use sottovoce_algorithms::{Bounds, Observations, Points};
use sottovoce_core::{Coin, Graph, PeerId};
use sottovoce_encrypted::gopa::{Gopa, GopaConfig, State};
use sottovoce_privacy::{Event, Gate, Idealized, Plan, Simulated, Sum, Track};
use sottovoce_sim::{Clock, Faults, Settings, Simulation, Status};
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

const ROUNDS: u64 = 5;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let json = words.iter().any(|word| word == "--json");
    let wanted = |case: &str| !words.iter().any(|word| ["sum", "vectors"].contains(&&**word) && word != case);
    if wanted("sum") {
        sums("sum", 10_000, 1, json);
    }
    if wanted("vectors") {
        sums("vectors", 1_000, 1_000, json);
    }
}

fn seconds(work: impl FnOnce()) -> f64 {
    let began = Instant::now();
    work();
    began.elapsed().as_secs_f64()
}

fn sums(case: &str, members: u32, columns: u32, json: bool) {
    let neighbours = 20;
    let config = GopaConfig {
        members,
        finishing: members,
        others: members - 1,
        neighbours,
        threshold: 7,
        rounds: 1,
        board: PeerId(0),
        columns,
        range: Bounds { low: 0.0, high: 1.0 },
        unit: RingUnit::Record,
        goal: Goal::Mean,
        learns: None,
        noise: Some(4.0),
        timeout: 100.0,
    };
    let gopa = Gopa::new(config).expect("good parameters");
    let mut coin = Coin::new(1, 0, 0);
    let dimension = columns as usize;
    let values: Vec<f64> = (0..members as usize * dimension).map(|_| coin.unit()).collect();
    let data = |id: PeerId| {
        let row = &values[id.index() * dimension..][..dimension];
        Observations { points: Points { dimension, features: row, labels: &row[..1] }, bounds: None }
    };
    let steps = vec![(Track::Sums, vec![Event::Gaussian { noise_multiplier: 4.0 }])];
    let plan = Arc::new(Plan::with_tracks(steps, f64::INFINITY, 0.5, &Sum).expect("any budget"));
    let graph = Graph::Complete { n: members };
    let mut best = f64::INFINITY;
    for round in 0..ROUNDS {
        let gate = |id: PeerId| Gate::planned(plan.clone(), Simulated::Idealized(Idealized::new(round, id.0)));
        let settings =
            Settings { clock: Clock::Uniform, seed: round, threads: 1, tolerance: None, faults: Faults::default() };
        let time = seconds(|| {
            let mut run = Simulation::start_behind(gate, &gopa, &graph, data, &settings).expect("starts");
            assert_eq!(run.advance(100 * u64::from(members)), Status::Done);
            assert!(State::knows(run.state(PeerId(1))));
            black_box(run.models());
        });
        best = best.min(time);
    }
    if json {
        println!("{{\"case\": \"{case}\", \"seconds\": {best:.4}}}");
    } else {
        println!(
            "sums of {columns} numbers of {members} members with {neighbours} picks each, from the first key to the estimates: {best:.3} s"
        );
    }
}
