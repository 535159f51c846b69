//! The only door through which numbers leave an agent.

use crate::{Audience, Charge, Event, Ledger, Noise, Plan, Released, noise::NoNoise};
use std::sync::Arc;
use thiserror::Error;

/// A release was refused, because it is not in the agent's plan. Nothing has left.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("this release is not covered by the agent's privacy budget; nothing was released")]
pub struct Exhausted;

/// A ledger holds something else than the first steps of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the ledger holds charges that are not the first steps of this plan")]
pub struct OtherPlan;

/// Charges the ledger, then lets a value out; or refuses, and lets nothing out.
///
/// Without a plan, exact values may leave, at epsilon = infinity. With one, exactly its steps may, each with its noise.
/// Algorithms see a `Gate`, whatever makes its noise; drivers own a `Gate<N>` and so choose the noise by its type: a real peer
/// takes a `Gate<Secret>` and nothing else ([`Secret`](crate::Secret) shows that the compiler sees to it).
///
/// A released value comes from a gate:
///
/// ```
/// # use sottovoce_privacy::{Gate, Released};
/// let released: Released<f64> = Gate::without_privacy().reveal(0.5)?;
/// # Ok::<(), sottovoce_privacy::Exhausted>(())
/// ```
///
/// and from nowhere else:
///
/// ```compile_fail,E0423
/// # use sottovoce_privacy::{Gate, Released};
/// let released: Released<f64> = Released(0.5);
/// ```
///
/// ```compile_fail,E0624
/// # use sottovoce_privacy::{Gate, Released};
/// let released: Released<f64> = Released::after_charge(0.5);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Gate<N: ?Sized = dyn Noise> {
    plan: Option<Arc<Plan>>,
    /// Steps of the plan that are done.
    done: usize,
    /// Asides of the plan that are done.
    asides_done: usize,
    ledger: Ledger,
    noise: N,
}

impl Gate<NoNoise> {
    /// The gate of an agent that has chosen not to be private: its budget is epsilon = infinity.
    pub fn without_privacy() -> Self {
        Gate::unplanned(NoNoise)
    }
}

impl<N: Noise> Gate<N> {
    /// A gate without a plan, as [`Gate::without_privacy`] makes it, for a driver whose gates have one type.
    pub fn unplanned(noise: N) -> Self {
        Gate { plan: None, done: 0, asides_done: 0, ledger: Ledger::default(), noise }
    }

    /// A gate with an empty ledger that lets this plan happen, once.
    pub fn planned(plan: Arc<Plan>, noise: N) -> Self {
        Gate { plan: Some(plan), done: 0, asides_done: 0, ledger: Ledger::default(), noise }
    }

    /// The gate of an agent that was here before. It goes on behind the charges of its ledger, which must be the first steps of the
    /// plan and the first of its asides, or, without a plan, exact values.
    ///
    /// # Privacy
    /// The ledger is the one that was durable before the last value left. An older one would let steps happen twice, with fresh noise;
    /// whoever keeps ledgers sees to it that there is none.
    pub fn resumed(plan: Option<Arc<Plan>>, ledger: Ledger, noise: N) -> Result<Self, OtherPlan> {
        let released = usize::try_from(ledger.releases()).map_err(|_| OtherPlan)?;
        let Some(plan) = plan else {
            let exact = ledger.charges().all(|charge| charge.event == Event::Reveal);
            let gate = Gate { plan: None, done: 0, asides_done: 0, ledger, noise };
            return if exact { Ok(gate) } else { Err(OtherPlan) };
        };
        let asides_most = plan.asides().len().min(released);
        let fits = |&asides_done: &usize| {
            let done = released - asides_done;
            plan.steps().get(..done).is_some_and(|steps| is_history(&ledger, steps, &plan.asides()[..asides_done]))
        };
        let asides_done = (0..=asides_most).find(fits).ok_or(OtherPlan)?;
        Ok(Gate { plan: Some(plan), done: released - asides_done, asides_done, ledger, noise })
    }

    /// Where its noise comes from.
    pub fn noise(&self) -> &N {
        &self.noise
    }
}

impl<N: Noise + ?Sized> Gate<N> {
    /// Releases the exact value. It costs epsilon = infinity, so no plan allows it.
    pub fn reveal<T>(&mut self, value: T) -> Result<Released<T>, Exhausted> {
        if self.plan.is_some() {
            return Err(Exhausted);
        }
        // PRIVACY: no protection at all, against anyone; the ledger says so before the value leaves.
        self.ledger.record(Charge::new(Event::Reveal, 1));
        Ok(Released::after_charge(value))
    }

