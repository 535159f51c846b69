//! Decentralized Frank-Wolfe, run by the simulator, against the central solver.

mod support;

use sottovoce_algorithms::{
    Loss, Problem,
    boosting::{curvature, gap, value},
    personal::boosting::{FrankWolfe, FrankWolfeConfig, StepSize, index_bits, step_bits},
    reference::boosting::minimum,
    stumps::Stumps,
};
use sottovoce_core::{Graph, PeerId, Rows};
use sottovoce_sim::{Clock, Counters, Faults, Schedule, Settings, Simulation, Status};
use support::*;

const RADIUS: f64 = 2.0;

/// Decision stumps over the points of another problem.
fn stumped(problem: Problem, count: usize) -> Problem {
    let data = Stumps::grid(problem.dimension(), count, -1.5, 1.5).apply(&problem.data);
    Problem { data, ..problem }
}

fn boosting_problem(seed: u64, n: usize) -> Problem {
    stumped(connected_problem(seed, n, 3, Loss::Logistic), 15)
}

fn frank_wolfe(problem: &Problem, step_size: StepSize, gap_min: f64) -> FrankWolfe {
    let (predictors, trade_off) = (problem.dimension(), problem.trade_off);
    let config = FrankWolfeConfig { predictors, trade_off, radius: RADIUS, step_size, gap_min, local_rounds: 0 };
    FrankWolfe::new(config).expect("good parameters")
}

/// How many copies there are, and how many of them are not what their owner has now.
fn copies<'w, D: Fn(PeerId) -> sottovoce_algorithms::Shard<'w> + Sync>(
    problem: &Problem,
    run: &Simulation<'w, FrankWolfe, D>,
) -> (usize, usize) {
    let (mut all, mut wrong) = (0, 0);
    for (a, b, _) in problem.graph.edges() {
        for (me, peer) in [(a, b), (b, a)] {
            let (_, copy) = run.state(me).copy_of(peer).expect("a neighbour");
            let mut dense = vec![0.0; problem.dimension()];
            copy.for_each(|(k, v)| dense[k as usize] = v);
            all += 1;
            wrong += usize::from(dense != run.model(peer));
        }
    }
    (all, wrong)
}

/// CHECK 01.m: |theta_u|_1 <= beta (1 + 1e-12), always. Under faults too, where models of neighbours are old.
#[test]
fn check_01_m_models_never_leave_the_ball() {
    for step_size in [StepSize::GlobalClock, StepSize::LocalClock, StepSize::Descent] {
        for faults in [Faults::default(), storm()] {
            let problem = stumped(mixed_problem(1, 15, 3, Loss::Logistic), 15);
            let algorithm = frank_wolfe(&problem, step_size, 0.0);
            let mut run = start(&algorithm, &problem, &Settings { faults, ..settings(1) });
            let mut largest = 0.0f64;
            for _ in 0..15 * 300 {
                run.advance(1);
                for agent in everyone(&problem) {
                    let length: f64 = run.model(agent).iter().map(|theta| theta.abs()).sum();
                    largest = largest.max(length);
                }
            }
            assert!(largest <= RADIUS * (1.0 + 1e-12), "{largest}");
            assert!(largest > 0.5 * RADIUS, "{largest}: the ball binds nobody");
        }
    }
}

/// CHECK 01.n: what neighbours repeat from (index, sign, step size) is the sender's model, to the bit, after every wake.
#[test]
fn check_01_n_repeated_steps_are_the_senders_model_exactly() {
    for step_size in [StepSize::GlobalClock, StepSize::Descent] {
        let problem = boosting_problem(2, 12);
        let algorithm = frank_wolfe(&problem, step_size, 0.0);
        let mut run = start(&algorithm, &problem, &settings(2));
        for _ in 0..12 * 200 {
            run.advance(1);
            let (all, wrong) = copies(&problem, &run);
            assert!(all > 12 && wrong == 0, "{wrong} of {all}");
        }
        assert!(run.counters().rejected.is_empty());
        assert!(everyone(&problem).all(|agent| run.state(agent).bits().models == 0), "no whole model was needed");
    }
}

