//! Model propagation (Vanhaesebrouck et al. 2017), solved centrally: the closed form and the synchronous iteration.
//!
//! Q_MP(Theta) = 1/2 ( sum_{i<j} W_ij |Theta_i - Theta_j|^2 + mu sum_i D_ii c_i |Theta_i - Theta_i^sol|^2 )
//!
//! Its minimum solves (D - W + mu D C) Theta = mu D C Theta^sol, which is the paper's
//! Theta = abar (I - abar (I - C) - a P)^-1 C Theta^sol with a = 1 / (1 + mu), abar = 1 - a, multiplied by D / a: symmetric,
//! and positive definite because every c_i > 0. An isolated agent keeps its solitary model.

use crate::Problem;
use crate::cholesky;
use crate::objective::agents;
use crate::reference::newton;
use crate::vector::{add_scaled, largest_difference};
use sottovoce_core::{PeerId, Rows};

/// Up to this many agents the matrix is factored; beyond, each coordinate is solved by conjugate gradients.
const DENSE_AGENTS_MAX: usize = 1_500;

/// The share of the neighbours in an agent's model, a / (a + abar c_i), and of its solitary model, one minus that.
pub fn neighbours_share(trade_off: f64, confidence: f64) -> f64 {
    // a = 1 / (1 + mu), abar = mu / (1 + mu)
    1.0 / (1.0 + trade_off * confidence)
}

/// argmin Q_MP for given solitary models.
pub fn closed_form(problem: &Problem, solitary: &Rows) -> Rows {
    let (n, p) = (problem.agents(), problem.dimension());
    let mut models = solitary.clone();
    // mu D_ii c_i, and the diagonal of the matrix; an isolated agent's equation is Theta_i = Theta_i^sol.
    let degrees: Vec<f64> = agents(problem).map(|agent| problem.graph.peers(agent).weighted_degree()).collect();
    let holds: Vec<f64> = agents(problem)
        .zip(&degrees)
        .map(
            |(agent, degree)| {
                if *degree == 0.0 { 1.0 } else { problem.trade_off * degree * problem.shard(agent).confidence }
            },
        )
        .collect();
    for (model, hold) in models.values_mut().chunks_exact_mut(p).zip(&holds) {
        model.iter_mut().for_each(|value| *value *= hold);
    }
    let mut column = vec![0.0; n];
    if n <= DENSE_AGENTS_MAX {
        let mut factor = vec![0.0; n * n];
        cholesky::factor_regularized(&mut factor, n, |matrix| {
            matrix.fill(0.0);
            (0..n).for_each(|k| matrix[k * n + k] = degrees[k] + holds[k]);
            problem.graph.edges().for_each(|(a, b, weight)| matrix[b.index() * n + a.index()] = -weight);
        });
        for k in 0..p {
            (0..n).for_each(|i| column[i] = models.row(i)[k]);
            cholesky::solve(&factor, n, &mut column);
            (0..n).for_each(|i| models.row_mut(i)[k] = column[i]);
        }
        return models;
    }
    let mut solution = vec![0.0; n];
    let mut work = vec![0.0; newton::CG_WORK * n];
    for k in 0..p {
        (0..n).for_each(|i| column[i] = models.row(i)[k]);
        newton::conjugate_gradients(
            |v, image| {
                for i in 0..n {
                    let near: f64 = problem
                        .graph
                        .peers(PeerId(i as u32))
                        .iter()
                        .map(|edge| edge.weight * v[edge.peer.index()])
                        .sum();
                    image[i] = (degrees[i] + holds[i]) * v[i] - near;
                }
            },
            |r, z| (0..n).for_each(|i| z[i] = r[i] / (degrees[i] + holds[i])),
            &column,
            1e-14,
            10 * n,
            &mut solution,
            &mut work,
        );
        (0..n).for_each(|i| models.row_mut(i)[k] = solution[i]);
    }
    models
}

