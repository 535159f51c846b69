//! The six rows of the table: how models are learned from training points, and how many test points they get right.
//!
//! | row | one model | by |
//! |---|---|---|
//! | global, linear and boosted | for everyone, from all points as if they were one user's | Newton; Frank-Wolfe |
//! | local | for each user, from its own points | the same |
//! | personalized | for each user, together with a graph that is learned | coordinate descent by Newton steps; Frank-Wolfe |
//!
//! Differs from the paper:
//! - Linear models have the logistic loss, a mean over points, where the authors' code has the hinge: coordinate descent needs a smooth loss. It
//!   takes Newton steps: gradient steps over the features of `har`, which go together, need thousands of wakes.
//! - Features of `har` are standardized for linear models.
//! - The constant feature of linear models is a value to be chosen. The larger, the less a ridge and the differences between neighbours
//!   weigh on the intercept, which says how easily a user is pleased.
//! - Thresholds of stumps lie in the range of most numbers, not of all: a few far outliers would spread them over nothing.
//! - The weights of the graph are not rescaled: scaling all of them changes no step.

use super::split::Parts;
use super::users::Source;
use serde::{Deserialize, Serialize};
use sottovoce_algorithms::joint::{Joint, LogDegree};
use sottovoce_algorithms::kernel::dot;
use sottovoce_algorithms::personal::boosting::{FrankWolfe, FrankWolfeConfig, StepSize};
use sottovoce_algorithms::personal::descent::{BlockStep, DescentByLetters};
use sottovoce_algorithms::personal::graph::Learner;
use sottovoce_algorithms::personal::graph::{Alternating, Turns};
use sottovoce_algorithms::personal::graph::{GraphLearning, GraphLearningConfig};
use sottovoce_algorithms::reference::local::solitary_model;
use sottovoce_algorithms::{Dataset, Loss, Problem, Regularization, Shard, stumps::Stumps};
use sottovoce_core::{Algorithm, Graph, PeerId, Rows};
use sottovoce_sim::{Clock, Faults, Settings, Simulation};

/// Linear models, or boosted stumps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// By the logistic loss.
    Linear,
    /// By the loss of l1-AdaBoost.
    Boost,
}

/// Whose model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// One for everyone.
    Global,
    /// One for each user, alone.
    Local,
    /// One for each user, together.
    Personal,
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Row {
    /// Linear or boosted.
    pub family: Family,
    /// Whose model.
    pub scope: Scope,
}

impl Row {
    /// In the paper's order.
    pub const ALL: [Row; 6] = [
        Row { family: Family::Linear, scope: Scope::Global },
        Row { family: Family::Linear, scope: Scope::Local },
        Row { family: Family::Linear, scope: Scope::Personal },
        Row { family: Family::Boost, scope: Scope::Global },
        Row { family: Family::Boost, scope: Scope::Local },
        Row { family: Family::Boost, scope: Scope::Personal },
    ];

    /// As the paper writes it.
    pub fn name(self) -> &'static str {
        match (self.family, self.scope) {
            (Family::Linear, Scope::Global) => "Global-linear",
            (Family::Linear, Scope::Local) => "Local-linear",
            (Family::Linear, Scope::Personal) => "Perso-linear-learned",
            (Family::Boost, Scope::Global) => "Global-boost",
            (Family::Boost, Scope::Local) => "Local-boost",
            (Family::Boost, Scope::Personal) => "Perso-boost-learned",
        }
    }
}

/// What a row needs to be told; each row reads what it has.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Values {
    /// lambda of linear models.
    pub ridge: f64,
    /// The constant feature of linear models.
    pub constant: f64,
    /// beta of boosted ones.
    pub radius: f64,
    /// mu = 1 / lambda_1 of personalized ones.
    pub trade_off: f64,
    /// lambda_3 of the graph.
    pub sparsity: f64,
}

