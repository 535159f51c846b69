//! Frank-Wolfe as one agent runs it, and with mail that waits until the test delivers it.

use super::super::letter::{BoostingLetter, step_bits};
use super::{FrankWolfe, FrankWolfeConfig, StepSize};
use crate::boosting::{curvature, gap_block, gradient_block, value};
use crate::personal::graph::Learner;
use crate::testing::{Mail, Network, boosting_problem, everyone};
use crate::{Dataset, Loss, Problem, Regularization};
use sottovoce_core::{Algorithm, Coin, Cx, Graph, Outbox, PeerId, Posts, Reject, Role, Rows, Time, Wire};
use sottovoce_privacy::{Exhausted, Gate, NoNoise, Plan, Secrets};

fn config(problem: &Problem, step_size: StepSize) -> FrankWolfeConfig {
    let (predictors, trade_off) = (problem.dimension(), problem.trade_off);
    FrankWolfeConfig { predictors, trade_off, radius: 2.0, step_size, gap_min: 0.0, local_rounds: 0 }
}

fn algorithm(problem: &Problem, step_size: StepSize) -> FrankWolfe {
    FrankWolfe::new(config(problem, step_size)).expect("good parameters")
}

fn models(net: &Network<'_, FrankWolfe>, problem: &Problem) -> Rows {
    let mut rows = Rows::zeros(problem.agents(), problem.dimension());
    everyone(problem).for_each(|agent| rows.row_mut(agent.index()).copy_from_slice(net.model(agent.0)));
    rows
}

/// Two predictors, two agents, one edge of weight 3. The first agent's points are all right by predictor 0 and half right by
/// predictor 1, so at zero g = -3 mu c (1, 0) and it goes to beta e_0; the second has no data and follows the first.
#[test]
fn two_steps_by_hand() {
    let mut data = Dataset::new(2);
    data.push_agent(&[1.0, 1.0, -1.0, 1.0], &[1.0, -1.0]);
    data.push_agent(&[], &[]);
    let problem = Problem {
        data,
        graph: Graph::from_edges(2, &[(0, 1, 3.0)]).expect("a graph"),
        loss: Loss::Logistic,
        regularization: Regularization::Constant(0.0),
        trade_off: 0.5,
        points_max: 2.0,
    };
    let algorithm = algorithm(&problem, StepSize::LocalClock);
    let mut net = Network::start(&algorithm, &problem);
    assert!(net.mail.is_empty(), "everyone knows that models start at zero");
    net.wake(PeerId(0));
    let third = f64::from((2.0f64 / 3.0) as f32);
    assert_eq!(net.model(0), [2.0 * third, 0.0]);
    // gap = beta |g|_infinity = 2 x 3 x 0.5.
    assert!((net.states[0].gap() - 3.0).abs() < 1e-15);
    assert_eq!(net.mail.len(), 1);
    net.deliver_all();
    // Now g of the second is -3 (4/3, 0): the same corner.
    net.wake(PeerId(1));
    assert_eq!(net.model(1), [2.0 * third, 0.0]);
    assert!((net.states[1].gap() - 2.0 * 3.0 * 2.0 * third).abs() < 1e-15);
    assert_eq!(net.states[1].bits().steps, step_bits(2));
    assert_eq!(step_bits(2), 34);
}

/// Gap and corner of every wake against the gradient of the whole objective, and remembered margins against the data.
#[test]
fn a_wake_goes_to_the_best_corner_for_the_true_gradient() {
    for step_size in [StepSize::LocalClock, StepSize::Descent] {
        let problem = boosting_problem(1, 9, 12);
        let algorithm = algorithm(&problem, step_size);
        let mut net = Network::start(&algorithm, &problem);
        let mut coin = Coin::new(5, 0, 0);
        let mut gradient = vec![0.0; 12];
        for _ in 0..2_000 {
            let agent = PeerId(coin.below(7) as u32);
            let before = models(&net, &problem);
            gradient_block(&problem, agent, &before, &mut gradient);
            net.wake(agent);
            net.deliver_all();
            let gap = gap_block(2.0, before.row(agent.index()), &gradient);
            assert!((net.states[agent.index()].gap() - gap).abs() < 1e-10, "{gap}");
            let after = net.model(agent.0);
            let size = 1.0 - {
                // All coordinates but one shrink by 1 - gamma.
                let moved = |k: &usize| before.row(agent.index())[*k].abs() > 1e-3;
                let best = (0..12).max_by(|a, b| gradient[*a].abs().total_cmp(&gradient[*b].abs())).expect("some");
                (0..12).filter(|k| *k != best).find(moved).map_or(f64::NAN, |k| after[k] / before.row(agent.index())[k])
            };
            let steepest = gradient.iter().fold(0.0f64, |most, g| most.max(g.abs()));
            for k in 0..12 {
                if !size.is_nan() && (gradient[k].abs() - steepest).abs() > 1e-9 {
                    let shrunk = (1.0 - size) * before.row(agent.index())[k];
                    assert!((after[k] - shrunk).abs() < 1e-12, "only the best corner pulls");
                }
            }
        }
    }
}

