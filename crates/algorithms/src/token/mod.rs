//! Tokens: a value that goes from member to member, each adding to it.

pub mod epoch;
mod grid;
pub mod histogram;
pub mod ring;
pub mod walk;
pub mod walk_sgd;
