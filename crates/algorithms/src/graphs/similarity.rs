//! Graphs from one vector per agent: k nearest neighbours, and weights that fall with the angle.
//!
//! Both compare agents by cos phi_ij = v_i.v_j / |v_i||v_j|; a zero vector has cosine 0 with every other.
//! They look at all pairs: time n^2 p.

use super::ShapeError;
use sottovoce_core::{Graph, graph::SizeError};

/// Which weights of a similarity graph are too small to keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// Drop W_ij <= this.
    Above(f64),
    /// Drop W_ij <= the largest max(W) 10^(-j/2), j = 1, 2, .., that leaves the graph connected.
    Connected,
}

/// Vectors of one length, one for each agent, scaled to unit length; a zero vector stays zero.
#[derive(Clone, Debug)]
pub struct Directions {
    dimension: usize,
    rows: Vec<f64>,
}

impl Directions {
    /// From vectors given row after row.
    ///
    /// # Panics
    /// When `dimension` is zero or does not divide the length of `rows`, or when a number is not finite.
    pub fn new(dimension: usize, mut rows: Vec<f64>) -> Self {
        assert!(dimension > 0 && rows.len().is_multiple_of(dimension), "rows of {dimension} numbers");
        for row in rows.chunks_exact_mut(dimension) {
            let largest = row.iter().fold(0.0f64, |largest, v| largest.max(v.abs()));
            assert!(row.iter().all(|v| v.is_finite()), "a direction of finite numbers");
            if largest > 0.0 {
                // Dividing by the largest first keeps the squares from overflowing or vanishing.
                row.iter_mut().for_each(|v| *v /= largest);
                let norm = row.iter().map(|v| v * v).sum::<f64>().sqrt();
                row.iter_mut().for_each(|v| *v /= norm);
            }
        }
        Directions { dimension, rows }
    }

    /// n.
    pub fn agents(&self) -> usize {
        self.rows.len() / self.dimension
    }

    /// cos phi_ij.
    pub fn cosine(&self, i: usize, j: usize) -> f64 {
        let row = |k: usize| &self.rows[k * self.dimension..(k + 1) * self.dimension];
        let dot: f64 = row(i).iter().zip(row(j)).map(|(a, b)| a * b).sum();
        // Adding zero turns -0 into 0, which would otherwise not tie with it.
        dot.clamp(-1.0, 1.0) + 0.0
    }
}