    /// Releases `values` by the next step of the plan: charges it, then adds its noise in place.
    ///
    /// # Privacy
    /// The caller states the sensitivity: how far `values` can move, in the norm of the step's mechanism
    /// ([`Event::norm`]), when one record is replaced by any other, everything released before being equal. What the
    /// computation of `values` rounds is part of it ([`crate::sensitivity`]). For randomized response `values` are signs, and
    /// the sensitivity is how many of them one record moves: 1.
    ///
    /// # Panics
    /// When the sensitivity is not a finite number above zero, or the values are not finite, or an answer to randomized response is
    /// not 1 or -1, or one record moves two of them: each would void the guarantee.
    pub fn release<'v>(
        &mut self,
        values: &'v mut [f64],
        sensitivity: f64,
    ) -> Result<Released<&'v mut [f64]>, Exhausted> {
        let event = self.next().ok_or(Exhausted)?;
        check(event, values, sensitivity);
        self.done += 1;
        Ok(self.let_out(event, values, sensitivity))
    }

    /// The same by the next aside of the plan.
    pub fn release_aside<'v>(
        &mut self,
        values: &'v mut [f64],
        sensitivity: f64,
    ) -> Result<Released<&'v mut [f64]>, Exhausted> {
        let event = self.next_aside().ok_or(Exhausted)?;
        check(event, values, sensitivity);
        self.asides_done += 1;
        Ok(self.let_out(event, values, sensitivity))
    }

    fn let_out<'v>(&mut self, event: Event, values: &'v mut [f64], sensitivity: f64) -> Released<&'v mut [f64]> {
        let charge = Charge { event, sensitivity: Some(sensitivity), audience: Audience::Everyone, count: 1 };
        self.ledger.record(charge);
        // PRIVACY: charged above. The plan holds no `Reveal`, so every step adds noise for this sensitivity.
        self.noise.perturb(event, sensitivity, values);
        Released::after_charge(values)
    }

    /// The next step of the plan; `None` when there is no plan, or it is done.
    pub fn next(&self) -> Option<Event> {
        self.plan.as_ref()?.steps().get(self.done).copied()
    }

    /// The next aside of the plan; `None` when there is no plan, or its asides are done.
    pub fn next_aside(&self) -> Option<Event> {
        self.plan.as_ref()?.asides().get(self.asides_done).copied()
    }

    /// Whether exact values may leave.
    pub fn is_without_privacy(&self) -> bool {
        self.plan.is_none()
    }

    /// What has been released so far.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }
}

/// What would void the guarantee of a release.
fn check(event: Event, values: &[f64], sensitivity: f64) {
    assert!(sensitivity.is_finite() && sensitivity > 0.0, "a sensitivity of {sensitivity}");
    assert!(values.iter().all(|value| value.is_finite()), "only finite values can be protected");
    if let Event::RandomizedResponse { .. } = event {
        assert!(sensitivity <= 1.0, "one record moves {sensitivity} answers: each needs a step of its own");
        assert!(values.iter().all(|value| value.abs() == 1.0), "an answer is 1 or -1");
    }
}

