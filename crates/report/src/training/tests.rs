use super::*;

fn sample(wakes: u64, objective: f64, score: f64) -> Sample {
    Sample {
        wakes,
        vectors_sent: 3 * wakes,
        bytes_sent: 24 * wakes,
        objective: Some(objective),
        score_mean: Some(score),
        score_std: Some(0.05),
    }
}

fn agent(i: u32, local: f64, model: f64) -> AgentScore {
    AgentScore { name: format!("agent {i}"), points: u64::from(10 + i), local: Some(local), model: Some(model) }
}

/// Ten agents on a ring, two algorithms.
fn small() -> Report {
    let falling = |name: &str, rate: f64| Curve {
        name: name.to_string(),
        points: (0..20)
            .map(|t| sample(10 * t, 2.0 + 5.0 * f64::powi(rate, t as i32), 0.9 - 0.2 * f64::powi(rate, t as i32)))
            .collect(),
    };
    let row = |name: &str| Row { name: name.to_string(), score_mean: Some(0.7), wakes: 12_345, ..Row::default() };
    Report {
        title: "ring".into(),
        subtitle: "10 agents".into(),
        privacy: "No privacy: epsilon = infinity.".into(),
        private: None,
        score_name: "test accuracy".into(),
        higher_is_better: true,
        void: None,
        runs: vec![falling("model propagation", 0.9), falling("coordinate descent", 0.7)],
        bound: Some((0..20).map(|t| (10.0 * f64::from(t), 2.0 + 5.0 * f64::powi(0.95, t))).collect()),
        optimum: Some(2.0),
        agents: (0..10).map(|i| agent(i, 0.7, if i == 3 { 0.6 } else { 0.9 })).collect(),
        edges: (0..10).map(|i| (i, (i + 1) % 10, 0.1 * f64::from(i + 1))).collect(),
        learned: None,
        everyone: false,
        in_bits: false,
        table: vec![row("model propagation"), row("coordinate descent")],
        origins: Origins {
            reproduce: vec!["sottovoce train task.toml".into()],
            task: "name = \"ring\"\n".into(),
            digest: "abc123".into(),
            digest_in_words: "Digest",
            version: "0.1.0".into(),
        },
    }
}

/// Draws everything and checks what holds for every report.
fn check(report: &Report) -> (Vec<Picture>, String) {
    let pictures = plots(report);
    let page = html(report, &pictures);
    for picture in &pictures {
        assert!(picture.svg.starts_with("<svg ") && picture.svg.ends_with("</svg>\n"), "{}", picture.file_stem);
        assert!(picture.png.starts_with(b"\x89PNG"), "{}", picture.file_stem);
        for wrong in ["NaN", "inf", "\"\"", "-0\""] {
            assert!(!picture.svg.contains(wrong), "{wrong} in {}", picture.file_stem);
        }
        assert!(!picture.caption.is_empty() && page.contains(&picture.svg));
        assert_eq!(picture.svg.matches("<title>").count(), picture.svg.matches("</title>").count());
    }
    assert_eq!(page.matches("role=\"img\"").count(), pictures.len(), "one picture each");
    let loads = ["<script", "<link", "<img", "<iframe", " src=", " href=", "@import", "url(", "https://"];
    assert!(loads.iter().all(|load| !page.contains(load)), "the page loads something");
    let namespace = "xmlns=\"http://www.w3.org/2000/svg\"";
    assert_eq!(page.matches("http://").count(), page.matches(namespace).count(), "a link beside the name space");
    (pictures, page)
}

fn stems(pictures: &[Picture]) -> Vec<&'static str> {
    pictures.iter().map(|p| p.file_stem).collect()
}

const ALL: [&str; 6] =
    ["objective-by-wakes", "objective-by-vectors", "score-by-wakes", "score-by-vectors", "score-by-size", "graph"];

#[test]
fn a_full_report_has_every_picture_and_opens_with_the_answer() {
    let (pictures, page) = check(&small());
    assert_eq!(stems(&pictures), ALL);
    let answer = "Collaboration raises mean test accuracy from 0.700 to 0.870: 9 of 10 agents gain, 1 loses.";
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is missing"));
    let order =
        [answer, "epsilon = infinity", "<table", "id=\"graph\"", "sottovoce train", "name = &quot;ring", "abc123"];
    assert!(order.map(at).is_sorted(), "the parts are in reading order");
    assert!(page.contains("12,345"));
    assert!(pictures[0].svg.contains("stroke-dasharray") && pictures[0].svg.contains("bound (Proposition 1)"));
    assert!(pictures[0].svg.contains("objective − optimum"));
    assert!(!pictures[1].svg.contains("Proposition"), "the bound counts wakes");
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    let ((a, page_a), (b, page_b)) = (check(&small()), check(&small()));
    assert_eq!(page_a, page_b);
    assert!(a.iter().zip(&b).all(|(a, b)| a.svg == b.svg && a.png == b.png && a.caption == b.caption));
}

