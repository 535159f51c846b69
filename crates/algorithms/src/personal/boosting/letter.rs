//! The letters of Frank-Wolfe: one sparse step, a question, a whole sparse model.
//!
//! | letter | bytes |
//! |---|---|
//! | step | 0, version (4), index, sign and step size packed into whole bytes |
//! | ask | 1, heard (4) |
//! | model | 2, version (4), then index (4) and value (8) of each number that is not zero, by increasing index |
//!
//! A step is ceil(log2 K) bits of index, one of sign and 32 of step size, from the lowest bit up, filled up with zeros to whole
//! bytes: 41 bits in 6 bytes for 210 predictors, where the vector would take 1680 bytes.

use super::sparse::Sparse;
use sottovoce_core::{Reject, Wire};

/// Bits of a step size.
pub const STEP_SIZE_BITS: u64 = 32;
/// Bits of a number in a whole model, which must arrive exactly.
pub const VALUE_BITS: u64 = 64;
/// More base predictors than this have no place in a step.
pub const PREDICTORS_MAX: usize = 1 << 31;

/// ceil(log2 K): bits of an index.
pub fn index_bits(predictors: usize) -> u64 {
    u64::from(usize::BITS - (predictors - 1).leading_zeros())
}

/// Bits of a step: ceil(log2 K) + 1 + 32.
pub fn step_bits(predictors: usize) -> u64 {
    index_bits(predictors) + 1 + STEP_SIZE_BITS
}

/// Bits of a whole model: nnz (ceil(log2 K) + 64).
pub fn model_bits(predictors: usize, nonzero: usize) -> u64 {
    nonzero as u64 * (index_bits(predictors) + VALUE_BITS)
}

/// theta <- (1 - size) theta + size beta (+-e_index).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SparseStep {
    /// k.
    pub index: u32,
    /// Whether the corner is beta e_k rather than -beta e_k.
    pub positive: bool,
    /// gamma in (0, 1]. In single precision, because that is what is sent.
    pub size: f32,
}

/// A step as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packed {
    bits: u64,
    bytes: u8,
}

impl Packed {
    /// Packs a step among K predictors.
    pub fn new(step: SparseStep, predictors: usize) -> Self {
        let index = index_bits(predictors);
        let bits =
            u64::from(step.index) | u64::from(step.positive) << index | u64::from(step.size.to_bits()) << (index + 1);
        Packed { bits, bytes: step_bits(predictors).div_ceil(8) as u8 }
    }

    /// Unpacks a step among K predictors; refuses what is none.
    pub fn unpack(self, predictors: usize) -> Result<SparseStep, Reject> {
        let (index_width, width) = (index_bits(predictors), step_bits(predictors));
        if u64::from(self.bytes) != width.div_ceil(8) || width < 64 && self.bits >> width != 0 {
            return Err(Reject::Malformed);
        }
        let index = self.bits & ((1 << index_width) - 1);
        let size = f32::from_bits((self.bits >> (index_width + 1)) as u32);
        if !size.is_finite() {
            return Err(Reject::NotFinite);
        }
        if index >= predictors as u64 || !(size > 0.0 && size <= 1.0) {
            return Err(Reject::Malformed);
        }
        Ok(SparseStep { index: index as u32, positive: self.bits >> index_width & 1 == 1, size })
    }
}

/// A whole model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Entries<'a> {
    /// As its owner holds it: all numbers, most of them zero.
    Dense(&'a [f64]),
    /// As it arrived: whole entries, finite, by increasing index.
    Encoded(&'a [u8]),
}

impl Entries<'_> {
    /// Replaces a copy. Refuses an index that no predictor has, and a model outside the ball.
    pub fn copy_to(&self, predictors: usize, radius: f64, copy: &mut Sparse) -> Result<(), Reject> {
        let Entries::Encoded(bytes) = *self else { return Err(Reject::Malformed) };
        let mut length = 0.0;
        for (index, value) in decoded(bytes) {
            length += value.abs();
            if index as usize >= predictors {
                return Err(Reject::WrongDimension);
            }
        }
        if length > radius * (1.0 + BALL_SLACK) {
            return Err(Reject::Malformed);
        }
        copy.clear();
        decoded(bytes).for_each(|(index, value)| copy.push(index, value));
        Ok(())
    }
}

/// How far outside the ball rounding may carry a model, relatively; nobody honest comes near it.
const BALL_SLACK: f64 = 1e-9;

