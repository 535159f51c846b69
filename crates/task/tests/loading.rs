//! What good files become.

mod support;

use sottovoce_algorithms::graphs;
use sottovoce_core::{Graph, PeerId};
use sottovoce_task::load::Loaded;
use sottovoce_task::task::GraphSource;
use support::{EDGES, TRAIN, gzip, loaded, task};

fn good(files: &[(&str, &[u8])]) -> Loaded {
    loaded(files).expect("a problem")
}

fn rows(loaded: &Loaded, agent: u32) -> Vec<(Vec<f64>, f64)> {
    loaded.problem.data.points(PeerId(agent)).iter().map(|(x, y)| (x.to_vec(), y)).collect()
}

#[test]
fn rows_go_to_their_agents_in_the_order_of_names() {
    let found = good(&[]);
    assert_eq!(found.names, ["ann", "bob"]);
    assert_eq!(found.feature_names, ["x", "y"]);
    assert_eq!(rows(&found, 0), [(vec![1e-3, -4.0], -1.0)]);
    assert_eq!(rows(&found, 1), [(vec![0.5, 2.0], 1.0), (vec![3.0, 0.0], -1.0)]);
    assert_eq!(found.problem.graph.peers(PeerId(0)).edge(0).weight, 0.5);
    assert_eq!((found.problem.points_max, found.task.model.points_max), (2.0, Some(2)));
    assert!(found.test.is_none());
}

#[test]
fn agents_are_all_names_of_the_data_and_the_graph_sorted_by_bytes() {
    let text = task("[graph]", "test = \"test.csv\"\n[graph]");
    let edges = format!("{EDGES}zoë,Zed,1\nzoë,ann,2\n\"a,b\",Zed,1\n10,9,1\n10,ann,1\n");
    let found = good(&[
        ("task.toml", text.as_bytes()),
        ("test.csv", b"agent,label,x,y\n9,1,1,1\n"),
        ("edges.csv", edges.as_bytes()),
    ]);
    assert_eq!(found.names, ["10", "9", "Zed", "a,b", "ann", "bob", "zoë"]);
    let sizes: Vec<_> = (0..7).map(|k| found.problem.data.size(PeerId(k))).collect();
    assert_eq!(sizes, [0, 0, 0, 0, 1, 2, 0]);
    let test = found.test.expect("test points");
    assert_eq!((test.agents(), test.len(), test.size(PeerId(1))), (7, 1, 1));
}

#[test]
fn fewer_than_ten_others_are_all_nearest_unless_a_number_is_given() {
    for (n, expected) in [(2, 1), (5, 4), (11, 10), (30, 10)] {
        let mut train = "agent,label,x,y\n".to_owned();
        (0..n).for_each(|k| train += &format!("{k:02},1,{},{}\n", k % 7, k * k % 5));
        let text = task("edges = \"edges.csv\"", "kind = \"knn\"");
        let found = good(&[("task.toml", text.as_bytes()), ("train.csv", train.as_bytes())]);
        assert!((0..n).all(|k| found.problem.graph.peers(PeerId(k)).len() >= expected as usize), "{n} agents");
        let GraphSource::Knn { neighbours } = found.task.graph.source else { panic!("another graph") };
        assert_eq!(neighbours, Some(expected), "{n} agents: the resolved task says it");
    }
}

#[test]
fn a_logistic_loss_without_regularization_is_warned_of() {
    let warned = |model: &str| good(&[("task.toml", task("[graph]", &format!("{model}[graph]")).as_bytes())]).warning();
    let warning = warned("[model]\nregularization = 0\n").expect("a warning");
    assert!(warning.contains("without bound"), "{warning}");
    for model in ["", "[model]\nregularization = 1e-9\n", "[model]\nloss = \"squared\"\nregularization = 0\n"] {
        assert_eq!(warned(model), None, "{model}");
    }
}

#[test]
fn quotes_spaces_line_ends_and_a_mark_at_the_start_change_nothing() {
    let windows = format!("\u{feff}{}", TRAIN.replace(',', " , ").replace(" , label", ",label").replace('\n', "\r\n"));
    let windows = windows.replace("bob ,", "\"bob\",").replace("ann ,", "ann,");
    let found = good(&[("train.csv", windows.as_bytes())]);
    assert_eq!(found.problem.data, good(&[]).problem.data);
    assert_eq!(found.feature_names, ["x", "y"]);
}

#[test]
fn compressed_files_hold_the_same_data() {
    let text = task("train.csv", "train.csv.gz").replace("edges.csv", "edges.csv.gz");
    let (train, edges) = (gzip(TRAIN.as_bytes()), gzip(EDGES.as_bytes()));
    let found = good(&[("task.toml", text.as_bytes()), ("train.csv.gz", &train), ("edges.csv.gz", &edges)]);
    assert_eq!(found.problem.data, good(&[]).problem.data);
    assert_eq!(found.problem.graph, good(&[]).problem.graph);
}

