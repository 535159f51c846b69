//! From a [`Task`] back to a task file, with every key explicit; and the fingerprint of a task.

use super::config::*;
use super::{
    Boosting, Bounds, Description, GraphSource, Home, Learned, Leaves, Losses, Predictors, Privacy, Statistic, Task,
    Test, Threshold, Warm, Yields,
};
use crate::error::Mistake;
use crate::input::InputFile;
use sha2::{Digest, Sha256};
use sottovoce_algorithms::Regularization;
use std::io::Read;

impl Task {
    /// The resolved task as a task file: every key explicit, every path absolute. Reading it gives the same task.
    pub fn to_toml(&self) -> String {
        let config = self.config(&mut |path| Ok(path.to_str().expect("resolved paths are UTF-8").to_owned()));
        render(&config.expect("the paths of a task can be written"))
    }

    /// What the task is, wherever its files lie: its text with each path replaced by the digest of the file.
    pub fn fingerprint(&self) -> Result<String, Mistake> {
        Ok(render(&self.config(&mut |path| digest(path))?))
    }

    /// What the task is, whatever its files hold and wherever they lie: its text with each path left empty.
    pub fn without_files(&self) -> String {
        render(&self.config(&mut |_| Ok(String::new())).expect("no file is read"))
    }

    /// What all peers of a network must agree on, and nothing else: not where files lie, who is whose neighbour, or how a simulator
    /// would run it. How a graph is learned is part of it, what it is compared with is not.
    pub fn agreed(&self) -> String {
        let mut config = self.config(&mut |_| Ok(String::new())).expect("no file is read");
        if let Some(data) = &mut config.data {
            let DataConfig { normalize, feature_bound, .. } = *data;
            *data = DataConfig { normalize, feature_bound, ..DataConfig::default() };
        }
        config.faults = None;
        config.graph = match &self.graph.source {
            GraphSource::Learned(_) => {
                config.graph.map(|graph| GraphConfig { allow_isolated: None, oracle: None, groups: None, ..graph })
            }
            _ => None,
        };
        let wakes_per_agent = self.counts_wakes().then_some(self.run.wakes_per_agent);
        config.run = Some(RunConfig {
            tolerance: self.run.tolerance,
            wakes_per_agent,
            rounds: self.run.rounds,
            accelerated: self.run.accelerated,
            hops: self.run.hops,
            ..RunConfig::default()
        });
        if let Some(privacy) = &mut config.privacy {
            // The noise of a peer is always exact.
            privacy.noise = None;
        }
        render(&config)
    }

    /// Whether a peer ends after so many wakes. With a tolerance nobody counts them, and a private peer follows its plan; but where the
    /// graph is learned the plan follows the turns, and how many of them there are is for the wakes to say.
    pub fn counts_wakes(&self) -> bool {
        let learned = matches!(self.graph.source, GraphSource::Learned(_));
        let told = self.privacy.is_none() || learned || self.algorithm.leaves == Leaves::Rows;
        !self.algorithm.ends_by_itself() && self.run.tolerance.is_none() && told
    }

