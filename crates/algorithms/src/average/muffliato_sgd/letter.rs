//! The letters of descent by gossip.

use crate::average::muffliato::MuffliatoLetter;
use sottovoce_core::wire::Numbers;
use sottovoce_core::{Reject, Wire};

/// What a neighbour is told.
///
/// | bytes | what |
/// |---|---|
/// | 1 | 0: a round of gossip; 1: a model |
/// | the rest | a [`MuffliatoLetter`]; or 4 bytes of the step, from 1 on, little-endian, and 8 for each coordinate |
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SgdLetter<'a> {
    /// What the sender holds in one round, of all rounds of all steps.
    Mass(MuffliatoLetter<'a>),
    /// The model after so many steps.
    Model {
        /// How many.
        step: u32,
        /// The model.
        theta: Numbers<'a>,
    },
}

impl SgdLetter<'_> {
    /// The size of the longer of both, for so many coordinates.
    pub(super) fn bytes(dimension: usize) -> usize {
        1 + MuffliatoLetter::bytes(dimension)
    }
}

impl<'a> Wire<'a> for SgdLetter<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            SgdLetter::Mass(letter) => {
                out.push(0);
                letter.encode(out);
            }
            SgdLetter::Model { step, theta } => {
                out.push(1);
                out.extend(step.to_le_bytes());
                theta.encode(out);
            }
        }
    }

    fn decode(bytes: &'a [u8]) -> Result<Self, Reject> {
        match bytes.split_first() {
            Some((0, rest)) => Ok(SgdLetter::Mass(MuffliatoLetter::decode(rest)?)),
            Some((1, rest)) => {
                let (step, theta) = rest.split_first_chunk().ok_or(Reject::Malformed)?;
                Ok(SgdLetter::Model { step: u32::from_le_bytes(*step), theta: Numbers::decode(theta)? })
            }
            _ => Err(Reject::Malformed),
        }
    }

    fn vectors(&self) -> u64 {
        1
    }
}
