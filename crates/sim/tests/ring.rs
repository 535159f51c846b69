//! A sum by a token on a ring, run by the simulator: CHECK 05.a to 05.c, what each member can see, and what happens when members are gone.

use sottovoce_algorithms::token::ring::{Reveal, Ring, RingConfig, RingGoal, RingNoise, RingUnit, State, noisy_hops};
use sottovoce_algorithms::{Bounds, Observations, Points};
use sottovoce_core::{Graph, PeerId};
use sottovoce_privacy::audit::Recording;
use sottovoce_privacy::{Audience, Event, Gate, Idealized, Plan, Shares, Simulated, Sum, Track, reissue_law};
use sottovoce_sim::{Clock, Faults, Settings, Simulation, Society, Status};
use std::sync::Arc;

const GAUSSIAN: Event = Event::Gaussian { noise_multiplier: 3.0 };
const LAPLACE: Event = Event::Laplace { noise_multiplier: 2.0 };

fn config(members: u32, rounds: u32, law: Option<Event>) -> RingConfig {
    RingConfig {
        members,
        rounds,
        range: Some(Bounds { low: -1.0, high: 1.0 }),
        unit: RingUnit::Record,
        goal: RingGoal::Sum,
        law,
        noise: RingNoise::One,
        reveal: Reveal::Broadcast,
        reissues: 1,
        timeout: 20.0,
    }
}

fn settings(seed: u64, faults: Faults) -> Settings {
    Settings { clock: Clock::Poisson, seed, threads: 1, tolerance: None, faults }
}

/// Rows of one number.
fn column(values: &[f64]) -> Observations<'_> {
    Observations { points: Points { dimension: 1, features: values, labels: values }, bounds: None }
}

/// As many contributions as there are rounds, each seen once more as often as it may be.
fn plan(law: Event, rounds: u32) -> Arc<Plan> {
    let again = vec![reissue_law(law); rounds as usize * Shares::One.seen_again()];
    let tracks = vec![(Track::Token, vec![law; rounds as usize]), (Track::Reissues, again)];
    Arc::new(Plan::with_tracks(tracks, f64::INFINITY, 0.5, &Sum).expect("any budget"))
}

/// Everyone can write to everyone, and nobody posts.
struct Place {
    graph: Graph,
    reach: Graph,
}

impl Place {
    fn of(members: u32) -> Place {
        let graph = Graph::from_edges(members as usize, &[]).expect("a graph");
        Place { graph, reach: Graph::complete(members as usize).expect("a graph") }
    }

    /// A run behind these gates; each member contributes its values.
    fn run<'w>(
        &'w self,
        ring: &'w Ring,
        values: &'w [Vec<f64>],
        settings: Settings,
        gates: impl Fn(PeerId) -> Gate<Simulated> + Sync,
    ) -> Simulation<'w, Ring, impl Fn(PeerId) -> Observations<'w> + Sync> {
        let society = Society { graph: &self.graph, reach: Some(&self.reach), roles: &[] };
        let data = |id: PeerId| column(&values[id.index()]);
        Simulation::start_behind(gates, ring, society, data, &settings).expect("it starts")
    }
}

fn exact(_: PeerId) -> Gate<Simulated> {
    Gate::unplanned(Simulated::None)
}

/// How often each member has drawn noise.
fn draws<'w, D>(run: &Simulation<'w, Ring, D>, members: u32) -> Vec<usize>
where
    D: Fn(PeerId) -> Observations<'w> + Sync,
{
    let drawn = |k| match run.gate(PeerId(k)).noise() {
        Simulated::Recording(noise) => noise.releases().len(),
        _ => panic!("recording noise"),
    };
    (0..members).map(drawn).collect()
}

