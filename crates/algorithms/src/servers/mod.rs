//! One model for all, with servers between those who have data.

pub mod polar;
