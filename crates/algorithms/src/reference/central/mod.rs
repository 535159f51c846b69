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

use crate::cholesky;
use crate::objective::{add_weighted_gram, agents, local_value};
use crate::reference::central_hinge;
use crate::reference::local::{DENSE_DIMENSION_MAX, solitary_model};
use crate::reference::newton::{self, Smooth};
pub use crate::reference::system::LastHeard;
use crate::reference::system::{Member, System};
use crate::vector::{add_scaled, distance_squared, dot, norm};
use crate::{Loss, Problem};
use sottovoce_core::{Coin, PeerId, Rows};

/// Up to this many unknowns the whole Hessian is formed and factored. Both ways agree to 1e-12; with a thousand unknowns
/// conjugate gradients are already twenty times as fast.
pub const DENSE_UNKNOWNS_MAX: usize = 200;

/// Beyond this many numbers in all agents' blocks together, the preconditioner is the diagonal of the Hessian.
const BLOCK_NUMBERS_MAX: usize = 50_000_000;

/// Conjugate-gradient steps for one Newton direction.
const CG_STEPS_MAX: usize = 20_000;

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

/// The smallest eigenvalue of the Hessian of Q at `theta` over the unknown models: for the squared loss, sigma itself. By
/// inverse iteration on the factor of the whole Hessian, so for small problems; zero if it is singular.
pub fn smallest_curvature(problem: &Problem, theta: &Rows) -> f64 {
    let heard = LastHeard::new();
    let system = System::new(problem, &[], &heard);
    let unknowns = system.unknowns();
    let mut whole =
        Whole { system: &system, scheme: Scheme::Dense, curvature: Vec::new(), matrix: Vec::new(), work: Vec::new() };
    whole.curvature.resize(system.members.iter().map(|member| member.shard.points.len()).sum(), 0.0);
    let at: Vec<f64> =
        system.members.iter().flat_map(|member| theta.row(member.agent.index()).iter().copied()).collect();
    whole.note_curvature(&at);
    let mut factor = vec![0.0; unknowns * unknowns];
    build_hessian(&system, &whole.curvature, &mut factor);
    if unknowns == 0 || cholesky::factor(&mut factor, unknowns).is_err() {
        return 0.0;
    }
    // The starting direction is arbitrary but fixed; it must not be orthogonal to the answer.
    let mut coin = Coin::new(0, 0, 0);
    let mut direction: Vec<f64> = (0..unknowns).map(|_| coin.unit() - 0.3).collect();
    let mut estimate = f64::INFINITY;
    loop {
        let length = norm(&direction);
        direction.iter_mut().for_each(|value| *value /= length);
        let mut image = direction.clone();
        cholesky::solve(&factor, unknowns, &mut image);
        let next = 1.0 / dot(&direction, &image);
        direction = image;
        // The estimates fall towards the eigenvalue.
        if next >= estimate * (1.0 - 1e-9) {
            return next.min(estimate);
        }
        estimate = next;
    }
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
    newton::minimize(&mut function, &mut theta, newton::STEPS_MAX, &mut vec![0.0; newton::WORK * unknowns]);
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
    (0..p).for_each(|k| block[k * p + k] += member.diagonal());
}

fn build_preconditioner(system: &System<'_>, curvature: &[f64], scheme: Scheme, matrix: &mut [f64]) {
    let p = system.dimension;
    for (at, (member, curvature)) in with_curvature(system, curvature).enumerate() {
        if scheme == Scheme::Blocks {
            let block = &mut matrix[at * p * p..][..p * p];
            cholesky::factor_regularized(block, p, |block| build_block(member, curvature, block));
        } else {
            let out = &mut matrix[at * p..][..p];
            out.fill(member.diagonal());
            for ((x, _), curvature) in member.shard.points.iter().zip(curvature) {
                out.iter_mut().zip(x).for_each(|(out, x)| *out += curvature * x * x);
            }
        }
    }
}

#[cfg(test)]
mod tests;
