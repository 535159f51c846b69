//! Clients and servers of POLAR-SGD that die at any moment: no upload is lost or counted twice, and a round has all of a client or nothing of it.
//!
//! | invariant | where it is checked |
//! |---|---|
//! | while nobody is left out, what all come to is gradient descent on everybody's data | `life` |
//! | with a time-out that is too short it is gradient descent on some clients' data in each round, and on nothing between | `life` |
//! | all servers and clients end with the same bits | `life` |
//! | a charge is on the disk before the upload leaves, and is made once for each upload, or with noise for each gradient | `life` |
//!
//! With whole batches, one step in a round and gradients at the mean of the servers, weights and vectors cancel in what servers agree on, so that it can be told
//! exactly although every life draws its own. With `SOTTOVOCE_SOAK` set, every peer dies at every boundary of its disk and at every frame, with everything a
//! death may leave.

mod support;

use sottovoce_algorithms::vector::{add_scaled, largest_difference};
use sottovoce_algorithms::{Dataset, Loss, Problem, Regularization};
use sottovoce_core::{Graph, PeerId};
use sottovoce_encrypted::polar::client::gradient;
use sottovoce_encrypted::polar::{
    CompactSet, Consensus, Polar, PolarConfig, PolarPrivacy, Scope, StepSize, Variant, Weights,
};
use sottovoce_net::node::Node;
use sottovoce_privacy::sensitivity::Norm;
use sottovoce_privacy::{Event, Plan, Sum, Track};
use std::sync::Arc;
use support::Tail;
use support::world::{Kill, Weather, World};

const CLIENTS: u32 = 3;
const SERVERS: u32 = 3;
const ROUNDS: u32 = 3;
/// Noise that hardly moves a model.
const FAINT: Event = Event::Gaussian { noise_multiplier: 1e-9 };
const RAIN: Weather = Weather { loss: 0.2, replay: 0.3, death: 0.0 };
/// Longer than any absence.
const PATIENT: f64 = 1e6;

fn is_soak() -> bool {
    std::env::var_os("SOTTOVOCE_SOAK").is_some()
}

/// Three clients whose minima are apart, and servers behind them.
fn problem() -> Problem {
    let mut data = Dataset::new(2);
    for client in 0..CLIENTS {
        let label = f64::from(client) - 0.7;
        data.push_agent(&[1.0, 0.2, 0.1, 1.0 + label], &[label, 2.0 - label]);
    }
    (0..SERVERS).for_each(|_| data.push_agent(&[], &[]));
    Problem {
        data,
        graph: Graph::complete((CLIENTS + SERVERS) as usize).expect("a graph"),
        loss: Loss::Squared,
        regularization: Regularization::Constant(0.01),
        trade_off: 1.0,
        points_max: 2.0,
    }
}

fn polar(timeout: f64, private: bool) -> Polar {
    let config = PolarConfig {
        agents: CLIENTS + SERVERS,
        servers: (CLIENTS..CLIENTS + SERVERS).map(PeerId).collect(),
        servers_each: SERVERS as usize,
        colluders: 1,
        dimension: 2,
        variant: Variant::ClientAveraged,
        scope: Scope::Block,
        weights: Weights::PerNumber,
        consensus_every: 1,
        rounds: ROUNDS,
        weight: 3.0,
        weight_bound: 12.0,
        noise_bound: 0.5,
        set: CompactSet::Box(10.0),
        start: 0.5,
        batch: 100,
        step: StepSize { first: 0.1, offset: 1.0, power: 1.0 },
        consensus: Consensus::Secure,
        links: Vec::new(),
        timeout,
        private: private.then_some(PolarPrivacy { clip: 100.0, norm: Norm::L2 }),
    };
    Polar::new(config).expect("good parameters")
}

fn plan() -> Arc<Plan> {
    let tracks = vec![(Track::Models, vec![FAINT; ROUNDS as usize])];
    Arc::new(Plan::with_tracks(tracks, f64::INFINITY, 0.5, &Sum).expect("any budget"))
}

/// Where gradient descent comes to when round k counts these clients, as bits: all ends there can be, or the one with everybody.
fn ends(polar: &Polar, problem: &Problem, everybody: bool) -> Vec<Vec<f64>> {
    let mut ends = vec![vec![polar.config().start; 2]];
    for round in 0..ROUNDS {
        let step = polar.step_size(round) * polar.config().weight / f64::from(SERVERS);
        let all = (1 << CLIENTS) - 1;
        let counted = if everybody { all..=all } else { 0..=all };
        let moved = |from: &Vec<f64>, counted: u32| {
            let (mut to, mut slope) = (from.clone(), vec![0.0; 2]);
            for client in (0..CLIENTS).filter(|client| counted >> client & 1 == 1) {
                gradient(&problem.shard(PeerId(client)), None, from, &mut slope);
                add_scaled(&mut to, -step, &slope);
            }
            to
        };
        ends = ends
            .iter()
            .flat_map(|from| counted.clone().map(move |set| (from, set)))
            .map(|(x, set)| moved(x, set))
            .collect();
    }
    ends
}

type Peer<'w> = support::world::Peer<'w, Polar>;

fn has_ended(peer: &Peer<'_>) -> bool {
    peer.node.as_ref().is_some_and(|node| node.is_done() && node.is_delivered())
}

