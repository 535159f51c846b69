//! Private coordinate descent (Bellet et al. 2018, equation 6; thesis, (2.9)): what leaves an agent is differentially private.
//!
//! As in coordinate descent, but with noise on the mean of clipped gradients, for T_i updates:
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

use super::private_step::{Terms, combine};
use super::warm_start::LocalSteps;
use crate::config::{ConfigError, moderate, positive};
use crate::personal::home::Broadcast;
use crate::{
    Loss, Points, Shard,
    kernel::{self, Arithmetic, Simd},
    reference::propagation::neighbours_share,
    saved,
    vector::{largest_difference, norm},
};
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Neighbours, NoLetter, Peers};
use sottovoce_privacy::{
    Event, Exhausted, Gate, Plan, Public, Released,
    sensitivity::{self, Norm},
};

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

/// The hyper-parameters, the same for all agents.
#[derive(Clone, Copy, Debug)]
pub struct PrivateCoordinateDescent {
    config: PrivateCoordinateDescentConfig,
    /// beta R^2: a bound on the smoothness of every agent's mean loss.
    smoothness: f64,
    /// How the local models of a warm start are computed.
    local: Option<LocalSteps>,
}

impl PrivateCoordinateDescent {
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
        Ok(PrivateCoordinateDescent { config, smoothness, local })
    }

    /// The hyper-parameters.
    pub(super) fn config(&self) -> &PrivateCoordinateDescentConfig {
        &self.config
    }

    /// What everyone can know of the broadcast of an agent with this many points that followed `plan`, its data unseen.
    ///
    /// Taken to be gradient steps of length a = alpha mu c on a quadratic with the curvature h of features that point everywhere
    /// alike: T of them go 1 - (1 - a h)^T of the way, and of the noise of step t the factor (1 - a h)^(T-1-t) is left. That
    /// neighbours average away some of each other's noise is not counted.
    pub fn broadcast(&self, points: usize, regularization: f64, confidence: f64, plan: &Plan) -> Broadcast {
        if points == 0 {
            return Broadcast { points, scale: 1.0, variance: f64::INFINITY, length_squared: 1.0 };
        }
        let PrivateCoordinateDescentConfig { dimension, clip, norm, feature_bound, l1_features, .. } = self.config;
        let p = dimension as f64;
        // Points that point everywhere alike: |x|_1 = sqrt(2 p / pi) |x|_2. A bound on |x|_1 makes them that much shorter.
        let l1 = libm::sqrt(2.0 * p / core::f64::consts::PI);
        let length = if l1_features { feature_bound / l1.max(1.0) } else { feature_bound };
        // At theta = 0 slopes are 1/2, and what is longer than the clip is cut.
        let gradient = 0.5 * length * if norm == Norm::L1 { l1 } else { 1.0 };
        let cut = (clip / gradient).min(1.0);
        let sensitivity = sensitivity::of_clipped_mean(clip, points);
        let alpha = 1.0 / (1.0 + self.config.trade_off * confidence * (self.smoothness + 2.0 * regularization));
        let step = alpha * self.config.trade_off * confidence;
        let loss_curvature = self.config.loss.smoothness().unwrap_or(0.0);
        let curvature = loss_curvature * length * length / p + 2.0 * regularization;
        let (mut left, mut variance) = (1.0, 0.0);
        for event in plan.steps() {
            let noise = match *event {
                Event::Gaussian { noise_multiplier } => noise_multiplier * sensitivity,
                Event::Laplace { noise_multiplier } => core::f64::consts::SQRT_2 * noise_multiplier * sensitivity,
                Event::GammaNorm { noise_multiplier } => {
                    // A warm start: |b|^2 is p (p + 1) scale^2 on average, and models are brought back to the radius.
                    if let (Some(warm), Some(local)) = (self.config.warm, &self.local) {
                        let scale = noise_multiplier * local.sensitivity(points, dimension);
                        variance = ((p + 1.0) * scale * scale).min(warm.radius * warm.radius / p);
                    }
                    continue;
                }
                _ => continue,
            };
            let keep = 1.0 - step * curvature;
            left *= keep;
            variance = keep * keep * variance + step * step * noise * noise;
        }
        let scale = 1.0 / ((1.0 - left) * cut).max(1e-12);
        Broadcast { points, scale, variance: scale * scale * variance, length_squared: length * length }
    }
}

/// What an agent remembers besides its post.
#[derive(Clone, Debug)]
pub enum State {
    /// It has neighbours.
    Joined(Joined),
    /// It has none: it sends nothing, ever.
    Alone,
}

