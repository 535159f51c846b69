//! Tests of private coordinate descent, from its arithmetic outwards.

use super::super::{
    CoordinateDescent, CoordinateDescentConfig, PrivateCoordinateDescent, PrivateCoordinateDescentConfig, Start,
    WarmStart,
};
use crate::testing::{SMOOTH, event, everyone, excess, neighbours, normals, random_problem};
use crate::vector::largest_difference;
use crate::{Dataset, Loss, Problem, Regularization, Shard};
use sottovoce_core::{Algorithm, Coin, Cx, Graph, PeerId, Rows};
use sottovoce_privacy::sensitivity::Norm;
use sottovoce_privacy::{Event, Gate, Idealized, Plan, Sum, Tight};
use std::sync::Arc;

fn config(problem: &Problem) -> PrivateCoordinateDescentConfig {
    PrivateCoordinateDescentConfig {
        dimension: problem.dimension(),
        loss: problem.loss,
        trade_off: problem.trade_off,
        clip: 1e9,
        norm: Norm::L2,
        feature_bound: 10.0,
        l1_features: false,
        warm: None,
    }
}

/// A plan whose noise can be forgotten.
fn nearly_exact(norm: Norm, updates: usize) -> Arc<Plan> {
    let noise_multiplier = 1e-25;
    let step = match norm {
        Norm::L1 => Event::Laplace { noise_multiplier },
        Norm::L2 => Event::Gaussian { noise_multiplier },
    };
    Arc::new(Plan::new(vec![step; updates], f64::INFINITY, 0.5, &Sum).expect("an infinite budget"))
}

fn noisy(updates: usize) -> Arc<Plan> {
    let steps = vec![Event::Gaussian { noise_multiplier: 5.0 }; updates];
    Arc::new(Plan::new(steps, 100.0, 1e-3, &Tight).expect("a large budget"))
}

/// All agents in turn, `wakes` times; returns the posts, the gates and how often each agent posted.
fn run(
    algorithm: &PrivateCoordinateDescent,
    problem: &Problem,
    plan: &Arc<Plan>,
    wakes: usize,
) -> (Rows, Vec<Gate<Idealized>>, Vec<usize>) {
    let n = problem.agents();
    let mut rows = Rows::zeros(n, problem.dimension());
    let mut posted = vec![0; n];
    let mut gates: Vec<_> = everyone(problem).map(|id| Gate::planned(plan.clone(), Idealized::new(1, id.0))).collect();
    let mut states = Vec::new();
    for me in everyone(problem) {
        let shard = problem.shard(me);
        let (state, post) = event(problem, &rows, me, &mut gates[me.index()], |cx| algorithm.start(shard, cx));
        states.push(state.expect("planned"));
        if let Some(post) = post {
            rows.row_mut(me.index()).copy_from_slice(&post);
        }
    }
    for _ in 0..wakes {
        for me in everyone(problem) {
            let (state, shard) = (&mut states[me.index()], problem.shard(me));
            let wake = |cx: &mut Cx<'_>| algorithm.on_wake(state, shard, cx);
            let (activity, post) = event(problem, &rows, me, &mut gates[me.index()], wake);
            let moved = activity.expect("an agent whose plan is done only listens").moved;
            if let Some(post) = post {
                assert_eq!(moved, largest_difference(&post, rows.row(me.index())));
                rows.row_mut(me.index()).copy_from_slice(&post);
                posted[me.index()] += 1;
            }
        }
    }
    (rows, gates, posted)
}

#[test]
fn without_clipping_and_noise_the_limit_is_that_of_coordinate_descent() {
    for loss in SMOOTH {
        let problem = Problem { trade_off: 0.3, ..random_problem(8, 9, 3, loss) };
        let algorithm = PrivateCoordinateDescent::new(config(&problem)).expect("good parameters");
        let (rows, ..) = run(&algorithm, &problem, &nearly_exact(Norm::L2, 60_000), 60_000);
        let optimum = crate::reference::central::minimum(&problem);
        for me in everyone(&problem).filter(|&me| !problem.graph.peers(me).is_empty()) {
            let error = largest_difference(rows.row(me.index()), optimum.row(me.index()));
            assert!(error < 1e-6, "{loss:?} {me:?}: {error:e}");
        }
    }
}

