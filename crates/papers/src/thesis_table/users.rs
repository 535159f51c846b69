//! The data sets of Table 2.1: whose points, and which class.
//!
//! | folder | an agent is | class 1 | features |
//! |---|---|---|---|
//! | `har` | a person with a phone | sitting, against five other activities | 561 of a window of 2.56 seconds, and a constant |
//! | `vehicle` | a sensor beside a road | one of two kinds of vehicles | 100, and a constant |
//! | `computer_buyers` | a buyer | rates a computer above 5 of 10 | 13 of a computer, and a constant |
//! | `school` | a school | an exam score above 20 | 16 of a student, scaled to `[0, 1]`, and a constant |
//!
//! `har` is computed again from the raw recordings and `vehicle` is a small part of the paper's data, so their numbers cannot be
//! the paper's. None of the four is part of this project.

use serde::{Deserialize, Serialize};
use sottovoce_algorithms::Dataset;
use sottovoce_task::error::{Mistake, quote};
use sottovoce_task::rows::{self, At, read_csv};
use std::path::Path;

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Human activity recognition with smartphones, recomputed.
    Har,
    /// Vehicle sensors, a subset.
    Vehicle,
    /// The same with more of them to learn from.
    VehicleHalf,
    /// Computer buyers.
    Computer,
    /// Exam scores of schools.
    School,
}

impl Source {
    /// In the paper's order.
    pub const ALL: [Source; 5] = [Source::Har, Source::Vehicle, Source::VehicleHalf, Source::Computer, Source::School];

    /// As in names of claims.
    pub fn name(self) -> &'static str {
        match self {
            Source::Har => "har",
            Source::Vehicle => "vehicle",
            Source::VehicleHalf => "vehicle-half",
            Source::Computer => "computer",
            Source::School => "school",
        }
    }

    /// In plain words.
    pub fn label(self) -> &'static str {
        match self {
            Source::Har => "Human activity (recomputed)",
            Source::Vehicle => "Vehicle sensors (a subset)",
            Source::VehicleHalf => "Vehicle sensors, half of the subset to learn from",
            Source::Computer => "Computer buyers",
            Source::School => "School",
        }
    }

    /// Its folder below that of the data sets.
    pub fn folder(self) -> &'static str {
        match self {
            Source::Har => "har",
            Source::Vehicle | Source::VehicleHalf => "vehicle",
            Source::Computer => "computer_buyers",
            Source::School => "school",
        }
    }

    /// How many stumps the paper has.
    pub fn stumps(self) -> usize {
        match self {
            Source::Har => 1122,
            Source::Vehicle | Source::VehicleHalf => 1000,
            Source::Computer => 28,
            Source::School => 85,
        }
    }

    /// Whether the copy is the paper's, so that numbers can be compared and not only their order.
    pub fn is_the_papers(self) -> bool {
        matches!(self, Source::Computer | Source::School)
    }
}

/// Everyone's points.
#[derive(Clone, Debug, PartialEq)]
pub struct Users {
    /// The points, labels 1 and -1. The last feature is a constant 1.
    pub points: Dataset,
    /// By user and point: whether it is a training point of each published split, where splits are published.
    pub published: Option<Vec<Vec<Vec<bool>>>>,
}

impl Users {
    /// Reads a data set from its folder below the one for data sets.
    pub fn read(data: &Path, source: Source) -> Result<Self, Mistake> {
        let folder = data.join(source.folder());
        match source {
            Source::Har => har(&folder),
            Source::Vehicle | Source::VehicleHalf => vehicle(&folder),
            Source::Computer => computer(&folder),
            Source::School => school(&folder),
        }
    }
}

/// A class as a label.
fn label(positive: bool) -> f64 {
    if positive { 1.0 } else { -1.0 }
}

/// Points by user, in the order of the file.
struct Gathered {
    dimension: usize,
    features: Vec<Vec<f64>>,
    labels: Vec<Vec<f64>>,
}

