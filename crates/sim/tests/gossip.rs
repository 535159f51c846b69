//! Gossip averaging, run by the simulator.

mod support;

use sottovoce_algorithms::average::gossip::{Goal, Gossip, GossipConfig};
use sottovoce_algorithms::reference::statistic::{mean, sum};
use sottovoce_algorithms::{Dataset, Observations, Survey};
use sottovoce_core::{Coin, Graph, PeerId};
use sottovoce_sim::{Clock, Faults, Settings, Simulation, Status};
use support::{normal, settings, storm};

fn gossip(columns: usize, goal: Goal) -> Gossip {
    Gossip::new(GossipConfig { columns, goal }).expect("good parameters")
}

/// One to four rows each, about 50, on a graph.
fn survey(seed: u64, graph: Graph, columns: usize) -> Survey {
    let mut coin = Coin::new(seed, 0, 0);
    let mut data = Dataset::new(columns);
    for _ in 0..graph.agents() {
        let rows: Vec<f64> = (0..columns * (1 + coin.below(4))).map(|_| 50.0 + normal(&mut coin)).collect();
        data.push_rows(&rows);
    }
    Survey { data, graph, bounds: None }
}

/// One row of one column each.
fn one_row_each(graph: Graph, values: &[f64]) -> Survey {
    let mut data = Dataset::new(1);
    values.iter().for_each(|value| data.push_rows(&[*value]));
    Survey { data, graph, bounds: None }
}

/// A ring of n agents with chords.
fn chords(n: u32) -> Graph {
    let edges: Vec<(u32, u32, f64)> = (0..n).flat_map(|a| [(a, (a + 1) % n, 1.0), (a, (a + 5) % n, 0.5)]).collect();
    Graph::from_edges(n as usize, &edges).expect("a graph")
}

fn start<'w>(
    algorithm: &'w Gossip,
    survey: &'w Survey,
    settings: &Settings,
) -> Simulation<'w, Gossip, impl Fn(PeerId) -> Observations<'w> + Sync + use<'w>> {
    Simulation::start(algorithm, &survey.graph, |agent| survey.observations(agent), settings).expect("no budget")
}

/// The masses of all agents and ways together.
fn total<'w>(survey: &Survey, run: &Simulation<'w, Gossip, impl Fn(PeerId) -> Observations<'w> + Sync>) -> Vec<f64> {
    let mut total = vec![0.0; survey.data.dimension() + 1];
    let mut add = |mass: &[f64]| total.iter_mut().zip(mass).for_each(|(total, mass)| *total += mass);
    for me in (0..survey.data.agents() as u32).map(PeerId) {
        add(run.state(me).mass());
        for host in survey.graph.peers(me).iter() {
            run.state(me).on_its_way(me, host.peer, run.state(host.peer)).into_iter().for_each(&mut add);
        }
    }
    total
}

fn largest_error<'w>(run: &Simulation<'w, Gossip, impl Fn(PeerId) -> Observations<'w> + Sync>, exact: &[f64]) -> f64 {
    let models = run.models();
    let errors = models.values().iter().zip(exact.iter().cycle()).map(|(value, exact)| (value - exact).abs());
    errors.fold(0.0, f64::max)
}

#[test]
fn the_limit_is_the_mean_of_all_rows_and_n_times_the_mean_of_sums() {
    let survey = survey(1, chords(30), 3);
    for (goal, exact) in [(Goal::Mean, mean(survey.everyone())), (Goal::Sum { agents: 30 }, sum(survey.everyone()))] {
        let algorithm = gossip(3, goal);
        let settings = Settings { tolerance: Some(1e-11), ..settings(1) };
        let mut run = start(&algorithm, &survey, &settings);
        assert_eq!(run.advance(30 * 5_000), Status::Quiet, "{goal:?}");
        let scale = exact.iter().fold(1.0, |most: f64, value| most.max(value.abs()));
        let error = largest_error(&run, &exact) / scale;
        assert!(error < 1e-12, "{goal:?}: {error}");
    }
}

#[test]
fn nothing_is_lost_or_doubled_in_a_storm_and_the_limit_is_exact_after_it() {
    for seed in 0..4 {
        let survey = survey(seed, chords(20), 2);
        let algorithm = gossip(2, Goal::Mean);
        let settings = Settings { clock: Clock::Poisson, faults: storm(), ..settings(seed) };
        let mut run = start(&algorithm, &survey, &settings);
        let before = total(&survey, &run);
        let mut waiting = 0;
        while run.now().0 < storm().until + storm().delay_max {
            run.advance(1);
            let now = total(&survey, &run);
            let near = now.iter().zip(&before).all(|(now, before)| (now - before).abs() < 1e-10 * before);
            assert!(near, "seed {seed}: {now:?} {before:?}");
            waiting += (0..20).filter(|agent| run.state(PeerId(*agent)).mass()[2] == 0.0).count();
        }
        assert!(run.counters().lost > 0 && waiting > 100, "the storm tests nothing: {waiting}");
        run.advance(20 * 1_000);
        let error = largest_error(&run, &mean(survey.everyone()));
        assert!(error < 1e-9, "seed {seed}: {error}");
    }
}

