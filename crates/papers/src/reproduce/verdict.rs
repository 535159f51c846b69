//! Whether claims come out as a paper's `expected.toml` says.

use super::outcome::{Claim, ExperimentOutcome};
use super::{Experiment, parameters};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is expected of one claim.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// Whether it holds in this reproduction.
    pub holds: bool,
    /// The same for the quick version, where a smaller problem makes a difference.
    #[serde(rename = "holds-quick")]
    pub holds_quick: Option<bool>,
    /// The range of its value in the quick version.
    pub quick: [f64; 2],
    /// The range of its value in the full version.
    pub full: [f64; 2],
    /// Why it does not hold, for one that does not.
    pub why: Option<String>,
}

/// How a claim came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It holds.
    Holds,
    /// It does not, and the paper's README says why.
    KnownMiss,
    /// It came out otherwise than expected, or its value is out of its range.
    Failed,
}

impl Verdict {
    /// In tables.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::KnownMiss => "does not hold (known)",
            Verdict::Failed => "FAILED",
        }
    }
}

/// A claim with its verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// The claim.
    #[serde(flatten)]
    pub claim: Claim,
    /// How it came out.
    pub verdict: Verdict,
    /// Why it does not hold, or what was expected of it.
    pub why: String,
}

/// What is expected of the claims of all experiments of a paper, by experiment and claim.
pub fn expectations(text: &str) -> Result<BTreeMap<String, BTreeMap<String, Expected>>, toml::de::Error> {
    parameters(text, false)
}

/// Judges the claims of an experiment.
pub fn judge(experiment: &Experiment, outcome: &ExperimentOutcome, quick: bool) -> Vec<Judged> {
    let all = expectations(experiment.paper.expected).expect("the papers' expected.toml are tested");
    let none = BTreeMap::new();
    let expected = all.get(experiment.name).unwrap_or(&none);
    outcome.claims.iter().map(|claim| judge_one(claim, expected.get(&claim.id), quick)).collect()
}

fn judge_one(claim: &Claim, expected: Option<&Expected>, quick: bool) -> Judged {
    let (verdict, why) = match expected {
        None => (Verdict::Failed, "expected.toml does not name this claim".to_owned()),
        Some(expected) => {
            let [low, high] = if quick { expected.quick } else { expected.full };
            let should_hold = expected.holds_quick.filter(|_| quick).unwrap_or(expected.holds);
            if claim.holds != should_hold {
                let should = if should_hold { "should hold" } else { "was not expected to hold" };
                (Verdict::Failed, format!("it {should}; its value is {}", claim.value))
            } else if !(low <= claim.value && claim.value <= high) {
                (Verdict::Failed, format!("its value is {}, expected from {low} to {high}", claim.value))
            } else if claim.holds {
                (Verdict::Holds, String::new())
            } else {
                (Verdict::KnownMiss, expected.why.clone().unwrap_or_default())
            }
        }
    };
    Judged { claim: claim.clone(), verdict, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_fails_when_it_comes_out_otherwise_or_out_of_range() {
        let claim = |value: f64, holds: bool| Claim::new("a", "b", "c", String::new(), value, holds);
        let expected = |holds: bool| {
            let (quick, full) = ([0.0, 1.0], [0.5, 1.0]);
            Expected { holds, holds_quick: None, quick, full, why: Some("so".into()) }
        };
        let verdict = |claim: &Claim, expected: Option<&Expected>, quick| judge_one(claim, expected, quick).verdict;
        assert_eq!(verdict(&claim(0.2, true), Some(&expected(true)), true), Verdict::Holds);
        assert_eq!(verdict(&claim(0.2, true), Some(&expected(true)), false), Verdict::Failed, "out of range");
        assert_eq!(verdict(&claim(0.7, false), Some(&expected(true)), false), Verdict::Failed, "should hold");
        assert_eq!(verdict(&claim(0.7, true), Some(&expected(false)), false), Verdict::Failed, "better than known");
        assert_eq!(verdict(&claim(0.7, false), Some(&expected(false)), false), Verdict::KnownMiss);
        assert_eq!(verdict(&claim(0.7, true), None, false), Verdict::Failed, "nobody expects it");
        let small = Expected { holds_quick: Some(false), ..expected(true) };
        assert_eq!(verdict(&claim(0.7, false), Some(&small), true), Verdict::KnownMiss);
        assert_eq!(verdict(&claim(0.7, false), Some(&small), false), Verdict::Failed);
    }

    #[test]
    fn every_miss_that_is_known_is_explained_and_every_experiment_has_its_claims_named() {
        for experiment in super::super::EXPERIMENTS {
            let all = expectations(experiment.paper.expected).expect("expected.toml");
            let of_it = all.get(experiment.name).unwrap_or_else(|| panic!("{} has no claims", experiment.name));
            assert!(!of_it.is_empty());
            for (id, expected) in of_it {
                let why = expected.why.as_ref().is_some_and(|why| why.len() > 20);
                assert!(
                    expected.holds && expected.holds_quick != Some(false) || why,
                    "{}: {id} does not hold, and nobody says why",
                    experiment.name
                );
                assert!(expected.quick[0] <= expected.quick[1] && expected.full[0] <= expected.full[1]);
            }
        }
    }
}