#[test]
fn a_step_is_the_step_of_coordinate_descent_but_for_its_length() {
    // With the measured smoothness in place of the public bound, both would take the same step: along the same line.
    let problem = random_problem(2, 9, 3, Loss::Logistic);
    let mut rows = Rows::zeros(9, 3);
    rows.values_mut().copy_from_slice(&normals(&mut Coin::new(3, 0, 0), 27));
    let private = PrivateCoordinateDescent::new(config(&problem)).expect("good parameters");
    let plain = CoordinateDescent::new(CoordinateDescentConfig {
        dimension: 3,
        loss: problem.loss,
        trade_off: problem.trade_off,
        start: Start::Zero,
    })
    .expect("good parameters");
    for me in everyone(&problem).filter(|&me| !problem.graph.peers(me).is_empty()) {
        let shard = problem.shard(me);
        let mut gate = Gate::planned(nearly_exact(Norm::L2, 1), Idealized::new(1, 0));
        let mut state = event(&problem, &rows, me, &mut gate, |cx| private.start(shard, cx)).0.expect("planned");
        let (_, post) = event(&problem, &rows, me, &mut gate, |cx| private.on_wake(&mut state, shard, cx));
        let mut open = Gate::without_privacy();
        let mut state = event(&problem, &rows, me, &mut open, |cx| plain.start(shard, cx)).0.expect("unlimited");
        let (_, expected) = event(&problem, &rows, me, &mut open, |cx| plain.on_wake(&mut state, shard, cx));
        let step = |post: Option<Vec<f64>>| -> Vec<f64> {
            post.expect("a step").iter().zip(rows.row(me.index())).map(|(new, old)| new - old).collect()
        };
        let (ours, theirs) = (step(post), step(expected));
        let ratio = ours[0] / theirs[0];
        assert!(ratio > 0.0 && ratio <= 1.0 + 1e-12, "the public bound makes steps shorter: {ratio}");
        for (a, b) in ours.iter().zip(&theirs) {
            assert!((a - ratio * b).abs() < 1e-12, "{ours:?} {theirs:?}");
        }
    }
}

#[test]
fn an_agent_stops_when_its_plan_is_done_and_one_without_data_spends_nothing() {
    let problem = random_problem(6, 9, 3, Loss::Logistic);
    let algorithm = PrivateCoordinateDescent::new(config(&problem)).expect("good parameters");
    let (_, gates, posted) = run(&algorithm, &problem, &noisy(4), 10);
    for me in everyone(&problem) {
        let (data, alone) = (problem.data.size(me) > 0, problem.graph.peers(me).is_empty());
        let (releases, posts) = match (alone, data) {
            (true, _) => (0, 0),
            (false, true) => (4, 4),
            (false, false) => (0, 10),
        };
        assert_eq!((gates[me.index()].ledger().releases(), posted[me.index()]), (releases, posts), "{me:?}");
    }
}

#[test]
fn a_gate_without_a_plan_lets_nothing_out() {
    let problem = random_problem(6, 9, 3, Loss::Logistic);
    let algorithm = PrivateCoordinateDescent::new(config(&problem)).expect("good parameters");
    let (rows, me) = (Rows::zeros(9, 3), PeerId(0));
    let mut gate = Gate::without_privacy();
    let shard = problem.shard(me);
    let mut state = event(&problem, &rows, me, &mut gate, |cx| algorithm.start(shard, cx)).0.expect("nothing leaves");
    let (activity, post) = event(&problem, &rows, me, &mut gate, |cx| algorithm.on_wake(&mut state, shard, cx));
    assert!(activity.is_ok() && post.is_none() && gate.ledger().releases() == 0);
}

#[test]
fn what_it_cannot_run_with_is_refused_by_name() {
    let good = config(&random_problem(6, 9, 3, Loss::Logistic));
    let refused = |config| PrivateCoordinateDescent::new(config).expect_err("bad parameters").field;
    assert_eq!(refused(PrivateCoordinateDescentConfig { loss: Loss::Hinge, ..good }), "loss");
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(refused(PrivateCoordinateDescentConfig { trade_off: bad, ..good }), "trade-off");
        assert_eq!(refused(PrivateCoordinateDescentConfig { clip: bad, ..good }), "clip");
        assert_eq!(refused(PrivateCoordinateDescentConfig { feature_bound: bad, ..good }), "feature-bound");
        let warm = |regularization, radius, trade_off| {
            let warm = WarmStart { regularization, radius, trade_off, wakes: 3 };
            refused(PrivateCoordinateDescentConfig { warm: Some(warm), ..good })
        };
        assert_eq!(warm(bad, 1.0, 1.0), "warm.regularization");
        assert_eq!(warm(1.0, bad, 1.0), "warm.radius");
        assert_eq!(warm(1.0, 1.0, bad), "warm.trade-off");
    }
    let warm = WarmStart { regularization: 1.0, radius: 1.0, trade_off: 1.0, wakes: 3 };
    let squared = PrivateCoordinateDescentConfig { loss: Loss::Squared, warm: Some(warm), ..good };
    assert_eq!(refused(squared), "warm");
}

