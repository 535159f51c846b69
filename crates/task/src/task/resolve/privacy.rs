//! What `[privacy]` says, and what would not be private.

use super::super::check::Lines;
use super::super::config::{self, HomeConfig, LossConfig, LossesConfig, PairsConfig, PrivacyConfig, WarmConfig};
use super::super::{
    AccountantName, Data, Description, GraphSource, GraphTask, Home, Leaves, Losses, Mechanism, Model, NoiseKind,
    Normalize, Pairs, Privacy, Schedule, Trust, Unit, Warm, Yields,
};
use super::{required, statistic};
use crate::error::Mistake;
use sottovoce_algorithms::Loss;
use sottovoce_algorithms::personal::descent::WarmStart;

/// Releases per agent when a task does not say. With home models few and clear updates are worth more than many and noisy ones.
const UPDATES_DEFAULT: u64 = 1;

/// The losses' part of the budget when a task does not say: see `docs/privacy.md`.
const LOSSES_SHARE_DEFAULT: f64 = 0.1;

/// Wakes of propagation after a warm start when a task does not say.
const WARM_WAKES_DEFAULT: u32 = 10;

/// Resolves the section, and refuses what would not be private.
pub(super) fn resolve(
    config: PrivacyConfig,
    start: Option<config::Start>,
    tolerance: bool,
    task: (&Description, &Data, &GraphTask, &Model),
    lines: &Lines<'_>,
) -> Result<Privacy, Mistake> {
    let (algorithm, data, graph, model) = task;
    let refuse = |key: &str, what: String| Err(lines.mistake(key, what));
    let about_members = [
        (config.unit.is_some(), "privacy.unit"),
        (config.colluders.is_some(), "privacy.colluders"),
        (config.pairs.is_some(), "privacy.pairs"),
        (config.contributions.is_some(), "privacy.contributions"),
        (config.present.is_some(), "privacy.present"),
        (config.honest.is_some(), "privacy.honest"),
        (config.neighbours.is_some(), "privacy.neighbours"),
        (config.masks.is_some(), "privacy.masks"),
        (config.verify.is_some(), "privacy.verify"),
        (config.trust.is_some(), "privacy.trust"),
    ];
    for (given, key) in about_members {
        if given {
            let what = format!(
                "{key} is for statistics, tokens and sums; models are protected against everyone, and by record; accepted: no {key}"
            );
            return refuse(key, what);
        }
    }
    if algorithm.yields == Yields::OneModel {
        refuse_of_own_models(&config, algorithm, lines)?;
    }
    let epsilon = required(config.epsilon, "privacy.epsilon", lines)?;
    let delta = required(config.delta, "privacy.delta", lines)?;
    let mechanism = config.mechanism.unwrap_or(Mechanism::Gaussian);
    if delta == 0.0 && mechanism == Mechanism::Gaussian {
        return refuse(
            "privacy.delta",
            "privacy.delta is 0, and Gaussian noise has no guarantee without a delta; accepted: a delta above 0 and well \
             below 1 / points, or mechanism = \"laplace\""
                .to_owned(),
        );
    }
    let Some(bound) = data.feature_bound else {
        return refuse(
            "privacy",
            "a private task needs a public bound on the features, for its step sizes; accepted: data.normalize = \"l2\" \
             (or \"l1\"), or data.feature-bound = a bound that is known without looking at the data"
                .to_owned(),
        );
    };
    check_public(start, tolerance, data, graph, lines)?;
    // The norm of gradients is at most this for a loss with bounded slopes.
    let reach = reach(bound, model.intercept, mechanism, data.normalize);
    let clip = match (config.clip, model.loss) {
        (Some(clip), _) => clip,
        (None, Loss::Squared) if matches!(algorithm.leaves, Leaves::Updates | Leaves::Obfuscated) => {
            return refuse(
                "privacy",
                "privacy.clip is missing, and gradients of the squared loss have no bound of their own; accepted: \
                 privacy.clip = the largest norm of one example's gradient, chosen without the private data"
                    .to_owned(),
            );
        }
        (None, _) => reach,
    };
    let warm = match (start, config.warm) {
        (Some(config::Start::Warm), Some(warm)) => Some(warm_start(warm, epsilon, model, lines)?),
        (Some(config::Start::Warm), None) => {
            let what = "model.start = \"warm\" needs privacy.warm = { epsilon = .. }";
            return refuse("model.start", what.to_owned());
        }
        (_, Some(_)) => {
            return refuse("privacy.warm", "privacy.warm has no meaning without model.start = \"warm\"".to_owned());
        }
        (_, None) => None,
    };
    let schedule = config.schedule.unwrap_or(Schedule::Uniform);
    let learned = matches!(graph.source, GraphSource::Learned(_));
    if learned && schedule != Schedule::Uniform {
        let what = "privacy.schedule weighs updates by the edges of a graph that is known; accepted with kind = \"learned\": \
                    \"uniform\"";
        return refuse("privacy.schedule", what.to_owned());
    }
    let losses = losses(config.losses, learned, model, lines)?;
    let home = match config.home {
        _ if algorithm.yields == Yields::OneModel => None,
        Some(HomeConfig::Off(_)) => None,
        None => Some(Home::Automatic),
        Some(HomeConfig::Model(model)) => Some(Home::Tuned {
            scale: required(model.scale, "privacy.home.scale", lines)?,
            trade_off: required(model.trade_off, "privacy.home.trade-off", lines)?,
        }),
    };
    Ok(Privacy {
        epsilon,
        delta,
        mechanism,
        unit: Unit::Record,
        colluders: 1,
        pairs: Pairs::Worst,
        contributions: None,
        present: 1.0,
        honest: 1.0,
        neighbours: None,
        trust: Trust::Network,
        clip,
        updates: config.updates.unwrap_or(UPDATES_DEFAULT),
        schedule,
        warm,
        losses,
        home,
        accountant: config.accountant.unwrap_or(AccountantName::Tight),
        noise: config.noise.unwrap_or(NoiseKind::Idealized),
    })
}

