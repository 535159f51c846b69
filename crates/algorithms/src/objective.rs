//! The objective of Bellet et al. (2018), equation (2), its gradient and its constants.
//!
//! Q(Theta) = 1/2 sum_{i<j} W_ij |Theta_i - Theta_j|^2 + mu sum_i D_ii c_i L_i(Theta_i)
//!
//! [grad Q]_i = D_ii (Theta_i + mu c_i grad L_i(Theta_i)) - sum_{j in N_i} W_ij Theta_j
//!
//! | symbol | function |
//! |---|---|
//! | L_i, its gradient, its Hessian | [`local_value`], [`local_gradient`], [`local_hessian`] |
//! | L_i^loc, smoothness of L_i | [`local_smoothness`] |
//! | sigma_i^loc, strong convexity of L_i | [`local_strong_convexity`], a lower bound |
//! | Q, [grad Q]_i | [`value`], [`gradient_block`] |
//! | mean of L_i, where all learn one model | [`common_value`] |
//! | L_i = D_ii (1 + mu c_i L_i^loc) | [`block_smoothness`] |
//! | sigma, strong convexity of Q | [`strong_convexity`], a lower bound |
//! | 1 - sigma / (n L_max) | [`proposition_1_rate`] |
//!
//! An agent without data has L_i = 0. An isolated agent has D_ii = 0, so every term of Q that touches it vanishes.
//! Every function here costs as much as reading the data it names and the edges once; the Gram matrices of the smoothness
//! constants cost a factor of min(m_i, p) more.

use crate::cholesky;
use crate::vector::{add_scaled, distance_squared, dot, norm};
use crate::{Points, Problem, Shard};
use sottovoce_core::{Coin, PeerId, Rows};

/// What the estimate of the largest eigenvalue is multiplied by, because power iteration approaches it from below.
const EIGENVALUE_MARGIN: f64 = 1.01;

/// Power iteration ends when one more step gains less than this fraction. With a relative gap g to the next
/// eigenvalue the remaining error is at most min(g, 1e-5 / 2g) <= 0.23%, which the margin covers.
const POWER_GAIN_MIN: f64 = 1e-5;

/// What a candidate that turns out to be no bound is multiplied by.
const BOUND_RAISE: f64 = 1.1;

/// Power iteration ends after this many steps in any case.
const POWER_STEPS_MAX: usize = 10_000;

/// L_i(theta) = (1/m_i) sum_k l(theta; x_k, y_k) + lambda_i |theta|^2; zero without data.
pub fn local_value(shard: &Shard<'_>, theta: &[f64]) -> f64 {
    if shard.points.is_empty() {
        return 0.0;
    }
    let sum: f64 = shard.points.iter().map(|(x, y)| shard.loss.value(dot(x, theta), y)).sum();
    sum / shard.points.len() as f64 + shard.regularization * dot(theta, theta)
}

/// (1/n) sum_i L_i(theta) over the n agents that have data: how good one model is for all. Zero where nobody has any.
pub fn common_value(problem: &Problem, theta: &[f64]) -> f64 {
    let values = agents(problem)
        .map(|agent| problem.shard(agent))
        .filter(|shard| !shard.points.is_empty())
        .map(|shard| local_value(&shard, theta));
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

/// grad L_i(theta), into `out`; for the hinge, a subgradient.
pub fn local_gradient(shard: &Shard<'_>, theta: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    if shard.points.is_empty() {
        return;
    }
    let share = 1.0 / shard.points.len() as f64;
    for (x, y) in shard.points.iter() {
        add_scaled(out, share * shard.loss.slope(dot(x, theta), y), x);
    }
    add_scaled(out, 2.0 * shard.regularization, theta);
}

/// The Hessian of L_i at theta, p x p and symmetric, into `out`. Where the slope of the loss has a kink, one of the
/// generalized Hessians.
pub fn local_hessian(shard: &Shard<'_>, theta: &[f64], out: &mut [f64]) {
    let p = shard.points.dimension;
    out.fill(0.0);
    if shard.points.is_empty() {
        return;
    }
    let share = 1.0 / shard.points.len() as f64;
    let curvature = shard.points.iter().map(|(x, y)| share * shard.loss.curvature(dot(x, theta), y));
    add_weighted_gram(shard.points, curvature, out);
    for row in 0..p {
        out[row * p + row] += 2.0 * shard.regularization;
        for column in 0..row {
            out[column * p + row] = out[row * p + column];
        }
    }
}

