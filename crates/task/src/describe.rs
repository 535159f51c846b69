//! A summary of a data set, before anything is learned from it.

use crate::data::{norm, read_leniently};
use crate::error::Mistake;
use crate::input::InputFile;
use crate::rows::Names;
use crate::task::Normalize;
use serde::Serialize;
use std::fmt;
use std::path::Path;

/// How many columns a warning names before it says "and more".
const COLUMNS_NAMED_MAX: usize = 5;

/// What a file of points holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// The file.
    pub file: String,
    /// How many agents have points in it.
    pub agents: usize,
    /// Points in all.
    pub points: usize,
    /// The fewest points of an agent.
    pub points_min: usize,
    /// The median number of points of an agent; the lower one of two.
    pub points_median: usize,
    /// The most points of an agent.
    pub points_max: usize,
    /// Feature columns.
    pub features: usize,
    /// What the labels are.
    pub labels: Labels,
    /// The largest |x|_1.
    pub norm_l1_max: f64,
    /// The largest |x|_2.
    pub norm_l2_max: f64,
    /// Columns with missing or non-finite values, which a task refuses, and how many.
    pub missing: Vec<(String, usize)>,
    /// Columns with one value only.
    pub constant: Vec<String>,
}

/// What labels are.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Labels {
    /// Two classes, written -1 and 1 or 0 and 1.
    Classes {
        /// The share of label 1.
        positive: f64,
    },
    /// Numbers.
    Numbers {
        /// The smallest.
        min: f64,
        /// The mean.
        mean: f64,
        /// The largest.
        max: f64,
    },
}

/// Summarizes a csv file, with the name of its column of ids if it has one, or a libsvm file with its file of agents.
pub fn describe(file: &Path, agents: Option<&Path>, record: Option<&str>) -> Result<Summary, Mistake> {
    let mut names = Names::default();
    let agents = agents.map(InputFile::from);
    let rows = read_leniently(&file.into(), agents.as_ref(), record, &mut names)?;
    let (points, features) = (rows.labels.len(), rows.columns.len());
    let mut sizes = vec![0usize; names.len()];
    rows.owners.iter().for_each(|&owner| sizes[owner as usize] += 1);
    sizes.sort_unstable();

    let mut columns = vec![Column { missing: 0, min: f64::INFINITY, max: f64::NEG_INFINITY }; features];
    let (mut norm_l1_max, mut norm_l2_max) = (0.0f64, 0.0f64);
    let mut known = Vec::with_capacity(features);
    for row in rows.features.chunks_exact(features) {
        known.clear();
        known.extend(row.iter().copied().filter(|x| x.is_finite()));
        norm_l1_max = norm_l1_max.max(norm(&known, Normalize::L1));
        norm_l2_max = norm_l2_max.max(norm(&known, Normalize::L2));
        for (column, &x) in columns.iter_mut().zip(row) {
            if x.is_finite() {
                column.min = column.min.min(x);
                column.max = column.max.max(x);
            } else {
                column.missing += 1;
            }
        }
    }
    let named = || rows.columns.iter().zip(&columns);
    Ok(Summary {
        file: file.display().to_string(),
        agents: sizes.len(),
        points,
        points_min: sizes.first().copied().unwrap_or(0),
        points_median: sizes.get(sizes.len().saturating_sub(1) / 2).copied().unwrap_or(0),
        points_max: sizes.last().copied().unwrap_or(0),
        features,
        labels: labels(&rows.labels),
        norm_l1_max,
        norm_l2_max,
        missing: named().filter(|(_, c)| c.missing > 0).map(|(name, c)| (name.clone(), c.missing)).collect(),
        constant: named().filter(|(_, c)| points > 1 && c.min >= c.max).map(|(name, _)| name.clone()).collect(),
    })
}

#[derive(Clone)]
struct Column {
    missing: usize,
    min: f64,
    max: f64,
}

