//! The token of a walk between five peers that die at any moment: it is neither lost nor doubled, and whoever is gone is passed over.
//!
//! | invariant | where it is checked |
//! |---|---|
//! | one token counts, of the highest epoch: all learn the same outcome | `life` |
//! | the outcome holds what the token says that it holds, and no more of anybody than it contributed | `life` |
//! | while nobody is given up, every hop contributes | `life` |
//! | a charge is on the disk before the token leaves, is not made twice, and covers what may be seen whatever the path | `life` |
//! | one that is gone for good holds nobody up | `the_others_end_without_a_member_that_is_gone_for_good` |
//!
//! Private lives have all charges and all noises, these so small that they vanish on the grid and the sum still tells who is in it.
//!
//! With `SOTTOVOCE_SOAK` set, every peer dies at every boundary of its disk and at every frame, with everything a death may leave.

mod support;

use sottovoce_algorithms::token::ring::RingUnit;
use sottovoce_algorithms::token::walk::{Beyond, Ended, Goal, State, Sums, SumsConfig, Walk, WalkConfig, WalkLetter};
use sottovoce_algorithms::{Bounds, Dataset, Loss, Observations, Points, Problem, Regularization, Shard};
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Graph, Neighbours, PeerId, Peers, Reject};
use sottovoce_net::node::Node;
use sottovoce_privacy::{Event, Exhausted, Plan, Sum, Track};
use std::sync::Arc;
use support::Tail;
use support::world::{Kill, Weather, World};

const MEMBERS: u32 = 5;
const HOPS: u64 = 16;
const CONTRIBUTIONS: u32 = 3;
/// Noise that vanishes on the grid.
const FAINT: Event = Event::Gaussian { noise_multiplier: 1e-9 };
const RAIN: Weather = Weather { loss: 0.2, replay: 0.3, death: 0.0 };
/// Contributions of a member are counted in digits of this base.
const BASE: u64 = 32;

fn is_soak() -> bool {
    std::env::var_os("SOTTOVOCE_SOAK").is_some()
}

