//! Noise once, then averaging with neighbours (Muffliato: Cyffers, Even, Bellet and Massoulie 2022): what each learns of each. Proof:
//! `proofs/gossip.md`.
//!
//! Member j starts with y_j = x_j + noise of sigma; in T rounds x <- W x, plainly or by Chebyshev's polynomials of W. An observer v sees what its
//! neighbours w send: (P_t(W) y)_w for t < T. All of it is a linear function of y, so that what v learns of u is exactly mu-Gaussian with
//! ```text
//! mu^2 = (sensitivity / sigma)^2 | projection of e_u onto the span of e_v and the rows e_w P_t(W) |^2
//! ```
//! The span is that of a block Krylov space, the same with and without acceleration.
//!
//! **Differs from the paper:** its formula adds up what each message alone tells. The messages share their noise, and two of them can tell more
//! together than apart: [`PaperGossip`] keeps the formula, for comparison; it is not a bound.

mod pairs;

pub use pairs::{GossipPairs, PAIRS_EDGES_MAX, PAIRS_MEMBERS_MAX, WorstAndMean};

use super::walk::BadNetwork;
use crate::round::{div_up, mul_up, sqrt_up};

/// A symmetric matrix of averaging weights.
#[derive(Clone, Debug)]
pub struct Gossip {
    /// Of each member: its neighbours and their weights, itself included.
    rows: Vec<Vec<(usize, f64)>>,
}

/// A direction is new if more than this part of its vector is outside of the span.
const NEW: f64 = 1e-12;
/// What orthogonal projections round: altogether, and of a direction as a part of its vector.
const ROUNDING: f64 = 1e-11;
const DOUBT: f64 = 1e-14;
/// A vector of which less than this is left is taken from the span once more.
const NEARLY_OLD: f64 = 1e-2;

