//! Private tasks whose graph is learned: what their agents release, and what comes of it.

use sottovoce_core::Graph;
use sottovoce_privacy::{Charge, Event, Ledger};
use sottovoce_run::baselines::baselines;
use sottovoce_run::outlook::outlook;
use sottovoce_run::score::mean_and_deviation;
use sottovoce_run::sweep::sweep;
use sottovoce_run::train::{Trained, train};
use sottovoce_run::{artefacts, ledger_file, run_folder};
use sottovoce_task::algorithms::{coordinate_descent, local};
use sottovoce_task::folder::Folder;
use sottovoce_task::generate::{LinearOptions, write};
use sottovoce_task::load::{Loaded, load};
use sottovoce_task::plan;
use sottovoce_task::task::{GraphSource, Task};
use std::ops::ControlFlow;
use std::sync::Arc;
use tempfile::TempDir;

/// A synthetic linear task, its graph to be learned.
fn task(agents: usize, dimension: usize, seed: u64, graph: &str, rest: &str) -> Loaded {
    task_in(&tempfile::tempdir().expect("a folder"), agents, dimension, seed, graph, rest)
}

/// The same, in a folder that stays.
fn task_in(folder: &TempDir, agents: usize, dimension: usize, seed: u64, graph: &str, rest: &str) -> Loaded {
    let out = folder.path().join("task");
    write(&LinearOptions { agents, dimension, seed, ..LinearOptions::default() }, &out, false).expect("written");
    let delta = libm::exp(-5.0);
    let text = format!(
        "algorithm = \"coordinate-descent\"\n[data]\ntrain = \"train.csv\"\ntest = \"test.csv\"\nnormalize = \"l2\"\n\
         [graph]\nkind = \"learned\"\noracle = \"edges.csv\"\n{graph}\n[privacy]\ndelta = {delta}\n{rest}\n[run]\nseed = {seed}\n"
    );
    let task = Task::parse(&text, &out.join("learned.toml")).unwrap_or_else(|mistake| panic!("{mistake}"));
    load(&task).unwrap_or_else(|mistake| panic!("{mistake}"))
}

fn run(loaded: &Loaded, threads: usize) -> Trained {
    train(loaded, &coordinate_descent::DESCRIPTION, threads, &mut |_| ControlFlow::Continue(())).expect("a run")
}

/// What was charged, sensitivities and the order of the two lists left aside.
fn charges(ledger: &Ledger) -> Vec<(String, u64)> {
    let mut bare: Vec<(String, u64)> = Vec::new();
    for Charge { event, count, .. } in ledger.charges() {
        let event = format!("{event:?}");
        match bare.iter_mut().find(|(known, _)| *known == event) {
            Some((_, total)) => *total += count,
            None => bare.push((event, *count)),
        }
    }
    bare.sort();
    bare
}

/// A peer that comes back finds by its ledger how many of each it has released.
#[test]
fn losses_never_have_the_very_noise_of_updates() {
    // The losses' share of nine updates is what one update has.
    for mechanism in ["gaussian", "laplace"] {
        let rest = format!("epsilon = 2\nupdates = 9\nlosses = {{ share = 0.1 }}\nmechanism = \"{mechanism}\"");
        let loaded = task(4, 3, 1, "", &rest);
        let plan = loaded.plan.as_ref().expect("a plan");
        assert_eq!((plan.steps().len(), plan.asides().len()), (9, 1), "one turn of the graph");
        assert!(plan.steps().iter().all(|step| *step != plan.asides()[0]), "{:?}", plan.asides());
    }
}

