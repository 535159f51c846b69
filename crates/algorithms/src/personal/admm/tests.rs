//! Gossip ADMM against its equations as the paper writes them, and its protocol against a hostile network.

use super::super::exchange::{ExchangeKind, ExchangeLetter};
use super::{Admm, AdmmConfig, Inner, default_penalty};
use crate::reference::{
    central,
    local::{Proximal, solitary_models},
};
use crate::testing::{ALL, Mail, Network, everyone, means_on_a_path, random_problem};
use crate::vector::largest_difference;
use crate::{Loss, Problem};
use sottovoce_core::{Coin, PeerId, Reject, Rows, Wire, wire::Numbers};
use std::collections::BTreeMap;

fn exact(problem: &Problem, penalty: f64) -> Admm {
    Admm::new(AdmmConfig { trade_off: problem.trade_off, penalty, inner: Inner::Exact }).expect("fine parameters")
}

/// The literal protocol: every edge has four Z and four Y, and all of them travel. Indices: (edge, holder, whose model).
struct Literal<'p> {
    problem: &'p Problem,
    penalty: f64,
    models: Rows,
    z: BTreeMap<(u32, u32, u32), Vec<f64>>,
    y: BTreeMap<(u32, u32, u32), Vec<f64>>,
}

impl<'p> Literal<'p> {
    fn new(problem: &'p Problem, penalty: f64) -> Self {
        let models = solitary_models(problem);
        let (mut z, mut y) = (BTreeMap::new(), BTreeMap::new());
        for agent in everyone(problem) {
            for edge in problem.graph.peers(agent).iter() {
                for about in [agent, edge.peer] {
                    z.insert((agent.0, edge.peer.0, about.0), models.row(about.index()).to_vec());
                    y.insert((agent.0, edge.peer.0, about.0), vec![0.0; problem.dimension()]);
                }
            }
        }
        Literal { problem, penalty, models, z, y }
    }

    /// Step 1 at `i`; returns its copy of the model of `j`.
    fn primal(&mut self, i: u32, j: u32) -> Vec<f64> {
        let (rho, p) = (self.penalty, self.problem.dimension());
        let (shard, peers) = (self.problem.shard(PeerId(i)), self.problem.graph.peers(PeerId(i)));
        let mut pull = 0.0;
        let mut centre = vec![0.0; p];
        for edge in peers.iter() {
            let l = edge.peer.0;
            let a = edge.weight / 2.0;
            let b = a * rho / (a + rho);
            pull += b + rho;
            for (k, centre) in centre.iter_mut().enumerate() {
                let v = self.z[&(i, l, l)][k] - self.y[&(i, l, l)][k] / rho;
                let u = self.z[&(i, l, i)][k] - self.y[&(i, l, i)][k] / rho;
                *centre += b * v + rho * u;
            }
        }
        centre.iter_mut().for_each(|value| *value /= pull);
        let weight = self.problem.trade_off * peers.weighted_degree() * shard.confidence;
        let model = self.models.row_mut(i as usize);
        Proximal::new(&shard, weight, pull).solve(&shard, &centre, model, &mut Vec::new());
        let a = peers.edge(peers.position(PeerId(j)).expect("a neighbour")).weight / 2.0;
        (0..p)
            .map(|k| {
                let v = self.z[&(i, j, j)][k] - self.y[&(i, j, j)][k] / rho;
                (a * self.models.row(i as usize)[k] + rho * v) / (a + rho)
            })
            .collect()
    }

    fn activate(&mut self, i: u32, j: u32) {
        let (copy_at_i, copy_at_j) = (self.primal(i, j), self.primal(j, i));
        let rho = self.penalty;
        for k in 0..self.problem.dimension() {
            for about in [i, j] {
                let of_i = if about == i { self.models.row(i as usize)[k] } else { copy_at_i[k] };
                let of_j = if about == j { self.models.row(j as usize)[k] } else { copy_at_j[k] };
                let (y_i, y_j) = (self.y[&(i, j, about)][k], self.y[&(j, i, about)][k]);
                let z = 0.5 * ((y_i + y_j) / rho + of_i + of_j);
                for (holder, other, of, y) in [(i, j, of_i, y_i), (j, i, of_j, y_j)] {
                    self.z.get_mut(&(holder, other, about)).expect("an edge")[k] = z;
                    self.y.get_mut(&(holder, other, about)).expect("an edge")[k] = y + rho * (of - z);
                }
            }
        }
    }
}

