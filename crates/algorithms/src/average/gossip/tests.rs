//! Gossip averaging by hand, and on a hostile network.

use super::{Goal, Gossip, GossipConfig, GossipKind, GossipLetter, State};
use crate::reference::statistic::{mean, sum};
use crate::testing::{Mail, Network, normals};
use crate::{Bounds, Dataset, Survey};
use proptest::prelude::*;
use sottovoce_core::{Coin, Graph, PeerId, Reject, Wire, wire::Numbers};

fn gossip(columns: usize, goal: Goal) -> Gossip {
    Gossip::new(GossipConfig { columns, goal }).expect("good parameters")
}

/// Rows of some columns, agent after agent, on a graph.
fn survey(columns: usize, edges: &[(u32, u32, f64)], rows: &[&[f64]]) -> Survey {
    let mut data = Dataset::new(columns);
    rows.iter().for_each(|rows| data.push_rows(rows));
    Survey { data, graph: Graph::from_edges(rows.len(), edges).expect("a graph"), bounds: None }
}

/// The path 0 - 1 - 2, one row of one column each.
fn path([a, b, c]: [f64; 3]) -> Survey {
    survey(1, &[(0, 1, 1.0), (1, 2, 3.0)], &[&[a], &[b], &[c]])
}

fn start<'p>(algorithm: &'p Gossip, survey: &'p Survey) -> Network<'p, Gossip> {
    Network::start_with(algorithm, &survey.graph, |agent| survey.observations(agent))
}

/// Masses of all agents and ways together.
fn total(net: &Network<'_, Gossip>, survey: &Survey) -> Vec<f64> {
    let mut total = vec![0.0; survey.data.dimension() + 1];
    let mut add = |mass: &[f64]| total.iter_mut().zip(mass).for_each(|(total, mass)| *total += mass);
    let ids = || (0..survey.data.agents() as u32).map(PeerId);
    for me in ids() {
        let state: &State = &net.states[me.index()];
        add(state.mass());
        for host in survey.graph.peers(me).iter() {
            state.on_its_way(me, host.peer, &net.states[host.peer.index()]).into_iter().for_each(&mut add);
        }
    }
    total
}

#[test]
fn two_exchanges_on_a_path_by_hand() {
    let survey = path([0.0, 4.0, 8.0]);
    let algorithm = gossip(1, Goal::Mean);
    let mut net = start(&algorithm, &survey);
    assert!(net.mail.is_empty(), "nobody says anything at the start");
    let estimates = |net: &Network<'_, _>| [0, 1, 2].map(|agent| net.model(agent)[0]);
    assert_eq!(estimates(&net), [0.0, 4.0, 8.0]);
    net.wake_towards(PeerId(0), PeerId(1));
    assert_eq!((net.mail[0].vectors, net.mail[0].bytes.len()), (0, 1 + 8), "an invitation");
    let invitation = net.mail.remove(0);
    net.hand_over(&invitation).expect("in turn");
    assert_eq!((net.mail[0].vectors, net.mail[0].bytes.len()), (1, 1 + 8 + 2 * 8), "all that the guest holds");
    assert_eq!(net.states[1].mass(), [0.0, 0.0]);
    assert_eq!(estimates(&net), [0.0, 4.0, 8.0], "who holds nothing remembers its estimate");
    net.deliver_all();
    assert_eq!(estimates(&net), [2.0, 2.0, 8.0]);
    net.wake_towards(PeerId(2), PeerId(1));
    net.deliver_all();
    assert_eq!(estimates(&net), [2.0, 5.0, 5.0]);
    assert_eq!(net.wake(PeerId(2)), 3.0, "moved since its last wake");
}

#[test]
fn rows_count_once_each_whoever_holds_them_and_within_the_bounds() {
    let survey = Survey {
        bounds: Some(Bounds { low: -1.0, high: 10.0 }),
        ..survey(2, &[(0, 1, 1.0)], &[&[1.0, 100.0, 2.0, 4.0, 3.0, -9.0], &[6.0, 3.0]])
    };
    for (goal, expected) in [(Goal::Mean, [3.0, 4.0]), (Goal::Sum { agents: 2 }, [12.0, 16.0])] {
        let algorithm = gossip(2, goal);
        let mut net = start(&algorithm, &survey);
        net.wake(PeerId(0));
        net.deliver_all();
        assert_eq!([net.model(0), net.model(1)], [expected; 2], "{goal:?}");
    }
    assert_eq!((mean(survey.everyone()), sum(survey.everyone())), (vec![3.0, 4.0], vec![12.0, 16.0]));
}

#[test]
fn an_agent_without_rows_or_neighbours_ends_where_it_should() {
    let survey = survey(1, &[(0, 1, 1.0)], &[&[5.0, 7.0], &[], &[3.0], &[]]);
    let algorithm = gossip(1, Goal::Mean);
    let mut net = start(&algorithm, &survey);
    for _ in 0..5 {
        for agent in 0..4 {
            net.wake(PeerId(agent));
        }
        net.deliver_all();
    }
    assert_eq!([0, 1, 2, 3].map(|agent| net.model(agent)[0]), [6.0, 6.0, 3.0, 0.0]);
}