/// What follows from an agent's data, whoever its neighbours are.
#[derive(Clone, Debug)]
pub(super) struct Own {
    /// alpha_i in (0, 1].
    pub alpha: f64,
    /// Of the mean of clipped gradients; nothing without data.
    sensitivity: f64,
    /// By point: the largest slope that keeps its gradient within the clip.
    limits: Box<[f64]>,
    /// The features, where those of the agent are not all finite.
    mended: Option<Box<[f64]>>,
}

impl Own {
    /// The shard, with features that are all finite.
    pub fn mend<'d>(&'d self, shard: Shard<'d>) -> Shard<'d> {
        mend(shard, self.mended.as_deref())
    }
}

/// What an agent with neighbours remembers.
#[derive(Clone, Debug)]
pub struct Joined {
    own: Own,
    /// 1 / D_ii.
    inverse_degree: f64,
    /// theta~_i and the wakes of propagation that are left.
    warm: Option<(Released<Box<[f64]>>, u32)>,
}

impl Algorithm for PrivateCoordinateDescent {
    type Data<'d> = Shard<'d>;
    type State = State;
    type Letter<'a> = NoLetter;

    fn post_len(&self) -> usize {
        self.config.dimension
    }

    fn start(&self, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<State, Exhausted> {
        if cx.peers.is_empty() {
            return Ok(State::Alone);
        }
        let mut me = self.joined(shard, cx.peers);
        if let Some(warm) = self.config.warm {
            let first = self.first_model(warm, &me.own, shard, cx)?;
            cx.outbox.post(first.as_ref().map(|model| &**model));
            me.warm = Some((first, warm.wakes));
        }
        Ok(State::Joined(me))
    }

    fn on_wake(&self, me: &mut State, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        let State::Joined(me) = me else { return Ok(Activity { moved: 0.0 }) };
        let p = self.config.dimension;
        cx.scratch.clear();
        cx.scratch.resize(2 * p, 0.0);
        let (model, gradient) = cx.scratch.split_at_mut(p);
        // PRIVACY: the posts, own and others', have been released; weights, degrees, mu, c_i, lambda_i and alpha_i are functions
        // of the task, the graph and m_i.
        let terms = Terms { theta: cx.posts.mine(), pulls: (cx.posts, cx.peers), factors: [0.0; 3], model };
        let (alpha, inverse_degree) = (me.own.alpha, me.inverse_degree);
        let weight = self.config.trade_off * shard.confidence;
        let post = if let Some((warm, left)) = me.warm.as_mut().filter(|(_, left)| *left > 0) {
            // Theta_i <- share sum_j W_ij/D_ii Theta_j + (1 - share) theta~_i
            let share = neighbours_share(self.config.warm.map_or(1.0, |warm| warm.trade_off), shard.confidence);
            *left -= 1;
            let factors = [0.0, share * inverse_degree, share - 1.0];
            let public = Public::declare((Terms { factors, ..terms }, gradient));
            warm.as_ref().with_public(public, |(terms, buffer), warm| {
                buffer.copy_from_slice(warm);
                combine(terms, buffer)
            })
        } else if shard.points.is_empty() {
            // Theta_i <- sum_j W_ij/D_ii Theta_j: nothing private in it.
            let factors = [0.0, inverse_degree, 0.0];
            Public::declare(combine(Terms { factors, ..terms }, gradient)).into()
        } else if cx.gate.next().is_some() {
            let noisy = self.release_gradient(&me.own, shard, cx.posts.mine(), gradient, cx.gate)?;
            // theta_i <- (1 - alpha) theta_i + alpha (sum_j W_ij/D_ii theta_j - mu c_i (g + 2 lambda theta_i))  [2018, eq. 6]
            let keep = 1.0 - alpha - 2.0 * alpha * weight * shard.regularization;
            let factors = [keep, alpha * inverse_degree, alpha * weight];
            noisy.with_public(Public::declare(Terms { factors, ..terms }), combine)
        } else {
            return Ok(Activity { moved: 0.0 });
        };
        cx.outbox.post(post);
        let moved = cx.outbox.posted().map_or(0.0, |post| largest_difference(post, cx.posts.mine()));
        Ok(Activity { moved })
    }

    fn save(&self, me: &State, out: &mut Vec<u8>) {
        let warm = match me {
            State::Joined(me) => me.warm.as_ref().map(|(warm, left)| (warm.as_ref().into_inner(), *left)),
            State::Alone => None,
        };
        saved::write(&warm, out);
    }

    /// All but the warm start is computed again, for the neighbours of the moment. An agent that was alone has released no warm
    /// start, which is the first step of a plan with one: it cannot join later.
    fn resume(
        &self,
        saved: &[u8],
        neighbours: Neighbours,
        shard: Shard<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<State, CannotResume> {
        let warm: Option<(Box<[f64]>, u32)> = saved::read(saved)?;
        if let Some((model, left)) = &warm {
            let config = self.config.warm.ok_or(CannotResume::Malformed)?;
            let inside = saved::is_vector(model, self.config.dimension) && norm(model) <= config.radius * (1.0 + 1e-9);
            saved::check(inside && *left <= config.wakes)?;
        }
        if cx.peers.is_empty() {
            return Ok(State::Alone);
        }
        if self.config.warm.is_some() && warm.is_none() {
            saved::expect_same(neighbours)?;
            return Err(CannotResume::Malformed);
        }
        // PRIVACY: the warm start was released and posted before it was saved; nothing of it has been computed since.
        let warm = warm.map(|(model, left)| (Released::from(Public::declare(model)), left));
        Ok(State::Joined(Joined { warm, ..self.joined(shard, cx.peers) }))
    }

    fn model<'a>(&self, _me: &'a State, posted: &'a [f64]) -> &'a [f64] {
        posted
    }
}

impl PrivateCoordinateDescent {
    /// What follows from the data and the neighbours.
    fn joined(&self, shard: Shard<'_>, peers: Peers<'_>) -> Joined {
        Joined { own: self.own(shard), inverse_degree: 1.0 / peers.weighted_degree(), warm: None }
    }

    /// What follows from the data.
    pub(super) fn own(&self, shard: Shard<'_>) -> Own {
        let PrivateCoordinateDescentConfig { trade_off, clip, norm, .. } = self.config;
        let records = shard.points.len();
        let smoothness = if records == 0 { 0.0 } else { self.smoothness + 2.0 * shard.regularization };
        let mended = shard.points.mended();
        let points = mend(shard, mended.as_deref()).points;
        let limit = |(x, _)| sensitivity::clip_limit(norm, clip, x);
        Own {
            alpha: 1.0 / (1.0 + trade_off * shard.confidence * smoothness),
            sensitivity: if records == 0 { 0.0 } else { sensitivity::of_clipped_mean(clip, records) },
            limits: points.iter().map(limit).collect(),
            mended,
        }
    }

    /// g_i + eta at theta, by the next step of the plan, from zeroed memory.
    pub(super) fn release_gradient<'g>(
        &self,
        own: &Own,
        shard: Shard<'_>,
        theta: &[f64],
        gradient: &'g mut [f64],
        gate: &mut Gate,
    ) -> Result<Released<&'g mut [f64]>, Exhausted> {
        let step = gate.next().ok_or(Exhausted)?;
        assert_eq!(step.norm(), self.config.norm, "gradients are clipped in the norm of the plan's mechanism");
        kernel::vectorized(MeanGradient { shard: own.mend(shard), limits: &own.limits, theta, out: &mut *gradient });
        // PRIVACY: the mean of m_i gradients of norm at most B each. Replacing one record moves it by at most 2 B / m_i,
        // with what rounding adds: `sensitivity::of_clipped_mean`. Charged, then noised, by the plan's next step.
        gate.release(gradient, own.sensitivity)
    }

