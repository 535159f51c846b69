//! Sums by a token that walks over the complete graph, run by the simulator: what comes out, who contributes how often, and where noise is made.

use sottovoce_algorithms::token::ring::RingUnit;
use sottovoce_algorithms::token::walk::{Beyond, Goal, Movement, Sums, SumsConfig, Walk, WalkConfig};
use sottovoce_algorithms::{Bounds, Observations, Points};
use sottovoce_core::{Graph, PeerId};
use sottovoce_privacy::audit::Recording;
use sottovoce_privacy::{Event, Gate, Idealized, Plan, Simulated, Sum, Track};
use sottovoce_sim::{Clock, Faults, Settings, Simulation, Society, Status};
use std::sync::Arc;

const GAUSSIAN: Event = Event::Gaussian { noise_multiplier: 2.0 };
const MEMBERS: u32 = 30;

fn config(law: Option<Event>) -> WalkConfig {
    WalkConfig {
        members: MEMBERS,
        hops: 300,
        tokens: 1,
        contributions: law.map(|_| 12),
        law,
        beyond: Beyond::Noise,
        track: Track::Token,
        timeout: None,
    }
}

fn sums(goal: Goal, private: bool) -> Sums {
    let range = Some(Bounds { low: -1.0, high: 1.0 });
    Sums::new(SumsConfig { columns: 1, range, unit: RingUnit::Record, goal, private }, MEMBERS).expect("sums")
}

fn values() -> Vec<Vec<f64>> {
    (0..MEMBERS).map(|k| vec![f64::from(k) / f64::from(MEMBERS) - 0.3]).collect()
}

fn plan(releases: usize) -> Arc<Plan> {
    let tracks = vec![(Track::Token, vec![GAUSSIAN; releases])];
    Arc::new(Plan::with_tracks(tracks, f64::INFINITY, 0.5, &Sum).expect("any budget"))
}

fn exact(_: PeerId) -> Gate<Simulated> {
    Gate::unplanned(Simulated::None)
}

/// Runs to the end, behind these gates, and shows the run.
fn run<R>(
    walk: &Walk<Sums>,
    values: &[Vec<f64>],
    seed: u64,
    faults: Faults,
    gates: impl Fn(PeerId) -> Gate<Simulated> + Sync,
    look: impl FnOnce(&dyn Fn(PeerId) -> (Vec<f64>, u32, bool, u64, usize)) -> R,
) -> R {
    let graph = Graph::complete(values.len()).expect("a graph");
    let society = Society { graph: &graph, reach: None, roles: &[] };
    let data = |id: PeerId| {
        let values = &values[id.index()];
        Observations { points: Points { dimension: 1, features: values, labels: values }, bounds: None }
    };
    let settings = Settings { clock: Clock::Poisson, seed, threads: 1, tolerance: None, faults };
    let mut run = Simulation::start_behind(gates, walk, society, data, &settings).expect("it starts");
    assert_eq!(run.advance(200_000), Status::Done, "the walk ends");
    look(&|id| {
        let state = run.state(id);
        let draws = match run.gate(id).noise() {
            Simulated::Recording(noise) => noise.releases().len(),
            _ => 0,
        };
        (run.model(id).to_vec(), state.contributions(), state.knows(), run.ledger(id).releases(), draws)
    })
}

fn everyone() -> impl Iterator<Item = PeerId> {
    (0..MEMBERS).map(PeerId)
}

#[test]
fn without_noise_the_estimate_is_the_sum_over_those_who_were_visited_and_all_know_it() {
    let walk = Walk::new(config(None), sums(Goal::Sum, false)).expect("a walk");
    let values = values();
    run(&walk, &values, 1, Faults::default(), exact, |agent| {
        let visits: Vec<u32> = everyone().map(|id| agent(id).1).collect();
        assert_eq!(visits.iter().sum::<u32>(), 300, "every hop contributes");
        let sum: f64 = visits.iter().zip(&values).map(|(&visits, own)| f64::from(visits) * own[0]).sum();
        for id in everyone() {
            let (estimate, visits, knows, releases, _) = agent(id);
            assert!(knows && (estimate[0] - sum * 30.0 / 300.0).abs() < 1e-9, "{estimate:?} {sum}");
            assert_eq!(releases, u64::from(visits), "every exact contribution is in the ledger");
        }
    });
}

