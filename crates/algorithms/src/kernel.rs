//! Placeholder: the hot loops.
