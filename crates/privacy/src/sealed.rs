//! The third kind of thing that may leave: what shows nothing without a key that the reader lacks.

use crate::Released;

/// A value under a pad, a cipher or a commitment: to whoever lacks the key its law does not depend on data. What becomes of it when keys are
/// opened or sums are formed is charged for there, where the plain value appears.
///
/// Only cryptography makes one. No type can tell one crate from another, so a test of the sources does (`only_cryptography_seals`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sealed<T>(T);

impl<T> Sealed<T> {
    /// For the crate of cryptography: `value` shows nothing of what is in it without a key.
    pub fn by_cryptography(value: T) -> Self {
        Sealed(value)
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0
    }

    /// A sealed value and a released one, together.
    pub fn with_released<U>(self, released: Released<U>) -> Sealed<(T, U)> {
        Sealed((self.0, released.into_inner()))
    }

    /// Another form of the same, by a plain function: a closure could bring data in.
    pub fn map<U>(self, f: fn(T) -> U) -> Sealed<U> {
        Sealed(f(self.0))
    }
}

/// What may leave an agent: what was paid for, and what is sealed. The two kinds of this crate are all there are.
pub trait Leaves<T>: closed::Closed {
    /// The value.
    fn into_inner(self) -> T;
}

mod closed {
    pub trait Closed {}
}

impl<T> closed::Closed for Released<T> {}
impl<T> closed::Closed for Sealed<T> {}

impl<T> Leaves<T> for Released<T> {
    fn into_inner(self) -> T {
        Released::into_inner(self)
    }
}

impl<T> Leaves<T> for Sealed<T> {
    fn into_inner(self) -> T {
        self.0
    }
}
