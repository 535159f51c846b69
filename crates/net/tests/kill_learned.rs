//! Peers that learn their graph and die at any moment: both ends of a pair come to hold the same weight, and all of them the best.
//!
//! The storm, the disks and what is checked at every arrival and every death are those of `kill.rs`. With `SOTTOVOCE_SOAK` set there are
//! many more deaths, of all peers.

mod support;

use sottovoce_algorithms::joint::{Joint, LogDegree, Pairs};
use sottovoce_algorithms::personal::{
    boosting::{FrankWolfe, FrankWolfeConfig, StepSize},
    descent::DescentByLetters,
    graph::{Alternating, AlternatingState, GraphLearning, GraphLearningConfig, Learner, Links, Turns},
};
use sottovoce_algorithms::reference::{graph::minimum, local::solitary_models};
use sottovoce_algorithms::{Loss, Problem, objective};
use sottovoce_core::{Algorithm as _, Coin, Cx, Graph, Neighbours, Outbox, PeerId, Posts, Role, Rows, Time, UNHEARD};
use sottovoce_privacy::{Gate, Ledger, Secrets, Simulated};
use std::cell::Cell;
use support::world::{Kill, Weather, World, problem, stored};

/// Lossy, with old frames coming again.
const RAIN: Weather = Weather { loss: 0.15, replay: 0.2, death: 0.0 };

const JOINT: Joint<LogDegree> =
    Joint { trade_off: 2.0, strength: 1.0, regularizer: LogDegree { sparsity: 0.5, offset: LogDegree::OFFSET } };

fn is_soak() -> bool {
    std::env::var_os("SOTTOVOCE_SOAK").is_some()
}

/// The usual four, who can all reach each other.
fn strangers() -> Problem {
    Problem { graph: Graph::complete(4).expect("four"), ..problem(Loss::Logistic) }
}

fn alternating<L: Learner>(learner: L, sample: usize, turns: Turns) -> Alternating<L, LogDegree> {
    let graph = GraphLearning::new(GraphLearningConfig { joint: JOINT, sample }).expect("good parameters");
    Alternating::new(learner, graph, turns).expect("good turns")
}

fn descent(problem: &Problem) -> DescentByLetters {
    DescentByLetters::new(problem.loss, problem.trade_off).expect("good parameters")
}

/// The weights that a peer has saved; none before its first step.
fn saved_links<L: Learner + 'static>(world: &World<'_, Alternating<L, LogDegree>>, k: usize) -> Option<Links> {
    let step = stored(&world.peers[k].disk, k, false)?;
    let (me, shard) = (PeerId(k as u32), world.problem.shard(PeerId(k as u32)));
    let mut gate = Gate::resumed(None, Ledger::default(), Simulated::None).expect("no plan");
    let (versions, seen) = (Rows::zeros(0, 0), vec![UNHEARD; world.peers.len() - 1]);
    let (mut scratch, mut outbox) = (Vec::new(), Outbox::default());
    let mut cx = Cx {
        me,
        role: Role::Member,
        now: Time::default(),
        peers: world.problem.graph.peers(me),
        reach: world.problem.graph.peers(me),
        coin: Coin::new(0, me.0, 0),
        secret: Secrets::simulated(0, me.0, 0),
        gate: &mut gate,
        posts: Posts::PerEdge { versions: &versions, mine: UNHEARD, seen: &seen },
        scratch: &mut scratch,
        outbox: &mut outbox,
    };
    let state: AlternatingState<L> =
        world.algorithm.resume(&step.state, Neighbours::Same, shard, &mut cx).expect("what was saved can be read");
    Some(state.links().clone())
}

/// How far the weights of either end are from the expected ones; infinite while someone is away.
fn distance<L: Learner + 'static>(world: &World<'_, Alternating<L, LogDegree>>, expected: &Pairs) -> f64 {
    let mut most = 0.0f64;
    for k in 0..world.peers.len() {
        let up = world.peers[k].node.is_some();
        let Some(links) = saved_links(world, k).filter(|_| up) else { return f64::INFINITY };
        for other in (0..world.peers.len()).filter(|&other| other != k) {
            let (me, other) = (PeerId(k as u32), PeerId(other as u32));
            most = most.max((links.weight(other) - expected.at(me, other)).abs());
        }
    }
    most
}

