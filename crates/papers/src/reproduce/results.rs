//! What experiments came to, as data.

use super::outcome::{ExperimentOutcome, Table};
use super::verdict::{Judged, Verdict};
use serde::{Deserialize, Serialize};

/// What an experiment came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The experiment.
    pub name: String,
    /// Whether it was the quick version.
    pub quick: bool,
    /// Its claims with their verdicts.
    pub claims: Vec<Judged>,
    /// Tables and plots.
    #[serde(skip)]
    pub outcome: ExperimentOutcome,
    /// What makes two runs the same.
    pub(super) seal: String,
}

impl Report {
    /// Whether a claim came out otherwise than expected.
    pub fn has_failed(&self) -> bool {
        self.claims.iter().any(|judged| judged.verdict == Verdict::Failed)
    }
}

/// The reports of a folder.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Results {
    /// By experiment, in the order of the list.
    pub experiments: Vec<Report>,
    /// The version of the program.
    pub version: &'static str,
}

/// The claims as a table: paper, ours, verdict.
pub fn claims_table(claims: &[Judged]) -> Table {
    let columns = ["claim", "paper", "ours", "verdict", "why"].map(str::to_owned).to_vec();
    let row = |judged: &Judged| {
        let Judged { claim, verdict, why } = judged;
        vec![claim.says.clone(), claim.paper.clone(), claim.ours.clone(), verdict.word().to_owned(), why.clone()]
    };
    let caption = "What the paper says, and what we find".to_owned();
    Table { name: "claims".to_owned(), caption, columns, rows: claims.iter().map(row).collect() }
}