/// A whole life; returns how many rounds of clients were left out.
fn life(polar: &Polar, problem: &Problem, kills: &[Kill], (weather, rounds, seed): (Weather, u64, u64)) -> (u64, u64) {
    let private = polar.config().private.is_some();
    let mut world = World::new(polar, problem, private.then(plan), kills, seed);
    // A server says nothing of its own, and a client that it is there; an upload is to each of three servers.
    (world.weather, world.free, world.readers) = (weather, 1_000, u64::from(SERVERS));
    world.run(rounds, 2_000, |world| world.peers.iter().all(has_ended));
    let model = |k: usize| world.peers[k].node.as_ref().and_then(Node::model).expect("it has ended").to_vec();
    let outcome = model(CLIENTS as usize);
    assert!((0..world.peers.len()).all(|k| model(k) == outcome), "all come to the same");
    let patient = polar.config().timeout >= PATIENT;
    let off = |end: &Vec<f64>| largest_difference(end, &outcome);
    let nearest = ends(polar, problem, patient).iter().map(off).fold(f64::INFINITY, f64::min);
    // Servers add up multiples of 2^-32, and faint noise is of the order of 1e-7.
    assert!(nearest < if private { 1e-5 } else { 1e-8 }, "{nearest:e} from any descent; kills {kills:?}");
    let mut left = 0;
    for (k, peer) in world.peers.iter().enumerate() {
        let charged = peer.node.as_ref().expect("up").ledger().releases();
        let due = match k < CLIENTS as usize {
            true => u64::from(ROUNDS) * if private { 1 } else { u64::from(SERVERS) },
            false => 0,
        };
        assert!(if patient { charged == due } else { charged <= due }, "peer {k}: {charged} charges of {due}");
        left += due - charged;
    }
    (world.peers.iter().map(|peer| peer.deaths).sum(), left)
}

#[test]
fn no_upload_is_lost_or_counted_twice_whenever_a_peer_dies() {
    let problem = problem();
    for (timeout, every, private) in [(PATIENT, 4, false), (3.0, 5, false), (PATIENT, 4, true)] {
        let polar = polar(timeout, private);
        let (mut points, mut deaths, mut left) = (0, 0, 0);
        for seed in 1..if is_soak() { 3 } else { 2 } {
            let mut calm = World::new(&polar, &problem, private.then(plan), &[], seed);
            (calm.weather, calm.free, calm.readers) = (RAIN, 1_000, u64::from(SERVERS));
            calm.run(15, 2_000, |world| world.peers.iter().all(has_ended));
            let all = 0..(CLIENTS + SERVERS) as usize;
            let kills: Vec<Kill> = if is_soak() {
                let all = calm.deaths(all, 1).into_iter();
                all.flat_map(|kill| Tail::ALL.map(|tail| Kill { tail, ..kill })).collect()
            } else {
                calm.deaths(all, every)
            };
            points += kills.len();
            for kill in &kills {
                let (died, out) = life(&polar, &problem, std::slice::from_ref(kill), (RAIN, 15, seed));
                (deaths, left) = (deaths + died, left + out);
            }
        }
        println!(
            "polar, time-out {timeout}, private {private}: {points} kill points, {deaths} deaths, {left} uploads left out"
        );
        assert!(points >= if is_soak() { 2_000 } else { 100 }, "{points}");
        assert!(deaths * 10 >= points as u64 * 7, "{deaths} of {points}");
        assert_eq!(timeout < PATIENT, left > 0, "{left}");
    }
}

/// Many deaths in one life, of clients and servers.
#[test]
fn any_storm_ends_in_one_outcome() {
    let problem = problem();
    let storm = Weather { loss: 0.2, replay: 0.3, death: 0.15 };
    let lives = if is_soak() { 500 } else { 20 };
    for (timeout, private) in [(PATIENT, false), (PATIENT, true), (3.0, true)] {
        let polar = polar(timeout, private);
        let mut deaths = 0;
        for seed in 0..lives {
            deaths += life(&polar, &problem, &[], (storm, 25, seed)).0;
        }
        println!("polar, time-out {timeout}, private {private}: {deaths} deaths in {lives} storms");
        assert!(deaths > 5 * lives, "{deaths}");
    }
}

/// The others go on without a client that is gone for good, and all of them come to the same.
#[test]
fn the_others_end_without_a_client_that_is_gone_for_good() {
    let (problem, polar) = (problem(), polar(6.0, false));
    for (gone, when) in (0..CLIENTS as usize).flat_map(|gone| [0, 2, 5, 9].map(|when| (gone, when))) {
        let mut world = World::new(&polar, &problem, None, &[], 3 + when);
        (world.free, world.readers) = (1_000, u64::from(SERVERS));
        (0..2 + when).for_each(|_| world.round());
        world.kill(gone, Tail::Cached);
        world.peers[gone].down = u32::MAX;
        let is_done = |(k, peer): (usize, &Peer<'_>)| k == gone || peer.node.as_ref().is_some_and(Node::is_done);
        world.run(0, 500, |world| world.peers.iter().enumerate().all(is_done));
        let model = |k: usize| world.peers[k].node.as_ref().and_then(Node::model).expect("up").to_vec();
        let outcome = model(CLIENTS as usize);
        assert!((0..world.peers.len()).all(|k| k == gone || model(k) == outcome), "all come to the same");
        let off = |end: &Vec<f64>| largest_difference(end, &outcome);
        let nearest = ends(&polar, &problem, false).iter().map(off).fold(f64::INFINITY, f64::min);
        assert!(nearest < 1e-8, "{nearest:e} without {gone} after {when} rounds");
    }
}
