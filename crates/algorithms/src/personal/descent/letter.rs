//! The letters by which models travel.
//!
//! | letter | bytes |
//! |---|---|
//! | model | 0, version (8), the numbers (8 each) |
//! | ask | 1 |

use sottovoce_core::{Reject, Wire, wire::Numbers};
use sottovoce_privacy::{Public, Released};

/// A letter about a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ModelLetter<'a> {
    /// The sender's model.
    Model {
        /// Steps taken.
        version: u64,
        /// The numbers.
        model: Numbers<'a>,
    },
    /// Wants the sender's model.
    Ask,
}

impl<'a> Wire<'a> for ModelLetter<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            ModelLetter::Model { version, model } => {
                out.push(0);
                out.extend_from_slice(&version.to_le_bytes());
                model.encode(out);
            }
            ModelLetter::Ask => out.push(1),
        }
    }

    fn decode(bytes: &'a [u8]) -> Result<Self, Reject> {
        match bytes {
            [0, rest @ ..] => {
                let (version, model) = rest.split_first_chunk().ok_or(Reject::Malformed)?;
                Ok(ModelLetter::Model { version: u64::from_le_bytes(*version), model: Numbers::decode(model)? })
            }
            [1] => Ok(ModelLetter::Ask),
            _ => Err(Reject::Malformed),
        }
    }

    fn vectors(&self) -> u64 {
        u64::from(matches!(self, ModelLetter::Model { .. }))
    }
}

impl<'a> ModelLetter<'a> {
    /// The letter with which a model travels.
    pub fn of(model: Released<&'a [f64]>, version: u64) -> Released<Self> {
        // PRIVACY: how many steps an agent has taken follows from the clock.
        let version = Public::declare(version);
        model.with_public(version, |version, model| ModelLetter::Model { version, model: Numbers::Plain(model) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn letters_come_back_to_the_bit_and_random_bytes_never_panic(
            version: u64,
            values in prop::collection::vec(-1e75f64..1e75, 0..20),
            mut noise in prop::collection::vec(any::<u8>(), 0..60),
            kind in 0u8..3,
        ) {
            let mut bytes = Vec::new();
            ModelLetter::Model { version, model: Numbers::Plain(&values) }.encode(&mut bytes);
            let mut again = Vec::new();
            ModelLetter::decode(&bytes).expect("own encoding").encode(&mut again);
            prop_assert_eq!(again, bytes);
            if !noise.is_empty() {
                noise[0] = kind;
            }
            let _ = ModelLetter::decode(&noise);
        }
    }

    #[test]
    fn a_question_is_one_byte_and_bad_numbers_are_refused() {
        let mut bytes = Vec::new();
        ModelLetter::Ask.encode(&mut bytes);
        assert_eq!((bytes.len(), ModelLetter::decode(&bytes)), (1, Ok(ModelLetter::Ask)));
        let mut bytes = vec![0; 9];
        bytes.extend(f64::NAN.to_le_bytes());
        assert_eq!(ModelLetter::decode(&bytes), Err(Reject::NotFinite));
        assert_eq!(ModelLetter::decode(&[1, 0]), Err(Reject::Malformed));
        assert_eq!(ModelLetter::decode(&[]), Err(Reject::Malformed));
    }
}
