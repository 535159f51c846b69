//! What one cycle costs: the greatest convex minorant of the staircase of contributions.

/// The square of mu, in units of (sensitivity / sigma)^2, of what is seen after a stretch of noisy contractions in which the protected
/// member moved the token at the hops `contributions` (increasing, from 1 on, at most `hops`), and which was seen after `hops` hops.
///
/// Shifts a_t that are made up for at hop t, with a_1 + .. + a_t at most the number of contributions up to t and all of them made up
/// for at the end, cost the sum of their squares; the least such sum is that of the slopes of the greatest convex minorant of
/// the staircase. Proof: `proofs/network-iteration.md`.
pub fn staircase(contributions: &[u64], hops: u64) -> f64 {
    // Faces of the minorant: how many contributions, over how many hops. A face that is flatter than the one before joins it.
    let mut faces: Vec<(f64, f64)> = Vec::new();
    let ends = contributions.iter().skip(1).copied().chain([hops + 1]);
    for (&from, to) in contributions.iter().zip(ends) {
        assert!(
            from >= 1 && to > from,
            "contributions at increasing hops, before the end: {contributions:?} of {hops}"
        );
        let mut face = (1.0, (to - from) as f64);
        while let Some(before) = faces.pop_if(|before| before.0 * face.1 >= face.0 * before.1) {
            face = (before.0 + face.0, before.1 + face.1);
        }
        faces.push(face);
    }
    faces.iter().map(|(height, length)| height * height / length).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Spec 05 section 5: u, u, v has mu^2 = 2, where adding up amplified contributions would say 1.5.
    #[test]
    fn two_contributions_in_a_row_cost_two() {
        assert_eq!(staircase(&[1, 2], 2), 2.0);
        assert_eq!(staircase(&[1], 2), 0.5);
        assert_eq!(staircase(&[2], 2), 1.0);
        assert_eq!(staircase(&[], 9), 0.0);
        assert_eq!(staircase(&[1, 2, 3], 9), 1.0);
        // A long gap first stays apart: 1/7 + 1.
        assert_eq!(staircase(&[2, 9], 9), 1.0 / 7.0 + 1.0);
    }

    /// The least sum of squares, by projected descent on the shifts themselves.
    #[test]
    fn it_is_the_least_sum_of_squares_of_feasible_shifts() {
        for (contributions, hops) in [(&[1u64, 2, 5][..], 6u64), (&[2, 3, 7], 9), (&[1, 4, 5, 6], 12), (&[3], 8)] {
            let steps: Vec<f64> =
                (1..=hops).map(|t| contributions.iter().filter(|&&c| c <= t).count() as f64).collect();
            // Partial sums A_t <= S_t, A_T = S_T: Gauss and Seidel's sweeps of clipped middles.
            let mut sums = steps.clone();
            for _ in 0..20_000 {
                for t in 0..sums.len() - 1 {
                    let left = if t == 0 { 0.0 } else { sums[t - 1] };
                    sums[t] = (0.5 * (left + sums[t + 1])).min(steps[t]);
                }
            }
            let least: f64 =
                (0..sums.len()).map(|t| sums[t] - if t == 0 { 0.0 } else { sums[t - 1] }).map(|a| a * a).sum();
            let found = staircase(contributions, hops);
            assert!((found - least).abs() < 1e-9, "{contributions:?} of {hops}: {found} {least}");
        }
    }
}
