//! The token of a ring between five peers that die at any moment: it is neither lost nor doubled, and nobody counts twice.
//!
//! | invariant | where it is checked |
//! |---|---|
//! | one token lives to its end, of the highest epoch: all learn the same sum | `life` |
//! | while nobody is given up, everyone counts once in each round | `life` |
//! | with a time-out that is too short nobody counts twice, and whatever is missing was passed over | `life` |
//! | a charge is on the disk before the token leaves, is not made twice, and covers what may be seen again | `life`, and the private storms |
//! | one that is gone for good holds nobody up | `the_others_end_without_a_member_that_is_gone_for_good` |
//!
//! Private lives have all charges and all noises, these so small that they vanish on the grid and the sum still tells who is in it.
//!
//! With `SOTTOVOCE_SOAK` set, every peer dies at every boundary of its disk and at every frame, with everything a death may leave.

mod support;

use sottovoce_algorithms::token::ring::{Reveal, Ring, RingConfig, RingGoal, RingNoise, RingUnit, State};
use sottovoce_algorithms::{Bounds, Problem};
use sottovoce_core::Algorithm;
use sottovoce_net::node::Node;
use sottovoce_privacy::{Event, Plan, Shares, Sum, Track, reissue_law};
use std::sync::Arc;
use support::Tail;
use support::labels::{OfLabels, digits, members_of};
use support::world::{Kill, Weather, World};

const MEMBERS: u32 = 5;
const ROUNDS: u32 = 2;
/// Noise that vanishes on the grid.
const FAINT: Event = Event::Gaussian { noise_multiplier: 1e-9 };
const RAIN: Weather = Weather { loss: 0.2, replay: 0.3, death: 0.0 };

fn is_soak() -> bool {
    std::env::var_os("SOTTOVOCE_SOAK").is_some()
}

/// Values whose sum tells how often each member contributed.
fn problem() -> Problem {
    members_of(MEMBERS)
}

fn counts(sum: f64) -> Vec<u32> {
    digits(sum, MEMBERS)
}

type Ringed = OfLabels<Ring>;

fn ring(timeout: f64, law: Option<Event>) -> Ringed {
    let range = Some(Bounds { low: 0.0, high: f64::from(16u32.pow(MEMBERS - 1)) });
    let config = RingConfig {
        members: MEMBERS,
        rounds: ROUNDS,
        range,
        unit: RingUnit::Record,
        goal: RingGoal::Sum,
        law,
        noise: RingNoise::One,
        reveal: Reveal::Broadcast,
        reissues: 1,
        timeout,
    };
    OfLabels(Ring::new(config).expect("a ring"))
}

fn plan(law: Event) -> Arc<Plan> {
    let again = vec![reissue_law(law); ROUNDS as usize * Shares::One.seen_again()];
    let tracks = vec![(Track::Token, vec![law; ROUNDS as usize]), (Track::Reissues, again)];
    Arc::new(Plan::with_tracks(tracks, f64::INFINITY, 0.5, &Sum).expect("any budget"))
}

type Peer<'w> = support::world::Peer<'w, Ringed>;

/// Whether a peer is up, has the sum, and has nothing left to say.
fn has_ended(peer: &Peer<'_>) -> bool {
    peer.node.as_ref().is_some_and(|node| node.is_done() && node.is_delivered())
}

fn state<'p>(peer: &'p Peer<'_>) -> &'p State {
    peer.node.as_ref().and_then(Node::state).expect("awake")
}

/// What a member was charged: for its contributions, and for what may be seen again of them.
fn charged(peer: &Peer<'_>) -> (u64, u64) {
    let ledger = peer.node.as_ref().expect("up").ledger();
    let count = |track| ledger.charges().filter(|charge| charge.track == track).map(|charge| charge.count).sum();
    (count(Track::Token), count(Track::Reissues))
}

/// A whole life, behind a plan where there is a law.
fn life<'w>(
    ring: &'w Ringed,
    problem: &'w Problem,
    law: Option<Event>,
    kills: &[Kill],
    weather: (Weather, u64, u64),
) -> World<'w, Ringed> {
    let (weather, rounds, seed) = weather;
    let mut world = World::new(ring, problem, law.map(plan), kills, seed);
    // Most of what a member of a ring says holds nothing of its own.
    (world.weather, world.free) = (weather, 1_000);
    world.run(rounds, 2_000, |world| world.peers.iter().all(has_ended));
    let again: u32 = world.peers.iter().map(|peer| state(peer).counts().1).sum();
    let sum = state(&world.peers[0]).sum().expect("it has ended");
    let counted = counts(sum);
    let missing: u32 = counted.iter().map(|count| ROUNDS.checked_sub(*count).expect("nobody counts twice")).sum();
    assert!(missing <= again, "{counted:?} after {again} reissues");
    for (peer, counted) in world.peers.iter().zip(counted) {
        assert_eq!(state(peer).sum(), Some(sum), "one token lives to its end, and all learn of it");
        let contributed = state(peer).counts().0;
        assert!((counted..=ROUNDS).contains(&contributed), "{counted} counted of {contributed}");
        if law.is_some() {
            let contributed = u64::from(contributed);
            let seen_again = contributed * Shares::One.seen_again() as u64;
            assert_eq!(charged(peer), (contributed, seen_again), "each contribution is charged once, and beforehand");
        }
    }
    world
}

fn died<A: Algorithm>(world: &World<'_, A>) -> u64 {
    world.peers.iter().map(|peer| peer.deaths).sum()
}