/// The synchronous iteration: all agents at once replace their models by the fixed-point equation
///
/// Theta_i = (a + abar c_i)^-1 ( a sum_j W_ij / D_ii Theta_j + abar c_i Theta_i^sol )
///
/// from their solitary models, until none moves by more than `step_min` or after `rounds_max` rounds.
pub fn synchronous(problem: &Problem, solitary: &Rows, step_min: f64, rounds_max: usize) -> Rows {
    let mut models = solitary.clone();
    let mut next = solitary.clone();
    for _ in 0..rounds_max {
        for agent in agents(problem) {
            let peers = problem.graph.peers(agent);
            if peers.is_empty() {
                continue;
            }
            let share = neighbours_share(problem.trade_off, problem.shard(agent).confidence);
            let degree = peers.weighted_degree();
            let out = next.row_mut(agent.index());
            out.iter_mut().zip(solitary.row(agent.index())).for_each(|(out, own)| *out = (1.0 - share) * own);
            for edge in peers.iter() {
                add_scaled(out, share * edge.weight / degree, models.row(edge.peer.index()));
            }
        }
        std::mem::swap(&mut models, &mut next);
        if largest_difference(models.values(), next.values()) <= step_min {
            break;
        }
    }
    models
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{everyone, normals, random_problem};
    use crate::{Dataset, Loss};
    use sottovoce_core::{Coin, Graph};

    fn random_models(seed: u64, n: usize, p: usize) -> Rows {
        let mut models = Rows::zeros(n, p);
        models.values_mut().copy_from_slice(&normals(&mut Coin::new(seed, 0, 0), n * p));
        models
    }

    #[test]
    fn check_01_b_the_closed_form_is_the_limit_of_the_synchronous_iteration() {
        for seed in 0..10 {
            for trade_off in [0.1, 1.0, 10.0] {
                let problem = Problem { trade_off, ..random_problem(seed, 15, 4, Loss::Logistic) };
                let solitary = random_models(seed, 15, 4);
                let exact = closed_form(&problem, &solitary);
                let limit = synchronous(&problem, &solitary, 1e-13, 100_000);
                let error = largest_difference(exact.values(), limit.values());
                assert!(error < 1e-8, "{seed} {trade_off}: {error}");
                assert_eq!(exact.row(13), solitary.row(13), "an isolated agent keeps its solitary model");
            }
        }
    }

    #[test]
    fn check_01_b_also_with_too_many_agents_for_a_dense_matrix() {
        let n = DENSE_AGENTS_MAX + 300;
        let mut data = Dataset::new(2);
        (0..n).for_each(|k| data.push_agent(&[1.0, 0.0].repeat(k % 4), &vec![1.0; k % 4]));
        let problem = Problem {
            data,
            graph: Graph::Ring { n: n as u32 },
            points_max: 4.0,
            ..random_problem(0, 5, 2, Loss::Logistic)
        };
        let solitary = random_models(1, n, 2);
        let exact = closed_form(&problem, &solitary);
        let limit = synchronous(&problem, &solitary, 1e-13, 100_000);
        let error = largest_difference(exact.values(), limit.values());
        assert!(error < 1e-8, "{error}");
    }

    #[test]
    fn check_01_c_with_full_confidence_and_no_trust_in_oneself_all_agree() {
        // points_max = 1/10 makes every confidence one, also of agents without data.
        let problem = Problem { trade_off: 1e-9, points_max: 0.1, ..random_problem(3, 12, 3, Loss::Logistic) };
        assert!(everyone(&problem).all(|agent| problem.shard(agent).confidence == 1.0));
        let solitary = random_models(4, 12, 3);
        let models = closed_form(&problem, &solitary);
        // The limit is the mean weighted by D_ii.
        let mut mean = vec![0.0; 3];
        let mut total = 0.0;
        for agent in everyone(&problem) {
            let degree = problem.graph.peers(agent).weighted_degree();
            add_scaled(&mut mean, degree, solitary.row(agent.index()));
            total += degree;
        }
        mean.iter_mut().for_each(|value| *value /= total);
        for agent in everyone(&problem).filter(|agent| !problem.graph.peers(*agent).is_empty()) {
            let error = largest_difference(models.row(agent.index()), &mean);
            assert!(error < 1e-6, "{agent:?}: {error}");
        }
    }
}
