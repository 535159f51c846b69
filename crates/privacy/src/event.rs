//! What was done to the data when a value left, as data.

use serde::{Deserialize, Serialize};

/// How a released value was made. Accountants read events and nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "mechanism", rename_all = "kebab-case")]
pub enum Event {
    /// The exact value left, without noise: epsilon = infinity.
    Reveal,
}

/// Who sees a release. The default adversary sees every message (local differential privacy).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Audience {
    /// Everyone, the eavesdropper on every link included.
    Everyone,
}
