//! Tasks that boost or learn their graph, as their users see them.

use sottovoce_algorithms::personal::boosting::step_bits;
use sottovoce_algorithms::{boosting, reference};
use sottovoce_core::PeerId;
use sottovoce_run::baselines::baselines;
use sottovoce_run::train::{Trained, train};
use sottovoce_run::{artefacts, learned, run_folder};
use sottovoce_task::algorithms::{frank_wolfe, joint};
use sottovoce_task::folder::Folder;
use sottovoce_task::generate::{self, LinearOptions};
use sottovoce_task::load::{Loaded, load};
use sottovoce_task::task::Task;
use std::ops::ControlFlow;
use tempfile::TempDir;

/// A synthetic linear task of a few agents, and a place for more tasks over the same files.
fn place() -> TempDir {
    let place = tempfile::tempdir().expect("a folder");
    let options = LinearOptions { agents: 12, dimension: 4, seed: 3, test_points: 20, ..LinearOptions::default() };
    generate::write(&options, &place.path().join("data"), false).expect("written");
    place
}

const DATA: &str = "[data]\ntrain = \"train.csv\"\ntest = \"test.csv\"\n";

fn with(place: &TempDir, text: &str) -> Loaded {
    let file = place.path().join("data/other.toml");
    std::fs::write(&file, text).expect("written");
    load(&Task::read(&file).expect("a task")).expect("loaded")
}

fn run(loaded: &Loaded) -> Trained {
    run_on(loaded, 1)
}

fn run_on(loaded: &Loaded, threads: usize) -> Trained {
    train(loaded, loaded.task.algorithm, threads, &mut |_| ControlFlow::Continue(())).expect("a run")
}

fn write(place: &TempDir, name: &str, loaded: &Loaded, runs: &[&Trained]) -> run_folder::Summary {
    let folder =
        Folder::begin(&place.path().join(name), true, &artefacts::names(artefacts::Command::Train)).expect("a folder");
    let summary = run_folder::write(&folder, loaded, runs, vec!["again".to_owned()], None).expect("written");
    folder.finish().expect("in its place");
    summary
}

fn boosting_task(rest: &str) -> String {
    format!(
        "algorithm = \"frank-wolfe\"\n{DATA}[graph]\nedges = \"edges.csv\"\n[boosting]\npredictors = 24\nradius = 2.0\n{rest}"
    )
}

/// The objective of the run is that of boosting; it is above the minimum by at most the gap, which is at most the tolerance.
#[test]
fn a_tolerance_is_a_bound_on_the_distance_from_the_minimum() {
    let place = place();
    let mut least = None;
    for step in ["descent", "local-clock", "global-clock"] {
        let tolerance = if step == "descent" { 1e-3 } else { 5.0 };
        let loaded = with(&place, &boosting_task(&format!("step = \"{step}\"\n[run]\ntolerance = {tolerance}\n")));
        let run = run(&loaded);
        assert!(run.quiet, "{step}");
        let problem = &loaded.problem;
        let objective = run.samples.last().and_then(|sample| sample.objective).expect("an objective");
        assert_eq!(objective, boosting::value(problem, &run.models));
        let minimum =
            *least.get_or_insert_with(|| boosting::value(problem, &reference::boosting::minimum(problem, 2.0, 1e-4)));
        let gap = run.gap.expect("a gap");
        assert!(objective - minimum <= gap && gap <= tolerance, "{step}: {objective} {minimum} {gap}");
        let summary = write(&place, "run", &loaded, &[&run]);
        let figures = summary.models().expect("models");
        assert_eq!((figures.duality_gap(), figures.objective), (Some(gap), Some(objective)));
    }
}

/// CHECK 01.p through a task: as many bits as steps have readers, and in bytes on the wire what these letters take.
#[test]
fn bits_are_those_of_sparse_steps() {
    let place = place();
    let loaded = with(&place, &boosting_task("[run]\nwakes-per-agent = 30\n"));
    assert_eq!(loaded.problem.dimension(), 24);
    let run = run(&loaded);
    let bits = run.bits.expect("bits");
    let each = step_bits(24);
    assert_eq!((each, bits.steps % each, bits.models), (5 + 1 + 32, 0, 0));
    // Kind and version, and 38 bits in five bytes.
    assert_eq!(run.counters.bytes_sent, bits.steps / each * (1 + 4 + 5));
    let readers: u64 = (0..12).map(|id| loaded.problem.graph.peers(PeerId(id)).len() as u64).sum();
    let expected = 30.0 * readers as f64;
    assert!((bits.steps as f64 / each as f64 / expected - 1.0).abs() < 0.3, "{} {expected}", bits.steps / each);
    assert!(run.scores.iter().all(Option::is_some));
}