#[test]
fn letters_of_two_vectors_do_what_the_paper_does_with_four() {
    for loss in ALL {
        let problem = random_problem(3, 7, 3, loss);
        let algorithm = exact(&problem, 0.3);
        let mut net = Network::start(&algorithm, &problem);
        net.deliver_all();
        let mut literal = Literal::new(&problem, 0.3);
        let mut coin = Coin::new(4, 0, 0);
        for step in 0..500 {
            let agent = PeerId(coin.below(5) as u32);
            net.wake(agent);
            let (to, vectors) = (net.mail[0].to, net.mail[0].vectors);
            assert_eq!(vectors, 2);
            net.deliver_all();
            literal.activate(agent.0, to.0);
            for agent in 0..7 {
                let error = largest_difference(net.model(agent), literal.models.row(agent as usize));
                assert!(error < 1e-9, "{loss:?} step {step} agent {agent}: {error}");
            }
        }
    }
}

#[test]
fn one_exchange_on_a_path_by_hand() {
    // mu = 1, c = 1, L = |theta - value|^2 / 2, rho = 1/2. Edge 0-1 has a = 1/2, b = 1/4; edge 1-2 a = 3/2, b = 3/8.
    let problem = means_on_a_path([0.0, 4.0, 8.0], 1.0);
    let algorithm = exact(&problem, 0.5);
    let mut net = Network::start(&algorithm, &problem);
    net.deliver_all();
    net.wake_towards(PeerId(0), PeerId(1));
    net.deliver_all();
    // Agent 0: min 1/2 th^2 + 1/8 (th - 4)^2 + 1/4 th^2: th = (4/4) / (1 + 1/4 + 1/2) = 4/7; its copy of 4 is
    // (1/2 x 4/7 + 1/2 x 4) / 1 = 16/7.
    // Agent 1: min 4/2 (th - 4)^2 + 1/8 th^2 + 3/16 (th - 8)^2 + 2 x 1/4 (th - 4)^2:
    // th = (16 + 3 + 2 + 2) / (4 + 1/4 + 3/8 + 1) = 23 / 5.625; its copy of 0 is (1/2 th + 0) / 1.
    let (zero, one) = (4.0 / 7.0, 23.0 / 5.625);
    assert!((net.model(0)[0] - zero).abs() < 1e-12, "{:?}", net.model(0));
    assert!((net.model(1)[0] - one).abs() < 1e-12, "{:?}", net.model(1));
    assert_eq!(net.model(2), [8.0]);
    // Y += rho/2 (mine - theirs).
    let (mine, theirs) = net.states[0].multipliers(0);
    assert!((mine[0] - 0.25 * (zero - one / 2.0)).abs() < 1e-12, "{mine:?}");
    assert!((theirs[0] - 0.25 * (16.0 / 7.0 - one)).abs() < 1e-12, "{theirs:?}");
    assert_paired(&problem, &net);
}

/// Both ends of each edge that took equally many exchanges have opposite multipliers, to the bit.
fn assert_paired(problem: &Problem, net: &Network<'_, Admm>) {
    for (a, b, _) in problem.graph.edges() {
        let at = |me: PeerId, peer: PeerId| problem.graph.peers(me).position(peer).expect("an edge");
        let (one, other) = (&net.states[a.index()], &net.states[b.index()]);
        let (k, l) = (at(a, b), at(b, a));
        assert!(one.exchanges(k).abs_diff(other.exchanges(l)) <= 1, "{a:?} {b:?}");
        if one.exchanges(k) == other.exchanges(l) {
            let ((mine, theirs), (other_mine, other_theirs)) = (one.multipliers(k), other.multipliers(l));
            assert!(mine.iter().zip(other_theirs).all(|(x, y)| *x == -*y), "{a:?} {b:?} {mine:?} {other_theirs:?}");
            assert!(theirs.iter().zip(other_mine).all(|(x, y)| *x == -*y), "{a:?} {b:?}");
        }
    }
}

