//! Gradients with the noise of a plan: local differential privacy, for use with these servers.
//!
//! ```text
//! g~ = m_h ( (1/B) sum_{l in xi} clip( grad l_l(u) ) + eta ) + 2 m_h lambda_h u
//! ```
//!
//! g~ is uploaded as g would be: weighted, with a vector added. Whether that is done is a matter of the task; it protects nothing more.
//!
//! # Privacy
//! One record replaced by another, against anyone who sees every message, all servers together included. A mean over B points moves by 2 clip / B at most,
//! whichever points are in the batch, and one such mean, with its noise, is a step of the client's plan: one for each of all steps, or as many as the client has
//! servers where it takes a gradient at each of their models. That batches are drawn in secret is not counted. Everything else in an upload follows from models,
//! which servers sent, from the number of points and from choices that know nothing of data. Proof of the sensitivity: `crates/privacy/proofs/clipped-mean.md`.

use sottovoce_algorithms::Shard;
use sottovoce_algorithms::kernel::dot;
use sottovoce_privacy::sensitivity::{Norm, clip_limit, of_clipped_mean};
use sottovoce_privacy::{Audience, Exhausted, Gate, Public, Released, Track};

/// How gradients are made ready for noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolarPrivacy {
    /// The largest norm of one example's gradient.
    pub clip: f64,
    /// The norm that it is clipped in: that of the plan's mechanism.
    pub norm: Norm,
}

/// How a mean of gradients becomes one of the sum of losses.
struct Whole<'a> {
    points: f64,
    shrink: f64,
    at: &'a [f64],
}

