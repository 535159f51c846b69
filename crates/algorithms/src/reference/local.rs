//! What one agent can solve alone: its solitary model, and the same with a pull towards a given point.
//!
//! theta_i^loc = argmin L_i [2018, eq. 1], and for gossip ADMM argmin w L_i(theta) + kappa/2 |theta - centre|^2.
//!
//! | loss | method |
//! |---|---|
//! | squared | Cholesky factor, kept from solve to solve |
//! | logistic, smoothed hinge | damped Newton |
//! | hinge | dual coordinate ascent, then exact on the margin |
//!
//! For p > 500 the Newton directions come from conjugate gradients, and no p x p matrix is ever stored. Without data
//! the solitary model is zero.

use crate::cholesky;
use crate::objective::add_weighted_gram;
use crate::reference::dual::{self, Dual};
use crate::reference::newton::{self, Smooth};
use crate::vector::{add_scaled, distance_squared, dot};
use crate::{Loss, Problem, Shard};
use sottovoce_core::{PeerId, Rows};

/// Above this dimension no p x p matrix is formed.
pub const DENSE_DIMENSION_MAX: usize = 500;

/// The smallest curvature that the dual of the hinge accepts. Without any regularization the minimum of a hinge
/// problem is not unique, and this much of it chooses one.
const HINGE_RIDGE_MIN: f64 = 1e-6;

/// theta_i^loc = argmin L_i; zero without data. Where the minimum is not unique (no regularization, too few points) it
/// is one of them, and where there is none (separable logistic data without regularization) a long way there.
pub fn solitary_model(shard: &Shard<'_>) -> Vec<f64> {
    let mut theta = vec![0.0; shard.points.dimension];
    let mut solver = Proximal::new(shard, 1.0, 0.0);
    let centre = vec![0.0; theta.len()];
    solver.solve(shard, &centre, &mut theta, &mut Vec::new());
    theta
}

/// Everyone's solitary model, one row each.
pub fn solitary_models(problem: &Problem) -> Rows {
    let mut models = Rows::zeros(problem.agents(), problem.dimension());
    for agent in (0..problem.agents() as u32).map(PeerId) {
        models.row_mut(agent.index()).copy_from_slice(&solitary_model(&problem.shard(agent)));
    }
    models
}

/// Solves min over theta of w L_i(theta) + kappa/2 |theta - centre|^2 for one agent, again and again for changing
/// centres. What does not change is kept; working memory is the caller's.
#[derive(Clone, Debug)]
pub struct Proximal {
    weight: f64,
    pull: f64,
    /// For the squared loss: the Cholesky factor of the Hessian.
    factor: Vec<f64>,
    /// For the hinge: the last dual solution, where the next search begins.
    dual: Vec<f64>,
}

impl Proximal {
    /// For w = `weight` >= 0 and kappa = `pull` >= 0, on the data of `shard`, which stay the same from then on.
    pub fn new(shard: &Shard<'_>, weight: f64, pull: f64) -> Self {
        let (m, p) = (shard.points.len(), shard.points.dimension);
        let (mut factor, mut dual) = (Vec::new(), Vec::new());
        match shard.loss {
            _ if m == 0 || weight == 0.0 => {}
            Loss::Squared if p <= DENSE_DIMENSION_MAX => {
                factor.resize(p * p, 0.0);
                let curvature = weight * shard.loss.curvature(0.0, 0.0) / m as f64;
                cholesky::factor_regularized(&mut factor, p, |hessian| {
                    hessian.fill(0.0);
                    add_weighted_gram(shard.points, std::iter::repeat_n(curvature, m), hessian);
                    (0..p).for_each(|k| hessian[k * p + k] += ridge(shard, weight, pull));
                });
            }
            Loss::Hinge => dual.resize(m, 0.0),
            _ => {}
        }
        Proximal { weight, pull, factor, dual }
    }

    /// What one solution hands on to the next, and the data do not say: the dual of a hinge problem.
    pub(crate) fn dual(&self) -> &[f64] {
        &self.dual
    }

    /// Goes on from a dual solution. Returns whether it can be one.
    pub(crate) fn set_dual(&mut self, dual: Vec<f64>) -> bool {
        let fits = dual.len() == self.dual.len() && dual.iter().all(|alpha| *alpha >= 0.0 && *alpha <= self.weight);
        self.dual = dual;
        fits
    }

