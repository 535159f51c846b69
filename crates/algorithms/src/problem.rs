//! The personalized learning problem: whose data, which loss, which graph, which trade-off.

use crate::Loss;
use sottovoce_core::{Graph, PeerId};

/// The training points of all agents, in one piece: agent after agent, row after row.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    dimension: usize,
    offsets: Vec<usize>,
    features: Vec<f64>,
    labels: Vec<f64>,
}

impl Dataset {
    /// No agents yet.
    ///
    /// # Panics
    /// When `dimension` is zero.
    pub fn new(dimension: usize) -> Self {
        assert!(dimension > 0, "a model has at least one coordinate");
        Dataset { dimension, offsets: vec![0], features: Vec::new(), labels: Vec::new() }
    }

    /// Appends the points of the next agent, row after row.
    ///
    /// # Panics
    /// When there are not exactly `dimension` features for each label.
    pub fn push_agent(&mut self, features: &[f64], labels: &[f64]) {
        assert_eq!(features.len(), labels.len() * self.dimension, "one row of features for each label");
        self.features.extend_from_slice(features);
        self.labels.extend_from_slice(labels);
        self.offsets.push(self.labels.len());
    }

    /// Appends the rows of the next agent, row after row, whose labels are zero.
    ///
    /// # Panics
    /// When the last row is not whole.
    pub fn push_rows(&mut self, rows: &[f64]) {
        self.push_agent(rows, &vec![0.0; rows.len() / self.dimension]);
    }

    /// p.
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// n.
    pub fn agents(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Points in all.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether nobody has any point.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// m_i.
    pub fn size(&self, agent: PeerId) -> usize {
        self.offsets[agent.index() + 1] - self.offsets[agent.index()]
    }

    /// The largest m_i.
    pub fn largest(&self) -> usize {
        self.offsets.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap_or(0)
    }

    /// The points of one agent.
    #[inline]
    pub fn points(&self, agent: PeerId) -> Points<'_> {
        let (from, to) = (self.offsets[agent.index()], self.offsets[agent.index() + 1]);
        Points {
            dimension: self.dimension,
            features: &self.features[from * self.dimension..to * self.dimension],
            labels: &self.labels[from..to],
        }
    }
}

/// The points of one agent.
#[derive(Clone, Copy, Debug)]
pub struct Points<'d> {
    /// p.
    pub dimension: usize,
    /// x, row after row.
    pub features: &'d [f64],
    /// y.
    pub labels: &'d [f64],
}

impl<'d> Points<'d> {
    /// m_i.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether the agent has no data.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// All features, with zeros for every row that holds something else than finite numbers, if there is such a row. No file is read
    /// into one; but should one ever come, it must not show.
    pub fn mended(&self) -> Option<Box<[f64]>> {
        let is_finite = |row: &[f64]| row.iter().all(|value| value.is_finite());
        (!is_finite(self.features)).then(|| {
            let mut mended: Box<[f64]> = self.features.into();
            mended.chunks_exact_mut(self.dimension).filter(|row| !is_finite(row)).for_each(|row| row.fill(0.0));
            mended
        })
    }

    /// Each point: its features and its label.
    pub fn iter(&self) -> impl Iterator<Item = (&'d [f64], f64)> + use<'d> {
        self.features.chunks_exact(self.dimension).zip(self.labels.iter().copied())
    }
}

/// lambda_i.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Regularization {
    /// The same number for every agent.
    Constant(f64),
    /// 1 / m_i, the default of the papers.
    OneOverPoints,
}

/// The problem (O): min Q(Theta) = 1/2 sum_{i<j} W_ij |Theta_i - Theta_j|^2 + mu sum_i D_ii c_i L_i(Theta_i).
#[derive(Clone, Debug)]
pub struct Problem {
    /// Everyone's training points.
    pub data: Dataset,
    /// W.
    pub graph: Graph,
    /// l.
    pub loss: Loss,
    /// lambda_i.
    pub regularization: Regularization,
    /// mu > 0.
    pub trade_off: f64,
    /// The m at which confidence reaches one.
    pub points_max: f64,
}

impl Problem {
    /// What agent i alone knows: its points and the public facts about them.
    #[inline]
    pub fn shard(&self, agent: PeerId) -> Shard<'_> {
        let points = self.data.points(agent);
        let (regularization, confidence) = self.facts(points.len());
        Shard { points, loss: self.loss, regularization, confidence }
    }

    /// lambda_i and c_i of an agent with so many points.
    #[inline]
    pub fn facts(&self, points: usize) -> (f64, f64) {
        let m = points as f64;
        let regularization = match self.regularization {
            // Without data L_i is zero, whatever lambda: the agent's term is absent.
            _ if points == 0 => 0.0,
            Regularization::Constant(lambda) => lambda,
            Regularization::OneOverPoints => 1.0 / m,
        };
        let confidence = if points == 0 { 1.0 / (10.0 * self.points_max) } else { (m / self.points_max).min(1.0) };
        (regularization, confidence)
    }

    /// n.
    pub fn agents(&self) -> usize {
        self.graph.agents()
    }

    /// p.
    pub fn dimension(&self) -> usize {
        self.data.dimension()
    }
}

/// What one agent holds: its private points, and the public loss, lambda_i and c_i.
#[derive(Clone, Copy, Debug)]
pub struct Shard<'d> {
    /// The private points.
    pub points: Points<'d>,
    /// l.
    pub loss: Loss,
    /// lambda_i; zero without data.
    pub regularization: f64,
    /// c_i = min(1, m_i / points-max); 1 / (10 points-max) without data.
    pub confidence: f64,
}

impl Shard<'_> {
    /// The most bytes of a letter between agents with such data.
    pub fn letter_bytes_max(&self) -> usize {
        letter_bytes_max(self.points.dimension)
    }
}

/// The most bytes of a letter about models of this dimension: a head, and two vectors, or one with an index beside each number.
pub(crate) fn letter_bytes_max(dimension: usize) -> usize {
    64 + 16 * dimension
}
