//! A graph that is learned (thesis, section 2.3): for fixed models, or by turns with them.

mod alternating;
mod learner;
mod learning;
mod letter;
mod links;
mod sorted_links;

pub use alternating::{Alternating, AlternatingLetter, AlternatingState, Turns};
pub use learner::{Learner, Turn};
pub use learning::{GraphLearning, GraphLearningConfig, Placed, Standing};
pub use letter::{GraphLetter, KIND_MIN, Theta};
pub use links::{Links, Origin};
