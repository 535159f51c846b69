//! svmguide3 (LIBSVM) as Figure 3.4 of the thesis has it: a score and a class for each point. It is no part of this project.
//!
//! The score is that of the mean of one class minus the mean of the other, over the points that are kept.

use sottovoce_task::error::Mistake;
use sottovoce_task::rows::read_csv;
use std::path::Path;

/// Columns of the file: which part, the class, and the features.
const COLUMNS: usize = 23;

/// The first so many points, of which each is a score and a class, 1 or -1.
pub fn scored(data: &Path, points: usize) -> Result<Vec<(f64, f64)>, Mistake> {
    let file = data.join("svmguide3").join("svmguide3.csv.gz");
    let mut rows: Vec<(Vec<f64>, f64)> = Vec::new();
    read_csv(
        &file.as_path().into(),
        |header| match header.len() == COLUMNS && &header[0] == b"split" && &header[1] == b"y" {
            true => Ok(()),
            false => Err("accepted: split, y, f1, .., f21".to_owned()),
        },
        |_, record, at| {
            let number = |k: usize| {
                let text = std::str::from_utf8(&record[k]).ok().and_then(|text| text.trim().parse::<f64>().ok());
                text.filter(|number| number.is_finite()).ok_or_else(|| at.mistake("a field is no number"))
            };
            if rows.len() < points {
                let features = (2..COLUMNS).map(number).collect::<Result<Vec<f64>, Mistake>>()?;
                rows.push((features, if number(1)? > 0.0 { 1.0 } else { -1.0 }));
            }
            Ok(())
        },
    )?;
    let of = |class: f64| rows.iter().filter(move |(_, y)| *y == class);
    if rows.len() < points || of(1.0).next().is_none() || of(-1.0).next().is_none() {
        let what = format!("{} rows; accepted: {points} rows or more, of both classes", rows.len());
        return Err(Mistake::file(&file, what));
    }
    let mean = |class: f64, k: usize| of(class).map(|(x, _)| x[k]).sum::<f64>() / of(class).count() as f64;
    let direction: Vec<f64> = (0..COLUMNS - 2).map(|k| mean(1.0, k) - mean(-1.0, k)).collect();
    let score = |x: &[f64]| x.iter().zip(&direction).map(|(x, w)| x * w).sum();
    Ok(rows.iter().map(|(x, y)| (score(x), *y)).collect())
}