impl Gathered {
    fn new(dimension: usize) -> Self {
        Gathered { dimension, features: Vec::new(), labels: Vec::new() }
    }

    fn push(&mut self, user: usize, features: impl Iterator<Item = f64>, positive: bool) {
        while self.labels.len() <= user {
            self.features.push(Vec::new());
            self.labels.push(Vec::new());
        }
        self.features[user].extend(features);
        self.labels[user].push(label(positive));
    }

    fn dataset(&self) -> Dataset {
        let mut data = Dataset::new(self.dimension);
        self.features.iter().zip(&self.labels).for_each(|(features, labels)| data.push_agent(features, labels));
        data
    }
}

/// The largest number of a user that a file may name: more are a mistake, and would be memory.
const USERS_MAX: f64 = 1e4;

/// `subject,activity,is_train_subject,f1..f561`; subjects from 1.
fn har(folder: &Path) -> Result<Users, Mistake> {
    const SITTING: f64 = 4.0;
    let file = folder.join("har_recomputed.csv.gz");
    let features = 561;
    let mut gathered = Gathered::new(features + 1);
    read_csv(
        &file.as_path().into(),
        |header| begins(header, &["subject", "activity", "is_train_subject", "f1"], 3 + features),
        |_, record, at| {
            let row = numbers(record, at)?;
            let user = user(row[0] - 1.0, at)?;
            gathered.push(user, row[3..].iter().copied().chain([1.0]), row[1] == SITTING);
            Ok(())
        },
    )?;
    Ok(Users { points: gathered.dataset(), published: None })
}

/// `sensor,y,f1..f100`; sensors from 0.
fn vehicle(folder: &Path) -> Result<Users, Mistake> {
    let file = folder.join("vehicle_subset.csv.gz");
    let features = 100;
    let mut gathered = Gathered::new(features + 1);
    read_csv(
        &file.as_path().into(),
        |header| begins(header, &["sensor", "y", "f1"], 2 + features),
        |_, record, at| {
            let row = numbers(record, at)?;
            gathered.push(user(row[0], at)?, row[2..].iter().copied().chain([1.0]), row[1] > 0.0);
            Ok(())
        },
    )?;
    Ok(Users { points: gathered.dataset(), published: None })
}

/// Which computer is what, and who likes which. Point k of every buyer is computer k.
fn computer(folder: &Path) -> Result<Users, Mistake> {
    const LIKED_ABOVE: f64 = 5.0;
    let file = folder.join("design_20x14.csv");
    let mut designs = Vec::new();
    read_csv(
        &file.as_path().into(),
        |header| begins(header, &["const", "hot_line"], 14),
        |_, record, at| {
            let mut design = numbers(record, at)?;
            // The constant is last, as everywhere.
            design.rotate_left(1);
            designs.push(design);
            Ok(())
        },
    )?;
    let mut gathered = Gathered::new(14);
    let mut buyer = 0;
    read_csv(
        &folder.join("likelihood_to_buy_190x20.csv").into(),
        |header| begins(header, &["product1"], designs.len()),
        |_, record, at| {
            for (design, rating) in designs.iter().zip(numbers(record, at)?) {
                gathered.push(buyer, design.iter().copied(), rating > LIKED_ABOVE);
            }
            buyer += 1;
            Ok(())
        },
    )?;
    Ok(Users { points: gathered.dataset(), published: None })
}

