//! Boosting with the loss of l1-AdaBoost (thesis, (2.4)), its objective over a graph, gradient, duality gap and constants.
//!
//! The points of an agent hold, instead of x, what K base predictors say about it: row i is (h_1(x_i), .., h_K(x_i)). With
//! the label y_i they are the margins A_ik = y_i h_k(x_i), and
//!
//! F_u(theta) = log sum_i exp(-[A_u theta]_i),   grad F_u = -A_u^T pi_u,   pi_u = softmax(-A_u theta)
//!
//! Q(Theta) = 1/2 sum_{u<v} W_uv |Theta_u - Theta_v|^2 + mu sum_u D_uu c_u F_u(Theta_u),   |Theta_u|_1 <= beta
//!
//! It is a log of a sum, not of a mean: F(0) = log m, and F is negative where all margins are large. An agent without
//! data has F = 0. The loss and the regularization of a [`Problem`] are not used here.
//!
//! The thesis writes M = sum_u d_u c_u F_u + lambda_1/2 sum w |theta_u - theta_v|^2. With mu = 1 / lambda_1 that is lambda_1 Q: the
//! same minimum, the same steps.
//!
//! | symbol | function |
//! |---|---|
//! | F_u, pi_u | [`log_sum`], [`softmax`], from the margins A_u theta |
//! | Q, [grad Q]_u | [`value`], [`gradient_block`] |
//! | max over the ball of <Theta_u - s, [grad Q]_u> | [`gap_block`]; over all agents [`gap`], an upper bound on Q - Q* |
//! | C = 4 beta^2 sum_u D_uu (mu c_u max\|A_u\|^2 + 1) | [`curvature`] |

use crate::kernel::{self, Arithmetic, Simd};
use crate::objective::agents;
use crate::vector::{distance_squared, dot};
use crate::{Points, Problem};
use sottovoce_core::{PeerId, Rows};

/// A theta: y_i sum_k theta_k h_k(x_i), one number per point.
pub fn margins<'a>(points: Points<'a>, theta: &'a [f64]) -> impl Iterator<Item = f64> + use<'a> {
    points.iter().map(move |(answers, label)| label * dot(answers, theta))
}

/// F = log sum_i exp(-margin_i), without overflow; zero without data.
pub fn log_sum(margins: &[f64]) -> f64 {
    let least = margins.iter().copied().fold(f64::INFINITY, f64::min);
    if margins.is_empty() {
        return 0.0;
    }
    let sum: f64 = margins.iter().map(|margin| libm::exp(least - margin)).sum();
    libm::log(sum) - least
}

/// pi_i = exp(-margin_i) / sum_j exp(-margin_j), into `out`.
pub fn softmax(margins: &[f64], out: &mut [f64]) {
    let least = margins.iter().copied().fold(f64::INFINITY, f64::min);
    let mut sum = 0.0;
    for (out, margin) in out.iter_mut().zip(margins) {
        *out = libm::exp(least - margin);
        sum += *out;
    }
    out.iter_mut().for_each(|share| *share /= sum);
}

/// out -= factor A^T pi: one pass over the margins. `shares` is pi, and is lost.
pub(crate) fn add_gradient(points: Points<'_>, factor: f64, shares: &mut [f64], out: &mut [f64]) {
    struct Add<'a>(Points<'a>, &'a [f64], &'a mut [f64]);
    impl Arithmetic for Add<'_> {
        type Output = ();
        #[inline(always)]
        fn run<S: Simd>(self, simd: S) {
            let Add(points, weights, out) = self;
            let p = points.dimension;
            kernel::add_weighted_rows(simd, weights.len(), |k| (weights[k], &points.features[k * p..][..p]), out);
        }
    }
    shares.iter_mut().zip(points.labels).for_each(|(share, label)| *share *= -factor * label);
    kernel::vectorized(Add(points, shares, out));
}

/// F_u(theta) from the data.
pub fn local_value(points: Points<'_>, theta: &[f64]) -> f64 {
    log_sum(&margins(points, theta).collect::<Vec<_>>())
}

/// Q(Theta), one row per agent.
pub fn value(problem: &Problem, theta: &Rows) -> f64 {
    let rows = |a: PeerId, b: PeerId| (theta.row(a.index()), theta.row(b.index()));
    let graph: f64 = problem
        .graph
        .edges()
        .map(|(a, b, weight)| {
            let (a, b) = rows(a, b);
            weight * distance_squared(a, b)
        })
        .sum();
    let data: f64 = agents(problem)
        .map(|agent| {
            let degree = problem.graph.peers(agent).weighted_degree();
            let shard = problem.shard(agent);
            if degree == 0.0 {
                0.0
            } else {
                degree * shard.confidence * local_value(shard.points, theta.row(agent.index()))
            }
        })
        .sum();
    0.5 * graph + problem.trade_off * data
}

