//! The two laws that all noise is made of, sampled exactly: no number is ever rounded here.
//!
//! von Neumann (1951), "Various techniques used in connection with random digits"; Karney (2016), "Sampling exactly from the
//! normal distribution", ACM Transactions on Mathematical Software 42(1), Algorithms V, H, P, B and N (arXiv:1303.6257).
//! Why each step has the probability that is said: `proofs/exact-sampling.md`.

use super::digits::{Bits, Uniform};
use rand_chacha::rand_core::CryptoRng;

/// A sample of a law on the real line: its sign, its whole part, and a fraction that is drawn as far as it is needed.
#[derive(Clone, Debug)]
pub(super) struct Deviate {
    pub is_negative: bool,
    pub whole: u64,
    pub fraction: Uniform,
}

impl Deviate {
    /// The exponential law with mean 1: P(t) = e^-t on t > 0.
    pub fn exponential<R: CryptoRng, const WIDTH: u32>(bits: &mut Bits<R, WIDTH>) -> Self {
        let mut whole = 0;
        loop {
            let mut fraction = Uniform::new(bits);
            if exp_minus(&mut fraction, bits) {
                return Deviate { is_negative: false, whole, fraction };
            }
            whole += 1;
        }
    }

    /// The Laplace law with scale 1: an exponential with a fair sign.
    pub fn laplace<R: CryptoRng, const WIDTH: u32>(bits: &mut Bits<R, WIDTH>) -> Self {
        Deviate { is_negative: bits.coin(), ..Self::exponential(bits) }
    }

    /// The normal law with variance 1, by Karney's Algorithm N.
    pub fn normal<R: CryptoRng, const WIDTH: u32>(bits: &mut Bits<R, WIDTH>) -> Self {
        loop {
            // k with weight e^(-k/2), accepted with e^(-k(k-1)/2): together e^(-k^2/2).
            let mut whole = 0u64;
            while exp_minus_half(bits) {
                whole += 1;
            }
            if !(0..whole * whole.saturating_sub(1)).all(|_| exp_minus_half(bits)) {
                continue;
            }
            // x uniform, accepted with e^(-x(2k+x)/2): together e^(-(k+x)^2/2).
            let mut fraction = Uniform::new(bits);
            if (0..=whole).all(|_| exp_minus_share(whole, &mut fraction, bits)) {
                return Deviate { is_negative: bits.coin(), whole, fraction };
            }
        }
    }
}

/// True with probability e^-x. The run x > u1 > u2 > .. of fresh uniforms has n members or more with probability x^n/n!, so
/// its length is even with probability 1 - x + x^2/2 - ..
fn exp_minus<R: CryptoRng, const WIDTH: u32>(x: &mut Uniform, bits: &mut Bits<R, WIDTH>) -> bool {
    let mut next = Uniform::new(bits);
    if !next.is_below(x, bits) {
        return true;
    }
    !run_is_even(next, bits)
}

/// Whether the run `start` > u1 > u2 > .. has an even number of members after `start`.
#[inline]
fn run_is_even<R: CryptoRng, const WIDTH: u32>(start: Uniform, bits: &mut Bits<R, WIDTH>) -> bool {
    let (mut last, mut is_even) = (start, true);
    loop {
        let mut next = Uniform::new(bits);
        if !next.is_below(&mut last, bits) {
            return is_even;
        }
        (last, is_even) = (next, !is_even);
    }
}

/// True with probability e^-x for the exact value of a double in [0, 1].
pub(super) fn exp_minus_double<R: CryptoRng, const WIDTH: u32>(x: f64, bits: &mut Bits<R, WIDTH>) -> bool {
    let mut next = Uniform::new(bits);
    if !next.is_below_double(x, bits) {
        return true;
    }
    !run_is_even(next, bits)
}

