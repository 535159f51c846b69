//! Peers that learn models and graph together, privately, and die at any moment; or are flooded with questions, rolled back, or woken for
//! ever. What each has released is at any time the first steps and asides of its plan, as many as its own wakes say.
//!
//! The storm and the disks are those of `kill.rs`. A letter about the graph is free, and what it tells is not: a model and a cost, each of them
//! noise that was charged. So what is counted are different models and different costs, not messages. With `SOTTOVOCE_SOAK` set, each death
//! leaves everything that it may leave, and storms are longer.

mod support;

use sottovoce_algorithms::joint::{Joint, LogDegree};
use sottovoce_algorithms::personal::{
    descent::{self, PrivateDescentByLetters, PrivateDescentByLettersConfig, WarmStart},
    graph::{Alternating, AlternatingLetter, GraphLearning, GraphLearningConfig, GraphLetter, Theta, Turns},
};
use sottovoce_algorithms::{Loss, Problem};
use sottovoce_core::{Graph, PeerId, Time, Wire};
use sottovoce_net::frame::{Answer, Card, Question, Seen, Stamp};
use sottovoce_net::group::Group;
use sottovoce_net::node::{Fault, Node, Rules, Woke};
use sottovoce_net::store::StoredStep;
use sottovoce_privacy::{Event, Ledger, Plan, Sum};
use std::collections::BTreeSet;
use std::sync::Arc;

use support::backups::{asked, says_nothing_new, with_backups};
use support::world::{Kill, Moment, Weather, World, group, name, owner, private_descent, problem, rules};
use support::{CrashDisk, Tail};

type Private = Alternating<PrivateDescentByLetters, LogDegree>;

/// Lossy, with old frames coming again.
const RAIN: Weather = Weather { loss: 0.15, replay: 0.2, death: 0.0 };

/// How long it rains.
const RAINY_ROUNDS: u64 = 6;

/// At the wakes 0, 3 and 6 the graph, at 1, 2, 4 and 5 the models.
const TURNS: Turns = Turns { graph_first: 1.0, models: 2.0, graph: 1.0 };
const WAKES: u64 = 7;

/// Steps and asides of a peer after no wake, one, two, ..
const RELEASED: [(u64, u64); 8] = [(0, 0), (0, 0), (1, 0), (2, 0), (2, 1), (3, 1), (4, 1), (4, 2)];

/// The same with a warm start, which is a step before the first wake, one wake of propagation, and two updates.
const RELEASED_WARM: [(u64, u64); 8] = [(1, 0), (1, 0), (1, 0), (2, 0), (2, 1), (3, 1), (3, 1), (3, 2)];

const UPDATE: Event = Event::Laplace { noise_multiplier: 10.0 };
const LOSS: Event = Event::Laplace { noise_multiplier: 20.0 };

fn is_soak() -> bool {
    std::env::var_os("SOTTOVOCE_SOAK").is_some()
}

/// The usual four, who can all reach each other.
fn strangers() -> Problem {
    Problem { graph: Graph::complete(4).expect("four"), ..problem(Loss::Logistic) }
}

fn private(problem: &Problem, warm: bool, turns: Turns, losses: usize) -> (Private, Arc<Plan>) {
    let warm_start = WarmStart { regularization: 0.1, radius: 3.0, trade_off: 1.0, wakes: 1 };
    let descent = private_descent(problem, warm.then_some(warm_start));
    let updates = if warm { 2 } else { 4 };
    let config = PrivateDescentByLettersConfig { loss_bound: Some(1.5), updates, model_turns: 2 };
    let learner = PrivateDescentByLetters::new(descent, config).expect("good parameters");
    let regularizer = LogDegree { sparsity: 0.5, offset: LogDegree::OFFSET };
    let joint = Joint { trade_off: problem.trade_off, strength: 1.0, regularizer };
    let graph = GraphLearning::new(GraphLearningConfig { joint, sample: 2 }).expect("good parameters");
    let first = warm.then_some(Event::GammaNorm { noise_multiplier: 10.0 });
    let steps = first.into_iter().chain(vec![UPDATE; updates as usize]).collect();
    let plan = Plan::with_asides(steps, vec![LOSS; losses], 10.0, 0.0, &Sum).expect("cheap");
    (Alternating::new(learner, graph, turns).expect("good turns"), Arc::new(plan))
}

/// How many steps and how many asides a ledger holds.
fn released(ledger: &Ledger) -> (u64, u64) {
    let asides = ledger.charges().filter(|charge| charge.event == LOSS).map(|charge| charge.count).sum();
    (ledger.releases() - asides, asides)
}

/// What is on a disk is what as many wakes release, no less and no more.
fn is_prefix(step: &StoredStep) {
    assert_eq!(released(&step.ledger), RELEASED[step.wakes as usize], "after {} wakes", step.wakes);
}

