//! Arithmetic to more than 60 digits, and the exact deltas of the mechanisms that have a closed form.

pub mod real;
pub mod truth;
