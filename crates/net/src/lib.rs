//! The network driver.
