//! The letters by which two agents agree on the weight between them.
//!
//! | letter | bytes |
//! |---|---|
//! | ask | 16, round (8) |
//! | answer | 17, round (8), as of (8), cost, degree, weight (8 each), the numbers of the model (8 each) |
//! | propose | 18, as of (8), weight (8) |
//! | settle | 19, as of (8), weight (8) |
//! | check | 20, weight (8) |
//! | sparse answer | 21, as in an answer up to the weight, length (4), then index (4) and value (8) of each number that is not zero |
//!
//! An answer is sparse where that is shorter: models of [`crate::personal::boosting`] have few numbers.
//!
//! "As of" is the clock of the pair's keeper; see [`super::learning`]. No number is beyond [`NUMBER_MAX`]; weights and degrees
//! are not negative.

use sottovoce_core::{
    Reject, Wire,
    wire::{LETTER_BYTES_MAX, NUMBER_MAX, Numbers},
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
        model: Theta<'a>,
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

/// A model in a letter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Theta<'a> {
    /// All its numbers.
    Dense(Numbers<'a>),
    /// As it arrived: whole entries with numbers of at most [`NUMBER_MAX`], by increasing index below the length.
    Sparse {
        /// How many numbers, zeros included.
        len: u32,
        /// Those that are not zero.
        entries: &'a [u8],
    },
}

/// An index and a number.
const ENTRY_BYTES: usize = 12;

impl<'a> Theta<'a> {
    /// |theta - other|^2, with the same sum for both forms. Refuses any other length.
    pub fn distance_squared(&self, other: &[f64]) -> Result<f64, Reject> {
        match *self {
            Theta::Dense(numbers) if numbers.len() == other.len() => Ok(match numbers {
                Numbers::Plain(values) => sum_of_squares(values.iter().copied(), other),
                Numbers::Encoded(bytes) => {
                    sum_of_squares(bytes.as_chunks::<8>().0.iter().map(|bytes| f64::from_le_bytes(*bytes)), other)
                }
            }),
            Theta::Sparse { len, entries } if len as usize == other.len() => {
                let mut entries = entries_of(entries).peekable();
                let at = |k: usize| entries.next_if(|entry| entry.0 as usize == k).map_or(0.0, |entry| entry.1);
                Ok(sum_of_squares((0..other.len()).map(at), other))
            }
            _ => Err(Reject::WrongDimension),
        }
    }

    /// Whether it is written with its zeros left out.
    fn is_sparse(&self) -> bool {
        match *self {
            Theta::Sparse { .. } => true,
            Theta::Dense(Numbers::Plain(values)) => {
                let nonzero = values.iter().filter(|value| **value != 0.0).count();
                4 + ENTRY_BYTES * nonzero < 8 * values.len() && values.len() <= u32::MAX as usize
            }
            Theta::Dense(Numbers::Encoded(_)) => false,
        }
    }

    fn encode(&self, sparse: bool, out: &mut Vec<u8>) {
        match *self {
            Theta::Sparse { len, entries } => {
                out.extend_from_slice(&len.to_le_bytes());
                out.extend_from_slice(entries);
            }
            Theta::Dense(Numbers::Plain(values)) if sparse => {
                out.extend_from_slice(&(values.len() as u32).to_le_bytes());
                for (k, value) in values.iter().enumerate().filter(|(_, value)| **value != 0.0) {
                    out.extend_from_slice(&(k as u32).to_le_bytes());
                    out.extend_from_slice(&value.to_le_bytes());
                }
            }
            Theta::Dense(Numbers::Plain(values)) => {
                let start = out.len();
                out.resize(start + 8 * values.len(), 0);
                let places = out[start..].as_chunks_mut::<8>().0;
                places.iter_mut().zip(values).for_each(|(to, value)| *to = value.to_le_bytes());
            }
            Theta::Dense(numbers) => numbers.encode(out),
        }
    }

    fn decode_sparse(bytes: &'a [u8]) -> Result<Self, Reject> {
        let (len, entries) = bytes.split_first_chunk::<4>().ok_or(Reject::Malformed)?;
        let len = u32::from_le_bytes(*len);
        if bytes.len() > LETTER_BYTES_MAX || !entries.len().is_multiple_of(ENTRY_BYTES) {
            return Err(Reject::Malformed);
        }
        let mut least = 0;
        for (index, value) in entries_of(entries) {
            if value.is_nan() || value.abs() > NUMBER_MAX {
                return Err(Reject::NotFinite);
            }
            if index < least || index >= len {
                return Err(Reject::Malformed);
            }
            least = index + 1;
        }
        Ok(Theta::Sparse { len, entries })
    }
}

/// |a - b|^2.
fn sum_of_squares(a: impl Iterator<Item = f64>, b: &[f64]) -> f64 {
    a.zip(b).map(|(a, b)| (a - b) * (a - b)).sum()
}

fn entries_of(bytes: &[u8]) -> impl Iterator<Item = (u32, f64)> + '_ {
    bytes.as_chunks::<ENTRY_BYTES>().0.iter().map(|entry| {
        let [a, b, c, d, value @ ..] = *entry;
        (u32::from_le_bytes([a, b, c, d]), f64::from_le_bytes(value))
    })
}

