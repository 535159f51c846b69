//! Values under the pads of several pairs: what a member sends to those with whom it shares the pads.
//!
//! ```text
//! A_J = X_J + sum_L Delta_JL   in Z_2^64,     Delta_JL + Delta_LJ = 0
//! ```
//!
//! Where all members do so with all others, the sum of all A is the sum of all X. **Guarantee.** A coalition of all but two members of such a group
//! sees the sum of these two and nothing else of them: their common pad is unknown to it, so either of the two A alone is uniform. **Not
//! guaranteed**: anything against all others together, who can subtract; so a group of two hides nothing from one another, and
//! a value under a single pad is not sealed.

use crate::flaw::Unfit;
use crate::pad::PadStream;
use sottovoce_privacy::Sealed;

/// Puts values under these pads, each of another pair. What it returns may be sent to any one member.
///
/// # Errors
/// [`Unfit::OnePad`] under fewer than two, and [`Unfit::TooMany`]: nothing was sealed.
pub fn seal(values: &mut [u64], pads: Vec<PadStream>) -> Result<Sealed<&[u64]>, Unfit> {
    if pads.len() < 2 {
        return Err(Unfit::OnePad);
    }
    for pad in pads {
        pad.mask(values)?;
    }
    // PRIVACY: whoever shares one of the pads lacks another one, under which the values are uniform.
    Ok(Sealed::by_cryptography(values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agreement::TaskKey;
    use crate::pad::{Direction, PairSecret};
    use crate::testing::rng;

    const MEMBERS: usize = 5;

    /// By member: the secrets that it shares with the others, in their order, itself left out.
    fn secrets() -> Vec<Vec<PairSecret>> {
        let mut rng = rng(4);
        let keys: Vec<TaskKey> = (0..MEMBERS).map(|_| TaskKey::generate([9; 32], &mut rng)).collect();
        let of = |me: usize| {
            let others = (0..MEMBERS).filter(move |other| *other != me);
            others.map(|other| keys[me].agree(keys[other].public(), 0).expect("fine keys")).collect()
        };
        (0..MEMBERS).map(of).collect()
    }

    fn masked(secrets: &mut [PairSecret], round: u64, values: &[u64]) -> Vec<u64> {
        let pads = secrets.iter_mut().map(|secret| secret.stream(round, Direction::FromSmaller).expect("unused"));
        let mut values = values.to_vec();
        let _ = seal(&mut values, pads.collect()).expect("enough pads");
        values
    }

    #[test]
    fn the_sum_of_all_is_the_sum_of_the_values_to_the_bit() {
        let mut secrets = secrets();
        for round in 0..3 {
            let values: Vec<Vec<u64>> = (0..MEMBERS as u64)
                .map(|k| (0..7).map(|c| (k * 1000 + c).wrapping_sub(2500) << 20).collect())
                .collect();
            let sent: Vec<_> =
                secrets.iter_mut().zip(&values).map(|(own, values)| masked(own, round, values)).collect();
            for c in 0..7 {
                let sum = |rows: &[Vec<u64>]| rows.iter().fold(0_u64, |sum, row| sum.wrapping_add(row[c]));
                assert_eq!(sum(&sent), sum(&values));
                assert!(sent.iter().zip(&values).all(|(sent, value)| sent[c] != value[c]));
            }
        }
    }

    /// All but two members take off every pad that they know. What is left are the two values, one plus and one minus a pad that only these two
    /// know: their sum, and two uniform numbers with that sum.
    #[test]
    fn a_coalition_of_all_but_two_sees_only_the_sum_of_the_two() {
        let pad = |secret: &mut PairSecret| {
            let mut pad = [0];
            let _ = secret.stream(0, Direction::FromSmaller).expect("unused").mask(&mut pad).expect("few");
            pad[0]
        };
        let values = [3_u64 << 40, 7 << 50];
        let mut members = secrets();
        let left = [0, 1].map(|me| {
            let sent = masked(&mut members[me], 0, &[values[me]])[0];
            // To those behind it a member is the one at its own place.
            members[2..].iter_mut().fold(sent, |sum, other| sum.wrapping_add(pad(&mut other[me])))
        });
        let common = pad(&mut secrets()[0][0]);
        assert_eq!(left, [values[0].wrapping_add(common), values[1].wrapping_sub(common)]);
        assert_ne!(common, 0);
    }

    #[test]
    fn a_value_under_one_pad_is_not_sealed() {
        let mut secrets = secrets();
        let mut values = [5];
        assert_eq!(seal(&mut values, Vec::new()).expect_err("no pad"), Unfit::OnePad);
        let pad = secrets[0][0].stream(0, Direction::FromSmaller).expect("unused");
        assert_eq!(seal(&mut values, vec![pad]).expect_err("one pad"), Unfit::OnePad);
        assert_eq!(values, [5]);
    }
}
