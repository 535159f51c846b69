//! Pads that cancel: what a pair of members adds and subtracts in one round.
//!
//! ```text
//! round key   = ChaCha20(pair secret, nonce = direction | round), 32 bytes
//! pad         = ChaCha20(round key, nonce = use): elements of Z_2^64, or scalars, or Gaussian integers
//! Delta_uv    = +pad for the member with the smaller public key, -pad for the other              [thesis, 4.5]
//! ```
//!
//! Both ends expand the same bytes, so Delta_uv + Delta_vu = 0 by construction, and no number crosses the wire. One secret
//! serves a whole task: each round and direction has a stream of its own. The direction only names a stream (a pair may need two pads
//! in one round, one for what each of them starts); who adds is decided by the keys alone.
//!
//! **A stream is used once, by type.** [`PairSecret::stream`] only goes forward in rounds, and every use consumes the
//! [`PadStream`]. What is left, a [`SpentPad`], can do one thing: be opened for a rollback, and that consumes it too. Neither can be cloned. What no type
//! can see is a restart: the caller writes the round to its disk before it publishes, and passes it to `agree`.
//!
//! **Guarantee.** To whoever lacks the pair secret, a value masked by one unopened pad is a uniform element of Z_2^64 (or of the scalar
//! field), whatever the value and all other rounds, opened ones included: ChaCha20 is a pseudorandom function, and a round key
//! tells nothing of the pair secret. **Not guaranteed**: anything once the pad is opened, or against the neighbour who
//! shares it.

use crate::{
    flaw::{Flaw, Unfit},
    stream::{Key, KeyStream, nonce},
};
use curve25519_dalek::scalar::Scalar;
use sottovoce_privacy::Simulation;
use std::fmt;
use zeroize::Zeroizing;

/// The most numbers of one pad: half a gigabyte of Z_2^64, four of scalars, and far below the end of a stream.
pub const PAD_NUMBERS_MAX: usize = 1 << 26;

/// Which of the two streams of a pair and a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// The stream for what the member with the smaller public key starts; also the one to use if there is only one.
    FromSmaller,
    /// The stream for what the member with the larger public key starts.
    FromLarger,
}

impl Direction {
    fn nonce(self, round: u64) -> [u8; 12] {
        match self {
            Direction::FromSmaller => nonce(b"up\0\0", round),
            Direction::FromLarger => nonce(b"down", round),
        }
    }
}

/// Whose sign a pad has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sign {
    /// The member with the smaller public key adds the pad.
    Adds,
    /// The member with the larger public key subtracts it.
    Subtracts,
}

/// What two members share for one task. Wiped when dropped; neither cloned nor shown.
pub struct PairSecret {
    key: Key,
    sign: Sign,
    next_round: [u64; 2],
}

impl PairSecret {
    pub(crate) fn new(key: Key, smaller: bool, first_round: u64) -> PairSecret {
        let sign = if smaller { Sign::Adds } else { Sign::Subtracts };
        PairSecret { key, sign, next_round: [first_round; 2] }
    }

    /// What a pair of a simulation shares, from the keys that both have published: whoever sees them knows it too. A real peer has no [`Simulation`], and agrees on its secrets
    /// ([`TaskKey::agree`](crate::agreement::TaskKey::agree)).
    pub fn simulated(_: Simulation, mine: &[u8; 32], theirs: &[u8; 32]) -> PairSecret {
        let key = Zeroizing::new(std::array::from_fn(|k| mine[k] ^ theirs[k]));
        PairSecret::new(key, mine < theirs, 0)
    }

    /// A secret that was agreed on in another way.
    pub fn from_bytes(bytes: &[u8; 32], sign: Sign, first_round: u64) -> PairSecret {
        PairSecret { key: Zeroizing::new(*bytes), sign, next_round: [first_round; 2] }
    }

