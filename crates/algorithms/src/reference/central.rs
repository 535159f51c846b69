//! The minimum of Q over all models at once, by someone who sees everybody's data.
//!
//! | unknowns np | smooth losses |
//! |---|---|
//! | up to [`DENSE_UNKNOWNS_MAX`] | Newton with the Cholesky factor of the whole Hessian |
//! | more | Newton with conjugate gradients, preconditioned by the agents' own blocks of the Hessian |
//!
//! The Hessian is (D - W) (x) I_p + blockdiag(mu D_ii c_i Hess L_i). For the hinge, coordinate ascent on the dual, for
//! small problems: each of its steps touches every model.
//!
//! Not every agent is an unknown: an isolated agent has its solitary model; a component in which nobody has data
//! keeps its models at zero, where all algorithms start; and models of agents that died are given, one for each
//! edge over which a survivor still remembers them ([`minimum_of_survivors`]).

use crate::objective::{add_weighted_gram, agents, local_value};
use crate::reference::local::{DENSE_DIMENSION_MAX, solitary_model};
use crate::reference::newton::{self, Smooth};
use crate::reference::{central_hinge, cholesky};
use crate::vector::{add_scaled, distance_squared, dot};
use crate::{Loss, Problem, Shard};
use sottovoce_core::{PeerId, Rows};
use std::collections::BTreeMap;

/// Up to this many unknowns the whole Hessian is formed and factored. Both ways agree to 1e-12; with a thousand unknowns
/// conjugate gradients are already twenty times as fast.
pub const DENSE_UNKNOWNS_MAX: usize = 200;

/// Beyond this many numbers in all agents' blocks together, the preconditioner is the diagonal of the Hessian.
const BLOCK_NUMBERS_MAX: usize = 50_000_000;

/// Conjugate-gradient steps for one Newton direction.
const CG_STEPS_MAX: usize = 20_000;

/// What a survivor last heard from an agent that died, by (survivor, dead agent). An edge that is not named has
/// delivered nothing: its model is zero.
pub type LastHeard = BTreeMap<(PeerId, PeerId), Vec<f64>>;

/// argmin Q, one row per agent.
pub fn minimum(problem: &Problem) -> Rows {
    minimum_of_survivors(problem, &[], &LastHeard::new())
}

/// The optimum of the agents that are not in `dead`, with the models they last heard from dead neighbours held fixed:
/// the minimum over the survivors' rows of 1/2 sum W_ij |Theta_i - Theta_j|^2 + mu sum_i D_ii c_i L_i(Theta_i), where for
/// a dead j Theta_j is what i last heard. Rows of dead agents are zero.
pub fn minimum_of_survivors(problem: &Problem, dead: &[PeerId], last_heard: &LastHeard) -> Rows {
    let p = problem.dimension();
    let mut models = Rows::zeros(problem.agents(), p);
    for agent in agents(problem).filter(|agent| !dead.contains(agent) && problem.graph.peers(*agent).is_empty()) {
        models.row_mut(agent.index()).copy_from_slice(&solitary_model(&problem.shard(agent)));
    }
    let system = System::new(problem, dead, last_heard);
    if system.members.is_empty() {
        return models;
    }
    let theta = if problem.loss == Loss::Hinge { central_hinge::solve(&system) } else { solve_smooth(&system) };
    for (member, theta) in system.members.iter().zip(theta.chunks_exact(p)) {
        models.row_mut(member.agent.index()).copy_from_slice(theta);
    }
    models
}

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
    agent: PeerId,
    pub(super) shard: Shard<'a>,
    /// D_ii, dead neighbours included.
    degree: f64,
    /// mu D_ii c_i, the weight of L_i in Q; zero without data.
    pub(super) weight: f64,
}

