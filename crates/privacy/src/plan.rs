//! What an agent is going to release, decided before it looks at its data.

use crate::calibrate::{self, Uncalibrated};
use crate::{Accountant, BadCharge, Charge, Event, Ledger};
use thiserror::Error;

/// The releases that an agent may make, in their order, and the budget that they keep all together.
///
/// The cost is computed once, when the plan is made, for all of its steps; after that a [`crate::Gate`] only has to see that
/// the next release is the next step. A release that is not in the plan is refused, so what was promised is what is spent, and
/// neither the number of releases nor their noise can depend on data. One plan serves all agents that follow it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    steps: Vec<Event>,
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
        let cost = accountant.epsilon(&ledger_of(&steps)?, delta);
        // PRIVACY: an exact value is never a step, not even of an infinite budget: the gate relies on it.
        let is_noisy = !steps.contains(&Event::Reveal);
        // Not `cost > epsilon`: a budget that is no number allows nothing.
        if is_noisy && cost <= epsilon {
            Ok(Plan { steps, epsilon, delta })
        } else {
            Err(BadPlan::OverBudget { cost, epsilon, delta })
        }
    }

    /// The plan `steps(x)` for the least x in [1e-12, 1e12], to a relative 1e-9, that keeps the budget. More of x must be more
    /// noise.
    pub fn with_least_noise(
        steps: impl Fn(f64) -> Vec<Event>,
        epsilon: f64,
        delta: f64,
        accountant: &dyn Accountant,
    ) -> Result<Self, Uncalibrated> {
        calibrate::checked(epsilon, delta, steps(1.0).len() as u64)?;
        let charges = |inverse: f64| steps(1.0 / inverse).into_iter().map(|event| Charge::new(event, 1));
        let inverse = calibrate::largest(charges, epsilon, delta, accountant).ok_or(Uncalibrated::OutOfReach)?;
        Plan::new(steps(1.0 / inverse), epsilon, delta, accountant).map_err(|_| Uncalibrated::OutOfReach)
    }

    /// The plan of an agent that has nothing to tell about: no release at all.
    pub fn nothing() -> Self {
        Plan { steps: Vec::new(), epsilon: 0.0, delta: 0.0 }
    }

    /// The releases, in their order.
    pub fn steps(&self) -> &[Event] {
        &self.steps
    }

    /// The budget: epsilon.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }

    /// The budget: delta.
    pub fn delta(&self) -> f64 {
        self.delta
    }

    /// What the ledger will say when all is released, but for the sensitivities.
    pub fn ledger(&self) -> Ledger {
        ledger_of(&self.steps).expect("the steps were checked when the plan was made")
    }
}

fn ledger_of(steps: &[Event]) -> Result<Ledger, BadCharge> {
    Ledger::from_charges(steps.iter().map(|&event| Charge::new(event, 1)))
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
    fn the_plan_of_an_agent_without_data_releases_nothing() {
        assert_eq!(Plan::nothing().ledger().releases(), 0);
    }
}
