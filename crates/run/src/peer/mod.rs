//! One agent of a task on a real network: its file, its problem, and what it makes of what it heard.
//!
//! The task is what all peers agreed on, word for word. Everything else is one peer's own business: its data, where it listens, and
//! with whom it has agreed to learn. So a peer has a file of its own, and its problem is a star: itself in the middle, with data, and
//! its neighbours around it, of which it knows names, weights and what they say. Where the graph is learned, everyone agreed upon is around it,
//! and weights are what comes of it.

mod collect;
mod file;
mod own;
mod predictions;
mod problem;
mod share;

pub use collect::{Gathered, Tally, write};
pub use file::{BUDGET_FOLDER, KEYS, Neighbour, PEER_FILE, PeerFile, reference_markdown};
pub use own::{Correspondent, HeardNeighbour, Recalled, Saved};
pub use predictions::{Detail, STAY_AT_HOME};
pub use problem::{Digest, PeerTask, check_task, hex, is_learned, lists_everyone, load, load_without, own_task};
pub use share::{Share, shares};
