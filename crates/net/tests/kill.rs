//! Peers that die at any moment: no charge is lost, nothing is said twice with fresh noise, and everyone comes back.
//!
//! | invariant | where it is checked |
//! |---|---|
//! | what arrived anywhere is charged on the part of the sender's disk that is safe | `World::observe`, at arrivals; `World::kill` |
//! | no charge is lost by coming back | `World::kill`, `World::come_back` |
//! | one number, one frame, for ever | `World::observe` |
//! | a plan is spent exactly, and released no oftener than it has steps | `private_life` |
//! | everyone comes back, and the limit is the central minimum | `life` |
//!
//! With `SOTTOVOCE_SOAK` set, every peer dies at every boundary of every algorithm, and the random storms are longer.

mod support;

use sottovoce_algorithms::personal::{
    admm::{Admm, AdmmConfig, Inner},
    descent::{CoordinateDescent, CoordinateDescentConfig, PrivateCoordinateDescent, Start, WarmStart},
    propagation::{ModelPropagation, ModelPropagationConfig},
};
use sottovoce_algorithms::reference::{central, local::solitary_models, propagation::closed_form};
use sottovoce_algorithms::{Loss, Problem, Shard};
use sottovoce_core::{Algorithm, Coin, PeerId, Rows, Time};
use sottovoce_net::frame::{Answer, Card, Refusal, Seen};
use sottovoce_net::node::{Fault, Node, Woke};
use sottovoce_privacy::{Event, Plan, Sum};
use std::sync::Arc;
use support::backups::{asked, says_nothing_new, with_backups};
use support::world::{Kill, Moment, Weather, World, group, name, owner, private_descent, problem, rules};
use support::{CrashDisk, Tail};

const STEPS: usize = 6;
const WARM_WAKES: u32 = 3;

/// Lossy, with old frames coming again.
const RAIN: Weather = Weather { loss: 0.15, replay: 0.2, death: 0.0 };

/// How long it rains.
const RAINY_ROUNDS: u64 = 8;

fn is_soak() -> bool {
    std::env::var_os("SOTTOVOCE_SOAK").is_some()
}

fn private(problem: &Problem, warm: bool) -> (PrivateCoordinateDescent, Arc<Plan>) {
    let radius = 3.0;
    let warm_start = WarmStart { regularization: 0.1, radius, trade_off: 1.0, wakes: WARM_WAKES };
    let algorithm = private_descent(problem, warm.then_some(warm_start));
    let mut steps = vec![Event::Laplace { noise_multiplier: 10.0 }; STEPS];
    if warm {
        steps[0] = Event::GammaNorm { noise_multiplier: 10.0 };
    }
    let plan = Plan::new(steps, 10.0, 0.0, &Sum).expect("cheap");
    (algorithm, Arc::new(plan))
}

fn descent(problem: &Problem, start: Start) -> CoordinateDescent {
    let (dimension, loss, trade_off) = (problem.dimension(), problem.loss, problem.trade_off);
    CoordinateDescent::new(CoordinateDescentConfig { dimension, loss, trade_off, start }).expect("good parameters")
}

/// A whole life of a private network; returns it when everyone has spent its plan and been heard.
fn private_life<'w>(
    algorithm: &'w PrivateCoordinateDescent,
    problem: &'w Problem,
    plan: &Arc<Plan>,
    kills: &[Kill],
    (weather, rounds, seed): (Weather, u64, u64),
) -> World<'w, PrivateCoordinateDescent> {
    let mut world = World::new(algorithm, problem, Some(plan.clone()), kills, seed);
    world.weather = weather;
    // Posts of the propagation after a warm start are functions of what was released: they are free.
    let is_warm = plan.steps()[0] != plan.steps()[1];
    let free = if is_warm { u64::from(WARM_WAKES) } else { 0 };
    world.free = free;
    world.run(rounds, 300, World::is_done);
    for (k, peer) in world.peers.iter().enumerate() {
        let node = peer.node.as_ref().expect("everyone is back");
        assert_eq!(node.ledger().releases(), STEPS as u64, "peer {k} spent its plan and no more");
        assert!(world.sent(k) <= STEPS as u64 + free, "peer {k} said {} things", world.sent(k));
        // The last post was never superseded, so all neighbours hold it, to the bit.
        let model: Vec<u64> = node.model().expect("a model").iter().map(|value| value.to_bits()).collect();
        for edge in problem.graph.peers(PeerId(k as u32)).iter() {
            let other = world.peers[edge.peer.index()].node.as_ref().expect("everyone is back");
            let mut known = other.neighbours().filter(|neighbour| neighbour.name == name(k));
            let values = known.next().and_then(|neighbour| neighbour.values).expect("it was heard");
            assert_eq!(values.iter().map(|value| value.to_bits()).collect::<Vec<_>>(), model);
        }
    }
    world
}

