//! Sums under masks between five peers that die at any moment, the board among them.
//!
//! | invariant | where it is checked |
//! |---|---|
//! | all who know a sum know the same, and it is exactly that of some members, each once in each round | `life` |
//! | while nobody is given up, everyone counts in each round | `life` |
//! | a contribution is charged once, and on the disk before it leaves | `life`, with `World::facts` |
//! | no pad stream is used twice for different data: of each member and round one publication is ever on the wire | `life` |
//! | of each opener, other member and round the pad is opened or the share, never both | `life` |
//! | one that is gone for good holds nobody up | `the_others_have_their_sum_without_a_member_that_is_gone_for_good` |
//!
//! With `SOTTOVOCE_SOAK` set, every peer dies at every boundary of its disk and at every frame, with everything a death may leave.

mod support;

use sottovoce_algorithms::token::ring::RingUnit;
use sottovoce_algorithms::token::walk::Goal;
use sottovoce_algorithms::{Bounds, Problem};
use sottovoce_core::{Algorithm, PeerId, Wire};
use sottovoce_encrypted::gopa::{Gopa, GopaConfig, GopaLetter, State};
use sottovoce_net::frame::Question;
use sottovoce_net::node::Node;
use sottovoce_privacy::{Event, Plan, Sum, Track};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use support::Tail;
use support::labels::{OfLabels, digits, members_of};
use support::world::{Kill, Weather, World};

const MEMBERS: u32 = 5;
const ROUNDS: u32 = 2;
/// Beyond any absence.
const PATIENT: f64 = 1e6;
/// Many are given up.
const IMPATIENT: f64 = 4.0;
const NOISE: f64 = 2.0;
const RAIN: Weather = Weather { loss: 0.2, replay: 0.3, death: 0.0 };

type Masked = OfLabels<Gopa>;

fn is_soak() -> bool {
    std::env::var_os("SOTTOVOCE_SOAK").is_some()
}

fn gopa(timeout: f64, noise: Option<f64>) -> Masked {
    let config = GopaConfig {
        members: MEMBERS,
        finishing: 3,
        others: 2,
        neighbours: MEMBERS - 1,
        threshold: 2,
        rounds: ROUNDS,
        board: PeerId(0),
        columns: 1,
        range: Bounds { low: 0.0, high: f64::from(16u32.pow(MEMBERS - 1)) },
        unit: RingUnit::Record,
        goal: Goal::Sum,
        learns: None,
        noise,
        timeout,
    };
    OfLabels(Gopa::new(config).expect("good parameters"))
}

fn plan(noise_multiplier: f64) -> Arc<Plan> {
    let steps = vec![Event::Gaussian { noise_multiplier }; ROUNDS as usize];
    Arc::new(Plan::with_tracks(vec![(Track::Sums, steps)], f64::INFINITY, 0.5, &Sum).expect("any budget"))
}

fn letter(frame: &[u8]) -> Option<GopaLetter> {
    match Question::decode(frame) {
        Ok(Question::Durable { bytes, .. }) => GopaLetter::decode(bytes).ok(),
        _ => None,
    }
}

/// What a frame tells that must have been charged for: a publication.
fn facts(frame: &[u8]) -> Vec<Vec<u8>> {
    match letter(frame) {
        Some(GopaLetter::Publish { round, masked, .. }) => {
            vec![round.to_le_bytes().into_iter().chain(masked.concat()).collect()]
        }
        _ => Vec::new(),
    }
}

type Peer<'w> = support::world::Peer<'w, Masked>;

fn has_ended(peer: &Peer<'_>) -> bool {
    peer.node.as_ref().is_some_and(|node| node.is_done() && node.is_delivered())
}

fn state<'p>(peer: &'p Peer<'_>) -> &'p State {
    peer.node.as_ref().and_then(Node::state).expect("awake")
}

/// Looks at everything that reached anyone: what is used or opened once is used or opened once.
fn check_wire(world: &World<'_, Masked>) {
    let mut published: BTreeMap<(usize, u32), BTreeSet<Vec<u8>>> = BTreeMap::new();
    let mut opened: BTreeMap<(usize, u32, u32), (bool, bool)> = BTreeMap::new();
    for ((from, _), frame) in &world.seen {
        match letter(frame) {
            Some(GopaLetter::Publish { round, masked, .. }) => {
                published.entry((*from, round)).or_default().insert(masked.concat());
            }
            Some(GopaLetter::Pads { round, pads }) => {
                pads.iter().for_each(|(id, ..)| opened.entry((*from, *id, round)).or_default().0 = true);
            }
            Some(GopaLetter::Shares { round, shares }) => {
                shares.iter().for_each(|(id, _)| opened.entry((*from, *id, round)).or_default().1 = true);
            }
            _ => {}
        }
    }
    for (key, masked) in published {
        assert_eq!(masked.len(), 1, "{key:?}: the same pads for two publications");
    }
    for (key, both) in opened {
        assert_ne!(both, (true, true), "{key:?}: pad and share");
    }
}