/// The members of each hop that made noise, and whether the last told the sum with noise of its own.
fn noisy(members: u32, rounds: u32) -> (Vec<bool>, bool) {
    let (place, ring) = (Place::of(members), Ring::new(config(members, rounds, Some(GAUSSIAN))).expect("a ring"));
    let values = vec![vec![0.5]; members as usize];
    let plan = plan(GAUSSIAN, rounds);
    let recording = |id: PeerId| {
        let noise = Recording::new(Simulated::Idealized(Idealized::new(1, id.0)));
        Gate::planned(plan.clone(), Simulated::Recording(Box::new(noise)))
    };
    let mut run = place.run(&ring, &values, settings(1, Faults::default()), recording);
    // The first hop is the start. Each hop after it is the event in which its member's contributions grow.
    let mut before = vec![0; members as usize];
    let (mut hops, mut topped_up) = (Vec::new(), false);
    loop {
        let now = draws(&run, members);
        let counts: Vec<u32> = (0..members).map(|k| run.state(PeerId(k)).counts().0).collect();
        while hops.len() < counts.iter().sum::<u32>() as usize {
            let k = hops.len() % members as usize;
            let drew = now[k] - before[k];
            topped_up |=
                drew == 2 || hops.len() as u64 + 1 == ring.hops() && drew == 1 && !is_noisy(members, ring.hops());
            hops.push(drew > 0 && is_noisy(members, hops.len() as u64 + 1));
            assert!(drew <= 1 || hops.len() as u64 == ring.hops(), "two noises at one hop");
        }
        before = now;
        if run.advance(1) == Status::Done {
            break;
        }
    }
    assert_eq!(before.iter().sum::<usize>() as u64, noisy_hops(members, rounds) + u64::from(topped_up));
    (hops, topped_up)
}

/// h = 1 + j (n - 1).
fn is_noisy(members: u32, hop: u64) -> bool {
    (hop - 1).is_multiple_of(u64::from(members) - 1)
}

#[test]
fn check_05_a_the_number_of_noisy_hops_is_that_of_the_formula() {
    for members in 2..=50u32 {
        for rounds in 1..=20u32 {
            let hops = u64::from(members) * u64::from(rounds);
            let count = (1..=hops).filter(|&hop| is_noisy(members, hop)).count() as u64;
            assert_eq!(noisy_hops(members, rounds), count, "n = {members}, K = {rounds}");
            assert_eq!(count, (hops - 1) / (u64::from(members) - 1) + 1);
        }
    }
    // And the token does so; all of n = 3..50, K = 1..20, thinned out.
    for (members, rounds) in (3..=50).flat_map(|n| [(n, 1 + n % 20), (n, 1 + (7 * n) % 20)]) {
        let (hops, _) = noisy(members, rounds);
        assert_eq!(hops.len() as u64, u64::from(members) * u64::from(rounds));
        assert_eq!(hops.iter().filter(|noisy| **noisy).count() as u64, noisy_hops(members, rounds));
    }
}

#[test]
fn check_05_b_every_window_of_all_others_hops_holds_one_noise() {
    for (members, rounds) in [(3, 5), (4, 4), (5, 9), (10, 2), (17, 6)] {
        let (hops, topped_up) = noisy(members, rounds);
        for window in hops.windows(members as usize - 1) {
            assert_eq!(window.iter().filter(|noisy| **noisy).count(), 1, "n = {members}, K = {rounds}: {hops:?}");
        }
        assert_eq!(topped_up, !hops.last().expect("hops"), "a sum that is told has noise in its last window");
    }
}