impl<'a> System<'a> {
    fn new(problem: &'a Problem, dead: &[PeerId], last_heard: &'a LastHeard) -> Self {
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

    fn unknowns(&self) -> usize {
        self.members.len() * self.dimension
    }

    pub(super) fn block(&self, at: usize) -> std::ops::Range<usize> {
        at * self.dimension..(at + 1) * self.dimension
    }

    /// out = ((D - W) (x) I) v, the graph's part of the Hessian.
    fn apply_graph(&self, v: &[f64], out: &mut [f64]) {
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

fn solve_smooth(system: &System<'_>) -> Vec<f64> {
    let unknowns = system.unknowns();
    let (p, n) = (system.dimension, system.members.len());
    let scheme = if unknowns <= DENSE_UNKNOWNS_MAX {
        Scheme::Dense
    } else if p <= DENSE_DIMENSION_MAX && n * p * p <= BLOCK_NUMBERS_MAX {
        Scheme::Blocks
    } else {
        Scheme::Diagonal
    };
    solve_smooth_by(system, scheme)
}

fn solve_smooth_by(system: &System<'_>, scheme: Scheme) -> Vec<f64> {
    let unknowns = system.unknowns();
    let (p, n) = (system.dimension, system.members.len());
    let matrix = match scheme {
        Scheme::Dense => unknowns * unknowns,
        Scheme::Blocks => n * p * p,
        Scheme::Diagonal => unknowns,
    };
    let points = system.members.iter().map(|member| member.shard.points.len()).sum();
    let mut function = Whole {
        system,
        scheme,
        curvature: vec![0.0; points],
        matrix: vec![0.0; matrix],
        work: vec![0.0; newton::CG_WORK * unknowns],
    };
    let mut theta = vec![0.0; unknowns];
    newton::minimize(&mut function, &mut theta, &mut vec![0.0; newton::WORK * unknowns]);
    theta
}

/// How Newton directions are found.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Scheme {
    Dense,
    Blocks,
    Diagonal,
}

/// Q as a function of all unknowns, up to a constant.
struct Whole<'a> {
    system: &'a System<'a>,
    scheme: Scheme,
    /// By point, in the order of the members: w_i / m_i times the second derivative of the loss.
    curvature: Vec<f64>,
    /// The factor of the Hessian, of each agent's block of it, or its diagonal.
    matrix: Vec<f64>,
    work: Vec<f64>,
}

impl Smooth for Whole<'_> {
    fn value_and_gradient(&mut self, at: &[f64], gradient: &mut [f64]) -> f64 {
        let (system, p) = (self.system, self.system.dimension);
        system.apply_graph(at, gradient);
        let mut value = 0.0;
        for &(a, b, weight) in &system.edges {
            value += 0.5 * weight * distance_squared(&at[system.block(a)], &at[system.block(b)]);
        }
        for &(a, weight, model) in &system.fixed {
            let own = &at[system.block(a)];
            add_scaled(&mut gradient[system.block(a)][..model.len()], -weight, model);
            value += 0.5 * weight * if model.is_empty() { dot(own, own) } else { distance_squared(own, model) };
        }
        for ((member, theta), out) in system.members.iter().zip(at.chunks_exact(p)).zip(gradient.chunks_exact_mut(p)) {
            if member.weight > 0.0 {
                let (shard, share) = (&member.shard, member.weight / member.shard.points.len() as f64);
                for (x, y) in shard.points.iter() {
                    add_scaled(out, share * shard.loss.slope(dot(x, theta), y), x);
                }
                add_scaled(out, 2.0 * member.weight * shard.regularization, theta);
                value += member.weight * local_value(shard, theta);
            }
        }
        value
    }

    fn direction(&mut self, at: &[f64], gradient: &[f64], accuracy: f64, out: &mut [f64]) {
        self.note_curvature(at);
        let (system, curvature) = (self.system, &*self.curvature);
        if self.scheme == Scheme::Dense {
            let unknowns = system.unknowns();
            cholesky::factor_regularized(&mut self.matrix, unknowns, |hessian| {
                build_hessian(system, curvature, hessian)
            });
            out.iter_mut().zip(gradient).for_each(|(out, gradient)| *out = -gradient);
            return cholesky::solve(&self.matrix, unknowns, out);
        }
        build_preconditioner(system, curvature, self.scheme, &mut self.matrix);
        let (matrix, scheme, p) = (&*self.matrix, self.scheme, system.dimension);
        newton::conjugate_gradients(
            |v, image| apply_hessian(system, curvature, v, image),
            |r, z| {
                if scheme == Scheme::Blocks {
                    z.copy_from_slice(r);
                    for (z, factor) in z.chunks_exact_mut(p).zip(matrix.chunks_exact(p * p)) {
                        cholesky::solve(factor, p, z);
                    }
                } else {
                    z.iter_mut().zip(r).zip(matrix).for_each(|((z, r), diagonal)| *z = r / diagonal);
                }
            },
            gradient,
            accuracy,
            CG_STEPS_MAX,
            out,
            &mut self.work,
        );
        out.iter_mut().for_each(|out| *out = -*out);
    }
}

