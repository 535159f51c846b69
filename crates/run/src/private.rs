//! What `[privacy]` means for a run: the gate of each agent, what everyone knows of its broadcast, and what was spent.

use crate::ledger_file;
use sottovoce_algorithms::{Problem, personal::home::Broadcast};
use sottovoce_core::PeerId;
use sottovoce_privacy::{Exact, Gate, Idealized, Ledger, Plan, Simulated};
use sottovoce_report::plot::number;
use sottovoce_task::algorithms::coordinate_descent::private_descent;
use sottovoce_task::error::Mistake;
use sottovoce_task::load::Loaded;
use sottovoce_task::task::{AccountantName, Leaves, NoiseKind, Observer, Pairs, Privacy, Unit};
use std::sync::Arc;

/// The gate of an agent: unplanned without `[privacy]`; with it the plan, or an empty one where there is nothing to tell.
pub fn gate(loaded: &Loaded, plan: Option<&Arc<Plan>>, id: PeerId) -> Gate<Simulated> {
    let (Some(privacy), Some(plan)) = (&loaded.task.privacy, plan) else { return Gate::unplanned(Simulated::None) };
    gate_with(&loaded.problem, plan, id, noise(privacy, loaded.task.run.seed, id))
}

/// The gate of an agent of a private task, with noise of the caller's.
pub fn gate_with(problem: &Problem, plan: &Arc<Plan>, id: PeerId, noise: Simulated) -> Gate<Simulated> {
    let silent = problem.data.size(id) == 0 || problem.graph.peers(id).is_empty();
    Gate::planned(if silent { Arc::new(Plan::nothing()) } else { plan.clone() }, noise)
}

/// The noise of an agent, as the task wants it made.
pub fn noise(privacy: &Privacy, seed: u64, id: PeerId) -> Simulated {
    match privacy.noise {
        NoiseKind::Idealized => Simulated::Idealized(Idealized::new(seed, id.0)),
        NoiseKind::Exact => Simulated::Exact(Box::new(Exact::seeded(seed, id.0))),
    }
}

/// What everyone can know of each agent's broadcast without looking at it. (Of a noisy copy of data nothing is known.)
pub fn broadcasts(loaded: &Loaded) -> Result<Vec<Broadcast>, Mistake> {
    let problem = &loaded.problem;
    let sizes: Vec<usize> = (0..problem.agents() as u32).map(|id| problem.data.size(PeerId(id))).collect();
    broadcasts_by_size(loaded, &sizes)
}

/// The same, for agents of which nothing else is known than their numbers of points.
pub fn broadcasts_by_size(loaded: &Loaded, sizes: &[usize]) -> Result<Vec<Broadcast>, Mistake> {
    let (Some(privacy), Some(plan)) = (&loaded.task.privacy, &loaded.plan) else { return Ok(Vec::new()) };
    let descent = private_descent(loaded, privacy)?;
    let one = |&points: &usize| {
        let (regularization, confidence) = loaded.problem.facts(points);
        match loaded.task.algorithm.leaves {
            Leaves::Updates => descent.broadcast(points, regularization, confidence, plan),
            _ => Broadcast { points, scale: 1.0, variance: f64::INFINITY, length_squared: 1.0 },
        }
    };
    Ok(sizes.iter().map(one).collect())
}

/// The largest epsilon of any agent by the task's accountant, and by each of the others.
pub fn spent(privacy: &Privacy, observer: &Observer, ledgers: &[Ledger]) -> Vec<(&'static str, f64)> {
    let most = |name: AccountantName| {
        ledger_file::epsilons(ledgers.iter(), privacy.delta, &*observer.accountant(name))
            .into_iter()
            .fold(0.0, f64::max)
    };
    AccountantName::ALL.iter().map(|&name| (name.name(), most(name))).collect()
}