/// An index and a number.
const ENTRY_BYTES: usize = 12;

fn decoded(bytes: &[u8]) -> impl Iterator<Item = (u32, f64)> + '_ {
    bytes.as_chunks::<ENTRY_BYTES>().0.iter().map(|entry| {
        let [a, b, c, d, value @ ..] = *entry;
        (u32::from_le_bytes([a, b, c, d]), f64::from_le_bytes(value))
    })
}

/// A letter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BoostingLetter<'a> {
    /// The sender's model took this step, and has this version now.
    Step {
        /// Steps taken so far, this one included.
        version: u32,
        /// The step.
        step: Packed,
    },
    /// Wants the sender's whole model, if there is anything new in it.
    Ask {
        /// One more than the version known; zero before anything is.
        heard: u32,
    },
    /// The sender's whole model.
    Model {
        /// Its version.
        version: u32,
        /// Its numbers.
        entries: Entries<'a>,
    },
}

impl<'a> Wire<'a> for BoostingLetter<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        let (kind, number) = match *self {
            BoostingLetter::Step { version, .. } => (0, version),
            BoostingLetter::Ask { heard } => (1, heard),
            BoostingLetter::Model { version, .. } => (2, version),
        };
        out.push(kind);
        out.extend_from_slice(&number.to_le_bytes());
        match *self {
            BoostingLetter::Step { step, .. } => {
                out.extend_from_slice(&step.bits.to_le_bytes()[..usize::from(step.bytes)])
            }
            BoostingLetter::Ask { .. } => {}
            BoostingLetter::Model { entries: Entries::Encoded(bytes), .. } => out.extend_from_slice(bytes),
            BoostingLetter::Model { entries: Entries::Dense(values), .. } => {
                for (index, value) in values.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                    out.extend_from_slice(&(index as u32).to_le_bytes());
                    out.extend_from_slice(&value.to_le_bytes());
                }
            }
        }
    }

    fn decode(bytes: &'a [u8]) -> Result<Self, Reject> {
        let ([kind], rest) = bytes.split_first_chunk().ok_or(Reject::Malformed)?;
        let (number, rest) = rest.split_first_chunk().ok_or(Reject::Malformed)?;
        let number = u32::from_le_bytes(*number);
        match kind {
            0 if (1..=8).contains(&rest.len()) => {
                let mut bits = [0; 8];
                bits[..rest.len()].copy_from_slice(rest);
                let step = Packed { bits: u64::from_le_bytes(bits), bytes: rest.len() as u8 };
                Ok(BoostingLetter::Step { version: number, step })
            }
            1 if rest.is_empty() => Ok(BoostingLetter::Ask { heard: number }),
            2 if rest.len().is_multiple_of(ENTRY_BYTES) => {
                if !decoded(rest).all(|(_, value)| value.is_finite()) {
                    return Err(Reject::NotFinite);
                }
                let sorted = decoded(rest).zip(decoded(rest).skip(1)).all(|((a, _), (b, _))| a < b);
                if !sorted {
                    return Err(Reject::Malformed);
                }
                Ok(BoostingLetter::Model { version: number, entries: Entries::Encoded(rest) })
            }
            _ => Err(Reject::Malformed),
        }
    }

    /// A step is no vector; a whole model counts as one, however few of its numbers are sent.
    fn vectors(&self) -> u64 {
        u64::from(matches!(self, BoostingLetter::Model { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes_of(letter: &BoostingLetter<'_>) -> Vec<u8> {
        let mut bytes = Vec::new();
        letter.encode(&mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn steps_come_back_to_the_bit(
            predictors in 1usize..5000,
            at in any::<u32>(),
            positive: bool,
            size in 1e-30f32..=1.0,
            version: u32,
        ) {
            let step = SparseStep { index: at % predictors as u32, positive, size };
            let bytes = bytes_of(&BoostingLetter::Step { version, step: Packed::new(step, predictors) });
            prop_assert_eq!(bytes.len() as u64, 5 + step_bits(predictors).div_ceil(8));
            let Ok(BoostingLetter::Step { version: back, step: packed }) = BoostingLetter::decode(&bytes) else {
                return Err(TestCaseError::fail("own encoding"));
            };
            prop_assert_eq!((back, packed.unpack(predictors)), (version, Ok(step)));
        }

        #[test]
        fn models_come_back_to_the_bit(values in prop::collection::vec(prop_oneof![Just(0.0), -1.0f64..1.0], 1..40)) {
            let bytes = bytes_of(&BoostingLetter::Model { version: 7, entries: Entries::Dense(&values) });
            let Ok(BoostingLetter::Model { entries, .. }) = BoostingLetter::decode(&bytes) else {
                return Err(TestCaseError::fail("own encoding"));
            };
            let mut copy = Sparse::default();
            prop_assert_eq!(entries.copy_to(values.len(), values.len() as f64, &mut copy), Ok(()));
            let mut dense = vec![0.0; values.len()];
            copy.iter().for_each(|(index, value)| dense[index as usize] = value);
            prop_assert_eq!(&dense, &values);
            prop_assert_eq!(bytes_of(&BoostingLetter::Model { version: 7, entries }), bytes);
        }

        #[test]
        fn random_bytes_never_panic(
            mut bytes in prop::collection::vec(any::<u8>(), 0..80),
            kind in 0u8..4,
            predictors in 1usize..300,
        ) {
            if !bytes.is_empty() {
                bytes[0] = kind;
            }
            match BoostingLetter::decode(&bytes) {
                Ok(BoostingLetter::Step { step, .. }) => {
                    if let Ok(step) = step.unpack(predictors) {
                        prop_assert!((step.index as usize) < predictors && step.size > 0.0 && step.size <= 1.0);
                    }
                }
                Ok(BoostingLetter::Model { entries, .. }) => {
                    let _ = entries.copy_to(predictors, 1.0, &mut Sparse::default());
                }
                _ => {}
            }
        }
    }

    #[test]
    fn bits_are_those_of_the_formula() {
        for (predictors, index) in [(1, 0), (2, 1), (3, 2), (4, 2), (210, 8), (256, 8), (257, 9), (PREDICTORS_MAX, 31)]
        {
            assert_eq!(index_bits(predictors), index, "{predictors}");
            assert_eq!(step_bits(predictors), index + 33);
        }
        assert_eq!(model_bits(210, 10), 720);
    }

    #[test]
    fn what_is_no_letter_is_refused() {
        let step = SparseStep { index: 4, positive: true, size: 0.5 };
        let packed = Packed::new(step, 5);
        assert_eq!(packed.unpack(4), Err(Reject::Malformed), "too few bits of index make another step size or sign");
        assert_eq!(
            Packed::new(SparseStep { index: 7, ..step }, 8).unpack(5),
            Err(Reject::Malformed),
            "no such predictor"
        );
        for size in [0.0, -0.5, 1.5] {
            assert_eq!(Packed::new(SparseStep { size, ..step }, 5).unpack(5), Err(Reject::Malformed), "{size}");
        }
        assert_eq!(Packed::new(SparseStep { size: f32::NAN, ..step }, 5).unpack(5), Err(Reject::NotFinite));
        let dirty = Packed { bits: packed.bits | 1 << 63, bytes: 8 };
        assert_eq!(dirty.unpack(5), Err(Reject::Malformed));
        let model = bytes_of(&BoostingLetter::Model { version: 1, entries: Entries::Dense(&[0.5, 0.0, -0.75]) });
        assert_eq!(model.len(), 5 + 2 * 12);
        let Ok(BoostingLetter::Model { entries, .. }) = BoostingLetter::decode(&model) else { panic!("own encoding") };
        let mut copy = Sparse::default();
        assert_eq!(entries.copy_to(2, 2.0, &mut copy), Err(Reject::WrongDimension));
        assert_eq!(entries.copy_to(3, 1.0, &mut copy), Err(Reject::Malformed), "outside the ball");
        assert_eq!(copy.iter().count(), 0, "a refused model leaves the copy alone");
        let mut backwards = model[..5].to_vec();
        backwards.extend_from_slice(&model[17..]);
        backwards.extend_from_slice(&model[5..17]);
        assert_eq!(BoostingLetter::decode(&backwards), Err(Reject::Malformed));
        let mut infinite = model.clone();
        infinite[9..17].copy_from_slice(&f64::INFINITY.to_le_bytes());
        assert_eq!(BoostingLetter::decode(&infinite), Err(Reject::NotFinite));
        assert_eq!(BoostingLetter::decode(&model[..4]), Err(Reject::Malformed));
        assert_eq!(BoostingLetter::decode(&[9, 0, 0, 0, 0]), Err(Reject::Malformed));
    }
}
