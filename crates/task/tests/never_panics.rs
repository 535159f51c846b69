//! Random bytes as any of a user's files: a result or one line, never a panic.

mod support;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use sottovoce_task::describe::describe;
use sottovoce_task::task::Task;
use std::path::Path;
use support::{EDGES, TASK, TRAIN, loaded};

/// Bytes that are all noise, or a good file with a few bytes changed, dropped or repeated.
fn spoiled(good: &'static str) -> impl Strategy<Value = Vec<u8>> {
    let pieces = prop::sample::select(vec![
        "\n",
        ",",
        "\"",
        "=",
        "[",
        "]",
        "{",
        "}",
        ".",
        " ",
        "\n# note\n",
        "nan",
        "-inf",
        "1e999",
        "0",
        "-1",
        "\u{feff}",
        "[[graph]]",
        "'''",
        "#",
        "kind = \"knn\"",
        "kind = \"torus\"\n",
        "9999999999999999999999",
        "agent",
        "\0",
        "\r",
        "é",
    ]);
    let pieces = prop_oneof![
        9 => pieces.prop_map(|text| text.as_bytes().to_vec()),
        1 => any::<u8>().prop_map(|byte| vec![byte]),
    ];
    let edit = (any::<prop::sample::Index>(), 0usize..4, pieces);
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        prop::collection::vec(edit, 0..5).prop_map(move |edits| {
            let mut bytes = good.as_bytes().to_vec();
            for (place, drop, piece) in edits {
                let from = place.index(bytes.len() + 1);
                let to = (from + drop).min(bytes.len());
                bytes.splice(from..to, piece);
            }
            bytes
        }),
    ]
}

fn one_line<T>(result: Result<T, sottovoce_task::error::Mistake>) {
    if let Err(mistake) = result {
        let text = mistake.to_string();
        assert!(!text.contains('\n') && !text.is_empty(), "{text:?}");
    }
}

const RICH: &str = "name = \"t\"\nalgorithm = \"admm\"\n[data]\ntrain = \"train.csv\"\nsplit = 0.5\nnormalize = \"l2\"\n[graph]\n\
    kind = \"watts-strogatz\"\nneighbours = 1\n[model]\nloss = \"squared\"\nregularization = \"1/m\"\n[admm]\ninner = 5\n\
    [run]\ntolerance = 1e-3\n[faults]\ndelay = { mean = 1 }\npartitions = [{ from = 1, to = 2 }]\n";

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..ProptestConfig::default() })]

    #[test]
    fn a_task_file_of_any_bytes_is_a_task_or_a_mistake(bytes in spoiled(RICH)) {
        let text = String::from_utf8_lossy(&bytes);
        let parsed = Task::parse(&text, Path::new("/t/task.toml"));
        if let Ok(task) = &parsed {
            // What is accepted is finite, and writes and reads back.
            prop_assert_eq!(&Task::parse(&task.to_toml(), Path::new("/t/task.toml")).expect("reads back"), task);
        }
        one_line(parsed);
        one_line(loaded(&[("task.toml", &bytes)]));
    }

    #[test]
    fn a_csv_of_any_bytes_is_data_or_a_mistake(train in spoiled(TRAIN), edges in spoiled(EDGES)) {
        one_line(loaded(&[("train.csv", &train)]));
        one_line(loaded(&[("edges.csv", &edges)]));
        let place = tempfile::tempdir().expect("a folder");
        let file = place.path().join("train.csv");
        std::fs::write(&file, &train).expect("written");
        one_line(describe(&file, None, None).map(|summary| summary.to_string()));
    }

    #[test]
    fn files_behind_other_kinds_are_data_or_a_mistake(
        train in spoiled("1 1:0.5 2:2\n-1 1:3 4:1\n"), agents in spoiled("ann\nbob\n"), vectors in spoiled("agent,v\nann,1\nbob,2\n"),
        squashed in spoiled(TRAIN),
    ) {
        let svm = TASK.replace("train = \"train.csv\"", "train = \"t.svm\"\nagents = \"names\"");
        one_line(loaded(&[("task.toml", svm.as_bytes()), ("t.svm", &train), ("names", &agents)]));
        let similar = TASK.replace("edges = \"edges.csv\"", "kind = \"similarity\"\nvectors = \"v.csv\"");
        one_line(loaded(&[("task.toml", similar.as_bytes()), ("v.csv", &vectors)]));
        let knn = TASK.replace("edges = \"edges.csv\"", "kind = \"knn\"\nneighbours = 1\n[model]\nloss = \"squared\"");
        one_line(loaded(&[("task.toml", knn.as_bytes()), ("train.csv", &squashed)]));
        let gz = TASK.replace("train.csv", "train.csv.gz");
        one_line(loaded(&[("task.toml", gz.as_bytes()), ("train.csv.gz", &squashed)]));
    }
}
