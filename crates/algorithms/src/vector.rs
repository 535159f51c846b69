//! Small operations on slices, for code outside the hot path of a wake.

pub use crate::kernel::dot;

/// to += factor from.
pub fn add_scaled(to: &mut [f64], factor: f64, from: &[f64]) {
    debug_assert_eq!(to.len(), from.len());
    for (to, from) in to.iter_mut().zip(from) {
        *to += factor * from;
    }
}

/// |a|_2.
pub fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

/// |a|_infinity.
pub fn largest(a: &[f64]) -> f64 {
    a.iter().fold(0.0, |most: f64, value| most.max(value.abs()))
}

/// |a - b|_2^2.
pub fn distance_squared(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum()
}

/// |a - b|_infinity.
pub fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0, |most: f64, (x, y)| most.max((x - y).abs()))
}
