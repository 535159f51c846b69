//! Graph learning as one agent runs it, with mail that waits until the test delivers it.

use super::super::alternating::{Alternating, Turns};
use super::super::letter::GraphLetter;
use super::super::links::Links;
use super::{GraphLearning, GraphLearningConfig, Placed};
use crate::Loss;
use crate::joint::{Joint, LogDegree};
use crate::personal::descent::DescentByLetters;
use crate::testing::random_problem;
use sottovoce_core::{Algorithm, Coin, Cx, Outbox, PeerId, Peers, Posts, Reject, Role, Time, Wire};
use sottovoce_privacy::{Exhausted, Gate, NoNoise, Plan, Secrets};

fn config(sample: usize) -> GraphLearningConfig<LogDegree> {
    let regularizer = LogDegree { sparsity: 0.5, offset: LogDegree::OFFSET };
    GraphLearningConfig { joint: Joint { trade_off: 1.0, strength: 0.5, regularizer }, sample }
}

fn algorithm(sample: usize) -> GraphLearning<LogDegree> {
    GraphLearning::new(config(sample)).expect("good parameters")
}

/// A letter on its way.
struct Mail {
    from: PeerId,
    to: PeerId,
    bytes: Vec<u8>,
}

/// One event of one of `n` agents; returns what came of it and what was sent.
fn event<R>(me: PeerId, n: u32, gate: &mut Gate, work: impl FnOnce(&mut Cx<'_>) -> R) -> (R, Vec<Mail>) {
    let (mut outbox, mut scratch) = (Outbox::default(), Vec::new());
    let peers = Peers::Complete { me: me.0, n };
    let (coin, posts) = (Coin::new(1, me.0, 0), Posts::Unheard { zero: &[] });
    let now = Time::default();
    let (role, reach, secret) = (Role::Member, peers, Secrets::simulated(0, me.0, 0));
    let (scratch, mail) = (&mut scratch, &mut outbox);
    let result = work(&mut Cx { me, role, now, peers, reach, coin, secret, gate, posts, scratch, outbox: mail });
    let mail = outbox.letters().map(|letter| Mail { from: me, to: letter.to, bytes: letter.bytes.to_vec() }).collect();
    (result, mail)
}

/// Two agents at distance 2 from each other, from no weight at all. The price of their pair is 0.3 + 0.1 + 2.
#[test]
fn a_first_weight_by_hand() {
    let algorithm = algorithm(5);
    let models = [[0.0], [2.0]];
    let placed = |agent: PeerId| Placed { model: &models[agent.index()], cost: [0.3, 0.1][agent.index()] };
    let mut gates = [Gate::without_privacy(), Gate::without_privacy()];
    let mut states: Vec<_> = (0..2)
        .map(|u| event(PeerId(u), 2, &mut gates[u as usize], |cx| algorithm.start(placed(PeerId(u)), cx)))
        .map(|(state, _)| state.expect("an unlimited budget"))
        .collect();
    let (woken, mut mail) =
        event(PeerId(0), 2, &mut gates[0], |cx| algorithm.on_wake(&mut states[0], placed(PeerId(0)), cx));
    assert_eq!(woken.expect("an unlimited budget").moved, 0.0);
    let mut kinds = Vec::new();
    while !mail.is_empty() {
        let Mail { from, to, bytes } = mail.remove(0);
        kinds.push(bytes[0] - 16);
        let (heard, more) = event(to, 2, &mut gates[to.index()], |cx| {
            let letter = GraphLetter::decode(&bytes).expect("own encoding");
            algorithm.on_letter(&mut states[to.index()], placed(to), from, letter, cx)
        });
        assert_eq!(heard, Ok(()));
        mail.extend(more);
    }
    // Asked, answered; the second of an odd pair keeps it, so the first proposes and the second settles.
    assert_eq!(kinds, [0, 1, 2, 3]);
    let weight = states[0].links().weight(PeerId(1));
    assert_eq!(weight, states[1].links().weight(PeerId(0)));
    // slope = 2.4 - 2 x 0.5 / 1e-6, and w = -slope / L with the first L, 1/2 doubled, that is good enough.
    let slope: f64 = 2.4 - 1e6;
    let mut smoothness = 0.5;
    let bent = |w: f64| (2.4 + 0.5 * (2.0 * 0.5 * w - 2.0 / (w + 1e-6)) - slope) * w;
    while bent(-slope / smoothness) > 0.5 * smoothness * (slope / smoothness) * (slope / smoothness) {
        smoothness *= 2.0;
    }
    assert!((weight + slope / smoothness).abs() < 1e-18, "{weight} {smoothness}");
    assert_eq!(gates.map(|gate| gate.ledger().releases()), [2, 2]);
}

/// A pair (0, 1): 1 keeps it.
fn two_ends() -> [Links; 2] {
    [0, 1].map(|u| Links::new(PeerId(u)))
}

#[test]
fn a_proposal_stands_only_on_what_still_stands() {
    let [mut other, mut keeper] = two_ends();
    let mut gate = Gate::without_privacy();
    let (a, b) = (PeerId(0), PeerId(1));
    assert!(keeper.keeps(a) && !other.keeps(b));
    let asked = keeper.clock();
    let (done, mail) = event(b, 2, &mut gate, |cx| keeper.proposed(a, 0.5, asked, cx));
    assert_eq!((done, mail.len(), keeper.weight(a)), (Ok(()), 1, 0.5));
    // The same letter again, and another that rests on the same old answer.
    for weight in [0.5, 0.7] {
        let (done, mail) = event(b, 2, &mut gate, |cx| keeper.proposed(a, weight, asked, cx));
        assert_eq!((done, mail.len(), keeper.weight(a)), (Err(Reject::OutOfTurn), 0, 0.5));
    }
    // Dropped, and nothing is stored of it; the old letter is still refused.
    let (done, _) = event(b, 2, &mut gate, |cx| keeper.proposed(a, 0.0, keeper.clock(), cx));
    assert_eq!((done, keeper.len()), (Ok(()), 0));
    let (done, _) = event(b, 2, &mut gate, |cx| keeper.proposed(a, 0.5, asked, cx));
    assert_eq!((done, keeper.len()), (Err(Reject::OutOfTurn), 0));
    // From the future.
    let (done, _) = event(b, 2, &mut gate, |cx| keeper.proposed(a, 0.5, 99, cx));
    assert_eq!(done, Err(Reject::OutOfTurn));
    // Nobody proposes to one who does not keep the pair, and nobody settles what another keeps.
    let (done, _) = event(a, 2, &mut gate, |cx| other.proposed(b, 0.5, 0, cx));
    assert_eq!((done, keeper.settled(a, 0.5, 9)), (Err(Reject::Malformed), Err(Reject::Malformed)));
}

#[test]
fn a_wrong_copy_is_put_right_from_both_ends() {
    let (a, b) = (PeerId(0), PeerId(1));
    let mut gate = Gate::without_privacy();
    // The settlement was lost: the keeper repeats it at a wake.
    let [mut other, mut keeper] = two_ends();
    event(b, 2, &mut gate, |cx| keeper.proposed(a, 0.5, 0, cx)).0.expect("a first weight");
    let (_, mail) = event(b, 2, &mut gate, |cx| keeper.put_right(cx));
    let Ok(GraphLetter::Settle { as_of, weight }) = GraphLetter::decode(&mail[0].bytes) else { panic!("a settlement") };
    other.settled(b, weight, as_of).expect("news");
    assert_eq!(other.weight(b), 0.5);
    // It was dropped, and the news of that lost: the other end asks, and is told.
    event(b, 2, &mut gate, |cx| keeper.proposed(a, 0.0, keeper.clock(), cx)).0.expect("dropped");
    assert_eq!(event(b, 2, &mut gate, |cx| keeper.put_right(cx)).1.len(), 0, "it stores nothing to repeat");
    let (_, mail) = event(a, 2, &mut gate, |cx| other.put_right(cx));
    let Ok(GraphLetter::Check { weight }) = GraphLetter::decode(&mail[0].bytes) else { panic!("a question") };
    let (_, mail) = event(b, 2, &mut gate, |cx| keeper.checked(a, weight, cx));
    let Ok(GraphLetter::Settle { as_of, weight }) = GraphLetter::decode(&mail[0].bytes) else { panic!("a settlement") };
    other.settled(b, weight, as_of).expect("news");
    assert_eq!((other.len(), weight), (0, 0.0));
    let (_, mail) = event(b, 2, &mut gate, |cx| keeper.checked(a, 0.0, cx));
    assert!(mail.is_empty(), "a right copy is not answered");
}

#[test]
fn an_answer_nobody_asked_for_is_refused() {
    let algorithm = algorithm(1);
    let placed = Placed { model: &[1.0, 2.0], cost: 0.0 };
    let mut gate = Gate::without_privacy();
    let (state, _) = event(PeerId(0), 4, &mut gate, |cx| algorithm.start(placed, cx));
    let mut state = state.expect("an unlimited budget");
    let (_, mail) = event(PeerId(0), 4, &mut gate, |cx| algorithm.on_wake(&mut state, placed, cx));
    let asked = mail[0].to;
    let mut answer = |from: PeerId, round: u64, model: &[f64]| {
        let model = super::super::letter::Theta::Dense(sottovoce_core::wire::Numbers::Plain(model));
        let letter = GraphLetter::Answer { round, as_of: 0, cost: 0.0, degree: 1.0, weight: 0.0, model };
        event(PeerId(0), 4, &mut gate, |cx| algorithm.on_letter(&mut state, placed, from, letter, cx)).0
    };
    let stranger = (1..4).map(PeerId).find(|peer| *peer != asked).expect("another");
    assert_eq!(answer(stranger, 1, &[0.0, 0.0]), Err(Reject::OutOfTurn));
    assert_eq!(answer(asked, 0, &[0.0, 0.0]), Err(Reject::OutOfTurn));
    assert_eq!(answer(asked, 1, &[0.0]), Err(Reject::WrongDimension));
    assert_eq!(answer(asked, 1, &[1e200, 0.0]), Err(Reject::NotFinite));
    assert_eq!(answer(PeerId(9), 1, &[0.0, 0.0]), Err(Reject::NotANeighbour));
    assert_eq!(answer(asked, 1, &[0.0, 0.0]), Ok(()));
    assert_eq!(answer(asked, 1, &[0.0, 0.0]), Err(Reject::OutOfTurn), "once");
}

#[test]
fn a_plan_stops_both_turns_before_anything_leaves() {
    let limited = || Gate::planned(Plan::nothing().into(), NoNoise);
    let algorithm = algorithm(3);
    let placed = Placed { model: &[1.0], cost: 0.5 };
    let mut gate = limited();
    let (state, _) = event(PeerId(0), 4, &mut gate, |cx| algorithm.start(placed, cx));
    let mut state = state.expect("nothing leaves at the start");
    let (woken, _) = event(PeerId(0), 4, &mut gate, |cx| algorithm.on_wake(&mut state, placed, cx));
    assert_eq!((woken, gate.ledger().releases()), (Err(Exhausted), 0));
    let ask = GraphLetter::Ask { round: 1 };
    let (heard, mail) =
        event(PeerId(0), 4, &mut gate, |cx| algorithm.on_letter(&mut state, placed, PeerId(1), ask, cx));
    assert_eq!((heard, mail.len(), gate.ledger().releases()), (Err(Reject::Exhausted), 0, 0));

    let problem = random_problem(1, 6, 2, Loss::Logistic);
    let learner = DescentByLetters::new(Loss::Logistic, 1.0).expect("good parameters");
    let both = Alternating::new(learner, algorithm, Turns::default()).expect("good turns");
    let (shard, mut gate) = (problem.shard(PeerId(0)), limited());
    let (state, _) = event(PeerId(0), 6, &mut gate, |cx| both.start(shard, cx));
    let mut state = state.expect("nothing leaves at the start");
    let (woken, _) = event(PeerId(0), 6, &mut gate, |cx| both.on_wake(&mut state, shard, cx));
    assert_eq!((woken, gate.ledger().releases()), (Err(Exhausted), 0));
}

#[test]
fn what_it_cannot_run_with_is_refused_by_name() {
    let good = config(5);
    let refused = |config| GraphLearning::new(config).expect_err("bad parameters").field;
    assert_eq!(refused(GraphLearningConfig { sample: 0, ..good }), "sample");
    for bad in [0.0, f64::NAN, f64::INFINITY] {
        assert_eq!(refused(GraphLearningConfig { joint: Joint { trade_off: bad, ..good.joint }, ..good }), "trade-off");
        assert_eq!(refused(GraphLearningConfig { joint: Joint { strength: bad, ..good.joint }, ..good }), "strength");
        let learner = DescentByLetters::new(Loss::Logistic, 1.0).expect("good parameters");
        let turns = Turns { models: bad, ..Turns::default() };
        assert_eq!(Alternating::new(learner, algorithm(5), turns).expect_err("bad turns").field, "models");
    }
}
