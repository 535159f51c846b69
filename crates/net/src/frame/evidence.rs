//! Which message one is, and that it was seen.

use super::Refusal;
use super::reader::{Reader, encode_signature};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Bytes of a salt.
pub const SALT_BYTES: usize = 16;

/// Which message of its author one is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp<'a> {
    /// Numbers begin anew with an epoch; a peer that was never told to begin one is in the first, 0.
    pub epoch: u64,
    /// Its sequence number.
    pub number: u64,
    /// Goes into the hash of the content, so that evidence does not tell a content that can be guessed.
    pub salt: [u8; SALT_BYTES],
    /// Empty, or its author's signature.
    pub signature: &'a [u8],
}

impl Stamp<'_> {
    /// A message of the first epoch, without a salt and a signature.
    pub fn numbered(number: u64) -> Self {
        Stamp { number, ..Stamp::default() }
    }
}

/// The hash of a message's content.
fn content_hash(salt: &[u8; SALT_BYTES], content: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(salt);
    hash.update(content);
    hash.finalize().into()
}

/// That a message was seen, and not what it said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence {
    /// Its epoch.
    pub epoch: u64,
    /// Its number; zero: nothing was seen.
    pub number: u64,
    /// The salted hash of its content.
    pub hash: [u8; 32],
    /// Empty, or its author's signature.
    pub signature: Vec<u8>,
}

impl Evidence {
    /// Of a message.
    pub fn of(stamp: &Stamp<'_>, content: &[u8]) -> Self {
        let Stamp { epoch, number, ref salt, signature } = *stamp;
        Evidence { epoch, number, hash: content_hash(salt, content), signature: signature.to_vec() }
    }
}

/// What one peer has seen of another's messages: of each kind, the last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Of its posts.
    pub post: Evidence,
    /// Of its letters.
    pub letter: Evidence,
    /// Of its durable letters: how many were taken,
    pub turn: u64,
    /// and the last of them.
    pub durable: Evidence,
}

impl Seen {
    /// The highest number of all.
    pub fn highest(&self) -> u64 {
        self.post.number.max(self.letter.number).max(self.durable.number)
    }
}

impl<'a> Stamp<'a> {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.epoch.to_le_bytes());
        out.extend(self.number.to_le_bytes());
        out.extend(self.salt);
        encode_signature(self.signature, out);
    }

    pub(super) fn decode(reader: &mut Reader<'a>) -> Result<Self, Refusal> {
        let (epoch, number, salt) = (reader.number()?, reader.number()?, reader.take()?);
        Ok(Stamp { epoch, number, salt, signature: reader.signature()? })
    }
}

impl Evidence {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        out.extend(self.epoch.to_le_bytes());
        out.extend(self.number.to_le_bytes());
        out.extend(self.hash);
        encode_signature(&self.signature, out);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Refusal> {
        let (epoch, number, hash) = (reader.number()?, reader.number()?, reader.take()?);
        Ok(Evidence { epoch, number, hash, signature: reader.signature()?.to_vec() })
    }
}

impl Seen {
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        self.post.encode(out);
        self.letter.encode(out);
        out.extend(self.turn.to_le_bytes());
        self.durable.encode(out);
    }

    pub(super) fn decode(reader: &mut Reader<'_>) -> Result<Self, Refusal> {
        let (post, letter) = (Evidence::decode(reader)?, Evidence::decode(reader)?);
        Ok(Seen { post, letter, turn: reader.number()?, durable: Evidence::decode(reader)? })
    }
}
