//! A task file as it is written: every key optional, nothing resolved.

use serde::{Deserialize, Serialize};
use sottovoce_algorithms::Loss;

macro_rules! config {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $type:ty,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, Deserialize, Serialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case")]
        pub(super) struct $name {
            $(
                #[serde(skip_serializing_if = "Option::is_none")]
                pub(super) $field: Option<$type>,
            )*
        }
    )*};
}

/// The whole file. What is left over are the sections that only one algorithm reads; all keys have been checked before.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Config {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) algorithm: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<DataConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) statistic: Option<StatisticConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) graph: Option<GraphConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) model: Option<ModelConfig>,
    #[serde(flatten)]
    pub(super) own: super::OwnKeys,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) boosting: Option<BoostingConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) run: Option<RunConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) faults: Option<FaultsConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) privacy: Option<PrivacyConfig>,
}

config! {
    DataConfig {
        train: String,
        test: String,
        split: f64,
        split_seed: u64,
        agents: String,
        test_agents: String,
        dimension: u32,
        record: String,
        normalize: super::Normalize,
        feature_bound: f64,
    }

    StatisticConfig {
        kind: super::StatisticKind,
        columns: Vec<String>,
        range: [f64; 2],
        bins: u32,
        agents: u64,
        rows: u64,
        positives: u64,
        ties: super::Ties,
        consistent: bool,
        bits: u32,
        centres: Vec<Vec<f64>>,
    }

    GraphConfig {
        edges: String,
        kind: String,
        allow_isolated: bool,
        rows: u32,
        columns: u32,
        neighbours: u32,
        rewire: f64,
        probability: f64,
        vectors: String,
        width: f64,
        threshold: NumberOrWord,
        seed: u64,
        sample: u32,
        sparsity: f64,
        strength: f64,
        first_wakes: f64,
        model_wakes: f64,
        graph_wakes: f64,
        model_step: super::ModelStep,
        oracle: String,
        groups: String,
    }

    ModelConfig {
        loss: Loss,
        regularization: NumberOrWord,
        trade_off: f64,
        intercept: bool,
        constant: f64,
        step: f64,
        radius: f64,
        local_steps: u32,
        points_max: u64,
        start: Start,
    }

    BoostingConfig {
        predictors: NumberOrWord,
        range: [f64; 2],
        radius: f64,
        step: super::Step,
        local_rounds: u32,
    }

    RunConfig {
        wakes_per_agent: u64,
        tolerance: f64,
        rounds: u32,
        accelerated: bool,
        hops: u64,
        clock: super::Clock,
        seed: u64,
    }

    FaultsConfig {
        loss: f64,
        duplicate: f64,
        leave: f64,
        die: f64,
        until: f64,
        delay: DelayConfig,
        partitions: Vec<PartitionConfig>,
    }

    DelayConfig {
        mean: f64,
        max: f64,
    }

    PartitionConfig {
        from: f64,
        to: f64,
        share: f64,
    }

    PrivacyConfig {
        epsilon: f64,
        delta: f64,
        mechanism: super::Mechanism,
        unit: super::Unit,
        colluders: u32,
        pairs: PairsConfig,
        contributions: u32,
        present: f64,
        honest: f64,
        neighbours: u32,
        masks: super::Masks,
        verify: bool,
        trust: super::Trust,
        clip: f64,
        updates: u64,
        schedule: super::Schedule,
        warm: WarmConfig,
        losses: LossesConfig,
        home: HomeConfig,
        accountant: super::AccountantName,
        noise: super::NoiseKind,
    }

    WarmConfig {
        epsilon: f64,
        regularization: f64,
        radius: f64,
        trade_off: f64,
        wakes: u32,
    }

    LossConfig {
        bound: f64,
        share: f64,
    }

    HomeModelConfig {
        scale: f64,
        trade_off: f64,
    }
}

/// A number, or the one word that stands for a rule.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(super) enum NumberOrWord {
    /// Kept apart from `Number`, so that steps stay whole when they are written again.
    Integer(i64),
    Number(f64),
    Word(String),
}

impl NumberOrWord {
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            NumberOrWord::Integer(x) => Some(*x as f64),
            NumberOrWord::Number(x) => Some(*x),
            NumberOrWord::Word(_) => None,
        }
    }
}

/// Which pairs of members keep a budget, or how often each member meets another.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(super) enum PairsConfig {
    Meetings(u32),
    Which(super::Pairs),
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(super) enum HomeConfig {
    Off(bool),
    Model(HomeModelConfig),
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub(super) enum LossesConfig {
    Off(bool),
    On(LossConfig),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Start {
    Local,
    Zero,
    Warm,
}