    /// The stream of this round and direction. Rounds of one direction only go forward.
    pub fn stream(&mut self, round: u64, direction: Direction) -> Result<PadStream, Unfit> {
        let next = &mut self.next_round[direction as usize];
        if round < *next || round == u64::MAX {
            return Err(Unfit::RoundUsed);
        }
        *next = round + 1;
        let key = KeyStream::new(&self.key, &direction.nonce(round)).key();
        Ok(PadStream { key, sign: self.sign })
    }
}

/// One pad that was not used yet. Each use consumes it: the second one does not compile.
///
/// ```compile_fail,E0382
/// # use sottovoce_crypto::pad::{Direction, PairSecret, Sign};
/// let mut secret = PairSecret::from_bytes(&[1; 32], Sign::Adds, 0);
/// let pad = secret.stream(0, Direction::FromSmaller)?;
/// let (mut one, mut other) = ([1], [2]);
/// pad.mask(&mut one)?;
/// pad.mask(&mut other)?;
/// # Ok::<(), sottovoce_crypto::Unfit>(())
/// ```
pub struct PadStream {
    key: Key,
    sign: Sign,
}

impl PadStream {
    /// Adds the pad to the values in Z_2^64, or subtracts it, as the keys decide.
    pub fn mask(self, values: &mut [u64]) -> Result<SpentPad, Unfit> {
        if values.len() > PAD_NUMBERS_MAX {
            return Err(Unfit::TooMany);
        }
        RevealedPad::expand_ring(&self.key, values, self.sign == Sign::Subtracts);
        Ok(self.spent())
    }

    /// The pad as scalars, for values under commitments: `count` numbers uniform in the scalar field, and one more, the
    /// blinding of their commitment. Both ends have the opposite of each, so their commitments cancel as well.
    pub fn scalars(self, count: usize) -> Result<(ScalarPad, SpentPad), Unfit> {
        if count > PAD_NUMBERS_MAX {
            return Err(Unfit::TooMany);
        }
        let pad = RevealedPad::expand_scalars(&self.key, count, self.sign);
        Ok((pad, self.spent()))
    }

    /// What Gaussian masks are made of.
    pub(crate) fn key_and_sign(&self) -> (&[u8; 32], Sign) {
        (&self.key, self.sign)
    }

    pub(crate) fn spent(self) -> SpentPad {
        SpentPad { key: self.key, sign: self.sign }
    }
}

/// A pad as scalars; wiped when dropped.
pub struct ScalarPad {
    /// The signed masks.
    pub masks: Zeroizing<Vec<Scalar>>,
    /// The signed blinding of the commitment to all masks.
    pub blinding: Zeroizing<Scalar>,
}

/// A pad that was used. It can be opened, once, so that the sum of those who stayed can be computed; it cannot mask anything again.
pub struct SpentPad {
    key: Key,
    sign: Sign,
}

impl SpentPad {
    /// Opens the pad to everyone: the published value is no longer masked by it.
    // PRIVACY: whoever opens every pad of a member shows its value and noise share; a protocol opens a pad or the share of
    // the member's own second mask, never both, and decides durably before it answers.
    pub fn reveal(self) -> RevealedPad {
        RevealedPad { key: *self.key, sign: self.sign }
    }
}

/// An opened pad: public from now on. It is the key of one round and tells nothing of any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevealedPad {
    key: [u8; 32],
    sign: Sign,
}

impl RevealedPad {
    /// Bytes of an opened pad.
    pub const BYTES: usize = 33;