    /// Moves `theta` from where it is to the minimum.
    pub fn solve(&mut self, shard: &Shard<'_>, centre: &[f64], theta: &mut [f64], scratch: &mut Vec<f64>) {
        self.descend(shard, centre, theta, newton::STEPS_MAX, scratch);
    }

    /// Moves `theta` from where it is one Newton step towards the minimum, shorter where the whole step would not lower the value enough. For
    /// the squared loss this is the minimum, and for the hinge, which has no such step, too.
    pub fn step(&mut self, shard: &Shard<'_>, centre: &[f64], theta: &mut [f64], scratch: &mut Vec<f64>) {
        self.descend(shard, centre, theta, 1, scratch);
    }

    fn descend(&mut self, shard: &Shard<'_>, centre: &[f64], theta: &mut [f64], steps: usize, scratch: &mut Vec<f64>) {
        let (m, p) = (shard.points.len(), shard.points.dimension);
        if m == 0 || self.weight == 0.0 {
            if self.pull > 0.0 {
                theta.copy_from_slice(centre);
            } else {
                theta.fill(0.0);
            }
            return;
        }
        if shard.loss == Loss::Hinge {
            return self.solve_hinge(shard, centre, theta, scratch);
        }
        let dense = p <= DENSE_DIMENSION_MAX;
        let matrix = if shard.loss == Loss::Squared && dense {
            0
        } else if dense {
            p * p
        } else {
            (newton::CG_WORK + 1) * p
        };
        scratch.clear();
        scratch.resize(m + matrix + newton::WORK * p, 0.0);
        let (curvature, rest) = scratch.split_at_mut(m);
        let (matrix, work) = rest.split_at_mut(matrix);
        let factor = &*self.factor;
        let mut function = Pulled { shard, weight: self.weight, pull: self.pull, centre, curvature, matrix, factor };
        newton::minimize(&mut function, theta, steps, work);
    }

    fn solve_hinge(&mut self, shard: &Shard<'_>, centre: &[f64], theta: &mut [f64], scratch: &mut Vec<f64>) {
        let ridge = ridge(shard, self.weight, self.pull).max(HINGE_RIDGE_MIN);
        let upper = self.weight / shard.points.len() as f64;
        let mut hinge = PulledHinge { shard, upper, ridge, pull: self.pull, centre, theta };
        dual::ascend(&mut hinge, &mut self.dual, scratch);
    }
}

/// What w L_i and the pull add to the diagonal of the Hessian.
fn ridge(shard: &Shard<'_>, weight: f64, pull: f64) -> f64 {
    2.0 * weight * shard.regularization + pull
}

/// w L_i(theta) + kappa/2 |theta - centre|^2.
struct Pulled<'a> {
    shard: &'a Shard<'a>,
    weight: f64,
    pull: f64,
    centre: &'a [f64],
    curvature: &'a mut [f64],
    matrix: &'a mut [f64],
    factor: &'a [f64],
}