/// W_ij = 1 when i is among the `neighbours` agents of largest cosine with j, or j among those of i. Of two
/// equally near agents the one with the smaller number counts as nearer. No agent is its own neighbour.
pub fn nearest_neighbours(of: &Directions, neighbours: usize) -> Result<Graph, ShapeError> {
    let n = of.agents();
    SizeError::check(n)?;
    if neighbours >= n {
        return Err(ShapeError::TooManyNeighbours { neighbours, agents: n });
    }
    let mut pairs = Vec::with_capacity(n * neighbours);
    let mut others: Vec<(f64, u32)> = Vec::with_capacity(n);
    for i in 0..n {
        others.clear();
        others.extend((0..n).filter(|&j| j != i).map(|j| (of.cosine(i, j), j as u32)));
        if neighbours > 0 && neighbours < others.len() {
            others.select_nth_unstable_by(neighbours - 1, |a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        }
        pairs.extend(others[..neighbours].iter().map(|&(_, j)| ((i as u32).min(j), (i as u32).max(j))));
    }
    pairs.sort_unstable();
    pairs.dedup();
    let edges: Vec<_> = pairs.into_iter().map(|(a, b)| (a, b, 1.0)).collect();
    Ok(Graph::from_edges(n, &edges).expect("sorted pairs without repetition"))
}

/// W_ij = exp((cos phi_ij - 1) / width), without the weights below the threshold. The graph is `None` when
/// it should be connected and no threshold makes it so: weights that vanish in floating point.
///
/// # Panics
/// When `width` is not above zero.
pub fn similar(of: &Directions, width: f64, threshold: Threshold) -> Result<Option<Graph>, ShapeError> {
    assert!(width > 0.0, "width {width}");
    let n = of.agents();
    SizeError::check(n)?;
    let weight = |i: usize, j: usize| libm::exp((of.cosine(i, j) - 1.0) / width);
    let least = match threshold {
        Threshold::Above(least) => least,
        Threshold::Connected => match connecting(n, weight) {
            Some(least) => least,
            None => return Ok(None),
        },
    };
    let mut edges = Vec::new();
    for i in 0..n {
        for j in i + 1..n {
            let w = weight(i, j);
            if w > least && w > 0.0 {
                edges.push((i as u32, j as u32, w));
            }
        }
    }
    Ok(Some(Graph::from_edges(n, &edges).expect("each pair once, with a weight above zero")))
}

/// The largest max(W) 10^(-j/2) below the weakest edge of a maximum spanning tree: what is above it connects all.
fn connecting(n: usize, weight: impl Fn(usize, usize) -> f64) -> Option<f64> {
    let mut largest = 0.0f64;
    let mut weakest = f64::INFINITY;
    // Prim's algorithm on all pairs: `reach[j]` is the strongest edge from the tree to j.
    let mut reach = vec![0.0f64; n];
    let mut inside = vec![false; n];
    let mut latest = 0;
    inside[0] = true;
    for _ in 1..n {
        let mut next = None;
        for j in 0..n {
            let w = weight(latest.min(j), latest.max(j));
            if j != latest {
                largest = largest.max(w);
            }
            if inside[j] {
                continue;
            }
            reach[j] = reach[j].max(w);
            if next.is_none_or(|best: usize| reach[j] > reach[best]) {
                next = Some(j);
            }
        }
        latest = next?;
        inside[latest] = true;
        weakest = weakest.min(reach[latest]);
    }
    if weakest <= 0.0 {
        return None;
    }
    (1..).map(|j| largest * libm::pow(10.0, -f64::from(j) / 2.0)).find(|&least| least < weakest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sottovoce_core::Coin;

    fn random(n: usize, p: usize, seed: u64) -> Directions {
        let mut coin = Coin::new(seed, 0, 0);
        Directions::new(p, (0..n * p).map(|_| coin.unit() - 0.5).collect())
    }

    fn at_angles(degrees: &[f64]) -> Directions {
        let rows = degrees.iter().flat_map(|d| [d.to_radians().cos(), d.to_radians().sin()]).collect();
        Directions::new(2, rows)
    }

    fn pairs(graph: &Graph) -> Vec<(u32, u32)> {
        graph.edges().map(|(a, b, _)| (a.0, b.0)).collect()
    }

    #[test]
    fn an_edge_needs_only_one_of_its_ends_to_be_near() {
        // 0, 1 and 2 are close together; 3 has nobody near, but 2 is its nearest.
        let graph = nearest_neighbours(&at_angles(&[0.0, 10.0, 21.0, 90.0]), 1).expect("graph");
        assert_eq!(pairs(&graph), [(0, 1), (1, 2), (2, 3)]);
        let all = nearest_neighbours(&at_angles(&[0.0, 10.0, 21.0, 90.0]), 3).expect("graph");
        assert_eq!(all.edge_count(), 6);
        assert!(nearest_neighbours(&at_angles(&[0.0, 10.0]), 2).is_err());
    }

    #[test]
    fn ties_go_to_the_smaller_number_and_zero_vectors_have_cosine_zero() {
        let of = Directions::new(2, vec![1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0, -1.0, 0.0]);
        assert_eq!((of.cosine(0, 3), of.cosine(0, 4), of.cosine(3, 3)), (0.0, -1.0, 0.0));
        let line = Directions::new(1, vec![0.0, -1.0, 1.0]);
        assert_eq!(line.cosine(0, 1).to_bits(), line.cosine(0, 2).to_bits());
        // 0 -> 1, 1 -> 0, 2 -> 0, 3 (zero: all tie) -> 0, 4 -> 3 (0 beats -1).
        assert_eq!(pairs(&nearest_neighbours(&of, 1).expect("graph")), [(0, 1), (0, 2), (0, 3), (3, 4)]);
    }

    #[test]
    fn directions_ignore_length_however_extreme() {
        let of = Directions::new(2, vec![1e308, 1e308, 1e-310, 1e-310, 3.0, 3.0]);
        assert!((of.cosine(0, 1) - 1.0).abs() < 1e-12 && (of.cosine(0, 2) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_connecting_threshold_is_the_largest_of_its_kind() {
        for seed in 0..30 {
            let of = random(40, 2, seed);
            let graph = similar(&of, 0.1, Threshold::Connected).expect("few").expect("connected");
            assert!(graph.components().iter().all(|&c| c == 0));
            // The same by trying one threshold after the other.
            let all = similar(&of, 0.1, Threshold::Above(0.0)).expect("few").expect("graph");
            let largest = all.edges().map(|e| e.2).fold(0.0, f64::max);
            let tried = (1..)
                .map(|j| Threshold::Above(largest * libm::pow(10.0, -f64::from(j) / 2.0)))
                .map(|threshold| similar(&of, 0.1, threshold).expect("few").expect("graph"))
                .find(|graph| graph.components().iter().all(|&c| c == 0));
            assert_eq!(Some(graph), tried);
        }
    }

    #[test]
    fn similar_weights_follow_the_angle() {
        let of = at_angles(&[0.0, 60.0, 180.0]);
        let graph = similar(&of, 0.5, Threshold::Above(0.1)).expect("few").expect("graph");
        // exp((1/2 - 1) / 0.5) = 1/e; exp((-1/2 - 1) / 0.5) = e^-3 < 0.1; exp(-4) < 0.1.
        let edges: Vec<_> = graph.edges().collect();
        assert_eq!(pairs(&graph), [(0, 1)]);
        assert!((edges[0].2 - (-1.0f64).exp()).abs() < 1e-12);
        // Opposite directions with a tiny width: the weight is zero in floating point, nothing can connect them.
        assert_eq!(similar(&at_angles(&[0.0, 180.0]), 1e-3, Threshold::Connected), Ok(None));
        let one = similar(&at_angles(&[0.0]), 0.1, Threshold::Connected).expect("few").expect("graph");
        assert_eq!((one.agents(), one.edge_count()), (1, 0));
    }
}
