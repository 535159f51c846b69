//! Writes a report of invented numbers into a folder, to look at its pictures without running anything:
//! `cargo run --release -p sottovoce-report --example report -- FOLDER`.

use std::path::PathBuf;

use sottovoce_report::page::Origins;
use sottovoce_report::training::{AgentScore, Curve, Report, Row, Sample, html, plots};

fn main() -> std::io::Result<()> {
    let folder = PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "report".to_string()));
    std::fs::create_dir_all(&folder)?;
    let report = invented();
    let pictures = plots(&report);
    for picture in &pictures {
        std::fs::write(folder.join(picture.file_stem).with_extension("svg"), &picture.svg)?;
        std::fs::write(folder.join(picture.file_stem).with_extension("png"), &picture.png)?;
        println!("{}: {}", picture.title, picture.caption);
    }
    std::fs::write(folder.join("report.html"), html(&report, &pictures))
}

/// A hundred agents in two groups, and three algorithms that converge as such algorithms do.
fn invented() -> Report {
    let n = 100u32;
    let optimum = 41.25;
    let agents = Vec::from_iter((0..n).map(|i| {
        let points = 10 + (i * 37) % 91;
        let local = 0.62 + 0.0024 * f64::from(points) + 0.14 * noise(i, 1);
        let model = 0.875 + 0.1 * noise(i, 2);
        AgentScore { name: format!("agent-{i:03}"), points: points.into(), local: Some(local), model: Some(model) }
    }));
    let mean = |score: fn(&AgentScore) -> Option<f64>| agents.iter().filter_map(score).sum::<f64>() / f64::from(n);
    let (local, model) = (mean(|a| a.local), mean(|a| a.model));
    let alone =
        Sample { objective: Some(optimum + 16.0), score_mean: Some(local), score_std: Some(0.09), ..Sample::default() };
    let runs = vec![
        Curve { name: "local".into(), points: vec![alone] },
        Curve { name: "model propagation".into(), points: samples(0.12, 14.0, optimum + 1.9, (local, 0.841), 2) },
        Curve { name: "coordinate descent".into(), points: samples(0.2, 16.0, optimum, (local, model), 10) },
    ];
    let row = |i: usize, better: Option<usize>, seconds: f64| {
        let last = runs[i].points[runs[i].points.len() - 1];
        Row {
            name: runs[i].name.clone(),
            score_mean: last.score_mean,
            score_std: last.score_std,
            gain: better.and(last.score_mean).map(|mean| mean - local),
            agents_gain: better.map(|b| b as u64),
            agents_lose: better.map(|b| u64::from(n) - b as u64),
            wakes: last.wakes,
            vectors_sent: last.vectors_sent,
            bytes_sent: last.bytes_sent,
            seconds: Some(seconds),
            objective: last.objective,
        }
    };
    let better = agents.iter().filter(|a| a.gain(true) > Some(0.0)).count();
    let table = vec![row(0, None, 0.004), row(1, Some(84), 0.021), row(2, Some(better), 0.083)];
    Report {
        title: "linear-100".into(),
        subtitle: "100 agents, 50 features, coordinate descent".into(),
        privacy: "No privacy: epsilon = infinity. Whoever sees the messages learns the models.".into(),
        private: None,
        score_name: "test accuracy".into(),
        higher_is_better: true,
        void: None,
        bound: Some(
            (0..=100).map(|t| (200.0 * f64::from(t), optimum + 16.0 * (-0.035 * f64::from(t)).exp())).collect(),
        ),
        optimum: Some(optimum),
        agents,
        edges: two_groups(n),
        learned: None,
        everyone: false,
        in_bits: false,
        runs,
        table,
        origins: Origins {
            reproduce: vec!["sottovoce train task.toml --out run --seed 1".into()],
            task: "name = \"linear-100\"\nalgorithm = \"coordinate-descent\"\n\n[run]\nwakes-per-agent = 200\n".into(),
            digest: "0123456789abcdef".repeat(4),
            digest_in_words: "Digest of the task, the models and the ledger",
            version: env!("CARGO_PKG_VERSION").into(),
        },
    }
}

fn samples(rate: f64, start: f64, end: f64, (from, to): (f64, f64), vectors: u64) -> Vec<Sample> {
    let sample = |t: u64| {
        let left = (-rate * t as f64).exp();
        Sample {
            wakes: 200 * t,
            vectors_sent: 200 * t * vectors,
            bytes_sent: 200 * t * vectors * 408,
            objective: Some(end + start * left),
            score_mean: Some(to + (from - to) * (-3.0 * rate * t as f64).exp()),
            score_std: Some(0.03 + 0.06 * left),
        }
    };
    (0..=100).map(sample).collect()
}

/// Agents are directions around two poles; similar ones are joined.
fn two_groups(n: u32) -> Vec<(u32, u32, f64)> {
    let direction = |i: u32| 1.5 * f64::from(i % 2) + 1.1 * noise(i, 5);
    let pairs = (0..n).flat_map(|a| (0..a).map(move |b| (a, b)));
    let weighted = pairs.map(|(a, b)| (a, b, (((direction(a) - direction(b)).cos() - 1.0) / 0.1).exp()));
    weighted.filter(|e| e.2 > 0.02).collect()
}

/// Something between -0.5 and 0.5.
fn noise(i: u32, k: u32) -> f64 {
    f64::from((i * 7919 + k * 104_729 + i * i * 31) % 1000) / 1000.0 - 0.5
}
