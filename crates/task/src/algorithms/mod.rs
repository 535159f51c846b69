//! The table of algorithms: each is described once, in a file of its own, and has one line here.
//!
//! A file holds a [`Description`] and a function that builds the algorithm for a loaded task. An [`Algorithm`](sottovoce_core::Algorithm) is no trait object, because
//! letters borrow from the bytes they came in: so whoever wants to run one, whichever it is, brings a [`Visitor`].

mod access;
mod answers;
pub mod graph_walk;
mod learned_graph;
mod ring_histogram;

pub mod admm;
pub mod coordinate_descent;
pub mod federated_averaging;
pub mod frank_wolfe;
pub mod gopa;
pub mod gossip;
pub mod gosta;
pub mod gosta_sync;
pub mod hierarchical_auc;
pub mod input_perturbation;
pub mod local;
pub mod model_propagation;
pub mod muffliato;
pub mod muffliato_sgd;
pub mod pairs;
pub mod polar_sgd;
pub mod randomized_response;
pub mod ring;
pub mod two_party;
pub mod u2_gossip;
pub mod walk;
pub mod walk_sgd;

pub use access::{Access, HeardModels, Visitor};
pub use learned_graph::joint;

use crate::error::Mistake;
use crate::loaded::Loaded;
use crate::task::{Description, Leaves, Yields};
use sottovoce_algorithms::ConfigError;
use sottovoce_algorithms::token::walk::{Sums, Walk};
use sottovoce_algorithms::token::walk_sgd::WalkSgd;

/// One line for each algorithm: the list, their names, and who builds which.
macro_rules! table {
    ($($entry:ident,)*) => {
        /// Every algorithm, in the order of the documents.
        pub const TABLE: &[&Description] = &[$(&$entry::DESCRIPTION),*];

        /// Their names.
        pub const NAMES: &[&str] = &[$($entry::DESCRIPTION.name),*];

        /// Builds an algorithm for a task, its own or another, and shows it to the visitor.
        pub fn with_algorithm<V: Visitor>(
            loaded: &Loaded,
            algorithm: &Description,
            visitor: V,
        ) -> Result<V::Output, Mistake> {
            $(if *algorithm == $entry::DESCRIPTION {
                return $entry::build(loaded, visitor);
            })*
            unreachable!("{algorithm:?} is described, but not in the table")
        }
    };
}

table! {
    local,
    model_propagation,
    coordinate_descent,
    admm,
    frank_wolfe,
    input_perturbation,
    gossip,
    ring,
    walk,
    walk_sgd,
    muffliato,
    muffliato_sgd,
    gopa,
    federated_averaging,
    gosta,
    gosta_sync,
    u2_gossip,
    randomized_response,
    hierarchical_auc,
    polar_sgd,
    two_party,
}

/// A token that walks, whatever its holders do.
pub enum TokenWalk {
    /// They add to it.
    Sums(Walk<Sums>),
    /// They take gradient steps.
    Descent(WalkSgd),
}

/// The walk of a task that has one.
pub fn token_walk(loaded: &Loaded) -> Option<Result<TokenWalk, Mistake>> {
    match loaded.task.algorithm {
        one if *one == walk::DESCRIPTION => Some(walk::walk(loaded).map(TokenWalk::Sums)),
        one if *one == walk_sgd::DESCRIPTION => Some(walk_sgd::walk(loaded).map(TokenWalk::Descent)),
        _ => None,
    }
}

/// An algorithm's refusal of its parameters, as a mistake of the task.
fn refused(loaded: &Loaded) -> impl Fn(ConfigError) -> Mistake {
    |error| Mistake::file(&loaded.task.source, error.to_string())
}

/// The table as the documentation shows it.
pub fn markdown() -> String {
    let mut text = String::from(
        "| `algorithm` | an agent at a wake | yields | `kind = \"learned\"` | `[privacy]` | real peers |\n|---|---|---|---|---|---|\n",
    );
    for one in TABLE {
        let yields = match one.yields {
            Yields::ModelPerAgent => "a model per agent",
            Yields::OneModel => "one model",
            Yields::Estimate => "an estimate",
            Yields::Nothing => "nothing",
        };
        let private = match one.leaves {
            Leaves::Nothing => "nothing leaves",
            Leaves::Exact => "no: exact values leave",
            Leaves::Obfuscated => {
                "yes: gradients with noise; without it they are weighted and shifted, which is not differential privacy"
            }
            Leaves::Updates => "yes: updates with noise",
            Leaves::NoisyData => "required: data with noise",
            Leaves::NoisyOnce => "yes: a contribution with noise, once",
            Leaves::Gradients => "yes: a gradient with noise, once for each step",
            Leaves::Token | Leaves::MaskedSums => "yes: with noise that members make for each other",
            Leaves::Answers => "required: a randomized answer for each row",
            Leaves::Rows => "yes: a randomized answer for each row in its place",
            Leaves::Halves => "yes: answers of pairs, with noise inside their circuits, to the aggregator",
        };
        let yes = |can: bool| if can { "yes" } else { "no" };
        let (learned, peers) = (yes(one.learned_graph.is_some()), yes(one.on_peers.is_some()));
        text += &format!("| `{}` | {} | {yields} | {learned} | {private} | {peers} |\n", one.name, one.sentence);
    }
    text
}

/// The algorithms that yield some things, in lines for a command's help.
pub fn help(yields: &[Yields]) -> String {
    let listed = || TABLE.iter().filter(|one| yields.contains(&one.yields));
    let width = listed().map(|one| one.name.len()).max().unwrap_or(0);
    let mut text = String::from("Algorithms, and what an agent does at a wake:");
    for one in listed() {
        text += &format!("\n  {:width$}  {}", one.name, one.sentence);
    }
    text
}

#[cfg(test)]
mod tests;
