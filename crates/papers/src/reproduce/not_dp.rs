//! The 2018 paper's own calibration. **Not DP**: it does not give the guarantee that it claims.
//!
//! The paper takes the logistic loss to be 1-Lipschitz and adds Laplace noise of scale 2 / (eps m_i) to each coordinate of the
//! gradient. Laplace noise protects what moves by at most so much in the L1 norm; the gradient of one example is a multiple of
//! x, and for x in [-s, s]^p its L1 norm can be as large as s p. So each release costs s p times the epsilon that the paper charges
//! for it. (A loss is L0-Lipschitz with respect to the L-infinity norm when its gradients have L1 norms of at most L0. The paper
//! asks for the other one.) The warm start has the same slip in L2: 1 is taken for s sqrt(p).
//!
//! With [`Reading::Sum`] the losses of an agent are added up and not averaged, but the noise stays that of the mean: a second slip, by the
//! factor m_i. The paper does not say that it did this. Its trade-off of 0.04 fits sums, though, and this is the one reading with
//! which its figures come out as it shows them (`papers/2018-aistats/README.md`).
//!
//! There is no switch here that turns protection off. The same noise is described by its honest plan, with multipliers so many times
//! smaller than the paper's own, and the gate charges what it costs. That is how this file knows what was really spent.
//!
//! Step sizes come from the measured smoothness of each agent's data, as in the paper. That is one more reason why what is released is
//! not covered by the claim. Nothing here can be named in a task file or reached by a peer: it is private to `reproduce`.

use super::linear::{Instance, Reading};
use super::sound::wakes_per_agent;
use sottovoce_algorithms::Shard;
use sottovoce_algorithms::objective::{local_gradient, local_smoothness};
use sottovoce_algorithms::personal::descent::WarmStart;
use sottovoce_algorithms::reference::{local::solitary_model, propagation::neighbours_share};
use sottovoce_core::{Activity, Algorithm, CannotResume, Cx, Neighbours, NoLetter, PeerId, Peers, Posts, Rows};
use sottovoce_privacy::calibrate::{Uncalibrated, epsilon_per_step};
use sottovoce_privacy::{
    Accountant, Event, Exhausted, Idealized, Plan, Public, Released, Simulated, Sum, Theorem1, Tight,
};
use sottovoce_run::private::gate_with;
use sottovoce_sim::Simulation;
use std::sync::Arc;

/// The paper's noise, and what it claims and costs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claimed {
    /// What the paper charges for each update.
    each: f64,
    updates: usize,
    warm: Option<f64>,
    delta: f64,
    slips: Slips,
}

/// By how much the paper's bounds on gradients are too small.
#[derive(Clone, Copy, Debug)]
struct Slips {
    /// s p: the largest L1 norm of an example's gradient, where the paper has 1.
    l1: f64,
    /// s sqrt(p): the largest L2 norm, where the paper has 1.
    l2: f64,
    reading: Reading,
}

impl Claimed {
    /// `updates` equal updates that the paper's Theorem 1 says keep `epsilon` at `delta`, after a warm start that it says costs
    /// `warm` more, for points in [-s, s]^p.
    pub(super) fn new(
        updates: u64,
        epsilon: f64,
        warm: Option<f64>,
        delta: f64,
        (dimension, half_width, reading): (usize, f64, Reading),
    ) -> Result<Self, Uncalibrated> {
        let each = epsilon_per_step(epsilon, delta, updates, &Theorem1)?;
        let p = dimension as f64;
        let slips = Slips { l1: (half_width * p).max(1.0), l2: (half_width * libm::sqrt(p)).max(1.0), reading };
        Ok(Claimed { each, updates: updates as usize, warm, delta, slips })
    }

    /// The releases of an agent with m points, at what they honestly cost.
    fn plan(&self, points: usize) -> Plan {
        let again = match self.slips.reading {
            Reading::Mean => 1.0,
            Reading::Sum => points as f64,
        };
        let warm = self.warm.map(|epsilon| 1.0 / (epsilon * self.slips.l2 * again));
        let warm = warm.map(|noise_multiplier| Event::GammaNorm { noise_multiplier });
        let update = Event::Laplace { noise_multiplier: 1.0 / (self.each * self.slips.l1 * again) };
        let steps: Vec<Event> = warm.into_iter().chain(std::iter::repeat_n(update, self.updates)).collect();
        // PRIVACY: no budget is kept here, and none is claimed: the ledger says what each agent spends, which is far above the
        // paper's figure.
        Plan::new(steps, f64::MAX, self.delta, &Sum).expect("any finite cost is within this budget")
    }

