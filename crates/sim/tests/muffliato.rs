//! Noise once and gossip in rounds, run by the simulator: its law, its charges, and what happens when members are gone.

use sottovoce_algorithms::average::muffliato::mixing::{Mixing, weights};
use sottovoce_algorithms::average::muffliato::{ContributionUnit, Goal, Muffliato, MuffliatoConfig};
use sottovoce_algorithms::{Bounds, Observations, Points};
use sottovoce_core::{Graph, PeerId};
use sottovoce_privacy::{Event, Gate, Idealized, Plan, Simulated, Sum};
use sottovoce_sim::{Clock, Faults, Settings, Simulation, Status};
use std::sync::Arc;

const LAW: Event = Event::Gaussian { noise_multiplier: 0.5 };
const AGENTS: u32 = 12;

fn graph() -> Graph {
    let edges: Vec<(u32, u32, f64)> =
        (0..AGENTS).flat_map(|a| [(a, (a + 1) % AGENTS, 1.0), (a, (a + 5) % AGENTS, 3.0)]).collect();
    Graph::from_edges(AGENTS as usize, &edges).expect("a graph")
}

fn protocol(goal: Goal, law: Option<Event>, rounds: u32, gamma: f64) -> Muffliato {
    let range = Some(Bounds { low: -1.0, high: 1.0 });
    let unit = ContributionUnit::Rows;
    Muffliato::new(MuffliatoConfig { columns: 1, goal, unit, range, law, rounds, gamma }).expect("good parameters")
}

fn settings(seed: u64, faults: Faults) -> Settings {
    Settings { clock: Clock::Poisson, seed, threads: 1, tolerance: None, faults }
}

/// Rows of one number.
fn column(values: &[f64]) -> Observations<'_> {
    Observations { points: Points { dimension: 1, features: values, labels: values }, bounds: None }
}

fn exact(_: PeerId) -> Gate<Simulated> {
    Gate::unplanned(Simulated::None)
}

/// Member k has k mod 3 + 1 rows, but for one that has none.
fn values() -> Vec<Vec<f64>> {
    let rows = |k: u32| if k == 4 { Vec::new() } else { vec![f64::from(k) / 12.0 - 0.3; k as usize % 3 + 1] };
    (0..AGENTS).map(rows).collect()
}

#[test]
fn any_storm_ends_at_the_same_estimates_to_the_bit() {
    let (graph, values) = (graph(), values());
    let protocol = protocol(Goal::Mean, None, 30, 1.2);
    let data = |id: PeerId| column(&values[id.index()]);
    let estimates = |seed: u64, faults: Faults| {
        let mut run =
            Simulation::start_behind(exact, &protocol, &graph, data, &settings(seed, faults)).expect("it starts");
        assert_eq!(run.advance(200_000), Status::Done, "seed {seed}");
        (0..AGENTS).map(|k| run.model(PeerId(k))[0].to_bits()).collect::<Vec<u64>>()
    };
    let calm = estimates(1, Faults::default());
    let all: Vec<f64> = values.iter().flatten().copied().collect();
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    assert!(calm.iter().all(|bits| (f64::from_bits(*bits) - mean).abs() < 1e-3), "{mean}");
    for seed in 0..20 {
        let storm = Faults {
            loss: 0.4,
            duplicate: 0.3,
            delay_mean: 2.0,
            delay_max: 9.0,
            leave: 0.5,
            until: 60.0,
            ..Faults::default()
        };
        assert_eq!(estimates(seed, storm), calm, "seed {seed}");
    }
}

/// Whoever dies, its neighbours wait, and in the end everybody: nobody ends on what it has.
#[test]
fn nobody_goes_on_without_one_that_has_died() {
    let (graph, values) = (graph(), values());
    let protocol = protocol(Goal::Mean, None, 30, 1.0);
    let data = |id: PeerId| column(&values[id.index()]);
    let mut seen = 0;
    for seed in 0..40 {
        let faults = Faults { die: 0.1, until: 0.0, ..Faults::default() };
        let mut run =
            Simulation::start_behind(exact, &protocol, &graph, data, &settings(seed, faults)).expect("it starts");
        let dead = (0..AGENTS).filter(|&k| run.is_dead(PeerId(k))).count();
        run.advance(50_000);
        let knowing = (0..AGENTS).filter(|&k| run.state(PeerId(k)).knows()).count();
        assert_eq!(knowing, if dead == 0 { AGENTS as usize } else { 0 }, "seed {seed}: {dead} dead");
        seen += usize::from(dead > 0);
    }
    assert!(seen > 10, "{seen}");
}

/// The sum's mean and deviation over many runs; one charge for each member that has data, and noise of all.
#[test]
fn estimates_have_the_law_that_the_formula_says_and_one_charge_each() {
    let (graph, values) = (graph(), values());
    let plan = Arc::new(Plan::new(vec![LAW], f64::INFINITY, 0.5, &Sum).expect("any budget"));
    let gates = |seed: u64| {
        let plan = plan.clone();
        move |id: PeerId| {
            let plan = if id.0 == 4 { Arc::new(Plan::nothing()) } else { plan.clone() };
            Gate::planned(plan, Simulated::Idealized(Idealized::new(seed, id.0)))
        }
    };
    let mixing = Mixing::of(&weights(&graph).expect("weights"));
    let rounds = mixing.rounds(mixing.gamma(), Some(1.0), 1.0);
    let sum: f64 = values.iter().flatten().sum();
    let rows = values.iter().flatten().count() as u64;
    for (goal, truth) in [(Goal::Sum { agents: AGENTS as usize }, sum), (Goal::Mean, sum / rows as f64)] {
        let protocol = protocol(goal, Some(LAW), rounds, mixing.gamma());
        let deviation = protocol.deviation(AGENTS as usize, rows);
        let (runs, data) = (4000, |id: PeerId| column(&values[id.index()]));
        let (mut first, mut second) = (0.0, 0.0);
        for seed in 0..runs {
            let settings = settings(seed, Faults::default());
            let mut run = Simulation::start_behind(gates(seed), &protocol, &graph, data, &settings).expect("it starts");
            assert_eq!(run.advance(100_000), Status::Done);
            let estimates: Vec<f64> = (0..AGENTS).map(|k| run.model(PeerId(k))[0]).collect();
            let error = estimates.iter().sum::<f64>() / f64::from(AGENTS) - truth;
            (first, second) = (first + error, second + error * error);
            for k in 0..AGENTS {
                assert_eq!(run.ledger(PeerId(k)).releases(), u64::from(k != 4), "{k}");
                assert!((estimates[k as usize] - truth - error).abs() < 1.0 * deviation, "mixed: {k} {estimates:?}");
            }
        }
        let (mean, spread) = (first / runs as f64, (second / runs as f64).sqrt());
        assert!(mean.abs() < 4.0 * deviation / (runs as f64).sqrt(), "{goal:?}: {mean} {deviation}");
        // One of twelve has no data, and its noise is there all the same: without it the deviation would be 4% less.
        assert!((spread / deviation - 1.0).abs() < 0.035, "{goal:?}: {spread} {deviation}");
    }
}