/// A whole life of a network without privacy: until everyone is at the limit.
fn life<'w, A: for<'d> Algorithm<Data<'d> = Shard<'d>>>(
    algorithm: &'w A,
    problem: &'w Problem,
    expected: &Rows,
    kills: &[Kill],
    (weather, rounds, seed): (Weather, u64, u64),
) -> World<'w, A> {
    let mut world = World::new(algorithm, problem, None, kills, seed);
    world.weather = weather;
    world.run(rounds, 3_000, |world| world.distance(expected) < 1e-6);
    world
}

/// All deaths of some peers: at every boundary of their disks, with everything that a death may leave there, and at every
/// frame. `every` thins out the first kind.
fn deaths<A: Algorithm>(world: &World<'_, A>, peers: std::ops::Range<usize>, every: usize) -> Vec<Kill> {
    let mut all = Vec::new();
    for peer in peers {
        let counts = world.peers[peer].counts;
        let boundaries = world.peers[peer].disk.0.borrow().boundaries;
        for boundary in (1..=boundaries).step_by(every) {
            all.extend(Tail::ALL.map(|tail| Kill { peer, moment: Moment::Disk(boundary), tail }));
        }
        let kinds: [fn(u64) -> Moment; 3] = [Moment::HandOut, Moment::Unanswered, Moment::Taken];
        for (count, moment) in counts.into_iter().zip(kinds) {
            for k in (1..=count).step_by(every) {
                // Between two steps nothing but a seal is not safe yet.
                all.extend([Tail::Lost, Tail::Cached].map(|tail| Kill { peer, moment: moment(k), tail }));
            }
        }
    }
    all
}

/// Lives with one death each.
fn each(name: &str, kills: &[Kill], live: impl Fn(&[Kill]) -> u64) {
    let died: u64 = kills.iter().map(|kill| live(std::slice::from_ref(kill))).sum();
    println!("{name}: {} kill points, {died} deaths", kills.len());
    // Some are set for a moment that this life did not reach.
    assert!(died * 10 >= kills.len() as u64 * 9, "{died} of {} died", kills.len());
}

fn died<A: Algorithm>(world: &World<'_, A>) -> u64 {
    world.peers.iter().map(|peer| peer.deaths).sum()
}

/// Every boundary of every peer's disk, every kind of tail, every frame.
#[test]
fn a_private_peer_that_dies_at_any_moment_spends_its_plan_exactly() {
    let problem = problem(Loss::Logistic);
    for warm in [false, true] {
        let (algorithm, plan) = private(&problem, warm);
        let live = |kills: &[Kill]| private_life(&algorithm, &problem, &plan, kills, (RAIN, RAINY_ROUNDS, 1));
        // Without a warm start all four; with one the peer that has the most to do.
        let peers = if warm && !is_soak() { 0..1 } else { 0..4 };
        let kills = deaths(&live(&[]), peers, 1);
        assert!(kills.len() > 400, "{}", kills.len());
        each(if warm { "private, warm" } else { "private" }, &kills, |kills| died(&live(kills)));
    }
}

/// Two deaths of one peer, the second while it comes back from the first.
#[test]
fn a_private_peer_that_dies_while_it_comes_back_spends_its_plan_exactly() {
    let problem = problem(Loss::Logistic);
    let (algorithm, plan) = private(&problem, false);
    let live = |kills: &[Kill]| private_life(&algorithm, &problem, &plan, kills, (RAIN, RAINY_ROUNDS, 2));
    let boundaries = live(&[]).peers[0].disk.0.borrow().boundaries;
    let (mut lives, mut deaths) = (0, 0);
    for first in (1..=boundaries).step_by(if is_soak() { 1 } else { 5 }) {
        for again in 1..=8 {
            for tail in Tail::ALL {
                let kill = Kill { peer: 0, moment: Moment::Disk(first), tail };
                let mut world = World::new(&algorithm, &problem, Some(plan.clone()), &[kill], 2);
                world.weather = RAIN;
                world.again = Some(again);
                world.run(RAINY_ROUNDS, 300, World::is_done);
                let node = world.peers[0].node.as_ref().expect("it is back");
                assert_eq!(node.ledger().releases(), STEPS as u64);
                lives += 1;
                deaths += died(&world);
            }
        }
    }
    println!("private, twice: {lives} lives, {deaths} deaths");
    assert!(deaths * 10 > lives * 17, "{deaths} deaths in {lives} lives");
}

fn without_privacy<A>(name: &str, algorithm: &A, problem: &Problem, expected: &Rows, every: usize)
where
    A: for<'d> Algorithm<Data<'d> = Shard<'d>>,
{
    let live = |kills: &[Kill]| life(algorithm, problem, expected, kills, (RAIN, RAINY_ROUNDS, 3));
    let (peers, every) = if is_soak() { (0..4, 1) } else { (0..1, every) };
    each(name, &deaths(&live(&[]), peers, every), |kills| died(&live(kills)));
}

