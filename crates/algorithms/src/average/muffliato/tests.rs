//! Gossip in rounds by hand, in any order of letters, and what its members really see.

use super::mixing::{Mixing, weights};
use super::*;
use crate::testing::{Mail, Network, normals, projections};
use crate::{Dataset, Survey};
use proptest::prelude::*;
use sottovoce_core::wire::Numbers;
use sottovoce_core::{Coin, Graph, Wire};

fn protocol(columns: usize, goal: Goal, rounds: u32, gamma: f64) -> Muffliato {
    let unit = ContributionUnit::Rows;
    Muffliato::new(MuffliatoConfig { columns, goal, unit, range: None, law: None, rounds, gamma })
        .expect("good parameters")
}

fn survey(columns: usize, edges: &[(u32, u32)], rows: &[Vec<f64>]) -> Survey {
    let mut data = Dataset::new(columns);
    rows.iter().for_each(|rows| data.push_rows(rows));
    let edges: Vec<(u32, u32, f64)> = edges.iter().map(|&(a, b)| (a, b, 2.5)).collect();
    Survey { data, graph: Graph::from_edges(rows.len(), &edges).expect("a graph"), bounds: None }
}

fn start<'p>(protocol: &'p Muffliato, survey: &'p Survey) -> Network<'p, Muffliato> {
    Network::start_with(protocol, &survey.graph, |agent| survey.observations(agent))
}

/// A ring with random chords.
fn random_edges(agents: u32, coin: &mut Coin) -> Vec<(u32, u32)> {
    let mut edges: Vec<(u32, u32)> = (0..agents - 1).map(|a| (a, a + 1)).collect();
    for a in 0..agents {
        edges.extend((a + 2..agents).filter(|_| coin.unit() < 0.15).map(|b| (a, b)));
    }
    edges
}

#[test]
fn two_rounds_on_a_path_by_hand() {
    // W = [2/3 1/3 0; 1/3 1/3 1/3; 0 1/3 2/3]
    let survey = survey(1, &[(0, 1), (1, 2)], &[vec![9.0], vec![0.0], vec![18.0]]);
    for (rounds, gamma, expected) in [
        (1, 1.0, [6.0, 9.0, 12.0]),
        (2, 1.0, [7.0, 9.0, 11.0]),
        (2, 1.5, [6.0, 13.5, 7.5]),
        (3, 1.0, [23.0 / 3.0, 9.0, 31.0 / 3.0]),
    ] {
        let protocol = protocol(1, Goal::Mean, rounds, gamma);
        let mut net = start(&protocol, &survey);
        assert_eq!(net.mail.len(), 4, "everyone writes to its neighbours at the start");
        assert!(net.states.iter().all(|state| !state.knows()));
        net.deliver_all();
        for (agent, expected) in expected.into_iter().enumerate() {
            let found = net.model(agent as u32)[0];
            assert!((found - expected).abs() < 1e-12, "{rounds} {gamma}, {agent}: {found} {expected}");
            assert!(net.states[agent].knows() && net.states[agent].round() == rounds);
        }
    }
}

/// x(T) of dense matrices, one vector of all agents for each column.
fn dense(survey: &Survey, first: &[f64], rounds: u32, gamma: f64) -> Vec<f64> {
    let weights = weights(&survey.graph).expect("weights");
    let (mut before, mut now) = (first.to_vec(), weights.moved(first));
    for _ in 1..rounds {
        let next =
            weights.moved(&now).into_iter().zip(&before).map(|(next, before)| gamma * next + (1.0 - gamma) * before);
        let next = next.collect();
        before = std::mem::replace(&mut now, next);
    }
    now
}

#[test]
fn whatever_the_order_of_letters_masses_are_those_of_dense_matrices() {
    for seed in 0..12 {
        let mut coin = Coin::new(seed, 0, 0);
        let agents = 3 + coin.below(10) as u32;
        let edges = random_edges(agents, &mut coin);
        let rows: Vec<Vec<f64>> = (0..agents).map(|_| normals(&mut coin, 2 * (1 + seed as usize % 3))).collect();
        let survey = survey(2, &edges, &rows);
        let (rounds, gamma) = (1 + coin.below(9) as u32, if seed % 2 == 0 { 1.0 } else { 1.4 });
        let protocol = protocol(2, Goal::Mean, rounds, gamma);
        let mut net = start(&protocol, &survey);
        let sent = net.deliver_in_any_order(&mut coin);
        assert_eq!(sent.len(), 2 * edges.len() * rounds as usize, "one letter for each edge, way and round");
        let column = |k: usize| -> Vec<f64> { rows.iter().map(|rows| rows.iter().skip(k).step_by(2).sum()).collect() };
        let counts: Vec<f64> = rows.iter().map(|rows| (rows.len() / 2) as f64).collect();
        for (k, first) in [column(0), column(1), counts].iter().enumerate() {
            let truth = dense(&survey, first, rounds, gamma);
            let found: Vec<f64> = net.states.iter().map(|state| state.mass()[k]).collect();
            assert!(found.iter().zip(&truth).all(|(a, b)| (a - b).abs() < 1e-12), "{seed}: {found:?} {truth:?}");
            assert!((found.iter().sum::<f64>() - first.iter().sum::<f64>()).abs() < 1e-10, "{seed}: nothing is lost");
        }
    }
}