/// How personalized models and their graph take turns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Pace {
    /// kappa.
    pub sample: usize,
    /// Wakes per user on the first graph.
    pub first_wakes: u32,
    /// Wakes per user on models before the graph is refreshed.
    pub model_wakes: u32,
    /// Wakes per user on the graph each time.
    pub graph_wakes: u32,
    /// Turns of the models.
    pub turns: u32,
    /// Turns of the models while values are chosen.
    pub turns_in_folds: u32,
    /// Rounds of boosting alone and of all points as one.
    pub local_rounds: usize,
}

impl Pace {
    /// The pace while values are chosen.
    pub fn in_folds(self) -> Pace {
        Pace { turns: self.turns_in_folds, ..self }
    }

    fn spans(&self) -> Turns {
        let [graph_first, models, graph] = [self.first_wakes, self.model_wakes, self.graph_wakes].map(f64::from);
        Turns { graph_first, models, graph }
    }
}

/// The share of test points whose class a model says; a margin of zero counts as class 1. `model` is the row of a user's model.
pub fn accuracy(test: &Dataset, model: impl Fn(PeerId) -> usize, models: &Rows) -> f64 {
    let right = |id: PeerId| {
        let theta = models.row(model(id));
        test.points(id).iter().filter(|(x, y)| (dot(x, theta) >= 0.0) == (*y > 0.0)).count()
    };
    (0..test.agents() as u32).map(|id| right(PeerId(id))).sum::<usize>() as f64 / test.len() as f64
}

/// The points as a family sees them: what stumps say of them, or features.
pub fn prepared(source: Source, family: Family, parts: &Parts) -> Parts {
    match family {
        Family::Boost => {
            let [low, high] = range_of_most(&parts.train);
            let stumps = Stumps::grid(parts.train.dimension(), source.stumps(), low, high);
            Parts { train: stumps.apply(&parts.train), test: stumps.apply(&parts.test) }
        }
        Family::Linear if source == Source::Har => standardized(parts),
        Family::Linear => parts.clone(),
    }
}

/// The same points with each feature, but for those that are constant, brought to mean zero and deviation one over everyone's training points.
fn standardized(parts: &Parts) -> Parts {
    let train = pooled(&parts.train);
    let (points, p) = (train.points(PeerId(0)), train.dimension());
    let count = points.len() as f64;
    let (mut mean, mut deviation) = (vec![0.0; p], vec![0.0; p]);
    for (x, _) in points.iter() {
        mean.iter_mut().zip(x).for_each(|(mean, x)| *mean += x / count);
    }
    for (x, _) in points.iter() {
        deviation.iter_mut().zip(&mean).zip(x).for_each(|((sum, mean), x)| *sum += (x - mean) * (x - mean) / count);
    }
    for (deviation, mean) in deviation.iter_mut().zip(&mut mean) {
        *deviation = libm::sqrt(*deviation);
        if *deviation < CONSTANT_BELOW {
            (*mean, *deviation) = (0.0, 1.0);
        }
    }
    let scale = |data: &Dataset| {
        let mut scaled = Dataset::new(p);
        for points in (0..data.agents() as u32).map(|id| data.points(PeerId(id))) {
            let row = |x: &[f64]| -> Vec<f64> {
                x.iter().zip(&mean).zip(&deviation).map(|((x, mean), deviation)| (x - mean) / deviation).collect()
            };
            let features: Vec<f64> = points.features.chunks_exact(p).flat_map(row).collect();
            scaled.push_agent(&features, points.labels);
        }
        scaled
    };
    Parts { train: scale(&parts.train), test: scale(&parts.test) }
}

/// A feature that varies by less than this is a constant.
const CONSTANT_BELOW: f64 = 1e-9;

/// Numbers left out at each end of a range.
const OUTLYING: f64 = 0.02;

/// The range of all numbers but the largest and the smallest few.
fn range_of_most(train: &Dataset) -> [f64; 2] {
    let mut numbers: Vec<f64> = pooled(train).points(PeerId(0)).features.to_vec();
    let left_out = (OUTLYING * numbers.len() as f64) as usize;
    numbers.sort_unstable_by(f64::total_cmp);
    [numbers[left_out], numbers[numbers.len() - 1 - left_out]]
}