#[test]
fn libsvm_is_the_same_data_written_sparsely() {
    let data = "train = \"train.svm\"\nagents = \"agents\"\ntest = \"t.libsvm.gz\"\ntest-agents = \"t-agents\"";
    let text = task("train = \"train.csv\"", data);
    let found = good(&[
        ("task.toml", text.as_bytes()),
        ("train.svm", b"1 1:0.5 2:2 # first\n\n0 1:1e-3 2:-4\r\n0 1:3\n"),
        ("agents", b"bob\nann\nbob\n"),
        ("t.libsvm.gz", &gzip(b"+1 3:7\n")),
        ("t-agents", b"ann"),
    ]);
    // The test file has a third feature, so the training points have it too, as zero.
    assert_eq!(found.feature_names, ["1", "2", "3"]);
    assert_eq!(rows(&found, 0), [(vec![1e-3, -4.0, 0.0], -1.0)]);
    assert_eq!(rows(&found, 1), [(vec![0.5, 2.0, 0.0], 1.0), (vec![3.0, 0.0, 0.0], -1.0)]);
    assert_eq!(found.test.expect("test points").points(PeerId(0)).features, [0.0, 0.0, 7.0]);
}

#[test]
fn zero_is_the_negative_class_and_any_number_fits_the_squared_loss() {
    let found = good(&[("train.csv", TRAIN.replace(",-1,", ",0,").as_bytes())]);
    assert_eq!(found.problem.data, good(&[]).problem.data);
    let squared = format!("{}[model]\nloss = \"squared\"\n", support::TASK);
    let found = good(&[("task.toml", squared.as_bytes()), ("train.csv", b"agent,label,x\nann,0,1\nbob,-2.5,1\n")]);
    assert_eq!((rows(&found, 0)[0].1, rows(&found, 1)[0].1), (0.0, -2.5));
}

#[test]
fn normalizing_shrinks_long_rows_only_and_the_intercept_comes_after() {
    let train: &[u8] = b"agent,label,x,y\nann,1,3,-4\nann,1,0.1,0.2\nbob,1,1e75,1e75\n";
    for (norm, long, huge, said, constant) in
        [("l2", [0.6, -0.8], 0.5f64.sqrt(), "", 1.0), ("l1", [3.0 / 7.0, -4.0 / 7.0], 0.5, "constant = 2.5\n", 2.5)]
    {
        let model = format!("[model]\nintercept = true\n{said}");
        let text = task("[graph]", &format!("normalize = \"{norm}\"\n[graph]")) + &model;
        let found = good(&[("task.toml", text.as_bytes()), ("train.csv", train)]);
        assert_eq!(found.feature_names, ["x", "y", "intercept"]);
        assert_eq!(rows(&found, 0), [(vec![long[0], long[1], constant], 1.0), (vec![0.1, 0.2, constant], 1.0)]);
        assert!((rows(&found, 1)[0].0[0] - huge).abs() < 1e-15);
        assert_eq!(found.task.data.feature_bound, Some(1.0));
    }
    // Without normalizing, numbers stay as they are.
    assert_eq!(rows(&good(&[("train.csv", train)]), 0)[0].0, [3.0, -4.0]);
}

#[test]
fn a_split_keeps_every_point_once_and_one_for_training() {
    let mut train = String::from("agent,label,x\n");
    for (agent, m) in [("ann", 1), ("bob", 2), ("cy", 50)] {
        (0..m).for_each(|k| train += &format!("{agent},1,{k}\n"));
    }
    let files = |share: &str, seed: u32, train: &str| {
        let text = task("[graph]", &format!("split = {share}\nsplit-seed = {seed}\n[graph]"));
        good(&[
            ("task.toml", text.as_bytes()),
            ("train.csv", train.as_bytes()),
            ("edges.csv", b"a,b,weight\nann,bob,1\nbob,cy,1\n"),
        ])
    };
    for (share, expected) in [("0.2", [1, 2, 40]), ("0.99", [1, 1, 1]), ("0", [1, 2, 50])] {
        let found = files(share, 1, &train);
        let test = found.test.as_ref().expect("test points");
        for (k, (kept, m)) in expected.into_iter().zip([1, 2, 50]).enumerate() {
            let (kept_points, aside) = (found.problem.data.points(PeerId(k as u32)), test.points(PeerId(k as u32)));
            assert_eq!((kept_points.len(), aside.len()), (kept, m - kept), "{share}");
            let mut all = [kept_points.features, aside.features].concat();
            all.sort_by(f64::total_cmp);
            assert_eq!(all, (0..m).map(|k| k as f64).collect::<Vec<_>>());
            assert!(kept_points.features.is_sorted() && aside.features.is_sorted());
        }
    }
    let one = files("0.2", 1, &train);
    assert_eq!(one.problem.data, files("0.2", 1, &train).problem.data);
    assert_ne!(one.problem.data, files("0.2", 2, &train).problem.data);
    // Other agents do not change an agent's split.
    let alone = files("0.2", 1, &train.replace("bob,1,0\n", ""));
    assert_eq!(one.problem.data.points(PeerId(2)).features, alone.problem.data.points(PeerId(2)).features);
}