#[test]
fn check_01_n_copies_are_exact_again_after_a_storm() {
    let (mut wrong_before, mut asked) = (0, 0);
    for seed in 0..how_many(5, 200) {
        let problem = boosting_problem(seed, 12);
        let algorithm = frank_wolfe(&problem, StepSize::LocalClock, 0.0);
        let mut run =
            start(&algorithm, &problem, &Settings { clock: Clock::Poisson, faults: storm(), ..settings(seed) });
        while run.now().0 < 140.0 {
            run.advance(12);
        }
        wrong_before += copies(&problem, &run).1;
        run.advance(12 * 30);
        let (all, wrong) = copies(&problem, &run);
        assert_eq!(wrong, 0, "of {all}, seed {seed}");
        asked += everyone(&problem).map(|agent| run.state(agent).bits().models).sum::<u64>();
    }
    assert!(wrong_before > 10 && asked > 0, "{wrong_before} {asked}: the storm tests nothing");
}

/// Mean of Q(t) - Q* over many runs, at t = n, 2n, .., `rounds` n.
fn mean_excess(problem: &Problem, step_size: StepSize, clock: Clock, runs: u64, rounds: usize) -> (f64, Vec<f64>) {
    let n = problem.agents() as u64;
    let least = value(problem, &minimum(problem, RADIUS, 1e-9));
    let algorithm = frank_wolfe(problem, step_size, 0.0);
    let mut mean = vec![0.0; rounds];
    for seed in 0..runs {
        let mut run = start(&algorithm, problem, &Settings { clock, ..settings(seed) });
        for mean in &mut mean {
            run.advance(n);
            *mean += (value(problem, &run.models()) - least) / runs as f64;
        }
    }
    (value(problem, &Rows::zeros(problem.agents(), problem.dimension())) - least, mean)
}

/// CHECK 01.o: E[Q(t)] - Q* <= 2 n (C + p_0) / (t + 2 n), with Q* from the central solver to a gap of 1e-9.
#[test]
fn check_01_o_the_mean_excess_stays_below_the_bound() {
    for (seed, trade_off) in [(3, 1.0), (4, 0.1), (5, 10.0)] {
        let problem = Problem { trade_off, ..boosting_problem(seed, 10) };
        for (step_size, clock) in [
            (StepSize::GlobalClock, Clock::Uniform),
            (StepSize::GlobalClock, Clock::Poisson),
            (StepSize::LocalClock, Clock::Uniform),
            (StepSize::Descent, Clock::Uniform),
        ] {
            let rounds = 100;
            let (first, mean) = mean_excess(&problem, step_size, clock, how_many(20, 200), rounds);
            let constant = curvature(&problem, RADIUS) + first;
            let mut closest = 0.0f64;
            for (round, mean) in (1..).zip(&mean) {
                let bound = 2.0 * constant / (f64::from(round) + 2.0);
                assert!(*mean <= bound && *mean > -1e-9, "{step_size:?} mu = {trade_off}: {mean} above {bound}");
                closest = closest.max(mean / bound);
            }
            println!(
                "mu {trade_off} {step_size:?} {clock:?}: Q(0)-Q* {first:.3e}, after 10, 100 rounds {:.3e} {:.3e}, at most {closest:.3} of the bound",
                mean[9],
                mean[rounds - 1]
            );
            // The constant is generous; the rate is not: ten times the time, a fifth of the excess at most. Descent looks no
            // further than one agent and is slower in the end than a clock that makes everyone's steps shrink together.
            let share = if step_size == StepSize::Descent { 0.5 } else { 0.2 };
            assert!(mean[rounds - 1] < share * mean[9], "{step_size:?}: {mean:?}");
        }
    }
}