    /// What an agent with m points really spends, by the best accountant.
    pub(super) fn honest(&self, points: usize) -> f64 {
        Tight.epsilon(&self.plan(points).ledger(), self.delta)
    }
}

/// Runs private coordinate descent with the paper's noise; returns what agents broadcast last.
pub(super) fn run(instance: &Instance, claimed: &Claimed, warm: Option<WarmStart>) -> Rows {
    let problem = &instance.problem;
    let (dimension, trade_off) = (problem.dimension(), problem.trade_off);
    let algorithm = NotDpDescent { dimension, trade_off, slips: claimed.slips, warm };
    let most = problem.data.largest();
    let plans: Vec<Arc<Plan>> = (0..=most).map(|m| Arc::new(claimed.plan(m.max(1)))).collect();
    let noise = |id: PeerId| Simulated::Idealized(Idealized::new(instance.seed, id.0));
    let gates = |id| gate_with(problem, &plans[problem.data.size(id)], id, noise(id));
    let shard = |id| instance.shard(id);
    let mut simulation = Simulation::start_behind(gates, &algorithm, &problem.graph, shard, &instance.settings())
        .expect("the plan holds what agents release as they enter");
    let wakes = wakes_per_agent(claimed.updates as u64, warm.map_or(0, |warm| warm.wakes));
    simulation.advance(wakes * problem.agents() as u64);
    simulation.models()
}

/// Equation (6) of the paper, with its noise.
struct NotDpDescent {
    dimension: usize,
    trade_off: f64,
    slips: Slips,
    warm: Option<WarmStart>,
}

/// What an agent remembers besides its post; every agent of these tasks has data and neighbours.
struct State {
    alpha: f64,
    warm: Option<(Released<Vec<f64>>, u32)>,
}

impl Algorithm for NotDpDescent {
    type Data<'d> = Shard<'d>;
    type State = State;
    type Letter<'a> = NoLetter;

    fn post_len(&self) -> usize {
        self.dimension
    }

