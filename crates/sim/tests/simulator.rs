//! The simulator itself: neither threads nor the way of delivery change a result.

mod support;

use sottovoce_algorithms::graphs;
use sottovoce_algorithms::{
    Dataset, Loss, Problem, Shard,
    personal::{
        admm::Inner,
        descent::{CoordinateDescent, Start},
    },
};
use sottovoce_core::{Activity, Algorithm, CannotResume, Coin, Cx, Graph, Neighbours, PeerId, Reject, Rows, Wire};
use sottovoce_privacy::{Exhausted, Ledger};
use sottovoce_sim::{Clock, Counters, Faults, Partition, Settings, Simulation, Status};
use std::collections::BTreeMap;
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
    let listed = large_problem(graphs::watts_strogatz(n, 6, 0.3, 1).expect("a graph"), Loss::Squared);
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
    let listed = large_problem(graphs::watts_strogatz(n, 6, 0.3, 1).expect("a graph"), Loss::Logistic);
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

/// A number, sent as a letter.
struct Number(u64);

impl Wire<'_> for Number {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.0.to_le_bytes());
    }

    fn decode(bytes: &[u8]) -> Result<Self, Reject> {
        bytes.try_into().map(|bytes| Number(u64::from_le_bytes(bytes))).map_err(|_| Reject::Malformed)
    }

    fn vectors(&self) -> u64 {
        0
    }
}

/// Sends three numbers at a wake, counting up, and takes nothing but the next number of each neighbour.
struct InTurn;

#[derive(Default)]
struct Turns {
    sent: u64,
    heard: BTreeMap<PeerId, u64>,
}

impl Algorithm for InTurn {
    type Data<'d> = ();
    type State = Turns;
    type Letter<'a> = Number;

    fn post_len(&self) -> usize {
        0
    }

    fn letter_bytes_max(&self, _data: ()) -> usize {
        8
    }

    fn start(&self, _data: (), _cx: &mut Cx<'_>) -> Result<Turns, Exhausted> {
        Ok(Turns::default())
    }

    fn on_wake(&self, me: &mut Turns, _data: (), cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        for _ in 0..3 {
            me.sent += 1;
            for edge in cx.peers.iter() {
                let letter = cx.gate.reveal(Number(me.sent))?;
                cx.outbox.send(edge.peer, letter);
            }
        }
        Ok(Activity { moved: 1.0 })
    }

    fn on_letter(&self, me: &mut Turns, _: (), from: PeerId, letter: Number, _: &mut Cx<'_>) -> Result<(), Reject> {
        let heard = me.heard.entry(from).or_default();
        *heard += 1;
        if *heard == letter.0 { Ok(()) } else { Err(Reject::OutOfTurn) }
    }

    fn save(&self, me: &Turns, out: &mut Vec<u8>) {
        out.extend(me.sent.to_le_bytes());
        me.heard
            .iter()
            .for_each(|(peer, heard)| out.extend([u64::from(peer.0), *heard].map(u64::to_le_bytes).concat()));
    }

    fn resume(&self, saved: &[u8], _: Neighbours, _data: (), _cx: &mut Cx<'_>) -> Result<Turns, CannotResume> {
        let (numbers, []) = saved.as_chunks::<8>() else { return Err(CannotResume::Malformed) };
        let numbers: Vec<u64> = numbers.iter().copied().map(u64::from_le_bytes).collect();
        let [sent, heard @ ..] = &*numbers else { return Err(CannotResume::Malformed) };
        let heard = heard.as_chunks::<2>().0.iter().map(|&[peer, heard]| (PeerId(peer as u32), heard)).collect();
        Ok(Turns { sent: *sent, heard })
    }

    fn model<'a>(&self, _: &'a Turns, _: &'a [f64]) -> &'a [f64] {
        &[]
    }
}

#[test]
fn letters_of_one_moment_arrive_in_the_order_in_which_they_were_sent() {
    let graph = graphs::circulant(9, 4).expect("a graph");
    for faults in [Faults::default(), harmless()] {
        let settings = Settings { faults, ..settings(7) };
        let mut run = Simulation::start(&InTurn, &graph, |_| (), &settings).expect("an unlimited budget");
        run.advance(500);
        assert!(run.counters().rejected.is_empty(), "{:?}", run.counters());
        assert_eq!(run.counters().bytes_sent, 500 * 3 * 4 * 8);
        assert_eq!(run.state(PeerId(0)).heard.len(), 4);
    }
    // Delays shuffle them, and what is out of turn is counted.
    let faults = Faults { delay_mean: 5.0, delay_max: 10.0, ..Faults::default() };
    let settings = Settings { faults, ..settings(7) };
    let mut run = Simulation::start(&InTurn, &graph, |_| (), &settings).expect("an unlimited budget");
    run.advance(500);
    assert!(run.counters().rejected.get(&Reject::OutOfTurn).is_some_and(|count| *count > 100), "{:?}", run.counters());
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
    assert!(size_of::<<CoordinateDescent as Algorithm>::State>() <= 24);
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
