//! Small operations on slices, for code outside the hot path of a wake.
//!
//! Sums run over a fixed number of lanes, so a result does not depend on the machine.

/// a.b. Both have the same length.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    debug_assert_eq!(a.len(), b.len());
    let (a_lanes, a_rest) = a.as_chunks::<8>();
    let (b_lanes, b_rest) = b.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for (x, y) in a_lanes.iter().zip(b_lanes) {
        for lane in 0..8 {
            sums[lane] += x[lane] * y[lane];
        }
    }
    let rest: f64 = a_rest.iter().zip(b_rest).map(|(x, y)| x * y).sum();
    let quads = [sums[0] + sums[4], sums[1] + sums[5], sums[2] + sums[6], sums[3] + sums[7]];
    (quads[0] + quads[2]) + (quads[1] + quads[3]) + rest
}

/// to += factor from.
pub(crate) fn add_scaled(to: &mut [f64], factor: f64, from: &[f64]) {
    debug_assert_eq!(to.len(), from.len());
    for (to, from) in to.iter_mut().zip(from) {
        *to += factor * from;
    }
}

/// |a|_2.
pub(crate) fn norm(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

/// |a|_infinity.
pub(crate) fn largest(a: &[f64]) -> f64 {
    a.iter().fold(0.0, |most: f64, value| most.max(value.abs()))
}

/// |a - b|_2^2.
pub(crate) fn distance_squared(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum()
}

/// |a - b|_infinity.
pub(crate) fn largest_difference(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0, |most: f64, (x, y)| most.max((x - y).abs()))
}
