//! The simulator itself: neither threads nor the way of delivery change a result.

mod support;

use sottovoce_algorithms::{
    Dataset, Loss, Problem, Shard,
    personal::{admm::Inner, coordinate_descent::Start},
};
use sottovoce_core::{Algorithm, Coin, Graph, PeerId, Rows};
use sottovoce_privacy::Ledger;
use sottovoce_sim::{Clock, Counters, Faults, Partition, Settings, Status};
use support::*;

/// Everything that a run shows.
#[derive(Debug, PartialEq)]
struct Outcome {
    /// As bits, so that 0 and -0 differ.
    models: Vec<u64>,
    counters: Counters,
    ledgers: Vec<Ledger>,
    status: Status,
    now: u64,
}

fn outcome<A>(algorithm: &A, problem: &Problem, settings: &Settings, pieces: &[u64]) -> Outcome
where
    A: for<'d> Algorithm<Data<'d> = Shard<'d>>,
{
    let mut run = start(algorithm, problem, settings);
    let mut status = Status::Running;
    pieces.iter().for_each(|wakes| status = run.advance(*wakes));
    Outcome {
        models: run.models().values().iter().map(|value| value.to_bits()).collect(),
        counters: run.counters().clone(),
        ledgers: everyone(problem).map(|agent| run.ledger(agent).clone()).collect(),
        status,
        now: run.now().0.to_bits(),
    }
}

/// Few points and a strong pull to them, so that a run with a tolerance ends soon.
fn large_problem(graph: Graph, loss: Loss) -> Problem {
    let mut coin = Coin::new(1, 0, 0);
    let sizes: Vec<usize> = (0..graph.agents()).map(|_| coin.below(5)).collect();
    Problem { trade_off: 5.0, ..problem(alike(&mut coin, &sizes, 3, loss), graph, loss) }
}

#[test]
fn threads_change_nothing() {
    let n = 5_000;
    let ring = large_problem(Graph::ring(n).expect("a graph"), Loss::Logistic);
    let listed = large_problem(Graph::watts_strogatz(n, 6, 0.3, 1).expect("a graph"), Loss::Squared);
    for problem in [ring, listed] {
        for (clock, begin) in [(Clock::Uniform, Start::Zero), (Clock::Poisson, Start::Local)] {
            let algorithm = descent(&problem, begin);
            let settings = Settings { clock, ..settings(2) };
            let pieces = [1, 7, 20_000, 30_003];
            let one = outcome(&algorithm, &problem, &settings, &pieces);
            for threads in [2, 4] {
                let more = outcome(&algorithm, &problem, &Settings { threads, ..settings.clone() }, &pieces);
                assert!(one == more, "{threads} threads, {clock:?}, {begin:?}");
            }
            assert!(one == outcome(&algorithm, &problem, &settings, &pieces), "a second run");
            let other = outcome(&algorithm, &problem, &Settings { seed: 3, ..settings.clone() }, &pieces);
            assert!(one.models != other.models && one.ledgers != other.ledgers, "another seed");
        }
    }
}

#[test]
fn threads_do_not_change_when_a_run_with_a_tolerance_ends() {
    let n = 5_000;
    let ring = large_problem(Graph::ring(n).expect("a graph"), Loss::Squared);
    let listed = large_problem(Graph::watts_strogatz(n, 6, 0.3, 1).expect("a graph"), Loss::Logistic);
    for problem in [ring, listed] {
        let algorithm = descent(&problem, Start::Local);
        let settings = Settings { tolerance: Some(1e-2), ..settings(4) };
        let pieces = [2_000 * n as u64];
        let one = outcome(&algorithm, &problem, &settings, &pieces);
        assert_eq!(one.status, Status::Quiet);
        assert!(one.counters.wakes > 20 * n as u64, "{}", one.counters.wakes);
        for threads in [2, 4] {
            let more = outcome(&algorithm, &problem, &Settings { threads, ..settings.clone() }, &pieces);
            assert!(one == more, "{threads} threads: {} and {} wakes", one.counters.wakes, more.counters.wakes);
        }
    }
}

