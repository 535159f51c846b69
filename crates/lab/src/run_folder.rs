//! The run directory: what a run leaves for people and for other programs.
//!
//! | file | what |
//! |---|---|
//! | `models.csv` | `agent,theta_0,...`: what each agent broadcast last, or would |
//! | `home.csv` | the same shape: what each agent keeps for itself; private runs only |
//! | `metrics.csv` | `wakes,vectors_sent,bytes_sent,objective,score_mean,score_std` over the run |
//! | `edges.csv` | `a,b,weight`: the graph, where it was learned |
//! | `ledger.jsonl` | every charge of every agent, one JSON object a line |
//! | `summary.json` | the figures of the run ([`Summary`]) |
//! | `report.html` | the report, self-contained |
//! | `plots/` | its pictures as SVG and PNG |
//! | `task.toml` | the task as resolved |
//!
//! Agents stand in the order of their names. Numbers are written so that reading them gives the same bits.

use crate::error::Mistake;
use crate::folder::Folder;
use crate::learned::{losses, within_and_between};
use crate::ledger_file;
use crate::load::Loaded;
use crate::outlook;
use crate::plot::number;
use crate::private;
use crate::report::{self, AgentScore, Curve, LearnedGraph, PrivateRun, Report, Row, Sweep};
use crate::score::{gains_and_losses, mean_and_deviation};
use crate::task::{AccountantName, Algorithm, Privacy, Task};
use crate::train::Trained;
use serde::Serialize;
use sha2::{Digest, Sha256};
use sottovoce_algorithms::{objective, personal::frank_wolfe::Bits, reference::central};
use sottovoce_core::{Graph, PeerId, Rows};
use sottovoce_privacy::{Accountant, Sum};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Everything that a run directory holds.
pub const FILES: &[&str] = &[
    "models.csv",
    "home.csv",
    "edges.csv",
    "metrics.csv",
    "ledger.jsonl",
    "summary.json",
    "report.html",
    "plots",
    "task.toml",
];

/// Up to this many unknowns the report computes the optimum by a central solver, to show how far the run is from it.
const OPTIMUM_UNKNOWNS_MAX: usize = 20_000;

/// And up to this many numbers in the training data.
const OPTIMUM_NUMBERS_MAX: usize = 5_000_000;

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
    /// The task's accountant, and what each accountant says; private runs only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accounting: Option<Accounting>,
    /// The seed.
    pub seed: u64,
    /// SHA-256 of the task (files by content, not by place), the models and the ledger; no times in it.
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