impl<'a> Wire<'a> for GraphLetter<'a> {
    fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            GraphLetter::Ask { round } => write(0, [round.to_le_bytes()], out),
            GraphLetter::Answer { round, as_of, cost, degree, weight, model } => {
                let [cost, degree, weight] = [cost, degree, weight].map(f64::to_le_bytes);
                let sparse = model.is_sparse();
                let fields = [round.to_le_bytes(), as_of.to_le_bytes(), cost, degree, weight];
                write(if sparse { 5 } else { 1 }, fields, out);
                model.encode(sparse, out);
            }
            GraphLetter::Propose { as_of, weight } => write(2, [as_of.to_le_bytes(), weight.to_le_bytes()], out),
            GraphLetter::Settle { as_of, weight } => write(3, [as_of.to_le_bytes(), weight.to_le_bytes()], out),
            GraphLetter::Check { weight } => write(4, [weight.to_le_bytes()], out),
        }
    }

    fn decode(bytes: &'a [u8]) -> Result<Self, Reject> {
        let (kind, rest) = bytes.split_first().ok_or(Reject::Malformed)?;
        match kind.wrapping_sub(KIND_MIN) {
            0 => Ok(GraphLetter::Ask { round: u64::from_le_bytes(fields::<1>(rest)?[0]) }),
            kind @ (1 | 5) => {
                let ([round, as_of, cost, degree, weight], model) = split::<5>(rest)?;
                let (round, as_of) = (u64::from_le_bytes(round), u64::from_le_bytes(as_of));
                let cost = number(cost)?;
                let (degree, weight) = (size(degree)?, size(weight)?);
                let model = match kind {
                    1 => Theta::Dense(Numbers::decode(model)?),
                    _ => Theta::decode_sparse(model)?,
                };
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

/// The kind of a letter, and N fields of eight bytes.
fn write<const N: usize>(kind: u8, fields: [[u8; 8]; N], out: &mut Vec<u8>) {
    out.push(KIND_MIN + kind);
    out.extend_from_slice(fields.as_flattened());
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
            mut model in prop::collection::vec(-NUMBER_MAX..NUMBER_MAX, 0..20),
            zeros: u32,
        ) {
            model.iter_mut().enumerate().filter(|(k, _)| zeros >> k & 1 == 1).for_each(|(_, value)| *value = 0.0);
            let letter = match kind {
                0 => GraphLetter::Ask { round },
                1 => GraphLetter::Answer { round, as_of, cost, degree, weight, model: Theta::Dense(Numbers::Plain(&model)) },
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
            prop_assert_eq!(&again, &bytes);
            if let GraphLetter::Answer { model: read, .. } = back {
                let whole = Theta::Dense(Numbers::Plain(&model));
                let other: Vec<f64> = model.iter().map(|value| 0.5 * value + 1.0).collect();
                prop_assert_eq!(read.distance_squared(&other), whole.distance_squared(&other));
                prop_assert_eq!(read.distance_squared(&model), Ok(0.0));
                let longer = vec![0.0; model.len() + 1];
                prop_assert_eq!(read.distance_squared(&longer), Err(Reject::WrongDimension));
            }
        }

        #[test]
        fn random_bytes_never_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..80), kind in 15u8..23) {
            if !bytes.is_empty() {
                bytes[0] = kind;
            }
            if let Ok(GraphLetter::Answer { cost, degree, weight, .. }) = GraphLetter::decode(&bytes) {
                prop_assert!(cost.is_finite() && degree >= 0.0 && weight >= 0.0);
            }
        }
    }

    #[test]
    fn an_answer_with_few_numbers_leaves_the_zeros_out_and_bad_entries_are_refused() {
        let mut model = vec![0.0; 210];
        (model[3], model[200]) = (1.5, -2.0);
        let answer = |model: &[f64]| {
            let mut bytes = Vec::new();
            let model = Theta::Dense(Numbers::Plain(model));
            GraphLetter::Answer { round: 1, as_of: 2, cost: 0.5, degree: 1.0, weight: 0.0, model }.encode(&mut bytes);
            bytes
        };
        let bytes = answer(&model);
        assert_eq!((bytes[0], bytes.len()), (21, 41 + 4 + 2 * 12));
        assert_eq!(answer(&[1.0; 210]).len(), 41 + 8 * 210);
        for (at, bad) in [(45, 201u32), (57, 210), (57, 3), (41, 200)] {
            let mut wrong = bytes.clone();
            wrong[at..at + 4].copy_from_slice(&bad.to_le_bytes());
            assert_eq!(GraphLetter::decode(&wrong), Err(Reject::Malformed), "{at} {bad}");
        }
        let mut wrong = bytes.clone();
        wrong[49..57].copy_from_slice(&f64::NAN.to_le_bytes());
        assert_eq!(GraphLetter::decode(&wrong), Err(Reject::NotFinite));
        assert_eq!(GraphLetter::decode(&bytes[..bytes.len() - 1]), Err(Reject::Malformed));
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
