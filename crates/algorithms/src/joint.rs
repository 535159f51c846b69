//! The objective of models and graph together (thesis, (2.1)) and what keeps its graph from being empty.
//!
//! J(Theta, w) = 1/2 sum_{u<v} w_uv |Theta_u - Theta_v|^2 + mu sum_u d_u(w) c_u F_u(Theta_u) + nu g(w),   w >= 0
//!
//! g(w) = sum_{u<v} g_w(w_uv) + sum_u g_d(d_u(w)): a function of weights and one of degrees, both convex ([`Regularizer`]).
//! For fixed models the slope of J along one pair needs nothing but the two ends:
//!
//! dJ/dw_uv = mu (c_u F_u + c_v F_v) + |Theta_u - Theta_v|^2 / 2 + nu ( g_w'(w_uv) + g_d'(d_u) + g_d'(d_v) )
//!
//! | here | thesis | authors' code |
//! |---|---|---|
//! | mu, the trade-off | 1 / lambda_1 | 1 / MU |
//! | nu, the strength | lambda_2 / lambda_1, 1 in the thesis | 1 / 2 |
//! | sparsity of [`LogDegree`] | lambda_3 | LA MU / 2 |
//! | J | J / lambda_1 | |

use crate::vector::distance_squared;
use sottovoce_core::{Graph, PeerId, Rows};

/// A graph regularizer that separates over weights and degrees. Both functions are convex and have a slope on w >= 0.
pub trait Regularizer: Sync {
    /// g_w.
    fn weight(&self, weight: f64) -> f64;
    /// g_w'.
    fn weight_slope(&self, weight: f64) -> f64;
    /// g_d.
    fn degree(&self, degree: f64) -> f64;
    /// g_d'.
    fn degree_slope(&self, degree: f64) -> f64;
}

/// g(w) = lambda_3 |w|^2 - sum_u log(d_u + offset), after Kalofolias (2016): nobody is left alone, and a small `sparsity` leaves an
/// agent its nearest neighbours only. |w|^2 counts each pair once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogDegree {
    /// lambda_3 > 0.
    pub sparsity: f64,
    /// What is added to a degree, so that an agent without neighbours does not cost infinity; above zero.
    pub offset: f64,
}

impl LogDegree {
    /// The usual offset.
    pub const OFFSET: f64 = 1e-6;
}

impl Regularizer for LogDegree {
    fn weight(&self, weight: f64) -> f64 {
        self.sparsity * weight * weight
    }

    fn weight_slope(&self, weight: f64) -> f64 {
        2.0 * self.sparsity * weight
    }

    fn degree(&self, degree: f64) -> f64 {
        -libm::log(degree + self.offset)
    }

    fn degree_slope(&self, degree: f64) -> f64 {
        -1.0 / (degree + self.offset)
    }
}

/// g(w) = lambda_3 |w|^2 + 1/2 sum_u (d_u - target)^2: everyone has about the same degree.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DegreeTarget {
    /// lambda_3 > 0.
    pub sparsity: f64,
    /// The degree that costs nothing.
    pub target: f64,
}

impl Regularizer for DegreeTarget {
    fn weight(&self, weight: f64) -> f64 {
        self.sparsity * weight * weight
    }

    fn weight_slope(&self, weight: f64) -> f64 {
        2.0 * self.sparsity * weight
    }

    fn degree(&self, degree: f64) -> f64 {
        0.5 * (degree - self.target) * (degree - self.target)
    }

    fn degree_slope(&self, degree: f64) -> f64 {
        degree - self.target
    }
}

/// mu, nu and g: what J has besides models, data and graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Joint<R> {
    /// mu > 0.
    pub trade_off: f64,
    /// nu > 0.
    pub strength: f64,
    /// g.
    pub regularizer: R,
}

impl<R: Regularizer> Joint<R> {
    /// What one unit of w_uv costs by itself: mu (c_u F_u + c_v F_v) + |Theta_u - Theta_v|^2 / 2.
    pub fn price(&self, costs: f64, distance_squared: f64) -> f64 {
        self.trade_off * costs + 0.5 * distance_squared
    }