/// Resolves the section of a task whose agents learn one model for all by gradient steps, and refuses what would not be private.
pub(super) fn of_token(
    config: PrivacyConfig,
    tolerance: bool,
    task: (&Description, &Data, &GraphTask, &Model),
    lines: &Lines<'_>,
) -> Result<Privacy, Mistake> {
    let (algorithm, data, graph, model) = task;
    let refuse = |key: &str, what: String| Err(lines.mistake(key, what));
    refuse_of_own_models(&config, algorithm, lines)?;
    let masked = algorithm.leaves == Leaves::MaskedSums;
    if masked {
        statistic::check_masks(&config, lines)?;
    }
    if config.unit.is_some_and(|unit| unit != Unit::Agent) {
        let what = format!(
            "privacy.unit: {} protects all of a member's data together, each of its records with them; accepted: unit = \"agent\"",
            algorithm.name
        );
        return refuse("privacy.unit", what);
    }
    let pairs = match config.pairs {
        Some(PairsConfig::Which(pairs)) => pairs,
        None => Pairs::Worst,
        Some(PairsConfig::Meetings(_)) => {
            let what =
                format!("privacy.pairs: nobody meets others by {}; accepted: \"worst\", \"mean\"", algorithm.name);
            return refuse("privacy.pairs", what);
        }
    };
    let epsilon = required(config.epsilon, "privacy.epsilon", lines)?;
    let delta = required(config.delta, "privacy.delta", lines)?;
    let mechanism = config.mechanism.unwrap_or(Mechanism::Gaussian);
    if delta == 0.0 || mechanism != Mechanism::Gaussian {
        let what = "noise that adds up with that of others is Gaussian, and has no guarantee without a delta; accepted: mechanism = \"gaussian\" with a \
                    delta above 0 and well below 1 / agents";
        return refuse(if delta == 0.0 { "privacy.delta" } else { "privacy.mechanism" }, what.to_owned());
    }
    let Some(bound) = data.feature_bound.or(config.clip.filter(|_| masked)) else {
        let what = "a private task needs a public bound on the features, for its largest step; accepted: data.normalize = \"l2\" (or \"l1\"), or \
                    data.feature-bound = a bound that is known without looking at the data";
        return refuse("privacy", what.to_owned());
    };
    check_public(None, tolerance, data, graph, lines)?;
    let clip = match (config.clip, model.loss) {
        (Some(clip), _) => clip,
        (None, Loss::Squared) => {
            let what = "privacy.clip is missing, and gradients of the squared loss have no bound of their own; accepted: privacy.clip = the largest \
                        norm of one example's gradient, chosen without the private data";
            return refuse("privacy", what.to_owned());
        }
        (None, _) => {
            let steps = model.local_steps.map_or(1.0, |steps| f64::from(steps) * model.step.unwrap_or(1.0));
            steps * reach(bound, model.intercept, mechanism, data.normalize)
        }
    };
    Ok(Privacy {
        epsilon,
        delta,
        mechanism,
        unit: Unit::Agent,
        colluders: config.colluders.unwrap_or(1),
        pairs,
        contributions: config.contributions,
        present: config.present.unwrap_or(1.0),
        honest: config.honest.unwrap_or(1.0),
        neighbours: config.neighbours,
        trust: config.trust.unwrap_or(Trust::Network),
        clip,
        updates: 1,
        schedule: Schedule::Uniform,
        warm: None,
        losses: None,
        home: None,
        accountant: config.accountant.unwrap_or(AccountantName::Tight),
        noise: config.noise.unwrap_or(NoiseKind::Idealized),
    })
}