/// A run advances in pieces of any size to the same place.
#[test]
fn pieces_change_nothing() {
    let n = 5_000;
    let problem = large_problem(Graph::ring(n).expect("a graph"), Loss::Squared);
    let algorithm = descent(&problem, Start::Local);
    for threads in [1, 2] {
        let settings = Settings { threads, ..settings(5) };
        let whole = outcome(&algorithm, &problem, &settings, &[20_000]);
        assert!(whole == outcome(&algorithm, &problem, &settings, &[1, 4_999, 5_000, 9_999, 1]));
    }
}

/// Faults that never strike, but take the way on which they would.
fn harmless() -> Faults {
    Faults { partitions: vec![Partition { from: 1e9, to: 2e9, share: 0.5 }], ..Faults::default() }
}

#[test]
fn faults_that_never_strike_change_nothing() {
    let n = 40;
    assert!(!harmless().is_none(), "otherwise this compares a thing with itself");
    for seed in 0..3 {
        let problem = mixed_problem(seed, n, 4, Loss::Logistic);
        for clock in [Clock::Uniform, Clock::Poisson] {
            let calm = Settings { clock, ..settings(seed) };
            let pieces = [1, 99, 300 * n as u64];
            let both = [calm.clone(), Settings { faults: harmless(), ..calm }];
            for begin in [Start::Zero, Start::Local] {
                let algorithm = descent(&problem, begin);
                let [instant, posted] = both.each_ref().map(|s| outcome(&algorithm, &problem, s, &pieces));
                assert!(instant == posted, "coordinate descent, seed {seed}, {begin:?}");
            }
            let algorithm = propagation(&problem);
            let [instant, posted] = both.each_ref().map(|s| outcome(&algorithm, &problem, s, &pieces));
            assert!(instant == posted, "model propagation, seed {seed}");
            for inner in [Inner::Exact, Inner::default()] {
                let algorithm = admm(&problem, inner);
                let [instant, posted] = both.each_ref().map(|s| outcome(&algorithm, &problem, s, &pieces));
                assert!(instant == posted, "ADMM, seed {seed}, {inner:?}");
            }
        }
    }
}

#[test]
fn a_faulty_run_is_repeated_to_the_bit() {
    let problem = mixed_problem(6, 40, 4, Loss::Logistic);
    let faults = Faults { loss: 0.2, duplicate: 0.2, delay_mean: 2.0, delay_max: 9.0, leave: 0.2, ..harmless() };
    let faults = Faults { until: 100.0, ..faults };
    let algorithm = descent(&problem, Start::Local);
    let exchange = admm(&problem, Inner::Exact);
    for threads in [1, 4] {
        let stormy = Settings { threads, faults: faults.clone(), ..settings(6) };
        let pieces = [40 * 200];
        let expected = outcome(&algorithm, &problem, &Settings { threads: 1, ..stormy.clone() }, &pieces);
        assert!(expected == outcome(&algorithm, &problem, &stormy, &pieces));
        assert!(expected.counters.lost > 0);
        let expected = outcome(&exchange, &problem, &Settings { threads: 1, ..stormy.clone() }, &pieces);
        assert!(expected == outcome(&exchange, &problem, &stormy, &pieces));
    }
}

/// An agent of coordinate descent is two numbers besides its post, so that a million of them fit.
#[test]
fn an_agents_state_is_small() {
    assert!(size_of::<sottovoce_algorithms::personal::coordinate_descent::State>() <= 24);
    assert!(size_of::<Ledger>() <= 48, "{}", size_of::<Ledger>());
}

#[test]
fn one_agent_alone_is_a_network_too() {
    let mut data = Dataset::new(2);
    data.push_agent(&[1.0, 0.0], &[1.0]);
    let problem = problem(data, Graph::ring(1).expect("a graph"), Loss::Squared);
    let algorithm = descent(&problem, Start::Local);
    for faults in [Faults::default(), harmless()] {
        let mut run = start(&algorithm, &problem, &Settings { faults, tolerance: Some(1e-9), ..settings(1) });
        assert_eq!(run.advance(1_000), Status::Quiet);
        let models: Rows = run.models();
        assert!((models.row(0)[0] - 1.0 / 1.02).abs() < 1e-9 && models.row(0)[1] == 0.0, "{models:?}");
        assert!(!run.is_dead(PeerId(0)));
    }
}
