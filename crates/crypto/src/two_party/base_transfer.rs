//! Base oblivious transfer: Chou and Orlandi 2015, over Ristretto255.
//!
//! The sender ends with two keys for each transfer, the receiver with the one it chose; the sender does not learn
//! which, the receiver nothing of the other.
//!
//! ```text
//! sender      a random,  A = a G                                                                     ->  A
//! receiver    b_i random,  B_i = b_i G + c_i A  for each choice c_i                                  <-  B_0, B_1, ...
//! keys        receiver: H(i, B_i, b_i A)          sender: H(i, B_i, a B_i) for c_i = 0,  H(i, B_i, a B_i - a A) for c_i = 1
//! H(i, B, P)  = the first 16 bytes of SHA-256("sottovoce/transfer/v1" | binding | A | i | B | P)
//! ```
//!
//! `binding` names the session: members, task, round and circuit. Keys of one session, or of one index, are of no use
//! in another.
//!
//! **Why this one.** Two multiplications a transfer and side, of which the receiver's are by fixed points; Masny and
//! Rindal's protocol takes four and two hashes to the group. What Masny and Rindal's has besides, security against
//! malicious members without further rounds, is not claimed by anything that is built on this.
//!
//! **Guarantee**, against honest-but-curious members: the choices are hidden for ever (B_i is uniform whatever c_i is);
//! the other key is hidden from whoever cannot compute a^2 G from A, which is as hard as computational Diffie-Hellman;
//! SHA-256 is a random oracle. **Not guaranteed**: that a malicious receiver knows what it chose before it asks the
//! oracle, as universal composition would need.
//!
//! **Time.** Choices, b_i and a are used in constant time.

use crate::{
    encoding::{Point, Reader},
    flaw::Flaw,
};
use curve25519_dalek::{
    constants::RISTRETTO_BASEPOINT_TABLE,
    ristretto::{RistrettoBasepointTable, RistrettoPoint},
    scalar::Scalar,
    traits::Identity,
};
use rand_core::CryptoRng;
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable};
use zeroize::Zeroizing;

/// A key that comes of a transfer; wiped when dropped.
pub type TransferKey = Zeroizing<[u8; 16]>;

/// Bytes of a point.
const POINT_BYTES: usize = 32;

/// The sender, which has opened and waits for choices. It can answer once: choices consume it.
pub struct TransferSender {
    binding: [u8; 32],
    secret: Zeroizing<Scalar>,
    public: Point,
}

impl TransferSender {
    /// Draws the sender's secret.
    pub fn new(binding: [u8; 32], rng: &mut impl CryptoRng) -> TransferSender {
        let secret = Zeroizing::new(Scalar::random(rng));
        let public = Point::new(&*secret * RISTRETTO_BASEPOINT_TABLE);
        TransferSender { binding, secret, public }
    }

    /// What the sender says first.
    pub fn opening(&self) -> [u8; POINT_BYTES] {
        self.public.bytes
    }

    /// Both keys of each of `count` transfers, from the receiver's choices.
    pub fn receive(self, choices: &[u8], count: usize) -> Result<Vec<[TransferKey; 2]>, Flaw> {
        let mut reader = Reader::new(choices);
        let points = (0..count).map(|_| reader.point()).collect::<Result<Vec<_>, _>>()?;
        reader.finish()?;
        let hash = KeyHash::new(&self.binding, &self.public);
        let own = Zeroizing::new(*self.secret * self.public.point);
        let keys = points.iter().enumerate().map(|(i, point)| {
            let shared = Zeroizing::new(*self.secret * point.point);
            [hash.key(i, point, &shared), hash.key(i, point, &Zeroizing::new(*shared - *own))]
        });
        Ok(keys.collect())
    }
}

