//! The figures of a run: what everyone may know of it, and what only whoever may see all data.

use crate::budget::Void;
use crate::epsilon::Epsilon;
use crate::facts::{Origin, PublicFacts, Told};
use crate::learned::within_and_between;
use crate::measure::distance;
use crate::private;
use crate::score::{gains_and_losses, mean_and_deviation};
use crate::train::Trained;
use serde::{Serialize, Serializer};
use sottovoce_algorithms::personal::boosting::Bits;
use sottovoce_core::Graph;
use sottovoce_privacy::network::WorstAndMean;
use sottovoce_privacy::{Accountant, Sum};
use sottovoce_task::load::Loaded;
use sottovoce_task::task::{Leaves, Pairs, Statistic, Yields};
use std::collections::BTreeMap;

/// The figures of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// The task's name.
    pub name: String,
    /// The algorithm, as in the task.
    pub algorithm: &'static str,
    /// What the run yielded.
    #[serde(flatten)]
    pub yielded: Yielded,
    /// n.
    pub agents: usize,
    /// Wakes of agents that were there.
    pub wakes: u64,
    /// Bytes of encoded messages, the start's included, without transport framing.
    pub bytes_sent: u64,
    /// Messages that never arrived; none without faults.
    pub messages_lost: u64,
    /// Messages that arrived and were rejected.
    pub messages_rejected: u64,
    /// Whether every agent was quiet at the end (runs with a tolerance).
    pub quiet: bool,
    /// The run itself, without loading and reporting.
    pub seconds: f64,
    /// The epsilon of the agent that spent most, by the task's accountant; the text "infinity" without privacy.
    pub epsilon: Epsilon,
    /// The mean over all pairs of members, where the task's budget is for that mean and `epsilon` is the worst pair's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epsilon_mean: Option<f64>,
    /// Zero without privacy.
    pub delta: f64,
    /// What one step of the guarantee is about: a record replaced by another; of models, private runs only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<&'static str>,
    /// Against whom the guarantee holds; of models, private runs only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observer: Option<String>,
    /// Whether the noise came from a seed, so that the guarantee is that of real peers and not of this run; private runs only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated: Option<bool>,
    /// The task's accountant, and what each accountant says; private runs only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accounting: Option<Accounting>,
    /// The seed.
    pub seed: u64,
    /// A SHA-256 that identifies the run; no times in it. Without `[privacy]`, and in the simulator: of the task (files by content, not by
    /// place), the models and the ledger. Otherwise no file is in it: of the task without its files, what was told and the ledger.
    pub digest: String,
    /// The version of the program.
    pub version: &'static str,
}

/// What a run yielded, in figures: what its algorithm declares.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Yielded {
    /// A model for each agent.
    Models(ModelFigures),
    /// A statistic of everybody's data.
    Estimate(EstimateFigures),
}

/// The figures of models.
#[derive(Clone, Debug, Serialize)]
pub struct ModelFigures {
    /// Q at the last models; where all learn one, the mean of the agents' own losses of it.
    pub objective: Option<f64>,
    /// p.
    pub dimension: usize,
    /// Vectors sent over edges, the start's exchange included.
    pub vectors_sent: u64,
    /// How many agents hold the one model that all learn; only where they do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holders: Option<u64>,
    /// How far two of these are apart at most, in any coordinate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models_spread: Option<f64>,
    /// How many of the vectors were sent before the first wake.
    pub start_vectors: u64,
    /// How many of the bytes.
    pub start_bytes: u64,
    /// For classification, with test points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Scores>,
    /// For the squared loss, with test points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rmse: Option<Scores>,
    /// What could be observed of the algorithm besides, by name.
    #[serde(flatten)]
    pub observed: BTreeMap<&'static str, Observed>,
    /// What is over the limit of the source; only where a run was charged to one with `--budget`, and something is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub void: Option<Void>,
}

/// Something that can be observed of some algorithms.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub enum Observed {
    /// `duality_gap`: an upper bound on how far the objective is from its minimum, for boosting over a known graph.
    DualityGap(f64),
    /// `model_bits`: the bits of letters about models as the papers count them, without version numbers and filled up bytes.
    ModelBits(ModelBits),
    /// `learned_graph`: the graph, where it was learned.
    LearnedGraph(GraphFigures),
}

impl Observed {
    fn name(&self) -> &'static str {
        match self {
            Observed::DualityGap(_) => "duality_gap",
            Observed::ModelBits(_) => "model_bits",
            Observed::LearnedGraph(_) => "learned_graph",
        }
    }
}

