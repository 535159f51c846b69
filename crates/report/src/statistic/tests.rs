//! What a report of a statistic says, and that it says it whatever is missing.

use super::*;

fn report() -> Report {
    let agent =
        |k: u32| AgentEstimate { name: format!("agent-{k}"), rows: 3, estimate: vec![3.5 + 1e-9 * f64::from(k), 10.0] };
    let sample = |k: u64| Sample {
        wakes: 10 * k,
        letters_sent: 30 * k,
        bytes_sent: 500 * k,
        error_mean: Some(libm::pow(0.1, k as f64)),
        error_std: Some(0.01),
    };
    Report {
        title: "stay".into(),
        statistic: "mean".into(),
        columns: vec!["room".into(), "price".into()],
        estimate: vec![3.5, 10.0],
        exact: Some(vec![3.5, 10.0]),
        agents: (0..4).map(agent).collect(),
        samples: (0..8).map(sample).collect(),
        agents_in_all: 4,
        epsilon: "infinity".into(),
        guarantee: "for one record replaced by another, against everyone".into(),
        ..Report::default()
    }
}

#[test]
fn the_answer_comes_first() {
    let said = "The mean of room is 3.5 and the mean of price is 10: 4 agents agree to within 3.0×10⁻⁹, and the farthest is 3.0×10⁻⁹ from the exact value.";
    assert_eq!(answer(&report()), said);
    let told = Report { exact: None, columns: vec!["room".into()], ..report() };
    assert_eq!(answer(&told), "The mean of room is 3.5: 4 agents agree to within 3.0×10⁻⁹.");
    let off = Report { exact: Some(vec![3.5, 10.5]), ..report() };
    assert!(answer(&off).ends_with("and the farthest is 0.50 from the exact value."), "{}", answer(&off));
    // Their mean is exact, and each of them is wrong.
    let mut apart = Report { columns: vec!["room".into()], estimate: vec![3.5], exact: Some(vec![3.5]), ..report() };
    for (k, agent) in apart.agents.iter_mut().enumerate() {
        agent.estimate = vec![if k % 2 == 0 { 0.0 } else { 7.0 }];
    }
    let said = "The mean of room is 3.5: 4 agents agree to within 7.0, and the farthest is 3.5 from the exact value.";
    assert_eq!(answer(&apart), said);
    apart.agents.pop();
    assert!(answer(&apart).contains("3 of 4 agents agree"), "{}", answer(&apart));
    let nobody = Report { agents: Vec::new(), estimate: Vec::new(), ..report() };
    assert_eq!(answer(&nobody), "Nobody has an estimate of the mean.");
}

#[test]
fn the_page_shows_estimate_error_cost_and_observer() {
    let (report, pictures) = (report(), plots(&report()));
    let stems: Vec<_> = pictures.iter().map(|picture| picture.file_stem).collect();
    assert_eq!(stems, ["error-by-exchanges", "error-by-bytes", "estimates"]);
    let page = html(&report, &pictures);
    for text in ["mean of room", "infinity", "against everyone", "210", "3.50 kB", "875 B", "Error against bytes"] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn what_nobody_knows_is_left_out() {
    let told = Report {
        exact: None,
        samples: vec![Sample { wakes: 5, letters_sent: 9, bytes_sent: 90, ..Sample::default() }],
        ..report()
    };
    let pictures = plots(&told);
    assert_eq!(pictures.iter().map(|picture| picture.file_stem).collect::<Vec<_>>(), ["estimates"]);
    let page = html(&told, &pictures);
    assert!(!page.contains("exact") && !page.contains("NaN"), "{page}");
    let empty = Report::default();
    assert!(plots(&empty).is_empty() && html(&empty, &[]).ends_with("</html>\n"));
}

#[test]
fn names_from_files_cannot_become_markup() {
    let evil = "<script>alert('&\"')</script>".to_string();
    let mut report = report();
    report.columns = vec![evil.clone(); 2];
    (report.title, report.statistic, report.epsilon) = (evil.clone(), evil.clone(), evil.clone());
    report.agents.iter_mut().for_each(|agent| agent.name = evil.clone());
    let page = html(&report, &plots(&report));
    assert!(!page.contains("<script>"), "{page}");
}
