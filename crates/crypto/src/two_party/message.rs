//! What the three roles send each other, as bytes. One encoding for each message, and every other one is refused with a
//! reason.
//!
//! | message | from, to | bytes |
//! |---|---|---|
//! | opening | evaluator, garbler | kind, session (32), point (32) |
//! | choices | garbler, evaluator | kind, session (32), 128 points |
//! | request | evaluator, garbler | kind, name (32), batch (8), instances (4), then 2048 for each block of 128 transfers |
//! | tables | garbler, evaluator | kind, name (32), batch (8), number of the message in its batch (4), in the first a seed (16), then 32 for each gate and lane |
//! | share | each, aggregator | kind, session (32), transcript (32), batch (8), instances (4), the bits, eight to a byte |
//!
//! `session` is the digest of what was agreed on, `name` that of an opened session: no other run has it. Numbers are
//! little-endian. Lengths follow from the circuit and the number of instances, never from anybody's bits.

use super::{
    batch::blocks,
    circuit::Circuit,
    extension::{BLOCK_BYTES, COLUMNS},
};
use crate::{encoding::Reader, flaw::Flaw};

const OPENING: u8 = 1;
const CHOICES: u8 = 2;
const REQUEST: u8 = 3;
const TABLES: u8 = 4;
const GARBLER_SHARE: u8 = 5;
const EVALUATOR_SHARE: u8 = 6;

/// Bytes of all choices.
pub const CHOICES_BYTES: usize = COLUMNS * 32;

fn kind(reader: &mut Reader<'_>, expected: u8) -> Result<(), Flaw> {
    let [kind] = reader.take()?;
    if kind == expected { Ok(()) } else { Err(Flaw::UnknownTag) }
}

fn number(reader: &mut Reader<'_>) -> Result<u64, Flaw> {
    Ok(u64::from_le_bytes(reader.take()?))
}

/// What the evaluator says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The digest of what was agreed on.
    pub session: [u8; 32],
    /// The base transfer's point.
    pub point: [u8; 32],
}

impl Opening {
    /// The message.
    pub fn encode(&self) -> Vec<u8> {
        [&[OPENING][..], &self.session, &self.point].concat()
    }

    /// Reads the message.
    pub fn decode(bytes: &[u8]) -> Result<Opening, Flaw> {
        let mut reader = Reader::new(bytes);
        kind(&mut reader, OPENING)?;
        let opening = Opening { session: reader.take()?, point: reader.take()? };
        reader.finish()?;
        Ok(opening)
    }
}

/// What the garbler answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choices<'b> {
    /// The digest of what was agreed on.
    pub session: [u8; 32],
    /// The base transfers' points; whether they are points is seen when they are used.
    pub points: &'b [u8],
}

impl<'b> Choices<'b> {
    /// The message.
    pub fn encode(&self) -> Vec<u8> {
        [&[CHOICES][..], &self.session, self.points].concat()
    }

    /// Reads the message.
    pub fn decode(bytes: &'b [u8]) -> Result<Choices<'b>, Flaw> {
        let mut reader = Reader::new(bytes);
        kind(&mut reader, CHOICES)?;
        let choices = Choices { session: reader.take()?, points: reader.slice(CHOICES_BYTES)? };
        reader.finish()?;
        Ok(choices)
    }
}

/// What the evaluator asks for in each batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'b> {
    /// The name of the opened session.
    pub name: [u8; 32],
    /// Which batch: they are numbered from zero.
    pub batch: u64,
    /// Instances of the batch.
    pub instances: usize,
    /// The extension's columns.
    pub columns: &'b [u8],
}

impl<'b> Request<'b> {
    /// The message without its columns, which are appended by the extension.
    pub(super) fn begin(name: &[u8; 32], batch: u64, instances: usize, columns_bytes: usize) -> Vec<u8> {
        let mut message = Vec::with_capacity(45 + columns_bytes);
        message.push(REQUEST);
        message.extend_from_slice(name);
        message.extend_from_slice(&batch.to_le_bytes());
        message.extend_from_slice(&(instances as u32).to_le_bytes());
        message
    }

