//! Theorem 4.1 and Corollary 4.1 of the thesis, as printed, and the readings of its Table 4.1 (spec 04, sections 3.2, 3.3 and 4).
//!
//! ```text
//! (4.2) epsilon >= theta / 2 + sqrt(theta)      (4.3) (epsilon - theta / 2)^2 >= 2 ln(2 / (delta sqrt(2 pi))) theta
//! tau_k = 1 / (floor((k - 1) rho / 3) - 1) + (12 + 6 ln n_H) / n_H
//! sigma_eta^2 = c^2 / (n_H epsilon^2),  c^2 = 2 ln(1.25 / delta'),  sigma_Delta^2 = kappa sigma_eta^2 n_H tau_k
//! ```
//!
//! **Differs from the thesis:** as kappa grows delta tends to 3 delta', where the text says delta'; and the column rho = 0.5 of Table 4.1 is no instance
//! of the corollary: it follows from sigma_eta^2 = c^2 / (n epsilon^2), with which (4.3) fails. [`Reading`] names the ways to read it.

use std::f64::consts::PI;

/// 3.75: three failures of probability delta, two of the tree and one of the Gaussian's tail.
const DRAWN: f64 = 3.75;
/// 1.25: the tail alone, where the graph is known and was looked at.
const KNOWN: f64 = 1.25;

/// The least epsilon that (4.2) and (4.3) allow.
pub fn epsilon(theta: f64, delta: f64) -> f64 {
    let tail = 2.0 * libm::log(2.0 / (delta * (2.0 * PI).sqrt()));
    0.5 * theta + (theta * tail.max(1.0)).sqrt()
}

/// Whether (4.2) and (4.3) hold.
pub fn holds(theta: f64, epsilon: f64, delta: f64) -> bool {
    let tail = 2.0 * libm::log(2.0 / (delta * (2.0 * PI).sqrt()));
    let above = epsilon - 0.5 * theta;
    above >= theta.sqrt() && above * above >= tail * theta
}

/// The least k of the theorem, for n members of whom a share rho is honest, at the theorem's own delta; none below 81 honest ones.
pub fn neighbours(members: f64, honest: f64, delta: f64) -> Option<u32> {
    let count = honest * members;
    let conditions = [
        4.0 * libm::log(2.0 * count / (3.0 * delta)),
        6.0 * libm::log(count / 3.0),
        1.5 + 2.25 * libm::log(2.0 * std::f64::consts::E / delta),
    ];
    let most = conditions.into_iter().fold(0.0, f64::max);
    (count >= 81.0).then(|| libm::ceil(most / honest) as u32)
}

/// tau_k; infinity where k is too small for it.
pub fn tau(neighbours: u32, honest: f64, honest_members: f64) -> f64 {
    let branches = libm::floor((f64::from(neighbours) - 1.0) * honest / 3.0) - 1.0;
    if branches <= 0.0 {
        return f64::INFINITY;
    }
    1.0 / branches + (12.0 + 6.0 * libm::log(honest_members)) / honest_members
}

/// kappa of the corollary: delta = 3.75 (delta' / 1.25)^(kappa / (kappa + 1)), or 1.25 (..) where the graph is known.
pub fn kappa(delta: f64, inner: f64, graph_is_known: bool) -> f64 {
    let factor = if graph_is_known { KNOWN } else { DRAWN };
    let part = libm::log(delta / factor) / libm::log(inner / KNOWN);
    part / (1.0 - part)
}

/// c^2 = 2 ln(1.25 / delta').
pub fn noise_square(inner: f64) -> f64 {
    2.0 * libm::log(KNOWN / inner)
}

/// Noise and masks by the corollary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Corollary {
    /// k.
    pub neighbours: u32,
    /// The standard deviation of each member's noise.
    pub noise_std: f64,
    /// The standard deviation of masks.
    pub mask_std: f64,
    /// What it promises: delta.
    pub delta: f64,
    /// theta of the theorem with these.
    pub theta: f64,
}

/// How to read Table 4.1; the inputs of its columns are not all said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The corollary: delta' = 1 / n_H^2, sigma_eta with n_H.
    Literal,
    /// The table's own ("table mode"): delta' = 1 / n^2, and sigma_eta^2 = c^2 / (n epsilon^2). Not private for rho < 1.
    Table,
    /// delta' = 1 / n^2, and rho and n_H dropped from tau_k. Prints the same for rho = 0.5; not private either.
    TableWithoutHonesty,
    /// delta' = 1 / n^2, sigma_eta with n_H.
    Careful,
}

/// The corollary for n members, a share rho of them honest, with delta = 10 delta'. None where the theorem asks for more members.
pub fn corollary(members: u32, honest: f64, epsilon: f64, reading: Reading) -> Option<Corollary> {
    let n = f64::from(members);
    let count = honest * n;
    let inner = if reading == Reading::Literal { 1.0 / (count * count) } else { 1.0 / (n * n) };
    corollary_at(members, honest, epsilon, 10.0 * inner, reading)
}

/// The same at this delta, with delta' = delta / 10 as in the table.
pub fn corollary_at(members: u32, honest: f64, epsilon: f64, delta: f64, reading: Reading) -> Option<Corollary> {
    let n = f64::from(members);
    let count = honest * n;
    let inner = delta / 10.0;
    let neighbours = neighbours(n, honest, delta / 3.0)?;
    let shared = if matches!(reading, Reading::Table | Reading::TableWithoutHonesty) { n } else { count };
    let noise = noise_square(inner) / (shared * epsilon * epsilon);
    let tau = match reading {
        Reading::TableWithoutHonesty => tau(neighbours, 1.0, n),
        _ => tau(neighbours, honest, count),
    };
    let spread = if reading == Reading::TableWithoutHonesty { n } else { count };
    let mask = kappa(delta, inner, false) * noise * spread * tau;
    let theta = 1.0 / (count * noise) + tau / mask;
    Some(Corollary { neighbours, noise_std: noise.sqrt(), mask_std: mask.sqrt(), delta, theta })
}