#[test]
fn the_same_letter_again_changes_nothing_and_is_answered_with_the_same_bytes() {
    let survey = path([0.0, 4.0, 8.0]);
    let algorithm = gossip(1, Goal::Mean);
    let mut net = start(&algorithm, &survey);
    net.wake_towards(PeerId(0), PeerId(1));
    let invite = net.mail.remove(0);
    net.hand_over(&invite).expect("in turn");
    let bring = net.mail.remove(0);
    net.hand_over(&invite).expect("still invited");
    assert_eq!(net.mail.remove(0).bytes, bring.bytes);
    net.hand_over(&bring).expect("in turn");
    let back = net.mail.remove(0);
    // The return is lost, and the host invites anew: the guest asks for what it has not got.
    net.wake_towards(PeerId(0), PeerId(1));
    let next = net.mail.remove(0);
    assert_ne!(next.bytes, invite.bytes);
    net.hand_over(&next).expect("invited again");
    let again = net.mail.remove(0);
    assert_eq!(again.bytes, bring.bytes);
    net.hand_over(&again).expect("answered before");
    let again = net.mail.remove(0);
    assert_eq!(again.bytes, back.bytes);
    net.hand_over(&again).expect("in turn");
    assert_eq!(net.hand_over(&back), Err(Reject::OutOfTurn), "a return is added once");
    assert_eq!(net.hand_over(&invite), Err(Reject::OutOfTurn), "that meeting is over");
    net.hand_over(&next).expect("this one is not");
    net.deliver_all();
    assert_eq!([0, 1, 2].map(|agent| net.model(agent)[0]), [2.0, 2.0, 8.0]);
    assert_eq!(total(&net, &survey), [12.0, 3.0]);
}

#[test]
fn two_that_invite_each_other_at_once_both_have_their_way() {
    let survey = path([0.0, 4.0, 8.0]);
    let algorithm = gossip(1, Goal::Mean);
    let mut net = start(&algorithm, &survey);
    net.wake_towards(PeerId(0), PeerId(1));
    net.wake_towards(PeerId(1), PeerId(0));
    net.deliver_all();
    assert_eq!([0, 1].map(|agent| net.model(agent)[0]), [2.0, 2.0]);
    assert_eq!(total(&net, &survey), [12.0, 3.0]);
}

#[test]
fn an_agent_that_waits_for_a_return_asks_for_it_and_goes_on_with_others() {
    let survey = path([0.0, 4.0, 8.0]);
    let algorithm = gossip(1, Goal::Mean);
    let mut net = start(&algorithm, &survey);
    net.wake_towards(PeerId(0), PeerId(1));
    let invite = net.mail.remove(0);
    net.hand_over(&invite).expect("in turn");
    let lost = net.mail.remove(0);
    // Agent 0 is silent from now on. Agent 1 holds nothing, and gets half of what agent 2 has.
    let (mut asked, mut invited) = (0, 0);
    for _ in 0..40 {
        net.wake(PeerId(1));
        for mail in std::mem::take(&mut net.mail) {
            if mail.to == PeerId(0) {
                asked += usize::from(mail.bytes == lost.bytes);
            } else {
                invited += 1;
                net.hand_over(&mail).expect("in turn");
            }
        }
        net.deliver_all();
    }
    assert!(asked > 5 && invited > 3, "{asked} {invited}");
    assert_eq!([1, 2].map(|agent| net.model(agent)[0]), [8.0, 8.0]);
    assert_eq!(total(&net, &survey), [12.0, 3.0], "what agent 1 brought is still on its way");
}

#[test]
fn a_neighbour_that_was_never_there_costs_nothing() {
    let survey = path([1.0, 4.0, 8.0]);
    let algorithm = gossip(1, Goal::Mean);
    let mut net = start(&algorithm, &survey);
    for _ in 0..100 {
        for agent in 0..2 {
            net.wake(PeerId(agent));
        }
        net.mail.retain(|mail| mail.to != PeerId(2));
        net.deliver_all();
    }
    assert_eq!([0, 1, 2].map(|agent| net.model(agent)[0]), [2.5, 2.5, 8.0]);
    assert_eq!(net.states[0].mass()[1] + net.states[1].mass()[1], 2.0, "all that the two had is theirs");
}

