//! The run directory of a network: from posts, ledgers and counters, which is what others may see. What peers keep for themselves
//! is in it only when their owners say so.

use crate::facts::{Origin, PublicFacts, Told, Traffic};
use crate::learned::graph_of;
use crate::one_model::OneModel;
use crate::run_folder::{self, Summary};
use crate::score::{mean_and_deviation, scores};
use crate::train::{self, Halt, HomeModels, Ruler, Trained};
use sottovoce_algorithms::objective;
use sottovoce_algorithms::personal::{boosting::Bits, graph::Links};
use sottovoce_core::{Graph, PeerId, Reject, Rows};
use sottovoce_privacy::Ledger;
use sottovoce_report::training::Sample;
use sottovoce_sim::Counters;
use sottovoce_task::algorithms::local;
use sottovoce_task::error::Mistake;
use sottovoce_task::folder::Folder;
use sottovoce_task::load::Loaded;
use sottovoce_task::task::Yields;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// What a network has of one peer at the end.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// What it told its neighbours last; none if it told them nothing.
    pub model: Option<Vec<f64>>,
    /// How many steps that model has been through, where all learn one.
    pub steps: u64,
    /// How many contributions its estimate misses.
    pub passed_over: u32,
    /// The weights that it holds, where the graph is learned.
    pub links: Option<Links>,
    /// The bits that it has sent, where papers count bits.
    pub bits: Option<Bits>,
    /// What it has released.
    pub ledger: Ledger,
    /// What it keeps at home, if it has it and its owner has revealed it.
    pub home: Option<Vec<f64>>,
}

/// What peers counted, added up.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Over time, the last at the end.
    pub traffic: Vec<Traffic>,
    /// Letters that were given up.
    pub lost: u64,
    /// By reason.
    pub refused: BTreeMap<String, u64>,
    /// Of the run.
    pub seconds: f64,
    /// Whether everyone was quiet and everything delivered.
    pub quiet: bool,
}

/// Writes the run directory. `gathered` is in the order of the agents. What it is made of is public facts and what peers told; only with
/// `reveal`, everyone's exact data, scores and the objective are computed and home models are written. That is not private.
pub fn write(
    folder: &Folder,
    facts: &PublicFacts,
    gathered: &[Gathered],
    tally: &Tally,
    reveal: Option<&Loaded>,
    command: String,
) -> Result<Summary, Mistake> {
    let models = rows(facts, gathered, |peer| peer.model.as_ref());
    let graph = facts.learns_graph.then(|| learned_graph(gathered));
    let ledgers: Vec<Ledger> = gathered.iter().map(|peer| peer.ledger.clone()).collect();
    let last = tally.traffic.last().copied().unwrap_or_default();
    let counters = Counters {
        wakes: last.wakes,
        vectors_sent: last.vectors_sent,
        letters_sent: last.letters_sent,
        bytes_sent: last.bytes_sent,
        lost: tally.lost,
        rejected: rejected(&tally.refused),
        ..Counters::default()
    };
    let told = Told {
        origin: if reveal.is_some() { Origin::Revealed } else { Origin::Peers },
        algorithm: facts.algorithm.name,
        models: &models,
        // Only what was really told.
        is_told: gathered.iter().map(|peer| peer.model.is_some()).collect(),
        passed_over: gathered.iter().map(|peer| peer.passed_over).max().unwrap_or(0),
        ledgers: &ledgers,
        traffic: tally.traffic.clone(),
        counters: &counters,
        start: &Counters::default(),
        seconds: tally.seconds,
        quiet: tally.quiet,
        bits: train::sum_of_bits(gathered.iter().map(|peer| peer.bits)),
        graph: graph.as_ref(),
        one: one_model(facts, gathered, &models),
    };
    if let Some(statistic) = &facts.statistic {
        return run_folder::write_told_estimates(folder, facts, statistic, &told, vec![command]);
    }
    let Some(loaded) = reveal else { return run_folder::write_told(folder, facts, &told, vec![command]) };
    let trained = revealed(facts, &told, loaded, gathered);
    let alone =
        match *loaded.task.algorithm == local::DESCRIPTION || facts.algorithm.yields == Yields::OneModel {
            true => None,
            false => Some(train::train(loaded, &local::DESCRIPTION, 1, &mut |_| ControlFlow::Continue(())).map_err(
                |halt| match halt {
                    Halt::Mistake(mistake) => mistake,
                    Halt::Interrupted => Mistake::new(halt.to_string()),
                },
            )?),
        };
    let runs: Vec<&Trained> = alone.iter().chain([&trained]).collect();
    run_folder::write_revealed(folder, facts, &told, loaded, &runs, vec![command])
}

