//! A histogram by a token on a ring, run by the simulator: CHECK 05.d and 05.e.

use sottovoce_algorithms::token::histogram::{BadHistogram, HistogramConfig, RingHistogram};
use sottovoce_algorithms::{Bounds, Observations, Points};
use sottovoce_core::{Graph, PeerId};
use sottovoce_privacy::{Event, Gate, Idealized, Plan, Simulated, Sum, Track};
use sottovoce_sim::{Clock, Faults, Settings, Simulation, Status};
use std::sync::Arc;

const MEMBERS: u32 = 40;
const ROUNDS: u32 = 3;
const BINS: u32 = 5;
const LOCAL: f64 = 1.2;

fn config(local_epsilon: Option<f64>) -> HistogramConfig {
    let range = Bounds { low: 0.0, high: 1.0 };
    HistogramConfig { members: MEMBERS, rounds: ROUNDS, range, bins: BINS, local_epsilon }
}

/// Rows of everyone, more in the first cells; one member has three.
fn values() -> Vec<Vec<f64>> {
    let value = |k: u32| (f64::from(k) / f64::from(MEMBERS)).powi(2);
    (0..MEMBERS).map(|k| if k == 7 { vec![value(k), 0.99, 7.0] } else { vec![value(k)] }).collect()
}

fn truth() -> Vec<f64> {
    let mut counts = vec![0.0; BINS as usize];
    let range = Bounds { low: 0.0, high: 1.0 };
    values().iter().flatten().for_each(|value| counts[range.cell(BINS, *value)] += 1.0);
    counts
}

/// The estimate, and the counts themselves.
fn run(config: HistogramConfig, seed: u64, faults: Faults) -> Vec<f64> {
    let histogram = RingHistogram::new(config).expect("fine");
    let graph = Graph::complete(MEMBERS as usize).expect("a graph");
    let values = values();
    let plan = config.local_epsilon.map(|epsilon| {
        let answers = vec![Event::RandomizedResponse { epsilon }; ROUNDS as usize];
        Arc::new(Plan::with_tracks(vec![(Track::Token, answers)], f64::INFINITY, 0.5, &Sum).expect("any budget"))
    });
    let gates = |id: PeerId| match &plan {
        Some(plan) => Gate::planned(plan.clone(), Simulated::Idealized(Idealized::new(seed, id.0))),
        None => Gate::unplanned(Simulated::None),
    };
    let data = |id: PeerId| {
        let own = &values[id.index()];
        let points = Points { dimension: 1, features: own, labels: own };
        Observations { points, bounds: Some(Bounds { low: 0.0, high: 1.0 }) }
    };
    let settings = Settings { clock: Clock::Uniform, seed, threads: 1, tolerance: None, faults };
    let mut run = Simulation::start_behind(gates, &histogram, &graph, data, &settings).expect("it starts");
    assert_eq!(run.advance(200_000), Status::Done);
    for id in (0..MEMBERS).map(PeerId) {
        assert_eq!(run.ledger(id).releases(), u64::from(ROUNDS), "one charge in each round");
        assert_eq!(run.model(id), run.model(PeerId(0)), "everyone is told the same");
    }
    run.model(PeerId(0)).to_vec()
}

#[test]
fn without_privacy_it_is_exact_whatever_the_weather() {
    assert_eq!(run(config(None), 1, Faults::default()), truth());
    let storm = Faults {
        loss: 0.3,
        duplicate: 0.2,
        delay_mean: 0.5,
        delay_max: 5.0,
        leave: 0.2,
        until: 100.0,
        ..Faults::default()
    };
    assert_eq!(run(config(None), 2, storm), truth());
}

/// Unbiased within 4 standard errors, where the printed formula, which subtracts b / d alone, is far off; and the variance within 5%, summed over the cells.
#[test]
fn check_05_d_and_e_the_estimate_is_unbiased_and_spreads_by_the_formula() {
    let histogram = RingHistogram::new(config(Some(LOCAL))).expect("fine");
    let (runs, truth) = (3000u64, truth());
    let all: Vec<Vec<f64>> = (0..runs).map(|seed| run(config(Some(LOCAL)), seed, Faults::default())).collect();
    let answers = f64::from(ROUNDS) * truth.iter().sum::<f64>();
    let (mut found, mut predicted) = (0.0, 0.0);
    for cell in 0..BINS as usize {
        let mean = all.iter().map(|one| one[cell]).sum::<f64>() / runs as f64;
        let variance = all.iter().map(|one| (one[cell] - mean).powi(2)).sum::<f64>() / (runs - 1) as f64;
        let formula = histogram.variance(f64::from(ROUNDS) * truth[cell], answers);
        let error = (formula / runs as f64).sqrt();
        assert!((mean - truth[cell]).abs() < 4.0 * error, "cell {cell}: {mean} {} ± {error}", truth[cell]);
        // As printed: (tau_i - b/d) / (1 - b), of K rounds.
        let b = histogram.random_share();
        let cells = f64::from(BINS);
        let uniform = 2.0 * histogram.blanket() as f64 + b * answers;
        let printed = mean + (uniform - b) / cells / ((1.0 - b) * f64::from(ROUNDS));
        assert!((printed - truth[cell]).abs() > 40.0 * error, "cell {cell}: the print would do");
        assert!((variance / formula - 1.0).abs() < 0.15, "cell {cell}: {variance} {formula}");
        (found, predicted) = (found + variance, predicted + formula);
    }
    assert!((found / predicted - 1.0).abs() < 0.05, "{found} {predicted}");
    let rows = truth.iter().sum::<f64>() as u64;
    assert!((histogram.deviation(rows).powi(2) / predicted - 1.0).abs() < 1e-9, "the whole estimate's");
}

#[test]
fn what_no_histogram_has_is_refused() {
    let refused = |config: HistogramConfig| RingHistogram::new(config).expect_err("refused");
    assert_eq!(refused(HistogramConfig { members: 2, ..config(None) }), BadHistogram::Members(2));
    assert_eq!(refused(HistogramConfig { bins: 1, ..config(None) }), BadHistogram::Bins(1));
    assert_eq!(refused(HistogramConfig { rounds: 0, ..config(None) }), BadHistogram::Rounds);
    assert_eq!(refused(config(Some(0.0))), BadHistogram::Answers(0.0));
    let flat = Bounds { low: 1.0, high: 1.0 };
    assert_eq!(refused(HistogramConfig { range: flat, ..config(None) }), BadHistogram::Range(1.0, 1.0));
}