impl Smooth for Pulled<'_> {
    fn value_and_gradient(&mut self, at: &[f64], gradient: &mut [f64]) -> f64 {
        let shard = self.shard;
        let share = self.weight / shard.points.len() as f64;
        gradient.fill(0.0);
        let mut sum = 0.0;
        for (x, y) in shard.points.iter() {
            let dot = dot(x, at);
            sum += shard.loss.value(dot, y);
            add_scaled(gradient, share * shard.loss.slope(dot, y), x);
        }
        add_scaled(gradient, 2.0 * self.weight * shard.regularization, at);
        for ((gradient, at), centre) in gradient.iter_mut().zip(at).zip(self.centre) {
            *gradient += self.pull * (at - centre);
        }
        share * sum
            + self.weight * shard.regularization * dot(at, at)
            + 0.5 * self.pull * distance_squared(at, self.centre)
    }

    fn direction(&mut self, at: &[f64], gradient: &[f64], accuracy: f64, out: &mut [f64]) {
        let (shard, p) = (self.shard, at.len());
        if !self.factor.is_empty() {
            out.iter_mut().zip(gradient).for_each(|(out, gradient)| *out = -gradient);
            return cholesky::solve(self.factor, p, out);
        }
        let share = self.weight / shard.points.len() as f64;
        for (curvature, (x, y)) in self.curvature.iter_mut().zip(shard.points.iter()) {
            *curvature = share * shard.loss.curvature(dot(x, at), y);
        }
        let ridge = ridge(shard, self.weight, self.pull);
        let curvature = &*self.curvature;
        if p <= DENSE_DIMENSION_MAX {
            cholesky::factor_regularized(self.matrix, p, |hessian| {
                hessian.fill(0.0);
                add_weighted_gram(shard.points, curvature.iter().copied(), hessian);
                (0..p).for_each(|k| hessian[k * p + k] += ridge);
            });
            out.iter_mut().zip(gradient).for_each(|(out, gradient)| *out = -gradient);
            return cholesky::solve(self.matrix, p, out);
        }
        let (diagonal, work) = self.matrix.split_at_mut(p);
        diagonal.fill(ridge);
        for ((x, _), curvature) in shard.points.iter().zip(curvature) {
            diagonal.iter_mut().zip(x).for_each(|(diagonal, x)| *diagonal += curvature * x * x);
        }
        newton::conjugate_gradients(
            |v, image| {
                image.iter_mut().zip(v).for_each(|(image, v)| *image = ridge * v);
                for ((x, _), curvature) in shard.points.iter().zip(curvature) {
                    add_scaled(image, curvature * dot(x, v), x);
                }
            },
            |r, z| {
                for ((z, r), diagonal) in z.iter_mut().zip(r).zip(&*diagonal) {
                    *z = if *diagonal > 0.0 { r / diagonal } else { *r };
                }
            },
            gradient,
            accuracy,
            10 * p,
            out,
            work,
        );
        out.iter_mut().for_each(|out| *out = -*out);
    }
}

/// The hinge with M = ridge I and b = kappa centre.
struct PulledHinge<'a> {
    shard: &'a Shard<'a>,
    upper: f64,
    ridge: f64,
    pull: f64,
    centre: &'a [f64],
    theta: &'a mut [f64],
}

impl PulledHinge<'_> {
    fn point(&self, k: usize) -> (&[f64], f64) {
        let points = self.shard.points;
        (&points.features[k * points.dimension..][..points.dimension], points.labels[k])
    }
}

