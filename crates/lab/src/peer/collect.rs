//! The run directory of a network: from posts, ledgers and counters, which is what others may see. What peers keep for themselves
//! is in it only when their owners say so.

use super::problem::is_learned;
use crate::error::Mistake;
use crate::folder::Folder;
use crate::learned::graph_of;
use crate::load::Loaded;
use crate::report::Sample;
use crate::run_folder::{self, Summary};
use crate::score::{mean_and_deviation, scores};
use crate::task::Algorithm;
use crate::train::{self, Halt, HomeModels, Ruler, Trained};
use sottovoce_algorithms::personal::{frank_wolfe::Bits, links::Links};
use sottovoce_core::{Graph, PeerId, Reject, Rows};
use sottovoce_privacy::Ledger;
use sottovoce_sim::Counters;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// What a network has of one peer at the end.
#[derive(Clone, Debug, Default)]
pub struct Gathered {
    /// What it told its neighbours last; none if it told them nothing.
    pub model: Option<Vec<f64>>,
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
    pub samples: Vec<Sample>,
    /// Letters that were given up.
    pub lost: u64,
    /// By reason.
    pub refused: BTreeMap<String, u64>,
    /// Of the run.
    pub seconds: f64,
    /// Whether everyone was quiet and everything delivered.
    pub quiet: bool,
}

/// Writes the run directory. `gathered` is in the order of the agents. With `reveal`, exact data are looked at: scores and the
/// objective are computed, and home models are written. That is not private.
pub fn write(
    folder: &Folder,
    loaded: &Loaded,
    gathered: Vec<Gathered>,
    tally: Tally,
    reveal: bool,
    command: String,
) -> Result<Summary, Mistake> {
    let problem = &loaded.problem;
    let mut models = Rows::zeros(problem.agents(), problem.dimension());
    let mut homes = Rows::zeros(problem.agents(), problem.dimension());
    let fits = |model: &&Vec<f64>| model.len() == problem.dimension();
    for (k, peer) in gathered.iter().enumerate() {
        if let Some(model) = peer.model.as_ref().filter(fits) {
            models.row_mut(k).copy_from_slice(model);
        }
        if let Some(home) = peer.home.as_ref().filter(fits) {
            homes.row_mut(k).copy_from_slice(home);
        }
    }
    let scores_of = |models: &Rows| match &loaded.test {
        Some(test) if reveal => scores(problem.loss, test, models),
        _ => vec![None; problem.agents()],
    };
    let graph = is_learned(&loaded.task).then(|| learned_graph(&gathered));
    let has_homes = reveal && gathered.iter().all(|peer| peer.home.is_some());
    let mut samples = tally.samples;
    let model_scores = scores_of(&models);
    if let Some(last) = samples.last_mut().filter(|_| reveal) {
        let score = mean_and_deviation(&model_scores);
        last.objective = Ruler::new(loaded).objective(&models, graph.clone());
        (last.score_mean, last.score_std) = (score.map(|(mean, _)| mean), score.map(|(_, std)| std));
    }
    let last = samples.last().copied().unwrap_or_default();
    let counters = Counters {
        wakes: last.wakes,
        vectors_sent: last.vectors_sent,
        bytes_sent: last.bytes_sent,
        lost: tally.lost,
        rejected: rejected(&tally.refused),
        ..Counters::default()
    };
    let trained = Trained {
        algorithm: loaded.task.algorithm.name(),
        name: train::name(loaded, loaded.task.algorithm, graph.is_some()),
        home: has_homes.then(|| HomeModels { scores: scores_of(&homes), models: homes }),
        scores: model_scores,
        models,
        ledgers: gathered.iter().map(|peer| peer.ledger.clone()).collect(),
        samples,
        counters,
        start: Counters::default(),
        seconds: tally.seconds,
        quiet: tally.quiet,
        gap: None,
        bits: train::sum_of_bits(gathered.iter().map(|peer| peer.bits)),
        graph,
    };
    let alone = match loaded.task.algorithm {
        Algorithm::Local => None,
        _ if !reveal => None,
        _ => Some(train::train(loaded, Algorithm::Local, 1, &mut |_| ControlFlow::Continue(())).map_err(|halt| {
            match halt {
                Halt::Mistake(mistake) => mistake,
                Halt::Interrupted => Mistake::new(halt.to_string()),
            }
        })?),
    };
    let runs: Vec<&Trained> = alone.iter().chain([&trained]).collect();
    let summary = run_folder::write(folder, loaded, &runs, vec![command], None)?;
    // Only what was really told.
    let told = |id: PeerId| gathered[id.index()].model.is_some();
    folder.write("models.csv", run_folder::models_csv(loaded, &trained.models, told))?;
    Ok(summary)
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
