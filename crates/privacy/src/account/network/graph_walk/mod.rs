//! A token that walks over any graph and is moved by noisy contractions: what one member learns of another, pair by pair. Proof:
//! `proofs/graph-walk.md`.
//!
//! Costs of a path are those of [`super::Iteration`]. From each visit of the source u the walk begins anew: f(g) is the probability that it is
//! back after g hops without having met the observer v, e(g) that it meets v first, after g hops. With F_b = sum_G f^{*b}(G) exp(lambda b^2 / G),
//! B(y) = exp(sum_b y^b F_b / b), and phi the same sum with exp(lambda / g) over e, the cycles with k contributions are at most
//! [y^{k-1}] B phi: the last contribution is looked at apart from those before it.
//!
//! **Differs from the paper** (Cyffers, Bellet and Upadhyay 2024): contributions inside one cycle are not added up, the path is known, and all
//! is numbers instead of a closed form; [`super::paper::walk_on_graph`] keeps theirs.

mod pairs;
mod worst;

pub use pairs::GraphPairs;
pub use worst::WorstPair;

use super::convert::{self, Conversion, Moments};
use super::graph::Gossip;
use super::series::exponential;
use super::walk::{BadNetwork, Observer};
use crate::account::within;

/// Hops of a gap, or of a sum of gaps, that are told apart; longer ones count as so long.
const LENGTH_MAX: usize = 2048;
/// Contributions beyond which only local composition is computed.
const CONTRIBUTIONS_MAX: u64 = 64;

/// Privacy of one member's contributions to a token that walks over a graph, against one other member that knows its path and is told
/// the outcome.
///
/// # Privacy
/// Unit: all of the source's data. See `proofs/graph-walk.md`. Holds for symmetric weights, a first holder that is drawn uniformly, and steps as
/// for [`super::Iteration`].
pub struct GraphWalk {
    contributions: u64,
    /// ln of f^{*b}(G), by b from 1 on and G from 0 on.
    returns: Vec<Vec<f64>>,
    /// ln of e(g), and of the law of the gap from the last visit to the end of the walk.
    meets: Vec<f64>,
    ends: Vec<f64>,
}

impl GraphWalk {
    /// What `observer` learns of `source`, who contributes at its first `contributions` visits. The number of hops does not matter.
    pub fn new(graph: &Gossip, source: usize, observer: usize, contributions: u64) -> Result<Self, BadNetwork> {
        let bad = |what, value: f64, accepted| Err(BadNetwork::OutOfRange { what, value, accepted });
        if source.max(observer) >= graph.members() || source == observer {
            return bad("member", source.max(observer) as f64, "one of the graph, and not the observer itself");
        }
        if contributions == 0 {
            return bad("number of contributions", 0.0, "at least 1: without a bound there is no guarantee");
        }
        if graph.distances(&[source])[observer].is_none() {
            return bad("number of paths between two members", 0.0, "at least 1: the graph is not connected");
        }
        if contributions > CONTRIBUTIONS_MAX {
            return Ok(GraphWalk { contributions, returns: Vec::new(), meets: Vec::new(), ends: Vec::new() });
        }
        let mut from_source = vec![0.0; graph.members()];
        from_source[source] = 1.0;
        let (back, meets) = first_visits(graph, graph.moved(&from_source), source, observer);
        let anywhere = vec![1.0 / graph.members() as f64; graph.members()];
        let (ends, _) = first_visits(graph, anywhere, source, observer);
        let mut returns = vec![back];
        while (returns.len() as u64) < contributions {
            let next = convolved(&returns[0], &returns[returns.len() - 1]);
            returns.push(next);
        }
        let logarithms = |law: Vec<f64>| law.into_iter().map(libm::log).collect();
        Ok(GraphWalk {
            contributions,
            returns: returns.into_iter().map(logarithms).collect(),
            meets: logarithms(meets),
            ends: logarithms(ends),
        })
    }

    /// Whom its guarantee is against.
    pub fn observer(&self) -> Observer {
        Observer { colluders: 1, knows_path: true, told_outcome: true }
    }

    /// The epsilon at `delta` of contributions with this noise multiplier, sigma / sensitivity; rounds up.
    pub fn epsilon_at(&self, noise_multiplier: f64, delta: f64) -> f64 {
        convert::epsilon(self, noise_multiplier, within(delta), Conversion::Gaussian)
    }