#[test]
fn coordinate_descent_finds_the_central_minimum_whenever_a_peer_dies() {
    for loss in [Loss::Squared, Loss::Logistic] {
        let problem = problem(loss);
        let expected = central::minimum(&problem);
        for start in [Start::Zero, Start::Local] {
            let name = format!("coordinate descent, {loss:?}, {start:?}");
            without_privacy(
                &name,
                &descent(&problem, start),
                &problem,
                &expected,
                if loss == Loss::Squared { 1 } else { 3 },
            );
        }
    }
}

#[test]
fn model_propagation_finds_its_limit_whenever_a_peer_dies() {
    let problem = problem(Loss::Logistic);
    let algorithm = ModelPropagation::new(ModelPropagationConfig { trade_off: 2.0 }).expect("good parameters");
    let expected = closed_form(&problem, &solitary_models(&problem));
    without_privacy("model propagation", &algorithm, &problem, &expected, 5);
}

#[test]
fn admm_finds_the_central_minimum_whenever_a_peer_dies() {
    let problem = problem(Loss::Squared);
    let config = AdmmConfig { trade_off: problem.trade_off, penalty: 0.5, inner: Inner::Exact };
    let algorithm = Admm::new(config).expect("good parameters");
    without_privacy("ADMM", &algorithm, &problem, &central::minimum(&problem), 9);
}

/// Many deaths of all peers in one life, some of them while others are away or come back.
#[test]
fn a_storm_in_which_everyone_dies_now_and_then_breaks_nothing() {
    let storm = Weather { loss: 0.2, replay: 0.3, death: 0.15 };
    let lives = if is_soak() { 2_000 } else { 60 };
    let mut deaths = 0;
    for seed in 0..lives {
        let loss = if seed % 2 == 0 { Loss::Squared } else { Loss::Logistic };
        let problem = problem(loss);
        let rounds = 20 + Coin::new(seed, 9, 0).below(30) as u64;
        if loss == Loss::Logistic {
            let (algorithm, plan) = private(&problem, seed % 4 == 1);
            deaths += died(&private_life(&algorithm, &problem, &plan, &[], (storm, rounds, seed)));
        }
        let expected = central::minimum(&problem);
        let start = if seed % 3 == 0 { Start::Zero } else { Start::Local };
        deaths += died(&life(&descent(&problem, start), &problem, &expected, &[], (storm, rounds, seed)));
        let config = AdmmConfig { trade_off: problem.trade_off, penalty: 0.5, inner: Inner::Exact };
        let admm = Admm::new(config).expect("good parameters");
        deaths += died(&life(&admm, &problem, &expected, &[], (storm, rounds, seed)));
        let propagation = ModelPropagation::new(ModelPropagationConfig { trade_off: 2.0 }).expect("good parameters");
        let expected = closed_form(&problem, &solitary_models(&problem));
        deaths += died(&life(&propagation, &problem, &expected, &[], (storm, rounds, seed)));
    }
    println!("storms: {deaths} deaths in {lives} lives of each algorithm");
    assert!(deaths > lives * 20, "{deaths}");
}

/// Peer 0 again, from a backup.
fn restored<'w, A: for<'d> Algorithm<Data<'d> = Shard<'d>>>(
    world: &World<'w, A>,
    backup: &[u8],
) -> Node<'w, A, CrashDisk> {
    let (shard, group) = (world.problem.shard(PeerId(0)), group(world.problem, 0));
    let disk = CrashDisk::holding(backup);
    Node::open(world.algorithm, shard, group, rules(world.plan.clone()), &owner(0), disk).expect("a good backup")
}