/// Over many runs: the mean is the sum, and the standard deviation the formula's.
#[test]
fn check_05_c_the_sum_is_unbiased_and_its_deviation_is_that_of_the_formula() {
    let (members, rounds, runs) = (7, 3, 40_000u64);
    let place = Place::of(members);
    let values: Vec<Vec<f64>> = (0..members).map(|k| vec![0.25 * f64::from(k % 5) - 0.5]).collect();
    let truth: f64 = values.iter().map(|value| value[0] * f64::from(rounds)).sum();
    for (law, noise, reveal) in [
        (GAUSSIAN, RingNoise::One, Reveal::Broadcast),
        (GAUSSIAN, RingNoise::One, Reveal::Last),
        (LAPLACE, RingNoise::One, Reveal::Broadcast),
        (GAUSSIAN, RingNoise::All, Reveal::Broadcast),
        (GAUSSIAN, RingNoise::All, Reveal::Last),
    ] {
        let ring = Ring::new(RingConfig { noise, reveal, ..config(members, rounds, Some(law)) }).expect("a ring");
        let local = match law {
            Event::Laplace { noise_multiplier } => std::f64::consts::SQRT_2 * noise_multiplier,
            Event::Gaussian { noise_multiplier } => noise_multiplier,
            _ => unreachable!("one of two"),
        };
        let expected = (ring.variance()).sqrt() * local * ring.sensitivity();
        let plan = plan(law, rounds);
        let (mut total, mut squares) = (0.0, 0.0);
        for seed in 0..runs {
            let gates = |id: PeerId| Gate::planned(plan.clone(), Simulated::Idealized(Idealized::new(seed, id.0)));
            let mut run = place.run(&ring, &values, settings(seed, Faults::default()), gates);
            assert_eq!(run.advance(1_000), Status::Done);
            let sum = run.state(PeerId(members - 1)).sum().expect("the last one knows");
            let found = ring.estimate(sum, u64::from(members * rounds)) * f64::from(rounds);
            total += found - truth;
            squares += (found - truth).powi(2);
            if seed == 0 {
                let knows = (0..members).filter(|&k| run.state(PeerId(k)).sum().is_some()).count();
                assert_eq!(knows, if reveal == Reveal::Last { 1 } else { members as usize });
                let charge = run.ledger(PeerId(2)).charges().copied().collect::<Vec<_>>();
                let count =
                    |track| charge.iter().filter(move |charge| charge.track == track).map(|charge| charge.count);
                assert_eq!(count(Track::Token).sum::<u64>(), u64::from(rounds));
                let again = if noise == RingNoise::One { Shares::One } else { Shares::All }.seen_again() as u64;
                assert_eq!(count(Track::Reissues).sum::<u64>(), again * u64::from(rounds), "planned beforehand");
                assert!(charge.iter().all(|charge| charge.audience == Audience::OneMember));
            }
        }
        let (bias, deviation) = (total / runs as f64, (squares / runs as f64).sqrt());
        println!("{law:?} {noise:?} {reveal:?}: bias {bias:.4}, deviation {deviation:.3} of {expected:.3}");
        assert!(bias.abs() < 4.0 * expected / (runs as f64).sqrt(), "{bias}");
        assert!((deviation / expected - 1.0).abs() < 0.02, "{deviation} {expected}");
    }
}

/// Values whose sum tells how often each member contributed.
fn digits(members: u32) -> (Vec<Vec<f64>>, impl Fn(f64) -> Vec<u64>) {
    let values = (0..members).map(|k| vec![f64::from(16u32.pow(k))]).collect();
    (values, move |sum: f64| (0..members).map(|k| sum as u64 / 16u64.pow(k) % 16).collect())
}

fn counted(members: u32, rounds: u32, timeout: f64) -> Ring {
    let range = Some(Bounds { low: 0.0, high: f64::from(16u32.pow(members - 1)) });
    Ring::new(RingConfig { range, timeout, ..config(members, rounds, None) }).expect("a ring")
}

fn states<'r, 'w: 'r, D>(run: &'r Simulation<'w, Ring, D>, members: u32) -> Vec<&'r State>
where
    D: Fn(PeerId) -> Observations<'w> + Sync,
{
    (0..members).filter(|&k| !run.is_dead(PeerId(k))).map(|k| run.state(PeerId(k))).collect()
}

