//! What everybody may ask about an algorithm, and what follows from a task that names it.
//!
//! An algorithm is described once, by a [`Description`] in [`crate::algorithms`]. Readers of tasks, runs, peers, audits and documents ask it;
//! none of them knows an algorithm by name.

use super::{GraphSource, Model, Observer, OwnKeys, Privacy, StatisticKind, Task};
use crate::keys::Key;
use sottovoce_algorithms::Problem;
use sottovoce_algorithms::reference::pairs::Bound;
use sottovoce_core::Graph;
use sottovoce_privacy::Plan;
use sottovoce_privacy::calibrate::Uncalibrated;
use std::fmt;

/// An algorithm as a task, a run and a document know it. [`Description::PLAIN`] is where a new one starts.
#[derive(Clone, Copy)]
pub struct Description {
    /// As it is written in a task file.
    pub name: &'static str,
    /// What an agent does at a wake, in a sentence without its full stop.
    pub sentence: &'static str,
    /// What comes of a run.
    pub yields: Yields,
    /// Which statistics it measures; none where it learns models.
    pub statistics: &'static [StatisticKind],
    /// Whether what agents come to know holds for everybody only if the graph is connected.
    pub needs_connected: bool,
    /// What others can see of an agent.
    pub leaves: Leaves,
    /// Whether agents write to everyone: its tasks have no graph, and each of its peers lists all members.
    pub everyone: bool,
    /// Whether its tasks may have a graph all the same, along whose edges they go.
    pub takes_graph: bool,
    /// Whether it ends by itself after some rounds, however often anybody wakes.
    pub in_rounds: bool,
    /// After how many, where a task does not say; none where the graph tells.
    pub rounds: Option<u32>,
    /// Whether its rounds can be accelerated: it reads `run.accelerated`.
    pub accelerates: bool,
    /// Whether its guarantee is one for each pair of members: it reads `privacy.pairs`.
    pub by_pairs: bool,
    /// Whether it ends by itself after some hops of tokens.
    pub in_hops: bool,
    /// Whether agents take gradient steps of a size that the task says.
    pub takes_steps: bool,
    /// The most events of an agent in a round; a round of a token without faults has three.
    pub events_per_round: fn(&OwnKeys) -> u64,
    /// Agents that the task itself names and that have no rows.
    pub without_data: fn(&OwnKeys) -> Vec<String>,
    /// What is allowed, but seldom meant.
    pub warning: fn(&Task) -> Option<&'static str>,
    /// Whether agents act when their clocks tick. Others are done when they have started.
    pub acts: bool,
    /// Whether models weigh base predictors, which then stand in the place of features; the tolerance of a run bounds their duality gap.
    pub boosts: bool,
    /// What a task whose graph is learned does not say; `None`: the graph must be known.
    pub learned_graph: Option<LearnedDefaults>,
    /// By which factor the expected distance to the minimum falls at a wake, where a theorem says so and nothing goes wrong.
    pub rate: Option<fn(&Problem) -> Option<f64>>,
    /// What real peers cannot run, and why, in words that say what they can; `None`: they cannot run it at all.
    pub on_peers: Option<fn(&Task) -> Option<&'static str>>,
    /// The keys of its own section of a task file.
    pub keys: &'static [Key],
    /// Fills in the defaults of these keys, as far as the task alone can tell them.
    pub own_defaults: fn(&mut OwnKeys),
    /// Refuses what it cannot be combined with: the key and the reason, in words that say what is accepted.
    pub refuses: fn(&Wish<'_>) -> Option<Refusal>,
    /// The same for the whole task, once its keys are resolved, and again when it is known how many agents and columns there are.
    pub check: fn(&Task, Option<Sizes>) -> Option<Refusal>,
    /// The same for everybody's data on its graph. No peer is asked, for none of them has these.
    pub check_everyone: fn(&Task, &Problem) -> Option<Refusal>,
    /// What is allowed with everybody's data on its graph, but seldom meant.
    pub advice: fn(&Task, &Problem) -> Option<&'static str>,
    /// How far estimates are from the exact value at most, in the root mean square over agents of their expectations, where a theorem says so.
    pub bound: fn(&Task, &Problem) -> Option<Bound>,
    /// Against whom its guarantee holds, with so many agents.
    pub observer: fn(&Task, usize) -> Observer,
    /// The standard deviation of an estimate by the formula, where there is one.
    pub deviation: fn(&Task, Option<&Plan>, &Problem) -> Option<f64>,
    /// What `privacy plan` says of it besides what it says of every plan, by name.
    pub outlook: fn(&Task, Option<&Plan>, &Problem) -> Details,
    /// Refuses a graph, in words that say what is accepted; asked where the whole graph is known, and never of a peer.
    pub refuses_graph: fn(&Task, &Graph) -> Option<String>,
    /// Whether what an agent comes to know may be shown to others; else it is for that agent alone.
    pub is_for_all: fn(&Task) -> bool,
    /// Fills in what only the graph and everybody's names can tell.
    pub complete: fn(&mut Task, &Graph, &[String]),
    /// The releases of each agent that has data and a neighbour, with the least noise that keeps the budget.
    pub plan: fn(&Task, &Privacy, &Problem) -> Result<Plan, Uncalibrated>,
}

/// What comes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Yields {
    /// A model for each agent.
    ModelPerAgent,
    /// One model for all.
    OneModel,
    /// A statistic of everybody's data.
    Estimate,
    /// Nothing that is kept.
    Nothing,
}

