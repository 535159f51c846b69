//! Runs in which things go wrong, and what must come out of them all the same.

mod support;

use sottovoce_algorithms::graphs;
use sottovoce_algorithms::{
    Dataset, Loss, Problem,
    personal::{admm::Inner, descent::Start},
    reference::{
        central::{self, LastHeard},
        local::solitary_models,
        propagation,
    },
};
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Graph, Neighbours, NoLetter, PeerId, Rows};
use sottovoce_privacy::Exhausted;
use sottovoce_sim::{Clock, Faults, Partition, Schedule, Settings, Simulation, Status};
use support::*;

/// When the faults end.
const UNTIL: f64 = 60.0;

/// Everything at once: 30% loss, 10% duplication, delays that let messages overtake each other, a fifth of the agents leaving
/// and returning, and a partition that heals.
fn storm() -> Faults {
    Faults {
        loss: 0.3,
        duplicate: 0.1,
        delay_mean: 3.0,
        delay_max: 10.0,
        leave: 0.2,
        die: 0.0,
        partitions: vec![Partition { from: 15.0, to: 40.0, share: 0.5 }],
        until: UNTIL,
    }
}

fn stormy(seed: u64) -> Settings {
    Settings { clock: Clock::Poisson, faults: storm(), ..settings(seed) }
}

/// A run through the storm, then calm until it is within 1e-6 of the optimum in every coordinate.
struct Recovery {
    /// The error when the last message sent in the storm has arrived.
    error: f64,
    /// Wakes needed from there on.
    needed: u64,
    /// Wakes that the same wakes of the schedule would have needed from the start, without any faults.
    without_faults: u64,
}

fn recover(seed: u64, begin: Start) -> Recovery {
    let n = 30;
    let problem = mixed_problem(seed, n, 4, SMOOTH[seed as usize % 3]);
    let optimum = central::minimum(&problem);
    let algorithm = descent(&problem, begin);
    let mut run = start(&algorithm, &problem, &stormy(seed));
    let first = run.models();
    let mut schedule = Schedule::new(seed, Clock::Poisson, n);
    while run.now().0 < UNTIL + storm().delay_max {
        run.advance(1);
        schedule.next_wake();
    }
    assert!(run.counters().lost > 0);
    let without_faults = wakes_needed(&problem, schedule, &first, &optimum, 1e-6);
    let error = distance(&optimum, &run.models());
    let mut needed = 0;
    while distance(&optimum, &run.models()) > 1e-6 {
        run.advance(1);
        needed += 1;
        assert!(needed < 10 * without_faults, "seed {seed}: it does not recover");
    }
    run.advance(n as u64 * 100);
    assert!(distance(&optimum, &run.models()) < 1e-6, "seed {seed}: it does not stay there");
    Recovery { error, needed, without_faults }
}

fn recoveries(begin: Start) -> Vec<Recovery> {
    let all: Vec<Recovery> = (0..how_many(20, 200)).map(|seed| recover(seed, begin)).collect();
    let mut without: Vec<u64> = all.iter().map(|run| run.without_faults).collect();
    without.sort_unstable();
    let ratios = || all.iter().map(|run| run.needed as f64 / run.without_faults as f64);
    println!(
        "{begin:?}: {} runs, wakes without faults {} to {}, median {}; {} need more after them, at most {:.2} times as many",
        all.len(),
        without[0],
        without[without.len() - 1],
        without[without.len() / 2],
        ratios().filter(|ratio| *ratio > 1.0).count(),
        ratios().fold(0.0, f64::max)
    );
    let unsettled = all.iter().filter(|run| run.error > 1e-3).count();
    assert!(unsettled * 2 > all.len(), "only {unsettled} runs had anything left to do when the faults ended");
    all
}

#[test]
fn after_the_faults_descent_needs_no_more_wakes_than_without_any() {
    for (seed, run) in recoveries(Start::Zero).iter().enumerate() {
        assert!(run.needed <= run.without_faults, "seed {seed}: {} against {}", run.needed, run.without_faults);
    }
}

