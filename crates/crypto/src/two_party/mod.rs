//! Two-party computation: a pair computes a noisy value that neither of them sees, and a third member alone can read it.
//!
//! **Honest-but-curious only.** Everything here protects against members that follow the protocol and look at all they
//! see. It does *not* protect against members that deviate: a garbler can garble another circuit, an evaluator can
//! choose inconsistently and learn Delta. Malformed messages are refused with a reason and never panic, but a
//! well-formed lie is not found.
//!
//! ```text
//! evaluator                                   garbler                                      aggregator
//!   opening: A                        ->        (base transfer, `base_transfer`)
//!                                     <-        choices: 128 points, Delta hidden in them
//!   request: columns for its bits     ->        (extension, `extension`)
//!                                     <-        tables: garbled gates, in pieces (`half_gates`)
//!   its share: lowest bits of the labels it ended with                                ->     the XOR of the two shares
//!                                               its share: lowest bits of the labels for zero ->  is the result
//! ```
//!
//! One opening serves a pair for a whole [`Session`] of one circuit; each request is a batch of instances. The noise
//! comes from *joint* bits (`circuit`), which both draw and of which each knows its part only.
//!
//! | module | holds |
//! |---|---|
//! | [`circuit`], [`builder`], [`arithmetic`] | circuits as data, and how they are built |
//! | [`kernel`], [`coin`], [`laplace`], [`response`] | what a pair computes, and the noise |
//! | [`hash`], [`half_gates`] | garbling |
//! | [`base_transfer`], [`extension`] | oblivious transfer |
//! | [`garbler`], [`evaluator`], [`share`] | the three roles, as states that consume themselves; messages in, messages out, nothing else |
//! | [`pair`], [`ideal`] | one session of a pair as what may leave its members; the same by somebody trusted, for simulations |
//!
//! What each party can learn, and why no more, is in `proofs/two-party.md`.
//!
//! ```
//! use sottovoce_crypto::Context;
//! use sottovoce_crypto::two_party::{
//!     Session, builder::Builder, evaluator::{Evaluated, EvaluatorOpening}, garbler::{Garbled, Garbler}, inputs::Inputs,
//!     kernel, response::RandomizedResponse, share::combine,
//! };
//! # use rand_chacha::{ChaCha20Rng, rand_core::SeedableRng};
//! # let mut rng = ChaCha20Rng::seed_from_u64(1);
//!
//! // Whose number is larger, told truly with probability e / (1 + e).
//! let mut builder = Builder::new();
//! let larger = kernel::comparison(32, kernel::Larger::Garbler, &mut builder);
//! let told = RandomizedResponse::new(1.0, 2)?.answer(&larger, &mut builder)?;
//! builder.output_number(&told);
//! let here = Context { task: [1; 32], round: 0, sender: [2; 32], board: [3; 32] };
//! let session = Session::new(&here, [4; 32], [5; 32], builder.build()?)?;
//!
//! let (opening, hello) = EvaluatorOpening::new(&session, &mut rng);
//! let (garbler, choices) = Garbler::open(&session, &hello, &mut rng)?;
//! let evaluator = opening.receive(&choices)?;
//!
//! let mut theirs = Inputs::for_evaluator(&session, 1)?;
//! theirs.push(1_000, 32)?;
//! let (_evaluator, mut evaluation, request) = evaluator.request(theirs, &mut rng)?;
//! let mut mine = Inputs::for_garbler(&session, 1)?;
//! mine.push(2_000, 32)?;
//! let (_garbler, mut garbling) = garbler.garble(&request, mine, &mut rng)?;
//! let shares = loop {
//!     let (garbled, tables) = garbling.next();
//!     match (garbled, evaluation.receive(&tables)?) {
//!         (Garbled::Done(mine), Evaluated::Done(theirs)) => break (mine, theirs),
//!         (Garbled::More(more), Evaluated::More(rest)) => (garbling, evaluation) = (more, rest),
//!         _ => unreachable!("both count the same messages"),
//!     }
//! };
//! let outputs = combine(&session, &shares.0.to_bytes(), &shares.1.to_bytes())?;
//! assert!(outputs.number(0) <= 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod arithmetic;
pub mod base_transfer;
mod batch;
pub mod builder;
pub mod circuit;
pub mod coin;
pub mod evaluator;
pub mod extension;
pub mod garbler;
pub mod half_gates;
pub mod hash;
pub mod ideal;
pub mod inputs;
pub mod kernel;
pub mod laplace;
pub mod message;
pub mod pair;
pub mod response;
mod session;
pub mod share;
mod transpose;

pub use session::{SESSION_GATES_MAX, Session};

/// Instances that are computed side by side.
pub const LANES_MAX: usize = 32;
/// The most labels that one side holds for the wires of a run: two megabytes.
pub const LABELS_MAX: usize = 1 << 17;
/// A batch has about so many transfers at most: as many as fill AES in every column. One instance may have more.
pub const TRANSFERS_AIM: usize = 1 << 13;
/// AND gates, each in all its lanes, of one message of tables: 64 KiB at most.
pub const TABLE_GATES_MAX: usize = 64;
