//! The only door through which numbers leave an agent.

use crate::{Audience, Charge, Event, Ledger, Noise, Plan, Released, Sensitivity, Track, noise::NoNoise};
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
    /// By track: releases of the plan that are done.
    done: [u32; Track::ALL.len()],
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
        Gate { plan: None, done: [0; Track::ALL.len()], ledger: Ledger::default(), noise }
    }

    /// A gate with an empty ledger that lets this plan happen, once.
    pub fn planned(plan: Arc<Plan>, noise: N) -> Self {
        Gate { plan: Some(plan), done: [0; Track::ALL.len()], ledger: Ledger::default(), noise }
    }

    /// The gate of an agent that was here before. It goes on behind the charges of its ledger, which must be the first steps of the
    /// plan, track by track, or, without a plan, exact values.
    ///
    /// # Privacy
    /// The ledger is the one that was durable before the last value left. An older one would let steps happen twice, with fresh noise;
    /// whoever keeps ledgers sees to it that there is none.
    pub fn resumed(plan: Option<Arc<Plan>>, ledger: Ledger, noise: N) -> Result<Self, OtherPlan> {
        let Some(plan) = plan else {
            let exact = ledger.charges().all(|charge| charge.event == Event::Reveal);
            return if exact { Ok(Gate { ledger, ..Gate::unplanned(noise) }) } else { Err(OtherPlan) };
        };
        let mut done = [0; Track::ALL.len()];
        for track in Track::ALL {
            let charged = || ledger.charges().filter(|charge| charge.track == track);
            let releases = charged().map(|charge| charge.count).sum::<u64>();
            let history = usize::try_from(releases).ok().and_then(|releases| plan.track(track).get(..releases));
            if !history.is_some_and(|history| is_history(charged(), history)) {
                return Err(OtherPlan);
            }
            done[track as usize] = u32::try_from(releases).map_err(|_| OtherPlan)?;
        }
        Ok(Gate { plan: Some(plan), done, ledger, noise })
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
        self.release_on(Track::Models, values, sensitivity, Audience::Everyone)
    }

    /// The same by the next step of the track of losses.
    pub fn release_aside<'v>(
        &mut self,
        values: &'v mut [f64],
        sensitivity: f64,
    ) -> Result<Released<&'v mut [f64]>, Exhausted> {
        self.release_on(Track::Losses, values, sensitivity, Audience::Everyone)
    }

    /// The same by the next step of any track, for any audience.
    pub fn release_on<'v>(
        &mut self,
        track: Track,
        values: &'v mut [f64],
        sensitivity: f64,
        audience: Audience,
    ) -> Result<Released<&'v mut [f64]>, Exhausted> {
        let event = self.next_on(track).ok_or(Exhausted)?;
        check(event, values, sensitivity);
        self.record(track, event, sensitivity, audience);
        // PRIVACY: charged above. The plan holds no `Reveal`, so every step adds noise for this sensitivity.
        self.noise.perturb(event, sensitivity, values);
        Ok(Released::after_charge(values))
    }

    /// Releases answers of some categories, counted from 0, by the next step of a track, which is randomized response: charges it, then answers.
    ///
    /// # Privacy
    /// One record moves at most one of the answers, to any other category; how many answers there are does not depend on it. Proof:
    /// `proofs/randomized-response.md`.
    ///
    /// # Panics
    /// When there are fewer than two categories, an answer is none of them, or the step is of another mechanism.
    pub fn respond<'v>(
        &mut self,
        track: Track,
        categories: u32,
        answers: &'v mut [f64],
        audience: Audience,
    ) -> Result<Released<&'v mut [f64]>, Exhausted> {
        let event = self.next_on(track).ok_or(Exhausted)?;
        let Event::RandomizedResponse { epsilon } = event else { panic!("the plan has {event:?} for an answer") };
        assert!(categories >= 2, "an answer of {categories} categories");
        let is_category =
            |answer: f64| answer >= 0.0 && answer < f64::from(categories) && libm::trunc(answer) == answer;
        assert!(answers.iter().all(|answer| is_category(*answer)), "an answer is one of {categories} categories");
        self.record(track, event, 1.0, audience);
        // PRIVACY: charged above, for one answer that one record moves.
        self.noise.respond(epsilon, categories, answers);
        Ok(Released::after_charge(answers))
    }

    /// Charges the next step of a track for a value that noise of *others* protects: this gate adds none. Without a plan the charge is that
    /// of an exact value.
    ///
    /// # Privacy
    /// What the receipt is worth is not the gate's to say. The accountant that reads the charge names its observer, and proves that every value
    /// this observer sees holds noise of the step's law, scaled to this sensitivity, that the observer has not drawn itself. Every file that asks
    /// for a receipt is listed in THREATS.md.
    ///
    /// # Panics
    /// When the sensitivity is not a finite number above zero.
    pub fn charge(&mut self, track: Track, sensitivity: f64, audience: Audience) -> Result<Receipt, Exhausted> {
        let event = match &self.plan {
            None => Event::Reveal,
            Some(_) => self.next_on(track).ok_or(Exhausted)?,
        };
        assert!(sensitivity.is_finite() && sensitivity > 0.0, "a sensitivity of {sensitivity}");
        self.record(track, event, sensitivity, audience);
        Ok(Receipt(()))
    }

    /// Charges the next step of a track for integers that are summed with those of others, unseen, and adds this party's share of the noise of the sum: a
    /// discrete Gaussian with a deviation of 2^[`DEVIATION_LOG2`](crate::DEVIATION_LOG2). Without a plan there is no noise, and the charge is that of exact values.
    ///
    /// # Privacy
    /// As for [`Gate::charge`]: the accountant that reads the charge proves that its observer sees the integers in a sum alone, with as many shares that it
    /// does not know as make up the step's law, scaled to this sensitivity.
    ///
    /// # Panics
    /// When the sensitivity is not a finite number above zero.
    pub fn contribute(
        &mut self,
        track: Track,
        sensitivity: f64,
        audience: Audience,
        values: &mut [i64],
    ) -> Result<Receipt, Exhausted> {
        let receipt = self.charge(track, sensitivity, audience)?;
        if self.plan.is_some() {
            self.noise.perturb_integers(values);
        }
        Ok(receipt)
    }

    fn record(&mut self, track: Track, event: Event, sensitivity: f64, audience: Audience) {
        self.done[track as usize] += u32::from(self.plan.is_some());
        // An exact value has none.
        let sensitivity = if self.plan.is_some() { Sensitivity::new(sensitivity).ok() } else { None };
        self.ledger.record(Charge { track, event, sensitivity, audience, count: 1 });
    }

    /// Adds noise of this law to a number that may leave anyway, and takes the nearest multiple of `grid`, so that sums stay exact:
    /// post-processing, at no charge. No noise where there is no plan.
    pub fn blur(&mut self, event: Event, sensitivity: f64, grid: f64, value: Released<f64>) -> Released<f64> {
        let mut values = [value.into_inner()];
        self.blur_all(event, sensitivity, Some(grid), Released::after_charge(&mut values));
        Released::after_charge(values[0])
    }

    /// The same for several numbers, of whose sum of squares the sensitivity is; without a grid they stay as they fall.
    pub fn blur_all<'v>(
        &mut self,
        event: Event,
        sensitivity: f64,
        grid: Option<f64>,
        values: Released<&'v mut [f64]>,
    ) -> Released<&'v mut [f64]> {
        let values = values.into_inner();
        if self.plan.is_some() {
            self.noise.perturb(event, sensitivity, values);
        }
        if let Some(grid) = grid {
            values.iter_mut().for_each(|value| *value = libm::rint(*value / grid) * grid);
        }
        Released::after_charge(values)
    }

    /// The next step of the plan; `None` when there is no plan, or it is done.
    pub fn next(&self) -> Option<Event> {
        self.next_on(Track::Models)
    }

    /// The next step of the track of losses; `None` when there is no plan, or it is done.
    pub fn next_aside(&self) -> Option<Event> {
        self.next_on(Track::Losses)
    }

    /// The next step of a track; `None` when there is no plan, or it is done.
    pub fn next_on(&self, track: Track) -> Option<Event> {
        self.plan.as_ref()?.track(track).get(self.done[track as usize] as usize).copied()
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

/// A charge that stands in the ledger, for a value that noise of others protects. It serves one value.
#[derive(Debug)]
#[must_use = "the charge stands, and nothing has left for it"]
pub struct Receipt(());

impl Receipt {
    /// The value that was charged for.
    pub fn release<T>(self, value: T) -> Released<T> {
        Released::after_charge(value)
    }
}

/// Whether charges of one track are exactly these steps, in their order: of one track, equal histories are equal ledgers.
fn is_history<'c>(charges: impl Iterator<Item = &'c Charge>, steps: &[Event]) -> bool {
    let mut charged = Ledger::default();
    charges.for_each(|charge| charged.record(Charge::new(charge.event, charge.count)));
    let mut expected = Ledger::default();
    steps.iter().for_each(|&event| expected.record(Charge::new(event, 1)));
    charged == expected
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BadPlan, Idealized, Ring, Shares, Tight};

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

    fn answering(noise: Idealized, trials: usize) -> Gate<Idealized> {
        let plan = Plan::new(vec![Event::RandomizedResponse { epsilon: 1.0 }; trials], f64::INFINITY, 0.5, &Tight);
        Gate::planned(Arc::new(plan.expect("an infinite budget")), noise)
    }

    #[test]
    fn answers_are_charged_before_they_are_given_and_stay_within_their_categories() {
        let mut gate = answering(Idealized::new(1, 0), 1);
        let mut answers = [0.0, 4.0, 2.0];
        let released = gate.respond(Track::Models, 5, &mut answers, Audience::Everyone).expect("planned");
        assert!(released.into_inner().iter().all(|answer| [0.0, 1.0, 2.0, 3.0, 4.0].contains(answer)));
        let charge = *gate.ledger().charges().next().expect("an entry");
        assert_eq!((charge.event, charge.count), (Event::RandomizedResponse { epsilon: 1.0 }, 1));
        let mut more = [1.0];
        assert_eq!(gate.respond(Track::Models, 5, &mut more, Audience::Everyone), Err(Exhausted));
        assert_eq!((more, gate.ledger().releases()), ([1.0], 1), "nothing left, and nothing was charged");
    }

    #[test]
    #[should_panic(expected = "an answer is one of 5 categories")]
    fn what_is_no_category_is_no_answer() {
        let _ = answering(Idealized::new(1, 0), 1).respond(Track::Models, 5, &mut [5.0], Audience::Everyone);
    }

    #[test]
    #[should_panic(expected = "for an answer")]
    fn a_step_of_another_mechanism_gives_no_answer() {
        let _ = planned(1).respond(Track::Models, 5, &mut [1.0], Audience::Everyone);
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
        assert_eq!((charge.sensitivity.map(Sensitivity::get), charge.count), (Some(0.5), 3));
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
            Gate::resumed(plan, ledger, Idealized::new(1, 0)).map(|gate| gate.done[0])
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
                assert_eq!((back.done[0], back.done[1]), (steps, asides), "alike: {alike}");
                while back.release_aside(&mut [0.0], 0.1).is_ok() || back.release(&mut [0.0], 0.5).is_ok() {}
                assert_eq!(back.ledger().releases(), 4, "alike: {alike}, {steps} {asides}");
            }
        }
        let charge = |noise_multiplier, count| Charge::new(Event::Gaussian { noise_multiplier }, count);
        let aside = |noise_multiplier, count| Charge { track: Track::Losses, ..charge(noise_multiplier, count) };
        let others = [
            vec![charge(20.0, 1), aside(30.0, 1)],
            vec![aside(30.0, 3)],
            vec![charge(10.0, 1), aside(40.0, 1)],
            vec![charge(10.0, 1), charge(30.0, 1)],
            vec![aside(10.0, 1)],
        ];
        for other in others {
            let ledger = Ledger::from_charges(other).expect("valid");
            let resumed = Gate::resumed(with_asides(false).plan.clone(), ledger, Idealized::new(1, 0));
            assert_eq!(resumed.map(drop), Err(OtherPlan));
        }
    }

    #[test]
    fn a_receipt_is_charged_on_its_track_and_adds_no_noise() {
        let gaussian = Event::Gaussian { noise_multiplier: 10.0 };
        let tracks = vec![(Track::Token, vec![gaussian; 2]), (Track::Reissues, vec![gaussian])];
        let ring = Ring::new(5, 1, Shares::One).expect("one observer");
        let local = Plan::with_tracks(tracks.clone(), 5.0, 1e-3, &Tight);
        assert!(matches!(local, Err(BadPlan::OverBudget { .. })), "everyone sees a token bare");
        let plan = Arc::new(Plan::with_tracks(tracks, 5.0, 1e-3, &ring).expect("cheap"));
        let mut gate = Gate::planned(plan.clone(), Idealized::new(1, 0));
        let receipt = gate.charge(Track::Token, 2.0, Audience::OneMember).expect("planned");
        assert_eq!(receipt.release(7.5).into_inner(), 7.5);
        let mut values = [7.5];
        gate.release_on(Track::Token, &mut values, 2.0, Audience::OneMember).expect("planned");
        assert_ne!(values, [7.5]);
        assert_eq!(gate.charge(Track::Token, 2.0, Audience::OneMember).map(drop), Err(Exhausted));
        assert_eq!(gate.charge(Track::Models, 2.0, Audience::OneMember).map(drop), Err(Exhausted));
        let said: Vec<_> = gate
            .ledger()
            .charges()
            .map(|c| (c.track, c.audience, c.sensitivity.map(Sensitivity::get), c.count))
            .collect();
        assert_eq!(said, [(Track::Token, Audience::OneMember, Some(2.0), 2)]);
        let back = Gate::resumed(Some(plan), gate.ledger().clone(), Idealized::new(1, 0)).expect("the same plan");
        assert_eq!((back.next_on(Track::Token), back.next_on(Track::Reissues)), (None, Some(gaussian)));
        let mut exact = Gate::without_privacy();
        let receipt = exact.charge(Track::Token, 2.0, Audience::OneMember).expect("no plan");
        let blurred = exact.blur(gaussian, 2.0, 0.25, receipt.release(1.1));
        assert_eq!(
            (blurred.into_inner(), exact.ledger().charges().next().map(|c| c.event)),
            (1.0, Some(Event::Reveal))
        );
        let mut gate = Gate::planned(Arc::new(Plan::nothing()), Idealized::new(1, 0));
        let blurred = gate.blur(gaussian, 2.0, 0.25, Released::after_charge(1.1)).into_inner();
        assert!(blurred != 1.0 && blurred % 0.25 == 0.0, "{blurred}");
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
