//! Statistics of pairs, as somebody who had all observations would compute them, and how far gossip may be from them.

use crate::Observations;
use crate::pairs::kernel::PairKernel;
use sottovoce_core::{Coin, Graph};

/// Everyone's observations, one after another: the columns within the bounds, and the label where the kernel wants it.
pub fn observations<'d>(kernel: &impl PairKernel, everyone: impl Iterator<Item = Observations<'d>>) -> Vec<f64> {
    let mut all = Vec::new();
    for one in everyone {
        for (row, label) in one.rows().zip(one.points.labels) {
            all.extend(row);
            all.extend(kernel.has_label().then_some(*label));
        }
    }
    all
}

/// U2 = 1/n^2 sum_{u,v} h(x_u, x_v); zero where there is no observation.
pub fn u2(kernel: &impl PairKernel, observations: &[f64]) -> f64 {
    let n = (observations.len() / kernel.width()).max(1) as f64;
    2.0 * kernel.sum_over_pairs(observations) / (n * n)
}

/// The bound of Theorem 3.1 on the distance of E z(t) from U2 in all nodes.
///
/// |E z(t) - U2 1| <= 1 / (c t) |hbar - U2 1| + (2 / (c t) + e^(-c t)) |H - hbar 1^T|,   hbar_u = 1/n sum_v h(x_u, x_v)
///
/// Differs from the thesis: c is beta / (2 |E|), half of what is printed. Averaging over one edge is I - L / (2 |E|) in expectation, and its gap is the smaller one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// c.
    pub rate: f64,
    /// |hbar - U2 1|.
    pub means: f64,
    /// |H - hbar 1^T|.
    pub pairs: f64,
}

impl Bound {
    /// For one observation for each agent of a connected graph, in time n^2.
    pub fn new(kernel: &impl PairKernel, observations: &[f64], graph: &Graph) -> Self {
        let rows = || observations.chunks_exact(kernel.width());
        let (n, whole) = (rows().len() as f64, u2(kernel, observations));
        let (mut means, mut pairs) = (0.0, 0.0);
        for one in rows() {
            let mean = rows().map(|other| kernel.value(one, other)).sum::<f64>() / n;
            means += (mean - whole) * (mean - whole);
            pairs += rows().map(|other| kernel.value(one, other) - mean).map(|gap| gap * gap).sum::<f64>();
        }
        Bound {
            rate: algebraic_connectivity(graph) / (2.0 * graph.edge_count() as f64),
            means: means.sqrt(),
            pairs: pairs.sqrt(),
        }
    }

    /// Of a statistic that is U2 times this, or of a mean over so many nodes.
    pub fn times(self, factor: f64) -> Self {
        Bound { means: factor * self.means, pairs: factor * self.pairs, ..self }
    }

    /// The bound at t.
    pub fn at(&self, t: f64) -> f64 {
        let progress = self.rate * t;
        self.means / progress + (2.0 / progress + libm::exp(-progress)) * self.pairs
    }

    /// The first t, up to a factor of 1.001, from which on the bound stays below this.
    pub fn horizon(&self, error: f64) -> f64 {
        let mut t = 1.0;
        while self.at(t) > error {
            t *= 1.001;
        }
        t
    }
}