    fn config(&self, path: &mut dyn FnMut(&InputFile) -> Result<String, Mistake>) -> Result<Config, Mistake> {
        let data = self.data_config(path)?;
        let faults = &self.faults;
        let personal = self.algorithm.yields == Yields::ModelPerAgent;
        Ok(Config {
            name: Some(self.name.clone()),
            algorithm: Some(self.algorithm.name.to_owned()),
            data: Some(data),
            statistic: self.statistic.as_ref().map(|statistic| StatisticConfig {
                bits: (self.algorithm.leaves == Leaves::Halves).then_some(statistic.bits),
                ..statistic.config()
            }),
            graph: if self.has_everyone() { None } else { Some(self.graph_config(path)?) },
            model: self.statistic.is_none().then(|| ModelConfig {
                loss: Some(self.model.loss),
                regularization: Some(match self.model.regularization {
                    Regularization::Constant(lambda) => NumberOrWord::Number(lambda),
                    Regularization::OneOverPoints => NumberOrWord::Word("1/m".to_owned()),
                }),
                trade_off: personal.then_some(self.model.trade_off),
                intercept: Some(self.model.intercept.is_some()),
                constant: self.model.intercept,
                points_max: self.model.points_max,
                step: self.model.step,
                radius: self.model.radius,
                local_steps: self.model.local_steps,
                start: match self.model.start {
                    _ if !personal => None,
                    _ if self.privacy.is_some_and(|privacy| privacy.warm.is_some()) => Some(Start::Warm),
                    _ if self.algorithm.boosts => None,
                    super::Start::Local => Some(Start::Local),
                    super::Start::Zero => Some(Start::Zero),
                },
            }),
            own: self.own.clone(),
            boosting: self.boosting.map(|boosting| boosting.config()),
            run: Some(RunConfig {
                wakes_per_agent: (!self.algorithm.ends_by_itself()).then_some(self.run.wakes_per_agent),
                rounds: self.run.rounds,
                accelerated: self.run.accelerated,
                hops: self.run.hops,
                tolerance: self.run.tolerance,
                clock: Some(self.run.clock),
                seed: Some(self.run.seed),
            }),
            faults: Some(FaultsConfig {
                loss: Some(faults.loss),
                duplicate: Some(faults.duplicate),
                leave: Some(faults.leave),
                die: Some(faults.die),
                until: Some(faults.until),
                delay: Some(DelayConfig { mean: Some(faults.delay_mean), max: Some(faults.delay_max) }),
                partitions: Some(
                    faults
                        .partitions
                        .iter()
                        .map(|p| PartitionConfig { from: Some(p.from), to: Some(p.to), share: Some(p.share) })
                        .collect(),
                ),
            }),
            privacy: {
                let learned = matches!(self.graph.source, GraphSource::Learned(_));
                let of_statistic = self.statistic.is_some();
                self.privacy.map(|privacy| match of_statistic {
                    // An answer has no other noise than its own, and is one row's.
                    true if self.algorithm.leaves.tells_answers() => PrivacyConfig {
                        mechanism: None,
                        unit: None,
                        colluders: None,
                        ..privacy.config_of_statistic(self.algorithm)
                    },
                    true if self.algorithm.leaves == Leaves::Halves => PrivacyConfig {
                        mechanism: None,
                        unit: None,
                        colluders: None,
                        pairs: self.pairs.map(PairsConfig::Meetings),
                        ..privacy.config_of_statistic(self.algorithm)
                    },
                    true => privacy.config_of_statistic(self.algorithm),
                    false
                        if matches!(self.algorithm.leaves, Leaves::Token | Leaves::Gradients | Leaves::MaskedSums) =>
                    {
                        privacy.config_of_token(self.algorithm, !self.has_everyone())
                    }
                    false if self.algorithm.yields == Yields::OneModel => privacy.config_of_one_model(),
                    false => privacy.config(learned),
                })
            },
        })
    }

    fn data_config(&self, path: &mut dyn FnMut(&InputFile) -> Result<String, Mistake>) -> Result<DataConfig, Mistake> {
        let mut data = DataConfig {
            train: Some(path(&self.data.train.file)?),
            agents: self.data.train.agents.as_ref().map(&mut *path).transpose()?,
            dimension: self.data.dimension.map(|dimension| dimension as u32),
            record: self.data.record.clone(),
            normalize: self.statistic.is_none().then_some(self.data.normalize),
            feature_bound: self.data.feature_bound,
            ..DataConfig::default()
        };
        match &self.data.test {
            Test::Absent => {}
            Test::File(test) => {
                data.test = Some(path(&test.file)?);
                data.test_agents = test.agents.as_ref().map(&mut *path).transpose()?;
            }
            Test::Split { share, seed } => {
                data.split = Some(*share);
                data.split_seed = Some(*seed);
            }
        }
        Ok(data)
    }