impl ModelFigures {
    fn observe(&mut self, observed: impl IntoIterator<Item = Observed>) {
        self.observed.extend(observed.into_iter().map(|one| (one.name(), one)));
    }

    /// The upper bound on how far the objective is from its minimum, where there is one.
    pub fn duality_gap(&self) -> Option<f64> {
        match self.observed.get("duality_gap") {
            Some(Observed::DualityGap(gap)) => Some(*gap),
            _ => None,
        }
    }

    /// The graph, where it was learned.
    pub fn learned_graph(&self) -> Option<GraphFigures> {
        match self.observed.get("learned_graph") {
            Some(Observed::LearnedGraph(graph)) => Some(*graph),
            _ => None,
        }
    }
}

/// The figures of a statistic.
#[derive(Clone, Debug, Serialize)]
pub struct EstimateFigures {
    /// What was measured, as in the task.
    pub statistic: &'static str,
    /// Of which columns, in the order of all lists here.
    pub columns: Vec<String>,
    /// The mean of the agents' estimates.
    pub estimate: OneOrMany,
    /// Their standard deviation over agents.
    pub estimates_std: OneOrMany,
    /// How far two of them are apart at most, in any column.
    pub estimates_spread: Option<f64>,
    /// How many agents have one.
    pub informed: u64,
    /// What somebody who had all rows would compute; in the simulator only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exact: Option<OneOrMany>,
    /// |estimate - exact|, in the Euclidean norm where there are several numbers; in the simulator only. Of the agents' mean, which may be right
    /// where every agent is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
    /// The same of the agent that is farthest from the exact value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_max: Option<f64>,
    /// The standard deviation of an estimate by the formula, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_predicted: Option<f64>,
    /// What a theorem says that the error is at most: of the expected estimates, in the root mean square over agents; in the simulator only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_bound: Option<f64>,
    /// How many contributions are missing, because their members were gone and were passed over; absent where none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed_over: Option<u32>,
    /// Letters sent, whatever they hold.
    pub letters_sent: u64,
}

/// A number, or a list where there are several.
#[derive(Clone, Debug, PartialEq)]
pub struct OneOrMany(pub Vec<f64>);

impl Serialize for OneOrMany {
    fn serialize<S: Serializer>(&self, writer: S) -> Result<S::Ok, S::Error> {
        match self.0[..] {
            [one] => writer.serialize_f64(one),
            _ => self.0.serialize(writer),
        }
    }
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
#[derive(Clone, Copy, Debug, Default, Serialize)]
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
    /// The figures of models that follow from public facts and what was told.
    pub(super) fn of(facts: &PublicFacts, told: &Told<'_>, digest: String) -> Summary {
        let mut figures = ModelFigures {
            objective: None,
            dimension: facts.dimension,
            vectors_sent: told.counters.vectors_sent,
            holders: told.one.as_ref().map(|one| one.is_holder.iter().filter(|is| **is).count() as u64),
            models_spread: told.one.as_ref().map(|one| one.spread),
            start_vectors: told.start.vectors_sent,
            start_bytes: told.start.bytes_sent,
            accuracy: None,
            rmse: None,
            observed: BTreeMap::new(),
            void: None,
        };
        figures.observe(told.bits.map(|Bits { steps, models }| Observed::ModelBits(ModelBits { steps, models })));
        figures.observe(told.graph.map(|graph| Observed::LearnedGraph(graph_figures(facts, graph))));
        Summary::with(facts, told, digest, Yielded::Models(figures))
    }