/// Whether a ledger holds exactly these steps and these asides, each list in its order.
fn is_history(ledger: &Ledger, steps: &[Event], asides: &[Event]) -> bool {
    let counted = |charges: &mut dyn Iterator<Item = Charge>| {
        let mut bare = Ledger::default();
        charges.for_each(|charge| bare.record(Charge::new(charge.event, charge.count)));
        bare
    };
    let charged = counted(&mut ledger.charges().copied());
    let expected = counted(&mut steps.iter().chain(asides).map(|&event| Charge::new(event, 1)));
    // A ledger's entries stand in the order of their first release: of one list, equal histories are equal ledgers. Of two, which
    // list was first is for the clock to say.
    if asides.is_empty() {
        return charged == expected;
    }
    let same_count = charged.charges().count() == expected.charges().count();
    same_count && expected.charges().all(|charge| charged.charges().any(|other| other == charge))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Idealized, Tight};

    fn planned(steps: usize) -> Gate<Idealized> {
        let plan =
            Plan::new(vec![Event::Gaussian { noise_multiplier: 10.0 }; steps], 5.0, 1e-3, &Tight).expect("cheap");
        Gate::planned(Arc::new(plan), Idealized::new(1, 0))
    }

    #[test]
    fn a_plan_refuses_an_exact_value_and_charges_nothing() {
        let mut gate = planned(3);
        assert_eq!(gate.reveal([1.0, 2.0]), Err(Exhausted));
        assert_eq!(gate.ledger().releases(), 0);
    }

    #[test]
    fn every_release_is_in_the_ledger() {
        let mut gate = Gate::without_privacy();
        for k in 0..7 {
            assert_eq!(gate.reveal(k).map(Released::into_inner), Ok(k));
        }
        assert_eq!(gate.ledger().releases(), 7);
        assert_eq!(gate.release(&mut [1.0], 1.0), Err(Exhausted), "nothing is planned");
    }

    /// CHECK 02.i: releases past the budget are refused, and what is reported is what the log recomposes to.
    #[test]
    fn a_plan_happens_once_and_nothing_leaves_after_it() {
        let mut gate = planned(3);
        for k in 0..3 {
            let mut values = [0.0; 4];
            gate.release(&mut values, 0.5).expect("planned");
            assert!(values.iter().all(|&value| value != 0.0), "{k}: {values:?}");
        }
        let mut values = [0.25; 4];
        assert_eq!(gate.release(&mut values, 0.5), Err(Exhausted));
        assert_eq!(values, [0.25; 4]);
        assert_eq!(gate.ledger().releases(), 3);
        let charge = *gate.ledger().charges().next().expect("an entry");
        assert_eq!((charge.sensitivity, charge.count), (Some(0.5), 3));
    }

    #[test]
    fn an_agent_that_comes_back_has_only_the_rest_of_its_plan() {
        for done in 0..=3 {
            let mut gate = planned(3);
            for _ in 0..done {
                gate.release(&mut [0.0], 0.5).expect("planned");
            }
            let noise = Idealized::new(2, 0);
            let mut back = Gate::resumed(gate.plan.clone(), gate.ledger().clone(), noise).expect("the same plan");
            assert_eq!(back.ledger(), gate.ledger());
            for _ in done..3 {
                back.release(&mut [0.0], 0.5).expect("not yet released");
            }
            assert_eq!(back.release(&mut [0.0], 0.5), Err(Exhausted));
        }
    }

    #[test]
    fn a_ledger_of_another_plan_is_refused() {
        let gaussian = |noise_multiplier| Event::Gaussian { noise_multiplier };
        let plan = |steps| Some(Arc::new(Plan::new(steps, 5.0, 1e-3, &Tight).expect("cheap")));
        let resumed = |plan, charges: &[Charge]| {
            let ledger = Ledger::from_charges(charges.iter().copied()).expect("valid");
            Gate::resumed(plan, ledger, Idealized::new(1, 0)).map(|gate| gate.done)
        };
        let mixed = || plan(vec![gaussian(10.0), gaussian(20.0), gaussian(10.0)]);
        assert_eq!(resumed(mixed(), &[Charge::new(gaussian(10.0), 1), Charge::new(gaussian(20.0), 1)]), Ok(2));
        assert_eq!(resumed(mixed(), &[Charge::new(gaussian(20.0), 1)]), Err(OtherPlan), "out of order");
        assert_eq!(resumed(mixed(), &[Charge::new(gaussian(10.0), 2)]), Err(OtherPlan), "the second is another");
        assert_eq!(resumed(mixed(), &[Charge::new(gaussian(11.0), 1)]), Err(OtherPlan));
        assert_eq!(resumed(mixed(), &[Charge::new(gaussian(10.0), 4)]), Err(OtherPlan), "more than the plan");
        assert_eq!(resumed(mixed(), &[Charge::new(Event::Reveal, 1)]), Err(OtherPlan));
        assert_eq!(resumed(None, &[Charge::new(gaussian(10.0), 1)]), Err(OtherPlan), "it was private");
        assert_eq!(resumed(None, &[Charge::new(Event::Reveal, 5)]), Ok(0));
        assert_eq!(resumed(None, &[]), Ok(0));
    }

    /// A plan with asides, and its gate: steps and asides have the same noise where `alike`.
    fn with_asides(alike: bool) -> Gate<Idealized> {
        let gaussian = |noise_multiplier| Event::Gaussian { noise_multiplier };
        let asides = vec![gaussian(if alike { 10.0 } else { 30.0 }); 2];
        let plan = Plan::with_asides(vec![gaussian(10.0), gaussian(20.0)], asides, 5.0, 1e-3, &Tight).expect("cheap");
        Gate::planned(Arc::new(plan), Idealized::new(1, 0))
    }

    /// CHECK 02.i, for two lists: neither takes from the other.
    #[test]
    fn steps_and_asides_happen_once_each_in_any_order_of_the_two_lists() {
        for order in ["ssaa", "sasa", "aass", "asas", "saas", "assa"] {
            let mut gate = with_asides(false);
            for kind in order.bytes() {
                let mut values = [0.0];
                match kind {
                    b's' => gate.release(&mut values, 0.5).map(drop).expect("planned"),
                    _ => gate.release_aside(&mut values, 0.1).map(drop).expect("planned"),
                }
                assert!(values[0] != 0.0);
            }
            assert_eq!(gate.release(&mut [0.0], 0.5), Err(Exhausted));
            assert_eq!(gate.release_aside(&mut [0.0], 0.1), Err(Exhausted));
            let bare = |ledger: &Ledger| {
                let mut charges: Vec<_> = ledger.charges().map(|c| (format!("{:?}", c.event), c.count)).collect();
                charges.sort();
                charges
            };
            assert_eq!(bare(gate.ledger()), bare(&gate.plan.as_ref().expect("a plan").ledger()), "{order}");
        }
        let mut unplanned = planned(1);
        assert_eq!(unplanned.release_aside(&mut [0.0], 0.1), Err(Exhausted), "a step is no aside");
        assert_eq!(unplanned.ledger().releases(), 0);
    }

    #[test]
    fn an_agent_that_comes_back_has_only_the_rest_of_its_steps_and_asides() {
        for alike in [false, true] {
            for (steps, asides) in (0..=2).flat_map(|steps| (0..=2).map(move |asides| (steps, asides))) {
                let mut gate = with_asides(alike);
                for _ in 0..asides {
                    gate.release_aside(&mut [0.0], 0.1).expect("planned");
                }
                for _ in 0..steps {
                    gate.release(&mut [0.0], 0.5).expect("planned");
                }
                let noise = Idealized::new(2, 0);
                let mut back = Gate::resumed(gate.plan.clone(), gate.ledger().clone(), noise).expect("the same plan");
                if !alike {
                    assert_eq!((back.done, back.asides_done), (steps, asides));
                }
                while back.release_aside(&mut [0.0], 0.1).is_ok() || back.release(&mut [0.0], 0.5).is_ok() {}
                assert_eq!(back.ledger().releases(), 4, "alike: {alike}, {steps} {asides}");
            }
        }
        let charge = |noise_multiplier, count| Charge::new(Event::Gaussian { noise_multiplier }, count);
        for other in
            [vec![charge(20.0, 1), charge(30.0, 1)], vec![charge(30.0, 3)], vec![charge(10.0, 1), charge(40.0, 1)]]
        {
            let ledger = Ledger::from_charges(other).expect("valid");
            let resumed = Gate::resumed(with_asides(false).plan.clone(), ledger, Idealized::new(1, 0));
            assert_eq!(resumed.map(drop), Err(OtherPlan));
        }
    }

    #[test]
    #[should_panic(expected = "finite values")]
    fn a_value_that_is_no_number_never_leaves() {
        let _ = planned(1).release(&mut [f64::NAN], 1.0);
    }

    fn asked(values: &mut [f64], sensitivity: f64) {
        let plan = Plan::new(vec![Event::RandomizedResponse { epsilon: 1.0 }], 1.0, 0.0, &Tight).expect("cheap");
        let _ = Gate::planned(Arc::new(plan), Idealized::new(1, 0)).release(values, sensitivity);
    }

    #[test]
    fn signs_may_be_asked_for() {
        asked(&mut [1.0, -1.0], 1.0);
    }

    #[test]
    #[should_panic(expected = "1 or -1")]
    fn randomized_response_hides_no_sizes_so_it_takes_none() {
        asked(&mut [1.0, 0.5], 1.0);
    }

    #[test]
    #[should_panic(expected = "moves 2 answers")]
    fn randomized_response_protects_one_answer_of_a_record() {
        asked(&mut [1.0, -1.0], 2.0);
    }

    #[test]
    #[should_panic(expected = "a sensitivity of 0")]
    fn a_sensitivity_of_zero_is_a_mistake() {
        let _ = planned(1).release(&mut [1.0], 0.0);
    }
}
