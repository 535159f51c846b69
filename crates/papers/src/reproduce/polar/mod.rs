//! POLAR-SGD (Gade and Vaidya 2018): its figure, and what real privacy costs in its place.

pub mod figure_3;
pub mod privacy;
mod regression;