#[test]
fn names_cannot_become_markup() {
    let evil = "<script>alert(\"1\")</script>&'\u{1b}\0".to_string();
    let mut report = small();
    for text in
        [&mut report.title, &mut report.subtitle, &mut report.privacy, &mut report.score_name, &mut report.origins.task]
    {
        text.clone_from(&evil);
    }
    report.private = private().private.map(|private| PrivateRun {
        accountant: evil.clone(),
        spent: vec![(evil.clone(), 1.0)],
        plan: evil.clone(),
        warnings: vec![evil.clone()],
        sweep: Sweep { skipped: Some(evil.clone()), ..Sweep::default() },
        ..private
    });
    let origins = &mut report.origins;
    (origins.digest, origins.version, origins.reproduce) = (evil.clone(), evil.clone(), vec![evil.clone()]);
    report.agents.iter_mut().for_each(|a| a.name.clone_from(&evil));
    report.runs.iter_mut().for_each(|r| r.name.clone_from(&evil));
    report.table.iter_mut().for_each(|r| r.name.clone_from(&evil));
    // One level, so that a name reaches a caption.
    report.runs[0].points.truncate(1);
    let (_, page) = check(&report);
    assert!(page.contains("&lt;script&gt;"));
    assert!(!page.contains('\0') && !page.contains('\u{1b}'));
}

#[test]
fn without_a_test_set_there_are_no_scores() {
    let mut report = small();
    report.agents.iter_mut().for_each(|a| (a.local, a.model) = (None, None));
    report.table.iter_mut().for_each(|r| r.score_mean = None);
    for s in report.runs.iter_mut().flat_map(|r| &mut r.points) {
        (s.score_mean, s.score_std) = (None, None);
    }
    let (pictures, page) = check(&report);
    assert_eq!(stems(&pictures), ["objective-by-wakes", "objective-by-vectors", "graph"]);
    assert!(page.contains("10 agents brought the objective from 7.000 to"));
    assert!(!page.contains("<th scope=\"col\">test accuracy"), "a column without numbers is left out");
}

#[test]
fn without_wakes_there_are_no_curves() {
    let mut report = small();
    report.runs.iter_mut().for_each(|r| r.points.truncate(1));
    assert_eq!(stems(&check(&report).0), ["score-by-size", "graph"]);
    report.runs.clear();
    assert_eq!(stems(&check(&report).0), ["score-by-size", "graph"]);
}

#[test]
fn an_empty_report_is_still_a_page() {
    let (pictures, page) = check(&Report::default());
    assert!(pictures.is_empty());
    assert!(page.contains("nobody woke"));
}

#[test]
fn one_agent_alone() {
    let mut report = small();
    (report.agents, report.edges) = (vec![agent(0, 0.8, 0.8)], Vec::new());
    let (pictures, page) = check(&report);
    assert!(!stems(&pictures).contains(&"graph"));
    assert!(page.contains("the same as that of its local model"));
}

#[test]
fn no_edges_and_no_points() {
    let mut report = small();
    report.edges = vec![(0, 0, 1.0), (0, 99, 1.0), (1, 2, f64::NAN), (1, 2, -1.0)];
    report.agents.iter_mut().for_each(|a| a.points = 0);
    let (pictures, _) = check(&report);
    assert_eq!(stems(&pictures), ALL);
    assert!(pictures[5].caption.contains("no two of them are joined"));
    let open = Report { edges: Vec::new(), everyone: true, ..small() };
    let caption = &plots(&open)[5].caption;
    assert!(caption.contains("no lines are drawn") && !caption.contains("joined"), "{caption}");
}

#[test]
fn values_that_are_not_finite_are_left_out() {
    let mut report = small();
    for (k, bad) in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY].into_iter().enumerate() {
        let s = &mut report.runs[1].points[k + 3];
        (s.objective, s.score_mean, s.score_std) = (Some(bad), Some(bad), Some(bad));
        (report.agents[k].local, report.table[0].objective, report.table[0].seconds) =
            (Some(bad), Some(bad), Some(bad));
    }
    report.bound = Some(vec![(0.0, f64::INFINITY), (f64::NAN, 1.0), (5.0, 3.0)]);
    assert_eq!(stems(&check(&report).0), ALL);
    for s in report.runs.iter_mut().flat_map(|r| &mut r.points) {
        (s.objective, s.score_mean) = (Some(f64::NAN), Some(f64::INFINITY));
    }
    report.optimum = Some(f64::NAN);
    assert_eq!(stems(&check(&report).0), ["score-by-size", "graph"]);
}

