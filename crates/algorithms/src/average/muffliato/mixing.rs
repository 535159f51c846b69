//! How fast gossip on a graph mixes: the second largest eigenvalue of Metropolis' weights, and what follows from it for rounds and acceleration.
//!
//! All of it is public: it follows from the graph, from the number of agents and from the noise.

use sottovoce_core::{Coin, Graph};
use sottovoce_privacy::network::{BadNetwork, Gossip};

/// Steps of Lanczos at most. With fewer than the dimension the eigenvalue comes out a little too small, which costs rounds and breaks nothing.
const STEPS_MAX: usize = 300;

/// Nobody waits for more rounds than this by default.
pub const ROUNDS_MAX: u32 = 100_000;

/// What mixing may leave is this part of the noise of an estimate.
const PART_OF_NOISE: f64 = 0.1;

/// What mixing may leave of the first values where there is no noise.
const WITHOUT_NOISE: f64 = 1e-9;

/// The weights of gossip on a graph: 1 / (1 + the larger degree) on each edge.
pub fn weights(graph: &Graph) -> Result<Gossip, BadNetwork> {
    let edges: Vec<(usize, usize)> = graph.edges().map(|(a, b, _)| (a.index(), b.index())).collect();
    Gossip::metropolis(graph.agents(), &edges)
}

/// How fast a matrix of weights mixes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mixing {
    agents: usize,
    /// lambda: the largest size of an eigenvalue but for the one that keeps means.
    second: f64,
}

impl Mixing {
    /// Of weights. On a graph that is not connected, and on one without odd cycles whose weights keep nothing at home, the second
    /// eigenvalue is 1 in size, and nothing ever mixes.
    pub fn of(weights: &Gossip) -> Self {
        Mixing { agents: weights.members(), second: second_eigenvalue(weights) }
    }

    /// lambda.
    pub fn second(&self) -> f64 {
        self.second
    }

    /// Whether everybody comes to the same in the end.
    pub fn ends(&self) -> bool {
        self.second < 1.0 - 1e-10
    }

    /// The gamma of x(t+1) = gamma W x(t) + (1 - gamma) x(t-1) that mixes fastest, 2 / (1 + sqrt(1 - lambda^2)) (Golub and Varga 1961).
    pub fn gamma(&self) -> f64 {
        let lambda = self.second.clamp(0.0, 1.0 - 1e-10);
        2.0 / (1.0 + libm::sqrt(1.0 - lambda * lambda))
    }

    /// What is left of a difference after so many rounds, at most.
    pub fn left(&self, rounds: u32, gamma: f64) -> f64 {
        let (mut before, mut now) = (1.0, self.second.min(1.0));
        let mut most = if rounds == 0 { before } else { now };
        for _ in 1..rounds {
            (before, now) = (now, gamma * self.second.min(1.0) * now + (1.0 - gamma) * before);
            most = now;
        }
        most.abs()
    }

    /// The least number of rounds after which what is left of values up to `size` is a tenth of what their noise makes of an estimate; `noise` is the
    /// standard deviation of one, in the same units. Without noise a billionth is left.
    pub fn rounds(&self, gamma: f64, noise: Option<f64>, size: f64) -> u32 {
        let left = match noise {
            Some(noise) => PART_OF_NOISE * noise / libm::sqrt(self.agents as f64) / libm::hypot(noise, size),
            None => WITHOUT_NOISE,
        };
        // |P_t(lambda)| falls from round to round where gamma is the best one, or 1.
        let (mut before, mut now) = (1.0, self.second.min(1.0));
        for round in 1..ROUNDS_MAX {
            if now.abs() <= left {
                return round;
            }
            (before, now) = (now, gamma * self.second.min(1.0) * now + (1.0 - gamma) * before);
        }
        ROUNDS_MAX
    }
}