fn pair_problem(p: usize, loss: Loss, (features, labels): &(Vec<f64>, Vec<f64>)) -> Problem {
    let mut data = Dataset::new(p);
    data.push_agent(features, labels);
    data.push_agent(&vec![0.5; p], &[1.0]);
    Problem {
        data,
        graph: Graph::from_edges(2, &[(0, 1, 1.0)]).expect("an edge"),
        loss,
        regularization: Regularization::OneOverPoints,
        trade_off: 1.0,
        points_max: labels.len() as f64,
    }
}

/// What agent 0 hands to its gate at one wake, as an almost noiseless release shows it through its post.
fn mean_gradient(
    algorithm: &PrivateCoordinateDescent,
    norm: Norm,
    problem: &Problem,
    theta: &[f64],
) -> (Vec<f64>, f64) {
    let mut rows = Rows::zeros(2, theta.len());
    rows.row_mut(0).copy_from_slice(theta);
    let (me, shard) = (PeerId(0), problem.shard(PeerId(0)));
    let mut gate = Gate::planned(nearly_exact(norm, 1), Idealized::new(1, 0));
    let mut state = event(problem, &rows, me, &mut gate, |cx| algorithm.start(shard, cx)).0.expect("planned");
    let (_, post) = event(problem, &rows, me, &mut gate, |cx| algorithm.on_wake(&mut state, shard, cx));
    let charge = *gate.ledger().charges().next().expect("a release");
    let Shard { regularization, confidence, .. } = shard;
    let curvature = problem.loss.smoothness().expect("smooth") * 100.0 + 2.0 * regularization;
    let alpha = 1.0 / (1.0 + problem.trade_off * confidence * curvature);
    let weight = alpha * problem.trade_off * confidence;
    let keep = 1.0 - alpha - 2.0 * weight * regularization;
    let post = post.expect("a step");
    let gradient = post.iter().zip(theta).map(|(new, old)| (keep * old - new) / weight).collect();
    (gradient, charge.sensitivity.expect("a bounded release").get())
}

/// CHECK 02.h: replacing a record moves the clipped mean by at most the declared 2 B / m, adversarial records included.
#[test]
fn check_02_h_replacing_a_record_moves_the_mean_by_at_most_its_sensitivity() {
    let mut coin = Coin::new(21, 0, 0);
    let mut most = 0.0f64;
    for trial in 0..4000 {
        let (records, p) = (1 + coin.below(12), 1 + coin.below(6));
        let extreme = trial % 2 == 0;
        let loss = SMOOTH[coin.below(3)];
        let norm = if coin.below(2) == 0 { Norm::L1 } else { Norm::L2 };
        let pair = neighbours(&mut coin, records, p, extreme);
        let theta = normals(&mut coin, p);
        let [(a, sensitivity), (b, _)] = pair.map(|points| {
            let problem = pair_problem(p, loss, &points);
            let config = PrivateCoordinateDescentConfig { clip: 0.7, norm, ..config(&problem) };
            let algorithm = PrivateCoordinateDescent::new(config).expect("good parameters");
            mean_gradient(&algorithm, norm, &problem, &theta)
        });
        let difference: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
        let moved = norm.of(&difference);
        assert!(moved <= sensitivity * (1.0 + 1e-9), "{loss:?} m={records} p={p}: {moved} above {sensitivity}");
        most = most.max(moved / sensitivity);
    }
    assert!(most > 0.999, "some pair comes close: {most}");
}

/// The regularized local model that a warm start releases, and its declared sensitivity.
fn warm_model(regularization: f64, problem: &Problem) -> (Vec<f64>, f64) {
    let warm = WarmStart { regularization, radius: 1e9, trade_off: 1.0, wakes: 3 };
    let config = PrivateCoordinateDescentConfig { feature_bound: 1.0, warm: Some(warm), ..config(problem) };
    let algorithm = PrivateCoordinateDescent::new(config).expect("good parameters");
    let steps = vec![Event::GammaNorm { noise_multiplier: 1e-25 }];
    let plan = Plan::new(steps, f64::INFINITY, 0.5, &Sum).expect("an infinite budget");
    let mut gate = Gate::planned(Arc::new(plan), Idealized::new(1, 0));
    let (rows, me) = (Rows::zeros(2, problem.dimension()), PeerId(0));
    let (_, post) = event(problem, &rows, me, &mut gate, |cx| algorithm.start(problem.shard(me), cx));
    let charge = *gate.ledger().charges().next().expect("a release");
    (post.expect("the warm start"), charge.sensitivity.expect("a bounded release").get())
}

