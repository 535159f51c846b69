//! Descent by gossip by hand, in any order of letters, and what its members really see.

use super::*;
use crate::average::muffliato::MuffliatoLetter;
use crate::average::muffliato::mixing::{Mixing, weights};
use crate::testing::{Mail, Network, normals, projections};
use crate::token::walk_sgd::GradientConfig;
use crate::{Dataset, Loss, Points, Problem, Regularization};
use proptest::prelude::*;
use sottovoce_core::{Coin, Graph, Wire};

fn gradient(loss: Loss, dimension: usize) -> Gradient {
    let (step, radius, regularization, clip, bound) = (0.4, None, 0.01, Some(0.7), Some(1.0));
    Gradient::new(GradientConfig { dimension, loss, step, radius, regularization, clip, bound }).expect("a step")
}

fn descent(gradient: Gradient, steps: u32, rounds: u32, acceleration: f64) -> MuffliatoSgd {
    let speaker = Some(PeerId(0));
    MuffliatoSgd::new(MuffliatoSgdConfig { gradient, law: None, steps, rounds, acceleration, speaker })
        .expect("good parameters")
}

/// A path with random chords; each agent has some points of norm at most one, but for the second, which has none.
fn problem(agents: u32, dimension: usize, loss: Loss, coin: &mut Coin) -> Problem {
    let mut data = Dataset::new(dimension);
    for agent in 0..agents {
        let count = if agent == 1 { 0 } else { 1 + coin.below(4) };
        let mut features = normals(coin, count * dimension);
        for x in features.chunks_exact_mut(dimension) {
            let length = x.iter().map(|x| x * x).sum::<f64>().sqrt().max(1.0);
            x.iter_mut().for_each(|x| *x /= length);
        }
        let labels: Vec<f64> = (0..count).map(|_| if coin.unit() < 0.5 { 1.0 } else { -1.0 }).collect();
        data.push_agent(&features, &labels);
    }
    let mut edges: Vec<(u32, u32, f64)> = (0..agents - 1).map(|a| (a, a + 1, 1.0)).collect();
    for a in 0..agents {
        edges.extend((a + 2..agents).filter(|_| coin.unit() < 0.15).map(|b| (a, b, 2.0)));
    }
    let graph = Graph::from_edges(agents as usize, &edges).expect("a graph");
    let (regularization, trade_off, points_max) = (Regularization::Constant(0.01), 1.0, 4.0);
    Problem { data, graph, loss, regularization, trade_off, points_max }
}

/// Models after each step, in one place.
fn models(problem: &Problem, gradient: Gradient, steps: u32, rounds: u32, gamma: f64) -> Vec<Vec<f64>> {
    let shares = weights(&problem.graph).expect("weights").share_of_each(0, rounds as usize, gamma);
    let dimension = problem.dimension();
    let mut models = vec![vec![0.0; dimension]];
    for step in 0..steps as usize {
        let mut mean = vec![0.0; dimension];
        for (agent, share) in (0u32..).map(PeerId).zip(&shares) {
            let mut own = vec![0.0; dimension];
            gradient.of(problem.data.points(agent), &models[step], &mut own);
            mean.iter_mut().zip(own).for_each(|(mean, own)| *mean += share * own);
        }
        gradient.lead(&models[step], &mut mean);
        models.push(mean);
    }
    models
}

#[test]
fn whatever_the_order_of_letters_everyone_ends_with_the_model_of_one_place() {
    for seed in 0..12 {
        let mut coin = Coin::new(seed, 0, 0);
        let loss = [Loss::Logistic, Loss::Squared, Loss::SmoothedHinge][seed as usize % 3];
        let problem = problem(3 + coin.below(8) as u32, 3, loss, &mut coin);
        // Fewer rounds than the graph is wide, too: then those far away are late.
        let (steps, rounds) = (1 + coin.below(6) as u32, 1 + coin.below(5) as u32);
        let (gradient, gamma) = (gradient(loss, 3), if seed % 2 == 0 { 1.0 } else { 1.4 });
        let descent = descent(gradient, steps, rounds, gamma);
        let mut net = Network::start(&descent, &problem);
        let sent = net.deliver_in_any_order(&mut coin);
        let edges = problem.graph.edge_count();
        assert_eq!(
            sent.len(),
            2 * edges * (steps * (rounds + 1)) as usize,
            "a letter for each round, and one for the model"
        );
        let truth = models(&problem, gradient, steps, rounds, gamma);
        for (agent, state) in net.states.iter().enumerate() {
            assert_eq!(state.step(), steps, "{seed}: {agent}");
            let near = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-12;
            assert!(net.model(agent as u32).iter().zip(&truth[steps as usize]).all(near), "{seed}: {agent}");
            assert_eq!(net.model(agent as u32), net.model(0), "to the bit");
        }
    }
}