/// One row per agent of what is found of it; zeros where there is nothing.
fn rows(facts: &PublicFacts, gathered: &[Gathered], of: impl Fn(&Gathered) -> Option<&Vec<f64>>) -> Rows {
    let mut rows = Rows::zeros(facts.agents(), facts.dimension);
    for (k, peer) in gathered.iter().enumerate() {
        if let Some(found) = of(peer).filter(|found| found.len() == facts.dimension) {
            rows.row_mut(k).copy_from_slice(found);
        }
    }
    rows
}

/// The run with scores, objective and home models, from everyone's exact data.
fn revealed(facts: &PublicFacts, told: &Told<'_>, loaded: &Loaded, gathered: &[Gathered]) -> Trained {
    let scores_of = |models: &Rows| match &loaded.test {
        Some(test) => scores(loaded.problem.loss, test, models),
        None => vec![None; facts.agents()],
    };
    let mut samples: Vec<Sample> = told.traffic.iter().map(|&traffic| traffic.into()).collect();
    let model_scores = match &told.one {
        Some(one) => scores_of(&one.for_everyone()),
        None => scores_of(told.models),
    };
    if let Some(last) = samples.last_mut() {
        let score = mean_and_deviation(&model_scores);
        last.objective = match &told.one {
            Some(one) => Some(objective::common_value(&loaded.problem, &one.model)),
            None => Ruler::new(loaded).objective(told.models, told.graph.cloned()),
        };
        (last.score_mean, last.score_std) = (score.map(|(mean, _)| mean), score.map(|(_, std)| std));
    }
    let homes =
        gathered.iter().all(|peer| peer.home.is_some()).then(|| rows(facts, gathered, |peer| peer.home.as_ref()));
    Trained {
        algorithm: facts.algorithm,
        name: facts.run_name.clone(),
        home: homes.map(|homes| HomeModels { scores: scores_of(&homes), models: homes }),
        scores: model_scores,
        models: told.models.clone(),
        one: told.one.clone(),
        ledgers: told.ledgers.to_vec(),
        samples,
        counters: told.counters.clone(),
        start: told.start.clone(),
        seconds: told.seconds,
        quiet: told.quiet,
        gap: None,
        bits: told.bits,
        graph: told.graph.cloned(),
    }
}

/// The model that peers have in common, where all learn one and somebody told it.
fn one_model(facts: &PublicFacts, gathered: &[Gathered], models: &Rows) -> Option<OneModel> {
    let steps = |peer: &Gathered| peer.model.as_ref().map(|_| peer.steps);
    let steps: Vec<Option<u64>> = gathered.iter().map(steps).collect();
    (facts.algorithm.yields == Yields::OneModel).then(|| OneModel::of(models, &steps)).flatten()
}

/// The weights that the peers hold. One that has not begun has none.
fn learned_graph(gathered: &[Gathered]) -> Graph {
    let links = |(peer, id): (&Gathered, u32)| peer.links.clone().unwrap_or_else(|| Links::new(PeerId(id)));
    let links: Vec<Links> = gathered.iter().zip(0..).map(links).collect();
    graph_of(links.len(), |id| &links[id.index()])
}

/// Messages that arrived and were dropped, by the names that peers give the reasons.
fn rejected(refused: &BTreeMap<String, u64>) -> BTreeMap<Reject, u64> {
    let named = [
        ("malformed", Reject::Malformed),
        ("not_finite", Reject::NotFinite),
        ("wrong_dimension", Reject::WrongDimension),
        ("not_a_neighbour", Reject::NotANeighbour),
        ("out_of_turn", Reject::OutOfTurn),
        ("exhausted", Reject::Exhausted),
    ];
    named.into_iter().filter_map(|(name, reject)| Some((reject, *refused.get(name)?))).collect()
}
