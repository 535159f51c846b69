//! What a peer's model says of new rows, for its owner.
//!
//! # Privacy
//! A prediction of a home model is made of exact data and charged to nobody: d questions along the axes tell the model, and the model
//! tells about records. So where a task promises privacy, what is printed of a model that was never sent is coarse: the label, and a
//! probability with two decimals; a number with two significant digits. Questions are shrunk to the task's feature bound, so that a question a
//! million times as long does not buy six more digits. **None of this is protection**: whoever may ask often enough, around the places where
//! a digit changes, learns the model as well as they like. It keeps a careless file of predictions from being the model itself. Predictions of a
//! home model must stay with its owner.
//!
//! What was sent is known to others, and what follows from it is post-processing: its predictions are exact.

use super::problem::PeerTask;
use csv::ByteRecord;
use sottovoce_algorithms::kernel::dot;
use sottovoce_algorithms::stumps::Stumps;
use sottovoce_task::error::{Mistake, quote};
use sottovoce_task::private_rows::{self, Moved};
use sottovoce_task::task::Normalize;
use sottovoce_task::{boosted, data, rows};
use std::cell::OnceCell;
use std::fmt::Write;
use std::path::Path;

/// What an owner should know who looks at predictions of a model that was never sent.
pub const STAY_AT_HOME: &str = "these predictions are made of exact data and charged to nobody; rounding them is NO protection. Keep them with \
                                the owner of the data, or use --broadcast";

/// Significant digits of a number that was computed from a home model. Labels have no public scale that decimals could be counted from.
const DIGITS: usize = 2;

/// How much of a prediction is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Label and a probability with two decimals; a number with two significant digits.
    Coarse,
    /// Label, probability and margin; a number. To the last bit.
    Exact,
}

impl PeerTask {
    /// How much may be printed of the model that the owner uses: everything without privacy, because exact models leave the peer anyway.
    pub fn detail(&self) -> Detail {
        if self.loaded.task.privacy.is_some() { Detail::Coarse } else { Detail::Exact }
    }

    /// Predictions for each row of a csv file, as csv. It has the task's features by name, in any order; `agent`, `label` and the column of
    /// ids are not looked at. In a private task features are read by the rules of its training rows, and what was moved is returned.
    pub fn predictions(&self, model: &[f64], detail: Detail, file: &Path) -> Result<(String, Option<Moved>), Mistake> {
        let task = &self.loaded.task;
        let plain = self.loaded.plain.as_deref();
        let all_names = plain.map_or(&self.loaded.feature_names, |plain| &plain.feature_names);
        let features = all_names.len() - usize::from(task.model.intercept.is_some());
        let names = &all_names[..features];
        let boosting = task.boosting.filter(|_| plain.is_some());
        let stumps = boosting.and_then(|boosting| boosted::stumps(&boosting, all_names.len()));
        let mut answers = Vec::new();
        let classification = task.model.loss.is_classification();
        let mut text = String::from(header_of(classification, detail));
        let limit = data::Limit::of(task);
        // Features are filled in row by row; the constant stays.
        let mut x = vec![task.model.intercept.unwrap_or(0.0); all_names.len()];
        let mut answer = |row: &[f64]| {
            x[..features].copy_from_slice(row);
            if task.data.normalize != Normalize::None {
                data::shrink(&mut x[..features], task.data.normalize);
            }
            // What points had to undergo before anything was learned from them, questions do, too.
            if let Some(limit) = limit {
                limit.apply(&mut x[..features]);
            }
            let margin = margin(&x, model, stumps.as_ref(), &mut answers);
            text += &line(margin, classification, detail);
        };
        let record = task.data.record.as_deref();
        let moved = match task.privacy {
            Some(_) => {
                Some(private_rows::read_questions(&file.into(), |header| places(header, names, record), answer)?)
            }
            None => {
                read_strictly(file, |header| places(header, names, record), &mut answer)?;
                None
            }
        };
        Ok((text, moved))
    }
}