/// Models rest, so there is one best graph, whatever happens on the way.
#[test]
fn learned_weights_are_the_best_at_both_ends_whenever_a_peer_dies() {
    let problem = strangers();
    let turns = Turns { graph_first: 1e9, models: 1.0, graph: 1.0 };
    let algorithm = alternating(descent(&problem), 3, turns);
    let models = solitary_models(&problem);
    let cost = |id: u32| {
        let shard = problem.shard(PeerId(id));
        shard.confidence * objective::local_value(&shard, models.row(id as usize))
    };
    let expected = minimum(&JOINT, &JOINT.prices(&models, &(0..4).map(cost).collect::<Vec<_>>()));
    let live = |kills: &[Kill]| {
        let mut world = World::new(&algorithm, &problem, None, kills, 3);
        world.weather = RAIN;
        // Reading four stores takes longer than a round.
        let rounds = Cell::new(0);
        world.run(8, 3_000, |world| {
            rounds.set(rounds.get() + 1);
            rounds.get() % 20 == 0 && distance(world, &expected) < 1e-6
        });
        world
    };
    let (peers, every) = if is_soak() { (0..4, 23) } else { (0..1, 101) };
    let kills = live(&[]).deaths(peers, every);
    let died: u64 = kills.iter().map(|kill| live(std::slice::from_ref(kill)).peers[kill.peer].deaths).sum();
    println!("learned graph: {} kill points, {died} deaths", kills.len());
    // Some are set for a moment that this life did not reach.
    assert!(kills.len() > 20 && died * 10 >= kills.len() as u64 * 8, "{died} of {} died", kills.len());
}

/// Models and graph by turns, in a storm in which everyone dies now and then. When it is over, both ends of every pair hold the same.
fn settles<L: Learner + 'static>(what: &str, learner: impl Fn(&Problem) -> L) {
    let storm = Weather { loss: 0.2, replay: 0.3, death: 0.15 };
    let lives = if is_soak() { 200 } else { 5 };
    let mut deaths = 0;
    for seed in 0..lives {
        let problem = strangers();
        let algorithm = alternating(learner(&problem), 2, Turns { graph_first: 5.0, models: 4.0, graph: 4.0 });
        let mut world = World::new(&algorithm, &problem, None, &[], seed);
        world.weather = storm;
        // One step is told to all neighbours.
        world.readers = 3;
        let agree = |world: &World<'_, _>| {
            let links: Option<Vec<Links>> = (0..4).map(|k| saved_links(world, k)).collect();
            let up = world.peers.iter().all(|peer| peer.node.is_some());
            links.filter(|_| up).is_some_and(|links| {
                let weight = |a: usize, b: usize| links[a].weight(PeerId(b as u32)).to_bits();
                let pairs = || (0..4).flat_map(|a| (0..a).map(move |b| (a, b)));
                pairs().all(|(a, b)| weight(a, b) == weight(b, a)) && links.iter().all(|links| !links.is_empty())
            })
        };
        world.run(30, 3_000, agree);
        deaths += world.peers.iter().map(|peer| peer.deaths).sum::<u64>();
    }
    println!("{what}: {deaths} deaths in {lives} lives");
    assert!(deaths > lives * 5, "{deaths}");
}

#[test]
fn both_ends_of_a_pair_agree_after_a_storm_in_which_everyone_dies() {
    settles("descent", descent);
    settles("boosting", |problem| {
        let (step_size, trade_off) = (StepSize::LocalClock, problem.trade_off);
        let config =
            FrankWolfeConfig { predictors: 2, trade_off, radius: 2.0, step_size, gap_min: 0.0, local_rounds: 5 };
        FrankWolfe::new(config).expect("good parameters")
    });
}