#[test]
fn what_a_neighbour_could_not_have_sent_is_rejected() {
    let survey = path([0.0, 4.0, 8.0]);
    let algorithm = gossip(1, Goal::Mean);
    let mut net = start(&algorithm, &survey);
    let mail = |from, kind, number, mass: &[f64]| {
        let mut bytes = Vec::new();
        GossipLetter { kind, number, mass: Numbers::Plain(mass) }.encode(&mut bytes);
        Mail { from: PeerId(from), to: PeerId(0), vectors: 1, bytes }
    };
    for (mail, reason) in [
        (mail(2, GossipKind::Invite, 1, &[]), Reject::NotANeighbour),
        (mail(9, GossipKind::Invite, 1, &[]), Reject::NotANeighbour),
        (mail(1, GossipKind::Invite, 1, &[1.0]), Reject::WrongDimension),
        (mail(1, GossipKind::Bring, 1, &[1.0]), Reject::WrongDimension),
        (mail(1, GossipKind::Bring, 1, &[1.0, f64::NAN]), Reject::NotFinite),
        (mail(1, GossipKind::Bring, 1, &[1.0, -1.0]), Reject::Malformed),
        (mail(1, GossipKind::Bring, 0, &[1.0, 1.0]), Reject::OutOfTurn),
        (mail(1, GossipKind::Bring, 1, &[1.0, 1.0]), Reject::OutOfTurn),
        (mail(1, GossipKind::Return, 0, &[1.0, 1.0]), Reject::OutOfTurn),
        (mail(1, GossipKind::Invite, 0, &[]), Reject::OutOfTurn),
        (mail(1, GossipKind::Invite, 2, &[]), Reject::OutOfTurn),
        (mail(1, GossipKind::Invite, u64::MAX, &[]), Reject::OutOfTurn),
    ] {
        assert_eq!(net.hand_over(&mail), Err(reason), "{mail:?}");
    }
    assert_eq!(net.states[0].mass(), [0.0, 1.0], "nothing of it counts");
    assert_eq!(net.hand_over(&mail(1, GossipKind::Invite, 1, &[])), Ok(()));
}

#[test]
fn lost_doubled_and_overtaken_letters_neither_lose_nor_double_anything() {
    for seed in 0..5 {
        let mut coin = Coin::new(seed, 0, 0);
        let edges: Vec<(u32, u32, f64)> =
            (0..8).flat_map(|a| [(a, (a + 1) % 8, 1.0), (a, (a + 3) % 8, 1.0)]).filter(|(a, b, _)| a < b).collect();
        let rows: Vec<Vec<f64>> = (0..8).map(|agent| normals(&mut coin, 2 * (1 + agent % 3))).collect();
        let survey = survey(2, &edges, &rows.iter().map(|rows| &rows[..]).collect::<Vec<_>>());
        let algorithm = gossip(2, Goal::Mean);
        let mut net = start(&algorithm, &survey);
        let before = total(&net, &survey);
        let rows: Vec<f64> = (0..8).flat_map(|agent| net.model(agent).to_vec()).collect();
        let (least, most) =
            rows.iter().fold((f64::MAX, f64::MIN), |(least, most), row| (least.min(*row), most.max(*row)));
        let mut on_its_way = false;
        for step in 0..12_000 {
            let calm = step > 6_000;
            net.wake(PeerId(coin.below(8) as u32));
            while net.mail.len() > 10 || (calm && !net.mail.is_empty()) {
                let mail = net.mail.swap_remove(coin.below(net.mail.len()));
                let fate = coin.unit();
                if fate < 0.2 && !calm {
                    net.mail.push(mail.clone());
                }
                if fate < 0.7 || calm {
                    let _ = net.hand_over(&mail);
                }
                let now = total(&net, &survey);
                let near = now.iter().zip(&before).all(|(now, before)| (now - before).abs() < 1e-11);
                assert!(near, "seed {seed} step {step}: {now:?} {before:?}");
                on_its_way |= net.states.iter().any(|state| state.mass()[2] == 0.0);
                for value in (0..8).flat_map(|agent| net.model(agent)) {
                    assert!(*value > least - 1e-9 && *value < most + 1e-9, "seed {seed} step {step}: {value}");
                }
            }
        }
        assert!(on_its_way, "the storm never emptied a hand: it tests nothing");
        let exact = mean(survey.everyone());
        for agent in 0..8 {
            let error = crate::vector::largest_difference(net.model(agent), &exact);
            assert!(error < 1e-12, "seed {seed} agent {agent}: {error}");
        }
    }
}

#[test]
fn hyper_parameters_are_checked_once() {
    let config = |columns, goal| Gossip::new(GossipConfig { columns, goal });
    assert!(config(1, Goal::Mean).is_ok() && config(3, Goal::Sum { agents: 1 }).is_ok());
    assert!(config(0, Goal::Mean).is_err() && config(1, Goal::Sum { agents: 0 }).is_err());
}

proptest! {
    #[test]
    fn letters_come_back_to_the_bit(kind in 0..3usize, number: u64, mass in prop::collection::vec(-1e70..1e70, 0..6)) {
        let kind = [GossipKind::Invite, GossipKind::Bring, GossipKind::Return][kind];
        let mut bytes = Vec::new();
        GossipLetter { kind, number, mass: Numbers::Plain(&mass) }.encode(&mut bytes);
        let back = GossipLetter::decode(&bytes).expect("own encoding");
        prop_assert_eq!((back.kind, back.number), (kind, number));
        prop_assert!(back.mass.iter().eq(mass.iter().copied()));
    }

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
        if let Ok(letter) = GossipLetter::decode(&bytes) {
            let mut again = Vec::new();
            letter.encode(&mut again);
            prop_assert_eq!(again, bytes);
        }
    }
}
