//! Table 2.1 of the thesis on the real data sets, where they are.

use sottovoce_core::PeerId;
use sottovoce_papers::thesis_table::split::{Rule, Split};
use sottovoce_papers::thesis_table::users::{Source, Users};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The folder of data sets, if this one is there; else it says loudly that the test is skipped.
fn data(test: &str, source: Source) -> Option<PathBuf> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = data.join(source.folder());
    if folder.is_dir() {
        return Some(data);
    }
    // Not by `eprintln`, which shows nothing when a test passes.
    let _ = writeln!(std::io::stderr(), "SKIPPED {test}: no data set in {}", folder.display());
    None
}

/// Users, points, features, and the share of class 1 in thousandths, as the page of the data sets says.
#[test]
fn the_data_sets_are_those_of_the_paper_or_said_not_to_be() {
    for (source, expected) in [
        (Source::Vehicle, (23, 1860, 101, 550)),
        (Source::Computer, (190, 3800, 14, 425)),
        (Source::School, (139, 15362, 17, 455)),
    ] {
        let Some(data) = data("the_data_sets_are_those_of_the_paper_or_said_not_to_be", source) else { continue };
        let points = Users::read(&data, source).expect("good files").points;
        let labels = (0..points.agents() as u32).flat_map(|user| points.points(PeerId(user)).labels);
        let positive = labels.filter(|label| **label > 0.0).count() as f64 / points.len() as f64;
        let found = (points.agents(), points.len(), points.dimension(), (1000.0 * positive).round() as u32);
        assert_eq!(found, expected, "{source:?}");
    }
}

#[test]
fn schools_have_the_training_points_of_the_published_splits() {
    let Some(data) = data("schools_have_the_training_points_of_the_published_splits", Source::School) else { return };
    let users = Users::read(&data, Source::School).expect("good files");
    for number in 1..=3 {
        let split = Split::new(&users, Rule::Published(number), 1);
        assert_eq!((split.parts.train.len(), split.parts.test.len()), (11472, 3890), "{number}");
    }
}