#[test]
fn it_comes_to_the_minimum_on_any_connected_graph() {
    let mut coin = Coin::new(5, 0, 0);
    let problem = problem(9, 2, Loss::Logistic, &mut coin);
    let mixing = Mixing::of(&weights(&problem.graph).expect("weights"));
    let (gamma, rounds) = (mixing.gamma(), mixing.rounds(mixing.gamma(), None, 1.0));
    let descent = descent(gradient(Loss::Logistic, 2), 1500, rounds, gamma);
    let mut net = Network::start(&descent, &problem);
    net.deliver_all();
    // At the minimum the mean gradient and the pull of the regularization cancel.
    let mut rest: Vec<f64> = net.model(0).iter().map(|theta| 2.0 * 0.01 * theta).collect();
    for agent in (0..9).map(PeerId) {
        let mut own = vec![0.0; 2];
        gradient(Loss::Logistic, 2).of(problem.data.points(agent), net.model(0), &mut own);
        rest.iter_mut().zip(own).for_each(|(rest, own)| *rest += own / 9.0);
    }
    assert!(rest.iter().all(|rest| rest.abs() < 1e-4), "{rest:?}");
    assert!(net.model(0).iter().any(|theta| theta.abs() > 0.05), "{:?}", net.model(0));
}

/// What the letters of one step are made of, from runs in which one other has a gradient: the accountant's exposure, with the model that everyone is told, is theirs.
#[test]
fn what_a_member_is_really_sent_in_a_step_is_what_the_accountant_says() {
    for seed in 0..6 {
        let mut coin = Coin::new(seed, 7, 0);
        let agents = 6 + coin.below(8) as u32;
        let graph = problem(agents, 1, Loss::Squared, &mut coin).graph;
        let (rounds, gamma) = (1 + seed as u32 % 3, if seed % 2 == 0 { 1.0 } else { 1.3 });
        let (step, radius, regularization, clip, bound) = (0.25, None, 0.0, None, None);
        let plain = GradientConfig { dimension: 1, loss: Loss::Squared, step, radius, regularization, clip, bound };
        let descent = descent(Gradient::new(plain).expect("a step"), 1, rounds, gamma);
        let letters = (rounds + 1) as usize * agents as usize;
        let mut seen = vec![vec![vec![0.0; agents as usize]; letters]; agents as usize];
        for source in 0..agents {
            let mut data = Dataset::new(1);
            // Of the squared loss at zero the gradient is linear in the label.
            (0..agents).for_each(|k| data.push_agent(&[1.0], &[f64::from(u8::from(k == source))]));
            let points = |id: PeerId| -> Points<'_> { data.points(id) };
            let shard =
                |id: PeerId| Shard { points: points(id), loss: Loss::Squared, regularization: 0.0, confidence: 1.0 };
            let mut net = Network::start_with(&descent, &graph, shard);
            for mail in net.deliver_in_any_order(&mut coin) {
                let (place, value) = match SgdLetter::decode(&mail.bytes).expect("own encoding") {
                    SgdLetter::Mass(letter) => (letter.round * agents + mail.from.0, letter.mass.iter().next()),
                    SgdLetter::Model { theta, .. } => (rounds * agents + mail.from.0, theta.iter().next()),
                };
                seen[mail.to.index()][place as usize][source as usize] = value.expect("a number");
            }
        }
        let gossip = weights(&graph).expect("weights");
        let told = gossip.share_of_each(0, rounds as usize, gamma);
        let mut more = 0;
        for observer in 0..agents as usize {
            let mut known = vec![0.0; agents as usize];
            known[observer] = 1.0;
            seen[observer].retain(|letter| letter.iter().any(|x| *x != 0.0));
            seen[observer].insert(0, known);
            let truth = projections(&seen[observer]);
            let (claimed, without) =
                (gossip.pair_row(observer, rounds as usize, &told), gossip.exposure(&[observer], rounds as usize));
            for (source, (claimed, truth)) in claimed.iter().zip(&truth).enumerate() {
                assert!(
                    *claimed >= truth - 1e-9 && *claimed <= truth * 1.002 + 1e-8,
                    "{seed}: {source} to {observer}: {claimed} {truth}"
                );
            }
            more += truth.iter().zip(without).filter(|(truth, without)| **truth > without + 1e-3).count();
        }
        assert!(more > 0 || rounds > 1, "{seed}: what everyone is told adds something");
    }
}