/// Also where there is no odd cycle: a path, a star, an even ring.
#[test]
fn everybody_comes_to_the_mean_and_to_the_sum_on_any_connected_graph() {
    let mut coin = Coin::new(3, 0, 0);
    let star: Vec<(u32, u32)> = (1..8).map(|k| (0, k)).collect();
    let ring: Vec<(u32, u32)> = (0..8).map(|k| (k.min((k + 1) % 8), k.max((k + 1) % 8))).collect();
    let path: Vec<(u32, u32)> = (0..7).map(|k| (k, k + 1)).collect();
    for edges in [star, ring, path, random_edges(8, &mut coin)] {
        let rows: Vec<Vec<f64>> = (0..8).map(|agent| normals(&mut coin, 1 + agent % 3)).collect();
        let survey = survey(1, &edges, &rows);
        let mixing = Mixing::of(&weights(&survey.graph).expect("weights"));
        for gamma in [1.0, mixing.gamma()] {
            let rounds = mixing.rounds(gamma, None, 1.0);
            let all: Vec<f64> = rows.iter().flatten().copied().collect();
            let sum: f64 = all.iter().sum();
            for (goal, truth) in [(Goal::Mean, sum / all.len() as f64), (Goal::Sum { agents: 8 }, sum)] {
                let protocol = protocol(1, goal, rounds, gamma);
                let mut net = start(&protocol, &survey);
                net.deliver_in_any_order(&mut coin);
                for agent in 0..8 {
                    let found = net.model(agent)[0];
                    assert!((found - truth).abs() < 1e-6, "{edges:?} {gamma} {goal:?}: {found} {truth}");
                }
            }
        }
    }
}

/// What letters to one member are made of, from runs in which one other has a value: the accountant's exposure is that of these letters.
#[test]
fn what_a_member_is_really_sent_is_what_the_accountant_says() {
    for seed in 0..6 {
        let mut coin = Coin::new(seed, 7, 0);
        let agents = 6 + coin.below(10) as u32;
        let edges = random_edges(agents, &mut coin);
        let (rounds, gamma) = (1 + seed as u32 % 4, if seed % 2 == 0 { 1.0 } else { 1.3 });
        let protocol = protocol(1, Goal::Sum { agents: agents as usize }, rounds, gamma);
        // By member: each letter that it was sent, as it depends on what each of all members has released.
        let mut seen = vec![vec![vec![0.0; agents as usize]; rounds as usize * agents as usize]; agents as usize];
        for source in 0..agents {
            let rows: Vec<Vec<f64>> = (0..agents).map(|k| vec![f64::from(u8::from(k == source))]).collect();
            let survey = survey(1, &edges, &rows);
            let mut net = start(&protocol, &survey);
            for mail in net.deliver_in_any_order(&mut coin) {
                let letter = MuffliatoLetter::decode(&mail.bytes).expect("own encoding");
                let place = (letter.round * agents + mail.from.0) as usize;
                seen[mail.to.index()][place][source as usize] = letter.mass.iter().next().expect("a number");
            }
        }
        let graph = survey(1, &edges, &vec![vec![0.0]; agents as usize]).graph;
        let gossip = weights(&graph).expect("weights");
        for observer in 0..agents as usize {
            let mut known = vec![0.0; agents as usize];
            known[observer] = 1.0;
            seen[observer].retain(|letter| letter.iter().any(|x| *x != 0.0));
            seen[observer].insert(0, known);
            let truth = projections(&seen[observer]);
            let claimed = gossip.exposure(&[observer], rounds as usize);
            for (source, (claimed, truth)) in claimed.iter().zip(truth).enumerate() {
                assert!((claimed - truth).abs() < 1e-8, "{seed}: {source} to {observer}: {claimed} {truth}");
            }
        }
    }
}

#[test]
fn a_neighbour_that_is_gone_is_waited_for_and_nothing_is_lost() {
    let edges: Vec<(u32, u32)> = (0..5).map(|k| (k, k + 1)).collect();
    let survey = survey(1, &edges, &(0..6).map(|k| vec![f64::from(k)]).collect::<Vec<_>>());
    let protocol = protocol(1, Goal::Mean, 40, 1.0);
    let mut net = start(&protocol, &survey);
    // Nobody hears of member 5, and it hears of nobody.
    let mut held = Vec::new();
    while !net.mail.is_empty() {
        let mail = net.mail.remove(0);
        if mail.from == PeerId(5) || mail.to == PeerId(5) {
            held.push(mail);
        } else {
            net.hand_over(&mail).expect("in turn");
        }
    }
    let rounds: Vec<u32> = net.states.iter().map(State::round).collect();
    assert_eq!(rounds, [4, 3, 2, 1, 0, 0], "each goes as far as it knows");
    assert!(net.states.iter().all(|state| !state.knows()));
    assert_eq!(held.len(), 2, "its neighbour has written once, and waits");
    net.mail = held;
    net.deliver_all();
    assert!((0..6).all(|agent| net.states[agent].knows()), "it is back, and all rounds end");
    assert!((net.model(0)[0] - dense(&survey, &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 40, 1.0)[0]).abs() < 1e-12);
}