/// Adds sum_k s_k x_k x_k^T to the lower triangle of the p x p matrix `out`.
pub(crate) fn add_weighted_gram(points: Points<'_>, weights: impl Iterator<Item = f64>, out: &mut [f64]) {
    let p = points.dimension;
    let mut weighted = points.features.chunks_exact(p).zip(weights).filter(|(_, weight)| *weight != 0.0);
    // Four points at a time, so that the matrix is read and written once for all of them.
    while let Some(first) = weighted.next() {
        let idle = (first.0, 0.0);
        let four =
            [first, weighted.next().unwrap_or(idle), weighted.next().unwrap_or(idle), weighted.next().unwrap_or(idle)];
        for row in 0..p {
            let s = four.map(|(x, weight)| weight * x[row]);
            let columns = four.map(|(x, _)| &x[..=row]);
            for (column, entry) in out[row * p..][..=row].iter_mut().enumerate() {
                *entry += (s[0] * columns[0][column] + s[1] * columns[1][column])
                    + (s[2] * columns[2][column] + s[3] * columns[3][column]);
            }
        }
    }
}

/// L_i^loc, an upper bound on the smoothness of L_i; nothing for a loss that is not smooth.
pub fn local_smoothness(shard: &Shard<'_>) -> Option<f64> {
    let loss = shard.loss.smoothness()?;
    if shard.points.is_empty() {
        return Some(0.0);
    }
    Some(loss * gram_largest(shard.points) / shard.points.len() as f64 + 2.0 * shard.regularization)
}

/// A lower bound on sigma_i^loc, the strong convexity of L_i: 2 lambda_i, whatever the loss.
pub fn local_strong_convexity(shard: &Shard<'_>) -> f64 {
    2.0 * shard.regularization
}

/// An upper bound on the largest eigenvalue of X^T X, by power iteration on the smaller Gram matrix.
fn gram_largest(points: Points<'_>) -> f64 {
    let (m, p) = (points.len(), points.dimension);
    let size = m.min(p);
    let mut gram = vec![0.0; size * size];
    if m <= p {
        for (row, (x, _)) in points.iter().enumerate() {
            for (column, (other, _)) in points.iter().take(row + 1).enumerate() {
                gram[row * size + column] = dot(x, other);
            }
        }
    } else {
        add_weighted_gram(points, std::iter::repeat_n(1.0, m), &mut gram);
    }
    for row in 0..size {
        for column in 0..row {
            gram[column * size + row] = gram[row * size + column];
        }
    }
    let trace: f64 = (0..size).map(|k| gram[k * size + k]).sum();

    // The starting direction is arbitrary but fixed; it must not be orthogonal to the answer.
    let mut coin = Coin::new(0, 0, 0);
    let mut at: Vec<f64> = (0..size).map(|_| 0.5 + coin.unit()).collect();
    let mut image = vec![0.0; size];
    let mut estimate = 0.0;
    for _ in 0..POWER_STEPS_MAX {
        let length = norm(&at);
        if length == 0.0 {
            break;
        }
        at.iter_mut().for_each(|value| *value /= length);
        for (value, row) in image.iter_mut().zip(gram.chunks_exact(size)) {
            *value = dot(row, &at);
        }
        let before = estimate;
        estimate = dot(&at, &image);
        std::mem::swap(&mut at, &mut image);
        if estimate - before <= POWER_GAIN_MIN * estimate {
            break;
        }
    }
    // Where the start was nearly orthogonal to the answer, the iteration has stopped at a smaller eigenvalue. So a bound is
    // taken only when it is one: bound I - G must be positive definite. The trace is one too, exact for a single point.
    let mut bound = EIGENVALUE_MARGIN * estimate.max(trace / size as f64);
    while bound < trace && !exceeds_spectrum(bound, &gram, size) {
        bound *= BOUND_RAISE;
    }
    bound.min(trace)
}

/// Whether every eigenvalue of a symmetric matrix is below `bound`.
fn exceeds_spectrum(bound: f64, matrix: &[f64], size: usize) -> bool {
    let mut rest: Vec<f64> = matrix.iter().map(|entry| -entry).collect();
    (0..size).for_each(|k| rest[k * size + k] += bound);
    cholesky::factor(&mut rest, size).is_ok()
}

/// Q(Theta), one row per agent.
pub fn value(problem: &Problem, theta: &Rows) -> f64 {
    let graph: f64 = problem
        .graph
        .edges()
        .map(|(a, b, weight)| weight * distance_squared(theta.row(a.index()), theta.row(b.index())))
        .sum();
    let data: f64 = agents(problem)
        .map(|agent| {
            let shard = problem.shard(agent);
            let degree = problem.graph.peers(agent).weighted_degree();
            if degree == 0.0 {
                return 0.0;
            }
            degree * shard.confidence * local_value(&shard, theta.row(agent.index()))
        })
        .sum();
    0.5 * graph + problem.trade_off * data
}

