//! The figures of a run: what everyone may know of it, and what only whoever may see all data.

use crate::budget::Void;
use crate::epsilon::Epsilon;
use crate::facts::{OBSERVER, Origin, PublicFacts, Told, UNIT};
use crate::learned::within_and_between;
use crate::private;
use crate::score::{gains_and_losses, mean_and_deviation};
use crate::train::Trained;
use serde::Serialize;
use sottovoce_algorithms::personal::boosting::Bits;
use sottovoce_core::Graph;
use sottovoce_privacy::{Accountant, Sum};
use sottovoce_task::load::Loaded;
use sottovoce_task::task::Leaves;
use std::collections::BTreeMap;

/// The figures of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The task's name.
    pub name: String,
    /// The algorithm, as in the task.
    pub algorithm: &'static str,
    /// Q at the last models.
    pub objective: Option<f64>,
    /// n.
    pub agents: usize,
    /// p.
    pub dimension: usize,
    /// Wakes of agents that were there.
    pub wakes: u64,
    /// Vectors sent over edges, the start's exchange included.
    pub vectors_sent: u64,
    /// Bytes of encoded messages, the start's included, without transport framing.
    pub bytes_sent: u64,
    /// How many of the vectors were sent before the first wake.
    pub start_vectors: u64,
    /// How many of the bytes.
    pub start_bytes: u64,
    /// Messages that never arrived; none without faults.
    pub messages_lost: u64,
    /// Messages that arrived and were rejected.
    pub messages_rejected: u64,
    /// Whether every agent was quiet at the end (runs with a tolerance).
    pub quiet: bool,
    /// The run itself, without loading and reporting.
    pub seconds: f64,
    /// For classification, with test points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Scores>,
    /// For the squared loss, with test points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rmse: Option<Scores>,
    /// An upper bound on how far the objective is from its minimum: the duality gap, for boosting over a known graph.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duality_gap: Option<f64>,
    /// The bits of letters about models as the papers count them, without version numbers and filled up bytes, for boosting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_bits: Option<ModelBits>,
    /// The graph, where it was learned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learned_graph: Option<GraphFigures>,
    /// The epsilon of the agent that spent most, by the task's accountant; the text "infinity" without privacy.
    pub epsilon: Epsilon,
    /// Zero without privacy.
    pub delta: f64,
    /// What one step of the guarantee is about: a record replaced by another; private runs only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<&'static str>,
    /// Against whom the guarantee holds; private runs only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observer: Option<&'static str>,
    /// Whether the noise came from a seed, so that the guarantee is that of real peers and not of this run; private runs only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated: Option<bool>,
    /// The task's accountant, and what each accountant says; private runs only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accounting: Option<Accounting>,
    /// What is over the limit of the source; only where a run was charged to one with `--budget`, and something is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub void: Option<Void>,
    /// The seed.
    pub seed: u64,
    /// A SHA-256 that identifies the run; no times in it. Without `[privacy]`, and in the simulator: of the task (files by content, not by
    /// place), the models and the ledger. Otherwise no file is in it: of the task without its files, what was told and the ledger.
    pub digest: String,
    /// The version of the program.
    pub version: &'static str,
}

/// Bits of letters about models, to each of their readers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct ModelBits {
    /// In sparse steps: ceil(log2 K) + 33 each.
    pub steps: u64,
    /// In whole sparse models: ceil(log2 K) + 64 for each number that is not zero.
    pub models: u64,
}

/// A learned graph in figures.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct GraphFigures {
    /// Pairs of positive weight.
    pub edges: usize,
    /// The mean sum of an agent's weights.
    pub degree_mean: f64,
    /// The mean weight of a pair within a group; none without groups.
    pub within_mean: Option<f64>,
    /// The mean weight of a pair between two groups.
    pub between_mean: Option<f64>,
}

/// Scores over the agents that have test points.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Scores {
    /// Of the models.
    pub mean: f64,
    /// Over agents.
    pub std: f64,
    /// Of purely local models.
    pub local_mean: Option<f64>,
    /// Of home models; none without privacy.
    pub home_mean: Option<f64>,
    /// Agents that do better than alone, with the model that others see.
    pub agents_gain: u64,
    /// Agents that do worse than alone.
    pub agents_lose: u64,
    /// Agents whose home model does better than their local one; private runs only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home_agents_gain: Option<u64>,
    /// Agents whose home model does worse; private runs only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home_agents_lose: Option<u64>,
}