/// The points with another constant as their last feature.
pub fn with_constant(parts: &Parts, constant: f64) -> Parts {
    let set = |data: &Dataset| {
        let mut changed = Dataset::new(data.dimension());
        for points in (0..data.agents() as u32).map(|id| data.points(PeerId(id))) {
            let mut features = points.features.to_vec();
            features.chunks_exact_mut(points.dimension).for_each(|x| x[points.dimension - 1] = constant);
            changed.push_agent(&features, points.labels);
        }
        changed
    };
    Parts { train: set(&parts.train), test: set(&parts.test) }
}

/// The accuracy of a row with these values; `parts` are [`prepared`].
pub fn score(row: Row, parts: &Parts, values: &Values, pace: &Pace, seed: u64) -> f64 {
    let changed;
    let Parts { train, test } = match row.family {
        Family::Linear => {
            changed = with_constant(parts, values.constant);
            &changed
        }
        Family::Boost => parts,
    };
    match row.scope {
        Scope::Global => accuracy(test, |_| 0, &alone(row.family, &problem(&pooled(train), values), values, pace)),
        Scope::Local => accuracy(test, PeerId::index, &alone(row.family, &problem(train, values), values, pace)),
        Scope::Personal => accuracy(test, PeerId::index, &together(row.family, train, values, pace, seed, &mut |_| ())),
    }
}

/// All points as one user's.
fn pooled(train: &Dataset) -> Dataset {
    let mut data = Dataset::new(train.dimension());
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    for points in (0..train.agents() as u32).map(|id| train.points(PeerId(id))) {
        features.extend_from_slice(points.features);
        labels.extend_from_slice(points.labels);
    }
    data.push_agent(&features, &labels);
    data
}

fn problem(train: &Dataset, values: &Values) -> Problem {
    Problem {
        points_max: train.largest() as f64,
        data: train.clone(),
        graph: Graph::Complete { n: train.agents() as u32 },
        loss: Loss::Logistic,
        regularization: Regularization::Constant(values.ridge),
        trade_off: values.trade_off,
    }
}

fn frank_wolfe(problem: &Problem, values: &Values, pace: &Pace) -> FrankWolfe {
    let config = FrankWolfeConfig {
        predictors: problem.dimension(),
        trade_off: values.trade_off,
        radius: values.radius,
        step_size: StepSize::Descent,
        gap_min: 0.0,
        local_rounds: pace.local_rounds,
    };
    FrankWolfe::new(config).expect("values above zero")
}

/// Everyone's model, learned alone.
fn alone(family: Family, problem: &Problem, values: &Values, pace: &Pace) -> Rows {
    let mut models = Rows::zeros(problem.agents(), problem.dimension());
    for id in (0..problem.agents() as u32).map(PeerId) {
        let shard = problem.shard(id);
        let model = match family {
            Family::Linear => solitary_model(&shard),
            Family::Boost => {
                let learner = frank_wolfe(problem, values, pace);
                Learner::model(&learner, &learner.enter(shard)).to_vec()
            }
        };
        models.row_mut(id.index()).copy_from_slice(&model);
    }
    models
}

/// Where a personalized run is.
pub struct Moment<'a> {
    /// Bits of model updates so far, as the papers count them: 32 for each number of a linear model, and a step of boosting has
    /// ceil(log2 K) + 33; to each neighbour.
    pub update_bits: u64,
    /// Bits of all messages so far, as they are sent: with 64 bits for each number, and what is said about the graph.
    pub sent_bits: u64,
    /// Everyone's model.
    pub models: &'a dyn Fn() -> Rows,
}