#[test]
fn constant_curves_and_a_curve_at_the_optimum_are_drawn() {
    for objective in [7.0, 2.0, 1.0] {
        let mut report = small();
        for s in report.runs.iter_mut().flat_map(|r| &mut r.points) {
            (s.objective, s.score_mean, s.score_std) = (Some(objective), Some(0.5), None);
        }
        check(&report);
        report.bound = None;
        check(&report);
        report.optimum = None;
        assert_eq!(stems(&check(&report).0), ALL);
    }
}

#[test]
fn an_error_is_better_when_it_is_lower() {
    let mut report = small();
    (report.score_name, report.higher_is_better) = ("test RMSE".into(), false);
    report.agents = (0..4).map(|i| agent(i, 1.5, if i == 0 { 1.75 } else { 1.0 })).collect();
    let (pictures, page) = check(&report);
    assert!(page.contains("Collaboration lowers mean test RMSE from 1.500 to 1.188: 3 of 4 agents gain, 1 loses."));
    assert!(pictures.iter().any(|p| p.caption.contains("lower is better")));
    report.agents = (0..4).map(|i| agent(i, 1.0, 1.5)).collect();
    assert!(headline(&report).contains("from 1.000 to 1.500, which is worse: 0 of 4 agents gain, 4 lose."));
}

#[test]
fn a_run_that_is_much_longer_than_another_has_a_logarithmic_axis() {
    let mut report = small();
    report.runs[0].points.iter_mut().for_each(|s| s.vectors_sent *= 1000);
    let (pictures, _) = check(&report);
    assert!(pictures[1].caption.contains("logarithmic"));
    assert!(pictures[1].svg.contains("10⁴"));
}

#[test]
fn a_large_graph_is_drawn_in_part_and_says_so() {
    let n = 3000u32;
    let mut report = small();
    report.agents = (0..n).map(|i| agent(i, 0.7, 0.7 + 0.1 * f64::from(i % 3))).collect();
    report.edges = (0..n).flat_map(|i| (1..=20).map(move |d| (i, (i + d) % n, 1.0 / f64::from(d)))).collect();
    let (pictures, page) = check(&report);
    let graph = &pictures[5];
    assert!(graph.caption.contains("Of 3,000 agents, 500 are drawn"), "{}", graph.caption);
    assert!(graph.caption.contains("the 4,000 heaviest are drawn"), "{}", graph.caption);
    assert!(pictures[4].caption.contains("of 3,000 agents are drawn"), "{}", pictures[4].caption);
    assert!(page.len() < 1_000_000, "{} bytes", page.len());
}

/// The small report as a private run, with a sweep.
fn private() -> Report {
    let point = |at: f64, own: bool| Point { at, own, broadcast: Some(0.5 + 0.01 * at), home: Some(0.7 + 0.02 * at) };
    let mut report = small();
    report.runs[1].name = BROADCAST.into();
    report.table[1].name = BROADCAST.into();
    report.table.push(Row { name: HOME.into(), ..report.table[1].clone() });
    report.private = Some(PrivateRun {
        origin: Origin::Simulator,
        epsilon: 1.05,
        delta: 0.001,
        accountant: "tight".into(),
        spent: vec![("tight".into(), 1.049_999), ("theorem-1".into(), 1.2), ("sum".into(), f64::INFINITY)],
        pairs: None,
        guarantee: "for one record replaced by another, against everyone".to_owned(),
        plan: "Each agent releases 1 update.".into(),
        warnings: vec!["delta is large".into()],
        home: true,
        local: Some(0.7),
        sweep: Sweep {
            epsilons: [0.1, 1.0, 10.0].map(|at| point(at, at == 1.0)).to_vec(),
            updates: [1.0, 2.0, 5.0].map(|at| point(at, at == 2.0)).to_vec(),
            skipped: None,
        },
    });
    report
}

