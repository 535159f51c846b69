//! The central solver against its own gradient, its limits and its other ways.

use super::*;
use crate::Regularization;
use crate::objective::{gradient_block, local_gradient, local_smoothness, strong_convexity, value};
use crate::reference::local::solitary_models;
use crate::testing::{SMOOTH, everyone, normals, random_problem};
use crate::vector::{largest, largest_difference};

#[test]
fn the_gradient_vanishes_at_the_minimum() {
    for loss in SMOOTH {
        for (seed, trade_off) in [(1, 0.1), (2, 1.0), (3, 10.0)] {
            let regularization = Regularization::Constant(1e-3);
            let problem = Problem { trade_off, regularization, ..random_problem(seed, 20, 6, loss) };
            let models = minimum(&problem);
            let mut gradient = vec![0.0; 6];
            for agent in everyone(&problem) {
                gradient_block(&problem, agent, &models, &mut gradient);
                assert!(largest(&gradient) < 1e-12, "{loss:?} {trade_off}: {}", largest(&gradient));
            }
            // Isolated agents: alone with data, and alone without.
            assert_eq!(models.row(18), solitary_model(&problem.shard(PeerId(18))));
            assert_eq!(models.row(19), [0.0; 6]);
        }
    }
}

#[test]
fn all_schemes_find_the_same_minimum() {
    for loss in SMOOTH {
        for trade_off in [0.1, 1.0, 10.0] {
            let regularization = Regularization::Constant(1e-3);
            let problem = Problem { trade_off, regularization, ..random_problem(4, 30, 10, loss) };
            let heard = LastHeard::new();
            let system = System::new(&problem, &[], &heard);
            let dense = solve_smooth_by(&system, Scheme::Dense);
            for scheme in [Scheme::Blocks, Scheme::Diagonal] {
                let error = largest_difference(&dense, &solve_smooth_by(&system, scheme));
                assert!(error < 1e-10, "{loss:?} {trade_off} {scheme:?}: {error}");
            }
        }
    }
}

#[test]
fn check_00_a_a_large_trade_off_leaves_everyone_alone() {
    for loss in SMOOTH {
        let problem = Problem { trade_off: 1e8, ..random_problem(5, 12, 4, loss) };
        let (models, solitary) = (minimum(&problem), solitary_models(&problem));
        for agent in everyone(&problem).filter(|agent| problem.data.size(*agent) > 0) {
            let distance = distance_squared(models.row(agent.index()), solitary.row(agent.index())).sqrt();
            assert!(distance < 1e-3, "{loss:?} {agent:?}: {distance}");
        }
    }
}

#[test]
fn check_00_a_a_small_trade_off_makes_one_weighted_pooled_model() {
    for loss in SMOOTH {
        // Once by the whole Hessian's factor, once by conjugate gradients.
        for (n, p) in [(12, 4), (40, 8)] {
            let problem = Problem { trade_off: 1e-8, ..random_problem(6, n, p, loss) };
            let pooled = weighted_pooled_minimum(&problem);
            let models = minimum(&problem);
            for agent in everyone(&problem).filter(|agent| !problem.graph.peers(*agent).is_empty()) {
                let error = largest_difference(models.row(agent.index()), &pooled);
                assert!(error < 1e-4, "{loss:?} {agent:?}: {error}");
            }
        }
    }
}

/// argmin sum_i D_ii c_i L_i(theta), by gradient descent, which shares nothing with the solver under test.
fn weighted_pooled_minimum(problem: &Problem) -> Vec<f64> {
    let p = problem.dimension();
    let weight = |agent| problem.graph.peers(agent).weighted_degree() * problem.shard(agent).confidence;
    let smoothness: f64 = everyone(problem)
        .map(|agent| weight(agent) * local_smoothness(&problem.shard(agent)).expect("a smooth loss"))
        .sum();
    let mut theta = vec![0.0; p];
    let (mut gradient, mut one) = (vec![0.0; p], vec![0.0; p]);
    for _ in 0..100_000 {
        gradient.fill(0.0);
        for agent in everyone(problem) {
            local_gradient(&problem.shard(agent), &theta, &mut one);
            add_scaled(&mut gradient, weight(agent), &one);
        }
        if largest(&gradient) < 1e-10 {
            return theta;
        }
        add_scaled(&mut theta, -1.0 / smoothness, &gradient);
    }
    panic!("gradient descent did not converge: {}", largest(&gradient));
}

#[test]
fn nothing_near_the_hinge_minimum_is_lower() {
    let mut coin = Coin::new(7, 0, 0);
    for seed in 0..5 {
        let (n, p) = (10, 4);
        let problem = random_problem(seed, n, p, Loss::Hinge);
        let models = minimum(&problem);
        let least = value(&problem, &models);
        for trial in 0..300 {
            let size = [1e-1, 1e-3, 1e-5][trial % 3];
            let mut near = models.clone();
            add_scaled(near.values_mut(), size, &normals(&mut coin, n * p));
            assert!(value(&problem, &near) >= least - 1e-13, "{seed} {size}");
        }
    }
}

