//! What an agent is for.

use serde::{Deserialize, Serialize};

/// What an agent is for. The task says who has which role, so all who agree on the task agree on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It has data and takes part.
    #[default]
    Member,
    /// It learns the outcome, and nobody else does.
    Aggregator,
    /// It holds a model for those who have data.
    Server,
    /// It keeps what members publish.
    Board,
}
