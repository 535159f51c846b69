//! The report of a run: first what everyone may see of it, then what only whoever may see all data.

use super::summary::Summary;
use crate::budget::void_in_words;
use crate::facts::{Origin, PublicFacts, Told};
use crate::learned::{losses, within_and_between};
use crate::pairs::PairFigures;
use crate::score::{gains_and_losses, mean_and_deviation};
use crate::train::Trained;
use sottovoce_algorithms::{objective, reference::central};
use sottovoce_core::Graph;
use sottovoce_report::page::Origins;
use sottovoce_report::plot::number;
use sottovoce_report::training::{self, AgentScore, Curve, LearnedGraph, PrivateRun, Report, Row, Sweep, VoidRecords};
use sottovoce_task::load::Loaded;
use sottovoce_task::task::{AccountantName, Yields};

/// Up to this many unknowns the report computes the optimum by a central solver, to show how far the run is from it.
const OPTIMUM_UNKNOWNS_MAX: usize = 20_000;

/// And up to this many numbers in the training data.
const OPTIMUM_NUMBERS_MAX: usize = 5_000_000;

/// The report that follows from public facts and what was told: no score, no objective, no loss.
pub(super) fn of_told(
    facts: &PublicFacts,
    told: &Told<'_>,
    commands: Vec<String>,
    summary: &Summary,
    pairs: Option<&PairFigures>,
) -> Report {
    let agent = |(name, &points): (&String, &u64)| AgentScore { name: name.clone(), points, local: None, model: None };
    let samples = told.traffic.iter().map(|&traffic| traffic.into()).collect();
    Report {
        title: facts.name.clone(),
        subtitle: subtitle(facts, told),
        privacy: facts.privacy_line(told.origin),
        private: private_run(facts, told, summary, pairs),
        score_name: if facts.is_classification { "test accuracy".to_owned() } else { "test RMSE".to_owned() },
        higher_is_better: facts.is_classification,
        void: None,
        runs: vec![Curve { name: facts.run_name.clone(), points: samples }],
        bound: None,
        optimum: None,
        agents: facts.names.iter().zip(&facts.points).map(agent).collect(),
        // Where everyone writes to everyone there is nothing to see.
        edges: match facts.everyone {
            true => Vec::new(),
            false => told.graph.unwrap_or(&facts.graph).edges().map(|(a, b, weight)| (a.0, b.0, weight)).collect(),
        },
        everyone: facts.everyone,
        learned: told.graph.map(|graph| learned_graph(facts, graph)),
        in_bits: told.graph.is_some() || told.bits.is_some(),
        table: vec![Row {
            name: facts.run_name.clone(),
            wakes: told.counters.wakes,
            vectors_sent: told.counters.vectors_sent,
            bytes_sent: told.counters.bytes_sent,
            seconds: Some(told.seconds),
            ..Row::default()
        }],
        origins: origins(facts, told.origin, commands, summary.digest.clone()),
    }
}

