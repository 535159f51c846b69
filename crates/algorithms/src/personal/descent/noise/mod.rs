//! Private descent (Bellet et al. 2018, equation 6; thesis, (2.9)): what leaves an agent is differentially private.
//!
//! As in exact descent, but with noise on the mean of clipped gradients, for T_i updates:
//!
//! Theta_i <- (1 - alpha_i) Theta_i + alpha_i ( sum_j W_ij / D_ii Theta_j - mu c_i (g_i + 2 lambda_i Theta_i + eta) ),
//! g_i = (1/m_i) sum_k clip_B(grad l(Theta_i; x_k, y_k)),  alpha_i = 1 / (1 + mu c_i Lbar_i)
//!
//! With a private warm start (the paper's Remark 3 and supplement), agents first release their regularized local models with noise,
//! and smooth them over the graph by model propagation, which is post-processing and free:
//!
//! Theta_i <- ( sum_j W_ij / D_ii Theta_j + mu_w c_i theta~_i ) / (1 + mu_w c_i)
//!
//! When its plan is done, an agent only listens; its last model stays in its neighbours' memory.
//!
//! # Privacy
//! One record replaced by another, against anyone who sees every message. Each update is one step of the agent's plan, on
//! a mean whose sensitivity is 2 B / m_i; all the rest is a function of what was released and of public values. Proof:
//! `crates/privacy/proofs/private-coordinate-descent.md`.
//!
//! Differs from the paper: gradients are clipped per example, in the norm that the mechanism needs (the paper bounds the wrong one);
//! Lbar_i = beta R^2 + 2 lambda_i comes from the public bound R on |x|_2, never from the data; noise is on the mean, so that
//! what rounds before it is inside the sensitivity. An agent without data has nothing to protect and follows its neighbours at
//! every wake.

use super::Descent;
use super::disclosure::{InTurns, Paid};
use super::neighbours::{NeighbourModels, Pull};
use super::update::{Stepped, Terms, View, alpha, combine, equation_4};
use super::warm_start::LocalSteps;
use crate::config::{ConfigError, moderate, positive};
use crate::kernel::{self, Arithmetic, Simd};
use crate::personal::graph::Turn;
use crate::reference::propagation::neighbours_share;
use crate::vector::{largest_difference, norm};
use crate::{Loss, Points, Shard, saved};
use sottovoce_core::{CannotResume, Neighbours, Peers};
use sottovoce_privacy::sensitivity::{self, Norm};
use sottovoce_privacy::{Exhausted, Gate, Public, Released};

/// The hyper-parameters, before they are checked. All of them are public.
///
/// | name | symbol | range | default |
/// |---|---|---|---|
/// | dimension | p | 1 and above | the data's |
/// | loss | l | a smooth one | logistic |
/// | trade-off | mu | above 0 | 1, as everywhere |
/// | clip | B | above 0, at most 1e100 | the feature bound, where the loss is Lipschitz |
/// | norm | of the clip | L1 for Laplace noise, L2 for Gaussian | |
/// | feature-bound | R | above 0, at most 1e100 | 1 with `normalize` |
/// | warm | see [`WarmStart`] | | none: models start at zero |
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrivateCoordinateDescentConfig {
    /// p.
    pub dimension: usize,
    /// l.
    pub loss: Loss,
    /// mu.
    pub trade_off: f64,
    /// B.
    pub clip: f64,
    /// The norm that gradients are clipped in: that of the plan's updates.
    pub norm: Norm,
    /// R, a public bound on every |x|_2.
    pub feature_bound: f64,
    /// Whether it bounds |x|_1 as well. Only home models read it.
    pub l1_features: bool,
    /// A private warm start. The plan's first step is then its release.
    pub warm: Option<WarmStart>,
}

/// The private warm start: output perturbation of a local model, then model propagation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WarmStart {
    /// lambda_w: more of it, and less noise is needed.
    pub regularization: f64,
    /// Noisy models are brought back to |theta|_2 <= radius.
    pub radius: f64,
    /// mu_w.
    pub trade_off: f64,
    /// Wakes of propagation before the first update.
    pub wakes: u32,
}

/// Gradients with noise.
#[derive(Clone, Copy, Debug)]
pub struct PrivateDescent {
    pub(super) config: PrivateCoordinateDescentConfig,
    /// beta R^2: a bound on the smoothness of every agent's mean loss.
    pub(super) smoothness: f64,
    /// How the local models of a warm start are computed.
    pub(super) local: Option<LocalSteps>,
    /// Where the graph is learned, too: turns and losses.
    turns: Option<InTurns>,
}