/// beta, the second smallest eigenvalue of the Laplacian of the graph, each edge of weight one; zero where it is not connected.
///
/// By power iteration with 2 deg_max I - L, orthogonal to 1, which finds it from above.
pub fn algebraic_connectivity(graph: &Graph) -> f64 {
    const ROUNDS_MAX: usize = 1 << 18;
    let n = graph.agents();
    match *graph {
        Graph::Complete { n } if n > 1 => return f64::from(n),
        Graph::Ring { n } => return 2.0 - 2.0 * libm::cos(2.0 * std::f64::consts::PI / f64::from(n)),
        _ if n < 2 => return 0.0,
        _ => {}
    }
    let edges: Vec<(usize, usize)> = graph.edges().map(|(a, b, _)| (a.index(), b.index())).collect();
    let mut degrees = vec![0.0; n];
    edges.iter().flat_map(|&(a, b)| [a, b]).for_each(|end| degrees[end] += 1.0);
    let shift = 2.0 * degrees.iter().copied().fold(1.0, f64::max);
    let mut coin = Coin::new(0, 0, 0);
    let mut vector: Vec<f64> = (0..n).map(|_| coin.unit() - 0.5).collect();
    let mut next = vec![0.0; n];
    let (mut beta, mut still) = (f64::INFINITY, 0);
    for _ in 0..ROUNDS_MAX {
        let mean = vector.iter().sum::<f64>() / n as f64;
        let norm = vector.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>().sqrt();
        vector.iter_mut().for_each(|value| *value = (*value - mean) / norm);
        let quotient: f64 = edges.iter().map(|&(a, b)| (vector[a] - vector[b]) * (vector[a] - vector[b])).sum();
        still = if beta - quotient > 1e-13 * quotient { 0 } else { still + 1 };
        beta = beta.min(quotient);
        if still > 100 {
            break;
        }
        next.iter_mut().zip(&vector).zip(&degrees).for_each(|((next, value), degree)| *next = (shift - degree) * value);
        for &(a, b) in &edges {
            next[a] += vector[b];
            next[b] += vector[a];
        }
        std::mem::swap(&mut vector, &mut next);
    }
    beta
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graphs::{circulant, torus, watts_strogatz};
    use crate::pairs::kernel::{Auc, Gini};
    use crate::{Bounds, Dataset, Survey};

    #[test]
    fn u2_is_the_mean_over_all_ordered_pairs_within_the_bounds() {
        let mut data = Dataset::new(1);
        data.push_agent(&[1.0, 9.0], &[1.0, -1.0]);
        data.push_agent(&[2.0], &[-1.0]);
        let bounds = Some(Bounds { low: 0.0, high: 4.0 });
        let survey = Survey { data, graph: Graph::Complete { n: 2 }, bounds };
        let scores = observations(&Gini, survey.everyone());
        assert_eq!(scores, [1.0, 4.0, 2.0]);
        assert_eq!(u2(&Gini, &scores), 2.0 * (3.0 + 1.0 + 2.0) / 9.0);
        assert_eq!(observations(&Auc::default(), survey.everyone()), [1.0, 1.0, 4.0, -1.0, 2.0, -1.0]);
        assert_eq!(u2(&Gini, &[]), 0.0);
    }

    /// The constants of figure 3.4: c = 7.943e-4 on 1,260 agents that all know each other, 6.029e-6 on their torus, 4.5e-5 to 5.3e-5 on small worlds.
    #[test]
    fn spectral_constants_are_those_of_the_figure() {
        let rate = |graph: &Graph| algebraic_connectivity(graph) / (2.0 * graph.edge_count() as f64);
        assert!((rate(&Graph::complete(1260).expect("a graph")) / 7.943e-4 - 1.0).abs() < 1e-3);
        assert!((rate(&torus(35, 36).expect("a graph")) / 6.029e-6 - 1.0).abs() < 1e-3);
        for seed in 0..2 {
            let rate = rate(&watts_strogatz(1260, 5, 0.3, seed).expect("a graph"));
            assert!((4e-5..6e-5).contains(&rate), "{rate}");
        }
    }

    #[test]
    fn connectivity_of_listed_graphs_equals_the_closed_forms() {
        let listed = |graph: &Graph| {
            let edges: Vec<_> = graph.edges().map(|(a, b, weight)| (a.0, b.0, 3.0 * weight)).collect();
            algebraic_connectivity(&Graph::from_edges(graph.agents(), &edges).expect("a graph"))
        };
        for graph in [Graph::ring(9).expect("a graph"), Graph::complete(7).expect("a graph")] {
            assert!((listed(&graph) / algebraic_connectivity(&graph) - 1.0).abs() < 1e-10, "{graph:?}");
        }
        let angle = 2.0 * std::f64::consts::PI / 11.0;
        let expected = 4.0 - 2.0 * libm::cos(angle) - 2.0 * libm::cos(2.0 * angle);
        assert!((algebraic_connectivity(&circulant(11, 4).expect("a graph")) - expected).abs() < 1e-10);
        assert!(algebraic_connectivity(&Graph::from_edges(4, &[(0, 1, 1.0), (2, 3, 1.0)]).expect("a graph")) < 1e-10);
        assert_eq!(algebraic_connectivity(&Graph::complete(1).expect("a graph")), 0.0);
    }

    #[test]
    fn the_bound_falls_and_its_horizon_is_where_it_says() {
        let values: Vec<f64> = (0..20).map(|k| f64::from(k * k % 23)).collect();
        let bound = Bound::new(&Gini, &values, &Graph::complete(20).expect("a graph"));
        assert!((bound.rate - 1.0 / 19.0).abs() < 1e-15);
        let t = bound.horizon(0.5);
        assert!(bound.at(t) <= 0.5 && bound.at(t / 1.01) > 0.5 && bound.at(10.0 * t) < 0.1);
    }
}
