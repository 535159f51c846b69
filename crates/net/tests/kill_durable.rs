//! Durable letters between peers that die at any moment: each has its effect once, and in order, whatever happens to either end.
//!
//! | invariant | where it is checked |
//! |---|---|
//! | what was read from a neighbour is 1, 2, 3, .. without a gap or a repetition, at any time | `in_order` |
//! | so it is on the safe part of the disk, and no acknowledged letter is missing there | `World::holds`, `in_order` |
//! | everything arrives in the end | `life` |
//! | what waits for an absent peer is bounded | `a_peer_that_is_gone_for_long_costs_so_many_letters_and_no_more` |
//!
//! With `SOTTOVOCE_SOAK` set, every peer dies at every boundary of its disk and at every frame, with everything a death may leave.

mod support;

use sottovoce_algorithms::{Loss, Problem};
use sottovoce_core::{Coin, DURABLE_WAITING_MAX, PeerId, Time};
use sottovoce_net::frame::{Answer, Card, Evidence, Question, Refusal, Seen, Stamp};
use sottovoce_net::node::{Afterwards, Fault, Node, Woke};
use sottovoce_net::store::StoredStep;
use support::courier::{Courier, Journal, LETTER, Note};
use support::world::{Kill, Weather, World, group, name, owner, problem, rules};
use support::{CrashDisk, Tail};

const LETTERS: u64 = 7;
const RAIN: Weather = Weather { loss: 0.2, replay: 0.3, death: 0.0 };
const RAINY_ROUNDS: u64 = 10;

fn is_soak() -> bool {
    std::env::var_os("SOTTOVOCE_SOAK").is_some()
}

/// What was read is what was written, from the first on; every third was answered.
fn in_order(journal: &Journal) {
    for read in journal.read.values() {
        assert!(read.iter().copied().eq(1..=read.len() as u64), "read {read:?}");
    }
    for answers in journal.answers.values() {
        assert!(answers.iter().copied().eq((1..=answers.len() as u64).map(|k| 3 * k)), "answered {answers:?}");
    }
}

fn on_disk(step: &StoredStep) {
    if !step.state.is_empty() {
        in_order(&serde_json::from_slice(&step.state).expect("a journal"));
    }
}

fn check<'w>(world: &World<'w, Courier>) {
    for node in world.peers.iter().filter_map(|peer| peer.node.as_ref()) {
        node.state().into_iter().for_each(in_order);
        assert!(node.neighbours().all(|neighbour| neighbour.waiting <= DURABLE_WAITING_MAX));
    }
    // What one end has read, the other has written, and remembers to have.
    for (k, peer) in world.peers.iter().enumerate() {
        let Some(journal) = peer.node.as_ref().and_then(Node::state) else { continue };
        for (from, read) in &journal.read {
            let writer = world.peers[*from as usize].node.as_ref().and_then(Node::state);
            let written = writer.map(|writer| writer.sent[&(k as u32)]);
            assert!(written.is_none_or(|written| written >= read.len() as u64), "{from} wrote {written:?} of {read:?}");
        }
    }
}

fn is_over(world: &World<'_, Courier>) -> bool {
    check(world);
    let complete = |node: &Node<'_, Courier, CrashDisk>| {
        let journal = node.state().expect("awake");
        let all = |lists: &std::collections::BTreeMap<u32, Vec<u64>>, each: u64| {
            lists.len() == node.group().neighbours.as_ref().map_or(3, Vec::len)
                && lists.values().all(|list| list.len() as u64 == each)
        };
        all(&journal.read, LETTERS) && all(&journal.answers, LETTERS / 3)
    };
    world.peers.iter().all(|peer| peer.node.as_ref().is_some_and(|node| node.state().is_some() && complete(node)))
}

fn life<'w>(
    courier: &'w Courier,
    problem: &'w Problem,
    kills: &[Kill],
    weather: (Weather, u64, u64),
) -> World<'w, Courier> {
    let (weather, rounds, seed) = weather;
    let mut world = World::new(courier, problem, None, kills, seed);
    world.weather = weather;
    world.holds = Some(on_disk);
    world.look_every = 5;
    world.run(rounds, 600, is_over);
    world
}

