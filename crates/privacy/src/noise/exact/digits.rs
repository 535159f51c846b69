//! Fair bits, and uniform numbers whose digits are drawn only when somebody looks at them.

use num_bigint::BigUint;
use rand_chacha::rand_core::CryptoRng;
use std::cmp::Ordering;

/// Digits of 64 bits: what is used. Tests also draw narrow ones, so that equal digits, which are rare, are met every time.
pub(super) const WIDE: u32 = 64;

/// A generator of which no bit is used twice. Digits have `WIDTH` bits, 1 to 64.
#[derive(Clone, PartialEq)]
pub(super) struct Bits<R, const WIDTH: u32 = WIDE> {
    generator: R,
    /// Bits for short questions, from the lowest.
    spare: u64,
    spare_count: u32,
}

impl<R: CryptoRng, const WIDTH: u32> Bits<R, WIDTH> {
    pub fn new(generator: R) -> Self {
        Bits { generator, spare: 0, spare_count: 0 }
    }

    /// A fair digit.
    #[inline]
    pub fn digit(&mut self) -> u64 {
        if WIDTH == WIDE { self.generator.next_u64() } else { self.few(WIDTH) }
    }

    /// `count` fair bits, 1 to 63 of them.
    #[inline]
    pub fn few(&mut self, count: u32) -> u64 {
        if self.spare_count < count {
            // What is left is thrown away: it was never looked at.
            self.spare = self.generator.next_u64();
            self.spare_count = 64;
        }
        let bits = self.spare & ((1 << count) - 1);
        self.spare >>= count;
        self.spare_count -= count;
        bits
    }

    /// Fair bits, as bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        self.generator.fill_bytes(bytes);
    }

    /// A fair coin.
    #[inline]
    pub fn coin(&mut self) -> bool {
        self.few(1) == 1
    }

    /// Uniform among 0, .., `bound` - 1, for a bound of 2 to 2^62: numbers of as many bits are drawn until one is below.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        let count = 64 - (bound - 1).leading_zeros();
        loop {
            let number = self.few(count);
            if number < bound {
                return number;
            }
        }
    }
}

/// A number uniform in (0, 1): the digits drawn so far, of all that it has.
#[derive(Clone, Debug)]
pub(super) struct Uniform {
    first: u64,
    /// Empty in nearly all of them, and then without memory.
    rest: Vec<u64>,
}

impl Uniform {
    #[inline]
    pub fn new<R: CryptoRng, const WIDTH: u32>(bits: &mut Bits<R, WIDTH>) -> Self {
        Uniform { first: bits.digit(), rest: Vec::new() }
    }

    /// Uniform in (0, 1/2).
    #[inline]
    pub fn below_half<R: CryptoRng, const WIDTH: u32>(bits: &mut Bits<R, WIDTH>) -> Self {
        Uniform { first: bits.digit() >> 1, rest: Vec::new() }
    }

    /// Its first digit, which is always drawn.
    #[inline]
    pub fn first(&self) -> u64 {
        self.first
    }

    fn digit<R: CryptoRng, const WIDTH: u32>(&mut self, index: usize, bits: &mut Bits<R, WIDTH>) -> u64 {
        if index == 0 {
            return self.first;
        }
        while self.rest.len() < index {
            self.rest.push(bits.digit());
        }
        self.rest[index - 1]
    }

    /// Whether it is below `other`: decided by the first digits that differ.
    #[inline]
    pub fn is_below<R: CryptoRng, const WIDTH: u32>(&mut self, other: &mut Self, bits: &mut Bits<R, WIDTH>) -> bool {
        if self.first != other.first { self.first < other.first } else { self.is_below_later(other, bits) }
    }

    #[cold]
    fn is_below_later<R: CryptoRng, const WIDTH: u32>(&mut self, other: &mut Self, bits: &mut Bits<R, WIDTH>) -> bool {
        let mut index = 1;
        loop {
            match self.digit(index, bits).cmp(&other.digit(index, bits)) {
                Ordering::Less => return true,
                Ordering::Greater => return false,
                Ordering::Equal => index += 1,
            }
        }
    }

    /// Whether it is below `bound`, in [0, 1], taken as the exact number that this double is.
    pub fn is_below_double<R: CryptoRng, const WIDTH: u32>(&mut self, bound: f64, bits: &mut Bits<R, WIDTH>) -> bool {
        if bound >= 1.0 {
            return true;
        }
        // All three steps are exact: a shift of the exponent, a part of the digits, and the other part.
        let base = if WIDTH == WIDE { 18_446_744_073_709_551_616.0 } else { (1u64 << WIDTH) as f64 };
        let (mut left, mut index) = (bound, 0);
        while left > 0.0 {
            let shifted = left * base;
            let digit = libm::floor(shifted);
            match self.digit(index, bits).cmp(&(digit as u64)) {
                Ordering::Less => return true,
                Ordering::Greater => return false,
                Ordering::Equal => (left, index) = (shifted - digit, index + 1),
            }
        }
        false
    }

    /// The whole number that has the digits of `whole`, followed by the first `count` of this one.
    pub fn leading<R: CryptoRng, const WIDTH: u32>(
        &mut self,
        whole: u64,
        count: usize,
        bits: &mut Bits<R, WIDTH>,
    ) -> BigUint {
        if WIDTH == WIDE {
            // The same as below, with one piece of memory: words of 32 bits, the lowest first.
            let mut words = Vec::with_capacity(2 * count + 2);
            for index in (0..count).rev() {
                let digit = self.digit(index, bits);
                words.extend([digit as u32, (digit >> 32) as u32]);
            }
            words.extend([whole as u32, (whole >> 32) as u32]);
            return BigUint::new(words);
        }
        let mut number = BigUint::from(whole);
        for index in 0..count {
            number <<= WIDTH;
            number += self.digit(index, bits);
        }
        number
    }
}
