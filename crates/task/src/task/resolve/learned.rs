//! What a task says of boosting and of a graph that is learned, resolved and checked.

use super::super::check::Lines;
use super::super::config::{self, BoostingConfig, GraphConfig, NumberOrWord};
use super::super::{Boosting, Description, GraphSource, Learned, Model, ModelStep, Predictors, Step, Turns, Wish};
use crate::error::Mistake;
use crate::input::InputFile;
use sottovoce_algorithms::Loss;

/// Stumps when a task does not say; the thesis has 200 for the moons.
const STUMPS_DEFAULT: u32 = 200;
/// beta when a task does not say, as for the moons.
const RADIUS_DEFAULT: f64 = 10.0;
/// Rounds alone when a task does not say, as in the thesis.
const LOCAL_ROUNDS_DEFAULT: u32 = 1000;
/// kappa when a task does not say; the authors' code has 10, the thesis 5.
const SAMPLE_DEFAULT: u32 = 10;
/// Turns when a task does not say: those of the authors' code for the moons, with a longer first graph.
const TURNS_DEFAULT: Turns = Turns { graph_first: 20.0, models: 20.0, graph: 10.0 };

/// Resolves `[boosting]` where something is boosted: by the task itself, or beside it for comparison.
pub(super) fn boosting(
    config: BoostingConfig,
    algorithm: &Description,
    source: &GraphSource,
    model: &Model,
    lines: &Lines<'_>,
) -> Result<Option<Boosting>, Mistake> {
    let learned = matches!(source, GraphSource::Learned(_)) && model.loss != Loss::Squared;
    let predictors = match config.predictors {
        None => Predictors::Stumps(STUMPS_DEFAULT),
        Some(NumberOrWord::Integer(count)) => Predictors::Stumps(count.try_into().unwrap_or(u32::MAX)),
        Some(_) => Predictors::Columns,
    };
    if predictors == Predictors::Columns && config.range.is_some() {
        let what =
            "boosting.range is for stumps, and with predictors = \"columns\" there are none; accepted: one of the two";
        return Err(lines.mistake("boosting.range", what));
    }
    Ok((algorithm.boosts || learned).then(|| Boosting {
        predictors,
        range: config.range,
        radius: config.radius.unwrap_or(RADIUS_DEFAULT),
        step: config.step.unwrap_or(Step::LocalClock),
        local_rounds: config.local_rounds.unwrap_or(LOCAL_ROUNDS_DEFAULT),
    }))
}

/// The graph's keys; `path` makes them absolute.
pub(super) fn graph(
    config: &GraphConfig,
    algorithm: &Description,
    mut path: impl FnMut(&str, &str) -> Result<InputFile, Mistake>,
) -> Result<Learned, Mistake> {
    let mut file = |written: &Option<String>, key: &str| written.as_ref().map(|file| path(file, key)).transpose();
    Ok(Learned {
        sample: config.sample.unwrap_or(SAMPLE_DEFAULT),
        sparsity: config.sparsity.unwrap_or(algorithm.learned_graph.map_or(1.0, |defaults| defaults.sparsity)),
        strength: config.strength.unwrap_or(1.0),
        turns: Turns {
            graph_first: config.first_wakes.unwrap_or(TURNS_DEFAULT.graph_first),
            models: config.model_wakes.unwrap_or(TURNS_DEFAULT.models),
            graph: config.graph_wakes.unwrap_or(TURNS_DEFAULT.graph),
        },
        model_step: config.model_step.unwrap_or(ModelStep::Gradient),
        oracle: file(&config.oracle, "graph.oracle")?,
        groups: file(&config.groups, "graph.groups")?,
    })
}

/// Refuses what learned graphs cannot be combined with.
pub(super) fn check(
    algorithm: &Description,
    wish: &Wish<'_>,
    start: Option<config::Start>,
    tolerance: bool,
    lines: &Lines<'_>,
) -> Result<(), Mistake> {
    let GraphSource::Learned(learned) = wish.graph else { return Ok(()) };
    if learned.model_step == ModelStep::Newton && (algorithm.boosts || wish.private) {
        let what = "graph.model-step = \"newton\" is for linear models without noise; accepted with frank-wolfe and with [privacy]: \
                    \"gradient\", or no graph.model-step";
        return Err(lines.mistake("graph.model-step", what));
    }
    // A private run learns its first graph from nobody's data.
    if start == Some(config::Start::Zero) && !wish.private {
        let what = "model.start = \"zero\" tells nobody who is like whom, so no graph can be learned from it; accepted with \
                    kind = \"learned\": \"local\"";
        return Err(lines.mistake("model.start", what));
    }
    if tolerance {
        let what = "run.tolerance cannot end a run whose graph is learned: in the turn of the models weights rest, and the \
                    other way round; accepted: run.wakes-per-agent";
        return Err(lines.mistake("run.tolerance", what));
    }
    Ok(())
}

/// Wakes per agent in a turn of the graph when a private task does not say: they cost no privacy, and there are few turns.
const PRIVATE_GRAPH_WAKES: f64 = 100.0;
/// nu when a private task does not say. After few updates from zero models lie close together; tuned on synthetic linear tasks (seeds 101
/// and 102, p = 20, epsilon = 1.05 to 10).
const PRIVATE_STRENGTH: f64 = 0.1;

/// The defaults of a private task, for what was not said: nu, and the wakes of a turn of the models and of the graph.
pub(super) fn set_private(learned: &mut Learned, said: [Option<f64>; 3], model_wakes: f64) {
    let [strength, models, graph] = said;
    learned.strength = strength.unwrap_or(PRIVATE_STRENGTH);
    learned.turns.models = models.unwrap_or(model_wakes);
    learned.turns.graph = graph.unwrap_or(PRIVATE_GRAPH_WAKES);
}

/// Wakes per agent in a turn of the models when a private task does not say: enough for every agent to make its updates, but for
/// one in a billion.
pub(super) fn private_model_wakes(updates: u64, warm_wakes: u64) -> f64 {
    (20 + 2 * updates + warm_wakes) as f64
}

/// Refuses a private run that would end before the graph is learned from anything.
pub(super) fn check_private_run(turns: Turns, wakes: u64, lines: &Lines<'_>) -> Result<(), Mistake> {
    if turns.before(wakes as f64).1 == 0 {
        let least = turns.graph_first + turns.models;
        let what = format!(
            "run.wakes-per-agent is {wakes}, and no turn of the graph begins before that; accepted: more than graph.first-wakes + \
             graph.model-wakes = {least}"
        );
        return Err(lines.mistake("run.wakes-per-agent", what));
    }
    Ok(())
}