    /// The opened pad as it is published: the round's key, and the sign of the member who opens it.
    pub fn to_bytes(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..32].copy_from_slice(&self.key);
        bytes[32] = u8::from(self.sign == Sign::Subtracts);
        bytes
    }

    /// Reads what another member opened. That it is the pad which was used is not checked here: without commitments
    /// nobody but the pair can; with them, compare the commitment of [`RevealedPad::scalars`].
    pub fn from_bytes(bytes: &[u8]) -> Result<RevealedPad, Flaw> {
        let bytes: &[u8; Self::BYTES] = match bytes.len() {
            Self::BYTES => bytes.try_into().expect("the length was compared"),
            fewer if fewer < Self::BYTES => return Err(Flaw::TooShort),
            _ => return Err(Flaw::TrailingBytes),
        };
        let sign = match bytes[32] {
            0 => Sign::Adds,
            1 => Sign::Subtracts,
            _ => return Err(Flaw::UnknownTag),
        };
        let mut key = [0; 32];
        key.copy_from_slice(&bytes[..32]);
        Ok(RevealedPad { key, sign })
    }

    /// Takes the opener's pad out of a sum in Z_2^64 that holds it.
    pub fn remove(&self, sums: &mut [u64]) -> Result<(), Unfit> {
        if sums.len() > PAD_NUMBERS_MAX {
            return Err(Unfit::TooMany);
        }
        RevealedPad::expand_ring(&self.key, sums, self.sign == Sign::Adds);
        Ok(())
    }

    /// The opener's pad as scalars.
    pub fn scalars(&self, count: usize) -> Result<ScalarPad, Unfit> {
        if count > PAD_NUMBERS_MAX {
            return Err(Unfit::TooMany);
        }
        Ok(RevealedPad::expand_scalars(&self.key, count, self.sign))
    }

    /// What Gaussian masks are made of.
    pub(crate) fn key_and_sign(&self) -> (&[u8; 32], Sign) {
        (&self.key, self.sign)
    }

    fn expand_ring(key: &[u8; 32], values: &mut [u64], subtract: bool) {
        KeyStream::new(key, &nonce(b"ring", 0)).add_to(values, subtract);
    }

    fn expand_scalars(key: &[u8; 32], count: usize, sign: Sign) -> ScalarPad {
        let mut stream = KeyStream::new(key, &nonce(b"fiel", 0));
        // The sign follows from public keys, so the branch tells nothing.
        let mut signed = || match sign {
            Sign::Adds => stream.scalar(),
            Sign::Subtracts => -stream.scalar(),
        };
        let blinding = Zeroizing::new(signed());
        let masks = Zeroizing::new((0..count).map(|_| signed()).collect());
        ScalarPad { masks, blinding }
    }
}