/// The receiver's part: what it answers to the sender's opening, and the key of each choice, a zero or a one.
pub fn choose(
    binding: [u8; 32],
    opening: [u8; POINT_BYTES],
    choices: &[u8],
    rng: &mut impl CryptoRng,
) -> Result<(Vec<u8>, Vec<TransferKey>), Flaw> {
    let sender = Point::from_bytes(opening)?;
    let hash = KeyHash::new(&binding, &sender);
    let table = RistrettoBasepointTable::create(&sender.point);
    let mut answer = Vec::with_capacity(choices.len() * POINT_BYTES);
    let mut keys = Vec::with_capacity(choices.len());
    for (i, choice) in choices.iter().enumerate() {
        let secret = Zeroizing::new(Scalar::random(rng));
        let shift =
            RistrettoPoint::conditional_select(&RistrettoPoint::identity(), &sender.point, Choice::from(choice & 1));
        let point = Point::new(&*secret * RISTRETTO_BASEPOINT_TABLE + shift);
        answer.extend_from_slice(&point.bytes);
        keys.push(hash.key(i, &point, &Zeroizing::new(&*secret * &table)));
    }
    Ok((answer, keys))
}

/// The random oracle of one opening.
struct KeyHash(Sha256);

impl KeyHash {
    fn new(binding: &[u8; 32], sender: &Point) -> KeyHash {
        KeyHash(Sha256::new().chain_update(b"sottovoce/transfer/v1").chain_update(binding).chain_update(sender.bytes))
    }

    fn key(&self, index: usize, point: &Point, shared: &RistrettoPoint) -> TransferKey {
        let shared = Zeroizing::new(shared.compress().to_bytes());
        let hash = self.0.clone().chain_update((index as u64).to_le_bytes()).chain_update(point.bytes);
        let wide: Zeroizing<[u8; 32]> = Zeroizing::new(hash.chain_update(*shared).finalize().into());
        let mut key = TransferKey::default();
        key.copy_from_slice(&wide[..16]);
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::rng;

    fn choices(bits: u32, count: usize) -> Vec<u8> {
        (0..count).map(|i| (bits >> i & 1) as u8).collect()
    }

    #[test]
    fn the_receiver_gets_the_keys_it_chose_and_not_the_others() {
        let mut rng = rng(1);
        let mut seen = Vec::new();
        for bits in [0, 0b1011_0010, 0xff] {
            let sender = TransferSender::new([1; 32], &mut rng);
            let (answer, keys) =
                choose([1; 32], sender.opening(), &choices(bits, 8), &mut rng).expect("an honest opening");
            let pairs = sender.receive(&answer, 8).expect("honest choices");
            for (i, (pair, key)) in pairs.iter().zip(&keys).enumerate() {
                let chosen = (bits >> i & 1) as usize;
                assert_eq!(*pair[chosen], **key);
                seen.extend([*pair[0], *pair[1]]);
            }
        }
        let all = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), all, "no two keys are equal");
    }

    /// The same openings and the same secrets under another binding, or at another index, give other keys.
    #[test]
    fn keys_are_bound_to_session_and_index() {
        let keys = |binding| {
            let sender = TransferSender::new([0; 32], &mut rng(2));
            choose(binding, sender.opening(), &choices(0, 2), &mut rng(3)).expect("an honest opening").1
        };
        let (here, there) = (keys([1; 32]), keys([2; 32]));
        assert_ne!(*here[0], *there[0]);
        assert_eq!(*here[0], *keys([1; 32])[0]);
        // One secret for both indices: the points are equal, the keys are not.
        let (hash, point) =
            (KeyHash::new(&[1; 32], &Point::new(RistrettoPoint::identity())), Point::new(RistrettoPoint::identity()));
        assert_ne!(*hash.key(0, &point, &point.point), *hash.key(1, &point, &point.point));
    }

    #[test]
    fn points_that_no_honest_member_sends_are_refused() {
        let mut rng = rng(4);
        let refused = |opening: [u8; 32]| choose([1; 32], opening, &choices(0, 1), &mut crate::testing::rng(5)).err();
        assert_eq!(refused([0; 32]), Some(Flaw::IdentityPoint));
        assert_eq!(refused([0xff; 32]), Some(Flaw::PointNotCanonical));
        let mut sender = || TransferSender::new([1; 32], &mut rng);
        let fine = sender().opening();
        assert_eq!(sender().receive(&[fine, [0; 32]].concat(), 2).err(), Some(Flaw::IdentityPoint));
        assert_eq!(sender().receive(&[fine, [0xff; 32]].concat(), 2).err(), Some(Flaw::PointNotCanonical));
        assert_eq!(sender().receive(&fine, 2).err(), Some(Flaw::TooShort));
        assert_eq!(sender().receive(&[fine, fine].concat(), 1).err(), Some(Flaw::TrailingBytes));
    }
}