fn reissues(world: &World<'_, Ringed>) -> u32 {
    world.peers.iter().map(|peer| state(peer).counts().1).sum()
}

/// With a time-out far beyond any absence nobody is given up, and with a short one many are.
#[test]
fn a_token_is_neither_lost_nor_doubled_whenever_a_peer_dies() {
    let problem = problem();
    for (timeout, every, law) in [(1e6, 2, None), (3.0, 3, None), (3.0, 1, Some(FAINT))] {
        let ring = ring(timeout, law);
        let (mut points, mut deaths, mut again) = (0, 0, 0);
        // The long version has other weathers too: each has boundaries of its own.
        for seed in 1..if is_soak() { 4 } else { 2 } {
            let live = |kills: &[Kill]| life(&ring, &problem, law, kills, (RAIN, 15, seed));
            let calm = live(&[]);
            let kills: Vec<Kill> = if is_soak() {
                let all = calm.deaths(0..5, 1).into_iter();
                all.flat_map(|kill| Tail::ALL.map(|tail| Kill { tail, ..kill })).collect()
            } else {
                calm.deaths(0..5, every)
            };
            points += kills.len();
            for kill in &kills {
                let world = live(std::slice::from_ref(kill));
                (deaths, again) = (deaths + died(&world), again + reissues(&world));
            }
        }
        println!("ring, time-out {timeout}, {law:?}: {points} kill points, {deaths} deaths, {again} reissues");
        assert!(points >= if is_soak() { 5_000 } else { if law.is_none() { 150 } else { 300 } }, "{points}");
        assert!(deaths * 10 >= points as u64 * 7, "{deaths} of {points}");
        assert_eq!(timeout > 1e3, again == 0, "{again}");
    }
}

/// Many deaths in one life; the charges of each member are those of its contributions, and on its disk before anything leaves.
#[test]
fn a_private_token_is_charged_once_for_each_round_in_any_storm() {
    let (problem, law) = (problem(), Event::Gaussian { noise_multiplier: 2.0 });
    let (ring, plan) = (ring(1e6, Some(law)), plan(law));
    let storm = Weather { loss: 0.2, replay: 0.3, death: 0.15 };
    let lives = if is_soak() { 1_000 } else { 40 };
    let mut deaths = 0;
    for seed in 0..lives {
        let mut world = World::new(&ring, &problem, Some(plan.clone()), &[], seed);
        (world.weather, world.free) = (storm, 1_000);
        world.run(25, 2_000, |world| world.peers.iter().all(has_ended));
        deaths += died(&world);
        let sum = state(&world.peers[0]).sum();
        for peer in &world.peers {
            let node = peer.node.as_ref().expect("up");
            let charges: Vec<_> = node.ledger().charges().map(|charge| (charge.track, charge.count)).collect();
            let again = u64::from(ROUNDS) * Shares::One.seen_again() as u64;
            assert_eq!(charges, [(Track::Reissues, again), (Track::Token, u64::from(ROUNDS))]);
            assert_eq!(state(peer).sum(), sum, "all learn the same");
        }
    }
    println!("ring: {deaths} deaths in {lives} private storms");
    assert!(deaths > 5 * lives, "{deaths}");
}

/// The same with a time-out that is too short: whoever dies is passed over, and comes back with an old token.
#[test]
fn a_private_token_is_issued_again_in_any_storm_and_nobody_counts_or_pays_twice() {
    let (problem, ring) = (problem(), ring(3.0, Some(FAINT)));
    let storm = Weather { loss: 0.2, replay: 0.3, death: 0.15 };
    let lives = if is_soak() { 1_000 } else { 40 };
    let (mut deaths, mut again) = (0, 0);
    for seed in 0..lives {
        let world = life(&ring, &problem, Some(FAINT), &[], (storm, 25, seed));
        (deaths, again) = (deaths + died(&world), again + reissues(&world));
    }
    println!("ring: {deaths} deaths and {again} reissues in {lives} private storms");
    assert!(deaths > 5 * lives && u64::from(again) > lives, "{deaths} {again}");
}

/// Without privacy, and with it.
#[test]
fn the_others_end_without_a_member_that_is_gone_for_good() {
    let problem = problem();
    for (law, gone) in [None, Some(FAINT)].into_iter().flat_map(|law| (1..MEMBERS as usize).map(move |k| (law, k))) {
        let ring = ring(6.0, law);
        for when in [0, 1, 2, 3, 5] {
            let mut world = World::new(&ring, &problem, law.map(plan), &[], 3 + when);
            world.free = 1_000;
            (0..2 + when).for_each(|_| world.round());
            world.kill(gone, Tail::Cached);
            world.peers[gone].down = u32::MAX;
            let others = |world: &World<'_, Ringed>| {
                let mut all = world.peers.iter().enumerate().filter(|(k, _)| *k != gone);
                all.all(|(_, peer)| peer.node.as_ref().is_some_and(Node::is_done))
            };
            world.run(0, 500, others);
            for (k, peer) in world.peers.iter().enumerate().filter(|(k, _)| *k != gone) {
                let counts = counts(state(peer).sum().expect("it has ended"));
                assert!(counts.iter().all(|count| *count <= ROUNDS), "{counts:?}");
                let full = counts.iter().enumerate().all(|(k, count)| k == gone || *count == ROUNDS);
                assert!(full, "without {gone}, after {when} rounds, member {k}: {counts:?}");
            }
        }
    }
}
