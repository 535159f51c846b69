//! The quick versions of the papers' figures and tables, against the ranges of `papers/*/expected.toml`.

use sottovoce_papers::reproduce::{EXPERIMENTS, Experiment, Report, Settings, Verdict, find, run_one};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

fn settings(threads: usize) -> Settings {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    Settings { quick: true, threads, data }
}

fn run(experiment: &Experiment, settings: &Settings, out: &Path) -> Report {
    run_one(experiment, settings, out, &mut |_, _, _| ControlFlow::Continue(())).expect("it runs")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder).expect("a folder").flatten().map(|e| e.path()).collect();
    found.sort();
    found
}

#[test]
fn the_quick_versions_come_out_as_expected() {
    let place = tempfile::tempdir().expect("a folder");
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut wrong = Vec::new();
    for experiment in EXPERIMENTS {
        let settings = settings(threads);
        if let Some(folder) = experiment.missing(&settings.data) {
            eprintln!("SKIPPED {}: its data set is not at {}", experiment.name, folder.display());
            continue;
        }
        let report = run(experiment, &settings, place.path());
        assert!(!report.claims.is_empty(), "{} has no claims", experiment.name);
        for judged in report.claims.iter().filter(|judged| judged.verdict == Verdict::Failed) {
            wrong.push(format!("{}: {}: {} ({})", experiment.name, judged.claim.id, judged.why, judged.claim.ours));
        }
        let made = files(&place.path().join(experiment.name));
        let has = |ending: &str| made.iter().any(|file| file.extension().is_some_and(|found| found == ending));
        assert!(["csv", "json", "toml"].into_iter().all(has), "{made:?}");
        assert!(report.outcome.plots.is_empty() || has("svg") && has("png"), "{made:?}");
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    let page = std::fs::read_to_string(place.path().join("index.html")).expect("a page of all results");
    assert!(page.contains("not DP") && page.contains("figure-2c") && !page.contains("<script"));
}

/// Every legend, caption, table and claim that shows the paper's noise says what it is.
#[test]
fn whatever_shows_the_papers_noise_says_that_it_is_not_dp() {
    let place = tempfile::tempdir().expect("a folder");
    for name in ["figure-2c", "figure-4"] {
        let report = run(find(name).expect("an experiment"), &settings(2), place.path());
        for plot in report.outcome.plots.iter().filter(|plot| plot.name.contains("not-dp")) {
            assert!(plot.title.contains("not DP"), "{}", plot.title);
        }
        for claim in report.claims.iter().filter(|judged| judged.claim.id.contains("not-dp")) {
            assert!(claim.claim.says.contains("not DP"), "{}", claim.claim.says);
        }
        for table in report.outcome.tables.iter().filter(|table| table.columns.iter().any(|c| c == "calibration")) {
            let at = table.columns.iter().position(|c| c == "calibration").expect("a column");
            for row in &table.rows {
                assert!(row[at].contains("not DP") || row[at].contains("sound"), "{row:?}");
            }
        }
    }
}

#[test]
fn the_same_seeds_give_the_same_numbers_for_any_number_of_threads_and_after_a_stop() {
    let experiment = find("slides-hinge").expect("an experiment");
    let places: Vec<_> = (0..3).map(|_| tempfile::tempdir().expect("a folder")).collect();
    let first = run(experiment, &settings(1), places[0].path());
    let second = run(experiment, &settings(2), places[1].path());
    assert_eq!(first.outcome, second.outcome);
    // A run that is stopped half-way, and goes on.
    let mut left = 20;
    let stopped = run_one(experiment, &settings(1), places[2].path(), &mut |_, _, _| {
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(stopped.is_err());
    let parts = places[2].path().join("slides-hinge/parts.jsonl");
    let kept = std::fs::read_to_string(&parts).expect("finished parts are kept").lines().count();
    assert!(kept > 10, "{kept}");
    assert_eq!(first.outcome, run(experiment, &settings(1), places[2].path()).outcome);
    assert!(!parts.exists(), "a finished experiment needs no parts");
    // A finished one is taken over without any work.
    let mut asked = 0;
    let again = run_one(experiment, &settings(1), places[0].path(), &mut |_, _, _| {
        asked += 1;
        ControlFlow::Continue(())
    });
    assert_eq!(again.expect("it is there").outcome, first.outcome);
    assert_eq!(asked, 0);
}

#[test]
fn a_folder_that_holds_something_else_is_left_alone() {
    let place = tempfile::tempdir().expect("a folder");
    std::fs::write(place.path().join("thesis.tex"), "years of work").expect("written");
    let refused = run_one(&EXPERIMENTS[0], &settings(1), place.path(), &mut |_, _, _| ControlFlow::Continue(()));
    let refused = refused.expect_err("not ours").to_string();
    assert!(refused.contains("thesis.tex") && refused.contains("accepted"), "{refused}");
    assert_eq!(files(place.path()).len(), 1);
}

#[test]
fn a_data_set_that_is_not_there_is_named_in_one_line() {
    let place = tempfile::tempdir().expect("a folder");
    for name in ["table-1", "table-2.1"] {
        let experiment = find(name).expect("an experiment");
        // All but the last of its folders.
        for folder in &experiment.data[..experiment.data.len() - 1] {
            std::fs::create_dir_all(place.path().join("data").join(folder)).expect("a folder");
        }
        let settings = Settings { data: place.path().join("data"), ..settings(1) };
        let out = place.path().join("out");
        let refused = run_one(experiment, &settings, &out, &mut |_, _, _| ControlFlow::Continue(()));
        let refused = refused.expect_err("no data").to_string();
        let missing = experiment.data[experiment.data.len() - 1];
        assert!(
            refused.contains(missing) && refused.contains("accepted: --data") && !refused.contains('\n'),
            "{refused}"
        );
        assert!(!out.exists(), "nothing is written");
    }
}
