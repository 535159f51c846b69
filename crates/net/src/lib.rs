//! The network driver.

pub mod transport;
