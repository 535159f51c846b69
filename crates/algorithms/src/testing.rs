//! Random problems for tests.

use crate::{Dataset, Loss, Problem, Regularization};
use sottovoce_core::{Coin, Graph, PeerId};

/// All losses that have a gradient everywhere.
pub(crate) const SMOOTH: [Loss; 3] = [Loss::Logistic, Loss::Squared, Loss::SmoothedHinge];
/// All losses.
pub(crate) const ALL: [Loss; 4] = [Loss::Logistic, Loss::Squared, Loss::SmoothedHinge, Loss::Hinge];

/// A standard normal number.
pub(crate) fn normal(coin: &mut Coin) -> f64 {
    let (radius, angle) = (1.0 - coin.unit(), coin.unit());
    (-2.0 * libm::log(radius)).sqrt() * libm::cos(2.0 * std::f64::consts::PI * angle)
}

/// Normal vectors, one after another.
pub(crate) fn normals(coin: &mut Coin, count: usize) -> Vec<f64> {
    (0..count).map(|_| normal(coin)).collect()
}

/// A task in which neighbours' true models are alike. Agent 1 has no data; the last two agents are isolated, one of them
/// without data; the rest is a ring with random chords.
pub(crate) fn random_problem(seed: u64, n: usize, p: usize, loss: Loss) -> Problem {
    let mut coin = Coin::new(seed, 0, 0);
    let common = normals(&mut coin, p);
    let mut data = Dataset::new(p);
    let mut largest = 1;
    for agent in 0..n {
        let own: Vec<f64> = common.iter().map(|value| value + 0.3 * normal(&mut coin)).collect();
        let points = if agent == 1 || agent == n - 1 { 0 } else { 1 + coin.below(20) };
        largest = largest.max(points);
        let features = normals(&mut coin, points * p);
        let labels: Vec<f64> = features
            .chunks_exact(p)
            .map(|x| {
                let dot: f64 = x.iter().zip(&own).map(|(x, own)| x * own).sum::<f64>() + 0.3 * normal(&mut coin);
                if loss.is_classification() { if dot >= 0.0 { 1.0 } else { -1.0 } } else { dot }
            })
            .collect();
        data.push_agent(&features, &labels);
    }
    let ring = n as u32 - 2;
    let mut edges: Vec<(u32, u32, f64)> = (0..ring).map(|a| (a, (a + 1) % ring, 0.2 + coin.unit())).collect();
    for a in 0..ring {
        for b in a + 2..ring {
            if (a, b) != (0, ring - 1) && coin.unit() < 0.2 {
                edges.push((a, b, 0.2 + coin.unit()));
            }
        }
    }
    Problem {
        data,
        graph: Graph::from_edges(n, &edges).expect("a graph"),
        loss,
        regularization: Regularization::Constant(0.01),
        trade_off: 1.0,
        points_max: largest as f64,
    }
}

/// Every agent.
pub(crate) fn everyone(problem: &Problem) -> impl Iterator<Item = PeerId> {
    (0..problem.agents() as u32).map(PeerId)
}