impl Whole<'_> {
    fn note_curvature(&mut self, at: &[f64]) {
        let mut out = self.curvature.iter_mut();
        for (member, theta) in self.system.members.iter().zip(at.chunks_exact(self.system.dimension)) {
            let share = member.weight / member.shard.points.len().max(1) as f64;
            for ((x, y), out) in member.shard.points.iter().zip(&mut out) {
                *out = share * member.shard.loss.curvature(dot(x, theta), y);
            }
        }
    }
}

/// Each member with the curvature of its points.
fn with_curvature<'a>(
    system: &'a System<'a>,
    mut curvature: &'a [f64],
) -> impl Iterator<Item = (&'a Member<'a>, &'a [f64])> {
    system.members.iter().map(move |member| {
        let (own, rest) = curvature.split_at(member.shard.points.len());
        curvature = rest;
        (member, own)
    })
}

/// What the graph and the regularizer put on the diagonal of a member's block.
pub(super) fn diagonal(member: &Member<'_>) -> f64 {
    member.degree + 2.0 * member.weight * member.shard.regularization
}

fn apply_hessian(system: &System<'_>, curvature: &[f64], v: &[f64], out: &mut [f64]) {
    let p = system.dimension;
    system.apply_graph(v, out);
    for (((member, curvature), v), out) in
        with_curvature(system, curvature).zip(v.chunks_exact(p)).zip(out.chunks_exact_mut(p))
    {
        for ((x, _), curvature) in member.shard.points.iter().zip(curvature) {
            add_scaled(out, curvature * dot(x, v), x);
        }
        add_scaled(out, 2.0 * member.weight * member.shard.regularization, v);
    }
}

fn build_hessian(system: &System<'_>, curvature: &[f64], hessian: &mut [f64]) {
    let (p, unknowns) = (system.dimension, system.unknowns());
    hessian.fill(0.0);
    let mut block = vec![0.0; p * p];
    for (at, (member, curvature)) in with_curvature(system, curvature).enumerate() {
        build_block(member, curvature, &mut block);
        for (row, block) in block.chunks_exact(p).enumerate() {
            hessian[(at * p + row) * unknowns + at * p..][..p].copy_from_slice(block);
        }
    }
    for &(a, b, weight) in &system.edges {
        let (high, low) = (a.max(b), a.min(b));
        for k in 0..p {
            hessian[(high * p + k) * unknowns + low * p + k] = -weight;
        }
    }
}

/// The lower triangle of a member's own block of the Hessian.
fn build_block(member: &Member<'_>, curvature: &[f64], block: &mut [f64]) {
    let p = member.shard.points.dimension;
    block.fill(0.0);
    add_weighted_gram(member.shard.points, curvature.iter().copied(), block);
    (0..p).for_each(|k| block[k * p + k] += diagonal(member));
}