/// A whole life, behind a plan where there is noise.
fn life<'w>(
    gopa: &'w Masked,
    problem: &'w Problem,
    kills: &[Kill],
    (weather, rounds, seed): (Weather, u64, u64),
) -> World<'w, Masked> {
    let config = gopa.0.config();
    let mut world = World::new(gopa, problem, config.noise.map(plan), kills, seed);
    world.weather = weather;
    world.facts = Some(facts);
    world.run(rounds, 2_000, |world| world.peers.iter().all(has_ended));
    check_wire(&world);
    let mut known: Option<(u64, Vec<u64>)> = None;
    for peer in &world.peers {
        let (node, state) = (peer.node.as_ref().expect("up"), state(peer));
        assert!(node.ledger().releases() <= u64::from(ROUNDS), "once for each round");
        if state.sums() == 0 {
            continue;
        }
        let estimate = gopa.model(state, &[])[0];
        let mine = (u64::from(state.sums()), vec![estimate.to_bits()]);
        assert_eq!(known.get_or_insert_with(|| mine.clone()), &mine, "all who know a sum know the same");
        if config.noise.is_none() {
            let whole = estimate * f64::from(state.sums());
            let counts = digits(whole, MEMBERS);
            let sum: f64 =
                counts.iter().enumerate().map(|(k, count)| f64::from(*count) * f64::from(16u32.pow(k as u32))).sum();
            assert_eq!(sum, whole, "a sum of members: {counts:?}");
            assert!(counts.iter().all(|count| *count <= state.sums()), "{counts:?}");
            let missing: u32 = counts.iter().map(|count| state.sums() - count).sum();
            assert_eq!(missing, state.missing(), "{counts:?}");
            if config.timeout == PATIENT {
                assert_eq!(counts, vec![ROUNDS; MEMBERS as usize], "nobody is given up");
            }
        }
    }
    assert!(known.is_some() || config.timeout < PATIENT, "there is a sum");
    world
}

fn died<A: Algorithm>(world: &World<'_, A>) -> u64 {
    world.peers.iter().map(|peer| peer.deaths).sum()
}

/// With a time-out far beyond any absence nobody is given up, and with a short one many are.
#[test]
fn every_sum_is_exactly_that_of_those_who_finished_whenever_a_peer_dies() {
    let problem = members_of(MEMBERS);
    for (timeout, every, noise) in [(PATIENT, 2, None), (IMPATIENT, 3, None), (IMPATIENT, 3, Some(NOISE))] {
        let gopa = gopa(timeout, noise);
        let (mut points, mut deaths, mut without, mut missing) = (0, 0, 0, 0);
        for seed in 1..if is_soak() { 4 } else { 2 } {
            let live = |kills: &[Kill]| life(&gopa, &problem, kills, (RAIN, 15, seed));
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
                deaths += died(&world);
                without += u32::from(!world.peers.iter().any(|peer| state(peer).knows()));
                missing += world.peers.iter().map(|peer| state(peer).missing()).max().unwrap_or(0);
            }
        }
        println!(
            "gopa, time-out {timeout}, {noise:?}: {points} kill points, {deaths} deaths, {without} without a sum, {missing} missing"
        );
        assert!(points >= if is_soak() { 1_000 } else { 60 }, "{points}");
        assert!(deaths * 10 >= points as u64 * 7, "{deaths} of {points}");
        assert_eq!(timeout == PATIENT, missing == 0 && without == 0, "{missing} {without}");
    }
}

/// Many deaths in one life: what a member is charged for is on its disk before it leaves, and it is charged once for each round.
#[test]
fn a_member_is_charged_once_for_each_sum_in_any_storm() {
    let problem = members_of(MEMBERS);
    let storm = Weather { loss: 0.2, replay: 0.3, death: 0.15 };
    let lives = if is_soak() { 1_000 } else { 40 };
    for timeout in [PATIENT, IMPATIENT] {
        let gopa = gopa(timeout, Some(NOISE));
        let mut deaths = 0;
        for seed in 0..lives {
            let world = life(&gopa, &problem, &[], (storm, 25, seed));
            deaths += died(&world);
            if timeout == PATIENT {
                let charged = world.peers.iter().map(|peer| peer.node.as_ref().expect("up").ledger().releases());
                assert!(charged.into_iter().all(|count| count == u64::from(ROUNDS)));
            }
        }
        println!("gopa: {deaths} deaths in {lives} private storms");
        assert!(deaths > 5 * lives, "{deaths}");
    }
}

#[test]
fn the_others_have_their_sum_without_a_member_that_is_gone_for_good() {
    let problem = members_of(MEMBERS);
    let gopa = gopa(6.0, None);
    for gone in 1..MEMBERS as usize {
        for when in [0, 1, 2, 3, 5] {
            let mut world = World::new(&gopa, &problem, None, &[], 3 + when);
            world.facts = Some(facts);
            (0..2 + when).for_each(|_| world.round());
            world.kill(gone, Tail::Cached);
            world.peers[gone].down = u32::MAX;
            let others = |world: &World<'_, Masked>| {
                let mut all = world.peers.iter().enumerate().filter(|(k, _)| *k != gone);
                all.all(|(_, peer)| peer.node.as_ref().is_some_and(Node::is_done))
            };
            world.run(0, 500, others);
            check_wire(&world);
            for (k, peer) in world.peers.iter().enumerate().filter(|(k, _)| *k != gone) {
                let state = state(peer);
                assert_eq!(state.sums(), ROUNDS, "member {k} without {gone}, after {when} rounds");
                let counts = digits(gopa.model(state, &[])[0] * f64::from(ROUNDS), MEMBERS);
                let full = counts
                    .iter()
                    .enumerate()
                    .all(|(k, count)| if k == gone { *count <= ROUNDS } else { *count == ROUNDS });
                assert!(full, "without {gone}, after {when} rounds, member {k}: {counts:?}");
            }
        }
    }
}