#[test]
fn an_isolated_agent_is_fine_when_allowed() {
    let text = format!("{}allow-isolated = true\n", support::TASK);
    let found = good(&[("task.toml", text.as_bytes()), ("edges.csv", b"a,b,weight\nann,cy,1\n")]);
    assert_eq!(found.names, ["ann", "bob", "cy"]);
    assert!(found.problem.graph.peers(PeerId(1)).is_empty());
    let none = good(&[("task.toml", text.as_bytes()), ("edges.csv", b"a,b,weight\n")]);
    assert_eq!(none.problem.graph.edge_count(), 0);
}

#[test]
fn every_kind_of_graph_is_built_over_the_agents() {
    let mut train = String::from("agent,label,x,y\n");
    let mut vectors = String::from("agent,v0,v1\n");
    for k in 0..12 {
        let angle = f64::from(k) * 0.5;
        train += &format!("a{k:02},1,{},{}\na{k:02},-1,{},{}\n", angle.cos(), angle.sin(), -angle.cos(), -angle.sin());
        vectors += &format!("a{k:02},{},{}\n", angle.cos(), angle.sin());
    }
    let graph = |text: &str| {
        let text = task("edges = \"edges.csv\"", text);
        let files = [("task.toml", text.as_bytes()), ("train.csv", train.as_bytes()), ("v.csv", vectors.as_bytes())];
        good(&files).problem.graph
    };
    assert_eq!(graph("kind = \"ring\""), Graph::Ring { n: 12 });
    assert_eq!(graph("kind = \"complete\""), Graph::Complete { n: 12 });
    assert_eq!(graph("kind = \"torus\"\nrows = 3\ncolumns = 4"), graphs::torus(3, 4).expect("torus"));
    let small_world = graphs::watts_strogatz(12, 4, 0.5, 3).expect("graph");
    assert_eq!(graph("kind = \"watts-strogatz\"\nneighbours = 4\nrewire = 0.5\nseed = 3"), small_world);
    let random = graphs::erdos_renyi(12, 0.7, 1).expect("graph");
    assert_eq!(graph("kind = \"erdos-renyi\"\nprobability = 0.7\nallow-isolated = true"), random);
    // Twelve directions, half a radian apart: 5.5 radians in all, so the ends are 0.78 apart. Everyone's nearest two
    // are the next in line; the ends take the second next.
    let knn = graph("kind = \"knn\"\nneighbours = 2");
    let peers: Vec<_> = knn.peers(PeerId(5)).iter().map(|edge| edge.peer.0).collect();
    assert_eq!(peers, [4, 6]);
    assert_eq!(knn.edge_count(), 12);
    let similar = graph("kind = \"similarity\"\nvectors = \"v.csv\"\nwidth = 1\nthreshold = 0.5");
    let weight = similar.peers(PeerId(0)).edge(0).weight;
    assert!((weight - (0.5f64.cos() - 1.0).exp()).abs() < 1e-12, "{weight}");
}

#[test]
fn the_penalty_of_admm_follows_the_mean_weight() {
    let text = task("\"local\"", "\"admm\"");
    let edges = b"a,b,weight\nann,bob,0.5\nbob,cy,1.5\n";
    let found = good(&[("task.toml", text.as_bytes()), ("edges.csv", edges)]);
    assert!((found.task.own.number("admm.penalty").expect("filled in") - 0.1).abs() < 1e-15);
    // The loaded task is complete: it reads back as itself.
    let again = sottovoce_task::task::Task::parse(&found.task.to_toml(), &found.task.source).expect("a task");
    assert_eq!(again, found.task);
}

#[test]
fn a_million_rows_load_in_seconds() {
    let mut train = String::from("agent,label,x0,x1,x2,x3,x4\n");
    for k in 0..1_000_000u32 {
        let x = f64::from(k) * 1e-6;
        train += &format!("a{},{},{x},{:.3},0.25,-1,3\n", k % 1000, k % 2, -x);
    }
    let text = task("edges = \"edges.csv\"", "kind = \"ring\"");
    let found = good(&[("task.toml", text.as_bytes()), ("train.csv", train.as_bytes())]);
    assert_eq!((found.names.len(), found.problem.data.len()), (1000, 1_000_000));
}