impl PrivateDescent {
    /// Checks the hyper-parameters.
    pub fn new(config: PrivateCoordinateDescentConfig) -> Result<Self, ConfigError> {
        let Some(curvature) = config.loss.smoothness() else {
            return Err(ConfigError {
                field: "loss",
                value: "hinge".to_owned(),
                accepted: "a smooth loss (logistic, squared or smoothed-hinge)",
            });
        };
        positive("trade-off", config.trade_off)?;
        moderate("feature-bound", config.feature_bound)?;
        moderate("clip", config.clip)?;
        let mut local = None;
        if let Some(warm) = config.warm {
            positive("warm.regularization", warm.regularization)?;
            positive("warm.radius", warm.radius)?;
            positive("warm.trade-off", warm.trade_off)?;
            local = Some(LocalSteps::new(config.loss, config.feature_bound, warm.regularization)?);
        }
        let smoothness = curvature * config.feature_bound * config.feature_bound;
        Ok(PrivateDescent { config, smoothness, local, turns: None })
    }

    /// The same by turns with a graph that is learned.
    pub fn in_turns(self, turns: InTurns) -> Self {
        PrivateDescent { turns: Some(turns), ..self }
    }

    /// g_i + eta at theta, by the next step of the plan, from zeroed memory.
    fn release_gradient<'g>(
        &self,
        block: &Block,
        shard: Shard<'_>,
        theta: &[f64],
        gradient: &'g mut [f64],
        gate: &mut Gate,
    ) -> Result<Released<&'g mut [f64]>, Exhausted> {
        let step = gate.next().ok_or(Exhausted)?;
        assert_eq!(step.norm(), self.config.norm, "gradients are clipped in the norm of the plan's mechanism");
        kernel::vectorized(MeanGradient {
            shard: block.mend(shard),
            limits: &block.limits,
            theta,
            out: &mut *gradient,
        });
        // PRIVACY: the mean of m_i gradients of norm at most B each. Replacing one record moves it by at most 2 B / m_i,
        // with what rounding adds: `sensitivity::of_clipped_mean`. Charged, then noised, by the plan's next step.
        gate.release(gradient, block.sensitivity)
    }

    /// theta~_i: a local model near the minimum of the mean loss + lambda_w |theta|^2, with noise, brought back to the ball; zero without
    /// data.
    fn warm_model(
        &self,
        warm: WarmStart,
        block: &Block,
        shard: Shard<'_>,
        gate: &mut Gate,
    ) -> Result<Released<Box<[f64]>>, Exhausted> {
        let points = block.mend(shard).points;
        let (Some(local), false) = (&self.local, points.is_empty()) else {
            return Ok(Released::zeros(self.config.dimension));
        };
        let mut model = local.model(points);
        let l2 = local.sensitivity(points.len(), self.config.dimension);
        let sensitivity = match gate.next().map(|step| step.norm()) {
            // |v|_1 <= sqrt(p) |v|_2
            Some(Norm::L1) => l2 * libm::sqrt(self.config.dimension as f64) * (1.0 + 1e-12),
            _ => l2,
        };
        // PRIVACY: as many contracting steps as the task says, each of which one record moves by at most 2 eta / m_i:
        // `LocalSteps::sensitivity`. Charged, then noised, by the plan's first step.
        let noisy = gate.release(&mut model, sensitivity)?;
        let inside = noisy.with_public(Public::declare(warm.radius), |radius, model| {
            let length = norm(model);
            let shrink = if length > radius { radius / length } else { 1.0 };
            model.iter().map(|value| shrink * value).collect::<Box<[f64]>>()
        });
        Ok(inside)
    }
}

/// What an agent's updates need: what follows from its data, and how far it has come.
#[derive(Clone, Debug)]
pub struct Block {
    /// alpha_i in (0, 1].
    alpha: f64,
    /// Of the mean of clipped gradients; nothing without data.
    sensitivity: f64,
    /// By point: the largest slope that keeps its gradient within the clip.
    limits: Box<[f64]>,
    /// The features, where those of the agent are not all finite.
    mended: Option<Box<[f64]>>,
    /// theta~_i and the wakes of propagation that are left.
    warm: Option<(Released<Box<[f64]>>, u32)>,
}

impl Block {
    /// The shard, with features that are all finite.
    pub fn mend<'d>(&'d self, shard: Shard<'d>) -> Shard<'d> {
        mend(shard, self.mended.as_deref())
    }
}

impl Descent for PrivateDescent {
    type Block = Block;
    /// theta~_i and the wakes of propagation that are left.
    type Saved = Option<(Box<[f64]>, u32)>;
    type Disclosed = Paid;

    fn block(&self, shard: Shard<'_>) -> Block {
        let PrivateCoordinateDescentConfig { trade_off, clip, norm, .. } = self.config;
        let records = shard.points.len();
        let smoothness = if records == 0 { 0.0 } else { self.smoothness + 2.0 * shard.regularization };
        let mended = shard.points.mended();
        let points = mend(shard, mended.as_deref()).points;
        let limit = |(x, _)| sensitivity::clip_limit(norm, clip, x);
        Block {
            alpha: alpha(trade_off * shard.confidence, smoothness),
            sensitivity: if records == 0 { 0.0 } else { sensitivity::of_clipped_mean(clip, records) },
            limits: points.iter().map(limit).collect(),
            mended,
            warm: None,
        }
    }

    /// Zero: a model of its data is what the plan pays for.
    fn disclosed(&self, _shard: Shard<'_>) -> Paid {
        Paid::zero(self.config.dimension)
    }