/// u_t is uniform, the holder before included: chi-square over members, and over pairs of hops by repeats.
#[test]
fn holders_are_uniform() {
    let walk = Walk::new(WalkConfig { hops: 30_000, ..config(None) }, sums(Goal::Sum, false)).expect("a walk");
    run(&walk, &values(), 5, Faults::default(), exact, |agent| {
        let chi2: f64 = everyone().map(|id| (f64::from(agent(id).1) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi2 < 58.3, "chi-square {chi2} with 29 degrees of freedom, bound at 1e-3");
    });
}

/// The estimate is not pulled to zero by what is left out beyond the bound, and its spread is that of the formula.
#[test]
fn estimates_are_unbiased_and_spread_as_the_formula_says() {
    let values = values();
    let truth: f64 = values.iter().map(|own| own[0]).sum();
    let runs = 600;
    for (goal, truth) in [(Goal::Sum, truth), (Goal::Mean, truth / f64::from(MEMBERS))] {
        let sums = sums(goal, true);
        let law = Event::Gaussian { noise_multiplier: 0.7 };
        let walk =
            Walk::new(WalkConfig { contributions: Some(10), law: Some(law), ..config(None) }, sums).expect("a walk");
        let gates = |seed: u64| {
            let plan = plan(10);
            move |id: PeerId| Gate::planned(plan.clone(), Simulated::Idealized(Idealized::new(seed, id.0)))
        };
        let errors: Vec<f64> = (0..runs)
            .map(|seed| {
                run(&walk, &values, seed, Faults::default(), gates(seed), |agent| agent(PeerId(3)).0[0] - truth)
            })
            .collect();
        let mean = errors.iter().sum::<f64>() / runs as f64;
        let deviation =
            (errors.iter().map(|error| (error - mean) * (error - mean)).sum::<f64>() / (runs - 1) as f64).sqrt();
        assert!(mean.abs() < 4.0 * deviation / (runs as f64).sqrt(), "{goal:?}: bias {mean}, spread {deviation}");
        // The formula takes the largest spread that whom the token visits can have: the values here are a third of it.
        let noise = 300f64.sqrt() * 0.7 * sums.sensitivity();
        let made = walk.config().contributions_expected();
        let spread: f64 =
            values.iter().map(|own| (own[0] - truth_mean(&values)).powi(2)).sum::<f64>() / f64::from(MEMBERS);
        let scale = if goal == Goal::Sum { f64::from(MEMBERS) } else { 1.0 } / made;
        let predicted = (noise * noise + made * spread).sqrt() * scale;
        assert!((deviation / predicted - 1.0).abs() < 0.12, "{goal:?}: {deviation} {predicted}");
        let formula = sums.deviation(walk.config(), [1.0; 3]).expect("noise");
        assert!(formula >= predicted && formula < 1.5 * predicted, "{goal:?}: {formula} {predicted}");
    }
}

fn truth_mean(values: &[Vec<f64>]) -> f64 {
    values.iter().map(|own| own[0]).sum::<f64>() / values.len() as f64
}

#[test]
fn every_hop_makes_noise_and_nobody_contributes_beyond_its_bound() {
    for tokens in [1, 3] {
        let config = WalkConfig { tokens, contributions: Some(8), ..config(Some(GAUSSIAN)) };
        let walk = Walk::new(config, sums(Goal::Sum, true)).expect("a walk");
        let most = 8 * tokens;
        let plan = plan(most as usize);
        let recording = |id: PeerId| {
            let noise = Recording::new(Simulated::Idealized(Idealized::new(1, id.0)));
            Gate::planned(plan.clone(), Simulated::Recording(Box::new(noise)))
        };
        run(&walk, &values(), 2, Faults::default(), recording, |agent| {
            let hops: usize = everyone().map(|id| agent(id).4).sum();
            assert_eq!(hops, 300 * tokens as usize, "noise at every hop, once");
            let made: Vec<u32> = everyone().map(|id| agent(id).1).collect();
            assert!(made.iter().all(|&made| made <= most) && made.contains(&most), "{made:?}");
            assert!(everyone().all(|id| agent(id).3 == u64::from(agent(id).1)), "charged as often as contributed");
            assert!(made.iter().sum::<u32>() < 300 * tokens, "some visits were beyond the bound");
        });
    }
}

#[test]
fn several_tokens_come_to_one_estimate_that_all_agree_on() {
    let walk = Walk::new(WalkConfig { tokens: 4, hops: 75, ..config(None) }, sums(Goal::Mean, false)).expect("a walk");
    let values = values();
    run(&walk, &values, 3, Faults::default(), exact, |agent| {
        let visits: u32 = everyone().map(|id| agent(id).1).sum();
        assert_eq!(visits, 300);
        let mean: f64 = everyone().map(|id| f64::from(agent(id).1) * values[id.index()][0]).sum::<f64>() / 300.0;
        assert!(everyone().all(|id| (agent(id).0[0] - mean).abs() < 1e-9));
    });
}

#[test]
fn a_histogram_counts_who_was_visited() {
    let walk = Walk::new(config(None), sums(Goal::Histogram { bins: 4 }, false)).expect("a walk");
    let values = values();
    run(&walk, &values, 4, Faults::default(), exact, |agent| {
        let mut counts = [0.0; 4];
        let range = Bounds { low: -1.0, high: 1.0 };
        everyone().for_each(|id| counts[range.cell(4, values[id.index()][0])] += f64::from(agent(id).1) / 10.0);
        let found = agent(PeerId(9)).0;
        assert!(found.iter().zip(counts).all(|(found, count)| (found - count).abs() < 1e-9), "{found:?} {counts:?}");
    });
    let private = sums(Goal::Histogram { bins: 4 }, true);
    assert!((private.sensitivity() - 2f64.sqrt()).abs() < 1e-5, "one count falls and another rises");
}

/// The token waits for whoever has it, and arrives once.
#[test]
fn delays_losses_and_absences_neither_lose_nor_double_a_token() {
    let storm = Faults {
        loss: 0.3,
        duplicate: 0.2,
        delay_mean: 0.5,
        delay_max: 5.0,
        leave: 0.3,
        until: 200.0,
        ..Faults::default()
    };
    let walk = Walk::new(WalkConfig { tokens: 2, ..config(None) }, sums(Goal::Sum, false)).expect("a walk");
    for seed in 0..5 {
        run(&walk, &values(), seed, storm.clone(), exact, |agent| {
            assert_eq!(everyone().map(|id| agent(id).1).sum::<u32>(), 600, "each hop of each token once");
            assert!(everyone().all(|id| agent(id).2 && agent(id).0 == agent(PeerId(0)).0));
        });
    }
}

#[test]
fn the_same_seed_gives_the_same_walk_and_another_one_another() {
    let walk = Walk::new(config(None), sums(Goal::Sum, false)).expect("a walk");
    let path = |seed| {
        run(&walk, &values(), seed, Faults::default(), exact, |agent| {
            everyone().map(|id| agent(id).1).collect::<Vec<_>>()
        })
    };
    assert_eq!(path(7), path(7));
    assert_ne!(path(7), path(8));
}