    /// The least noise multiplier, to a relative 1e-6, with which [`GraphWalk::epsilon_at`] is at most `epsilon`; none outside of
    /// epsilon > 0 and 0 < delta < 1.
    pub fn noise_multiplier(&self, epsilon: f64, delta: f64) -> Option<f64> {
        convert::noise_multiplier(self, epsilon, delta, Conversion::Gaussian)
    }
}

/// The laws of the first visit of the source, without the observer before, and of the observer, without the source before, by hops from 1 on, of a
/// walk that has this law at its first hop. What is left after the longest time counts at that time.
fn first_visits(graph: &Gossip, mut law: Vec<f64>, source: usize, observer: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut own, mut met) = (vec![0.0], vec![0.0]);
    for _ in 1..LENGTH_MAX {
        own.push(std::mem::take(&mut law[source]));
        met.push(std::mem::take(&mut law[observer]));
        law = graph.moved(&law);
    }
    // Whoever comes first of the two then, either may: both.
    let left: f64 = law.iter().sum::<f64>() * (1.0 + 1e-9) + 1e-12;
    own.push(left);
    met.push(left);
    (own, met)
}

/// The law of a sum of two; what is longer than can be told apart counts as that long.
fn convolved(a: &[f64], b: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; LENGTH_MAX + 1];
    let mut beyond = 0.0;
    // Masses of b from each length on.
    let mut tails = vec![0.0; b.len() + 1];
    for length in (0..b.len()).rev() {
        tails[length] = tails[length + 1] + b[length];
    }
    for (shift, &mass) in a.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
        let fits = LENGTH_MAX - shift;
        sum[shift..LENGTH_MAX].iter_mut().zip(b).for_each(|(sum, other)| *sum += mass * other);
        beyond += mass * tails[fits];
    }
    sum[LENGTH_MAX] = beyond;
    sum
}

impl Moments for GraphWalk {
    fn most(&self) -> f64 {
        self.contributions as f64
    }

    fn rough(&self, lambda: f64) -> f64 {
        self.log_moment(lambda)
    }

    fn log_moment(&self, lambda: f64) -> f64 {
        if self.returns.is_empty() {
            return f64::INFINITY;
        }
        let most = self.returns.len();
        let moment = |law: &[f64], height: f64| -> f64 {
            let term = |(g, log): (usize, &f64)| libm::exp(log + lambda * height * height / (g as f64).max(height));
            law.iter().enumerate().skip(1).map(term).sum()
        };
        let faces: Vec<f64> = (1..).zip(&self.returns).map(|(b, law)| moment(law, f64::from(b))).collect();
        let mut before = Vec::new();
        exponential(&faces, &mut before, 1.0);
        let (met, ended) = (moment(&self.meets, 1.0), moment(&self.ends, 1.0));
        // The probabilities of a meeting from a visit on, and of a visit before a meeting from the end on backwards.
        let mass = |law: &[f64]| law.iter().map(|&log| libm::exp(log)).sum::<f64>();
        let (meeting, meeting_least) = (mass(&self.meets).min(1.0), mass(&self.meets[..LENGTH_MAX]));
        let visit = mass(&self.ends[..LENGTH_MAX]);
        // Forwards: the last contribution needs no observer after it.
        let mut paths = vec![1.0];
        for k in 1..most {
            paths.push((1..=k).map(|j| paths[k - j] * before[j - 1] * met).sum());
        }
        let forwards: f64 = (1..=most).map(|k| paths[most - k] * (before[k - 1] * met + before[k])).sum();
        // Backwards: from a meeting, with j contributions left; the earliest needs no meeting before it.
        let mut left = vec![1.0];
        for j in 1..=most {
            let rest: f64 = (1..j).map(|k| before[k - 1] * met * left[j - k]).sum();
            left.push(rest + met / meeting_least * before[j - 1]);
        }
        let rest: f64 = (1..most).map(|k| ended * before[k - 1] * meeting * left[most - k]).sum();
        let backwards = (1.0 - visit).max(0.0) * left[most] + rest + ended * before[most - 1];
        let moment = libm::log(forwards + backwards - 1.0) + 1e-9;
        if moment.is_nan() { f64::INFINITY } else { moment.max(0.0) }
    }
}

#[cfg(test)]
mod tests;
