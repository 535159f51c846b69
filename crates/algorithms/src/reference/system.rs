//! The unknown models of the whole problem, and what couples them: for [`super::central`], smooth or not.

use crate::objective::agents;
use crate::vector::add_scaled;
use crate::{Problem, Shard};
use sottovoce_core::PeerId;
use std::collections::BTreeMap;

/// What a survivor last heard from an agent that died, by (survivor, dead agent). An edge that is not named has
/// delivered nothing: its model is zero.
pub type LastHeard = BTreeMap<(PeerId, PeerId), Vec<f64>>;

/// The unknowns and what couples them.
pub(super) struct System<'a> {
    pub(super) dimension: usize,
    pub(super) members: Vec<Member<'a>>,
    /// Each edge between two members once, by their positions.
    pub(super) edges: Vec<(usize, usize, f64)>,
    /// Edges to what does not move: position, weight, the fixed model.
    pub(super) fixed: Vec<(usize, f64, &'a [f64])>,
}

/// One agent whose model is unknown.
pub(super) struct Member<'a> {
    pub(super) agent: PeerId,
    pub(super) shard: Shard<'a>,
    /// D_ii, dead neighbours included.
    degree: f64,
    /// mu D_ii c_i, the weight of L_i in Q; zero without data.
    pub(super) weight: f64,
}

impl Member<'_> {
    /// What the graph and the regularizer put on the diagonal of the member's block of the Hessian.
    pub(super) fn diagonal(&self) -> f64 {
        self.degree + 2.0 * self.weight * self.shard.regularization
    }
}

impl<'a> System<'a> {
    pub(super) fn new(problem: &'a Problem, dead: &[PeerId], last_heard: &'a LastHeard) -> Self {
        let n = problem.agents();
        let mut is_dead = vec![false; n];
        dead.iter().for_each(|agent| is_dead[agent.index()] = true);
        let anchored = anchored(problem, &is_dead);
        let mut position = vec![usize::MAX; n];
        let mut members = Vec::new();
        for agent in agents(problem) {
            let peers = problem.graph.peers(agent);
            if !anchored[agent.index()] || peers.is_empty() {
                continue;
            }
            position[agent.index()] = members.len();
            let (shard, degree) = (problem.shard(agent), peers.weighted_degree());
            let weight = if shard.points.is_empty() { 0.0 } else { problem.trade_off * degree * shard.confidence };
            members.push(Member { agent, shard, degree, weight });
        }
        let (mut edges, mut fixed) = (Vec::new(), Vec::new());
        for (at, member) in members.iter().enumerate() {
            for edge in problem.graph.peers(member.agent).iter() {
                if is_dead[edge.peer.index()] {
                    // An empty slice stands for the zero vector: nothing was ever delivered over this edge.
                    let heard = last_heard.get(&(member.agent, edge.peer)).map_or(&[][..], Vec::as_slice);
                    fixed.push((at, edge.weight, heard));
                } else if member.agent < edge.peer {
                    edges.push((at, position[edge.peer.index()], edge.weight));
                }
            }
        }
        System { dimension: problem.dimension(), members, edges, fixed }
    }

    pub(super) fn unknowns(&self) -> usize {
        self.members.len() * self.dimension
    }

    pub(super) fn block(&self, at: usize) -> std::ops::Range<usize> {
        at * self.dimension..(at + 1) * self.dimension
    }

    /// out = ((D - W) (x) I) v, the graph's part of the Hessian.
    pub(super) fn apply_graph(&self, v: &[f64], out: &mut [f64]) {
        let p = self.dimension;
        for ((out, v), member) in out.chunks_exact_mut(p).zip(v.chunks_exact(p)).zip(&self.members) {
            out.iter_mut().zip(v).for_each(|(out, v)| *out = member.degree * v);
        }
        for &(a, b, weight) in &self.edges {
            add_scaled(&mut out[self.block(a)], -weight, &v[self.block(b)]);
            add_scaled(&mut out[self.block(b)], -weight, &v[self.block(a)]);
        }
    }
}

/// Who is alive in a component of living agents that data, or the memory of a dead neighbour, hold in place.
fn anchored(problem: &Problem, is_dead: &[bool]) -> Vec<bool> {
    let mut anchored = vec![false; problem.agents()];
    let mut stack = Vec::new();
    for agent in agents(problem) {
        let anchor = !problem.data.points(agent).is_empty()
            || problem.graph.peers(agent).iter().any(|edge| is_dead[edge.peer.index()]);
        if anchor && !is_dead[agent.index()] && !anchored[agent.index()] {
            anchored[agent.index()] = true;
            stack.push(agent);
        }
        while let Some(at) = stack.pop() {
            for edge in problem.graph.peers(at).iter() {
                let peer = edge.peer.index();
                if !is_dead[peer] && !anchored[peer] {
                    anchored[peer] = true;
                    stack.push(edge.peer);
                }
            }
        }
    }
    anchored
}