/// True with probability e^-x for the exact value of any double x >= 0.
pub(super) fn exp_minus_any<R: CryptoRng, const WIDTH: u32>(x: f64, bits: &mut Bits<R, WIDTH>) -> bool {
    // The product of as many e^-1 as x has ones, and of e^-fraction. Counting to 2^128 is never finished, so that the cast
    // saturates there changes nothing.
    let whole = libm::floor(x);
    (0..whole as u128).all(|_| exp_minus_double(1.0, bits)) && exp_minus_double(x - whole, bits)
}

/// True with probability e^(-1/2), Karney's Algorithm H: as [`exp_minus_double`], but each member of the run must be below
/// 1/2, and a coin says so before its digits are drawn.
#[inline]
fn exp_minus_half<R: CryptoRng, const WIDTH: u32>(bits: &mut Bits<R, WIDTH>) -> bool {
    if bits.coin() {
        return true;
    }
    let (mut last, mut is_even) = (Uniform::below_half(bits), false);
    loop {
        if bits.coin() {
            return is_even;
        }
        let mut next = Uniform::below_half(bits);
        if !next.is_below(&mut last, bits) {
            return is_even;
        }
        (last, is_even) = (next, !is_even);
    }
}

/// True with probability e^(-x(2k+x)/(2k+2)), Karney's Algorithm B: the run x > u1 > u2 > .. as in [`exp_minus`], into which
/// each member is let with probability (2k+x)/(2k+2) only. That is asked first, because it needs fewer bits.
#[inline]
fn exp_minus_share<R: CryptoRng, const WIDTH: u32>(k: u64, x: &mut Uniform, bits: &mut Bits<R, WIDTH>) -> bool {
    let mut last: Option<Uniform> = None;
    let mut is_even = true;
    loop {
        let is_let_in = match bits.below(2 * k + 2) {
            0 => false,
            1 => Uniform::new(bits).is_below(x, bits),
            _ => true,
        };
        if !is_let_in {
            return is_even;
        }
        let mut next = Uniform::new(bits);
        if !next.is_below(last.as_mut().unwrap_or(x), bits) {
            return is_even;
        }
        (last, is_even) = (Some(next), !is_even);
    }
}

/// The discrete Gaussian with a deviation of 2^`log2`: P(y) proportional to exp(-y^2 / 2^(2 log2 + 1)) on the integers. Canonne, Kamath and Steinke
/// (2020), "The Discrete Gaussian for Differential Privacy", Algorithm 3, with a scale t = sigma that is a power of two, so that all numbers are exact doubles.
/// For `log2` up to 26.
pub(super) fn discrete_normal<R: CryptoRng, const WIDTH: u32>(log2: u32, bits: &mut Bits<R, WIDTH>) -> i64 {
    let deviation = 1u64 << log2;
    loop {
        let size = discrete_exponential(log2, bits);
        let is_negative = bits.coin();
        // Zero has one sign, else it would be drawn twice as often.
        if is_negative && size == 0 {
            continue;
        }
        // exp(-|y| / sigma) exp(-(|y| - sigma)^2 / (2 sigma^2)) = exp(-y^2 / (2 sigma^2)) exp(-1/2)
        let square = u128::from(size.abs_diff(deviation)) * u128::from(size.abs_diff(deviation));
        let shift = 2 * log2 + 1;
        let (whole, rest) = (square >> shift, square & ((1 << shift) - 1));
        let fraction = libm::scalbn(rest as f64, -(shift as i32));
        if (0..whole).all(|_| exp_minus_double(1.0, bits)) && exp_minus_double(fraction, bits) {
            return if is_negative { -(size as i64) } else { size as i64 };
        }
    }
}

/// P(x) proportional to exp(-x / 2^`log2`) on x = 0, 1, ..: the same paper's Algorithm 2.
fn discrete_exponential<R: CryptoRng, const WIDTH: u32>(log2: u32, bits: &mut Bits<R, WIDTH>) -> u64 {
    let low = loop {
        let low = if log2 == 0 { 0 } else { bits.few(log2) };
        if exp_minus_double(libm::scalbn(low as f64, -(log2 as i32)), bits) {
            break low;
        }
    };
    let mut high = 0u64;
    while exp_minus_double(1.0, bits) {
        high += 1;
    }
    low + (high << log2)
}
