//! A member's own mask: what keeps a publication closed although its pads were opened (Bonawitz et al. 2017; Bell et al. 2020).
//!
//! ```text
//! seed        -> ChaCha20: the coefficients of a polynomial of degree t - 1 over the scalar field; the first is the secret
//! share i     =  the polynomial at i = 1, 2, ..                                                          [Shamir 1979]
//! mask        =  ChaCha20(HKDF-SHA256(salt = "sottovoce/own-mask/v1", secret)): elements of Z_2^64
//! ```
//!
//! Any t shares give the secret, by Lagrange's formula at zero. Fewer say nothing about it: for every secret there is exactly one polynomial
//! through them, and the coefficients are uniform up to 2^-260 and the pseudorandomness of ChaCha20.
//!
//! **Guarantee.** To whoever holds fewer than t shares a masked value is a uniform element of Z_2^64. **Not guaranteed**: that a share is one that was dealt; a
//! wrong one gives a wrong mask, and so a wrong sum. Shares are sealed for their readers by pads ([`seal`]), one for each pair, round and direction.
//!
//! **Time.** Arithmetic on scalars is constant time; indices are public.

use crate::{
    flaw::{Flaw, Unfit},
    pad::{PAD_NUMBERS_MAX, PadStream},
    stream::{Key, KeyStream, nonce},
};
use curve25519_dalek::scalar::Scalar;
use hkdf::Hkdf;
use sha2::Sha256;
use std::fmt;
use zeroize::Zeroizing;

const SALT: &[u8] = b"sottovoce/own-mask/v1";

/// The most shares that any two members can be asked for.
pub const SHARES_MAX: u32 = 1 << 20;

/// A mask that nobody else can compute, and the polynomial that deals it. Wiped when dropped; neither cloned nor shown.
pub struct OwnMask {
    coefficients: Zeroizing<Vec<Scalar>>,
}

/// One share: the polynomial at its index. Opened ones are public.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Which: from 1.
    pub index: u32,
    value: Scalar,
}

impl OwnMask {
    /// The mask of a fresh seed, of which this many shares together are as good as itself.
    pub fn from_seed(seed: &[u8; 32], threshold: u32) -> Result<OwnMask, Unfit> {
        if threshold == 0 || threshold > SHARES_MAX {
            return Err(Unfit::TooMany);
        }
        let mut stream = KeyStream::new(seed, &nonce(b"poly", 0));
        let coefficients = Zeroizing::new((0..threshold).map(|_| stream.scalar()).collect());
        Ok(OwnMask { coefficients })
    }

    /// The share of this index, from 1.
    pub fn share(&self, index: u32) -> Result<Share, Unfit> {
        if index == 0 || index > SHARES_MAX {
            return Err(Unfit::TooMany);
        }
        let at = Scalar::from(index);
        let value = self.coefficients.iter().rev().fold(Scalar::ZERO, |sum, coefficient| sum * at + coefficient);
        Ok(Share { index, value })
    }

    /// Adds the mask.
    pub fn mask(&self, values: &mut [u64]) -> Result<(), Unfit> {
        expand(&self.coefficients[0], values, false)
    }
}

impl fmt::Debug for OwnMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OwnMask")
    }
}

impl fmt::Debug for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Share({})", self.index)
    }
}

impl Share {
    /// Reads a share that was opened, or unsealed.
    pub fn from_bytes(index: u32, bytes: [u8; 32]) -> Result<Share, Flaw> {
        let value: Option<Scalar> = Scalar::from_canonical_bytes(bytes).into();
        value.map(|value| Share { index, value }).ok_or(Flaw::ScalarNotReduced)
    }

    /// The share's value.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.value.to_bytes()
    }
}

/// A share's value under a pad of the pair, or from under it: the same for both ends.
pub fn seal(stream: PadStream, value: [u8; 32]) -> Result<[u8; 32], Unfit> {
    let (words, _) = value.as_chunks::<8>();
    let mut numbers: [u64; 4] = std::array::from_fn(|i| u64::from_le_bytes(words[i]));
    let _never_opened = stream.mask(&mut numbers)?;
    let mut sealed = [0; 32];
    sealed.as_chunks_mut::<8>().0.iter_mut().zip(numbers).for_each(|(word, number)| *word = number.to_le_bytes());
    Ok(sealed)
}

/// Takes a mask out of a sum, by as many shares as its threshold; all are used. Refuses doubled indices.
pub fn remove(shares: &[Share], sums: &mut [u64]) -> Result<(), Flaw> {
    let doubled = |k: usize| shares[..k].iter().any(|other| other.index == shares[k].index);
    if shares.is_empty() || shares.iter().any(|share| share.index == 0) || (0..shares.len()).any(doubled) {
        return Err(Flaw::SharesDoNotFit);
    }
    // The polynomial at zero: sum of share_i times the product over j of j / (j - i).
    let secret = shares.iter().map(|share| {
        let at = Scalar::from(share.index);
        let others = shares.iter().filter(|other| other.index != share.index).map(|other| Scalar::from(other.index));
        let (above, below) =
            others.fold((Scalar::ONE, Scalar::ONE), |(above, below), other| (above * other, below * (other - at)));
        share.value * above * below.invert()
    });
    let secret = Zeroizing::new(secret.fold(Scalar::ZERO, |sum, part| sum + part));
    expand(&secret, sums, true).map_err(|_| Flaw::SharesDoNotFit)
}