/// CHECK 02.i: the ledger of every agent is the plan, event by event, and its cost is the budget by the task's own accountant; with
/// losses and without, with either noise, one refresh of the graph or three, and a warm start.
#[test]
fn at_the_end_the_ledger_is_the_plan() {
    let warm = "epsilon = 2\nupdates = 2\nwarm = { epsilon = 0.4, wakes = 3 }\n[model]\nstart = \"warm\"";
    for (rest, wakes, losses) in [
        ("epsilon = 1\nupdates = 2", None, 1),
        ("epsilon = 1\nupdates = 4\nmechanism = \"laplace\"\nlosses = { bound = 1, share = 0.3 }", None, 1),
        ("epsilon = 1\nupdates = 5", Some(20 + 30 * 3 + 20 * 3 + 30), 3),
        ("epsilon = 1\nupdates = 2\nlosses = false", None, 0),
        (warm, None, 1),
    ] {
        let graph = if wakes.is_some() { "model-wakes = 30\ngraph-wakes = 20" } else { "" };
        let run_section = wakes.map_or(String::new(), |wakes| format!("wakes-per-agent = {wakes}"));
        let mut loaded = task(16, 4, 3, graph, rest);
        if let Some(wakes) = wakes {
            loaded.task.run.wakes_per_agent = wakes;
            let privacy = loaded.task.privacy.expect("private");
            loaded.plan = Some(Arc::new(plan::plan(&loaded.task, &privacy, &loaded.problem).expect("a plan")));
        }
        let (plan, privacy) = (loaded.plan.clone().expect("a plan"), loaded.task.privacy.expect("private"));
        assert_eq!(plan.asides().len(), losses, "{rest} {run_section}");
        let trained = run(&loaded, 1);
        for (name, ledger) in loaded.names.iter().zip(&trained.ledgers) {
            assert_eq!(charges(ledger), charges(&plan.ledger()), "{rest}: agent {name}");
            let epsilon = privacy.accountant.accountant().epsilon(ledger, privacy.delta);
            assert!(epsilon <= privacy.epsilon && epsilon > 0.99 * privacy.epsilon, "{rest}: {epsilon}");
        }
        assert!(trained.graph.is_some_and(|graph| graph.edge_count() > 0));
        let outlook = outlook(&loaded).expect("a private task");
        assert_eq!(outlook.losses.iter().map(|release| release.count).sum::<u64>(), losses as u64);
        assert!(outlook.clearness.is_none(), "nobody knows yet who will hear whom");
        assert_eq!(outlook.plan_in_words().contains("Its loss it releases"), losses > 0);
    }
}

/// The share of the losses is of mu^2 for Gaussian noise, and of epsilon for Laplace noise.
#[test]
fn losses_have_their_share_of_the_budget() {
    for (mechanism, power) in [("gaussian", 2), ("laplace", 1)] {
        for share in [0.05, 0.5, 0.9] {
            let rest = format!(
                "epsilon = 1\nupdates = 7\nmechanism = \"{mechanism}\"\naccountant = \"sum\"\nlosses = {{ share = {share} }}"
            );
            let rest = if power == 2 { rest.replace("\"sum\"", "\"tight\"") } else { rest };
            let plan = task(8, 3, 1, "", &rest).plan.expect("a plan");
            let spent = |events: &[Event]| -> f64 {
                let of = |event: &Event| match *event {
                    Event::Gaussian { noise_multiplier } | Event::Laplace { noise_multiplier } => {
                        1.0 / noise_multiplier
                    }
                    other => panic!("{other:?}"),
                };
                events.iter().map(|event| of(event).powi(power)).sum()
            };
            let (updates, losses) = (spent(plan.steps()), spent(plan.asides()));
            assert!((losses / (losses + updates) - share).abs() < 1e-9, "{mechanism} {share}: {updates} {losses}");
        }
    }
}

/// Same seed, same result: models, graph, ledgers and home models, whatever the number of threads.
#[test]
fn threads_do_not_change_a_bit() {
    let loaded = task(24, 4, 5, "sample = 5", "epsilon = 2\nupdates = 2");
    let [one, four] = [1, 4].map(|threads| run(&loaded, threads));
    assert_eq!(one.models.values(), four.models.values());
    assert_eq!(one.home.expect("home").models.values(), four.home.expect("home").models.values());
    assert_eq!((one.ledgers, one.counters.bytes_sent), (four.ledgers, four.counters.bytes_sent));
    let edges = |graph: Option<Graph>| graph.expect("a graph").edges().collect::<Vec<_>>();
    assert_eq!(edges(one.graph), edges(four.graph));
}