    /// theta~_i: a local model near the minimum of the mean loss + lambda_w |theta|^2, with noise, brought back to the ball; zero without
    /// data.
    pub(super) fn first_model(
        &self,
        warm: WarmStart,
        own: &Own,
        shard: Shard<'_>,
        cx: &mut Cx<'_>,
    ) -> Result<Released<Box<[f64]>>, Exhausted> {
        let points = own.mend(shard).points;
        let (Some(local), false) = (&self.local, points.is_empty()) else {
            return Ok(Released::from(Public::declare(vec![0.0; self.config.dimension].into_boxed_slice())));
        };
        let mut model = local.model(points);
        let l2 = local.sensitivity(points.len(), self.config.dimension);
        let sensitivity = match cx.gate.next().map(|step| step.norm()) {
            // |v|_1 <= sqrt(p) |v|_2
            Some(Norm::L1) => l2 * libm::sqrt(self.config.dimension as f64) * (1.0 + 1e-12),
            _ => l2,
        };
        // PRIVACY: as many contracting steps as the task says, each of which one record moves by at most 2 eta / m_i:
        // `LocalSteps::sensitivity`. Charged, then noised, by the plan's first step.
        let noisy = cx.gate.release(&mut model, sensitivity)?;
        let inside = noisy.with_public(Public::declare(warm.radius), |radius, model| {
            let length = norm(model);
            let shrink = if length > radius { radius / length } else { 1.0 };
            model.iter().map(|value| shrink * value).collect::<Box<[f64]>>()
        });
        Ok(inside)
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