#[test]
fn descent_never_raises_the_objective_and_falls_as_promised() {
    for seed in 0..5 {
        let problem = boosting_problem(seed, 8, 10);
        let algorithm = algorithm(&problem, StepSize::Descent);
        let mut net = Network::start(&algorithm, &problem);
        let mut coin = Coin::new(seed, 9, 0);
        let mut before = value(&problem, &models(&net, &problem));
        let whole = curvature(&problem, 2.0);
        for _ in 0..1_500 {
            // The last two agents are isolated and do not count in Q.
            let agent = PeerId(coin.below(6) as u32);
            net.wake(agent);
            net.deliver_all();
            let after = value(&problem, &models(&net, &problem));
            let gap = net.states[agent.index()].gap();
            let promised = if gap >= whole { 0.5 * gap } else { 0.5 * gap * gap / whole };
            assert!(after <= before - promised * (1.0 - 1e-6) + 1e-12, "{after} {before} {promised}");
            before = after;
        }
    }
}

/// CHECK 01.n, under everything that can happen to a letter: after the last one has come through, copies are exact.
#[test]
fn check_01_n_a_lost_step_is_noticed_and_the_whole_model_comes() {
    let problem = boosting_problem(2, 9, 12);
    let algorithm = algorithm(&problem, StepSize::LocalClock);
    let mut net = Network::start(&algorithm, &problem);
    let mut coin = Coin::new(6, 0, 0);
    let mut old: Vec<Mail> = Vec::new();
    let mut gaps = 0;
    for round in 0..4_000 {
        net.wake(PeerId(coin.below(7) as u32));
        // Any letter may be lost, come twice, come late and come again long after.
        for _ in 0..coin.below(6) {
            let (source, keep) = (coin.below(3), coin.below(2));
            let mail = match source {
                0 if !old.is_empty() => old[coin.below(old.len())].clone(),
                _ if !net.mail.is_empty() => net.mail.remove(coin.below(net.mail.len())),
                _ => continue,
            };
            if coin.unit() < 0.7 {
                let asked = matches!(BoostingLetter::decode(&mail.bytes), Ok(BoostingLetter::Step { .. }));
                let before = net.mail.len();
                match net.hand_over(&mail) {
                    Ok(()) => gaps += usize::from(asked && net.mail.len() > before),
                    Err(reason) => assert_eq!(reason, Reject::OutOfTurn),
                }
            }
            if keep == 0 && old.len() < 50 {
                old.push(mail);
            }
        }
        if round % 100 == 0 {
            net.mail.clear();
        }
    }
    assert!(gaps > 100, "{gaps}: the storm tests nothing");
    // Calm: a few wakes of everyone, with all mail delivered. Old letters may be refused.
    for _ in 0..3 {
        for agent in (0..7).map(PeerId) {
            net.wake(agent);
            while !net.mail.is_empty() {
                let mail = net.mail.remove(0);
                let _ = net.hand_over(&mail);
            }
        }
    }
    for (a, b, _) in problem.graph.edges() {
        for (me, peer) in [(a, b), (b, a)] {
            let (version, copy) = net.states[me.index()].copy_of(peer).expect("a neighbour");
            let mut dense = vec![0.0; 12];
            copy.for_each(|(k, v)| dense[k as usize] = v);
            assert_eq!(version, net.states[peer.index()].version());
            assert_eq!(dense, net.model(peer.0), "not a bit differs");
        }
    }
}

