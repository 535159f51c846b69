//! The linear regression of the paper's experiment: data, the minimum, and runs that are looked at step by step.
//!
//! What the paper does not say was chosen: 10 coordinates, normal features, labels with normal noise of deviation 0.1, a box of 10, all five servers for each client,
//! added vectors of at most a tenth of a client's gradient at the start, and steps whose mean over the servers is half of what curvature allows.

use serde::Deserialize;
use sottovoce_algorithms::vector::{add_scaled, dot, norm};
use sottovoce_algorithms::{Dataset, Loss, Problem, Regularization, Shard, cholesky};
use sottovoce_core::{Coin, Graph, PeerId};
use sottovoce_encrypted::polar::client::gradient;
use sottovoce_encrypted::polar::{
    CompactSet, Consensus, Polar, PolarConfig, PolarPrivacy, Scope, StepSize, Variant, Weights,
};
use sottovoce_privacy::{Gate, Idealized, Plan, Simulated};
use sottovoce_sim::{Clock, Faults, Settings, Simulation, Status};
use std::sync::Arc;

/// How large it is.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Size {
    pub clients: u32,
    pub servers: u32,
    pub points_each: usize,
    pub dimension: usize,
    pub batch: usize,
    pub weight: f64,
    pub weight_bound: f64,
}

/// The deviation of the labels' noise.
const LABEL_NOISE: f64 = 0.1;
/// X is a box of this side.
const BOX: f64 = 10.0;
/// k0.
const OFFSET: f64 = 10.0;
/// Y, in parts of the mean norm of a client's gradient at the start.
const NOISE_SHARE: f64 = 0.1;
/// The first step in parts of one over the largest curvature.
const STEP_SHARE: f64 = 0.5;
/// Steps of the power iteration.
const POWER_STEPS: usize = 500;

/// Data of one seed, and what follows from them.
pub struct Regression {
    size: Size,
    /// Clients first, then servers, which have no points.
    pub problem: Problem,
    hessian: Vec<f64>,
    minimum: Vec<f64>,
    best: f64,
    curvature: f64,
    gradient_norm: f64,
}

/// A standard normal number.
fn normal(coin: &mut Coin) -> f64 {
    let (radius, angle) = (1.0 - coin.unit(), coin.unit());
    libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(2.0 * std::f64::consts::PI * angle)
}

impl Regression {
    pub fn new(size: Size, seed: u64) -> Regression {
        let mut coin = Coin::new(seed, 0, 0);
        let d = size.dimension;
        let truth: Vec<f64> = (0..d).map(|_| 2.0 * coin.unit() - 1.0).collect();
        let mut data = Dataset::new(d);
        let (mut hessian, mut right) = (vec![0.0; d * d], vec![0.0; d]);
        for _ in 0..size.clients {
            let features: Vec<f64> = (0..size.points_each * d).map(|_| normal(&mut coin)).collect();
            let label = |a: &[f64]| dot(a, &truth) + LABEL_NOISE * normal(&mut coin);
            let labels: Vec<f64> = features.chunks_exact(d).map(label).collect();
            for (a, b) in features.chunks_exact(d).zip(&labels) {
                add_scaled(&mut right, 2.0 * b, a);
                hessian.chunks_exact_mut(d).zip(a).for_each(|(row, a_k)| add_scaled(row, 2.0 * a_k, a));
            }
            data.push_agent(&features, &labels);
        }
        (0..size.servers).for_each(|_| data.push_agent(&[], &[]));
        let (mut factor, mut minimum) = (hessian.clone(), right);
        cholesky::factor(&mut factor, d).expect("more points than coordinates");
        cholesky::solve(&factor, d, &mut minimum);
        let problem = Problem {
            data,
            graph: Graph::Complete { n: size.clients + size.servers },
            loss: Loss::Squared,
            regularization: Regularization::Constant(0.0),
            trade_off: 1.0,
            points_max: size.points_each as f64,
        };
        let curvature = largest_eigenvalue(&hessian, d);
        let mut this = Regression { size, problem, hessian, minimum, best: 0.0, curvature, gradient_norm: 0.0 };
        let clients = || (0..size.clients).map(PeerId);
        let shards = || clients().map(|id| this.problem.shard(id));
        let residuals = shards().flat_map(|shard| shard.points.iter().map(|(a, b)| dot(a, &this.minimum) - b));
        let best = residuals.map(|residual| residual * residual).sum();
        let norms = shards().map(|shard| {
            let mut slope = vec![0.0; d];
            gradient(&shard, None, &vec![0.0; d], &mut slope);
            norm(&slope)
        });
        let gradient_norm = norms.sum::<f64>() / f64::from(size.clients);
        (this.best, this.gradient_norm) = (best, gradient_norm);
        this
    }

