//! No wake allocates once a run is under way. One test alone in its binary, because it counts for the whole process.

mod support;

use sottovoce_algorithms::graphs;
use sottovoce_algorithms::{
    Loss, Problem, Shard,
    joint::{Joint, LogDegree},
    personal::{
        admm::Inner,
        boosting::{FrankWolfe, FrankWolfeConfig, StepSize},
        descent::{DescentByLetters, Start},
        graph::{Alternating, GraphLearning, GraphLearningConfig, Turns},
    },
};
use sottovoce_core::{Algorithm, Coin, Graph};
use sottovoce_sim::{Faults, Partition, Settings};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use support::*;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Allocations in `wakes` wakes, after `before` others.
fn allocations<A>(algorithm: &A, problem: &Problem, settings: &Settings, before: u64, wakes: u64) -> usize
where
    A: for<'d> Algorithm<Data<'d> = Shard<'d>>,
{
    let mut run = start(algorithm, problem, settings);
    run.advance(before);
    let region = Region::new(ALLOCATOR);
    run.advance(wakes);
    let change = region.change();
    change.allocations + change.reallocations
}

fn stormy() -> Faults {
    Faults {
        loss: 0.3,
        duplicate: 0.1,
        delay_mean: 3.0,
        delay_max: 10.0,
        leave: 0.2,
        partitions: vec![Partition { from: 100.0, to: 200.0, share: 0.5 }],
        until: 10_000.0,
        ..Faults::default()
    }
}

fn a_wake_allocates_nothing() {
    let n = 30;
    for loss in SMOOTH {
        let problem = mixed_problem(1, n, 5, loss);
        for tolerance in [None, Some(1e-300)] {
            for faults in [Faults::default(), stormy()] {
                let settings = Settings { faults, tolerance, ..settings(1) };
                let (before, wakes) = (n as u64 * 1_000, n as u64 * 1_000);
                let faulty = !settings.faults.is_none();
                let count = |name: &str, count: usize| assert_eq!(count, 0, "{name}, {loss:?}, faults: {faulty}");
                let algorithm = descent(&problem, Start::Local);
                count("coordinate descent", allocations(&algorithm, &problem, &settings, before, wakes));
                let algorithm = propagation(&problem);
                count("model propagation", allocations(&algorithm, &problem, &settings, before, wakes));
                let algorithm = FrankWolfe::new(FrankWolfeConfig {
                    predictors: 5,
                    trade_off: problem.trade_off,
                    radius: 2.0,
                    step_size: StepSize::GlobalClock,
                    gap_min: 0.0,
                    local_rounds: 0,
                });
                let algorithm = algorithm.expect("good parameters");
                count("Frank-Wolfe", allocations(&algorithm, &problem, &settings, before, wakes));
                for inner in [Inner::default(), Inner::Exact] {
                    let algorithm = admm(&problem, inner);
                    count("ADMM", allocations(&algorithm, &problem, &settings, before, wakes));
                }
            }
        }
    }
}

/// A new neighbour is new memory; once the graph has settled there is none.
fn a_settled_graph_allocates_nothing() {
    let n = 12;
    let problem = Problem { graph: Graph::Complete { n: 12 }, ..connected_problem(3, n, 4, Loss::Logistic) };
    let regularizer = LogDegree { sparsity: 0.1, offset: LogDegree::OFFSET };
    let joint = Joint { trade_off: problem.trade_off, strength: 0.5, regularizer };
    let graph = GraphLearning::new(GraphLearningConfig { joint, sample: 4 }).expect("good parameters");
    let learner = DescentByLetters::new(problem.loss, problem.trade_off).expect("good parameters");
    let algorithm = Alternating::new(learner, graph, Turns::default()).expect("good turns");
    let (before, wakes) = (n as u64 * 3_000, n as u64 * 1_000);
    assert_eq!(allocations(&algorithm, &problem, &settings(4), before, wakes), 0, "models and graph by turns");
}

/// Workers are handed their levels through a queue that allocates now and then, but not for each wake.
fn threads_allocate_next_to_nothing(problem: &Problem) {
    let n = problem.agents() as u64;
    let algorithm = descent(problem, Start::Zero);
    let count = allocations(&algorithm, problem, &Settings { threads: 2, ..settings(2) }, 10 * n, 10 * n);
    assert!(count as u64 * 100 < 10 * n, "{count} allocations in {} wakes of two threads", 10 * n);
}

/// The vector, its agent, and nothing that grows with the run.
fn an_agent_costs_little(problem: &Problem) {
    let (n, p) = (problem.agents(), problem.dimension());
    let algorithm = descent(problem, Start::Local);
    for tolerance in [None, Some(1e-9)] {
        let region = Region::new(ALLOCATOR);
        let mut run = start(&algorithm, problem, &Settings { tolerance, ..settings(3) });
        run.advance(5 * n as u64);
        let change = region.change();
        let each = (change.bytes_allocated - change.bytes_deallocated) as f64 / n as f64;
        println!("{each:.0} bytes an agent with models of {p} numbers");
        assert!(each < 8.0 * p as f64 + 200.0, "{each} bytes");
    }
}

#[test]
fn memory_is_bounded_and_steady() {
    a_wake_allocates_nothing();
    a_settled_graph_allocates_nothing();
    let graph = graphs::watts_strogatz(20_000, 6, 0.3, 1).expect("a graph");
    let large = problem(alike(&mut Coin::new(1, 0, 0), &[3; 20_000], 20, Loss::Logistic), graph, Loss::Logistic);
    threads_allocate_next_to_nothing(&large);
    an_agent_costs_little(&large);
}
