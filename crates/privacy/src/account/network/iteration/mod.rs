//! A token that every holder moves by a contraction and Gaussian noise, on the complete graph: amplification by iteration (private SGD
//! by a walk, thesis Algorithm 4.5, and sums as a special case). Proof: `proofs/network-iteration.md`.
//!
//! What observers see of one path is mu-Gaussian with mu^2 = X (sensitivity / sigma)^2, X the sum over cycles of the squared slopes of
//! the convex minorant of the member's [staircase](super::staircase). The paths are known to the observers and drawn beforehand, so
//! delta(eps) = E delta_mu(eps), and all that is needed of the law of X is E exp(lambda X).
//!
//! **One cycle.** A combinatorial lemma: if the gaps between the member's visits, and the last one to the cycle's end, come in every
//! order alike, the faces of the minorant have the law of the cycles of a uniform permutation of the gaps. With G_b a sum of b gaps,
//! ```text
//! sum_k y^k E_k exp(lambda X) = exp( sum_b (y^b / b) E exp(lambda b^2 / G_b) )
//! ```
//! **Differs from the thesis:** contributions inside one cycle are composed jointly; its sketch adds them up, which is wrong.

use super::convert::{self, Conversion, Moments};
use super::gaps::{Gaps, log_mass};
use super::series::{Counted, Point, after_last, exponential};
use super::walk::{KnownEpsilon, Observer, Walk};
use crate::Ledger;
use crate::account::{Accountant, within};

/// Above so many contributions only local composition is computed.
pub(super) const CONTRIBUTIONS_MAX: u64 = 2048;
/// Numbers in each of the two tables of a walk whose hops are counted; beyond, walks without end stand in.
const TABLE_MAX: u64 = 1 << 20;

/// Privacy of one member's contributions to a token on the complete graph, against observers who know its path.
///
/// # Privacy
/// Unit: all of one member's data. See `proofs/network-iteration.md`. Holds for steps tau <- Pi(tau - gamma (g(tau) + noise)) with a
/// constant gamma, tau - gamma g(tau) a contraction for every member, |g - g'| at most the sensitivity, Pi a projection onto
/// a convex set, and noise of sigma on each coordinate at every hop, also where nothing is contributed.
pub struct Iteration {
    walk: Walk,
    gaps: Option<Gaps>,
    faces: Option<Faces>,
    known: KnownEpsilon,
}

impl Iteration {
    /// The accountant of a walk.
    pub fn new(walk: Walk) -> Self {
        let (p, r) = walk.visits();
        let gaps = (walk.contributions <= CONTRIBUTIONS_MAX).then(|| Gaps::new(p + r, walk.contributions));
        let faces = if walk.is_steady() { Faces::new(&walk) } else { None };
        Iteration { walk, gaps, faces, known: KnownEpsilon::default() }
    }

    /// Whom its guarantee is against.
    pub fn observer(&self) -> Observer {
        self.walk.observer()
    }

    /// The epsilon at `delta` of contributions with this noise multiplier, sigma / sensitivity; rounds up.
    pub fn epsilon_at(&self, noise_multiplier: f64, delta: f64) -> f64 {
        convert::epsilon(self, noise_multiplier, within(delta), Conversion::Gaussian)
    }

    /// The same from Renyi divergences alone, which need less of a proof: a larger value.
    pub fn epsilon_by_renyi(&self, noise_multiplier: f64, delta: f64) -> f64 {
        convert::epsilon(self, noise_multiplier, within(delta), Conversion::Renyi)
    }

    /// The least noise multiplier, to a relative 1e-6, with which [`Iteration::epsilon_at`] is at most `epsilon`; none outside of
    /// epsilon > 0 and 0 < delta < 1.
    pub fn noise_multiplier(&self, epsilon: f64, delta: f64) -> Option<f64> {
        convert::noise_multiplier(self, epsilon, delta, Conversion::Gaussian)
    }

    /// The same for [`Iteration::epsilon_by_renyi`].
    pub fn noise_multiplier_by_renyi(&self, epsilon: f64, delta: f64) -> Option<f64> {
        convert::noise_multiplier(self, epsilon, delta, Conversion::Renyi)
    }

    /// ln E exp(lambda X) of a walk without end in which the member makes all its contributions, and what follows the last of them is
    /// seen at the next visit of anyone who matters. Above the value of every number of hops.
    fn endless(&self, lambda: f64) -> f64 {
        let Some(gaps) = &self.gaps else { return f64::INFINITY };
        let (p, r) = self.walk.visits();
        // After a contribution the next visit is the member's own again, or an observer's.
        let (again, seen) = (p / (p + r), r / (p + r));
        let moments = gaps.moments(libm::log(again), |b, g| lambda * b * b / g);
        let most = moments.len();
        let mut cycles = Vec::new();
        exponential(&moments, &mut cycles, 1.0);
        let moment = libm::log(endless_paths(&cycles, again, seen)) + 1e-11 * (10.0 + most as f64);
        if moment.is_nan() { f64::INFINITY } else { moment.max(0.0) }
    }
}