/// A table of what the stumps say is the same task as the stumps themselves.
#[test]
fn base_predictors_may_come_as_columns() {
    let place = place();
    let stumps = with(&place, &boosting_task(""));
    let table = |data: &sottovoce_algorithms::Dataset| {
        let header: String = (0..24).map(|k| format!(",h{k}")).collect();
        let mut text = format!("agent,label{header}\n");
        for (id, name) in stumps.names.iter().enumerate() {
            for (row, label) in data.points(PeerId(id as u32)).iter() {
                let said: String = row.iter().map(|said| format!(",{said}")).collect();
                text += &format!("{name},{label}{said}\n");
            }
        }
        text
    };
    std::fs::write(place.path().join("data/said.csv"), table(&stumps.problem.data)).expect("written");
    std::fs::write(place.path().join("data/said-test.csv"), table(stumps.test.as_ref().expect("test")))
        .expect("written");
    let text = boosting_task("").replace("predictors = 24", "predictors = \"columns\"");
    let text = text.replace("train.csv", "said.csv").replace("test.csv", "said-test.csv");
    let columns = with(&place, &text);
    assert_eq!(columns.problem.data, stumps.problem.data);
    let (a, b) = (run(&columns), run(&stumps));
    assert_eq!((a.models, a.scores), (b.models, b.scores));
}

const LEARNED: &str = "[graph]\nkind = \"learned\"\nsample = 4\nfirst-wakes = 10\nmodel-wakes = 10\ngraph-wakes = 10\n";

fn learned_task(algorithm: &str, rest: &str) -> String {
    format!(
        "algorithm = \"{algorithm}\"\n{DATA}{LEARNED}oracle = \"edges.csv\"\n[boosting]\npredictors = 24\nradius = 2.0\n\
         local-rounds = 50\n[run]\nwakes-per-agent = 90\n{rest}"
    )
}

/// The learned graph is written as a file of edges that a task reads back as the same graph, whatever the number of threads.
#[test]
fn a_learned_graph_is_written_and_read_back() {
    let place = place();
    for algorithm in ["coordinate-descent", "frank-wolfe"] {
        let loaded = with(&place, &learned_task(algorithm, ""));
        let trained = run(&loaded);
        let graph = trained.graph.as_ref().expect("a learned graph");
        assert!(graph.edge_count() > 5 && graph.components().iter().all(|component| *component == 0), "{graph:?}");
        let one = write(&place, "run", &loaded, &[&trained]);
        let two = write(&place, "run2", &loaded, &[&run_on(&loaded, 2)]);
        assert_eq!(one.digest, two.digest);
        assert_eq!(
            one.models().and_then(|figures| figures.learned_graph()).expect("figures").edges,
            graph.edge_count()
        );
        let [a, b] = ["run", "run2"].map(|run| std::fs::read(place.path().join(run).join("edges.csv")).expect("edges"));
        assert_eq!(a, b);
        std::fs::write(place.path().join("data/learned.csv"), a).expect("written");
        let again = "algorithm = \"coordinate-descent\"\n".to_owned() + DATA + "[graph]\nedges = \"learned.csv\"\n";
        assert_eq!(&with(&place, &again).problem.graph, graph);
    }
}

/// CHECK 01.u through a task: with coordinate descent J never rises, and it is J at the models and the graph that are written.
#[test]
fn the_objective_of_models_and_graph_never_rises() {
    let place = place();
    let loaded = with(&place, &learned_task("coordinate-descent", ""));
    let run = run(&loaded);
    let values: Vec<f64> = run.samples.iter().filter_map(|sample| sample.objective).collect();
    assert_eq!(values.len(), run.samples.len());
    assert!(values.windows(2).all(|pair| pair[1] <= pair[0] + 1e-9), "{values:?}");
    let sottovoce_task::task::GraphSource::Learned(how) = &loaded.task.graph.source else { panic!("learned") };
    let joint = joint(how, loaded.problem.trade_off);
    let costs: Vec<f64> = (0..12)
        .map(|id| loaded.problem.shard(PeerId(id)).confidence)
        .zip(learned::losses(&loaded, &run.models))
        .map(|(confidence, loss)| confidence * loss)
        .collect();
    let graph = run.graph.as_ref().expect("a learned graph");
    let weights = sottovoce_algorithms::joint::Pairs::of_graph(graph);
    let expected = joint.value(&joint.prices(&run.models, &costs), &weights);
    assert!((values[values.len() - 1] - expected).abs() < 1e-9 * expected.abs(), "{values:?} {expected}");
}