/// `school,exam_score,x1..x28`, of which x6 to x21 and the constant x28 are the student's; and ten published splits.
fn school(folder: &Path) -> Result<Users, Mistake> {
    const PASSED_ABOVE: f64 = 20.0;
    let columns: Vec<usize> = (6..=21).chain([28]).map(|x| x + 1).collect();
    let mut rows = Vec::new();
    let file = folder.join("school.csv.gz");
    read_csv(
        &file.as_path().into(),
        |header| begins(header, &["school", "exam_score", "x1"], 30),
        |_, record, at| {
            let row = numbers(record, at)?;
            rows.push((user(row[0], at)?, row));
            Ok(())
        },
    )?;
    let ends = |column: usize| {
        let values = rows.iter().map(|(_, row)| row[column]);
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(x), high.max(x)))
    };
    let ends: Vec<(f64, f64)> = columns.iter().map(|&column| ends(column)).collect();
    let mut gathered = Gathered::new(columns.len());
    for (school, row) in &rows {
        let scaled = columns.iter().zip(&ends).map(|(&column, &(low, high))| match high > low {
            true => (row[column] - low) / (high - low),
            // A constant has no range; it is one.
            false => 1.0,
        });
        gathered.push(*school, scaled, row[1] > PASSED_ABOVE);
    }
    let mut published = vec![Vec::new(); gathered.labels.len()];
    let (splits, mut schools) = (folder.join("splits.csv.gz"), rows.iter().map(|(school, _)| *school));
    read_csv(
        &splits.as_path().into(),
        |header| begins(header, &["split1_train"], 10),
        |_, record, at| {
            let school = schools.next().ok_or_else(|| at.mistake("more rows than school.csv.gz; accepted: as many"))?;
            published[school].push(numbers(record, at)?.iter().map(|&train| train == 1.0).collect());
            Ok(())
        },
    )?;
    if schools.next().is_some() {
        return Err(Mistake::file(&splits, "fewer rows than school.csv.gz; accepted: as many"));
    }
    Ok(Users { points: gathered.dataset(), published: Some(published) })
}

/// A header must begin with these names and have so many columns.
fn begins(header: &csv::ByteRecord, names: &[&str], columns: usize) -> Result<(), String> {
    let same = header.iter().zip(names).all(|(field, name)| field.trim_ascii() == name.as_bytes());
    match same && header.len() == columns {
        true => Ok(()),
        false => Err(format!("accepted: a header of {columns} columns that begins with {}", names.join(","))),
    }
}

fn numbers(record: &csv::ByteRecord, at: At<'_>) -> Result<Vec<f64>, Mistake> {
    let one = |field: &[u8]| {
        let value = rows::number(field).filter(|value| value.is_finite());
        value.ok_or_else(|| at.mistake(format!("{} is no number; accepted: finite numbers", quote(field))))
    };
    record.iter().map(one).collect()
}