#[test]
fn a_private_report_shows_the_budget_what_was_spent_and_what_else_there_would_have_been() {
    let (pictures, page) = check(&private());
    assert_eq!(stems(&pictures), [&["score-by-epsilon", "score-by-updates"], &ALL[..]].concat());
    for part in [
        "In this simulation, private collaboration with home models raises",
        "This was a simulation",
        "system’s entropy",
        "for one record replaced by another, against everyone",
        "epsilon = 1.05",
        "infinity",
        "Warning: delta is large",
        "home models",
        "no ledger is charged",
        "noise keeps it away from the minimum",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for picture in &pictures[..2] {
        for name in ["local", "broadcast", "home", "this task"] {
            assert!(picture.svg.contains(&format!(">{name}</text>")), "{name} in {}", picture.file_stem);
        }
    }
    let main = page.lines().find(|line| line.contains("class=\"main\"") && line.contains("<th scope=\"row\"><svg"));
    assert!(main.is_some_and(|row| row.contains(HOME)), "{main:?}");
}

#[test]
fn a_report_of_real_peers_is_called_neither_a_simulation_nor_private_where_data_were_revealed() {
    for (origin, says) in
        [(Origin::Peers, "no score, loss or home model is in it"), (Origin::Revealed, "were revealed. Do not show it")]
    {
        let mut report = private();
        report.private = report.private.map(|private| PrivateRun { origin, ..private });
        let (_, page) = check(&report);
        assert!(page.contains(says) && !page.contains("imulation"), "{origin:?}");
    }
}

#[test]
fn a_private_report_without_a_sweep_or_home_models_says_so() {
    let mut report = private();
    let private = report.private.as_mut().expect("private");
    (private.sweep, private.home) = (Sweep::not_wanted(), false);
    let (pictures, page) = check(&report);
    assert_eq!(stems(&pictures), ALL);
    assert!(page.contains("are not shown. It was turned off.") && !page.contains("each is made at home"));
}

#[test]
fn points_of_a_sweep_without_a_value_are_left_out() {
    let mut report = private();
    let sweep = &mut report.private.as_mut().expect("private").sweep;
    (sweep.epsilons[1].home, sweep.updates[0].broadcast) = (None, Some(f64::NAN));
    check(&report);
    let sweep = &mut report.private.as_mut().expect("private").sweep;
    sweep.epsilons.truncate(1);
    sweep.updates.iter_mut().for_each(|point| (point.home, point.broadcast) = (None, None));
    assert_eq!(stems(&check(&report).0), ALL);
}

#[test]
fn a_learned_graph_whose_losses_nobody_may_see_is_drawn_without_them() {
    let mut report = small();
    let loss = |loss| Some(LearnedGraph { confidence: vec![0.5; 10], loss, groups: None, within_and_between: None });
    report.learned = loss(None);
    let (pictures, page) = check(&report);
    assert!(stems(&pictures).contains(&"learned-graph") && !page.contains("loss"));
    report.learned = loss(Some(vec![0.25; 10]));
    assert!(check(&report).1.contains("loss 0.25"));
}

#[test]
fn a_learned_graph_is_drawn_as_a_matrix_and_with_confidence_and_loss() {
    let two_groups =
        |n: u32| (0..n).flat_map(move |a| (a + 1..n).map(move |b| (a, b))).filter(|(a, b)| (a + b) % 2 == 0);
    let learned = |groups| LearnedGraph {
        confidence: (0..10).map(|k| 0.1 * f64::from(k + 1)).collect(),
        loss: Some((0..10).map(|k| f64::from(k) - 3.0).collect()),
        groups,
        within_and_between: Some((0.5, 0.0)),
    };
    let edges: Vec<_> = two_groups(10).map(|(a, b)| (a, b, 0.1 * f64::from(a + 1))).collect();
    let named = Some(((0..10).map(|k| k % 2).collect(), vec!["even <0>".to_owned(), "odd".to_owned()]));
    for groups in [None, named] {
        let grouped = groups.is_some();
        let mut report = Report { edges: edges.clone(), learned: Some(learned(groups)), in_bits: true, ..small() };
        let (pictures, page) = check(&report);
        let stems = stems(&pictures);
        for stem in ["learned-weights", "learned-graph", "score-by-bits"] {
            assert!(stems.contains(&stem), "{stems:?}");
        }
        assert!(!stems.contains(&"graph"), "one picture of the graph is enough");
        assert!(page.contains("no weight lies between two groups"));
        assert_eq!(page.contains("even &lt;0&gt;"), grouped);
        let matrix = pictures.iter().find(|picture| picture.file_stem == "learned-weights").expect("a matrix");
        // Twenty pairs, each twice, one path for each shade.
        let cells: usize = matrix
            .svg
            .lines()
            .filter(|line| line.contains("stroke-opacity"))
            .map(|line| line.matches('M').count())
            .sum();
        assert_eq!(cells, 2 * 20 + 8, "cells, and the eight of the legend");
        report.edges.clear();
        check(&report);
    }
    let many = 700;
    let report = Report {
        agents: (0..many).map(|k| agent(k, 0.7, 0.8)).collect(),
        edges: (0..many).map(|k| (k, (k + 1) % many, 1.0)).collect(),
        learned: Some(LearnedGraph {
            confidence: vec![1.0; many as usize],
            loss: Some(vec![0.0; many as usize]),
            ..LearnedGraph::default()
        }),
        ..small()
    };
    let (pictures, _) = check(&report);
    let captions: Vec<&str> = pictures.iter().map(|picture| picture.caption.as_str()).collect();
    assert!(
        captions.iter().filter(|caption| caption.contains("Of 700 agents, 500 are drawn")).count() == 2,
        "{captions:?}"
    );
}
