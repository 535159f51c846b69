//! Collaborative learning by gossip ADMM (Vanhaesebrouck et al. 2017).

use super::{Access, Visitor, refused};
use crate::error::Mistake;
use crate::keys::{ABOVE_0, COUNT, Key, Kind, key};
use crate::loaded::Loaded;
use crate::task::{Description, OwnKeys};
use sottovoce_algorithms::personal::admm::{Admm, AdmmConfig, Inner, default_penalty};
use toml::Value;

/// The key of rho.
pub const PENALTY: &str = "admm.penalty";
/// The key of how inner problems are solved.
pub const INNER: &str = "admm.inner";
/// Gradient steps for each inner problem when a task does not say.
const INNER_DEFAULT: u32 = 10;

/// What everybody may ask about it.
pub const DESCRIPTION: Description = Description {
    name: "admm",
    sentence: "minimizes its part of the same objective, then exchanges two vectors each way with one random neighbour",
    on_peers: Some(|task| {
        task.own.get(PENALTY).is_none().then_some(
            "admm.penalty is missing, and its default needs everyone's edges; accepted for peers: admm.penalty = a number",
        )
    }),
    keys: KEYS,
    own_defaults: |own| {
        if let Some(penalty) = own.number(PENALTY) {
            own.set(PENALTY, penalty);
        }
        own.set(INNER, own.get(INNER).cloned().unwrap_or(Value::Integer(INNER_DEFAULT.into())));
    },
    complete: |task, graph, _| {
        if task.own.get(PENALTY).is_none() {
            task.own.set(PENALTY, default_penalty(graph, task.model.trade_off));
        }
    },
    ..Description::PLAIN
};

#[rustfmt::skip]
const KEYS: &[Key] = &[
    key("admm", Kind::Table, "all defaults", "Read when algorithm = \"admm\"."),
    key(PENALTY, Kind::Number(ABOVE_0), "0.1 x the mean weight x min(1, trade-off)", "rho."),
    key(INNER, Kind::IntegerOr(1, COUNT, &["exact"]), "10", "Gradient steps for each inner problem, or \"exact\"."),
];

fn inner(own: &OwnKeys) -> Inner {
    match own.get(INNER) {
        None => Inner::Gradient { steps: INNER_DEFAULT as usize },
        Some(Value::Integer(steps)) => Inner::Gradient { steps: usize::try_from(*steps).unwrap_or(usize::MAX) },
        Some(_) => Inner::Exact,
    }
}

pub(super) fn build<V: Visitor>(loaded: &Loaded, visitor: V) -> Result<V::Output, Mistake> {
    let (problem, own) = (&loaded.problem, &loaded.task.own);
    let trade_off = problem.trade_off;
    let penalty = own.number(PENALTY).unwrap_or_else(|| default_penalty(&problem.graph, trade_off));
    let config = AdmmConfig { trade_off, penalty, inner: inner(own) };
    Ok(visitor.visit(&Admm::new(config).map_err(refused(loaded))?, Access::to_points()))
}