fn user(number: f64, at: At<'_>) -> Result<usize, Mistake> {
    match (0.0..USERS_MAX).contains(&number) && number.fract() == 0.0 {
        true => Ok(number as usize),
        false => {
            Err(at.mistake("the first column is no whole number of a user; accepted: the numbers of the data set"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sottovoce_core::PeerId;

    /// A folder with these files.
    fn folder(source: Source, files: &[(&str, String)]) -> tempfile::TempDir {
        let place = tempfile::tempdir().expect("a folder");
        let own = place.path().join(source.folder());
        std::fs::create_dir(&own).expect("a folder");
        for (name, text) in files {
            let mut bytes = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            std::io::Write::write_all(&mut bytes, text.as_bytes()).expect("into memory");
            let packed = bytes.finish().expect("into memory");
            let bytes = if name.ends_with(".gz") { &packed } else { text.as_bytes() };
            std::fs::write(own.join(name), bytes).expect("written");
        }
        place
    }

    fn numbered(prefix: &str, count: usize) -> String {
        (1..=count).map(|k| format!(",{prefix}{k}")).collect()
    }

    #[test]
    fn schools_have_scaled_features_of_students_and_the_published_splits() {
        let row = |school: usize, score: usize, age: usize| {
            let features: String = (1..=28)
                .map(|x| if x == 6 { format!(",{age}") } else { format!(",{}", usize::from(x == 28)) })
                .collect();
            format!("{school},{score}{features}\n")
        };
        let text =
            format!("school,exam_score{}\n{}{}{}", numbered("x", 28), row(0, 21, 4), row(1, 20, 8), row(0, 5, 5));
        let header = (1..=10).map(|k| format!("split{k}_train")).collect::<Vec<_>>().join(",");
        let splits = |rows: &[&str]| {
            format!("{header}\n{}", rows.iter().map(|first| format!("{first}{}\n", ",1".repeat(9))).collect::<String>())
        };
        let place =
            folder(Source::School, &[("school.csv.gz", text.clone()), ("splits.csv.gz", splits(&["1", "0", "0"]))]);
        let users = Users::read(place.path(), Source::School).expect("good files");
        let first = users.points.points(PeerId(0));
        assert_eq!((first.dimension, first.labels), (17, &[1.0, -1.0][..]));
        assert_eq!(
            (first.features[0], first.features[17], users.points.points(PeerId(1)).features[0]),
            (0.0, 0.25, 1.0)
        );
        assert_eq!(first.features[16], 1.0, "a constant stays one");
        let published = users.published.expect("splits");
        assert_eq!(
            (published[0][0][0], published[0][1][0], published[1][0][0], published[1][0][9]),
            (true, false, false, true)
        );
        for (rows, what) in [(&["1", "0"][..], "fewer rows"), (&["1", "0", "1", "1"][..], "more rows")] {
            let place = folder(Source::School, &[("school.csv.gz", text.clone()), ("splits.csv.gz", splits(rows))]);
            let found = Users::read(place.path(), Source::School).expect_err(what).to_string();
            assert!(found.contains(what) && found.contains("accepted") && !found.contains('\n'), "{found}");
        }
    }

    #[test]
    fn buyers_like_what_they_rate_above_five_and_people_sit_or_do_not() {
        let design = format!("const,hot_line{}\n1{}\n1{}\n", numbered("a", 12), ",1".repeat(13), ",-1".repeat(13));
        let ratings = "product1,product2\n6,5\n0,10\n".to_owned();
        let place =
            folder(Source::Computer, &[("design_20x14.csv", design), ("likelihood_to_buy_190x20.csv", ratings)]);
        let users = Users::read(place.path(), Source::Computer).expect("good files");
        let labels = |user| users.points.points(PeerId(user)).labels.to_vec();
        assert_eq!((labels(0), labels(1)), (vec![1.0, -1.0], vec![-1.0, 1.0]));
        assert_eq!(users.points.points(PeerId(1)).features[26..28], [-1.0, 1.0]);

        let row = |activity: usize| format!("1,{activity},1{}\n", ",0.5".repeat(561));
        let text = format!("subject,activity,is_train_subject{}\n{}{}", numbered("f", 561), row(4), row(1));
        let place = folder(Source::Har, &[("har_recomputed.csv.gz", text)]);
        let users = Users::read(place.path(), Source::Har).expect("good files");
        assert_eq!(users.points.points(PeerId(0)).labels, [1.0, -1.0]);
        assert_eq!(users.points.points(PeerId(0)).features[560..562], [0.5, 1.0]);
    }

    #[test]
    fn a_damaged_file_is_named_in_one_line() {
        let header = format!("sensor,y{}\n", numbered("f", 100));
        let features = ",0".repeat(99);
        for (text, what) in [
            ("sensor,label\n".to_owned(), "accepted: a header of 102 columns that begins with sensor,y,f1"),
            (format!("{header}0,1,x{features}\n"), "line 2: \"x\" is no number"),
            (format!("{header}0,1,inf{features}\n"), "accepted: finite numbers"),
            (format!("{header}-1,1,0{features}\n"), "no whole number of a user"),
            (format!("{header}1e9,1,0{features}\n"), "no whole number of a user"),
        ] {
            let place = folder(Source::Vehicle, &[("vehicle_subset.csv.gz", text)]);
            let found = Users::read(place.path(), Source::Vehicle).expect_err(what).to_string();
            assert!(found.contains(what) && found.contains("vehicle_subset") && !found.contains('\n'), "{found}");
        }
    }
}