macro_rules! shown_by_name_alone {
    ($($name:ident),*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(stringify!($name))
            }
        }
    )*};
}
shown_by_name_alone!(PairSecret, PadStream, SpentPad, ScalarPad);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pair(secret: u8, first_round: u64) -> (PairSecret, PairSecret) {
        let of = |sign| PairSecret::from_bytes(&[secret; 32], sign, first_round);
        (of(Sign::Adds), of(Sign::Subtracts))
    }

    fn pad(secret: &mut PairSecret, round: u64, direction: Direction) -> Vec<u64> {
        let mut values = vec![0; 16];
        let _ = secret.stream(round, direction).expect("unused").mask(&mut values).expect("few");
        values
    }

    #[test]
    fn a_pad_is_used_once_and_rounds_only_go_forward() {
        let (mut secret, _) = pair(1, 5);
        let refused = |secret: &mut PairSecret, round, direction| {
            assert_eq!(secret.stream(round, direction).expect_err("used"), Unfit::RoundUsed);
        };
        refused(&mut secret, 4, Direction::FromSmaller);
        let _ = pad(&mut secret, 5, Direction::FromSmaller);
        refused(&mut secret, 5, Direction::FromSmaller);
        let _ = pad(&mut secret, 5, Direction::FromLarger);
        refused(&mut secret, 5, Direction::FromLarger);
        let _ = pad(&mut secret, 9, Direction::FromSmaller);
        refused(&mut secret, 8, Direction::FromSmaller);
        let _ = pad(&mut secret, 8, Direction::FromLarger);
        refused(&mut secret, u64::MAX, Direction::FromLarger);
    }

    #[test]
    fn rounds_directions_uses_and_secrets_have_pads_of_their_own() {
        let mut pads = Vec::new();
        for secret in [1, 2] {
            let (mut secret, _) = pair(secret, 0);
            for round in [0, 1, 256] {
                for direction in [Direction::FromSmaller, Direction::FromLarger] {
                    pads.push(pad(&mut secret, round, direction));
                }
            }
            let scalars = secret.stream(300, Direction::FromSmaller).expect("unused").scalars(1).expect("few").0;
            pads.push(
                scalars.masks[0]
                    .as_bytes()
                    .chunks(8)
                    .map(|word| u64::from_le_bytes(word.try_into().expect("8")))
                    .collect(),
            );
        }
        for (i, a) in pads.iter().enumerate() {
            for b in &pads[..i] {
                assert!(a.iter().all(|word| !b.contains(word)), "two pads share a word");
            }
        }
    }

    #[test]
    fn an_opened_pad_takes_out_what_was_added_and_opens_no_other_round() {
        let (mut adds, mut subtracts) = pair(3, 0);
        for secret in [&mut adds, &mut subtracts] {
            let mut values = vec![17; 20];
            let spent = secret.stream(1, Direction::FromSmaller).expect("unused").mask(&mut values).expect("few");
            assert_ne!(values, vec![17; 20]);
            let revealed = RevealedPad::from_bytes(&spent.reveal().to_bytes()).expect("own bytes");
            revealed.remove(&mut values).expect("few");
            assert_eq!(values, vec![17; 20]);
            let mut other = vec![17; 20];
            let _ = secret.stream(2, Direction::FromSmaller).expect("unused").mask(&mut other).expect("few");
            revealed.remove(&mut other).expect("few");
            assert_ne!(other, vec![17; 20]);
        }
    }

    #[test]
    fn scalar_pads_of_both_ends_cancel_with_their_blindings() {
        let (mut adds, mut subtracts) = pair(4, 0);
        let (a, spent) = adds.stream(0, Direction::FromLarger).expect("unused").scalars(30).expect("few");
        let (b, _) = subtracts.stream(0, Direction::FromLarger).expect("unused").scalars(30).expect("few");
        assert!(a.masks.iter().zip(b.masks.iter()).all(|(a, b)| a + b == Scalar::ZERO && *a != Scalar::ZERO));
        assert_eq!(*a.blinding + *b.blinding, Scalar::ZERO);
        assert_eq!(*spent.reveal().scalars(30).expect("few").masks, *a.masks);
    }

    #[test]
    fn secrets_are_shown_by_name_alone() {
        let (mut secret, _) = pair(1, 0);
        assert_eq!(format!("{secret:?}"), "PairSecret");
        let stream = secret.stream(0, Direction::FromSmaller).expect("unused");
        assert_eq!(format!("{stream:?}"), "PadStream");
        assert_eq!(format!("{:?}", stream.scalars(2).expect("few")), "(ScalarPad, SpentPad)");
    }

    proptest! {
        #[test]
        fn pads_of_both_ends_cancel_for_all_values(secret: [u8; 32], round in 0..u64::MAX, values in prop::collection::vec(any::<u64>(), 0..600)) {
            let mut sum = values.clone();
            for sign in [Sign::Adds, Sign::Subtracts] {
                let mut secret = PairSecret::from_bytes(&secret, sign, 0);
                let _ = secret.stream(round, Direction::FromSmaller).expect("unused").mask(&mut sum).expect("few");
            }
            prop_assert_eq!(sum, values);
        }

        #[test]
        fn opened_pads_are_read_or_refused_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..70)) {
            if let Ok(pad) = RevealedPad::from_bytes(&bytes) {
                prop_assert_eq!(&pad.to_bytes()[..], &bytes[..]);
            }
        }
    }
}