fn is_prefix_warm(step: &StoredStep) {
    assert_eq!(released(&step.ledger), RELEASED_WARM[step.wakes as usize], "after {} wakes", step.wakes);
}

/// The model and the cost in a frame, but for the zeros that everyone starts with.
fn told(frame: &[u8]) -> (Option<Vec<u64>>, Option<u64>) {
    let Ok(Question::Letter { bytes, .. }) = Question::decode(frame) else { return (None, None) };
    let (model, cost) = match AlternatingLetter::<PrivateDescentByLetters>::decode(bytes).expect("peers write letters")
    {
        AlternatingLetter::Model(descent::ModelLetter::Model { model, .. }) => (Some(model), 0.0),
        AlternatingLetter::Graph(GraphLetter::Answer { cost, model: Theta::Dense(model), .. }) => (Some(model), cost),
        AlternatingLetter::Graph(GraphLetter::Answer { cost, model: Theta::Sparse { entries, .. }, .. }) => {
            assert!(entries.is_empty(), "only a model of zeros has any");
            (None, cost)
        }
        _ => (None, 0.0),
    };
    let bits = |value: f64| (value != 0.0).then_some(value.to_bits());
    let model = model.map(|model| model.iter().map(f64::to_bits).collect::<Vec<u64>>());
    (model.filter(|model| model.iter().any(|bits| *bits != 0)), bits(cost))
}

/// The same as facts that had to be charged for.
fn facts(frame: &[u8]) -> Vec<Vec<u8>> {
    let bytes =
        |kind: u8, bits: &[u64]| [kind].into_iter().chain(bits.iter().flat_map(|bits| bits.to_le_bytes())).collect();
    let (model, cost) = told(frame);
    model.iter().map(|model| bytes(0, model)).chain(cost.iter().map(|cost| bytes(1, &[*cost]))).collect()
}

fn world<'w>(
    algorithm: &'w Private,
    problem: &'w Problem,
    plan: &Arc<Plan>,
    kills: &[Kill],
    seed: u64,
) -> World<'w, Private> {
    let mut world = World::new(algorithm, problem, Some(plan.clone()), kills, seed);
    let is_warm = plan.steps()[0] != UPDATE;
    world.facts = Some(facts);
    world.wakes_max = Some(WAKES);
    world.holds = Some(if is_warm { is_prefix_warm } else { is_prefix });
    // A model of the propagation after a warm start follows from models that were released.
    world.free = u64::from(is_warm);
    world.weather = RAIN;
    world.look_every = 5;
    world
}

/// Runs until everyone has had its wakes and been heard.
fn live(world: &mut World<'_, Private>, stormy: u64) {
    world.run(stormy, 300, World::is_done);
    let plan = world.plan.clone().expect("a plan");
    for (k, peer) in world.peers.iter().enumerate() {
        let node = peer.node.as_ref().expect("everyone is back");
        let planned = (plan.steps().len() as u64, plan.asides().len() as u64);
        assert_eq!(released(node.ledger()), planned, "peer {k} spent its plan and no more");
        assert!(world.sent(k) <= plan.releases() + world.free, "peer {k} told {} things", world.sent(k));
    }
}

fn died(world: &World<'_, Private>) -> u64 {
    world.peers.iter().map(|peer| peer.deaths).sum()
}

/// Every boundary of a peer's disk, every frame.
#[test]
fn a_private_peer_that_learns_its_graph_and_dies_at_any_moment_spends_its_plan_exactly() {
    let problem = strangers();
    for warm in [false, true] {
        let (algorithm, plan) = private(&problem, warm, TURNS, 2);
        let life = |kills: &[Kill]| {
            let mut world = world(&algorithm, &problem, &plan, kills, 1);
            live(&mut world, RAINY_ROUNDS);
            world
        };
        let undisturbed = life(&[]);
        assert!((0..4).all(|k| undisturbed.sent(k) > 3), "models and costs are told");
        let mut kills = undisturbed.deaths(0..4, 1);
        if is_soak() {
            let each = |kill: &Kill| Tail::ALL.map(|tail| Kill { tail, ..*kill });
            kills = kills.iter().flat_map(each).collect();
        }
        let deaths: u64 = kills.iter().map(|kill| died(&life(std::slice::from_ref(kill)))).sum();
        println!("private graph, warm {warm}: {} kill points, {deaths} deaths", kills.len());
        // Some are set for a moment that this life did not reach.
        assert!(kills.len() > 600 && deaths * 10 >= kills.len() as u64 * 8, "{deaths} of {} died", kills.len());
    }
}