#[test]
fn what_a_neighbour_could_not_have_sent_is_rejected() {
    let survey = survey(1, &[(0, 1), (1, 2)], &[vec![9.0], vec![0.0], vec![18.0]]);
    let protocol = protocol(1, Goal::Mean, 3, 1.0);
    let mut net = start(&protocol, &survey);
    let mail = |from, round, degree, mass: &[f64]| {
        let mut bytes = Vec::new();
        MuffliatoLetter { round, degree, mass: Numbers::Plain(mass) }.encode(&mut bytes);
        Mail { from: PeerId(from), to: PeerId(1), vectors: 1, bytes }
    };
    for (mail, reason) in [
        (mail(1, 0, 1, &[1.0, 1.0]), Reject::NotANeighbour),
        (mail(7, 0, 1, &[1.0, 1.0]), Reject::NotANeighbour),
        (mail(0, 0, 1, &[1.0]), Reject::WrongDimension),
        (mail(0, 0, 0, &[1.0, 1.0]), Reject::Malformed),
        (mail(0, 0, 1, &[1.0, f64::NAN]), Reject::NotFinite),
        (mail(0, 1, 1, &[1.0, 1.0]), Reject::OutOfTurn),
        (mail(0, u32::MAX, 1, &[1.0, 1.0]), Reject::OutOfTurn),
    ] {
        assert_eq!(net.hand_over(&mail), Err(reason), "{mail:?}");
    }
    assert_eq!(net.hand_over(&mail(0, 0, 1, &[1.0, 1.0])), Ok(()));
    assert_eq!(net.hand_over(&mail(0, 0, 1, &[1.0, 1.0])), Err(Reject::OutOfTurn), "a round comes once");
    assert_eq!(net.hand_over(&mail(0, 1, 2, &[1.0, 1.0])), Err(Reject::Malformed), "a degree that changes");
    assert_eq!(net.hand_over(&mail(0, 1, 1, &[1.0, 1.0])), Ok(()), "one round ahead");
    assert_eq!(net.hand_over(&mail(0, 2, 1, &[1.0, 1.0])), Err(Reject::OutOfTurn), "two are too many");
    let before = net.mail.len();
    assert_eq!(net.hand_over(&mail(2, 0, 1, &[1.0, 1.0])), Ok(()));
    assert_eq!((net.states[1].round(), net.mail.len()), (1, before + 2));
}

#[test]
fn hyper_parameters_are_checked_once() {
    let good = MuffliatoConfig {
        columns: 1,
        goal: Goal::Mean,
        unit: ContributionUnit::Rows,
        range: Some(Bounds { low: 0.0, high: 1.0 }),
        law: Some(Event::Gaussian { noise_multiplier: 2.0 }),
        rounds: 3,
        gamma: 1.0,
    };
    let hidden = Muffliato::new(good).expect("good parameters");
    assert!((hidden.deviation(16, 40) - 4.0 * 2.0 / 40.0).abs() < 1e-5, "{}", hidden.deviation(16, 40));
    for bad in [
        MuffliatoConfig { columns: 0, ..good },
        MuffliatoConfig { rounds: 0, ..good },
        MuffliatoConfig { gamma: 0.99, ..good },
        MuffliatoConfig { gamma: 2.0, ..good },
        MuffliatoConfig { gamma: f64::NAN, ..good },
        MuffliatoConfig { range: None, ..good },
        MuffliatoConfig { law: Some(Event::Laplace { noise_multiplier: 2.0 }), ..good },
        MuffliatoConfig { goal: Goal::Sum { agents: 0 }, ..good },
    ] {
        assert!(Muffliato::new(bad).is_err(), "{bad:?}");
    }
}

proptest! {
    #[test]
    fn letters_come_back_to_the_bit(round: u32, degree in 1..u32::MAX, mass in prop::collection::vec(-1e70..1e70, 0..6)) {
        let mut bytes = Vec::new();
        MuffliatoLetter { round, degree, mass: Numbers::Plain(&mass) }.encode(&mut bytes);
        let back = MuffliatoLetter::decode(&bytes).expect("own encoding");
        prop_assert_eq!((back.round, back.degree), (round, degree));
        prop_assert!(back.mass.iter().eq(mass.iter().copied()));
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(letter) = MuffliatoLetter::decode(&bytes) {
            let mut again = Vec::new();
            letter.encode(&mut again);
            prop_assert_eq!(again, bytes);
        }
    }
}