/// How to get a run again, and what its digest is of.
pub(super) fn origins(facts: &PublicFacts, origin: Origin, commands: Vec<String>, digest: String) -> Origins {
    Origins {
        reproduce: commands,
        task: facts.task.clone(),
        digest,
        digest_in_words: match (origin, facts.privacy, &facts.statistic) {
            (Origin::Simulator, None, None) => {
                "Digest of the task, the models and the ledger. The same task, seed and version give the same digest on any number of threads"
            }
            (Origin::Simulator, None, Some(_)) => {
                "Digest of the task, the estimates and the ledger. The same task, seed and version give the same digest"
            }
            (Origin::Simulator, Some(_), _) => {
                "Digest of the task without its files, the broadcast models and the ledger. The same task, data, seed and version give the \
                 same digest on any number of threads"
            }
            _ => "Digest of the task without its files, what was told, and the ledger. No data are in it",
        },
        version: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

pub(super) fn subtitle(facts: &PublicFacts, told: &Told<'_>) -> String {
    format!(
        "{} agents, {}, {}, {}, {}",
        number::count(facts.agents() as u64),
        facts.dimension_in_words,
        facts.rows_in_words(),
        match told.graph {
            Some(graph) => format!("{} learned edges", number::count(graph.edge_count() as u64)),
            None => facts.edges_in_words.clone(),
        },
        told.algorithm.replace('-', " ")
    )
}

fn private_run(
    facts: &PublicFacts,
    told: &Told<'_>,
    summary: &Summary,
    pairs: Option<&PairFigures>,
) -> Option<PrivateRun> {
    let accounting = summary.accounting.as_ref()?;
    Some(PrivateRun {
        origin: told.origin,
        epsilon: accounting.budget,
        delta: summary.delta,
        accountant: accounting.accountant.to_owned(),
        spent: AccountantName::ALL.map(|by| (by.name().to_owned(), accounting.epsilon[by.name()].into())).to_vec(),
        guarantee: facts.guarantee(),
        pairs: pairs.map(PairFigures::by_distance),
        plan: facts.plan_in_words.clone().unwrap_or_default(),
        warnings: accounting.warnings.clone(),
        home: false,
        local: None,
        sweep: Sweep::of_peers(),
    })
}

/// What everyone may know of a learned graph: no loss.
fn learned_graph(facts: &PublicFacts, graph: &Graph) -> LearnedGraph {
    let groups = facts.groups.as_ref();
    LearnedGraph {
        confidence: facts.confidence.clone(),
        loss: None,
        groups: groups.map(|groups| (groups.of.clone(), groups.names.clone())),
        within_and_between: groups.and_then(|groups| within_and_between(graph, &groups.of)),
    }
}

/// The same report with what is computed from exact data, beside the runs that it is compared with. Where every row is over its limit, nobody
/// has learned from anything: there is no score to show, and nothing to compare.
pub(super) fn with_exact(told: Report, loaded: &Loaded, runs: &[&Trained], sweep: Option<Sweep>) -> Report {
    let void = loaded.void.map(|void| VoidRecords { words: void_in_words(void), is_all: void.is_all() });
    if loaded.learns_nothing() {
        let sweep = Sweep::skipped("Nobody learned from any row, so there is no score to show.");
        let private = told.private.map(|private| PrivateRun { sweep, ..private });
        return Report { void, private, ..told };
    }
    let (run, others) = runs.split_last().expect("the run itself is among the runs");
    let alone = others.first().copied();
    let higher_is_better = told.higher_is_better;
    let has_objective = run.samples.iter().any(|sample| sample.objective.is_some());
    let optimum = if has_objective { optimum(loaded) } else { None };
    let scored = |(k, agent): (usize, AgentScore)| AgentScore {
        local: alone.and_then(|alone| alone.scores[k]),
        model: run.home.as_ref().map_or(run.scores[k], |home| home.scores[k]),
        ..agent
    };
    let rows = runs.iter().flat_map(|run| {
        let told = row(title(run), run, &run.scores, alone, higher_is_better);
        std::iter::once(told).chain(home_row(run, alone, higher_is_better))
    });
    Report {
        private: told.private.map(|private| PrivateRun {
            home: run.home.is_some(),
            local: alone.and_then(|alone| mean_and_deviation(&alone.scores)).map(|(mean, _)| mean),
            sweep: sweep.unwrap_or_else(Sweep::not_wanted),
            ..private
        }),
        runs: runs.iter().map(|run| Curve { name: title(run), points: run.samples.clone() }).collect(),
        bound: optimum.and_then(|optimum| bound(loaded, run, optimum)),
        optimum,
        agents: told.agents.into_iter().enumerate().map(scored).collect(),
        void,
        learned: told.learned.map(|learned| LearnedGraph { loss: Some(losses(loaded, &run.models)), ..learned }),
        table: rows.collect(),
        ..told
    }
}

/// What a run is called in the table and beside its curve.
fn title(run: &Trained) -> String {
    if run.home.is_some() { training::BROADCAST.to_owned() } else { run.name.clone() }
}

/// The row of the models that agents keep, in a private run that has them.
fn home_row(run: &Trained, alone: Option<&Trained>, higher_is_better: bool) -> Option<Row> {
    let kept = row(training::HOME.to_owned(), run, &run.home.as_ref()?.scores, alone, higher_is_better);
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
    let personal = loaded.task.algorithm.yields == Yields::ModelPerAgent;
    let linear = personal && loaded.plain.is_none() && loaded.edge_count().is_some();
    (small && linear && problem.loss.smoothness().is_some())
        .then(|| objective::value(problem, &central::minimum(problem)))
}

/// Proposition 1: E[Q(t)] - Q* <= (1 - sigma / (n L_max))^t (Q(0) - Q*), for coordinate descent without faults.
fn bound(loaded: &Loaded, run: &Trained, optimum: f64) -> Option<Vec<(f64, f64)>> {
    let rate = run.algorithm.rate?(&loaded.problem).filter(|rate| *rate < 1.0)?;
    let first = run.samples.first()?.objective? - optimum;
    let exact = loaded.task.privacy.is_none() && loaded.task.faults.is_none();
    let at = |wakes: u64| (wakes as f64, optimum + libm::pow(rate, wakes as f64) * first);
    exact.then(|| run.samples.iter().map(|sample| at(sample.wakes)).collect())
}