/// The largest size of an eigenvalue but for that of the vector of ones, by Lanczos' method without that vector.
fn second_eigenvalue(weights: &Gossip) -> f64 {
    let members = weights.members();
    let mut coin = Coin::new(1, 0, 0);
    let mut vector: Vec<f64> = (0..members).map(|_| coin.unit() - 0.5).collect();
    let mut basis: Vec<Vec<f64>> = Vec::new();
    let (mut diagonal, mut beside) = (Vec::new(), Vec::new());
    while basis.len() < STEPS_MAX.min(members.saturating_sub(1)) {
        // Twice: what is left of a vector is mostly rounding.
        for _ in 0..2 {
            let mean = vector.iter().sum::<f64>() / members as f64;
            vector.iter_mut().for_each(|x| *x -= mean);
            for other in &basis {
                let part = dot(other, &vector);
                vector.iter_mut().zip(other).for_each(|(x, other)| *x -= part * other);
            }
        }
        let size = libm::sqrt(dot(&vector, &vector));
        if size < 1e-13 {
            break;
        }
        if !basis.is_empty() {
            beside.push(size);
        }
        vector.iter_mut().for_each(|x| *x /= size);
        let next = weights.moved(&vector);
        diagonal.push(dot(&vector, &next));
        basis.push(std::mem::replace(&mut vector, next));
    }
    largest_eigenvalue(&diagonal, &beside)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// The largest size of an eigenvalue of a symmetric tridiagonal matrix whose eigenvalues are at most 1 in size, by bisection: how many lie
/// above x is how many pivots of x - A are negative (Sylvester).
fn largest_eigenvalue(diagonal: &[f64], beside: &[f64]) -> f64 {
    let is_above = |x: f64| {
        let mut pivot = 1.0;
        let mut signs = [1.0, -1.0].into_iter().map(|sign| {
            diagonal.iter().enumerate().any(|(k, a)| {
                let coupling = if k == 0 { 0.0 } else { beside[k - 1] * beside[k - 1] / pivot };
                pivot = x - sign * a - coupling;
                if pivot == 0.0 {
                    pivot = f64::MIN_POSITIVE;
                }
                pivot < 0.0
            })
        });
        signs.any(|found| found)
    };
    let (mut low, mut high) = (0.0, 1.0 + 1e-9);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if is_above(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    fn of(agents: usize, edges: &[(usize, usize)]) -> Mixing {
        Mixing::of(&Gossip::metropolis(agents, edges).expect("a graph"))
    }

    fn ring(agents: usize) -> Vec<(usize, usize)> {
        (0..agents).map(|k| (k, (k + 1) % agents)).collect()
    }

    #[test]
    fn eigenvalues_of_rings_paths_and_complete_graphs_are_the_known_ones() {
        for agents in [3, 4, 8, 31, 200] {
            // 1/3 + 2/3 cos(2 pi k / n)
            let (one, far) = (2.0 * PI / agents as f64, 2.0 * PI * (agents / 2) as f64 / agents as f64);
            let truth = (1.0 / 3.0 + 2.0 / 3.0 * one.cos()).abs().max((1.0 / 3.0 + 2.0 / 3.0 * far.cos()).abs());
            let found = of(agents, &ring(agents)).second();
            assert!((found - truth).abs() < 1e-9, "{agents}: {found} {truth}");
        }
        let complete: Vec<(usize, usize)> = (0..7).flat_map(|a| (0..a).map(move |b| (a, b))).collect();
        assert!(of(7, &complete).second() < 1e-9);
        // Two members: 1/2 and 1/2, so one round is enough.
        assert!(of(2, &[(0, 1)]).second() < 1e-9);
        // A star has no odd cycle; its centre keeps 1/n at home, and it mixes.
        let star = of(6, &(1..6).map(|k| (0, k)).collect::<Vec<_>>());
        assert!(star.ends() && (star.second() - 5.0 / 6.0).abs() < 1e-9, "{star:?}");
    }

    #[test]
    fn what_never_mixes_is_told_from_what_does() {
        assert!(!of(6, &[(0, 1), (1, 2), (3, 4), (4, 5)]).ends(), "two parts");
        let swaps = Gossip::new(2, &[(0, 1, 1.0)]).expect("weights");
        assert!(!Mixing::of(&swaps).ends(), "two that only swap");
        let square: Vec<(usize, usize, f64)> = ring(4).into_iter().map(|(a, b)| (a, b, 0.5)).collect();
        assert!(!Mixing::of(&Gossip::new(4, &square).expect("weights")).ends(), "no odd cycle, and nothing at home");
        assert!(of(4, &ring(4)).ends(), "Metropolis keeps something at home");
        assert!(of(1000, &ring(1000)).ends());
    }

    #[test]
    fn acceleration_needs_about_the_square_root_of_the_rounds() {
        let mixing = of(100, &ring(100));
        let (plain, fast) = (mixing.rounds(1.0, None, 1.0), mixing.rounds(mixing.gamma(), None, 1.0));
        assert!(plain > 10_000 && fast < plain / 25, "{plain} {fast}");
        for (gamma, rounds) in [(1.0, plain), (mixing.gamma(), fast)] {
            assert!(mixing.left(rounds, gamma) <= 1e-9 && mixing.left(rounds - 1, gamma) > 1e-9, "{gamma}");
        }
        let noisy = mixing.rounds(mixing.gamma(), Some(4.0), 1.0);
        assert!(noisy < fast && noisy > 50 && mixing.rounds(mixing.gamma(), Some(0.1), 1.0) > noisy, "{noisy}");
        assert_eq!(of(6, &[(0, 1), (1, 2), (3, 4), (4, 5)]).rounds(1.0, None, 1.0), ROUNDS_MAX);
    }
}