/// A partition lets each side settle with what it last heard of the other: by its end models may be further off, in the
/// directions that heal slowly, than local models are.
#[test]
fn after_the_faults_descent_from_local_models_needs_at_most_half_as_many_wakes_again() {
    for (seed, run) in recoveries(Start::Local).iter().enumerate() {
        let most = run.without_faults + run.without_faults / 2;
        assert!(run.needed <= most, "seed {seed}: {} against {}", run.needed, run.without_faults);
    }
}

#[test]
fn gossip_and_admm_reach_their_limits_after_the_faults() {
    let n = 15;
    for seed in 0..how_many(4, 40) {
        let problem = mixed_problem(seed, n, 3, SMOOTH[seed as usize % 3]);
        let gossip = propagation(&problem);
        let mut run = start(&gossip, &problem, &stormy(seed));
        run.advance(n as u64 * 5_000);
        let limit = propagation::closed_form(&problem, &solitary_models(&problem));
        assert!(distance(&limit, &run.models()) < 1e-8, "model propagation, seed {seed}");
        let exchange = admm(&problem, Inner::Exact);
        let mut run = start(&exchange, &problem, &stormy(seed));
        run.advance(n as u64 * 5_000);
        let error = distance(&central::minimum(&problem), &run.models());
        assert!(error < 1e-6, "ADMM, seed {seed}: {error}");
    }
}

#[test]
fn the_dead_stall_nobody_and_are_remembered_per_edge() {
    let n = 30;
    let faults = Faults { die: 0.2, ..storm() };
    let (mut died, mut told_apart, mut silent) = (0, 0, 0);
    for seed in 0..how_many(10, 100) {
        let problem = mixed_problem(seed, n, 4, SMOOTH[seed as usize % 3]);
        let begin = if seed % 2 == 0 { Start::Local } else { Start::Zero };
        let algorithm = descent(&problem, begin);
        let settings = Settings { faults: faults.clone(), tolerance: Some(1e-10), ..stormy(seed) };
        let mut run = start(&algorithm, &problem, &settings);
        assert_eq!(run.advance(n as u64 * 20_000), Status::Quiet, "seed {seed}: somebody waits");
        let dead: Vec<PeerId> = everyone(&problem).filter(|agent| run.is_dead(*agent)).collect();
        let mut heard = LastHeard::new();
        let mut unheard = false;
        for survivor in everyone(&problem).filter(|agent| !run.is_dead(*agent)) {
            for (k, edge) in problem.graph.peers(survivor).iter().enumerate() {
                if run.is_dead(edge.peer) {
                    let (_, last) = run.posts(survivor).last(problem.graph.peers(survivor), k);
                    told_apart += usize::from(last != run.model(edge.peer));
                    unheard |= !run.posts(survivor).heard(k);
                    heard.insert((survivor, edge.peer), last.to_vec());
                }
            }
        }
        // From local models, an edge whose dead end was never heard does not pull at all: not the problem solved here.
        if unheard && begin == Start::Local {
            silent += 1;
            continue;
        }
        let optimum = central::minimum_of_survivors(&problem, &dead, &heard);
        for survivor in everyone(&problem).filter(|agent| !run.is_dead(*agent)) {
            let error = largest_difference(optimum.row(survivor.index()), run.model(survivor));
            assert!(error < 1e-6, "seed {seed}, {survivor:?}: {error}");
        }
        died += dead.len();
    }
    assert!(silent * 4 <= how_many(10, 100), "{silent} runs with a death before the first word");
    assert!(died > 0 && told_apart > 0, "{died} died, {told_apart} edges did not hear their last word");
}

/// An agent that posts how often it woke.
struct Counting;

impl Algorithm for Counting {
    type Data<'d> = ();
    type State = f64;
    type Letter<'a> = NoLetter;

    fn post_len(&self) -> usize {
        1
    }

    fn start(&self, _data: (), _cx: &mut Cx<'_>) -> Result<f64, Exhausted> {
        Ok(0.0)
    }

    fn on_wake(&self, count: &mut f64, _data: (), cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        *count += 1.0;
        let post = cx.gate.reveal(std::slice::from_ref(count))?;
        cx.outbox.post(post);
        Ok(Activity { moved: 1.0 })
    }

    fn save(&self, count: &f64, out: &mut Vec<u8>) {
        out.extend(count.to_le_bytes());
    }