/// Deaths of one peer, each again while it comes back; and of all in a storm.
#[test]
fn a_private_peer_that_dies_again_and_again_spends_its_plan_exactly() {
    let problem = strangers();
    let (algorithm, plan) = private(&problem, false, TURNS, 2);
    let mut deaths = 0;
    let boundaries = (1..=90).step_by(if is_soak() { 1 } else { 7 });
    for (k, (first, again)) in boundaries.flat_map(|first| (1..=8).map(move |again| (first, again))).enumerate() {
        let tail = Tail::ALL[k % Tail::ALL.len()];
        let mut world = world(&algorithm, &problem, &plan, &[Kill { peer: 0, moment: Moment::Disk(first), tail }], 2);
        world.again = Some(again);
        live(&mut world, RAINY_ROUNDS);
        deaths += died(&world);
    }
    let twice = deaths;
    let lives = if is_soak() { 1_000 } else { 60 };
    for seed in 0..lives {
        let mut world = world(&algorithm, &problem, &plan, &[], seed);
        world.weather = Weather { loss: 0.2, replay: 0.3, death: 0.15 };
        live(&mut world, 30);
        deaths += died(&world);
    }
    println!("private graph: {twice} deaths of one peer, {} deaths in {lives} storms", deaths - twice);
    assert!(twice > 100 && deaths - twice > lives * 3, "{twice} {deaths}");
}

/// One peer among liars, awake, with the witnesses that it wants.
struct Victim<'w> {
    node: Node<'w, Private, CrashDisk>,
    used: u64,
}

impl<'w> Victim<'w> {
    fn new(algorithm: &'w Private, problem: &'w Problem, rules: Rules, group: Group, disk: &CrashDisk) -> Self {
        let node = Node::open(algorithm, problem.shard(PeerId(0)), group, rules, &owner(0), disk.clone());
        let mut victim = Victim { node: node.expect("a good store"), used: 1_000_000 };
        for other in 1..victim.node.group().names.len() {
            let name = victim.node.group().names[other].clone();
            let card = Card { name: &name, points: 3, ..Card::default() };
            let fresh = Answer::Welcome { card, seen: Seen::default(), post: None };
            victim.node.welcomed(PeerId(other as u32), &fresh.encode()).expect("a witness");
        }
        victim
    }

    fn wake(&mut self) -> Woke {
        self.node.wake(Time(self.node.wakes() as f64)).expect("it lives")
    }

    /// Questions about the graph, and letters that make no sense, from everyone. All models and costs that come out.
    fn flood(&mut self, each: u64) -> BTreeSet<(Option<Vec<u64>>, Option<u64>)> {
        let mut all = BTreeSet::new();
        for k in 0..each {
            for from in (1..4).map(PeerId) {
                let weight = k as f64;
                let letters = [
                    GraphLetter::Ask { round: k },
                    GraphLetter::Propose { as_of: k, weight },
                    GraphLetter::Settle { as_of: k, weight },
                    GraphLetter::Check { weight },
                    GraphLetter::Ask { round: u64::MAX },
                ];
                for letter in letters {
                    let mut bytes = Vec::new();
                    letter.encode(&mut bytes);
                    self.used += 1;
                    let frame = Question::Letter { stamp: Stamp::numbered(self.used), bytes: &bytes }.encode();
                    self.node.receive(Some(from), &frame).expect("it lives");
                    while let Some(out) = self.node.outgoing(from) {
                        if let (model, Some(cost)) = told(&out.frame) {
                            all.insert((model, Some(cost)));
                        }
                        self.node.answered(from, out.number, &Answer::Taken.encode());
                    }
                }
            }
        }
        all
    }
}

/// Whoever floods a peer with questions gets the one answer of the turn, and makes it release nothing: losses go by its own wakes.
#[test]
fn a_flood_of_questions_about_the_graph_provokes_no_loss() {
    let problem = strangers();
    // The first graph at the wakes 0 and 1, models at 2, 3, 7 and 8, the graph again at 4 to 6 and 9 to 11.
    let turns = Turns { graph_first: 2.0, models: 2.0, graph: 3.0 };
    let (algorithm, plan) = private(&problem, false, turns, 2);
    let rules = Rules { wakes_max: Some(12), witnesses: 3, ..rules(Some(plan.clone())) };
    let disk = CrashDisk::default();
    let mut victim = Victim::new(&algorithm, &problem, rules.clone(), group(&problem, 0), &disk);
    assert!(victim.flood(20).is_empty(), "it is not there yet");
    assert_eq!(victim.node.ledger().releases(), 0);
    let mut costs = Vec::new();
    let expected = [(0, 0), (0, 0), (1, 0), (2, 0), (2, 1), (2, 1), (2, 1), (3, 1), (4, 1), (4, 2), (4, 2), (4, 2)];
    for (wake, expected) in expected.into_iter().enumerate() {
        assert_eq!(victim.wake(), Woke::Acted);
        let answers = victim.flood(40);
        assert_eq!(released(victim.node.ledger()), expected, "at wake {wake}");
        assert_eq!(
            victim.node.is_quiet(),
            wake == 11,
            "a plan that is done leaves the graph to be learned: wake {wake}"
        );
        assert_eq!(answers.len(), usize::from(expected.1 > 0), "one answer at wake {wake}: {answers:?}");
        costs.extend(answers.into_iter().filter_map(|(_, cost)| cost));
        if wake == 5 {
            // It dies in a turn whose loss is released, and has that same loss when it comes back.
            victim = Victim {
                used: victim.used,
                ..Victim::new(&algorithm, &problem, rules.clone(), group(&problem, 0), &disk)
            };
        }
    }
    costs.dedup();
    assert_eq!(costs.len(), 2, "one in each turn of the graph after the first: {costs:?}");
    assert_eq!(victim.wake(), Woke::Done);
    assert!(victim.node.is_quiet() && victim.flood(40).len() == 1, "it listens and answers");
    assert_eq!(released(victim.node.ledger()), (4, 2));
}