/// Refuses what is about models that agents have for themselves, where all learn one.
fn refuse_of_own_models(config: &PrivacyConfig, algorithm: &Description, lines: &Lines<'_>) -> Result<(), Mistake> {
    let masked = algorithm.leaves == Leaves::MaskedSums;
    let about_others = [
        (config.updates.is_some(), "privacy.updates"),
        (config.schedule.is_some(), "privacy.schedule"),
        (config.warm.is_some(), "privacy.warm"),
        (config.losses.is_some(), "privacy.losses"),
        (config.pairs.is_some() && !algorithm.by_pairs, "privacy.pairs"),
        (config.home.is_some(), "privacy.home"),
        (config.honest.is_some() && !masked, "privacy.honest"),
        (config.neighbours.is_some() && !masked, "privacy.neighbours"),
        (config.masks.is_some() && !masked, "privacy.masks"),
        (config.verify.is_some() && !masked, "privacy.verify"),
        (config.contributions.is_some() && masked, "privacy.contributions"),
        (config.trust.is_some() && masked, "privacy.trust"),
    ];
    match about_others.into_iter().find(|(given, _)| *given) {
        None => Ok(()),
        Some((_, key)) => {
            let what = format!(
                "{key} is about models of agents' own, sums or tokens; accepted with {}: no {key}",
                algorithm.name
            );
            Err(lines.mistake(key, what))
        }
    }
}