/// [grad Q]_i, into `out`.
pub fn gradient_block(problem: &Problem, agent: PeerId, theta: &Rows, out: &mut [f64]) {
    let shard = problem.shard(agent);
    let peers = problem.graph.peers(agent);
    let degree = peers.weighted_degree();
    let own = theta.row(agent.index());
    local_gradient(&shard, own, out);
    let scale = problem.trade_off * shard.confidence;
    for (out, own) in out.iter_mut().zip(own) {
        *out = degree * (own + scale * *out);
    }
    for edge in peers.iter() {
        add_scaled(out, -edge.weight, theta.row(edge.peer.index()));
    }
}

/// L_i = D_ii (1 + mu c_i L_i^loc), the smoothness of Q in block i; nothing for a loss that is not smooth.
pub fn block_smoothness(problem: &Problem, agent: PeerId) -> Option<f64> {
    let shard = problem.shard(agent);
    let local = local_smoothness(&shard)?;
    Some(problem.graph.peers(agent).weighted_degree() * (1.0 + problem.trade_off * shard.confidence * local))
}

/// sigma >= mu min_i D_ii c_i sigma_i^loc, over the agents that are not isolated. Zero as soon as one of them has no
/// data, although Q may still be strongly convex then.
pub fn strong_convexity(problem: &Problem) -> f64 {
    let least = agents(problem)
        .map(|agent| (problem.shard(agent), problem.graph.peers(agent).weighted_degree()))
        .filter(|(_, degree)| *degree > 0.0)
        .map(|(shard, degree)| degree * shard.confidence * local_strong_convexity(&shard))
        .fold(f64::INFINITY, f64::min);
    if least.is_finite() { problem.trade_off * least } else { 0.0 }
}

/// 1 - sigma / (n L_max): by this factor E[Q - Q*] shrinks at least with each wake of coordinate descent
/// [2018, Proposition 1]. Nothing for a loss that is not smooth.
pub fn proposition_1_rate(problem: &Problem) -> Option<f64> {
    let mut largest = 0.0f64;
    for agent in agents(problem) {
        largest = largest.max(block_smoothness(problem, agent)?);
    }
    if largest == 0.0 {
        return Some(1.0);
    }
    Some(1.0 - strong_convexity(problem) / (problem.agents() as f64 * largest))
}