fn died(world: &World<'_, Courier>) -> u64 {
    world.peers.iter().map(|peer| peer.deaths).sum()
}

#[test]
fn durable_letters_are_read_once_and_in_order_whenever_a_peer_dies() {
    let (problem, courier) = (problem(Loss::Squared), Courier { letters: LETTERS });
    let live = |kills: &[Kill]| life(&courier, &problem, kills, (RAIN, RAINY_ROUNDS, 1));
    let calm = live(&[]);
    let kills: Vec<Kill> = if is_soak() {
        let all = calm.deaths(0..4, 1).into_iter();
        all.flat_map(|kill| Tail::ALL.map(|tail| Kill { tail, ..kill })).collect()
    } else {
        calm.deaths(0..4, 5)
    };
    let deaths: u64 = kills.iter().map(|kill| died(&live(std::slice::from_ref(kill)))).sum();
    println!("durable letters: {} kill points, {deaths} deaths", kills.len());
    assert!(kills.len() >= if is_soak() { 5_000 } else { 300 }, "{}", kills.len());
    // Some are set for a moment that this life did not reach.
    assert!(deaths * 10 >= kills.len() as u64 * 8, "{deaths} of {}", kills.len());
}

/// Many deaths of all peers in one life, some of them while others are away or come back.
#[test]
fn a_storm_in_which_everyone_dies_now_and_then_loses_and_doubles_no_durable_letter() {
    let (problem, courier) = (problem(Loss::Squared), Courier { letters: LETTERS });
    let storm = Weather { loss: 0.25, replay: 0.5, death: 0.15 };
    let lives = if is_soak() { 1_000 } else { 40 };
    let deaths: u64 = (0..lives).map(|seed| died(&life(&courier, &problem, &[], (storm, 30, seed)))).sum();
    println!("durable letters: {deaths} deaths in {lives} storms");
    assert!(deaths > 10 * lives, "{deaths}");
}

/// The disk of a peer is full, at any byte of what it wants to write; later there is room again.
#[test]
fn a_full_disk_loses_and_doubles_no_durable_letter() {
    let (problem, courier) = (problem(Loss::Squared), Courier { letters: LETTERS });
    let mut filled = 0;
    for room in (0..6_000).step_by(if is_soak() { 7 } else { 97 }) {
        let mut world = World::new(&courier, &problem, None, &[], 3);
        world.weather = RAIN;
        world.holds = Some(on_disk);
        world.peers[0].disk.0.borrow_mut().room = Some(2_000 + room);
        let mut rounds = 0;
        while !is_over(&world) {
            world.round();
            if world.peers[0].deaths > 0 {
                filled += u64::from(world.peers[0].disk.0.borrow_mut().room.take().is_some());
            }
            rounds += 1;
            assert!(rounds < 600, "not done with {room} bytes");
        }
    }
    println!("durable letters: {filled} full disks");
    assert!(filled >= 40, "{filled}");
}

#[test]
fn a_peer_that_is_gone_for_long_costs_so_many_letters_and_no_more() {
    let (problem, courier) = (problem(Loss::Squared), Courier { letters: 200 });
    let mut world = World::new(&courier, &problem, None, &[], 5);
    (0..5).for_each(|_| world.round());
    world.kill(2, Tail::Cached);
    world.peers[2].down = 300;
    (0..299).for_each(|_| {
        world.round();
        check(&world);
    });
    let journal = |world: &World<'_, Courier>, k: usize| {
        world.peers[k].node.as_ref().and_then(Node::state).expect("awake").clone()
    };
    for (k, neighbours) in [(0, 3), (1, 2), (3, 2)] {
        let waiting: Vec<usize> =
            world.peers[k].node.as_ref().expect("up").neighbours().map(|neighbour| neighbour.waiting).collect();
        assert_eq!((waiting.len(), waiting.iter().sum::<usize>()), (neighbours, DURABLE_WAITING_MAX));
        assert!(journal(&world, k).refused > 100, "the algorithm is told");
        let there = if k == 0 { 1 } else { 0 };
        assert_eq!(journal(&world, k).sent[&there], 200, "the others have all");
    }
    // It is back, and everything arrives in order.
    let over = |world: &World<'_, Courier>| {
        check(world);
        let all = |k: usize| {
            world.peers[k]
                .node
                .as_ref()
                .and_then(Node::state)
                .is_some_and(|state| state.read.values().all(|read| read.len() == 200))
        };
        (0..4).all(all)
    };
    world.run(0, 600, over);
}

