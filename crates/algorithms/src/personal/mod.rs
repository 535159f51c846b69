//! Personalized models over a known graph, one algorithm a file.

pub mod coordinate_descent;