#[test]
fn survivors_settle_around_what_they_last_heard() {
    let (n, p) = (14, 3);
    let dead = [PeerId(2), PeerId(5)];
    for loss in SMOOTH {
        let problem = random_problem(8, n, p, loss);
        let mut coin = Coin::new(9, 0, 0);
        let mut heard = LastHeard::new();
        for gone in dead {
            for edge in problem.graph.peers(gone).iter().skip(1) {
                heard.insert((edge.peer, gone), normals(&mut coin, p));
            }
        }
        let models = minimum_of_survivors(&problem, &dead, &heard);
        for agent in everyone(&problem).filter(|agent| !dead.contains(agent)) {
            let (shard, peers) = (problem.shard(agent), problem.graph.peers(agent));
            let mut gradient = vec![0.0; p];
            local_gradient(&shard, models.row(agent.index()), &mut gradient);
            let weight = problem.trade_off * shard.confidence;
            let own = models.row(agent.index());
            (0..p).for_each(|k| gradient[k] = peers.weighted_degree() * (own[k] + weight * gradient[k]));
            for edge in peers.iter() {
                match (dead.contains(&edge.peer), heard.get(&(agent, edge.peer))) {
                    (false, _) => add_scaled(&mut gradient, -edge.weight, models.row(edge.peer.index())),
                    (true, Some(last)) => add_scaled(&mut gradient, -edge.weight, last),
                    (true, None) => {}
                }
            }
            assert!(largest(&gradient) < 1e-12, "{loss:?} {agent:?}: {gradient:?}");
        }
        assert!(dead.iter().all(|gone| models.row(gone.index()) == [0.0; 3]));
    }
    let problem = random_problem(8, n, p, Loss::Hinge);
    let all = minimum(&problem);
    let heard: LastHeard =
        problem.graph.peers(PeerId(2)).iter().map(|edge| ((edge.peer, PeerId(2)), all.row(2).to_vec())).collect();
    let rest = minimum_of_survivors(&problem, &[PeerId(2)], &heard);
    for agent in everyone(&problem).filter(|agent| *agent != PeerId(2)) {
        let error = largest_difference(all.row(agent.index()), rest.row(agent.index()));
        assert!(error < 1e-9, "an agent frozen at its optimum moves nobody: {error}");
    }
}

#[test]
fn the_smallest_curvature_is_an_eigenvalue_and_no_smaller_one_exists() {
    let (n, p) = (10, 4);
    let problem = random_problem(13, n, p, Loss::Squared);
    let least = smallest_curvature(&problem, &Rows::zeros(n, p));
    assert!(least >= strong_convexity(&problem) && least > 0.0, "{least}");
    let heard = LastHeard::new();
    let system = System::new(&problem, &[], &heard);
    let curvature: Vec<f64> = with_share(&system).collect();
    for (shift, positive) in [(0.999, true), (1.001, false)] {
        let mut hessian = vec![0.0; system.unknowns() * system.unknowns()];
        build_hessian(&system, &curvature, &mut hessian);
        (0..system.unknowns()).for_each(|k| hessian[k * system.unknowns() + k] -= shift * least);
        assert_eq!(cholesky::factor(&mut hessian, system.unknowns()).is_ok(), positive, "{shift}");
    }
}

/// For the squared loss: 2 w_i / m_i for each point.
fn with_share<'a>(system: &'a System<'a>) -> impl Iterator<Item = f64> + 'a {
    system.members.iter().flat_map(|member| {
        let m = member.shard.points.len();
        std::iter::repeat_n(2.0 * member.weight / m as f64, m)
    })
}

#[test]
fn a_component_without_data_stays_at_zero() {
    let mut problem = random_problem(10, 12, 3, Loss::Logistic);
    let mut edges: Vec<_> = problem.graph.edges().map(|(a, b, weight)| (a.0, b.0, weight)).collect();
    edges.retain(|(a, b, _)| *a != 1 && *b != 1);
    edges.push((1, 11, 1.0));
    problem.graph = sottovoce_core::Graph::from_edges(12, &edges).expect("a graph");
    let models = minimum(&problem);
    assert_eq!((models.row(1), models.row(11)), (&[0.0; 3][..], &[0.0; 3][..]));
    assert!(largest(models.row(0)) > 0.0);
}

/// The size that a report must solve in passing: about 0.2 s.
#[test]
fn ten_thousand_unknowns() {
    let (n, p) = (100, 100);
    for loss in SMOOTH {
        let mut problem = random_problem(11, n, p, loss);
        let mut coin = Coin::new(12, 0, 0);
        let mut data = crate::Dataset::new(p);
        for agent in 0..n {
            let m = 10 + (agent * 90) / (n - 1);
            let labels: Vec<f64> = (0..m).map(|_| if coin.unit() < 0.5 { -1.0 } else { 1.0 }).collect();
            data.push_agent(&normals(&mut coin, m * p), &labels);
        }
        problem.data = data;
        problem.points_max = 100.0;
        problem.regularization = Regularization::OneOverPoints;
        let models = minimum(&problem);
        let mut gradient = vec![0.0; p];
        for agent in everyone(&problem) {
            gradient_block(&problem, agent, &models, &mut gradient);
            assert!(largest(&gradient) < 1e-10, "{loss:?} {agent:?}: {}", largest(&gradient));
        }
    }
}