/// Agent 1 with agent 0 and agent 2 beside it, awake.
fn awake<'w>(
    courier: &'w Courier,
    problem: &'w Problem,
    disk: &CrashDisk,
    seen: &Seen,
) -> Node<'w, Courier, CrashDisk> {
    let (shard, group) = (problem.shard(PeerId(1)), group(problem, 1));
    let mut node = Node::open(courier, shard, group, rules(None), &owner(1), disk.clone()).expect("a good store");
    for peer in [PeerId(0), PeerId(2)] {
        let seen = if peer == PeerId(0) { seen.clone() } else { Seen::default() };
        node.welcomed(peer, &welcome(peer, seen)).expect("a witness");
    }
    assert_eq!(node.wake(Time(1.0)).expect("awake"), Woke::Acted);
    node
}

fn welcome(from: PeerId, seen: Seen) -> Vec<u8> {
    let card = Card { name: &name(from.index()), points: 3, ..Card::default() };
    Answer::Welcome { card, seen, post: None }.encode()
}

fn durable(turn: u64, note: Note, salt: u8) -> Vec<u8> {
    let bytes = [&[note.kind], &note.number.to_le_bytes()[..]].concat();
    let stamp = Stamp { salt: [salt; 16], ..Stamp::numbered(turn) };
    Question::Durable { stamp, turn, bytes: &bytes }.encode()
}