    fn graph_config(
        &self,
        path: &mut dyn FnMut(&InputFile) -> Result<String, Mistake>,
    ) -> Result<GraphConfig, Mistake> {
        let mut graph = GraphConfig { allow_isolated: Some(self.graph.allow_isolated), ..GraphConfig::default() };
        let kind = match &self.graph.source {
            GraphSource::Edges(edges) => {
                graph.edges = Some(path(edges)?);
                return Ok(graph);
            }
            GraphSource::Ring => "ring",
            GraphSource::Complete => "complete",
            GraphSource::Torus { rows, columns } => {
                graph.rows = Some(*rows);
                graph.columns = Some(*columns);
                "torus"
            }
            GraphSource::WattsStrogatz { neighbours, rewire, seed } => {
                graph.neighbours = Some(*neighbours);
                graph.rewire = Some(*rewire);
                graph.seed = Some(*seed);
                "watts-strogatz"
            }
            GraphSource::ErdosRenyi { probability, seed } => {
                graph.probability = Some(*probability);
                graph.seed = Some(*seed);
                "erdos-renyi"
            }
            GraphSource::Knn { neighbours } => {
                graph.neighbours = *neighbours;
                "knn"
            }
            GraphSource::Similarity { vectors, width, threshold } => {
                graph.vectors = Some(path(vectors)?);
                graph.width = Some(*width);
                graph.threshold = Some(match threshold {
                    Threshold::Above(least) => NumberOrWord::Number(*least),
                    Threshold::Connected => NumberOrWord::Word("connected".to_owned()),
                });
                "similarity"
            }
            GraphSource::Learned(learned) => {
                learned.write(&mut graph, path)?;
                "learned"
            }
        };
        graph.kind = Some(kind.to_owned());
        Ok(graph)
    }
}

fn render(config: &Config) -> String {
    toml::to_string(config).expect("a resolved task has finite numbers, text and tables only")
}

/// The SHA-256 of a file's bytes.
fn digest(path: &InputFile) -> Result<String, Mistake> {
    let unreadable = |error: &std::io::Error| Mistake::io(path, "read", error);
    let mut file = path.open().map_err(|error| unreadable(&error))?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => hash.update(&buffer[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(unreadable(&error)),
        }
    }
    let hex: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("sha256:{hex}"))
}

impl Privacy {
    /// The section of a task that measures a statistic.
    fn config_of_statistic(&self, algorithm: &Description) -> PrivacyConfig {
        let Description { by_pairs, in_hops, leaves, .. } = *algorithm;
        let masked = leaves == Leaves::MaskedSums;
        PrivacyConfig {
            epsilon: Some(self.epsilon),
            delta: Some(self.delta),
            mechanism: Some(self.mechanism),
            unit: Some(self.unit),
            colluders: (!masked).then_some(self.colluders),
            pairs: by_pairs.then_some(PairsConfig::Which(self.pairs)),
            contributions: self.contributions.filter(|_| in_hops),
            present: (in_hops || masked).then_some(self.present),
            honest: masked.then_some(self.honest),
            neighbours: self.neighbours.filter(|_| masked),
            accountant: Some(self.accountant),
            noise: Some(self.noise),
            ..PrivacyConfig::default()
        }
    }

    /// The section of a task whose agents learn by a token.
    fn config_of_token(&self, algorithm: &Description, has_edges: bool) -> PrivacyConfig {
        let config = self.config_of_statistic(algorithm);
        let pairs = config.pairs.filter(|_| has_edges);
        let trust = (algorithm.leaves != Leaves::MaskedSums).then_some(self.trust);
        PrivacyConfig { clip: Some(self.clip), trust, pairs, ..config }
    }

