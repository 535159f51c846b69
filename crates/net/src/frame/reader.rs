//! The parts of frames, as bytes.

use super::Refusal;

/// The longest text.
pub const TEXT_BYTES_MAX: usize = 512;

/// Bytes of a signature, where there is one.
const SIGNATURE_BYTES: usize = 64;

pub(super) fn encode_signature(signature: &[u8], out: &mut Vec<u8>) {
    let signature = if signature.len() == SIGNATURE_BYTES { signature } else { &[] };
    out.push(signature.len() as u8);
    out.extend_from_slice(signature);
}

/// Texts are bounded where they are made; a longer one is cut at a character.
pub(super) fn encode_text(text: &str, out: &mut Vec<u8>) {
    let end = (0..=TEXT_BYTES_MAX.min(text.len())).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    let text = &text[..end];
    out.extend((text.len() as u16).to_le_bytes());
    out.extend(text.as_bytes());
}

/// Bytes that are not read yet.
pub(super) struct Reader<'a> {
    pub bytes: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn take<const N: usize>(&mut self) -> Result<[u8; N], Refusal> {
        let (&taken, rest) = self.bytes.split_first_chunk::<N>().ok_or(Refusal::Malformed)?;
        self.bytes = rest;
        Ok(taken)
    }

    pub fn byte(&mut self) -> Result<u8, Refusal> {
        self.take::<1>().map(|[byte]| byte)
    }

    pub fn number(&mut self) -> Result<u64, Refusal> {
        self.take().map(u64::from_le_bytes)
    }

    pub fn text(&mut self) -> Result<&'a str, Refusal> {
        let length = usize::from(u16::from_le_bytes(self.take()?));
        if length > TEXT_BYTES_MAX {
            return Err(Refusal::Malformed);
        }
        let (text, rest) = self.bytes.split_at_checked(length).ok_or(Refusal::Malformed)?;
        self.bytes = rest;
        std::str::from_utf8(text).map_err(|_| Refusal::Malformed)
    }

    pub fn signature(&mut self) -> Result<&'a [u8], Refusal> {
        let length = usize::from(self.byte()?);
        if length != 0 && length != SIGNATURE_BYTES {
            return Err(Refusal::Malformed);
        }
        let (signature, rest) = self.bytes.split_at_checked(length).ok_or(Refusal::Malformed)?;
        self.bytes = rest;
        Ok(signature)
    }

    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.bytes)
    }

    pub fn end(self) -> Result<(), Refusal> {
        if self.bytes.is_empty() { Ok(()) } else { Err(Refusal::Malformed) }
    }
}