#[test]
fn check_01_k_multipliers_stay_paired_whatever_the_network_does() {
    for seed in 0..10 {
        let problem = random_problem(seed, 8, 3, ALL[seed as usize % 4]);
        let algorithm = exact(&problem, default_penalty(&problem.graph, problem.trade_off));
        let mut net = Network::start(&algorithm, &problem);
        let mut coin = Coin::new(seed, 1, 0);
        for _ in 0..5_000 {
            net.wake(PeerId(coin.below(8) as u32));
            // About ten letters are always on their way, so requests cross and overtake each other.
            while net.mail.len() > 10 {
                let mail = net.mail.swap_remove(coin.below(net.mail.len()));
                let fate = coin.unit();
                if fate < 0.2 {
                    net.mail.push(mail.clone());
                }
                if fate < 0.7 {
                    let _ = net.hand_over(&mail);
                }
                assert_paired(&problem, &net);
            }
        }
        // What remains arrives, and then everything does: the limit is the same as ever.
        let expected = central::minimum(&problem);
        for _ in 0..60_000 {
            net.wake(PeerId(coin.below(8) as u32));
            while let Some(mail) = net.mail.pop() {
                let _ = net.hand_over(&mail);
            }
        }
        assert_paired(&problem, &net);
        for agent in 0..8 {
            let error = largest_difference(net.model(agent), expected.row(agent as usize));
            assert!(error < 1e-6, "seed {seed} agent {agent}: {error}");
        }
    }
}

#[test]
fn of_two_crossing_requests_the_lower_agents_wins() {
    let problem = means_on_a_path([0.0, 4.0, 8.0], 1.0);
    let algorithm = exact(&problem, 0.5);
    let mut net = Network::start(&algorithm, &problem);
    net.deliver_all();
    net.wake_towards(PeerId(0), PeerId(1));
    net.wake_towards(PeerId(1), PeerId(0));
    let (low, high) = (net.mail[0].clone(), net.mail.last().cloned().expect("two requests"));
    net.mail.clear();
    assert_eq!(net.hand_over(&high), Err(Reject::OutOfTurn), "the lower agent insists");
    net.hand_over(&low).expect("the higher one gives way");
    let reply = net.mail.pop().expect("a reply");
    net.hand_over(&low).expect("a repeated request");
    assert_eq!(net.mail.pop().expect("a reply").bytes, reply.bytes, "answered with the same bytes");
    net.hand_over(&reply).expect("in turn");
    assert_eq!(net.hand_over(&reply), Err(Reject::OutOfTurn));
    assert_eq!(net.hand_over(&low), Ok(()), "still answered");
    assert_eq!(net.hand_over(&high), Err(Reject::OutOfTurn), "dropped for good");
    assert_eq!((net.states[0].exchanges(0), net.states[1].exchanges(0)), (1, 1));
    assert_paired(&problem, &net);
}

#[test]
fn a_lost_reply_is_asked_for_again_with_the_same_bytes_while_other_edges_go_on() {
    let problem = means_on_a_path([0.0, 4.0, 8.0], 1.0);
    let algorithm = exact(&problem, 0.5);
    let mut net = Network::start(&algorithm, &problem);
    net.deliver_all();
    net.wake_towards(PeerId(1), PeerId(0));
    let request = net.mail.pop().expect("a request");
    net.hand_over(&request).expect("in turn");
    let lost = net.mail.pop().expect("a reply");
    // Agent 1 goes on with agent 2, which moves its model.
    for _ in 0..5 {
        net.wake_towards(PeerId(1), PeerId(2));
        net.deliver_all();
    }
    assert_eq!(net.states[1].exchanges(1), 5);
    // Agent 0 is one ahead and may not start the next exchange yet.
    net.wake(PeerId(0));
    let early = net.mail.pop().expect("a request");
    assert_eq!(net.hand_over(&early), Err(Reject::OutOfTurn));
    net.wake_towards(PeerId(1), PeerId(0));
    let again = net.mail.pop().expect("a request");
    assert_eq!(again.bytes, request.bytes);
    net.hand_over(&again).expect("a repeated request");
    let reply = net.mail.pop().expect("a reply");
    assert_eq!(reply.bytes, lost.bytes);
    net.hand_over(&reply).expect("in turn");
    assert_paired(&problem, &net);
    assert_eq!(net.hand_over(&early), Ok(()), "now it is its turn");
}