#[test]
fn a_stale_copy_is_found_out_though_its_owner_rests() {
    let problem = boosting_problem(3, 6, 5);
    let algorithm = FrankWolfe::new(FrankWolfeConfig { gap_min: 1e6, ..config(&problem, StepSize::LocalClock) });
    let (resting, moving) = (algorithm.expect("good parameters"), self::algorithm(&problem, StepSize::LocalClock));
    let mut net = Network::start(&moving, &problem);
    net.wake(PeerId(0));
    net.mail.clear();
    // From now on nobody moves, and the lost step is never followed by another.
    let mut calm = Network::start(&resting, &problem);
    calm.states = net.states;
    for _ in 0..40 {
        for agent in 0..4 {
            calm.wake(PeerId(agent));
        }
        calm.deliver_all();
    }
    for edge in problem.graph.peers(PeerId(0)).iter() {
        let (version, _) = calm.states[edge.peer.index()].copy_of(PeerId(0)).expect("a neighbour");
        assert_eq!(version, 1);
    }
}

#[test]
fn letters_of_strangers_and_impossible_steps_are_refused() {
    let problem = boosting_problem(4, 7, 5);
    let algorithm = algorithm(&problem, StepSize::LocalClock);
    let mut net = Network::start(&algorithm, &problem);
    net.wake(PeerId(0));
    let good = net.mail[0].clone();
    let stranger = Mail { from: PeerId(6), ..good.clone() };
    assert_eq!(net.hand_over(&stranger), Err(Reject::NotANeighbour));
    let mut long = good.clone();
    long.bytes.push(0);
    assert_eq!(net.hand_over(&long), Err(Reject::Malformed), "filled up with more than it needs");
    assert_eq!(net.hand_over(&good), Ok(()));
    assert_eq!(net.hand_over(&good), Err(Reject::OutOfTurn));
}

#[test]
fn agents_without_data_or_neighbours_do_what_is_left_to_do() {
    let problem = boosting_problem(5, 8, 6);
    let algorithm = algorithm(&problem, StepSize::LocalClock);
    let mut net = Network::start(&algorithm, &problem);
    // The last is isolated without data, the one before isolated with data; agent 1 has neighbours but no data.
    for agent in [7, 6, 1] {
        net.wake(PeerId(agent));
    }
    assert_eq!(net.model(7), [0.0; 6]);
    assert!(net.model(6).iter().any(|theta| *theta != 0.0), "it boosts alone");
    assert_eq!(net.model(1), [0.0; 6], "its neighbours are at zero, and so is it");
    let questions = net.mail.iter().filter(|mail| mail.from == PeerId(1)).count();
    assert_eq!((net.mail.len(), questions), (1, 1), "who does not move asks one neighbour; who is alone is silent");
}

#[test]
fn a_plan_stops_it_before_anything_leaves() {
    let problem = boosting_problem(6, 7, 5);
    let algorithm = algorithm(&problem, StepSize::Descent);
    let (me, shard) = (PeerId(0), problem.shard(PeerId(0)));
    let mut gate = Gate::planned(Plan::nothing().into(), NoNoise);
    let (mut outbox, mut scratch) = (Outbox::default(), Vec::new());
    let mut cx = Cx {
        me,
        role: Role::Member,
        now: Time(1.0),
        peers: problem.graph.peers(me),
        reach: problem.graph.peers(me),
        coin: Coin::new(0, 0, 0),
        secret: Secrets::simulated(0, 0, 0),
        gate: &mut gate,
        posts: Posts::Unheard { zero: &[] },
        scratch: &mut scratch,
        outbox: &mut outbox,
    };
    let mut state = algorithm.start(shard, &mut cx).expect("nothing leaves at the start");
    assert_eq!(algorithm.on_wake(&mut state, shard, &mut cx), Err(Exhausted));
    assert_eq!((cx.outbox.letters().count(), gate.ledger().releases()), (0, 0));
    assert_eq!((state.version(), Learner::model(&algorithm, &state)), (0, &[0.0; 5][..]), "and it has not moved");
}

#[test]
fn what_it_cannot_run_with_is_refused_by_name() {
    let good = config(&boosting_problem(7, 6, 3), StepSize::GlobalClock);
    let refused = |config| FrankWolfe::new(config).expect_err("bad parameters").field;
    assert_eq!(refused(FrankWolfeConfig { predictors: 0, ..good }), "predictors");
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(refused(FrankWolfeConfig { trade_off: bad, ..good }), "trade-off");
        assert_eq!(refused(FrankWolfeConfig { radius: bad, ..good }), "radius");
    }
    assert_eq!(refused(FrankWolfeConfig { gap_min: -1.0, ..good }), "gap-min");
}
