//! What an agent remembers, as bytes, for an agent that comes back.
//!
//! One byte is the version of the form; then comes the state as `postcard` writes it, exact to the bit. What follows from the
//! data and the neighbours is not saved: it is computed again.
//!
//! Bytes may be damaged. A length that lies is found out before memory is taken for it (serde takes a megabyte at most on
//! trust), and whoever reads a state checks lengths, places and numbers, so that a wrong one is refused and never panics later.

use serde::{Serialize, de::DeserializeOwned};
use sottovoce_core::{CannotResume, Neighbours, PeerId, Peers, Rows};

/// The version of the form. It changes with the form of any state.
const VERSION: u8 = 1;

/// No agent counts further than this, so that counting on from it never overflows.
const COUNT_MAX: u64 = 1 << 62;

/// Appends a state.
pub fn write(state: &impl Serialize, out: &mut Vec<u8>) {
    out.push(VERSION);
    let bytes = std::mem::take(out);
    *out = postcard::to_extend(state, bytes).expect("numbers and lists that know their lengths have a form as bytes");
}

/// Reads a state that fills the bytes exactly.
pub fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CannotResume> {
    let (state, rest) = read_first(bytes)?;
    check(rest.is_empty())?;
    Ok(state)
}

/// Reads a state, and returns the bytes behind it.
pub fn read_first<T: DeserializeOwned>(bytes: &[u8]) -> Result<(T, &[u8]), CannotResume> {
    let rest = bytes.strip_prefix(&[VERSION]).ok_or(CannotResume::Malformed)?;
    postcard::take_from_bytes(rest).map_err(|_| CannotResume::Malformed)
}

/// What every state of the algorithm fulfils.
pub fn check(holds: bool) -> Result<(), CannotResume> {
    if holds { Ok(()) } else { Err(CannotResume::Malformed) }
}

/// For algorithms that remember something of each neighbour.
pub fn expect_same(neighbours: Neighbours) -> Result<(), CannotResume> {
    match neighbours {
        Neighbours::Same => Ok(()),
        Neighbours::Changed => Err(CannotResume::NeighboursChanged),
    }
}

/// Whether it is a vector of this length.
pub fn is_vector(values: &[f64], len: usize) -> bool {
    values.len() == len && values.iter().all(|value| value.is_finite())
}

/// Whether these are so many vectors of this length.
pub fn are_vectors(rows: &Rows, count: usize, len: usize) -> bool {
    rows.row_len() == len && is_vector(rows.values(), count * len)
}

/// Whether an agent can have counted so far.
pub fn is_count(count: u64) -> bool {
    count <= COUNT_MAX
}

/// Whether it can be the weight of an edge that exists.
pub fn is_weight(weight: f64) -> bool {
    weight > 0.0 && weight.is_finite()
}

/// Whether these are neighbours, by increasing peer.
pub fn are_neighbours(peers: Peers<'_>, ids: impl Iterator<Item = PeerId> + Clone) -> bool {
    ids.clone().all(|id| peers.position(id).is_some()) && ids.clone().zip(ids.skip(1)).all(|(a, b)| a < b)
}

#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[cfg(test)]
mod tests;