/// CHECK 01.p: each wake sends ceil(log2 K) + 1 + 32 bits to each neighbour, and the bytes are those bits filled up, with a
/// kind and a version before them.
#[test]
fn check_01_p_bits_are_those_of_the_formula() {
    let problem = stumped(mixed_problem(6, 15, 3, Loss::Logistic), 20);
    let k = problem.dimension();
    assert_eq!((k, index_bits(k), step_bits(k)), (21, 5, 38));
    let algorithm = frank_wolfe(&problem, StepSize::GlobalClock, 0.0);
    let mut run = start(&algorithm, &problem, &settings(6));
    assert_eq!(run.counters(), &Counters::default(), "nothing is sent at the start");
    run.advance(15 * 40);
    let mut schedule = Schedule::new(6, Clock::Uniform, 15);
    let (mut letters, mut questions) = (0, 0);
    let mut moved = [false; 15];
    for _ in 0..15 * 40 {
        let (agent, _) = schedule.next_wake();
        let peers = problem.graph.peers(agent);
        // An agent without data stays at zero, and asks, until a neighbour has moved.
        let idle = problem.data.size(agent) == 0 && !peers.iter().any(|edge| moved[edge.peer.index()]);
        moved[agent.index()] |= !idle;
        if idle {
            questions += u64::from(!peers.is_empty());
        } else {
            letters += peers.len() as u64;
        }
    }
    let bits: u64 = everyone(&problem).map(|agent| run.state(agent).bits().steps).sum();
    assert_eq!(bits, letters * 38);
    assert_eq!(run.counters().bytes_sent, letters * (1 + 4 + 38u64.div_ceil(8)) + questions * 5);
    assert_eq!(run.counters().vectors_sent, 0);
}

#[test]
fn the_gap_certifies_the_end_and_everyone_comes_to_rest() {
    let problem = boosting_problem(7, 10);
    let gap_min = 1e-2;
    let algorithm = frank_wolfe(&problem, StepSize::Descent, gap_min);
    let least = value(&problem, &minimum(&problem, RADIUS, 1e-9));
    for faults in [Faults::default(), storm()] {
        let mut run = start(&algorithm, &problem, &Settings { tolerance: Some(1e-9), faults, ..settings(7) });
        assert_eq!(run.advance(10 * 20_000), Status::Quiet);
        let whole = gap(&problem, RADIUS, &run.models());
        let excess = value(&problem, &run.models()) - least;
        println!("gap {whole:.3e}, excess {excess:.3e} after {} wakes", run.counters().wakes);
        assert!(excess <= whole && whole <= 10.0 * gap_min * (1.0 + 1e-9), "{excess} {whole}");
    }
}

#[test]
fn models_stay_sparse_and_the_same_seed_gives_the_same_bits() {
    let problem = stumped(mixed_problem(8, 15, 4, Loss::Logistic), 100);
    let algorithm = frank_wolfe(&problem, StepSize::GlobalClock, 0.0);
    for faults in [Faults::default(), storm()] {
        let settings = Settings { faults, ..settings(8) };
        let runs: Vec<Rows> = [1, 2]
            .map(|threads| {
                let mut run = start(&algorithm, &problem, &Settings { threads, ..settings.clone() });
                run.advance(15 * 10);
                for agent in everyone(&problem) {
                    let nonzero = run.model(agent).iter().filter(|theta| **theta != 0.0).count();
                    assert!(nonzero <= run.state(agent).version() as usize);
                }
                run.models()
            })
            .into();
        assert_eq!(runs[0], runs[1]);
    }
}

/// Losses and differences are both multiplied by weights, so no step knows their scale. Scaling by four is exact.
#[test]
fn scaling_all_weights_changes_no_step() {
    let problem = boosting_problem(9, 12);
    let edges: Vec<_> = problem.graph.edges().map(|(a, b, weight)| (a.0, b.0, 4.0 * weight)).collect();
    let scaled = Problem { graph: Graph::from_edges(12, &edges).expect("a graph"), ..problem.clone() };
    for step_size in [StepSize::GlobalClock, StepSize::Descent] {
        let algorithm = frank_wolfe(&problem, step_size, 0.0);
        let ends = [&problem, &scaled].map(|problem| {
            let mut run = start(&algorithm, problem, &settings(9));
            run.advance(12 * 100);
            run.models()
        });
        assert_eq!(ends[0], ends[1], "{step_size:?}");
    }
}
