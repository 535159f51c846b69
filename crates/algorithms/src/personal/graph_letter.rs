//! The letters by which two agents agree on the weight between them.
//!
//! | letter | bytes |
//! |---|---|
//! | ask | 16, round (8) |
//! | answer | 17, round (8), as of (8), cost, degree, weight (8 each), the numbers of the model (8 each) |
//! | propose | 18, as of (8), weight (8) |
//! | settle | 19, as of (8), weight (8) |
//! | check | 20, weight (8) |
//!
//! "As of" is the clock of the pair's keeper; see [`super::graph_learning`]. No number is beyond [`NUMBER_MAX`]; weights and degrees
//! are not negative.

use sottovoce_core::{
    Reject, Wire,
    wire::{NUMBER_MAX, Numbers},
};

/// Letters about the graph begin with this byte or a higher one, letters about models with a lower one.
pub const KIND_MIN: u8 = 16;

/// A letter about the graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum GraphLetter<'a> {
    /// Wants to know what a weight needs.
    Ask {
        /// The asker's count of samples.
        round: u64,
    },
    /// What a weight needs.
    Answer {
        /// As in the question.
        round: u64,
        /// The clock of the one who answers.
        as_of: u64,
        /// c_v F_v.
        cost: f64,
        /// d_v.
        degree: f64,
        /// w_uv, as the one who answers knows it.
        weight: f64,
        /// theta_v.
        model: Numbers<'a>,
    },
    /// To the keeper of the pair: a new weight, if the old one still stands.
    Propose {
        /// The keeper's clock in its answer.
        as_of: u64,
        /// The new weight.
        weight: f64,
    },
    /// From the keeper of the pair: so it is.
    Settle {
        /// The keeper's clock.
        as_of: u64,
        /// The weight.
        weight: f64,
    },
    /// To the keeper of the pair: is it so?
    Check {
        /// The weight as the sender knows it.
        weight: f64,
    },
}

impl<'a> Wire<'a> for GraphLetter<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        let mut write = |kind: u8, fields: &[[u8; 8]]| {
            out.push(KIND_MIN + kind);
            fields.iter().for_each(|field| out.extend_from_slice(field));
        };
        match *self {
            GraphLetter::Ask { round } => write(0, &[round.to_le_bytes()]),
            GraphLetter::Answer { round, as_of, cost, degree, weight, model } => {
                let [cost, degree, weight] = [cost, degree, weight].map(f64::to_le_bytes);
                write(1, &[round.to_le_bytes(), as_of.to_le_bytes(), cost, degree, weight]);
                model.encode(out);
            }
            GraphLetter::Propose { as_of, weight } => write(2, &[as_of.to_le_bytes(), weight.to_le_bytes()]),
            GraphLetter::Settle { as_of, weight } => write(3, &[as_of.to_le_bytes(), weight.to_le_bytes()]),
            GraphLetter::Check { weight } => write(4, &[weight.to_le_bytes()]),
        }
    }

    fn decode(bytes: &'a [u8]) -> Result<Self, Reject> {
        let (kind, rest) = bytes.split_first().ok_or(Reject::Malformed)?;
        match kind.wrapping_sub(KIND_MIN) {
            0 => Ok(GraphLetter::Ask { round: u64::from_le_bytes(fields::<1>(rest)?[0]) }),
            1 => {
                let ([round, as_of, cost, degree, weight], model) = split::<5>(rest)?;
                let (round, as_of) = (u64::from_le_bytes(round), u64::from_le_bytes(as_of));
                let cost = number(cost)?;
                let (degree, weight, model) = (size(degree)?, size(weight)?, Numbers::decode(model)?);
                Ok(GraphLetter::Answer { round, as_of, cost, degree, weight, model })
            }
            kind @ (2 | 3) => {
                let [as_of, weight] = fields::<2>(rest)?;
                let (as_of, weight) = (u64::from_le_bytes(as_of), size(weight)?);
                Ok(if kind == 2 {
                    GraphLetter::Propose { as_of, weight }
                } else {
                    GraphLetter::Settle { as_of, weight }
                })
            }
            4 => Ok(GraphLetter::Check { weight: size(fields::<1>(rest)?[0])? }),
            _ => Err(Reject::Malformed),
        }
    }

    /// An answer carries a model.
    fn vectors(&self) -> u64 {
        u64::from(matches!(self, GraphLetter::Answer { .. }))
    }
}

