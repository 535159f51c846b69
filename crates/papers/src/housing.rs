//! California housing (Pace and Barry 1997) as Figure 4.1 of the thesis has it: which half of the state, from eight columns. It is no part of this project.
//!
//! Columns are standardized, rows brought to norm one, and a constant is appended. Four fifths of each class are training points; members get so many each.

use sottovoce_algorithms::{Dataset, Loss};
use sottovoce_core::{Coin, PeerId};
use sottovoce_task::error::Mistake;
use sottovoce_task::rows::{At, read_csv};
use std::path::Path;

/// The data set.
pub struct Housing {
    /// Points by member.
    pub train: Dataset,
    test: Vec<(Vec<f64>, f64)>,
}

/// Where the label is, and which columns tell it: all but the longitude.
const COLUMNS: std::ops::Range<usize> = 1..9;
const LABEL: usize = 11;

impl Housing {
    /// Reads it from its folder below the one for data sets.
    pub fn read(data: &Path, seed: u64, members: usize, points_each: usize) -> Result<Housing, Mistake> {
        let file = data.join("california_housing").join("cal_housing.csv.gz");
        let mut rows: Vec<(Vec<f64>, f64)> = Vec::new();
        read_csv(
            &file.as_path().into(),
            |header| match header.len() == 12 && &header[0] == b"longitude" && &header[LABEL] == b"longitude_below_mean"
            {
                true => Ok(()),
                false => Err("accepted: longitude, latitude, .., longitude_below_mean".to_owned()),
            },
            |_, record, at| {
                let number = |k: usize| number(&record[k], at);
                let features = COLUMNS.map(number).collect::<Result<Vec<f64>, Mistake>>()?;
                rows.push((features, if number(LABEL)? > 0.5 { 1.0 } else { -1.0 }));
                Ok(())
            },
        )?;
        if rows.len() * 4 / 5 < members * points_each + 1 {
            let what = format!("{} rows; accepted: enough for {members} members with {points_each} each", rows.len());
            return Err(Mistake::file(&file, what));
        }
        prepare(&mut rows);
        Ok(divide(rows, seed, members, points_each))
    }

    /// Coordinates of a model.
    pub fn dimension(&self) -> usize {
        self.train.dimension()
    }

    /// A bound on the norm of a point: one, and the constant.
    pub fn bound(&self) -> f64 {
        2f64.sqrt()
    }

    /// The mean loss over the first so many training points, in an order that has nothing to do with members.
    pub fn objective(&self, model: &[f64], sample: usize) -> f64 {
        let agents = self.train.agents();
        let points = (0..sample).map(|k| {
            let points = self.train.points(PeerId((k % agents) as u32));
            let at = k / agents;
            let (from, to) = (at * points.dimension, (at + 1) * points.dimension);
            (&points.features[from..to], points.labels[at])
        });
        let losses = points.map(|(x, y)| Loss::Logistic.value(x.iter().zip(model).map(|(x, w)| x * w).sum(), y));
        losses.sum::<f64>() / sample as f64
    }

    /// The share of test points on the right side.
    pub fn accuracy(&self, model: &[f64]) -> f64 {
        let right = |(x, y): &&(Vec<f64>, f64)| x.iter().zip(model).map(|(x, w)| x * w).sum::<f64>() * y > 0.0;
        self.test.iter().filter(right).count() as f64 / self.test.len() as f64
    }
}

fn number(field: &[u8], at: At<'_>) -> Result<f64, Mistake> {
    let text = std::str::from_utf8(field).ok().and_then(|text| text.trim().parse::<f64>().ok());
    text.filter(|number| number.is_finite()).ok_or_else(|| at.mistake("a field is no number"))
}

/// Standardizes columns, brings rows to norm one, appends a constant.
fn prepare(rows: &mut [(Vec<f64>, f64)]) {
    let count = rows.len() as f64;
    for k in 0..COLUMNS.len() {
        let mean = rows.iter().map(|(x, _)| x[k]).sum::<f64>() / count;
        let variance = rows.iter().map(|(x, _)| (x[k] - mean) * (x[k] - mean)).sum::<f64>() / count;
        rows.iter_mut().for_each(|(x, _)| x[k] = (x[k] - mean) / variance.sqrt());
    }
    for (x, _) in rows {
        let length = x.iter().map(|x| x * x).sum::<f64>().sqrt();
        x.iter_mut().for_each(|x| *x /= length);
        x.push(1.0);
    }
}

/// Four fifths of each class to learn from, in random order.
fn divide(rows: Vec<(Vec<f64>, f64)>, seed: u64, members: usize, points_each: usize) -> Housing {
    let mut coin = Coin::new(seed, 0, 0);
    let (mut train, mut test) = (Vec::new(), Vec::new());
    let (above, below): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(_, y)| *y > 0.0);
    for mut class in [above, below] {
        shuffle(&mut class, &mut coin);
        let rest = class.split_off(class.len() * 4 / 5);
        train.extend(class);
        test.extend(rest);
    }
    shuffle(&mut train, &mut coin);
    let mut data = Dataset::new(COLUMNS.len() + 1);
    for part in train.chunks_exact(points_each).take(members) {
        let features: Vec<f64> = part.iter().flat_map(|(x, _)| x.iter().copied()).collect();
        let labels: Vec<f64> = part.iter().map(|(_, y)| *y).collect();
        data.push_agent(&features, &labels);
    }
    Housing { train: data, test }
}

fn shuffle<T>(items: &mut [T], coin: &mut Coin) {
    for k in (1..items.len()).rev() {
        items.swap(k, coin.below(k + 1));
    }
}
