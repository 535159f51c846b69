//! Table 1 of Bellet et al. (2018): recommendation on MovieLens-100K, each user an agent with its own ratings.
//!
//! User i learns theta_i with which theta_i.phi_j + a centre is a good guess at its rating of film j, by the squared loss. phi_j is
//! known to all. A number of the table is the root of the mean squared error on the fifth of a user's ratings that was set aside,
//! averaged over users, and then over runs.
//!
//! [`table_1`] makes all of it. [`tune::tune`] chose its values. What the numbers mean is in `papers/2018-aistats/table-1.md`.
//!
//! # Privacy
//! The unit is one rating of one user, replaced by another, against anyone who sees every message; m_i is public. Which
//! other facts are public depends on the [`setting::Setting`], and every number says which it has.
//!
//! Differs from the paper: what it leaves open (ridge, feature scale, mu for a mean loss, T_i) is tuned on training ratings; step sizes of private
//! runs come from the bound on features, never from ratings; sound methods clip in the norm that their noise needs; and there are
//! home models, and a sound column, which the paper does not have.

pub mod als;
pub mod invent;
pub mod method;
pub mod methods;
pub mod ratings;
pub mod setting;
pub mod table;
#[cfg(test)]
mod testing;
pub mod tune;
pub mod values;

pub use method::Method;
pub use ratings::FOLDER;
pub use setting::Setting;
pub use table::{Cell, EPSILONS, Options, Table1, Verdict, table_1};