/// CHECK 02.e: the empirical sensitivity of the warm start on 1000 random replace-one pairs is at most Delta_2.
#[test]
fn check_02_e_replacing_a_record_moves_the_warm_start_by_at_most_its_sensitivity() {
    let mut coin = Coin::new(22, 0, 0);
    let mut most = 0.0f64;
    for _ in 0..1000 {
        let (records, p) = (1 + coin.below(8), 1 + coin.below(4));
        let loss = [Loss::Logistic, Loss::SmoothedHinge][coin.below(2)];
        let regularization = [1e-3, 0.01, 0.1, 1.0][coin.below(4)];
        let pair = neighbours(&mut coin, records, p, false);
        let [(a, sensitivity), (b, _)] = pair.map(|(mut features, labels)| {
            for row in features.chunks_exact_mut(p) {
                let length = Norm::L2.of(row).max(1.0) * (1.0 + 1e-15);
                row.iter_mut().for_each(|x| *x /= length);
            }
            warm_model(regularization, &pair_problem(p, loss, &(features, labels)))
        });
        let difference: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
        let moved = Norm::L2.of(&difference);
        assert!(moved <= sensitivity, "{loss:?} m={records} p={p}: {moved} above {sensitivity}");
        most = most.max(moved / sensitivity);
    }
    assert!(most > 0.5, "some pair comes close: {most}");
}

#[test]
fn a_warm_start_is_propagated_at_no_charge_and_stays_in_its_ball() {
    let problem = random_problem(6, 9, 3, Loss::Logistic);
    let warm = WarmStart { regularization: 0.5, radius: 0.25, trade_off: 2.0, wakes: 400 };
    let config = PrivateCoordinateDescentConfig { warm: Some(warm), ..config(&problem) };
    let algorithm = PrivateCoordinateDescent::new(config).expect("good parameters");
    let steps = vec![Event::GammaNorm { noise_multiplier: 3.0 }];
    let plan = Arc::new(Plan::new(steps, 1.0, 0.0, &Sum).expect("cheap"));
    let (start, gates, _) = run(&algorithm, &problem, &plan, 0);
    let (rows, ..) = run(&algorithm, &problem, &plan, 400);
    // The limit of model propagation, from the released models.
    let smooth = Problem { trade_off: warm.trade_off, ..problem.clone() };
    let limit = crate::reference::propagation::closed_form(&smooth, &start);
    for me in everyone(&problem) {
        let released = u64::from(problem.data.size(me) > 0 && !problem.graph.peers(me).is_empty());
        assert_eq!(gates[me.index()].ledger().releases(), released);
        assert!(Norm::L2.of(start.row(me.index())) <= 0.25 * (1.0 + 1e-12));
        assert!(largest_difference(rows.row(me.index()), limit.row(me.index())) < 1e-9, "{me:?}");
    }
}

/// Posts of many single updates from one public state, projected on the direction in which the two worlds differ.
fn projected(problem: &Problem, norm: Norm, step: Event, direction: &[f64], runs: usize, seed: u64) -> Vec<f64> {
    let config = PrivateCoordinateDescentConfig { clip: 0.7, norm, ..config(problem) };
    let algorithm = PrivateCoordinateDescent::new(config).expect("good parameters");
    let plan = Plan::new(vec![step; runs], f64::INFINITY, 0.5, &Sum).expect("an infinite budget");
    let mut gate = Gate::planned(Arc::new(plan), Idealized::new(seed, 0));
    let (rows, me, shard) = (Rows::zeros(2, problem.dimension()), PeerId(0), problem.shard(PeerId(0)));
    let mut state = event(problem, &rows, me, &mut gate, |cx| algorithm.start(shard, cx)).0.expect("planned");
    let mut update = || {
        let (_, post) = event(problem, &rows, me, &mut gate, |cx| algorithm.on_wake(&mut state, shard, cx));
        post.expect("a step").iter().zip(direction).map(|(post, x)| post * x).sum()
    };
    (0..runs).map(|_| update()).collect()
}

