//! Statistics of pairs: the mean of h(x, x') over all pairs of observations, for any symmetric kernel h with h(x, x) = 0.
//!
//! U2 = 1/n^2 sum_{u,v} h(x_u, x_v)        U = 2 / (n (n - 1)) sum_{u<v} h(x_u, x_v) = n / (n - 1) U2
//!
//! [`kernel`] holds the kernels, each with its exact value over a list of observations; [`gosta`], [`gosta_sync`] and [`u2_gossip`] estimate
//! U2 where no agent sees all observations; [`answers`] gives everybody's randomized answers to one of them. All three let observations wander by swaps ([`exchange`]); [`graph`] says on which graphs that
//! reaches everyone.

pub mod answered;
pub mod answers;
pub mod exchange;
pub mod gosta;
pub mod gosta_sync;
pub mod graph;
pub mod kernel;
pub mod u2_gossip;
