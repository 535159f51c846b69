//! Tokens: a value that goes from member to member, each adding to it.

mod grid;
pub mod ring;
pub mod walk;
pub mod walk_sgd;
