//! Who a peer is: an Ed25519 key. Its public half, hashed, is the peer's id.

use std::fmt;

use libp2p::PeerId;
use libp2p::identity::{Keypair, PublicKey};

/// The key pair of a peer. The secret half is never printed.
#[derive(Clone)]
pub struct Identity {
    keypair: Keypair,
}

/// Bytes that are not an Ed25519 key pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these bytes are not the Ed25519 key pair of a peer")]
pub struct NotAnIdentity;

impl Identity {
    /// A new identity, from the system's entropy.
    #[must_use]
    pub fn generate() -> Self {
        Self { keypair: Keypair::generate_ed25519() }
    }

    /// The identity of a 32-byte secret seed. The same seed gives the same identity.
    #[must_use]
    pub fn from_seed(mut seed: [u8; 32]) -> Self {
        let keypair = Keypair::ed25519_from_bytes(&mut seed).expect("any 32 bytes are an Ed25519 seed");
        Self { keypair }
    }

    /// Reads what [`Identity::to_bytes`] wrote.
    ///
    /// # Errors
    /// When the bytes are something else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, NotAnIdentity> {
        let keypair = Keypair::from_protobuf_encoding(bytes).map_err(|_| NotAnIdentity)?;
        Ok(Self { keypair })
    }

    /// The key pair in libp2p's protobuf encoding. This is a secret: keep it in a file that only its owner can read.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.keypair.to_protobuf_encoding().expect("an Ed25519 key pair has an encoding")
    }

    /// The public name of this peer.
    #[must_use]
    pub fn id(&self) -> PeerId {
        self.keypair.public().to_peer_id()
    }

    /// Signs bytes with the secret half.
    #[must_use]
    pub fn sign(&self, bytes: &[u8]) -> Vec<u8> {
        self.keypair.sign(bytes).expect("an Ed25519 key can sign")
    }

    pub(super) fn keypair(&self) -> &Keypair {
        &self.keypair
    }
}

/// Whether the peer with this id signed these bytes. An id of an Ed25519 key is the key itself.
#[must_use]
pub fn is_signed_by(id: &PeerId, bytes: &[u8], signature: &[u8]) -> bool {
    let hash = id.as_ref();
    let key = PublicKey::try_decode_protobuf(hash.digest());
    hash.code() == 0 && key.is_ok_and(|key| key.verify(bytes, signature))
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("id", &self.id().to_string()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_survives_its_bytes_and_junk_is_refused() {
        let identity = Identity::from_seed([7; 32]);
        let again = Identity::from_bytes(&identity.to_bytes()).expect("own bytes");
        assert_eq!(identity.id(), again.id());
        assert_eq!(identity.id(), Identity::from_seed([7; 32]).id());
        assert_ne!(identity.id(), Identity::generate().id());
        let bytes = identity.to_bytes();
        for end in 0..bytes.len() {
            assert!(Identity::from_bytes(&bytes[..end]).is_err(), "{end} bytes");
        }
    }

    #[test]
    fn a_signature_is_for_these_bytes_by_this_peer() {
        let (one, other) = (Identity::from_seed([7; 32]), Identity::from_seed([8; 32]));
        let signature = one.sign(b"what was said");
        assert!(is_signed_by(&one.id(), b"what was said", &signature));
        assert!(!is_signed_by(&other.id(), b"what was said", &signature));
        assert!(!is_signed_by(&one.id(), b"what was sa1d", &signature));
        assert!(!is_signed_by(&one.id(), b"what was said", &signature[1..]));
        assert!(!is_signed_by(&PeerId::random(), b"what was said", &signature), "an id that is no Ed25519 key");
    }

    #[test]
    fn the_secret_is_not_in_the_debug_text() {
        let seed = [0xab; 32];
        let text = format!("{:?}", Identity::from_seed(seed));
        assert!(text.contains("id"), "{text}");
        assert!(!text.to_lowercase().contains("abab") && !text.contains("171, 171"), "{text}");
    }
}
