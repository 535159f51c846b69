//! Boosting on turned moons (thesis, section 2.5), from a generated task to figures: who works with whom is learned, and it pays.

use sottovoce_core::PeerId;
use sottovoce_run::baselines::baselines;
use sottovoce_run::learned::{losses, within_and_between};
use sottovoce_run::score::mean_and_deviation;
use sottovoce_run::train::{Trained, train};
use sottovoce_task::generate::moons::{MoonsOptions, write};
use sottovoce_task::load::load;
use sottovoce_task::task::Task;
use std::ops::ControlFlow;

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
    /// Local, global, learned, oracle: the mean accuracies of boosting.
    accuracies: [f64; 4],
    /// Mean learned weight within groups over mean weight between them.
    contrast: f64,
    /// Rank correlation of degree and c_u F_u.
    degree_and_cost: f64,
}

fn outcome(seed: u64) -> Outcome {
    let place = tempfile::tempdir().expect("a folder");
    let out = place.path().join("moons");
    let made = write(&MoonsOptions { seed, ..MoonsOptions::default() }, &out, false).expect("written");
    let loaded = load(&Task::read(&out.join("task.toml")).expect("a task")).expect("loaded");
    assert_eq!((loaded.problem.dimension(), loaded.problem.agents()), (210, 100));
    assert_eq!(loaded.known.oracle.as_ref(), Some(&made.oracle));
    let groups = &loaded.known.groups.as_ref().expect("groups").of;
    assert!(groups.iter().zip(&made.groups).all(|(read, written)| *read as usize == *written));

    let run = train(&loaded, loaded.task.algorithm, 1, &mut |_| ControlFlow::Continue(())).expect("a run");
    let beside = baselines(&loaded, 1, true, &mut |_, _| ControlFlow::Continue(())).expect("runs");
    let accuracy = |run: &Trained| mean_and_deviation(&run.scores).expect("test points").0;
    let of = |name: &str| accuracy(beside.runs.iter().find(|run| run.name == name).expect(name));
    let graph = run.graph.as_ref().expect("a learned graph");
    let (within, between) = within_and_between(graph, groups).expect("groups");
    let ids = || (0..100).map(PeerId);
    let degrees: Vec<f64> = ids().map(|id| graph.peers(id).weighted_degree()).collect();
    let confidences = ids().map(|id| loaded.problem.shard(id).confidence);
    let costs: Vec<f64> = confidences.zip(losses(&loaded, &run.models)).map(|(c, f)| c * f).collect();
    Outcome {
        accuracies: [of("local boosting"), of("global boosting"), accuracy(&run), of("boosting, oracle graph")],
        contrast: within / between,
        degree_and_cost: correlation(&ranks(&degrees), &ranks(&costs)),
    }
}

/// Spec 07, section 3: oracle >= learned > local and global in mean accuracy; learned weights lie within groups; who is confident
/// and has a high loss has few neighbours.
#[test]
fn a_learned_graph_beats_learning_alone_and_learning_as_one() {
    let mut means = [0.0; 4];
    for seed in 1..=5 {
        let Outcome { accuracies, contrast, degree_and_cost } = outcome(seed);
        println!(
            "seed {seed}: local, global, learned, oracle {accuracies:.4?}; within/between {contrast:.1}; degree and cost \
             {degree_and_cost:.2}"
        );
        assert!(contrast > 5.0, "{contrast}");
        assert!(degree_and_cost < 0.0, "{degree_and_cost}");
        means.iter_mut().zip(accuracies).for_each(|(mean, accuracy)| *mean += accuracy / 5.0);
    }
    let [local, global, learned, oracle] = means;
    println!("mean: local {local:.4}, global {global:.4}, learned {learned:.4}, oracle {oracle:.4}");
    assert!(oracle >= learned && learned > local && learned > global, "{means:?}");
}