/// Everyone's model, learned together with the graph. `watch` sees the run before and after every round of wakes on models.
pub fn together(
    family: Family,
    train: &Dataset,
    values: &Values,
    pace: &Pace,
    seed: u64,
    watch: &mut dyn FnMut(&Moment<'_>),
) -> Rows {
    let problem = problem(train, values);
    let regularizer = LogDegree { sparsity: values.sparsity, offset: LogDegree::OFFSET };
    let joint = Joint { trade_off: values.trade_off, strength: 1.0, regularizer };
    let graph = GraphLearning::new(GraphLearningConfig { joint, sample: pace.sample }).expect("values above zero");
    match family {
        Family::Linear => {
            let learner = DescentByLetters::new(problem.loss, values.trade_off).expect("a smooth loss");
            let learner = learner.with_step(BlockStep::Newton);
            let algorithm = Alternating::new(learner, graph, pace.spans()).expect("turns of some length");
            run(&algorithm, None, &problem, pace, seed, watch)
        }
        Family::Boost => {
            let learner = frank_wolfe(&problem, values, pace);
            let algorithm = Alternating::new(learner, graph, pace.spans()).expect("turns of some length");
            run(&algorithm, Some(|me| me.learner().bits().steps), &problem, pace, seed, watch)
        }
    }
}

/// Runs an algorithm through its turns. `steps` are the bits of a user's updates; without it they are vectors.
fn run<A: for<'d> Algorithm<Data<'d> = Shard<'d>>>(
    algorithm: &A,
    steps: Option<fn(&A::State) -> u64>,
    problem: &Problem,
    pace: &Pace,
    seed: u64,
    watch: &mut dyn FnMut(&Moment<'_>),
) -> Rows {
    // One thread: cells of the table are what is shared out.
    let settings = Settings { clock: Clock::Uniform, seed, threads: 1, tolerance: None, faults: Faults::default() };
    let mut simulation = Simulation::start(algorithm, &problem.graph, |id| problem.shard(id), &settings)
        .expect("without a plan nothing is refused");
    let users = problem.agents() as u64;
    let mut vectors = 0;
    for turn in 0..pace.turns {
        let graph_wakes = if turn == 0 { pace.first_wakes } else { pace.graph_wakes };
        simulation.advance(u64::from(graph_wakes) * users);
        for wake in 0..=pace.model_wakes {
            if wake > 0 {
                let before = simulation.counters().vectors_sent;
                simulation.advance(users);
                vectors += simulation.counters().vectors_sent - before;
            }
            let update_bits = match steps {
                Some(steps) => (0..users as u32).map(|id| steps(simulation.state(PeerId(id)))).sum(),
                None => vectors * problem.dimension() as u64 * 32,
            };
            let sent_bits = 8 * simulation.counters().bytes_sent;
            watch(&Moment { update_bits, sent_bits, models: &|| simulation.models() });
        }
    }
    simulation.models()
}

#[cfg(test)]
mod tests {
    use super::super::split::{Rule, Split};
    use super::super::testing::{neighbourly, quick_pace};
    use super::*;
    use sottovoce_algorithms::personal::boosting::step_bits;

    #[test]
    fn accuracy_counts_points_and_not_users() {
        let mut test = Dataset::new(1);
        test.push_agent(&[1.0], &[-1.0]);
        test.push_agent(&[1.0, -1.0, 0.0], &[1.0, -1.0, 1.0]);
        let mut models = Rows::zeros(2, 1);
        models.values_mut().copy_from_slice(&[1.0, 1.0]);
        assert_eq!(accuracy(&test, PeerId::index, &models), 0.75);
    }

    #[test]
    fn who_learns_together_beats_who_learns_alone_and_one_model_for_all() {
        let split = Split::new(&neighbourly(1, 20, 60), Rule::Share(0.15), 1);
        let values = |trade_off| Values { ridge: 0.01, constant: 1.0, radius: 10.0, trade_off, sparsity: 0.01 };
        for (family, trade_off) in [(Family::Linear, 30.0), (Family::Boost, 3.0)] {
            let parts = prepared(Source::Computer, family, &split.parts);
            let [global, local, personal] = [Scope::Global, Scope::Local, Scope::Personal]
                .map(|scope| score(Row { family, scope }, &parts, &values(trade_off), &quick_pace(), 1));
            assert!(personal > local && local > global + 0.1, "{family:?}: {global} {local} {personal}");
        }
    }

    #[test]
    fn bits_are_those_of_the_papers() {
        let split = Split::new(&neighbourly(2, 6, 60), Rule::Share(0.5), 1);
        let values = Values { ridge: 0.01, constant: 1.0, radius: 10.0, trade_off: 1.0, sparsity: 10.0 };
        for family in [Family::Linear, Family::Boost] {
            let train = prepared(Source::Computer, family, &split.parts).train;
            let (mut last, mut seen) = ((0, 0), 0);
            together(family, &train, &values, &quick_pace(), 1, &mut |moment| {
                assert!(
                    moment.update_bits >= last.0 && moment.sent_bits > last.1 || seen > 0 && moment.sent_bits >= last.1
                );
                last = (moment.update_bits, moment.sent_bits);
                seen += 1;
            });
            let each = match family {
                Family::Linear => 32 * 4,
                Family::Boost => step_bits(train.dimension()),
            };
            // 30 wakes of each of 6 users, each with 5 neighbours at most.
            let updates = last.0 / each;
            assert!(last.0 % each == 0 && updates > 30 * 6 && updates <= 30 * 6 * 5, "{family:?}: {updates}");
            assert_eq!(seen, 3 * 11);
        }
    }

    /// A buyer who is hard to please, and one who is not, with nothing else to tell points apart: a heavy ridge hides it, unless the constant is large.
    #[test]
    fn a_large_constant_makes_the_intercept_cheap() {
        let mut points = Dataset::new(2);
        points.push_agent(&[1.0, 1.0, 0.5, 1.0, 0.8, 1.0], &[1.0, 1.0, -1.0]);
        let parts = Parts { train: points.clone(), test: points };
        let model = |constant: f64| {
            let values = Values { ridge: 1.0, constant, radius: 1.0, trade_off: 1.0, sparsity: 1.0 };
            let Parts { train, .. } = with_constant(&parts, constant);
            assert_eq!(train.points(PeerId(0)).features, [1.0, constant, 0.5, constant, 0.8, constant]);
            let models = alone(Family::Linear, &problem(&train, &values), &values, &quick_pace());
            (models.row(0)[0], constant * models.row(0)[1])
        };
        let ((slope, intercept), (other_slope, other_intercept)) = (model(1.0), model(8.0));
        assert!(other_intercept > 2.0 * intercept && other_slope < slope, "{intercept} {other_intercept}");
    }

    #[test]
    fn a_few_outliers_move_no_threshold() {
        let mut points = Dataset::new(1);
        let numbers: Vec<f64> = (0..100).map(|k| f64::from(k) / 99.0).collect();
        points.push_agent(&numbers, &[1.0; 100]);
        let range = range_of_most(&points);
        assert!(range[0] > 0.01 && range[0] < 0.03 && range[1] > 0.97 && range[1] < 0.99, "{range:?}");
        let mut wild = numbers;
        (wild[0], wild[99]) = (-1e9, 1e9);
        let mut points = Dataset::new(1);
        points.push_agent(&wild, &[1.0; 100]);
        assert_eq!(range_of_most(&points), range);
    }

    #[test]
    fn standardized_features_have_mean_zero_and_deviation_one_and_constants_stay() {
        let split = Split::new(&neighbourly(3, 5, 40), Rule::Share(0.5), 1);
        let train = pooled(&prepared(Source::Har, Family::Linear, &split.parts).train);
        let rows: Vec<&[f64]> = train.points(PeerId(0)).iter().map(|(x, _)| x).collect();
        for feature in 0..4 {
            let mean = |power: i32| {
                rows.iter().map(|x| if power == 1 { x[feature] } else { x[feature] * x[feature] }).sum::<f64>()
                    / rows.len() as f64
            };
            let expected = if feature < 3 { (0.0, 1.0) } else { (1.0, 1.0) };
            assert!((mean(1) - expected.0).abs() < 1e-9 && (mean(2) - expected.1).abs() < 1e-9, "{feature}");
        }
    }
}