impl Dual for PulledHinge<'_> {
    fn upper(&self, _k: usize) -> f64 {
        self.upper
    }

    fn entry(&self, k: usize, l: usize) -> f64 {
        let ((x, y), (other_x, other_y)) = (self.point(k), self.point(l));
        y * other_y * dot(x, other_x) / self.ridge
    }

    fn slack(&self, k: usize) -> f64 {
        let (x, y) = self.point(k);
        1.0 - y * dot(x, self.theta)
    }

    fn shift(&mut self, k: usize, change: f64) {
        let points = self.shard.points;
        let x = &points.features[k * points.dimension..][..points.dimension];
        add_scaled(self.theta, change * points.labels[k] / self.ridge, x);
    }

    fn rebuild(&mut self, alpha: &[f64]) {
        self.theta.iter_mut().zip(self.centre).for_each(|(theta, centre)| *theta = self.pull / self.ridge * centre);
        for (k, &alpha) in alpha.iter().enumerate() {
            if alpha != 0.0 {
                self.shift(k, alpha);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objective::{local_gradient, local_value};
    use crate::testing::{SMOOTH, everyone, normals, random_problem};
    use crate::vector::{largest_difference, norm};
    use crate::{Dataset, Regularization};
    use sottovoce_core::{Coin, Graph};

    #[test]
    fn check_01_a_the_gradient_vanishes_at_every_solitary_model() {
        for loss in SMOOTH {
            for seed in 0..20 {
                for p in [1, 4, 30] {
                    for lambda in [1e-3, 0.1] {
                        let regularization = Regularization::Constant(lambda);
                        let problem = Problem { regularization, ..random_problem(seed, 8, p, loss) };
                        let models = solitary_models(&problem);
                        for agent in everyone(&problem) {
                            let mut gradient = vec![0.0; p];
                            local_gradient(&problem.shard(agent), models.row(agent.index()), &mut gradient);
                            assert!(norm(&gradient) <= 1e-10, "{loss:?} {seed} {p} {lambda}: {}", norm(&gradient));
                        }
                        assert_eq!(models.row(1), vec![0.0; p], "no data, no model");
                    }
                }
            }
        }
    }

    #[test]
    fn check_01_a_also_in_many_dimensions_where_no_matrix_is_formed() {
        for loss in SMOOTH {
            let problem = random_problem(3, 5, DENSE_DIMENSION_MAX + 100, loss);
            let shard = problem.shard(PeerId(0));
            let mut gradient = vec![0.0; problem.dimension()];
            local_gradient(&shard, &solitary_model(&shard), &mut gradient);
            assert!(norm(&gradient) <= 1e-9, "{loss:?}: {}", norm(&gradient));
        }
    }

    #[test]
    fn without_regularization_and_with_too_few_points_some_minimum_is_found() {
        let mut data = Dataset::new(3);
        data.push_agent(&[1.0, 2.0, 0.5, -1.0, 0.0, 1.0], &[1.0, -1.0]);
        let graph = Graph::from_edges(1, &[]).expect("a graph");
        let regularization = Regularization::Constant(0.0);
        let problem = Problem { data, graph, loss: Loss::Squared, regularization, trade_off: 1.0, points_max: 2.0 };
        let shard = problem.shard(PeerId(0));
        let theta = solitary_model(&shard);
        assert!(local_value(&shard, &theta) < 1e-12, "{theta:?}");
        let logistic = Problem { loss: Loss::Logistic, ..problem };
        assert!(solitary_model(&logistic.shard(PeerId(0))).iter().all(|value| value.is_finite()));
    }

    /// The hinge has no gradient to look at; at the minimum of a convex function no direction leads down.
    #[test]
    fn nothing_near_the_hinge_minimum_is_lower() {
        let mut coin = Coin::new(1, 0, 0);
        for seed in 0..20 {
            let p = [2, 5, 12][seed as usize % 3];
            let problem = random_problem(seed, 6, p, Loss::Hinge);
            let shard = problem.shard(PeerId(0));
            let theta = solitary_model(&shard);
            let least = local_value(&shard, &theta);
            for _ in 0..200 {
                for size in [1e-1, 1e-3, 1e-5] {
                    let near: Vec<f64> = theta.iter().zip(normals(&mut coin, p)).map(|(t, d)| t + size * d).collect();
                    // Strong convexity: the minimum is lower by lambda |d|^2.
                    let gain = 0.9 * shard.regularization * distance_squared(&near, &theta);
                    assert!(local_value(&shard, &near) >= least + gain - 1e-14, "{seed} {size}");
                }
            }
        }
    }

    #[test]
    fn the_hinge_by_hand() {
        // max(0, 1 - 2 theta) + lambda theta^2: theta = 1/2 while lambda <= 2, theta = 1/lambda beyond.
        for (lambda, expected) in [(0.1, 0.5), (1.0, 0.5), (4.0, 0.25)] {
            let mut data = Dataset::new(1);
            data.push_agent(&[2.0], &[1.0]);
            let graph = Graph::from_edges(1, &[]).expect("a graph");
            let regularization = Regularization::Constant(lambda);
            let problem = Problem { data, graph, loss: Loss::Hinge, regularization, trade_off: 1.0, points_max: 1.0 };
            let theta = solitary_model(&problem.shard(PeerId(0)));
            assert!((theta[0] - expected).abs() < 1e-12, "{lambda}: {theta:?}");
        }
    }

    #[test]
    fn a_pull_is_the_gradient_it_balances() {
        let mut coin = Coin::new(2, 0, 0);
        for loss in SMOOTH {
            let p = 6;
            let problem = random_problem(4, 6, p, loss);
            let shard = problem.shard(PeerId(2));
            let (weight, pull) = (2.5, 0.7);
            let mut solver = Proximal::new(&shard, weight, pull);
            let mut scratch = Vec::new();
            let mut theta = vec![0.0; p];
            for _ in 0..5 {
                let centre = normals(&mut coin, p);
                solver.solve(&shard, &centre, &mut theta, &mut scratch);
                let mut gradient = vec![0.0; p];
                local_gradient(&shard, &theta, &mut gradient);
                let balance: Vec<f64> = (0..p).map(|k| pull * (centre[k] - theta[k]) / weight).collect();
                assert!(largest_difference(&gradient, &balance) < 1e-12, "{loss:?}");
            }
            let empty = problem.shard(PeerId(1));
            let centre = normals(&mut coin, p);
            Proximal::new(&empty, weight, pull).solve(&empty, &centre, &mut theta, &mut scratch);
            assert_eq!(theta, centre, "without data the pull decides");
        }
    }
}
