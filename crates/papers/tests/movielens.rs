//! Table 1 of the 2018 paper on the real ratings, which are no part of this project. `SOTTOVOCE_MOVIELENS` names their folder; without it
//! they are looked for where the table's command looks. Where they are not, these tests say so and do nothing.

use sottovoce_papers::movielens::ratings::MovieLens;
use sottovoce_papers::movielens::{FOLDER, Method, Options, Setting, Table1, table_1, tune::tune, values::Values};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// The folder of the ratings, or nothing and a line that says whose test did not run.
fn folder(test: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::var_os("SOTTOVOCE_MOVIELENS").map_or_else(|| root.join(FOLDER), PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    // Written past the capture of tests' output: a test that did nothing must not look like one that passed.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: no MovieLens-100K in {}", folder.display());
    None
}

fn made(folder: &Path, options: &Options) -> Table1 {
    table_1(folder, options, &mut |_, _| ControlFlow::Continue(())).expect("good files")
}

fn mean(table: &Table1, setting: Setting, method: Method, epsilon: Option<f64>) -> f64 {
    table.cell(setting, method, epsilon).expect("a cell").mean()
}

#[test]
fn one_run_of_table_1_is_in_its_ranges() {
    let Some(folder) = folder("one_run_of_table_1_is_in_its_ranges") else { return };
    let table = made(&folder, &Options::quick(2));
    assert_eq!(table.users, 943);
    check(&table);
}

/// What must be so in one run as in five.
fn check(table: &Table1) {
    let paper = |method, epsilon| mean(table, Setting::Paper, method, epsilon);
    let (alone, tuned, together) =
        (paper(Method::LocalOneOverM, None), paper(Method::Local, None), paper(Method::Descent, None));
    assert!((0.90..0.935).contains(&together), "coordinate descent: {together}");
    assert!(together < tuned && tuned < alone && alone < 1.0, "local models: {tuned} and {alone}");
    for method in [Method::PaperNoise, Method::Laplace, Method::Gaussian] {
        let [one, half, tenth] = [1.0, 0.5, 0.1].map(|epsilon| paper(method, Some(epsilon)));
        assert!(one < half && half < tenth && tenth < 1.05, "{method:?}: {one} {half} {tenth}");
        assert!(one > together, "{method:?}: noise costs something");
    }
    let sound = mean(table, Setting::Sound, Method::Descent, None);
    assert!((0.96..1.0).contains(&sound), "coordinate descent with public features: {sound}");
    for verdict in table.verdicts() {
        assert!(verdict.holds, "{}: {} for {}", verdict.what, verdict.measured, verdict.bound);
    }
}

#[test]
#[ignore = "five runs: part of the soak"]
fn the_whole_of_table_1_is_what_the_page_says() {
    let Some(folder) = folder("the_whole_of_table_1_is_what_the_page_says") else { return };
    let table = made(&folder, &Options::full(2));
    check(&table);
    let page = include_str!("../../../papers/2018-aistats/table-1.md");
    for line in table.markdown().lines() {
        assert!(page.lines().any(|other| other == line), "not on the page: {line}");
    }
}

#[test]
#[ignore = "two minutes: part of the soak"]
fn tuning_again_finds_the_values_of_the_file() {
    let Some(folder) = folder("tuning_again_finds_the_values_of_the_file") else { return };
    let data = MovieLens::read(&folder).expect("good files");
    let values = tune(&data, 2, &mut |_, _| ControlFlow::Continue(())).expect("nobody stops it");
    assert_eq!(values, Values::tuned());
}
