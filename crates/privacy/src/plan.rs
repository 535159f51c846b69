//! What an agent is going to release, decided before it looks at its data.

use crate::calibrate::{self, Uncalibrated};
use crate::{Accountant, BadCharge, Charge, Event, Ledger, Track};
use thiserror::Error;

/// The releases that an agent may make, in their order, and the budget that they keep all together.
///
/// The cost is computed once, when the plan is made, for all of its steps; after that a [`crate::Gate`] only has to see that
/// the next release is the next step. A release that is not in the plan is refused, so what was promised is what is spent, and
/// neither the number of releases nor their noise can depend on data. One plan serves all agents that follow it.
///
/// A plan has one list, or several *tracks*, each in an order of its own, for releases of different kinds. Which of them is next is
/// for a public clock to say, never for the data.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// By track, in their order; those without a release are left out.
    tracks: Vec<(Track, Vec<Event>)>,
    epsilon: f64,
    delta: f64,
}

/// Why there is no such plan.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum BadPlan {
    /// A step has parameters that no mechanism has.
    #[error(transparent)]
    Step(#[from] BadCharge),
    /// The steps cost more than the budget.
    #[error("the plan costs epsilon = {cost} at delta = {delta}, and the budget is {epsilon}")]
    OverBudget {
        /// What the accountant says.
        cost: f64,
        /// What may be spent.
        epsilon: f64,
        /// At this delta.
        delta: f64,
    },
}

impl Plan {
    /// A plan whose steps together keep (`epsilon`, `delta`) by this accountant.
    pub fn new(steps: Vec<Event>, epsilon: f64, delta: f64, accountant: &dyn Accountant) -> Result<Self, BadPlan> {
        Plan::with_asides(steps, Vec::new(), epsilon, delta, accountant)
    }

    /// A plan whose steps and asides all together keep (`epsilon`, `delta`) by this accountant.
    pub fn with_asides(
        steps: Vec<Event>,
        asides: Vec<Event>,
        epsilon: f64,
        delta: f64,
        accountant: &dyn Accountant,
    ) -> Result<Self, BadPlan> {
        Plan::with_tracks(vec![(Track::Models, steps), (Track::Losses, asides)], epsilon, delta, accountant)
    }

    /// A plan whose tracks all together keep (`epsilon`, `delta`) by this accountant. Each track is named once.
    pub fn with_tracks(
        mut tracks: Vec<(Track, Vec<Event>)>,
        epsilon: f64,
        delta: f64,
        accountant: &dyn Accountant,
    ) -> Result<Self, BadPlan> {
        tracks.retain(|(_, events)| !events.is_empty());
        tracks.sort_by_key(|(track, _)| *track);
        assert!(tracks.windows(2).all(|pair| pair[0].0 < pair[1].0), "a track is named twice");
        let cost = accountant.epsilon(&ledger_of(&tracks)?, delta);
        // PRIVACY: an exact value is never a step, not even of an infinite budget: the gate relies on it.
        let is_noisy = !tracks.iter().any(|(_, events)| events.contains(&Event::Reveal));
        // Not `cost > epsilon`: a budget that is no number allows nothing.
        if is_noisy && cost <= epsilon {
            Ok(Plan { tracks, epsilon, delta })
        } else {
            Err(BadPlan::OverBudget { cost, epsilon, delta })
        }
    }

    /// The plan `steps(x)` for the least x in [1e-20, 1e20], to a relative 1e-9, that keeps the budget. More of x must be more
    /// noise.
    pub fn with_least_noise(
        steps: impl Fn(f64) -> Vec<Event>,
        epsilon: f64,
        delta: f64,
        accountant: &dyn Accountant,
    ) -> Result<Self, Uncalibrated> {
        Plan::with_least_noise_and_asides(|noise| (steps(noise), Vec::new()), epsilon, delta, accountant)
    }

    /// The same for a plan with asides: `steps(x)` are its steps and its asides.
    pub fn with_least_noise_and_asides(
        steps: impl Fn(f64) -> (Vec<Event>, Vec<Event>),
        epsilon: f64,
        delta: f64,
        accountant: &dyn Accountant,
    ) -> Result<Self, Uncalibrated> {
        let tracks = |noise: f64| {
            let (steps, asides) = steps(noise);
            vec![(Track::Models, steps), (Track::Losses, asides)]
        };
        Plan::with_least_noise_on(tracks, epsilon, delta, accountant)
    }