fn told(answer: Vec<u8>) -> Result<(), Refusal> {
    match Answer::decode(&answer).expect("an answer") {
        Answer::Taken => Ok(()),
        Answer::Refused(why) => Err(why),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_comes_again_is_acknowledged_and_what_skips_a_turn_or_has_two_contents_is_refused() {
    let (problem, courier) = (problem(Loss::Squared), Courier { letters: 0 });
    let disk = CrashDisk::default();
    let mut node = awake(&courier, &problem, &disk, &Seen::default());
    let note = |number| Note { kind: LETTER, number };
    let say = |node: &mut Node<'_, Courier, CrashDisk>, frame: &[u8]| {
        told(node.receive(Some(PeerId(0)), frame).expect("it lives"))
    };
    assert_eq!(say(&mut node, &durable(1, note(1), 7)), Ok(()));
    assert_eq!(say(&mut node, &durable(1, note(1), 7)), Ok(()), "it has it");
    assert_eq!(say(&mut node, &durable(1, note(9), 7)), Err(Refusal::Forked));
    assert_eq!(say(&mut node, &durable(3, note(3), 7)), Err(Refusal::OutOfTurn));
    assert_eq!(say(&mut node, &durable(u64::MAX, note(3), 7)), Err(Refusal::OutOfTurn));
    // A letter that the algorithm cannot read has had its turn: it is counted, and does not come again.
    assert_eq!(say(&mut node, &durable(2, Note { kind: 9, number: 2 }, 7)), Ok(()));
    let long = [0; 10];
    let long = Question::Durable { stamp: Stamp::numbered(3), turn: 3, bytes: &long }.encode();
    assert_eq!(say(&mut node, &long), Ok(()), "longer than the algorithm's letters are");
    assert_eq!(node.counters().refusals[&Refusal::Malformed], 2);
    assert_eq!(node.state().expect("awake").read[&0], [1]);
    drop(node);
    // All of it is on the disk, however it died.
    disk.reboot(Tail::Lost, &mut Coin::new(1, 0, 0));
    let mut node = awake(&courier, &problem, &disk, &Seen::default());
    assert_eq!(say(&mut node, &durable(1, note(1), 7)), Ok(()));
    assert_eq!(say(&mut node, &durable(3, note(1), 8)), Err(Refusal::Forked));
    assert_eq!(say(&mut node, &durable(4, note(2), 7)), Ok(()));
    assert_eq!(node.state().expect("awake").read[&0], [1, 2]);
}

/// A peer that has just come back takes nothing, and is sent the same again.
#[test]
fn a_letter_to_a_peer_that_is_not_ready_is_sent_again() {
    let (problem, courier) = (problem(Loss::Squared), Courier { letters: 1 });
    let disk = CrashDisk::default();
    let mut node = awake(&courier, &problem, &disk, &Seen::default());
    let out = node.outgoing(PeerId(0)).expect("a letter");
    for refusal in Refusal::ALL {
        let after = node.answered(PeerId(0), out.number, &Answer::Refused(refusal).encode());
        assert_eq!(after, Afterwards::Again, "{refusal}");
        assert_eq!(node.outgoing(PeerId(0)), Some(out.clone()), "{refusal}");
    }
    assert_eq!(node.answered(PeerId(0), out.number, &Answer::Taken.encode()), Afterwards::Next);
    assert_ne!(node.outgoing(PeerId(0)).map(|next| next.number), Some(out.number));
    assert_eq!(node.counters().durable_delivered, 1);
    let mut asking = Node::open(
        &courier,
        problem.shard(PeerId(0)),
        group(&problem, 0),
        rules(None),
        &owner(0),
        CrashDisk::default(),
    )
    .expect("a new store");
    assert_eq!(told(asking.receive(Some(PeerId(1)), &out.frame).expect("it lives")), Err(Refusal::NotReady));
}

/// Whoever says that it took more letters than were written, or another one, shows that this store is not the newest.
#[test]
fn a_sender_whose_store_was_rolled_back_is_stopped_by_its_receiver() {
    let (problem, courier) = (problem(Loss::Squared), Courier { letters: 2 });
    let disk = CrashDisk::default();
    let mut node = awake(&courier, &problem, &disk, &Seen::default());
    let honest = evidence(&node);
    let seen = |turn, durable: Evidence| Seen { turn, durable, ..Seen::default() };
    node.welcomed(PeerId(0), &welcome(PeerId(0), seen(0, Evidence::default()))).expect("it has nothing yet");
    let beyond = node.welcomed(PeerId(0), &welcome(PeerId(0), seen(2, honest.clone())));
    assert!(matches!(beyond, Err(Fault::RolledBack { .. })), "one letter was written");
    assert!(matches!(node.wake(Time(2.0)), Err(Fault::Failed)));
    let mut node = awake(&courier, &problem, &CrashDisk::default(), &Seen::default());
    let other = Evidence { hash: [1; 32], ..honest };
    let forked = node.welcomed(PeerId(0), &welcome(PeerId(0), seen(1, other)));
    assert!(matches!(forked, Err(Fault::Forked { turn: 1, .. })));
    assert!(node.outgoing(PeerId(2)).is_some_and(|out| out.number <= node.last_number()));
}

/// Evidence of the first durable letter to agent 0.
fn evidence(node: &Node<'_, Courier, CrashDisk>) -> Evidence {
    let frame = node.outgoing(PeerId(0)).expect("a letter").frame;
    match Question::decode(&frame).expect("own words") {
        Question::Durable { stamp, bytes, .. } => Evidence::of(&stamp, bytes),
        other => panic!("{other:?}"),
    }
}

/// A receiver whose store was rolled back says that it has fewer letters than it acknowledged. They are gone: nothing is sent out of turn.
#[test]
fn a_receiver_that_lost_what_it_acknowledged_is_sent_nothing_out_of_turn() {
    let (problem, courier) = (problem(Loss::Squared), Courier { letters: 2 });
    let disk = CrashDisk::default();
    let mut node = awake(&courier, &problem, &disk, &Seen::default());
    let first = node.outgoing(PeerId(0)).expect("a letter");
    node.answered(PeerId(0), first.number, &Answer::Taken.encode());
    node.wake(Time(2.0)).expect("awake");
    node.welcomed(PeerId(0), &welcome(PeerId(0), Seen::default())).expect("that is no fault of this peer");
    let is_durable = |node: &Node<'_, Courier, CrashDisk>| {
        let out = node.outgoing(PeerId(0)).map(|out| out.frame);
        out.is_some_and(|frame| matches!(Question::decode(&frame), Ok(Question::Durable { .. })))
    };
    assert!(!is_durable(&node));
    let waits: Vec<usize> = node.neighbours().map(|neighbour| neighbour.waiting).collect();
    assert_eq!(waits, [1, 2], "it is kept, and its owner can see that");
}
