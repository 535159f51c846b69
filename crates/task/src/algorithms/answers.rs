//! What algorithms have in common whose members answer one of them once.

use super::pairs;
use crate::error::Mistake;
use crate::keys::{Key, Kind, key};
use crate::loaded::Loaded;
use crate::task::{Refusal, Sizes, Task};
use sottovoce_algorithms::Problem;
use sottovoce_algorithms::pairs::answers::ROWS_MAX;
use sottovoce_core::PeerId;

/// Who gathers the answers.
const AGGREGATOR: &str = "roles.aggregator";

#[rustfmt::skip]
pub(super) const KEYS: &[Key] = &[
    key("roles", Kind::Table, "all defaults", "Who does what others do not."),
    key(AGGREGATOR, Kind::Text, "the first agent", "randomized-response, hierarchical-auc, two-party: who gathers the answers, and alone knows the estimate. It answers, or meets others, too."),
];

pub(super) fn check(task: &Task, sizes: Option<Sizes>) -> Option<Refusal> {
    if task.run.rounds.is_some_and(|rounds| rounds > 1) {
        let what =
            "run.rounds: a row answers once, and a second answer would cost as much again; accepted: no run.rounds";
        return Some(("run.rounds", what.to_owned()));
    }
    if let Some(Sizes { agents: 0 | 1, .. }) = sizes {
        let what = "one agent has nobody to answer to; accepted: two agents or more";
        return Some(("algorithm", what.to_owned()));
    }
    pairs::check(task, sizes)
}

pub(super) fn check_everyone(task: &Task, problem: &Problem) -> Option<Refusal> {
    let statistic = task.statistic.as_ref()?;
    if let Err(error) = pairs::factor(statistic) {
        return Some(("statistic.kind", error.to_string()));
    }
    let most = problem.data.largest();
    (most > ROWS_MAX).then(|| {
        let what = format!("an agent has {most} rows; accepted: at most {ROWS_MAX}, whose answers are one letter");
        ("data.train", what)
    })
}

/// Who gathers the answers, among all members.
pub(super) fn aggregator(loaded: &Loaded) -> Result<PeerId, Mistake> {
    let Some(name) = loaded.task.own.get(AGGREGATOR).and_then(toml::Value::as_str) else { return Ok(PeerId(0)) };
    match loaded.names.iter().position(|known| known == name) {
        Some(place) => Ok(PeerId(place as u32)),
        None => {
            let what = format!("roles.aggregator is {name:?}; accepted: the name of an agent");
            Err(Mistake::file(&loaded.task.source, what))
        }
    }
}
