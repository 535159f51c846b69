//! Boosting by decentralized Frank-Wolfe (thesis, chapter 2), over a graph that is known or learned.

use super::learned_graph::alternating;
use super::{Access, Visitor, refused};
use crate::error::Mistake;
use crate::loaded::Loaded;
use crate::task::{Description, GraphSource, LearnedDefaults, Predictors, Step, Wish};
use sottovoce_algorithms::Loss;
use sottovoce_algorithms::personal::boosting::{FrankWolfe, FrankWolfeConfig};
use sottovoce_algorithms::personal::graph::AlternatingState;
use sottovoce_core::Algorithm;

/// What everybody may ask about it.
pub const DESCRIPTION: Description = Description {
    name: "frank-wolfe",
    sentence: "adds one base predictor to its combination, where that lowers the same objective most, and tells all neighbours \
               which, in a few bytes",
    boosts: true,
    // From the thesis' grid, tuned on moons of other seeds.
    learned_graph: Some(LearnedDefaults { trade_off: 1.0, sparsity: 10.0 }),
    on_peers: Some(|task| {
        let boosting = task.boosting.expect("reading the task has filled it in");
        if boosting.range.is_none() && boosting.predictors != Predictors::Columns {
            return Some(
                "boosting.range is missing, and its default needs everyone's points; accepted for peers: boosting.range = two \
                 numbers that all agree on, or predictors = \"columns\"",
            );
        }
        if boosting.step == Step::GlobalClock {
            return Some(
                "boosting.step = \"global-clock\" needs a clock that all peers share, and there is none; accepted for peers: \
                 \"local-clock\" or \"descent\"",
            );
        }
        task.run.tolerance.map(|_| {
            "run.tolerance of frank-wolfe is about everyone's gaps together, which no peer knows; accepted for peers: \
             run.wakes-per-agent"
        })
    }),
    refuses,
    ..Description::PLAIN
};

fn refuses(wish: &Wish<'_>) -> Option<(&'static str, String)> {
    if !matches!(wish.model.loss, Loss::Logistic | Loss::SmoothedHinge) {
        let what = "frank-wolfe boosts classifiers by a loss of its own, and model.loss is that of the linear models beside \
                    it; accepted: model.loss = \"logistic\" or \"smoothed-hinge\"";
        return Some(("model.loss", what.to_owned()));
    }
    let what = "model.start has no meaning for frank-wolfe, which starts at zero on a known graph and from boosting \
                alone where the graph is learned; accepted: no model.start";
    wish.says_start.then(|| ("model.start", what.to_owned()))
}

pub(super) fn build<V: Visitor>(loaded: &Loaded, visitor: V) -> Result<V::Output, Mistake> {
    let task = &loaded.task;
    if let GraphSource::Learned(learned) = &task.graph.source {
        let algorithm = alternating(boosting(loaded, 0.0)?, loaded, learned)?;
        let access = Access {
            links: Some(AlternatingState::links),
            bits: Some(|me: &AlternatingState<FrankWolfe>| me.learner().bits()),
            ..Access::to_points()
        };
        return Ok(visitor.visit(&algorithm, access));
    }
    // Where every part of the gap is at most an n-th of the tolerance, their sum is at most the tolerance.
    let gap_min = task.run.tolerance.map_or(0.0, |tolerance| tolerance / loaded.problem.agents() as f64);
    let access = Access { bits: Some(<FrankWolfe as Algorithm>::State::bits), ..Access::to_points() };
    Ok(visitor.visit(&boosting(loaded, gap_min)?, access))
}

/// Frank-Wolfe, as a task sets it.
pub(super) fn boosting(loaded: &Loaded, gap_min: f64) -> Result<FrankWolfe, Mistake> {
    let boosting = loaded.task.boosting.expect("reading the task has filled it in");
    let config = FrankWolfeConfig {
        predictors: loaded.problem.dimension(),
        trade_off: loaded.problem.trade_off,
        radius: boosting.radius,
        step_size: boosting.step.into(),
        gap_min,
        local_rounds: boosting.local_rounds as usize,
    };
    FrankWolfe::new(config).map_err(refused(loaded))
}