#[test]
fn the_thesis_table_stands_beside_a_run() {
    let place = place();
    for (algorithm, own, other) in [("coordinate-descent", "linear", "boosting"), ("frank-wolfe", "boosting", "linear")]
    {
        let loaded = with(&place, &learned_task(algorithm, ""));
        let beside = baselines(&loaded, 1, true, &mut |_, _| ControlFlow::Continue(())).expect("runs");
        assert_eq!(beside.skipped, None);
        let names: Vec<&str> = beside.runs.iter().map(|run| run.name.as_str()).collect();
        let expected = [
            format!("local {own}"),
            format!("global {own}"),
            format!("local {other}"),
            format!("global {other}"),
            format!("{own}, oracle graph"),
            format!("{other}, learned graph"),
        ];
        assert_eq!(names, expected);
        assert!(beside.runs.iter().all(|run| run.scores.iter().all(Option::is_some)));
        let global = &beside.runs[1].models;
        assert!((1..12).all(|k| global.row(k) == global.row(0)), "one model for everyone");
        let own_run = run(&loaded);
        let runs: Vec<&Trained> = beside.runs.iter().chain([&own_run]).collect();
        write(&place, "run", &loaded, &runs);
        let page = std::fs::read_to_string(place.path().join("run/report.html")).expect("a report");
        for name in names.iter().chain([&own_run.name.as_str()]) {
            assert!(page.contains(&format!("{name}</th>")), "{name}");
        }
        for picture in ["learned-weights", "learned-graph", "score-by-bits"] {
            assert!(page.contains(&format!("id=\"{picture}\"")), "{picture}");
            assert!(place.path().join(format!("run/plots/{picture}.png")).exists(), "{picture}");
        }
        let few = baselines(&loaded, 1, false, &mut |_, _| ControlFlow::Continue(())).expect("runs");
        assert_eq!((few.runs.len(), few.skipped.is_some()), (1, true));
    }
    let known = with(&place, &boosting_task(""));
    let beside = baselines(&known, 1, true, &mut |_, _| ControlFlow::Continue(())).expect("runs");
    assert_eq!(beside.runs.last().map(|run| run.name.as_str()), Some("linear, same graph"));
    assert_eq!(known.task.algorithm, &frank_wolfe::DESCRIPTION);
}

/// Messages that are lost and doubled cost accuracy of the graph for a while, and nothing else.
#[test]
fn a_graph_is_learned_in_a_storm() {
    let place = place();
    let faults = "[faults]\nloss = 0.3\nduplicate = 0.1\ndelay = { mean = 0.5, max = 3.0 }\nuntil = 60\n";
    for algorithm in ["coordinate-descent", "frank-wolfe"] {
        let run = run(&with(&place, &learned_task(algorithm, faults)));
        assert!(run.counters.lost > 1000 && run.counters.rejected.values().sum::<u64>() > 0);
        assert!(run.graph.expect("a learned graph").edge_count() > 5);
    }
}

#[test]
fn bad_files_of_a_learned_graph_are_named() {
    let place = place();
    let refused = |file: &str, content: &str| {
        std::fs::write(place.path().join("data").join(file), content).expect("written");
        let text = learned_task("frank-wolfe", "").replace("oracle = \"edges.csv\"", "groups = \"groups.csv\"");
        std::fs::write(place.path().join("data/other.toml"), text).expect("written");
        let task = Task::read(&place.path().join("data/other.toml")).expect("a task");
        let found = load(&task).expect_err(content).to_string();
        assert!(found.contains(file) && !found.contains('\n'), "{found}");
        found
    };
    for (content, expected) in [
        ("agent,cluster\nagent-000,a\n", "accepted: the header agent,group"),
        ("agent,group\nagent-000,a\n", "agent \"agent-001\" has no group; accepted: one row for each agent"),
        ("agent,group\nagent-000,a\nagent-000,b\n", "line 3: agent \"agent-000\" has a group on line 2 already"),
    ] {
        let found = refused("groups.csv", content);
        assert!(found.contains(expected), "{found}");
    }
}