    pub fn shard(&self, id: PeerId) -> Shard<'_> {
        self.problem.shard(id)
    }

    /// (f(x) - f*) / f*, from the Hessian.
    pub fn gap(&self, x: &[f64]) -> f64 {
        let off: Vec<f64> = x.iter().zip(&self.minimum).map(|(x, best)| x - best).collect();
        let rows = self.hessian.chunks_exact(off.len());
        0.5 * rows.zip(&off).map(|(row, off_k)| off_k * dot(row, &off)).sum::<f64>() / self.best
    }

    /// What the mean of the servers moves by in a round, or with weights over an iteration in a step, times the gradient: this over 10 + k.
    pub fn first_step(&self) -> f64 {
        STEP_SHARE * OFFSET / self.curvature
    }

    /// As in the figure, with weights over so many steps.
    pub fn config(&self, every: u32, rounds: u32) -> PolarConfig {
        let Size { clients, servers, dimension, batch, weight, weight_bound, .. } = self.size;
        PolarConfig {
            agents: clients + servers,
            servers: (clients..clients + servers).map(PeerId).collect(),
            servers_each: servers as usize,
            colluders: 1,
            dimension,
            variant: Variant::MinimumWait,
            scope: Scope::Block,
            weights: Weights::PerNumber,
            consensus_every: every,
            rounds,
            weight,
            weight_bound,
            noise_bound: NOISE_SHARE * self.gradient_norm,
            set: CompactSet::Box(BOX),
            start: 0.0,
            batch,
            step: StepSize { first: self.first_step() * f64::from(servers) / weight, offset: OFFSET, power: 1.0 },
            consensus: Consensus::Secure,
            links: Vec::new(),
            timeout: 1e9,
            private: None::<PolarPrivacy>,
        }
    }

    /// Runs it. By gradient iteration, from the start: the gap, meant over the servers, before they come together; then the gap where they have after the last
    /// round; then how many vectors were sent.
    pub fn trace(&self, config: PolarConfig, plan: Option<Arc<Plan>>, seed: u64) -> Trace {
        let polar = Polar::new(config).expect("the parameters are tested");
        let settings = Settings { clock: Clock::Poisson, seed, threads: 1, tolerance: None, faults: Faults::default() };
        let gates = |id: PeerId| match &plan {
            Some(plan) => Gate::planned(plan.clone(), Simulated::Idealized(Idealized::new(seed, id.0))),
            None => Gate::unplanned(Simulated::None),
        };
        let graph = &self.problem.graph;
        let data = |id| self.shard(id);
        let mut run = Simulation::start_behind(gates, &polar, graph, data, &settings).expect("nobody speaks first");
        let servers: Vec<PeerId> = polar.config().servers.clone();
        let mut gaps = vec![0.0; polar.steps() as usize + 1];
        gaps[0] = self.gap(run.model(servers[0]));
        let mut steps = vec![0; servers.len()];
        loop {
            let status = run.advance(1);
            for (server, last) in servers.iter().zip(&mut steps) {
                let (_, step) = run.state(*server).server().expect("a server").progress();
                if step > *last {
                    *last = step;
                    gaps[step as usize] += self.gap(run.model(*server)) / servers.len() as f64;
                }
            }
            if status == Status::Done {
                let end = self.gap(run.model(servers[0]));
                return Trace { gaps, end, vectors: run.counters().vectors_sent };
            }
        }
    }

    /// The loop without privacy: x <- Proj(x - alpha_t sum_h g_h), with batches. The gap by iteration.
    pub fn exact(&self, iterations: u32, seed: u64) -> Vec<f64> {
        let Size { clients, dimension, batch, .. } = self.size;
        let mut coin = Coin::new(seed, 1, 0);
        let (mut x, mut total, mut slope) = (vec![0.0; dimension], vec![0.0; dimension], vec![0.0; dimension]);
        let mut gaps = vec![self.gap(&x)];
        for iteration in 1..=iterations {
            total.fill(0.0);
            for client in (0..clients).map(PeerId) {
                let shard = self.shard(client);
                let drawn: Vec<u32> = (0..batch).map(|_| coin.below(shard.points.len()) as u32).collect();
                gradient(&shard, Some(&drawn), &x, &mut slope);
                add_scaled(&mut total, 1.0, &slope);
            }
            add_scaled(&mut x, -self.first_step() / (OFFSET + f64::from(iteration)), &total);
            x.iter_mut().for_each(|x| *x = x.clamp(-BOX, BOX));
            gaps.push(self.gap(&x));
        }
        gaps
    }
}

/// What came of a run.
pub struct Trace {
    pub gaps: Vec<f64>,
    pub end: f64,
    pub vectors: u64,
}

/// Of a symmetric matrix with eigenvalues from zero, by power iteration.
fn largest_eigenvalue(matrix: &[f64], d: usize) -> f64 {
    let mut at = vec![1.0; d];
    let mut largest = 0.0;
    for _ in 0..POWER_STEPS {
        let image: Vec<f64> = matrix.chunks_exact(d).map(|row| dot(row, &at)).collect();
        largest = norm(&image);
        at = image.iter().map(|value| value / largest).collect();
    }
    largest
}