/// Every agent.
pub(crate) fn agents(problem: &Problem) -> impl Iterator<Item = PeerId> + use<> {
    (0..problem.agents() as u32).map(PeerId)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ALL, SMOOTH, everyone, normal, normals, random_problem};
    use crate::{Dataset, Loss, Regularization};
    use sottovoce_core::Graph;

    /// In two dimensions the largest eigenvalue has a closed form. Among so many shards some have it nearly orthogonal to the
    /// direction in which power iteration starts.
    #[test]
    fn the_smoothness_is_never_below_the_truth_and_hardly_above() {
        let mut coin = Coin::new(8, 0, 0);
        for _ in 0..20_000 {
            let features = normals(&mut coin, 8);
            let labels = [1.0; 4];
            let points = Points { dimension: 2, features: &features, labels: &labels };
            let sum = |f: fn(&[f64]) -> f64| points.iter().map(|(x, _)| f(x)).sum::<f64>();
            let (a, b, c) = (sum(|x| x[0] * x[0]), sum(|x| x[0] * x[1]), sum(|x| x[1] * x[1]));
            let truth = (a + c) / 2.0 + ((a - c) * (a - c) / 4.0 + b * b).sqrt();
            let bound = gram_largest(points);
            assert!(bound >= truth && bound <= 1.13 * truth, "{bound} for {truth}");
        }
    }

    /// Agents count alike, however many points they have, and those without data not at all.
    #[test]
    fn a_common_model_is_worth_the_mean_of_the_agents_own_losses() {
        let mut data = Dataset::new(1);
        data.push_agent(&[1.0, 1.0, 1.0], &[1.0, 1.0, 1.0]);
        data.push_agent(&[], &[]);
        data.push_agent(&[1.0], &[4.0]);
        let graph = Graph::complete(3).expect("three agents");
        let regularization = Regularization::Constant(0.5);
        let problem = Problem { data, graph, loss: Loss::Squared, regularization, trade_off: 1.0, points_max: 1.0 };
        let loss = |y: f64| problem.loss.value(2.0, y);
        assert_eq!(common_value(&problem, &[2.0]), (loss(1.0) + loss(4.0)) / 2.0 + 0.5 * 4.0);
    }

    /// |x| <= 700 along the model: exp(700) is near the largest f64.
    #[test]
    fn check_00_b_gradients_match_differences() {
        let mut coin = Coin::new(3, 0, 0);
        for loss in ALL {
            for trial in 0..100 {
                let y = if loss.is_classification() { [-1.0, 1.0][trial % 2] } else { normal(&mut coin) };
                let dot = match trial {
                    0..10 => [-700.0, 700.0][trial / 5],
                    _ => 3.0 * normal(&mut coin),
                };
                // No difference can be taken across a kink.
                let kinks: &[f64] = match loss {
                    Loss::Hinge => &[1.0],
                    Loss::SmoothedHinge => &[0.5, 1.0],
                    _ => &[],
                };
                if kinks.iter().any(|kink| (y * dot - kink).abs() < 1e-5) {
                    continue;
                }
                let h = 1e-6 * dot.abs().max(1.0);
                let difference = (loss.value(dot + h, y) - loss.value(dot - h, y)) / (2.0 * h);
                let slope = loss.slope(dot, y);
                assert!(
                    (difference - slope).abs() <= 1e-6 * slope.abs().max(1e-3),
                    "{loss:?} {dot} {y}: {difference} {slope}"
                );
                let bent = (loss.slope(dot + h, y) - loss.slope(dot - h, y)) / (2.0 * h);
                let curvature = loss.curvature(dot, y);
                assert!(
                    (bent - curvature).abs() <= 1e-6 * curvature.max(1e-2),
                    "{loss:?} {dot} {y}: {bent} {curvature}"
                );
            }
        }
    }

    #[test]
    fn check_00_b_local_and_whole_gradients_match_differences() {
        let (n, p) = (8, 5);
        let h = 1e-6;
        for loss in SMOOTH {
            let problem = random_problem(5, n, p, loss);
            let mut coin = Coin::new(4, 0, 0);
            for trial in 0..100 {
                let mut theta = Rows::zeros(n, p);
                theta.values_mut().copy_from_slice(&normals(&mut coin, n * p));
                let agent = PeerId(trial % n as u32);
                let shard = problem.shard(agent);
                let mut whole = vec![0.0; p];
                let mut local = vec![0.0; p];
                gradient_block(&problem, agent, &theta, &mut whole);
                local_gradient(&shard, theta.row(agent.index()), &mut local);
                for k in 0..p {
                    let mut sides = [0.0; 4];
                    for (side, sign) in [1.0, -1.0].into_iter().enumerate() {
                        let mut moved = theta.clone();
                        moved.row_mut(agent.index())[k] += sign * h;
                        sides[side] = value(&problem, &moved);
                        sides[side + 2] = local_value(&shard, moved.row(agent.index()));
                    }
                    let differences = [(sides[0] - sides[1]) / (2.0 * h), (sides[2] - sides[3]) / (2.0 * h)];
                    for (difference, gradient) in differences.into_iter().zip([whole[k], local[k]]) {
                        // A value of about 100 leaves 1e-14 x 100 / h in a difference.
                        let error = (difference - gradient).abs();
                        assert!(error <= 1e-6 * gradient.abs().max(1.0), "{loss:?} {difference} {gradient}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_hessian_is_the_derivative_of_the_gradient() {
        let p = 5;
        for loss in SMOOTH {
            let problem = random_problem(6, 6, p, loss);
            let shard = problem.shard(PeerId(2));
            let mut coin = Coin::new(9, 0, 0);
            let theta = normals(&mut coin, p);
            let mut hessian = vec![0.0; p * p];
            local_hessian(&shard, &theta, &mut hessian);
            for k in 0..p {
                let mut sides = [vec![0.0; p], vec![0.0; p]];
                for (out, sign) in sides.iter_mut().zip([1.0, -1.0]) {
                    let mut moved = theta.clone();
                    moved[k] += sign * 1e-6;
                    local_gradient(&shard, &moved, out);
                }
                for j in 0..p {
                    let difference = (sides[0][j] - sides[1][j]) / 2e-6;
                    assert!((difference - hessian[j * p + k]).abs() < 1e-7, "{loss:?}");
                }
            }
        }
    }

    #[test]
    fn check_00_c_smoothness_bounds_the_change_of_the_gradient() {
        for loss in SMOOTH {
            // More points than coordinates, and fewer: both Gram matrices.
            for p in [3, 30] {
                let problem = random_problem(7, 8, p, loss);
                let mut coin = Coin::new(8, 0, 0);
                let (mut near, mut far) = (vec![0.0; p], vec![0.0; p]);
                let mut tightest = 0.0f64;
                for trial in 0..1000u32 {
                    let shard = problem.shard(PeerId(trial % 8));
                    let smoothness = local_smoothness(&shard).expect("a smooth loss");
                    let a = normals(&mut coin, p);
                    let mut b = normals(&mut coin, p);
                    if trial % 2 == 0 {
                        // Along the gradient's own change, where it is steepest: a step of power iteration.
                        local_gradient(&shard, &a, &mut near);
                        local_gradient(&shard, &b, &mut far);
                        (0..p).for_each(|k| b[k] = a[k] + 1e-3 * (near[k] - far[k]));
                    }
                    local_gradient(&shard, &a, &mut near);
                    local_gradient(&shard, &b, &mut far);
                    let (change, distance) = (distance_squared(&near, &far).sqrt(), distance_squared(&a, &b).sqrt());
                    assert!(
                        change <= smoothness * distance * (1.0 + 1e-9),
                        "{loss:?} {change} {smoothness} {distance}"
                    );
                    if smoothness * distance > 0.0 {
                        tightest = tightest.max(change / (smoothness * distance));
                    }
                }
                assert!(loss != Loss::Squared || tightest > 0.9, "the bound is far too large: {tightest}");
            }
        }
    }

    #[test]
    fn power_iteration_finds_a_known_eigenvalue() {
        // X^T X = diag(9, 4, 4): the largest is 9, and each smaller Gram matrix has it too.
        for (features, p) in [(vec![3.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 2.0], 3), (vec![0.0, 3.0, 0.0, 0.0], 4)] {
            let labels = vec![1.0; features.len() / p];
            let points = Points { dimension: p, features: &features, labels: &labels };
            let largest = gram_largest(points);
            assert!((9.0..=9.0 * 1.011).contains(&largest), "{largest}");
        }
    }

    #[test]
    fn agents_without_data_or_without_neighbours_add_nothing() {
        let problem = random_problem(1, 6, 3, Loss::Logistic);
        let mut theta = Rows::zeros(6, 3);
        theta.values_mut().copy_from_slice(&normals(&mut Coin::new(2, 0, 0), 18));
        let before = value(&problem, &theta);
        theta.row_mut(4).fill(100.0);
        theta.row_mut(5).fill(-100.0);
        assert_eq!(value(&problem, &theta), before);
        let mut block = [1.0; 3];
        gradient_block(&problem, PeerId(4), &theta, &mut block);
        assert_eq!(block, [0.0; 3]);
        let empty = problem.shard(PeerId(1));
        assert_eq!((local_value(&empty, theta.row(1)), local_smoothness(&empty)), (0.0, Some(0.0)));
        assert_eq!(block_smoothness(&problem, PeerId(1)), Some(problem.graph.peers(PeerId(1)).weighted_degree()));
        assert_eq!(block_smoothness(&problem, PeerId(4)), Some(0.0));
    }

    #[test]
    fn the_rate_of_proposition_1_by_hand() {
        // Two agents, one edge of weight 2, x = 3, squared loss: L^loc = 2 x 9 + 2 lambda, D = 2, c = 1.
        let mut data = Dataset::new(1);
        data.push_agent(&[3.0], &[1.0]);
        data.push_agent(&[3.0], &[2.0]);
        let problem = Problem {
            data,
            graph: Graph::from_edges(2, &[(0, 1, 2.0)]).expect("a graph"),
            loss: Loss::Squared,
            regularization: Regularization::Constant(0.5),
            trade_off: 0.1,
            points_max: 1.0,
        };
        let block = 2.0 * (1.0 + 0.1 * (18.0 + 1.0));
        assert!(
            everyone(&problem).all(|agent| (block_smoothness(&problem, agent).expect("smooth") - block).abs() < 1e-12)
        );
        let sigma = 0.1 * 2.0 * 1.0;
        assert!((strong_convexity(&problem) - sigma).abs() < 1e-12);
        let rate = proposition_1_rate(&problem).expect("smooth");
        assert!((rate - (1.0 - sigma / (2.0 * block))).abs() < 1e-12);
        assert_eq!(proposition_1_rate(&Problem { loss: Loss::Hinge, ..problem }), None);
    }
}