    /// The same for a plan with any tracks, each of them named once.
    pub fn with_least_noise_on(
        tracks: impl Fn(f64) -> Vec<(Track, Vec<Event>)>,
        epsilon: f64,
        delta: f64,
        accountant: &dyn Accountant,
    ) -> Result<Self, Uncalibrated> {
        calibrate::checked(epsilon, delta, tracks(1.0).iter().map(|(_, events)| events.len() as u64).sum())?;
        let charges = |inverse: f64| {
            let each = |(track, events): (Track, Vec<Event>)| {
                let audience = track.audience();
                events.into_iter().map(move |event| Charge { audience, ..Charge::new(event, 1) })
            };
            tracks(1.0 / inverse).into_iter().flat_map(each)
        };
        let inverse = calibrate::largest(charges, epsilon, delta, accountant).ok_or(Uncalibrated::OutOfReach)?;
        let planned = Plan::with_tracks(tracks(1.0 / inverse), epsilon, delta, accountant);
        planned.map_err(|_| Uncalibrated::OutOfReach)
    }

    /// The plan of an agent that has nothing to tell about: no release at all.
    pub fn nothing() -> Self {
        Plan { tracks: Vec::new(), epsilon: 0.0, delta: 0.0 }
    }

    /// The releases of a track, in their order.
    pub fn track(&self, track: Track) -> &[Event] {
        self.tracks.iter().find(|(name, _)| *name == track).map_or(&[], |(_, events)| events)
    }

    /// The releases of the first track.
    pub fn steps(&self) -> &[Event] {
        self.track(Track::Models)
    }

    /// The releases of the track of losses.
    pub fn asides(&self) -> &[Event] {
        self.track(Track::Losses)
    }

    /// How many releases there are in all.
    pub fn releases(&self) -> u64 {
        self.tracks.iter().map(|(_, events)| events.len() as u64).sum()
    }

    /// The budget: epsilon.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The budget: delta.
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// What the ledger will say when all is released, but for tracks and sensitivities.
    pub fn ledger(&self) -> Ledger {
        ledger_of(&self.tracks).expect("the steps were checked when the plan was made")
    }
}

fn ledger_of(tracks: &[(Track, Vec<Event>)]) -> Result<Ledger, BadCharge> {
    // Accountants read events and audiences: equal ones count together, whichever track they are on.
    let events = tracks.iter().flat_map(|(track, events)| events.iter().map(|&event| (track.audience(), event)));
    Ledger::from_charges(events.map(|(audience, event)| Charge { audience, ..Charge::new(event, 1) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Sum, Tight};

    #[test]
    fn a_plan_above_its_budget_cannot_be_made() {
        let steps = |count| vec![Event::Laplace { noise_multiplier: 8.0 }; count];
        assert!(Plan::new(steps(8), 1.0, 0.0, &Sum).is_ok());
        assert!(matches!(Plan::new(steps(9), 1.0, 0.0, &Sum), Err(BadPlan::OverBudget { .. })));
        assert!(Plan::new(steps(9), 1.0, 1e-2, &Tight).is_ok(), "a better accountant allows more");
        assert!(matches!(Plan::new(vec![Event::Reveal], 1e9, 0.1, &Tight), Err(BadPlan::OverBudget { .. })));
        let exact = Plan::new(vec![Event::Reveal], f64::INFINITY, 0.1, &Tight);
        assert!(matches!(exact, Err(BadPlan::OverBudget { .. })), "an exact value is never planned");
        assert!(matches!(Plan::new(steps(1), f64::NAN, 0.1, &Tight), Err(BadPlan::OverBudget { .. })));
        let broken = vec![Event::Gaussian { noise_multiplier: f64::NAN }];
        assert!(matches!(Plan::new(broken, 1.0, 0.1, &Tight), Err(BadPlan::Step(_))));
    }

    #[test]
    fn asides_are_part_of_the_budget() {
        let steps = |count| vec![Event::Laplace { noise_multiplier: 8.0 }; count];
        assert!(Plan::with_asides(steps(5), steps(3), 1.0, 0.0, &Sum).is_ok());
        assert!(matches!(Plan::with_asides(steps(5), steps(4), 1.0, 0.0, &Sum), Err(BadPlan::OverBudget { .. })));
        let exact = Plan::with_asides(steps(1), vec![Event::Reveal], f64::INFINITY, 0.0, &Sum);
        assert!(matches!(exact, Err(BadPlan::OverBudget { .. })), "an exact value is never planned");
        let laplace = |noise_multiplier| Event::Laplace { noise_multiplier };
        let both = |noise: f64| (vec![laplace(noise); 3], vec![laplace(2.0 * noise); 2]);
        let plan = Plan::with_least_noise_and_asides(both, 1.0, 0.0, &Sum).expect("in reach");
        // 3 / x + 2 / (2 x) = 1
        assert!(plan.steps().iter().all(|&step| (step.pure_epsilon() - 0.25).abs() < 1e-8), "{plan:?}");
        assert_eq!((plan.asides().len(), plan.releases(), plan.ledger().releases()), (2, 5, 5));
    }

    #[test]
    fn the_plan_of_an_agent_without_data_releases_nothing() {
        assert_eq!(Plan::nothing().ledger().releases(), 0);
    }
}