    fn starts_at_zero(&self) -> bool {
        true
    }

    fn first(
        &self,
        block: &mut Block,
        shard: Shard<'_>,
        gate: &mut Gate,
    ) -> Result<Option<Released<Box<[f64]>>>, Exhausted> {
        let Some(warm) = self.config.warm else { return Ok(None) };
        let first = self.warm_model(warm, block, shard, gate)?;
        block.warm = Some((first.clone(), warm.wakes));
        Ok(Some(first))
    }

    fn turn(
        &self,
        block: &Block,
        disclosed: &mut Paid,
        shard: Shard<'_>,
        turn: Turn,
        gate: &mut Gate,
    ) -> Result<(), Exhausted> {
        self.turns.as_ref().map_or(Ok(()), |turns| turns.turn(disclosed, block.mend(shard), turn, gate))
    }

    #[inline]
    fn step<'m, N: NeighbourModels>(
        &self,
        block: &mut Block,
        shard: Shard<'_>,
        view: View<'_, 'm, N>,
        gate: &mut Gate,
    ) -> Result<Option<Stepped<'m>>, Exhausted> {
        let View { theta, neighbours, model, gradient, may_update } = view;
        let Pull { own, each } = neighbours.mean(1.0);
        let (factors, released, is_update) =
            if let Some((warm, left)) = block.warm.as_mut().filter(|(_, left)| *left > 0) {
                // Theta_i <- share sum_j W_ij/D_ii Theta_j + (1 - share) theta~_i
                let share = neighbours_share(self.config.warm.map_or(1.0, |warm| warm.trade_off), shard.confidence);
                *left -= 1;
                let warm = warm.as_ref().map(|model| &**model);
                ([share * own, share * each, share - 1.0], Released::copied(gradient, warm), false)
            } else if shard.points.is_empty() {
                // Theta_i <- sum_j W_ij/D_ii Theta_j: nothing private in it.
                ([own, each, 0.0], Released::zeroed(gradient), false)
            } else if may_update && gate.next().is_some() {
                let noisy = self.release_gradient(block, shard, theta, gradient, gate)?;
                let (alpha, weight) = (block.alpha, self.config.trade_off * shard.confidence);
                let pull = Pull { own: alpha * own, each: alpha * each };
                // Equation (6) is equation (4) with a noisy mean of gradients.
                (equation_4(alpha, weight, shard.regularization, pull, 1), noisy, true)
            } else {
                return Ok(None);
            };
        // PRIVACY: the models, own and others', have been released; weights and degrees follow from the graph or from letters about it, and
        // mu, c_i, lambda_i and alpha_i from the task and m_i.
        let new = released.with_public(Public::declare(Terms { theta, neighbours, factors, model }), combine);
        let moved = largest_difference(new.as_ref().into_inner(), theta);
        Ok(Some(Stepped { model: new, moved, is_update }))
    }

    fn save(&self, block: &Block) -> Self::Saved {
        block.warm.as_ref().map(|(warm, left)| (warm.as_ref().into_inner().clone(), *left))
    }

    /// All but the warm start is computed again. An agent that was alone has released no warm start, which is the first step of a plan
    /// with one: it cannot join later.
    fn resume(
        &self,
        warm: Self::Saved,
        shard: Shard<'_>,
        peers: Peers<'_>,
        neighbours: Neighbours,
    ) -> Result<Block, CannotResume> {
        if let Some((model, left)) = &warm {
            let config = self.config.warm.ok_or(CannotResume::Malformed)?;
            let inside = saved::is_vector(model, self.config.dimension) && norm(model) <= config.radius * (1.0 + 1e-9);
            saved::check(inside && *left <= config.wakes)?;
        } else if self.config.warm.is_some() && !peers.is_empty() {
            saved::expect_same(neighbours)?;
            return Err(CannotResume::Malformed);
        }
        // PRIVACY: the warm start was released and sent before it was saved; nothing of it has been computed since.
        let warm = warm.map(|(model, left)| (Released::found_again(model), left));
        Ok(Block { warm, ..self.block(shard) })
    }
}

/// The same shard with these features instead of its own, if they are given.
fn mend<'d>(shard: Shard<'d>, features: Option<&'d [f64]>) -> Shard<'d> {
    let points = Points { features: features.unwrap_or(shard.points.features), ..shard.points };
    Shard { points, ..shard }
}

/// (1/m) sum_k clip(l'(theta.x_k, y_k)) x_k, from zeroed `out`.
struct MeanGradient<'a> {
    shard: Shard<'a>,
    limits: &'a [f64],
    theta: &'a [f64],
    out: &'a mut [f64],
}

impl Arithmetic for MeanGradient<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let MeanGradient { shard, limits, theta, out } = self;
        kernel::add_clipped_gradient_inline(simd, shard.loss, limits, shard.points, theta, out);
        let records = shard.points.len() as f64;
        out.iter_mut().for_each(|value| *value /= records);
    }
}

#[cfg(test)]
mod tests;