fn build_preconditioner(system: &System<'_>, curvature: &[f64], scheme: Scheme, matrix: &mut [f64]) {
    let p = system.dimension;
    for (at, (member, curvature)) in with_curvature(system, curvature).enumerate() {
        if scheme == Scheme::Blocks {
            let block = &mut matrix[at * p * p..][..p * p];
            cholesky::factor_regularized(block, p, |block| build_block(member, curvature, block));
        } else {
            let out = &mut matrix[at * p..][..p];
            out.fill(diagonal(member));
            for ((x, _), curvature) in member.shard.points.iter().zip(curvature) {
                out.iter_mut().zip(x).for_each(|(out, x)| *out += curvature * x * x);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Regularization;
    use crate::objective::{gradient_block, local_gradient, local_smoothness, value};
    use crate::reference::local::solitary_models;
    use crate::testing::{SMOOTH, everyone, normals, random_problem};
    use crate::vector::{largest, largest_difference};
    use sottovoce_core::Coin;

    #[test]
    fn the_gradient_vanishes_at_the_minimum() {
        for loss in SMOOTH {
            for (seed, trade_off) in [(1, 0.1), (2, 1.0), (3, 10.0)] {
                let regularization = Regularization::Constant(1e-3);
                let problem = Problem { trade_off, regularization, ..random_problem(seed, 20, 6, loss) };
                let models = minimum(&problem);
                let mut gradient = vec![0.0; 6];
                for agent in everyone(&problem) {
                    gradient_block(&problem, agent, &models, &mut gradient);
                    assert!(largest(&gradient) < 1e-12, "{loss:?} {trade_off}: {}", largest(&gradient));
                }
                // Isolated agents: alone with data, and alone without.
                assert_eq!(models.row(18), solitary_model(&problem.shard(PeerId(18))));
                assert_eq!(models.row(19), [0.0; 6]);
            }
        }
    }

    #[test]
    fn all_schemes_find_the_same_minimum() {
        for loss in SMOOTH {
            for trade_off in [0.1, 1.0, 10.0] {
                let regularization = Regularization::Constant(1e-3);
                let problem = Problem { trade_off, regularization, ..random_problem(4, 30, 10, loss) };
                let heard = LastHeard::new();
                let system = System::new(&problem, &[], &heard);
                let dense = solve_smooth_by(&system, Scheme::Dense);
                for scheme in [Scheme::Blocks, Scheme::Diagonal] {
                    let error = largest_difference(&dense, &solve_smooth_by(&system, scheme));
                    assert!(error < 1e-10, "{loss:?} {trade_off} {scheme:?}: {error}");
                }
            }
        }
    }

    #[test]
    fn check_00_a_a_large_trade_off_leaves_everyone_alone() {
        for loss in SMOOTH {
            let problem = Problem { trade_off: 1e8, ..random_problem(5, 12, 4, loss) };
            let (models, solitary) = (minimum(&problem), solitary_models(&problem));
            for agent in everyone(&problem).filter(|agent| problem.data.size(*agent) > 0) {
                let distance = distance_squared(models.row(agent.index()), solitary.row(agent.index())).sqrt();
                assert!(distance < 1e-3, "{loss:?} {agent:?}: {distance}");
            }
        }
    }

    #[test]
    fn check_00_a_a_small_trade_off_makes_one_weighted_pooled_model() {
        for loss in SMOOTH {
            // Once by the whole Hessian's factor, once by conjugate gradients.
            for (n, p) in [(12, 4), (40, 8)] {
                let problem = Problem { trade_off: 1e-8, ..random_problem(6, n, p, loss) };
                let pooled = weighted_pooled_minimum(&problem);
                let models = minimum(&problem);
                for agent in everyone(&problem).filter(|agent| !problem.graph.peers(*agent).is_empty()) {
                    let error = largest_difference(models.row(agent.index()), &pooled);
                    assert!(error < 1e-4, "{loss:?} {agent:?}: {error}");
                }
            }
        }
    }

    /// argmin sum_i D_ii c_i L_i(theta), by gradient descent, which shares nothing with the solver under test.
    fn weighted_pooled_minimum(problem: &Problem) -> Vec<f64> {
        let p = problem.dimension();
        let weight = |agent| problem.graph.peers(agent).weighted_degree() * problem.shard(agent).confidence;
        let smoothness: f64 = everyone(problem)
            .map(|agent| weight(agent) * local_smoothness(&problem.shard(agent)).expect("a smooth loss"))
            .sum();
        let mut theta = vec![0.0; p];
        let (mut gradient, mut one) = (vec![0.0; p], vec![0.0; p]);
        for _ in 0..100_000 {
            gradient.fill(0.0);
            for agent in everyone(problem) {
                local_gradient(&problem.shard(agent), &theta, &mut one);
                add_scaled(&mut gradient, weight(agent), &one);
            }
            if largest(&gradient) < 1e-10 {
                return theta;
            }
            add_scaled(&mut theta, -1.0 / smoothness, &gradient);
        }
        panic!("gradient descent did not converge: {}", largest(&gradient));
    }

    #[test]
    fn nothing_near_the_hinge_minimum_is_lower() {
        let mut coin = Coin::new(7, 0, 0);
        for seed in 0..5 {
            let (n, p) = (10, 4);
            let problem = random_problem(seed, n, p, Loss::Hinge);
            let models = minimum(&problem);
            let least = value(&problem, &models);
            for trial in 0..300 {
                let size = [1e-1, 1e-3, 1e-5][trial % 3];
                let mut near = models.clone();
                add_scaled(near.values_mut(), size, &normals(&mut coin, n * p));
                assert!(value(&problem, &near) >= least - 1e-13, "{seed} {size}");
            }
        }
    }

    #[test]
    fn survivors_settle_around_what_they_last_heard() {
        let (n, p) = (14, 3);
        let dead = [PeerId(2), PeerId(5)];
        for loss in SMOOTH {
            let problem = random_problem(8, n, p, loss);
            let mut coin = Coin::new(9, 0, 0);
            let mut heard = LastHeard::new();
            for gone in dead {
                for edge in problem.graph.peers(gone).iter().skip(1) {
                    heard.insert((edge.peer, gone), normals(&mut coin, p));
                }
            }
            let models = minimum_of_survivors(&problem, &dead, &heard);
            for agent in everyone(&problem).filter(|agent| !dead.contains(agent)) {
                let (shard, peers) = (problem.shard(agent), problem.graph.peers(agent));
                let mut gradient = vec![0.0; p];
                local_gradient(&shard, models.row(agent.index()), &mut gradient);
                let weight = problem.trade_off * shard.confidence;
                let own = models.row(agent.index());
                (0..p).for_each(|k| gradient[k] = peers.weighted_degree() * (own[k] + weight * gradient[k]));
                for edge in peers.iter() {
                    match (dead.contains(&edge.peer), heard.get(&(agent, edge.peer))) {
                        (false, _) => add_scaled(&mut gradient, -edge.weight, models.row(edge.peer.index())),
                        (true, Some(last)) => add_scaled(&mut gradient, -edge.weight, last),
                        (true, None) => {}
                    }
                }
                assert!(largest(&gradient) < 1e-12, "{loss:?} {agent:?}: {gradient:?}");
            }
            assert!(dead.iter().all(|gone| models.row(gone.index()) == [0.0; 3]));
        }
        let problem = random_problem(8, n, p, Loss::Hinge);
        let all = minimum(&problem);
        let heard: LastHeard =
            problem.graph.peers(PeerId(2)).iter().map(|edge| ((edge.peer, PeerId(2)), all.row(2).to_vec())).collect();
        let rest = minimum_of_survivors(&problem, &[PeerId(2)], &heard);
        for agent in everyone(&problem).filter(|agent| *agent != PeerId(2)) {
            let error = largest_difference(all.row(agent.index()), rest.row(agent.index()));
            assert!(error < 1e-9, "an agent frozen at its optimum moves nobody: {error}");
        }
    }

    #[test]
    fn a_component_without_data_stays_at_zero() {
        let mut problem = random_problem(10, 12, 3, Loss::Logistic);
        let mut edges: Vec<_> = problem.graph.edges().map(|(a, b, weight)| (a.0, b.0, weight)).collect();
        edges.retain(|(a, b, _)| *a != 1 && *b != 1);
        edges.push((1, 11, 1.0));
        problem.graph = sottovoce_core::Graph::from_edges(12, &edges).expect("a graph");
        let models = minimum(&problem);
        assert_eq!((models.row(1), models.row(11)), (&[0.0; 3][..], &[0.0; 3][..]));
        assert!(largest(models.row(0)) > 0.0);
    }

    /// The size that a report must solve in passing. Prints its time; run with --nocapture.
    #[test]
    fn ten_thousand_unknowns() {
        let (n, p) = (100, 100);
        for loss in SMOOTH {
            let mut problem = random_problem(11, n, p, loss);
            let mut coin = Coin::new(12, 0, 0);
            let mut data = crate::Dataset::new(p);
            for agent in 0..n {
                let m = 10 + (agent * 90) / (n - 1);
                let labels: Vec<f64> = (0..m).map(|_| if coin.unit() < 0.5 { -1.0 } else { 1.0 }).collect();
                data.push_agent(&normals(&mut coin, m * p), &labels);
            }
            problem.data = data;
            problem.points_max = 100.0;
            problem.regularization = Regularization::OneOverPoints;
            let start = std::time::Instant::now();
            let models = minimum(&problem);
            println!("{loss:?}: {:.2?}", start.elapsed());
            let mut gradient = vec![0.0; p];
            for agent in everyone(&problem) {
                gradient_block(&problem, agent, &models, &mut gradient);
                assert!(largest(&gradient) < 1e-10, "{loss:?} {agent:?}: {}", largest(&gradient));
            }
        }
    }
}
