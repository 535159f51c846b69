//! Tokens: a value that goes from member to member, each adding to it.

pub mod epoch;
pub mod ring;