/// Where each feature stands in a header.
fn places(header: &ByteRecord, names: &[String], record: Option<&str>) -> Result<Vec<usize>, String> {
    let header: Vec<&[u8]> = header.iter().map(|name| name.trim_ascii()).collect();
    let known = |name: &&[u8]| names.iter().any(|known| known.as_bytes() == *name);
    let record = record.unwrap_or("agent").as_bytes();
    let other = |name: &&&[u8]| !known(name) && ![b"agent".as_slice(), b"label", record].contains(name);
    if let Some(other) = header.iter().find(other) {
        return Err(format!("column {} is no feature of the task; accepted: {}", quote(other), names.join(",")));
    }
    let place = |name: &String| {
        let place = header.iter().position(|known| *known == name.as_bytes());
        place.ok_or_else(|| format!("no column {}; accepted: {}", quote(name.as_bytes()), names.join(",")))
    };
    names.iter().map(place).collect()
}

/// Reads rows of finite numbers, and refuses others.
fn read_strictly(
    file: &Path,
    find: impl Fn(&ByteRecord) -> Result<Vec<usize>, String>,
    each: &mut dyn FnMut(&[f64]),
) -> Result<(), Mistake> {
    let places = OnceCell::new();
    let mut features = Vec::new();
    rows::read_csv(
        &file.into(),
        |header| {
            let _ = places.set(find(header)?);
            Ok(())
        },
        |header, record, at| {
            features.clear();
            for &place in places.get().into_iter().flatten() {
                let read = rows::number(&record[place]).filter(|value| value.is_finite());
                features.push(read.ok_or_else(|| {
                    let (column, found) = (quote(&header[place]), quote(&record[place]));
                    at.mistake(format!("column {column} is {found}; accepted: a finite number"))
                })?);
            }
            each(&features);
            Ok(())
        },
    )
}

fn header_of(classification: bool, detail: Detail) -> &'static str {
    match (classification, detail) {
        (true, Detail::Coarse) => "prediction,probability\n",
        (true, Detail::Exact) => "prediction,probability,margin\n",
        (false, _) => "prediction\n",
    }
}

fn margin(x: &[f64], model: &[f64], stumps: Option<&Stumps>, answers: &mut Vec<f64>) -> f64 {
    let Some(stumps) = stumps else { return dot(x, model) };
    answers.clear();
    stumps.answers(x, answers);
    dot(answers, model)
}

/// One prediction.
fn line(margin: f64, classification: bool, detail: Detail) -> String {
    let mut text = String::new();
    let label = if margin >= 0.0 { 1 } else { -1 };
    // Of the label 1: the logistic function of the margin, which the logistic loss means; for other losses just a scale from 0 to 1.
    let probability = 1.0 / (1.0 + libm::exp(-margin));
    let _ = match (classification, detail) {
        (true, Detail::Coarse) => writeln!(text, "{label},{probability:.2}"),
        (true, Detail::Exact) => writeln!(text, "{label},{probability:.2},{margin}"),
        (false, Detail::Coarse) => writeln!(text, "{}", coarse(margin)),
        (false, Detail::Exact) => writeln!(text, "{margin}"),
    };
    text
}

/// A number with two significant digits.
fn coarse(value: f64) -> f64 {
    format!("{value:.*e}", DIGITS - 1).parse().expect("a number that was just written")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coarse_predictions_have_two_digits_and_exact_ones_all() {
        assert_eq!(line(0.123_456_789, true, Detail::Coarse), "1,0.53\n");
        assert_eq!(line(-5.25, true, Detail::Exact), "-1,0.01,-5.25\n");
        assert_eq!(line(1e6, true, Detail::Coarse), "1,1.00\n");
        for (value, written) in [(0.123_456, "0.12"), (-98_765.4, "-99000"), (0.0, "0"), (1.05e-7, "0.0000001")] {
            let found = line(value, false, Detail::Coarse);
            let digits = found.trim().trim_start_matches(['-', '0', '.']).trim_end_matches('0').len();
            assert!(digits <= 2, "{found}");
            assert!((coarse(value) - value).abs() <= 0.05 * value.abs(), "{found} for {value}, about {written}");
        }
        assert_eq!(line(0.123_456_789, false, Detail::Exact), "0.123456789\n");
    }
}