/// The first graph is learned before anyone has looked at any data: it is the same for all data of the same sizes.
#[test]
fn the_first_graph_does_not_depend_on_data() {
    let mut loaded = task(12, 3, 2, "", "epsilon = 1");
    let GraphSource::Learned(learned) = &loaded.task.graph.source else { panic!("a learned graph") };
    // The first graph, and most of a turn of the models, in which weights rest.
    loaded.task.run.wakes_per_agent = (learned.turns.graph_first + learned.turns.models) as u64 - 1;
    let edges = |loaded: &Loaded| run(loaded, 1).graph.expect("a graph").edges().collect::<Vec<_>>();
    let before = edges(&loaded);
    let mut data = sottovoce_algorithms::Dataset::new(3);
    for id in 0..12 {
        let points = loaded.problem.data.points(sottovoce_core::PeerId(id));
        let other: Vec<f64> = points.features.iter().map(|x| 0.5 - x).collect();
        data.push_agent(&other, &points.labels.iter().map(|y| -y).collect::<Vec<_>>());
    }
    loaded.problem.data = data;
    assert_eq!(before, edges(&loaded));
    assert!(before.len() > 12);
}

fn mean(scores: &[Option<f64>]) -> f64 {
    mean_and_deviation(scores).expect("test points").0
}

/// The share of the learned weight that lies on pairs of the oracle's graph.
fn on_oracle(graph: &Graph, oracle: &Graph) -> f64 {
    let known: std::collections::HashSet<_> = oracle.edges().map(|(a, b, _)| (a, b)).collect();
    let total: f64 = graph.edges().map(|(.., weight)| weight).sum();
    graph.edges().filter(|(a, b, _)| known.contains(&(*a, *b))).map(|(.., weight)| weight).sum::<f64>() / total
}

/// Accuracies of one instance: local; home models over the oracle's graph with the whole budget for updates; home models over the
/// learned graph, and what is broadcast over it; and the share of learned weight on pairs of the oracle's graph, against their
/// share of all pairs.
fn accuracies(loaded: &Loaded) -> [f64; 6] {
    let oracle = loaded.known.oracle.as_ref().expect("an oracle");
    let local = train(loaded, &local::DESCRIPTION, 1, &mut |_| ControlFlow::Continue(())).expect("a run");
    let mut informed = loaded.clone();
    informed.problem.graph = oracle.clone();
    informed.task.graph.source = GraphSource::Complete;
    let privacy = informed.task.privacy.expect("private");
    informed.plan = Some(Arc::new(plan::plan(&informed.task, &privacy, &informed.problem).expect("a plan")));
    let [known, learned] = [&informed, loaded].map(|loaded| run(loaded, 1));
    let graph = learned.graph.as_ref().expect("a graph");
    let n = loaded.problem.agents() as f64;
    [
        mean(&local.scores),
        mean(&known.home.as_ref().expect("home").scores),
        mean(&learned.home.as_ref().expect("home").scores),
        mean(&learned.scores),
        on_oracle(graph, oracle),
        oracle.edge_count() as f64 / (n * (n - 1.0) / 2.0),
    ]
}

fn averages(seeds: std::ops::RangeInclusive<u64>, dimension: usize, graph: &str, rest: &str) -> [f64; 6] {
    let count = seeds.clone().count() as f64;
    let mut sums = [0.0; 6];
    for seed in seeds {
        let found = accuracies(&task(100, dimension, seed, graph, rest));
        sums.iter_mut().zip(found).for_each(|(sum, found)| *sum += found / count);
    }
    sums
}