#[test]
fn it_converges_while_a_third_of_the_letters_is_lost_and_all_are_slower_than_wakes() {
    let faults = Faults { loss: 0.3, duplicate: 0.1, delay_mean: 3.0, delay_max: 12.0, ..Faults::default() };
    for graph in [chords(20), Graph::Complete { n: 40 }] {
        let survey = survey(3, graph, 1);
        let algorithm = gossip(1, Goal::Mean);
        let settings = Settings { clock: Clock::Poisson, faults: faults.clone(), ..settings(3) };
        let mut run = start(&algorithm, &survey, &settings);
        run.advance(survey.data.agents() as u64 * 3_000);
        let error = largest_error(&run, &mean(survey.everyone()));
        assert!(error < 1e-9, "{} agents: {error}", survey.data.agents());
    }
}

/// Boyd et al., Theorem 3, where it holds with equality: on the complete graph each exchange takes 1 / (n - 1) of the expected squared
/// distance.
#[test]
fn the_distance_to_the_mean_shrinks_as_fast_as_the_second_eigenvalue_says() {
    let (n, exchanges, runs) = (20u32, 60, 400);
    let survey = one_row_each(Graph::Complete { n }, &(0..n).map(f64::from).collect::<Vec<_>>());
    let exact = mean(survey.everyone())[0];
    let algorithm = gossip(1, Goal::Mean);
    let distance = |values: &[f64]| values.iter().map(|value| (value - exact) * (value - exact)).sum::<f64>();
    let mut mean_distance = 0.0;
    for seed in 0..runs {
        let mut run = start(&algorithm, &survey, &settings(seed));
        run.advance(exchanges);
        mean_distance += distance(run.models().values()) / runs as f64;
        assert_eq!(run.counters().letters_sent, 3 * exchanges);
        assert_eq!(run.counters().vectors_sent, 2 * exchanges);
        assert_eq!(run.counters().bytes_sent, (9 + 2 * (9 + 16)) * exchanges);
    }
    let rows: Vec<f64> = (0..n).map(f64::from).collect();
    let predicted = distance(&rows) * libm::pow(1.0 - 1.0 / f64::from(n - 1), exchanges as f64);
    let ratio = mean_distance / predicted;
    assert!((ratio - 1.0).abs() < 0.1, "{mean_distance} {predicted}");
}

#[test]
fn each_component_finds_its_own_mean_and_an_agent_alone_keeps_its_own() {
    let graph = Graph::from_edges(6, &[(0, 1, 1.0), (1, 2, 1.0), (3, 4, 2.0)]).expect("a graph");
    let survey = one_row_each(graph, &[1.0, 2.0, 6.0, 10.0, 20.0, 7.0]);
    let algorithm = gossip(1, Goal::Mean);
    let mut run = start(&algorithm, &survey, &Settings { tolerance: Some(1e-12), ..settings(5) });
    assert_eq!(run.advance(6 * 2_000), Status::Quiet);
    let expected = [3.0, 3.0, 3.0, 15.0, 15.0, 7.0];
    let models = run.models();
    assert!(
        models.values().iter().zip(expected).all(|(value, expected)| (value - expected).abs() < 1e-11),
        "{models:?}"
    );
    assert_eq!(run.ledger(PeerId(5)).releases(), 0, "an agent alone says nothing");
    assert!(run.ledger(PeerId(0)).releases() > 0, "everything sent is in the ledger");

    let alone = one_row_each(Graph::from_edges(1, &[]).expect("a graph"), &[2.5]);
    let mut run = start(&algorithm, &alone, &Settings { tolerance: Some(1e-12), ..settings(5) });
    assert_eq!(run.advance(100), Status::Quiet);
    assert_eq!(run.models().values(), [2.5]);
}

#[test]
fn the_dead_stall_nobody() {
    let survey = survey(2, chords(20), 1);
    let algorithm = gossip(1, Goal::Mean);
    let faults = Faults { loss: 0.2, delay_mean: 1.0, delay_max: 5.0, die: 0.25, until: 40.0, ..Faults::default() };
    let settings = Settings { tolerance: Some(1e-9), faults, ..settings(2) };
    let mut run = start(&algorithm, &survey, &settings);
    assert_eq!(run.advance(20 * 5_000), Status::Quiet);
    let living: Vec<f64> = (0..20).map(PeerId).filter(|id| !run.is_dead(*id)).map(|id| run.model(id)[0]).collect();
    let spread = living.iter().fold(0.0f64, |most, value| most.max((value - living[0]).abs()));
    assert!(living.len() < 20 && spread < 1e-7, "{} {spread}", living.len());
    assert!((living[0] - mean(survey.everyone())[0]).abs() < 1.0, "{} {:?}", living[0], mean(survey.everyone()));
}