/// For whose replacement and against whom a guarantee holds, in a sentence.
pub fn guarantee_in_words(unit: Unit, observer: &Observer) -> String {
    let replaced = match unit {
        Unit::Record => "for one record replaced by another",
        Unit::Agent => "for all records of one agent replaced by others",
    };
    match observer {
        Observer::Everyone => format!("{replaced}, against everyone"),
        Observer::Pairs { .. } => format!(
            "{replaced}, against {}, who follows the protocol, from what its neighbours send it; the worst pair's against everyone too",
            observer.name()
        ),
        Observer::GraphWalk(_) => format!(
            "{replaced}, against {}, who follows the protocol, knows the path of the token, sees it when it holds it and is told what it came to",
            observer.name()
        ),
        Observer::Curator(_) => format!("{replaced}, against everyone but a curator, who is trusted with all data"),
        Observer::Walk(..) => format!(
            "{replaced}, against {}, who follow the protocol, know the path of the token, see it when they hold it and are told what it came to",
            observer.name()
        ),
        Observer::Answers(_) => format!("{replaced}, against {}, from what is sent to them", observer.name()),
        Observer::Aggregator => {
            format!("{replaced}, against the aggregator, alone or with other members, all honest but curious")
        }
        Observer::Gopa(gopa) => format!("{replaced}, against {}, all of whom follow the protocol", gopa.observer()),
        Observer::Ring(ring) => format!("{replaced}, against {}, from what is sent to them", ring.observer()),
    }
}

/// An epsilon beyond this bounds a likelihood ratio by more than e^20, five hundred million: no attack is excluded by it.
const EPSILON_LARGE: f64 = 20.0;

/// From this delta on, whatever m is, one failure in a hundred is allowed.
const DELTA_LARGE: f64 = 0.01;

/// A delta within this factor of 1/m is near it.
const NEAR: f64 = 10.0;

/// What a careful reader should know about a budget that is kept on the mean over pairs of members, the worst of which has this much.
pub fn warning_of_pairs(privacy: &Privacy, worst: Option<f64>) -> Vec<String> {
    let worst = worst.filter(|_| privacy.pairs == Pairs::Mean);
    let warning = |worst: f64| {
        format!(
            "epsilon = {} is a mean over pairs of members: two neighbours, and everyone together, have epsilon = {} of each other's data. \
             Choose pairs = \"worst\" to protect them too.",
            number::bound(privacy.epsilon),
            number::bound(worst)
        )
    };
    worst.map(warning).into_iter().collect()
}

/// What a careful reader should know about a task's budget. Nothing is refused for it: simulations of papers are entitled to large budgets.
/// All of it follows from the task and from numbers of points, which are public.
pub fn warnings(privacy: &Privacy, problem: &Problem) -> Vec<String> {
    let Privacy { epsilon, delta, .. } = *privacy;
    let said = number::bound(delta);
    let mut warnings = Vec::new();
    // Where all of an agent may be replaced, it is one record.
    let size = |points: usize| if privacy.unit == Unit::Agent { 1 } else { points };
    let most = size(problem.data.largest());
    let sizes = (0..problem.agents() as u32).map(|id| size(problem.data.size(PeerId(id))));
    let exposed = sizes.filter(|&points| delta * points as f64 > 1.0).count();
    if epsilon > EPSILON_LARGE {
        warnings.push(format!(
            "epsilon = {} is above {EPSILON_LARGE}: it allows a record to be told apart almost surely, so it promises next to \
             nothing. Choose an epsilon of a few units.",
            number::bound(epsilon)
        ));
    }
    if exposed > 0 {
        warnings.push(format!(
            "delta = {said} exceeds 1/m for {exposed} agents (the largest has {most} points): a mechanism that publishes one \
             record in {most} would pass. Choose a delta well below 1/m."
        ));
    } else if delta * most as f64 * NEAR > 1.0 {
        warnings.push(format!(
            "delta = {said} is near 1/m (the largest agent has {most} points): a mechanism that publishes one record outright in one run \
             of {} would pass. Choose a delta well below 1/m.",
            (1.0 / (delta * most as f64)).ceil()
        ));
    }
    if delta >= DELTA_LARGE {
        warnings.push(format!(
            "delta = {said} allows the guarantee to fail altogether in one case of {}. Choose a delta below {DELTA_LARGE}, and well below \
             1/m.",
            (1.0 / delta).floor()
        ));
    }
    if delta * problem.agents() as f64 > 1.0 {
        warnings.push(format!(
            "delta = {said} exceeds 1/n for {} agents: the guarantee may fail for one of them. Choose a smaller delta.",
            problem.agents()
        ));
    }
    warnings
}