/// CHECK 02.k: worst-case neighbours, 100,000 single updates from one public state each, projected on the difference of their
/// gradients: no log-ratio of 20 bins is above epsilon by more than 4 standard errors. With half the noise, one is.
#[test]
fn check_02_k_single_updates_on_neighbouring_data_cannot_be_told_apart_by_more_than_epsilon() {
    let (runs, epsilon, delta) = (100_000, 1.0, 1e-5);
    // Features and labels of the agent: one record is long enough to be clipped, and its label turns.
    let world = |label: f64| {
        let points = (vec![8.0, 0.0, 0.2, -0.3, 0.1, 0.4], vec![label, 1.0, -1.0]);
        pair_problem(2, Loss::Logistic, &points)
    };
    let sigma = sottovoce_privacy::calibrate::noise_multiplier(
        sottovoce_privacy::calibrate::NoiseKind::Gaussian,
        epsilon,
        delta,
        1,
        &Tight,
    )
    .expect("in reach");
    for (norm, mechanism) in [
        (Norm::L1, (|noise_multiplier| Event::Laplace { noise_multiplier }) as fn(f64) -> Event),
        (Norm::L2, |noise_multiplier| Event::Gaussian { noise_multiplier }),
    ] {
        let multiplier = if norm == Norm::L1 { 1.0 / epsilon } else { sigma };
        let delta = if norm == Norm::L1 { 0.0 } else { delta };
        let sample = |label: f64, factor: f64, seed: u64| {
            projected(&world(label), norm, mechanism(factor * multiplier), &[1.0, 0.0], runs, seed)
        };
        let found = excess([&sample(1.0, 1.0, 1), &sample(-1.0, 1.0, 2)], epsilon, delta);
        assert!(found <= 4.0, "{norm:?}: {found} standard errors above epsilon");
        if norm == Norm::L1 {
            let halved = excess([&sample(1.0, 0.5, 3), &sample(-1.0, 0.5, 4)], epsilon, delta);
            assert!(halved > 4.0, "half the noise is not seen: {halved}");
        }
    }
}

/// Rows that are not finite, or beyond the bound, count as something harmless: the course of a run must not tell of them.
#[test]
fn a_record_that_is_no_record_stops_nobody_and_moves_no_more_than_another() {
    for bad in [f64::NAN, f64::INFINITY, f64::MAX, 1e3] {
        let points = |x: f64| (vec![x, 1.0, 0.2, -0.3, 0.1, 0.4], vec![1.0, 1.0, -1.0]);
        let [(a, sensitivity), (b, _)] = [0.5, bad].map(|x| {
            let problem = pair_problem(2, Loss::Logistic, &points(x));
            let config = PrivateCoordinateDescentConfig { clip: 0.7, ..config(&problem) };
            let algorithm = PrivateCoordinateDescent::new(config).expect("good parameters");
            mean_gradient(&algorithm, Norm::L2, &problem, &[0.3, -0.2])
        });
        let difference: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
        assert!(Norm::L2.of(&difference) <= sensitivity * (1.0 + 1e-9), "{bad}: {a:?} {b:?}");
        let [(a, sensitivity), (b, _)] =
            [0.5, bad].map(|x| warm_model(0.1, &pair_problem(2, Loss::Logistic, &points(x))));
        let difference: Vec<f64> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
        assert!(Norm::L2.of(&difference) <= sensitivity, "{bad}: {a:?} {b:?} above {sensitivity}");
    }
}

#[test]
fn updates_begin_when_the_wakes_of_propagation_are_over() {
    let problem = random_problem(6, 9, 3, Loss::Logistic);
    let warm = WarmStart { regularization: 0.5, radius: 1.0, trade_off: 2.0, wakes: 3 };
    let config = PrivateCoordinateDescentConfig { warm: Some(warm), ..config(&problem) };
    let algorithm = PrivateCoordinateDescent::new(config).expect("good parameters");
    let update = Event::Gaussian { noise_multiplier: 5.0 };
    let steps = vec![Event::GammaNorm { noise_multiplier: 3.0 }, update, update];
    let plan = Arc::new(Plan::new(steps, 100.0, 1e-3, &Sum).expect("a large budget"));
    for (wakes, released) in [(3, 1), (4, 2), (5, 3), (9, 3)] {
        let (_, gates, _) = run(&algorithm, &problem, &plan, wakes);
        assert_eq!(gates[0].ledger().releases(), released, "after {wakes} wakes");
    }
}
