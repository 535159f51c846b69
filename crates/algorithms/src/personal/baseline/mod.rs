//! What collaboration is compared with: models learned alone, and models of perturbed data.

mod alone;
mod input_perturbation;
mod local;

pub use alone::Alone;
pub use input_perturbation::{InputPerturbation, InputPerturbationConfig};
pub use local::Local;
