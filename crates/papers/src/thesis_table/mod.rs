//! Table 2.1 of the thesis: six ways to learn on four data sets in which every point belongs to somebody.
//!
//! | file | what |
//! |---|---|
//! | [`users`] | the four data sets, read into one shape |
//! | [`split`] | training points, test points, and three folds of the training points |
//! | [`methods`] | the six rows of the table, with the values that they need |
//! | [`tune`] | those values, chosen on the folds: no test point is ever looked at |
//!
//! What the numbers mean is in `papers/thesis-chapter-2/README.md`.

pub mod methods;
pub mod split;
#[cfg(test)]
mod testing;
pub mod tune;
pub mod users;
