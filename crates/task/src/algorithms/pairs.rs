//! What statistics of pairs have in common, whichever algorithm measures them: kernels, factors, and on which data and graphs they can be.

use crate::loaded::Loaded;
use crate::task::{Privacy, Refusal, Sizes, Statistic, StatisticKind, Task};
use sottovoce_algorithms::pairs::answered::{Answered, RowsOrAnswers};
use sottovoce_algorithms::pairs::answers::bins::Bins;
use sottovoce_algorithms::pairs::answers::response::Response;
use sottovoce_algorithms::pairs::graph::{Mixing, check_graph};
use sottovoce_algorithms::pairs::kernel::{
    Auc, Gini, Kendall, Kernel, PairKernel, Scatter, Variance, auc_factor, usual_factor,
};
use sottovoce_algorithms::reference::pairs::{Bound, observations, u2};
use sottovoce_algorithms::{ConfigError, Observations, Problem};
use sottovoce_core::PeerId;
use sottovoce_privacy::calibrate::Uncalibrated;
use sottovoce_privacy::{Event, Plan, Track};

/// All of them.
pub const STATISTICS: &[StatisticKind] =
    &[StatisticKind::Variance, StatisticKind::Gini, StatisticKind::Kendall, StatisticKind::Auc, StatisticKind::Scatter];

/// With more agents than this nobody computes the bound of a theorem, which looks at all pairs.
const BOUND_AGENTS_MAX: usize = 2_000;

/// h, where rows have so many columns.
pub fn kernel(statistic: &Statistic, columns: usize) -> Result<Kernel, ConfigError> {
    Ok(match statistic.kind {
        StatisticKind::Gini => Kernel::Gini(Gini),
        StatisticKind::Variance => Kernel::Variance(Variance),
        StatisticKind::Kendall => Kernel::Kendall(Kendall),
        StatisticKind::Auc => Kernel::Auc(Auc { ties: statistic.ties.into() }),
        StatisticKind::Scatter if statistic.centres.is_empty() => {
            Kernel::Scatter(Scatter::new(columns, &vec![0.0; columns])?)
        }
        StatisticKind::Scatter => Kernel::Scatter(Scatter::new(columns, &statistic.centres.concat())?),
        other => unreachable!("{} is not of pairs", other.name()),
    })
}

/// What U2 is multiplied by: the usual mean over pairs of two different rows, or the normalized AUC.
pub fn factor(statistic: &Statistic) -> Result<f64, ConfigError> {
    let said = |count: Option<u64>| count.expect("loading fills it in, and peers must say it") as usize;
    let rows = said(statistic.rows);
    if statistic.kind != StatisticKind::Auc {
        return usual_factor(rows);
    }
    let positives = said(statistic.positives);
    match rows.checked_sub(positives) {
        Some(negatives) => auc_factor(positives, negatives),
        None => {
            let value = format!("{positives} of {rows} rows");
            Err(ConfigError { field: "statistic.positives", value, accepted: "at most as many as there are rows" })
        }
    }
}

fn everyone<'p>(task: &Task, problem: &'p Problem) -> impl Iterator<Item = Observations<'p>> {
    let bounds = task.statistic.as_ref().and_then(|statistic| statistic.range);
    let agents = (0..problem.agents() as u32).map(PeerId);
    agents.map(move |agent| Observations { points: problem.data.points(agent), bounds })
}

/// The statistic itself, from everybody's rows.
pub fn exact(task: &Task, statistic: &Statistic, problem: &Problem) -> Result<f64, ConfigError> {
    let kernel = kernel(statistic, problem.dimension())?;
    Ok(factor(statistic)? * u2(&kernel, &observations(&kernel, everyone(task, problem))))
}

/// One step of randomized response, for all rows of an agent: one row moves one answer.
pub(super) fn plan(_: &Task, privacy: &Privacy, _: &Problem) -> Result<Plan, Uncalibrated> {
    let steps = |noise: f64| vec![Event::RandomizedResponse { epsilon: 1.0 / noise }];
    Plan::with_least_noise(steps, privacy.epsilon, privacy.delta, privacy.accountant.accountant())
}

/// The epsilon of an answer.
pub(super) fn epsilon(plan: Option<&Plan>) -> f64 {
    match plan.and_then(|plan| plan.track(Track::Models).first()) {
        Some(Event::RandomizedResponse { epsilon }) => *epsilon,
        other => unreachable!("a plan of one answer, and not {other:?}"),
    }
}

/// What answers of bins are worth: those of the task, or by the public rule.
pub(super) fn response(statistic: &Statistic, columns: usize, epsilon: f64) -> Result<Response, ConfigError> {
    let (range, rows) = (statistic.range.expect("reading the task has checked it"), statistic.rows.unwrap_or(1));
    let bins = match statistic.bins {
        Some(bins) => Bins::new(range, bins, columns)?,
        None => Bins::by_rule(range, rows, epsilon, columns)?,
    };
    Response::new(&kernel(statistic, columns)?, bins, epsilon)
}