/// The table of `docs/privacy.md`.
#[test]
#[ignore = "the table for the record; `cargo xtask soak` makes it"]
fn learned_graphs_by_budget_and_losses() {
    let seeds = std::env::var("SOTTOVOCE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(5u64);
    println!(
        "| p | epsilon | losses | local | oracle graph | learned graph | broadcast | weight on its pairs | pairs |"
    );
    for dimension in [5, 20] {
        for epsilon in [1.05, 3.0, 10.0] {
            for losses in ["{ share = 0.1 }", "false"] {
                let rest = format!("epsilon = {epsilon}\nupdates = 1\nlosses = {losses}");
                let [local, known, learned, sent, on, pairs] = averages(1..=seeds, dimension, "", &rest);
                println!(
                    "| {dimension} | {epsilon} | {losses} | {local:.3} | {known:.3} | {learned:.3} | {sent:.3} | {on:.2} | {pairs:.2} |"
                );
            }
        }
    }
}

/// With little noise the learned graph lies where the oracle's does, far more than by chance, and home models over it gain; they do not
/// come up to those over the oracle's graph. With much noise little is lost.
#[test]
fn a_learned_graph_helps_where_the_noise_is_low_and_harms_little_where_it_is_not() {
    let found = |epsilon: f64| averages(1..=2, 20, "", &format!("epsilon = {epsilon}\nlosses = false"));
    let [local, known, learned, _, on, pairs] = found(10.0);
    println!(
        "epsilon 10: local {local:.3}, oracle {known:.3}, learned {learned:.3}, weight {on:.2} on {pairs:.2} of pairs"
    );
    assert!(learned > local + 0.01 && on > 2.0 * pairs, "{local} {learned} {on} {pairs}");
    let [local, known, learned, _, on, pairs] = found(1.05);
    println!(
        "epsilon 1.05: local {local:.3}, oracle {known:.3}, learned {learned:.3}, weight {on:.2} on {pairs:.2} of pairs"
    );
    assert!(learned > local - 0.02 && on > pairs, "{local} {learned} {on} {pairs}");
}

/// What `train` does with such a task: comparisons, other budgets, and a run directory whose ledger says what was spent.
#[test]
fn a_run_has_its_comparisons_its_sweep_and_its_directory() {
    let place = tempfile::tempdir().expect("a folder");
    let loaded = task_in(&place, 12, 3, 4, "sample = 4", "epsilon = 2\nupdates = 2");
    let trained = run(&loaded, 1);
    let beside = baselines(&loaded, 1, true, &mut |_, _| ControlFlow::Continue(())).expect("baselines");
    let names: Vec<_> = beside.runs.iter().map(|run| &run.name[..]).collect();
    assert_eq!(names, ["local linear", "global linear", "home models, linear, oracle graph"]);
    // Over a graph that is known the whole budget is for updates, and it is a budget all the same.
    let privacy = loaded.task.privacy.expect("private");
    for ledger in &beside.runs[2].ledgers {
        let epsilon = privacy.accountant.accountant().epsilon(ledger, privacy.delta);
        assert!(epsilon <= privacy.epsilon && ledger.releases() <= privacy.updates, "{epsilon}");
    }
    let swept = sweep(&loaded, &trained, 1, &mut |_, _| ControlFlow::Continue(())).expect("a sweep");
    assert!(swept.epsilons.len() > 3 && swept.updates.is_empty(), "{swept:?}");
    let folder =
        Folder::begin(&place.path().join("run"), true, &artefacts::names(artefacts::Command::Train)).expect("a folder");
    let runs: Vec<_> = beside.runs.iter().chain([&trained]).collect();
    let summary = run_folder::write(&folder, &loaded, &runs, vec!["again".to_owned()], Some(swept)).expect("written");
    folder.finish().expect("in its place");
    assert!(summary.accounting.is_some() && summary.models().is_some_and(|figures| figures.learned_graph().is_some()));
    let written = ledger_file::read(&place.path().join("run/ledger.jsonl")).expect("a ledger");
    assert!(
        written.iter().all(|(_, ledger)| charges(ledger) == charges(&loaded.plan.as_ref().expect("a plan").ledger()))
    );
}