    /// Reads the message, for a circuit that both know.
    pub fn decode(bytes: &'b [u8], circuit: &Circuit) -> Result<Request<'b>, Flaw> {
        let mut reader = Reader::new(bytes);
        kind(&mut reader, REQUEST)?;
        let (name, batch) = (reader.take()?, number(&mut reader)?);
        let instances = instances(&mut reader, circuit)?;
        let columns = reader.slice(blocks(circuit, instances) * BLOCK_BYTES)?;
        reader.finish()?;
        Ok(Request { name, batch, instances, columns })
    }
}

fn instances(reader: &mut Reader<'_>, circuit: &Circuit) -> Result<usize, Flaw> {
    let instances = reader.count(circuit.batch_max())?;
    if instances == 0 { Err(Flaw::WrongLength) } else { Ok(instances) }
}

/// A piece of the garbler's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tables<'b> {
    /// The name of the opened session.
    pub name: [u8; 32],
    /// Which batch.
    pub batch: u64,
    /// Which of the batch's messages.
    pub number: u32,
    /// In the first message: what the labels of the garbler's own bits are made of.
    pub seed: Option<[u8; 16]>,
    /// Garbled gates.
    pub tables: &'b [u8],
}

impl<'b> Tables<'b> {
    /// The message with room for so many bytes of tables, and where they begin.
    pub(super) fn begin(
        name: &[u8; 32],
        batch: u64,
        number: u32,
        seed: Option<&[u8; 16]>,
        bytes: usize,
    ) -> (Vec<u8>, usize) {
        let mut message = Vec::with_capacity(61 + bytes);
        message.push(TABLES);
        message.extend_from_slice(name);
        message.extend_from_slice(&batch.to_le_bytes());
        message.extend_from_slice(&number.to_le_bytes());
        message.extend_from_slice(seed.map_or(&[], |seed| &seed[..]));
        let at = message.len();
        message.resize(at + bytes, 0);
        (message, at)
    }

    /// Reads the message, with a seed in the first one, and so many bytes of tables.
    pub fn decode(bytes: &'b [u8], expected: usize) -> Result<Tables<'b>, Flaw> {
        let mut reader = Reader::new(bytes);
        kind(&mut reader, TABLES)?;
        let (name, batch) = (reader.take()?, number(&mut reader)?);
        let number = u32::from_le_bytes(reader.take()?);
        let seed = if number == 0 { Some(reader.take()?) } else { None };
        let tables = reader.slice(expected)?;
        reader.finish()?;
        Ok(Tables { name, batch, number, seed, tables })
    }
}

/// Who sends a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The garbler.
    Garbler,
    /// The evaluator.
    Evaluator,
}

/// What each of the two sends to the aggregator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareMessage<'b> {
    /// Whose share it is.
    pub sender: Sender,
    /// The digest of what was agreed on.
    pub session: [u8; 32],
    /// A hash of all messages of the batch.
    pub transcript: [u8; 32],
    /// Which batch.
    pub batch: u64,
    /// Instances of the batch.
    pub instances: usize,
    /// The bits, instance by instance, eight to a byte from the lowest.
    pub bits: &'b [u8],
}

impl<'b> ShareMessage<'b> {
    /// The message.
    pub fn encode(&self) -> Vec<u8> {
        let kind = match self.sender {
            Sender::Garbler => GARBLER_SHARE,
            Sender::Evaluator => EVALUATOR_SHARE,
        };
        let instances = (self.instances as u32).to_le_bytes();
        [&[kind][..], &self.session, &self.transcript, &self.batch.to_le_bytes(), &instances, self.bits].concat()
    }

    /// Reads the message, for a circuit that all three know.
    pub fn decode(bytes: &'b [u8], circuit: &Circuit) -> Result<ShareMessage<'b>, Flaw> {
        let mut reader = Reader::new(bytes);
        let sender = match reader.take()? {
            [GARBLER_SHARE] => Sender::Garbler,
            [EVALUATOR_SHARE] => Sender::Evaluator,
            _ => return Err(Flaw::UnknownTag),
        };
        let (session, transcript, batch) = (reader.take()?, reader.take()?, number(&mut reader)?);
        let instances = instances(&mut reader, circuit)?;
        let count = instances * circuit.outputs().len();
        let bits = reader.slice(count.div_ceil(8))?;
        reader.finish()?;
        let unused = bits.last().map_or(0, |last| if count.is_multiple_of(8) { 0 } else { last >> (count % 8) });
        if unused != 0 {
            return Err(Flaw::TrailingBytes);
        }
        Ok(ShareMessage { sender, session, transcript, batch, instances, bits })
    }
}