/// What others can see of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// Nothing at all.
    Nothing,
    /// Exact values: it cannot be private.
    Exact,
    /// Gradients that are weighted, with bounded vectors added, to several servers. It hides single gradients, and is not differential privacy. With
    /// `[privacy]` a gradient is clipped and has noise before.
    Obfuscated,
    /// Models after each update. With `[privacy]` an update is a clipped gradient with noise.
    Updates,
    /// A copy of the data with noise, once: there must be a `[privacy]`.
    NoisyData,
    /// A contribution, once, and with `[privacy]` under noise of its own; what follows is made of such values.
    NoisyOnce,
    /// A gradient for each step, and with `[privacy]` under noise of its own; what follows is made of such values.
    Gradients,
    /// A randomized answer for each row, once: there must be a `[privacy]`.
    Answers,
    /// Rows, that are passed on. With `[privacy]` a randomized answer for each, once, in its place.
    Rows,
    /// Halves of what pairs compute under encryption, to the aggregator alone. With `[privacy]` the circuits make noise.
    Halves,
    /// Contributions to sums, under masks that cancel. With `[privacy]` all members make noise, which protects all.
    MaskedSums,
    /// Contributions to a token. With `[privacy]` some of the members that pass it on add noise, which protects all.
    Token,
}

impl Leaves {
    /// Whether a task may promise privacy with it.
    pub fn can_be_private(self) -> bool {
        self != Leaves::Exact
    }

    /// Whether with `[privacy]` each row is told once, by randomized response.
    pub fn tells_answers(self) -> bool {
        matches!(self, Leaves::Answers | Leaves::Rows)
    }
}

/// What an algorithm says of its plan, by name.
pub type Details = Vec<(&'static str, Detail)>;

/// Something that an algorithm says of its plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Detail {
    /// How many.
    Count(u64),
    /// A number.
    Number(f64),
    /// A word.
    Word(&'static str),
    /// A bound on epsilon, which may be infinite.
    Epsilon(f64),
    /// Several, by name.
    Group(Details),
}

/// A key of a task, and why it is refused.
pub type Refusal = (&'static str, String);

/// What only the data can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// How many agents there are.
    pub agents: usize,
    /// How many columns of numbers.
    pub columns: usize,
}

/// What a task with a learned graph takes when it does not say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LearnedDefaults {
    /// mu.
    pub trade_off: f64,
    /// lambda_3.
    pub sparsity: f64,
}

/// What a task wants of its algorithm, before it is all resolved.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'t> {
    /// Who works with whom.
    pub graph: &'t GraphSource,
    /// The objective.
    pub model: &'t Model,
    /// Whether the task says how models start.
    pub says_start: bool,
    /// Whether there is a `[privacy]`.
    pub private: bool,
}

impl Description {
    /// An algorithm that gives each agent a model over a known graph, by exact messages, and has no keys of its own.
    pub const PLAIN: Description = Description {
        name: "",
        sentence: "",
        yields: Yields::ModelPerAgent,
        statistics: &[],
        needs_connected: false,
        leaves: Leaves::Exact,
        everyone: false,
        takes_graph: false,
        in_rounds: false,
        rounds: Some(1),
        accelerates: false,
        by_pairs: false,
        in_hops: false,
        takes_steps: false,
        events_per_round: |_| 100,
        without_data: |_| Vec::new(),
        warning: |_| None,
        acts: true,
        boosts: false,
        learned_graph: None,
        rate: None,
        on_peers: Some(|_| None),
        keys: &[],
        own_defaults: |_| (),
        refuses: |_| None,
        check: |_, _| None,
        check_everyone: |_, _| None,
        advice: |_, _| None,
        bound: |_, _| None,
        observer: |_, _| Observer::Everyone,
        deviation: |_, _, _| None,
        outlook: |_, _, _| Vec::new(),
        refuses_graph: |_, _| None,
        is_for_all: |_| true,
        complete: |_, _, _| (),
        plan: |_, _, _| Ok(Plan::nothing()),
    };

    /// Whether it ends by itself, however often anybody wakes.
    pub fn ends_by_itself(&self) -> bool {
        self.in_rounds || self.in_hops
    }

    /// What a report calls a run of it.
    pub fn in_words(&self) -> String {
        self.name.replace('-', " ")
    }
}

impl PartialEq for Description {
    fn eq(&self, other: &Description) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Names as a message lists them: `"a", "b" or "c"`.
pub fn names_of(table: &[&Description], which: impl Fn(&Description) -> bool) -> String {
    let names: Vec<String> = table.iter().filter(|one| which(one)).map(|one| format!("\"{}\"", one.name)).collect();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}