/// N fields of eight bytes, and what follows them.
fn split<const N: usize>(bytes: &[u8]) -> Result<([[u8; 8]; N], &[u8]), Reject> {
    let (head, rest) = bytes.split_at_checked(8 * N).ok_or(Reject::Malformed)?;
    let mut fields = [[0; 8]; N];
    fields.iter_mut().zip(head.as_chunks::<8>().0).for_each(|(to, from)| *to = *from);
    Ok((fields, rest))
}

/// N fields of eight bytes and nothing else.
fn fields<const N: usize>(bytes: &[u8]) -> Result<[[u8; 8]; N], Reject> {
    match split(bytes)? {
        (fields, []) => Ok(fields),
        _ => Err(Reject::Malformed),
    }
}

/// A number within the bound that holds for all numbers of a peer. Beyond it, weight times model would overflow.
fn number(bytes: [u8; 8]) -> Result<f64, Reject> {
    let value = f64::from_le_bytes(bytes);
    if value.abs() <= NUMBER_MAX { Ok(value) } else { Err(Reject::NotFinite) }
}

/// Positive weights and degrees below this are taken from no peer: one over a sum of them is still finite.
const SIZE_MIN: f64 = 1.0 / NUMBER_MAX;

/// A number that is not negative, and not next to nothing either.
fn size(bytes: [u8; 8]) -> Result<f64, Reject> {
    let value = number(bytes)?;
    match value {
        _ if value < 0.0 => Err(Reject::Malformed),
        _ if value > 0.0 && value < SIZE_MIN => Err(Reject::NotFinite),
        _ => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn letters_come_back_to_the_bit(
            kind in 0usize..5,
            round: u64,
            as_of: u64,
            cost in -NUMBER_MAX..NUMBER_MAX,
            (degree, weight) in (SIZE_MIN..NUMBER_MAX, SIZE_MIN..NUMBER_MAX),
            model in prop::collection::vec(-NUMBER_MAX..NUMBER_MAX, 0..20),
        ) {
            let letter = match kind {
                0 => GraphLetter::Ask { round },
                1 => GraphLetter::Answer { round, as_of, cost, degree, weight, model: Numbers::Plain(&model) },
                2 => GraphLetter::Propose { as_of, weight },
                3 => GraphLetter::Settle { as_of, weight },
                _ => GraphLetter::Check { weight },
            };
            let mut bytes = Vec::new();
            letter.encode(&mut bytes);
            prop_assert!(bytes[0] >= KIND_MIN);
            let back = GraphLetter::decode(&bytes).expect("own encoding");
            if kind != 1 {
                prop_assert_eq!(back, letter);
            }
            let mut again = Vec::new();
            back.encode(&mut again);
            prop_assert_eq!(again, bytes);
        }

        #[test]
        fn random_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..80), kind in 15u8..22) {
            if !bytes.is_empty() {
                bytes[0] = kind;
            }
            if let Ok(GraphLetter::Answer { cost, degree, weight, .. }) = GraphLetter::decode(&bytes) {
                prop_assert!(cost.is_finite() && degree >= 0.0 && weight >= 0.0);
            }
        }
    }

    #[test]
    fn what_is_no_letter_is_refused() {
        let mut bytes = Vec::new();
        GraphLetter::Settle { as_of: 3, weight: 0.5 }.encode(&mut bytes);
        assert_eq!(bytes.len(), 17);
        assert_eq!(GraphLetter::decode(&bytes[..16]), Err(Reject::Malformed));
        for (bad, reason) in [
            (-0.5, Reject::Malformed),
            (f64::NAN, Reject::NotFinite),
            (NUMBER_MAX.next_up(), Reject::NotFinite),
            (SIZE_MIN.next_down(), Reject::NotFinite),
        ] {
            bytes[9..].copy_from_slice(&f64::to_le_bytes(bad));
            assert_eq!(GraphLetter::decode(&bytes), Err(reason));
        }
        bytes.push(0);
        assert_eq!(GraphLetter::decode(&bytes), Err(Reject::Malformed));
        assert_eq!(GraphLetter::decode(&[]), Err(Reject::Malformed));
    }
}