impl Gossip {
    /// The matrix with these weights between pairs of members; the rest of each row's sum of one is its diagonal.
    pub fn new(members: usize, weights: &[(usize, usize, f64)]) -> Result<Self, BadNetwork> {
        let bad = |what, value: f64, accepted| Err(BadNetwork::OutOfRange { what, value, accepted });
        let mut rows: Vec<Vec<(usize, f64)>> = vec![Vec::new(); members];
        for &(a, b, weight) in weights {
            if a >= members || b >= members || a == b {
                return bad("member at an end of an edge", a.max(b) as f64, "another one, below their number");
            }
            if !(weight.is_finite() && weight > 0.0) {
                return bad("weight of an edge", weight, "a finite number above 0");
            }
            rows[a].push((b, weight));
            rows[b].push((a, weight));
        }
        for (member, row) in rows.iter_mut().enumerate() {
            row.sort_unstable_by_key(|&(other, _)| other);
            if row.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                return bad("edge of a member", member as f64, "there once");
            }
            let sum: f64 = row.iter().map(|&(_, weight)| weight).sum();
            if sum > 1.0 + 1e-9 {
                return bad("sum of a member's weights", sum, "at most 1");
            }
            row.push((member, 1.0 - sum));
        }
        Ok(Gossip { rows })
    }

    /// Metropolis and Hastings' weights on a graph: 1 / (1 + the larger degree).
    pub fn metropolis(members: usize, edges: &[(usize, usize)]) -> Result<Self, BadNetwork> {
        let mut degrees = vec![0.0f64; members];
        for &(a, b) in edges {
            for end in [a, b] {
                if let Some(degree) = degrees.get_mut(end) {
                    *degree += 1.0;
                }
            }
        }
        let degree = |member: usize| degrees.get(member).copied().unwrap_or_default();
        let weight = |&(a, b): &(usize, usize)| (a, b, 1.0 / (1.0 + degree(a).max(degree(b))));
        Gossip::new(members, &edges.iter().map(weight).collect::<Vec<_>>())
    }

    /// How many members there are.
    pub fn members(&self) -> usize {
        self.rows.len()
    }

    fn neighbours(&self, member: usize) -> impl Iterator<Item = usize> {
        self.rows[member].iter().map(|&(other, _)| other).filter(move |&other| other != member)
    }

    /// out <- W x
    pub(super) fn times(&self, x: &[f64], out: &mut [f64]) {
        for (out, row) in out.iter_mut().zip(&self.rows) {
            *out = row.iter().map(|&(other, weight)| weight * x[other]).sum();
        }
    }

    /// W x
    pub fn moved(&self, x: &[f64]) -> Vec<f64> {
        let mut out = vec![0.0; x.len()];
        self.times(x, &mut out);
        out
    }

    /// How many hops each member is from the nearest of some; none if it cannot be reached.
    pub fn distances(&self, from: &[usize]) -> Vec<Option<usize>> {
        let mut distances = vec![None; self.members()];
        let mut front: Vec<usize> = from.to_vec();
        for distance in 0.. {
            // Each is taken once, however many ways lead to it.
            front.retain(|&member| {
                let is_new = distances[member].is_none();
                distances[member] = distances[member].or(Some(distance));
                is_new
            });
            if front.is_empty() {
                break;
            }
            front = front.iter().flat_map(|&member| self.neighbours(member)).collect();
        }
        distances
    }

    /// Of each member u the square of mu, in units of (sensitivity / sigma)^2, of what these observers together learn of it in so many
    /// rounds; rounds up. From 0, nothing, to 1, as much as from the noisy value itself. One call is one row of a matrix of pairs, and
    /// rows are independent: whoever has several processors calls from each.
    pub fn exposure(&self, observers: &[usize], rounds: usize) -> Vec<f64> {
        self.exposure_told(observers, rounds, &[])
    }

    /// The same where everyone is told, besides, what some sums of all noisy values come to: rows of as many weights as there are members, one behind
    /// the other.
    fn exposure_told(&self, observers: &[usize], rounds: usize, told: &[f64]) -> Vec<f64> {
        let members = self.members();
        let mut basis = Basis { members, vectors: Vec::new(), squares: vec![0.0; members] };
        let mut known = vec![false; members];
        if rounds > 0 {
            let neighbours = observers.iter().flat_map(|&observer| self.neighbours(observer));
            neighbours.for_each(|neighbour| known[neighbour] = true);
        }
        observers.iter().for_each(|&observer| known[observer] = true);
        for member in (0..members).filter(|&member| known[member]) {
            let mut unit = vec![0.0; members];
            unit[member] = 1.0;
            basis.squares[member] = 1.0;
            basis.vectors.extend(unit);
        }
        // S_{t+1} = S_t + W (what was new in S_t)
        let (mut before, mut new) = (0, 0..basis.len());
        for _ in 1..rounds {
            if new.is_empty() || basis.len() == members {
                break;
            }
            let start = basis.len();
            let mut candidates = vec![0.0; new.len() * members];
            for (index, candidate) in new.clone().zip(candidates.chunks_exact_mut(members)) {
                self.times(basis.vector(index), candidate);
            }
            basis.extend(&mut candidates, before);
            (before, new) = (new.start, start..basis.len());
        }
        basis.extend(&mut told.to_vec(), 0);
        basis.projections()
    }

    /// How much of each member's first value is in what one holds after so many rounds, plain with gamma = 1, by Chebyshev's polynomials with a gamma
    /// between 1 and 2: the row e_w P_T(W).
    pub fn share_of_each(&self, member: usize, rounds: usize, gamma: f64) -> Vec<f64> {
        let mut last = Vec::new();
        self.spread(member, rounds + 1, gamma, |_, x| last = x.to_vec());
        last
    }

    /// The columns P_t(W) e_u for t = 0, 1, .. .
    fn spread(&self, source: usize, rounds: usize, gamma: f64, mut each: impl FnMut(usize, &[f64])) {
        let members = self.members();
        let (mut before, mut now, mut next) = (vec![0.0; members], vec![0.0; members], vec![0.0; members]);
        now[source] = 1.0;
        for round in 0..rounds {
            each(round, &now);
            self.times(&now, &mut next);
            if round > 0 {
                for (next, before) in next.iter_mut().zip(&before) {
                    *next = gamma * *next + (1.0 - gamma) * before;
                }
            }
            std::mem::swap(&mut before, &mut now);
            std::mem::swap(&mut now, &mut next);
        }
    }

    /// The epsilon at `delta` of each member against these observers, for noise of `noise_multiplier` times the sensitivity.
    pub fn epsilons(&self, observers: &[usize], rounds: usize, noise_multiplier: f64, delta: f64) -> Vec<f64> {
        let inverse = div_up(1.0, noise_multiplier);
        let epsilon = |square: f64| crate::gaussian_epsilon(mul_up(sqrt_up(square), inverse), delta);
        self.exposure(observers, rounds).into_iter().map(epsilon).collect()
    }
}

