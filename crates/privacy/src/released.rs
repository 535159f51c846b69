//! The two kinds of value that may leave an agent.

/// A value that has been paid for. Only this crate makes one, after the charge; drivers send nothing else.
///
/// What is computed from released and public values alone is released too (post-processing): see
/// [`Released::map`] and [`Released::with_public`]. Both take a plain `fn`, never a closure, because a
/// closure could capture raw data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Released<T>(T);

impl<T> Released<T> {
    /// Wraps a value whose charge is in the ledger.
    pub(crate) fn after_charge(value: T) -> Self {
        Released(value)
    }

    /// A value that the program itself says, the same for everyone: a plain function knows nobody's data.
    pub fn constant(say: fn() -> T) -> Self {
        Released(say())
    }

    /// A value that an agent finds in its own store, where it was written after its release. Every use is listed in THREATS.md.
    pub fn found_again(value: T) -> Self {
        Released(value)
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0
    }

    /// A look at the value, which stays.
    pub fn as_ref(&self) -> Released<&T> {
        Released(&self.0)
    }

    /// Two released values, together.
    pub fn and<U>(self, other: Released<U>) -> Released<(T, U)> {
        Released((self.0, other.0))
    }

    /// Post-processing by a plain function.
    pub fn map<U>(self, f: fn(T) -> U) -> Released<U> {
        Released(f(self.0))
    }

    /// Post-processing together with a public value, by a plain function.
    pub fn with_public<P, U>(self, public: Public<P>, f: fn(P, T) -> U) -> Released<U> {
        Released(f(public.0, self.0))
    }
}

impl Released<Box<[f64]>> {
    /// A vector of zeros. How many is public.
    pub fn zeros(len: usize) -> Self {
        Released(vec![0.0; len].into())
    }

    /// Becomes another released vector of the same length, in the same memory.
    pub fn overwrite(&mut self, with: Released<&[f64]>) {
        self.0.copy_from_slice(with.0);
    }
}

impl<'a> Released<&'a mut [f64]> {
    /// Memory whose old contents are gone, for a released vector of the same length.
    pub fn copied(memory: &'a mut [f64], from: Released<&[f64]>) -> Self {
        memory.copy_from_slice(from.0);
        Released(memory)
    }

    /// The same for zeros.
    pub fn zeroed(memory: &'a mut [f64]) -> Self {
        memory.fill(0.0);
        Released(memory)
    }
}

/// A value declared public: it does not depend on anybody's data beyond what the threat model lists as
/// known (numbers of points, weights, task constants). `Public::declare` is easy to search for, and every use of
/// it is listed in THREATS.md.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Public<T>(T);

impl<T> Public<T> {
    /// Declares `value` public.
    pub fn declare(value: T) -> Self {
        Public(value)
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> From<Public<T>> for Released<T> {
    /// A public value may leave at no charge.
    fn from(public: Public<T>) -> Self {
        Released(public.0)
    }
}
