//! The exact curve on a realised honest graph (spec 04, section 3.1). Proof: `proofs/gopa.md`.
//!
//! What honest members publish, x + masks + noise, is Gaussian with covariance S = sigma_eta^2 I + sigma_Delta^2 L, L the Laplacian of the
//! honest graph; so a member v whose value moves by 1 is exactly as well hidden as by one Gaussian of mu^2 = theta(v) = e_v' S^-1 e_v.

use crate::account::gaussian_epsilon;
use crate::round::{div_up, sqrt_up};
use std::collections::VecDeque;

/// Which honest members that finished share masks. In compressed rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HonestGraph {
    offsets: Vec<usize>,
    neighbours: Vec<u32>,
}

/// Where the solver stops: the part of theta that may be missing, which is added to it.
const ACCURACY: f64 = 1e-13;

impl HonestGraph {
    /// The graph with these edges between `members` members; loops and doubled edges count once, and not at all.
    ///
    /// # Panics
    /// When an edge has an end that is no member.
    pub fn new(members: usize, edges: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut pairs: Vec<(u32, u32)> =
            edges.into_iter().filter(|(a, b)| a != b).flat_map(|(a, b)| [(a, b), (b, a)]).collect();
        assert!(pairs.iter().all(|&(a, _)| (a as usize) < members), "an edge between members");
        pairs.sort_unstable();
        pairs.dedup();
        let mut offsets = vec![0; members + 1];
        pairs.iter().for_each(|&(a, _)| offsets[a as usize + 1] += 1);
        (0..members).for_each(|member| offsets[member + 1] += offsets[member]);
        HonestGraph { offsets, neighbours: pairs.into_iter().map(|(_, b)| b).collect() }
    }

    /// How many members.
    pub fn members(&self) -> usize {
        self.offsets.len() - 1
    }

    /// With whom a member shares masks.
    pub fn neighbours(&self, member: usize) -> &[u32] {
        &self.neighbours[self.offsets[member]..self.offsets[member + 1]]
    }

    /// How many members can be reached from this one, itself included.
    pub fn component(&self, member: usize) -> usize {
        self.reached(member).into_iter().filter(|is_reached| *is_reached).count()
    }

    /// Who can be reached from this member.
    fn reached(&self, member: usize) -> Vec<bool> {
        let mut seen = vec![false; self.members()];
        let mut front = VecDeque::from([member]);
        seen[member] = true;
        while let Some(next) = front.pop_front() {
            for other in self.neighbours(next).iter().map(|&other| other as usize) {
                if !std::mem::replace(&mut seen[other], true) {
                    front.push_back(other);
                }
            }
        }
        seen
    }

    /// Whether everyone can be reached from everyone.
    pub fn is_connected(&self) -> bool {
        self.members() == 0 || self.component(0) == self.members()
    }

    /// theta(v) with pads: 1 / (n_c sigma_eta^2), n_c the size of v's component. Rounds up.
    pub fn theta_with_pads(&self, member: usize, noise_std: f64) -> f64 {
        div_up(1.0, noise_std * noise_std * self.component(member) as f64).next_up()
    }

    /// theta(v) = e_v' S^-1 e_v with Gaussian masks, by conjugate gradients; what the solver leaves is added, so that it is not below the
    /// truth but for what sums round. Infinity without noise.
    ///
    /// e_v is its mean over v's component, on which S is sigma_eta^2, and u, which sums to zero there: so theta is 1 / (n_c sigma_eta^2) + u' S^-1 u. With z the
    /// solver's answer and r = u - S z what it leaves, u' S^-1 u = z u + z r + r' S^-1 r, and the last is at most |r|^2 / sigma_eta^2.
    pub fn theta(&self, member: usize, noise_std: f64, mask_std: f64) -> f64 {
        let (noise, mask) = (noise_std * noise_std, mask_std * mask_std);
        // Not `noise <= 0`: what is no number protects nothing.
        if !(noise > 0.0 && mask >= 0.0) {
            return f64::INFINITY;
        }
        let reached = self.reached(member);
        let mean = 1.0 / reached.iter().filter(|is_reached| **is_reached).count() as f64;
        let mut target: Vec<f64> = reached.iter().map(|&is_reached| if is_reached { -mean } else { 0.0 }).collect();
        target[member] += 1.0;
        let (mut z, mut residual, mut direction) = (vec![0.0; target.len()], target.clone(), target.clone());
        let (mut moved, mut square) = (vec![0.0; target.len()], dot(&target, &target));
        for _ in 0..10 * target.len() + 100 {
            if square / noise <= ACCURACY * (mean / noise + dot(&z, &target)) {
                break;
            }
            self.times(noise, mask, &direction, &mut moved);
            let step = square / dot(&direction, &moved);
            z.iter_mut().zip(&direction).for_each(|(z, d)| *z += step * d);
            residual.iter_mut().zip(&moved).for_each(|(r, m)| *r -= step * m);
            let next = dot(&residual, &residual);
            direction.iter_mut().zip(&residual).for_each(|(d, r)| *d = r + next / square * *d);
            square = next;
        }
        // The recurrence drifts: what is left is computed anew.
        self.times(noise, mask, &z, &mut moved);
        residual.iter_mut().zip(target.iter().zip(&moved)).for_each(|(r, (u, m))| *r = u - m);
        mean / noise + dot(&z, &target) + dot(&z, &residual) + dot(&residual, &residual) / noise
    }

    /// The largest theta of these members.
    pub fn worst_theta(&self, members: impl IntoIterator<Item = usize>, noise_std: f64, mask_std: f64) -> f64 {
        members.into_iter().map(|member| self.theta(member, noise_std, mask_std)).fold(0.0, f64::max)
    }

    /// The least epsilon at this delta for these members, when a value moves by at most 1.
    pub fn epsilon(&self, members: impl IntoIterator<Item = usize>, noise_std: f64, mask_std: f64, delta: f64) -> f64 {
        gaussian_epsilon(sqrt_up(self.worst_theta(members, noise_std, mask_std)), delta)
    }

    /// The least standard deviation of masks, to a relative 1e-3, with which theta of these members is at most this; none where more
    /// noise is needed, or a better connected graph.
    pub fn mask_std_for(&self, members: &[usize], noise_std: f64, theta: f64) -> Option<f64> {
        let keeps = |mask_std: f64| self.worst_theta(members.iter().copied(), noise_std, mask_std) <= theta;
        let (mut low, mut high) = (0.0, noise_std);
        while !keeps(high) {
            (low, high) = (high, 2.0 * high);
            if high > 1e9 * noise_std {
                return None;
            }
        }
        while high - low > 1e-3 * high {
            let middle = 0.5 * (low + high);
            if keeps(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }

    /// The members of lowest degree, so many of them: theta falls with the degree, to first order.
    pub fn lowest_degrees(&self, count: usize) -> Vec<usize> {
        let mut members: Vec<usize> = (0..self.members()).collect();
        members.sort_by_key(|&member| (self.neighbours(member).len(), member));
        members.truncate(count);
        members
    }

    /// out <- S x.
    fn times(&self, noise: f64, mask: f64, x: &[f64], out: &mut [f64]) {
        for (member, out) in out.iter_mut().enumerate() {
            let apart = self.neighbours(member).iter().map(|&other| x[member] - x[other as usize]).sum::<f64>();
            *out = noise * x[member] + mask * apart;
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}