/// Labels as rows of one number.
fn labels(shard: Shard<'_>) -> Observations<'_> {
    let values = shard.points.labels;
    Observations { points: Points { dimension: 1, features: values, labels: values }, bounds: None }
}

/// The walk, with labels as values.
struct OfLabels(Walk<Sums>);

impl Algorithm for OfLabels {
    type Data<'d> = Shard<'d>;
    type State = State;
    type Letter<'a> = WalkLetter<'a>;

    fn post_len(&self) -> usize {
        self.0.post_len()
    }

    fn letter_bytes_max(&self, shard: Shard<'_>) -> usize {
        self.0.letter_bytes_max(labels(shard))
    }

    fn wake_rate(&self, shard: Shard<'_>, peers: Peers<'_>) -> f64 {
        self.0.wake_rate(labels(shard), peers)
    }

    fn start(&self, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<State, Exhausted> {
        self.0.start(labels(shard), cx)
    }

    fn on_wake(&self, me: &mut State, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        self.0.on_wake(me, labels(shard), cx)
    }

    fn on_letter(
        &self,
        me: &mut State,
        shard: Shard<'_>,
        from: PeerId,
        letter: WalkLetter<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<(), Reject> {
        self.0.on_letter(me, labels(shard), from, letter, cx)
    }

    fn is_done(&self, me: &State) -> bool {
        self.0.is_done(me)
    }

    fn save(&self, me: &State, out: &mut Vec<u8>) {
        self.0.save(me, out);
    }

    fn resume(
        &self,
        saved: &[u8],
        neighbours: Neighbours,
        shard: Shard<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<State, CannotResume> {
        self.0.resume(saved, neighbours, labels(shard), cx)
    }

    fn model<'a>(&self, me: &'a State, posted: &'a [f64]) -> &'a [f64] {
        self.0.model(me, posted)
    }
}

/// Values whose sum tells how often each member contributed.
fn problem() -> Problem {
    let mut data = Dataset::new(1);
    (0..MEMBERS).for_each(|k| data.push_agent(&[0.0], &[BASE.pow(k) as f64]));
    Problem {
        data,
        graph: Graph::complete(MEMBERS as usize).expect("a graph"),
        loss: Loss::Squared,
        regularization: Regularization::Constant(0.1),
        trade_off: 1.0,
        points_max: 1.0,
    }
}

fn config(timeout: f64, law: Option<Event>) -> WalkConfig {
    WalkConfig {
        members: MEMBERS,
        hops: HOPS,
        tokens: 1,
        contributions: law.map(|_| CONTRIBUTIONS),
        law,
        beyond: Beyond::Noise,
        track: Track::Token,
        timeout: Some(timeout),
    }
}

fn walk(timeout: f64, law: Option<Event>) -> OfLabels {
    let range = Some(Bounds { low: 0.0, high: BASE.pow(MEMBERS - 1) as f64 });
    let (columns, unit, goal, private) = (1, RingUnit::Record, Goal::Sum, law.is_some());
    let sums = Sums::new(SumsConfig { columns, range, unit, goal, private }, MEMBERS).expect("sums");
    OfLabels(Walk::new(config(timeout, law), sums).expect("a walk"))
}

fn plan(law: Event) -> Arc<Plan> {
    let again = config(1.0, Some(law)).spacing().expect("spaced").again(law);
    let tracks = [(Track::Token, law), (Track::Reissues, again)];
    let tracks = tracks.map(|(track, law)| (track, vec![law; CONTRIBUTIONS as usize])).to_vec();
    Arc::new(Plan::with_tracks(tracks, f64::INFINITY, 0.5, &Sum).expect("any budget"))
}

type Peer<'w> = support::world::Peer<'w, OfLabels>;

/// Whether a peer is up, has the outcome, and has nothing left to say.
fn has_ended(peer: &Peer<'_>) -> bool {
    peer.node.as_ref().is_some_and(|node| node.is_done() && node.is_delivered())
}

fn state<'p>(peer: &'p Peer<'_>) -> &'p State {
    peer.node.as_ref().and_then(Node::state).expect("awake")
}

fn ended<'p>(peer: &'p Peer<'_>) -> &'p Ended {
    state(peer).ended().next().expect("it has ended")
}

/// How often each member is in a sum.
fn counts(ended: &Ended) -> Vec<u64> {
    (0..MEMBERS).map(|k| ended.values[0] as u64 / BASE.pow(k) % BASE).collect()
}

/// What a member was charged: for its contributions, and for what may be seen whatever the path.
fn charged(peer: &Peer<'_>) -> (u64, u64) {
    let ledger = peer.node.as_ref().expect("up").ledger();
    let count = |track| ledger.charges().filter(|charge| charge.track == track).map(|charge| charge.count).sum();
    (count(Track::Token), count(Track::Reissues))
}

/// What must be true of all members that have ended.
fn check<'p, 'w: 'p>(peers: impl Iterator<Item = &'p Peer<'w>>, timeout: f64, law: Option<Event>) {
    let peers: Vec<_> = peers.collect();
    let known = ended(peers[0]);
    let counted = counts(known);
    assert_eq!(counted.iter().sum::<u64>(), known.contributions, "{known:?}");
    if timeout > 1e3 && law.is_none() {
        assert_eq!((known.contributions, known.epoch.count), (HOPS, 0), "nobody is given up");
    }
    for peer in peers {
        assert_eq!(ended(peer), known, "one token counts, and all learn of it");
        let made = u64::from(state(peer).contributions());
        let again = if law.is_some() { made } else { 0 };
        assert_eq!(charged(peer), (made, again), "each contribution is charged once, and beforehand");
        assert!(law.is_none() || made <= u64::from(CONTRIBUTIONS), "{made}");
    }
}

/// A whole life, behind a plan where there is a law.
fn life<'w>(
    walk: &'w OfLabels,
    problem: &'w Problem,
    law: Option<Event>,
    kills: &[Kill],
    weather: (Weather, u64, u64),
) -> World<'w, OfLabels> {
    let (weather, rounds, seed) = weather;
    let mut world = World::new(walk, problem, law.map(plan), kills, seed);
    // Most of what a member says holds nothing of its own.
    (world.weather, world.free) = (weather, 1_000);
    world.run(rounds, 3_000, |world| world.peers.iter().all(has_ended));
    check(world.peers.iter(), walk.0.config().timeout.expect("one"), law);
    let counted = counts(ended(&world.peers[0]));
    for (peer, counted) in world.peers.iter().zip(counted) {
        let made = u64::from(state(peer).contributions());
        assert!(counted <= made, "{counted} counted of {made}: nothing is in it twice");
    }
    world
}

fn died<A: Algorithm>(world: &World<'_, A>) -> u64 {
    world.peers.iter().map(|peer| peer.deaths).sum()
}

fn reissues(world: &World<'_, OfLabels>) -> u32 {
    state(&world.peers[0]).passed_over()
}

/// With a time-out far beyond any absence nobody is given up, and with a short one many are.
#[test]
fn a_token_is_neither_lost_nor_doubled_whenever_a_peer_dies() {
    let problem = problem();
    for (timeout, every, law) in [(1e6, 4, None), (3.0, 4, None), (3.0, 3, Some(FAINT))] {
        let walk = walk(timeout, law);
        let (mut points, mut deaths, mut again) = (0, 0, 0);
        // The long version has other weathers too: each has boundaries of its own.
        for seed in 1..if is_soak() { 4 } else { 2 } {
            let live = |kills: &[Kill]| life(&walk, &problem, law, kills, (RAIN, 15, seed));
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
        println!("walk, time-out {timeout}, {law:?}: {points} kill points, {deaths} deaths, {again} reissues");
        assert!(points >= if is_soak() { 5_000 } else { 100 }, "{points}");
        // Paths are drawn anew in each life, and not every one comes by every point.
        assert!(deaths * 10 >= points as u64 * 5, "{deaths} of {points}");
        assert_eq!(timeout > 1e3, again == 0, "{again}");
    }
}

/// Many deaths in one life, with a time-out that is too short: whoever dies is passed over, and comes back with an old token.
#[test]
fn a_private_token_is_issued_again_in_any_storm_and_nobody_counts_or_pays_twice() {
    let problem = problem();
    let storm = Weather { loss: 0.2, replay: 0.3, death: 0.15 };
    let lives = if is_soak() { 1_000 } else { 40 };
    for (timeout, least) in [(1e6, 0), (3.0, 1)] {
        let (walk, mut deaths, mut again) = (walk(timeout, Some(FAINT)), 0, 0);
        for seed in 0..lives {
            let world = life(&walk, &problem, Some(FAINT), &[], (storm, 25, seed));
            (deaths, again) = (deaths + died(&world), again + u64::from(reissues(&world)));
        }
        println!("walk, time-out {timeout}: {deaths} deaths and {again} reissues in {lives} private storms");
        assert!(deaths > 5 * lives && again >= least * lives, "{deaths} {again}");
    }
}

/// Without privacy, and with it.
#[test]
fn the_others_end_without_a_member_that_is_gone_for_good() {
    let problem = problem();
    for (law, gone) in [None, Some(FAINT)].into_iter().flat_map(|law| (1..MEMBERS as usize).map(move |k| (law, k))) {
        let walk = walk(6.0, law);
        for when in [0, 1, 2, 3, 5] {
            let mut world = World::new(&walk, &problem, law.map(plan), &[], 3 + when);
            world.free = 1_000;
            (0..2 + when).for_each(|_| world.round());
            world.kill(gone, Tail::Cached);
            world.peers[gone].down = u32::MAX;
            let others = |world: &World<'_, OfLabels>| {
                let mut all = world.peers.iter().enumerate().filter(|(k, _)| *k != gone);
                all.all(|(_, peer)| peer.node.as_ref().is_some_and(Node::is_done))
            };
            world.run(0, 2_000, others);
            let others = world.peers.iter().enumerate().filter(|(k, _)| *k != gone).map(|(_, peer)| peer);
            check(others, 6.0, law);
        }
    }
}
