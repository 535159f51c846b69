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

use crate::error::{Mistake, quote};
use crate::rows::{self, At, read_csv};
use serde::{Deserialize, Serialize};
use sottovoce_algorithms::Dataset;
use std::path::Path;

/// A column of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Human activity recognition with smartphones, recomputed.
    Har,
    /// Vehicle sensors, a subset.
    Vehicle,
    /// Computer buyers.
    Computer,
    /// Exam scores of schools.
    School,
}

impl Source {
    /// In the paper's order.
    pub const ALL: [Source; 4] = [Source::Har, Source::Vehicle, Source::Computer, Source::School];

    /// As in names of claims.
    pub fn name(self) -> &'static str {
        match self {
            Source::Har => "har",
            Source::Vehicle => "vehicle",
            Source::Computer => "computer",
            Source::School => "school",
        }
    }

    /// In plain words.
    pub fn label(self) -> &'static str {
        match self {
            Source::Har => "Human activity (recomputed)",
            Source::Vehicle => "Vehicle sensors (a subset)",
            Source::Computer => "Computer buyers",
            Source::School => "School",
        }
    }

    /// Its folder below that of the data sets.
    pub fn folder(self) -> &'static str {
        match self {
            Source::Har => "har",
            Source::Vehicle => "vehicle",
            Source::Computer => "computer_buyers",
            Source::School => "school",
        }
    }

    /// How many stumps the paper has.
    pub fn stumps(self) -> usize {
        match self {
            Source::Har => 1122,
            Source::Vehicle => 1000,
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
    /// The points, labels 1 and -1.
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
            Source::Vehicle => vehicle(&folder),
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
        &file,
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
        &file,
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
        &file,
        |header| begins(header, &["const", "hot_line"], 14),
        |_, record, at| {
            designs.push(numbers(record, at)?);
            Ok(())
        },
    )?;
    let mut gathered = Gathered::new(14);
    let mut buyer = 0;
    read_csv(
        &folder.join("likelihood_to_buy_190x20.csv"),
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
        &file,
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
        &splits,
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