/// Orthonormal vectors, one behind the other.
struct Basis {
    members: usize,
    vectors: Vec<f64>,
    /// The square of the projection of each unit vector, with what is in doubt of it.
    squares: Vec<f64>,
}

impl Basis {
    fn len(&self) -> usize {
        self.vectors.len() / self.members
    }

    fn vector(&self, index: usize) -> &[f64] {
        &self.vectors[index * self.members..(index + 1) * self.members]
    }

    /// Takes up what is new in some vectors. In exact arithmetic they are orthogonal to everything before `recent`.
    fn extend(&mut self, candidates: &mut [f64], recent: usize) {
        let (members, old) = (self.members, self.vectors.len());
        let sizes: Vec<f64> = candidates.chunks_exact(members).map(norm).collect();
        // Twice is enough (Giraud, Langou and Rozloznik 2005): first what is large, then everything.
        for from in [recent * members, 0] {
            project_out(candidates, &self.vectors[from..], members);
        }
        for (candidate, size) in candidates.chunks_exact_mut(members).zip(sizes) {
            for _ in 0..2 {
                project_out(candidate, &self.vectors[old..], members);
            }
            // What is mostly in the span of the vectors beside it has lost digits against all others.
            if norm(candidate) < NEARLY_OLD * size {
                project_out(candidate, &self.vectors, members);
            }
            let rest = norm(candidate);
            if rest > NEW * size && self.len() < members {
                // A direction that is a small rest of its vector is known as much less well.
                let doubt = DOUBT * size / rest;
                for (square, x) in self.squares.iter_mut().zip(candidate.iter()).filter(|(_, x)| **x != 0.0) {
                    let most = x.abs() / rest + doubt;
                    *square += most * most;
                }
                self.vectors.extend(candidate.iter().map(|x| x / rest));
            }
        }
    }

    /// The square of the projection of each unit vector.
    fn projections(&self) -> Vec<f64> {
        let reached = |&square: &f64| if square > 0.0 { (square + ROUNDING).min(1.0) } else { 0.0 };
        self.squares.iter().map(reached).collect()
    }
}

/// Basis vectors, and candidates, that are looked at side by side, so that each number is read once for several products.
const SIDE_BY_SIDE: usize = 4;
const PAIR: usize = 2;

/// Takes from candidates their parts in the span of orthonormal vectors.
fn project_out(candidates: &mut [f64], vectors: &[f64], members: usize) {
    let mut pairs = candidates.chunks_exact_mut(PAIR * members);
    for pair in &mut pairs {
        let (one, other) = pair.split_at_mut(members);
        for some in vectors.chunks(SIDE_BY_SIDE * members) {
            project_out_pair([one, other], some, members);
        }
    }
    let last = pairs.into_remainder();
    if !last.is_empty() {
        // Beside a candidate of zeros, of which nothing is in any span.
        let mut nothing = vec![0.0; members];
        for some in vectors.chunks(SIDE_BY_SIDE * members) {
            project_out_pair([last, &mut nothing], some, members);
        }
    }
}