#[test]
fn everyone_counts_once_in_each_round_through_any_storm_while_nobody_is_given_up() {
    let (members, rounds) = (5, 3);
    let (place, ring) = (Place::of(members), counted(members, rounds, 1e5));
    let (values, read) = digits(members);
    for seed in 0..200 {
        let storm = Faults {
            loss: 0.4,
            duplicate: 0.3,
            delay_mean: 2.0,
            delay_max: 9.0,
            leave: 0.5,
            until: 60.0,
            ..Faults::default()
        };
        let mut run = place.run(&ring, &values, settings(seed, storm), exact);
        assert_eq!(run.advance(5_000), Status::Done);
        for state in states(&run, members) {
            assert_eq!(read(state.sum().expect("it was told")), vec![u64::from(rounds); 5], "seed {seed}");
        }
    }
}

/// Time-outs that are too short for the weather, members that leave and members that die: nobody counts twice, and what is missing was passed over.
#[test]
fn nobody_counts_twice_and_the_walk_ends_whoever_is_gone() {
    let (members, rounds) = (5, 3);
    let (place, ring) = (Place::of(members), counted(members, rounds, 4.0));
    let (values, read) = digits(members);
    let (mut reissues, mut missing, mut dead) = (0, 0, 0);
    for seed in 0..500 {
        let storm = Faults {
            loss: 0.3,
            delay_mean: 1.0,
            delay_max: 9.0,
            leave: 0.3,
            die: 0.1,
            until: 80.0,
            ..Faults::default()
        };
        let mut run = place.run(&ring, &values, settings(seed, storm), exact);
        assert_eq!(run.advance(20_000), Status::Done, "seed {seed}");
        let alive = states(&run, members);
        dead += members as usize - alive.len();
        let again: u32 = (0..members).map(|k| run.state(PeerId(k)).counts().1).sum();
        let sums: Vec<f64> = alive.iter().filter_map(|state| state.sum()).collect();
        // Whoever ends dies with what it knows; else all who live learn the same.
        assert!(sums.len() == alive.len() || alive.len() < members as usize, "seed {seed}: {sums:?}");
        if again == 0 {
            assert!(sums.iter().all(|sum| *sum == sums[0]), "seed {seed}: {sums:?}");
        }
        for sum in sums {
            let counts = read(sum);
            assert!(counts.iter().all(|count| *count <= u64::from(rounds)), "seed {seed}: {counts:?}");
            let lost: u64 = counts.iter().map(|count| u64::from(rounds) - count).sum();
            assert!(lost <= u64::from(again), "seed {seed}: {counts:?} after {again} reissues");
            missing += lost;
        }
        reissues += again;
    }
    println!("{reissues} reissues, {missing} contributions passed over, {dead} dead");
    assert!(reissues > 200 && dead > 100, "{reissues} {dead}");
}

/// With one member gone for good no other stands bare: between any two tokens that a member sees, another member drew noise.
#[test]
fn with_one_member_gone_for_good_no_window_is_without_anothers_noise() {
    for members in [4, 5, 8] {
        let rounds = 4;
        let (place, ring) = (Place::of(members), Ring::new(config(members, rounds, Some(GAUSSIAN))).expect("a ring"));
        let (values, plan) = (vec![vec![0.5]; members as usize], plan(GAUSSIAN, rounds));
        let recording = |id: PeerId| {
            let noise = Recording::new(Simulated::Idealized(Idealized::new(1, id.0)));
            Gate::planned(plan.clone(), Simulated::Recording(Box::new(noise)))
        };
        let mut gone = 0;
        for seed in 0..200 {
            let faults = Faults { die: 0.15, until: 0.0, ..Faults::default() };
            let mut run = place.run(&ring, &values, settings(seed, faults), recording);
            let dead: Vec<u32> = (0..members).filter(|&k| run.is_dead(PeerId(k))).collect();
            if dead.len() != 1 || dead[0] == 0 {
                continue;
            }
            gone += 1;
            // By member: noises of others when it last saw a token, and how many it has seen.
            let mut seen = vec![(0usize, 0u32); members as usize];
            loop {
                let status = run.advance(1);
                let drawn = draws(&run, members);
                for k in 0..members as usize {
                    let visits = run.state(PeerId(k as u32)).counts().0;
                    if visits > seen[k].1 {
                        let others: usize = drawn.iter().sum::<usize>() - drawn[k];
                        assert!(others > seen[k].0 || k == 0 && visits == 1, "n = {members}, seed {seed}, member {k}");
                        seen[k] = (others, visits);
                    }
                }
                if status == Status::Done {
                    break;
                }
            }
            assert!((0..members).all(|k| dead.contains(&k) || run.state(PeerId(k)).sum().is_some()));
        }
        assert!(gone > 10, "{gone}");
    }
}