    fn start(&self, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<State, Exhausted> {
        let smoothness = local_smoothness(&shard).expect("the logistic loss is smooth");
        let alpha = 1.0 / (1.0 + self.trade_off * shard.confidence * smoothness);
        let Some(warm) = self.warm else { return Ok(State { alpha, warm: None }) };
        let m = shard.points.len() as f64;
        let regularization = match self.slips.reading {
            Reading::Mean => warm.regularization,
            Reading::Sum => warm.regularization / m,
        };
        let mut model = solitary_model(&Shard { regularization, ..shard });
        // PRIVACY: charged at its honest cost, sqrt(p) times what the paper says, or m sqrt(p) times.
        let noisy = cx.gate.release(&mut model, self.slips.l2 / (m * regularization))?;
        let first = noisy.with_public(Public::declare(warm.radius), |radius, model| {
            let length = libm::sqrt(model.iter().map(|x| x * x).sum());
            let shrink = if length > radius { radius / length } else { 1.0 };
            model.iter().map(|x| shrink * x).collect::<Vec<f64>>()
        });
        cx.outbox.post(first.as_ref().map(|model| &**model));
        Ok(State { alpha, warm: Some((first, warm.wakes)) })
    }

    fn on_wake(&self, me: &mut State, shard: Shard<'_>, cx: &mut Cx<'_>) -> Result<Activity, Exhausted> {
        let inverse_degree = 1.0 / cx.peers.weighted_degree();
        let m = shard.points.len() as f64;
        if let Some((first, left)) = me.warm.as_mut().filter(|(_, left)| *left > 0) {
            *left -= 1;
            let confidence = match self.slips.reading {
                Reading::Mean => shard.confidence,
                Reading::Sum => shard.confidence / m,
            };
            let share = neighbours_share(self.warm.map_or(1.0, |warm| warm.trade_off), confidence);
            let factors = [0.0, share * inverse_degree, share - 1.0];
            let terms = Terms { posts: cx.posts, peers: cx.peers, factors };
            let post = first.as_ref().with_public(Public::declare(terms), |terms, first| combine(&terms, first));
            cx.outbox.post(post.as_ref().map(|model| &**model));
            return Ok(Activity { moved: 1.0 });
        }
        if cx.gate.next().is_none() {
            return Ok(Activity { moved: 0.0 });
        }
        let mut gradient = vec![0.0; self.dimension];
        local_gradient(&Shard { regularization: 0.0, ..shard }, cx.posts.mine(), &mut gradient);
        // PRIVACY: charged at its honest cost, s p times what the paper says, or m s p times.
        let noisy = cx.gate.release(&mut gradient, 2.0 * self.slips.l1 / m)?;
        // Theta_i <- (1 - alpha) Theta_i + alpha (sum_j W_ij/D_ii Theta_j - mu c_i (g + 2 lambda Theta_i))  [2018, eq. 6]
        let (alpha, weight) = (me.alpha, self.trade_off * shard.confidence);
        let keep = 1.0 - alpha - 2.0 * alpha * weight * shard.regularization;
        let factors = [keep, alpha * inverse_degree, alpha * weight];
        let terms = Terms { posts: cx.posts, peers: cx.peers, factors };
        let post = noisy.with_public(Public::declare(terms), |terms, gradient| combine(&terms, gradient));
        cx.outbox.post(post.as_ref().map(|model| &**model));
        Ok(Activity { moved: 1.0 })
    }

    /// Nothing: it is for the simulator alone.
    fn save(&self, _me: &State, _out: &mut Vec<u8>) {}

    /// No real peer may run this, so none comes back to it.
    fn resume(&self, _: &[u8], _: Neighbours, _: Shard<'_>, _: &mut Cx<'_>) -> Result<State, CannotResume> {
        Err(CannotResume::Malformed)
    }

    fn model<'a>(&self, _me: &'a State, posted: &'a [f64]) -> &'a [f64] {
        posted
    }
}

/// Theta_i <- keep Theta_i + follow sum_j W_ij Theta_j - descend g, `factors` being keep, follow and descend.
struct Terms<'a> {
    posts: Posts<'a>,
    peers: Peers<'a>,
    factors: [f64; 3],
}

fn combine(terms: &Terms<'_>, gradient: &[f64]) -> Vec<f64> {
    let [keep, follow, descend] = terms.factors;
    let mut model: Vec<f64> = terms.posts.mine().iter().zip(gradient).map(|(x, g)| keep * x - descend * g).collect();
    for k in 0..terms.peers.len() {
        let (weight, post) = terms.posts.last(terms.peers, k);
        model.iter_mut().zip(post).for_each(|(x, y)| *x += follow * weight * y);
    }
    model
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What makes the noise not DP, in one number: the honest cost of what the paper charges epsilon = 1 for.
    #[test]
    fn the_ledger_says_what_the_papers_noise_really_costs() {
        let delta = libm::exp(-5.0);
        for (reading, factor) in [(Reading::Mean, 20.0), (Reading::Sum, 20.0 * 30.0)] {
            let one = Claimed::new(1, 1.0, None, delta, (20, 1.0, reading)).expect("a calibration");
            // One pure step of s p (m) times the epsilon; at this delta a little less by the best accountant.
            let honest = one.honest(30);
            assert!(honest <= factor * (1.0 + 1e-6) && honest > factor - 6.0, "{reading:?}: {honest}");
        }
        let sound = Claimed::new(1, 1.0, None, delta, (1, 1.0, Reading::Mean)).expect("a calibration");
        assert!(sound.honest(30) <= 1.0 + 1e-6, "with one coordinate there is no slip");
    }

    #[test]
    fn the_noise_is_the_papers_to_the_digit() {
        let claimed = Claimed::new(10, 1.0, None, libm::exp(-5.0), (50, 1.0, Reading::Mean)).expect("a calibration");
        let plan = claimed.plan(25);
        let Event::Laplace { noise_multiplier } = plan.steps()[0] else { panic!("{:?}", plan.steps()) };
        // scale = multiplier x sensitivity = 2 L0 / (eps m) with L0 = 1 and eps = 0.106046 (ten steps by Theorem 1).
        let scale = noise_multiplier * 2.0 * 50.0 / 25.0;
        assert!((scale - 2.0 / (0.106046 * 25.0)).abs() < 1e-5, "{scale}");
    }
}