/// JSON has no infinity: a number, or the text "infinity".
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub enum Epsilon {
    /// A guarantee.
    Finite(f64),
    /// None.
    Infinite(&'static str),
}

impl From<Epsilon> for f64 {
    fn from(epsilon: Epsilon) -> Self {
        match epsilon {
            Epsilon::Finite(epsilon) => epsilon,
            Epsilon::Infinite(_) => f64::INFINITY,
        }
    }
}

impl From<f64> for Epsilon {
    fn from(epsilon: f64) -> Self {
        if epsilon.is_finite() { Epsilon::Finite(epsilon) } else { Epsilon::Infinite("infinity") }
    }
}

/// Writes everything about a run. `runs` are the runs to compare, the run itself last; `commands` give it again; `sweep` is for
/// the report of a private run.
pub fn write(
    folder: &Folder,
    loaded: &Loaded,
    runs: &[&Trained],
    commands: Vec<String>,
    sweep: Option<Sweep>,
) -> Result<Summary, Mistake> {
    let (run, others) = runs.split_last().expect("the run itself is among the runs");
    let ledger = ledger_file::lines(loaded.names.iter().map(String::as_str).zip(&run.ledgers));
    let summary = summarize(loaded, run, others.first().copied(), digest(loaded, run, &ledger)?);
    // What an agent without a neighbour would broadcast is nobody's business in a private run: it sends nothing.
    let silent = |id| loaded.task.privacy.is_some() && loaded.problem.graph.peers(id).is_empty();
    folder.write("models.csv", models_csv(loaded, &run.models, |id| !silent(id)))?;
    if let Some(home) = &run.home {
        folder.write("home.csv", models_csv(loaded, &home.models, |_| true))?;
    }
    if let Some(graph) = &run.graph {
        folder.write("edges.csv", edges_csv(&loaded.names, graph))?;
    }
    folder.write("metrics.csv", metrics_csv(run))?;
    folder.write("ledger.jsonl", ledger)?;
    folder.write("summary.json", serde_json::to_string_pretty(&summary).expect("a summary is JSON") + "\n")?;
    folder.write("task.toml", loaded.task.to_toml())?;
    let report = report(loaded, runs, commands, &summary, sweep);
    let pictures = report::plots(&report);
    folder.folder("plots")?;
    for picture in &pictures {
        folder.write(&format!("plots/{}.svg", picture.file_stem), &picture.svg)?;
        folder.write(&format!("plots/{}.png", picture.file_stem), &picture.png)?;
    }
    folder.write("report.html", report::html(&report, &pictures))?;
    Ok(summary)
}

fn summarize(loaded: &Loaded, run: &Trained, alone: Option<&Trained>, digest: String) -> Summary {
    let problem = &loaded.problem;
    let classification = problem.loss.is_classification();
    let scores = mean_and_deviation(&run.scores).map(|(mean, std)| {
        let alone = alone.map_or(&run.scores, |alone| &alone.scores);
        let (agents_gain, agents_lose) = gains_and_losses(alone, &run.scores, classification);
        let local_mean = mean_and_deviation(alone).map(|(mean, _)| mean);
        let home = run.home.as_ref().map(|home| &home.scores[..]);
        let home_mean = home.and_then(mean_and_deviation).map(|(mean, _)| mean);
        let at_home = home.map(|home| gains_and_losses(alone, home, classification));
        Scores {
            mean,
            std,
            local_mean,
            home_mean,
            agents_gain,
            agents_lose,
            home_agents_gain: at_home.map(|(gain, _)| gain),
            home_agents_lose: at_home.map(|(_, lose)| lose),
        }
    });
    let accounting = loaded.task.privacy.map(|privacy| Accounting {
        accountant: privacy.accountant.name(),
        budget: privacy.epsilon,
        epsilon: private::spent(&privacy, &run.ledgers).into_iter().map(|(name, spent)| (name, spent.into())).collect(),
        warnings: private::warnings(&privacy, problem),
    });
    let epsilon = match &accounting {
        Some(accounting) => accounting.epsilon[accounting.accountant],
        None => run.ledgers.iter().map(|ledger| Sum.epsilon(ledger, 0.0)).fold(0.0, f64::max).into(),
    };
    Summary {
        name: loaded.task.name.clone(),
        algorithm: run.algorithm,
        objective: run.samples.last().and_then(|sample| sample.objective),
        agents: problem.agents(),
        dimension: problem.dimension(),
        wakes: run.counters.wakes,
        vectors_sent: run.counters.vectors_sent,
        bytes_sent: run.counters.bytes_sent,
        start_vectors: run.start.vectors_sent,
        start_bytes: run.start.bytes_sent,
        messages_lost: run.counters.lost,
        messages_rejected: run.counters.rejected.values().sum(),
        quiet: run.quiet,
        seconds: run.seconds,
        duality_gap: run.gap,
        model_bits: run.bits.map(|Bits { steps, models }| ModelBits { steps, models }),
        learned_graph: run.graph.as_ref().map(|graph| figures(loaded, graph)),
        accuracy: scores.filter(|_| classification),
        rmse: scores.filter(|_| !classification),
        epsilon,
        delta: loaded.task.privacy.map_or(0.0, |privacy| privacy.delta),
        accounting,
        seed: loaded.task.run.seed,
        digest,
        version: env!("CARGO_PKG_VERSION"),
    }
}

fn figures(loaded: &Loaded, graph: &Graph) -> GraphFigures {
    let groups = loaded.known.groups.as_ref().and_then(|groups| within_and_between(graph, &groups.of));
    let weights: f64 = graph.edges().map(|(_, _, weight)| weight).sum();
    GraphFigures {
        edges: graph.edge_count(),
        degree_mean: 2.0 * weights / graph.agents() as f64,
        within_mean: groups.map(|(within, _)| within),
        between_mean: groups.map(|(_, between)| between),
    }
}

fn digest(loaded: &Loaded, run: &Trained, ledger: &str) -> Result<String, Mistake> {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(loaded.task.fingerprint()?.as_bytes());
    part(run.algorithm.as_bytes());
    part(&run.models.values().iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>());
    part(ledger.as_bytes());
    if let Some(graph) = &run.graph {
        part(&edges_csv(&loaded.names, graph));
    }
    Ok(hash.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// Models of the agents that are shown, as csv.
pub(crate) fn models_csv(loaded: &Loaded, models: &Rows, shown: impl Fn(PeerId) -> bool) -> Vec<u8> {
    let mut csv = csv::WriterBuilder::new().from_writer(Vec::new());
    let written = (|| {
        csv.write_field("agent")?;
        csv.write_record((0..loaded.problem.dimension()).map(|k| format!("theta_{k}")))?;
        for (k, name) in loaded.names.iter().enumerate().filter(|(k, _)| shown(PeerId(*k as u32))) {
            csv.write_field(name)?;
            csv.write_record(models.row(k).iter().map(f64::to_string))?;
        }
        csv.flush()?;
        Ok::<_, csv::Error>(())
    })();
    written.expect("memory can be written");
    csv.into_inner().expect("memory can be written")
}

/// A graph as a file of edges, which a task can read.
fn edges_csv(names: &[String], graph: &Graph) -> Vec<u8> {
    let mut csv = csv::WriterBuilder::new().from_writer(Vec::new());
    let written = (|| {
        csv.write_record(["a", "b", "weight"])?;
        for (a, b, weight) in graph.edges() {
            csv.write_record([&names[a.index()], &names[b.index()], &weight.to_string()])?;
        }
        csv.flush()?;
        Ok::<_, csv::Error>(())
    })();
    written.expect("memory can be written");
    csv.into_inner().expect("memory can be written")
}

fn metrics_csv(run: &Trained) -> String {
    let mut text = String::from("wakes,vectors_sent,bytes_sent,objective,score_mean,score_std\n");
    let or_empty = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for sample in &run.samples {
        let _ = writeln!(
            text,
            "{},{},{},{},{},{}",
            sample.wakes,
            sample.vectors_sent,
            sample.bytes_sent,
            or_empty(sample.objective),
            or_empty(sample.score_mean),
            or_empty(sample.score_std)
        );
    }
    text
}

/// The report of a run beside those it is compared with.
fn report(
    loaded: &Loaded,
    runs: &[&Trained],
    commands: Vec<String>,
    summary: &Summary,
    sweep: Option<Sweep>,
) -> Report {
    let problem = &loaded.problem;
    let (run, others) = runs.split_last().expect("the run itself is among the runs");
    let alone = others.first().copied();
    let higher_is_better = problem.loss.is_classification();
    let graph = run.graph.as_ref().unwrap_or(&problem.graph);
    // A run of real peers has no objective to compare with: their data are theirs.
    let has_objective = run.samples.iter().any(|sample| sample.objective.is_some());
    let optimum = if has_objective { optimum(loaded) } else { None };
    let agents = (0..problem.agents())
        .map(|k| AgentScore {
            name: loaded.names[k].clone(),
            points: problem.data.size(PeerId(k as u32)) as u64,
            local: alone.and_then(|alone| alone.scores[k]),
            model: run.home.as_ref().map_or(run.scores[k], |home| home.scores[k]),
        })
        .collect();
    let local = alone.and_then(|alone| mean_and_deviation(&alone.scores)).map(|(mean, _)| mean);
    let private = summary.accounting.as_ref().map(|accounting| PrivateRun {
        epsilon: accounting.budget,
        delta: summary.delta,
        accountant: accounting.accountant.to_owned(),
        spent: AccountantName::ALL.map(|by| (by.name().to_owned(), accounting.epsilon[by.name()].into())).to_vec(),
        plan: outlook::outlook(loaded).map_or(String::new(), |outlook| outlook.plan_in_words()),
        warnings: accounting.warnings.clone(),
        home: run.home.is_some(),
        local,
        sweep: sweep.unwrap_or_else(Sweep::not_wanted),
    });
    Report {
        title: loaded.task.name.clone(),
        subtitle: format!(
            "{} agents, {}, {} training points, {}, {}",
            number::count(problem.agents() as u64),
            loaded.dimension_in_words(),
            number::count(problem.data.len() as u64),
            match &run.graph {
                Some(graph) => format!("{} learned edges", number::count(graph.edge_count() as u64)),
                None => loaded.edges_in_words(),
            },
            run.algorithm.replace('-', " ")
        ),
        privacy: privacy_line(&loaded.task),
        private,
        score_name: if higher_is_better { "test accuracy".to_owned() } else { "test RMSE".to_owned() },
        higher_is_better,
        runs: runs.iter().map(|run| Curve { name: title(run), points: run.samples.clone() }).collect(),
        bound: optimum.and_then(|optimum| bound(loaded, run, optimum)),
        optimum,
        agents,
        edges: graph.edges().map(|(a, b, weight)| (a.0, b.0, weight)).collect(),
        learned: run.graph.as_ref().map(|graph| learned_graph(loaded, run, graph)),
        in_bits: run.graph.is_some() || run.bits.is_some(),
        table: runs
            .iter()
            .flat_map(|run| {
                let told = row(title(run), run, &run.scores, alone, higher_is_better);
                std::iter::once(told).chain(home_row(run, alone, higher_is_better))
            })
            .collect(),
        reproduce: commands,
        task: loaded.task.to_toml(),
        digest: summary.digest.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// What a report says of a learned graph.
fn learned_graph(loaded: &Loaded, run: &Trained, graph: &Graph) -> LearnedGraph {
    let ids = (0..loaded.problem.agents() as u32).map(PeerId);
    let groups = loaded.known.groups.as_ref();
    LearnedGraph {
        confidence: ids.map(|id| loaded.problem.shard(id).confidence).collect(),
        loss: losses(loaded, &run.models),
        groups: groups.map(|groups| (groups.of.clone(), groups.names.clone())),
        within_and_between: groups.and_then(|groups| within_and_between(graph, &groups.of)),
    }
}

/// What a run means for privacy, in one line.
pub fn privacy_line(task: &Task) -> String {
    match (task.algorithm, &task.privacy) {
        (Algorithm::Local, _) => "Nothing leaves any agent: epsilon = 0.".to_owned(),
        (_, Some(Privacy { epsilon, delta, .. })) => format!(
            "Everything that leaves an agent is ({}, {})-differentially private, for one record replaced by another.",
            number::bound(*epsilon),
            number::bound(*delta)
        ),
        (_, None) => {
            "No privacy: exact models leave every agent that has a neighbour, so epsilon = infinity.".to_owned()
        }
    }
}

/// What a run is called in the table and beside its curve.
fn title(run: &Trained) -> String {
    if run.home.is_some() { report::BROADCAST.to_owned() } else { run.name.clone() }
}

/// The row of the models that agents keep, in a private run that has them.
fn home_row(run: &Trained, alone: Option<&Trained>, higher_is_better: bool) -> Option<Row> {
    let kept = row(report::HOME.to_owned(), run, &run.home.as_ref()?.scores, alone, higher_is_better);
    // The objective is about what agents send.
    Some(Row { objective: None, ..kept })
}

fn row(name: String, run: &Trained, scores: &[Option<f64>], alone: Option<&Trained>, higher_is_better: bool) -> Row {
    let score = mean_and_deviation(scores);
    let alone = alone.filter(|alone| alone.name != run.name);
    let compared = alone.zip(score).map(|(alone, _)| gains_and_losses(&alone.scores, scores, higher_is_better));
    let local = alone.and_then(|alone| mean_and_deviation(&alone.scores));
    let gain =
        local.zip(score).map(|((local, _), (mean, _))| if higher_is_better { mean - local } else { local - mean });
    Row {
        name,
        score_mean: score.map(|(mean, _)| mean),
        score_std: score.map(|(_, std)| std),
        gain,
        agents_gain: compared.map(|(gain, _)| gain),
        agents_lose: compared.map(|(_, lose)| lose),
        wakes: run.counters.wakes,
        vectors_sent: run.counters.vectors_sent,
        bytes_sent: run.counters.bytes_sent,
        seconds: Some(run.seconds),
        objective: run.samples.last().and_then(|sample| sample.objective),
    }
}

/// The minimum of Q, where a central solver finds it in about a second.
fn optimum(loaded: &Loaded) -> Option<f64> {
    let problem = &loaded.problem;
    let small = problem.agents() * problem.dimension() <= OPTIMUM_UNKNOWNS_MAX
        && problem.data.len() * problem.dimension() <= OPTIMUM_NUMBERS_MAX;
    let linear = loaded.plain.is_none() && loaded.edge_count().is_some();
    (small && linear && problem.loss.smoothness().is_some())
        .then(|| objective::value(problem, &central::minimum(problem)))
}

/// Proposition 1: E[Q(t)] - Q* <= (1 - sigma / (n L_max))^t (Q(0) - Q*), for coordinate descent without faults.
fn bound(loaded: &Loaded, run: &Trained, optimum: f64) -> Option<Vec<(f64, f64)>> {
    let rate = objective::proposition_1_rate(&loaded.problem).filter(|rate| *rate < 1.0)?;
    let first = run.samples.first()?.objective? - optimum;
    let exact = loaded.task.privacy.is_none() && loaded.task.faults.is_none();
    let wanted = run.algorithm == "coordinate-descent" && exact;
    let at = |wakes: u64| (wakes as f64, optimum + libm::pow(rate, wakes as f64) * first);
    wanted.then(|| run.samples.iter().map(|sample| at(sample.wakes)).collect())
}