    /// dJ/dw_uv at a weight and the degrees of its ends.
    pub fn slope(&self, price: f64, weight: f64, degrees: [f64; 2]) -> f64 {
        let [a, b] = degrees.map(|degree| self.regularizer.degree_slope(degree));
        price + self.strength * (self.regularizer.weight_slope(weight) + a + b)
    }

    /// nu g(w), the graph's own part of J: that and Q over the graph are J.
    pub fn of_graph(&self, graph: &Graph) -> f64 {
        let weights: f64 = graph.edges().map(|(_, _, weight)| self.regularizer.weight(weight)).sum();
        let agents = (0..graph.agents() as u32).map(PeerId);
        let degrees: f64 = agents.map(|agent| self.regularizer.degree(graph.peers(agent).weighted_degree())).sum();
        self.strength * (weights + degrees)
    }

    /// J from the prices of all pairs.
    pub fn value(&self, prices: &Pairs, weights: &Pairs) -> f64 {
        let g = &self.regularizer;
        let pairs: f64 = prices
            .values
            .iter()
            .zip(&weights.values)
            .map(|(price, &weight)| price * weight + self.strength * g.weight(weight))
            .sum();
        pairs + self.strength * weights.degrees().iter().map(|&degree| g.degree(degree)).sum::<f64>()
    }

    /// The prices of all pairs: `costs` is c_u F_u, one for each agent.
    pub fn prices(&self, models: &Rows, costs: &[f64]) -> Pairs {
        let row = |u: usize| models.row(u);
        Pairs::from_fn(costs.len(), |u, v| self.price(costs[u] + costs[v], distance_squared(row(u), row(v))))
    }
}

/// One number for each pair of agents, in either order.
#[derive(Clone, Debug, PartialEq)]
pub struct Pairs {
    agents: usize,
    /// (0, 1), (0, 2), .., (1, 2), ..
    pub(crate) values: Vec<f64>,
}

impl Pairs {
    /// Fills the pairs u < v.
    pub fn from_fn(agents: usize, mut of: impl FnMut(usize, usize) -> f64) -> Self {
        let mut values = Vec::with_capacity(agents * agents.saturating_sub(1) / 2);
        (0..agents).for_each(|u| values.extend((u + 1..agents).map(|v| of(u, v))));
        Pairs { agents, values }
    }

    /// The weights of a graph.
    pub fn of_graph(graph: &Graph) -> Self {
        let mut pairs = Pairs::from_fn(graph.agents(), |_, _| 0.0);
        for (a, b, weight) in graph.edges() {
            let at = pairs.position(a.index(), b.index());
            pairs.values[at] = weight;
        }
        pairs
    }

    fn position(&self, u: usize, v: usize) -> usize {
        assert!(u < v && v < self.agents, "a pair of {} agents: {u}, {v}", self.agents);
        u * (2 * self.agents - u - 1) / 2 + v - u - 1
    }

    /// The number of a pair.
    pub fn at(&self, u: PeerId, v: PeerId) -> f64 {
        self.values[self.position(u.min(v).index(), u.max(v).index())]
    }

