//! Coordinate descent (Bellet et al. 2018): with posts or with letters, exact or private.

mod coordinate_descent;
mod copies;
mod descent_by_letters;
mod private_coordinate_descent;
#[cfg(test)]
mod private_coordinate_descent_tests;
mod private_descent_by_letters;
#[cfg(test)]
mod private_descent_by_letters_tests;
mod private_step;
mod warm_start;

pub use coordinate_descent::{CoordinateDescent, CoordinateDescentConfig, Start};
pub use descent_by_letters::{DescentByLetters, Letter, Step};
pub use private_coordinate_descent::{PrivateCoordinateDescent, PrivateCoordinateDescentConfig, WarmStart};
pub use private_descent_by_letters::{PrivateDescentByLetters, PrivateDescentByLettersConfig};