impl PolarPrivacy {
    /// A gradient with its noise, by the next step of the plan, in the place of what `out` holds. A client without points has nothing to protect.
    pub(super) fn release<'s>(
        self,
        shard: &Shard<'_>,
        batch: Option<&[u32]>,
        at: &[f64],
        out: &'s mut [f64],
        gate: &mut Gate,
    ) -> Result<Released<&'s mut [f64]>, Exhausted> {
        let points = shard.points.len();
        if points == 0 {
            return Ok(Released::zeroed(out));
        }
        let law = gate.next_on(Track::Models).ok_or(Exhausted)?;
        assert_eq!(law.norm(), self.norm, "gradients are clipped in the norm of the plan's mechanism");
        let count = batch.map_or(points, <[u32]>::len);
        self.clipped_mean(shard, batch, at, out);
        // PRIVACY: a mean over so many gradients of norm at most the clip, of which one record is in one: 2 clip / B, with what rounding adds.
        let noisy = gate.release_on(Track::Models, out, of_clipped_mean(self.clip, count), Audience::Servers)?;
        // PRIVACY: the number of points is public, and the model is the servers' own.
        let points = points as f64;
        let whole = Public::declare(Whole { points, shrink: 2.0 * points * shard.regularization, at });
        Ok(noisy.with_public(whole, |Whole { points, shrink, at }, noisy| {
            noisy.iter_mut().zip(at).for_each(|(g, at)| *g = points * *g + shrink * at);
            noisy
        }))
    }

    /// (1/B) sum clip(grad l), each product and sum rounded once. A point whose features are not all finite numbers counts as zero.
    fn clipped_mean(self, shard: &Shard<'_>, batch: Option<&[u32]>, at: &[f64], out: &mut [f64]) {
        let (points, dimension) = (shard.points, shard.points.dimension);
        out.fill(0.0);
        let mut add = |k: usize| {
            let row = &points.features[k * dimension..][..dimension];
            if !row.iter().all(|value| value.is_finite()) {
                return;
            }
            let limit = clip_limit(self.norm, self.clip, row);
            let slope = shard.loss.slope(dot(row, at), points.labels[k]);
            let slope = if slope.is_nan() { 0.0 } else { slope.clamp(-limit, limit) };
            out.iter_mut().zip(row).for_each(|(out, x)| *out = slope.mul_add(*x, *out));
        };
        let count = match batch {
            None => {
                (0..points.len()).for_each(add);
                points.len()
            }
            Some(batch) => {
                batch.iter().for_each(|&k| add(k as usize));
                batch.len()
            }
        };
        out.iter_mut().for_each(|out| *out /= count as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use sottovoce_algorithms::{Loss, Points};
    use sottovoce_privacy::{Event, Idealized, Plan, Simulated, Tight};
    use std::sync::Arc;

    fn shard<'d>(features: &'d [f64], labels: &'d [f64], loss: Loss) -> Shard<'d> {
        Shard { points: Points { features, labels, dimension: 2 }, loss, regularization: 0.1, confidence: 1.0 }
    }

    /// Numbers as records have them, and such as no loader lets through.
    fn number() -> impl Strategy<Value = f64> {
        prop_oneof![
            -5.0..5.0f64,
            Just(0.0),
            Just(1e300),
            Just(-f64::MAX),
            Just(1e-310),
            Just(f64::NAN),
            Just(f64::INFINITY)
        ]
    }

    proptest! {
        /// Whatever one record holds, the mean of clipped gradients moves by its sensitivity at most, in both norms, with batches and without.
        #[test]
        fn one_record_moves_a_gradient_by_its_sensitivity_at_most(
            features in prop::collection::vec(-5.0..5.0f64, 12),
            labels in prop::collection::vec(-3.0..3.0f64, 6),
            record in 0usize..6,
            with in (number(), number(), number()),
            at in (-9.0..9.0f64, -9.0..9.0f64),
            clip in 0.01..10.0f64,
            hinge: bool,
            whole: bool,
        ) {
            let loss = if hinge { Loss::Hinge } else { Loss::Squared };
            let (mut others, mut other_labels) = (features.clone(), labels.clone());
            (others[2 * record], others[2 * record + 1], other_labels[record]) = with;
            let batch: Option<&[u32]> = if whole { None } else { Some(&[0, 2, 3]) };
            let count = if whole { 6 } else { 3 };
            for norm in [Norm::L1, Norm::L2] {
                let private = PolarPrivacy { clip, norm };
                let (mut here, mut there) = ([7.0; 2], [0.0; 2]);
                private.clipped_mean(&shard(&features, &labels, loss), batch, &[at.0, at.1], &mut here);
                private.clipped_mean(&shard(&others, &other_labels, loss), batch, &[at.0, at.1], &mut there);
                let moved = norm.of(&[here[0] - there[0], here[1] - there[1]]);
                prop_assert!(moved <= of_clipped_mean(clip, count), "{moved}");
                if !whole && ![0, 2, 3].contains(&record) {
                    prop_assert_eq!(here, there);
                }
            }
        }
    }

    /// The sum of losses has m times the mean's gradient; noise is charged once, before it leaves, and a plan that is done lets nothing out.
    #[test]
    fn a_release_is_the_gradient_of_the_sum_with_noise_and_one_charge() {
        let (features, labels) = ([1.0, 0.5, -0.2, 0.3], [1.0, -1.0]);
        let shard = shard(&features, &labels, Loss::Squared);
        let law = Event::Gaussian { noise_multiplier: 1e-6 };
        let plan = Arc::new(Plan::new(vec![law], f64::INFINITY, 0.5, &Tight).expect("any budget"));
        let mut gate = Gate::planned(plan, Simulated::Idealized(Idealized::new(1, 0)));
        let private = PolarPrivacy { clip: 100.0, norm: Norm::L2 };
        let (mut exact, mut out) = ([0.0; 2], [0.0; 2]);
        super::super::client::gradient(&shard, None, &[0.3, 0.4], &mut exact);
        let noisy = private.release(&shard, None, &[0.3, 0.4], &mut out, &mut gate).expect("planned").into_inner();
        let off = [noisy[0] - exact[0], noisy[1] - exact[1]];
        assert!(off.iter().all(|off| *off != 0.0 && off.abs() < 2e-3), "{off:?}");
        let charges: Vec<_> =
            gate.ledger().charges().map(|charge| (charge.event, charge.audience, charge.count)).collect();
        assert_eq!(charges, [(law, Audience::Servers, 1)]);
        assert_eq!(private.release(&shard, None, &[0.0; 2], &mut [0.0; 2], &mut gate).err(), Some(Exhausted));
        // Whoever has no points has nothing to pay for.
        let nobody = Shard { points: Points { features: &[], labels: &[], dimension: 2 }, ..shard };
        assert_eq!(
            private.release(&nobody, None, &[1.0; 2], &mut [3.0; 2], &mut gate).expect("free").into_inner(),
            &[0.0; 2]
        );
    }
}