#[test]
fn what_a_neighbour_could_not_have_sent_is_rejected() {
    let mut coin = Coin::new(1, 0, 0);
    let problem = problem(4, 1, Loss::Logistic, &mut coin);
    let descent = descent(gradient(Loss::Logistic, 1), 2, 1, 1.0);
    let mut net = Network::start(&descent, &problem);
    let mail = |from, letter: SgdLetter<'_>| {
        let mut bytes = Vec::new();
        letter.encode(&mut bytes);
        Mail { from: PeerId(from), to: PeerId(3), vectors: 1, bytes }
    };
    let model = |from, step, theta: &[f64]| mail(from, SgdLetter::Model { step, theta: Numbers::Plain(theta) });
    assert_eq!(net.hand_over(&model(2, 1, &[1.0, 2.0])), Err(Reject::WrongDimension));
    assert_eq!(net.hand_over(&model(2, 2, &[1.0])), Err(Reject::OutOfTurn), "two steps ahead");
    assert_eq!(net.hand_over(&model(2, 0, &[1.0])), Err(Reject::Malformed), "another start");
    assert_eq!(net.hand_over(&model(2, 1, &[1.0])), Ok(()));
    assert_eq!(net.hand_over(&model(2, 1, &[1.0])), Ok(()), "the same from another neighbour");
    assert_eq!(net.hand_over(&model(2, 1, &[1.5])), Err(Reject::Malformed), "members do not agree");
    assert_eq!(net.states[3].step(), 0, "its own rounds are not over");
    let mass = MuffliatoLetter { round: 1, degree: 1, mass: Numbers::Plain(&[1.0]) };
    assert_eq!(net.hand_over(&mail(2, SgdLetter::Mass(mass))), Err(Reject::OutOfTurn));
    assert!(net.hand_over(&Mail { bytes: vec![2, 0, 0, 0, 0], ..model(2, 1, &[1.0]) }).is_err());
}

#[test]
fn hyper_parameters_are_checked_once() {
    let good = descent(gradient(Loss::Logistic, 1), 2, 3, 1.0).config;
    for bad in [
        MuffliatoSgdConfig { steps: 0, ..good },
        MuffliatoSgdConfig { rounds: 0, ..good },
        MuffliatoSgdConfig { rounds: u32::MAX, ..good },
        MuffliatoSgdConfig { acceleration: 2.0, ..good },
        MuffliatoSgdConfig { acceleration: f64::NAN, ..good },
        MuffliatoSgdConfig { law: Some(Event::Laplace { noise_multiplier: 1.0 }), ..good },
    ] {
        assert!(MuffliatoSgd::new(bad).is_err(), "{bad:?}");
    }
}

proptest! {
    #[test]
    fn letters_come_back_to_the_bit_and_random_bytes_never_panic(step: u32, values in prop::collection::vec(-1e70..1e70, 0..6), bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        let numbers = Numbers::Plain(&values);
        let mass = MuffliatoLetter { round: step, degree: 1, mass: numbers };
        for letter in [SgdLetter::Model { step, theta: numbers }, SgdLetter::Mass(mass)] {
            let mut written = Vec::new();
            letter.encode(&mut written);
            let mut again = Vec::new();
            SgdLetter::decode(&written).expect("own encoding").encode(&mut again);
            prop_assert_eq!(written, again);
        }
        if let Ok(letter) = SgdLetter::decode(&bytes) {
            let mut again = Vec::new();
            letter.encode(&mut again);
            prop_assert_eq!(again, bytes);
        }
    }
}