/// The predecessor of a member that is gone draws noise when it passes it over, and so does the member after it.
#[test]
fn a_token_that_is_issued_again_has_noise_of_its_issuer_and_of_the_next() {
    let (members, rounds) = (6, 2);
    let (place, ring) = (Place::of(members), Ring::new(config(members, rounds, Some(GAUSSIAN))).expect("a ring"));
    let (values, plan) = (vec![vec![0.5]; members as usize], plan(GAUSSIAN, rounds));
    let recording = |id: PeerId| {
        let noise = Recording::new(Simulated::Idealized(Idealized::new(1, id.0)));
        Gate::planned(plan.clone(), Simulated::Recording(Box::new(noise)))
    };
    let mut seen = 0;
    for seed in 0..300 {
        let faults = Faults { die: 0.15, until: 0.0, ..Faults::default() };
        let mut run = place.run(&ring, &values, settings(seed, faults), recording);
        let dead: Vec<u32> = (0..members).filter(|&k| run.is_dead(PeerId(k))).collect();
        // In the middle, so that neither its predecessor nor its successor has any other reason to draw noise in the first round.
        if dead != [2] && dead != [3] {
            continue;
        }
        let (before, after) = (dead[0] as usize - 1, dead[0] as usize + 1);
        while run.state(PeerId(after as u32)).counts().0 == 0 {
            assert_ne!(run.advance(1), Status::Done);
        }
        let drawn = draws(&run, members);
        assert_eq!((drawn[0], drawn[before], drawn[after]), (1, 1, 1), "seed {seed}, without {dead:?}: {drawn:?}");
        seen += 1;
    }
    assert!(seen > 5, "{seen}");
}

/// A run behind which a coalition stands, and what it sees of it: the tokens that its members were sent, with what they added themselves taken
/// off, and the sum at the end. What they draw themselves they know, so they draw nothing here.
struct Coalition<'c> {
    members: &'c [u32],
    ring: &'c Ring,
    /// The same with noise so small that rounding to the grid takes it off.
    exact: &'c Ring,
    place: &'c Place,
    plan: &'c Arc<Plan>,
    settings: Settings,
}