    fn resume(&self, saved: &[u8], _: Neighbours, _data: (), _cx: &mut Cx<'_>) -> Result<f64, CannotResume> {
        saved.try_into().map(f64::from_le_bytes).map_err(|_| CannotResume::Malformed)
    }

    fn model<'a>(&self, count: &'a f64, _posted: &'a [f64]) -> &'a [f64] {
        std::slice::from_ref(count)
    }
}

#[test]
fn an_old_post_never_replaces_a_newer_one() {
    let n = 8;
    let graph = graphs::circulant(n, 4).expect("a graph");
    let faults = Faults { delay_mean: 30.0, delay_max: 300.0, leave: 0.0, partitions: Vec::new(), ..storm() };
    let until = 200.0;
    let settings = Settings { faults: Faults { until, ..faults }, ..settings(1) };
    let mut run = Simulation::start(&Counting, &graph, |_| (), &settings).expect("an unlimited budget");
    let mut seen = Rows::zeros(n, 4);
    let (mut changes, mut behind) = (0, 0.0f64);
    while run.now().0 < until {
        run.advance(1);
        for reader in (0..n as u32).map(PeerId) {
            for (k, edge) in graph.peers(reader).iter().enumerate() {
                let (now, before) =
                    (run.posts(reader).last(graph.peers(reader), k).1[0], &mut seen.row_mut(reader.index())[k]);
                assert!(now >= *before, "{reader:?} went back from {before} to {now}");
                changes += u32::from(now > *before);
                *before = now;
                behind = behind.max(run.model(edge.peer)[0] - now);
                assert!(behind >= 0.0, "a post from the future");
            }
        }
    }
    assert!(changes > 500 && behind > 10.0, "{changes} changes, {behind} behind: no storm");
    // Posts after the end are at once there, whatever older ones are still under way.
    let all = |run: &Simulation<'_, Counting, _>| {
        (0..n as u32).map(PeerId).all(|reader| {
            let mut edges = graph.peers(reader).iter().enumerate();
            edges.all(|(k, edge)| run.posts(reader).last(graph.peers(reader), k).1 == run.model(edge.peer))
        })
    };
    run.advance(n as u64 * 20);
    assert!(all(&run), "everyone has woken since");
    run.advance(n as u64 * 400);
    assert!(all(&run), "what came late has changed nothing");
}

#[test]
fn what_is_counted_as_lost_is_what_was_lost() {
    let n = 20;
    let problem = connected_problem(3, n, 2, Loss::Squared);
    let algorithm = descent(&problem, Start::Zero);
    let faults = Faults { loss: 0.25, ..Faults::default() };
    let mut run = start(&algorithm, &problem, &Settings { faults, ..settings(3) });
    run.advance(n as u64 * 1_000);
    let counters = run.counters();
    let share = counters.lost as f64 / counters.vectors_sent as f64;
    assert!((share - 0.25).abs() < 0.01, "{share} of the posts");
    assert_eq!(counters.wakes, n as u64 * 1_000, "nobody was away");
    // An agent that is away neither wakes nor hears.
    let faults = Faults { leave: 0.5, until: 1_000.0, ..Faults::default() };
    let mut run = start(&algorithm, &problem, &Settings { faults, ..settings(3) });
    run.advance(n as u64 * 1_000);
    assert!(run.counters().wakes < n as u64 * 1_000 && run.counters().lost > 0);
}

/// Runs to the end with a tolerance and returns the end and the error.
fn run_to_the_end(problem: &Problem, settings: &Settings) -> (f64, f64) {
    let algorithm = descent(problem, Start::Local);
    let mut run = start(&algorithm, problem, settings);
    let status = run.advance(problem.agents() as u64 * 20_000);
    assert_eq!(status, Status::Quiet);
    (run.now().0, distance(&central::minimum(problem), &run.models()))
}

