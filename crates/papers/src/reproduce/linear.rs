//! Instances of the synthetic linear task (Bellet et al. 2018, section 5.1), and what algorithms make of them.

use sottovoce_algorithms::personal::descent::{CoordinateDescent, CoordinateDescentConfig, Start};
use sottovoce_algorithms::reference::local::solitary_model;
use sottovoce_algorithms::{Dataset, Loss, Problem, Regularization, Shard, objective};
use sottovoce_core::{PeerId, Rows};
use sottovoce_privacy::sensitivity::Norm;
use sottovoce_run::score::scores;
use sottovoce_sim::{Clock, Faults, Settings, Simulation};
use sottovoce_task::generate::{LinearOptions, linear};
use sottovoce_task::task::Normalize;

/// How large instances are.
#[derive(Clone, Copy, Debug, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Size {
    /// n.
    pub agents: usize,
    /// Test points of each agent.
    pub test_points: usize,
    /// Points are uniform in [-s, s]^p.
    pub half_width: f64,
}

/// What L_i is, and so what the trade-off multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reading {
    /// The mean of the losses, as equation (1) of the paper says.
    Mean,
    /// Their sum, which is what the paper's trade-off of 0.04 fits. Its lambda_i = 1/m_i is then added to a sum.
    Sum,
}

/// One random instance.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Training points as scaled, the graph, the objective.
    pub problem: Problem,
    /// Test points. Accuracy is the same whatever they are multiplied by, so they are as they were drawn.
    pub test: Dataset,
    /// Decides the schedule and the noise of runs on this instance.
    pub seed: u64,
    /// What L_i is.
    pub reading: Reading,
}

impl Instance {
    /// Draws an instance; x is multiplied by the half width and then brought into the unit ball of a norm, or not.
    pub fn new(size: Size, dimension: usize, seed: u64, normalize: Normalize, loss: Loss) -> Self {
        let options = LinearOptions {
            agents: size.agents,
            dimension,
            seed,
            test_points: size.test_points,
            ..LinearOptions::default()
        };
        let made = linear(&options).expect("the TOML files of the figures are tested");
        let norm = match normalize {
            Normalize::None => None,
            Normalize::L1 => Some(Norm::L1),
            Normalize::L2 => Some(Norm::L2),
        };
        let mut data = Dataset::new(dimension);
        for agent in 0..size.agents as u32 {
            let points = made.train.points(PeerId(agent));
            let mut features = points.features.to_vec();
            for row in features.chunks_exact_mut(dimension) {
                let length = norm.map_or(1.0, |norm| (size.half_width * norm.of(row)).max(1.0));
                row.iter_mut().for_each(|x| *x *= size.half_width / length);
            }
            data.push_agent(&features, points.labels);
        }
        let points_max = data.largest() as f64;
        let regularization = Regularization::OneOverPoints;
        let problem = Problem { data, graph: made.graph, loss, regularization, trade_off: 1.0, points_max };
        Instance { problem, test: made.test, seed, reading: Reading::Mean }
    }

    /// What an agent holds. A sum of losses is m_i times their mean with a regularizer of 1/m_i^2.
    pub fn shard(&self, id: PeerId) -> Shard<'_> {
        let shard = self.problem.shard(id);
        let m = shard.points.len() as f64;
        match self.reading {
            Reading::Mean => shard,
            Reading::Sum => {
                Shard { confidence: m * shard.confidence, regularization: shard.regularization / m, ..shard }
            }
        }
    }

    /// Everyone alone.
    pub fn local(&self) -> Rows {
        let mut models = Rows::zeros(self.problem.agents(), self.problem.dimension());
        for id in 0..self.problem.agents() {
            models.row_mut(id).copy_from_slice(&solitary_model(&self.shard(PeerId(id as u32))));
        }
        models
    }

    /// The mean accuracy of models on their agents' test points.
    pub fn accuracy(&self, models: &Rows) -> f64 {
        let scores = self.accuracies(models);
        scores.iter().sum::<f64>() / scores.len() as f64
    }

    /// Each agent's accuracy.
    pub fn accuracies(&self, models: &Rows) -> Vec<f64> {
        scores(self.problem.loss, &self.test, models).into_iter().flatten().collect()
    }

    /// Q, with this trade-off.
    pub fn objective(&self, models: &Rows) -> f64 {
        let graph = &self.problem.graph;
        let edges = graph.edges().map(|(a, b, weight)| {
            let pairs = models.row(a.index()).iter().zip(models.row(b.index()));
            0.5 * weight * pairs.map(|(x, y)| (x - y) * (x - y)).sum::<f64>()
        });
        let losses = (0..self.problem.agents() as u32).map(PeerId).map(|id| {
            let shard = self.shard(id);
            let weight = self.problem.trade_off * graph.peers(id).weighted_degree() * shard.confidence;
            weight * objective::local_value(&shard, models.row(id.index()))
        });
        edges.sum::<f64>() + losses.sum::<f64>()
    }

    /// The same instance with another trade-off.
    pub fn with_trade_off(&self, trade_off: f64) -> Self {
        let mut other = self.clone();
        other.problem.trade_off = trade_off;
        other
    }

    /// Coordinate descent from local models, without privacy.
    pub fn descend(&self, wakes_per_agent: u64) -> Rows {
        let algorithm = self.descent();
        let mut run = Simulation::start(&algorithm, &self.problem.graph, |id| self.shard(id), &self.settings())
            .expect("an unlimited budget");
        run.advance(wakes_per_agent * self.problem.agents() as u64);
        run.models()
    }

    /// Coordinate descent from local models.
    pub fn descent(&self) -> CoordinateDescent {
        let Problem { loss, trade_off, .. } = self.problem;
        let config =
            CoordinateDescentConfig { dimension: self.problem.dimension(), loss, trade_off, start: Start::Local };
        CoordinateDescent::new(config).expect("the TOML files of the figures are tested")
    }

    /// How the simulator runs this instance.
    pub fn settings(&self) -> Settings {
        let faults = Faults::default();
        Settings { clock: Clock::Uniform, seed: self.seed, threads: 1, tolerance: None, faults }
    }
}
