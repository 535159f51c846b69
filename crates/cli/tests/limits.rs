//! What `sottovoce train` writes is what the central solvers say, on random problems, through files and back.

use sottovoce_algorithms::{
    Problem,
    reference::{central, local::solitary_models, propagation::closed_form},
};
use sottovoce_core::{Coin, Rows};
use sottovoce_task::{load::load, task::Task};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

const PROBLEMS: u64 = 15;

/// How far a model may be from where it should end.
const ERROR_MAX: f64 = 1e-6;

fn between(coin: &mut Coin, low: f64, high: f64) -> f64 {
    low + (high - low) * coin.unit()
}

fn log_between(coin: &mut Coin, low: f64, high: f64) -> f64 {
    low * (high / low).powf(coin.unit())
}

/// Writes the data and the edges of a random problem and returns its task without the algorithm: 2 to 50 agents on a tree with
/// more edges on top, some of them without data; 1 to 8 features in [-1, 1]; a trade-off in [0.1, 10], lambda in
/// [0.001, 0.1] or 1/m.
fn draw(folder: &Path, seed: u64) -> String {
    let mut coin = Coin::new(seed, 0, 0);
    let (n, p) = (2 + coin.below(49), 1 + coin.below(8));
    let loss = ["logistic", "squared", "smoothed-hinge"][coin.below(3)];
    let truth: Vec<f64> = (0..p).map(|_| between(&mut coin, -3.0, 3.0)).collect();
    let mut points = "agent,label".to_owned();
    (0..p).for_each(|k| write!(points, ",x{k}").expect("memory"));
    points.push('\n');
    let mut edges = "a,b,weight\n".to_owned();
    for agent in 0..n {
        let size = if agent > 0 && coin.unit() < 0.2 { 0 } else { 1 + coin.below(20) };
        for _ in 0..size {
            let x: Vec<f64> = (0..p).map(|_| between(&mut coin, -1.0, 1.0)).collect();
            let y = x.iter().zip(&truth).map(|(x, t)| x * t).sum::<f64>() + between(&mut coin, -1.0, 1.0);
            let y = if loss == "squared" { y } else { y.signum() };
            write!(points, "{agent},{y}").expect("memory");
            x.iter().for_each(|x| write!(points, ",{x}").expect("memory"));
            points.push('\n');
        }
        let mut others: Vec<usize> = if agent == 0 { Vec::new() } else { vec![coin.below(agent)] };
        others.extend((0..agent).filter(|_| coin.unit() < 0.1));
        others.sort_unstable();
        others.dedup();
        for other in others {
            writeln!(edges, "{agent},{other},{}", between(&mut coin, 0.1, 1.1)).expect("memory");
        }
    }
    fs::write(folder.join("points.csv"), points).expect("written");
    fs::write(folder.join("edges.csv"), edges).expect("written");
    let lambda = if coin.unit() < 0.3 { "\"1/m\"".to_owned() } else { log_between(&mut coin, 1e-3, 0.1).to_string() };
    format!(
        "[data]\ntrain = \"points.csv\"\n[graph]\nedges = \"edges.csv\"\n[model]\nloss = \"{loss}\"\nregularization = \
         {lambda}\ntrade-off = {}\n[run]\ntolerance = 1e-9\nseed = {}\n",
        log_between(&mut coin, 0.1, 10.0),
        seed + 1
    )
}

/// Runs the program and returns the largest distance of a number in its `models.csv` from where it should be.
fn error(folder: &Path, algorithm: &str, task: &str, expected: &Rows, names: &[String]) -> f64 {
    fs::write(folder.join("task.toml"), format!("algorithm = \"{algorithm}\"\n{task}")).expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_sottovoce"))
        .current_dir(folder)
        .args(["train", "task.toml", "--out", "run", "--force", "--json"])
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(summary["quiet"], true, "{algorithm}: {summary}");
    let text = fs::read_to_string(folder.join("run/models.csv")).expect("models");
    let rows: Vec<(&str, Vec<f64>)> = text
        .lines()
        .skip(1)
        .map(|line| {
            let (name, numbers) = line.split_once(',').expect("a name and a model");
            (name, numbers.split(',').map(|number| number.parse().expect("a number")).collect())
        })
        .collect();
    assert!(rows.iter().map(|(name, _)| *name).eq(names.iter().map(String::as_str)), "everyone, in order");
    rows.iter()
        .enumerate()
        .flat_map(|(k, (_, model))| {
            assert_eq!(model.len(), expected.row_len(), "whole models");
            model.iter().zip(expected.row(k))
        })
        .fold(0.0, |most, (found, expected)| f64::max(most, (found - expected).abs()))
}

#[test]
fn models_in_a_run_folder_are_those_of_the_central_solvers() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = place.path();
    for seed in 0..PROBLEMS {
        let task = draw(folder, seed);
        fs::write(folder.join("task.toml"), format!("algorithm = \"local\"\n{task}")).expect("written");
        let loaded = load(&Task::read(&folder.join("task.toml")).expect("a task")).expect("a problem");
        let problem: &Problem = &loaded.problem;
        let minimum = central::minimum(problem);
        let propagated = closed_form(problem, &solitary_models(problem));
        let exact = format!("{task}[admm]\ninner = \"exact\"\n");
        for (algorithm, task, expected) in [
            ("coordinate-descent", &task, &minimum),
            ("admm", &exact, &minimum),
            ("model-propagation", &task, &propagated),
        ] {
            let error = error(folder, algorithm, task, expected, &loaded.names);
            assert!(error < ERROR_MAX, "problem {seed}, {algorithm}: {error:e}\n{task}");
        }
    }
}
