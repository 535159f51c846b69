//! Personalized boosting (thesis, section 2.2.2): Frank-Wolfe over combinations of base predictors.

mod frank_wolfe;
mod letter;
mod sparse;

pub use frank_wolfe::{Bits, FrankWolfe, FrankWolfeConfig, StepSize};
pub use letter::{BoostingLetter, Entries, Packed, SparseStep, index_bits, step_bits};