fn expand(secret: &Scalar, values: &mut [u64], subtract: bool) -> Result<(), Unfit> {
    if values.len() > PAD_NUMBERS_MAX {
        return Err(Unfit::TooMany);
    }
    let mut key = Key::default();
    let bytes = Zeroizing::new(secret.to_bytes());
    Hkdf::<Sha256>::new(Some(SALT), &*bytes).expand(&[], &mut *key).expect("HKDF-SHA256 gives up to 8160 bytes");
    KeyStream::new(&key, &nonce(b"ring", 0)).add_to(values, subtract);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pad::{Direction, PairSecret, Sign};

    fn dealt(threshold: u32, count: u32) -> (OwnMask, Vec<Share>) {
        let own = OwnMask::from_seed(&[5; 32], threshold).expect("few");
        let shares = (1..=count).map(|index| own.share(index).expect("few")).collect();
        (own, shares)
    }

    #[test]
    fn any_threshold_of_shares_takes_the_mask_out_and_fewer_do_not() {
        for (threshold, count) in [(1, 1), (1, 4), (2, 3), (5, 9), (30, 41)] {
            let (own, shares) = dealt(threshold, count);
            let values = vec![17u64; 20];
            let mut masked = values.clone();
            own.mask(&mut masked).expect("few");
            assert!(masked.iter().zip(&values).all(|(a, b)| a != b));
            for first in 0..=(count - threshold) as usize {
                let mut sum = masked.clone();
                remove(&shares[first..first + threshold as usize], &mut sum).expect("they fit");
                assert_eq!(sum, values, "{threshold} of {count} from {first}");
                if threshold > 1 {
                    let mut sum = masked.clone();
                    remove(&shares[first..first + threshold as usize - 1], &mut sum).expect("they fit");
                    assert!(sum.iter().zip(&values).all(|(a, b)| a != b), "one share too few");
                }
            }
            remove(&shares, &mut masked).expect("more than enough");
            assert_eq!(masked, values);
        }
    }

    /// For any secret there are coefficients that give the same shares, as long as there are fewer than the threshold: here by counting
    /// that one more free value moves the secret anywhere.
    #[test]
    fn one_share_more_decides_the_secret_and_nothing_before_does() {
        let (_, shares) = dealt(3, 2);
        let secrets: Vec<Vec<u64>> = (0..16u8)
            .map(|k| {
                let mut all = shares.clone();
                all.push(Share::from_bytes(3, [k; 32]).expect("canonical"));
                let mut sum = vec![0u64; 4];
                remove(&all, &mut sum).expect("they fit");
                sum
            })
            .collect();
        assert!(secrets.iter().enumerate().all(|(k, one)| !secrets[..k].contains(one)));
    }

    #[test]
    fn a_sealed_share_is_read_by_the_other_end_alone() {
        let (_, shares) = dealt(2, 2);
        let stream = |secret: u8, sign| {
            PairSecret::from_bytes(&[secret; 32], sign, 0).stream(1, Direction::FromLarger).expect("unused")
        };
        for (mine, theirs) in [(Sign::Adds, Sign::Subtracts), (Sign::Subtracts, Sign::Adds)] {
            let sealed = seal(stream(1, mine), shares[0].to_bytes()).expect("short");
            assert_ne!(sealed, shares[0].to_bytes());
            assert_eq!(seal(stream(1, theirs), sealed).expect("short"), shares[0].to_bytes());
            assert_ne!(seal(stream(2, theirs), sealed).expect("short"), shares[0].to_bytes());
        }
    }

    #[test]
    fn shares_that_do_not_fit_are_refused() {
        let (own, shares) = dealt(2, 3);
        let mut sum = [0];
        assert_eq!(remove(&[], &mut sum), Err(Flaw::SharesDoNotFit));
        assert_eq!(remove(&[shares[0], shares[0]], &mut sum), Err(Flaw::SharesDoNotFit));
        let zero = Share::from_bytes(0, [0; 32]).expect("canonical");
        assert_eq!(remove(&[shares[0], zero], &mut sum), Err(Flaw::SharesDoNotFit));
        assert_eq!(Share::from_bytes(1, [0xff; 32]), Err(Flaw::ScalarNotReduced));
        assert_eq!(own.share(0), Err(Unfit::TooMany));
        assert_eq!(OwnMask::from_seed(&[1; 32], 0).expect_err("no share"), Unfit::TooMany);
        assert_eq!((format!("{own:?}"), format!("{:?}", shares[1])), ("OwnMask".to_owned(), "Share(2)".to_owned()));
    }
}