    /// The figures of a statistic; `exact` is what somebody who had all rows would compute.
    pub(super) fn of_estimates(
        facts: &PublicFacts,
        told: &Told<'_>,
        statistic: &Statistic,
        exact: Option<&[f64]>,
        digest: String,
    ) -> Summary {
        let column = |k: usize| -> Vec<Option<f64>> {
            let agents = (0..facts.agents()).zip(&told.is_told);
            agents.map(|(agent, is_told)| is_told.then(|| told.models.row(agent)[k])).collect()
        };
        let (mean, deviation): (Vec<f64>, Vec<f64>) =
            (0..facts.dimension).filter_map(|k| mean_and_deviation(&column(k))).unzip();
        let informed = || (0..facts.agents()).filter(|&agent| told.is_told[agent]).map(|agent| told.models.row(agent));
        let spread = |k: usize| {
            let (low, high) = informed()
                .map(|row| row[k])
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (x.min(low), x.max(high)));
            high - low
        };
        let figures = EstimateFigures {
            statistic: statistic.kind.name(),
            columns: statistic.columns.clone().unwrap_or_default(),
            estimates_spread: (!mean.is_empty()).then(|| (0..facts.dimension).map(spread).fold(0.0, f64::max)),
            informed: informed().count() as u64,
            error: exact.filter(|_| !mean.is_empty()).map(|exact| distance(&mean, exact)),
            error_max: exact.and_then(|exact| informed().map(|row| distance(row, exact)).reduce(f64::max)),
            estimate: OneOrMany(mean),
            estimates_std: OneOrMany(deviation),
            exact: exact.map(|exact| OneOrMany(exact.to_vec())),
            error_predicted: facts.error_predicted,
            error_bound: None,
            passed_over: (told.passed_over > 0).then_some(told.passed_over),
            letters_sent: told.counters.letters_sent,
        };
        let summary = Summary::with(facts, told, digest, Yielded::Estimate(figures));
        Summary { unit: Some(facts.unit.name()), observer: Some(facts.observer.name()), ..summary }
    }

    /// With what a theorem says that the error is at most.
    pub(super) fn with_bound(mut self, bound: Option<f64>) -> Summary {
        if let Yielded::Estimate(figures) = &mut self.yielded {
            figures.error_bound = bound;
        }
        self
    }

    /// What is the same for all runs.
    fn with(facts: &PublicFacts, told: &Told<'_>, digest: String, yielded: Yielded) -> Summary {
        let accounting = facts.privacy.map(|privacy| Accounting {
            accountant: privacy.accountant.name(),
            budget: privacy.epsilon,
            epsilon: private::spent(&privacy, &facts.observer, told.ledgers)
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
            yielded,
            agents: facts.agents(),
            wakes: told.counters.wakes,
            bytes_sent: told.counters.bytes_sent,
            messages_lost: told.counters.lost,
            messages_rejected: told.counters.rejected.values().sum(),
            quiet: told.quiet,
            seconds: told.seconds,
            epsilon,
            epsilon_mean: None,
            delta: facts.privacy.map_or(0.0, |privacy| privacy.delta),
            unit: facts.privacy.map(|_| facts.unit.name()),
            observer: facts.privacy.map(|_| facts.observer.name()),
            simulated: noisy.then_some(told.origin == Origin::Simulator),
            accounting,
            seed: facts.seed,
            digest,
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    /// With the mean over pairs of members, where the task's budget is for that.
    pub(super) fn with_pairs(self, facts: &PublicFacts, both: Option<WorstAndMean>) -> Summary {
        let by_mean = facts.privacy.is_some_and(|privacy| privacy.pairs == Pairs::Mean);
        Summary { epsilon_mean: both.filter(|_| by_mean).map(|both| both.mean), ..self }
    }

    /// The figures of models, where there are models.
    pub fn models(&self) -> Option<&ModelFigures> {
        match &self.yielded {
            Yielded::Models(figures) => Some(figures),
            Yielded::Estimate(_) => None,
        }
    }

    /// The figures of a statistic, where one was measured.
    pub fn estimate(&self) -> Option<&EstimateFigures> {
        match &self.yielded {
            Yielded::Models(_) => None,
            Yielded::Estimate(figures) => Some(figures),
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
        let Yielded::Models(figures) = &mut self.yielded else { return self };
        let classification = facts.is_classification;
        let scores = scores(run, alone, classification).filter(|_| !loaded.learns_nothing());
        figures.void = loaded.void;
        figures.objective = run.samples.last().and_then(|sample| sample.objective);
        figures.observe(run.gap.map(Observed::DualityGap));
        figures.accuracy = scores.filter(|_| classification);
        figures.rmse = scores.filter(|_| !classification);
        self
    }
}

fn scores(run: &Trained, alone: Option<&Trained>, classification: bool) -> Option<Scores> {
    let (mean, std) = mean_and_deviation(&run.scores)?;
    if run.algorithm.yields == Yields::OneModel {
        return Some(Scores { mean, std, ..Scores::default() });
    }
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

fn graph_figures(facts: &PublicFacts, graph: &Graph) -> GraphFigures {
    let groups = facts.groups.as_ref().and_then(|groups| within_and_between(graph, &groups.of));
    let weights: f64 = graph.edges().map(|(_, _, weight)| weight).sum();
    GraphFigures {
        edges: graph.edge_count(),
        degree_mean: 2.0 * weights / graph.agents() as f64,
        within_mean: groups.map(|(within, _)| within),
        between_mean: groups.map(|(_, between)| between),
    }
}