    /// The section of a task whose agents learn one model, by releases for everyone.
    fn config_of_one_model(&self) -> PrivacyConfig {
        PrivacyConfig {
            epsilon: Some(self.epsilon),
            delta: Some(self.delta),
            mechanism: Some(self.mechanism),
            clip: Some(self.clip),
            accountant: Some(self.accountant),
            noise: Some(self.noise),
            ..PrivacyConfig::default()
        }
    }

    /// The section as it is written, with every key explicit.
    fn config(&self, learned: bool) -> PrivacyConfig {
        PrivacyConfig {
            epsilon: Some(self.epsilon),
            delta: Some(self.delta),
            mechanism: Some(self.mechanism),
            clip: Some(self.clip),
            updates: Some(self.updates),
            schedule: Some(self.schedule),
            warm: self.warm.map(|Warm { epsilon, start }| WarmConfig {
                epsilon: Some(epsilon),
                regularization: Some(start.regularization),
                radius: Some(start.radius),
                trade_off: Some(start.trade_off),
                wakes: Some(start.wakes),
            }),
            losses: match self.losses {
                _ if !learned => None,
                None => Some(LossesConfig::Off(false)),
                Some(Losses { bound, share }) => {
                    Some(LossesConfig::On(LossConfig { bound: Some(bound), share: Some(share) }))
                }
            },
            home: match self.home {
                None => Some(HomeConfig::Off(false)),
                Some(Home::Automatic) => None,
                Some(Home::Tuned { scale, trade_off }) => {
                    Some(HomeConfig::Model(HomeModelConfig { scale: Some(scale), trade_off: Some(trade_off) }))
                }
            },
            accountant: Some(self.accountant),
            noise: Some(self.noise),
            // Their guarantees are for records, and against everyone.
            unit: None,
            colluders: None,
            pairs: None,
            contributions: None,
            present: None,
            honest: None,
            neighbours: None,
            masks: None,
            verify: None,
            trust: None,
        }
    }
}

impl Boosting {
    /// The section as it is written, with every key explicit.
    fn config(&self) -> BoostingConfig {
        BoostingConfig {
            predictors: Some(match self.predictors {
                Predictors::Stumps(count) => NumberOrWord::Integer(count.into()),
                Predictors::Columns => NumberOrWord::Word("columns".to_owned()),
            }),
            range: self.range,
            radius: Some(self.radius),
            step: Some(self.step),
            local_rounds: Some(self.local_rounds),
        }
    }
}

impl Statistic {
    /// The section as it is written, with every key explicit.
    fn config(&self) -> StatisticConfig {
        StatisticConfig {
            kind: Some(self.kind),
            columns: self.columns.clone(),
            range: self.range.map(|Bounds { low, high }| [low, high]),
            agents: self.agents,
            rows: self.rows.filter(|_| self.kind.is_of_pairs()),
            positives: self.positives.filter(|_| self.kind.has_label()),
            ties: self.kind.has_label().then_some(self.ties),
            bins: self.bins,
            consistent: (!self.is_consistent).then_some(false),
            bits: None,
            centres: (!self.centres.is_empty()).then(|| self.centres.clone()),
        }
    }
}

impl Learned {
    /// Writes the graph's keys.
    fn write(
        &self,
        graph: &mut GraphConfig,
        path: &mut dyn FnMut(&InputFile) -> Result<String, Mistake>,
    ) -> Result<(), Mistake> {
        graph.sample = Some(self.sample);
        graph.sparsity = Some(self.sparsity);
        graph.strength = Some(self.strength);
        graph.first_wakes = Some(self.turns.graph_first);
        graph.model_wakes = Some(self.turns.models);
        graph.graph_wakes = Some(self.turns.graph);
        graph.model_step = Some(self.model_step);
        graph.oracle = self.oracle.as_ref().map(&mut *path).transpose()?;
        graph.groups = self.groups.as_ref().map(path).transpose()?;
        Ok(())
    }
}