    /// Every pair u < v and its number.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        let pairs = (0..self.agents).flat_map(|u| (u + 1..self.agents).map(move |v| (u, v)));
        pairs.zip(&self.values).map(|((u, v), value)| (u, v, *value))
    }

    /// d_u, the sum over the pairs of each agent.
    pub fn degrees(&self) -> Vec<f64> {
        let mut degrees = vec![0.0; self.agents];
        for (u, v, weight) in self.iter() {
            degrees[u] += weight;
            degrees[v] += weight;
        }
        degrees
    }

    /// The pairs of positive weight as a graph.
    pub fn graph(&self) -> Graph {
        let edges: Vec<_> =
            self.iter().filter(|pair| pair.2 > 0.0).map(|(u, v, weight)| (u as u32, v as u32, weight)).collect();
        Graph::from_edges(self.agents, &edges).expect("each pair once, with finite weights")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{boosting_problem, everyone, normals, random_problem};
    use crate::{Loss, Problem, boosting, objective};
    use sottovoce_core::Coin;

    /// J is the objective of the models over the graph of the weights, plus nu g: for both kinds of losses.
    #[test]
    fn with_its_graph_fixed_it_is_the_objective_of_the_models() {
        let (n, p) = (8, 4);
        let linear =
            |problem: &Problem, agent: PeerId, theta: &[f64]| objective::local_value(&problem.shard(agent), theta);
        let boosted =
            |problem: &Problem, agent: PeerId, theta: &[f64]| boosting::local_value(problem.shard(agent).points, theta);
        type Whole = fn(&Problem, &Rows) -> f64;
        type Local = fn(&Problem, PeerId, &[f64]) -> f64;
        let cases: [(Problem, Whole, Local); 2] = [
            (random_problem(3, n, p, Loss::Logistic), objective::value, linear),
            (boosting_problem(3, n, p), boosting::value, boosted),
        ];
        for (problem, value, local) in cases {
            let problem = Problem { trade_off: 0.3, ..problem };
            let regularizer = LogDegree { sparsity: 0.2, offset: LogDegree::OFFSET };
            let joint = Joint { trade_off: problem.trade_off, strength: 0.7, regularizer };
            let mut models = Rows::zeros(n, p);
            models.values_mut().copy_from_slice(&normals(&mut Coin::new(3, 7, 0), n * p));
            let cost =
                |agent: PeerId| problem.shard(agent).confidence * local(&problem, agent, models.row(agent.index()));
            let costs: Vec<f64> = everyone(&problem).map(cost).collect();
            let weights = Pairs::of_graph(&problem.graph);
            let squares: f64 = problem.graph.edges().map(|(_, _, weight)| weight * weight).sum();
            let degrees = everyone(&problem).map(|agent| problem.graph.peers(agent).weighted_degree());
            let g = 0.2 * squares - degrees.map(|degree| libm::log(degree + LogDegree::OFFSET)).sum::<f64>();
            let (j, expected) =
                (joint.value(&joint.prices(&models, &costs), &weights), value(&problem, &models) + 0.7 * g);
            assert!((j - expected).abs() < 1e-10, "{j} {expected}");
            let of_graph = joint.of_graph(&problem.graph);
            assert!((of_graph - 0.7 * g).abs() < 1e-10, "{of_graph} {g}");
        }
    }

    fn slopes_match_differences<R: Regularizer>(regularizer: R) {
        let n = 5;
        let mut coin = Coin::new(1, 0, 0);
        let joint = Joint { trade_off: 0.7, strength: 0.4, regularizer };
        let mut models = Rows::zeros(n, 3);
        models.values_mut().copy_from_slice(&normals(&mut coin, n * 3));
        let prices = joint.prices(&models, &normals(&mut coin, n));
        let weights = Pairs::from_fn(n, |_, _| 0.1 + coin.unit());
        let degrees = weights.degrees();
        for (at, (u, v, weight)) in weights.iter().enumerate() {
            let [above, below] = [1e-6, -1e-6].map(|h| {
                let mut moved = weights.clone();
                moved.values[at] += h;
                joint.value(&prices, &moved)
            });
            let slope = joint.slope(prices.values[at], weight, [degrees[u], degrees[v]]);
            assert!(((above - below) / 2e-6 - slope).abs() < 1e-7, "{slope}");
        }
    }

    #[test]
    fn slopes_along_pairs_match_differences() {
        slopes_match_differences(LogDegree { sparsity: 0.3, offset: LogDegree::OFFSET });
        slopes_match_differences(DegreeTarget { sparsity: 0.3, target: 1.5 });
    }

    #[test]
    fn pairs_are_found_from_both_ends_and_make_a_graph() {
        let pairs = Pairs::from_fn(5, |u, v| if (u + v) % 2 == 0 { 0.0 } else { (10 * u + v) as f64 });
        for (u, v, value) in pairs.iter() {
            let (u, v) = (PeerId(u as u32), PeerId(v as u32));
            assert_eq!((pairs.at(u, v), pairs.at(v, u)), (value, value));
        }
        assert_eq!(Pairs::of_graph(&pairs.graph()), pairs);
        let graph = pairs.graph();
        let degrees: Vec<f64> = (0..5).map(|u| graph.peers(PeerId(u)).weighted_degree()).collect();
        assert_eq!(pairs.degrees(), degrees);
    }
}