/// More wakes than the plan is made for, and members that the state was not made for.
#[test]
fn a_plan_that_is_done_stays_done_and_other_members_are_refused() {
    let problem = strangers();
    let (algorithm, plan) = private(&problem, false, TURNS, 2);
    let disk = CrashDisk::default();
    let endless = rules(Some(plan.clone()));
    let mut victim = Victim::new(&algorithm, &problem, endless.clone(), group(&problem, 0), &disk);
    for wake in 0..5 * WAKES {
        assert_eq!(victim.wake(), Woke::Acted);
        let expected = RELEASED[(wake as usize + 1).min(WAKES as usize)];
        assert_eq!(released(victim.node.ledger()), expected, "at wake {wake}");
        assert_eq!(victim.node.is_quiet(), expected == (4, 2));
        victim.flood(3);
    }
    let mut fewer = group(&problem, 0);
    fewer.names.pop();
    fewer.keys.pop();
    let mut others = group(&problem, 0);
    others.names[3] = name(4);
    for members in [fewer, others] {
        let mut back = Victim::new(&algorithm, &problem, endless.clone(), members, &disk);
        assert!(matches!(back.node.wake(Time(99.0)), Err(Fault::State(_))), "a weight belongs to a pair of members");
        assert_eq!(released(back.node.ledger()), (4, 2), "what was spent stays spent");
    }
}

/// A letter is known to one member, so each may have seen another part of what was said: all are asked, unless the owner wants fewer.
#[test]
fn a_store_that_was_rolled_back_is_refused_when_all_members_are_asked() {
    let problem = strangers();
    let (algorithm, plan) = private(&problem, false, TURNS, 2);
    let mut fine = world(&algorithm, &problem, &plan, &[], 4);
    fine.weather = Weather::default();
    let (mut world, backups) = with_backups(fine, World::is_done);
    assert!(backups[0].is_empty(), "the emptied store is one of them");
    let latest = world.seen.range((0, 0)..(1, 0)).next_back().map_or(0, |((_, number), _)| *number);
    let open = |backup: &[u8]| {
        let rules = Rules { wakes_max: Some(WAKES), witnesses: 3, ..rules(Some(plan.clone())) };
        let disk = CrashDisk::holding(backup);
        Node::open(&algorithm, problem.shard(PeerId(0)), group(&problem, 0), rules, &owner(0), disk)
            .expect("a good backup")
    };
    let members = || (1..4).map(PeerId);
    let (mut refused, mut believed, mut unnoticed) = (0, 0, 0);
    for backup in &backups {
        for one in members() {
            let mut node = open(backup);
            let (answer, _) = asked(&mut world, &node, one);
            unnoticed += u64::from(node.last_number() < latest && node.welcomed(one, &answer).is_ok());
        }
        let mut node = open(backup);
        let mut outcome = Ok(());
        for member in members() {
            assert_eq!(node.wake(Time(1.0)).expect("it waits"), Woke::Asking, "not all have told");
            says_nothing_new(&world, &mut node);
            let (answer, _) = asked(&mut world, &node, member);
            outcome = node.welcomed(member, &answer);
            if outcome.is_err() {
                break;
            }
        }
        match outcome {
            Err(Fault::RolledBack { own, .. }) => {
                assert!(own < latest && matches!(node.wake(Time(2.0)), Err(Fault::Failed)));
                refused += 1;
            }
            other => {
                other.expect("no other fault");
                assert!(node.last_number() >= latest, "{} is older than {latest}", node.last_number());
                believed += 1;
            }
        }
    }
    println!(
        "private graph: {} backups, {refused} refused, {believed} new enough, {unnoticed} unnoticed by one",
        backups.len()
    );
    assert!(refused > 40 && believed > 0, "{refused} {believed}");
    assert!(unnoticed > 0, "one member is not enough");
}
