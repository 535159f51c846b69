//! Boosting on turned moons (thesis, section 2.5): who works with whom is learned, and it pays.

use sottovoce_algorithms::{
    Dataset, Loss, Problem, Regularization, boosting,
    joint::{Joint, LogDegree},
    personal::{
        alternating::{Alternating, Turns},
        frank_wolfe::{FrankWolfe, FrankWolfeConfig, StepSize},
        graph_learning::{GraphLearning, GraphLearningConfig},
        learner::Learner,
    },
    stumps::Stumps,
};
use sottovoce_core::{Graph, PeerId, Rows};
use sottovoce_lab::generate::moons::{Moons, MoonsOptions, moons};
use sottovoce_lab::score::{mean_and_deviation, scores};
use sottovoce_sim::{Clock, Faults, Settings, Simulation};

const RADIUS: f64 = 10.0;

fn boosting_problem(task: &Moons, stumps: &Stumps, graph: Graph, trade_off: f64) -> Problem {
    Problem {
        data: stumps.apply(&task.train),
        graph,
        loss: Loss::Logistic,
        regularization: Regularization::Constant(0.0),
        trade_off,
        points_max: task.train.largest() as f64,
    }
}

fn frank_wolfe(problem: &Problem, step_size: StepSize, local_rounds: usize) -> FrankWolfe {
    let (predictors, trade_off) = (problem.dimension(), problem.trade_off);
    let config = FrankWolfeConfig { predictors, trade_off, radius: RADIUS, step_size, gap_min: 0.0, local_rounds };
    FrankWolfe::new(config).expect("good parameters")
}

fn accuracy(test: &Dataset, models: &Rows) -> f64 {
    mean_and_deviation(&scores(Loss::Logistic, test, models)).expect("test points").0
}

/// Models that agents learn alone.
fn alone(problem: &Problem) -> Rows {
    let learner = frank_wolfe(problem, StepSize::LocalClock, 1000);
    let mut models = Rows::zeros(problem.agents(), problem.dimension());
    for agent in (0..problem.agents() as u32).map(PeerId) {
        let state = learner.enter(problem.shard(agent));
        models.row_mut(agent.index()).copy_from_slice(Learner::model(&learner, &state));
    }
    models
}

fn settings(seed: u64) -> Settings {
    Settings { clock: Clock::Uniform, seed, threads: 1, tolerance: None, faults: Faults::default() }
}

/// Ranks, ties in order.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    order.iter().enumerate().for_each(|(rank, at)| ranks[*at] = rank as f64);
    ranks
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let mean = (a.len() as f64 - 1.0) / 2.0;
    let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    product(a, b) / (product(a, a) * product(b, b)).sqrt()
}

struct Outcome {
    local: f64,
    global: f64,
    learned: f64,
    oracle: f64,
    /// Mean learned weight within groups over mean weight between them.
    contrast: f64,
    /// Rank correlation of degree and c_u F_u.
    degree_and_cost: f64,
}

fn outcome(seed: u64) -> Outcome {
    let task = moons(&MoonsOptions { seed, ..MoonsOptions::default() });
    let n = task.train.agents();
    let stumps = Stumps::spanning(&task.train, 200);
    assert_eq!(stumps.count(), 210);
    let test = stumps.apply(&task.test);

    let everyone_alone = boosting_problem(&task, &stumps, Graph::Complete { n: n as u32 }, 1.0);
    let local = accuracy(&test, &alone(&everyone_alone));

    let (mut features, mut labels) = (Vec::new(), Vec::new());
    for agent in (0..n as u32).map(PeerId) {
        features.extend_from_slice(task.train.points(agent).features);
        labels.extend_from_slice(task.train.points(agent).labels);
    }
    let mut pooled = Moons { train: Dataset::new(task.train.dimension()), ..task.clone() };
    pooled.train.push_agent(&features, &labels);
    let one = alone(&boosting_problem(&pooled, &stumps, Graph::Complete { n: 1 }, 1.0));
    let mut all = Rows::zeros(n, one.row_len());
    (0..n).for_each(|u| all.row_mut(u).copy_from_slice(one.row(0)));
    let global = accuracy(&test, &all);

    let known = boosting_problem(&task, &stumps, task.oracle.clone(), 1.0);
    let algorithm = frank_wolfe(&known, StepSize::GlobalClock, 0);
    let mut run = Simulation::start(&algorithm, &known.graph, |agent| known.shard(agent), &settings(seed))
        .expect("an unlimited budget");
    run.advance(20_000);
    let oracle = accuracy(&test, &run.models());

    // lambda_1 = lambda_2 = 1, lambda_3 = 10, from the thesis' grid and tuned on two other seeds. Turns as in the authors'
    // code: 2000 wakes on models, 1000 on the graph, 10 peers at a time. With its lambda_1 = 0.1, lambda_2 = lambda_3 = 0.05
    // and a graph that is learned to the end, losses outweigh distances: seed 1 then has 0.828, and weights within groups are only
    // 1.7 times those between them.
    let joint = Joint {
        trade_off: everyone_alone.trade_off,
        strength: 1.0,
        regularizer: LogDegree { sparsity: 10.0, offset: LogDegree::OFFSET },
    };
    let graph = GraphLearning::new(GraphLearningConfig { joint, sample: 10 }).expect("good parameters");
    let learner = frank_wolfe(&everyone_alone, StepSize::LocalClock, 1000);
    let turns = Turns { graph_first: 20.0, models: 20.0, graph: 10.0 };
    let algorithm = Alternating::new(learner, graph, turns).expect("good turns");
    let data = |agent| everyone_alone.shard(agent);
    let mut run =
        Simulation::start(&algorithm, &everyone_alone.graph, data, &settings(seed)).expect("an unlimited budget");
    run.advance(100 * 320);
    let models = run.models();
    let learned = accuracy(&test, &models);
    let (mut within, mut between) = ((0.0, 0.0), (0.0, 0.0));
    let (mut degrees, mut costs) = (Vec::new(), Vec::new());
    for u in 0..n {
        let links = run.state(PeerId(u as u32)).links();
        for v in (0..n).filter(|v| *v != u) {
            let side = if task.groups[u] == task.groups[v] { &mut within } else { &mut between };
            *side = (side.0 + links.weight(PeerId(v as u32)), side.1 + 1.0);
        }
        let shard = everyone_alone.shard(PeerId(u as u32));
        degrees.push(links.degree());
        costs.push(shard.confidence * boosting::local_value(shard.points, models.row(u)));
    }
    let contrast = (within.0 / within.1) / (between.0 / between.1);
    let degree_and_cost = correlation(&ranks(&degrees), &ranks(&costs));
    Outcome { local, global, learned, oracle, contrast, degree_and_cost }
}

/// Spec 07, section 3: oracle >= learned > local and global; learned weights lie within groups; who is confident and has
/// a high loss has few neighbours.
#[test]
fn a_learned_graph_beats_learning_alone_and_learning_as_one() {
    for seed in 1..=3 {
        let Outcome { local, global, learned, oracle, contrast, degree_and_cost } = outcome(seed);
        println!(
            "seed {seed}: local {local:.4}, global {global:.4}, learned {learned:.4}, oracle {oracle:.4}; \
             within/between {contrast:.1}; degree and cost {degree_and_cost:.2}"
        );
        assert!(oracle >= learned && learned > local && learned > global);
        assert!(contrast > 5.0, "{contrast}");
        assert!(degree_and_cost < 0.0, "{degree_and_cost}");
    }
}
