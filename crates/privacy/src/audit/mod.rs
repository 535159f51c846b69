//! Trying to prove a claim wrong.
//!
//! An accountant proves an upper bound on epsilon from what the code is meant to do. An audit finds a lower bound from what the code
//! does: it lets someone who knows everything but one record guess which of two neighbouring data sets was used, and asks what
//! epsilon such guesses need. A lower bound above the claim proves the claim wrong. One below it proves nothing.
//!
//! | file | idea |
//! |---|---|
//! | `likelihood` | what an output says about the input of a mechanism, and how far two inputs are apart |
//! | `bound` | from samples of two worlds to a lower bound on epsilon, or on mu |
//! | `mechanism` | one release, many times, through a gate |
//! | `reuse` | whether two releases carry the same noise |
//! | `binomial` | Clopper and Pearson's bounds |
//!
//! Noise that remembers, and noise that repeats what another run has drawn, are kinds of noise: [`Recording`], [`Replaying`].

mod binomial;
mod bound;
mod likelihood;
mod mechanism;
mod reuse;

pub use crate::noise::{Recording, Release, Replaying};
pub use binomial::{lower as binomial_lower, upper as binomial_upper};
pub use bound::{ALARM, Bound, CONFIDENCE, Worlds, epsilon_bound, mu_bound};
pub use likelihood::{distance, log_likelihood_ratio};
pub use mechanism::{MechanismAudit, audit_mechanism, audit_response, claim_of};
pub use reuse::{noiseless, reused};