fn labels(labels: &[f64]) -> Labels {
    let count = labels.len() as f64;
    if [-1.0, 0.0].iter().any(|&low| labels.iter().all(|&y| y == low || y == 1.0)) {
        return Labels::Classes { positive: labels.iter().filter(|&&y| y == 1.0).count() as f64 / count };
    }
    Labels::Numbers {
        min: labels.iter().copied().fold(f64::INFINITY, f64::min),
        mean: labels.iter().map(|y| y / count).sum(),
        max: labels.iter().copied().fold(f64::NEG_INFINITY, f64::max),
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { points_min, points_median, points_max, .. } = self;
        writeln!(f, "{}", self.file)?;
        writeln!(f, "  agents    {}", self.agents)?;
        let each = format!("per agent {points_min} to {points_max}, median {points_median}");
        writeln!(f, "  points    {} ({each})", self.points)?;
        writeln!(f, "  features  {}", self.features)?;
        match &self.labels {
            Labels::Classes { positive: 1.0 } => writeln!(f, "  labels    one class only, all positive")?,
            Labels::Classes { positive: 0.0 } => writeln!(f, "  labels    one class only, all negative")?,
            Labels::Classes { positive } => writeln!(f, "  labels    two classes, {:.1}% positive", 100.0 * positive)?,
            Labels::Numbers { min, mean, max } => {
                writeln!(f, "  labels    numbers from {min} to {max}, mean {mean:.4}")?;
            }
        }
        writeln!(f, "  norms     |x|_1 up to {:.4}, |x|_2 up to {:.4}", self.norm_l1_max, self.norm_l2_max)?;
        let missing: Vec<_> = self.missing.iter().map(|(name, count)| format!("{name:?} ({count})")).collect();
        let constant: Vec<_> = self.constant.iter().map(|name| format!("{name:?}")).collect();
        for (what, names) in [("train would refuse this file: values are missing in", missing), ("constant:", constant)]
        {
            if !names.is_empty() {
                let more = names.len().saturating_sub(COLUMNS_NAMED_MAX);
                let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
                writeln!(f, "  warning   {what} {}{tail}", names[..names.len() - more].join(", "))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary(text: &str) -> Summary {
        let place = tempfile::tempdir().expect("a folder");
        let file = place.path().join("points.csv");
        std::fs::write(&file, text).expect("written");
        describe(&file, None, None).expect("a summary")
    }

    #[test]
    fn a_summary_counts_what_is_there_and_what_is_missing() {
        let found = summary("agent,label,x,y,z\nb,1,3,,7\na,0,-4,4,7\nb,1,0,NaN,7\nb,0,1,NA,7\n");
        assert_eq!((found.agents, found.points, found.features), (2, 4, 3));
        assert_eq!((found.points_min, found.points_median, found.points_max), (1, 1, 3));
        assert_eq!(found.labels, Labels::Classes { positive: 0.5 });
        assert_eq!((found.norm_l1_max, found.norm_l2_max), (15.0, 9.0));
        assert_eq!(found.missing, [("y".to_owned(), 3)]);
        assert_eq!(found.constant, ["y", "z"]);
        let text = found.to_string();
        assert!(text.contains("train would refuse this file"), "{text}");
        assert!(text.contains("50.0% positive") && text.contains("missing in \"y\" (3)"), "{text}");
        assert!(text.contains("constant: \"y\", \"z\""), "{text}");
    }

    #[test]
    fn a_column_of_ids_is_no_feature_where_it_is_named() {
        let place = tempfile::tempdir().expect("a folder");
        let file = place.path().join("points.csv");
        std::fs::write(&file, "agent,patient,label,x\na,p 1,1,2\na,,0,3\n").expect("written");
        assert_eq!(describe(&file, None, Some("patient")).expect("a summary").features, 1);
        let said = describe(&file, None, None).expect_err("an unknown column").to_string();
        assert!(said.contains("column 2 is \"patient\"") && said.contains("--record"), "{said}");
    }

    #[test]
    fn labels_of_one_class_are_not_called_two() {
        for (label, says) in [("1", "one class only, all positive"), ("0", "all negative"), ("-1", "all negative")] {
            let text = summary(&format!("agent,label,x\na,{label},1\nb,{label},2\n")).to_string();
            assert!(text.contains(says) && !text.contains("two classes"), "{text}");
        }
    }

    #[test]
    fn labels_that_are_no_classes_have_a_range() {
        let found = summary("agent,label,x\na,1,1\na,0,2\na,-1,3\n");
        assert_eq!(found.labels, Labels::Numbers { min: -1.0, mean: 0.0, max: 1.0 });
        assert!(serde_json::to_string(&found).expect("json").contains("\"kind\":\"numbers\""));
    }
}