/// An upper bound of the standard deviation of what all answers say; none where rows are exact, and for an AUC.
pub(super) fn deviation(task: &Task, plan: Option<&Plan>, problem: &Problem) -> Option<f64> {
    let statistic = task.statistic.as_ref()?;
    let epsilon = epsilon(Some(plan?));
    let range = kernel(statistic, problem.dimension()).ok()?.range(statistic.range)?;
    let response = response(statistic, problem.dimension(), epsilon).ok()?;
    response.deviation_max(statistic.rows?, range.high - range.low)
}

/// What wanders: rows, or with `[privacy]` their answers.
pub(super) fn rows_or_answers(loaded: &Loaded, statistic: &Statistic) -> Result<RowsOrAnswers, ConfigError> {
    let columns = loaded.problem.dimension();
    let kernel = kernel(statistic, columns)?;
    if loaded.task.privacy.is_none() {
        return Ok(RowsOrAnswers::Rows(kernel));
    }
    let response = response(statistic, columns, epsilon(loaded.plan.as_deref()))?;
    Ok(RowsOrAnswers::Answers(Answered::new(&kernel, response)))
}

/// Refuses a statistic of other columns than it has.
pub(super) fn check(task: &Task, sizes: Option<Sizes>) -> Option<Refusal> {
    let statistic = task.statistic.as_ref()?;
    let columns = sizes.map(|sizes| sizes.columns).or(statistic.columns.as_ref().map(Vec::len))?;
    let kernel = match kernel(statistic, columns) {
        Ok(kernel) => kernel,
        Err(_) => {
            let found = statistic.centres.first().map_or(0, Vec::len);
            let what = format!(
                "statistic.centres have {found} numbers each, and rows {columns} columns; accepted: {columns} numbers"
            );
            return Some(("statistic.centres", what));
        }
    };
    if let Some(centre) = statistic.centres.first().filter(|centre| centre.len() != columns) {
        let found = centre.len();
        let what = format!(
            "statistic.centres have {found} numbers each, and rows {columns} columns; accepted: {columns} numbers"
        );
        return Some(("statistic.centres", what));
    }
    let wanted = kernel.columns();
    if columns != wanted {
        let (kind, names) = (statistic.kind.name(), ["no name", "one name", "two names"]);
        let of = if statistic.kind == StatisticKind::Auc { ", that of the score" } else { "" };
        let what = format!(
            "{kind} is of {wanted} column{}, and there {} {columns}; accepted: statistic.columns = {}{of}",
            if wanted == 1 { "" } else { "s" },
            if columns == 1 { "is" } else { "are" },
            names[wanted]
        );
        return Some(("statistic.columns", what));
    }
    None
}

/// Refuses data that have no pair, or one class, and graphs on which observations do not come everywhere.
pub(super) fn check_everyone(task: &Task, problem: &Problem) -> Option<Refusal> {
    let statistic = task.statistic.as_ref()?;
    let refused = |key| move |error: ConfigError| Some((key, error.to_string()));
    if let Err(error) = factor(statistic) {
        return refused("statistic.kind")(error);
    }
    if task.privacy.is_some() && problem.agents() < 2 {
        let what = "one agent has nobody to answer to; accepted: two agents or more";
        return Some(("algorithm", what.to_owned()));
    }
    check_graph(&problem.graph, |agent| problem.data.size(agent)).err().and_then(refused("graph"))
}

/// What is allowed but not proven.
pub(super) fn advice(_: &Task, problem: &Problem) -> Option<&'static str> {
    let mixing = check_graph(&problem.graph, |agent| problem.data.size(agent));
    (mixing == Ok(Mixing::Bipartite)).then_some(
        "the graph is bipartite, which the theorem on gossip about pairs excludes: estimates converge, at a rate that nothing promises",
    )
}

/// The bound of Theorem 3.1, for one row for each agent, nothing that goes wrong, and few enough agents to look at all pairs.
pub(super) fn bound(task: &Task, problem: &Problem) -> Option<Bound> {
    let statistic = task.statistic.as_ref()?;
    let agents = problem.agents();
    let one_each = (0..agents as u32).all(|agent| problem.data.size(PeerId(agent)) == 1);
    if task.privacy.is_some() || !one_each || agents > BOUND_AGENTS_MAX || !task.faults.is_none() {
        return None;
    }
    let mixing = check_graph(&problem.graph, |agent| problem.data.size(agent));
    let (kernel, factor) = (kernel(statistic, problem.dimension()).ok()?, factor(statistic).ok()?);
    let values = observations(&kernel, everyone(task, problem));
    (mixing == Ok(Mixing::Proven))
        .then(|| Bound::new(&kernel, &values, &problem.graph).times(factor / (agents as f64).sqrt()))
}

/// What peers must agree on, because none of them knows all others.
pub(super) fn on_peers(task: &Task) -> Option<&'static str> {
    let statistic = task.statistic.as_ref()?;
    if statistic.columns.is_none() {
        return Some(
            "statistic.columns is missing, and each peer has a file of its own; accepted for peers: statistic.columns = the names of columns",
        );
    }
    if statistic.rows.is_none() {
        return Some(
            "statistic.rows is missing, and no peer knows how many rows all have; accepted for peers: statistic.rows = a number that all \
             agree on",
        );
    }
    (statistic.kind == StatisticKind::Auc && statistic.positives.is_none()).then_some(
        "statistic.positives is missing, and no peer knows how many rows of all have the label 1; accepted for peers: \
         statistic.positives = a number that all agree on",
    )
}
