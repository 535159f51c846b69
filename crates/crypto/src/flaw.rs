//! Why bytes, a proof or a request are refused: every reason has a name.
//!
//! A peer's fault is a [`Flaw`]: the caller drops what came and counts it, or shows it as evidence. A fault of whoever
//! uses this crate (a value that does not fit, a round that was used) is [`Unfit`]: nothing has left yet.

use thiserror::Error;

/// What is wrong with something that another member published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Error)]
pub enum Flaw {
    /// There are fewer bytes than the format needs.
    #[error("too few bytes")]
    TooShort,
    /// There are more bytes than the format needs: two encodings of one thing would be two things to sign.
    #[error("bytes left over")]
    TrailingBytes,
    /// A byte that names a kind names none that exists.
    #[error("a byte that names no known kind")]
    UnknownTag,
    /// A public key is not the canonical encoding of a field element.
    #[error("a public key that is not canonical")]
    PublicKeyNotCanonical,
    /// A public key of small order: everybody could compute the agreed secret.
    #[error("a public key of small order")]
    SmallOrder,
    /// The other member's public key is one's own.
    #[error("the other public key is one's own")]
    OwnPublicKey,
    /// A point is not the canonical encoding of an element of Ristretto255.
    #[error("a point that is not canonical")]
    PointNotCanonical,
    /// A point is the identity, which no honest member sends.
    #[error("the identity as a point")]
    IdentityPoint,
    /// A scalar is not reduced modulo the order of the group.
    #[error("a scalar that is not reduced")]
    ScalarNotReduced,
    /// A list has another length than the statement says.
    #[error("a list of the wrong length")]
    WrongLength,
    /// Shares of an own mask of which two have one index, or none.
    #[error("shares that do not fit together")]
    SharesDoNotFit,
    /// A mask is larger than any honest draw.
    #[error("a mask beyond the bound")]
    MaskTooLarge,
    /// A published sum is no number of the declared range.
    #[error("a sum beyond the range of the grid")]
    SumOutOfRange,
    /// An opening is not that of the commitment.
    #[error("the opening does not fit the commitment")]
    OpeningMismatch,
    /// The proof of knowledge of openings does not hold.
    #[error("the proof of opening does not hold")]
    OpeningProof,
    /// The proof that a commitment holds 0 or 1 does not hold.
    #[error("the proof of a bit does not hold")]
    BitProof,
    /// The proof that commitments hold numbers of so many bits does not hold.
    #[error("the range proof does not hold")]
    RangeProof,
    /// The proof of the sum relation (4.4) does not hold.
    #[error("the proof of the sum relation does not hold")]
    SumProof,
    /// The two masks of a pair do not cancel (4.5).
    #[error("the masks of a pair do not cancel")]
    NotAntisymmetric,
    /// The proof that a number is a sum of committed bits does not hold (4.6).
    #[error("the proof of the noise law does not hold")]
    NoiseProof,
    /// An ideal functionality outside of a simulation.
    #[error("an ideal functionality is for simulations alone")]
    NotSimulated,
    /// The proof that a vector and its coordinates are committed alike does not hold.
    #[error("the proof that links a vector to its coordinates does not hold")]
    LinkProof,
    /// A message of a two-party session that is not this one.
    #[error("a message of another session")]
    WrongSession,
    /// A batch, or a message of a batch, that is not the next one.
    #[error("a message out of its order")]
    OutOfOrder,
    /// The two members of a pair did not see the same messages.
    #[error("shares of two different transcripts")]
    TranscriptsDiffer,
}

/// What is wrong with a request to this crate. Nothing was published.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unfit {
    /// A grid's step is not a positive number between 2^-200 and 2^200.
    #[error("the step of a grid must lie between 2^-200 and 2^200")]
    Step,
    /// A number is NaN, infinite, or 2^62 steps or more from zero.
    #[error("a number must be finite and less than 2^62 steps of the grid from zero")]
    NumberOutOfRange,
    /// A sum of so many such terms could leave the ring's signed range.
    #[error("a sum of so many terms could overflow: fewer terms, or a coarser grid")]
    SumCouldOverflow,
    /// A round of a pair was asked for that is not later than one that was used.
    #[error("the pad of this round was used, or a later one was")]
    RoundUsed,
    /// More numbers than a stream or a set of generators serves.
    #[error("more numbers than the bound")]
    TooMany,
    /// A contribution without a mask: its value would hide behind its noise share alone.
    #[error("a contribution needs at least one mask")]
    Isolated,
    /// A value under fewer than two pads: the one who shares the only pad could take it off.
    #[error("a value to be sent to those who share its pads needs pads of at least two pairs")]
    OnePad,
    /// Lists that belong together have different lengths, or are empty.
    #[error("lists of different lengths, or an empty list")]
    Lengths,
    /// A standard deviation is not positive and finite, or too large for the grid.
    #[error("a standard deviation must be positive, finite, and at most 2^42 steps of the grid")]
    Deviation,
    /// The value to prove something about does not satisfy it.
    #[error("the value does not satisfy what is to be proved")]
    Untrue,
    /// The bounds of a range are in the wrong order or too far apart.
    #[error("a range must have low < high and span less than 2^63")]
    Range,
    /// The number of bits of a noise law is odd, zero, or beyond the bound.
    #[error("the number of bits must be even and between 2 and 4096")]
    Bits,
    /// An epsilon is too small, too large, or cannot be kept with the bits that there are.
    #[error("an epsilon must lie between 2^-20 and 20")]
    Epsilon,
    /// A sensitivity is zero, does not fit its width, or makes the noise too wide.
    #[error("a sensitivity must be positive, at most 2^width - 1, and its noise below 2^60")]
    Sensitivity,
    /// A coin's probability is not strictly between zero and one, or needs too many bits.
    #[error("a coin needs a threshold between 1 and 2^bits - 1, and at most 120 bits")]
    Probability,
    /// Garbler and evaluator are one member.
    #[error("the two members of a pair must be different")]
    SameMember,
    /// A two-party session has garbled as much as it may.
    #[error("the session has garbled its 2^32 gates: open a new one")]
    SessionSpent,
}