/// Refuses what would tell of a record before anything is charged.
fn check_public(
    start: Option<config::Start>,
    tolerance: bool,
    data: &Data,
    graph: &GraphTask,
    lines: &Lines<'_>,
) -> Result<(), Mistake> {
    let refuse = |key: &str, what: &str| Err(lines.mistake(key, what));
    if data.train.agents.is_some() && data.dimension.is_none() {
        return refuse(
            "data.train",
            "a private task of libsvm files needs data.dimension: found out from the largest index, it would tell of a record; \
             accepted: data.dimension = a number that is known without looking at the data",
        );
    }
    if matches!(graph.source, GraphSource::Knn { .. }) {
        return refuse(
            "graph.kind",
            "kind = \"knn\" computes the graph from private data, and nothing is charged for that; accepted with \
             [privacy]: edges = a csv file, or a kind that does not look at the data",
        );
    }
    if tolerance {
        return refuse(
            "run.tolerance",
            "run.tolerance would end a private run by what the data do; accepted: run.wakes-per-agent, or nothing: \
             a private run follows its plan",
        );
    }
    if start == Some(config::Start::Local) {
        return refuse(
            "model.start",
            "model.start = \"local\" would send exact local models; accepted with [privacy]: \"zero\", or \"warm\" \
             with privacy.warm",
        );
    }
    Ok(())
}

/// The largest |x| in the mechanism's norm, where it is known; 1 where it is not, and clipping does the rest.
fn reach(bound: f64, intercept: Option<f64>, mechanism: Mechanism, normalize: Normalize) -> f64 {
    let constant = intercept.unwrap_or(0.0);
    match mechanism {
        Mechanism::Gaussian => libm::hypot(bound, constant),
        Mechanism::Laplace if normalize == Normalize::L2 => 1.0,
        Mechanism::Laplace => bound + constant,
    }
}

fn warm_start(config: WarmConfig, epsilon: f64, model: &Model, lines: &Lines<'_>) -> Result<Warm, Mistake> {
    let part = required(config.epsilon, "privacy.warm.epsilon", lines)?;
    if part >= epsilon {
        let what = format!(
            "privacy.warm.epsilon is {part} of a budget of {epsilon}: nothing is left for one update; accepted: less than \
             privacy.epsilon"
        );
        return Err(lines.mistake("privacy.warm", what));
    }
    if model.loss == Loss::Squared {
        let what = "a warm start needs a loss with bounded slopes; accepted: model.loss = \"logistic\" or \
                    \"smoothed-hinge\", or model.start = \"zero\"";
        return Err(lines.mistake("privacy.warm", what));
    }
    let regularization = config.regularization.unwrap_or(1.0);
    // lambda |theta|^2 <= L(0), which is ln 2 for the logistic loss and at most 1 for the smoothed hinge.
    let radius = config.radius.unwrap_or_else(|| libm::sqrt(model.loss.value(0.0, 1.0) / regularization));
    let trade_off = config.trade_off.unwrap_or(model.trade_off);
    let wakes = config.wakes.unwrap_or(WARM_WAKES_DEFAULT);
    Ok(Warm { epsilon: part, start: WarmStart { regularization, radius, trade_off, wakes } })
}

fn losses(
    config: Option<LossesConfig>,
    learned: bool,
    model: &Model,
    lines: &Lines<'_>,
) -> Result<Option<Losses>, Mistake> {
    let config = match config {
        Some(_) if !learned => {
            let what = "privacy.losses is for kind = \"learned\" only: nobody else needs to know a loss";
            return Err(lines.mistake("privacy.losses", what));
        }
        Some(LossesConfig::Off(_)) => return Ok(None),
        None if !learned => return Ok(None),
        Some(LossesConfig::On(config)) => config,
        None => LossConfig::default(),
    };
    let bound = match (config.bound, model.loss) {
        (Some(bound), _) => bound,
        (None, Loss::Squared) => {
            let what = "privacy.losses.bound is missing, and squared losses have no bound of their own; accepted: \
                        privacy.losses = { bound = the loss that larger ones are cut to, chosen without the private data }, or \
                        privacy.losses = false";
            return Err(lines.mistake("privacy", what));
        }
        // Losses of 0 and of the bound are then equally far from that of a model that knows nothing.
        (None, loss) => 2.0 * loss.value(0.0, 1.0),
    };
    Ok(Some(Losses { bound, share: config.share.unwrap_or(LOSSES_SHARE_DEFAULT) }))
}