/// Every backup, every neighbour: how many were refused, and how many were new enough for the neighbour that was asked.
fn rolled_back<A>(world: &mut World<'_, A>, backups: &[Vec<u8>]) -> (u64, u64)
where
    A: for<'d> Algorithm<Data<'d> = Shard<'d>>,
{
    let (mut refused, mut believed) = (0, 0);
    let witnesses: Vec<PeerId> = world.problem.graph.peers(PeerId(0)).iter().map(|edge| edge.peer).collect();
    for backup in backups {
        for &witness in &witnesses {
            let mut node = restored(world, backup);
            assert_eq!(node.wake(Time(1.0)).expect("it waits"), Woke::Asking);
            says_nothing_new(world, &mut node);
            let (answer, seen) = asked(world, &node, witness);
            match node.welcomed(witness, &answer) {
                Err(Fault::RolledBack { own, seen: told, .. }) => {
                    assert!(told == seen && own == node.last_number() && seen > own);
                    assert!(matches!(node.wake(Time(2.0)), Err(Fault::Failed)));
                    assert!(matches!(node.save(), Err(Fault::Failed)));
                    refused += 1;
                }
                told => {
                    told.expect("no other fault");
                    assert!(
                        seen <= node.last_number(),
                        "{seen} was seen, and the store ends at {}",
                        node.last_number()
                    );
                    assert_eq!(node.wake(Time(2.0)).expect("it waits"), Woke::Asking, "one witness is not two");
                    believed += 1;
                }
            }
            says_nothing_new(world, &mut node);
        }
    }
    (refused, believed)
}

#[test]
fn a_store_that_was_rolled_back_or_emptied_is_refused_by_the_first_neighbour_that_saw_more() {
    let problem = problem(Loss::Squared);
    let (algorithm, plan) = private(&problem, false);
    let (mut world, backups) = with_backups(World::new(&algorithm, &problem, Some(plan), &[], 4), World::is_done);
    assert!(backups[0].is_empty(), "the emptied store is one of them");
    let (refused, believed) = rolled_back(&mut world, &backups);
    println!("private: {} backups, {refused} refused, {believed} as new as what was seen", backups.len());
    assert!(refused > 40 && believed >= 3, "{refused} {believed}");

    let config = AdmmConfig { trade_off: problem.trade_off, penalty: 0.5, inner: Inner::Exact };
    let algorithm = Admm::new(config).expect("good parameters");
    let expected = central::minimum(&problem);
    let (mut world, backups) =
        with_backups(World::new(&algorithm, &problem, None, &[], 4), |world| world.distance(&expected) < 1e-6);
    let (refused, believed) = rolled_back(&mut world, &backups);
    println!("letters: {} backups, {refused} refused, {believed} as new as what was seen", backups.len());
    assert!(refused > 40 && believed >= 3, "{refused} {believed}");
}

/// A backup that runs beside its original is found out when it asks anyone to whom the original said more. Until then nothing tells the
/// two apart: a limit, like the next one.
#[test]
fn a_copied_store_that_runs_twice_is_refused_once_the_other_is_ahead() {
    let problem = problem(Loss::Logistic);
    let (algorithm, plan) = private(&problem, false);
    let mut world = World::new(&algorithm, &problem, Some(plan), &[], 4);
    (0..3).for_each(|_| world.round());
    let copy = world.peers[0].disk.0.borrow().bytes.clone();
    let mut twin = restored(&world, &copy);
    for witness in [PeerId(1), PeerId(2)] {
        let (answer, _) = asked(&mut world, &twin, witness);
        twin.welcomed(witness, &answer).expect("it is as new as its original");
    }
    world.run(0, 300, World::is_done);
    // The twin goes on, and its neighbours drop what it says: the number is taken.
    assert_eq!(twin.wake(Time(9.0)).expect("it has its witnesses"), Woke::Acted);
    let out = twin.outgoing(PeerId(1)).expect("a post");
    let other = world.peers[1].node.as_mut().expect("it is up");
    let answer = other.receive(Some(PeerId(0)), &out.frame).expect("it lives");
    assert_eq!(Answer::decode(&answer), Ok(Answer::Refused(Refusal::OutOfTurn)));
    let (answer, _) = asked(&mut world, &twin, PeerId(1));
    assert!(matches!(twin.welcomed(PeerId(1), &answer), Err(Fault::RolledBack { .. })));
    assert!(matches!(twin.wake(Time(10.0)), Err(Fault::Failed)));
}

/// The limit: where all neighbours are new, or have forgotten, nobody can tell. Then a step of the plan is released twice.
#[test]
fn a_rollback_that_no_neighbour_can_witness_is_not_noticed() {
    let problem = problem(Loss::Logistic);
    let (algorithm, plan) = private(&problem, false);
    let (world, backups) = with_backups(World::new(&algorithm, &problem, Some(plan), &[], 4), World::is_done);
    let mut node = restored(&world, &backups[backups.len() / 2]);
    let before = node.ledger().releases();
    assert!(before < STEPS as u64);
    for witness in [PeerId(1), PeerId(2)] {
        let fresh = Answer::Welcome {
            card: Card { name: &name(witness.index()), points: 3, ..Card::default() },
            seen: Seen::default(),
            post: None,
        };
        node.welcomed(witness, &fresh.encode()).expect("it saw nothing");
    }
    assert_eq!(node.wake(Time(1.0)).expect("nobody objects"), Woke::Acted);
    assert_eq!(node.ledger().releases(), before + 1);
    let out = node.outgoing(PeerId(1)).expect("a post");
    assert_ne!(world.seen.get(&(0, out.number)), Some(&out.frame), "fresh noise under an old number");
}