/// All delays are 500, for messages sent before time 200. The agents settle long before with what they know.
#[test]
fn a_run_with_a_tolerance_does_not_end_while_messages_are_in_flight() {
    let (delay_max, until) = (500.0, 200.0);
    let faults = Faults { delay_mean: 1e12, delay_max, until, ..Faults::default() };
    for seed in 0..5 {
        let problem = connected_problem(seed, 6, 2, Loss::Squared);
        let settings = Settings { faults: faults.clone(), tolerance: Some(1e-8), ..settings(seed) };
        let (end, error) = run_to_the_end(&problem, &settings);
        assert!(end > delay_max && error < 1e-6, "seed {seed}: {error} at {end}");
        let gossip = propagation(&problem);
        let mut run = start(&gossip, &problem, &settings);
        assert_eq!(run.advance(6 * 20_000), Status::Quiet);
        assert!(run.now().0 > delay_max, "model propagation, seed {seed}: {:?}", run.now());
        let limit = propagation::closed_form(&problem, &solitary_models(&problem));
        assert!(distance(&limit, &run.models()) < 1e-6, "model propagation, seed {seed}");
    }
}

/// Both sides of a partition settle long before it heals.
#[test]
fn a_run_with_a_tolerance_does_not_end_in_a_partition() {
    let heals = 2_000.0;
    let faults = Faults { partitions: vec![Partition { from: 1.0, to: heals, share: 0.5 }], ..Faults::default() };
    for seed in 0..5 {
        let problem = connected_problem(seed, 12, 2, Loss::Squared);
        let settings = Settings { faults: faults.clone(), tolerance: Some(1e-8), ..settings(seed) };
        let (end, error) = run_to_the_end(&problem, &settings);
        assert!(end > heals && error < 1e-6, "seed {seed}: {error} at {end}");
        let exchange = admm(&problem, Inner::Exact);
        let mut run = start(&exchange, &problem, &settings);
        assert_eq!(run.advance(12 * 20_000), Status::Quiet);
        let (end, error) = (run.now().0, distance(&central::minimum(&problem), &run.models()));
        assert!(end > heals && error < 1e-6, "ADMM, seed {seed}: {error} at {end}");
    }
}

/// Agents come back when all others have settled, and have missed what the others said last.
#[test]
fn a_run_with_a_tolerance_waits_for_those_who_return() {
    let faults = Faults { leave: 0.5, until: 3_000.0, ..Faults::default() };
    for seed in 0..30 {
        let problem = connected_problem(seed, 8, 2, Loss::Squared);
        let settings = Settings { faults: faults.clone(), tolerance: Some(1e-8), ..settings(seed) };
        let (end, error) = run_to_the_end(&problem, &settings);
        assert!(error < 1e-6, "seed {seed}: {error} at {end}");
    }
}

/// A lost post that told of a move is made up for by a later one that tells of none; until then nothing is settled.
#[test]
fn a_run_with_a_tolerance_and_heavy_loss_ends_at_the_optimum() {
    let faults = Faults { loss: 0.9, ..Faults::default() };
    for seed in 0..how_many(100, 1_000) {
        let problem = connected_problem(seed, 3, 2, Loss::Squared);
        let settings = Settings { faults: faults.clone(), tolerance: Some(1e-6), ..settings(seed) };
        let (end, error) = run_to_the_end(&problem, &settings);
        assert!(error < 1e-5, "seed {seed}: {error} at {end}");
    }
}

/// Agent 0 knows what it wants after a wake or two; agent 1 has no data and follows. Almost every post is lost, so that
/// both are still for long before the first one comes through: agent 1 must still wake after that.
#[test]
fn who_hears_news_at_last_is_still_no_more() {
    let mut data = Dataset::new(1);
    data.push_agent(&[1.0], &[3.0]);
    data.push_agent(&[], &[]);
    let graph = Graph::from_edges(2, &[(0, 1, 1.0)]).expect("a graph");
    let problem = Problem { trade_off: 1e6, ..problem(data, graph, Loss::Squared) };
    let algorithm = descent(&problem, Start::Zero);
    let faults = Faults { loss: 0.99, ..Faults::default() };
    for seed in 0..20 {
        let settings = Settings { faults: faults.clone(), tolerance: Some(1e-6), ..settings(seed) };
        let mut run = start(&algorithm, &problem, &settings);
        assert_eq!(run.advance(1_000_000), Status::Quiet);
        let error = distance(&central::minimum(&problem), &run.models());
        assert!(error < 1e-4, "seed {seed}: {error} at {:?}", run.now());
    }
}