/// How epsilon was counted.
#[derive(Clone, Debug, Serialize)]
pub struct Accounting {
    /// The one that the plan keeps its budget by.
    pub accountant: &'static str,
    /// The budget.
    pub budget: f64,
    /// The epsilon of the agent that spent most, by each accountant.
    pub epsilon: BTreeMap<&'static str, Epsilon>,
    /// What a careful reader should know about the budget.
    pub warnings: Vec<String>,
}

impl Summary {
    /// The figures that follow from public facts and what was told.
    pub(super) fn of(facts: &PublicFacts, told: &Told<'_>, digest: String) -> Summary {
        let accounting = facts.privacy.map(|privacy| Accounting {
            accountant: privacy.accountant.name(),
            budget: privacy.epsilon,
            epsilon: private::spent(&privacy, told.ledgers)
                .into_iter()
                .map(|(name, spent)| (name, spent.into()))
                .collect(),
            warnings: facts.warnings.clone(),
        });
        let epsilon = match &accounting {
            Some(accounting) => accounting.epsilon[accounting.accountant],
            None => told.ledgers.iter().map(|ledger| Sum.epsilon(ledger, 0.0)).fold(0.0, f64::max).into(),
        };
        // Who learns alone releases nothing, so there is no noise that could be simulated.
        let noisy = facts.privacy.is_some() && facts.algorithm.leaves != Leaves::Nothing;
        Summary {
            name: facts.name.clone(),
            algorithm: told.algorithm,
            objective: None,
            agents: facts.agents(),
            dimension: facts.dimension,
            wakes: told.counters.wakes,
            vectors_sent: told.counters.vectors_sent,
            bytes_sent: told.counters.bytes_sent,
            start_vectors: told.start.vectors_sent,
            start_bytes: told.start.bytes_sent,
            messages_lost: told.counters.lost,
            messages_rejected: told.counters.rejected.values().sum(),
            quiet: told.quiet,
            seconds: told.seconds,
            duality_gap: None,
            model_bits: told.bits.map(|Bits { steps, models }| ModelBits { steps, models }),
            learned_graph: told.graph.map(|graph| figures(facts, graph)),
            accuracy: None,
            rmse: None,
            epsilon,
            delta: facts.privacy.map_or(0.0, |privacy| privacy.delta),
            unit: facts.privacy.map(|_| UNIT),
            observer: facts.privacy.map(|_| OBSERVER),
            simulated: noisy.then_some(told.origin == Origin::Simulator),
            accounting,
            void: None,
            seed: facts.seed,
            digest,
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    /// With what is computed from exact data: objective, gap and scores. Where every row is over its limit, nobody has learned from anything
    /// and there are no scores.
    pub(super) fn with_exact(
        mut self,
        facts: &PublicFacts,
        run: &Trained,
        alone: Option<&Trained>,
        loaded: &Loaded,
    ) -> Summary {
        let classification = facts.is_classification;
        let scores = scores(run, alone, classification).filter(|_| !loaded.learns_nothing());
        self.void = loaded.void;
        self.objective = run.samples.last().and_then(|sample| sample.objective);
        self.duality_gap = run.gap;
        self.accuracy = scores.filter(|_| classification);
        self.rmse = scores.filter(|_| !classification);
        self
    }
}

fn scores(run: &Trained, alone: Option<&Trained>, classification: bool) -> Option<Scores> {
    let (mean, std) = mean_and_deviation(&run.scores)?;
    let alone = alone.map_or(&run.scores, |alone| &alone.scores);
    let (agents_gain, agents_lose) = gains_and_losses(alone, &run.scores, classification);
    let home = run.home.as_ref().map(|home| &home.scores[..]);
    let at_home = home.map(|home| gains_and_losses(alone, home, classification));
    Some(Scores {
        mean,
        std,
        local_mean: mean_and_deviation(alone).map(|(mean, _)| mean),
        home_mean: home.and_then(mean_and_deviation).map(|(mean, _)| mean),
        agents_gain,
        agents_lose,
        home_agents_gain: at_home.map(|(gain, _)| gain),
        home_agents_lose: at_home.map(|(_, lose)| lose),
    })
}

fn figures(facts: &PublicFacts, graph: &Graph) -> GraphFigures {
    let groups = facts.groups.as_ref().and_then(|groups| within_and_between(graph, &groups.of));
    let weights: f64 = graph.edges().map(|(_, _, weight)| weight).sum();
    GraphFigures {
        edges: graph.edge_count(),
        degree_mean: 2.0 * weights / graph.agents() as f64,
        within_mean: groups.map(|(within, _)| within),
        between_mean: groups.map(|(_, between)| between),
    }
}