/// [grad Q]_u = D_uu (Theta_u - mu c_u A_u^T pi_u) - sum_v W_uv Theta_v, into `out`.
pub fn gradient_block(problem: &Problem, agent: PeerId, theta: &Rows, out: &mut [f64]) {
    let (shard, peers) = (problem.shard(agent), problem.graph.peers(agent));
    let (own, degree) = (theta.row(agent.index()), peers.weighted_degree());
    out.iter_mut().zip(own).for_each(|(out, own)| *out = degree * own);
    for edge in peers.iter() {
        crate::vector::add_scaled(out, -edge.weight, theta.row(edge.peer.index()));
    }
    let margins: Vec<f64> = margins(shard.points, own).collect();
    let mut shares = vec![0.0; margins.len()];
    softmax(&margins, &mut shares);
    add_gradient(shard.points, problem.trade_off * degree * shard.confidence, &mut shares, out);
}

/// max over |s|_1 <= beta of <theta - s, g> = <theta, g> + beta |g|_infinity: what block u adds to the duality gap.
pub fn gap_block(radius: f64, theta: &[f64], gradient: &[f64]) -> f64 {
    dot(theta, gradient) + radius * crate::vector::largest(gradient)
}

/// The duality gap at `theta`, where every |Theta_u|_1 <= beta: Q(Theta) - Q* is at most this.
pub fn gap(problem: &Problem, radius: f64, theta: &Rows) -> f64 {
    let mut gradient = vec![0.0; problem.dimension()];
    agents(problem)
        .map(|agent| {
            gradient_block(problem, agent, theta, &mut gradient);
            gap_block(radius, theta.row(agent.index()), &gradient)
        })
        .sum()
}

/// C = 4 beta^2 sum_u D_uu (mu c_u max|A_u|^2 + 1) bounds the curvature of Q over the product of balls [thesis, Proposition 2.2].
/// An agent without data has no first term. Then E[Q(t)] - Q* <= 2 n (C + Q(0) - Q*) / (t + 2 n).
pub fn curvature(problem: &Problem, radius: f64) -> f64 {
    let sum: f64 = agents(problem)
        .map(|agent| {
            let shard = problem.shard(agent);
            let largest = crate::vector::largest(shard.points.features);
            let degree = problem.graph.peers(agent).weighted_degree();
            degree * (problem.trade_off * shard.confidence * largest * largest + 1.0)
        })
        .sum();
    4.0 * radius * radius * sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{boosting_problem, everyone, normals};
    use sottovoce_core::Coin;

    /// CHECK 00.b for this loss, margins of +-700 included.
    #[test]
    fn check_00_b_the_gradient_of_boosting_matches_differences() {
        let (n, k, h) = (6, 7, 1e-6);
        for (seed, scale) in [(1, 0.3), (2, 3.0), (3, 100.0)] {
            let problem = boosting_problem(seed, n, k);
            let mut theta = Rows::zeros(n, k);
            let values: Vec<f64> = normals(&mut Coin::new(seed, 5, 0), n * k).iter().map(|v| scale * v).collect();
            theta.values_mut().copy_from_slice(&values);
            let mut gradient = vec![0.0; k];
            for agent in everyone(&problem) {
                gradient_block(&problem, agent, &theta, &mut gradient);
                for (coordinate, exact) in gradient.iter().enumerate() {
                    let [above, below] = [h, -h].map(|h| {
                        let mut moved = theta.clone();
                        moved.row_mut(agent.index())[coordinate] += h * scale;
                        value(&problem, &moved)
                    });
                    let difference = (above - below) / (2.0 * h * scale);
                    assert!((difference - exact).abs() < 1e-5 * scale * exact.abs().max(1.0), "{difference} {exact}");
                }
            }
        }
        let far = [700.0, -700.0, 0.0];
        let mut shares = [0.0; 3];
        softmax(&far, &mut shares);
        assert_eq!((log_sum(&far), shares), (700.0, [0.0, 1.0, libm::exp(-700.0)]));
        assert_eq!(log_sum(&[0.0; 4]), libm::log(4.0));
        assert_eq!(log_sum(&[]), 0.0);
    }

    #[test]
    fn the_gap_is_above_the_excess_at_every_other_point() {
        let problem = boosting_problem(4, 6, 5);
        let mut coin = Coin::new(4, 6, 0);
        let radius = 2.0;
        let mut points = Vec::new();
        for _ in 0..40 {
            let mut theta = Rows::zeros(6, 5);
            for u in 0..6 {
                let row = normals(&mut coin, 5);
                let length: f64 = row.iter().map(|v| v.abs()).sum::<f64>() / (radius * coin.unit());
                theta.row_mut(u).iter_mut().zip(&row).for_each(|(to, v)| *to = v / length);
            }
            points.push((value(&problem, &theta), gap(&problem, radius, &theta)));
        }
        let least = points.iter().map(|(value, _)| *value).fold(f64::INFINITY, f64::min);
        assert!(points.iter().all(|(value, gap)| *gap >= value - least), "{points:?}");
    }
}