/// Takes from two candidates their parts in the span of at most [`SIDE_BY_SIDE`] orthonormal vectors.
fn project_out_pair(candidates: [&mut [f64]; PAIR], vectors: &[f64], members: usize) {
    let [one, other] = candidates;
    let mut each = vectors.chunks_exact(members);
    let (Some(a), Some(b), Some(c), Some(d)) = (each.next(), each.next(), each.next(), each.next()) else {
        for vector in vectors.chunks_exact(members) {
            for candidate in [&mut *one, &mut *other] {
                let part: f64 = candidate.iter().zip(vector).map(|(x, v)| x * v).sum();
                candidate.iter_mut().zip(vector).for_each(|(x, v)| *x -= part * v);
            }
        }
        return;
    };
    let (one, other, rows) = (&mut one[..members], &mut other[..members], [a, b, c, d].map(|row| &row[..members]));
    let mut parts = [[[0.0; 2]; PAIR]; SIDE_BY_SIDE];
    let mut add = |lane: usize, index: usize| {
        for (parts, row) in parts.iter_mut().zip(rows) {
            parts[0][lane] += one[index] * row[index];
            parts[1][lane] += other[index] * row[index];
        }
    };
    for pair in 0..members / 2 {
        add(0, 2 * pair);
        add(1, 2 * pair + 1);
    }
    if members % 2 == 1 {
        add(0, members - 1);
    }
    let [a, b, c, d] = parts.map(|parts| parts.map(|[even, odd]| even + odd));
    for index in 0..members {
        let [va, vb, vc, vd] = rows.map(|row| row[index]);
        one[index] -= (a[0] * va + b[0] * vb) + (c[0] * vc + d[0] * vd);
        other[index] -= (a[1] * va + b[1] * vb) + (c[1] * vc + d[1] * vd);
    }
}

fn norm(x: &[f64]) -> f64 {
    x.iter().map(|x| x * x).sum::<f64>().sqrt()
}

/// The formula of the paper (Theorem 4, as printed), which adds up what each message alone tells:
/// sum_t sum_{w next to v} (P_t(W)_{wu})^2 / |P_t(W)_w|^2. **Not a bound**: see the module's comment.
#[derive(Clone, Debug)]
pub struct PaperGossip<'g> {
    gossip: &'g Gossip,
    /// gamma of x_{t+1} = gamma W x_t + (1 - gamma) x_{t-1}; 1 without acceleration.
    gamma: f64,
    /// |P_t(W)_w|^2 by t and w.
    norms: Vec<Vec<f64>>,
}

impl<'g> PaperGossip<'g> {
    /// So many rounds, plain with gamma = 1, by Chebyshev's polynomials with a gamma between 1 and 2.
    pub fn new(gossip: &'g Gossip, rounds: usize, gamma: f64) -> Self {
        let mut norms = vec![vec![0.0; gossip.members()]; rounds];
        for source in 0..gossip.members() {
            gossip.spread(source, rounds, gamma, |round, x| {
                norms[round].iter_mut().zip(x).for_each(|(norm, x)| *norm += x * x);
            });
        }
        PaperGossip { gossip, gamma, norms }
    }

    /// What the formula says of this source and each observer, in units of (sensitivity / sigma)^2.
    pub fn row(&self, source: usize) -> Vec<f64> {
        let mut told = vec![0.0; self.gossip.members()];
        self.gossip.spread(source, self.norms.len(), self.gamma, |round, x| {
            let parts = told.iter_mut().zip(x).zip(&self.norms[round]);
            parts.for_each(|((told, x), norm)| *told += if *x == 0.0 { 0.0 } else { x * x / norm });
        });
        (0..told.len()).map(|observer| self.gossip.neighbours(observer).map(|w| told[w]).sum()).collect()
    }
}

#[cfg(test)]
mod tests;