#[test]
fn an_edge_opens_late_when_the_first_words_are_lost() {
    let problem = means_on_a_path([0.0, 4.0, 8.0], 1.0);
    let algorithm = exact(&problem, 0.5);
    let mut net = Network::start(&algorithm, &problem);
    let hello = net.mail.iter().find(|mail| (mail.from.0, mail.to.0) == (1, 0)).cloned().expect("a hello");
    net.mail.clear();
    net.hand_over(&hello).expect("a first word");
    // Agent 0 may ask, but agent 1 has not heard it yet.
    net.wake(PeerId(0));
    let request = net.mail.pop().expect("a request");
    assert_eq!(net.hand_over(&request), Err(Reject::OutOfTurn));
    net.wake_towards(PeerId(1), PeerId(0));
    assert!(net.mail.iter().all(|mail| mail.vectors == 1));
    net.deliver_all();
    net.hand_over(&request).expect("open now");
    net.deliver_all();
    assert_paired(&problem, &net);
    assert_eq!(net.hand_over(&hello), Err(Reject::OutOfTurn), "a first word is only once the first");
}

#[test]
fn what_a_neighbour_could_not_have_sent_is_rejected() {
    let problem = means_on_a_path([0.0, 4.0, 8.0], 1.0);
    let algorithm = exact(&problem, 0.5);
    let mut net = Network::start(&algorithm, &problem);
    net.deliver_all();
    let mail = |from, kind, number, vectors, body: &[f64]| {
        let mut bytes = Vec::new();
        ExchangeLetter { kind, vectors, number, body: Numbers::Plain(body) }.encode(&mut bytes);
        Mail { from: PeerId(from), to: PeerId(0), vectors: 2, bytes }
    };
    let two = [1.0, 2.0];
    for (mail, reason) in [
        (mail(2, ExchangeKind::Request, 1, 2, &two), Reject::NotANeighbour),
        (mail(1, ExchangeKind::Request, 1, 1, &[1.0]), Reject::WrongDimension),
        (mail(1, ExchangeKind::Request, 1, 1, &two), Reject::WrongDimension),
        (mail(1, ExchangeKind::Request, 1, 2, &[1.0; 4]), Reject::WrongDimension),
        (mail(1, ExchangeKind::Request, 1, 2, &[1.0, f64::NAN]), Reject::NotFinite),
        (mail(1, ExchangeKind::Request, 1, 2, &[1.0, 1e200]), Reject::NotFinite),
        (mail(1, ExchangeKind::Request, 2, 2, &two), Reject::OutOfTurn),
        (mail(1, ExchangeKind::Request, u64::MAX, 2, &two), Reject::OutOfTurn),
        (mail(1, ExchangeKind::Reply, 1, 2, &two), Reject::OutOfTurn),
        (mail(1, ExchangeKind::Hello, 1, 2, &two), Reject::OutOfTurn),
        (mail(1, ExchangeKind::Hello, 0, 1, &[1.0]), Reject::OutOfTurn),
    ] {
        assert_eq!(net.hand_over(&mail), Err(reason));
    }
    assert_eq!(net.hand_over(&mail(1, ExchangeKind::Request, 1, 2, &two)), Ok(()));
}

#[test]
fn hyper_parameters_are_checked_once() {
    let fine = AdmmConfig { trade_off: 1.0, penalty: 0.1, inner: Inner::default() };
    assert!(Admm::new(fine).is_ok());
    assert!(Admm::new(AdmmConfig { penalty: 0.0, ..fine }).is_err());
    assert!(Admm::new(AdmmConfig { trade_off: f64::NAN, ..fine }).is_err());
    assert!(Admm::new(AdmmConfig { inner: Inner::Gradient { steps: 0 }, ..fine }).is_err());
    let path = means_on_a_path([0.0; 3], 1.0);
    assert!((default_penalty(&path.graph, 5.0) - 0.2).abs() < 1e-15);
    assert!((default_penalty(&path.graph, 0.5) - 0.1).abs() < 1e-15);
}

#[test]
fn the_hinge_can_be_stepped_too() {
    let problem = random_problem(2, 6, 3, Loss::Hinge);
    let inner = Inner::Gradient { steps: 10 };
    let algorithm = Admm::new(AdmmConfig { trade_off: 1.0, penalty: 0.1, inner }).expect("fine parameters");
    let mut net = Network::start(&algorithm, &problem);
    net.deliver_all();
    let before = crate::objective::value(&problem, &solitary_models(&problem));
    for step in 0..4_000 {
        net.wake(PeerId(step % 4));
        net.deliver_all();
    }
    let mut models = Rows::zeros(6, 3);
    (0..6).for_each(|agent| models.row_mut(agent).copy_from_slice(net.model(agent as u32)));
    let least = crate::objective::value(&problem, &central::minimum(&problem));
    let after = crate::objective::value(&problem, &models);
    assert!(after - least < 0.05 * (before - least), "{before} {after} {least}");
}