impl Coalition<'_> {
    /// By time: hop and epoch of each token that it has passed on, and its value.
    fn view(&self, ring: &Ring, values: &[Vec<f64>]) -> Vec<((u64, u32), f64)> {
        let gates = |id: PeerId| match self.members.contains(&id.0) {
            true => exact(id),
            false => Gate::planned(self.plan.clone(), Simulated::Idealized(Idealized::new(3, id.0))),
        };
        let mut run = self.place.run(ring, values, self.settings.clone(), gates);
        let mut seen = Vec::new();
        loop {
            for &k in self.members {
                if let Some(token) = run.state(PeerId(k)).waits_for() {
                    let which = (token.hop, token.epoch.count);
                    if !seen.iter().any(|(known, _)| *known == which) {
                        seen.push((which, token.tau));
                    }
                }
            }
            if run.advance(1) == Status::Done {
                break;
            }
        }
        let sums = self.members.iter().filter_map(|&k| run.state(PeerId(k)).sum());
        seen.extend(sums.map(|sum| ((u64::MAX, 0), sum)));
        seen
    }

    /// What is new in each token: its difference to the one before.
    fn windows(view: &[((u64, u32), f64)]) -> Vec<f64> {
        let values = view.iter().map(|(_, tau)| *tau);
        [0.0].into_iter().chain(values.clone()).zip(values).map(|(before, now)| now - before).collect()
    }

    /// Windows that move when one record of a member is replaced, and whether each of them holds noise that the coalition has not drawn.
    fn moved(&self, values: &[Vec<f64>], target: usize) -> Vec<bool> {
        let mut other = values.to_vec();
        other[target][0] = -values[target][0];
        let (noisy, exact) = (self.view(self.ring, values), self.view(self.exact, values));
        let replaced = self.view(self.exact, &other);
        let keys = |view: &[((u64, u32), f64)]| view.iter().map(|(which, _)| *which).collect::<Vec<_>>();
        assert_eq!(keys(&noisy), keys(&exact), "when a token comes depends on nobody's data or noise");
        assert_eq!(keys(&exact), keys(&replaced));
        let [noisy, exact, replaced] = [&noisy, &exact, &replaced].map(|view| Coalition::windows(view));
        let noises: Vec<f64> = noisy.iter().zip(&exact).map(|(noisy, exact)| noisy - exact).collect();
        for (k, noise) in noises.iter().enumerate() {
            assert!(*noise == 0.0 || !noises[..k].contains(noise), "the same noise in two windows");
        }
        let moves = exact.iter().zip(&replaced).map(|(before, after)| (after - before).abs());
        let sensitivity = self.ring.sensitivity();
        let moved = moves.zip(&noises).filter(|(moved, _)| *moved != 0.0);
        moved.map(|(moved, noise)| (assert!(moved <= sensitivity, "{moved}"), *noise != 0.0).1).collect()
    }
}

/// Record and replay: a run again with one member's record replaced, and again without noise. Whatever moves in the view of a coalition that the
/// accountant covers has noise of somebody else in it, at most once for each charge.
#[test]
fn a_coalitions_view_holds_no_value_without_anothers_noise() {
    let (members, rounds) = (6, 3);
    let (place, plan) = (Place::of(members), plan(GAUSSIAN, rounds));
    let values: Vec<Vec<f64>> = (0..members).map(|k| vec![0.25 + 0.125 * f64::from(k)]).collect();
    let (mut windows, mut bare) = (0, 0);
    for (noise, reveal) in [
        (RingNoise::One, Reveal::Broadcast),
        (RingNoise::One, Reveal::Last),
        (RingNoise::All, Reveal::Broadcast),
        (RingNoise::All, Reveal::Last),
    ] {
        let with = |law| Ring::new(RingConfig { noise, reveal, ..config(members, rounds, Some(law)) }).expect("a ring");
        let (ring, exact) = (with(GAUSSIAN), with(Event::Gaussian { noise_multiplier: 1e-12 }));
        let pairs = (0..members).flat_map(|a| (0..a).map(move |b| vec![b, a]));
        for coalition in (0..members).map(|k| vec![k]).chain(pairs) {
            for seed in 0..12 {
                // In half of the runs somebody dies, so that tokens are issued again.
                let faults = Faults { die: if seed % 2 == 0 { 0.0 } else { 0.15 }, until: 0.0, ..Faults::default() };
                let settings = settings(seed, faults);
                let one =
                    Coalition { members: &coalition, ring: &ring, exact: &exact, place: &place, plan: &plan, settings };
                for target in (0..members).filter(|k| !coalition.contains(k)) {
                    let moved = one.moved(&values, target as usize);
                    assert!(moved.len() as u32 <= 2 * rounds + 1, "{moved:?}");
                    windows += moved.len();
                    let without = moved.iter().filter(|noisy| !**noisy).count();
                    if coalition.len() == 2 && noise == RingNoise::One {
                        bare += without;
                    } else {
                        assert_eq!(without, 0, "{noise:?} {reveal:?}: {coalition:?} sees member {target}, seed {seed}");
                    }
                }
            }
        }
    }
    println!("{windows} windows that move, {bare} of them bare before two members who are refused");
    assert!(windows > 5_000 && bare > 0, "two who stand on both sides of a member see it: {bare}");
}