/// The sum over paths of K contributions, from the sums over cycles with k of them, each times `again`^k: all visits of a cycle
/// but the last are the member's own, and the last contribution needs no observer after it.
pub(super) fn endless_paths(cycles: &[f64], again: f64, seen: f64) -> f64 {
    let most = cycles.len() - 1;
    let mut paths = vec![1.0];
    for k in 1..=most {
        let sum: f64 = (1..=k).map(|j| paths[k - j] * cycles[j]).sum();
        paths.push(if k == most { sum / again } else { sum * seen / again });
    }
    paths[most]
}

impl Moments for Iteration {
    fn most(&self) -> f64 {
        (self.walk.contributions * self.walk.tokens) as f64
    }

    fn rough(&self, lambda: f64) -> f64 {
        self.walk.tokens as f64 * self.endless(lambda)
    }

    fn log_moment(&self, lambda: f64) -> f64 {
        // PRIVACY: tokens walk independently, and given their paths their costs add up.
        self.walk.tokens as f64 * self.of_one_token(lambda)
    }
}

impl Iteration {
    fn of_one_token(&self, lambda: f64) -> f64 {
        if !self.walk.is_steady() {
            // M becomes 2 M - 1: `proofs/network-iteration.md`, members away.
            let endless = self.endless(lambda);
            return endless + libm::log(2.0 - libm::exp(-endless)) + 1e-15;
        }
        let counted = self.faces.as_ref().map_or(f64::INFINITY, |faces| faces.log_moment(lambda));
        counted.min(self.endless(lambda))
    }
}

impl Accountant for Iteration {
    fn epsilon(&self, ledger: &Ledger, delta: f64) -> f64 {
        self.walk.epsilon(ledger, |multiplier| self.known.or(multiplier, delta, || self.epsilon_at(multiplier, delta)))
    }
}

/// Walks of T hops, counted path by path.
struct Faces {
    walk: Counted,
    /// ln of the weights of sums of b gaps, by b and length: gaps from one visit of the member to the next.
    between: Vec<Vec<f64>>,
    /// The same where one of the gaps follows the last contribution: later visits do not end it.
    after_last: Vec<Vec<f64>>,
}

impl Faces {
    /// None where the tables would be too large.
    fn new(walk: &Walk) -> Option<Self> {
        let counted = walk.counted(TABLE_MAX / walk.contributions)?;
        let (p, r) = counted.visits;
        let (hazard, log_share) = (p + r, libm::log(p / (p + r)));
        let weight = |b: u64, g: u64| match g >= b {
            true => log_mass(b, g, hazard) + b as f64 * log_share,
            false => f64::NEG_INFINITY,
        };
        let mut between: Vec<Vec<f64>> = vec![vec![f64::NEG_INFINITY; walk.hops as usize + 1]];
        between[0][0] = 0.0;
        between.extend((1..=walk.contributions).map(|b| (0..=walk.hops).map(|g| weight(b, g)).collect()));
        let fewer = &between[..walk.contributions as usize];
        let after_last = fewer.iter().map(|fewer| after_last(fewer, counted.visits)).collect();
        between.remove(0);
        Some(Faces { walk: counted, between, after_last })
    }

    /// ln E exp(lambda X), rounded up.
    fn log_moment(&self, lambda: f64) -> f64 {
        let most = self.between.len();
        let circle = &self.walk.circle;
        let transform = |(b, weights): (usize, &Vec<f64>)| {
            let height = b as f64 + 1.0;
            circle.transform(|g| weights[g] + lambda * height * height / (g as f64).max(height))
        };
        let between: Vec<Vec<Point>> = self.between.iter().enumerate().map(transform).collect();
        let after_last: Vec<Vec<Point>> = self.after_last.iter().enumerate().map(transform).collect();
        let one = Point::new(1.0, 0.0);
        let (p, r) = self.walk.visits;
        let (mut faces, mut cycles) = (vec![one; most], Vec::new());
        self.walk.log_moment(most, |index, z, whole, last| {
            faces.iter_mut().zip(&between).for_each(|(face, between)| *face = between[index]);
            exponential(&faces, &mut cycles, one);
            // Hops of others before the member's first visit in a cycle cost nothing.
            let idle = one / (one - z * (1.0 - p - r));
            whole[0] = idle;
            for k in 1..=most {
                whole[k] = cycles[k] * idle;
                // One gap of k, in any place alike, is the one after the last contribution: it is in a face of b gaps.
                let sum: Point = (1..=k).map(|b| after_last[b - 1][index] * cycles[k - b]).sum();
                last[k] = sum / k as f64 * idle;
            }
        })
    }
}

#[cfg(test)]
mod tests;
